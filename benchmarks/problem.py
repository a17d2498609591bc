"""What a case is, and how an operator takes part: how its data are made, how we are called, what the formula gives."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import aclnn_bw

from .check import Array, Reference, WrongResult, check
from .timing import Statement

DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype(np.float64),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}
REAL = ("float32", "float16", "bfloat16", "float64")
# The tiny rows measure overhead, which does not depend on the dtype.
TINY = ("float32",)
# A layout.
LAST = "channels last"
# Of the planes of a family, and the lengths of its rows.
SIDES = (4, 7, 14, 28, 56, 112)
LENGTHS = (20, 80, 320, 1280, 5120, 20480)
_SHORT = {
    "kernel_size": "k", "stride": "s", "padding": "p", "dilation": "d", "output_size": "-> ", "mask_layout": "",
}  # fmt: skip


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
    shape: tuple[int, ...]  # of gradInput; of a forward operator's input
    attributes: Mapping[str, Any]
    form: Form = Form.CALL
    dtypes: tuple[str, ...] = REAL

    @property
    def title(self) -> str:
        words = ["x".join(map(str, self.shape))]
        words += [f"{_SHORT.get(name, name + '=')}{_compact(value)}" for name, value in self.attributes.items()]
        return " ".join(words) + (f", {self.form.value}" if self.form.value else "")


def _compact(value: Any) -> str:
    return str(value).replace(" ", "")


@dataclass(frozen=True)
class Problem:
    """A case in one dtype, with its data."""

    case: Case
    dtype: np.dtype[Any]
    inputs: Mapping[str, Array]
    nbytes: int  # what the operator must read and write
    pieces: int = 1  # an image is so many times the same channels, and the references are of these alone

    @property
    def name(self) -> str:
        return f"{self.case.operator} {self.case.title} {self.dtype}"


@dataclass(frozen=True)
class Contestant:
    """One implementation of a problem: writing into memory it was given, into fresh memory, or each in turn."""

    name: str
    into: Statement | None
    outs: tuple[Array, ...]  # where ``into`` writes
    fresh: Statement | None
    # What is compared with the references: made of ``outs``, or of what ``fresh`` gave.
    results: Callable[[tuple[Any, ...]], tuple[Array, ...]] = lambda outs: outs
    note: str = ""  # what a reader of its times must know


@dataclass(frozen=True)
class Family:
    """Problems of one kind that grow."""

    title: str
    operator: str
    channels: int  # of a small problem in float32, so that a step is nearly its power of 4 in KiB
    attributes: Callable[[int], Mapping[str, Any]]  # of a plane of this side
    sides: tuple[int, ...] = SIDES
    axes: int = 2

    def case(self, step: int, dtype: str) -> Case:
        """Give the case that must read and write about 4**step KiB."""
        side = self.sides[min(step, len(self.sides) - 1)]
        channels = self.channels * 4 // DTYPES[dtype].itemsize * (4 if step >= len(self.sides) else 1)
        batch = 4 ** max(step - len(self.sides), 0)
        return Case(self.operator, (batch, channels, *[side] * self.axes), self.attributes(side), dtypes=(dtype,))


def same(**attributes: Any) -> Callable[[int], Mapping[str, Any]]:
    """Give these attributes, whatever the side."""
    return lambda side: attributes


class Drawn(NamedTuple):
    """What `Operator.draw` gives."""

    plane: tuple[int, ...]  # of the case's shape
    attributes: Mapping[str, Any]
    elements: int  # of a plane on the operator's other side


class Operator(ABC):
    """How an operator is benchmarked."""

    call: str  # the one-call function
    phases: str  # what follows aclnn in the names of both phases
    arrays: tuple[str, ...]  # the inputs that the one call takes, in its order
    signature: Mapping[str, Any]  # the attributes that follow them, with the defaults; None if one must be given

    @classmethod
    def row(
        cls, *shape: int, form: Form = Form.CALL, dtypes: tuple[str, ...] = REAL, **attributes: Any
    ) -> Case:
        """Give a case of this operator."""
        return Case(cls.call, shape, attributes, form, dtypes)

    @abstractmethod
    def small(self) -> tuple[Case, ...]:
        """Give problems that the tests may pose, the usual one first."""

    @abstractmethod
    def rows(self) -> tuple[Case, ...]:
        """Give the rows of ``python -m benchmarks``."""

    @abstractmethod
    def more_rows(self) -> tuple[Case, ...]:
        """Give what `rows` never takes: other kernels, strides and dilations, a network's last layers, other layouts.

        "input" is the layout of the first input, "output" that of every floating-point output.
        """

    @abstractmethod
    def families(self) -> dict[str, Family]:
        """Give the problems of ``python -m benchmarks.growth``, by a short name of each."""

    @abstractmethod
    def images(self) -> tuple[tuple[tuple[int, ...], Mapping[str, Any]], ...]:
        """Give shapes without a batch, some MiB for two of it, and attributes, for ``python -m benchmarks.strided``."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, plane: tuple[int, int]) -> Drawn:
        """Draw attributes for planes of this height and width as networks have them."""

    def bytes_of_places(self, case: Case) -> int:
        """Count the bytes that say where maxima lie, of those that the operator must read and write."""
        return 0

    def attributes(self, case: Case) -> dict[str, Any]:
        """All attributes of the case in the order of the call."""
        return {name: case.attributes.get(name, default) for name, default in self.signature.items()}

    def keywords(self, case: Case) -> dict[str, Any]:
        """Give what the one call takes by name."""
        return {}

    @abstractmethod
    def problem(self, case: Case, dtype: np.dtype[Any], rng: np.random.Generator) -> Problem:
        """Make the data."""

    @abstractmethod
    def phase_1(self, problem: Problem, outs: tuple[Array, ...]) -> list[Any]:
        """Give the arguments of phase 1: arrays, lists of ints, numbers."""

    @abstractmethod
    def references(self, problem: Problem) -> tuple[Reference, ...]:
        """Compute the formula, plainly and in float64: one for each result."""

    def outs(self, problem: Problem) -> tuple[Array, ...]:
        """Make memory for the results."""
        return (np.empty(problem.case.shape, problem.dtype),)

    def repeated(self, problem: Problem, batch: int) -> Problem:
        """Give the problem of a larger batch, a multiple of this one, that holds these images over and over."""
        case = replace(problem.case, shape=(batch, *problem.case.shape[1:]))
        inputs = {name: self._repeated(name, array, case) for name, array in problem.inputs.items()}
        return Problem(case, problem.dtype, inputs, problem.nbytes * batch // problem.case.shape[0])

    def _repeated(self, name: str, array: Array, case: Case) -> Array:
        return np.resize(array, (case.shape[0], *array.shape[1:]))

    def spread(self, problem: Problem, case: Case) -> Problem:
        """Give the problem of this case whose planes are those of a smaller one, an image, over and over.

        Its channels are a multiple of the image's.
        """
        batch, channels, *plane = case.shape
        pieces = channels // problem.case.shape[1]
        images = replace(case, shape=(batch * pieces, problem.case.shape[1], *plane))
        inputs = {
            name: self._repeated(name, array, images).reshape(batch, pieces * array.shape[1], *array.shape[2:])
            for name, array in problem.inputs.items()
        }
        return Problem(case, problem.dtype, inputs, problem.nbytes * batch * pieces, pieces)

    def ours(self, problem: Problem, outs: tuple[Array, ...] | None = None) -> Contestant:
        """Give our statements in the case's form; they write into ``outs``, or into memory made here."""
        outs = outs or self.outs(problem)
        if problem.case.form is not Form.CALL:
            return Contestant("ours", self._two_phase(problem, outs), outs, None)
        call = self.source(problem.case)
        names = {**problem.inputs, "out": outs[0], self.call: getattr(aclnn_bw, self.call)}
        return Contestant("ours", Statement(f"{call}, out=out)", names), outs, Statement(f"{call})", names))

    def source(self, case: Case) -> str:
        """Write the one call, open at its end; a caller leaves trailing defaults out."""
        values, defaults = list(self.attributes(case).values()), list(self.signature.values())
        while values and values[-1] == defaults[len(values) - 1]:
            values.pop()
        keywords = [f"{name}={value!r}" for name, value in self.keywords(case).items()]
        return f"{self.call}({', '.join([*self.arrays, *map(repr, values), *keywords])}"

    def _two_phase(self, problem: Problem, outs: tuple[Array, ...]) -> Statement:
        name_1, name_2 = f"aclnn{self.phases}GetWorkspaceSize", f"aclnn{self.phases}"
        phase_1, phase_2 = getattr(aclnn_bw, name_1), getattr(aclnn_bw, name_2)
        arguments = self.phase_1(problem, outs)
        if problem.case.form in (Form.TWO_PHASE, Form.PHASE_2):
            arguments = [_handle(argument) for argument in arguments]
        size, executor = phase_1(*arguments)
        workspace = aclnn_bw.aclrtMalloc(size, aclnn_bw.ACL_MEM_MALLOC_HUGE_FIRST) if size else None
        if problem.case.form is Form.PHASE_2:
            aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
            names = {name_2: phase_2, "workspace": workspace, "size": size, "executor": executor}
            return Statement(f"{name_2}(workspace, size, executor)", names)
        parameters = [f"argument{i}" for i in range(len(arguments))]
        return Statement(
            f"size, executor = {name_1}({', '.join(parameters)})\n{name_2}(workspace, size, executor)",
            {name_1: phase_1, name_2: phase_2, "workspace": workspace, **dict(zip(parameters, arguments, strict=True))},
        )


class Gradient(Operator):
    """An operator whose result is a sum of elements of grad_output."""

    def references(self, problem: Problem) -> tuple[Reference, ...]:
        grad_output = problem.inputs["grad_output"]
        if grad_output.dtype.kind == "c":
            wide = grad_output.astype(np.complex128)
            size: Array = np.abs(wide.real) + np.abs(wide.imag)
        else:
            wide = grad_output.astype(np.float64)
            size = np.abs(wide)
        # A divisor may be negative, hence the outer abs.
        magnitude = np.abs(self.formula(size, problem))
        return (Reference(self.formula(wide, problem), magnitude, self.terms(problem)),)

    def _repeated(self, name: str, array: Array, case: Case) -> Array:
        # Zeros that nobody reads take no memory until they are written.
        return np.zeros(case.shape, array.dtype) if name == "x" else super()._repeated(name, array, case)

    @abstractmethod
    def formula(self, grad_output: Array, problem: Problem) -> Array:
        """Compute the gradient, in grad_output's own dtype."""

    @abstractmethod
    def terms(self, problem: Problem) -> int | Array:
        """Count the terms of the longest sum, or of each sum in a plane."""


def normal(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Draw normal numbers; complex ones have normal parts."""
    if dtype.kind == "c":
        parts = rng.standard_normal((*shape, 2), np.float32).astype(dtype.type(0).real.dtype)
        return parts.view(dtype)[..., 0]
    return rng.standard_normal(shape, np.float32).astype(dtype, copy=False)


def channels_last(array: Array) -> Array:
    """Give the same values with axis 1 innermost in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def _handle(argument: Any) -> Any:
    """The handle that a C program makes: a tensor over row-major memory, or an int array."""
    if isinstance(argument, list):
        return aclnn_bw.aclCreateIntArray(argument, len(argument))
    if not isinstance(argument, np.ndarray):
        return argument
    dtype = {
        "float32": aclnn_bw.ACL_FLOAT, "float16": aclnn_bw.ACL_FLOAT16, "bfloat16": aclnn_bw.ACL_BF16,
        "float64": aclnn_bw.ACL_DOUBLE, "complex64": aclnn_bw.ACL_COMPLEX64, "complex128": aclnn_bw.ACL_COMPLEX128,
        "int8": aclnn_bw.ACL_INT8, "int64": aclnn_bw.ACL_INT64,
    }[argument.dtype.name]  # fmt: skip
    formats = {3: aclnn_bw.ACL_FORMAT_NCL, 4: aclnn_bw.ACL_FORMAT_NCHW}
    shape = argument.shape
    return aclnn_bw.aclCreateTensor(shape, dtype, None, 0, formats[len(shape)], shape, argument)


def sums_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Tell the type in which we sum; a peer may sum in the elements' own."""
    return DTYPES["float32"] if dtype.itemsize < 4 else dtype


def check_contestant(
    contestant: Contestant, problem: Problem, references: tuple[Reference, ...], *, accumulated_in: np.dtype[Any]
) -> None:
    """Run its statements, and raise WrongResult unless every image of every result is right.

    The references may be of the first images alone if the others repeat them, or of the first piece of an image.
    """
    who = f"{contestant.name}, {problem.name}"
    runs: list[tuple[tuple[Any, ...], str]] = []
    if contestant.into:
        for out in contestant.outs:
            out.fill(-1 if out.dtype.kind == "i" else np.nan)
        contestant.into.run()
        runs.append((contestant.outs, who))
    if contestant.fresh:
        returned = contestant.fresh.run()
        runs.append((returned if isinstance(returned, tuple) else (returned,), f"{who}, fresh output"))
    for outs, name in runs:
        for result, reference in zip(contestant.results(outs), references, strict=True):
            drawn, *shape = reference.exact.shape
            expected = (problem.case.shape[0], shape[0] * problem.pieces, *shape[1:])
            if result.shape != expected:
                raise WrongResult(f"{name} gave {result.shape}: must be {expected}")
            result = result.reshape(-1, *shape)
            first = result[:drawn]
            check(first, reference, problem.dtype, accumulated_in=accumulated_in, who=name)
            for begin in range(drawn, len(result), drawn):
                images = result[begin : begin + drawn]
                # Equal images mostly have equal bits, which is quicker to see.
                if not np.array_equal(images, first):
                    where = f"{name}, from image {begin} on"
                    check(images, reference, problem.dtype, accumulated_in=accumulated_in, who=where)
