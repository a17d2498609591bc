"""Im2col: out[(c*kH + kh)*kW + kw, lh*Lw + lw] = self[c, lh*sH - pH + kh*dH, lw*sW - pW + kw*dW], 0 outside the image.

The formula is that of PyTorch's im2col (aten/src/ATen/native/im2col.h). Elements are copied bit for bit, so a kernel
knows their size alone; where out's dtype is another one, pieces of rows are converted, each element rounded once.

Bounds. `find_inside` says which windows of a kernel position lie inside the image along an axis; others are zeros, and
nothing is read for them. Phase 1 has proved that both views lie inside their storage and that out has a row for each
kernel position, of Lh*Lw windows. A tile has at most TILE windows of TILE_BYTES each. A block that is streamed has at
most BLOCK_BYTES and room for a line, which is moved to its beginning: what is left of it is less than that.

| path | when | why |
|---|---|---|
| ROWS | out's windows side by side | |
| . flat | stride 1, as many windows as columns | the plane is copied in one go, then the edges are made 0 |
| . streamed | arrays beyond the caches, long rows | lines are not read before they are written: 1.2 to 3 times |
| TURNED | stride >= 3, kernel >= 3 undilated | a transposition reads each cache line once |
| PIECES | other strides or dtypes of out | what belongs together is written together |
| TABLE | few windows in a row | im2col_table.pyx |
| LAST | C*kH*kW side by side in out, C >= 4, pixels in long runs | im2col_last.pyx |
| PACKED | channels side by side in self | planes are made of a group, which is read from them kH*kW times |

`python -m benchmarks --operator im2col` measures.
"""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t, uintptr_t
from libc.string cimport memcpy, memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.im2col_forward cimport PIECES, ROWS, TILE, TILE_BYTES, WORDS, Im2colForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, DT_DOUBLE, DT_FLOAT, DT_FLOAT16, RangeFn
from aclnn_bw._kernels.copies cimport Wide, copy_bytes, item, join_four
from aclnn_bw._kernels.im2col_columns cimport stream
from aclnn_bw._kernels.im2col_planes cimport Inside, find_inside, pack_planes, place
from aclnn_bw._kernels.planes cimport turn_any
from aclnn_bw._kernels.rows cimport bfloat, half, narrow_row, widen_row
from aclnn_bw._kernels.simd cimport LINE, fence, prefetch_to_write
from aclnn_bw._kernels.transpose cimport transpose

cdef enum:
    FETCHED = 256       # bytes: how far ahead lines are fetched to be written
    BLOCK_BYTES = 4096  # that are streamed at a time
    BLOCK_WORDS = 520   # of 8 bytes: a block and a line

cdef extern from "convert.h" nogil:
    void round_to_odd_row "aclnn_bw_round_to_odd_row" (float* to, const double* source, int64_t n) noexcept

cdef inline void zero_items(item* to, int64_t n) noexcept nogil:
    """Most gaps are of one element: a call costs more than the rest of the row."""
    if n == 1:
        memset(to, 0, sizeof(item))
    elif n > 0:
        memset(to, 0, <size_t>n * sizeof(item))


cdef inline void copy_apart(item* to, const item* source, int64_t stride, int64_t n) noexcept nogil:
    """to[:n] = source[: n*stride : stride]."""
    cdef int64_t i
    if stride == 1:
        copy_bytes(<char*>to, <const char*>source, n * <int64_t>sizeof(item))
    elif stride == 2:
        for i in range(n):
            to[i] = source[2 * i]
    else:
        i = 0
        if item is uint16_t:
            while i + 4 <= n:
                join_four(<char*>(to + i), source[i * stride], source[(i + 1) * stride], source[(i + 2) * stride],
                          source[(i + 3) * stride])
                i += 4
        while i < n:
            to[i] = source[i * stride]
            i += 1


cdef inline void make_windows(const Im2colForwardPlan* plan, const item* row, const Inside* w, int64_t o, int64_t n,
                              item* to) noexcept nogil:
    """to[:n] = a kernel position's windows [o, o + n) of a row of the image."""
    cdef int64_t along = plan.plane_strides[3]
    cdef int64_t begin = least(most(w.begin - o, 0), n)
    cdef int64_t end = least(most(w.end - o, begin), n)
    zero_items(to, begin)
    if begin < end:
        copy_apart(to + begin, row + place(w, o + begin, plan.w.stride) * along, plan.w.stride * along, end - begin)
    zero_items(to + end, n - end)


