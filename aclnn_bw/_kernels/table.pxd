"""The kernels of one instruction set. The build renames the C function for each: aclnn_bw_fill_table_v3."""
from aclnn_bw._core.types cimport KernelTable

cdef extern void fill_table "aclnn_bw_fill_table" (KernelTable* table) noexcept nogil
