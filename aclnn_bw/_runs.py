"""``aclnn-bw run``: what an operator's record says, as options, and these as the arguments of phase 1."""

from __future__ import annotations

import argparse
import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import aclnn_bw
from aclnn_bw import _native
from aclnn_bw._npy import BFLOAT16, Array, CommandError, Stored, load
from aclnn_bw._records import OPERATORS as RECORDS
from aclnn_bw._records import Operator, Parameter
from aclnn_bw.products import MASK_LAYOUTS

OPERATORS = {operator.one_call: operator for operator in RECORDS.values()}
Arguments = dict[str, Any]  # of phase 1: the C names in the order of the call; arrays, lists and numbers

# What an option is, by the name of its argument; the defaults are those of the one-call function.
_METAVARS = {
    "kernel_size": "K", "stride": "S", "padding": "P", "dilation": "D", "divisor_override": "D", "scales": "S",
    "cube_math_type": "T",
}  # fmt: skip
_TEXTS = {
    "grad_output": "gradient of the operator's output",
    "mask": "what the forward wrote as --mask-out",
    "indices": "what the forward wrote as --indices-out",
    "kernel_size": "one or two sizes",
    "stride": "one or two steps",
    "padding": "widths, one for all or each",
    "dilation": "one or two distances",
    "input_size": "of the forward's input",
    "output_size": "of the forward's output",
    "ceil_mode": "the output size is rounded up",
    "count_include_pad": "padding counts in the divisor",
    "divisor_override": "divide by D instead",
    "scales": "factor that the forward was given",
    "cube_math_type": ", ".join(f"{int(member)} {member.name}" for member in aclnn_bw.CubeMathType),
    "mask_layout": "of the mask",
}
_DTYPES = ("float32", "float64", "float16", "bfloat16")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def outputs(operator: Operator) -> dict[str, str]:
    """Tell the arguments that are written, and the option that says to which file."""
    first, *others = operator.of_kind("written")
    names = {other.name: _option(other.one_call.removesuffix("_out")) for other in others}
    return {first.name: "--out", **{name: f"{option}-out" for name, option in names.items()}}


def value_of(options: argparse.Namespace, option: str) -> Any:
    """What an option was given, or its default; None for one that there is not."""
    return getattr(options, option.removeprefix("--").replace("-", "_"), None)


def _defaults(operator: Operator) -> dict[str, Any]:
    """Those of the one-call function; where it has none, what may be left out all the same."""
    known = inspect.signature(operator.function).parameters
    found = {name: parameter.default for name, parameter in known.items()}
    for parameter in operator.parameters:
        if found.get(parameter.one_call) is inspect.Parameter.empty:
            if parameter.kind == "bool":
                found[parameter.one_call] = False
            elif parameter.empty:
                found[parameter.one_call] = None
    return found


def add_options(parser: argparse.ArgumentParser, operator: Operator) -> None:
    """Add an option for each parameter, and for each result but the first, which has --out."""
    defaults = _defaults(operator)
    for parameter in operator.parameters:
        if parameter.kind == "written":
            if parameter.own_dtype:
                parser.add_argument("--out-dtype", choices=_DTYPES, help="of the result (default: that of the input)")
        elif parameter.kind == "shape":
            given = parser.add_mutually_exclusive_group(required=True)
            text = "the forward's input; only its shape and dtype are used"
            given.add_argument("--self", metavar="FILE.npy", help=text)
            given.add_argument("--self-shape", type=int, nargs="+", metavar="SIZE", help="its shape instead")
        else:
            _add_option(parser, operator, parameter, defaults.get(parameter.one_call, inspect.Parameter.empty))
    for option in list(outputs(operator).values())[1:]:
        parser.add_argument(option, metavar="FILE.npy", help="write it there")


def _add_option(parser: argparse.ArgumentParser, operator: Operator, parameter: Parameter, default: Any) -> None:
    name, text = parameter.one_call, _TEXTS.get(parameter.one_call, parameter.one_call)
    required = default is inspect.Parameter.empty
    if not required and default is not None:
        text += f" (default: {default})"
    keywords: dict[str, Any] = {"metavar": _METAVARS.get(name, "SIZE"), "help": text}
    if parameter.kind == "read":
        keywords |= {"required": True, "metavar": "FILE.npy"}
    elif parameter.kind == "ints":
        if parameter.known:
            text += f" (default: the length of {_option(operator.parameters[0].one_call)})"
        keywords |= {"type": int, "nargs": "+", "required": required and not parameter.known, "help": text}
    elif parameter.kind == "bool":
        action = argparse.BooleanOptionalAction if default else "store_true"
        keywords = {"action": action, "default": default, "help": text}
    elif parameter.kind == "layout":
        keywords = {"choices": MASK_LAYOUTS, "default": default, "help": text}
    else:
        number = float if parameter.kind == "real" else _cube_math_type if name == "cube_math_type" else int
        keywords |= {"type": number, "default": number(0)}
    parser.add_argument(_option(name), **keywords)


