"""``python -m benchmarks.masks``: masks from and to indices, beside a plain copy of as many bytes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import aclnn_bw

from . import command
from .check import Array, WrongResult
from .machine import environment, summary
from .report import duration
from .timing import Spread, Statement, measure, plain_copy, ratio

_LEGEND = """\
copies  the time / that of a plain single-thread copy of the bytes that are read and written, median over the rounds
A mask is read as far as it says something, and written whole, with its zeros. The result is a new array."""


class Case(NamedTuple):
    """A max pool."""

    shape: tuple[int, ...]
    kernel_size: int
    stride: int
    padding: int

    @property
    def title(self) -> str:
        """Tell which one, as the benchmark of the operators does."""
        return f"{'x'.join(map(str, self.shape))} k{self.kernel_size} s{self.stride} p{self.padding}"


CASES = (
    Case((32, 64, 112, 112), 3, 2, 1),
    Case((8, 64, 224, 224), 2, 2, 0),
    Case((8, 192, 28, 28), 3, 1, 1),
    Case((32, 256, 14, 14), 2, 2, 0),
    Case((8, 64, 28, 28), 9, 1, 4),
)


def statements(case: Case, layout: str) -> dict[str, tuple[Statement, int]]:
    """Give our two calls, whose results have been compared with the forward's, and the bytes that each must move."""
    image = np.random.default_rng(0).standard_normal(case.shape, np.float32)
    attributes = case[1:]
    forward: Any = aclnn_bw.max_pool2d_with_mask
    _, mask = forward(image, *attributes, mask_layout=layout)
    _, indices = aclnn_bw.max_pool2d_with_indices(image, *attributes)
    names: dict[str, Any] = {"geometry": (case.shape, *attributes), "mask": mask, "indices": indices}
    calls = {}
    for name, given, result in (("mask_to_indices", "mask", indices), ("indices_to_mask", "indices", mask)):
        code = f"{name}({given}, *geometry, mask_layout={layout!r})"
        call = Statement(code, {**names, name: getattr(aclnn_bw, name)})
        made: Array = call.run()
        if not np.array_equal(made, result):
            raise WrongResult(f"{name}, {case.title}: is not what the forward makes")
        channels = case.shape[1]
        words = indices.size * 4 if layout == "argmax" else mask.nbytes * -(-channels // 16) // channels
        calls[name] = call, indices.nbytes + (words if given == "mask" else mask.nbytes)
    return calls


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 0, or 1 if a result was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.masks", description="Time mask_to_indices and indices_to_mask, in both layouts.",
        epilog=_LEGEND.splitlines()[0],
    )  # fmt: skip
    command.add_measuring(parser, seconds=1.0, quick=0.05)
    options = parser.parse_args(argv)
    with aclnn_bw.num_threads(options.threads):
        print(summary(environment([], options.threads)), "", _LEGEND, sep="\n")
        print(f"\n{'case':<26}{'layout':<10}{'call':<17}{'MiB':>7}{'time':>10}{'copies':>8}")
        for case in CASES:
            for layout in aclnn_bw.products.MASK_LAYOUTS:
                for name, (call, nbytes) in statements(case, layout).items():
                    samples = measure(
                        {"ours": call, "copy": plain_copy(nbytes)}, budget=options.seconds, nbytes=nbytes
                    )
                    time, copies = Spread.of(samples["ours"]), ratio(samples["ours"], samples["copy"])
                    print(f"{case.title:<26}{layout:<10}{name:<17}{nbytes / 2**20:7.1f}{duration(time):>10}"
                          f"{copies.median:8.2f}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    command.end(main)
