/* Vectors: the instructions that the kernels are made of, for AVX-512, AVX2, 16 bytes of x86, and NEON.
 *
 * A vector is a carrier of bytes: simd_vector is as wide as is fast here, simd_vector_half half of that (16 bytes at
 * least), simd_vector_16 has 16 bytes. What its lanes are, the name of a primitive says. A primitive takes pointers to
 * vectors, which compilers keep in registers, and works on each of the three; simd.pxd gives it a Cython signature.
 * What depends on no instruction set is GNU vector arithmetic, which gcc and clang know everywhere.
 *
 * A primitive reads and writes nothing but the lanes that it names. Addresses need the alignment of a lane alone.
 */
#ifndef ACLNN_BW_SIMD_H
#define ACLNN_BW_SIMD_H
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "half.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define SIMD_BYTES 64
#elif defined(__AVX2__) && defined(__F16C__)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif
#define SIMD_HALF_BYTES (SIMD_BYTES > 16 ? SIMD_BYTES / 2 : 16)
#define SIMD_LINE 64 /* bytes of a cache line */

typedef float simd_vector __attribute__((vector_size(SIMD_BYTES)));
typedef float simd_vector_half __attribute__((vector_size(SIMD_HALF_BYTES)));
typedef float simd_vector_16 __attribute__((vector_size(16)));
typedef float simd_vector_32 __attribute__((vector_size(SIMD_BYTES > 16 ? 32 : 16)));

/* Cells of memory that are moved, whatever they hold. */
typedef uint16_t __attribute__((may_alias)) simd_cell_2;
typedef uint32_t __attribute__((may_alias)) simd_cell_4;
typedef uint64_t __attribute__((may_alias)) simd_cell_8;

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

/* A vector's lanes, and a vector made of lanes. */
#define SIMD_TYPE(lane, bytes) lane __attribute__((vector_size(bytes)))
#define SIMD_AS(lane, x) ((SIMD_TYPE(lane, sizeof *(x)))*(x))
#define SIMD_SET(x, lanes) (*(x) = (__typeof__(*(x)))(lanes))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* x = what lies at `from`, as it is. */
#define simd_load(x, from) ((void)memcpy(x, from, sizeof *(x)))

/* What lies at `to` = x. */
#if defined(__aarch64__)
/* Of 16 bytes that are copied gcc 12 makes two general registers: five instructions for one. */
#define simd_store(to, x) vst1q_u8((uint8_t *)(to), (uint8x16_t)*(x))
#else
#define simd_store(to, x) ((void)memcpy(to, x, sizeof *(x)))
#endif

/* The same past the caches; `to` lies at a multiple of the vector's bytes. */
#define simd_stream(to, x) simd_stream_bytes(to, x, sizeof *(x))

SIMD_INLINE void simd_stream_bytes(void *to, const void *x, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(x));
#endif
#if defined(__AVX2__)
    if (bytes == 32)
        _mm256_stream_si256((__m256i *)to, _mm256_loadu_si256((const __m256i *)x));
#endif
#if defined(__SSE2__)
    if (bytes == 16)
        _mm_stream_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)x));
#else
    memcpy(to, x, bytes);
#endif
}

/* What has been streamed is visible to other threads after this. */
SIMD_INLINE void simd_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Fetch a cache line that will be read, or written. */
#define simd_prefetch(at) __builtin_prefetch(at)
#define simd_prefetch_to_write(at) __builtin_prefetch(at, 1)
#define simd_prefetch_to_level_2(at) __builtin_prefetch(at, 0, 2)

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* x = 0 in every lane. */
#define simd_zero(x) SIMD_SET(x, (SIMD_TYPE(float, sizeof *(x))){0})

/* The bits that are ones in both. */
#define simd_and(x, a, b) SIMD_SET(x, SIMD_AS(uint64_t, a) & SIMD_AS(uint64_t, b))

/* sum = a + b, of float32 and of float64. */
#define simd_add_f32(sum, a, b) SIMD_SET(sum, SIMD_AS(float, a) + SIMD_AS(float, b))
#define simd_add_f64(sum, a, b) SIMD_SET(sum, SIMD_AS(double, a) + SIMD_AS(double, b))

/* x = a * factor, of float32. */
#define simd_scale_f32(x, a, factor) SIMD_SET(x, SIMD_AS(float, a) * (factor))

