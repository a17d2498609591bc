# cython: cdivision=True
"""MaxPool2dWithMaskBackward. The forward that makes its mask has a unit of its own, max_pool2d_forward.pyx.

gradInput[ih, iw] = the sum of gradOutput[oh, ow] over the windows (oh, ow) whose recorded maximum lies at (ih, iw); the
formula is that of PyTorch's max_pool2d_with_indices_backward, with the position read from a mask (max_pool2d.pxd of the
core draws it). float32 and the 16-bit types are summed in float32, float64 in float64, from +0.0 in ascending (oh, ow),
but where GATHER meets 3 kernel columns at stride 1 and padding 1: there each ow is summed by itself, oh ascending, and
then these sums in ascending ow. A 16-bit result is rounded once. No term is multiplied: a NaN or inf reaches exactly
its own positions.

Backward, GATHER (max_pool2d_columns.pxd): for a row ih of gradInput and a class of its columns, the windows that hold
them and the kernel positions at which they do are the same for the whole row. A vector of columns tests one bit of as
many mask words (or compares as many indices) and adds the gradients that this selects. There is no zero fill, no index
arithmetic, and one writer for each element; any number of set bits is the same code. For windows of 2x2 and 3x3, whose
columns are known when this is compiled, it takes a quarter to 0.7 of the time of scattering with AVX-512; with AVX2
that is true of bits and of 16-bit types at stride 2 (scatters_sooner of the core). Rows go in chunks that stay in the
L1 cache; what cannot be read or written where it lies (strides, and 16-bit types without AVX-512, but for most results with AVX2)
passes through the scratch, 16 channels at a time where channels lie side by side. SCATTER, for all other kernels of
more than a few positions, for rows of few windows and for rows too long for the scratch: the sums of a band of rows lie
in the scratch, or, if that is a whole plane and a dense one, in gradInput itself. Indices are added for four channels
side by side, for neighbouring windows with the same maximum wait for each other's sums. For kernels of up to 16x16
positions the words of a block of windows are first turned into each channel's kernel row and column, by a few
operations for 16 channels and 8 or 16 windows together; where a channel has just one bit in each of them, its windows
are added one by one without a branch. Else, and in larger kernels, the set bits of each word are walked (3 to 7 times
as long). PLANES, for the bits of planes of at most 64 positions and fewer windows than a vector of words holds: the
places of a window's bits are found for all planes of a group in one go, in gradInput itself where its planes are dense.
All add in the same order.

Indices of short rows of 3 columns at stride 1 and padding 1 are scattered to sums of their own for each kernel column,
for a position meets ascending windows at descending columns.

An argmax mask is checked chunk by chunk, before its windows are summed: where a plane has few windows against a list of
their bounds, without regard to where a row ends, else row by row. Where an index lies outside its window, the unit is
searched anew for the first.

Why every access is in bounds: the plan has proved the shapes of all tensors and that the mask is one contiguous
container of at least mask_end bytes. What GATHER reads, max_pool2d_columns.pxd tells; what is prefetched is not read.
Words are read at k < K and p < Ho*Wo only, but for vectors that reach beyond a row without leaving the table. An index
is compared, never used as an address, except in SCATTER, where it has been found in its window; if the band is not the
whole plane, SCATTER compares it with the band's bounds besides. The sums of kernel columns lie H*W apart, which is
added to an index at most twice. The place of a bit is the element behind the band's sums if its row or column is outside
(aclnn_bw_window_places); sums in gradInput have no such element, so that the bits of such a channel are walked.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport (
    BLOCK, GATHER, LANES, MOST_ROWS, PLANES, SAME, TEAM, THREE_BY_ONE, THREE_BY_TWO, TWO_BY_TWO, MaxPool2dPlan,
    PoolAxis,
)
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable
from aclnn_bw._kernels.max_pool2d_columns cimport (
    Plane, Term, fill_edges, gradient, line_of_bits, line_rows, line_slid, line_terms, sum_columns,
)
from aclnn_bw._kernels.rows cimport (
    bfloat, cell, copy, element, half, narrow_row, real, round_to_half_row, store_row, widen_row,
)
from aclnn_bw._kernels.simd cimport CHOOSES_HALVES, VECTOR_BYTES

cdef extern from "max_pool2d.h" nogil:
    int64_t pack_16 "aclnn_bw_pack_16" (
        float* to, int64_t pitch, const float* source, int64_t along, int64_t n) noexcept
    void window_columns "aclnn_bw_window_columns" (
        int32_t* first, int32_t* length, int64_t n, int64_t left, int64_t step, int64_t kernel, int64_t width) noexcept
    int RECIPROCAL_BITS "ACLNN_BW_RECIPROCAL_BITS"
    void list_windows "aclnn_bw_list_windows" (
        uint32_t* lists, int64_t size, int64_t at, const int32_t* first, const int32_t* length, int64_t n,
        int64_t lines, int64_t pad, int64_t step, int64_t kernel, int64_t height, int64_t width) noexcept
    bint check_listed "aclnn_bw_check_listed" (
        const char* mask, const uint32_t* lists, int64_t size, int64_t n, uint32_t width,
        uint32_t reciprocal) noexcept
    bint index_places "aclnn_bw_index_places" (
        uint32_t* at, int64_t at_pitch, const char* mask, int64_t mask_pitch, int64_t count, const uint32_t* lists,
        int64_t size, int64_t n, uint32_t width, uint32_t reciprocal, uint32_t apart) noexcept
    void join_f32 "aclnn_bw_join_f32" (float* to, const float* sums, int64_t pitch, int64_t n) noexcept
    void join_f64 "aclnn_bw_join_f64" (double* to, const double* sums, int64_t pitch, int64_t n) noexcept
    bint may_be_bad "aclnn_bw_may_be_bad" (
        const char* mask, const int32_t* first, const int32_t* length, int64_t n, int64_t lines, int64_t top,
        int64_t bottom, int64_t step, int64_t width) noexcept
    int64_t first_bad_index "aclnn_bw_first_bad_index" (
        const char* mask, const int32_t* first, const int32_t* length, int64_t n, int64_t top, int64_t bottom,
        int64_t width) noexcept
    void scatter_f32 "aclnn_bw_scatter_f32" (
        float* sums, int64_t sum_pitch, int64_t step, const float* grad, int64_t grad_pitch, const char* words,
        int first, uint32_t lanes, int64_t n) noexcept
    void scatter_f64 "aclnn_bw_scatter_f64" (
        double* sums, int64_t sum_pitch, int64_t step, const double* grad, int64_t grad_pitch, const char* words,
        int first, uint32_t lanes, int64_t n) noexcept
    void scatter_u16 "aclnn_bw_scatter_u16" (
        uint16_t* sums, int64_t sum_pitch, int64_t step, const uint16_t* grad, int64_t grad_pitch, const char* words,
        int first, uint32_t lanes, int64_t n) noexcept
    void scatter_at_f32 "aclnn_bw_scatter_at_f32" (
        float* sums, int64_t sum_pitch, uint32_t low, uint32_t size, const float* grad, int64_t grad_pitch,
        const char* mask, int64_t mask_pitch, int64_t channels, int64_t n, bint whole) noexcept
    void scatter_at_f64 "aclnn_bw_scatter_at_f64" (
        double* sums, int64_t sum_pitch, uint32_t low, uint32_t size, const double* grad, int64_t grad_pitch,
        const char* mask, int64_t mask_pitch, int64_t channels, int64_t n, bint whole) noexcept
    void scatter_at_u16 "aclnn_bw_scatter_at_u16" (
        uint16_t* sums, int64_t sum_pitch, uint32_t low, uint32_t size, const uint16_t* grad, int64_t grad_pitch,
        const char* mask, int64_t mask_pitch, int64_t channels, int64_t n, bint whole) noexcept
    void window_starts "aclnn_bw_window_starts" (
        uint16_t* tops, uint16_t* lefts, int64_t windows, int64_t rows, int64_t down, int64_t along,
        int64_t pad) noexcept
    uint32_t window_codes "aclnn_bw_window_codes" (
        uint16_t* nibbles, const char* words, int64_t pitch, int64_t kernel_rows, int64_t kernel_columns,
        int64_t n) noexcept
    bint window_places "aclnn_bw_window_places" (
        uint16_t* at, const uint16_t* nibbles, int c, const uint16_t* tops, uint16_t top, const uint16_t* lefts,
        uint16_t left, uint16_t height, uint16_t width, int64_t n) noexcept
    void scatter_to_f32 "aclnn_bw_scatter_to_f32" (
        float* sums, int64_t sum_pitch, const uint16_t* at, const float* grad, int64_t grad_pitch, int64_t channels,
        int64_t n) noexcept
    void scatter_to_f64 "aclnn_bw_scatter_to_f64" (
        double* sums, int64_t sum_pitch, const uint16_t* at, const double* grad, int64_t grad_pitch, int64_t channels,
        int64_t n) noexcept
    void scatter_to_u16 "aclnn_bw_scatter_to_u16" (
        uint16_t* sums, int64_t sum_pitch, const uint16_t* at, const uint16_t* grad, int64_t grad_pitch,
        int64_t channels, int64_t n) noexcept
    ctypedef struct Grid "aclnn_bw_grid":
        int64_t rows
        int64_t columns
        int64_t window_rows
        int64_t window_columns
        int64_t[2] kernel
        int64_t[2] stride
        int64_t[2] pad
    void scatter_planes_f32 "aclnn_bw_scatter_planes_f32" (
        float* sums, int64_t sum_pitch, const float* grad, int64_t grad_pitch, const char* mask, int64_t pitch,
        int lanes, const Grid*) noexcept
    void scatter_planes_f64 "aclnn_bw_scatter_planes_f64" (
        double* sums, int64_t sum_pitch, const double* grad, int64_t grad_pitch, const char* mask, int64_t pitch,
        int lanes, const Grid*) noexcept
    void scatter_planes_u16 "aclnn_bw_scatter_planes_u16" (
        uint16_t* sums, int64_t sum_pitch, const uint16_t* grad, int64_t grad_pitch, const char* mask, int64_t pitch,
        int lanes, const Grid*) noexcept
    void settle "aclnn_bw_settle" (uint16_t* to, const uint16_t* source, int64_t n) noexcept


# What is scattered: terms of sums, or bits of float16 and bfloat16 where no two windows have a position in common.
ctypedef fused term:
    float
    double
    uint16_t

cdef enum:
    TOGETHER = 4            # channels to whose sums windows are added at a time
    LONG_PLANE = 16384      # bytes
    CACHE_WAY = 2048        # bytes: half a way of an L1 cache


# --- backward -------------------------------------------------------------------------------------------------------

cdef inline int64_t first_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """The first window that holds the position."""
    return ceil_div(most(position + axis.pad - axis.kernel + 1, 0), axis.stride)


cdef inline int64_t end_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """One more than the last window that holds the position."""
    return least(quotient(position + axis.pad, axis.stride) + 1, axis.out)


cdef inline bint misses(const MaxPool2dPlan* plan, const char* mask, const int32_t* columns, int64_t first,
                        int64_t n) noexcept nogil:
    """Whether some of n indices lies outside its window; the windows are those from `first` of the listed ones."""
    return check_listed(mask, <const uint32_t*>columns + 2 * plan.w.out + first,
                        plan.listed * plan.h.out * plan.w.out, n, <uint32_t>plan.w.size, plan.reciprocal)


cdef int64_t check_indices(const MaxPool2dPlan* plan, const char* mask__hw, const int32_t* columns, int64_t oh,
                           int64_t end) noexcept nogil:
    """The first window from row `oh` to row `end` whose index lies outside it, counted in the plane; or -1."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef int64_t bad, top, lines
    cdef bint tried = False
    if plan.listed > 0 and not misses(plan, mask__hw + 4 * oh * w.out, columns, oh * w.out, (end - oh) * w.out):
        return -1
    while oh < end:
        top = oh * h.stride - h.pad
        if top >= 0 and not tried:
            # Windows that lie inside along h are looked at together.
            lines = least(end, quotient(h.size - h.kernel + h.pad, h.stride) + 1) - oh
            if lines > 1:
                tried = may_be_bad(mask__hw + 4 * oh * w.out, columns, columns + w.out, w.out, lines, top,
                                   top + h.kernel, h.stride, w.size)
                if not tried:
                    oh += lines
                    continue
        bad = first_bad_index(mask__hw + 4 * oh * w.out, columns, columns + w.out, w.out, most(top, 0),
                              least(top + h.kernel, h.size), w.size)
        if bad >= 0:
            return oh * w.out + bad
        oh += 1
    return -1


