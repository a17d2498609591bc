/* Lanes that are looked up by number, and pairs that are added. A part of simd.h, which says what all primitives have
 * in common; these are of whole vectors. */
#ifndef ACLNN_BW_SIMD_LOOKUP_H
#define ACLNN_BW_SIMD_LOOKUP_H
typedef SIMD_TYPE(int8_t, 16) simd_signed;

/* Which lane goes where: by lanes, or, in vectors of 16 bytes, by bytes. What is negative as a signed number is no lane:
 * it becomes +0.0. Where SIMD_LOOKS_FAR is 1, a lookup in two vectors takes one instruction. */
#if SIMD_BYTES == 64
typedef struct {
    __m512i index;
    __mmask16 there;
} simd_places;
#define SIMD_LOOKS_FAR 1
#elif SIMD_BYTES == 32
typedef __m256i simd_places;
#define SIMD_LOOKS_FAR 0
#else
typedef simd_numbers simd_places;
#if defined(__aarch64__)
#define SIMD_LOOKS_FAR 1
#else
#define SIMD_LOOKS_FAR 0
#endif
#endif

/* Places in windows of some results, each window `step` results after the one before. Its lane l is that of term
 * k = `term` + l / results of result i = r + l % results, where r is the window's first one: of number first[i] + k,
 * lanes being numbered from first[r] + base on, or none if that is first[i + 1] or more. `first` are 17 bytes that ascend
 * from 0 to 64 at most. */
SIMD_INLINE void simd_find_places(simd_places *places, int windows, const void *numbers, int results, int step,
                                  int term, int base, size_t lane)
{
    const char *first = (const char *)numbers;
#if SIMD_BYTES == 64
    const int lanes = 64 / (int)lane;
    for (int w = 0; w < windows; w++) {
#define SIMD_RESULT(l) (uint8_t)(w * step + (l) % results)
#define SIMD_K(l) (uint8_t)((l) / results)
        const simd_numbers result = SIMD_16(SIMD_RESULT), k = SIMD_16(SIMD_K);
        const int at = results < lanes ? 0 : w * step, least = term - base - (w > 0 ? first[w * step] : 0);
        const __m128i *from = (const __m128i *)(first + at), *end = (const __m128i *)(first + at + 1);
        const int whole = results < lanes || lanes == 16;
        simd_numbers source = (simd_numbers)(whole ? _mm_loadu_si128(from) : _mm_loadl_epi64(from));
        simd_numbers next = (simd_numbers)(whole ? _mm_loadu_si128(end) : _mm_loadl_epi64(end));
        next -= source;
        if (results < lanes) {
            source = simd_shuffle_bytes(source, result) + k;
            next = simd_shuffle_bytes(next, result);
        }
        places[w].there = _mm_cmplt_epu8_mask((__m128i)(k + (uint8_t)term), (__m128i)next);
        places[w].index = lanes == 16
            ? _mm512_add_epi32(_mm512_cvtepu8_epi32((__m128i)source), _mm512_set1_epi32(least))
            : _mm512_add_epi64(_mm512_cvtepu8_epi64((__m128i)source), _mm512_set1_epi64(least));
    }
#else
    /* An index of `unit` bytes or words for each lane, those of two windows in 16 bytes with words. */
#if SIMD_BYTES == 32
    const int unit = (int)lane / 4, more = 8;
#else
    const int unit = (int)lane, more = 16;
#endif
#define SIMD_WINDOW(i) (uint8_t)((i) / step * step)
#define SIMD_RESULT(i) (uint8_t)((w + (i) / more) * step + (i) % more / unit % results)
#define SIMD_TERMS(i) (uint8_t)((i) % more / unit / results + term + 1)
#define SIMD_INDEX(i) (uint8_t)(((i) % more / unit / results + term - base) * unit + (i) % unit)
    const simd_numbers window = SIMD_16(SIMD_WINDOW);
    simd_numbers source, next;
    memcpy(&source, first, 16);
    memcpy(&next, first + 1, 16);
    next -= source;
    source = (source - simd_shuffle_bytes(source, window)) * (uint8_t)unit;
    for (int w = 0; w < windows; w += 16 / more) {
        const simd_numbers result = SIMD_16(SIMD_RESULT), terms = SIMD_16(SIMD_TERMS), index = SIMD_16(SIMD_INDEX);
        const simd_numbers number = (simd_shuffle_bytes(source, result) + index)
            | (simd_numbers)((simd_signed)terms > (simd_signed)simd_shuffle_bytes(next, result));
#if SIMD_BYTES == 32
        places[w] = _mm256_cvtepi8_epi32((__m128i)number);
        if (w + 1 < windows)
            places[w + 1] = _mm256_cvtepi8_epi32(_mm_srli_si128((__m128i)number, 8));
#else
        places[w] = number;
#endif
    }
#endif
#undef SIMD_WINDOW
#undef SIMD_RESULT
#undef SIMD_TERMS
#undef SIMD_INDEX
#undef SIMD_K
}

