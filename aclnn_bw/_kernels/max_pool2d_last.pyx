# cython: cdivision=True
"""MaxPool2dWithMaskBackward and MaxPool2dWithIndicesBackward, GATHER_LAST and SCATTER_LAST: channels lie side by side
in gradInput, and in gradOutput, or else its rows of windows are transposed for a band (`turn_gradients`). And
GATHER_ACROSS: of small planes 16 channels are laid side by side, and their sums transposed back.

The formula, its order and its bytes are those of max_pool2d_gather.pyx and max_pool2d_scatter.pyx, whose vectors hold
positions or windows of one row; here a vector holds channels of one of them, and nothing is transposed but indices that
lie otherwise: these, and those of 64 bits, are packed for the rows of windows that a band reads. GATHER_LAST asks the
windows that hold a position, one after the other; of a bit mask, a word has the channels of a vector, and where the
windows lie is listed for a row (`Asked`). SCATTER_LAST adds once for each window and channel, of indices of many kernel
positions. All indices of a band are checked before its first sum. GATHER_ACROSS has bits alone, a word for all
channels; which windows hold which position, the same in all planes, is listed once for a range (`fill_terms`). A
signalling NaN of 16 bits comes out quiet, as GATHER has it.

Bounds. Of a position's windows those are summed that exist (`Along`), of bits no more than the list holds: the plan
sends kernels of more elsewhere, and positions whose lists together are longer go one by one. There are 16 channels or
more: the last that are worked on at a time overlap those before, and so do the two words in which they lie; bits beyond
the last channel are shifted out. GATHER_LAST compares an index; SCATTER_LAST adds at one that has been checked, if the
band has it. GATHER_ACROSS lists the windows that exist, in scratch that has space for all that a plane can have.

`python -m benchmarks.strided` measures.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport (
    GATHER_ACROSS, LANES, LISTED, SCATTER_LAST, MaxPool2d, MaxPool2dLastPlan, MaxPool2dTerm, PoolAxis,
)
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.choose cimport add_if_equal, add_lanes, count_up, lanes_of_bits, load_indices
from aclnn_bw._kernels.max_pool2d_indices cimport (
    any_sign, end_window, find_nearest, first_place, first_window, index_at, narrow_index,
)
from aclnn_bw._kernels.max_pool2d_rows cimport Unit, first_unit, next_unit
from aclnn_bw._kernels.planes cimport load_planes, turn
from aclnn_bw._kernels.rows cimport narrow_row, widen_row
from aclnn_bw._kernels.simd cimport (
    LINE, MOST_LANES, VECTOR_BYTES, add, bfloat, element, half, lanes_of_4, load, prefetch, prefetch_to_write, real,
    simd_load, simd_store, simd_zero, store, sum_bytes, vector, zero,
)

cdef enum:
    ASKED = 16      # positions that are asked for at a time, at most

# The windows [begin, end) of a position, position + pad = q*stride + phase: those that exist, none where end <= begin.
cdef struct Along:
    int64_t q
    int64_t phase
    int64_t begin
    int64_t end

# A unit's rows, and how far apart they are: gradients in elements, words or indices in bytes.
cdef struct Band:
    const char* mask        # window (0, 0)
    int64_t grad_down
    int64_t grad_along
    int64_t mask_down       # to the next window that holds the same position
    int64_t mask_along
    int64_t word_block      # to the word of the next 16 channels
    int64_t channels

# GATHER_ACROSS: what the next planes take, or nothing.
cdef struct Next:
    const char* to          # NULL if nothing is fetched
    const char* grad
    const char* word
    int64_t cells           # bytes of each
    int64_t grads
    int64_t words

# The windows that hold each of some positions, which lie end to end: where they lie from the first position's on.
cdef struct Asked:
    int64_t positions
    int64_t parts           # of a position's windows: their sums are summed
    int64_t[ASKED + 1] begin        # of each part
    int64_t[LISTED] grads
    int64_t[LISTED] words


cdef inline void find_windows(const PoolAxis* axis, Along* a) noexcept nogil:
    a.begin = most(a.q - axis.terms + (1 if a.phase < axis.kernel - (axis.terms - 1) * axis.stride else 2), 0)
    a.end = least(a.q + 1, axis.out)


cdef inline void start(const PoolAxis* axis, Along* a, int64_t position) noexcept nogil:
    a.q = quotient(position + axis.pad, axis.stride)
    a.phase = position + axis.pad - a.q * axis.stride
    find_windows(axis, a)


cdef inline void go_on(const PoolAxis* axis, Along* a) noexcept nogil:
    a.phase += 1
    if a.phase == axis.stride:
        a.phase = 0
        a.q += 1
    find_windows(axis, a)


cdef inline unsigned channel_bits(const char* words, int64_t block, int64_t channel, int64_t lanes) noexcept nogil:
    """Of `lanes` channels from `channel` on, at any address; those beyond the first word's are in the next."""
    cdef int64_t shift = channel & (LANES - 1)
    cdef uint16_t word, further
    words += (channel - shift) // LANES * block
    memcpy(&word, words, sizeof(word))
    if shift + lanes <= LANES:
        return <unsigned>word >> shift
    memcpy(&further, words + block, sizeof(further))
    return (<unsigned>word | <unsigned>further << <unsigned>LANES) >> shift


