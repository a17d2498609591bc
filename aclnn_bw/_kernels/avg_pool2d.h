/* Rows of the average pool: sums over windows held in registers from the load of a term to the store.
 *
 * A walk makes a band of rows of gradInput in blocks of LANES groups of `stride` columns; lane j of a vector belongs to
 * group j. Stride 1 goes down the rows of windows, one block of columns after the other: the terms of a row are summed
 * across, ascending, and added to `terms` running sums, of which the oldest is then complete; no sum touches memory.
 * Strides 2 and 3 go row by row, and shuffles put the sums of each kind of column side by side.
 *
 * Every sum begins with +0.0; a window that does not exist adds a zero, which changes no bit. A vector works lane by
 * lane, so its width, and with it the instruction set, does not show in a result. Lanes outside the windows are masked
 * off where masks cost nothing (AVX-512: a masked-off element is not accessed). Elsewhere they are loaded, and their
 * bits cleared: they are ends of the rows beside in the same dense array, [from_begin, from_end). A row whose vectors
 * would look beyond that is copied first, with zeros around it.
 *
 * Bounds of stores: a vector may run past the end of its row into rows that the same call, or a later one of the same
 * range, makes afterwards; one that would pass `limit` is stored piece by piece.
 *
 * What binds the loops (AVX-512 forms, Zen 4): stride 1 is bound by the adds, 5 a vector for 3 x 3 and 9 for 5 x 5,
 * which share their pipes with the conversions of the 16-bit types and the shuffles that make the shifted terms of two
 * loads (7 cycles a vector for 3 x 3 in float32, 17 for 5 x 5 in float16). Strides 2 and 3 are bound by the stores, 4
 * (9) vectors for one of terms. Beyond the cache all wait for the lines that they store to, hence the fetches: 1.3
 * times as fast.
 *
 * Without AVX-512 a block is two vectors wide, which halves what a row costs beside its arithmetic, and one at the end
 * of a row if that is enough. What gcc 12 makes for AVX2 of 3 x 3 inside a row are 43 instructions for two vectors of
 * float32 (10 adds, 6 products with their loads). 16-bit types are bound by the conversions, so the terms of a piece of
 * the plane are made first, each once, as floats in the L1 cache with zeros around them; float32 too where two rows of
 * windows are summed at stride 2 or 3. No vector has lanes to clear then, and the sums across take their terms straight
 * from memory, half the adds as multiply-adds by 1 in the pipes that nothing else wants: 28 instructions for two
 * vectors of float16. Two vectors of bfloat16 are packed and stored as one; at stride 2 those of two kinds of column
 * are blended as halves of words instead of shuffled. Beside terms shuffled out of conversions, 8 x 64 x 56 x 56 on two
 * threads (Zen 4) takes 0.78 of the time (bfloat16) and 0.84 (float16) for 5 x 5, 0.61 for 3 x 3 of bfloat16, and for
 * 3 x 3 at stride 2 0.58, 0.71, and 0.86 in float32. Doubles lose at stride 1 (1.1 and 1.2 times, also beyond the
 * cache): their terms, elements and results exceed the L1 cache.
 */
#ifndef ACLNN_BW_AVG_POOL2D_H
#define ACLNN_BW_AVG_POOL2D_H
#include <stdint.h>
#include <string.h>
#include "simd.h"

#define ACLNN_BW_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define ACLNN_BW_MASKED 1
#define ACLNN_BW_LANES_32 16
#define ACLNN_BW_LANES_64 8
#define ACLNN_BW_EACH_32 ACLNN_BW_EACH_16TH
#define ACLNN_BW_EACH_64 ACLNN_BW_EACH_8TH
#elif defined(__AVX2__) && defined(__F16C__)
#define ACLNN_BW_MASKED 0
#define ACLNN_BW_LANES_32 8
#define ACLNN_BW_LANES_64 4
#define ACLNN_BW_EACH_32 ACLNN_BW_EACH_8TH
#define ACLNN_BW_EACH_64 ACLNN_BW_EACH_4TH
#else
#define ACLNN_BW_MASKED 0
#define ACLNN_BW_LANES_32 4
#define ACLNN_BW_LANES_64 2
#define ACLNN_BW_EACH_32 ACLNN_BW_EACH_4TH
#define ACLNN_BW_EACH_64 ACLNN_BW_EACH_2ND
#endif

