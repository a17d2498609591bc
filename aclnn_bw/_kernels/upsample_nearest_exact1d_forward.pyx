"""UpsampleNearestExact1d: out[n, c, j] = self[n, c, index(j)].

index is PyTorch's nearest_exact_idx (aten/src/ATen/native/UpSample.h), as the gradient has it: index_of. Elements are
copied bit for bit, so a kernel knows their size alone, not their dtype.

Bounds. index_of is in [0, L) for every j and ascends; TWICE and SECOND are taken where index(j) = j // 2 with 2*L
elements, and index(j) = 2*j + 1 with L // 2. A unit's elements lie in its block, which lies in the row; phase 1 has
proved that both views lie inside their storage. Vectors are read where one from the first source on ends in the row. A
piece has at most PIECE elements, a block that is FOUND at most LONGEST_BLOCK.

| path | when | why |
|---|---|---|
| TWICE, SECOND | dense rows, ratio 0.5 and 2 | no index is looked up: the compiler makes shuffles of it |
| FOUND | others | the sources of a block are found once, a vector at a time, for all rows |
| . picked | a vector's sources lie in one | one shuffle instead of a load and a store for each element |
| streamed | rows >= 512 bytes, arrays beyond the caches | lines are not read before they are written |
| PIXELS | channels side by side in both | all channels of a source are copied as one |

`python -m benchmarks --operator upsample_nearest_exact1d` measures.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from aclnn_bw._core.arithmetic cimport least, quotient
from aclnn_bw._core.types cimport ALL_GOOD, RangeFn
from aclnn_bw._core.upsample_nearest_exact1d cimport NearestMap, index_of
from aclnn_bw._core.upsample_nearest_exact1d_forward cimport (
    FOUND, LONGEST_BLOCK, PIECE, PIXELS, SECOND, TWICE, UpsampleNearestExact1dForwardPlan,
)
from aclnn_bw._kernels.copies cimport AHEAD, Wide, copy_bytes, fetch, item, stream_bytes
from aclnn_bw._kernels.simd cimport VECTOR_BYTES, fence, simd_pick, simd_store, vector

# What the rows of a block have in common: where its first source lies, and those of its elements from there.
cdef struct Found:
    int64_t block
    int64_t first
    int32_t[LONGEST_BLOCK] table


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
    """to[i] = source[table[i]], the source having `room` elements."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(item)
    cdef int64_t i = 0
    cdef int64_t k
    cdef vector x
    while i + lanes <= n and table[i] + lanes <= room:
        if 1 < sizeof(item) < 16 and table[i + lanes - 1] - table[i] < lanes:
            simd_pick(&x, source, table + i, sizeof(item))
            simd_store(to + i, &x)
        else:
            for k in range(i, i + lanes):
                to[k] = source[table[k]]
        i += lanes
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


cdef inline void copy_dense(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const item* self__l,
                            item* to, int64_t j, int64_t n) noexcept nogil:
    """to[:n] = the elements from j, an even number, on; dense rows."""
    if plan.way == TWICE:
        copy_twice(to, self__l + j // 2, n)
    elif plan.way == SECOND:
        copy_second(to, self__l + 2 * j, n)
    else:
        copy_found(to, self__l + found.first, found.table + (j - found.block * plan.block),
                   plan.map.targets - found.first, n)


cdef void copy_apart(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* self__l,
                     char* out__l, int64_t j, int64_t end, const item* kind) noexcept nogil:
    """The elements [j, end), or pixels, of a row in any strides."""
    cdef int64_t along = plan.self_strides[2]
    cdef int64_t to_along = plan.out_strides[2]
    while j < end:
        if plan.layout == PIXELS:
            copy_bytes(out__l + j * to_along, self__l + source_of(plan, found, j) * along, plan.cell)
        else:
            memcpy(out__l + j * to_along, self__l + source_of(plan, found, j) * along, sizeof(item))
        j += 1


cdef void copy_row(const UpsampleNearestExact1dForwardPlan* plan, const Found* found, const char* self__l, char* out__l,
                   int64_t j, int64_t end, const item* kind) noexcept nogil:
    """The elements [j, end) of a row."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t n
    cdef item[PIECE] piece
    if plan.layout == PIXELS or plan.self_strides[2] != size or plan.out_strides[2] != size:
        copy_apart(plan, found, self__l, out__l, j, end, kind)
    elif not plan.streamed:
        copy_dense(plan, found, <const item*>self__l, <item*>out__l + j, j, end - j)
    else:
        while j < end:
            n = least(PIECE, end - j)
            fetch(self__l + source_of(plan, found, j) * size + AHEAD,
                  (source_of(plan, found, j + n - 1) - source_of(plan, found, j)) * size)
            copy_dense(plan, found, <const item*>self__l, <item*>piece, j, n)
            stream_bytes(out__l + j * size, <const char*>piece, n * size)
            j += n


cdef int64_t forward(const UpsampleNearestExact1dForwardPlan* plan, char** data, int64_t unit, int64_t end,
                     const item* kind) noexcept nogil:
    """The units [unit, end); unit = block*rows + row. The last argument gives its type only."""
    cdef int64_t block, row, j, n, c
    cdef Found found
    found.block = -1
    while unit < end:
        block = quotient(unit, plan.rows)
        row = unit - block * plan.rows
        j = block * plan.block
        if block != found.block and plan.way == FOUND:
            find_sources(&found, &plan.map, j, least(plan.block, plan.map.sources - j))
        found.block = block
        n = quotient(row, plan.channels)
        c = row - n * plan.channels
        copy_row(plan, &found, data[0] + n * plan.self_strides[0] + c * plan.self_strides[1],
                 data[1] + n * plan.out_strides[0] + c * plan.out_strides[1], j,
                 least(j + plan.block, plan.map.sources), kind)
        unit += 1
    if plan.streamed:
        fence()
    return ALL_GOOD


cdef int64_t forward_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const UpsampleNearestExact1dForwardPlan*>plan, data, begin, end, <const uint8_t*>NULL)


cdef int64_t forward_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const UpsampleNearestExact1dForwardPlan*>plan, data, begin, end, <const uint16_t*>NULL)


cdef int64_t forward_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const UpsampleNearestExact1dForwardPlan*>plan, data, begin, end, <const uint32_t*>NULL)


cdef int64_t forward_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const UpsampleNearestExact1dForwardPlan*>plan, data, begin, end, <const uint64_t*>NULL)


cdef int64_t forward_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const UpsampleNearestExact1dForwardPlan*>plan, data, begin, end, <const Wide*>NULL)


cdef void upsample_nearest_exact1d_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = forward_1
    row[1] = forward_2
    row[2] = forward_4
    row[3] = forward_8
    row[4] = forward_16