cdef inline void sum_indexed(element* to, const element* grad, const char* mask, const Band* b, const vector* wanted,
                             int64_t rows, int64_t columns, bint apart) noexcept nogil:
    """The sums of a position, whose index is wanted, of `rows` x `columns` windows; `apart`: each of at most 3 columns
    is summed by itself."""
    cdef int64_t lanes = VECTOR_BYTES // sum_bytes(to)
    cdef int64_t c = 0
    cdef int64_t _, column, grad_at, mask_at
    cdef vector[3] sums
    cdef vector seen
    while c < b.channels:
        c = least(c, b.channels - lanes)
        sums[0] = sums[1] = sums[2] = zero(<vector*>NULL)
        grad_at = c
        mask_at = 4 * c
        for _ in range(rows):
            for column in range(columns):
                seen = load_indices(mask + mask_at + column * b.mask_along, grad)
                add_if_equal(&sums[column if apart else 0], &seen, wanted, grad + grad_at + column * b.grad_along,
                             False)
            grad_at += b.grad_down
            mask_at += b.mask_down
        if apart:
            sums[0] = add(sums[0], sums[1], to)
        if apart and columns > 2:
            sums[0] = add(sums[0], sums[2], to)
        store(to + c, sums[0])
        c += lanes


cdef void sum_row_of_indices(const MaxPool2dLastPlan* plan, element* to, const element* grad_output__hwc, const Band* b,
                             int64_t ih, const Along* h) noexcept nogil:
    """A row of gradInput. Few columns are unrolled."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t rows = h.end - h.begin
    cdef int64_t iw, columns
    cdef const element* grad
    cdef const char* mask
    cdef vector wanted
    cdef Along w
    start(&pool.w, &w, 0)
    for iw in range(pool.w.size):
        columns = w.end - w.begin
        grad = grad_output__hwc + h.begin * b.grad_down + w.begin * b.grad_along
        mask = b.mask + h.begin * b.mask_down + w.begin * b.mask_along
        wanted = count_up(<int32_t>(ih * pool.w.size + iw), 0, to)
        if columns == 1:
            sum_indexed(to, grad, mask, b, &wanted, rows, 1, False)
        elif columns == 2 and plan.apart:
            sum_indexed(to, grad, mask, b, &wanted, rows, 2, True)
        elif columns == 2:
            sum_indexed(to, grad, mask, b, &wanted, rows, 2, False)
        elif columns == 3 and plan.apart:
            sum_indexed(to, grad, mask, b, &wanted, rows, 3, True)
        else:
            sum_indexed(to, grad, mask, b, &wanted, rows, columns, False)
        to += pool.image_strides[3]
        go_on(&pool.w, &w)


cdef inline void add_bits(vector* sum, const element* grad, const char* words, int64_t word_block,
                          int64_t c) noexcept nogil:
    """The gradients of a window, of the channels from c on whose bit is set."""
    cdef unsigned bits = channel_bits(words, word_block, c, VECTOR_BYTES // sum_bytes(grad))
    add_lanes(sum, load(grad + c, <vector*>NULL), lanes_of_bits(bits, grad), grad)


cdef inline void sum_windows(vector* low, vector* high, const element* grad, const char* words, const Asked* asked,
                             int64_t part, int64_t word_block, int64_t c, int64_t d) noexcept nogil:
    """The sums of the windows of a part, for the channels from c and from d on."""
    cdef vector a = zero(<vector*>NULL)
    cdef vector z = a
    cdef int64_t i
    for i in range(asked.begin[part], asked.begin[part + 1]):
        add_bits(&a, grad + asked.grads[i], words + asked.words[i], word_block, c)
        add_bits(&z, grad + asked.grads[i], words + asked.words[i], word_block, d)
    low[0] = a
    high[0] = z


cdef void sum_by_bits(element* to, int64_t to_step, const element* grad, int64_t grad_step, const char* words,
                      const Asked* asked, int64_t channels, int64_t word_block, int64_t n, bint apart) noexcept nogil:
    """n times the positions that are asked for, or the one of several parts, each time a window further. Two vectors of
    channels at a time share what it takes to find the windows, which lists of them make quick: 0.6 to 1.25 of the time
    without either. `apart` is a constant."""
    cdef int64_t lanes = VECTOR_BYTES // sum_bytes(to)
    cdef int64_t c, d, position, part
    cdef vector low, high, a, z
    while n > 0:
        for position in range(asked.positions):
            c = 0
            while c < channels:
                c = least(c, channels - lanes)
                d = least(c + lanes, channels - lanes)
                sum_windows(&low, &high, grad, words, asked, position, word_block, c, d)
                for part in range(1, asked.parts if apart else 1):
                    sum_windows(&a, &z, grad, words, asked, part, word_block, c, d)
                    low = add(low, a, to)
                    high = add(high, z, to)
                store(to + c, low)
                store(to + d, high)
                c = d + lanes
            to += to_step
        grad += grad_step
        words += 2
        n -= 1


cdef void ask_windows(Asked* asked, const MaxPool2dLastPlan* plan, const Band* b, int64_t ih, const Along* h,
                      int64_t iw, int64_t positions) noexcept nogil:
    """Of some positions of row ih, from iw on; counted from row h.begin of windows and from window 0, ascending. Where
    each column is summed by itself there is one position."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t kernel_row = (ih + pool.h.pad - h.begin * pool.h.stride) * pool.w.kernel + pool.w.pad
    cdef int64_t rows = most(h.end - h.begin, 0)
    cdef int64_t part = 0
    cdef int64_t at, position, row, column
    cdef Along w
    start(&pool.w, &w, iw)
    asked.positions = positions
    asked.begin[0] = 0
    for position in range(positions):
        asked.parts = most(w.end - w.begin, 0) if plan.apart else 1
        for column in range(w.begin, most(w.end, w.begin)):
            for row in range(rows):
                at = asked.begin[part] + (row if plan.apart else row * (w.end - w.begin) + column - w.begin)
                asked.grads[at] = row * b.grad_down + column * b.grad_along
                asked.words[at] = (row * b.mask_down + column * b.mask_along
                                   + 2 * (kernel_row + iw + position) * pool.pitch)
            if plan.apart:
                asked.begin[part + 1] = asked.begin[part] + rows
                part += 1
        if not plan.apart:
            asked.begin[part + 1] = asked.begin[part] + rows * most(w.end - w.begin, 0)
            part += 1
        go_on(&pool.w, &w)


