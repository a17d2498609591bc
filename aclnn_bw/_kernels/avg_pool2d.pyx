"""AvgPool2dBackward: gradInput[h, w] = sum of gradOutput[oh, ow] / divisor(oh, ow) over the windows that hold (h, w).

The formula is that of PyTorch's avg_pool2d_backward (aten/src/ATen/native/cpu/AvgPoolKernel.cpp), gathered instead of
scattered: every element of gradInput has one writer.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64. A term is gradOutput times the
rounded reciprocal of its divisor (two factors, one for each axis, if the border changes it), scaled before it is added
so that no partial sum overflows where the result does not. Terms start from +0.0. A row of windows is summed first,
ascending in ow; then the rows, ascending in oh. 16-bit results are rounded once, at the end. Every path below adds the
same terms in the same order, so bands, tiles, threads, strides and instruction sets do not show in the result.

Bounds. Position i lies in window o exactly if 0 <= i + pad - o*stride < kernel (types of the plan: `Axis`). Rows oh
outside [0, Ho) and columns ow outside [0, Wo) are masked off, or zeroed in the scratch, and never read from gradOutput;
without masks a vector may load the ends of the rows beside instead, where rows lie in gradOutput without gaps
(`from_begin`, `from_end`), and clears them. ih and iw are clipped to the band and tile, which lie inside gradInput;
phase 1 has proved that both views lie inside their storage. A WALK or SPREAD may store beyond the end of a row into
rows that the same range makes later, where gradInput is dense, and never beyond the last row of its range (`limit`).

Why this form. The sums are separable, so a window of kH x kW costs kH + kW adds (STREAMED: kH * kW). Along an axis,
position i + pad = q*stride + r has the windows q-m+1 .. q, and m takes two values only: `terms` for the first phases
r, one less for the others. At stride 1 (WALK) the sums run down a block of columns in registers: 1.8 times (float16)
as fast beyond the cache, 2.3 times within it, as three passes over rows in the scratch. At stride 2 or 3 with at most
two terms (SPREAD) a row is summed, rounded and spread to its positions in one pass (float16 1.9 times as fast);
kernel and stride 2 over dense rows have a still shorter one (DOUBLE). Any other geometry (BANDED) is summed in long
loops over a whole band with zeros between the rows, once for each q, and then spread to the positions.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.avg_pool2d cimport (
    DOUBLE, FILL, LONGEST_LANES, ROUND_F16, ROUND_HF32, ROUND_NONE, SPREAD, STREAMED, WALK, AvgPool2dPlan, Axis,
    window_length,
)
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable
from aclnn_bw._kernels.rows cimport (
    add_row, bfloat, cell, copy, double_row, element, fill_row, half, load_row, narrow_row, real, round_to_half_row,
    round_to_hf32_row, store_row, sum_shifted, zero_row,
)

cdef extern from "avg_pool2d.h" nogil:
    bint MASKED "ACLNN_BW_MASKED"       # lanes that have no window can be masked off
    ctypedef struct Walk "aclnn_bw_walk":
        const void* source "from"
        int64_t from_row
        int64_t from_column
        int64_t from_down
        int64_t rows_out
        int64_t columns_out
        double factor
        const void* row_factors
        const void* column_factors
        void* to
        int64_t to_down
        const char* limit
        int64_t q
        int64_t rows
        int64_t stride
        int64_t pad
        int64_t size
        int64_t long_phases
        int64_t terms
        int64_t groups
        int64_t width
        int64_t w_stride
        int64_t[3] first
        int64_t[3] count
        int64_t ahead
        const char* from_begin
        const char* from_end
    void walk_f32 "aclnn_bw_walk_f32" (const Walk*) noexcept
    void walk_f64 "aclnn_bw_walk_f64" (const Walk*) noexcept
    void walk_f16 "aclnn_bw_walk_f16" (const Walk*) noexcept
    void walk_bf16 "aclnn_bw_walk_bf16" (const Walk*) noexcept
    void spread_f32 "aclnn_bw_spread_walk_f32" (const Walk*) noexcept
    void spread_f64 "aclnn_bw_spread_walk_f64" (const Walk*) noexcept
    void spread_f16 "aclnn_bw_spread_walk_f16" (const Walk*) noexcept
    void spread_bf16 "aclnn_bw_spread_walk_bf16" (const Walk*) noexcept

    void fill_f32 "aclnn_bw_fill_planes_f32" (
        float* to, const float* source, int64_t step, int64_t planes, int64_t size, double factor) noexcept
    void fill_f64 "aclnn_bw_fill_planes_f64" (
        double* to, const double* source, int64_t step, int64_t planes, int64_t size, double factor) noexcept
    void fill_f16 "aclnn_bw_fill_planes_f16" (
        half* to, const half* source, int64_t step, int64_t planes, int64_t size, double factor) noexcept
    void fill_bf16 "aclnn_bw_fill_planes_bf16" (
        bfloat* to, const bfloat* source, int64_t step, int64_t planes, int64_t size, double factor) noexcept

cdef extern from "transpose.h" nogil:
    void transpose "aclnn_bw_transpose" (void* to, int64_t to_pitch, const void* source, int64_t source_pitch,
                                         int64_t rows, int64_t columns, int64_t cell) noexcept

cdef enum:
    LONG_LONG       # long row sums of long column sums: indices of plan.at_sums
    LONG_SHORT
    SHORT_LONG
    SHORT_SHORT


cdef double constant_factor(const AvgPool2dPlan* plan) noexcept nogil:
    """1 / divisor of window (0, 0), which is every window's if the plan says so."""
    return 1.0 / (<double>plan.divisor[0] * <double>plan.divisor[1])


