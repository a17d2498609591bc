# cython: cdivision=True
"""AvgPool2d: the windows, their divisors, and averages that are not finite."""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.avg_pool2d cimport Axis, window_length
from aclnn_bw._core.avg_pool2d_forward cimport AvgPool2dForwardPlan
from aclnn_bw._kernels.rows cimport widened
from aclnn_bw._kernels.simd cimport cell_8, element, real, simd_store, vec

# The positions of a window that lie inside the image, along one axis.
cdef struct Inside:
    int64_t begin
    int64_t end


cdef inline Inside find_inside(const Axis* axis, int64_t o) noexcept nogil:
    cdef Inside inside
    cdef int64_t start = o * axis.stride - axis.pad
    inside.begin = most(start, 0)
    inside.end = least(start + axis.kernel, axis.size)
    return inside


cdef inline real divisor_of(const AvgPool2dForwardPlan* plan, int64_t oh, int64_t ow, const real* kind) noexcept nogil:
    if plan.constant_divisor:
        return <real>plan.divisor
    return <real>(<double>window_length(&plan.h, oh, plan.count_include_pad)
                  * <double>window_length(&plan.w, ow, plan.count_include_pad))


cdef inline bint all_finite(vec wrong) noexcept nogil:
    """Whether all numbers were whose products with zero `wrong` is the sum of. By its bits: gcc compares floating-point
    lanes one by one where it holds them in a register (PAIRS took 1.9 times as long)."""
    cdef cell_8[8] bits      # of the widest vectors
    cdef cell_8 some = 0
    cdef int64_t i
    simd_store(<cell_8*>bits, &wrong)
    for i in range(<int64_t>(sizeof(vec) // 8)):
        some |= bits[i]
    return some == 0


cdef inline real divided_first(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                               int64_t oh, int64_t ow, real average) noexcept nogil:
    """The average of one window that is not finite, made of terms that are divided first."""
    cdef Inside h = find_inside(&plan.h, oh)
    cdef Inside w = find_inside(&plan.w, ow)
    cdef real divisor = divisor_of(plan, oh, ow, &average)
    cdef real total = 0
    cdef real column, term
    cdef int64_t ih, iw
    for iw in range(w.begin, w.end):
        column = 0
        for ih in range(h.begin, h.end):
            term = widened(self__hw + ih * down + iw * along, &average)
            if term != term:
                return average
            column += term / divisor
        total += column
    return total
