"""Im2colBackward: out[h, w] = sum of gradOutput[(c*kH + kh)*kW + kw, lh*Lw + lw] over the kernel positions and windows
with lh*sH - pH + kh*dH == h and lw*sW - pW + kw*dW == w.

The formula is that of PyTorch's col2im (aten/src/ATen/native/im2col.h), gathered instead of scattered: every element of
out has one writer.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64. A position has at most one term from
each kernel position; they are added in ascending kh*kW + kw, starting from +0.0. The sum is rounded once to
gradOutput's dtype, and that, if it is another one, once to out's. Every path adds the same terms in the same order, so
bands, threads, strides and instruction sets do not show in the result.

Bounds. Phase 1 has proved that both views lie inside their storage. Rows of windows are those in [0, Lh), and of a row
only the windows in [0, Lw) are added (`find_row`, `scatter_row`, `copy_band`); what else a vector reads lies
among the columns of this plane or of others (im2col_gather.pxd, im2col_flat.pxd). A vector that reaches beyond its row
of out is stored only where the rows behind it belong to the same unit and are made after it. Prefetched addresses are
not read.

| path | when | why |
|---|---|---|
| INTERLEAVE | kernel == stride along w | one term at most: a transposition in registers |
| PLACE | no two kernel positions meet | zeros, and one copy of each element, unwidened |
| GATHER | up to 16 phases, kernels that fit its tables | each sum is made in a register and stored once |
| . flat | small planes, Lw == W | rows joined, no block for each row |
| . one edge | rows of a vector, stride and dilation 1 along h | lanes stay in registers |
| . two phases | stride 2 along w | even and odd positions are stored in turn |
| . phases | stride 3 to 16 along w | each phase is a row; their matrix is transposed |
| SCATTER | anything else | windows added where they lie in a row of sums |
| . planes | few windows along w, stride > 2, small planes | phases would leave vectors empty |

docs/design/im2col.md explains them, and how columns are packed, prefetched, transposed in groups of channels, and
written past the caches. `python -m benchmarks --operator im2col_backward` measures.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uintptr_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.im2col cimport GATHER, INTERLEAVE, MOST_PHASES, PLACE, SCATTER, Im2colPlan, Phase
from aclnn_bw._core.types cimport (
    ALIGNMENT, ALL_GOOD, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn,
)
from aclnn_bw._kernels.im2col_columns cimport (
    Ahead, look_ahead, pack_columns, plan_ahead, stream, turn_rows,
)
from aclnn_bw._kernels.im2col_flat cimport Flat, find_flat, flat_lanes, sum_flat_rows
from aclnn_bw._kernels.im2col_gather cimport (
    KEPT, Gather, Walk, find_edges, find_inner, find_row, gather_row, row_is_safe,
)
from aclnn_bw._kernels.im2col_place cimport Places, find_places, place_planes
from aclnn_bw._kernels.im2col_scatter cimport Reach, find_reach, scatter_plane, scatter_row
from aclnn_bw._kernels.rows cimport (
    BLOCK, bfloat, element, half, narrow_row, real, store_row, widen_row,
)
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, VECTOR_BYTES, add, fence, find_lanes, lanes, load_alone, load_lanes, reads_all, store, store_first,
    sum_bytes, vec, vector, vector_half, zero,
)

cdef extern from "convert.h" nogil:
    void round_to_odd_row "aclnn_bw_round_to_odd_row" (float* to, const double* source, int64_t n) noexcept


cdef void convert_row(const Im2colPlan* plan, char* out, int64_t at, const real* values, int64_t n) noexcept nogil:
    """out[at : at + n*stride : stride] = values[:n], at most BLOCK, rounded to out's dtype. They fit gradOutput's."""
    cdef int64_t along = plan.out_strides[3]
    cdef float[BLOCK] single
    cdef double[BLOCK] wide
    cdef half[BLOCK] halves
    cdef bfloat[BLOCK] bfloats
    cdef int64_t i
    if plan.out_dtype == DT_DOUBLE:
        for i in range(n):
            wide[i] = values[i]
        store_row(<double*>out + at, along, <const double*>wide, n)
        return
    if plan.out_dtype == DT_FLOAT:
        for i in range(n):
            single[i] = <float>values[i]
        store_row(<float*>out + at, along, <const float*>single, n)
        return
    if real is double:
        round_to_odd_row(single, values, n)
    else:
        for i in range(n):
            single[i] = values[i]
    if plan.out_dtype == DT_FLOAT16:
        narrow_row(<half*>halves, <const float*>single, n)
        store_row(<half*>out + at, along, <const half*>halves, n)
    else:
        narrow_row(<bfloat*>bfloats, <const float*>single, n)
        store_row(<bfloat*>out + at, along, <const bfloat*>bfloats, n)


cdef void store_elements(const Im2colPlan* plan, char* out, int64_t at, const element* row, int64_t n,
                         const real* summed) noexcept nogil:
    """Of a row of out, from element `at` on: n elements, at most BLOCK if they are converted."""
    cdef real[BLOCK] sums
    if not plan.converts:
        store_row(<element*>out + at, plan.out_strides[3], row, n)
    else:
        widen_row(<real*>sums, row, n)
        convert_row(plan, out, at, <const real*>sums, n)


cdef void store_sums(const Im2colPlan* plan, char* out, int64_t at, const real* sums,
                     const element* stored) noexcept nogil:
    """A row of out, from element `at` on: the sums, rounded to gradOutput's dtype and then to out's."""
    cdef int64_t along = plan.out_strides[3]
    cdef element[BLOCK] narrow
    cdef int64_t i, m
    if along == 1 and not plan.converts:
        narrow_row(<element*>out + at, sums, plan.w.size)
        return
    i = 0
    while i < plan.w.size:
        m = least(plan.w.size - i, BLOCK)
        narrow_row(<element*>narrow, sums + i, m)
        store_elements(plan, out, at + i * along, <const element*>narrow, m, sums)
        i += m


cdef enum:
    ROWS_AT_ONCE = 16       # of one vector each: what the next unit reads is prefetched in between
    PHASES_AT_ONCE = 256    # elements of rows of two phases, about: the same
    BYTES_AT_ONCE = 128     # of other rows

cdef enum:
    SOME_ROWS = 64          # of fewer, to know those that are alike saves less than it takes
    FEW_PLANES = 16         # of fewer, the tables of gather_flat take longer than they save

# What the rows of a range have in common: how they are gathered, of more than two phases each phase by itself, and what
# is there instead where it can be.
cdef struct Tables:
    bint gaps           # half of many phases or more have no taps, or no columns
    bint one_edge       # rows are one vector of one phase, at stride and dilation 1, some of whose lanes are masked
    Walk h
    Flat f
    Reach down
    Places places
    Gather[MOST_PHASES] g
    lanes[KEPT] some


cdef void gather_flat(const Im2colPlan* plan, const element* source, element* out, const Flat* f, int64_t ih,
                      int64_t end, int64_t members, Ahead* ahead) noexcept nogil:
    """gather_band for dense planes whose positions are like one row."""
    cdef int64_t n = (end - ih) * plan.w.size
    cdef int64_t some = 8 * flat_lanes(out)
    cdef int64_t i, next_i
    while members > 0:
        members -= 1
        i = 0
        while i < n:
            next_i = i + some if n - i >= 2 * some else n
            look_ahead(ahead, quotient(next_i - i, plan.w.size) + 1)
            sum_flat_rows(out + i, next_i - i, source, ih * plan.w.size + i, f)
            i = next_i
        source += plan.channel
        out += plan.out_strides[1]


cdef inline vec edge_term(const Gather* g, const element* source, lanes some, int64_t t, bint safe,
                          vec* width) noexcept nogil:
    if safe or not reads_all(source):
        return load_lanes(source + t * g.step, some, width)
    return load_alone(source + t * g.step, g.words[t], width)


cdef inline void gather_one_edge(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                                 const element* source, int64_t row, int64_t end, vec* kind) noexcept nogil:
    """Rows of one edge and a phase of stride and dilation 1: the lanes of three taps stay in registers, and the sums of
    several rows are made at once. A whole vector may be stored up to `limit`, NULL if rows do not lie one behind the
    other in the order in which they are made."""
    cdef int64_t all_lanes = <int64_t>sizeof(vec) // sum_bytes(to)
    cdef int64_t taps = g.taps[0]
    cdef int64_t windows = h.windows
    cdef int64_t rows = h.taps
    cdef int64_t width = g.windows
    cdef int64_t pitch = g.pitch
    cdef int64_t next = g.next
    cdef bint whole = g.n >= all_lanes
    cdef lanes one = find_lanes(g.words[0], source)
    cdef lanes two = find_lanes(g.words[1], source)
    cdef lanes three = find_lanes(g.words[2], source)
    cdef int64_t position = row + h.pad
    cdef int64_t first, last, t
    cdef bint safe
    cdef const element* p
    cdef vec sum
    end += h.pad
    source += g.base[0]
    while position < end:
        first = 0 if position < windows else position - windows + 1
        last = position + 1 if position < rows else rows
        safe = row_is_safe(g, first, position - first, most(last - first, 0), source - g.base[0])
        p = source + (first * pitch + (position - first) * width)
        sum = zero(kind)
        if taps == 3:
            while first < last:
                sum = add(sum, edge_term(g, p, one, 0, safe, kind), source)
                sum = add(sum, edge_term(g, p, two, 1, safe, kind), source)
                sum = add(sum, edge_term(g, p, three, 2, safe, kind), source)
                p += next
                first += 1
        else:
            while first < last:
                for t in range(taps):
                    sum = add(sum, edge_term(g, p, find_lanes(g.words[t], source), t, safe, kind), source)
                p += next
                first += 1
        if whole or to + all_lanes <= limit:
            store(to, sum)
        else:
            store_first(to, sum, g.n)
        to += down
        position += 1


cdef void gather_one_block(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                           const element* source, int64_t row, int64_t end) noexcept nogil:
    """Most loads of 64 bytes cross a cache line, fewer than half of those of 32 do."""
    if g.n <= HALF_BYTES // sum_bytes(to):
        gather_one_edge(g, h, to, down, limit, source, row, end, <vector_half*>NULL)
    else:
        gather_one_edge(g, h, to, down, limit, source, row, end, <vector*>NULL)


cdef void gather_by_words(const Gather* g, element* to, bint whole, bint safe, const element* source,
                          int64_t count) noexcept nogil:
    """A row of whose edges not all lanes are in the table, or which must be read alone."""
    cdef const element* even = source + g.base[0]
    cdef const element* odd = source + g.base[1]
    if g.phases == 2:
        gather_row(g, to, whole, True, safe, even, odd, count, g.taps[0], g.taps[1], True, 2, <vector*>NULL)
    else:
        gather_row(g, to, whole, True, safe, even, odd, count, g.taps[0], 0, True, 1, <vector*>NULL)


cdef inline void gather_reached(const Gather* g, element* to, bint whole, bint safe, const element* source,
                                int64_t count, int64_t taps, int64_t odd_taps, bint many, int phases) noexcept nogil:
    """A row. Rows of two phases have few rows of windows each, whose number is a constant then."""
    cdef const element* even = source + g.base[0]
    cdef const element* odd = source + g.base[1]
    if not g.kept or (reads_all(to) and not safe):
        gather_by_words(g, to, whole, safe, source, count)
    elif phases == 2 and count == 2:
        gather_row(g, to, whole, False, True, even, odd, 2, taps, odd_taps, many, 2, <vector*>NULL)
    elif phases == 2 and count == 1:
        gather_row(g, to, whole, False, True, even, odd, 1, taps, odd_taps, many, 2, <vector*>NULL)
    else:
        gather_row(g, to, whole, False, True, even, odd, count, taps, odd_taps, True, phases, <vector*>NULL)


cdef inline void gather_each(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                             const element* source, int64_t row, int64_t end, int64_t taps, int64_t odd_taps, bint many,
                             int phases) noexcept nogil:
    """gather_rows, of so many taps."""
    cdef int64_t wide = phases * (VECTOR_BYTES // sum_bytes(to))
    cdef bint whole = g.n >= wide
    cdef int64_t position, tap, window, count
    cdef bint safe
    while row < end:
        if g.inner <= row < g.inner_end:
            position = row + h.pad
            count = g.inner_counts[position & (h.stride - 1)]
            tap = g.inner_taps[position & (h.stride - 1)]
            window = (position - tap * h.dilation) >> (h.stride - 1)
            safe = True
        else:
            count = find_row(h, row, &tap, &window)
            safe = row_is_safe(g, tap, window, count, source)
        if count == 0:
            memset(to, 0, <size_t>g.n * sizeof(element))
        else:
            gather_reached(g, to, whole or to + wide <= limit, safe, source + (tap * g.pitch + window * g.windows),
                           count, taps, odd_taps, many, phases)
        to += down
        row += 1


cdef void gather_one_2(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                       const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 2, 0, True, 1)


cdef void gather_one_3(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                       const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 3, 0, True, 1)


cdef void gather_one_any(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, g.taps[0], 0, True, 1)


cdef void gather_two_2_1(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 2, 1, False, 2)


cdef void gather_two_1_2(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 1, 2, False, 2)


cdef void gather_two_2_2(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 2, 2, False, 2)


cdef void gather_two_1_0(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, 1, 0, False, 2)


cdef void gather_two_any(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                         const element* source, int64_t row, int64_t end) noexcept nogil:
    gather_each(g, h, to, down, limit, source, row, end, g.taps[0], g.taps[1], True, 2)


cdef void gather_rows(const Gather* g, const Walk* h, element* to, int64_t down, const element* limit,
                      const element* source, int64_t row, int64_t end) noexcept nogil:
    """The rows [row, end) of a plane of out, `down` elements apart; `limit` as above."""
    cdef int64_t taps = g.taps[0]
    if g.phases == 1:
        if taps == 3:
            gather_one_3(g, h, to, down, limit, source, row, end)
        elif taps == 2:
            gather_one_2(g, h, to, down, limit, source, row, end)
        else:
            gather_one_any(g, h, to, down, limit, source, row, end)
    elif taps == 1 and g.taps[1] == 0:
        gather_two_1_0(g, h, to, down, limit, source, row, end)
    elif taps == 2 and g.taps[1] == 1:
        gather_two_2_1(g, h, to, down, limit, source, row, end)
    elif taps == 1 and g.taps[1] == 2:
        gather_two_1_2(g, h, to, down, limit, source, row, end)
    elif taps == 2 and g.taps[1] == 2:
        gather_two_2_2(g, h, to, down, limit, source, row, end)
    else:
        gather_two_any(g, h, to, down, limit, source, row, end)


cdef void gather_phase(const Gather* g, element* to, const element* source, int64_t tap, int64_t window,
                       int64_t count) noexcept nogil:
    """A row of one phase of many."""
    gather_reached(g, to, g.n >= g.width, row_is_safe(g, tap, window, count, source),
                   source + (tap * g.pitch + window * g.windows), count, g.taps[0], 0, False, 1)


cdef void gather_by_phase(const Im2colPlan* plan, const Tables* t, element* to, element* phases, const element* source,
                          int64_t row) noexcept nogil:
    """A row of more than two phases, which are columns of its matrix of `stride` columns."""
    cdef int64_t stride = plan.w.stride
    cdef int64_t pitch = plan.phase_pitch
    cdef int64_t whole = quotient(plan.w.size, stride)
    cdef int64_t tap, window, i, j
    cdef int64_t count = find_row(&t.h, row, &tap, &window)
    if count == 0:
        memset(to, 0, <size_t>plan.w.size * sizeof(element))
        return
    if t.gaps:
        memset(to, 0, <size_t>plan.w.size * sizeof(element))
        for j in range(least(stride, plan.w.size)):
            if t.g[j].taps[0] > 0:
                gather_phase(&t.g[j], phases, source, tap, window, count)
                for i in range(t.g[j].n):
                    to[j + i * stride] = phases[i]
        return
    for j in range(least(stride, plan.w.size)):
        gather_phase(&t.g[j], phases + j * pitch, source, tap, window, count)
    turn_rows(to, stride, <const element*>phases, pitch, whole, stride, True)
    for j in range(plan.w.size - whole * stride):
        to[whole * stride + j] = phases[j * pitch + whole]


cdef void gather_band(const Im2colPlan* plan, const element* source, char* out, int64_t at, char* scratch,
                      const Tables* t, int64_t ih, int64_t end, int64_t members, Ahead* ahead,
                      const real* summed) noexcept nogil:
    """Rows [ih, end) of `members` planes of out, from element `at` on; rows that are to be transposed are dense."""
    cdef const Gather* g = &t.g[0]
    cdef int64_t columns = plan.w.size
    cdef int64_t down = columns if plan.turns else plan.out_strides[2]
    cdef bint direct = not plan.converts and (plan.turns or plan.out_strides[3] == 1)
    cdef int64_t rows
    # Whole planes of a unit that lie one behind the other are one run of rows.
    cdef bint dense = plan.out_strides[1] == plan.h.size * down and end - ih == plan.h.size
    cdef element* row = <element*>(scratch + plan.at_sums)
    cdef element* phases = row + columns
    cdef element* to = <element*>out + at
    cdef const element* limit = NULL
    cdef int64_t m, r, next_row, i, n
    if t.f.terms > 0 and direct and down == columns and (end - ih) * columns >= flat_lanes(source):
        gather_flat(plan, source, to, &t.f, ih, end, members, ahead)
        return
    if t.one_edge:
        rows = ROWS_AT_ONCE
    elif g.phases == 2:
        rows = quotient(PHASES_AT_ONCE, columns) + 1
    else:
        rows = most(1, quotient(BYTES_AT_ONCE, columns * <int64_t>sizeof(element)))
    for m in range(members):
        if down == columns:
            limit = to + (members - m if dense else 1) * (end - ih) * down
        r = ih
        while r < end:
            next_row = least(r + rows, end) if direct and plan.w.stride <= 2 else r + 1
            look_ahead(ahead, next_row - r)
            if direct and t.one_edge:
                gather_one_block(g, &t.h, to + (r - ih) * down, down, limit, source, r, next_row)
            elif direct and plan.w.stride <= 2:
                gather_rows(g, &t.h, to + (r - ih) * down, down, limit, source, r, next_row)
            elif direct:
                gather_by_phase(plan, t, to + (r - ih) * down, phases, source, r)
            else:
                if plan.w.stride <= 2:
                    gather_rows(g, &t.h, row, 0, NULL, source, r, next_row)
                else:
                    gather_by_phase(plan, t, row, phases, source, r)
                i = 0
                while i < columns:
                    n = least(columns - i, BLOCK)
                    store_elements(plan, out, at + m * plan.out_strides[1] + (r - ih) * down
                                   + i * plan.out_strides[3], <const element*>row + i, n, summed)
                    i += n
            r = next_row
        source += plan.channel
        to += plan.out_strides[1]


cdef void gather_and_turn(const Im2colPlan* plan, const element* source, element* out, char* scratch, const Tables* t,
                          int64_t ih, int64_t end, int64_t members, Ahead* ahead, const real* summed) noexcept nogil:
    """Rows [ih, end) of planes of out, whose channels lie side by side: a cache line of a position is written whole."""
    cdef element* lines = <element*>(scratch + plan.at_lines)
    cdef int64_t columns = plan.w.size
    cdef int64_t pitch = (end - ih) * columns
    cdef int64_t m
    for m in range(members):
        gather_band(plan, source + m * plan.channel, <char*>lines, m * pitch, scratch, t, ih, end, 1, ahead, summed)
    for m in range(end - ih):
        turn_rows(out + (ih + m) * plan.out_strides[2], plan.out_strides[3], <const element*>(lines + m * columns),
                  pitch, columns, members, True)


cdef int64_t gcd(int64_t a, int64_t b) noexcept nogil:
    while b != 0:
        a, b = b, a % b
    return a


cdef bint make_gathers(const Im2colPlan* plan, Tables* t, int64_t rows, const char* memory,
                       const element* numbers) noexcept nogil:
    """Whether the edges fit their tables; of so many rows; `memory` is gradOutput's."""
    cdef int64_t stride = plan.w.stride
    cdef int64_t common = 1 if plan.h.stride == 1 else gcd(plan.h.dilation, plan.h.stride)
    cdef Walk* h = &t.h
    cdef Gather* g = &t.g[0]
    cdef const Phase* phase
    cdef int64_t reached = 0
    cdef int64_t kept = 0
    cdef int64_t j
    h.stride = plan.h.stride
    h.dilation = plan.h.dilation
    h.pad = plan.h.pad
    h.taps = plan.h.taps
    h.windows = plan.h.windows
    h.tap_step = h.stride
    h.window_step = h.dilation
    if common > 1:
        h.tap_step //= common
        h.window_step //= common
    for j in range(stride):
        if j >= plan.w.size:
            break
        phase = &plan.phases[j]
        reached += phase.taps > 0
        if stride == 2 and j == 1:
            g.phases = 2
            g.n = plan.w.size
        else:
            g = &t.g[j]
            g.phases = 1
            g.n = quotient(plan.w.size - 1 - j, stride) + 1 if stride > 1 else plan.w.size
            g.taps[1] = g.window[1] = g.base[1] = 0
        g.taps[j if g.phases == 2 else 0] = phase.taps
        g.window[j if g.phases == 2 else 0] = phase.window
        g.base[j if g.phases == 2 else 0] = phase.kw * plan.column + phase.window
        if stride == 2 and j == 0 and plan.w.size > 1:
            continue
        g.windows = plan.w.windows
        g.window_step = plan.window_step
        g.step = plan.kw_step * plan.column - plan.window_step
        g.pitch = plan.kernel_width * plan.column
        g.down = h.window_step * plan.w.windows
        g.next = h.tap_step * g.pitch - g.down
        g.length = plan.h.windows * plan.w.windows
        # Packed columns have a line before and behind.
        g.in_plane = plan.packs or plan.column == g.length
        g.margin = ALIGNMENT // <int64_t>sizeof(element) if plan.packs else 0
        g.memory = 0 if plan.packs or plan.source_bytes == 0 else <uintptr_t>memory
        g.memory_end = <uintptr_t>memory + <uintptr_t>plan.source_bytes
        if g.in_plane:
            g.length = ((plan.h.taps - 1) * plan.kernel_width + plan.w.taps) * plan.column
        g.inner = g.inner_end = 0
        t.one_edge = stride == 1 and h.stride == 1 and h.dilation == 1 and (g.n <= VECTOR_BYTES // sum_bytes(numbers))
        g.some = t.some + kept
        if not find_edges(g, numbers, t.one_edge, KEPT - kept):
            return False
        kept += g.edges * (g.taps[0] + g.taps[1]) if g.kept else 0
        if not t.one_edge and rows >= SOME_ROWS:
            find_inner(g, h, plan.h.size, numbers)
    t.one_edge = t.one_edge and g.edges == 1
    t.gaps = 2 * reached <= stride
    return True


cdef enum:
    FEW_COLUMNS = 16        # read side by side, row by row of out: the hardware follows no more at once


cdef void clear_rows(const Im2colPlan* plan, element* out__hw, int64_t ih, int64_t end) noexcept nogil:
    """Zeros in the rows of [ih, end) that no window reaches; kernel positions do not overlap along h."""
    cdef int64_t position
    while ih < end:
        position = ih + plan.h.pad
        # One kernel position starts at or above the row in the window that starts last above it.
        position -= least(quotient(position, plan.h.stride), plan.h.windows - 1) * plan.h.stride
        if position > (plan.h.taps - 1) * plan.h.dilation or (plan.h.dilation > 1 and position % plan.h.dilation != 0):
            memset(out__hw + ih * plan.out_strides[2], 0, <size_t>plan.w.size * sizeof(element))
        ih += 1


cdef void interleave_band(const Im2colPlan* plan, const element* source, element* out__hw, int64_t ih, int64_t end,
                          Ahead* ahead) noexcept nogil:
    """kernel == stride along w: every kernel column is a phase of out's columns.

    A small kernel is written in the order of out's rows; a larger one is read in the order of its columns, of which a
    row needs more at once than the hardware follows.
    """
    cdef int64_t stride = plan.w.stride
    cdef int64_t column = plan.column
    cdef int64_t covered = plan.w.windows * stride
    cdef int64_t first = ceil_div(ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation, plan.h.stride)
    cdef int64_t count = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows) - first
    cdef bint by_rows = plan.h.taps * stride <= FEW_COLUMNS
    cdef int64_t outer, inner, kh, lh, r
    cdef element* to
    if plan.h.taps < plan.h.stride or plan.h.dilation > 1 or plan.h.size + plan.h.pad > plan.h.windows * plan.h.stride:
        clear_rows(plan, out__hw, ih, end)
    for outer in range(count if by_rows else plan.h.taps):
        for inner in range(plan.h.taps if by_rows else count):
            kh = inner if by_rows else outer
            lh = first + (outer if by_rows else inner)
            r = lh * plan.h.stride - plan.h.pad + kh * plan.h.dilation
            if not ih <= r < end:
                continue
            look_ahead(ahead, 1)
            to = out__hw + r * plan.out_strides[2]
            turn_rows(to, stride, source + kh * plan.kernel_width * column + lh * plan.w.windows, column,
                      plan.w.windows, stride, False)
            if covered < plan.w.size:
                memset(to + covered, 0, <size_t>(plan.w.size - covered) * sizeof(element))


