"""The kernels of MaxPool2dWithMaskBackward and MaxPool2dWithIndicesBackward, GATHER_LAST and SCATTER_LAST. The build
renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void max_pool2d_last_kernels "aclnn_bw_max_pool2d_last_kernels" (RangeFn* row) noexcept nogil
