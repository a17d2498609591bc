/* Rows of the max pool: sums over the windows whose maximum lies at a position, and the maxima themselves.
 *
 * Masks are read and written bytewise (they may lie at any address), as little-endian words. The forms for AVX-512 and
 * for shorter vectors add the same terms in the same order, from +0.0, so the instruction set does not show in a result:
 * a term that is not selected adds +0.0, which changes nothing (a sum that starts from +0.0 is never -0.0).
 *
 * Why intrinsics: one instruction tests a bit in 16 words and leaves a lane mask, with which one more loads 16
 * gradients or zeros; gcc 12 does not find this in plain loops.
 */
#ifndef ACLNN_BW_MAX_POOL2D_H
#define ACLNN_BW_MAX_POOL2D_H
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define ACLNN_BW_LANE_MASKS 1
#else
#define ACLNN_BW_LANE_MASKS 0
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the mask of a max pool is little-endian; this code reads and writes it in the machine's own order"
#endif

#define ACLNN_BW_INLINE static inline __attribute__((always_inline))

/* What one kernel position contributes to a row of sums: element i is grad[i] if the mask at i says so. Elements
 * [begin, end) have a window there; of the others neither pointer is read. */
typedef struct {
    const char *grad;
    const char *mask;       /* words, or indices */
    int64_t begin;
    int64_t end;
} aclnn_bw_term;

/* How a mask is asked: for a bit of a word, or for an index, which for element i is first + i*step. */
typedef struct {
    uint16_t bit;
    int32_t first;
    int32_t step;
} aclnn_bw_question;

typedef uint16_t aclnn_bw_word __attribute__((aligned(1), may_alias));
typedef int32_t aclnn_bw_index __attribute__((aligned(1), may_alias));

ACLNN_BW_INLINE int aclnn_bw_is_chosen(const aclnn_bw_term *term, int64_t i, aclnn_bw_question q, int indexed)
{
    if (indexed)
        return ((const aclnn_bw_index *)term->mask)[i] == (int32_t)((uint32_t)q.first + (uint32_t)i * (uint32_t)q.step);
    return (((const aclnn_bw_word *)term->mask)[i] & q.bit) != 0;
}

#if ACLNN_BW_LANE_MASKS

/* The lanes of a block at i for which the term has windows. */
ACLNN_BW_INLINE uint32_t aclnn_bw_lanes(const aclnn_bw_term *term, int64_t i, int width)
{
    int64_t begin = term->begin - i, end = term->end - i;
    begin = begin < 0 ? 0 : begin;
    end = end > width ? width : end;
    return end <= begin ? 0 : ((1u << end) - 1) & ~((1u << begin) - 1);
}

ACLNN_BW_INLINE __m512 aclnn_bw_block_f32(const aclnn_bw_term *terms, int64_t count, int64_t i, aclnn_bw_question q,
                                          int indexed, int partial)
{
    __m512 sum = _mm512_setzero_ps();
    __m256i bit = _mm256_set1_epi16((short)q.bit);
    __m512i wanted = _mm512_setzero_si512();
    if (indexed)
        wanted = _mm512_add_epi32(
            _mm512_set1_epi32((int32_t)((uint32_t)q.first + (uint32_t)i * (uint32_t)q.step)),
            _mm512_mullo_epi32(_mm512_set1_epi32(q.step),
                               _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
    for (int64_t t = 0; t < count; t++) {
        const char *grad = terms[t].grad + 4 * i;
        const char *mask = terms[t].mask + (indexed ? 4 : 2) * i;
        __mmask16 chosen, lanes = 0xffff;
        if (partial)
            lanes = (__mmask16)aclnn_bw_lanes(&terms[t], i, 16);
        if (indexed)
            chosen = partial
                ? _mm512_mask_cmpeq_epi32_mask(lanes, wanted, _mm512_maskz_loadu_epi32(lanes, mask))
                : _mm512_cmpeq_epi32_mask(wanted, _mm512_loadu_si512(mask));
        else
            chosen = partial
                ? _mm256_test_epi16_mask(_mm256_maskz_loadu_epi16(lanes, mask), bit)
                : _mm256_test_epi16_mask(_mm256_loadu_si256((const __m256i *)(const void *)mask), bit);
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(chosen, grad));
    }
    return sum;
}

ACLNN_BW_INLINE __m512d aclnn_bw_block_f64(const aclnn_bw_term *terms, int64_t count, int64_t i, aclnn_bw_question q,
                                           int indexed, int partial)
{
    __m512d sum = _mm512_setzero_pd();
    __m128i bit = _mm_set1_epi16((short)q.bit);
    __m256i wanted = _mm256_setzero_si256();
    if (indexed)
        wanted = _mm256_add_epi32(
            _mm256_set1_epi32((int32_t)((uint32_t)q.first + (uint32_t)i * (uint32_t)q.step)),
            _mm256_mullo_epi32(_mm256_set1_epi32(q.step), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0)));
    for (int64_t t = 0; t < count; t++) {
        const char *grad = terms[t].grad + 8 * i;
        const char *mask = terms[t].mask + (indexed ? 4 : 2) * i;
        __mmask8 chosen, lanes = 0xff;
        if (partial)
            lanes = (__mmask8)aclnn_bw_lanes(&terms[t], i, 8);
        if (indexed)
            chosen = partial
                ? _mm256_mask_cmpeq_epi32_mask(lanes, wanted, _mm256_maskz_loadu_epi32(lanes, mask))
                : _mm256_cmpeq_epi32_mask(wanted, _mm256_loadu_si256((const __m256i *)(const void *)mask));
        else
            chosen = partial
                ? _mm_test_epi16_mask(_mm_maskz_loadu_epi16(lanes, mask), bit)
                : _mm_test_epi16_mask(_mm_loadu_si128((const __m128i *)(const void *)mask), bit);
        sum = _mm512_add_pd(sum, _mm512_maskz_loadu_pd(chosen, grad));
    }
    return sum;
}

