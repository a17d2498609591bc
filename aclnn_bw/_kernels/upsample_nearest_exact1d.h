/* Sums of neighbouring elements by permutation: a group of `width` results is made of at most 32 elements in sequence.
 *
 * A group is 32 bytes: its first element as int64_t, then 24 lanes as uint8_t. Result i is the sum of the elements
 * from[first + lane[i]] up to, not including, from[first + lane[i + 1]], which are at most `terms`; added in this order
 * to +0.0. lane[width] <= 32; what lanes behind that hold does not matter. (width, terms) is one of (16, 1), (16, 2),
 * (8, 4), (4, 8).
 *
 * What is read lies in from[first : first + 32] ([first : first + 16] for one term), all of which must be readable;
 * elements that belong to no result are masked out, whatever they are. What is written is to[: width] of each group.
 *
 * Why intrinsics: a permutation of two vectors by a table loads, sums and stores 16 results in about as many
 * instructions. Compilers make scalar code of the loop. The vector and the plain forms add the same terms in the same
 * order: a lane that is masked out adds nothing, or +0.0 to a sum that is not -0.0.
 *
 * Bounds, from the code that gcc 12 makes. AVX-512, two terms in float32: two loads, two permutations of a pair under a
 * mask, two additions and one store for 16 results; loads and stores that cross cache lines bind it in the caches,
 * memory beyond them. bfloat16: one load of 32 words, a permutation of words and an addition a term, then six
 * instructions that round: as much arithmetic as memory traffic, bound by it in the caches (two thirds of the time of
 * widening before permuting). float16: one permutation makes all terms of a group, whose conversion, two vectors wide,
 * binds it (four terms: five sixths of the time). A period of several groups adds for each the loads of its lanes, a
 * comparison and an addition a term, or, in float16, six instructions in all. AVX2 needs for each term of 8 results two
 * permutations, a shift, a blend and an `and`: shuffles bind it.
 */
#ifndef ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_H
#define ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_H
#include <stdint.h>
#include <string.h>

#include "transpose.h" /* sums of rows, transposition */

#define ACLNN_BW_GROUP_BYTES 32
#define ACLNN_BW_FORCE_INLINE static inline __attribute__((always_inline))

ACLNN_BW_FORCE_INLINE int64_t aclnn_bw_group_first(const char *group)
{
    int64_t first;
    memcpy(&first, group, sizeof first);
    return first;
}

/* What a pass over groups is made of: `open` reads a group's lanes into registers, `step` uses them at one place. The
 * pass below opens every group of a period in turn, or, where the period is one group, opens it once, or leaves all to
 * `evenly`, which says whether it has done it. */
#define ACLNN_BW_PASS(kind, type, width, terms)                                                                       \
    static void aclnn_bw_pass_##kind##_##width##_##terms(type *to, const type *from, const char *groups,              \
                                                         int64_t count, int64_t periods, int64_t stride)              \
    {                                                                                                                 \
        aclnn_bw_lanes_##kind lanes;                                                                                  \
        if (count == 1 && aclnn_bw_evenly_##kind(to, from, groups, periods, stride, width, terms))                    \
            return;                                                                                                   \
        if (count == 1) {                                                                                             \
            aclnn_bw_open_##kind(&lanes, groups, width, terms);                                                       \
            from += aclnn_bw_group_first(groups);                                                                     \
            for (; periods > 0; periods--, to += width, from += stride)                                               \
                aclnn_bw_step_##kind(to, from, &lanes, width, terms);                                                 \
            return;                                                                                                   \
        }                                                                                                             \
        for (; periods > 0; periods--, from += stride)                                                                \
            for (int64_t g = 0; g < count; g++, to += width) {                                                        \
                const char *group = groups + g * ACLNN_BW_GROUP_BYTES;                                                \
                aclnn_bw_open_##kind(&lanes, group, width, terms);                                                    \
                aclnn_bw_step_##kind(to, from + aclnn_bw_group_first(group), &lanes, width, terms);                   \
            }                                                                                                         \
    }

/* `periods` times the `count` groups of a period, whose elements begin `stride` further on each time. */
#define ACLNN_BW_SUM_GROUPS(kind, type)                                                                               \
    ACLNN_BW_PASS(kind, type, 16, 1)                                                                                  \
    ACLNN_BW_PASS(kind, type, 16, 2)                                                                                  \
    ACLNN_BW_PASS(kind, type, 8, 4)                                                                                   \
    ACLNN_BW_PASS(kind, type, 4, 8)                                                                                   \
    static inline void aclnn_bw_sum_groups_##kind(type *to, const type *from, const char *groups, int64_t count,      \
                                                  int64_t periods, int64_t stride, int64_t terms)                     \
    {                                                                                                                 \
        if (terms == 1)                                                                                               \
            aclnn_bw_pass_##kind##_16_1(to, from, groups, count, periods, stride);                                    \
        else if (terms == 2)                                                                                          \
            aclnn_bw_pass_##kind##_16_2(to, from, groups, count, periods, stride);                                    \
        else if (terms == 4)                                                                                          \
            aclnn_bw_pass_##kind##_8_4(to, from, groups, count, periods, stride);                                     \
        else                                                                                                          \
            aclnn_bw_pass_##kind##_4_8(to, from, groups, count, periods, stride);                                     \
    }