typedef float aclnn_bw_floats __attribute__((vector_size(4 * ACLNN_BW_LANES_32)));
typedef double aclnn_bw_doubles __attribute__((vector_size(8 * ACLNN_BW_LANES_64)));
typedef uint32_t aclnn_bw_words __attribute__((vector_size(4 * ACLNN_BW_LANES_32)));
typedef uint64_t aclnn_bw_long_words __attribute__((vector_size(8 * ACLNN_BW_LANES_64)));
typedef uint16_t aclnn_bw_short_words __attribute__((vector_size(2 * ACLNN_BW_LANES_32)));

/* f(lanes, i) for the lanes i of vector v out of several. */
#define ACLNN_BW_EACH_2ND(f, n, v) f(n, (v) * (n)), f(n, (v) * (n) + 1)
#define ACLNN_BW_FOUR(f, n, i) f(n, i), f(n, (i) + 1), f(n, (i) + 2), f(n, (i) + 3)
#define ACLNN_BW_EACH_4TH(f, n, v) ACLNN_BW_FOUR(f, n, (v) * (n))
#define ACLNN_BW_EACH_8TH(f, n, v) ACLNN_BW_FOUR(f, n, (v) * (n)), ACLNN_BW_FOUR(f, n, (v) * (n) + 4)
#define ACLNN_BW_EACH_16TH(f, n, v) \
    ACLNN_BW_FOUR(f, n, (v) * (n)), ACLNN_BW_FOUR(f, n, (v) * (n) + 4), ACLNN_BW_FOUR(f, n, (v) * (n) + 8), \
    ACLNN_BW_FOUR(f, n, (v) * (n) + 12)

/* Where element i of a row of pairs (of triples) comes from: from lane i/2 (i/3) of the first vector or, from n on, of
 * the second. A triple's third element joins in a second step. */
#define ACLNN_BW_BOTH(n, i) ((i) / 2)
#define ACLNN_BW_PAIR(n, i) ((i) / 2 + (i) % 2 * (n))
#define ACLNN_BW_ALL(n, i) ((i) / 3)
#define ACLNN_BW_TRIPLE(n, i) ((i) / 3 + ((i) % 3 == 1) * (n))
#define ACLNN_BW_THIRD(n, i) ((i) % 3 == 2 ? (n) + (i) / 3 : (i) % (n))

/* The lanes that are kept of a load: a mask where there are masks, else the bits of a vector. */
#if ACLNN_BW_MASKED
#define ACLNN_BW_KEPT(words) aclnn_bw_lanes
#define ACLNN_BW_ALL_LANES(kept) 0xffffu
#define ACLNN_BW_RARE ACLNN_BW_INLINE
#define ACLNN_BW_VECTORS 1
#else
#define ACLNN_BW_KEPT(words) words
#define ACLNN_BW_ALL_LANES(kept) (~(kept){0})
#define ACLNN_BW_RARE static __attribute__((noinline))  /* what it does is kept out of the registers of the loops */
#define ACLNN_BW_VECTORS 2          /* side by side in a block of columns at stride 1 */
#endif

#define ACLNN_BW_UNLIMITED ((const char *)UINTPTR_MAX)

/* What a walk works on; sizes and strides in elements, `from` and `to` as the caller's types. */
typedef struct {
    const void *from;           /* window (from_row, from_column) */
    int64_t from_row;
    int64_t from_column;
    int64_t from_down;
    int64_t rows_out;           /* windows along h: rows outside [0, rows_out) are zeros */
    int64_t columns_out;        /* and along w */
    double factor;              /* of every term, or */
    const void *row_factors;    /* of the rows of windows from q - (terms - 1) on, times */
    const void *column_factors; /* of the columns of windows from group 0's first on, zeros where there is none */
    void *to;                   /* position 0 of h, group 0 */
    int64_t to_down;
    const char *limit;          /* a store may pass the end of its row, but not this: the rows before it come later */
    int64_t q;                  /* the values q .. q + rows - 1 of h are made (types of the plan: Axis) */
    int64_t rows;
    int64_t stride;             /* of h, and so on */
    int64_t pad;
    int64_t size;
    int64_t long_phases;
    int64_t terms;
    int64_t groups;             /* of w_stride columns; the last may be cut: `width` columns in all */
    int64_t width;
    int64_t w_stride;
    int64_t first[3];           /* column i of group j sums the windows j + first[i] .. j + first[i] + count[i] - 1 */
    int64_t count[3];
    int64_t ahead;              /* bytes from what is read now to what is read next, for the prefetcher */
    const char *from_begin;     /* without masks: vectors at the ends of a row may look beyond it, but not beyond */
    const char *from_end;       /* these */
} aclnn_bw_walk;

