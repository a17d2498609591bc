"""ReplicationPad2d: out[p, q] = self[clamp(p - top, 0, H-1), clamp(q - left, 0, W-1)].

The formula is that of PyTorch's replication_pad2d (aten/src/ATen/native/cpu/PaddingKernel.cpp). Elements are copied bit
for bit, so a kernel knows their size alone, not their dtype.

Bounds. The plan (`CopiedAxis`) splits each axis of out into what copies position 0, what copies `between` positions
from `first` on, and what copies the last one; the three add up to out's size, and first + between is at most self's.
Rows stay in the unit's band, which lies inside out: an end that is written with more than its own bytes is of a row
that has a row of the band behind it, of more bytes than that. Phase 1 has proved that both views lie inside their
storage. The scratch holds a strip, of PACKED one of each channel of a group, and
behind them what is left of their last lines.

| path | when | why |
|---|---|---|
| PLANES | rows lie apart for each channel | |
| . dense rows | stride 1 along w in both | one copy a row, then its ends |
| . . streamed | rows >= 4 KiB, arrays beyond the caches | lines are not read before they are written |
| . . beyond | rows end to end, ends of up to 16 bytes | an end is one store, of what is written afterwards, too |
| . . far | shorter rows there | lines are fetched to be written: 0.7 to 0.9 of the time |
| . . strips | the same of larger arrays, planes end to end | streamed too, from the scratch: 0.55 to 0.9 of that |
| . any | other strides | element by element |
| PACKED | channels side by side in self | a transposition to strips of rows reads each cache line once |
| . streamed | arrays beyond the caches | from there, too |
| PIXELS | channels side by side in both | a pixel is copied as one, and dense pixels as one row |
| | small planes, rows not padded | each row is such a pixel |
| UNPACKED | in out alone | a transposition writes each cache line once |

`python -m benchmarks --operator replication_pad2d` measures.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.replication_pad2d cimport PACKED, PIXELS, PLANES, UNPACKED, CopiedAxis, ReplicationPad2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._kernels.copies cimport Wide, copy_bytes, item, stream_bytes
from aclnn_bw._kernels.lines cimport (
    Lines, Rest, close_lines, flush_rest, next_strip, open_lines, stream_on, stream_strip,
)
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, LINE, VECTOR_BYTES, fence, prefetch_to_write, simd_fill, simd_load, simd_store, vec, vector, vector_16,
    vector_half,
)

cdef enum:
    WORD_BYTES = 8
    END_BYTES = 16          # of an end that is written as one vector
    FETCHED = 512           # bytes: how far ahead lines are fetched to be written
    # How the middle of a row is copied.
    ITEMS = 0
    WORDS = 1               # two of them, which may overlap; and so on
    SIXTEENS = 2
    HALVES = 3
    VECTORS = 4
    FAR = 5                 # its lines have been fetched to be written
    STREAMED = 6


cdef inline int64_t source_of(const CopiedAxis* h, int64_t p) noexcept nogil:
    """The row that row p copies."""
    if p < h.before:
        return 0
    return least(h.first + p - h.before, h.last) if p < h.before + h.between else h.last


cdef inline void pad_ends(const CopiedAxis* w, const item* source, char* to, int64_t to_along) noexcept nogil:
    """What copies the first and the last element of a dense row, in any stride."""
    cdef int64_t i
    for i in range(w.before):
        memcpy(to + i * to_along, source, sizeof(item))
    for i in range(w.before + w.between, w.out):
        memcpy(to + i * to_along, source + w.last, sizeof(item))


cdef inline void pad_apart(const CopiedAxis* w, const char* source, int64_t along, char* to, int64_t to_along,
                           const item* kind) noexcept nogil:
    """One row, in any strides."""
    cdef int64_t i
    for i in range(w.before):
        memcpy(to + i * to_along, source, sizeof(item))
    to += w.before * to_along
    for i in range(w.between):
        memcpy(to + i * to_along, source + (w.first + i) * along, sizeof(item))
    to += w.between * to_along
    for i in range(w.after):
        memcpy(to + i * to_along, source + w.last * along, sizeof(item))


cdef inline Wide repeated(const item* value) noexcept nogil:
    """A block of this element: a word, or an element of two."""
    cdef Wide block
    block.low = block.high = <uint64_t>-1
    if item is Wide:
        block = value[0]
    else:
        block.low = block.low // <item>-1 * value[0]
    return block


cdef void fill_long(char* to, const void* word, int64_t n) noexcept nogil:
    """A word over and over, n >= VECTOR_BYTES bytes; n is a multiple of what the word repeats."""
    cdef int64_t last = n - VECTOR_BYTES
    cdef vector x
    simd_fill(&x, word, WORD_BYTES)
    while last > 0:
        simd_store(to + last, &x)
        last -= VECTOR_BYTES
    simd_store(to, &x)


cdef inline void fill_items(char* to, const item* value, int64_t n) noexcept nogil:
    """An element over and over, n bytes: as blocks, and what is left as halves of one. A loop over elements, which gcc
    makes vectors of, took longer than the copy of a short row."""
    cdef Wide block = repeated(value)
    cdef int64_t size = most(<int64_t>sizeof(item), WORD_BYTES)
    if sizeof(item) <= WORD_BYTES and n >= VECTOR_BYTES:
        fill_long(to, &block, n)
        return
    while n >= size:
        memcpy(to, &block, <size_t>size)
        to += size
        n -= size
    if sizeof(item) < 8 and n & 4:
        memcpy(to, &block, 4)
        to += 4
    if sizeof(item) < 4 and n & 2:
        memcpy(to, &block, 2)
        to += 2
    if sizeof(item) < 2 and n & 1:
        memcpy(to, &block, 1)


cdef inline void copy_two(char* to, const char* source, int64_t n, vec* width) noexcept nogil:
    """The first and the last vector of n bytes, which are all."""
    cdef int64_t last = n - <int64_t>sizeof(vec)
    cdef vec x
    simd_load(&x, source)
    simd_store(to, &x)
    simd_load(&x, source + last)
    simd_store(to + last, &x)


cdef inline void fill_end(char* to, const item* value, int64_t n, bint beyond) noexcept nogil:
    """fill_items, or END_BYTES of them if what lies `beyond` is written afterwards."""
    cdef vector_16 x
    if beyond:
        simd_fill(&x, value, sizeof(item))
        simd_store(to, &x)
    else:
        fill_items(to, value, n)


cdef inline void pad_in_form(const ReplicationPad2dForwardPlan* plan, const char* source, char* to, int64_t p,
                             int64_t end, int form, bint beyond, const item* kind) noexcept nogil:
    """pad_dense, compiled for each form."""
    cdef const CopiedAxis* w = &plan.w
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t before = w.before * size
    cdef int64_t n = w.between * size
    cdef int64_t after = w.after * size
    cdef int64_t first = w.first * size
    cdef int64_t last = w.last * size
    cdef int64_t source_down = plan.self_strides[2]
    cdef int64_t down = plan.out_strides[2]
    # The row behind copies the next one of self if both copy one after the other.
    cdef int64_t begin = plan.h.before
    cdef int64_t stop = plan.h.before + plan.h.between - 1
    cdef int64_t i
    cdef uint64_t word
    while p < end:
        if form == FAR:
            i = 0
            while i < n:
                prefetch_to_write(to + FETCHED + i)
                i += LINE
        fill_end(to, <const item*>source, before, beyond)
        if form == STREAMED:
            stream_bytes(to + before, source + first, n)
        elif form == VECTORS or form == FAR:
            copy_bytes(to + before, source + first, n)
        elif form == HALVES:
            copy_two(to + before, source + first, n, <vector_half*>NULL)
        elif form == SIXTEENS:
            copy_two(to + before, source + first, n, <vector_16*>NULL)
        elif form == ITEMS:
            i = 0
            while i < n:
                memcpy(to + before + i, source + first + i, sizeof(item))
                i += size
        else:
            memcpy(&word, source + first, sizeof(word))
            memcpy(to + before, &word, sizeof(word))
            memcpy(&word, source + first + n - sizeof(word), sizeof(word))
            memcpy(to + before + n - sizeof(word), &word, sizeof(word))
        fill_end(to + before + n, <const item*>(source + last), after, beyond)
        source += source_down if begin <= p < stop else 0
        to += down
        p += 1


cdef inline bint ends_short(const ReplicationPad2dForwardPlan* plan, const item* kind) noexcept nogil:
    """Rows end to end, whose ends are shorter than what lies beside them: its middle is written after the end before a
    row, and the next row after the end behind it (0.2 to 0.95 of the time)."""
    cdef int64_t size = <int64_t>sizeof(item)
    return (2 <= size <= 8 and most(plan.w.before, plan.w.after) * size <= END_BYTES
            and plan.w.between * size >= END_BYTES and plan.out_strides[2] == plan.w.out * size)


cdef void pad_dense(const ReplicationPad2dForwardPlan* plan, const char* source, char* to, int64_t p, int64_t end,
                    const item* kind) noexcept nogil:
    """The rows [p, end) of a plane, of which p copies `source`; elements side by side in both."""
    cdef int64_t n = plan.w.between * <int64_t>sizeof(item)
    cdef int64_t last = end - 1
    if plan.streamed and n >= VECTOR_BYTES:
        pad_in_form(plan, source, to, p, end, STREAMED, False, kind)
        return
    if plan.far and n >= VECTOR_BYTES:
        pad_in_form(plan, source, to, p, end, FAR, False, kind)
        return
    if 2 <= sizeof(item) <= 8 and p < last and ends_short(plan, kind):
        # All rows but the last one.
        if n >= VECTOR_BYTES:
            pad_in_form(plan, source, to, p, last, VECTORS, True, kind)
        elif HALF_BYTES < VECTOR_BYTES and n >= HALF_BYTES:
            pad_in_form(plan, source, to, p, last, HALVES, True, kind)
        else:
            pad_in_form(plan, source, to, p, last, SIXTEENS, True, kind)
        source += (source_of(&plan.h, last) - source_of(&plan.h, p)) * plan.self_strides[2]
        to += (last - p) * plan.out_strides[2]
        p = last
    if n >= VECTOR_BYTES:
        pad_in_form(plan, source, to, p, end, VECTORS, False, kind)
    elif HALF_BYTES < VECTOR_BYTES and n >= HALF_BYTES:
        pad_in_form(plan, source, to, p, end, HALVES, False, kind)
    elif 16 < HALF_BYTES and n >= 16:
        pad_in_form(plan, source, to, p, end, SIXTEENS, False, kind)
    elif n >= WORD_BYTES:
        pad_in_form(plan, source, to, p, end, WORDS, False, kind)
    else:
        pad_in_form(plan, source, to, p, end, ITEMS, False, kind)


cdef void pad_pixels(const ReplicationPad2dForwardPlan* plan, const char* source, char* to) noexcept nogil:
    """One row of pixels."""
    cdef const CopiedAxis* w = &plan.w
    cdef int64_t along = plan.self_strides[3]
    cdef int64_t to_along = plan.out_strides[3]
    cdef int64_t cell = plan.cell
    cdef int64_t i
    for i in range(w.before):
        copy_bytes(to + i * to_along, source, cell)
    to += w.before * to_along
    if along == cell and to_along == cell and plan.streamed:
        stream_bytes(to, source + w.first * along, w.between * cell)
    elif along == cell and to_along == cell:
        copy_bytes(to, source + w.first * along, w.between * cell)
    else:
        for i in range(w.between):
            copy_bytes(to + i * to_along, source + (w.first + i) * along, cell)
    to += w.between * to_along
    for i in range(w.after):
        copy_bytes(to + i * to_along, source + w.last * along, cell)


cdef void pad_plane(const ReplicationPad2dForwardPlan* plan, const char* self__hw, char* out__hw, int64_t p,
                    int64_t end, const item* kind) noexcept nogil:
    """The rows [p, end) of a plane, or of one image's pixels."""
    cdef int64_t along = plan.self_strides[3]
    cdef int64_t to_along = plan.out_strides[3]
    cdef const char* source = self__hw + source_of(&plan.h, p) * plan.self_strides[2]
    cdef char* to = out__hw + p * plan.out_strides[2]
    if plan.layout != PIXELS and along == plan.item and to_along == plan.item:
        pad_dense(plan, source, to, p, end, kind)
        return
    while p < end:
        source = self__hw + source_of(&plan.h, p) * plan.self_strides[2]
        if plan.layout == PIXELS:
            pad_pixels(plan, source, to)
        else:
            pad_apart(&plan.w, source, along, to, to_along, kind)
        to += plan.out_strides[2]
        p += 1


