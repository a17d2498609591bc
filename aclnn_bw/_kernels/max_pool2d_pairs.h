/* Rows of the max pool's gradInput for 3 or 2 kernel columns at stride 2, without lane masks: the part of
 * max_pool2d_columns.h for AVX2 and less, in the same order of the sums.
 *
 * A lane's term is chosen by the sign of an integer of its width. With AVX2 a load under these signs gives the chosen
 * gradients and zeros, so that a term is three instructions (shift or comparison, load, addition), and 16-bit results
 * leave the registers as they are stored; their gradients have been widened in the scratch. Without AVX2 the sign is
 * spread over its lane, and blocks at the ends of rows load lane by lane.
 *
 * What binds the loop (AVX2 on Zen 4, read in the assembly): the number of instructions. A row of windows adds 41 of
 * vectors and 8 others for four channels of 8 windows (3x3), with sums and words in registers; a block of 64 sums has 24
 * that interleave and store them, and 65 that find addresses, most of them spilled, and zero the sums. In the L1 cache
 * it all takes 0.45 to 0.8 of the time of selecting with AND and of interleaving in a plain loop, and 0.12 in planes of
 * 14x14 in float32, whose rows were summed one by one. Beyond the cache asking for lines ahead took 1.1 to 1.2 times as
 * long with one thread.
 *
 * Why every access is in bounds: a term is loaded in the lanes that have a window, and so are indices. Words are loaded
 * whole: from one before their row of the table, which is never its first (the window at -1 has kernel column 2), to at
 * most window Ho*Wo + 8 of a row, which has at least Ho*Wo + 16 words. Results may be stored beyond the end of a row
 * only where rows follow that are made, later on, by the same call.
 */
#ifndef ACLNN_BW_MAX_POOL2D_PAIRS_H
#define ACLNN_BW_MAX_POOL2D_PAIRS_H

#if defined(__AVX2__)
#define ACLNN_BW_WIDEN_WORDS_float(from)                                                                                \
    (aclnn_bw_float_bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from)))
#define ACLNN_BW_WIDEN_WORDS_double(from)                                                                               \
    (aclnn_bw_double_bits)_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(from)))
#define ACLNN_BW_SPREAD_float(lanes) (lanes)
#define ACLNN_BW_SPREAD_double(lanes) (aclnn_bw_double_bits)_mm256_cvtepi32_epi64((__m128i)(lanes))
#define ACLNN_BW_CHOSEN_BY_float(lanes) (lanes)
#define ACLNN_BW_CHOSEN_BY_double(lanes) (lanes)
#define ACLNN_BW_LOAD_CHOSEN_float(from, chosen, partial)                                                               \
    (aclnn_bw_floats)_mm256_maskload_ps((const float *)(const void *)(from), (__m256i)(chosen))
#define ACLNN_BW_LOAD_CHOSEN_double(from, chosen, partial)                                                              \
    (aclnn_bw_doubles)_mm256_maskload_pd((const double *)(const void *)(from), (__m256i)(chosen))
#define ACLNN_BW_SOME_SEEN_float(from, lanes)                                                                           \
    (aclnn_bw_float_indices)_mm256_maskload_epi32((const int *)(const void *)(from), (__m256i)(lanes))
#define ACLNN_BW_SOME_SEEN_double(from, lanes)                                                                          \
    (aclnn_bw_double_indices)_mm_maskload_epi32((const int *)(const void *)(from), (__m128i)(lanes))
#else
#if defined(__SSE4_1__)
#define ACLNN_BW_WIDEN_WORDS_float(from)                                                                                \
    (aclnn_bw_float_bits)_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(from)))
#define ACLNN_BW_WIDEN_WORDS_double(from)                                                                               \
    (aclnn_bw_double_bits)_mm_cvtepu16_epi64(_mm_loadu_si32(from))
