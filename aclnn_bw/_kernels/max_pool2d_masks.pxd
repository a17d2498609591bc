"""The conversion between masks and indices. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void max_pool2d_masks_kernels "aclnn_bw_max_pool2d_masks_kernels" (RangeFn* row) noexcept nogil
