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
#if SIMD_BYTES == 64
#define simd_lanes_2(lanes, word) (*(lanes) = (word))
#define simd_lanes_4(lanes, word) (*(lanes) = (word))
#define simd_lanes_8(lanes, word) (*(lanes) = (word))
#else
#define SIMD_WITHIN(x, number, word) SIMD_SET(x, ((number) >= ((word) & 255)) & ((number) < ((word) >> 8)))

SIMD_INLINE void simd_lanes_2(simd_lanes *lanes, int word)
{
#if SIMD_BYTES == 32
    const __m128i number = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
    *lanes = _mm256_castsi128_si256(_mm_andnot_si128(_mm_cmpgt_epi16(_mm_set1_epi16((short)(word & 255)), number),
                                                     _mm_cmpgt_epi16(_mm_set1_epi16((short)(word >> 8)), number)));
#else
    const SIMD_TYPE(int16_t, 16) number = {0, 1, 2, 3, 4, 5, 6, 7};
    SIMD_WITHIN(lanes, number, (int16_t)word);
#endif
}

SIMD_INLINE void simd_lanes_4(simd_lanes *lanes, int word)
{
#if SIMD_BYTES == 32
    const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    *lanes = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(word & 255), number),
                                 _mm256_cmpgt_epi32(_mm256_set1_epi32(word >> 8), number));
#else
    const SIMD_TYPE(int32_t, 16) number = {0, 1, 2, 3};
    SIMD_WITHIN(lanes, number, word);
#endif
}

SIMD_INLINE void simd_lanes_8(simd_lanes *lanes, int word)
{
#if SIMD_BYTES == 32
    const __m256i number = _mm256_setr_epi64x(0, 1, 2, 3);
    *lanes = _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(word & 255), number),
                                 _mm256_cmpgt_epi64(_mm256_set1_epi64x(word >> 8), number));
#else
    const SIMD_TYPE(int64_t, 16) number = {0, 1};
    SIMD_WITHIN(lanes, number, (int64_t)word);
#endif
}
#endif

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

/* x = the lanes of what lies at `from`: float32, float64, or float16 and bfloat16 widened. */
#define simd_load_lanes_f32(x, from, lanes) simd_load_lanes_4(x, from, lanes, sizeof *(x))
#define simd_load_lanes_f64(x, from, lanes) simd_load_lanes_8(x, from, lanes, sizeof *(x))
#define simd_load_lanes_half(x, from, lanes) simd_load_lanes_halves(x, from, lanes, sizeof *(x))
#define simd_load_lanes_bfloat(x, from, lanes) simd_load_lanes_bfloats(x, from, lanes, sizeof *(x))

/* 16-bit numbers, as many as a vector has lanes of float32. */
typedef uint16_t simd_halves __attribute__((vector_size(SIMD_BYTES / 2)));

SIMD_INLINE void simd_load_lanes_4(void *x, const void *from, const simd_lanes *lanes, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64)
        _mm512_storeu_ps(x, _mm512_maskz_loadu_ps((__mmask16)*lanes, from));
    if (bytes == 32)
        _mm256_storeu_ps((float *)x, _mm256_maskz_loadu_ps((__mmask8)*lanes, from));
    if (bytes == 16)
        _mm_storeu_ps((float *)x, _mm_maskz_loadu_ps((__mmask8)*lanes, from));
#elif SIMD_BYTES == 32
    if (bytes == 32)
        _mm256_storeu_ps((float *)x, _mm256_maskload_ps((const float *)from, *lanes));
    if (bytes == 16)
        _mm_storeu_ps((float *)x, _mm_maskload_ps((const float *)from, _mm256_castsi256_si128(*lanes)));
#else
    SIMD_TYPE(uint32_t, 16) all;
    memcpy(&all, from, bytes);
    all &= SIMD_AS(uint32_t, lanes);
    memcpy(x, &all, bytes);
#endif
}

SIMD_INLINE void simd_load_lanes_8(void *x, const void *from, const simd_lanes *lanes, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64)
        _mm512_storeu_pd(x, _mm512_maskz_loadu_pd((__mmask8)*lanes, from));
    if (bytes == 32)
        _mm256_storeu_pd((double *)x, _mm256_maskz_loadu_pd((__mmask8)*lanes, from));
    if (bytes == 16)
        _mm_storeu_pd((double *)x, _mm_maskz_loadu_pd((__mmask8)*lanes, from));
