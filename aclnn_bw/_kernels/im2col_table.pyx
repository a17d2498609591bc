"""Im2col, TABLE: short rows of windows.

The formula is that of im2col_forward.pyx, whose ROWS begin a row anew for each kernel position: more work than the few
elements of a short one. Here a table says where each element of a channel's columns lies in its plane:
out[r, l] = image[table[r, l]], two loads and a store. It is made for a band of rows of windows, which is then made of
all planes. Places count from 1, and 0 is the padding's place: the rows of the plane that a band reads, its image, are
copied behind a zero first, unless nothing lies outside. Where those are far more than out's, they are read in place:
what the padding's elements get is another place's, and zeros are written over it (4 to 25 times as fast as ROWS).

Bounds. `find_inside` says which windows lie inside the image; phase 1 has counted the elements of a band's image and of
its table, and has proved that both views lie inside their storage. 16 bits hold every place; what is added to make one
may wrap around.

`python -m benchmarks.sweep` measures: 1.1 to 7 times as fast as ROWS and TURNED.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.im2col_forward cimport ForwardAxis, Im2colForwardPlan, span_of
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._kernels.copies cimport Wide, item, join_four
from aclnn_bw._kernels.im2col_planes cimport Inside, find_inside, pack_planes


# A band of rows of windows, and the rows of the image that it reads.
cdef struct Band:
    int64_t first
    int64_t end
    int64_t windows     # in all of its rows
    int64_t top
    int64_t rows


cdef Band find_band(const Im2colForwardPlan* plan, int64_t band) noexcept nogil:
    """No sum overflows: what is not clipped by all rows being there is small (lay_out_table)."""
    cdef const ForwardAxis* h = &plan.h
    cdef Band b
    b.first = band * plan.band // plan.w.windows
    b.end = least(b.first + plan.band // plan.w.windows, h.windows)
    b.windows = (b.end - b.first) * plan.w.windows
    b.top = 0
    b.rows = h.size
    if plan.image_rows < h.size:
        b.top = least(most(b.first * h.stride - h.pad, 0), h.size)
        b.rows = most(least((b.end - 1) * h.stride - h.pad + span_of(h), h.size) - b.top, 0)
    return b


cdef void find_windows(const Im2colForwardPlan* plan, const Band* b, uint16_t* starts, uint16_t* inside) noexcept nogil:
    """Where each window begins, and for each kernel column all bits of the windows that have it inside the image."""
    cdef int64_t kw, lh, lw, at
    cdef Inside w
    for lh in range(b.first, b.end):
        for lw in range(plan.w.windows):
            starts[0] = <uint16_t>(1 + (<uint64_t>lh * <uint64_t>plan.h.stride - <uint64_t>b.top)
                                   * <uint64_t>plan.w.size + <uint64_t>lw * <uint64_t>plan.w.stride)
            starts += 1
    for kw in range(plan.w.kernel):
        find_inside(&plan.w, kw, &w)
        at = 0
        while at < b.windows:
            for lw in range(plan.w.windows):
                inside[at + lw] = 0xffff if w.begin <= lw < w.end else 0
            at += plan.w.windows
        inside += b.windows


cdef void fill_table(const Im2colForwardPlan* plan, const Band* b, uint16_t* table, uint16_t* starts) noexcept nogil:
    """A window's begin and a kernel position's place: in 16 bits only the sum need fit."""
    cdef int64_t n = b.windows
    cdef const uint16_t* inside
    cdef int64_t kh, kw, i, first, end
    cdef uint16_t at
    cdef Inside h
    cdef Inside w
    find_windows(plan, b, starts, starts + n)
    if plan.h.pad > 0:
        memset(table, 0, <size_t>(plan.h.kernel * plan.w.kernel * n) * sizeof(uint16_t))
    for kh in range(plan.h.kernel):
        find_inside(&plan.h, kh, &h)
        first = (most(h.begin, b.first) - b.first) * plan.w.windows
        end = (least(h.end, b.end) - b.first) * plan.w.windows
        inside = starts
        for kw in range(plan.w.kernel):
            find_inside(&plan.w, kw, &w)
            at = <uint16_t>(<uint64_t>h.at * <uint64_t>plan.w.size + <uint64_t>w.at)
            inside += n
            for i in range(first, end):
                table[i] = <uint16_t>(starts[i] + at) & inside[i]
            table += n


cdef int64_t list_padding(uint16_t* table, int64_t n, uint16_t* padding) noexcept nogil:
    """Which of a table's places are the padding's, how many; the first of the image stands in for them."""
    cdef int64_t count = 0
    cdef int64_t i
    for i in range(n):
        if table[i] == 0:
            table[i] = 1
            padding[count] = <uint16_t>i
            count += 1
    return count


cdef const item* make_image(const Im2colForwardPlan* plan, const Band* b, const item* plane,
                            item* image) noexcept nogil:
    """The rows of a plane that a band reads, and before them a zero, if it has a place."""
    cdef int64_t width = plan.w.size
    cdef int64_t i, r
    plane += b.top * plan.plane_strides[2]
    if plan.plane_strides[3] == 1 and plan.plane_strides[2] == width:
        if (plan.h.pad == 0 and plan.w.pad == 0) or plan.patches:
            return plane - 1        # no place is 0
        memcpy(image + 1, plane, <size_t>(b.rows * width) * sizeof(item))
    elif plan.plane_strides[3] == 1:
        for r in range(b.rows):
            memcpy(image + 1 + r * width, plane + r * plan.plane_strides[2], <size_t>width * sizeof(item))
    else:
        for r in range(b.rows):
            for i in range(width):
                image[1 + r * width + i] = plane[r * plan.plane_strides[2] + i * plan.plane_strides[3]]
    memset(image, 0, sizeof(item))
    return image


cdef void fill_columns(const Im2colForwardPlan* plan, const Band* b, const item* source, item* out__rl,
                       const uint16_t* table) noexcept nogil:
    """A channel's columns in a band."""
    cdef int64_t n = b.windows
    cdef int64_t rows = plan.h.kernel * plan.w.kernel
    cdef int64_t i
    if plan.out_strides[1] == n:
        n *= rows
        rows = 1
    while rows > 0:
        i = 0
        if item is uint16_t:
            while i + 4 <= n:
                join_four(<char*>(out__rl + i), source[table[i]], source[table[i + 1]], source[table[i + 2]],
                          source[table[i + 3]])
                i += 4
        while i < n:
            out__rl[i] = source[table[i]]
            i += 1
        table += n
        out__rl += plan.out_strides[1]
        rows -= 1