#define ACLNN_BW_GATHER_BODY(real, block, width, store, mask_store, mask_type)                                          \
    int64_t first_whole = 0, end_whole = n;                                                                             \
    for (int64_t t = 0; t < count; t++) {                                                                               \
        first_whole = terms[t].begin > first_whole ? terms[t].begin : first_whole;                                      \
        end_whole = terms[t].end < end_whole ? terms[t].end : end_whole;                                                \
    }                                                                                                                   \
    if (n < width) {                                                                                                    \
        mask_store(to, (mask_type)((1u << n) - 1), block(terms, count, 0, q, indexed, 1));                              \
        return;                                                                                                         \
    }                                                                                                                   \
    for (int64_t i = 0; i < n; i += width) {                                                                            \
        if (i > n - width)                                                                                              \
            i = n - width; /* the last block overlaps the one before: a masked store takes longer */                    \
        if (i >= first_whole && i + width <= end_whole)                                                                 \
            store(to + i, block(terms, count, i, q, indexed, 0));                                                       \
        else                                                                                                            \
            store(to + i, block(terms, count, i, q, indexed, 1));                                                       \
    }

#else

#if defined(__AVX2__)
#define ACLNN_BW_VECTOR_BYTES 32
#else
#define ACLNN_BW_VECTOR_BYTES 16
#endif

typedef float aclnn_bw_floats __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));
typedef int32_t aclnn_bw_float_bits __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));
typedef int16_t aclnn_bw_float_words __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES / 2)));
typedef double aclnn_bw_doubles __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));
typedef int64_t aclnn_bw_double_bits __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));
typedef int32_t aclnn_bw_double_indices __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES / 2)));
typedef int16_t aclnn_bw_double_words __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES / 4)));

/* The sums of whole blocks; the elements that some term does not reach are done one by one. `indices` is a vector of as
 * many int32 as a block has elements. */
#define ACLNN_BW_GATHER_BODY(real, integer, reals, bits, indices, words)                                                \
    enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                              \
    int64_t first_whole = 0, end_whole = n;                                                                             \
    for (int64_t t = 0; t < count; t++) {                                                                               \
        first_whole = terms[t].begin > first_whole ? terms[t].begin : first_whole;                                      \
        end_whole = terms[t].end < end_whole ? terms[t].end : end_whole;                                                \
    }                                                                                                                   \
    if (end_whole - first_whole < WIDTH)                                                                                \
        first_whole = end_whole = n;                                                                                    \
    for (int64_t i = first_whole; i < end_whole; i += WIDTH) {                                                          \
        reals sum = {0};                                                                                                \
        indices wanted;                                                                                                 \
        if (i > end_whole - WIDTH)                                                                                      \
            i = end_whole - WIDTH;                                                                                      \
        if (indexed)                                                                                                    \
            for (int j = 0; j < WIDTH; j++)                                                                             \
                wanted[j] = (int32_t)((uint32_t)q.first + (uint32_t)(i + j) * (uint32_t)q.step);                        \
        for (int64_t t = 0; t < count; t++) {                                                                           \
            reals grad;                                                                                                 \
            bits chosen;                                                                                                \
            memcpy(&grad, terms[t].grad + i * (int64_t)sizeof(real), sizeof grad);                                      \
            if (indexed) {                                                                                              \
                indices seen;                                                                                           \
                memcpy(&seen, terms[t].mask + 4 * i, sizeof seen);                                                      \
                chosen = __builtin_convertvector(seen == wanted, bits);                                                 \
            } else {                                                                                                    \
                words seen;                                                                                             \
                memcpy(&seen, terms[t].mask + 2 * i, sizeof seen);                                                      \
                chosen = __builtin_convertvector((seen & (int16_t)q.bit) != 0, bits);                                   \
            }                                                                                                           \
            sum += (reals)((bits)grad & chosen);                                                                        \
        }                                                                                                               \
        memcpy(to + i, &sum, sizeof sum);                                                                               \
    }                                                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                   \
        real sum = 0;                                                                                                   \
        if (i == first_whole) {                                                                                         \
            i = end_whole;                                                                                              \
            if (i >= n)                                                                                                 \
                break;                                                                                                  \
        }                                                                                                               \
        for (int64_t t = 0; t < count; t++)                                                                             \
            if (terms[t].begin <= i && i < terms[t].end) {                                                              \
                integer grad;                                                                                           \
                real term;                                                                                              \
                memcpy(&grad, terms[t].grad + i * (int64_t)sizeof(real), sizeof grad);                                  \
                grad &= -(integer)aclnn_bw_is_chosen(&terms[t], i, q, indexed);                                         \
                memcpy(&term, &grad, sizeof term);                                                                      \
                sum += term;                                                                                            \
            }                                                                                                           \
        to[i] = sum;                                                                                                    \
    }

#endif

ACLNN_BW_INLINE void aclnn_bw_gather_any_f32(float *to, const aclnn_bw_term *terms, int64_t count, int64_t n,
                                             aclnn_bw_question q, int indexed)
{
#if ACLNN_BW_LANE_MASKS
    ACLNN_BW_GATHER_BODY(float, aclnn_bw_block_f32, 16, _mm512_storeu_ps, _mm512_mask_storeu_ps, __mmask16)
#else
    ACLNN_BW_GATHER_BODY(float, uint32_t, aclnn_bw_floats, aclnn_bw_float_bits, aclnn_bw_float_bits,
                         aclnn_bw_float_words)
#endif
}

