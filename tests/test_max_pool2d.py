"""MaxPool2dWithMaskBackward: the numbers in both mask layouts, against the twin and each other."""

import json
import os
from functools import cache
from itertools import combinations, islice, product

import numpy as np
import pytest
import reference
from engine_helpers import NUMPY_DTYPE, Spec
from helpers import (
    DTYPES,
    EITHER_WAY,
    LAYOUTS,
    NAN_BYTE,
    SMALLEST,
    Guarded,
    assert_no_negative_zero,
    assert_same_bytes,
    at_fence,
    bits,
    digest,
    far_apart,
    fenced,
    guarded_copy,
    past_the_caches,
    require_isa,
    run_python,
    sprinkled,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import max_pool
from operators.max_pool import MASK_LAYOUTS, MAX_POOL_MODES, assert_is_max_pool2d_backward, with_garbage
from operators.max_pool import Pool as MaxPool
from operators.max_pool import max_pool2d_backward_two_phase as two_phase

import aclnn_bw

one_call = aclnn_bw.max_pool2d_with_mask_backward
BYTE = np.dtype(np.int8)

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_mode = pytest.mark.parametrize("mode", MAX_POOL_MODES, ids="-".join)
every_mask_layout = pytest.mark.parametrize("mask_layout", MASK_LAYOUTS)

# One of each kind that an implementation may treat by itself, and of each way in which windows meet the border.
KINDS = [
    MaxPool((2, 3, 9, 10), 1),
    MaxPool((2, 17, 8, 9), 1, 2),
    MaxPool((2, 37, 7, 40), 1, 3),
    MaxPool((2, 3, 6, 7), 2, 1, 1),
    MaxPool((2, 3, 16, 18), 2),
    MaxPool((2, 17, 17, 71), 2, None, 0, True),
    MaxPool((2, 16, 14, 17), 3, 1, 1),
    MaxPool((2, 3, 14, 70), 3, 1, 1),
    MaxPool((2, 3, 15, 37), 3, 2, 1),
    MaxPool((2, 19, 16, 33), 3, 2, 1, True),
    MaxPool((2, 3, 15, 16), 3, None, 1),
    MaxPool((2, 3, 16, 17), 2, 3),  # gaps
    MaxPool((2, 3, 16, 17), 2, 5, 1, True),
    MaxPool((2, 3, 13, 40), 5, 1, 2),
    MaxPool((1, 3, 17, 16), 7, 2, 3, True),
    MaxPool((2, 3, 9, 40), (2, 3), (2, 3), (1, 1), True),
    MaxPool((2, 3, 9, 14), (3, 2), (1, 2), (1, 0)),
    MaxPool((2, 3, 9, 14), (2, 5), (3, 1), (1, 2), True),
    MaxPool((2, 33, 7, 7), 7),
    MaxPool((2, 18, 14, 13), 7, 5, 2),  # few windows
    MaxPool((1, 17, 9, 8), 13, 3, 6),
    MaxPool((2, 3, 6, 7), (6, 7), 1),
    MaxPool((2, 3, 5, 4), 9, 2, 4, True),
    MaxPool((1, 3, 9, 45), (2, 20), (1, 3), (1, 10)),  # windows of more than 16 columns
    MaxPool((1, 2, 5, 60), (1, 40), 1, (0, 20)),
    MaxPool((1, 2, 20, 21), (17, 16), 1, (8, 8)),  # windows of more than 256 positions
    MaxPool((1, 17, 19, 23), 18, 5, 9),
    MaxPool((2, 3, 1, 50), (1, 4), (1, 2), (0, 2)),
    MaxPool((2, 3, 50, 1), (4, 1), (2, 1), (2, 0), True),  # one column
    MaxPool((2, 3, 40, 3), 3, 2, 1),
    MaxPool((1, 2, 4, 4), 2, 100),
    MaxPool((2, 5, 13, 20), (1, 3), (2, 1), (0, 1)),  # rows without windows
    MaxPool((1, 6, 12, 21), (5, 3), (1, 1), (2, 1)),
    MaxPool((1, 6, 13, 9), (3, 3), (2, 1), (1, 1), True),
    MaxPool((1, 18, 40, 60), 3, 1, 1),  # several chunks of rows that lie end to end
    MaxPool((1, 6, 5, 140), 3, 1, 1),  # rows too long to be laid end to end
    MaxPool((2, 35, 8, 8), 3, 2, 1),  # small planes: of 64 positions, fewer, and just too many
    MaxPool((1, 16, 4, 4), 2),
    MaxPool((2, 17, 4, 4), 3, 1, 1),
    MaxPool((2, 33, 7, 7), 3, 1, 1),
    MaxPool((3, 21, 8, 7), 5, 1, 2),
    MaxPool((1, 5, 13, 12), (2, 3), (1, 1), (1, 1)),
    MaxPool((2, 18, 20, 6), (3, 3), (2, 1), (1, 1), True),
    MaxPool((1, 3, 97, 40), 3),  # bands that end between windows
    MaxPool((1, 18, 70, 33), (3, 4), (5, 4), 0, True),
    MaxPool((1, 5, 4, 16), 2),
    MaxPool((1, 3, 4, 18), 2),  # rows too long to be done with their plane
    MaxPool((1, 18, 5, 13), 3, 2, 1, True),
    MaxPool((2, 3, 64, 1), (3, 1), (1, 1), (1, 0)),
    MaxPool((2, 19, 8, 7), 5, 3, 2, True),
    MaxPool((2, 6, 1, 5), 3, 1, 1),  # rows laid end to end: fewer elements than a vector has lanes, and shortest rows
    MaxPool((2, 6, 7, 2), (1, 3), 1, (0, 1)),
    MaxPool((2, 6, 6, 3), (2, 3), 1, (1, 1)),
    MaxPool((2, 19, 24, 27), 5, 1, 2),  # kernels whose maxima are found for 16 channels at a time: blocks of rows
    MaxPool((1, 35, 21, 22), 4, 2, 1, True),
    MaxPool((1, 5, 30, 34), 16, 3, 8),  # the largest
    MaxPool((1, 7, 4, 530), 4, 1, 2),  # rows beyond a block
    MaxPool((1, 4, 2, 9), (2, 4), 1, (1, 2)),
    MaxPool((1, 5, 130, 41), 3, 1, 1),  # sums of 3 columns that pass through the scratch in several parts
    MaxPool((1, 3, 75, 31), (9, 3), (4, 1), (4, 1)),
    MaxPool((2, 2, 71, 32), (2, 3), (2, 1), (0, 1)),
    MaxPool((1, 2, 50, 600), 3, 1, 1),
    MaxPool((2, 19, 26, 27), 9, 7, 1),  # few sums among zeros: of windows that are one block, several, a row beyond one
    MaxPool((1, 5, 70, 75), (6, 5), 4, 2),
    MaxPool((1, 3, 9, 1610), (9, 7), (1, 6), (0, 3)),
]
every_kind = pytest.mark.parametrize("pool", KINDS, ids=str)

# Enough data for several threads, in planes that are fewer or more than the threads and above or below a cache's size.
LARGE = [
    MaxPool((1, 1, 300, 310), 3, 1, 1),
    MaxPool((1, 3, 300, 310), 3, 2, 1),
    MaxPool((1, 1, 401, 500), 2),
    MaxPool((3, 200, 201), 5, 3, 2, True),
    MaxPool((2, 37, 40, 41), 3, 1, 1),
    MaxPool((3, 64, 28, 29), 2, 3),
    MaxPool((2, 150, 13, 13), 3, 2, 1, True),
    MaxPool((3, 300, 7, 7), 7),
    MaxPool((1, 1, 20000, 4), 3, 1, 1),
    MaxPool((1, 1, 4, 20000), 3, 2, 1),
    MaxPool((1, 2, 60, 70), (20, 17), 1, (10, 8)),
    MaxPool((1, 1, 400, 500), 1),
    MaxPool((1, 21, 120, 121), 5, 1, 2),  # several bands
    MaxPool((1, 5, 5, 9000), (3, 5), (1, 4), (1, 2)),  # sums of fewer than 16 channels at a time
    MaxPool((1, 2, 3, 33000), (2, 5), (1, 4), (0, 2)),  # rows of more than 2**15 positions
    MaxPool((1, 2, 400, 410), 7, 5, 3),  # windows that reach from one band into the next, with sums where they stay
    MaxPool((1, 3, 300, 310), 4, 5, 1),
]
every_large = pytest.mark.parametrize("pool", LARGE, ids=str)


@cache
def example(pool):
    """Indices, a mark for each, and the masks of both layouts: for tests of other things than where the maxima lie."""
    indices = pool.indices(np.random.default_rng(1))
    masks = {layout: pool.mask(indices, layout) for layout in MASK_LAYOUTS}
    for array in (indices, *masks.values()):
        array.flags.writeable = False
    return indices, pool.hits(indices), masks


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_worked_example():
    """A 4x4 plane, kernel 2, stride 2, every maximum in the last position of its window."""
    mask = np.zeros((1, 1, 4, 64), np.int8)
    words = mask.reshape(-1).view("<u2")
    words[3 * 32 : 3 * 32 + 4] = 1
    argmax = np.zeros((1, 1, 4, 64), np.int8)
    argmax.reshape(-1).view("<i4")[:4] = [5, 7, 13, 15]
    expected = [[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]
    pool = MaxPool((1, 1, 4, 4), 2)
    indices = np.array([[[[5, 7], [13, 15]]]])
    assert np.array_equal(pool.mask(indices), mask)
    assert np.array_equal(pool.mask(indices, "argmax"), argmax)
    grad = np.array([[[[1, 2], [3, 4]]]], np.float32)
    assert max_pool.max_pool2d_backward(grad, pool.hits(indices), *pool)[0, 0].tolist() == expected
    for container, layout in ((mask, "bitmask"), (argmax, "argmax")):
        assert one_call(grad, (1, 1, 4, 4), container, 2, mask_layout=layout)[0, 0].tolist() == expected
        assert two_phase(pool, grad, container, "Ascend910B", layout)[0, 0].tolist() == expected
    assert one_call(grad, (1, 1, 4, 4), mask, 2)[0, 0].tolist() == expected


def test_words_by_hand():
    """Channel 17 is bit 1 of the second group; image 1 follows image 0; p = 17 is in the second block."""
    pool = MaxPool((2, 18, 3, 12), 2, 1)
    assert pool.output_shape == (2, 18, 2, 11)
    assert pool.mask_shape == (2, 18, 4, 96)
    mask = np.zeros(pool.mask_shape, np.int8)
    word = ((1 * 2 + 1) * 4 + 2) * 48 + 17
    mask.reshape(-1)[2 * word] = 2
    grad = np.zeros(pool.output_shape, np.float32)
    grad[1, 17, 1, 6] = 5
    expected = np.zeros(pool.input_shape, np.float32)
    expected[1, 17, 2, 6] = 5  # kernel position 2 of window (1, 6) is row 1 + 1, column 6 + 0
    assert_same_bytes(one_call(grad, pool.input_shape, mask, 2, 1), expected)
    hits = np.zeros(pool.hits_shape, bool)
    hits[1, 17, 2, 1, 6] = True
    assert np.array_equal(max_pool.bitmask(hits), mask)
    mask.reshape(-1)[2 * word + 1] = 1  # bit 8: channel 24 does not exist
    assert_same_bytes(one_call(grad, pool.input_shape, mask, 2, 1), expected)


@pytest.mark.parametrize("layout", MASK_LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 1, 256, 256), (4, 16, 32, 32), (64, 64, 4, 4), (1024, 64, 1, 1)], ids=str)
@pytest.mark.parametrize("kernel", [2, 3, 7])
def test_every_value_of_16_bits_arrives_in_disjoint_windows(kernel, shape, dtype, layout, rng):
    """Each is added to +0 once: -0 becomes +0, a NaN stays one, all else stays as it is."""
    pool = MaxPool((*shape[:2], shape[2] * kernel, shape[3] * kernel), kernel)
    values = rng.permutation(2**16).astype(np.uint16)
    indices = pool.indices(rng)
    expected = np.zeros(pool.input_shape, np.uint16)
    planes = (*shape[:2], -1)
    settled = np.where(values == 0x8000, 0, values).reshape(planes)
    np.put_along_axis(expected.reshape(planes), indices.reshape(planes), settled, 2)
    infinity = 0x7C00 if dtype == "float16" else 0x7F80
    nans = (expected & 0x7FFF) > infinity
    for order in ("contiguous", "columns_reversed", "channels_last"):
        grad = guarded_copy(values.view(DTYPES[dtype]).reshape(shape), order)
        out = Guarded(pool.input_shape, DTYPES[dtype], order)
        one_call(grad.view, pool.input_shape, pool.mask(indices, layout), kernel, mask_layout=layout, out=out.view)
        assert np.array_equal((bits(out.view) & 0x7FFF) > infinity, nans)
        assert np.array_equal(bits(out.view)[~nans], expected[~nans])
        out.assert_outside_untouched()


