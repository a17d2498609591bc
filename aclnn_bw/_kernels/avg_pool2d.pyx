"""AvgPool2dBackward: gradInput[h, w] = sum of gradOutput[oh, ow] / divisor(oh, ow) over the windows that hold (h, w).

The formula is that of PyTorch's avg_pool2d_backward (aten/src/ATen/native/cpu/AvgPoolKernel.cpp), gathered instead of
scattered: every element of gradInput has one writer.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64. A term is gradOutput times the
rounded reciprocal of its divisor (two factors, one for each axis, if the border changes it), scaled before it is added
so that no partial sum overflows where the result does not. Terms start from +0.0. A row of windows is summed first,
ascending in ow; then the rows, ascending in oh. 16-bit results are rounded once, at the end. Every path below adds the
same terms in the same order, so bands, tiles, threads, strides and instruction sets do not show in the result.

Bounds. Position i lies in window o exactly if 0 <= i + pad - o*stride < kernel (types of the plan: `Axis`). Of
gradOutput the windows are read that exist, rows [0, Ho) and columns [0, Wo) clipped to what a tile needs (`find_tile`),
and no other; ih and iw are clipped to the band and tile, which lie inside gradInput; phase 1 has proved that both views
lie inside their storage. Rows in the scratch have space for what vectors read or store in excess. Only WALK and FILL
store beyond the end of a row or plane: into what the same range makes later, where gradInput is dense, and never beyond
its end, or that of the strip in the scratch.

| path | when | why |
|---|---|---|
| FILL | one window covers the plane | its term everywhere |
| DOUBLE | kernel and stride 2, dense rows | each term four times in one pass |
| WINDOWS | few windows that do not meet | zeros, and each filled: 0.4 to 1.2 of BANDED's time |
| ACROSS (avg_pool2d_across.pyx) | small planes that fill 12 of 16 lanes | lanes hold channels: 1 to 20 times as fast |
| LAST (avg_pool2d_across.pyx) | channels side by side on both sides | nothing is transposed: 1.1 to 13 times as fast |
| BANDED | anything else | a window of kH x kW costs kH + kW adds |
| . walk | stride 1, 2x2, 3x3 and 5x5 | sums run down a block of columns in registers |
| . . in place | loads of some lanes, one divisor | no rows of terms |
| . pairs | stride 2 or 3, at most two terms an axis | sums stay in registers |
| . rows | any geometry | rows of sums along w, added up along h and spread to what they serve |
| STREAMED | kernels too tall for the scratch | rows of windows are added one by one |

Beyond the caches rows are made in strips that pass them (avg_pool2d_strips.pxd).

docs/design/avg_pool2d.md explains them. `python -m benchmarks --operator avg_pool2d_backward` measures.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memmove, memset

from aclnn_bw._core.arithmetic cimport least, most, quotient, round_up
from aclnn_bw._core.avg_pool2d cimport (
    BANDED, DOUBLE, FEW_APART, FILL, MOST_PHASES, ROUND_NONE, STREAMED, WINDOWS, AvgPool2dPlan, Axis,
)
from aclnn_bw._core.types cimport ALIGNMENT, ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.avg_pool2d_pairs cimport Pairs, pair_rows, triple_rows
from aclnn_bw._kernels.avg_pool2d_strips cimport first_row, is_dense, open_strip, unit_end
from aclnn_bw._kernels.avg_pool2d_sums cimport add_sums, pair_row, sum_across, sum_row
from aclnn_bw._kernels.avg_pool2d_terms cimport (
    constant_factor, double_row, fill_window, find_factors, scale_rows, share,
)
from aclnn_bw._kernels.avg_pool2d_tile cimport (
    AHEAD, Tile, count_windows, end_column, find_tile, first_column, first_window,
)
from aclnn_bw._kernels.avg_pool2d_walk cimport Walk, walk_columns
from aclnn_bw._kernels.lines cimport Rest, flush_rest, stream_on
from aclnn_bw._kernels.rows cimport (
    clear, copy, fetch_to_write, fill_row, round_to_half_row, store_row, touch_until,
)
from aclnn_bw._kernels.simd cimport (
    LINE, bfloat, cell, cell_2, cell_4, cell_8, element, fence, half, prefetch_to_write,
    reads_all, simd_fill, simd_store, sum_bytes, vector_32,
)
from aclnn_bw._kernels.transpose cimport moved, sum_transposed, transpose

cdef void clear_bytes(void* to, int64_t size, bint far) noexcept nogil:
    clear(to, size, far)


cdef void close_strip(const AvgPool2dPlan* plan, char* grad_input__hw, char* scratch, int64_t q, int64_t rows,
                      int64_t iw, int64_t width, int64_t item) noexcept nogil:
    """`rows` values of q, columns [iw, iw + width), go from the scratch to where they belong. Compiled once for all
    types."""
    cdef Rest* rest = <Rest*>(scratch + plan.at_lines - 2 * ALIGNMENT)
    cdef int64_t down = plan.w.size * item
    cdef int64_t top = first_row(plan, q)
    rows = first_row(plan, q + rows) - top
    grad_input__hw += top * down + iw * item
    scratch += iw * item
    width *= item
    if width == down:
        width *= rows
        rows = 1
    for top in range(rows):
        stream_on(rest, grad_input__hw + top * down, scratch + plan.at_lines + top * down, width)


cdef void fill_band(const AvgPool2dPlan* plan, const element* grad_output__hw, element* grad_input__hw,
                    int64_t ih, int64_t rows) noexcept nogil:
    """One window covers the plane: its share everywhere."""
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t along = plan.grad_input_strides[3]
    cdef int64_t columns = plan.w.size
    cdef element stored = share(grad_output__hw, constant_factor(plan), plan.rounding, plan.round_result)
    cdef int64_t r
    if along == 1 and down == columns:
        fill_row(grad_input__hw + ih * down, 1, stored, rows * columns)
        return
    for r in range(ih, ih + rows):
        fill_row(grad_input__hw + r * down, along, stored, columns)


cdef void fill_planes(const AvgPool2dPlan* plan, const element* grad_output__nchw, element* grad_input__nchw,
                      int64_t begin, int64_t end) noexcept nogil:
    """The planes [begin, end), which lie behind each other in gradInput and at equal distances in gradOutput. A vector
    may run into the next plane, which comes afterwards, and not past the last. 32 bytes at most: what the planes are
    here for are some 7 x 7, and longer vectors straddle more cache lines."""
    cdef int64_t step = plan.grad_output_strides[1]
    cdef int64_t size = plan.h.size * plan.w.size
    cdef int64_t lanes = <int64_t>(sizeof(vector_32) // sizeof(element))
    cdef int64_t line = <int64_t>(LINE // sizeof(element))
    cdef int64_t reach = round_up(size, lanes)
    cdef const element* source = grad_output__nchw + begin * step
    cdef element* to = grad_input__nchw + begin * size
    cdef const element* limit = grad_input__nchw + end * size
    cdef double factor = constant_factor(plan)
    cdef element stored
    cdef char* touched = <char*>to
    cdef vector_32 x
    cdef int64_t i, most_ahead
    while to < limit:
        stored = share(source, factor, ROUND_NONE, False)
        if limit - to < reach:
            fill_row(to, 1, stored, size)
        else:
            simd_fill(&x, &stored, sizeof(element))
            # Nothing that no plane has: memory that is not there is looked for each time.
            most_ahead = least(size, limit - to - AHEAD // <int64_t>sizeof(element))
            i = 0
            if most_ahead > 0:
                touched = touch_until(touched, <char*>(to + most_ahead) + AHEAD, limit)
            while i < most_ahead:
                prefetch_to_write(<const char*>(to + i) + AHEAD)
                i += line
            i = 0
            while i < size:
                simd_store(to + i, &x)
                i += lanes
        source += step
        to += size


cdef void double_band(const AvgPool2dPlan* plan, const element* grad_output__hw, int64_t source_down,
                      element* grad_input__hw, int64_t q, int64_t rows, int64_t p, int64_t columns) noexcept nogil:
    """Kernel and stride 2 without padding: from gradOutput to two rows of gradInput in one pass."""
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t width = least(2 * columns, plan.w.size - 2 * p)
    cdef int64_t n = least(columns, plan.w.out - p)
    cdef double factor = constant_factor(plan)
    cdef int64_t oh, r
    cdef element* to
    for oh in range(q, q + rows):
        to = grad_input__hw + 2 * oh * down + 2 * p
        if oh < plan.h.out:
            double_row(to, to + down, grad_output__hw + oh * source_down + p, factor, n)
        # An odd last column, and an odd last row, lie in no window.
        for r in range(least(2, plan.h.size - 2 * oh)):
            if oh >= plan.h.out:
                memset(to + r * down, 0, <size_t>width * sizeof(element))
            elif 2 * n < width:
                memset(to + r * down + 2 * n, 0, sizeof(element))


cdef void window_band(const AvgPool2dPlan* plan, const element* grad_output__hw, element* grad_input__hw,
                      int64_t q, int64_t rows) noexcept nogil:
    """Windows that do not meet, rows of them at a time: zeros, and the share of each where it lies."""
    cdef const Axis* w = &plan.w
    cdef int64_t down = plan.grad_input_strides[2]
    cdef double[FEW_APART] factors
    cdef int64_t oh, ow, top, end, left, right, r
    cdef const element* source
    cdef element stored
    for ow in range(w.out):
        factors[ow] = constant_factor(plan)
    for oh in range(plan.h.first + q, plan.h.first + q + rows):
        top = most(oh * plan.h.stride - plan.h.pad, 0)
        end = least((oh + 1) * plan.h.stride - plan.h.pad, plan.h.size)
        if down == w.size:
            clear_bytes(grad_input__hw + top * down, (end - top) * down * <int64_t>sizeof(element), plan.far)
        else:
            for r in range(top, end):
                clear_bytes(grad_input__hw + r * down, w.size * <int64_t>sizeof(element), plan.far)
        if oh >= plan.h.out:
            continue
        end = least(oh * plan.h.stride - plan.h.pad + plan.h.kernel, end)
        source = grad_output__hw + oh * plan.grad_output_strides[2]
        if not plan.constant_divisor:
            find_factors(plan, <double*>factors, oh, source)
        for ow in range(w.out):
            left = most(ow * w.stride - w.pad, 0)
            right = least(ow * w.stride - w.pad + w.kernel, w.size)
            stored = share(source + ow * plan.grad_output_strides[3], factors[ow], plan.rounding, plan.round_result)
            fill_window(grad_input__hw + top * down + left, down, end - top, right - left, stored)


cdef void paint_band(const AvgPool2dPlan* plan, const element* grad_output__hw, int64_t source_down,
                     element* grad_input__hw, char* scratch, int64_t q, int64_t rows, int64_t p,
                     int64_t columns) noexcept nogil:
    """Windows that do not meet."""
    cdef int64_t some
    cdef element* to
    while rows > 0:
        some = least(plan.strip, rows) if plan.streams else rows
        to = open_strip(plan, grad_input__hw, scratch, q)
        if plan.algorithm == DOUBLE:
            double_band(plan, grad_output__hw, source_down, to, q, some, p, columns)
        else:
            window_band(plan, grad_output__hw, to, q, some)
        if plan.streams:
            close_strip(plan, <char*>grad_input__hw, scratch, q, some, 0, plan.w.size, sizeof(element))
        q += some
        rows -= some


cdef void spread_ends(cell* to, const Tile* t, const cell* long_cells, const cell* short_cells, int64_t begin,
                      int64_t end, int64_t stride, int64_t long_phases) noexcept nogil:
    """to[j*stride + r - phase] = (long_cells if r < long_phases else short_cells)[j] of the groups before `begin` and
    from `end` on."""
    cdef int64_t j = 0
    cdef int64_t i, start
    while j < t.columns:
        if j == begin and j < end:
            j = end
            continue
        start = j * stride - t.phase
        for i in range(most(start, 0), least(start + long_phases, t.width)):
            to[i] = long_cells[j]
        for i in range(most(start + long_phases, 0), least(start + stride, t.width)):
            to[i] = short_cells[j]
        j += 1


cdef void turn_phases(moved* to, const moved* phases, int64_t pitch, int64_t stride, int64_t n) noexcept nogil:
    """to[j*stride + r] = phases[r*pitch + j]"""
    sum_transposed(to, stride, phases, pitch, stride, n, False)


cdef void spread_row(const AvgPool2dPlan* plan, const Tile* t, element* to, char* scratch, int64_t at,
                     int64_t count) noexcept nogil:
    """A row at a stride of 3 or more: a row of each phase, and their transposition; of long strides runs of numbers."""
    cdef const Axis* w = &plan.w
    cdef element* phases = <element*>(scratch + plan.at_cells)
    cdef element* shorts = NULL
    cdef int64_t stride = w.stride
    cdef int64_t pitch = plan.pitch
    cdef int64_t begin = 0
    cdef int64_t end = 0
    cdef int64_t r
    sum_row(phases, t.longs + at, t.columns, t.pitch, count)
    if w.long_phases < stride:
        shorts = phases + least(w.long_phases, MOST_PHASES - 1) * pitch
        if w.terms > 1:
            sum_row(shorts, t.shorts + at, t.columns, t.pitch, count)
        else:
            memset(shorts, 0, <size_t>t.columns * sizeof(element))
    if stride <= MOST_PHASES:
        begin = 1 if t.phase > 0 else 0
        end = most((t.width + t.phase) // stride, begin)
        if w.long_phases == stride:
            pitch = 0
        for r in range(1, stride if pitch > 0 else 0):
            if r != w.long_phases:
                copy(phases + r * pitch, phases if r < w.long_phases else shorts, <size_t>t.columns * sizeof(element))
        to += begin * stride - t.phase
        if element is double:
            turn_phases(<cell_8*>to, <const cell_8*>phases + begin, pitch, stride, end - begin)
        elif element is float:
            turn_phases(<cell_4*>to, <const cell_4*>phases + begin, pitch, stride, end - begin)
        else:
            turn_phases(<cell_2*>to, <const cell_2*>phases + begin, pitch, stride, end - begin)
        to -= begin * stride - t.phase
    if element is half or element is bfloat:
        spread_ends(<uint16_t*>to, t, <const uint16_t*>phases, <const uint16_t*>shorts, begin, end, stride,
                    w.long_phases)
    else:
        spread_ends(to, t, <const element*>phases, <const element*>shorts, begin, end, stride, w.long_phases)


cdef void make_row(const AvgPool2dPlan* plan, const Tile* t, element* to, char* scratch, int64_t row,
                   int64_t count) noexcept nogil:
    """A row of gradInput: `count` rows of sums from the row-th in the scratch on."""
    cdef const Axis* w = &plan.w
    cdef int64_t at = row * t.pitch
    cdef int64_t shorts_at = row * t.shorts_pitch
    if count <= 0:
        memset(to, 0, <size_t>t.width * sizeof(element))
    elif w.stride == 1:
        sum_row(to, t.longs + at, t.width, t.pitch, count)
    elif w.stride > 2:
        spread_row(plan, t, to, scratch, at, count)
    elif t.phase == 0:
        pair_row(to, t.longs + at, t.pitch, t.shorts + shorts_at, t.shorts_pitch, t.width, count)
    else:
        pair_row(to, t.shorts + shorts_at, t.shorts_pitch, t.longs + at + sum_bytes(to), t.pitch, t.width, count)


cdef void make_rows(const AvgPool2dPlan* plan, const Tile* t, element* grad_input__hw, char* scratch, int64_t q,
                    int64_t rows, int64_t base) noexcept nogil:
    """The rows of gradInput that `rows` values of q along h serve; the scratch has the rows of windows from `base` on.
    A row is made once and copied to the others of its kind. Of a STREAMED row `t` are two, whose sums are complete."""
    cdef const Axis* h = &plan.h
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t along = plan.grad_input_strides[3]
    cdef bint direct = along == 1 and not plan.round_result
    cdef int64_t first = q - (h.terms - 1)
    cdef int64_t j, r, ih, begin
    cdef element* to
    cdef element* made
    if direct and h.stride == 1 and plan.w.stride == 1 and plan.algorithm != STREAMED:
        to = grad_input__hw + (q - h.pad) * down + t.iw
        for j in range(rows):
            begin = most(first + j, 0)
            sum_row(to, t.longs + (begin - base) * t.pitch, t.width, t.pitch, least(q + j + 1, h.out) - begin)
            to += down
        return
    for j in range(rows):
        made = NULL
        for r in range(h.stride):
            if r == h.long_phases:
                made = NULL
            ih = (q + j) * h.stride + r - h.pad
            if not 0 <= ih < h.size:
                continue
            to = grad_input__hw + ih * down + t.iw * along
            if direct and plan.far:
                fetch_to_write(<char*>to, t.width * <int64_t>sizeof(element))
            if made == NULL:
                begin = most(first + j + (r >= h.long_phases), 0)
                made = to if direct else <element*>(scratch + plan.at_row)
                if plan.algorithm == STREAMED:
                    make_row(plan, t + (r >= h.long_phases), made, scratch, 0, 1)
                else:
                    make_row(plan, t, made, scratch, begin - base, least(q + j + 1, h.out) - begin)
                if element is float:
                    if plan.round_result:
                        round_to_half_row(made, t.width)
            if to != made:
                store_row(to, along, <const element*>made, t.width)


cdef void walk_in_place(const Walk* w, element* to, int64_t n, int64_t taps) noexcept nogil:
    if taps == 2:
        walk_columns(w, to, n, 2, False)
    elif taps == 3:
        walk_columns(w, to, n, 3, False)
    else:
        walk_columns(w, to, n, 5, False)


cdef void walk_terms(const Walk* w, element* to, int64_t n, int64_t taps) noexcept nogil:
    if taps == 2:
        walk_columns(w, to, n, 2, True)
    elif taps == 3:
        walk_columns(w, to, n, 3, True)
    else:
        walk_columns(w, to, n, 5, True)


cdef inline bint walks_in_place(const AvgPool2dPlan* plan, int64_t along, const element* numbers) noexcept nogil:
    return (plan.taps > 0 and not reads_all(numbers) and plan.constant_divisor and plan.rounding == ROUND_NONE
            and along == 1)


cdef void walk_band(const AvgPool2dPlan* plan, const Tile* t, const char* source, int64_t source_row, int64_t window,
                    int64_t down, element* grad_input__hw, int64_t q, int64_t rows, bint by_terms) noexcept nogil:
    """Rows of gradInput at stride 1, of gradOutput or of terms. `source` is a row's window-th window."""
    cdef int64_t size = sum_bytes(grad_input__hw) if by_terms else <int64_t>sizeof(element)
    cdef Walk w
    cdef element* to
    w.row = q - (plan.taps - 1)
    w.source = source + (w.row - source_row) * down - window * size
    w.down = down
    w.rows = rows
    w.windows_down = plan.h.out
    w.windows = plan.w.out
    w.first = t.iw + plan.w.pad - (plan.taps - 1)
    w.to_down = plan.grad_input_strides[2]
    w.ahead = (rows + plan.taps - 1) * down
    if by_terms or plan.packs or t.source_end - w.source < (
            least(rows + plan.taps - 1, plan.h.out - w.row) * down + w.ahead):
        w.ahead = 0     # nothing follows in memory
    w.factor = t.factor
    w.limit = t.limit
    to = grad_input__hw + (q - plan.h.pad) * w.to_down + t.iw
    if by_terms:
        walk_terms(&w, to, t.width, plan.taps)
    else:
        walk_in_place(&w, to, t.width, plan.taps)