cdef void column_factors(const AvgPool2dPlan* plan, real* factors, int64_t begin, int64_t end) noexcept nogil:
    """factors[i] = 1 / (divisor's factor of column begin + i)."""
    cdef int64_t ow
    for ow in range(begin, end):
        factors[ow - begin] = <real>(1.0 / <double>window_length(&plan.w, ow, plan.count_include_pad))


cdef void spread_factors(const AvgPool2dPlan* plan, real* factors, int64_t ow) noexcept nogil:
    """factors[i] = 1 / (divisor's factor of column ow + i) for a whole pitch; zeros where there is no window."""
    cdef int64_t begin = most(ow, 0)
    cdef int64_t end = most(least(ow + plan.pitch, plan.w.out), begin)
    zero_row(factors, begin - ow)
    column_factors(plan, factors + (begin - ow), begin, end)
    zero_row(factors + (end - ow), ow + plan.pitch - end)


cdef inline void load_terms(const AvgPool2dPlan* plan, real* to, const element* source, int64_t stride, int64_t n,
                            real factor, const real* factors) noexcept nogil:
    """to = (source, rounded as the plan says) * factor [* factors] + 0.0; the zero makes -0.0 a +0.0 once and for
    all."""
    cdef int64_t i
    cdef const real* loaded = to
    if (real is float and element is float) or (real is double and element is double):
        if stride == 1 and plan.rounding == ROUND_NONE:
            loaded = source
    if loaded == to:
        load_row(to, source, stride, n)
        if real is float:
            if plan.rounding == ROUND_F16:
                round_to_half_row(to, n)
            elif plan.rounding == ROUND_HF32:
                round_to_hf32_row(to, n)
    if factors == NULL:
        for i in range(n):
            to[i] = loaded[i] * factor + <real>0.0
    else:
        for i in range(n):
            to[i] = loaded[i] * (factor * factors[i]) + <real>0.0


cdef void spread_columns(cell* to, int64_t n, const cell* long_sums, const cell* short_sums, int64_t stride,
                         int64_t long_phases, int64_t phase) noexcept nogil:
    """to[j*stride + r - phase] = (long_sums if r < long_phases else short_sums)[j]; no short_sums: zeros."""
    cdef cell zero = 0
    cdef int64_t at = 0
    cdef int64_t j = 0
    cdef int64_t r, full
    if stride == 1:
        memcpy(to, long_sums, <size_t>n * sizeof(cell))
        return
    if phase > 0:
        for r in range(phase, stride):
            if at < n:
                to[at] = long_sums[0] if r < long_phases else (short_sums[0] if short_sums != NULL else zero)
                at += 1
        j = 1
    full = (n - at) // stride
    to += at
    n -= at
    long_sums += j
    if short_sums != NULL:
        short_sums += j
    if stride == 2 and long_phases == 2:
        for j in range(full):
            to[2 * j] = long_sums[j]
            to[2 * j + 1] = long_sums[j]
    elif stride == 2 and short_sums != NULL:
        for j in range(full):
            to[2 * j] = long_sums[j]
            to[2 * j + 1] = short_sums[j]
    elif stride == 3 and long_phases == 3:
        for j in range(full):
            to[3 * j] = long_sums[j]
            to[3 * j + 1] = long_sums[j]
            to[3 * j + 2] = long_sums[j]
    else:
        for j in range(full):
            for r in range(long_phases):
                to[j * stride + r] = long_sums[j]
            for r in range(long_phases, stride):
                to[j * stride + r] = short_sums[j] if short_sums != NULL else zero
    for r in range(n - full * stride):
        to[full * stride + r] = long_sums[full] if r < long_phases else (
            short_sums[full] if short_sums != NULL else zero)


