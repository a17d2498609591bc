cdef extern from "operators.h":
    enum:
        MAX_POOL2D_WITH_MASK_BACKWARD "ACLNN_BW_MAX_POOL2D_WITH_MASK_BACKWARD"
        MAX_POOL2D_WITH_MASK "ACLNN_BW_MAX_POOL2D_WITH_MASK"
        MAX_POOL2D_WITH_INDICES "ACLNN_BW_MAX_POOL2D_WITH_INDICES"
        MAX_POOL2D_WITH_INDICES_BACKWARD "ACLNN_BW_MAX_POOL2D_WITH_INDICES_BACKWARD"


def aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(gradOutput, self, indices, kernelSize, stride, padding, dilation,
                                                   ceilMode, gradInput):
    """Phase 1 of MaxPool2dWithMaskBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, Ho, Wo) or (C, Ho, Wo), self and gradInput (N, C, H, W) or (C, H, W), all of one dtype that the
    product takes: ACL_FLOAT, ACL_FLOAT16 (Ascend910, Ascend910B, Host), ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host).
    indices is what MaxPool2dWithMask wrote: ACL_INT8, shape mask_shape(...), C-contiguous, in the mask layout that
    `soc` says. kernelSize and padding have 1 or 2 values, stride 0, 1 or 2 (none: the kernel size), dilation 1 or 2,
    which must be 1. self gives its shape only. Raises AclnnError for a refusal; then nothing has been written.

    gradInput[h, w] is the sum of gradOutput[oh, ow] over the windows whose maximum lies at (h, w): the gradient of
    PyTorch's max_pool2d, under the names of CANN's aclnnMaxPool2dWithMaskBackward.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> out, indices = aclnn_bw.max_pool2d_with_mask(x, 2)
    >>> gradInput = np.empty_like(x)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
    ...     np.ones_like(out), x, indices, [2, 2], [2, 2], [0, 0], [1, 1], False, gradInput)
    >>> aclnn_bw.aclnnMaxPool2dWithMaskBackward(bytearray(size), size, executor)
    >>> gradInput
    array([[[[0., 0., 0., 0.],
             [0., 1., 0., 1.],
             [0., 0., 0., 0.],
             [0., 1., 0., 1.]]]], dtype=float32)
    """
    return phase_1(
        MAX_POOL2D_WITH_MASK_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>self, <PyObject*>indices, <PyObject*>kernelSize, <PyObject*>stride,
         <PyObject*>padding, <PyObject*>dilation, <PyObject*>ceilMode, <PyObject*>gradInput])