/* For forms that need no such help. */
#define ACLNN_BW_NOT_EVENLY(kind, type)                                                                               \
    ACLNN_BW_FORCE_INLINE int aclnn_bw_evenly_##kind(type *to, const type *from, const char *group, int64_t periods,  \
                                                     int64_t stride, int width, int terms)                            \
    {                                                                                                                 \
        (void)to, (void)from, (void)group, (void)periods, (void)stride, (void)width, (void)terms;                     \
        return 0;                                                                                                     \
    }

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_float(float *to, __m512 sum, int width)
{
    if (width == 16)
        _mm512_storeu_ps(to, sum);
    else if (width == 8)
        _mm256_storeu_ps(to, _mm512_castps512_ps256(sum));
    else
        _mm_storeu_ps(to, _mm512_castps512_ps128(sum));
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_16_bits(void *to, __m256i bits, int width)
{
    if (width == 16)
        _mm256_storeu_si256((__m256i *)to, bits);
    else if (width == 8)
        _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bits));
    else
        _mm_storel_epi64((__m128i *)to, _mm256_castsi256_si128(bits));
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_bfloat(aclnn_bw_bfloat *to, __m512 sum, int width)
{
    __m512i bits = _mm512_castps_si512(sum), upper;
    __m512i rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    rounded = _mm512_mask_add_epi32(rounded, _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000)), rounded,
                                    _mm512_set1_epi32(1));
    rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), bits,
                                   _mm512_set1_epi32(0x400000));
    /* The upper words of the 32-bit lanes, side by side: one shuffle instead of a shift and a narrowing of two. */
    upper = _mm512_cvtepu8_epi16(_mm256_setr_epi8(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    aclnn_bw_store_16_bits(to, _mm512_castsi512_si256(_mm512_permutexvar_epi16(upper, rounded)), width);
}

typedef struct {
    __m512i index[8];
    __mmask16 there[8];
} aclnn_bw_lanes_float;

/* Term r of every result is element index[r], where it is `there`. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_open_float(aclnn_bw_lanes_float *lanes, const char *group, int width, int terms)
{
    __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(group + 8));
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(group + 9));
    __m128i owned = _mm_sub_epi8(next, lane);
    __m512i first = _mm512_cvtepu8_epi32(lane);
    for (int r = 0; r < terms; r++) {
        lanes->index[r] = _mm512_add_epi32(first, _mm512_set1_epi32(r));
        lanes->there[r] = _mm_cmpgt_epu8_mask(owned, _mm_set1_epi8((char)r));
    }
    (void)width;
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_step_float(float *to, const float *from, const aclnn_bw_lanes_float *lanes,
                                               int width, int terms)
{
    __m512 sum = _mm512_setzero_ps();
    __m512 low = _mm512_loadu_ps(from);
    __m512 high = terms == 1 ? low : _mm512_loadu_ps(from + 16);
    for (int r = 0; r < terms; r++)
        sum = _mm512_add_ps(sum, terms == 1
            ? _mm512_maskz_permutexvar_ps(lanes->there[r], lanes->index[r], low)
            : _mm512_maskz_permutex2var_ps(lanes->there[r], low, lanes->index[r], high));
    aclnn_bw_store_float(to, sum, width);
}

ACLNN_BW_NOT_EVENLY(float, float)
ACLNN_BW_SUM_GROUPS(float, float)

/* All terms of a group, `width` words of each, are one vector of 32 words. */
typedef struct {
    __m512i index;
    __mmask32 there;
} aclnn_bw_lanes_half;

/* The first `width` of 16 bytes, as often as 32 hold them. */
ACLNN_BW_FORCE_INLINE __m256i aclnn_bw_repeat(__m128i bytes, int width)
{
    return width == 16 ? _mm256_broadcastsi128_si256(bytes)
        : width == 8 ? _mm256_broadcastq_epi64(bytes) : _mm256_broadcastd_epi32(bytes);
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_open_half(aclnn_bw_lanes_half *lanes, const char *group, int width, int terms)
{
    __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(group + 8));
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(group + 9));
    __m256i term = width == 16 ? _mm256_set_epi64x(0x0101010101010101, 0x0101010101010101, 0, 0)
        : width == 8 ? _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0)
        : _mm256_set_epi64x(0x0707070706060606, 0x0505050504040404, 0x0303030302020202, 0x0101010100000000);
    lanes->index = _mm512_cvtepu8_epi16(_mm256_add_epi8(aclnn_bw_repeat(lane, width), term));
    lanes->there = _mm256_cmpgt_epu8_mask(aclnn_bw_repeat(_mm_sub_epi8(next, lane), width), term);
    (void)terms;
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_step_half(aclnn_bw_half *to, const aclnn_bw_half *from,
                                              const aclnn_bw_lanes_half *lanes, int width, int terms)
{
    __m512i words = terms == 1
        ? _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)from))
        : _mm512_loadu_si512((const void *)from);
    __m512 low, high;
    words = _mm512_maskz_permutexvar_epi16(lanes->there, lanes->index, words);
    low = _mm512_cvtph_ps(_mm512_castsi512_si256(words));
    high = terms == 1 ? low : _mm512_cvtph_ps(_mm512_extracti64x4_epi64(words, 1));
    if (width == 16) {
        __m512 sum = _mm512_add_ps(_mm512_setzero_ps(), low);
        if (terms > 1)
            sum = _mm512_add_ps(sum, high);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    } else if (width == 8) {
        __m256 sum = _mm256_add_ps(_mm256_setzero_ps(), _mm512_castps512_ps256(low));
        sum = _mm256_add_ps(sum, _mm512_extractf32x8_ps(low, 1));
        sum = _mm256_add_ps(sum, _mm512_castps512_ps256(high));
        sum = _mm256_add_ps(sum, _mm512_extractf32x8_ps(high, 1));
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    } else {
        __m128 sum = _mm_add_ps(_mm_setzero_ps(), _mm512_castps512_ps128(low));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(low, 1));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(low, 2));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(low, 3));
        sum = _mm_add_ps(sum, _mm512_castps512_ps128(high));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(high, 1));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(high, 2));
        sum = _mm_add_ps(sum, _mm512_extractf32x4_ps(high, 3));
        _mm_storel_epi64((__m128i *)(void *)to, _mm_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    }
}