cdef inline void store_cells(element* to, const term* sums, int64_t n) noexcept nogil:
    """to[:n] = sums[:n], narrowed, or their bits."""
    if term is uint16_t:
        copy(to, <const element*>sums, <size_t>n * sizeof(element))
    else:
        narrow_row(to, sums, n)


cdef inline void store_sums(const MaxPool2dPlan* plan, element* to, int64_t stride, term* sums, element* cells,
                            int64_t n) noexcept nogil:
    """to[: n*stride : stride] = sums[:n], rounded; nothing if the sums have been made there."""
    if term is float:
        if plan.reduced:
            round_to_half_row(sums, n)
    if stride == 1:
        if <void*>to != <void*>sums:
            store_cells(to, <const term*>sums, n)
    else:
        store_cells(cells, <const term*>sums, n)
        store_row(to, stride, <const element*>cells, n)


cdef void store_planes(const MaxPool2dPlan* plan, element* to__chw, term* sums, int64_t count, int64_t rows,
                       element* cells) noexcept nogil:
    """The sums of `rows` rows of `count` planes, as long as they lie side by side in one go."""
    cdef int64_t n = plan.w.size
    cdef int64_t c, row
    if plan.image_strides[3] == 1 and plan.image_strides[2] == n:
        n *= rows
        rows = 1
        if plan.image_strides[1] == n and plan.sum_pitch == n:
            n *= count
            count = 1
    for c in range(count):
        for row in range(rows):
            store_sums(plan, to__chw + c * plan.image_strides[1] + row * plan.image_strides[2], plan.image_strides[3],
                       sums + c * plan.sum_pitch + row * n, cells, n)


