/* Rows of the max pool's gradInput for the kernels whose columns are known when this is compiled: 3 columns at stride 2
 * or 1 and 2 at stride 2, with any padding. Half the time of the general form or less, for addresses and phases cost
 * nothing and gradients are loaded once for all kernel columns that share them.
 *
 * Order of the sums. A column sums its windows in ascending (oh, ow), except for 3 columns at stride 1 and padding 1:
 * there each ow is summed apart, oh ascending, and then these sums in ascending ow. All forms add the same terms in the
 * same order, from +0.0, so the instruction set does not show in a result: a term that is not chosen changes nothing.
 *
 * Why intrinsics: one instruction tests a bit in 16 words (or compares 16 indices) and leaves a lane mask, under which
 * one more adds 16 gradients; gcc 12 does not find this in plain loops.
 *
 * What binds the loops (Zen 4, read in the assembly): with AVX-512, rows laid end to end take 17 cycles for 16 columns
 * of 3x3 windows in float32. 11 of them are the 9 additions under masks and the 2 of the slid sums, one a cycle; tests,
 * 3 loads and slides run beside them. Indices take 18: each channel loads its own, and a comparison of 16 takes a cycle
 * too. Pairs of columns at stride 2 take 9 cycles for 16 in float32, 8 in float16: the number of instructions binds, a
 * third of which load, convert and interleave; beyond the cache two threads wait for memory in float32 and float64. A
 * load under a mask costs an arithmetic operation, so only blocks at the ends of rows use it. Without lane masks see
 * max_pool2d_pairs.h, max_pool2d_lines.h and max_pool2d_thirds.h.
 */
#ifndef ACLNN_BW_MAX_POOL2D_COLUMNS_H
#define ACLNN_BW_MAX_POOL2D_COLUMNS_H
#include "max_pool2d.h"

/* Scratch of max_pool2d_thirds.h. */
typedef struct {
    void *sums;             /* three thirds, zero before and after each call */
    int64_t third;          /* elements from one to the next */
    uint16_t *nibbles;      /* for bits, of all windows of a chunk: see aclnn_bw_window_codes, block after block */
    uint16_t *starts;       /* a window's place, modulo 2**16 */
    uint16_t *places;       /* of one channel's maxima */
} aclnn_bw_thirds;

/* A plane of windows, and its mask: `mask` points to the plane's indices, or to the words of its group at window (0, 0)
 * and kernel position 0. */
typedef struct {
    const char *grad;
    const char *mask;
    const uint16_t *edges;  /* see aclnn_bw_fill_edges */
    int64_t grad_step;      /* bytes between rows of windows */
    int64_t column_step;    /* bytes between kernel positions */
    int64_t window_rows;
    int64_t windows;        /* in a row */
    int64_t rows;           /* of gradInput */
    int64_t columns;
    int64_t kernel;         /* along h, as are stride and pad */
    int64_t stride;
    int64_t pad;
    int64_t grad_channel;   /* bytes to the next channel's plane of windows */
    int64_t mask_channel;   /* bytes to the next channel's plane of indices */
    int64_t to_channel;     /* elements to the next channel's rows of gradInput */
    int64_t grad_ahead;     /* bytes: how far ahead gradients, indices and elements of gradInput are prefetched */
    int64_t mask_ahead;
    int64_t to_ahead;
    int far;                /* whether the tensors leave the caches */
    uint16_t bit;           /* of the first channel */
    int64_t channels;       /* ACLNN_BW_ANY_TEAM, ACLNN_BW_SAME: so many are summed at a time */
    const aclnn_bw_thirds *thirds;  /* ACLNN_BW_SAME: NULL if windows are to be gathered */
} aclnn_bw_plane;

/* Channels of a group that are summed at a time: they share the mask words, or the indices that are looked for, and
 * what it costs to walk the rows. */
#define ACLNN_BW_TEAM 4

/* Kernel rows of a known kernel: at most 32 positions in all. */
#define ACLNN_BW_MOST_ROWS 16

/* Column s*j + c belongs to the windows j + shift at kernel columns kw with c + p - kw = s*shift. */
#define ACLNN_BW_CLASS(kw) ((((kw) - p) % s + s) % s)
#define ACLNN_BW_SHIFT(kw) ((ACLNN_BW_CLASS(kw) + p - (kw)) / s)
#define ACLNN_BW_LOW ACLNN_BW_SHIFT(k - 1)
#define ACLNN_BW_HIGH (ACLNN_BW_SHIFT(0) > ACLNN_BW_SHIFT(1) ? ACLNN_BW_SHIFT(0) : ACLNN_BW_SHIFT(1))

/* The number by which the functions below know a geometry of columns; 0 if they do not. */
enum { ACLNN_BW_SAME = 6 };     /* 3 columns, stride 1, padding 1: as many columns as windows */
static inline int aclnn_bw_known_columns(int64_t k, int64_t s, int64_t p)
{
    return k == 3 && s == 2 ? 1 + (int)p : k == 2 && s == 2 ? 3 + (int)p : k == 3 && s == 1 ? 5 + (int)p : 0;
}

/* Whether rows of 16-bit elements are stored as they are where the columns are known. */
#if ACLNN_BW_LANE_MASKS
#define ACLNN_BW_NARROWS(known) ((known) != 0)
#elif defined(__AVX2__) && defined(__F16C__)
#define ACLNN_BW_NARROWS(known) ((1 <= (known) && (known) <= 4) || (known) == ACLNN_BW_SAME)
#else
#define ACLNN_BW_NARROWS(known) 0
#endif

/* Whether max_pool2d_thirds.h serves sums of so many bytes each. */
#if ACLNN_BW_LANE_MASKS
#define ACLNN_BW_SCATTERS(bytes) 0
#define ACLNN_BW_THIRDS_f32
#define ACLNN_BW_THIRDS_f64
#define ACLNN_BW_THIRDS_f16
#define ACLNN_BW_THIRDS_bf16
#define ACLNN_BW_IF_THIRDS_f32
#define ACLNN_BW_IF_THIRDS_f64
#define ACLNN_BW_IF_THIRDS_f16
#define ACLNN_BW_IF_THIRDS_bf16
#elif defined(__AVX2__)
#define ACLNN_BW_SCATTERS(bytes) ((bytes) == 8)
#else
#define ACLNN_BW_SCATTERS(bytes) 1
#endif

/* edges[x], for x in [0, columns], has bit i set where element x + i of rows laid end to end is not the first of its
 * row, so that edges[x + 1] says which are not the last. */
