# cython: cdivision=True
"""Elements that are copied bit for bit: what they hold does not matter, so a kernel knows their size alone.

Bounds. The caller says where what goes and how long it is; `to` and `source` share no memory. The last vector overlaps
the one before. Prefetched addresses are not read.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t, uintptr_t
from libc.string cimport memcpy

from aclnn_bw._kernels.rows cimport copy
from aclnn_bw._kernels.simd cimport LINE, VECTOR_BYTES, prefetch, simd_load, simd_store, simd_stream, vector

ctypedef struct Wide:
    uint64_t low
    uint64_t high

# An element, whatever its dtype, by its size.
ctypedef fused item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    Wide

cdef enum:
    AHEAD = 4096        # bytes: how far ahead streamed rows are fetched
    ALIGNED = 128       # bytes: longer rows are worth a look at where they begin


cdef inline void copy_bytes(char* to, const char* source, int64_t n) noexcept nogil:
    """Whole vectors: quicker than memcpy's way for rows of any length that are in the caches or come one by one."""
    cdef int64_t last = n - VECTOR_BYTES
    cdef int64_t at = 0
    cdef vector x
    if last >= 0:
        if n >= ALIGNED:
            # A store across two lines counts twice.
            simd_load(&x, source)
            simd_store(to, &x)
            at = <int64_t>(-<uintptr_t>to & (VECTOR_BYTES - 1))
        while at < last:
            simd_load(&x, source + at)
            simd_store(to + at, &x)
            at += VECTOR_BYTES
        simd_load(&x, source + last)
        simd_store(to + last, &x)
    elif n > 0:
        copy(to, source, <size_t>n)


cdef inline void stream_bytes(char* to, const char* source, int64_t n) noexcept nogil:
    """copy_bytes past the caches: whole lines are not read before they are written; those at the ends are."""
    cdef int64_t at = <int64_t>(-<uintptr_t>to & (LINE - 1))
    cdef int64_t last
    cdef vector x
    if n < 2 * LINE:
        copy_bytes(to, source, n)
        return
    copy_bytes(to, source, at)
    while at + LINE <= n:
        prefetch(source + at + AHEAD)
        last = at + LINE
        while at < last:
            simd_load(&x, source + at)
            simd_stream(to + at, &x)
            at += VECTOR_BYTES
    copy_bytes(to + at, source + at, n - at)


cdef inline void join_four(char* to, uint64_t a, uint64_t b, uint64_t c, uint64_t d) noexcept nogil:
    """Four elements of 16 bits in one store, the lowest first (little-endian): gcc makes vectors of single elements,
    lane by lane, which takes 1.3 to 2.2 times as long."""
    cdef uint64_t four = a | b << 16 | c << 32 | d << 48
    memcpy(to, &four, sizeof(four))
