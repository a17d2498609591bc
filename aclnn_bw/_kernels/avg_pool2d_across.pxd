"""The kernels of AvgPool2dBackward, ACROSS and LAST. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void avg_pool2d_across_kernels "aclnn_bw_avg_pool2d_across_kernels" (RangeFn* row) noexcept nogil
