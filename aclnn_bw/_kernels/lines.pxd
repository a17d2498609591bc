# cython: cdivision=True
"""Results that pass the caches: made in the scratch, a strip at a time, and written by whole lines, which are not read
before: 0.45 to 0.75 of the time. What is left of a line waits for the strip that goes on there: stored in two parts, it
would be read after all, and that waited for (1.2 times as long in strips of 4 KiB).

Bounds. The scratch begins with a line and has room for two more than a strip, which begins at the same place of a line
as where it goes. Only whole lines are streamed. The first and the last of a stretch belong to others in part, and what
has been made of them alone is written. Addresses that are fetched lie before `end`, and are not read.
"""
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memcpy

from aclnn_bw._kernels.simd cimport LINE, VECTOR_BYTES, fence, prefetch, simd_load, simd_stream, vector

cdef struct Lines:
    char* made          # the scratch
    char* to            # behind what has been made
    int64_t begin       # what is left of a line begins here in the scratch


cdef inline void flush_lines(Lines* s) noexcept nogil:
    """What is left of a line."""
    cdef int64_t end = <int64_t>(<uintptr_t>s.to & (LINE - 1))
    if end > s.begin:
        memcpy(s.to - (end - s.begin), s.made + s.begin, <size_t>(end - s.begin))


cdef inline void open_lines(Lines* s, char* scratch) noexcept nogil:
    s.made = scratch
    s.to = NULL
    s.begin = 0


cdef inline char* next_strip(Lines* s, char* to) noexcept nogil:
    """Where what goes to `to` is to be made."""
    cdef int64_t begin = <int64_t>(<uintptr_t>to & (LINE - 1))
    if to != s.to:
        flush_lines(s)
        s.to = to
        s.begin = begin
    return s.made + begin


cdef inline void stream_strip(Lines* s, int64_t n, const char* next, int64_t lines, const char* end) noexcept nogil:
    """The n bytes that have been made. Meanwhile what is read next is fetched: `lines` of `next` for each that is
    written."""
    cdef int64_t at = s.begin
    cdef int64_t whole = <int64_t>(<uintptr_t>s.to & (LINE - 1)) + n
    cdef char* to = s.to + n - whole
    cdef int64_t k, _
    cdef vector x
    s.to += n
    if whole < LINE:
        return
    if at > 0:
        memcpy(to + at, s.made + at, <size_t>(LINE - at))
        at = LINE
    while at + LINE <= whole:
        for _ in range(lines):
            if next < end:
                prefetch(next)
            next += LINE
        for k in range(LINE // VECTOR_BYTES):
            simd_load(&x, s.made + at + k * VECTOR_BYTES)
            simd_stream(to + at + k * VECTOR_BYTES, &x)
        at += LINE
    memcpy(s.made, s.made + at, LINE)
    s.begin = 0


cdef inline void close_lines(Lines* s) noexcept nogil:
    flush_lines(s)
    fence()


# The same of results that lie anywhere when they are made, of several streams in turn.
cdef struct Rest:
    char[64] line       # what is left of the last one
    char* to            # behind it, or NULL


cdef inline void flush_rest(Rest* rest) noexcept nogil:
    cdef int64_t held = <int64_t>(<uintptr_t>rest.to & (LINE - 1))
    if held > 0:
        memcpy(rest.to - held, rest.line, <size_t>held)
    rest.to = NULL


cdef inline void flush_rests(Rest* rests, int64_t n) noexcept nogil:
    """What is left of the lines of n channels. Nothing is afterwards."""
    cdef int64_t c
    for c in range(n):
        flush_rest(rests + c)
    fence()


cdef inline void stream_on(Rest* rest, char* to, const char* made, int64_t n) noexcept nogil:
    """The n bytes at `made` go to `to`. What is left of a line waits for those that go on there."""
    cdef int64_t held = <int64_t>(<uintptr_t>to & (LINE - 1))
    cdef int64_t at = <int64_t>(-<uintptr_t>to & (LINE - 1))
    cdef int64_t k
    cdef vector x
    if n < 2 * LINE or rest.to != to:
        flush_rest(rest)
    if n < 2 * LINE:
        memcpy(to, made, <size_t>n)
        return
    if rest.to == NULL:
        memcpy(to, made, <size_t>at)
    elif held > 0:
        memcpy(<char*>rest.line + held, made, <size_t>at)
        for k in range(LINE // VECTOR_BYTES):
            simd_load(&x, <char*>rest.line + k * VECTOR_BYTES)
            simd_stream(to - held + k * VECTOR_BYTES, &x)
    while at + LINE <= n:
        for k in range(LINE // VECTOR_BYTES):
            simd_load(&x, made + at + k * VECTOR_BYTES)
            simd_stream(to + at + k * VECTOR_BYTES, &x)
        at += LINE
    memcpy(rest.line, made + at, <size_t>(n - at))
    rest.to = to + n
