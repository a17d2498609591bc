# cython: cdivision=True
"""What the containers of masks hold: words from codes, which are of each window and channel the kernel position of its
maximum, and zeros behind all that the layout uses."""
from libc.stdint cimport int64_t, uint16_t, uintptr_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least
from aclnn_bw._core.max_pool2d cimport LANES, MaxPool2d
from aclnn_bw._core.types cimport LEAST_STRETCH
from aclnn_bw._kernels.simd cimport (
    LINE, VECTOR_BYTES, fence, simd_copy_first, simd_load, simd_mark_equal_2, simd_store, simd_stream, vector, zero,
)


cdef inline void stream_zeros(char* to, int64_t n) noexcept nogil:
    """Past the caches, where nobody looks for them: whole lines are not read before they are written."""
    cdef int64_t at = <int64_t>(-<uintptr_t>to & (LINE - 1))
    cdef int64_t k
    cdef vector nothing = zero(&nothing)
    memset(to, 0, <size_t>at)
    while at + LINE <= n:
        for k in range(LINE // VECTOR_BYTES):
            simd_stream(to + at + k * VECTOR_BYTES, &nothing)
        at += LINE
    memset(to + at, 0, <size_t>(n - at))
    fence()


cdef inline void clear_share(const MaxPool2d* pool, char* mask, int64_t unit) noexcept nogil:
    """A unit's share of the container beyond what the layout uses becomes 0. All are equal, but for the last ones."""
    cdef int64_t share = ceil_div(pool.mask_bytes - pool.mask_end, pool.units)
    cdef int64_t first = least(pool.mask_end + unit * share, pool.mask_bytes)
    share = least(share, pool.mask_bytes - first)
    if pool.far and share >= LEAST_STRETCH:
        stream_zeros(mask + first, share)
    else:
        memset(mask + first, 0, <size_t>share)


cdef inline void mark(vector* word, vector* next_word, const uint16_t* codes, int64_t pitch, int lanes,
                      int64_t code) noexcept nogil:
    cdef vector seen
    cdef int j
    for j in range(lanes):
        simd_load(&seen, codes)
        simd_mark_equal_2(word, &seen, code, 1 << j)
        simd_mark_equal_2(next_word, &seen, code + 1, 1 << j)
        codes += pitch


cdef inline void make_words(char* words, char* next_words, const uint16_t* codes, int64_t pitch, int64_t lanes,
                            int64_t code, int64_t n) noexcept nogil:
    """words[i] has bit j set where codes[j*pitch + i] == code, for j < lanes and i < n; next_words has those of the
    next code, and may be the same memory if no window has that. Beyond a row of codes others lie, or the margin."""
    cdef int64_t width = VECTOR_BYTES // 2
    cdef int64_t i = 0
    cdef vector word, next_word
    cdef char[VECTOR_BYTES] block
    while True:
        word = next_word = zero(&word)
        if lanes == LANES:
            mark(&word, &next_word, codes + i, pitch, LANES, code)
        else:
            mark(&word, &next_word, codes + i, pitch, <int>lanes, code)
        if n < width:
            simd_store(<char*>block, &next_word)
            simd_copy_first(next_words, <const char*>block, <size_t>(2 * n), sizeof(block))
            simd_store(<char*>block, &word)
            simd_copy_first(words, <const char*>block, <size_t>(2 * n), sizeof(block))
            return
        simd_store(next_words + 2 * i, &next_word)
        simd_store(words + 2 * i, &word)
        i += width
        if i >= n:
            return
        i = least(i, n - width)
