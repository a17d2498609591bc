"""What is measured: the rows, and per operator how its data are made, how we are called and what the formula gives."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import ml_dtypes
import numpy as np

import aclnn_bw

from .check import Array, Reference
from .timing import Statement

DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype(np.float64),
}
_SHORT = {"kernel_size": "k", "stride": "s", "padding": "p", "dilation": "d"}


class Form(enum.Enum):
    """What one run is."""

    CALL = ""
    TWO_PHASE_ARRAYS = "both phases, arrays"
    TWO_PHASE = "both phases"
    PHASE_2 = "phase 2"


@dataclass(frozen=True)
class Case:
    """One row of the benchmark, in one or more dtypes."""

    operator: str
    shape: tuple[int, ...]  # of gradInput
    attributes: Mapping[str, Any]
    form: Form = Form.CALL
    dtypes: tuple[str, ...] = tuple(DTYPES)

    @property
    def title(self) -> str:
        words = ["x".join(map(str, self.shape))]
        words += [f"{_SHORT.get(name, name + '=')}{value}" for name, value in self.attributes.items()]
        return " ".join(words) + (f", {self.form.value}" if self.form.value else "")


@dataclass(frozen=True)
class Problem:
    """A case in one dtype, with its data."""

    case: Case
    dtype: np.dtype[Any]
    inputs: Mapping[str, Array]
    nbytes: int  # what the operator must read and write

    @property
    def name(self) -> str:
        return f"{self.case.operator} {self.case.title} {self.dtype}"


@dataclass(frozen=True)
class Contestant:
    """One implementation of a problem: writing into memory it was given and, if it can, into fresh memory."""

    name: str
    into: Statement
    out: Array  # where ``into`` writes
    fresh: Statement | None
    to_array: Callable[[Any], Array] = field(default=lambda value: value)  # of what ``fresh`` gives


class Operator(Protocol):
    """How an operator is benchmarked."""

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        """Make the data."""

    def ours(self, problem: Problem) -> Contestant:
        """Give our statements in the case's form."""

    def reference(self, problem: Problem) -> Reference:
        """Compute the formula, plainly and in float64."""


