/* Rows of ReplicationPad2dBackward: copies in which -0.0 becomes +0.0, and sums of long runs.
 *
 * Rows are made of whole vectors, the last of which overlaps the one before; a row shorter than a vector is made of two
 * smaller ones. Rows of a dozen elements are common, and the scalar remainder of a plain loop takes longer than all
 * else in them. So `to` and `from` must not share memory; nothing beyond the n elements is read or written.
 */
#ifndef ACLNN_BW_REPLICATION_PAD2D_H
#define ACLNN_BW_REPLICATION_PAD2D_H
#include <stdint.h>

#include "half.h"

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

#define ACLNN_BW_JOIN(a, b) a##b
#define ACLNN_BW_SIZED(name, bytes) ACLNN_BW_JOIN(name, bytes)

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
