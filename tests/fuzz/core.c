/* A coverage-guided target (libFuzzer) for the core: what phase 1 takes and refuses, and the kernels behind it.
 *
 * The input is read as a program of small choices: an operator, a product, and its arguments, with the numbers that
 * break things among those that can be chosen. A bit of it asks for a call that fits: small attributes, and the shapes
 * that follow from them, so that the kernels are reached often; at most a few things are wrong with it then. Tensors
 * get memory of exactly their storage, so that AddressSanitizer sees every byte beside it. Built and run by
 * tests/fuzz/core.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators.h"

enum { TENSORS = ACLNN_BW_MAX_TENSORS, ARRAYS = ACLNN_BW_MAX_ARRAYS, MAX_RANK = ACLNN_BW_MAX_RANK };
enum { MAX_INTS = ACLNN_BW_MAX_INTS, MOST_BYTES = 1 << 18, MOST_WORK = 1 << 20, ROOM = 4096 };

typedef aclnn_bw_tensor Tensor;
typedef aclnn_bw_int_array IntArray;
typedef aclnn_bw_context Context;
typedef aclnn_bw_executor Executor;
typedef aclnn_bw_run Run;

int aclnn_bw_best_isa(void);
void aclnn_bw_load_kernels(int isa, aclnn_bw_kernel_table *table);
const char *aclnn_bw_recent_message(void);

int aclnn_bw_execute(Executor *executor, int op, char *workspace, int64_t size);
int aclnn_bw_make_repeatable(Executor *);
int aclnn_bw_rebind(Executor *, const Context *, int64_t index, const Tensor *);
int aclnn_bw_accept(Executor *, int op, char *workspace, int64_t size, int64_t queue, Run *);
void aclnn_bw_run_range(Run *, int64_t index);
int aclnn_bw_finish(Run *);
void aclnn_bw_retract(Run *);
void aclnn_bw_delete_executor(Executor *);

typedef struct {
    const uint8_t *at, *end;
} Input;

static int64_t item_size(int dtype)
{
    switch (dtype) {
    case 2: case 4: case 12: return 1;
    case 1: case 6: case 7: case 27: return 2;
    case 0: case 3: case 8: return 4;
    case 9: case 10: case 11: case 16: return 8;
    case 17: return 16;
    default: return 0;
    }
}

static int byte(Input *in) { return in->at < in->end ? *in->at++ : 0; }

/* Mostly a small number; now and then one of those that overflow. */
static int64_t number(Input *in)
{
    static const int64_t hostile[] = {-1, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_C(1) << 62, INT64_C(1) << 31,
                                      INT64_C(1) << 32, -(INT64_C(1) << 31), INT32_MAX, 65535, 65536, INT64_C(1) << 48,
                                      255, 256, INT64_C(1) << 40, -2};
    int choice = byte(in);
    return choice < 240 ? choice : hostile[choice - 240];
}

static void read_array(Input *in, IntArray *array)
{
    array->size = byte(in) % 10;
    array->scalar = array->size == 1 && byte(in) % 2;
    for (int i = 0; i < (array->size < MAX_INTS ? (int)array->size : MAX_INTS); i++)
        array->values[i] = number(in);
}

/* The elements that the view reaches, if that is a small number; else -1. */
static int64_t reach(const Tensor *t, int64_t *low)
{
    double begin = 0, end = 0; /* which cannot overflow, and is exact where it is small */
    int empty = 0;
    for (int i = 0; i < t->rank; i++) {
        double step = ((double)t->dims[i] - 1) * (double)t->strides[i];
        empty |= t->dims[i] == 0;
        if (step < 0)
            begin += step;
        else
            end += step;
    }
    if (empty)
        return 0;
    if (!(end - begin < MOST_BYTES))
        return -1;
    *low = (int64_t)begin;
    return (int64_t)(end - begin) + 1;
}

static int any_dtype(Input *in)
{
    static const int dtypes[] = {0, 0, 1, 27, 11, 16, 17, 2, 3, 12, -1, 9};
    return dtypes[byte(in) % (int)(sizeof dtypes / sizeof *dtypes)];
}

static int any_format(Input *in)
{
    static const int formats[] = {2, 0, 47, 1, 3, 4, 12, 16, 27, 29, 30, 32, 33, 35, -1};
    return formats[byte(in) % (int)(sizeof formats / sizeof *formats)];
}

static int format_of(int rank) { return rank == 4 ? 0 : rank == 3 ? 47 : 2; }

