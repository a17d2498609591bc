"""MaxPool2dWithMask and MaxPool2dWithIndices: out[oh, ow] = the maximum of the window's positions in the image,
ih = oh*sH - pH + kh and iw = ow*sW - pW + kw, and the mask or the indices that say where it lies (max_pool2d.pxd of the
core draws them).

The law is that of PyTorch's max_pool2d (aten/src/ATen/native/cpu/MaxPoolKernel.cpp): positions are compared in
ascending kh*kW + kw; a greater value replaces what was there, and so does a NaN; what a NaN has won no number wins
back. -0.0 and +0.0 are equal. Where no value is above -inf the first position in the image stays.

Numerics. 16-bit types are compared as float32, which is exact both ways; nothing is rounded, but float32 on Ascend910,
to float16, before it is compared. Each lane of a vector is compared by itself in the order above, so its width does not
show in a bit.

A row of the image is split into phases in the scratch, element j of phase r being column j*sW + r - pW: the candidates
of all windows of a row at kernel column kw are then phase kw % sW from element kw // sW on. As many rows are split at a
time as the scratch has room for, without those between windows, and then all their windows are compared, a vector of
windows with all kernel rows in registers. Large kernels are compared along each row of the image first, once for all
windows that it lies in, and the rows of windows joined from that; the order is the same. Places begin at 0, or for an
argmax mask at the window's corner, and grow by one from column to column.

Bounds. Image rows are read at ih in [0, H), and of a row the columns [0, W) (max_pool2d_forward_windows.pxd). A row of
phases has room for every window and every step of the kernel, and for a vector more: what vectors read beyond the last
window lies there, and is not used. It holds -inf where the image has no column: nothing else writes there. The last
vector of a row of windows overlaps the one before; rows that are shorter than a vector, or compared in parts, are
written into the scratch first. Codes may be written beyond their row: what lies there is written afterwards, or is the
margin behind all codes. Words of the mask are written at kernel positions below K and windows below Ho*Wo, and from
there to the pitch they are zeroed; indices at c*Ho*Wo + oh*Wo + ow. Phase 1 has proved the shapes.

| path | when | why |
|---|---|---|
| PHASES | strides up to 8, rows of 4 windows or more | the windows of a row lie side by side at each kernel position |
| . along rows | 5x5 at stride 1 or 2, for one | a row of the image is compared once: 1 to 7.6 times as fast |
| . in parts | others over 24 positions, or too many rows for the scratch | a vector waits for each comparison |
| SCAN | large strides, rows of fewer windows | one window after the other |
| ACROSS (max_pool2d_across.pyx) | channels, of some images too, in small planes | lanes hold channels |
| LAST (max_pool2d_across.pyx) | channels side by side in self, out and any indices | nothing is transposed |
| EACH | indices of planes that int32 does not count | as SCAN, without copies of rows in the scratch |
| codes | bit mask, at most 64 kernel positions, 65,536 windows a row | a compare sets a channel's bits in many words |
| bits | bit mask, larger kernels and rows | a compare for each position takes longer than a store for each window |
| indices | argmax mask, indices | places are counted as indices from the start; int64 ones are widened row by row |

`python -m benchmarks --operator max_pool2d_with_mask` measures.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport EACH, LANES, MOST_COLUMNS, SCAN, MaxPool2d, MaxPool2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.max_pool2d_forward_windows cimport Pass, compare, join_rows, split_pairs
from aclnn_bw._kernels.max_pool2d_indices cimport index_at
from aclnn_bw._kernels.max_pool2d_words cimport clear_share, make_words
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.rows cimport load_row, narrow_row, round_to_half_row, store_row, widened
from aclnn_bw._kernels.simd cimport LINE, VECTOR_BYTES, bfloat, element, half, prefetch, real

cdef enum:
    WHOLE = 24      # positions of a kernel, at most, that are compared one after the other
    PART = 16       # of a larger one, about: parts do not wait for each other
    ROWS_AHEAD = 8192   # bytes: how far ahead rows are fetched, at least


cdef void compare_rows(const Pass* p, element* to, char* places, const real* scratch, real* best, real* labels,
                       const real* starts, const real* firsts) noexcept nogil:
    if not (p.begins and p.ends):
        compare(p, 0, False, to, places, scratch, best, labels, starts, firsts)
    elif p.columns == 2:
        compare(p, 2, True, to, places, scratch, best, labels, starts, firsts)
    elif p.columns == 3:
        compare(p, 3, True, to, places, scratch, best, labels, starts, firsts)
    else:
        compare(p, 0, True, to, places, scratch, best, labels, starts, firsts)


cdef inline const real* compared_row(const MaxPool2dForwardPlan* plan, const element* row, real* cells,
                                     int64_t n) noexcept nogil:
    """n elements of a row of the image as they are compared: where they lie, or in `cells`."""
    if (real is float and element is float) or (real is double and element is double):
        if plan.pool.image_strides[3] == 1 and not plan.pool.reduced:
            return row
    load_row(cells, row, plan.pool.image_strides[3], n)
    if real is float:
        if plan.pool.reduced:
            round_to_half_row(cells, n)
    return cells


cdef inline bint turns_phases(const MaxPool2dForwardPlan* plan) noexcept nogil:
    """Whether a row is transposed into its phases of float32: it takes 0.6 to 0.95 of the time."""
    cdef int64_t stride = plan.pool.w.stride
    return VECTOR_BYTES > 16 and (plan.phases > 3 or (plan.phases == 3 and stride == 3 and (
        VECTOR_BYTES == 64 or plan.pool.w.out > 2 * LANES)))


cdef void turn_phases(const MaxPool2dForwardPlan* plan, float* to, const float* made, int64_t n) noexcept nogil:
    """n elements of each phase: transposed, what all have in the image, element j at column j*stride + phase - pad."""
    cdef int64_t stride = plan.pool.w.stride
    cdef int64_t pad = plan.pool.w.pad
    cdef int64_t columns = plan.pool.w.size + pad
    cdef int64_t begin = ceil_div(pad, stride)
    cdef int64_t end = begin
    cdef int64_t phase
    if columns >= plan.phases:
        end = most(begin, least(quotient(columns - plan.phases, stride) + 1, n))
    if begin < end:
        turn_any(to + begin, plan.phase_pitch, made + begin * stride - pad, stride, end - begin, plan.phases,
                 sizeof(float), NULL)
    for phase in range(plan.phases):
        # There are no more phases than the stride is: before what all have one has one more at most, and so behind it.
        if begin > 0 and (begin - 1) * stride + phase >= pad and (begin - 1) * stride + phase < columns:
            to[begin - 1] = made[(begin - 1) * stride + phase - pad]
        if end < n and end * stride + phase < columns:
            to[end] = made[end * stride + phase - pad]
        to += plan.phase_pitch


cdef void split_row(const MaxPool2dForwardPlan* plan, real* to, const element* row, real* cells) noexcept nogil:
    """A row of the image into its phases, or as it is."""
    cdef int64_t stride = plan.pool.w.stride
    cdef int64_t pad = plan.pool.w.pad
    cdef int64_t size = plan.pool.w.size
    cdef int64_t n = plan.pool.w.out + plan.pool.w.terms - 1      # elements of a phase
    cdef int64_t start, first, end, j, _
    cdef const real* made
    if stride == 1:
        # A kernel may end before the row does.
        size = least(n - pad, size)
        made = compared_row(plan, row, to + pad, size)
        if made != to + pad:
            memcpy(to + pad, made, <size_t>size * sizeof(real))
        return
    made = compared_row(plan, row, cells, size)
    if stride == 2 and plan.phases == 2:
        split_pairs(to + (pad & 1) * plan.phase_pitch + (pad >> 1),
                    to + (~pad & 1) * plan.phase_pitch + ((pad + 1) >> 1), made, size)
        return
    if real is float:
        if turns_phases(plan):
            turn_phases(plan, to, made, n)
            return
    # Of each phase the elements [first, end) lie in the image, element j at column j*stride - start. There are no more
    # phases than the stride is, so either falls once at most: no phase needs a division.
    start = pad
    first = ceil_div(pad, stride)
    end = quotient(size - 1 + pad, stride) + 1
    for _ in range(plan.phases):
        for j in range(first, least(end, n)):
            to[j] = made[j * stride - start]
        to += plan.phase_pitch
        start -= 1
        if start <= (first - 1) * stride and first > 0:
            first -= 1
        if (end - 1) * stride - start >= size:
            end -= 1


cdef inline void fetch_row(const element* row, int64_t size) noexcept nogil:
    cdef int64_t at = 0
    while at < size:
        prefetch(row + at)
        at += LINE // <int64_t>sizeof(element)


cdef void split_rows(const MaxPool2dForwardPlan* plan, real* to, const element* source, int64_t ih, int64_t end,
                     real* cells) noexcept nogil:
    """Rows [ih, end) of the image, of which `source` is the first, into the scratch, where the padding has been set to
    -inf; not those between windows."""
    cdef int64_t slot = plan.phases * plan.phase_pitch
    cdef int64_t down = plan.pool.image_strides[2]
    cdef int64_t size = plan.pool.w.size
    cdef int64_t pad = plan.pool.w.pad
    cdef int64_t rows = end - ih
    cdef int64_t kh = ih + plan.pool.h.pad
    # Rows are read a phase at a time, some not at all, which the hardware does not follow: 1 to 1.9 times as fast. Of
    # windows that do not meet, little is done with a row that is in a cache.
    cdef bint fetched = plan.pool.image_strides[3] == 1 and (plan.pool.far
                                                             or plan.pool.w.kernel > plan.pool.w.stride)
    cdef int64_t ahead = most(down * least(plan.pool.h.stride, plan.pool.h.size), 1)
    cdef real* even
    cdef real* odd
    if plan.pool.w.stride == 2 and plan.phases == 2 and plan.pool.image_strides[3] == 1 and not plan.pool.reduced:
        # Of even columns, and of odd ones. One element may be more than any window needs.
        even = to + (pad & 1) * plan.phase_pitch + (pad >> 1)
        odd = to + (~pad & 1) * plan.phase_pitch + ((pad + 1) >> 1)
        while rows > 0:
            split_pairs(even, odd, source, size)
            even += slot
            odd += slot
            source += down
            rows -= 1
    kh -= quotient(kh, plan.pool.h.stride) * plan.pool.h.stride
    # To a row that windows hold at the same place.
    ahead *= ceil_div(ROWS_AHEAD // <int64_t>sizeof(element), ahead)
    while rows > 0:
        if kh < plan.pool.h.kernel:
            if fetched:
                fetch_row(source + ahead, size)
            split_row(plan, to, source, cells)
        to += slot
        source += down
        rows -= 1
        kh = kh + 1 if kh + 1 < plan.pool.h.stride else 0


cdef void find_offsets(const MaxPool2dForwardPlan* plan, Pass* p, int64_t kw) noexcept nogil:
    """Of the kernel columns from kw on."""
    cdef int64_t t = quotient(kw, plan.phases)
    cdef int64_t r = kw - t * plan.phases
    cdef int64_t k
    p.columns = least(plan.pool.w.kernel - kw, MOST_COLUMNS)
    for k in range(p.columns):
        p.offsets[k] = r * plan.phase_pitch + t
        r += 1
        if r == plan.phases:
            r = 0
            t += 1


cdef void compare_parts(const MaxPool2dForwardPlan* plan, Pass* p, element* to, char* places, const real* image,
                        real* best, real* labels, const real* starts, const real* firsts) noexcept nogil:
    """As compare_rows, a few positions of the kernel at a time: a vector waits for each comparison before the next, and
    only other vectors fill that time."""
    cdef int64_t lines = p.rows
    cdef int64_t high = p.high
    cdef int64_t top = p.top
    cdef int64_t part = most(quotient(PART, plan.pool.w.kernel), 1)
    cdef int64_t begin, end, kw
    p.rows = 1
    while lines > 0:
        begin = most(p.top, p.held)
        end = least(p.top + p.kernel, high)
        while begin < end:
            p.low = begin
            p.high = least(begin + part, end)
            kw = 0
            while kw < plan.pool.w.kernel:
                if plan.pool.w.kernel > MOST_COLUMNS:
                    find_offsets(plan, p, kw)
                p.place = kw - plan.pool.w.pad if plan.pool.argmax else kw
                p.step = p.pitch - p.columns + 1
                p.begins = begin == most(p.top, 0) and kw == 0
                kw += p.columns
                p.ends = p.high == least(p.top + p.kernel, plan.pool.h.size) and kw == plan.pool.w.kernel
                compare_rows(p, to, places, image, best, labels, starts, firsts)
            begin = p.high
        p.top += p.down
        to += p.to_down
        places += p.places_down
        lines -= 1
    p.top = top


cdef void compare_along(const MaxPool2dForwardPlan* plan, Pass* p, element* to, char* places, const real* image,
                        real* best, real* labels, const real* starts, const real* firsts) noexcept nogil:
    """As compare_rows: each row of the image is compared along the row for all windows that it lies in, first."""
    cdef Pass along = p[0]
    along.rows = p.high - p.low
    along.top = p.low
    along.down = along.kernel = 1
    along.across = 0
    along.to_down = along.places_down = 0
    along.begins = True
    along.ends = False
    compare_rows(&along, to, places, image, best, labels, starts, firsts)
    join_rows(p, plan.pool.h.size, to, places, <const real*>best, <const real*>labels)


cdef void set_bits(char* words, const int32_t* places, int64_t pitch, unsigned bit, int64_t n) noexcept nogil:
    """words[places[i]*pitch + i] |= bit, at any address."""
    cdef uint16_t word
    cdef int64_t i
    for i in range(n):
        memcpy(&word, words + 2 * (places[i] * pitch + i), sizeof(word))
        word |= <uint16_t>bit
        memcpy(words + 2 * (places[i] * pitch + i), &word, sizeof(word))


cdef void store_indices(const MaxPool2d* pool, char* to, const int32_t* places) noexcept nogil:
    """A row of them, as they are stored."""
    cdef int64_t along = pool.index_item * pool.index_strides[3]
    cdef int64_t n = pool.w.out
    cdef int64_t i
    if along == 4 and pool.index_item == 4:
        memcpy(to, places, <size_t>(4 * n))
    elif along == 8 and pool.index_item == 8:
        for i in range(n):
            (<int64_t*>to)[i] = places[i]
    elif pool.index_item == 8:
        for i in range(n):
            (<int64_t*>(to + i * along))[0] = places[i]
    else:
        for i in range(n):
            (<index_at*>(to + i * along))[0] = places[i]


# Where the maxima of a plane's rows go, and what is read on the way.
cdef struct Work:
    char* scratch
    char* mask              # of the group, or the plane's indices
    bint straight           # int32 indices that lie side by side are written where they lie
    uint16_t* codes         # of the plane's windows in the band, or NULL
    unsigned bit            # of the plane in a word


cdef void pass_rows(const MaxPool2dForwardPlan* plan, const Work* work, const element* self__hw, element* out__hw,
                    int64_t oh, int64_t rows, const real* compared) noexcept nogil:
    """PHASES: `rows` rows of windows of a plane from row oh."""
    cdef real* image = <real*>(work.scratch + plan.at_rows)
    cdef real* cells = <real*>(work.scratch + plan.at_cells)
    cdef real* best = <real*>(work.scratch + plan.at_best)
    cdef real* labels = <real*>(work.scratch + plan.at_labels)
    cdef const real* starts = <const real*>(work.scratch + plan.at_starts)
    cdef const real* firsts = <const real*>(work.scratch + plan.at_firsts)
    cdef element* narrow = <element*>(work.scratch + plan.at_maxima)
    cdef char* wide = work.scratch + plan.at_places
    cdef int64_t n = plan.pool.w.out
    cdef bint whole = plan.along or (plan.pool.kernel_size <= WHOLE and plan.kept >= plan.pool.h.kernel)
    cdef bint full = whole and n >= VECTOR_BYTES // <int64_t>sizeof(real)   # vectors of windows end in their row
    cdef bint direct = full and plan.pool.pooled_strides[3] == 1
    cdef bint straight = full and work.straight
    cdef int64_t down = plan.pool.index_item * plan.pool.index_strides[2]
    cdef int64_t lines, low, high, bottom, i
    cdef char* places = <char*>work.codes
    cdef element* to
    cdef Pass p
    p.windows = n
    p.down = plan.pool.h.stride
    p.kernel = plan.pool.h.kernel
    p.slot = plan.phase_pitch * plan.phases
    p.pitch = plan.pool.w.size if plan.pool.argmax else plan.pool.w.kernel
    p.across = 0 if plan.pool.argmax else plan.pool.w.kernel
    p.to_down = plan.pool.pooled_strides[2] if direct else plan.row_pitch
    p.places_down = 2 * n if plan.coded else down if straight else 4 * plan.row_pitch
    p.best_down = plan.row_pitch
    p.coded = plan.coded
    find_offsets(plan, &p, 0)
    while rows > 0:
        lines = least(plan.lines, rows)
        p.top = oh * plan.pool.h.stride - plan.pool.h.pad
        low = most(p.top, 0)
        bottom = least(p.top + (lines - 1) * plan.pool.h.stride + plan.pool.h.kernel, plan.pool.h.size)
        to = out__hw + oh * plan.pool.pooled_strides[2] if direct else narrow
        if not plan.coded:
            places = work.mask + oh * down if straight else wide
        while low < bottom:
            high = least(low + plan.kept, bottom)
            split_rows(plan, image, self__hw + low * plan.pool.image_strides[2], low, high, cells)
            p.rows = lines
            p.held = p.low = low
            p.high = low = high
            if whole:
                p.place = -plan.pool.w.pad if plan.pool.argmax else 0
                p.step = p.pitch - p.columns + 1
                p.begins = p.ends = True
                if plan.along:
                    compare_along(plan, &p, to, places, <const real*>image, best, labels, starts, firsts)
                else:
                    compare_rows(&p, to, places, <const real*>image, best, labels, starts, firsts)
            else:
                compare_parts(plan, &p, to, places, <const real*>image, best, labels, starts, firsts)
        for i in range(lines):
            if not direct:
                store_row(out__hw + (oh + i) * plan.pool.pooled_strides[2], plan.pool.pooled_strides[3],
                          <const element*>narrow + i * plan.row_pitch, n)
            if plan.pool.argmax and not straight:
                store_indices(&plan.pool, work.mask + (oh + i) * down, <const int32_t*>wide + i * plan.row_pitch)
            elif not plan.coded and not plan.pool.argmax:
                set_bits(work.mask + 2 * (oh + i) * n, <const int32_t*>wide + i * plan.row_pitch, plan.pool.pitch,
                         work.bit, n)
        if plan.coded:
            places += 2 * n * lines
        oh += lines
        rows -= lines


cdef void scan_rows(const MaxPool2dForwardPlan* plan, const Work* work, const element* self__hw, element* out__hw,
                    int64_t oh, int64_t rows, const real* compared) noexcept nogil:
    """SCAN: the same."""
    cdef real* cells = <real*>(work.scratch + plan.at_cells)
    cdef real* best = <real*>(work.scratch + plan.at_best)
    cdef int32_t* places = <int32_t*>(work.scratch + plan.at_places)
    cdef element* narrow = <element*>(work.scratch + plan.at_maxima)
    cdef uint16_t* codes = work.codes
    cdef int64_t label_pitch = plan.pool.w.size if plan.pool.argmax else plan.pool.w.kernel
    cdef int64_t along = plan.pool.w.stride if plan.pool.argmax else 0
    cdef int64_t n = plan.pool.w.out
    cdef int64_t top, ih, base, ow, iw, left
    cdef const real* row
    cdef real value, maximum
    for oh in range(oh, oh + rows):
        top = oh * plan.pool.h.stride - plan.pool.h.pad
        ih = most(top, 0)
        base = ih * label_pitch - plan.pool.w.pad if plan.pool.argmax else (ih - top) * label_pitch
        for ow in range(n):
            best[ow] = -INFINITY
            places[ow] = <int32_t>(base + ow * along + most(plan.pool.w.pad - ow * plan.pool.w.stride, 0))
        for ih in range(ih, least(top + plan.pool.h.kernel, plan.pool.h.size)):
            row = compared_row(plan, self__hw + ih * plan.pool.image_strides[2], cells, plan.pool.w.size)
            for ow in range(n):
                left = ow * plan.pool.w.stride - plan.pool.w.pad
                maximum = best[ow]
                for iw in range(most(left, 0), least(left + plan.pool.w.kernel, plan.pool.w.size)):
                    value = row[iw]
                    if value > maximum or value != value:
                        maximum = value
                        places[ow] = <int32_t>(base + ow * along + iw - left)
                best[ow] = maximum
            base += label_pitch
        narrow_row(narrow, <const real*>best, n)
        store_row(out__hw + oh * plan.pool.pooled_strides[2], plan.pool.pooled_strides[3], <const element*>narrow, n)
        if plan.coded:
            for ow in range(n):
                codes[ow] = <uint16_t>places[ow]
            codes += n
        elif plan.pool.argmax:
            store_indices(&plan.pool, work.mask + oh * plan.pool.index_item * plan.pool.index_strides[2], places)
        else:
            set_bits(work.mask + 2 * oh * n, <const int32_t*>places, plan.pool.pitch, work.bit, n)


cdef void each_row(const MaxPool2d* pool, char* to, const element* self__hw, element* out__hw, int64_t oh, int64_t rows,
                   const real* compared) noexcept nogil:
    """EACH: the same, in a plane whose positions int32 may not count."""
    cdef int64_t item = pool.index_item
    cdef int64_t top, left, ow, ih, iw, index, at
    cdef real value, maximum
    for oh in range(oh, oh + rows):
        top = oh * pool.h.stride - pool.h.pad
        for ow in range(pool.w.out):
            left = ow * pool.w.stride - pool.w.pad
            index = most(top, 0) * pool.w.size + most(left, 0)
            maximum = -INFINITY
            for ih in range(most(top, 0), least(top + pool.h.kernel, pool.h.size)):
                for iw in range(most(left, 0), least(left + pool.w.kernel, pool.w.size)):
                    value = widened(self__hw + ih * pool.image_strides[2] + iw * pool.image_strides[3], compared)
                    if value > maximum or value != value:
                        maximum = value
                        index = ih * pool.w.size + iw
            narrow_row(out__hw + oh * pool.pooled_strides[2] + ow * pool.pooled_strides[3], <const real*>&maximum, 1)
            at = item * (oh * pool.index_strides[2] + ow * pool.index_strides[3])
            if item == 8:
                (<int64_t*>(to + at))[0] = index
            else:
                (<index_at*>(to + at))[0] = <int32_t>index


cdef void prepare(const MaxPool2dForwardPlan* plan, char* scratch, const real* compared) noexcept nogil:
    """What all units of a range read: padding, and of each window of a row where its places begin and the first place
    in the image."""
    cdef real* rows = <real*>(scratch + plan.at_rows)
    cdef char* starts = scratch + plan.at_starts
    cdef char* firsts = scratch + plan.at_firsts
    cdef int64_t i, start, first
    for i in range(plan.kept * plan.phases * plan.phase_pitch):
        rows[i] = -INFINITY
    for i in range(plan.pool.w.out + LANES):
        start = i * plan.pool.w.stride if plan.pool.argmax else 0
        first = start + most(plan.pool.w.pad - i * plan.pool.w.stride, 0)
        if real is double:
            (<int64_t*>starts)[i] = start
            (<int64_t*>firsts)[i] = first
        else:
            (<int32_t*>starts)[i] = <int32_t>start
            (<int32_t*>firsts)[i] = <int32_t>first


cdef int64_t forward(const MaxPool2dForwardPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                     const real* compared, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* self__nchw = <const element*>data[0]
    cdef element* out__nchw = <element*>data[1]
    cdef const element* self__hw
    cdef element* out__hw
    cdef int64_t windows = plan.pool.w.out
    cdef int64_t oh = begin % plan.pool.bands * plan.pool.band
    cdef int64_t group = begin // plan.pool.bands
    cdef int64_t n = group // plan.pool.groups
    cdef int64_t i, k, c, lane, lanes, rows, first, size
    cdef Work work
    cdef char* words
    group -= n * plan.pool.groups
    work.scratch = scratch
    work.straight = plan.pool.argmax and plan.pool.index_item == 4 and plan.pool.index_strides[3] == 1
    if plan.pool.algorithm != EACH:
        prepare(plan, scratch, compared)
    while begin < end:
        clear_share(&plan.pool, data[2], begin)
        begin += 1
        rows = least(plan.pool.band, plan.pool.h.out - oh)
        lanes = least(plan.pool.lanes, plan.pool.channels - group * plan.pool.lanes)
        first = oh * windows
        size = rows * windows
        if plan.pool.argmax:
            work.mask = data[2] + plan.pool.index_item * (n * plan.pool.index_strides[0]
                                                          + group * plan.pool.index_strides[1])
        else:
            work.mask = data[2] + 2 * (n * plan.pool.groups + group) * plan.pool.kernel_size * plan.pool.pitch
            for k in range(plan.pool.kernel_size):
                # The last band zeroes the rest of the row; bits that are set one by one want zeros to begin with.
                i = first + size if plan.coded else first
                c = plan.pool.pitch if oh + rows == plan.pool.h.out else first + size
                memset(work.mask + 2 * (k * plan.pool.pitch + i), 0, <size_t>(2 * (c - i)))
        for lane in range(lanes):
            c = group * plan.pool.lanes + lane
            self__hw = self__nchw + n * plan.pool.image_strides[0] + c * plan.pool.image_strides[1]
            out__hw = out__nchw + n * plan.pool.pooled_strides[0] + c * plan.pool.pooled_strides[1]
            work.codes = <uint16_t*>(scratch + plan.at_codes) + lane * size if plan.coded else NULL
            work.bit = <unsigned>(1 << lane)
            if plan.pool.algorithm == EACH:
                each_row(&plan.pool, work.mask, self__hw, out__hw, oh, rows, compared)
            elif plan.pool.algorithm == SCAN:
                scan_rows(plan, &work, self__hw, out__hw, oh, rows, compared)
            else:
                pass_rows(plan, &work, self__hw, out__hw, oh, rows, compared)
        if plan.coded:
            k = 0
            while k < plan.pool.kernel_size:
                words = work.mask + 2 * (k * plan.pool.pitch + first)
                make_words(words, words + 2 * plan.pool.pitch if k + 1 < plan.pool.kernel_size else words,
                           <const uint16_t*>(scratch + plan.at_codes), size, lanes, k, size)
                k += 2
        oh += plan.pool.band
        if oh >= plan.pool.h.out:
            oh = 0
            group += 1
            if group == plan.pool.groups:
                group = 0
                n += 1
    return ALL_GOOD


cdef int64_t forward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t forward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                   <const double*>NULL)


cdef int64_t forward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t forward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                   <const bfloat*>NULL)


cdef void max_pool2d_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = forward_f32
    row[<int>SLOT_F64] = forward_f64
    row[<int>SLOT_F16] = forward_f16
    row[<int>SLOT_BF16] = forward_bf16
