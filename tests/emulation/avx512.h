/* The AVX-512 intrinsics that the kernels use (F, BW, VL, DQ), in plain C, for a processor without them: the sources
 * are compiled with -march=x86-64-v3 -include avx512.h. What AVX2 has remains the processor's own.
 *
 * Exact on purpose: a masked load or store touches the lanes of its mask alone, one by one; a stream store that is not
 * aligned to its width traps; what an intrinsic leaves undefined, the upper part of a cast, is filled with garbage.
 * Each is a function emu_mm...; macros of the true names come last, behind the compiler's own header.
 */
#ifndef ACLNN_BW_TESTS_AVX512_H
#define ACLNN_BW_TESTS_AVX512_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#error "this is for machines without AVX-512: compile with -march=x86-64-v3"
#endif
#pragma GCC diagnostic ignored "-Wpsabi"
#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512VL__ 1
#define __AVX512DQ__ 1
#define __AVX512CD__ 1
#define ACLNN_BW_NO_ASM 1
#define EMU static inline __attribute__((always_inline, unused))
#define EMU_GARBAGE 0xa5

/* A vector as lanes. */
typedef union {
    __m512 ps; __m512d pd; __m512i si;
    __m256 yps[2]; __m256d ypd[2]; __m256i y[2];
    __m128 xps[4]; __m128d xpd[4]; __m128i x[4];
    float f[16]; double d[8]; uint8_t b[64]; uint16_t w[32]; uint32_t i[16]; uint64_t q[8];
} emu512;
typedef union {
    __m256 ps; __m256d pd; __m256i si;
    uint8_t b[32]; uint16_t w[16]; uint32_t i[8]; uint64_t q[4];
} emu256;
typedef union {
    __m128 ps; __m128d pd; __m128i si;
    uint8_t b[16]; uint16_t w[8]; uint32_t i[4]; uint64_t q[2];
} emu128;
#define EMU_I(v) ((emu512){.si = (v)})
#define EMU_F(v) ((emu512){.ps = (v)})
#define EMU_D(v) ((emu512){.pd = (v)})
#define EMU_LANES(n) for (int j = 0; j < (n); j++)

/* Set. */
EMU __m512i emu_mm512_set1_epi16(short a) { emu512 r; EMU_LANES(32) r.w[j] = (uint16_t)a; return r.si; }
EMU __m512i emu_mm512_set1_epi32(int a) { emu512 r; EMU_LANES(16) r.i[j] = (uint32_t)a; return r.si; }
EMU __m512i emu_mm512_set1_epi64(long long a) { emu512 r; EMU_LANES(8) r.q[j] = (uint64_t)a; return r.si; }
#define EMU_SETR(name, n, type, lane)                                                                         \
    EMU __m512i name(const type *from)                                                                        \
    { emu512 r; EMU_LANES(n) r.lane[j] = (__typeof__(r.lane[0]))from[j]; return r.si; }
EMU_SETR(emu_lanes_32, 16, int, i)
EMU_SETR(emu_lanes_64, 8, long long, q)
/* A wrong number of arguments is an error. */
#define EMU_COUNTED(type, n, ...)                                                                             \
    ((void)sizeof(char[sizeof((type[]){__VA_ARGS__}) == (n) * sizeof(type) ? 1 : -1]), (const type[]){__VA_ARGS__})
#define emu_mm512_setr_epi32(...) emu_lanes_32(EMU_COUNTED(int, 16, __VA_ARGS__))
#define emu_mm512_setr_epi64(...) emu_lanes_64(EMU_COUNTED(long long, 8, __VA_ARGS__))

/* Casts; the part that comes new is undefined. */
EMU __m512 emu_mm512_castps128_ps512(__m128 a) { emu512 r; memset(&r, EMU_GARBAGE, 64); r.xps[0] = a; return r.ps; }
EMU __m512i emu_mm512_castsi256_si512(__m256i a) { emu512 r; memset(&r, EMU_GARBAGE, 64); r.y[0] = a; return r.si; }
EMU __m512i emu_mm512_castsi128_si512(__m128i a) { emu512 r; memset(&r, EMU_GARBAGE, 64); r.x[0] = a; return r.si; }
EMU __m256i emu_mm512_castsi512_si256(__m512i a) { return EMU_I(a).y[0]; }
EMU __m128 emu_mm512_extractf32x4_ps(__m512 a, int k) { return EMU_F(a).xps[k & 3]; }
EMU __m512i emu_mm512_inserti64x4(__m512i a, __m256i b, int k) { emu512 r = EMU_I(a); r.y[k & 1] = b; return r.si; }