static inline void aclnn_bw_fill_edges(uint16_t *edges, int64_t columns)
{
    unsigned inside = 0;
    int64_t next = 0;       /* (x + 16) % columns */
    for (int i = 0; i < 16; i++) {
        inside |= (unsigned)(next != 0) << i;
        next = next + 1 == columns ? 0 : next + 1;
    }
    for (int64_t x = 0; x <= columns; x++) {
        edges[x] = (uint16_t)inside;
        inside = inside >> 1 | (unsigned)(next != 0) << 15;
        next = next + 1 == columns ? 0 : next + 1;
    }
}

/* Ask for the lines of a block further on: with one thread beyond the cache 0.85 of the time, and 0.4 to 0.9 where
 * columns are pairs (max_pool2d_pairs.h), but 1.1 to 1.2 within it. Nothing is read there. */
ACLNN_BW_INLINE void aclnn_bw_prefetch(const char *at, int bytes)
{
    for (int line = 0; line < bytes; line += 64)
        __builtin_prefetch((const void *)((uintptr_t)at + (uintptr_t)line), 0, 2);
}

/* Move [oh, oh_end) on to the rows of windows that hold rows ih to last. */
#define ACLNN_BW_FIND_WINDOWS(last)                                                                                     \
    while (oh < w.window_rows && oh * w.stride - w.pad + w.kernel <= ih)                                                \
        oh++;                                                                                                           \
    oh_end = oh_end < oh ? oh : oh_end;                                                                                 \
    while (oh_end < w.window_rows && oh_end * w.stride - w.pad <= (last))                                               \
        oh_end++;

/* Rows [ih, end) of gradInput for 3 columns at stride 1 and padding 1; `term`: the type of the gradients. */
#define ACLNN_BW_LINES(suffix, element, term)                                                                           \
    ACLNN_BW_INLINE void aclnn_bw_lines_##suffix(                                                                       \
        element *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh, const int indexed,         \
        const int team)                                                                                                 \
    {                                                                                                                   \
        const int64_t row = w.windows * (indexed ? 4 : 2);                                                              \
        const int64_t rows = w.stride == 1 && to_step == w.columns                                                      \
            && w.grad_step == w.windows * (int64_t)sizeof(term) ? end - ih : 1;                                         \
        (void)oh;                                                                                                       \
        for (; ih < end; ih += rows) {                                                                                  \
            aclnn_bw_term terms[ACLNN_BW_MOST_ROWS];                                                                    \
            int64_t count = 0;                                                                                          \
            terms[0].grad = w.grad;                                                                                     \
            terms[0].mask = w.mask;                                                                                     \
            for (int64_t kh = w.kernel - 1; kh >= 0; kh--) {                                                            \
                int64_t top = ih + w.pad - kh, begin, stop;                                                             \
                if (w.stride != 1) {                                                                                    \
                    if (top < 0 || top % w.stride != 0)                                                                 \
                        continue;                                                                                       \
                    top /= w.stride;                                                                                    \
                }                                                                                                       \
                begin = top < 0 ? -top : 0;                                                                             \
                stop = w.window_rows - top < rows ? w.window_rows - top : rows;                                         \
                if (begin >= stop)                                                                                      \
                    continue;                                                                                           \
                terms[count].grad = w.grad + top * w.grad_step;                                                         \
                terms[count].mask = w.mask + top * row + (indexed ? 0 : 3 * kh * w.column_step);                        \
                terms[count].begin = begin * w.columns;                                                                 \
                terms[count].end = stop * w.columns;                                                                    \
                count++;                                                                                                \
            }                                                                                                           \
            aclnn_bw_line_##suffix(to, w, terms, count, rows * w.columns, indexed ? (int32_t)(ih * w.columns) : 0,      \
                                   indexed, team);                                                                      \
            to += rows * to_step;                                                                                       \
        }                                                                                                               \
    }