/* Memory of exactly the elements that the view reaches, or a storage of any size without memory. */
static void give_storage(Input *in, Tensor *t, int strange)
{
    int64_t low = 0, used = reach(t, &low);
    t->offset = -low;
    t->storage = used;
    if (used < 0 || strange) {
        t->storage = number(in);
        t->storage = t->storage < 0 ? 0 : t->storage;
        t->offset = number(in);
    } else if (used * item_size(t->dtype) <= MOST_BYTES) {
        t->data = malloc((size_t)(used * item_size(t->dtype)));
        for (int64_t i = 0, n = used * item_size(t->dtype); i < n; i++)
            t->data[i] = (char)(in->end - in->at > 1 && i % 3 ? in->at[i % (in->end - in->at)] : i);
    }
}

static void read_tensor(Input *in, Tensor *t, const Tensor *like)
{
    int how = byte(in);
    int64_t step = 1;
    t->dtype = how & 1 && like ? like->dtype : any_dtype(in);
    t->rank = how & 2 ? 4 : how & 4 ? 3 : byte(in) % (MAX_RANK + 2); /* MAX_RANK + 1: only the rank is looked at */
    t->format = how & 8 ? format_of(t->rank) : any_format(in);
    t->flags = how & 16 ? 1 : byte(in) & 15;
    for (int i = 0; i < t->rank && i < MAX_RANK; i++)
        if ((t->dims[i] = number(in)) < 0)
            t->dims[i] = -(t->dims[i] + 1); /* no face lets a negative one through */
    for (int i = (t->rank < MAX_RANK ? t->rank : MAX_RANK) - 1; i >= 0; i--) {
        t->strides[i] = how & 32 ? step : (int64_t)((uint64_t)number(in) - 16);
        if (__builtin_mul_overflow(step, t->dims[i] > 1 ? t->dims[i] : 1, &step))
            step = 0;
    }
    if (t->rank > MAX_RANK)
        return;
    give_storage(in, t, how & 64);
}

/* ---- calls that fit ---------------------------------------------------------------------------------------------- */

enum {
    MAX_BACKWARD = ACLNN_BW_MAX_POOL2D_WITH_MASK_BACKWARD,
    MAX_FORWARD = ACLNN_BW_MAX_POOL2D_WITH_MASK,
    UPSAMPLE = ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_BACKWARD,
    AVG = ACLNN_BW_AVG_POOL2D_BACKWARD,
    IM2COL = ACLNN_BW_IM2COL_BACKWARD,
    PAD = ACLNN_BW_REPLICATION_PAD2D_BACKWARD,
    MAX_INDICES = ACLNN_BW_MAX_POOL2D_WITH_INDICES,
    MAX_INDICES_BACKWARD = ACLNN_BW_MAX_POOL2D_WITH_INDICES_BACKWARD
};

/* The gradient whose attributes a forward has. */
static int gradient_of(int op)
{
    switch (op) {
    case ACLNN_BW_REPLICATION_PAD2D: return PAD;
    case ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D: return UPSAMPLE;
    case ACLNN_BW_IM2COL: return IM2COL;
    case ACLNN_BW_AVG_POOL2D: return AVG;
    default: return op;
    }
}

typedef struct {
    int64_t size, kernel, stride, pad, dilation, windows;
} Axis;

/* Any attributes of one axis, and its size, grown until a window fits. */
static Axis read_axis(Input *in, int op, int ceil_mode)
{
    int wide = byte(in);
    Axis axis = {1 + wide % 20, 0, 0, 0, 1, 0};
    int64_t room;
    if (wide >= 224)
        axis.size = 1 + wide % 4 * 64 + byte(in) % 64;
    axis.kernel = 1 + byte(in) % 6;
    axis.stride = 1 + byte(in) % 5;
    axis.pad = byte(in) % (op == IM2COL ? 5 : axis.kernel / 2 + 1);
    if (op == IM2COL)
        axis.dilation = 1 + byte(in) % 3;
    room = axis.size + 2 * axis.pad - (axis.kernel - 1) * axis.dilation - 1;
    if (room < 0) {
        axis.size -= room;
        room = 0;
    }
    axis.windows = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
    if (ceil_mode && (axis.windows - 1) * axis.stride >= axis.size + axis.pad)
        axis.windows--;
    return axis;
}

static void set_pair(IntArray *array, int64_t first, int64_t second, int once)
{
    array->values[0] = first;
    array->values[1] = second;
    array->size = once && first == second ? 1 : 2;
}

