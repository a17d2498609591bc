"""Running the selected cases, and how a row and its surroundings are shown."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import aclnn_bw

from .cases import OPERATORS
from .check import Reference, check
from .peers import Peer
from .problem import DTYPES, Case, Contestant, Form, Problem
from .timing import Spread, Statement, measure, plain_copy, ratio

_BUSY = "THE MACHINE IS BUSY with other work: threads wait for cores, and these figures mean little.\n"


@dataclass(frozen=True)
class Times:
    """Nanoseconds a run."""

    into: Spread
    fresh: Spread | None


@dataclass(frozen=True)
class Comparison:
    """A peer's times and, round by round, how many times longer than ours they are."""

    times: Times
    into_ratio: Spread
    fresh_ratio: Spread | None


@dataclass(frozen=True)
class Row:
    """The figures of one case in one dtype."""

    operator: str
    case: str
    dtype: str
    nbytes: int
    rounds: int
    statement: str
    ours: Times
    copy: Spread | None  # the plain copy of as many bytes; None where calls, not bytes, are measured
    copies: Spread | None  # our time / the copy's
    peers: Mapping[str, Comparison] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run(case: Case, dtype: str, peers: list[Peer], *, budget: float, seed: int = 0) -> Row:
    """Check and then time one case; WrongResult if anybody's result is wrong."""
    layout = case.attributes.get("mask_layout", "bitmask")
    with aclnn_bw.soc("Host", mask_layout=layout):  # the only rules under which every dtype goes through the two phases
        return _run(case, dtype, peers, budget, np.random.default_rng(seed))


def _run(case: Case, dtype: str, peers: list[Peer], budget: float, rng: np.random.Generator) -> Row:
    operator = OPERATORS[case.operator]
    problem = operator.problem(case, DTYPES[dtype], rng)
    ours = operator.ours(problem)
    rivals = [contestant for peer in peers if (contestant := peer.contestant(problem)) is not None]
    references = operator.references(problem)
    # We sum 16-bit types in float32; a peer may sum in the type itself.
    _check(ours, problem, references, DTYPES["float32"] if problem.dtype.itemsize < 4 else problem.dtype)
    for rival in rivals:
        _check(rival, problem, references, problem.dtype)
    del references

    statements: dict[str, Statement] = {}
    for contestant in (ours, *rivals):
        statements[f"{contestant.name} into"] = contestant.into
        if contestant.fresh:
            statements[f"{contestant.name} fresh"] = contestant.fresh
    measures_bytes = case.form is Form.CALL and problem.nbytes >= 1 << 20
    if measures_bytes:
        statements["copy"] = plain_copy(problem.nbytes)
    samples = measure(statements, budget=budget, nbytes=problem.nbytes)
    return Row(
        operator=case.operator,
        case=case.title,
        dtype=dtype,
        nbytes=problem.nbytes,
        rounds=len(samples["ours into"]),
        statement=ours.into.code,
        ours=_times(ours, samples),
        copy=Spread.of(samples["copy"]) if measures_bytes else None,
        copies=ratio(samples["ours into"], samples["copy"]) if measures_bytes else None,
        peers={rival.name: _compare(rival, samples) for rival in rivals},
    )


def _check(
    contestant: Contestant, problem: Problem, references: tuple[Reference, ...], accumulated_in: np.dtype[Any]
) -> None:
    who = f"{contestant.name}, {problem.name}"
    for out in contestant.outs:
        out.fill(-1 if out.dtype.kind == "i" else np.nan)
    contestant.into.run()
    runs = [(contestant.outs, who)]
    if contestant.fresh:
        returned = contestant.fresh.run()
        runs.append((returned if isinstance(returned, tuple) else (returned,), f"{who}, fresh output"))
    for outs, name in runs:
        for result, reference in zip(contestant.results(outs), references, strict=True):
            check(result, reference, problem.dtype, accumulated_in=accumulated_in, who=name)


def _times(contestant: Contestant, samples: Mapping[str, list[float]]) -> Times:
    fresh = samples.get(f"{contestant.name} fresh")
    return Times(Spread.of(samples[f"{contestant.name} into"]), Spread.of(fresh) if fresh else None)


