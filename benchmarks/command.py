"""What the commands of this package have in common: their options, the file of the figures, a table line by line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol, TypeVar

import aclnn_bw

from .check import WrongResult
from .operators import OPERATORS
from .peers import KNOWN, Peer, load
from .problem import DTYPES, Case

Selected = tuple[Case, str]  # a case in a dtype
_Row = TypeVar("_Row")
_RowIn = TypeVar("_RowIn", contravariant=True)


def add_selection(parser: argparse.ArgumentParser, dtypes: Sequence[str] = tuple(DTYPES)) -> None:
    """Which cases."""
    add = parser.add_argument
    add("--operator", action="append", choices=list(OPERATORS), help="only this one; may be repeated")
    add("--case", action="append", metavar="TEXT", help="only cases whose title contains TEXT; may be repeated")
    add("--dtype", action="append", choices=list(dtypes), help="only this one; may be repeated")
    add("--list", action="store_true", help="print the selected cases and stop")


def add_measuring(parser: argparse.ArgumentParser, *, seconds: float, quick: float, threads: int = 2) -> None:
    """How they are measured and told."""
    add = parser.add_argument
    add(
        "--threads", type=int, default=threads, metavar="N",
        help=f"for us and for any peer (default {threads})",
    )  # fmt: skip
    add(
        "--seconds", type=positive, default=seconds, metavar="S",
        help=f"time to spend on a case (default {seconds})",
    )  # fmt: skip
    add(
        "--quick", dest="seconds", action="store_const", const=quick,
        help=f"a look, not a measurement: --seconds {quick}",
    )  # fmt: skip
    add("--json", metavar="FILE", help="also write the figures, in nanoseconds, to FILE")
    add(
        "--progress", action="store_true", default=sys.stderr.isatty(),
        help="tell on stderr which case runs, even if it is no terminal",
    )  # fmt: skip


def add_peers(parser: argparse.ArgumentParser) -> None:
    """Beside whom."""
    add = parser.add_argument
    add("--peer", action="append", choices=list(KNOWN), help="beside this one alone; may be repeated")
    add("--no-peers", action="store_true", help="do not load the frameworks")


def load_peers(options: argparse.Namespace) -> list[Peer]:
    """Load the peers that the options want; one that is left out gets a line on stderr that says why."""
    peers, left_out = ([], []) if options.no_peers else load(options.peer or (), options.threads)
    for line in left_out:
        print(line, file=sys.stderr)
    return peers


def positive(text: str) -> float:
    """Read a number > 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be > 0")
    return value


def select(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    cases: Iterable[Selected],
    keep: Callable[[Case, str], bool] = lambda case, dtype: True,
) -> list[Selected]:
    """Give the cases that were asked for and are to be kept, at least one."""
    selected = [
        (case, dtype)
        for case, dtype in cases
        if (not options.operator or case.operator in options.operator)
        and (not options.dtype or dtype in options.dtype)
        and (not options.case or any(text in case.title for text in options.case))
        and keep(case, dtype)
    ]
    if not selected:
        parser.error("no case matches; --list shows them all")
    return selected


def show(selected: Sequence[Selected]) -> int:
    """Print the cases; the exit status."""
    for case, dtype in selected:
        print(f"{case.operator}  {case.title}  {dtype}")
    return 0


@contextmanager
def started(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Set our threads, for so long; give the function that writes the figures if ``--json`` wants them.

    The file is opened before the work, which may take minutes, so that a bad name is refused at once. Each time it is
    written anew.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(options.json, "w", encoding="utf-8")) if options.json else None
            if file and not file.seekable():
                raise OSError(f"{options.json}: must be a file")
            stack.callback(aclnn_bw.set_num_threads, aclnn_bw.get_num_threads())
            aclnn_bw.set_num_threads(options.threads)
        except (OSError, ValueError) as error:
            parser.error(str(error))

        def write(figures: Mapping[str, Any]) -> None:
            if file:
                file.seek(0)
                file.truncate()
                json.dump(figures, file, indent=1)
                file.write("\n")
                file.flush()

        yield write


class Skipped(Exception):
    """A case cannot be measured here; the message says why."""


class Table(Protocol[_RowIn]):
    """Aligned lines."""

    def heading(self) -> str: ...

    def lines(self, row: _RowIn) -> list[str]: ...

    def note(self, title: str, text: str) -> str:
        """A line that has no figures."""


def fill(
    table: Table[_Row],
    selected: Sequence[Selected],
    run: Callable[[Case, str], _Row],
    save: Callable[[Sequence[_Row], Sequence[str]], None],
    *,
    progress: bool,
    grouped: bool = True,
) -> tuple[list[_Row], list[str]]:
    """Run the cases and print each one's lines as they come; the rows, and what was wrong and not timed.

    Both are saved after every case, so that a run which is stopped leaves what it has. ``grouped``: each operator has a
    heading of its own.
    """
    rows: list[_Row] = []
    wrong: list[str] = []
    operator = None
    if not grouped:
        print(table.heading())
    for number, (case, dtype) in enumerate(selected, 1):
        if grouped and case.operator != operator:
            operator = case.operator
            print(f"{operator}\n{table.heading()}")
        if progress:
            text = f"[{number}/{len(selected)}] {case.operator} {case.title} {dtype}"
            print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)
        try:
            row = run(case, dtype)
        except WrongResult as error:
            wrong.append(str(error))
            lines = [table.note(case.title, f"{dtype}: WRONG RESULT, not timed: {error}")]
        except Skipped as error:
            lines = [table.note(case.title, f"{dtype}: skipped: {error}")]
        else:
            rows.append(row)
            lines = table.lines(row)
        if progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print("\n".join(lines), flush=True)
        save(rows, wrong)
    return rows, wrong


def end(main: Callable[[], int]) -> None:
    """Run a program and exit with its status."""
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    raise SystemExit(status)