/* Whole loads and stores. */
EMU __m512 emu_mm512_loadu_ps(const void *p) { emu512 r; memcpy(&r, p, 64); return r.ps; }
EMU __m512i emu_mm512_loadu_si512(const void *p) { emu512 r; memcpy(&r, p, 64); return r.si; }
EMU void emu_mm512_storeu_ps(void *p, __m512 a) { memcpy(p, &a, 64); }
EMU void emu_mm512_storeu_si512(void *p, __m512i a) { memcpy(p, &a, 64); }
EMU void emu_mm512_stream_si512(void *p, __m512i a) { if ((uintptr_t)p & 63) __builtin_trap(); memcpy(p, &a, 64); }

/* Masked loads and stores: lanes of the mask alone. */
#define EMU_MASKZ_LOAD(name, mask, vector, wide, lane, n, member)                                             \
    EMU vector name(mask k, const void *p)                                                                    \
    {                                                                                                         \
        wide r;                                                                                               \
        memset(&r, 0, sizeof r);                                                                              \
        EMU_LANES(n)                                                                                          \
            if (k >> j & 1)                                                                                   \
                memcpy(&r.lane[j], (const char *)p + j * sizeof r.lane[0], sizeof r.lane[0]);                 \
        return r.member;                                                                                      \
    }
EMU_MASKZ_LOAD(emu_mm512_maskz_loadu_epi32, __mmask16, __m512i, emu512, i, 16, si)
EMU_MASKZ_LOAD(emu_mm512_maskz_loadu_epi64, __mmask8, __m512i, emu512, q, 8, si)
EMU_MASKZ_LOAD(emu_mm256_maskz_loadu_epi32, __mmask8, __m256i, emu256, i, 8, si)
EMU_MASKZ_LOAD(emu_mm256_maskz_loadu_epi64, __mmask8, __m256i, emu256, q, 4, si)
EMU_MASKZ_LOAD(emu_mm_maskz_loadu_epi64, __mmask8, __m128i, emu128, q, 2, si)
EMU_MASKZ_LOAD(emu_mm_maskz_loadu_epi32, __mmask8, __m128i, emu128, i, 4, si)
EMU_MASKZ_LOAD(emu_mm512_maskz_loadu_ps, __mmask16, __m512, emu512, i, 16, ps)
EMU_MASKZ_LOAD(emu_mm512_maskz_loadu_pd, __mmask8, __m512d, emu512, q, 8, pd)
EMU_MASKZ_LOAD(emu_mm256_maskz_loadu_epi16, __mmask16, __m256i, emu256, w, 16, si)
EMU_MASKZ_LOAD(emu_mm_maskz_loadu_epi16, __mmask8, __m128i, emu128, w, 8, si)

EMU __m512i emu_mm512_mask_loadu_epi32(__m512i s, __mmask16 k, const void *p)
{
    emu512 r = {.si = s};
    EMU_LANES(16)
        if (k >> j & 1)
            memcpy(&r.i[j], (const char *)p + 4 * j, 4);
    return r.si;
}
#define EMU_MASK_STORE(name, mask, vector, wide, lane, n, member)                                             \
    EMU void name(void *p, mask k, vector a)                                                                  \
    {                                                                                                         \
        wide r;                                                                                               \
        r.member = a;                                                                                         \
        EMU_LANES(n)                                                                                          \
            if (k >> j & 1)                                                                                   \
                memcpy((char *)p + j * sizeof r.lane[0], &r.lane[j], sizeof r.lane[0]);                       \
    }
