/* Calls both phases of any operator through the public interface: requests on stdin, answers on stdout.
 *
 * A request is a `request`, whose arguments stand in the order of the C call, and the bytes of every tensor's memory.
 * An answer is an `answer`, the message, and the bytes of every memory once more.
 */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "declared.h" /* made by test_c_library.py of what tests/operators say of each operator */

enum { TENSORS = 4, ARRAYS = 5, NUMBERS = 4, RANK = 8, AS_TOLD = -1, OWN = -1, NONE = -1 };

typedef struct {
    int64_t there, dtype, format, offset, rank, dims[RANK], has_strides, strides[RANK], storage_rank, storage[RANK];
    int64_t memory, bytes, at; /* OWN memory of `bytes` bytes, at bytes past a multiple of 64; or tensor `memory`'s */
} tensor_words;

typedef struct {
    int64_t operator, workspace_size;
    tensor_words tensors[TENSORS];
    struct {
        int64_t length, values[RANK];
    } arrays[ARRAYS];
    int64_t numbers[NUMBERS];
    double scales;
} request;

typedef struct {
    int64_t made, status_1, workspace_size, touched, status_2, length;
} answer;

typedef struct {
    aclTensor *t[TENSORS];
    aclIntArray *a[ARRAYS];
    const int64_t *n;
    double x;
    uint64_t *size;
    aclOpExecutor **executor;
} call;

#define OPERATOR(name, types, ...)                                                                                      \
    static aclnnStatus name(const call *c)                                                                             \
    {                                                                                                                  \
        return aclnn##name##GetWorkspaceSize(__VA_ARGS__, c->size, c->executor);                                       \
    }
OPERATORS
#undef OPERATOR

static const struct {
    aclnnStatus (*phase_1)(const call *);
    aclnnStatus (*phase_2)(void *, uint64_t, aclOpExecutor *, aclrtStream);
} operators[] = {
#define OPERATOR(name, types, ...) {name, aclnn##name},
    OPERATORS
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

/* Memory that ends where it is said to: what is read or written behind it shows under a checker. */
static char *room(int64_t bytes, int64_t at, char **block)
{
    if (posix_memalign((void **)block, 64, (size_t)(at + bytes) + (at + bytes == 0)))
        exit(4);
    return *block + at;
}

int main(void)
{
    static request r;
    if (aclrtSetDevice(0) != ACL_SUCCESS)
        return 5;
    while (fread(&r, sizeof r, 1, stdin) == 1) {
        char *memory[TENSORS] = {NULL}, *blocks[TENSORS] = {NULL}, *workspace_block = NULL;
        uint64_t size = UINT64_C(0x5555555555555555);
        aclOpExecutor *untouched = (aclOpExecutor *)memory, *executor = untouched;
        call c = {{NULL}, {NULL}, r.numbers, r.scales, &size, &executor};
        answer done = {1, 0, 0, 0, 0, 0};
        const char *message;
        for (int i = 0; i < TENSORS; i++) {
            const tensor_words *t = &r.tensors[i];
            if (t->memory == OWN && t->bytes != NONE) {
                memory[i] = room(t->bytes, t->at, &blocks[i]);
                get(memory[i], (size_t)t->bytes);
            } else if (t->memory != OWN) {
                memory[i] = memory[t->memory];
            }
        }
        (void)aclGetRecentErrMsg();
        for (int i = 0; i < TENSORS; i++) {
            const tensor_words *t = &r.tensors[i];
            if (t->there) {
                c.t[i] = aclCreateTensor(t->dims, (uint64_t)t->rank, (aclDataType)t->dtype,
                                         t->has_strides ? t->strides : NULL, t->offset, (aclFormat)t->format,
                                         t->storage_rank == NONE ? NULL : t->storage,
                                         t->storage_rank == NONE ? 0 : (uint64_t)t->storage_rank, memory[i]);
                done.made &= c.t[i] != NULL;
            }
        }
        for (int i = 0; i < ARRAYS; i++)
            if (r.arrays[i].length != NONE)
                c.a[i] = aclCreateIntArray(r.arrays[i].values, (uint64_t)r.arrays[i].length);
        if (done.made)
            done.status_1 = operators[r.operator].phase_1(&c);
        done.touched = executor != untouched;
        done.workspace_size = (int64_t)size;
        for (int i = 0; i < TENSORS; i++)
            (void)aclDestroyTensor(c.t[i]);
        for (int i = 0; i < ARRAYS; i++)
            (void)aclDestroyIntArray(c.a[i]);
        if (done.touched) {
            int64_t given = r.workspace_size == AS_TOLD ? (int64_t)size : r.workspace_size;
            char *workspace = given ? room(given, 1, &workspace_block) : NULL; /* at any address */
            done.status_2 = operators[r.operator].phase_2(workspace, (uint64_t)given, executor, NULL);
        }
        message = aclGetRecentErrMsg();
        done.length = message ? (int64_t)strlen(message) : 0;
        put(&done, sizeof done);
        if (message)
            put(message, (size_t)done.length);
        if (done.touched && done.status_2)
            (void)aclDestroyAclOpExecutor(executor); /* it is still there if phase 2 has refused it */
        for (int i = 0; i < TENSORS; i++)
            if (blocks[i])
                put(memory[i], (size_t)r.tensors[i].bytes);
        for (int i = 0; i < TENSORS; i++)
            free(blocks[i]);
        free(workspace_block);
    }
    return 0;
}
