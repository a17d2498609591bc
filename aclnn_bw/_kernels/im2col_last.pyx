# cython: cdivision=True
"""Im2col, LAST: out has the columns of a window side by side, C*kH*kW of them, as a matrix product wants them.

The formula is that of im2col_forward.pyx. A window's kH*kW pixels, the channels of each side by side, are a matrix: its
transpose is what out has. Where self has them not side by side, rows of the image are made so first, those that a band
of windows reads; rows of one kernel position need that only if its windows are apart.

    path            when
    fill_last       a window's pixels are gathered to the scratch and transposed from there
    fill_pixels     one kernel position: rows of pixels are copied, or transposed

Bounds. Phase 1 has proved that both views lie inside their storage and that out has a row for each kernel position, of
Lh*Lw windows. Pads, dilations and kernels are at most 2**30, so that no place wraps around; what lies outside the image
is a zero, and nothing is read for it. The plan has counted the pixels of a window, and the rows of a band's windows.

`python -m benchmarks.strided` measures.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.im2col_forward cimport Im2colForwardPlan, span_of
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._kernels.copies cimport Wide, copy_bytes, item
from aclnn_bw._kernels.im2col_planes cimport Inside, find_inside, place
from aclnn_bw._kernels.planes cimport turn_any


cdef void turn_items(item* to, int64_t to_pitch, const item* source, int64_t pitch, int64_t rows, int64_t columns,
                     const void* end) noexcept nogil:
    """turn_any, once for its three callers, for it is long: see UNIT_FLAGS in setup.py."""
    turn_any(to, to_pitch, source, pitch, rows, columns, sizeof(item), end)


cdef inline void gather_window(const Im2colForwardPlan* plan, const item* pixels, int64_t h, int64_t w, item* to,
                               int64_t channels) noexcept nogil:
    """to[k, :channels] = the pixels of the window that begins at (h, w)."""
    cdef int64_t size = channels * <int64_t>sizeof(item)
    cdef int64_t end = w + plan.w.kernel * plan.w.dilation
    cdef bint joined = plan.w.dilation == 1 and plan.plane_strides[3] == channels
    cdef int64_t first = least(most(-w, 0), plan.w.kernel)
    cdef int64_t last = most(least(plan.w.size - w, plan.w.kernel), first)
    cdef int64_t at
    for _ in range(plan.h.kernel):
        if not 0 <= h < plan.h.size:
            memset(to, 0, <size_t>(plan.w.kernel * size))
            to += plan.w.kernel * channels
        elif joined:
            # Of a row they are one run: a copy of each takes 1.2 to 1.6 times as long.
            if first > 0:
                memset(to, 0, <size_t>(first * size))
            copy_bytes(<char*>(to + first * channels),
                       <const char*>(pixels + h * plan.plane_strides[2] + (w + first) * channels),
                       (last - first) * size)
            if last < plan.w.kernel:
                memset(to + last * channels, 0, <size_t>((plan.w.kernel - last) * size))
            to += plan.w.kernel * channels
        else:
            at = w
            while at < end:
                if 0 <= at < plan.w.size:
                    copy_bytes(<char*>to,
                               <const char*>(pixels + h * plan.plane_strides[2] + at * plan.plane_strides[3]), size)
                else:
                    memset(to, 0, <size_t>size)
                to += channels
                at += plan.w.dilation
        h += plan.h.dilation


cdef void fill_last(const Im2colForwardPlan* plan, const item* pixels, item* out__lr, item* window, int64_t channels,
                    int64_t l, int64_t end) noexcept nogil:
    """Some channels' windows [l, end), whole rows of them."""
    cdef int64_t positions = plan.h.kernel * plan.w.kernel
    cdef int64_t lh, h, w
    out__lr += l * plan.out_strides[2]
    for lh in range(l // plan.w.windows, end // plan.w.windows):
        h = lh * plan.h.stride - plan.h.pad
        w = -plan.w.pad
        for _ in range(plan.w.windows):
            gather_window(plan, pixels, h, w, window, channels)
            turn_items(out__lr, positions, window, channels, positions, channels, NULL)
            out__lr += plan.out_strides[2]
            w += plan.w.stride


cdef inline void zero_pixels(const Im2colForwardPlan* plan, item* out__lr, int64_t channels, int64_t first,
                             int64_t last) noexcept nogil:
    cdef int64_t i
    for i in range(first, last):
        memset(out__lr + i * plan.out_strides[2], 0, <size_t>channels * sizeof(item))


cdef void fill_pixels(const Im2colForwardPlan* plan, const item* image, item* out__lr, int64_t channels, int64_t l,
                      int64_t end, const void* source_end) noexcept nogil:
    """The same of one kernel position."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t along = plan.w.stride * plan.plane_strides[3]
    cdef int64_t pitch = plan.out_strides[2]
    cdef int64_t lh, n
    cdef const item* row
    cdef item* to
    cdef Inside h
    cdef Inside w
    find_inside(&plan.h, 0, &h)
    find_inside(&plan.w, 0, &w)
    out__lr += l * pitch
    for lh in range(l // plan.w.windows, end // plan.w.windows):
        n = w.end - w.begin if h.begin <= lh < h.end else 0
        zero_pixels(plan, out__lr, channels, 0, w.begin)
        zero_pixels(plan, out__lr, channels, w.begin + n, plan.w.windows)
        to = out__lr + w.begin * pitch
        out__lr += plan.w.windows * pitch
        if n == 0:
            continue
        row = (image + place(&h, lh, plan.h.stride) * plan.plane_strides[2]
               + place(&w, w.begin, plan.w.stride) * plan.plane_strides[3])
        if plan.plane_strides[1] != 1:
            turn_items(to, pitch, row, plan.plane_strides[1], channels, n, source_end)
        elif along == channels and pitch == channels:
            copy_bytes(<char*>to, <const char*>row, n * channels * size)
        else:
            while n > 0:
                copy_bytes(<char*>to, <const char*>row, channels * size)
                row += along
                to += pitch
                n -= 1


cdef inline const item* make_pixels(const Im2colForwardPlan* plan, const item* planes, item* pixels, int64_t channels,
                                    int64_t l, int64_t end, const void* source_end) noexcept nogil:
    """The rows of the image that the windows [l, end) hold, with some channels side by side; where row 0 would be."""
    cdef int64_t h = most(l // plan.w.windows * plan.h.stride - plan.h.pad, 0)
    cdef int64_t last = least((end // plan.w.windows - 1) * plan.h.stride - plan.h.pad + span_of(&plan.h), plan.h.size)
    cdef int64_t rows = last - h
    cdef int64_t columns = plan.w.size
    cdef const item* origin
    if rows <= 0:
        return pixels       # no window reads a row; h may be far beyond the image
    origin = pixels - h * plan.plane_strides[2]
    planes += h * plan.self_strides[2]
    if plan.self_strides[2] == columns:
        columns *= rows
        rows = 1
    while rows > 0:
        turn_items(pixels, plan.plane_strides[3], planes, plan.self_strides[1], channels, columns, source_end)
        pixels += plan.plane_strides[2]
        planes += plan.self_strides[2]
        rows -= 1
    return origin


cdef int64_t last(const Im2colForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                  const item* kind) noexcept nogil:
    """The units [unit, end); unit = (n*groups + group)*bands + band. The last argument gives its type only."""
    cdef int64_t positions = plan.h.kernel * plan.w.kernel
    cdef const char* source_end = data[0] + plan.source_bytes
    cdef int64_t group, n, c, channels, first, stop
    cdef const item* pixels
    cdef item* out
    while unit < end:
        group = unit // plan.bands
        first = (unit - group * plan.bands) * plan.band
        stop = least(first + plan.band, plan.h.windows * plan.w.windows)
        n = group // plan.groups
        c = (group - n * plan.groups) * plan.group
        channels = least(plan.group, plan.channels - c)
        pixels = <const item*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        if plan.made:
            pixels = make_pixels(plan, pixels, <item*>(scratch + plan.at_pixels), channels, first, stop, source_end)
        out = <item*>data[1] + n * plan.out_strides[0] + c * positions
        if positions == 1:
            fill_pixels(plan, pixels, out, channels, first, stop, source_end)
        else:
            fill_last(plan, pixels, out, <item*>scratch, channels, first, stop)
        unit += 1
    return ALL_GOOD


cdef int64_t last_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint8_t*>NULL)


cdef int64_t last_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint16_t*>NULL)


cdef int64_t last_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint32_t*>NULL)


cdef int64_t last_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint64_t*>NULL)


cdef int64_t last_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return last(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const Wide*>NULL)


cdef void im2col_last_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = last_1
    row[1] = last_2
    row[2] = last_4
    row[3] = last_8
    row[4] = last_16