cdef void sum_row_of_bits(const MaxPool2dLastPlan* plan, element* to, const element* grad_output__hwc, const Band* b,
                          int64_t ih, const Along* h) noexcept nogil:
    """A row of gradInput. In its middle the windows of `stride` positions are a window further than those of so many
    before."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef const PoolAxis* w = &pool.w
    cdef int64_t first = most(w.terms - 1, ceil_div(w.pad, w.stride))
    cdef int64_t n = least(w.out, quotient(w.size + w.pad, w.stride)) - first
    cdef int64_t middle = w.size        # where it begins
    cdef int64_t iw = 0
    cdef int64_t along = pool.image_strides[3]
    cdef int64_t positions, times
    cdef const element* grad = grad_output__hwc + h.begin * b.grad_down
    cdef const char* words = b.mask + 2 * h.begin * w.out
    cdef Asked asked
    if n > 0 and w.stride <= ASKED and w.kernel * pool.h.terms <= LISTED:
        middle = first * w.stride - w.pad
    while iw < w.size:
        positions = w.stride if iw == middle else 1
        times = n if iw == middle else 1
        ask_windows(&asked, plan, b, ih, h, iw, positions)
        if plan.apart:
            sum_by_bits(to + iw * along, along, grad, b.grad_along, words, &asked, b.channels, b.word_block, times,
                        True)
        else:
            sum_by_bits(to + iw * along, along, grad, b.grad_along, words, &asked, b.channels, b.word_block, times,
                        False)
        iw += positions * times


cdef void turn_group(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size) noexcept nogil:
    """`turn` of 4 or 2 bytes. Of a constant size gcc makes a copy for each call: 3 KB of the wheel, for 1.06 times the
    speed."""
    if size == 4:
        turn(to, to_pitch, source, pitch, rows, columns, 4, NULL)
    else:
        turn(to, to_pitch, source, pitch, rows, columns, 2, NULL)


cdef void pack_row(const MaxPool2d* pool, int32_t* to, const char* source, int64_t channels) noexcept nogil:
    """A row of windows' indices, channels side by side."""
    cdef int64_t along = pool.index_item * pool.index_strides[3]
    cdef int64_t across = pool.index_item * pool.index_strides[1]
    cdef int64_t _, c
    if along == 4:
        turn_group(to, channels, source, pool.index_strides[1], channels, pool.w.out, 4)
        return
    for _ in range(pool.w.out):
        if across == 8 and pool.index_item == 8:
            for c in range(channels):
                to[c] = narrow_index((<const int64_t*>source)[c])
        elif pool.index_item == 8:
            for c in range(channels):
                to[c] = narrow_index((<const int64_t*>(source + c * across))[0])
        else:
            for c in range(channels):
                to[c] = (<const index_at*>(source + c * across))[0]
        to += channels
        source += along