cdef const element* finish_sums(const AvgPool2dPlan* plan, element* cells, real* sums, int64_t n) noexcept nogil:
    """Round the sums to what is stored; returns where they are, which is in place if nothing is to be done."""
    if (real is float and element is float) or (real is double and element is double):
        if not plan.round_result:
            return sums
    narrow_row(cells, <const real*>sums, n)
    if element is float:
        round_to_half_row(cells, n)
    return cells


cdef void load_rows(const AvgPool2dPlan* plan, real* terms, const element* grad_output__hw, int64_t oh, int64_t rows,
                    int64_t ow, int64_t pitch, real factor, const real* factors) noexcept nogil:
    """Terms of the windows [oh, oh + rows) x [ow, ow + pitch), dense; zeros where there is no window."""
    cdef int64_t begin = most(ow, 0)
    cdef int64_t end = least(ow + pitch, plan.w.out)
    cdef int64_t before = begin - ow
    cdef int64_t n = most(end - begin, 0)
    cdef int64_t first = least(most(-oh, 0), rows)
    cdef int64_t last = most(least(plan.h.out - oh, rows), first)
    cdef int64_t down = plan.grad_output_strides[2]
    cdef int64_t along = plan.grad_output_strides[3]
    cdef real row_factor = factor
    cdef int64_t r
    zero_row(terms, first * pitch)
    zero_row(terms + last * pitch, (rows - last) * pitch)
    if factors == NULL and n == pitch and along == 1 and down == pitch:
        load_terms(plan, terms + first * pitch, grad_output__hw + (oh + first) * down + begin, 1,
                   (last - first) * pitch, factor, NULL)
        return
    for r in range(first, last):
        if factors != NULL:
            row_factor = <real>(1.0 / <double>window_length(&plan.h, oh + r, plan.count_include_pad))
        zero_row(terms + r * pitch, before)
        load_terms(plan, terms + r * pitch + before, grad_output__hw + (oh + r) * down + begin * along, along, n,
                   row_factor, factors)
        zero_row(terms + r * pitch + before + n, pitch - before - n)


cdef void fill_band(const AvgPool2dPlan* plan, const element* grad_output__hw, element* grad_input__hw, int64_t ih,
                    int64_t rows, real factor) noexcept nogil:
    """One window covers the plane: its term everywhere."""
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t along = plan.grad_input_strides[3]
    cdef int64_t columns = plan.w.size
    cdef real[1] term
    cdef element[1] stored
    cdef int64_t r
    if ((real is float and element is float) or (real is double and element is double)) and plan.rounding == ROUND_NONE:
        stored[0] = grad_output__hw[0] * factor + <real>0.0
        if along == 1 and down == columns:
            # Planes are often tiny here: nothing but the stores.
            grad_input__hw += ih * down
            for r in range(rows * columns):
                grad_input__hw[r] = stored[0]
            return
    else:
        load_terms(plan, <real*>term, grad_output__hw, 1, 1, factor, NULL)
        stored[0] = finish_sums(plan, <element*>stored, <real*>term, 1)[0]
    if along == 1 and down == columns:
        fill_row(grad_input__hw + ih * down, 1, stored[0], rows * columns)
        return
    for r in range(ih, ih + rows):
        fill_row(grad_input__hw + r * down, along, stored[0], columns)


cdef void fill_planes(const AvgPool2dPlan* plan, const element* grad_output__nchw, element* grad_input__nchw,
                      int64_t begin, int64_t end) noexcept nogil:
    """The planes [begin, end), which lie behind each other in gradInput and at equal distances in gradOutput."""
    cdef int64_t step = plan.grad_output_strides[1]
    cdef int64_t size = plan.h.size * plan.w.size
    cdef double factor = constant_factor(plan)
    grad_output__nchw += begin * step
    grad_input__nchw += begin * size
    if element is float:
        fill_f32(grad_input__nchw, grad_output__nchw, step, end - begin, size, factor)
    elif element is double:
        fill_f64(grad_input__nchw, grad_output__nchw, step, end - begin, size, factor)
    elif element is half:
        fill_f16(grad_input__nchw, grad_output__nchw, step, end - begin, size, factor)
    else:
        fill_bf16(grad_input__nchw, grad_output__nchw, step, end - begin, size, factor)