ACLNN_BW_NOT_EVENLY(half, aclnn_bw_half)
ACLNN_BW_SUM_GROUPS(half, aclnn_bw_half)

/* A bfloat16 is the upper half of a float32: one permutation of words widens what it moves, and 32 fill a vector. */
typedef struct {
    __m512i index[8];
    __mmask16 there[8];
} aclnn_bw_lanes_bfloat;

ACLNN_BW_FORCE_INLINE void aclnn_bw_open_bfloat(aclnn_bw_lanes_bfloat *lanes, const char *group, int width, int terms)
{
    __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(group + 8));
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(group + 9));
    __m128i owned = _mm_sub_epi8(next, lane);
    __m512i first = _mm512_slli_epi32(_mm512_cvtepu8_epi32(lane), 16);
    for (int r = 0; r < terms; r++) {
        lanes->index[r] = _mm512_add_epi32(first, _mm512_set1_epi32(r << 16));
        lanes->there[r] = _mm_cmpgt_epu8_mask(owned, _mm_set1_epi8((char)r));
    }
    (void)width;
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_step_bfloat(aclnn_bw_bfloat *to, const aclnn_bw_bfloat *from,
                                                const aclnn_bw_lanes_bfloat *lanes, int width, int terms)
{
    __m512 sum = _mm512_setzero_ps();
    __m512i words = terms == 1
        ? _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)from))
        : _mm512_loadu_si512((const void *)from);
    for (int r = 0; r < terms; r++)
        sum = _mm512_mask_add_ps(sum, lanes->there[r], sum, _mm512_castsi512_ps(
            _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, lanes->index[r], words)));
    aclnn_bw_store_bfloat(to, sum, width);
}

