"""The choice of the instruction set. The environment is read by the face, not here.

The build defines ACLNN_BW_VARIANTS where the compiler makes x86-64-v2, v3 and v4 objects of the kernels; each brings
its own `fill_table`. Elsewhere there is one variant, of the compiler's baseline.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.types cimport KernelTable

cdef extern from *:
    """
    #ifdef ACLNN_BW_VARIANTS
    extern void aclnn_bw_fill_table_v2(void *);
    extern void aclnn_bw_fill_table_v3(void *);
    extern void aclnn_bw_fill_table_v4(void *);
    static int aclnn_bw_cpu_isa(void)
    {
        __builtin_cpu_init();
        return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3
             : __builtin_cpu_supports("x86-64-v2") ? 2 : 0;
    }
    static int aclnn_bw_clears_by_pieces(void) { return __builtin_cpu_is("intel") != 0; }
    static int aclnn_bw_built_isa(int isa) { return isa >= 2 && isa <= 4; }
    static void aclnn_bw_fill(int isa, void *table)
    {
        (isa == 4 ? aclnn_bw_fill_table_v4 : isa == 3 ? aclnn_bw_fill_table_v3 : aclnn_bw_fill_table_v2)(table);
    }
    #else
    extern void aclnn_bw_fill_table_baseline(void *);
    static int aclnn_bw_cpu_isa(void) { return 1; }
    static int aclnn_bw_clears_by_pieces(void) { return 0; }
    static int aclnn_bw_built_isa(int isa) { return isa == 1; }
    static void aclnn_bw_fill(int isa, void *table) { (void)isa; aclnn_bw_fill_table_baseline(table); }
    #endif
    #include "last_cache.h"
    """
    int cpu_isa "aclnn_bw_cpu_isa" () noexcept nogil
    bint built_isa "aclnn_bw_built_isa" (int isa) noexcept nogil
    bint clears_by_pieces "aclnn_bw_clears_by_pieces" () noexcept nogil
    void fill "aclnn_bw_fill" (int isa, void* table) noexcept nogil
    int64_t last_cache "aclnn_bw_last_cache" () noexcept nogil
    int64_t streamed_from "aclnn_bw_streamed_from" (int64_t bytes) noexcept nogil


cdef int best_isa() noexcept nogil:
    """The best variant that the CPU can run; ISA_NONE if it can run none."""
    return cpu_isa()


cdef bint has_isa(int isa) noexcept nogil:
    """Whether the variant exists in this build and the CPU can run it."""
    return built_isa(isa) and isa <= cpu_isa()


cdef void load_kernels(int isa, KernelTable* table) noexcept nogil:
    """Fill the table with the kernels of a variant for which `has_isa` holds."""
    cdef int64_t cache = last_cache()
    fill(isa, table)
    table.streamed_bytes = streamed_from(cache)
    table.clears_by_pieces = clears_by_pieces()
    table.streamed_sums = streamed_from(cache // 2 if table.clears_by_pieces else cache)
