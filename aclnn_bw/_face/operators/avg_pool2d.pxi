cdef extern from "operators.h":
    enum:
        AVG_POOL2D_BACKWARD "ACLNN_BW_AVG_POOL2D_BACKWARD"
        AVG_POOL2D "ACLNN_BW_AVG_POOL2D"


def aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, self, kernelSize, stride, padding, ceilMode, countIncludePad,
                                           divisorOverride, cubeMathType, gradInput):
    """Phase 1 of AvgPool2dBackward: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    gradOutput (N, C, Ho, Wo) or (C, Ho, Wo), self and gradInput (N, C, H, W) or (C, H, W), all of one dtype that the
    product takes: ACL_FLOAT, ACL_FLOAT16, ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host). kernelSize and padding have
    1 or 2 values, stride 0, 1 or 2 or is None (then it is the kernel size). divisorOverride 0 means none. cubeMathType
    is a CubeMathType. self gives its shape only. Raises AclnnError for a refusal; then nothing has been written.

    gradInput[h, w] is the sum of gradOutput[oh, ow] / divisor over the windows that hold (h, w): the gradient of
    PyTorch's avg_pool2d, under the names of CANN's aclnnAvgPool2dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, gradInput = np.ones((1, 1, 1, 1), np.float32), np.empty((1, 1, 4, 4), np.float32)
    >>> size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
    ...     gradOutput, gradInput, [4, 4], [1, 1], [0, 0], False, True, 0, aclnn_bw.ALLOW_FP32_DOWN_PRECISION,
    ...     gradInput)
    >>> aclnn_bw.aclnnAvgPool2dBackward(bytearray(size), size, executor)
    >>> gradInput
    array([[[[0.0625, 0.0625, 0.0625, 0.0625],
             [0.0625, 0.0625, 0.0625, 0.0625],
             [0.0625, 0.0625, 0.0625, 0.0625],
             [0.0625, 0.0625, 0.0625, 0.0625]]]], dtype=float32)
    """
    return phase_1(
        AVG_POOL2D_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>self, <PyObject*>kernelSize, <PyObject*>stride, <PyObject*>padding,
         <PyObject*>ceilMode, <PyObject*>countIncludePad, <PyObject*>divisorOverride, <PyObject*>cubeMathType,
         <PyObject*>gradInput])


def aclnnAvgPool2dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of AvgPool2dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(AVG_POOL2D_BACKWARD, workspace, workspaceSize, executor, stream)


def avg_pool2d_backward(grad_output, self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
                        divisor_override=None, *, out=None):
    """Return the gradient of avg_pool2d with respect to its input.

    grad_output (N, C, Ho, Wo) or (C, Ho, Wo) of float32, float64, float16 or bfloat16; self is the input of the
    forward, or its shape: its values are not read. kernel_size, stride (None: kernel_size) and padding are an int or a
    pair; divisor_override is None or an int other than 0. The result is a new C-contiguous array of self's shape and
    grad_output's dtype, or `out`, filled. Names, order and meaning are those of torch.ops.aten.avg_pool2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.avg_pool2d_backward(np.ones((1, 2, 2), np.float32), (1, 3, 3), kernel_size=2, stride=1)
    array([[[0.25, 0.5 , 0.25],
            [0.5 , 1.  , 0.5 ],
            [0.25, 0.5 , 0.25]]], dtype=float32)
    """
    return one_call(
        AVG_POOL2D_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>self, <PyObject*>kernel_size, <PyObject*>stride, <PyObject*>padding,
         <PyObject*>ceil_mode, <PyObject*>count_include_pad, <PyObject*>divisor_override, <PyObject*>out])


def aclnnAvgPool2dGetWorkspaceSize(self, kernelSize, strides, paddings, ceilMode, countIncludePad, divisorOverride,
                                   cubeMathType, out):
    """Phase 1 of AvgPool2d: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    self (N, C, H, W) and out (N, C, Ho, Wo), or both without N, of one dtype: ACL_FLOAT, ACL_FLOAT16, ACL_BF16
    (Ascend910B, Host), ACL_DOUBLE (Host). kernelSize and paddings have 1 or 2 values, strides 0, 1 or 2; without one it
    is the kernel size. divisorOverride 0 means none. cubeMathType is a CubeMathType. Raises AclnnError for a refusal;
    then nothing has been written.

    out[oh, ow] is the sum of self over the window, clipped to the image, divided by divisorOverride, or by the window's
    size with the padding (countIncludePad) or without: PyTorch's avg_pool2d, under the names of CANN's aclnnAvgPool2d.

    >>> import numpy as np, aclnn_bw
    >>> x, out = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4), np.empty((1, 1, 2, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnAvgPool2dGetWorkspaceSize(
    ...     x, [2, 2], [2, 2], [0, 0], False, True, 0, aclnn_bw.USE_FP16, out)
    >>> aclnn_bw.aclnnAvgPool2d(bytearray(size), size, executor)
    >>> out
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]], dtype=float32)
    """
    return phase_1(
        AVG_POOL2D,
        [<PyObject*>self, <PyObject*>kernelSize, <PyObject*>strides, <PyObject*>paddings, <PyObject*>ceilMode,
         <PyObject*>countIncludePad, <PyObject*>divisorOverride, <PyObject*>cubeMathType, <PyObject*>out])


def aclnnAvgPool2d(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of AvgPool2d: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(AVG_POOL2D, workspace, workspaceSize, executor, stream)


def avg_pool2d(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None, *, out=None):
    """Return the average of each window of self.

    self (N, C, H, W) or (C, H, W) of float32, float64, float16 or bfloat16; kernel_size, stride (None: kernel_size) and
    padding are an int or a pair; divisor_override is None or an int other than 0. The result is a new C-contiguous
    array (N, C, Ho, Wo), or without N, of self's dtype, or `out`, filled. 16-bit types are summed in float32 and
    rounded once. Names, order and meaning are those of torch.ops.aten.avg_pool2d. Its gradient is avg_pool2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.avg_pool2d(np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), 2, stride=1)
    array([[[3., 4.]]])
    """
    return one_call(
        AVG_POOL2D,
        [<PyObject*>self, <PyObject*>kernel_size, <PyObject*>stride, <PyObject*>padding, <PyObject*>ceil_mode,
         <PyObject*>count_include_pad, <PyObject*>divisor_override, <PyObject*>out])