def test_several_bits_no_bit_and_bits_in_the_padding_by_hand():
    pool = MaxPool((1, 2, 2), 2, 1, 1)  # windows begin at -1, 0 and 1
    hits = np.zeros(pool.hits_shape, bool)
    hits[0, :, 0, 0] = True  # only position 3 of this window, (0, 0), lies in the image
    hits[0, [0, 3], 1, 1] = True
    hits[0, :3, 2, 2] = True  # only position 0, (1, 1), lies in the image
    grad = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3)
    expected = [[[1 + 5, 0], [0, 5 + 9]]]
    assert max_pool.max_pool2d_backward(grad, hits, *pool).tolist() == expected
    assert one_call(grad, (1, 2, 2), max_pool.bitmask(hits), 2, 1, 1).tolist() == expected


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "pool",
    [MaxPool((2, 6, 9, 11), 5, 1, 2), MaxPool((2, 6, 9, 11), 3, 1, 1), MaxPool((1, 18, 70, 61), 3, 1, 1)],
    ids=str,
)
def test_channels_with_other_bits_than_one_touch_no_other_plane(pool, dtype):
    """Maxima in the middle of the windows, but for a bit in the padding, two bits or none in some channels."""
    middle = pool.kernel_size**2 // 2
    hits = np.zeros(pool.hits_shape, bool)
    hits[:, :, middle] = True
    grad = (np.arange(np.prod(pool.output_shape)) % 1000 + 1).reshape(pool.output_shape).astype(dtype)
    expected = grad.copy()
    for c in (1, 4, 5):
        hits[:, c, middle, 0, 0] = hits[:, c, middle, -1, -1] = False
        hits[:, c, 0, 0, 0] = hits[:, c, -1, -1, -1] = True
        expected[:, c, 0, 0] = expected[:, c, -1, -1] = 0
    hits[:, 2, middle, 4, 5] = False
    expected[:, 2, 4, 5] = 0
    hits[:, 3, middle + 1, 4, 5] = True
    expected[:, 3, 4, 6] += grad[:, 3, 4, 5]
    out = Guarded(pool.input_shape, grad.dtype)
    one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes, out=out.view)
    assert_same_bytes(out.view, expected)
    out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("pool", [pool for pool in KINDS if pool.kernel_size != 1], ids=str)
def test_one_bit_or_two_sum_in_the_same_order(pool, dtype, rng):
    """A second bit of a window whose gradient is zero adds nothing, but a kernel may treat its channel otherwise."""
    grad, hits = pool.gradients(rng, dtype), pool.hits(pool.indices(rng))
    grad[..., 0, 0] = 0
    result = one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes)
    hits[..., -1, 0, 0] = True
    hits[..., -2, 0, 0] = True
    assert_same_bytes(one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes), result)


@every_dtype
@every_mask_layout
@pytest.mark.parametrize("grad_layout", ["channels_last", "contiguous", "every_second_row"])
@pytest.mark.parametrize(
    "shape",
    [(2, 16, 9, 11), (1, 17, 40, 7), (2, 47, 6, 5), (3, 100, 5, 8), (1, 33, 90, 4), (2, 3, 21, 30), (1, 8, 12, 70)],
)
def test_channels_last_in_grad_input(shape, grad_layout, mask_layout, dtype, rng):
    """Words have the channels of a vector, and the last vector takes its bits from two of them. Of fewer channels than
    16 what has been made is transposed, and so are gradients that lie otherwise."""
    kinds = ((3, 2, 1), (3, 1, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((4, 5), 1, (2, 1)), ((5, 3), (7, 2), 1))
    kinds += ((4, 5, 0), ((1, 4), (2, 3), 0))
    for number, (kernel, stride, padding) in enumerate(kinds):
        pool = MaxPool(shape, kernel, stride, padding, number % 2 == 1)
        grad, indices = pool.gradients(rng, dtype), pool.indices(rng)
        hits, mask = pool.hits(indices), with_garbage(pool.mask(indices, mask_layout), pool, rng, mask_layout)
        if mask_layout == "bitmask" and number % 2:
            hits = rng.random(pool.hits_shape) < 0.3
            mask = with_garbage(max_pool.bitmask(hits), pool, rng)
        found = Guarded(shape, grad.dtype, "channels_last", 1)
        with aclnn_bw.num_threads(1 + number % 3):
            two_phase(pool, guarded_copy(grad, grad_layout, 1).view, guarded_copy(mask, "contiguous", 1).view,
                      layout=mask_layout, out=found.view)  # fmt: skip
        found.assert_outside_untouched()
        result = np.ascontiguousarray(found.view)
        assert_is_max_pool2d_backward(result, grad, hits, pool)
        assert_same_bytes(result, one_call(grad, shape, mask, *pool.attributes, mask_layout=mask_layout))


# ---- every entry point against the twin ------------------------------------------------------------------------------


def check_all_entry_points(pool, mode, rng, shift=0):
    """One mark in each window: both layouts, with garbage around them, both interfaces, the same bytes."""
    product, dtype = mode
    grad, indices = pool.gradients(rng, dtype), pool.indices(rng)
    results = []
    for layout in MASK_LAYOUTS:
        mask = guarded_copy(with_garbage(pool.mask(indices, layout), pool, rng, layout), "contiguous", shift)
        before = mask.buffer.tobytes()
        out = Guarded(pool.input_shape, grad.dtype)
        two_phase(pool, grad, mask.view, product, layout, out.view)
        out.assert_outside_untouched()
        results.append(out.view)
        if product == "Host":
            results.append(one_call(grad, pool.input_shape, mask.view, *pool.attributes, mask_layout=layout))
            assert results[-1].flags.c_contiguous
        assert mask.buffer.tobytes() == before
    assert_is_max_pool2d_backward(results[0], grad, pool.hits(indices), pool, product)
    for result in results[1:]:
        assert_same_bytes(result, results[0])


@every_mode
@every_kind
def test_kinds(pool, mode, rng):
    check_all_entry_points(pool, mode, rng)
    check_all_entry_points(pool._replace(input_shape=pool.input_shape[1:]), mode, rng, 1)


@every_mode
@every_kind
def test_sums_past_the_caches(pool, mode, rng):
    pool = pool._replace(input_shape=(2, 19, *pool.input_shape[-2:]))
    with past_the_caches(), aclnn_bw.num_threads(1 + pool.input_shape[-1] % 2):
        check_all_entry_points(pool, mode, rng, 1)


@every_dtype
@every_mask_layout
@pytest.mark.parametrize("layout", ["channels_last", "every_second_column"])
@pytest.mark.parametrize(
    "pool", [MaxPool((4, 16, 8, 17), (8, 2), 1), MaxPool((2, 17, 12, 16), (5, 3), (7, 1))], ids=str
)
def test_sums_of_gradients_with_gaps_past_the_caches(pool, layout, mask_layout, dtype, rng):
    """A row of windows of 16 channels takes more room than a plane."""
    grad, indices = pool.gradients(rng, dtype), pool.indices(rng)
    mask = pool.mask(indices, mask_layout)
    expected = one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout=mask_layout)
    with past_the_caches(), aclnn_bw.num_threads(1):
        out = Guarded(pool.input_shape, grad.dtype)
        two_phase(pool, guarded_copy(grad, layout).view, mask, layout=mask_layout, out=out.view)
    assert_same_bytes(out.view, expected)
    out.assert_outside_untouched()