/* x += 0: -0.0 becomes +0.0. */
#define simd_plus_zero_f32(x) SIMD_SET(x, SIMD_AS(float, x) + 0)
#define simd_plus_zero_f64(x) SIMD_SET(x, SIMD_AS(double, x) + 0)

/* -0.0 becomes +0.0 in float16 and bfloat16 as they are stored: 0x8000 becomes 0, every other value stays. */
#if SIMD_BYTES == 64
#define simd_plus_zero_bits(x) simd_clear_signs(x, sizeof *(x))

SIMD_INLINE void simd_clear_signs(void *x, size_t bytes)
{
    __m512i a = bytes == 64 ? _mm512_loadu_si512(x) : _mm512_setzero_si512();
    __m256i b = bytes == 32 ? _mm256_loadu_si256((const __m256i *)x) : _mm256_setzero_si256();
    __m128i c = bytes == 16 ? _mm_loadu_si128((const __m128i *)x) : _mm_setzero_si128();
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_maskz_mov_epi16(_mm512_cmpneq_epi16_mask(a, _mm512_set1_epi16(INT16_MIN)), a));
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x,
                            _mm256_maskz_mov_epi16(_mm256_cmpneq_epi16_mask(b, _mm256_set1_epi16(INT16_MIN)), b));
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)x, _mm_maskz_mov_epi16(_mm_cmpneq_epi16_mask(c, _mm_set1_epi16(INT16_MIN)), c));
}
#elif defined(__SSE2__) && !defined(__AVX__)
/* By an operand more, of which gcc 12 loads none twice. */
#define simd_plus_zero_bits(x) \
    SIMD_SET(x, SIMD_AS(uint16_t, x) ^ (SIMD_TYPE(uint16_t, sizeof *(x)))(SIMD_AS(uint16_t, x) == 0x8000) << 15)
#else
#define simd_plus_zero_bits(x) \
    SIMD_SET(x, SIMD_AS(uint16_t, x) & ~(SIMD_TYPE(uint16_t, sizeof *(x)))(SIMD_AS(uint16_t, x) == 0x8000))
#endif

/* ---- float16 and bfloat16 ---------------------------------------------------------------------------------------- */

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
    for (int i = 0; i < 4; i++)
        ((simd_cell_2 *)to)[i] = (uint16_t)half[i];
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

/* Twice as many bfloat16 as a vector has lanes of float32: those at even and those at odd places, widened. */
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

/* ---- some lanes -------------------------------------------------------------------------------------------------- */

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

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* x = 16 bytes at `from`, the next of a wider vector `apart` bytes on, and so on. */
#define simd_load_apart(x, from, apart) simd_load_pieces(x, (const char *)(from), apart, sizeof *(x))

SIMD_INLINE void simd_load_pieces(void *x, const char *from, int64_t apart, size_t bytes)
{
#if SIMD_BYTES >= 32
    const __m256i low = bytes == 16 ? _mm256_setzero_si256() : _mm256_inserti128_si256(_mm256_castsi128_si256(
        _mm_loadu_si128((const __m128i *)from)), _mm_loadu_si128((const __m128i *)(from + apart)), 1);
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x, low);
#endif
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(
            (const __m128i *)(from + 2 * apart))), _mm_loadu_si128((const __m128i *)(from + 3 * apart)), 1);
        _mm512_storeu_si512(x, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
#endif
    if (bytes == 16)
        memcpy(x, from, 16);
    (void)apart;
}

/* Lanes of two vectors of integers, by number: those of b follow those of a. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SIMD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SIMD_SHUFFLE
#define SIMD_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

/* c = cells of 2, 4 or 8 bytes of a and b in turn, from the lower (or upper) half of each 16 bytes of both; of vectors of
 * 16, 32 and 64 bytes. */
#define simd_zip_low_2(c, a, b) simd_zip_2(c, a, b, sizeof *(c), 0)
#define simd_zip_high_2(c, a, b) simd_zip_2(c, a, b, sizeof *(c), 1)
#define simd_zip_low_4(c, a, b) simd_zip_4(c, a, b, sizeof *(c), 0)
#define simd_zip_high_4(c, a, b) simd_zip_4(c, a, b, sizeof *(c), 1)
#define simd_zip_low_8(c, a, b) simd_zip_8(c, a, b, sizeof *(c), 0)
#define simd_zip_high_8(c, a, b) simd_zip_8(c, a, b, sizeof *(c), 1)

