/* One element type's walk: included by avg_pool2d.h once for each, with the types and their primitives as macros. */

ACLNN_BW_INLINE void NAMED(spread)(CELLS *to, const CELLS *cells, const int stride, const int same)
{
    if (stride == 1) {
        to[0] = cells[0];
    } else if (stride == 2 && same) {
        to[0] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[0], ACLNN_BW_BOTH, LANES, EACH, 0);
        to[1] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[0], ACLNN_BW_BOTH, LANES, EACH, 1);
    } else if (stride == 2) {
        to[0] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[1], ACLNN_BW_PAIR, LANES, EACH, 0);
        to[1] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[1], ACLNN_BW_PAIR, LANES, EACH, 1);
    } else if (same) {
        to[0] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[0], ACLNN_BW_ALL, LANES, EACH, 0);
        to[1] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[0], ACLNN_BW_ALL, LANES, EACH, 1);
        to[2] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[0], ACLNN_BW_ALL, LANES, EACH, 2);
    } else {
        to[0] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[1], ACLNN_BW_TRIPLE, LANES, EACH, 0);
        to[1] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[1], ACLNN_BW_TRIPLE, LANES, EACH, 1);
        to[2] = ACLNN_BW_SPREAD(CELLS, cells[0], cells[1], ACLNN_BW_TRIPLE, LANES, EACH, 2);
        to[0] = ACLNN_BW_SPREAD(CELLS, to[0], cells[2], ACLNN_BW_THIRD, LANES, EACH, 0);
        to[1] = ACLNN_BW_SPREAD(CELLS, to[1], cells[2], ACLNN_BW_THIRD, LANES, EACH, 1);
        to[2] = ACLNN_BW_SPREAD(CELLS, to[2], cells[2], ACLNN_BW_THIRD, LANES, EACH, 2);
    }
}

ACLNN_BW_INLINE REALS NAMED(reals)(const REAL *from)
{
    REALS x;
    memcpy(&x, from, sizeof x);
    return x;
}

/* The first `bytes` of a vector. */
ACLNN_BW_INLINE void NAMED(store_some)(char *to, CELLS cells, int64_t bytes)
{
    const char *from = (const char *)&cells;
    if (bytes >= (int64_t)sizeof cells) {
        memcpy(to, &cells, sizeof cells);
        return;
    }
    for (int64_t size = sizeof cells / 2; size >= (int64_t)sizeof(ELEMENT); size /= 2)
        if (bytes & size) {
            memcpy(to, from, (size_t)size);
            to += size;
            from += size;
        }
}

/* Whether fetches pay at stride 1: without AVX-512 the instructions bind all but doubles. */
#define FETCHES (ACLNN_BW_MASKED || sizeof(ELEMENT) == 8)

/* Store a block's cells: the vectors from `vector` on; piece by piece if the last one would pass the limit. Fetch the
 * cache lines that are stored to next. */
ACLNN_BW_INLINE void NAMED(store)(char *to, const CELLS *cells, const int stride, int vector, const char *limit,
                                  int64_t bytes, int64_t ahead)
{
    const int64_t size = sizeof(CELLS);
    for (int i = 0; i < (FETCHES || stride > 1 ? stride : 0); i += 64 / (int)sizeof(CELLS))
        __builtin_prefetch((const char *)((uintptr_t)to + (uintptr_t)(ahead + i * size)), 1);
    if (to + stride * size <= limit) {
        for (int i = 0; i < stride; i++)
            if (i == stride - 1 || i >= vector)
                memcpy(to + i * size, &cells[i], sizeof(CELLS));
    } else {
        for (int i = 0; i < stride; i++)
            if (bytes > i * size)
                NAMED(store_some)(to + i * size, cells[i], bytes - i * size);
    }
}

#if ACLNN_BW_MASKED
#define SOURCE ELEMENT
#define TERM(from, k, row_factor) \
    (LOAD((const ELEMENT *)(from) + (k), lanes[k]) \
     * (by_column ? (row_factor) * NAMED(reals)(column_factors + (k)) : factor))
