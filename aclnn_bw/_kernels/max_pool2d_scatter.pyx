# cython: cdivision=True
"""MaxPool2dWithMaskBackward, SCATTER and PLANES: each window adds its gradient at the position of its maximum.

The formula, the order of the sums and the bytes are those of max_pool2d_gather.pyx. docs/design/max_pool2d.md tells
which kernels come here.

    path            when
    scatter_places  bits of kernels of up to 16x16: the places of a block of windows are found for 16 channels at a time
    scatter_words   bits of larger kernels, and channels that have not one bit in each window: set bits are walked
    scatter_few     indices of planes whose sums the L1 cache holds, a few planes at a time
    spread_few      windows of one position, likewise: nothing is added (max_pool2d_spread.pxd)
    scatter_rows    indices of larger ones
    scatter_apart   indices of 3 columns at stride 1 and padding 1 in short rows: sums of its own for each kernel column
                    keep GATHER's order, for a position meets ascending windows at descending columns
    scatter_planes  PLANES: bits of whole planes of few windows, or of small ones under kernels beyond 16x16
    scatter_each    EACH: indices of planes that int32 does not count (max_pool2d_each.pxd)

The sums lie in the scratch, or, if its rows follow each other and need not be narrowed, in gradInput itself. A band is
walked in blocks of windows: the rows that a block is the first to reach are cleared before it, those that it is the
last to reach are stored behind it, so that both find the caches as they left them; small bands are cleared and stored
in one go. The scratch holds the rows of some blocks; at its end the rows that the next block reaches too go to where it
begins. Of few windows in 16 bits the sums are marked: gradInput is cleared, and has each sum as soon as there is one.
Past the caches all sums lie in the scratch, and what is complete is streamed, narrowed before in `cells`; what is left
of a channel's last line waits for the rows that go on there (lines.pxd).
Indices are packed and checked block by block, before their windows are summed (max_pool2d_indices.pxd).

Why every access is in bounds: the plan has proved the shapes of all tensors and that the mask is one contiguous
container of at least mask_end bytes. Words are read at k < K and p < Ho*Wo only, but for vectors that reach beyond a
row without leaving the table (max_pool2d_places.pxd). An index has been found in its window; if a window reaches out of
the band, it is compared with the block's bounds besides, and whole planes are one band. The sums of kernel columns lie
H*W apart, which is added to an index at most twice. The place of a bit is the element behind the block's sums if its
row or column is outside: it is cleared with the next rows, or lies behind all that are stored. Sums in gradInput have
no such element, and so each place is compared with their number. The rows of a block, counted from those that the
scratch keeps, are no more than the plan's block*stride + longest; where the scratch holds less, it holds a whole band.
What is streamed of a channel at a time are rows that the scratch holds, and `cells` as many; a group has 16 rests.
No address that is fetched ahead is read there.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport BLOCK, EACH, LANES, PLANES, SCATTER, MaxPool2d, MaxPool2dScatterPlan, PoolAxis
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.lines cimport Rest, flush_rests, stream_on
from aclnn_bw._kernels.max_pool2d_each cimport each_window
from aclnn_bw._kernels.max_pool2d_indices cimport (
    any_missed, end_window, fill_windows, find_missed, first_place, first_window, misses, packed_indices,
)
from aclnn_bw._kernels.max_pool2d_places cimport (
    RUN, TOGETHER, Ahead, fetch_next, join_columns, read_next, scatter_bits, scatter_some, scatter_to,
    window_codes, window_places, window_starts,
)
from aclnn_bw._kernels.max_pool2d_planes cimport plane_places, scatter_maxima
from aclnn_bw._kernels.max_pool2d_rows cimport (
    Unit, first_unit, load_channels, next_unit, slide_rows, store_cells, store_rows, summed_there, term,
)
from aclnn_bw._kernels.max_pool2d_spread cimport all_marked, keep_marked, leaves_gaps, spread_planes
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.rows cimport bfloat, clear, element, half, real
from aclnn_bw._kernels.simd cimport fence

cdef enum:
    SMALL_BYTES = 786432    # of sums in gradInput that are cleared in one go: they stay in an L2 cache
    SMALL_SUMS = 131072     # the same of the scratch, that are stored in one go too
    MOST_POSITIONS = 32767  # whose places 16 bits count (max_pool2d_plan.pyx)
    LARGE_KERNEL = 64       # positions, beyond which words are read in runs: 0.7 to 1.1 of the time, else to 1.2

# A band of the planes of a group, and where its gradients and sums lie.
cdef struct Band:
    const char* mask        # the group's table; or of the first channel the index of window 0, packed or not
    const char* at          # the same index in memory
    const char* source_end  # of gradOutput
    int64_t ih
    int64_t rows
    int64_t top             # the rows of the image that a block of windows reaches in the band
    int64_t height
    int64_t lane            # the first channel
    int64_t count           # of channels
    bint direct             # gradients are read where they lie
    bint in_place           # sums are made in gradInput
    bint marked             # sums are stored as they are made, among zeros
    bint onward             # the next planes are read next, and not the next rows of these
    int64_t grad_pitch      # elements between channels, and between rows of windows
    int64_t grad_step
    int64_t sum_pitch
    int64_t mark_pitch
    Ahead next


cdef bint all_inside(const MaxPool2dScatterPlan* plan, const char* mask__chw, int64_t count, const char* scratch,
                     int64_t oh, int64_t end) noexcept nogil:
    """Whether the windows from row `oh` to row `end` of `count` planes have their indices inside them."""
    cdef int64_t j
    for j in range(count):
        if find_missed(&plan.pool, &plan.windows, mask__chw + 4 * j * plan.pool.index_pitch, scratch, oh, end) >= 0:
            return False
    return True


cdef void turn_cells(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size) noexcept nogil:
    turn_any(to, to_pitch, source, pitch, rows, columns, size, NULL)


cdef void store_planes(const MaxPool2dScatterPlan* plan, element* to__chw, term* sums, int64_t count, int64_t rows,
                       element* cells) noexcept nogil:
    store_rows(&plan.pool, to__chw, sums, plan.sum_pitch, count, rows, cells, turn_cells)


cdef void scatter_words(const MaxPool2dScatterPlan* plan, const Band* b, term* sums, const term* grad,
                        uint32_t channels, int64_t oh, int64_t begin, int64_t end, element* marks) noexcept nogil:
    """Windows [begin, end) of row oh, any number of bits, of some of the band's channels; grad is window 0."""
    cdef const PoolAxis* h = &plan.pool.h
    cdef const PoolAxis* w = &plan.pool.w
    cdef int64_t kh, kw, row, ow, ow_end
    for kh in range(h.kernel):
        row = oh * h.stride - h.pad + kh - b.top
        if not 0 <= row < b.height:
            continue
        # Ascending windows of one row reach a position at descending kw.
        kw = w.kernel - 1
        while kw >= 0:
            # The windows of the row whose position kw lies in the image.
            ow = most(ceil_div(most(w.pad - kw, 0), w.stride), begin)
            ow_end = least(quotient(w.size - 1 + w.pad - kw, w.stride) + 1, end)
            if w.size - 1 + w.pad - kw >= 0 and ow < ow_end:
                scatter_bits(sums, b.sum_pitch, row * w.size + ow * w.stride - w.pad + kw, w.stride, grad + ow,
                             b.grad_pitch, b.mask + 2 * ((kh * w.kernel + kw) * plan.pool.pitch + oh * w.out + ow),
                             <int>b.lane, channels, ow_end - ow, marks, b.mark_pitch)
            kw -= 1