#define SIMD_CELLS(lane, bytes, x) ((SIMD_TYPE(lane, bytes))*(const simd_vector_##bytes *)(x))
#define SIMD_ZIP(lane, bytes, ...) \
    SIMD_SET((simd_vector_##bytes *)c, SIMD_SHUFFLE(SIMD_CELLS(lane, bytes, a), SIMD_CELLS(lane, bytes, b), __VA_ARGS__))

SIMD_INLINE void simd_zip_2(void *c, const void *a, const void *b, size_t bytes, int high)
{
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
    if (bytes == 16 && !high)
        SIMD_ZIP(uint16_t, 16, 0, 8, 1, 9, 2, 10, 3, 11);
    if (bytes == 16 && high)
        SIMD_ZIP(uint16_t, 16, 4, 12, 5, 13, 6, 14, 7, 15);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint16_t, 32, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
    if (bytes == 32 && high)
        SIMD_ZIP(uint16_t, 32, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
#endif
}

SIMD_INLINE void simd_zip_4(void *c, const void *a, const void *b, size_t bytes, int high)
{
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi32(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi32(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
    if (bytes == 16 && !high)
        SIMD_ZIP(uint32_t, 16, 0, 4, 1, 5);
    if (bytes == 16 && high)
        SIMD_ZIP(uint32_t, 16, 2, 6, 3, 7);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint32_t, 32, 0, 8, 1, 9, 4, 12, 5, 13);
    if (bytes == 32 && high)
        SIMD_ZIP(uint32_t, 32, 2, 10, 3, 11, 6, 14, 7, 15);
#endif
}

SIMD_INLINE void simd_zip_8(void *c, const void *a, const void *b, size_t bytes, int high)
{
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi64(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi64(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
    if (bytes == 16 && !high)
        SIMD_ZIP(uint64_t, 16, 0, 2);
    if (bytes == 16 && high)
        SIMD_ZIP(uint64_t, 16, 1, 3);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint64_t, 32, 0, 4, 2, 6);
    if (bytes == 32 && high)
        SIMD_ZIP(uint64_t, 32, 1, 5, 3, 7);
#endif
}

/* low, high = the lanes of a and b in turn, of 2, 4 or 8 bytes: those of the lower halves of both, and of the upper; in place
 * too. */
#define simd_interleave_2(low, high, a, b) simd_interleave(low, high, a, b, 2, sizeof *(a))
#define simd_interleave_4(low, high, a, b) simd_interleave(low, high, a, b, 4, sizeof *(a))
#define simd_interleave_8(low, high, a, b) simd_interleave(low, high, a, b, 8, sizeof *(a))

SIMD_INLINE void simd_interleave(void *low, void *high, const void *a, const void *b, size_t lane, size_t bytes)
{
    simd_vector_16 c[2];
    (void)c;
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
        const __m512i p = lane == 2 ? _mm512_unpacklo_epi16(x, y) : lane == 4 ? _mm512_unpacklo_epi32(x, y)
                                                                              : _mm512_unpacklo_epi64(x, y);
        const __m512i q = lane == 2 ? _mm512_unpackhi_epi16(x, y) : lane == 4 ? _mm512_unpackhi_epi32(x, y)
                                                                              : _mm512_unpackhi_epi64(x, y);
        _mm512_storeu_si512(low, _mm512_permutex2var_epi64(p, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), q));
        _mm512_storeu_si512(high, _mm512_permutex2var_epi64(p, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), q));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)a), y = _mm256_loadu_si256((const __m256i *)b);
        const __m256i p = lane == 2 ? _mm256_unpacklo_epi16(x, y) : lane == 4 ? _mm256_unpacklo_epi32(x, y)
                                                                              : _mm256_unpacklo_epi64(x, y);
        const __m256i q = lane == 2 ? _mm256_unpackhi_epi16(x, y) : lane == 4 ? _mm256_unpackhi_epi32(x, y)
                                                                              : _mm256_unpackhi_epi64(x, y);
        _mm256_storeu_si256((__m256i *)low, _mm256_permute2x128_si256(p, q, 0x20));
        _mm256_storeu_si256((__m256i *)high, _mm256_permute2x128_si256(p, q, 0x31));
    }
#endif
    if (bytes == 16) {
        if (lane == 2)
            simd_zip_2(&c[0], a, b, 16, 0), simd_zip_2(&c[1], a, b, 16, 1);
        else if (lane == 4)
            simd_zip_4(&c[0], a, b, 16, 0), simd_zip_4(&c[1], a, b, 16, 1);
        else
            simd_zip_8(&c[0], a, b, 16, 0), simd_zip_8(&c[1], a, b, 16, 1);
        memcpy(low, &c[0], 16);
        memcpy(high, &c[1], 16);
    }
}

