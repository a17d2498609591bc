# cython: cdivision=True
"""Average pool: the terms of windows, which are gradOutput times the reciprocal of the divisor, one row behind the
other in the scratch, in float32 or, of float64, float64.

A row of terms lies between zeros that stand for the windows beside it. They are written once for a tile (`find_tile`)
and never again: a row has the same windows in every plane.

Bounds. `n` windows exist, and no other is read. Their terms are stored to what the row has for them; of fewer than a
vector, a vector with zeros behind them may be stored, for which each row has space, and which the next row, made
afterwards, overwrites.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least
from aclnn_bw._core.avg_pool2d cimport ROUND_F16, ROUND_HF32, ROUND_NONE, AvgPool2dPlan, window_length
from aclnn_bw._kernels.rows cimport BLOCK, round_to_half_row, round_to_hf32_row
from aclnn_bw._kernels.simd cimport (
    HALF_BYTES, VECTOR_BYTES, bfloat, element, find_lanes, half, lane_word, load, load_alone, load_lanes, multiply,
    narrow_to_bfloat, narrow_to_half, reads_all, scale, simd_fill, simd_load, simd_plus_zero, simd_store,
    store_in_turn, sum_bytes, vec, vector, vector_16, vector_32, vector_half, widen_bfloat, widen_half,
)

cdef inline double constant_factor(const AvgPool2dPlan* plan) noexcept nogil:
    """1 / divisor of window (0, 0), which is every window's if the plan says so."""
    return 1.0 / (<double>plan.divisor[0] * <double>plan.divisor[1])


cdef inline double row_factor(const AvgPool2dPlan* plan, int64_t oh) noexcept nogil:
    """What a row of windows is multiplied by: all of the divisor, or its factor along h."""
    if plan.constant_divisor:
        return constant_factor(plan)
    return 1.0 / <double>window_length(&plan.h, oh, plan.count_include_pad)


cdef inline double column_factor(const AvgPool2dPlan* plan, int64_t ow) noexcept nogil:
    """1 / (divisor's factor of a column of windows)."""
    return 1.0 / <double>window_length(&plan.w, ow, plan.count_include_pad)


cdef inline void column_factors(const AvgPool2dPlan* plan, char* factors, int64_t begin, int64_t n,
                                const element* numbers) noexcept nogil:
    """factors[i] = 1 / (divisor's factor of column begin + i)."""
    cdef int64_t i
    cdef double factor
    for i in range(n):
        factor = column_factor(plan, begin + i)
        if element is double:
            (<double*>factors)[i] = factor
        else:
            (<float*>factors)[i] = <float>factor


cdef inline void find_factors(const AvgPool2dPlan* plan, double* factors, int64_t oh,
                              const element* numbers) noexcept nogil:
    """1 / divisor of each window of a row, if the border changes it: two factors, which are rounded as those of a row
    of terms."""
    cdef int64_t ow
    for ow in range(plan.w.out):
        if element is double:
            factors[ow] = column_factor(plan, ow) * row_factor(plan, oh)
        else:
            factors[ow] = <float>column_factor(plan, ow) * <float>row_factor(plan, oh)


cdef inline vec plus_zero_sum(vec x, const element* numbers) noexcept nogil:
    """-0.0 becomes +0.0, once and for all."""
    simd_plus_zero(&x, sum_bytes(numbers))
    return x


cdef inline vec term(vec x, double factor, const element* numbers) noexcept nogil:
    return plus_zero_sum(scale(x, factor, numbers), numbers)


cdef inline void store_terms(char* to, vec x, double factor, const char* factors,
                             const element* numbers) noexcept nogil:
    """x * (factor [* factors]) + 0.0."""
    cdef vec f
    if factors == NULL:
        x = term(x, factor, numbers)
    else:
        simd_load(&f, factors)
        x = plus_zero_sum(multiply(x, scale(f, factor, numbers), numbers), numbers)
    simd_store(to, &x)


cdef inline void scale_pieces(char* to, const element* source, int64_t n, double factor, const char* factors,
                              vec* width) noexcept nogil:
    """At least a vector; the last one overlaps the one before."""
    cdef int64_t lanes = <int64_t>sizeof(vec) // sum_bytes(source)
    cdef int64_t size = sum_bytes(source)
    cdef int64_t rest = n - lanes
    while rest > 0:
        store_terms(to, load(source, width), factor, factors, source)
        to += sizeof(vec)
        source += lanes
        if factors != NULL:
            factors += sizeof(vec)
        rest -= lanes
    # From here on, or from less than a vector before.
    store_terms(to + rest * size, load(source + rest, width), factor,
                factors + rest * size if factors != NULL else NULL, source)


cdef inline void scale_row(char* to, const element* source, int64_t n, double factor,
                           const char* factors) noexcept nogil:
    cdef int64_t size = sum_bytes(source)
    if n >= VECTOR_BYTES // size:
        scale_pieces(to, source, n, factor, factors, <vector*>NULL)
    elif n <= 0:
        pass
    elif not reads_all(source):
        store_terms(to, load_lanes(source, find_lanes(lane_word(0, <int>n), source), <vector*>NULL), factor, factors,
                    source)
    elif n >= HALF_BYTES // size:
        scale_pieces(to, source, n, factor, factors, <vector_half*>NULL)
    elif n >= 16 // size:
        scale_pieces(to, source, n, factor, factors, <vector_16*>NULL)
    else:
        store_terms(to, load_alone(source, lane_word(0, <int>n), <vector_16*>NULL), factor, factors, source)


