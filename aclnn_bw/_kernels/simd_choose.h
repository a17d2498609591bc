/* Numbers that a mask chooses, by a bit of its words or by its indices. A part of simd.h, which says what all
 * primitives have in common; these are for simd_vector alone.
 *
 * A vector of sums asks one word or one int32 index for each of its lanes, of 4 or 8 bytes. Words and indices lie in
 * their vectors as the tests of the instruction set want them: with AVX-512 as in memory, else widened to the lanes.
 */
#ifndef ACLNN_BW_SIMD_CHOOSE_H
#define ACLNN_BW_SIMD_CHOOSE_H

/* Whether 16-bit numbers are best chosen as they lie in memory; else they are widened before. With AVX2 a load under a
 * mask chooses float32 by itself. */
#if SIMD_BYTES == 64 || defined(__aarch64__)
#define SIMD_CHOOSES_HALVES 1
#else
#define SIMD_CHOOSES_HALVES 0
#endif

/* asked = the bit (1 << number) of words, beside lanes of 4 or 8 bytes: with AVX2, by how much words are shifted when
 * they are loaded, so that it is their sign. */
SIMD_INLINE void simd_ask(simd_vector *asked, int number, int lane)
{
#if SIMD_BYTES == 64
    (void)lane;
    *asked = (simd_vector)_mm512_set1_epi16((short)(1 << number));
#elif SIMD_BYTES == 32
    *asked = (simd_vector)_mm256_castsi128_si256(_mm_cvtsi32_si128(8 * lane - 1 - number));
#else
    *asked = lane == 4 ? (simd_vector)((SIMD_TYPE(uint32_t, 16)){0} + (1u << number))
                       : (simd_vector)((SIMD_TYPE(uint64_t, 16)){0} + ((uint64_t)1 << number));
#endif
}

/* words = as many mask words at `from` as there are lanes, to be asked for that bit, or for lower ones. */
SIMD_INLINE void simd_load_words(simd_vector *words, const void *from, const simd_vector *asked, int lane)
{
    (void)asked;
#if SIMD_BYTES == 64
    if (lane == 4)
        *words = (simd_vector)_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)from));
    else
        *words = (simd_vector)_mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)from));
#elif SIMD_BYTES == 32
    const __m128i up = _mm256_castsi256_si128((__m256i)*asked);
    if (lane == 4)
        *words = (simd_vector)_mm256_sll_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), up);
    else
        *words = (simd_vector)_mm256_sll_epi64(_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)from)), up);
#else
    SIMD_TYPE(uint16_t, 8) few;
    uint16_t two[2];
    memcpy(lane == 4 ? (void *)&few : two, from, lane == 4 ? 8 : 4);
    if (lane == 8)
        *words = (simd_vector)(SIMD_TYPE(uint64_t, 16)){two[0], two[1]};
    else
#if defined(__SSE4_1__)
        *words = (simd_vector)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)from));
#else
        *words = (simd_vector)__builtin_convertvector(few, SIMD_TYPE(uint32_t, 16));
#endif
#endif
}

/* The words of other lanes have no bits. */
SIMD_INLINE void simd_keep_words(simd_vector *words, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    *words = (simd_vector)_mm512_maskz_mov_epi16(*lanes, (__m512i)*words);
#else
    *words = (simd_vector)(SIMD_AS(uint64_t, words) & SIMD_AS(uint64_t, (const simd_vector *)lanes));
#endif
}

/* The next lower bit is asked for, by both of these together. */
SIMD_INLINE void simd_ask_lower(simd_vector *asked)
{
#if SIMD_BYTES == 64
    *asked = (simd_vector)(SIMD_AS(uint16_t, asked) >> 1);
#elif SIMD_BYTES == 16
    *asked = (simd_vector)(SIMD_AS(uint32_t, asked) >> 1);
#else
    (void)asked;
#endif
}

SIMD_INLINE void simd_raise_words(simd_vector *words, int lane)
{
    (void)words, (void)lane;
#if SIMD_BYTES == 32
    if (lane == 4)
        SIMD_SET(words, SIMD_AS(uint32_t, words) + SIMD_AS(uint32_t, words));
    else
        SIMD_SET(words, SIMD_AS(uint64_t, words) + SIMD_AS(uint64_t, words));
#endif
}

