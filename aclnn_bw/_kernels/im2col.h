/* Rows of Im2colBackward: positions gathered from all columns that reach them, in registers.
 *
 * For each position q of a row: to[q] = the sum over kernel rows a and taps t, both ascending, from +0.0, of
 *     from[rows[a] + t*step + q]      where window - t*window_step + q lies in [0, windows)
 * A vector adds its terms lane by lane in that order, so its width does not show in a bit. A term that does not exist
 * is added as +0.0, which changes no sum that began with +0.0. Only windows in range are read: lanes outside are masked
 * off, or read one by one, or dropped after a read that stays inside the column (starts[a] is the index of the row of
 * windows in its column, `length` the number of windows of the column).
 *
 * Bounds, from the assembly. Gathering: one addition with a memory operand per vector and term; in 16 bits a load that
 * converts, or a widening load and a shift, before it. The columns are shifted against each other, so most loads of 64
 * bytes cross a cache line; beyond the L2 cache the time is that of memory. Rows of one vector are bound by their
 * masked loads, hence those of 32 bytes where they do; on AVX2 a mask is made of two broadcast numbers, for three taps
 * once, else for each term. Turning many columns: of the pieces of 16 bytes that make a vector, all but the first are
 * inserted; one shuffle per vector stored in float64, two in float32, three in 16 bits. Packing waits for its loads,
 * which are spread over as many stretches of memory as a block has positions.
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

/* The rows of windows, where they lie side by side along h too: kernel row a of window row lh is from[a*pitch +
 * lh*width], and reaches row lh + a - pad. */
typedef struct { int64_t pad, taps, windows, width, pitch; } aclnn_bw_window_rows;

/* Whether a row is one block, and not all lanes of it hold windows. */
static inline int aclnn_bw_is_one_edge(const aclnn_bw_edges *e)
{
    return e->blocks == 1 && (e->left > 0 || e->right == 0);
}

#define ACLNN_BW_EDGE_TERM(EDGE, LANES, t, word)                                                                 \
    do {                                                                                                         \
        int64_t first_lane = start - (t) * e->window_step;                                                       \
        int inside = first_lane >= 0 && first_lane + (LANES) <= e->length;                                       \
        (void)inside;                                                                                            \
        sum += EDGE(p + (t) * step, word, inside);                                                               \
    } while (0)

/* The rows [row, end) of such windows, for edges of one block: the lanes of the taps stay in mask registers, and the
 * sums of several rows are in flight. A whole vector may be stored up to `limit`, NULL if rows do not lie one behind the
 * other, in the order in which they are made. */
#define ACLNN_BW_GATHER_ROWS(NAME, T, S, VEC, LANES, EDGE, STORE)                                                \
    static __attribute__((noinline)) void NAME(S *to, int64_t down, const S *limit, const T *from,               \
                                               const aclnn_bw_window_rows *h, int64_t row, int64_t end,          \
                                               const aclnn_bw_edges *e)                                          \
    {                                                                                                            \
        const int64_t taps = e->taps, step = e->step, width = h->width, next = h->pitch - width;                 \
        const uint16_t *words = e->words;                                                                        \
        const int one = words[0], two = words[1], three = words[2];                                              \
        for (; row < end; row++, to += down) {                                                                   \
            const int64_t lh = row + h->pad;                                                                     \
            const int64_t first = lh < h->windows ? 0 : lh - h->windows + 1;                                     \
            const int64_t last = lh < h->taps ? lh + 1 : h->taps;                                                \
            const T *p = from + (first * h->pitch + (lh - first) * width);                                       \
            int64_t start = (lh - first) * width + e->window;                                                    \
            VEC sum = {0};                                                                                       \
            if (taps == 3)                                                                                       \
                for (int64_t a = first; a < last; a++, p += next, start -= width) {                              \
                    ACLNN_BW_EDGE_TERM(EDGE, LANES, 0, one);                                                     \
                    ACLNN_BW_EDGE_TERM(EDGE, LANES, 1, two);                                                     \
                    ACLNN_BW_EDGE_TERM(EDGE, LANES, 2, three);                                                   \
                }                                                                                                \
            else                                                                                                 \
                for (int64_t a = first; a < last; a++, p += next, start -= width)                                \
                    for (int64_t t = 0; t < taps; t++)                                                           \
                        ACLNN_BW_EDGE_TERM(EDGE, LANES, t, words[t]);                                            \
            if (e->n >= LANES || (uintptr_t)(to + LANES) <= (uintptr_t)limit) {                                  \
                STORE(to, sum);                                                                                  \
            } else {                                                                                             \
                S lanes[LANES];                                                                                  \
                STORE(lanes, sum);                                                                               \
                aclnn_bw_copy_lanes((char *)to, (const char *)lanes, (size_t)e->n * sizeof(S), sizeof lanes);    \
            }                                                                                                    \
        }                                                                                                        \
    }

ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_wide_float_rows, float, float, aclnn_bw_floats, ACLNN_BW_FLOATS,
                     ACLNN_BW_EDGE_FLOAT, aclnn_bw_store_float)
