# cython: cdivision=True
"""PLACE of Im2colBackward: no two kernel positions meet, so every position of out is one element of gradOutput or +0.0,
and is copied in its own type. Where windows are far apart, or there is one in a row, that is a tenth of what a row of
each phase takes (`python -m benchmarks.sweep --operator im2col_backward`). Of small planes the places of all elements
are listed once for a range: 0.2 to 0.9 of the time of rows.

Bounds. Listed places lie in the plane, and 16 bits count them. Otherwise rows [ih, end) of a plane
are written, and of a row the positions of the windows that `across` says lie in it. Of one window in a row all taps do,
for `make_axis` leaves out the others.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.im2col cimport MOST_LISTED, Im2colPlan
from aclnn_bw._kernels.im2col_scatter cimport Reach, find_reach
from aclnn_bw._kernels.simd cimport cell


# The windows that reach a row; or, if that is listed, where the elements of a plane's columns go, `size` of them, of
# which `inside` are not in the padding.
cdef struct Places:
    Reach across
    int64_t size
    int64_t inside
    uint16_t[MOST_LISTED] at


cdef inline void find_places(const Im2colPlan* plan, Places* places) noexcept nogil:
    """In the order of the columns. What is in the padding gets the place of the next one that is not, which is stored
    later; what is behind all others gets none."""
    cdef int64_t n = 0
    cdef int64_t kh, kw, lh, lw, ih, iw
    places.size = 0
    places.inside = 0
    if not plan.listed:
        # Of no more than MOST_TAPS kernel columns, which listed planes may have.
        find_reach(&plan.w, &places.across)
        return
    for kh in range(plan.h.taps):
        for kw in range(plan.w.taps):
            for lh in range(plan.h.windows):
                ih = lh * plan.h.stride + kh * plan.h.dilation - plan.h.pad
                for lw in range(plan.w.windows):
                    iw = lw * plan.w.stride + kw * plan.w.dilation - plan.w.pad
                    n += 1
                    if 0 <= ih < plan.h.size and 0 <= iw < plan.w.size:
                        places.inside += 1
                        while places.size < n:
                            places.at[places.size] = <uint16_t>(ih * plan.w.size + iw)
                            places.size += 1


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


cdef inline void place_plane(const Places* places, cell* out__hw, const cell* source) noexcept nogil:
    """A plane, element by element. They are summed before, by vectors."""
    cdef cell[MOST_LISTED] sums
    cdef int64_t n = places.size
    cdef int64_t i
    for i in range(n):
        sums[i] = summed_alone(source[i])
    i = 0
    while i + 4 <= n:
        out__hw[places.at[i]] = sums[i]
        out__hw[places.at[i + 1]] = sums[i + 1]
        out__hw[places.at[i + 2]] = sums[i + 2]
        out__hw[places.at[i + 3]] = sums[i + 3]
        i += 4
    while i < n:
        out__hw[places.at[i]] = sums[i]
        i += 1


cdef inline void place_band(const Im2colPlan* plan, const Places* places, cell* out__hw, const cell* source, int64_t ih,
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
                place_row(plan, &places.across, out__hw + row * down,
                          source + kh * plan.kernel_width * plan.column + lh * plan.w.windows)
            row += plan.h.dilation


cdef inline void place_planes(const Im2colPlan* plan, const Places* places, cell* out__hw, const cell* source,
                              int64_t ih, int64_t end, int64_t members) noexcept nogil:
    """Rows [ih, end) of planes of out: all, if their places are listed. Planes that lie side by side are then cleared
    at once: of few elements, they take half the time."""
    cdef int64_t positions = plan.h.size * plan.w.size
    cdef bint clears = places.inside < positions
    if plan.listed and clears and plan.out_strides[1] == positions:
        memset(out__hw, 0, <size_t>(members * positions) * sizeof(cell))
        clears = False
    while members > 0:
        if not plan.listed:
            place_band(plan, places, out__hw, source, ih, end)
        else:
            if clears:
                memset(out__hw, 0, <size_t>positions * sizeof(cell))
            place_plane(places, out__hw, source)
        out__hw += plan.out_strides[1]
        source += plan.channel
        members -= 1
