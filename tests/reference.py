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


# ---- one kernel position after the other: Im2colBackward and MaxPool2dWithMask --------------------------------------


@lru_cache(maxsize=8192)
def _tap(size, windows, k, stride, padding, dilation):
    """Along one axis: the windows whose kernel position `k` lies inside the image, and where it lies."""
    places = np.arange(windows) * stride - padding + k * dilation
    inside = np.flatnonzero((places >= 0) & (places < size))
    if inside.size == 0:
        return slice(0), slice(0)
    first, last = int(inside[0]), int(inside[-1])
    return slice(first, last + 1), slice(int(places[first]), int(places[last]) + 1, stride)


def _taps2d(input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, dilation=1):
    """For k = kh*kW + kw: the windows [..., oh, ow] that have it inside the image, and the inputs that lie there."""
    sizes = _pairs(kernel_size, stride, padding)
    windows = pooled_shape(input_shape[-2:], *sizes, ceil_mode, dilation)
    for k, position in enumerate(np.ndindex(sizes[0])):
        axes = zip(input_shape[-2:], windows, position, *sizes[1:], pair(dilation), strict=True)
        (oh, ih), (ow, iw) = (_tap(*axis) for axis in axes)
        yield k, (..., oh, ow), (..., ih, iw)


# ---- Im2colBackward --------------------------------------------------------------------------------------------------


def im2col(x, kernel_size, dilation=1, padding=0, stride=1):
    """Each window of (..., C, H, W) as a column: (..., C*kH*kW, Lh*Lw). The padding is zero."""
    windows = pooled_shape(x.shape[-2:], kernel_size, stride, padding, False, dilation)
    columns = np.zeros((*x.shape[:-2], *pair(kernel_size), *windows)).reshape(*x.shape[:-2], -1, *windows)
    for k, outputs, inputs in _taps2d(x.shape, kernel_size, stride, padding, False, dilation):
        columns[..., k, :, :][outputs] = x[inputs]
    return columns.reshape(*x.shape[:-3], -1, windows[0] * windows[1])


