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

/* The bit that words are asked for. With AVX2 it is the sign of each word, which was shifted when it was loaded. */
typedef struct {
#if SIMD_BYTES == 32
    __m128i up;
#else
    simd_vector bit;
#endif
} simd_asked;

/* asked = the bit (1 << number) of words for lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_ask_4(simd_asked *asked, int number)
{
#if SIMD_BYTES == 64
    asked->bit = (simd_vector)_mm512_set1_epi16((short)(1 << number));
#elif SIMD_BYTES == 32
    asked->up = _mm_cvtsi32_si128(31 - number);
#else
    asked->bit = (simd_vector)((SIMD_TYPE(uint32_t, 16)){0} + (1u << number));
#endif
}

SIMD_INLINE void simd_ask_8(simd_asked *asked, int number)
{
#if SIMD_BYTES == 64
    simd_ask_4(asked, number);
#elif SIMD_BYTES == 32
    asked->up = _mm_cvtsi32_si128(63 - number);
#else
    asked->bit = (simd_vector)((SIMD_TYPE(uint64_t, 16)){0} + ((uint64_t)1 << number));
#endif
}

/* words = as many mask words at `from` as there are lanes, to be asked for that bit, or for lower ones. */
SIMD_INLINE void simd_load_words_4(simd_vector *words, const void *from, const simd_asked *asked)
{
    (void)asked;
#if SIMD_BYTES == 64
    *words = (simd_vector)_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)from));
#elif SIMD_BYTES == 32
    *words = (simd_vector)_mm256_sll_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from)), asked->up);
#elif defined(__SSE4_1__)
    *words = (simd_vector)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)from));
#else
    SIMD_TYPE(uint16_t, 8) few;
    memcpy(&few, from, sizeof few);
    *words = (simd_vector)__builtin_convertvector(few, SIMD_TYPE(uint32_t, 16));
#endif
}

SIMD_INLINE void simd_load_words_8(simd_vector *words, const void *from, const simd_asked *asked)
{
    (void)asked;
#if SIMD_BYTES == 64
    *words = (simd_vector)_mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)from));
#elif SIMD_BYTES == 32
    *words = (simd_vector)_mm256_sll_epi64(_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)from)), asked->up);
#else
    uint16_t few[2];
    memcpy(few, from, sizeof few);
    *words = (simd_vector)(SIMD_TYPE(uint64_t, 16)){few[0], few[1]};
#endif
}

/* The words of other lanes of 4 or 8 bytes have no bits. */
SIMD_INLINE void simd_keep_words(simd_vector *words, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    *words = (simd_vector)_mm512_maskz_mov_epi16(*lanes, (__m512i)*words);
#else
    *words = (simd_vector)(SIMD_AS(uint64_t, words) & SIMD_AS(uint64_t, (const simd_vector *)lanes));
#endif
}

/* The next lower bit is asked for: of all lanes of 4 or 8 bytes, by both of these together. */
SIMD_INLINE void simd_ask_lower(simd_asked *asked)
{
#if SIMD_BYTES == 64
    asked->bit = (simd_vector)(SIMD_AS(uint16_t, &asked->bit) >> 1);
#elif SIMD_BYTES == 16
    asked->bit = (simd_vector)(SIMD_AS(uint32_t, &asked->bit) >> 1);
#else
    (void)asked;
#endif
}

#if SIMD_BYTES == 32
#define simd_raise_words_4(words) SIMD_SET(words, SIMD_AS(uint32_t, words) + SIMD_AS(uint32_t, words))
#define simd_raise_words_8(words) SIMD_SET(words, SIMD_AS(uint64_t, words) + SIMD_AS(uint64_t, words))
#else
#define simd_raise_words_4(words) ((void)(words))
#define simd_raise_words_8(words) ((void)(words))
#endif

/* seen = as many indices at `from` as there are lanes of 8 bytes; of 4, simd_load loads them. */
SIMD_INLINE void simd_load_indices_8(simd_vector *seen, const void *from)
{
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

/* The indices of some lanes, which are given as lanes of 4 bytes, and INT32_MIN, which nobody wants, in the others, whose
 * memory is not read. */
#define simd_load_indices_lanes_4(seen, from, lanes) simd_load_indices_some(seen, from, lanes, 4)
#define simd_load_indices_lanes_8(seen, from, lanes) simd_load_indices_some(seen, from, lanes, 8)

SIMD_INLINE void simd_load_indices_some(simd_vector *seen, const void *from, const simd_lanes *lanes, int lane)
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
    if (lane == 4)
        memcpy(seen, list, sizeof list);
    else
        simd_load_indices_8(seen, list);
#endif
}