/* x = the lanes of a that `places` name, of 4 or 8 bytes. */
SIMD_INLINE void simd_lookup(simd_vector *x, const simd_vector *a, const simd_places *places, size_t lane)
{
#if SIMD_BYTES == 64
    if (lane == 4)
        *x = (simd_vector)_mm512_maskz_permutexvar_ps(places->there, places->index, (__m512)*a);
    else
        *x = (simd_vector)_mm512_maskz_permutexvar_pd((__mmask8)places->there, places->index, (__m512d)*a);
#elif SIMD_BYTES == 32
    const __m256 none = _mm256_castsi256_ps(_mm256_srai_epi32(*places, 31));
    *x = (simd_vector)_mm256_andnot_ps(none, _mm256_permutevar8x32_ps((__m256)*a, *places));
    (void)lane;
#elif defined(__SSSE3__)
    *x = (simd_vector)_mm_shuffle_epi8((__m128i)*a, (__m128i)*places);
    (void)lane;
#elif defined(__aarch64__)
    *x = (simd_vector)vqtbl1q_s8((int8x16_t)*a, (uint8x16_t)*places);
    (void)lane;
#else
    simd_numbers made = {0};
    for (size_t i = 0; i < 16; i += lane)
        if ((*places)[i] < 128)
            memcpy((char *)&made + i, (const char *)a + (*places)[i], lane);
    *x = (simd_vector)made;
#endif
}

/* x = the numbers of 2, 4 or 8 bytes at source[table[0]], source[table[1]], ...; the table ascends by less than there are
 * lanes, and a whole vector from the first on is read. */
SIMD_INLINE void simd_pick(simd_vector *x, const void *source, const int32_t *table, size_t lane)
{
#if defined(__GNUC__) && !defined(__clang__)
    typedef SIMD_TYPE(int32_t, SIMD_BYTES) whole;
    typedef SIMD_TYPE(int32_t, SIMD_BYTES / 2) few;
    const char *first = (const char *)source + (int64_t)table[0] * (int64_t)lane;
    memcpy(x, first, sizeof *x);
    if (lane == 4) {
        whole places;
        memcpy(&places, table, sizeof places);
        *x = (simd_vector)__builtin_shuffle((whole)*x, places - table[0]);
    } else if (lane == 8) {
        typedef SIMD_TYPE(int64_t, SIMD_BYTES) wide;
        few places;
        memcpy(&places, table, sizeof places);
        *x = (simd_vector)__builtin_shuffle((wide)*x, __builtin_convertvector(places - table[0], wide));
    } else {
        /* The lower halves of both: of parts that are stored the processor waits for the whole. */
        typedef SIMD_TYPE(int16_t, SIMD_BYTES) narrow;
        const narrow even = {
            0, 2, 4, 6, 8, 10, 12, 14,
#if SIMD_BYTES >= 32
            16, 18, 20, 22, 24, 26, 28, 30,
#endif
#if SIMD_BYTES == 64
            32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62,
#endif
        };
        whole low, high;
        memcpy(&low, table, sizeof low);
        memcpy(&high, table + SIMD_BYTES / 4, sizeof high);
        const narrow places = __builtin_shuffle((narrow)(low - table[0]), (narrow)(high - table[0]), even);
        *x = (simd_vector)__builtin_shuffle((narrow)*x, places);
    }
#else
    for (size_t i = 0; i < sizeof *x; i += lane)
        memcpy((char *)x + i, (const char *)source + (int64_t)table[i / lane] * (int64_t)lane, lane);
#endif
}

/* x = the lanes of a and, numbered on, of b that `places` name. */
SIMD_INLINE void simd_lookup_two(simd_vector *x, const simd_vector *a, const simd_vector *b, const simd_places *places,
                                 size_t lane)
{
#if SIMD_BYTES == 64
    if (lane == 4)
        *x = (simd_vector)_mm512_maskz_permutex2var_ps(places->there, (__m512)*a, places->index, (__m512)*b);
    else
        *x = (simd_vector)_mm512_maskz_permutex2var_pd((__mmask8)places->there, (__m512d)*a, places->index,
                                                       (__m512d)*b);
#elif SIMD_BYTES == 16 && defined(__aarch64__)
    const int8x16x2_t both = {{(int8x16_t)*a, (int8x16_t)*b}};
    *x = (simd_vector)vqtbl2q_s8(both, (uint8x16_t)*places);
    (void)lane;
#else
    simd_vector low, high;
    simd_lookup(&low, a, places, lane);
    simd_lookup(&high, b, places, lane);
#if SIMD_BYTES == 32
    /* The permutation takes the lower bits of a number. */
    *x = (simd_vector)_mm256_blendv_ps((__m256)low, (__m256)high, _mm256_castsi256_ps(_mm256_slli_epi32(*places, 28)));
#else
    const simd_numbers upper = (simd_numbers)((simd_signed)*places > 15), rest = *places - 16;
    simd_lookup(&high, b, &rest, lane);
    *x = (simd_vector)(((simd_numbers)low & ~upper) | ((simd_numbers)high & upper));
#endif
#endif
}