cdef bint row_missed(const MaxPool2d* pool, const char* seen, const Band* b, int64_t oh) noexcept nogil:
    """Whether some index of a row of windows lies outside its window (max_pool2d_indices.pxd)."""
    cdef int64_t lanes = VECTOR_BYTES // 4
    cdef int64_t ih = most(oh * pool.h.stride - pool.h.pad, 0)
    cdef int64_t rows = least(oh * pool.h.stride - pool.h.pad + pool.h.kernel, pool.h.size) - ih
    cdef uint32_t width = <uint32_t>pool.w.size
    cdef int64_t ow, iw, left, c
    cdef uint32_t columns, first
    cdef lanes_of_4 distance, missed
    cdef uint32_t[MOST_LANES] lane
    simd_zero(&missed)
    for ow in range(pool.w.out):
        left = ow * pool.w.stride - pool.w.pad
        iw = most(left, 0)
        columns = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - iw)
        first = <uint32_t>(ih * pool.w.size + iw)
        c = 0
        while c < b.channels:
            c = least(c, b.channels - lanes)
            simd_load(&distance, seen + 4 * c)
            distance = distance - first
            find_nearest(&distance, rows, width)
            missed |= distance | (columns - 1 - distance)
            c += lanes
        seen += b.mask_along
    simd_store(<uint32_t*>lane, &missed)
    return any_sign(<const uint32_t*>lane, lanes)


