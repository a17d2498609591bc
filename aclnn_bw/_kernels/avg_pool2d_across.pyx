# cython: cdivision=True
"""AvgPool2dBackward, ACROSS: channels lie side by side in a vector, and positions come one after the other.

The formula, its order and its bytes are those of avg_pool2d.pyx, whose vectors hold positions of one row: few to a row
leave them empty. The terms of a row of windows are summed along w for each column, and these sums along h; of equal
neighbours, the second is a copy.

Bounds. Of a position's windows those are summed that exist (`Windows`), and the scratch holds the terms of a row of
windows, the sums of each row of windows and the positions of a plane, for LANES channels.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.avg_pool2d cimport LANES, AvgPool2dPlan, Axis
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.avg_pool2d_terms cimport constant_factor, find_factors, term
from aclnn_bw._kernels.planes cimport load_planes, store_planes
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, bfloat, element, half, load, simd_load, simd_store, store, sum_bytes, vector, zero,
)

# The windows [begin, end) of a position along an axis, position + pad = q*stride + phase: those that exist, none where
# end <= begin.
cdef struct Windows:
    int64_t q
    int64_t phase
    int64_t begin
    int64_t end


cdef inline bint find_windows(const Axis* axis, Windows* some, int64_t position) noexcept nogil:
    """Of the position after the last that was asked for, or of 0; whether they are others."""
    cdef int64_t begin, end
    cdef bint others
    if position == 0:
        some.q = axis.first
        some.phase = axis.pad - axis.first * axis.stride
    else:
        some.phase += 1
        if some.phase == axis.stride:
            some.phase = 0
            some.q += 1
    begin = most(some.q - axis.terms + (1 if some.phase < axis.long_phases else 2), 0)
    end = least(some.q + 1, axis.out)
    others = position == 0 or begin != some.begin or end != some.end
    some.begin = begin
    some.end = end
    return others


cdef inline vector sum_steps(const char* source, int64_t down, int64_t rows, const element* numbers) noexcept nogil:
    """The sum of vectors that lie `down` bytes apart, from +0.0 on."""
    cdef vector sum = zero(<vector*>NULL)
    cdef vector x
    while rows > 0:
        simd_load(&x, source)
        sum = add(sum, x, numbers)
        source += down
        rows -= 1
    return sum


cdef void sum_along_w(const AvgPool2dPlan* plan, char* to, char* terms, const element* grad_output,
                      const double* factors) noexcept nogil:
    """The sums of a row of windows for each column."""
    cdef int64_t size = sum_bytes(grad_output)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t ow, iw, k
    cdef Windows w
    cdef vector x
    for ow in range(plan.w.out):
        for k in range(LANES // lanes):
            x = term(load(grad_output + k * lanes, <vector*>NULL), factors[ow], grad_output)
            simd_store(terms + ow * LANES * size + k * VECTOR_BYTES, &x)
        grad_output += LANES
    for iw in range(plan.w.size):
        if find_windows(&plan.w, &w, iw):
            for k in range(LANES // lanes):
                x = sum_steps(terms + w.begin * LANES * size + k * VECTOR_BYTES, LANES * size, w.end - w.begin,
                              grad_output)
                simd_store(to + k * VECTOR_BYTES, &x)
        else:
            memcpy(to, to - LANES * size, <size_t>(LANES * size))
        to += LANES * size


cdef void sum_planes(const AvgPool2dPlan* plan, const element* grad_output__chw, element* grad_input__chw,
                     char* scratch, int64_t channels) noexcept nogil:
    """Whole planes of some channels, at most LANES."""
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef element* image = <element*>(scratch + plan.at_row)
    cdef double* factors = <double*>(scratch + plan.at_factors)
    cdef int64_t size = sum_bytes(grad_output__chw)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t columns = plan.w.size * LANES
    cdef char* sums = scratch + plan.at_long
    cdef element* to = image
    cdef int64_t oh, ih, i
    cdef Windows h
    if channels < LANES:
        memset(packed, 0, <size_t>(plan.h.out * plan.w.out * LANES) * sizeof(element))
    load_planes(packed, LANES, grad_output__chw, plan.grad_output_strides, plan.h.out, plan.w.out, channels)
    for i in range(plan.w.out):
        factors[i] = constant_factor(plan)
    for oh in range(plan.h.out):
        if not plan.constant_divisor:
            find_factors(plan, factors, oh, grad_output__chw)
        sum_along_w(plan, sums + oh * columns * size, scratch + plan.at_terms, packed + oh * plan.w.out * LANES,
                    <const double*>factors)
    for ih in range(plan.h.size):
        if find_windows(&plan.h, &h, ih):
            i = 0
            while i < columns:
                store(to + i, sum_steps(sums + (h.begin * columns + i) * size, columns * size, h.end - h.begin,
                                        grad_output__chw))
                i += lanes
        else:
            memcpy(to, to - columns, <size_t>columns * sizeof(element))
        to += columns
    store_planes(grad_input__chw, plan.grad_input_strides, image, LANES, plan.h.size, plan.w.size, channels)


cdef int64_t across(const AvgPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                    const element* numbers) noexcept nogil:
    """The units [begin, end), groups of channels; the last argument gives the type only."""
    cdef int64_t n, c
    while begin < end:
        n = quotient(begin, plan.groups)
        c = (begin - n * plan.groups) * LANES
        sum_planes(plan, <const element*>data[0] + n * plan.grad_output_strides[0] + c * plan.grad_output_strides[1],
                   <element*>data[2] + n * plan.grad_input_strides[0] + c * plan.grad_input_strides[1], scratch,
                   least(LANES, plan.channels - c))
        begin += 1
    return ALL_GOOD


cdef int64_t across_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL)


cdef int64_t across_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const double*>NULL)


cdef int64_t across_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const half*>NULL)


cdef int64_t across_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return across(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const bfloat*>NULL)


cdef void avg_pool2d_across_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = across_f32
    row[<int>SLOT_F64] = across_f64
    row[<int>SLOT_F16] = across_f16
    row[<int>SLOT_BF16] = across_bf16