@every_mode
@every_large
def test_large(pool, mode, rng):
    check_all_entry_points(pool, mode, rng, 3)


@every_mode
@pytest.mark.parametrize("density", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("pool", [*KINDS, LARGE[6]], ids=str)
def test_any_number_of_bits(pool, density, mode, rng):
    """Also none, and at positions in the padding, which add nothing."""
    product, dtype = mode
    grad, hits = pool.gradients(rng, dtype), rng.random(pool.hits_shape) < density
    mask = with_garbage(max_pool.bitmask(hits), pool, rng)
    result = two_phase(pool, grad, mask, product)
    assert_is_max_pool2d_backward(result, grad, hits, pool, product)
    if product == "Host":
        assert_same_bytes(one_call(grad, pool.input_shape, mask, *pool.attributes), result)
    if density == 0:
        assert not bits(result).any()


@every_mode
@pytest.mark.parametrize("change", ["none", "several", "moved"])
@pytest.mark.parametrize("pool", [*(pool for pool in KINDS if pool.hits_shape[2] > 4), *LARGE[-5:-2]], ids=str)
def test_one_bit_in_all_windows_but_a_few(pool, change, mode, rng):
    """A few windows, in some of the channels, have no bit, more, or one anywhere, in the padding too."""
    product, dtype = mode
    grad, hits = pool.gradients(rng, dtype), pool.hits(pool.indices(rng))
    odd = (rng.random(pool.output_shape) < 2 / (pool.output_shape[-1] * pool.output_shape[-2]))[:, :, None]
    if change != "several":
        hits = hits & ~odd
    if change == "several":
        hits = hits | (odd & (rng.random(pool.hits_shape) < 0.3))
    if change == "moved":
        chosen = rng.integers(hits.shape[2], size=odd.shape)
        hits = hits | (odd & (chosen == np.arange(hits.shape[2])[:, None, None]))
    result = two_phase(pool, grad, with_garbage(max_pool.bitmask(hits), pool, rng), product)
    assert_is_max_pool2d_backward(result, grad, hits, pool, product)


@every_dtype
@pytest.mark.parametrize("missing", [0, 1, 7, 16, 17, 19])
@pytest.mark.parametrize("pool", [MaxPool((2, 20, 41, 40), 1, 2), MaxPool((2, 20, 9, 7), 1, 3)], ids=str)
def test_windows_of_one_position_without_a_bit(pool, missing, dtype, rng):
    """A few windows of one channel have no maximum: nothing is said of the others, in the same words or not."""
    grad, hits = pool.gradients(rng, dtype), np.ones(pool.hits_shape, bool)
    hits[:, missing, 0, 1:3, 1:3] = False
    result = one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes)
    expected = np.zeros(pool.input_shape, grad.dtype)
    expected[:, :, :: pool.attributes[1], :: pool.attributes[1]] = np.where(hits[:, :, 0], grad, 0)
    assert_same_bytes(result, expected)


@pytest.mark.parametrize("columns", range(2, 17))
def test_two_bits_in_one_window(columns, rng):
    """At any two kernel columns, of one kernel row or two: in each channel one window has a second bit."""
    pairs = [(a, b, row) for a, b in combinations(range(columns), 2) for row in (1, 2)]
    pool = MaxPool((1, len(pairs), 9, columns + 6), (3, columns), 1)
    hits = np.zeros(pool.hits_shape, bool)
    hits[:, :, columns] = True
    for channel, (a, b, row) in enumerate(pairs):
        hits[0, channel, :, 3, 3] = False
        hits[0, channel, [columns + a, row * columns + b], 3, 3] = True
    grad = pool.gradients(rng, "float32")
    result = one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes)
    assert_same_bytes(result, summed_in_order(pool, grad, hits, False))


def test_the_other_marks_of_a_window_do_not_matter(rng):
    """Windows with one mark, beside windows with any number: where only the former reach, the bytes stay the same."""
    pool = MaxPool((1, 17, 12, 40), 2)
    grad, one = pool.gradients(rng, "float32"), pool.hits(pool.indices(rng))
    odd = rng.random(pool.output_shape)[:, :, None] < 0.1
    many = np.where(odd, rng.random(pool.hits_shape) < 0.5, one)
    result, single = (one_call(grad, pool.input_shape, max_pool.bitmask(hits), 2) for hits in (many, one))
    untouched = ~np.repeat(np.repeat(odd[:, :, 0], 2, 2), 2, 3)
    assert_same_bytes(result[untouched], single[untouched])


@every_dtype
@pytest.mark.parametrize("kernel", range(1, 6))
def test_every_kernel_stride_and_padding(kernel, dtype, rng):
    attributes = product(range(1, kernel + 3), range(kernel // 2 + 1), (False, True))
    for index, (stride, padding, ceil_mode) in enumerate(attributes):
        shape = (1, (1, 2, 18)[index % 3], kernel + 3 + index % 9, 2 * kernel + 2 + index % 19)
        check_all_entry_points(MaxPool(shape, kernel, stride, padding, ceil_mode), ("Host", dtype), rng, index % 8)


WINDOWS = [(3, 2, 1), (3, 2, 0), (2, 2, 0), (2, 2, 1), (3, 1, 1), (2, 1, 0), (3, 3, 0), (5, 2, 2), (1, 1, 0), (2, 3, 1),
           (5, 1, 2)]


def every_width(kernel, stride, padding):
    """Poolings of widths around all vector lengths, with all remainders behind them."""
    for width in [*range(3, 36), *range(47, 50), *range(63, 67), 129]:
        if width + 2 * padding >= kernel:
            yield MaxPool((1, (1, 17)[width % 2], 5 + width % 5, width), kernel, stride, padding, width % 3 == 0)


@every_dtype
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_width(window, dtype, rng):
    for pool in every_width(*window):
        check_all_entry_points(pool, ("Host", dtype), rng, pool.input_shape[-1] % 8)


axes = st.one_of(
    st.tuples(st.integers(1, 14), st.integers(1, 7), st.integers(1, 6), st.integers(0, 3)),
    st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 25), st.integers(0, 10)),
).filter(lambda axis: 2 * axis[3] <= axis[1] and reference.pooled_size(*axis) >= 1)


@st.composite
def any_pool(draw):
    size, *attributes = zip(draw(axes), draw(axes), strict=True)
    leading = draw(st.sampled_from([(1,), (18,), (1, 1), (2, 3), (1, 17), (2, 16)]))
    return MaxPool((*leading, *size), *attributes, draw(st.booleans()))


seeds, offsets = st.integers(0, 2**32 - 1), st.integers(0, 7)
layouts = st.sampled_from(list(LAYOUTS))


