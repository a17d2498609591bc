# cython: cdivision=True
"""Groups of UpsampleNearestExact1dBackward: a few results of at most `terms` neighbouring sources each, by lookups.

A lookup brings terms of several results from a vector of sources, whichever they are, into their lanes, and +0.0 where
a result has no such term: it changes no sum that began with +0.0. Where a lookup in two vectors is one instruction, it
makes one term of all results of a vector, otherwise some terms of few results, and a few such vectors are turned about.

Bounds. Lane l of a group is terms * l at most. What is looked up in, for some results from l on, begins there and is as
large as their terms can be: it lies in the SPAN sources from the group's first one on.
"""
from libc.stdint cimport int64_t

from aclnn_bw._core.arithmetic cimport least, most
from aclnn_bw._core.upsample_nearest_exact1d cimport SPAN, WIDEST, Group
from aclnn_bw._kernels.simd cimport (
    LOOKS_FAR, VECTOR_BYTES, add, bfloat, element, find_places, half, load, lookup, lookup_two, places, simd_block,
    simd_join, simd_load, simd_lookup_bfloats, simd_zip_high, simd_zip_low, store,
    sum_bytes, vector, vector_16, vector_half, zero,
)

cdef enum:
    LOOKUPS = 16    # of a group, at most

cdef struct Lookups:
    int64_t[LOOKUPS] start      # of the vector, from the group's first source
    places[LOOKUPS] some


cdef inline int64_t group_width(int64_t terms) noexcept nogil:
    return least(WIDEST, SPAN // terms)


cdef inline int64_t sum_lanes(const element* numbers) noexcept nogil:
    return VECTOR_BYTES // sum_bytes(numbers)


cdef inline int64_t terms_made(int64_t terms, const element* numbers) noexcept nogil:
    """By a lookup, each of as many results as fill the vector."""
    if terms == 1 or LOOKS_FAR and (terms == 2 or VECTOR_BYTES == 64 and (terms == 4 or element is double)):
        return 1
    return least(terms, sum_lanes(numbers))


cdef inline int64_t results_made(int64_t terms, const element* numbers) noexcept nogil:
    """By a sum: those of a vector, or as many as surely own no more than two vectors, if these are looked up in."""
    cdef int64_t far = 2 * sum_lanes(numbers) // terms if terms_made(terms, numbers) == 1 else WIDEST
    return least(least(far, sum_lanes(numbers)), group_width(terms))


cdef inline int64_t window_step(int64_t terms, const element* numbers) noexcept nogil:
    """Results from a vector of sources to the next."""
    return least(sum_lanes(numbers) // terms_made(terms, numbers), results_made(terms, numbers))


cdef inline void open_group(Lookups* f, const Group* group, int64_t terms, const element* numbers) noexcept nogil:
    cdef int64_t made = terms_made(terms, numbers)
    cdef int64_t results = sum_lanes(numbers) // made
    cdef int64_t step = window_step(terms, numbers)
    cdef int64_t windows = group_width(terms) // step
    cdef int64_t h, w, base
    for h in range(terms // made):
        base = h * made if made > 1 else 0
        for w in range(windows):
            # The first lane is 0.
            f.start[h * windows + w] = base + (group.lane[w * step] if w > 0 else 0)
        find_places(&f.some[h * windows], <int>windows, group.lane, <int>results, <int>step, <int>(h * made), <int>base,
                    numbers)


cdef inline void turn(vector* x, int64_t n) noexcept nogil:
    """n vectors of n cells each: the first cells of all, the second ones, and so on. Of 8 cells each there are as many
    as make 16 bytes, with which the results begin."""
    cdef vector[4] y
    cdef int k
    if n == 2:
        simd_join(&x[0], &x[1], &x[0], &x[1])
    elif 4 * n == VECTOR_BYTES:
        # Cells of 4 bytes, in each 16 bytes.
        for k in range(2):
            simd_zip_low(&y[2 * k], &x[2 * k], &x[2 * k + 1], 4)
            simd_zip_high(&y[2 * k + 1], &x[2 * k], &x[2 * k + 1], 4)
        for k in range(2):
            simd_zip_low(&x[2 * k], &y[k], &y[k + 2], 8)
            simd_zip_high(&x[2 * k + 1], &y[k], &y[k + 2], 8)
            if n == 8:
                simd_block(&x[2 * k + 4], &x[2 * k], 1)
                simd_block(&x[2 * k + 5], &x[2 * k + 1], 1)
    elif n == 4:
        # Of 8 bytes, as below.
        for k in range(2):
            simd_zip_low(&y[k], &x[2 * k], &x[2 * k + 1], 8)
            simd_zip_high(&y[k + 2], &x[2 * k], &x[2 * k + 1], 8)
        simd_join(&x[0], &x[2], &y[0], &y[1])
        simd_join(&x[1], &x[3], &y[2], &y[3])
    elif n == 8:
        simd_zip_low(&y[0], &x[0], &x[1], 8)
        simd_zip_high(&y[1], &x[0], &x[1], 8)
        for k in range(4):
            simd_block(&x[2 * k], &y[0], k)
            simd_block(&x[2 * k + 1], &y[1], k)


cdef inline void store_some(element* to, vector sum, int64_t n) noexcept nogil:
    """The first lanes: all, half of them, or a quarter."""
    cdef vector_half first_half
    cdef vector_16 quarter
    if n == sum_lanes(to):
        store(to, sum)
    elif 2 * n == sum_lanes(to):
        simd_load(&first_half, &sum)
        store(to, first_half)
    else:
        simd_load(&quarter, &sum)
        store(to, quarter)


cdef inline vector look_up(const element* source, places* some, int64_t terms) noexcept nogil:
    cdef vector a, b
    if element is bfloat and VECTOR_BYTES == 64:
        if terms_made(terms, source) == 1:
            # By words: half as many permutations.
            simd_lookup_bfloats(&a, source, some)
            return a
    a = load(source, <vector*>NULL)
    if terms > 1 and terms_made(terms, source) == 1:
        b = load(source + sum_lanes(source), <vector*>NULL)
        return lookup_two(a, b, some, source)
    return lookup(a, some, source)


cdef inline void sum_group(element* to, const element* source, Lookups* f, int64_t terms) noexcept nogil:
    cdef vector[8] x
    cdef vector sum
    cdef int64_t made = terms_made(terms, to)
    cdef int64_t results = results_made(terms, to)
    cdef int64_t step = window_step(terms, to)
    cdef int64_t windows = group_width(terms) // step
    cdef int64_t h, i, k, v
    for i in range(group_width(terms) // results):
        sum = zero(<vector*>NULL)
        for h in range(terms // made):
            for k in range(results // step):
                v = h * windows + i * (results // step) + k
                x[k] = look_up(source + f.start[v], &f.some[v], terms)
            turn(<vector*>x, made)
            for k in range(made):
                sum = add(sum, x[k], to)
        store_some(to + i * results, sum, results)
