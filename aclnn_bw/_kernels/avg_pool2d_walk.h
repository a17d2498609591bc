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

ACLNN_BW_INLINE void NAMED(store_cells)(char *to, const CELLS *cells)
{
#if ACLNN_BW_MASKED
    memcpy(to, cells, sizeof *cells);
#else
    /* Of a memcpy of 32 bytes gcc 12, tuned for no processor, makes two moves by way of the stack. */
    typedef CELLS loose __attribute__((aligned(1), may_alias));
    *(loose *)to = *cells;
#endif
}

#ifdef NARROW_TWO
/* Two vectors of cells. */
ACLNN_BW_INLINE void NAMED(store_wide)(char *to, aclnn_bw_words cells)
{
    typedef aclnn_bw_words loose __attribute__((aligned(1), may_alias));
    *(loose *)to = cells;
}
#endif

/* The first `bytes` of a vector. */
ACLNN_BW_RARE void NAMED(store_some)(char *to, CELLS cells, int64_t bytes)
{
    const char *from = (const char *)&cells;
    if (bytes >= (int64_t)sizeof cells) {
        NAMED(store_cells)(to, &cells);
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
ACLNN_BW_INLINE void NAMED(store)(char *to, const CELLS *cells, const int vectors, int vector, const char *limit,
                                  int64_t bytes, const int fetches, int64_t ahead)
{
    const int64_t size = sizeof(CELLS);
    for (int i = 0; i < (fetches ? vectors : 0); i += 64 / (int)sizeof(CELLS))
        __builtin_prefetch((const char *)((uintptr_t)to + (uintptr_t)(ahead + i * size)), 1);
    if (to + vectors * size <= limit) {
        for (int i = 0; i < vectors; i++)
            if (i == vectors - 1 || i >= vector)
                NAMED(store_cells)(to + i * size, &cells[i]);
    } else {
        for (int i = 0; i < vectors; i++)
            if (bytes > i * size)
                NAMED(store_some)(to + i * size, cells[i], bytes - i * size);
    }
}

#if ACLNN_BW_MASKED
#define KEEP(load, from, k, cut) load((const ELEMENT *)(from) + (k), lanes[k])
#else
#define KEEP(load, from, k, cut) \
    (cut ? (REALS)((KEPT)load((const ELEMENT *)(from) + (k)) & lanes[k]) : load((const ELEMENT *)(from) + (k)))

/* `from`, or a copy of its n windows with zeros around where vectors would look beyond what may be read. */
ACLNN_BW_RARE const char *NAMED(copy_row)(ELEMENT *to, const char *from, int64_t window, int64_t windows, int64_t n)
{
    int64_t begin = window < 0 ? -window : 0, end = windows - window < n ? windows - window : n;
    memset(to, 0, (size_t)n * sizeof(ELEMENT));
    for (int64_t i = begin; i < end; i++)
        memcpy(to + i, from + i * (int64_t)sizeof(ELEMENT), sizeof(ELEMENT));
    return (const char *)to;
}

ACLNN_BW_INLINE const char *NAMED(row)(const aclnn_bw_walk *w, ELEMENT *copy, const char *from, int64_t window,
                                       int64_t n)
{
    if ((uintptr_t)from >= (uintptr_t)w->from_begin
        && (uintptr_t)from + (uintptr_t)n * sizeof(ELEMENT) <= (uintptr_t)w->from_end)
        return from;
    return NAMED(copy_row)(copy, from, window, w->columns_out, n);
}
#endif
#define TERM(load, from, k, row_factor, cut) \
    (KEEP(load, from, k, cut) * (by_column ? (row_factor) * NAMED(reals)(column_factors + (k)) : factor))

/* Whether terms are made before they are summed: those of the 16-bit types, which are converted once then. */
#define BY_TERMS (!ACLNN_BW_MASKED && sizeof(ELEMENT) == 2)

/* Whether the terms beside the first are shuffled out of two vectors; else each is loaded. */
#define SHIFTS ACLNN_BW_MASKED

/* And, with two terms along h, those of float32: made once for two rows of them. */
#define SPREADS_TERMS (!ACLNN_BW_MASKED && sizeof(REAL) == 4)

#define CUT(v) ((cut & 1 && (v) == 0) || (cut & 2 && (v) >= vectors - 1) || cut == 4)

/* Stride 1: down a block of columns, one or two vectors wide, the running sums in registers (those of the kernels that
 * are constants). `cut` says of which vectors windows may be missing: none, the first (1), the last (2), or any (4). */
ACLNN_BW_INLINE void NAMED(walk_block)(const aclnn_bw_walk *w, int64_t group, const char *limit, const int64_t terms,
                                       const int64_t taps, const int by_column, const int shifts, const int vectors,
                                       const int cut)
{
    const int64_t item = sizeof(ELEMENT), warm = terms - 1, block = vectors * LANES;
    const int64_t rows = w->rows, rows_out = w->rows_out;
    const int64_t from_down = w->from_down * item, to_down = w->to_down * item;
    const int64_t bytes = (w->width - group) * item, window = group + w->first[0];
    const int64_t ahead = w->ahead;
    const REAL *column_factors = by_column ? (const REAL *)w->column_factors + group : NULL;
    const REAL *row_factors = w->row_factors;
    const char *from = (const char *)w->from + (w->q - warm - w->from_row) * from_down
                       + (window - w->from_column) * item;
    char *to = (char *)w->to + (w->q - w->pad) * to_down + group * item;
    KEPT lanes[ACLNN_BW_VECTORS * LANES + ACLNN_BW_WALK_TERMS];
    REALS held[ACLNN_BW_VECTORS][ACLNN_BW_WALK_TERMS];
    const REALS zero = {0};
    const REALS factor = zero + (REAL)w->factor;
#if !ACLNN_BW_MASKED
    ELEMENT copy[ACLNN_BW_VECTORS * LANES + ACLNN_BW_WALK_TERMS];
#endif
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t k = 0; k < taps; k++)
            lanes[v * LANES + k] = INSIDE(window + v * LANES + k, w->columns_out, LANES);
    lanes[block] = INSIDE(window + block, w->columns_out, LANES);
    for (int64_t k = 0; k < warm; k++)
        for (int64_t v = 0; v < vectors; v++)
            held[v][k] = zero;
    (void)cut;
    int64_t oh = w->q - warm;
    for (int64_t row = -warm; row < rows; row++, oh++) {
        REALS across[ACLNN_BW_VECTORS];
        for (int64_t v = 0; v < vectors; v++)
            across[v] = zero;
        /* Two planes of doubles and their results can exceed the L1 cache: the next waits in L2 (1.2 times). */
        __builtin_prefetch((const char *)((uintptr_t)from + (uintptr_t)ahead), 0, sizeof(ELEMENT) == 8 ? 2 : 3);
        if ((uint64_t)oh < (uint64_t)rows_out) {
            const REALS row_factor = by_column ? zero + row_factors[row + warm] : factor;
            const char *here = from;
#if !ACLNN_BW_MASKED
            if (cut)
                here = NAMED(row)(w, copy, from, window, block + (shifts ? 4 : taps - 1));
#endif
            if (shifts) {
                REALS low[ACLNN_BW_VECTORS + 1];
                for (int64_t v = 0; v < vectors; v++)
                    low[v] = TERM(LOAD, here, v * LANES, row_factor, CUT(v));
                low[vectors] = TERM(LOAD_FOUR, here, block, row_factor, CUT(vectors));
                for (int64_t v = 0; v < vectors; v++) {
                    across[v] = low[v];
                    for (int64_t k = 1; k < taps; k++)
                        across[v] += SHIFT(low[v], low[v + 1], k);
                }
            } else {
                for (int64_t v = 0; v < vectors; v++) {
                    across[v] = TERM(LOAD, here, v * LANES, row_factor, CUT(v));
                    for (int64_t k = 1; k < taps; k++)
                        across[v] += TERM(LOAD, here, v * LANES + k, row_factor, CUT(v));
                }
            }
        }
        from += from_down;
        REALS sums[ACLNN_BW_VECTORS];
        for (int64_t v = 0; v < vectors; v++) {
            sums[v] = zero + across[v];
            for (int64_t k = 0; k < warm; k++) {
                REALS next = held[v][k] + across[v];
                held[v][k] = sums[v];
                sums[v] = next;
            }
        }
        if (row < 0)
            continue;
        CELLS cells[ACLNN_BW_VECTORS];
        for (int64_t v = 0; v < vectors; v++)
            cells[v] = NARROW(sums[v]);
        NAMED(store)(to, cells, vectors, 0, limit, bytes, FETCHES, rows * to_down);
        to += to_down;
    }
}

/* All blocks. The last comes first: what it stores beyond the row's end is the next row's beginning. */
ACLNN_BW_INLINE void NAMED(walk_blocks)(const aclnn_bw_walk *w, const int64_t terms, const int64_t taps,
                                        const int by_column, const int shifts, const int vectors)
{
    const int64_t block = vectors * LANES;
    const int64_t last = w->groups > block ? w->groups - block : 0;
    const char *limit = w->groups < block ? (const char *)w->limit : (const char *)UINTPTR_MAX;
    int64_t group = last;
#if !ACLNN_BW_MASKED
    /* What is left of the columns behind the blocks may fit one vector: float32 takes 0.9 of the time in rows of 56. */
    const int64_t left = w->groups % block;
    const int one = vectors > 1 && last > 0 && left > 0 && left <= LANES;
    const int64_t end = one ? w->groups - left : last;
    if (one) {
        NAMED(walk_block)(w, w->groups - LANES, limit, terms, taps, by_column, shifts, 1, 4);
        group = 0;
    }
#else
    const int64_t end = last;
#endif
    do {
#if !ACLNN_BW_MASKED
        int cut = 4;
        /* Of the kernels that are constants the vectors inside the row are spared the clearing of lanes; float32 takes
         * 0.9 of the time in rows of 28 and 35. */
        const int64_t window = group + w->first[0], over = window + block + (shifts ? 4 : taps - 1) - w->columns_out;
        if (vectors > 1 && -LANES <= window && over <= LANES && (window >= 0 || over <= 0))
            cut = (window < 0) + 2 * (over > 0);
        if (cut == 0)
            NAMED(walk_block)(w, group, limit, terms, taps, by_column, shifts, vectors, 0);
        else if (cut == 1)
            NAMED(walk_block)(w, group, limit, terms, taps, by_column, shifts, vectors, 1);
        else if (cut == 2)
            NAMED(walk_block)(w, group, limit, terms, taps, by_column, shifts, vectors, 2);
        else
#endif
            NAMED(walk_block)(w, group, limit, terms, taps, by_column, shifts, vectors, 4);
        group = group == last ? 0 : group + block;
    } while (group < end);
}

#if !ACLNN_BW_MASKED
/* At most ROOM terms are made at a time, and fewer than PIECE + LANES groups of columns of a spread. */
#define ROOM ((int64_t)(ACLNN_BW_TERMS_BYTES / sizeof(REAL)))
#define PIECE 256
#define AROUND 64                   /* elements: what AT adds, and what vectors store behind the last row */

ACLNN_BW_INLINE REALS NAMED(add)(REALS a, REALS b)
{
#ifdef MULTIPLY_ADD
    /* In the pipes of the products, which the sums down the columns leave idle; a * 1 is exact. */
    REALS one = (REALS){0} + 1;
    __asm__("" : "+x"(one));        /* else a compiler makes it an addition again */
    return (REALS)MULTIPLY_ADD(a, one, b);
#else
    return a + b;
#endif
}

ACLNN_BW_INLINE void NAMED(store_reals)(REAL *to, REALS x)
{
    typedef REALS loose __attribute__((aligned(sizeof(REAL)), may_alias));
    *(loose *)to = x;
}

/* At least n zeros, and at most LANES - 1 more. */
ACLNN_BW_INLINE void NAMED(store_zeros)(REAL *to, int64_t n)
{
    for (; n > 0; n -= LANES, to += LANES) {
        NAMED(store_reals)(to, (REALS){0});
        __asm__("" : "+r"(to));     /* else it is a call of memset, which takes as long as a row */
    }
}

/* Elements i .. i + LANES - 1 of a row, times their factors. */
#define FROM_ROW(i) (LOAD(row + (i)) * (by_column ? factor * NAMED(reals)(column_factors + (i)) : factor))

/* The terms of the windows [oh, oh + rows) x [window, window + n), each row `pitch` behind the other; zeros where there
 * is no window.
 *
 * Bounds. The windows [begin, end) of a row exist. The vectors that read them begin at one of them; they end at or
 * before `end` or, in a row shorter than a vector, before from_end. What such a vector stores in excess lies before
 * begin + LANES <= n <= pitch: the callers' n is at least LANES + taps - 1, and fewer than `taps` windows are missing
 * at the left. Zeros follow, up to the next row's first window. Of the factors there are terms + 1 more than LANES from
 * the first on, and LANES from the first of a later piece on: all of a short row's vector. */
static __attribute__((noinline)) void NAMED(make_terms)(const aclnn_bw_walk *w, REAL *to, int64_t pitch, int64_t oh,
                                                        int64_t rows, int64_t window, int64_t n)
{
    const int64_t inside = w->columns_out - window < n ? w->columns_out - window : n;
    const int64_t before = window < 0 ? -window : 0, begin = before < n ? before : n;
    const int64_t end = inside > begin ? inside : begin;
    const int by_column = w->column_factors != NULL;
    const REAL *column_factors = by_column ? (const REAL *)w->column_factors + (window - w->first[0]) : NULL;
    const REAL *row_factors = by_column ? (const REAL *)w->row_factors + (oh - (w->q - (w->terms - 1))) : NULL;
    NAMED(store_zeros)(to, begin);
    for (int64_t r = 0; r < rows; r++, oh++, to += pitch) {
        if ((uint64_t)oh >= (uint64_t)w->rows_out) {
            NAMED(store_zeros)(to + begin, pitch);
            continue;
        }
        const ELEMENT *row = (const ELEMENT *)w->from + ((oh - w->from_row) * w->from_down + window - w->from_column);
        const REALS factor = (REALS){0} + (by_column ? row_factors[r] : (REAL)w->factor);
        int64_t i = begin;
        if (by_column)
            for (; i <= end - LANES; i += LANES)
                NAMED(store_reals)(to + i, FROM_ROW(i));
        else
            for (; i <= end - LANES; i += LANES)
                NAMED(store_reals)(to + i, FROM_ROW(i));
        if (i < end) {
            if (end - begin >= LANES)
                NAMED(store_reals)(to + end - LANES, FROM_ROW(end - LANES));
            else if ((uintptr_t)(row + i) + LANES * sizeof(ELEMENT) <= (uintptr_t)w->from_end)
                NAMED(store_reals)(to + i, FROM_ROW(i));
            else
                for (; i < end; i++)
                    to[i] = WIDEN_ONE(row[i]) * (by_column ? factor[0] * column_factors[i] : factor[0]);
        }
        NAMED(store_zeros)(to + end, pitch - (end - begin));
    }
}

/* Where the terms begin: the first window of a row that exists lies at the beginning of a vector. */
#define AT(room, window) ((room) + ((window) < 0 && (window) > -LANES ? LANES + (window) : 0))

/* Stride 1: down a block of columns, one or two vectors wide, the running sums in registers (those of the kernels that
 * are constants). */
ACLNN_BW_INLINE void NAMED(walk_terms)(const REAL *from, int64_t pitch, char *to, int64_t to_down, int64_t rows,
                                       int64_t bytes, const char *limit, const int64_t terms, const int64_t taps,
                                       const int vectors)
{
    const int64_t warm = terms - 1;
    const REALS zero = {0};
    REALS held[2][ACLNN_BW_WALK_TERMS];
    for (int64_t k = 0; k < warm; k++)
        for (int64_t v = 0; v < vectors; v++)
            held[v][k] = zero;
    for (int64_t row = -warm; row < rows; row++, from += pitch) {
        REALS sums[2], across[2];
        CELLS cells[2];
        for (int64_t v = 0; v < vectors; v++) {
            across[v] = NAMED(reals)(from + v * LANES);
            for (int64_t k = 1; k < taps; k++)
                across[v] = NAMED(add)(across[v], NAMED(reals)(from + v * LANES + k));
        }
        for (int64_t v = 0; v < vectors; v++) {
            sums[v] = zero + across[v];
            for (int64_t k = 0; k < warm; k++) {
                REALS next = held[v][k] + across[v];
                held[v][k] = sums[v];
                sums[v] = next;
            }
        }
        if (row < 0)
            continue;
#ifdef NARROW_TWO
        if (vectors == 2 && limit == ACLNN_BW_UNLIMITED) {
            NAMED(store_wide)(to, NARROW_TWO(sums[0], sums[1]));
            to += to_down;
            continue;
        }
#endif
        for (int64_t v = 0; v < vectors; v++)
            cells[v] = NARROW(sums[v]);
        NAMED(store)(to, cells, vectors, 0, limit, bytes, 0, 0);
        to += to_down;
    }
}

/* A piece of the columns and of the rows after the other, whose terms fit the L1 cache; in each the blocks. Only where
 * all the columns are fewer than a block's do stores pass the end of a row. */
ACLNN_BW_INLINE void NAMED(walk_pieces)(const aclnn_bw_walk *w, const int64_t terms, const int64_t taps,
                                        const int vectors)
{
    const int64_t item = sizeof(ELEMENT), block = vectors * LANES, to_down = w->to_down * item;
    REAL room[ROOM + AROUND] __attribute__((aligned(64)));
    for (int64_t begin = 0, columns; begin < w->groups; begin += columns) {
        const int64_t left = w->groups - begin, window = begin + w->first[0];
        columns = left < 64 + block ? left : 64;        /* a block's at least, or all */
        const int64_t across = (columns < block ? block : columns) + taps - 1;
        const int64_t pitch = (across + LANES - 1) / LANES * LANES, height = ROOM / pitch - (terms - 1);
        REAL *const at = AT(room, window);
        for (int64_t row = 0; row < w->rows; row += height) {
            const int64_t rows = w->rows - row < height ? w->rows - row : height, q = w->q + row;
            char *const to = (char *)w->to + (q - w->pad) * to_down + begin * item;
            int64_t group = 0;
            NAMED(make_terms)(w, at, pitch, q - (terms - 1), rows + terms - 1, window, across);
            if (columns < block) {
                NAMED(walk_terms)(at, pitch, to, to_down, rows, w->width * item, w->limit, terms, taps, vectors);
                continue;
            }
            for (; group < columns && (vectors == 1 || columns - group > LANES); group += block) {
                if (group > columns - block)
                    group = columns - block;
                NAMED(walk_terms)(at + group, pitch, to + group * item, to_down, rows, 0, ACLNN_BW_UNLIMITED, terms,
                                  taps, vectors);
            }
            if (vectors > 1 && group < columns)
                NAMED(walk_terms)(at + columns - LANES, pitch, to + (columns - LANES) * item, to_down, rows, 0,
                                  ACLNN_BW_UNLIMITED, terms, taps, 1);
        }
    }
}

/* The sums across a row of windows, of each kind of column: of the terms first[i] .. first[i] + count[i] - 1. */
ACLNN_BW_INLINE void NAMED(sum_terms)(REALS *sums, const REAL *from, const int kinds, const int64_t *first,
                                    const int64_t *count)
{
    for (int i = 0; i < kinds; i++) {
        sums[i] = (REALS){0};
        if (count[i] > 0)
            sums[i] = NAMED(reals)(from + first[i]);
        if (count[i] > 1)
            sums[i] += NAMED(reals)(from + first[i] + 1);
    }
}

/* A block's sums, narrowed and spread to their positions, in `rows` rows. */
ACLNN_BW_INLINE void NAMED(store_rows)(char *to, int64_t to_down, int64_t rows, const REALS *sums, int vector,
                                       const char *limit, int64_t bytes, int64_t ahead, const int stride,
                                       const int same)
{
    CELLS cells[3], narrow[3];
    if (rows <= 0)
        return;
#ifdef NARROW_PAIR
    if (stride == 2) {
        const aclnn_bw_words pair = NARROW_PAIR(sums[0], sums[same ? 0 : 1]);
        memcpy(cells, &pair, sizeof pair);
        for (int64_t i = 0; i < rows; i++, to += to_down)
            if (to + sizeof pair <= limit) {
                __builtin_prefetch((const char *)((uintptr_t)to + (uintptr_t)ahead), 1);
                NAMED(store_wide)(to, pair);
            } else {
                NAMED(store)(to, cells, stride, vector, limit, bytes, 1, ahead);
            }
        return;
    }
#endif
    for (int i = 0; i < (same ? 1 : stride); i++)
        narrow[i] = NARROW(sums[i]);
    NAMED(spread)(cells, narrow, stride, same);
    for (int64_t i = 0; i < rows; i++, to += to_down)
        NAMED(store)(to, cells, stride, vector, limit, bytes, 1, ahead);
}

/* One block of a row of windows and of the row above it: the rows of gradInput that they serve, the `longs` that have
 * all terms and the `shorts` that have but this row's. */
ACLNN_BW_INLINE void NAMED(spread_terms)(const REAL *here, int64_t pitch, char *to_long, int64_t longs, char *to_short,
                                         int64_t shorts, int64_t to_down, int vector, const char *limit, int64_t bytes,
                                         int64_t ahead, const int stride, const int same, const int terms,
                                         const int64_t *first, const int64_t *count)
{
    const int kinds = same ? 1 : stride;
    const REALS zero = {0};
    REALS sums[3], above[3], all[3];
    NAMED(sum_terms)(sums, here, kinds, first, count);
    if (terms > 1)
        NAMED(sum_terms)(above, here - pitch, kinds, first, count);
    for (int i = 0; i < kinds; i++)
        all[i] = terms > 1 ? zero + above[i] + sums[i] : zero + sums[i];
    NAMED(store_rows)(to_long, to_down, longs, all, vector, limit, bytes, ahead, stride, same);
    for (int i = 0; i < kinds; i++)
        all[i] = terms > 1 ? zero + sums[i] : zero;
    NAMED(store_rows)(to_short, to_down, shorts, all, vector, limit, bytes, ahead, stride, same);
}

/* Stride 2 or 3 and at most two terms along an axis: row by row, as they lie in memory, but for very long rows, which
 * are made in pieces, the last one first: what it stores beyond the end of a row is the beginning of the next. The row
 * of windows above is summed again: that is cheaper than to keep its sums. */
ACLNN_BW_INLINE void NAMED(spread_pieces)(const aclnn_bw_walk *w, const int stride, const int same,
                                          const int terms, const int64_t *first, const int64_t *count)
{
    const int64_t item = sizeof(ELEMENT), to_down = w->to_down * item, size = w->size;
    const int64_t group_of_rows = w->stride * to_down, block = LANES * stride * item;
    const int64_t ahead = group_of_rows < ACLNN_BW_AHEAD ? 2 * group_of_rows : 2 * ACLNN_BW_AHEAD;
    REAL room[ROOM + AROUND] __attribute__((aligned(64)));
    int64_t reach = 0;
    for (int i = 0; i < (same ? 1 : stride); i++)
        if (first[i] + count[i] - 1 > reach)
            reach = first[i] + count[i] - 1;
    /* The last piece: LANES groups at least, or all. */
    int64_t begin = w->groups > LANES ? (w->groups - LANES) / PIECE * PIECE : 0, columns = w->groups - begin;
    const char *limit = (w->groups > LANES ? w->groups : LANES) * stride > w->width ? w->limit : ACLNN_BW_UNLIMITED;
    for (;; begin -= PIECE, columns = PIECE, limit = ACLNN_BW_UNLIMITED) {
        const int64_t window = begin + w->first[0], across = (columns < LANES ? LANES : columns) + reach;
        const int64_t pitch = (across + LANES - 1) / LANES * LANES, height = ROOM / pitch - (terms - 1);
        const int64_t last = columns > LANES ? columns - LANES : 0, bytes = (w->width - (begin + last) * stride) * item;
        const int64_t again = columns > LANES ? (LANES - columns % LANES) % LANES : 0;
        const int vector = (int)(again * stride / LANES);
        REAL *const at = AT(room, window);
        for (int64_t row = 0; row < w->rows; row += height) {
            const int64_t q = w->q + row, rows = w->rows - row < height ? w->rows - row : height;
            const REAL *here = at + (terms - 1) * pitch;
            NAMED(make_terms)(w, at, pitch, q - (terms - 1), rows + terms - 1, window, across);
            for (int64_t oh = q; oh < q + rows; oh++, here += pitch) {
                const int64_t top = oh * w->stride - w->pad, middle = top + w->long_phases, bottom = top + w->stride;
                const int64_t longs_at = top > 0 ? top : 0, shorts_at = middle > 0 ? middle : 0;
                const int64_t longs = (middle < size ? middle : size) - longs_at;
                const int64_t shorts = (bottom < size ? bottom : size) - shorts_at;
                char *to_long = (char *)w->to + longs_at * to_down + begin * stride * item;
                char *to_short = (char *)w->to + shorts_at * to_down + begin * stride * item;
                NAMED(spread_terms)(here + last, pitch, to_long + last * stride * item, longs,
                                    to_short + last * stride * item, shorts, to_down, vector, limit, bytes, ahead,
                                    stride, same, terms, first, count);
                for (int64_t group = 0; group < last; group += LANES, to_long += block, to_short += block)
                    NAMED(spread_terms)(here + group, pitch, to_long, longs, to_short, shorts, to_down, 0,
                                        ACLNN_BW_UNLIMITED, 0, ahead, stride, same, terms, first, count);
            }
        }
        if (begin == 0)
            return;
    }
}
#endif

static void NAMED(walk)(const aclnn_bw_walk *w)
{
#if !ACLNN_BW_MASKED
    if (BY_TERMS) {
        if (w->terms == 3 && w->count[0] == 3 && w->groups <= LANES)
            NAMED(walk_pieces)(w, 3, 3, 1);
        else if (w->terms == 3 && w->count[0] == 3)
            NAMED(walk_pieces)(w, 3, 3, 2);
        else if (w->terms == 5 && w->count[0] == 5)
            NAMED(walk_pieces)(w, 5, 5, 2);
        else
            NAMED(walk_pieces)(w, w->terms, w->count[0], 1);
        return;
    }
#endif
    if (w->column_factors != NULL)
        NAMED(walk_blocks)(w, w->terms, w->count[0], 1, 0, 1);
#if !ACLNN_BW_MASKED
    else if (w->groups <= LANES && w->terms == 3 && w->count[0] == 3)
        NAMED(walk_blocks)(w, 3, 3, 0, SHIFTS, 1);
#endif
    else if (w->terms == 3 && w->count[0] == 3)
        NAMED(walk_blocks)(w, 3, 3, 0, SHIFTS, ACLNN_BW_VECTORS);
    else if (w->terms == 5 && w->count[0] == 5)
        NAMED(walk_blocks)(w, 5, 5, 0, SHIFTS, ACLNN_BW_VECTORS);
    else
        NAMED(walk_blocks)(w, w->terms, w->count[0], 0, 0, 1);
}

/* The sums across a row of windows, of each kind of column: of the terms first[i] .. first[i] + count[i] - 1. */
ACLNN_BW_INLINE void NAMED(sum_row)(REALS *sums, const char *from, const REALS factor, const REAL *column_factors,
                                    const KEPT *lanes, const int kinds, const int64_t *first, const int64_t *count,
                                    const int by_column, const int cut)
{
    (void)cut;
    for (int i = 0; i < kinds; i++) {
        sums[i] = (REALS){0};
        if (count[i] > 0)
            sums[i] = TERM(LOAD, from, first[i], factor, cut);
        if (count[i] > 1)
            sums[i] += TERM(LOAD, from, first[i] + 1, factor, cut);
    }
}

#if !ACLNN_BW_MASKED
/* One block of a row of windows and of the row above it: the rows of gradInput that they serve, the `longs` that have
 * all terms and the `shorts` that have but this row's. `inner`: all windows of the block are there, and no limit is
 * near. In a loop apart from the ends of the rows the invariants stay in registers: 1.1 to 3.3 times as fast, by kernel
 * and type. */
ACLNN_BW_INLINE void NAMED(spread_block)(const char *here, const char *over, const REALS factor_here,
                                         const REALS factor_over, const REAL *column_factors, const KEPT *lanes,
                                         char *to_long, int64_t longs, char *to_short, int64_t shorts, int64_t to_down,
                                         int vector, const char *limit, int64_t bytes, int64_t ahead, const int stride,
                                         const int same, const int terms, const int64_t *first, const int64_t *count,
                                         const int by_column, const int inner)
{
    const int kinds = same ? 1 : stride;
    const REALS zero = {0};
    REALS sums[3], above[3];
    CELLS narrow[3], cells[3];
    for (int i = 0; i < kinds; i++)
        above[i] = zero;
    NAMED(sum_row)(sums, here, factor_here, column_factors, lanes, kinds, first, count, by_column, !inner);
    if (terms > 1)
        NAMED(sum_row)(above, over, factor_over, column_factors, lanes, kinds, first, count, by_column, !inner);
    for (int i = 0; i < kinds; i++)
        narrow[i] = NARROW(terms > 1 ? zero + above[i] + sums[i] : zero + sums[i]);
    NAMED(spread)(cells, narrow, stride, same);
    for (int64_t i = 0; i < longs; i++, to_long += to_down)
        NAMED(store)(to_long, cells, stride, vector, inner ? (const char *)UINTPTR_MAX : limit, bytes, 1, ahead);
    if (shorts == 0)
        return;
    for (int i = 0; i < kinds; i++)
        narrow[i] = NARROW(terms > 1 ? zero + sums[i] : zero);
    NAMED(spread)(cells, narrow, stride, same);
    for (int64_t i = 0; i < shorts; i++, to_short += to_down)
        NAMED(store)(to_short, cells, stride, vector, inner ? (const char *)UINTPTR_MAX : limit, bytes, 1, ahead);
}

/* Stride 2 or 3 and at most two terms along an axis: row by row, as they lie in memory. The row of windows above is
 * summed again from the L1 cache: that is cheaper than to keep its sums. A row that does not exist is one of zeros. */
ACLNN_BW_INLINE void NAMED(spread_rows)(const aclnn_bw_walk *w, const int stride, const int same, const int terms,
                                        const int64_t *first, const int64_t *count, const int by_column)
{
    static const ELEMENT zeros[LANES + 2];
    const int64_t item = sizeof(ELEMENT);
    const int64_t from_down = w->from_down * item, to_down = w->to_down * item;
    const int64_t columns_out = w->columns_out, offset = w->first[0], size = w->size;
    const int64_t last = w->groups > LANES ? w->groups - LANES : 0;
    const int64_t again = w->groups > LANES ? (LANES - w->groups % LANES) % LANES : 0;
    const int vector = (int)(again * stride / LANES);
    const char *const unlimited = (const char *)UINTPTR_MAX;
    const char *const limit = (last + LANES) * stride > w->width ? w->limit : unlimited;
    const int64_t group_of_rows = w->stride * to_down;
    const int64_t ahead = group_of_rows < ACLNN_BW_AHEAD ? 2 * group_of_rows : 2 * ACLNN_BW_AHEAD;
    const REALS zero = {0}, factor = zero + (REAL)w->factor;
    const REAL *const column_factors = by_column ? w->column_factors : NULL;
    ELEMENT copies[2][LANES + 2];
    KEPT lanes_of_last[3];
    int64_t reach = LANES;
    for (int i = 0; i < (same ? 1 : stride); i++)
        if (LANES + first[i] + count[i] - 1 > reach)
            reach = LANES + first[i] + count[i] - 1;
    for (int64_t k = 0; k < 3; k++)
        lanes_of_last[k] = INSIDE(last + offset + k, columns_out, LANES);
    /* The blocks from group `inner` to before `outer` have all their windows, and are not the last. */
    const int64_t inner = offset < 0 ? LANES : 0;
    const int64_t outer = columns_out - reach - offset + 1 < last ? columns_out - reach - offset + 1 : last;
    for (int64_t oh = w->q; oh < w->q + w->rows; oh++) {
        const int there = (uint64_t)oh < (uint64_t)w->rows_out;
        const int before = terms > 1 && (uint64_t)(oh - 1) < (uint64_t)w->rows_out;
        const char *const from = (const char *)w->from + (oh - w->from_row) * from_down
                                 + (offset - w->from_column) * item;
        const REAL *row_factors = by_column ? (const REAL *)w->row_factors + (oh - w->q) : NULL;
        const REALS factor_here = by_column ? zero + row_factors[terms - 1] : factor;
        const REALS factor_over = by_column ? zero + row_factors[0] : factor;
        const int64_t top = oh * w->stride - w->pad, short_top = top + w->long_phases;
        const int64_t begin = top > 0 ? top : 0, short_begin = short_top > 0 ? short_top : 0;
        const int64_t end = short_top < size ? short_top : size;
        const int64_t short_end = top + w->stride < size ? top + w->stride : size;
        const int64_t longs = end > begin ? end - begin : 0;
        const int64_t shorts = short_end > short_begin ? short_end - short_begin : 0;
        char *const to_long = (char *)w->to + begin * to_down, *const to_short = (char *)w->to + short_begin * to_down;
        int64_t group = last;
        do {
            const char *here = there ? from + group * item : (const char *)zeros;
            const char *over = before ? from + group * item - from_down : (const char *)zeros;
            int64_t at = group * stride * item;
            if (group >= inner && group < outer) {
                const int64_t step = there ? LANES * item : 0, step_over = before ? LANES * item : 0;
                for (; group < outer; group += LANES, here += step, over += step_over, at += LANES * stride * item)
                    NAMED(spread_block)(here, over, factor_here, factor_over,
                                        by_column ? column_factors + group : NULL, lanes_of_last, to_long + at, longs,
                                        to_short + at, shorts, to_down, 0, unlimited, 0, ahead, stride, same, terms,
                                        first, count, by_column, 1);
                continue;
            }
            const int is_last = group == last;
            const int64_t window = group + offset;
            KEPT lanes[3];
            for (int64_t k = 0; k < 3; k++)
                lanes[k] = is_last ? lanes_of_last[k] : INSIDE(window + k, columns_out, LANES);
            if (there)
                here = NAMED(row)(w, copies[0], here, window, LANES + 2);
            if (before)
                over = NAMED(row)(w, copies[1], over, window, LANES + 2);
            NAMED(spread_block)(here, over, factor_here, factor_over, by_column ? column_factors + group : NULL, lanes,
                                to_long + at, longs, to_short + at, shorts, to_down, is_last ? vector : 0,
                                is_last ? limit : unlimited, (w->width - group * stride) * item, ahead, stride, same,
                                terms, first, count, by_column, 0);
            group = is_last ? 0 : group + LANES;
        } while (group < last);
    }
}
#else
/* Stride 2 or 3 and at most two terms along an axis: row by row, as they lie in memory. The row of windows above is
 * summed again from the L1 cache: that is cheaper than to keep its sums. */
ACLNN_BW_INLINE void NAMED(spread_rows)(const aclnn_bw_walk *w, const int stride, const int same, const int terms,
                                        const int64_t *first, const int64_t *count, const int by_column)
{
    const int64_t item = sizeof(ELEMENT);
    const int64_t from_down = w->from_down * item, to_down = w->to_down * item;
    const int64_t last = w->groups > LANES ? w->groups - LANES : 0;
    const int64_t again = w->groups > LANES ? (LANES - w->groups % LANES) % LANES : 0;
    const int spills = (last + LANES) * stride > w->width;
    const int kinds = same ? 1 : stride;
    const int64_t group_of_rows = w->stride * to_down;
    const int64_t ahead = group_of_rows < ACLNN_BW_AHEAD ? 2 * group_of_rows : 2 * ACLNN_BW_AHEAD;
    const REALS zero = {0};
    KEPT lanes[3];
    for (int64_t oh = w->q; oh < w->q + w->rows; oh++) {
        const char *from = (const char *)w->from + (oh - w->from_row) * from_down - w->from_column * item;
        const REAL *row_factors = by_column ? (const REAL *)w->row_factors + (oh - w->q) : NULL;
        const REALS factor_here = zero + (by_column ? row_factors[terms - 1] : (REAL)w->factor);
        const REALS factor_over = by_column ? zero + row_factors[0] : factor_here;
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
            const char *here = from + window * item, *over = here - from_down;
            if (window >= 0 && window + LANES + 2 <= w->columns_out) {
                lanes[0] = lanes[1] = lanes[2] = ACLNN_BW_ALL_LANES(KEPT);
            } else {
                for (int64_t k = 0; k < 3; k++)
                    lanes[k] = INSIDE(window + k, w->columns_out, LANES);
            }
            for (int i = 0; i < kinds; i++)
                sums[i] = above[i] = zero;
            if (there)
                NAMED(sum_row)(sums, here, factor_here, column_factors, lanes, kinds, first, count, by_column, 1);
            if (before)
                NAMED(sum_row)(above, over, factor_over, column_factors, lanes, kinds, first, count, by_column, 1);
            for (int i = 0; i < kinds; i++)
                narrow[i] = NARROW(terms > 1 ? zero + above[i] + sums[i] : zero + sums[i]);
            NAMED(spread)(cells, narrow, stride, same);
            for (int64_t ih = begin; ih < end; ih++)
                NAMED(store)(to + ih * to_down, cells, stride, vector, limit, bytes, 1, ahead);
            if (short_begin < short_end) {
                for (int i = 0; i < kinds; i++)
                    narrow[i] = NARROW(terms > 1 ? zero + sums[i] : zero);
                NAMED(spread)(cells, narrow, stride, same);
                for (int64_t ih = short_begin; ih < short_end; ih++)
                    NAMED(store)(to + ih * to_down, cells, stride, vector, limit, bytes, 1, ahead);
            }
            limit = (const char *)UINTPTR_MAX;
            vector = 0;
            group = group == last ? 0 : group + LANES;
        } while (group < last);
    }
}
#endif

