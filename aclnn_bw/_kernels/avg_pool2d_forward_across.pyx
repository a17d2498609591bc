# cython: cdivision=True
"""AvgPool2d, ACROSS: channels lie side by side in a vector, and positions come one after the other.

The formula, its order and its bytes are those of avg_pool2d_forward.pyx, whose vectors hold windows of one row: few to
a row leave them empty.

Bounds. Of a window only what lies inside the image is summed (`find_inside`), and the scratch holds the positions of a
plane, the sums of its columns and its windows, for LANES channels.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, quotient
from aclnn_bw._core.avg_pool2d cimport LANES
from aclnn_bw._core.avg_pool2d_forward cimport AvgPool2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.avg_pool2d_windows cimport Inside, all_finite, divided_first, divisor_of, find_inside
from aclnn_bw._kernels.planes cimport load_planes, store_planes
from aclnn_bw._kernels.rows cimport narrow_row, sum_dense_rows
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, bfloat, element, half, load, real, scale, simd_divide, simd_store, store, vector, zero,
)


cdef inline bint average_row(const AvgPool2dForwardPlan* plan, element* to, const real* sums,
                             int64_t oh) noexcept nogil:
    """The windows of row oh, of the sums down their columns; whether all are finite."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef real[16] found
    cdef vector x, wrong
    cdef double divisor
    cdef int64_t ow, iw, k
    cdef Inside w
    wrong = zero(<vector*>NULL)
    for ow in range(plan.w.out):
        w = find_inside(&plan.w, ow)
        divisor = divisor_of(plan, oh, ow, sums)
        for k in range(LANES // lanes):
            x = zero(<vector*>NULL)
            for iw in range(w.begin, w.end):
                x = add(x, load(sums + iw * LANES + k * lanes, <vector*>NULL), sums)
            simd_divide(&x, &x, divisor, sizeof(real))
            wrong = add(wrong, scale(x, 0, sums), sums)
            store(to + k * lanes, x)
        to += LANES
    simd_store(found, &wrong)
    return all_finite(<const real*>found, lanes)


cdef void mend_row(const AvgPool2dForwardPlan* plan, element* to, const real* sums, const element* packed,
                   int64_t oh) noexcept nogil:
    """average_row once more: what is not finite, of terms that are divided first."""
    cdef real average, divisor
    cdef int64_t ow, iw, c
    cdef Inside w
    for ow in range(plan.w.out):
        w = find_inside(&plan.w, ow)
        divisor = divisor_of(plan, oh, ow, sums)
        for c in range(LANES):
            average = 0
            for iw in range(w.begin, w.end):
                average += sums[iw * LANES + c]
            average /= divisor
            if average - average != 0:
                average = divided_first(plan, packed + c, plan.w.size * LANES, LANES, oh, ow, average)
                narrow_row(to + ow * LANES + c, <const real*>&average, 1)


cdef void average_planes(const AvgPool2dForwardPlan* plan, const element* self__chw, element* out__chw, char* scratch,
                         int64_t channels, const real* kind) noexcept nogil:
    """Whole planes of some channels, at most LANES."""
    cdef real* sums = <real*>scratch
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef element* image = packed + plan.h.size * plan.w.size * LANES
    cdef int64_t columns = plan.w.size * LANES
    cdef element* to = image
    cdef int64_t oh
    cdef Inside h
    if channels < LANES:
        memset(packed, 0, <size_t>(plan.h.size * columns) * sizeof(element))
    load_planes(packed, LANES, self__chw, plan.self_strides, plan.h.size, plan.w.size, channels)
    for oh in range(plan.h.out):
        h = find_inside(&plan.h, oh)
        sum_dense_rows(sums, <const element*>packed + h.begin * columns, columns, h.end - h.begin, columns)
        if not average_row(plan, to, <const real*>sums, oh):
            mend_row(plan, to, <const real*>sums, <const element*>packed, oh)
        to += plan.w.out * LANES
    store_planes(out__chw, plan.out_strides, <const element*>image, LANES, plan.h.out, plan.w.out, channels)


cdef int64_t across(const AvgPool2dForwardPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                    const element* numbers, const real* kind) noexcept nogil:
    """The units [begin, end), groups of channels; the last arguments give the types only."""
    cdef int64_t n, c
    while begin < end:
        n = quotient(begin, plan.groups)
        c = (begin - n * plan.groups) * LANES
        average_planes(plan, <const element*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1],
                       <element*>data[1] + n * plan.out_strides[0] + c * plan.out_strides[1], scratch,
                       least(LANES, plan.channels - c), kind)
        begin += 1
    return ALL_GOOD


cdef int64_t across_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t across_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                  <const double*>NULL)


cdef int64_t across_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const half*>NULL, <const float*>NULL)


cdef int64_t across_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const bfloat*>NULL,
                  <const float*>NULL)


cdef void avg_pool2d_forward_across_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = across_f32
    row[<int>SLOT_F64] = across_f64
    row[<int>SLOT_F16] = across_f16
    row[<int>SLOT_BF16] = across_bf16