ACLNN_BW_NOT_EVENLY(bfloat, aclnn_bw_bfloat)
ACLNN_BW_SUM_GROUPS(bfloat, aclnn_bw_bfloat)

/* Eight doubles fill a vector: a group is worked off in two halves, each of at most 16 elements. */
typedef struct {
    __m512i index[2][8];
    __mmask8 there[2][8];
    int64_t start[2];
} aclnn_bw_lanes_double;

ACLNN_BW_FORCE_INLINE void aclnn_bw_open_double(aclnn_bw_lanes_double *lanes, const char *group, int width, int terms)
{
    for (int h = 0; h < 2; h++) {
        const char *at = group + 8 + h * (width / 2);
        __m128i start = _mm_set1_epi8(at[0]);
        __m128i lane = _mm_sub_epi8(_mm_loadl_epi64((const __m128i *)(const void *)at), start);
        __m128i next = _mm_sub_epi8(_mm_loadl_epi64((const __m128i *)(const void *)(at + 1)), start);
        lanes->start[h] = at[0];
        for (int r = 0; r < terms; r++) {
            __m128i index = _mm_add_epi8(lane, _mm_set1_epi8((char)r));
            lanes->index[h][r] = _mm512_cvtepu8_epi64(index);
            lanes->there[h][r] = (__mmask8)_mm_cmplt_epu8_mask(index, next);
        }
    }
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_step_double(double *to, const double *from, const aclnn_bw_lanes_double *lanes,
                                                int width, int terms)
{
    for (int h = 0; h < 2; h++) {
        __m512d sum = _mm512_setzero_pd();
        __m512d low = _mm512_loadu_pd(from + lanes->start[h]);
        __m512d high = terms == 1 ? low : _mm512_loadu_pd(from + lanes->start[h] + 8);
        for (int r = 0; r < terms; r++)
            sum = _mm512_add_pd(sum, terms == 1
                ? _mm512_maskz_permutexvar_pd(lanes->there[h][r], lanes->index[h][r], low)
                : _mm512_maskz_permutex2var_pd(lanes->there[h][r], low, lanes->index[h][r], high));
        if (width == 16)
            _mm512_storeu_pd(to + 8 * h, sum);
        else if (width == 8)
            _mm256_storeu_pd(to + 4 * h, _mm512_castpd512_pd256(sum));
        else
            _mm_storeu_pd(to + 2 * h, _mm512_castpd512_pd128(sum));
    }
}

ACLNN_BW_NOT_EVENLY(double, double)
ACLNN_BW_SUM_GROUPS(double, double)

#else
/* The plain form, without a branch on the lanes: they differ from result to result. */
#define ACLNN_BW_GROUPS_OF_PLAIN(kind, type, bits_type)                                                               \
    typedef const unsigned char *aclnn_bw_lanes_##kind;                                                               \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_open_##kind(aclnn_bw_lanes_##kind *lanes, const char *group, int width,       \
                                                    int terms)                                                        \
    {                                                                                                                 \
        *lanes = (const unsigned char *)group + 8;                                                                    \
        (void)width, (void)terms;                                                                                     \
    }                                                                                                                 \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_step_##kind(type *to, const type *from, const aclnn_bw_lanes_##kind *lanes,   \
                                                    int width, int terms)                                             \
    {                                                                                                                 \
        for (int l = 0; l < width; l++) {                                                                             \
            unsigned index = (*lanes)[l], end = (*lanes)[l + 1];                                                      \
            type sum = 0;                                                                                             \
            for (int r = 0; r < terms; r++, index++) {                                                                \
                type term;                                                                                            \
                bits_type bits;                                                                                       \
                memcpy(&bits, from + (index & (terms == 1 ? 15 : 31)), sizeof bits);                                  \
                bits &= -(bits_type)(index < end);                                                                    \
                memcpy(&term, &bits, sizeof term);                                                                    \
                sum += term;                                                                                          \
            }                                                                                                         \
            to[l] = sum;                                                                                              \
        }                                                                                                             \
    }                                                                                                                 \
    /* Every result has `terms` elements: a loop that compilers vectorise. */                                         \
    ACLNN_BW_FORCE_INLINE int aclnn_bw_evenly_##kind(type *to, const type *from, const char *group, int64_t periods,  \
                                                     int64_t stride, int width, int terms)                            \
    {                                                                                                                 \
        for (int l = 0; l <= width; l++)                                                                              \
            if (group[8 + l] != l * terms)                                                                            \
                return 0;                                                                                             \
        if (stride != width * terms)                                                                                  \
            return 0;                                                                                                 \
        from += aclnn_bw_group_first(group);                                                                          \
        for (int64_t i = 0; i < periods * width; i++) {                                                               \
            type sum = 0;                                                                                             \
            for (int r = 0; r < terms; r++)                                                                           \
                sum += from[i * terms + r];                                                                           \
            to[i] = sum;                                                                                              \
        }                                                                                                             \
        return 1;                                                                                                     \
    }                                                                                                                 \
    ACLNN_BW_SUM_GROUPS(kind, type)

