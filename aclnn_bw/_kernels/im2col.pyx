"""Im2colBackward: out[h, w] = sum of gradOutput[(c*kH + kh)*kW + kw, lh*Lw + lw] over the kernel positions and windows
with lh*sH - pH + kh*dH == h and lw*sW - pW + kw*dW == w.

The formula is that of PyTorch's col2im (aten/src/ATen/native/im2col.h), gathered instead of scattered: every element of
out has one writer.

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64. A position has at most one term from
each kernel position; they are added in ascending kh*kW + kw, starting from +0.0. The sum is rounded once to
gradOutput's dtype, and that, if it is another one, once to out's. Every path below adds the same terms in the same
order, so bands, threads, strides and instruction sets do not show in the result.

Bounds. Rows of windows are those with 0 <= lh < Lh (`find_rows`, `scatter_row`, `interleave_band`), and of a row only
the windows 0 <= lw < Lw are read; a vector that would reach beyond the column is masked off, or read lane by lane, or
from the nearest place within it and shifted; of rows of two phases 16 bits are read whole where what lies around is
other columns of the plane, and cut off (aclnn_bw_phases in im2col.h). Where loads cannot be masked, a small plane is
made one row only if its columns lie side by side and every term's vectors stay inside them (`find_flat`). A vector that
reaches beyond its row of out is stored only where the rows behind it belong to the same unit and are made
after it. Phase 1 has proved that both views lie inside their storage. Nothing is read through a prefetched address.

Why this form. Columns outnumber the image by kH*kW, and each is read once: the time is that of reading them. GATHER
adds all terms of a vector of positions in a register and stores it once, without a scratch plane to clear, to add to
and to copy. It reads kH*kW places at once, which no hardware prefetcher follows, so each row prefetches its share of
what the next unit reads, in the order of memory, into the L2 cache: 1.2 to 1.6 times as fast as without, where the
columns come from beyond the L2 cache. The first and last vectors of a row miss some columns: masks made once per range
say which lanes. With a stride > 1 along w the positions of one phase, w mod sW, are gathered like a row of stride 1,
and the phases interleaved. On AVX2 the two phases of stride 2 are interleaved in registers: kernels of 3x3 and 4x4 take
0.25 to 0.45 of the time in 16 bits, 0.3 to 0.7 in float32. kernel == stride (INTERLEAVE) is a transposition in
registers; two columns in vectors of 32 bytes are 1.1 to 1.2 times as fast as in those of 16. Rows of one vector under
windows of stride and dilation 1 along h need no list of the rows that reach them: planes of 7x7 take half as long.
Without AVX-512, small planes of as many windows as positions along w are one row altogether, under lanes from a table
made once per range: in 16 bits 2 to 3 times as fast for planes of 7x7 to 28x28, in float32 1.3 to 1.6 times for 14x14.
Arrays beyond the cache are written past it, from stretches made in the L1 cache: kernels of 16x16 and stride 16 are 1.4
times as fast, those of 2x2 1.2 times. Small planes of few windows along w at a stride of 3 or more leave the vectors of
their phases mostly empty: their windows are added one by one to a plane of sums in the L1 cache (on AVX2, 2 to 8
windows in a row: 1 to 6 times as fast, mostly 2 to 4; two rows of two in 16 bits: 9 times). Columns with gaps between
their windows are packed first, those of one unit at a time. Pads, strides and dilations beyond 2**31, and kernels too
large for the tables, are left to SCATTER.

Groups. A unit may be several channels. Small planes share what is found out about a row. Where the columns of a
position lie side by side, those of several channels are transposed into the scratch together, a cache line at a time,
while lines further on are prefetched in the order of memory (3x3 beyond the cache, on AVX2: 1.5 times as fast in
float32 as channel by channel, 1.6 times in 16 bits, no faster in float64). Where the channels of out lie side by side,
the rows of a cache line's worth of channels are gathered in the scratch and stored by a transposition (1.5 times as
fast as an element at a time in float32, 1.6 in float64, 1.8 in 16 bits).
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uintptr_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.im2col cimport (
    GATHER, INTERLEAVE, MOST_COLUMNS, MOST_PHASES, MOST_TAPS, SCATTER, Axis, Im2colPlan, Phase,
)
from aclnn_bw._core.types cimport (
    ALIGNMENT, ALL_GOOD, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable,
)
from aclnn_bw._kernels.rows cimport (
    BLOCK, add_row, bfloat, cell, element, half, load_row, narrow_row, narrow_to_bfloat_row, narrow_to_half_row, real,
    store_row, widen_row, zero_row,
)

cdef extern from "convert.h" nogil:
    void round_to_odd_row "aclnn_bw_round_to_odd_row" (float* to, const double* source, int64_t n) noexcept

cdef extern from "im2col.h" nogil:
    ctypedef struct edges "aclnn_bw_edges":
        pass
    bint find_edges "aclnn_bw_find_edges" (
        edges* e, int64_t n, int64_t windows, int64_t window, int64_t window_step, int64_t taps, int64_t step,
        int64_t length, int64_t width) noexcept
    ctypedef struct window_rows "aclnn_bw_window_rows":
        int64_t pad
        int64_t taps
        int64_t windows
        int64_t width
        int64_t pitch
    bint is_one_edge "aclnn_bw_is_one_edge" (const edges* e) noexcept
    const bint HAS_FLAT "ACLNN_BW_HAS_FLAT"
    const bint CUTS "ACLNN_BW_CUTS"
    const bint CUTS_16 "ACLNN_BW_CUTS_16"
    ctypedef struct flat "aclnn_bw_flat":
        int64_t terms
    bint find_flat "aclnn_bw_find_flat" (
        flat* f, const window_rows* h, int64_t height, int64_t dilation, const edges* e, int64_t column, int64_t most,
        int64_t item) noexcept
    int64_t flat_float "aclnn_bw_flat_float" (
        float* to, int64_t i, int64_t n, const float* source, int64_t first, const flat* f) noexcept
    int64_t flat_double "aclnn_bw_flat_double" (
        double* to, int64_t i, int64_t n, const double* source, int64_t first, const flat* f) noexcept
    int64_t flat_half "aclnn_bw_flat_half" (
        half* to, int64_t i, int64_t n, const half* source, int64_t first, const flat* f) noexcept
    int64_t flat_bfloat "aclnn_bw_flat_bfloat" (
        bfloat* to, int64_t i, int64_t n, const bfloat* source, int64_t first, const flat* f) noexcept
    ctypedef struct walk "aclnn_bw_walk":
        int64_t stride
        int64_t dilation
        int64_t pad
        int64_t taps
        int64_t windows
        int64_t tap_step
        int64_t window_step
    const bint HAS_PHASES "ACLNN_BW_HAS_PHASES"
    enum:
        READS_ROUND "ACLNN_BW_READS_ROUND"
        READS_PLANE "ACLNN_BW_READS_PLANE"
        READS_COLUMN "ACLNN_BW_READS_COLUMN"
    ctypedef struct phases "aclnn_bw_phases":
        int64_t blocks
        int64_t n
        int64_t windows
        int64_t step
        int64_t window_step
        int64_t length
        int64_t[2] taps
        int64_t[2] window
        int64_t[2] base
        int64_t pitch
        int64_t down
        int64_t next
        int64_t reads
        int64_t most
    bint find_phase_lanes "aclnn_bw_find_phases" (
        phases* e, const walk* h, int64_t height, int64_t item) noexcept
    void gather_float_phases "aclnn_bw_gather_float_phases" (
        float* to, int64_t down, const float* limit, const float* source, const walk* h, int64_t row, int64_t end,
        const phases* e) noexcept
    void gather_double_phases "aclnn_bw_gather_double_phases" (
        double* to, int64_t down, const double* limit, const double* source, const walk* h, int64_t row, int64_t end,
        const phases* e) noexcept
    void gather_half_phases "aclnn_bw_gather_half_phases" (
        half* to, int64_t down, const half* limit, const half* source, const walk* h, int64_t row, int64_t end,
        const phases* e) noexcept
    void gather_bfloat_phases "aclnn_bw_gather_bfloat_phases" (
        bfloat* to, int64_t down, const bfloat* limit, const bfloat* source, const walk* h, int64_t row, int64_t end,
        const phases* e) noexcept
    void stream "aclnn_bw_stream" (void* to, const void* source, int64_t size) noexcept
    void end_streams "aclnn_bw_end_streams" () noexcept
    void prefetch "aclnn_bw_prefetch" (uintptr_t source, int64_t size) noexcept
    void turn_float_rows "aclnn_bw_turn_float_rows" (
        float* to, int64_t pitch, const float* source, int64_t column, int64_t n, int64_t columns,
        uint16_t zero) noexcept
    void turn_double_rows "aclnn_bw_turn_double_rows" (
        double* to, int64_t pitch, const double* source, int64_t column, int64_t n, int64_t columns,
        uint16_t zero) noexcept
    void turn_bit_rows "aclnn_bw_turn_bit_rows" (
        uint16_t* to, int64_t pitch, const uint16_t* source, int64_t column, int64_t n, int64_t columns,
        uint16_t zero) noexcept
    int64_t lanes_of "aclnn_bw_lanes_of" (size_t size) noexcept
    void gather_float "aclnn_bw_gather_float" (
        float* to, int64_t room, const float* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept
    void gather_double "aclnn_bw_gather_double" (
        double* to, int64_t room, const double* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept
    void gather_half "aclnn_bw_gather_half" (
        half* to, int64_t room, const half* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept
    void gather_bfloat "aclnn_bw_gather_bfloat" (
        bfloat* to, int64_t room, const bfloat* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept
    void gather_float_rows "aclnn_bw_gather_float_rows" (
        float* to, int64_t down, const float* limit, const float* source, const window_rows* h, int64_t row,
        int64_t end, const edges* e) noexcept
    void gather_double_rows "aclnn_bw_gather_double_rows" (
        double* to, int64_t down, const double* limit, const double* source, const window_rows* h, int64_t row,
        int64_t end, const edges* e) noexcept
    void gather_half_rows "aclnn_bw_gather_half_rows" (
        half* to, int64_t down, const half* limit, const half* source, const window_rows* h, int64_t row,
        int64_t end, const edges* e) noexcept
    void gather_bfloat_rows "aclnn_bw_gather_bfloat_rows" (
        bfloat* to, int64_t down, const bfloat* limit, const bfloat* source, const window_rows* h, int64_t row,
        int64_t end, const edges* e) noexcept
    void sum_half "aclnn_bw_sum_half" (
        float* to, int64_t room, const half* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept
    void sum_bfloat "aclnn_bw_sum_bfloat" (
        float* to, int64_t room, const bfloat* source, const int64_t* rows, const int64_t* starts, int64_t count,
        const edges* e) noexcept


cdef inline void gather(element* to, int64_t room, const element* source, const int64_t* rows, const int64_t* starts,
                        int64_t count, const edges* e) noexcept nogil:
    """A row of sums, rounded to the type that is stored."""
    if element is half:
        gather_half(to, room, source, rows, starts, count, e)
    elif element is bfloat:
        gather_bfloat(to, room, source, rows, starts, count, e)
    elif element is double:
        gather_double(to, room, source, rows, starts, count, e)
    else:
        gather_float(to, room, source, rows, starts, count, e)


cdef inline void gather_rows(element* to, int64_t down, const element* limit, const element* source,
                             const window_rows* h, int64_t row, int64_t end, const edges* e) noexcept nogil:
    """The rows [row, end), of one block each."""
    if element is half:
        gather_half_rows(to, down, limit, source, h, row, end, e)
    elif element is bfloat:
        gather_bfloat_rows(to, down, limit, source, h, row, end, e)
    elif element is double:
        gather_double_rows(to, down, limit, source, h, row, end, e)
    else:
        gather_float_rows(to, down, limit, source, h, row, end, e)


cdef inline void gather_phases(element* to, int64_t down, const element* limit, const element* source, const walk* h,
                               int64_t row, int64_t end, const phases* e) noexcept nogil:
    """The rows [row, end), of two phases each."""
    if element is half:
        gather_half_phases(to, down, limit, source, h, row, end, e)
    elif element is bfloat:
        gather_bfloat_phases(to, down, limit, source, h, row, end, e)
    elif element is double:
        gather_double_phases(to, down, limit, source, h, row, end, e)
    else:
        gather_float_phases(to, down, limit, source, h, row, end, e)


cdef inline void gather_sums(real* to, int64_t room, const element* source, const int64_t* rows, const int64_t* starts,
                             int64_t count, const edges* e) noexcept nogil:
    """A row of sums as they are."""
    if element is half:
        sum_half(<float*>to, room, source, rows, starts, count, e)
    elif element is bfloat:
        sum_bfloat(<float*>to, room, source, rows, starts, count, e)
    elif element is double:
        gather_double(<double*>to, room, source, rows, starts, count, e)
    else:
        gather_float(<float*>to, room, source, rows, starts, count, e)


cdef inline void gather_cells(element* to, const element* source, int64_t along, int64_t n) noexcept nogil:
    """to[:n] = source[: n*along : along]."""
    cdef int64_t i
    for i in range(n):
        to[i] = source[i * along]


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
        narrow_to_half_row(halves, single, n)
        store_row(<half*>out + at, along, <const half*>halves, n)
    else:
        narrow_to_bfloat_row(bfloats, single, n)
        store_row(<bfloat*>out + at, along, <const bfloat*>bfloats, n)


cdef void store_sums(const Im2colPlan* plan, char* out, int64_t at, real* sums, const element* stored) noexcept nogil:
    """A row of out, from element `at` on: the sums, rounded to gradOutput's dtype and then to out's."""
    cdef int64_t along = plan.out_strides[3]
    cdef element[BLOCK] narrow
    cdef int64_t i, m
    if along == 1 and not plan.converts:
        narrow_row(<element*>out + at, <const real*>sums, plan.w.size)
        return
    i = 0
    while i < plan.w.size:
        m = least(plan.w.size - i, BLOCK)
        if not plan.converts:
            narrow_row(<element*>narrow, <const real*>(sums + i), m)
            store_row(<element*>out + at + i * along, along, <const element*>narrow, m)
        else:
            if element is half or element is bfloat:
                narrow_row(<element*>narrow, <const real*>(sums + i), m)
                widen_row(sums + i, <const element*>narrow, m)
            convert_row(plan, out, at + i * along, <const real*>(sums + i), m)
        i += m


cdef void add_plain(real* to, int64_t step, const real* source, int64_t along, int64_t n) noexcept nogil:
    cdef int64_t i
    if along == 1 and step == 1:
        add_row(to, source, n)
    else:
        for i in range(n):
            to[i * step] += source[i * along]


cdef void add_loaded(real* to, int64_t step, const element* source, int64_t along, int64_t n) noexcept nogil:
    cdef real[BLOCK] block
    cdef int64_t i, m
    i = 0
    while i < n:
        m = least(n - i, BLOCK)
        load_row(<real*>block, source + i * along, along, m)
        add_plain(to + i * step, step, <const real*>block, 1, m)
        i += m


cdef inline void add_windows(real* to, int64_t step, const element* source, int64_t along, int64_t n) noexcept nogil:
    """to[: n*step : step] += source[: n*along : along]."""
    if (real is float and element is float) or (real is double and element is double):
        add_plain(to, step, source, along, n)
    else:
        add_loaded(to, step, source, along, n)


cdef void scatter_row(const Im2colPlan* plan, real* sums, const element* source, int64_t ih) noexcept nogil:
    """The sums of row ih, one row of windows at a time. `source` is the plane's first column that can reach the image.

    Pads, strides and dilations are anything up to 2**63 - 1: positions in the padded image are unsigned.
    """
    cdef int64_t across = plan.grad_output_strides[1]
    cdef int64_t along = plan.grad_output_strides[2]
    cdef uint64_t down = <uint64_t>ih + <uint64_t>plan.h.pad
    cdef uint64_t edge, position
    cdef int64_t kh, kw, lh, begin, end
    cdef const element* column
    zero_row(sums, plan.w.size)
    for kh in range(plan.h.taps):
        position = <uint64_t>kh * <uint64_t>plan.h.dilation
        if position > down:
            break
        position = down - position
        if plan.h.stride > 1:
            if position % <uint64_t>plan.h.stride != 0:
                continue
            position //= <uint64_t>plan.h.stride
        if position >= <uint64_t>plan.h.windows:
            continue
        lh = <int64_t>position
        for kw in range(plan.w.taps):
            # The window lw lies at lw*stride + position - edge.
            edge = <uint64_t>plan.w.pad
            position = <uint64_t>kw * <uint64_t>plan.w.dilation
            begin = 0
            if position < edge:
                begin = <int64_t>((edge - position - 1) // <uint64_t>plan.w.stride + 1) if plan.w.stride > 1 else (
                    <int64_t>(edge - position))
                if begin >= plan.w.windows:
                    continue
            position += <uint64_t>begin * <uint64_t>plan.w.stride
            position -= edge
            if position >= <uint64_t>plan.w.size:
                continue
            end = plan.w.size - <int64_t>position
            if plan.w.stride > 1:
                end = quotient(end - 1, plan.w.stride) + 1
            end = least(begin + end, plan.w.windows)
            column = source + (kh * plan.kernel_width + kw) * across + (lh * plan.w.windows + begin) * along
            add_windows(sums + position, plan.w.stride, column, along, end - begin)


# The windows [begin, end) whose kernel positions lie in the image.
cdef struct Reach:
    int64_t[MOST_TAPS] begin
    int64_t[MOST_TAPS] end


cdef void find_reach(const Axis* axis, Reach* reach) noexcept nogil:
    cdef int64_t position = -axis.pad   # of the first window's
    cdef int64_t k
    for k in range(axis.taps):
        reach.begin[k] = ceil_div(-position, axis.stride) if position < 0 else 0
        reach.end[k] = 0
        if position < axis.size:
            reach.end[k] = least(quotient(axis.size - 1 - position, axis.stride) + 1, axis.windows)
        position += axis.dilation


cdef void scatter_columns(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums, const real* source,
                          int64_t column, int64_t kh) noexcept nogil:
    """Add the columns of kernel row kh, `column` elements apart, to a plane of sums."""
    cdef int64_t down = plan.h.stride * plan.w.size
    cdef int64_t step = plan.w.stride
    cdef int64_t kw, lh, lw, begin, end
    cdef const real* windows
    cdef real* to
    sums += (kh * plan.h.dilation - plan.h.pad) * plan.w.size - plan.w.pad
    for kw in range(plan.w.taps):
        begin = w.begin[kw]
        end = w.end[kw]
        lh = h.begin[kh]
        to = sums + lh * down
        windows = source + lh * plan.w.windows
        while lh < h.end[kh]:
            for lw in range(begin, end):
                to[lw * step] += windows[lw]
            to += down
            windows += plan.w.windows
            lh += 1
        sums += plan.w.dilation
        source += column


cdef void scatter_widened(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums, const element* source,
                          int64_t column, int64_t kh) noexcept nogil:
    """scatter_columns of another type, which fit MOST_COLUMNS."""
    cdef real[MOST_COLUMNS] loaded
    cdef int64_t length = plan.h.windows * plan.w.windows
    cdef int64_t kw
    if column == length:
        widen_row(<real*>loaded, source, plan.w.taps * length)
    else:
        for kw in range(plan.w.taps):
            widen_row(<real*>loaded + kw * length, source + kw * column, length)
    scatter_columns(plan, h, w, sums, <const real*>loaded, length, kh)


cdef void scatter_plane(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums,
                        const element* source) noexcept nogil:
    """The sums of a plane, one kernel position after the other. `source` is its first column that can reach the
    image."""
    cdef int64_t column = plan.grad_output_strides[1]
    cdef int64_t kh
    memset(sums, 0, <size_t>(plan.h.size * plan.w.size) * sizeof(real))
    for kh in range(plan.h.taps):
        if (real is float and element is float) or (real is double and element is double):
            scatter_columns(plan, h, w, sums, source, column, kh)
        else:
            scatter_widened(plan, h, w, sums, source, column, kh)
        source += plan.kernel_width * column


cdef int64_t find_rows(const Im2colPlan* plan, int64_t ih, int64_t* rows, int64_t* starts) noexcept nogil:
    """The rows of windows that reach row ih, ascending in kh: as offsets from the plane's first column, and as those
    from their own column. Returns their number."""
    cdef int64_t pitch = plan.kernel_width * plan.column
    cdef int64_t count = 0
    cdef int64_t kh
    cdef int64_t position = ih + plan.h.pad
    cdef int64_t lh
    for kh in range(plan.h.taps):
        if position < 0:
            break
        lh = position
        if plan.h.stride > 1:
            lh = quotient(position, plan.h.stride)
            if lh * plan.h.stride != position:
                lh = plan.h.windows
        if lh < plan.h.windows:
            starts[count] = lh * plan.w.windows
            rows[count] = starts[count] + kh * pitch
            count += 1
        position -= plan.h.dilation
    return count


cdef void interleave_phases(cell* to, const cell* sums, int64_t pitch, int64_t stride, int64_t n) noexcept nogil:
    """to[i*stride + j] = sums[j*pitch + i]."""
    cdef const cell* second = sums + pitch
    cdef int64_t i, j
    if stride == 2:
        for i in range(n // 2):
            to[2 * i] = sums[i]
            to[2 * i + 1] = second[i]
        if n % 2 != 0:
            to[n - 1] = sums[n // 2]
        return
    for j in range(stride):
        for i in range((n - j + stride - 1) // stride):
            to[i * stride + j] = sums[j * pitch + i]


cdef enum:
    ROWS_AT_ONCE = 16       # of one vector each: what the next unit reads is prefetched in between
    PHASES_AT_ONCE = 256    # elements of rows of two phases, about: the same
    FEW_COLUMNS = 16        # read side by side, row by row of out: 1.3 times as fast for kernels of 3x3 and 4x4

# What the next unit reads: `segments` stretches of memory. It is prefetched row by row while this unit is worked on:
# columns are far apart, more than the hardware follows.
cdef struct Ahead:
    uintptr_t at
    int64_t left            # bytes of this segment
    int64_t segments        # with this one
    int64_t size            # bytes of a segment
    int64_t step            # bytes from a segment to the next
    int64_t share           # bytes to prefetch with each row


cdef inline void look_ahead(Ahead* ahead, int64_t rows) noexcept nogil:
    cdef int64_t share = ahead.share * rows
    cdef int64_t m
    while ahead.segments > 0 and share > 0:
        m = least(share, ahead.left)
        prefetch(ahead.at, m)
        share -= m
        ahead.at += <uintptr_t>m
        ahead.left -= m
        if ahead.left <= 0:
            ahead.at += <uintptr_t>(ahead.step - ahead.size)
            ahead.left = ahead.size
            ahead.segments -= 1


cdef Ahead plan_ahead(const Im2colPlan* plan, const element* source, int64_t ih, int64_t members,
                      int64_t rows) noexcept nogil:
    """The windows of the rows [ih, ih + plan.band) of `members` planes from `source` on, shared out to `rows` rows."""
    cdef Ahead ahead
    cdef int64_t first = 0
    cdef int64_t last = plan.h.windows
    if plan.bands > 1:
        # Of the middle of the kernel: the other kernel rows are shifted by less than they are long, mostly.
        first = ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation // 2
        last = least(ceil_div(first + plan.band, plan.h.stride), last)
        first = quotient(most(first, 0), plan.h.stride)
    ahead.segments = plan.kernel_rows * members
    ahead.size = most(last - first, 0) * plan.w.windows * sizeof(element)
    ahead.step = plan.grad_output_strides[1] * sizeof(element)
    if ahead.size == ahead.step:
        ahead.size *= ahead.segments
        ahead.segments = 1
    ahead.at = <uintptr_t>source + <uintptr_t>(first * plan.w.windows * sizeof(element))
    ahead.left = ahead.size
    ahead.share = quotient(ahead.size * ahead.segments, rows) + 64
    if ahead.size == 0:
        ahead.segments = 0
    return ahead


cdef inline void turn_rows(element* to, int64_t pitch, const element* source, int64_t column, int64_t n,
                           int64_t columns, bint summed) noexcept nogil:
    """to[i*pitch + j] = source[j*column + i] for i < n, j < columns; + 0.0 if they are not sums already."""
    if element is double:
        turn_double_rows(to, pitch, source, column, n, columns, 0)
    elif element is float:
        turn_float_rows(to, pitch, source, column, n, columns, 0)
    else:
        turn_bit_rows(<uint16_t*>to, pitch, <const uint16_t*>source, column, n, columns, 0 if summed else 0x8000)


cdef enum:
    WIDEST_FLAT = 16        # elements of a vector of gather_flat, at most
    FLAT_AT_ONCE = 64       # elements, at most
    FEW_PLANES = 16         # of fewer, the tables of gather_flat take longer than they save


cdef inline window_rows make_window_rows(const Im2colPlan* plan) noexcept nogil:
    cdef window_rows h
    h.pad = plan.h.pad
    h.taps = plan.h.taps
    h.windows = plan.h.windows
    h.width = plan.w.windows
    h.pitch = plan.kernel_width * plan.column
    return h


# What the rows of a range have in common: their edges, one phase each, and what is there instead where it can be.
cdef struct Tables:
    edges[MOST_PHASES] e
    flat f
    walk h
    phases g
    Reach down
    Reach across


cdef bint make_flat(const Im2colPlan* plan, flat* f, const edges* e, const element* stored) noexcept nogil:
    """Whether all positions of a plane are like one row."""
    cdef window_rows h = make_window_rows(plan)
    cdef int64_t length = h.windows * h.width
    cdef bint cuts = CUTS_16 if element is half or element is bfloat else CUTS
    cdef int64_t lanes = lanes_of(sizeof(element))
    if not cuts and quotient(lanes, 2) < h.width <= lanes:
        # Rows that are most of a vector: gather_one_block takes 0.8 of the time for 64 planes of 7x7 in float32.
        return False
    if plan.h.stride > 1 or plan.w.stride > 1 or h.width != plan.w.size or (cuts and (
            plan.packs or plan.column != length)):
        return False
    return find_flat(f, &h, plan.h.size, plan.h.dilation, e, plan.column,
                     ((h.taps - 1) * plan.kernel_width + plan.w.taps) * length if cuts else 0, sizeof(element))


cdef void gather_flat(const Im2colPlan* plan, const element* source, element* out, const flat* f, int64_t ih,
                      int64_t end, int64_t members, Ahead* ahead) noexcept nogil:
    """gather_band for dense planes whose positions are like one row."""
    cdef int64_t columns = plan.w.size
    cdef int64_t n = (end - ih) * columns
    cdef int64_t rows = quotient(FLAT_AT_ONCE, columns) + 1
    cdef int64_t i
    while members > 0:
        i = 0
        while i < n:
            look_ahead(ahead, rows)
            if element is double:
                i = flat_double(out, i, n, source, ih * columns, f)
            elif element is float:
                i = flat_float(out, i, n, source, ih * columns, f)
            elif element is half:
                i = flat_half(out, i, n, source, ih * columns, f)
            else:
                i = flat_bfloat(out, i, n, source, ih * columns, f)
        source += plan.channel
        out += plan.out_strides[1]
        members -= 1


cdef void gather_one_block(const Im2colPlan* plan, const element* source, element* out, const edges* e, int64_t ih,
                           int64_t end, int64_t members, int64_t down, Ahead* ahead) noexcept nogil:
    """gather_band for rows of one vector, strides and dilations of 1 along h: no list of the rows that reach a row."""
    cdef window_rows h = make_window_rows(plan)
    cdef int64_t row, next_row
    cdef int64_t m
    cdef const element* limit = NULL
    # Whole planes of a unit that lie one behind the other are one run of rows.
    cdef bint dense = plan.out_strides[1] == plan.h.size * down and end - ih == plan.h.size
    source += plan.phases[0].window
    for m in range(members):
        if down == plan.w.size:
            limit = out + (members - m if dense else 1) * (end - ih) * down
        row = ih
        while row < end:
            next_row = least(row + ROWS_AT_ONCE, end)
            look_ahead(ahead, next_row - row)
            gather_rows(out + (row - ih) * down, down, limit, source, <const window_rows*>&h, row, next_row, e)
            row = next_row
        source += plan.channel
        out += plan.out_strides[1]


cdef void gather_two_phases(const Im2colPlan* plan, const element* source, element* out, const Tables* t, int64_t ih,
                            int64_t end, int64_t members, int64_t down, Ahead* ahead) noexcept nogil:
    """gather_band for rows of two phases."""
    cdef int64_t rows = quotient(PHASES_AT_ONCE, plan.w.size) + 1
    cdef int64_t m, row, next_row
    cdef const element* limit = NULL
    # Whole planes of a unit that lie one behind the other are one run of rows.
    cdef bint dense = plan.out_strides[1] == plan.h.size * down and end - ih == plan.h.size
    for m in range(members):
        if down == plan.w.size:
            limit = out + (members - m if dense else 1) * (end - ih) * down
        row = ih
        while row < end:
            next_row = least(row + rows, end)
            look_ahead(ahead, next_row - row)
            gather_phases(out + (row - ih) * down, down, limit, source, &t.h, row, next_row, &t.g)
            row = next_row
        source += plan.channel
        out += plan.out_strides[1]


cdef void gather_band(const Im2colPlan* plan, const element* source, char* out, int64_t at, char* scratch,
                      const Tables* t, int64_t ih, int64_t end, int64_t members, Ahead* ahead,
                      const real* summed) noexcept nogil:
    """Rows [ih, end) of `members` planes of out, from element `at` on; rows that are to be transposed are dense."""
    cdef int64_t[MOST_TAPS] rows
    cdef int64_t[MOST_TAPS] starts
    cdef int64_t columns = plan.w.size
    cdef int64_t phases = plan.w.stride
    cdef int64_t down = columns if plan.turns else plan.out_strides[2]
    cdef bint direct = phases == 1 and not plan.converts and (plan.turns or plan.out_strides[3] == 1)
    cdef int64_t room
    cdef real* sums = <real*>(scratch + plan.at_sums)
    cdef real* row = sums + plan.phase_pitch * phases if phases > 1 else sums
    cdef const element* plane
    cdef const Phase* phase
    cdef int64_t count, j, m
    if HAS_FLAT and t.f.terms > 0 and direct and down == columns and (end - ih) * columns >= WIDEST_FLAT:
        gather_flat(plan, source, <element*>out + at, &t.f, ih, end, members, ahead)
        return
    if direct and plan.h.stride == 1 and plan.h.dilation == 1 and is_one_edge(t.e):
        gather_one_block(plan, source, <element*>out + at, t.e, ih, end, members, down, ahead)
        return
    if HAS_PHASES and t.g.blocks > 0:
        gather_two_phases(plan, source, <element*>out + at, t, ih, end, members, down, ahead)
        return
    while ih < end:
        look_ahead(ahead, members)
        count = find_rows(plan, ih, <int64_t*>rows, <int64_t*>starts)
        plane = source
        room = (end - ih) * down if down == columns else 0
        for m in range(members):
            if direct:
                gather(<element*>out + at + m * plan.out_strides[1], room, plane + plan.phases[0].window,
                       <const int64_t*>rows, <const int64_t*>starts, count, t.e)
            else:
                for j in range(phases):
                    phase = &plan.phases[j]
                    gather_sums(sums + j * plan.phase_pitch, 0, plane + phase.kw * plan.column + phase.window,
                                <const int64_t*>rows, <const int64_t*>starts, count, t.e + j)
                if phases > 1:
                    interleave_phases(row, <const real*>sums, plan.phase_pitch, phases, columns)
                if plan.turns:
                    narrow_row(<element*>out + at, <const real*>row, columns)
                else:
                    store_sums(plan, out, at + m * plan.out_strides[1], row, source)
            plane += plan.channel
        at += down
        ih += 1


cdef void gather_and_turn(const Im2colPlan* plan, const element* source, element* out, char* scratch,
                          const Tables* t, int64_t ih, int64_t end, int64_t members, Ahead* ahead,
                          const real* summed) noexcept nogil:
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


cdef bint make_phases(const Im2colPlan* plan, phases* g, walk* h, int64_t item) noexcept nogil:
    """Whether rows are made of two phases that are stored as they are summed."""
    cdef const Phase* phase
    cdef int64_t common
    cdef int j
    if not HAS_PHASES or plan.w.stride != 2 or plan.converts or not (plan.turns or plan.out_strides[3] == 1):
        return False
    common = gcd(plan.h.dilation, plan.h.stride)
    h.stride = plan.h.stride
    h.dilation = plan.h.dilation
    h.pad = plan.h.pad
    h.taps = plan.h.taps
    h.windows = plan.h.windows
    h.tap_step = h.stride // common
    h.window_step = h.dilation // common
    g.n = plan.w.size
    g.windows = plan.w.windows
    g.step = plan.kw_step * plan.column - plan.window_step
    g.window_step = plan.window_step
    g.length = plan.h.windows * plan.w.windows
    for j in range(2):
        phase = &plan.phases[j]
        g.taps[j] = phase.taps
        g.window[j] = phase.window
        g.base[j] = phase.kw * plan.column + phase.window
    g.pitch = plan.kernel_width * plan.column
    g.down = h.window_step * plan.w.windows
    g.next = h.tap_step * g.pitch - g.down
    # Packed columns have a line before and behind; loads of more than 16 bits are masked.
    g.reads = READS_ROUND if plan.packs or item > 2 else READS_PLANE if plan.column == g.length else READS_COLUMN
    g.most = ((plan.h.taps - 1) * plan.kernel_width + plan.w.taps) * plan.column
    return find_phase_lanes(g, h, plan.h.size, item)


cdef bint find_all_edges(const Im2colPlan* plan, edges* e, int64_t width) noexcept nogil:
    """Whether they fit their tables."""
    cdef const Phase* phase
    cdef int64_t j
    for j in range(plan.w.stride):
        phase = &plan.phases[j]
        if not find_edges(e + j, quotient(plan.w.size - 1 - j, plan.w.stride) + 1 if j < plan.w.size else 0,
                          plan.w.windows, phase.window, plan.window_step, phase.taps,
                          plan.kw_step * plan.column - plan.window_step,
                          plan.h.windows * plan.w.windows, width):
            return False
    return True


cdef const element* pack_columns(const Im2colPlan* plan, const element* source, char* scratch, int64_t ih,
                                 int64_t end, int64_t members) noexcept nogil:
    """Make the columns dense that the rows [ih, end) of `members` planes need; returns where the windows' first row
    would be. A -0.0 may become +0.0, which changes no sum."""
    cdef element* to = <element*>(scratch + ALIGNMENT)
    cdef int64_t across = plan.grad_output_strides[1]
    cdef int64_t along = plan.grad_output_strides[2]
    cdef int64_t columns = (members - 1) * plan.kernel_rows + (plan.h.taps - 1) * plan.kernel_width + plan.w.taps
    cdef int64_t top = ceil_div(ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation, plan.h.stride)
    cdef int64_t bottom = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows)
    cdef int64_t n = (bottom - top) * plan.w.windows
    cdef int64_t begin = top * plan.w.windows
    cdef int64_t line = ALIGNMENT // sizeof(element)
    cdef int64_t i, k, m
    cdef Ahead ahead
    source += begin * along
    if n > 0 and across == 1:
        ahead.at = <uintptr_t>source + <uintptr_t>(2 * line * along * sizeof(element))
        ahead.segments = n - 2 * line
        # With the line that the last element may lie in; spread evenly over the calls below.
        ahead.left = ahead.size = columns * sizeof(element) + ALIGNMENT - sizeof(element)
        ahead.step = along * sizeof(element)
        ahead.share = quotient(line * ahead.size, most(quotient(columns, line), 1)) + ALIGNMENT
        i = 0
        while i < n:
            if i + line > n:
                i = most(n - line, 0)
            k = 0
            while k < columns:
                m = line if columns - k >= 2 * line else columns - k
                look_ahead(&ahead, 1)
                turn_rows(to + k * plan.column + i, plan.column, source + i * along + k, along, m,
                          least(line, n - i), True)
                k += m
            i += line
    else:
        for k in range(columns):
            gather_cells(to + k * plan.column, source + k * across, along, n)
    return to - begin


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


cdef void interleave_band(const Im2colPlan* plan, const element* source, element* out__hw, int64_t ih,
                          int64_t end, Ahead* ahead) noexcept nogil:
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


cdef void stream_band(const Im2colPlan* plan, const element* source, element* out, char* scratch,
                      const Tables* t, int64_t ih, int64_t end, int64_t members, Ahead* ahead,
                      const real* summed) noexcept nogil:
    """Rows [ih, end) of dense planes, made a stretch at a time in the L1 cache, whose lines then go past the caches."""
    cdef element* lines = <element*>(scratch + plan.at_lines)
    cdef int64_t columns = plan.w.size
    cdef int64_t row, n
    if plan.algorithm == GATHER and members * (end - ih) <= plan.stretch and plan.bands == 1:
        gather_band(plan, source, <char*>lines, 0, scratch, t, ih, end, members, ahead, summed)
        stream(out, lines, members * (end - ih) * columns * sizeof(element))
        return
    while members > 0:
        row = ih
        while row < end:
            n = least(plan.stretch, end - row)
            if plan.algorithm == GATHER:
                gather_band(plan, source, <char*>lines, 0, scratch, t, row, row + n, 1, ahead, summed)
            else:
                interleave_band(plan, source, lines - row * columns, row, row + n, ahead)
            stream(out + row * columns, lines, n * columns * sizeof(element))
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
    t.f.terms = t.g.blocks = 0
    if algorithm == GATHER and not make_phases(plan, &t.g, &t.h, sizeof(element)):
        if not find_all_edges(plan, <edges*>t.e, lanes_of(sizeof(real))):
            algorithm = SCATTER
        elif HAS_FLAT and (end - begin) * plan.group >= FEW_PLANES * plan.bands:
            make_flat(plan, &t.f, <const edges*>t.e, stored)
    if plan.whole:
        find_reach(&plan.h, &t.down)
        find_reach(&plan.w, &t.across)
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
        elif algorithm == INTERLEAVE:
            for m in range(members):
                interleave_band(plan, columns + m * plan.channel, <element*>out + at + m * plan.out_strides[1], ih,
                                last, &ahead)
        else:
            for m in range(members):
                if plan.whole:
                    scatter_plane(plan, &t.down, &t.across, <real*>scratch, source + m * channel)
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
        end_streams()
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const Im2colPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void im2col_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table."""
    table.im2col_backward[<int>SLOT_F32] = backward_f32
    table.im2col_backward[<int>SLOT_F64] = backward_f64
    table.im2col_backward[<int>SLOT_F16] = backward_f16
    table.im2col_backward[<int>SLOT_BF16] = backward_bf16