cdef void pair_band(const AvgPool2dPlan* plan, const Tile* t, element* grad_input__hw, int64_t q, int64_t rows,
                    int64_t base) noexcept nogil:
    """make_rows where the sums stay in registers."""
    cdef const Axis* h = &plan.h
    cdef element* to = grad_input__hw + t.iw
    cdef int64_t down = t.p.down
    cdef int64_t oh, top, middle, all_at, here_at, all_rows, here_rows
    cdef const char* here
    cdef const char* above
    cdef char* touched = NULL
    cdef Pairs p = t.p
    for oh in range(q, q + rows):
        top = oh * h.stride - h.pad
        middle = top + h.long_phases
        all_at = most(top, 0)
        here_at = most(middle, 0)
        here = t.terms + (oh - base) * t.pitch if oh < h.out else t.zeros
        above = t.terms + (oh - 1 - base) * t.pitch if 0 < oh <= h.out else t.zeros
        all_rows = least(middle, h.size) - all_at
        here_rows = least(top + h.stride, h.size) - here_at
        if plan.w.stride == 2:
            if t.limit != NULL and <const element*>t.limit - to < (here_at + here_rows) * down + p.ahead:
                p.ahead = 0     # only the last rows follow
            elif t.limit != NULL and p.ahead > 0:
                if oh == q:
                    touched = <char*>(to + all_at * down)
                touched = touch_until(touched, to + (here_at + here_rows) * down + p.ahead, t.limit)
            pair_rows(&p, to + all_at * down, all_rows, to + here_at * down, here_rows, here, above, h.terms == 2)
        elif h.terms == 2:
            triple_rows(&t.p, to + all_at * down, all_rows, to + here_at * down, here_rows, here, above, True)
        else:
            triple_rows(&t.p, to + all_at * down, all_rows, to, 0, here, here, False)


