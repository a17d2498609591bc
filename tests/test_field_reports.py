"""Crashes and wrong results that CPU implementations of these operators have had in the field: a test for each kind.

A library that trusts its caller reads or writes out of bounds here, or computes something else; this one refuses and
writes nothing, or its result is right.
"""

import numpy as np
import pytest
import reference
from operators import avg_pool2d_backward as avg_twin
from operators import im2col_backward as im2col_twin
from operators import upsample_nearest_exact1d_backward as upsample_twin

import aclnn_bw as a

CANARY = 7.0


def refused(call, message, *outputs):
    """The call is refused with a message that names the argument; the outputs keep what they hold."""
    with pytest.raises(a.AclnnError, match=message) as caught:
        call()
    assert caught.value.status == a.ACLNN_ERR_PARAM_INVALID
    for out in outputs:
        assert np.all(out == CANARY)


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
@pytest.mark.parametrize("batch", [1, 3, 1000])
def test_max_pool_backward_with_another_batch(batch, layout):
    """A gradient of more images than the input has was read, or written, past the end."""
    x = np.zeros((2, 3, 4, 4), np.float32)
    _, mask = a.max_pool2d_with_mask(x, 2, mask_layout=layout)
    out = np.full_like(x, CANARY)
    grad = np.ones((batch, 3, 2, 2), np.float32)
    refused(
        lambda: a.max_pool2d_with_mask_backward(grad, x, mask, 2, mask_layout=layout, out=out),
        r"grad_output\.shape",
        out,
    )
    # The mask of another batch.
    _, other = a.max_pool2d_with_mask(np.zeros((batch, 3, 4, 4), np.float32), 2, mask_layout=layout)
    grad = np.ones((2, 3, 2, 2), np.float32)
    refused(
        lambda: a.max_pool2d_with_mask_backward(grad, x, other, 2, mask_layout=layout, out=out), r"mask\.shape", out
    )


@pytest.mark.parametrize("index", [-1, -(2**31), 16, 2**31 - 1, 1 << 20, 3])
def test_max_pool_backward_with_an_index_outside(index):
    """Negative indices and those beyond the plane, or in it but not in their own window, were written through."""
    x = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    out, mask = a.max_pool2d_with_mask(x, 2, mask_layout="argmax")
    mask.reshape(-1)[16:20] = np.array([index], "<i4").view(np.int8)  # of window (0, 1, 0, 0): 0, 1, 4 or 5
    around = np.full((3, *x.shape), CANARY, np.float32)
    with pytest.raises(a.AclnnError, match=rf"mask\[0, 1, 0, 0\] = {index}: .* window") as caught:
        a.max_pool2d_with_mask_backward(np.ones_like(out), x, mask, 2, mask_layout="argmax", out=around[1])
    assert caught.value.status == a.ACLNN_ERR_PARAM_INVALID
    assert np.all(around[::2] == CANARY)


@pytest.mark.parametrize("beyond", [2**32, -(2**32), 2**32 + 5, 2**40])
@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_indices_are_not_narrowed_before_they_are_checked(beyond, layout):
    """A 64-bit index that is right modulo 2**32 passed a check of its lower half."""
    indices = np.zeros((1, 1, 1, 1), np.int64) + beyond
    refused(lambda: a.indices_to_mask(indices, (1, 1, 3, 3), 3, mask_layout=layout), "indices")


@pytest.mark.parametrize("channels", [1, 2, 4, 64])
def test_replication_pad_backward_with_other_channels(channels):
    """A gradient of more channels than the input has was written past the input's end."""
    out = np.full((2, 3, 4, 4), CANARY, np.float32)
    refused(
        lambda: a.replication_pad2d_backward(np.ones((2, channels, 6, 6), np.float32), out.shape, 1, out=out),
        r"grad_output\.shape", out,
    )  # fmt: skip