/* x = the indices first, first + step, first + 2*step, ... for lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_range_4(simd_vector *x, int32_t first, int32_t step)
{
    const SIMD_TYPE(uint32_t, SIMD_BYTES) number = {
        0, 1, 2, 3,
#if SIMD_BYTES > 16
        4, 5, 6, 7,
#endif
#if SIMD_BYTES > 32
        8, 9, 10, 11, 12, 13, 14, 15,
#endif
    };
    *x = (simd_vector)(number * (uint32_t)step + (uint32_t)first);
}

SIMD_INLINE void simd_range_8(simd_vector *x, int32_t first, int32_t step)
{
#if SIMD_BYTES == 64
    simd_range_4(x, first, step);
#else
    const SIMD_TYPE(uint64_t, SIMD_BYTES) number = {
        0, 1,
#if SIMD_BYTES > 16
        2, 3,
#endif
    };
    *x = (simd_vector)(number * (uint64_t)step + (uint64_t)first);
#endif
}

/* x = a + step, of indices beside lanes of 8 bytes; beside those of 4 it is simd_count_4. */
#if SIMD_BYTES == 64
#define simd_count_indices_8(x, a, step) simd_count_4(x, a, step)
#else
#define simd_count_indices_8(x, a, step) simd_count_8(x, a, step)
#endif

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
#else
/* All ones in the lanes of 4 or 8 bytes whose word has the bit that lies `below` the one that it was loaded for. */
SIMD_INLINE void simd_chosen_4(simd_vector *chosen, const simd_vector *words, const simd_asked *asked, int below)
{
#if SIMD_BYTES == 32
    (void)asked;
    *chosen = (simd_vector)(SIMD_AS(int32_t, words) << below >> 31);
#elif defined(__aarch64__)
    (void)below;
    *chosen = (simd_vector)vtstq_u32((uint32x4_t)*words, (uint32x4_t)asked->bit);
#else
    (void)below;
    *chosen = (simd_vector)((SIMD_AS(uint32_t, words) & SIMD_AS(uint32_t, &asked->bit)) != 0);
#endif
}

SIMD_INLINE void simd_chosen_8(simd_vector *chosen, const simd_vector *words, const simd_asked *asked, int below)
{
#if SIMD_BYTES == 32
    (void)asked;
    *chosen = (simd_vector)((SIMD_AS(int64_t, words) << below) < 0);
#elif defined(__aarch64__)
    (void)below;
    *chosen = (simd_vector)vtstq_u64((uint64x2_t)*words, (uint64x2_t)asked->bit);
#else
    (void)below;
    /* No bit is beyond the lower half of a lane. */
    const SIMD_TYPE(uint32_t, 16) both = SIMD_AS(uint32_t, words) & SIMD_AS(uint32_t, &asked->bit);
    *chosen = (simd_vector)SIMD_SHUFFLE(both != 0, both != 0, 0, 0, 2, 2);
#endif
}

/* x = what lies at `from` in the lanes of all ones, +0.0 in the others; their memory is not read, or only if not
 * `partial`. */
SIMD_INLINE void simd_load_chosen(simd_vector *x, const simd_vector *chosen, const void *from, size_t lane, int partial)
{
    if (partial) {
#if SIMD_BYTES == 32
        *x = lane == 4 ? (simd_vector)_mm256_maskload_ps((const float *)from, (__m256i)*chosen)
                       : (simd_vector)_mm256_maskload_pd((const double *)from, (__m256i)*chosen);
#else
        char block[16] = {0};
        uint32_t kept[4];
        memcpy(kept, chosen, sizeof kept);
        for (size_t i = 0; i < 16 / lane; i++)
            if (kept[i * (lane / 4)])
                memcpy(block + i * lane, (const char *)from + i * lane, lane);
        simd_load(x, block);
#endif
        return;
    }
    simd_load(x, from);
    simd_and(x, x, chosen);
}