#define ACLNN_BW_AHEAD 4096             /* bytes: twice as many, or two groups of rows, lie from a store to its fetch */
#define ACLNN_BW_TERMS_BYTES 20480      /* made at a time: those of 56 x 56 and more fit an L1 cache of 32 KiB */
#define ACLNN_BW_WALK_TERMS 16          /* the most along an axis */

#if ACLNN_BW_MASKED
typedef uint32_t aclnn_bw_lanes;

#define aclnn_bw_words_inside aclnn_bw_lanes_inside
#define aclnn_bw_long_words_inside aclnn_bw_lanes_inside

/* The lanes i for which 0 <= i + window < windows. */
ACLNN_BW_INLINE aclnn_bw_lanes aclnn_bw_lanes_inside(int64_t window, int64_t windows, int64_t lanes)
{
    int64_t begin = window < 0 ? -window : 0, end = windows - window < lanes ? windows - window : lanes;
    return end <= begin ? 0 : ((1u << end) - 1) & ~((1u << begin) - 1);
}

/* Four lanes in a vector whose others are not looked at. */
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_four_floats(const float *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_floats)_mm512_castps128_ps512(_mm_maskz_loadu_ps((__mmask8)(lanes & 15), from));
}
ACLNN_BW_INLINE aclnn_bw_doubles aclnn_bw_load_four_doubles(const double *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_doubles)_mm512_castpd256_pd512(_mm256_maskz_loadu_pd((__mmask8)(lanes & 15), from));
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_four_halfs(const aclnn_bw_half *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_floats)_mm512_castps128_ps512(_mm_cvtph_ps(_mm_maskz_loadu_epi16((__mmask8)(lanes & 15), from)));
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_four_bfloats(const aclnn_bw_bfloat *from, aclnn_bw_lanes lanes)
{
    __m128i wide = _mm_cvtepu16_epi32(_mm_maskz_loadu_epi16((__mmask8)(lanes & 15), from));
    return (aclnn_bw_floats)_mm512_castsi512_ps(_mm512_castsi128_si512(_mm_slli_epi32(wide, 16)));
}

/* Lanes k .. k + LANES - 1 of two vectors side by side. */
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_shift_floats(aclnn_bw_floats low, aclnn_bw_floats high, int64_t k)
{
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (aclnn_bw_floats)_mm512_permutex2var_ps((__m512)low, _mm512_add_epi32(lane, _mm512_set1_epi32((int)k)),
                                                   (__m512)high);
}
ACLNN_BW_INLINE aclnn_bw_doubles aclnn_bw_shift_doubles(aclnn_bw_doubles low, aclnn_bw_doubles high, int64_t k)
{
    const __m512i lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    return (aclnn_bw_doubles)_mm512_permutex2var_pd((__m512d)low, _mm512_add_epi64(lane, _mm512_set1_epi64(k)),
                                                    (__m512d)high);
}

ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_float(const float *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_floats)_mm512_maskz_loadu_ps((__mmask16)lanes, from);
}
ACLNN_BW_INLINE aclnn_bw_doubles aclnn_bw_load_double(const double *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_doubles)_mm512_maskz_loadu_pd((__mmask8)lanes, from);
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_half(const aclnn_bw_half *from, aclnn_bw_lanes lanes)
{
    return (aclnn_bw_floats)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)lanes, from));
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_bfloat(const aclnn_bw_bfloat *from, aclnn_bw_lanes lanes)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16((__mmask16)lanes, from));
    return (aclnn_bw_floats)_mm512_slli_epi32(wide, 16);
}
#else
/* What lies beside the windows of a row is loaded and its bits are cleared: the lanes i for which 0 <= i + window <
 * windows are ones, a run that begins behind zeros and one that ends before zeros. */
#define ACLNN_BW_INSIDE(name, kept, word, LANES)                                                   \
    ACLNN_BW_INLINE kept name(int64_t window, int64_t windows, int64_t lanes)                      \
    {                                                                                              \
        static const word run[3 * LANES] = {[LANES ... 2 * LANES - 1] = (word)-1};                 \
        int64_t begin = window < 0 ? -window : 0, end = windows - window;                          \
        kept from_begin, to_end;                                                                   \
        memcpy(&from_begin, run + lanes - (begin < lanes ? begin : lanes), sizeof from_begin);     \
        memcpy(&to_end, run + 2 * lanes - (end < 0 ? 0 : end < lanes ? end : lanes), sizeof to_end); \
        return from_begin & to_end;                                                                \
    }
