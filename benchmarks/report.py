"""Running the selected cases, and how a row and its surroundings are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import aclnn_bw

from .cases import posed, posed_by_planes, rules
from .check import Reference, WrongResult
from .machine import summary
from .operators import OPERATORS
from .peers import Peer, in_one_line
from .problem import Case, Contestant, Form, Problem, check_contestant, sums_in
from .streams import copies
from .timing import MIN_ROUNDS, Spread, Statement, measure, plain_copy, ratio

# Below, the cost of a call is in the figure as well, and says more about the call than about the bytes.
COPIES_FROM = 256 << 10
# The threads of whoever ran before spin for some milliseconds and take a core from the next one's, if they are others.
_SETTLE = 5e-3


@dataclass(frozen=True)
class Times:
    """Nanoseconds a run."""

    into: Spread | None
    fresh: Spread | None


@dataclass(frozen=True)
class Comparison:
    """A peer's times and, round by round, how many times longer than ours they are."""

    times: Times
    into_ratio: Spread | None
    fresh_ratio: Spread | None
    note: str = ""


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
    left_out: Mapping[str, str] = field(default_factory=dict)  # peers that were wrong or failed, and how
    streams: Spread | None = None  # our time / that of the fastest copy by as many threads
    places: int = 0  # bytes that say where maxima lie, where the caller told

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, figures: Mapping[str, Any]) -> Row:
        """Read what ``as_json`` gave; TypeError or KeyError if it is something else."""
        peers = {
            name: Comparison(
                _times_in(peer["times"]), _spread_in(peer["into_ratio"]), _spread_in(peer["fresh_ratio"]), peer["note"]
            )
            for name, peer in figures["peers"].items()
        }
        spreads = {key: _spread_in(figures[key]) for key in ("copy", "copies")}
        spreads["streams"] = _spread_in(figures.get("streams"))
        return cls(**{**figures, "ours": _times_in(figures["ours"]), **spreads, "peers": peers})


def _times_in(figures: Mapping[str, Any]) -> Times:
    return Times(_spread_in(figures["into"]), _spread_in(figures["fresh"]))


def _spread_in(figures: Mapping[str, float] | None) -> Spread | None:
    return Spread(**figures) if figures else None


def run(
    case: Case,
    dtype: str,
    peers: list[Peer],
    *,
    budget: float,
    images: int | None = None,
    planes: int | None = None,
    copies_from: float = COPIES_FROM,
    min_rounds: int = MIN_ROUNDS,
    both: bool = True,
) -> Row:
    """Check and then time one case; WrongResult if our result is wrong. A peer whose result is wrong is left out.

    ``images``: see ``posed``; ``planes``: see ``posed_by_planes``. The yardstick is measured too where the case moves
    at least ``copies_from`` bytes. Without ``both``, fresh memory counts only beside a peer that takes no other.
    """
    with rules(case):
        problem, references = (
            posed_by_planes(case, dtype, planes=planes) if planes else posed(case, dtype, images=images)
        )
        ours = OPERATORS[case.operator].ours(problem)
        check_contestant(ours, problem, references, accumulated_in=sums_in(problem.dtype))
        rivals, left_out = _rivals(peers, problem, references)
        del references

        statements: dict[str, Statement] = {}
        fresh_alone = any(not rival.into for rival in rivals)
        for contestant in (ours, *rivals):
            if contestant.into:
                statements[f"{contestant.name} into"] = contestant.into
            if contestant.fresh and (both or not contestant.into or (contestant is ours and fresh_alone)):
                statements[f"{contestant.name} fresh"] = contestant.fresh
        streams: dict[str, Statement] = {}
        measures_bytes = case.form is Form.CALL and problem.nbytes >= copies_from
        if measures_bytes:
            statements["copy"] = plain_copy(problem.nbytes)
            streams = copies(problem.nbytes, aclnn_bw.get_num_threads())
            statements |= streams
        settle = _SETTLE if rivals else 0.0
        samples = measure(statements, budget=budget, nbytes=problem.nbytes, min_rounds=min_rounds, settle=settle)
    assert ours.into
    fastest = min((samples[name] for name in streams), key=median, default=None)
    return Row(
        operator=case.operator,
        case=case.title,
        dtype=dtype,
        nbytes=problem.nbytes,
        rounds=len(samples["ours into"]),
        statement=ours.into.code,
        ours=_times(ours, samples),
        copy=_spread(samples.get("copy")),
        copies=_ratio(samples["ours into"], samples.get("copy")),
        streams=_ratio(samples["ours into"], fastest),
        peers={rival.name: _compare(rival, samples) for rival in rivals},
        left_out=left_out,
    )