cdef inline void pack_cells(cell* to, int64_t pitch, const cell* source, int64_t along, int64_t across, int64_t n,
                            int64_t count) noexcept nogil:
    """to[c*pitch + i] = source[c*across + i*along], for c < count and i < n."""
    cdef int64_t c
    cdef int64_t i = 0
    if along == 1:
        for c in range(count):
            copy(to + c * pitch, source + c * across, <size_t>n * sizeof(cell))
    elif count == LANES and across == 1:
        # Channels lie side by side: a line is read once, not once for each channel.
        if cell is float:
            i = pack_16(to, pitch, source, along, n)
        while i < n:
            for c in range(LANES):
                to[c * pitch + i] = source[i * along + c]
            i += 1
    else:
        for c in range(count):
            for i in range(n):
                to[c * pitch + i] = source[c * across + i * along]


cdef inline void pack_row(element* to, int64_t pitch, const element* source, int64_t along, int64_t across, int64_t n,
                          int64_t count) noexcept nogil:
    if element is half or element is bfloat:
        pack_cells(<uint16_t*>to, pitch, <const uint16_t*>source, along, across, n, count)
    else:
        pack_cells(to, pitch, source, along, across, n, count)


cdef inline void load_cells(term* to, const element* source, int64_t n) noexcept nogil:
    """to[:n] = source[:n], widened, or the bits of source[:n] + 0."""
    if term is uint16_t:
        settle(to, <const uint16_t*>source, n)
    else:
        widen_row(to, source, n)


cdef inline void load_channels(const MaxPool2dPlan* plan, term* to, int64_t pitch, const element* source, int64_t n,
                               int64_t count, element* cells) noexcept nogil:
    """A row of gradOutput, or n elements that lie side by side, of each of `count` channels from `source`, widened (and
    rounded), `pitch` apart."""
    cdef int64_t along = plan.pooled_strides[3]
    cdef int64_t across = plan.pooled_strides[1]
    cdef int64_t c
    if along == 1 and across == n and pitch == n:
        n *= count
        count = 1
    if along == 1:
        for c in range(count):
            load_cells(to + c * pitch, source + c * across, n)
    elif (term is float and element is float) or (term is double and element is double):
        pack_row(to, pitch, source, along, across, n, count)
    else:
        pack_row(cells, n, source, along, across, n, count)
        for c in range(count):
            load_cells(to + c * pitch, <const element*>cells + c * n, n)
    if term is float:
        if plan.reduced:
            for c in range(count):
                round_to_half_row(to + c * pitch, n)


# A form of the loop each, for what is known of a kernel's columns is compiled in.

cdef void three_by_two(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh, bint padded,
                       bint team, const gradient* read) noexcept nogil:
    if padded and team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 1, False, TEAM, read)
    elif padded:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 1, False, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 0, False, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 0, False, 1, read)


cdef void three_by_two_indices(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                               bint padded, bint team, const gradient* read) noexcept nogil:
    if padded and team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 1, True, TEAM, read)
    elif padded:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 1, True, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 0, True, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 3, 2, 0, True, 1, read)


cdef void two_by_two(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh, bint padded,
                     bint team, const gradient* read) noexcept nogil:
    if padded and team:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 1, False, TEAM, read)
    elif padded:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 1, False, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 0, False, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 0, False, 1, read)


cdef void two_by_two_indices(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                             bint padded, bint team, const gradient* read) noexcept nogil:
    if padded and team:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 1, True, TEAM, read)
    elif padded:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 1, True, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 0, True, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 2, 2, 0, True, 1, read)


cdef void three_by_one(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh,
                       bint indexed, bint team, const gradient* read) noexcept nogil:
    if indexed and team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, True, TEAM, read)
    elif indexed:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, True, 1, read)
    elif team:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, False, TEAM, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, 3, 1, 0, False, 1, read)


cdef void any_columns(element* to, int64_t to_step, const Plane* w, int64_t ih, int64_t end, int64_t oh, int64_t k,
                      int64_t s, int64_t p, bint indexed, const gradient* read) noexcept nogil:
    if indexed and s == 1:
        sum_columns(to, to_step, w, ih, end, oh, k, 1, p, True, 1, read)
    elif indexed:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, p, True, 1, read)
    elif s == 1:
        sum_columns(to, to_step, w, ih, end, oh, k, 1, p, False, 1, read)
    else:
        sum_columns(to, to_step, w, ih, end, oh, k, 2, p, False, 1, read)


cdef void lines_of_bits(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                        const gradient* read) noexcept nogil:
    """Words as they lie at each kernel column, where that takes less than slides."""
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, False)
        if count == 3:
            line_of_bits(to, &w, terms, rows * w.columns, 3, read)
        else:
            line_of_bits(to, &w, terms, rows * w.columns, count, read)
        ih += rows
        to += rows * to_step


