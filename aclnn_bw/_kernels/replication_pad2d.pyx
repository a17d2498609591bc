"""ReplicationPad2dBackward: gradInput[i, j] = sum of gradOutput[p, q] over clamp(p - top, 0, H-1) == i and
clamp(q - left, 0, W-1) == j.

The formula is that of PyTorch's replication_pad2d_backward (aten/src/ATen/native/cpu/PaddingKernel.cpp), gathered
instead of scattered: every element of gradInput has one writer.

Numerics. float32, float16, bfloat16 and the parts of complex64 are summed in float32, float64 and the parts of
complex128 in float64. Terms start from +0.0, in copies too, so no -0.0 is left. First the rows p of each column q are
summed, ascending; then the columns: a run of fewer than 16 numbers ascending, a longer one in 8 chains (number k of the
run, real and imaginary parts counted separately, goes to chain k % 8), which are added pairwise. 16-bit results are
rounded once, at the end; what is copied is not converted at all. Bands, tiles, threads, strides and instruction sets
choose among paths that add the same terms in the same order, so they do not show in the result.

Bounds. The plan (`Axis`) lists for each i and j the p and q in [0, Ho) and [0, Wo) that reach it, and nothing else is
read; ih and iw stay in the unit's band and tile, which lie inside gradInput; phase 1 has proved that both views lie
inside their storage.

Where channels lie side by side in gradOutput, a cache line of them or several are transposed to planes of the scratch,
for a band of rows at a time, and these are then worked off as any others: the scratch holds the interval of rows and
columns that the unit needs, `packed` bytes at most, and a unit that needs more, because of large pads, is gathered
number by number (8x64x56x56 in float32: 3 times the time). Where those of gradInput do so too, all channels of a pixel
are copied or summed as vectors, which is as fast as planes are.

Why this form. All but the first and last row and column is a copy: rows of whole vectors, the last one overlapping the
one before (planes of 14x14: 1.3 times as fast as plain loops in float32, 1.6 times in float16), over all columns that
have a partner. The first and last element, which the copy wrote too, are then written again as sums, a band of rows at
a time while it is in the L1 cache. Nothing is converted or kept in memory on the way, so no workspace is needed, and
large arrays take as long as a plain copy. Sums of rows are made in blocks that stay in the L1 cache, of gradOutput's
columns as they are, padding included: what lies in the first and last column's run is then folded from the block.
Rows of 512 bytes and more of arrays beyond the caches are written past them: 1080x1920 in float32 then takes one thread
two thirds of the time, planes of 128x128 five sixths. Rows of 256 bytes would be slower by a fifth: their ends, which
are written again, are ordinary stores that wait for memory.
"""
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most, quotient
from aclnn_bw._core.replication_pad2d cimport PACKED, PIXELS, Axis, ReplicationPad2dPlan, packed_plane
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_C128, SLOT_C64, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable
from aclnn_bw._kernels.rows cimport add_row, narrow_row, sum_dense_rows, widen_row, widened
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, LINE, VECTOR_BYTES, add, bfloat, cell, element, fence, half, load, load_cells, narrow_to_bfloat,
    narrow_to_half, plus_zero, prefetch, prefetch_to_write, real, simd_store, simd_stream, vec, vector, vector_16,
    vector_half,
)
from aclnn_bw._kernels.transpose cimport transpose

cdef enum:
    COLUMNS = 1024      # numbers of a row that are summed at a time, on the stack
    LANES = 8           # chains of a long run
    LONG = 16           # numbers that make a run long
    FEW = 4             # numbers: fewer are not worth a vector
    STREAM = 256        # numbers: rows that are so short need no prefetching
    STREAMS = 8         # rows that are read side by side
    STREAMED = 80       # numbers: room for a cache line at each end, and two numbers, whatever their type
    PIECE = 128         # numbers of a pixel that are folded at a time: COLUMNS / LANES
    CHUNK = 16384       # bytes of rows that are copied, and whose ends are then summed while they are in the L1 cache
    AHEAD = 4096        # bytes: how far ahead streamed rows are fetched
    ENDS_AHEAD = 4      # rows: how far ahead their ends are


cdef inline void store(element* to, real value) noexcept nogil:
    if element is half:
        to[0] = narrow_to_half(<float>value)
    elif element is bfloat:
        to[0] = narrow_to_bfloat(<float>value)
    else:
        to[0] = <element>value


cdef inline void copy_piece(cell* to, const cell* source, vec* width) noexcept nogil:
    """A vector of copy_cells."""
    cdef vec x = plus_zero(load_cells(source, width), source)
    simd_store(to, &x)


