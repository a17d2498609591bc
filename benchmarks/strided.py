"""``python -m benchmarks.strided``: what the layout of the input, or of all tensors, costs, all else being equal."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from . import command, variations
from .check import Array
from .operators import OPERATORS
from .problem import DTYPES, REAL, Case, Contestant, Problem, channels_last

# Batches of float32: some MiB, which the last-level cache of a server holds several times, and more than 64 MiB.
_BATCHES = (2, 20)
# Those of other dtypes are chosen so that the bytes are the same.
_USUAL = ("float32", "float16")
_LEGEND = """\
contiguous     row-major, no gaps
padded rows    inner stride 1: each row (im2col: the axis L) is one element from each end of a longer one
channels last  stride 1 along axis 1, as if the last axes had been moved there: NHWC memory behind an NCHW view
all last       so are all other inputs and outputs but masks
ratio          the time / that of contiguous, median over the rounds (first to third quartile)
But for "all last" the outputs are contiguous; the values are the same, and so are the results, bit for bit."""


def padded_rows(array: Array) -> Array:
    """Give the same values with two elements of something else between the rows."""
    *outer, length = array.shape
    memory = np.full((*outer, length + 2), np.nan, array.dtype)
    view = memory[..., 1:-1]
    view[...] = array
    return view


ALL_LAST = "all last"
LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": lambda array: array,
    "padded rows": padded_rows,
    "channels last": channels_last,
}


def cases(dtype: str) -> list[Case]:
    """Give each operator's case within the cache and beyond it."""
    return [
        Case(name, (batch * 4 // DTYPES[dtype].itemsize, *image), attributes, dtypes=(dtype,))
        for name, operator in OPERATORS.items()
        for image, attributes in operator.images()
        for batch in _BATCHES
    ]


def _last(array: Array) -> Array:
    """Give a tensor with channels last; a mask is a container of bytes, which has no channels."""
    return array if array.dtype == np.int8 else channels_last(array)


def variants(problem: Problem) -> dict[str, Contestant]:
    """Give our call on each layout of its first input, the others as they are, and with channels last throughout."""
    operator = OPERATORS[problem.case.operator]
    name, outs = operator.arrays[0], operator.outs(problem)
    contestants = {
        layout: operator.ours(replace(problem, inputs={**problem.inputs, name: lay(problem.inputs[name])}), outs)
        for layout, lay in LAYOUTS.items()
    }
    last = replace(problem, inputs={key: _last(array) for key, array in problem.inputs.items()})
    return {**contestants, ALL_LAST: operator.ours(last, tuple(_last(out) for out in operator.outs(problem)))}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; 0, or 1 if a result was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strided",
        description="Time each operator on contiguous input, on rows with gaps and on channels-last memory, and on "
        "channels-last memory throughout, in turn.",
        epilog=f"float32 and float16 without --dtype. {_LEGEND.splitlines()[-1]}",
    )
    return variations.main(parser, argv, _study, dtypes=REAL)


def _study(options: argparse.Namespace) -> variations.Study:
    selected = [(case, dtype) for dtype in options.dtype or _USUAL for case in cases(dtype)]
    selected.sort(key=lambda item: list(OPERATORS).index(item[0].operator))
    return variations.Study(cases=selected, names=(*LAYOUTS, ALL_LAST), variants=variants, legend=_LEGEND)


if __name__ == "__main__":
    command.end(main)