@settings(max_examples=200)
@given(
    any_pool(), st.sampled_from(MAX_POOL_MODES), seeds, layouts, layouts, offsets, offsets, offsets,
    st.sampled_from([None, 0.1, 0.9]),
)  # fmt: skip
def test_any_geometry_in_any_layout(pool, mode, seed, layout, out_layout, offset, mask_offset, out_offset, density):
    product, dtype = mode
    rng = np.random.default_rng(seed)
    values = pool.gradients(rng, dtype)
    if density is None:
        indices = pool.indices(rng)
        hits, masks = pool.hits(indices), [(pool.mask(indices, layout), layout) for layout in MASK_LAYOUTS]
    else:
        hits = rng.random(pool.hits_shape) < density
        masks = [(max_pool.bitmask(hits), "bitmask")]
    grad = guarded_copy(values, layout, offset)
    for contents, mask_layout in masks:
        mask = guarded_copy(with_garbage(contents, pool, rng, mask_layout), "contiguous", mask_offset)
        before = grad.buffer.tobytes(), mask.buffer.tobytes()
        out = Guarded(pool.input_shape, values.dtype, out_layout, out_offset)
        two_phase(pool, grad.view, mask.view, product, mask_layout, out.view)
        out.assert_outside_untouched()
        assert (grad.buffer.tobytes(), mask.buffer.tobytes()) == before
        assert_is_max_pool2d_backward(out.view, values, hits, pool, product)
        assert_same_bytes(out.view, two_phase(pool, values, masks[0][0], product))


@given(any_pool(), seeds, st.sampled_from(MASK_LAYOUTS))
def test_is_the_adjoint_of_picking_the_maxima(pool, seed, mask_layout):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(pool.input_shape), rng.standard_normal(pool.output_shape)
    out, mask = aclnn_bw.max_pool2d_with_mask(x, *pool.attributes, mask_layout=mask_layout)
    result = one_call(y, x, mask, *pool.attributes, mask_layout=mask_layout)
    assert abs(np.vdot(out, y) - np.vdot(x, result)) <= 1e-13 * (np.vdot(abs(out), abs(y)) + 1)


@every_mask_layout
@every_dtype
def test_empty_batch(dtype, mask_layout):
    pool = MaxPool((0, 3, 8, 9), 3, 2, 1)
    grad, mask = np.empty(pool.output_shape, DTYPES[dtype]), np.empty(pool.mask_shape, np.int8)
    out = Guarded(pool.input_shape, DTYPES[dtype])
    with aclnn_bw.soc("Host", mask_layout=mask_layout):
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
            grad, out.view, mask, *pool.lists, out.view
        )
    assert size == 0
    aclnn_bw.aclnnMaxPool2dWithMaskBackward(None, 0, executor)
    out.assert_outside_untouched()
    result = one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout=mask_layout)
    assert (result.shape, result.dtype) == (pool.input_shape, DTYPES[dtype])


@every_mask_layout
@every_dtype
@pytest.mark.parametrize(
    "shape", [(1, 1, 2**22, 40), (1, 16, 2**22, 9), (2**20, 2**10, 9, 9), (1, 2**20, 300, 70), (1, 1, 3, 2**22)]
)
def test_workspace_whatever_batch_channels_and_height(shape, dtype, mask_layout):
    """Of both operators. Unbound tensors, so that nothing is allocated."""
    code = next(code for code, known in NUMPY_DTYPE.items() if known == DTYPES[dtype])
    for geometry in ((3, 1, 1), (2,), (3, 2, 1, True), (2, 1), (2, 3), ((2, 9), (1, 2), (1, 4))):
        pool = MaxPool(shape, *geometry)
        shapes = {
            "image": (shape, code),
            "out": (pool.output_shape, code),
            "mask": (pool.mask_shape, aclnn_bw.ACL_INT8),
        }
        image, out, mask = (Spec(*spec, bound=False).build() for spec in shapes.values())
        for threads in (1, 4):
            with aclnn_bw.soc("Host", mask_layout=mask_layout), aclnn_bw.num_threads(threads):
                for size, executor in (
                    aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(image, *pool.lists, out, mask),
                    aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(out, image, mask, *pool.lists, image),
                ):
                    assert 0 <= size <= threads * (2 * 2**20 + 64 * shape[-1])
                    aclnn_bw.aclDestroyAclOpExecutor(executor)


# ---- argmax: values that only the second phase can see ---------------------------------------------------------------


def repeatable(pool, grad, mask, out):
    with aclnn_bw.soc("Host", mask_layout="argmax"):
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(grad, out, mask, *pool.lists, out)
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    return size, executor


def refusal_of(place, value, name="indices"):
    """How a message begins that names the place and the value."""
    return f"{name}[{'0, ' * (4 - len(place))}{', '.join(map(str, place))}] = {value}: "


def assert_refused(beginning, function, *arguments, **options):
    with pytest.raises(aclnn_bw.AclnnError) as info:
        function(*arguments, **options)
    assert info.value.status == aclnn_bw.AclnnStatus.ACLNN_ERR_PARAM_INVALID
    assert str(info.value).startswith(beginning), f"{info.value} does not begin with {beginning}"
    assert aclnn_bw.aclGetRecentErrMsg() == str(info.value)


def indices_inside(pool, oh, ow):
    """All indices of the plane that lie in this window."""
    (kh, kw), (sh, sw), (ph, pw) = (reference.pair(value) for value in (pool[1], pool[2] or pool[1], pool[3]))
    (height, width), (top, left) = pool.input_shape[-2:], (oh * sh - ph, ow * sw - pw)
    rows, columns = range(max(top, 0), min(top + kh, height)), range(max(left, 0), min(left + kw, width))
    return {row * width + column for row, column in product(rows, columns)}


CHECKED = [  # whose indices are checked in ways of their own
    MaxPool((1, 1, 5, 6), 3, 2, 1),
    MaxPool((1, 1, 6, 6), 2),
    MaxPool((1, 1, 4, 19), (2, 3), 1, 1),
    MaxPool((1, 1, 4, 19), 2, (2, 1), (1, 0)),
    MaxPool((1, 1, 7, 8), 2, 3, 1, True),
    MaxPool((1, 1, 3, 2), (2, 18), 1, (1, 9)),
    MaxPool((1, 1, 7, 6), 3, 1, 1),
    MaxPool((1, 1, 7, 7), 5, 1, 2),
    MaxPool((4, 2, 5, 6), 3, 2, 1),  # small planes of several units are checked together
    MaxPool((4, 2, 6, 5), (3, 4), 2, 1, True),
    MaxPool((4, 2, 4, 6), 2),  # fewer windows than a vector has lanes
    MaxPool((4, 2, 5, 6), 4, 1),
    MaxPool((4, 2, 4, 5), 3, 1),
    MaxPool((1, 1, 9, 18), (7, 3), 1, (0, 1)),  # a vector of windows, of many rows
]


@pytest.mark.parametrize("pool", CHECKED, ids=str)
def test_exactly_the_indices_inside_their_own_window_are_taken(pool, rng):
    indices, grad = pool.indices(rng), pool.gradients(rng, "float32")
    mask, out = pool.mask(indices, "argmax"), np.empty(pool.input_shape, np.float32)
    size, executor = repeatable(pool, grad, mask, out)
    workspace = bytearray(size)
    stored = mask.reshape(-1).view("<i4")[: indices.size].reshape(indices.shape)
    height, width = pool.input_shape[-2:]
    extremes = [-(2**31), 2**31 - 1, -(2**30), 2**24, 2**16 + int(indices[0, 0, 0, 0])]
    for place in np.ndindex(indices.shape):
        right, inside = stored[place], indices_inside(pool, *place[-2:])
        assert right in inside
        for value in [*range(-width - 2, (height + 2) * width), *extremes]:
            stored[place] = value
            try:
                aclnn_bw.aclnnMaxPool2dWithMaskBackward(workspace, size, executor)
                seen = "accepted"
            except aclnn_bw.AclnnError as error:
                seen = str(error)
            assert seen.startswith("accepted" if value in inside else refusal_of(place, value))
            if value in inside:
                assert_is_max_pool2d_backward(out, grad, pool.hits(stored), pool)
        stored[place] = right