cdef void make_packed(const ReplicationPad2dForwardPlan* plan, const char* source__wc, char* to, int64_t channels,
                      const void* source_end, const item* kind) noexcept nogil:
    """One row of a group of channels, in the scratch."""
    cdef const CopiedAxis* w = &plan.w
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t along = plan.self_strides[3]
    cdef const char* last = source__wc + w.last * along
    cdef int64_t c
    turn_any(to + w.before * size, plan.pitch // size, source__wc + w.first * along, along // size, w.between, channels,
             size, source_end)
    for c in range(channels):
        fill_items(to, <const item*>(source__wc + c * size), w.before * size)
        fill_items(to + (w.before + w.between) * size, <const item*>(last + c * size), w.after * size)
        to += plan.pitch


cdef void stream_row(Rest* rest, char* to, const char* made, int64_t n) noexcept nogil:
    """stream_on, compiled once for all types."""
    stream_on(rest, to, made, n)


cdef inline void move_packed(const ReplicationPad2dForwardPlan* plan, Rest* rest, const char* made, char* to,
                             int64_t rows, const item* kind) noexcept nogil:
    """The rows of one channel, from the scratch."""
    cdef int64_t along = plan.out_strides[3]
    cdef int64_t i
    if along != sizeof(item):
        for i in range(plan.w.out):
            memcpy(to + i * along, made + i * <int64_t>sizeof(item), sizeof(item))
    elif plan.streamed:
        stream_row(rest, to, made, rows * plan.w.out * <int64_t>sizeof(item))
    else:
        copy_bytes(to, made, rows * plan.w.out * <int64_t>sizeof(item))