EMU_MASK_STORE(emu_mm512_mask_storeu_epi32, __mmask16, __m512i, emu512, i, 16, si)
EMU_MASK_STORE(emu_mm512_mask_storeu_epi64, __mmask8, __m512i, emu512, q, 8, si)
EMU_MASK_STORE(emu_mm512_mask_storeu_epi8, __mmask64, __m512i, emu512, b, 64, si)
EMU_MASK_STORE(emu_mm256_mask_storeu_epi8, __mmask32, __m256i, emu256, b, 32, si)
EMU_MASK_STORE(emu_mm256_mask_storeu_epi16, __mmask16, __m256i, emu256, w, 16, si)

/* Arithmetic and logic, lane by lane. */
#define EMU_OP(name, member, vector, lane, n, expression)                                                     \
    EMU vector name(vector a_, vector b_)                                                                     \
    { emu512 a, b, r; a.member = a_; b.member = b_; EMU_LANES(n) r.lane[j] = expression; return r.member; }
EMU_OP(emu_mm512_add_ps, ps, __m512, f, 16, a.f[j] + b.f[j])
EMU_OP(emu_mm512_add_pd, pd, __m512d, d, 8, a.d[j] + b.d[j])
EMU_OP(emu_mm512_add_epi32, si, __m512i, i, 16, a.i[j] + b.i[j])
EMU_OP(emu_mm512_add_epi64, si, __m512i, q, 8, a.q[j] + b.q[j])
EMU_OP(emu_mm512_min_epu32, si, __m512i, i, 16, a.i[j] < b.i[j] ? a.i[j] : b.i[j])
EMU_OP(emu_mm512_or_si512, si, __m512i, q, 8, a.q[j] | b.q[j])
EMU __m512i emu_mm512_slli_epi32(__m512i a, unsigned k)
{
    emu512 r = EMU_I(a);
    EMU_LANES(16) r.i[j] = k > 31 ? 0 : r.i[j] << k;
    return r.si;
}
EMU __m512i emu_mm512_srli_epi32(__m512i a, unsigned k)
{
    emu512 r = EMU_I(a);
    EMU_LANES(16) r.i[j] = k > 31 ? 0 : r.i[j] >> k;
    return r.si;
}

/* Under a mask: lanes that are not in it come from src, or are zero. */
#define EMU_CHOOSE(n, lane, src, new)                                                                         \
    ({ emu512 s_ = src, n_ = new; EMU_LANES(n) if (!(k >> j & 1)) n_.lane[j] = s_.lane[j]; n_; })
#define EMU_ZERO ((emu512){.q = {0}})
EMU __m512 emu_mm512_mask_add_ps(__m512 s, __mmask16 k, __m512 a, __m512 b)
{
    return EMU_CHOOSE(16, i, EMU_F(s), EMU_F(emu_mm512_add_ps(a, b))).ps;
}
EMU __m512d emu_mm512_mask_add_pd(__m512d s, __mmask8 k, __m512d a, __m512d b)
{
    return EMU_CHOOSE(8, q, EMU_D(s), EMU_D(emu_mm512_add_pd(a, b))).pd;
}
EMU __m512i emu_mm512_maskz_mov_epi16(__mmask32 k, __m512i a) { return EMU_CHOOSE(32, w, EMU_ZERO, EMU_I(a)).si; }

/* Comparisons. */
#define EMU_CMP(name, mask, vector, wide, lane, n, expression)                                                \
    EMU mask name(vector a_, vector b_)                                                                       \
    { wide a, b; uint64_t k = 0; a.si = a_; b.si = b_; EMU_LANES(n) k |= (uint64_t)(expression) << j; return (mask)k; }
EMU_CMP(emu_mm512_cmpneq_epi16_mask, __mmask32, __m512i, emu512, w, 32, a.w[j] != b.w[j])
EMU_CMP(emu_mm512_cmpeq_epi32_mask, __mmask16, __m512i, emu512, i, 16, a.i[j] == b.i[j])
EMU_CMP(emu_mm256_cmpeq_epi32_mask, __mmask8, __m256i, emu256, i, 8, a.i[j] == b.i[j])
EMU_CMP(emu_mm256_test_epi16_mask, __mmask16, __m256i, emu256, w, 16, (a.w[j] & b.w[j]) != 0)
EMU_CMP(emu_mm_cmplt_epu8_mask, __mmask16, __m128i, emu128, b, 16, a.b[j] < b.b[j])
EMU_CMP(emu_mm_test_epi16_mask, __mmask8, __m128i, emu128, w, 8, (a.w[j] & b.w[j]) != 0)
EMU __mmask16 emu_mm512_cmp_ps_mask_unord(__m512 a, __m512 b)
{
    unsigned k = 0;
    EMU_LANES(16) k |= (unsigned)(EMU_F(a).f[j] != EMU_F(a).f[j] || EMU_F(b).f[j] != EMU_F(b).f[j]) << j;
    return (__mmask16)k;
}
#define emu_mm512_cmp_ps_mask(a, b, op)                                                                       \
    ((void)sizeof(char[(op) == _CMP_UNORD_Q ? 1 : -1]), emu_mm512_cmp_ps_mask_unord(a, b))

