"""What ``aclnn-bw run`` knows of the operators: their options, and how these become the arguments of phase 1.

An operator takes part through one entry of :data:`OPERATORS`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import aclnn_bw
from aclnn_bw import _native
from aclnn_bw._npy import BFLOAT16, Array, CommandError, load
from aclnn_bw.products import MASK_LAYOUTS

Option = Callable[[argparse.ArgumentParser], object]  # adds itself to a parser
Arguments = dict[str, Any]  # of phase 1: the C names in the order of the call; arrays, lists and numbers


@dataclass(frozen=True)
class Operator:
    """An operator of ``run``."""

    summary: str
    name: str  # what follows aclnn in the names of both phases
    options: tuple[Option, ...]
    arguments: Callable[[argparse.Namespace], Arguments]
    # The arguments that are written, and the option that says to which file.
    outputs: Mapping[str, str] = field(default_factory=lambda: {"gradInput": "--out"})


# ---- options --------------------------------------------------------------------------------------------------------


def _option(*names: str, **keywords: Any) -> Option:
    return lambda parser: parser.add_argument(*names, **keywords)


def _file(name: str, text: str) -> Option:
    return _option(name, required=True, metavar="FILE.npy", help=text)


def _sizes(name: str, metavar: str, text: str, **keywords: Any) -> Option:
    return _option(name, type=int, nargs="+", metavar=metavar, help=text, **keywords)


def _self_or_its_shape(parser: argparse.ArgumentParser) -> None:
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--self", metavar="FILE.npy", help="the forward's input; only its shape and dtype are used")
    given.add_argument("--self-shape", type=int, nargs="+", metavar="SIZE", help="its shape instead: [N] C H W")


def _cube_math_type(text: str) -> int:
    try:
        return int(aclnn_bw.CubeMathType[text])
    except KeyError:
        return int(text)  # phase 1 knows which numbers the product takes


_KERNEL_SIZE = _sizes("--kernel-size", "K", "one or two sizes", required=True)
_DILATION = _sizes("--dilation", "D", "one or two distances (default: 1)", default=[1])
_PADDING = _sizes("--padding", "P", "one or two widths (default: 0)", default=[0])
_POOLING = (
    _KERNEL_SIZE,
    _sizes("--stride", "S", "one or two steps (default: the kernel size)"),
    _PADDING,
    _option("--ceil-mode", action="store_true", help="the output size is rounded up"),
)
_MASK_LAYOUT = _option(
    "--mask-layout", choices=MASK_LAYOUTS, default=MASK_LAYOUTS[0], help="of the mask (default: %(default)s)"
)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _grad_output(options: argparse.Namespace) -> Array:
    return load("--grad-output", options.grad_output, options.dtype)


def _self(options: argparse.Namespace, grad_output: Array) -> Array:
    if options.self is not None:
        return load("--self", options.self, options.dtype)
    if min(options.self_shape) < 0:
        raise CommandError(f"--self-shape {' '.join(map(str, options.self_shape))}: must not be negative")
    # Its values are not read: one element stands for all of them.
    return np.broadcast_to(np.zeros((), grad_output.dtype), options.self_shape)


def _pooling(options: argparse.Namespace) -> Arguments:
    return {"kernelSize": options.kernel_size, "stride": options.stride, "padding": options.padding}


def _max_pooling(options: argparse.Namespace) -> Arguments:
    # Its stride may be empty, but not null.
    return {
        **_pooling(options), "stride": options.stride or [], "dilation": options.dilation,
        "ceilMode": options.ceil_mode,
    }  # fmt: skip


def _repeated(values: list[int], count: int) -> list[int]:
    """One value stands for all of them, as in the one-call functions."""
    return values * count if len(values) == 1 else values


def _possible(sizes: list[int]) -> list[int]:
    """Sizes with which an array can be made. Phase 1, which gets the real ones too, refuses what differs."""
    return [max(size, 1) for size in sizes]


def _avg_pool2d_backward(options: argparse.Namespace) -> Arguments:
    grad_output = _grad_output(options)
    x = _self(options, grad_output)
    return {
        "gradOutput": grad_output, "self": x, **_pooling(options), "ceilMode": options.ceil_mode,
        "countIncludePad": options.count_include_pad, "divisorOverride": options.divisor_override,
        "cubeMathType": options.cube_math_type, "gradInput": np.empty(x.shape, x.dtype),
    }  # fmt: skip


def _im2col_backward(options: argparse.Namespace) -> Arguments:
    grad_output = _grad_output(options)
    kernel_size, input_size = _repeated(options.kernel_size, 2), _repeated(options.input_size, 2)
    *batch, rows = grad_output.shape[:-1] or (1,)
    channels = rows // math.prod(_possible(kernel_size))
    dtype = BFLOAT16 if options.out_dtype == "bfloat16" else np.dtype(options.out_dtype or grad_output.dtype)
    return {
        "gradOutput": grad_output, "inputSize": input_size, "kernelSize": kernel_size,
        "dilation": _repeated(options.dilation, 2), "padding": _repeated(options.padding, 2),
        "stride": _repeated(options.stride, 2),
        "out": np.empty((*batch, *_possible([channels, *input_size[:2]])), dtype),
    }  # fmt: skip


def _max_pool2d_with_mask(options: argparse.Namespace) -> Arguments:
    x = load("--self", options.self, options.dtype)
    attributes = _max_pooling(options)
    try:
        out_shape, mask_shape = _native.max_pool2d_geometry(x.shape, *attributes.values())[:2]
    except aclnn_bw.AclnnError:
        out_shape = mask_shape = x.shape  # phase 1 refuses as well, in the words of its own arguments
    return {"self": x, **attributes, "out": np.empty(out_shape, x.dtype), "indices": np.empty(mask_shape, np.int8)}


def _max_pool2d_with_mask_backward(options: argparse.Namespace) -> Arguments:
    grad_output = _grad_output(options)
    x = _self(options, grad_output)
    mask = load("--mask", options.mask)
    grad_input = np.empty(x.shape, x.dtype)
    return {"gradOutput": grad_output, "self": x, "indices": mask, **_max_pooling(options), "gradInput": grad_input}


def _replication_pad2d_backward(options: argparse.Namespace) -> Arguments:
    grad_output = _grad_output(options)
    x = _self(options, grad_output)
    padding = _repeated(options.padding, 4)
    return {"gradOutput": grad_output, "self": x, "padding": padding, "gradInput": np.empty(x.shape, x.dtype)}


def _upsample_nearest_exact1d_backward(options: argparse.Namespace) -> Arguments:
    grad_output = _grad_output(options)
    return {
        "gradOutput": grad_output, "outputSize": options.output_size or list(grad_output.shape[-1:]),
        "inputSize": options.input_size, "scales": options.scales,
        "out": np.empty(_possible([*options.input_size, 1, 1][:3]), grad_output.dtype),
    }  # fmt: skip


# ---- the operators --------------------------------------------------------------------------------------------------

_CUBE_MATH_TYPES = ", ".join(f"{int(member)} {member.name}" for member in aclnn_bw.CubeMathType)
_FLOATING = ("float32", "float64", "float16", "bfloat16")
_OF_POOLING = _file("--grad-output", "gradient of the pooled output")

OPERATORS: dict[str, Operator] = {
    "avg_pool2d_backward": Operator(
        summary="gradient of average pooling (AvgPool2dBackward)",
        name="AvgPool2dBackward",
        options=(
            _OF_POOLING,
            _self_or_its_shape,
            *_POOLING,
            _option(
                "--count-include-pad", action=argparse.BooleanOptionalAction, default=True,
                help="padding counts in the divisor (default: it does)",
            ),
            _option("--divisor-override", type=int, default=0, metavar="D",
                    help="divide by D instead (default: 0, none)"),
            _option("--cube-math-type", type=_cube_math_type, default=0, metavar="T",
                    help=f"{_CUBE_MATH_TYPES} (default: 0)"),
        ),
        arguments=_avg_pool2d_backward,
    ),
    "im2col_backward": Operator(
        summary="columns folded back to an image: gradient of im2col (Im2colBackward)",
        name="Im2colBackward",
        options=(
            _file("--grad-output", "gradient of the columns: [N] C*kH*kW L"),
            _sizes("--input-size", "SIZE", "one or two sizes of the image: H W", required=True),
            _KERNEL_SIZE,
            _DILATION,
            _PADDING,
            _sizes("--stride", "S", "one or two steps (default: 1)", default=[1]),
            _option("--out-dtype", choices=_FLOATING, help="dtype of the result (default: that of --grad-output)"),
        ),
        arguments=_im2col_backward,
        outputs={"out": "--out"},
    ),
    "max_pool2d_with_mask": Operator(
        summary="max pooling that keeps a mask of where the maxima lie (MaxPool2dWithMask)",
        name="MaxPool2dWithMask",
        options=(
            _file("--self", "what is pooled: [N] C H W"),
            *_POOLING,
            _DILATION,
            _MASK_LAYOUT,
            _option("--mask-out", metavar="FILE.npy", help="write the mask there"),
        ),
        arguments=_max_pool2d_with_mask,
        outputs={"out": "--out", "indices": "--mask-out"},
    ),
    "max_pool2d_with_mask_backward": Operator(
        summary="gradient of max pooling from its mask (MaxPool2dWithMaskBackward)",
        name="MaxPool2dWithMaskBackward",
        options=(
            _OF_POOLING,
            _self_or_its_shape,
            _file("--mask", "what max_pool2d_with_mask wrote as --mask-out"),
            *_POOLING,
            _DILATION,
            _MASK_LAYOUT,
        ),
        arguments=_max_pool2d_with_mask_backward,
    ),
    "replication_pad2d_backward": Operator(
        summary="gradient of padding with copies of the border (ReplicationPad2dBackward)",
        name="ReplicationPad2dBackward",
        options=(
            _file("--grad-output", "gradient of the padded image"),
            _self_or_its_shape,
            _sizes("--padding", "P", "left right top bottom, or one width for all; a negative one crops",
                   required=True),
        ),
        arguments=_replication_pad2d_backward,
    ),
    "upsample_nearest_exact1d_backward": Operator(
        summary="gradient of nearest-exact interpolation (UpsampleNearestExact1dBackward)",
        name="UpsampleNearestExact1dBackward",
        options=(
            _file("--grad-output", "gradient of the interpolated output: N C L"),
            _sizes("--input-size", "SIZE", "shape of the forward's input: N C L", required=True),
            _sizes("--output-size", "SIZE", "length of its output (default: that of --grad-output)"),
            _option("--scales", type=float, default=0.0, metavar="S",
                    help="factor that the forward was given (default: 0, none)"),
        ),
        arguments=_upsample_nearest_exact1d_backward,
        outputs={"out": "--out"},
    ),
}  # fmt: skip