cdef void sum_windows(const AvgPool2dPlan* plan, const Tile* t, int64_t row, const element* source, int64_t down,
                      int64_t along, int64_t oh, int64_t rows) noexcept nogil:
    """The terms of the rows of windows from oh on, the first of which lies at `source`, and their sums along w, unless
    they are made in registers: the rows from the row-th on in the scratch."""
    cdef int64_t terms = plan.w.terms
    cdef int64_t size = sum_bytes(source)
    cdef int64_t at = row * t.pitch
    scale_rows(plan, t.terms + at + t.at, t.pitch, source, down, along, oh, rows, t.windows, t.factors)
    if terms > 1 and plan.taps == 0 and not t.pairs:
        sum_across(t.long_sums + at, t.terms + at + t.first, t.vectors, t.pitch, rows, terms, source)
    if terms > 2 and plan.w.long_phases < plan.w.stride:
        sum_across(t.short_sums + at, t.terms + at + t.first + size, t.vectors, t.pitch, rows, terms - 1, source)


cdef void keep_rows(const AvgPool2dPlan* plan, const Tile* t, int64_t row, int64_t rows) noexcept nogil:
    """The first rows in the scratch = those from the row-th on."""
    cdef size_t bytes = <size_t>(most(rows, 0) * t.pitch)
    cdef int64_t at = row * t.pitch
    if plan.w.terms > 1 and plan.taps == 0 and not t.pairs:
        memmove(t.long_sums, t.long_sums + at, bytes)
    if plan.w.terms < 3 or plan.taps > 0:
        memmove(t.terms, t.terms + at, bytes)
    elif plan.w.long_phases < plan.w.stride:
        memmove(t.short_sums, t.short_sums + at, bytes)


