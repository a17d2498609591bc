/* Rows of Im2colBackward: positions gathered from all columns that reach them, in registers.
 *
 * For each position q of a row: to[q] = the sum over kernel rows a and taps t, both ascending, from +0.0, of
 *     from[rows[a] + t*step + q]      where window - t*window_step + q lies in [0, windows)
 * A vector adds its terms lane by lane in that order, so its width does not show in a bit. A term that does not exist
 * is added as +0.0, which changes no sum that began with +0.0. Only windows in range are read: lanes outside are masked
 * off, or read one by one, or dropped after a read that stays inside the column (starts[a] is the index of the row of
 * windows in its column, `length` the number of windows of the column).
 */
#ifndef ACLNN_BW_IM2COL_H
#define ACLNN_BW_IM2COL_H
#include "half.h"
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define ACLNN_BW_EDGE_WORDS 512


/* The lanes [low, high): one bit for each, or the two numbers. */
#if defined(__AVX512F__)
#define ACLNN_BW_WORD(low, high) ((1 << (high)) - (1 << (low)))
#else
#define ACLNN_BW_WORD(low, high) ((low) | (high) << 8)
#endif

/* Which lanes of which blocks hold windows; of blocks not listed, all lanes of all taps do. */
typedef struct {
    int64_t n, taps, step, window, window_step, length;
    int64_t blocks;     /* of `width` lanes; the last overlaps the one before */
    int64_t left;       /* blocks at the left edge */
    int64_t right;      /* the first block at the right edge */
    int64_t width;
    uint16_t words[ACLNN_BW_EDGE_WORDS];   /* a tap's lanes, as ACLNN_BW_WORD has them */
} aclnn_bw_edges;

static inline int64_t aclnn_bw_block_start(const aclnn_bw_edges *e, int64_t block)
{
    int64_t start = block * e->width, last = e->n - e->width;
    return start <= last ? start : last > 0 ? last : 0;
}

static inline int64_t aclnn_bw_clip_lane(int64_t lane, int64_t most)
{
    return lane < 0 ? 0 : lane > most ? most : lane;
}

/* Whether the edges fit the table. */
static inline int aclnn_bw_find_edges(aclnn_bw_edges *e, int64_t n, int64_t windows, int64_t window,
                                      int64_t window_step, int64_t taps, int64_t step, int64_t length, int64_t width)
{
    int64_t most = n < width ? n : width, count = 0;
    e->n = n;
    e->taps = taps;
    e->step = step;
    e->window = window;
    e->window_step = window_step;
    e->length = length;
    e->width = width;
    e->blocks = n <= width ? 1 : (n - 1) / width + 1;
    e->left = e->right = e->blocks;
    if (n >= width) {
        /* All lanes of a block hold windows if its first does with the last tap, and its last with the first. */
        int64_t first = (taps - 1) * window_step - window, last = windows - window - width;
        e->left = first <= 0 ? 0 : first > n - width ? e->blocks : (first - 1) / width + 1;
        e->right = last < 0 ? 0 : last >= n - width ? e->blocks : last / width + 1;
        if (e->right < e->left)
            e->right = e->left;
    }
    if ((e->left + e->blocks - e->right) * taps > ACLNN_BW_EDGE_WORDS)
        return 0;
    for (int64_t block = 0; block < e->blocks; block++) {
        if (block == e->left)
            block = e->right;
        if (block >= e->blocks)
            break;
        int64_t start = aclnn_bw_block_start(e, block) + window;
        for (int64_t t = 0; t < taps; t++, start -= window_step) {
            int64_t low = aclnn_bw_clip_lane(-start, most), high = aclnn_bw_clip_lane(windows - start, most);
            e->words[count++] = (uint16_t)(low < high ? ACLNN_BW_WORD(low, high) : 0);
        }
    }
    return 1;
}


/* Vectors of float and double sums, of the width of the instruction set: load and store of each element type; EDGE
 * reads the lanes of `word` alone, the others as +0.0. */
