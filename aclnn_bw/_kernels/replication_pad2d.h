/* Rows of ReplicationPad2dBackward: copies in which -0.0 becomes +0.0, and sums of long runs.
 *
 * Rows are made of whole vectors, the last of which overlaps the one before; a row shorter than a vector is made of two
 * smaller ones. Rows of a dozen elements are common, and the scalar remainder of a plain loop takes longer than all
 * else in them. So `to` and `from` must not share memory; nothing beyond the n elements is read or written.
 *
 * Bounds, from the code that gcc 12 makes. A copied row: an addition that loads and a store a vector. 16 bits: a load, a
 * comparison to a mask, a zeroing move, an `and` and a store (AVX2: two comparisons, an `and` and a store), but the
 * loads and stores bind it all the same: where source and target lie differently in their cache lines, half or all of
 * those of 64 bytes cross one, in the caches; beyond them memory does. Streamed rows: the same with a non-temporal store
 * and a prefetch a line, bound by memory. Chains: additions, two or four in flight.
 */
#ifndef ACLNN_BW_REPLICATION_PAD2D_H
#define ACLNN_BW_REPLICATION_PAD2D_H
#include <stdint.h>

#include "transpose.h" /* vectors, cache lines, sums of rows, transposition */

#define ACLNN_BW_PLUS_ZERO(vector, x) ((x) + 0)
/* A 16-bit -0.0 is 0x8000; every other value stays as it is. */
#define ACLNN_BW_PLUS_ZERO_BITS(vector, x) ((x) & (vector)((x) != 0x8000))

#define ACLNN_BW_PIECE(vector, plus_zero, i)                                                     \
    (*(vector *)(void *)(to + (i)) = plus_zero(vector, *(const vector *)(const void *)(from + (i))))

/* Every row as two pieces, the first and the last elements of it. */
#define ACLNN_BW_TWO_PIECES(vector, type, plus_zero)                             \
    for (; rows > 0; rows--, to += down, from += source_down) {                  \
        ACLNN_BW_PIECE(vector, plus_zero, 0);                                    \
        ACLNN_BW_PIECE(vector, plus_zero, n - (int64_t)(sizeof(vector) / sizeof(type))); \
    }