cdef void double_band(const AvgPool2dPlan* plan, const element* grad_output__hw, element* grad_input__hw, int64_t q,
                      int64_t rows, int64_t p, int64_t columns, real factor) noexcept nogil:
    """Kernel and stride 2 without padding: from gradOutput to two rows of gradInput in one pass."""
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t width = least(2 * columns, plan.w.size - 2 * p)
    cdef int64_t n = least(columns, plan.w.out - p)
    cdef int64_t oh, r
    cdef element* to
    for oh in range(q, q + rows):
        to = grad_input__hw + 2 * oh * down + 2 * p
        if oh < plan.h.out:
            double_row(to, to + down, grad_output__hw + oh * plan.grad_output_strides[2] + p, factor, n)
        # An odd last column, and an odd last row, lie in no window.
        for r in range(least(2, plan.h.size - 2 * oh)):
            if oh >= plan.h.out:
                memset(to + r * down, 0, <size_t>width * sizeof(element))
            elif 2 * n < width:
                memset(to + r * down + 2 * n, 0, sizeof(element))


cdef void sum_columns(const AvgPool2dPlan* plan, char* scratch, real** long_columns, real** short_columns,
                      int64_t n) noexcept nogil:
    """Sums along w of both kinds from the terms in the scratch; no short ones (NULL) where no phase has them."""
    cdef int64_t m = plan.w.terms
    cdef real* terms = <real*>(scratch + plan.at_terms)
    long_columns[0] = terms
    short_columns[0] = NULL
    if m > 1:
        long_columns[0] = <real*>(scratch + plan.at_long)
        sum_shifted(long_columns[0], <const real*>terms, n, 1, m)
        if plan.w.long_phases < plan.w.stride:
            short_columns[0] = terms + 1
            if m > 2:
                short_columns[0] = <real*>(scratch + plan.at_short)
                sum_shifted(short_columns[0], <const real*>(terms + 1), n, 1, m - 1)


cdef inline real* sum_rows(real* to, real* columns, int64_t n, int64_t pitch, int64_t terms) noexcept nogil:
    """Sums along h of one kind of column sums: in place for one term, NULL for none."""
    if columns == NULL or terms == 0:
        return NULL
    if terms == 1:
        return columns
    sum_shifted(to, <const real*>columns, n, pitch, terms)
    return to


cdef inline void accumulate(real* to, const real* columns, int64_t n, bint first) noexcept nogil:
    if columns != NULL:
        if first:
            memcpy(to, columns, <size_t>n * sizeof(real))
        else:
            add_row(to, columns, n)


cdef void banded_unit(const AvgPool2dPlan* plan, const element* grad_output__hw, element* grad_input__hw, char* scratch,
                      int64_t q, int64_t rows, int64_t p, int64_t columns, real factor,
                      const real* factors) noexcept nogil:
    """The positions of `rows` values of q along h, from the q-th, and of `columns` values along w, from the p-th."""
    cdef int64_t mh = plan.h.terms
    cdef int64_t pitch = columns + plan.w.terms - 1
    cdef int64_t loaded = rows + mh - 1
    cdef int64_t n = rows * pitch - (pitch - columns)
    cdef int64_t oh = plan.h.first + q - (mh - 1)
    cdef int64_t ow = plan.w.first + p - (plan.w.terms - 1)
    cdef real* terms = <real*>(scratch + plan.at_terms)
    cdef real* long_columns = NULL
    cdef real* short_columns = NULL
    cdef (real*)[4] sums
    cdef int64_t m, kind
    for kind in range(4):
        sums[kind] = <real*>(scratch + plan.at_sums[kind])
    if plan.algorithm == STREAMED:
        # One row of windows at a time, added to sums of `columns` values; `rows` is 1.
        for m in range(mh):
            load_rows(plan, terms, grad_output__hw, oh + m, 1, ow, pitch, factor, factors)
            sum_columns(plan, scratch, &long_columns, &short_columns, columns)
            accumulate(sums[LONG_LONG], <const real*>long_columns, columns, m == 0)
            accumulate(sums[LONG_SHORT], <const real*>short_columns, columns, m == 0)
            if m > 0 and plan.h.long_phases < plan.h.stride:
                accumulate(sums[SHORT_LONG], <const real*>long_columns, columns, m == 1)
                accumulate(sums[SHORT_SHORT], <const real*>short_columns, columns, m == 1)
        if short_columns == NULL:
            sums[LONG_SHORT] = sums[SHORT_SHORT] = NULL
        if mh == 1:
            sums[SHORT_LONG] = sums[SHORT_SHORT] = NULL
        spread_rows(plan, grad_input__hw, scratch, sums, q, 1, p, columns, columns)
        return
    load_rows(plan, terms, grad_output__hw, oh, loaded, ow, pitch, factor, factors)
    sum_columns(plan, scratch, &long_columns, &short_columns, loaded * pitch - (pitch - columns))
    if (real is float and element is float) or (real is double and element is double):
        if plan.grad_input_strides[3] == 1 and not plan.round_result:
            if plan.w.stride == 1:
                write_rows(plan, grad_input__hw, <const real*>long_columns, q, rows, p, columns, pitch)
                return
    sums[LONG_LONG] = sum_rows(sums[LONG_LONG], long_columns, n, pitch, mh)
    sums[LONG_SHORT] = sum_rows(sums[LONG_SHORT], short_columns, n, pitch, mh)
    if plan.h.long_phases < plan.h.stride:
        sums[SHORT_LONG] = sum_rows(sums[SHORT_LONG], long_columns + pitch, n, pitch, mh - 1)
        sums[SHORT_SHORT] = sum_rows(
            sums[SHORT_SHORT], short_columns + pitch if short_columns != NULL else NULL, n, pitch, mh - 1)
    spread_rows(plan, grad_input__hw, scratch, sums, q, rows, p, columns, pitch)