#else
#define SOURCE REAL
#define TERM(from, k, row_factor) \
    ((void)(row_factor), (void)column_factors, (void)lanes, NAMED(reals)((const REAL *)(from) + (k)))
#endif

#define TERM_FOUR(from, k, row_factor) \
    (LOAD_FOUR((const ELEMENT *)(from) + (k), lanes[k]) \
     * (by_column ? (row_factor) * NAMED(reals)(column_factors + (k)) : factor))

/* Stride 1: down a block of columns, the running sums in registers (those of the kernels that are constants). */
ACLNN_BW_INLINE void NAMED(walk_block)(const aclnn_bw_walk *w, int64_t group, const char *limit, const int64_t terms,
                                       const int64_t taps, const int by_column, const int shifts)
{
    const int64_t item = sizeof(ELEMENT), from_item = sizeof(SOURCE), warm = terms - 1;
    const int64_t rows = w->rows, rows_out = w->rows_out;
    const int64_t from_down = w->from_down * from_item, to_down = w->to_down * item;
    const int64_t bytes = (w->width - group) * item, window = group + w->first[0];
#if ACLNN_BW_MASKED
    const int64_t ahead = w->ahead;
#endif
    const REAL *column_factors = by_column ? (const REAL *)w->column_factors + group : NULL;
    const REAL *row_factors = w->row_factors;
    const char *from = (const char *)w->from + (w->q - warm - w->from_row) * from_down
                       + (window - w->from_column) * from_item;
    char *to = (char *)w->to + (w->q - w->pad) * to_down + group * item;
    aclnn_bw_lanes lanes[LANES + ACLNN_BW_WALK_TERMS];
    REALS held[ACLNN_BW_WALK_TERMS];
    const REALS zero = {0};
    const REALS factor = zero + (REAL)w->factor;
    for (int64_t k = 0; k < taps; k++)
        lanes[k] = aclnn_bw_lanes_inside(window + k, w->columns_out, LANES);
    lanes[LANES] = aclnn_bw_lanes_inside(window + LANES, w->columns_out, LANES);
    for (int64_t k = 0; k < warm; k++)
        held[k] = zero;
    int64_t oh = w->q - warm;
    for (int64_t row = -warm; row < rows; row++, oh++) {
        REALS across = zero;
#if ACLNN_BW_MASKED
        /* Two planes of doubles and their results can exceed the L1 cache: the next waits in L2 (1.2 times). */
        __builtin_prefetch((const char *)((uintptr_t)from + (uintptr_t)ahead), 0, sizeof(ELEMENT) == 8 ? 2 : 3);
#endif
        if ((uint64_t)oh < (uint64_t)rows_out) {
            const REALS row_factor = by_column ? zero + row_factors[row + warm] : factor;
#if ACLNN_BW_MASKED
            if (shifts) {
                REALS low = TERM(from, 0, row_factor), high = TERM_FOUR(from, LANES, row_factor);
                across = low;
                for (int64_t k = 1; k < taps; k++)
                    across += SHIFT(low, high, k);
            } else
#else
            (void)shifts;
#endif
            {
                across = TERM(from, 0, row_factor);
                for (int64_t k = 1; k < taps; k++)
                    across += TERM(from, k, row_factor);
            }
        }
        from += from_down;
        REALS sum = zero + across;
        for (int64_t k = 0; k < warm; k++) {
            REALS next = held[k] + across;
            held[k] = sum;
            sum = next;
        }
        if (row < 0)
            continue;
        CELLS cells = NARROW(sum);
        NAMED(store)(to, &cells, 1, 0, limit, bytes, rows * to_down);
        to += to_down;
    }
}

