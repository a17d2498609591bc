"""Whom we are compared with: each peer is optional, told its thread count, and given memory to write into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from .cases import OPERATORS
from .check import Array
from .problem import Contestant, Problem
from .replication_pad2d import ReplicationPad2dBackward
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
        self._adapters: dict[str, Callable[[Problem], Contestant]] = {
            "max_pool2d_with_mask_backward": self._max_pool2d_with_mask_backward,
            "max_pool2d_with_mask": self._max_pool2d_with_mask,
            "upsample_nearest_exact1d_backward": self._upsample_nearest_exact1d_backward,
            "avg_pool2d_backward": self._avg_pool2d_backward,
            "im2col_backward": self._im2col_backward,
            "replication_pad2d_backward": self._replication_pad2d_backward,
        }

    def set_threads(self, count: int) -> None:
        self._torch.set_num_threads(count)

    def contestant(self, problem: Problem) -> Contestant | None:
        adapter = self._adapters.get(problem.case.operator)
        try:
            return adapter(problem) if adapter else None
        except NotImplementedError:  # the operator is there, but not for this dtype
            return None

    def _max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {self._attributes(problem)}, indices"
        return self._contestant(problem, "max_pool2d_with_indices_backward", arguments, "grad_input")

    def _max_pool2d_with_mask(self, problem: Problem) -> Contestant:
        arguments = f"x, {self._attributes(problem)}"
        out, _ = OPERATORS[problem.case.operator].outs(problem)
        outs = (out, np.empty(out.shape, np.int64))
        return self._contestant(problem, "max_pool2d_with_indices", arguments, "out", "indices", outs=outs)

    def _upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        a = OPERATORS[problem.case.operator].attributes(problem.case)
        arguments = f"grad_output, [{a['output_size']}], {list(a['input_size'])}, {a['scales']}"
        return self._contestant(problem, "_upsample_nearest_exact1d_backward", arguments, "grad_input")

    def _avg_pool2d_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {self._attributes(problem)}"
        return self._contestant(problem, "avg_pool2d_backward", arguments, "grad_input")

    def _im2col_backward(self, problem: Problem) -> Contestant:
        return self._contestant(problem, "col2im", f"grad_output, {self._attributes(problem)}", "out")

    def _replication_pad2d_backward(self, problem: Problem) -> Contestant:
        operator = OPERATORS[problem.case.operator]
        assert isinstance(operator, ReplicationPad2dBackward)
        arguments = f"grad_output, x, {operator.sides(problem.case)}"
        return self._contestant(problem, "replication_pad2d_backward", arguments, "grad_input")

    @staticmethod
    def _attributes(problem: Problem) -> str:
        """Write all attributes in the order of the call; where torch wants pairs, it takes ints too."""
        return ", ".join(map(repr, OPERATORS[problem.case.operator].attributes(problem.case).values()))

    def _contestant(
        self, problem: Problem, name: str, arguments: str, *parameters: str, outs: tuple[Array, ...] | None = None
    ) -> Contestant:
        """Call the overload that is named after the first output parameter, and the default one for fresh memory.

        Its inputs share our inputs' memory; it writes into NumPy memory as we do, so that page sizes are the same.
        """
        outs = outs or (np.empty(problem.case.shape, problem.dtype),)
        overloads = getattr(self._torch.ops.aten, name)
        names = {key: self._tensor(array) for key, array in problem.inputs.items()}
        names |= {"default": overloads.default, parameters[0]: getattr(overloads, parameters[0])}
        names |= {f"{parameter}_": self._tensor(out) for parameter, out in zip(parameters, outs, strict=True)}
        keywords = ", ".join(f"{parameter}={parameter}_" for parameter in parameters)
        into = Statement(f"{parameters[0]}({arguments}, {keywords})", names)
        returned = into.run()
        tensors = returned if isinstance(returned, tuple) else (returned,)
        for tensor, out in zip(tensors, outs, strict=True):
            if tensor.data_ptr() != out.ctypes.data:
                raise RuntimeError(f"torch did not write into the memory it was given: {problem.name}")
        fresh = Statement(f"default({arguments})", names)
        return Contestant(self.name, into, outs, fresh, lambda results: tuple(map(self._array, results)))

    def _tensor(self, array: Array) -> Any:
        if array.dtype == ml_dtypes.bfloat16:
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
        return self._torch.from_numpy(array)

    def _array(self, tensor: Any) -> Array:
        if isinstance(tensor, np.ndarray):
            return tensor
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
