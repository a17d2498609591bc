"""One call under several circumstances, timed in turn: what ``strided`` and ``threads`` have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from . import command
from .cases import posed, rules
from .check import Array, WrongResult
from .machine import environment, summary
from .problem import Case, Contestant, Problem, check_contestant, sums_in
from .report import duration, quotient
from .timing import Spread, measure, ratio

# A larger batch repeats so many images.
_IMAGES = 4
# The contestants of a problem by name, all writing to the same memory. The first is what the others are compared with.
Variants = Callable[[Problem], Mapping[str, Contestant]]


@dataclass(frozen=True)
class Row:
    """The figures of one case in one dtype."""

    operator: str
    case: str
    dtype: str
    nbytes: int
    rounds: int
    times: Mapping[str, Spread]  # nanoseconds a run
    ratios: Mapping[str, Spread]  # to the first, round by round


def run(case: Case, dtype: str, variants: Variants, *, budget: float) -> Row:
    """Check and then time one case; WrongResult if the first is wrong or another one's bits differ from its own."""
    with rules(case):
        problem, references = posed(case, dtype, images=_IMAGES)
        contestants = variants(problem)
        first, *others = contestants
        check_contestant(contestants[first], problem, references, accumulated_in=sums_in(problem.dtype))
        del references
        expected = tuple(out.copy() for out in contestants[first].outs)
        for name in others:
            _check_bits(contestants[name], expected, f"{name}, {problem.name}")
        del expected
        statements = {name: contestant.into for name, contestant in contestants.items() if contestant.into}
        samples = measure(statements, budget=budget, nbytes=problem.nbytes)
    return Row(
        operator=case.operator,
        case=case.title,
        dtype=dtype,
        nbytes=problem.nbytes,
        rounds=len(samples[first]),
        times={name: Spread.of(times) for name, times in samples.items()},
        ratios={name: ratio(samples[name], samples[first]) for name in others},
    )


def _check_bits(contestant: Contestant, expected: tuple[Array, ...], who: str) -> None:
    for out in contestant.outs:
        out.fill(-1 if out.dtype.kind == "i" else np.nan)
    assert contestant.into
    contestant.into.run()
    for out, right in zip(contestant.outs, expected, strict=True):
        if not np.array_equal(np.ascontiguousarray(out).view(np.uint8), np.ascontiguousarray(right).view(np.uint8)):
            raise WrongResult(f"{who}: other bits than the first")


class Table:
    """A line a row, with two columns for each variant but the first."""

    _COLUMNS = (("dtype", 10), ("MiB", 5))
    _TIME, _RATIO = 8, 17

    def __init__(self, titles: Sequence[str], names: Sequence[str]) -> None:
        self._first = max(len("case"), *map(len, titles))
        self._names = names

    def heading(self) -> str:
        first, *others = self._names
        cells = [*(name for name, _ in self._COLUMNS), first]
        for name in others:
            cells += [name, "ratio"]
        line = self._line("case", cells)
        return f"{line}\n{'-' * len(line)}"

    def lines(self, row: Row) -> list[str]:
        cells = [row.dtype, f"{row.nbytes / (1 << 20):.{1 if row.nbytes < 10 << 20 else 0}f}"]
        for name, time in row.times.items():
            cells.append(duration(time))
            if name in row.ratios:
                cells.append(quotient(row.ratios[name]))
        return [self._line(row.case, cells)]

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""
        return f"{title:<{self._first}}  {text}"

    def _line(self, first: str, cells: list[str]) -> str:
        widths = [width for _, width in self._COLUMNS]
        for number, name in enumerate(self._names):
            widths += [max(self._TIME, len(name)), *[self._RATIO] * (number > 0)]
        text = f"{first:<{self._first}}"
        for i, (width, cell) in enumerate(zip(widths, cells, strict=True)):
            text += f"  {cell:<{width}}" if i == 0 else f"  {cell:>{width}}"
        return text.rstrip()


@dataclass(frozen=True)
class Study:
    """What a program compares, once its options are known."""

    cases: Sequence[command.Selected]
    names: Sequence[str]
    variants: Variants
    legend: str
    keep: Callable[[Case, str], bool] = lambda case, dtype: True  # asked of those that the options select


def main(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    study: Callable[[argparse.Namespace], Study],
    *,
    dtypes: Sequence[str],
) -> int:
    """Run such a program; 0, or 1 if a result was wrong. A ValueError of the study is a bad argument."""
    command.add_selection(parser, dtypes)
    command.add_measuring(parser, seconds=1.0, quick=0.05)
    options = parser.parse_args(argv)
    try:
        what = study(options)
    except ValueError as error:
        parser.error(str(error))
    selected = command.select(parser, options, what.cases, what.keep)
    if options.list:
        return command.show(selected)
    with command.started(parser, options) as write:
        surroundings = environment([], options.threads)
        print(f"{summary(surroundings)}\n{what.legend}\n")
        _, wrong = command.fill(
            Table([case.title for case, _ in selected], what.names),
            selected,
            lambda case, dtype: run(case, dtype, what.variants, budget=options.seconds),
            lambda rows, wrong: write(
                {"environment": surroundings, "rows": [asdict(row) for row in rows], "wrong": wrong}
            ),
            progress=options.progress,
        )
    return 1 if wrong else 0