def _compare(rival: Contestant, samples: Mapping[str, list[float]]) -> Comparison:
    ours_fresh, fresh = samples.get("ours fresh"), samples.get(f"{rival.name} fresh")
    return Comparison(
        times=_times(rival, samples),
        into_ratio=ratio(samples[f"{rival.name} into"], samples["ours into"]),
        fresh_ratio=ratio(fresh, ours_fresh) if fresh and ours_fresh else None,
    )


def environment(peers: list[Peer], threads: int) -> dict[str, Any]:
    """What the figures depend on besides the code."""
    config = aclnn_bw.show_config(mode="dict")
    return {
        "aclnn_bw": config["version"],
        "isa": config["isa"],
        "openmp": config["openmp"],
        "compiler": config["compiler"],
        "threads": threads,
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "peers": {peer.name: peer.version for peer in peers},
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def header(env: Mapping[str, Any]) -> str:
    """The lines above the table."""
    peers = ", ".join(f"{name} {version}" for name, version in env["peers"].items()) or "no peer installed"
    load = "" if env["load"] is None else f", load average {env['load']:.2f} at the start"
    busy = env["load"] is not None and env["load"] > env["cores"] / 2
    return (
        f"aclnn_bw {env['aclnn_bw']}, instruction set {env['isa']}, {'OpenMP' if env['openmp'] else 'serial build'}, "
        f"compiled by {env['compiler']}\n"
        f"{env['threads']} thread{'s' * (env['threads'] != 1)} for everybody on {env['cpu']}, "
        f"{env['cores']} cores available{load}\n"
        f"Python {env['python']}, NumPy {env['numpy']}, {peers}; {env['system']}\n"
        f"{_BUSY if busy else ''}\n"
        "out=    into memory the caller gave; new: into fresh memory, allocation included; medians over the rounds\n"
        "ratio   the peer's time / ours, median over the rounds (first to third quartile)\n"
        "copies  our out= time in plain single-thread copies of the same bytes; of copy: the copy's time / ours\n"
    )


class Table:
    """Aligned lines, printed one by one as the rows come."""

    _COLUMNS = (
        ("dtype", 8), ("ours out=", 9), ("new", 8), ("peer", 6), ("out=", 8), ("new", 8),
        ("ratio out=", 18), ("ratio new", 18), ("copies", 6), ("of copy", 7),
    )  # fmt: skip

    def __init__(self, titles: list[str]) -> None:
        self._first = max(len("case"), *map(len, titles))

    def heading(self) -> str:
        names = [name for name, _ in self._COLUMNS]
        line = self._line("case", names)
        return f"{line}\n{'-' * len(line)}"

    def lines(self, row: Row) -> list[str]:
        """One line a peer, the case's own figures in the first."""
        own = [row.dtype, _duration(row.ours.into), _duration(row.ours.fresh)]
        if row.copies and row.copy:
            tail = [f"{row.copies.median:.2f}", f"{100 / row.copies.median:.0f} %"]
        else:
            tail = ["-", "-"]
        if not row.peers:
            return [self._line(row.case, [*own, "-", "-", "-", "-", "-", *tail])]
        lines: list[str] = []
        for name, peer in row.peers.items():
            middle = [
                name, _duration(peer.times.into), _duration(peer.times.fresh),
                _ratio(peer.into_ratio), _ratio(peer.fresh_ratio),
            ]  # fmt: skip
            if lines:
                lines.append(self._line("", ["", "", "", *middle]))
            else:
                lines.append(self._line(row.case, [*own, *middle, *tail]))
        return lines

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""
        return f"{title:<{self._first}}  {text}"

    def _line(self, first: str, cells: list[str]) -> str:
        text = f"{first:<{self._first}}"
        for i, ((_, width), cell) in enumerate(zip(self._COLUMNS, cells, strict=False)):
            text += f"  {cell:<{width}}" if i in (0, 3) else f"  {cell:>{width}}"
        return text.rstrip()


def _duration(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    value = spread.median
    if value < 1e3:
        return f"{value:.0f} ns"
    unit, size = ("us", 1e3) if value < 1e6 else ("ms", 1e6)
    return f"{value / size:.{2 if value < 10 * size else 1}f} {unit}"


def _ratio(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    digits = 2 if spread.median < 10 else 1 if spread.median < 100 else 0
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}-{spread.high:.{digits}f})"
