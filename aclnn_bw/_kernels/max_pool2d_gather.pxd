"""The kernels of MaxPool2dWithMaskBackward, GATHER. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void max_pool2d_gather_kernels "aclnn_bw_max_pool2d_gather_kernels" (RangeFn* row) noexcept nogil
