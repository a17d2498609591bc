/* Rows of the max pool's gradInput for 3 kernel columns at stride 1 and padding 1, by scattering: where a vector holds so
 * few elements that 9 comparisons for each take longer (float64 without AVX-512, float32 without AVX2). See
 * max_pool2d_columns.h, of which this is a part.
 *
 * The order of the sums asks for those of each window column ow apart. Three columns of windows that follow one another
 * reach an element, so there are three planes of sums, thirds: a window adds to the third ow % 3, and an element sums
 * the thirds of ow - 1, ow and ow + 1. The next window never adds to the sum that the one before is still adding to,
 * which makes a scatter slow otherwise.
 *
 * Bits: a word holds the bits of 16 channels. Kernel rows and columns of all their maxima are found at once, then each
 * channel has the places of its maxima, relative to the scratch. A channel that has not one bit in each window, inside
 * the image, is gathered (max_pool2d_lines.h); the order of the sums is the same.
 *
 * In bounds: a row of windows adds to its own rows of the image only, and these are in the scratch: an index has been
 * found in its window before, and a place is one, for its bit is inside the image. A third has room for the rows of four
 * windows, or of the image (plan_gather); if those of the next window do not fit, all rows above it leave. A vector of
 * words reads up to 15 words beyond the windows, where each row of the mask has 16 that nobody uses; the tables of a
 * chunk end on whole vectors.
 *
 * What binds it (AVX2 on Zen 4, read in the assembly): the number of instructions. A window is 6 of them, two loads of
 * numbers and a store among them; 4 elements of the sum are 22, 4 of them stores. Of the time of gathering, one thread,
 * in planes of 28x28 and 56x56: float64 0.75 to 0.9 and 0.7, without AVX2 0.55 (float32 0.85).
 */
#ifndef ACLNN_BW_MAX_POOL2D_THIRDS_H
#define ACLNN_BW_MAX_POOL2D_THIRDS_H

/* The chunk's windows: nibbles and starts. `low`: the row at which places begin. Returns the channels that have not
 * exactly one bit inside the image in each window. */
static inline unsigned aclnn_bw_third_codes(const aclnn_bw_thirds *area, const aclnn_bw_plane *plane, int64_t low,
                                            int64_t oh, int64_t oh_end)
{
    const aclnn_bw_plane w = *plane;
    const int64_t n = (oh_end - oh) * w.windows;
    const char *words = w.mask + 2 * oh * w.windows;
    uint16_t *tops = area->places, *starts = area->starts, faults[ACLNN_BW_CODE_LANES];
    unsigned found = 0;
    int64_t i = 0;
    for (int64_t o = oh; o < oh_end; o++)
        for (int64_t x = 0; x < w.windows; x++, i++) {
            tops[i] = (uint16_t)(o * w.stride - w.pad);
            starts[i] = (uint16_t)x;
        }
    for (; i % ACLNN_BW_CODE_LANES != 0; i++)
        tops[i] = starts[i] = 0;
    for (i = 0; i < n; i += ACLNN_BW_CODE_LANES) {
        aclnn_bw_code rows[4] = {{0}}, columns[4] = {{0}}, once = {0}, twice = {0}, top, x;
        aclnn_bw_code left_inside, right_inside;
        const char *at = words + 2 * i;
        memcpy(&top, tops + i, sizeof top);
        memcpy(&x, starts + i, sizeof x);
        left_inside = (aclnn_bw_code)(x != 0);
        right_inside = (aclnn_bw_code)(x != (uint16_t)(w.columns - 1));
        x += (top - (uint16_t)low) * (uint16_t)w.columns - 1;
        memcpy(starts + i, &x, sizeof x);
        for (int64_t kh = 0; kh < w.kernel; kh++) {
            const aclnn_bw_code row_inside = (aclnn_bw_code)(top + (uint16_t)kh < (uint16_t)w.rows);
            aclnn_bw_code row = {0};
            for (int kw = 0; kw < 3; kw++, at += w.column_step) {
                aclnn_bw_code word;
                aclnn_bw_load_code(&word, at);
                word &= row_inside;
                if (kw != 1)
                    word &= kw == 0 ? left_inside : right_inside;
                twice |= row & word;
                row |= word;
                if (kw > 0)
                    columns[kw - 1] |= word;
            }
            twice |= once & row;
            once |= row;
            for (int b = 0; b < 4; b++)
                rows[b] |= row & (uint16_t)-(kh >> b & 1);
        }
        uint16_t *nibbles = area->nibbles + i / ACLNN_BW_BLOCK * 8 * ACLNN_BW_BLOCK + i % ACLNN_BW_BLOCK;
        aclnn_bw_nibbles(nibbles, rows);
        aclnn_bw_nibbles(nibbles + 4 * ACLNN_BW_BLOCK, columns);
        twice |= ~once;
        memcpy(faults, &twice, sizeof faults);
        for (int64_t j = 0; j < ACLNN_BW_CODE_LANES && j < n - i; j++)
            found |= faults[j];
    }
    return found;
}

