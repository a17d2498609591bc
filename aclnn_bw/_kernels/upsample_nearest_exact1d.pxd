"""The kernels of UpsampleNearestExact1dBackward. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void upsample_nearest_exact1d_kernels "aclnn_bw_upsample_nearest_exact1d_kernels" (
    RangeFn* table) noexcept nogil
