"""``python -m benchmarks.threads``: how much longer one thread takes where memory is the limit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import aclnn_bw

from . import command, variations
from .cases import CASES, bytes_moved
from .machine import caches
from .operators import OPERATORS
from .problem import DTYPES, Contestant, Form, Problem

# Where the system does not tell.
_USUAL_CACHE = 32 << 20
_LEGEND = """\
The cases of `python -m benchmarks` that move more bytes than the last-level cache holds, {cache} MiB: phase 2 of
executors made for so many threads, writing into preallocated memory.
ratio  one thread's time / that of all, median over the rounds (first to third quartile)"""


def name_of(threads: int) -> str:
    """Name the contestant."""
    return f"{threads} thread{'s' * (threads != 1)}"


def variants(problem: Problem, counts: Sequence[int]) -> dict[str, Contestant]:
    """Give phase 2 of an executor for each number of threads: phase 1 has fixed it."""
    operator = OPERATORS[problem.case.operator]
    outs = operator.outs(problem)
    second_phase = replace(problem, case=replace(problem.case, form=Form.PHASE_2))
    contestants: dict[str, Contestant] = {}
    for count in counts:
        with aclnn_bw.num_threads(count):
            contestants[name_of(count)] = operator.ours(second_phase, outs)
    return contestants


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; 0, or 1 if a result was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.threads",
        description="Time one thread and several in turn, on the cases that are larger than the last-level cache.",
    )
    return variations.main(parser, argv, _study, dtypes=tuple(DTYPES))


def _study(options: argparse.Namespace) -> variations.Study:
    if options.threads == 1:
        raise ValueError("--threads 1: must be several, one thread is what they are compared with")
    cache = max(caches().values(), default=_USUAL_CACHE)
    counts = (options.threads, 1)
    return variations.Study(
        cases=[(case, dtype) for case in CASES if case.form is Form.CALL for dtype in case.dtypes],
        keep=lambda case, dtype: bytes_moved(case, dtype) > cache,
        names=[name_of(count) for count in counts],
        variants=lambda problem: variants(problem, counts),
        legend=_LEGEND.format(cache=cache >> 20),
    )


if __name__ == "__main__":
    command.end(main)
