"""Which instruction sets this build and this CPU have, and the kernels of the chosen one."""
from aclnn_bw._core.types cimport KernelTable

# Ascending: each has all of the one before.
cdef enum InstructionSet:
    ISA_NONE        # the CPU is below the floor of this build
    ISA_BASELINE    # the compiler's own; the only one on machines other than x86-64
    ISA_V2
    ISA_V3
    ISA_V4

cdef extern int best_isa "aclnn_bw_best_isa" () noexcept nogil
cdef extern bint has_isa "aclnn_bw_has_isa" (int isa) noexcept nogil
cdef extern void load_kernels "aclnn_bw_load_kernels" (int isa, KernelTable* table) noexcept nogil
