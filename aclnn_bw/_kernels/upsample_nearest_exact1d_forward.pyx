"""UpsampleNearestExact1d: out[n, c, j] = self[n, c, index(j)].

index is PyTorch's nearest_exact_idx (aten/src/ATen/native/UpSample.h), as the gradient has it: index_of. Elements are
copied bit for bit, so a kernel knows their size alone, not their dtype.

Bounds. index_of is in [0, L) for every j and ascends; TWICE and SECOND are taken where index(j) = j // 2 with 2*L
elements, and index(j) = 2*j + 1 with L // 2. A unit's elements lie in its block, which lies in the row; phase 1 has
proved that both views lie inside their storage. Vectors are read where one from the first source on ends in the row,
or, if rows follow each other, before the end of self. A block that is FOUND has at most LONGEST_BLOCK elements. The
scratch has two elements more than a block for each channel of a group, and a block no more sources than that
(`choose_layout`); or a strip.

| path | when | why |
|---|---|---|
| TWICE, SECOND | dense rows, ratio 0.5 and 2 | no index is looked up: the compiler makes shuffles of it |
| FOUND | others | the sources of a block are found once, a vector at a time, for all rows |
| . few | short rows, evenly apart | a loop of their own: 2 to 6 times |
| . picked | a vector's sources lie in one | one shuffle instead of a load and a store for each element |
| PIXELS | channels side by side in both | all channels of a source are copied as one |
| PACKED, UNPACKED | in one of both | of sources and elements the fewer are transposed: 3 to 10 times |

Beyond the caches strips of rows that lie end to end go past them, and PACKED rows (lines.pxd), for lines are not
read then before they are written: 0.4 to 0.85 of the time.

`python -m benchmarks --operator upsample_nearest_exact1d` measures.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport ceil_div, least, quotient
from aclnn_bw._core.types cimport ALL_GOOD, STRIP, RangeFn
from aclnn_bw._core.upsample_nearest_exact1d cimport NearestMap, index_of
from aclnn_bw._core.upsample_nearest_exact1d_forward cimport (
    FOUND, LONGEST_BLOCK, PACKED, PIXELS, PLANES, SECOND, TWICE, UpsampleNearestExact1dForwardPlan,
)
from aclnn_bw._kernels.copies cimport Wide, copy_bytes, item, join_four
from aclnn_bw._kernels.lines cimport (
    Lines, Rest, close_lines, flush_rest, next_strip, open_lines, stream_on, stream_strip,
)
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.simd cimport VECTOR_BYTES, fence, simd_load, simd_pick, simd_store, vector, vector_16
from aclnn_bw._kernels.transpose cimport turned

cdef enum:
    FEW_LANES = 4       # what is left of them is sooner copied one by one

# What the rows of a block have in common: where its first source lies, and those of its elements from there.
cdef struct Found:
    int64_t block
    int64_t first
    int32_t[LONGEST_BLOCK] table


# What a unit of work is.
cdef struct Unit:
    int64_t begin       # elements of a row
    int64_t end
    int64_t channels
    const char* source  # its row
    char* to


cdef inline void copy_twice(item* to, const item* source, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n // 2):
        to[2 * i] = source[i]
        to[2 * i + 1] = source[i]
    if n & 1:
        to[n - 1] = source[n // 2]


cdef inline void copy_second(item* to, const item* source, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        to[i] = source[2 * i + 1]


cdef inline void find_sources(Found* found, const NearestMap* map, int64_t j, int64_t n) noexcept nogil:
    """index_of of the elements from j on, by vectors. All sums here are exact; what is beyond the row is cut before it
    becomes an integer, and the distance from the first source has the place's fraction."""
    cdef double start = <double>j + 0.5
    cdef double ratio = <double>map.ratio
    cdef double last = <double>(map.targets - 1)
    cdef double first, place
    cdef int32_t i
    found.first = index_of(map, j)
    first = <double>found.first
    for i in range(<int32_t>n):
        place = <double><float>((start + <double>i) * ratio)
        place = place if place < last else last
        found.table[i] = <int32_t>(place - first)


