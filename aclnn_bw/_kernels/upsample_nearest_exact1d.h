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
 * comparison and an addition a term, or, in float16, six instructions in all. AVX2, two terms in float32: four
 * permutations of what they load, four `and`s, four shuffles of 16 bytes, four additions and two stores for 16 results,
 * where a factor of 2 takes four shuffles and two permutations in all: shuffles bind it in the caches; in bfloat16 the
 * rounding, nine instructions for 8 results, as much. To open a group takes 34 instructions.
 * float64 takes twice as many of all. SSSE3: eight byte shuffles of 4 elements each, which mask too, and eight
 * of 8 bytes.
 */
#ifndef ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_H
#define ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_H
#include <stdint.h>
#include <string.h>

#include "simd.h"

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

#if defined(__SSSE3__)
/* A vector is made of as many elements in sequence as it has lanes, by one permutation: all terms of some results, or,
 * where there are more terms than lanes, half of those of one. First terms come first, then second ones and so on:
 * turned about, a few such vectors are as many terms of a vector of results. */
#define ACLNN_BW_MADE(terms, many) ((terms) < (many) ? (terms) : (many)) /* terms in a vector of `many` lanes */

#define ACLNN_BW_BYTES(of)                                                                                      \
    _mm_setr_epi8(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), \
                  of(13), of(14), of(15))

#define ACLNN_BW_STEP(kind, type, real, vector, prefix, suffix)                                                       \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_step_##kind(type *to, const type *from, const aclnn_bw_lanes_##kind *lanes,   \
                                                    int width, int terms)                                             \
    {                                                                                                                 \
        const int many = sizeof(vector) / sizeof(real), made = ACLNN_BW_MADE(terms, many), parts = terms / made;      \
        const int vectors = made < width ? made : width;                                                              \
        for (int l = 0; l < width; l += many) {                                                                       \
            vector sum = prefix##_setzero_##suffix();                                                                 \
            for (int h = 0; h < parts; h++) {                                                                         \
                aclnn_bw_vector x[8];                                                                                 \
                for (int k = 0; k < vectors; k++) {                                                                   \
                    int v = (l * made / many + k) * parts + h;                                                        \
                    x[k] = aclnn_bw_pick(aclnn_bw_load_##kind(from + lanes->start[v]), lanes->index[v], made < many); \
                }                                                                                                     \
                aclnn_bw_turn(x, made);                                                                               \
                for (int k = 0; k < made; k++)                                                                        \
                    sum = prefix##_add_##suffix(sum, ACLNN_BW_AS_##suffix(x[k]));                                     \
            }                                                                                                         \
            aclnn_bw_store_##kind(to + l, sum, width);                                                                \
        }                                                                                                             \
    }
#endif

#if defined(__AVX2__) && defined(__F16C__)
#define ACLNN_BW_AS_ps(x) (x)
#define ACLNN_BW_AS_pd(x) _mm256_castps_pd(x)

typedef __m256 aclnn_bw_vector;

typedef struct {
    __m256i index[8]; /* of 32-bit words; negative where a result has no such term */
    int64_t start[8];
} aclnn_bw_lanes;

ACLNN_BW_FORCE_INLINE void aclnn_bw_open(aclnn_bw_lanes *lanes, const char *group, int size, int width, int terms)
{
    const int words = size / 4, many = 8 / words, made = ACLNN_BW_MADE(terms, many), parts = terms / made;
    const int results = many / made; /* of a vector, or of `parts` vectors */
    __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(group + 8));
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(group + 9));
    __m128i owned = _mm_sub_epi8(next, lane);