cdef unsigned find_codes(uint16_t* nibbles, const char* words, const MaxPool2d* pool, int64_t n,
                         int64_t left) noexcept nogil:
    """window_codes, compiled once for all types."""
    if pool.kernel_size > LARGE_KERNEL:
        return window_codes(nibbles, words, pool, n, left, RUN)
    return window_codes(nibbles, words, pool, n, left, 1)


cdef int64_t find_places(const MaxPool2dScatterPlan* plan, const Band* b, uint16_t* places, int64_t j, int64_t start,
                         int64_t n, int64_t oh, uint32_t other, bint* whole) noexcept nogil:
    """Of the next channels of the band from j on that are not among the others, up to TOGETHER, the places in each of n
    windows from `start` on; `whole` if all are where there are sums. How many channels there are."""
    cdef uint16_t top = <uint16_t>(oh * plan.pool.h.stride - plan.pool.h.pad - b.top)
    cdef int64_t channels = 0
    whole[0] = True
    while channels < least(b.count - j, TOGETHER) and not other >> (j + channels) & 1:
        if window_places(places + (2 + channels) * BLOCK, places + 6 * BLOCK, b.lane + j + channels, places, top,
                         places + BLOCK, <uint16_t>(start * plan.pool.w.stride), <uint16_t>b.height,
                         <uint16_t>plan.pool.w.size, n):
            whole[0] = whole[0] and not (b.in_place or b.marked)
        channels += 1
    return channels