cdef bint find_indices(const MaxPool2dLastPlan* plan, Band* b, const Unit* u, char* scratch) noexcept nogil:
    """Those of all windows that the rows lie in, packed if they do not lie as they are looked up. False if one lies
    outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t oh = first_window(&pool.h, u.ih)
    cdef int64_t end = end_window(&pool.h, u.ih + u.rows - 1)
    cdef int64_t down = pool.index_item * pool.index_strides[2]
    b.mask = u.mask
    b.mask_down = down
    b.mask_along = 4 * pool.index_strides[3]
    if pool.packed:
        b.mask_along = 4 * b.channels
        b.mask_down = pool.w.out * b.mask_along
        b.mask = scratch + pool.at_indices - oh * b.mask_down
    while oh < end:
        if pool.packed:
            pack_row(pool, <int32_t*>(b.mask + oh * b.mask_down), u.mask + oh * down, b.channels)
        if row_missed(pool, b.mask + oh * b.mask_down, b, oh):
            return False
        oh += 1
    return True


cdef void gather_rows(const MaxPool2dLastPlan* plan, const element* grad_output__hwc, const Band* b, const Unit* u,
                      element* to) noexcept nogil:
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t ih
    cdef Along h
    start(&pool.h, &h, u.ih)
    for ih in range(u.ih, u.ih + u.rows):
        if pool.argmax:
            sum_row_of_indices(plan, to, grad_output__hwc, b, ih, &h)
        else:
            sum_row_of_bits(plan, to, grad_output__hwc, b, ih, &h)
        to += pool.image_strides[2]
        go_on(&pool.h, &h)


cdef void add_gradients(real* sums, int64_t along, const real* grad, const char* seen, int64_t channels, uint32_t first,
                        uint32_t positions, bint whole) noexcept nogil:
    """Of a window: to each channel's sum at its index, if that is one of `positions` from `first` on, or if all are."""
    cdef uint32_t at
    cdef int64_t c
    for c in range(channels):
        at = <uint32_t>(<const index_at*>seen)[c] - first
        if whole or at < positions:
            sums[at * along + c] += grad[c]


cdef void scatter_rows(const MaxPool2dLastPlan* plan, const element* grad_output__hwc, const Band* b, const Unit* u,
                       element* to, char* scratch, const real* summed) noexcept nogil:
    """The sums of a band, where they are stored or in the scratch."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef real* sums = <real*>(scratch + plan.at_sums)
    cdef real* wide = <real*>(scratch + plan.at_wide)
    cdef const real* grad = wide
    cdef int64_t along = b.channels
    cdef int64_t positions = u.rows * pool.w.size
    cdef int64_t oh, i, _
    cdef const element* source
    cdef const char* seen
    if plan.in_place:
        sums = <real*>to
        along = pool.image_strides[3]
    if along == b.channels:
        memset(sums, 0, <size_t>(positions * along) * sizeof(real))
    else:
        for i in range(positions):
            memset(sums + i * along, 0, <size_t>b.channels * sizeof(real))
    for oh in range(first_window(&pool.h, u.ih), end_window(&pool.h, u.ih + u.rows - 1)):
        source = grad_output__hwc + oh * b.grad_down
        seen = b.mask + oh * b.mask_down
        for _ in range(pool.w.out):
            if sizeof(element) == sizeof(real):
                grad = <const real*>source
            else:
                widen_row(<float*>wide, source, b.channels)
            if pool.bands == 1:
                add_gradients(sums, along, grad, seen, b.channels, 0, 0, True)
            else:
                add_gradients(sums, along, grad, seen, b.channels, <uint32_t>(u.ih * pool.w.size), <uint32_t>positions,
                              False)
            source += b.grad_along
            seen += b.mask_along
    if plan.in_place:
        return
    for i in range(u.rows):
        store_positions(to + i * pool.image_strides[2], pool.image_strides[3], sums + i * pool.w.size * b.channels,
                        pool.w.size, b.channels)


cdef inline void store_positions(element* to, int64_t along, const real* sums, int64_t n,
                                 int64_t channels) noexcept nogil:
    if along == channels:
        channels *= n
        n = 1
    while n > 0:
        narrow_row(to, sums, channels)
        to += along
        sums += channels
        n -= 1


cdef const element* turn_gradients(const MaxPool2dLastPlan* plan, const element* grad_output__chw, Band* b,
                                   const Unit* u, element* to, const void* source_end) noexcept nogil:
    """Gradients of the windows that a band asks, with its channels side by side; where window (0, 0) would be."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t oh = first_window(&pool.h, u.ih)
    cdef int64_t end = end_window(&pool.h, u.ih + u.rows - 1)
    b.grad_along = b.channels
    b.grad_down = pool.w.out * b.channels
    if oh < end:
        load_planes(to, b.channels, grad_output__chw + oh * pool.pooled_strides[2], pool.pooled_strides, end - oh,
                    pool.w.out, b.channels, source_end)
    return to - oh * b.grad_down


