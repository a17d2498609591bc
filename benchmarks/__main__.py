"""``python -m benchmarks``: check and time every case, ours beside the installed peers."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import aclnn_bw

from . import report
from .cases import CASES, OPERATORS
from .check import WrongResult
from .peers import Peer, installed
from .problem import DTYPES, Case


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0, or 1 if a result was wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    selected = _select(options)
    if not selected:
        parser.error("no case matches; --list shows them all")
    if options.list:
        for case, dtype in selected:
            print(f"{case.operator}  {case.title}  {dtype}")
        return 0
    with ExitStack() as stack:
        try:
            # Opened before the work, which may take minutes, so that a bad name is refused at once.
            file = stack.enter_context(open(options.json, "w", encoding="utf-8")) if options.json else None
            stack.callback(aclnn_bw.set_num_threads, aclnn_bw.get_num_threads())
            aclnn_bw.set_num_threads(options.threads)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        peers = [] if options.no_peers else installed()
        for peer in peers:
            peer.set_threads(options.threads)
        environment = report.environment(peers, options.threads)
        rows, wrong = _run(selected, peers, options, report.header(environment))
        if file:
            figures = {"environment": environment, "rows": [row.as_json() for row in rows], "wrong": wrong}
            json.dump(figures, file, indent=1)
            file.write("\n")
    return 1 if wrong else 0


def _run(
    selected: list[tuple[Case, str]], peers: list[Peer], options: argparse.Namespace, header: str
) -> tuple[list[report.Row], list[str]]:
    table = report.Table([case.title for case, _ in selected])
    rows: list[report.Row] = []
    wrong: list[str] = []
    print(header)
    operator = None
    for number, (case, dtype) in enumerate(selected, 1):
        if case.operator != operator:
            operator = case.operator
            print(f"{operator}\n{table.heading()}")
        progress = f"[{number}/{len(selected)}] {case.operator} {case.title} {dtype}"
        if options.progress:
            print(f"\r{progress}\033[K", end="", file=sys.stderr, flush=True)
        try:
            row = report.run(case, dtype, peers, budget=options.seconds)
        except WrongResult as error:
            wrong.append(str(error))
            lines = [table.note(case.title, f"{dtype}: WRONG RESULT, not timed: {error}")]
        else:
            rows.append(row)
            lines = table.lines(row)
        if options.progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print("\n".join(lines), flush=True)
    return rows, wrong


def _select(options: argparse.Namespace) -> list[tuple[Case, str]]:
    return [
        (case, dtype)
        for case in CASES
        for dtype in case.dtypes
        if (not options.operator or case.operator in options.operator)
        and (not options.dtype or dtype in options.dtype)
        and (not options.case or any(text in case.title for text in options.case))
    ]


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be > 0")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Check and time every case, ours beside the installed peers."
    )
    add = parser.add_argument
    add("--operator", action="append", choices=list(OPERATORS), help="only this one; may be repeated")
    add("--case", action="append", metavar="TEXT", help="only cases whose title contains TEXT; may be repeated")
    add("--dtype", action="append", choices=list(DTYPES), help="only this one; may be repeated")
    add("--threads", type=int, default=2, metavar="N", help="for us and for the peers (default 2)")
    add("--seconds", type=_positive, default=2.5, metavar="S", help="time to spend on a case (default 2.5)")
    add("--quick", dest="seconds", action="store_const", const=0.2, help="a look, not a measurement: --seconds 0.2")
    add("--no-peers", action="store_true", help="do not load the frameworks")
    add("--json", metavar="FILE", help="also write the figures, in nanoseconds, to FILE")
    add(
        "--progress", action="store_true", default=sys.stderr.isatty(),
        help="tell on stderr which case runs, even if it is no terminal",
    )  # fmt: skip
    add("--list", action="store_true", help="print the selected cases and stop")
    return parser


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    raise SystemExit(status)