#define EMU_SIGNS(name, mask, vector, wide, lane, n)                                                          \
    EMU mask name(vector a_)                                                                                  \
    {                                                                                                         \
        wide a = {.si = a_};                                                                                  \
        unsigned k = 0;                                                                                       \
        EMU_LANES(n) k |= (unsigned)(a.lane[j] >> (8 * sizeof a.lane[j] - 1)) << j;                           \
        return (mask)k;                                                                                       \
    }
EMU_SIGNS(emu_mm512_movepi32_mask, __mmask16, __m512i, emu512, i, 16)
EMU_SIGNS(emu_mm512_movepi64_mask, __mmask8, __m512i, emu512, q, 8)
EMU_SIGNS(emu_mm256_movepi16_mask, __mmask16, __m256i, emu256, w, 16)

/* Conversions. */
EMU __m512 emu_mm512_cvtph_ps(__m256i a)
{
    emu256 s = {.si = a};
    emu512 r;
    __m128i h[2];
    memcpy(h, &s, 32);
    r.yps[0] = _mm256_cvtph_ps(h[0]);
    r.yps[1] = _mm256_cvtph_ps(h[1]);
    return r.ps;
}
#define emu_mm512_cvtps_ph(a, op)                                                                             \
    ((void)sizeof(char[(op) == _MM_FROUND_TO_NEAREST_INT ? 1 : -1]), emu_mm512_cvtps_ph_near(a))
EMU __m256i emu_mm512_cvtps_ph_near(__m512 a)
{
    __m128i h[2] = {_mm256_cvtps_ph(EMU_F(a).yps[0], _MM_FROUND_TO_NEAREST_INT),
                    _mm256_cvtps_ph(EMU_F(a).yps[1], _MM_FROUND_TO_NEAREST_INT)};
    emu256 r;
    memcpy(&r, h, 32);
    return r.si;
}
EMU __m512i emu_mm512_cvtepu16_epi32(__m256i a)
{
    emu256 s = {.si = a};
    emu512 r;
    EMU_LANES(16) r.i[j] = s.w[j];
    return r.si;
}
EMU __m512i emu_mm512_cvtepu8_epi32(__m128i a)
{
    emu128 s = {.si = a};
    emu512 r;
    EMU_LANES(16) r.i[j] = s.b[j];
    return r.si;
}
EMU __m512i emu_mm512_cvtepu8_epi64(__m128i a)
{
    emu128 s = {.si = a};
    emu512 r;
    EMU_LANES(8) r.q[j] = s.b[j];
    return r.si;
}
EMU __m256i emu_mm512_cvtepi32_epi16(__m512i a)
{
    emu512 s = EMU_I(a);
    emu256 r;
    EMU_LANES(16) r.w[j] = (uint16_t)s.i[j];
    return r.si;
}

/* Shuffles within 16 bytes. */
#define EMU_UNPACK(name, member, vector, lane, per, low)                                                      \
    EMU vector name(vector a_, vector b_)                                                                     \
    {                                                                                                         \
        emu512 a, b, r; a.member = a_; b.member = b_;                                                         \
        for (int g = 0; g < 4; g++)                                                                           \
            for (int j = 0; j < (per) / 2; j++) {                                                             \
                r.lane[g * (per) + 2 * j] = a.lane[g * (per) + ((low) ? 0 : (per) / 2) + j];                  \
                r.lane[g * (per) + 2 * j + 1] = b.lane[g * (per) + ((low) ? 0 : (per) / 2) + j];              \
            }                                                                                                 \
        return r.member;                                                                                      \
    }
