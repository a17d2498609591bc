# cython: cdivision=True
"""MaxPool2dWithMaskBackward, and the forward that makes its mask.

gradInput[ih, iw] = the sum of gradOutput[oh, ow] over the windows (oh, ow) whose recorded maximum lies at (ih, iw); the
formula is that of PyTorch's max_pool2d_with_indices_backward, with the position read from a mask (max_pool2d.pxd of the
core draws it). float32 and the 16-bit types are summed in float32, float64 in float64, from +0.0 in ascending (oh, ow);
a 16-bit result is rounded once. No term is multiplied: a NaN or inf reaches exactly its own positions.

Backward, GATHER: for a row ih of gradInput and a phase of its columns, the windows that hold them and the kernel
positions at which they do are the same for the whole row. A vector of columns tests one bit of as many mask words (or
compares as many indices), loads the gradients that this selects, and adds. There is no zero fill, no index arithmetic,
and one writer for each element; any number of set bits is the same code. For windows of 2x2 and 3x3, whose columns
have code of their own, it takes a quarter to 0.7 of the time of scattering. SCATTER, for all other kernels of more than
a few positions and for rows of few windows: the sums of a band of rows lie in the scratch, the set bits of each word
are walked. Both add the same terms in the same order.

Forward: the columns of a row are split by their phase, so that the candidates at one kernel position lie side by side
for all windows of a row; a vector of windows keeps value and label of its maximum. The labels of 16 channels are then
turned into mask words, one compare a kernel position.

Why every access is in bounds: the plan has proved the shapes of all tensors and that the mask is one contiguous
container of at least mask_end bytes. A term covers the columns q in [begin, end) for which window q - t exists; outside
it neither gradient nor mask is read. Words are read at k < K and p < Ho*Wo only. An index is compared, never used as
an address, except in SCATTER, where it is first compared with the band's bounds.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t
from libc.string cimport memset

from aclnn_bw._core.arithmetic cimport ceil_div, least, most, quotient
from aclnn_bw._core.max_pool2d cimport GATHER, SCAN, MaxPool2dPlan, PoolAxis
from aclnn_bw._core.types cimport ALL_GOOD, SLOT_BF16, SLOT_F16, SLOT_F32, SLOT_F64, KernelTable
from aclnn_bw._kernels.rows cimport (
    bfloat, element, half, load_row, narrow_row, real, round_to_half_row, store_row,
)

cdef extern from *:
    void prefetch "__builtin_prefetch" (const void* address, int for_writing, int locality) noexcept nogil

cdef extern from "max_pool2d.h" nogil:
    ctypedef struct Term "aclnn_bw_term":
        const char* grad
        const char* mask
        int64_t begin
        int64_t end
    ctypedef struct Question "aclnn_bw_question":
        uint16_t bit
        int32_t first
        int32_t step
    void gather_bits_f32 "aclnn_bw_gather_bits_f32" (float*, const Term*, int64_t, int64_t, Question) noexcept
    void gather_bits_f64 "aclnn_bw_gather_bits_f64" (double*, const Term*, int64_t, int64_t, Question) noexcept
    void gather_indices_f32 "aclnn_bw_gather_indices_f32" (float*, const Term*, int64_t, int64_t, Question) noexcept
    void gather_indices_f64 "aclnn_bw_gather_indices_f64" (double*, const Term*, int64_t, int64_t, Question) noexcept
    ctypedef struct Plane "aclnn_bw_plane":
        const char* grad
        const char* mask
        int64_t grad_step
        int64_t mask_step
        int64_t column_step
        int64_t window_rows
        int64_t windows
        int64_t columns
        int64_t kernel
        int64_t stride
        int64_t pad
        int64_t grad_channel
        int64_t mask_channel
        int64_t to_channel
        uint16_t bit
    void known_rows_f32 "aclnn_bw_rows_f32_known" (
        float* to, int64_t to_step, Plane, int64_t ih, int64_t end, int64_t oh, int known, bint indexed,
        bint team) noexcept
    void known_rows_f64 "aclnn_bw_rows_f64_known" (
        double* to, int64_t to_step, Plane, int64_t ih, int64_t end, int64_t oh, int known, bint indexed,
        bint team) noexcept
    void window_columns "aclnn_bw_window_columns" (
        int32_t* first, int32_t* length, int64_t n, int64_t left, int64_t step, int64_t kernel, int64_t width) noexcept
    int64_t first_bad_index "aclnn_bw_first_bad_index" (
        const char* mask, const int32_t* first, const int32_t* length, int64_t n, int64_t top, int64_t bottom,
        int64_t width) noexcept
    void scatter_f32 "aclnn_bw_scatter_f32" (
        float* sums, int64_t sum_pitch, int64_t step, const float* grad, int64_t grad_pitch, const char* words,
        int first, uint32_t lanes, int64_t n) noexcept
    void scatter_f64 "aclnn_bw_scatter_f64" (
        double* sums, int64_t sum_pitch, int64_t step, const double* grad, int64_t grad_pitch, const char* words,
        int first, uint32_t lanes, int64_t n) noexcept
    void scatter_at_f32 "aclnn_bw_scatter_f32_at" (
        float* sums, int64_t low, int64_t high, const float* grad, const char* mask, int64_t n) noexcept
    void scatter_at_f64 "aclnn_bw_scatter_f64_at" (
        double* sums, int64_t low, int64_t high, const double* grad, const char* mask, int64_t n) noexcept
    void maxima_f32 "aclnn_bw_maxima_f32" (
        float* best, int32_t* label, const float* row, const int64_t* offsets, int64_t count, int64_t first,
        int64_t n) noexcept
    void maxima_f64 "aclnn_bw_maxima_f64" (
        double* best, int64_t* label, const double* row, const int64_t* offsets, int64_t count, int64_t first,
        int64_t n) noexcept
    void code_words "aclnn_bw_code_words" (
        char* words, const uint16_t* codes, int64_t pitch, int64_t lanes, int64_t code, int64_t n) noexcept
    void labels_to_codes_f32 "aclnn_bw_labels_to_codes_f32" (uint16_t* codes, const int32_t* label, int64_t n) noexcept
    void labels_to_codes_f64 "aclnn_bw_labels_to_codes_f64" (uint16_t* codes, const int64_t* label, int64_t n) noexcept
    void labels_to_indices_f32 "aclnn_bw_labels_to_indices_f32" (
        char* indices, const int32_t* label, int64_t base, int64_t step, int64_t n) noexcept
    void labels_to_indices_f64 "aclnn_bw_labels_to_indices_f64" (
        char* indices, const int64_t* label, int64_t base, int64_t step, int64_t n) noexcept
    void set_bits_f32 "aclnn_bw_set_bits_f32" (
        char* words, const int32_t* label, int64_t pitch, unsigned bit, int64_t n) noexcept
    void set_bits_f64 "aclnn_bw_set_bits_f64" (
        char* words, const int64_t* label, int64_t pitch, unsigned bit, int64_t n) noexcept

# The integer that is as wide as the float whose maximum it labels.
ctypedef fused label_type:
    int32_t
    int64_t

cdef enum:
    CHUNK = 64      # kernel columns whose offsets are listed at a time


# --- backward -------------------------------------------------------------------------------------------------------

cdef inline int64_t first_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """The first window that holds the position."""
    return ceil_div(most(position + axis.pad - axis.kernel + 1, 0), axis.stride)


cdef inline int64_t end_window(const PoolAxis* axis, int64_t position) noexcept nogil:
    """One more than the last window that holds the position."""
    return least(quotient(position + axis.pad, axis.stride) + 1, axis.out)


cdef int64_t check_indices(const MaxPool2dPlan* plan, const char* mask__hw, const int32_t* columns, int64_t oh,
                           int64_t end) noexcept nogil:
    """The first window from row `oh` to row `end` whose index lies outside it, counted in the plane; or -1."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef int64_t bad, top
    while oh < end:
        top = oh * h.stride - h.pad
        bad = first_bad_index(mask__hw + 4 * oh * w.out, columns, columns + w.out, w.out, most(top, 0),
                              least(top + h.kernel, h.size), w.size)
        if bad >= 0:
            return oh * w.out + bad
        oh += 1
    return -1


