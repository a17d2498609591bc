"""Whom we are compared with: each peer is optional, told its thread count, and given memory to write into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from .cases import OPERATORS, AvgPool2dBackward, Contestant, Problem
from .check import Array
from .timing import Statement


class Peer(Protocol):
    """An installed framework."""

    name: str
    version: str

    def set_threads(self, count: int) -> None:
        """Use ``count`` threads."""

    def contestant(self, problem: Problem) -> Contestant | None:
        """Give its statements; None if it does not offer the operator or the dtype."""


class Torch:
    """PyTorch on the CPU, called through the operators' own overloads: nothing cheaper is offered to Python."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.version: str = torch.__version__
        self._adapters: dict[str, Callable[[Problem], Contestant]] = {"avg_pool2d_backward": self._avg_pool2d_backward}

    def set_threads(self, count: int) -> None:
        self._torch.set_num_threads(count)

    def contestant(self, problem: Problem) -> Contestant | None:
        adapter = self._adapters.get(problem.case.operator)
        return adapter(problem) if adapter else None

    def _avg_pool2d_backward(self, problem: Problem) -> Contestant:
        operator = OPERATORS[problem.case.operator]
        assert isinstance(operator, AvgPool2dBackward)
        attributes = ", ".join(map(repr, operator.attributes(problem.case).values()))
        overloads = self._torch.ops.aten.avg_pool2d_backward
        return self._contestant(
            problem,
            fresh=f"default(grad_output, x, {attributes})",
            into=f"grad_input(grad_output, x, {attributes}, grad_input=out)",
            default=overloads.default,
            grad_input=overloads.grad_input,
        )

    def _contestant(self, problem: Problem, *, fresh: str, into: str, **names: Any) -> Contestant:
        """Share our inputs' memory; write into NumPy memory as we do, so that page sizes are the same."""
        out = np.empty_like(problem.inputs["x"])
        names |= {name: self._tensor(array) for name, array in problem.inputs.items()}
        names["out"] = self._tensor(out)
        statement = Statement(into, names)
        returned = statement.run()
        if returned.data_ptr() != out.ctypes.data:
            raise RuntimeError(f"torch did not write into the memory it was given: {problem.name}")
        return Contestant(self.name, statement, out, Statement(fresh, names), self._array)

    def _tensor(self, array: Array) -> Any:
        if array.dtype == ml_dtypes.bfloat16:
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(array)

    def _array(self, tensor: Any) -> Array:
        if tensor.dtype == self._torch.bfloat16:
            view: Array = tensor.view(self._torch.int16).numpy().view(ml_dtypes.bfloat16)
            return view
        plain: Array = tensor.numpy()
        return plain


KNOWN: tuple[Callable[[], Peer], ...] = (Torch,)


def installed() -> list[Peer]:
    """The peers that can be imported here."""
    found: list[Peer] = []
    for peer in KNOWN:
        try:
            found.append(peer())
        except ImportError:
            continue
    return found
