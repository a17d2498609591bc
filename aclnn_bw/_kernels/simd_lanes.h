/* Some lanes of a vector. A part of simd.h, which says what all primitives have in common. */
#ifndef ACLNN_BW_SIMD_LANES_H
#define ACLNN_BW_SIMD_LANES_H
/* Which lanes of a vector: a bit for each, or a lane of ones for each, in its first bytes where lanes are of 2 bytes. A
 * load of lanes leaves +0.0 in the others. Where SIMD_READS_ALL_4 (of lanes of 4 and 8 bytes) or SIMD_READS_ALL_2 is 1, it
 * reads the memory of the others too. */
#if SIMD_BYTES == 64
typedef uint32_t simd_lanes;
#define SIMD_READS_ALL_4 0
#define SIMD_READS_ALL_2 0
#elif SIMD_BYTES == 32
typedef __m256i simd_lanes;
#define SIMD_READS_ALL_4 0
#define SIMD_READS_ALL_2 1
#else
typedef simd_vector simd_lanes;
#define SIMD_READS_ALL_4 1
#define SIMD_READS_ALL_2 1
#endif

/* The lanes [begin, end), no more than 16, as a word that tables hold. */
#if SIMD_BYTES == 64
#define simd_lane_word(begin, end) ((uint16_t)((1u << (end)) - (1u << (begin))))
#else
#define simd_lane_word(begin, end) ((uint16_t)((begin) | (end) << 8))
#endif

/* The lanes of a word, of 2 (as many as there are of 4), 4 or 8 bytes each. */
SIMD_INLINE void simd_find_lanes(simd_lanes *lanes, int word, size_t lane)
{
#if SIMD_BYTES == 64
    *lanes = word;
    (void)lane;
#else
    const int16_t count_2[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32_t count_4[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t count_8[4] = {0, 1, 2, 3};
    const int below = (word & 255) - 1, end = word >> 8;
    if (lane == 2) {
        SIMD_TYPE(int16_t, 16) x;
        memcpy(&x, count_2, sizeof x);
        x = (x > (int16_t)below) & (x < (int16_t)end);
        memset(lanes, 0, sizeof *lanes);
        memcpy(lanes, &x, sizeof x);
    } else if (lane == 4) {
        SIMD_TYPE(int32_t, SIMD_BYTES) x;
        memcpy(&x, count_4, sizeof x);
        SIMD_SET(lanes, (x > below) & (x < end));
    } else {
        SIMD_TYPE(int64_t, SIMD_BYTES) x;
        memcpy(&x, count_8, sizeof x);
        SIMD_SET(lanes, (x > (int64_t)below) & (x < (int64_t)end));
    }
#endif
}

/* The lanes whose bytes at `from` are ones, where those of the others are zeros; of lanes as large as a number. */
SIMD_INLINE void simd_lanes_at(simd_lanes *lanes, const void *from, size_t lane)
{
#if SIMD_BYTES == 64
    if (lane == 2)
        *lanes = (simd_lanes)_mm256_movepi16_mask(_mm256_loadu_si256((const __m256i *)from));
    else if (lane == 4)
        *lanes = (simd_lanes)_mm512_movepi32_mask(_mm512_loadu_si512(from));
    else
        *lanes = (simd_lanes)_mm512_movepi64_mask(_mm512_loadu_si512(from));
#elif SIMD_BYTES == 32
    *lanes = lane == 2 ? _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from))
                       : _mm256_loadu_si256((const __m256i *)from);
#else
    memset(lanes, 0, sizeof *lanes);
    memcpy(lanes, from, lane == 2 ? sizeof *lanes / 2 : sizeof *lanes);
#endif
}

/* 16-bit numbers, as many as a vector has lanes of float32. */
typedef uint16_t simd_halves __attribute__((vector_size(SIMD_BYTES / 2)));

/* x = the lanes of the numbers at `from`, widened; of float32 and float64 lanes of their bits are as good. */
#define simd_load_lanes(x, from, lanes, kind) simd_load_kept(x, from, lanes, kind, sizeof *(x))

SIMD_INLINE void simd_load_kept(void *x, const void *from, const simd_lanes *lanes, int kind, size_t bytes)
{
    const int narrow = kind == SIMD_HALF || kind == SIMD_BFLOAT;
    simd_halves few = {0};
#if SIMD_BYTES == 64
    const __mmask16 some = (__mmask16)*lanes;
    const __mmask8 less = (__mmask8)*lanes;
    if (narrow)
        few = (simd_halves)(bytes == 64 ? _mm256_maskz_loadu_epi16(some, from)
                                        : _mm256_castsi128_si256(_mm_maskz_loadu_epi16(less, from)));
    else if (bytes == 64)
        _mm512_storeu_si512(x, kind == SIMD_F64 ? _mm512_maskz_loadu_epi64(less, from)
                                                : _mm512_maskz_loadu_epi32(some, from));
    else if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x, kind == SIMD_F64 ? _mm256_maskz_loadu_epi64(less, from)
                                                           : _mm256_maskz_loadu_epi32(less, from));
    else
        _mm_storeu_si128((__m128i *)x, kind == SIMD_F64 ? _mm_maskz_loadu_epi64(less, from)
                                                        : _mm_maskz_loadu_epi32(less, from));