ACLNN_BW_INLINE void aclnn_bw_gather_any_f64(double *to, const aclnn_bw_term *terms, int64_t count, int64_t n,
                                             aclnn_bw_question q, int indexed)
{
#if ACLNN_BW_LANE_MASKS
    ACLNN_BW_GATHER_BODY(double, aclnn_bw_block_f64, 8, _mm512_storeu_pd, _mm512_mask_storeu_pd, __mmask8)
#else
    ACLNN_BW_GATHER_BODY(double, uint64_t, aclnn_bw_doubles, aclnn_bw_double_bits, aclnn_bw_double_indices,
                         aclnn_bw_double_words)
#endif
}

/* to[i] = the sum of terms[t].grad[i] over the terms that are chosen there, for i < n; ascending t. The counts of small
 * kernels are unrolled. */
#define ACLNN_BW_GATHER(name, real, any, indexed)                                                                       \
    static inline void name(real *to, const aclnn_bw_term *terms, int64_t count, int64_t n, aclnn_bw_question q)        \
    {                                                                                                                   \
        switch (count) {                                                                                                \
        case 1: any(to, terms, 1, n, q, indexed); break;                                                                \
        case 2: any(to, terms, 2, n, q, indexed); break;                                                                \
        case 3: any(to, terms, 3, n, q, indexed); break;                                                                \
        case 4: any(to, terms, 4, n, q, indexed); break;                                                                \
        default: any(to, terms, count, n, q, indexed);                                                                  \
        }                                                                                                               \
    }
ACLNN_BW_GATHER(aclnn_bw_gather_bits_f32, float, aclnn_bw_gather_any_f32, 0)
ACLNN_BW_GATHER(aclnn_bw_gather_bits_f64, double, aclnn_bw_gather_any_f64, 0)
ACLNN_BW_GATHER(aclnn_bw_gather_indices_f32, float, aclnn_bw_gather_any_f32, 1)
ACLNN_BW_GATHER(aclnn_bw_gather_indices_f64, double, aclnn_bw_gather_any_f64, 1)

/* A plane of windows, and its mask: `mask` points to the plane's indices, or to the words of its group at window (0, 0)
 * and kernel position 0. Rows of windows are grad_step and mask_step bytes apart (mask_step: from a row of windows to
 * the one that holds the same row of gradInput, stride kernel rows earlier), kernel positions column_step bytes. */
typedef struct {
    const char *grad;
    const char *mask;
    int64_t grad_step;
    int64_t mask_step;
    int64_t column_step;
    int64_t window_rows;
    int64_t windows;        /* in a row */
    int64_t columns;        /* of gradInput */
    int64_t kernel;         /* along h, as are stride and pad */
    int64_t stride;
    int64_t pad;
    int64_t grad_channel;   /* bytes to the next channel's plane of windows */
    int64_t mask_channel;   /* bytes to the next channel's plane of indices */
    int64_t to_channel;     /* elements to the next channel's rows of gradInput */
    uint16_t bit;           /* of the first channel */
} aclnn_bw_plane;

/* Channels of a group that are summed at a time: they share the mask words, or the indices that are looked for, and what
 * it costs to walk the rows. */
#define ACLNN_BW_TEAM 4

/* Rows of gradInput for a kernel of k columns, stride s and padding p that are known when this is compiled: half the
 * time of the general form, for addresses and phases cost nothing. Column s*j + c belongs to the windows j + shift at
 * kernel columns kw with c + p - kw = s*shift. */
#define ACLNN_BW_CLASS(kw) ((((kw) - p) % s + s) % s)
#define ACLNN_BW_SHIFT(kw) ((ACLNN_BW_CLASS(kw) + p - (kw)) / s)
#define ACLNN_BW_LOW ACLNN_BW_SHIFT(k - 1)
#define ACLNN_BW_HIGH (ACLNN_BW_SHIFT(0) > ACLNN_BW_SHIFT(1) ? ACLNN_BW_SHIFT(0) : ACLNN_BW_SHIFT(1))

/* The sum of one column, one window after the other. */
#define ACLNN_BW_COLUMN(name, real, integer)                                                                            \
    ACLNN_BW_INLINE real name(aclnn_bw_plane w, const char *grad, const char *mask, int64_t count, int32_t row_start,   \
                              int64_t column, const int k, const int s, const int p, const int indexed)                 \
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
                    ? ((const aclnn_bw_index *)mask)[window] == (int32_t)(row_start + column)                           \
                    : (((const aclnn_bw_word *)(mask + kw * w.column_step))[window] & w.bit) != 0;                      \
                memcpy(&bits, grad + window * (int64_t)sizeof bits, sizeof bits);                                       \
                bits &= -(integer)chosen;                                                                               \
                memcpy(&term, &bits, sizeof term);                                                                      \
                sum += term;                                                                                            \
            }                                                                                                           \
            grad += w.grad_step;                                                                                        \
            mask += w.mask_step;                                                                                        \
        }                                                                                                               \
        return sum;                                                                                                     \
    }
ACLNN_BW_COLUMN(aclnn_bw_column_f32, float, uint32_t)
ACLNN_BW_COLUMN(aclnn_bw_column_f64, double, uint64_t)

#if ACLNN_BW_LANE_MASKS

/* For each kernel column the lanes of a block at j that have a window. */
ACLNN_BW_INLINE void aclnn_bw_block_lanes(uint32_t *lanes, int64_t j, int64_t windows, int width, const int k,
                                          const int s, const int p)
{
    for (int kw = 0; kw < k; kw++) {
        int64_t begin = -(j + ACLNN_BW_SHIFT(kw)), end = windows - (j + ACLNN_BW_SHIFT(kw));
        begin = begin < 0 ? 0 : begin;
        end = end > width ? width : end;
        lanes[kw] = end <= begin ? 0 : ((1u << end) - 1) & ~((1u << begin) - 1);
    }
}

