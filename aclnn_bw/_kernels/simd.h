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

/* Cells of memory that are moved, whatever they hold. */
typedef uint16_t __attribute__((may_alias)) simd_cell_2;
typedef uint32_t __attribute__((may_alias)) simd_cell_4;
typedef uint64_t __attribute__((may_alias)) simd_cell_8;

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

/* A vector's lanes, and a vector made of lanes. */
#define SIMD_TYPE(lane, bytes) lane __attribute__((vector_size(bytes)))
#define SIMD_AS(lane, x) ((SIMD_TYPE(lane, sizeof *(x)))*(x))
#define SIMD_SET(x, lanes) (*(x) = (__typeof__(*(x)))(lanes))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* x = what lies at `from`, as it is. */
#define simd_load(x, from) ((void)memcpy(x, from, sizeof *(x)))

/* What lies at `to` = x. */
#define simd_store(to, x) ((void)memcpy(to, x, sizeof *(x)))

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

/* sum = a + b, of float32 and of float64. */
#define simd_add_f32(sum, a, b) SIMD_SET(sum, SIMD_AS(float, a) + SIMD_AS(float, b))
#define simd_add_f64(sum, a, b) SIMD_SET(sum, SIMD_AS(double, a) + SIMD_AS(double, b))

/* x += 0: -0.0 becomes +0.0. */
#define simd_plus_zero_f32(x) SIMD_SET(x, SIMD_AS(float, x) + 0)
#define simd_plus_zero_f64(x) SIMD_SET(x, SIMD_AS(double, x) + 0)

/* -0.0 becomes +0.0 in float16 and bfloat16 as they are stored: 0x8000 becomes 0, every other value stays. */
#if SIMD_BYTES == 64
#define simd_plus_zero_bits(x) simd_clear_signs(x, sizeof *(x))

SIMD_INLINE void simd_clear_signs(void *x, size_t bytes)
{
    __m512i a = bytes == 64 ? _mm512_loadu_si512(x) : _mm512_setzero_si512();
    __m256i b = bytes == 32 ? _mm256_loadu_si256((const __m256i *)x) : _mm256_setzero_si256();
    __m128i c = bytes == 16 ? _mm_loadu_si128((const __m128i *)x) : _mm_setzero_si128();
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_maskz_mov_epi16(_mm512_cmpneq_epi16_mask(a, _mm512_set1_epi16(INT16_MIN)), a));
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x,
                            _mm256_maskz_mov_epi16(_mm256_cmpneq_epi16_mask(b, _mm256_set1_epi16(INT16_MIN)), b));
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)x, _mm_maskz_mov_epi16(_mm_cmpneq_epi16_mask(c, _mm_set1_epi16(INT16_MIN)), c));
}
#elif defined(__SSE2__) && !defined(__AVX__)
/* By an operand more, of which gcc 12 loads none twice. */
#define simd_plus_zero_bits(x) \
    SIMD_SET(x, SIMD_AS(uint16_t, x) ^ (SIMD_TYPE(uint16_t, sizeof *(x)))(SIMD_AS(uint16_t, x) == 0x8000) << 15)
#else
#define simd_plus_zero_bits(x) \
    SIMD_SET(x, SIMD_AS(uint16_t, x) & ~(SIMD_TYPE(uint16_t, sizeof *(x)))(SIMD_AS(uint16_t, x) == 0x8000))
#endif

/* ---- float16 and bfloat16 ---------------------------------------------------------------------------------------- */

/* x = float16 or bfloat16 at `from` as float32: half as many bytes are read as the vector has. Exact. */
#define simd_load_half(x, from) simd_load_halves(x, from, sizeof *(x))
#define simd_load_bfloat(x, from) simd_load_bfloats(x, from, sizeof *(x))

SIMD_INLINE void simd_load_halves(void *x, const void *from, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_storeu_ps(x, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)));
#endif
#if defined(__F16C__)
    if (bytes == 32)
        _mm256_storeu_ps((float *)x, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)));
    if (bytes == 16)
        _mm_storeu_ps((float *)x, _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)from)));
