"""What an accepted call must compute, from the arguments as they were understood, by the twin in reference.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import reference

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
    grad = drawn.arguments.get("gradOutput") or drawn.arguments.get("grad_output") or drawn.arguments["self"]
    kernel = a.get("kernelSize") or a.get("kernel_size")
    if kernel and math.prod(_pair(kernel)) > _MOST_POSITIONS:
        return None
    assert isinstance(grad.meaning, View)
    values = np.array(grad.array)  # a copy, before anything is written
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    values = values.astype(wide)
    dtype = DTYPES[grad.meaning.dtype]
    if drawn.operator == "avg":
        pool = (_pair(kernel), _pair(a["stride"]) if a["stride"] else None, _pair(a["padding"]))
        ceil = a["ceilMode" if "ceilMode" in a else "ceil_mode"]
        include = a["countIncludePad" if "ceilMode" in a else "count_include_pad"]
        divisor = a["divisorOverride" if "ceilMode" in a else "divisor_override"]
        return [reference.avg_pool2d_backward_quick(values, a["self"].shape, *pool, ceil, include, divisor or None)]
    if drawn.operator in ("max", "max forward"):
        geometry = (
            _pair(kernel), _pair(a["stride"]) if a["stride"] else None, _pair(a["padding"]),
            a["ceilMode" if "ceilMode" in a else "ceil_mode"],
        )  # fmt: skip
        return _max(drawn, a, values, dtype, geometry)
    if drawn.operator == "upsample":
        shape = tuple(a["inputSize" if "inputSize" in a else "input_size"])
        result = reference.upsample_nearest_exact1d_backward_quick(values, shape, a["scales"] or 0.0)
    elif drawn.operator == "im2col":
        size = _pair(a["inputSize" if "inputSize" in a else "input_size"])
        result = reference.im2col_backward(
            values, size, _pair(kernel), _pair(a["dilation"]), _pair(a["padding"]), _pair(a["stride"])
        ).astype(dtype)
        out = a["out"]
        return [result.astype(DTYPES[out.dtype] if out is not None else dtype)]
    else:
        pads = a["padding"] * 4 if len(a["padding"]) == 1 else a["padding"]
        result = reference.replication_pad2d_backward_quick(values, a["self"].shape, pads, wide)
    return [result.astype(dtype)]


def _max(drawn: Drawn, a: dict[str, Any], values: Any, dtype: Any, geometry: Any) -> list[np.ndarray[Any, Any]]:
    kernel = geometry[0]
    argmax = drawn.layout == "argmax" and math.prod(kernel) > 1
    if drawn.operator == "max forward":
        out, indices = reference.max_pool2d(values, *geometry)
        hits = reference.hits_of_indices(indices, values.shape, *geometry)
        mask = reference.argmax_mask(indices, kernel) if argmax else reference.bitmask(hits)
        return [out.astype(dtype), mask]
    shape = a["self"].shape
    mask = np.array(drawn.arguments["indices" if "indices" in a else "mask"].array).reshape(-1).view(np.uint8)
    leading, pooled = values.shape[:-2], values.shape[-2:]
    if argmax:
        indices = mask[: 4 * values.size].view("<i4").reshape(values.shape).astype(np.int64)
        hits = reference.hits_of_indices(indices, shape, *geometry)
        if not hits.any(axis=-3).all():
            raise BadIndex
    else:
        hits = _bits(mask, leading, math.prod(kernel), pooled)
    return [reference.max_pool2d_backward(values, hits, shape, *geometry).astype(dtype)]


def _bits(mask: np.ndarray[Any, Any], leading: Any, positions: int, pooled: Any) -> np.ndarray[Any, Any]:
    """Read the layout "bitmask"."""
    images, channels, windows = math.prod(leading[:-1]), leading[-1], math.prod(pooled)
    groups, row = -(-channels // 16), (-(-windows // 16) + 1) * 16
    words = mask[: 2 * images * groups * positions * row].view("<u2").reshape(images, groups, positions, row)
    c = np.arange(channels)
    bits = words[:, c // 16, :, :windows] >> (c % 16)[:, None, None] & 1
    return bits.astype(bool).reshape(*leading, positions, *pooled)


def agrees(drawn: Drawn, result: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether a result is the expected one: bit for bit but for the averages, whose terms are fractions."""
    if result.shape != wanted.shape:
        return False
    if drawn.operator != "avg":
        return bool(np.array_equal(result, wanted))
    grad = drawn.arguments["gradOutput" if "gradOutput" in drawn.arguments else "grad_output"].meaning
    reduced = drawn.face == "two-phase" and drawn.product != "Host" and grad.dtype == "float32"
    tolerance = _TOLERANCE["float16" if reduced else grad.dtype]
    return bool(np.all(np.abs(result.astype(np.float64) - wanted) <= tolerance * (np.abs(wanted) + 1)))
