"""Im2colBackward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .check import Array
from .problem import Case, Gradient, Problem, normal
from .windows import count, positions


class Im2colBackward(Gradient):
    """Attributes: kernel_size, and optionally dilation, padding, stride."""

    call = "im2col_backward"
    phases = "Im2colBackward"
    arrays = ("grad_output",)
    signature: Mapping[str, Any] = {"input_size": (), "kernel_size": 1, "dilation": 1, "padding": 0, "stride": 1}

    def attributes(self, case: Case) -> dict[str, Any]:
        return {**super().attributes(case), "input_size": case.shape[2:]}

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, *sizes = case.shape
        a = self.attributes(case)
        windows = math.prod(count(size, a) for size in sizes)
        grad_output = normal(rng, (n, c * a["kernel_size"] ** 2, windows), dtype)
        nbytes = grad_output.nbytes + math.prod(case.shape) * dtype.itemsize
        return Problem(case, dtype, {"grad_output": grad_output}, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        pairs = ([a[name]] * 2 for name in ("kernel_size", "dilation", "padding", "stride"))
        return [problem.inputs["grad_output"], list(a["input_size"]), *pairs, *outs]

    def terms(self, problem: Problem) -> int:
        a = self.attributes(problem.case)
        # Along an axis, the kernel positions that can meet in one place lie this far apart.
        apart = a["stride"] // math.gcd(a["stride"], a["dilation"])
        return int(-(-a["kernel_size"] // apart)) ** 2

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``out[position k of window l] += gradOutput[k, l]``."""
        a = self.attributes(problem.case)
        n, c, h, w = problem.case.shape
        columns = grad_output.reshape(n, c, -1, count(h, a), count(w, a))
        out = np.zeros(problem.case.shape)
        for k, windows, places in positions(h, w, a):
            out[places] += columns[:, :, k][windows]
        return out