cdef void fill_terms(const MaxPool2dLastPlan* plan, char* scratch) noexcept nogil:
    """GATHER_ACROSS: which windows hold each position, ascending, is the same in all planes."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int32_t* count = <int32_t*>(scratch + plan.at_counts)
    cdef MaxPool2dTerm* term = <MaxPool2dTerm*>(scratch + plan.at_terms)
    cdef int64_t ih, iw, oh, ow, kernel_row
    cdef Along h, w, left
    start(&pool.h, &h, 0)
    start(&pool.w, &left, 0)
    for ih in range(pool.h.size):
        w = left
        for iw in range(pool.w.size):
            count[0] = <int32_t>(most(h.end - h.begin, 0) * most(w.end - w.begin, 0))
            count += 1
            for oh in range(h.begin, h.end):
                kernel_row = (ih + pool.h.pad - oh * pool.h.stride) * pool.w.kernel
                for ow in range(w.begin, w.end):
                    term.grad = <int32_t>((oh * pool.w.out + ow) * LANES)
                    term.word = <int32_t>(2 * ((kernel_row + iw + pool.w.pad - ow * pool.w.stride) * pool.pitch
                                               + oh * pool.w.out + ow))
                    term += 1
            go_on(&pool.w, &w)
        go_on(&pool.h, &h)


cdef inline void add_word(vector* sum, const element* grad, const char* words, const MaxPool2dTerm* term,
                          int64_t c) noexcept nogil:
    cdef uint16_t word
    memcpy(&word, words + term.word, sizeof(word))
    add_lanes(sum, load(grad + term.grad + c, <vector*>NULL), lanes_of_bits(<unsigned>word >> <unsigned>c, grad), grad)


cdef inline void fetch_cells(const Next* next, int64_t position, int64_t bytes) noexcept nogil:
    """A line of each array, or as much as 16 channels have of a position."""
    if position * bytes < next.cells:
        prefetch_to_write(next.to + position * bytes)
    if position * bytes < next.grads:
        prefetch(next.grad + position * bytes)
    if position * LINE < next.words:
        prefetch(next.word + position * LINE)


cdef void sum_across(const MaxPool2dLastPlan* plan, element* to, const element* grad, const char* words,
                     const char* scratch, const Next* next) noexcept nogil:
    """The positions of a plane of each channel of a word. What the next planes take is fetched meanwhile."""
    cdef const int32_t* counts = <const int32_t*>(scratch + plan.at_counts)
    cdef const MaxPool2dTerm* terms = <const MaxPool2dTerm*>(scratch + plan.at_terms)
    cdef int64_t lanes = VECTOR_BYTES // sum_bytes(to)
    cdef int64_t positions = plan.pool.h.size * plan.pool.w.size
    cdef int64_t position, c, i
    cdef vector low, high
    for position in range(positions):
        if next.to != NULL:
            fetch_cells(next, position, LANES * <int64_t>sizeof(element))
        if lanes == LANES:
            low = zero(<vector*>NULL)
            for i in range(counts[position]):
                add_word(&low, grad, words, terms + i, 0)
            store(to, low)
        else:
            c = 0
            while c < LANES:
                low = high = zero(<vector*>NULL)
                for i in range(counts[position]):
                    add_word(&low, grad, words, terms + i, c)
                    add_word(&high, grad, words, terms + i, c + lanes)
                store(to + c, low)
                store(to + c + lanes, high)
                c += 2 * lanes
        terms += counts[position]
        to += LANES


cdef void sum_planes(const MaxPool2dLastPlan* plan, const element* grad_output__chw, const Unit* u,
                     element* grad_input__chw, char* scratch, const Next* next) noexcept nogil:
    """GATHER_ACROSS: whole planes of a group of channels. Those that are not there are zeros, and not stored."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef element* grads = <element*>(scratch + plan.at_grads)
    cdef element* sums = <element*>(scratch + plan.at_sums)
    if u.lanes < LANES:
        memset(grads, 0, <size_t>(pool.h.out * pool.w.out * LANES) * sizeof(element))
    turn_group(grads, LANES, grad_output__chw, pool.pooled_strides[1], u.lanes, pool.h.out * pool.w.out,
               plan.item)
    sum_across(plan, sums, <const element*>grads, u.mask, scratch, next)
    turn_group(grad_input__chw, pool.image_strides[1], sums, LANES, pool.h.size * pool.w.size, u.lanes,
               plan.item)


