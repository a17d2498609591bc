"""Indices of windows of one position each: once they are checked they say nothing new, and gradients lie between zeros.

Bounds. The plan asks for windows of one position, so that (out - 1) * stride is less than the size of either axis, and
for planes whose rows follow each other.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.max_pool2d cimport MaxPool2d
from aclnn_bw._kernels.max_pool2d_rows cimport term


cdef inline void spread_row(term* to, const term* grad, int64_t stride, int64_t n, int64_t size) noexcept nogil:
    """to[:size] = 0, but to[i*stride] = grad[i] + 0 for i < n; bits have been made so. The last one lies in the row."""
    cdef int64_t i
    if stride == 1:
        for i in range(n):
            to[i] = grad[i] if term is uint16_t else grad[i] + <term>0
        memset(to + n, 0, <size_t>(size - n) * sizeof(term))    # a single window's stride is 1
    elif stride == 2:
        for i in range(n - 1):
            to[2 * i] = grad[i] if term is uint16_t else grad[i] + <term>0
            to[2 * i + 1] = 0
        to[2 * n - 2] = grad[n - 1] if term is uint16_t else grad[n - 1] + <term>0
        memset(to + 2 * n - 1, 0, <size_t>(size - (2 * n - 1)) * sizeof(term))
    else:
        memset(to, 0, <size_t>size * sizeof(term))
        for i in range(n):
            to[i * stride] = grad[i] if term is uint16_t else grad[i] + <term>0


cdef inline void spread_plane(const MaxPool2d* pool, term* to__hw, const term* grad) noexcept nogil:
    """A plane whose windows have one position each, and so no padding: rows of gradients between rows of zeros. All
    lie in it: (out - 1) * stride is less than the size."""
    cdef int64_t width = pool.w.size
    cdef int64_t ih = 0
    cdef int64_t oh, gap
    if pool.h.out == pool.h.size and pool.w.out == width:
        spread_row(to__hw, grad, 1, pool.h.out * width, pool.h.out * width)
        return
    for oh in range(pool.h.out):
        spread_row(to__hw + ih * width, grad + oh * pool.w.out, pool.w.stride, pool.w.out, width)
        ih += 1
        gap = pool.h.stride - 1 if oh + 1 < pool.h.out else pool.h.size - ih
        memset(to__hw + ih * width, 0, <size_t>(gap * width) * sizeof(term))
        ih += gap
