"""Im2colBackward, and its forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..check import Array, Reference
from ..problem import DTYPES, LAST, TINY, Case, Drawn, Family, Gradient, Operator, Problem, normal, same
from ..windows import count, draw, positions


class Im2colBackward(Gradient):
    """Attributes: kernel_size, and optionally dilation, padding, stride."""

    call = "im2col_backward"
    phases = "Im2colBackward"
    arrays = ("grad_output",)
    signature: Mapping[str, Any] = {"input_size": None, "kernel_size": None, "dilation": 1, "padding": 0, "stride": 1}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 9, 10, kernel_size=3, dilation=2, padding=1, stride=2),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 64, 56, 56, kernel_size=3, stride=1, padding=1),
            self.row(16, 64, 28, 28, kernel_size=3, dilation=2, padding=2),
            self.row(8, 64, 56, 56, kernel_size=2, stride=2),
            self.row(8, 3, 224, 224, kernel_size=16, stride=16),
            self.row(1, 4, 6, 6, kernel_size=3, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, kernel_size=3, padding=1),
            self.row(8, 64, 14, 14, kernel_size=3, padding=1),
            self.row(8, 64, 35, 35, kernel_size=3, stride=2),
            self.row(8, 64, 57, 57, kernel_size=1, stride=2),
            self.row(8, 64, 28, 28, kernel_size=2),
            self.row(8, 32, 28, 28, kernel_size=5, padding=2),
            self.row(8, 32, 56, 56, kernel_size=3, stride=2, dilation=2, padding=2),
            self.row(8, 64, 57, 57, kernel_size=3, stride=3),
            self.row(8, 64, 56, 56, kernel_size=4, stride=4),
            self.row(8, 3, 128, 128, kernel_size=7, stride=2, padding=3),
            self.row(8, 3, 127, 127, kernel_size=11, stride=4, padding=2),
            self.row(8, 64, 56, 56, kernel_size=2, stride=3),
            self.row(8, 32, 28, 28, kernel_size=3, padding=1, input=LAST),
            self.row(8, 32, 28, 28, kernel_size=3, padding=1, output=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {"im2col": Family("im2col k3 s1 p1", self.call, 2, same(kernel_size=3, stride=1, padding=1))}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((32, 56, 56), {"kernel_size": 3, "stride": 1, "padding": 1}),)

    def attributes(self, case: Case) -> dict[str, Any]:
        return {**super().attributes(case), "input_size": case.shape[2:]}

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        a = draw(rng, plane, most=1, dilations=(1, 1, 1, 2, 3, 4))
        return Drawn(plane, a, a["kernel_size"] ** 2 * math.prod(count(size, a) for size in plane))

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


class Im2col(Operator):
    """Attributes: kernel_size, and optionally dilation, padding, stride."""

    call = "im2col"
    phases = "Im2col"
    arrays = ("x",)
    signature: Mapping[str, Any] = {"kernel_size": None, "dilation": 1, "padding": 0, "stride": 1}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 9, 10, kernel_size=3, dilation=2, padding=1, stride=2, dtypes=tuple(DTYPES)),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 64, 56, 56, kernel_size=3, stride=1, padding=1),
            self.row(16, 64, 28, 28, kernel_size=3, dilation=2, padding=2),
            self.row(8, 64, 56, 56, kernel_size=2, stride=2),
            self.row(8, 3, 224, 224, kernel_size=16, stride=16),
            self.row(1, 4, 6, 6, kernel_size=3, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, 7, kernel_size=3, padding=1),
            self.row(8, 64, 14, 14, kernel_size=3, padding=1),
            self.row(8, 64, 57, 57, kernel_size=3, stride=2, padding=1),
            self.row(8, 64, 57, 57, kernel_size=3, stride=3),
            self.row(8, 32, 28, 28, kernel_size=5, padding=2),
            self.row(8, 3, 128, 128, kernel_size=7, stride=2, padding=3),
            self.row(8, 3, 127, 127, kernel_size=11, stride=4, padding=2),
            self.row(8, 32, 28, 28, kernel_size=3, padding=1, input=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((32, 56, 56), {"kernel_size": 3, "stride": 1, "padding": 1}),)

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        return Im2colBackward().draw(rng, plane)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        inputs = {"x": normal(rng, case.shape, dtype)}
        return Problem(case, dtype, inputs, inputs["x"].nbytes + math.prod(self._columns(case)) * dtype.itemsize)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        pairs = ([a[name]] * 2 for name in ("kernel_size", "dilation", "padding", "stride"))
        return [problem.inputs["x"], *pairs, *outs]

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        a = self.attributes(problem.case)
        n, c, h, w = problem.case.shape
        columns = np.zeros((n, c, a["kernel_size"] ** 2, count(h, a), count(w, a)), problem.dtype)
        for k, windows, places in positions(h, w, a):
            columns[:, :, k][windows] = problem.inputs["x"][places]
        return (Reference(columns.reshape(self._columns(problem.case))),)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        return (np.empty(self._columns(problem.case), problem.dtype),)

    def _columns(self, case: Case) -> tuple[int, ...]:
        a = self.attributes(case)
        n, c, *sizes = case.shape
        return (n, c * a["kernel_size"] ** 2, math.prod(count(size, a) for size in sizes))
