"""AvgPool2dBackward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .check import Array
from .problem import Case, Gradient, Problem, normal
from .windows import count


class AvgPool2dBackward(Gradient):
    """Attributes: kernel_size, and optionally stride, padding, ceil_mode, count_include_pad, divisor_override."""

    call = "avg_pool2d_backward"
    phases = "AvgPool2dBackward"
    arrays = ("grad_output", "x")
    signature: Mapping[str, Any] = {
        "kernel_size": 1, "stride": None, "padding": 0,
        "ceil_mode": False, "count_include_pad": True, "divisor_override": None,
    }  # fmt: skip

    def attributes(self, case: Case) -> dict[str, Any]:
        a = super().attributes(case)
        return {**a, "stride": a["stride"] or a["kernel_size"]}

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, *sizes = case.shape
        a = self.attributes(case)
        inputs = {
            "grad_output": normal(rng, (n, c, *(count(size, a) for size in sizes)), dtype),
            "x": np.zeros(case.shape, dtype),
        }
        nbytes = inputs["grad_output"].nbytes + inputs["x"].nbytes  # gradInput is as large as x, which is not read
        return Problem(case, dtype, inputs, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [
            problem.inputs["grad_output"], problem.inputs["x"],
            *([a[name]] * 2 for name in ("kernel_size", "stride", "padding")),
            a["ceil_mode"], a["count_include_pad"], a["divisor_override"] or 0, 0, *outs,
        ]  # fmt: skip

    def terms(self, problem: Problem) -> int:
        a = self.attributes(problem.case)
        return int(-(-a["kernel_size"] // a["stride"])) ** 2

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``gradInput[window(oh, ow)] += gradOutput[oh, ow] / divisor(oh, ow)``, all planes at once."""
        a = self.attributes(problem.case)
        n, c, h, w = problem.case.shape
        k, s, p = a["kernel_size"], a["stride"], a["padding"]
        _, _, ho, wo = grad_output.shape
        # Planes last: each step then walks contiguous memory.
        grad_output__hwp = np.ascontiguousarray(grad_output.reshape(n * c, ho, wo).transpose(1, 2, 0))
        grad_input__hwp = np.zeros((h, w, n * c))
        for oh in range(ho):
            hs = oh * s - p
            he = min(hs + k, h + p)
            for ow in range(wo):
                ws = ow * s - p
                we = min(ws + k, w + p)
                pool = (he - hs) * (we - ws)
                rows, columns = slice(max(hs, 0), min(he, h)), slice(max(ws, 0), min(we, w))
                inside = (rows.stop - rows.start) * (columns.stop - columns.start)
                divisor = a["divisor_override"] or (pool if a["count_include_pad"] else inside)
                grad_input__hwp[rows, columns] += grad_output__hwp[oh, ow] / divisor
        return np.ascontiguousarray(grad_input__hwp.transpose(2, 0, 1)).reshape(problem.case.shape)