cdef void copy_band(const Im2colPlan* plan, const Tables* t, const element* source, element* out__hw, int64_t ih,
                    int64_t end, int64_t members, Ahead* ahead) noexcept nogil:
    """Rows [ih, end) of planes of out, whose positions have one term at most."""
    cdef int64_t m
    if plan.algorithm == INTERLEAVE:
        for m in range(members):
            interleave_band(plan, source + m * plan.channel, out__hw + m * plan.out_strides[1], ih, end, ahead)
    elif element is half or element is bfloat:
        place_planes(plan, &t.places, <uint16_t*>out__hw, <const uint16_t*>source, ih, end, members)
    else:
        place_planes(plan, &t.places, out__hw, source, ih, end, members)


cdef void stream_band(const Im2colPlan* plan, const element* source, element* out, char* scratch, const Tables* t,
                      int64_t ih, int64_t end, int64_t members, Ahead* ahead, const real* summed) noexcept nogil:
    """Rows [ih, end) of dense planes, made a stretch at a time in the L1 cache, whose lines then go past the caches."""
    cdef element* rows = <element*>(scratch + plan.at_lines)
    cdef int64_t columns = plan.w.size
    cdef int64_t row, n
    if plan.algorithm == GATHER and members * (end - ih) <= plan.stretch and plan.bands == 1:
        gather_band(plan, source, <char*>rows, 0, scratch, t, ih, end, members, ahead, summed)
        stream(<char*>out, <const char*>rows, members * (end - ih) * columns * <int64_t>sizeof(element))
        return
    while members > 0:
        row = ih
        while row < end:
            n = least(plan.stretch, end - row)
            if plan.algorithm == GATHER:
                gather_band(plan, source, <char*>rows, 0, scratch, t, row, row + n, 1, ahead, summed)
            else:
                copy_band(plan, t, source, rows - row * columns, row, row + n, 1, ahead)
            stream(<char*>(out + row * columns), <const char*>rows, n * columns * <int64_t>sizeof(element))
            row += n
        source += plan.channel
        out += plan.out_strides[1]
        members -= 1