/* The same of 16-bit numbers, widened, for lanes of 4 bytes. */
SIMD_INLINE void simd_load_chosen_2(simd_vector *x, const simd_vector *chosen, const void *from, int bfloats,
                                    int partial)
{
    uint16_t block[SIMD_BYTES / 4] = {0};
    if (partial) {
        uint32_t kept[SIMD_BYTES / 4];
        memcpy(kept, chosen, sizeof kept);
        for (int i = 0; i < SIMD_BYTES / 4; i++)
            if (kept[i])
                memcpy(&block[i], (const char *)from + 2 * i, 2);
        from = block;
    }
    if (bfloats)
        simd_load_bfloat(x, from);
    else
        simd_load_half(x, from);
    simd_and(x, x, chosen);
}
#endif

/* x = the number at `from` in the lanes whose word has the bit that lies `below` the one that it was loaded for (and
 * `asked` is that lower bit), else +0.0. The memory of the others is not read, or only if not `partial`. */
SIMD_INLINE void simd_load_if_bit_f32(simd_vector *x, const simd_vector *words, const simd_asked *asked, int below,
                                      const void *from, int partial)
{
#if SIMD_BYTES == 64
    (void)below, (void)partial;
    *x = _mm512_maskz_loadu_ps(_mm256_test_epi16_mask(SIMD_LOW_32(words),
                                                      SIMD_LOW_32(&asked->bit)), from);
#else
    simd_vector chosen;
#if SIMD_BYTES == 32
    (void)asked, (void)partial;
    chosen = (simd_vector)(SIMD_AS(uint32_t, words) << below);
    simd_load_chosen(x, &chosen, from, 4, 1);
#else
    simd_chosen_4(&chosen, words, asked, below);
    simd_load_chosen(x, &chosen, from, 4, partial);
#endif
#endif
}

SIMD_INLINE void simd_load_if_bit_f64(simd_vector *x, const simd_vector *words, const simd_asked *asked, int below,
                                      const void *from, int partial)
{
#if SIMD_BYTES == 64
    (void)below, (void)partial;
    *x = (simd_vector)_mm512_maskz_loadu_pd(_mm_test_epi16_mask(SIMD_LOW_16(words),
                                                                SIMD_LOW_16(&asked->bit)), from);
#else
    simd_vector chosen;
#if SIMD_BYTES == 32
    (void)asked, (void)partial;
    chosen = (simd_vector)(SIMD_AS(uint64_t, words) << below);
    simd_load_chosen(x, &chosen, from, 8, 1);
#else
    simd_chosen_8(&chosen, words, asked, below);
    simd_load_chosen(x, &chosen, from, 8, partial);
#endif
#endif
}

#define simd_load_if_bit_half(x, words, asked, below, from, partial) \
    simd_load_if_bit_2(x, words, asked, below, from, 0, partial)
#define simd_load_if_bit_bfloat(x, words, asked, below, from, partial) \
    simd_load_if_bit_2(x, words, asked, below, from, 1, partial)

SIMD_INLINE void simd_load_if_bit_2(simd_vector *x, const simd_vector *words, const simd_asked *asked, int below,
                                    const void *from, int bfloats, int partial)
{
#if SIMD_BYTES == 64
    (void)below, (void)partial;
    const __m256i bits = _mm256_maskz_loadu_epi16(
        _mm256_test_epi16_mask(SIMD_LOW_32(words), SIMD_LOW_32(&asked->bit)),
        from);
    if (bfloats)
        simd_load_bfloat(x, &bits);
    else
        simd_load_half(x, &bits);
#else
    simd_vector chosen;
    simd_chosen_4(&chosen, words, asked, below);
    simd_load_chosen_2(x, &chosen, from, bfloats, partial);
#endif
}

/* sum += that. */
SIMD_INLINE void simd_add_if_bit_f32(simd_vector *sum, const simd_vector *words, const simd_asked *asked, int below,
                                     const void *from, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        SIMD_ADD_WHERE(*sum, "vptestmw", _mm256_test_epi16_mask, SIMD_LOW_32(words),
                       SIMD_LOW_32(&asked->bit), "vaddps", _mm512_mask_add_ps, _mm512_loadu_ps(from));
        return;
    }
#endif
    simd_load_if_bit_f32(&term, words, asked, below, from, partial);
    simd_add_f32(sum, sum, &term);
}

