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
 * masked loads, hence those of 32 bytes where they do. On AVX2 a mask is made of two broadcast numbers, once a row and
 * block for up to ACLNN_BW_KEPT taps, and the lanes of 16 bits are cut off by an `and` before they are widened; up to
 * four blocks are summed at once, and those at the edges in pairs (with that, rows of 56 take 0.6 of the time in 16
 * bits, 0.7 in float32, 0.9 in float64). Small planes as one row: a load of lanes, a masked load and an addition; in
 * float16 a load, an `and`, a conversion and an addition; in bfloat16 for two vectors a load, two `and`, a shift and
 * two additions. Rows of two phases on AVX2: per term a load that adds, or converts before, with an `and` at the edges;
 * per block the shuffles that interleave it; of rows of 28, a third of the instructions are outside the blocks.
 * Turning many columns: of the pieces of 16 bytes that make a vector, all but the first are inserted; one shuffle per
 * vector stored in float64, two in float32, three in 16 bits. Two columns on AVX2 wait for their loads, whatever the
 * width. Packing waits for its loads, which are spread over as many stretches of memory as a block has positions.
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


/* Vectors of float and double sums, of the width of the instruction set: load and store of each element type. KEEP
 * reads a whole vector and keeps some lanes, the others as +0.0; CUT reads those of `word` alone, where the vector
 * begins at `start` and would leave its column. */
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

typedef int aclnn_bw_lanes;
typedef int aclnn_bw_long_lanes;
typedef int aclnn_bw_short_lanes;
static inline int aclnn_bw_find_lanes(int word) { return word; }
#define aclnn_bw_find_long_lanes aclnn_bw_find_lanes
#define aclnn_bw_find_short_lanes aclnn_bw_find_lanes
#define ACLNN_BW_CUTS 0
#define ACLNN_BW_CUTS_16 0
#define ACLNN_BW_KEEP_float(p, lanes) _mm512_maskz_loadu_ps((__mmask16)(lanes), p)
#define ACLNN_BW_KEEP_double(p, lanes) _mm512_maskz_loadu_pd((__mmask8)(lanes), p)
#define ACLNN_BW_KEEP_half(p, lanes) \
    _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(lanes), p))
#define ACLNN_BW_KEEP_bfloat(p, lanes) \
    aclnn_bw_widen_bfloats(_mm256_maskz_loadu_epi16((__mmask16)(lanes), p))

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

typedef __m256i aclnn_bw_lanes;
typedef __m256i aclnn_bw_long_lanes;
typedef __m128i aclnn_bw_short_lanes;

static inline __m256i aclnn_bw_find_lanes(int word)
{
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(word & 255), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(word >> 8), lane));
}
static inline __m256i aclnn_bw_find_long_lanes(int word)
{
    __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(word & 255), lane),
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(word >> 8), lane));
}
static inline __m128i aclnn_bw_find_short_lanes(int word)
{
    __m128i lane = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm_andnot_si128(_mm_cmpgt_epi16(_mm_set1_epi16((short)(word & 255)), lane),
                            _mm_cmpgt_epi16(_mm_set1_epi16((short)(word >> 8)), lane));
}

static inline __m256 aclnn_bw_load_float(const float *p) { return _mm256_loadu_ps(p); }
static inline __m256d aclnn_bw_load_double(const double *p) { return _mm256_loadu_pd(p); }
static inline __m256 aclnn_bw_load_half(const aclnn_bw_half *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline __m256 aclnn_bw_widen_bfloats(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
static inline __m256 aclnn_bw_load_bfloat(const aclnn_bw_bfloat *p)
{
    return aclnn_bw_widen_bfloats(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* The same lanes of eight numbers from `start` on, of `length` there are: read where all eight lie among them, then
 * shifted. */
static inline __m128i aclnn_bw_cut_8(const void *p, int word, int64_t start, int64_t length)
{
    const uint16_t *from = p;
    uint16_t lanes[8] = {0};
    __m128i x, byte = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    if (length < 8) {
        for (int i = word & 255; i < word >> 8; i++)
            lanes[i] = from[i];
        return _mm_loadu_si128((const __m128i *)(const void *)lanes);
    }
    int64_t shift = start < 0 ? -start : start > length - 8 ? length - 8 - start : 0;
    x = _mm_loadu_si128((const __m128i *)(const void *)(from + shift));
    x = _mm_shuffle_epi8(x, _mm_sub_epi8(byte, _mm_set1_epi8((char)(2 * shift))));
    return _mm_and_si128(x, aclnn_bw_find_short_lanes(word));
}

#define ACLNN_BW_CUTS 0
#define ACLNN_BW_CUTS_16 1
#define ACLNN_BW_KEEP_float(p, lanes) _mm256_maskload_ps(p, lanes)
#define ACLNN_BW_CUT_half(p, word, start, length) _mm256_cvtph_ps(aclnn_bw_cut_8(p, word, start, length))
#define ACLNN_BW_CUT_bfloat(p, word, start, length) aclnn_bw_widen_bfloats(aclnn_bw_cut_8(p, word, start, length))
#define ACLNN_BW_KEEP_double(p, lanes) _mm256_maskload_pd(p, lanes)
#define ACLNN_BW_KEEP_half(p, lanes) \
    _mm256_cvtph_ps(_mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)(p)), lanes))
#define ACLNN_BW_KEEP_bfloat(p, lanes) \
    aclnn_bw_widen_bfloats(_mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)(p)), lanes))