cdef void slid_bits(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                    const gradient* read) noexcept nogil:
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, False)
        if w.channels == TEAM and count == 3:
            line_slid(to, &w, terms, rows * w.columns, 0, 3, False, TEAM, read)
        elif w.channels == TEAM:
            line_slid(to, &w, terms, rows * w.columns, 0, count, False, TEAM, read)
        else:
            line_slid(to, &w, terms, rows * w.columns, 0, count, False, 1, read)
        ih += rows
        to += rows * to_step


cdef void slid_indices(element* to, int64_t to_step, const Plane* plane, int64_t ih, int64_t end,
                       const gradient* read) noexcept nogil:
    cdef Plane w = plane[0]
    cdef int64_t rows = line_rows(&w, to_step, end - ih, read)
    cdef int64_t count, channel, t
    cdef Term[MOST_ROWS] terms
    while ih < end:
        count = line_terms(terms, &w, ih, rows, True)
        channel = 0
        if VECTOR_BYTES == 64 and w.channels == TEAM:
            if count == 3:
                line_slid(to, &w, terms, rows * w.columns, ih * w.columns, 3, True, TEAM, read)
            else:
                line_slid(to, &w, terms, rows * w.columns, ih * w.columns, count, True, TEAM, read)
            channel = TEAM
        while channel < w.channels:
            if count == 3:
                line_slid(to + channel * w.to_channel, &w, terms, rows * w.columns, ih * w.columns, 3, True, 1, read)
            else:
                line_slid(to + channel * w.to_channel, &w, terms, rows * w.columns, ih * w.columns, count, True, 1,
                          read)
            for t in range(count):
                terms[t].grad += w.grad_channel
                terms[t].mask += w.mask_channel
            channel += 1
        ih += rows
        to += rows * to_step


cdef inline void sum_rows(const MaxPool2dPlan* plan, element* to, int64_t to_step, const Plane* w, int64_t ih,
                          int64_t end, int64_t oh, bint team, const gradient* read) noexcept nogil:
    """Rows [ih, end) of gradInput of a team of channels, or of one."""
    if plan.known == SAME and plan.argmax:
        slid_indices(to, to_step, w, ih, end, read)
    elif plan.known == SAME and VECTOR_BYTES == 64:
        slid_bits(to, to_step, w, ih, end, read)
    elif plan.known == SAME:
        lines_of_bits(to, to_step, w, ih, end, read)
    elif plan.known == THREE_BY_TWO and plan.argmax:
        three_by_two_indices(to, to_step, w, ih, end, oh, plan.w.pad, team, read)
    elif plan.known == THREE_BY_TWO:
        three_by_two(to, to_step, w, ih, end, oh, plan.w.pad, team, read)
    elif plan.known == TWO_BY_TWO and plan.argmax:
        two_by_two_indices(to, to_step, w, ih, end, oh, plan.w.pad, team, read)
    elif plan.known == TWO_BY_TWO:
        two_by_two(to, to_step, w, ih, end, oh, plan.w.pad, team, read)
    elif plan.known == THREE_BY_ONE:
        three_by_one(to, to_step, w, ih, end, oh, plan.argmax, team, read)
    else:
        any_columns(to, to_step, w, ih, end, oh, plan.w.kernel, plan.w.stride, plan.w.pad, plan.argmax, read)


cdef inline void gather_rows(const MaxPool2dPlan* plan, char* to, int64_t to_step, const Plane* w, int64_t ih,
                             int64_t end, int64_t oh, bint team, const real* summed,
                             const element* stored) noexcept nogil:
    """The last two arguments give their types only."""
    if real is double:
        sum_rows(plan, <double*>to, to_step, w, ih, end, oh, team, <const double*>NULL)
    elif element is half or element is bfloat:
        if CHOOSES_HALVES:
            sum_rows(plan, <element*>to, to_step, w, ih, end, oh, team, <const element*>NULL)
        else:
            sum_rows(plan, <element*>to, to_step, w, ih, end, oh, team, <const float*>NULL)
    else:
        sum_rows(plan, <float*>to, to_step, w, ih, end, oh, team, <const float*>NULL)


cdef inline int64_t prefetch_distance(int64_t plane, int64_t team) noexcept nogil:
    """Bytes: to the same place in the next planes that are summed, or where planes are long, further on in them."""
    return team * plane if plane < LONG_PLANE else LONG_PLANE // 4


cdef inline bint in_one_team(const MaxPool2dPlan* plan, const real* summed, const element* stored) noexcept nogil:
    """Whether all channels of a group are summed at a time (0.75 of the time of four): where nothing passes through the
    scratch, and planes do not fall on the same lines of the cache (twice the time)."""
    if (VECTOR_BYTES == 64 or plan.known != SAME or plan.argmax or plan.reduced or element is half
            or element is bfloat):
        return False
    return (plan.pooled_strides[3] == 1 and plan.image_strides[3] == 1
            and (not plan.flat or (plan.pooled_strides[2] == plan.w.out and plan.image_strides[2] == plan.w.size))
            and plan.pooled_strides[1] * <int64_t>sizeof(element) % CACHE_WAY != 0
            and plan.image_strides[1] * <int64_t>sizeof(element) % CACHE_WAY != 0)