CHECKED_BY_THREADS = [KINDS[8], *(pool for pool in LARGE if pool.kernel_size != 1)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("pool", CHECKED_BY_THREADS, ids=str)
def test_the_first_bad_index_is_named_at_every_thread_count(pool, dtype, rng):
    """And gradInput alone is touched."""
    indices, hits, masks = example(pool)
    for layout in ("columns_reversed", "channels_last"):
        grad = guarded_copy(pool.gradients(rng, dtype), layout)
        places = sorted(tuple(map(int, rng.integers(indices.shape))) for _ in range(3))
        values = [int(rng.choice([-1, -7, 2**31 - 1, -(2**31), int(np.prod(pool.input_shape[-2:]))])) for _ in places]
        bad = indices.copy()
        for place, value in zip(reversed(places), reversed(values), strict=True):
            bad[place] = value
        mask = guarded_copy(max_pool.argmax_mask(bad, pool.kernel_size), "contiguous", 1)
        before = mask.buffer.tobytes(), grad.buffer.tobytes()
        for threads in (1, 2, 3, 4):
            out = Guarded(pool.input_shape, DTYPES[dtype], layout.replace("columns", "all"), 1)
            with aclnn_bw.num_threads(threads):
                size, executor = repeatable(pool, grad.view, mask.view, out.view)
                around = np.full(size + 128, NAN_BYTE, np.uint8)
                workspace = around[65 : 65 + size]
                beginning = refusal_of(places[0], values[0])
                assert_refused(beginning, aclnn_bw.aclnnMaxPool2dWithMaskBackward, workspace, size, executor)
                assert np.all(around[:65] == NAN_BYTE)
                assert np.all(around[65 + size :] == NAN_BYTE)
                out.assert_outside_untouched()
                arguments = grad.view, pool.input_shape, mask.view, *pool.attributes
                beginning = refusal_of(places[0], values[0], "mask")
                assert_refused(beginning, one_call, *arguments, mask_layout="argmax")
                # The executor is free again: with a good mask it runs.
                aclnn_bw.aclSetInputTensorAddr(executor, 2, None, masks["argmax"])
                aclnn_bw.aclnnMaxPool2dWithMaskBackward(workspace, size, executor)
                assert_is_max_pool2d_backward(out.view, grad.view, hits, pool)
        assert (mask.buffer.tobytes(), grad.buffer.tobytes()) == before


def test_bad_index_on_a_stream(rng):
    pool = MaxPool((2, 3, 9, 10), 3, 2, 1)
    grad, indices = pool.gradients(rng, "float32"), pool.indices(rng)
    out, later = np.empty(pool.input_shape, np.float32), np.empty(pool.input_shape, np.float32)
    bad = indices.copy()
    bad[1, 2, 0, 4], bad[0, 1, 3, 2] = 99, -5
    calls = [(bad, out), (indices, later)]
    stream = aclnn_bw.aclrtCreateStream()
    try:
        for values, written in calls:
            size, executor = repeatable(pool, grad, pool.mask(values, "argmax"), written)
            aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor, stream)
        assert_refused(refusal_of((0, 1, 3, 2), -5), aclnn_bw.aclrtSynchronizeStream, stream)
        assert_is_max_pool2d_backward(later, grad, pool.hits(indices), pool)
        size, executor = repeatable(pool, grad, pool.mask(indices, "argmax"), out)
        aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor, stream)
        aclnn_bw.aclrtSynchronizeStream(stream)
        assert_same_bytes(out, later)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)


def test_bad_index_of_a_spent_executor(rng):
    """A run that fails has run: the executor is spent."""
    pool = MaxPool((1, 2, 2), 2)
    mask = max_pool.argmax_mask(np.array([[[4]]]), 2)
    out = np.empty(pool.input_shape, np.float32)
    with aclnn_bw.soc("Host", mask_layout="argmax"):
        grad = pool.gradients(rng, "float32")
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(grad, out, mask, *pool.lists, out)
    assert_refused(refusal_of((0, 0, 0), 4), aclnn_bw.aclnnMaxPool2dWithMaskBackward, bytearray(size), size, executor)
    with pytest.raises(aclnn_bw.AclnnError, match="spent"):
        aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)


def test_the_layout_of_the_first_phase_is_kept(rng):
    pool = MaxPool((1, 3, 8, 8), 2)
    grad, indices = pool.gradients(rng, "float32"), pool.indices(rng)
    for layout, other in (MASK_LAYOUTS, MASK_LAYOUTS[::-1]):
        out = np.empty(pool.input_shape, np.float32)
        with aclnn_bw.soc("Ascend910B", mask_layout=layout):
            size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
                grad, out, pool.mask(indices, layout), *pool.lists, out
            )
        with aclnn_bw.soc("Ascend910", mask_layout=other):
            aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)
        assert_is_max_pool2d_backward(out, grad, pool.hits(indices), pool)


# ---- roundings -------------------------------------------------------------------------------------------------------


@every_mask_layout
def test_ascend910_rounds_float32_to_float16(mask_layout, rng):
    """gradOutput before, the sum after: one term shows the first, exact sums of several the second."""
    pool = MaxPool((1, 1, 64, 66), 1)
    grad = (rng.standard_normal(pool.output_shape) * 2.0 ** rng.integers(-30, 20, pool.output_shape)).astype(np.float32)
    ones = pool.mask(np.arange(64 * 66).reshape(pool.output_shape))
    result = two_phase(pool, grad, ones, "Ascend910", mask_layout)
    rounded = reference.round_float16(grad).astype(np.float32)
    assert np.isinf(rounded).any()
    assert_same_bytes(result + np.float32(0), rounded + np.float32(0))
    # Four windows share the middle of a 3x3 plane; 2048 + 1 + 1 + 1 = 2051 lies between two float16.
    pool = MaxPool((1, 3, 3), 2, 1)
    mask = pool.mask(np.full((1, 2, 2), 4), mask_layout)
    for terms, expected in (
        ((2048, 1, 1, 1), 2052),
        ((1 + 2.0**-12, 1, 1, 1), 4),
        ((65504, 32, 0, 0), np.inf),
        ((65504, 15, 0, 0), 65504),
        ((2049, 1, 0, 0), 2048),  # 2049 is rounded to 2048 first, and 2048 + 1 again
    ):
        grad = np.array(terms, np.float32).reshape(1, 2, 2)
        assert two_phase(pool, grad, mask, "Ascend910", mask_layout)[0, 1, 1] == expected
    with np.errstate(over="ignore"):
        exact = two_phase(pool, np.array([[[2049, 1], [0, 0]]], np.float32), mask, "Ascend910B", mask_layout)
    assert exact[0, 1, 1] == 2050


@every_mask_layout
@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2048.0), ("bfloat16", 256.0)])
def test_sums_of_16_bits_are_rounded_once(dtype, unit, mask_layout):
    pool = MaxPool((1, 20, 3, 3), 2, 1)
    mask = pool.mask(np.full(pool.output_shape, 4), mask_layout)
    for terms in ((unit, 1, 1, 1), (1, 1, 1, unit)):
        grad = np.broadcast_to(np.array(terms, DTYPES[dtype]).reshape(2, 2), pool.output_shape)
        result = one_call(grad, pool.input_shape, mask, 2, 1, mask_layout=mask_layout)
        assert np.all(result[..., 1, 1] == unit + 4)  # unit + 3 lies between unit + 2 and unit + 4
        assert not bits(np.delete(result.reshape(20, 9), 4, 1)).any()


@every_dtype
def test_sums_beyond_the_dtype_are_inf_and_subnormals_stay(dtype, rng):
    pool = MaxPool((1, 3, 3), 2, 1)
    mask = pool.mask(np.full((1, 2, 2), 4))
    biggest = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4e38, "float64": 1.79e308}[dtype]
    values = np.array([biggest, -biggest, SMALLEST[dtype]]).astype(DTYPES[dtype])
    for value, expected in zip(values, (np.inf, -np.inf, values[2] * DTYPES[dtype].type(4)), strict=True):
        assert one_call(np.full((1, 2, 2), value), (1, 3, 3), mask, 2, 1)[0, 1, 1] == expected
    for pool in KINDS:
        whole = rng.integers(-60, 61, pool.output_shape)
        grad, indices = (whole * SMALLEST[dtype]).astype(DTYPES[dtype]), pool.indices(rng)
        result = one_call(grad, pool.input_shape, pool.mask(indices), *pool.attributes)
        assert_is_max_pool2d_backward(result, grad, pool.hits(indices), pool)


# ---- NaN, inf, zeros -------------------------------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize("pool", [*KINDS, LARGE[6], MaxPool((2, 29, 6, 6), 3, 2, 1)], ids=str)
def test_nan_and_inf_reach_exactly_their_elements(pool, mode, rng):
    """Where no bit is set a NaN adds nothing, not even 0 * NaN."""
    product, dtype = mode
    _, one, masks = example(pool)
    several = rng.random(pool.hits_shape) < 0.1
    cases = [(one, masks[layout], layout) for layout in MASK_LAYOUTS]
    for hits, mask, layout in [(several, max_pool.bitmask(several), "bitmask"), *cases]:
        grad = pool.gradients(rng, dtype)
        marks = rng.random(grad.shape) < max(0.01, 1.5 / grad.size)
        clean = np.where(marks, np.zeros((), grad.dtype), grad)
        reached = max_pool.max_pool2d_backward(marks, hits, *pool) != 0
        without = two_phase(pool, clean, mask, product, layout)
        for value in (np.nan, np.inf, -np.inf):
            result = two_phase(pool, np.where(marks, grad.dtype.type(value), grad), mask, product, layout)
            assert_same_bytes(result[~reached], without[~reached])
            assert_same_bytes(result[reached], np.full_like(result[reached], value))


def test_infinities_meet():
    pool = MaxPool((1, 3, 3), 2, 1)
    for dtype, layout in product(DTYPES.values(), MASK_LAYOUTS):
        grad = np.array([[[np.inf, 1], [-np.inf, 2]]], dtype)
        result = one_call(grad, (1, 3, 3), pool.mask(np.full((1, 2, 2), 4), layout), 2, 1, mask_layout=layout)
        assert np.isnan(result[0, 1, 1])
        assert np.isnan(result).sum() == 1


