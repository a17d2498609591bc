/* Rows of the max pool: the check of indices, and the windows that are scattered.
 *
 * Masks are read and written bytewise (they may lie at any address), as little-endian words.
 */
#ifndef ACLNN_BW_MAX_POOL2D_H
#define ACLNN_BW_MAX_POOL2D_H
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define ACLNN_BW_LANE_MASKS 1
#else
#define ACLNN_BW_LANE_MASKS 0
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the mask of a max pool is little-endian; this code reads and writes it in the machine's own order"
#endif

#define ACLNN_BW_INLINE static inline __attribute__((always_inline))

typedef uint16_t aclnn_bw_word __attribute__((aligned(1), may_alias));
typedef int32_t aclnn_bw_index __attribute__((aligned(1), may_alias));

/* to[c*pitch + i] = from[i*along + c] for c < 16 and i < n, as far as i goes in fours; returns how far. A transposition
 * of 4 x 4 in registers takes half the time of single elements. */
static inline int64_t aclnn_bw_pack_16(float *to, int64_t pitch, const float *from, int64_t along, int64_t n)
{
    int64_t i = 0;
#if defined(__SSE2__)
    for (; i + 4 <= n; i += 4)
        for (int c = 0; c < 16; c += 4) {
            const float *at = from + i * along + c;
            __m128 w = _mm_loadu_ps(at), x = _mm_loadu_ps(at + along);
            __m128 y = _mm_loadu_ps(at + 2 * along), z = _mm_loadu_ps(at + 3 * along);
            _MM_TRANSPOSE4_PS(w, x, y, z);
            _mm_storeu_ps(to + c * pitch + i, w);
            _mm_storeu_ps(to + (c + 1) * pitch + i, x);
            _mm_storeu_ps(to + (c + 2) * pitch + i, y);
            _mm_storeu_ps(to + (c + 3) * pitch + i, z);
        }
#else
    (void)to, (void)pitch, (void)from, (void)along, (void)n;
#endif
    return i;
}

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

#if defined(__AVX2__)
#define ACLNN_BW_LIST_BYTES 32
#else
#define ACLNN_BW_LIST_BYTES 16
#endif
typedef uint32_t aclnn_bw_listed __attribute__((vector_size(ACLNN_BW_LIST_BYTES)));
enum { ACLNN_BW_LISTED_LANES = ACLNN_BW_LIST_BYTES / 4, ACLNN_BW_RECIPROCAL_BITS = 24 };

/* The windows of a plane, one row after the other: the first position of each in the image, one more than the distance
 * of its last position from it, and its columns; of the lists, each `size` long, the elements from `at` on. `first` and
 * `length` are those of a row. */
static inline void aclnn_bw_list_windows(uint32_t *lists, int64_t size, int64_t at, const int32_t *first,
                                         const int32_t *length, int64_t n, int64_t lines, int64_t pad, int64_t step,
                                         int64_t kernel, int64_t height, int64_t width)
{
    uint32_t *firsts = lists + at, *ends = firsts + size, *lengths = ends + size;
    for (int64_t line = 0; line < lines; line++, firsts += n, ends += n, lengths += n) {
        int64_t top = line * step - pad, bottom = top + kernel < height ? top + kernel : height;
        top = top < 0 ? 0 : top;
        const uint32_t start = (uint32_t)(top * width), rest = (uint32_t)((bottom - top - 1) * width);
        for (int64_t i = 0; i < n; i++) {
            firsts[i] = start + (uint32_t)first[i];
            ends[i] = rest + (uint32_t)length[i];
            lengths[i] = (uint32_t)length[i];
        }
    }
}

/* All ones in the lanes whose index does not lie in its window, whose lists begin at `lists`; *column is its column in
 * the window. Its distance from the first position is divided by the width of the plane: `reciprocal` is 2**24 / width,
 * rounded up, and the quotient of a distance below its end exact, for kernel rows * width**2 is less than 2**24 and
 * kernel rows less than 2**8. */
ACLNN_BW_INLINE aclnn_bw_listed aclnn_bw_missed(aclnn_bw_listed *column, aclnn_bw_listed index, const uint32_t *lists,
                                                int64_t size, uint32_t width, uint32_t reciprocal)
{
    aclnn_bw_listed distance, end, length;
    memcpy(&distance, lists, sizeof distance);
    memcpy(&end, lists + size, sizeof end);
    memcpy(&length, lists + 2 * size, sizeof length);
    distance = index - distance;
    *column = distance - (distance * reciprocal >> ACLNN_BW_RECIPROCAL_BITS) * width;
    return (aclnn_bw_listed)(distance >= end) | (aclnn_bw_listed)(*column >= length);
}