cdef void scatter_places(const MaxPool2dScatterPlan* plan, const Band* b, term* sums, const term* grad,
                         uint16_t* places, int64_t oh, int64_t oh_end, element* marks) noexcept nogil:
    """Rows [oh, oh_end) of windows, no more than a block: a channel that has exactly one bit in each window by its
    places, any other bit by bit. Either adds the windows of a position in ascending order. The scratch holds BLOCK
    tops, lefts, TOGETHER places and 8 nibbles."""
    cdef int64_t windows = plan.pool.w.out
    cdef uint16_t size = <uint16_t>(b.height * plan.pool.w.size)
    cdef int64_t start = 0
    cdef int64_t n, m, i, j, row, width, channels
    cdef uint32_t other
    cdef bint whole
    cdef const term* source
    while start < (oh_end - oh) * windows:
        n = least((oh_end - oh) * windows - start, BLOCK)     # a row beyond a block goes in pieces
        other = find_codes(places + 6 * BLOCK, b.mask + 2 * (oh * windows + start), &plan.pool, n,
                           plan.pool.pitch - oh * windows - start) >> b.lane
        other &= <uint32_t>((1 << b.count) - 1)
        width = n if b.grad_step == windows else least(n, windows)
        j = 0
        while j < b.count:
            if other >> j & 1:
                j += 1
                continue
            channels = find_places(plan, b, places, j, start, n, oh, other, &whole)
            i = 0
            while i < n:
                row = quotient(i, width)
                m = fetch_next(&b.next, j, channels, start + i, (row + 1) * width - i)
                source = grad + j * b.grad_pitch + row * (b.grad_step - width) + start + i
                if whole:
                    scatter_to(sums + j * b.sum_pitch, b.sum_pitch, places + 2 * BLOCK + i, source, b.grad_pitch,
                               channels, m, size, True, marks + j * b.mark_pitch, b.mark_pitch)
                else:
                    scatter_to(sums + j * b.sum_pitch, b.sum_pitch, places + 2 * BLOCK + i, source, b.grad_pitch,
                               channels, m, size, False, marks + j * b.mark_pitch, b.mark_pitch)
                i += m
            j += channels
        for row in range(oh, oh_end if other != 0 else oh):
            scatter_words(plan, b, sums, grad + (row - oh) * b.grad_step, other, row, start,
                          least(start + n, windows), marks)
        start += n


cdef void scatter_channels(int64_t together, term* sums, int64_t sum_pitch, uint32_t low, uint32_t size,
                           const term* grad, int64_t grad_pitch, const char* mask, int64_t mask_pitch, int64_t channels,
                           int64_t n, bint whole, element* marks, int64_t mark_pitch) noexcept nogil:
    """scatter_some, compiled by itself (UNIT_FLAGS of setup.py): among a caller's names its loop found no registers and
    took 1.4 times as long."""
    if whole:
        scatter_some(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, channels, together, n, True, marks,
                     mark_pitch)
    else:
        scatter_some(sums, sum_pitch, low, size, grad, grad_pitch, mask, mask_pitch, channels, together, n, False,
                     marks, mark_pitch)


cdef void scatter_ahead(const Ahead* next, int64_t together, term* sums, int64_t sum_pitch, uint32_t low, uint32_t size,
                        const term* grad, int64_t grad_pitch, const char* mask, int64_t mask_pitch, int64_t channels,
                        int64_t n, bint whole, element* marks, int64_t mark_pitch) noexcept nogil:
    """The same, while what is read next is fetched bit by bit: beyond the caches it takes 0.6 to 1 of the time."""
    cdef int64_t i = 0
    cdef int64_t m
    while i < n:
        m = fetch_next(next, 0, channels, i, n - i)
        scatter_channels(together, sums, sum_pitch, low, size, grad + i, grad_pitch, mask + 4 * i, mask_pitch, channels,
                         m, whole, marks, mark_pitch)
        i += m


cdef bint scatter_apart(const MaxPool2dScatterPlan* plan, const Band* b, real* sums, const real* grad,
                        uint32_t* places, const char* scratch, int64_t oh, int64_t oh_end) noexcept nogil:
    """Rows [oh, oh_end) of windows, no more than a block, each kernel column in sums of its own. False if it has met an
    index outside its window."""
    cdef const PoolAxis* w = &plan.pool.w
    cdef const uint32_t* lists = <const uint32_t*>(scratch + plan.windows.at_columns) + (2 + oh) * w.out
    cdef int64_t n = (oh_end - oh) * w.out
    cdef int64_t width = n if b.grad_step == w.out else w.out
    cdef int64_t j = 0
    cdef int64_t row, channels
    while j < b.count:
        channels = least(b.count - j, TOGETHER)
        if any_missed(places, BLOCK, b.mask + 4 * (j * plan.pool.index_pitch + oh * w.out),
                      plan.pool.index_pitch, channels, lists,
                      plan.windows.listed * plan.pool.h.out * w.out, n, <uint32_t>w.size,
                      plan.windows.reciprocal, <uint32_t>plan.apart):
            return False
        for row in range(quotient(n, width)):
            scatter_channels(plan.together, sums + j * b.sum_pitch, b.sum_pitch, 0, 0,
                             grad + j * b.grad_pitch + row * b.grad_step, b.grad_pitch,
                             <const char*>(places + row * width), BLOCK, channels, width, True, <float*>NULL, 0)
        j += channels
    return True


