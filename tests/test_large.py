"""Every operator on a tensor of more than 2**31 elements, in float16; each takes up to 12 GiB and some seconds.

Run by `pytest -m slow tests/test_large.py`. All planes are one of a few, so that every element of the result can be
compared: one that is computed from, or written to, an address cut to 32 bits belongs to another plane.
"""

import numpy as np
import pytest
from operators import avg_pool2d_backward as avg_twin
from operators import im2col_backward as im2col_twin
from operators import max_pool
from operators import replication_pad2d_backward as pad_twin
from operators import upsample_nearest_exact1d_backward as upsample_twin

import aclnn_bw as a

KINDS = 7  # of planes: no power of two, so that a wrapped address meets another kind
CHANNELS = 64
MOST = 2**31


def memory_is_there(needed=12 << 30):
    try:
        with open("/proc/meminfo") as file:
            free = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    except OSError:
        return False
    return free["MemAvailable"] > needed * 1.25


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not memory_is_there(), reason="needs 15 GiB of free memory"),
]


def planes(patterns, count):
    """`count` planes, which take turns: (count, ...) of the patterns (KINDS, ...)."""
    result = np.empty((count, *patterns.shape[1:]), patterns.dtype)
    for kind in range(KINDS):
        result[kind::KINDS] = patterns[kind]
    return result


def batched(array):
    return array.reshape(-1, CHANNELS, *array.shape[1:])


def assert_planes_are(result, patterns):
    for kind in range(KINDS):
        same = result[kind::KINDS] == patterns[kind].astype(result.dtype)
        assert same.all(), f"plane {kind + KINDS * int(np.argmin(same.reshape(len(same), -1).all(axis=1)))} is wrong"


def patterns(rng, *shape):
    """Whole numbers, so small that every sum is exact."""
    return rng.integers(-8, 9, (KINDS, *shape)).astype(np.float16)


def enough(*plane):
    """So many planes of this shape, a whole number of images, that they have more than 2**31 elements."""
    count = MOST // int(np.prod(plane)) + 1
    return -(-count // CHANNELS) * CHANNELS


def test_avg_pool2d_backward(rng):
    grad = patterns(rng, 56, 56)
    count = enough(112, 112)
    out = np.empty((count, 112, 112), np.float16)
    a.avg_pool2d_backward(batched(planes(grad, count)), batched(out).shape, 2, out=batched(out))
    assert out.size > MOST
    assert_planes_are(out, avg_twin.avg_pool2d_backward(grad, (KINDS, 112, 112), 2))


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_max_pool2d_with_mask_and_backward(rng, layout):
    """The mask of so many windows has more than 2**31 bytes."""
    x, grad = patterns(rng, 112, 112), patterns(rng, 56, 56)
    count = enough(112, 112)
    big = batched(planes(x, count))
    out, mask = a.max_pool2d_with_mask(big, 2, mask_layout=layout)
    assert mask.size > MOST
    maxima, indices = max_pool.max_pool2d(x.astype(np.float64), 2)
    assert_planes_are(out.reshape(count, 56, 56), maxima)
    del out
    shape = big.shape
    del big
    result = a.max_pool2d_with_mask_backward(batched(planes(grad, count)), shape, mask, 2, mask_layout=layout)
    assert result.size > MOST
    hits = max_pool.hits_of_indices(indices, x.shape, 2)
    assert_planes_are(result.reshape(count, 112, 112), max_pool.max_pool2d_backward(grad, hits, x.shape, 2))


def test_im2col_backward(rng):
    """The columns of one image: C*kH*kW rows of L."""
    grad = patterns(rng, 4, 56 * 56)
    count = enough(4, 56 * 56)
    columns = planes(grad, count)
    assert columns.size > MOST
    out = a.im2col_backward(columns.reshape(-1, CHANNELS * 4, 56 * 56), (112, 112), 2, stride=2)
    wanted = im2col_twin.im2col_backward(grad, (112, 112), 2, stride=2)
    assert_planes_are(out.reshape(count, 112, 112), wanted.reshape(KINDS, 112, 112))


def test_replication_pad2d_backward(rng):
    grad = patterns(rng, 66, 66)
    count = enough(64, 64)
    out = a.replication_pad2d_backward(batched(planes(grad, count)), (count // CHANNELS, CHANNELS, 64, 64), 1)
    assert out.size > MOST
    wanted = pad_twin.replication_pad2d_backward_quick(grad, (KINDS, 64, 64), (1, 1, 1, 1))
    assert_planes_are(out.reshape(count, 64, 64), wanted)


@pytest.mark.parametrize("target", [2048, 3000])
def test_upsample_nearest_exact1d_backward(rng, target):
    grad = patterns(rng, 4096)
    count = enough(4096)
    big = batched(planes(grad, count))
    assert big.size > MOST
    out = a.upsample_nearest_exact1d_backward(big, 4096, (count // CHANNELS, CHANNELS, target))
    assert_planes_are(
        out.reshape(count, target), upsample_twin.upsample_nearest_exact1d_backward_quick(grad, (KINDS, target))
    )


def test_one_row_of_more_than_2_to_the_31():
    """One axis alone is longer than 32 bits count."""
    length = MOST + 6
    grad = np.ones((1, 1, length), np.float16)
    grad[..., ::2] = 2
    out = a.upsample_nearest_exact1d_backward(grad, length, (1, 1, length // 2))
    # The map is float32's: it is the twin's business elsewhere; every output belongs to one input.
    assert out.sum(dtype=np.float64) == grad.sum(dtype=np.float64)
    padded = a.replication_pad2d_backward(grad[None], (1, 1, 1, length - 2), (1, 1, 0, 0))
    assert padded[0, 0, 0, 0] == 3
    assert padded[0, 0, 0, -1] == 3
    assert np.array_equal(padded[0, 0, 0, 1:-1], grad[0, 0, 2:-2])


@pytest.mark.parametrize("length", [2, 5, 5000])
def test_few_elements_of_a_row_of_more_than_2_to_the_31(length):
    """From one source to the next it is further than 32 bits count, or they are further from the first."""
    x = np.zeros((1, 1, 3 * 2**31), np.uint8)
    ratio = np.float64(np.float32(x.size) / np.float32(length))
    sources = ((np.arange(length) + 0.5) * ratio).astype(np.float32).astype(np.int64)
    x[..., sources] = 1 + np.arange(length) % 251
    assert np.array_equal(a.upsample_nearest_exact1d(x, length), x[..., sources])
