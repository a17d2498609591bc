/* Phase 2 of one operator, over and over, through the C library: for whoever counts the instructions that it takes.
 *
 *     ACLNN_BW_SOC=Host ACLNN_BW_NUM_THREADS=1 instructions CASE DTYPE RUNS
 *
 * Without arguments it prints the names of all cases, a line for each. The images have 16 channels of 56x56 pixels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_avgpool2d_backward.h"
#include "aclnnop/aclnn_im2col_backward.h"
#include "aclnnop/aclnn_max_pool2d_with_indices.h"
#include "aclnnop/aclnn_max_pool2d_with_indices_backward.h"
#include "aclnnop/aclnn_pad2d_backward.h"
#include "aclnnop/aclnn_upsample_nearest_exact1d_backward.h"

enum { PLANES = 16, SIDE = 56, MOST = PLANES * 9 * SIDE * SIDE, DRAWN = 1021 };
enum operator { AVG, IM2COL, UPSAMPLE, PAD, MAX_BACKWARD, MAX };

static const struct {
    const char *name;
    enum operator operator;
    int64_t kernel, stride, padding; /* of an upsampling `kernel` is the length that it came to */
} CASES[] = {
    {"AvgPool2dBackward 2x2 s2", AVG, 2, 2, 0},
    {"AvgPool2dBackward 3x3 s1 p1", AVG, 3, 1, 1},
    {"Im2colBackward 3x3 s1 p1", IM2COL, 3, 1, 1},
    {"Im2colBackward 2x2 s2", IM2COL, 2, 2, 0},
    {"UpsampleNearestExact1dBackward 56 to 112", UPSAMPLE, 112, 0, 0},
    {"UpsampleNearestExact1dBackward 56 to 100", UPSAMPLE, 100, 0, 0},
    {"ReplicationPad2dBackward by 1", PAD, 0, 0, 1},
    {"MaxPool2dWithMaskBackward 2x2 s2", MAX_BACKWARD, 2, 2, 0},
    {"MaxPool2dWithMaskBackward 3x3 s2 p1", MAX_BACKWARD, 3, 2, 1},
    {"MaxPool2dWithMask 2x2 s2", MAX, 2, 2, 0},
    {"MaxPool2dWithMask 3x3 s2 p1", MAX, 3, 2, 1},
};
static const struct {
    const char *name;
    aclDataType number;
    uint16_t high; /* the upper bits of 1 */
} DTYPES[] = {{"float32", ACL_FLOAT, 0x3f80}, {"float16", ACL_FLOAT16, 0x3c00}, {"bfloat16", ACL_BF16, 0x3f80}};

/* Zero from the start, without an instruction. */
static _Alignas(64) char in[4 * MOST], out[4 * MOST], bits[4 * MOST], scratch[4 * MOST];

typedef aclnnStatus phase_2(void *, uint64_t, aclOpExecutor *, aclrtStream);

static void check(int status, const char *what)
{
    if (status != ACL_SUCCESS) {
        const char *message = aclGetRecentErrMsg();
        fprintf(stderr, "%s: error %d: %s\n", what, status, message ? message : "");
        exit(EXIT_FAILURE);
    }
}

static aclTensor *tensor(const int64_t *shape, int rank, aclDataType dtype, void *data)
{
    aclFormat format = rank == 3 ? ACL_FORMAT_NCL : ACL_FORMAT_NCHW;
    aclTensor *made = aclCreateTensor(shape, rank, dtype, NULL, 0, format, shape, rank, data);
    check(made ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM, "aclCreateTensor");
    return made;
}

static aclIntArray *both(int64_t value)
{
    int64_t values[2] = {value, value};
    aclIntArray *made = aclCreateIntArray(values, 2);
    check(made ? ACL_SUCCESS : ACL_ERROR_INVALID_PARAM, "aclCreateIntArray");
    return made;
}