cdef void join_planes(const MaxPool2dScatterPlan* plan, const Band* b, element* to__chw, real* sums,
                      element* cells) noexcept nogil:
    """The planes of the band's channels, whose kernel columns have been summed apart."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef bint native = (summed_there(pool, <const real*>NULL, to__chw) and pool.image_strides[3] == 1
                        and pool.image_strides[2] == pool.w.size)
    cdef int64_t c
    for c in range(b.count):
        join_columns(<real*>(to__chw + c * pool.image_strides[1]) if native else sums + c * plan.sum_pitch,
                     <const real*>sums + c * plan.sum_pitch, plan.apart, pool.h.size * pool.w.size)
    if not native:
        store_planes(plan, to__chw, sums, b.count, pool.h.size, cells)


cdef void scatter_rows(const MaxPool2dScatterPlan* plan, const Band* b, term* sums, const term* grad, int64_t oh,
                       int64_t oh_end, element* marks) noexcept nogil:
    """Indices of rows [oh, oh_end) of windows."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef uint32_t low = <uint32_t>(b.top * pool.w.size)
    cdef uint32_t size = <uint32_t>(b.height * pool.w.size)
    # No window reaches out of the band.
    cdef bint whole = (most(oh * pool.h.stride - pool.h.pad, 0) >= b.top
                       and least((oh_end - 1) * pool.h.stride - pool.h.pad + pool.h.kernel, pool.h.size)
                       <= b.top + b.height)
    cdef int64_t n = (oh_end - oh) * pool.w.out
    cdef int64_t width = n if b.grad_step == pool.w.out else pool.w.out
    cdef int64_t row
    for row in range(quotient(n, width)):
        scatter_ahead(&b.next, plan.together, sums, b.sum_pitch, low, size, grad + row * b.grad_step, b.grad_pitch,
                      b.mask + 4 * (oh * pool.w.out + row * width), pool.index_pitch, b.count, width, whole, marks,
                      b.mark_pitch)


cdef inline void scatter_some_rows(const MaxPool2dScatterPlan* plan, const Band* b, term* sums, const term* grad,
                                   char* scratch, int64_t oh, int64_t oh_end, element* marks) noexcept nogil:
    """Rows of a block, whatever says where their maxima are."""
    if plan.placed:
        scatter_places(plan, b, sums, grad, <uint16_t*>(scratch + plan.at_places), oh, oh_end, marks)
    elif plan.pool.argmax:
        scatter_rows(plan, b, sums, grad, oh, oh_end, marks)
    else:
        scatter_words(plan, b, sums, grad, <uint32_t>((1 << b.count) - 1), oh, 0, plan.pool.w.out, marks)


cdef inline bint scatter_block(const MaxPool2dScatterPlan* plan, const Band* b, term* sums, const term* grad,
                               char* scratch, int64_t oh, int64_t oh_end, element* to__chw) noexcept nogil:
    """Rows [oh, oh_end) of windows, no more than a block; `sums` is the first row that they reach. False if it has met
    an index outside its window."""
    if plan.apart > 0:
        if term is not uint16_t:
            return scatter_apart(plan, b, sums, grad, <uint32_t*>(scratch + plan.at_places), scratch, oh, oh_end)
    elif b.marked:
        if term is float:
            scatter_some_rows(plan, b, sums, grad, scratch, oh, oh_end, to__chw + (b.top - b.ih) * plan.pool.w.size)
    else:
        scatter_some_rows(plan, b, sums, grad, scratch, oh, oh_end, <float*>NULL)
    return True


cdef void load_rows(const MaxPool2d* pool, term* packed, int64_t pitch, const element* grad_output__hw, int64_t rows,
                    int64_t count, element* cells, const void* source_end) noexcept nogil:
    """Rows of windows of `count` channels, without gaps and widened."""
    cdef int64_t width = pool.w.out
    cdef int64_t row
    if pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == width:
        width *= rows
        rows = 1
    for row in range(rows):
        load_channels(pool, packed + row * width, pitch, grad_output__hw + row * pool.pooled_strides[2], width, count,
                      cells, source_end)