#if defined(__AVX512F__)
#define ACLNN_BW_FLOATS 16
#define ACLNN_BW_DOUBLES 8
typedef __m512 aclnn_bw_floats;
typedef __m512d aclnn_bw_doubles;

static inline __m512 aclnn_bw_load_float(const float *p) { return _mm512_loadu_ps(p); }
static inline __m512d aclnn_bw_load_double(const double *p) { return _mm512_loadu_pd(p); }
static inline __m512 aclnn_bw_load_half(const aclnn_bw_half *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline __m512 aclnn_bw_widen_bfloats(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
static inline __m512 aclnn_bw_load_bfloat(const aclnn_bw_bfloat *p)
{
    return aclnn_bw_widen_bfloats(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

#define ACLNN_BW_EDGE_FLOAT(p, word, inside) _mm512_maskz_loadu_ps((__mmask16)(word), p)
#define ACLNN_BW_EDGE_DOUBLE(p, word, inside) _mm512_maskz_loadu_pd((__mmask8)(word), p)
#define ACLNN_BW_EDGE_HALF(p, word, inside) \
    _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(word), p))
#define ACLNN_BW_EDGE_BFLOAT(p, word, inside) \
    aclnn_bw_widen_bfloats(_mm256_maskz_loadu_epi16((__mmask16)(word), p))

static inline void aclnn_bw_store_float(float *p, __m512 x) { _mm512_storeu_ps(p, x); }
static inline void aclnn_bw_store_double(double *p, __m512d x) { _mm512_storeu_pd(p, x); }
static inline void aclnn_bw_store_half(aclnn_bw_half *p, __m512 x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline void aclnn_bw_store_bfloat(aclnn_bw_bfloat *p, __m512 x)
{
    __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    __m512i nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    rounded = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(rounded));
}

#elif defined(__AVX2__)
#define ACLNN_BW_FLOATS 8
#define ACLNN_BW_DOUBLES 4
typedef __m256 aclnn_bw_floats;
typedef __m256d aclnn_bw_doubles;

static inline __m256i aclnn_bw_float_lanes(int word)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(word & 255), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(word >> 8), lane));
}
static inline __m256i aclnn_bw_double_lanes(int word)
{
    __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(word & 255), lane),
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(word >> 8), lane));
}
static inline __m256 aclnn_bw_keep_floats(__m256 x, int word)
{
    return _mm256_and_ps(x, _mm256_castsi256_ps(aclnn_bw_float_lanes(word)));
}

static inline __m256 aclnn_bw_load_float(const float *p) { return _mm256_loadu_ps(p); }
static inline __m256d aclnn_bw_load_double(const double *p) { return _mm256_loadu_pd(p); }
static inline __m256 aclnn_bw_load_half(const aclnn_bw_half *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline __m256 aclnn_bw_load_bfloat(const aclnn_bw_bfloat *p)
{
    __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}

#define ACLNN_BW_EDGE_FLOAT(p, word, inside) _mm256_maskload_ps(p, aclnn_bw_float_lanes(word))
#define ACLNN_BW_EDGE_DOUBLE(p, word, inside) _mm256_maskload_pd(p, aclnn_bw_double_lanes(word))

static inline void aclnn_bw_store_float(float *p, __m256 x) { _mm256_storeu_ps(p, x); }
static inline void aclnn_bw_store_double(double *p, __m256d x) { _mm256_storeu_pd(p, x); }
static inline void aclnn_bw_store_half(aclnn_bw_half *p, __m256 x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline void aclnn_bw_store_bfloat(aclnn_bw_bfloat *p, __m256 x)
{
    __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, nan, is_nan);
    rounded = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 8);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(rounded));
}

#else
#define ACLNN_BW_FLOATS 4
#define ACLNN_BW_DOUBLES 2
typedef float aclnn_bw_floats __attribute__((vector_size(16)));
typedef double aclnn_bw_doubles __attribute__((vector_size(16)));
typedef int32_t aclnn_bw_words __attribute__((vector_size(16)));
typedef int64_t aclnn_bw_long_words __attribute__((vector_size(16)));

