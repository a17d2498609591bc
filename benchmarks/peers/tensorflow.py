"""TensorFlow in graph functions. Its average pooling is its own kernel's backward, on NCHW memory where it takes that.

Its max pooling has no explicit padding with recorded indices, and its backward is offered in NHWC alone: the data are
laid out so, and only windows that its padding "SAME" or "VALID" gives too are offered. It has no backward of the other
three, so they are written in slices and sums and compiled by XLA. Results always lie in fresh memory.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..check import Array
from ..problem import Contestant, Problem
from .base import Peer, attributes, require, starting
from .formulas import fold_borders, require_plain_average, shifts, tiles, upsample_gather


class TensorFlow(Peer):
    """The five gradients; complex numbers in the padding alone."""

    name = "tensorflow"

    def __init__(self, threads: int) -> None:
        with starting(TF_CPP_MIN_LOG_LEVEL="3"):
            self._tf: Any = import_module("tensorflow")
            threading = self._tf.config.threading
            if threading.get_intra_op_parallelism_threads() != threads:  # fixed by the first operation
                threading.set_intra_op_parallelism_threads(threads)
                threading.set_inter_op_parallelism_threads(1)
            self._tf.function(lambda: self._tf.zeros(1), jit_compile=True)()
        self.version = self._tf.__version__

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        require_plain_average(problem)
        a, (n, c, h, w) = attributes(problem), problem.case.shape
        require(not a["divisor_override"])
        k, s, p = a["kernel_size"], a["stride"], a["padding"]

        channels_last = problem.dtype.name not in ("float32", "bfloat16")

        def order(batch: int, channels: int, *image: int) -> list[int]:
            return [batch, *image, channels] if channels_last else [batch, channels, *image]

        def gradient(grad: Any) -> Any:
            # Its own padding is never counted: the windows of a padded image, whose margin is cut off again.
            padded = self._tf.raw_ops.AvgPoolGrad(
                orig_input_shape=order(n, c, h + 2 * p, w + 2 * p), grad=grad, ksize=order(1, 1, k, k),
                strides=order(1, 1, s, s), padding="VALID", data_format="NHWC" if channels_last else "NCHW",
            )  # fmt: skip
            return self._tf.slice(padded, order(0, 0, p, p), order(n, c, h, w)) if p else padded

        return self._graph(problem, gradient, channels_last=channels_last)

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        a, (_, c, h, w) = attributes(problem), problem.case.shape
        k, s, p = a["kernel_size"], a["stride"], a["padding"]
        windows = problem.inputs["grad_output"].shape[2:]
        padding = "SAME" if p else "VALID"
        # What is scattered where is up to the indices: it is enough that there are as many windows.
        require(windows == tuple(-(-size // s) if p else (size - k) // s + 1 for size in (h, w)))
        places = problem.inputs["indices"] * c + np.arange(c)[:, None, None]

        def gradient(grad: Any, x: Any, argmax: Any) -> Any:
            return self._tf.raw_ops.MaxPoolGradWithArgmax(
                input=x, grad=grad, argmax=argmax, ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=padding
            )

        return self._graph(problem, gradient, problem.inputs["x"], places, channels_last=True)

    def im2col_backward(self, problem: Problem) -> Contestant:
        a, (n, c, h, w) = attributes(problem), problem.case.shape
        k, pieces = a["kernel_size"], list(shifts(problem))
        if tiles(problem):

            def fold(grad: Any) -> Any:
                columns = self._tf.reshape(grad, (n, c, k, k, h // k, w // k))
                return self._tf.reshape(self._tf.transpose(columns, (0, 1, 4, 2, 5, 3)), (n, c, h, w))
        else:
            require(a["stride"] == 1)

            def fold(grad: Any) -> Any:
                columns = self._tf.reshape(grad, (n, c, k, k, *pieces[0].places.shape))
                return self._tf.add_n(
                    [self._placed(piece.part(columns), piece.rows, piece.columns) for piece in pieces]
                )

        return self._graph(problem, fold, xla=True)

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        tables, zero = upsample_gather(problem), problem.dtype.type(0)

        def gather(grad: Any) -> Any:
            taken = [(self._tf.gather(grad, which, axis=2), there) for which, there in tables]
            return self._tf.add_n([part if there.all() else self._tf.where(there, part, zero) for part, there in taken])

        return self._graph(problem, gather, xla=True)

    def replication_pad2d_backward(self, problem: Problem) -> Contestant:
        fold = fold_borders(problem)

        def gradient(grad: Any) -> Any:
            return fold(grad, lambda part, axis: self._tf.reduce_sum(part, axis, keepdims=True), self._tf.concat)

        return self._graph(problem, gradient, xla=True)

    def _placed(self, part: Any, *zeros: tuple[int, int]) -> Any:
        """Put zeros around the last two axes, or cut them where the number is negative."""
        rows, columns = (
            slice(max(-before, 0), size - max(-after, 0))
            for (before, after), size in zip(zeros, part.shape[2:], strict=True)
        )
        around = [(max(before, 0), max(after, 0)) for before, after in zeros]
        return self._tf.pad(part[:, :, rows, columns], [(0, 0), (0, 0), *around])

    def _graph(
        self,
        problem: Problem,
        formula: Callable[..., Any],
        *more: Array,
        xla: bool = False,
        channels_last: bool = False,
    ) -> Contestant:
        arrays = (problem.inputs["grad_output"], *more)
        if channels_last:
            arrays = tuple(np.ascontiguousarray(np.moveaxis(array, 1, -1)) for array in arrays)
        names = {f"array{i}": self._tf.constant(array) for i, array in enumerate(arrays)}
        code = f"formula({', '.join(names)})"
        plain = self._tf.autograph.experimental.do_not_convert(formula)
        names["formula"] = self._tf.function(plain, jit_compile=xla)

        def result(tensor: Any) -> Array:
            array: Array = tensor.numpy()
            return np.moveaxis(array, -1, 1) if channels_last else array

        return self.returning(code, names, result, "NHWC" if channels_last else "")
