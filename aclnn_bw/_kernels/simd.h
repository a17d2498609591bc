/* Vectors: the instructions that the kernels are made of, for AVX-512, AVX2, 16 bytes of x86, and NEON.
 *
 * A vector is a carrier of bytes: simd_vector is as wide as is fast here, simd_vector_half half of that (16 bytes at
 * least), simd_vector_16 has 16 bytes. What its lanes are, the name of a primitive says. A primitive takes pointers to
 * vectors, which compilers keep in registers, and works on each of the three; simd.pxd gives it a Cython signature.
 * What depends on no instruction set is GNU vector arithmetic, which gcc and clang know everywhere.
 *
 * A primitive reads and writes nothing but the lanes that it names. Addresses need the alignment of a lane alone.
 */
#ifndef ACLNN_BW_SIMD_H
#define ACLNN_BW_SIMD_H
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "half.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define SIMD_BYTES 64
#elif defined(__AVX2__) && defined(__F16C__)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif
#define SIMD_HALF_BYTES (SIMD_BYTES > 16 ? SIMD_BYTES / 2 : 16)
#define SIMD_LINE 64 /* bytes of a cache line */

typedef float simd_vector __attribute__((vector_size(SIMD_BYTES)));
typedef float simd_vector_half __attribute__((vector_size(SIMD_HALF_BYTES)));
typedef float simd_vector_16 __attribute__((vector_size(16)));
typedef float simd_vector_32 __attribute__((vector_size(SIMD_BYTES > 16 ? 32 : 16)));

/* Integers in lanes, to which C's own operators are applied. Of those of 2 bytes 32 are compared as fast as 64. */
typedef uint32_t simd_lanes_of_4 __attribute__((vector_size(SIMD_BYTES)));
typedef uint32_t simd_lanes_of_4_half __attribute__((vector_size(SIMD_HALF_BYTES)));
typedef uint32_t simd_lanes_of_4_16 __attribute__((vector_size(16)));
typedef uint16_t simd_lanes_of_2 __attribute__((vector_size(SIMD_BYTES > 16 ? 32 : 16)));
typedef uint16_t simd_lanes_of_words __attribute__((vector_size(SIMD_BYTES)));

/* Cells of memory that are moved, whatever they hold, and at any address, as a mask's bytes are. */
typedef uint16_t __attribute__((may_alias, aligned(1))) simd_cell_2;
typedef uint32_t __attribute__((may_alias, aligned(1))) simd_cell_4;
typedef uint64_t __attribute__((may_alias, aligned(1))) simd_cell_8;

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

/* A vector's lanes, and a vector made of lanes. */
#define SIMD_TYPE(lane, bytes) lane __attribute__((vector_size(bytes)))
#define SIMD_AS(lane, x) ((SIMD_TYPE(lane, sizeof *(x)))*(x))
#define SIMD_SET(x, lanes) (*(x) = (__typeof__(*(x)))(lanes))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* x = what lies at `from`, as it is. */
#define simd_load(x, from) ((void)memcpy(x, from, sizeof *(x)))

/* What lies at `to` = x. */
#if defined(__aarch64__)
/* Of 16 bytes that are copied gcc 12 makes two general registers: five instructions for one. */
#define simd_store(to, x) vst1q_u8((uint8_t *)(to), (uint8x16_t)*(x))
#else
#define simd_store(to, x) ((void)memcpy(to, x, sizeof *(x)))
#endif

/* The same past the caches; `to` lies at a multiple of the vector's bytes. */
#define simd_stream(to, x) simd_stream_bytes(to, x, sizeof *(x))

SIMD_INLINE void simd_stream_bytes(void *to, const void *x, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(x));
#endif
#if defined(__AVX2__)
    if (bytes == 32)
        _mm256_stream_si256((__m256i *)to, _mm256_loadu_si256((const __m256i *)x));
#endif
#if defined(__SSE2__)
    if (bytes == 16)
        _mm_stream_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)x));
#else
    memcpy(to, x, bytes);