cdef void sum_band(const AvgPool2dPlan* plan, const Tile* t, const element* source, int64_t down, int64_t along,
                   element* grad_input__hw, char* scratch, int64_t q, int64_t rows) noexcept nogil:
    """The positions of `rows` values of q along h from the q-th on, some at a time. `source` is the first row of
    windows, from the first that the tile has on."""
    cdef const Axis* h = &plan.h
    cdef int64_t first = h.first + q - (h.terms - 1)    # row of windows of the next q
    cdef int64_t made = most(first, 0)                  # those before have been
    cdef int64_t base = made                            # of the scratch's first row
    cdef int64_t end, some
    cdef bint in_place = walks_in_place(plan, along, source)
    cdef element* to
    while rows > 0:
        some = rows if in_place and not plan.streams else least(plan.strip, rows)
        to = open_strip(plan, grad_input__hw, scratch, q)
        if in_place:
            walk_band(plan, t, <const char*>source, 0, t.begin, down * <int64_t>sizeof(element), to,
                      h.first + q, some, False)
        else:
            end = most(least(first + some + h.terms - 1, h.out), made)
            sum_windows(plan, t, made - base, source + made * down, down, along, made, end - made)
            if plan.taps > 0:
                walk_band(plan, t, t.terms + t.at, base, t.begin, t.pitch, to, h.first + q, some, True)
            elif t.pairs:
                pair_band(plan, t, to, h.first + q, some, base)
            else:
                make_rows(plan, t, to, scratch, h.first + q, some, base)
            first += some
            made = most(end, first)
            if rows > some and first > base:
                keep_rows(plan, t, first - base, end - first)
                base = first
        if plan.streams:
            close_strip(plan, <char*>grad_input__hw, scratch, q, some, t.iw, t.width, sizeof(element))
        q += some
        rows -= some