/* seen = as many indices at `from` as there are lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_load_indices(simd_vector *seen, const void *from, int lane)
{
    if (lane == 4) {
        simd_load(seen, from);
        return;
    }
#if SIMD_BYTES == 64
    *seen = (simd_vector)_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)from));
#elif SIMD_BYTES == 32
    *seen = (simd_vector)_mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i *)from));
#else
    int32_t few[2];
    memcpy(few, from, sizeof few);
    *seen = (simd_vector)(SIMD_TYPE(int64_t, 16)){few[0], few[1]};
#endif
}

/* The indices of some lanes, which are given as lanes of 4 bytes, and INT32_MIN, which nobody wants, in the others,
 * whose memory is not read. */
SIMD_INLINE void simd_load_some_indices(simd_vector *seen, const void *from, const simd_lanes *lanes, int lane)
{
#if SIMD_BYTES == 64
    const __mmask16 some = (__mmask16)(lane == 4 ? *lanes : *lanes & 0xff);
    *seen = (simd_vector)_mm512_mask_loadu_epi32(_mm512_set1_epi32(INT32_MIN), some, from);
#elif SIMD_BYTES == 32
    const __m256i others = _mm256_andnot_si256(*lanes, _mm256_set1_epi32(INT32_MIN));
    if (lane == 4)
        *seen = (simd_vector)_mm256_or_si256(_mm256_maskload_epi32((const int *)from, *lanes), others);
    else
        *seen = (simd_vector)_mm256_cvtepi32_epi64(
            _mm_or_si128(_mm_maskload_epi32((const int *)from, _mm256_castsi256_si128(*lanes)),
                         _mm256_castsi256_si128(others)));
#else
    int32_t list[4], kept[4];
    memcpy(kept, lanes, sizeof kept);
    for (int i = 0; i < 4; i++) {
        list[i] = INT32_MIN;
        if (kept[i] && i < 16 / lane)
            memcpy(&list[i], (const char *)from + 4 * i, 4);
    }
    simd_load_indices(seen, list, lane);
#endif
}

/* x = the indices first, first + step, first + 2*step, ... for lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_range(simd_vector *x, int32_t first, int32_t step, int lane)
{
    const int32_t number[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    simd_load_indices(x, number, lane);
    if (lane == 8 && SIMD_BYTES < 64)
        SIMD_SET(x, SIMD_AS(uint64_t, x) * (uint64_t)step + (uint64_t)first);
    else
        SIMD_SET(x, SIMD_AS(uint32_t, x) * (uint32_t)step + (uint32_t)first);
}

/* x = a + step, of such indices. */
SIMD_INLINE void simd_count_indices(simd_vector *x, const simd_vector *a, int32_t step, int lane)
{
    if (lane == 8 && SIMD_BYTES < 64)
        SIMD_SET(x, SIMD_AS(uint64_t, a) + (uint64_t)step);
    else
        SIMD_SET(x, SIMD_AS(uint32_t, a) + (uint32_t)step);
}

/* How a number is chosen: by the bit of its word that lies so far below the one that the words were loaded for
 * (`wanted` asks for that lower bit), or if that is negative, by an index that is the wanted one. */
#define SIMD_BY_INDEX (-1)

#if SIMD_BYTES == 64
#define SIMD_LOW_32(x) _mm512_castsi512_si256((__m512i)*(x))
#define SIMD_LOW_16(x) _mm256_castsi256_si128(SIMD_LOW_32(x))
/* A test and the addition under its mask are one statement: gcc 12 would make all tests of a block before the first
 * addition and keep the masks, of which there are seven, in general registers. */
#if defined(ACLNN_BW_NO_ASM) /* AVX-512 in plain C: tests/emulation */
#define SIMD_ADD_WHERE(sum, test, test_c, a, b, add, add_c, term) (sum) = add_c(sum, test_c(a, b), sum, term)
#else
#define SIMD_ADD_WHERE(sum, test, test_c, a, b, add, add_c, term)            \
    do {                                                                     \
        __mmask16 chosen;                                                    \
        __asm__(test " %3, %2, %1\n\t" add " %4, %0, %0%{%1%}"               \
                : "+v"(sum), "=&Yk"(chosen)                                  \
                : "v"(a), "v"(b), "v"(term));                                \
        (void)chosen;                                                        \
    } while (0)
#endif

