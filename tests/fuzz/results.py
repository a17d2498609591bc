"""What an accepted call must compute, from the arguments as they were understood, by the twin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz import twin
from fuzz.calls import DTYPES, Drawn
from fuzz.rules import View

# What an average may be off: of the largest term, for each dtype.
_TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "float16": 1.5e-3, "bfloat16": 1e-2}
_MOST_POSITIONS = 10_000  # of a kernel, beyond which the twin would take too long


class BadIndex(Exception):
    """An argmax mask holds an index outside its window: phase 2 refuses it."""


def _pair(values: Any) -> tuple[int, int]:
    return values[0], values[-1]


def expected(drawn: Drawn) -> list[np.ndarray[Any, Any]] | None:
    """The outputs in argument order; None where the twin would take too long. Raises BadIndex."""
    a = {name: argument.meaning for name, argument in drawn.arguments.items()}
    two = drawn.face == "two-phase"
    name = "self" if drawn.operator == "max forward" else "gradOutput" if two else "grad_output"
    view, array = a[name], drawn.arguments[name].array
    assert isinstance(view, View)
    assert array is not None
    # A copy, before anything is written.
    values = array.astype(np.complex128 if view.dtype.startswith("complex") else np.float64)
    dtype = DTYPES[view.dtype]
    if drawn.operator == "pad":
        pads = a["padding"] * 4 if len(a["padding"]) == 1 else a["padding"]
        return [twin.replication_pad2d_backward(values, a["self"].shape, pads).astype(dtype)]
    if drawn.operator == "upsample":
        shape = tuple(a["inputSize" if two else "input_size"])
        return [twin.upsample_nearest_exact1d_backward(values, shape, a["scales"] or 0.0).astype(dtype)]
    kernel = _pair(a["kernelSize" if two else "kernel_size"])
    stride, pad = _pair(a["stride"] or kernel), _pair(a["padding"])
    if drawn.operator == "avg":
        include, divisor = a["countIncludePad" if two else "count_include_pad"], a[_DIVISOR[two]]
        return [twin.avg_pool2d_backward(values, a["self"].shape, kernel, stride, pad, include, divisor)]
    if math.prod(kernel) > _MOST_POSITIONS:
        return None
    if drawn.operator == "im2col":
        size, dilation = _pair(a["inputSize" if two else "input_size"]), _pair(a["dilation"])
        windows = (twin.pooled(*axis) for axis in zip(size, kernel, stride, pad, (False, False), dilation, strict=True))
        channels = values.shape[-2] // math.prod(kernel)
        columns = values.reshape(*values.shape[:-2], channels, math.prod(kernel), *windows)
        result = twin.from_columns(columns, size, kernel, stride, pad, dilation).astype(dtype)
        return [result if a["out"] is None else result.astype(DTYPES[a["out"].dtype])]
    argmax = drawn.layout == "argmax" and math.prod(kernel) > 1
    if drawn.operator == "max":
        mask = drawn.arguments["indices" if two else "mask"].array
        assert mask is not None
        size = a["self"].shape[-2:]
        if argmax:
            indices = mask.reshape(-1).view(np.uint8)[: 4 * values.size].view("<i4").reshape(values.shape)
            sums = twin.from_indices(values, indices.astype(np.int64), size, kernel, stride, pad)
            if sums is None:
                raise BadIndex
        else:
            columns = _bits(mask.reshape(-1).view(np.uint8), values.shape, math.prod(kernel)) * values[..., None, :, :]
            sums = twin.from_columns(columns, size, kernel, stride, pad)
        return [sums.astype(dtype)]
    out, positions = twin.max_pool2d(values, kernel, stride, pad, a["ceilMode" if two else "ceil_mode"])
    images = positions.reshape(math.prod(positions.shape[:-3]), *positions.shape[-3:])
    mask = twin.argmax_mask(images, values.shape, kernel, stride, pad) if argmax else twin.bitmask(images, kernel)
    return [out.astype(dtype), mask.reshape(*values.shape[:-2], *mask.shape[-2:])]


_DIVISOR = ("divisor_override", "divisorOverride")


def _bits(mask: np.ndarray[Any, Any], shape: tuple[int, ...], positions: int) -> np.ndarray[Any, Any]:
    """Read the layout "bitmask": [..., C, kH*kW, Ho, Wo] for an output [..., C, Ho, Wo]."""
    *batch, channels, oh, ow = shape
    images, windows, groups = math.prod(batch), oh * ow, -(-channels // 16)
    row = (-(-windows // 16) + 1) * 16
    words = mask[: 2 * images * groups * positions * row].view("<u2").reshape(images, groups, positions, row)
    c = np.arange(channels)
    bits = words[:, c // 16, :, :windows] >> (c % 16)[:, None, None] & 1
    return bits.reshape(*batch, channels, positions, oh, ow)


def agrees(drawn: Drawn, result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether a result is the expected one: bit for bit but for the averages, whose terms are fractions."""
    if result.shape != wanted.shape:
        return False
    if drawn.operator != "avg":
        return bool((result == wanted).all())
    grad = drawn.arguments["gradOutput" if "gradOutput" in drawn.arguments else "grad_output"].meaning
    reduced = drawn.face == "two-phase" and drawn.product != "Host" and grad.dtype == "float32"
    tolerance = _TOLERANCE["float16" if reduced else grad.dtype]
    return bool((np.abs(result.astype(np.float64) - wanted) <= tolerance * (np.abs(wanted) + 1)).all())
