# cython: cdivision=True
"""The types of numbers and vectors, and the primitives of simd.h by what they work on: a loop is written once for all
types and instruction sets.

A vector has bytes. What its lanes are, the type of an argument says that points to such numbers; which of the widths
is wanted, that of the pointer `width`. Neither is followed. A load of 16-bit numbers widens them. Sizes are constants
to the C compiler, and what they exclude is not compiled.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

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
    # Integers in lanes: to Cython they are numbers, of a type each to tell them apart, and C applies its operators to
    # all lanes. A comparison leaves all ones or zeros, once it is cast. Words are as wide as a vector; lanes of 4 bytes
    # too, half as wide, and of 16 bytes.
    ctypedef unsigned short lanes_of_2 "simd_lanes_of_2"
    ctypedef unsigned int lanes_of_words "simd_lanes_of_words"
    ctypedef unsigned int lanes_of_4 "simd_lanes_of_4"
    ctypedef unsigned long lanes_of_4_half "simd_lanes_of_4_half"
    ctypedef unsigned long long lanes_of_4_16 "simd_lanes_of_4_16"
    # Cells of memory, whatever lies there.
    ctypedef unsigned short cell_2 "simd_cell_2"
    ctypedef unsigned int cell_4 "simd_cell_4"
    ctypedef unsigned long long cell_8 "simd_cell_8"
    # Which lanes of a vector.
    ctypedef struct lanes "simd_lanes":
        pass
    # Which lane goes where.
    ctypedef struct places "simd_places":
        pass
    enum:
        VECTOR_BYTES "SIMD_BYTES"
        F32 "SIMD_F32"      # kinds of numbers
        F64 "SIMD_F64"
        HALF "SIMD_HALF"
        BFLOAT "SIMD_BFLOAT"
        READS_ALL_2 "SIMD_READS_ALL_2"
        READS_ALL_4 "SIMD_READS_ALL_4"
        HALF_BYTES "SIMD_HALF_BYTES"
        CHOOSES_HALVES "SIMD_CHOOSES_HALVES"
        LINE "SIMD_LINE"    # bytes of a cache line
        LOOKS_FAR "SIMD_LOOKS_FAR"
    void simd_load(void* x, const void* source) noexcept
    void simd_load_as(void* x, const void* source, int kind) noexcept
    void simd_load_apart(void* x, const void* source, int64_t apart) noexcept
    void simd_store_apart(void* to, int64_t apart, const void* x) noexcept
    void simd_store(void* to, void* x) noexcept
    void simd_store_as(void* to, void* x, int kind) noexcept
    void simd_stream(void* to, void* x) noexcept
    void simd_tidy_nans(void* x) noexcept
    void simd_store_halves_in_turn(void* to, void* even, void* odd) noexcept
    void simd_widen_bfloats(void* even, void* odd, void* x) noexcept
    void simd_narrow_bfloats(void* x, void* even, void* odd) noexcept
    uint16_t lane_word "simd_lane_word" (int begin, int end) noexcept
    void simd_find_lanes(lanes* some, int word, size_t lane) noexcept
    void simd_lanes_at(lanes* some, const void* source, size_t lane) noexcept
    void simd_load_lanes(void* x, const void* source, lanes* some, int kind) noexcept
    void simd_store_lanes(void* to, void* x, lanes* some, int kind) noexcept
    void simd_copy_lanes(void* to, const void* source, int word, size_t lane, size_t size) noexcept
    void simd_copy_first(void* to, const void* source, size_t size, size_t whole) noexcept
    void simd_zero(void* x) noexcept
    void simd_fill(void* x, const void* source, size_t cell) noexcept
    void simd_and(void* x, void* a, void* b) noexcept
    void simd_add(void* sum, void* a, void* b, size_t lane) noexcept
    void simd_multiply(void* x, void* a, void* b, size_t lane) noexcept
    void simd_scale(void* x, void* a, double factor, size_t lane) noexcept
    void simd_divide(void* x, void* a, double divisor, size_t lane) noexcept
    void simd_plus_zero(void* x, size_t lane) noexcept
    void simd_least_4(void* x, void* a, void* b) noexcept
    void simd_count(void* x, void* a, int64_t number, size_t lane) noexcept
    void simd_take_greater(void* most, void* where, void* value, void* place, size_t lane) noexcept
    void simd_mark_equal_2(void* words, void* x, int64_t value, int bit) noexcept
    void simd_cut(void* to, void* x, size_t lane, size_t lower) noexcept
    void simd_load_in_turn(void* even, void* odd, const void* source, size_t cell) noexcept
    void simd_load_halves_in_turn(void* even, void* odd, const void* source) noexcept
    void simd_zip_low(void* c, void* a, void* b, size_t cell) noexcept
    void simd_zip_high(void* c, void* a, void* b, size_t cell) noexcept
    void simd_interleave(void* low, void* high, void* a, void* b, size_t cell) noexcept
    void simd_triple(void* low, void* middle, void* high, void* a, size_t lane) noexcept
    void simd_slide(void* x, void* a, void* b, int k, size_t lane) noexcept
    void simd_part(void* even, void* odd, void* a, void* b, size_t cell) noexcept
    void simd_unzip_three(void* x, void* y, void* z, const void* source, int cell) noexcept
    void simd_zip_three(void* to, void* x, void* y, void* z, int cell) noexcept
    void simd_find_places(places* some, int windows, const void* first, int results, int step, int term, int base,
                          size_t lane) noexcept
    void simd_lookup(vector* x, vector* a, places* some, size_t lane) noexcept
    void simd_pick(vector* x, const void* source, const int32_t* table, size_t lane) noexcept
    void simd_lookup_two(vector* x, vector* a, vector* b, places* some, size_t lane) noexcept
    void simd_lookup_bfloats(vector* x, const void* source, places* some) noexcept
    void simd_block(vector* x, vector* a, int number) noexcept
    void simd_add_pairs(vector* sum, vector* a, vector* b, size_t lane) noexcept
    void simd_join(vector* low, vector* high, vector* a, vector* b) noexcept
    void fence "simd_fence" () noexcept
    void prefetch "simd_prefetch" (const void* at) noexcept
    void prefetch_to_write "simd_prefetch_to_write" (const void* at) noexcept
    void prefetch_to_level_2 "simd_prefetch_to_level_2" (const void* at) noexcept

cdef enum:
    MOST_LANES = 16     # of float32 in any vector

# What is summed, and what is stored.
ctypedef fused real:
    float
    double

ctypedef fused element:
    float
    double
    half
    bfloat

ctypedef fused sixteen:
    half
    bfloat

# What is moved without a look at its value: a 16-bit type as its bits, because gcc 12 does not vectorise the copying of
# structs.
ctypedef fused cell:
    uint16_t
    float
    double

ctypedef fused vec:
    vector
    vector_half
    vector_16


cdef inline int kind_of(const element* numbers) noexcept nogil:
    if element is half:
        return HALF
    elif element is bfloat:
        return BFLOAT
    elif element is double:
        return F64
    else:
        return F32


cdef inline int64_t sum_bytes(const element* numbers) noexcept nogil:
    """Of a lane of their sums."""
    return 8 if element is double else 4


cdef inline vec load(const element* source, vec* width) noexcept nogil:
    """The numbers that lie there; of 16-bit types half as many bytes as the vector has, widened."""
    cdef vec x
    simd_load_as(&x, source, kind_of(source))
    return x


cdef inline vec load_cells(const cell* source, vec* width) noexcept nogil:
    """What lies there, as it is."""
    cdef vec x
    simd_load(&x, source)
    return x


cdef inline void load_in_turn(const element* source, vec* even, vec* odd) noexcept nogil:
    """even[i], odd[i] = source[2*i], source[2*i + 1], widened."""
    if element is half:
        simd_load_halves_in_turn(even, odd, source)
    elif element is bfloat:
        simd_load(odd, source)
        simd_widen_bfloats(even, odd, odd)
    else:
        simd_load_in_turn(even, odd, source, sizeof(element))


cdef inline vec zero(vec* width) noexcept nogil:
    cdef vec x
    simd_zero(&x)
    return x


cdef inline vec add(vec a, vec b, const element* numbers) noexcept nogil:
    """As sums of such numbers are made."""
    cdef vec sum
    simd_add(&sum, &a, &b, sum_bytes(numbers))
    return sum


cdef inline vec multiply(vec a, vec b, const element* numbers) noexcept nogil:
    """As products of such numbers are made."""
    cdef vec product
    simd_multiply(&product, &a, &b, sum_bytes(numbers))
    return product


cdef inline vec scale(vec a, double factor, const element* numbers) noexcept nogil:
    """a * factor, which is rounded to the lanes' type first."""
    cdef vec product
    simd_scale(&product, &a, factor, sum_bytes(numbers))
    return product


