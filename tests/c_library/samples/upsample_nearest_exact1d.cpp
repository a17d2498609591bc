/* Nearest-exact upsampling: rows of 5 become rows of 3. */
#include "sample.h"

#include "aclnnop/aclnn_upsample_nearest_exact1d.h"

int main()
{
    /* 1. The runtime, a device, and a stream on it. */
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");

    /* 2. Tensors in memory of the device, and the attributes. */
    const std::vector<int64_t> shape{1, 2, 5}, shorter{1, 2, 3};
    DeviceTensor<float> self(shape, counted(shape, 1), ACL_FLOAT, ACL_FORMAT_NCL);
    DeviceTensor<float> out(shorter, std::vector<float>(6), ACL_FLOAT, ACL_FORMAT_NCL);
    aclIntArray *outputSize = int_array({3});

    /* 3. Phase 1 checks the arguments and tells the size of the workspace. */
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnUpsampleNearestExact1dGetWorkspaceSize(self.tensor, outputSize, 0.0, out.tensor, &workspaceSize,
                                                      &executor),
          "aclnnUpsampleNearestExact1dGetWorkspaceSize");
    void *workspace = nullptr;
    if (workspaceSize > 0)
        check(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");

    /* 4. Phase 2 puts the work on the stream; it is done after the stream has been waited for. */
    check(aclnnUpsampleNearestExact1d(workspace, workspaceSize, executor, stream), "aclnnUpsampleNearestExact1d");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");

    /* 5. The result. */
    print("out", out.values());

    /* 6. Everything is given back. */
    self.destroy();
    out.destroy();
    for (const aclIntArray *array : {outputSize})
        check(aclDestroyIntArray(array), "aclDestroyIntArray");
    if (workspace)
        check(aclrtFree(workspace), "aclrtFree");
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    check(aclrtResetDevice(0), "aclrtResetDevice");
    check(aclFinalize(), "aclFinalize");
    return 0;
}