#if ACLNN_BW_LANE_MASKS
#define ACLNN_BW_ANY_TEAM 0
#define ACLNN_BW_HALVES 1       /* whether rows of 16-bit elements are read as they are */
#define ACLNN_BW_LINE_CASES(CASE, suffix, element)                                                                      \
    CASE(suffix, element, 6, 0, aclnn_bw_lines_##suffix, 0, 1)                                                          \
    CASE(suffix, element, 6, 1, aclnn_bw_lines_##suffix, 0, ACLNN_BW_TEAM)                                              \
    CASE(suffix, element, 6, 2, aclnn_bw_lines_##suffix, 1, 1)                                                          \
    CASE(suffix, element, 6, 3, aclnn_bw_lines_##suffix, 1, ACLNN_BW_TEAM)
#define ACLNN_BW_PAIRED(suffix) aclnn_bw_rows_##suffix

/* A test and the addition under its mask are one statement: gcc 12 would make all tests of a block before the first
 * addition and keep the masks, of which there are seven, in general registers (1.2 times as long). */
#if defined(ACLNN_BW_NO_ASM)    /* AVX-512 in plain C: tests/emulation */
#define ACLNN_BW_CHOSEN(name, sums, seen_type, add, compare)                                                            \
    ACLNN_BW_INLINE sums name(sums sum, seen_type seen, seen_type asked, sums term)                                     \
    {                                                                                                                   \
        return add(sum, compare(seen, asked), sum, term);                                                               \
    }
ACLNN_BW_CHOSEN(aclnn_bw_add_bits_f32, __m512, __m256i, _mm512_mask_add_ps, _mm256_test_epi16_mask)
ACLNN_BW_CHOSEN(aclnn_bw_add_bits_f64, __m512d, __m128i, _mm512_mask_add_pd, _mm_test_epi16_mask)
ACLNN_BW_CHOSEN(aclnn_bw_add_indices_f32, __m512, __m512i, _mm512_mask_add_ps, _mm512_cmpeq_epi32_mask)
ACLNN_BW_CHOSEN(aclnn_bw_add_indices_f64, __m512d, __m256i, _mm512_mask_add_pd, _mm256_cmpeq_epi32_mask)
#else
#define ACLNN_BW_CHOSEN(name, sums, seen_type, text)                                                                    \
    ACLNN_BW_INLINE sums name(sums sum, seen_type seen, seen_type asked, sums term)                                     \
    {                                                                                                                   \
        __mmask16 chosen;                                                                                               \
        __asm__(text : "+v"(sum), "=&Yk"(chosen) : "v"(seen), "v"(asked), "v"(term));                                   \
        (void)chosen;                                                                                                   \
        return sum;                                                                                                     \
    }
ACLNN_BW_CHOSEN(aclnn_bw_add_bits_f32, __m512, __m256i, "vptestmw %3, %2, %1\n\tvaddps %4, %0, %0%{%1%}")
ACLNN_BW_CHOSEN(aclnn_bw_add_bits_f64, __m512d, __m128i, "vptestmw %3, %2, %1\n\tvaddpd %4, %0, %0%{%1%}")
ACLNN_BW_CHOSEN(aclnn_bw_add_indices_f32, __m512, __m512i, "vpcmpeqd %3, %2, %1\n\tvaddps %4, %0, %0%{%1%}")
ACLNN_BW_CHOSEN(aclnn_bw_add_indices_f64, __m512d, __m256i, "vpcmpeqd %3, %2, %1\n\tvaddpd %4, %0, %0%{%1%}")
#endif

/* Vectors of sums, of mask words and of indices, for float32 sums (16 lanes) and for float64 sums (8). */
typedef __m512 aclnn_bw_sums_f32;
typedef __m256i aclnn_bw_words_f32;
typedef __m512i aclnn_bw_indices_f32;
typedef __m512d aclnn_bw_sums_f64;
typedef __m128i aclnn_bw_words_f64;
typedef __m256i aclnn_bw_indices_f64;
enum { aclnn_bw_width_f32 = 16, aclnn_bw_width_f64 = 8 };

#define ACLNN_BW_LOAD_WORDS_f32(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define ACLNN_BW_LOAD_WORDS_f64(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define ACLNN_BW_LOAD_INDICES_f32(from) _mm512_loadu_si512((const void *)(from))
#define ACLNN_BW_LOAD_INDICES_f64(from) _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define ACLNN_BW_SOME_WORDS_f32(lanes, from) _mm256_maskz_loadu_epi16((__mmask16)(lanes), from)
#define ACLNN_BW_SOME_WORDS_f64(lanes, from) _mm_maskz_loadu_epi16((__mmask8)(lanes), from)
#define ACLNN_BW_SOME_INDICES_f32(lanes, from) _mm512_maskz_loadu_epi32((__mmask16)(lanes), from)
#define ACLNN_BW_SOME_INDICES_f64(lanes, from) _mm256_maskz_loadu_epi32((__mmask8)(lanes), from)
#define ACLNN_BW_BIT_f32(bit) _mm256_set1_epi16((short)(bit))
#define ACLNN_BW_BIT_f64(bit) _mm_set1_epi16((short)(bit))
#define ACLNN_BW_PLACES_f32(first, s)                                                                                   \
    _mm512_add_epi32(_mm512_set1_epi32(first),                                                                          \
                     _mm512_set_epi32(15 * s, 14 * s, 13 * s, 12 * s, 11 * s, 10 * s, 9 * s, 8 * s, 7 * s, 6 * s,       \
                                      5 * s, 4 * s, 3 * s, 2 * s, s, 0))
#define ACLNN_BW_PLACES_f64(first, s)                                                                                   \
    _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_set_epi32(7 * s, 6 * s, 5 * s, 4 * s, 3 * s, 2 * s, s, 0))
#define ACLNN_BW_ZERO_f32 _mm512_setzero_ps()
#define ACLNN_BW_ZERO_f64 _mm512_setzero_pd()
#define ACLNN_BW_ADD_SOME_f32(lanes, sum, term) _mm512_mask_add_ps(sum, (__mmask16)(lanes), sum, term)
#define ACLNN_BW_ADD_SOME_f64(lanes, sum, term) _mm512_mask_add_pd(sum, (__mmask8)(lanes), sum, term)
/* The last n lanes of `before`, and the first of `block` after them. */
#define ACLNN_BW_SLIDE_f32(block, before, n)                                                                            \
    _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(block), _mm512_castps_si512(before), 16 - (n)))
#define ACLNN_BW_SLIDE_f64(block, before, n)                                                                            \
    _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(block), _mm512_castpd_si512(before), 8 - (n)))

/* Vectors of elements to sums and back. A pair of sums is stored interleaved. */
#define ACLNN_BW_LOAD_f32(from) _mm512_loadu_ps((const void *)(from))
#define ACLNN_BW_LOAD_f64(from) _mm512_loadu_pd((const void *)(from))
#define ACLNN_BW_LOAD_f16(from) _mm512_cvtph_ps(ACLNN_BW_LOAD_WORDS_f32(from))
#define ACLNN_BW_LOAD_bf16(from) aclnn_bw_widen_16(ACLNN_BW_LOAD_WORDS_f32(from))
#define ACLNN_BW_LOAD_SOME_f32(lanes, from) _mm512_maskz_loadu_ps((__mmask16)(lanes), (const void *)(from))
#define ACLNN_BW_LOAD_SOME_f64(lanes, from) _mm512_maskz_loadu_pd((__mmask8)(lanes), (const void *)(from))
#define ACLNN_BW_LOAD_SOME_f16(lanes, from) _mm512_cvtph_ps(ACLNN_BW_SOME_WORDS_f32(lanes, (const void *)(from)))
#define ACLNN_BW_LOAD_SOME_bf16(lanes, from) aclnn_bw_widen_16(ACLNN_BW_SOME_WORDS_f32(lanes, (const void *)(from)))

ACLNN_BW_INLINE __m512 aclnn_bw_widen_16(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/* Rounded to bfloat16, to nearest even, in the upper half of each lane; below it is no matter what. */
ACLNN_BW_INLINE __m512i aclnn_bw_round_16(__m512 sum)
{
    __m512i bits = _mm512_castps_si512(sum);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff));
    __mmask16 nan = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}

#define ACLNN_BW_NARROW_f16(sum) _mm512_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT)
#define ACLNN_BW_NARROW_bf16(sum) _mm512_cvtepi32_epi16(_mm512_srli_epi32(aclnn_bw_round_16(sum), 16))

ACLNN_BW_INLINE void aclnn_bw_store_f32(float *to, __m512 sum) { _mm512_storeu_ps(to, sum); }
ACLNN_BW_INLINE void aclnn_bw_store_f64(double *to, __m512d sum) { _mm512_storeu_pd(to, sum); }
ACLNN_BW_INLINE void aclnn_bw_store_some_f32(float *to, uint32_t lanes, __m512 sum)
{
    _mm512_mask_storeu_ps(to, (__mmask16)lanes, sum);
}
ACLNN_BW_INLINE void aclnn_bw_store_some_f64(double *to, uint32_t lanes, __m512d sum)
{
    _mm512_mask_storeu_pd(to, (__mmask8)lanes, sum);
}
#define ACLNN_BW_STORE_16(suffix)                                                                                       \
    ACLNN_BW_INLINE void aclnn_bw_store_##suffix(uint16_t *to, __m512 sum)                                              \
    {                                                                                                                   \
        _mm256_storeu_si256((__m256i *)(void *)to, ACLNN_BW_NARROW_##suffix(sum));                                      \
    }                                                                                                                   \
    ACLNN_BW_INLINE void aclnn_bw_store_some_##suffix(uint16_t *to, uint32_t lanes, __m512 sum)                         \
    {                                                                                                                   \
        _mm256_mask_storeu_epi16(to, (__mmask16)lanes, ACLNN_BW_NARROW_##suffix(sum));                                  \
    }
ACLNN_BW_STORE_16(f16)
ACLNN_BW_STORE_16(bf16)

ACLNN_BW_INLINE void aclnn_bw_store_pair_f32(float *to, __m512 even, __m512 odd, int64_t columns)
{
    __m512 low = _mm512_permutex2var_ps(
        even, _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0), odd);
    __m512 high = _mm512_permutex2var_ps(
        even, _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8), odd);
    if (columns >= 16)
        _mm512_storeu_ps(to, low);
    else
        _mm512_mask_storeu_ps(to, (__mmask16)((1u << columns) - 1), low);
    if (columns >= 32)
        _mm512_storeu_ps(to + 16, high);
    else if (columns > 16)
        _mm512_mask_storeu_ps(to + 16, (__mmask16)((1u << (columns - 16)) - 1), high);
}