cdef void pad_packed(const ReplicationPad2dForwardPlan* plan, const char* self__hwc, char* out__chw, char* scratch,
                     int64_t channels, int64_t p, int64_t end, const void* source_end,
                     const item* kind) noexcept nogil:
    """The rows [p, end) of a group of channels: strips of them are made in the scratch, each source row once."""
    cdef Rest* rests = <Rest*>(scratch + plan.group * plan.pitch)
    cdef int64_t row = plan.w.out * <int64_t>sizeof(item)
    cdef int64_t made = -1      # the source row that was made last, and which row of the strip it is
    cdef int64_t at = 0
    cdef int64_t c, r, rows
    memset(rests, 0, <size_t>plan.group * sizeof(Rest))
    while p < end:
        rows = least(plan.strip, end - p)
        for r in range(rows):
            if source_of(&plan.h, p + r) != made:
                made = source_of(&plan.h, p + r)
                make_packed(plan, self__hwc + made * plan.self_strides[2], scratch + r * row, channels, source_end,
                            kind)
            else:
                for c in range(channels if r != at else 0):
                    copy_bytes(scratch + c * plan.pitch + r * row, scratch + c * plan.pitch + at * row, row)
            at = r
        for c in range(channels):
            move_packed(plan, rests + c, scratch + c * plan.pitch,
                        out__chw + c * plan.out_strides[1] + p * plan.out_strides[2], rows, kind)
        p += rows
    for c in range(channels if plan.streamed else 0):
        flush_rest(rests + c)


