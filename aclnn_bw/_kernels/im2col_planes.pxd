# cython: cdivision=True
"""Im2col: which windows lie inside the image, and planes that are made of channels which lie side by side.

Bounds. Where what `find_inside` adds wraps around, no window is inside: the true place is above every size, what it
wraps to below 0, and further so than all windows reach. The scratch holds the planes of a group of channels.
"""
from libc.stdint cimport int64_t, uint64_t

from aclnn_bw._core.im2col_forward cimport ForwardAxis, Im2colForwardPlan
from aclnn_bw._kernels.copies cimport item
from aclnn_bw._kernels.transpose cimport transpose

# The windows of a kernel position that lie inside the image along one axis, and where window 0 lies.
cdef struct Inside:
    int64_t begin
    int64_t end
    int64_t at


cdef inline int64_t place(const Inside* inside, int64_t o, int64_t stride) noexcept nogil:
    """Of window o; `at` may be near -2**63, and o*stride beyond 2**63."""
    return <int64_t>(<uint64_t>inside.at + <uint64_t>o * <uint64_t>stride)


cdef inline void find_inside(const ForwardAxis* axis, int64_t k, Inside* inside) noexcept nogil:
    cdef int64_t at = <int64_t>(<uint64_t>k * <uint64_t>axis.dilation - <uint64_t>axis.pad)
    cdef uint64_t windows = <uint64_t>axis.windows
    cdef uint64_t begin = 0 if at >= 0 else 0 - <uint64_t>at
    cdef uint64_t end = 0 if at >= axis.size else <uint64_t>axis.size - <uint64_t>at
    if axis.stride != 1:
        begin = (begin - 1) // <uint64_t>axis.stride + 1 if begin > 0 else 0
        end = (end - 1) // <uint64_t>axis.stride + 1 if end > 0 else 0
    inside.at = at
    inside.begin = <int64_t>(begin if begin < windows else windows)
    inside.end = <int64_t>(end if end < windows else windows)
    if inside.end < inside.begin:
        inside.end = inside.begin


cdef inline const item* pack_planes(const Im2colForwardPlan* plan, const item* self__chw, item* scratch,
                                    int64_t channels, const void* source_end) noexcept nogil:
    """PACKED: the planes of a group of channels."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t width = plan.w.size
    cdef int64_t h
    for h in range(plan.h.size):
        transpose(scratch + h * width, plan.plane_strides[1], self__chw + h * plan.self_strides[2],
                  plan.self_strides[3], width, channels, size, source_end)
    return scratch