ACLNN_BW_INLINE void aclnn_bw_store_pair_f64(double *to, __m512d even, __m512d odd, int64_t columns)
{
    __m512d low = _mm512_permutex2var_pd(even, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), odd);
    __m512d high = _mm512_permutex2var_pd(even, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), odd);
    if (columns >= 8)
        _mm512_storeu_pd(to, low);
    else
        _mm512_mask_storeu_pd(to, (__mmask8)((1u << columns) - 1), low);
    if (columns >= 16)
        _mm512_storeu_pd(to + 8, high);
    else if (columns > 8)
        _mm512_mask_storeu_pd(to + 8, (__mmask8)((1u << (columns - 8)) - 1), high);
}

ACLNN_BW_INLINE void aclnn_bw_store_32(uint16_t *to, __m512i cells, int64_t columns)
{
    if (columns >= 32)
        _mm512_storeu_si512(to, cells);
    else
        _mm512_mask_storeu_epi16(to, (1u << columns) - 1, cells);
}

ACLNN_BW_INLINE void aclnn_bw_store_pair_f16(uint16_t *to, __m512 even, __m512 odd, int64_t columns)
{
    __m512i low = _mm512_castsi256_si512(ACLNN_BW_NARROW_f16(even));
    __m512i high = _mm512_castsi256_si512(ACLNN_BW_NARROW_f16(odd));
    const __m512i mixed = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                           37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    aclnn_bw_store_32(to, _mm512_permutex2var_epi16(low, mixed, high), columns);
}

ACLNN_BW_INLINE void aclnn_bw_store_pair_bf16(uint16_t *to, __m512 even, __m512 odd, int64_t columns)
{
    aclnn_bw_store_32(to, _mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(aclnn_bw_round_16(even), 16),
                                                  aclnn_bw_round_16(odd)), columns);
}

/* For each shift the lanes of a block at j that have a window. */
ACLNN_BW_INLINE void aclnn_bw_part_lanes(uint32_t *lanes, int64_t j, int64_t windows, int width, const int k,
                                          const int s, const int p)
{
    for (int shift = ACLNN_BW_LOW; shift <= ACLNN_BW_HIGH; shift++) {
        aclnn_bw_term term = {NULL, NULL, -shift, windows - shift};
        lanes[shift - ACLNN_BW_LOW] = aclnn_bw_lanes(&term, j, width);
    }
}

/* Rows of columns with windows of their own order: `sums` of a block of columns at j, by class, each over `count` rows
 * of windows. Kernel row `kh` belongs to the first; each further one is `stride` kernel rows earlier. */