cdef void write_rows(const AvgPool2dPlan* plan, real* grad_input__hw, const real* long_columns, int64_t q, int64_t rows,
                     int64_t p, int64_t columns, int64_t pitch) noexcept nogil:
    """One column phase and nothing to convert: sum along h straight into gradInput."""
    cdef const Axis* h = &plan.h
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t iw = plan.w.first + p - plan.w.pad
    cdef int64_t j, r, ih
    cdef real* to
    cdef const real* made
    for j in range(rows):
        made = NULL
        for r in range(h.stride):
            if r == h.long_phases:
                made = NULL
            ih = (h.first + q + j) * h.stride + r - h.pad
            if not 0 <= ih < h.size:
                continue
            to = grad_input__hw + ih * down + iw
            if made != NULL:
                memcpy(to, made, <size_t>columns * sizeof(real))
            elif r < h.long_phases:
                sum_shifted(to, long_columns + j * pitch, columns, pitch, h.terms)
            elif h.terms > 1:
                sum_shifted(to, long_columns + (j + 1) * pitch, columns, pitch, h.terms - 1)
            else:
                memset(to, 0, <size_t>columns * sizeof(real))
            made = to


cdef void scatter_windows(const AvgPool2dPlan* plan, element* grad_input__hw, const element* cells, int64_t q,
                          int64_t rows, int64_t p, int64_t columns, int64_t pitch) noexcept nogil:
    """Windows with gaps between them: zeros first, then each window's value where it lies; 2.5 times as fast as rows
    made of values and zeros where planes are small."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t along = plan.grad_input_strides[3]
    cdef int64_t top = (h.first + q) * h.stride - h.pad
    cdef int64_t left = (w.first + p) * w.stride - w.pad
    cdef int64_t ih_begin = most(top, 0)
    cdef int64_t ih_end = least(top + rows * h.stride, h.size)
    cdef int64_t iw_begin = most(left, 0)
    cdef int64_t iw_end = least(left + columns * w.stride, w.size)
    cdef int64_t ih, iw, i, j, end
    cdef element value
    cdef element* to = grad_input__hw + ih_begin * down + iw_begin * along
    memset(&value, 0, sizeof(element))
    if along == 1 and down == iw_end - iw_begin:
        memset(to, 0, <size_t>((ih_end - ih_begin) * down) * sizeof(element))
    else:
        for ih in range(ih_begin, ih_end):
            fill_row(grad_input__hw + ih * down + iw_begin * along, along, value, iw_end - iw_begin)
    for j in range(rows):
        end = least(top + j * h.stride + h.long_phases, ih_end)
        for ih in range(most(top + j * h.stride, ih_begin), end):
            to = grad_input__hw + ih * down
            for i in range(columns):
                value = cells[j * pitch + i]
                for iw in range(most(left + i * w.stride, iw_begin),
                                least(left + i * w.stride + w.long_phases, iw_end)):
                    to[iw * along] = value


cdef void spread_rows(const AvgPool2dPlan* plan, element* grad_input__hw, char* scratch, real** sums, int64_t q,
                      int64_t rows, int64_t p, int64_t columns, int64_t pitch) noexcept nogil:
    """Write the rows and columns that `sums` serve; a row is made once and copied to the others of its kind."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t along = plan.grad_input_strides[3]
    cdef int64_t start = (w.first + p) * w.stride - w.pad       # of the first q's phases; may lie in the padding
    cdef int64_t iw = most(start, 0)
    cdef int64_t width = least(start + columns * w.stride, w.size) - iw
    cdef (const element*)[4] cells
    cdef const element* long_cells
    cdef const element* short_cells
    cdef const element* made
    cdef element* to
    cdef element* row = <element*>(scratch + plan.at_row)
    cdef int64_t j, r, ih, kind
    for kind in range(4):
        cells[kind] = NULL
        if sums[kind] != NULL and (kind < SHORT_LONG or h.long_phases < h.stride):
            cells[kind] = finish_sums(plan, <element*>(scratch + plan.at_cells[kind]), sums[kind],
                                      rows * pitch - (pitch - columns))
    if h.terms == 1 and w.terms == 1 and w.long_phases < w.stride:
        scatter_windows(plan, grad_input__hw, cells[LONG_LONG], q, rows, p, columns, pitch)
        return
    for j in range(rows):
        made = NULL
        for r in range(h.stride):
            if r == h.long_phases:
                made = NULL
            ih = (h.first + q + j) * h.stride + r - h.pad
            if not 0 <= ih < h.size:
                continue
            to = grad_input__hw + ih * down + iw * along
            if made == NULL:
                kind = LONG_LONG if r < h.long_phases else SHORT_LONG
                if along == 1:
                    row = to
                if cells[kind] == NULL:
                    memset(row, 0, <size_t>width * sizeof(element))
                else:
                    long_cells = cells[kind] + j * pitch
                    short_cells = cells[kind + 1] + j * pitch if cells[kind + 1] != NULL else NULL
                    if element is half or element is bfloat:
                        spread_columns(<uint16_t*>row, width, <const uint16_t*>long_cells,
                                       <const uint16_t*>short_cells, w.stride, w.long_phases, iw - start)
                    else:
                        spread_columns(row, width, long_cells, short_cells, w.stride, w.long_phases, iw - start)
                made = row
            if to != made:
                store_row(to, along, made, width)


