/* Vectors of float16 and bfloat16. A part of simd.h, which says what all primitives have in common. */
#ifndef ACLNN_BW_SIMD_HALVES_H
#define ACLNN_BW_SIMD_HALVES_H
/* x = float16 or bfloat16 at `from` as float32: half as many bytes are read as the vector has. Exact. */
#define simd_load_half(x, from) simd_load_halves(x, from, sizeof *(x))
#define simd_load_bfloat(x, from) simd_load_bfloats(x, from, sizeof *(x))

SIMD_INLINE void simd_load_halves(void *x, const void *from, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_storeu_ps(x, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)));
#endif
#if defined(__F16C__)
    if (bytes == 32)
        _mm256_storeu_ps((float *)x, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)));
    if (bytes == 16)
        _mm_storeu_ps((float *)x, _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)from)));
#elif defined(__aarch64__)
    float32x4_t wide = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)from)));
    memcpy(x, &wide, bytes);
#else
    /* aclnn_bw_widen_half, of four at once. */
    typedef uint32_t words __attribute__((vector_size(16)));
    typedef float floats __attribute__((vector_size(16)));
    const words least = {113u << 23, 113u << 23, 113u << 23, 113u << 23};
#if defined(__SSE2__)
    const words half = (words)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)from), _mm_setzero_si128());
#else
    const simd_cell_2 *bits = (const simd_cell_2 *)from;
    const words half = {bits[0], bits[1], bits[2], bits[3]};
#endif
    const words magnitude = (half & 0x7fff) << 13, exponent = magnitude & 0x0f800000;
    const words is_small = (words)(exponent == 0), is_special = (words)(exponent == 0x0f800000);
    const words normal = magnitude + (112u << 23) + (is_special & 112u << 23);
    const words subnormal = (words)((floats)(magnitude + least) - (floats)least);
    const words wide = (is_small & subnormal) | (~is_small & normal) | (half & 0x8000) << 16;
    memcpy(x, &wide, bytes);
#endif
}

SIMD_INLINE void simd_load_bfloats(void *x, const void *from, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16));
#endif
#if defined(__AVX2__)
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x,
                            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));
#endif
#if defined(__SSE2__)
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)x,
                         _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)from)));
#elif defined(__aarch64__)
    uint32x4_t wide = vshll_n_u16(vld1_u16((const uint16_t *)from), 16);
    memcpy(x, &wide, bytes);
#else
    float wide[4];
    for (int i = 0; i < 4; i++)
        wide[i] = aclnn_bw_widen_bfloat(((const aclnn_bw_bfloat *)from)[i]);
    memcpy(x, wide, bytes);
#endif
}

/* What lies at `to` = x, float32, as float16 or bfloat16, rounded to nearest even: half as many bytes as x has. A NaN
 * that becomes bfloat16 has zeros in its lower half, as sums and products of bfloat16 do. */
#define simd_store_half(to, x) simd_store_halves(to, x, sizeof *(x))
#define simd_store_bfloat(to, x) simd_store_bfloats(to, x, sizeof *(x))

/* The upper 16 bits of each lane are the bfloat16. */
#define SIMD_ROUNDED(x) (SIMD_AS(uint32_t, x) + 0x7fff + (SIMD_AS(uint32_t, x) >> 16 & 1))

SIMD_INLINE void simd_store_halves(void *to, const void *x, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
#endif
#if defined(__F16C__)
    if (bytes == 32)
        _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(_mm256_loadu_ps((const float *)x), _MM_FROUND_TO_NEAREST_INT));
    if (bytes == 16)
        _mm_storel_epi64((__m128i *)to, _mm_cvtps_ph(_mm_loadu_ps((const float *)x), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
    (void)bytes;
    vst1_u16((uint16_t *)to, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32((const float *)x))));
#else
    /* aclnn_bw_narrow_to_half, of four at once. */
    typedef int32_t words __attribute__((vector_size(16)));
    typedef float floats __attribute__((vector_size(16)));
    words bits;
    memcpy(&bits, x, bytes);
    const words magnitude = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    const words normal = (magnitude - (112 << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const words subnormal = (words)((floats)magnitude + 0.5f) - 0x3f000000;
    const words is_nan = magnitude > 0x7f800000, is_large = magnitude >= 143 << 23, is_small = magnitude < 113 << 23;
    const words finite = (is_small & subnormal) | (~is_small & normal);
    const words half = (is_large & (0x7c00 | (is_nan & 0x200))) | (~is_large & finite) | sign;
#if defined(__SSE2__)
    const __m128i extended = _mm_srai_epi32(_mm_slli_epi32((__m128i)half, 16), 16);
    _mm_storel_epi64((__m128i *)to, _mm_packs_epi32(extended, extended));
#else
    for (int i = 0; i < 4; i++)
        ((simd_cell_2 *)to)[i] = (uint16_t)half[i];
#endif
#endif
}

SIMD_INLINE void simd_store_bfloats(void *to, const void *x, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64) {
        const __m512i rounded = (__m512i)SIMD_ROUNDED((const simd_vector *)x);
        _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
    }
#endif
#if defined(__AVX2__)
    if (bytes == 32) {
        const __m256i upper = _mm256_srli_epi32((__m256i)SIMD_ROUNDED((const simd_vector_32 *)x), 16);
        _mm_storeu_si128((__m128i *)to, _mm_packus_epi32(_mm256_castsi256_si128(upper),
                                                         _mm256_extracti128_si256(upper, 1)));
    }
#endif
#if defined(__SSE2__)
    if (bytes == 16) {
        const __m128i upper = _mm_srai_epi32((__m128i)SIMD_ROUNDED((const simd_vector_16 *)x), 16);
        _mm_storel_epi64((__m128i *)to, _mm_packs_epi32(upper, upper));
    }
#elif defined(__aarch64__)
    (void)bytes;
    vst1_u16((uint16_t *)to, vshrn_n_u32((uint32x4_t)SIMD_ROUNDED((const simd_vector_16 *)x), 16));
#else
    SIMD_TYPE(uint32_t, 16) rounded = SIMD_ROUNDED((const simd_vector_16 *)x);
    for (size_t i = 0; i < bytes / 4; i++)
        ((simd_cell_2 *)to)[i] = (uint16_t)(rounded[i] >> 16);
#endif
}