ACLNN_BW_GROUPS_OF_PLAIN(double, double, uint64_t)

#if defined(__AVX2__) && defined(__F16C__)

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_float(const float *from) { return _mm256_loadu_ps(from); }

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_half(const aclnn_bw_half *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_bfloat(const aclnn_bw_bfloat *from)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

/* Half of a group's results: 8, 4 or 2. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_store_float(float *to, __m256 sum, int results)
{
    if (results == 8)
        _mm256_storeu_ps(to, sum);
    else if (results == 4)
        _mm_storeu_ps(to, _mm256_castps256_ps128(sum));
    else
        _mm_storel_pi((__m64 *)(void *)to, _mm256_castps256_ps128(sum));
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_16_bits(void *to, __m128i bits, int results)
{
    int32_t pair = _mm_cvtsi128_si32(bits);
    if (results == 8)
        _mm_storeu_si128((__m128i *)to, bits);
    else if (results == 4)
        _mm_storel_epi64((__m128i *)to, bits);
    else
        memcpy(to, &pair, sizeof pair);
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_half(aclnn_bw_half *to, __m256 sum, int results)
{
    aclnn_bw_store_16_bits(to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT), results);
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_bfloat(aclnn_bw_bfloat *to, __m256 sum, int results)
{
    __m256i bits = _mm256_castps_si256(sum);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    rounded = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(sum, sum, _CMP_UNORD_Q)));
    rounded = _mm256_srli_epi32(rounded, 16);
    aclnn_bw_store_16_bits(to, _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)),
                           results);
}

/* Eight floats fill a vector: a group is worked off in two halves, each of at most 16 elements. */
#define ACLNN_BW_GROUPS_OF_FLOATS(kind, type)                                                                         \
    typedef struct {                                                                                                  \
        __m256i index[2][8];                                                                                          \
        __m256 there[2][8];                                                                                           \
        int64_t start[2];                                                                                             \
    } aclnn_bw_lanes_##kind;                                                                                          \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_open_##kind(aclnn_bw_lanes_##kind *lanes, const char *group, int width,       \
                                                    int terms)                                                        \
    {                                                                                                                 \
        for (int h = 0; h < 2; h++) {                                                                                 \
            const char *at = group + 8 + h * (width / 2);                                                             \
            __m256i start = _mm256_set1_epi32(at[0]);                                                                 \
            __m256i lane = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));                  \
            __m256i next = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(at + 1)));            \
            lanes->start[h] = at[0];                                                                                  \
            for (int r = 0; r < terms; r++) {                                                                         \
                __m256i index = _mm256_add_epi32(lane, _mm256_set1_epi32(r));                                         \
                lanes->index[h][r] = _mm256_sub_epi32(index, start);                                                  \
                lanes->there[h][r] = _mm256_castsi256_ps(_mm256_cmpgt_epi32(next, index));                            \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_step_##kind(type *to, const type *from, const aclnn_bw_lanes_##kind *lanes,   \
                                                    int width, int terms)                                             \
    {                                                                                                                 \
        for (int h = 0; h < 2; h++) {                                                                                 \
            __m256 sum = _mm256_setzero_ps();                                                                         \
            __m256 low = aclnn_bw_load_##kind(from + lanes->start[h]);                                                \
            __m256 high = terms == 1 ? low : aclnn_bw_load_##kind(from + lanes->start[h] + 8);                        \
            for (int r = 0; r < terms; r++) {                                                                         \
                __m256i index = lanes->index[h][r];                                                                   \
                __m256 term = _mm256_permutevar8x32_ps(low, index);                                                   \
                if (terms > 1) /* bit 3 of the index, moved to the sign, chooses */                                   \
                    term = _mm256_blendv_ps(term, _mm256_permutevar8x32_ps(high, index),                              \
                                            _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));                       \
                sum = _mm256_add_ps(sum, _mm256_and_ps(lanes->there[h][r], term));                                    \
            }                                                                                                         \
            aclnn_bw_store_##kind(to + h * (width / 2), sum, width / 2);                                              \
        }                                                                                                             \
    }                                                                                                                 \
    ACLNN_BW_NOT_EVENLY(kind, type)                                                                                   \
    ACLNN_BW_SUM_GROUPS(kind, type)

