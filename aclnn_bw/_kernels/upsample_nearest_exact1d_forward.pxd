"""The kernels of UpsampleNearestExact1d. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void upsample_nearest_exact1d_forward_kernels "aclnn_bw_upsample_nearest_exact1d_forward_kernels" (
    RangeFn* row) noexcept nogil
