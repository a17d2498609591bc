"""The operators once more, for planes of a few elements and finite values: each axis is one small matrix, kept for the
next call of that geometry. Made for the fuzzer, where it is several times as fast as reference.py, to which the tests
hold it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import reference

from fuzz.rules import pooled

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]


@lru_cache(maxsize=1 << 14)
def _averages(size: int, windows: int, kernel: int, stride: int, pad: int, include_pad: bool | None) -> Array:
    """Along one axis: what share of each window's gradient a position gets; all of it where include_pad is None."""
    matrix = np.zeros((size, windows))
    for window in range(windows):
        start = window * stride - pad
        end = min(start + kernel, size + pad)
        inside = slice(max(start, 0), min(end, size))
        length = end - start if include_pad else inside.stop - inside.start
        matrix[inside, window] = 1 if include_pad is None else 1 / length
    return matrix


def avg_pool2d_backward(
    grad: Array, shape: tuple[int, ...], kernel: Pair, stride: Pair, pad: Pair, include_pad: bool, divisor: int | None
) -> Array:
    rows, columns = (
        _averages(size, windows, *axis, None if divisor else include_pad)
        for size, windows, *axis in zip(shape[-2:], grad.shape[-2:], kernel, stride, pad, strict=True)
    )
    result = rows @ grad @ columns.T
    return result / divisor if divisor else result


@lru_cache(maxsize=1 << 14)
def _places(size: int, windows: int, kernel: int, stride: int, pad: int, dilation: int = 1) -> Array:
    """Along one axis, of each window the positions in the image, `size` for those outside it: [window, k]."""
    places = np.arange(windows)[:, None] * stride - pad + np.arange(kernel) * dilation
    return np.where((places >= 0) & (places < size), places, size)


@lru_cache(maxsize=1 << 14)
def _scatter(*axis: int) -> Array:
    """Along one axis: 1 where window and kernel position [k * windows + window] lie at a position of the image."""
    return np.equal.outer(np.arange(axis[0]), _places(*axis).T.reshape(-1)).astype(np.float64)


def from_columns(columns: Array, size: Pair, kernel: Pair, stride: Pair, pad: Pair, dilation: Pair = (1, 1)) -> Array:
    """Add columns [..., kH*kW, Ho, Wo] to the windows of [..., H, W] that they stand for."""
    (kh, kw), (*leading, _, oh, ow) = kernel, columns.shape
    if size[0] * kh * oh + size[1] * kw * ow > 1 << 16:  # matrices larger than what they sum
        flat = columns.reshape(math.prod(leading), kh * kw, oh * ow)
        result = reference.im2col_backward(flat, size, kernel, dilation, pad, stride)
        return result.reshape(*leading, *size)
    rows = _scatter(size[0], oh, kh, stride[0], pad[0], dilation[0])
    across = _scatter(size[1], ow, kw, stride[1], pad[1], dilation[1])
    sums = columns.reshape(*leading, kh, kw, oh, ow).swapaxes(-3, -2).reshape(*leading, kh * oh, kw * ow)
    return rows @ sums @ across.T


def from_indices(grad: Array, indices: Array, size: Pair, kernel: Pair, stride: Pair, pad: Pair) -> Array | None:
    """Add each element at its index in the plane; None where an index lies outside its window."""
    (height, width), (*_, oh, ow) = size, grad.shape
    firsts = (np.arange(n) * s - p for n, s, p in zip(grad.shape[-2:], stride, pad, strict=True))
    top, left = next(firsts)[:, None], next(firsts)
    row, column = np.divmod(indices, width)
    right = (row >= np.maximum(top, 0)) & (row < np.minimum(top + kernel[0], height))
    right &= (column >= np.maximum(left, 0)) & (column < np.minimum(left + kernel[1], width))
    if not right.all():
        return None
    planes = math.prod(grad.shape[:-2])
    flat = indices.reshape(planes, oh * ow) + np.arange(planes)[:, None] * (height * width)
    sums = np.bincount(flat.reshape(-1), grad.reshape(-1), planes * height * width)
    return sums.reshape(*grad.shape[:-2], height, width)


