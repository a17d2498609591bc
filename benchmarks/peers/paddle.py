"""PaddlePaddle on the CPU: its operators, and those of gradients that its own backward runs, called eagerly.

Results always lie in fresh memory. Its nearest upsampling takes the input below instead of the nearest one, which is
the same for whole factors only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from ..check import Array
from ..problem import Contestant, Problem
from .base import Peer, attributes, require, starting
from .formulas import pad_sides, upsample_factor


class Paddle(Peer):
    """Operators without a kernel for a dtype are left out in it."""

    name = "paddle"

    def __init__(self, threads: int) -> None:
        if "tensorflow" in sys.modules:
            raise RuntimeError("it crashes in a process that has loaded TensorFlow; ask for it alone")
        # Its OpenMP runtime reads the variables when it is loaded; its threads would spin for 200 ms after each call,
        # at the cost of whoever is timed next.
        with starting(OMP_NUM_THREADS=str(threads), KMP_BLOCKTIME="1"):
            self._paddle: Any = import_module("paddle")
            self._paddle.set_device("cpu")
            self._paddle.base.core.set_num_threads(threads)
        self._operators: Any = self._paddle._C_ops
        self.version = self._paddle.__version__

    def contestant(self, problem: Problem) -> Contestant | None:
        try:
            contestant = super().contestant(problem)
            if contestant and contestant.fresh:
                contestant.fresh.run()
        except (RuntimeError, NotImplementedError) as error:
            if "is not registered" in str(error) or "not support" in str(error):  # no kernel for this dtype
                return None
            raise
        return contestant

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        k, s, p = ([a[name]] * 2 for name in ("kernel_size", "stride", "padding"))
        # It rounds the reciprocal of the divisor to float32.
        require(not a["divisor_override"] and problem.dtype.name != "float64")
        # The forward's result is an argument that its shape alone is taken of.
        grad = problem.inputs["grad_output"]
        arrays = {"grad": grad, "x": problem.inputs["x"], "y": np.zeros_like(grad)}
        rest = f"{a['ceil_mode']}, {not a['count_include_pad']}, 'NCHW', 'avg', False, False, 'EXPLICIT'"
        return self._call(arrays, "pool2d_grad", f"x, y, grad, {k}, {s}, {p}, {rest}")

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        a, inputs = attributes(problem), problem.inputs
        k, s, p, d = ([a[name]] * 2 for name in ("kernel_size", "stride", "padding", "dilation"))
        arrays = {"grad": inputs["grad_output"], "x": inputs["x"], "mask": inputs["indices"].astype(np.int32)}
        require(d == [1, 1])
        return self._call(
            arrays, "max_pool2d_with_index_grad", f"x, mask, grad, {k}, {s}, {p}, False, False, {a['ceil_mode']}"
        )

    def max_pool2d_with_indices_backward(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_mask_backward(problem)

    def avg_pool2d(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        k, s, p = ([a[name]] * 2 for name in ("kernel_size", "stride", "padding"))
        require(not a["divisor_override"])
        rest = f"{a['ceil_mode']}, {not a['count_include_pad']}, 'NCHW', 'avg', False, False, 'EXPLICIT'"
        return self._call({"x": problem.inputs["x"]}, "pool2d", f"x, {k}, {s}, {p}, {rest}")

    def max_pool2d_with_indices(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        k, s, p = ([a[name]] * 2 for name in ("kernel_size", "stride", "padding"))
        arguments = f"x, {k}, {s}, {p}, False, False, {a['ceil_mode']}"
        return self._call({"x": problem.inputs["x"]}, "max_pool2d_with_index", arguments)

    def max_pool2d_with_mask(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_indices(problem)

    def im2col(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        k, d, p, s = ([a[name]] * 2 for name in ("kernel_size", "dilation", "padding", "stride"))
        return self._call({"x": problem.inputs["x"]}, "unfold", f"x, {k}, {s}, {p * 2}, {d}")

    def upsample_nearest_exact1d(self, problem: Problem) -> Contestant:
        require(upsample_factor(problem) is not None)
        rest = f"'NCHW', 0, 1, {attributes(problem)['output_size']}, [], 'nearest', False, 0"
        x = problem.inputs["x"][:, :, None]
        return self._call({"x": x}, "nearest_interp", f"x, None, None, None, {rest}", axis=2)

    def replication_pad2d(self, problem: Problem) -> Contestant:
        sides = pad_sides(problem)
        require(min(sides) >= 0)
        x = problem.inputs["x"][:, :, None]
        return self._call({"x": x}, "pad3d", f"x, {[*sides, 0, 0]}, 'replicate', 0.0, 'NCDHW'", axis=2)

    def im2col_backward(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        k, d, p, s = ([a[name]] * 2 for name in ("kernel_size", "dilation", "padding", "stride"))
        arrays = {"grad": problem.inputs["grad_output"]}
        return self._call(arrays, "fold", f"grad, {list(a['input_size'])}, {k}, {s}, {p * 2}, {d}")

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        require(upsample_factor(problem) is not None)
        length = attributes(problem)["output_size"]
        arrays = {"x": np.zeros(problem.case.shape, problem.dtype)[:, :, None]}
        arrays["grad"] = problem.inputs["grad_output"][:, :, None]
        rest = f"'NCHW', 0, 1, {length}, [], 'nearest', False, 0"
        return self._call(arrays, "nearest_interp_grad", f"x, None, None, None, grad, {rest}", axis=2)

    def replication_pad2d_backward(self, problem: Problem) -> Contestant:
        sides = pad_sides(problem)
        require(min(sides) >= 0)
        arrays = {"x": problem.inputs["x"][:, :, None], "grad": problem.inputs["grad_output"][:, :, None]}
        return self._call(arrays, "pad3d_grad", f"x, grad, {[*sides, 0, 0]}, 'replicate', 0.0, 'NCDHW'", axis=2)

    def _call(self, arrays: Mapping[str, Array], name: str, arguments: str, axis: int | None = None) -> Contestant:
        """``axis``: one that the operator has and ours has not."""
        names = {key: self._tensor(array) for key, array in arrays.items()} | {name: getattr(self._operators, name)}

        def result(tensor: Any) -> Array:
            array: Array = tensor.numpy()
            array = array.view(ml_dtypes.bfloat16) if tensor.dtype == self._paddle.bfloat16 else array
            array = array.astype(np.int64) if array.dtype.kind == "i" else array
            return array if axis is None else array.squeeze(axis)

        return self.returning(f"{name}({arguments})", names, result)

    def _tensor(self, array: Array) -> Any:
        if array.dtype == ml_dtypes.bfloat16:
            return self._paddle.to_tensor(array.view(np.uint16)).view("bfloat16")
        return self._paddle.to_tensor(array)
