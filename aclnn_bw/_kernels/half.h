/* Rows of float16 and bfloat16 to float32 and back.
 *
 * Widening is exact. Narrowing rounds once, to nearest even; beyond the largest finite value comes infinity; a NaN stays
 * a NaN (its payload is free). The F16C forms and the integer forms agree in every other bit, so the instruction set
 * does not show in a result. The caller runs in the default floating-point mode (no flush to zero, round to nearest).
 *
 * The 16-bit types are one-field structs: as two typedefs of uint16_t they would be one type to the compiler, and code
 * that chooses by type would choose wrongly.
 *
 * Why intrinsics: F16C converts eight elements in one instruction, and gcc 12 finds it in no loop over _Float16.
 */
#ifndef ACLNN_BW_HALF_H
#define ACLNN_BW_HALF_H
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

typedef struct { uint16_t bits; } aclnn_bw_half;
typedef struct { uint16_t bits; } aclnn_bw_bfloat;

static inline uint32_t aclnn_bw_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float aclnn_bw_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float aclnn_bw_widen_half(aclnn_bw_half half)
{
#if defined(__F16C__)
    return _cvtsh_ss(half.bits);
#else
    /* Exponents are rebased by an addition; zeros and subnormals become normal numbers from which the rebasing is
     * subtracted again, exactly. */
    uint32_t magnitude = (uint32_t)(half.bits & 0x7fff) << 13;
    uint32_t exponent = magnitude & 0x0f800000;
    uint32_t rebased = magnitude + (112u << 23) + (exponent == 0x0f800000 ? 112u << 23 : 0);
    uint32_t subnormal = aclnn_bw_bits_of(aclnn_bw_float_of(magnitude + (113u << 23)) - aclnn_bw_float_of(113u << 23));
    return aclnn_bw_float_of((exponent == 0 ? subnormal : rebased) | (uint32_t)(half.bits & 0x8000) << 16);
#endif
}

static inline aclnn_bw_half aclnn_bw_narrow_to_half(float value)
{
#if defined(__F16C__)
    aclnn_bw_half half = {_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)};
    return half;
#else
    uint32_t bits = aclnn_bw_bits_of(value);
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* Adding 0.5 makes the float adder round a subnormal at the right place. */
    uint32_t subnormal = aclnn_bw_bits_of(aclnn_bw_float_of(magnitude) + 0.5f) - 0x3f000000;
    uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    uint32_t rounded = magnitude >= (143u << 23) ? special : magnitude < (113u << 23) ? subnormal : normal;
    aclnn_bw_half half = {(uint16_t)(rounded | (bits >> 16 & 0x8000))};
    return half;
#endif
}

static inline float aclnn_bw_widen_bfloat(aclnn_bw_bfloat bfloat)
{
    return aclnn_bw_float_of((uint32_t)bfloat.bits << 16);
}

static inline aclnn_bw_bfloat aclnn_bw_narrow_to_bfloat(float value)
{
    uint32_t bits = aclnn_bw_bits_of(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    aclnn_bw_bfloat bfloat = {(uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded)};
    return bfloat;
}

/* float32 rounded to 11 explicit mantissa bits (1-8-11), to nearest even. */
static inline float aclnn_bw_round_to_hf32(float value)
{
    uint32_t bits = aclnn_bw_bits_of(value);
    uint32_t rounded = (bits + 0x7ff + (bits >> 12 & 1)) & ~(uint32_t)0xfff;
    return aclnn_bw_float_of((bits & 0x7fffffff) > 0x7f800000 ? bits : rounded);
}

#if defined(__F16C__)
static inline void aclnn_bw_widen_8(float *to, const aclnn_bw_half *from)
{
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from)));
}

static inline void aclnn_bw_narrow_8(aclnn_bw_half *to, const float *from)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
}
#endif

/* The last eight of a row overlap the eight before: a masked vcvtps2ph to memory is microcoded on Zen 4, and made rows of
 * 112 half as fast. So `to` and `from` must not be the same memory. */
static inline void aclnn_bw_widen_half_row(float *to, const aclnn_bw_half *from, int64_t n)
{
    int64_t i = 0;
#if defined(__F16C__)
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + i))));
#endif
    for (; i + 8 <= n; i += 8)
        aclnn_bw_widen_8(to + i, from + i);
    if (i < n && n >= 8) {
        aclnn_bw_widen_8(to + n - 8, from + n - 8);
        return;
    }
#endif
    for (; i < n; i++)
        to[i] = aclnn_bw_widen_half(from[i]);
}

static inline void aclnn_bw_narrow_to_half_row(aclnn_bw_half *to, const float *from, int64_t n)
{
    int64_t i = 0;
#if defined(__F16C__)
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i + 8 <= n; i += 8)
        aclnn_bw_narrow_8(to + i, from + i);
    if (i < n && n >= 8) {
        aclnn_bw_narrow_8(to + n - 8, from + n - 8);
        return;
    }
#endif
    for (; i < n; i++)
        to[i] = aclnn_bw_narrow_to_half(from[i]);
}

static inline void aclnn_bw_widen_bfloat_row(float *to, const aclnn_bw_bfloat *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = aclnn_bw_widen_bfloat(from[i]);
}

static inline void aclnn_bw_narrow_to_bfloat_row(aclnn_bw_bfloat *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = aclnn_bw_narrow_to_bfloat(from[i]);
}

/* to[2j], to[2j+1], below[2j], below[2j+1] = from[j] * factor + 0, narrowed: a window of 2 x 2 in one pass. */
static inline void aclnn_bw_double_half_row(aclnn_bw_half *to, aclnn_bw_half *below, const aclnn_bw_half *from,
                                            float factor, int64_t n)
{
    int64_t j = 0;
#if defined(__F16C__)
    for (; j + 8 <= n; j += 8) {
        __m256 wide = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + j)));
        __m256 term = _mm256_add_ps(_mm256_mul_ps(wide, _mm256_set1_ps(factor)), _mm256_setzero_ps());
        __m128i half = _mm256_cvtps_ph(term, _MM_FROUND_TO_NEAREST_INT);
        __m128i left = _mm_unpacklo_epi16(half, half), right = _mm_unpackhi_epi16(half, half);
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * j), left);
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * j + 8), right);
        _mm_storeu_si128((__m128i *)(void *)(below + 2 * j), left);
        _mm_storeu_si128((__m128i *)(void *)(below + 2 * j + 8), right);
    }
#endif
    for (; j < n; j++)
        to[2 * j] = to[2 * j + 1] = below[2 * j] = below[2 * j + 1]
            = aclnn_bw_narrow_to_half(aclnn_bw_widen_half(from[j]) * factor + 0.0f);
}

static inline void aclnn_bw_double_bfloat_row(aclnn_bw_bfloat *to, aclnn_bw_bfloat *below, const aclnn_bw_bfloat *from,
                                              float factor, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        uint32_t x = aclnn_bw_narrow_to_bfloat(aclnn_bw_widen_bfloat(from[j]) * factor + 0.0f).bits;
        uint32_t pair = x | x << 16;
        memcpy(to + 2 * j, &pair, sizeof pair);
        memcpy(below + 2 * j, &pair, sizeof pair);
    }
}

static inline void aclnn_bw_round_to_half_row(float *row, int64_t n)
{
    aclnn_bw_half block[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        aclnn_bw_narrow_to_half_row(block, row + i, m);
        aclnn_bw_widen_half_row(row + i, block, m);
    }
}

static inline void aclnn_bw_round_to_hf32_row(float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = aclnn_bw_round_to_hf32(row[i]);
}
#endif