static inline void aclnn_bw_store_float(float *p, __m256 x) { _mm256_storeu_ps(p, x); }
static inline void aclnn_bw_store_double(double *p, __m256d x) { _mm256_storeu_pd(p, x); }
static inline void aclnn_bw_store_half(aclnn_bw_half *p, __m256 x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
static inline void aclnn_bw_store_bfloat(aclnn_bw_bfloat *p, __m256 x)
{
    /* A NaN stays one: of sums of bfloat16 it has zeros in its lower half, which do not carry. */
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
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

typedef aclnn_bw_words aclnn_bw_lanes;
typedef aclnn_bw_long_words aclnn_bw_long_lanes;
typedef aclnn_bw_words aclnn_bw_short_lanes;

static inline aclnn_bw_words aclnn_bw_find_lanes(int word)
{
    aclnn_bw_words lane = {0, 1, 2, 3};
    return (lane >= (word & 255)) & (lane < (word >> 8));
}
#define aclnn_bw_find_short_lanes aclnn_bw_find_lanes
static inline aclnn_bw_long_words aclnn_bw_find_long_lanes(int word)
{
    aclnn_bw_long_words lane = {0, 1};
    return (lane >= (int64_t)(word & 255)) & (lane < (int64_t)(word >> 8));
}
static inline aclnn_bw_floats aclnn_bw_keep_floats(aclnn_bw_floats x, aclnn_bw_words lanes)
{
    aclnn_bw_words bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= lanes;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline aclnn_bw_doubles aclnn_bw_keep_doubles(aclnn_bw_doubles x, aclnn_bw_long_words lanes)
{
    aclnn_bw_long_words bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= lanes;
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

#if !defined(__AVX512F__) && !defined(__AVX2__)
/* No load can be masked: lane by lane. */
#define ACLNN_BW_CUTS 1
#define ACLNN_BW_CUTS_16 1
#define ACLNN_BW_KEEP_float(p, lanes) aclnn_bw_keep_floats(aclnn_bw_load_float(p), lanes)
#define ACLNN_BW_KEEP_double(p, lanes) aclnn_bw_keep_doubles(aclnn_bw_load_double(p), lanes)
#define ACLNN_BW_KEEP_half(p, lanes) aclnn_bw_keep_floats(aclnn_bw_load_half(p), lanes)
#define ACLNN_BW_KEEP_bfloat(p, lanes) aclnn_bw_keep_floats(aclnn_bw_load_bfloat(p), lanes)

#define ACLNN_BW_CUT(NAME, T, VEC, LANES, LOAD)                                               \
    static inline VEC NAME(const T *p, int word)                                              \
    {                                                                                         \
        T lanes[LANES];                                                                       \
        memset(lanes, 0, sizeof lanes);                                                       \
        for (int i = word & 255; i < word >> 8; i++)                                          \
            lanes[i] = p[i];                                                                  \
        return LOAD(lanes);                                                                   \
    }
ACLNN_BW_CUT(aclnn_bw_cut_float, float, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_float)
ACLNN_BW_CUT(aclnn_bw_cut_double, double, aclnn_bw_doubles, ACLNN_BW_DOUBLES, aclnn_bw_load_double)
ACLNN_BW_CUT(aclnn_bw_cut_half, aclnn_bw_half, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_half)
ACLNN_BW_CUT(aclnn_bw_cut_bfloat, aclnn_bw_bfloat, aclnn_bw_floats, ACLNN_BW_FLOATS, aclnn_bw_load_bfloat)
#define ACLNN_BW_CUT_float(p, word, start, length) aclnn_bw_cut_float(p, word)
#define ACLNN_BW_CUT_double(p, word, start, length) aclnn_bw_cut_double(p, word)
#define ACLNN_BW_CUT_half(p, word, start, length) aclnn_bw_cut_half(p, word)
#define ACLNN_BW_CUT_bfloat(p, word, start, length) aclnn_bw_cut_bfloat(p, word)
#else
#define ACLNN_BW_CUT_float(p, word, start, length) ACLNN_BW_KEEP_float(p, aclnn_bw_find_lanes(word))
#define ACLNN_BW_CUT_double(p, word, start, length) ACLNN_BW_KEEP_double(p, aclnn_bw_find_long_lanes(word))
#if defined(__AVX512F__)
#define ACLNN_BW_CUT_half(p, word, start, length) ACLNN_BW_KEEP_half(p, word)
#define ACLNN_BW_CUT_bfloat(p, word, start, length) ACLNN_BW_KEEP_bfloat(p, word)
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

/* By the name of the type. */
#define ACLNN_BW_TYPE_float float
#define ACLNN_BW_TYPE_double double
#define ACLNN_BW_TYPE_half aclnn_bw_half
#define ACLNN_BW_TYPE_bfloat aclnn_bw_bfloat
#define ACLNN_BW_SUMS_float aclnn_bw_floats
#define ACLNN_BW_SUMS_double aclnn_bw_doubles
#define ACLNN_BW_SUMS_half aclnn_bw_floats
#define ACLNN_BW_SUMS_bfloat aclnn_bw_floats
#define ACLNN_BW_WIDTH_float ACLNN_BW_FLOATS
#define ACLNN_BW_WIDTH_double ACLNN_BW_DOUBLES
#define ACLNN_BW_WIDTH_half ACLNN_BW_FLOATS
#define ACLNN_BW_WIDTH_bfloat ACLNN_BW_FLOATS
#define ACLNN_BW_LANES_float aclnn_bw_lanes
#define ACLNN_BW_LANES_double aclnn_bw_long_lanes
#define ACLNN_BW_LANES_half aclnn_bw_short_lanes
#define ACLNN_BW_LANES_bfloat aclnn_bw_short_lanes
#define ACLNN_BW_FIND_float aclnn_bw_find_lanes
#define ACLNN_BW_FIND_double aclnn_bw_find_long_lanes
#define ACLNN_BW_FIND_half aclnn_bw_find_short_lanes
#define ACLNN_BW_FIND_bfloat aclnn_bw_find_short_lanes
#define ACLNN_BW_CUTS_float ACLNN_BW_CUTS
#define ACLNN_BW_CUTS_double ACLNN_BW_CUTS
#define ACLNN_BW_CUTS_half ACLNN_BW_CUTS_16
#define ACLNN_BW_CUTS_bfloat ACLNN_BW_CUTS_16

/* The sum of a row's block; `room`: elements from `to` on that may be overwritten, because rows after this one are made
 * after it. */
#define ACLNN_BW_STORE_ROW(S, X, STORE, sum)                                                                     \
    if (e->n >= ACLNN_BW_WIDTH_##X || room >= ACLNN_BW_WIDTH_##X) {                                              \
        STORE(to + q, sum);                                                                                      \
    } else {                                                                                                     \
        S lanes[ACLNN_BW_WIDTH_##X];                                                                             \
        STORE(lanes, sum);                                                                                       \
        aclnn_bw_copy_lanes((char *)to, (const char *)lanes, (size_t)e->n * sizeof(S), sizeof lanes);            \
    }

#if defined(__AVX512F__)
#define ACLNN_BW_GATHER(NAME, T, S, X, STORE)                                                                    \
    static inline void NAME(S *to, int64_t room, const T *from, const int64_t *rows, const int64_t *starts,      \
                            int64_t count, const aclnn_bw_edges *e)                                              \
    {                                                                                                            \
        const uint16_t *words = e->words;                                                                        \
        const int64_t taps = e->taps, step = e->step;                                                            \
        (void)starts;                                                                                            \
        for (int64_t block = 0; block < e->blocks; block++) {                                                    \
            int64_t q = aclnn_bw_block_start(e, block);                                                          \
            ACLNN_BW_SUMS_##X sum = {0};                                                                         \
            if (block >= e->left && block < e->right) {                                                          \
                if (taps == 3)                                                                                   \
                    for (int64_t a = 0; a < count; a++) {                                                        \
                        const T *p = from + (rows[a] + q);                                                       \
                        sum += aclnn_bw_load_##X(p);                                                             \
                        sum += aclnn_bw_load_##X(p + step);                                                      \
                        sum += aclnn_bw_load_##X(p + 2 * step);                                                  \
                    }                                                                                            \
                else                                                                                             \
                    for (int64_t a = 0; a < count; a++)                                                          \
                        for (int64_t t = 0; t < taps; t++)                                                       \
                            sum += aclnn_bw_load_##X(from + (rows[a] + t * step + q));                           \
            } else {                                                                                             \
                for (int64_t a = 0; a < count; a++)                                                              \
                    for (int64_t t = 0; t < taps; t++)                                                           \
                        sum += ACLNN_BW_KEEP_##X(from + (rows[a] + t * step + q), words[t]);                     \
                words += taps;                                                                                   \
            }                                                                                                    \
            ACLNN_BW_STORE_ROW(S, X, STORE, sum)                                                                 \
        }                                                                                                        \
    }
#else
#define ACLNN_BW_KEPT 16 /* taps whose lanes are found once a row */

/* The blocks from `block` on, all of whose lanes hold windows, M at a time while they lie before `end`: their sums do
 * not wait for each other. */
#define ACLNN_BW_SUM_WHOLE(M, TAPS, end, X, STORE)                                                               \
    for (; block + (M) <= (end); block += (M)) {                                                                 \
        const int64_t q = aclnn_bw_block_start(e, block);                                                        \
        ACLNN_BW_SUMS_##X sum[M];                                                                                \
        for (int i = 0; i < (M); i++)                                                                            \
            sum[i] = (ACLNN_BW_SUMS_##X){0};                                                                     \
        for (int64_t a = 0; a < count; a++)                                                                      \
            for (int64_t t = 0; t < (TAPS); t++)                                                                 \
                for (int i = 0; i < (M); i++)                                                                    \
                    sum[i] += aclnn_bw_load_##X(from + (rows[a] + t * step + q) + i * ACLNN_BW_WIDTH_##X);       \
        for (int i = 0; i < (M); i++)                                                                            \
            STORE(to + q + i * ACLNN_BW_WIDTH_##X, sum[i]);                                                      \
    }

/* The blocks at the edges, in pairs; an odd one is made twice. */
#define ACLNN_BW_SUM_EDGES(TAPS, S, X, STORE)                                                                    \
    for (int64_t edge = 0; edge < edges; edge += 2, words += 2 * (TAPS)) {                                       \
        const int64_t other = edge + 1 < edges ? edge + 1 : edge;                                                \
        const uint16_t *other_words = words + (other - edge) * (TAPS);                                           \
        const int64_t q = aclnn_bw_block_start(e, edge < e->left ? edge : edge - e->left + e->right);            \
        const int64_t apart = aclnn_bw_block_start(e, other < e->left ? other : other - e->left + e->right) - q; \
        ACLNN_BW_LANES_##X kept[ACLNN_BW_KEPT], other_kept[ACLNN_BW_KEPT];                                       \
        ACLNN_BW_SUMS_##X sum = {0}, other_sum = {0};                                                            \
        for (int64_t t = 0; t < (TAPS) && t < ACLNN_BW_KEPT; t++) {                                              \
            kept[t] = ACLNN_BW_FIND_##X(words[t]);                                                               \
            other_kept[t] = ACLNN_BW_FIND_##X(other_words[t]);                                                   \
        }                                                                                                        \
        for (int64_t a = 0; a < count; a++) {                                                                    \
            const ACLNN_BW_TYPE_##X *p = from + (rows[a] + q);                                                   \
            int64_t first = starts[a] + e->window + q;                                                           \
            if ((TAPS) <= ACLNN_BW_KEPT                                                                          \
                && (!ACLNN_BW_CUTS_##X || (first >= ((TAPS) - 1) * e->window_step                                \
                                           && first + apart + ACLNN_BW_WIDTH_##X <= e->length)))                 \
                for (int64_t t = 0; t < (TAPS); t++, p += step) {                                                \
                    sum += ACLNN_BW_KEEP_##X(p, kept[t]);                                                        \
                    other_sum += ACLNN_BW_KEEP_##X(p + apart, other_kept[t]);                                    \
                }                                                                                                \
            else                                                                                                 \
                for (int64_t t = 0; t < (TAPS); t++, p += step, first -= e->window_step) {                       \
                    sum += ACLNN_BW_CUT_##X(p, words[t], first, e->length);                                      \
                    other_sum += ACLNN_BW_CUT_##X(p + apart, other_words[t], first + apart, e->length);          \
                }                                                                                                \
        }                                                                                                        \
        if (e->n >= ACLNN_BW_WIDTH_##X || room >= ACLNN_BW_WIDTH_##X) {                                          \
            STORE(to + q, sum);                                                                                  \
            STORE(to + (q + apart), other_sum);                                                                  \
        } else {                                                                                                 \
            S lanes[ACLNN_BW_WIDTH_##X];                                                                         \
            STORE(lanes, sum);                                                                                   \
            aclnn_bw_copy_lanes((char *)to, (const char *)lanes, (size_t)e->n * sizeof(S), sizeof lanes);        \
        }                                                                                                        \
    }

#define ACLNN_BW_GATHER_TAPS(TAPS, S, X, STORE)                                                                  \
    do {                                                                                                         \
        ACLNN_BW_SUM_WHOLE(4, TAPS, whole, X, STORE)                                                             \
        ACLNN_BW_SUM_WHOLE(2, TAPS, whole, X, STORE)                                                             \
        ACLNN_BW_SUM_WHOLE(1, TAPS, e->right, X, STORE)                                                          \
        ACLNN_BW_SUM_EDGES(TAPS, S, X, STORE)                                                                    \
    } while (0)

/* Aligned: the same code 16 bytes further on took 1.06 to 1.15 of the time in float32. */
#define ACLNN_BW_GATHER(NAME, T, S, X, STORE)                                                                    \
    static __attribute__((noinline, aligned(64))) void NAME(S *to, int64_t room, const T *from,                  \
                                                            const int64_t *rows, const int64_t *starts,          \
                                                            int64_t count, const aclnn_bw_edges *e)              \
    {                                                                                                            \
        const int64_t taps = e->taps, step = e->step, edges = e->left + e->blocks - e->right;                    \
        const int64_t whole = e->right < e->blocks ? e->right : e->blocks - 1;                                   \
        const uint16_t *words = e->words;                                                                        \
        int64_t block = e->left;                                                                                 \
        if (taps == 3)                                                                                           \
            ACLNN_BW_GATHER_TAPS(3, S, X, STORE);                                                                \
        else if (taps == 2)                                                                                      \
            ACLNN_BW_GATHER_TAPS(2, S, X, STORE);                                                                \
        else if (taps == 1)                                                                                      \
            ACLNN_BW_GATHER_TAPS(1, S, X, STORE);                                                                \
        else                                                                                                     \
            ACLNN_BW_GATHER_TAPS(taps, S, X, STORE);                                                             \
    }
#endif

ACLNN_BW_GATHER(aclnn_bw_gather_float, float, float, float, aclnn_bw_store_float)
ACLNN_BW_GATHER(aclnn_bw_gather_double, double, double, double, aclnn_bw_store_double)
ACLNN_BW_GATHER(aclnn_bw_gather_half, aclnn_bw_half, aclnn_bw_half, half, aclnn_bw_store_half)
ACLNN_BW_GATHER(aclnn_bw_gather_bfloat, aclnn_bw_bfloat, aclnn_bw_bfloat, bfloat, aclnn_bw_store_bfloat)
ACLNN_BW_GATHER(aclnn_bw_sum_half, aclnn_bw_half, float, half, aclnn_bw_store_float)
ACLNN_BW_GATHER(aclnn_bw_sum_bfloat, aclnn_bw_bfloat, float, bfloat, aclnn_bw_store_float)

/* The rows of windows, where they lie side by side along h too: kernel row a of window row lh is from[a*pitch +
 * lh*width], and reaches row lh + a - pad. */
typedef struct { int64_t pad, taps, windows, width, pitch; } aclnn_bw_window_rows;

/* Whether a row is one block, and not all lanes of it hold windows. */
static inline int aclnn_bw_is_one_edge(const aclnn_bw_edges *e)
{
    return e->blocks == 1 && (e->left > 0 || e->right == 0);
}

#define ACLNN_BW_EDGE_TERM(X, t, lanes)                                                                          \
    do {                                                                                                         \
        const int64_t lane = start - (t) * e->window_step;                                                       \
        if (!ACLNN_BW_CUTS_##X || (lane >= 0 && lane + ACLNN_BW_WIDTH_##X <= e->length))                         \
            sum += ACLNN_BW_KEEP_##X(p + (t) * step, lanes);                                                     \
        else                                                                                                     \
            sum += ACLNN_BW_CUT_##X(p + (t) * step, words[t], lane, e->length);                                  \
    } while (0)

/* The rows [row, end) of such windows, for edges of one block: the lanes of the taps stay in mask registers, and the
 * sums of several rows are in flight. A whole vector may be stored up to `limit`, NULL if rows do not lie one behind the
 * other, in the order in which they are made. */
#define ACLNN_BW_GATHER_ROWS(NAME, T, S, X, STORE)                                                               \
    static __attribute__((noinline)) void NAME(S *to, int64_t down, const S *limit, const T *from,               \
                                               const aclnn_bw_window_rows *h, int64_t row, int64_t end,          \
                                               const aclnn_bw_edges *e)                                          \
    {                                                                                                            \
        const int64_t taps = e->taps, step = e->step, width = h->width, next = h->pitch - width;                 \
        const uint16_t *words = e->words;                                                                        \
        const ACLNN_BW_LANES_##X one = ACLNN_BW_FIND_##X(words[0]), two = ACLNN_BW_FIND_##X(words[1]);           \
        const ACLNN_BW_LANES_##X three = ACLNN_BW_FIND_##X(words[2]);                                            \
        for (; row < end; row++, to += down) {                                                                   \
            const int64_t lh = row + h->pad;                                                                     \
            const int64_t first = lh < h->windows ? 0 : lh - h->windows + 1;                                     \
            const int64_t last = lh < h->taps ? lh + 1 : h->taps;                                                \
            const T *p = from + (first * h->pitch + (lh - first) * width);                                       \
            int64_t start = (lh - first) * width + e->window;                                                    \
            ACLNN_BW_SUMS_##X sum = {0};                                                                         \
            if (taps == 3)                                                                                       \
                for (int64_t a = first; a < last; a++, p += next, start -= width) {                              \
                    ACLNN_BW_EDGE_TERM(X, 0, one);                                                               \
                    ACLNN_BW_EDGE_TERM(X, 1, two);                                                               \
                    ACLNN_BW_EDGE_TERM(X, 2, three);                                                             \
                }                                                                                                \
            else                                                                                                 \
                for (int64_t a = first; a < last; a++, p += next, start -= width)                                \
                    for (int64_t t = 0; t < taps; t++)                                                           \
                        ACLNN_BW_EDGE_TERM(X, t, ACLNN_BW_FIND_##X(words[t]));                                   \
            if (e->n >= ACLNN_BW_WIDTH_##X || (uintptr_t)(to + ACLNN_BW_WIDTH_##X) <= (uintptr_t)limit) {        \
                STORE(to, sum);                                                                                  \
            } else {                                                                                             \
                S lanes[ACLNN_BW_WIDTH_##X];                                                                     \
                STORE(lanes, sum);                                                                               \
                aclnn_bw_copy_lanes((char *)to, (const char *)lanes, (size_t)e->n * sizeof(S), sizeof lanes);    \
            }                                                                                                    \
        }                                                                                                        \
    }

ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_wide_float_rows, float, float, float, aclnn_bw_store_float)
#if defined(__AVX512VL__)
#define ACLNN_BW_SUMS_short_float __m256
#define ACLNN_BW_WIDTH_short_float 8
#define ACLNN_BW_LANES_short_float aclnn_bw_lanes
#define ACLNN_BW_FIND_short_float aclnn_bw_find_lanes
#define ACLNN_BW_CUTS_short_float 0
#define ACLNN_BW_KEEP_short_float(p, lanes) _mm256_maskz_loadu_ps((__mmask8)(lanes), p)
#define ACLNN_BW_CUT_short_float(p, word, start, length) ACLNN_BW_KEEP_short_float(p, word)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_short_float_rows, float, float, short_float, _mm256_storeu_ps)
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
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_double_rows, double, double, double, aclnn_bw_store_double)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_half_rows, aclnn_bw_half, aclnn_bw_half, half, aclnn_bw_store_half)
ACLNN_BW_GATHER_ROWS(aclnn_bw_gather_bfloat_rows, aclnn_bw_bfloat, aclnn_bw_bfloat, bfloat, aclnn_bw_store_bfloat)

/* AVX2 and below: small planes whose rows of windows are as long as their own. All positions are one row, whose terms
 * lie at a fixed distance each. Of each term, which positions have it: ones or zeros, of the size of an element. */
#define ACLNN_BW_FLAT_BYTES 16384
#define ACLNN_BW_FLAT_TERMS 64
typedef struct {
    int64_t terms; /* 0: not so */
    int64_t pitch; /* bytes between the lanes of two terms: whole cache lines */
    int64_t offsets[ACLNN_BW_FLAT_TERMS];
    char lanes[ACLNN_BW_FLAT_BYTES] __attribute__((aligned(64)));
} aclnn_bw_flat;

/* Whether they fit their tables. `most`: elements from the plane's first column on that may be read, 0 if any may, for
 * loads are masked. */
static inline int aclnn_bw_find_flat(aclnn_bw_flat *f, const aclnn_bw_window_rows *h, int64_t height, int64_t dilation,
                                     const aclnn_bw_edges *e, int64_t column, int64_t most, int64_t item)
{
    const int64_t width = h->width, size = height * width;
    f->terms = 0;
    f->pitch = (size * item + 63) / 64 * 64;
    /* Wider numbers gain nothing from larger tables: float64 lost a third on planes of 14x14. */
    if (h->taps * e->taps > ACLNN_BW_FLAT_TERMS
        || h->taps * e->taps * f->pitch > (item == 2 ? ACLNN_BW_FLAT_BYTES : ACLNN_BW_FLAT_BYTES / 2))
        return 0;
    for (int64_t a = 0; a < h->taps; a++)
        for (int64_t t = 0; t < e->taps; t++) {
            const int64_t down = h->pad - a * dilation, right = e->window - t * e->window_step;
            const int64_t offset = a * h->pitch + t * column + down * width + right, k = a * e->taps + t;
            const int64_t low = aclnn_bw_clip_lane(-right, width), high = aclnn_bw_clip_lane(width - right, width);
            char *lanes = f->lanes + k * f->pitch;
            if (most > 0 && (offset < 0 || offset + size > most))
                return 0;
            f->offsets[k] = offset;
            memset(lanes, 0, (size_t)(size * item));
            if (low < high)
                for (int64_t row = 0; row < height; row++)
                    if (row + down >= 0 && row + down < h->windows)
                        memset(lanes + (row * width + low) * item, 255, (size_t)((high - low) * item));
        }
    f->terms = h->taps * e->taps;
    return 1;
}

#if defined(__AVX512F__)
#define ACLNN_BW_HAS_FLAT 0
#define ACLNN_BW_NO_FLAT(NAME, T)                                                                                \
    static inline int64_t NAME(T *to, int64_t i, int64_t n, const T *from, int64_t first, const aclnn_bw_flat *f) \
    {                                                                                                            \
        (void)to, (void)i, (void)from, (void)first, (void)f;                                                     \
        return n;                                                                                                \
    }
ACLNN_BW_NO_FLAT(aclnn_bw_flat_float, float)
ACLNN_BW_NO_FLAT(aclnn_bw_flat_double, double)
ACLNN_BW_NO_FLAT(aclnn_bw_flat_half, aclnn_bw_half)
ACLNN_BW_NO_FLAT(aclnn_bw_flat_bfloat, aclnn_bw_bfloat)
#else
#define ACLNN_BW_HAS_FLAT 1

/* Sixteen or eight numbers of bfloat16, those at even and at odd places apart: widened by a shift, or by a mask. */
typedef uint32_t aclnn_bw_pairs __attribute__((vector_size(4 * ACLNN_BW_FLOATS)));
typedef struct { aclnn_bw_floats even, odd; } aclnn_bw_pair_sums;

static inline aclnn_bw_pair_sums aclnn_bw_add_pairs(aclnn_bw_pair_sums sum, const aclnn_bw_bfloat *p, const void *lanes)
{
    aclnn_bw_pairs x, kept;
    memcpy(&x, p, sizeof x);
    memcpy(&kept, lanes, sizeof kept);
    x &= kept;
    sum.even += (aclnn_bw_floats)(x << 16);
    sum.odd += (aclnn_bw_floats)(x & 0xffff0000);
    return sum;
}

static inline aclnn_bw_pairs aclnn_bw_round_pairs(aclnn_bw_floats sum)
{
    aclnn_bw_pairs x = (aclnn_bw_pairs)sum;     /* a NaN has zeros in its lower half: see aclnn_bw_store_bfloat */
    return x + 0x7fff + (x >> 16 & 1);
}

static inline void aclnn_bw_store_pairs(aclnn_bw_bfloat *p, aclnn_bw_pair_sums sum)
{
    aclnn_bw_pairs x = aclnn_bw_round_pairs(sum.even) >> 16 | (aclnn_bw_round_pairs(sum.odd) & 0xffff0000);
    memcpy(p, &x, sizeof x);
}

#if defined(__AVX2__)
#define ACLNN_BW_FLAT_LANES(at) _mm256_loadu_si256((const __m256i *)(const void *)(at))
#define ACLNN_BW_FLAT_ADD_float(sum, p, at) ((sum) + ACLNN_BW_KEEP_float(p, ACLNN_BW_FLAT_LANES(at)))
#define ACLNN_BW_FLAT_ADD_double(sum, p, at) ((sum) + ACLNN_BW_KEEP_double(p, ACLNN_BW_FLAT_LANES(at)))
#define ACLNN_BW_FLAT_ADD_half(sum, p, at) \
    ((sum) + ACLNN_BW_KEEP_half(p, _mm_loadu_si128((const __m128i *)(const void *)(at))))
#else
static inline aclnn_bw_words aclnn_bw_flat_lanes(const void *at)
{
    aclnn_bw_words lanes;
    memcpy(&lanes, at, sizeof lanes);
    return lanes;
}
static inline aclnn_bw_floats aclnn_bw_keep_halves(const aclnn_bw_half *p, const void *at)
{
    uint64_t bits, lanes;
    aclnn_bw_half kept[4];
    memcpy(&bits, p, sizeof bits);
    memcpy(&lanes, at, sizeof lanes);
    bits &= lanes;
    memcpy(kept, &bits, sizeof bits);
    return aclnn_bw_load_half(kept);
}
#define ACLNN_BW_FLAT_ADD_float(sum, p, at) ((sum) + ACLNN_BW_KEEP_float(p, aclnn_bw_flat_lanes(at)))
#define ACLNN_BW_FLAT_ADD_double(sum, p, at) \
    ((sum) + ACLNN_BW_KEEP_double(p, (aclnn_bw_long_words)aclnn_bw_flat_lanes(at)))
#define ACLNN_BW_FLAT_ADD_half(sum, p, at) ((sum) + aclnn_bw_keep_halves(p, at))
#endif
#define ACLNN_BW_FLAT_ADD_bfloat aclnn_bw_add_pairs

/* M vectors, or one fewer and a part of another, which then overlaps the one before. */
#define ACLNN_BW_SUM_FLAT(M, T, VEC, WIDTH, ADD, STORE)                                                          \
    if (n - i > ((M) - 1) * (WIDTH)) {                                                                           \
        const int64_t last = n - i < (M) * (WIDTH) ? n - i - (WIDTH) : ((M) - 1) * (WIDTH);                      \
        const T *p = from + (first + i);                                                                         \
        const char *lanes = f->lanes + (first + i) * (int64_t)sizeof(T);                                         \
        VEC sum[M];                                                                                              \
        for (int j = 0; j < (M); j++)                                                                            \
            sum[j] = (VEC){0};                                                                                   \
        for (int64_t k = 0; k < f->terms; k++, lanes += f->pitch)                                                \
            for (int j = 0; j < (M); j++) {                                                                      \
                const int64_t at = j < (M) - 1 ? j * (WIDTH) : last;                                             \
                sum[j] = ADD(sum[j], p + (f->offsets[k] + at), lanes + at * (int64_t)sizeof(T));                 \
            }                                                                                                    \
        for (int j = 0; j < (M); j++)                                                                            \
            STORE(to + i + (j < (M) - 1 ? j * (WIDTH) : last), sum[j]);                                          \
        return i + (M) * (WIDTH);                                                                                \
    }

/* to[i : i + some], of n, which are the positions from `first` on of the plane; returns i + some. */
#define ACLNN_BW_FLAT(NAME, T, VEC, WIDTH, ADD, STORE)                                                           \
    static __attribute__((noinline)) int64_t NAME(T *to, int64_t i, int64_t n, const T *from, int64_t first,     \
                                                  const aclnn_bw_flat *f)                                        \
    {                                                                                                            \
        if ((WIDTH) <= ACLNN_BW_FLOATS) {                                                                        \
            ACLNN_BW_SUM_FLAT(8, T, VEC, WIDTH, ADD, STORE)                                                      \
            ACLNN_BW_SUM_FLAT(7, T, VEC, WIDTH, ADD, STORE)                                                      \
            ACLNN_BW_SUM_FLAT(6, T, VEC, WIDTH, ADD, STORE)                                                      \
            ACLNN_BW_SUM_FLAT(5, T, VEC, WIDTH, ADD, STORE)                                                      \
        }                                                                                                        \
        ACLNN_BW_SUM_FLAT(4, T, VEC, WIDTH, ADD, STORE)                                                          \
        ACLNN_BW_SUM_FLAT(3, T, VEC, WIDTH, ADD, STORE)                                                          \
        ACLNN_BW_SUM_FLAT(2, T, VEC, WIDTH, ADD, STORE)                                                          \
        ACLNN_BW_SUM_FLAT(1, T, VEC, WIDTH, ADD, STORE)                                                          \
        return n;                                                                                                \
    }

ACLNN_BW_FLAT(aclnn_bw_flat_float, float, aclnn_bw_floats, ACLNN_BW_FLOATS, ACLNN_BW_FLAT_ADD_float,
              aclnn_bw_store_float)
ACLNN_BW_FLAT(aclnn_bw_flat_double, double, aclnn_bw_doubles, ACLNN_BW_DOUBLES, ACLNN_BW_FLAT_ADD_double,
              aclnn_bw_store_double)
ACLNN_BW_FLAT(aclnn_bw_flat_half, aclnn_bw_half, aclnn_bw_floats, ACLNN_BW_FLOATS, ACLNN_BW_FLAT_ADD_half,
              aclnn_bw_store_half)
ACLNN_BW_FLAT(aclnn_bw_flat_bfloat, aclnn_bw_bfloat, aclnn_bw_pair_sums, 2 * ACLNN_BW_FLOATS,
              ACLNN_BW_FLAT_ADD_bfloat, aclnn_bw_store_pairs)
#endif

/* Which rows of windows reach a row of out, as find_rows has them. Kernel rows that are tap_step apart reach it from
 * windows that are window_step apart; the others do not. */
typedef struct { int64_t stride, dilation, pad, taps, windows, tap_step, window_step; } aclnn_bw_walk;

/* How many they are; of the first of them, the kernel row and the row of windows: 0 <= *window < windows, and the last
 * is *window - (count-1)*window_step >= 0. Of none, 0 and 0. */
static inline int64_t aclnn_bw_walk_rows(const aclnn_bw_walk *h, int64_t row, int64_t *tap, int64_t *window)
{
    int64_t position = row + h->pad, a = 0, count = 0, first_tap, first_window;
    *tap = *window = 0;
    if (h->stride == 2) {
        if (position & 1) {
            a = 1;
            position -= h->dilation;
        }
        if (position < 0 || position & 1)
            return 0;
        position >>= 1;
    } else if (h->stride > 1) {
        for (; position >= 0 && a < h->tap_step && position % h->stride != 0; a++)
            position -= h->dilation;
        if (position < 0 || a == h->tap_step)
            return 0;
        position /= h->stride;
    }
    for (; position >= h->windows && a < h->taps; a += h->tap_step)
        position -= h->window_step;
    first_tap = a;
    first_window = position;
    for (; position >= 0 && a < h->taps; a += h->tap_step, count++)
        position -= h->window_step;
    if (count > 0) {
        *tap = first_tap;
        *window = first_window;
    }
    return count;
}

/* AVX2: rows of two phases, the even and the odd positions, each summed like a row of stride 1 and stored interleaved.
 * A block is 2*width positions, the last overlaps the one before. Of a block at position s the even ones begin at the
 * phase's position (s + 1)/2, the odd ones at s/2.
 *
 * What is read. Of blocks in [left, right) every lane of every tap is a window in [0, windows) of a row of windows in
 * [0, Lh). The others, the edges, read whole vectors of 16 bits and keep some lanes. Each has one lane at least that
 * holds a window, or find_phases refuses: it begins less than a vector before its row of windows, or ends less than one
 * behind. That is inside the line around packed columns; among the plane's columns, if these lie side by side and
 * row_is_safe says so; and inside its own column otherwise. Vectors that are not are cut off one by one. Wider numbers
 * are read by masked loads, which touch the kept lanes alone.
 *
 * What is written. Blocks begin at 2*width*block <= n - 2*width, or at n - 2*width; a row of less than one block is one
 * edge, and whole only up to `limit`. */
#if defined(__AVX2__) && !defined(__AVX512F__)
#define ACLNN_BW_HAS_PHASES 1
#else
#define ACLNN_BW_HAS_PHASES 0
#endif
#define ACLNN_BW_PHASE_EDGES 16     /* blocks */
#define ACLNN_BW_PHASE_LANES 64     /* taps of all of them */

enum { ACLNN_BW_READS_ROUND, ACLNN_BW_READS_PLANE, ACLNN_BW_READS_COLUMN };

/* Phase 0 holds the even positions, phase 1 the odd ones. Steps and windows are those of aclnn_bw_edges. */
typedef struct {
    int64_t blocks;                 /* 0: not so */
    int64_t left, right;            /* of the blocks between, all lanes of all taps hold windows */
    int64_t edges;                  /* the other blocks */
    int64_t n, windows, step, window_step, length, width;
    int64_t taps[2], window[2];
    int64_t base[2];                /* elements from the plane to the first tap's window for position 0 */
    int64_t pitch;                  /* elements from a kernel row to the next */
    int64_t down, next;             /* between the rows of windows that reach a row: windows up, elements on */
    int64_t reads;                  /* where the edges' vectors may lie: round the plane, in it, in their column */
    int64_t low, high;              /* of the plane or column, they touch [low, high), from a row's first window on */
    int64_t most;                   /* elements of the plane */
    /* Rows whose kernel rows are all there and safe, if those have a stride of 2 and a dilation of 1. */
    int64_t inner, inner_end, inner_counts[2];
    int64_t starts[ACLNN_BW_PHASE_EDGES];   /* of the edges */
    uint16_t words[ACLNN_BW_PHASE_LANES];   /* the lanes of the even phase's taps and of the odd one's, edge by edge */
    char lanes[ACLNN_BW_PHASE_LANES][32] __attribute__((aligned(32)));  /* the same, as masks */
} aclnn_bw_phases;

#if ACLNN_BW_HAS_PHASES
static inline int64_t aclnn_bw_phases_start(const aclnn_bw_phases *e, int64_t block)
{
    int64_t start = 2 * block * e->width, last = e->n - 2 * e->width;
    return start <= last ? start : last > 0 ? last : 0;
}

/* Whether the windows of the vectors of a block are all >= 0 (side 0), or all < windows (side 1). */
static inline int aclnn_bw_phases_lie_within(const aclnn_bw_phases *e, int64_t block, int side)
{
    for (int phase = 0; phase < 2; phase++) {
        const int64_t first = (aclnn_bw_phases_start(e, block) + 1 - phase) / 2 + e->window[phase];
        if (e->taps[phase] > 0 && (side == 0 ? first < (e->taps[phase] - 1) * e->window_step
                                             : first + e->width > e->windows))
            return 0;
    }
    return 1;
}

/* Whether no vector at the edges of a row leaves what may be read. The rows of windows that reach a row lie next > 0
 * apart if there are two, for then window_step < Lh and next > pitch - Lh*Lw. */
static inline int aclnn_bw_row_is_safe(const aclnn_bw_phases *e, int64_t tap, int64_t window, int64_t count)
{
    const int64_t first = window * e->windows, at_first = tap * e->pitch + first;
    if (e->reads == ACLNN_BW_READS_ROUND || count == 0)
        return 1;
    if (e->reads == ACLNN_BW_READS_PLANE)
        return at_first + e->low >= 0 && at_first + (count - 1) * e->next + e->high <= e->most;
    return first - (count - 1) * e->down + e->low >= 0 && first + e->high <= e->length;
}

static inline int aclnn_bw_row_is_inner(const aclnn_bw_phases *e, const aclnn_bw_walk *h, int64_t row)
{
    int64_t tap, window;
    const int64_t position = row + h->pad, count = aclnn_bw_walk_rows(h, row, &tap, &window);
    return count == e->inner_counts[position & 1] && aclnn_bw_row_is_safe(e, tap, window, count)
        && (count == 0 || (tap == (position & 1) && window == position >> 1));
}

/* A few rows at either end are not. What is true of two rows side by side here and there is true of all between: of
 * every second row, the windows that reach it move on by one row each. */
static inline void aclnn_bw_find_inner(aclnn_bw_phases *e, const aclnn_bw_walk *h, int64_t height)
{
    int64_t first = 0, end = height;
    const int64_t most = h->taps + 4;
    e->inner = e->inner_end = 0;
    e->inner_counts[0] = (h->taps + 1) / 2;
    e->inner_counts[1] = h->taps / 2;
    if (h->stride != 2 || h->dilation != 1 || height < 2 * most)
        return;
    while (first < most && !(aclnn_bw_row_is_inner(e, h, first) && aclnn_bw_row_is_inner(e, h, first + 1)))
        first++;
    while (end > height - most && !(aclnn_bw_row_is_inner(e, h, end - 1) && aclnn_bw_row_is_inner(e, h, end - 2)))
        end--;
    if (first < most && end > height - most) {
        e->inner = first;
        e->inner_end = end;
    }
}

/* Whether the lanes fit their table. What the caller fills in is there: see make_phases. */
static inline int aclnn_bw_find_phases(aclnn_bw_phases *e, const aclnn_bw_walk *h, int64_t height, int64_t item)
{
    const int64_t width = item == 8 ? ACLNN_BW_DOUBLES : ACLNN_BW_FLOATS, both = e->taps[0] + e->taps[1];
    const int64_t blocks = e->n <= 2 * width ? 1 : (e->n - 1) / (2 * width) + 1;
    int64_t count = 0;
    e->blocks = e->low = e->high = 0;
    /* A row of less than a block is stored as an edge, all lanes or not. */
    e->left = e->n < 2 * width;
    e->width = width;
    e->right = blocks;
    /* The first windows of a block grow with it. */
    while (e->left < blocks && e->left <= ACLNN_BW_PHASE_EDGES && !aclnn_bw_phases_lie_within(e, e->left, 0))
        e->left++;
    while (e->right > e->left && blocks - e->right <= ACLNN_BW_PHASE_EDGES
           && !aclnn_bw_phases_lie_within(e, e->right - 1, 1))
        e->right--;
    e->edges = e->left + blocks - e->right;
    if (e->edges > ACLNN_BW_PHASE_EDGES || both > ACLNN_BW_PHASE_LANES || e->edges * both > ACLNN_BW_PHASE_LANES)
        return 0;
    e->blocks = blocks;
    for (int64_t edge = 0; edge < e->edges; edge++) {
        const int64_t start = aclnn_bw_phases_start(e, edge < e->left ? edge : edge - e->left + e->right);
        e->starts[edge] = start;
        for (int phase = 0; phase < 2; phase++) {
            int64_t first = (start + 1 - phase) / 2 + e->window[phase];
            for (int64_t t = 0; t < e->taps[phase]; t++, first -= e->window_step) {
                const int64_t low = aclnn_bw_clip_lane(-first, width);
                const int64_t high = aclnn_bw_clip_lane(e->windows - first, width);
                const int word = ACLNN_BW_WORD((int)low, (int)high);
                const int64_t touched = e->reads == ACLNN_BW_READS_COLUMN
                    ? first : e->base[phase] + (start + 1 - phase) / 2 + t * e->step;
                if (low >= high) {
                    e->blocks = 0;
                    return 0;
                }
                e->words[count] = (uint16_t)word;
                if (item == 2)
                    _mm_store_si128((__m128i *)(void *)e->lanes[count], aclnn_bw_find_short_lanes(word));
                else
                    _mm256_store_si256((__m256i *)(void *)e->lanes[count],
                                       item == 8 ? aclnn_bw_find_long_lanes(word) : aclnn_bw_find_lanes(word));
                if (count == 0 || touched < e->low)
                    e->low = touched;
                if (count == 0 || touched + width > e->high)
                    e->high = touched + width;
                count++;
            }
        }
    }
    aclnn_bw_find_inner(e, h, height);
    return 1;
}

static inline void aclnn_bw_store_phases_float(float *p, __m256 a, __m256 b)
{
    __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(low, high, 0x31));
}
static inline void aclnn_bw_store_phases_double(double *p, __m256d a, __m256d b)
{
    __m256d low = _mm256_unpacklo_pd(a, b), high = _mm256_unpackhi_pd(a, b);
    _mm256_storeu_pd(p, _mm256_permute2f128_pd(low, high, 0x20));
    _mm256_storeu_pd(p + 4, _mm256_permute2f128_pd(low, high, 0x31));
}
static inline void aclnn_bw_store_phases_half(aclnn_bw_half *p, __m256 a, __m256 b)
{
    __m128i even = _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT), odd = _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_unpacklo_epi16(even, odd));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm_unpackhi_epi16(even, odd));
}
static inline void aclnn_bw_store_phases_bfloat(aclnn_bw_bfloat *p, __m256 a, __m256 b)
{
    aclnn_bw_store_pairs(p, (aclnn_bw_pair_sums){a, b});
}

#define ACLNN_BW_PHASE_LANE(X, at) (*(const ACLNN_BW_LANES_##X *)(const void *)e->lanes[at])

/* The sums of a block at an edge, some of whose vectors would leave their columns. `even` and `odd` are its first
 * terms, `first` the window of its column that a row of windows begins with. */
#define ACLNN_BW_CUT_PHASES(NAME, X)                                                                             \
    static __attribute__((noinline)) void NAME(ACLNN_BW_SUMS_##X *sums, const ACLNN_BW_TYPE_##X *even,           \
                                               const ACLNN_BW_TYPE_##X *odd, int64_t first, int64_t count,       \
                                               const aclnn_bw_phases *e, int64_t edge)                           \
    {                                                                                                            \
        int64_t at = edge * (e->taps[0] + e->taps[1]);                                                           \
        const int64_t s = e->starts[edge];                                                                       \
        for (int phase = 0; phase < 2; at += e->taps[phase++]) {                                                 \
            ACLNN_BW_SUMS_##X sum = {0};                                                                         \
            for (int64_t a = 0; a < count; a++) {                                                                \
                const ACLNN_BW_TYPE_##X *p = (phase == 0 ? even : odd) + a * e->next;                            \
                int64_t window = first - a * e->down + e->window[phase] + (s + 1 - phase) / 2;                   \
                for (int64_t t = 0; t < e->taps[phase]; t++, p += e->step, window -= e->window_step)             \
                    if (window >= 0 && window + ACLNN_BW_WIDTH_##X <= e->length)                                 \
                        sum += ACLNN_BW_KEEP_##X(p, ACLNN_BW_PHASE_LANE(X, at + t));                             \
                    else                                                                                         \
                        sum += ACLNN_BW_CUT_##X(p, e->words[at + t], window, e->length);                         \
            }                                                                                                    \
            sums[phase] = sum;                                                                                   \
        }                                                                                                        \
    }
ACLNN_BW_CUT_PHASES(aclnn_bw_cut_half_phases, half)
ACLNN_BW_CUT_PHASES(aclnn_bw_cut_bfloat_phases, bfloat)
#define aclnn_bw_cut_float_phases(sums, even, odd, first, count, e, edge) (void)(first)
#define aclnn_bw_cut_double_phases(sums, even, odd, first, count, e, edge) (void)(first)

/* Whole vectors may be stored up to `limit`, see ACLNN_BW_GATHER_ROWS. Only the last block of many is at an odd s. */
#define ACLNN_BW_STORE_PHASES(X)                                                                                 \
    if (s & 1) {                                                                                                 \
        aclnn_bw_store_phases_##X(to + s, odd_sum, even_sum);                                                    \
    } else if (whole) {                                                                                          \
        aclnn_bw_store_phases_##X(to + s, even_sum, odd_sum);                                                    \
    } else {                                                                                                     \
        ACLNN_BW_TYPE_##X block_sums[2 * ACLNN_BW_WIDTH_##X];                                                    \
        aclnn_bw_store_phases_##X(block_sums, even_sum, odd_sum);                                                \
        aclnn_bw_copy_lanes((char *)to, (const char *)block_sums, (size_t)e->n * sizeof *to, sizeof block_sums); \
    }

/* The blocks from `block` on, all of whose lanes hold windows, M at a time while they lie before `end`. */
#define ACLNN_BW_WHOLE_PHASES(X, M, end, COUNT, EVEN, ODD)                                                       \
    for (; block + (M) <= (end); block += (M)) {                                                                 \
        const int64_t start = 2 * ACLNN_BW_WIDTH_##X * block, s = start < last ? start : last;                   \
        const ACLNN_BW_TYPE_##X *p = even + ((s + 1) >> 1), *q = odd + (s >> 1);                                 \
        ACLNN_BW_SUMS_##X evens[M], odds[M];                                                                     \
        for (int i = 0; i < (M); i++)                                                                            \
            evens[i] = odds[i] = (ACLNN_BW_SUMS_##X){0};                                                         \
        for (int64_t a = 0; a < (COUNT); a++) {                                                                  \
            for (int64_t t = 0; t < (EVEN); t++)                                                                 \
                for (int i = 0; i < (M); i++)                                                                    \
                    evens[i] += aclnn_bw_load_##X(p + (a * next + t * step) + i * ACLNN_BW_WIDTH_##X);           \
            for (int64_t t = 0; t < (ODD); t++)                                                                  \
                for (int i = 0; i < (M); i++)                                                                    \
                    odds[i] += aclnn_bw_load_##X(q + (a * next + t * step) + i * ACLNN_BW_WIDTH_##X);            \
        }                                                                                                        \
        if ((M) == 1 && s & 1)                                                                                   \
            aclnn_bw_store_phases_##X(to + s, odds[0], evens[0]);                                                \
        else                                                                                                     \
            for (int i = 0; i < (M); i++)                                                                        \
                aclnn_bw_store_phases_##X(to + s + 2 * i * ACLNN_BW_WIDTH_##X, evens[i], odds[i]);               \
    }

/* Many terms wait for each other, but for those of other blocks. */
#define ACLNN_BW_PHASES_ROW(X, COUNT, EVEN, ODD, MANY)                                                            \
    do {                                                                                                          \
        int64_t block = left;                                                                                     \
        if (MANY) {                                                                                               \
            ACLNN_BW_WHOLE_PHASES(X, 4, regular, COUNT, EVEN, ODD)                                                \
            ACLNN_BW_WHOLE_PHASES(X, 2, regular, COUNT, EVEN, ODD)                                                \
        }                                                                                                         \
        ACLNN_BW_WHOLE_PHASES(X, 1, right, COUNT, EVEN, ODD)                                                      \
        for (int64_t edge = 0; edge < edges; edge++) {                                                            \
            const int64_t s = e->starts[edge];                                                                    \
            const ACLNN_BW_TYPE_##X *p = even + ((s + 1) >> 1), *q = odd + (s >> 1);                              \
            const int64_t at = edge * ((EVEN) + (ODD));                                                           \
            ACLNN_BW_SUMS_##X even_sum = {0}, odd_sum = {0};                                                      \
            if (!ACLNN_BW_CUTS_##X || safe) {                                                                     \
                for (int64_t a = 0; a < (COUNT); a++) {                                                           \
                    for (int64_t t = 0; t < (EVEN); t++)                                                          \
                        even_sum += ACLNN_BW_KEEP_##X(p + (a * next + t * step), ACLNN_BW_PHASE_LANE(X, at + t)); \
                    for (int64_t t = 0; t < (ODD); t++)                                                           \
                        odd_sum += ACLNN_BW_KEEP_##X(q + (a * next + t * step),                                   \
                                                     ACLNN_BW_PHASE_LANE(X, at + (EVEN) + t));                    \
                }                                                                                                 \
            } else {                                                                                              \
                ACLNN_BW_SUMS_##X sums[2];                                                                        \
                aclnn_bw_cut_##X##_phases(sums, p, q, first, COUNT, e, edge);                                     \
                even_sum = sums[0];                                                                               \
                odd_sum = sums[1];                                                                                \
            }                                                                                                     \
            ACLNN_BW_STORE_PHASES(X)                                                                              \
        }                                                                                                         \
    } while (0)

/* The rows [row, end) of out, of the plane whose first column is at `from`. */
#define ACLNN_BW_PHASES_ROWS(NAME, X, EVEN, ODD, MANY)                                                              \
    static __attribute__((noinline)) void NAME(ACLNN_BW_TYPE_##X *to, int64_t down, const ACLNN_BW_TYPE_##X *limit, \
                                               const ACLNN_BW_TYPE_##X *from, const aclnn_bw_walk *h, int64_t row,  \
                                               int64_t end, const aclnn_bw_phases *e)                               \
    {                                                                                                               \
        const int64_t step = e->step, next = e->next;                                                               \
        const int64_t left = e->left, right = e->right, edges = e->edges, last = e->n - 2 * ACLNN_BW_WIDTH_##X;     \
        const int64_t regular = right < e->blocks ? right : e->blocks - 1;                                          \
        for (; row < end; row++, to += down) {                                                                      \
            const int whole = last >= 0 || (uintptr_t)(to + 2 * ACLNN_BW_WIDTH_##X) <= (uintptr_t)limit;            \
            int64_t tap = (row + h->pad) & 1, window = (row + h->pad) >> 1, count = e->inner_counts[tap], safe = 1; \
            if (row < e->inner || row >= e->inner_end) {                                                            \
                count = aclnn_bw_walk_rows(h, row, &tap, &window);                                                  \
                safe = aclnn_bw_row_is_safe(e, tap, window, count);                                                 \
            }                                                                                                       \
            const int64_t first = window * e->windows, at_first = tap * e->pitch + first;                           \
            const ACLNN_BW_TYPE_##X *even = from + (e->base[0] + at_first), *odd = from + (e->base[1] + at_first);  \
            if (count == 1)                                                                                         \
                ACLNN_BW_PHASES_ROW(X, 1, EVEN, ODD, MANY);                                                         \
            else if (count == 2)                                                                                    \
                ACLNN_BW_PHASES_ROW(X, 2, EVEN, ODD, MANY);                                                         \
            else                                                                                                    \
                ACLNN_BW_PHASES_ROW(X, count, EVEN, ODD, 1);                                                        \
        }                                                                                                           \
    }

/* Kernels of 3 and 4 columns have taps of their own. */
#define ACLNN_BW_GATHER_PHASES(T, X)                                                                             \
    ACLNN_BW_PHASES_ROWS(aclnn_bw_phases_1_2_##X, X, 1, 2, 0)                                                    \
    ACLNN_BW_PHASES_ROWS(aclnn_bw_phases_2_1_##X, X, 2, 1, 0)                                                    \
    ACLNN_BW_PHASES_ROWS(aclnn_bw_phases_2_2_##X, X, 2, 2, 0)                                                    \
    ACLNN_BW_PHASES_ROWS(aclnn_bw_phases_any_##X, X, e->taps[0], e->taps[1], 1)                                  \
    static inline void aclnn_bw_gather_##X##_phases(T *to, int64_t down, const T *limit, const T *from,          \
                                                    const aclnn_bw_walk *h, int64_t row, int64_t end,            \
                                                    const aclnn_bw_phases *e)                                    \
    {                                                                                                            \
        if (e->taps[0] == 1 && e->taps[1] == 2)                                                                  \
            aclnn_bw_phases_1_2_##X(to, down, limit, from, h, row, end, e);                                      \
        else if (e->taps[0] == 2 && e->taps[1] == 1)                                                             \
            aclnn_bw_phases_2_1_##X(to, down, limit, from, h, row, end, e);                                      \
        else if (e->taps[0] == 2 && e->taps[1] == 2)                                                             \
            aclnn_bw_phases_2_2_##X(to, down, limit, from, h, row, end, e);                                      \
        else                                                                                                     \
            aclnn_bw_phases_any_##X(to, down, limit, from, h, row, end, e);                                      \
    }
#else
static inline int aclnn_bw_find_phases(aclnn_bw_phases *e, const aclnn_bw_walk *h, int64_t height, int64_t item)
{
    (void)h, (void)height, (void)item;
    e->blocks = 0;
    return 0;
}
#define ACLNN_BW_GATHER_PHASES(T, X)                                                                             \
    static inline void aclnn_bw_gather_##X##_phases(T *to, int64_t down, const T *limit, const T *from,          \
                                                    const aclnn_bw_walk *h, int64_t row, int64_t end,            \
                                                    const aclnn_bw_phases *e)                                    \
    {                                                                                                            \
        (void)to, (void)down, (void)limit, (void)from, (void)h, (void)row, (void)end, (void)e;                   \
    }
#endif
ACLNN_BW_GATHER_PHASES(float, float)
ACLNN_BW_GATHER_PHASES(double, double)
ACLNN_BW_GATHER_PHASES(aclnn_bw_half, half)
ACLNN_BW_GATHER_PHASES(aclnn_bw_bfloat, bfloat)

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

/* The same of twice as many. */
#if ACLNN_BW_HAS_PHASES
#define ACLNN_BW_PAIRED 2
static inline void aclnn_bw_pair_more_floats(float *to, const float *from, int64_t column, uint16_t zero)
{
    (void)zero;
    aclnn_bw_store_phases_float(to, _mm256_add_ps(_mm256_loadu_ps(from), _mm256_setzero_ps()),
                                _mm256_add_ps(_mm256_loadu_ps(from + column), _mm256_setzero_ps()));
}
static inline void aclnn_bw_pair_more_doubles(double *to, const double *from, int64_t column, uint16_t zero)
{
    (void)zero;
    aclnn_bw_store_phases_double(to, _mm256_add_pd(_mm256_loadu_pd(from), _mm256_setzero_pd()),
                                 _mm256_add_pd(_mm256_loadu_pd(from + column), _mm256_setzero_pd()));
}
static inline void aclnn_bw_pair_more_bits(uint16_t *to, const uint16_t *from, int64_t column, uint16_t zero)
{
    __m256i zeros = _mm256_set1_epi16((short)zero);
    __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)from);
    __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(from + column));
    a = _mm256_andnot_si256(_mm256_cmpeq_epi16(a, zeros), a);
    b = _mm256_andnot_si256(_mm256_cmpeq_epi16(b, zeros), b);
    __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(to + 16), _mm256_permute2x128_si256(low, high, 0x31));
}
#else
#define ACLNN_BW_PAIRED 1
#define aclnn_bw_pair_more_floats aclnn_bw_pair_floats
#define aclnn_bw_pair_more_doubles aclnn_bw_pair_doubles
#define aclnn_bw_pair_more_bits aclnn_bw_pair_bits
#endif

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
#define ACLNN_BW_PAIRED 1
#define aclnn_bw_pair_floats(to, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_pair_more_floats(to, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_pair_more_doubles(to, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_pair_more_bits(to, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_turn_floats(to, pitch, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_turn_doubles(to, pitch, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_pair_bits(to, from, column, zero) ((void)(to), (void)(from))
#define aclnn_bw_turn_bits(to, pitch, from, column, zero) ((void)(to), (void)(from))
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
#define aclnn_bw_turn_many_bits(to, pitch, from, column, zero) ((void)(to), (void)(from))
#endif
#endif

static inline int64_t aclnn_bw_start(int64_t i, int64_t n, int64_t width) { return i + width <= n ? i : n - width; }

/* WIDTH elements of ROWS columns at once by MANY, if there are as many; else of WIDE columns by TURN. */
#define ACLNN_BW_TURN(NAME, T, PLAIN, PAIR, MORE, PAIRED, TURN, WIDE, MANY, WIDTH, ROWS)                         \
    static inline void NAME(T *to, int64_t pitch, const T *from, int64_t column, int64_t n, int64_t columns,     \
                            uint16_t zero)                                                                       \
    {                                                                                                            \
        (void)zero;                                                                                              \
        if (ACLNN_BW_PAIRED > 1 && columns == 2 && pitch == 2 && n >= ACLNN_BW_PAIRED * (PAIRED)) {              \
            for (int64_t i = 0; i < n; i += ACLNN_BW_PAIRED * (PAIRED)) {                                        \
                int64_t start = aclnn_bw_start(i, n, ACLNN_BW_PAIRED * (PAIRED));                                \
                MORE(to + 2 * start, from + start, column, zero);                                                \
            }                                                                                                    \
        } else if (ACLNN_BW_IN_BLOCKS && columns == 2 && pitch == 2 && n >= (PAIRED)) {                          \
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
ACLNN_BW_TURN(aclnn_bw_turn_float_rows, float, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_floats, aclnn_bw_pair_more_floats, 4,
              aclnn_bw_turn_floats, 4, aclnn_bw_turn_many_floats, 4, ACLNN_BW_FLOAT_ROWS)
ACLNN_BW_TURN(aclnn_bw_turn_double_rows, double, ACLNN_BW_PLUS_ZERO, aclnn_bw_pair_doubles, aclnn_bw_pair_more_doubles,
              2, aclnn_bw_turn_doubles, 2, aclnn_bw_turn_many_doubles, 2, ACLNN_BW_DOUBLE_ROWS)
ACLNN_BW_TURN(aclnn_bw_turn_bit_rows, uint16_t, ACLNN_BW_CLEAR_ZERO, aclnn_bw_pair_bits, aclnn_bw_pair_more_bits, 8,
              aclnn_bw_turn_bits, 4, aclnn_bw_turn_many_bits, 8, ACLNN_BW_BIT_ROWS)

static inline int64_t aclnn_bw_lanes_of(size_t size)
{
    return size == sizeof(double) ? ACLNN_BW_DOUBLES : ACLNN_BW_FLOATS;
}
#endif