#define ACLNN_BW_FIRST(l) (char)((l) / results * results)
    lane = _mm_sub_epi8(lane, _mm_shuffle_epi8(lane, ACLNN_BW_BYTES(ACLNN_BW_FIRST)));
    if (words == 2)
        lane = _mm_add_epi8(lane, lane);
    for (int v = 0; v < width * terms / many; v += 2) { /* the words of two vectors, a byte each */
#define ACLNN_BW_RESULT(w) (char)((v + (w) / 8) / parts * results + (w) % 8 / words % results)
#define ACLNN_BW_TERMS(w) (char)((w) % 8 / words / results + (w) / 8 % parts * made + 1)
#define ACLNN_BW_WORD(w) (char)((w) % 8 / words / results * words + (w) % words)
        __m128i result = ACLNN_BW_BYTES(ACLNN_BW_RESULT);
        __m128i missing = _mm_cmpgt_epi8(ACLNN_BW_BYTES(ACLNN_BW_TERMS), _mm_shuffle_epi8(owned, result));
        __m128i index = _mm_add_epi8(_mm_shuffle_epi8(lane, result), ACLNN_BW_BYTES(ACLNN_BW_WORD));
        index = _mm_or_si128(index, missing);
        lanes->index[v] = _mm256_cvtepi8_epi32(index);
        lanes->index[v + 1] = _mm256_cvtepi8_epi32(_mm_srli_si128(index, 8));
        /* lane[0] is 0; gcc would make a vector of two starts by way of the stack: 6 times slower. */
        for (int k = v; k < v + 2; k++)
            lanes->start[k] = (k < parts ? 0 : group[8 + k / parts * results]) + k % parts * made;
    }
}

/* As matrices of n x n cells that together fill a vector, transposed; for n = 8 the first four rows alone are there. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_turn(__m256 *x, int n)
{
    if (n == 2) {
        __m256 first = _mm256_permute2f128_ps(x[0], x[1], 0x20);
        x[1] = _mm256_permute2f128_ps(x[0], x[1], 0x31);
        x[0] = first;
    } else if (n == 4) {
        __m256d a = _mm256_castps_pd(x[0]), b = _mm256_castps_pd(x[1]);
        __m256d c = _mm256_castps_pd(x[2]), d = _mm256_castps_pd(x[3]);
        x[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
        x[1] = _mm256_castpd_ps(_mm256_unpacklo_pd(c, d));
        x[2] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        x[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(c, d));
        aclnn_bw_turn(x, 2);
        aclnn_bw_turn(x + 2, 2);
        a = _mm256_castps_pd(x[1]);
        x[1] = x[2];
        x[2] = _mm256_castpd_ps(a);
    } else if (n == 8) {
        __m256 a = _mm256_unpacklo_ps(x[0], x[2]), b = _mm256_unpacklo_ps(x[1], x[3]);
        __m256 c = _mm256_unpackhi_ps(x[0], x[2]), d = _mm256_unpackhi_ps(x[1], x[3]);
        x[0] = _mm256_unpacklo_ps(a, b);
        x[1] = _mm256_unpackhi_ps(a, b);
        x[2] = _mm256_unpacklo_ps(c, d);
        x[3] = _mm256_unpackhi_ps(c, d);
        for (int k = 0; k < 4; k++)
            x[4 + k] = _mm256_castps128_ps256(_mm256_extractf128_ps(x[k], 1));
    }
}

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_pick(__m256 from, __m256i index, int permuted)
{
    if (permuted)
        from = _mm256_permutevar8x32_ps(from, index);
    return _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_srai_epi32(index, 31)), from);
}

#define ACLNN_BW_GROUPS_OF_VECTORS(kind, type, real, vector, suffix)                                                  \
    typedef aclnn_bw_lanes aclnn_bw_lanes_##kind;                                                                     \
    ACLNN_BW_FORCE_INLINE void aclnn_bw_open_##kind(aclnn_bw_lanes_##kind *lanes, const char *group, int width,       \
                                                    int terms)                                                        \
    {                                                                                                                 \
        aclnn_bw_open(lanes, group, sizeof(real), width, terms);                                                      \
    }                                                                                                                 \
    ACLNN_BW_STEP(kind, type, real, vector, _mm256, suffix)                                                           \
    /* Every result has two elements: what lies side by side is taken apart by shuffles that are cheaper. */          \
    ACLNN_BW_FORCE_INLINE int aclnn_bw_evenly_##kind(type *to, const type *from, const char *group, int64_t periods,  \
                                                     int64_t stride, int width, int terms)                            \
    {                                                                                                                 \
        const int many = 32 / (int)sizeof(real);                                                                      \
        if (terms != 2 || stride != 2 * width)                                                                        \
            return 0;                                                                                                 \
        for (int l = 0; l <= width; l++)                                                                              \
            if (group[8 + l] != 2 * l)                                                                                \
                return 0;                                                                                             \
        from += aclnn_bw_group_first(group);                                                                          \
        for (int64_t i = 0; i < periods * width; i += many) {                                                         \
            __m256 a = aclnn_bw_load_##kind(from + 2 * i), b = aclnn_bw_load_##kind(from + 2 * i + many);             \
            vector sum = _mm256_add_##suffix(_mm256_setzero_##suffix(), aclnn_bw_firsts_##suffix(a, b));              \
            sum = _mm256_add_##suffix(sum, aclnn_bw_seconds_##suffix(a, b));                                          \
            aclnn_bw_store_##kind(to + i, aclnn_bw_in_order_##suffix(sum), width);                                    \
        }                                                                                                             \
        return 1;                                                                                                     \
    }                                                                                                                 \
    ACLNN_BW_SUM_GROUPS(kind, type)