def im2col_backward(grad_output, input_size, kernel_size, dilation=1, padding=0, stride=1, dtype=np.float64):
    """Each column is added to the window that it was taken from; what falls into the padding is dropped."""
    windows = pooled_shape(input_size, kernel_size, stride, padding, False, dilation)
    positions = int(np.prod(pair(kernel_size)))
    *batch, rows, _ = np.shape(grad_output)
    columns = np.asarray(grad_output).astype(dtype).reshape(*batch, rows // positions, positions, *windows)
    out = np.zeros((*batch, rows // positions, *input_size), dtype)
    for k, outputs, inputs in _taps2d(input_size, kernel_size, stride, padding, False, dilation):
        out[inputs] += columns[..., k, :, :][outputs]
    return out


# ---- MaxPool2dWithMask and its backward ------------------------------------------------------------------------------
# `indices` (..., C, Ho, Wo) holds ih*W + iw, where each window's maximum lies in the plane without its padding.
# `hits` (..., C, kH*kW, Ho, Wo) says of each kernel position whether it is marked: exactly one per window after the
# forward, any number in a mask of other origin.


def _places(input_shape):
    return np.arange(input_shape[-2] * input_shape[-1]).reshape(input_shape[-2:])


def max_pool2d(x, *geometry):
    """The maximum of each window and its index: the first of equals in row-major order; the last NaN where one is."""
    shape = pooled_shape(x.shape, *geometry)
    out, indices = np.full(shape, -np.inf), np.full(shape, -1)
    for _, outputs, inputs in _taps2d(x.shape, *geometry):
        wins = (indices[outputs] < 0) | (x[inputs] > out[outputs]) | np.isnan(x[inputs])
        out[outputs] = np.where(wins, x[inputs], out[outputs])
        indices[outputs] = np.where(wins, _places(x.shape)[inputs], indices[outputs])
    return out, indices


def max_pool2d_backward(grad_output, hits, input_shape, *geometry, dtype=np.float64):
    """Each element of `grad_output` is added to the inputs that are marked in its window."""
    grad_input = np.zeros(input_shape, dtype)
    for k, outputs, inputs in _taps2d(input_shape, *geometry):
        grad_input[inputs] += np.where(hits[..., k, :, :], np.asarray(grad_output).astype(dtype), 0)[outputs]
    return grad_input


def hits_of_indices(indices, input_shape, *geometry):
    """The one mark of each window; none where the index is outside it."""
    positions = int(np.prod(pair(geometry[0])))
    hits = np.zeros((*indices.shape[:-2], positions, *indices.shape[-2:]), bool)
    for k, outputs, inputs in _taps2d(input_shape, *geometry):
        hits[..., k, :, :][outputs] = indices[outputs] == _places(input_shape)[inputs]
    return hits


def indices_of_hits(hits, input_shape, *geometry):
    """The first mark of each window that lies inside the image, -1 where none does."""
    indices = np.full((*hits.shape[:-3], *hits.shape[-2:]), -1)
    for k, outputs, inputs in _taps2d(input_shape, *geometry):
        first = hits[..., k, :, :][outputs] & (indices[outputs] < 0)
        indices[outputs] = np.where(first, _places(input_shape)[inputs], indices[outputs])
    return indices


def mask_shape(input_shape, *geometry):
    """The shape of the int8 container that holds either layout."""
    *leading, height, width = pooled_shape(input_shape, *geometry)
    return (*leading, int(np.prod(pair(geometry[0]))), (-(-height * width // 16) + 1) * 32)


def bitmask(hits):
    """Layout "bitmask": bit c % 16 of word(n, c // 16, k, oh*Wo + ow) is set where position k of a window is marked.

    The words are little-endian and 16 bits wide, a row of them is one block of 16 longer than the windows need, and
    they fill only the front of the container [N,] C, kH*kW, bytes.
    """
    *batch, channels, positions, height, width = hits.shape
    images, windows = int(np.prod(batch)), height * width
    row = (-(-windows // 16) + 1) * 16
    words = np.zeros((images, -(-channels // 16), positions, row), "<u2")
    hits = hits.reshape(images, channels, positions, windows)
    for c in range(channels):
        words[:, c // 16, :, :windows] |= hits[:, c].astype(np.uint16) << c % 16
    mask = np.zeros((*batch, channels, positions, 2 * row), np.int8)
    mask.reshape(-1)[: words.nbytes] = words.reshape(-1).view(np.int8)
    return mask


def argmax_mask(indices, kernel_size):
    """Layout "argmax": the indices themselves as little-endian int32, at the front of the same container."""
    *leading, height, width = indices.shape
    positions, row = int(np.prod(pair(kernel_size))), (-(-height * width // 16) + 1) * 32
    mask = np.zeros((*leading, positions, row), np.int8)
    mask.reshape(-1)[: 4 * indices.size] = indices.astype("<i4").reshape(-1).view(np.int8)
    return mask


# ---- UpsampleNearestExact1dBackward ---------------------------------------------------------------------------------


def nearest_exact_index(j, input_length, output_length, scales=0.0):
    """The input that output `j` copies: PyTorch's rule on the CPU, whose ratio and product are float32."""
    with np.errstate(over="ignore"):
        ratio = np.float32(1 / scales) if scales > 0 else np.float32(input_length) / np.float32(output_length)
        position = np.float32((j + 0.5) * np.float64(ratio))
    # Compared before it becomes an integer, for it may be inf, and as float64, which holds every length.
    position = np.floor(np.float64(position))
    return np.where(position < input_length, position, input_length - 1).astype(np.int64)


def upsample_nearest_exact1d(x, output_length, scales=0.0):
    """Each output is a copy of one input: the forward operator."""
    index = [nearest_exact_index(j, x.shape[-1], output_length, scales) for j in range(output_length)]
    return x[..., index]


def upsample_nearest_exact1d_backward(grad_output, input_size, scales=0.0, dtype=np.float64):
    """Each element of `grad_output` is added to the input that its output copies."""
    grad_input = np.zeros(input_size, dtype)
    for j in range(grad_output.shape[-1]):
        i = nearest_exact_index(j, input_size[-1], grad_output.shape[-1], scales)
        grad_input[..., i] += grad_output[..., j].astype(dtype)
    return grad_input


def upsample_nearest_exact1d_backward_quick(grad_output, input_size, scales=0.0, dtype=np.float64):
    """`upsample_nearest_exact1d_backward` without the loop."""
    length = grad_output.shape[-1]
    index = nearest_exact_index(np.arange(length), input_size[-1], length, scales)
    grad_input = np.zeros(input_size, dtype)
    np.add.at(grad_input, (..., index), grad_output.astype(dtype))
    return grad_input


# ---- ReplicationPad2dBackward ---------------------------------------------------------------------------------------


def _clamped(size, before, after):
    """Along one axis, for each position of the padded image: the position in the image that it copies."""
    return [min(max(o - before, 0), size - 1) for o in range(size + before + after)]


def replication_pad2d(x, padding):
    """The image with its border repeated, or cropped where a pad is negative: the forward operator."""
    left, right, top, bottom = padding
    rows, columns = _clamped(x.shape[-2], top, bottom), _clamped(x.shape[-1], left, right)
    return x[..., rows, :][..., columns]


def replication_pad2d_backward(grad_output, input_shape, padding, dtype=np.float64):
    """Each element of `grad_output` is added to the input that its output copies."""
    left, right, top, bottom = padding
    grad_input = np.zeros(input_shape, dtype)
    for p, i in enumerate(_clamped(input_shape[-2], top, bottom)):
        for q, j in enumerate(_clamped(input_shape[-1], left, right)):
            grad_input[..., i, j] += grad_output[..., p, q].astype(dtype)
    return grad_input


def replication_pad2d_backward_quick(grad_output, input_shape, padding, dtype=np.float64):
    """`replication_pad2d_backward` with another order of the sum: one axis after the other."""
    left, right, top, bottom = padding
    height, width = input_shape[-2:]
    by_rows = np.zeros((*input_shape[:-1], grad_output.shape[-1]), dtype)
    np.add.at(by_rows, (..., _clamped(height, top, bottom), slice(None)), grad_output.astype(dtype))
    grad_input = np.zeros(input_shape, dtype)
    np.add.at(grad_input, (..., _clamped(width, left, right)), by_rows)
    return grad_input
