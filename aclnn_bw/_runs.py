"""``aclnn-bw run``: what an operator's record says, as options, and these as the arguments of phase 1."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import numpy as np

import aclnn_bw
from aclnn_bw import _native
from aclnn_bw._npy import BFLOAT16, Array, CommandError, load
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
    "kernel_size": "one or two sizes",
    "stride": "one or two steps",
    "padding": "widths, one for all or each",
    "dilation": "one or two distances",
    "input_size": "of the forward's input",
    "output_size": "of the forward's output (default: the length of --grad-output)",
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
    return {first.name: "--out", **{other.name: f"{_option(other.one_call)}-out" for other in others}}


def add_options(parser: argparse.ArgumentParser, operator: Operator) -> None:
    """Add an option for each parameter, and for each result but the first, which has --out."""
    defaults = inspect.signature(operator.function).parameters
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
            known = defaults.get(parameter.one_call)
            _add_option(parser, parameter, inspect.Parameter.empty if known is None else known.default)
    for option in list(outputs(operator).values())[1:]:
        parser.add_argument(option, metavar="FILE.npy", help="write it there")


def _add_option(parser: argparse.ArgumentParser, parameter: Parameter, default: Any) -> None:
    name, text = parameter.one_call, _TEXTS.get(parameter.one_call, parameter.one_call)
    required = default is inspect.Parameter.empty
    if not required and default is not None:
        text += f" (default: {default})"
    keywords: dict[str, Any] = {"metavar": _METAVARS.get(name, "SIZE"), "help": text}
    if parameter.kind == "read":
        keywords |= {"required": True, "metavar": "FILE.npy"}
    elif parameter.kind == "ints":
        # The size of the output need not be told.
        keywords |= {"type": int, "nargs": "+", "required": required and name != "output_size"}
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


def _self(options: argparse.Namespace, like: Array) -> Array:
    if options.self is not None:
        return load("--self", options.self, options.dtype)
    if min(options.self_shape) < 0:
        raise CommandError(f"--self-shape {' '.join(map(str, options.self_shape))}: must not be negative")
    # Its values are not read: one element stands for all of them.
    return np.broadcast_to(np.zeros((), like.dtype), options.self_shape)


def _ints(parameter: Parameter, values: list[int] | None, default: Any, first: Array) -> list[int] | None:
    if values is None:
        if parameter.one_call == "output_size":
            return list(first.shape[-1:])
        if default is None:
            return None if parameter.nullable else []
        values = [default]
    # One value stands for all of them, as in the one-call functions.
    return values * parameter.repeats if len(values) == 1 and parameter.repeats else values


def arguments(operator: Operator, options: argparse.Namespace) -> Arguments:
    """Read the files; the arguments of phase 1."""
    defaults = inspect.signature(operator.function).parameters
    values: Arguments = {}
    for parameter in operator.two_phase:
        name = parameter.one_call
        first: Any = next(iter(values.values()), None)
        if parameter.kind == "read":
            dtype = None if parameter.is_mask else options.dtype
            values[parameter.name] = load(_option(name), getattr(options, name), dtype)
        elif parameter.kind == "shape":
            values[parameter.name] = _self(options, first)
        elif parameter.kind == "ints":
            values[parameter.name] = _ints(parameter, getattr(options, name), defaults[name].default, first)
        elif parameter.kind != "written":
            values[parameter.name] = getattr(options, name)
    return {**values, **_results(operator, options, values)}


def _results(operator: Operator, options: argparse.Namespace, values: Arguments) -> Arguments:
    given = [
        options.mask_layout if parameter.kind == "layout" else values[parameter.name] or None
        if parameter.optional else values[parameter.name]
        for parameter in operator.parameters
        if not parameter.two_phase_only and parameter.kind != "written"
    ]  # fmt: skip
    written = operator.of_kind("written")
    try:
        results = _native.new_results(operator.number, tuple(given))
    except (aclnn_bw.AclnnError, OverflowError):
        # Phase 1 refuses as well, in the words of its own arguments.
        first = next(iter(values.values()))
        results = [np.empty(first.shape, np.int8 if parameter.is_mask else first.dtype) for parameter in written]
    if getattr(options, "out_dtype", None):
        dtype = BFLOAT16 if options.out_dtype == "bfloat16" else np.dtype(options.out_dtype)
        results = [np.empty(result.shape, dtype) for result in results]
    return {parameter.name: result for parameter, result in zip(written, results, strict=True)}
