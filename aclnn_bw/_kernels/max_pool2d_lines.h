/* Rows of the max pool's gradInput for 3 kernel columns at stride 1 and padding 1, without lane masks: see
 * max_pool2d_columns.h, of which this is a part.
 *
 * Rows that lie end to end are one long row. Bits: element i has its windows at i + 1, i, i - 1 for kernel columns 0,
 * 1, 2. Their words are widened, shifted and freed from what lies beyond an end of a row, once for a block of all
 * channels of a team; each channel then doubles them, so that its bit is the sign by which a term is chosen. Indices: a
 * block has the windows' sums of each kernel column, which slide to their elements (0.7 of the time of loading indices
 * and gradients at three places). They need no look at the ends of rows: they have been found to lie in their windows,
 * and what a kernel column would add beyond an end lies outside, for a row has at least 3 windows, or a column one.
 *
 * In bounds: blocks are loaded as a whole where all their elements, and for bits the neighbours of these, have windows.
 * Of gradients and indices any other block loads only the lanes that have windows. Of words it loads all, if any lane
 * has a window: at most 8 words before a row of the mask, never the first, and 8 beyond its windows; there rows end in
 * a block of 16 words that nobody uses.
 *
 * What binds it (AVX2 on Zen 4, read in the assembly): the number of instructions. Of bits eight columns of 3x3 windows
 * in float32 are 46: 9 each of loads under a mask, additions and doublings, the store, and addresses; of indices 58, 9
 * comparisons and 9 ANDs among them. A blend with zeros instead of the load under a mask takes as long.
 */
#ifndef ACLNN_BW_MAX_POOL2D_LINES_H
#define ACLNN_BW_MAX_POOL2D_LINES_H

#if defined(__AVX2__)
#define ACLNN_BW_LANE_BIT_float {1, 2, 4, 8, 16, 32, 64, 128}
#define ACLNN_BW_LANE_BIT_double {1, 2, 4, 8}
/* The last n lanes of `before`, and the first of `block` after them. */
#define ACLNN_BW_SLID(real, block, before, n)                                                                           \
    (aclnn_bw_##real##s)_mm256_alignr_epi8(                                                                             \
        (__m256i)(block), _mm256_permute2x128_si256((__m256i)(before), (__m256i)(block), 0x21),                         \
        16 - (n) * (int)sizeof(real))
#else
#define ACLNN_BW_LANE_BIT_float {1, 2, 4, 8}
#define ACLNN_BW_LANE_BIT_double {1, 2}
#if defined(__SSSE3__)
#define ACLNN_BW_SLID(real, block, before, n)                                                                           \
    (aclnn_bw_##real##s)_mm_alignr_epi8((__m128i)(block), (__m128i)(before), 16 - (n) * (int)sizeof(real))
#else
#define ACLNN_BW_SLID(real, block, before, n) aclnn_bw_slid_##real(block, before, n)
#define ACLNN_BW_SLIDE_LANES(real)                                                                                      \
    ACLNN_BW_INLINE aclnn_bw_##real##s aclnn_bw_slid_##real(aclnn_bw_##real##s block, aclnn_bw_##real##s before, int n) \
    {                                                                                                                   \
        const aclnn_bw_##real##s both[2] = {before, block};                                                             \
        memcpy(&block, (const char *)both + sizeof block - (size_t)n * sizeof(real), sizeof block);                     \
        return block;                                                                                                   \
    }
ACLNN_BW_SLIDE_LANES(float)
ACLNN_BW_SLIDE_LANES(double)
#endif
#endif

#define ACLNN_BW_PUT(suffix, real)                                                                                      \
    ACLNN_BW_INLINE void aclnn_bw_put_##suffix(real *to, aclnn_bw_##real##s sum)                                        \
    {                                                                                                                   \
        memcpy(to, &sum, sizeof sum);                                                                                   \
    }
ACLNN_BW_PUT(f32, float)
ACLNN_BW_PUT(f64, double)
#if ACLNN_BW_NARROWS(ACLNN_BW_SAME)
ACLNN_BW_INLINE void aclnn_bw_put_f16(uint16_t *to, aclnn_bw_floats sum)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph((__m256)sum, _MM_FROUND_TO_NEAREST_INT));
}

