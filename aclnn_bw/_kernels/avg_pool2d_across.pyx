# cython: cdivision=True
"""AvgPool2dBackward, ACROSS and LAST: channels lie side by side in a vector, and positions come one after the other.

The formula, its order and its bytes are those of avg_pool2d.pyx, whose vectors hold positions of one row: few to a row
leave them empty. The terms of a row of windows are summed along w for each column, and these sums along h; of equal
neighbours, the second is a copy. ACROSS transposes small planes for that, and LAST finds channels side by side in
gradInput; where gradOutput has rows, it transposes the windows of a band. `width` channels, LANES or at least as many,
are worked on at a time: their last vector overlaps the one before.

Bounds. Of a position's windows those are summed that exist (`Windows`), and the scratch holds the terms of a row of
windows, the sums of each row of windows, or of those of a band, and, of ACROSS, the positions of a plane and its
windows, of LAST the windows of a band, for `width` channels.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.avg_pool2d cimport LANES, LAST, AvgPool2dPlan, Axis
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


cdef inline int64_t q_of(const Axis* axis, int64_t position) noexcept nogil:
    return axis.first if position == 0 else quotient(position + axis.pad, axis.stride)


cdef inline bint find_windows(const Axis* axis, Windows* some, int64_t position, bint first) noexcept nogil:
    """Of the position after the last that was asked for, or of the first; whether they are others."""
    cdef int64_t begin, end
    cdef bint others
    if first:
        some.q = q_of(axis, position)
        some.phase = position + axis.pad - some.q * axis.stride
    else:
        some.phase += 1
        if some.phase == axis.stride:
            some.phase = 0
            some.q += 1
    begin = most(some.q - axis.terms + (1 if some.phase < axis.long_phases else 2), 0)
    end = least(some.q + 1, axis.out)
    others = first or begin != some.begin or end != some.end
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


cdef inline void store_term(char* to, const element* source, double factor) noexcept nogil:
    cdef vector x = term(load(source, <vector*>NULL), factor, source)
    simd_store(to, &x)


cdef inline void store_sum(char* to, const char* source, int64_t down, int64_t rows,
                           const element* numbers) noexcept nogil:
    cdef vector x = sum_steps(source, down, rows, numbers)
    simd_store(to, &x)


cdef inline void slide(const AvgPool2dPlan* plan, char* to, const element* grad_output, int64_t along, int64_t step,
                       const double* factors, int64_t terms) noexcept nogil:
    """Stride 1, two or three terms: sum_along_w for the channels of a vector, whose terms stay in registers. A window
    that is not there is +0.0, which changes no sum that began with it."""
    cdef int64_t pad = plan.w.pad
    cdef int64_t there = least(plan.w.size, plan.w.out - pad)
    cdef vector a, b, x, sum
    cdef int64_t iw
    a = b = x = zero(<vector*>NULL)
    if terms == 3 and 2 <= pad <= plan.w.out + 1:
        a = term(load(grad_output + (pad - 2) * along, <vector*>NULL), factors[pad - 2], grad_output)
    if 1 <= pad <= plan.w.out:
        b = term(load(grad_output + (pad - 1) * along, <vector*>NULL), factors[pad - 1], grad_output)
    grad_output += pad * along
    for iw in range(plan.w.size):
        x = zero(<vector*>NULL)
        if iw < there:
            x = term(load(grad_output, <vector*>NULL), factors[pad + iw], grad_output)
            grad_output += along
        sum = zero(<vector*>NULL)
        if terms == 3:
            sum = add(sum, a, grad_output)
            a = b
        sum = add(add(sum, b, grad_output), x, grad_output)
        b = x
        simd_store(to, &sum)
        to += step


cdef inline void slide_along_w(const AvgPool2dPlan* plan, char* to, const element* grad_output, int64_t along,
                               int64_t width, const double* factors, int64_t terms) noexcept nogil:
    cdef int64_t size = sum_bytes(grad_output)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t i = 0
    while i < width:
        i = least(i, width - lanes)
        slide(plan, to + i * size, grad_output + i, along, width * size, factors, terms)
        i += lanes


cdef inline void find_terms(const AvgPool2dPlan* plan, char* to, const element* grad_output, int64_t along,
                            int64_t width, const double* factors) noexcept nogil:
    """The terms of a row of windows, which lie `along` apart."""
    cdef int64_t size = sum_bytes(grad_output)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t rest = width - lanes
    cdef int64_t ow, i
    for ow in range(plan.w.out):
        i = 0
        while i <= rest:
            store_term(to + i * size, grad_output + i, factors[ow])
            i += lanes
        if i < width:
            store_term(to + rest * size, grad_output + rest, factors[ow])
        grad_output += along
        to += width * size


cdef inline void sum_along_w(const AvgPool2dPlan* plan, char* to, char* terms, const element* grad_output,
                             int64_t along, int64_t width, const double* factors) noexcept nogil:
    """The sums of a row of windows for each column; windows lie `along` apart."""
    cdef int64_t size = sum_bytes(grad_output)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t rest = width - lanes
    cdef int64_t iw, i
    cdef Windows w
    cdef const char* source
    if plan.w.stride == 1 and plan.w.terms == 3:
        slide_along_w(plan, to, grad_output, along, width, factors, 3)
        return
    if plan.w.stride == 1 and plan.w.terms == 2:
        slide_along_w(plan, to, grad_output, along, width, factors, 2)
        return
    find_terms(plan, terms, grad_output, along, width, factors)
    for iw in range(plan.w.size):
        if find_windows(&plan.w, &w, iw, iw == 0):
            source = terms + w.begin * width * size
            i = 0
            while i <= rest:
                store_sum(to + i * size, source + i * size, width * size, w.end - w.begin, grad_output)
                i += lanes
            if i < width:
                store_sum(to + rest * size, source + rest * size, width * size, w.end - w.begin, grad_output)
        else:
            memcpy(to, to - width * size, <size_t>(width * size))
        to += width * size


cdef inline void store_steps(element* to, const char* sums, int64_t down, int64_t rows, int64_t n) noexcept nogil:
    cdef int64_t lanes = VECTOR_BYTES // sum_bytes(to)
    cdef const element* last = to + (n - lanes)
    while to <= last:
        store(to, sum_steps(sums, down, rows, to))
        to += lanes
        sums += VECTOR_BYTES
    if to < last + lanes:
        n = to - last
        store(to - n, sum_steps(sums - n * sum_bytes(to), down, rows, to))


cdef void store_row(element* to, const char* sums, int64_t down, int64_t rows, int64_t n) noexcept nogil:
    """to[:n] = sums of `rows` rows, `down` bytes apart; at least a vector. A function of its own, whose loop keeps to
    registers: 0.97 of a small plane's time."""
    if rows == 3:
        store_steps(to, sums, down, 3, n)
    else:
        store_steps(to, sums, down, rows, n)


