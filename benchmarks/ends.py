"""``python -m benchmarks.ends``: what it costs that no memory lies behind an array.

A prefetch reads nothing, so that it may name memory that does not exist; but then the processor looks for the page each
time, which takes 50 times as long as a hit. Where an array ends is chance, and so would be the time of a kernel that
fetches behind it.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from . import command, variations
from .cases import bytes_moved
from .check import Array
from .operators import OPERATORS
from .problem import REAL, Case, Contestant, Problem, channels_last

# Larger calls do not notice the last rows.
_MOST = 8 << 20
# More than any kernel would fetch ahead of those.
_BEHIND = 8 << 20
_NO_ACCESS = 0  # PROT_NONE
_LEGEND = """\
memory         lies behind each array
none           does: the pages behind it cannot be accessed
ratio          the time / that with memory, median over the rounds (first to third quartile)"""


def placed(array: Array, *, memory: bool) -> Array:
    """Give a copy that ends where its pages do, but for less than a line, with or without memory behind it."""
    last = not array.flags.c_contiguous
    dense = np.ascontiguousarray(np.moveaxis(array, 1, -1) if last else array)
    size = -(-dense.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size + _BEHIND)
    if memory:
        np.frombuffer(pages, np.uint8)[:] = 1
    else:
        libc = ctypes.CDLL(None, use_errno=True)
        behind = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + size
        if libc.mprotect(ctypes.c_void_p(behind), ctypes.c_size_t(_BEHIND), _NO_ACCESS) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    first = (size - dense.nbytes) // 64 * 64
    copy = np.frombuffer(pages, np.uint8, dense.nbytes, first).view(dense.dtype).reshape(dense.shape)
    copy[...] = dense
    return np.moveaxis(copy, -1, 1) if last else copy


def variants(problem: Problem, *, last: bool = False) -> dict[str, Contestant]:
    """Give our call with memory behind all arrays, and with none; the first input may have its channels last."""
    operator = OPERATORS[problem.case.operator]
    name, outs = operator.arrays[0], operator.outs(problem)
    inputs = {key: array for key, array in problem.inputs.items() if isinstance(array, np.ndarray)}
    if last:
        inputs[name] = channels_last(inputs[name])
    return {
        title: operator.ours(
            replace(problem, inputs={key: placed(array, memory=memory) for key, array in inputs.items()}),
            tuple(placed(out, memory=memory) for out in outs),
        )
        for title, memory in (("memory", True), ("none", False))
    }


def cases() -> list[Case]:
    """Give every operator's small cases, those of its tables, and of its families up to a MiB, all contiguous."""
    found = [
        case
        for operator in OPERATORS.values()
        for case in (
            *operator.small(),
            *operator.more_rows(),
            *(family.case(step, "float32") for family in operator.families().values() for step in range(6)),
        )
    ]
    return [case for case in found if not {"input", "output"} & {*case.attributes}]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; 0, or 1 if a result was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ends",
        description="Time each operator on arrays with memory behind them and on arrays without, in turn.",
        epilog="float32 and float16 without --dtype. The ratios should be 1.",
    )
    parser.add_argument("--last", action="store_true", help="the first input has its channels last")
    return variations.main(parser, argv, _study, dtypes=REAL)


def _study(options: argparse.Namespace) -> variations.Study:
    selected = [(case, dtype) for case in cases() for dtype in options.dtype or ("float32", "float16")]
    return variations.Study(
        cases=selected,
        names=("memory", "none"),
        variants=lambda problem: variants(problem, last=options.last),
        legend=_LEGEND,
        keep=lambda case, dtype: bytes_moved(case, dtype) <= _MOST,
    )


if __name__ == "__main__":
    command.end(main)
