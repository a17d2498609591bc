/* The transposition of transpose.pxd for the average pool, until that is written on simd.h too: gcc 12 takes both into
 * the function that computes, and with the other one that takes 1.1 times as long for 32x2048x7x7 k7 in float32. */
#ifndef ACLNN_BW_TRANSPOSE_H
#define ACLNN_BW_TRANSPOSE_H
#include <stdint.h>
#include <string.h>

#include "half.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Bytes of the widest vector that is fast. */
#if defined(__AVX512BW__)
#define ACLNN_BW_WIDEST 64
#elif defined(__AVX2__)
#define ACLNN_BW_WIDEST 32
#else
#define ACLNN_BW_WIDEST 16
#endif

#define ACLNN_BW_VECTOR(type, bytes) type __attribute__((vector_size(bytes), aligned(sizeof(type)), may_alias))
typedef ACLNN_BW_VECTOR(uint16_t, 16) aclnn_bw_bits_16;
typedef ACLNN_BW_VECTOR(uint32_t, 16) aclnn_bw_word_16;

#define ACLNN_BW_LINE 64       /* bytes of a cache line */
#define ACLNN_BW_ROWS_AHEAD 64 /* rows of cells, into the L2 cache: of those 1 KiB apart the L1 cache holds 32 */

/* Cells that lie `to_pitch` and `from_pitch` apart, transposed in blocks of 16 bytes each way, in registers: compilers
 * make one load and one store a cell of the plain loop. */
typedef uint16_t __attribute__((may_alias)) aclnn_bw_cell_2;
typedef uint32_t __attribute__((may_alias)) aclnn_bw_cell_4;
typedef uint64_t __attribute__((may_alias)) aclnn_bw_cell_8;

#if defined(__SSE2__)
#define ACLNN_BW_TURNED(size) (16 / (size))
#define ACLNN_BW_TALL(size, bytes) ((bytes) / (size))