#if defined(__AVX512VL__)
#define ACLNN_BW_EDGE_8_FLOATS(p, word, inside) _mm256_maskz_loadu_ps((__mmask8)(word), p)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_short_float_rows, float, float, __m256, 8, ACLNN_BW_EDGE_8_FLOATS,
                     _mm256_storeu_ps)
#else
#define aclnn_bw_gather_short_float_rows aclnn_bw_gather_wide_float_rows
#endif
static inline void aclnn_bw_gather_float_rows(float *to, int64_t down, const float *limit, const float *from,
                                              const aclnn_bw_window_rows *h, int64_t row, int64_t end,
                                              const aclnn_bw_edges *e)
{
    /* Most loads of 64 bytes cross a cache line, fewer than half of those of 32 do. */
    if (e->n <= 8)
        aclnn_bw_gather_short_float_rows(to, down, limit, from, h, row, end, e);
    else
        aclnn_bw_gather_wide_float_rows(to, down, limit, from, h, row, end, e);
}
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_double_rows, double, double, aclnn_bw_doubles, ACLNN_BW_DOUBLES,
                     ACLNN_BW_EDGE_DOUBLE, aclnn_bw_store_double)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_half_rows, aclnn_bw_half, aclnn_bw_half, aclnn_bw_floats, ACLNN_BW_FLOATS,
                     ACLNN_BW_EDGE_HALF, aclnn_bw_store_half)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_bfloat_rows, aclnn_bw_bfloat, aclnn_bw_bfloat, aclnn_bw_floats, ACLNN_BW_FLOATS,
                     ACLNN_BW_EDGE_BFLOAT, aclnn_bw_store_bfloat)

/* to[:bytes] = from[:bytes], whole cache lines past the caches: they are not read before they are written. */
static inline void aclnn_bw_stream(void *to, const void *from, int64_t bytes)
{
    char *p = to;
    const char *source = from;
#if defined(__SSE2__)
    int64_t i = (int64_t)(-(uintptr_t)p % 64);
    i = i < bytes ? i : bytes;
    memcpy(p, source, (size_t)i);
    for (; i + 64 <= bytes; i += 64) {
#if defined(__AVX512F__)
        _mm512_stream_si512((__m512i *)(void *)(p + i), _mm512_loadu_si512(source + i));
#else
        for (int k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(p + i + k),
                             _mm_loadu_si128((const __m128i *)(const void *)(source + i + k)));
#endif
    }
    p += i;
    source += i;
    bytes -= i;
#endif
    memcpy(p, source, (size_t)bytes);
}

/* What has been streamed is visible to other threads afterwards. */
static inline void aclnn_bw_end_streams(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* What the next unit reads, into the L2 cache; the L1 cache is full of what this one reads (1.6 times as slow). The
 * address need not be valid. */
static inline void aclnn_bw_prefetch(uintptr_t from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const void *)(from + (uintptr_t)at), 0, 2);
}

/* to[i*pitch + j] = from[j*column + i] for 0 <= i < n, 0 <= j < columns: columns become rows, in blocks that are
 * transposed in registers. Blocks overlap where a length is no multiple of theirs. A number becomes the sum that begins
 * with +0.0: of 16 bits, those that are `zero` become 0 (0x8000 for the same; 0 changes none). gcc 12 makes scalar code
 * of the plain loops, 2 times as slow in float32, 5 times in 16 bits. */
