"""MaxPool2dWithMask and its backward beside torch: values and indices exactly, gradients within the error bound."""

from itertools import product

import numpy as np
import pytest
import reference
from helpers import DTYPES, assert_is_sum, assert_same_bytes, oracle_type, sprinkled
from operators import max_pool
from operators.max_pool import MASK_LAYOUTS
from operators.max_pool import Pool as MaxPool
from test_max_pool2d import KINDS, LARGE

import aclnn_bw

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_torch():
    """Its pool of threads would take the cores from ours, and the other way round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensor_of(array):
    """bfloat16 through its bits, as torch.from_numpy knows no such array."""
    if array.dtype == DTYPES["bfloat16"]:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_of(tensor):
    return (
        tensor.view(torch.int16).numpy().view(DTYPES["bfloat16"]) if tensor.dtype == torch.bfloat16 else tensor.numpy()
    )


def pairs(pool):
    stride = pool.kernel_size if pool.stride is None else pool.stride
    return [list(reference.pair(value)) for value in (pool.kernel_size, stride, pool.padding, 1)]


def torch_forward(x, pool):
    out, indices = torch.ops.aten.max_pool2d_with_indices(tensor_of(x), *pairs(pool), pool.ceil_mode)
    return array_of(out), indices.numpy()


def torch_backward(grad, x, indices, pool):
    tensors = torch.from_numpy(grad), torch.from_numpy(x.astype(grad.dtype))
    args = *tensors, *pairs(pool), pool.ceil_mode, torch.from_numpy(indices)
    return torch.ops.aten.max_pool2d_with_indices_backward(*args).numpy()


def assert_parity(pool, x, rng):
    """torch sums 16-bit types in themselves; its float32 result for the same values, rounded once, is the oracle."""
    out, indices = torch_forward(x, pool)
    grad = pool.gradients(rng, x.dtype.name)
    wide = oracle_type(x.dtype)
    theirs = torch_backward(grad if x.dtype == np.float64 else grad.astype(np.float32), x, indices, pool).astype(wide)
    hits = pool.hits(indices)
    sum_abs = max_pool.max_pool2d_backward(abs(grad.astype(wide)), hits, *pool, dtype=wide)
    terms = max_pool.max_pool2d_backward(np.ones(grad.shape), hits, *pool)
    for layout in MASK_LAYOUTS:
        ours, mask = aclnn_bw.max_pool2d_with_mask(x, *pool.attributes, mask_layout=layout)
        assert_same_bytes(ours, out)
        ours = aclnn_bw.mask_to_indices(mask, pool.input_shape, *pool.attributes, mask_layout=layout)
        assert np.array_equal(ours, indices)
        made = aclnn_bw.indices_to_mask(indices, pool.input_shape, *pool.attributes, mask_layout=layout)
        assert np.array_equal(made, mask)
        # Twice the bound of this many terms, as both have an error: 2 * (terms + 3) = (2 * terms + 3) + 3.
        ours = aclnn_bw.max_pool2d_with_mask_backward(grad, x.shape, mask, *pool.attributes, mask_layout=layout)
        assert_is_sum(ours, theirs, sum_abs, 2 * terms + 3)


@every_dtype
@pytest.mark.parametrize("pool", [*KINDS, LARGE[1], LARGE[5], LARGE[6]], ids=str)
def test_kinds(pool, dtype, rng):
    assert_parity(pool, pool.values(rng, dtype), rng)
    ties = rng.integers(-2, 2, pool.input_shape).astype(DTYPES[dtype])
    assert_parity(pool, sprinkled(ties, rng, 0.02), rng)


@every_dtype
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, (1, 3), (3, 2), (5, 1), (2, 18)], ids=str)
def test_grid(kernel, dtype, rng):
    calls = 0
    half = tuple(k // 2 for k in reference.pair(kernel))
    strides = [None, 1, 2, (1, 3), (4, 2)]
    for size, stride, padding, ceil_mode in product([(7, 18), (12, 9), (5, 33)], strides, {0, half}, (False, True)):
        pool = MaxPool(((2, 2, *size), (3, *size))[calls % 2], kernel, stride, padding, ceil_mode)
        if min(pool.output_shape) >= 1:
            x = rng.integers(-3, 4, pool.input_shape).astype(DTYPES[dtype])
            assert_parity(pool, sprinkled(x, rng), rng)
            calls += 1
    assert calls >= 20


def test_planes_of_one_value(rng):
    for pool, fill in product(KINDS, (-np.inf, np.nan, 0.0)):
        assert_parity(pool, np.full(pool.input_shape, fill, np.float32), rng)


def test_torch_tensors_are_read_in_place(rng):
    pool = MaxPool((2, 20, 14, 15), 3, 2, 1)
    for dtype in DTYPES:
        x, grad = pool.values(rng, dtype), pool.gradients(rng, dtype)
        channels_last = tensor_of(x).contiguous(memory_format=torch.channels_last)
        out, mask = aclnn_bw.max_pool2d_with_mask(channels_last, *pool.attributes)
        assert_same_bytes(out, torch_forward(x, pool)[0])
        result = aclnn_bw.max_pool2d_with_mask_backward(tensor_of(grad), channels_last, mask, *pool.attributes)
        assert_same_bytes(result, aclnn_bw.max_pool2d_with_mask_backward(grad, x.shape, mask, *pool.attributes))
        same = aclnn_bw.max_pool2d_with_mask_backward(grad, x, mask, *pool.attributes)
        assert_same_bytes(same, result)