#elif SIMD_BYTES == 32
    if (bytes == 32)
        _mm256_storeu_pd((double *)x, _mm256_maskload_pd((const double *)from, *lanes));
    if (bytes == 16)
        _mm_storeu_pd((double *)x, _mm_maskload_pd((const double *)from, _mm256_castsi256_si128(*lanes)));
#else
    simd_load_lanes_4(x, from, lanes, bytes);
#endif
}

/* The 16-bit numbers of a vector of so many bytes of float32. */
SIMD_INLINE void simd_load_lanes_2(simd_halves *x, const void *from, const simd_lanes *lanes, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64)
        *x = (simd_halves)_mm256_maskz_loadu_epi16((__mmask16)*lanes, from);
    else
        *x = (simd_halves)_mm256_castsi128_si256(_mm_maskz_loadu_epi16((__mmask8)*lanes, from));
#elif SIMD_BYTES == 32
    if (bytes == 32)
        *x = (simd_halves)_mm_and_si128(_mm_loadu_si128((const __m128i *)from), _mm256_castsi256_si128(*lanes));
    else
        *x = (simd_halves)_mm_and_si128(_mm_loadl_epi64((const __m128i *)from), _mm256_castsi256_si128(*lanes));
#else
    simd_halves kept;
    memcpy(x, from, bytes / 2);
    memcpy(&kept, lanes, sizeof kept);
    *x &= kept;
#endif
}

SIMD_INLINE void simd_load_lanes_halves(void *x, const void *from, const simd_lanes *lanes, size_t bytes)
{
    simd_halves kept;
    simd_load_lanes_2(&kept, from, lanes, bytes);
    simd_load_halves(x, &kept, bytes);
}

SIMD_INLINE void simd_load_lanes_bfloats(void *x, const void *from, const simd_lanes *lanes, size_t bytes)
{
    simd_halves kept;
    simd_load_lanes_2(&kept, from, lanes, bytes);
    simd_load_bfloats(x, &kept, bytes);
}

/* What lies at `to` = the lanes of a simd_vector of float32, float64, or narrowed to float16 and to bfloat16, where lanes
 * are those of float32. The memory of the others is not touched. */
SIMD_INLINE void simd_store_lanes_f32(void *to, const simd_vector *x, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    _mm512_mask_storeu_ps(to, (__mmask16)*lanes, (__m512)*x);
#elif SIMD_BYTES == 32
    _mm256_maskstore_ps((float *)to, *lanes, (__m256)*x);
#else
    uint32_t kept[4];
    memcpy(kept, lanes, sizeof kept);
    for (int i = 0; i < 4; i++)
        if (kept[i])
            memcpy((char *)to + 4 * i, (const char *)x + 4 * i, 4);
#endif
}

SIMD_INLINE void simd_store_lanes_f64(void *to, const simd_vector *x, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    _mm512_mask_storeu_pd(to, (__mmask8)*lanes, (__m512d)*x);
#elif SIMD_BYTES == 32
    _mm256_maskstore_pd((double *)to, *lanes, (__m256d)*x);
#else
    simd_store_lanes_f32(to, x, lanes); /* in halves: a lane is all ones */
#endif
}

#define simd_store_lanes_half(to, x, lanes) simd_store_lanes_2(to, x, lanes, 0)
#define simd_store_lanes_bfloat(to, x, lanes) simd_store_lanes_2(to, x, lanes, 1)

SIMD_INLINE void simd_store_lanes_2(void *to, const simd_vector *x, const simd_lanes *lanes, int bfloats)
{
    uint16_t block[SIMD_BYTES / 4];
    if (bfloats)
        simd_store_bfloat(block, x);
    else
        simd_store_half(block, x);
#if SIMD_BYTES == 64
    _mm256_mask_storeu_epi16(to, (__mmask16)*lanes, _mm256_loadu_si256((const __m256i *)block));
#else
    uint32_t kept[SIMD_BYTES / 4];
    memcpy(kept, lanes, sizeof kept);
    for (int i = 0; i < SIMD_BYTES / 4; i++)
        if (kept[i])
            memcpy((char *)to + 2 * i, &block[i], 2);
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
