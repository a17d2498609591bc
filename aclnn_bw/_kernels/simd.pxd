# cython: cdivision=True
"""The types of numbers and vectors, and the primitives of simd.h by what they work on: a loop is written once for all
types and instruction sets.

A vector has bytes. What its lanes are, the type of an argument says that points to such numbers; which of the widths
is wanted, that of the pointer `width`. Neither is followed. A load of 16-bit numbers widens them. Sizes are constants
to the C compiler, and what they exclude is not compiled.
"""
from libc.stdint cimport int64_t, uint16_t

cdef extern from "half.h" nogil:
    ctypedef struct half "aclnn_bw_half":
        pass
    ctypedef struct bfloat "aclnn_bw_bfloat":
        pass
    float widen_half "aclnn_bw_widen_half" (half value) noexcept
    float widen_bfloat "aclnn_bw_widen_bfloat" (bfloat value) noexcept
    half narrow_to_half "aclnn_bw_narrow_to_half" (float value) noexcept
    bfloat narrow_to_bfloat "aclnn_bw_narrow_to_bfloat" (float value) noexcept

cdef extern from "simd.h" nogil:
    # As wide as is fast on the instruction set, half as wide, but 16 bytes at least, and of 16 and 32 bytes; where the
    # instruction set has no 32 bytes, 16.
    ctypedef struct vector "simd_vector":
        pass
    ctypedef struct vector_half "simd_vector_half":
        pass
    ctypedef struct vector_16 "simd_vector_16":
        pass
    ctypedef struct vector_32 "simd_vector_32":
        pass
    # Cells of memory, whatever lies there.
    ctypedef unsigned short cell_2 "simd_cell_2"
    ctypedef unsigned int cell_4 "simd_cell_4"
    ctypedef unsigned long long cell_8 "simd_cell_8"
    enum:
        VECTOR_BYTES "SIMD_BYTES"
        HALF_BYTES "SIMD_HALF_BYTES"
        LINE "SIMD_LINE"    # bytes of a cache line
    void simd_load(void* x, const void* source) noexcept
    void simd_load_half(void* x, const void* source) noexcept
    void simd_load_bfloat(void* x, const void* source) noexcept
    void simd_load_two(void* x, const void* source, const void* other) noexcept
    void simd_store(void* to, void* x) noexcept
    void simd_stream(void* to, void* x) noexcept
    void simd_add_f32(void* sum, void* a, void* b) noexcept
    void simd_add_f64(void* sum, void* a, void* b) noexcept
    void simd_plus_zero_f32(void* x) noexcept
    void simd_plus_zero_f64(void* x) noexcept
    void simd_plus_zero_bits(void* x) noexcept
    void simd_zip_low_2(void* c, void* a, void* b) noexcept
    void simd_zip_high_2(void* c, void* a, void* b) noexcept
    void simd_zip_low_4(void* c, void* a, void* b) noexcept
    void simd_zip_high_4(void* c, void* a, void* b) noexcept
    void simd_zip_low_8(void* c, void* a, void* b) noexcept
    void simd_zip_high_8(void* c, void* a, void* b) noexcept
    void simd_unzip_three_2(void* x, void* y, void* z, const void* source) noexcept
    void simd_unzip_three_4(void* x, void* y, void* z, const void* source) noexcept
    void fence "simd_fence" () noexcept
    void prefetch "simd_prefetch" (const void* at) noexcept
    void prefetch_to_write "simd_prefetch_to_write" (const void* at) noexcept
    void prefetch_to_level_2 "simd_prefetch_to_level_2" (const void* at) noexcept

# What is summed, and what is stored.
ctypedef fused real:
    float
    double

ctypedef fused element:
    float
    double
    half
    bfloat

# What is moved without a look at its value: a 16-bit type as its bits, because gcc 12 does not vectorise the copying of
# structs (3 times slower).
ctypedef fused cell:
    uint16_t
    float
    double

ctypedef fused vec:
    vector
    vector_half
    vector_16


cdef inline vec load(const element* source, vec* width) noexcept nogil:
    """The numbers that lie there; of 16-bit types half as many bytes as the vector has, widened."""
    cdef vec x
    if element is half:
        simd_load_half(&x, source)
    elif element is bfloat:
        simd_load_bfloat(&x, source)
    else:
        simd_load(&x, source)
    return x


cdef inline vec load_cells(const cell* source, vec* width) noexcept nogil:
    """What lies there, as it is."""
    cdef vec x
    simd_load(&x, source)
    return x


cdef inline vec add(vec a, vec b, const real* lanes) noexcept nogil:
    cdef vec sum
    if real is float:
        simd_add_f32(&sum, &a, &b)
    else:
        simd_add_f64(&sum, &a, &b)
    return sum


cdef inline vec plus_zero(vec x, const cell* lanes) noexcept nogil:
    """-0.0 becomes +0.0; of 16-bit types too."""
    if cell is float:
        simd_plus_zero_f32(&x)
    elif cell is double:
        simd_plus_zero_f64(&x)
    else:
        simd_plus_zero_bits(&x)
    return x
