"""ReplicationPad2d: out[p, q] = self[clamp(p - top, 0, H-1), clamp(q - left, 0, W-1)].

The formula is that of PyTorch's replication_pad2d (aten/src/ATen/native/cpu/PaddingKernel.cpp). Elements are copied bit
for bit, so a kernel knows their size alone, not their dtype.

Bounds. The plan (`CopiedAxis`) splits each axis of out into what copies position 0, what copies `between` positions
from `first` on, and what copies the last one; the three add up to out's size, and first + between is at most self's.
Rows stay in the unit's band, which lies inside out; phase 1 has proved that both views lie inside their storage. The
scratch of a unit holds a row of its channels.

| path | when | why |
|---|---|---|
| PLANES | rows lie apart for each channel | |
| . dense rows | stride 1 along w in both | one copy a row, then its ends |
| . . streamed | rows >= 4 KiB, arrays beyond the caches | lines are not read before they are written |
| . any | other strides | element by element |
| PACKED | channels side by side in self | a transposition to rows reads each cache line once |
| PIXELS | channels side by side in both | a pixel is copied as one, and dense pixels as one row |
| UNPACKED | in out alone | a transposition writes each cache line once |

`python -m benchmarks --operator replication_pad2d` measures.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._core.replication_pad2d cimport PACKED, PIXELS, UNPACKED, CopiedAxis, ReplicationPad2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._kernels.copies cimport Wide, copy_bytes, fill_items, item, stream_bytes
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.simd cimport fence


cdef inline int64_t source_of(const CopiedAxis* h, int64_t p) noexcept nogil:
    """The row that row p copies."""
    if p < h.before:
        return 0
    return least(h.first + p - h.before, h.last) if p < h.before + h.between else h.last


cdef inline void pad_dense(const CopiedAxis* w, const item* source, item* to, bint streamed) noexcept nogil:
    """One row; elements side by side in both."""
    fill_items(to, source[0], w.before)
    to += w.before
    if streamed:
        stream_bytes(<char*>to, <const char*>(source + w.first), w.between * <int64_t>sizeof(item))
    else:
        copy_bytes(<char*>to, <const char*>(source + w.first), w.between * <int64_t>sizeof(item))
    fill_items(to + w.between, source[w.last], w.after)


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
    cdef bint dense = along == plan.item and to_along == plan.item
    cdef const char* source
    cdef char* to
    while p < end:
        source = self__hw + source_of(&plan.h, p) * plan.self_strides[2]
        to = out__hw + p * plan.out_strides[2]
        if plan.layout == PIXELS:
            pad_pixels(plan, source, to)
        elif dense:
            pad_dense(&plan.w, <const item*>source, <item*>to, plan.streamed)
        else:
            pad_apart(&plan.w, source, along, to, to_along, kind)
        p += 1


cdef void pad_packed(const ReplicationPad2dForwardPlan* plan, const char* self__hwc, char* out__chw, char* scratch,
                     int64_t channels, int64_t p, int64_t end, const void* source_end,
                     const item* kind) noexcept nogil:
    """The rows [p, end) of a group of channels: each source row is transposed, once where rows repeat it."""
    cdef int64_t width = plan.w.last + 1
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t to_along = plan.out_strides[3]
    cdef int64_t row = -1
    cdef int64_t c
    cdef const char* source
    cdef char* to
    while p < end:
        if source_of(&plan.h, p) != row:
            row = source_of(&plan.h, p)
            source = self__hwc + row * plan.self_strides[2]
            turn_any(scratch, width, source, plan.self_strides[3] // size, width, channels, size, source_end)
        for c in range(channels):
            source = scratch + c * width * size
            to = out__chw + c * plan.out_strides[1] + p * plan.out_strides[2]
            if to_along == size:
                pad_dense(&plan.w, <const item*>source, <item*>to, False)
            else:
                pad_apart(&plan.w, source, size, to, to_along, kind)
        p += 1


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


cdef int64_t forward(const ReplicationPad2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                     const item* kind) noexcept nogil:
    """The units [unit, end); unit = (n*groups + group)*bands + band. The last argument gives its type only."""
    cdef int64_t n, plane, c, p, stop
    cdef const char* source
    cdef char* to
    while unit < end:
        plane = unit // plan.bands
        p = (unit - plane * plan.bands) * plan.band
        stop = least(p + plan.band, plan.h.out)
        n = plane // plan.groups
        c = (plane - n * plan.groups) * plan.group
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
