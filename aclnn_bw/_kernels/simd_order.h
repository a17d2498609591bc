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

/* The mirror image: 16 bytes of x to `to`, the next of a wider vector `apart` bytes on, and so on. */
#define simd_store_apart(to, apart, x) simd_store_pieces((char *)(to), apart, x, sizeof *(x))

SIMD_INLINE void simd_store_pieces(char *to, int64_t apart, const void *x, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512 all = _mm512_loadu_ps(x);
        _mm_storeu_ps((float *)to, _mm512_extractf32x4_ps(all, 0));
        _mm_storeu_ps((float *)(to + apart), _mm512_extractf32x4_ps(all, 1));
        _mm_storeu_ps((float *)(to + 2 * apart), _mm512_extractf32x4_ps(all, 2));
        _mm_storeu_ps((float *)(to + 3 * apart), _mm512_extractf32x4_ps(all, 3));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        const __m256i both = _mm256_loadu_si256(x);
        _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(both));
        _mm_storeu_si128((__m128i *)(to + apart), _mm256_extracti128_si256(both, 1));
    }
#endif
    if (bytes == 16)
        memcpy(to, x, 16);
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

/* Sixteen bytes, without a sign so that sums of those which nobody uses may wrap, and a list of what a macro makes of 0,
 * 1, 2, ... */
typedef SIMD_TYPE(uint8_t, 16) simd_numbers;
#define SIMD_16(of) {of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), \
                     of(8), of(9), of(10), of(11), of(12), of(13), of(14), of(15)}

/* x[i] = bytes[order[i]], or 0 where that is over 127. */
SIMD_INLINE simd_numbers simd_shuffle_bytes(simd_numbers bytes, simd_numbers order)
{
#if defined(__SSSE3__)
    return (simd_numbers)_mm_shuffle_epi8((__m128i)bytes, (__m128i)order);
#elif defined(__aarch64__)
    return (simd_numbers)vqtbl1q_u8((uint8x16_t)bytes, (uint8x16_t)order);
#else
    simd_numbers x;
    for (int i = 0; i < 16; i++)
        x[i] = order[i] > 127 ? 0 : bytes[order[i]];
    return x;
#endif
}

/* c = cells of 2, 4 or 8 bytes of a and b in turn, from the lower (or upper) half of each 16 bytes of both; of vectors of
 * 16, 32 and 64 bytes. */
#define simd_zip_low(c, a, b, cell) simd_zip(c, a, b, cell, 0, sizeof *(c))
#define simd_zip_high(c, a, b, cell) simd_zip(c, a, b, cell, 1, sizeof *(c))

SIMD_INLINE void simd_zip(void *c, const void *a, const void *b, size_t cell, int high, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
        _mm512_storeu_si512(c, cell == 2 ? high ? _mm512_unpackhi_epi16(x, y) : _mm512_unpacklo_epi16(x, y)
                               : cell == 4 ? high ? _mm512_unpackhi_epi32(x, y) : _mm512_unpacklo_epi32(x, y)
                               : high ? _mm512_unpackhi_epi64(x, y) : _mm512_unpacklo_epi64(x, y));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)a), y = _mm256_loadu_si256((const __m256i *)b);
        _mm256_storeu_si256((__m256i *)c, cell == 2 ? high ? _mm256_unpackhi_epi16(x, y) : _mm256_unpacklo_epi16(x, y)
                                          : cell == 4 ? high ? _mm256_unpackhi_epi32(x, y) : _mm256_unpacklo_epi32(x, y)
                                          : high ? _mm256_unpackhi_epi64(x, y) : _mm256_unpacklo_epi64(x, y));
    }
#endif
    if (bytes == 16) {
        SIMD_TYPE(uint16_t, 16) x, y;
        memcpy(&x, a, 16);
        memcpy(&y, b, 16);
        if (cell == 2)
            x = high ? SIMD_SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15) : SIMD_SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
        else if (cell == 4)
            x = high ? SIMD_SHUFFLE(x, y, 4, 5, 12, 13, 6, 7, 14, 15) : SIMD_SHUFFLE(x, y, 0, 1, 8, 9, 2, 3, 10, 11);
        else
            x = high ? SIMD_SHUFFLE(x, y, 4, 5, 6, 7, 12, 13, 14, 15) : SIMD_SHUFFLE(x, y, 0, 1, 2, 3, 8, 9, 10, 11);
        memcpy(c, &x, 16);
    }
}

