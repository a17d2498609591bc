/* Vectors whose lanes change places. A part of simd.h, which says what all primitives have in common. */
#ifndef ACLNN_BW_SIMD_ORDER_H
#define ACLNN_BW_SIMD_ORDER_H
/* x = 16 bytes at `from`, the next of a wider vector `apart` bytes on, and so on. */
#define simd_load_apart(x, from, apart) simd_load_pieces(x, (const char *)(from), apart, sizeof *(x))

SIMD_INLINE void simd_load_pieces(void *x, const char *from, int64_t apart, size_t bytes)
{
#if SIMD_BYTES >= 32
    const __m256i low = bytes == 16 ? _mm256_setzero_si256() : _mm256_inserti128_si256(_mm256_castsi128_si256(
        _mm_loadu_si128((const __m128i *)from)), _mm_loadu_si128((const __m128i *)(from + apart)), 1);
    if (bytes == 32)
        _mm256_storeu_si256((__m256i *)x, low);
#endif
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(
            (const __m128i *)(from + 2 * apart))), _mm_loadu_si128((const __m128i *)(from + 3 * apart)), 1);
        _mm512_storeu_si512(x, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
#endif
    if (bytes == 16)
        memcpy(x, from, 16);
    (void)apart;
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
 * 16, 32 and 64 bytes. */
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
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi16(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
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
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi32(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi32(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
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
#if SIMD_BYTES == 64
    if (bytes == 64 && !high)
        _mm512_storeu_si512(c, _mm512_unpacklo_epi64(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
    if (bytes == 64 && high)
        _mm512_storeu_si512(c, _mm512_unpackhi_epi64(_mm512_loadu_si512(a), _mm512_loadu_si512(b)));
#endif
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

/* low, high = the lanes of a and b in turn, of 2, 4 or 8 bytes: those of the lower halves of both, and of the upper; in place
 * too. */
#define simd_interleave_2(low, high, a, b) simd_interleave(low, high, a, b, 2, sizeof *(a))
#define simd_interleave_4(low, high, a, b) simd_interleave(low, high, a, b, 4, sizeof *(a))
#define simd_interleave_8(low, high, a, b) simd_interleave(low, high, a, b, 8, sizeof *(a))

SIMD_INLINE void simd_interleave(void *low, void *high, const void *a, const void *b, size_t lane, size_t bytes)
{
    simd_vector_16 c[2];
    (void)c;
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
        if (lane == 2) {
            const __m512i p = _mm512_unpacklo_epi16(x, y), q = _mm512_unpackhi_epi16(x, y);
            _mm512_storeu_si512(low, _mm512_permutex2var_epi64(p, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), q));
            _mm512_storeu_si512(high, _mm512_permutex2var_epi64(p, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), q));
        } else if (lane == 4) {
            const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            const __m512i last = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            _mm512_storeu_si512(low, _mm512_permutex2var_epi32(x, first, y));
            _mm512_storeu_si512(high, _mm512_permutex2var_epi32(x, last, y));
        } else {
            const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            const __m512i last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            _mm512_storeu_si512(low, _mm512_permutex2var_epi64(x, first, y));
            _mm512_storeu_si512(high, _mm512_permutex2var_epi64(x, last, y));
        }
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)a), y = _mm256_loadu_si256((const __m256i *)b);
        const __m256i p = lane == 2 ? _mm256_unpacklo_epi16(x, y) : lane == 4 ? _mm256_unpacklo_epi32(x, y)
                                                                              : _mm256_unpacklo_epi64(x, y);
        const __m256i q = lane == 2 ? _mm256_unpackhi_epi16(x, y) : lane == 4 ? _mm256_unpackhi_epi32(x, y)
                                                                              : _mm256_unpackhi_epi64(x, y);
        _mm256_storeu_si256((__m256i *)low, _mm256_inserti128_si256(p, _mm256_castsi256_si128(q), 1));
        _mm256_storeu_si256((__m256i *)high, _mm256_permute2x128_si256(p, q, 0x31));
    }
#endif
    if (bytes == 16) {
        if (lane == 2)
            simd_zip_2(&c[0], a, b, 16, 0), simd_zip_2(&c[1], a, b, 16, 1);
        else if (lane == 4)
            simd_zip_4(&c[0], a, b, 16, 0), simd_zip_4(&c[1], a, b, 16, 1);
        else
            simd_zip_8(&c[0], a, b, 16, 0), simd_zip_8(&c[1], a, b, 16, 1);
        memcpy(low, &c[0], 16);
        memcpy(high, &c[1], 16);
    }
}

/* even, odd = from[2i], from[2i+1]: cells of 4 or 8 bytes, or float16 widened. */
#define simd_load_in_turn_4(even, odd, from) simd_load_turns(even, odd, from, 4, sizeof *(even))
#define simd_load_in_turn_8(even, odd, from) simd_load_turns(even, odd, from, 8, sizeof *(even))
#define simd_load_halves_in_turn(even, odd, from) simd_load_both(even, odd, from, sizeof *(even))

SIMD_INLINE void simd_load_turns(void *even, void *odd, const void *from, size_t lane, size_t bytes)
{
    const char *at = (const char *)from;
#if SIMD_BYTES == 64
    if (bytes == 64 && lane == 4) {
        const __m512i first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i second = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512 a = _mm512_loadu_ps(at), b = _mm512_loadu_ps(at + 64);
        _mm512_storeu_ps(even, _mm512_permutex2var_ps(a, first, b));
        _mm512_storeu_ps(odd, _mm512_permutex2var_ps(a, second, b));
    }
    if (bytes == 64 && lane == 8) {
        const __m512i first = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        const __m512i second = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        const __m512d a = _mm512_loadu_pd(at), b = _mm512_loadu_pd(at + 64);
        _mm512_storeu_pd(even, _mm512_permutex2var_pd(a, first, b));
        _mm512_storeu_pd(odd, _mm512_permutex2var_pd(a, second, b));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        /* The first and third 16 bytes, and the second and fourth. */
        const __m256 a = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)at)),
                                              _mm_loadu_ps((const float *)(at + 32)), 1);
        const __m256 b = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)(at + 16))),
                                              _mm_loadu_ps((const float *)(at + 48)), 1);
        const __m256d c = _mm256_castps_pd(a), d = _mm256_castps_pd(b);
        if (lane == 4) {
            _mm256_storeu_ps((float *)even, _mm256_shuffle_ps(a, b, 0x88));
            _mm256_storeu_ps((float *)odd, _mm256_shuffle_ps(a, b, 0xdd));
        } else {
            _mm256_storeu_pd((double *)even, _mm256_unpacklo_pd(c, d));
            _mm256_storeu_pd((double *)odd, _mm256_unpackhi_pd(c, d));
        }
    }
