cdef extern from "operators.h":
    enum:
        UPSAMPLE_NEAREST_EXACT1D_BACKWARD "ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_BACKWARD"
        UPSAMPLE_NEAREST_EXACT1D "ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D"


def aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(gradOutput, outputSize, inputSize, scales, out):
    """Phase 1 of UpsampleNearestExact1dBackward: check the arguments, plan the work; returns (workspaceSize, executor).

    gradOutput (N, C, Lo) and out (N, C, Li), of one dtype that the product takes: ACL_FLOAT, ACL_FLOAT16, ACL_BF16
    (Ascend910B, Host), ACL_DOUBLE (Host). outputSize = [Lo], inputSize = [N, C, Li]. scales is the factor that the
    forward was given, 0 if it was given none; then it follows from the sizes. Raises AclnnError for a refusal; then
    nothing has been written.

    With t = float32(1 / scales), or float32(Li) / float32(Lo), gradOutput[j] is added to
    out[min(floor(float32((j + 0.5) * t)), Li - 1)]: the gradient of PyTorch's nearest-exact interpolation, under the
    names of CANN's aclnnUpsampleNearestExact1dBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, out = np.arange(4, dtype=np.float32).reshape(1, 1, 4), np.empty((1, 1, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
    ...     gradOutput, [4], [1, 1, 2], 0.0, out)
    >>> aclnn_bw.aclnnUpsampleNearestExact1dBackward(bytearray(size), size, executor)
    >>> out
    array([[[1., 5.]]], dtype=float32)
    """
    return phase_1(
        UPSAMPLE_NEAREST_EXACT1D_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>outputSize, <PyObject*>inputSize, <PyObject*>scales, <PyObject*>out])


def aclnnUpsampleNearestExact1dBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of UpsampleNearestExact1dBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(UPSAMPLE_NEAREST_EXACT1D_BACKWARD, workspace, workspaceSize, executor, stream)


def upsample_nearest_exact1d_backward(grad_output, output_size, input_size, scales=None, *, out=None):
    """Return the gradient of nearest-exact interpolation along one axis with respect to its input.

    grad_output (N, C, Lo) of float32, float64, float16 or bfloat16; output_size is Lo, as an int or [Lo]; input_size is
    (N, C, Li); scales is the factor that the forward was given, or None: then it follows from the sizes. The result is
    a new C-contiguous array of shape input_size and grad_output's dtype, or `out`, filled. Names, order and meaning are
    those of torch.ops.aten._upsample_nearest_exact1d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.upsample_nearest_exact1d_backward(np.ones((1, 1, 5), np.float32), 5, (1, 1, 3))
    array([[[2., 1., 2.]]], dtype=float32)
    """
    return one_call(
        UPSAMPLE_NEAREST_EXACT1D_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>output_size, <PyObject*>input_size, <PyObject*>scales, <PyObject*>out])


def aclnnUpsampleNearestExact1dGetWorkspaceSize(self, outputSize, scales, out):
    """Phase 1 of UpsampleNearestExact1d: check the arguments, plan the work; returns (workspaceSize, executor).

    self (N, C, L) and out (N, C, outputSize[0]) of one dtype: ACL_FLOAT, ACL_FLOAT16, ACL_BF16 (not Ascend310P),
    ACL_UINT8 (not Ascend310P); "Host" takes every other one too. outputSize has one value. scales > 0 is the output
    length divided by the input length; 0, negative values and NaN mean that the sizes say it. Ascend910 lacks it.
    Raises AclnnError for a refusal; then nothing has been written.

    out[n, c, j] = self[n, c, index(j)], copied bit for bit, where t = float32(1 / scales) or float32(L) / float32(Lo)
    and index(j) = min(floor(float32((j + 0.5) * t)), L - 1): PyTorch's _upsample_nearest_exact1d for float32, under the
    names of CANN's aclnnUpsampleNearestExact1d.

    >>> import numpy as np, aclnn_bw
    >>> x, out = np.arange(5, dtype=np.float32).reshape(1, 1, 5), np.empty((1, 1, 3), np.float32)
    >>> size, executor = aclnn_bw.aclnnUpsampleNearestExact1dGetWorkspaceSize(x, [3], 0.0, out)
    >>> aclnn_bw.aclnnUpsampleNearestExact1d(bytearray(size), size, executor)
    >>> out
    array([[[0., 2., 4.]]], dtype=float32)
    """
    return phase_1(
        UPSAMPLE_NEAREST_EXACT1D, [<PyObject*>self, <PyObject*>outputSize, <PyObject*>scales, <PyObject*>out])


def aclnnUpsampleNearestExact1d(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of UpsampleNearestExact1d: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(UPSAMPLE_NEAREST_EXACT1D, workspace, workspaceSize, executor, stream)


def upsample_nearest_exact1d(self, output_size, scales=None, *, out=None):
    """Return the rows of self at another length, each element a copy of the nearest one.

    self (N, C, L), of float32, float64, float16, bfloat16, complex64, complex128, bool or any integer; output_size is
    the length, or a sequence with it. scales is the output length divided by the input length; None, 0, negative values
    and NaN mean that the sizes say it. The result is a new C-contiguous array (N, C, output_size) of self's dtype, or
    `out`, filled: copied bit for bit. Names, order and meaning are those of torch.ops.aten._upsample_nearest_exact1d;
    the map is its map for float32, whatever the dtype. Its gradient is upsample_nearest_exact1d_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.upsample_nearest_exact1d(np.array([[[10, 20, 30, 40, 50]]]), 3)
    array([[[10, 30, 50]]])
    """
    return one_call(
        UPSAMPLE_NEAREST_EXACT1D, [<PyObject*>self, <PyObject*>output_size, <PyObject*>scales, <PyObject*>out])
