/* Runs both phases of every operator without Python: requests on stdin, results on stdout.
 *
 * A request is WORDS int64: operator, product, mask layout, threads and workspace size; 4 tensors of 8 (role, dtype,
 * bytes of an element, rank, 4 dims); 5 int arrays of 5 (length, 4 values); 4 integers; the bits of a double. Each kind
 * stands in the order of the C call; a rank or a length of -1 is a null pointer. The bytes of the tensors to be read
 * follow. An answer is an int64 status, then the bytes of the outputs, or for a refusal the length of the message and
 * the message. The structs mirror aclnn_bw/_core/types.pxd: were they to differ, the bytes would.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 5, TENSORS = 4, TENSOR_WORDS = 8, ARRAYS = 5, ARRAY_WORDS = 5, NUMBERS = 4 };
enum { WORDS = HEADER + TENSORS * TENSOR_WORDS + ARRAYS * ARRAY_WORDS + NUMBERS + 1 };
enum { READ, SHAPE, WRITTEN }; /* a tensor that gives its shape only has no data */

typedef struct {
    int64_t dims[8], strides[8];
    int64_t offset, storage;
    char *data;
    int32_t rank, dtype, format, flags;
} Tensor;
typedef struct {
    int64_t values[8], size;
    int scalar;
} IntArray;
typedef struct {
    const void *kernels;
    int32_t product, mask_layout, face, threads, cores;
    void *room;
    int64_t room_size;
} Context;

int aclnn_bw_best_isa(void);
void aclnn_bw_load_kernels(int isa, void *table);
const char *aclnn_bw_recent_message(void);
void aclnn_bw_make_row_major(Tensor *);
int aclnn_bw_execute(void *executor, int op, char *workspace, int64_t size);
void aclnn_bw_delete_executor(void *);

typedef const Tensor *T;
typedef const IntArray *A;
int aclnn_bw_max_pool2d_with_mask_backward(const Context *, T, T, T, A, A, A, A, int, T, void **);
int aclnn_bw_max_pool2d_with_mask(const Context *, T, A, A, A, A, int, T, T, void **);
int aclnn_bw_upsample_nearest_exact1d_backward(const Context *, T, A, A, double, T, void **);
int aclnn_bw_avg_pool2d_backward(const Context *, T, T, A, A, A, int, int, const int64_t *, int64_t, T, void **);
int aclnn_bw_im2col_backward(const Context *, T, A, A, A, A, A, T, void **);
int aclnn_bw_replication_pad2d_backward(const Context *, T, T, A, T, void **);

/* The arguments of any operator. */
typedef struct {
    Context context;
    T t[TENSORS];
    A a[ARRAYS];
    int64_t n[NUMBERS];
    double x;
} Call;

static int max_pool2d_with_mask_backward(const Call *c, void **executor)
{
    return aclnn_bw_max_pool2d_with_mask_backward(&c->context, c->t[0], c->t[1], c->t[2], c->a[0], c->a[1], c->a[2],
                                                  c->a[3], (int)c->n[0], c->t[3], executor);
}

static int max_pool2d_with_mask(const Call *c, void **executor)
{
    return aclnn_bw_max_pool2d_with_mask(&c->context, c->t[0], c->a[0], c->a[1], c->a[2], c->a[3], (int)c->n[0],
                                         c->t[1], c->t[2], executor);
}

static int upsample_nearest_exact1d_backward(const Call *c, void **executor)
{
    return aclnn_bw_upsample_nearest_exact1d_backward(&c->context, c->t[0], c->a[0], c->a[1], c->x, c->t[1], executor);
}

static int avg_pool2d_backward(const Call *c, void **executor)
{
    return aclnn_bw_avg_pool2d_backward(&c->context, c->t[0], c->t[1], c->a[0], c->a[1], c->a[2], (int)c->n[0],
                                        (int)c->n[1], &c->n[2], c->n[3], c->t[2], executor);
}

static int im2col_backward(const Call *c, void **executor)
{
    return aclnn_bw_im2col_backward(&c->context, c->t[0], c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->t[1],
                                    executor);
}

static int replication_pad2d_backward(const Call *c, void **executor)
{
    return aclnn_bw_replication_pad2d_backward(&c->context, c->t[0], c->t[1], c->a[0], c->t[2], executor);
}

/* In the order of `enum Operator`. */
static int (*const phase_1[])(const Call *, void **executor) = {
    max_pool2d_with_mask_backward, max_pool2d_with_mask, upsample_nearest_exact1d_backward,
    avg_pool2d_backward,           im2col_backward,      replication_pad2d_backward,
};

static void get(void *bytes, size_t size)
{
    if (fread(bytes, 1, size, stdin) != size)
        exit(2);
}

static void put(const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, stdout) != size)
        exit(3);
}

static size_t read_tensor(const int64_t *w, Tensor *t)
{
    t->dtype = (int32_t)w[1];
    t->rank = (int32_t)w[3];
    t->format = t->rank == 4 ? 0 : t->rank == 3 ? 47 : 2; /* NCHW, NCL, ND */
    t->flags = 1;                                         /* writable */
    t->storage = 1;
    for (int i = 0; i < t->rank; i++)
        t->storage *= t->dims[i] = w[4 + i];
    aclnn_bw_make_row_major(t);
    t->data = w[0] == SHAPE ? NULL : malloc((size_t)(t->storage * w[2]) + 1);
    if (w[0] == READ)
        get(t->data, (size_t)(t->storage * w[2]));
    return (size_t)(t->storage * w[2]);
}

int main(void)
{
    static void *table[64]; /* room for every kernel */
    int64_t request[WORDS];
    aclnn_bw_load_kernels(aclnn_bw_best_isa(), table);
    while (fread(request, sizeof request, 1, stdin) == 1) {
        const int64_t *w = request + HEADER;
        Call call = {.context = {table, (int32_t)request[1], (int32_t)request[2], 0, (int32_t)request[3], 2}};
        Tensor tensors[TENSORS] = {0};
        IntArray arrays[ARRAYS] = {0};
        size_t bytes[TENSORS] = {0};
        void *executor = NULL;
        int64_t status;
        for (int i = 0; i < TENSORS; i++, w += TENSOR_WORDS) {
            if (w[3] >= 0) {
                bytes[i] = read_tensor(w, &tensors[i]);
                call.t[i] = &tensors[i];
            }
        }
        for (int i = 0; i < ARRAYS; i++, w += ARRAY_WORDS) {
            if (w[0] >= 0) {
                arrays[i].size = w[0];
                memcpy(arrays[i].values, w + 1, 4 * sizeof *w);
                call.a[i] = &arrays[i];
            }
        }
        memcpy(call.n, w, sizeof call.n);
        memcpy(&call.x, w + NUMBERS, sizeof call.x);
        status = phase_1[request[0]](&call, &executor);
        if (status == 0) {
            char *workspace = request[4] > 0 ? malloc((size_t)request[4]) : NULL;
            status = aclnn_bw_execute(executor, (int)request[0], workspace, request[4]);
            free(workspace);
            aclnn_bw_delete_executor(executor);
        }
        put(&status, sizeof status);
        if (status == 0) {
            for (int i = 0; i < TENSORS; i++)
                if (request[HEADER + i * TENSOR_WORDS] == WRITTEN)
                    put(tensors[i].data, bytes[i]);
        } else {
            int64_t length = (int64_t)strlen(aclnn_bw_recent_message());
            put(&length, sizeof length);
            put(aclnn_bw_recent_message(), (size_t)length);
        }
        for (int i = 0; i < TENSORS; i++)
            free(tensors[i].data);
    }
    return 0;
}