#elif SIMD_BYTES == 32
    const __m128i first = _mm256_castsi256_si128(*lanes);
    if (narrow)
        few = (simd_halves)_mm_and_si128(bytes == 32 ? _mm_loadu_si128((const __m128i *)from)
                                                     : _mm_loadl_epi64((const __m128i *)from), first);
    else if (bytes == 32 && kind == SIMD_F64)
        _mm256_storeu_pd((double *)x, _mm256_maskload_pd((const double *)from, *lanes));
    else if (bytes == 32)
        _mm256_storeu_ps((float *)x, _mm256_maskload_ps((const float *)from, *lanes));
    else if (kind == SIMD_F64)
        _mm_storeu_pd((double *)x, _mm_maskload_pd((const double *)from, first));
    else
        _mm_storeu_ps((float *)x, _mm_maskload_ps((const float *)from, first));
#else
    SIMD_TYPE(uint32_t, 16) all = {0};
    memcpy(narrow ? (void *)&few : &all, from, narrow ? bytes / 2 : bytes);
    simd_halves kept;
    memcpy(&kept, lanes, sizeof kept);
    few &= kept;
    all &= SIMD_AS(uint32_t, lanes);
    if (!narrow)
        memcpy(x, &all, bytes);
#endif
    if (kind == SIMD_HALF)
        simd_load_halves(x, &few, bytes);
    if (kind == SIMD_BFLOAT)
        simd_load_bfloats(x, &few, bytes);
}

/* What lies at `to` = the lanes of a simd_vector as such numbers, narrowed ones too, where lanes are those of the vector.
 * The memory of the others is not touched. */
SIMD_INLINE void simd_store_lanes(void *to, const simd_vector *x, const simd_lanes *lanes, int kind)
{
    const size_t size = kind == SIMD_F64 ? 8 : kind == SIMD_F32 ? 4 : 2;
    uint32_t block[SIMD_BYTES / 4];
    if (kind == SIMD_HALF)
        simd_store_half(block, x);
    else if (kind == SIMD_BFLOAT)
        simd_store_bfloat(block, x);
    else
        memcpy(block, x, sizeof *x);
#if SIMD_BYTES == 64
    if (size == 8)
        _mm512_mask_storeu_epi64(to, (__mmask8)*lanes, (__m512i)*x);
    else if (size == 4)
        _mm512_mask_storeu_epi32(to, (__mmask16)*lanes, (__m512i)*x);
    else
        _mm256_mask_storeu_epi16(to, (__mmask16)*lanes, _mm256_loadu_si256((const __m256i *)block));
#else
#if SIMD_BYTES == 32
    if (size == 8)
        _mm256_maskstore_pd((double *)to, *lanes, (__m256d)*x);
    else if (size == 4)
        _mm256_maskstore_ps((float *)to, *lanes, (__m256)*x);
    if (size > 2)
        return;
#endif
    uint32_t kept[SIMD_BYTES / 4];
    memcpy(kept, lanes, sizeof kept);
    for (size_t i = 0; i < SIMD_BYTES / (size == 8 ? 8 : 4); i++)
        if (kept[size == 8 ? 2 * i : i])
            memcpy((char *)to + size * i, (const char *)block + size * i, size);
#endif
}

/* The lanes of a word again, of 2, 4 or 8 bytes each, of what lies at `from`, and nothing else is read: into `to`, the
 * others become 0. Slow where loads cannot be masked. */
SIMD_INLINE void simd_copy_lanes(void *to, const void *from, int word, size_t lane, size_t whole)
{
    memset(to, 0, whole);
#if SIMD_BYTES == 64
    for (size_t i = 0; word >> i; i++)
        if (word >> i & 1)
            memcpy((char *)to + i * lane, (const char *)from + i * lane, lane);
#else
    for (int i = word & 255; i < word >> 8; i++)
        memcpy((char *)to + (size_t)i * lane, (const char *)from + (size_t)i * lane, lane);
#endif
}

/* What lies at `to` = the first `size` bytes of a vector at `from` of `whole` bytes, in pieces of fixed sizes. */
SIMD_INLINE void simd_copy_first(void *to, const void *from, size_t size, size_t whole)
{
#if SIMD_BYTES == 64
    /* Under masks, without a branch. */
    if (whole == 32)
        _mm256_mask_storeu_epi8(to, (__mmask32)((1ull << size) - 1), _mm256_loadu_si256((const __m256i *)from));
    else if (whole == 64)
        _mm512_mask_storeu_epi8(to, (1ull << size) - 1, _mm512_loadu_si512(from));
    if (whole == 32 || whole == 64)
        return;
    if (whole == 128) {
        const __mmask64 low = size < 64 ? (1ull << size) - 1 : ~0ull, high = size < 64 ? 0 : (1ull << (size - 64)) - 1;
        _mm512_mask_storeu_epi8(to, low, _mm512_loadu_si512(from));
        _mm512_mask_storeu_epi8((char *)to + 64, high, _mm512_loadu_si512((const char *)from + 64));
        return;
    }
#endif
    char *at = (char *)to;
    const char *next = (const char *)from;
    if (whole > 64 && size & 64)
        memcpy(at, next, 64), at += 64, next += 64;
    if (whole > 32 && size & 32)
        memcpy(at, next, 32), at += 32, next += 32;
    if (whole > 16 && size & 16)
        memcpy(at, next, 16), at += 16, next += 16;
    if (whole > 8 && size & 8)
        memcpy(at, next, 8), at += 8, next += 8;
    if (size & 4)
        memcpy(at, next, 4), at += 4, next += 4;
    if (size & 2)
        memcpy(at, next, 2);
}
#endif
