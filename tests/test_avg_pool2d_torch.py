"""AvgPool2dBackward beside torch.ops.aten.avg_pool2d_backward."""

from itertools import product

import numpy as np
import pytest
import reference
from helpers import DTYPES, assert_is_sum, assert_same_bytes, normal, oracle_type
from operators import avg_pool2d_backward as avg_twin
from operators.avg_pool2d_backward import MODES, Pool
from operators.avg_pool2d_backward import avg_pool2d_backward_two_phase as two_phase

import aclnn_bw

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_torch():
    """Its pool of threads would take the cores from ours, and the other way round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def torch_backward(grad_output, pool):
    """What torch computes, as an array."""
    stride = pool.kernel_size if pool.stride is None else pool.stride
    sizes = [list(reference.pair(size)) for size in (pool.kernel_size, stride, pool.padding)]
    image = torch.empty(pool.input_shape, dtype=torch.from_numpy(grad_output).dtype)
    attributes = (pool.ceil_mode, pool.count_include_pad, pool.divisor_override)
    return torch.ops.aten.avg_pool2d_backward(torch.from_numpy(grad_output), image, *sizes, *attributes).numpy()


def assert_parity(pool, dtype, rng):
    """Both are within the error bound of the exact sum, so they differ by twice that at most.

    torch sums the 16-bit types in themselves; its float32 result for the same values, rounded once, is the oracle.
    """
    grad = pool.gradients(rng, dtype)
    wide = grad if dtype in ("float32", "float64") else grad.astype(np.float32)
    theirs = torch_backward(wide, pool).astype(oracle_type(grad.dtype))
    sum_abs, terms = avg_twin.sum_abs_and_terms(grad, *pool, dtype=theirs.dtype)
    # Twice the bound of this many terms: 2 * (terms + 3) = (2 * terms + 3) + 3.
    assert_is_sum(aclnn_bw.avg_pool2d_backward(grad, *pool), theirs, sum_abs, 2 * terms + 3)


every_dtype = pytest.mark.parametrize("dtype", DTYPES)


@every_dtype
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 7, (1, 3), (3, 2), (5, 1), (2, 7)], ids=str)
def test_grid(kernel, dtype, rng, step):
    kernel_height, kernel_width = reference.pair(kernel)
    strides = [None, 1, 2, 3, 5, (1, 2), (2, 1), (3, 4)]
    paddings = {0, 1, 2, 3, (0, 1), (1, 0), (kernel_height // 2, kernel_width // 2)}
    sizes = [(7, 8), (12, 9), (10, 33)]
    calls = 0
    grid = [*product(sizes, strides, sorted(paddings, key=str), (False, True))]
    for size, stride, padding, ceil_mode in grid[rng.integers(step) :: step]:
        pads = reference.pair(padding)
        if 2 * pads[0] > kernel_height or 2 * pads[1] > kernel_width:
            continue
        for include, override in ((True, None), (False, None), (False, 3), (True, -4)):
            shape = ((2, 2, *size), (3, *size))[calls % 2]
            assert_parity(Pool(shape, kernel, stride, padding, ceil_mode, include, override), dtype, rng)
            calls += 1
    assert calls > 100 // step


@every_dtype
@pytest.mark.parametrize(
    "pool",
    [
        Pool((4, 16, 56, 56), 3, 1, 1),
        Pool((4, 16, 56, 56), 3, 1, 1, False, False),
        Pool((4, 16, 57, 55), 2, 2, 0, True),
        Pool((4, 16, 56, 56), 3, 2, 1),
        Pool((2, 8, 64, 65), 5, 3, 2, True, False),
        Pool((2, 8, 35, 35), 7, 1, 3),
        Pool((8, 64, 7, 7), 7),
        Pool((1, 1, 300, 400), 4, 2, 1, False, True, -9),
        Pool((1, 2, 6, 5), 100, 3, 50, True, False),
        Pool((1, 1, 2, 120001), (2, 3), (1, 2), (1, 1), True),
        Pool((1, 1, 30001, 3), (3, 2), (2, 2), (1, 1)),
        Pool((1, 16, 4, 4), 4, 1),
    ],
    ids=str,
)
def test_larger_images(pool, dtype, rng):
    assert_parity(pool, dtype, rng)


@every_dtype
def test_nan_and_inf_where_torch_has_them(dtype, rng):
    for pool in (Pool((2, 3, 9, 10), 3, 1, 1), Pool((2, 3, 9, 10), 2), Pool((2, 3, 9, 10), 3, 2, 1, True, False)):
        grad = pool.gradients(rng, dtype)
        marks = rng.random(grad.shape)
        for low, value in ((0.0, np.nan), (0.1, np.inf), (0.2, -np.inf)):
            grad[(low <= marks) & (marks < low + 0.05)] = value
        theirs = torch_backward(grad if dtype in ("float32", "float64") else grad.astype(np.float32), pool)
        ours = aclnn_bw.avg_pool2d_backward(grad, *pool)
        assert np.array_equal(np.isnan(ours), np.isnan(theirs))
        for infinity in (np.inf, -np.inf):
            assert np.array_equal(ours == infinity, theirs == infinity)


def torch_tensors(grad, channels_last):
    """A torch tensor of these values; bfloat16 through its bits, as torch.from_numpy knows no such array."""
    tensor = torch.from_numpy(grad.view(np.int16)).view(torch.bfloat16) if grad.dtype.itemsize == 2 else None
    if grad.dtype != DTYPES["bfloat16"]:
        tensor = torch.from_numpy(grad)
    return tensor.contiguous(memory_format=torch.channels_last) if channels_last else tensor


@every_dtype
@pytest.mark.parametrize("channels_last", [False, True])
def test_torch_tensors_are_read_in_place(channels_last, dtype, rng):
    pool = Pool((2, 20, 14, 15), 3, 2, 1)
    grad = normal(rng, pool.output_shape, DTYPES[dtype])
    result = aclnn_bw.avg_pool2d_backward(torch_tensors(grad, channels_last), *pool)
    assert_same_bytes(result, aclnn_bw.avg_pool2d_backward(grad, *pool))


def test_flush_denormal_changes_nothing(rng):
    """torch flushes subnormals in this thread only when asked to: the results stay, and so does its setting."""
    cases = []
    scales = {"float16": 2.0**-16, "bfloat16": 2.0**-128, "float32": 2.0**-128, "float64": 2.0**-1026}
    pools = (Pool((2, 3, 9, 10), 3, 1, 1), Pool((1, 2, 300, 310), 3, 2, 1, True, False), Pool((1, 9, 7, 7), 7))
    for mode, pool in product(MODES, pools):
        tiny = rng.standard_normal(pool.output_shape) * scales[mode.dtype]
        cases.append((pool, tiny.astype(DTYPES[mode.dtype]), mode))
    subnormal = torch.tensor([2.0**-130])
    expected = [two_phase(*case) for case in cases]
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush subnormals on this machine")
    try:
        results = [two_phase(*case) for case in cases]
        still_flushed = (subnormal * 1.0).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert still_flushed
    for result, wanted in zip(results, expected, strict=True):
        assert_same_bytes(result, wanted)