/* Blocks of 16 bytes of columns by as many rows as a vector holds cells: a wide one half of them in each 16 bytes. */
#define ACLNN_BW_TURNS(bytes, vector, prefix, load, store)                                                        \
    static inline void aclnn_bw_turn_2_##bytes(aclnn_bw_cell_2 *to, int64_t to_pitch, const aclnn_bw_cell_2 *from, \
                                               int64_t from_pitch)                                                \
    {                                                                                                             \
        vector a[8], b[8];                                                                                        \
        for (int i = 0; i < 8; i += 2) {                                                                          \
            vector x = load(from + i * from_pitch, 8 * from_pitch);                                               \
            vector y = load(from + (i + 1) * from_pitch, 8 * from_pitch);                                         \
            a[i] = prefix##_unpacklo_epi16(x, y);                                                                 \
            a[i + 1] = prefix##_unpackhi_epi16(x, y);                                                             \
        }                                                                                                         \
        for (int i = 0; i < 8; i += 4)                                                                            \
            for (int k = 0; k < 2; k++) {                                                                         \
                b[i + 2 * k] = prefix##_unpacklo_epi32(a[i + k], a[i + k + 2]);                                   \
                b[i + 2 * k + 1] = prefix##_unpackhi_epi32(a[i + k], a[i + k + 2]);                               \
            }                                                                                                     \
        for (int j = 0; j < 4; j++) {                                                                             \
            store(to + 2 * j * to_pitch, prefix##_unpacklo_epi64(b[j], b[j + 4]));                                \
            store(to + (2 * j + 1) * to_pitch, prefix##_unpackhi_epi64(b[j], b[j + 4]));                          \
        }                                                                                                         \
    }                                                                                                             \
    static inline void aclnn_bw_turn_4_##bytes(aclnn_bw_cell_4 *to, int64_t to_pitch, const aclnn_bw_cell_4 *from, \
                                               int64_t from_pitch)                                                \
    {                                                                                                             \
        vector a = load(from, 4 * from_pitch), b = load(from + from_pitch, 4 * from_pitch);                       \
        vector c = load(from + 2 * from_pitch, 4 * from_pitch), d = load(from + 3 * from_pitch, 4 * from_pitch);  \
        vector low = prefix##_unpacklo_epi32(a, b), next = prefix##_unpacklo_epi32(c, d);                         \
        store(to, prefix##_unpacklo_epi64(low, next));                                                            \
        store(to + to_pitch, prefix##_unpackhi_epi64(low, next));                                                 \
        low = prefix##_unpackhi_epi32(a, b);                                                                      \
        next = prefix##_unpackhi_epi32(c, d);                                                                     \
        store(to + 2 * to_pitch, prefix##_unpacklo_epi64(low, next));                                             \
        store(to + 3 * to_pitch, prefix##_unpackhi_epi64(low, next));                                             \
    }                                                                                                             \
    static inline void aclnn_bw_turn_8_##bytes(aclnn_bw_cell_8 *to, int64_t to_pitch, const aclnn_bw_cell_8 *from, \
                                               int64_t from_pitch)                                                \
    {                                                                                                             \
        vector a = load(from, 2 * from_pitch), b = load(from + from_pitch, 2 * from_pitch);                       \
        store(to, prefix##_unpacklo_epi64(a, b));                                                                 \
        store(to + to_pitch, prefix##_unpackhi_epi64(a, b));                                                      \
    }

#define ACLNN_BW_LOAD_CELLS_16(from, below) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define ACLNN_BW_STORE_CELLS_16(to, cells) _mm_storeu_si128((__m128i *)(void *)(to), cells)
ACLNN_BW_TURNS(16, __m128i, _mm, ACLNN_BW_LOAD_CELLS_16, ACLNN_BW_STORE_CELLS_16)

#if ACLNN_BW_WIDEST == 32
#define ACLNN_BW_LOAD_CELLS_32(from, below)                                                                       \
    _mm256_inserti128_si256(_mm256_castsi128_si256(ACLNN_BW_LOAD_CELLS_16(from, 0)),                              \
                            ACLNN_BW_LOAD_CELLS_16((from) + (below), 0), 1)
#define ACLNN_BW_STORE_CELLS_32(to, cells) _mm256_storeu_si256((__m256i *)(void *)(to), cells)
ACLNN_BW_TURNS(32, __m256i, _mm256, ACLNN_BW_LOAD_CELLS_32, ACLNN_BW_STORE_CELLS_32)
#define ACLNN_BW_TURN_TALL(size, type)            \
    else if (rows >= 32 / (size)) {               \
        ACLNN_BW_TURN_BLOCKS(size, type, 32)      \
    }
#else
#define ACLNN_BW_TURN_TALL(size, type)
#endif
#else
#define ACLNN_BW_TURNED(size) INT64_MAX
#define ACLNN_BW_TALL(size, bytes) INT64_MAX
#define aclnn_bw_turn_2_16(to, to_pitch, from, from_pitch) ((void)(to), (void)(from))
#define aclnn_bw_turn_4_16(to, to_pitch, from, from_pitch) ((void)(to), (void)(from))
#define aclnn_bw_turn_8_16(to, to_pitch, from, from_pitch) ((void)(to), (void)(from))
#define ACLNN_BW_TURN_TALL(size, type)
#endif

/* Three columns side by side, as colours are: blocks of 48 bytes. Compilers make one load and one store a cell of the
 * plain loop: a dense image of float16 takes twice as long with it. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define ACLNN_BW_SHUFFLE __builtin_shufflevector
#endif
#endif
#if defined(ACLNN_BW_SHUFFLE)
#define ACLNN_BW_SPLIT(size) ((size) < 8 ? 16 / (size) : INT64_MAX)

static inline void aclnn_bw_split_2(aclnn_bw_cell_2 *to, int64_t to_pitch, const aclnn_bw_cell_2 *from)
{
    aclnn_bw_bits_16 a = *(const aclnn_bw_bits_16 *)(const void *)from;
    aclnn_bw_bits_16 b = *(const aclnn_bw_bits_16 *)(const void *)(from + 8);
    aclnn_bw_bits_16 c = *(const aclnn_bw_bits_16 *)(const void *)(from + 16);
    aclnn_bw_bits_16 first = ACLNN_BW_SHUFFLE(a, b, 0, 3, 6, 9, 12, 15, 0, 0);
    aclnn_bw_bits_16 second = ACLNN_BW_SHUFFLE(a, b, 1, 4, 7, 10, 13, 0, 0, 0);
    aclnn_bw_bits_16 third = ACLNN_BW_SHUFFLE(a, b, 2, 5, 8, 11, 14, 0, 0, 0);
    *(aclnn_bw_bits_16 *)(void *)to = ACLNN_BW_SHUFFLE(first, c, 0, 1, 2, 3, 4, 5, 10, 13);
    *(aclnn_bw_bits_16 *)(void *)(to + to_pitch) = ACLNN_BW_SHUFFLE(second, c, 0, 1, 2, 3, 4, 8, 11, 14);
    *(aclnn_bw_bits_16 *)(void *)(to + 2 * to_pitch) = ACLNN_BW_SHUFFLE(third, c, 0, 1, 2, 3, 4, 9, 12, 15);
}

static inline void aclnn_bw_split_4(aclnn_bw_cell_4 *to, int64_t to_pitch, const aclnn_bw_cell_4 *from)
{
    aclnn_bw_word_16 a = *(const aclnn_bw_word_16 *)(const void *)from;
    aclnn_bw_word_16 b = *(const aclnn_bw_word_16 *)(const void *)(from + 4);
    aclnn_bw_word_16 c = *(const aclnn_bw_word_16 *)(const void *)(from + 8);
    aclnn_bw_word_16 first = ACLNN_BW_SHUFFLE(a, b, 0, 3, 6, 0);
    aclnn_bw_word_16 second = ACLNN_BW_SHUFFLE(a, b, 1, 4, 7, 0);
    aclnn_bw_word_16 third = ACLNN_BW_SHUFFLE(a, b, 2, 5, 0, 0);
    *(aclnn_bw_word_16 *)(void *)to = ACLNN_BW_SHUFFLE(first, c, 0, 1, 2, 5);
    *(aclnn_bw_word_16 *)(void *)(to + to_pitch) = ACLNN_BW_SHUFFLE(second, c, 0, 1, 2, 6);
    *(aclnn_bw_word_16 *)(void *)(to + 2 * to_pitch) = ACLNN_BW_SHUFFLE(third, c, 0, 1, 4, 7);
}
#else
#define ACLNN_BW_SPLIT(size) INT64_MAX
#define aclnn_bw_split_2(to, to_pitch, from) ((void)(to), (void)(from))
#define aclnn_bw_split_4(to, to_pitch, from) ((void)(to), (void)(from))
#endif

#define aclnn_bw_split_8(to, to_pitch, from) ((void)(to), (void)(from)) /* 16 bytes hold two */

/* to[j][i] = from[i][j] for few columns. */
#define ACLNN_BW_TURN_COLUMNS(count)                                  \
    for (int64_t i = 0; i < rows; i++)                                \
        for (int64_t j = 0; j < (count); j++)                         \
            to[j * to_pitch + i] = from[i * from_pitch + j];

/* Blocks of as many rows as vectors of `bytes` bytes hold; the last one overlaps the one before. */
#define ACLNN_BW_TURN_BLOCKS(size, type, bytes)                                                                   \
    for (int64_t a = 0; a < rows; a += ACLNN_BW_TALL(size, bytes)) {                                              \
        const int64_t tall = ACLNN_BW_TALL(size, bytes), i = a < rows - tall ? a : rows - tall;                   \
        const type *ahead = from + (i + ACLNN_BW_ROWS_AHEAD) * from_pitch;                                        \
        for (int64_t k = 0; k < tall; k++, ahead += from_pitch)                                                   \
            for (int64_t j = 0; j < columns; j += ACLNN_BW_LINE / size)                                           \
                __builtin_prefetch(ahead + j, 0, 2);                                                              \
        for (int64_t b = 0; b < columns; b += block) {                                                            \
            const int64_t j = b < columns - block ? b : columns - block;                                          \
            aclnn_bw_turn_##size##_##bytes(to + j * to_pitch + i, to_pitch, from + i * from_pitch + j, from_pitch); \
        }                                                                                                         \
    }

/* to[j][i] = from[i][j] */
#define ACLNN_BW_TRANSPOSE(size, type)                                                                            \
    static inline void aclnn_bw_transpose_##size(type *to, int64_t to_pitch, const type *from, int64_t from_pitch, \
                                                 int64_t rows, int64_t columns)                                   \
    {                                                                                                             \
        const int64_t block = ACLNN_BW_TURNED(size), split = ACLNN_BW_SPLIT(size);                                \
        if (columns == 3 && from_pitch == 3 && rows >= split) {                                                   \
            for (int64_t a = 0; a < rows; a += split) {                                                           \
                const int64_t i = a < rows - split ? a : rows - split;                                            \
                aclnn_bw_split_##size(to + i, to_pitch, from + 3 * i);                                            \
            }                                                                                                     \
        } else if (columns == 3) {                                                                                \
            ACLNN_BW_TURN_COLUMNS(3)                                                                              \
        } else if (rows < block || columns < block) {                                                             \
            ACLNN_BW_TURN_COLUMNS(columns)                                                                        \
        }                                                                                                         \
        ACLNN_BW_TURN_TALL(size, type)                                                                            \
        else {                                                                                                    \
            ACLNN_BW_TURN_BLOCKS(size, type, 16)                                                                  \
        }                                                                                                         \
    }

ACLNN_BW_TRANSPOSE(2, aclnn_bw_cell_2)
ACLNN_BW_TRANSPOSE(4, aclnn_bw_cell_4)
ACLNN_BW_TRANSPOSE(8, aclnn_bw_cell_8)

/* to[j][i] = from[i][j] for cells of 2, 4, 8 or 16 bytes; pitches count cells. */
static inline void aclnn_bw_transpose(void *to, int64_t to_pitch, const void *from, int64_t from_pitch, int64_t rows,
                                      int64_t columns, int64_t cell)
{
    if (cell == 2)
        aclnn_bw_transpose_2((aclnn_bw_cell_2 *)to, to_pitch, (const aclnn_bw_cell_2 *)from, from_pitch, rows, columns);
    else if (cell == 4)
        aclnn_bw_transpose_4((aclnn_bw_cell_4 *)to, to_pitch, (const aclnn_bw_cell_4 *)from, from_pitch, rows, columns);
    else if (cell == 8)
        aclnn_bw_transpose_8((aclnn_bw_cell_8 *)to, to_pitch, (const aclnn_bw_cell_8 *)from, from_pitch, rows, columns);
    else
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                memcpy((char *)to + (j * to_pitch + i) * 16, (const char *)from + (i * from_pitch + j) * 16, 16);
}
#endif