/* A tensor of this shape in any layout that has no overlap: the axes in any order, gaps between them, any direction. */
static void fit_tensor(Input *in, Tensor *t, int dtype, int leading, const int64_t *batch, int64_t h, int64_t w,
                       int plain)
{
    int how = byte(in), order[4], choice, gaps;
    int64_t step = 1;
    t->rank = leading;
    for (int i = 0; i < leading; i++)
        t->dims[i] = batch[i];
    if (h)
        t->dims[t->rank++] = h;
    t->dims[t->rank++] = w;
    t->dtype = dtype;
    t->format = format_of(t->rank);
    t->flags = 1;
    switch (how) { /* few things wrong, and seldom, as each ends the call */
    case 255: t->dtype = any_dtype(in); break;
    case 254: t->format = any_format(in); break;
    case 253: t->flags = byte(in) & 15; break;
    case 252: t->rank--; break;
    case 251:
        choice = byte(in) % t->rank;
        t->dims[choice] = number(in);
        if (t->dims[choice] < 0)
            t->dims[choice] = 0;
    }
    for (int i = 0; i < t->rank; i++)
        order[i] = i;
    if (how & 1 && !plain && t->rank > 2) { /* channels innermost */
        int channels = t->rank - 3;
        memmove(order + channels, order + channels + 1, 2 * sizeof *order);
        order[t->rank - 1] = channels;
    }
    choice = how & 2 && !plain ? byte(in) : 0;
    gaps = how & 4 && !plain ? byte(in) : 0;
    for (int i = 0; i < t->rank; i++) {
        int other = i + choice % (t->rank - i), axis = order[other];
        choice /= t->rank - i;
        order[other] = order[i];
        order[i] = axis;
    }
    for (int i = t->rank - 1; i >= 0; i--) {
        int axis = order[i];
        step += gaps >> i & 1 ? 1 + i : 0;
        t->strides[axis] = gaps >> 4 >> i & 1 ? -step : step;
        if (__builtin_mul_overflow(step, t->dims[axis] > 1 ? t->dims[axis] : 1, &step))
            step = 0;
    }
    if (how >> 3 == 29) /* a broadcast input, or an output that overlaps itself */
        t->strides[byte(in) % t->rank] = 0;
    give_storage(in, t, how == 250);
}

/* Argmax indices of 4 or 8 bytes each: any position of each window; now and then one that lies outside. */
static void fit_indices(Input *in, Tensor *mask, int64_t item, int64_t planes, Axis h, Axis w)
{
    int bad = byte(in);
    if (!mask->data || mask->storage * item_size(mask->dtype) < item * planes * h.windows * w.windows)
        return; /* too large for this, or made wrong */
    for (int64_t i = 0; i < planes * h.windows * w.windows; i++) {
        int64_t oh = i / w.windows % h.windows, ow = i % w.windows;
        int64_t top = oh * h.stride - h.pad, left = ow * w.stride - w.pad;
        int64_t index;
        int32_t narrow;
        top += (uint8_t)mask->data[item * i] % h.kernel;
        left += (uint8_t)mask->data[item * i + 1] % w.kernel;
        top = top < 0 ? 0 : top < h.size ? top : h.size - 1;
        left = left < 0 ? 0 : left < w.size ? left : w.size - 1;
        index = top * w.size + left;
        if (bad > 239 && i % 16 == bad % 16)
            index = number(in);
        narrow = (int32_t)index;
        memcpy(mask->data + item * i, item == 8 ? (void *)&index : (void *)&narrow, (size_t)item);
    }
}

