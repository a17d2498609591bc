"""``python -m benchmarks.sweep``: geometries drawn from a seed, beside every installed peer."""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

import numpy as np

import aclnn_bw

from . import command
from .growth import size
from .machine import environment, free_memory, summary
from .operators import OPERATORS
from .peers import KNOWN, Peer
from .problem import DTYPES, Case
from .report import Comparison, Row, duration, quotient
from .report import run as run_case
from .timing import Spread

# Of all that a call must read and write.
_SMALLEST, _LARGEST = 4 << 10, 256 << 20
# u, u + g, u + 2g, ... without their whole parts are spread evenly wherever they stop, and so is every n-th of them.
_GOLDEN = (math.sqrt(5) - 1) / 2
# Sides that layers have; others are drawn too.
_SIDES = (4, 7, 8, 14, 16, 17, 28, 32, 35, 56, 64, 112, 128, 149, 224, 256, 299, 384, 512)
_TALLEST, _WIDEST, _LONG = 600, 800, 8
# --small: planes of the depth of a network, where a row is few vectors; most of what is drawn otherwise is larger.
_SMALL_SIDE, _SMALL_BYTES = 36, (256 << 10, 8 << 20)
_CHANNELS, _BATCH = 512, 64
_GUESSES = 3
# Planes of so many bytes are drawn and checked by the formula; the others repeat them.
_CHECKED = 1 << 20
# Of those that are installed; gcc takes seconds to compile a case for others.
_PEERS = ("torch", "torch-nhwc", "onednn", "onednn-nhwc", "onednn-blocked", "jax", "paddle")
# One run of the largest cases may take seconds.
_ROUNDS = 3
# What is slower than a peer, or nearly, is timed again for so many times as long: noise must not make the list.
_AGAIN, _LONGER = 1.05, 4
# So many cases are measured before the figures are written again.
_SAVED = 50
# With everybody's inputs and outputs, a case takes at most so many times its own bytes.
_MEMORY = 4
_LEGEND = """\
The columns of the peers tell their time / ours, median over the rounds: into memory made before, or both into fresh
memory if the peer can do no other. With the same seed, --only NUMBER repeats the case #NUMBER. Of the cases that a peer
wins, "copies" is our time over that of the fastest copy of as many bytes by as many threads: near 1, memory is the
limit, and the peer moves fewer bytes. "places" are those that say where maxima lie: in a bit mask 2 for each window and
kernel position of up to 16 channels, which one channel alone has to itself; PyTorch has 8 for a channel's window."""


@dataclass(frozen=True)
class Drawn(Case):
    """A case that was drawn."""

    number: int = 0
    nbytes: int = 0  # what it must read and write

    @property
    def title(self) -> str:
        return f"{super().title} #{self.number}"


def drawn(seed: int, number: int, small: bool = False) -> tuple[Drawn, str]:
    """Draw a case, of small planes or any, and its dtype; operators and dtypes take turns."""
    turn, which = divmod(number, len(OPERATORS))
    operator = list(OPERATORS.values())[which]
    dtypes = operator.small()[0].dtypes
    dtype = dtypes[turn % len(dtypes)]
    place = (np.random.default_rng(seed).random() + number * _GOLDEN) % 1
    least, most = _SMALL_BYTES if small else (_SMALLEST, _LARGEST)
    wanted = least * (most / least) ** place
    rng = np.random.default_rng((seed, number))
    while True:
        plane, attributes, other = operator.draw(rng, _small_plane(rng) if small else _plane(rng))
        each = (math.prod(plane) + other) * DTYPES[dtype].itemsize
        planes = wanted / each
        # What says where maxima lie takes its part of the bytes, and how much depends on the shape.
        for _ in range(_GUESSES):
            shape = _outer(rng, planes)
            case = Drawn(operator.call, (*shape, *plane), attributes, number=number)
            nbytes = math.prod(shape) * each + operator.bytes_of_places(case)
            if 0.7 < nbytes / wanted < 1.4:
                return replace(case, nbytes=nbytes), dtype
            planes *= wanted / nbytes