/* Whether some index of n listed windows, from the first of the lists on, does not lie in its window, in some of `count`
 * planes. at[c*at_pitch + i] = the index + apart * its kernel column, if there is `at`; for this there is a fourth list:
 * how many columns of a window lie to the left of the image. No vector ends with a row, which made the check row by
 * row 0.65 of the time of SCATTER in planes of 7x7 with windows of 5x5. */
ACLNN_BW_INLINE int aclnn_bw_any_missed(uint32_t *at, int64_t at_pitch, const char *mask, int64_t mask_pitch,
                                        int64_t count, const uint32_t *lists, int64_t size, int64_t n, uint32_t width,
                                        uint32_t reciprocal, uint32_t apart)
{
    const int64_t lanes = ACLNN_BW_LISTED_LANES;
    aclnn_bw_listed missed = {0};
    uint32_t any = 0;
    for (int64_t c = 0; c < count; c++, mask += 4 * mask_pitch, at = at ? at + at_pitch : at) {
        for (int64_t i = 0; i < n && n < lanes; i++) {
            const uint32_t index = (uint32_t)((const aclnn_bw_index *)mask)[i], distance = index - lists[i];
            any |= distance >= lists[size + i] || distance % width >= lists[2 * size + i];
            if (at)
                at[i] = index + (distance % width + lists[3 * size + i]) * apart;
        }
        for (int64_t i = 0; i < n && n >= lanes; i += lanes) {
            aclnn_bw_listed index, column, left;
            if (i > n - lanes)
                i = n - lanes;
            memcpy(&index, mask + 4 * i, sizeof index);
            missed |= aclnn_bw_missed(&column, index, lists + i, size, width, reciprocal);
            if (at) {
                memcpy(&left, lists + 3 * size + i, sizeof left);
                index += (column + left) * apart;
                memcpy(at + i, &index, sizeof index);
            }
        }
    }
    uint64_t parts[ACLNN_BW_LIST_BYTES / 8];
    memcpy(parts, &missed, sizeof parts);
    for (int i = 0; i < ACLNN_BW_LIST_BYTES / 8; i++)
        any |= parts[i] != 0;
    return any != 0;
}

static inline int aclnn_bw_check_listed(const char *mask, const uint32_t *lists, int64_t size, int64_t n, uint32_t width,
                                        uint32_t reciprocal)
{
    return aclnn_bw_any_missed(NULL, 0, mask, 0, 1, lists, size, n, width, reciprocal, 0);
}

static inline int aclnn_bw_index_places(uint32_t *at, int64_t at_pitch, const char *mask, int64_t mask_pitch,
                                        int64_t count, const uint32_t *lists, int64_t size, int64_t n, uint32_t width,
                                        uint32_t reciprocal, uint32_t apart)
{
    return aclnn_bw_any_missed(at, at_pitch, mask, mask_pitch, count, lists, size, n, width, reciprocal, apart);
}

/* to[i] = sums[2*pitch + i] + sums[pitch + i] + sums[i] for i < n, `to` apart from them or the same: ascending windows
 * meet a position at descending kernel columns. */
#define ACLNN_BW_JOIN(name, real)                                                                                       \
    static inline void name(real *to, const real *sums, int64_t pitch, int64_t n)                                       \
    {                                                                                                                   \
        enum { LANES = ACLNN_BW_LIST_BYTES / sizeof(real) };                                                            \
        typedef real reals __attribute__((vector_size(ACLNN_BW_LIST_BYTES)));                                           \
        const int apart = to != sums && n >= LANES; /* then the last vector may overlap the one before */               \
        int64_t i = 0;                                                                                                  \
        for (; i < n && (apart || i + LANES <= n); i += LANES) {                                                        \
            reals x, y, z;                                                                                              \
            if (i > n - LANES)                                                                                          \
                i = n - LANES;                                                                                          \
            memcpy(&x, sums + 2 * pitch + i, sizeof x);                                                                 \
            memcpy(&y, sums + pitch + i, sizeof y);                                                                     \
            memcpy(&z, sums + i, sizeof z);                                                                             \
            x = x + y + z;                                                                                              \
            memcpy(to + i, &x, sizeof x);                                                                               \
        }                                                                                                               \
        for (; i < n; i++)                                                                                              \
            to[i] = sums[2 * pitch + i] + sums[pitch + i] + sums[i];                                                    \
    }