def _cube_math_type(text: str | int) -> int:
    try:
        return int(aclnn_bw.CubeMathType[str(text)])
    except KeyError:
        return int(text)  # phase 1 knows which numbers the product takes


def _self(options: argparse.Namespace, like: Stored) -> Array:
    if options.self is not None:
        return load("--self", options.self, options.dtype, values=False).unread()
    if min(options.self_shape) < 0:
        raise CommandError(f"--self-shape {' '.join(map(str, options.self_shape))}: must not be negative")
    # Its values are not read: one element stands for all of them.
    return np.broadcast_to(np.zeros((), like.dtype), options.self_shape)


def _ints(parameter: Parameter, values: list[int] | None, default: Any, first: Stored) -> list[int] | None:
    if values is None:
        if parameter.known:
            return list(first.shape[-1:])
        if default is None:
            return None if parameter.nullable else []
        values = [default]
    # One value stands for all of them, as in the one-call functions.
    return values * parameter.repeats if len(values) == 1 and parameter.repeats else values


class Result(NamedTuple):
    """What is to be written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_BATCH_BYTES = 1 << 27  # of a batch's tensors: enough for all threads, and little beside a machine's memory


class Work:
    """A run: what files and numbers it was given, and its batches along the first axis, which go their own ways."""

    def __init__(self, operator: Operator, options: argparse.Namespace, tell: Callable[[str], None]) -> None:
        """Map the files; `tell` is told which."""
        self.operator, self.options = operator, options
        defaults = _defaults(operator)
        self.values: Arguments = {}
        for parameter in operator.two_phase:
            name = parameter.one_call
            first: Any = next(iter(self.values.values()), None)
            if parameter.kind == "read":
                tell(f"reading {getattr(options, name)}")
                dtype = None if parameter.is_mask or parameter.is_indices else options.dtype
                self.values[parameter.name] = load(_option(name), getattr(options, name), dtype)
            elif parameter.kind == "shape":
                self.values[parameter.name] = _self(options, first)
            elif parameter.kind == "ints":
                self.values[parameter.name] = _ints(parameter, getattr(options, name), defaults[name], first)
            elif parameter.kind != "written":
                self.values[parameter.name] = getattr(options, name)
        self._first: Stored = next(iter(self.values.values()))
        self.batched = len(self._first.shape) == (3 if operator.parameters[0].sampled else 4)
        self.samples = self._first.shape[0] if self.batched else 1
        self.results = self._results()
        tensors = [value for value in self.values.values() if isinstance(value, Stored)] + [*self.results.values()]
        size = sum(math.prod(tensor.shape) * tensor.dtype.itemsize for tensor in tensors)
        self.begin = 0  # of the batch that runs
        self.step = max(1, _BATCH_BYTES * self.samples // max(1, size)) if self.batched else 1

    def _unread(self) -> Arguments:
        """The arguments without their values."""
        return {name: value.unread() if isinstance(value, Stored) else value for name, value in self.values.items()}

    def _cut(self, parameter: Parameter, value: Any, begin: int, end: int) -> Any:
        if isinstance(value, np.ndarray):
            return value[begin:end]
        if parameter.sampled and len(value) == 3:
            return [end - begin, *value[1:]]
        return value

    def _results(self) -> dict[str, Result]:
        values = self._unread()
        given = [
            self.options.mask_layout if parameter.kind == "layout" else values[parameter.name] or None
            if parameter.optional else values[parameter.name]
            for parameter in self.operator.parameters
            if not parameter.two_phase_only and parameter.kind != "written"
        ]  # fmt: skip
        written = self.operator.of_kind("written")
        try:
            found = [Result(*made) for made in _native.result_shapes(self.operator.number, tuple(given))]
        except (aclnn_bw.AclnnError, OverflowError):
            # Phase 1 refuses as well, in the words of its own arguments.
            kinds = [np.int8 if one.is_mask else np.int64 if one.is_indices else self._first.dtype for one in written]
            found = [Result(self._first.shape[:8], np.dtype(kind)) for kind in kinds]
        if getattr(self.options, "out_dtype", None):
            dtype = BFLOAT16 if self.options.out_dtype == "bfloat16" else np.dtype(self.options.out_dtype)
            found = [Result(result.shape, dtype) for result in found]
        return {parameter.name: result for parameter, result in zip(written, found, strict=True)}

    def check(self) -> None:
        """Phase 1 of it all, with no memory for the results yet."""
        results = {}
        for name, (shape, dtype) in self.results.items():
            called = {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BF16"}.get(dtype.name, dtype.name.upper())
            layout = {3: aclnn_bw.ACL_FORMAT_NCL, 4: aclnn_bw.ACL_FORMAT_NCHW}.get(len(shape), aclnn_bw.ACL_FORMAT_ND)
            kind = getattr(aclnn_bw, f"ACL_{called}", aclnn_bw.ACL_FLOAT)  # of a strange dtype, which phase 1 refuses
            results[name] = aclnn_bw.aclCreateTensor(shape, kind, format=layout)
        self.phase_1({**self._unread(), **results})

    def phase_1(self, arguments: Arguments) -> tuple[int, Any]:
        """The operator's."""
        call = getattr(aclnn_bw, f"aclnn{self.operator.name}GetWorkspaceSize")
        found: tuple[int, Any] = call(*arguments.values())
        return found

    def batches(self) -> Iterator[tuple[int, Arguments]]:
        """Read one batch after the other: how many samples are done then, and its arguments with new results."""
        whole = self.step >= self.samples
        for begin in range(0, max(1, self.samples), self.step):
            self.begin, end = begin, min(begin + self.step, self.samples)
            arguments: Arguments = {}
            for parameter in self.operator.two_phase:
                name, value = parameter.name, self.values.get(parameter.name)
                if parameter.kind == "written":
                    shape, dtype = self.results[name]
                    arguments[name] = np.empty(shape if whole else (end - begin, *shape[1:]), dtype)
                elif not isinstance(value, Stored):
                    arguments[name] = value if whole else self._cut(parameter, value, begin, end)
                elif whole:
                    arguments[name] = value.part()
                elif parameter.is_mask:
                    arguments[name] = np.zeros((end - begin, *value.shape[1:]), np.int8)
                    size = self._words(value.shape)
                    arguments[name].reshape(-1)[: (end - begin) * size] = value.flat(begin * size, end * size)
                else:
                    arguments[name] = value.part(begin, end)
            yield end, arguments

    def _words(self, mask: tuple[int, ...]) -> int:
        """The bytes of a mask that a sample has; those of all samples lie at the container's beginning."""
        _, channels, positions, width = mask
        if self.options.mask_layout == "argmax" and positions > 1:
            made = any(parameter.is_mask for parameter in self.operator.of_kind("written"))
            pooled = next(iter(self.results.values())) if made else self._first
            return 4 * math.prod(pooled.shape[1:])
        return -(-channels // 16) * positions * width

    def filled(self, name: str, array: Array) -> Array:
        """What of a batch's result belongs into the file, one batch behind another."""
        masks = [parameter.name for parameter in self.operator.parameters if parameter.is_mask]
        if self.step < self.samples and name in masks:
            return array.reshape(-1)[: array.shape[0] * self._words(array.shape)]
        return array

    def named(self, error: aclnn_bw.AclnnError) -> str:
        """The message of a refusal, behind the option that it is about, with places of the whole arrays."""
        sample = r"(?<=\[)\d+(?=(, \d+){3}\] = )|(?<=ow\) = \()\d+"
        message = re.sub(sample, lambda found: str(int(found[0]) + self.begin), str(error))
        for parameter in self.operator.parameters:
            if parameter.name == error.argument:
                option = _option(parameter.one_call)
                if parameter.kind == "written":
                    option = outputs(self.operator)[parameter.name]
                elif parameter.kind == "shape" and self.options.self is None:
                    option = "--self-shape"
                value = value_of(self.options, option)
                told = " ".join(map(str, value if isinstance(value, list) else [] if value is None else [value]))
                return f"{option} {told}: {message}" if told else f"{option}: {message}"
        return message