cdef void clear_planes(void* to, int64_t pitch, int64_t plane, int64_t count, int64_t size, bint far) noexcept nogil:
    """`plane` elements of `size` bytes become 0 in each of `count` planes, in one go if they lie end to end."""
    cdef int64_t c
    if pitch == plane:
        plane *= count
        count = 1
    for c in range(count):
        clear(<char*>to + c * pitch * size, plane * size, far)


cdef void open_rows(const MaxPool2dScatterPlan* plan, const Band* b, element* to__chw, term* sums, int64_t low,
                    int64_t high) noexcept nogil:
    """Zeros for the sums of rows [low, high) of the image, before windows reach them; `sums` is row `low`."""
    cdef int64_t n = (high - low) * plan.pool.w.size
    if b.marked:
        clear_planes(to__chw + (low - b.ih) * plan.pool.w.size, b.mark_pitch, n, b.count, sizeof(element),
                     plan.pool.far)
        return
    if high - low == b.rows and not b.in_place:
        n = b.sum_pitch         # with what lies outside, so in one go
    clear_planes(sums, b.sum_pitch, n, b.count, sizeof(term), plan.pool.far and b.in_place)


cdef void stream_sums(Rest* rests, element* to, int64_t to_pitch, term* sums, int64_t pitch, int64_t n, int64_t count,
                      element* cells) noexcept nogil:
    """n sums of each of `count` channels go past the caches."""
    cdef const char* made
    cdef int64_t c
    for c in range(count):
        made = <const char*>(sums + c * pitch)
        if sizeof(term) != sizeof(element):
            store_cells(cells, <const term*>sums + c * pitch, n)
            made = <const char*>cells
        stream_on(rests + c, <char*>(to + c * to_pitch), made, n * <int64_t>sizeof(element))


cdef bint read_indices(const MaxPool2dScatterPlan* plan, Band* b, char* scratch, int64_t oh,
                       int64_t oh_end) noexcept nogil:
    """Rows [oh, oh_end) of windows: their indices are packed if need be, and looked at while they are in the L1 cache.
    False if one lies outside its window."""
    b.mask = b.at
    if plan.pool.packed:
        b.mask = packed_indices(&plan.pool, b.at, b.count, oh, oh_end, scratch)
    # Else any_missed looks at them.
    return plan.apart > 0 or all_inside(plan, b.mask, b.count, scratch, oh, oh_end)