@every_mask_layout
@every_mode
@every_kind
def test_no_negative_zero(pool, mode, mask_layout, rng):
    product, dtype = mode
    mask = example(pool)[2][mask_layout]
    for grad in (-np.zeros(pool.output_shape), rng.integers(-1, 2, pool.output_shape)):
        assert_no_negative_zero(two_phase(pool, grad.astype(DTYPES[dtype]), mask, product, mask_layout))
    if mode == ("Ascend910", "float32"):  # what underflows in float16 is a zero too
        tiny = np.full(pool.output_shape, -(2.0**-26), np.float32)
        assert_no_negative_zero(two_phase(pool, tiny, mask, product, mask_layout))


def all_negative_zeros(kernel, dtype, mask_layout):
    """The gradient of peaks, each the maximum of every window that holds it, where all terms are -0.0."""
    x = np.zeros((1, 5, 15, 47), dtype)
    x[:, :, 2::5, 2::5] = 1
    padding = [size // 2 for size in kernel]
    out, mask = aclnn_bw.max_pool2d_with_mask(x, kernel, 1, padding, mask_layout=mask_layout)
    grad = np.full(out.shape, -0.0).astype(dtype)
    return aclnn_bw.max_pool2d_with_mask_backward(grad, x, mask, kernel, 1, padding, mask_layout=mask_layout)


@every_mask_layout
@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (2, 2), (5, 5)])
def test_nothing_but_negative_zeros_is_zero(kernel, mask_layout):
    for dtype in DTYPES.values():
        assert_no_negative_zero(all_negative_zeros(kernel, dtype, mask_layout))


# ---- the same bytes, whatever ... ------------------------------------------------------------------------------------


@every_mask_layout
@every_dtype
@every_kind
def test_same_bytes_whatever_batch_and_channels(pool, dtype, mask_layout, rng):
    """Lanes, groups of channels and images: each plane's result is its own."""
    pool = pool._replace(input_shape=(2, 19, *pool.input_shape[-2:]))
    grad, (indices, _, masks) = pool.gradients(rng, dtype), example(pool)
    whole = two_phase(pool, grad, masks[mask_layout], "Host", mask_layout)
    for n, c, channels in ((0, 0, 1), (1, 3, 4), (1, 15, 2), (0, 18, 1), (1, 0, 19)):
        part = pool._replace(input_shape=(channels, *pool.input_shape[-2:]))
        mask = part.mask(indices[n, c : c + channels], mask_layout)
        args = grad[n, c : c + channels], part.input_shape, mask, *pool.attributes
        assert_same_bytes(one_call(*args, mask_layout=mask_layout), whole[n, c : c + channels])


def a_third(layout, mode):
    """Different ones for each layout and mode: the whole has all pairs of the three."""
    return [*KINDS, LARGE[6]][(list(LAYOUTS).index(layout) + MAX_POOL_MODES.index(mode)) % 3 :: 3]


@every_mask_layout
@every_mode
@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_bytes_whatever_layout(layout, mode, mask_layout, rng):
    product, dtype = mode
    for index, pool in enumerate(a_third(layout, mode)):
        values, mask = pool.gradients(rng, dtype), example(pool)[2][mask_layout]
        plain = two_phase(pool, values, mask, product, mask_layout)
        grad = guarded_copy(values, layout, index % 4)
        shifted = guarded_copy(mask, "contiguous", index % 8)
        out = Guarded(pool.input_shape, values.dtype, layout, index % 3)
        two_phase(pool, grad.view, shifted.view, product, mask_layout, out.view)
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


@every_mask_layout
@every_dtype
@every_kind
def test_same_bytes_from_broadcast_inputs(pool, dtype, mask_layout, rng):
    n, c, height, width = pool.output_shape
    rest = (pool.input_shape, example(pool)[2][mask_layout], *pool.attributes)
    for kept in ((1, 1, height, width), (n, 1, height, 1), (1, c, 1, width), (1, 1, 1, 1)):
        view = np.broadcast_to(rng.standard_normal(kept).astype(DTYPES[dtype]), pool.output_shape)
        results = (one_call(grad, *rest, mask_layout=mask_layout) for grad in (view, view.copy()))
        assert_same_bytes(*results)


@every_mask_layout
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["channels_last", "all_reversed"])
def test_same_bytes_in_any_layout_of_long_rows(layout, dtype, mask_layout, rng):
    """Which algorithm runs, and with it the order of the sums, does not depend on strides where scratch runs short."""
    for width in (15000, 40000):
        pool = MaxPool((1, 5, 4, width), 3, 1, 1)
        values, mask = pool.gradients(rng, dtype), pool.mask(pool.indices(rng), mask_layout)
        plain = one_call(values, pool.input_shape, mask, *pool.attributes, mask_layout=mask_layout)
        grad = guarded_copy(values, layout)
        out = Guarded(pool.input_shape, values.dtype, layout)
        two_phase(pool, grad.view, mask, "Host", mask_layout, out.view)
        assert_same_bytes(out.view, plain)
        out.assert_outside_untouched()


def summed_in_order(pool, grad, hits, apart):
    """Term by term in ascending (oh, ow); `apart`: each ow by itself, oh ascending, then these sums, ow ascending."""
    (rows, columns), (kernel_h, kernel_w) = pool.input_shape[-2:], reference.pair(pool.kernel_size)
    padded = np.zeros((kernel_w if apart else 1, *pool.input_shape[:2], rows + 2 * kernel_h, columns + 2 * kernel_w))
    sums = padded.astype(grad.dtype)
    (stride_h, stride_w), (pad_h, pad_w) = (reference.pair(each) for each in (pool.stride, pool.padding))
    for kh, kw in product(reversed(range(kernel_h)), reversed(range(kernel_w))):
        term = np.where(hits[:, :, kh * kernel_w + kw], grad, grad.dtype.type(0))
        top, left = kernel_h - pad_h + kh, kernel_w - pad_w + kw
        height, width = grad.shape[2:]
        place = (..., slice(top, top + stride_h * height, stride_h), slice(left, left + stride_w * width, stride_w))
        sums[kw if apart else 0][place] += term
    total = sums[-1]
    for kw in reversed(range(kernel_w - 1) if apart else ()):
        total = total + sums[kw]
    return total[:, :, kernel_h : kernel_h + rows, kernel_w : kernel_w + columns]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("window", [(3, 2, 1), (3, 2, 0), (3, 1, 1), (3, 1, 0), (2, 1, 0), (5, 2, 2)], ids=str)
