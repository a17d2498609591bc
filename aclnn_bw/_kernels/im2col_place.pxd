# cython: cdivision=True
"""PLACE of Im2colBackward: no two kernel positions meet, so every position of out is one element of gradOutput or +0.0,
and is copied in its own type. Where windows are far apart, or there is one in a row, that is a tenth of what a row of
each phase takes (`python -m benchmarks.sweep --operator im2col_backward`).

Bounds. Rows [ih, end) of a plane are written, and of a row the positions of the windows that `reach` says lie in it. Of
one window in a row all taps do, for `make_axis` leaves out the others.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.im2col cimport Im2colPlan
from aclnn_bw._kernels.im2col_scatter cimport Reach
from aclnn_bw._kernels.simd cimport cell


cdef inline cell summed_alone(cell value) noexcept nogil:
    """+0.0 + value; of a 16-bit type its bits."""
    if cell is uint16_t:
        return 0 if value == 0x8000 else value
    else:
        return value + <cell>0.0


cdef inline void place_row(const Im2colPlan* plan, const Reach* reach, cell* to, const cell* windows) noexcept nogil:
    """The kernel row whose first column's row of windows lies at `windows`, into its row of out."""
    cdef int64_t step = plan.w.stride
    cdef int64_t kw, lw
    to -= plan.w.pad
    if plan.w.windows == 1 and plan.column == 1 and plan.w.dilation == 1:
        # One window in a row, whose columns lie side by side.
        for kw in range(plan.w.taps):
            to[kw] = summed_alone(windows[kw])
        return
    for kw in range(plan.w.taps):
        for lw in range(reach.begin[kw], reach.end[kw]):
            to[lw * step] = summed_alone(windows[lw])
        to += plan.w.dilation
        windows += plan.column


cdef inline void place_band(const Im2colPlan* plan, const Reach* reach, cell* out__hw, const cell* source, int64_t ih,
                            int64_t end) noexcept nogil:
    """Rows [ih, end) of a plane of out."""
    cdef int64_t down = plan.out_strides[2]
    # The windows that reach the first row, and those that begin at or above the last one.
    cdef int64_t first = ceil_div(most(ih + plan.h.pad - (plan.h.taps - 1) * plan.h.dilation, 0), plan.h.stride)
    cdef int64_t last = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows)
    cdef int64_t lh, kh, row
    if down == plan.w.size:
        memset(out__hw + ih * down, 0, <size_t>((end - ih) * down) * sizeof(cell))
    else:
        for row in range(ih, end):
            memset(out__hw + row * down, 0, <size_t>plan.w.size * sizeof(cell))
    for lh in range(first, last):
        row = lh * plan.h.stride - plan.h.pad
        for kh in range(plan.h.taps):
            if ih <= row < end:
                place_row(plan, reach, out__hw + row * down,
                          source + kh * plan.kernel_width * plan.column + lh * plan.w.windows)
            row += plan.h.dilation