def aclnnMaxPool2dWithMaskBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithMaskBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0. In the mask layout "argmax" an
    index outside its window is refused here (ACLNN_ERR_PARAM_INVALID), and the message names the first one: part of
    gradInput may have been written then, its contents are unspecified; but for the workspace nothing else is touched.
    """
    run_phase_2(MAX_POOL2D_WITH_MASK_BACKWARD, workspace, workspaceSize, executor, stream)


def max_pool2d_with_mask_backward(grad_output, self, mask, kernel_size, stride=None, padding=0, dilation=1,
                                  ceil_mode=False, *, mask_layout="bitmask", out=None):
    """Return the gradient of max_pool2d_with_mask with respect to its input.

    grad_output (N, C, Ho, Wo) or (C, Ho, Wo) of float32, float64, float16 or bfloat16; self is the input of the
    forward, or its shape: its values are not read. mask is what the forward returned, in the layout that mask_layout
    names. The attributes are those of the forward. The result is a new C-contiguous array of self's shape and
    grad_output's dtype, or `out`, filled: the sum of grad_output over the windows whose maximum lies at each position,
    the formula of PyTorch's max_pool2d_with_indices_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError; then
    nothing has been written. An index outside its window in the layout "argmax" is refused, too, but part of `out` may
    have been written then, and its contents are unspecified.

    >>> import numpy as np, aclnn_bw
    >>> x = np.array([[[3, 1, 2], [0, 5, 4], [9, 7, 8]]], np.float32)
    >>> out, mask = aclnn_bw.max_pool2d_with_mask(x, 2, 1)
    >>> aclnn_bw.max_pool2d_with_mask_backward(np.ones_like(out), x, mask, 2, 1)
    array([[[0., 0., 0.],
            [0., 2., 0.],
            [1., 0., 1.]]], dtype=float32)
    """
    return one_call(
        MAX_POOL2D_WITH_MASK_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>self, <PyObject*>mask, <PyObject*>kernel_size, <PyObject*>stride,
         <PyObject*>padding, <PyObject*>dilation, <PyObject*>ceil_mode, <PyObject*>mask_layout, <PyObject*>out])


def aclnnMaxPool2dWithMaskGetWorkspaceSize(self, kernelSize, stride, padding, dilation, ceilMode, out, indices):
    """Phase 1 of MaxPool2dWithMask: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    self (N, C, H, W) or (C, H, W) and out (N, C, Ho, Wo) or (C, Ho, Wo), of one dtype that the product takes; indices,
    ACL_INT8 of the shape that mask_shape tells, C-contiguous, receives the mask in the layout that `soc` says. The
    attributes are those of the backward.

    out holds the maximum of each window; padding counts as -inf. The first maximum in row-major window order is
    recorded, a NaN wins over numbers, and the last NaN over others, as in PyTorch's max_pool2d. Raises AclnnError for a
    refusal; then nothing has been written. In the example each maximum lies at the last of four kernel positions: there
    the words of the mask have the bit of channel 0.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> out, indices = np.empty((1, 1, 2, 2), np.float32), np.empty(aclnn_bw.mask_shape(x.shape, 2), np.int8)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithMaskGetWorkspaceSize(
    ...     x, [2, 2], [2, 2], [0, 0], [1, 1], False, out, indices)
    >>> aclnn_bw.aclnnMaxPool2dWithMask(bytearray(size), size, executor)
    >>> out
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    >>> indices.view("<u2")[0, 0, :, :4]
    array([[0, 0, 0, 0],
           [0, 0, 0, 0],
           [0, 0, 0, 0],
           [1, 1, 1, 1]], dtype=uint16)
    """
    return phase_1(
        MAX_POOL2D_WITH_MASK,
        [<PyObject*>self, <PyObject*>kernelSize, <PyObject*>stride, <PyObject*>padding, <PyObject*>dilation,
         <PyObject*>ceilMode, <PyObject*>out, <PyObject*>indices])


def aclnnMaxPool2dWithMask(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithMask: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(MAX_POOL2D_WITH_MASK, workspace, workspaceSize, executor, stream)


def max_pool2d_with_mask(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *,
                         mask_layout="bitmask", out=None, mask_out=None):
    """Return (out, mask): the maxima of the windows, and where they lie.

    self (N, C, H, W) or (C, H, W) of float32, float64, float16 or bfloat16. kernel_size, stride (None: kernel_size) and
    padding (at most half the kernel) are an int or a pair; dilation must be 1. out is (N, C, Ho, Wo) or (C, Ho, Wo);
    mask is int8 of shape mask_shape(...), in the mask layout "bitmask" or "argmax", as
    max_pool2d_with_mask_backward takes it; both are new C-contiguous arrays, or `out` and `mask_out`, filled. Padding
    counts as -inf. The first maximum in row-major window order is
    recorded; a NaN wins over numbers, the last NaN over others. Values and positions are those of PyTorch's max_pool2d.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> out, mask = aclnn_bw.max_pool2d_with_mask(np.arange(16, dtype=np.float32).reshape(1, 4, 4), 2)
    >>> out
    array([[[ 5.,  7.],
            [13., 15.]]], dtype=float32)
    >>> aclnn_bw.mask_to_indices(mask, (1, 4, 4), 2)
    array([[[ 5,  7],
            [13, 15]]])
    """
    return one_call(
        MAX_POOL2D_WITH_MASK,
        [<PyObject*>self, <PyObject*>kernel_size, <PyObject*>stride, <PyObject*>padding, <PyObject*>dilation,
         <PyObject*>ceil_mode, <PyObject*>mask_layout, <PyObject*>out, <PyObject*>mask_out])


def aclnnMaxPool2dWithIndicesGetWorkspaceSize(self, kernelSize, stride, padding, dilation, ceilMode, out, indices):
    """Phase 1 of MaxPool2dWithIndices: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    self (N, C, H, W) or (C, H, W), out and indices (N, C, Ho, Wo) or (C, Ho, Wo); self and out of one dtype that the
    product takes: ACL_FLOAT, ACL_FLOAT16, ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host); indices ACL_INT32 or
    ACL_INT64; any strides. kernelSize and padding (at most half the kernel) have 1 or 2 values, stride 0, 1 or 2 (none:
    the kernel size), dilation 1 or 2, which must be 1.

    out holds the maximum of each window, padding counting as -inf, and indices where it lies: ih*W + iw in its own
    plane, as PyTorch's max_pool2d_with_indices. The first maximum in row-major window order is recorded; a NaN wins
    over numbers, and the last NaN over others. Raises AclnnError for a refusal; then nothing has been written.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> out, indices = np.empty((1, 1, 2, 2), np.float32), np.empty((1, 1, 2, 2), np.int32)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithIndicesGetWorkspaceSize(
    ...     x, [2, 2], [2, 2], [0, 0], [1, 1], False, out, indices)
    >>> aclnn_bw.aclnnMaxPool2dWithIndices(bytearray(size), size, executor)
    >>> out
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    >>> indices
    array([[[[ 5,  7],
             [13, 15]]]], dtype=int32)
    """
    return phase_1(
        MAX_POOL2D_WITH_INDICES,
        [<PyObject*>self, <PyObject*>kernelSize, <PyObject*>stride, <PyObject*>padding, <PyObject*>dilation,
         <PyObject*>ceilMode, <PyObject*>out, <PyObject*>indices])


def aclnnMaxPool2dWithIndices(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithIndices: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(MAX_POOL2D_WITH_INDICES, workspace, workspaceSize, executor, stream)


def max_pool2d_with_indices(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, *, out=None,
                            indices=None):
    """Return (out, indices): the maxima of the windows, and where they lie.

    self (N, C, H, W) or (C, H, W) of float32, float64, float16 or bfloat16. kernel_size, stride (None: kernel_size) and
    padding (at most half the kernel) are an int or a pair; dilation must be 1. out and indices are (N, C, Ho, Wo) or
    (C, Ho, Wo): new C-contiguous arrays, the indices int64, or `out` and `indices`, filled, the indices int32 or int64.
    An index is ih*W + iw in its plane. Padding counts as -inf. The first maximum in row-major window order is recorded;
    a NaN wins over numbers, the last NaN over others. Values and indices are those of PyTorch's
    max_pool2d_with_indices.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> out, indices = aclnn_bw.max_pool2d_with_indices(np.arange(16, dtype=np.float32).reshape(1, 4, 4), 2)
    >>> out
    array([[[ 5.,  7.],
            [13., 15.]]], dtype=float32)
    >>> indices
    array([[[ 5,  7],
            [13, 15]]])
    """
    return one_call(
        MAX_POOL2D_WITH_INDICES,
        [<PyObject*>self, <PyObject*>kernel_size, <PyObject*>stride, <PyObject*>padding, <PyObject*>dilation,
         <PyObject*>ceil_mode, <PyObject*>out, <PyObject*>indices])


def aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(gradOutput, self, indices, kernelSize, stride, padding, dilation,
                                                      ceilMode, gradInput):
    """Phase 1 of MaxPool2dWithIndicesBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput and indices (N, C, Ho, Wo) or (C, Ho, Wo), self and gradInput (N, C, H, W) or (C, H, W); all but the
    indices of one dtype that the product takes: ACL_FLOAT on Ascend910B, and on Host also ACL_FLOAT16, ACL_BF16 and
    ACL_DOUBLE. indices is what MaxPool2dWithIndices wrote: ACL_INT32, on Host also ACL_INT64; any strides. The
    attributes are those of the forward. self gives its shape only. Raises AclnnError for a refusal; then nothing has
    been written.

    gradInput[h, w] is the sum of gradOutput[oh, ow] over the windows whose index is h*W + w: the gradient of PyTorch's
    max_pool2d_with_indices. 16-bit types are summed in float32 and rounded once.

    >>> import numpy as np, aclnn_bw
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    >>> indices = np.array([5, 7, 13, 15], np.int32).reshape(1, 1, 2, 2)
    >>> gradInput = np.empty_like(x)
    >>> size, executor = aclnn_bw.aclnnMaxPool2dWithIndicesBackwardGetWorkspaceSize(
    ...     np.ones((1, 1, 2, 2), np.float32), x, indices, [2, 2], [2, 2], [0, 0], [1, 1], False, gradInput)
    >>> aclnn_bw.aclnnMaxPool2dWithIndicesBackward(bytearray(size), size, executor)
    >>> gradInput
    array([[[[0., 0., 0., 0.],
             [0., 1., 0., 1.],
             [0., 0., 0., 0.],
             [0., 1., 0., 1.]]]], dtype=float32)
    """
    return phase_1(
        MAX_POOL2D_WITH_INDICES_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>self, <PyObject*>indices, <PyObject*>kernelSize, <PyObject*>stride,
         <PyObject*>padding, <PyObject*>dilation, <PyObject*>ceilMode, <PyObject*>gradInput])


def aclnnMaxPool2dWithIndicesBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of MaxPool2dWithIndicesBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0. An index outside its window is
    refused here (ACLNN_ERR_PARAM_INVALID), and the message names the first one: part of gradInput may have been
    written then, its contents are unspecified; but for the workspace nothing else is touched.
    """
    run_phase_2(MAX_POOL2D_WITH_INDICES_BACKWARD, workspace, workspaceSize, executor, stream)