ACLNN_BW_INSIDE(aclnn_bw_words_inside, aclnn_bw_words, uint32_t, ACLNN_BW_LANES_32)
ACLNN_BW_INSIDE(aclnn_bw_long_words_inside, aclnn_bw_long_words, uint64_t, ACLNN_BW_LANES_64)

ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_float(const float *from)
{
    aclnn_bw_floats x;
    memcpy(&x, from, sizeof x);
    return x;
}
ACLNN_BW_INLINE aclnn_bw_doubles aclnn_bw_load_double(const double *from)
{
    aclnn_bw_doubles x;
    memcpy(&x, from, sizeof x);
    return x;
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_bfloat(const aclnn_bw_bfloat *from)
{
    aclnn_bw_floats x;
    simd_load_bfloat(&x, from);
    return x;
}
ACLNN_BW_INLINE aclnn_bw_floats aclnn_bw_load_half(const aclnn_bw_half *from)
{
    aclnn_bw_floats x;
    simd_load_half(&x, from);
    return x;
}

/* Not called: what lies beside is loaded where it is wanted. */
#define aclnn_bw_load_four_floats aclnn_bw_load_float
#define aclnn_bw_load_four_doubles aclnn_bw_load_double
#define aclnn_bw_load_four_halfs aclnn_bw_load_half
#define aclnn_bw_load_four_bfloats aclnn_bw_load_bfloat
#define aclnn_bw_shift_floats(low, high, k) (high)
#define aclnn_bw_shift_doubles(low, high, k) (high)
#endif

ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_narrow_floats(aclnn_bw_floats x) { return (aclnn_bw_words)x; }
ACLNN_BW_INLINE aclnn_bw_long_words aclnn_bw_narrow_doubles(aclnn_bw_doubles x) { return (aclnn_bw_long_words)x; }
ACLNN_BW_INLINE aclnn_bw_short_words aclnn_bw_narrow_halfs(aclnn_bw_floats x)
{
    aclnn_bw_short_words narrow;
    simd_store_half(&narrow, &x);
#if ACLNN_BW_LANES_32 == 8
    __asm__("" : "+x"(narrow));     /* with a store in the same instruction it is slower */
#endif
    return narrow;
}
#if !ACLNN_BW_MASKED
/* In the upper halves; the lower ones are not looked at. A NaN stays one: of sums and products of bfloat16 it has zeros
 * in its lower half, which do not carry. */
ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_round_to_bfloats(aclnn_bw_floats x)
{
    aclnn_bw_words bits = (aclnn_bw_words)x;
    return bits + 0x7fff + (bits >> 16 & 1);
}
#endif
ACLNN_BW_INLINE aclnn_bw_short_words aclnn_bw_narrow_bfloats(aclnn_bw_floats x)
{
    aclnn_bw_short_words narrow;
    simd_store_bfloat(&narrow, &x);
    return narrow;
}

#if !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
/* Two vectors behind each other, and two whose elements take turns. */
ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_narrow_two_halfs(aclnn_bw_floats low, aclnn_bw_floats high)
{
    return (aclnn_bw_words)_mm256_set_m128i((__m128i)aclnn_bw_narrow_halfs(high), (__m128i)aclnn_bw_narrow_halfs(low));
}
ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_narrow_pair_halfs(aclnn_bw_floats even, aclnn_bw_floats odd)
{
    __m128i a = (__m128i)aclnn_bw_narrow_halfs(even), b = (__m128i)aclnn_bw_narrow_halfs(odd);
    return (aclnn_bw_words)_mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
}
ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_narrow_two_bfloats(aclnn_bw_floats low, aclnn_bw_floats high)
{
    aclnn_bw_words a = aclnn_bw_round_to_bfloats(low) >> 16, b = aclnn_bw_round_to_bfloats(high) >> 16;
    return (aclnn_bw_words)_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)a, (__m256i)b), 0xd8);
}
ACLNN_BW_INLINE aclnn_bw_words aclnn_bw_narrow_pair_bfloats(aclnn_bw_floats even, aclnn_bw_floats odd)
{
    aclnn_bw_words a = aclnn_bw_round_to_bfloats(even) >> 16, b = aclnn_bw_round_to_bfloats(odd);
    return (aclnn_bw_words)_mm256_blend_epi16((__m256i)a, (__m256i)b, 0xaa);
}
#endif