SIMD_INLINE void simd_add_if_bit_f64(simd_vector *sum, const simd_vector *words, const simd_asked *asked, int below,
                                     const void *from, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        __m512d total = (__m512d)*sum;
        SIMD_ADD_WHERE(total, "vptestmw", _mm_test_epi16_mask, SIMD_LOW_16(words),
                       SIMD_LOW_16(&asked->bit), "vaddpd", _mm512_mask_add_pd, _mm512_loadu_pd(from));
        *sum = (simd_vector)total;
        return;
    }
#endif
    simd_load_if_bit_f64(&term, words, asked, below, from, partial);
    simd_add_f64(sum, sum, &term);
}

#define simd_add_if_bit_half(sum, words, asked, below, from, partial) \
    simd_add_if_bit_2(sum, words, asked, below, from, 0, partial)
#define simd_add_if_bit_bfloat(sum, words, asked, below, from, partial) \
    simd_add_if_bit_2(sum, words, asked, below, from, 1, partial)

SIMD_INLINE void simd_add_if_bit_2(simd_vector *sum, const simd_vector *words, const simd_asked *asked, int below,
                                   const void *from, int bfloats, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        if (bfloats)
            simd_load_bfloat(&term, from);
        else
            simd_load_half(&term, from);
        SIMD_ADD_WHERE(*sum, "vptestmw", _mm256_test_epi16_mask, SIMD_LOW_32(words),
                       SIMD_LOW_32(&asked->bit), "vaddps", _mm512_mask_add_ps, term);
        return;
    }
#endif
    simd_load_if_bit_2(&term, words, asked, below, from, bfloats, partial);
    simd_add_f32(sum, sum, &term);
}

/* x = the number at `from` in the lanes whose index is the wanted one, else +0.0; the memory of the others as above. */
SIMD_INLINE void simd_load_if_equal_f32(simd_vector *x, const simd_vector *seen, const simd_vector *wanted,
                                        const void *from, int partial)
{
#if SIMD_BYTES == 64
    (void)partial;
    *x = _mm512_maskz_loadu_ps(_mm512_cmpeq_epi32_mask((__m512i)*seen, (__m512i)*wanted), from);
#else
    const simd_vector chosen = (simd_vector)(SIMD_AS(int32_t, seen) == SIMD_AS(int32_t, wanted));
    simd_load_chosen(x, &chosen, from, 4, partial);
#endif
}

SIMD_INLINE void simd_load_if_equal_f64(simd_vector *x, const simd_vector *seen, const simd_vector *wanted,
                                        const void *from, int partial)
{
#if SIMD_BYTES == 64
    (void)partial;
    *x = (simd_vector)_mm512_maskz_loadu_pd(_mm256_cmpeq_epi32_mask(_mm512_castsi512_si256((__m512i)*seen),
                                                                    _mm512_castsi512_si256((__m512i)*wanted)), from);
#else
    const simd_vector chosen = (simd_vector)(SIMD_AS(int64_t, seen) == SIMD_AS(int64_t, wanted));
    simd_load_chosen(x, &chosen, from, 8, partial);
#endif
}

#define simd_load_if_equal_half(x, seen, wanted, from, partial) \
    simd_load_if_equal_2(x, seen, wanted, from, 0, partial)
#define simd_load_if_equal_bfloat(x, seen, wanted, from, partial) \
    simd_load_if_equal_2(x, seen, wanted, from, 1, partial)

SIMD_INLINE void simd_load_if_equal_2(simd_vector *x, const simd_vector *seen, const simd_vector *wanted,
                                      const void *from, int bfloats, int partial)
{
#if SIMD_BYTES == 64
    (void)partial;
    const __m256i bits = _mm256_maskz_loadu_epi16(_mm512_cmpeq_epi32_mask((__m512i)*seen, (__m512i)*wanted), from);
    if (bfloats)
        simd_load_bfloat(x, &bits);
    else
        simd_load_half(x, &bits);
#else
    const simd_vector chosen = (simd_vector)(SIMD_AS(int32_t, seen) == SIMD_AS(int32_t, wanted));
    simd_load_chosen_2(x, &chosen, from, bfloats, partial);
#endif
}