cdef inline void make_flat(const Im2colForwardPlan* plan, const item* plane, const Inside* h, const Inside* w,
                           int64_t l, int64_t n, item* to) noexcept nogil:
    """make_piece where the windows are the plane, moved: what comes from the neighbouring row is made 0 after."""
    cdef int64_t width = plan.w.size
    cdef int64_t first, last, moved, o
    if h.begin == h.end or w.begin == w.end:
        zero_items(to, n)
        return
    moved = h.at * width + w.at
    first = most(l, most(h.begin * width, -moved))
    last = least(l + n, least(h.end * width, plan.h.size * width - moved))
    if first >= last:
        zero_items(to, n)
        return
    zero_items(to, first - l)
    copy_bytes(<char*>(to + (first - l)), <const char*>(plane + (first + moved)),
               (last - first) * <int64_t>sizeof(item))
    zero_items(to + (last - l), l + n - last)
    if w.begin > 0:
        o = l // width * width - l
        while o < n:
            zero_items(to + most(o, 0), least(o + w.begin, n) - most(o, 0))
            o += width
    if w.end < width:
        o = l // width * width - l
        while o + w.end < n:
            zero_items(to + most(o + w.end, 0), least(o + width, n) - most(o + w.end, 0))
            o += width


cdef inline void make_piece(const Im2colForwardPlan* plan, const item* plane, const Inside* h, const Inside* w,
                            int64_t l, int64_t n, item* to) noexcept nogil:
    """to[:n] = a kernel position's windows [l, l + n)."""
    cdef int64_t lh, o, m
    if plan.flat:
        make_flat(plan, plane, h, w, l, n, to)
        return
    lh = l // plan.w.windows
    o = l - lh * plan.w.windows
    while n > 0:
        m = least(n, plan.w.windows - o)
        if h.begin <= lh < h.end:
            make_windows(plan, plane + place(h, lh, plan.h.stride) * plan.plane_strides[2], w, o, m, to)
        else:
            zero_items(to, m)
        to += m
        n -= m
        o = 0
        lh += 1


cdef void fill_rows(const Im2colForwardPlan* plan, const item* plane, item* out__rl, int64_t l,
                    int64_t end) noexcept nogil:
    """ROWS: a channel's windows [l, end)."""
    cdef int64_t kh, kw
    cdef Inside h
    cdef Inside w
    for kh in range(plan.h.kernel):
        find_inside(&plan.h, kh, &h)
        for kw in range(plan.w.kernel):
            find_inside(&plan.w, kw, &w)
            make_piece(plan, plane, &h, &w, l, end - l, out__rl + l)
            out__rl += plan.out_strides[1]


