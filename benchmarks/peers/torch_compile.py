"""PyTorch's compiler, inductor: it compiles to C++ through gcc when a case is prepared, outside the timing.

Average pooling is ATen's own backward operator, which inductor generates code for. Of im2col and upsampling it hands
that operator back to ATen or scatters element by element, so they are written in the slices and sums that it fuses. Max
pooling and padding are left out: it hands them back as well, and what it makes of slices is no faster.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ..problem import Contestant, Problem
from ..timing import Statement
from .base import attributes, require
from .formulas import require_plain_average, shifts, tiles, upsample_factor, upsample_gather
from .torch_eager import Torch


class TorchCompile(Torch):
    """Real dtypes. A result goes to given memory by a final copy_, which inductor fuses into the computation."""

    name = "torch-compile"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        # gcc is run by this process: a pool of others for it would only be started in vain.
        config: Any = import_module("torch._inductor.config")
        config.compile_threads = 1

    def contestant(self, problem: Problem) -> Contestant | None:
        offered = "avg_pool2d_backward", "im2col_backward", "upsample_nearest_exact1d_backward"
        return super().contestant(problem) if problem.case.operator in offered else None

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        require_plain_average(problem)
        k, s, p, *rest = attributes(problem).values()
        x = self.tensor(problem.inputs["x"])
        operator = self.torch.ops.aten.avg_pool2d_backward.default
        return self._compiled(problem, lambda grad: operator(grad, x, [k, k], [s, s], [p, p], *rest))

    def im2col_backward(self, problem: Problem) -> Contestant:
        a, (n, c, h, w) = attributes(problem), problem.case.shape
        k, s = a["kernel_size"], a["stride"]
        pad = self.torch.nn.functional.pad
        if tiles(problem):

            def fold(grad: Any) -> Any:
                return grad.reshape(n, c, k, k, h // s, w // s).permute(0, 1, 4, 2, 5, 3).reshape(n, c, h, w)
        else:
            require(s == 1)
            pieces = list(shifts(problem))

            def fold(grad: Any) -> Any:
                columns = grad.reshape(n, c, k, k, *pieces[0].places.shape)
                return sum(pad(piece.part(columns), (*piece.columns, *piece.rows)) for piece in pieces)

        return self._compiled(problem, fold)

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        factor = upsample_factor(problem)
        if factor:

            def gather(grad: Any) -> Any:
                return sum(grad[..., first::factor] for first in range(factor))
        else:
            tables = [tuple(map(self.torch.from_numpy, table)) for table in upsample_gather(problem)]

            def gather(grad: Any) -> Any:
                return sum(self.torch.where(there, grad[..., which], 0) for which, there in tables)

        return self._compiled(problem, gather)

    def _compiled(self, problem: Problem, formula: Callable[[Any], Any]) -> Contestant:
        def into(grad: Any, out: Any) -> Any:
            return out.copy_(formula(grad))

        # What was compiled for other cases would count towards a limit beyond which nothing is compiled.
        self.torch.compiler.reset()
        out = np.empty(problem.case.shape, problem.dtype)
        names = {"grad_output": self.tensor(problem.inputs["grad_output"]), "out": self.tensor(out)}
        names |= {
            name: self.torch.compile(function, fullgraph=True, dynamic=False)
            for name, function in (("into", into), ("fresh", formula))
        }
        statement, fresh = Statement("into(grad_output, out)", names), Statement("fresh(grad_output)", names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own parts to each other
            for each in statement, fresh:
                each.run()
        return Contestant(self.name, statement, (out,), fresh, lambda results: tuple(map(self.array, results)))
