"""Windows that slide over an image: how many there are, and what they see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# Kernels of networks: mostly of 2 and 3.
_KERNELS = (1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 10, 11, 12, 13)
_STRIDES = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8)


def count(size: int, a: Mapping[str, Any]) -> int:
    """The number of windows along an axis; the attributes are ints."""
    k, s, p = a["kernel_size"], a["stride"], a["padding"]
    reach = (k - 1) * a.get("dilation", 1) + 1
    ceil_mode = a.get("ceil_mode", False)
    out = (size + 2 * p - reach + (s - 1 if ceil_mode else 0)) // s + 1
    return int(out - 1 if ceil_mode and (out - 1) * s >= size + p else out)


def draw(
    rng: np.random.Generator, plane: tuple[int, int], *, most: float, dilations: tuple[int, ...] = (1,)
) -> dict[str, Any]:
    """Draw kernel, stride, padding, of at most this share of the kernel, and dilation: windows that the plane has."""
    while True:
        k, d = int(rng.choice(_KERNELS)), int(rng.choice(dilations))
        if rng.random() < 0.1:
            k = min(plane[0], 13)  # one window a plane, or few
        s = min(k, 8) if rng.random() < 0.3 else int(rng.choice(_STRIDES))
        p = int(rng.choice(np.array([0, d * (k - 1) // 2, rng.integers(int(most * k) + 1)])))
        a = {"kernel_size": k, "stride": s, "padding": p} | ({"dilation": d} if d > 1 else {})
        if (k - 1) * d < min(plane) + 2 * p:
            return a


def draw_pool(rng: np.random.Generator, plane: tuple[int, int]) -> dict[str, Any]:
    """Draw what both poolings have."""
    a = draw(rng, plane, most=0.5)
    return {**a, "ceil_mode": True} if rng.random() < 0.2 else a


def positions(height: int, width: int, a: Mapping[str, Any]) -> Iterator[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    """For each kernel position in row-major order: the windows (oh, ow) that have it inside the image, and where."""
    for kh in range(a["kernel_size"]):
        oh, ih = _slices(height, kh, a)
        for kw in range(a["kernel_size"]):
            ow, iw = _slices(width, kw, a)
            yield kh * a["kernel_size"] + kw, (..., oh, ow), (..., ih, iw)


def _slices(size: int, k: int, a: Mapping[str, Any]) -> tuple[slice, slice]:
    s = a["stride"]
    offset = k * a.get("dilation", 1) - a["padding"]  # window o has this kernel position at o * s + offset
    first = max(0, -(offset // s))
    last = min(count(size, a) - 1, (size - 1 - offset) // s)
    inputs = slice(first * s + offset, max(last * s + offset + 1, 0), s)
    return (slice(first, last + 1), inputs) if first <= last else (slice(0, 0), slice(0, 0))
