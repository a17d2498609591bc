"""``python -m benchmarks.results``: our own times on each instruction set, kept in one file for each CPU."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import aclnn_bw

from . import command, variations
from .against import IMAGES, SETTLE, Contender, Lost, Timed, Worker, digest_of, started, take_turns
from .cases import CASES, posed, rules
from .check import WrongResult
from .machine import busy, environment, summary
from .operators import OPERATORS
from .problem import DTYPES, Case, Form, check_contestant, sums_in
from .report import COPIES_FROM, duration
from .timing import Spread, plain_copy, ratio

_FOLDER = Path(__file__).with_suffix("")
_QUICK = 0.02
_LEGEND = """\
v2, v3, v4  time of a run into memory the caller gave, median over the rounds, in which a process for each takes turns
A / B       A's time / B's, median over the rounds: below 1, A is faster
A copies    A's time / that of a plain single-thread copy of as many bytes, where they are enough to measure it
MiB         what must be read and written
All write the same bytes, those that the formula gives, or a case is not timed."""


@dataclass(frozen=True)
class Row(variations.Row):
    """The figures of one case in one dtype, by instruction set."""

    copies: Mapping[str, Spread]  # to the plain copy, round by round; empty where calls are measured


class _Copy(Timed):
    """The yardstick, in this process; asked as a worker is."""

    name = "copy"

    def __init__(self, nbytes: int, threads: int) -> None:
        super().__init__(threads)
        self.nbytes = nbytes

    def ask(self, what: str, *arguments: Any) -> Any:
        return getattr(self, what)(*arguments)

    def move(self) -> None:
        self.set_statement(plain_copy(self.nbytes))


def digest(case: Case, dtype: str) -> str:
    """Run a case here; a hash of what it gives, which is the formula's, else WrongResult."""
    with rules(case):
        problem, references = posed(case, dtype, images=IMAGES)
        ours = OPERATORS[case.operator].ours(problem)
        check_contestant(ours, problem, references, accumulated_in=sums_in(problem.dtype))
        return digest_of(ours.outs)


def run(case: Case, dtype: str, workers: Sequence[Worker], *, budget: float, threads: int) -> Row:
    """Compare the results and then time one case; WrongResult if one is wrong."""
    expected = digest(case, dtype)
    nbytes = 0
    for worker in workers:
        seen, nbytes = worker.ask("pose", case, dtype)
        if seen != expected:
            raise WrongResult(f"{case.operator} {case.title} {dtype}: the result on {worker.name} has other bytes")
    contenders: list[Contender] = [*workers]
    if case.form is Form.CALL and nbytes >= COPIES_FROM:
        contenders.append(_Copy(nbytes, threads))
    samples: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    take_turns(contenders, samples, budget=budget, settle=SETTLE if threads > 1 else 0.0)
    copy = samples.pop("copy", None)
    first, *others = samples
    return Row(
        operator=case.operator,
        case=case.title,
        dtype=dtype,
        nbytes=nbytes,
        rounds=len(samples[first]),
        times={name: Spread.of(times) for name, times in samples.items()},
        ratios={name: ratio(samples[name], samples[first]) for name in others},
        copies={name: ratio(times, copy) for name, times in samples.items()} if copy else {},
    )


class Table:
    """A line a row: aligned for the terminal, or of a table in Markdown."""

    def __init__(self, titles: Sequence[str], names: Sequence[str]) -> None:
        first, *others = names
        self._columns = [
            "case", "dtype", "MiB", *names, *(f"{name} / {first}" for name in others),
            *(f"{name} copies" for name in names),
        ]  # fmt: skip
        self._first = max(len("case"), *map(len, titles))

    def heading(self) -> str:
        line = self._line(self._columns)
        return f"{line}\n{'-' * len(line)}"

    def lines(self, row: Row) -> list[str]:
        return [self._line(self.cells(row))]

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""
        return f"{title:<{self._first}}  {text}"

    def cells(self, row: Row) -> list[str]:
        """Give the row's figures, each in its column."""
        copies = [f"{row.copies[name].median:.2f}" if row.copies else "-" for name in row.times]
        return [
            row.case, row.dtype, f"{row.nbytes / (1 << 20):.{1 if row.nbytes < 10 << 20 else 0}f}",
            *map(duration, row.times.values()), *(f"{spread.median:.2f}" for spread in row.ratios.values()), *copies,
        ]  # fmt: skip

    def markdown(self, rows: Sequence[Row]) -> str:
        """Write the table of one operator. No cell is padded: a line differs only where its own figures do."""
        lines = [self._columns, ["---"] * 2 + ["---:"] * (len(self._columns) - 2), *map(self.cells, rows)]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def _line(self, cells: Sequence[str]) -> str:
        text = f"{cells[0]:<{self._first}}  {cells[1]:<10}"
        for column, cell in zip(self._columns[2:], cells[2:], strict=True):
            text += f"  {cell:>{max(8, len(column))}}"
        return text