def test_the_order_of_the_sums(window, dtype, rng):
    for plane in ((21, 37), (7, 7)):
        pool = MaxPool((2, 18, *plane), *window)
        grad, hits = pool.gradients(rng, dtype), rng.random(pool.hits_shape) < 0.7
        result = one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes)
        assert_same_bytes(result, summed_in_order(pool, grad, hits, window == (3, 1, 1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("pool", "algorithm"),
    [
        (MaxPool((2, 18, 35, 3), 1, 2), "SCATTER"),  # short rows
        (MaxPool((2, 18, 35, 7), 2, 2), "SCATTER"),
        (MaxPool((2, 18, 6, 200), 2, 2), "GATHER"),
        (MaxPool((2, 18, 10, 14), 11, 7, 2), "PLANES"),  # few windows
        (MaxPool((2, 18, 30, 31), 13, 13, 2), "PLANES"),
        (MaxPool((2, 18, 34, 34), 17, 17), "PLANES"),  # kernels that SCATTER would walk bit by bit
        (MaxPool((2, 18, 30, 30), 30, 30), "PLANES"),
        (MaxPool((2, 18, 12, 36), 11, 5), "PLANES"),
        (MaxPool((2, 18, 12, 36), 4, 3), "SCATTER"),  # more than a vector of words has
        (MaxPool((1, 2, 80, 589), 8, 8), "SCATTER"),  # bands of whole windows, of fewer positions than 16 bits count
        (MaxPool((1, 1, 252, 219), 4, 4, 1), "SCATTER"),
        (MaxPool((1, 2, 300, 200), 5, 3, 2), "SCATTER"),
        (MaxPool((1, 1, 8, 50000), 2, 2), "SCATTER"),  # rows of more positions than that
        (MaxPool((1, 2, 20, 20000), 9, 4, 4), "SCATTER"),  # and of so many that bands would be one row of tall kernels
    ],
    ids=str,
)
def test_the_order_of_the_sums_of_odd_planes(pool, algorithm, dtype, rng):
    grad = pool.gradients(rng, dtype)
    out = np.empty(pool.input_shape, dtype)
    for hits in (rng.random(pool.hits_shape) < 0.3, pool.hits(pool.indices(rng))):
        result = one_call(grad, pool.input_shape, max_pool.bitmask(hits), *pool.attributes)
        assert_same_bytes(result, summed_in_order(pool, grad, hits, False))
    with aclnn_bw.num_threads(1), aclnn_bw.soc("Host"):
        phase_1 = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize
        _, executor = phase_1(grad, out, max_pool.bitmask(hits), *pool.lists, out)
    assert executor.explain().algorithm == algorithm


@pytest.mark.parametrize("layout", ["contiguous", "channels_cropped"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "pool",
    [
        MaxPool((2, 40, 5, 7), 3, 2, 1),
        MaxPool((3, 16, 6, 6), 2, 2, 0, True),
        MaxPool((1, 28, 9, 5), 2, 1, 1),
        MaxPool((2, 32, 6, 6), (3, 2), (1, 2), (1, 0)),
        MaxPool((96, 512, 6, 6), 3, 2, 1),  # beyond the caches, where more is fetched ahead
    ],
    ids=str,
)
def test_channels_of_small_planes_side_by_side(pool, dtype, layout, rng):
    """Of bits, for which every vector is full of channels; bits of channels that are not there do not count."""
    grad = pool.gradients(rng, dtype)
    grad[:, 1::2] = np.round(grad[:, 1::2].astype(np.float32))  # sums that are zero again, and -0.0
    view = guarded_copy(grad, layout).view
    out = Guarded(pool.input_shape, grad.dtype)
    for hits in (rng.random(pool.hits_shape) < 0.6, pool.hits(pool.indices(rng))):
        mask = with_garbage(max_pool.bitmask(hits), pool, rng)
        two_phase(pool, view, mask, "Host", "bitmask", out.view)
        assert_same_bytes(out.view, summed_in_order(pool, grad.astype(np.float32), hits, False).astype(grad.dtype))
        out.assert_outside_untouched()
    if aclnn_bw.show_config(mode="dict")["isa"] in ("v3", "v4"):
        with aclnn_bw.soc("Host"):
            phase_1 = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize
            _, executor = phase_1(view, out.view, mask, *pool.lists, out.view)
        assert executor.explain().algorithm == "GATHER_ACROSS"


@pytest.mark.parametrize(
    "pool",
    [
        MaxPool((1, 1, 9, 40000), (3, 5), (3, 5)),
        MaxPool((1, 1, 8, 70000), (1, 5), (1, 5)),
        MaxPool((1, 1, 8, 32768), (4, 5), (4, 5)),
        MaxPool((1, 2, 8, 32767), (2, 5), (2, 5)),
    ],
    ids=str,
)
def test_bands_of_wide_planes(pool, rng):
    """Bits give the bytes that indices give, whose bands are others."""
    grad, indices = pool.gradients(rng, "float32"), pool.indices(rng)
    results = (
        one_call(grad, pool.input_shape, pool.mask(indices, layout), *pool.attributes, mask_layout=layout)
        for layout in MASK_LAYOUTS
    )
    assert_same_bytes(*results)


@pytest.mark.parametrize("layout", ["contiguous", "columns_cropped", "rows_reversed"])
@every_mask_layout
@every_dtype
@pytest.mark.parametrize(
    "pool",
    [
        MaxPool((1, 5, 230, 90), 5, 1, 2),  # many blocks that share rows
        MaxPool((2, 3, 250, 100), 7, 2, 3),
        MaxPool((1, 18, 300, 40), 3, 7, 1),  # rows between windows
        MaxPool((1, 1, 100, 164), 13, 1, 0),
        MaxPool((1, 2, 400, 70), 16, 5, 8),  # few windows
        MaxPool((1, 3, 200, 64), 9, 11, 4),
        MaxPool((1, 2, 330, 117), 4, 3, 2, True),
        MaxPool((1, 2, 40, 3000), (2, 5), 1, 0),  # rows of many columns
        MaxPool((1, 1, 90, 1700), 16, 6, 3),
        MaxPool((1, 4, 250, 60), (100, 3), (160, 2), 0),  # one row of windows, and rows below it
        MaxPool((1, 2, 200, 120), (30, 20), (20, 3), (5, 3)),  # bits one by one
        MaxPool((1, 17, 300, 30), (2, 5), (40, 2), 1),
        MaxPool((1, 17, 55, 14), 5, 1),  # a last block of few windows: its vector begins before it
    ],
    ids=str,
)
def test_blocks_of_windows(pool, dtype, mask_layout, layout, rng):
    """In planes of which the scratch holds some rows: each has the sums of all windows that reach it, and no others."""
    grad, indices = pool.gradients(rng, dtype), pool.indices(rng)
    grad[:, ::2] = np.round(grad[:, ::2].astype(np.float32))  # sums that are zero again, and -0.0
    wide = grad.astype(np.float64 if dtype == "float64" else np.float32)
    for several in (False, True)[: 2 if mask_layout == "bitmask" else 1]:
        hits = rng.random(pool.hits_shape) < 0.1 if several else pool.hits(indices)
        mask = max_pool.bitmask(hits) if several else pool.mask(indices, mask_layout)
        found = Guarded(pool.input_shape, grad.dtype, layout)
        with aclnn_bw.num_threads(1), aclnn_bw.soc("Host", mask_layout=mask_layout):
            phase_1 = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize
            assert phase_1(grad, found.view, mask, *pool.lists, found.view)[1].explain().algorithm == "SCATTER"
            two_phase(pool, grad, mask, layout=mask_layout, out=found.view)
        found.assert_outside_untouched()
        assert_same_bytes(found.view, summed_in_order(pool, wide, hits, False).astype(grad.dtype))


@every_mask_layout
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("pool", "mebibytes"),
    [
        (MaxPool((1, 16, 60, 61), 5, 5), 17),  # indices of whole planes
        (MaxPool((1, 16, 131, 130), 7, 6, 3), 17),
        (MaxPool((1, 16, 8, 9), 5, 5), 17),  # bits of one window
        (MaxPool((1, 6, 61, 63), 2), 97),
        (MaxPool((1, 6, 61, 63), 3, 1, 1), 97),
        (MaxPool((1, 6, 131, 99), 3, 2, 1), 97),
    ],
    ids=str,
)
def test_images_beyond_the_caches(pool, mebibytes, dtype, mask_layout, rng):
    """A batch of more than 16 or 96 MiB has the bytes of its first image, time and again, streamed or not: that differs
    between machines."""
    grad, indices = pool.gradients(rng, dtype), pool.indices(rng)
    expected = one_call(
        grad, pool.input_shape, pool.mask(indices, mask_layout), *pool.attributes, mask_layout=mask_layout
    )
    batch = (mebibytes << 20) // expected.nbytes + 1
    many = pool._replace(input_shape=(batch, *pool.input_shape[1:]))
    mask = many.mask(np.repeat(indices, batch, axis=0), mask_layout)
    grad, expected = np.repeat(grad, batch, axis=0), np.repeat(expected, batch, axis=0)
    for least in EITHER_WAY:
        out = Guarded(many.input_shape, grad.dtype)
        with past_the_caches(least):
            one_call(grad, many.input_shape, mask, *many.attributes, mask_layout=mask_layout, out=out.view)
        assert_same_bytes(out.view, expected)
        out.assert_outside_untouched()


@every_mask_layout
def test_bands_past_the_caches(mask_layout, rng):
    """Of few planes, by any number of threads: the bytes of rows with gaps, which are not made elsewhere first."""
    for pool in MaxPool((1, 3, 2503, 3203), 3, 2, 1), MaxPool((1, 3, 2500, 3201), 2):
        grad, mask = pool.gradients(rng, "float32"), pool.mask(pool.indices(rng), mask_layout)
        apart = Guarded(pool.input_shape, grad.dtype, "columns_cropped")
        for out, threads in (apart, 2), (Guarded(pool.input_shape, grad.dtype, offset=1), 1), (
                Guarded(pool.input_shape, grad.dtype), 3):  # fmt: skip
            with aclnn_bw.num_threads(threads):
                one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout=mask_layout, out=out.view)
            assert_same_bytes(out.view, apart.view)
            out.assert_outside_untouched()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_bit_in_the_padding_of_a_high_plane(dtype):
    """8 rows above the first one, modulo 2**16, lies a row that the plane has."""
    pool = MaxPool((1, 1, 65530, 1), (16, 1), (256, 1), (8, 0))
    hits = np.zeros(pool.hits_shape, bool)
    hits[:, :, 9] = True
    hits[..., 0, 0] = np.arange(16) == 0
    grad = np.arange(1, 257).reshape(pool.output_shape).astype(dtype)
    memory = np.full((1, 1, 131060, 1), 7, dtype)
    with aclnn_bw.num_threads(1):
        two_phase(pool, grad, max_pool.bitmask(hits), out=memory[:, :, ::2])
    expected = np.zeros(pool.input_shape, dtype)
    expected[0, 0, 257::256, 0] = grad[0, 0, 1:, 0]
    assert_same_bytes(memory[:, :, ::2], expected)
    assert (memory[:, :, 1::2] == 7).all()


@every_mode
@every_large
def test_same_bytes_at_every_thread_count(pool, mode, rng):
    product, dtype = mode
    grad = sprinkled(pool.gradients(rng, dtype), rng, 0.001)
    several = max_pool.bitmask(rng.random(pool.hits_shape) < 0.2)
    for layout, mask in [*example(pool)[2].items(), ("bitmask", several)]:
        with aclnn_bw.num_threads(1):
            expected = two_phase(pool, grad, mask, product, layout)
        for threads in (2, 3, 4):
            with aclnn_bw.num_threads(threads):
                assert_same_bytes(two_phase(pool, grad, mask, product, layout), expected)
                if product == "Host":
                    result = one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout=layout)
                    assert_same_bytes(result, expected)