#endif
    if (bytes == 16 && lane == 4) {
#if defined(__aarch64__)
        const uint32x4x2_t both = vld2q_u32((const uint32_t *)from);
        memcpy(even, &both.val[0], 16);
        memcpy(odd, &both.val[1], 16);
#else
        SIMD_TYPE(uint32_t, 16) a, b, c;
        memcpy(&a, at, 16);
        memcpy(&b, at + 16, 16);
        c = SIMD_SHUFFLE(a, b, 0, 2, 4, 6);
        memcpy(even, &c, 16);
        c = SIMD_SHUFFLE(a, b, 1, 3, 5, 7);
        memcpy(odd, &c, 16);
#endif
    }
    if (bytes == 16 && lane == 8) {
        simd_vector_16 a, b;
        memcpy(&a, at, 16);
        memcpy(&b, at + 16, 16);
        simd_zip_8(even, &a, &b, 16, 0);
        simd_zip_8(odd, &a, &b, 16, 1);
    }
}

SIMD_INLINE void simd_load_both(void *even, void *odd, const void *from, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i x = _mm512_loadu_si512(from);
        _mm512_storeu_ps(even, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)));
        _mm512_storeu_ps(odd, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16))));
    }
#endif
#if SIMD_BYTES >= 32
    const __m128i apart = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    if (bytes == 32) {
        const __m256i x = _mm256_permute4x64_epi64(
            _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)from), _mm256_broadcastsi128_si256(apart)), 0xd8);
        _mm256_storeu_ps((float *)even, _mm256_cvtph_ps(_mm256_castsi256_si128(x)));
        _mm256_storeu_ps((float *)odd, _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
    }
    if (bytes == 16) {
        const __m128i x = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), apart);
        _mm_storeu_ps((float *)even, _mm_cvtph_ps(x));
        _mm_storeu_ps((float *)odd, _mm_cvtph_ps(_mm_srli_si128(x, 8)));
    }