def slug(cpu: str) -> str:
    """Make the file's name of the processor's."""
    plain = re.sub(r"\((r|tm)\)|@.*?hz", " ", cpu.lower())
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def document(surroundings: Mapping[str, Any], rows: Sequence[Row], names: Sequence[str], seconds: float) -> str:
    """Write the file: the machine, and a table for each operator in the order of the cases."""
    env = surroundings
    load = "" if env["load"] is None else f", load average {env['load']:.2f} at the start"
    caches = ", ".join(f"{level} {size >> 10} KiB" for level, size in env["caches"].items())
    facts = [
        f"{env['date']}, aclnn_bw {env['aclnn_bw']}, {'OpenMP' if env['openmp'] else 'serial build'}, "
        f"compiled by {env['compiler']}",
        f"{env['threads']} thread{'s' * (env['threads'] != 1)}, {seconds:g} s a case; {env['cores']} cores available"
        f"{load}",
        *busy(env).splitlines(),
        *([f"caches of data: {caches}"] if caches else []),
        f"Python {env['python']}, NumPy {env['numpy']}, ml_dtypes {env['ml_dtypes']}; {env['system']}",
    ]
    table = Table([""], names)
    tables = [
        f"## {operator}\n\n{table.markdown(own)}"
        for operator in OPERATORS
        if (own := [row for row in rows if row.operator == operator])
    ]
    head = f"# {surroundings['cpu']}\n\nWritten by `python -m benchmarks.results`, by nobody else.\n"
    listed = "\n".join(f"- {fact}" for fact in facts)
    return "\n".join([head, listed, f"\n```text\n{_LEGEND}\n```\n", "\n\n".join(tables), ""])


def main(argv: Sequence[str] | None = None) -> int:
    """Run all; 0, or 1 if a result was wrong or a case was not timed: then no file is written."""
    parser = _parser()
    options = parser.parse_args(argv)
    selected = command.select(parser, options, ((case, dtype) for case in CASES for dtype in case.dtypes))
    if options.list:
        return command.show(selected)
    surroundings = {**environment([], options.threads), "date": date.today().isoformat()}
    file = _file(options, surroundings["cpu"])
    names = aclnn_bw.show_config(mode="dict")["isa_available"]
    with command.started(parser, options) as write, ExitStack() as stack:
        workers = _workers(parser, stack, names, options.threads)
        print(f"{summary({**surroundings, 'isa': ' '.join(names)})}{_LEGEND}\n")
        skipped: list[str] = []

        def measured(case: Case, dtype: str) -> Row:
            try:
                return run(case, dtype, workers, budget=options.seconds, threads=options.threads)
            except command.Skipped:
                skipped.append(case.title)
                raise

        try:
            rows, wrong = command.fill(
                Table([case.title for case, _ in selected], names),
                selected,
                measured,
                lambda rows, wrong: write(
                    {"environment": surroundings, "rows": [asdict(row) for row in rows], "wrong": wrong}
                ),
                progress=options.progress,
            )
        except Lost as error:
            print(error, file=sys.stderr)
            return 1
    if wrong or skipped:
        return 1
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document(surroundings, rows, names, options.seconds), encoding="utf-8")
        print(f"\n{file}")
    return 0


def _workers(parser: argparse.ArgumentParser, stack: ExitStack, names: Sequence[str], threads: int) -> list[Worker]:
    """Start a process for each instruction set."""
    try:
        workers = [started(stack, name, sys.executable, None if name == "baseline" else name) for name in names]
        for worker in workers:
            found = worker.ask("start", threads)["isa"]
            if found != worker.name:
                parser.error(f"the process of {worker.name} uses {found}")
    except Lost as error:
        parser.error(str(error))
    return workers


def _file(options: argparse.Namespace, cpu: str) -> Path | None:
    """Tell where the file is; none for a part or a look that has no name of its own."""
    if options.output:
        return Path(options.output)
    if options.operator or options.case or options.dtype or options.threads != 1 or options.seconds == _QUICK:
        return None
    return _FOLDER / f"{slug(cpu)}.md"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.results",
        description="Time our functions alone on every instruction set that this machine has, in turn.",
        epilog="A run of all cases by one thread is written to benchmarks/results/CPU.md, which it replaces; "
        "any other run only where --output says.",
    )
    command.add_selection(parser, tuple(DTYPES))
    command.add_measuring(parser, seconds=1.0, quick=_QUICK, threads=1)
    parser.add_argument("--output", metavar="FILE", help="write the tables, in Markdown, to FILE")
    return parser


if __name__ == "__main__":
    command.end(main)