/* The sums of a block of columns at j, by class. */
#define ACLNN_BW_ROW_BLOCK(name, vector, width, zero, add, load_chosen, index_lanes, word_lanes, index_vector,          \
                           words_vector, word_vector, load_index, load_words, load_some_index, load_some_words,         \
                           set_index, add_index, iota, bytes)                                                           \
    ACLNN_BW_INLINE void name(vector *sums, aclnn_bw_plane w, const char *grad_row, const char *mask_row,               \
                              int64_t count, int32_t row_start, int64_t j, const uint32_t *lanes, const int k,          \
                              const int s, const int p, const int indexed, const int team, const int partial)           \
    {                                                                                                                   \
        index_vector wanted[2];                                                                                         \
        words_vector bits[ACLNN_BW_TEAM];                                                                               \
        for (int channel = 0; channel < team; channel++) {                                                              \
            bits[channel] = word_vector((short)(w.bit << channel));                                                     \
            sums[2 * channel] = sums[2 * channel + 1] = zero();                                                         \
        }                                                                                                               \
        if (indexed)                                                                                                    \
            for (int c = 0; c < s; c++)                                                                                 \
                wanted[c] = add_index(set_index((int32_t)(row_start + s * j + c)), iota(s));                            \
        for (int64_t row = 0; row < count; row++) {                                                                     \
            _Pragma("GCC unroll 4")                                                                                     \
            for (int kw = k - 1; kw >= 0; kw--) {                                                                       \
                const int c = ACLNN_BW_CLASS(kw);                                                                       \
                const char *grad = grad_row + (j + ACLNN_BW_SHIFT(kw)) * bytes;                                         \
                if (indexed) {                                                                                          \
                    const char *mask = mask_row + (j + ACLNN_BW_SHIFT(kw)) * 4;                                         \
                    _Pragma("GCC unroll 4")                                                                             \
                    for (int channel = 0; channel < team; channel++) {                                                  \
                        uint32_t chosen = partial                                                                       \
                            ? index_lanes(load_some_index(lanes[kw], mask), wanted[c]) & lanes[kw]                      \
                            : index_lanes(load_index((const void *)mask), wanted[c]);                                   \
                        sums[2 * channel + c] = add(sums[2 * channel + c],                                              \
                                                    load_chosen(chosen, grad + channel * w.grad_channel));              \
                        mask += w.mask_channel;                                                                         \
                    }                                                                                                   \
                } else {                                                                                                \
                    const char *mask = mask_row + kw * w.column_step + (j + ACLNN_BW_SHIFT(kw)) * 2;                    \
                    words_vector words = partial ? load_some_words(lanes[kw], mask) : load_words((const void *)mask);   \
                    _Pragma("GCC unroll 4")                                                                             \
                    for (int channel = 0; channel < team; channel++)                                                    \
                        sums[2 * channel + c] = add(sums[2 * channel + c],                                              \
                                                    load_chosen(word_lanes(words, bits[channel]),                       \
                                                                grad + channel * w.grad_channel));                      \
                }                                                                                                       \
            }                                                                                                           \
            grad_row += w.grad_step;                                                                                    \
            mask_row += w.mask_step;                                                                                    \
        }                                                                                                               \
    }
#define ACLNN_BW_LOAD_8_WORDS(from) _mm_loadu_si128((const __m128i *)(from))
#define ACLNN_BW_LOAD_16_WORDS(from) _mm256_loadu_si256((const __m256i *)(from))
#define ACLNN_BW_LOAD_8_INDICES(from) _mm256_loadu_si256((const __m256i *)(from))
#define ACLNN_BW_IOTA_8(s) _mm256_set_epi32(7 * s, 6 * s, 5 * s, 4 * s, 3 * s, 2 * s, s, 0)
#define ACLNN_BW_IOTA_16(s)                                                                                             \
    _mm512_set_epi32(15 * s, 14 * s, 13 * s, 12 * s, 11 * s, 10 * s, 9 * s, 8 * s, 7 * s, 6 * s, 5 * s, 4 * s, 3 * s,   \
                     2 * s, s, 0)
ACLNN_BW_ROW_BLOCK(aclnn_bw_row_block_f32, __m512, 16, _mm512_setzero_ps, _mm512_add_ps, _mm512_maskz_loadu_ps,
                   _mm512_cmpeq_epi32_mask, _mm256_test_epi16_mask, __m512i, __m256i, _mm256_set1_epi16,
                   _mm512_loadu_si512, ACLNN_BW_LOAD_16_WORDS, _mm512_maskz_loadu_epi32, _mm256_maskz_loadu_epi16,
                   _mm512_set1_epi32, _mm512_add_epi32, ACLNN_BW_IOTA_16, 4)
ACLNN_BW_ROW_BLOCK(aclnn_bw_row_block_f64, __m512d, 8, _mm512_setzero_pd, _mm512_add_pd, _mm512_maskz_loadu_pd,
                   _mm256_cmpeq_epi32_mask, _mm_test_epi16_mask, __m256i, __m128i, _mm_set1_epi16,
                   ACLNN_BW_LOAD_8_INDICES, ACLNN_BW_LOAD_8_WORDS, _mm256_maskz_loadu_epi32, _mm_maskz_loadu_epi16,
                   _mm256_set1_epi32, _mm256_add_epi32, ACLNN_BW_IOTA_8, 8)

