/* The interface as it is documented, written down a second time: this compiles only where the headers agree. */
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_util.h"
#include "aclnnop/level2/aclnn_avgpool2d_backward.h"
#include "aclnnop/level2/aclnn_im2col_backward.h"
#include "aclnnop/level2/aclnn_max_pool2d_with_indices.h"
#include "aclnnop/level2/aclnn_max_pool2d_with_indices_backward.h"
#include "aclnnop/level2/aclnn_pad2d_backward.h"
#include "aclnnop/level2/aclnn_upsample_nearest_exact1d_backward.h"

#define IS(function, ...) \
    static_assert(std::is_same<decltype(function), __VA_ARGS__>::value, #function " has another type")
#define NUMBER(name, value) static_assert(static_cast<int>(name) == value, #name " is another number")

IS(aclInit, aclError(const char *));
IS(aclFinalize, aclError());
IS(aclGetRecentErrMsg, const char *());
IS(aclrtSetDevice, aclError(int32_t));
IS(aclrtResetDevice, aclError(int32_t));
IS(aclrtGetDevice, aclError(int32_t *));
IS(aclrtGetDeviceCount, aclError(uint32_t *));
IS(aclrtGetSocName, const char *());
IS(aclrtCreateStream, aclError(aclrtStream *));
IS(aclrtDestroyStream, aclError(aclrtStream));
IS(aclrtSynchronizeStream, aclError(aclrtStream));
IS(aclrtSynchronizeDevice, aclError());
IS(aclrtMalloc, aclError(void **, size_t, aclrtMemMallocPolicy));
IS(aclrtFree, aclError(void *));
IS(aclrtMallocHost, aclError(void **, size_t));
IS(aclrtFreeHost, aclError(void *));
IS(aclrtMemcpy, aclError(void *, size_t, const void *, size_t, aclrtMemcpyKind));
IS(aclrtMemcpyAsync, aclError(void *, size_t, const void *, size_t, aclrtMemcpyKind, aclrtStream));
IS(aclrtMemset, aclError(void *, size_t, int32_t, size_t));
IS(aclCreateTensor, aclTensor *(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t, aclFormat,
    const int64_t *, uint64_t, void *));
IS(aclCreateIntArray, aclIntArray *(const int64_t *, uint64_t));
IS(aclDestroyTensor, aclnnStatus(const aclTensor *));
IS(aclDestroyIntArray, aclnnStatus(const aclIntArray *));
IS(aclGetViewShape, aclnnStatus(const aclTensor *, int64_t **, uint64_t *));
IS(aclGetViewStrides, aclnnStatus(const aclTensor *, int64_t **, uint64_t *));
IS(aclGetStorageShape, aclnnStatus(const aclTensor *, int64_t **, uint64_t *));
IS(aclGetViewOffset, aclnnStatus(const aclTensor *, int64_t *));
IS(aclGetFormat, aclnnStatus(const aclTensor *, aclFormat *));
IS(aclGetDataType, aclnnStatus(const aclTensor *, aclDataType *));
IS(aclGetIntArraySize, aclnnStatus(const aclIntArray *, uint64_t *));
IS(aclSetRawTensorAddr, aclnnStatus(aclTensor *, void *));
IS(aclGetRawTensorAddr, aclnnStatus(const aclTensor *, void **));
IS(aclSetAclOpExecutorRepeatable, aclnnStatus(aclOpExecutor *));
IS(aclDestroyAclOpExecutor, aclnnStatus(aclOpExecutor *));
IS(aclSetTensorAddr, aclnnStatus(aclOpExecutor *, const size_t, aclTensor *, void *));
IS(aclSetInputTensorAddr, aclnnStatus(aclOpExecutor *, const size_t, aclTensor *, void *));
IS(aclSetOutputTensorAddr, aclnnStatus(aclOpExecutor *, const size_t, aclTensor *, void *));
IS(aclnnInit, aclnnStatus(const char *));
IS(aclnnFinalize, aclnnStatus());
IS(aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclTensor *,
    const aclTensor *, const aclIntArray *, const aclIntArray *, const aclIntArray *, const aclIntArray *, bool,
    aclTensor *, uint64_t *, aclOpExecutor **));