cdef inline void gather(real* to, const Term* terms, int64_t count, int64_t n, Question question,
                        bint argmax) noexcept nogil:
    if real is float:
        if argmax:
            gather_indices_f32(to, terms, count, n, question)
        else:
            gather_bits_f32(to, terms, count, n, question)
    else:
        if argmax:
            gather_indices_f64(to, terms, count, n, question)
        else:
            gather_bits_f64(to, terms, count, n, question)


cdef inline void gather_phase(const MaxPool2dPlan* plan, real* to, Term* terms, const Plane* plane, int64_t ih,
                              int64_t oh, int64_t oh_end, int64_t r) noexcept nogil:
    """to[j] = the sum that belongs to column (first + j)*stride + r - pad of row ih, for j < w.count; [oh, oh_end) are
    the rows of windows that hold row ih."""
    cdef const PoolAxis* w = &plan.w
    cdef int64_t steps = quotient(w.kernel - 1 - r, w.stride) + 1 if r < w.kernel else 0
    cdef int64_t count = 0
    cdef int64_t t, shift, k
    cdef Question question
    while oh < oh_end:
        k = (ih + plan.h.pad - oh * plan.h.stride) * w.kernel + r
        t = steps - 1
        while t >= 0:
            # Column j belongs to window first + j - t.
            shift = w.first - t
            terms[count].grad = plane.grad + oh * plane.grad_step + shift * <int64_t>sizeof(real)
            if plan.argmax:
                terms[count].mask = plane.mask + 4 * (oh * w.out + shift)
            else:
                terms[count].mask = plane.mask + 2 * ((k + t * w.stride) * plan.pitch + oh * w.out + shift)
            terms[count].begin = most(-shift, 0)
            terms[count].end = least(w.out - shift, w.count)
            count += 1
            t -= 1
        oh += 1
    question.bit = plane.bit
    question.first = <int32_t>(ih * w.size + w.first * w.stride + r - w.pad) if plan.argmax else 0
    question.step = <int32_t>w.stride if plan.argmax else 0
    gather(to, <const Term*>terms, count, w.count, question, plan.argmax)