#elif defined(__aarch64__)
    const uint16x4x2_t both = vld2_u16((const uint16_t *)from);
    const float32x4_t a = vcvt_f32_f16(vreinterpret_f16_u16(both.val[0]));
    const float32x4_t b = vcvt_f32_f16(vreinterpret_f16_u16(both.val[1]));
    memcpy(even, &a, bytes);
    memcpy(odd, &b, bytes);
#else
    simd_vector_16 wide[2];
    simd_load_halves(&wide[0], from, bytes);
    simd_load_halves(&wide[1], (const char *)from + 8, bytes);
    simd_load_turns(even, odd, wide, 4, 16);
#endif
}

/* low, middle, high = each lane of a, of 4 or 8 bytes, three times; in place too. */
#define simd_triple_4(low, middle, high, a) simd_triple(low, middle, high, a, 4, sizeof *(a))
#define simd_triple_8(low, middle, high, a) simd_triple(low, middle, high, a, 8, sizeof *(a))

#define SIMD_PICK(c, lane, bytes, ...) \
    SIMD_SET((simd_vector_##bytes *)(c), SIMD_SHUFFLE(SIMD_CELLS(lane, bytes, &x), SIMD_CELLS(lane, bytes, &x), __VA_ARGS__))

SIMD_INLINE void simd_triple(void *low, void *middle, void *high, const void *a, size_t lane, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i x = _mm512_loadu_si512(a);
        const __m512i i = lane == 4 ? _mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5)
                                    : _mm512_setr_epi64(0, 0, 0, 1, 1, 1, 2, 2);
        const __m512i j = lane == 4 ? _mm512_setr_epi32(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10)
                                    : _mm512_setr_epi64(2, 3, 3, 3, 4, 4, 4, 5);
        const __m512i k = lane == 4 ? _mm512_setr_epi32(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15)
                                    : _mm512_setr_epi64(5, 5, 6, 6, 6, 7, 7, 7);
        _mm512_storeu_si512(low, lane == 4 ? _mm512_permutexvar_epi32(i, x) : _mm512_permutexvar_epi64(i, x));
        _mm512_storeu_si512(middle, lane == 4 ? _mm512_permutexvar_epi32(j, x) : _mm512_permutexvar_epi64(j, x));
        _mm512_storeu_si512(high, lane == 4 ? _mm512_permutexvar_epi32(k, x) : _mm512_permutexvar_epi64(k, x));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        const simd_vector_32 x = *(const simd_vector_32 *)a;
        if (lane == 4) {
            SIMD_PICK(low, uint32_t, 32, 0, 0, 0, 1, 1, 1, 2, 2);
            SIMD_PICK(middle, uint32_t, 32, 2, 3, 3, 3, 4, 4, 4, 5);
            SIMD_PICK(high, uint32_t, 32, 5, 5, 6, 6, 6, 7, 7, 7);
        }
        if (lane == 8) {
            SIMD_PICK(low, uint64_t, 32, 0, 0, 0, 1);
            SIMD_PICK(middle, uint64_t, 32, 1, 1, 2, 2);
            SIMD_PICK(high, uint64_t, 32, 2, 3, 3, 3);
        }
    }
#endif
    if (bytes == 16) {
        const simd_vector_16 x = *(const simd_vector_16 *)a;
        if (lane == 4) {
            SIMD_PICK(low, uint32_t, 16, 0, 0, 0, 1);
            SIMD_PICK(middle, uint32_t, 16, 1, 1, 2, 2);
            SIMD_PICK(high, uint32_t, 16, 2, 3, 3, 3);
        }
        if (lane == 8) {
            SIMD_PICK(low, uint64_t, 16, 0, 0);
            SIMD_PICK(middle, uint64_t, 16, 0, 1);
            SIMD_PICK(high, uint64_t, 16, 1, 1);
        }
    }
}