cdef inline void store_sums(element* to, int64_t along, const char* sums, int64_t down, int64_t rows, int64_t columns,
                            int64_t width) noexcept nogil:
    """to[iw*along + i] = the sum of `rows` sums of column iw and channel i, `down` bytes apart."""
    cdef int64_t _
    if along == width:
        store_row(to, sums, down, rows, columns * width)
        return
    for _ in range(columns):
        store_row(to, sums, down, rows, width)
        sums += width * sum_bytes(to)
        to += along


cdef inline vector sum_side(const char* terms, int64_t step, int64_t columns, const element* numbers) noexcept nogil:
    """The sum of one or two terms, `step` bytes apart: sum_steps, whose loop takes 1.1 times as long with AVX-512."""
    cdef vector sum = zero(<vector*>NULL)
    cdef vector x
    simd_load(&x, terms)
    sum = add(sum, x, numbers)
    if columns == 2:
        simd_load(&x, terms + step)
        sum = add(sum, x, numbers)
    return sum


cdef inline void sum_near(element* to, const char* terms, int64_t down, int64_t rows, int64_t columns,
                          int64_t width) noexcept nogil:
    """A position of one or two rows of one or two terms."""
    cdef int64_t size = sum_bytes(to)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t i = 0
    cdef vector sum
    while i < width:
        i = least(i, width - lanes)
        sum = sum_side(terms + i * size, width * size, columns, to)
        if rows == 2:
            sum = add(sum, sum_side(terms + down + i * size, width * size, columns, to), to)
        store(to + i, sum)
        i += lanes


cdef void sum_pairs(const AvgPool2dPlan* plan, element* to, int64_t along, const char* terms, int64_t down,
                    int64_t rows, int64_t width) noexcept nogil:
    """A row of gradInput from the terms of one or two rows of windows, `down` bytes apart, each position of up to two
    columns. No sums along w are stored, which are twice as many bytes as the terms: 0.5 to 0.95 of the time."""
    cdef int64_t size = width * sum_bytes(to)
    cdef int64_t iw, columns
    cdef Windows w
    for iw in range(plan.w.size):
        find_windows(&plan.w, &w, iw, iw == 0)
        columns = w.end - w.begin
        if columns <= 0 or rows <= 0:
            memset(to, 0, <size_t>width * sizeof(element))
        elif rows == 1 and columns == 1:
            sum_near(to, terms + w.begin * size, down, 1, 1, width)
        elif rows == 1:
            sum_near(to, terms + w.begin * size, down, 1, 2, width)
        elif columns == 1:
            sum_near(to, terms + w.begin * size, down, 2, 1, width)
        else:
            sum_near(to, terms + w.begin * size, down, 2, 2, width)
        to += along


cdef inline int64_t first_row(const Axis* h, int64_t ih) noexcept nogil:
    """Of the windows that hold position ih or one behind it."""
    return most(q_of(h, ih) - h.terms + 1, 0)


cdef inline int64_t end_row(const Axis* h, int64_t end) noexcept nogil:
    """Of the windows that hold a position before `end`."""
    return h.out if end == h.size else least(q_of(h, end - 1) + 1, h.out)