cdef bint scatter_windows(const MaxPool2dScatterPlan* plan, Band* b, term* sums, const element* grad_output__hw,
                          element* to__chw, char* scratch, element* cells) noexcept nogil:
    """All windows that reach the band, in the channels of a sweep: its rows are zeros before the first window reaches
    them, and stored when the last has. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef const PoolAxis* h = &pool.h
    cdef term* packed = <term*>(scratch + plan.at_rows)
    cdef const term* grad = packed
    cdef int64_t width = pool.w.size
    cdef int64_t end = b.ih + b.rows
    cdef int64_t first = b.ih       # the row at which the scratch begins
    cdef int64_t opened = b.ih
    cdef int64_t closed = b.ih
    cdef int64_t oh = first_window(h, b.ih)
    cdef int64_t last = end_window(h, end - 1)
    cdef int64_t oh_end, reached, done, row
    cdef int64_t size = b.count * b.sum_pitch * <int64_t>sizeof(term)
    # Sums that stay in a cache are cleared in one go; those of the scratch are stored in one go, too, if 16 bits count
    # the positions of the band.
    cdef bint at_once = (not (b.in_place or b.marked) and b.rows <= plan.rows and size <= SMALL_SUMS
                         and b.rows * width <= MOST_POSITIONS)
    cdef bint small = b.in_place and b.sum_pitch == b.rows * width and size <= SMALL_BYTES
    while closed < end:
        oh_end = least(oh + plan.block, last)
        # Rows below `done` are reached by none of the windows that follow.
        done = end if oh_end == last else least(most(oh_end * h.stride - h.pad, b.ih), end)
        b.top = least(most(oh * h.stride - h.pad, b.ih), end)
        reached = most(done, least((oh_end - 1) * h.stride - h.pad + h.kernel, end))
        if plan.apart > 0:
            b.top = b.ih
        if at_once or plan.apart > 0:
            # What lies outside goes behind all sums: no rows are cleared later.
            reached = end
            done = end if oh_end == last else b.ih
        b.height = reached - b.top
        if not b.in_place and reached - first > plan.rows:
            slide_rows(sums, b.sum_pitch, b.count, (closed - first) * width, (opened - closed) * width)
            first = closed
        if opened < reached:
            if small:
                reached = end
            open_rows(plan, b, to__chw, sums + (opened - first) * width, opened, reached)
            opened = reached
        if oh < oh_end:
            b.next.at = NULL
            if plan.ahead and (oh_end < last or b.onward) and (b.grad_step == pool.w.out or oh_end - oh == 1):
                # The next rows of these planes, or the first ones of the next planes.
                row = oh_end if oh_end < last else first_window(h, b.ih)
                b.next = read_next(pool, b.at, grad_output__hw, 0 if oh_end < last else b.count, row,
                                   (oh_end - oh) * pool.w.out, b.count, b.source_end)
            if pool.argmax and not read_indices(plan, b, scratch, oh, oh_end):
                return False
            if b.direct:
                grad = <const term*>(grad_output__hw + oh * pool.pooled_strides[2])
            else:
                load_rows(pool, packed, plan.row_pitch, grad_output__hw + oh * pool.pooled_strides[2], oh_end - oh,
                          b.count, cells, b.source_end)
            if not scatter_block(plan, b, sums + (b.top - first) * width, grad, scratch, oh, oh_end, to__chw):
                return False
        if plan.streams:
            stream_sums(<Rest*>(scratch + plan.at_rests) + b.lane, to__chw + (closed - b.ih) * width,
                        pool.image_strides[1], sums + (closed - first) * width, b.sum_pitch, (done - closed) * width,
                        b.count, cells)
        elif not (b.in_place or b.marked or plan.apart > 0):
            store_planes(plan, to__chw + (closed - b.ih) * pool.image_strides[2], sums + (closed - first) * width,
                         b.count, done - closed, cells)
        closed = done
        oh = oh_end
    return True


cdef bint scatter_band(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                       element* grad_input__chw, char* scratch, const char* source_end,
                       const term* kind) noexcept nogil:
    """The rows of a unit, a sweep of channels at a time. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef bint native = summed_there(pool, kind, grad_output__chw)
    cdef bint dense = pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
    cdef term* sums = <term*>(scratch + plan.at_sums)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef element* to__hw
    cdef Band b
    b.mask = u.mask
    b.source_end = source_end
    b.ih = u.ih
    b.rows = u.rows
    b.lane = 0
    b.direct = native and pool.pooled_strides[3] == 1
    b.in_place = (native or term is uint16_t) and dense and plan.apart == 0 and not plan.streams
    b.marked = plan.marked and dense
    b.grad_pitch = pool.pooled_strides[1] if b.direct else plan.row_pitch
    b.grad_step = pool.pooled_strides[2] if b.direct else pool.w.out
    b.sum_pitch = pool.image_strides[1] if b.in_place else plan.sum_pitch
    b.mark_pitch = pool.image_strides[1] if b.marked else 0
    if plan.placed:
        window_starts(<uint16_t*>(scratch + plan.at_places), <uint16_t*>(scratch + plan.at_places) + BLOCK, pool,
                      plan.block)
    while b.lane < u.lanes:
        b.count = least(plan.sweep, u.lanes - b.lane)
        b.onward = pool.bands == 1 or b.lane + b.count < u.lanes
        to__hw = grad_input__chw + b.lane * pool.image_strides[1] + u.ih * pool.image_strides[2]
        if b.in_place:
            sums = <term*>to__hw
        b.at = u.mask + pool.index_item * b.lane * pool.index_strides[1]
        if not scatter_windows(plan, &b, sums, grad_output__chw + b.lane * pool.pooled_strides[1], to__hw, scratch,
                               cells):
            return False
        if plan.apart > 0:
            if term is not uint16_t:
                join_planes(plan, &b, to__hw, sums, cells)
        b.lane += b.count
    return True


cdef void end_planes(const MaxPool2dScatterPlan* plan, element* grad_input__chw, term* sums, int64_t count,
                     char* scratch, element* cells) noexcept nogil:
    """Whole planes go to where they belong."""
    cdef int64_t j
    if not plan.streams:
        store_planes(plan, grad_input__chw, sums, count, plan.pool.h.size, cells)
        return
    for j in range(count):
        # One after the other: what is left of a line waits for the next plane.
        stream_sums(<Rest*>(scratch + plan.at_rests), grad_input__chw + j * plan.pool.image_strides[1], 0,
                    sums + j * plan.sum_pitch, 0, plan.sum_pitch, 1, cells)