ACLNN_BW_INLINE void aclnn_bw_store_block_f32(float *to, const __m512 *sums, int64_t columns, const int s)
{
    __m512 low = sums[0], high = sums[0];
    if (s == 2) {
        low = _mm512_permutex2var_ps(
            sums[0], _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0), sums[1]);
        high = _mm512_permutex2var_ps(
            sums[0], _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8), sums[1]);
    }
    if (columns >= 16 * s) {
        _mm512_storeu_ps(to, low);
        if (s == 2)
            _mm512_storeu_ps(to + 16, high);
        return;
    }
    if (columns < 16) {
        _mm512_mask_storeu_ps(to, (__mmask16)((1u << columns) - 1), low);
        return;
    }
    _mm512_storeu_ps(to, low);
    _mm512_mask_storeu_ps(to + 16, (__mmask16)((1u << (columns - 16)) - 1), high);
}

ACLNN_BW_INLINE void aclnn_bw_store_block_f64(double *to, const __m512d *sums, int64_t columns, const int s)
{
    __m512d low = sums[0], high = sums[0];
    if (s == 2) {
        low = _mm512_permutex2var_pd(sums[0], _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), sums[1]);
        high = _mm512_permutex2var_pd(sums[0], _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), sums[1]);
    }
    if (columns >= 8 * s) {
        _mm512_storeu_pd(to, low);
        if (s == 2)
            _mm512_storeu_pd(to + 8, high);
        return;
    }
    if (columns < 8) {
        _mm512_mask_storeu_pd(to, (__mmask8)((1u << columns) - 1), low);
        return;
    }
    _mm512_storeu_pd(to, low);
    _mm512_mask_storeu_pd(to + 8, (__mmask8)((1u << (columns - 8)) - 1), high);
}

#define ACLNN_BW_ROW(name, real, vector, width_of, block, store)                                                        \
    ACLNN_BW_INLINE void name(real *to, aclnn_bw_plane w, const char *grad, const char *mask, int64_t count,            \
                              int32_t row_start, const uint32_t *lanes, const int k, const int s, const int p,          \
                              const int indexed, const int team)                                                        \
    {                                                                                                                   \
        int64_t n = (w.columns + s - 1) / s;                                                                            \
        /* The last block overlaps the one before, for a masked store takes longer; unless half of a pair would lie     \
         * outside the row. */                                                                                          \
        int64_t last = w.columns % s == 0 && n >= width_of ? n - width_of : (n - 1) / width_of * width_of;              \
        vector sums[2 * ACLNN_BW_TEAM];                                                                                 \
        for (int64_t j = 0; j < n; j += width_of) {                                                                     \
            uint32_t others[4];                                                                                         \
            if (j > last)                                                                                               \
                j = last;                                                                                               \
            if (j + ACLNN_BW_LOW >= 0 && j + ACLNN_BW_HIGH + width_of <= w.windows)                                     \
                block(sums, w, grad, mask, count, row_start, j, lanes, k, s, p, indexed, team, 0);                      \
            else {                                                                                                      \
                const uint32_t *some = j == 0 ? lanes : lanes + 4;                                                      \
                if (j != 0 && j != last) {                                                                              \
                    aclnn_bw_block_lanes(others, j, w.windows, width_of, k, s, p);                                      \
                    some = others;                                                                                      \
                }                                                                                                       \
                block(sums, w, grad, mask, count, row_start, j, some, k, s, p, indexed, team, 1);                       \
            }                                                                                                           \
            for (int channel = 0; channel < team; channel++)                                                            \
                store(to + channel * w.to_channel + s * j, sums + 2 * channel, w.columns - s * j, s);                   \
        }                                                                                                               \
    }                                                                                                                   \
    ACLNN_BW_INLINE void name##_lanes(uint32_t *lanes, aclnn_bw_plane w, const int k, const int s, const int p)         \
    {                                                                                                                   \
        int64_t n = (w.columns + s - 1) / s;                                                                            \
        int64_t last = w.columns % s == 0 && n >= width_of ? n - width_of : (n - 1) / width_of * width_of;              \
        aclnn_bw_block_lanes(lanes, 0, w.windows, width_of, k, s, p);                                                   \
        aclnn_bw_block_lanes(lanes + 4, last, w.windows, width_of, k, s, p);                                            \
    }
ACLNN_BW_ROW(aclnn_bw_row_f32, float, __m512, 16, aclnn_bw_row_block_f32, aclnn_bw_store_block_f32)
ACLNN_BW_ROW(aclnn_bw_row_f64, double, __m512d, 8, aclnn_bw_row_block_f64, aclnn_bw_store_block_f64)

#else

