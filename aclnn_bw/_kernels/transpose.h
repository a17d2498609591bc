/* Sums of rows in vectors, and the transposition of cells in registers, which several kernels need.
 *
 * `to` and `from` must not share memory. Nothing beyond the cells that are named is read or written: the last vector or
 * block overlaps the one before.
 *
 * Bounds, from the code that gcc 12 makes. Sums of rows: a load and an addition a term, bound by loads, in 16-bit types
 * by the conversion of every term. Transpositions: 8 shuffles of 16 bytes and 4 stores for 64 bytes (16 bits: 12 and 4;
 * AVX2: as many for twice the bytes, and 4 loads that insert), bound by shuffles and stores, and from memory by the
 * latency of lines that lie apart, hence the prefetch: 5 ns a line instead of 8. Three columns side by side: 6 shuffles
 * of two vectors and 3 stores for 48 bytes, where AVX-512 is not to be had 12 of one vector and 6 `or`, bound by these.
 */
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
typedef ACLNN_BW_VECTOR(float, 16) aclnn_bw_float_16;
typedef ACLNN_BW_VECTOR(float, 32) aclnn_bw_float_32;
typedef ACLNN_BW_VECTOR(float, 64) aclnn_bw_float_64;
typedef ACLNN_BW_VECTOR(double, 16) aclnn_bw_double_16;
typedef ACLNN_BW_VECTOR(double, 32) aclnn_bw_double_32;
typedef ACLNN_BW_VECTOR(double, 64) aclnn_bw_double_64;
typedef ACLNN_BW_VECTOR(uint16_t, 8) aclnn_bw_bits_8;
typedef ACLNN_BW_VECTOR(uint16_t, 16) aclnn_bw_bits_16;
typedef ACLNN_BW_VECTOR(uint16_t, 32) aclnn_bw_bits_32;
typedef ACLNN_BW_VECTOR(uint16_t, 64) aclnn_bw_bits_64;
typedef ACLNN_BW_VECTOR(uint32_t, 16) aclnn_bw_word_16;
typedef ACLNN_BW_VECTOR(uint32_t, 32) aclnn_bw_word_32;
typedef ACLNN_BW_VECTOR(uint32_t, 64) aclnn_bw_word_64;

#define ACLNN_BW_JOIN(a, b) a##b
#define ACLNN_BW_SIZED(name, bytes) ACLNN_BW_JOIN(name, bytes)

#define ACLNN_BW_LINE 64       /* bytes of a cache line */
#define ACLNN_BW_ROWS_AHEAD 64 /* rows of cells, into the L2 cache: of those 1 KiB apart the L1 cache holds 32 */

/* to[:n] = 0.0 + the first row + the second ..., each of n numbers; an element is summed in a register. load(bytes,
 * at) makes a vector of `bytes` bytes of what is stored from there on. */
#define ACLNN_BW_SUM_PIECE(vector, load, bytes, i)                            \
    do {                                                                      \
        ACLNN_BW_SIZED(vector, bytes) sum = load(bytes, from + (i)) + 0;      \
        for (int64_t r = 1; r < rows; r++)                                    \
            sum += load(bytes, from + (i) + r * down);                        \
        *(ACLNN_BW_SIZED(vector, bytes) *)(void *)(to + (i)) = sum;           \
    } while (0)

#define ACLNN_BW_SUM_ROWS(name, real, type, vector, load, widen)                                              \
    static inline void name(real *to, const type *from, int64_t down, int64_t rows, int64_t n)                \
    {                                                                                                         \
        const int64_t lanes = ACLNN_BW_WIDEST / (int64_t)sizeof(real), bytes = n * (int64_t)sizeof(real);     \
        int64_t i = 0;                                                                                        \
        if (bytes >= ACLNN_BW_WIDEST) {                                                                       \
            for (; i < n - lanes; i += lanes)                                                                 \
                ACLNN_BW_SUM_PIECE(vector, load, ACLNN_BW_WIDEST, i);                                         \
            ACLNN_BW_SUM_PIECE(vector, load, ACLNN_BW_WIDEST, n - lanes);                                     \
        } else if (ACLNN_BW_WIDEST > 32 && bytes >= 32) {                                                     \
            ACLNN_BW_SUM_PIECE(vector, load, 32, 0);                                                          \
            ACLNN_BW_SUM_PIECE(vector, load, 32, n - 32 / (int64_t)sizeof(real));                             \
        } else if (ACLNN_BW_WIDEST > 16 && bytes >= 16) {                                                     \
            ACLNN_BW_SUM_PIECE(vector, load, 16, 0);                                                          \
            ACLNN_BW_SUM_PIECE(vector, load, 16, n - 16 / (int64_t)sizeof(real));                             \
        } else {                                                                                              \
            for (; i < n; i++) {                                                                              \
                real sum = widen(from[i]) + 0;                                                                \
                for (int64_t r = 1; r < rows; r++)                                                            \
                    sum += widen(from[i + r * down]);                                                         \
                to[i] = sum;                                                                                  \
            }                                                                                                 \
        }                                                                                                     \
    }