cdef inline void copy_ends(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n, int64_t rows,
                           vec* width) noexcept nogil:
    """Rows of one vector or two, the first and the last numbers of each."""
    cdef int64_t last = n - <int64_t>(sizeof(vec) // sizeof(cell))
    while rows > 0:
        copy_piece(to, source, width)
        copy_piece(to + last, source + last, width)
        to += down
        source += source_down
        rows -= 1


cdef inline void copy_cells(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n,
                            int64_t rows) noexcept nogil:
    """As copy_rows, of whole vectors, the last one overlapping the one before; of shorter ones in short rows: a dozen
    elements are common, and one by one they take longer than all else."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(cell)
    cdef int64_t size = n * <int64_t>sizeof(cell)
    cdef int64_t i
    if size > 2 * VECTOR_BYTES:
        while rows > 0:
            i = 0
            while i < n - lanes:
                copy_piece(to + i, source + i, <vector*>NULL)
                i += lanes
            copy_piece(to + n - lanes, source + n - lanes, <vector*>NULL)
            to += down
            source += source_down
            rows -= 1
    elif size >= VECTOR_BYTES:
        copy_ends(to, down, source, source_down, n, rows, <vector*>NULL)
    elif HALF_BYTES < VECTOR_BYTES and size >= HALF_BYTES:
        copy_ends(to, down, source, source_down, n, rows, <vector_half*>NULL)
    elif 16 < HALF_BYTES and size >= 16:
        copy_ends(to, down, source, source_down, n, rows, <vector_16*>NULL)
    else:
        while rows > 0:
            for i in range(n):
                if cell is uint16_t:
                    to[i] = 0 if source[i] == 0x8000 else source[i]
                else:
                    to[i] = source[i] + <cell>0
            to += down
            source += source_down
            rows -= 1


cdef inline void stream_cells(cell* to, int64_t down, const cell* source, int64_t source_down, int64_t n,
                              int64_t rows) noexcept nogil:
    """As stream_rows. The first and last two numbers come by ordinary stores, for they are written again; their lines
    are fetched ahead, because stores wait for each other."""
    cdef int64_t line = LINE // <int64_t>sizeof(cell)
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(cell)
    cdef int64_t i, last
    cdef vector x
    while rows > 0:
        i = <int64_t>((LINE - (<size_t>to & (LINE - 1))) & (LINE - 1)) // <int64_t>sizeof(cell)
        if i < 2:
            i += line
        prefetch_to_write(to + ENDS_AHEAD * down)
        copy_cells(to, 0, source, 0, i, 1)
        while i + line + 1 < n:
            prefetch(<const char*>(source + i) + AHEAD)
            last = i + line
            while i < last:
                x = plus_zero(load_cells(source + i, &x), source)
                simd_stream(to + i, &x)
                i += lanes
        copy_cells(to + i, 0, source + i, 0, n - i, 1)
        to += down
        source += source_down
        rows -= 1


cdef inline void copy_rows(element* to, int64_t down, const element* source, int64_t source_down, int64_t n,
                           int64_t rows) noexcept nogil:
    """Dense rows: to[:n] = 0.0 + source[:n], then the next ones, `down` and `source_down` numbers further on."""
    if element is half or element is bfloat:
        copy_cells(<uint16_t*>to, down, <const uint16_t*>source, source_down, n, rows)
    else:
        copy_cells(to, down, source, source_down, n, rows)


cdef inline void stream_rows(element* to, int64_t down, const element* source, int64_t source_down, int64_t n,
                             int64_t rows) noexcept nogil:
    """As copy_rows, past the caches: rows of three cache lines and more, most of which go to memory in whole lines,
    which are not read before they are written."""
    if element is half or element is bfloat:
        stream_cells(<uint16_t*>to, down, <const uint16_t*>source, source_down, n, rows)
    else:
        stream_cells(to, down, source, source_down, n, rows)


cdef inline void add_lanes(real* sums, const real* run, int64_t n) noexcept nogil:
    """sums[k] += run[k] + run[LANES + k] + ..., each in this order, of n numbers, a multiple of LANES. In vectors of 16
    bytes on every instruction set: two or four independent chains keep the adder busy enough."""
    cdef vector_16[4] chains
    cdef int64_t each = <int64_t>(16 // sizeof(real))
    cdef int64_t count = <int64_t>(LANES * sizeof(real) // 16)
    cdef int64_t i = 0
    cdef int64_t k
    for k in range(count):
        chains[k] = load(sums + k * each, <vector_16*>NULL)
    while i < n:
        for k in range(count):
            chains[k] = add(chains[k], load(run + i + k * each, <vector_16*>NULL), run)
        i += LANES
    for k in range(count):
        simd_store(sums + k * each, &chains[k])


cdef inline void add_run(real* sums, int64_t chains, int64_t at, const real* run, int64_t n) noexcept nogil:
    """Add numbers at, at + 1, ... of a run to its chains. `chains` is LANES or the parts of an element."""
    cdef int64_t i = 0
    cdef int64_t whole
    if chains == LANES:
        while i < n and (at + i) % LANES != 0:
            sums[(at + i) % LANES] += run[i]
            i += 1
        whole = (n - i) // LANES * LANES
        add_lanes(sums, run + i, whole)
        i += whole
    while i < n:
        sums[(at + i) & (chains - 1)] += run[i]
        i += 1


cdef inline void join_chains(real* sums, int64_t chains, int64_t parts) noexcept nogil:
    """Add up the chains into sums[:parts]."""
    cdef int64_t k
    if chains == LANES:
        for k in range(LANES // 2):
            sums[k] += sums[k + LANES // 2]
        for k in range(LANES // 4):
            sums[k] += sums[k + LANES // 4]
        if parts == 1:
            sums[0] += sums[1]


cdef inline void store_number(element* to, const real* sums, int64_t parts) noexcept nogil:
    """One element, narrowed."""
    store(to, sums[0])
    if parts == 2:
        store(to + 1, sums[1])


cdef void fold_long_run(real* to, const element* run, int64_t n, int64_t parts) noexcept nogil:
    cdef real[LANES] sums
    cdef real[COLUMNS] wide
    cdef const real* numbers = wide
    cdef int64_t at = 0
    cdef int64_t m
    memset(sums, 0, sizeof(sums))
    while at < n:
        m = least(n - at, COLUMNS)
        if (real is float and element is float) or (real is double and element is double):
            numbers = run + at
        else:
            widen_row(<real*>wide, run + at, m)
        add_run(<real*>sums, LANES, at, numbers, m)
        at += m
    join_chains(<real*>sums, LANES, parts)
    to[0] = sums[0]
    to[1] = sums[1]


cdef inline void fold_short_run(real* to, const element* run, int64_t n, int64_t parts) noexcept nogil:
    """to[:parts] = the sum of a run of n numbers, ascending; to[:2] is written."""
    cdef int64_t i
    to[0] = to[1] = 0
    if parts == 1:
        for i in range(n):
            to[0] += widened(run + i, to)
    else:
        for i in range(0, n, 2):
            to[0] += widened(run + i, to)
            to[1] += widened(run + i + 1, to)


cdef inline void fold_few_rows(real* to, const element* run, int64_t n, int64_t down, int64_t rows,
                               int64_t parts) noexcept nogil:
    """to[:parts] = the sum of a run of n < LONG numbers in each of `rows` dense rows; to[:2] is written."""
    cdef real[LONG] sums
    sum_dense_rows(<real*>sums, run, down, rows, n)
    fold_short_run(to, <const real*>sums, n, parts)


cdef inline void fold_run(real* to, const element* run, int64_t n, int64_t parts) noexcept nogil:
    """to[:parts] = the sum of a run of n numbers in a dense row; to[:2] is written."""
    if n >= LONG:
        fold_long_run(to, run, n, parts)
    elif (element is half or element is bfloat) and n >= FEW:
        fold_few_rows(to, run, n, 0, 1, parts)
    else:
        fold_short_run(to, run, n, parts)


cdef inline void fold_each(element* to, int64_t down, const element* run, int64_t source_down, int64_t n, int64_t parts,
                           int64_t rows, const real* summed) noexcept nogil:
    cdef real[2] sum
    cdef int64_t r
    for r in range(rows):
        fold_run(<real*>sum, run + r * source_down, n, parts)
        store_number(to + r * down, <const real*>sum, parts)


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


cdef inline void store_sums(element* to, const real* sums, int64_t n) noexcept nogil:
    """to[:n] = sums[:n], narrowed."""
    if (real is float and element is float) or (real is double and element is double):
        copy_rows(to, 0, sums, 0, n, 1)
    else:
        narrow_row(to, sums, n)


cdef inline void gather(element* to, const element* source, int64_t along, int64_t n, int64_t parts) noexcept nogil:
    """n elements, `along` numbers apart."""
    cdef int64_t i
    if parts == 1:
        for i in range(n):
            to[i] = source[i * along]
    else:
        for i in range(n):
            to[2 * i] = source[i * along]
            to[2 * i + 1] = source[i * along + 1]


cdef inline void scatter(element* to, int64_t along, const element* source, int64_t n, int64_t parts) noexcept nogil:
    """n elements to places `along` numbers apart."""
    cdef int64_t i
    if parts == 1:
        for i in range(n):
            to[i * along] = source[i]
    else:
        for i in range(n):
            to[i * along] = source[2 * i]
            to[i * along + 1] = source[2 * i + 1]


cdef void sum_block(real* sums, const element* source, int64_t along, int64_t down, int64_t rows, int64_t n,
                    int64_t parts) noexcept nogil:
    """sums[:n*parts] = 0.0 + the first row + the second ..., each of n elements."""
    cdef element[COLUMNS] cells
    cdef real[COLUMNS] wide
    cdef const element* row
    cdef const real* terms = wide
    cdef int64_t numbers = n * parts
    cdef int64_t r = 0
    cdef int64_t i
    if along == parts:
        # More rows at a time are more streams than the processor prefetches.
        r = rows if numbers <= STREAM else least(rows, STREAMS)
        sum_dense_rows(sums, source, down, r, numbers)
    else:
        memset(sums, 0, <size_t>numbers * sizeof(real))
    while r < rows:
        row = source + r * down
        if along != parts:
            gather(<element*>cells, row, along, n, parts)
            row = cells
        if (real is float and element is float) or (real is double and element is double):
            terms = row
        else:
            widen_row(<real*>wide, row, numbers)
        for i in range(numbers):
            sums[i] += terms[i]
        r += 1


# The columns [iw, end) of gradInput, of which [begin, stop) have a partner in gradOutput; head and tail as in Axis, and
# 0 if the first or last column is another tile's.
cdef struct Tile:
    int64_t iw
    int64_t end
    int64_t begin
    int64_t stop
    int64_t head
    int64_t tail


cdef Tile make_tile(const Axis* w, int64_t iw, int64_t columns) noexcept nogil:
    cdef Tile tile
    tile.iw = iw
    tile.end = least(iw + columns, w.size)
    tile.begin = least(most(iw, w.begin), tile.end)
    tile.stop = most(tile.begin, least(tile.end, w.end))
    tile.head = w.head if iw == 0 else 0
    tile.tail = w.tail if tile.end == w.size else 0
    return tile


cdef inline int64_t first_source(const Axis* w, const Tile* tile) noexcept nogil:
    """What a tile needs is one interval of gradOutput's columns: head, partners and tail touch or overlap."""
    if tile.head > 0:
        return 0
    return tile.begin + w.shift if tile.begin < tile.stop else w.out - tile.tail


cdef inline int64_t end_source(const Axis* w, const Tile* tile) noexcept nogil:
    """At most first_source if it needs none."""
    if tile.tail > 0:
        return w.out
    return tile.stop + w.shift if tile.begin < tile.stop else tile.head


cdef void zero_columns(const ReplicationPad2dPlan* plan, element* grad_input__w, int64_t begin,
                       int64_t end) noexcept nogil:
    cdef int64_t along = plan.grad_input_strides[3] * plan.parts
    cdef int64_t iw, k
    if along == plan.parts:
        memset(grad_input__w + begin * along, 0, <size_t>((end - begin) * along) * sizeof(element))
        return
    for iw in range(begin, end):
        for k in range(plan.parts):
            memset(grad_input__w + iw * along + k, 0, sizeof(element))


cdef inline real sum_corner(const element* run, int64_t n, int64_t step, int64_t down, int64_t rows,
                            const real* summed) noexcept nogil:
    """The sum of n numbers, `step` apart, of each of `rows` rows."""
    cdef real total = 0
    cdef real column
    cdef int64_t i, r
    for i in range(n):
        column = widened(run + i * step, summed)
        for r in range(1, rows):
            column += widened(run + i * step + r * down, summed)
        total += column
    return total


cdef inline void store_corner(element* to, const element* run, int64_t n, int64_t down, int64_t rows, int64_t parts,
                              const real* summed) noexcept nogil:
    """The sum of a short run of n elements in each of `rows` rows."""
    cdef real[2] sum
    if n * parts >= FEW:
        fold_few_rows(<real*>sum, run, n * parts, down, rows, parts)
        store_number(to, <const real*>sum, parts)
    elif parts == 1:
        store(to, sum_corner(run, n, 1, down, rows, summed))
    else:
        store(to, sum_corner(run, n, 2, down, rows, summed))
        store(to + 1, sum_corner(run + 1, n, 2, down, rows, summed))


cdef void sum_few_rows(const ReplicationPad2dPlan* plan, const Tile* tile, const element* grad_output__w, int64_t rows,
                       element* grad_input__w, const real* summed) noexcept nogil:
    """As sum_rows, for dense rows of at most COLUMNS numbers and short runs: less to set up, so that a whole plane of
    14x14 takes two thirds of the time."""
    cdef real[COLUMNS] sums
    cdef const Axis* w = &plan.w
    cdef int64_t parts = plan.parts
    cdef int64_t down = plan.grad_output_strides[2] * parts
    cdef int64_t numbers = (tile.stop - tile.begin) * parts
    cdef const element* source = grad_output__w + (tile.begin + w.shift) * parts
    cdef element* to = grad_input__w + tile.begin * parts
    cdef real* made = sums
    if tile.begin > tile.iw or tile.stop < tile.end:
        zero_columns(plan, grad_input__w, tile.iw, tile.begin)
        zero_columns(plan, grad_input__w, tile.stop, tile.end)
    if (real is float and element is float) or (real is double and element is double):
        made = to
        sum_dense_rows(made, source, down, rows, numbers)
    else:
        sum_dense_rows(made, source, down, rows, numbers)
        narrow_row(to, <const real*>made, numbers)
    if tile.head > 0:
        store_corner(grad_input__w, grad_output__w, tile.head, down, rows, parts, summed)
    if tile.tail > 0:
        store_corner(grad_input__w + (w.size - 1) * parts, grad_output__w + (w.out - tile.tail) * parts, tile.tail,
                     down, rows, parts, summed)


cdef void sum_rows(const ReplicationPad2dPlan* plan, const Tile* tile, const element* grad_output__w, int64_t rows,
                   element* grad_input__w, const real* summed) noexcept nogil:
    """One row of gradInput from consecutive rows of gradOutput; any strides."""
    cdef real[COLUMNS] sums
    cdef element[COLUMNS] cells
    cdef real[LANES] head_sums
    cdef real[LANES] tail_sums
    cdef const Axis* w = &plan.w
    cdef int64_t parts = plan.parts
    cdef int64_t source_along = plan.grad_output_strides[3] * parts
    cdef int64_t along = plan.grad_input_strides[3] * parts
    cdef int64_t head_chains = LANES if tile.head * parts >= LONG else parts
    cdef int64_t tail_chains = LANES if tile.tail * parts >= LONG else parts
    cdef int64_t tail_begin = w.out - tile.tail
    cdef int64_t ow, end, columns, first, last
    cdef element* to
    if (source_along == parts and along == parts and rows <= STREAMS and w.out * parts <= COLUMNS
            and tile.head * parts < LONG and tile.tail * parts < LONG):
        sum_few_rows(plan, tile, grad_output__w, rows, grad_input__w, summed)
        return
    memset(head_sums, 0, sizeof(head_sums))
    memset(tail_sums, 0, sizeof(tail_sums))
    zero_columns(plan, grad_input__w, tile.iw, tile.begin)
    zero_columns(plan, grad_input__w, tile.stop, tile.end)
    ow = first_source(w, tile)
    end = end_source(w, tile)
    while ow < end:
        columns = least(end - ow, COLUMNS // parts)
        sum_block(<real*>sums, grad_output__w + ow * source_along, source_along, plan.grad_output_strides[2] * parts,
                  rows, columns, parts)
        if ow < tile.head:
            add_run(<real*>head_sums, head_chains, ow * parts, <const real*>sums,
                    least(columns, tile.head - ow) * parts)
        if ow + columns > tail_begin:
            first = most(tail_begin - ow, 0)
            add_run(<real*>tail_sums, tail_chains, (ow + first - tail_begin) * parts,
                    <const real*>sums + first * parts, (columns - first) * parts)
        first = most(tile.begin + w.shift - ow, 0)
        last = least(tile.stop + w.shift - ow, columns)
        if first < last:
            to = grad_input__w + (ow + first - w.shift) * along
            if along == parts:
                store_sums(to, <const real*>sums + first * parts, (last - first) * parts)
            else:
                store_sums(<element*>cells, <const real*>sums + first * parts, (last - first) * parts)
                scatter(to, along, <const element*>cells, last - first, parts)
        ow += columns
    if tile.head > 0:
        join_chains(<real*>head_sums, head_chains, parts)
        store_number(grad_input__w, <const real*>head_sums, parts)
    if tile.tail > 0:
        join_chains(<real*>tail_sums, tail_chains, parts)
        store_number(grad_input__w + (w.size - 1) * along, <const real*>tail_sums, parts)


cdef void copy_band(const ReplicationPad2dPlan* plan, const Tile* tile, const element* grad_output__hw,
                    element* grad_input__hw, int64_t rows, const real* summed) noexcept nogil:
    """Rows of gradInput that have one row of gradOutput each."""
    cdef const Axis* w = &plan.w
    cdef int64_t parts = plan.parts
    cdef int64_t source_down = plan.grad_output_strides[2] * parts
    cdef int64_t down = plan.grad_input_strides[2] * parts
    cdef int64_t numbers = (tile.stop - tile.begin) * parts
    cdef int64_t row_bytes = (tile.end - tile.iw + tile.head + tile.tail) * parts * <int64_t>sizeof(element)
    cdef int64_t chunk = rows
    cdef int64_t n, r
    if plan.grad_output_strides[3] != 1 or plan.grad_input_strides[3] != 1:
        for r in range(rows):
            sum_rows(plan, tile, grad_output__hw + r * source_down, 1, grad_input__hw + r * down, summed)
        return
    if source_down == numbers and down == numbers and tile.head == 0 and tile.tail == 0:
        # Rows that follow one another are one.
        numbers *= rows
        rows = chunk = 1
    elif rows * row_bytes > CHUNK:
        chunk = most(CHUNK // row_bytes, 1)
    while rows > 0:
        n = least(rows, chunk)
        if plan.streamed and numbers >= STREAMED:
            stream_rows(grad_input__hw + tile.begin * parts, down, grad_output__hw + (tile.begin + w.shift) * parts,
                        source_down, numbers, n)
        else:
            copy_rows(grad_input__hw + tile.begin * parts, down, grad_output__hw + (tile.begin + w.shift) * parts,
                      source_down, numbers, n)
        if tile.begin > tile.iw or tile.stop < tile.end:
            for r in range(n):
                zero_columns(plan, grad_input__hw + r * down, tile.iw, tile.begin)
                zero_columns(plan, grad_input__hw + r * down, tile.stop, tile.end)
        if tile.head > 0:
            fold_runs(grad_input__hw, down, grad_output__hw, source_down, tile.head * parts, parts, n, summed)
        if tile.tail > 0:
            fold_runs(grad_input__hw + (w.size - 1) * parts, down, grad_output__hw + (w.out - tile.tail) * parts,
                      source_down, tile.tail * parts, parts, n, summed)
        grad_output__hw += n * source_down
        grad_input__hw += n * down
        rows -= n


cdef void backward_unit(const ReplicationPad2dPlan* plan, const Tile* tile, const element* grad_output__hw,
                        element* grad_input__hw, int64_t ih, int64_t end, const real* summed) noexcept nogil:
    """The rows [ih, end) and a tile of the columns of one plane of gradInput."""
    cdef const Axis* h = &plan.h
    cdef int64_t source_down = plan.grad_output_strides[2] * plan.parts
    cdef int64_t down = plan.grad_input_strides[2] * plan.parts
    cdef int64_t begin, stop, last, r
    if ih == 0 and h.head > 0:
        sum_rows(plan, tile, grad_output__hw, h.head, grad_input__hw, summed)
        ih = 1
    last = end - 1 if end == h.size and h.tail > 0 else end
    begin = least(most(ih, h.begin), last)
    stop = most(begin, least(last, h.end))
    for r in range(ih, begin):
        zero_columns(plan, grad_input__hw + r * down, tile.iw, tile.end)
    if begin < stop:
        copy_band(plan, tile, grad_output__hw + (begin + h.shift) * source_down, grad_input__hw + begin * down,
                  stop - begin, summed)
    for r in range(stop, last):
        zero_columns(plan, grad_input__hw + r * down, tile.iw, tile.end)
    if last < end:
        sum_rows(plan, tile, grad_output__hw + (h.out - h.tail) * source_down, h.tail, grad_input__hw + last * down,
                 summed)


cdef int64_t backward_packed(const ReplicationPad2dPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                             const real* summed, const element* stored) noexcept nogil:
    """The units [unit, end) of a plan whose gradOutput is packed: as those of planes in the scratch."""
    cdef ReplicationPad2dPlan inner = plan[0]
    cdef const int64_t* g = &plan.grad_output_strides[0]
    cdef const int64_t* x = &plan.grad_input_strides[0]
    cdef const element* grad_output__hw
    cdef const element* source
    cdef element* grad_input__hw
    cdef int64_t parts = plan.parts
    cdef int64_t size = parts * <int64_t>sizeof(element)
    cdef int64_t c, k, n, r, oh, ow, rows, columns, channels, pitch
    cdef Tile band, tile
    cdef bint packed
    while unit < end:
        # Unit = ((n*bands + band)*tiles + tile)*groups + group: the groups of a pixel share its memory page.
        k = unit // plan.groups
        c = (unit - k * plan.groups) * plan.group
        n = k // (plan.bands * plan.tiles)
        band = make_tile(&plan.h, k // plan.tiles % plan.bands * plan.band, plan.band)
        tile = make_tile(&plan.w, k % plan.tiles * plan.tile, plan.tile)
        unit += 1
        channels = least(plan.group, plan.channels - c)
        grad_output__hw = <const element*>data[0] + parts * (n * g[0] + c * g[1])
        grad_input__hw = <element*>data[2] + parts * (n * x[0] + c * x[1])
        oh = first_source(&plan.h, &band)
        ow = first_source(&plan.w, &tile)
        rows = most(end_source(&plan.h, &band) - oh, 0)
        columns = most(end_source(&plan.w, &tile) - ow, 0)
        packed = most(rows, columns) <= plan.packed // size and rows * columns <= plan.packed // size
        pitch = packed_plane(rows * columns, size) // size if packed else 0
        packed = packed and plan.group * pitch <= plan.packed // size
        inner.grad_output_strides[2] = columns if packed else g[2]
        inner.grad_output_strides[3] = 1 if packed else g[3]
        if packed and columns * g[3] == g[2]:
            # Whole rows follow one another.
            transpose(scratch, pitch, grad_output__hw + (oh * g[2] + ow * g[3]) * parts, g[3], rows * columns, channels,
                      size)
        elif packed:
            for r in range(rows):
                transpose(<element*>scratch + r * columns * parts, pitch,
                          grad_output__hw + ((oh + r) * g[2] + ow * g[3]) * parts, g[3], columns, channels, size)
        for k in range(channels):
            source = grad_output__hw + k * parts
            if packed:
                # Where the whole plane would begin.
                source = <const element*>scratch + (k * pitch - oh * columns - ow) * parts
            backward_unit(&inner, &tile, source, grad_input__hw + k * x[1] * parts, band.iw, band.end, summed)
    if plan.streamed:
        fence()
    return ALL_GOOD


cdef void zero_pixels(element* to, int64_t along, int64_t depth, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t iw
    for iw in range(begin, end):
        memset(to + iw * along, 0, <size_t>depth * sizeof(element))


cdef void fold_pixels(element* to, const element* run, int64_t n, int64_t along, int64_t down, int64_t rows,
                      int64_t depth, int64_t parts, const real* summed) noexcept nogil:
    """The first or last pixel of a row: the sum of a run of n pixels, `along` numbers apart, in each of `rows` rows."""
    cdef real[COLUMNS] sums
    cdef real[PIECE] column
    cdef int64_t most_chains = LANES // parts if n * parts >= LONG else 1
    cdef int64_t at = 0
    cdef int64_t chains, k, m
    while at < depth:
        m = least(depth - at, PIECE)
        chains = most_chains
        if rows == 1 and chains == 1:
            sum_dense_rows(<real*>sums, run + at, along, n, m)
        else:
            memset(sums, 0, <size_t>(chains * m) * sizeof(real))
            for k in range(n):
                sum_dense_rows(<real*>column, run + k * along + at, down, rows, m)
                add_row(<real*>sums + k % chains * m, <const real*>column, m)
        while chains > 1:
            chains //= 2
            add_row(<real*>sums, <const real*>sums + chains * m, chains * m)
        store_sums(to + at, <const real*>sums, m)
        at += m


cdef void pixel_row(const ReplicationPad2dPlan* plan, const Tile* tile, const element* grad_output__wc, int64_t rows,
                    element* grad_input__wc, const real* summed) noexcept nogil:
    """One row of gradInput from consecutive rows of gradOutput."""
    cdef real[COLUMNS] sums
    cdef const Axis* w = &plan.w
    cdef int64_t parts = plan.parts
    cdef int64_t depth = plan.channels * parts
    cdef int64_t source_along = plan.grad_output_strides[3] * parts
    cdef int64_t source_down = plan.grad_output_strides[2] * parts
    cdef int64_t along = plan.grad_input_strides[3] * parts
    cdef const element* source = grad_output__wc + (tile.begin + w.shift) * source_along
    cdef element* to = grad_input__wc + tile.begin * along
    cdef int64_t pixels = tile.stop - tile.begin
    cdef int64_t n = depth
    cdef int64_t i, at, m
    zero_pixels(grad_input__wc, along, depth, tile.iw, tile.begin)
    zero_pixels(grad_input__wc, along, depth, tile.stop, tile.end)
    if source_along == depth and along == depth:
        # Pixels that follow one another are one.
        n *= pixels
        pixels = least(pixels, 1)
    if rows == 1:
        copy_rows(to, along, source, source_along, n, pixels)
    else:
        for i in range(pixels):
            at = 0
            while at < n:
                m = least(n - at, COLUMNS)
                sum_dense_rows(<real*>sums, source + i * source_along + at, source_down, rows, m)
                store_sums(to + i * along + at, <const real*>sums, m)
                at += m
    if tile.head > 0:
        fold_pixels(grad_input__wc, grad_output__wc, tile.head, source_along, source_down, rows, depth, parts, summed)
    if tile.tail > 0:
        fold_pixels(grad_input__wc + (w.size - 1) * along, grad_output__wc + (w.out - tile.tail) * source_along,
                    tile.tail, source_along, source_down, rows, depth, parts, summed)


cdef int64_t backward_pixels(const ReplicationPad2dPlan* plan, char** data, int64_t unit, int64_t end,
                             const real* summed, const element* stored) noexcept nogil:
    """The units [unit, end) of a plan of pixels; their rows are chosen as those of planes in backward_unit."""
    cdef const Axis* h = &plan.h
    cdef const int64_t* g = &plan.grad_output_strides[0]
    cdef const int64_t* x = &plan.grad_input_strides[0]
    cdef int64_t parts = plan.parts
    cdef int64_t n, ih, oh, rows
    cdef Tile tile
    cdef element* to
    while unit < end:
        n = unit // (plan.tiles * plan.bands)
        ih = unit // plan.tiles % plan.bands * plan.band
        tile = make_tile(&plan.w, unit % plan.tiles * plan.tile, plan.tile)
        unit += 1
        for ih in range(ih, least(ih + plan.band, h.size)):
            to = <element*>data[2] + (n * x[0] + ih * x[2]) * parts
            oh = ih + h.shift
            rows = 1
            if ih == 0 and h.head > 0:
                oh = 0
                rows = h.head
            elif ih == h.size - 1 and h.tail > 0:
                oh = h.out - h.tail
                rows = h.tail
            elif not h.begin <= ih < h.end:
                zero_pixels(to, x[3] * parts, plan.channels * parts, tile.iw, tile.end)
                continue
            pixel_row(plan, &tile, <const element*>data[0] + (n * g[0] + oh * g[2]) * parts, rows, to, summed)
    return ALL_GOOD


cdef int64_t backward(const ReplicationPad2dPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [unit, end); the last two arguments give their types only."""
    cdef const element* grad_output__nchw = <const element*>data[0]
    cdef element* grad_input__nchw = <element*>data[2]
    cdef const element* grad_output__hw
    cdef element* grad_input__hw
    cdef int64_t n, c, ih, iw
    cdef Tile tile
    if plan.layout == PACKED:
        return backward_packed(plan, data, scratch, unit, end, summed, stored)
    if plan.layout == PIXELS:
        return backward_pixels(plan, data, unit, end, summed, stored)
    # Unit = ((n*C + c)*bands + band)*tiles + tile: taken apart once, then counted on.
    iw = ih = c = 0
    if unit > 0:
        iw = unit % plan.tiles * plan.tile
        ih = unit // plan.tiles % plan.bands * plan.band
        c = unit // plan.tiles // plan.bands
    n = quotient(c, plan.channels)
    c -= n * plan.channels
    tile = make_tile(&plan.w, iw, plan.tile)
    while unit < end:
        unit += 1
        grad_output__hw = grad_output__nchw + plan.parts * (
            n * plan.grad_output_strides[0] + c * plan.grad_output_strides[1])
        grad_input__hw = grad_input__nchw + plan.parts * (
            n * plan.grad_input_strides[0] + c * plan.grad_input_strides[1])
        backward_unit(plan, &tile, grad_output__hw, grad_input__hw, ih, least(ih + plan.band, plan.h.size), summed)
        if plan.tiles > 1:
            iw = iw + plan.tile if iw + plan.tile < plan.w.size else 0
            tile = make_tile(&plan.w, iw, plan.tile)
        if iw == 0:
            ih += plan.band
            if ih >= plan.h.size:
                ih = 0
                c += 1
                if c == plan.channels:
                    c = 0
                    n += 1
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


cdef void replication_pad2d_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table. A complex number is two numbers: plan.parts."""
    table.replication_pad2d_backward[<int>SLOT_F32] = backward_f32
    table.replication_pad2d_backward[<int>SLOT_F64] = backward_f64
    table.replication_pad2d_backward[<int>SLOT_F16] = backward_f16
    table.replication_pad2d_backward[<int>SLOT_BF16] = backward_bf16
    table.replication_pad2d_backward[<int>SLOT_C64] = backward_f32
    table.replication_pad2d_backward[<int>SLOT_C128] = backward_f64
