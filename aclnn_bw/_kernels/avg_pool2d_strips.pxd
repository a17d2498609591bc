# cython: cdivision=True
"""Average pool: strips, the rows of gradInput that some values of q along h serve. Beyond the caches they are made in
the scratch, and go past the caches, as lines of gradInput are not read before they are written: 0.4 to 0.9 of the time.

Bounds. The scratch holds the rows of plan.strip values of q, whole.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.avg_pool2d cimport AvgPool2dPlan
from aclnn_bw._kernels.simd cimport element

cdef inline int64_t first_row(const AvgPool2dPlan* plan, int64_t q) noexcept nogil:
    """Of gradInput, from which on positions belong to values of q from this one on."""
    return least(most((plan.h.first + q) * plan.h.stride - plan.h.pad, 0), plan.h.size)


cdef inline element* open_strip(const AvgPool2dPlan* plan, element* grad_input__hw, char* scratch,
                                int64_t q) noexcept nogil:
    """The plane whose rows are made from the q-th value on: gradInput, or as if it lay in the scratch."""
    if plan.streams:
        return <element*>(scratch + plan.at_lines) - first_row(plan, q) * plan.grad_input_strides[2]
    return grad_input__hw


cdef inline bint is_dense(const AvgPool2dPlan* plan, const int64_t* strides, int64_t rows,
                          int64_t columns) noexcept nogil:
    """Planes follow each other without gaps."""
    return (strides[3] == 1 and strides[2] == columns and strides[1] == rows * columns
            and strides[0] == plan.channels * strides[1])


cdef inline int64_t unit_end(const AvgPool2dPlan* plan, int64_t end) noexcept nogil:
    """The first position of dense planes that comes after the units before this one."""
    cdef int64_t plane = quotient(end - 1, plan.bands)
    cdef int64_t q = least((end - plane * plan.bands) * plan.band, plan.h.count)
    return (plane * plan.h.size + first_row(plan, q)) * plan.w.size