cdef int64_t by_table(const Im2colForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                      const item* kind) noexcept nogil:
    """The units [unit, end); unit = (band*images + n)*groups + group. The last argument gives its type only."""
    cdef int64_t positions = plan.h.kernel * plan.w.kernel
    cdef uint16_t* table = <uint16_t*>(scratch + plan.at_table)
    cdef uint16_t* padding = <uint16_t*>(scratch + plan.at_image)
    cdef int64_t made = -1
    cdef int64_t patches = 0
    cdef int64_t band, n, c, channels, i
    cdef const item* planes
    cdef item* out
    cdef Band b
    while unit < end:
        n = unit // plan.groups
        c = (unit - n * plan.groups) * plan.group
        band = n // plan.images
        n -= band * plan.images
        if band != made:
            made = band
            b = find_band(plan, band)
            fill_table(plan, &b, table, <uint16_t*>(scratch + plan.at_windows))
            if plan.patches:
                patches = list_padding(table, positions * b.windows, padding)
        channels = least(plan.group, plan.channels - c)
        planes = <const item*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        if plan.packs:
            planes = pack_planes(plan, planes, <item*>scratch, channels, data[0] + plan.source_bytes)
        out = (<item*>data[1] + n * plan.out_strides[0] + c * positions * plan.out_strides[1]
               + b.first * plan.w.windows)
        while channels > 0:
            fill_columns(plan, &b, make_image(plan, &b, planes, <item*>(scratch + plan.at_image)), out, table)
            for i in range(patches):
                memset(out + padding[i], 0, sizeof(item))
            planes += plan.plane_strides[1]
            out += positions * plan.out_strides[1]
            channels -= 1
        unit += 1
    return ALL_GOOD


cdef int64_t table_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return by_table(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint8_t*>NULL)


cdef int64_t table_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return by_table(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint16_t*>NULL)


cdef int64_t table_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return by_table(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint32_t*>NULL)


cdef int64_t table_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return by_table(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint64_t*>NULL)


cdef int64_t table_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return by_table(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const Wide*>NULL)


cdef void im2col_table_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = table_1
    row[1] = table_2
    row[2] = table_4
    row[3] = table_8
    row[4] = table_16
