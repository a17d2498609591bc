/* Every status that the library gives, and what it leaves behind when it refuses. */
#include "common.h"

#include "declared.h" /* made by test_c_library.py of what tests/operators say of each operator */

#ifdef __SANITIZE_ADDRESS__
enum { CHECKED = 1 }; /* no allocation that must fail: the checker would end the program */
#else
enum { CHECKED = 0 };
#endif

static float given[OUTPUTS], made[INPUTS];

static void runtime(void)
{
    int32_t device = 7;
    uint32_t count = 7;
    aclrtStream stream = NULL, gone;
    void *memory = NULL;
    char bytes[8] = "1234567", copy[8] = "xxxxxxx";

    SAYS(aclFinalize(), 100037, "aclInit has not been called");
    IS(aclInit(NULL), 0);
    SAYS(aclInit("acl.json"), 100002, "has been called already");
    IS(aclFinalize(), 0);
    IS(aclFinalize(), 100037);
    IS(aclInit(""), 0);
    IS(aclnnInit(NULL), 0);
    IS(aclnnInit(NULL), 0);
    IS(aclnnFinalize(), 0);
    IS(aclnnFinalize(), 0);

    SAYS(aclrtGetDevice(&device), 107002, "aclrtSetDevice");
    TRUE(device == 7);
    SAYS(aclrtCreateStream(&stream), 107002, "aclrtSetDevice");
    TRUE(stream == NULL);
    IS(aclrtSynchronizeDevice(), 107002);
    IS(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), 107002);
    IS(aclrtMallocHost(&memory, 8), 107002);
    TRUE(memory == NULL);
    SAYS(aclrtSetDevice(1), 107001, "deviceId = 1");
    IS(aclrtSetDevice(-1), 107001);
    IS(aclrtGetDevice(&device), 107002);
    IS(aclrtSetDevice(0), 0);
    IS(aclrtSetDevice(0), 0);
    IS(aclrtGetDevice(&device), 0);
    TRUE(device == 0);
    SAYS(aclrtGetDevice(NULL), 100000, "deviceId = nullptr");
    SAYS(aclrtGetDeviceCount(NULL), 100000, "count = nullptr");
    IS(aclrtGetDeviceCount(&count), 0);
    TRUE(count == 1);
    IS(aclrtResetDevice(3), 107001);
    TRUE(strcmp(aclrtGetSocName(), "Ascend910B") == 0);

    SAYS(aclrtCreateStream(NULL), 100000, "stream = nullptr");
    SAYS(aclrtDestroyStream(NULL), 100000, "stream = nullptr");
    IS(aclrtCreateStream(&stream), 0);
    IS(aclrtSynchronizeStream(stream), 0);
    IS(aclrtSynchronizeStream(NULL), 0);
    IS(aclrtSynchronizeDevice(), 0);
    gone = stream;
    IS(aclrtDestroyStream(stream), 0);
    SAYS(aclrtDestroyStream(gone), 107000, "destroyed");
    IS(aclrtSynchronizeStream(gone), 107000);
    IS(aclrtSynchronizeStream(bytes), 107000);
    IS(aclrtCreateStream(&stream), 0);
    TRUE(stream != gone);
    IS(aclrtSynchronizeStream(gone), 107000);
    IS(aclrtDestroyStream(stream), 0);

    SAYS(aclrtMalloc(NULL, 8, ACL_MEM_MALLOC_HUGE_FIRST), 100000, "devPtr = nullptr");
    SAYS(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST), 100000, "size = 0");
    SAYS(aclrtMalloc(&memory, 8, (aclrtMemMallocPolicy)9), 100000, "policy = 9");
    SAYS(aclrtMallocHost(NULL, 8), 100000, "hostPtr = nullptr");
    IS(aclrtMallocHost(&memory, 0), 100000);
    if (!CHECKED) {
        SAYS(aclrtMalloc(&memory, SIZE_MAX, ACL_MEM_MALLOC_NORMAL_ONLY), 200000, "size = 18446744073709551615");
        IS(aclrtMalloc(&memory, SIZE_MAX / 2 - 4096, ACL_MEM_MALLOC_NORMAL_ONLY), 200000);
        IS(aclrtMallocHost(&memory, SIZE_MAX / 4), 200000);
    }
    TRUE(memory == NULL);
    for (int policy = 0; policy < 3; policy++) {
        IS(aclrtMalloc(&memory, 1, (aclrtMemMallocPolicy)policy), 0);
        TRUE((uintptr_t)memory % 64 == 0);
        IS(aclrtFree(memory), 0);
    }
    IS(aclrtMallocHost(&memory, 100), 0);
    TRUE((uintptr_t)memory % 64 == 0);
    IS(aclrtFreeHost(memory), 0);
    SAYS(aclrtFree(NULL), 100000, "devPtr = nullptr");
    SAYS(aclrtFreeHost(NULL), 100000, "hostPtr = nullptr");

    for (int kind = 0; kind < 5; kind++) {
        memset(copy, 'x', 7);
        IS(aclrtMemcpy(copy, 8, bytes, 7, (aclrtMemcpyKind)kind), 0);
        TRUE(strcmp(copy, bytes) == 0);
    }
    memset(copy, 'x', 7);
    SAYS(aclrtMemcpy(copy, 6, bytes, 7, ACL_MEMCPY_DEFAULT), 107000, "count = 7: must be <= destMax = 6");
    IS(aclrtMemcpyAsync(copy, 6, bytes, 7, ACL_MEMCPY_DEFAULT, NULL), 107000);
    SAYS(aclrtMemcpy(NULL, 8, bytes, 7, ACL_MEMCPY_DEFAULT), 100000, "dst = nullptr");
    SAYS(aclrtMemcpy(copy, 8, NULL, 7, ACL_MEMCPY_DEFAULT), 100000, "src = nullptr");
    SAYS(aclrtMemcpy(copy, 8, bytes, 7, (aclrtMemcpyKind)5), 100000, "kind = 5");
    SAYS(aclrtMemcpyAsync(copy, 8, bytes, 7, ACL_MEMCPY_DEFAULT, gone), 107000, "destroyed");
    TRUE(strcmp(copy, "xxxxxxx") == 0);
    IS(aclrtMemcpyAsync(copy, 8, bytes, 7, ACL_MEMCPY_HOST_TO_HOST, NULL), 0);
    TRUE(strcmp(copy, bytes) == 0);
    IS(aclrtMemcpy(copy, 0, bytes, 0, ACL_MEMCPY_HOST_TO_HOST), 0);
    IS(aclrtMemset(copy, 8, 0x141, 2), 0);
    TRUE(strcmp(copy, "AA34567") == 0);
    SAYS(aclrtMemset(copy, 2, 0, 3), 107000, "count = 3: must be <= maxCount = 2");
    SAYS(aclrtMemset(NULL, 2, 0, 1), 100000, "devPtr = nullptr");
    TRUE(strcmp(copy, "AA34567") == 0);
    IS(aclrtResetDevice(0), 0);
    IS(aclrtGetDevice(&device), 107002);
    IS(aclrtSetDevice(0), 0);
}