#define ACLNN_BW_ROWS(suffix, element, real)                                                                            \
    ACLNN_BW_INLINE void aclnn_bw_part_##suffix(                                                                        \
        aclnn_bw_sums_##real *sums, aclnn_bw_plane w, int64_t oh, int64_t count, int64_t kh, int32_t place, int64_t j,  \
        const uint32_t *lanes, const int k, const int s, const int p, const int indexed, const int team,                \
        const int partial)                                                                                              \
    {                                                                                                                   \
        const char *grad_row = w.grad + oh * w.grad_step + (j + ACLNN_BW_LOW) * (int64_t)sizeof(element);               \
        const char *mask_row = w.mask + (oh * w.windows + j + ACLNN_BW_LOW) * (indexed ? 4 : 2)                         \
            + (indexed ? 0 : kh * k * w.column_step);                                                                   \
        const int64_t mask_step = w.windows * (indexed ? 4 : 2) - (indexed ? 0 : w.stride * k * w.column_step);         \
        aclnn_bw_indices_##real wanted[2];                                                                              \
        aclnn_bw_words_##real bits[ACLNN_BW_TEAM];                                                                      \
        for (int channel = 0; channel < team; channel++) {                                                              \
            bits[channel] = ACLNN_BW_BIT_##real(w.bit << channel);                                                      \
            sums[2 * channel] = sums[2 * channel + 1] = ACLNN_BW_ZERO_##real;                                           \
        }                                                                                                               \
        if (indexed)                                                                                                    \
            for (int c = 0; c < s; c++)                                                                                 \
                wanted[c] = ACLNN_BW_PLACES_##real((int32_t)(place + s * j + c), s);                                    \
        for (int64_t row = 0; row < count; row++) {                                                                     \
            aclnn_bw_words_##real words[3];                                                                             \
            if (!indexed)                                                                                               \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int shift = ACLNN_BW_SHIFT(kw) - ACLNN_BW_LOW;                                                \
                    const char *mask = mask_row + kw * w.column_step + 2 * shift;                                       \
                    words[kw] = partial ? ACLNN_BW_SOME_WORDS_##real(lanes[shift], mask)                                \
                                        : ACLNN_BW_LOAD_WORDS_##real(mask);                                             \
                }                                                                                                       \
            _Pragma("GCC unroll 4")                                                                                     \
            for (int channel = 0; channel < team; channel++) {                                                          \
                aclnn_bw_sums_##real terms[3];                                                                          \
                aclnn_bw_indices_##real seen[3];                                                                        \
                for (int shift = 0; shift <= ACLNN_BW_HIGH - ACLNN_BW_LOW; shift++) {                                   \
                    const char *grad = grad_row + channel * w.grad_channel + shift * (int)sizeof(element);              \
                    const char *mask = mask_row + channel * w.mask_channel + 4 * shift;                                 \
                    terms[shift] = partial ? ACLNN_BW_LOAD_SOME_##suffix(lanes[shift], grad)                            \
                                           : ACLNN_BW_LOAD_##suffix(grad);                                              \
                    if (indexed)                                                                                        \
                        seen[shift] = partial ? ACLNN_BW_SOME_INDICES_##real(lanes[shift], mask)                        \
                                              : ACLNN_BW_LOAD_INDICES_##real(mask);                                     \
                }                                                                                                       \
                _Pragma("GCC unroll 3")                                                                                 \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int shift = ACLNN_BW_SHIFT(kw) - ACLNN_BW_LOW;                                                \
                    aclnn_bw_sums_##real *sum = &sums[2 * channel + ACLNN_BW_CLASS(kw)];                                \
                    *sum = indexed                                                                                      \
                        ? aclnn_bw_add_indices_##real(*sum, seen[shift], wanted[ACLNN_BW_CLASS(kw)], terms[shift])      \
                        : aclnn_bw_add_bits_##real(*sum, words[kw], bits[channel], terms[shift]);                       \
                }                                                                                                       \
            }                                                                                                           \
            grad_row += w.grad_step;                                                                                    \
            mask_row += mask_step;                                                                                      \
        }                                                                                                               \
    }                                                                                                                   \
    /* Rows [ih, end) of gradInput; oh is at most the first row of windows that holds row ih. */                        \
    ACLNN_BW_INLINE void aclnn_bw_rows_##suffix(                                                                        \
        element *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh, const int k, const int s,  \
        const int p, const int indexed, const int team)                                                                 \
    {                                                                                                                   \
        enum { WIDTH = aclnn_bw_width_##real };                                                                         \
        const int64_t n = (w.columns + s - 1) / s;                                                                      \
        /* The last block overlaps the one before, for a masked store takes longer; unless half of a pair would lie     \
         * outside the row. */                                                                                          \
        const int64_t last = w.columns % s == 0 && n >= WIDTH ? n - WIDTH : (n - 1) / WIDTH * WIDTH;                    \
        int64_t oh_end = oh;                                                                                            \
        uint32_t first_lanes[3], last_lanes[3], others[3];                                                              \
        aclnn_bw_part_lanes(first_lanes, 0, w.windows, WIDTH, k, s, p);                                                 \
        aclnn_bw_part_lanes(last_lanes, last, w.windows, WIDTH, k, s, p);                                               \
        for (; ih < end; ih++) {                                                                                        \
            const int32_t place = indexed ? (int32_t)(ih * w.columns) : 0;                                              \
            ACLNN_BW_FIND_WINDOWS(ih)                                                                                   \
            const int64_t kh = ih + w.pad - oh * w.stride;                                                              \
            for (int64_t j = 0; j < n; j += WIDTH) {                                                                    \
                aclnn_bw_sums_##real sums[2 * ACLNN_BW_TEAM];                                                           \
                if (j > last)                                                                                           \
                    j = last;                                                                                           \
                if (j + ACLNN_BW_LOW >= 0 && j + ACLNN_BW_HIGH + WIDTH <= w.windows)                                    \
                    aclnn_bw_part_##suffix(sums, w, oh, oh_end - oh, kh, place, j, NULL, k, s, p, indexed, team, 0);    \
                else {                                                                                                  \
                    const uint32_t *lanes = j == 0 ? first_lanes : last_lanes;                                          \
                    if (j != 0 && j != last) {                                                                          \
                        aclnn_bw_part_lanes(others, j, w.windows, WIDTH, k, s, p);                                      \
                        lanes = others;                                                                                 \
                    }                                                                                                   \
                    aclnn_bw_part_##suffix(sums, w, oh, oh_end - oh, kh, place, j, lanes, k, s, p, indexed, team, 1);   \
                }                                                                                                       \
                for (int channel = 0; channel < team; channel++) {                                                      \
                    element *out = to + channel * w.to_channel + s * j;                                                 \
                    aclnn_bw_prefetch(w.grad + oh * w.grad_step + channel * w.grad_channel + w.grad_ahead               \
                                      + j * (int64_t)sizeof(element), WIDTH * (int)sizeof(element));                    \
                    if (indexed)                                                                                        \
                        aclnn_bw_prefetch(w.mask + 4 * (oh * w.windows + j) + channel * w.mask_channel                  \
                                          + w.mask_ahead, 4 * WIDTH);                                                   \
                    aclnn_bw_prefetch((const char *)out + w.to_ahead, s * WIDTH * (int)sizeof(element));                \
                    if (s == 2)                                                                                         \
                        aclnn_bw_store_pair_##suffix(out, sums[2 * channel], sums[2 * channel + 1], w.columns - s * j); \
                    else if (w.columns - j >= WIDTH)                                                                    \
                        aclnn_bw_store_##suffix(out, sums[2 * channel]);                                                \
                    else                                                                                                \
                        aclnn_bw_store_some_##suffix(out, (1u << (w.columns - j)) - 1, sums[2 * channel]);              \
                }                                                                                                       \
            }                                                                                                           \
            to += to_step;                                                                                              \
        }                                                                                                               \
    }

/* 3 columns at stride 1 and padding 1: there are as many windows as columns, so that rows which lie end to end are one
 * long row. A block sums each kernel column by itself, all loads at the place of the sums; what kernel columns 1 and 2
 * have summed then slides by one and two lanes, from the block before, and sums that would cross the end of a row are
 * left out. Element i - 1 of the row gets, of window columns i - 2, i - 1 and i, the sums of kernel columns 2, 1, 0. */
#define ACLNN_BW_LINE(suffix, element, real)                                                                            \
    ACLNN_BW_INLINE void aclnn_bw_line_row_##suffix(                                                                    \
        aclnn_bw_sums_##real *sums, const aclnn_bw_words_##real *bits, const aclnn_bw_indices_##real *wanted,           \
        aclnn_bw_plane w, const aclnn_bw_term *term, int64_t i, uint32_t lanes, const int indexed, const int team,      \
        const int partial)                                                                                              \
    {                                                                                                                   \
        const char *mask = term->mask + i * (indexed ? 4 : 2);                                                          \
        aclnn_bw_words_##real words[3];                                                                                 \
        if (!indexed)                                                                                                   \
            for (int kw = 0; kw < 3; kw++)                                                                              \
                words[kw] = partial ? ACLNN_BW_SOME_WORDS_##real(lanes, mask + kw * w.column_step)                      \
                                    : ACLNN_BW_LOAD_WORDS_##real(mask + kw * w.column_step);                            \
        _Pragma("GCC unroll 4")                                                                                         \
        for (int channel = 0; channel < team; channel++) {                                                              \
            const char *grad = term->grad + i * (int64_t)sizeof(element) + channel * w.grad_channel;                    \
            aclnn_bw_sums_##real value = partial ? ACLNN_BW_LOAD_SOME_##suffix(lanes, grad)                             \
                                                 : ACLNN_BW_LOAD_##suffix(grad);                                        \
            if (indexed) {                                                                                              \
                aclnn_bw_indices_##real seen = partial                                                                  \
                    ? ACLNN_BW_SOME_INDICES_##real(lanes, mask + channel * w.mask_channel)                              \
                    : ACLNN_BW_LOAD_INDICES_##real(mask + channel * w.mask_channel);                                    \
                for (int kw = 0; kw < 3; kw++)                                                                          \
                    sums[3 * channel + kw] = aclnn_bw_add_indices_##real(sums[3 * channel + kw], seen, wanted[kw],      \
                                                                         value);                                        \
            } else                                                                                                      \
                for (int kw = 0; kw < 3; kw++)                                                                          \
                    sums[3 * channel + kw] = aclnn_bw_add_bits_##real(sums[3 * channel + kw], words[kw], bits[channel], \
                                                                      value);                                           \
        }                                                                                                               \
    }                                                                                                                   \
    /* n elements, whose windows lie at terms[t] in [begin, end) each; `place` is the index of the first. */            \
    ACLNN_BW_INLINE void aclnn_bw_line_##suffix(                                                                        \
        element *to, aclnn_bw_plane w, const aclnn_bw_term *terms, int64_t count, int64_t n, int32_t place,             \
        const int indexed, const int team)                                                                              \
    {                                                                                                                   \
        enum { WIDTH = aclnn_bw_width_##real };                                                                         \
        const int64_t step = WIDTH % w.columns;                                                                         \
        int64_t whole = 0, whole_end = n, x = w.columns - 1;                                                            \
        aclnn_bw_sums_##real before[2 * ACLNN_BW_TEAM];                                                                 \
        aclnn_bw_words_##real bits[ACLNN_BW_TEAM];                                                                      \
        for (int64_t t = 0; t < count; t++) {                                                                           \
            whole = terms[t].begin > whole ? terms[t].begin : whole;                                                    \
            whole_end = terms[t].end < whole_end ? terms[t].end : whole_end;                                            \
        }                                                                                                               \
        for (int channel = 0; channel < team; channel++) {                                                              \
            bits[channel] = ACLNN_BW_BIT_##real(w.bit << channel);                                                      \
            before[2 * channel] = before[2 * channel + 1] = ACLNN_BW_ZERO_##real;                                       \
        }                                                                                                               \
        for (int64_t i = 0; i <= n; i += WIDTH) {                                                                       \
            const uint32_t not_first = w.edges[x], not_last = w.edges[x + 1];                                           \
            aclnn_bw_sums_##real sums[3 * ACLNN_BW_TEAM];                                                               \
            aclnn_bw_indices_##real wanted[3];                                                                          \
            x += step;                                                                                                  \
            x -= x >= w.columns ? w.columns : 0;                                                                        \
            for (int sum = 0; sum < 3 * team; sum++)                                                                    \
                sums[sum] = ACLNN_BW_ZERO_##real;                                                                       \
            if (indexed)                                                                                                \
                for (int kw = 0; kw < 3; kw++)                                                                          \
                    wanted[kw] = ACLNN_BW_PLACES_##real((int32_t)(place + i + kw - 1), 1);                              \
            if (whole <= i && i + WIDTH <= whole_end)                                                                   \
                for (int64_t t = 0; t < count; t++)                                                                     \
                    aclnn_bw_line_row_##suffix(sums, bits, wanted, w, &terms[t], i, 0, indexed, team, 0);               \
            else                                                                                                        \
                for (int64_t t = 0; t < count; t++)                                                                     \
                    aclnn_bw_line_row_##suffix(sums, bits, wanted, w, &terms[t], i,                                     \
                                               aclnn_bw_lanes(&terms[t], i, WIDTH), indexed, team, 1);                  \
            _Pragma("GCC unroll 4")                                                                                     \
            for (int channel = 0; channel < team; channel++) {                                                          \
                element *out = to + channel * w.to_channel + i - 1;                                                     \
                aclnn_bw_prefetch(terms[0].grad + channel * w.grad_channel + w.grad_ahead                               \
                                  + i * (int64_t)sizeof(element), WIDTH * (int)sizeof(element));                        \
                if (indexed)                                                                                            \
                    aclnn_bw_prefetch(terms[0].mask + channel * w.mask_channel + w.mask_ahead + 4 * i, 4 * WIDTH);      \
                aclnn_bw_prefetch((const char *)out + w.to_ahead, WIDTH * (int)sizeof(element));                        \
                aclnn_bw_sums_##real *old = &before[2 * channel];                                                       \
                const aclnn_bw_sums_##real *new = &sums[3 * channel];                                                   \
                aclnn_bw_sums_##real sum = ACLNN_BW_SLIDE_##real(new[1], old[0], 1);                                    \
                sum = ACLNN_BW_ADD_SOME_##real(not_first, sum, ACLNN_BW_SLIDE_##real(new[2], old[1], 2));               \
                sum = ACLNN_BW_ADD_SOME_##real(not_last, sum, new[0]);                                                  \
                old[0] = new[1];                                                                                        \
                old[1] = new[2];                                                                                        \
                if (i > 0 && i - 1 + WIDTH <= n)                                                                        \
                    aclnn_bw_store_##suffix(out, sum);                                                                  \
                else {                                                                                                  \
                    const aclnn_bw_term inside = {NULL, NULL, 1, n + 1};                                                \
                    aclnn_bw_store_some_##suffix(out, aclnn_bw_lanes(&inside, i, WIDTH), sum);                          \
                }                                                                                                       \
            }                                                                                                           \
        }                                                                                                               \
    }
