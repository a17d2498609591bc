"""The kernels of Im2col, LAST. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void im2col_last_kernels "aclnn_bw_im2col_last_kernels" (RangeFn* row) noexcept nogil
