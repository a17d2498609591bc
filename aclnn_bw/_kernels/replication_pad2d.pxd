"""The kernels of ReplicationPad2dBackward. The build renames the C function for each instruction set."""
from libc.stdint cimport int64_t, uint16_t

from aclnn_bw._core.types cimport KernelTable
from aclnn_bw._kernels.rows cimport bfloat, half

cdef extern from "half.h" nogil:
    float widen_half "aclnn_bw_widen_half" (half value) noexcept
    float widen_bfloat "aclnn_bw_widen_bfloat" (bfloat value) noexcept
    half narrow_to_half "aclnn_bw_narrow_to_half" (float value) noexcept
    bfloat narrow_to_bfloat "aclnn_bw_narrow_to_bfloat" (float value) noexcept

cdef extern from "replication_pad2d.h" nogil:
    void copy_float_rows "aclnn_bw_copy_float_rows" (
        float* to, int64_t down, const float* source, int64_t source_down, int64_t n, int64_t rows) noexcept
    void copy_double_rows "aclnn_bw_copy_double_rows" (
        double* to, int64_t down, const double* source, int64_t source_down, int64_t n, int64_t rows) noexcept
    void copy_bits_rows "aclnn_bw_copy_bits_rows" (
        uint16_t* to, int64_t down, const uint16_t* source, int64_t source_down, int64_t n, int64_t rows) noexcept
    void sum_float_rows "aclnn_bw_sum_float_rows" (
        float* to, const float* source, int64_t down, int64_t rows, int64_t n) noexcept
    void sum_double_rows "aclnn_bw_sum_double_rows" (
        double* to, const double* source, int64_t down, int64_t rows, int64_t n) noexcept
    void sum_half_rows "aclnn_bw_sum_half_rows" (
        float* to, const half* source, int64_t down, int64_t rows, int64_t n) noexcept
    void sum_bfloat_rows "aclnn_bw_sum_bfloat_rows" (
        float* to, const bfloat* source, int64_t down, int64_t rows, int64_t n) noexcept
    void add_float_lanes "aclnn_bw_add_float_lanes" (float* lanes, const float* run, int64_t n) noexcept
    void add_double_lanes "aclnn_bw_add_double_lanes" (double* lanes, const double* run, int64_t n) noexcept

cdef extern void replication_pad2d_kernels "aclnn_bw_replication_pad2d_kernels" (KernelTable* table) noexcept nogil