#define ACLNN_BW_KNOWN_ROWS(suffix, element, real)                                                                      \
    ACLNN_BW_ROWS(suffix, element, real)                                                                                \
    ACLNN_BW_LINE(suffix, element, real)                                                                                \
    ACLNN_BW_LINES(suffix, element, element)

#else
#define ACLNN_BW_HALVES 0
#define ACLNN_BW_ANY_TEAM 1     /* whether rows laid end to end take any number of channels at a time */
#define ACLNN_BW_LINE_CASES(CASE, suffix, element)                                                                      \
    CASE(suffix, element, 6, 0, aclnn_bw_lines_##suffix, 0, (int)plane->channels)                                       \
    CASE(suffix, element, 6, 2, aclnn_bw_lines_##suffix, 1, (int)plane->channels)
#define ACLNN_BW_PAIRED(suffix) aclnn_bw_pairs_##suffix

/* The sum of one column, one window after the other. */
#define ACLNN_BW_COLUMN(name, real, integer)                                                                            \
    ACLNN_BW_INLINE real name(aclnn_bw_plane w, const char *grad, const char *mask, int64_t mask_step, int64_t count,   \
                              int32_t place, int64_t column, const int k, const int s, const int p,                     \
                              const int indexed)                                                                        \
    {                                                                                                                   \
        real sum = 0;                                                                                                   \
        for (int64_t row = 0; row < count; row++) {                                                                     \
            for (int kw = k - 1; kw >= 0; kw--) {                                                                       \
                int64_t window = column / s + ACLNN_BW_SHIFT(kw);                                                       \
                if (column % s != ACLNN_BW_CLASS(kw) || window < 0 || window >= w.windows)                              \
                    continue;                                                                                           \
                integer bits;                                                                                           \
                real term;                                                                                              \
                int chosen = indexed                                                                                    \
                    ? ((const aclnn_bw_index *)mask)[window] == (int32_t)(place + column)                               \
                    : (((const aclnn_bw_word *)(mask + kw * w.column_step))[window] & w.bit) != 0;                      \
                memcpy(&bits, grad + window * (int64_t)sizeof bits, sizeof bits);                                       \
                bits &= -(integer)chosen;                                                                               \
                memcpy(&term, &bits, sizeof term);                                                                      \
                sum += term;                                                                                            \
            }                                                                                                           \
            grad += w.grad_step;                                                                                        \
            mask += mask_step;                                                                                          \
        }                                                                                                               \
        return sum;                                                                                                     \
    }
ACLNN_BW_COLUMN(aclnn_bw_column_f32, float, uint32_t)
ACLNN_BW_COLUMN(aclnn_bw_column_f64, double, uint64_t)

typedef aclnn_bw_float_bits aclnn_bw_float_indices;
#include "max_pool2d_pairs.h"
#include "max_pool2d_lines.h"
#include "max_pool2d_thirds.h"

#define ACLNN_BW_ROWS(suffix, element, real)                                                                            \
    ACLNN_BW_INLINE void aclnn_bw_row_##suffix(                                                                         \
        element *to, aclnn_bw_plane w, const char *grad_row, const char *mask_row, int64_t mask_step, int64_t count,    \
        int32_t place, const int k, const int s, const int p, const int indexed)                                        \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(element) };                                                       \
        /* Blocks in which every shift has a window; the columns beside them are done one by one. */                    \
        int64_t begin = ACLNN_BW_LOW < 0 ? -ACLNN_BW_LOW : 0;                                                           \
        int64_t end = w.windows - ACLNN_BW_HIGH < w.columns / s ? w.windows - ACLNN_BW_HIGH : w.columns / s;            \
        if (end - begin < WIDTH)                                                                                        \
            begin = end = 0;                                                                                            \
        for (int64_t column = 0; column < s * begin; column++)                                                          \
            to[column] = aclnn_bw_column_##suffix(w, grad_row, mask_row, mask_step, count, place, column, k, s, p,      \
                                                  indexed);                                                             \
        for (int64_t column = s * end; column < w.columns; column++)                                                    \
            to[column] = aclnn_bw_column_##suffix(w, grad_row, mask_row, mask_step, count, place, column, k, s, p,      \
                                                  indexed);                                                             \
        for (int64_t j = begin; j < end; j += WIDTH) {                                                                  \
            aclnn_bw_##element##s sums[2] = {{0}, {0}};                                                                 \
            aclnn_bw_##element##_indices wanted[2];                                                                     \
            const char *grad = grad_row, *mask = mask_row;                                                              \
            if (j > end - WIDTH)                                                                                        \
                j = end - WIDTH;                                                                                        \
            if (indexed)                                                                                                \
                for (int c = 0; c < s; c++) {                                                                           \
                    int32_t list[WIDTH];                                                                                \
                    for (int i = 0; i < WIDTH; i++)                                                                     \
                        list[i] = (int32_t)(place + s * (j + i) + c);                                                   \
                    memcpy(&wanted[c], list, sizeof list);                                                              \
                }                                                                                                       \
            for (int64_t row = 0; row < count; row++) {                                                                 \
                _Pragma("GCC unroll 4")                                                                                 \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int c = ACLNN_BW_CLASS(kw);                                                                   \
                    int64_t window = j + ACLNN_BW_SHIFT(kw);                                                            \
                    aclnn_bw_##element##s term;                                                                         \
                    aclnn_bw_##element##_bits chosen;                                                                   \
                    memcpy(&term, grad + window * (int64_t)sizeof(element), sizeof term);                               \
                    if (indexed) {                                                                                      \
                        aclnn_bw_##element##_indices seen;                                                              \
                        memcpy(&seen, mask + 4 * window, sizeof seen);                                                  \
                        chosen = __builtin_convertvector(seen == wanted[c], aclnn_bw_##element##_bits);                 \
                    } else {                                                                                            \
                        aclnn_bw_##element##_words seen;                                                                \
                        memcpy(&seen, mask + kw * w.column_step + 2 * window, sizeof seen);                             \
                        chosen = aclnn_bw_chosen_##element(seen, (int16_t)w.bit);                                       \
                    }                                                                                                   \
                    sums[c] += (aclnn_bw_##element##s)((aclnn_bw_##element##_bits)term & chosen);                       \
                }                                                                                                       \
                grad += w.grad_step;                                                                                    \
                mask += mask_step;                                                                                      \
            }                                                                                                           \
            if (s == 1)                                                                                                 \
                memcpy(to + j, &sums[0], sizeof sums[0]);                                                               \
            else                                                                                                        \
                for (int i = 0; i < WIDTH; i++) {                                                                       \
                    to[2 * (j + i)] = sums[0][i];                                                                       \
                    to[2 * (j + i) + 1] = sums[1][i];                                                                   \
                }                                                                                                       \
        }                                                                                                               \
    }                                                                                                                   \
    ACLNN_BW_INLINE void aclnn_bw_rows_##suffix(                                                                        \
        element *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh, const int k, const int s,  \
        const int p, const int indexed, const int team)                                                                 \
    {                                                                                                                   \
        const int64_t mask_step = w.windows * (indexed ? 4 : 2) - (indexed ? 0 : w.stride * k * w.column_step);         \
        int64_t oh_end = oh;                                                                                            \
        for (; ih < end; ih++) {                                                                                        \
            ACLNN_BW_FIND_WINDOWS(ih)                                                                                   \
            const char *mask = w.mask + oh * w.windows * (indexed ? 4 : 2)                                              \
                + (indexed ? 0 : (ih + w.pad - oh * w.stride) * k * w.column_step);                                     \
            for (int channel = 0; channel < team; channel++) {                                                          \
                aclnn_bw_plane one = w;                                                                                 \
                one.bit = (uint16_t)(w.bit << channel);                                                                 \
                aclnn_bw_row_##suffix(to + channel * w.to_channel, one,                                                 \
                                      w.grad + oh * w.grad_step + channel * w.grad_channel,                             \
                                      mask + (indexed ? channel * w.mask_channel : 0), mask_step, oh_end - oh,          \
                                      indexed ? (int32_t)(ih * w.columns) : 0, k, s, p, indexed);                       \
            }                                                                                                           \
            to += to_step;                                                                                              \
        }                                                                                                               \
    }