static void NAMED(spread_walk)(const aclnn_bw_walk *w)
{
    const int64_t first[3] = {0, w->first[1] - w->first[0], w->first[2] - w->first[0]};
    const int64_t ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0}, half_pad[3] = {1, 2, 0}, no_pad[3] = {2, 1, 0};
    const int64_t shifted[3] = {0, 1, 0};
    const int same = w->count[0] == 1 && w->count[1] == 1 && first[1] == 0
                     && (w->w_stride == 2 || (w->count[2] == 1 && first[2] == 0));
#if !ACLNN_BW_MASKED
    if (BY_TERMS || (SPREADS_TERMS && w->terms == 2)) {
        if (w->w_stride == 2 && w->terms == 1 && same && BY_TERMS)
            NAMED(spread_pieces)(w, 2, 1, 1, zeros, ones);
        else if (w->w_stride == 2 && w->terms == 2 && w->count[0] == 1 && w->count[1] == 2 && first[1] == 0)
            NAMED(spread_pieces)(w, 2, 0, 2, zeros, half_pad);
        else if (w->w_stride == 2 && w->terms == 2 && w->count[0] == 2 && w->count[1] == 1 && first[1] == 1)
            NAMED(spread_pieces)(w, 2, 0, 2, shifted, no_pad);
        else if (w->w_stride == 2)
            NAMED(spread_pieces)(w, 2, 0, (int)w->terms, first, w->count);
        else if (w->terms == 1 && same && BY_TERMS)
            NAMED(spread_pieces)(w, 3, 1, 1, zeros, ones);
        else
            NAMED(spread_pieces)(w, 3, 0, (int)w->terms, first, w->count);
        return;
    }
