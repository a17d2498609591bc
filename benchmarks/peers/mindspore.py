"""MindSpore on the CPU: its gradient primitives, launched and waited for one by one.

Its average pooling never counts padding, so cases that count it are left out, and so are windows in pooling that its
paddings "SAME" and "VALID" do not give. Of im2col there is the forward of col2im, of upsampling whole factors and a
resize with half pixels. It has no replication padding on the CPU, and no bfloat16. Results always lie in fresh memory.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..check import Array
from ..problem import Contestant, Problem
from .base import NotOffered, Peer, attributes, require, starting
from .formulas import shifts, upsample_factor


class MindSpore(Peer):
    """Primitives without a kernel for a dtype are left out in it."""

    name = "mindspore"

    def __init__(self, threads: int) -> None:
        # It is compiled against NumPy 1 and works with NumPy 2, which prints the traceback of where that is noticed.
        with starting():
            self._ms: Any = import_module("mindspore")
            self._gradients: Any = import_module("mindspore.ops.operations._grad_ops")
            self._primitives: Any = import_module("mindspore.ops.auto_generate")
            self._arrays: Any = import_module("mindspore.ops.operations.array_ops")
            self._ms.set_context(device_target="CPU", pynative_synchronize=True, runtime_num_threads=threads)
            one = self._ms.Tensor(np.ones(1, np.float32))
            (one + one).asnumpy()
        told = self._ms.get_context("runtime_num_threads")
        if told != threads:
            raise RuntimeError(f"it uses {told} threads instead of {threads}")
        self.version = self._ms.__version__

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        require(not a["divisor_override"] and not (a["padding"] and a["count_include_pad"]))
        call = self._gradients.AvgPoolGrad(*self._windows(problem), "NCHW")
        grad = problem.inputs["grad_output"]
        return self._call(problem, call, problem.inputs["x"], np.zeros_like(grad), grad)

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        call = self._gradients.MaxPoolGradWithArgmax(*self._windows(problem), "NCHW")
        # It counts them through all planes of an image.
        _, c, h, w = problem.case.shape
        indices = problem.inputs["indices"] + np.arange(0, c * h * w, h * w)[:, None, None]
        return self._call(problem, call, problem.inputs["x"], problem.inputs["grad_output"], indices.astype(np.int32))

    def im2col_backward(self, problem: Problem) -> Contestant:
        a, (n, c, *size) = attributes(problem), problem.case.shape
        k, d, p, s = ([a[name]] * 2 for name in ("kernel_size", "dilation", "padding", "stride"))
        call = self._arrays.Col2Im(k, d, p, s)
        grad = problem.inputs["grad_output"]
        return self._call(problem, call, grad.reshape(n, c, -1, grad.shape[2]), np.array(size, np.int32))

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        grad, length = problem.inputs["grad_output"], problem.case.shape[2]
        if upsample_factor(problem):
            shape, outputs = problem.case.shape, (grad.shape[2],)
            operator = self._primitives.upsample_nearest1d_grad_op
            return self._call(problem, lambda array: operator(array, shape, outputs, None), grad)
        require(attributes(problem)["scales"] is None)
        call = self._gradients.ResizeNearestNeighborV2Grad(False, True)
        return self._call(problem, call, grad[:, :, None], np.array([1, length], np.int32))

    def _windows(self, problem: Problem) -> tuple[tuple[int, int], tuple[int, int], str]:
        """Kernel, strides and the padding that gives these windows: "SAME" has the odd zero at the end."""
        require(problem.dtype.name != "float64")  # which it pools in float32
        a = attributes(problem)
        k, s = a["kernel_size"], a["stride"]
        last = list(shifts(problem))[-1]
        require(not a["ceil_mode"])
        if a["padding"]:
            for size, windows in zip(problem.case.shape[2:], last.places.shape, strict=True):
                zeros = max((windows - 1) * s + k - size, 0)
                require(windows == -(-size // s) and zeros // 2 == a["padding"])
        return (k, k), (s, s), "SAME" if a["padding"] else "VALID"

    def _call(self, problem: Problem, call: Any, *arrays: Array) -> Contestant:
        require(problem.dtype.name in ("float32", "float16", "float64"))
        names = {f"array{i}": self._ms.Tensor(np.ascontiguousarray(array)) for i, array in enumerate(arrays)}

        def result(tensor: Any) -> Array:
            array: Array = tensor.asnumpy()
            return array.reshape(problem.case.shape)

        try:
            call(*names.values())
        except TypeError as error:
            if "Unsupported data type" in str(error):
                raise NotOffered from error
            raise
        return self.returning(f"call({', '.join(names)})", {"call": call, **names}, result)
