"""ReplicationPad2dBackward: gradInput[i, j] = sum of gradOutput[p, q] over clamp(p - top, 0, H-1) == i and
clamp(q - left, 0, W-1) == j.

The formula is that of PyTorch's replication_pad2d_backward (aten/src/ATen/native/cpu/PaddingKernel.cpp), gathered
instead of scattered: every element of gradInput has one writer.

Numerics. float32, float16, bfloat16 and the parts of complex64 are summed in float32, float64 and the parts of
complex128 in float64. Terms start from +0.0, in copies too, so no -0.0 is left. First the rows p of each column q are
summed, ascending; then the columns: a run of fewer than 16 numbers ascending, a longer one in 8 chains, which are added
pairwise (replication_pad2d_sums.pxd). 16-bit results are rounded once, at the end; what is copied is not converted at
all. Every path adds the same terms in the same order, so bands, tiles, threads, strides and instruction sets do not
show in the result.

Bounds. The plan (`Axis`) lists for each i and j the p and q in [0, Ho) and [0, Wo) that reach it, and nothing else is
read; rows and columns stay in the unit's band and tile, which lie inside gradInput; phase 1 has proved that both views
lie inside their storage. A plane of the scratch holds the interval of rows and columns that its unit needs.

| path | when | why |
|---|---|---|
| PLANES | rows lie apart for each channel | |
| . copied rows (`copy_band`) | all but the border's, dense | vectors; then the ends, while they are in the L1 cache |
| . . streamed | rows >= 512 bytes, arrays beyond the caches | lines are not read before they are written |
| . strips (`backward_strips`) | rows < 640 bytes, larger arrays | the same, of rows that are made in the scratch |
| . few rows (`sum_few_rows`) | border rows, dense, of ordinary planes and pads | less to set up for small planes |
| . any (`sum_pieces`) | large pads, long rows, rows with gaps | pieces of sums that stay in the L1 cache |
| PACKED | channels side by side in gradOutput | a transposition to planes reads each cache line once |
| . strips | as those of planes | streamed too |
| PIXELS | channels side by side in both | all channels of a pixel are a vector, nothing is transposed |
| UNPACKED | in gradInput alone | a transposition to pixels, which are summed as those of PIXELS |

docs/design/replication_pad2d.md explains them. `python -m benchmarks --operator replication_pad2d_backward` measures.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.replication_pad2d cimport PACKED, PIXELS, UNPACKED, Axis, ReplicationPad2dPlan, packed_plane
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_C128, SLOT_C64, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.lines cimport Lines, close_lines, next_strip, open_lines, stream_strip
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.replication_pad2d_copy cimport copy_rows
from aclnn_bw._kernels.replication_pad2d_sums cimport (
    FEW, LANES, LONG, add_run, fold_few_rows, fold_short_run, join_chains, move, narrowed_row, store_corner,
    store_number, store_sums, widened_row,
)
from aclnn_bw._kernels.rows cimport add_row, narrow_row, sum_dense_rows
from aclnn_bw._kernels.simd cimport VECTOR_BYTES, bfloat, element, fence, half, real, vector

cdef enum:
    COLUMNS = 1024      # numbers of a row that are summed at a time, on the stack
    STREAM = 256        # numbers: rows that are so short need no prefetching
    STREAMS = 8         # rows that are read side by side
    PIECE = 128         # numbers of a pixel that are folded at a time: COLUMNS / LANES
    ROOM = COLUMNS * 8 / VECTOR_BYTES   # vectors
    CHUNK = 16384       # bytes of rows that are copied, and whose ends are then summed while they are in the L1 cache

# The sum in the first or last column of gradInput.
cdef struct Run:
    int64_t to          # that column
    int64_t first       # the columns of gradOutput: n, and if that is 0 there is no such sum
    int64_t n

# The columns [iw, end) of gradInput, of which [begin, stop) have a partner in gradOutput, `shift` further on; or rows.
cdef struct Span:
    int64_t iw
    int64_t end
    int64_t begin
    int64_t stop
    int64_t shift
    Run[2] runs         # Axis.head and Axis.tail, unless they are another tile's

# A tile of columns and how rows lie. Pitches are numbers, of which an element has `parts`.
cdef struct Tile:
    Span w
    int64_t parts
    int64_t depth       # numbers of a column that are treated alike: of PIXELS all channels
    int64_t source_along
    int64_t source_down
    int64_t along
    int64_t down
    bint streamed


# They are filled in place: a vector of a structure that was stored a number at a time is waited for.


cdef void set_span(Span* span, const Axis* w, int64_t iw, int64_t columns) noexcept nogil:
    span.iw = iw
    span.end = least(iw + columns, w.size)
    span.begin = least(most(iw, w.begin), span.end)
    span.stop = most(span.begin, least(span.end, w.end))
    span.shift = w.shift
    span.runs[0].to = span.runs[0].first = 0
    span.runs[0].n = w.head if iw == 0 else 0
    span.runs[1].to = w.size - 1
    span.runs[1].first = w.out - w.tail
    span.runs[1].n = w.tail if span.end == w.size else 0


cdef void set_tile(Tile* tile, const ReplicationPad2dPlan* plan, int64_t iw) noexcept nogil:
    set_span(&tile.w, &plan.w, iw, plan.tile)
    tile.parts = plan.parts
    tile.depth = plan.parts * (plan.channels if plan.layout == PIXELS else 1)
    tile.source_along = plan.grad_output_strides[3] * plan.parts
    tile.source_down = plan.grad_output_strides[2] * plan.parts
    tile.along = plan.grad_input_strides[3] * plan.parts
    tile.down = plan.grad_input_strides[2] * plan.parts
    tile.streamed = plan.streamed


cdef inline int64_t first_source(const Span* span) noexcept nogil:
    """What a tile needs is one interval of gradOutput's columns: head, partners and tail touch or overlap."""
    if span.runs[0].n > 0:
        return 0
    return span.begin + span.shift if span.begin < span.stop else span.runs[1].first


