"""Im2colBackward beside torch.ops.aten.col2im, which torch's im2col has for its gradient."""

from itertools import product

import numpy as np
import pytest
import reference
from helpers import DTYPES, assert_is_sum, assert_same_bytes, oracle_type
from operators import im2col_backward as im2col_twin
from test_im2col import KINDS, LARGE, Columns, terms_of

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


def torch_backward(grad, columns):
    pairs = [list(reference.pair(value)) for value in columns.attributes]
    return torch.ops.aten.col2im(torch.from_numpy(grad), *pairs).numpy()


def assert_parity(columns, dtype, rng):
    """Both are within the error bound of the exact sum, so they differ by twice that at most.

    torch sums the 16-bit types in themselves; its float32 result for the same values, rounded once, is the oracle.
    """
    grad = columns.gradients(rng, dtype)
    wide = oracle_type(grad.dtype)
    theirs = torch_backward(grad if dtype == "float64" else grad.astype(np.float32), columns).astype(wide)
    sum_abs = im2col_twin.im2col_backward(abs(grad.astype(wide)), *columns.attributes, wide)
    # Twice the bound of this many terms: 2 * (terms + 3) = (2 * terms + 3) + 3.
    ours = aclnn_bw.im2col_backward(grad, *columns.attributes)
    assert_is_sum(ours, theirs, sum_abs, 2 * terms_of(columns) + 3)


@every_dtype
@pytest.mark.parametrize("columns", [*KINDS, *LARGE], ids=str)
def test_kinds(columns, dtype, rng):
    assert_parity(columns, dtype, rng)
    assert_parity(columns._replace(image_shape=columns.image_shape[-3:]), dtype, rng)


@every_dtype
@pytest.mark.parametrize("kernel", [1, 2, 3, (2, 3), (5, 1)], ids=str)
def test_grid(kernel, dtype, rng):
    calls = 0
    for dilation, padding, stride in product((1, 2, (3, 1)), (0, 1, (2, 3), 7), (1, 2, 3, (1, 4))):
        shape = ((2, 2, 7, 8), (3, 9, 21))[calls % 2]
        size = reference.pooled_shape(shape[-2:], kernel, stride, padding, False, dilation)
        if min(size) >= 1:
            assert_parity(Columns(shape, kernel, dilation, padding, stride), dtype, rng)
            calls += 1
    assert calls > 30


@every_dtype
def test_nan_and_inf_where_torch_has_them(dtype, rng):
    for columns in KINDS:
        grad = columns.gradients(rng, dtype)
        marks = rng.random(grad.shape)
        for low, value in ((0.0, np.nan), (0.1, np.inf), (0.2, -np.inf)):
            grad[(low <= marks) & (marks < low + 0.05)] = value
        theirs = torch_backward(grad if dtype == "float64" else grad.astype(np.float32), columns)
        ours = aclnn_bw.im2col_backward(grad, *columns.attributes)
        assert np.array_equal(np.isnan(ours), np.isnan(theirs))
        for infinity in (np.inf, -np.inf):
            assert np.array_equal(ours == infinity, theirs == infinity)


def test_torch_tensors_are_read_in_place(rng):
    columns = KINDS[3]
    grad = columns.gradients(rng, "float32")
    result = aclnn_bw.im2col_backward(torch.from_numpy(grad), *columns.attributes)
    assert_same_bytes(result, aclnn_bw.im2col_backward(grad, *columns.attributes))
