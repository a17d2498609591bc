/* The gradient of nearest-exact interpolation from 4 values to 6, in 1 batch of 2 channels. */
#include "sample.h"

#include "aclnnop/aclnn_upsample_nearest_exact1d_backward.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> gradShape{1, 2, 6}, shape{1, 2, 4};
    DeviceTensor<float> gradOutput(gradShape, counted(gradShape, 1), ACL_FLOAT, ACL_FORMAT_NCL);
    DeviceTensor<float> out(shape, std::vector<float>(8), ACL_FLOAT, ACL_FORMAT_NCL);
    aclIntArray *outputSize = int_array({6}), *inputSize = int_array(shape);
    const double scales = 0; /* from the sizes */

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(gradOutput.tensor, outputSize, inputSize, scales,
                                                              out.tensor, &workspaceSize, &executor),
          "aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnUpsampleNearestExact1dBackward(workspace, workspaceSize, executor, stream),
          "aclnnUpsampleNearestExact1dBackward");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    gradOutput.destroy();
    out.destroy();
    for (const aclIntArray *array : {outputSize, inputSize})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