cdef void pack_row(const AvgPool2dPlan* plan, element* to, const element* source, int64_t n) noexcept nogil:
    """to[:n] = source[: n*stride : stride], rounded as the plan says."""
    cdef int64_t along = plan.grad_output_strides[3]
    cdef int64_t i
    if along == 1:
        copy(to, source, <size_t>n * sizeof(element))
    elif element is half or element is bfloat:
        for i in range(n):
            (<uint16_t*>to)[i] = (<const uint16_t*>source)[i * along]
    else:
        for i in range(n):
            to[i] = source[i * along]
    if element is float:
        if plan.rounding == ROUND_F16:
            round_to_half_row(to, n)
        elif plan.rounding == ROUND_HF32:
            round_to_hf32_row(to, n)


cdef void pack_rows(const AvgPool2dPlan* plan, char* packed, const element* grad_output__chw, int64_t channels,
                    int64_t oh, int64_t rows, int64_t ow) noexcept nogil:
    """Copy the windows [oh, oh + rows) x [ow, ow + pitch) of some planes. What lies beside them is left alone, and
    zeros; a walk does not look at rows that lie outside."""
    cdef int64_t along = plan.grad_output_strides[3]
    cdef int64_t begin = most(ow, 0)
    cdef int64_t end = least(ow + plan.pitch, plan.w.out)
    cdef int64_t before = begin - ow
    cdef int64_t n = most(end - begin, 0)
    cdef int64_t step = plan.packed_plane // <int64_t>sizeof(element)
    cdef int64_t c, r
    cdef element* to
    cdef const element* source
    for r in range(most(oh, 0) - oh, least(oh + rows, plan.h.out) - oh):
        to = <element*>packed + r * plan.pitch
        source = grad_output__chw + (oh + r) * plan.grad_output_strides[2] + begin * along
        if channels > 1 and plan.rounding == ROUND_NONE:
            # A cache line is read once.
            transpose(to + before, step, source, along, n, channels, sizeof(element))
        else:
            for c in range(channels):
                pack_row(plan, to + c * step + before, source + c * plan.grad_output_strides[1], n)


cdef void begin_walk(const AvgPool2dPlan* plan, Walk* walk) noexcept nogil:
    """What all units have in common."""
    memset(walk, 0, sizeof(Walk))
    walk.rows_out = plan.h.out
    walk.columns_out = plan.w.out
    walk.factor = constant_factor(plan)
    walk.from_down = plan.grad_output_strides[2]
    walk.to_down = plan.grad_input_strides[2]
    walk.stride = plan.h.stride
    walk.pad = plan.h.pad
    walk.size = plan.h.size
    walk.long_phases = plan.h.long_phases
    walk.terms = plan.h.terms
    walk.w_stride = plan.w.stride


cdef inline bint is_packed(const AvgPool2dPlan* plan) noexcept nogil:
    """Whether a walk reads copies of the rows of windows."""
    return plan.grad_output_strides[3] != 1 or plan.rounding != ROUND_NONE


