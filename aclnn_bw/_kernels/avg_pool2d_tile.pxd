# cython: cdivision=True
"""Average pool: a tile, some columns of gradInput: which windows its rows have, and where their terms and sums lie in
the scratch.

Bounds. The windows are those that exist. `plan.strip` rows of windows and those that the last of them meet have their
place, zeros beside them.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport least, most, round_up
from aclnn_bw._core.avg_pool2d cimport STREAMED, AvgPool2dPlan, Axis
from aclnn_bw._kernels.avg_pool2d_pairs cimport Pairs
from aclnn_bw._kernels.avg_pool2d_terms cimport column_factors, constant_factor
from aclnn_bw._kernels.simd cimport HALF_BYTES, VECTOR_BYTES, element, sum_bytes

cdef enum:
    AHEAD = 4096        # bytes: twice as many, or two groups of rows, lie from a store to its fetch

# One tile of a range: where its rows of terms and sums lie in the scratch. Pitches and offsets are bytes.
cdef struct Tile:
    int64_t columns         # values of q along w
    int64_t begin           # the first window that exists
    int64_t windows         # and how many do
    int64_t iw              # the first position
    int64_t width
    int64_t phase           # of that position
    int64_t pitch
    int64_t vectors         # bytes of a row of sums, as whole vectors
    int64_t first           # of the terms of column 0
    int64_t at              # of the first window that exists
    char* terms
    char* long_sums
    char* short_sums
    double factor           # of each window, if it is the same
    const void* limit       # a vector that ends here at most may be stored beyond a row
    const char* source_end  # of gradOutput
    const char* longs       # the sums of column 0, along w, of the phases that have all terms, and of those that have
    const char* shorts      # one less
    int64_t shorts_pitch
    char* factors
    bint pairs              # whether `p` is used
    Pairs p
    char* zeros


cdef inline void find_pairs(const AvgPool2dPlan* plan, Tile* t, char* scratch, int64_t size,
                            int64_t item) noexcept nogil:
    cdef const Axis* w = &plan.w
    cdef int64_t i, phase, group
    t.zeros = scratch + plan.at_zeros
    memset(t.zeros, 0, <size_t>t.pitch)
    t.p.n = t.width
    t.p.down = plan.grad_input_strides[2]
    t.p.ahead = 0 if plan.streams or plan.turns else 2 * least(plan.h.stride * t.p.down, AHEAD // item)
    for i in range(w.stride):
        group = 1 if t.phase + i >= w.stride else 0
        phase = t.phase + i - group * w.stride
        t.p.two[i] = w.terms == 2 and phase < w.long_phases
        t.p.at[i] = t.first + (group + (phase >= w.long_phases)) * size


cdef inline int64_t first_window(const AvgPool2dPlan* plan, int64_t p) noexcept nogil:
    """That exists, of those that the p-th value of q along w has."""
    return most(plan.w.first + p - (plan.w.terms - 1), 0)


cdef inline int64_t count_windows(const AvgPool2dPlan* plan, int64_t p, int64_t columns) noexcept nogil:
    """From it on, of those that exist and that `columns` values of q have."""
    return most(least(plan.w.first + p + columns, plan.w.out) - first_window(plan, p), 0)


cdef inline int64_t first_column(const AvgPool2dPlan* plan, int64_t p) noexcept nogil:
    """Of gradInput, that the p-th value of q along w serves."""
    return most((plan.w.first + p) * plan.w.stride - plan.w.pad, 0)


cdef inline int64_t end_column(const AvgPool2dPlan* plan, int64_t p) noexcept nogil:
    """Behind what those before the p-th value serve."""
    return least((plan.w.first + p) * plan.w.stride - plan.w.pad, plan.w.size)


cdef inline void find_tile(const AvgPool2dPlan* plan, Tile* t, char* scratch, int64_t p, int64_t columns,
                           const element* numbers) noexcept nogil:
    """A tile from the p-th value of q along w on, and zeros beside what its windows have in the rows."""
    cdef const Axis* w = &plan.w
    cdef int64_t size = sum_bytes(numbers)
    cdef int64_t lanes = VECTOR_BYTES // size
    cdef int64_t window = w.first + p - (w.terms - 1)
    cdef int64_t start = (w.first + p) * w.stride - w.pad       # of the first q's phases; may lie in the padding
    cdef int64_t rows = 1 if plan.algorithm == STREAMED else plan.strip + plan.h.terms - 1
    cdef int64_t before
    t.columns = columns
    t.begin = first_window(plan, p)
    t.windows = count_windows(plan, p, columns)
    t.iw = first_column(plan, p)
    t.width = end_column(plan, p + columns) - t.iw
    t.phase = t.iw - start
    t.pitch = plan.pitch * size
    t.vectors = round_up(columns, lanes) * size
    # The first term that exists lies at the beginning of a vector.
    before = t.begin - window
    t.first = (round_up(before, lanes) - before) * size
    t.at = t.first + before * size
    t.terms = scratch + plan.at_terms
    t.long_sums = scratch + plan.at_long
    t.short_sums = scratch + plan.at_short
    t.factors = NULL
    t.factor = constant_factor(plan)
    memset(t.terms, 0, <size_t>(rows * t.pitch))
    t.longs = t.long_sums if w.terms > 1 else t.terms + t.first
    t.shorts = t.short_sums
    t.shorts_pitch = t.pitch
    if w.long_phases == w.stride:
        t.shorts = t.longs
    elif w.terms == 1:
        t.shorts_pitch = 0
        memset(t.short_sums, 0, <size_t>t.pitch)
    elif w.terms == 2:
        t.shorts = t.terms + t.first + size
    t.pairs = plan.pairs and t.width >= (48 if w.stride == 3 else 2 * HALF_BYTES) // size
    if t.pairs:
        find_pairs(plan, t, scratch, size, sizeof(element))
    if not plan.constant_divisor:
        t.factors = scratch + plan.at_factors
        memset(t.factors, 0, <size_t>t.pitch)
        column_factors(plan, t.factors, t.begin, t.windows, numbers)