cdef bint gather_band(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask, int64_t lane,
                      int64_t count, element* grad_input__chw, char* scratch, int64_t ih, int64_t end,
                      bint one_team, const real* summed) noexcept nogil:
    """Rows [ih, end) of the planes of `count` channels from channel `lane` of a group; `mask` is the group's table, or
    the first of the planes of indices. False if it has met an index outside its window."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef char* packed = scratch + plan.at_rows
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef const int32_t* columns = <const int32_t*>(scratch + plan.at_columns)
    cdef int64_t down = plan.image_strides[2]
    cdef int64_t along = plan.image_strides[3]
    cdef int64_t row_pitch = plan.pooled_strides[2]
    cdef int64_t checked = 0
    cdef int64_t ahead = count if VECTOR_BYTES < 64 and one_team else <int64_t>TEAM
    cdef int64_t chunk = plan.chunk
    cdef int64_t oh, oh_end, stop, row, channel, j, team
    cdef const char* grad
    cdef element* to__hw
    cdef real* sums
    cdef char* to
    # Whether the kernel reads and writes elements, and where they lie; else rows of sums, or packed ones.
    cdef bint read = (real is float and element is float) or (real is double and element is double)
    cdef bint written = read
    cdef bint direct, in_place
    cdef Plane plane
    if element is half or element is bfloat:
        read = CHOOSES_HALVES
        written = True
    read = read and not plan.reduced
    written = written and not plan.reduced
    direct = read and plan.pooled_strides[3] == 1 and (not plan.flat or row_pitch == w.out)
    in_place = written and along == 1 and (not plan.flat or down == w.size)
    cdef int64_t item = sizeof(element) if read else sizeof(real)
    plane.far = plan.far
    plane.edges = <const uint16_t*>(scratch + plan.at_edges)
    plane.column_step = 2 * plan.pitch
    plane.window_rows = h.out
    plane.windows = w.out
    plane.rows = h.size
    plane.columns = w.size
    plane.kernel = h.kernel
    plane.stride = h.stride
    plane.pad = h.pad
    plane.grad_channel = plan.pooled_strides[1] * item
    plane.mask_channel = 4 * h.out * w.out
    plane.to_channel = plan.image_strides[1] if in_place else chunk * w.size
    plane.grad_ahead = prefetch_distance(plane.grad_channel, ahead)
    plane.mask_ahead = prefetch_distance(plane.mask_channel, ahead)
    plane.to_ahead = prefetch_distance(
        plan.image_strides[1] * <int64_t>(sizeof(element) if written else sizeof(real)), ahead)
    if not direct:
        row_pitch = plan.row_pitch
    plane.grad_step = row_pitch * item
    while ih < end:
        stop = least(end, ih + chunk)
        oh = first_window(h, ih)
        oh_end = most(oh, end_window(h, stop - 1))
        grad = <const char*>grad_output__chw
        if not direct:
            plane.grad_channel = (oh_end - oh) * row_pitch * item
            # Row oh of the plane would lie at grad + oh*pitch; rows before oh are not read.
            grad = packed - oh * row_pitch * item
            for row in range(oh, oh_end):
                if read:
                    pack_row(<element*>packed + (row - oh) * row_pitch, (oh_end - oh) * row_pitch,
                             grad_output__chw + row * plan.pooled_strides[2], plan.pooled_strides[3],
                             plan.pooled_strides[1], w.out, count)
                else:
                    load_channels(plan, <real*>packed + (row - oh) * row_pitch, (oh_end - oh) * row_pitch,
                                  grad_output__chw + row * plan.pooled_strides[2], w.out, count, cells)
        j = 0
        while j < count:
            team = plan.team if j + plan.team <= count else 1
            if VECTOR_BYTES < 64 and plan.known == SAME:
                team = least(count if one_team else plan.team, count - j)
            plane.channels = team
            plane.grad = grad + j * plane.grad_channel
            plane.mask = mask + j * plane.mask_channel if plan.argmax else mask
            plane.bit = <int>(lane + j)
            to__hw = grad_input__chw + j * plan.image_strides[1] + ih * down
            if plan.argmax:
                for channel in range(team):
                    if check_indices(plan, plane.mask + channel * plane.mask_channel, columns, most(oh, checked),
                                     oh_end) >= 0:
                        return False
            to = <char*>to__hw if in_place else scratch + plan.at_sums
            gather_rows(plan, to, down if in_place else w.size, &plane, ih, stop, oh, team > 1, summed,
                        <const element*>NULL)
            if not in_place:
                for channel in range(team):
                    for row in range(stop - ih):
                        if written:
                            store_row(to__hw + channel * plan.image_strides[1] + row * down, along,
                                      <const element*>to + channel * plane.to_channel + row * w.size, w.size)
                        else:
                            sums = <real*>to + channel * plane.to_channel + row * w.size
                            store_sums(plan, to__hw + channel * plan.image_strides[1] + row * down, along, sums, cells,
                                       w.size)
            j += team
        checked = oh_end
        ih = stop
    return True


cdef void scatter_words(const MaxPool2dPlan* plan, term* sums, int64_t sum_pitch, const term* grad, int64_t grad_pitch,
                        const char* mask, int64_t lane, uint32_t lanes, int64_t ih, int64_t rows, int64_t oh,
                        int64_t begin, int64_t end) noexcept nogil:
    """Windows [begin, end) of row oh, any number of bits: `lanes` of the channels from `lane`; grad is window 0."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef int64_t kh, kw, row, ow, ow_end
    cdef const char* words
    cdef term* to
    for kh in range(h.kernel):
        row = oh * h.stride - h.pad + kh - ih
        if not 0 <= row < rows:
            continue
        # Ascending windows of one row reach a position at descending kw.
        kw = w.kernel - 1
        while kw >= 0:
            # The windows of the row whose position kw lies in the image.
            ow = most(ceil_div(most(w.pad - kw, 0), w.stride), begin)
            ow_end = least(quotient(w.size - 1 + w.pad - kw, w.stride) + 1, end)
            if w.size - 1 + w.pad - kw >= 0 and ow < ow_end:
                words = mask + 2 * ((kh * w.kernel + kw) * plan.pitch + oh * w.out + ow)
                to = sums + row * w.size + ow * w.stride - w.pad + kw
                if term is float:
                    scatter_f32(to, sum_pitch, w.stride, grad + ow, grad_pitch, words, <int>lane, lanes,
                                ow_end - ow)
                elif term is double:
                    scatter_f64(to, sum_pitch, w.stride, grad + ow, grad_pitch, words, <int>lane, lanes,
                                ow_end - ow)
                else:
                    scatter_u16(to, sum_pitch, w.stride, grad + ow, grad_pitch, words, <int>lane, lanes,
                                ow_end - ow)
            kw -= 1