@pytest.mark.parametrize("pads", [[], [1], [1, 1], [1, 1, 1], [1] * 5, [1] * 6, [1] * 100])
def test_replication_pad_backward_with_another_number_of_pads(pads):
    """Pads of another length were read past their end."""
    out = np.full((1, 4, 4), CANARY, np.float32)
    refused(
        lambda: a.replication_pad2d_backward(np.ones((1, 6, 6), np.float32), out.shape, pads, out=out),
        rf"len\(padding\) = {len(pads)}", out,
    )  # fmt: skip
    grad = np.ones((1, 6, 6), np.float32)
    refused(lambda: a.aclnnReplicationPad2dBackwardGetWorkspaceSize(grad, out, pads, out), r"len\(padding\)", out)


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        (([4, 4], [2**31, 2**33], [1, 1], [0, 0], [1, 1]), "grad_output"),  # kH * kW wraps to 0
        (([4, 4], [2**32, 2**32], [1, 1], [0, 0], [1, 1]), "grad_output"),
        (([4, 4], [1, 1], [1, 1], [2**62, 2**62], [1, 1]), "grad_output"),  # 2 * pad wraps to a negative size
        (([4, 4], [1, 1], [1, 1], [2**63 - 1, 0], [1, 1]), "grad_output"),
        (([2**33, 2**31], [1, 1], [1, 1], [0, 0], [1, 1]), "out"),  # Lh * Lw wraps to 0
        (([4, 4], [1, 2], [1, 2**63 - 1], [0, 0], [1, 1]), "grad_output"),  # dilation * (k - 1) wraps
    ],
)
def test_fold_sizes_that_overflow(sizes, named):
    """The product that the columns' shape is compared with wrapped around and fitted."""
    out = np.full((1, 1, 4, 4), CANARY, np.float32)
    grad = np.ones((1, 1, 16), np.float32)
    with pytest.raises(a.AclnnError) as caught:
        a.im2col_backward(grad, *sizes, out=out)
    assert caught.value.status == a.ACLNN_ERR_PARAM_INVALID
    assert any(word in str(caught.value) for word in (named, "input_size"))
    assert np.all(out == CANARY)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"), [(5, 2, 2, 0), (5, 3, 2, 1), (7, 4, 3, 1), (4, 3, 3, 0)]
)
def test_average_divisors_of_windows_that_overhang_in_ceil_mode(size, kernel, stride, padding, include):
    """The last window reaches beyond even the padding: its divisor counts what lies inside image and padding."""
    shape = (1, 1, size, size)
    grad = np.ones(reference.pooled_shape(shape, kernel, stride, padding, True))
    result = a.avg_pool2d_backward(grad, shape, kernel, stride, padding, True, include)
    exact = avg_twin.avg_pool2d_backward(grad, shape, kernel, stride, padding, True, include)
    np.testing.assert_allclose(result, exact, rtol=1e-14)
    # The forward of ones, weighted by ones: the mean of a window of ones is the share of it that lies in the image.
    weights = avg_twin.avg_pool2d(np.ones(shape), kernel, stride, padding, True, include)
    np.testing.assert_allclose(result.sum(), weights.sum(), rtol=1e-13)


@pytest.mark.parametrize(("padding", "kernel", "stride"), [(3, 1, 1), (5, 2, 2), (4, 3, 4), ((6, 0), (2, 1), (1, 1))])
def test_columns_that_lie_in_the_padding_alone(padding, kernel, stride):
    """Padding may exceed the kernel here: whole columns add nothing and no index may be made of them."""
    size = (3, 3)
    windows = reference.pooled_shape(size, kernel, stride, padding)
    rng = np.random.default_rng(1)
    grad = rng.integers(-9, 9, (2, 2 * np.prod(reference.pair(kernel)), np.prod(windows))).astype(np.float32)
    result = a.im2col_backward(grad, size, kernel, 1, padding, stride)
    np.testing.assert_array_equal(result, im2col_twin.im2col_backward(grad, size, kernel, 1, padding, stride))


def test_unpadded_gradient_of_a_huge_pad():
    """Pads whose sum wraps to that of the shapes."""
    out = np.full((1, 4, 4), CANARY, np.float32)
    grad = np.ones((1, 4, 4), np.float32)
    refused(
        lambda: a.replication_pad2d_backward(grad, out.shape, (2**63 - 1, 2**63 - 1, 2, 0), out=out), "padding", out
    )


@pytest.mark.parametrize("scales", [float("nan"), float("inf"), -1.0])
def test_upsampling_by_what_is_no_factor(scales):
    """A NaN or an infinity became an index."""
    out = np.full((1, 1, 4), CANARY, np.float32)
    refused(
        lambda: a.upsample_nearest_exact1d_backward(np.ones((1, 1, 8), np.float32), 8, (1, 1, 4), scales, out=out),
        "scales", out,
    )  # fmt: skip


@pytest.mark.parametrize("scales", [5e-324, 1e-40, 1e300, 1e-5, 0.1])
def test_upsampling_by_a_factor_that_leaves_the_range(scales):
    """The index of a float that exceeds every integer: it is the last input."""
    grad = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 8)
    result = a.upsample_nearest_exact1d_backward(grad, 8, (1, 1, 4), scales)
    np.testing.assert_array_equal(result, upsample_twin.upsample_nearest_exact1d_backward(grad, (1, 1, 4), scales))
    assert result.sum() == grad.sum()


def test_an_image_smaller_than_its_kernel():
    """Sizes below 1 were divided by, or taken for unsigned."""
    grad = np.ones((1, 1, 1), np.float32)
    for call in (
        lambda: a.avg_pool2d_backward(grad, (1, 2, 2), 3, 1, 0),
        lambda: a.max_pool2d_with_mask(np.zeros((1, 2, 2), np.float32), 3, 1, 0),
        lambda: a.im2col_backward(np.ones((9, 1), np.float32), (2, 2), 3),
    ):
        refused(call, "no window fits")


@pytest.mark.parametrize("shape", [(1, 0, 4, 4), (1, 2, 0, 4), (1, 2, 4, 0)])
def test_empty_planes(shape):
    """A division by the number of channels or by a size of a plane that is not there."""
    x = np.zeros(shape, np.float32)
    grad = np.zeros((*shape[:2], 2, 2), np.float32)
    for call in (
        lambda: a.avg_pool2d_backward(grad, x, 2),
        lambda: a.max_pool2d_with_mask(x, 2),
        lambda: a.replication_pad2d_backward(grad, x, 1),
    ):
        refused(call, "must be > 0")
