"""EACH: indices of planes that int32 does not count, a window at a time.

Bounds. An index is found in its window before it is used, and its row and column in the part of the band whose sums the
scratch holds; the plan has proved the shapes.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._core.max_pool2d cimport MaxPool2d, MaxPool2dScatterPlan
from aclnn_bw._kernels.max_pool2d_indices cimport end_window, first_window, index_of, lies_inside
from aclnn_bw._kernels.max_pool2d_rows cimport Unit, load_cells, store_sums, term
from aclnn_bw._kernels.rows cimport element


cdef inline bint each_window(const MaxPool2dScatterPlan* plan, const element* grad_output__chw, const Unit* u,
                             element* grad_input__chw, char* scratch, const term* kind) noexcept nogil:
    """EACH: the rows of a unit, a part of their columns at a time. False if it has met an index outside its window."""
    cdef const MaxPool2d* pool = &plan.pool
    cdef term* sums = <term*>(scratch + plan.at_sums)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef int64_t lane, left, columns, oh, ow, index, row, column
    cdef term value = 0
    cdef const char* at
    for lane in range(u.lanes):
        at = u.mask + pool.index_item * lane * pool.index_strides[1]
        left = 0
        while left < pool.w.size:
            columns = least(plan.block, pool.w.size - left)
            memset(sums, 0, <size_t>(u.rows * columns) * sizeof(term))
            for oh in range(first_window(&pool.h, u.ih), end_window(&pool.h, u.ih + u.rows - 1)):
                for ow in range(first_window(&pool.w, left), end_window(&pool.w, left + columns - 1)):
                    index = index_of(pool, at, oh, ow)
                    if not lies_inside(pool, oh, ow, index):
                        return False
                    row = index // pool.w.size - u.ih
                    column = index % pool.w.size - left
                    if 0 <= row < u.rows and 0 <= column < columns:
                        load_cells(&value, grad_output__chw + lane * pool.pooled_strides[1]
                                   + oh * pool.pooled_strides[2] + ow * pool.pooled_strides[3], 1)
                        if term is uint16_t:
                            sums[row * columns + column] = value
                        else:
                            sums[row * columns + column] += value
            for row in range(u.rows):
                store_sums(pool, grad_input__chw + lane * pool.image_strides[1] + (u.ih + row) * pool.image_strides[2]
                           + left * pool.image_strides[3], pool.image_strides[3], sums + row * columns, cells, columns)
            left += columns
    return True