/* An operator's arguments, in the order in which the call takes them; n: ceilMode, and average pooling's numbers. */
static void fit(Input *in, int fitted, const Context *context, Tensor *t, IntArray *a, int64_t *n)
{
    const int op = gradient_of(fitted), forward = op != fitted;
    static const int dtypes[] = {0, 1, 27, 11, 0, 1, 16, 17}, channels[] = {1, 1, 2, 3, 4, 15, 16, 17};
    int dtype = dtypes[byte(in) % (op == PAD ? 8 : 4)], how = byte(in), form = byte(in), once = form >> 1 & 1;
    int64_t batch[2] = {how >> 1 & 3, channels[how >> 3 & 7]}, *b = batch, positions, row;
    int leading = 2, indexed = op == MAX_INDICES || op == MAX_INDICES_BACKWARD, index_dtype = how & 128 ? 9 : 3;
    int pooling = op == MAX_BACKWARD || op == MAX_FORWARD || op == AVG || indexed;
    Axis h, w;
    if (op == UPSAMPLE) {
        batch[0] += batch[0] == 0;
        a[0].values[0] = 1 + byte(in);
        a[0].size = 1;
        a[1].values[2] = 1 + byte(in);
        a[1].size = 3;
        memcpy(a[1].values, batch, sizeof batch);
        fit_tensor(in, &t[forward], dtype, 2, batch, 0, a[0].values[0], 0);
        fit_tensor(in, &t[!forward], dtype, 2, batch, 0, a[1].values[2], 0);
        return;
    }
    if (how & 64) {
        leading = 1;
        b = batch + 1;
    }
    n[0] = pooling && form & 1;
    h = read_axis(in, op, (int)n[0]);
    w = read_axis(in, op, (int)n[0]);
    if (op == PAD) {
        for (int i = 0; i < 4; i++)
            a[0].values[i] = byte(in) % 8 - (form & 1 ? 2 : 0);
        a[0].size = 4;
        h.windows = h.size + a[0].values[2] + a[0].values[3];
        w.windows = w.size + a[0].values[0] + a[0].values[1];
    } else if (op == IM2COL) {
        IntArray *next = a;
        if (!forward)
            set_pair(next++, h.size, w.size, 0);
        set_pair(next, h.kernel, w.kernel, 0);
        set_pair(next + 1, h.dilation, w.dilation, 0);
        set_pair(next + 2, h.pad, w.pad, 0);
        set_pair(next + 3, h.stride, w.stride, 0);
    } else {
        set_pair(&a[0], h.kernel, w.kernel, once);
        set_pair(&a[1], h.stride, w.stride, once);
        set_pair(&a[2], h.pad, w.pad, once);
        set_pair(&a[3], 1, 1, once);
        n[1] = form >> 2 & 1;
        n[2] = form & 8 ? byte(in) : 0;
        n[3] = form >> 4 & 3;
    }
    if (form >= 254) { /* one attribute is wrong */
        IntArray *array = &a[byte(in) % ARRAYS];
        int i = byte(in);
        if (form == 254)
            array->size = i % 10;
        else
            array->values[i % 4] = number(in);
    }
    positions = h.kernel * w.kernel;
    row = ((h.windows * w.windows + 15) / 16 + 1) * 32;
    switch (op) {
    case MAX_INDICES:
    case MAX_FORWARD:
        fit_tensor(in, &t[0], dtype, leading, b, h.size, w.size, 0);
        fit_tensor(in, &t[1], dtype, leading, b, h.windows, w.windows, 0);
        if (indexed)
            fit_tensor(in, &t[2], index_dtype, leading, b, h.windows, w.windows, 0);
        else
            fit_tensor(in, &t[2], 2, leading, b, positions, row, 1);
        break;
    case IM2COL:
        fit_tensor(in, &t[forward], dtype, leading - 1, b, batch[1] * positions, h.windows * w.windows, 0);
        fit_tensor(in, &t[!forward], once ? dtype : dtypes[form >> 2 & 3], leading, b, h.size, w.size, 0);
        break;
    default:
        fit_tensor(in, &t[forward], dtype, leading, b, h.windows, w.windows, 0);
        fit_tensor(in, &t[!forward], dtype, leading, b, h.size, w.size, 0);
        if (forward)
            break;
        if (op == MAX_BACKWARD)
            fit_tensor(in, &t[2], 2, leading, b, positions, row, 1);
        if (op == MAX_INDICES_BACKWARD)
            fit_tensor(in, &t[2], index_dtype, leading, b, h.windows, w.windows, form >> 5 & 1);
        fit_tensor(in, &t[op == MAX_BACKWARD || indexed ? 3 : 2], dtype, leading, b, h.size, w.size, 0);
    }
    if (op == MAX_BACKWARD && context->mask_layout && positions > 1)
        fit_indices(in, &t[2], 4, (leading == 2 ? batch[0] : 1) * batch[1], h, w);
    if (op == MAX_INDICES_BACKWARD && form >> 5 & 1)
        fit_indices(in, &t[2], index_dtype == 9 ? 8 : 4, (leading == 2 ? batch[0] : 1) * batch[1], h, w);
}

/* A refusal leaves a message; the message of what went well is nobody's business. */
static int said(int status)
{
    if (status != 0 && !*aclnn_bw_recent_message())
        abort();
    return status;
}