static void run(phase_2 *phase_2, uint64_t size, aclOpExecutor *executor, int runs)
{
    check(size <= sizeof scratch ? ACL_SUCCESS : ACL_ERROR_BAD_ALLOC, "workspace");
    check(aclSetAclOpExecutorRepeatable(executor), "aclSetAclOpExecutorRepeatable");
    for (int i = 0; i < runs; i++)
        check(phase_2(size ? scratch : NULL, size, executor, NULL), "phase 2");
    check(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
}

/* As numbers: positive, of different sizes. Few are drawn: making the inputs is to be short beside a run. */
static void fill(char *to, size_t bytes, aclDataType dtype, uint16_t high)
{
    uint32_t random = 1;
    for (size_t i = 0; i < DRAWN; i++) {
        random = random * 1664525 + 1013904223;
        if (dtype == ACL_FLOAT)
            ((uint32_t *)(void *)to)[i] = ((uint32_t)high << 16) - (random >> 9);
        else
            ((uint16_t *)(void *)to)[i] = (uint16_t)(high - (random >> 24));
    }
    for (size_t done = DRAWN * (dtype == ACL_FLOAT ? 4 : 2); done < bytes; done *= 2)
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

int main(int count, char **words)
{
    const int cases = sizeof CASES / sizeof CASES[0];
    int at = 0, type = 0;
    if (count == 1) {
        for (int i = 0; i < cases; i++)
            printf("%s\n", CASES[i].name);
        return 0;
    }
    while (count == 4 && at < cases && strcmp(words[1], CASES[at].name) != 0)
        at++;
    while (count == 4 && type < 3 && strcmp(words[2], DTYPES[type].name) != 0)
        type++;
    if (count != 4 || at == cases || type == 3) {
        fprintf(stderr, "usage: %s CASE DTYPE RUNS\n", words[0]);
        return EXIT_FAILURE;
    }
    check(aclInit(NULL), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");

    const aclDataType dtype = DTYPES[type].number;
    const int64_t k = CASES[at].kernel, s = CASES[at].stride, p = CASES[at].padding;
    const int64_t side = s ? (SIDE + 2 * p - k) / s + 1 : 0, windows = side * side;
    const int64_t image[4] = {1, PLANES, SIDE, SIDE}, pooled[4] = {1, PLANES, side, side};
    const int64_t columns[3] = {1, PLANES * k * k, windows}, padded[4] = {1, PLANES, SIDE + 2 * p, SIDE + 2 * p};
    const int64_t mask_shape[4] = {1, PLANES, k * k, ((windows + 15) / 16 + 1) * 32};
    const int64_t lines[3] = {PLANES, SIDE, SIDE}, longer[3] = {PLANES, SIDE, k};
    aclIntArray *kernel = both(k), *stride = both(s), *padding = both(p), *one = both(1);
    aclTensor *result = tensor(image, 4, dtype, out);
    aclOpExecutor *executor = NULL;
    uint64_t size = 0;
    phase_2 *function = NULL;
    const int runs = atoi(words[3]);

    fill(in, sizeof in, dtype, DTYPES[type].high);
    switch (CASES[at].operator) {
    case AVG:
        check(aclnnAvgPool2dBackwardGetWorkspaceSize(tensor(pooled, 4, dtype, in), result, kernel, stride, padding, false,
                                                     true, 0, 0, result, &size, &executor), "phase 1");
        function = aclnnAvgPool2dBackward;
        break;
    case IM2COL:
        check(aclnnIm2colBackwardGetWorkspaceSize(tensor(columns, 3, dtype, in), both(SIDE), kernel, one, padding, stride,
                                                  result, &size, &executor), "phase 1");
        function = aclnnIm2colBackward;
        break;
    case UPSAMPLE:
        check(aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
                  tensor(longer, 3, dtype, in), aclCreateIntArray(&longer[2], 1), aclCreateIntArray(lines, 3), 0.0,
                  tensor(lines, 3, dtype, out), &size, &executor), "phase 1");
        function = aclnnUpsampleNearestExact1dBackward;
        break;
    case PAD: {
        const int64_t sides[4] = {p, p, p, p};
        check(aclnnReplicationPad2dBackwardGetWorkspaceSize(tensor(padded, 4, dtype, in), result,
                                                            aclCreateIntArray(sides, 4), result, &size, &executor),
              "phase 1");
        function = aclnnReplicationPad2dBackward;
        break;
    }
    case MAX_BACKWARD: {
        /* The mask is that of a forward before it. */
        aclTensor *mask = tensor(mask_shape, 4, ACL_INT8, bits);
        check(aclnnMaxPool2dWithMaskGetWorkspaceSize(tensor(image, 4, dtype, in), kernel, stride, padding, one, false,
                                                     tensor(pooled, 4, dtype, out), mask, &size, &executor), "phase 1");
        run(aclnnMaxPool2dWithMask, size, executor, 1);
        check(aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(tensor(pooled, 4, dtype, in), result, mask, kernel, stride,
                                                             padding, one, false, result, &size, &executor), "phase 1");
        function = aclnnMaxPool2dWithMaskBackward;
        break;
    }
    case MAX:
        check(aclnnMaxPool2dWithMaskGetWorkspaceSize(
                  tensor(image, 4, dtype, in), kernel, stride, padding, one, false, tensor(pooled, 4, dtype, out),
                  tensor(mask_shape, 4, ACL_INT8, bits), &size, &executor), "phase 1");
        function = aclnnMaxPool2dWithMask;
        break;
    }
    run(function, size, executor, runs);
    return 0;
}