/* A NaN as a store of bfloat16 wants it. */
#define simd_tidy_nans(x) \
    SIMD_SET(x, (SIMD_AS(uint32_t, x) & ~(SIMD_NANS(x) & 0xffff)) | (SIMD_NANS(x) & 0x400000))
#define SIMD_NANS(x) ((SIMD_TYPE(uint32_t, sizeof *(x)))(SIMD_AS(float, x) != SIMD_AS(float, x)))

/* Twice as many bfloat16 as a vector has lanes of float32: those at even and those at odd places, widened;
 * `odd` may be x. */
#define simd_widen_bfloats(even, odd, x) \
    (SIMD_SET(even, SIMD_AS(uint32_t, x) << 16), SIMD_SET(odd, SIMD_AS(uint32_t, x) & 0xffff0000))

/* x = the lanes of both in turn, rounded to bfloat16. */
#define simd_narrow_bfloats(x, even, odd) SIMD_SET(x, SIMD_ROUNDED(even) >> 16 | (SIMD_ROUNDED(odd) & 0xffff0000))

/* to[2i], to[2i+1] = even[i], odd[i], rounded to float16: as many bytes as a vector has. */
#define simd_store_halves_in_turn(to, even, odd) simd_store_both(to, even, odd, sizeof *(even))

SIMD_INLINE void simd_store_both(void *to, const void *even, const void *odd, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64) {
        __m256i a = _mm512_cvtps_ph(_mm512_loadu_ps(even), _MM_FROUND_TO_NEAREST_INT);
        __m256i b = _mm512_cvtps_ph(_mm512_loadu_ps(odd), _MM_FROUND_TO_NEAREST_INT);
        _mm512_storeu_si512(to, _mm512_or_si512(_mm512_cvtepu16_epi32(a),
                                                _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16)));
    }
#endif
#if defined(__F16C__)
    if (bytes == 32) {
        __m128i a = _mm256_cvtps_ph(_mm256_loadu_ps((const float *)even), _MM_FROUND_TO_NEAREST_INT);
        __m128i b = _mm256_cvtps_ph(_mm256_loadu_ps((const float *)odd), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(a, b));
        _mm_storeu_si128((__m128i *)to + 1, _mm_unpackhi_epi16(a, b));
    }
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(
            _mm_cvtps_ph(_mm_loadu_ps((const float *)even), _MM_FROUND_TO_NEAREST_INT),
            _mm_cvtps_ph(_mm_loadu_ps((const float *)odd), _MM_FROUND_TO_NEAREST_INT)));
#elif defined(__aarch64__)
    uint16x4x2_t both = {{vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32((const float *)even))),
                          vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32((const float *)odd)))}};
    (void)bytes;
    vst2_u16((uint16_t *)to, both);
#elif defined(__SSE2__)
    const __m128 a = _mm_loadu_ps((const float *)even), b = _mm_loadu_ps((const float *)odd);
    const __m128 low = _mm_unpacklo_ps(a, b), high = _mm_unpackhi_ps(a, b);
    (void)bytes;
    simd_store_halves(to, &low, 16);
    simd_store_halves((char *)to + 8, &high, 16);
#else
    float a[4], b[4];
    memcpy(a, even, bytes);
    memcpy(b, odd, bytes);
    for (int i = 0; i < 4; i++) {
        ((aclnn_bw_half *)to)[2 * i] = aclnn_bw_narrow_to_half(a[i]);
        ((aclnn_bw_half *)to)[2 * i + 1] = aclnn_bw_narrow_to_half(b[i]);
    }
#endif
}

/* What a number is, where a primitive takes all kinds: a constant, by which it is compiled. */
enum { SIMD_F32, SIMD_F64, SIMD_HALF, SIMD_BFLOAT };

/* x = the numbers at `from`, widened. */
#define simd_load_as(x, from, kind)                     \
    ((kind) == SIMD_HALF ? simd_load_half(x, from)      \
     : (kind) == SIMD_BFLOAT ? simd_load_bfloat(x, from) \
                             : simd_load(x, from))

/* What lies at `to` = x, narrowed. */
#define simd_store_as(to, x, kind)                        \
    ((kind) == SIMD_HALF ? simd_store_half(to, x)         \
     : (kind) == SIMD_BFLOAT ? simd_store_bfloat(to, x)   \
                             : simd_store(to, x))
#endif