cdef inline void store_sums(const MaxPool2dPlan* plan, element* to, int64_t stride, real* sums, element* cells,
                            int64_t n) noexcept nogil:
    """to[: n*stride : stride] = sums[:n], rounded; nothing if the sums have been made there."""
    if real is float:
        if plan.reduced:
            round_to_half_row(sums, n)
    if stride == 1:
        if <void*>to != <void*>sums:
            narrow_row(to, <const real*>sums, n)
    else:
        narrow_row(cells, <const real*>sums, n)
        store_row(to, stride, <const element*>cells, n)


cdef void gather_rows(const MaxPool2dPlan* plan, real* to, int64_t to_step, char* scratch, const Plane* plane,
                      int64_t ih, int64_t end, int64_t oh) noexcept nogil:
    """Rows [ih, end) of gradInput of any geometry: phase by phase of their columns."""
    cdef const PoolAxis* w = &plan.w
    cdef real* sums = <real*>(scratch + plan.at_phase)
    cdef Term* terms = <Term*>(scratch + plan.at_terms)
    cdef int64_t oh_end = oh
    cdef int64_t r, j, iw
    while ih < end:
        while oh < plan.h.out and oh * plan.h.stride - plan.h.pad + plan.h.kernel <= ih:
            oh += 1
        oh_end = most(oh_end, oh)
        while oh_end < plan.h.out and oh_end * plan.h.stride - plan.h.pad <= ih:
            oh_end += 1
        if w.stride == 1:
            gather_phase(plan, to, terms, plane, ih, oh, oh_end, 0)
        else:
            memset(to, 0, <size_t>w.size * sizeof(real))
            for r in range(least(w.stride, w.kernel) if oh < oh_end else 0):
                gather_phase(plan, sums, terms, plane, ih, oh, oh_end, r)
                iw = w.first * w.stride + r - w.pad
                for j in range(w.count):
                    if 0 <= iw < w.size:
                        to[iw] = sums[j]
                    iw += w.stride
        to += to_step
        ih += 1


cdef inline void prefetch_rows(const element* rows, int64_t channel_stride, int64_t team, int64_t n) noexcept nogil:
    """Ask for the lines of the next n elements of each channel that will be written. What is converted is written in
    bursts, which wait for memory otherwise: 1.4 times as long beyond the cache."""
    cdef int64_t channel, line
    cdef const char* row
    for channel in range(team):
        row = <const char*>(rows + channel * channel_stride)
        line = 0
        while line < n * <int64_t>sizeof(element):
            prefetch(row + line, 1, 2)
            line += 64


