cdef extern from "operators.h":
    enum:
        REPLICATION_PAD2D_BACKWARD "ACLNN_BW_REPLICATION_PAD2D_BACKWARD"
        REPLICATION_PAD2D "ACLNN_BW_REPLICATION_PAD2D"


def aclnnReplicationPad2dBackwardGetWorkspaceSize(gradOutput, self, padding, gradInput):
    """Phase 1 of ReplicationPad2dBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, H + top + bottom, W + left + right), self and gradInput (N, C, H, W), or all without N, of one
    dtype: ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128, ACL_BF16 (Ascend910B, Host). padding =
    [left, right, top, bottom]; the products take pads of at least 0 and smaller than the image, "Host" takes any that
    leave an output: a negative one crops. self gives its shape only. Raises AclnnError for a refusal; then nothing has
    been written.

    gradInput[i, j] is the sum of gradOutput[p, q] with clamp(p - top, 0, H - 1) = i and clamp(q - left, 0, W - 1) = j:
    the gradient of PyTorch's replication_pad2d, under the names of CANN's aclnnReplicationPad2dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, gradInput = np.ones((1, 4, 4), np.float32), np.empty((1, 2, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnReplicationPad2dBackwardGetWorkspaceSize(
    ...     gradOutput, gradInput, [1, 1, 1, 1], gradInput)
    >>> aclnn_bw.aclnnReplicationPad2dBackward(bytearray(size), size, executor)
    >>> gradInput
    array([[[4., 4.],
            [4., 4.]]], dtype=float32)
    """
    return phase_1(
        REPLICATION_PAD2D_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>self, <PyObject*>padding, <PyObject*>gradInput])


def aclnnReplicationPad2dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of ReplicationPad2dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(REPLICATION_PAD2D_BACKWARD, workspace, workspaceSize, executor, stream)


def replication_pad2d_backward(grad_output, self, padding, *, out=None):
    """Return the gradient of replication_pad2d with respect to its input.

    grad_output (N, C, H + top + bottom, W + left + right), or without N, of float32, float64, float16, bfloat16,
    complex64 or complex128; self is the input of the forward, or its shape: its values are not read. padding is
    (left, right, top, bottom), or one int for all four; a negative pad crops. The result is a new C-contiguous array of
    self's shape and grad_output's dtype, or `out`, filled. Names, order and meaning are those of
    torch.ops.aten.replication_pad2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.replication_pad2d_backward(np.ones((1, 2, 4), np.float32), (1, 2, 2), (2, 0, 0, 0))
    array([[[3., 1.],
            [3., 1.]]], dtype=float32)
    """
    return one_call(
        REPLICATION_PAD2D_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>self, <PyObject*>padding, <PyObject*>out])


def aclnnReplicationPad2dGetWorkspaceSize(self, padding, out):
    """Phase 1 of ReplicationPad2d: check the arguments, plan the work; returns (workspaceSize, executor).

    self (N, C, H, W) and out (N, C, H + top + bottom, W + left + right), or both without N, of one dtype: ACL_FLOAT,
    ACL_FLOAT16, ACL_BF16, ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128, ACL_INT8, ACL_UINT8, ACL_INT16, ACL_INT32,
    ACL_INT64; "Host" also takes ACL_BOOL, ACL_UINT16, ACL_UINT32, ACL_UINT64. padding = [left, right, top, bottom]; the
    products take pads of at least 0 and smaller than the image, "Host" takes any that leave an output: a negative one
    crops. Raises AclnnError for a refusal; then nothing has been written.

    out[p, q] = self[clamp(p - top, 0, H - 1), clamp(q - left, 0, W - 1)], copied bit for bit: PyTorch's
    replication_pad2d, under the names of CANN's aclnnReplicationPad2d.

    >>> import numpy as np, aclnn_bw
    >>> x, out = np.arange(1, 7, dtype=np.float32).reshape(1, 2, 3), np.empty((1, 4, 5), np.float32)
    >>> size, executor = aclnn_bw.aclnnReplicationPad2dGetWorkspaceSize(x, [1, 1, 1, 1], out)
    >>> aclnn_bw.aclnnReplicationPad2d(bytearray(size), size, executor)
    >>> out
    array([[[1., 1., 2., 3., 3.],
            [1., 1., 2., 3., 3.],
            [4., 4., 5., 6., 6.],
            [4., 4., 5., 6., 6.]]], dtype=float32)
    """
    return phase_1(REPLICATION_PAD2D, [<PyObject*>self, <PyObject*>padding, <PyObject*>out])


def aclnnReplicationPad2d(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of ReplicationPad2d: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(REPLICATION_PAD2D, workspace, workspaceSize, executor, stream)


def replication_pad2d(self, padding, *, out=None):
    """Return self with its border repeated around it.

    self (N, C, H, W) or (C, H, W), of float32, float64, float16, bfloat16, complex64, complex128, bool or any integer.
    padding is (left, right, top, bottom), or one int for all four; a negative pad crops. The result is a new
    C-contiguous array (N, C, H + top + bottom, W + left + right), or without N, of self's dtype, or `out`, filled:
    copied bit for bit. Names, order and meaning are those of torch.ops.aten.replication_pad2d. Its gradient is
    replication_pad2d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.replication_pad2d(np.array([[[1, 2, 3], [4, 5, 6]]]), (2, 0, 0, 1))
    array([[[1, 1, 1, 2, 3],
            [4, 4, 4, 5, 6],
            [4, 4, 4, 5, 6]]])
    """
    return one_call(REPLICATION_PAD2D, [<PyObject*>self, <PyObject*>padding, <PyObject*>out])