def _plane(rng: np.random.Generator) -> tuple[int, int]:
    if rng.random() < 0.6:
        side = int(rng.choice(_SIDES))
        return side, side
    height, width = (int(4 * (most / 4) ** rng.random()) for most in (_TALLEST, _WIDEST))
    return max(height, width // _LONG), max(width, height // _LONG)


def _small_plane(rng: np.random.Generator) -> tuple[int, int]:
    side = int(rng.integers(4, _SMALL_SIDE))
    return side, side if rng.random() < 0.7 else int(rng.integers(4, _SMALL_SIDE))


def _outer(rng: np.random.Generator, planes: float) -> tuple[int, int]:
    """Draw batch and channels of about so many planes, if there can be so many."""
    least, most = max(planes / _BATCH, 1), max(min(planes, _CHANNELS), 1)
    channels = least * (most / least) ** rng.random()
    if channels > 16 and rng.random() < 0.7:
        channels = 16 * round(channels / 16)
    return min(max(round(planes / round(channels)), 1), _BATCH), min(round(channels), _CHANNELS)


def chosen(options: argparse.Namespace) -> Iterator[tuple[Drawn, str]]:
    """Give the cases that the options want, in the order of their numbers."""
    for number in options.only or count():
        case, dtype = drawn(options.seed, number, options.small)
        if (not options.operator or case.operator in options.operator) and dtype in (options.dtype or DTYPES):
            yield case, dtype


def run(case: Case, dtype: str, peers: Sequence[Peer], *, budget: float) -> Row:
    """Check and time one case."""
    assert isinstance(case, Drawn)
    need = _MEMORY * (len(peers) + 1) * case.nbytes
    free = free_memory()
    if free is not None and need > free:
        raise command.Skipped(f"takes some {size(need)} of memory, {size(free)} are free")
    planes = max(_CHECKED * math.prod(case.shape[:2]) // case.nbytes, 1)

    def timed(rivals: Sequence[Peer], seconds: float, copies_from: float = math.inf) -> Row:
        return run_case(
            case, dtype, list(rivals), budget=seconds, planes=planes, copies_from=copies_from, min_rounds=_ROUNDS,
            both=False,
        )  # fmt: skip

    row = replace(timed(peers, budget), places=OPERATORS[case.operator].bytes_of_places(case))
    near = [peer for peer in peers if peer.name in row.peers and ratio_of(row.peers[peer.name]).median < _AGAIN]
    if not near:
        return row
    again = timed(near, _LONGER * budget)
    left_out = {**row.left_out, **again.left_out}
    row = replace(again, peers={**row.peers, **again.peers}, left_out=left_out, places=row.places)
    if all(ratio_of(peer).median >= 1 for peer in row.peers.values()):
        return row
    # By itself: copies between the runs would take the caches from everybody.
    alone = timed([], budget, copies_from=0)
    return replace(row, copy=alone.copy, copies=alone.copies, streams=alone.streams)


def ratio_of(comparison: Comparison) -> Spread:
    """Give the ratio that counts."""
    ratio = comparison.into_ratio or comparison.fresh_ratio
    assert ratio
    return ratio


class Table:
    """A line a case, a column a peer."""

    _CASE = 80

    def __init__(self, peers: Sequence[str]) -> None:
        self._peers = peers

    def heading(self) -> str:
        return self._line("case", "dtype", "size", "ours", self._peers)

    def lines(self, row: Row) -> list[str]:
        ratios = [f"{ratio_of(row.peers[name]).median:.2f}" if name in row.peers else "-" for name in self._peers]
        case = f"{row.operator} {row.case}"
        line = self._line(case, row.dtype, size(row.nbytes), duration(row.ours.into), ratios)
        return [line, *(self.note(case, f"{row.dtype}: {name}: {why}") for name, why in row.left_out.items())]

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""
        return f"{title:<{self._CASE}}  {text}"

    def _line(self, case: str, dtype: str, nbytes: str, time: str, ratios: Sequence[str]) -> str:
        cells = (f"{ratio:>{max(len(name), 6)}}" for name, ratio in zip(self._peers, ratios, strict=True))
        return f"{case:<{self._CASE}}  {dtype:<10}  {nbytes:>8}  {time:>8}  {'  '.join(cells)}".rstrip()


def verdict(rows: Sequence[Row]) -> str:
    """Tell of each peer the means, the lowest, how many are low, and each case below 1, the lowest first."""
    names = dict.fromkeys(name for row in rows for name in row.peers)
    return "\n\n".join(_verdict(name, [row for row in rows if name in row.peers]) for name in names)


def _verdict(name: str, rows: Sequence[Row]) -> str:
    ratios = [(ratio_of(row.peers[name]), row) for row in rows]
    ratios.sort(key=lambda pair: pair[0].median)
    medians = [ratio.median for ratio, _ in ratios]
    slow, very = (sum(median < least for median in medians) for least in (0.95, 0.8))
    lines = [
        f"{name}: {len(rows)} cases, geometric mean {_mean(medians):.2f}, lowest {medians[0]:.2f}",
        f"  below 0.95: {slow} ({100 * slow / len(rows):.1f} %); below 0.8: {very or 'none'}",
    ]
    dtypes = [dtype for dtype in DTYPES if any(row.dtype == dtype for row in rows)]
    lines.append(f"  {'geometric mean, lowest':<34}{'all':>14}" + "".join(f"{dtype:>14}" for dtype in dtypes))
    for operator in ("", *OPERATORS):
        cells = [
            _cell([ratio.median for ratio, row in ratios if operator in ("", row.operator) and row.dtype in these])
            for these in (dtypes, *([dtype] for dtype in dtypes))
        ]
        if set(cells) != {"-"}:
            lines.append(f"  {operator or 'all':<34}" + "".join(f"{cell:>14}" for cell in cells))
    for ratio, row in ratios:
        if ratio.median < 1:
            nbytes = size(row.nbytes) + (f", {size(row.places)} of it places" if row.places else "")
            case = f"{row.operator} {row.case} {row.dtype}, {nbytes}, ours {duration(row.ours.into)}"
            bound = row.streams or row.copies
            lines.append(f"  {quotient(ratio)}  {case}" + (f" = {bound.median:.1f} copies" if bound else ""))
    return "\n".join(lines)


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _cell(ratios: Sequence[float]) -> str:
    return f"{_mean(ratios):.2f}, {min(ratios):.2f}" if ratios else "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sweep; 0, or 1 if a result was wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    isa = aclnn_bw.show_config(mode="dict")["isa"]
    if options.isa not in (None, isa):
        if "ACLNN_BW_ISA" in os.environ:
            parser.error(f"--isa {options.isa}: this environment uses {isa}")
        again = [sys.executable, "-m", "benchmarks.sweep", *(sys.argv[1:] if argv is None else argv)]
        return subprocess.run(again, env={**os.environ, "ACLNN_BW_ISA": options.isa}, check=False).returncode
    selected = list(islice(chosen(options), options.cases))
    if not selected:
        parser.error("no case matches")
    if options.list:
        return command.show(selected)
    with command.started(parser, options) as write:
        peers = command.load_peers(options)
        surroundings = environment(peers, options.threads)
        planes = " of small planes" if options.small else ""
        print(f"{summary(surroundings)}seed {options.seed}, {len(selected)} cases{planes}\n{_LEGEND}\n")

        def save(rows: Sequence[Row], wrong: Sequence[str]) -> None:
            drawn_from = {"seed": options.seed, "small": options.small}
            write({"environment": surroundings, **drawn_from, "rows": [row.as_json() for row in rows], "wrong": wrong})

        rows, wrong = command.fill(
            Table([peer.name for peer in peers]),
            selected,
            lambda case, dtype: run(case, dtype, peers, budget=options.seconds),
            # The figures of a thousand cases, written a thousand times, would be a gigabyte.
            lambda rows, wrong: None if len(rows) % _SAVED else save(rows, wrong),
            progress=options.progress,
            grouped=False,
        )
        save(rows, wrong)
    print(f"\n{verdict(rows)}")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sweep",
        description="Check and time cases that are drawn from a seed: all operators, dtypes, mask layouts and "
        "index types, 4 KiB to 256 MiB spread evenly over the powers of 2, beside the installed peers.",
        epilog=_LEGEND,
    )
    add = parser.add_argument
    add("--seed", type=int, default=0, metavar="S", help="another seed, other cases (default 0)")
    add("--cases", type=int, default=1000, metavar="N", help="how many (default 1000)")
    add("--only", type=_number, action="append", metavar="NUMBER", help="only this case of the seed; may be repeated")
    add("--small", action="store_true", help="planes of 4x4 to 35x35 only, 256 KiB to 8 MiB")
    add("--operator", action="append", choices=list(OPERATORS), help="only this one; may be repeated")
    add("--dtype", action="append", choices=list(DTYPES), help="only this one; may be repeated")
    add("--isa", choices=["v2", "v3", "v4"], help="instruction set of ours (default: the best of the machine)")
    add("--list", action="store_true", help="print the cases and stop")
    add(
        "--peers", dest="peer", type=_names, default=list(_PEERS), metavar="NAME,...",
        help=f"beside these of {', '.join(KNOWN)} (default {','.join(_PEERS)}, as far as they are installed)",
    )  # fmt: skip
    add("--no-peers", action="store_true", help=argparse.SUPPRESS)
    command.add_measuring(parser, seconds=0.1, quick=0.01)
    return parser


def _number(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"{text}: must be >= 0")
    return int(text)


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in KNOWN:
            raise argparse.ArgumentTypeError(f"{name}: must be one of {', '.join(KNOWN)}")
    return names


if __name__ == "__main__":
    command.end(main)