def _rivals(
    peers: list[Peer], problem: Problem, references: tuple[Reference, ...]
) -> tuple[list[Contestant], dict[str, str]]:
    """Give the contestants of the peers that offer the problem and are right, and say why others are left out."""
    rivals: list[Contestant] = []
    left_out: dict[str, str] = {}
    for peer in peers:
        try:
            rival = peer.contestant(problem)
            if rival:
                check_contestant(rival, problem, references, accumulated_in=problem.dtype)
                rivals.append(rival)
        except WrongResult as error:
            left_out[peer.name] = f"WRONG RESULT, not timed: {error}"
        except Exception as error:  # whatever a framework raises on its own account must not end the table
            left_out[peer.name] = f"failed, not timed: {in_one_line(error)}"
    return rivals, left_out


def _spread(samples: list[float] | None) -> Spread | None:
    return Spread.of(samples) if samples else None


def _ratio(numerator: list[float] | None, denominator: list[float] | None) -> Spread | None:
    return ratio(numerator, denominator) if numerator and denominator else None


def _times(contestant: Contestant, samples: Mapping[str, list[float]]) -> Times:
    return Times(*(_spread(samples.get(f"{contestant.name} {kind}")) for kind in ("into", "fresh")))


def _compare(rival: Contestant, samples: Mapping[str, list[float]]) -> Comparison:
    into, fresh = (
        _ratio(samples.get(f"{rival.name} {kind}"), samples.get(f"ours {kind}")) for kind in ("into", "fresh")
    )
    return Comparison(_times(rival, samples), into, fresh, rival.note)


def header(env: Mapping[str, Any]) -> str:
    """The lines above the table."""
    return (
        f"{summary(env)}\n"
        "out=    into memory the caller gave; new: into fresh memory, allocation included; medians over the rounds\n"
        "ratio   the peer's time / ours, median over the rounds (first to third quartile)\n"
        "copies  our out= time in plain single-thread copies of the same bytes; of copy: the copy's time / ours\n"
        "streams our out= time in the fastest copies of the same bytes by as many threads, of either kind of stores\n"
    )


class Table:
    """Aligned lines, printed one by one as the rows come."""

    _COLUMNS = (
        ("dtype", 8), ("ours out=", 9), ("new", 8), ("peer", 15), ("out=", 8), ("new", 8),
        ("ratio out=", 18), ("ratio new", 18), ("copies", 6), ("of copy", 7), ("streams", 7),
    )  # fmt: skip

    def __init__(self, titles: list[str]) -> None:
        self._first = max(len("case"), *map(len, titles))

    def heading(self) -> str:
        names = [name for name, _ in self._COLUMNS]
        line = self._line("case", names)
        return f"{line}\n{'-' * len(line)}"

    def lines(self, row: Row) -> list[str]:
        """One line a peer, the case's own figures in the first."""
        own = [row.dtype, duration(row.ours.into), duration(row.ours.fresh)]
        if row.copies and row.copy:
            tail = [f"{row.copies.median:.2f}", f"{100 / row.copies.median:.0f} %"]
        else:
            tail = ["-", "-"]
        tail.append(f"{row.streams.median:.2f}" if row.streams else "-")
        lines: list[str] = [] if row.peers else [self._line(row.case, [*own, "-", "-", "-", "-", "-", *tail])]
        for name, peer in row.peers.items():
            middle = [
                f"{name} {peer.note}".rstrip(), duration(peer.times.into), duration(peer.times.fresh),
                quotient(peer.into_ratio), quotient(peer.fresh_ratio),
            ]  # fmt: skip
            if lines:
                lines.append(self._line("", ["", "", "", *middle]))
            else:
                lines.append(self._line(row.case, [*own, *middle, *tail]))
        return lines + [self.note("", f"{row.dtype}: {name}: {why}") for name, why in row.left_out.items()]

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""
        return f"{title:<{self._first}}  {text}"

    def _line(self, first: str, cells: list[str]) -> str:
        text = f"{first:<{self._first}}"
        for i, ((_, width), cell) in enumerate(zip(self._COLUMNS, cells, strict=False)):
            text += f"  {cell:<{width}}" if i in (0, 3) else f"  {cell:>{width}}"
        return text.rstrip()


def duration(spread: Spread | None) -> str:
    """Write the median of a time."""
    if spread is None:
        return "-"
    value = spread.median
    if value < 1e3:
        return f"{value:.0f} ns"
    unit, size = ("us", 1e3) if value < 1e6 else ("ms", 1e6)
    return f"{value / size:.{2 if value < 10 * size else 1}f} {unit}"


def quotient(spread: Spread | None) -> str:
    """Write the median and the quartiles of a ratio."""
    if spread is None:
        return "-"
    digits = 2 if spread.median < 10 else 1 if spread.median < 100 else 0
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}-{spread.high:.{digits}f})"