cdef inline int64_t end_source(const Span* span) noexcept nogil:
    """At most first_source if it needs none."""
    if span.runs[1].n > 0:
        return span.runs[1].first + span.runs[1].n
    return span.stop + span.shift if span.begin < span.stop else span.runs[0].n


cdef void zero_columns(const Tile* tile, element* grad_input__w, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t iw
    if tile.along == tile.depth:
        memset(grad_input__w + begin * tile.along, 0, <size_t>((end - begin) * tile.along) * sizeof(element))
        return
    for iw in range(begin, end):
        memset(grad_input__w + iw * tile.along, 0, <size_t>tile.depth * sizeof(element))


cdef inline void zero_cropped(const Tile* tile, element* grad_input__w) noexcept nogil:
    """The columns without a partner; of these the first and last may get a sum afterwards."""
    if tile.w.begin > tile.w.iw or tile.w.stop < tile.w.end:
        zero_columns(tile, grad_input__w, tile.w.iw, tile.w.begin)
        zero_columns(tile, grad_input__w, tile.w.stop, tile.w.end)


cdef void fold_long_run(real* to, const element* run, int64_t n, int64_t parts) noexcept nogil:
    cdef real[LANES] sums
    cdef real[COLUMNS] wide
    cdef int64_t at = 0
    cdef int64_t m
    memset(sums, 0, sizeof(sums))
    while at < n:
        m = least(n - at, COLUMNS)
        add_run(<real*>sums, LANES, at, widened_row(run + at, <real*>wide, m), m)
        at += m
    join_chains(<real*>sums, LANES, parts)
    to[0] = sums[0]
    to[1] = sums[1]


cdef inline void fold_each(element* to, int64_t down, const element* run, int64_t source_down, int64_t n, int64_t parts,
                           int64_t rows, const real* summed) noexcept nogil:
    cdef real[2] sum
    while rows > 0:
        if n >= LONG:
            fold_long_run(<real*>sum, run, n, parts)
        elif (element is half or element is bfloat) and n >= FEW:
            fold_few_rows(<real*>sum, run, n, 0, 1, parts)
        else:
            fold_short_run(<real*>sum, run, n, parts)
        store_number(to, <const real*>sum, parts)
        to += down
        run += source_down
        rows -= 1


cdef void fold_runs(element* to, int64_t down, const element* run, int64_t source_down, int64_t n, int64_t parts,
                    int64_t rows, const real* summed) noexcept nogil:
    """The first or last element of each of `rows` rows: the sum of a run of n numbers. Unrolled for small pads."""
    if parts == 1 and n == 2:
        fold_each(to, down, run, source_down, 2, 1, rows, summed)
    elif parts == 1 and n == 3:
        fold_each(to, down, run, source_down, 3, 1, rows, summed)
    elif parts == 1 and n == 4:
        fold_each(to, down, run, source_down, 4, 1, rows, summed)
    elif parts == 1 and n == 5:
        fold_each(to, down, run, source_down, 5, 1, rows, summed)
    elif parts == 1:
        fold_each(to, down, run, source_down, n, 1, rows, summed)
    else:
        fold_each(to, down, run, source_down, n, 2, rows, summed)


cdef inline void sum_to(element* to, const element* source, int64_t down, int64_t rows, int64_t n,
                        const real* summed) noexcept nogil:
    """to[:n] = the sum of dense rows, narrowed; n is at most COLUMNS."""
    cdef real[COLUMNS] sums
    cdef real* made = sums
    if (real is float and element is float) or (real is double and element is double):
        made = to
    sum_dense_rows(made, source, down, rows, n)
    if element is half or element is bfloat:
        narrow_row(to, <const real*>made, n)


cdef void fold_pixels(element* to, const element* run, int64_t n, const Tile* tile, int64_t rows,
                      const real* summed) noexcept nogil:
    """The first or last pixel of a row: the sum of a run of n pixels in each of `rows` rows."""
    cdef real[COLUMNS] sums
    cdef real[PIECE] column
    cdef int64_t most_chains = LANES // tile.parts if n * tile.parts >= LONG else 1
    cdef int64_t at = 0
    cdef int64_t chains, k, m
    while at < tile.depth:
        m = least(tile.depth - at, PIECE)
        chains = most_chains
        if rows == 1 and chains == 1:
            sum_dense_rows(<real*>sums, run + at, tile.source_along, n, m)
        else:
            memset(sums, 0, <size_t>(chains * m) * sizeof(real))
            for k in range(n):
                sum_dense_rows(<real*>column, run + k * tile.source_along + at, tile.source_down, rows, m)
                add_row(<real*>sums + k % chains * m, <const real*>column, m)
        while chains > 1:
            chains //= 2
            add_row(<real*>sums, <const real*>sums + chains * m, chains * m)
        store_sums(to + at, <const real*>sums, m)
        at += m


cdef void sum_pixels(const Tile* tile, const element* grad_output__wc, int64_t rows, element* grad_input__wc,
                     const real* summed) noexcept nogil:
    """sum_rows for PIXELS."""
    cdef const Span* w = &tile.w
    cdef const element* source = grad_output__wc + (w.begin + w.shift) * tile.source_along
    cdef element* to = grad_input__wc + w.begin * tile.along
    cdef int64_t pixels = w.stop - w.begin
    cdef int64_t n = tile.depth
    cdef int64_t i, k, at
    zero_cropped(tile, grad_input__wc)
    if tile.source_along == n and tile.along == n:
        # Pixels that follow one another are one.
        n *= pixels
        pixels = least(pixels, 1)
    if rows == 1:
        copy_rows(to, tile.along, source, tile.source_along, n, pixels, False)
    else:
        for i in range(pixels):
            at = 0
            while at < n:
                sum_to(to + i * tile.along + at, source + i * tile.source_along + at, tile.source_down, rows,
                       least(n - at, COLUMNS), summed)
                at += COLUMNS
    for k in range(2):
        if w.runs[k].n > 0:
            fold_pixels(grad_input__wc + w.runs[k].to * tile.along,
                        grad_output__wc + w.runs[k].first * tile.source_along, w.runs[k].n, tile, rows, summed)


cdef void sum_few_rows(const Tile* tile, const element* grad_output__w, int64_t rows, element* grad_input__w,
                       const real* summed) noexcept nogil:
    """sum_rows for dense rows of at most COLUMNS numbers and short runs: less to set up."""
    cdef const Span* w = &tile.w
    cdef int64_t parts = tile.parts
    cdef int64_t k
    zero_cropped(tile, grad_input__w)
    sum_to(grad_input__w + w.begin * parts, grad_output__w + (w.begin + w.shift) * parts, tile.source_down, rows,
           (w.stop - w.begin) * parts, summed)
    for k in range(2):
        if w.runs[k].n > 0:
            store_corner(grad_input__w + w.runs[k].to * parts, grad_output__w + w.runs[k].first * parts, w.runs[k].n,
                         tile.source_down, rows, parts, summed)


cdef void sum_block(real* sums, const element* source, int64_t along, int64_t down, int64_t rows, int64_t n,
                    int64_t parts) noexcept nogil:
    """sums[:n*parts] = 0.0 + the first row + the second ..., each of n elements."""
    cdef element[COLUMNS] cells
    cdef real[COLUMNS] wide
    cdef const element* row
    cdef int64_t numbers = n * parts
    cdef int64_t r = 0
    if along == parts and rows == 1:
        # No loop for each vector.
        r = 1
        sum_dense_rows(sums, source, 0, 1, numbers)
    elif along == parts:
        # More rows at a time are more streams than the processor prefetches.
        r = rows if numbers <= STREAM else least(rows, STREAMS)
        sum_dense_rows(sums, source, down, r, numbers)
    else:
        memset(sums, 0, <size_t>numbers * sizeof(real))
    while r < rows:
        row = source + r * down
        if along != parts:
            if parts == 1:
                move(<element*>cells, 1, row, along, n, 1)
            else:
                move(<element*>cells, 2, row, along, n, 2)
            row = cells
        add_row(sums, widened_row(row, <real*>wide, numbers), numbers)
        r += 1


cdef inline int64_t chains_of(const Run* run, int64_t parts) noexcept nogil:
    return LANES if run.n * parts >= LONG else parts


cdef void sum_pieces(const Tile* tile, const element* grad_output__w, int64_t rows, element* grad_input__w,
                     const real* summed) noexcept nogil:
    """sum_rows for planes; any strides."""
    cdef vector[ROOM] room      # sums, aligned
    cdef real* sums = <real*>room
    cdef element[COLUMNS] cells
    cdef real[2 * LANES] totals
    cdef const Span* w = &tile.w
    cdef const Run* run
    cdef int64_t parts = tile.parts
    cdef int64_t ow = first_source(w)
    cdef int64_t end = end_source(w)
    cdef int64_t columns, first, last, k
    cdef element* to
    cdef const element* made
    memset(totals, 0, sizeof(totals))
    zero_cropped(tile, grad_input__w)
    while ow < end:
        columns = least(end - ow, COLUMNS // parts)
        sum_block(sums, grad_output__w + ow * tile.source_along, tile.source_along, tile.source_down, rows,
                  columns, parts)
        for k in range(2):
            run = &w.runs[k]
            first = most(run.first - ow, 0)
            last = least(run.first + run.n - ow, columns)
            if first < last:
                add_run(<real*>totals + k * LANES, chains_of(run, parts), (ow + first - run.first) * parts,
                        sums + first * parts, (last - first) * parts)
        first = most(w.begin + w.shift - ow, 0)
        last = least(w.stop + w.shift - ow, columns)
        if first < last:
            to = grad_input__w + (ow + first - w.shift) * tile.along
            if tile.along == parts:
                store_sums(to, sums + first * parts, (last - first) * parts)
            else:
                made = narrowed_row(<const real*>sums + first * parts, <element*>cells, (last - first) * parts)
                if parts == 1:
                    move(to, tile.along, made, 1, last - first, 1)
                else:
                    move(to, tile.along, made, 2, last - first, 2)
        ow += columns
    for k in range(2):
        if w.runs[k].n > 0:
            join_chains(<real*>totals + k * LANES, chains_of(&w.runs[k], parts), parts)
            store_number(grad_input__w + w.runs[k].to * tile.along, <const real*>totals + k * LANES, parts)


cdef void sum_rows(const Tile* tile, const element* grad_output__w, int64_t rows, element* grad_input__w,
                   const real* summed) noexcept nogil:
    """One row of gradInput from consecutive rows of gradOutput."""
    cdef const Span* w = &tile.w
    cdef int64_t parts = tile.parts
    if tile.depth > parts:
        sum_pixels(tile, grad_output__w, rows, grad_input__w, summed)
    elif (tile.source_along == parts and tile.along == parts and rows <= STREAMS
          and (w.stop - w.begin) * parts <= COLUMNS and most(w.runs[0].n, w.runs[1].n) * parts < LONG):
        sum_few_rows(tile, grad_output__w, rows, grad_input__w, summed)
    else:
        sum_pieces(tile, grad_output__w, rows, grad_input__w, summed)


cdef void copy_band(const Tile* tile, const element* grad_output__hw, element* grad_input__hw, int64_t rows,
                    const real* summed) noexcept nogil:
    """Rows of gradInput that have one row of gradOutput each."""
    cdef const Span* w = &tile.w
    cdef const Run* run
    cdef int64_t parts = tile.parts
    cdef int64_t source_down = tile.source_down
    cdef int64_t down = tile.down
    cdef int64_t numbers = (w.stop - w.begin) * parts
    cdef int64_t row_bytes = (w.end - w.iw + w.runs[0].n + w.runs[1].n) * parts * <int64_t>sizeof(element)
    cdef int64_t chunk = rows
    cdef int64_t k, n, r
    if tile.source_along != parts or tile.along != parts:
        for r in range(rows):
            sum_rows(tile, grad_output__hw + r * source_down, 1, grad_input__hw + r * down, summed)
        return
    if source_down == numbers and down == numbers and w.runs[0].n == 0 and w.runs[1].n == 0:
        # Rows that follow one another are one.
        numbers *= rows
        rows = chunk = 1
    elif rows * row_bytes > CHUNK:
        chunk = most(CHUNK // row_bytes, 1)
    while rows > 0:
        n = least(rows, chunk)
        copy_rows(grad_input__hw + w.begin * parts, down, grad_output__hw + (w.begin + w.shift) * parts, source_down,
                  numbers, n, tile.streamed)
        if w.begin > w.iw or w.stop < w.end:
            for r in range(n):
                zero_cropped(tile, grad_input__hw + r * down)
        for k in range(2):
            run = &w.runs[k]
            if run.n > 0:
                fold_runs(grad_input__hw + run.to * parts, down, grad_output__hw + run.first * parts, source_down,
                          run.n * parts, parts, n, summed)
        grad_output__hw += n * source_down
        grad_input__hw += n * down
        rows -= n


cdef void backward_unit(const Axis* h, const Tile* tile, const element* grad_output__hw, element* grad_input__hw,
                        int64_t ih, int64_t end, const real* summed) noexcept nogil:
    """The rows [ih, end) and a tile of the columns of one plane of gradInput, or of one image's PIXELS."""
    cdef int64_t down = tile.down
    cdef int64_t begin, stop, last, r
    if ih == 0 and h.head > 0:
        sum_rows(tile, grad_output__hw, h.head, grad_input__hw, summed)
        ih = 1
    last = end - 1 if end == h.size and h.tail > 0 else end
    begin = least(most(ih, h.begin), last)
    stop = most(begin, least(last, h.end))
    for r in range(ih, begin):
        zero_columns(tile, grad_input__hw + r * down, tile.w.iw, tile.w.end)
    if begin < stop:
        copy_band(tile, grad_output__hw + (begin + h.shift) * tile.source_down, grad_input__hw + begin * down,
                  stop - begin, summed)
    for r in range(stop, last):
        zero_columns(tile, grad_input__hw + r * down, tile.w.iw, tile.w.end)
    if last < end:
        sum_rows(tile, grad_output__hw + (h.out - h.tail) * tile.source_down, h.tail, grad_input__hw + last * down,
                 summed)


cdef void stream_rows(Lines* strip, int64_t n, const char* next, const char* source_end) noexcept nogil:
    """stream_strip, compiled once for all types."""
    stream_strip(strip, n, next, 1, source_end)


cdef void backward_strips(const ReplicationPad2dPlan* plan, const Tile* tile, Lines* strip,
                          const element* grad_output__hw, element* grad_input__hw, int64_t ih, int64_t end,
                          const char* source_end, const real* summed) noexcept nogil:
    """backward_unit of dense rows past the caches."""
    cdef int64_t down = tile.down
    cdef int64_t rows
    while ih < end:
        rows = least(plan.strip, end - ih)
        backward_unit(&plan.h, tile, grad_output__hw,
                      <element*>next_strip(strip, <char*>(grad_input__hw + ih * down)) - ih * down, ih, ih + rows,
                      summed)
        ih += rows
        stream_rows(strip, rows * down * <int64_t>sizeof(element),
                    <const char*>(grad_output__hw + (ih + plan.h.shift) * tile.source_down), source_end)


cdef void turn_cells(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size, const void* end) noexcept nogil:
    """turn_any, compiled once for all types, for it is long."""
    turn_any(to, to_pitch, source, pitch, rows, columns, size, end)


cdef void backward_packed(const ReplicationPad2dPlan* plan, const element* grad_output__nhwc, element* grad_input__nchw,
                          char* scratch, int64_t unit, int64_t end, const real* summed) noexcept nogil:
    """The units [unit, end) of PACKED and UNPACKED: as those of planes, or of pixels, in the scratch."""
    cdef const int64_t* g = &plan.grad_output_strides[0]
    cdef const int64_t* x = &plan.grad_input_strides[0]
    cdef const element* grad_output__hwc
    cdef const element* source
    cdef element* to
    cdef int64_t parts = plan.parts
    cdef int64_t size = parts * <int64_t>sizeof(element)
    cdef int64_t room = plan.packed // size
    cdef int64_t c, k, n, r, oh, ow, rows, columns, channels, pitch
    cdef Span band
    cdef Tile tile
    cdef Lines strip
    cdef bint packed, joined
    open_lines(&strip, scratch + plan.packed)
    while unit < end:
        # Unit = ((n*bands + band)*tiles + tile)*groups + group: the groups of a pixel share its memory page.
        k = unit // plan.groups
        c = (unit - k * plan.groups) * plan.group
        n = k // (plan.bands * plan.tiles)
        set_span(&band, &plan.h, k // plan.tiles % plan.bands * plan.band, plan.band)
        set_tile(&tile, plan, k % plan.tiles * plan.tile)
        unit += 1
        channels = least(plan.group, plan.channels - c)
        grad_output__hwc = grad_output__nhwc + parts * (n * g[0] + c * g[1])
        oh = first_source(&band)
        ow = first_source(&tile.w)
        rows = most(end_source(&band) - oh, 0)
        columns = most(end_source(&tile.w) - ow, 0)
        packed = most(rows, columns) <= room and rows * columns <= room
        pitch = packed_plane(rows * columns, size) // size if packed else 0
        packed = packed and plan.group * pitch <= room
        if packed and plan.layout == UNPACKED:
            tile.depth = tile.source_along = channels * parts
            tile.source_down = columns * tile.depth
            for r in range(rows):
                turn_cells(<element*>scratch + r * tile.source_down, channels,
                           grad_output__hwc + ((oh + r) * g[2] + ow * g[3]) * parts, g[1], channels, columns, size,
                           NULL)
            # Where the whole image would begin.
            backward_unit(&plan.h, &tile, <const element*>scratch - (oh * columns + ow) * tile.depth,
                          grad_input__nchw + parts * (n * x[0] + c * x[1]), band.iw, band.end, summed)
            continue
        if packed:
            tile.source_down = columns * parts
            tile.source_along = parts
            # Whole rows that follow one another are one.
            joined = columns * g[3] == g[2]
            for r in range(least(rows, 1) if joined else rows):
                turn_cells(<element*>scratch + r * columns * parts, pitch,
                           grad_output__hwc + ((oh + r) * g[2] + ow * g[3]) * parts, g[3],
                           rows * columns if joined else columns, channels, size,
                           <const char*>grad_output__nhwc + plan.source_bytes)
        for k in range(channels):
            source = grad_output__hwc + k * g[1] * parts
            if packed:
                # Where the whole plane would begin.
                source = <const element*>scratch + (k * pitch - oh * columns - ow) * parts
            to = grad_input__nchw + parts * (n * x[0] + (c + k) * x[1])
            if plan.strip > 0:
                backward_strips(plan, &tile, &strip, source, to, band.iw, band.end, NULL, summed)
            else:
                backward_unit(&plan.h, &tile, source, to, band.iw, band.end, summed)
    if plan.strip > 0:
        close_lines(&strip)


cdef void backward_planes(const ReplicationPad2dPlan* plan, const element* grad_output__nchw, element* grad_input__nchw,
                          char* scratch, int64_t unit, int64_t end, const real* summed) noexcept nogil:
    """The units [unit, end) of PLANES, or of PIXELS, of which an image is one plane."""
    cdef const int64_t* g = &plan.grad_output_strides[0]
    cdef const int64_t* x = &plan.grad_input_strides[0]
    cdef int64_t channels = 1 if plan.layout == PIXELS else plan.channels
    cdef const element* grad_output__hw
    cdef element* grad_input__hw
    cdef int64_t n, c, ih, iw
    cdef Lines strip
    cdef Tile tile
    # Unit = ((n*C + c)*bands + band)*tiles + tile: taken apart once, then counted on.
    iw = ih = c = 0
    if unit > 0:
        iw = unit % plan.tiles * plan.tile
        ih = unit // plan.tiles % plan.bands * plan.band
        c = unit // plan.tiles // plan.bands
    n = quotient(c, channels)
    c -= n * channels
    set_tile(&tile, plan, iw)
    open_lines(&strip, scratch)
    while unit < end:
        unit += 1
        grad_output__hw = grad_output__nchw + plan.parts * (n * g[0] + c * g[1])
        grad_input__hw = grad_input__nchw + plan.parts * (n * x[0] + c * x[1])
        if plan.strip > 0:
            backward_strips(plan, &tile, &strip, grad_output__hw, grad_input__hw, ih,
                            least(ih + plan.band, plan.h.size), <const char*>grad_output__nchw + plan.source_bytes,
                            summed)
        else:
            backward_unit(&plan.h, &tile, grad_output__hw, grad_input__hw, ih, least(ih + plan.band, plan.h.size),
                          summed)
        if plan.tiles > 1:
            iw = iw + plan.tile if iw + plan.tile < plan.w.size else 0
            set_tile(&tile, plan, iw)
        if iw == 0:
            ih += plan.band
            if ih >= plan.h.size:
                ih = 0
                c += 1
                if c == channels:
                    c = 0
                    n += 1
    if plan.strip > 0:
        close_lines(&strip)


cdef int64_t backward(const ReplicationPad2dPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [unit, end); the last two arguments give their types only."""
    if plan.layout == PACKED or plan.layout == UNPACKED:
        backward_packed(plan, <const element*>data[0], <element*>data[2], scratch, unit, end, summed)
    else:
        backward_planes(plan, <const element*>data[0], <element*>data[2], scratch, unit, end, summed)
    if plan.streamed:
        fence()
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const ReplicationPad2dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const ReplicationPad2dPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                    <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const ReplicationPad2dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const ReplicationPad2dPlan*>plan, data, scratch, begin, end, <const float*>NULL,
                    <const bfloat*>NULL)


cdef void replication_pad2d_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table. A complex number is two numbers: plan.parts."""
    row[<int>SLOT_F32] = backward_f32
    row[<int>SLOT_F64] = backward_f64
    row[<int>SLOT_F16] = backward_f16
    row[<int>SLOT_BF16] = backward_bf16
    row[<int>SLOT_C64] = backward_f32
    row[<int>SLOT_C128] = backward_f64
