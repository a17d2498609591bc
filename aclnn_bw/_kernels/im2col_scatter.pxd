# cython: cdivision=True
"""SCATTER of Im2colBackward, for any geometry and strides: each row of windows is added where it lies in a row of sums,
or in a plane of them.

Bounds. Rows of windows are those in [0, Lh), and of a row only the windows in [0, Lw) whose positions lie in the image
are read and added.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, quotient
from aclnn_bw._core.im2col cimport MOST_COLUMNS, MOST_TAPS, Axis, Im2colPlan
from aclnn_bw._kernels.rows cimport BLOCK, add_row, load_row, widen_row, zero_row
from aclnn_bw._kernels.simd cimport element, real


cdef inline void add_plain(real* to, int64_t step, const real* source, int64_t along, int64_t n) noexcept nogil:
    cdef int64_t i
    if along == 1 and step == 1:
        add_row(to, source, n)
    else:
        for i in range(n):
            to[i * step] += source[i * along]


cdef inline void add_loaded(real* to, int64_t step, const element* source, int64_t along, int64_t n) noexcept nogil:
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


cdef inline void scatter_row(const Im2colPlan* plan, real* sums, const element* source, int64_t ih) noexcept nogil:
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


cdef inline void find_reach(const Axis* axis, Reach* reach) noexcept nogil:
    cdef int64_t position = -axis.pad   # of the first window's
    cdef int64_t k
    for k in range(axis.taps):
        reach.begin[k] = ceil_div(-position, axis.stride) if position < 0 else 0
        reach.end[k] = 0
        if position < axis.size:
            reach.end[k] = least(quotient(axis.size - 1 - position, axis.stride) + 1, axis.windows)
        position += axis.dilation


cdef inline void scatter_columns(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums, const real* source,
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


cdef inline void scatter_widened(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums,
                                 const element* source, int64_t column, int64_t kh) noexcept nogil:
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


cdef inline void scatter_plane(const Im2colPlan* plan, const Reach* h, const Reach* w, real* sums,
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
