"""AvgPool2d: out[oh, ow] = sum of self over the window, clipped to the image, / divisor(oh, ow).

The formula is that of PyTorch's avg_pool2d (aten/src/ATen/native/cpu/AvgPoolKernel.cpp).

Numerics. float32, float16 and bfloat16 are summed in float32, float64 in float64. The rows of a window are summed down
its columns first, from +0.0 on and ascending in h; then the columns, ascending in w; one division makes the average,
and 16-bit results are rounded once, at the end. Zeros in place of the padding change no sum that began with +0.0. Where
an average is not finite, it is made again of terms that are divided first: their sum may not overflow. Every path below
adds the same terms in the same order, so bands, tiles, threads, strides and instruction sets do not show in the
result.

Bounds. Window o holds the positions [o*stride - pad, o*stride - pad + kernel) of an axis (types of the plan: `Axis`),
clipped to the image before anything is read; windows and rows are those of the unit, which lie inside out; phase 1 has
proved that both views lie inside their storage. The scratch has the columns of a tile with the padding beside them, and
FLAT as many zeros before and behind its rows as a window reaches beyond its own place.

| path | when | why |
|---|---|---|
| ROWS | any geometry | a window of kH x kW costs kH/sW + kW adds |
| FLAT | stride 1, as many windows as columns | loops as long as the plane; what crosses its edge is made again |
| PAIRS | kernel and stride 2 | both sums in registers |
| WIDE | windows too wide for the scratch, or one a plane | some columns of one window at a time |
| FEW | one or two small windows to a row | they leave vectors empty: 0.33 to 0.9 of ROWS' time |
| ACROSS (avg_pool2d_forward_across.pyx) | small planes, 12 of 16 lanes filled | lanes hold channels: 1 to 18 times |
| LAST (avg_pool2d_forward_across.pyx) | channels side by side in self | rows of windows, at most, are transposed |
| PACKED | channels side by side in one of both | a transposition reads or writes each cache line once |

`python -m benchmarks --operator avg_pool2d` measures.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.avg_pool2d cimport Axis, window_length
from aclnn_bw._core.avg_pool2d_forward cimport FEW, FLAT, PAIRS, ROWS, WIDEST, AvgPool2dForwardPlan
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, RangeFn
from aclnn_bw._kernels.avg_pool2d_windows cimport Inside, all_finite, divided_first, divisor_of, find_inside
from aclnn_bw._kernels.rows cimport (
    add_row, fetch, load_row, narrow_row, narrow_strided, round_to_half_row, sum_dense_rows, widened,
)
from aclnn_bw._kernels.simd cimport (
    VECTOR_BYTES, add, bfloat, element, half, load, load_in_turn, real, scale, simd_divide, simd_plus_zero, store,
    sum_bytes, vec, vector, vector_half, zero,
)
from aclnn_bw._kernels.transpose cimport transpose


cdef inline void sum_rows(real* to, const element* source, int64_t down, int64_t rows, int64_t n) noexcept nogil:
    """sum_dense_rows; a loop of its own for the usual kernel takes half of the time."""
    if rows == 3:
        sum_dense_rows(to, source, down, 3, n)
    else:
        sum_dense_rows(to, source, down, rows, n)


cdef void sum_columns(const AvgPool2dForwardPlan* plan, real* to, const element* source, int64_t down, int64_t along,
                      int64_t rows, int64_t n, real* row) noexcept nogil:
    """to[:n] = the sums of `rows` rows; `row` is room for one."""
    cdef int64_t r
    if along == 1 and not plan.round_half:
        sum_rows(to, source, down, rows, n)
        return
    memset(to, 0, <size_t>n * sizeof(real))
    for r in range(rows):
        load_row(row, source + r * down, along, n)
        if real is float:
            if plan.round_half:
                round_to_half_row(row, n)
        add_row(to, <const real*>row, n)


cdef inline void split_phases(real* to, int64_t pitch, const real* sums, int64_t stride, int64_t n) noexcept nogil:
    """to[r*pitch + j] = sums[j*stride + r] of n sums."""
    cdef int64_t j, r, m
    m = n // stride
    if stride == 2:
        for j in range(m):
            to[j] = sums[2 * j]
            to[pitch + j] = sums[2 * j + 1]
    else:
        transpose(to, pitch, sums, stride, m, stride, sizeof(real), NULL)
    for r in range(n - m * stride):
        to[r * pitch + m] = sums[m * stride + r]


cdef inline void sum_across(real* to, const real* phases, int64_t pitch, int64_t stride, int64_t kernel,
                            int64_t n) noexcept nogil:
    """to[i] = the sum of `kernel` columns of window i, ascending; column k is phases[k % stride * pitch + k // stride +
    i]."""
    cdef const real* a
    cdef const real* b
    cdef const real* c
    cdef real total = 0
    cdef int64_t k, i
    if n == 1 and stride == 1:
        for k in range(kernel):
            total += phases[k]
        to[0] = total
        return
    a = phases
    if kernel == 1:
        for i in range(n):
            to[i] = a[i]
        return
    b = phases + 1 % stride * pitch + 1 // stride
    if kernel == 2:
        for i in range(n):
            to[i] = a[i] + b[i]
        return
    c = phases + 2 % stride * pitch + 2 // stride
    for i in range(n):
        to[i] = a[i] + b[i] + c[i]
    k = 3
    while k + 1 < kernel:
        a = phases + k % stride * pitch + k // stride
        b = phases + (k + 1) % stride * pitch + (k + 1) // stride
        for i in range(n):
            to[i] = to[i] + a[i] + b[i]
        k += 2
    if k < kernel:
        add_row(to, phases + k % stride * pitch + k // stride, n)


cdef inline bint divide_row(real* to, const real* sums, const real* divisors, real divisor, int64_t n) noexcept nogil:
    """to[:n] = sums[:n] / divisors[:n], or by the one of them all where there are none; whether all are finite."""
    cdef int bad = 0
    cdef int64_t i
    cdef real x
    if divisors == NULL:
        for i in range(n):
            x = sums[i] / divisor
            to[i] = x
            bad |= x - x != 0
    else:
        for i in range(n):
            x = sums[i] / divisors[i]
            to[i] = x
            bad |= x - x != 0
    return bad == 0


cdef inline vector average_of_three(const real* sums, bint by_two, double divisor) noexcept nogil:
    """A vector of averages of three columns each, side by side or two columns apart."""
    cdef vector a, b, c, unused
    if by_two:
        load_in_turn(sums, &a, &b)
        load_in_turn(sums + 2, &c, &unused)
    else:
        a = load(sums, <vector*>NULL)
        b = load(sums + 1, <vector*>NULL)
        c = load(sums + 2, <vector*>NULL)
    a = add(add(a, b, sums), c, sums)
    simd_divide(&a, &a, divisor, sizeof(real))
    return a


cdef inline bint average_threes(element* to, const real* sums, bint by_two, double divisor, int64_t n) noexcept nogil:
    """to[:n] = averages of kernel 3 and stride 1 or 2, and whether all are finite; False for too few. A column behind
    those of the last window is read. The last vector overlaps the one before."""
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef int64_t step = 2 if by_two else 1
    cdef vector x, wrong
    cdef int64_t i = 0
    if n < lanes:
        return False
    wrong = zero(<vector*>NULL)
    while i < n:
        i = least(i, n - lanes)
        x = average_of_three(sums + step * i, by_two, divisor)
        wrong = add(wrong, scale(x, 0, sums), sums)
        store(to + i, x)
        i += lanes
    return all_finite(wrong)


cdef inline bint average_across(real* to, const real* phases, int64_t pitch, int64_t stride, int64_t kernel,
                                const real* divisors, real divisor, int64_t n, real* sums) noexcept nogil:
    """sum_across and divide_row."""
    sum_across(sums, phases, pitch, stride, kernel, n)
    return divide_row(to, <const real*>sums, divisors, divisor, n)


cdef inline real* place_of(const AvgPool2dForwardPlan* plan, element* out, real* buffer) noexcept nogil:
    """Where averages are made: in out itself, if they lie there side by side as they are."""
    if element is half or element is bfloat:
        return buffer
    else:
        return <real*>out if plan.out_strides[3] == 1 else buffer


cdef void finish_row(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                     real* averages, bint good, element* out__w, int64_t oh, int64_t p, int64_t n) noexcept nogil:
    """The windows [p, p + n) of row oh, or FLAT from its first on: from averages to what is stored."""
    cdef int64_t i
    if not good and not plan.round_half:
        for i in range(n):
            if averages[i] - averages[i] != 0:
                averages[i] = divided_first(plan, self__hw, down, along, oh + (p + i) // plan.w.out,
                                            (p + i) % plan.w.out, averages[i])
    if real is float:
        if plan.round_half:
            round_to_half_row(averages, n)
    if averages != place_of(plan, out__w, <real*>NULL):
        narrow_strided(out__w, plan.out_strides[3], <const real*>averages, n)


cdef inline void find_divisors(const AvgPool2dForwardPlan* plan, real* divisors, int64_t oh, int64_t p,
                               int64_t n) noexcept nogil:
    """Of the windows of row oh, unless they are those of the row before."""
    cdef bint with_pad = plan.count_include_pad
    cdef int64_t length = window_length(&plan.h, oh, with_pad)
    cdef int64_t i
    if oh % plan.band != 0 and length == window_length(&plan.h, oh - 1, with_pad):
        return
    for i in range(n):
        divisors[i] = <real>(<double>length * <double>window_length(&plan.w, p + i, with_pad))


cdef inline void fetch_rows(const AvgPool2dForwardPlan* plan, const element* source, int64_t down, const Inside* h,
                            int64_t n) noexcept nogil:
    """Of n columns the rows of a window, further on, that were not fetched for the window above it."""
    cdef int64_t row
    # 0.5 to 1 of the time beyond the caches.
    for row in range(most(h.end - plan.h.stride, h.begin), h.end):
        fetch(<const char*>(source + row * down) + plan.ahead, n * <int64_t>sizeof(element))


cdef void rows_band(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                    element* out__hw, char* scratch, int64_t oh, int64_t end, int64_t p, int64_t n,
                    const real* kind) noexcept nogil:
    """ROWS: the windows [p, p + n) of the rows [oh, end)."""
    cdef const Axis* w = &plan.w
    cdef real* sums = <real*>scratch
    cdef real* phases = sums + plan.at_phases
    cdef real* results = sums + plan.at_results
    cdef real* divisors = sums + plan.at_divisors
    cdef int64_t start = p * w.stride - w.pad
    cdef int64_t columns = (n - 1) * w.stride + w.kernel
    cdef int64_t first = most(start, 0)
    cdef int64_t last = least(start + columns, w.size)
    cdef int64_t pitch = plan.pitch if w.stride > 1 else 0
    cdef bint threes = (w.kernel == 3 and w.stride <= 2 and plan.constant_divisor and plan.out_strides[3] == 1
                        and not plan.round_half)
    cdef real* averages
    cdef element* to
    cdef bint good
    cdef Inside h
    memset(sums, 0, <size_t>columns * sizeof(real))
    while oh < end:
        h = find_inside(&plan.h, oh)
        if plan.ahead > 0:
            fetch_rows(plan, self__hw + first, down, &h, last - first)
        sum_columns(plan, sums + (first - start), self__hw + h.begin * down + first * along, down, along,
                    h.end - h.begin, last - first, results)
        if not plan.constant_divisor:
            find_divisors(plan, divisors, oh, p, n)
        to = out__hw + oh * plan.out_strides[2] + p * plan.out_strides[3]
        if threes and (average_threes(to, <const real*>sums, True, plan.divisor, n) if w.stride == 2 else
                       average_threes(to, <const real*>sums, False, plan.divisor, n)):
            oh += 1
            continue
        averages = place_of(plan, to, results)
        if w.stride > 1:
            split_phases(phases, pitch, <const real*>sums, w.stride, columns)
        good = average_across(averages, <const real*>phases if w.stride > 1 else <const real*>sums, pitch, w.stride,
                              w.kernel, <const real*>(NULL if plan.constant_divisor else divisors),
                              <real>plan.divisor, n, results)
        finish_row(plan, self__hw, down, along, averages, good, to, oh, p, n)
        oh += 1


cdef inline bint average_edges(const AvgPool2dForwardPlan* plan, element* averages, const real* sums, real divisor,
                               int64_t begin, int64_t end, int64_t rows) noexcept nogil:
    """The windows [begin, end) of some rows, which reach beyond them; whether all are finite."""
    cdef int64_t width = plan.w.size
    cdef int bad = 0
    cdef int64_t ow, i, r
    cdef real total
    cdef Inside w
    for ow in range(begin, end):
        w = find_inside(&plan.w, ow)
        for r in range(rows):
            total = sums[r * width + w.begin]
            for i in range(w.begin + 1, w.end):
                total += sums[r * width + i]
            total /= divisor
            bad |= total - total != 0
            narrow_row(averages + r * width + ow, <const real*>&total, 1)
    return bad == 0


cdef void flat_band(const AvgPool2dForwardPlan* plan, const element* self__hw, element* out__hw, char* scratch,
                    int64_t oh, int64_t end, const real* kind) noexcept nogil:
    """FLAT: the rows [oh, end)."""
    cdef const Axis* w = &plan.w
    cdef int64_t width = w.size
    cdef int64_t left = least(w.pad, width)
    cdef int64_t right = most(width - (w.kernel - 1 - w.pad), left)
    cdef real* before = <real*>scratch
    cdef real* sums = before + w.pad
    cdef real* results = before + plan.at_results
    cdef real* divisors = before + plan.at_divisors
    cdef real divisor = <real>plan.divisor if plan.constant_divisor else 1
    cdef real* averages
    cdef element* to
    cdef bint good
    cdef int64_t m, r, n
    cdef Inside h
    memset(before, 0, <size_t>w.pad * sizeof(real))
    while oh < end:
        h = find_inside(&plan.h, oh)
        m = 1
        if h.end - h.begin == plan.h.kernel:
            m = most(least(least(plan.rows, end - oh), plan.h.size - plan.h.kernel + plan.h.pad + 1 - oh), 1)
        n = m * width
        sum_rows(sums, self__hw + h.begin * width, width, h.end - h.begin, n)
        memset(sums + n, 0, <size_t>w.kernel * sizeof(real))
        to = out__hw + oh * width
        averages = place_of(plan, to, results)
        if (w.kernel == 3 and plan.constant_divisor
                and average_threes(to, <const real*>before, False, plan.divisor, n)
                and average_edges(plan, to, <const real*>sums, divisor, 0, left, m)
                and average_edges(plan, to, <const real*>sums, divisor, right, width, m)):
            oh += m
            continue
        if plan.constant_divisor:
            good = average_across(averages, <const real*>before, 0, 1, w.kernel, <const real*>NULL, divisor, n, results)
        else:
            sum_across(results, <const real*>before, 0, 1, w.kernel, n)
            good = True
            averages, results = results, averages
        good &= average_edges(plan, averages, <const real*>sums, divisor, 0, left, m)
        good &= average_edges(plan, averages, <const real*>sums, divisor, right, width, m)
        if not plan.constant_divisor:
            averages, results = results, averages
            for r in range(m):
                find_divisors(plan, divisors, oh + r, 0, width)
                good &= divide_row(averages + r * width, <const real*>results + r * width, <const real*>divisors,
                                   divisor, width)
        finish_row(plan, self__hw, width, 1, averages, good, to, oh, 0, n)
        oh += m


cdef inline bint pairs_in_vectors(element* to, const element* above, const element* below, double factor, int64_t n,
                                  vec* width) noexcept nogil:
    """The n windows of two rows, at least as many as a vector has lanes; whether the numbers were finite."""
    cdef int64_t lanes = sizeof(vec) // sum_bytes(above)
    cdef vec even, odd, lower_even, lower_odd
    cdef vec wrong = zero(width)
    cdef int64_t i = 0
    while i < n:
        i = least(i, n - lanes)
        load_in_turn(above + 2 * i, &even, &odd)
        load_in_turn(below + 2 * i, &lower_even, &lower_odd)
        even = add(add(even, lower_even, above), add(odd, lower_odd, above), above)
        simd_plus_zero(&even, sum_bytes(above))
        even = scale(even, factor, above)
        wrong = add(wrong, scale(even, 0, above), above)
        store(to + i, even)
        i += lanes
    return all_finite(wrong)


cdef void pairs_row(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, element* out__hw,
                    int64_t oh, int64_t n, const real* kind) noexcept nogil:
    """PAIRS: the n windows of row oh."""
    cdef const element* above = self__hw + 2 * oh * down
    cdef const element* below = above + down
    cdef element* to = out__hw + oh * plan.out_strides[2]
    cdef int64_t lanes = VECTOR_BYTES // <int64_t>sizeof(real)
    cdef double factor = 1 / plan.divisor
    cdef real average, column
    cdef int64_t i, j
    if n >= lanes:
        if pairs_in_vectors(to, above, below, factor, n, <vector*>NULL):
            return
    elif VECTOR_BYTES > 16 and 2 * n >= lanes:
        if pairs_in_vectors(to, above, below, factor, n, <vector_half*>NULL):
            return
    for i in range(n):
        average = 0
        for j in range(2):
            column = <real>0 + widened(above + 2 * i + j, &average)
            column += widened(below + 2 * i + j, &average)
            average += column
        average = average * <real>factor
        if average - average != 0:
            average = divided_first(plan, self__hw, down, 1, oh, i, average)
        narrow_row(to + i, <const real*>&average, 1)


cdef inline real small_sum(const element* source, int64_t down, int64_t along, int64_t rows, int64_t columns,
                           const real* kind) noexcept nogil:
    """The sum of a window of few positions, an element at a time."""
    cdef real total = 0
    cdef real column
    cdef int64_t ih, iw
    for iw in range(columns):
        column = 0
        for ih in range(rows):
            column += widened(source + ih * down + iw * along, kind)
        total += column
    return total


cdef void wide_window(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                      element* out__hw, int64_t oh, int64_t ow, const real* kind) noexcept nogil:
    """WIDE: one window."""
    cdef Inside h = find_inside(&plan.h, oh)
    cdef Inside w = find_inside(&plan.w, ow)
    cdef real[WIDEST] sums
    cdef real[WIDEST] row
    cdef real total = 0
    cdef real* averages
    cdef element* to
    cdef int64_t iw = w.begin
    cdef int64_t i, n
    while iw < w.end:
        n = least(WIDEST, w.end - iw)
        if along == 1 and not plan.round_half:
            sum_rows(<real*>sums, self__hw + h.begin * down + iw, down, h.end - h.begin, n)
        else:
            sum_columns(plan, <real*>sums, self__hw + h.begin * down + iw * along, down, along, h.end - h.begin, n,
                        <real*>row)
        for i in range(n):
            total += sums[i]
        iw += n
    total /= divisor_of(plan, oh, ow, kind)
    to = out__hw + oh * plan.out_strides[2] + ow * plan.out_strides[3]
    if total - total == 0 and not plan.round_half:
        narrow_row(to, <const real*>&total, 1)
        return
    averages = place_of(plan, to, <real*>sums)
    averages[0] = total
    finish_row(plan, self__hw, down, along, averages, False, to, oh, ow, 1)


cdef void few_band(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                   element* out__hw, int64_t oh, int64_t end, const real* kind) noexcept nogil:
    """FEW: the rows [oh, end) of windows."""
    cdef real divisor = <real>plan.divisor
    cdef real average
    cdef int64_t ow
    cdef Inside h, w
    while oh < end:
        h = find_inside(&plan.h, oh)
        for ow in range(plan.w.out):
            w = find_inside(&plan.w, ow)
            average = small_sum(self__hw + h.begin * down + w.begin * along, down, along, h.end - h.begin,
                                w.end - w.begin, kind)
            average /= divisor if plan.constant_divisor else divisor_of(plan, oh, ow, kind)
            if average - average != 0:
                average = divided_first(plan, self__hw, down, along, oh, ow, average)
            narrow_row(out__hw + oh * plan.out_strides[2] + ow * plan.out_strides[3], <const real*>&average, 1)
        oh += 1


cdef void make_band(const AvgPool2dForwardPlan* plan, const element* self__hw, int64_t down, int64_t along,
                    element* out__hw, char* scratch, int64_t oh, int64_t end, int64_t p, int64_t n,
                    const real* kind) noexcept nogil:
    """The windows [p, p + n) of the rows [oh, end) of a plane."""
    cdef int64_t ow
    if plan.algorithm == ROWS:
        rows_band(plan, self__hw, down, along, out__hw, scratch, oh, end, p, n, kind)
    elif plan.algorithm == FEW:
        few_band(plan, self__hw, down, along, out__hw, oh, end, kind)
    elif plan.algorithm == FLAT:
        flat_band(plan, self__hw, out__hw, scratch, oh, end, kind)
    else:
        while oh < end:
            if plan.algorithm == PAIRS:
                pairs_row(plan, self__hw, down, out__hw, oh, n, kind)
            else:
                for ow in range(p, p + n):
                    wide_window(plan, self__hw, down, along, out__hw, oh, ow, kind)
            oh += 1


cdef void packed_band(const AvgPool2dForwardPlan* plan, const element* self__chw, element* out__chw, char* scratch,
                      int64_t channels, int64_t oh, int64_t end, int64_t p, int64_t n, const void* source_end,
                      const real* kind) noexcept nogil:
    """make_band of a group of channels, whose rows are made dense in self, out, or both. A dense plane is taken as if
    it began where its row 0 would lie."""
    cdef element* packed = <element*>(scratch + plan.at_packed)
    cdef element* unpacked = <element*>(scratch + plan.at_unpacked)
    cdef int64_t first = find_inside(&plan.h, oh).begin
    cdef int64_t last = find_inside(&plan.h, end - 1).end
    cdef int64_t down = plan.self_strides[2]
    cdef int64_t along = plan.self_strides[3]
    cdef int64_t next = plan.self_strides[1]
    cdef const element* source = self__chw
    cdef element* to
    cdef int64_t row, c
    if plan.packs:
        for row in range(first, last):
            transpose(packed + (row - first) * plan.w.size, plan.packed_plane, self__chw + row * down, along,
                      plan.w.size, channels, sizeof(element), source_end)
        down = plan.w.size
        along = 1
        next = plan.packed_plane
        source = <const element*>packed - first * down
    for c in range(channels):
        to = unpacked + c * plan.unpacked_plane - oh * plan.w.out if plan.unpacks else (
            out__chw + c * plan.out_strides[1])
        make_band(plan, source + c * next, down, along, to, scratch, oh, end, p, n, kind)
    if plan.unpacks:
        for row in range(oh, end):
            transpose(out__chw + row * plan.unpacked_strides[0] + p * plan.unpacked_strides[1],
                      plan.unpacked_strides[1], <const element*>unpacked + (row - oh) * plan.w.out + p,
                      plan.unpacked_plane, channels, n, sizeof(element), NULL)


cdef int64_t forward(const AvgPool2dForwardPlan* plan, char** data, char* scratch, int64_t unit, int64_t end,
                     const element* numbers, const real* kind) noexcept nogil:
    """The units [unit, end); unit = ((n*groups + group)*bands + band)*tiles + tile. The last arguments give the types
    only."""
    cdef int64_t n, c, oh, p, stop, windows, channels
    cdef const element* source
    cdef element* to
    # Taken apart once, then counted on.
    p = unit % plan.tiles * plan.tile
    oh = unit // plan.tiles % plan.bands * plan.band
    c = unit // plan.tiles // plan.bands
    n = c // plan.groups
    c = (c - n * plan.groups) * plan.group
    while unit < end:
        unit += 1
        windows = least(plan.tile, plan.w.out - p)
        stop = least(oh + plan.band, plan.h.out)
        channels = least(plan.group, plan.channels - c)
        source = <const element*>data[0] + n * plan.self_strides[0] + c * plan.self_strides[1]
        to = <element*>data[1] + n * plan.out_strides[0] + c * plan.out_strides[1]
        if plan.packs or plan.unpacks:
            packed_band(plan, source, to, scratch, channels, oh, stop, p, windows, data[0] + plan.source_bytes, kind)
        else:
            make_band(plan, source, plan.self_strides[2], plan.self_strides[3], to, scratch, oh, stop, p, windows, kind)
        p += windows
        if p == plan.w.out:
            p = 0
            oh = stop
            if oh == plan.h.out:
                oh = 0
                c += channels
                if c == plan.channels:
                    c = 0
                    n += 1
    return ALL_GOOD


cdef int64_t forward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t forward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const double*>NULL,
                   <const double*>NULL)


cdef int64_t forward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const half*>NULL, <const float*>NULL)


cdef int64_t forward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const AvgPool2dForwardPlan*>plan, data, scratch, begin, end, <const bfloat*>NULL,
                   <const float*>NULL)


cdef void avg_pool2d_forward_kernels(RangeFn* row) noexcept nogil:
    """Put this instruction set's kernels into their row of the table."""
    row[<int>SLOT_F32] = forward_f32
    row[<int>SLOT_F64] = forward_f64
    row[<int>SLOT_F16] = forward_f16
    row[<int>SLOT_BF16] = forward_bf16