cdef void spread_few(const MaxPool2dScatterPlan* plan, element* grad_input__chw, const term* grad, int64_t grad_pitch,
                     const char* words, int64_t lane, int64_t count, char* scratch) noexcept nogil:
    """`count` planes from `lane` on of those whose bits the words are, if there are bits."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef term* rows = <term*>(scratch + plan.at_rows)
    cdef term* to = <term*>grad_input__chw
    cdef int64_t pitch = pool.image_strides[1]
    if not (pool.argmax or all_marked(words, ((1u << count) - 1) << lane, plan.row_pitch)):
        keep_marked(rows, grad, grad_pitch, words, <int>lane, plan.row_pitch, count)
        grad = rows
        grad_pitch = plan.row_pitch
    if plan.streams:
        to = <term*>(scratch + plan.at_sums)
        pitch = plan.sum_pitch
    if leaves_gaps(pool):
        clear_planes(to, pitch, plan.sum_pitch, count, sizeof(term), pool.far and not plan.streams)
    spread_planes(pool, to, pitch, grad, grad_pitch, count)
    if plan.streams:
        end_planes(plan, grad_input__chw, to, count, scratch, <element*>(scratch + plan.at_cells))


cdef bint scatter_few(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const char* at, int64_t lane,
                      element* grad_input__chw, char* scratch, int64_t count, const char* source_end,
                      const term* kind) noexcept nogil:
    """Whole planes of indices, or of bits that are spread, `count` of them from `lane` on. False if it has met an index
    outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t windows = plan.row_pitch
    cdef int64_t index_pitch = pool.index_pitch
    cdef int64_t grad_pitch = windows
    cdef int64_t sum_pitch = plan.sum_pitch
    cdef bint native = summed_there(pool, kind, grad_output__chw)
    cdef bint dense = pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
    cdef bint in_place = dense and (native or term is uint16_t) and not plan.streams
    cdef const term* grad = <const term*>(scratch + plan.at_rows)
    cdef term* sums = <term*>(scratch + plan.at_sums)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef Ahead next
    next.at = NULL
    if plan.ahead:
        next = read_next(pool, at, grad_output__chw, count, 0, windows, count, source_end)
    if pool.packed:
        at = packed_indices(pool, at, count, 0, pool.h.out, scratch)
    if pool.argmax and (
            plan.windows.listed < count or index_pitch != windows
            or misses(pool, &plan.windows, at, scratch, 0, count * windows)) and (
            not all_inside(plan, at, count, scratch, 0, pool.h.out)):
        return False
    if native and pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == pool.w.out:
        grad = <const term*>grad_output__chw
        grad_pitch = pool.pooled_strides[1]
    else:
        load_rows(pool, <term*>grad, windows, grad_output__chw, pool.h.out, count, cells, source_end)
    if plan.spread:
        spread_few(plan, grad_input__chw, grad, grad_pitch, at, lane, count, scratch)
        return True
    if plan.marked and dense:
        clear_planes(grad_input__chw, pool.image_strides[1], sum_pitch, count, sizeof(element), pool.far)
        if term is float:
            scatter_ahead(&next, plan.together, sums, sum_pitch, 0, 0, grad, grad_pitch, at, index_pitch, count,
                          windows, True, grad_input__chw, pool.image_strides[1])
        return True
    if in_place:
        sums = <term*>grad_input__chw
        sum_pitch = pool.image_strides[1]
    clear_planes(sums, sum_pitch, plan.sum_pitch, count, sizeof(term), pool.far and in_place)
    scatter_ahead(&next, plan.together, sums, sum_pitch, 0, 0, grad, grad_pitch, at, index_pitch, count, windows, True,
                  <float*>NULL, 0)
    if not in_place:
        end_planes(plan, grad_input__chw, sums, count, scratch, cells)
    return True