def max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, *,
                                     out=None):
    """Return the gradient of max_pool2d_with_indices with respect to its input.

    grad_output (N, C, Ho, Wo) or (C, Ho, Wo) of float32, float64, float16 or bfloat16; self is the input of the
    forward, or its shape: its values are not read. indices, int32 or int64, is what the forward returned, and comes
    last, as in PyTorch's operator. kernel_size, stride (None: kernel_size), padding and dilation are an int or a pair.
    The result is a new C-contiguous array of self's shape and grad_output's dtype, or `out`, filled: the sum of
    grad_output over the windows whose maximum lies at each position. 16-bit types are summed in float32 and rounded
    once.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError; then
    nothing has been written. An index outside its own window is refused, too, but part of `out` may have been written
    then, and its contents are unspecified.

    >>> import numpy as np, aclnn_bw
    >>> x = np.array([[[3, 1, 2], [0, 5, 4], [9, 7, 8]]], np.float32)
    >>> out, indices = aclnn_bw.max_pool2d_with_indices(x, 2, 1)
    >>> aclnn_bw.max_pool2d_with_indices_backward(np.ones_like(out), x, 2, 1, 0, 1, False, indices)
    array([[[0., 0., 0.],
            [0., 2., 0.],
            [1., 0., 1.]]], dtype=float32)
    """
    return one_call(
        MAX_POOL2D_WITH_INDICES_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>self, <PyObject*>indices, <PyObject*>kernel_size, <PyObject*>stride,
         <PyObject*>padding, <PyObject*>dilation, <PyObject*>ceil_mode, <PyObject*>out])