#endif
}

/* What has been streamed is visible to other threads after this. */
SIMD_INLINE void simd_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Fetch a cache line that will be read, or written. */
#define simd_prefetch(at) __builtin_prefetch(at)
#define simd_prefetch_to_write(at) __builtin_prefetch(at, 1)
#define simd_prefetch_to_level_2(at) __builtin_prefetch(at, 0, 2)

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* x = 0 in every lane. */
#define simd_zero(x) SIMD_SET(x, (SIMD_TYPE(float, sizeof *(x))){0})

/* x = the cell of 2, 4 or 8 bytes at `from` in every lane. */
#define simd_fill(x, from, cell) \
    ((void)((cell) == 2 ? SIMD_SET(x, (SIMD_TYPE(uint16_t, sizeof *(x))){0} + *(const simd_cell_2 *)(from)) \
            : (cell) == 4 ? SIMD_SET(x, (SIMD_TYPE(uint32_t, sizeof *(x))){0} + *(const simd_cell_4 *)(from)) \
            : SIMD_SET(x, (SIMD_TYPE(uint64_t, sizeof *(x))){0} + *(const simd_cell_8 *)(from))))

/* The bits that are ones in both. */
#define simd_and(x, a, b) SIMD_SET(x, SIMD_AS(uint64_t, a) & SIMD_AS(uint64_t, b))

/* x = a + b, a * b, and a * a factor, of float32 (lanes of 4 bytes) and float64 (of 8). */
#define simd_add(x, a, b, lane) \
    SIMD_EITHER(lane, x, SIMD_AS(float, a) + SIMD_AS(float, b), SIMD_AS(double, a) + SIMD_AS(double, b))
#define simd_multiply(x, a, b, lane) \
    SIMD_EITHER(lane, x, SIMD_AS(float, a) * SIMD_AS(float, b), SIMD_AS(double, a) * SIMD_AS(double, b))
#define simd_scale(x, a, factor, lane) \
    SIMD_EITHER(lane, x, SIMD_AS(float, a) * (float)(factor), SIMD_AS(double, a) * (factor))
#define simd_divide(x, a, divisor, lane) \
    SIMD_EITHER(lane, x, SIMD_AS(float, a) / (float)(divisor), SIMD_AS(double, a) / (divisor))
#define SIMD_EITHER(lane, x, of_4, of_8) ((void)((lane) == 8 ? SIMD_SET(x, of_8) : SIMD_SET(x, of_4)))

/* x += 0, and of lanes of 2 bytes, float16 and bfloat16, what is like it: -0.0 becomes +0.0. */
#define simd_plus_zero(x, lane) \
    ((lane) == 2 ? SIMD_CLEAR(x) \
     : (void)((lane) == 4 ? SIMD_SET(x, SIMD_AS(float, x) + 0) : SIMD_SET(x, SIMD_AS(double, x) + 0)))
#define SIMD_CLEAR_ALL(x) \
    ((void)SIMD_SET(x, SIMD_AS(uint16_t, x) & ~(SIMD_TYPE(uint16_t, sizeof *(x)))(SIMD_AS(uint16_t, x) == 0x8000)))
#if SIMD_BYTES == 64
/* Of 64 bytes by the comparison's mask: lanes of ones would be made of it first. */
#define SIMD_CLEAR(x) (sizeof *(x) == 64 ? simd_clear_bytes(x, sizeof *(x)) : SIMD_CLEAR_ALL(x))

SIMD_INLINE void simd_clear_bytes(void *x, size_t bytes)
{
    const __m512i a = bytes == 64 ? _mm512_loadu_si512(x) : _mm512_set1_epi16(0);
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_maskz_mov_epi16(_mm512_cmpneq_epi16_mask(a, _mm512_set1_epi16(INT16_MIN)), a));
}
#else
#define SIMD_CLEAR(x) SIMD_CLEAR_ALL(x)
#endif

