"""UpsampleNearestExact1dBackward, and its forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..check import Array, Reference
from ..problem import LAST, LENGTHS, TINY, Case, Drawn, Family, Gradient, Operator, Problem, normal


class UpsampleNearestExact1dBackward(Gradient):
    """Attributes: output_size, and optionally scales."""

    call = "upsample_nearest_exact1d_backward"
    phases = "UpsampleNearestExact1dBackward"
    arrays = ("grad_output",)
    signature: Mapping[str, Any] = {"output_size": None, "input_size": None, "scales": None}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 26, output_size=11),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 4096, output_size=8192),
            self.row(8, 256, 4096, output_size=6144),
            self.row(8, 256, 4096, output_size=5000),
            self.row(8, 256, 8192, output_size=4096),
            self.row(2, 4, 8, output_size=16, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 7, output_size=14),
            self.row(8, 256, 49, output_size=98),
            self.row(8, 256, 100, output_size=300),
            self.row(8, 256, 1000, output_size=999),
            self.row(8, 64, 1024, output_size=8192),
            self.row(8, 64, 8192, output_size=1024),
            self.row(8, 64, 4096, output_size=8192, scales=1.9),
            self.row(8, 64, 4096, output_size=6144, input=LAST),
            self.row(8, 64, 4096, output_size=8192, input=LAST, output=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {
            "upsample": Family(
                "upsampling by 2", self.call, 4, lambda length: {"output_size": 2 * length}, sides=LENGTHS, axes=1
            )
        }

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((96, 4096), {"output_size": 8192}),)

    def attributes(self, case: Case) -> dict[str, Any]:
        return {**super().attributes(case), "input_size": case.shape}

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        length = plane[0] * plane[1] if rng.random() < 0.5 else max(plane)
        factor = float(rng.choice([2, 2, 2, 3, 4, 8, 1.5, 0.5, 0.25, 2 ** rng.uniform(-2, 3)]))
        attributes: dict[str, Any] = {"output_size": max(int(length * factor), 1)}
        if rng.random() < 0.2:
            attributes["scales"] = round(factor, 3)
        return Drawn((length,), attributes, attributes["output_size"])

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, _ = case.shape
        grad_output = normal(rng, (n, c, self.attributes(case)["output_size"]), dtype)
        nbytes = grad_output.nbytes + math.prod(case.shape) * dtype.itemsize
        return Problem(case, dtype, {"grad_output": grad_output}, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [problem.inputs["grad_output"], [a["output_size"]], list(a["input_size"]), a["scales"] or 0.0, *outs]

    def terms(self, problem: Problem) -> int:
        return int(np.bincount(sources_of(problem.case)).max())

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``out[source(j)] += gradOutput[j]``: the sources grow with j, so those of an input lie side by side."""
        sources = sources_of(problem.case)
        out = np.zeros(problem.case.shape)
        # The first of each input's outputs, then the second of each, ...
        rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
        for i in range(int(rank.max()) + 1):
            out[..., sources[rank == i]] += grad_output[..., rank == i]
        return out


class UpsampleNearestExact1d(Operator):
    """Attributes: output_size, and optionally scales."""

    call = "upsample_nearest_exact1d"
    phases = "UpsampleNearestExact1d"
    arrays = ("x",)
    signature: Mapping[str, Any] = {"output_size": None, "scales": None}

    def small(self) -> tuple[Case, ...]:
        return (self.row(2, 3, 11, output_size=26),)

    def rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 4096, output_size=8192),
            self.row(8, 256, 4096, output_size=6144),
            self.row(8, 256, 8192, output_size=4096),
            self.row(2, 4, 8, output_size=16, dtypes=TINY),
        )

    def more_rows(self) -> tuple[Case, ...]:
        return (
            self.row(8, 256, 49, output_size=98),
            self.row(8, 256, 100, output_size=300),
            self.row(8, 64, 1024, output_size=8192),
            self.row(8, 64, 8192, output_size=1024),
            self.row(8, 64, 4096, output_size=8192, input=LAST, output=LAST),
        )

    def families(self) -> dict[str, Family]:
        return {}

    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        return (((96, 4096), {"output_size": 8192}),)

    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        return UpsampleNearestExact1dBackward().draw(rng, plane)

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        inputs = {"x": normal(rng, case.shape, dtype)}
        size = math.prod(case.shape[:2]) * self.attributes(case)["output_size"]
        return Problem(case, dtype, inputs, inputs["x"].nbytes + size * dtype.itemsize)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [problem.inputs["x"], [a["output_size"]], a["scales"] or 0.0, *outs]

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        return (Reference(problem.inputs["x"][..., sources_of(problem.case)]),)

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        return (np.empty((*problem.case.shape[:2], self.attributes(problem.case)["output_size"]), problem.dtype),)


def sources_of(case: Case) -> npt.NDArray[np.int64]:
    """For each output, the input that it copies."""
    lo, li, scales = case.attributes["output_size"], case.shape[2], case.attributes.get("scales")
    step = np.float32(1 / scales) if scales else np.float32(li) / np.float32(lo)
    place = ((np.arange(lo) + 0.5) * np.float64(step)).astype(np.float32)
    return np.minimum(np.floor(place), li - 1).astype(np.int64)