#define ACLNN_BW_LOAD_FLOATS(bytes, at) (*(const ACLNN_BW_SIZED(aclnn_bw_float_, bytes) *)(const void *)(at))
#define ACLNN_BW_LOAD_DOUBLES(bytes, at) (*(const ACLNN_BW_SIZED(aclnn_bw_double_, bytes) *)(const void *)(at))
#define ACLNN_BW_LOAD_HALVES(bytes, at) ACLNN_BW_SIZED(ACLNN_BW_LOAD_HALVES_, bytes)((const void *)(at))
#define ACLNN_BW_LOAD_HALVES_16(at) ((aclnn_bw_float_16)_mm_cvtph_ps(_mm_loadl_epi64(at)))
#define ACLNN_BW_LOAD_HALVES_32(at) ((aclnn_bw_float_32)_mm256_cvtph_ps(_mm_loadu_si128(at)))
#define ACLNN_BW_LOAD_HALVES_64(at) ((aclnn_bw_float_64)_mm512_cvtph_ps(_mm256_loadu_si256(at)))
#define ACLNN_BW_LOAD_BFLOATS(bytes, at) ACLNN_BW_SIZED(ACLNN_BW_LOAD_BFLOATS_, bytes)((const void *)(at))
#define ACLNN_BW_SHIFT_UP(narrow, wide, at) (__builtin_convertvector(*(const narrow *)(at), wide) << 16)
#define ACLNN_BW_LOAD_BFLOATS_16(at) ((aclnn_bw_float_16)ACLNN_BW_SHIFT_UP(aclnn_bw_bits_8, aclnn_bw_word_16, at))
#define ACLNN_BW_LOAD_BFLOATS_32(at) ((aclnn_bw_float_32)ACLNN_BW_SHIFT_UP(aclnn_bw_bits_16, aclnn_bw_word_32, at))
#define ACLNN_BW_LOAD_BFLOATS_64(at) ((aclnn_bw_float_64)ACLNN_BW_SHIFT_UP(aclnn_bw_bits_32, aclnn_bw_word_64, at))
#define ACLNN_BW_SAME(x) (x)

ACLNN_BW_SUM_ROWS(aclnn_bw_sum_float_rows, float, float, aclnn_bw_float_, ACLNN_BW_LOAD_FLOATS, ACLNN_BW_SAME)
ACLNN_BW_SUM_ROWS(aclnn_bw_sum_double_rows, double, double, aclnn_bw_double_, ACLNN_BW_LOAD_DOUBLES, ACLNN_BW_SAME)
ACLNN_BW_SUM_ROWS(aclnn_bw_sum_bfloat_rows, float, aclnn_bw_bfloat, aclnn_bw_float_, ACLNN_BW_LOAD_BFLOATS,
                  aclnn_bw_widen_bfloat)
#if defined(__F16C__)
ACLNN_BW_SUM_ROWS(aclnn_bw_sum_half_rows, float, aclnn_bw_half, aclnn_bw_float_, ACLNN_BW_LOAD_HALVES,
                  aclnn_bw_widen_half)
#else
static inline void aclnn_bw_sum_half_rows(float *to, const aclnn_bw_half *from, int64_t down, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = aclnn_bw_widen_half(from[i]) + 0;
    for (int64_t r = 1; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            to[i] += aclnn_bw_widen_half(from[r * down + i]);
}
#endif

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
