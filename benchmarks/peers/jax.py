"""JAX, jitted. The gradients of pooling that it derives itself take up to 60 times as long as the sums written here.

Pooling and im2col are sums of shifted slices: lax.pad places the piece of each kernel position in the image and crops
what lies outside. Their forwards are sums, maxima or columns of strided slices of the padded image. Its arrays are
immutable: there is no memory to give it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

import numpy as np

from ..check import Array
from ..operators import OPERATORS
from ..operators.avg_pool2d import divisors
from ..problem import Contestant, Problem
from ..windows import count
from .base import Peer, attributes, own_threads, require, starting
from .formulas import (
    Shift,
    fold_borders,
    pad_sides,
    require_plain_average,
    shifts,
    tiles,
    upsample_factor,
    upsample_gather,
    upsample_sources,
)  # fmt: skip

# XLA takes seconds to compile what has hundreds of pieces.
_LARGEST = 7


class Jax(Peer):
    """All operators in every dtype; of kernels beyond 7x7 those alone whose windows lie edge to edge."""

    name = "jax"

    def __init__(self, threads: int) -> None:
        # XLA sizes its pool when the first array is made, by this variable.
        with starting(NPROC=str(threads), JAX_PLATFORMS="cpu"):
            self._jax: Any = import_module("jax")
            self._np: Any = import_module("jax.numpy")
            self._jax.config.update("jax_enable_x64", True)
            self._np.zeros(1).block_until_ready()
        self.version = self._jax.__version__
        if own_threads("tf_XLAEigen") not in (threads, None):
            raise RuntimeError(f"XLA has {own_threads('tf_XLAEigen')} threads instead of {threads}")

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        scale, k = problem.dtype.type(require_plain_average(problem)), attributes(problem)["kernel_size"]
        if tiles(problem):
            return self._jitted(problem, lambda grad: self._repeated(grad * scale, k))
        pieces = _pieces(problem)
        return self._jitted(problem, lambda grad: self._sum(problem, [(grad * scale, piece) for piece in pieces]))

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        """The recorded index decides which of the shifted pieces has the gradient."""
        pieces, zero = _pieces(problem), problem.dtype.type(0)

        def gradient(grad: Any, indices: Any) -> Any:
            chosen = [(self._np.where(indices == piece.places, grad, zero), piece) for piece in pieces]
            return self._sum(problem, chosen)

        return self._jitted(problem, gradient, problem.inputs["indices"].astype(np.int32))

    def max_pool2d_with_indices_backward(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_mask_backward(problem)

    def avg_pool2d(self, problem: Problem) -> Contestant:
        h, w = problem.case.shape[2:]
        divided, seen = divisors(h, w, attributes(problem)).astype(problem.dtype), self._slices(problem, 0)
        return self._jitted(problem, lambda x: reduce(add, seen(x)) / divided)

    def max_pool2d_with_indices(self, problem: Problem) -> Contestant:
        """The first of the largest, and the place that it came from."""
        seen, places = self._slices(problem, -np.inf), [piece.places for piece in _pieces(problem)]

        def pool(x: Any) -> Any:
            first, *others = seen(x)
            largest, indices = first, self._np.broadcast_to(places[0], first.shape)
            for part, place in zip(others, places[1:], strict=True):
                larger = part > largest
                largest, indices = self._np.where(larger, part, largest), self._np.where(larger, place, indices)
            return largest, indices

        return self._jitted(problem, pool)

    def max_pool2d_with_mask(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_indices(problem)

    def im2col(self, problem: Problem) -> Contestant:
        seen, (n, c, _, _) = self._slices(problem, 0), problem.case.shape
        k = attributes(problem)["kernel_size"]
        return self._jitted(problem, lambda x: self._np.stack(seen(x), 2).reshape(n, c * k * k, -1))

    def upsample_nearest_exact1d(self, problem: Problem) -> Contestant:
        sources, factor = upsample_sources(problem).astype(np.int32), upsample_factor(problem)
        if factor:
            return self._jitted(problem, lambda x: self._np.repeat(x, factor, 2))
        return self._jitted(problem, lambda x: self._np.take(x, sources, axis=2, mode="clip"))

    def replication_pad2d(self, problem: Problem) -> Contestant:
        left, right, top, bottom = pad_sides(problem)
        require(min(left, right, top, bottom) >= 0)
        around = ((0, 0), (0, 0), (top, bottom), (left, right))
        return self._jitted(problem, lambda x: self._np.pad(x, around, mode="edge"))

    def im2col_backward(self, problem: Problem) -> Contestant:
        pieces, k = _pieces(problem), attributes(problem)["kernel_size"]

        def fold(grad: Any) -> Any:
            n, c, h, w = problem.case.shape
            if tiles(problem):
                columns = grad.reshape(n, c, k, k, h // k, w // k)
                return columns.transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h, w)
            columns = grad.reshape(n, c, k, k, *pieces[0].places.shape)
            return self._sum(problem, [(piece.part(columns), piece) for piece in pieces])

        return self._jitted(problem, fold)

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        tables, zero = upsample_gather(problem), problem.dtype.type(0)

        def gather(grad: Any) -> Any:
            taken = [(self._np.take(grad, which, axis=2, mode="clip"), there) for which, there in tables]
            return reduce(add, [part if there.all() else self._np.where(there, part, zero) for part, there in taken])

        return self._jitted(problem, gather)

    def replication_pad2d_backward(self, problem: Problem) -> Contestant:
        fold = fold_borders(problem)

        def gradient(grad: Any) -> Any:
            return fold(grad, lambda part, axis: part.sum(axis, keepdims=True, dtype=grad.dtype), self._np.concatenate)

        return self._jitted(problem, gradient)

    def _slices(self, problem: Problem, border: float) -> Callable[[Any], list[Any]]:
        """Give what sees, of each kernel position in row-major order, the element of each window."""
        a, sizes, zero = attributes(problem), problem.case.shape[2:], problem.dtype.type(border)
        k, s, p, d = a["kernel_size"], a["stride"], a["padding"], a.get("dilation", 1)
        require(k <= _LARGEST)
        counts = [count(size, a) for size in sizes]
        ends = [(windows - 1) * s + (k - 1) * d + 1 - size - p for size, windows in zip(sizes, counts, strict=True)]

        def slices(x: Any) -> list[Any]:
            # Whatever no window sees is cut off.
            padded = self._jax.lax.pad(x, zero, [(0, 0, 0), (0, 0, 0), *((p, end, 0) for end in ends)])
            starts = [position * d for position in range(k)]
            seen = (padded[:, :, row::s, column::s] for row in starts for column in starts)
            return [part[:, :, : counts[0], : counts[1]] for part in seen]

        return slices

    def _sum(self, problem: Problem, pieces: list[tuple[Any, Shift]]) -> Any:
        between = attributes(problem)["stride"] - 1
        zero = problem.dtype.type(0)
        placed = (
            self._jax.lax.pad(part, zero, [(0, 0, 0), (0, 0, 0), (*shift.rows, between), (*shift.columns, between)])
            for part, shift in pieces
        )
        return reduce(add, placed)

    def _repeated(self, grad: Any, k: int) -> Any:
        n, c, h, w = grad.shape
        return self._np.broadcast_to(grad[:, :, :, None, :, None], (n, c, h, k, w, k)).reshape(n, c, h * k, w * k)

    def _jitted(self, problem: Problem, formula: Callable[..., Any], *more: Array) -> Contestant:
        first = OPERATORS[problem.case.operator].arrays[0]
        arrays = [self._np.asarray(array) for array in (problem.inputs[first], *more)]
        parameters = ", ".join(f"array{i}" for i in range(len(arrays)))
        names = {"formula": self._jax.jit(formula), "wait": self._jax.block_until_ready}
        names |= {f"array{i}": array for i, array in enumerate(arrays)}

        def result(array: Any) -> Array:
            plain = np.asarray(array)
            return plain.astype(np.int64) if plain.dtype.kind == "i" else plain

        return self.returning(f"wait(formula({parameters}))", names, result)


def _pieces(problem: Problem) -> list[Shift]:
    require(attributes(problem)["kernel_size"] <= _LARGEST or tiles(problem))
    return list(shifts(problem))
