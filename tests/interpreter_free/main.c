/* Runs both phases of AvgPool2dBackward without Python: requests on stdin, results on stdout.
 *
 * A request is 18 int64: dtype, product, threads, N, C, H, W, Ho, Wo, kernel (2), stride (2), padding (2), ceilMode,
 * countIncludePad, divisorOverride; then gradOutput's bytes. An answer is an int64 status, then gradInput's bytes, or for
 * a refusal the length of the message and the message. The structs mirror aclnn_bw/_core/types.pxd: were they to differ,
 * the bytes would.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
} Context;

int aclnn_bw_best_isa(void);
void aclnn_bw_load_kernels(int isa, void *table);
const char *aclnn_bw_recent_message(void);
void aclnn_bw_make_row_major(Tensor *);
int aclnn_bw_avg_pool2d_backward(const Context *, const Tensor *, const Tensor *, const IntArray *, const IntArray *,
                                 const IntArray *, int, int, const int64_t *, int64_t, const Tensor *, void **);
int aclnn_bw_execute(void *executor, int op, char *workspace, int64_t size);
void aclnn_bw_delete_executor(void *);

static Tensor tensor(int dtype, const int64_t *dims, char *data)
{
    Tensor t = {.rank = 4, .dtype = dtype, .format = 0, .flags = 1, .data = data, .storage = 1};
    for (int i = 0; i < 4; i++)
        t.storage *= t.dims[i] = dims[i];
    aclnn_bw_make_row_major(&t);
    return t;
}

static void put(const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, stdout) != size)
        exit(3);
}

int main(void)
{
    static void *table[64]; /* room for every kernel */
    int64_t request[18];
    aclnn_bw_load_kernels(aclnn_bw_best_isa(), table);
    while (fread(request, sizeof request, 1, stdin) == 1) {
        const int64_t *r = request;
        int64_t item = r[0] == 0 ? 4 : r[0] == 11 ? 8 : 2, status; /* ACL_FLOAT, ACL_DOUBLE, 16-bit types */
        int64_t in[4] = {r[3], r[4], r[5], r[6]}, out[4] = {r[3], r[4], r[7], r[8]};
        size_t in_bytes = (size_t)(in[0] * in[1] * in[2] * in[3] * item);
        size_t out_bytes = (size_t)(out[0] * out[1] * out[2] * out[3] * item);
        char *grad_output = malloc(out_bytes + 1), *grad_input = malloc(in_bytes + 1);
        Tensor g = tensor((int)r[0], out, grad_output), x = tensor((int)r[0], in, grad_input);
        IntArray kernel = {.values = {r[9], r[10]}, .size = 2}, stride = {.values = {r[11], r[12]}, .size = 2};
        IntArray padding = {.values = {r[13], r[14]}, .size = 2};
        Context context = {table, (int32_t)r[1], 0, 0, (int32_t)r[2], 2};
        void *executor = NULL;
        if (fread(grad_output, 1, out_bytes, stdin) != out_bytes)
            return 2;
        status = aclnn_bw_avg_pool2d_backward(&context, &g, &x, &kernel, &stride, &padding, r[15] != 0, r[16] != 0, &r[17],
                                              1, &x, &executor);
        if (status == 0) {
            /* More than any plan of these small requests asks for. */
            size_t size = 1 << 24;
            char *workspace = malloc(size);
            status = aclnn_bw_execute(executor, 0, workspace, (int64_t)size);
            free(workspace);
            aclnn_bw_delete_executor(executor);
        }
        put(&status, sizeof status);
        if (status == 0) {
            put(grad_input, in_bytes);
        } else {
            int64_t length = (int64_t)strlen(aclnn_bw_recent_message());
            put(&length, sizeof length);
            put(aclnn_bw_recent_message(), (size_t)length);
        }
        free(grad_output);
        free(grad_input);
    }
    return 0;
}
