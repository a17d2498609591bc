"""JAX, jitted. The gradients of pooling that it derives itself take up to 60 times as long as the sums written here.

Pooling and im2col are sums of shifted slices: lax.pad places the piece of each kernel position in the image and crops
what lies outside. Its arrays are immutable: there is no memory to give it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

import numpy as np

from ..check import Array
from ..problem import Contestant, Problem
from .base import Peer, attributes, own_threads, starting
from .formulas import Shift, fold_borders, require_plain_average, shifts, tiles, upsample_gather


class Jax(Peer):
    """The five gradients in every dtype."""

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
        pieces = list(shifts(problem))
        return self._jitted(problem, lambda grad: self._sum(problem, [(grad * scale, piece) for piece in pieces]))

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        """The recorded index decides which of the shifted pieces has the gradient."""
        pieces, zero = list(shifts(problem)), problem.dtype.type(0)

        def gradient(grad: Any, indices: Any) -> Any:
            chosen = [(self._np.where(indices == piece.places, grad, zero), piece) for piece in pieces]
            return self._sum(problem, chosen)

        return self._jitted(problem, gradient, problem.inputs["indices"].astype(np.int32))

    def im2col_backward(self, problem: Problem) -> Contestant:
        pieces, k = list(shifts(problem)), attributes(problem)["kernel_size"]

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
        arrays = [self._np.asarray(array) for array in (problem.inputs["grad_output"], *more)]
        parameters = ", ".join(f"array{i}" for i in range(len(arrays)))
        names = {"formula": self._jax.jit(formula), **{f"array{i}": array for i, array in enumerate(arrays)}}
        return self.returning(f"formula({parameters}).block_until_ready()", names, np.asarray)
