"""ReplicationPad2dBackward beside torch.ops.aten.replication_pad2d_backward."""

from itertools import product

import numpy as np
import pytest
from helpers import (
    DTYPES,
    HALF_TYPES,
    SMALLEST,
    assert_is_sum,
    assert_same_bytes,
    normal,
    numpy_of,
    oracle_type,
    sprinkled,
)
from operators import replication_pad2d_backward as pad_twin

import aclnn_bw

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

COMPLEX = {"complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128)}
every_dtype = pytest.mark.parametrize("dtype", [*DTYPES, *COMPLEX])


@pytest.fixture(autouse=True, scope="module")
def one_thread_for_torch():
    """Its pool of threads would take the cores from ours, and the other way round."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def theirs(grad, shape, padding):
    grad = torch.from_numpy(grad)
    return torch.ops.aten.replication_pad2d_backward(grad, torch.empty(shape, dtype=grad.dtype), padding).numpy()


def gradients(rng, shape, padding, dtype):
    left, right, top, bottom = padding
    shape = (*shape[:-2], shape[-2] + top + bottom, shape[-1] + left + right)
    if dtype in DTYPES:
        return normal(rng, shape, DTYPES[dtype])
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(COMPLEX[dtype])


def assert_parity(shape, padding, dtype, rng):
    """Both are within the error bound of the exact sum, so they differ by twice that at most.

    torch sums the 16-bit types in themselves; its float32 result for the same values, rounded once, is the oracle.
    """
    grad = gradients(rng, shape, padding, dtype)
    result = aclnn_bw.replication_pad2d_backward(grad, shape, padding)
    expected = theirs(grad.astype(np.float32) if dtype in HALF_TYPES else grad, shape, padding)
    terms = pad_twin.replication_pad2d_backward_quick(np.ones(grad.shape[-2:]), shape[-2:], padding)
    for part in (np.real, np.imag) if dtype in COMPLEX else (np.asarray,):
        wide = oracle_type(part(result).dtype)
        sum_abs = pad_twin.replication_pad2d_backward_quick(abs(part(grad).astype(wide)), shape, padding, wide)
        # Twice the bound of this many terms: 2 * (terms + 3) = (2 * terms + 3) + 3.
        assert_is_sum(part(result), part(expected).astype(wide), sum_abs, 2 * terms + 3)


# Pads smaller than the image, larger ones, crops, and one side cropped while the other is padded.
PADDINGS = [
    (0, 0, 0, 0), (1, 1, 1, 1), (3, 0, 0, 2), (0, 4, 5, 0), (2, 3, 4, 1), (12, 7, 20, 9), (60, 50, 40, 30),
    (-1, -1, -1, -1), (-2, 3, 1, -3), (9, -4, -3, 8), (-4, 0, 0, -4), (-7, 9, 11, -6),
]  # fmt: skip


@every_dtype
@pytest.mark.parametrize("padding", PADDINGS, ids=str)
def test_grid(padding, dtype, rng):
    for height, width in product((5, 6, 17), (5, 8, 33, 70)):
        for leading in ((2, 3), (4,)):
            assert_parity((*leading, height, width), padding, dtype, rng)


@every_dtype
@pytest.mark.parametrize(
    ("shape", "padding"),
    [
        ((8, 16, 64, 64), (1, 1, 1, 1)),
        ((1, 3, 270, 480), (10, 20, 30, 40)),
        ((16, 3, 32, 32), (4, 4, 4, 4)),
        ((1, 1, 2, 30001), (5, 4, 1, 1)),
        ((1, 1, 30001, 2), (1, 1, 4, 5)),
        ((2, 3, 1, 1), (70, 60, 50, 40)),
    ],
    ids=str,
)
def test_larger_images(shape, padding, dtype, rng):
    assert_parity(shape, padding, dtype, rng)


@every_dtype
def test_nan_and_inf_where_torch_has_them(dtype, rng):
    for padding in PADDINGS[1:6]:
        shape = (2, 3, 9, 10)
        grad = gradients(rng, shape, padding, dtype)
        real = grad.view(grad.real.dtype) if dtype in COMPLEX else grad
        real[...] = sprinkled(real, rng)
        real[abs(real) > 1e4] = np.inf  # what overflows a 16-bit type is finite for torch's float32
        result = aclnn_bw.replication_pad2d_backward(grad, shape, padding)
        expected = theirs(grad.astype(np.float32) if dtype in HALF_TYPES else grad, shape, padding)
        for part in (np.real, np.imag) if dtype in COMPLEX else (np.asarray,):
            assert np.array_equal(np.isnan(part(result)), np.isnan(part(expected)))
            for infinity in (np.inf, -np.inf):
                assert np.array_equal(part(result) == infinity, part(expected) == infinity)


@every_dtype
@pytest.mark.parametrize("channels_last", [False, True])
def test_torch_tensors_are_read_in_place(channels_last, dtype, rng):
    shape, padding = (2, 20, 14, 15), (3, 2, 1, 0)
    grad = gradients(rng, shape, padding, dtype)
    if dtype == "bfloat16":  # torch.from_numpy knows no such array
        tensor = torch.from_numpy(grad.view(np.int16)).view(torch.bfloat16)
    else:
        tensor = torch.from_numpy(grad)
    if channels_last:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    result = aclnn_bw.replication_pad2d_backward(tensor, shape, padding)
    expected = aclnn_bw.replication_pad2d_backward(grad, shape, padding)
    assert type(result) is torch.Tensor
    assert numpy_of(result).tobytes() == expected.tobytes()


def test_flush_denormal_changes_nothing(rng):
    cases = []
    for dtype, padding in product(DTYPES, PADDINGS):
        for shape in ((2, 3, 9, 10), (1, 2, 200, 210)):
            grad = gradients(rng, shape, padding, "float64").round() * SMALLEST[dtype]
            cases.append((grad.astype(DTYPES[dtype]), shape, padding))
    expected = [aclnn_bw.replication_pad2d_backward(*case) for case in cases]
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush subnormals on this machine")
    try:
        results = [aclnn_bw.replication_pad2d_backward(*case) for case in cases]
        still_flushed = (torch.tensor([2.0**-130]) * 1.0).item() == 0.0
    finally:
        torch.set_flush_denormal(False)
    assert still_flushed
    for result, wanted in zip(results, expected, strict=True):
        assert_same_bytes(result, wanted)
