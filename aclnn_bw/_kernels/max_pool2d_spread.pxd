"""Windows of one position each: indices, once they are checked, say nothing new, bits which gradients are left out;
the others lie between zeros.

Bounds. The plan asks for windows of one position, so that (out - 1) * stride is less than the size of either axis, and
for planes whose rows follow each other.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.max_pool2d cimport MaxPool2d
from aclnn_bw._kernels.max_pool2d_places cimport word_at
from aclnn_bw._kernels.max_pool2d_rows cimport term

cdef enum:
    SHORT_ROW = 32      # columns: planes of shorter rows with gaps are cleared in one go


cdef inline bint all_marked(const char* words, unsigned channels, int64_t n) noexcept nogil:
    """Whether words[:n] have the bits of all these channels."""
    cdef uint16_t kept = 0xffff
    cdef int64_t i
    for i in range(n):
        kept &= (<const word_at*>words)[i]
    return (kept & channels) == channels


cdef inline void keep_marked(term* to, const term* grad, int64_t pitch, const char* words, int channel, int64_t n,
                             int64_t count) noexcept nogil:
    """to[j*n + i] = grad[j*pitch + i] where words[i] has the bit of the channel j behind `channel`, else 0; i < n,
    j < count. Each may be the same memory."""
    cdef int64_t i, j
    for j in range(count):
        for i in range(n):
            to[j * n + i] = grad[j * pitch + i] if (<const word_at*>words)[i] >> (channel + j) & 1 else 0


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
    """A plane of rows of gradients between rows of zeros. All lie in it: (out - 1) * stride is less than the size."""
    cdef int64_t width = pool.w.size
    cdef int64_t ih = 0
    cdef int64_t oh, gap
    for oh in range(pool.h.out):
        spread_row(to__hw + ih * width, grad + oh * pool.w.out, pool.w.stride, pool.w.out, width)
        ih += 1
        gap = pool.h.stride - 1 if oh + 1 < pool.h.out else pool.h.size - ih
        memset(to__hw + ih * width, 0, <size_t>(gap * width) * sizeof(term))
        ih += gap


cdef inline bint leaves_gaps(const MaxPool2d* pool) noexcept nogil:
    """Whether gradients are stored one by one, among zeros."""
    return pool.w.size < SHORT_ROW and not (pool.h.out == pool.h.size and pool.w.out == pool.w.size)


cdef inline void spread_planes(const MaxPool2d* pool, term* to__hw, int64_t pitch, const term* grad,
                               int64_t grad_pitch, int64_t count) noexcept nogil:
    """`count` planes, of zeros before if they have gaps. Windows have one position each, and so no padding."""
    cdef int64_t oh, ow, c
    cdef term* to
    cdef const term* at
    if leaves_gaps(pool):
        for oh in range(pool.h.out):
            for ow in range(pool.w.out):
                to = to__hw + oh * pool.h.stride * pool.w.size + ow * pool.w.stride
                at = grad + oh * pool.w.out + ow
                for c in range(count):
                    to[c * pitch] = at[c * grad_pitch] if term is uint16_t else at[c * grad_pitch] + <term>0
        return
    for c in range(count):
        if pool.h.out == pool.h.size and pool.w.out == pool.w.size:
            spread_row(to__hw + c * pitch, grad + c * grad_pitch, 1, pool.h.out * pool.w.out, pool.h.out * pool.w.out)
        else:
            spread_plane(pool, to__hw + c * pitch, grad + c * grad_pitch)