def max_pool2d(x: Array, kernel: Pair, stride: Pair, pad: Pair, ceil: bool) -> tuple[Array, Array]:
    """The maximum of each window, and its kernel position, both [..., Ho, Wo]."""
    *leading, height, width = x.shape
    oh, ow = (pooled(*axis, ceil) for axis in zip(x.shape[-2:], kernel, stride, pad, strict=True))
    padded = np.full((*leading, height + 1, width + 1), -np.inf)
    padded[..., :-1, :-1] = x
    rows = _places(height, oh, kernel[0], stride[0], pad[0]).reshape(-1, 1)
    columns = _places(width, ow, kernel[1], stride[1], pad[1]).reshape(-1)
    windows = padded[..., rows, columns].reshape(*leading, oh, kernel[0], ow, kernel[1]).swapaxes(-3, -2)
    windows = windows.reshape(*leading, oh, ow, kernel[0] * kernel[1])
    return windows.max(axis=-1), windows.argmax(axis=-1)


_LANES = np.arange(16, dtype=np.uint16)[:, None, None]


def bitmask(positions: Array, kernel: Pair) -> Array:
    """The container of layout "bitmask" for one kernel position of each window [N, C, Ho, Wo]."""
    images, channels, oh, ow = positions.shape
    count, windows, groups = kernel[0] * kernel[1], oh * ow, -(-channels // 16)
    hits = (positions.reshape(images, channels, 1, windows) == np.arange(count)[:, None]).astype(np.uint16)
    row = (-(-windows // 16) + 1) * 16
    words = np.zeros((images, groups, count, row), "<u2")
    for group in range(groups):
        lanes = hits[:, 16 * group : 16 * group + 16]
        np.bitwise_or.reduce(lanes << _LANES[: lanes.shape[1]], axis=1, out=words[:, group, :, :windows])
    mask = np.zeros((images, channels, count, 2 * row), np.int8)
    mask.reshape(-1)[: words.nbytes] = words.reshape(-1).view(np.int8)
    return mask


def argmax_mask(positions: Array, x_shape: tuple[int, ...], kernel: Pair, stride: Pair, pad: Pair) -> Array:
    """The container of layout "argmax"."""
    images, channels, oh, ow = positions.shape
    row, column = np.divmod(positions, kernel[1])
    row += (np.arange(oh) * stride[0] - pad[0])[:, None]
    column += np.arange(ow) * stride[1] - pad[1]
    mask = np.zeros((images, channels, kernel[0] * kernel[1], (-(-oh * ow // 16) + 1) * 32), np.int8)
    indices = (row * x_shape[-1] + column).astype("<i4")
    mask.reshape(-1)[: indices.nbytes] = indices.reshape(-1).view(np.int8)
    return mask


def upsample_nearest_exact1d_backward(grad: Array, shape: tuple[int, ...], scales: float) -> Array:
    index = _nearest(shape[-1], grad.shape[-1], scales)
    rows = shape[0] * shape[1]
    flat = index + np.arange(rows)[:, None] * shape[-1]
    return np.bincount(flat.reshape(-1), grad.reshape(-1), rows * shape[-1]).reshape(shape)


@lru_cache(maxsize=1 << 14)
def _nearest(input_length: int, output_length: int, scales: float) -> Array:
    return reference.nearest_exact_index(np.arange(output_length), input_length, output_length, scales)


@lru_cache(maxsize=1 << 14)
def _clamped(size: int, before: int, after: int) -> Array:
    places = np.clip(np.arange(size + before + after) - before, 0, size - 1)
    return np.equal.outer(np.arange(size), places).astype(np.float64)


def replication_pad2d_backward(grad: Array, shape: tuple[int, ...], pads: tuple[int, ...]) -> Array:
    left, right, top, bottom = pads
    return _clamped(shape[-2], top, bottom) @ grad @ _clamped(shape[-1], left, right).T