cdef bint sum_unit(const MaxPool2dLastPlan* plan, const element* grad_output__hwc, const Unit* u, element* to,
                   char* scratch, const void* source_end, const real* summed) noexcept nogil:
    """A band of rows of a group of channels. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef Band b
    b.channels = u.lanes
    b.grad_down = pool.pooled_strides[2]
    b.grad_along = pool.pooled_strides[3]
    b.word_block = 0
    if not pool.argmax:
        b.mask = u.mask
        b.word_block = 2 * pool.kernel_size * pool.pitch
        b.mask_down = 2 * (pool.w.out - pool.h.stride * pool.w.kernel * pool.pitch)
        b.mask_along = 2 * (1 - pool.w.stride * pool.pitch)
    elif not find_indices(plan, &b, u, scratch):
        return False
    if plan.turned:
        grad_output__hwc = turn_gradients(plan, grad_output__hwc, &b, u, <element*>(scratch + plan.at_grads),
                                          source_end)
    if pool.algorithm == SCATTER_LAST:
        scatter_rows(plan, grad_output__hwc, &b, u, to, scratch, summed)
    else:
        gather_rows(plan, grad_output__hwc, &b, u, to)
    return True


cdef void sum_groups(const MaxPool2dLastPlan* plan, char** data, char* scratch, Unit u, int64_t units,
                     const element* stored) noexcept nogil:
    """GATHER_ACROSS: so many units from u on."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef Unit following
    cdef Next next
    fill_terms(plan, scratch)
    while units > 0:
        units -= 1
        following = u
        next_unit(pool, data[2], &following)
        next.to = NULL
        if units > 0 and plan.fetched:
            next.to = <const char*>(<const element*>data[3] + following.image)
            next.grad = <const char*>(<const element*>data[0] + following.pooled)
            next.word = following.mask
            next.cells = pool.h.size * pool.w.size * following.lanes * <int64_t>sizeof(element)
            next.grads = pool.h.out * pool.w.out * following.lanes * <int64_t>sizeof(element)
            next.words = 2 * pool.kernel_size * pool.pitch
        sum_planes(plan, <const element*>data[0] + u.pooled, &u, <element*>data[3] + u.image, scratch,
                   &next)
        u = following


cdef int64_t last(const MaxPool2dLastPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                  const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t place
    cdef Unit u = first_unit(pool, data[2], begin)
    if pool.algorithm == GATHER_ACROSS:
        if VECTOR_BYTES > 16 and element is not double:     # others have too few lanes to a vector
            sum_groups(plan, data, scratch, u, end - begin, stored)
        return ALL_GOOD
    while begin < end:
        begin += 1
        if not sum_unit(plan, <const element*>data[0] + u.pooled, &u,
                        <element*>data[3] + u.image + u.ih * pool.image_strides[2], scratch,
                        data[0] + pool.source_bytes, summed):
            place = first_place(pool, &u, end - begin)
            if place >= 0:
                return place
        next_unit(pool, data[2], &u)
    return ALL_GOOD


cdef int64_t last_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const MaxPool2dLastPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t last_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const MaxPool2dLastPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t last_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const MaxPool2dLastPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t last_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const MaxPool2dLastPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void max_pool2d_last_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = last_f32
    row[<int>SLOT_F64] = last_f64
    row[<int>SLOT_F16] = last_f16
    row[<int>SLOT_BF16] = last_bf16