/* rows of to[:n] = from[:n] + 0.0 */
#define ACLNN_BW_COPY_ROWS(name, type, vector, plus_zero, plus_zero_scalar)                                       \
    static inline void name(type *to, int64_t down, const type *from, int64_t source_down, int64_t n, int64_t rows) \
    {                                                                                                             \
        const int64_t lanes = ACLNN_BW_WIDEST / (int64_t)sizeof(type), bytes = n * (int64_t)sizeof(type);         \
        if (bytes > 2 * ACLNN_BW_WIDEST)                                                                          \
            for (; rows > 0; rows--, to += down, from += source_down) {                                           \
                for (int64_t i = 0; i < n - lanes; i += lanes)                                                    \
                    ACLNN_BW_PIECE(ACLNN_BW_SIZED(vector, ACLNN_BW_WIDEST), plus_zero, i);                        \
                ACLNN_BW_PIECE(ACLNN_BW_SIZED(vector, ACLNN_BW_WIDEST), plus_zero, n - lanes);                    \
            }                                                                                                     \
        else if (bytes >= ACLNN_BW_WIDEST)                                                                        \
            ACLNN_BW_TWO_PIECES(ACLNN_BW_SIZED(vector, ACLNN_BW_WIDEST), type, plus_zero)                         \
        else if (ACLNN_BW_WIDEST > 32 && bytes >= 32)                                                             \
            ACLNN_BW_TWO_PIECES(vector##32, type, plus_zero)                                                      \
        else if (ACLNN_BW_WIDEST > 16 && bytes >= 16)                                                             \
            ACLNN_BW_TWO_PIECES(vector##16, type, plus_zero)                                                      \
        else                                                                                                      \
            for (; rows > 0; rows--, to += down, from += source_down)                                             \
                for (int64_t i = 0; i < n; i++)                                                                   \
                    to[i] = plus_zero_scalar(type, from[i]);                                                      \
    }

#define ACLNN_BW_PLUS_ZERO_WORD(type, x) ((x) == 0x8000 ? (type)0 : (x))
ACLNN_BW_COPY_ROWS(aclnn_bw_copy_float_rows, float, aclnn_bw_float_, ACLNN_BW_PLUS_ZERO, ACLNN_BW_PLUS_ZERO)
ACLNN_BW_COPY_ROWS(aclnn_bw_copy_double_rows, double, aclnn_bw_double_, ACLNN_BW_PLUS_ZERO, ACLNN_BW_PLUS_ZERO)
ACLNN_BW_COPY_ROWS(aclnn_bw_copy_bits_rows, uint16_t, aclnn_bw_bits_, ACLNN_BW_PLUS_ZERO_BITS, ACLNN_BW_PLUS_ZERO_WORD)

/* The same past the caches, for rows of three cache lines and more, most of which go to memory in whole lines: these
 * are not read before they are written. The first and last two numbers come by ordinary stores, for they are written
 * again; their lines are fetched ahead, because stores wait for each other. */
#if defined(__SSE2__)
#if ACLNN_BW_WIDEST == 64
#define ACLNN_BW_STREAM(at, x) _mm512_stream_si512((__m512i *)(void *)(at), (__m512i)(x))
#elif ACLNN_BW_WIDEST == 32
#define ACLNN_BW_STREAM(at, x) _mm256_stream_si256((__m256i *)(void *)(at), (__m256i)(x))
#else
#define ACLNN_BW_STREAM(at, x) _mm_stream_si128((__m128i *)(void *)(at), (__m128i)(x))
#endif
#define ACLNN_BW_FENCE() _mm_sfence()
#else
#define ACLNN_BW_STREAM(at, x) (*(at) = (x))
#define ACLNN_BW_FENCE() ((void)0)
#endif

#define ACLNN_BW_AHEAD 4096      /* bytes: how far ahead rows are fetched */
#define ACLNN_BW_STREAMS_AHEAD 4  /* rows: how far ahead their ends are */

#define ACLNN_BW_STREAM_ROWS(name, copy_rows, type, vector, plus_zero)                                            \
    static inline void name(type *to, int64_t down, const type *from, int64_t source_down, int64_t n, int64_t rows) \
    {                                                                                                             \
        const int64_t line = ACLNN_BW_LINE / (int64_t)sizeof(type);                                               \
        const int64_t lanes = ACLNN_BW_WIDEST / (int64_t)sizeof(type);                                            \
        for (; rows > 0; rows--, to += down, from += source_down) {                                               \
            int64_t i = (int64_t)(-(uintptr_t)to % ACLNN_BW_LINE / sizeof(type));                                 \
            i += i < 2 ? line : 0;                                                                                \
            __builtin_prefetch(to + ACLNN_BW_STREAMS_AHEAD * down, 1);                                            \
            copy_rows(to, 0, from, 0, i, 1);                                                                      \
            for (; i + line + 1 < n; i += line) {                                                                 \
                __builtin_prefetch((const char *)(from + i) + ACLNN_BW_AHEAD);                                    \
                for (int64_t k = i; k < i + line; k += lanes)                                                     \
                    ACLNN_BW_STREAM((vector *)(void *)(to + k),                                                   \
                                    plus_zero(vector, *(const vector *)(const void *)(from + k)));                \
            }                                                                                                     \
            copy_rows(to + i, 0, from + i, 0, n - i, 1);                                                          \
        }                                                                                                         \
    }

ACLNN_BW_STREAM_ROWS(aclnn_bw_stream_float_rows, aclnn_bw_copy_float_rows, float,
                     ACLNN_BW_SIZED(aclnn_bw_float_, ACLNN_BW_WIDEST), ACLNN_BW_PLUS_ZERO)
ACLNN_BW_STREAM_ROWS(aclnn_bw_stream_double_rows, aclnn_bw_copy_double_rows, double,
                     ACLNN_BW_SIZED(aclnn_bw_double_, ACLNN_BW_WIDEST), ACLNN_BW_PLUS_ZERO)
ACLNN_BW_STREAM_ROWS(aclnn_bw_stream_bits_rows, aclnn_bw_copy_bits_rows, uint16_t,
                     ACLNN_BW_SIZED(aclnn_bw_bits_, ACLNN_BW_WIDEST), ACLNN_BW_PLUS_ZERO_BITS)

/* What has been streamed is visible to other threads afterwards. */
static inline void aclnn_bw_end_streams(void) { ACLNN_BW_FENCE(); }

/* lanes[k] += from[k] + from[8 + k] + ..., each chain in this order, for n numbers, a multiple of 8. In vectors of 16
 * bytes on every instruction set: two or four independent chains keep the adder busy enough. */
static inline void aclnn_bw_add_float_lanes(float *lanes, const float *from, int64_t n)
{
    aclnn_bw_float_16 a = *(aclnn_bw_float_16 *)(void *)lanes, b = *(aclnn_bw_float_16 *)(void *)(lanes + 4);
    for (int64_t i = 0; i < n; i += 8) {
        a += *(const aclnn_bw_float_16 *)(const void *)(from + i);
        b += *(const aclnn_bw_float_16 *)(const void *)(from + i + 4);
    }
    *(aclnn_bw_float_16 *)(void *)lanes = a;
    *(aclnn_bw_float_16 *)(void *)(lanes + 4) = b;
}

static inline void aclnn_bw_add_double_lanes(double *lanes, const double *from, int64_t n)
{
    aclnn_bw_double_16 sum[4];
    for (int k = 0; k < 4; k++)
        sum[k] = *(aclnn_bw_double_16 *)(void *)(lanes + 2 * k);
    for (int64_t i = 0; i < n; i += 8)
        for (int k = 0; k < 4; k++)
            sum[k] += *(const aclnn_bw_double_16 *)(const void *)(from + i + 2 * k);
    for (int k = 0; k < 4; k++)
        *(aclnn_bw_double_16 *)(void *)(lanes + 2 * k) = sum[k];
}
#endif