cdef void stream_row(const AvgPool2dPlan* plan, const Tile* t, const element* source, int64_t along,
                     element* grad_input__hw, char* scratch, int64_t q) noexcept nogil:
    """sum_band of one row whose windows do not fit the scratch: one row of windows after the other is added to the sums
    of the long and of the short phases of h."""
    cdef const Axis* h = &plan.h
    cdef const Axis* w = &plan.w
    cdef int64_t oh = h.first + q - (h.terms - 1)
    cdef Tile[2] sums
    cdef char* row = scratch + plan.at_sums
    cdef int64_t m, kind
    memset(row, 0, <size_t>(4 * t.pitch))
    for kind in range(2):
        sums[kind] = t[0]
        sums[kind].longs = row + 2 * kind * t.pitch
        if w.long_phases == w.stride:
            sums[kind].shorts = sums[kind].longs
        elif w.terms > 1:
            sums[kind].shorts = sums[kind].longs + t.pitch
    for m in range(most(-oh, 0), least(h.terms, h.out - oh)):
        sum_windows(plan, t, 0, source + (oh + m) * plan.grad_output_strides[2], 0, along, oh + m, 1)
        for kind in range(2 if m > 0 else 1):
            add_sums(<char*>sums[kind].longs, t.longs, t.columns, source)
            if w.long_phases < w.stride and w.terms > 1:
                add_sums(<char*>sums[kind].shorts, t.shorts, t.columns, source)
    make_rows(plan, sums, grad_input__hw, scratch, h.first + q, 1, 0)