ACLNN_BW_INLINE void aclnn_bw_put_bf16(uint16_t *to, aclnn_bw_floats sum)
{
    const __m256i upper = _mm256_srli_epi32(aclnn_bw_round_8(sum), 16);
    _mm_storeu_si128((__m128i *)(void *)to,
                     _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}
#endif

/* Bits that are added up lose the sign, which only unsigned numbers may. */
typedef uint32_t aclnn_bw_float_uints __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));
typedef uint64_t aclnn_bw_double_uints __attribute__((vector_size(ACLNN_BW_VECTOR_BYTES)));

#define ACLNN_BW_LINE(suffix, element, real)                                                                            \
    /* Elements [i, i + WIDTH) of n; bit l of `inside[kw]` says that the window of element i + l at kernel column kw    \
     * lies in its row. `rows`: 3, of which those without terms are empty, or the number of terms. */                   \
    ACLNN_BW_INLINE void aclnn_bw_bits_block_##suffix(                                                                  \
        element *to, aclnn_bw_plane w, const aclnn_bw_term *terms, int64_t i, int64_t n, const uint32_t *inside,        \
        int team, const int rows, const int partial)                                                                    \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        const aclnn_bw_##real##_indices lane_bit = ACLNN_BW_LANE_BIT_##real;                                            \
        /* Makes the last channel's bit the sign. */                                                                    \
        const int up = 8 * (int)sizeof(real) - team - __builtin_ctz(w.bit);                                             \
        aclnn_bw_##real##_bits words[3 * ACLNN_BW_MOST_ROWS], lanes[3] = {{0}, {0}, {0}};                               \
        for (int kw = 0; kw < 3; kw++)                                                                                  \
            lanes[kw] = ACLNN_BW_SPREAD_##real((lane_bit & (int32_t)inside[kw]) == lane_bit);                           \
        _Pragma("GCC unroll 3")                                                                                         \
        for (int row = 0; row < rows; row++)                                                                            \
            _Pragma("GCC unroll 3")                                                                                     \
            for (int kw = 0; kw < 3; kw++) {                                                                            \
                const char *mask = terms[row].mask + kw * w.column_step + 2 * (i + 1 - kw);                             \
                aclnn_bw_##real##_bits *word = &words[3 * row + kw];                                                    \
                if (partial) {                                                                                          \
                    const int32_t there = (int32_t)(inside[kw] & aclnn_bw_lanes(&terms[row], i, WIDTH));                \
                    *word = (aclnn_bw_##real##_bits){0};                                                                \
                    if (there)                                                                                          \
                        *word = ACLNN_BW_WIDEN_WORDS_##real(mask) << up                                                 \
                            & ACLNN_BW_SPREAD_##real((lane_bit & there) == lane_bit);                                   \
                } else {                                                                                                \
                    *word = ACLNN_BW_WIDEN_WORDS_##real(mask) << up;                                                    \
                    if (kw != 1)                                                                                        \
                        *word &= lanes[kw];                                                                             \
                }                                                                                                       \
            }                                                                                                           \
        for (int channel = 0; channel < team && i % (2 * WIDTH) == 0; channel++) {                                      \
            aclnn_bw_prefetch(terms[0].grad + channel * w.grad_channel + w.grad_ahead + i * (int64_t)sizeof(real), 64); \
            aclnn_bw_prefetch((const char *)(to + channel * w.to_channel + i) + w.to_ahead, 64);                        \
        }                                                                                                               \
        for (int channel = team - 1; channel >= 0; channel--) {                                                         \
            aclnn_bw_##real##s sums[3] = {{0}, {0}, {0}};                                                               \
            _Pragma("GCC unroll 3")                                                                                     \
            for (int row = 0; row < rows; row++)                                                                        \
                _Pragma("GCC unroll 3")                                                                                 \
                for (int kw = 2; kw >= 0; kw--) {                                                                       \
                    const char *grad = terms[row].grad + channel * w.grad_channel + (i + 1 - kw) * (int)sizeof(real);   \
                    const aclnn_bw_##real##s term = ACLNN_BW_LOAD_CHOSEN_##real(                                        \
                        grad, ACLNN_BW_CHOSEN_BY_##real(words[3 * row + kw]), partial);                                 \
                    sums[kw] = row == 0 ? term : sums[kw] + term;                                                       \
                }                                                                                                       \
            _Pragma("GCC unroll 9")                                                                                     \
            for (int word = 0; word < 3 * rows; word++)                                                                 \
                words[word] = (aclnn_bw_##real##_bits)(                                                                 \
                    (aclnn_bw_##real##_uints)words[word] + (aclnn_bw_##real##_uints)words[word]);                       \
            /* Only now does a sum of nothing but -0.0 become +0.0: two additions less. */                              \
            sums[0] = sums[2] + sums[1] + sums[0] + (aclnn_bw_##real##s){0};                                            \
            if (n >= WIDTH)                                                                                             \
                aclnn_bw_put_##suffix(to + channel * w.to_channel + i, sums[0]);                                        \
            else {                                                                                                      \
                element block[WIDTH];                                                                                   \
                aclnn_bw_put_##suffix(block, sums[0]);                                                                  \
                aclnn_bw_store_start(to + channel * w.to_channel, block, n * (int64_t)sizeof(element));                 \
            }                                                                                                           \
        }                                                                                                               \
    }                                                                                                                   \
    /* n elements, whose windows lie at terms[t] in [begin, end) each. */                                               \
    ACLNN_BW_INLINE void aclnn_bw_bits_line_##suffix(                                                                   \
        element *to, aclnn_bw_plane w, const aclnn_bw_term *terms, int64_t n, int64_t whole, int64_t whole_end,         \
        int team, const int rows)                                                                                       \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        for (int64_t i = 0, x = 0; i < n; i += WIDTH, x += WIDTH) {                                                     \
            if (i > n - WIDTH && n >= WIDTH) {  /* the last block overlaps the one before */                            \
                x -= i - (n - WIDTH);                                                                                   \
                i = n - WIDTH;                                                                                          \
            }                                                                                                           \
            while (x >= w.columns)                                                                                      \
                x -= w.columns;                                                                                         \
            while (x < 0)                                                                                               \
                x += w.columns;                                                                                         \
            const uint32_t inside[3] = {w.edges[x + 1], ~0u, w.edges[x]};                                               \
            if ((rows == 3 || rows == 1) && whole < i && i + WIDTH < whole_end)                                         \
                aclnn_bw_bits_block_##suffix(to, w, terms, i, n, inside, team, rows, 0);                                \
            else                                                                                                        \
                aclnn_bw_bits_block_##suffix(to, w, terms, i, n, inside, team, rows, 1);                                \
        }                                                                                                               \
    }                                                                                                                   \
    /* The sums of a block of windows at i, by kernel column. */                                                        \
    ACLNN_BW_INLINE void aclnn_bw_indices_block_##suffix(                                                               \
        aclnn_bw_##real##s *sums, const aclnn_bw_term *terms, int64_t i, int32_t place, const int rows,                 \
        const int partial)                                                                                              \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        const aclnn_bw_##real##_indices lane_bit = ACLNN_BW_LANE_BIT_##real;                                            \
        const aclnn_bw_##real##_bits first = (aclnn_bw_##real##_bits)ACLNN_BW_LANE_##real + (int32_t)(place + i - 1);   \
        _Pragma("GCC unroll 3")                                                                                         \
        for (int row = 0; row < rows; row++) {                                                                          \
            const char *grad = terms[row].grad + i * (int64_t)sizeof(real), *mask = terms[row].mask + 4 * i;            \
            aclnn_bw_##real##_indices seen;                                                                             \
            aclnn_bw_##real##s value;                                                                                   \
            if (partial) {                                                                                              \
                const int32_t there = (int32_t)aclnn_bw_lanes(&terms[row], i, WIDTH);                                   \
                const aclnn_bw_##real##_indices lanes = (lane_bit & there) == lane_bit;                                 \
                seen = ACLNN_BW_SOME_SEEN_##real(mask, lanes);                                                          \
                value = ACLNN_BW_LOAD_CHOSEN_##real(grad, ACLNN_BW_SPREAD_##real(lanes), 1);                            \
            } else {                                                                                                    \
                memcpy(&seen, mask, sizeof seen);                                                                       \
                memcpy(&value, grad, sizeof value);                                                                     \
            }                                                                                                           \
            const aclnn_bw_##real##_bits index = ACLNN_BW_SPREAD_##real(seen);                                          \
            _Pragma("GCC unroll 3")                                                                                     \
            for (int kw = 0; kw < 3; kw++) {                                                                            \
                const aclnn_bw_##real##_bits chosen = (aclnn_bw_##real##_bits)value & (index == first + kw);            \
                const aclnn_bw_##real##s term = (aclnn_bw_##real##s)chosen;                                             \
                sums[kw] = row == 0 ? term : sums[kw] + term;                                                           \
            }                                                                                                           \
        }                                                                                                               \
    }                                                                                                                   \
    /* The same as of bits, for one channel; `place` is the index of the first element. A block has the windows' sums of\
     * each kernel column, which slide to their element: element i - 1 is the first of the block at i. */               \
    ACLNN_BW_INLINE void aclnn_bw_indices_line_##suffix(                                                                \
        element *to, const aclnn_bw_term *terms, int64_t n, int64_t whole, int64_t whole_end, int32_t place,            \
        const int rows)                                                                                                 \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        aclnn_bw_##real##s before[3] = {{0}, {0}, {0}};                                                                 \
        for (int64_t i = 0; i <= n; i += WIDTH) {                                                                       \
            aclnn_bw_##real##s sums[3] = {{0}, {0}, {0}}, sum;                                                          \
            if ((rows == 3 || rows == 1) && whole <= i && i + WIDTH <= whole_end)                                       \
                aclnn_bw_indices_block_##suffix(sums, terms, i, place, rows, 0);                                        \
            else if (i < n)                                                                                             \
                aclnn_bw_indices_block_##suffix(sums, terms, i, place, rows, 1);                                        \
            sum = ACLNN_BW_SLID(real, sums[2], before[2], 2) + ACLNN_BW_SLID(real, sums[1], before[1], 1) + sums[0]     \
                + (aclnn_bw_##real##s){0};                                                                              \
            before[1] = sums[1];                                                                                        \
            before[2] = sums[2];                                                                                        \
            if (i > 0 && i - 1 + WIDTH <= n)                                                                            \
                aclnn_bw_put_##suffix(to + i - 1, sum);                                                                 \
            else {                                                                                                      \
                element block[WIDTH];                                                                                   \
                const int64_t skip = i == 0, end = n - i + 1 < WIDTH ? n - i + 1 : WIDTH;                               \
                aclnn_bw_put_##suffix(block, sum);                                                                      \
                aclnn_bw_store_start(to + i - 1 + skip, block + skip, (end - skip) * (int64_t)sizeof(element));         \
            }                                                                                                           \
        }                                                                                                               \
    }                                                                                                                   \
    ACLNN_BW_INLINE void aclnn_bw_line_##suffix(                                                                        \
        element *to, aclnn_bw_plane w, aclnn_bw_term *terms, int64_t count, int64_t n, int32_t place,                   \
        const int indexed, int team)                                                                                    \
    {                                                                                                                   \
        const aclnn_bw_term none = {w.grad, w.mask, 0, 0};                                                              \
        int64_t whole = 0, whole_end = n;                                                                               \
        for (; count != 1 && count < 3; count++)                                                                        \
            terms[count] = none;                                                                                        \
        for (int64_t t = 0; t < count; t++) {                                                                           \
            whole = terms[t].begin > whole ? terms[t].begin : whole;                                                    \
            whole_end = terms[t].end < whole_end ? terms[t].end : whole_end;                                            \
        }                                                                                                               \
        if (!indexed) {                                                                                                 \
            if (count == 3)                                                                                             \
                aclnn_bw_bits_line_##suffix(to, w, terms, n, whole, whole_end, team, 3);                                \
            else if (count == 1)                                                                                        \
                aclnn_bw_bits_line_##suffix(to, w, terms, n, whole, whole_end, team, 1);                                \
            else                                                                                                        \
                aclnn_bw_bits_line_##suffix(to, w, terms, n, whole, whole_end, team, (int)count);                       \
            return;                                                                                                     \
        }                                                                                                               \
        for (int channel = 0; channel < team; channel++) {                                                              \
            if (count == 3)                                                                                             \
                aclnn_bw_indices_line_##suffix(to, terms, n, whole, whole_end, place, 3);                               \
            else if (count == 1)                                                                                        \
                aclnn_bw_indices_line_##suffix(to, terms, n, whole, whole_end, place, 1);                               \
            else                                                                                                        \
                aclnn_bw_indices_line_##suffix(to, terms, n, whole, whole_end, place, (int)count);                      \
            to += w.to_channel;                                                                                         \
            for (int64_t t = 0; t < count; t++) {                                                                       \
                terms[t].grad += w.grad_channel;                                                                        \
                terms[t].mask += w.mask_channel;                                                                        \
            }                                                                                                           \
        }                                                                                                               \
    }
#endif
