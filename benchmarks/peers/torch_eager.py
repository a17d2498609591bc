"""PyTorch on the CPU, called through the operators' own overloads: nothing cheaper is offered to Python."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from ..check import Array
from ..operators import OPERATORS
from ..operators.upsample_nearest_exact1d import sources_of
from ..problem import Contestant, Problem, channels_last
from ..timing import Statement
from .base import Peer, attributes, require
from .formulas import pad_sides

# The inputs that it reads.
_READ = ("grad_output", "x", "indices")


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

    def max_pool2d_with_indices_backward(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_mask_backward(problem)

    def max_pool2d_with_indices(self, problem: Problem) -> Contestant:
        return self.max_pool2d_with_mask(problem)

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

    def avg_pool2d(self, problem: Problem) -> Contestant:
        outs = OPERATORS[problem.case.operator].outs(problem)
        return self._overloads(problem, "avg_pool2d", f"x, {_values(problem)}", "out", outs=outs)

    def im2col_backward(self, problem: Problem) -> Contestant:
        return self._overloads(problem, "col2im", f"grad_output, {_values(problem)}", "out")

    def im2col(self, problem: Problem) -> Contestant:
        outs = OPERATORS[problem.case.operator].outs(problem)
        return self._overloads(problem, "im2col", f"x, {_values(problem)}", "out", outs=outs)

    def replication_pad2d_backward(self, problem: Problem) -> Contestant:
        arguments = f"grad_output, x, {pad_sides(problem)}"
        return self._overloads(problem, "replication_pad2d_backward", arguments, "grad_input")

    def replication_pad2d(self, problem: Problem) -> Contestant:
        outs = OPERATORS[problem.case.operator].outs(problem)
        return self._overloads(problem, "replication_pad2d", f"x, {pad_sides(problem)}", "out", outs=outs)

    def upsample_nearest_exact1d(self, problem: Problem) -> Contestant:
        a, sources = attributes(problem), sources_of(problem.case)
        # For float64 it finds the sources in double precision.
        step = 1 / a["scales"] if a["scales"] else problem.case.shape[2] / a["output_size"]
        doubles = np.minimum((np.arange(len(sources)) + 0.5) * step, problem.case.shape[2] - 1).astype(np.int64)
        require(problem.dtype.name != "float64" or np.array_equal(doubles, sources))
        arguments, outs = f"x, [{a['output_size']}], {a['scales']}", OPERATORS[problem.case.operator].outs(problem)
        return self._overloads(problem, "_upsample_nearest_exact1d", arguments, "out", outs=outs)

    def _overloads(
        self, problem: Problem, name: str, arguments: str, *parameters: str, outs: tuple[Array, ...] | None = None
    ) -> Contestant:
        """Call the overload that is named after the first output parameter, and the default one for fresh memory.

        Its inputs share our inputs' memory; it writes into NumPy memory as we do, so that page sizes are the same.
        """
        outs = tuple(map(self.lay, outs or (np.empty(problem.case.shape, problem.dtype),)))
        overloads = getattr(self.torch.ops.aten, name)
        names = {key: self.tensor(self.lay(array)) for key, array in problem.inputs.items() if key in _READ}
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

    def lay(self, array: Array) -> Array:
        """Give the same values in the layout that is measured."""
        return array

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


class TorchLast(Torch):
    """The operators on images, whose memory is NHWC."""

    name = "torch-nhwc"

    def contestant(self, problem: Problem) -> Contestant | None:
        # A column of im2col has no such layout.
        images = len(problem.case.shape) == 4 and not problem.case.operator.startswith("im2col")
        return super().contestant(problem) if images else None

    def lay(self, array: Array) -> Array:
        return channels_last(array)


def _values(problem: Problem) -> str:
    """Write all attributes in the order of the call; where torch wants pairs, it takes ints too."""
    return ", ".join(map(repr, attributes(problem).values()))