#elif defined(__aarch64__)
    float32x4_t wide = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)from)));
    memcpy(x, &wide, bytes);
#else
    /* aclnn_bw_widen_half, of four at once. */
    typedef uint32_t words __attribute__((vector_size(16)));
    typedef float floats __attribute__((vector_size(16)));
    const words least = {113u << 23, 113u << 23, 113u << 23, 113u << 23};
#if defined(__SSE2__)
    const words half = (words)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)from), _mm_setzero_si128());
#else
    const simd_cell_2 *bits = (const simd_cell_2 *)from;
    const words half = {bits[0], bits[1], bits[2], bits[3]};
#endif
    const words magnitude = (half & 0x7fff) << 13, exponent = magnitude & 0x0f800000;
    const words is_small = (words)(exponent == 0), is_special = (words)(exponent == 0x0f800000);
    const words normal = magnitude + (112u << 23) + (is_special & 112u << 23);
    const words subnormal = (words)((floats)(magnitude + least) - (floats)least);
    const words wide = (is_small & subnormal) | (~is_small & normal) | (half & 0x8000) << 16;
    memcpy(x, &wide, bytes);
#endif
}

SIMD_INLINE void simd_load_bfloats(void *x, const void *from, size_t bytes)
{
#if defined(__AVX512F__)
    if (bytes == 64)
        _mm512_storeu_si512(x, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from)), 16));
#endif
#if defined(__AVX2__)
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x,
                            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), 16));
#endif
#if defined(__SSE2__)
    if (bytes == 16)
        _mm_storeu_si128((__m128i *)x,
                         _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)from)));
#elif defined(__aarch64__)
    uint32x4_t wide = vshll_n_u16(vld1_u16((const uint16_t *)from), 16);
    memcpy(x, &wide, bytes);
#else
    float wide[4];
    for (int i = 0; i < 4; i++)
        wide[i] = aclnn_bw_widen_bfloat(((const aclnn_bw_bfloat *)from)[i]);
    memcpy(x, wide, bytes);
#endif
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* x = 16 bytes at `from`, and in a vector of 32 the 16 bytes at `other` behind them. */
#define simd_load_two(x, from, other) simd_load_pieces(x, from, other, sizeof *(x))

SIMD_INLINE void simd_load_pieces(void *x, const void *from, const void *other, size_t bytes)
{
#if defined(__AVX2__)
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x, _mm256_inserti128_si256(_mm256_castsi128_si256(
            _mm_loadu_si128((const __m128i *)from)), _mm_loadu_si128((const __m128i *)other), 1));
#endif
    if (bytes == 16)
        memcpy(x, from, 16);
    (void)other;
}

/* Lanes of two vectors of integers, by number: those of b follow those of a. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SIMD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SIMD_SHUFFLE
#define SIMD_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (__typeof__(a)){__VA_ARGS__})
#endif

/* c = cells of 2, 4 or 8 bytes of a and b in turn, from the lower (or upper) half of each 16 bytes of both; of vectors of
 * 16 and 32 bytes. */
#define simd_zip_low_2(c, a, b) simd_zip_2(c, a, b, sizeof *(c), 0)
#define simd_zip_high_2(c, a, b) simd_zip_2(c, a, b, sizeof *(c), 1)
#define simd_zip_low_4(c, a, b) simd_zip_4(c, a, b, sizeof *(c), 0)
#define simd_zip_high_4(c, a, b) simd_zip_4(c, a, b, sizeof *(c), 1)
#define simd_zip_low_8(c, a, b) simd_zip_8(c, a, b, sizeof *(c), 0)
#define simd_zip_high_8(c, a, b) simd_zip_8(c, a, b, sizeof *(c), 1)

