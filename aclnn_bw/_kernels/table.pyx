"""The table of all kernels of one instruction set; compiled once for each, like the kernels themselves."""
from aclnn_bw._core.types cimport KernelTable
from aclnn_bw._kernels.avg_pool2d cimport avg_pool2d_kernels


cdef void fill_table(KernelTable* table) noexcept nogil:
    avg_pool2d_kernels(table)
