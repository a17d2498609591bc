# cython: cdivision=True
"""Sums of the numbers that a mask chooses: the primitives of simd_choose.h by what they work on, as in simd.pxd.

The numbers that are added may have 16 bits; a vector has as many lanes as their sums.
"""
from libc.stdint cimport int32_t

from aclnn_bw._kernels.simd cimport element, kind_of, lanes, sum_bytes, vector

cdef extern from "simd.h" nogil:
    enum:
        BY_INDEX "SIMD_BY_INDEX"
    void simd_ask(vector* asked, int number, int lane) noexcept
    void simd_load_words(vector* words, const void* source, const vector* asked, int lane) noexcept
    void keep_words "simd_keep_words" (vector* words, const lanes* some) noexcept
    void ask_lower "simd_ask_lower" (vector* asked) noexcept
    void simd_raise_words(vector* words, int lane) noexcept
    void simd_load_indices(vector* seen, const void* source, int lane) noexcept
    void simd_load_some_indices(vector* seen, const void* source, const lanes* some, int lane) noexcept
    void simd_range(vector* x, int32_t first, int32_t step, int lane) noexcept
    void simd_count_indices(vector* x, const vector* a, int32_t step, int lane) noexcept
    void simd_add_lanes(vector* sum, const vector* term, const lanes* some, int lane) noexcept
    void simd_load_if(vector* x, const vector* seen, const vector* wanted, int below, const void* source, int kind,
                      bint partial) noexcept
    void simd_add_if(vector* sum, const vector* seen, const vector* wanted, int below, const void* source, int kind,
                     bint partial) noexcept
    void simd_shift_in(vector* x, const vector* block, const vector* before, int size) noexcept
    void simd_lanes_of_bits(lanes* some, unsigned bits, int lane) noexcept


cdef inline vector ask(int number, const element* numbers) noexcept nogil:
    """A bit of mask words, as they are asked for it."""
    cdef vector asked
    simd_ask(&asked, number, <int>sum_bytes(numbers))
    return asked


cdef inline vector load_words(const char* source, const vector* asked, const element* numbers) noexcept nogil:
    """As many as there are lanes, to be asked for the bit or for lower ones."""
    cdef vector words
    simd_load_words(&words, source, asked, <int>sum_bytes(numbers))
    return words


cdef inline void raise_words(vector* words, const element* numbers) noexcept nogil:
    """With ask_lower: the next lower bit is asked for."""
    simd_raise_words(words, <int>sum_bytes(numbers))


cdef inline vector load_if_bit(const vector* words, const vector* asked, int below, const element* source,
                               bint partial) noexcept nogil:
    """What lies at `source` in the lanes whose words have the bit, which lies `below` the one for which they were
    loaded; +0.0 in the others, whose memory is not read, or only if not `partial`."""
    cdef vector x
    simd_load_if(&x, words, asked, below, source, kind_of(source), partial)
    return x


cdef inline void add_if_bit(vector* sum, const vector* words, const vector* asked, int below, const element* source,
                            bint partial) noexcept nogil:
    simd_add_if(sum, words, asked, below, source, kind_of(source), partial)


cdef inline vector load_indices(const char* source, const element* numbers) noexcept nogil:
    """As many as there are lanes."""
    cdef vector seen
    simd_load_indices(&seen, source, <int>sum_bytes(numbers))
    return seen


cdef inline vector load_some_indices(const char* source, const lanes* some, const element* numbers) noexcept nogil:
    """Of some lanes, given as those of 4 bytes; INT32_MIN in the others, whose memory is not read."""
    cdef vector seen
    simd_load_some_indices(&seen, source, some, <int>sum_bytes(numbers))
    return seen


cdef inline vector count_up(int32_t first, int32_t step, const element* numbers) noexcept nogil:
    """The indices first, first + step, ..."""
    cdef vector x
    simd_range(&x, first, step, <int>sum_bytes(numbers))
    return x


cdef inline vector count_on(vector indices, int32_t step, const element* numbers) noexcept nogil:
    """Each so much further."""
    simd_count_indices(&indices, &indices, step, <int>sum_bytes(numbers))
    return indices


cdef inline void add_lanes(vector* sum, vector term, lanes some, const element* numbers) noexcept nogil:
    """The term in some lanes."""
    simd_add_lanes(sum, &term, &some, <int>sum_bytes(numbers))


cdef inline vector load_if_equal(const vector* seen, const vector* wanted, const element* source,
                                 bint partial) noexcept nogil:
    """As load_if_bit, in the lanes whose index is the wanted one."""
    cdef vector x
    simd_load_if(&x, seen, wanted, BY_INDEX, source, kind_of(source), partial)
    return x


cdef inline void add_if_equal(vector* sum, const vector* seen, const vector* wanted, const element* source,
                              bint partial) noexcept nogil:
    simd_add_if(sum, seen, wanted, BY_INDEX, source, kind_of(source), partial)


cdef inline vector slide(const vector* block, const vector* before, int n, const element* numbers) noexcept nogil:
    """The last n lanes of `before`, 1 or 2, and the first of `block` after them."""
    cdef vector x
    simd_shift_in(&x, block, before, n * <int>sum_bytes(numbers))
    return x


cdef inline lanes lanes_of_bits(unsigned bits, const element* numbers) noexcept nogil:
    cdef lanes some
    simd_lanes_of_bits(&some, bits, <int>sum_bytes(numbers))
    return some
