"""MaxPool2dWithIndices and its backward: beside their twin and PyTorch, planes and kernels of any size, refusals."""

import importlib.util
from itertools import product

import ml_dtypes
import numpy as np
import pytest
import reference
from engine_helpers import Spec, refusal
from helpers import (
    DTYPES,
    LAYOUTS,
    Guarded,
    assert_same_bytes,
    guarded_copy,
    normal,
    past_the_caches,
    sprinkled,
    turned_last,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import OPERATORS
from operators.max_pool import Pool, assert_is_max_pool2d_backward, max_pool2d

import aclnn_bw as a

INVALID, NULL = a.ACLNN_ERR_PARAM_INVALID, a.ACLNN_ERR_PARAM_NULLPTR
POOLS = [
    Pool((2, 3, 9, 10), 2), Pool((1, 19, 12, 33), 3, 2, 1), Pool((3, 12, 33), 3, 1, 1), Pool((2, 5, 7, 7), 3, 1, 1),
    Pool((1, 2, 14, 14), 3, 2, 1, True), Pool((2, 18, 8, 8), (2, 5), (1, 3), (1, 2), True),
    Pool((1, 3, 20, 21), 7, 2, 3),
    Pool((1, 4, 5, 6), 1), Pool((1, 2, 9, 9), 9), Pool((1, 1, 40, 70), (1, 40), (1, 8)), Pool((1, 2, 4, 90), 3, 9, 1),
]  # fmt: skip
every_pool = pytest.mark.parametrize("pool", POOLS, ids=str)
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_index = pytest.mark.parametrize("index", [np.int32, np.int64])


def forward(pool, x, **keywords):
    return a.max_pool2d_with_indices(x, *pool.attributes, **keywords)


def backward(pool, grad, indices, **keywords):
    return a.max_pool2d_with_indices_backward(grad, pool.input_shape, *pool.attributes, indices, **keywords)


@every_pool
@every_dtype
@every_index
def test_maxima_and_indices_are_the_twins(rng, pool, dtype, index):
    for x in (pool.values(rng, dtype), sprinkled(np.round(pool.values(rng, dtype)), rng, 0.3)):
        maxima, places = max_pool2d(x.astype(np.float64), *pool[1:])
        out, indices = np.empty(pool.output_shape, x.dtype), np.empty(pool.output_shape, index)
        found = forward(pool, x, out=out, indices=indices)
        assert found[0] is out
        assert found[1] is indices
        assert_same_bytes(out, maxima.astype(x.dtype))
        assert np.array_equal(indices, places)


@every_pool
@every_dtype
@every_index
def test_gradients_are_within_the_error_bound(rng, pool, dtype, index):
    grad, places = pool.gradients(rng, dtype), pool.indices(rng)
    found = backward(pool, grad, places.astype(index))
    assert_is_max_pool2d_backward(found, grad, pool.hits(places), pool)
    # The mask of the layout "argmax" holds the same numbers, and sums are made in the same order.
    if reference.pair(pool.kernel_size) != (1, 1):
        mask = pool.mask(places, "argmax")
        same = a.max_pool2d_with_mask_backward(grad, pool.input_shape, mask, *pool.attributes, mask_layout="argmax")
        assert_same_bytes(found, same)


# Planes that are long enough for that whatever lies between them.
LONG_PLANES = [
    Pool((1, 1, 90, 100), 5, 3), Pool((1, 1, 90, 100), 4, 6), Pool((1, 1, 40, 64), 1, 2), Pool((1, 1, 33, 64), 1),
]  # fmt: skip


@pytest.mark.parametrize("pool", [*POOLS, *LONG_PLANES], ids=str)
@every_dtype
@every_index
def test_gradients_past_the_caches(rng, pool, dtype, index):
    """Planes end to end, one way or the other, and with gaps between them; one of them has an index outside."""
    pool = pool._replace(input_shape=(2, 18, *pool.input_shape[-2:]))
    grad, places = pool.gradients(rng, dtype), pool.indices(rng).astype(index)
    with past_the_caches(2**62):
        wanted = backward(pool, grad, places)
    for number, layout in enumerate(("contiguous", "planes_reversed", "rows_cropped", "channels_outermost")):
        out = Guarded(pool.input_shape, grad.dtype, layout, number)
        with past_the_caches(), a.num_threads(1 + number):
            backward(pool, grad, places, out=out.view)
        out.assert_outside_untouched()
        assert_same_bytes(np.ascontiguousarray(out.view), wanted)
        bad = places.copy()
        bad[1, 11, 0, 0] = pool.input_shape[-1] * pool.input_shape[-2]
        with past_the_caches(), refusal(INVALID, r"^indices\[1, 11, 0, 0\] = "):
            backward(pool, grad, bad, out=out.view)
        out.assert_outside_untouched()


@every_dtype
@every_index
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_change_no_bit(rng, dtype, index, layout):
    for pool in POOLS[:6]:
        x = guarded_copy(pool.values(rng, dtype), layout)
        wanted = forward(pool, np.ascontiguousarray(x.view))
        out, indices = (Guarded(pool.output_shape, np.dtype(one), layout) for one in (DTYPES[dtype], index))
        forward(pool, x.view, out=out.view, indices=indices.view)
        assert_same_bytes(np.ascontiguousarray(out.view), wanted[0])
        assert np.array_equal(indices.view, wanted[1])
        grad = guarded_copy(pool.gradients(rng, dtype), layout)
        to = Guarded(pool.input_shape, DTYPES[dtype], layout)
        assert backward(pool, grad.view, indices.view, out=to.view) is to.view
        assert_same_bytes(np.ascontiguousarray(to.view), backward(pool, np.ascontiguousarray(grad.view), wanted[1]))
        for guarded in (out, indices, to):
            guarded.assert_outside_untouched()


@every_dtype
@every_index
@pytest.mark.parametrize("shape", [(2, 16, 9, 11), (1, 17, 40, 7), (2, 47, 6, 5), (3, 100, 5, 8), (1, 33, 90, 4)])
def test_channels_last_everywhere(rng, dtype, index, shape):
    """Nothing is transposed but what lies otherwise: maxima and indices are those of contiguous arrays, whatever the
    bands and threads."""
    kinds = ((3, 2, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((4, 2), (7, 3), 1))
    for number, (kernel, stride, padding) in enumerate(kinds * 3):
        pool = Pool(shape, kernel, stride, padding, number % 2 == 1)
        x = np.round(pool.values(rng, dtype)) if number < 2 else pool.values(rng, dtype)
        x.reshape(-1)[rng.integers(x.size, size=3)] = np.inf, np.nan, -np.inf
        wanted = forward(pool, x, indices=np.empty(pool.output_shape, index))
        layouts = [("channels_last", "contiguous", "columns_reversed")[one % 3] for one in (number // 4, number // 2)]
        out, indices = (
            Guarded(pool.output_shape, np.dtype(one), layout, 1)
            for one, layout in zip((DTYPES[dtype], index), layouts, strict=True)
        )
        with a.num_threads(1 + number % 3):
            forward(pool, guarded_copy(x, "channels_last", 1).view, out=out.view, indices=indices.view)
        for guarded, one in zip((out, indices), wanted, strict=True):
            guarded.assert_outside_untouched()
            assert_same_bytes(np.ascontiguousarray(guarded.view), one)


@every_dtype
@every_index
@pytest.mark.parametrize("shape", [(2, 16, 9, 11), (1, 17, 40, 7), (2, 47, 6, 5), (3, 100, 5, 8), (1, 33, 90, 4)])
def test_gradients_channels_last_everywhere(rng, dtype, index, shape):
    """Few terms are gathered, many scattered: the bytes are those of contiguous arrays, wherever the indices lie."""
    kinds = ((3, 2, 1), (3, 1, 1), (2, 2, 0), ((1, 3), 1, (0, 1)), ((4, 5), 1, (2, 1)), ((5, 3), (7, 2), 1))
    for number, (kernel, stride, padding) in enumerate(kinds):
        pool = Pool(shape, kernel, stride, padding, number % 2 == 1)
        grad, places = pool.gradients(rng, dtype), pool.indices(rng).astype(index)
        found = Guarded(shape, DTYPES[dtype], "channels_last", 1)
        last = guarded_copy(places, "channels_last" if number % 3 else "contiguous", 1).view
        with a.num_threads(1 + number % 3):
            backward(pool, guarded_copy(grad, "channels_last", 1).view, last, out=found.view)
        found.assert_outside_untouched()
        result = np.ascontiguousarray(found.view)
        assert_is_max_pool2d_backward(result, grad, pool.hits(places), pool)
        assert_same_bytes(result, backward(pool, grad, places))


@every_index
@pytest.mark.parametrize(("kernel", "algorithm"), [(1, "GATHER_LAST"), (15, "SCATTER_LAST")])
@pytest.mark.parametrize("shape", [(1, 2048, 7, 7), (2, 64, 112, 112), (1, 48, 2000, 3), (1, 40, 64, 3000)])
def test_gradients_of_channels_side_by_side_are_work_for_all_threads(shape, kernel, algorithm, index):
    """The scratch stays in 2 MiB for each of them."""
    pool = Pool(shape, kernel, max(kernel - 1, 1), kernel // 2)
    grad, indices, to = (
        np.moveaxis(np.empty((one[0], *one[2:], one[1]), dtype), -1, 1)
        for one, dtype in ((pool.output_shape, np.float16), (pool.output_shape, index), (shape, np.float16))
    )
    for threads in (1, 2):
        with a.soc("Host"), a.num_threads(threads):
            size, executor = a.aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(grad, to, indices, *pool.lists, to)
        assert executor.explain().algorithm == algorithm
        assert size <= threads << 21
        assert executor.explain().threads == 1 or executor.explain().units >= 8


@every_index
@pytest.mark.parametrize("apart", [2, -1, 3])
@pytest.mark.parametrize("kernel", [2, 5])
def test_gradients_channels_last_of_indices_in_any_strides(rng, kernel, apart, index):
    """Channels of indices that lie two or three apart, or in descending order."""
    pool = Pool((2, 17, 9, 8), kernel, 2, 1)
    grad, places = pool.gradients(rng, "float32"), pool.indices(rng).astype(index)
    memory = np.full((2, *places.shape[2:], 3 * 17), -7, index)
    view = np.moveaxis(memory[..., ::apart][..., :17], -1, 1)
    view[...] = places
    found = np.moveaxis(np.full((2, 9, 8, 17), 7, np.float32), -1, 1)
    backward(pool, guarded_copy(grad, "channels_last").view, view, out=found)
    assert_same_bytes(np.ascontiguousarray(found), backward(pool, grad, places))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("shape", "kernel", "padding"),
    [((1, 64, 100, 4), (1001, 3), (500, 1)), ((1, 31, 400, 13), (300, 1), 0), ((1, 31, 100, 100), (39, 1), 0),
     ((1, 47, 60, 900), 8, 0), ((1, 20, 1000, 1000), 5, 2), ((1, 3, 2325, 10081), (1096, 6), (512, 1)),
     ((1, 16, 30, 9000), (2, 3), 1)],
    ids=str,
)  # fmt: skip
def test_the_workspace_of_packed_indices(shape, kernel, padding, last):
    """2 MiB for each thread and some rows, however tall the kernel, and bands that read few rows twice."""
    pool = Pool(shape, kernel, 1, padding)
    tensors = [(pool.output_shape, np.float32), (pool.output_shape, np.int64), (shape, np.float32)]
    if last:
        grad, indices, to = (np.moveaxis(np.empty((s[0], *s[2:], s[1]), dtype), -1, 1) for s, dtype in tensors)
    else:
        grad, indices, to = (np.empty(s, dtype) for s, dtype in tensors)
    for threads in (1, 3):
        with a.soc("Host"), a.num_threads(threads):
            size, executor = a.aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(grad, to, indices, *pool.lists, to)
        assert size <= threads * ((2 << 20) + 64 * max(shape[-1], pool.output_shape[-1]))
        if last and executor.explain().algorithm.endswith("LAST"):
            rows = pool.lists[0][0]
            assert executor.explain().units <= max(8 * threads, shape[1] // 16 * -(-shape[2] // rows) * 4)


@pytest.mark.parametrize("layout", ["planes", "channels_last", "channels_last_to_planes"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "kernel", "padding"),
    [((1, 16, 4, 4), (1000001, 5), (500000, 2)), ((1, 16, 8, 8), (20001, 9), (10000, 4)),
     ((1, 16, 500, 62), (485, 33), (0, 16)), ((1, 16, 128, 64), (113, 33), (0, 16)),
     ((1, 16, 250, 64), (240, 33), (0, 16)), ((1, 16, 30, 408), (5, 9), 0), ((1, 16, 64, 250), (5, 5), 2),
     ((1, 16, 200, 120), 13, 6), ((1, 3, 500, 500), 9, 4)],
    ids=str,
)  # fmt: skip
def test_the_workspace_of_rows_that_are_compared_first(shape, kernel, padding, dtype, layout):
    """It follows neither the kernel's height nor the row."""
    pool = Pool(shape, kernel, 1, padding)
    tensors = [(shape, dtype), (pool.output_shape, dtype), (pool.output_shape, np.int64)]
    planes = [np.empty(*each) for each in tensors]
    last = [np.moveaxis(np.empty((n, h, w, c), of), -1, 1) for (n, c, h, w), of in tensors]
    x = planes[0] if layout == "planes" else last[0]
    out, indices = last[1:] if layout == "channels_last" else planes[1:]
    for threads in (1, 3):
        with a.soc("Host"), a.num_threads(threads):
            size, _ = a.aclnnMaxPool2dWithIndicesGetWorkspaceSize(x, *pool.lists, out, indices)
        assert size <= threads * ((2 << 20) + 64 * max(shape[-1], pool.output_shape[-1]))


@every_dtype
@every_index
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kernel", [(41, 5), (9, 41), (7, 9), 13], ids=str)
@pytest.mark.parametrize("shape", [(1, 19, 8, 9), (2, 3, 30, 40), (1, 32, 60, 21)], ids=str)
def test_kernels_that_reach_over_the_image(rng, shape, kernel, last, index, dtype):
    """Rows are compared once for all windows that they are in, however many of them there are."""
    pool = Pool(shape, kernel, 1, tuple(k // 2 for k in np.broadcast_to(kernel, 2).tolist()))
    x = np.round(rng.standard_normal(shape).astype(np.float32), 1).astype(DTYPES[dtype])
    x[rng.random(shape) < 0.02] = np.nan
    expected, places = max_pool2d(x.astype(np.float64), *pool[1:])
    if last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    out = np.empty_like(x, shape=pool.output_shape)
    found = np.empty_like(x, dtype=index, shape=pool.output_shape)
    a.max_pool2d_with_indices(x, *pool.attributes, out=out, indices=found)
    assert np.array_equal(out.astype(np.float64), expected, equal_nan=True)
    assert np.array_equal(found, places)


@every_dtype
@every_index
@pytest.mark.parametrize(
    "shape", [(2, 3, 1, 7), (1, 17, 5, 5), (1, 18, 6, 1), (3, 2, 9, 4), (1, 2, 65, 33), (1, 1, 130, 100)], ids=str
)
def test_windows_of_one_position(rng, dtype, index, shape):
    """gradInput is gradOutput between zeros, -0 as +0; yet each index is looked at."""
    for number, (stride, ceil_mode) in enumerate(product([1, 2, (1, 2), (2, 1), 3, (5, 2), 11, 150], [False, True])):
        pool = Pool(shape, 1, stride, 0, ceil_mode)
        grad, places = pool.gradients(rng, dtype), pool.indices(rng).astype(index)
        grad.reshape(-1)[::3] = -0.0
        rows, columns = reference.pair(stride)
        expected = np.zeros(shape, grad.dtype)
        expected[:, :, ::rows, ::columns] = grad + np.zeros((), grad.dtype)
        for layout in LAYOUTS:
            found = Guarded(shape, grad.dtype, layout, 1)
            with a.num_threads(1 + number % 2):
                backward(pool, guarded_copy(grad, [*LAYOUTS][number % len(LAYOUTS)], 1).view, places, out=found.view)
            found.assert_outside_untouched()
            assert_same_bytes(np.ascontiguousarray(found.view), expected)
        wrong = places.copy()
        wrong.reshape(-1)[rng.integers(wrong.size)] += 1
        n, c, oh, ow = np.argwhere(wrong != places)[0]
        with refusal(INVALID, rf"\[{n}, {c}, {oh}, {ow}\] = "):
            backward(pool, grad, wrong)


@every_index
@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("side", [6, 9, 14, 30, 60])
def test_each_plane_of_few_is_checked(rng, index, kernel, side):
    """Planes are checked few at a time: the one bad index, in whichever, is the one that the refusal names."""
    pool = Pool((2, 19, side, side), kernel, 2, 0)
    grad, places = pool.gradients(rng, "float32"), pool.indices(rng).astype(index)
    for plane in (0, 1, 6, 15, 16, 18, 37):
        n, c = divmod(plane, 19)
        wide = [2**31, 2**32, -(2**63), 2**32 + int(places[n, c, -1, -1])] if index is np.int64 else []
        for bad in (-1, side * side, 2**31 - 1, *wide):
            wrong = places.copy()
            wrong[n, c, -1, -1] = bad
            oh, ow = (size - 1 for size in pool.output_shape[2:])
            with refusal(INVALID, rf"\[{n}, {c}, {oh}, {ow}\] = {bad}:"):
                backward(pool, grad, wrong)


@every_index
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "pool",
    [Pool((3, 20, 200, 201), 4, 1, 1), Pool((24, 257, 20, 19), 5, 1, 2), Pool((70, 131, 30, 33), 4, 8, 1),
     Pool((4, 17, 300, 310), 5, 2, 2)],
    ids=str,
)  # fmt: skip
def test_what_is_read_next_changes_nothing(pool, dtype, index, rng):
    """From 16 MiB on it is fetched while windows are added, a stretch at a time: one image is smaller."""
    indices = forward(pool, pool.values(rng, dtype))[1].astype(index)
    grad = pool.gradients(rng, dtype)
    assert grad.nbytes + indices.nbytes + np.prod(pool.input_shape) * grad.itemsize > 16 << 20
    expected = [
        backward(pool._replace(input_shape=(1, *pool.input_shape[1:])), grad[n : n + 1], indices[n : n + 1])
        for n in range(len(grad))
    ]
    assert_same_bytes(backward(pool, grad, indices), np.concatenate(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_workspace_of_windows_of_one_position(dtype):
    """Gradients side by side, past the caches: 2 MiB for each thread, and 64 bytes for each element of a row."""
    shape = (2, 16, 1, 5461)
    grad = np.moveaxis(np.empty((2, 1, 5461, 16), np.dtype(getattr(ml_dtypes, dtype, dtype))), -1, 1)
    out, indices = np.empty(shape, grad.dtype), np.zeros(shape, np.int64)
    with past_the_caches(), a.soc("Host"), a.num_threads(1):
        size, _ = a.aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
            grad, out, indices, [1, 1], [1, 1], [0, 0], [1, 1], False, out
        )
    assert size <= (2 << 20) + 64 * 5461


def test_planes_of_indices_with_gaps_between_them():
    """They are checked where they lie: in the gaps are indices that would do."""
    pool = Pool((5, 16, 4, 4), 4)
    grad, gapped = np.ones(pool.output_shape, np.float32), np.zeros((5, 16, 2, 1), np.int32)
    places = gapped[:, :, :1]
    places[...] = np.arange(16).reshape(1, 16, 1, 1)
    gapped[:, :, 1] = 7
    assert np.array_equal(backward(pool, grad, places).reshape(5, 16, 16), [np.eye(16)] * 5)
    for n, c in ((0, 0), (2, 7), (2, 8), (4, 15)):
        wrong = gapped.copy()[:, :, :1]
        wrong[n, c] = 16
        with refusal(INVALID, rf"\[{n}, {c}, 0, 0\] = 16:"):
            backward(pool, grad, wrong)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("shape", "kernel", "dtype"),
    [((1, 2, 256, 256), 1, "float64"), ((3, 16, 128, 128), (1, 2), "float16"), ((2, 16, 90, 90), (2, 1), "bfloat16"),
     ((5, 16, 64, 64), 2, "float64")],
    ids=str,
)  # fmt: skip
def test_the_workspace_of_whole_planes(shape, kernel, dtype, last):
    """The same limit holds where all of some planes is in the scratch: gradOutput may have to be transposed."""
    pool = Pool(shape, kernel, kernel, 0)
    n, c, h, w = pool.output_shape
    grad = np.moveaxis(np.empty((n, h, w, c), DTYPES[dtype]), -1, 1) if last else np.empty((n, c, h, w), DTYPES[dtype])
    indices, to = np.empty((n, c, h, w), np.int64), np.empty(shape, DTYPES[dtype])
    for threads in (1, 4):
        with a.soc("Host"), a.num_threads(threads):
            size, executor = a.aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(grad, to, indices, *pool.lists, to)
            a.aclDestroyAclOpExecutor(executor)
        assert size <= threads * ((2 << 20) + 64 * shape[-1])


@every_dtype
@pytest.mark.parametrize("apart", ["nothing", "maxima", "indices", "images"])
def test_images_of_few_channels(rng, dtype, apart):
    """Their planes are one row of planes, unless an image is followed by something else in one of the tensors."""
    pool = Pool((9, 3, 12, 12), 5, 4, 1)
    x, grad = pool.values(rng, dtype), pool.gradients(rng, dtype)

    def memory(which, shape, dtype):
        rows = np.zeros((shape[0], shape[1] + (apart == which), *shape[2:]), dtype)
        return rows[:, : shape[1]]

    image = memory("images", x.shape, x.dtype)
    image[...] = x
    expected, wanted = max_pool2d(x.astype(np.float64), *pool[1:])
    out, indices = memory("maxima", grad.shape, x.dtype), memory("indices", grad.shape, np.int64)
    forward(pool, image, out=out, indices=indices)
    assert_same_bytes(np.ascontiguousarray(out), expected.astype(x.dtype))
    assert np.array_equal(indices, wanted)
    maxima = memory("maxima", grad.shape, grad.dtype)
    maxima[...] = grad
    found = backward(pool, maxima, indices, out=memory("images", x.shape, x.dtype))
    assert_same_bytes(np.ascontiguousarray(found), backward(pool, grad, np.ascontiguousarray(indices)))
    indices[4, 1, 2, 0] = -1
    with refusal(INVALID, r"\[4, 1, 2, 0\] = -1"):
        backward(pool, maxima, indices)


@every_dtype
@every_index
@pytest.mark.parametrize("shape", [(2, 19, 9, 11), (40, 7, 12), (1, 35, 12, 3)], ids=str)
def test_channels_side_by_side_between_others(rng, dtype, index, shape):
    pool = Pool(shape, 3, 2, 1)
    x = pool.values(rng, dtype)
    wanted = forward(pool, x, indices=np.empty(pool.output_shape, index))
    (out, memory), (indices, others) = turned_last(np.zeros_like(wanted[0])), turned_last(np.zeros_like(wanted[1]))
    forward(pool, turned_last(x)[0], out=out, indices=indices)
    assert_same_bytes(np.ascontiguousarray(out), wanted[0])
    assert np.array_equal(indices, wanted[1])
    to, more = turned_last(np.zeros_like(x))
    backward(pool, turned_last(wanted[0])[0], indices, out=to)
    assert_same_bytes(np.ascontiguousarray(to), backward(pool, *wanted))
    assert all((one[..., :2] == 7).all() and (one[..., -3:] == 7).all() for one in (memory, others, more))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_backward_is_the_adjoint_of_reading_at_the_indices(data):
    """<x at the indices, y> == <x, backward(y)>, to the bit for small integers: the forward once it has chosen."""
    kernel = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    stride = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    padding = tuple(data.draw(st.integers(0, k // 2)) for k in kernel)
    sizes = [data.draw(st.integers(max(k - 2 * p, 1), 20)) for k, p in zip(kernel, padding, strict=True)]
    shape = (data.draw(st.integers(1, 2)), data.draw(st.integers(1, 5)), *sizes)
    pool = Pool(shape, kernel, stride, padding, data.draw(st.booleans()))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x, y = (rng.integers(-9, 10, one).astype(np.float32) for one in (shape, pool.output_shape))
    out, indices = forward(pool, x)
    read = np.take_along_axis(x.reshape(*shape[:2], -1), indices.reshape(*shape[:2], -1), -1)
    assert np.array_equal(out.reshape(read.shape), read)
    assert np.vdot(out, y) == np.vdot(x, backward(pool, y, indices))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch")
@pytest.mark.torch
@every_pool
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_beside_torch(rng, pool, dtype):
    import torch

    pairs = [
        list(reference.pair(value if value is not None else pool.kernel_size))
        for value in (pool.kernel_size, pool.stride, pool.padding, 1)
    ]
    for values in (normal(rng, pool.input_shape, dtype), sprinkled(normal(rng, pool.input_shape, dtype), rng, 0.2)):
        x = torch.from_numpy(values)
        wanted = torch.ops.aten.max_pool2d_with_indices(x, *pairs, pool.ceil_mode)
        found = forward(pool, x)
        assert all(isinstance(one, torch.Tensor) for one in found)
        torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found[1], wanted[1])
        # Small integers are exact in any order.
        grad = torch.from_numpy(rng.integers(-9, 10, pool.output_shape).astype(dtype))
        sums = torch.ops.aten.max_pool2d_with_indices_backward(grad, x, *pairs, pool.ceil_mode, wanted[1])
        named = {"kernel_size": pairs[0], "stride": pairs[1], "padding": pairs[2], "dilation": [1, 1],
                 "ceil_mode": pool.ceil_mode, "indices": wanted[1]}  # fmt: skip
        assert torch.equal(a.max_pool2d_with_indices_backward(grad, x, **named), sums)


# ---- results that are given ------------------------------------------------------------------------------------------


def test_one_result_is_given_and_the_other_made(rng):
    pool = POOLS[1]
    x = pool.values(rng, "float32")
    wanted = forward(pool, x)
    assert wanted[1].dtype == np.int64
    out, indices = np.empty_like(wanted[0]), np.empty(pool.output_shape, np.int32)
    for results in ({"out": out}, {"indices": indices}):
        found = forward(pool, x, **results)
        for name, one, right in zip(("out", "indices"), found, wanted, strict=True):
            assert (one is results.get(name)) == (name in results)
            assert np.array_equal(one, right)


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_a_mask_and_its_maxima_are_given(rng, layout):
    pool = POOLS[1]
    x = pool.values(rng, "float32")
    wanted = a.max_pool2d_with_mask(x, *pool.attributes, mask_layout=layout)
    out, mask = (np.full_like(one, 77) for one in wanted)
    for results in ({"out": out}, {"mask_out": mask}, {"out": out, "mask_out": mask}):
        found = a.max_pool2d_with_mask(x, *pool.attributes, mask_layout=layout, **results)
        for name, one, right in zip(("out", "mask_out"), found, wanted, strict=True):
            assert (one is results.get(name)) == (name in results)
            assert_same_bytes(one, right)
    with refusal(INVALID, r"^mask_out\.rank = 2: must equal self\.rank"):
        a.max_pool2d_with_mask(x, *pool.attributes, mask_layout=layout, mask_out=np.empty((1, 2), np.int8))
    with refusal(INVALID, r"^mask_out\.dtype = uint8: must be int8"):
        a.max_pool2d_with_mask(x, *pool.attributes, mask_out=np.empty(mask.shape, np.uint8), out=out)
    assert_same_bytes(mask, wanted[1])
    with refusal(INVALID, r"^indices\.dtype = int16: must be int32 or int64"):
        forward(pool, x, indices=np.empty(pool.output_shape, np.int16))


# ---- huge kernels and planes -----------------------------------------------------------------------------------------


def windows_of(pool):
    """Of each window its rows and its columns in the image, by Python's own integers."""
    axes = []
    strides = reference.pair(pool.kernel_size if pool.stride is None else pool.stride)
    for size, out, k, s, p in zip(
        pool.input_shape[-2:], pool.output_shape[-2:], reference.pair(pool.kernel_size), strides,
        reference.pair(pool.padding), strict=True,
    ):  # fmt: skip
        axes.append([range(max(o * s - p, 0), min(o * s - p + k, size)) for o in range(out)])
    return axes


HUGE = (2**31, 2**31 + 3, 2**40, 2**62 + 5, 2**63 - 1)


@pytest.mark.parametrize("seed", range(60))
def test_kernels_may_be_longer_than_any_image(seed):
    """Windows are clipped to the image, so that a kernel of any length is one; no product of them overflows."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 8, 2).tolist()
    kernel, padding, stride = [], [], []
    for n in size:
        k = int(rng.choice(HUGE))
        edge = max(-(-(k - n) // 2), 0)  # with less padding no window fits
        p = k // 2 - int(rng.integers(0, min(3, k // 2 - edge + 1)))
        kernel.append(k)
        padding.append(max(p, edge))
        stride.append(int(rng.choice([1, 2, 3, 5, n + 1, 2**31, 2**62])))
    if rng.random() < 0.3:
        kernel[0], padding[0], stride[0] = 1, 0, 1
    pool = Pool((1, 2, *size), tuple(kernel), tuple(stride), tuple(padding), bool(rng.random() < 0.4))
    x = rng.integers(0, 9, pool.input_shape).astype(np.float32)
    grad = rng.integers(0, 9, pool.output_shape).astype(np.float32)
    out, indices = forward(pool, x)
    wanted = np.zeros_like(x)
    rows, columns = windows_of(pool)
    for c, (oh, row), (ow, column) in product(range(2), enumerate(rows), enumerate(columns)):
        window = x[0, c, row.start : row.stop, column.start : column.stop]
        place = np.unravel_index(window.argmax(), window.shape)
        assert out[0, c, oh, ow] == window.max()
        assert indices[0, c, oh, ow] == (row.start + place[0]) * size[1] + column.start + place[1]
        wanted[0, c].reshape(-1)[indices[0, c, oh, ow]] += grad[0, c, oh, ow]
    assert np.array_equal(backward(pool, grad, indices), wanted)


def test_planes_that_int32_does_not_count(rng):
    """The forward reads them straight from memory: nothing but the shape is huge here."""
    width = 2**31 + 10
    row = np.broadcast_to(np.float32(3), (1, 1, 1, width))
    kernel, stride = (1, 2**30 + 7), (1, 2**30)
    out, indices = np.empty((1, 1, 1, 2), np.float32), np.empty((1, 1, 1, 2), np.int64)
    with a.soc("Host"):
        _, executor = a.aclnnMaxPool2dWithIndicesGetWorkspaceSize(row, kernel, stride, [0], [1], False, out, indices)
    assert executor.explain().algorithm == "EACH"
    with refusal(INVALID, r"^self\.shape = .*: H \* W must be <= 2147483647 for indices of int32"):
        a.max_pool2d_with_indices(row, kernel, stride, indices=np.empty((1, 1, 1, 2), np.int32))
    with a.soc("Ascend910B"), refusal(INVALID, r"^self\.shape = .*: H \* W must be <= 2147483647"):
        a.aclnnMaxPool2dWithIndicesGetWorkspaceSize(row, kernel, stride, [0], [1], False, out, indices)
    # Tall: a row of windows a few elements wide, at both ends of the plane.
    tall = np.broadcast_to(rng.permutation(6).astype(np.float32), (1, 1, 2**29, 6))
    found, places = a.max_pool2d_with_indices(tall, (2, 3), (2**29 - 2, 3))
    best = [int(tall[0, 0, 0, :3].argmax()), 3 + int(tall[0, 0, 0, 3:].argmax())]
    assert np.array_equal(found[0, 0], [tall[0, 0, 0, best]] * 2)
    assert places[0, 0].tolist() == [best, [(2**29 - 2) * 6 + one for one in best]]


@pytest.mark.slow
def test_the_gradient_of_a_plane_that_int32_does_not_count():
    """4 GiB of float16."""
    shape, kernel, stride = (1, 1, 2**11 + 1, 2**20), (2, 2**19), (2**11 - 1, 2**19)
    places = np.array([[5, 2**20 - 1], [(2**11) * 2**20 + 2, (2**11) * 2**20 + 2**19]])[None, None]
    grad = np.array([[1, 2], [3, 4]], np.float16)[None, None]
    found = a.max_pool2d_with_indices_backward(grad, shape, kernel, stride, 0, 1, False, places).reshape(-1)
    at = np.flatnonzero(found)
    assert at.tolist() == places.reshape(-1).tolist()
    assert found[at].tolist() == [1, 2, 3, 4]
    places[0, 0, 1, 0] -= 2**31
    with refusal(INVALID, r"^indices\[0, 0, 1, 0\] = 2: must lie inside window"):
        a.max_pool2d_with_indices_backward(grad, shape, kernel, stride, 0, 1, False, places)


# ---- refusals --------------------------------------------------------------------------------------------------------


@every_index
@pytest.mark.parametrize("value", [-1, 1, 40, 2**31 - 1, -(2**31), 2**32 + 9, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("pool", [*POOLS[1:4], POOLS[5]], ids=str)
def test_the_first_index_outside_its_window_is_named_at_every_thread_count(rng, pool, index, value):
    if not np.iinfo(index).min <= value <= np.iinfo(index).max:
        pytest.skip("no int32")
    places = pool.indices(rng).astype(index)
    n, c, oh, ow = ((0,) * (4 - places.ndim) + tuple(s // 2 for s in places.shape))[-4:]
    first = (n, c, oh, ow)[-places.ndim :]
    later = tuple(s - 1 for s in places.shape)
    places[first] = places[later] = value
    if value == 1:  # inside the plane, outside of these windows
        assert not pool.hits(places)[..., 0:, later[-2], later[-1]][-1 if places.ndim == 3 else (-1, -1)].any()
    rule = rf"^indices\[{n if places.ndim == 4 else 0}, {c}, {oh}, {ow}\] = {value}: must lie inside window"
    grad = pool.gradients(rng, "float32")
    for threads, layout in product((1, 2, 3, 8), ("contiguous", "channels_last", "columns_reversed")):
        given = np.asfortranarray(places) if layout == "columns_reversed" else guarded_copy(places, layout).view
        to = Guarded(pool.input_shape, grad.dtype, layout).view
        with a.num_threads(threads), refusal(INVALID, rule + r"(?!.*argmax)"):
            backward(pool, guarded_copy(grad, layout).view, given, out=to)


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_one_bad_index_anywhere_is_found(rng, pool):
    """In the first window, in the last one, and one that is right but for a multiple of 2**32."""
    places = pool.indices(rng)
    grad = pool.gradients(rng, "float32")
    for place, way in product(((0,) * places.ndim, tuple(s - 1 for s in places.shape)), ("C", "F", "last")):
        for value in (-1, places[place] + 2**32, places[place] - 2**32, 2**31):
            bad = places.copy(order="F" if way == "F" else "C")
            bad[place] = value
            spot = ", ".join(map(str, (0,) * (4 - places.ndim) + place))
            given = [grad, bad, np.empty(pool.input_shape, grad.dtype)]
            if way == "last":
                given = [guarded_copy(one, "channels_last").view for one in given]
            with refusal(INVALID, rf"^indices\[{spot}\] = {value}: must lie inside window"):
                backward(pool, *given[:2], out=given[2])


def phase_1(operator, **changes):
    call = OPERATORS[operator]((1, 2, 4, 4))
    return call.phase1(**changes)


def test_what_the_forward_refuses():
    with refusal(INVALID, r"^indices\.dtype = ACL_UINT32: must be ACL_INT32 or ACL_INT64 on Ascend910B"):
        phase_1("MaxPool2dWithIndices", indices=np.empty((1, 2, 2, 2), np.uint32))
    with refusal(INVALID, r"^indices\.shape = \(1, 2, 2, 3\): must be"):
        phase_1("MaxPool2dWithIndices", indices=np.empty((1, 2, 2, 3), np.int32))
    with refusal(INVALID, r"^indices\.rank = 3: must equal self\.rank = 4"):
        phase_1("MaxPool2dWithIndices", indices=np.empty((2, 2, 2), np.int32))
    with refusal(INVALID, r"^dilation\[0\] = 2: must be 1"):
        phase_1("MaxPool2dWithIndices", dilation=[2, 2])
    with refusal(INVALID, r"^padding\[0\] = 2: must be <= kernelSize\[0\] / 2 = 1"):
        phase_1("MaxPool2dWithIndices", padding=[2, 2])
    # The format speaks before the rank, out's dtype before that of the indices.
    with refusal(INVALID, r"^self\.format = ACL_FORMAT_NHWC"):
        phase_1("MaxPool2dWithIndices",
                self=Spec((4, 4), a.ACL_FLOAT, a.ACL_FORMAT_NHWC, bound=False).build())  # fmt: skip
    with refusal(INVALID, r"^out\.dtype = ACL_FLOAT16: must equal self\.dtype"):
        phase_1("MaxPool2dWithIndices", out=np.empty((1, 2, 2, 2), np.float16), indices=np.empty(3, np.int8))
    for product_ in ("Ascend910", "Ascend310P"):
        with a.soc(product_), refusal(INVALID, rf"^{product_} does not have MaxPool2dWithIndices;"):
            phase_1("MaxPool2dWithIndices", indices=np.empty(3, np.int8))
        with a.soc(product_), refusal(NULL, r"^indices = None"):
            phase_1("MaxPool2dWithIndices", indices=None)


def test_what_the_backward_refuses():
    with refusal(INVALID, r"^indices\.dtype = ACL_INT64: must be ACL_INT32 on Ascend910B"):
        phase_1("MaxPool2dWithIndicesBackward", indices=np.empty((1, 2, 2, 2), np.int64))
    with refusal(INVALID, r"^self\.dtype = ACL_BF16: must be one of ACL_FLOAT on Ascend910B"):
        phase_1("MaxPool2dWithIndicesBackward", self=np.empty((1, 2, 4, 4), ml_dtypes.bfloat16),
                gradOutput=np.empty((1, 2, 2, 2), np.int8))  # fmt: skip
    with refusal(INVALID, r"^gradOutput\.dtype = ACL_DOUBLE: must"):
        phase_1("MaxPool2dWithIndicesBackward", gradOutput=np.empty((1, 2, 2, 2), np.float64))
    # The ranks are self's, and gradInput's shape speaks before the windows that do not fit.
    with refusal(INVALID, r"^gradOutput\.rank = 3: must equal self\.rank = 4"):
        phase_1("MaxPool2dWithIndicesBackward",
                gradOutput=Spec((2, 2, 2), a.ACL_FLOAT, a.ACL_FORMAT_NCHW, bound=False).build())  # fmt: skip
    with refusal(INVALID, r"^gradInput\.shape = \(1, 2, 4, 5\): must be"):
        phase_1("MaxPool2dWithIndicesBackward", gradInput=np.empty((1, 2, 4, 5), np.float32), kernelSize=[9, 9])
    with refusal(INVALID, r"^self\.shape = \(1, 2, 4, 4\): is too small"):
        phase_1("MaxPool2dWithIndicesBackward", kernelSize=[9, 9])
    with refusal(INVALID, r"^indices\.shape = \(1, 2, 2, 3\): expected \("):
        phase_1("MaxPool2dWithIndicesBackward", indices=np.empty((1, 2, 2, 3), np.int32))
