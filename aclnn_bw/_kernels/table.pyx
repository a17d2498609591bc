"""The table of all kernels of one instruction set; compiled once for each, like the kernels themselves."""
from aclnn_bw._core.types cimport KernelTable
from aclnn_bw._kernels.avg_pool2d cimport avg_pool2d_kernels
from aclnn_bw._kernels.im2col cimport im2col_kernels
from aclnn_bw._kernels.max_pool2d_forward cimport max_pool2d_forward_kernels
from aclnn_bw._kernels.max_pool2d_gather cimport max_pool2d_gather_kernels
from aclnn_bw._kernels.max_pool2d_scatter cimport max_pool2d_scatter_kernels
from aclnn_bw._kernels.replication_pad2d cimport replication_pad2d_kernels
from aclnn_bw._kernels.upsample_nearest_exact1d cimport upsample_nearest_exact1d_kernels


cdef void fill_table(KernelTable* table) noexcept nogil:
    avg_pool2d_kernels(table)
    im2col_kernels(table)
    max_pool2d_forward_kernels(table)
    max_pool2d_gather_kernels(table)
    max_pool2d_scatter_kernels(table)
    replication_pad2d_kernels(table)
    upsample_nearest_exact1d_kernels(table)