/* x = the lanes of 4 or 8 bytes from k on, 0 to 4, of a followed by b. */
#define simd_slide_4(x, a, b, k) simd_slide(x, a, b, 4, k, sizeof *(a))
#define simd_slide_8(x, a, b, k) simd_slide(x, a, b, 8, k, sizeof *(a))

SIMD_INLINE void simd_slide(void *x, const void *a, const void *b, size_t lane, int k, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i low = _mm512_loadu_si512(a), high = _mm512_loadu_si512(b);
        const __m512i count_4 = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i count_8 = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        if (lane == 4)
            _mm512_storeu_si512(x, _mm512_permutex2var_epi32(low, _mm512_add_epi32(count_4, _mm512_set1_epi32(k)), high));
        else
            _mm512_storeu_si512(x, _mm512_permutex2var_epi64(low, _mm512_add_epi64(count_8, _mm512_set1_epi64(k)), high));
        return;
    }
#endif
    char both[128];
    memcpy(both, a, bytes);
    memcpy(both + bytes, b, bytes);
    memcpy(x, both + (size_t)k * lane, bytes);
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

/* 48 bytes at `to` = the cells of x, y and z of 2, 4 or 8 bytes in turn: of vectors of 16 bytes. */
SIMD_INLINE void simd_zip_three_2(void *to, const void *x, const void *y, const void *z)
{
    typedef uint16_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 8, 0, 1, 9, 0, 2, 10);
    second = SIMD_SHUFFLE(a, b, 0, 3, 11, 0, 4, 12, 0, 5);
    third = SIMD_SHUFFLE(a, b, 13, 0, 6, 14, 0, 7, 15, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 8, 3, 4, 9, 6, 7);
    second = SIMD_SHUFFLE(second, c, 10, 1, 2, 11, 4, 5, 12, 7);
    third = SIMD_SHUFFLE(third, c, 0, 13, 2, 3, 14, 5, 6, 15);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}

SIMD_INLINE void simd_zip_three_4(void *to, const void *x, const void *y, const void *z)
{
    typedef uint32_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 4, 0, 1);
    second = SIMD_SHUFFLE(a, b, 5, 0, 2, 6);
    third = SIMD_SHUFFLE(a, b, 0, 3, 7, 0);
    first = SIMD_SHUFFLE(first, c, 0, 1, 4, 3);
    second = SIMD_SHUFFLE(second, c, 0, 5, 2, 3);
    third = SIMD_SHUFFLE(third, c, 6, 1, 2, 7);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}

SIMD_INLINE void simd_zip_three_8(void *to, const void *x, const void *y, const void *z)
{
    typedef uint64_t cells __attribute__((vector_size(16)));
    cells a, b, c, first, second, third;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    first = SIMD_SHUFFLE(a, b, 0, 2);
    second = SIMD_SHUFFLE(c, a, 0, 3);
    third = SIMD_SHUFFLE(b, c, 1, 3);
    memcpy(to, &first, 16);
    memcpy((char *)to + 16, &second, 16);
    memcpy((char *)to + 32, &third, 16);
}
#endif