class AvgPool2dBackward:
    """Attributes: kernel_size, and optionally stride, padding, ceil_mode, count_include_pad, divisor_override."""

    # In the order of the call, with the defaults.
    signature: Mapping[str, Any] = {
        "kernel_size": 1, "stride": None, "padding": 0,
        "ceil_mode": False, "count_include_pad": True, "divisor_override": None,
    }  # fmt: skip

    def attributes(self, case: Case) -> dict[str, Any]:
        """All attributes of the case in the order of the call, the stride resolved."""
        a = {**self.signature, **case.attributes}
        return {**a, "stride": a["stride"] or a["kernel_size"]}

    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        n, c, h, w = case.shape
        a = self.attributes(case)
        grad_shape = (n, c, *(self._pooled(size, a) for size in (h, w)))
        inputs = {
            "grad_output": rng.standard_normal(grad_shape, np.float32).astype(dtype),
            "x": np.zeros(case.shape, dtype),
        }
        nbytes = inputs["grad_output"].nbytes + inputs["x"].nbytes  # gradInput is as large as x, which is not read
        return Problem(case, dtype, inputs, nbytes)

    def ours(self, problem: Problem) -> Contestant:
        a = self.attributes(problem.case)
        grad_output, x = problem.inputs["grad_output"], problem.inputs["x"]
        out = np.empty_like(x)
        names: dict[str, Any] = {"grad_output": grad_output, "x": x, "out": out}
        fresh = None
        if problem.case.form is Form.CALL:
            values = list(a.values())
            while values and values[-1] == list(self.signature.values())[len(values) - 1]:
                values.pop()  # a caller leaves trailing defaults out
            call = f"avg_pool2d_backward(grad_output, x, {', '.join(map(repr, values))}"
            names["avg_pool2d_backward"] = aclnn_bw.avg_pool2d_backward
            fresh = Statement(call + ")", names)
            into = Statement(call + ", out=out)", names)
        else:
            into = self._two_phase(problem.case.form, a, names)
        return Contestant("ours", into, out, fresh)

    @staticmethod
    def _two_phase(form: Form, a: Mapping[str, Any], names: dict[str, Any]) -> Statement:
        phase_1, phase_2 = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize, aclnn_bw.aclnnAvgPool2dBackward
        arrays: list[Any] = [[a["kernel_size"]] * 2, [a["stride"]] * 2, [a["padding"]] * 2]
        tensors: list[Any] = [names["grad_output"], names["x"], names["out"]]
        if form is not Form.TWO_PHASE_ARRAYS:
            tensors = [_tensor(tensor) for tensor in tensors]
            arrays = [aclnn_bw.aclCreateIntArray(values, len(values)) for values in arrays]
        grad_output, x, out = tensors
        kernel_size, stride, padding = arrays
        # gradInput of the C call is our out; the last 0 before it is KEEP_DTYPE.
        arguments = (
            grad_output, x, kernel_size, stride, padding,
            a["ceil_mode"], a["count_include_pad"], a["divisor_override"] or 0, 0, out,
        )  # fmt: skip
        size, executor = phase_1(*arguments)
        workspace = aclnn_bw.aclrtMalloc(size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST) if size else None
        if form is Form.PHASE_2:
            aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
            return Statement(
                "aclnnAvgPool2dBackward(workspace, size, executor)",
                {"aclnnAvgPool2dBackward": phase_2, "workspace": workspace, "size": size, "executor": executor},
            )
        parameters = [f"argument{i}" for i in range(len(arguments))]
        return Statement(
            f"size, executor = aclnnAvgPool2dBackwardGetWorkspaceSize({', '.join(parameters)})\n"
            "aclnnAvgPool2dBackward(workspace, size, executor)",
            {
                "aclnnAvgPool2dBackwardGetWorkspaceSize": phase_1,
                "aclnnAvgPool2dBackward": phase_2,
                "workspace": workspace,
                **dict(zip(parameters, arguments, strict=True)),
            },
        )

    def reference(self, problem: Problem) -> Reference:
        a = self.attributes(problem.case)
        grad_output = problem.inputs["grad_output"].astype(np.float64)
        k, s = a["kernel_size"], a["stride"]
        return Reference(
            exact=self._formula(grad_output, problem.case.shape, a),
            magnitude=np.abs(self._formula(np.abs(grad_output), problem.case.shape, a)),  # the divisor may be negative
            terms=(-(-k // s)) ** 2,
        )

    @staticmethod
    def _formula(grad_output: Array, shape: tuple[int, ...], a: Mapping[str, Any]) -> Array:
        """``gradInput[window(oh, ow)] += gradOutput[oh, ow] / divisor(oh, ow)``, all planes at once."""
        n, c, h, w = shape
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
        return np.ascontiguousarray(grad_input__hwp.transpose(2, 0, 1)).reshape(shape)

    @staticmethod
    def _pooled(size: int, a: Mapping[str, Any]) -> int:
        k, s, p = a["kernel_size"], a["stride"], a["padding"]
        out = (size + 2 * p - k + (s - 1 if a["ceil_mode"] else 0)) // s + 1
        return int(out - 1 if a["ceil_mode"] and (out - 1) * s >= size + p else out)


def _tensor(array: Array) -> Any:
    """The aclTensor that a C program makes over row-major NCHW memory."""
    dtype = {
        "float32": aclnn_bw.ACL_FLOAT, "float16": aclnn_bw.ACL_FLOAT16,
        "bfloat16": aclnn_bw.ACL_BF16, "float64": aclnn_bw.ACL_DOUBLE,
    }[array.dtype.name]  # fmt: skip
    return aclnn_bw.aclCreateTensor(array.shape, dtype, None, 0, aclnn_bw.ACL_FORMAT_NCHW, array.shape, array)


OPERATORS: dict[str, Operator] = {"avg_pool2d_backward": AvgPool2dBackward()}


def _avg(*shape: int, form: Form = Form.CALL, dtypes: tuple[str, ...] = tuple(DTYPES), **attributes: Any) -> Case:
    return Case("avg_pool2d_backward", shape, attributes, form, dtypes)


# The tiny rows measure overhead, which does not depend on the dtype.
_TINY = ("float32",)

CASES: tuple[Case, ...] = (
    _avg(32, 64, 112, 112, kernel_size=2, stride=2),
    _avg(8, 64, 112, 112, kernel_size=3, stride=2, padding=1),
    _avg(32, 256, 35, 35, kernel_size=3, stride=1, padding=1),
    _avg(32, 2048, 7, 7, kernel_size=7),
    _avg(8, 64, 56, 56, kernel_size=5, stride=1, padding=2),
    _avg(8, 64, 56, 56, kernel_size=3, stride=3),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.TWO_PHASE_ARRAYS),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.TWO_PHASE),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.PHASE_2),
)
