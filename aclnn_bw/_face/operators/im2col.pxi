cdef extern from "operators.h":
    enum:
        IM2COL_BACKWARD "ACLNN_BW_IM2COL_BACKWARD"
        IM2COL "ACLNN_BW_IM2COL"


def aclnnIm2colBackwardGetWorkspaceSize(gradOutput, inputSize, kernelSize, dilation, padding, stride, out):
    """Phase 1 of Im2colBackward: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    gradOutput (N, C*kH*kW, L) and out (N, C, H, W), or (C*kH*kW, L) and (C, H, W), each of a dtype that the product
    takes: ACL_FLOAT, ACL_FLOAT16 (Ascend910, Ascend910B, Host), ACL_BF16 (Ascend910B, Host), ACL_DOUBLE (Host); where
    the two differ, the sum is rounded to gradOutput's dtype and then converted. inputSize = [H, W], and kernelSize,
    dilation, padding and stride have two values each. Raises AclnnError for a refusal; then nothing has been written.

    out[h, w] is the sum of the elements of the columns that im2col (PyTorch's unfold) read at (h, w): PyTorch's fold,
    under the names of CANN's aclnnIm2colBackward.

    >>> import numpy as np, aclnn_bw
    >>> gradOutput, out = np.ones((4, 4), np.float32), np.empty((1, 3, 3), np.float32)
    >>> size, executor = aclnn_bw.aclnnIm2colBackwardGetWorkspaceSize(
    ...     gradOutput, [3, 3], [2, 2], [1, 1], [0, 0], [1, 1], out)
    >>> aclnn_bw.aclnnIm2colBackward(bytearray(size), size, executor)
    >>> out
    array([[[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]]], dtype=float32)
    """
    return phase_1(
        IM2COL_BACKWARD,
        [<PyObject*>gradOutput, <PyObject*>inputSize, <PyObject*>kernelSize, <PyObject*>dilation, <PyObject*>padding,
         <PyObject*>stride, <PyObject*>out])


def aclnnIm2colBackward(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of Im2colBackward: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(IM2COL_BACKWARD, workspace, workspaceSize, executor, stream)


def im2col_backward(grad_output, input_size, kernel_size, dilation=1, padding=0, stride=1, *, out=None):
    """Return the gradient of im2col (unfold) with respect to its input: the columns, folded back to an image.

    grad_output (N, C*kH*kW, L) or (C*kH*kW, L) of float32, float64, float16 or bfloat16; input_size is (H, W);
    kernel_size, dilation, padding and stride are an int or a pair. The result is a new C-contiguous array of shape
    (N, C, H, W) or (C, H, W) and grad_output's dtype, or `out`, filled; `out` may be of another of these dtypes. Names,
    order and meaning are those of PyTorch's im2col_backward (today torch.nn.functional.fold).

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.im2col_backward(np.ones((1, 4, 4), np.float32), (4, 4), 2, stride=2)
    array([[[[1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.],
             [1., 1., 1., 1.]]]], dtype=float32)
    """
    return one_call(
        IM2COL_BACKWARD,
        [<PyObject*>grad_output, <PyObject*>input_size, <PyObject*>kernel_size, <PyObject*>dilation,
         <PyObject*>padding, <PyObject*>stride, <PyObject*>out])


def aclnnIm2colGetWorkspaceSize(self, kernelSize, dilation, padding, stride, out):
    """Phase 1 of Im2col: check the arguments, plan the work; returns (workspaceSize in bytes, executor).

    self (N, C, H, W) and out (N, C*kH*kW, Lh*Lw), or both without N, each of ACL_FLOAT, ACL_FLOAT16, ACL_BF16; "Host"
    takes every other dtype too. Where both are real floating-point types they may differ, and each element is rounded
    once; else they are equal, and elements are copied bit for bit. kernelSize, dilation, padding and stride have two
    values each. Ascend910 and Ascend310P lack it. Raises AclnnError for a refusal; then nothing has been written.

    out[(c*kH + kh)*kW + kw, lh*Lw + lw] = self[c, lh*sH - pH + kh*dH, lw*sW - pW + kw*dW], 0 outside the image, with
    Lx = (S + 2*p - d*(k - 1) - 1) // s + 1: PyTorch's unfold, under the names of CANN's aclnnIm2col.

    >>> import numpy as np, aclnn_bw
    >>> x, out = np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3), np.empty((4, 2), np.float32)
    >>> size, executor = aclnn_bw.aclnnIm2colGetWorkspaceSize(x, [2, 2], [2, 1], [0, 1], [1, 2], out)
    >>> aclnn_bw.aclnnIm2col(bytearray(size), size, executor)
    >>> out
    array([[0., 2.],
           [1., 3.],
           [0., 8.],
           [7., 9.]], dtype=float32)
    """
    return phase_1(
        IM2COL,
        [<PyObject*>self, <PyObject*>kernelSize, <PyObject*>dilation, <PyObject*>padding, <PyObject*>stride,
         <PyObject*>out])


def aclnnIm2col(workspace, workspaceSize, executor, stream=None):
    """Phase 2 of Im2col: run the executor, on the calling thread or on a stream.

    workspace is any writable buffer of at least workspaceSize bytes, None if that is 0.
    """
    run_phase_2(IM2COL, workspace, workspaceSize, executor, stream)


def im2col(self, kernel_size, dilation=1, padding=0, stride=1, *, out=None):
    """Return the windows of self as columns (unfold): one row for each kernel position, one column for each window.

    self (N, C, H, W) or (C, H, W), of float32, float64, float16, bfloat16, complex64, complex128, bool or any integer;
    kernel_size, dilation, padding and stride are an int or a pair; the padding is 0. The result is a new C-contiguous
    array (N, C*kH*kW, Lh*Lw), or without N, of self's dtype, or `out`, filled; `out` may be of another real
    floating-point dtype if self is of one. Names, order and meaning are those of torch.ops.aten.im2col (today
    torch.nn.functional.unfold). Its gradient is im2col_backward.

    Raises AclnnError (a ValueError) for a refusal, TypeError for an argument of the wrong kind, MemoryError.

    >>> import numpy as np, aclnn_bw
    >>> aclnn_bw.im2col(np.array([[[1, 2, 3], [4, 5, 6]]]), 2)
    array([[1, 2],
           [2, 3],
           [4, 5],
           [5, 6]])
    """
    return one_call(
        IM2COL,
        [<PyObject*>self, <PyObject*>kernel_size, <PyObject*>dilation, <PyObject*>padding, <PyObject*>stride,
         <PyObject*>out])