#else
#define ACLNN_BW_WIDEN_WORDS_float(from) aclnn_bw_widen_words_float(from)
#define ACLNN_BW_WIDEN_WORDS_double(from) aclnn_bw_widen_words_double(from)
#endif
#define ACLNN_BW_SPREAD_float(lanes) (lanes)
#define ACLNN_BW_SPREAD_double(lanes) __builtin_convertvector(lanes, aclnn_bw_double_bits)
#define ACLNN_BW_CHOSEN_BY_float(lanes) ((lanes) >> 31)
#define ACLNN_BW_CHOSEN_BY_double(lanes) (aclnn_bw_double_bits)((lanes) < 0)
#define ACLNN_BW_LOAD_CHOSEN_float(from, chosen, partial) aclnn_bw_load_chosen_float(from, chosen, partial)
#define ACLNN_BW_LOAD_CHOSEN_double(from, chosen, partial) aclnn_bw_load_chosen_double(from, chosen, partial)
#define ACLNN_BW_SOME_SEEN_float(from, lanes) aclnn_bw_some_seen_float(from, lanes)
#define ACLNN_BW_SOME_SEEN_double(from, lanes) aclnn_bw_some_seen_double(from, lanes)

#define ACLNN_BW_LOAD_LANES(real)                                                                                       \
    ACLNN_BW_INLINE aclnn_bw_##real##_bits aclnn_bw_widen_words_##real(const char *from)                                \
    {                                                                                                                   \
        aclnn_bw_##real##_bits wide;                                                                                    \
        for (unsigned i = 0; i < sizeof wide / sizeof wide[0]; i++)                                                     \
            wide[i] = ((const aclnn_bw_word *)from)[i];                                                                 \
        return wide;                                                                                                    \
    }                                                                                                                   \
    ACLNN_BW_INLINE aclnn_bw_##real##s aclnn_bw_load_chosen_##real(const char *from, aclnn_bw_##real##_bits chosen,     \
                                                                   const int partial)                                   \
    {                                                                                                                   \
        aclnn_bw_##real##s term = {0};                                                                                  \
        if (!partial) {                                                                                                 \
            memcpy(&term, from, sizeof term);                                                                           \
            return (aclnn_bw_##real##s)((aclnn_bw_##real##_bits)term & chosen);                                         \
        }                                                                                                               \
        for (unsigned i = 0; i < sizeof term / sizeof term[0]; i++)                                                     \
            if (chosen[i]) {                                                                                            \
                real lane;                                                                                              \
                memcpy(&lane, from + i * sizeof lane, sizeof lane);                                                     \
                term[i] = lane;                                                                                         \
            }                                                                                                           \
        return term;                                                                                                    \
    }                                                                                                                   \
    ACLNN_BW_INLINE aclnn_bw_##real##_indices aclnn_bw_some_seen_##real(const char *from,                               \
                                                                        aclnn_bw_##real##_indices lanes)                \
    {                                                                                                                   \
        aclnn_bw_##real##_indices seen = {0};                                                                           \
        for (unsigned i = 0; i < sizeof seen / sizeof seen[0]; i++)                                                     \
            if (lanes[i])                                                                                               \
                seen[i] = ((const aclnn_bw_index *)from)[i];                                                            \
        return seen;                                                                                                    \
    }
ACLNN_BW_LOAD_LANES(float)
ACLNN_BW_LOAD_LANES(double)
#endif

/* Sums of columns side by side, even and odd, to elements: `even` and `odd` interleaved. */
#if defined(__AVX2__)
ACLNN_BW_INLINE void aclnn_bw_mix_f32(float *to, aclnn_bw_floats even, aclnn_bw_floats odd)
{
    const __m256 low = _mm256_unpacklo_ps((__m256)even, (__m256)odd);
    const __m256 high = _mm256_unpackhi_ps((__m256)even, (__m256)odd);
    _mm256_storeu_ps(to, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(to + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

ACLNN_BW_INLINE void aclnn_bw_mix_f64(double *to, aclnn_bw_doubles even, aclnn_bw_doubles odd)
{
    const __m256d low = _mm256_unpacklo_pd((__m256d)even, (__m256d)odd);
    const __m256d high = _mm256_unpackhi_pd((__m256d)even, (__m256d)odd);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(low, high, 0x20));
    _mm256_storeu_pd(to + 4, _mm256_permute2f128_pd(low, high, 0x31));
}

ACLNN_BW_INLINE void aclnn_bw_mix_f16(uint16_t *to, aclnn_bw_floats even, aclnn_bw_floats odd)
{
    const __m128i low = _mm256_cvtps_ph((__m256)even, _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph((__m256)odd, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128((__m128i *)(void *)(to + 8), _mm_unpackhi_epi16(low, high));
}

/* Rounded to bfloat16, to nearest even, in the upper half of each lane. A NaN stays one: as a sum of bfloat16, it has
 * zeros in its lower half, which do not carry. */
ACLNN_BW_INLINE __m256i aclnn_bw_round_8(aclnn_bw_floats sum)
{
    const __m256i bits = (__m256i)sum;
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
}

ACLNN_BW_INLINE void aclnn_bw_mix_bf16(uint16_t *to, aclnn_bw_floats even, aclnn_bw_floats odd)
{
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm256_blend_epi16(_mm256_srli_epi32(aclnn_bw_round_8(even), 16), aclnn_bw_round_8(odd), 0xaa));
}
#elif defined(__SSE2__)
ACLNN_BW_INLINE void aclnn_bw_mix_f32(float *to, aclnn_bw_floats even, aclnn_bw_floats odd)
{
    _mm_storeu_ps(to, _mm_unpacklo_ps((__m128)even, (__m128)odd));
    _mm_storeu_ps(to + 4, _mm_unpackhi_ps((__m128)even, (__m128)odd));
}

ACLNN_BW_INLINE void aclnn_bw_mix_f64(double *to, aclnn_bw_doubles even, aclnn_bw_doubles odd)
{
    _mm_storeu_pd(to, _mm_unpacklo_pd((__m128d)even, (__m128d)odd));
    _mm_storeu_pd(to + 2, _mm_unpackhi_pd((__m128d)even, (__m128d)odd));
}
#else
#define ACLNN_BW_MIX(suffix, real)                                                                                      \
    ACLNN_BW_INLINE void aclnn_bw_mix_##suffix(real *to, aclnn_bw_##real##s even, aclnn_bw_##real##s odd)               \
    {                                                                                                                   \
        for (unsigned i = 0; i < sizeof even / sizeof even[0]; i++) {                                                   \
            to[2 * i] = even[i];                                                                                        \
            to[2 * i + 1] = odd[i];                                                                                     \
        }                                                                                                               \
    }
ACLNN_BW_MIX(f32, float)
ACLNN_BW_MIX(f64, double)
#endif

/* The numbers of the lanes of a vector. */
#if defined(__AVX2__)
#define ACLNN_BW_LANE_float {0, 1, 2, 3, 4, 5, 6, 7}
#define ACLNN_BW_LANE_double {0, 1, 2, 3}
#else
#define ACLNN_BW_LANE_float {0, 1, 2, 3}
#define ACLNN_BW_LANE_double {0, 1}
#endif

/* The first bytes of a block, less than all. */
ACLNN_BW_INLINE void aclnn_bw_store_start(void *to, const void *block, int64_t bytes)
{
    char *target = (char *)to;
    const char *source = (const char *)block;
#pragma GCC unroll 5
    for (int64_t piece = ACLNN_BW_VECTOR_BYTES; piece > 1; piece /= 2)
        if (bytes >= piece) {
            memcpy(target, source, (size_t)piece);
            memcpy(target + bytes - piece, source + bytes - piece, (size_t)piece);
            return;
        }
}

#define ACLNN_BW_PAIRS(suffix, element, real)                                                                           \
    /* For each shift the lanes of a block at j that have a window. */                                                  \
    ACLNN_BW_INLINE void aclnn_bw_pair_lanes_##suffix(aclnn_bw_##real##_indices *lanes, int64_t j, int64_t windows,     \
                                                      const int k, const int p)                                         \
    {                                                                                                                   \
        const int s = 2;                                                                                                \
        for (int shift = ACLNN_BW_LOW; shift <= ACLNN_BW_HIGH; shift++) {                                               \
            const aclnn_bw_##real##_indices lane = ACLNN_BW_LANE_##real;                                                \
            const int64_t begin = -j - shift, end = windows - j - shift;                                                \
            lanes[shift - ACLNN_BW_LOW] = (lane >= (int32_t)(begin < 0 ? 0 : begin))                                    \
                & (lane < (int32_t)(end > ACLNN_BW_VECTOR_BYTES ? ACLNN_BW_VECTOR_BYTES : end));                        \
        }                                                                                                               \
    }                                                                                                                   \
    /* The sums of a block of pairs of columns at j, even and odd ones, over `count` rows of windows. Kernel row `kh`   \
     * belongs to the first; each further one is `stride` kernel rows earlier. */                                       \
    ACLNN_BW_INLINE void aclnn_bw_pair_block_##suffix(                                                                  \
        aclnn_bw_##real##s *sums, aclnn_bw_plane w, int64_t oh, int64_t count, int64_t kh, int32_t place, int64_t j,    \
        const aclnn_bw_##real##_indices *lanes, const int k, const int p, const int indexed, const int team,            \
        const int partial)                                                                                              \
    {                                                                                                                   \
        const int s = 2;                                                                                                \
        const char *grad_row = w.grad + oh * w.grad_step + (j + ACLNN_BW_LOW) * (int64_t)sizeof(real);                  \
        const char *mask_row = w.mask + (oh * w.windows + j + ACLNN_BW_LOW) * (indexed ? 4 : 2)                         \
            + (indexed ? 0 : kh * k * w.column_step);                                                                   \
        const int64_t mask_step = w.windows * (indexed ? 4 : 2) - (indexed ? 0 : w.stride * k * w.column_step);         \
        /* Makes the last channel's bit the sign. */                                                                    \
        const int up = 8 * (int)sizeof(real) - team - __builtin_ctz(w.bit);                                             \
        aclnn_bw_##real##_indices wanted[2];                                                                            \
        for (int sum = 0; sum < 2 * team; sum++)                                                                        \
            sums[sum] = (aclnn_bw_##real##s){0};                                                                        \
        if (indexed)                                                                                                    \
            for (int c = 0; c < 2; c++)                                                                                 \
                wanted[c] = (aclnn_bw_##real##_indices)ACLNN_BW_LANE_##real * 2 + (int32_t)(place + 2 * j + c);         \
        for (int64_t row = 0; row < count; row++) {                                                                     \
            aclnn_bw_##real##_bits words[3];                                                                            \
            if (!indexed)                                                                                               \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int shift = ACLNN_BW_SHIFT(kw) - ACLNN_BW_LOW;                                                \
                    words[kw] = ACLNN_BW_WIDEN_WORDS_##real(mask_row + kw * w.column_step + 2 * shift) << up;           \
                    if (partial)                                                                                        \
                        words[kw] &= ACLNN_BW_SPREAD_##real(lanes[shift]);                                              \
                }                                                                                                       \
            _Pragma("GCC unroll 4")                                                                                     \
            for (int channel = 0; channel < team; channel++) {                                                          \
                _Pragma("GCC unroll 3")                                                                                 \
                for (int kw = k - 1; kw >= 0; kw--) {                                                                   \
                    const int shift = ACLNN_BW_SHIFT(kw) - ACLNN_BW_LOW;                                                \
                    const char *grad = grad_row + channel * w.grad_channel + shift * (int)sizeof(real);                 \
                    aclnn_bw_##real##_bits chosen;                                                                      \
                    if (indexed) {                                                                                      \
                        const char *mask = mask_row + channel * w.mask_channel + 4 * shift;                             \
                        aclnn_bw_##real##_indices seen;                                                                 \
                        if (partial)                                                                                    \
                            seen = ACLNN_BW_SOME_SEEN_##real(mask, lanes[shift]);                                       \
                        else                                                                                            \
                            memcpy(&seen, mask, sizeof seen);                                                           \
                        seen = seen == wanted[ACLNN_BW_CLASS(kw)];                                                      \
                        if (partial)                                                                                    \
                            seen &= lanes[shift];                                                                       \
                        chosen = ACLNN_BW_SPREAD_##real(seen);                                                          \
                    } else                                                                                              \
                        chosen = ACLNN_BW_CHOSEN_BY_##real(words[kw] << (team - 1 - channel));                          \
                    sums[2 * channel + ACLNN_BW_CLASS(kw)] += ACLNN_BW_LOAD_CHOSEN_##real(grad, chosen, partial);       \
                }                                                                                                       \
            }                                                                                                           \
            grad_row += w.grad_step;                                                                                    \
            mask_row += mask_step;                                                                                      \
        }                                                                                                               \
    }                                                                                                                   \
    /* Rows [ih, end) of gradInput; oh is at most the first row of windows that holds row ih. */                        \
    ACLNN_BW_INLINE void aclnn_bw_pairs_##suffix(                                                                       \
        element *to, int64_t to_step, aclnn_bw_plane w, int64_t ih, int64_t end, int64_t oh, const int k, const int s,  \
        const int p, const int indexed, const int team)                                                                 \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        const int64_t n = (w.columns + 1) / 2;                                                                          \
        /* The last block overlaps the one before, unless half of a pair would lie outside the row. */                  \
        const int64_t last = w.columns % 2 == 0 && n >= WIDTH ? n - WIDTH : (n - 1) / WIDTH * WIDTH;                    \
        int64_t oh_end = oh;                                                                                            \
        aclnn_bw_##real##_indices first_lanes[3], last_lanes[3], others[3];                                             \
        aclnn_bw_pair_lanes_##suffix(first_lanes, 0, w.windows, k, p);                                                  \
        aclnn_bw_pair_lanes_##suffix(last_lanes, last, w.windows, k, p);                                                \
        for (; ih < end; ih++) {                                                                                        \
            const int32_t place = indexed ? (int32_t)(ih * w.columns) : 0;                                              \
            ACLNN_BW_FIND_WINDOWS(ih)                                                                                   \
            const int64_t kh = ih + w.pad - oh * w.stride;                                                              \
            /* Elements that lie side by side here and are not written yet: a block may reach into the next rows. */    \
            const int64_t room = to_step == w.columns ? (end - ih) * w.columns : w.columns;                             \
            if (w.far && sizeof(element) == sizeof(real) && (k == 3 || sizeof(real) == 8))                              \
                for (int channel = 0; channel < team; channel++) {                                                      \
                    aclnn_bw_prefetch((const char *)(to + channel * w.to_channel) + w.to_ahead,                         \
                                      (int)w.columns * (int)sizeof(real));                                              \
                    if (ih % 2 == 0)                                                                                    \
                        aclnn_bw_prefetch(w.grad + channel * w.grad_channel + oh * w.grad_step + w.grad_ahead,          \
                                          (int)w.windows * (int)sizeof(real));                                          \
                }                                                                                                       \
            for (int64_t j = 0; j < n; j += WIDTH) {                                                                    \
                aclnn_bw_##real##s sums[2 * ACLNN_BW_TEAM];                                                             \
                if (j > last)                                                                                           \
                    j = last;                                                                                           \
                if (j + ACLNN_BW_LOW >= 0 && j + ACLNN_BW_HIGH + WIDTH <= w.windows)                                    \
                    aclnn_bw_pair_block_##suffix(sums, w, oh, oh_end - oh, kh, place, j, NULL, k, p, indexed, team, 0); \
                else {                                                                                                  \
                    const aclnn_bw_##real##_indices *lanes = j == 0 ? first_lanes : last_lanes;                         \
                    if (j != 0 && j != last) {                                                                          \
                        aclnn_bw_pair_lanes_##suffix(others, j, w.windows, k, p);                                       \
                        lanes = others;                                                                                 \
                    }                                                                                                   \
                    aclnn_bw_pair_block_##suffix(sums, w, oh, oh_end - oh, kh, place, j, lanes, k, p, indexed, team,    \
                                                 1);                                                                    \
                }                                                                                                       \
                _Pragma("GCC unroll 4")                                                                                 \
                for (int channel = 0; channel < team; channel++) {                                                      \
                    element *out = to + channel * w.to_channel + 2 * j;                                                 \
                    const aclnn_bw_##real##s even = sums[2 * channel], odd = sums[2 * channel + 1];                     \
                    if (room - 2 * j >= 2 * WIDTH)                                                                      \
                        aclnn_bw_mix_##suffix(out, even, odd);                                                          \
                    else {                                                                                              \
                        element mixed[2 * WIDTH];                                                                       \
                        aclnn_bw_mix_##suffix(mixed, even, odd);                                                        \
                        aclnn_bw_store_start(out, mixed, (w.columns - 2 * j) * (int64_t)sizeof(element));               \
                    }                                                                                                   \
                }                                                                                                       \
            }                                                                                                           \
            to += to_step;                                                                                              \
        }                                                                                                               \
    }
#endif