ACLNN_BW_JOIN(aclnn_bw_join_f32, float)
ACLNN_BW_JOIN(aclnn_bw_join_f64, double)

#if ACLNN_BW_LANE_MASKS
/* The windows among the chosen 16 whose index does not lie in them: the least of its distances from the first columns of
 * all rows, as unsigned numbers, is no less than a row has columns there. */
ACLNN_BW_INLINE __mmask16 aclnn_bw_bad_indices(const char *mask, const int32_t *first, const int32_t *length,
                                               __mmask16 lanes, int32_t start, int64_t rows, int32_t width)
{
    __m512i distance = _mm512_sub_epi32(_mm512_maskz_loadu_epi32(lanes, mask),
                                        _mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, first),
                                                         _mm512_set1_epi32(start)));
    __m512i shortest = distance;
    for (int64_t row = 1; row < rows; row++) {
        distance = _mm512_sub_epi32(distance, _mm512_set1_epi32(width));
        shortest = _mm512_min_epu32(shortest, distance);
    }
    return _mm512_mask_cmpge_epu32_mask(lanes, shortest, _mm512_maskz_loadu_epi32(lanes, length));
}

/* Whether some of n windows in each of `lines` rows of windows have such an index. */
ACLNN_BW_INLINE int aclnn_bw_some_bad(const char *mask, const int32_t *first, const int32_t *length, int64_t n,
                                      int64_t lines, int32_t start, int32_t step, int64_t rows, int32_t width)
{
    unsigned bad = 0;
    for (int64_t line = 0; line < lines; line++, mask += 4 * n, start = (int32_t)((uint32_t)start + (uint32_t)step)) {
        if (n < 16)
            bad |= aclnn_bw_bad_indices(mask, first, length, (__mmask16)((1u << n) - 1), start, rows, width);
        else
            for (int64_t i = 0; i < n; i += 16) {
                if (i > n - 16)
                    i = n - 16;
                bad |= aclnn_bw_bad_indices(mask + 4 * i, first + i, length + i, 0xffff, start, rows, width);
            }
    }
    return bad != 0;
}
#elif defined(__SSE4_1__)
/* The same of n windows, no fewer than a vector has lanes. */
#define ACLNN_BW_SOME_BAD(name, ints, lanes, op, whole)                                                                 \
    ACLNN_BW_INLINE int name(const char *mask, const int32_t *first, const int32_t *length, int64_t n, int64_t lines,   \
                             int32_t start, int32_t step, int64_t rows, int32_t width)                                  \
    {                                                                                                                   \
        const ints widths = op(set1_epi32)(width), steps = op(set1_epi32)(step);                                        \
        ints bad = op(setzero_##whole)(), starts = op(set1_epi32)(start);                                               \
        for (int64_t line = 0; line < lines; line++, mask += 4 * n, starts = op(add_epi32)(starts, steps))              \
            for (int64_t i = 0; i < n; i += lanes) {                                                                    \
                if (i > n - lanes)                                                                                      \
                    i = n - lanes;                                                                                      \
                ints distance = op(loadu_##whole)((const ints *)(const void *)(mask + 4 * i));                          \
                distance = op(sub_epi32)(distance, op(add_epi32)(                                                       \
                    starts, op(loadu_##whole)((const ints *)(const void *)(first + i))));                               \
                ints shortest = distance;                                                                               \
                for (int64_t row = 1; row < rows; row++) {                                                              \
                    distance = op(sub_epi32)(distance, widths);                                                         \
                    shortest = op(min_epu32)(shortest, distance);                                                       \
                }                                                                                                       \
                distance = op(max_epu32)(shortest, op(loadu_##whole)((const ints *)(const void *)(length + i)));        \
                bad = op(or_##whole)(bad, op(cmpeq_epi32)(distance, shortest));                                         \
            }                                                                                                           \
        return !op(testz_##whole)(bad, bad);                                                                            \
    }
#define ACLNN_BW_OP_16(name) _mm_##name
ACLNN_BW_SOME_BAD(aclnn_bw_some_bad_16, __m128i, 4, ACLNN_BW_OP_16, si128)
#if defined(__AVX2__)
#define ACLNN_BW_OP_32(name) _mm256_##name
ACLNN_BW_SOME_BAD(aclnn_bw_some_bad_32, __m256i, 8, ACLNN_BW_OP_32, si256)
#else
#define aclnn_bw_some_bad_32 aclnn_bw_some_bad_16
#endif

ACLNN_BW_INLINE int aclnn_bw_some_bad(const char *mask, const int32_t *first, const int32_t *length, int64_t n,
                                      int64_t lines, int32_t start, int32_t step, int64_t rows, int32_t width)
{
    return n >= 8 ? aclnn_bw_some_bad_32(mask, first, length, n, lines, start, step, rows, width)
        : n < 4 || aclnn_bw_some_bad_16(mask, first, length, n, lines, start, step, rows, width);
}
#endif

/* Whether an index may lie outside its window in one of `lines` rows of n windows, the first of which holds the rows
 * [top, bottom) and each further one as many, `step` lower: false is certain. Windows of two and three rows are
 * unrolled. The indices of the plane fit int32. */
static inline int aclnn_bw_may_be_bad(const char *mask, const int32_t *first, const int32_t *length, int64_t n,
                                      int64_t lines, int64_t top, int64_t bottom, int64_t step, int64_t width)
{
#if ACLNN_BW_LANE_MASKS || defined(__SSE4_1__)
    const int32_t start = (int32_t)(top * width), down = (int32_t)(step * width), row = (int32_t)width;
    const int64_t rows = bottom - top;
    return rows == 3 ? aclnn_bw_some_bad(mask, first, length, n, lines, start, down, 3, row)
        : rows == 2 ? aclnn_bw_some_bad(mask, first, length, n, lines, start, down, 2, row)
        : aclnn_bw_some_bad(mask, first, length, n, lines, start, down, rows, row);
#else
    (void)mask, (void)first, (void)length, (void)n, (void)lines, (void)top, (void)bottom, (void)step, (void)width;
    return 1;
#endif
}

/* The first of n windows in a row whose index does not lie in it, or -1. The windows hold the rows [top, bottom). The
 * indices of the plane fit int32. */
static inline int64_t aclnn_bw_first_bad_index(const char *mask, const int32_t *first, const int32_t *length, int64_t n,
                                               int64_t top, int64_t bottom, int64_t width)
{
    if (!aclnn_bw_may_be_bad(mask, first, length, n, 1, top, bottom, 0, width))
        return -1;
#if ACLNN_BW_LANE_MASKS
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 lanes = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        lanes = aclnn_bw_bad_indices(mask + 4 * i, first + i, length + i, lanes, (int32_t)(top * width), bottom - top,
                                     (int32_t)width);
        if (lanes)
            return i + __builtin_ctz(lanes);
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

/* Each of the functions below adds to sums (`add` is +=), or where windows have no position in common, sets bits of
 * float16 or bfloat16 (=).
 *
 * sums[j*sum_pitch + i*step] += grad[j*grad_pitch + i] for each set bit j of (words[i] >> first) & lanes, i < n. */
#define ACLNN_BW_SCATTER_BITS(name, real, add)                                                                          \
    static inline void name(real *sums, int64_t sum_pitch, int64_t step, const real *grad, int64_t grad_pitch,          \
                            const char *words, int first, unsigned lanes, int64_t n)                                    \
    {                                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            for (unsigned bits = (unsigned)((const aclnn_bw_word *)words)[i] >> first & lanes; bits;                    \
                 bits &= bits - 1) {                                                                                    \
                int64_t j = __builtin_ctz(bits);                                                                        \
                sums[j * sum_pitch + i * step] add grad[j * grad_pitch + i];                                            \
            }                                                                                                           \
    }
ACLNN_BW_SCATTER_BITS(aclnn_bw_scatter_f32, float, +=)
ACLNN_BW_SCATTER_BITS(aclnn_bw_scatter_f64, double, +=)
ACLNN_BW_SCATTER_BITS(aclnn_bw_scatter_u16, uint16_t, =)

/* to[i] = from[i] + 0 for the bits of float16 or bfloat16: -0 becomes +0. */
static inline void aclnn_bw_settle(uint16_t *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i] == 0x8000 ? 0 : from[i];
}

/* Windows of which a channel has one maximum each, all channels of a group at a time, in blocks of ACLNN_BW_BLOCK. */
enum { ACLNN_BW_BLOCK = 256 };

#if defined(__AVX2__)
#define ACLNN_BW_CODE_BYTES 32
#else
#define ACLNN_BW_CODE_BYTES 16
#endif
typedef uint16_t aclnn_bw_code __attribute__((vector_size(ACLNN_BW_CODE_BYTES)));
enum { ACLNN_BW_CODE_LANES = ACLNN_BW_CODE_BYTES / 2 };

/* All ones in the first n lanes, n <= ACLNN_BW_CODE_LANES. */
ACLNN_BW_INLINE aclnn_bw_code aclnn_bw_first_lanes(int64_t n)
{
    static const uint16_t lanes[2 * ACLNN_BW_CODE_LANES] = {
#if defined(__AVX2__)
        0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff,
#endif
        0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff};
    aclnn_bw_code first;
    memcpy(&first, lanes + ACLNN_BW_CODE_LANES - n, sizeof first);
    return first;
}

/* The bits that are set in any lane, repeated. */
ACLNN_BW_INLINE uint64_t aclnn_bw_any_lane(const aclnn_bw_code *code)
{
    uint64_t parts[ACLNN_BW_CODE_BYTES / 8], any = 0;
    memcpy(parts, code, sizeof parts);
    for (int i = 0; i < ACLNN_BW_CODE_BYTES / 8; i++)
        any |= parts[i];
    any |= any >> 32 | any << 32;
    return any | any >> 16 | any << 48;
}

/* nibbles[r] gets in its nibble j the number whose bit b is bit 4*j + r of planes[b]. */
ACLNN_BW_INLINE void aclnn_bw_nibbles(uint16_t *nibbles, const aclnn_bw_code *planes)
{
    aclnn_bw_code even[2], odd[2], word;
    for (int b = 0; b < 2; b++) {
        aclnn_bw_code low = planes[2 * b], high = planes[2 * b + 1];
        even[b] = (low & 0x5555) | ((high & 0x5555) << 1);
        odd[b] = ((low >> 1) & 0x5555) | (high & 0xaaaa);
    }
    word = (even[0] & 0x3333) | ((even[1] & 0x3333) << 2);
    memcpy(nibbles, &word, sizeof word);
    word = (odd[0] & 0x3333) | ((odd[1] & 0x3333) << 2);
    memcpy(nibbles + ACLNN_BW_BLOCK, &word, sizeof word);
    word = ((even[0] >> 2) & 0x3333) | (even[1] & 0xcccc);
    memcpy(nibbles + 2 * ACLNN_BW_BLOCK, &word, sizeof word);
    word = ((odd[0] >> 2) & 0x3333) | (odd[1] & 0xcccc);
    memcpy(nibbles + 3 * ACLNN_BW_BLOCK, &word, sizeof word);
}

/* Words, and a hint for those of later windows: there are more rows of the mask than the hardware fetches ahead. */
ACLNN_BW_INLINE void aclnn_bw_load_code(aclnn_bw_code *code, const char *words)
{
    __builtin_prefetch(words + 256);
    memcpy(code, words, sizeof *code);
}

/* Where n <= ACLNN_BW_BLOCK windows have their maxima, in a kernel of at most 16 x 16 positions whose words lie `pitch`
 * apart: bits 4*j .. 4*j + 3 of nibbles[r*ACLNN_BW_BLOCK + i] are the kernel row for window i and channel 4*j + r, and
 * those of nibbles[(4 + r)*ACLNN_BW_BLOCK + i] the kernel column. Returns the channels that have not exactly one bit in
 * each window, for which all this means nothing. Reads up to 15 words beyond the n: a row of the mask ends in 16 words
 * or more that no window uses. */
static inline unsigned aclnn_bw_window_codes(uint16_t *nibbles, const char *words, int64_t pitch, int64_t kernel_rows,
                                             int64_t kernel_columns, int64_t n)
{
    aclnn_bw_code faults = {0};
    for (int64_t i = 0; i < n; i += ACLNN_BW_CODE_LANES) {
        aclnn_bw_code rows[4] = {{0}}, columns[4] = {{0}}, once = {0}, twice = {0};
        const char *at = words + 2 * i;
        for (int64_t kh = 0; kh < kernel_rows; kh++) {
            aclnn_bw_code row = {0};
            for (int64_t kw = 0; kw < kernel_columns; kw += 4, at += 8 * pitch) {
                const int64_t left = kernel_columns - kw;
                aclnn_bw_code a, b = {0}, c = {0}, d = {0}, any;
                aclnn_bw_load_code(&a, at);
                if (left > 1)
                    aclnn_bw_load_code(&b, at + 2 * pitch);
                if (left > 2)
                    aclnn_bw_load_code(&c, at + 4 * pitch);
                if (left > 3)
                    aclnn_bw_load_code(&d, at + 6 * pitch);
                columns[0] |= b | d;
                columns[1] |= c | d;
                any = a | b;
                twice |= (a & b) | (any & c);
                any |= c;
                twice |= (any & d);
                any |= d;
                twice |= row & any;
                row |= any;
                if (kw & 4)
                    columns[2] |= any;
                if (kw & 8)
                    columns[3] |= any;
            }
            at -= 2 * ((kernel_columns + 3) / 4 * 4 - kernel_columns) * pitch;
            twice |= once & row;
            once |= row;
            for (int b = 0; b < 4; b++)
                rows[b] |= row & (uint16_t)-(kh >> b & 1);
        }
        aclnn_bw_nibbles(nibbles + i, rows);
        aclnn_bw_nibbles(nibbles + 4 * ACLNN_BW_BLOCK + i, columns);
        twice |= ~once;
        if (n - i < ACLNN_BW_CODE_LANES)
            twice &= aclnn_bw_first_lanes(n - i);
        faults |= twice;
    }
    return (uint16_t)aclnn_bw_any_lane(&faults);
}

/* tops[i], lefts[i]: where window i of a block begins, that has `rows` rows of `windows` windows, modulo 2**16; rows are
 * counted from the first of the block. */
static inline void aclnn_bw_window_starts(uint16_t *tops, uint16_t *lefts, int64_t windows, int64_t rows, int64_t down,
                                          int64_t along, int64_t pad)
{
    int64_t i = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < windows; j++, i++) {
            tops[i] = (uint16_t)(row * down);
            lefts[i] = (uint16_t)(j * along - pad);
        }
    for (; i < ACLNN_BW_BLOCK; i++)
        tops[i] = lefts[i] = 0;
}

/* at[i] = the position, counted from the first of a band of `height` rows of `width`, at which channel c has the maximum
 * of window i, or height*width if it lies elsewhere, in the padding, say; i < n. Whether some window's does. The window
 * begins `top` + tops[i] rows below the band's first and `left` + lefts[i] columns to the right of the image's first,
 * modulo 2**16. All numbers are below 2**15, and a negative one is no less than -2**15: as uint16 it is beyond any row
 * and column. */
static inline int aclnn_bw_window_places(uint16_t *at, const uint16_t *nibbles, int c, const uint16_t *tops,
                                         uint16_t top, const uint16_t *lefts, uint16_t left, uint16_t height,
                                         uint16_t width, int64_t n)
{
    const int shift = c / 4 * 4;
    const uint16_t nowhere = (uint16_t)(height * width);
    aclnn_bw_code missed = {0};
    nibbles += c % 4 * ACLNN_BW_BLOCK;
    for (int64_t i = 0; i < n; i += ACLNN_BW_CODE_LANES) {
        aclnn_bw_code row, column, first, place, inside;
        memcpy(&row, nibbles + i, sizeof row);
        memcpy(&column, nibbles + 4 * ACLNN_BW_BLOCK + i, sizeof column);
        memcpy(&first, tops + i, sizeof first);
        row = (row >> shift & 15) + first + top;
        memcpy(&first, lefts + i, sizeof first);
        column = (column >> shift & 15) + first + left;
        inside = (aclnn_bw_code)(row < height) & (aclnn_bw_code)(column < width);
        place = row * width + column;
        place = (place & inside) | (nowhere & ~inside);
        memcpy(at + i, &place, sizeof place);
        if (n - i < ACLNN_BW_CODE_LANES)
            inside |= ~aclnn_bw_first_lanes(n - i);
        missed |= ~inside;
    }
    return aclnn_bw_any_lane(&missed) != 0;
}

/* sums[c*sum_pitch + at[c*ACLNN_BW_BLOCK + i]] += grad[c*grad_pitch + i], c < channels, i < n. Four channels side by side
 * where there are as many: neighbouring windows often have the same maximum, and their sums wait for each other. */
#define ACLNN_BW_SCATTER_TO(name, real, add)                                                                            \
    static inline void name(real *sums, int64_t sum_pitch, const uint16_t *at, const real *grad, int64_t grad_pitch,    \
                            int64_t channels, int64_t n)                                                                \
    {                                                                                                                   \
        for (; channels >= 4; channels -= 4) {                                                                          \
            real *sums_1 = sums + sum_pitch, *sums_2 = sums_1 + sum_pitch, *sums_3 = sums_2 + sum_pitch;                \
            const real *grad_1 = grad + grad_pitch, *grad_2 = grad_1 + grad_pitch, *grad_3 = grad_2 + grad_pitch;       \
            for (int64_t i = 0; i < n; i++) {                                                                           \
                sums[at[i]] add grad[i];                                                                                \
                sums_1[at[ACLNN_BW_BLOCK + i]] add grad_1[i];                                                           \
                sums_2[at[2 * ACLNN_BW_BLOCK + i]] add grad_2[i];                                                       \
                sums_3[at[3 * ACLNN_BW_BLOCK + i]] add grad_3[i];                                                       \
            }                                                                                                           \
            sums = sums_3 + sum_pitch;                                                                                  \
            grad = grad_3 + grad_pitch;                                                                                 \
            at += 4 * ACLNN_BW_BLOCK;                                                                                   \
        }                                                                                                               \
        for (; channels > 0; channels--, sums += sum_pitch, grad += grad_pitch, at += ACLNN_BW_BLOCK)                   \
            for (int64_t i = 0; i < n; i++)                                                                             \
                sums[at[i]] add grad[i];                                                                                \
    }
ACLNN_BW_SCATTER_TO(aclnn_bw_scatter_to_f32, float, +=)
ACLNN_BW_SCATTER_TO(aclnn_bw_scatter_to_f64, double, +=)
ACLNN_BW_SCATTER_TO(aclnn_bw_scatter_to_u16, uint16_t, =)

/* sums[c*sum_pitch + place] += grad[c*grad_pitch + i], c < channels, i < n, where place is mask[c*mask_pitch + i] - low;
 * one at or beyond `size` counts as `size`. Up to four channels side by side, as above; `whole`: all places are below.
 * With sums made where they stay, it takes 0.5 to 0.65 of the time of one channel after the other, each in a branch. */
#define ACLNN_BW_SCATTER_AT_CASES(name, n_channels)                                                                     \
    case 2 * (n_channels) + 1:                                                                                          \
        name##_any(sums, sum_pitch, 0, size, grad, grad_pitch, at, mask_pitch, n, n_channels, 1);                       \
        break;                                                                                                          \
    case 2 * (n_channels):                                                                                              \
        name##_any(sums, sum_pitch, low, size, grad, grad_pitch, at, mask_pitch, n, n_channels, 0);                     \
        break;
#define ACLNN_BW_SCATTER_AT(name, real, add)                                                                            \
    ACLNN_BW_INLINE void name##_any(real *sums, int64_t sum_pitch, uint32_t low, uint32_t size, const real *grad,       \
                                    int64_t grad_pitch, const aclnn_bw_index *at, int64_t at_pitch, int64_t n,          \
                                    const int channels, const int whole)                                                \
    {                                                                                                                   \
        real *to[4];                                                                                                    \
        const real *from[4];                                                                                            \
        const aclnn_bw_index *index[4];                                                                                 \
        for (int c = 0; c < channels; c++) {                                                                            \
            to[c] = sums + c * sum_pitch;                                                                               \
            from[c] = grad + c * grad_pitch;                                                                            \
            index[c] = at + c * at_pitch;                                                                               \
            __asm__("" : "+r"(to[c]), "+r"(from[c])); /* else an address takes one more instruction */                  \
        }                                                                                                               \
        for (int64_t i = 0; i < n; i++)                                                                                 \
            _Pragma("GCC unroll 4")                                                                                     \
            for (int c = 0; c < channels; c++) {                                                                        \
                uint32_t place = (uint32_t)index[c][i] - low;                                                           \
                if (!whole)                                                                                             \
                    place = place < size ? place : size;                                                                \
                to[c][place] add from[c][i];                                                                            \
            }                                                                                                           \
    }                                                                                                                   \
    static inline void name(real *sums, int64_t sum_pitch, uint32_t low, uint32_t size, const real *grad,               \
                            int64_t grad_pitch, const char *mask, int64_t mask_pitch, int64_t channels, int64_t n,      \
                            int whole)                                                                                  \
    {                                                                                                                   \
        const aclnn_bw_index *at = (const aclnn_bw_index *)mask;                                                        \
        while (channels > 0) {                                                                                          \
            const int64_t some = channels >= 4 ? 4 : channels;                                                          \
            switch (2 * some + (whole != 0)) {                                                                          \
            ACLNN_BW_SCATTER_AT_CASES(name, 4)                                                                          \
            ACLNN_BW_SCATTER_AT_CASES(name, 3)                                                                          \
            ACLNN_BW_SCATTER_AT_CASES(name, 2)                                                                          \
            ACLNN_BW_SCATTER_AT_CASES(name, 1)                                                                          \
            }                                                                                                           \
            sums += some * sum_pitch;                                                                                   \
            grad += some * grad_pitch;                                                                                  \
            at += some * mask_pitch;                                                                                    \
            channels -= some;                                                                                           \
        }                                                                                                               \
    }
ACLNN_BW_SCATTER_AT(aclnn_bw_scatter_at_f32, float, +=)
ACLNN_BW_SCATTER_AT(aclnn_bw_scatter_at_f64, double, +=)
ACLNN_BW_SCATTER_AT(aclnn_bw_scatter_at_u16, uint16_t, =)

/* The windows of a plane of at most 64 positions. */
typedef struct {
    int64_t rows;
    int64_t columns;
    int64_t window_rows;
    int64_t window_columns;
    int64_t kernel[2];
    int64_t stride[2];
    int64_t pad[2];
} aclnn_bw_grid;

typedef uint16_t aclnn_bw_channels __attribute__((vector_size(32)));

/* at[c] = the window's position, counted from its first in the image, for the 16 channels of a group; false where some
 * channel of `lanes` has more or fewer bits than one. The window has `rows` x `columns` positions in the image. */
ACLNN_BW_INLINE int aclnn_bw_places(uint16_t *at, const char *words, int64_t pitch, int64_t row_step, int64_t rows,
                                    int64_t columns, int64_t width, unsigned lanes)
{
    const aclnn_bw_channels bits = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
    aclnn_bw_channels place = {0};
    unsigned seen = 0, twice = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            const uint16_t word = *(const aclnn_bw_word *)(words + row * row_step + column * pitch);
            place |= (aclnn_bw_channels)((bits & word) == bits) & (uint16_t)(row * width + column);
            twice |= seen & word;
            seen |= word;
        }
    }
    memcpy(at, &place, sizeof place);
    return ((seen & ~twice) & lanes) == lanes;
}

/* Whole planes: sums[c*sum_pitch + position] += grad[c*grad_pitch + window] where that is the window's maximum, for the
 * channels c < lanes of a group, windows ascending. The places of a window's maxima in all channels are made first, for a
 * branch on each bit is often mispredicted (2 to 4 times as long). What binds it (Zen 4, read in the assembly): the
 * number of instructions; an addition has two loads and a store, and an address and the test of the loop's end beside
 * them. */
#define ACLNN_BW_SCATTER_PLANES(name, real, scatter, add)                                                               \
    static inline void name(real *sums, int64_t sum_pitch, const real *grad, int64_t grad_pitch, const char *words,     \
                            int64_t pitch, int lanes, const aclnn_bw_grid *grid)                                        \
    {                                                                                                                   \
        const aclnn_bw_grid g = *grid;                                                                                  \
        for (int64_t oh = 0; oh < g.window_rows; oh++) {                                                                \
            int64_t top = oh * g.stride[0] - g.pad[0], kh = top < 0 ? -top : 0;                                         \
            int64_t rows = (g.kernel[0] < g.rows - top ? g.kernel[0] : g.rows - top) - kh;                              \
            for (int64_t ow = 0; ow < g.window_columns; ow++, words += 2, grad++) {                                     \
                int64_t left = ow * g.stride[1] - g.pad[1], kw = left < 0 ? -left : 0;                                  \
                int64_t columns = (g.kernel[1] < g.columns - left ? g.kernel[1] : g.columns - left) - kw;               \
                int64_t first = (top + kh) * g.columns + left + kw;                                                     \
                const char *here = words + 2 * (kh * g.kernel[1] + kw) * pitch;                                         \
                uint16_t at[16];                                                                                        \
                if (aclnn_bw_places(at, here, 2 * pitch, 2 * g.kernel[1] * pitch, rows, columns, g.columns,             \
                                    (1u << lanes) - 1))                                                                 \
                    for (int c = 0; c < lanes; c++)                                                                     \
                        sums[c * sum_pitch + first + at[c]] add grad[c * grad_pitch];                                   \
                else                                                                                                    \
                    for (int64_t row = 0; row < rows; row++)                                                            \
                        for (int64_t column = 0; column < columns; column++)                                            \
                            scatter(sums + first + row * g.columns + column, sum_pitch, 0, grad, grad_pitch,            \
                                    here + 2 * (row * g.kernel[1] + column) * pitch, 0, (1u << lanes) - 1, 1);          \
            }                                                                                                           \
        }                                                                                                               \
    }
ACLNN_BW_SCATTER_PLANES(aclnn_bw_scatter_planes_f32, float, aclnn_bw_scatter_f32, +=)
ACLNN_BW_SCATTER_PLANES(aclnn_bw_scatter_planes_f64, double, aclnn_bw_scatter_f64, +=)
ACLNN_BW_SCATTER_PLANES(aclnn_bw_scatter_planes_u16, uint16_t, aclnn_bw_scatter_u16, =)
#endif