#define ACLNN_BW_KNOWN_ROWS(suffix, element, real)                                                                      \
    ACLNN_BW_PAIRS(suffix, element, element)                                                                            \
    ACLNN_BW_ROWS(suffix, element, real)                                                                                \
    ACLNN_BW_LINE(suffix, element, element)                                                                             \
    ACLNN_BW_LINES(suffix, element, element)
#endif

/* The forms of the known columns, by their number and 2 * indexed + team: a function each, for gcc 12 takes 1.4 times as
 * long to compile them as one. CASE is what is made of a form: its function, or the case of the switch that calls it. */
#define ACLNN_BW_FORMS(CASE, suffix, element, known, form, ...)                                                         \
    CASE(suffix, element, known, 0, form, __VA_ARGS__, 0, 1)                                                            \
    CASE(suffix, element, known, 1, form, __VA_ARGS__, 0, ACLNN_BW_TEAM)                                                \
    CASE(suffix, element, known, 2, form, __VA_ARGS__, 1, 1)                                                            \
    CASE(suffix, element, known, 3, form, __VA_ARGS__, 1, ACLNN_BW_TEAM)
#define ACLNN_BW_PAIR_CASES(CASE, suffix, element)                                                                      \
    ACLNN_BW_FORMS(CASE, suffix, element, 1, ACLNN_BW_PAIRED(suffix), 3, 2, 0)                                          \
    ACLNN_BW_FORMS(CASE, suffix, element, 2, ACLNN_BW_PAIRED(suffix), 3, 2, 1)                                          \
    ACLNN_BW_FORMS(CASE, suffix, element, 3, ACLNN_BW_PAIRED(suffix), 2, 2, 0)                                          \
    ACLNN_BW_FORMS(CASE, suffix, element, 4, ACLNN_BW_PAIRED(suffix), 2, 2, 1)