#define ACLNN_BW_ROW(name, real, reals, bits, indices, words, column_sum)                                               \
    ACLNN_BW_INLINE void name##_of_one(real *to, aclnn_bw_plane w, const char *grad_row, const char *mask_row,          \
                                       int64_t count, int32_t row_start, const int k, const int s, const int p,         \
                                       const int indexed)                                                               \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        /* Blocks in which every shift has a window; the columns beside them are done one by one. */                    \
        int64_t begin = ACLNN_BW_LOW < 0 ? -ACLNN_BW_LOW : 0;                                                           \
        int64_t end = w.windows - ACLNN_BW_HIGH < w.columns / s ? w.windows - ACLNN_BW_HIGH : w.columns / s;            \
        if (end - begin < WIDTH)                                                                                        \
            begin = end = 0;                                                                                            \
        for (int64_t column = 0; column < s * begin; column++)                                                          \
            to[column] = column_sum(w, grad_row, mask_row, count, row_start, column, k, s, p, indexed);                 \
        for (int64_t column = s * end; column < w.columns; column++)                                                    \
            to[column] = column_sum(w, grad_row, mask_row, count, row_start, column, k, s, p, indexed);                 \
        for (int64_t j = begin; j < end; j += WIDTH) {                                                                  \
            reals sums[2] = {{0}, {0}};                                                                                 \
            indices wanted[2];                                                                                          \
            const char *grad = grad_row, *mask = mask_row;                                                              \
            if (j > end - WIDTH)                                                                                        \
                j = end - WIDTH;                                                                                        \
            if (indexed)                                                                                                \
                for (int c = 0; c < s; c++) {                                                                           \
                    int32_t list[WIDTH];                                                                                \
                    for (int i = 0; i < WIDTH; i++)                                                                     \
                        list[i] = (int32_t)(row_start + s * (j + i) + c);                                               \
                    memcpy(&wanted[c], list, sizeof list);                                                              \
                }                                                                                                       \
            for (int64_t row = 0; row < count; row++) {                                                                 \
                _Pragma("GCC unroll 4")                                                                                 \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int c = ACLNN_BW_CLASS(kw);                                                                   \
                    int64_t window = j + ACLNN_BW_SHIFT(kw);                                                            \
                    reals term;                                                                                         \
                    bits chosen;                                                                                        \
                    memcpy(&term, grad + window * (int64_t)sizeof(real), sizeof term);                                  \
                    if (indexed) {                                                                                      \
                        indices seen;                                                                                   \
                        memcpy(&seen, mask + 4 * window, sizeof seen);                                                  \
                        chosen = __builtin_convertvector(seen == wanted[c], bits);                                      \
                    } else {                                                                                            \
                        words seen;                                                                                     \
                        memcpy(&seen, mask + kw * w.column_step + 2 * window, sizeof seen);                             \
                        chosen = __builtin_convertvector((seen & (int16_t)w.bit) != 0, bits);                           \
                    }                                                                                                   \
                    sums[c] += (reals)((bits)term & chosen);                                                            \
                }                                                                                                       \
                grad += w.grad_step;                                                                                    \
                mask += w.mask_step;                                                                                    \
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
    ACLNN_BW_INLINE void name(real *to, aclnn_bw_plane w, const char *grad, const char *mask, int64_t count,            \
                              int32_t row_start, const uint32_t *lanes, const int k, const int s, const int p,          \
                              const int indexed, const int team)                                                        \
    {                                                                                                                   \
        (void)lanes;                                                                                                    \
        for (int channel = 0; channel < team; channel++) {                                                              \
            name##_of_one(to, w, grad, mask, count, row_start, k, s, p, indexed);                                       \
            to += w.to_channel;                                                                                         \
            grad += w.grad_channel;                                                                                     \
            mask += indexed ? w.mask_channel : 0;                                                                       \
            w.bit = (uint16_t)(w.bit << 1);                                                                             \
        }                                                                                                               \
    }                                                                                                                   \
    ACLNN_BW_INLINE void name##_lanes(uint32_t *lanes, aclnn_bw_plane w, const int k, const int s, const int p)         \
    {                                                                                                                   \
        (void)lanes, (void)w, (void)k, (void)s, (void)p;                                                                \
    }
ACLNN_BW_ROW(aclnn_bw_row_f32, float, aclnn_bw_floats, aclnn_bw_float_bits, aclnn_bw_float_bits, aclnn_bw_float_words,
             aclnn_bw_column_f32)
ACLNN_BW_ROW(aclnn_bw_row_f64, double, aclnn_bw_doubles, aclnn_bw_double_bits, aclnn_bw_double_indices,
             aclnn_bw_double_words, aclnn_bw_column_f64)

#endif

/* The number by which the functions below know a geometry of columns; 0 if they do not. */
static inline int aclnn_bw_known_columns(int64_t k, int64_t s, int64_t p)
{
    return k == 3 && s == 2 ? 1 + (int)p : k == 2 && s == 2 ? 3 + (int)p : k == 3 && s == 1 ? 5 + (int)p : 0;
}

/* Rows [ih, end) of gradInput; oh is at most the first row of windows that holds row ih. */
#define ACLNN_BW_ROWS(name, real, row)                                                                                  \
    ACLNN_BW_INLINE void name(real *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh,         \
                              const int k, const int s, const int p, const int indexed, const int team)                 \
    {                                                                                                                   \
        uint32_t lanes[8];                                                                                              \
        int64_t oh_end = oh;                                                                                            \
        row##_lanes(lanes, w, k, s, p);                                                                                 \
        for (; ih < end; ih++) {                                                                                        \
            while (oh < w.window_rows && oh * w.stride - w.pad + w.kernel <= ih)                                        \
                oh++;                                                                                                   \
            oh_end = oh_end < oh ? oh : oh_end;                                                                         \
            while (oh_end < w.window_rows && oh_end * w.stride - w.pad <= ih)                                           \
                oh_end++;                                                                                               \
            row(to, w, w.grad + oh * w.grad_step,                                                                       \
                w.mask + (indexed ? oh * w.mask_step                                                                    \
                                  : (ih + w.pad - oh * w.stride) * k * w.column_step + 2 * oh * w.windows),             \
                oh_end - oh, indexed ? (int32_t)(ih * w.columns) : 0, lanes, k, s, p, indexed, team);                   \
            to += to_step;                                                                                              \
        }                                                                                                               \
    }                                                                                                                   \
    /* `team`: ACLNN_BW_TEAM channels at a time, else one */                                                            \
    static inline void name##_known(real *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh,   \
                                    int known, int indexed, int team)                                                   \
    {                                                                                                                   \
        switch (4 * known + 2 * indexed + team) {                                                                       \
        case 4: name(to, to_step, w, ih, end, oh, 3, 2, 0, 0, 1); break;                                                \
        case 5: name(to, to_step, w, ih, end, oh, 3, 2, 0, 0, ACLNN_BW_TEAM); break;                                    \
        case 6: name(to, to_step, w, ih, end, oh, 3, 2, 0, 1, 1); break;                                                \
        case 7: name(to, to_step, w, ih, end, oh, 3, 2, 0, 1, ACLNN_BW_TEAM); break;                                    \
        case 8: name(to, to_step, w, ih, end, oh, 3, 2, 1, 0, 1); break;                                                \
        case 9: name(to, to_step, w, ih, end, oh, 3, 2, 1, 0, ACLNN_BW_TEAM); break;                                    \
        case 10: name(to, to_step, w, ih, end, oh, 3, 2, 1, 1, 1); break;                                               \
        case 11: name(to, to_step, w, ih, end, oh, 3, 2, 1, 1, ACLNN_BW_TEAM); break;                                   \
        case 12: name(to, to_step, w, ih, end, oh, 2, 2, 0, 0, 1); break;                                               \
        case 13: name(to, to_step, w, ih, end, oh, 2, 2, 0, 0, ACLNN_BW_TEAM); break;                                   \
        case 14: name(to, to_step, w, ih, end, oh, 2, 2, 0, 1, 1); break;                                               \
        case 15: name(to, to_step, w, ih, end, oh, 2, 2, 0, 1, ACLNN_BW_TEAM); break;                                   \
        case 16: name(to, to_step, w, ih, end, oh, 2, 2, 1, 0, 1); break;                                               \
        case 17: name(to, to_step, w, ih, end, oh, 2, 2, 1, 0, ACLNN_BW_TEAM); break;                                   \
        case 18: name(to, to_step, w, ih, end, oh, 2, 2, 1, 1, 1); break;                                               \
        case 19: name(to, to_step, w, ih, end, oh, 2, 2, 1, 1, ACLNN_BW_TEAM); break;                                   \
        case 20: name(to, to_step, w, ih, end, oh, 3, 1, 0, 0, 1); break;                                               \
        case 21: name(to, to_step, w, ih, end, oh, 3, 1, 0, 0, ACLNN_BW_TEAM); break;                                   \
        case 22: name(to, to_step, w, ih, end, oh, 3, 1, 0, 1, 1); break;                                               \
        case 23: name(to, to_step, w, ih, end, oh, 3, 1, 0, 1, ACLNN_BW_TEAM); break;                                   \
        case 24: name(to, to_step, w, ih, end, oh, 3, 1, 1, 0, 1); break;                                               \
        case 25: name(to, to_step, w, ih, end, oh, 3, 1, 1, 0, ACLNN_BW_TEAM); break;                                   \
        case 26: name(to, to_step, w, ih, end, oh, 3, 1, 1, 1, 1); break;                                               \
        case 27: name(to, to_step, w, ih, end, oh, 3, 1, 1, 1, ACLNN_BW_TEAM); break;                                   \
        }                                                                                                               \
    }
