"""UpsampleNearestExact1dBackward beside torch.ops.aten._upsample_nearest_exact1d_backward."""

from itertools import product

import numpy as np
import pytest
from helpers import DTYPES, SMALLEST, assert_is_sum, assert_same_bytes, normal, oracle_type, sprinkled
from operators import upsample_nearest_exact1d_backward as upsample_twin

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


def theirs(grad, input_length, scales=None):
    backward = torch.ops.aten._upsample_nearest_exact1d_backward
    size = (*grad.shape[:2], input_length)
    return backward(torch.from_numpy(grad), [grad.shape[-1]], size, scales).numpy()


def ours(grad, input_length, scales=None):
    size = (*grad.shape[:2], input_length)
    return aclnn_bw.upsample_nearest_exact1d_backward(grad, grad.shape[-1], size, scales)


# Those of common factors, those that no ratio of small lengths has, and some that send almost all to one end.
SCALES = [None, 1.0, 2.0, 0.5, 1.5, 2.6, 0.7, 0.1, 1 / 3, 11 / 26, 41 / 2, np.pi, 50.0, 1e-3, 1e3, 1e300]


@pytest.mark.parametrize("scales", SCALES)
def test_index_map_of_every_small_pair_of_lengths(scales):
    """All pairs up to 64, 26 -> 11 among them, bit for bit: a gradient a row shows where each one goes."""
    wrong = []
    for before, after in product(range(1, 65), repeat=2):
        one_hot = np.eye(after, dtype=np.float32)[None]
        if not np.array_equal(ours(one_hot, before, scales), theirs(one_hot, before, scales)):
            wrong.append((before, after))
    assert not wrong


@every_dtype
def test_the_map_does_not_depend_on_the_dtype(dtype):
    """float64 too is mapped by float32 arithmetic."""
    for before, after in [(26, 11), (2, 41), (4, 61), (8, 47), (64, 37), (1000, 821), (821, 1000)]:
        one_hot = np.eye(after)[None]
        assert np.array_equal(ours(one_hot.astype(DTYPES[dtype]), before), theirs(one_hot, before))


@pytest.mark.parametrize(
    ("before", "after", "scales"),
    [(5_000_001, 2**23 + 4097, None), (2**23 + 3, 2**23 + 3, None), (3_000_000, 2**23 + 77, 2.7), (9, 2**23 + 1, None)],
)
def test_index_map_of_long_rows(before, after, scales):
    """Whole numbers: every sum is exact. From 2**23 on, j + 0.5 is no float32."""
    grad = (1 + np.arange(after) % 7).astype(np.float64)[None, None]
    assert np.array_equal(ours(grad, before, scales), theirs(grad, before, scales))


LENGTHS = [
    (256, 512, None), (256, 384, None), (500, 813, None), (512, 256, None), (1500, 700, None), (16, 48, None),
    (3, 5000, None), (5000, 3, None), (300, 300, 1.7), (70, 140, 1.5), (33, 99, 3.0), (1, 1, None),
]  # fmt: skip


@every_dtype
@pytest.mark.parametrize(("before", "after", "scales"), LENGTHS)
def test_values(before, after, scales, dtype, rng):
    """Both are within the error bound of the exact sum, so they differ by twice that at most.

    torch sums the 16-bit types in themselves; its float32 result for the same values, rounded once, is the oracle.
    """
    grad = normal(rng, (3, 5, after), DTYPES[dtype])
    wide = grad if dtype == "float64" else grad.astype(np.float32)
    exact, sum_abs = (theirs(values, before, scales).astype(oracle_type(grad.dtype)) for values in (wide, abs(wide)))
    terms = upsample_twin.upsample_nearest_exact1d_backward_quick(np.ones(after), (before,), scales or 0.0)
    # Twice the bound of this many terms: 2 * (terms + 3) = (2 * terms + 3) + 3.
    assert_is_sum(ours(grad, before, scales), exact, sum_abs, 2 * terms + 3)


@every_dtype
def test_nan_and_inf_where_torch_has_them(dtype, rng):
    for before, after in [(40, 80), (40, 97), (90, 41)]:
        grad = sprinkled(normal(rng, (2, 3, after), DTYPES[dtype]), rng)
        grad[abs(grad) > 1e4] = np.inf  # what overflows a 16-bit type is finite for torch's float32
        expected = theirs(grad.astype(np.float32), before)
        result = ours(grad, before)
        assert np.array_equal(np.isnan(result), np.isnan(expected))
        for infinity in (np.inf, -np.inf):
            assert np.array_equal(result == infinity, expected == infinity)


@every_dtype
def test_torch_tensors_are_read_in_place(dtype, rng):
    grad = normal(rng, (2, 20, 31), DTYPES[dtype])
    if dtype == "bfloat16":  # torch.from_numpy knows no such array
        tensor = torch.from_numpy(grad.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(grad)
    assert_same_bytes(ours(tensor, 17), ours(grad, 17))
    assert_same_bytes(ours(tensor.transpose(0, 1), 17), ours(grad.transpose(1, 0, 2), 17))


def test_flush_denormal_changes_nothing(rng):
    """Neither the sums nor the map, whose ratio may be subnormal."""
    cases = []
    for dtype, (before, after, scales) in product(DTYPES, [*LENGTHS[:6], (7, 9, 5e-324), (7, 9, 1e39), (7, 9, 3e-310)]):
        tiny = rng.integers(-999, 999, (2, 30, after)) * SMALLEST[dtype]
        cases.append((tiny.astype(DTYPES[dtype]), before, scales))
    expected = [ours(*case) for case in cases]
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush subnormals on this machine")
    try:
        results = [ours(*case) for case in cases]
        still_flushed = (torch.tensor([2.0**-130]) * 1.0).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert still_flushed
    for result, wanted in zip(results, expected, strict=True):
        assert_same_bytes(result, wanted)