/* x = the lesser of a and b, of unsigned integers of 4 bytes. */
#define simd_least_4(x, a, b) simd_least(x, a, b, sizeof *(x))

SIMD_INLINE void simd_least(void *x, const void *a, const void *b, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_min_epu32(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x, _mm256_min_epu32(_mm256_loadu_si256((const __m256i *)a),
                                                           _mm256_loadu_si256((const __m256i *)b)));
#endif
    if (bytes == 16) {
        simd_lanes_of_4_16 c, d, less;
        memcpy(&c, a, 16);
        memcpy(&d, b, 16);
#if defined(__SSE4_1__)
        (void)less;
        c = (simd_lanes_of_4_16)_mm_min_epu32((__m128i)c, (__m128i)d);
#elif defined(__aarch64__)
        (void)less;
        c = (simd_lanes_of_4_16)vminq_u32((uint32x4_t)c, (uint32x4_t)d);
#else
        less = (simd_lanes_of_4_16)(c < d);
        c = (c & less) | (d & ~less);
#endif
        memcpy(x, &c, 16);
    }
}

/* x = a + number, of integers of 4 and of 8 bytes; a sum that they cannot hold loses its upper bits. */
#define simd_count(x, a, number, lane) \
    SIMD_EITHER(lane, x, SIMD_AS(uint32_t, a) + (uint32_t)(number), SIMD_AS(uint64_t, a) + (uint64_t)(number))

/* most, where = value, place in the lanes in which value is greater than most, or a NaN; of float32 and of float64, and
 * places as wide. Of signed integers gcc 12 makes instructions that choose lanes, of unsigned ones three for each. */
#define simd_take_greater(most, where, value, place, lane) \
    ((void)((lane) == 8 ? SIMD_TAKE(double, int64_t, most, where, value, place) \
            : SIMD_TAKE(float, int32_t, most, where, value, place)))
#define SIMD_TAKE(number, bits, most, where, value, place) \
    (SIMD_SET(where, SIMD_CHOOSE(bits, SIMD_TAKES(number, bits, most, value), place, where)), \
     SIMD_SET(most, SIMD_CHOOSE(bits, SIMD_TAKES(number, bits, most, value), value, most)))
#define SIMD_TAKES(number, bits, most, value) \
    (SIMD_TYPE(bits, sizeof *(most)))((SIMD_AS(number, value) > SIMD_AS(number, most)) | \
                                      (SIMD_AS(number, value) != SIMD_AS(number, value)))
#define SIMD_CHOOSE(bits, lanes, x, y) ((SIMD_AS(bits, x) & (lanes)) | (SIMD_AS(bits, y) & ~(lanes)))

/* words |= bit in the lanes of 2 bytes in which x is `value`. */
#define simd_mark_equal_2(words, x, value, bit) \
    SIMD_SET(words, SIMD_AS(uint16_t, words) | ((SIMD_TYPE(uint16_t, sizeof *(x)))( \
        SIMD_AS(uint16_t, x) == (uint16_t)(value)) & (uint16_t)(bit)))

/* What lies at `to` = the lower 2 or 4 bytes of each lane of 4 or 8. */
#define simd_cut(to, x, lane, lower) \
    ((lower) == (lane) ? simd_store(to, x) : (lower) == 4 ? SIMD_CUT(to, x, uint64_t, uint32_t, sizeof *(x) / 2) \
     : (lane) == 4 ? SIMD_CUT(to, x, uint32_t, uint16_t, sizeof *(x) / 2) \
                   : SIMD_CUT(to, x, uint64_t, uint16_t, sizeof *(x) / 4))
#define SIMD_CUT(to, x, wide, narrow, bytes) \
    ((void)memcpy(to, &(SIMD_TYPE(narrow, bytes)[1]){__builtin_convertvector(SIMD_AS(wide, x), SIMD_TYPE(narrow, bytes))}, \
                  bytes))

#include "simd_halves.h"
#include "simd_lanes.h"
#include "simd_order.h"
#include "simd_choose.h"
#include "simd_lookup.h"
#endif