IS(aclnnMaxPool2dWithMaskBackward, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));
IS(aclnnMaxPool2dWithMaskGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclIntArray *, const aclIntArray *,
    const aclIntArray *, const aclIntArray *, bool, aclTensor *, aclTensor *, uint64_t *, aclOpExecutor **));
IS(aclnnMaxPool2dWithMask, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));
IS(aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclIntArray *,
    const aclIntArray *, double, aclTensor *, uint64_t *, aclOpExecutor **));
IS(aclnnUpsampleNearestExact1dBackward, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));
IS(aclnnAvgPool2dBackwardGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclTensor *, const aclIntArray *,
    const aclIntArray *, const aclIntArray *, bool, bool, int64_t, int8_t, aclTensor *, uint64_t *,
    aclOpExecutor **));
IS(aclnnAvgPool2dBackward, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));
IS(aclnnIm2colBackwardGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclIntArray *, const aclIntArray *,
    const aclIntArray *, const aclIntArray *, const aclIntArray *, aclTensor *, uint64_t *, aclOpExecutor **));
IS(aclnnIm2colBackward, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));
IS(aclnnReplicationPad2dBackwardGetWorkspaceSize, aclnnStatus(const aclTensor *, const aclTensor *,
    const aclIntArray *, aclTensor *, uint64_t *, aclOpExecutor **));
IS(aclnnReplicationPad2dBackward, aclnnStatus(void *, uint64_t, aclOpExecutor *, aclrtStream));

static_assert(std::is_same<aclError, int>::value && std::is_same<aclnnStatus, int32_t>::value, "status codes");
static_assert(std::is_same<aclrtStream, void *>::value && std::is_same<aclrtContext, void *>::value, "handles");
static_assert(std::is_enum<aclDataType>::value && std::is_enum<aclFormat>::value, "enums");
static_assert(std::is_convertible<aclDataType, int>::value && std::is_convertible<aclFormat, int>::value, "unscoped");
static_assert(sizeof(aclDataType) == 4 && sizeof(aclFormat) == 4, "as wide as an int");
static_assert(sizeof(bool) == 1, "as in C");

