"""``python -m benchmarks.growth``: how the time grows from 1 KiB to 1 GiB, as a table and as one picture."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from . import command, picture, report
from .cases import bytes_moved
from .machine import environment, free_memory
from .operators import OPERATORS
from .peers import Peer
from .problem import REAL, Case, Family

_LAW = """\
A problem grows as the layers of a network do. Up to 1 MiB its planes grow, with sides of 4, 7, 14, 28, 56 and 112 or
lengths of 20, 80, ... 20480; the step to 4 MiB has four times the channels, and each one after it four times the
batch."""
# The bytes of a step, nearly: those of the smallest and the number of the largest.
_SMALLEST, _LARGEST = 1 << 10, 10
# What runs must have in common to be shown together.
_ALIKE = ("cpu", "cores", "caches", "threads", "isa", "compiler", "aclnn_bw")
# A larger batch repeats so many images.
_IMAGES = 4
# A run of 1 GiB may take seconds.
_ROUNDS = 3
# With the copies, both outputs of ours and a peer's, a case takes at most so many times its own bytes.
_MEMORY = 6
_Value = TypeVar("_Value")


FAMILIES: dict[str, Family] = {
    name: family for operator in OPERATORS.values() for name, family in operator.families().items()
}


@dataclass(frozen=True)
class Point:
    """One size of a family."""

    family: str
    row: report.Row

    def as_json(self) -> dict[str, Any]:
        return {"family": self.family, **self.row.as_json()}

    @classmethod
    def from_json(cls, figures: Mapping[str, Any]) -> Point:
        rest = dict(figures)
        return cls(rest.pop("family"), report.Row.from_json(rest))


class Table:
    """The main program's, with the sizes."""

    def __init__(self, titles: Iterable[str]) -> None:
        self._table = report.Table([_titled(0, title) for title in titles])

    def heading(self) -> str:
        return self._table.heading()

    def lines(self, point: Point) -> list[str]:
        return self._table.lines(replace(point.row, case=_titled(point.row.nbytes, point.row.case)))

    def note(self, title: str, text: str) -> str:
        return self._table.note(title, text)


def _titled(nbytes: int, title: str) -> str:
    return f"{size(nbytes):>8}  {title}"


def size(nbytes: int) -> str:
    """Write a number of bytes."""
    unit, scale = next(
        ((unit, scale) for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20)) if nbytes >= 0.75 * scale),
        ("KiB", 1 << 10),
    )
    value = nbytes / scale
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def cases(families: Iterable[str], dtype: str, smallest: int, largest: int) -> list[Case]:
    """Give the cases of these families between two sizes."""
    steps = [step for step in range(_LARGEST + 1) if smallest <= _SMALLEST * 4**step <= largest]
    return [FAMILIES[name].case(step, dtype) for name in families for step in steps]


def family_of(case: Case) -> str:
    """Find the family that a case belongs to."""
    side, attributes = case.shape[-1], dict(case.attributes)
    return next(
        name
        for name, family in FAMILIES.items()
        if family.operator == case.operator and family.attributes(side) == attributes
    )


def run(case: Case, dtype: str, peers: Sequence[Peer], *, budget: float) -> Point:
    """Check and time a case beside each peer in turn: two of them may need more memory than there is."""
    groups = [[peer] for peer in peers] or [[]]
    need, free = _MEMORY * bytes_moved(case, dtype), free_memory()
    if free is not None and need > free:
        raise command.Skipped(f"takes some {size(need)} of memory, {size(free)} are free")
    rows = [
        report.run(case, dtype, group, budget=budget, images=_IMAGES, copies_from=0, min_rounds=_ROUNDS)
        for group in groups
    ]
    return Point(family_of(case), _joined(rows))


def _joined(rows: Sequence[report.Row]) -> report.Row:
    """Give the first one's own figures and the peers of all; of two that have the same peer, the first one's."""
    left_out = _union(row.left_out for row in rows)
    return replace(rows[0], peers=_union(row.peers for row in rows), left_out=left_out)


def _union(mappings: Iterable[Mapping[str, _Value]]) -> dict[str, _Value]:
    """Put them together in order; what an earlier one has stays."""
    union: dict[str, _Value] = {}
    for mapping in mappings:
        for name, value in mapping.items():
            union.setdefault(name, value)
    return union