cdef inline void copy_found(item* to, const item* source, const int32_t* table, int64_t room,
                            int64_t n) noexcept nogil:
    """to[i] = source[table[i]]; `room` elements of the source may be read. The last vector overlaps the one before, if
    it is long and one shuffle makes it."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(item)
    cdef int64_t i = 0
    cdef int64_t k
    cdef vector x
    while i + lanes <= n and table[i] + lanes <= room:
        if 1 < sizeof(item) < 16 and table[i + lanes - 1] - table[i] < lanes:
            simd_pick(&x, source, table + i, sizeof(item))
            simd_store(to + i, &x)
        elif item is uint16_t:
            for k in range(i, i + lanes, 4):
                join_four(<char*>(to + k), source[table[k]], source[table[k + 1]], source[table[k + 2]],
                          source[table[k + 3]])
        else:
            for k in range(i, i + lanes):
                to[k] = source[table[k]]
        i += lanes
    if 1 < sizeof(item) < 16 and lanes > FEW_LANES and i < n and n >= lanes:
        k = n - lanes
        if table[n - 1] - table[k] < lanes and table[k] + lanes <= room:
            simd_pick(&x, source, table + k, sizeof(item))
            simd_store(to + k, &x)
            return
    while i < n:
        to[i] = source[table[i]]
        i += 1


cdef inline int64_t source_of(const UpsampleNearestExact1dForwardPlan* plan, const Found* found,
                              int64_t j) noexcept nogil:
    """Of an element of the block that has been found."""
    if plan.way == TWICE:
        return j // 2
    if plan.way == SECOND:
        return 2 * j + 1
    return found.first + found.table[j - found.block * plan.block]


cdef void copy_dense(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const item* self__l, item* to,
                     int64_t j, int64_t n, int64_t room) noexcept nogil:
    """to[:n] = the elements from j, an even number, on; dense rows. `room` elements of self may be read."""
    if plan.way == TWICE:
        copy_twice(to, self__l + j // 2, n)
    elif plan.way == SECOND:
        copy_second(to, self__l + 2 * j, n)
    else:
        copy_found(to, self__l + found.first, found.table + (j - found.block * plan.block),
                   room - found.first, n)


cdef inline int64_t copy_whole(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* source,
                               int64_t along, int64_t last, char* to, int64_t cell, int64_t j, int64_t end,
                               turned* width) noexcept nogil:
    """Of cells that go end to end, those of which a vector is there on both sides: what is written beyond one is
    overwritten by the next. Returns the first that is left."""
    cdef int64_t room = last * along + cell - <int64_t>sizeof(turned)
    cdef int64_t stop = (end - j) * cell - <int64_t>sizeof(turned)
    cdef int64_t at = 0
    cdef int64_t place
    cdef turned x
    if plan.way == TWICE:
        # j is even.
        place = j // 2 * along
        while at + cell <= stop and place <= room:
            simd_load(&x, source + place)
            simd_store(to + at, &x)
            simd_store(to + at + cell, &x)
            place += along
            at += 2 * cell
            j += 2
    while at <= stop:
        place = source_of(plan, found, j) * along
        if place > room:
            break
        simd_load(&x, source + place)
        simd_store(to + at, &x)
        at += cell
        j += 1
    return j


cdef void copy_cells(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* source,
                     int64_t along, int64_t last, char* to, int64_t to_along, int64_t cell, int64_t j,
                     int64_t end) noexcept nogil:
    """The elements [j, end) of some channels side by side, from `to` on; `last` is the last source that is there."""
    cdef int64_t i = j
    if to_along == cell and along >= cell:
        # Smaller cells than a vector would take copy_bytes' slow way: 3 to 10 times as long.
        if cell <= 16:
            i = copy_whole(plan, found, source, along, last, to, cell, j, end, <vector_16*>NULL)
        elif cell <= VECTOR_BYTES:
            i = copy_whole(plan, found, source, along, last, to, cell, j, end, <vector*>NULL)
    while i < end:
        copy_bytes(to + (i - j) * to_along, source + source_of(plan, found, i) * along, cell)
        i += 1


cdef void copy_apart(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* self__l,
                     char* out__l, int64_t j, int64_t end, const item* kind) noexcept nogil:
    """The elements [j, end) of a row in any strides."""
    while j < end:
        memcpy(out__l + j * plan.out_strides[2], self__l + source_of(plan, found, j) * plan.self_strides[2],
               sizeof(item))
        j += 1


cdef void stream_row(Rest* rest, char* to, const char* made, int64_t n) noexcept nogil:
    """stream_on, compiled once for all types."""
    stream_on(rest, to, made, n)


cdef void turn_cells(void* to, int64_t to_pitch, const void* source, int64_t pitch, int64_t rows, int64_t columns,
                     int64_t size, const void* end) noexcept nogil:
    """turn_any, compiled once for all types, for it is long."""
    turn_any(to, to_pitch, source, pitch, rows, columns, size, end)


cdef void copy_packed(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* self__cl,
                      char* out__cl, item* scratch, int64_t channels, int64_t j, int64_t end, const void* source_end,
                      Rest* rest) noexcept nogil:
    """The elements [j, end) of some channels. Those that are transposed, or streamed, are made in the scratch: rows of
    out that lie a power of two apart share a set of the cache, and blocks of them took 1.3 to 4.9 times as long."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t along = plan.self_strides[2]
    cdef int64_t cell = channels * size
    cdef int64_t first = source_of(plan, found, j)
    cdef int64_t sources = source_of(plan, found, end - 1) + 1 - first
    cdef int64_t down = plan.out_strides[1] // size
    # As if the rows began where their source 0 would lie.
    cdef const item* source = scratch - first
    cdef item* made = scratch + plan.group * plan.pitch
    cdef item* to = <item*>out__cl + j
    cdef int64_t c
    if not plan.shrinks:
        turn_cells(scratch, plan.pitch, self__cl + first * along, along // size, sources, channels, size, source_end)
        for c in range(channels):
            copy_dense(plan, found, source + c * plan.pitch, made if plan.streams else to + c * down, j, end - j,
                       plan.map.targets)
            if plan.streams:
                stream_row(rest, <char*>(to + c * down), <const char*>made, (end - j) * size)
        return
    copy_cells(plan, found, self__cl, along, plan.map.targets - 1, <char*>scratch, cell, cell, j, end)
    turn_cells(made, plan.pitch, scratch, channels, end - j, channels, size, NULL)
    for c in range(channels):
        if plan.streams:
            stream_row(rest, <char*>(to + c * down), <const char*>(made + c * plan.pitch), (end - j) * size)
        else:
            copy_bytes(<char*>(to + c * down), <const char*>(made + c * plan.pitch), (end - j) * size)


cdef void copy_unpacked(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* self__cl,
                        char* out__cl, item* scratch, int64_t channels, int64_t j, int64_t end) noexcept nogil:
    """The elements [j, end) of some channels."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t to_along = plan.out_strides[2]
    cdef int64_t cell = channels * size
    cdef int64_t first = source_of(plan, found, j)
    cdef int64_t sources = source_of(plan, found, end - 1) + 1 - first
    cdef int64_t c
    if plan.shrinks:
        for c in range(channels):
            copy_dense(plan, found, <const item*>(self__cl + c * plan.self_strides[1]), scratch + c * plan.pitch, j,
                       end - j, plan.map.targets)
        turn_cells(out__cl + j * to_along, to_along // size, scratch, plan.pitch, channels, end - j, size, NULL)
    else:
        turn_cells(scratch, channels, self__cl + first * size, plan.self_strides[1] // size, channels, sources, size,
                   NULL)
        copy_cells(plan, found, <const char*>scratch - first * cell, cell, first + sources - 1,
                   out__cl + j * to_along, to_along, cell, j, end)


cdef inline Unit open_unit(const UpsampleNearestExact1dForwardPlan* plan, Found* found, char** data,
                           int64_t unit) noexcept nogil:
    """unit = block*rows + row."""
    cdef int64_t block = quotient(unit, plan.rows)
    cdef int64_t row = unit - block * plan.rows
    cdef int64_t n, c
    cdef Unit u
    u.begin = block * plan.block
    u.end = least(u.begin + plan.block, plan.map.sources)
    if block != found.block and plan.way == FOUND:
        find_sources(found, &plan.map, u.begin, u.end - u.begin)
    found.block = block
    n = quotient(row, plan.groups)
    c = (row - n * plan.groups) * plan.group
    u.channels = least(plan.group, plan.channels - c)
    u.source = data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
    u.to = data[1] + n * plan.out_strides[0] + c * plan.out_strides[1]
    return u


cdef void copy_groups(const UpsampleNearestExact1dForwardPlan* plan, char** data, char* scratch, int64_t unit,
                      int64_t end, const item* kind) noexcept nogil:
    """The units [unit, end) of PIXELS, PACKED and UNPACKED. In one loop with the others, gcc keeps what short rows need
    on the stack: 0.8 of their speed."""
    cdef Found found
    cdef Rest rest
    cdef Unit u
    found.block = -1
    rest.to = NULL
    while unit < end:
        u = open_unit(plan, &found, data, unit)
        if plan.layout == PIXELS:
            copy_cells(plan, &found, u.source, plan.self_strides[2], plan.map.targets - 1,
                       u.to + u.begin * plan.out_strides[2], plan.out_strides[2],
                       plan.channels * <int64_t>sizeof(item), u.begin, u.end)
        elif plan.layout == PACKED:
            copy_packed(plan, &found, u.source, u.to, <item*>scratch, u.channels, u.begin, u.end,
                        data[0] + plan.source_bytes, &rest)
        else:
            copy_unpacked(plan, &found, u.source, u.to, <item*>scratch, u.channels, u.begin, u.end)
        unit += 1
    flush_rest(&rest)
    if plan.streams:
        fence()


cdef void copy_short(const UpsampleNearestExact1dForwardPlan* plan, char** data, int64_t row, int64_t end,
                     const item* kind) noexcept nogil:
    """The rows [row, end), whole and evenly apart, of a few elements each: to begin one anew takes longer."""
    cdef int64_t n = plan.map.sources
    cdef int64_t step = plan.self_strides[1] // <int64_t>sizeof(item)
    cdef int64_t to_step = plan.out_strides[1] // <int64_t>sizeof(item)
    cdef Found found
    cdef const item* source
    cdef item* to = <item*>data[1] + row * to_step
    cdef int64_t i
    find_sources(&found, &plan.map, 0, n)
    source = <const item*>data[0] + row * step + found.first
    while row < end:
        for i in range(n):
            to[i] = source[found.table[i]]
        source += step
        to += to_step
        row += 1


cdef void stream_elements(Lines* strip, int64_t n, const char* next, int64_t lines, const char* end) noexcept nogil:
    """stream_strip, compiled once for all types."""
    stream_strip(strip, n, next, lines, end)


cdef void stream_rows(const UpsampleNearestExact1dForwardPlan* plan, char** data, char* scratch, int64_t unit,
                      int64_t end, const item* kind) noexcept nogil:
    """The units [unit, end) of dense rows, a strip at a time, past the caches."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t most_elements = STRIP // size
    cdef int64_t lines = ceil_div(plan.map.targets, plan.map.sources)
    cdef const char* source_end = data[0] + plan.source_bytes
    cdef const item* source
    cdef int64_t j, n
    cdef Found found
    cdef Lines strip
    cdef Unit u
    found.block = -1
    open_lines(&strip, scratch)
    while unit < end:
        u = open_unit(plan, &found, data, unit)
        source = <const item*>u.source
        j = u.begin
        while j < u.end:
            n = least(most_elements, u.end - j)
            copy_dense(plan, &found, source, <item*>next_strip(&strip, u.to + j * size), j, n, plan.map.targets)
            stream_elements(&strip, n * size, <const char*>(source + source_of(plan, &found, j + n - 1) + 1), lines,
                            source_end)
            j += n
        unit += 1
    close_lines(&strip)


cdef int64_t forward(const UpsampleNearestExact1dForwardPlan* plan, char** data, char* scratch, int64_t unit,
                     int64_t end, const item* kind) noexcept nogil:
    """The units [unit, end). The last argument gives its type only."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef bint dense = plan.self_strides[2] == size and plan.out_strides[2] == size
    # Rows of self follow each other: vectors may be read beyond one.
    cdef bint joined = (plan.self_strides[1] == plan.map.targets * size
                        and plan.self_strides[0] == plan.channels * plan.self_strides[1])
    cdef int64_t room = plan.map.targets
    cdef Found found
    cdef Unit u
    if plan.layout != PLANES:
        copy_groups(plan, data, scratch, unit, end, kind)
        unit = end
    elif plan.few:
        copy_short(plan, data, unit, end, kind)
        unit = end
    found.block = -1
    while unit < end:
        u = open_unit(plan, &found, data, unit)
        if not dense:
            copy_apart(plan, &found, u.source, u.to, u.begin, u.end, kind)
        elif plan.way == FOUND:
            if joined:
                room = (data[0] + plan.source_bytes - u.source) // size
            # As a call, short rows of elements take 1.08 times as long.
            copy_found(<item*>u.to + u.begin, <const item*>u.source + found.first, found.table, room - found.first,
                       u.end - u.begin)
        else:
            copy_dense(plan, &found, <const item*>u.source, <item*>u.to + u.begin, u.begin, u.end - u.begin, room)
        unit += 1
    return ALL_GOOD


cdef inline int64_t copy_units(const UpsampleNearestExact1dForwardPlan* plan, char** data, char* scratch, int64_t unit,
                               int64_t end, const item* kind) noexcept nogil:
    """The units [unit, end). What is streamed has a loop of its own for what copy_groups has one."""
    if VECTOR_BYTES > 16 and sizeof(item) > 1 and sizeof(item) < 16 and plan.streams and plan.layout == PLANES:
        stream_rows(plan, data, scratch, unit, end, kind)
        return ALL_GOOD
    return forward(plan, data, scratch, unit, end, kind)


cdef int64_t forward_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return copy_units(<const UpsampleNearestExact1dForwardPlan*>plan, data, scratch, begin, end, <const uint8_t*>NULL)


cdef int64_t forward_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return copy_units(<const UpsampleNearestExact1dForwardPlan*>plan, data, scratch, begin, end, <const uint16_t*>NULL)


cdef int64_t forward_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return copy_units(<const UpsampleNearestExact1dForwardPlan*>plan, data, scratch, begin, end, <const uint32_t*>NULL)


cdef int64_t forward_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return copy_units(<const UpsampleNearestExact1dForwardPlan*>plan, data, scratch, begin, end, <const uint64_t*>NULL)


cdef int64_t forward_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return copy_units(<const UpsampleNearestExact1dForwardPlan*>plan, data, scratch, begin, end, <const Wide*>NULL)


cdef void upsample_nearest_exact1d_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = forward_1
    row[1] = forward_2
    row[2] = forward_4
    row[3] = forward_8
    row[4] = forward_16