#define SIMD_CELLS(lane, bytes, x) ((SIMD_TYPE(lane, bytes))*(const simd_vector_##bytes *)(x))
#define SIMD_ZIP(lane, bytes, ...) \
    SIMD_SET((simd_vector_##bytes *)c, SIMD_SHUFFLE(SIMD_CELLS(lane, bytes, a), SIMD_CELLS(lane, bytes, b), __VA_ARGS__))

SIMD_INLINE void simd_zip_2(void *c, const void *a, const void *b, size_t bytes, int high)
{
    if (bytes == 16 && !high)
        SIMD_ZIP(uint16_t, 16, 0, 8, 1, 9, 2, 10, 3, 11);
    if (bytes == 16 && high)
        SIMD_ZIP(uint16_t, 16, 4, 12, 5, 13, 6, 14, 7, 15);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint16_t, 32, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
    if (bytes == 32 && high)
        SIMD_ZIP(uint16_t, 32, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
#endif
}

SIMD_INLINE void simd_zip_4(void *c, const void *a, const void *b, size_t bytes, int high)
{
    if (bytes == 16 && !high)
        SIMD_ZIP(uint32_t, 16, 0, 4, 1, 5);
    if (bytes == 16 && high)
        SIMD_ZIP(uint32_t, 16, 2, 6, 3, 7);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint32_t, 32, 0, 8, 1, 9, 4, 12, 5, 13);
    if (bytes == 32 && high)
        SIMD_ZIP(uint32_t, 32, 2, 10, 3, 11, 6, 14, 7, 15);
#endif
}

SIMD_INLINE void simd_zip_8(void *c, const void *a, const void *b, size_t bytes, int high)
{
    if (bytes == 16 && !high)
        SIMD_ZIP(uint64_t, 16, 0, 2);
    if (bytes == 16 && high)
        SIMD_ZIP(uint64_t, 16, 1, 3);
#if SIMD_BYTES >= 32
    if (bytes == 32 && !high)
        SIMD_ZIP(uint64_t, 32, 0, 4, 2, 6);
    if (bytes == 32 && high)
        SIMD_ZIP(uint64_t, 32, 1, 5, 3, 7);
#endif
}

/* 48 bytes at `from`, cells of 2 or 4 bytes in turn, apart: of vectors of 16 bytes. */
SIMD_INLINE void simd_unzip_three_2(void *x, void *y, void *z, const void *from)
{
    typedef uint16_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, from, 16);
    memcpy(&b, (const char *)from + 16, 16);
    memcpy(&c, (const char *)from + 32, 16);
    first = SIMD_SHUFFLE(a, b, 0, 3, 6, 9, 12, 15, 0, 0);
    second = SIMD_SHUFFLE(a, b, 1, 4, 7, 10, 13, 0, 0, 0);
    third = SIMD_SHUFFLE(a, b, 2, 5, 8, 11, 14, 0, 0, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 2, 3, 4, 5, 10, 13);
    second = SIMD_SHUFFLE(second, c, 0, 1, 2, 3, 4, 8, 11, 14);
    third = SIMD_SHUFFLE(third, c, 0, 1, 2, 3, 4, 9, 12, 15);
    memcpy(x, &first, 16);
    memcpy(y, &second, 16);
    memcpy(z, &third, 16);
}

SIMD_INLINE void simd_unzip_three_4(void *x, void *y, void *z, const void *from)
{
    typedef uint32_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, from, 16);
    memcpy(&b, (const char *)from + 16, 16);
    memcpy(&c, (const char *)from + 32, 16);
    first = SIMD_SHUFFLE(a, b, 0, 3, 6, 0);
    second = SIMD_SHUFFLE(a, b, 1, 4, 7, 0);
    third = SIMD_SHUFFLE(a, b, 2, 5, 0, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 2, 5);
    second = SIMD_SHUFFLE(second, c, 0, 1, 2, 6);
    third = SIMD_SHUFFLE(third, c, 0, 1, 4, 7);
    memcpy(x, &first, 16);
    memcpy(y, &second, 16);
    memcpy(z, &third, 16);
}
#endif