/* low, high = the cells of a and b in turn, of 2, 4 or 8 bytes: those of the lower halves of both, and of the upper; in
 * place too. */
#define simd_interleave(low, high, a, b, cell) simd_interleave_bytes(low, high, a, b, cell, sizeof *(a))

SIMD_INLINE void simd_interleave_bytes(void *low, void *high, const void *a, const void *b, size_t cell, size_t bytes)
{
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        const __m512i last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        __m512i x, y;
        simd_zip_low(&x, a, b, cell);
        simd_zip_high(&y, a, b, cell);
        _mm512_storeu_si512(low, _mm512_permutex2var_epi64(x, first, y));
        _mm512_storeu_si512(high, _mm512_permutex2var_epi64(x, last, y));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        __m256i x, y;
        simd_zip_low(&x, a, b, cell);
        simd_zip_high(&y, a, b, cell);
        _mm256_storeu_si256((__m256i *)low, _mm256_inserti128_si256(x, _mm256_castsi256_si128(y), 1));
        _mm256_storeu_si256((__m256i *)high, _mm256_permute2x128_si256(x, y, 0x31));
    }
#endif
    if (bytes == 16) {
        simd_vector_16 x, y;
        simd_zip_low(&x, a, b, cell);
        simd_zip_high(&y, a, b, cell);
        memcpy(low, &x, 16);
        memcpy(high, &y, 16);
    }
}

/* even, odd = from[2i], from[2i+1]: cells of 4 or 8 bytes, or float16 widened. */
#define simd_load_in_turn(even, odd, from, cell) simd_load_turns(even, odd, from, cell, sizeof *(even))
#define simd_load_halves_in_turn(even, odd, from) simd_load_both(even, odd, from, sizeof *(even))

SIMD_INLINE void simd_load_turns(void *even, void *odd, const void *from, size_t cell, size_t bytes)
{
    const char *at = (const char *)from;
#if SIMD_BYTES == 64
    if (bytes == 64) {
        const __m512i four = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i eight = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), one = _mm512_set1_epi64(1);
        const __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
        _mm512_storeu_si512(even, cell == 4 ? _mm512_permutex2var_epi32(a, four, b)
                                            : _mm512_permutex2var_epi64(a, eight, b));
        _mm512_storeu_si512(odd, cell == 4 ? _mm512_permutex2var_epi32(a, _mm512_add_epi32(four, _mm512_set1_epi32(1)), b)
                                           : _mm512_permutex2var_epi64(a, _mm512_add_epi64(eight, one), b));
    }
#endif
#if SIMD_BYTES >= 32
    if (bytes == 32) {
        /* The first and third 16 bytes, and the second and fourth. */
        const __m256 a = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)at)),
                                              _mm_loadu_ps((const float *)(at + 32)), 1);
        const __m256 b = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps((const float *)(at + 16))),
                                              _mm_loadu_ps((const float *)(at + 48)), 1);
        _mm256_storeu_ps((float *)even, cell == 4 ? _mm256_shuffle_ps(a, b, 0x88) : _mm256_shuffle_ps(a, b, 0x44));
        _mm256_storeu_ps((float *)odd, cell == 4 ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0xee));
    }