@every_mask_layout
@every_dtype
@pytest.mark.parametrize("pool", [KINDS[0], KINDS[3], KINDS[7], KINDS[22], LARGE[1]], ids=str)
def test_same_bytes_from_every_entry_point(pool, dtype, mask_layout, rng):
    grad, mask = pool.gradients(rng, dtype), pool.mask(pool.indices(rng), mask_layout)
    plain = two_phase(pool, grad, mask, "Host", mask_layout)
    stream = aclnn_bw.aclrtCreateStream()
    try:
        assert_same_bytes(two_phase(pool, grad, mask, "Host", mask_layout, stream=stream), plain)
    finally:
        aclnn_bw.aclrtDestroyStream(stream)
    rest = (mask, *pool.attributes)
    out = Guarded(pool.input_shape, grad.dtype, "columns_cropped", 1)
    assert one_call(grad, plain, *rest, mask_layout=mask_layout, out=out.view) is out.view
    out.assert_outside_untouched()
    assert_same_bytes(out.view, plain)
    # self gives its shape alone: it may be the output.
    assert_same_bytes(one_call(grad, out.view, *rest, mask_layout=mask_layout, out=out.view), plain)

    # A repeatable executor, all of whose tensors are pointed elsewhere.
    first, second = (np.full(plain.shape, np.nan, grad.dtype) for _ in range(2))
    with aclnn_bw.soc("Host", mask_layout=mask_layout):
        size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(grad, first, mask, *pool.lists, first)
    aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    for _ in range(2):
        first[...] = np.nan
        aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)
        assert_same_bytes(first, plain)
    first[...] = np.nan
    other_grad, other_mask = pool.gradients(rng, dtype), pool.mask(pool.indices(rng), mask_layout)
    aclnn_bw.aclSetInputTensorAddr(executor, 0, None, other_grad)
    aclnn_bw.aclSetInputTensorAddr(executor, 2, None, guarded_copy(other_mask, "contiguous", 3).view)
    aclnn_bw.aclSetOutputTensorAddr(executor, 0, None, second)
    aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)
    assert np.isnan(first).all()
    assert_same_bytes(second, two_phase(pool, other_grad, other_mask, "Host", mask_layout))
    aclnn_bw.aclDestroyAclOpExecutor(executor)


@every_mask_layout
@pytest.mark.parametrize("far_axis", [0, 1, 2])
def test_offsets_beyond_32_bits(far_axis, mask_layout, rng, tmp_path):
    pool = MaxPool((2, 3, 8, 9), 3, 2, 1)
    values, mask = pool.gradients(rng, "float16"), pool.mask(pool.indices(rng), mask_layout)
    grad, out = far_apart(tmp_path, [values.shape, pool.input_shape], values.dtype, far_axis)
    grad[...] = values
    plain = two_phase(pool, values, mask, "Host", mask_layout)
    assert_same_bytes(two_phase(pool, grad, mask, "Host", mask_layout, out), plain)


# ---- instruction sets, and nothing outside the arrays is touched, not even read --------------------------------------


def moved_index(pool, rng):
    """The result or the refusal of a mask in which one index is moved, inside its window or out of it."""
    indices = example(pool)[0].copy()
    place = tuple(rng.integers(indices.shape))
    indices[place] += rng.integers(-2, 3) * pool.input_shape[-1] + rng.integers(-3, 4)
    mask = max_pool.argmax_mask(indices, pool.kernel_size)
    grad = pool.gradients(rng, "float32")
    try:
        return digest(one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout="argmax"))
    except aclnn_bw.AclnnError as error:
        return str(error)


def digests(step=1):
    """A hash of the result of each of many calls, by the name of the call; of every `step`-th one."""
    found = {}
    for pool, number in islice(product((pool for pool in KINDS if pool.kernel_size != 1), range(40)), 0, None, step):
        found[f"{pool} moved {number}"] = moved_index(pool, np.random.default_rng(number))
    refused = sum("must lie inside" in outcome for outcome in found.values())
    assert len(found) / 4 < refused < len(found)
    for index, pool in islice(enumerate([*KINDS, LARGE[6], LARGE[10]]), 0, None, step):
        rng = np.random.default_rng(index)
        several = max_pool.bitmask(rng.random(pool.hits_shape) < 0.3)
        masks = [*example(pool)[2].items(), ("bitmask", several)]
        for (name, mask), (product_name, dtype) in product(masks, MAX_POOL_MODES):
            grad = sprinkled(pool.gradients(rng, dtype), rng, 0.01)
            layout = list(LAYOUTS)[len(found) % len(LAYOUTS)]
            out = Guarded(pool.input_shape, grad.dtype, layout, 1).view
            plain = two_phase(pool, grad, mask, product_name, name)
            strided = two_phase(pool, guarded_copy(grad, layout, 1).view, mask, product_name, name, out)
            found[f"{pool} {product_name} {dtype} {name} {mask is several}"] = digest(plain, strided)
    for pool in islice((pool for window in WINDOWS for pool in every_width(*window)), 0, None, step):
        rng = np.random.default_rng(pool.input_shape)
        results = []
        for dtype, (name, mask) in product(DTYPES, example(pool)[2].items()):
            grad = sprinkled(pool.gradients(rng, dtype), rng)
            results.append(one_call(grad, pool.input_shape, mask, *pool.attributes, mask_layout=name))
        found[f"{pool}"] = digest(*results)
    for kernel, dtype, layout in product([(3, 3), (1, 3)], DTYPES, MASK_LAYOUTS):
        result = all_negative_zeros(kernel, DTYPES[dtype], layout)
        found[f"-0.0 {kernel} {dtype} {layout}"] = digest(result)
    return found


def digests_of(isa, folder, step):
    require_isa(isa)
    code = """
import json, aclnn_bw
from test_max_pool2d import digests
print(json.dumps([aclnn_bw.show_config(mode="dict")["isa"], digests(STEP)]))
"""
    chosen, found = json.loads(run_python(code.replace("STEP", str(step)), folder, ACLNN_BW_ISA=isa))
    assert isa in chosen
    return found


@pytest.fixture(scope="module")
def v2_digests(step, tmp_path_factory):
    return digests_of("v2", tmp_path_factory.mktemp("v2"), step)


@pytest.mark.parametrize("isa", ["v3", "v4"])
def test_same_bytes_on_every_instruction_set(isa, v2_digests, tmp_path, step):
    theirs = digests_of(isa, tmp_path, step)
    assert theirs.keys() == v2_digests.keys()
    assert [name for name in theirs if theirs[name] != v2_digests[name]] == []


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_indices_are_checked_on_every_instruction_set(isa, tmp_path):
    require_isa(isa)
    if aclnn_bw.show_config(mode="dict")["isa"] == isa:
        pytest.skip("the tests above use this one")
    code = """
import numpy as np
import test_max_pool2d as tests

rng = np.random.default_rng(8)
for pool in tests.CHECKED:
    tests.test_exactly_the_indices_inside_their_own_window_are_taken(pool, rng)
for pool in tests.CHECKED_BY_THREADS[::6]:
    tests.test_the_first_bad_index_is_named_at_every_thread_count(pool, "float32", rng)
"""
    run_python(code, tmp_path, ACLNN_BW_ISA=isa, OMP_WAIT_POLICY="passive")


def run_at_fences(step):
    """Every `step`-th call with all arrays at fences; the last line printed names the call that ended the process."""
    cases = [(pool, "contiguous", end) for pool in [*KINDS, LARGE[0], LARGE[6]] for end in (False, True)]
    cases += [(pool, layout, True) for pool in KINDS for layout in ("channels_last", "all_reversed")]
    cases += [(pool, "contiguous", True) for window in WINDOWS for pool in every_width(*window)]
    memories = [fenced(2**23) for _ in range(4)]
    for pool, layout, end in cases[::step]:
        rng = np.random.default_rng(7)
        several = max_pool.bitmask(rng.random(pool.hits_shape) < 0.2)
        masks = [*example(pool)[2].items(), ("bitmask", several)]
        for (name, contents), dtype in product(masks, ("float32", "float64", "bfloat16")):
            print(pool, layout, end, name, contents is several, dtype, flush=True)
            values = pool.gradients(rng, dtype)
            grad = at_fence(memories[0], values.shape, values.dtype, layout, 1, end)
            mask = at_fence(memories[1], contents.shape, BYTE, "contiguous", 1, end)
            out = at_fence(memories[2], pool.input_shape, values.dtype, layout, 1, end)
            grad[...], mask[...] = values, contents
            for least in EITHER_WAY:
                with aclnn_bw.soc("Host", mask_layout=name), past_the_caches(least):
                    size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
                        grad, out, mask, *pool.lists, out
                    )
                workspace = memories[3][-size:] if end else memories[3][:size]
                aclnn_bw.aclnnMaxPool2dWithMaskBackward(workspace if size else None, size, executor)
                assert_same_bytes(out, one_call(values, out, contents, *pool.attributes, mask_layout=name))
    print("done")


@pytest.mark.skipif(os.name != "posix", reason="needs mprotect")
@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_nothing_beyond_the_arrays_is_touched(isa, tmp_path, step):
    require_isa(isa)
    code = f"from test_max_pool2d import run_at_fences; run_at_fences({step})"
    printed = run_python(code, tmp_path, ACLNN_BW_ISA=isa)
    assert printed.endswith("\ndone\n")