/* 48 bytes at `from`, cells of 2 or 4 bytes in turn, apart: of vectors of 16 bytes. */
SIMD_INLINE void simd_unzip_three_2(void *x, void *y, void *z, const void *from)
{
    typedef uint16_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, from, 16);
    memcpy(&b, (const char *)from + 16, 16);
    memcpy(&c, (const char *)from + 32, 16);
    first = SIMD_SHUFFLE(a, b, 0, 3, 6, 9, 12, 15, 0, 0);
    second = SIMD_SHUFFLE(a, b, 1, 4, 7, 10, 13, 0, 0, 0);
    third = SIMD_SHUFFLE(a, b, 2, 5, 8, 11, 14, 0, 0, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 2, 3, 4, 5, 10, 13);
    second = SIMD_SHUFFLE(second, c, 0, 1, 2, 3, 4, 8, 11, 14);
    third = SIMD_SHUFFLE(third, c, 0, 1, 2, 3, 4, 9, 12, 15);
    memcpy(x, &first, 16);
    memcpy(y, &second, 16);
    memcpy(z, &third, 16);
}

SIMD_INLINE void simd_unzip_three_4(void *x, void *y, void *z, const void *from)
{
    typedef uint32_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, from, 16);
    memcpy(&b, (const char *)from + 16, 16);
    memcpy(&c, (const char *)from + 32, 16);
    first = SIMD_SHUFFLE(a, b, 0, 3, 6, 0);
    second = SIMD_SHUFFLE(a, b, 1, 4, 7, 0);
    third = SIMD_SHUFFLE(a, b, 2, 5, 0, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 2, 5);
    second = SIMD_SHUFFLE(second, c, 0, 1, 2, 6);
    third = SIMD_SHUFFLE(third, c, 0, 1, 4, 7);
    memcpy(x, &first, 16);
    memcpy(y, &second, 16);
    memcpy(z, &third, 16);
}

/* 48 bytes at `to` = the cells of x, y and z of 2, 4 or 8 bytes in turn: of vectors of 16 bytes. */
SIMD_INLINE void simd_zip_three_2(void *to, const void *x, const void *y, const void *z)
{
    typedef uint16_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 8, 0, 1, 9, 0, 2, 10);
    second = SIMD_SHUFFLE(a, b, 0, 3, 11, 0, 4, 12, 0, 5);
    third = SIMD_SHUFFLE(a, b, 13, 0, 6, 14, 0, 7, 15, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 8, 3, 4, 9, 6, 7);
    second = SIMD_SHUFFLE(second, c, 10, 1, 2, 11, 4, 5, 12, 7);
    third = SIMD_SHUFFLE(third, c, 0, 13, 2, 3, 14, 5, 6, 15);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}

SIMD_INLINE void simd_zip_three_4(void *to, const void *x, const void *y, const void *z)
{
    typedef uint32_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 4, 0, 1);
    second = SIMD_SHUFFLE(a, b, 5, 0, 2, 6);
    third = SIMD_SHUFFLE(a, b, 0, 3, 7, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 4, 3);
    second = SIMD_SHUFFLE(second, c, 0, 5, 2, 3);
    third = SIMD_SHUFFLE(third, c, 6, 1, 2, 7);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}

SIMD_INLINE void simd_zip_three_8(void *to, const void *x, const void *y, const void *z)
{
    typedef uint64_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 2);
    second = SIMD_SHUFFLE(c, a, 0, 3);
    third = SIMD_SHUFFLE(b, c, 1, 3);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}
#endif