cdef void gather_band(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask, int64_t lane,
                      int64_t team, element* grad_input__chw, char* scratch, int64_t ih, int64_t end,
                      const real* kind) noexcept nogil:
    """Rows [ih, end) of `team` planes of gradInput from that of channel `lane` of a group; `mask` is the group's table,
    or the first of the planes of indices."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef real* sums = <real*>(scratch + plan.at_sums)
    cdef real* loaded = <real*>(scratch + plan.at_rows)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef int64_t row_pitch = plan.pooled_strides[2]
    cdef int64_t down = plan.image_strides[2]
    cdef int64_t along = plan.image_strides[3]
    cdef int64_t band_oh = first_window(h, ih)
    cdef int64_t to_step = w.size
    cdef int64_t oh, stop, channel
    cdef const element* grad_output__hw
    cdef element* grad_input__hw = grad_input__chw
    cdef bint in_place = False
    cdef Plane plane
    cdef real* to = sums
    plane.grad = NULL
    if (real is float and element is float) or (real is double and element is double):
        in_place = along == 1 and not plan.reduced
        if plan.pooled_strides[3] == 1 and not plan.reduced:
            plane.grad = <const char*>grad_output__chw
            plane.grad_channel = plan.pooled_strides[1] * <int64_t>sizeof(real)
    if plane.grad == NULL:
        # Row oh of the plane would lie at loaded + (oh - band_oh)*pitch; rows before band_oh are not read.
        row_pitch = plan.row_pitch
        to = loaded
        for channel in range(team):
            grad_output__hw = grad_output__chw + channel * plan.pooled_strides[1]
            for oh in range(band_oh, end_window(h, end - 1)):
                load_row(to, grad_output__hw + oh * plan.pooled_strides[2], plan.pooled_strides[3], w.out)
                if real is float:
                    if plan.reduced:
                        round_to_half_row(to, w.out)
                to += row_pitch
        plane.grad_channel = (end_window(h, end - 1) - band_oh) * row_pitch * <int64_t>sizeof(real)
        plane.grad = <const char*>loaded - band_oh * row_pitch * <int64_t>sizeof(real)
    plane.grad_step = row_pitch * <int64_t>sizeof(real)
    plane.mask = mask
    plane.column_step = 2 * plan.pitch
    plane.mask_step = 4 * w.out if plan.argmax else 2 * (w.out - h.stride * w.kernel * plan.pitch)
    plane.window_rows = h.out
    plane.windows = w.out
    plane.columns = w.size
    plane.kernel = h.kernel
    plane.stride = h.stride
    plane.pad = h.pad
    plane.mask_channel = 4 * h.out * w.out
    plane.bit = <uint16_t>(1 << lane)
    plane.to_channel = plan.image_strides[1] if in_place else plan.chunk * w.size
    while ih < end:
        # Rows that are made in gradInput itself are done at once, others as many at a time as the scratch holds.
        stop = end
        to = sums
        if in_place:
            to = <real*>(grad_input__hw + ih * down)
            to_step = down
        else:
            stop = least(end, ih + plan.chunk)
            if along == 1 and down == w.size and stop + plan.chunk <= h.size:
                prefetch_rows(<const element*>grad_input__chw + stop * down, plan.image_strides[1], team,
                              plan.chunk * w.size)
        if not plan.known:
            gather_rows(plan, to, to_step, scratch, &plane, ih, stop, band_oh)
        elif real is float:
            known_rows_f32(to, to_step, plane, ih, stop, band_oh, plan.known, plan.argmax, team > 1)
        else:
            known_rows_f64(to, to_step, plane, ih, stop, band_oh, plan.known, plan.argmax, team > 1)
        if in_place:
            return
        for channel in range(team):
            to = sums + channel * plane.to_channel
            grad_input__hw = grad_input__chw + channel * plan.image_strides[1]
            for oh in range(ih, stop):
                store_sums(plan, grad_input__hw + oh * down, along, to, cells, w.size)
                to += to_step
        ih = stop


cdef void scatter_band(const MaxPool2dPlan* plan, const element* grad_output__chw, const char* mask, int64_t lanes,
                       element* grad_input__chw, char* scratch, int64_t ih, int64_t rows,
                       const real* kind) noexcept nogil:
    """`rows` rows from row ih of the `lanes` planes of a group."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef real* grad = <real*>(scratch + plan.at_rows)
    cdef real* sums = <real*>(scratch + plan.at_sums)
    cdef element* cells = <element*>(scratch + plan.at_cells)
    cdef int64_t lane, swept, j, oh, kh, kw, row, ow, ow_end
    cdef const char* words
    cdef real* to
    lane = 0
    while lane < lanes:
        swept = least(plan.sweep, lanes - lane)
        memset(sums, 0, <size_t>(swept * plan.sum_pitch) * sizeof(real))
        for oh in range(first_window(h, ih), end_window(h, ih + rows - 1)):
            for j in range(swept):
                load_row(grad + j * plan.row_pitch, grad_output__chw + (lane + j) * plan.pooled_strides[1]
                         + oh * plan.pooled_strides[2], plan.pooled_strides[3], w.out)
            if real is float:
                if plan.reduced:
                    round_to_half_row(grad, swept * plan.row_pitch)
            if plan.argmax:
                for j in range(swept):
                    words = mask + 4 * ((lane + j) * h.out + oh) * w.out
                    if real is float:
                        scatter_at_f32(sums + j * plan.sum_pitch, ih * w.size, (ih + rows) * w.size,
                                       grad + j * plan.row_pitch, words, w.out)
                    else:
                        scatter_at_f64(sums + j * plan.sum_pitch, ih * w.size, (ih + rows) * w.size,
                                       grad + j * plan.row_pitch, words, w.out)
                continue
            # Ascending windows of one row reach a position at descending kw.
            for kh in range(h.kernel):
                row = oh * h.stride - h.pad + kh - ih
                if not 0 <= row < rows:
                    continue
                kw = w.kernel - 1
                while kw >= 0:
                    # The windows of the row whose position kw lies in the image.
                    ow = ceil_div(most(w.pad - kw, 0), w.stride)
                    ow_end = least(quotient(w.size - 1 + w.pad - kw, w.stride) + 1, w.out)
                    if w.size - 1 + w.pad - kw >= 0 and ow < ow_end:
                        words = mask + 2 * ((kh * w.kernel + kw) * plan.pitch + oh * w.out + ow)
                        to = sums + row * w.size + ow * w.stride - w.pad + kw
                        if real is float:
                            scatter_f32(to, plan.sum_pitch, w.stride, grad + ow, plan.row_pitch, words, <int>lane,
                                        <uint32_t>((1 << swept) - 1), ow_end - ow)
                        else:
                            scatter_f64(to, plan.sum_pitch, w.stride, grad + ow, plan.row_pitch, words, <int>lane,
                                        <uint32_t>((1 << swept) - 1), ow_end - ow)
                    kw -= 1
        for j in range(swept):
            for row in range(rows):
                store_sums(plan, grad_input__chw + (lane + j) * plan.image_strides[1]
                           + (ih + row) * plan.image_strides[2], plan.image_strides[3],
                           sums + j * plan.sum_pitch + row * w.size, cells, w.size)
        lane += swept


