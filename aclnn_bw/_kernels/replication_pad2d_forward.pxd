"""The kernels of ReplicationPad2d. The build renames the C function for each instruction set."""
from aclnn_bw._core.types cimport RangeFn

cdef extern void replication_pad2d_forward_kernels "aclnn_bw_replication_pad2d_forward_kernels" (
    RangeFn* row) noexcept nogil
