# cython: cdivision=True
"""AvgPool2d, ACROSS and LAST: channels lie side by side in a vector, and positions come one after the other.

The formula, its order and its bytes are those of avg_pool2d_forward.pyx, whose vectors hold windows of one row: few to
a row leave them empty. ACROSS transposes small planes for that, and LAST finds channels side by side in self; where out
has rows, it transposes the windows of a band. `width` channels, LANES or at least as many, are worked on at a time:
their last vector overlaps the one before.

Bounds. Of a window only what lies inside the image is summed (`find_inside`), and the scratch holds the sums of the
columns, of ACROSS the positions of a plane and its windows, and of LAST the windows of a band, for `width` channels.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, quotient
from aclnn_bw._core.avg_pool2d cimport LANES
from aclnn_bw._core.avg_pool2d_forward cimport LAST, AvgPool2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.avg_pool2d_windows cimport Inside, all_finite, divided_first, divisor_of, find_inside
from aclnn_bw._kernels.planes cimport load_windows, store_planes
from aclnn_bw._kernels.rows cimport narrow_row, sum_dense_rows
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, bfloat, element, half, load, real, scale, simd_divide, store, vector, zero,
)


cdef inline void sum_down(real* to, const element* source, int64_t down, int64_t along, int64_t rows, int64_t columns,
                          int64_t width) noexcept nogil:
    """to[iw*width + i] = the sum of the rows at column iw, channel i."""
    cdef int64_t iw
    if along == width:
        sum_dense_rows(to, source, down, rows, columns * width)
        return
    for iw in range(columns):
        sum_dense_rows(to + iw * width, source + iw * along, down, rows, width)


cdef inline vector average(const real* sums, int64_t width, const Inside* w, double divisor) noexcept nogil:
    cdef vector x = zero(<vector*>NULL)
    cdef int64_t iw
    for iw in range(w.begin, w.end):
        x = add(x, load(sums + iw * width, <vector*>NULL), sums)
    simd_divide(&x, &x, divisor, sizeof(real))
    return x


cdef inline bint average_row(const AvgPool2dForwardPlan* plan, element* to, int64_t to_along, const real* sums,
                             int64_t width, int64_t oh) noexcept nogil:
    """The windows of row oh, of the sums down their columns; whether all are finite."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef vector x, wrong
    cdef double divisor
    cdef int64_t ow, i
    cdef Inside w
    wrong = zero(<vector*>NULL)
    for ow in range(plan.w.out):
        w = find_inside(&plan.w, ow)
        divisor = divisor_of(plan, oh, ow, sums)
        i = 0
        while i <= width - lanes:
            x = average(sums + i, width, &w, divisor)
            wrong = add(wrong, scale(x, 0, sums), sums)
            store(to + i, x)
            i += lanes
        if i < width:
            i = width - lanes
            x = average(sums + i, width, &w, divisor)
            wrong = add(wrong, scale(x, 0, sums), sums)
            store(to + i, x)
        to += to_along
    return all_finite(wrong)


cdef void mend_row(const AvgPool2dForwardPlan* plan, element* to, int64_t to_along, const real* sums, int64_t width,
                   const element* source, int64_t down, int64_t along, int64_t oh) noexcept nogil:
    """average_row once more: what is not finite, of terms that are divided first."""
    cdef real average, divisor
    cdef int64_t ow, iw, i
    cdef Inside w
    for ow in range(plan.w.out):
        w = find_inside(&plan.w, ow)
        divisor = divisor_of(plan, oh, ow, sums)
        for i in range(width):
            average = 0
            for iw in range(w.begin, w.end):
                average += sums[iw * width + i]
            average /= divisor
            if average - average != 0:
                average = divided_first(plan, source + i, down, along, oh, ow, average)
                narrow_row(to + ow * to_along + i, <const real*>&average, 1)


cdef inline void average_rows(const AvgPool2dForwardPlan* plan, element* to, int64_t to_down, int64_t to_along,
                              const element* source, int64_t down, int64_t along, real* sums, int64_t width,
                              int64_t oh, int64_t end) noexcept nogil:
    """The rows [oh, end) of windows, for `width` channels side by side; `to` is where the first of them goes."""
    cdef Inside h
    while oh < end:
        h = find_inside(&plan.h, oh)
        sum_down(sums, source + h.begin * down, down, along, h.end - h.begin, plan.w.size, width)
        if not average_row(plan, to, to_along, <const real*>sums, width, oh):
            mend_row(plan, to, to_along, <const real*>sums, width, source, down, along, oh)
        to += to_down
        oh += 1


cdef void average_planes(const AvgPool2dForwardPlan* plan, const element* self__chw, element* out__chw, char* scratch,
                         int64_t channels, const void* source_end, const real* kind) noexcept nogil:
    """ACROSS: whole planes of some channels, at most LANES."""
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef element* image = packed + plan.h.size * plan.w.size * LANES
    if channels < LANES:
        memset(packed, 0, <size_t>(plan.h.size * plan.w.size * LANES) * sizeof(element))
    load_windows(packed, LANES, self__chw, plan.self_strides, plan.h.size, plan.w.size, channels, plan.h.out,
                 plan.h.kernel, plan.h.stride, plan.h.pad, source_end)
    average_rows(plan, image, plan.w.out * LANES, LANES, <const element*>packed, plan.w.size * LANES, LANES,
                 <real*>scratch, LANES, 0, plan.h.out)
    store_planes(out__chw, plan.out_strides, <const element*>image, LANES, plan.h.out, plan.w.out, channels)


cdef void average_last(const AvgPool2dForwardPlan* plan, const element* self__chw, element* out__chw, char* scratch,
                       int64_t channels, int64_t oh, int64_t end, const real* kind) noexcept nogil:
    """LAST: the rows [oh, end) of windows of some channels."""
    cdef element* image = <element*>(scratch + plan.at_packed)
    cdef element* to = out__chw + oh * plan.out_strides[2]
    if plan.stores:
        average_rows(plan, image, plan.w.out * channels, channels, self__chw, plan.self_strides[2],
                     plan.self_strides[3], <real*>scratch, channels, oh, end)
        store_planes(to, plan.out_strides, <const element*>image, channels, end - oh, plan.w.out, channels)
    else:
        average_rows(plan, to, plan.out_strides[2], plan.out_strides[3], self__chw, plan.self_strides[2],
                     plan.self_strides[3], <real*>scratch, channels, oh, end)


cdef int64_t across(const AvgPool2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                    const element* numbers, const real* kind) noexcept nogil:
    """The units [unit, end); unit = (n*bands + band)*groups + group. The last arguments give the types only."""
    cdef int64_t n, c, oh, group
    cdef const element* source
    cdef element* to
    while unit < end:
        oh = quotient(unit, plan.groups)
        group = unit - oh * plan.groups
        c = group * plan.group
        n = oh if plan.bands == 1 else quotient(oh, plan.bands)
        oh = (oh - n * plan.bands) * plan.band
        source = <const element*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        to = <element*>data[1] + n * plan.out_strides[0] + c * plan.out_strides[1]
        if plan.algorithm == LAST:
            average_last(plan, source, to, scratch, plan.group if group + 1 < plan.groups else plan.channels - c, oh,
                         least(oh + plan.band, plan.h.out), kind)
        else:
            average_planes(plan, source, to, scratch, least(LANES, plan.channels - c), data[0] + plan.source_bytes,
                           kind)
        unit += 1
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