/* The places of channel c's maxima in n windows. */
static inline void aclnn_bw_third_places(const aclnn_bw_thirds *area, int c, int64_t width, int64_t n)
{
    const int shift = c / 4 * 4;
    for (int64_t i = 0; i < n; i += ACLNN_BW_CODE_LANES) {
        const uint16_t *nibbles = area->nibbles + (i / ACLNN_BW_BLOCK * 8 + c % 4) * ACLNN_BW_BLOCK
            + i % ACLNN_BW_BLOCK;
        aclnn_bw_code row, column, place;
        memcpy(&row, nibbles, sizeof row);
        memcpy(&column, nibbles + 4 * ACLNN_BW_BLOCK, sizeof column);
        memcpy(&place, area->starts + i, sizeof place);
        place += (row >> shift & 15) * (uint16_t)width + (column >> shift & 15);
        memcpy(area->places + i, &place, sizeof place);
    }
}

/* A row of windows: window x adds to third x % 3, at[x] elements behind the first of `sums`. */
#define ACLNN_BW_THIRD_ROW(name, real, index, unsigned_index)                                                           \
    ACLNN_BW_INLINE void name(real *sums, int64_t third, const real *grad, const index *at, int64_t n)                  \
    {                                                                                                                   \
        real *second = sums + third, *last = second + third;                                                            \
        int64_t x = 0;                                                                                                  \
        for (; x + 3 <= n; x += 3) {                                                                                    \
            sums[(unsigned_index)at[x]] += grad[x];                                                                     \
            second[(unsigned_index)at[x + 1]] += grad[x + 1];                                                           \
            last[(unsigned_index)at[x + 2]] += grad[x + 2];                                                             \
        }                                                                                                               \
        if (x < n)                                                                                                      \
            sums[(unsigned_index)at[x]] += grad[x];                                                                     \
        if (x + 1 < n)                                                                                                  \
            second[(unsigned_index)at[x + 1]] += grad[x + 1];                                                           \
    }

/* The lanes l of b where (l + phase) % 3 is `which`, of a elsewhere. */
#define ACLNN_BW_THIRD_LANE(l, width, phase, which) ((l) + (((l) + (phase)) % 3 == (which) ? (width) : 0))
#define ACLNN_BW_THIRD_LANES_2(phase, which) {                                                                          \
    ACLNN_BW_THIRD_LANE(0, 2, phase, which), ACLNN_BW_THIRD_LANE(1, 2, phase, which)}
#define ACLNN_BW_THIRD_LANES_4(phase, which) {                                                                          \
    ACLNN_BW_THIRD_LANE(0, 4, phase, which), ACLNN_BW_THIRD_LANE(1, 4, phase, which),                                   \
    ACLNN_BW_THIRD_LANE(2, 4, phase, which), ACLNN_BW_THIRD_LANE(3, 4, phase, which)}

