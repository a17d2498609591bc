# cython: cdivision=True
"""Sums of the numbers that a mask chooses: the primitives of simd_choose.h by what they work on, as in simd.pxd.

The numbers that are added may have 16 bits; a vector has as many lanes as their sums.
"""
from libc.stdint cimport int32_t

from aclnn_bw._kernels.simd cimport bfloat, element, half, lanes, vector

cdef extern from "simd.h" nogil:
    # A bit of mask words, as they are asked for it.
    ctypedef struct asked "simd_asked":
        pass
    void simd_load(void* x, const void* source) noexcept
    void simd_ask_4(asked* bit, int number) noexcept
    void simd_ask_8(asked* bit, int number) noexcept
    void simd_load_words_4(vector* words, const void* source, const asked* bit) noexcept
    void simd_load_words_8(vector* words, const void* source, const asked* bit) noexcept
    void keep_words "simd_keep_words" (vector* words, const lanes* some) noexcept
    void ask_lower "simd_ask_lower" (asked* bit) noexcept
    void simd_raise_words_4(vector* words) noexcept
    void simd_raise_words_8(vector* words) noexcept
    void simd_load_indices_8(vector* seen, const void* source) noexcept
    void simd_load_indices_lanes_4(vector* seen, const void* source, const lanes* some) noexcept
    void simd_load_indices_lanes_8(vector* seen, const void* source, const lanes* some) noexcept
    void simd_range_4(vector* x, int32_t first, int32_t step) noexcept
    void simd_range_8(vector* x, int32_t first, int32_t step) noexcept
    void simd_count_4(vector* x, vector* a, int32_t step) noexcept
    void simd_count_indices_8(vector* x, vector* a, int32_t step) noexcept
    void simd_add_lanes_f32(vector* sum, const vector* term, const lanes* some) noexcept
    void simd_add_lanes_f64(vector* sum, const vector* term, const lanes* some) noexcept
    void simd_load_if_bit_f32(vector* x, const vector* words, const asked* bit, int below, const void* source,
                              bint partial) noexcept
    void simd_load_if_bit_f64(vector* x, const vector* words, const asked* bit, int below, const void* source,
                              bint partial) noexcept
    void simd_load_if_bit_half(vector* x, const vector* words, const asked* bit, int below, const void* source,
                                bint partial) noexcept
    void simd_load_if_bit_bfloat(vector* x, const vector* words, const asked* bit, int below, const void* source,
                                 bint partial) noexcept
    void simd_add_if_bit_f32(vector* sum, const vector* words, const asked* bit, int below, const void* source,
                             bint partial) noexcept
    void simd_add_if_bit_f64(vector* sum, const vector* words, const asked* bit, int below, const void* source,
                             bint partial) noexcept
    void simd_add_if_bit_half(vector* sum, const vector* words, const asked* bit, int below, const void* source,
                              bint partial) noexcept
    void simd_add_if_bit_bfloat(vector* sum, const vector* words, const asked* bit, int below, const void* source,
                                bint partial) noexcept
    void simd_load_if_equal_f32(vector* x, const vector* seen, const vector* wanted, const void* source,
                                bint partial) noexcept
    void simd_load_if_equal_f64(vector* x, const vector* seen, const vector* wanted, const void* source,
                                bint partial) noexcept
    void simd_load_if_equal_half(vector* x, const vector* seen, const vector* wanted, const void* source,
                                 bint partial) noexcept
    void simd_load_if_equal_bfloat(vector* x, const vector* seen, const vector* wanted, const void* source,
                                   bint partial) noexcept
    void simd_add_if_equal_f32(vector* sum, const vector* seen, const vector* wanted, const void* source,
                               bint partial) noexcept
    void simd_add_if_equal_f64(vector* sum, const vector* seen, const vector* wanted, const void* source,
                               bint partial) noexcept
    void simd_add_if_equal_half(vector* sum, const vector* seen, const vector* wanted, const void* source,
                                bint partial) noexcept
    void simd_add_if_equal_bfloat(vector* sum, const vector* seen, const vector* wanted, const void* source,
                                  bint partial) noexcept
    void simd_shift_in(vector* x, const vector* block, const vector* before, int size) noexcept
    void simd_lanes_of_bits_4(lanes* some, unsigned bits) noexcept
    void simd_lanes_of_bits_8(lanes* some, unsigned bits) noexcept


cdef inline asked ask(int number, const element* numbers) noexcept nogil:
    cdef asked bit
    if element is double:
        simd_ask_8(&bit, number)
    else:
        simd_ask_4(&bit, number)
    return bit


cdef inline vector load_words(const char* source, const asked* bit, const element* numbers) noexcept nogil:
    """As many as there are lanes, to be asked for the bit or for lower ones."""
    cdef vector words
    if element is double:
        simd_load_words_8(&words, source, bit)
    else:
        simd_load_words_4(&words, source, bit)
    return words