ACLNN_BW_ROWS(aclnn_bw_rows_f32, float, aclnn_bw_row_f32)
ACLNN_BW_ROWS(aclnn_bw_rows_f64, double, aclnn_bw_row_f64)

/* For each window of a row its first column in the image, and how many it has there. */
static inline void aclnn_bw_window_columns(int32_t *first, int32_t *length, int64_t n, int64_t left, int64_t step,
                                           int64_t kernel, int64_t width)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t begin = left + i * step, end = begin + kernel;
        begin = begin < 0 ? 0 : begin;
        first[i] = (int32_t)begin;
        length[i] = (int32_t)((end > width ? width : end) - begin);
    }
}

/* The first of n windows in a row whose index does not lie in it, or -1. The windows hold the rows [top, bottom). The
 * indices of the plane fit int32. */
static inline int64_t aclnn_bw_first_bad_index(const char *mask, const int32_t *first, const int32_t *length, int64_t n,
                                               int64_t top, int64_t bottom, int64_t width)
{
#if ACLNN_BW_LANE_MASKS
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 missed = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        __m512i start = _mm512_add_epi32(_mm512_maskz_loadu_epi32(missed, first + i),
                                         _mm512_set1_epi32((int32_t)(top * width)));
        __m512i span = _mm512_maskz_loadu_epi32(missed, length + i);
        __m512i distance = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(missed, mask + 4 * i), start);
        for (int64_t row = top; row < bottom; row++) {
            missed = _mm512_mask_cmpge_epu32_mask(missed, distance, span);
            distance = _mm512_sub_epi32(distance, _mm512_set1_epi32((int32_t)width));
        }
        if (missed)
            return i + __builtin_ctz(missed);
    }
#else
    enum { BLOCK = 64 };
    const aclnn_bw_index *indices = (const aclnn_bw_index *)mask;
    for (int64_t i = 0; i < n; i += BLOCK) {
        uint32_t distance[BLOCK], missed[BLOCK], any = 0;
        int64_t m = n - i < BLOCK ? n - i : BLOCK;
        for (int64_t j = 0; j < m; j++) {
            distance[j] = (uint32_t)indices[i + j] - (uint32_t)(top * width) - (uint32_t)first[i + j];
            missed[j] = 1;
        }
        for (int64_t row = 0; row < bottom - top; row++)
            for (int64_t j = 0; j < m; j++)
                missed[j] &= distance[j] - (uint32_t)(row * width) >= (uint32_t)length[i + j];
        for (int64_t j = 0; j < m; j++)
            any |= missed[j];
        if (any)
            for (int64_t j = 0; j < m; j++)
                if (missed[j])
                    return i + j;
    }
#endif
    return -1;
}

#if defined(__AVX512F__)
#define ACLNN_BW_MAX_BYTES 64
#elif defined(__AVX2__)
#define ACLNN_BW_MAX_BYTES 32
#else
#define ACLNN_BW_MAX_BYTES 16
#endif