/* All blocks. The last comes first: what it stores beyond the row's end is the next row's beginning. */
ACLNN_BW_INLINE void NAMED(walk_blocks)(const aclnn_bw_walk *w, const int64_t terms, const int64_t taps,
                                        const int by_column, const int shifts)
{
    const int64_t last = w->groups > LANES ? w->groups - LANES : 0;
    const char *limit = w->groups < LANES ? (const char *)w->limit : (const char *)UINTPTR_MAX;
    int64_t group = last;
    do {
        NAMED(walk_block)(w, group, limit, terms, taps, by_column, shifts);
        group = group == last ? 0 : group + LANES;
    } while (group < last);
}

static void NAMED(walk)(const aclnn_bw_walk *w)
{
    if (w->column_factors != NULL)
        NAMED(walk_blocks)(w, w->terms, w->count[0], 1, 0);
    else if (w->terms == 3 && w->count[0] == 3)
        NAMED(walk_blocks)(w, 3, 3, 0, 1);
    else if (w->terms == 5 && w->count[0] == 5)
        NAMED(walk_blocks)(w, 5, 5, 0, 1);
    else
        NAMED(walk_blocks)(w, w->terms, w->count[0], 0, 0);
}

/* The sums across a row of windows, of each kind of column: of the terms first[i] .. first[i] + count[i] - 1. */
ACLNN_BW_INLINE void NAMED(sum_row)(REALS *sums, const aclnn_bw_walk *w, const char *from, const REAL *row_factors,
                                    const REAL *column_factors, const aclnn_bw_lanes *lanes, const int kinds,
                                    const int64_t *first, const int64_t *count, const int by_column)
{
    const REALS zero = {0};
    const REALS factor = zero + (by_column ? *row_factors : (REAL)w->factor);
    for (int i = 0; i < kinds; i++) {
        sums[i] = zero;
        if (count[i] > 0)
            sums[i] = TERM(from, first[i], factor);
        if (count[i] > 1)
            sums[i] += TERM(from, first[i] + 1, factor);
    }
}

/* Stride 2 or 3 and at most two terms along an axis: row by row, as they lie in memory. The row of windows above is
 * summed again from the L1 cache: that is cheaper than to keep its sums. */
ACLNN_BW_INLINE void NAMED(spread_rows)(const aclnn_bw_walk *w, const int stride, const int same, const int terms,
                                        const int64_t *first, const int64_t *count, const int by_column)
{
    const int64_t item = sizeof(ELEMENT), from_item = sizeof(SOURCE);
    const int64_t from_down = w->from_down * from_item, to_down = w->to_down * item;
    const int64_t last = w->groups > LANES ? w->groups - LANES : 0;
    const int64_t again = w->groups > LANES ? (LANES - w->groups % LANES) % LANES : 0;
    const int spills = (last + LANES) * stride > w->width;
    const int kinds = same ? 1 : stride;
    const int64_t group_of_rows = w->stride * to_down;
    const int64_t ahead = group_of_rows < ACLNN_BW_AHEAD ? 2 * group_of_rows : 2 * ACLNN_BW_AHEAD;
    const REALS zero = {0};
    aclnn_bw_lanes lanes[3];
    for (int64_t oh = w->q; oh < w->q + w->rows; oh++) {
        const char *from = (const char *)w->from + (oh - w->from_row) * from_down - w->from_column * from_item;
        const REAL *row_factors = by_column ? (const REAL *)w->row_factors + (oh - w->q) : NULL;
        const REAL *factors_here = by_column ? row_factors + terms - 1 : NULL;
        const int there = (uint64_t)oh < (uint64_t)w->rows_out;
        const int before = terms > 1 && (uint64_t)(oh - 1) < (uint64_t)w->rows_out;
        const int64_t top = oh * w->stride - w->pad, short_top = top + w->long_phases;
        const int64_t begin = top > 0 ? top : 0, short_begin = short_top > 0 ? short_top : 0;
        const int64_t end = short_top < w->size ? short_top : w->size;
        const int64_t short_end = top + w->stride < w->size ? top + w->stride : w->size;
        const char *limit = spills ? (const char *)w->limit : (const char *)UINTPTR_MAX;
        int vector = (int)(again * stride / LANES);
        int64_t group = last;
        do {
            const int64_t window = group + w->first[0];
            const int64_t bytes = (w->width - group * stride) * item;
            const REAL *column_factors = by_column ? (const REAL *)w->column_factors + group : NULL;
            char *to = (char *)w->to + group * stride * item;
            REALS sums[3], above[3];
            CELLS narrow[3], cells[3];
            if (window >= 0 && window + LANES + 2 <= w->columns_out)
                lanes[0] = lanes[1] = lanes[2] = ACLNN_BW_ALL_LANES;
            else
                for (int64_t k = 0; k < 3; k++)
                    lanes[k] = aclnn_bw_lanes_inside(window + k, w->columns_out, LANES);
            for (int i = 0; i < kinds; i++)
                sums[i] = above[i] = zero;
            if (there)
                NAMED(sum_row)(sums, w, from + window * from_item, factors_here, column_factors, lanes, kinds, first,
                               count, by_column);
            if (before)
                NAMED(sum_row)(above, w, from + window * from_item - from_down, row_factors, column_factors, lanes,
                               kinds, first, count, by_column);
            for (int i = 0; i < kinds; i++)
                narrow[i] = NARROW(terms > 1 ? zero + above[i] + sums[i] : zero + sums[i]);
            NAMED(spread)(cells, narrow, stride, same);
            for (int64_t ih = begin; ih < end; ih++)
                NAMED(store)(to + ih * to_down, cells, stride, vector, limit, bytes, ahead);
            if (short_begin < short_end) {
                for (int i = 0; i < kinds; i++)
                    narrow[i] = NARROW(terms > 1 ? zero + sums[i] : zero);
                NAMED(spread)(cells, narrow, stride, same);
                for (int64_t ih = short_begin; ih < short_end; ih++)
                    NAMED(store)(to + ih * to_down, cells, stride, vector, limit, bytes, ahead);
            }
            limit = (const char *)UINTPTR_MAX;
            vector = 0;
            group = group == last ? 0 : group + LANES;
        } while (group < last);
    }
}