#endif
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

/* One window covers each plane of `size` positions: its term everywhere, in planes that lie behind each other. A vector
 * may run into the next plane, which comes afterwards, and not past the last. */
static void NAMED(fill_planes)(ELEMENT *to, const ELEMENT *from, int64_t from_step, int64_t planes, int64_t size,
                               double factor)
{
    /* 32 bytes at most: what the planes are here for are some 7 x 7, and longer vectors straddle more cache lines. */
    typedef BITS vector __attribute__((vector_size(sizeof(REALS) < 32 ? sizeof(REALS) : 32), aligned(1), may_alias));
    const int64_t lanes = sizeof(vector) / sizeof(ELEMENT);
    const int64_t reach = ((size - 1) / lanes + 1) * lanes;
    const ELEMENT *end = to + planes * size;
    for (int64_t plane = 0; plane < planes; plane++, from += from_step, to += size) {
        ELEMENT stored = NARROW_ONE(WIDEN_ONE(*from) * (REAL)factor + (REAL)0);
        BITS bits;
        memcpy(&bits, &stored, sizeof bits);
        const vector all = (vector){0} + bits;
        if (reach <= end - to) {
            for (int64_t i = 0; i < size; i += 64 / (int64_t)sizeof(ELEMENT))
                __builtin_prefetch((const char *)((uintptr_t)(to + i) + ACLNN_BW_AHEAD), 1);
            for (int64_t i = 0; i < size; i += lanes)
                *(vector *)(to + i) = all;
        } else {
            for (int64_t i = 0; i < size; i++)
                to[i] = stored;
        }
    }
}

#undef FETCHES
#undef BITS
#undef WIDEN_ONE
#undef NARROW_ONE
#undef KEEP
#undef CUT
#undef TERM
#undef BLOCK
#undef SHIFTS
#undef BY_TERMS
#undef SPREADS_TERMS
#undef ROOM
#undef PIECE
#undef AROUND
#undef AT
#undef FROM_ROW
#undef NARROW_TWO
#undef NARROW_PAIR
#undef MULTIPLY_ADD
#undef KEPT
#undef INSIDE
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