#if defined(__SSE2__)
static inline __m128 aclnn_bw_term_4(const float *p) { return _mm_add_ps(_mm_loadu_ps(p), _mm_setzero_ps()); }
static inline __m128d aclnn_bw_term_2(const double *p) { return _mm_add_pd(_mm_loadu_pd(p), _mm_setzero_pd()); }
static inline __m128i aclnn_bw_load_8(const uint16_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
static inline void aclnn_bw_store_8(uint16_t *p, __m128i x) { _mm_storeu_si128((__m128i *)(void *)p, x); }
static inline __m128i aclnn_bw_clear_zeros(__m128i x, uint16_t zero)
{
    return _mm_andnot_si128(_mm_cmpeq_epi16(x, _mm_set1_epi16((short)zero)), x);
}

static inline void aclnn_bw_pair_floats(float *to, const float *from, int64_t column, uint16_t zero)
{
    __m128 a = aclnn_bw_term_4(from), b = aclnn_bw_term_4(from + column);
    (void)zero;
    _mm_storeu_ps(to, _mm_unpacklo_ps(a, b));
    _mm_storeu_ps(to + 4, _mm_unpackhi_ps(a, b));
}

static inline void aclnn_bw_turn_floats(float *to, int64_t pitch, const float *from, int64_t column, uint16_t zero)
{
    __m128 a = aclnn_bw_term_4(from), b = aclnn_bw_term_4(from + column);
    __m128 c = aclnn_bw_term_4(from + 2 * column), d = aclnn_bw_term_4(from + 3 * column);
    (void)zero;
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + pitch, b);
    _mm_storeu_ps(to + 2 * pitch, c);
    _mm_storeu_ps(to + 3 * pitch, d);
}

static inline void aclnn_bw_turn_doubles(double *to, int64_t pitch, const double *from, int64_t column, uint16_t zero)
{
    __m128d a = aclnn_bw_term_2(from), b = aclnn_bw_term_2(from + column);
    (void)zero;
    _mm_storeu_pd(to, _mm_unpacklo_pd(a, b));
    _mm_storeu_pd(to + pitch, _mm_unpackhi_pd(a, b));
}

static inline void aclnn_bw_pair_bits(uint16_t *to, const uint16_t *from, int64_t column, uint16_t zero)
{
    __m128i a = aclnn_bw_clear_zeros(aclnn_bw_load_8(from), zero);
    __m128i b = aclnn_bw_clear_zeros(aclnn_bw_load_8(from + column), zero);
    aclnn_bw_store_8(to, _mm_unpacklo_epi16(a, b));
    aclnn_bw_store_8(to + 8, _mm_unpackhi_epi16(a, b));
}

static inline __m128i aclnn_bw_low_4(const uint16_t *p) { return _mm_loadl_epi64((const __m128i *)(const void *)p); }
static inline void aclnn_bw_store_low_4(uint16_t *p, __m128i x) { _mm_storel_epi64((__m128i *)(void *)p, x); }

static inline void aclnn_bw_turn_bits(uint16_t *to, int64_t pitch, const uint16_t *from, int64_t column, uint16_t zero)
{
    __m128i ab = _mm_unpacklo_epi16(aclnn_bw_low_4(from), aclnn_bw_low_4(from + column));
    __m128i cd = _mm_unpacklo_epi16(aclnn_bw_low_4(from + 2 * column), aclnn_bw_low_4(from + 3 * column));
    __m128i first = aclnn_bw_clear_zeros(_mm_unpacklo_epi32(ab, cd), zero);
    __m128i second = aclnn_bw_clear_zeros(_mm_unpackhi_epi32(ab, cd), zero);
    aclnn_bw_store_low_4(to, first);
    aclnn_bw_store_low_4(to + pitch, _mm_srli_si128(first, 8));
    aclnn_bw_store_low_4(to + 2 * pitch, second);
    aclnn_bw_store_low_4(to + 3 * pitch, _mm_srli_si128(second, 8));
}
#define ACLNN_BW_IN_BLOCKS 1
#else
#define ACLNN_BW_IN_BLOCKS 0
#define aclnn_bw_pair_floats(to, from, column, zero)
#define aclnn_bw_turn_floats(to, pitch, from, column, zero)
#define aclnn_bw_turn_doubles(to, pitch, from, column, zero)
#define aclnn_bw_pair_bits(to, from, column, zero)
#define aclnn_bw_turn_bits(to, pitch, from, column, zero)
#endif