/* The same of two vectors of 4 bytes that bfloat16 at `from` become: one vector of them is read. */
SIMD_INLINE void simd_lookup_bfloats(simd_vector *x, const void *from, const simd_places *places)
{
#if SIMD_BYTES == 64
    /* The upper word of each lane is the first number, which is shifted out. */
    const __m512i words = _mm512_permutexvar_epi16(places->index, _mm512_loadu_si512(from));
    *x = (simd_vector)_mm512_maskz_slli_epi32(places->there, words, 16);
#else
    simd_vector a, b;
    simd_load_bfloat(&a, from);
    simd_load_bfloat(&b, (const char *)from + sizeof a / 2);
    simd_lookup_two(x, &a, &b, places, 4);
#endif
}

/* x begins with the 16 bytes of a that have this number; what follows may be anything. */
SIMD_INLINE void simd_block(simd_vector *x, const simd_vector *a, int number)
{
#if SIMD_BYTES == 64
    const __m512 all = (__m512)*a;
    *x = number == 0 ? *a : (simd_vector)_mm512_castps128_ps512(
        number == 1 ? _mm512_extractf32x4_ps(all, 1) : number == 2 ? _mm512_extractf32x4_ps(all, 2)
                                                                   : _mm512_extractf32x4_ps(all, 3));
#elif SIMD_BYTES == 32
    *x = number == 0 ? *a : (simd_vector)_mm256_permute2f128_ps((__m256)*a, (__m256)*a, 0x11);
#else
    (void)number;
    *x = *a;
#endif
}

/* low, high = the lower halves of a and b, and the upper halves; in place too. */
SIMD_INLINE void simd_join(simd_vector *low, simd_vector *high, const simd_vector *a, const simd_vector *b)
{
#if SIMD_BYTES == 64
    const __m512i first = _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11), x = (__m512i)*a, y = (__m512i)*b;
    *low = (simd_vector)_mm512_permutex2var_epi64(x, first, y);
    *high = (simd_vector)_mm512_permutex2var_epi64(x, _mm512_add_epi64(first, _mm512_set1_epi64(4)), y);
#elif SIMD_BYTES == 32
    const __m256 x = (__m256)*a, y = (__m256)*b;
    *low = (simd_vector)_mm256_permute2f128_ps(x, y, 0x20);
    *high = (simd_vector)_mm256_permute2f128_ps(x, y, 0x31);
#else
    const SIMD_TYPE(uint64_t, 16) x = SIMD_AS(uint64_t, a), y = SIMD_AS(uint64_t, b);
    *low = (simd_vector)SIMD_SHUFFLE(x, y, 0, 2);
    *high = (simd_vector)SIMD_SHUFFLE(x, y, 1, 3);
#endif
}

/* The lanes 2i and 2i+1 of a, followed by b, of float32 or float64, added into lane i of the sum. */
SIMD_INLINE void simd_add_pairs(simd_vector *sum, const simd_vector *a, const simd_vector *b, size_t lane)
{
#if defined(__aarch64__)
    *sum = lane == 4 ? (simd_vector)vpaddq_f32((float32x4_t)*a, (float32x4_t)*b)
                     : (simd_vector)vpaddq_f64((float64x2_t)*a, (float64x2_t)*b);
#else
    simd_vector even, odd;
#if SIMD_BYTES == 32
    const __m256 x = (__m256)*a, y = (__m256)*b;
    even = (simd_vector)(lane == 4 ? _mm256_shuffle_ps(x, y, 0x88) : _mm256_shuffle_ps(x, y, 0x44));
    odd = (simd_vector)(lane == 4 ? _mm256_shuffle_ps(x, y, 0xdd) : _mm256_shuffle_ps(x, y, 0xee));
    simd_add(&even, &even, &odd, lane);
    *sum = (simd_vector)_mm256_permute4x64_epi64((__m256i)even, 0xd8);
#else
    const simd_vector both[2] = {*a, *b};
    simd_load_in_turn(&even, &odd, both, lane);
    simd_add(sum, &even, &odd, lane);
#endif
#endif
}
#endif
