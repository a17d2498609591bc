/* float16 and bfloat16 to float32 and back, a number at a time.
 *
 * Widening is exact. Narrowing rounds once, to nearest even; beyond the largest finite value comes infinity; a NaN stays
 * a NaN (its payload is free). The F16C forms and the integer forms agree in every other bit, so the instruction set
 * does not show in a result. The caller runs in the default floating-point mode (no flush to zero, round to nearest).
 *
 * The 16-bit types are one-field structs: as two typedefs of uint16_t they would be one type to the compiler, and code
 * that chooses by type would choose wrongly.
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
#elif defined(__aarch64__)
    __fp16 number;
    memcpy(&number, &half, sizeof number);
    return number;
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
#elif defined(__aarch64__)
    __fp16 number = (__fp16)value;
    aclnn_bw_half half;
    memcpy(&half, &number, sizeof half);
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

static inline void aclnn_bw_round_to_hf32_row(float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        row[i] = aclnn_bw_round_to_hf32(row[i]);
}
#endif