#endif
    if (bytes == 16) {
#if defined(__aarch64__)
        const uint32x4x2_t both = vld2q_u32((const uint32_t *)from);
        if (cell == 4) {
            memcpy(even, &both.val[0], 16);
            memcpy(odd, &both.val[1], 16);
            return;
        }
#endif
        SIMD_TYPE(uint32_t, 16) a, b, c;
        memcpy(&a, at, 16);
        memcpy(&b, at + 16, 16);
        c = cell == 4 ? SIMD_SHUFFLE(a, b, 0, 2, 4, 6) : SIMD_SHUFFLE(a, b, 0, 1, 4, 5);
        memcpy(even, &c, 16);
        c = cell == 4 ? SIMD_SHUFFLE(a, b, 1, 3, 5, 7) : SIMD_SHUFFLE(a, b, 2, 3, 6, 7);
        memcpy(odd, &c, 16);
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
#define simd_triple(low, middle, high, a, lane) simd_triple_bytes(low, middle, high, a, lane, sizeof *(a))

#define SIMD_CELLS(lane, bytes, x) ((SIMD_TYPE(lane, bytes))*(const simd_vector_##bytes *)(x))
#define SIMD_PICK(c, lane, bytes, ...) \
    SIMD_SET((simd_vector_##bytes *)(c), SIMD_SHUFFLE(SIMD_CELLS(lane, bytes, &x), SIMD_CELLS(lane, bytes, &x), __VA_ARGS__))

SIMD_INLINE void simd_triple_bytes(void *low, void *middle, void *high, const void *a, size_t lane, size_t bytes)
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
#define simd_slide(x, a, b, k, lane) simd_slide_bytes(x, a, b, k, lane, sizeof *(a))

SIMD_INLINE void simd_slide_bytes(void *x, const void *a, const void *b, int k, size_t lane, size_t bytes)
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

/* Where byte l of 16 comes from: of part `part` of three vectors' cells in turn, or of the cells of vector `part` of them;
 * the byte of the vector, or the 16, that have number `of`, or -1. */
#define SIMD_ZIPPED(l, of) \
    (uint8_t)(((l) + 16 * part) / cell % 3 == of ? ((l) + 16 * part) / cell / 3 * cell + (l) % cell : -1)
#define SIMD_SPREAD(l) (((l) / cell * 3 + part) * cell + (l) % cell)
#define SIMD_APART(l, of) (uint8_t)(SIMD_SPREAD(l) / 16 == of ? SIMD_SPREAD(l) % 16 : -1)
#define SIMD_ZIPPED_0(l) SIMD_ZIPPED(l, 0)
#define SIMD_ZIPPED_1(l) SIMD_ZIPPED(l, 1)
#define SIMD_ZIPPED_2(l) SIMD_ZIPPED(l, 2)
#define SIMD_APART_0(l) SIMD_APART(l, 0)
#define SIMD_APART_1(l) SIMD_APART(l, 1)
#define SIMD_APART_2(l) SIMD_APART(l, 2)

SIMD_INLINE void simd_take_bytes(void *to, const void *x, const void *y, const void *z, int cell, int part, int zips)
{
    const simd_numbers zipped[3] = {SIMD_16(SIMD_ZIPPED_0), SIMD_16(SIMD_ZIPPED_1), SIMD_16(SIMD_ZIPPED_2)};
    const simd_numbers apart[3] = {SIMD_16(SIMD_APART_0), SIMD_16(SIMD_APART_1), SIMD_16(SIMD_APART_2)};
    simd_numbers a, b, c;
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    a = simd_shuffle_bytes(a, zips ? zipped[0] : apart[0]) | simd_shuffle_bytes(b, zips ? zipped[1] : apart[1])
        | simd_shuffle_bytes(c, zips ? zipped[2] : apart[2]);
    memcpy(to, &a, 16);
}

/* A list of what a macro makes of l, l + 1, ..., and of n, the lanes of a vector, and k. */
#define SIMD_LIST_2(of, l, n, k) of(l, n, k), of(l + 1, n, k)
#define SIMD_LIST_4(of, l, n, k) SIMD_LIST_2(of, l, n, k), SIMD_LIST_2(of, l + 2, n, k)
#define SIMD_LIST_8(of, l, n, k) SIMD_LIST_4(of, l, n, k), SIMD_LIST_4(of, l + 4, n, k)
#define SIMD_LIST_16(of, l, n, k) SIMD_LIST_8(of, l, n, k), SIMD_LIST_8(of, l + 8, n, k)
#define SIMD_LIST_32(of, l, n, k) SIMD_LIST_16(of, l, n, k), SIMD_LIST_16(of, l + 16, n, k)

/* even, odd = every other cell of 2, 4 or 8 bytes of a and b, from the first and from the second on; in place too. */
#define simd_part(even, odd, a, b, cell) \
    ((cell) == 2 ? simd_part_2(even, odd, a, b, sizeof *(a)) : (cell) == 4 ? simd_part_4(even, odd, a, b, sizeof *(a)) \
     : simd_part_8(even, odd, a, b, sizeof *(a)))
#define SIMD_EVERY_OTHER(l, n, k) (2 * (l) + (k))
#define SIMD_PART(bits, n) \
    if (bytes == sizeof(bits) * n) { \
        SIMD_TYPE(bits, sizeof(bits) * n) x, y, z; \
        memcpy(&x, a, sizeof x); \
        memcpy(&y, b, sizeof x); \
        z = SIMD_SHUFFLE(x, y, SIMD_LIST_##n(SIMD_EVERY_OTHER, 0, n, 0)); \
        y = SIMD_SHUFFLE(x, y, SIMD_LIST_##n(SIMD_EVERY_OTHER, 0, n, 1)); \
        memcpy(even, &z, sizeof x); \
        memcpy(odd, &y, sizeof x); \
    }
#define SIMD_PARTS(cell, bits, n_64, n_32, n_16) \
    SIMD_INLINE void simd_part_##cell(void *even, void *odd, const void *a, const void *b, size_t bytes) \
    { \
        SIMD_PART(bits, n_64) SIMD_PART(bits, n_32) SIMD_PART(bits, n_16) \
    }
SIMD_PARTS(2, uint16_t, 32, 16, 8)
SIMD_PARTS(4, uint32_t, 16, 8, 4)
SIMD_PARTS(8, uint64_t, 8, 4, 2)

/* Of three vectors of n = 4, 8, 16 or 32 lanes. Cell i of the k-th of three in turn lies in lane (3*i + k) % n, no two of
 * them in the same, whichever of the vectors that is: a choice for each lane and one change of places do, a fifth to half
 * of the time of 16 bytes each. */
#define SIMD_TURN(l, n, k) ((3 * (l) + (k)) % (n))
#define SIMD_RETURN(l, n, k) (((l) + (n) - (k)) * 11 % (n)) /* 11 * 3 % n = 1 */
#define SIMD_HAS(l, n, k) ((3 * (n) + (k) - (l)) * (n) % 3) /* the vector whose lane l is of the k-th; */
#define SIMD_OF(l, n, k) (((n) * (k) + (l)) % 3)            /* whose cell lies in lane l of the k-th */
#define SIMD_HAS_TWO(l, n, k) ((l) + (n) * (SIMD_HAS(l, n, k) == 1))
#define SIMD_HAS_THREE(l, n, k) ((l) + (n) * (SIMD_HAS(l, n, k) == 2))
#define SIMD_OF_TWO(l, n, k) ((l) + (n) * (SIMD_OF(l, n, k) == 1))
#define SIMD_OF_THREE(l, n, k) ((l) + (n) * (SIMD_OF(l, n, k) == 2))
#define SIMD_ORDER(order, n, k, x) SIMD_SHUFFLE(x, x, SIMD_LIST_##n(order, 0, n, k))
#define SIMD_FROM_THREE(of, n, k) \
    SIMD_SHUFFLE(SIMD_SHUFFLE(a, b, SIMD_LIST_##n(of##_TWO, 0, n, k)), c, SIMD_LIST_##n(of##_THREE, 0, n, k))
#define SIMD_THREE(bits, n) \
    if (bytes == sizeof(bits) * n) { \
        SIMD_TYPE(bits, sizeof(bits) * n) a, b, c, d, e, f; \
        memcpy(&a, x, sizeof a); \
        memcpy(&b, y, sizeof a); \
        memcpy(&c, z, sizeof a); \
        if (zips) { \
            a = SIMD_ORDER(SIMD_RETURN, n, 0, a), b = SIMD_ORDER(SIMD_RETURN, n, 1, b); \
            c = SIMD_ORDER(SIMD_RETURN, n, 2, c); \
            d = SIMD_FROM_THREE(SIMD_OF, n, 0), e = SIMD_FROM_THREE(SIMD_OF, n, 1), f = SIMD_FROM_THREE(SIMD_OF, n, 2); \
        } else { \
            d = SIMD_FROM_THREE(SIMD_HAS, n, 0), e = SIMD_FROM_THREE(SIMD_HAS, n, 1), f = SIMD_FROM_THREE(SIMD_HAS, n, 2); \
            d = SIMD_ORDER(SIMD_TURN, n, 0, d), e = SIMD_ORDER(SIMD_TURN, n, 1, e), f = SIMD_ORDER(SIMD_TURN, n, 2, f); \
        } \
        memcpy(to_x, &d, sizeof a); \
        memcpy(to_y, &e, sizeof a); \
        memcpy(to_z, &f, sizeof a); \
    }

SIMD_INLINE void simd_turn_three(void *to_x, void *to_y, void *to_z, const void *x, const void *y, const void *z, int cell,
                                 int zips, size_t bytes)
{
    if (cell == 2) {
        SIMD_THREE(uint16_t, 32) SIMD_THREE(uint16_t, 16)
    } else if (cell == 4) {
        SIMD_THREE(uint32_t, 16) SIMD_THREE(uint32_t, 8)
    } else {
        SIMD_THREE(uint64_t, 8) SIMD_THREE(uint64_t, 4)
    }
}

/* What lies at `to` = the cells of x, y and z in turn, of 2, 4 or 8 bytes. */
#define simd_zip_three(to, x, y, z, cell) simd_zip_bytes(to, x, y, z, cell, sizeof *(x))

SIMD_INLINE void simd_zip_bytes(void *to, const void *x, const void *y, const void *z, int cell, size_t bytes)
{
    if (bytes > 16) {
        simd_turn_three(to, (char *)to + bytes, (char *)to + 2 * bytes, x, y, z, cell, 1, bytes);
        return;
    }
    SIMD_TYPE(uint32_t, 16) a, b, c, both[3];
    memcpy(&a, x, 16);
    memcpy(&b, y, 16);
    memcpy(&c, z, 16);
    if (cell == 4) {
        both[0] = SIMD_SHUFFLE(SIMD_SHUFFLE(a, b, 0, 4, 0, 1), c, 0, 1, 4, 3);
        both[1] = SIMD_SHUFFLE(SIMD_SHUFFLE(a, b, 5, 0, 2, 6), c, 0, 5, 2, 3);
        both[2] = SIMD_SHUFFLE(SIMD_SHUFFLE(a, b, 0, 3, 7, 0), c, 6, 1, 2, 7);
    } else if (cell == 8) {
        both[0] = SIMD_SHUFFLE(a, b, 0, 1, 4, 5);
        both[1] = SIMD_SHUFFLE(c, a, 0, 1, 6, 7);
        both[2] = SIMD_SHUFFLE(b, c, 2, 3, 6, 7);
    } else {
        simd_take_bytes(&both[0], x, y, z, 2, 0, 1);
        simd_take_bytes(&both[1], x, y, z, 2, 1, 1);
        simd_take_bytes(&both[2], x, y, z, 2, 2, 1);
    }
    /* One by one: of all 48 bytes gcc makes 32 and 16, read from stores of 16 that have not yet ended. */
    memcpy(to, &both[0], 16);
    memcpy((char *)to + 16, &both[1], 16);
    memcpy((char *)to + 32, &both[2], 16);
}

/* x, y, z = the cells at `from`, of 2, 4 or 8 bytes, which lie in turn. */
#define simd_unzip_three(x, y, z, from, cell) simd_unzip_bytes(x, y, z, (const char *)(from), cell, sizeof *(x))

SIMD_INLINE void simd_unzip_bytes(void *x, void *y, void *z, const char *from, int cell, size_t bytes)
{
    const char *y_at = from + bytes, *z_at = from + 2 * bytes;
    if (bytes > 16) {
        simd_turn_three(x, y, z, from, y_at, z_at, cell, 0, bytes);
        return;
    }
    simd_take_bytes(x, from, y_at, z_at, cell, 0, 0);
    simd_take_bytes(y, from, y_at, z_at, cell, 1, 0);
    simd_take_bytes(z, from, y_at, z_at, cell, 2, 0);
}
#endif