cdef void stream_rows(const Im2colForwardPlan* plan, const item* plane, item* out__rl, int64_t l,
                      int64_t end) noexcept nogil:
    """fill_rows past the caches: rows are made a block at a time, whose whole lines are then stored."""
    cdef uint64_t[BLOCK_WORDS] words        # aligned as any element is
    cdef char* block = <char*>words
    cdef int64_t size = <int64_t>sizeof(item)
    cdef bint joined = end - l == plan.out_strides[1]   # rows of out follow each other
    cdef int64_t held = 0
    cdef char* to = <char*>(out__rl + l)
    cdef int64_t kh, kw, at, n
    cdef Inside h
    cdef Inside w
    for kh in range(plan.h.kernel):
        find_inside(&plan.h, kh, &h)
        for kw in range(plan.w.kernel):
            find_inside(&plan.w, kw, &w)
            at = l
            while at < end:
                if BLOCK_BYTES - held < size:
                    # Up to a line's end; what is left begins the next block.
                    n = held - <int64_t>((<uintptr_t>to + <uintptr_t>held) & (LINE - 1))
                    stream(to, block, n)
                    memcpy(block, block + n, LINE)
                    to += n
                    held -= n
                n = least(end - at, (BLOCK_BYTES - held) // size)
                make_piece(plan, plane, &h, &w, at, n, <item*>(block + held))
                held += n * size
                at += n
            out__rl += plan.out_strides[1]
            if not joined:
                stream(to, block, held)
                held = 0
                to = <char*>(out__rl + l)
    stream(to, block, held)


cdef inline void fill_edges(const Im2colForwardPlan* plan, const item* plane, item* out__rl, const Inside* h,
                            int64_t first, int64_t last, int64_t l, int64_t end) noexcept nogil:
    """Of a kernel row, in rows of windows that have it inside: those before the first and from the last on, of which
    some kernel positions are outside. They are found once for all rows."""
    cdef int64_t windows = plan.w.windows
    cdef int64_t kw, lh
    cdef const item* row
    cdef item* to
    cdef Inside w
    for kw in range(plan.w.kernel):
        find_inside(&plan.w, kw, &w)
        for lh in range(most(l // windows, h.begin), least(end // windows, h.end)):
            row = plane + place(h, lh, plan.h.stride) * plan.plane_strides[2]
            to = out__rl + kw * plan.out_strides[1] + lh * windows
            make_windows(plan, row, &w, 0, first, to)
            make_windows(plan, row, &w, last, windows - last, to + last)


cdef void fill_turned(const Im2colForwardPlan* plan, const item* plane, item* out__rl, int64_t l,
                      int64_t end) noexcept nogil:
    """TURNED: a channel's windows [l, end), whole rows of them."""
    cdef int64_t size = <int64_t>sizeof(item)
    cdef int64_t windows = plan.w.windows
    cdef int64_t pitch = plan.out_strides[1]
    cdef int64_t kh, kw, lh, first, last
    cdef const item* row
    cdef item* to
    cdef Inside h
    cdef Inside w
    cdef Inside final
    find_inside(&plan.w, 0, &w)
    find_inside(&plan.w, plan.w.kernel - 1, &final)
    # Of these windows all kernel positions are inside.
    first = w.begin
    last = most(final.end, first)
    for kh in range(plan.h.kernel):
        find_inside(&plan.h, kh, &h)
        for lh in range(l // windows, end // windows):
            to = out__rl + kh * plan.w.kernel * pitch + lh * windows
            if not h.begin <= lh < h.end:
                for kw in range(plan.w.kernel):
                    zero_items(to + kw * pitch, windows)
                continue
            row = plane + place(&h, lh, plan.h.stride) * plan.plane_strides[2]
            # Streams of their own, which the hardware does not follow: 1 to 1.4 times as fast.
            for kw in range(plan.w.kernel if plan.far else 0):
                prefetch_to_write(<char*>(to + kw * pitch) + FETCHED)
            if first < last:
                transpose(to + first, pitch, row + place(&w, first, plan.w.stride), plan.w.stride, last - first,
                          plan.w.kernel, size, NULL)
        if first > 0 or last < windows:
            fill_edges(plan, plane, out__rl + kh * plan.w.kernel * pitch, &h, first, last, l, end)


cdef void convert_items(const Im2colForwardPlan* plan, void* to, const void* source, int64_t n) noexcept nogil:
    """At most TILE elements of self's dtype to out's, each rounded once, to nearest even."""
    cdef float[TILE] single
    cdef const float* row = single
    cdef int64_t i
    if plan.self_dtype == DT_DOUBLE:
        if plan.out_dtype == DT_FLOAT:
            for i in range(n):
                single[i] = <float>(<const double*>source)[i]
        else:
            round_to_odd_row(single, <const double*>source, n)
    elif plan.self_dtype == DT_FLOAT:
        row = <const float*>source
    elif plan.self_dtype == DT_FLOAT16:
        widen_row(<float*>single, <const half*>source, n)
    else:
        widen_row(<float*>single, <const bfloat*>source, n)
    if plan.out_dtype == DT_DOUBLE:
        for i in range(n):
            (<double*>to)[i] = row[i]
    elif plan.out_dtype == DT_FLOAT:
        memcpy(to, row, <size_t>n * sizeof(float))
    elif plan.out_dtype == DT_FLOAT16:
        narrow_row(<half*>to, row, n)
    else:
        narrow_row(<bfloat*>to, row, n)


cdef inline void scatter_tile(const Im2colForwardPlan* plan, item* to, const item* tile, int64_t rows,
                              int64_t n) noexcept nogil:
    """to[r, l] = tile[r*TILE + l], in out's strides."""
    cdef int64_t r, i
    for r in range(rows):
        for i in range(n):
            to[r * plan.out_strides[1] + i * plan.out_strides[2]] = tile[r * TILE + i]


cdef void store_tile(const Im2colForwardPlan* plan, char* to, const char* tile, int64_t rows, int64_t n) noexcept nogil:
    """The rows of a tile, TILE elements apart, into out."""
    cdef int64_t size = plan.out_item
    cdef int64_t r
    if plan.out_strides[2] == 1:
        for r in range(rows):
            copy_bytes(to + r * plan.out_strides[1] * size, tile + r * TILE * size, n * size)
    elif plan.out_strides[1] == 1 and size > 1:
        turn_any(to, plan.out_strides[2], tile, TILE, rows, n, size, NULL)
    elif size == 1:
        scatter_tile(plan, <uint8_t*>to, <const uint8_t*>tile, rows, n)
    elif size == 2:
        scatter_tile(plan, <uint16_t*>to, <const uint16_t*>tile, rows, n)
    elif size == 4:
        scatter_tile(plan, <uint32_t*>to, <const uint32_t*>tile, rows, n)
    elif size == 8:
        scatter_tile(plan, <uint64_t*>to, <const uint64_t*>tile, rows, n)
    else:
        scatter_tile(plan, <Wide*>to, <const Wide*>tile, rows, n)


cdef void fill_pieces(const Im2colForwardPlan* plan, const item* planes, char* out__rl, int64_t channels, int64_t l,
                      int64_t end) noexcept nogil:
    """PIECES: the windows [l, end) of some channels."""
    cdef uint64_t[WORDS] tile
    cdef item[TILE] piece
    cdef int64_t size = plan.out_item
    cdef int64_t rows = channels * plan.h.kernel * plan.w.kernel
    cdef int64_t most_rows = TILE_BYTES // size
    cdef int64_t c, kh, kw, r, n, held
    cdef Inside h
    cdef Inside w
    while l < end:
        n = least(TILE, end - l)
        c = kh = kw = held = 0
        for r in range(rows):
            if kw == 0:
                find_inside(&plan.h, kh, &h)
            find_inside(&plan.w, kw, &w)
            if plan.converts:
                make_piece(plan, planes + c * plan.plane_strides[1], &h, &w, l, n, <item*>piece)
                convert_items(plan, <char*>tile + held * TILE * size, piece, n)
            else:
                make_piece(plan, planes + c * plan.plane_strides[1], &h, &w, l, n, <item*>tile + held * TILE)
            held += 1
            if held == most_rows or r == rows - 1:
                store_tile(plan, out__rl + ((r + 1 - held) * plan.out_strides[1] + l * plan.out_strides[2]) * size,
                           <const char*>tile, held, n)
                held = 0
            kw += 1
            if kw == plan.w.kernel:
                kw = 0
                kh += 1
                if kh == plan.h.kernel:
                    kh = 0
                    c += 1
        l += n


cdef int64_t forward(const Im2colForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                     const item* kind) noexcept nogil:
    """The units [unit, end); unit = (n*groups + group)*bands + band. The last argument gives its type only."""
    cdef int64_t positions = plan.h.kernel * plan.w.kernel
    cdef int64_t group, n, c, channels, first, last
    cdef const item* planes
    cdef char* out
    while unit < end:
        group = unit // plan.bands
        first = (unit - group * plan.bands) * plan.band
        last = least(first + plan.band, plan.h.windows * plan.w.windows)
        n = group // plan.groups
        c = (group - n * plan.groups) * plan.group
        channels = least(plan.group, plan.channels - c)
        planes = <const item*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        if plan.packs:
            planes = pack_planes(plan, planes, <item*>scratch, channels, data[0] + plan.source_bytes)
        out = data[1] + (n * plan.out_strides[0] + c * positions * plan.out_strides[1]) * plan.out_item
        if plan.algorithm == PIECES:
            fill_pieces(plan, planes, out, channels, first, last)
            channels = 0
        while channels > 0:
            if plan.streams:
                stream_rows(plan, planes, <item*>out, first, last)
            elif plan.algorithm == ROWS:
                fill_rows(plan, planes, <item*>out, first, last)
            else:
                fill_turned(plan, planes, <item*>out, first, last)
            planes += plan.plane_strides[1]
            out += positions * plan.out_strides[1] * plan.out_item
            channels -= 1
        unit += 1
    if plan.streams:
        fence()
    return ALL_GOOD


cdef int64_t forward_1(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint8_t*>NULL)


cdef int64_t forward_2(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint16_t*>NULL)


cdef int64_t forward_4(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint32_t*>NULL)


cdef int64_t forward_8(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const uint64_t*>NULL)


cdef int64_t forward_16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const Im2colForwardPlan*>plan, data, scratch, begin, end, <const Wide*>NULL)


cdef void im2col_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table: by the logarithm of an element's bytes."""
    row[0] = forward_1
    row[1] = forward_2
    row[2] = forward_4
    row[3] = forward_8
    row[4] = forward_16
