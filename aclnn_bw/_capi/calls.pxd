"""The C names, as the public headers declare them: a definition that differs does not compile."""
from libc.stdint cimport int32_t, int64_t, uint64_t

from aclnn_bw._core.types cimport Arguments

cdef extern from "acl/acl.h" nogil:
    ctypedef void* aclrtStream
    ctypedef int aclDataType
    ctypedef int aclFormat
    size_t aclDataTypeSize(aclDataType dataType) noexcept

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

cdef extern from "calls.h" nogil:
    aclnnStatus phase_1 "aclnn_bw_phase_1" (
        const char* name, const Arguments* arguments, uint64_t* workspaceSize, aclOpExecutor** executor) noexcept
    aclnnStatus phase_2 "aclnn_bw_phase_2" (
        const char* name, int op, void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
        aclrtStream stream) noexcept
    int no_size "aclnn_bw_no_size" (int dtype) noexcept