/* Every other element of two vectors; mixed up by pairs, or one by one, which is put in order after the additions. */
#define aclnn_bw_firsts_ps(a, b) _mm256_shuffle_ps(a, b, 0x88)
#define aclnn_bw_seconds_ps(a, b) _mm256_shuffle_ps(a, b, 0xdd)
#define aclnn_bw_firsts_pd(a, b) _mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))
#define aclnn_bw_seconds_pd(a, b) _mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))
#define aclnn_bw_in_order_pd(sum) _mm256_permute4x64_pd(sum, 0xd8)
#define aclnn_bw_in_order_ps(sum) _mm256_castpd_ps(aclnn_bw_in_order_pd(_mm256_castps_pd(sum)))

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_float(const float *from) { return _mm256_loadu_ps(from); }

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_double(const double *from)
{
    return _mm256_castpd_ps(_mm256_loadu_pd(from));
}

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_half(const aclnn_bw_half *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

ACLNN_BW_FORCE_INLINE __m256 aclnn_bw_load_bfloat(const aclnn_bw_bfloat *from)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

/* Eight results, or the four of a narrow group. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_store_float(float *to, __m256 sum, int width)
{
    if (width == 4)
        _mm_storeu_ps(to, _mm256_castps256_ps128(sum));
    else
        _mm256_storeu_ps(to, sum);
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_double(double *to, __m256d sum, int width)
{
    _mm256_storeu_pd(to, sum);
    (void)width;
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_16_bits(void *to, __m128i bits, int width)
{
    if (width == 4)
        _mm_storel_epi64((__m128i *)to, bits);
    else
        _mm_storeu_si128((__m128i *)to, bits);
}

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_half(aclnn_bw_half *to, __m256 sum, int width)
{
    aclnn_bw_store_16_bits(to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT), width);
}

/* A NaN is a sum's, so it is quiet: cut, it remains one; rounded, it might not. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_store_bfloat(aclnn_bw_bfloat *to, __m256 sum, int width)
{
    __m256i bits = _mm256_castps_si256(sum);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i more = _mm256_andnot_si256(_mm256_castps_si256(_mm256_cmp_ps(sum, sum, _CMP_UNORD_Q)),
                                       _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    bits = _mm256_srli_epi32(_mm256_add_epi32(bits, more), 16);
    aclnn_bw_store_16_bits(to, _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)),
                           width);
}

ACLNN_BW_GROUPS_OF_VECTORS(float, float, float, __m256, ps)
ACLNN_BW_GROUPS_OF_VECTORS(double, double, double, __m256d, pd)
ACLNN_BW_GROUPS_OF_VECTORS(half, aclnn_bw_half, float, __m256, ps)
ACLNN_BW_GROUPS_OF_VECTORS(bfloat, aclnn_bw_bfloat, float, __m256, ps)

#else
/* Every result has `terms` elements: a loop that compilers vectorise. */
#define ACLNN_BW_EVENLY(kind, type)                                                                                   \
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
    }

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
    ACLNN_BW_EVENLY(kind, type)                                                                                       \
    ACLNN_BW_SUM_GROUPS(kind, type)

#if defined(__SSSE3__)
typedef __m128 aclnn_bw_vector;

typedef struct {
    __m128i index[8]; /* of bytes; negative where a result has no such term */
    int64_t start[8];
} aclnn_bw_lanes_float;