cdef inline bint is_dense(const AvgPool2dPlan* plan, const int64_t* strides, int64_t rows,
                          int64_t columns) noexcept nogil:
    """Planes follow each other without gaps, and so do the units."""
    return (plan.group == 1 and plan.tiles == 1 and strides[3] == 1 and strides[2] == columns
            and strides[1] == rows * columns and strides[0] == plan.channels * strides[1])


cdef inline int64_t row_after(const AvgPool2dPlan* plan, int64_t q) noexcept nogil:
    """The first row of gradInput behind the values of q along h that come before this one."""
    return least(most((plan.h.first + q) * plan.h.stride - plan.h.pad, 0), plan.h.size)


cdef void walk_units(const AvgPool2dPlan* plan, Walk* walk, const element* grad_output__chw, element* grad_input__chw,
                     char* scratch, int64_t channels, int64_t q, int64_t rows, int64_t p, int64_t columns,
                     const char* limit, real factor, const real* factors) noexcept nogil:
    """A band of some planes, WALK or SPREAD: `columns` groups of positions along w from the p-th."""
    cdef int64_t oh = plan.h.first + q - (plan.h.terms - 1)
    cdef int64_t loaded = rows + plan.h.terms - 1
    cdef int64_t along = plan.grad_input_strides[3]
    cdef int64_t begin = row_after(plan, q)
    cdef int64_t end = row_after(plan, q + rows)
    cdef bint packs = is_packed(plan)
    cdef bint stores = along == 1 and not plan.round_result
    cdef element* row = <element*>(scratch + plan.at_row)
    cdef real* row_factors = <real*>(scratch + plan.at_row_factors)
    cdef int64_t c, i
    walk.q = plan.h.first + q
    walk.rows = rows
    walk.groups = columns
    walk.width = least(columns * plan.w.stride, plan.w.size - p * plan.w.stride)
    for i in range(plan.w.stride):
        walk.first[i] = plan.column_first[i] + p
        walk.count[i] = plan.column_terms[i]
    walk.limit = limit
    if packs:
        pack_rows(plan, scratch + plan.at_terms, grad_output__chw, channels, oh, loaded, walk.first[0])
        walk.from_row = oh
        walk.from_column = walk.first[0]
        walk.from_down = plan.pitch
    else:
        walk.ahead = loaded * walk.from_down * <int64_t>sizeof(element)
    if factors != NULL:
        walk.column_factors = factors
        walk.row_factors = row_factors
        for i in range(loaded):
            row_factors[i] = 0
            if 0 <= oh + i < plan.h.out:
                row_factors[i] = <real>(1.0 / <double>window_length(&plan.h, oh + i, plan.count_include_pad))
    if not stores:
        walk.to_down = walk.width
        walk.limit = <const char*>(row + (end - begin) * walk.width + LONGEST_LANES * plan.w.stride)
    for c in range(channels):
        walk.source = grad_output__chw + c * plan.grad_output_strides[1]
        if packs:
            walk.source = scratch + plan.at_terms + c * plan.packed_plane
        if not MASKED and packs:
            walk.from_begin = <const char*>walk.source
            walk.from_end = walk.from_begin + plan.packed_plane
        elif not MASKED and not is_dense(plan, plan.grad_output_strides, plan.h.out, plan.w.out):
            # Where there are gaps between the rows, nothing but the windows is read.
            walk.from_begin = walk.from_end = NULL
            if plan.grad_output_strides[2] == plan.w.out:
                walk.from_begin = <const char*>walk.source
                walk.from_end = <const char*>(grad_output__chw + c * plan.grad_output_strides[1]
                                              + plan.h.out * plan.w.out)
        walk.to = grad_input__chw + c * plan.grad_input_strides[1] + p * plan.w.stride
        if not stores:
            walk.to = row - begin * walk.width
        if element is float:
            if plan.algorithm == WALK:
                walk_f32(walk)
            else:
                spread_f32(walk)
        elif element is double:
            if plan.algorithm == WALK:
                walk_f64(walk)
            else:
                spread_f64(walk)
        elif element is half:
            if plan.algorithm == WALK:
                walk_f16(walk)
            else:
                spread_f16(walk)
        else:
            if plan.algorithm == WALK:
                walk_bf16(walk)
            else:
                spread_bf16(walk)
        if not stores:
            if element is float:
                if plan.round_result:
                    round_to_half_row(row, (end - begin) * walk.width)
            for i in range(begin, end):
                store_row(grad_input__chw + c * plan.grad_input_strides[1] + i * plan.grad_input_strides[2]
                          + p * plan.w.stride * along, along, row + (i - begin) * walk.width, walk.width)