SIMD_INLINE void simd_load_if(simd_vector *x, const simd_vector *seen, const simd_vector *wanted, int below,
                              const void *from, int kind, int partial)
{
    (void)partial;
    if (kind == SIMD_F64) {
        const __mmask8 chosen = below < 0 ? _mm256_cmpeq_epi32_mask(SIMD_LOW_32(seen), SIMD_LOW_32(wanted))
                                          : _mm_test_epi16_mask(SIMD_LOW_16(seen), SIMD_LOW_16(wanted));
        *x = (simd_vector)_mm512_maskz_loadu_pd(chosen, from);
        return;
    }
    const __mmask16 chosen = below < 0 ? _mm512_cmpeq_epi32_mask((__m512i)*seen, (__m512i)*wanted)
                                       : _mm256_test_epi16_mask(SIMD_LOW_32(seen), SIMD_LOW_32(wanted));
    if (kind == SIMD_F32) {
        *x = _mm512_maskz_loadu_ps(chosen, from);
        return;
    }
    const __m256i bits = _mm256_maskz_loadu_epi16(chosen, from);
    simd_load_as(x, &bits, kind);
}
#else
/* All ones in the lanes that are chosen; of words with AVX2 a one in the sign, which is enough for a masked load. */
SIMD_INLINE void simd_choose(simd_vector *chosen, const simd_vector *seen, const simd_vector *wanted, int below,
                             int kind)
{
    if (below < 0 && kind == SIMD_F64)
        *chosen = (simd_vector)(SIMD_AS(int64_t, seen) == SIMD_AS(int64_t, wanted));
    else if (below < 0)
        *chosen = (simd_vector)(SIMD_AS(int32_t, seen) == SIMD_AS(int32_t, wanted));
#if SIMD_BYTES == 32
    else if (kind == SIMD_F64)
        *chosen = (simd_vector)(SIMD_AS(uint64_t, seen) << below);
    else if (kind == SIMD_F32)
        *chosen = (simd_vector)(SIMD_AS(uint32_t, seen) << below);
    else
        *chosen = (simd_vector)(SIMD_AS(int32_t, seen) << below >> 31);
#elif defined(__aarch64__)
    else if (kind == SIMD_F64)
        *chosen = (simd_vector)vtstq_u64((uint64x2_t)*seen, (uint64x2_t)*wanted);
    else
        *chosen = (simd_vector)vtstq_u32((uint32x4_t)*seen, (uint32x4_t)*wanted);
#else
    else {
        const SIMD_TYPE(uint32_t, 16) both = SIMD_AS(uint32_t, seen) & SIMD_AS(uint32_t, wanted);
        /* No bit is beyond the lower half of a lane. */
        *chosen = kind == SIMD_F64 ? (simd_vector)SIMD_SHUFFLE(both != 0, both != 0, 0, 0, 2, 2)
                                   : (simd_vector)(both != 0);
    }
#endif
}

/* x = what lies at `from` in the lanes that are chosen, 16-bit numbers widened, +0.0 in the others; their memory is not
 * read, or only if not `partial`. */
SIMD_INLINE void simd_load_if(simd_vector *x, const simd_vector *seen, const simd_vector *wanted, int below,
                              const void *from, int kind, int partial)
{
    const size_t size = kind == SIMD_F64 ? 8 : kind == SIMD_F32 ? 4 : 2;
    simd_vector chosen;
    simd_choose(&chosen, seen, wanted, below, kind);
#if SIMD_BYTES == 32
    if (size > 2 && partial) {
        *x = size == 4 ? (simd_vector)_mm256_maskload_ps((const float *)from, (__m256i)chosen)
                       : (simd_vector)_mm256_maskload_pd((const double *)from, (__m256i)chosen);
        return;
    }
    /* Of a bit that is chosen the sign alone says so. With vmaskmov the gradients of bits take 1.5 to 3.2 times as long
     * on an AMD EPYC of family 23. */
    if (size > 2 && below >= 0) {
        if (size == 4)
            *x = (simd_vector)_mm256_blendv_ps(_mm256_setzero_ps(), _mm256_loadu_ps((const float *)from),
                                               (__m256)chosen);
        else
            *x = (simd_vector)_mm256_blendv_pd(_mm256_setzero_pd(), _mm256_loadu_pd((const double *)from),
                                               (__m256d)chosen);
        return;
    }
#endif
    char block[SIMD_BYTES] = {0};
    if (partial) {
        uint32_t kept[SIMD_BYTES / 4];
        memcpy(kept, &chosen, sizeof kept);
        for (size_t i = 0; i < SIMD_BYTES / (size == 8 ? 8 : 4); i++)
            if (kept[size == 8 ? 2 * i : i])
                memcpy(block + i * size, (const char *)from + i * size, size);
        from = block;
    }
    simd_load_as(x, from, kind);
    simd_and(x, x, &chosen);
}
#endif