/* best[i], label[i] = value and label of the maximum of what they were and of row[offsets[k] + i], label first + k, for
 * ascending k < count: a greater value replaces, and so does a NaN; what a NaN has won, a number does not win back.
 * Works in whole vectors: all three arrays reach up to a vector beyond n. */
#define ACLNN_BW_MAXIMA(name, real, integer)                                                                            \
    static inline void name(real *best, integer *label, const real *row, const int64_t *offsets, int64_t count,         \
                            int64_t first, int64_t n)                                                                   \
    {                                                                                                                   \
        typedef real reals __attribute__((vector_size(ACLNN_BW_MAX_BYTES)));                                            \
        typedef integer integers __attribute__((vector_size(ACLNN_BW_MAX_BYTES)));                                      \
        for (int64_t i = 0; i < n; i += ACLNN_BW_MAX_BYTES / (int64_t)sizeof(real)) {                                   \
            reals most;                                                                                                 \
            integers where;                                                                                             \
            memcpy(&most, best + i, sizeof most);                                                                       \
            memcpy(&where, label + i, sizeof where);                                                                    \
            for (int64_t k = 0; k < count; k++) {                                                                       \
                reals value;                                                                                            \
                integers takes;                                                                                         \
                memcpy(&value, row + offsets[k] + i, sizeof value);                                                     \
                takes = (value > most) | (value != value);                                                              \
                most = (reals)(((integers)value & takes) | ((integers)most & ~takes));                                  \
                where = ((integer)(first + k) & takes) | (where & ~takes);                                              \
            }                                                                                                           \
            memcpy(best + i, &most, sizeof most);                                                                       \
            memcpy(label + i, &where, sizeof where);                                                                    \
        }                                                                                                               \
    }
ACLNN_BW_MAXIMA(aclnn_bw_maxima_f32, float, int32_t)
ACLNN_BW_MAXIMA(aclnn_bw_maxima_f64, double, int64_t)

/* words[i] has bit j set where codes[j*pitch + i] == code, for j < lanes and i < n. */
static inline void aclnn_bw_code_words(char *words, const uint16_t *codes, int64_t pitch, int64_t lanes, int64_t code,
                                       int64_t n)
{
    enum { WIDTH = ACLNN_BW_MAX_BYTES / 2 };
    typedef uint16_t vector __attribute__((vector_size(ACLNN_BW_MAX_BYTES)));
    int64_t i = 0;
    if (n >= WIDTH)
        for (; i < n; i += WIDTH) {
            vector word = {0};
            if (i > n - WIDTH)
                i = n - WIDTH;
            for (int64_t j = 0; j < lanes; j++) {
                vector seen;
                memcpy(&seen, codes + j * pitch + i, sizeof seen);
                word |= (vector)(seen == (uint16_t)code) & (uint16_t)(1u << j);
            }
            memcpy(words + 2 * i, &word, sizeof word);
        }
    for (; i < n; i++) {
        unsigned word = 0;
        for (int64_t j = 0; j < lanes; j++)
            word |= (unsigned)(codes[j * pitch + i] == (uint16_t)code) << j;
        ((aclnn_bw_word *)words)[i] = (uint16_t)word;
    }
}

#define ACLNN_BW_LABELS(suffix, integer)                                                                                \
    static inline void aclnn_bw_labels_to_codes_##suffix(uint16_t *codes, const integer *label, int64_t n)              \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            codes[i] = (uint16_t)label[i];                                                                              \
    }                                                                                                                   \
    /* indices[i] = base + i*step + label[i] */                                                                         \
    static inline void aclnn_bw_labels_to_indices_##suffix(char *indices, const integer *label, int64_t base,           \
                                                           int64_t step, int64_t n)                                     \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            ((aclnn_bw_index *)indices)[i] =                                                                            \
                (int32_t)((uint32_t)base + (uint32_t)i * (uint32_t)step + (uint32_t)label[i]);                          \
    }                                                                                                                   \
    /* words[label[i]*pitch + i] |= bit */                                                                              \
    static inline void aclnn_bw_set_bits_##suffix(char *words, const integer *label, int64_t pitch, unsigned bit,       \
                                                  int64_t n)                                                            \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            ((aclnn_bw_word *)words)[label[i] * pitch + i] |= (uint16_t)bit;                                            \
    }
ACLNN_BW_LABELS(f32, int32_t)
ACLNN_BW_LABELS(f64, int64_t)

/* sums[j*sum_pitch + i*step] += grad[j*grad_pitch + i] for each set bit j of (words[i] >> first) & lanes, i < n. */
#define ACLNN_BW_SCATTER_BITS(name, real)                                                                               \
    static inline void name(real *sums, int64_t sum_pitch, int64_t step, const real *grad, int64_t grad_pitch,          \
                            const char *words, int first, unsigned lanes, int64_t n)                                    \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            for (unsigned bits = (unsigned)((const aclnn_bw_word *)words)[i] >> first & lanes; bits;                    \
                 bits &= bits - 1) {                                                                                    \
                int64_t j = __builtin_ctz(bits);                                                                        \
                sums[j * sum_pitch + i * step] += grad[j * grad_pitch + i];                                             \
            }                                                                                                           \
    }                                                                                                                   \
    /* sums[index - low] += grad[i] for the indices in [low, high) */                                                   \
    static inline void name##_at(real *sums, int64_t low, int64_t high, const real *grad, const char *mask, int64_t n)  \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                               \
            int64_t index = ((const aclnn_bw_index *)mask)[i];                                                          \
            if (low <= index && index < high)                                                                           \
                sums[index - low] += grad[i];                                                                           \
        }                                                                                                               \
    }
ACLNN_BW_SCATTER_BITS(aclnn_bw_scatter_f32, float)
ACLNN_BW_SCATTER_BITS(aclnn_bw_scatter_f64, double)
#endif