ACLNN_BW_FORCE_INLINE void aclnn_bw_open_float(aclnn_bw_lanes_float *lanes, const char *group, int width, int terms)
{
    const int made = ACLNN_BW_MADE(terms, 4), parts = terms / made, results = 4 / made;
    __m128i lane = _mm_loadu_si128((const __m128i *)(const void *)(group + 8));
    __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(group + 9));
    __m128i owned = _mm_sub_epi8(next, lane);
#define ACLNN_BW_FIRST(l) (char)((l) / results * results)
    lane = _mm_slli_epi32(_mm_sub_epi8(lane, _mm_shuffle_epi8(lane, ACLNN_BW_BYTES(ACLNN_BW_FIRST))), 2);
    for (int v = 0; v < width * terms / 4; v++) {
#define ACLNN_BW_RESULT(b) (char)(v / parts * results + (b) / 4 % results)
#define ACLNN_BW_TERMS(b) (char)((b) / 4 / results + v % parts * made + 1)
#define ACLNN_BW_BYTE(b) (char)((b) / 4 / results * 4 + (b) % 4)
        __m128i result = ACLNN_BW_BYTES(ACLNN_BW_RESULT);
        __m128i missing = _mm_cmpgt_epi8(ACLNN_BW_BYTES(ACLNN_BW_TERMS), _mm_shuffle_epi8(owned, result));
        __m128i index = _mm_add_epi8(_mm_shuffle_epi8(lane, result), ACLNN_BW_BYTES(ACLNN_BW_BYTE));
        lanes->index[v] = _mm_or_si128(index, missing);
        lanes->start[v] = group[8 + v / parts * results] + v % parts * made;
    }
}

ACLNN_BW_FORCE_INLINE __m128 aclnn_bw_load_float(const float *from) { return _mm_loadu_ps(from); }

ACLNN_BW_FORCE_INLINE void aclnn_bw_store_float(float *to, __m128 sum, int width)
{
    _mm_storeu_ps(to, sum);
    (void)width;
}

ACLNN_BW_FORCE_INLINE __m128 aclnn_bw_pick(__m128 from, __m128i index, int permuted)
{
    (void)permuted;
    return _mm_castsi128_ps(_mm_shuffle_epi8(_mm_castps_si128(from), index));
}

/* As matrices of n x n cells that together fill a vector, transposed. */
ACLNN_BW_FORCE_INLINE void aclnn_bw_turn(__m128 *x, int n)
{
    if (n == 2) {
        __m128 first = _mm_movelh_ps(x[0], x[1]);
        x[1] = _mm_movehl_ps(x[1], x[0]);
        x[0] = first;
    } else if (n == 4) {
        _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]);
    }
}

#define ACLNN_BW_AS_ps(x) (x)
ACLNN_BW_STEP(float, float, float, __m128, _mm, ps)
ACLNN_BW_EVENLY(float, float)
ACLNN_BW_SUM_GROUPS(float, float)
#else
ACLNN_BW_GROUPS_OF_PLAIN(float, float, uint32_t)
#endif
ACLNN_BW_GROUPS_OF_PLAIN(double, double, uint64_t)

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
        simd_vector_16 x;                                                                                             \
        for (int i = 0; i < (terms == 1 ? 16 : 32); i += 4) {                                                         \
            simd_load_##kind(&x, from + i);                                                                           \
            simd_store(wide + i, &x);                                                                                 \
        }                                                                                                             \
        aclnn_bw_step_float(sums, wide, lanes, width, terms);                                                         \
        for (int i = 0; i < width; i += 4) {                                                                          \
            simd_load(&x, sums + i);                                                                                  \
            simd_store_##kind(to + i, &x);                                                                            \
        }                                                                                                             \
    }                                                                                                                 \
    ACLNN_BW_NOT_EVENLY(kind, type)                                                                                   \
    ACLNN_BW_SUM_GROUPS(kind, type)

ACLNN_BW_GROUPS_OF_WIDENED(half, aclnn_bw_half)
ACLNN_BW_GROUPS_OF_WIDENED(bfloat, aclnn_bw_bfloat)
#endif
#endif
#endif