cdef int64_t backward(const Im2colPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef Tables t
    cdef const element* source
    cdef const element* columns
    cdef char* out = data[1]
    cdef Ahead ahead
    cdef int64_t at, n, c, ih, last, members, m, r, row
    cdef int64_t channel = plan.kernel_rows * plan.grad_output_strides[1]
    cdef int32_t algorithm = plan.algorithm
    t.f.terms = 0
    if algorithm == GATHER:
        if not make_gathers(plan, &t, (end - begin) * plan.group * plan.band, data[0], stored):
            algorithm = SCATTER
        elif (end - begin) * plan.group >= FEW_PLANES * plan.bands:
            find_flat(plan, &t.f, stored)
    if plan.whole:
        find_reach(&plan.h, &t.down)
    if plan.whole or algorithm == PLACE:
        find_places(plan, &t.places)
    # Unit = (n*groups + group)*bands + band: taken apart once, then counted on.
    c = begin // plan.bands if begin > 0 else 0
    ih = (begin - c * plan.bands) * plan.band
    n = quotient(c, plan.groups)
    c = (c - n * plan.groups) * plan.group
    source = (<const element*>data[0] + n * plan.grad_output_strides[0] + c * channel
              + plan.first_column * plan.grad_output_strides[1])
    at = n * plan.out_strides[0] + c * plan.out_strides[1]
    ahead.share = 0
    while begin < end:
        begin += 1
        last = least(ih + plan.band, plan.h.size)
        members = least(plan.group, plan.channels - c)
        ahead.segments = 0
        columns = source
        if algorithm != SCATTER and plan.packs:
            columns = pack_columns(plan, source, scratch, ih, last, members)
        elif algorithm != SCATTER and begin < end:
            ahead = plan_ahead(plan, source + (members * channel if last == plan.h.size else 0),
                               last if last < plan.h.size else 0, members, (last - ih) * members)
        if algorithm == GATHER and plan.turns:
            gather_and_turn(plan, columns, <element*>out + at, scratch, <const Tables*>&t, ih, last, members, &ahead,
                            summed)
        elif plan.streams and algorithm != SCATTER:
            stream_band(plan, columns, <element*>out + at, scratch, <const Tables*>&t, ih, last, members, &ahead,
                        summed)
        elif algorithm == GATHER:
            gather_band(plan, columns, out, at + ih * plan.out_strides[2], scratch, <const Tables*>&t, ih, last,
                        members, &ahead, summed)
        elif algorithm != SCATTER:
            copy_band(plan, <const Tables*>&t, columns, <element*>out + at, ih, last, members, &ahead)
        else:
            for m in range(members):
                if plan.whole:
                    scatter_plane(plan, &t.down, &t.places.across, <real*>scratch, source + m * channel)
                for r in range(ih, last):
                    row = r * plan.w.size if plan.whole else 0
                    if not plan.whole:
                        scatter_row(plan, <real*>scratch, source + m * channel, r)
                    store_sums(plan, out, at + m * plan.out_strides[1] + r * plan.out_strides[2],
                               <real*>scratch + row, stored)
        ih = last
        if ih == plan.h.size:
            ih = 0
            c += members
            source += members * channel
            at += members * plan.out_strides[1]
            if c == plan.channels:
                c = 0
                source += plan.grad_output_strides[0] - plan.channels * channel
                at += plan.out_strides[0] - plan.channels * plan.out_strides[1]
    if plan.streams:
        fence()
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void im2col_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = backward_f32
    row[<int>SLOT_F64] = backward_f64
    row[<int>SLOT_F16] = backward_f16
    row[<int>SLOT_BF16] = backward_bf16