cdef void scatter_places(const MaxPool2dPlan* plan, term* sums, int64_t sum_pitch, bint in_place, const term* grad,
                         int64_t grad_pitch, int64_t grad_step, const char* mask, int64_t lane, int64_t count,
                         uint16_t* places, int64_t ih, int64_t rows, int64_t oh, int64_t oh_end) noexcept nogil:
    """Rows [oh, oh_end) of windows, no more than a block, of `count` channels: a channel that has exactly one bit in
    each window by its places, which `in_place` must be all inside, any other bit by bit. Either adds the windows of a
    position in ascending order."""
    cdef const PoolAxis* w = &plan.w
    cdef uint16_t* tops = places
    cdef uint16_t* lefts = places + BLOCK
    cdef uint16_t* nibbles = places + 2 * BLOCK
    cdef uint16_t* at = places + 10 * BLOCK
    cdef uint32_t lanes = <uint32_t>((1 << count) - 1)
    cdef int64_t start = 0
    cdef int64_t n, j, row, width, channels
    cdef uint32_t other
    while start < (oh_end - oh) * w.out:
        n = least((oh_end - oh) * w.out - start, BLOCK)     # a row beyond a block goes in pieces
        other = window_codes(nibbles, mask + 2 * (oh * w.out + start), plan.pitch, plan.h.kernel, w.kernel,
                             n) >> lane & lanes
        j = 0
        while j < count:
            # The next channels, as far as they have one bit each, up to TOGETHER.
            if other >> j & 1:
                j += 1
                continue
            channels = 0
            while channels < least(count - j, TOGETHER) and not other >> (j + channels) & 1:
                if window_places(at + channels * BLOCK, nibbles, <int>(lane + j + channels), tops,
                                 <uint16_t>(oh * plan.h.stride - plan.h.pad - ih), lefts, <uint16_t>(start * w.stride),
                                 <uint16_t>rows, <uint16_t>w.size, n) and in_place:
                    other |= <uint32_t>1 << (j + channels)
                else:
                    channels += 1
            row = 0
            width = n if grad_step == w.out else least(n, w.out)
            while row * width < n:
                if term is float:
                    scatter_to_f32(sums + j * sum_pitch, sum_pitch, at + row * width,
                                   grad + j * grad_pitch + row * grad_step + start, grad_pitch, channels, width)
                elif term is double:
                    scatter_to_f64(sums + j * sum_pitch, sum_pitch, at + row * width,
                                   grad + j * grad_pitch + row * grad_step + start, grad_pitch, channels, width)
                else:
                    scatter_to_u16(sums + j * sum_pitch, sum_pitch, at + row * width,
                                   grad + j * grad_pitch + row * grad_step + start, grad_pitch, channels, width)
                row += 1
            j += channels
        if other != 0:
            for row in range(oh, oh_end):
                scatter_words(plan, sums, sum_pitch, grad + (row - oh) * grad_step, grad_pitch, mask, lane, other, ih,
                              rows, row, start, least(start + n, w.out))
        start += n


cdef bint scatter_apart(const MaxPool2dPlan* plan, real* sums, const real* grad, int64_t grad_pitch, int64_t grad_step,
                        const char* mask, int64_t count, uint32_t* places, const int32_t* columns, int64_t oh,
                        int64_t oh_end) noexcept nogil:
    """Rows [oh, oh_end) of windows, no more than a block, of `count` channels, each kernel column in sums of its own.
    False if it has met an index outside its window."""
    cdef const PoolAxis* w = &plan.w
    cdef const uint32_t* lists = <const uint32_t*>columns + 2 * w.out + oh * w.out
    cdef int64_t windows = plan.h.out * w.out
    cdef int64_t n = (oh_end - oh) * w.out
    cdef int64_t width = n if grad_step == w.out else w.out
    cdef int64_t j = 0
    cdef int64_t row, channels
    while j < count:
        channels = least(count - j, TOGETHER)
        if index_places(places, BLOCK, mask + 4 * (j * windows + oh * w.out), windows, channels, lists,
                        plan.listed * windows, n, <uint32_t>w.size, plan.reciprocal, <uint32_t>plan.apart):
            return False
        for row in range(quotient(n, width)):
            if real is float:
                scatter_at_f32(sums + j * plan.sum_pitch, plan.sum_pitch, 0, 0, grad + j * grad_pitch
                               + row * grad_step, grad_pitch, <const char*>(places + row * width), BLOCK, channels,
                               width, True)
            else:
                scatter_at_f64(sums + j * plan.sum_pitch, plan.sum_pitch, 0, 0, grad + j * grad_pitch
                               + row * grad_step, grad_pitch, <const char*>(places + row * width), BLOCK, channels,
                               width, True)
        j += channels
    return True


cdef void join_planes(const MaxPool2dPlan* plan, element* to__chw, real* sums, int64_t count,
                      element* cells) noexcept nogil:
    """The planes of `count` channels, whose kernel columns have been summed apart."""
    cdef int64_t n = plan.h.size * plan.w.size
    cdef bint native = (not plan.reduced and plan.image_strides[3] == 1 and plan.image_strides[2] == plan.w.size
                        and ((real is float and element is float) or (real is double and element is double)))
    cdef int64_t c
    for c in range(count):
        if real is float:
            join_f32(<float*>(to__chw + c * plan.image_strides[1]) if native else sums + c * plan.sum_pitch,
                     sums + c * plan.sum_pitch, plan.apart, n)
        else:
            join_f64(<double*>(to__chw + c * plan.image_strides[1]) if native else sums + c * plan.sum_pitch,
                     sums + c * plan.sum_pitch, plan.apart, n)
    if not native:
        store_planes(plan, to__chw, sums, count, plan.h.size, cells)