/* The same of many columns: a vector holds 16 bytes of each of two columns, or of four, so that all parts are transposed
 * at once, and the rows stored are 32 or 64 bytes long. Those of 64 pack 1.1 to 1.4 times as fast. */
#if defined(__AVX512BW__)
#define ACLNN_BW_FLOAT_ROWS 16
#define ACLNN_BW_DOUBLE_ROWS 8
#define ACLNN_BW_BIT_ROWS 32

/* 16 bytes of each of four columns, `apart` bytes from one to the next. */
static inline __m512i aclnn_bw_load_4_columns(const void *from, int64_t apart)
{
    const char *p = from;
    __m256i low = _mm256_loadu2_m128i((const __m128i *)(const void *)(p + apart), (const __m128i *)(const void *)p);
    __m256i high = _mm256_loadu2_m128i((const __m128i *)(const void *)(p + 3 * apart),
                                       (const __m128i *)(const void *)(p + 2 * apart));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

static inline void aclnn_bw_turn_many_floats(float *to, int64_t pitch, const float *from, int64_t column, uint16_t zero)
{
    __m512 r[4];
    (void)zero;
    for (int i = 0; i < 4; i++)
        r[i] = _mm512_add_ps(_mm512_castsi512_ps(aclnn_bw_load_4_columns(from + i * column, 16 * column)),
                             _mm512_setzero_ps());
    __m512 a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpacklo_ps(r[2], r[3]);
    __m512 c = _mm512_unpackhi_ps(r[0], r[1]), d = _mm512_unpackhi_ps(r[2], r[3]);
    _mm512_storeu_ps(to, _mm512_shuffle_ps(a, b, 0x44));
    _mm512_storeu_ps(to + pitch, _mm512_shuffle_ps(a, b, 0xee));
    _mm512_storeu_ps(to + 2 * pitch, _mm512_shuffle_ps(c, d, 0x44));
    _mm512_storeu_ps(to + 3 * pitch, _mm512_shuffle_ps(c, d, 0xee));
}

static inline void aclnn_bw_turn_many_doubles(double *to, int64_t pitch, const double *from, int64_t column,
                                              uint16_t zero)
{
    __m512d a = _mm512_castsi512_pd(aclnn_bw_load_4_columns(from, 16 * column));
    __m512d b = _mm512_castsi512_pd(aclnn_bw_load_4_columns(from + column, 16 * column));
    (void)zero;
    a = _mm512_add_pd(a, _mm512_setzero_pd());
    b = _mm512_add_pd(b, _mm512_setzero_pd());
    _mm512_storeu_pd(to, _mm512_unpacklo_pd(a, b));
    _mm512_storeu_pd(to + pitch, _mm512_unpackhi_pd(a, b));
}

static inline void aclnn_bw_turn_many_bits(uint16_t *to, int64_t pitch, const uint16_t *from, int64_t column,
                                           uint16_t zero)
{
    __m512i r[8], s[8], zeros = _mm512_set1_epi16((short)zero);
    for (int i = 0; i < 8; i++) {
        __m512i x = aclnn_bw_load_4_columns(from + i * column, 16 * column);
        r[i] = _mm512_maskz_mov_epi16(_mm512_cmpneq_epi16_mask(x, zeros), x);
    }
    for (int i = 0; i < 4; i++) {
        s[i] = _mm512_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        s[i + 4] = _mm512_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = _mm512_unpacklo_epi32(s[2 * i], s[2 * i + 1]);
        r[2 * i + 1] = _mm512_unpackhi_epi32(s[2 * i], s[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            uint16_t *p = to + (i + 2 * j) * pitch;
            _mm512_storeu_si512(p, _mm512_unpacklo_epi64(r[i + j], r[i + j + 2]));
            _mm512_storeu_si512(p + pitch, _mm512_unpackhi_epi64(r[i + j], r[i + j + 2]));
        }
}
#elif defined(__AVX2__)
#define ACLNN_BW_FLOAT_ROWS 8
#define ACLNN_BW_DOUBLE_ROWS 4
#define ACLNN_BW_BIT_ROWS 16

static inline void aclnn_bw_turn_many_floats(float *to, int64_t pitch, const float *from, int64_t column, uint16_t zero)
{
    __m256 r[4];
    (void)zero;
    for (int i = 0; i < 4; i++)
        r[i] = _mm256_add_ps(_mm256_loadu2_m128(from + (i + 4) * column, from + i * column), _mm256_setzero_ps());
    __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpacklo_ps(r[2], r[3]);
    __m256 c = _mm256_unpackhi_ps(r[0], r[1]), d = _mm256_unpackhi_ps(r[2], r[3]);
    _mm256_storeu_ps(to, _mm256_shuffle_ps(a, b, 0x44));
    _mm256_storeu_ps(to + pitch, _mm256_shuffle_ps(a, b, 0xee));
    _mm256_storeu_ps(to + 2 * pitch, _mm256_shuffle_ps(c, d, 0x44));
    _mm256_storeu_ps(to + 3 * pitch, _mm256_shuffle_ps(c, d, 0xee));
}

static inline void aclnn_bw_turn_many_doubles(double *to, int64_t pitch, const double *from, int64_t column,
                                              uint16_t zero)
{
    __m256d a = _mm256_add_pd(_mm256_loadu2_m128d(from + 2 * column, from), _mm256_setzero_pd());
    __m256d b = _mm256_add_pd(_mm256_loadu2_m128d(from + 3 * column, from + column), _mm256_setzero_pd());
    (void)zero;
    _mm256_storeu_pd(to, _mm256_unpacklo_pd(a, b));
    _mm256_storeu_pd(to + pitch, _mm256_unpackhi_pd(a, b));
}

static inline void aclnn_bw_turn_many_bits(uint16_t *to, int64_t pitch, const uint16_t *from, int64_t column,
                                           uint16_t zero)
{
    __m256i r[8], s[8], zeros = _mm256_set1_epi16((short)zero);
    for (int i = 0; i < 8; i++) {
        __m256i x = _mm256_inserti128_si256(_mm256_castsi128_si256(aclnn_bw_load_8(from + i * column)),
                                            aclnn_bw_load_8(from + (i + 8) * column), 1);
        r[i] = _mm256_andnot_si256(_mm256_cmpeq_epi16(x, zeros), x);
    }
    for (int i = 0; i < 4; i++) {
        s[i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        s[i + 4] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = _mm256_unpacklo_epi32(s[2 * i], s[2 * i + 1]);
        r[2 * i + 1] = _mm256_unpackhi_epi32(s[2 * i], s[2 * i + 1]);
    }
    /* r: rows 0 and 1 of the first four columns, rows 2 and 3; of the other four; then rows 4 to 7 the same way. */
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            uint16_t *p = to + (i + 2 * j) * pitch;
            _mm256_storeu_si256((__m256i *)(void *)p, _mm256_unpacklo_epi64(r[i + j], r[i + j + 2]));
            _mm256_storeu_si256((__m256i *)(void *)(p + pitch), _mm256_unpackhi_epi64(r[i + j], r[i + j + 2]));
        }
}
#else
#define ACLNN_BW_FLOAT_ROWS 4
#define ACLNN_BW_DOUBLE_ROWS 2
#define ACLNN_BW_BIT_ROWS 8
#define aclnn_bw_turn_many_floats aclnn_bw_turn_floats
#define aclnn_bw_turn_many_doubles aclnn_bw_turn_doubles
#if defined(__SSE2__)
static inline void aclnn_bw_turn_many_bits(uint16_t *to, int64_t pitch, const uint16_t *from, int64_t column,
                                           uint16_t zero)
{
    __m128i r[8], s[8];
    for (int i = 0; i < 8; i++)
        r[i] = aclnn_bw_clear_zeros(aclnn_bw_load_8(from + i * column), zero);
    for (int i = 0; i < 4; i++) {
        s[i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        s[i + 4] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = _mm_unpacklo_epi32(s[2 * i], s[2 * i + 1]);
        r[2 * i + 1] = _mm_unpackhi_epi32(s[2 * i], s[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            aclnn_bw_store_8(to + (i + 2 * j) * pitch, _mm_unpacklo_epi64(r[i + j], r[i + j + 2]));
            aclnn_bw_store_8(to + (i + 2 * j + 1) * pitch, _mm_unpackhi_epi64(r[i + j], r[i + j + 2]));
        }
}
#else
#define aclnn_bw_turn_many_bits(to, pitch, from, column, zero)
#endif
#endif

static inline int64_t aclnn_bw_start(int64_t i, int64_t n, int64_t width) { return i + width <= n ? i : n - width; }

/* WIDTH elements of ROWS columns at once by MANY, if there are as many; else of WIDE columns by TURN. */
#define ACLNN_BW_TURN(NAME, T, PLAIN, PAIR, PAIRED, TURN, WIDE, MANY, WIDTH, ROWS)                               \
    static inline void NAME(T *to, int64_t pitch, const T *from, int64_t column, int64_t n, int64_t columns,     \
                            uint16_t zero)                                                                       \
    {                                                                                                            \
        (void)zero;                                                                                              \
        if (ACLNN_BW_IN_BLOCKS && columns == 2 && pitch == 2 && n >= (PAIRED)) {                                 \
            for (int64_t i = 0; i < n; i += (PAIRED)) {                                                          \
                int64_t start = aclnn_bw_start(i, n, PAIRED);                                                    \
                PAIR(to + 2 * start, from + start, column, zero);                                                \
            }                                                                                                    \
        } else if (ACLNN_BW_IN_BLOCKS && columns >= (ROWS) && n >= (WIDTH)) {                                    \
            for (int64_t i = 0; i < n; i += (WIDTH)) {                                                           \
                int64_t start = aclnn_bw_start(i, n, WIDTH);                                                     \
                for (int64_t j = 0; j < columns; j += (ROWS)) {                                                  \
                    int64_t first = aclnn_bw_start(j, columns, ROWS);                                            \
                    MANY(to + start * pitch + first, pitch, from + first * column + start, column, zero);        \
                }                                                                                                \
            }                                                                                                    \
        } else if (ACLNN_BW_IN_BLOCKS && columns >= (WIDE) && n >= (WIDE)) {                                     \
            for (int64_t i = 0; i < n; i += (WIDE)) {                                                            \
                int64_t start = aclnn_bw_start(i, n, WIDE);                                                      \
                for (int64_t j = 0; j < columns; j += (WIDE)) {                                                  \
                    int64_t first = aclnn_bw_start(j, columns, WIDE);                                            \
                    TURN(to + start * pitch + first, pitch, from + first * column + start, column, zero);        \
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
#define ACLNN_BW_CLEAR_ZERO(x) ((uint16_t)((x) == zero ? 0 : (x)))
#define aclnn_bw_pair_doubles(to, from, column, zero) aclnn_bw_turn_doubles(to, 2, from, column, zero)
ACLNN_BW_TURN(aclnn_bw_turn_float_rows, float, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_floats, 4, aclnn_bw_turn_floats, 4,
              aclnn_bw_turn_many_floats, 4, ACLNN_BW_FLOAT_ROWS)
ACLNN_BW_TURN(aclnn_bw_turn_double_rows, double, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_doubles, 2, aclnn_bw_turn_doubles, 2,
              aclnn_bw_turn_many_doubles, 2, ACLNN_BW_DOUBLE_ROWS)
ACLNN_BW_TURN(aclnn_bw_turn_bit_rows, uint16_t, ACLNN_BW_CLEAR_ZERO, aclnn_bw_pair_bits, 8, aclnn_bw_turn_bits, 4,
              aclnn_bw_turn_many_bits, 8, ACLNN_BW_BIT_ROWS)

static inline int64_t aclnn_bw_lanes_of(size_t size)
{
    return size == sizeof(double) ? ACLNN_BW_DOUBLES : ACLNN_BW_FLOATS;
}
#endif