cdef inline void sum_rows(const AvgPool2dPlan* plan, const element* grad_output, int64_t grad_output_down,
                          int64_t grad_output_along, element* grad_input, int64_t grad_input_down,
                          int64_t grad_input_along, char* scratch, int64_t width, int64_t ih,
                          int64_t end) noexcept nogil:
    """The rows [ih, end) of gradInput, for `width` channels side by side."""
    cdef double* factors = <double*>(scratch + plan.at_factors)
    cdef char* sums = scratch + plan.at_long
    cdef int64_t columns = plan.w.size * width
    cdef int64_t down = (plan.w.out * width if plan.near else columns) * sum_bytes(grad_output)
    cdef int64_t first = first_row(&plan.h, ih)
    cdef int64_t last = end_row(&plan.h, end)
    cdef int64_t oh, ow
    cdef Windows h
    cdef bint others
    for ow in range(plan.w.out):
        factors[ow] = constant_factor(plan)
    for oh in range(first, last):
        if not plan.constant_divisor:
            find_factors(plan, factors, oh, grad_output)
        if plan.near:
            find_terms(plan, sums + (oh - first) * down, grad_output + oh * grad_output_down, grad_output_along, width,
                       <const double*>factors)
        else:
            sum_along_w(plan, sums + (oh - first) * down, scratch + plan.at_terms, grad_output + oh * grad_output_down,
                        grad_output_along, width, <const double*>factors)
    grad_input += ih * grad_input_down
    others = find_windows(&plan.h, &h, ih, True)
    while ih < end:
        if plan.near:
            sum_pairs(plan, grad_input, grad_input_along, sums + (h.begin - first) * down, down, h.end - h.begin, width)
        elif others or grad_input_along != width:
            store_sums(grad_input, grad_input_along, sums + (h.begin - first) * down, down, h.end - h.begin,
                       plan.w.size, width)
        else:
            memcpy(grad_input, grad_input - grad_input_down, <size_t>columns * sizeof(element))
        grad_input += grad_input_down
        ih += 1
        others = find_windows(&plan.h, &h, ih, False)


cdef void sum_band(const AvgPool2dPlan* plan, const element* grad_output__chw, element* grad_input__chw, char* scratch,
                   int64_t channels, int64_t ih, const void* source_end) noexcept nogil:
    """LAST: a band of rows."""
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef const element* source = grad_output__chw
    cdef int64_t down = plan.grad_output_strides[2]
    cdef int64_t along = plan.grad_output_strides[3]
    cdef int64_t end = least(ih + plan.band, plan.h.size)
    cdef int64_t first = first_row(&plan.h, ih)
    if plan.loads:
        load_planes(packed, channels, source + first * down, plan.grad_output_strides, end_row(&plan.h, end) - first,
                    plan.w.out, channels, source_end)
        along = channels
        down = plan.w.out * along
        # As if the plane began where its row 0 would lie.
        source = <const element*>packed - first * down
    sum_rows(plan, source, down, along, grad_input__chw, plan.grad_input_strides[2], plan.grad_input_strides[3],
             scratch, channels, ih, end)


cdef void sum_planes(const AvgPool2dPlan* plan, const element* grad_output__chw, element* grad_input__chw,
                     char* scratch, int64_t channels, const void* source_end) noexcept nogil:
    """ACROSS: whole planes of some channels, at most LANES."""
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef element* image = <element*>(scratch + plan.at_row)
    if channels < LANES:
        memset(packed, 0, <size_t>(plan.h.out * plan.w.out * LANES) * sizeof(element))
    load_planes(packed, LANES, grad_output__chw, plan.grad_output_strides, plan.h.out, plan.w.out, channels, source_end)
    sum_rows(plan, <const element*>packed, plan.w.out * LANES, LANES, image, plan.w.size * LANES, LANES, scratch, LANES,
             0, plan.h.size)
    store_planes(grad_input__chw, plan.grad_input_strides, image, LANES, plan.h.size, plan.w.size, channels)


cdef int64_t across(const AvgPool2dPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                    const element* numbers) noexcept nogil:
    """The units [unit, end); unit = (n*bands + band)*groups + group. The last argument gives the type only."""
    cdef int64_t n, c, ih, group
    cdef const char* source_end = data[0] + plan.source_bytes
    cdef const element* source
    cdef element* to
    while unit < end:
        ih = quotient(unit, plan.groups)
        group = unit - ih * plan.groups
        c = group * plan.group
        n = ih if plan.bands == 1 else quotient(ih, plan.bands)
        ih = (ih - n * plan.bands) * plan.band
        source = <const element*>data[0] + n * plan.grad_output_strides[0] + c * plan.grad_output_strides[1]
        to = <element*>data[2] + n * plan.grad_input_strides[0] + c * plan.grad_input_strides[1]
        if plan.algorithm == LAST:
            sum_band(plan, source, to, scratch, plan.group if group + 1 < plan.groups else plan.channels - c, ih,
                     source_end)
        else:
            sum_planes(plan, source, to, scratch, least(LANES, plan.channels - c), source_end)
        unit += 1
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