cdef int64_t first_bad_place(const MaxPool2dPlan* plan, const char* mask, const int32_t* columns, int64_t c,
                             int64_t lane, int64_t bad, int64_t ih, int64_t units) noexcept nogil:
    """The place of the first bad index of a range. Channel `lane` of the group at `c` has one, at `bad` of its plane,
    in the first band that has any; earlier channels may have theirs in a later band. `units` more are the range's."""
    cdef int64_t plane = plan.h.out * plan.w.out
    cdef int64_t j, found
    while units > 0 and ih < plan.h.size:
        for j in range(lane):
            found = check_indices(plan, mask + 4 * j * plane, columns, first_window(&plan.h, ih),
                                  end_window(&plan.h, least(ih + plan.band, plan.h.size) - 1))
            if found >= 0:
                lane = j
                bad = found
                break
        ih += plan.band
        units -= 1
    return (c + lane) * plane + bad


cdef int64_t backward(const MaxPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                      const real* summed, const element* stored) noexcept nogil:
    """The units [begin, end); the last two arguments give their types only."""
    cdef const element* grad_output__nchw = <const element*>data[0]
    cdef element* grad_input__nchw = <element*>data[3]
    cdef const element* grad_output__chw
    cdef element* grad_input__chw
    cdef int32_t* columns = <int32_t*>(scratch + plan.at_columns)
    cdef const char* mask
    cdef int64_t ih, n, c, group, lane, lanes, team, rows, bad
    if plan.argmax:
        window_columns(columns, columns + plan.w.out, plan.w.out, -plan.w.pad, plan.w.stride, plan.w.kernel,
                       plan.w.size)
    # Unit = (n*groups + group)*bands + band: taken apart once, then counted on.
    ih = n = 0
    group = begin
    if begin > 0:
        ih = begin % plan.bands * plan.band
        group = begin // plan.bands
        n = group // plan.groups
        group -= n * plan.groups
    while begin < end:
        begin += 1
        rows = least(plan.band, plan.h.size - ih)
        lanes = least(plan.lanes, plan.channels - group * plan.lanes)
        grad_output__chw = (grad_output__nchw + n * plan.pooled_strides[0]
                            + group * plan.lanes * plan.pooled_strides[1])
        grad_input__chw = grad_input__nchw + n * plan.image_strides[0] + group * plan.lanes * plan.image_strides[1]
        if plan.argmax:
            c = n * plan.channels + group * plan.lanes
            mask = data[2] + 4 * c * plan.h.out * plan.w.out
            for lane in range(lanes):
                bad = check_indices(plan, mask + 4 * lane * plan.h.out * plan.w.out, <const int32_t*>columns,
                                    first_window(&plan.h, ih), end_window(&plan.h, ih + rows - 1))
                if bad >= 0:
                    return first_bad_place(plan, mask, <const int32_t*>columns, c, lane, bad, ih + plan.band,
                                           end - begin)
        else:
            mask = data[2] + 2 * (n * plan.groups + group) * plan.kernel_size * plan.pitch
        if plan.algorithm == GATHER:
            lane = 0
            while lane < lanes:
                team = plan.team if lane + plan.team <= lanes else 1
                gather_band(plan, grad_output__chw + lane * plan.pooled_strides[1],
                            mask + 4 * lane * plan.h.out * plan.w.out if plan.argmax else mask, lane, team,
                            grad_input__chw + lane * plan.image_strides[1], scratch, ih, ih + rows, summed)
                lane += team
        else:
            scatter_band(plan, grad_output__chw, mask, lanes, grad_input__chw, scratch, ih, rows, summed)
        ih += plan.band
        if ih >= plan.h.size:
            ih = 0
            group += 1
            if group == plan.groups:
                group = 0
                n += 1
    return ALL_GOOD


