"""The C names, as the public headers declare them: a definition that differs does not compile."""
from libc.stdbool cimport bool
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

cdef extern from "acl/acl.h" nogil:
    ctypedef void* aclrtStream
    ctypedef int aclDataType
    ctypedef int aclFormat

cdef extern from "aclnn/acl_meta.h" nogil:
    ctypedef int32_t aclnnStatus
    ctypedef struct aclTensor:
        pass
    ctypedef struct aclIntArray:
        pass
    ctypedef struct aclOpExecutor:
        pass
    aclTensor* aclCreateTensor(
        const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride, int64_t offset,
        aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) noexcept
    aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) noexcept
    aclnnStatus aclDestroyTensor(const aclTensor* tensor) noexcept
    aclnnStatus aclDestroyIntArray(const aclIntArray* array) noexcept
    aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) noexcept
    aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) noexcept
    aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) noexcept
    aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) noexcept
    aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) noexcept
    aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) noexcept
    aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) noexcept
    aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) noexcept
    aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) noexcept
    aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) noexcept
    aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) noexcept
    aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor, void* addr) noexcept
    aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor, void* addr) noexcept
    aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor, void* addr) noexcept

cdef extern from "aclnnop/aclnn_max_pool2d_with_indices_backward.h" nogil:
    aclnnStatus aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(
        const aclTensor* gradOutput, const aclTensor* self, const aclTensor* indices, const aclIntArray* kernelSize,
        const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation, bool ceilMode,
        aclTensor* gradInput, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus aclnnMaxPool2dWithMaskBackward(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept

cdef extern from "aclnnop/aclnn_max_pool2d_with_indices.h" nogil:
    aclnnStatus aclnnMaxPool2dWithMaskGetWorkspaceSize(
        const aclTensor* self, const aclIntArray* kernelSize, const aclIntArray* stride, const aclIntArray* padding,
        const aclIntArray* dilation, bool ceilMode, aclTensor* out, aclTensor* indices, uint64_t* workspaceSize,
        aclOpExecutor** executor) noexcept
    aclnnStatus aclnnMaxPool2dWithMask(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept

cdef extern from "aclnnop/aclnn_upsample_nearest_exact1d_backward.h" nogil:
    aclnnStatus aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(
        const aclTensor* gradOutput, const aclIntArray* outputSize, const aclIntArray* inputSize, double scales,
        aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus aclnnUpsampleNearestExact1dBackward(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept

cdef extern from "aclnnop/aclnn_avgpool2d_backward.h" nogil:
    aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(
        const aclTensor* gradOutput, const aclTensor* self, const aclIntArray* kernelSize, const aclIntArray* stride,
        const aclIntArray* padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType,
        aclTensor* gradInput, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus aclnnAvgPool2dBackward(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept

cdef extern from "aclnnop/aclnn_im2col_backward.h" nogil:
    aclnnStatus aclnnIm2colBackwardGetWorkspaceSize(
        const aclTensor* gradOutput, const aclIntArray* inputSize, const aclIntArray* kernelSize,
        const aclIntArray* dilation, const aclIntArray* padding, const aclIntArray* stride, aclTensor* out,
        uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus aclnnIm2colBackward(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept

cdef extern from "aclnnop/aclnn_pad2d_backward.h" nogil:
    aclnnStatus aclnnReplicationPad2dBackwardGetWorkspaceSize(
        const aclTensor* gradOutput, const aclTensor* self, const aclIntArray* padding, aclTensor* gradInput,
        uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus aclnnReplicationPad2dBackward(
        void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) noexcept