/* to[i] = the sum of the thirds (i - 1) % 3, i % 3 and (i + 1) % 3 at i, which become zero. */
#define ACLNN_BW_THIRDS(suffix, real, lanes_list)                                                                       \
    ACLNN_BW_THIRD_ROW(aclnn_bw_third_indices_##suffix, real, aclnn_bw_index, uint32_t)                                 \
    ACLNN_BW_THIRD_ROW(aclnn_bw_third_words_##suffix, real, uint16_t, uint16_t)                                         \
    ACLNN_BW_INLINE void aclnn_bw_third_block_##suffix(real *to, real *sums, int64_t third, const int phase)            \
    {                                                                                                                   \
        const aclnn_bw_##real##_bits second[3] = {lanes_list(0, 1), lanes_list(1, 1), lanes_list(2, 1)};                \
        const aclnn_bw_##real##_bits last[3] = {lanes_list(0, 2), lanes_list(1, 2), lanes_list(2, 2)};                  \
        const aclnn_bw_##real##s zero = {0};                                                                            \
        aclnn_bw_##real##s a, b, c, sum;                                                                                \
        memcpy(&a, sums, sizeof a);                                                                                     \
        memcpy(&b, sums + third, sizeof b);                                                                             \
        memcpy(&c, sums + 2 * third, sizeof c);                                                                         \
        memcpy(sums, &zero, sizeof zero);                                                                               \
        memcpy(sums + third, &zero, sizeof zero);                                                                       \
        memcpy(sums + 2 * third, &zero, sizeof zero);                                                                   \
        sum = __builtin_shuffle(__builtin_shuffle(c, a, second[phase]), b, last[phase])                                 \
            + __builtin_shuffle(__builtin_shuffle(a, b, second[phase]), c, last[phase]);                                \
        sum += __builtin_shuffle(__builtin_shuffle(b, c, second[phase]), a, last[phase]);                               \
        memcpy(to, &sum, sizeof sum);                                                                                   \
    }                                                                                                                   \
    ACLNN_BW_INLINE void aclnn_bw_third_sums_##suffix(real *to, real *sums, int64_t third, int64_t n)                   \
    {                                                                                                                   \
        enum { WIDTH = ACLNN_BW_VECTOR_BYTES / sizeof(real) };                                                          \
        int64_t i = 0;                                                                                                  \
        for (; i + 3 * WIDTH <= n; i += 3 * WIDTH) {                                                                    \
            aclnn_bw_third_block_##suffix(to + i, sums + i, third, 0);                                                  \
            aclnn_bw_third_block_##suffix(to + i + WIDTH, sums + i + WIDTH, third, WIDTH % 3);                          \
            aclnn_bw_third_block_##suffix(to + i + 2 * WIDTH, sums + i + 2 * WIDTH, third, 2 * WIDTH % 3);              \
        }                                                                                                               \
        if (i + WIDTH <= n) {                                                                                           \
            aclnn_bw_third_block_##suffix(to + i, sums + i, third, 0);                                                  \
            i += WIDTH;                                                                                                 \
            if (i + WIDTH <= n) {                                                                                       \
                aclnn_bw_third_block_##suffix(to + i, sums + i, third, WIDTH % 3);                                      \
                i += WIDTH;                                                                                             \
            }                                                                                                           \
        }                                                                                                               \
        for (; i < n; i++) {                                                                                            \
            real *here = sums + i;                                                                                      \
            to[i] = here[(i + 2) % 3 * third] + here[i % 3 * third] + here[(i + 1) % 3 * third];                        \
            here[0] = here[third] = here[2 * third] = 0;                                                                \
        }                                                                                                               \
    }                                                                                                                   \
    /* The thirds of `count` rows become zero. */                                                                       \
    ACLNN_BW_INLINE void aclnn_bw_third_clear_##suffix(real *sums, int64_t third, int64_t count)                        \
    {                                                                                                                   \
        for (int t = 0; t < 3; t++)                                                                                     \
            memset(sums + t * third, 0, (size_t)count * sizeof(real));                                                  \
    }                                                                                                                   \
    /* Rows [ih, end) of gradInput of the plane's channels. Row `base` is the first in the scratch, `next` the first    \
     * that has not left it, `reached` the first that no window has reached. Rows leave it together, when it is full:   \
     * the last sums of a row that has just become complete are still on their way to the cache (0.96 of the time). */  \
    static inline void aclnn_bw_thirds_##suffix(                                                                        \
        real *to, int64_t to_step, const aclnn_bw_plane *plane, int64_t ih, int64_t end, int64_t oh, int indexed)       \
    {                                                                                                                   \
        const aclnn_bw_plane w = *plane;                                                                                \
        const aclnn_bw_thirds *area = w.thirds;                                                                         \
        const int64_t third = area->third, row = w.columns;                                                             \
        int64_t oh_end = oh;                                                                                            \
        ACLNN_BW_FIND_WINDOWS(end - 1)                                                                                  \
        const int64_t top = oh * w.stride - w.pad, low = oh == oh_end || top > ih ? ih : top > 0 ? top : 0;             \
        const unsigned other = indexed ? 0 : aclnn_bw_third_codes(area, plane, low, oh, oh_end) / w.bit;                \
        for (int channel = 0; channel < w.channels; channel++, to += w.to_channel) {                                    \
            const char *grad = w.grad + channel * w.grad_channel;                                                       \
            const char *mask = w.mask + channel * w.mask_channel;                                                       \
            real *sums = (real *)area->sums;                                                                            \
            int64_t base = low, next = low, reached = low;                                                              \
            if (other >> channel & 1) {                                                                                 \
                aclnn_bw_plane one = w;                                                                                 \
                one.grad = grad;                                                                                        \
                one.bit = (uint16_t)(w.bit << channel);                                                                 \
                one.channels = 1;                                                                                       \
                aclnn_bw_lines_##suffix(to, to_step, one, ih, end, oh, 0, 1);                                           \
                continue;                                                                                               \
            }                                                                                                           \
            if (!indexed)                                                                                               \
                aclnn_bw_third_places(area, __builtin_ctz(w.bit) + channel, row, (oh_end - oh) * w.windows);            \
            for (int64_t o = oh; o <= oh_end; o++) {                                                                    \
                const int64_t first = o * w.stride - w.pad;                                                             \
                const int64_t stop = first + w.kernel < w.rows ? first + w.kernel : w.rows;                             \
                const real *terms = (const real *)(const void *)(grad + o * w.grad_step);                               \
                if (o == oh_end || (stop - base) * row > third) {                                                       \
                    const int64_t done = o == oh_end || first > end ? end : first;                                      \
                    for (; next < done; next++) {                                                                       \
                        real *from = sums + (next - base) * row;                                                        \
                        if (next < ih)                                                                                  \
                            aclnn_bw_third_clear_##suffix(from, third, row);                                            \
                        else if (next < reached)                                                                        \
                            aclnn_bw_third_sums_##suffix(to + (next - ih) * to_step, from, third, row);                 \
                        else                                                                                            \
                            memset(to + (next - ih) * to_step, 0, (size_t)row * sizeof(real));                          \
                    }                                                                                                   \
                    if (o == oh_end)                                                                                    \
                        break;                                                                                          \
                    const int64_t kept = reached - next, gone = next - base;                                            \
                    for (int t = 0; t < 3; t++)                                                                         \
                        memmove(sums + t * third, sums + t * third + gone * row, (size_t)(kept * row) * sizeof(real));  \
                    aclnn_bw_third_clear_##suffix(sums + (kept > gone ? kept : gone) * row, third,                      \
                                                  (kept > gone ? gone : kept) * row);                                   \
                    base = next;                                                                                        \
                }                                                                                                       \
                if (w.far) {                                                                                            \
                    aclnn_bw_prefetch((const char *)terms + w.grad_ahead, (int)row * (int)sizeof(real));                \
                    if (indexed)                                                                                        \
                        aclnn_bw_prefetch(mask + 4 * o * w.windows + w.mask_ahead, (int)row * 4);                       \
                    if (first >= ih)                                                                                    \
                        aclnn_bw_prefetch((const char *)(to + (first - ih) * to_step) + w.to_ahead,                     \
                                          (int)row * (int)sizeof(real));                                                \
                }                                                                                                       \
                if (indexed)  /* indices count from row 0 */                                                            \
                    aclnn_bw_third_indices_##suffix(                                                                    \
                        (real *)((uintptr_t)sums - (uintptr_t)(base * row) * sizeof(real)), third, terms,               \
                        (const aclnn_bw_index *)(mask + 4 * o * w.windows), w.windows);                                 \
                else                                                                                                    \
                    aclnn_bw_third_words_##suffix(                                                                      \
                        (real *)((uintptr_t)sums - (uintptr_t)((base - low) * row) * sizeof(real)), third, terms,       \
                        area->places + (o - oh) * w.windows, w.windows);                                                \
                reached = stop > reached ? stop : reached;                                                              \
            }                                                                                                           \
            if (reached > end)                                                                                          \
                aclnn_bw_third_clear_##suffix(sums + (end - base) * row, third, (reached - end) * row);                 \
        }                                                                                                               \
    }

#define ACLNN_BW_IF_THIRDS(suffix)                                                                                      \
    if (plane->thirds) {                                                                                                \
        aclnn_bw_thirds_##suffix(to, to_step, plane, ih, end, oh, indexed);                                             \
        return;                                                                                                         \
    }
#if defined(__AVX2__)
#define ACLNN_BW_THIRDS_f32
#define ACLNN_BW_IF_THIRDS_f32
#define ACLNN_BW_THIRDS_f64 ACLNN_BW_THIRDS(f64, double, ACLNN_BW_THIRD_LANES_4)
#else
#define ACLNN_BW_THIRDS_f32 ACLNN_BW_THIRDS(f32, float, ACLNN_BW_THIRD_LANES_4)
#define ACLNN_BW_IF_THIRDS_f32 ACLNN_BW_IF_THIRDS(f32)
#define ACLNN_BW_THIRDS_f64 ACLNN_BW_THIRDS(f64, double, ACLNN_BW_THIRD_LANES_2)
#endif
#define ACLNN_BW_IF_THIRDS_f64 ACLNN_BW_IF_THIRDS(f64)
#endif