cdef int64_t backward(const AvgPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* grad_output__nchw = <const element*>data[0]
    cdef element* grad_input__nchw = <element*>data[2]
    cdef const element* grad_output__hw
    cdef element* grad_input__hw
    cdef real factor = <real>constant_factor(plan)
    cdef real* factors = NULL
    cdef int64_t n, c, q, rows, p, columns
    cdef int64_t height = plan.h.size if plan.algorithm == FILL else plan.h.count
    cdef int64_t tile = -1
    cdef int64_t channels
    cdef bint walks = plan.algorithm == WALK or plan.algorithm == SPREAD
    cdef Walk walk
    cdef const char* limit = NULL
    if not plan.constant_divisor:
        factors = <real*>(scratch + plan.at_factors)
    if walks:
        begin_walk(plan, &walk)
        if not MASKED:
            # All planes up to that of the last unit, if there are no gaps between them.
            walk.from_begin = data[0]
            walk.from_end = <const char*>(grad_output__nchw + (quotient(end - 1, plan.bands) + 1)
                                          * plan.grad_output_strides[1])
        if is_dense(plan, plan.grad_input_strides, plan.h.size, plan.w.size):
            # The end of the last unit: all before it is made here, row after row.
            c = quotient(end - 1, plan.bands)
            limit = <const char*>(grad_input__nchw + c * plan.grad_input_strides[1] + plan.w.size * row_after(
                plan, least((end - c * plan.bands) * plan.band, plan.h.count)))
    if (plan.algorithm == FILL and plan.bands == 1 and plan.rounding == ROUND_NONE
            and is_dense(plan, plan.grad_input_strides, plan.h.size, plan.w.size)
            and plan.grad_output_strides[0] == plan.channels * plan.grad_output_strides[1]):
        fill_planes(plan, grad_output__nchw, grad_input__nchw, begin, end)
        return ALL_GOOD
    # Unit = ((n*groups + group)*bands + band)*tiles + tile: taken apart once, then counted on.
    p = q = c = 0
    if begin > 0:
        p = begin % plan.tiles * plan.tile
        q = begin // plan.tiles % plan.bands * plan.band
        c = begin // plan.tiles // plan.bands
    n = quotient(c, plan.groups)
    c = (c - n * plan.groups) * plan.group
    grad_output__hw = grad_output__nchw + n * plan.grad_output_strides[0] + c * plan.grad_output_strides[1]
    grad_input__hw = grad_input__nchw + n * plan.grad_input_strides[0] + c * plan.grad_input_strides[1]
    while begin < end:
        begin += 1
        rows = least(plan.band, height - q)
        columns = least(plan.tile, plan.across - p)
        channels = least(plan.group, plan.channels - c)
        if p != tile:
            tile = p
            if walks and is_packed(plan):
                memset(scratch + plan.at_terms, 0, <size_t>(plan.group * plan.packed_plane))
            if factors == NULL:
                pass
            elif walks:
                spread_factors(plan, factors, plan.column_first[0] + p)
            else:
                column_factors(plan, factors, most(plan.w.first + p - (plan.w.terms - 1), 0),
                               least(plan.w.first + p + columns, plan.w.out))
        if plan.algorithm == FILL:
            fill_band(plan, grad_output__hw, grad_input__hw, q, rows, factor)
        elif plan.algorithm == DOUBLE:
            double_band(plan, grad_output__hw, grad_input__hw, q, rows, p, columns, factor)
        elif walks:
            walk_units(plan, &walk, grad_output__hw, grad_input__hw, scratch, channels, q, rows, p, columns, limit,
                       factor, <const real*>factors)
        else:
            banded_unit(plan, grad_output__hw, grad_input__hw, scratch, q, rows, p, columns, factor,
                        <const real*>factors)
        p += plan.tile
        if p >= plan.across:
            p = 0
            q += plan.band
            if q >= height:
                q = 0
                c += channels
                grad_output__hw += channels * plan.grad_output_strides[1]
                grad_input__hw += channels * plan.grad_input_strides[1]
                if c == plan.channels:
                    c = 0
                    grad_output__hw += plan.grad_output_strides[0] - plan.channels * plan.grad_output_strides[1]
                    grad_input__hw += plan.grad_input_strides[0] - plan.channels * plan.grad_input_strides[1]
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void avg_pool2d_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table."""
    table.avg_pool2d_backward[<int>SLOT_F32] = backward_f32
    table.avg_pool2d_backward[<int>SLOT_F64] = backward_f64
    table.avg_pool2d_backward[<int>SLOT_F16] = backward_f16
    table.avg_pool2d_backward[<int>SLOT_BF16] = backward_bf16