cdef void pack_rows(const AvgPool2dPlan* plan, char* packed, const char* grad_output__chw, const void* end,
                    int64_t channels, int64_t oh, int64_t rows, int64_t ow, int64_t windows,
                    int64_t item) noexcept nogil:
    """Copy the rows of windows from oh on of some planes that lie side by side: a cache line is read once. Compiled
    once for all types."""
    cdef int64_t down = plan.grad_output_strides[2] * item
    cdef int64_t along = plan.grad_output_strides[3]
    cdef int64_t r
    if plan.packed_row == windows * item and down == windows * along * item:
        windows *= rows
        rows = 1
    for r in range(rows):
        transpose(packed + r * plan.packed_row, plan.packed_plane // item,
                  grad_output__chw + (oh + r) * down + ow * along * item, along, windows, channels, item, end)


cdef void turn_planes(const AvgPool2dPlan* plan, moved* grad_input__chw, const moved* made, int64_t channels,
                      int64_t ih, int64_t rows, int64_t iw, int64_t width) noexcept nogil:
    """The planes that have been made go where they belong, rows from ih and columns from iw on. One function with
    turn_phases makes rows of windows at strides of 3 and more take 1.1 to 1.25 times as long."""
    cdef int64_t plane = plan.grad_input_strides[1]
    cdef int64_t down = plan.grad_input_strides[2]
    cdef int64_t to_down = plan.to_strides[2]
    cdef int64_t r
    grad_input__chw += ih * to_down + iw * plan.to_strides[3]
    if width == down and to_down == width * plan.to_strides[3]:
        width *= rows
        rows = 1
    for r in range(rows):
        sum_transposed(grad_input__chw + r * to_down, plan.to_strides[3], made + r * down, plane, channels, width,
                       False)