static void messages(void)
{
    const char *message;
    TRUE(aclGetRecentErrMsg() == NULL);
    (void)aclrtFree(NULL);
    message = aclGetRecentErrMsg();
    TRUE(message && strcmp(message, "devPtr = nullptr: must not be null") == 0);
    (void)aclrtSetDevice(0);
    (void)aclrtSetDevice(5);
    TRUE(strcmp(message, "devPtr = nullptr: must not be null") == 0); /* it stays until the next question */
    TRUE(strstr(aclGetRecentErrMsg(), "deviceId = 5") != NULL);
    TRUE(aclGetRecentErrMsg() == NULL);
}

static void objects(void)
{
    const int64_t dims[3] = {2, 3, 4}, strides[3] = {-1, 5, 40}, negative[2] = {2, -1};
    const int64_t huge[3] = {1LL << 40, 1LL << 40, 2};
    const int64_t many[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, storage[2] = {11, 20};
    aclTensor *tensor = aclCreateTensor(dims, 3, ACL_INT16, strides, 9, ACL_FORMAT_NDHWC, storage, 2, made);
    aclIntArray *array = aclCreateIntArray(many, 12), *empty = aclCreateIntArray(NULL, 0);
    int64_t *values = (int64_t *)made, offset = 77;
    uint64_t number = 77;
    aclFormat format = ACL_FORMAT_ND;
    aclDataType type = ACL_FLOAT;
    void *address = NULL;

    IS(aclGetViewShape(tensor, &values, &number), 0);
    TRUE(number == 3 && memcmp(values, dims, sizeof dims) == 0);
    free(values);
    IS(aclGetViewStrides(tensor, &values, &number), 0);
    TRUE(number == 3 && memcmp(values, strides, sizeof strides) == 0);
    free(values);
    IS(aclGetStorageShape(tensor, &values, &number), 0);
    TRUE(number == 2 && memcmp(values, storage, sizeof storage) == 0);
    free(values);
    IS(aclGetViewOffset(tensor, &offset), 0);
    IS(aclGetFormat(tensor, &format), 0);
    IS(aclGetDataType(tensor, &type), 0);
    IS(aclGetRawTensorAddr(tensor, &address), 0);
    TRUE(offset == 9 && format == ACL_FORMAT_NDHWC && type == ACL_INT16 && address == (void *)made);
    IS(aclSetRawTensorAddr(tensor, given), 0);
    IS(aclGetRawTensorAddr(tensor, &address), 0);
    TRUE(address == (void *)given);
    IS(aclSetRawTensorAddr(tensor, NULL), 0);
    IS(aclGetRawTensorAddr(tensor, &address), 0);
    TRUE(address == NULL);
    IS(aclGetIntArraySize(array, &number), 0);
    TRUE(number == 12);
    IS(aclGetIntArraySize(empty, &number), 0);
    TRUE(empty != NULL && number == 0);

    values = NULL;
    number = 77;
    SAYS(aclGetViewShape(NULL, &values, &number), 161001, "tensor = nullptr");
    SAYS(aclGetViewShape(tensor, NULL, &number), 161001, "viewDims = nullptr");
    SAYS(aclGetViewShape(tensor, &values, NULL), 161001, "viewDimsNum = nullptr");
    SAYS(aclGetViewStrides(NULL, &values, &number), 161001, "tensor = nullptr");
    SAYS(aclGetViewStrides(tensor, NULL, &number), 161001, "stridesValue = nullptr");
    SAYS(aclGetViewStrides(tensor, &values, NULL), 161001, "stridesNum = nullptr");
    SAYS(aclGetStorageShape(NULL, &values, &number), 161001, "tensor = nullptr");
    SAYS(aclGetStorageShape(tensor, NULL, &number), 161001, "storageDims = nullptr");
    SAYS(aclGetStorageShape(tensor, &values, NULL), 161001, "storageDimsNum = nullptr");
    TRUE(values == NULL && number == 77);
    SAYS(aclGetViewOffset(NULL, &offset), 161001, "tensor = nullptr");
    SAYS(aclGetViewOffset(tensor, NULL), 161001, "offset = nullptr");
    SAYS(aclGetFormat(NULL, &format), 161001, "tensor = nullptr");
    SAYS(aclGetFormat(tensor, NULL), 161001, "format = nullptr");
    SAYS(aclGetDataType(NULL, &type), 161001, "tensor = nullptr");
    SAYS(aclGetDataType(tensor, NULL), 161001, "dataType = nullptr");
    SAYS(aclGetIntArraySize(NULL, &number), 161001, "array = nullptr");
    SAYS(aclGetIntArraySize(array, NULL), 161001, "size = nullptr");
    SAYS(aclSetRawTensorAddr(NULL, given), 161001, "tensor = nullptr");
    SAYS(aclGetRawTensorAddr(NULL, &address), 161001, "tensor = nullptr");
    SAYS(aclGetRawTensorAddr(tensor, NULL), 161001, "addr = nullptr");
    IS(aclDestroyTensor(NULL), 0);
    IS(aclDestroyIntArray(NULL), 0);
    IS(aclDestroyTensor(tensor), 0);
    IS(aclDestroyIntArray(array), 0);
    IS(aclDestroyIntArray(empty), 0);

    /* What cannot be described is null, and says why. */
#define NOTHING(piece, ...) SAYS(aclCreateTensor(__VA_ARGS__) == NULL ? 1 : 2, 1, piece)
    NOTHING("viewDims", NULL, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("storageDims", dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 2, made);
    NOTHING("viewDimsNum = 12", many, 12, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, many, 12, made);
    NOTHING("viewDimsNum", many, UINT64_MAX, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, many, 12, made);
    NOTHING("viewDims = (2, -1)", negative, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("storageDims", dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, negative, 2, made);
    NOTHING("viewDims", huge, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("storageDims", dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, huge, 3, made);
    NOTHING("dataType = -1", dims, 2, ACL_DT_UNDEFINED, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("dataType = 5", dims, 2, (aclDataType)5, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("dataType = 99", dims, 2, (aclDataType)99, NULL, 0, ACL_FORMAT_ND, dims, 2, made);
    NOTHING("format = 5", dims, 2, ACL_FLOAT, NULL, 0, (aclFormat)5, dims, 2, made);
    SAYS(aclCreateIntArray(NULL, 2) == NULL ? 1 : 2, 1, "value = nullptr");
    SAYS(aclCreateIntArray(dims, UINT64_MAX) == NULL ? 1 : 2, 1, "size = 18446744073709551615");

    /* No dimensions, no storage: one element, and the view's own shape. */
    tensor = aclCreateTensor(NULL, 0, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    IS(aclGetViewShape(tensor, &values, &number), 0);
    TRUE(number == 0 && values != NULL);
    free(values);
    IS(aclDestroyTensor(tensor), 0);
    tensor = aclCreateTensor(dims, 3, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, NULL, 0, NULL);
    IS(aclGetStorageShape(tensor, &values, &number), 0);
    TRUE(number == 3 && memcmp(values, dims, sizeof dims) == 0);
    free(values);
    IS(aclGetViewStrides(tensor, &values, &number), 0);
    TRUE(number == 3 && values[0] == 12 && values[1] == 4 && values[2] == 1);
    free(values);
    IS(aclDestroyTensor(tensor), 0);
}

/* All operators: null is told for every argument, and nothing is given then. */
static void nulls(const pool *p)
{
    aclTensor *t = p->gradOutput;
    aclIntArray *a = p->kernelSize;
    aclOpExecutor *const before = (aclOpExecutor *)p, *executor = before;
    uint64_t size = 77;
#define NO(name, call) SAYS(call, 161001, name " = nullptr")
    NULLS /* NO of every pointer in turn, for each operator */
    SAYS(aclnnAvgPool2dBackwardGetWorkspaceSize(t, t, a, a, a, 0, 0, 0, 0, t, &size, &executor), 161002, "must");
    TRUE(size == 77 && executor == before);
    SAYS(aclSetAclOpExecutorRepeatable(NULL), 561103, "executor = nullptr");
    SAYS(aclDestroyAclOpExecutor(NULL), 561103, "executor = nullptr");
    SAYS(aclSetTensorAddr(NULL, 0, NULL, given), 561103, "executor = nullptr");
    SAYS(aclSetInputTensorAddr(NULL, 0, NULL, given), 561103, "executor = nullptr");
    SAYS(aclSetOutputTensorAddr(NULL, 0, NULL, given), 561103, "executor = nullptr");
}

static void executors(const pool *p)
{
    static float other_given[OUTPUTS], other_made[INPUTS];
    aclOpExecutor *executor = planned(p), *garbage;
    aclrtStream stream = NULL;
    uint64_t number;

    /* Whatever was refused leaves the executor as it was. */
    fill(given, OUTPUTS, 8);
    SAYS(aclnnIm2colBackward(NULL, 0, executor, NULL), 161002, "another operator");
    SAYS(aclnnAvgPool2dBackward(NULL, 64, executor, NULL), 161001, "workspace = nullptr");
    SAYS(aclnnAvgPool2dBackward(NULL, UINT64_MAX, executor, NULL), 161002, "workspaceSize = 18446744073709551615");
    SAYS(aclnnAvgPool2dBackward(made, sizeof made, executor, NULL), 161002, "workspace: overlaps gradInput");
    SAYS(aclnnAvgPool2dBackward(given, sizeof given, executor, NULL), 161002, "workspace: overlaps gradOutput");
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, executor), 361001, "stream");
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, given), 361001, "stream");
    SAYS(aclSetInputTensorAddr(executor, 0, NULL, other_given), 561000, "not repeatable");
    TRUE(holds(made, 0));
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
    TRUE(holds(made, 8));

    /* Spent, destroyed, or never one. */
    fill(given, OUTPUTS, 4);
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 561000, "has run");
    SAYS(aclnnIm2colBackward(NULL, 0, executor, NULL), 561000, "has run");
    IS(aclSetAclOpExecutorRepeatable(executor), 561000);
    IS(aclSetTensorAddr(executor, 0, NULL, given), 561000);
    IS(aclDestroyAclOpExecutor(executor), 561000);
    executor = planned(p);
    IS(aclDestroyAclOpExecutor(executor), 0);
    IS(aclDestroyAclOpExecutor(executor), 561000);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 561000);
    TRUE(holds(made, 8));
    number = (uint64_t)(uintptr_t)executor;
    for (int bit = 0; bit < 64; bit++) { /* every neighbour of a handle */
        memcpy(&garbage, &(uint64_t){number ^ (UINT64_C(1) << bit)}, sizeof garbage);
        IS(aclnnAvgPool2dBackward(NULL, 0, garbage, NULL), 561000);
        IS(aclDestroyAclOpExecutor(garbage), 561000);
        SAYS(aclrtSynchronizeStream(garbage), 107000, "stream");
    }
    for (int i = 0; i < 8; i++) {
        const uint64_t numbers[] = {1, 3, UINT64_MAX, UINT64_MAX - 2, 0x8000000000000000, 0xacb0000000000001, 5,
                                    (uint64_t)(uintptr_t)given};
        memcpy(&garbage, &numbers[i], sizeof garbage);
        IS(aclnnAvgPool2dBackward(NULL, 0, garbage, NULL), 561000);
        IS(aclSetAclOpExecutorRepeatable(garbage), 561000);
        IS(aclSetOutputTensorAddr(garbage, 0, NULL, made), 561000);
    }
    IS(aclrtCreateStream(&stream), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, (aclOpExecutor *)stream, stream), 561000);
    executor = planned(p);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, stream), 0);
    IS(aclrtSynchronizeStream(stream), 0);
    IS(aclrtDestroyStream(stream), 0);
    TRUE(holds(made, 4));
    executor = planned(p);
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, stream), 361001, "destroyed");
    IS(aclDestroyAclOpExecutor(executor), 0);

    /* A repeatable one, and other memory for it. */
    executor = planned(p);
    IS(aclSetAclOpExecutorRepeatable(executor), 0);
    IS(aclSetAclOpExecutorRepeatable(executor), 0);
    for (int i = 1; i < 4; i++) {
        fill(given, OUTPUTS, (float)i);
        IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
        TRUE(holds(made, (float)i));
    }
    IS(aclSetAclOpExecutorRepeatable(executor), 0);
    fill(other_given, OUTPUTS, 40);
    IS(aclSetInputTensorAddr(executor, 0, p->gradOutput, other_given), 0);
    IS(aclSetOutputTensorAddr(executor, 0, p->gradInput, other_made), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
    TRUE(holds(made, 3) && holds(other_made, 40));
    IS(aclSetTensorAddr(executor, 2, NULL, made), 0);
    IS(aclSetTensorAddr(executor, 0, NULL, given), 0);
    IS(aclSetTensorAddr(executor, 1, p->self, made), 0); /* only its shape counts: it may lie anywhere */
    IS(aclSetInputTensorAddr(executor, 1, NULL, other_made), 0);
    fill(given, OUTPUTS, 12);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
    TRUE(holds(made, 12) && holds(other_made, 40));
    SAYS(aclSetTensorAddr(executor, 3, NULL, made), 161002, "index = 3: must be in [0, 3)");
    SAYS(aclSetInputTensorAddr(executor, 2, NULL, made), 161002, "index = 2: must be in [0, 2)");
    SAYS(aclSetOutputTensorAddr(executor, 1, NULL, made), 161002, "index = 1: must be in [0, 1)");
    SAYS(aclSetTensorAddr(executor, SIZE_MAX, NULL, made), 161002, "index = 18446744073709551615");
    SAYS(aclSetTensorAddr(executor, 0, p->gradInput, given), 161002, "tensor");
    SAYS(aclSetTensorAddr(executor, 0, NULL, NULL), 561103, "addr = nullptr");
    SAYS(aclSetInputTensorAddr(executor, 0, NULL, made), 161002, "overlap");
    SAYS(aclSetOutputTensorAddr(executor, 0, NULL, given), 161002, "overlap");
    SAYS(aclSetOutputTensorAddr(executor, 0, NULL, (char *)other_made + 1), 161002, "align");
    fill(given, OUTPUTS, 20);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0); /* nothing of it has changed the executor */
    TRUE(holds(made, 20) && holds(other_made, 40));
    IS(aclDestroyAclOpExecutor(executor), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 561000);
}

