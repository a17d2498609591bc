"""Im2col, TABLE: short rows of windows in small planes.

The formula is that of im2col_forward.pyx, whose ROWS begin a row anew for each kernel position: more work than the few
elements of a short one. Here a table, made once and used for all planes, says where each element of a channel's columns
lies in its plane: out[r, l] = plane[table[r, l]], two loads and a store. Places count from 1, and 0 is the padding's
place: a plane is copied behind a zero first, unless nothing lies outside.

Bounds. `find_inside` says which windows lie inside the image; phase 1 has counted the plane's elements, in 16 bits, and
those of the table, and has proved that both views lie inside their storage.

`python -m benchmarks.sweep` measures: 1.1 to 6 times as fast as ROWS and TURNED.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._core.im2col_forward cimport Im2colForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._kernels.copies cimport Wide, item, join_four
from aclnn_bw._kernels.im2col_planes cimport Inside, find_inside, pack_planes, place


cdef void fill_table(const Im2colForwardPlan* plan, uint16_t* table) noexcept nogil:
    cdef int64_t kh, kw, lh, lw
    cdef Inside h
    cdef Inside w
    for kh in range(plan.h.kernel):
        find_inside(&plan.h, kh, &h)
        for kw in range(plan.w.kernel):
            find_inside(&plan.w, kw, &w)
            for lh in range(plan.h.windows):
                for lw in range(plan.w.windows):
                    table[0] = 0
                    if h.begin <= lh < h.end and w.begin <= lw < w.end:
                        table[0] = <uint16_t>(1 + place(&h, lh, plan.h.stride) * plan.w.size
                                              + place(&w, lw, plan.w.stride))
                    table += 1


cdef void fill_columns(const Im2colForwardPlan* plan, const item* plane, item* out__rl, const uint16_t* table,
                       item* image) noexcept nogil:
    """A channel's columns; `image` is for a zero and a plane."""
    cdef int64_t width = plan.w.size
    cdef int64_t n = plan.h.windows * plan.w.windows
    cdef int64_t rows = plan.h.kernel * plan.w.kernel
    cdef bint dense = plan.plane_strides[3] == 1 and plan.plane_strides[2] == width
    cdef const item* source = image
    cdef int64_t i, r
    if dense and plan.h.pad == 0 and plan.w.pad == 0:
        source = plane - 1      # no place is 0
    else:
        memset(image, 0, sizeof(item))
        if dense:
            memcpy(image + 1, plane, <size_t>(plan.h.size * width) * sizeof(item))
        else:
            for r in range(plan.h.size):
                for i in range(width):
                    image[1 + r * width + i] = plane[r * plan.plane_strides[2] + i * plan.plane_strides[3]]
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
    """The units [unit, end); unit = n*groups + group. The last argument gives its type only."""
    cdef int64_t positions = plan.h.kernel * plan.w.kernel
    cdef uint16_t* table = <uint16_t*>(scratch + plan.at_table)
    cdef int64_t n, c, channels
    cdef const item* planes
    cdef item* out
    fill_table(plan, table)
    while unit < end:
        n = unit // plan.groups
        c = (unit - n * plan.groups) * plan.group
        channels = least(plan.group, plan.channels - c)
        planes = <const item*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        if plan.packs:
            planes = pack_planes(plan, planes, <item*>scratch, channels, data[0] + plan.source_bytes)
        out = <item*>data[1] + n * plan.out_strides[0] + c * positions * plan.out_strides[1]
        while channels > 0:
            fill_columns(plan, planes, out, table, <item*>(scratch + plan.at_image))
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