ACLNN_BW_GROUPS_OF_FLOATS(float, float)
ACLNN_BW_GROUPS_OF_FLOATS(half, aclnn_bw_half)
ACLNN_BW_GROUPS_OF_FLOATS(bfloat, aclnn_bw_bfloat)

#else
ACLNN_BW_GROUPS_OF_PLAIN(float, float, uint32_t)

/* All elements of a group are widened at once, and its results narrowed at once: loops that compilers vectorise. */
#define ACLNN_BW_GROUPS_OF_WIDENED(kind, type)                                                                        \
    typedef aclnn_bw_lanes_float aclnn_bw_lanes_##kind;                                                               \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_open_##kind(aclnn_bw_lanes_##kind *lanes, const char *group, int width,       \
                                                    int terms)                                                        \
    {                                                                                                                 \
        aclnn_bw_open_float(lanes, group, width, terms);                                                              \
    }                                                                                                                 \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_step_##kind(type *to, const type *from, const aclnn_bw_lanes_##kind *lanes,   \
                                                    int width, int terms)                                             \
    {                                                                                                                 \
        float wide[32], sums[16];                                                                                     \
        aclnn_bw_widen_##kind##_row(wide, from, terms == 1 ? 16 : 32);                                                \
        aclnn_bw_step_float(sums, wide, lanes, width, terms);                                                         \
        aclnn_bw_narrow_to_##kind##_row(to, sums, width);                                                             \
    }                                                                                                                 \
    ACLNN_BW_NOT_EVENLY(kind, type)                                                                                   \
    ACLNN_BW_SUM_GROUPS(kind, type)

ACLNN_BW_GROUPS_OF_WIDENED(half, aclnn_bw_half)
ACLNN_BW_GROUPS_OF_WIDENED(bfloat, aclnn_bw_bfloat)
#endif
#endif
#endif