#define ACLNN_BW_ROW_CASES(CASE, suffix, element)                                                                       \
    ACLNN_BW_FORMS(CASE, suffix, element, 5, aclnn_bw_rows_##suffix, 3, 1, 0)
#define ACLNN_BW_FORM(suffix, element, known, kind, form, ...)                                                          \
    static __attribute__((noinline)) void aclnn_bw_form_##known##_##kind##_##suffix(                                    \
        element *to, int64_t to_step, const aclnn_bw_plane *plane, int64_t ih, int64_t end, int64_t oh)                 \
    {                                                                                                                   \
        form(to, to_step, *plane, ih, end, oh, __VA_ARGS__);                                                            \
    }
#define ACLNN_BW_CALL_FORM(suffix, element, known, kind, form, ...)                                                     \
    case 4 * known + kind: aclnn_bw_form_##known##_##kind##_##suffix(to, to_step, plane, ih, end, oh); break;
/* Rows laid end to end take any number of channels in one form where ACLNN_BW_ANY_TEAM. */
#define ACLNN_BW_KIND(known, indexed, team) \
    (4 * (known) + 2 * (indexed) + (ACLNN_BW_ANY_TEAM && (known) == ACLNN_BW_SAME ? 0 : (team)))

/* Rows [ih, end) of gradInput; oh is at most the first row of windows that holds row ih. `team`: ACLNN_BW_TEAM channels
 * at a time, else one. */
#define ACLNN_BW_KNOWN(suffix, element, real)                                                                           \
    ACLNN_BW_KNOWN_ROWS(suffix, element, real)                                                                          \
    ACLNN_BW_PAIR_CASES(ACLNN_BW_FORM, suffix, element)                                                                 \
    ACLNN_BW_ROW_CASES(ACLNN_BW_FORM, suffix, element)                                                                  \
    ACLNN_BW_LINE_CASES(ACLNN_BW_FORM, suffix, element)                                                                 \
    ACLNN_BW_THIRDS_##suffix                                                                                            \
    static inline void aclnn_bw_known_##suffix(element *to, int64_t to_step, const aclnn_bw_plane *plane, int64_t ih,   \
                                               int64_t end, int64_t oh, int known, int indexed, int team)               \
    {                                                                                                                   \
        ACLNN_BW_IF_THIRDS_##suffix                                                                                     \
        switch (ACLNN_BW_KIND(known, indexed, team)) {                                                                  \
        ACLNN_BW_PAIR_CASES(ACLNN_BW_CALL_FORM, suffix, element)                                                        \
        ACLNN_BW_ROW_CASES(ACLNN_BW_CALL_FORM, suffix, element)                                                         \
        ACLNN_BW_LINE_CASES(ACLNN_BW_CALL_FORM, suffix, element)                                                        \
        }                                                                                                               \
    }
ACLNN_BW_KNOWN(f32, float, f32)
ACLNN_BW_KNOWN(f64, double, f64)
#if ACLNN_BW_HALVES
ACLNN_BW_KNOWN(f16, uint16_t, f32)
ACLNN_BW_KNOWN(bf16, uint16_t, f32)
#elif ACLNN_BW_NARROWS(1)
/* Gradients are widened; what is stored is narrowed where ACLNN_BW_NARROWS says so. */
#define ACLNN_BW_KNOWN_NARROWED(suffix)                                                                                 \
    ACLNN_BW_PAIRS(suffix, uint16_t, float)                                                                             \
    ACLNN_BW_LINE(suffix, uint16_t, float)                                                                              \
    ACLNN_BW_LINES(suffix, uint16_t, float)                                                                             \
    ACLNN_BW_PAIR_CASES(ACLNN_BW_FORM, suffix, uint16_t)                                                                \
    ACLNN_BW_LINE_CASES(ACLNN_BW_FORM, suffix, uint16_t)                                                                \
    static inline void aclnn_bw_known_##suffix(void *out, int64_t to_step, const aclnn_bw_plane *plane, int64_t ih,     \
                                               int64_t end, int64_t oh, int known, int indexed, int team)               \
    {                                                                                                                   \
        uint16_t *to = (uint16_t *)out;                                                                                 \
        switch (ACLNN_BW_KIND(known, indexed, team)) {                                                                  \
        ACLNN_BW_PAIR_CASES(ACLNN_BW_CALL_FORM, suffix, uint16_t)                                                       \
        ACLNN_BW_LINE_CASES(ACLNN_BW_CALL_FORM, suffix, uint16_t)                                                       \
        default: aclnn_bw_known_f32((float *)out, to_step, plane, ih, end, oh, known, indexed, team);                   \
        }                                                                                                               \
    }
ACLNN_BW_KNOWN_NARROWED(f16)
ACLNN_BW_KNOWN_NARROWED(bf16)
#else
#define aclnn_bw_known_f16 aclnn_bw_known_f32
#define aclnn_bw_known_bf16 aclnn_bw_known_f32
#endif
#endif
