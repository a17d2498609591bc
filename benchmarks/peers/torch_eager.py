"""PyTorch on the CPU, called through the operators' own overloads: nothing cheaper is offered to Python."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from ..cases import OPERATORS
from ..check import Array
from ..problem import Contestant, Problem
from ..timing import Statement
from .base import Peer, attributes
from .formulas import pad_sides


class Torch(Peer):
    """All operators, each in every dtype that its kernel takes."""

    name = "torch"

    def __init__(self, threads: int) -> None:
        self.torch: Any = import_module("torch")
        self.version = self.torch.__version__
        self.torch.set_num_threads(threads)

    def contestant(self, problem: Problem) -> Contestant | None:
        try:
            return super().contestant(problem)
        except NotImplementedError:  # the operator is there, but not for this dtype
            return None

    def max_pool2d_with_mask_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {_values(problem)}, indices"
        return self._overloads(problem, "max_pool2d_with_indices_backward", arguments, "grad_input")

    def max_pool2d_with_mask(self, problem: Problem) -> Contestant:
        arguments = f"x, {_values(problem)}"
        out, _ = OPERATORS[problem.case.operator].outs(problem)
        outs = (out, np.empty(out.shape, np.int64))
        return self._overloads(problem, "max_pool2d_with_indices", arguments, "out", "indices", outs=outs)

    def upsample_nearest_exact1d_backward(self, problem: Problem) -> Contestant:
        a = attributes(problem)
        arguments = f"grad_output, [{a['output_size']}], {list(a['input_size'])}, {a['scales']}"
        return self._overloads(problem, "_upsample_nearest_exact1d_backward", arguments, "grad_input")

    def avg_pool2d_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {_values(problem)}"
        return self._overloads(problem, "avg_pool2d_backward", arguments, "grad_input")

    def im2col_backward(self, problem: Problem) -> Contestant:
        return self._overloads(problem, "col2im", f"grad_output, {_values(problem)}", "out")

    def replication_pad2d_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {pad_sides(problem)}"
        return self._overloads(problem, "replication_pad2d_backward", arguments, "grad_input")

    def _overloads(
        self, problem: Problem, name: str, arguments: str, *parameters: str, outs: tuple[Array, ...] | None = None
    ) -> Contestant:
        """Call the overload that is named after the first output parameter, and the default one for fresh memory.

        Its inputs share our inputs' memory; it writes into NumPy memory as we do, so that page sizes are the same.
        """
        outs = outs or (np.empty(problem.case.shape, problem.dtype),)
        overloads = getattr(self.torch.ops.aten, name)
        names = {key: self.tensor(array) for key, array in problem.inputs.items()}
        names |= {"default": overloads.default, parameters[0]: getattr(overloads, parameters[0])}
        names |= {f"{parameter}_": self.tensor(out) for parameter, out in zip(parameters, outs, strict=True)}
        keywords = ", ".join(f"{parameter}={parameter}_" for parameter in parameters)
        into = Statement(f"{parameters[0]}({arguments}, {keywords})", names)
        returned = into.run()
        tensors = returned if isinstance(returned, tuple) else (returned,)
        for tensor, out in zip(tensors, outs, strict=True):
            if tensor.data_ptr() != out.ctypes.data:
                raise RuntimeError(f"torch did not write into the memory it was given: {problem.name}")
        fresh = Statement(f"default({arguments})", names)
        return Contestant(self.name, into, outs, fresh, lambda results: tuple(map(self.array, results)))

    def tensor(self, array: Array) -> Any:
        """Give a tensor over the array's memory."""
        if array.dtype == ml_dtypes.bfloat16:
            return self.torch.from_numpy(array.view(np.int16)).view(self.torch.bfloat16)
        return self.torch.from_numpy(array)

    def array(self, tensor: Any) -> Array:
        """Give an array over the tensor's memory; an array is given back."""
        if isinstance(tensor, np.ndarray):
            return tensor
        if tensor.dtype == self.torch.bfloat16:
            view: Array = tensor.view(self.torch.int16).numpy().view(ml_dtypes.bfloat16)
            return view
        plain: Array = tensor.numpy()
        return plain


def _values(problem: Problem) -> str:
    """Write all attributes in the order of the call; where torch wants pairs, it takes ints too."""
    return ", ".join(map(repr, attributes(problem).values()))