#if defined(__clang__)
#define ACLNN_BW_SPREAD(cells, a, b, f, n, each, v) __builtin_shufflevector(a, b, each(f, n, v))
#else
#define ACLNN_BW_SPREAD(cells, a, b, f, n, each, v) __builtin_shuffle(a, b, (cells){each(f, n, v)})
#endif

#define REAL float
#define REALS aclnn_bw_floats
#define LANES ACLNN_BW_LANES_32
#define EACH ACLNN_BW_EACH_32
#define ELEMENT float
#define BITS uint32_t
#define WIDEN_ONE 
#define NARROW_ONE 
#define CELLS aclnn_bw_words
#define KEPT ACLNN_BW_KEPT(aclnn_bw_words)
#define INSIDE aclnn_bw_words_inside
#define LOAD aclnn_bw_load_float
#define LOAD_FOUR aclnn_bw_load_four_floats
#define NARROW aclnn_bw_narrow_floats
#define SHIFT aclnn_bw_shift_floats
#define NAMED(name) aclnn_bw_##name##_f32
#if defined(__FMA__) && !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#endif
#include "avg_pool2d_walk.h"

#define REAL float
#define REALS aclnn_bw_floats
#define LANES ACLNN_BW_LANES_32
#define EACH ACLNN_BW_EACH_32
#define ELEMENT aclnn_bw_half
#define BITS uint16_t
#define WIDEN_ONE aclnn_bw_widen_half
#define NARROW_ONE aclnn_bw_narrow_to_half
#define CELLS aclnn_bw_short_words
#define KEPT ACLNN_BW_KEPT(aclnn_bw_words)
#define INSIDE aclnn_bw_words_inside
#define LOAD aclnn_bw_load_half
#define LOAD_FOUR aclnn_bw_load_four_halfs
#define NARROW aclnn_bw_narrow_halfs
#define SHIFT aclnn_bw_shift_floats
#define NAMED(name) aclnn_bw_##name##_f16
#if defined(__FMA__) && !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#endif
#if !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define NARROW_TWO aclnn_bw_narrow_two_halfs
#define NARROW_PAIR aclnn_bw_narrow_pair_halfs
#endif
#include "avg_pool2d_walk.h"

#define REAL float
#define REALS aclnn_bw_floats
#define LANES ACLNN_BW_LANES_32
#define EACH ACLNN_BW_EACH_32
#define ELEMENT aclnn_bw_bfloat
#define BITS uint16_t
#define WIDEN_ONE aclnn_bw_widen_bfloat
#define NARROW_ONE aclnn_bw_narrow_to_bfloat
#define CELLS aclnn_bw_short_words
#define KEPT ACLNN_BW_KEPT(aclnn_bw_words)
#define INSIDE aclnn_bw_words_inside
#define LOAD aclnn_bw_load_bfloat
#define LOAD_FOUR aclnn_bw_load_four_bfloats
#define NARROW aclnn_bw_narrow_bfloats
#define SHIFT aclnn_bw_shift_floats
#define NAMED(name) aclnn_bw_##name##_bf16
#if defined(__FMA__) && !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#endif
#if !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define NARROW_TWO aclnn_bw_narrow_two_bfloats
#define NARROW_PAIR aclnn_bw_narrow_pair_bfloats
#endif
#include "avg_pool2d_walk.h"

#define REAL double
#define REALS aclnn_bw_doubles
#define LANES ACLNN_BW_LANES_64
#define EACH ACLNN_BW_EACH_64
#define ELEMENT double
#define BITS uint64_t
#define WIDEN_ONE 
#define NARROW_ONE 
#define CELLS aclnn_bw_long_words
#define KEPT ACLNN_BW_KEPT(aclnn_bw_long_words)
#define INSIDE aclnn_bw_long_words_inside
#define LOAD aclnn_bw_load_double
#define LOAD_FOUR aclnn_bw_load_four_doubles
#define NARROW aclnn_bw_narrow_doubles
#define SHIFT aclnn_bw_shift_doubles
#define NAMED(name) aclnn_bw_##name##_f64
#if defined(__FMA__) && !ACLNN_BW_MASKED && ACLNN_BW_LANES_32 == 8
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#endif
#include "avg_pool2d_walk.h"

#endif
