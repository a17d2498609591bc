/* Runs both phases of every operator without Python: requests on stdin, results on stdout.
 *
 * A request is WORDS int64: operator, product, mask layout, threads and workspace size; 4 tensors of 8 (role, dtype,
 * bytes of an element, rank, 4 dims); 5 int arrays of 5 (length, 4 values); 4 integers; the bits of a double. Each kind
 * stands in the order of the C call; a rank or a length of -1 is a null pointer. The bytes of the tensors to be read
 * follow. An answer is an int64 status, then the bytes of the outputs, or for a refusal the length of the message and
 * the message.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators.h"

enum { HEADER = 5, TENSORS = 4, TENSOR_WORDS = 8, ARRAYS = 5, ARRAY_WORDS = 5, NUMBERS = 4 };
enum { WORDS = HEADER + TENSORS * TENSOR_WORDS + ARRAYS * ARRAY_WORDS + NUMBERS + 1 };
/* A tensor that gives its shape only has no data. */
enum { READ, SHAPE, WRITTEN };

typedef aclnn_bw_tensor Tensor;

int aclnn_bw_best_isa(void);
void aclnn_bw_load_kernels(int isa, aclnn_bw_kernel_table *table);
const char *aclnn_bw_recent_message(void);
void aclnn_bw_make_row_major(Tensor *);
int aclnn_bw_execute(aclnn_bw_executor *executor, int op, char *workspace, int64_t size);
void aclnn_bw_delete_executor(aclnn_bw_executor *);

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
    static aclnn_bw_kernel_table table;
    int64_t request[WORDS];
    aclnn_bw_load_kernels(aclnn_bw_best_isa(), &table);
    while (fread(request, sizeof request, 1, stdin) == 1) {
        const int64_t *w = request + HEADER;
        aclnn_bw_context context = {.kernels = &table, .product = (int32_t)request[1], .mask_layout = (int32_t)request[2],
                                    .threads = (int32_t)request[3], .cores = 2};
        aclnn_bw_arguments call = {.op = (int32_t)request[0]};
        Tensor tensors[TENSORS] = {0};
        aclnn_bw_int_array arrays[ARRAYS] = {0};
        size_t bytes[TENSORS] = {0};
        aclnn_bw_executor *executor = NULL;
        int64_t status;
        for (int i = 0; i < TENSORS; i++, w += TENSOR_WORDS) {
            if (w[3] >= 0) {
                bytes[i] = read_tensor(w, &tensors[i]);
                call.tensors[i] = &tensors[i];
            }
        }
        for (int i = 0; i < ARRAYS; i++, w += ARRAY_WORDS) {
            if (w[0] >= 0) {
                arrays[i].size = w[0];
                memcpy(arrays[i].values, w + 1, 4 * sizeof *w);
                call.arrays[i] = &arrays[i];
            }
        }
        memcpy(call.numbers, w, sizeof call.numbers);
        memcpy(&call.real, w + NUMBERS, sizeof call.real);
        status = aclnn_bw_operator_of(call.op)->plan(&context, &call, &executor);
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