# --- forward --------------------------------------------------------------------------------------------------------

cdef void load_image_row(const MaxPool2dPlan* plan, real* to, const element* self__hw, int64_t ih,
                         real* cells) noexcept nogil:
    """Row ih of the image: as it is for SCAN, else each of its phases, of which the padding has been set to -inf."""
    cdef const PoolAxis* w = &plan.w
    cdef int64_t r, j, j_end, iw
    if plan.algorithm == SCAN or w.stride > 1:
        load_row(cells, self__hw + ih * plan.image_strides[2], plan.image_strides[3], w.size)
        if real is float:
            if plan.reduced:
                round_to_half_row(cells, w.size)
        if plan.algorithm == SCAN:
            return
    else:
        # A kernel may end before the row does.
        j_end = least(w.out + w.terms - 1 - w.pad, w.size)
        load_row(to + w.pad, self__hw + ih * plan.image_strides[2], plan.image_strides[3], j_end)
        if real is float:
            if plan.reduced:
                round_to_half_row(to + w.pad, j_end)
        return
    for r in range(least(w.stride, w.kernel)):
        # Element j of the phase is column j*stride + r - pad.
        j = ceil_div(most(w.pad - r, 0), w.stride)
        iw = j * w.stride + r - w.pad
        j_end = least(w.out + w.terms - 1, j + quotient(w.size - 1 - iw, w.stride) + 1) if iw < w.size else j
        if w.stride == 2:
            while j < j_end:
                to[j] = cells[iw]
                iw += 2
                j += 1
        else:
            while j < j_end:
                to[j] = cells[iw]
                iw += w.stride
                j += 1
        to += plan.row_pitch


cdef inline void take_maxima(real* best, label_type* label, const real* row, const int64_t* offsets, int64_t count,
                             int64_t first, int64_t n) noexcept nogil:
    if real is float and label_type is int32_t:
        maxima_f32(best, label, row, offsets, count, first, n)
    elif real is double and label_type is int64_t:
        maxima_f64(best, label, row, offsets, count, first, n)


cdef inline void take_row(const MaxPool2dPlan* plan, real* best, label_type* label, const real* row,
                          int64_t first) noexcept nogil:
    """Compare the maxima of a row of windows with one row of the image; kernel column kw has the label first + kw."""
    cdef const PoolAxis* w = &plan.w
    cdef int64_t[CHUNK] offsets
    cdef int64_t phases = least(w.stride, w.kernel)
    cdef int64_t r = 0
    cdef int64_t t = 0
    cdef int64_t kw = 0
    cdef int64_t count
    while kw < w.kernel:
        count = 0
        while count < CHUNK and kw + count < w.kernel:
            offsets[count] = r * plan.row_pitch + t
            count += 1
            r += 1
            if r == phases:
                r = 0
                t += 1
        take_maxima(best, label, row, <const int64_t*>offsets, count, first + kw, w.out)
        kw += count


