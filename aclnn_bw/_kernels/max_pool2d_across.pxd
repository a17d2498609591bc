"""The kernels of MaxPool2dWithMask and MaxPool2dWithIndices, ACROSS. The build renames the C function for each
instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void max_pool2d_across_kernels "aclnn_bw_max_pool2d_across_kernels" (RangeFn* row) noexcept nogil