cdef bint scatter_whole(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                        element* grad_input__chw, char* scratch, const char* source_end,
                        const term* kind) noexcept nogil:
    """The planes of a unit, few at a time. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t step = pool.index_item * pool.index_strides[1] if pool.argmax else 0
    cdef int64_t lane = 0
    while lane < u.lanes:
        if not scatter_few(plan, grad_output__chw + lane * pool.pooled_strides[1], u.mask + lane * step, lane,
                           grad_input__chw + lane * pool.image_strides[1], scratch, least(plan.few, u.lanes - lane),
                           source_end, kind):
            return False
        lane += plan.few
    return True


cdef bint find_plane(uint16_t* at, const char* words, const MaxPool2d* pool, unsigned channels) noexcept nogil:
    """plane_places, compiled once for all types."""
    return plane_places(at, words, pool, channels)


cdef void scatter_planes(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                         element* grad_input__chw, char* scratch, const char* source_end,
                         const term* kind) noexcept nogil:
    """The planes of a group, each in one go."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef int64_t grad_pitch = pool.pooled_strides[1]
    cdef int64_t sum_pitch = pool.image_strides[1]
    cdef bint native = summed_there(pool, kind, grad_output__chw)
    cdef bint dense = pool.image_strides[3] == 1 and pool.image_strides[2] == pool.w.size
    cdef bint in_place = dense and (native or term is uint16_t) and not plan.streams
    cdef const term* grad = <const term*>grad_output__chw
    cdef term* sums = <term*>grad_input__chw
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef uint16_t[LANES * LANES] at
    cdef bint placed = plan.placed and find_plane(at, u.mask, pool, (1u << u.lanes) - 1)
    if not (native and pool.pooled_strides[3] == 1 and pool.pooled_strides[2] == pool.w.out):
        grad = <const term*>(scratch + plan.at_rows)
        grad_pitch = plan.row_pitch
        load_rows(pool, <term*>grad, grad_pitch, grad_output__chw, pool.h.out, u.lanes, cells, source_end)
    if not in_place:
        sums = <term*>(scratch + plan.at_sums)
        sum_pitch = plan.sum_pitch
    if plan.marked and dense:
        clear_planes(grad_input__chw, pool.image_strides[1], plan.sum_pitch, u.lanes, sizeof(element), pool.far)
        if term is float:
            scatter_maxima(placed, at, sums, sum_pitch, grad, grad_pitch, u.mask, pool, u.lanes, grad_input__chw,
                           pool.image_strides[1])
        return
    clear_planes(sums, sum_pitch, plan.sum_pitch, u.lanes, sizeof(term), pool.far and in_place)
    scatter_maxima(placed, at, sums, sum_pitch, grad, grad_pitch, u.mask, pool, u.lanes, <float*>NULL, 0)
    if not in_place:
        end_planes(plan, grad_input__chw, sums, u.lanes, scratch, cells)


cdef bint scatter_each(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                       element* grad_input__chw, char* scratch, const term* kind) noexcept nogil:
    """EACH, apart from its caller's names."""
    return each_window(plan, grad_output__chw, u, grad_input__chw, scratch, kind)


cdef inline bint scatter_unit(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                              element* grad_input__chw, char* scratch, const char* source_end,
                              const term* kind) noexcept nogil:
    if plan.pool.algorithm == PLANES:
        scatter_planes(plan, grad_output__chw, u, grad_input__chw, scratch, source_end, kind)
        return True
    if plan.pool.algorithm == EACH:
        return scatter_each(plan, grad_output__chw, u, grad_input__chw, scratch, kind)
    if plan.few > 0:
        return scatter_whole(plan, grad_output__chw, u, grad_input__chw, scratch, source_end, kind)
    return scatter_band(plan, grad_output__chw, u, grad_input__chw, scratch, source_end, kind)


cdef int64_t scatter(const void* plan_pointer, char** data, char* scratch, int64_t begin, int64_t end,
                     const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const MaxPool2dScatterPlan* plan = <const MaxPool2dScatterPlan*>plan_pointer
    cdef const MaxPool2d* pool = &plan.pool
    cdef const element* grad_output__chw
    cdef element* grad_input__chw
    cdef const char* source_end = data[0] + pool.source_bytes
    cdef int64_t place
    cdef bint whole
    cdef Unit u = first_unit(pool, data[2], begin)
    if pool.argmax and pool.algorithm == SCATTER:
        fill_windows(pool, &plan.windows, scratch, plan.apart > 0)
    if plan.streams:
        memset(scratch + plan.at_rests, 0, LANES * sizeof(Rest))
    while begin < end:
        begin += 1
        grad_output__chw = <const element*>data[0] + u.pooled
        grad_input__chw = <element*>data[3] + u.image
        if pool.disjoint and (element is half or element is bfloat):
            whole = scatter_unit(plan, grad_output__chw, &u, grad_input__chw, scratch, source_end,
                                 <const uint16_t*>NULL)
        else:
            whole = scatter_unit(plan, grad_output__chw, &u, grad_input__chw, scratch, source_end, summed)
        if not whole:
            place = first_place(pool, &u, end - begin)
            if place >= 0:
                fence()
                return place
        next_unit(pool, data[2], &u)
    if plan.streams:
        flush_rests(<Rest*>(scratch + plan.at_rests), pool.lanes)
    return ALL_GOOD


cdef int64_t scatter_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return scatter(plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t scatter_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return scatter(plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t scatter_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return scatter(plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t scatter_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return scatter(plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef void max_pool2d_scatter_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = scatter_f32
    row[<int>SLOT_F64] = scatter_f64
    row[<int>SLOT_F16] = scatter_f16
    row[<int>SLOT_BF16] = scatter_bf16