cdef void pad_unpacked(const ReplicationPad2dForwardPlan* plan, const char* self__chw, char* out__hwc, int64_t channels,
                       int64_t p, int64_t end, const item* kind) noexcept nogil:
    """The rows [p, end) of a group of channels."""
    cdef const CopiedAxis* w = &plan.w
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t next = plan.self_strides[1]
    cdef int64_t to_along = plan.out_strides[3]
    cdef int64_t c
    cdef const char* source
    cdef char* to
    while p < end:
        source = self__chw + source_of(&plan.h, p) * plan.self_strides[2]
        to = out__hwc + p * plan.out_strides[2]
        turn_any(to + w.before * to_along, to_along // size, source + w.first * size, next // size, channels,
                 w.between, size, NULL)
        for c in range(channels if w.before + w.after > 0 else 0):
            pad_ends(w, <const item*>(source + c * next), to + c * size, to_along)
        p += 1


cdef void stream_rows(Lines* strip, int64_t n, const char* next, const char* source_end) noexcept nogil:
    """stream_strip, compiled once for all types."""
    stream_strip(strip, n, next, 1, source_end)


cdef void pad_strips(const ReplicationPad2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                     const item* kind) noexcept nogil:
    """The units [unit, end) of dense planes past the caches: strips of rows are made in the scratch."""
    cdef int64_t row = plan.out_strides[2]
    cdef const char* source_end = data[0] + plan.source_bytes
    cdef int64_t n, plane, c, p, stop, rows
    cdef const char* self__hw
    cdef const char* source
    cdef char* to
    cdef Lines strip
    open_lines(&strip, scratch)
    while unit < end:
        plane = unit // plan.bands
        p = (unit - plane * plan.bands) * plan.band
        stop = least(p + plan.band, plan.h.out)
        n = plane // plan.channels
        c = plane - n * plan.channels
        self__hw = data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        source = self__hw + source_of(&plan.h, p) * plan.self_strides[2]
        to = data[1] + n * plan.out_strides[0] + c * plan.out_strides[1] + p * row
        while p < stop:
            rows = least(plan.strip, stop - p)
            pad_dense(plan, source, next_strip(&strip, to), p, p + rows, kind)
            p += rows
            to += rows * row
            source = self__hw + source_of(&plan.h, p) * plan.self_strides[2]
            stream_rows(&strip, rows * row, source, source_end)
        unit += 1
    close_lines(&strip)