/* What follows phase 1: an executor that is re-pointed, queued, retracted, run once or often, in any order. */
static void live(Input *in, Executor *executor, const Context *context, Tensor *tensors)
{
    int64_t need = executor->workspace_size;
    char *room = NULL;
    Run run[2];
    int queued[2] = {0, 0};
    if (executor->bytes > MOST_WORK || need > 1 << 24)
        return;
    room = malloc((size_t)need);
    for (int steps = 1 + byte(in) % 8; steps > 0; steps--) {
        int step = byte(in), k = step >> 4 & 1, op = step & 32 ? executor->op : (step >> 6) % ACLNN_BW_OPERATORS;
        char *workspace = need && step & 64 ? room : NULL;
        int64_t size = step & 128 ? need : number(in);
        if (size > need)
            size = need; /* no face lets one through that the buffer has not */
        switch (step % 6) {
        case 0:
            said(aclnn_bw_make_repeatable(executor));
            break;
        case 1: { /* a tensor keeps its view; its memory is another one's, or gone */
            int index = byte(in) % (TENSORS + 2) - 1, from = byte(in) % TENSORS, flags = byte(in) & 3;
            Tensor other = executor->tensor[index >= 0 && index < executor->tensors ? index : 0];
            if (!executor->repeatable)
                break; /* refused by every face */
            other.data = tensors[from].data;
            other.storage = 0;
            if (other.data)
                other.storage = tensors[from].storage * item_size(tensors[from].dtype) / item_size(other.dtype);
            other.flags = flags;
            said(aclnn_bw_rebind(executor, context, index, &other));
            break;
        }
        case 2:
            if (!queued[k])
                queued[k] = !said(aclnn_bw_accept(executor, op, workspace, size, step >> 7, &run[k]));
            break;
        case 3:
            if (queued[k])
                aclnn_bw_retract(&run[k]);
            queued[k] = 0;
            break;
        case 4:
            if (queued[k]) {
                for (int64_t i = 0; i < executor->ranges; i++)
                    aclnn_bw_run_range(&run[k], i);
                said(aclnn_bw_finish(&run[k]));
            }
            queued[k] = 0;
            break;
        default:
            said(aclnn_bw_execute(executor, op, workspace, size));
        }
    }
    if (!executor->spent)
        said(aclnn_bw_execute(executor, executor->op, need ? room : NULL, need));
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static aclnn_bw_kernel_table table;
    static int loaded;
    Input in = {data, data + size};
    Tensor t[TENSORS];
    IntArray a[ARRAYS];
    aclnn_bw_arguments call = {0};
    int64_t *n = call.numbers;
    Executor *executor = NULL;
    int status = 0;
    int op = byte(&in) % ACLNN_BW_OPERATORS, how = byte(&in), fits = how >> 7;
    int64_t *room = how & 64 ? malloc(ROOM) : NULL; /* where a one-call function's executor lies, if it fits */
    Context context = {.kernels = &table, .product = how & 3, .mask_layout = how >> 2 & 1, .face = how >> 3 & 1,
                       .threads = 1 + (how >> 4 & 3), .cores = 2, .room = room, .room_size = room ? ROOM : 0};
    if (!loaded)
        aclnn_bw_load_kernels(aclnn_bw_best_isa(), &table);
    loaded = 1;
    call.op = op;
    memset(t, 0, sizeof t);
    memset(a, 0, sizeof a);
    for (int i = 0; i < ARRAYS; i++) {
        call.arrays[i] = fits || byte(&in) % 16 ? &a[i] : NULL;
        if (!fits)
            read_array(&in, &a[i]);
    }
    for (int i = 0; i < 4 && !fits; i++)
        n[i] = number(&in);
    switch (byte(&in) % 4) {
    case 0: break;
    case 1: call.real = (double)number(&in) / 16; break;
    case 2: call.real = 1.0 / ((double)number(&in) + 1); break;
    default: {
        uint64_t bits = 0;
        for (int i = 0; i < 8; i++)
            bits = bits << 8 | (uint64_t)byte(&in);
        memcpy(&call.real, &bits, sizeof call.real);
    }
    }
    for (int i = 0; i < TENSORS; i++) {
        call.tensors[i] = fits || byte(&in) % 16 ? &t[i] : NULL;
        if (!fits)
            read_tensor(&in, &t[i], i ? &t[0] : NULL);
    }
    if (fits) {
        int missing = byte(&in) - 240;
        fit(&in, op, &context, t, a, n);
        if (missing >= 0 && missing < ARRAYS)
            call.arrays[missing] = NULL;
        else if (missing >= 8 && missing < 8 + TENSORS)
            call.tensors[missing - 8] = NULL;
    }
    status = aclnn_bw_operator_of(op)->plan(&context, &call, &executor);
    if ((said(status) == 0) != (executor != NULL))
        abort(); /* a refusal makes no executor */
    if (executor) {
        live(&in, executor, &context, t);
        aclnn_bw_delete_executor(executor);
    }
    free(room);
    for (int i = 0; i < TENSORS; i++)
        free(t[i].data);
    return 0;
}