static inline aclnn_bw_floats aclnn_bw_keep_floats(aclnn_bw_floats x, int word)
{
    aclnn_bw_words lane = {0, 1, 2, 3}, bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= (lane >= (word & 255)) & (lane < (word >> 8));
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline aclnn_bw_doubles aclnn_bw_keep_doubles(aclnn_bw_doubles x, int word)
{
    aclnn_bw_long_words lane = {0, 1}, bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= (lane >= (int64_t)(word & 255)) & (lane < (int64_t)(word >> 8));
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline aclnn_bw_floats aclnn_bw_load_float(const float *p)
{
    aclnn_bw_floats x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline aclnn_bw_doubles aclnn_bw_load_double(const double *p)
{
    aclnn_bw_doubles x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline aclnn_bw_floats aclnn_bw_load_half(const aclnn_bw_half *p)
{
    float wide[4];
    for (int i = 0; i < 4; i++)
        wide[i] = aclnn_bw_widen_half(p[i]);
    return aclnn_bw_load_float(wide);
}
static inline aclnn_bw_floats aclnn_bw_load_bfloat(const aclnn_bw_bfloat *p)
{
    float wide[4];
    for (int i = 0; i < 4; i++)
        wide[i] = aclnn_bw_widen_bfloat(p[i]);
    return aclnn_bw_load_float(wide);
}

static inline void aclnn_bw_store_float(float *p, aclnn_bw_floats x) { memcpy(p, &x, sizeof x); }
static inline void aclnn_bw_store_double(double *p, aclnn_bw_doubles x) { memcpy(p, &x, sizeof x); }
static inline void aclnn_bw_store_half(aclnn_bw_half *p, aclnn_bw_floats x)
{
    for (int i = 0; i < 4; i++)
        p[i] = aclnn_bw_narrow_to_half(x[i]);
}
static inline void aclnn_bw_store_bfloat(aclnn_bw_bfloat *p, aclnn_bw_floats x)
{
    for (int i = 0; i < 4; i++)
        p[i] = aclnn_bw_narrow_to_bfloat(x[i]);
}
#endif

/* Where no load can be masked: read the whole vector if it lies inside the column, else lane by lane. */
#define ACLNN_BW_READ_EDGE(NAME, T, VEC, LANES, LOAD, KEEP)            \
    static inline VEC NAME(const T *p, int word, int inside)          \
    {                                                                 \
        T lanes[LANES];                                               \
        if (inside)                                                   \
            return KEEP(LOAD(p), word);                               \
        memset(lanes, 0, sizeof lanes);                               \
        for (int i = word & 255; i < word >> 8; i++)                  \
            lanes[i] = p[i];                                          \
        return LOAD(lanes);                                           \
    }
#if !defined(__AVX512F__)
ACLNN_BW_READ_EDGE(aclnn_bw_edge_half, aclnn_bw_half, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_half,
                   aclnn_bw_keep_floats)
ACLNN_BW_READ_EDGE(aclnn_bw_edge_bfloat, aclnn_bw_bfloat, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_bfloat,
                   aclnn_bw_keep_floats)
#define ACLNN_BW_EDGE_HALF aclnn_bw_edge_half
#define ACLNN_BW_EDGE_BFLOAT aclnn_bw_edge_bfloat
#if !defined(__AVX2__)
ACLNN_BW_READ_EDGE(aclnn_bw_edge_float, float, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_float,
                   aclnn_bw_keep_floats)
ACLNN_BW_READ_EDGE(aclnn_bw_edge_double, double, aclnn_bw_doubles, ACLNN_BW_DOUBLES, aclnn_bw_load_double,
                   aclnn_bw_keep_doubles)
#define ACLNN_BW_EDGE_FLOAT aclnn_bw_edge_float
#define ACLNN_BW_EDGE_DOUBLE aclnn_bw_edge_double
#endif
#endif

/* The first bytes of a vector of `whole` bytes, in pieces of fixed sizes. */
static inline void aclnn_bw_copy_lanes(char *to, const char *from, size_t bytes, size_t whole)
{
    size_t at = 0;
    if (whole > 32 && bytes & 32) {
        memcpy(to, from, 32);
        at += 32;
    }
    if (whole > 16 && bytes & 16) {
        memcpy(to + at, from + at, 16);
        at += 16;
    }
    if (whole > 8 && bytes & 8) {
        memcpy(to + at, from + at, 8);
        at += 8;
    }
    if (bytes & 4) {
        memcpy(to + at, from + at, 4);
        at += 4;
    }
    if (bytes & 2)
        memcpy(to + at, from + at, 2);
}

/* `room`: elements from `to` on that may be overwritten, because rows after this one are made after it. */
#define ACLNN_BW_GATHER(NAME, T, S, VEC, LANES, LOAD, EDGE, STORE)                                               \
    static inline void NAME(S *to, int64_t room, const T *from, const int64_t *rows, const int64_t *starts,      \
                            int64_t count, const aclnn_bw_edges *e)                                              \
    {                                                                                                            \
        const uint16_t *words = e->words;                                                                        \
        const int64_t taps = e->taps, step = e->step;                                                            \
        for (int64_t block = 0; block < e->blocks; block++) {                                                    \
            int64_t q = aclnn_bw_block_start(e, block);                                                          \
            VEC sum = {0};                                                                                       \
            if (block >= e->left && block < e->right) {                                                          \
                if (taps == 3)                                                                                   \
                    for (int64_t a = 0; a < count; a++) {                                                        \
                        const T *p = from + (rows[a] + q);                                                       \
                        sum += LOAD(p);                                                                          \
                        sum += LOAD(p + step);                                                                   \
                        sum += LOAD(p + 2 * step);                                                               \
                    }                                                                                            \
                else                                                                                             \
                    for (int64_t a = 0; a < count; a++)                                                          \
                        for (int64_t t = 0; t < taps; t++)                                                       \
                            sum += LOAD(from + (rows[a] + t * step + q));                                        \
            } else {                                                                                             \
                for (int64_t a = 0; a < count; a++)                                                              \
                    for (int64_t t = 0; t < taps; t++) {                                                         \
                        int64_t start = starts[a] + e->window - t * e->window_step + q;                          \
                        int inside = start >= 0 && start + LANES <= e->length;                                   \
                        (void)inside;                                                                            \
                        sum += EDGE(from + (rows[a] + t * step + q), words[t], inside);                          \
                    }                                                                                            \
                words += taps;                                                                                   \
            }                                                                                                    \
            if (e->n >= LANES || room >= LANES) {                                                                \
                STORE(to + q, sum);                                                                              \
            } else {                                                                                             \
                S lanes[LANES];                                                                                  \
                STORE(lanes, sum);                                                                               \
                aclnn_bw_copy_lanes((char *)to, (const char *)lanes, (size_t)e->n * sizeof(S), sizeof lanes);    \
            }                                                                                                    \
        }                                                                                                        \
    }

ACLNN_BW_GATHER(aclnn_bw_gather_float, float, float, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_float,
                ACLNN_BW_EDGE_FLOAT, aclnn_bw_store_float)
ACLNN_BW_GATHER(aclnn_bw_gather_double, double, double, aclnn_bw_doubles, ACLNN_BW_DOUBLES, aclnn_bw_load_double,
                ACLNN_BW_EDGE_DOUBLE, aclnn_bw_store_double)
ACLNN_BW_GATHER(aclnn_bw_gather_half, aclnn_bw_half, aclnn_bw_half, aclnn_bw_floats, ACLNN_BW_FLOATS,
                aclnn_bw_load_half, ACLNN_BW_EDGE_HALF, aclnn_bw_store_half)
ACLNN_BW_GATHER(aclnn_bw_gather_bfloat, aclnn_bw_bfloat, aclnn_bw_bfloat, aclnn_bw_floats, ACLNN_BW_FLOATS,
                aclnn_bw_load_bfloat, ACLNN_BW_EDGE_BFLOAT, aclnn_bw_store_bfloat)
ACLNN_BW_GATHER(aclnn_bw_sum_half, aclnn_bw_half, float, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_half,
                ACLNN_BW_EDGE_HALF, aclnn_bw_store_float)
ACLNN_BW_GATHER(aclnn_bw_sum_bfloat, aclnn_bw_bfloat, float, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_bfloat,
                ACLNN_BW_EDGE_BFLOAT, aclnn_bw_store_float)

/* What the next unit reads, into the L2 cache; the L1 cache is full of what this one reads (1.6 times as slow). The
 * address need not be valid. */
static inline void aclnn_bw_prefetch(uintptr_t from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const void *)(from + (uintptr_t)at), 0, 2);
}

/* to[i*pitch + j] = from[j*column + i] + 0.0 for 0 <= i < n, 0 <= j < columns: columns become rows, in blocks that are
 * transposed in registers. Blocks overlap where a length is no multiple of theirs. gcc 12 makes scalar code of the
 * plain loops, 2 times as slow in float32, 5 times in 16 bits. The 16-bit forms work on bits: x + 0.0 is x, but for
 * -0.0, which becomes +0.0. */
#if defined(__SSE2__)
static inline __m128 aclnn_bw_term_4(const float *p) { return _mm_add_ps(_mm_loadu_ps(p), _mm_setzero_ps()); }
static inline __m128d aclnn_bw_term_2(const double *p) { return _mm_add_pd(_mm_loadu_pd(p), _mm_setzero_pd()); }
static inline __m128i aclnn_bw_clear_sign(__m128i x)
{
    return _mm_andnot_si128(_mm_cmpeq_epi16(x, _mm_set1_epi16((short)0x8000)), x);
}

static inline void aclnn_bw_pair_floats(float *to, const float *from, int64_t column)
{
    __m128 a = aclnn_bw_term_4(from), b = aclnn_bw_term_4(from + column);
    _mm_storeu_ps(to, _mm_unpacklo_ps(a, b));
    _mm_storeu_ps(to + 4, _mm_unpackhi_ps(a, b));
}

static inline void aclnn_bw_turn_floats(float *to, int64_t stride, const float *from, int64_t column)
{
    __m128 a = aclnn_bw_term_4(from), b = aclnn_bw_term_4(from + column);
    __m128 c = aclnn_bw_term_4(from + 2 * column), d = aclnn_bw_term_4(from + 3 * column);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + stride, b);
    _mm_storeu_ps(to + 2 * stride, c);
    _mm_storeu_ps(to + 3 * stride, d);
}

static inline void aclnn_bw_turn_doubles(double *to, int64_t stride, const double *from, int64_t column)
{
    __m128d a = aclnn_bw_term_2(from), b = aclnn_bw_term_2(from + column);
    _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
    _mm_storeu_pd(to + stride, _mm_unpackhi_pd(a, b));
}

static inline void aclnn_bw_pair_bits(uint16_t *to, const uint16_t *from, int64_t column)
{
    __m128i a = aclnn_bw_clear_sign(_mm_loadu_si128((const __m128i *)(const void *)from));
    __m128i b = aclnn_bw_clear_sign(_mm_loadu_si128((const __m128i *)(const void *)(from + column)));
    _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128((__m128i *)(void *)(to + 8), _mm_unpackhi_epi16(a, b));
}

static inline __m128i aclnn_bw_low_4(const uint16_t *p) { return _mm_loadl_epi64((const __m128i *)(const void *)p); }
static inline void aclnn_bw_store_low_4(uint16_t *p, __m128i x) { _mm_storel_epi64((__m128i *)(void *)p, x); }

static inline void aclnn_bw_turn_bits(uint16_t *to, int64_t stride, const uint16_t *from, int64_t column)
{
    __m128i ab = _mm_unpacklo_epi16(aclnn_bw_low_4(from), aclnn_bw_low_4(from + column));
    __m128i cd = _mm_unpacklo_epi16(aclnn_bw_low_4(from + 2 * column), aclnn_bw_low_4(from + 3 * column));
    __m128i first = aclnn_bw_clear_sign(_mm_unpacklo_epi32(ab, cd));
    __m128i second = aclnn_bw_clear_sign(_mm_unpackhi_epi32(ab, cd));
    aclnn_bw_store_low_4(to, first);
    aclnn_bw_store_low_4(to + stride, _mm_srli_si128(first, 8));
    aclnn_bw_store_low_4(to + 2 * stride, second);
    aclnn_bw_store_low_4(to + 3 * stride, _mm_srli_si128(second, 8));
}
#define ACLNN_BW_IN_BLOCKS 1
#else
#define ACLNN_BW_IN_BLOCKS 0
#define aclnn_bw_pair_floats(to, from, column)
#define aclnn_bw_turn_floats(to, stride, from, column)
#define aclnn_bw_turn_doubles(to, stride, from, column)
#define aclnn_bw_pair_bits(to, from, column)
#define aclnn_bw_turn_bits(to, stride, from, column)
#endif

static inline int64_t aclnn_bw_start(int64_t i, int64_t n, int64_t width) { return i + width <= n ? i : n - width; }

#define ACLNN_BW_TURN(NAME, T, PLAIN, PAIR, PAIRED, TURN, WIDTH)                                                 \
    static inline void NAME(T *to, int64_t pitch, const T *from, int64_t column, int64_t n, int64_t columns)     \
    {                                                                                                            \
        if (ACLNN_BW_IN_BLOCKS && columns == 2 && pitch == 2 && n >= (PAIRED)) {                                 \
            for (int64_t i = 0; i < n; i += (PAIRED)) {                                                          \
                int64_t start = aclnn_bw_start(i, n, PAIRED);                                                    \
                PAIR(to + 2 * start, from + start, column);                                                      \
            }                                                                                                    \
        } else if (ACLNN_BW_IN_BLOCKS && columns >= (WIDTH) && n >= (WIDTH)) {                                   \
            for (int64_t i = 0; i < n; i += (WIDTH)) {                                                           \
                int64_t start = aclnn_bw_start(i, n, WIDTH);                                                     \
                for (int64_t j = 0; j < columns; j += (WIDTH)) {                                                 \
                    int64_t first = aclnn_bw_start(j, columns, WIDTH);                                           \
                    TURN(to + start * pitch + first, pitch, from + first * column + start, column);              \
                }                                                                                                \
            }                                                                                                    \
        } else if (columns == 3 && pitch == 3) {                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                    \
                to[3 * i] = PLAIN(from[i]);                                                                      \
                to[3 * i + 1] = PLAIN(from[column + i]);                                                         \
                to[3 * i + 2] = PLAIN(from[2 * column + i]);                                                     \
            }                                                                                                    \
        } else {                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                      \
                for (int64_t j = 0; j < columns; j++)                                                            \
                    to[i * pitch + j] = PLAIN(from[j * column + i]);                                             \
        }                                                                                                        \
    }

#define ACLNN_BW_PLUS_ZERO(x) ((x) + 0)
#define ACLNN_BW_CLEAR_SIGN(x) ((uint16_t)((x) == 0x8000 ? 0 : (x)))
#define aclnn_bw_pair_doubles(to, from, column) aclnn_bw_turn_doubles(to, 2, from, column)
ACLNN_BW_TURN(aclnn_bw_turn_float_rows, float, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_floats, 4,
              aclnn_bw_turn_floats, 4)
ACLNN_BW_TURN(aclnn_bw_turn_double_rows, double, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_doubles, 2,
              aclnn_bw_turn_doubles, 2)
ACLNN_BW_TURN(aclnn_bw_turn_bit_rows, uint16_t, ACLNN_BW_CLEAR_SIGN, aclnn_bw_pair_bits, 8,
              aclnn_bw_turn_bits, 4)

static inline int64_t aclnn_bw_lanes_of(size_t size)
{
    return size == sizeof(double) ? ACLNN_BW_DOUBLES : ACLNN_BW_FLOATS;
}
#endif