cdef int64_t forward(const ReplicationPad2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                     const item* kind) noexcept nogil:
    """The units [unit, end); unit = (n*groups + group)*bands + band, of PACKED (n*bands + band)*groups + group. The
    last argument gives its type only."""
    cdef int64_t n, plane, c, p, stop
    cdef const char* source
    cdef char* to
    if plan.strip > 0 and plan.layout == PLANES:
        pad_strips(plan, data, scratch, unit, end, kind)
        return ALL_GOOD
    while unit < end:
        if plan.layout == PACKED:
            plane = unit // plan.groups
            c = (unit - plane * plan.groups) * plan.group
            n = plane // plan.bands
            p = (plane - n * plan.bands) * plan.band
        else:
            plane = unit // plan.bands
            p = (unit - plane * plan.bands) * plan.band
            n = plane // plan.groups
            c = (plane - n * plan.groups) * plan.group
        stop = least(p + plan.band, plan.h.out)
        source = data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        to = data[1] + n * plan.out_strides[0] + c * plan.out_strides[1]
        if plan.layout == PACKED:
            pad_packed(plan, source, to, scratch, least(plan.group, plan.channels - c), p, stop,
                       data[0] + plan.source_bytes, kind)
        elif plan.layout == UNPACKED:
            pad_unpacked(plan, source, to, least(plan.group, plan.channels - c), p, stop, kind)
        else:
            pad_plane(plan, source, to, p, stop, kind)
        unit += 1
    if plan.streamed:
        fence()
    return ALL_GOOD


cdef int64_t forward_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const ReplicationPad2dForwardPlan*>plan, data, scratch, begin, end, <const uint8_t*>NULL)


cdef int64_t forward_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const ReplicationPad2dForwardPlan*>plan, data, scratch, begin, end, <const uint16_t*>NULL)


cdef int64_t forward_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const ReplicationPad2dForwardPlan*>plan, data, scratch, begin, end, <const uint32_t*>NULL)


cdef int64_t forward_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const ReplicationPad2dForwardPlan*>plan, data, scratch, begin, end, <const uint64_t*>NULL)


cdef int64_t forward_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const ReplicationPad2dForwardPlan*>plan, data, scratch, begin, end, <const Wide*>NULL)


cdef void replication_pad2d_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = forward_1
    row[1] = forward_2
    row[2] = forward_4
    row[3] = forward_8
    row[4] = forward_16