/* An executor keeps what it needs: tensors and arrays may go, and change, after phase 1. */
static void lifetimes(void)
{
    static float elsewhere[OUTPUTS];
    pool p = new_pool(given, made);
    aclOpExecutor *executor = planned(&p), *unbound;
    fill(given, OUTPUTS, 16);
    fill(made, INPUTS, 0);
    IS(aclSetRawTensorAddr(p.gradOutput, elsewhere), 0);
    IS(aclSetRawTensorAddr(p.gradInput, NULL), 0);
    unbound = planned(&p);
    delete_pool(&p);
    IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
    TRUE(holds(made, 16));
    SAYS(aclnnAvgPool2dBackward(NULL, 0, unbound, NULL), 161001, "gradInput: is unbound");
    IS(aclSetAclOpExecutorRepeatable(unbound), 0);
    IS(aclSetOutputTensorAddr(unbound, 0, NULL, made), 0);
    IS(aclnnAvgPool2dBackward(NULL, 0, unbound, NULL), 0);
    TRUE(holds(made, 0));
    IS(aclDestroyAclOpExecutor(unbound), 0);
}

/* A workspace that is needed: float16 sums in float32. */
static void workspaces(void)
{
    enum { SIDE = 40, COUNT = 6 * SIDE * SIDE };
    static const int64_t shape[4] = {2, 3, SIDE, SIDE}, three[1] = {3}, one[1] = {1};
    uint16_t *from = calloc(COUNT, 2), *to = malloc(COUNT * 2);
    aclTensor *gradOutput = aclCreateTensor(shape, 4, ACL_FLOAT16, NULL, 0, ACL_FORMAT_NCHW, shape, 4, from);
    aclTensor *gradInput = aclCreateTensor(shape, 4, ACL_FLOAT16, NULL, 0, ACL_FORMAT_NCHW, shape, 4, to);
    aclIntArray *kernel = aclCreateIntArray(three, 1), *ones = aclCreateIntArray(one, 1);
    aclOpExecutor *executor = NULL;
    uint64_t size = 0;
    char *workspace;
    IS(aclnnAvgPool2dBackwardGetWorkspaceSize(gradOutput, gradInput, kernel, ones, ones, false, true, 0, 0, gradInput,
                                              &size, &executor),
       0);
    TRUE(size > 0);
    workspace = malloc(size);
    SAYS(aclnnAvgPool2dBackward(NULL, size, executor, NULL), 161001, "workspace = nullptr");
    SAYS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 161001, "workspace = nullptr");
    SAYS(aclnnAvgPool2dBackward(workspace, size - 1, executor, NULL), 161002, "workspaceSize");
    SAYS(aclnnAvgPool2dBackward(workspace, 0, executor, NULL), 161002, "workspaceSize");
    IS(aclnnAvgPool2dBackward(workspace, size, executor, NULL), 0);
    TRUE(to[0] == 0 && to[COUNT - 1] == 0);
    free(workspace);
    free(from);
    free(to);
    (void)aclDestroyTensor(gradOutput);
    (void)aclDestroyTensor(gradInput);
    (void)aclDestroyIntArray(kernel);
    (void)aclDestroyIntArray(ones);
}

