"""``python -m benchmarks``: check and time every case, ours beside the installed peers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from . import command, report
from .cases import CASES
from .machine import environment


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0, or 1 if a result was wrong."""
    parser = _parser()
    options = parser.parse_args(argv)
    selected = command.select(parser, options, ((case, dtype) for case in CASES for dtype in case.dtypes))
    if options.list:
        return command.show(selected)
    with command.started(parser, options) as write:
        peers = command.load_peers(options)
        surroundings = environment(peers, options.threads)
        print(report.header(surroundings))
        _, wrong = command.fill(
            report.Table([case.title for case, _ in selected]),
            selected,
            lambda case, dtype: report.run(case, dtype, peers, budget=options.seconds),
            lambda rows, wrong: write(
                {"environment": surroundings, "rows": [row.as_json() for row in rows], "wrong": wrong}
            ),
            progress=options.progress,
        )
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Check and time every case, ours beside the installed peers."
    )
    command.add_selection(parser)
    command.add_measuring(parser, seconds=2.5, quick=0.2)
    command.add_peers(parser)
    return parser


if __name__ == "__main__":
    command.end(main)