/* sum += that. */
SIMD_INLINE void simd_add_if(simd_vector *sum, const simd_vector *seen, const simd_vector *wanted, int below,
                             const void *from, int kind, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        __m512d total = (__m512d)*sum;
        simd_load_as(&term, from, kind);
        if (kind == SIMD_F64 && below < 0)
            SIMD_ADD_WHERE(total, "vpcmpeqd", _mm256_cmpeq_epi32_mask, SIMD_LOW_32(seen), SIMD_LOW_32(wanted),
                           "vaddpd", _mm512_mask_add_pd, (__m512d)term);
        else if (kind == SIMD_F64)
            SIMD_ADD_WHERE(total, "vptestmw", _mm_test_epi16_mask, SIMD_LOW_16(seen), SIMD_LOW_16(wanted), "vaddpd",
                           _mm512_mask_add_pd, (__m512d)term);
        else if (below < 0)
            SIMD_ADD_WHERE(*sum, "vpcmpeqd", _mm512_cmpeq_epi32_mask, (__m512i)*seen, (__m512i)*wanted, "vaddps",
                           _mm512_mask_add_ps, term);
        else
            SIMD_ADD_WHERE(*sum, "vptestmw", _mm256_test_epi16_mask, SIMD_LOW_32(seen), SIMD_LOW_32(wanted), "vaddps",
                           _mm512_mask_add_ps, term);
        if (kind == SIMD_F64)
            *sum = (simd_vector)total;
        return;
    }
#endif
    simd_load_if(&term, seen, wanted, below, from, kind, partial);
    simd_add(sum, sum, &term, kind == SIMD_F64 ? 8 : 4);
}

/* sum += term in some lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_add_lanes(simd_vector *sum, const simd_vector *term, const simd_lanes *lanes, int lane)
{
#if SIMD_BYTES == 64
    if (lane == 4)
        *sum = _mm512_mask_add_ps(*sum, (__mmask16)*lanes, *sum, *term);
    else
        *sum = (simd_vector)_mm512_mask_add_pd((__m512d)*sum, (__mmask8)*lanes, (__m512d)*sum, (__m512d)*term);
#else
    const simd_vector some = (simd_vector)(SIMD_AS(uint64_t, term) & SIMD_AS(uint64_t, lanes));
    simd_add(sum, sum, &some, lane);
#endif
}

/* x = the last lanes of `before`, and the first of `block` after them: of `before` so many bytes, 4, 8 or 16. */
SIMD_INLINE void simd_shift_in(simd_vector *x, const simd_vector *block, const simd_vector *before, int bytes)
{
#if SIMD_BYTES == 64
    const __m512i a = (__m512i)*block, b = (__m512i)*before;
    *x = (simd_vector)(bytes == 4 ? _mm512_alignr_epi32(a, b, 15) : bytes == 8 ? _mm512_alignr_epi32(a, b, 14)
                       : _mm512_alignr_epi32(a, b, 12));
#elif SIMD_BYTES == 32
    const __m256i a = (__m256i)*block, b = _mm256_permute2x128_si256((__m256i)*before, a, 0x21);
    *x = (simd_vector)(bytes == 4 ? _mm256_alignr_epi8(a, b, 12) : bytes == 8 ? _mm256_alignr_epi8(a, b, 8) : b);
#else
    const SIMD_TYPE(uint32_t, 16) a = SIMD_AS(uint32_t, block), b = SIMD_AS(uint32_t, before);
    *x = (simd_vector)(bytes == 4 ? SIMD_SHUFFLE(b, a, 3, 4, 5, 6) : bytes == 8 ? SIMD_SHUFFLE(b, a, 2, 3, 4, 5) : b);
#endif
}

/* The lanes of 4 or 8 bytes that have ones in `bits`, the first lane's the lowest. */
SIMD_INLINE void simd_lanes_of_bits(simd_lanes *lanes, unsigned bits, int lane)
{
#if SIMD_BYTES == 64
    *lanes = bits & (lane == 4 ? 0xffff : 0xff);
#else
    const int32_t ones[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    simd_vector bit;
    simd_load_indices(&bit, ones, lane);
    if (lane == 4)
        SIMD_SET(lanes, (SIMD_AS(uint32_t, &bit) & bits) == SIMD_AS(uint32_t, &bit));
    else
        SIMD_SET(lanes, (SIMD_AS(uint64_t, &bit) & (uint64_t)bits) == SIMD_AS(uint64_t, &bit));
#endif
}
#endif