cdef bint scatter_band(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask, int64_t lanes,
                       element* grad_input__chw, char* scratch, int64_t ih, int64_t rows,
                       const term* kind) noexcept nogil:
    """`rows` rows from row ih of the `lanes` planes of a group. False if it has met an index outside its window."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef bint native = (not plan.reduced
                        and ((term is float and element is float) or (term is double and element is double)))
    cdef bint direct = native and plan.pooled_strides[3] == 1
    cdef bint in_place = ((native or term is uint16_t) and (plan.bands == 1 or plan.aligned)
                          and plan.image_strides[3] == 1
                          and plan.image_strides[2] == w.size and plan.apart == 0)
    cdef int64_t sum_pitch = plan.image_strides[1] if in_place else plan.sum_pitch
    cdef term* packed = <term*>(scratch + plan.at_rows)
    cdef const term* grad = packed
    cdef int64_t grad_pitch = plan.pooled_strides[1] if direct else plan.row_pitch
    cdef int64_t grad_step = plan.pooled_strides[2] if direct else w.out
    cdef term* sums = <term*>(scratch + plan.at_sums)
    cdef uint16_t* places = <uint16_t*>(scratch + plan.at_places)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef const int32_t* columns = <const int32_t*>(scratch + plan.at_columns)
    cdef term* base
    cdef int64_t first = first_window(h, ih)
    cdef int64_t last = end_window(h, ih + rows - 1)
    cdef int64_t lane, swept, j, oh, oh_end, row, width
    cdef const char* indices
    if plan.placed:
        window_starts(places, places + BLOCK, least(w.out, BLOCK), plan.block, h.stride, w.stride, w.pad)
    lane = 0
    while lane < lanes:
        swept = least(plan.sweep, lanes - lane)
        if in_place:
            sums = <term*>(grad_input__chw + lane * sum_pitch + ih * w.size)
        if plan.argmax and plan.apart == 0:
            for j in range(swept if plan.listed < swept or plan.bands > 1
                           or misses(plan, mask + 4 * lane * h.out * w.out, columns, 0, swept * h.out * w.out) else 0):
                if check_indices(plan, mask + 4 * (lane + j) * h.out * w.out, columns, first, last) >= 0:
                    return False
        # Row by row, before windows reach them, it takes 1.1 to 1.5 times as long.
        if in_place and sum_pitch != rows * w.size:
            for j in range(swept):
                memset(sums + j * sum_pitch, 0, <size_t>(rows * w.size) * sizeof(term))
        else:
            memset(sums, 0, <size_t>(swept * sum_pitch) * sizeof(term))
        oh = first
        while oh < last:
            oh_end = least(oh + plan.block, last)
            if direct:
                grad = <const term*>(grad_output__chw + lane * plan.pooled_strides[1] + oh * plan.pooled_strides[2])
            else:
                width = ((oh_end - oh) * w.out if plan.pooled_strides[3] == 1 and plan.pooled_strides[2] == w.out
                         else w.out)
                for row in range(quotient((oh_end - oh) * w.out, width)):
                    load_channels(plan, packed + row * w.out, plan.row_pitch,
                                  grad_output__chw + lane * plan.pooled_strides[1]
                                  + (oh + row) * plan.pooled_strides[2], width, swept, cells)
            if plan.placed:
                scatter_places(plan, sums, sum_pitch, in_place, grad, grad_pitch, grad_step, mask, lane, swept, places,
                               ih, rows, oh, oh_end)
            elif plan.apart > 0:
                if term is not uint16_t:
                    if not scatter_apart(plan, sums, grad, grad_pitch, grad_step, mask + 4 * lane * h.out * w.out,
                                         swept, <uint32_t*>places, columns, oh, oh_end):
                        return False
            elif plan.argmax:
                # Where the plane begins, if all of the indices are added where they stay.
                base = sums - ih * w.size if in_place else sums
                width = (oh_end - oh) * w.out if grad_step == w.out else w.out
                for row in range(quotient((oh_end - oh) * w.out, width)):
                    indices = mask + 4 * ((lane * h.out + oh) * w.out + row * width)
                    if term is float:
                        scatter_at_f32(base, sum_pitch, <uint32_t>(ih * w.size), <uint32_t>(rows * w.size),
                                       grad + row * grad_step, grad_pitch, indices, h.out * w.out, swept, width,
                                       in_place or plan.bands == 1)
                    elif term is double:
                        scatter_at_f64(base, sum_pitch, <uint32_t>(ih * w.size), <uint32_t>(rows * w.size),
                                       grad + row * grad_step, grad_pitch, indices, h.out * w.out, swept, width,
                                       in_place or plan.bands == 1)
                    else:
                        scatter_at_u16(base, sum_pitch, <uint32_t>(ih * w.size), <uint32_t>(rows * w.size),
                                       grad + row * grad_step, grad_pitch, indices, h.out * w.out, swept, width,
                                       in_place or plan.bands == 1)
            else:
                scatter_words(plan, sums, sum_pitch, grad, grad_pitch, mask, lane, <uint32_t>((1 << swept) - 1), ih,
                              rows, oh, 0, w.out)
            oh = oh_end
        if plan.apart > 0:
            if term is not uint16_t:
                join_planes(plan, grad_input__chw + lane * plan.image_strides[1], sums, swept, cells)
        elif not in_place:
            store_planes(plan, grad_input__chw + lane * plan.image_strides[1] + ih * plan.image_strides[2], sums,
                         swept, rows, cells)
        lane += swept
    return True


cdef void scatter_planes(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask, int64_t lanes,
                         element* grad_input__chw, char* scratch, const term* kind) noexcept nogil:
    """The small planes of a group, each in one go."""
    cdef int64_t windows = plan.row_pitch
    cdef int64_t plane = plan.sum_pitch
    cdef int64_t grad_pitch = plan.pooled_strides[1]
    cdef int64_t sum_pitch = plan.image_strides[1]
    cdef bint grad_dense = plan.pooled_strides[3] == 1 and plan.pooled_strides[2] == plan.w.out
    cdef bint sums_dense = plan.image_strides[3] == 1 and plan.image_strides[2] == plan.w.size
    cdef bint native = (not plan.reduced
                        and ((term is float and element is float) or (term is double and element is double)))
    cdef bint sums_direct = sums_dense and (native or term is uint16_t)
    cdef const term* grad = <const term*>grad_output__chw
    cdef term* sums = <term*>grad_input__chw
    cdef term* packed
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef int64_t j, row
    cdef Grid grid
    grid.rows = plan.h.size
    grid.columns = plan.w.size
    grid.window_rows = plan.h.out
    grid.window_columns = plan.w.out
    grid.kernel[0] = plan.h.kernel
    grid.kernel[1] = plan.w.kernel
    grid.stride[0] = plan.h.stride
    grid.stride[1] = plan.w.stride
    grid.pad[0] = plan.h.pad
    grid.pad[1] = plan.w.pad
    if not (native and grad_dense):
        packed = <term*>(scratch + plan.at_rows)
        grad = packed
        if grad_dense:
            load_channels(plan, packed, windows, grad_output__chw, windows, lanes, cells)
        else:
            for row in range(plan.h.out):
                load_channels(plan, packed + row * plan.w.out, windows,
                              grad_output__chw + row * plan.pooled_strides[2], plan.w.out, lanes, cells)
        grad_pitch = windows
    if not sums_direct:
        sums = <term*>(scratch + plan.at_sums)
        sum_pitch = plane
    if sum_pitch == plane:
        memset(sums, 0, <size_t>(lanes * plane) * sizeof(term))
    else:
        for j in range(lanes):
            memset(sums + j * sum_pitch, 0, <size_t>plane * sizeof(term))
    if term is float:
        scatter_planes_f32(sums, sum_pitch, grad, grad_pitch, mask, plan.pitch, <int>lanes, &grid)
    elif term is double:
        scatter_planes_f64(sums, sum_pitch, grad, grad_pitch, mask, plan.pitch, <int>lanes, &grid)
    else:
        scatter_planes_u16(sums, sum_pitch, grad, grad_pitch, mask, plan.pitch, <int>lanes, &grid)
    if not sums_direct:
        store_planes(plan, grad_input__chw, sums, lanes, plan.h.size, cells)


cdef inline bint scatter_unit(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask,
                              int64_t lanes, element* grad_input__chw, char* scratch, int64_t ih, int64_t rows,
                              const term* kind) noexcept nogil:
    if plan.algorithm == PLANES:
        scatter_planes(plan, grad_output__chw, mask, lanes, grad_input__chw, scratch, kind)
        return True
    return scatter_band(plan, grad_output__chw, mask, lanes, grad_input__chw, scratch, ih, rows, kind)


cdef int64_t first_bad_place(const MaxPool2dPlan* plan, const char* mask, const int32_t* columns, int64_t c,
                             int64_t lane, int64_t bad, int64_t ih, int64_t units) noexcept nogil:
    """The place of the first bad index of a range. Channel `lane` of the group at `c` has one, at `bad` of its plane,
    in the first band that has any; earlier channels may have theirs in a later band. `units` more are the range's."""
    cdef int64_t plane = plan.h.out * plan.w.out
    cdef int64_t j, found
    while units > 0 and ih < plan.h.size:
        for j in range(lane):
            found = check_indices(plan, mask + 4 * j * plane, columns, first_window(&plan.h, ih),
                                  end_window(&plan.h, least(ih + plan.band, plan.h.size) - 1))
            if found >= 0:
                lane = j
                bad = found
                break
        ih += plan.band
        units -= 1
    return (c + lane) * plane + bad


