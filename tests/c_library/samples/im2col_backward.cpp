/* The gradient of im2col: columns of 2x2 windows, folded back to images of 3x4 with two channels. */
#include "sample.h"

#include "aclnnop/aclnn_im2col_backward.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> gradShape{1, 8, 6}, shape{1, 2, 3, 4}; /* 8 = 2 channels x 2 x 2, 6 = 2 x 3 windows */
    DeviceTensor<float> gradOutput(gradShape, counted(gradShape, 1), ACL_FLOAT, ACL_FORMAT_ND);
    DeviceTensor<float> out(shape, std::vector<float>(24), ACL_FLOAT, ACL_FORMAT_ND);
    aclIntArray *inputSize = int_array({3, 4}), *kernelSize = int_array({2, 2}), *dilation = int_array({1, 1}),
                *padding = int_array({0, 0}), *stride = int_array({1, 1});

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnIm2colBackwardGetWorkspaceSize(gradOutput.tensor, inputSize, kernelSize, dilation, padding, stride,
                                              out.tensor, &workspaceSize, &executor),
          "aclnnIm2colBackwardGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnIm2colBackward(workspace, workspaceSize, executor, stream), "aclnnIm2colBackward");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    gradOutput.destroy();
    out.destroy();
    for (const aclIntArray *array : {inputSize, kernelSize, dilation, padding, stride})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