/* sum += that. */
SIMD_INLINE void simd_add_if_equal_f32(simd_vector *sum, const simd_vector *seen, const simd_vector *wanted,
                                       const void *from, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        SIMD_ADD_WHERE(*sum, "vpcmpeqd", _mm512_cmpeq_epi32_mask, (__m512i)*seen, (__m512i)*wanted, "vaddps",
                       _mm512_mask_add_ps, _mm512_loadu_ps(from));
        return;
    }
#endif
    simd_load_if_equal_f32(&term, seen, wanted, from, partial);
    simd_add_f32(sum, sum, &term);
}

SIMD_INLINE void simd_add_if_equal_f64(simd_vector *sum, const simd_vector *seen, const simd_vector *wanted,
                                       const void *from, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        __m512d total = (__m512d)*sum;
        SIMD_ADD_WHERE(total, "vpcmpeqd", _mm256_cmpeq_epi32_mask, _mm512_castsi512_si256((__m512i)*seen),
                       _mm512_castsi512_si256((__m512i)*wanted), "vaddpd", _mm512_mask_add_pd, _mm512_loadu_pd(from));
        *sum = (simd_vector)total;
        return;
    }
#endif
    simd_load_if_equal_f64(&term, seen, wanted, from, partial);
    simd_add_f64(sum, sum, &term);
}

#define simd_add_if_equal_half(sum, seen, wanted, from, partial) \
    simd_add_if_equal_2(sum, seen, wanted, from, 0, partial)
#define simd_add_if_equal_bfloat(sum, seen, wanted, from, partial) \
    simd_add_if_equal_2(sum, seen, wanted, from, 1, partial)

SIMD_INLINE void simd_add_if_equal_2(simd_vector *sum, const simd_vector *seen, const simd_vector *wanted,
                                     const void *from, int bfloats, int partial)
{
    simd_vector term;
#if SIMD_BYTES == 64
    if (!partial) {
        if (bfloats)
            simd_load_bfloat(&term, from);
        else
            simd_load_half(&term, from);
        SIMD_ADD_WHERE(*sum, "vpcmpeqd", _mm512_cmpeq_epi32_mask, (__m512i)*seen, (__m512i)*wanted, "vaddps",
                       _mm512_mask_add_ps, term);
        return;
    }
#endif
    simd_load_if_equal_2(&term, seen, wanted, from, bfloats, partial);
    simd_add_f32(sum, sum, &term);
}

/* sum += term in some lanes of 4 or 8 bytes. */
SIMD_INLINE void simd_add_lanes_f32(simd_vector *sum, const simd_vector *term, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    *sum = _mm512_mask_add_ps(*sum, (__mmask16)*lanes, *sum, *term);
#else
    *sum += (simd_vector)(SIMD_AS(uint64_t, term) & SIMD_AS(uint64_t, lanes));
#endif
}

SIMD_INLINE void simd_add_lanes_f64(simd_vector *sum, const simd_vector *term, const simd_lanes *lanes)
{
#if SIMD_BYTES == 64
    *sum = (simd_vector)_mm512_mask_add_pd((__m512d)*sum, (__mmask8)*lanes, (__m512d)*sum, (__m512d)*term);
#else
    const simd_vector some = (simd_vector)(SIMD_AS(uint64_t, term) & SIMD_AS(uint64_t, lanes));
    simd_add_f64(sum, sum, &some);
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
#if SIMD_BYTES == 64
#define simd_lanes_of_bits_4(lanes, bits) (*(lanes) = (bits) & 0xffff)
#define simd_lanes_of_bits_8(lanes, bits) (*(lanes) = (bits) & 0xff)
#else
SIMD_INLINE void simd_lanes_of_bits_4(simd_lanes *lanes, unsigned bits)
{
    const SIMD_TYPE(uint32_t, SIMD_BYTES) bit = {
        1, 2, 4, 8,
#if SIMD_BYTES > 16
        16, 32, 64, 128,
#endif
    };
    SIMD_SET(lanes, (bit & bits) == bit);
}

SIMD_INLINE void simd_lanes_of_bits_8(simd_lanes *lanes, unsigned bits)
{
    const SIMD_TYPE(uint64_t, SIMD_BYTES) bit = {
        1, 2,
#if SIMD_BYTES > 16
        4, 8,
#endif
    };
    SIMD_SET(lanes, (bit & (uint64_t)bits) == bit);
}
#endif
#endif