cdef inline void gather_terms(const AvgPool2dPlan* plan, char* to, const element* source, int64_t along, int64_t n,
                              double factor, const char* factors) noexcept nogil:
    """scale_row of elements that lie apart, or that are rounded first."""
    cdef element[BLOCK] block
    cdef int64_t size = sum_bytes(source)
    cdef int64_t i = 0
    cdef int64_t j, m
    while i < n:
        m = least(n - i, BLOCK)
        for j in range(m):
            block[j] = source[(i + j) * along]
        if element is float:
            if plan.rounding == ROUND_F16:
                round_to_half_row(block, m)
            elif plan.rounding == ROUND_HF32:
                round_to_hf32_row(block, m)
        scale_row(to + i * size, <const element*>block, m, factor, factors + i * size if factors != NULL else NULL)
        i += m


cdef inline void scale_rows(const AvgPool2dPlan* plan, char* to, int64_t pitch, const element* source, int64_t down,
                            int64_t along, int64_t oh, int64_t rows, int64_t n, const char* factors) noexcept nogil:
    """The terms of the rows of windows from oh on, whose first lies at `source`."""
    cdef double factor = constant_factor(plan)
    cdef int64_t r
    if along != 1 or plan.rounding != ROUND_NONE:
        for r in range(rows):
            gather_terms(plan, to + r * pitch, source + r * down, along, n, row_factor(plan, oh + r), factors)
    elif factors != NULL:
        for r in range(rows):
            scale_row(to + r * pitch, source + r * down, n, row_factor(plan, oh + r), factors)
    else:
        for r in range(rows):
            scale_row(to + r * pitch, source + r * down, n, factor, NULL)


cdef inline element share(const element* source, double factor, int rounding, bint round_result) noexcept nogil:
    """The term of one window, as it is stored."""
    cdef element value = source[0]
    if element is half:
        return narrow_to_half(widen_half(value) * <float>factor + <float>0.0)
    elif element is bfloat:
        return narrow_to_bfloat(widen_bfloat(value) * <float>factor + <float>0.0)
    else:
        if element is float:
            if rounding == ROUND_F16:
                round_to_half_row(&value, 1)
            elif rounding == ROUND_HF32:
                round_to_hf32_row(&value, 1)
        value = value * <element>factor + <element>0.0
        if element is float:
            if round_result:
                round_to_half_row(&value, 1)
        return value


cdef inline void fill_window(element* to, int64_t down, int64_t rows, int64_t n, element value) noexcept nogil:
    """`rows` rows of n elements. The last vector of a row overlaps the one before."""
    cdef int64_t lanes = <int64_t>(sizeof(vector_32) // sizeof(element))
    cdef int64_t some = <int64_t>(sizeof(vector_16) // sizeof(element))
    cdef vector_32 x
    cdef vector_16 y
    cdef int64_t i, _
    simd_fill(&x, &value, sizeof(element))
    simd_fill(&y, &value, sizeof(element))
    for _ in range(rows):
        if n >= lanes:
            i = 0
            while i < n - lanes:
                simd_store(to + i, &x)
                i += lanes
            simd_store(to + n - lanes, &x)
        elif n >= some:
            simd_store(to, &y)
            simd_store(to + n - some, &y)
        else:
            for i in range(n):
                to[i] = value
        to += down


cdef inline void double_pieces(element* to, element* below, const element* source, double factor, int64_t n,
                               vec* width) noexcept nogil:
    cdef int64_t lanes = <int64_t>sizeof(vec) // sum_bytes(source)
    cdef const element* last = source + (n - lanes)
    cdef vec x
    while True:
        x = term(load(source, width), factor, source)
        store_in_turn(to, x, x)
        store_in_turn(below, x, x)
        if source == last:
            return
        if source + lanes <= last:
            to += 2 * lanes
            below += 2 * lanes
            source += lanes
        else:
            to += 2 * (last - source)
            below += 2 * (last - source)
            source = last


cdef inline void double_row(element* to, element* below, const element* source, double factor,
                            int64_t n) noexcept nogil:
    """to[0:2*n:2], to[1:2*n:2], and the same of below = source[:n] * factor + 0.0, rounded."""
    cdef int64_t size = sum_bytes(source)
    cdef int64_t i
    if n >= VECTOR_BYTES // size:
        double_pieces(to, below, source, factor, n, <vector*>NULL)
    elif n >= HALF_BYTES // size:
        double_pieces(to, below, source, factor, n, <vector_half*>NULL)
    elif n >= 16 // size:
        double_pieces(to, below, source, factor, n, <vector_16*>NULL)
    else:
        for i in range(n):
            to[2 * i] = share(source + i, factor, ROUND_NONE, False)
            to[2 * i + 1] = to[2 * i]
            below[2 * i] = to[2 * i]
            below[2 * i + 1] = to[2 * i]
