"""The operators in plain NumPy: the oracle of the tests, short enough to be read as a specification.

Nothing here imports the package. Arrays may have any number of leading dimensions; the last two are rows and columns.
Sums run in float64 unless `dtype` names a wider type (np.longdouble, the oracle of float64 results).
Each operator has one literal form, which states the formula, and where the tests need it a quick one that is tested
against the literal form.
"""

from functools import lru_cache

import numpy as np

# ---- shared rules ---------------------------------------------------------------------------------------------------


def pair(value):
    """An int or a sequence of one or two ints as (rows, columns)."""
    values = tuple(value) if np.ndim(value) else (value,)
    return values if len(values) == 2 else values * 2


def pooled_size(size, kernel, stride, padding, ceil_mode=False, dilation=1):
    """The number of windows along one axis."""
    out = (size + 2 * padding - ((kernel - 1) * dilation + 1) + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:  # the last window must begin inside the image
        out -= 1
    return out


def pooled_shape(input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, dilation=1):
    """The shape of a pooling's output; its last two values are below 1 where no output exists."""
    axes = zip(input_shape[-2:], *_pairs(kernel_size, stride, padding), pair(dilation), strict=True)
    return (*input_shape[:-2], *(pooled_size(*axis, ceil_mode, dilation) for *axis, dilation in axes))


def _pairs(kernel_size, stride, padding):
    no_stride = stride is None or (np.ndim(stride) and len(stride) == 0)
    return pair(kernel_size), pair(kernel_size if no_stride else stride), pair(padding)


# ---- rounding -------------------------------------------------------------------------------------------------------


def round_to_format(x, fraction_bits, min_exponent, max_exponent):
    """`x` rounded once, to nearest even, to a binary format with subnormals, inf and NaN; as float64 or wider."""
    x = np.asarray(x)
    with np.errstate(invalid="ignore"):  # of signalling NaN
        x = x if x.dtype == np.longdouble else x.astype(np.float64)
        exponent = np.frexp(x)[1] - 1  # |x| = m * 2**exponent with 1 <= m < 2
        ulp = np.ldexp(x.dtype.type(1), np.maximum(exponent, min_exponent) - fraction_bits)
        rounded = np.rint(x / ulp) * ulp
    return np.where(np.abs(rounded) >= 2.0 ** (max_exponent + 1), np.copysign(np.inf, x), rounded)


def round_float16(x):
    """IEEE binary16: 10 explicit bits of fraction."""
    return round_to_format(x, 10, -14, 15)


def round_bfloat16(x):
    """float32 with 7 explicit bits of fraction."""
    return round_to_format(x, 7, -126, 127)


def round_hf32(x):
    """float32 with 11 explicit bits of fraction."""
    return round_to_format(x, 11, -126, 127)


# ---- AvgPool2dBackward ----------------------------------------------------------------------------------------------


def _windows(size, kernel, stride, padding, ceil_mode):
    """Along one axis, for each output: the inputs start:end that its window covers and its length with the padding."""
    for o in range(pooled_size(size, kernel, stride, padding, ceil_mode)):
        start = o * stride - padding
        end = min(start + kernel, size + padding)
        yield max(start, 0), min(end, size), end - start


def _windows2d(input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """For each output (oh, ow): its place, its rows and columns of the image, its divisor."""
    axes = zip(input_shape[-2:], *_pairs(kernel_size, stride, padding), strict=True)
    rows, columns = (list(_windows(*axis, ceil_mode)) for axis in axes)
    for oh, (top, bottom, height) in enumerate(rows):
        for ow, (left, right, width) in enumerate(columns):
            pool, inside = height * width, (bottom - top) * (right - left)
            divisor = divisor_override or (pool if count_include_pad else inside)
            yield (..., oh, ow), (..., slice(top, bottom), slice(left, right)), divisor


def avg_pool2d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None,
    dtype=np.float64,
):  # fmt: skip
    """The average of each window: the forward operator whose gradient the others compute."""
    x = np.asarray(x).astype(dtype)
    out = np.empty(pooled_shape(x.shape, kernel_size, stride, padding, ceil_mode), dtype)
    attributes = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    for place, window, divisor in _windows2d(x.shape, *attributes):
        out[place] = x[window].sum(axis=(-2, -1)) / divisor
    return out


def avg_pool2d_backward(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """Each element of `grad_output`, divided by its window's divisor, is added to all inputs of the window."""
    grad_output = np.asarray(grad_output).astype(dtype)
    grad_input = np.zeros(input_shape, dtype)
    attributes = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    for place, window, divisor in _windows2d(input_shape, *attributes):
        grad_input[window] += grad_output[place][..., None, None] / divisor
    return grad_input


def sum_abs_and_terms(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """For each input: the sum of |terms| and the number of terms, of which the error bound is made."""
    size = (kernel_size, stride, padding, ceil_mode)
    magnitude = np.abs(np.asarray(grad_output).astype(dtype))
    total = avg_pool2d_backward_quick(
        magnitude, input_shape, *size, count_include_pad, divisor_override and abs(divisor_override), dtype
    )
    ones = np.ones(pooled_shape(input_shape, *size)[-2:])
    return total, avg_pool2d_backward_quick(ones, input_shape[-2:], *size, True, 1)


# The quick form: the windows are products of a row and a column range, so the terms are spread along one axis at a
# time, one kernel position after the other. Unlike a matrix product it lets no NaN out of its own windows.


@lru_cache(maxsize=8192)
def _window_lengths(size, kernel, stride, padding, ceil_mode, count_include_pad):
    start = np.arange(pooled_size(size, kernel, stride, padding, ceil_mode)) * stride - padding
    end = np.minimum(start + kernel, size + padding)
    return end - start if count_include_pad else np.minimum(end, size) - np.maximum(start, 0)


@lru_cache(maxsize=8192)
def _taps(size, kernel, stride, padding, ceil_mode):
    """For each kernel position that reaches the image: the inputs that it reaches and the outputs it comes from."""
    out = pooled_size(size, kernel, stride, padding, ceil_mode)
    taps = []
    for tap in range(kernel):
        first = max(0, -((tap - padding) // stride))
        last = min(out - 1, (size - 1 + padding - tap) // stride)
        if first <= last:
            start = first * stride - padding + tap
            taps.append((slice(start, (last - first) * stride + start + 1, stride), slice(first, last + 1)))
    return taps


def avg_pool2d_backward_quick(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """`avg_pool2d_backward` with another order of the sum; kernel height + width steps instead of one per window."""
    rows, columns = zip(input_shape[-2:], *_pairs(kernel_size, stride, padding), strict=True)
    divisor = divisor_override or np.multiply.outer(
        _window_lengths(*rows, ceil_mode, count_include_pad), _window_lengths(*columns, ceil_mode, count_include_pad)
    )
    terms = np.asarray(grad_output).astype(dtype) / divisor
    by_rows = np.zeros((*terms.shape[:-2], rows[0], terms.shape[-1]), dtype)
    for inputs, outputs in _taps(*rows, ceil_mode):
        by_rows[..., inputs, :] += terms[..., outputs, :]
    grad_input = np.zeros(input_shape, dtype)
    for inputs, outputs in _taps(*columns, ceil_mode):
        grad_input[..., inputs] += by_rows[..., outputs]
    return grad_input