def read(names: Sequence[str], selected: Sequence[command.Selected]) -> tuple[dict[str, Any], list[Point]]:
    """Put the files of several runs together: what they depend on, and the points of these cases.

    A size that several of them have keeps the first one's figures of ours and gets the peers of all, so that peers
    which cannot be installed side by side come into one picture. ValueError if the runs do not belong together.
    """
    order = [(family_of(case), case.title, dtype) for case, dtype in selected]
    surroundings: list[dict[str, Any]] = []
    found: dict[tuple[str, str, str], list[report.Row]] = {}
    for name in names:
        with open(name, encoding="utf-8") as file:
            figures = json.load(file)
        try:
            surroundings.append(figures["environment"])
            points = [Point.from_json(row) for row in figures["rows"]]
            alike = {key: surroundings[-1][key] for key in _ALIKE}
        except (KeyError, TypeError) as error:
            raise ValueError(f"{name}: must be figures of this program: {error!r}") from error
        for key, value in alike.items():
            if value != surroundings[0][key]:
                raise ValueError(f"{name}: {key} = {value!r}, but {surroundings[0][key]!r} in {names[0]}")
        for point in points:
            found.setdefault((point.family, point.row.case, point.row.dtype), []).append(point.row)
    points = [Point(key[0], _joined(found[key])) for key in order if key in found]
    if not points:
        raise ValueError(f"{', '.join(names)}: no case matches")
    return {**surroundings[0], "peers": _union(each["peers"] for each in surroundings)}, points


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 1 if a result was wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.plot:
        try:
            picture.check(options.plot)
        except (ImportError, ValueError) as error:
            parser.error(f"--plot {options.plot}: {error}")
    names = [name for name in FAMILIES if not options.operator or FAMILIES[name].operator in options.operator]
    selected = [
        (case, options.dtype)
        for case in cases(names, options.dtype, options.smallest, options.largest)
        if not options.case or any(text in case.title for text in options.case)
    ]
    if not selected:
        parser.error("no case matches; --list shows them all")
    if options.list:
        return command.show(selected)
    if options.from_json:
        try:
            surroundings, points = read(options.from_json, selected)
        except (OSError, ValueError) as error:
            parser.error(str(error))
    with command.started(parser, options) as write:

        def save(points: Sequence[Point], wrong: Sequence[str]) -> None:
            write({"environment": surroundings, "rows": [point.as_json() for point in points], "wrong": wrong})

        wrong: Sequence[str] = ()
        if options.from_json:
            print(f"{report.header(surroundings)}\n{_listed(points)}")
            save(points, wrong)
        else:
            peers = command.load_peers(options)
            surroundings = environment(peers, options.threads)
            print(report.header(surroundings))
            points, wrong = command.fill(
                Table(case.title for case, _ in selected),
                selected,
                lambda case, dtype: run(case, dtype, peers, budget=options.seconds),
                save,
                progress=options.progress,
            )
    if options.plot:
        panels = {FAMILIES[name].title: [point.row for point in points if point.family == name] for name in names}
        picture.draw({title: rows for title, rows in panels.items() if rows}, surroundings, options.plot)
    return 1 if wrong else 0


def _listed(points: Sequence[Point]) -> str:
    table = Table(point.row.case for point in points)
    lines: list[str] = []
    operator = None
    for point in points:
        if point.row.operator != operator:
            operator = point.row.operator
            lines += [operator, table.heading()]
        lines += table.lines(point)
    return "\n".join(lines)


def _bytes(text: str) -> int:
    for unit, scale in ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30):
        if text.endswith(unit):
            return int(command.positive(text.removesuffix(unit)) * scale)
    raise argparse.ArgumentTypeError(f"{text}: must end with KiB, MiB or GiB")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth",
        description="Time each operator from 1 KiB to 1 GiB of what it must read and write, beside the installed peers "
        "and a plain copy by one thread.",
        epilog=_LAW,
    )
    add = parser.add_argument
    add("--operator", action="append", choices=list(OPERATORS), help="only this one; may be repeated")
    add("--case", action="append", metavar="TEXT", help="only cases whose title contains TEXT; may be repeated")
    add("--dtype", choices=REAL, default="float32", help="float32 if not given")
    add("--from", dest="smallest", type=_bytes, default=1 << 10, metavar="SIZE", help="1KiB if not given")
    add("--to", dest="largest", type=_bytes, default=1 << 30, metavar="SIZE", help="1GiB if not given")
    add("--list", action="store_true", help="print the selected cases and stop")
    command.add_measuring(parser, seconds=1.0, quick=0.02)
    command.add_peers(parser)
    add("--plot", metavar="FILE", help="draw them all: .svg, .png, .pdf (needs matplotlib)")
    add(
        "--from-json", nargs="+", metavar="FILE",
        help="measure nothing and take the figures that --json wrote on one machine; sizes, operators and peers may be "
        "spread over several files",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    command.end(main)