cdef inline vec plus_zero(vec x, const cell* lanes) noexcept nogil:
    """-0.0 becomes +0.0; of 16-bit types too."""
    simd_plus_zero(&x, sizeof(cell))
    return x


cdef inline void store(element* to, vec sum) noexcept nogil:
    """A sum of such numbers, rounded to nearest even: of 16-bit types half as many bytes as the vector has."""
    simd_store_as(to, &sum, kind_of(to))


cdef inline void store_first(element* to, vec sum, int64_t n) noexcept nogil:
    """The first n lanes, fewer than all."""
    cdef element[MOST_LANES] block
    cdef size_t whole = sizeof(sum) // 2 if element is half or element is bfloat else sizeof(sum)
    store(<element*>block, sum)
    simd_copy_first(to, <const element*>block, <size_t>n * sizeof(element), whole)


cdef inline void store_in_turn(element* to, vec even, vec odd) noexcept nogil:
    """to[2*i], to[2*i + 1] = even[i], odd[i], rounded."""
    if element is half:
        simd_store_halves_in_turn(to, &even, &odd)
    elif element is bfloat:
        simd_narrow_bfloats(&even, &even, &odd)
        simd_store(to, &even)
    else:
        simd_interleave(&even, &odd, &even, &odd, sizeof(element))
        simd_store(to, &even)
        simd_store(to + <int64_t>(sizeof(vec) // sizeof(element)), &odd)


cdef inline void store_first_in_turn(element* to, vec even, vec odd, int64_t n) noexcept nogil:
    """The first n of them, fewer than all."""
    cdef element[2 * MOST_LANES] block
    cdef size_t whole = sizeof(even) if element is half or element is bfloat else 2 * sizeof(even)
    store_in_turn(<element*>block, even, odd)
    simd_copy_first(to, <const element*>block, <size_t>n * sizeof(element), whole)


# Integers in lanes as wide as sums: where a number lies.


cdef inline vec count(vec a, int64_t number, const real* numbers) noexcept nogil:
    """a + number."""
    cdef vec x
    simd_count(&x, &a, number, sizeof(real))
    return x


cdef inline void take_greater(vec* most, vec* where, vec value, vec place, const real* numbers) noexcept nogil:
    """most, where = value, place where value is greater than most, or a NaN."""
    simd_take_greater(most, where, &value, &place, sizeof(real))


# Of some lanes: a word of 16 bits says which, [begin, end) by lane_word, for tables; `lanes` are what is used, and
# found from a word by a few instructions or none.


cdef inline lanes find_lanes(int word, const element* numbers) noexcept nogil:
    cdef lanes some
    simd_find_lanes(&some, word, sizeof(element))
    return some


cdef inline void store_lanes(element* to, vector sum, int word) noexcept nogil:
    """The lanes of a word, narrowed; the memory of the others is not touched."""
    cdef lanes some
    simd_find_lanes(&some, word, sum_bytes(to))
    if element is bfloat:
        simd_tidy_nans(&sum)
    simd_store_lanes(to, &sum, &some, kind_of(to))


cdef inline lanes lanes_at(const char* ones, const element* numbers) noexcept nogil:
    """Those that are ones in memory, of as many bytes as such numbers have; the others are zeros."""
    cdef lanes some
    simd_lanes_at(&some, ones, sizeof(element))
    return some


cdef inline bint reads_all(const element* numbers) noexcept nogil:
    """Whether load_lanes reads the memory of the other lanes too."""
    return READS_ALL_2 if element is half or element is bfloat else READS_ALL_4


cdef inline vec load_lanes(const element* source, lanes some, vec* width) noexcept nogil:
    """Widened; +0.0 in the others."""
    cdef vec x
    simd_load_lanes(&x, source, &some, kind_of(source))
    return x


cdef inline vec load_alone(const element* source, int word, vec* width) noexcept nogil:
    """The same, one by one, and the memory of the other lanes is not read."""
    cdef element[MOST_LANES] block
    simd_copy_lanes(<element*>block, source, word, sizeof(element), sizeof(block))
    return load(<const element*>block, width)


# Lookups: `places` say which lane goes where.


cdef inline void find_places(places* some, int windows, const uint8_t* first, int results, int step, int term,
                             int base, const element* numbers) noexcept nogil:
    """Windows begin with every `step`th result r. Lane l: of number first[i] + k, term k = term + l // results of
    result i = r + l % results, if it is less than first[i + 1]; lanes are numbered from first[r] + base on."""
    simd_find_places(some, windows, first, results, step, term, base, sum_bytes(numbers))


cdef inline vector lookup(vector a, places* some, const element* numbers) noexcept nogil:
    """Lanes of sums of such numbers; +0.0 where there is none."""
    cdef vector x
    simd_lookup(&x, &a, some, sum_bytes(numbers))
    return x


cdef inline vector lookup_two(vector a, vector b, places* some, const element* numbers) noexcept nogil:
    """The same, of two vectors."""
    cdef vector x
    simd_lookup_two(&x, &a, &b, some, sum_bytes(numbers))
    return x


cdef inline vector load_pairs(const element* source) noexcept nogil:
    """source[2*i] + source[2*i + 1] in lane i."""
    cdef vector x, y
    if element is bfloat:
        simd_load(&x, source)
        simd_widen_bfloats(&y, &x, &x)
        x = add(y, x, source)
    else:
        x = load(source, <vector*>NULL)
        y = load(source + VECTOR_BYTES // sum_bytes(source), <vector*>NULL)
        simd_add_pairs(&x, &x, &y, sum_bytes(source))
    return x