cdef int64_t backward(const MaxPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* grad_output__nchw = <const element*>data[0]
    cdef element* grad_input__nchw = <element*>data[3]
    cdef const element* grad_output__chw
    cdef element* grad_input__chw
    cdef int32_t* columns = <int32_t*>(scratch + plan.at_columns)
    cdef uint32_t* lefts
    cdef const char* mask
    cdef int64_t ih, n, group, lane, lanes, rows, bad
    cdef bint one_team = in_one_team(plan, summed, stored)
    cdef int64_t sweep = <int64_t>LANES if one_team else plan.sweep
    cdef bint whole
    if plan.algorithm == GATHER and plan.known == SAME:
        fill_edges(<uint16_t*>(scratch + plan.at_edges), plan.w.size)
    if plan.argmax:
        window_columns(columns, columns + plan.w.out, plan.w.out, -plan.w.pad, plan.w.stride, plan.w.kernel,
                       plan.w.size)
        n = plan.h.out * plan.w.out
        for lane in range(plan.listed):
            list_windows(<uint32_t*>columns + 2 * plan.w.out, plan.listed * n, lane * n, columns, columns + plan.w.out,
                         plan.w.out, plan.h.out, plan.h.pad, plan.h.stride, plan.h.kernel, plan.h.size, plan.w.size)
        if plan.apart > 0:
            lefts = <uint32_t*>columns + 2 * plan.w.out + 3 * plan.listed * n
            for lane in range(n):
                lefts[lane] = lane % plan.w.out == 0
    # Unit = (n*groups + group)*bands + band: taken apart once, then counted on.
    ih = n = 0
    group = begin
    if begin > 0:
        ih = begin % plan.bands * plan.band
        group = begin // plan.bands
        n = group // plan.groups
        group -= n * plan.groups
    while begin < end:
        begin += 1
        rows = least(plan.band, plan.h.size - ih)
        lanes = least(plan.lanes, plan.channels - group * plan.lanes)
        grad_output__chw = (grad_output__nchw + n * plan.pooled_strides[0]
                            + group * plan.lanes * plan.pooled_strides[1])
        grad_input__chw = grad_input__nchw + n * plan.image_strides[0] + group * plan.lanes * plan.image_strides[1]
        mask = data[2] + 2 * (n * plan.groups + group) * plan.kernel_size * plan.pitch
        if plan.argmax:
            mask = data[2] + 4 * (n * plan.channels + group * plan.lanes) * plan.h.out * plan.w.out
        lane = 0
        whole = True
        while whole and lane < lanes and plan.algorithm == GATHER:
            whole = gather_band(plan, grad_output__chw + lane * plan.pooled_strides[1],
                                mask + 4 * lane * plan.h.out * plan.w.out if plan.argmax else mask, lane,
                                least(sweep, lanes - lane), grad_input__chw + lane * plan.image_strides[1], scratch,
                                ih, ih + rows, one_team, summed)
            lane += sweep
        if plan.algorithm != GATHER and plan.disjoint and (element is half or element is bfloat):
            whole = scatter_unit(plan, grad_output__chw, mask, lanes, grad_input__chw, scratch, ih, rows,
                                 <const uint16_t*>NULL)
        elif plan.algorithm != GATHER:
            whole = scatter_unit(plan, grad_output__chw, mask, lanes, grad_input__chw, scratch, ih, rows, summed)
        if plan.argmax and not whole:
            for lane in range(lanes):
                bad = check_indices(plan, mask + 4 * lane * plan.h.out * plan.w.out, <const int32_t*>columns,
                                    first_window(&plan.h, ih), end_window(&plan.h, ih + rows - 1))
                if bad >= 0:
                    return first_bad_place(plan, mask, <const int32_t*>columns,
                                           n * plan.channels + group * plan.lanes, lane, bad, ih + plan.band,
                                           end - begin)
        ih += plan.band
        if ih >= plan.h.size:
            ih = 0
            group += 1
            if group == plan.groups:
                group = 0
                n += 1
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void max_pool2d_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table."""
    table.lane_masks = VECTOR_BYTES == 64
    table.max_pool2d_backward[<int>SLOT_F32] = backward_f32
    table.max_pool2d_backward[<int>SLOT_F64] = backward_f64
    table.max_pool2d_backward[<int>SLOT_F16] = backward_f16
    table.max_pool2d_backward[<int>SLOT_BF16] = backward_bf16
