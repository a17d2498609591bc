"""The plans of max_pool2d.pxd are made here; `indices` is NULL where there is a mask."""
from aclnn_bw._core.max_pool2d cimport MaxPool2d, MaxPool2dShapes
from aclnn_bw._core.types cimport Arguments, Context, Executor, Fact, Tensor

cdef extern int plan_gradient "aclnn_bw_plan_gradient" (
    const Context* context, const Arguments* c, const MaxPool2dShapes* shapes, const Tensor* indices,
    Executor** result) noexcept nogil
cdef extern int plan_maxima "aclnn_bw_plan_maxima" (
    const Context* context, const Arguments* c, const MaxPool2dShapes* shapes, const Tensor* indices,
    Executor** result) noexcept nogil
cdef extern Fact* add_pool "aclnn_bw_add_pool" (const MaxPool2d* pool, Fact* fact) noexcept nogil
cdef extern int plan_conversion "aclnn_bw_plan_conversion" (
    const Context* context, const Tensor* self, const Tensor* source, const Tensor* to, bint to_mask,
    const MaxPool2dShapes* shapes, Executor** result) noexcept nogil