cdef inline void raise_words(vector* words, const element* numbers) noexcept nogil:
    """With ask_lower: the next lower bit is asked for."""
    if element is double:
        simd_raise_words_8(words)
    else:
        simd_raise_words_4(words)


cdef inline vector load_if_bit(const vector* words, const asked* bit, int below, const element* source,
                               bint partial) noexcept nogil:
    """What lies at `source` in the lanes whose words have the bit, which lies `below` the one for which they were
    loaded; +0.0 in the others, whose memory is not read, or only if not `partial`."""
    cdef vector x
    if element is double:
        simd_load_if_bit_f64(&x, words, bit, below, source, partial)
    elif element is half:
        simd_load_if_bit_half(&x, words, bit, below, source, partial)
    elif element is bfloat:
        simd_load_if_bit_bfloat(&x, words, bit, below, source, partial)
    else:
        simd_load_if_bit_f32(&x, words, bit, below, source, partial)
    return x


cdef inline void add_if_bit(vector* sum, const vector* words, const asked* bit, int below, const element* source,
                            bint partial) noexcept nogil:
    if element is double:
        simd_add_if_bit_f64(sum, words, bit, below, source, partial)
    elif element is half:
        simd_add_if_bit_half(sum, words, bit, below, source, partial)
    elif element is bfloat:
        simd_add_if_bit_bfloat(sum, words, bit, below, source, partial)
    else:
        simd_add_if_bit_f32(sum, words, bit, below, source, partial)


cdef inline vector load_indices(const char* source, const element* numbers) noexcept nogil:
    """As many as there are lanes."""
    cdef vector seen
    if element is double:
        simd_load_indices_8(&seen, source)
    else:
        simd_load(&seen, source)
    return seen


cdef inline vector load_some_indices(const char* source, const lanes* some, const element* numbers) noexcept nogil:
    """Of some lanes, given as those of 4 bytes; INT32_MIN in the others, whose memory is not read."""
    cdef vector seen
    if element is double:
        simd_load_indices_lanes_8(&seen, source, some)
    else:
        simd_load_indices_lanes_4(&seen, source, some)
    return seen


cdef inline vector count_up(int32_t first, int32_t step, const element* numbers) noexcept nogil:
    """The indices first, first + step, ..."""
    cdef vector x
    if element is double:
        simd_range_8(&x, first, step)
    else:
        simd_range_4(&x, first, step)
    return x


cdef inline vector count_on(vector indices, int32_t step, const element* numbers) noexcept nogil:
    """Each so much further."""
    if element is double:
        simd_count_indices_8(&indices, &indices, step)
    else:
        simd_count_4(&indices, &indices, step)
    return indices


cdef inline void add_lanes(vector* sum, vector term, lanes some, const element* numbers) noexcept nogil:
    """The term in some lanes."""
    if element is double:
        simd_add_lanes_f64(sum, &term, &some)
    else:
        simd_add_lanes_f32(sum, &term, &some)


cdef inline vector load_if_equal(const vector* seen, const vector* wanted, const element* source,
                                 bint partial) noexcept nogil:
    """As load_if_bit, in the lanes whose index is the wanted one."""
    cdef vector x
    if element is double:
        simd_load_if_equal_f64(&x, seen, wanted, source, partial)
    elif element is half:
        simd_load_if_equal_half(&x, seen, wanted, source, partial)
    elif element is bfloat:
        simd_load_if_equal_bfloat(&x, seen, wanted, source, partial)
    else:
        simd_load_if_equal_f32(&x, seen, wanted, source, partial)
    return x


cdef inline void add_if_equal(vector* sum, const vector* seen, const vector* wanted, const element* source,
                              bint partial) noexcept nogil:
    if element is double:
        simd_add_if_equal_f64(sum, seen, wanted, source, partial)
    elif element is half:
        simd_add_if_equal_half(sum, seen, wanted, source, partial)
    elif element is bfloat:
        simd_add_if_equal_bfloat(sum, seen, wanted, source, partial)
    else:
        simd_add_if_equal_f32(sum, seen, wanted, source, partial)


cdef inline vector slide(const vector* block, const vector* before, int n, const element* numbers) noexcept nogil:
    """The last n lanes of `before`, 1 or 2, and the first of `block` after them."""
    cdef vector x
    simd_shift_in(&x, block, before, n * (8 if element is double else 4))
    return x


cdef inline lanes lanes_of_bits(unsigned bits, const element* numbers) noexcept nogil:
    cdef lanes some
    if element is double:
        simd_lanes_of_bits_8(&some, bits)
    else:
        simd_lanes_of_bits_4(&some, bits)
    return some