EMU_UNPACK(emu_mm512_unpacklo_epi16, si, __m512i, w, 8, 1)
EMU_UNPACK(emu_mm512_unpackhi_epi16, si, __m512i, w, 8, 0)
EMU_UNPACK(emu_mm512_unpacklo_epi32, si, __m512i, i, 4, 1)
EMU_UNPACK(emu_mm512_unpackhi_epi32, si, __m512i, i, 4, 0)
EMU_UNPACK(emu_mm512_unpacklo_epi64, si, __m512i, q, 2, 1)
EMU_UNPACK(emu_mm512_unpackhi_epi64, si, __m512i, q, 2, 0)
/* Shuffles across. */
EMU __m512i emu_mm512_alignr_epi32(__m512i a, __m512i b, int c)
{
    emu512 r;
    EMU_LANES(16) { int s = j + (c & 15); r.i[j] = s < 16 ? EMU_I(b).i[s] : EMU_I(a).i[s - 16]; } return r.si;
}
#define EMU_PERMUTE2(name, member, vector, lane, n)                                                           \
    EMU vector name(vector a_, __m512i x_, vector b_)                                                         \
    {                                                                                                         \
        emu512 a, b, x, r; a.member = a_; b.member = b_; x.si = x_;                                           \
        EMU_LANES(n) r.lane[j] = (x.lane[j] & (n) ? b : a).lane[x.lane[j] & ((n) - 1)];                       \
        return r.member;                                                                                      \
    }
EMU_PERMUTE2(emu_mm512_permutex2var_ps, ps, __m512, i, 16)
EMU_PERMUTE2(emu_mm512_permutex2var_pd, pd, __m512d, q, 8)
EMU_PERMUTE2(emu_mm512_permutex2var_epi32, si, __m512i, i, 16)
EMU_PERMUTE2(emu_mm512_permutex2var_epi64, si, __m512i, q, 8)
#define EMU_PERMUTE(name, member, vector, lane, n)                                                            \
    EMU vector name(__m512i x_, vector a_)                                                                    \
    {                                                                                                         \
        emu512 a, x, r; a.member = a_; x.si = x_;                                                             \
        EMU_LANES(n) r.lane[j] = a.lane[x.lane[j] & ((n) - 1)];                                               \
        return r.member;                                                                                      \
    }
EMU_PERMUTE(emu_mm512_permutexvar_ps, ps, __m512, i, 16)
EMU_PERMUTE(emu_mm512_permutexvar_pd, pd, __m512d, q, 8)
EMU_PERMUTE(emu_mm512_permutexvar_epi32, si, __m512i, i, 16)
EMU_PERMUTE(emu_mm512_permutexvar_epi64, si, __m512i, q, 8)
EMU_PERMUTE(emu_mm512_permutexvar_epi16, si, __m512i, w, 32)
EMU __m512i emu_mm512_maskz_slli_epi32(__mmask16 k, __m512i a, unsigned n)
{
    return EMU_CHOOSE(16, i, EMU_ZERO, EMU_I(emu_mm512_slli_epi32(a, n))).si;
}
EMU __m512 emu_mm512_maskz_permutexvar_ps(__mmask16 k, __m512i x, __m512 a)
{
    return EMU_CHOOSE(16, i, EMU_ZERO, EMU_F(emu_mm512_permutexvar_ps(x, a))).ps;
}
EMU __m512d emu_mm512_maskz_permutexvar_pd(__mmask8 k, __m512i x, __m512d a)
{
    return EMU_CHOOSE(8, q, EMU_ZERO, EMU_D(emu_mm512_permutexvar_pd(x, a))).pd;
}
EMU __m512 emu_mm512_maskz_permutex2var_ps(__mmask16 k, __m512 a, __m512i x, __m512 b)
{
    return EMU_CHOOSE(16, i, EMU_ZERO, EMU_F(emu_mm512_permutex2var_ps(a, x, b))).ps;
}
EMU __m512d emu_mm512_maskz_permutex2var_pd(__mmask8 k, __m512d a, __m512i x, __m512d b)
{
    return EMU_CHOOSE(8, q, EMU_ZERO, EMU_D(emu_mm512_permutex2var_pd(a, x, b))).pd;
}