cdef void scan_row(const MaxPool2dPlan* plan, real* best, label_type* label, const real* row,
                   int64_t first) noexcept nogil:
    """The same, one window after the other, over the row as it is."""
    cdef const PoolAxis* w = &plan.w
    cdef int64_t ow, iw, left
    cdef real value, maximum
    for ow in range(w.out):
        left = ow * w.stride - w.pad
        maximum = best[ow]
        for iw in range(most(left, 0), least(left + w.kernel, w.size)):
            value = row[iw]
            if value > maximum or value != value:
                maximum = value
                label[ow] = <label_type>(first + iw - left)
        best[ow] = maximum


cdef void forward_plane(const MaxPool2dPlan* plan, const element* self__hw, element* out__hw, char* mask,
                        uint16_t* codes, unsigned bit, char* scratch, int64_t oh, int64_t rows, real* best,
                        label_type* label) noexcept nogil:
    """`rows` rows of windows of one plane from row oh: the maxima to out; their places to `codes`, or to `mask` as
    indices or as bits."""
    cdef const PoolAxis* h = &plan.h
    cdef const PoolAxis* w = &plan.w
    cdef real* ring = <real*>(scratch + plan.at_rows)
    cdef real* cells = <real*>(scratch + plan.at_cells)
    cdef element* narrow = <element*>cells      # the image's row is done with when the maxima are stored
    cdef real* row = cells
    cdef int64_t slot_size = plan.row_pitch * least(w.stride, w.kernel)
    cdef int64_t label_pitch = w.size if plan.argmax else w.kernel
    cdef int64_t known = most(oh * h.stride - h.pad, 0)
    cdef int64_t end = oh + rows
    cdef int64_t top, ih, ow
    while oh < end:
        top = oh * h.stride - h.pad
        ih = most(top, 0)
        # The first position in the image, which stays if no value is above -inf.
        for ow in range(w.out):
            best[ow] = -INFINITY
            label[ow] = <label_type>((ih - top) * label_pitch)
        ow = 0
        while ow < w.out and ow * w.stride < w.pad:
            label[ow] = <label_type>((ih - top) * label_pitch + w.pad - ow * w.stride)
            ow += 1
        while ih < least(top + h.kernel, h.size):
            if plan.ring > 0:
                row = ring + (ih % plan.ring) * slot_size
            if ih >= known or plan.ring < h.kernel:
                load_image_row(plan, row, self__hw, ih, cells)
                known = ih + 1
            if plan.algorithm == SCAN:
                scan_row(plan, best, label, <const real*>row, (ih - top) * label_pitch)
            else:
                take_row(plan, best, label, <const real*>row, (ih - top) * label_pitch)
            ih += 1
        if plan.pooled_strides[3] == 1:
            narrow_row(out__hw + oh * plan.pooled_strides[2], <const real*>best, w.out)
        else:
            narrow_row(narrow, <const real*>best, w.out)
            store_row(out__hw + oh * plan.pooled_strides[2], plan.pooled_strides[3], <const element*>narrow, w.out)
        if codes != NULL:
            if label_type is int32_t:
                labels_to_codes_f32(codes, label, w.out)
            else:
                labels_to_codes_f64(codes, label, w.out)
            codes += w.out
        elif plan.argmax:
            if label_type is int32_t:
                labels_to_indices_f32(mask + 4 * oh * w.out, label, top * w.size - w.pad, w.stride, w.out)
            else:
                labels_to_indices_f64(mask + 4 * oh * w.out, label, top * w.size - w.pad, w.stride, w.out)
        else:
            if label_type is int32_t:
                set_bits_f32(mask + 2 * oh * w.out, label, plan.pitch, bit, w.out)
            else:
                set_bits_f64(mask + 2 * oh * w.out, label, plan.pitch, bit, w.out)
        oh += 1


