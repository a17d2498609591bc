"""UpsampleNearestExact1dBackward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .check import Array
from .problem import Case, Gradient, Problem, normal


class UpsampleNearestExact1dBackward(Gradient):
    """Attributes: output_size, and optionally scales."""

    call = "upsample_nearest_exact1d_backward"
    phases = "UpsampleNearestExact1dBackward"
    arrays = ("grad_output",)
    signature: Mapping[str, Any] = {"output_size": 1, "input_size": (), "scales": None}

    def attributes(self, case: Case) -> dict[str, Any]:
        return {**super().attributes(case), "input_size": case.shape}

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, _ = case.shape
        grad_output = normal(rng, (n, c, self.attributes(case)["output_size"]), dtype)
        nbytes = grad_output.nbytes + math.prod(case.shape) * dtype.itemsize
        return Problem(case, dtype, {"grad_output": grad_output}, nbytes)

    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        a = self.attributes(problem.case)
        return [problem.inputs["grad_output"], [a["output_size"]], list(a["input_size"]), a["scales"] or 0.0, *outs]

    def terms(self, problem: Problem) -> int:
        return int(np.bincount(self.sources(problem.case)).max())

    def sources(self, case: Case) -> npt.NDArray[np.int64]:
        """For each output, the input that it copies."""
        a = self.attributes(case)
        lo, li = a["output_size"], case.shape[2]
        step = np.float32(1 / a["scales"]) if a["scales"] else np.float32(li) / np.float32(lo)
        place = ((np.arange(lo) + 0.5) * np.float64(step)).astype(np.float32)
        return np.minimum(np.floor(place), li - 1).astype(np.int64)

    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """``out[source(j)] += gradOutput[j]``: the sources grow with j, so those of an input lie side by side."""
        sources = self.sources(problem.case)
        out = np.zeros(problem.case.shape)
        # The first of each input's outputs, then the second of each, ...
        rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
        for i in range(int(rank.max()) + 1):
            out[..., sources[rank == i]] += grad_output[..., rank == i]
        return out