cdef void make_band(const AvgPool2dPlan* plan, const Tile* t, const element* grad_output__hw, int64_t down,
                    int64_t along, element* grad_input__hw, char* scratch, int64_t q, int64_t rows, int64_t p,
                    int64_t columns) noexcept nogil:
    """A band of a plane, one tile of it."""
    if plan.algorithm == FILL:
        fill_band(plan, grad_output__hw, grad_input__hw, q, rows)
    elif plan.algorithm == DOUBLE or plan.algorithm == WINDOWS:
        paint_band(plan, grad_output__hw, down, grad_input__hw, scratch, q, rows, p, columns)
    elif plan.algorithm == STREAMED:
        stream_row(plan, t, grad_output__hw + t.begin * along, along, grad_input__hw, scratch, q)
    else:
        sum_band(plan, t, grad_output__hw + t.begin * along, down, along, grad_input__hw, scratch, q, rows)


cdef void make_bands(const AvgPool2dPlan* plan, const Tile* t, const element* grad_output__chw,
                     element* grad_input__chw, char* scratch, int64_t channels, int64_t q, int64_t rows, int64_t p,
                     int64_t columns) noexcept nogil:
    """The same of some planes side by side."""
    cdef int64_t item = sizeof(element)
    cdef int64_t source_plane = plan.grad_output_strides[1]
    cdef int64_t down = plan.grad_output_strides[2]
    cdef int64_t along = plan.grad_output_strides[3]
    cdef int64_t oh = most(plan.h.first + q - (plan.h.terms - 1), 0)
    cdef int64_t ow = first_window(plan, p)
    cdef int64_t ih = q if plan.algorithm == FILL else first_row(plan, q)
    cdef int64_t end = q + rows if plan.algorithm == FILL else first_row(plan, q + rows)
    cdef int64_t iw = first_column(plan, p)
    cdef const element* source = grad_output__chw
    cdef element* to = grad_input__chw
    cdef int64_t c
    if plan.packs:
        pack_rows(plan, scratch + plan.at_packed, <const char*>grad_output__chw, t.source_end, channels, oh,
                  least(plan.h.first + q + rows, plan.h.out) - oh, ow, count_windows(plan, p, columns), item)
        source_plane = plan.packed_plane // item
        down = plan.packed_row // item
        along = 1
        source = <const element*>(scratch + plan.at_packed) - oh * down - ow
    if plan.turns:
        to = <element*>(scratch + plan.at_made) - ih * plan.grad_input_strides[2] - iw
    for c in range(channels):
        make_band(plan, t, source + c * source_plane, down, along, to + c * plan.grad_input_strides[1], scratch, q,
                  rows, p, columns)
    if plan.turns:
        rows = end - ih
        columns = end_column(plan, p + columns) - iw
        to = <element*>(scratch + plan.at_made)
        if element is double:
            turn_planes(plan, <cell_8*>grad_input__chw, <const cell_8*>to, channels, ih, rows, iw, columns)
        elif element is float:
            turn_planes(plan, <cell_4*>grad_input__chw, <const cell_4*>to, channels, ih, rows, iw, columns)
        else:
            turn_planes(plan, <cell_2*>grad_input__chw, <const cell_2*>to, channels, ih, rows, iw, columns)