NUMBER(ACL_SUCCESS, 0);
NUMBER(ACL_ERROR_NONE, 0);
NUMBER(ACL_FLOAT, 0);
NUMBER(aclDataType::ACL_FLOAT, 0);
NUMBER(ACL_FLOAT16, 1);
NUMBER(aclDataType::ACL_FLOAT16, 1);
NUMBER(ACL_INT8, 2);
NUMBER(aclDataType::ACL_INT8, 2);
NUMBER(ACL_INT32, 3);
NUMBER(aclDataType::ACL_INT32, 3);
NUMBER(ACL_UINT8, 4);
NUMBER(aclDataType::ACL_UINT8, 4);
NUMBER(ACL_INT16, 6);
NUMBER(aclDataType::ACL_INT16, 6);
NUMBER(ACL_UINT16, 7);
NUMBER(aclDataType::ACL_UINT16, 7);
NUMBER(ACL_UINT32, 8);
NUMBER(aclDataType::ACL_UINT32, 8);
NUMBER(ACL_INT64, 9);
NUMBER(aclDataType::ACL_INT64, 9);
NUMBER(ACL_UINT64, 10);
NUMBER(aclDataType::ACL_UINT64, 10);
NUMBER(ACL_DOUBLE, 11);
NUMBER(aclDataType::ACL_DOUBLE, 11);
NUMBER(ACL_BOOL, 12);
NUMBER(aclDataType::ACL_BOOL, 12);
NUMBER(ACL_COMPLEX64, 16);
NUMBER(aclDataType::ACL_COMPLEX64, 16);
NUMBER(ACL_COMPLEX128, 17);
NUMBER(aclDataType::ACL_COMPLEX128, 17);
NUMBER(ACL_BF16, 27);
NUMBER(aclDataType::ACL_BF16, 27);
NUMBER(ACL_DT_UNDEFINED, -1);
NUMBER(aclDataType::ACL_DT_UNDEFINED, -1);
NUMBER(ACL_FORMAT_UNDEFINED, -1);
NUMBER(aclFormat::ACL_FORMAT_UNDEFINED, -1);
NUMBER(ACL_FORMAT_NCHW, 0);
NUMBER(aclFormat::ACL_FORMAT_NCHW, 0);
NUMBER(ACL_FORMAT_NHWC, 1);
NUMBER(aclFormat::ACL_FORMAT_NHWC, 1);
NUMBER(ACL_FORMAT_ND, 2);
NUMBER(aclFormat::ACL_FORMAT_ND, 2);
NUMBER(ACL_FORMAT_NC1HWC0, 3);
NUMBER(aclFormat::ACL_FORMAT_NC1HWC0, 3);
NUMBER(ACL_FORMAT_FRACTAL_Z, 4);
NUMBER(aclFormat::ACL_FORMAT_FRACTAL_Z, 4);
NUMBER(ACL_FORMAT_NC1HWC0_C04, 12);
NUMBER(aclFormat::ACL_FORMAT_NC1HWC0_C04, 12);
NUMBER(ACL_FORMAT_HWCN, 16);
NUMBER(aclFormat::ACL_FORMAT_HWCN, 16);
NUMBER(ACL_FORMAT_NDHWC, 27);
NUMBER(aclFormat::ACL_FORMAT_NDHWC, 27);
NUMBER(ACL_FORMAT_FRACTAL_NZ, 29);
NUMBER(aclFormat::ACL_FORMAT_FRACTAL_NZ, 29);
NUMBER(ACL_FORMAT_NCDHW, 30);
NUMBER(aclFormat::ACL_FORMAT_NCDHW, 30);
NUMBER(ACL_FORMAT_NDC1HWC0, 32);
NUMBER(aclFormat::ACL_FORMAT_NDC1HWC0, 32);
NUMBER(ACL_FRACTAL_Z_3D, 33);
NUMBER(aclFormat::ACL_FRACTAL_Z_3D, 33);
NUMBER(ACL_FORMAT_NC, 35);
NUMBER(aclFormat::ACL_FORMAT_NC, 35);
NUMBER(ACL_FORMAT_NCL, 47);
NUMBER(aclFormat::ACL_FORMAT_NCL, 47);
NUMBER(ACL_MEM_MALLOC_HUGE_FIRST, 0);
NUMBER(aclrtMemMallocPolicy::ACL_MEM_MALLOC_HUGE_FIRST, 0);
NUMBER(ACL_MEM_MALLOC_HUGE_ONLY, 1);
NUMBER(aclrtMemMallocPolicy::ACL_MEM_MALLOC_HUGE_ONLY, 1);
NUMBER(ACL_MEM_MALLOC_NORMAL_ONLY, 2);
NUMBER(aclrtMemMallocPolicy::ACL_MEM_MALLOC_NORMAL_ONLY, 2);
NUMBER(ACL_MEMCPY_HOST_TO_HOST, 0);
NUMBER(aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_HOST, 0);
NUMBER(ACL_MEMCPY_HOST_TO_DEVICE, 1);
NUMBER(aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE, 1);
NUMBER(ACL_MEMCPY_DEVICE_TO_HOST, 2);
NUMBER(aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_HOST, 2);
NUMBER(ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
NUMBER(aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
NUMBER(ACL_MEMCPY_DEFAULT, 4);
NUMBER(aclrtMemcpyKind::ACL_MEMCPY_DEFAULT, 4);