/* The same call again and again, of which one in between is wrong in nothing but its addresses. */
static void again(const pool *p)
{
    static float both[INPUTS + OUTPUTS];
    pool crossed = new_pool(both + INPUTS, both), q = new_pool(both + INPUTS, both);
    aclOpExecutor *executor = NULL;
    uint64_t size = 77;
    IS(aclSetRawTensorAddr(crossed.gradOutput, both + 4), 0);
    for (int i = 1; i < 4; i++) {
        fill(given, OUTPUTS, (float)i);
        fill(both + INPUTS, OUTPUTS, (float)(10 * i));
        IS(aclnnAvgPool2dBackward(NULL, 0, planned(p), NULL), 0);
        SAYS(plan(&crossed, &size, &executor), 161002, "gradInput");
        TRUE(size == 77 && executor == NULL);
        IS(aclnnAvgPool2dBackward(NULL, 0, planned(&q), NULL), 0);
        TRUE(holds(made, (float)i) && holds(both, (float)(10 * i)));
    }
    IS(aclSetRawTensorAddr(crossed.gradOutput, (char *)both + 1), 0);
    SAYS(plan(&crossed, &size, &executor), 161002, "align");
    delete_pool(&crossed);
    delete_pool(&q);
}

static int compare(const void *a, const void *b)
{
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* No handle is given out twice, though slots are used again; and many may be left unused. */
static void many(const pool *p, int left)
{
    enum { HANDLES = 4000 };
    static uintptr_t seen[HANDLES];
    aclOpExecutor **unused = calloc((size_t)left + 1, sizeof *unused);
    for (int i = 0; i < HANDLES; i++) {
        aclOpExecutor *executor = planned(p);
        seen[i] = (uintptr_t)executor;
        if (i % 3 == 0)
            IS(aclnnAvgPool2dBackward(NULL, 0, executor, NULL), 0);
        else
            IS(aclDestroyAclOpExecutor(executor), 0);
    }
    qsort(seen, HANDLES, sizeof *seen, compare);
    for (int i = 1; i < HANDLES; i++)
        if (seen[i] == seen[i - 1]) {
            TRUE(!"two handles are the same");
            break;
        }
    for (int i = 0; i < left; i++)
        unused[i] = planned(p);
    for (int i = 0; i < left; i += left / 100 + 1)
        IS(aclnnAvgPool2dBackward(NULL, 0, unused[i], NULL), 0);
    for (int i = 0; i < left; i += left / 100 + 1)
        IS(aclnnAvgPool2dBackward(NULL, 0, unused[i], NULL), 561000);
    free(unused);
}

int main(int argc, char **argv)
{
    pool p = new_pool(given, made);
    runtime();
    messages();
    objects();
    nulls(&p);
    executors(&p);
    lifetimes();
    workspaces();
    again(&p);
    many(&p, argc > 1 ? atoi(argv[1]) : 1000);
    delete_pool(&p);
    IS(aclrtResetDevice(0), 0);
    IS(aclFinalize(), 0);
    return wrong != 0;
}