cdef int64_t forward(const MaxPool2dPlan* plan, char** data, char* scratch, int64_t begin, int64_t end,
                     label_type* labelled, const real* compared, const element* stored) noexcept nogil:
    """The units [begin, end); the last three arguments give their types only."""
    cdef const PoolAxis* w = &plan.w
    cdef const element* self__nchw = <const element*>data[0]
    cdef element* out__nchw = <element*>data[1]
    cdef real* best = <real*>(scratch + plan.at_best)
    cdef label_type* label = <label_type*>(scratch + plan.at_labels)
    cdef uint16_t* codes = <uint16_t*>(scratch + plan.at_codes) if plan.coded else NULL
    cdef real* ring = <real*>(scratch + plan.at_rows)
    cdef int64_t i, k, c, n, group, lane, lanes, oh, rows, first, count, share
    cdef char* mask
    for i in range(plan.ring * plan.row_pitch * least(w.stride, w.kernel)):
        ring[i] = -INFINITY
    for i in range(plan.sum_pitch):
        # Vectors reach beyond the last window.
        best[i] = 0
        label[i] = 0
    oh = begin % plan.bands * plan.band
    group = begin // plan.bands
    n = group // plan.groups
    group -= n * plan.groups
    share = ceil_div(plan.mask_bytes - plan.mask_end, plan.units)
    while begin < end:
        # What no window uses of the container is zeroed in equal shares.
        first = least(plan.mask_end + begin * share, plan.mask_bytes)
        memset(data[2] + first, 0, <size_t>(least(first + share, plan.mask_bytes) - first))
        begin += 1
        rows = least(plan.band, plan.h.out - oh)
        lanes = least(plan.lanes, plan.channels - group * plan.lanes)
        first = oh * w.out
        count = rows * w.out
        if plan.argmax:
            mask = data[2] + 4 * (n * plan.groups + group) * plan.h.out * w.out
        else:
            mask = data[2] + 2 * (n * plan.groups + group) * plan.kernel_size * plan.pitch
            for k in range(plan.kernel_size):
                # The last band zeroes the rest of the row; bits that are set one by one want zeros to begin with.
                i = first if codes == NULL else first + count
                c = plan.pitch if oh + rows == plan.h.out else first + count
                memset(mask + 2 * (k * plan.pitch + i), 0, <size_t>(2 * (c - i)))
        for lane in range(lanes):
            c = group * plan.lanes + lane
            forward_plane(plan, self__nchw + n * plan.image_strides[0] + c * plan.image_strides[1],
                          out__nchw + n * plan.pooled_strides[0] + c * plan.pooled_strides[1], mask,
                          codes + lane * count if codes != NULL else NULL, <unsigned>(1 << lane), scratch, oh, rows,
                          best, label)
        if codes != NULL:
            for k in range(plan.kernel_size):
                code_words(mask + 2 * (k * plan.pitch + first), codes, count, lanes, k, count)
        oh += plan.band
        if oh >= plan.h.out:
            oh = 0
            group += 1
            if group == plan.groups:
                group = 0
                n += 1
    return ALL_GOOD


cdef int64_t backward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const float*>NULL)


cdef int64_t backward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const double*>NULL, <const double*>NULL)


cdef int64_t backward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const half*>NULL)


cdef int64_t backward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return backward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <const float*>NULL, <const bfloat*>NULL)


cdef int64_t forward_f32(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <int32_t*>NULL, <const float*>NULL,
                   <const float*>NULL)


cdef int64_t forward_f64(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <int64_t*>NULL, <const double*>NULL,
                   <const double*>NULL)


cdef int64_t forward_f16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <int32_t*>NULL, <const float*>NULL,
                   <const half*>NULL)


cdef int64_t forward_bf16(const void* plan, char** data, char* scratch, int64_t begin, int64_t end) noexcept nogil:
    return forward(<const MaxPool2dPlan*>plan, data, scratch, begin, end, <int32_t*>NULL, <const float*>NULL,
                   <const bfloat*>NULL)


cdef void max_pool2d_kernels(KernelTable* table) noexcept nogil:
    """Put this instruction set's kernels into the table."""
    table.max_pool2d_backward[<int>SLOT_F32] = backward_f32
    table.max_pool2d_backward[<int>SLOT_F64] = backward_f64
    table.max_pool2d_backward[<int>SLOT_F16] = backward_f16
    table.max_pool2d_backward[<int>SLOT_BF16] = backward_bf16
    table.max_pool2d[<int>SLOT_F32] = forward_f32
    table.max_pool2d[<int>SLOT_F64] = forward_f64
    table.max_pool2d[<int>SLOT_F16] = forward_f16
    table.max_pool2d[<int>SLOT_BF16] = forward_bf16