/* The true names. */
#undef _mm256_cmpeq_epi32_mask
#define _mm256_cmpeq_epi32_mask emu_mm256_cmpeq_epi32_mask
#undef _mm256_mask_storeu_epi16
#define _mm256_mask_storeu_epi16 emu_mm256_mask_storeu_epi16
#undef _mm256_mask_storeu_epi8
#define _mm256_mask_storeu_epi8 emu_mm256_mask_storeu_epi8
#undef _mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_epi32 emu_mm512_maskz_loadu_epi32
#undef _mm512_maskz_loadu_epi64
#define _mm512_maskz_loadu_epi64 emu_mm512_maskz_loadu_epi64
#undef _mm256_maskz_loadu_epi32
#define _mm256_maskz_loadu_epi32 emu_mm256_maskz_loadu_epi32
#undef _mm256_maskz_loadu_epi64
#define _mm256_maskz_loadu_epi64 emu_mm256_maskz_loadu_epi64
#undef _mm_maskz_loadu_epi64
#define _mm_maskz_loadu_epi64 emu_mm_maskz_loadu_epi64
#undef _mm_maskz_loadu_epi32
#define _mm_maskz_loadu_epi32 emu_mm_maskz_loadu_epi32
#undef _mm512_mask_storeu_epi32
#define _mm512_mask_storeu_epi32 emu_mm512_mask_storeu_epi32
#undef _mm512_mask_storeu_epi64
#define _mm512_mask_storeu_epi64 emu_mm512_mask_storeu_epi64
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16 emu_mm256_maskz_loadu_epi16
#undef _mm256_movepi16_mask
#define _mm256_movepi16_mask emu_mm256_movepi16_mask
#undef _mm256_test_epi16_mask
#define _mm256_test_epi16_mask emu_mm256_test_epi16_mask
#undef _mm512_add_epi32
#define _mm512_add_epi32 emu_mm512_add_epi32
#undef _mm512_add_epi64
#define _mm512_add_epi64 emu_mm512_add_epi64
#undef _mm512_alignr_epi32
#define _mm512_alignr_epi32 emu_mm512_alignr_epi32
#undef _mm512_castps128_ps512
#define _mm512_castps128_ps512 emu_mm512_castps128_ps512
#undef _mm512_castsi128_si512
#define _mm512_castsi128_si512 emu_mm512_castsi128_si512
#undef _mm512_castsi256_si512
#define _mm512_castsi256_si512 emu_mm512_castsi256_si512
#undef _mm512_castsi512_si256
#define _mm512_castsi512_si256 emu_mm512_castsi512_si256
#undef _mm512_cmpeq_epi32_mask
#define _mm512_cmpeq_epi32_mask emu_mm512_cmpeq_epi32_mask
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 emu_mm512_cvtepi32_epi16
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emu_mm512_cvtepu16_epi32
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 emu_mm512_cvtepu8_epi32
#undef _mm512_cvtepu8_epi64
#define _mm512_cvtepu8_epi64 emu_mm512_cvtepu8_epi64
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emu_mm512_cvtph_ps
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph emu_mm512_cvtps_ph
#undef _mm512_extractf32x4_ps
#define _mm512_extractf32x4_ps emu_mm512_extractf32x4_ps
#undef _mm512_inserti64x4
#define _mm512_inserti64x4 emu_mm512_inserti64x4
#undef _mm512_loadu_ps
#define _mm512_loadu_ps emu_mm512_loadu_ps
#undef _mm512_loadu_si512
#define _mm512_loadu_si512 emu_mm512_loadu_si512
#undef _mm512_mask_add_pd
#define _mm512_mask_add_pd emu_mm512_mask_add_pd
#undef _mm512_mask_add_ps
#define _mm512_mask_add_ps emu_mm512_mask_add_ps
#undef _mm512_mask_loadu_epi32
#define _mm512_mask_loadu_epi32 emu_mm512_mask_loadu_epi32
#undef _mm512_cmpneq_epi16_mask
#define _mm512_cmpneq_epi16_mask emu_mm512_cmpneq_epi16_mask
#undef _mm512_mask_storeu_epi8
#define _mm512_mask_storeu_epi8 emu_mm512_mask_storeu_epi8
#undef _mm512_maskz_loadu_pd
#define _mm512_maskz_loadu_pd emu_mm512_maskz_loadu_pd
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps emu_mm512_maskz_loadu_ps
#undef _mm512_maskz_mov_epi16
#define _mm512_maskz_mov_epi16 emu_mm512_maskz_mov_epi16
#undef _mm512_maskz_permutex2var_pd
#define _mm512_maskz_permutex2var_pd emu_mm512_maskz_permutex2var_pd
#undef _mm512_maskz_permutex2var_ps
#define _mm512_maskz_permutex2var_ps emu_mm512_maskz_permutex2var_ps
#undef _mm512_maskz_permutexvar_pd
#define _mm512_maskz_permutexvar_pd emu_mm512_maskz_permutexvar_pd
#undef _mm512_maskz_permutexvar_ps
#define _mm512_maskz_permutexvar_ps emu_mm512_maskz_permutexvar_ps
#undef _mm512_maskz_slli_epi32
#define _mm512_maskz_slli_epi32 emu_mm512_maskz_slli_epi32
#undef _mm512_min_epu32
#define _mm512_min_epu32 emu_mm512_min_epu32
#undef _mm512_movepi32_mask
#define _mm512_movepi32_mask emu_mm512_movepi32_mask
#undef _mm512_movepi64_mask
#define _mm512_movepi64_mask emu_mm512_movepi64_mask
#undef _mm512_or_si512
#define _mm512_or_si512 emu_mm512_or_si512
#undef _mm512_permutex2var_epi32
#define _mm512_permutex2var_epi32 emu_mm512_permutex2var_epi32
#undef _mm512_permutex2var_epi64
#define _mm512_permutex2var_epi64 emu_mm512_permutex2var_epi64
#undef _mm512_permutexvar_epi32
#define _mm512_permutexvar_epi32 emu_mm512_permutexvar_epi32
#undef _mm512_permutexvar_epi64
#define _mm512_permutexvar_epi64 emu_mm512_permutexvar_epi64
#undef _mm512_permutexvar_epi16
#define _mm512_permutexvar_epi16 emu_mm512_permutexvar_epi16
#undef _mm512_set1_epi16
#define _mm512_set1_epi16 emu_mm512_set1_epi16
#undef _mm512_set1_epi32
#define _mm512_set1_epi32 emu_mm512_set1_epi32
#undef _mm512_set1_epi64
#define _mm512_set1_epi64 emu_mm512_set1_epi64
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 emu_mm512_setr_epi32
#undef _mm512_setr_epi64
#define _mm512_setr_epi64 emu_mm512_setr_epi64
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 emu_mm512_slli_epi32
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 emu_mm512_srli_epi32
#undef _mm512_storeu_ps
#define _mm512_storeu_ps emu_mm512_storeu_ps
#undef _mm512_storeu_si512
#define _mm512_storeu_si512 emu_mm512_storeu_si512
#undef _mm512_stream_si512
#define _mm512_stream_si512 emu_mm512_stream_si512
#undef _mm512_unpackhi_epi16
#define _mm512_unpackhi_epi16 emu_mm512_unpackhi_epi16
#undef _mm512_unpackhi_epi32
#define _mm512_unpackhi_epi32 emu_mm512_unpackhi_epi32
#undef _mm512_unpackhi_epi64
#define _mm512_unpackhi_epi64 emu_mm512_unpackhi_epi64
#undef _mm512_unpacklo_epi16
#define _mm512_unpacklo_epi16 emu_mm512_unpacklo_epi16
#undef _mm512_unpacklo_epi32
#define _mm512_unpacklo_epi32 emu_mm512_unpacklo_epi32
#undef _mm512_unpacklo_epi64
#define _mm512_unpacklo_epi64 emu_mm512_unpacklo_epi64
#undef _mm_cmplt_epu8_mask
#define _mm_cmplt_epu8_mask emu_mm_cmplt_epu8_mask
#undef _mm_maskz_loadu_epi16
#define _mm_maskz_loadu_epi16 emu_mm_maskz_loadu_epi16
#undef _mm_test_epi16_mask
#define _mm_test_epi16_mask emu_mm_test_epi16_mask
#endif