static void NAMED(spread_walk)(const aclnn_bw_walk *w)
{
    const int64_t first[3] = {0, w->first[1] - w->first[0], w->first[2] - w->first[0]};
    const int64_t ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0}, half_pad[3] = {1, 2, 0}, no_pad[3] = {2, 1, 0};
    const int64_t shifted[3] = {0, 1, 0};
    const int same = w->count[0] == 1 && w->count[1] == 1 && first[1] == 0
                     && (w->w_stride == 2 || (w->count[2] == 1 && first[2] == 0));
    if (w->column_factors != NULL) {
        if (w->w_stride == 2)
            NAMED(spread_rows)(w, 2, 0, (int)w->terms, first, w->count, 1);
        else
            NAMED(spread_rows)(w, 3, 0, (int)w->terms, first, w->count, 1);
    } else if (w->w_stride == 2) {
        if (w->terms == 1 && same)
            NAMED(spread_rows)(w, 2, 1, 1, zeros, ones, 0);
        else if (w->terms == 2 && w->count[0] == 1 && w->count[1] == 2 && first[1] == 0)
            NAMED(spread_rows)(w, 2, 0, 2, zeros, half_pad, 0);
        else if (w->terms == 2 && w->count[0] == 2 && w->count[1] == 1 && first[1] == 1)
            NAMED(spread_rows)(w, 2, 0, 2, shifted, no_pad, 0);
        else
            NAMED(spread_rows)(w, 2, 0, (int)w->terms, first, w->count, 0);
    } else if (w->terms == 1 && same) {
        NAMED(spread_rows)(w, 3, 1, 1, zeros, ones, 0);
    } else {
        NAMED(spread_rows)(w, 3, 0, (int)w->terms, first, w->count, 0);
    }
}

#undef FETCHES
#undef SOURCE
#undef TERM
#undef TERM_FOUR
#undef REAL
#undef REALS
#undef LANES
#undef EACH
#undef ELEMENT
#undef CELLS
#undef LOAD
#undef LOAD_FOUR
#undef NARROW
#undef SHIFT
#undef NAMED
