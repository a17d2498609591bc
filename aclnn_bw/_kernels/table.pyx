"""The table of all kernels of one instruction set; compiled once for each, like the kernels themselves."""
from aclnn_bw._core.types cimport KernelTable

cdef extern from "simd.h" nogil:
    enum:
        VECTOR_BYTES "SIMD_BYTES"

cdef extern from * nogil:
    """
    #include "types.h"
    #define KERNEL(file) extern void aclnn_bw_##file##_kernels(aclnn_bw_range_fn *row);
    #include "operators.def"
    static void aclnn_bw_fill_rows(aclnn_bw_kernel_table *table)
    {
    #define KERNEL(file) aclnn_bw_##file##_kernels(table->row[ACLNN_BW_KERNEL_##file]);
    #include "operators.def"
    }
    """
    void fill_rows "aclnn_bw_fill_rows" (KernelTable* table) noexcept


cdef void fill_table(KernelTable* table) noexcept nogil:
    fill_rows(table)
    table.vector_bytes = VECTOR_BYTES