cdef int64_t backward(const AvgPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const element* numbers) noexcept nogil:
    """The units [begin, end); the last argument gives the type only."""
    cdef const element* grad_output__nchw = <const element*>data[0]
    cdef element* grad_input__nchw = <element*>data[2]
    cdef const element* grad_output__hw
    cdef element* grad_input__hw
    cdef int64_t n, c, q, rows, p, columns, channels
    cdef int64_t height = plan.h.size if plan.algorithm == FILL else plan.h.count
    cdef int64_t tile = -1
    cdef Tile t
    t.limit = NULL
    t.source_end = data[0] + plan.source_bytes
    if (plan.algorithm == FILL and not plan.turns and plan.bands == 1 and plan.rounding == ROUND_NONE
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
    grad_input__hw = grad_input__nchw + n * plan.to_strides[0] + c * plan.to_strides[1]
    if plan.turns:
        t.limit = scratch + plan.made_end
    elif plan.group == 1 and plan.tiles == 1 and is_dense(plan, plan.grad_input_strides, plan.h.size, plan.w.size):
        # The end of the last unit: all before it is made here, row after row.
        t.limit = grad_input__nchw + unit_end(plan, end)
    if plan.streams:
        t.limit = scratch + plan.lines_end
        (<Rest*>(scratch + plan.at_lines - 2 * ALIGNMENT)).to = NULL
    while begin < end:
        begin += 1
        rows = least(plan.band, height - q)
        columns = least(plan.tile, plan.w.count - p)
        channels = least(plan.group, plan.channels - c)
        if p != tile and (plan.algorithm == BANDED or plan.algorithm == STREAMED):
            tile = p
            find_tile(plan, &t, scratch, p, columns, numbers)
        if plan.packs or plan.turns:
            make_bands(plan, &t, grad_output__hw, grad_input__hw, scratch, channels, q, rows, p, columns)
        else:
            make_band(plan, &t, grad_output__hw, plan.grad_output_strides[2], plan.grad_output_strides[3],
                      grad_input__hw, scratch, q, rows, p, columns)
        p += plan.tile
        if p >= plan.w.count:
            p = 0
            q += plan.band
            if q >= height:
                q = 0
                c += channels
                grad_output__hw += channels * plan.grad_output_strides[1]
                grad_input__hw += channels * plan.to_strides[1]
                if c == plan.channels:
                    c = 0
                    grad_output__hw += plan.grad_output_strides[0] - plan.channels * plan.grad_output_strides[1]
                    grad_input__hw += plan.to_strides[0] - plan.channels * plan.to_strides[1]
    if plan.streams:
        flush_rest(<Rest*>(scratch + plan.at_lines - 2 * ALIGNMENT))
        fence()
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const AvgPool2dPlan*>plan, data, scratch, begin, end, <const bfloat*>NULL)


cdef void avg_pool2d_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = backward_f32
    row[<int>SLOT_F64] = backward_f64
    row[<int>SLOT_F16] = backward_f16
    row[<int>SLOT_BF16] = backward_bf16
