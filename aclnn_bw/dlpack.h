/* The part of the DLPack exchange format that a consumer of CPU tensors needs, versions 0 and 1. */
#ifndef ACLNN_BW_DLPACK_H
#define ACLNN_BW_DLPACK_H
#include <stdint.h>

typedef struct { int32_t device_type; int32_t device_id; } aclnn_bw_dl_device;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } aclnn_bw_dl_dtype;
typedef struct {
    void *data;
    aclnn_bw_dl_device device;
    int32_t ndim;
    aclnn_bw_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL for row-major */
    uint64_t byte_offset;
} aclnn_bw_dl_tensor;
typedef struct aclnn_bw_dl_managed {
    aclnn_bw_dl_tensor tensor;
    void *context;
    void (*deleter)(struct aclnn_bw_dl_managed *);
} aclnn_bw_dl_managed;
typedef struct aclnn_bw_dl_versioned {
    struct { uint32_t major, minor; } version;
    void *context;
    void (*deleter)(struct aclnn_bw_dl_versioned *);
    uint64_t flags; /* bit 0: read-only */
    aclnn_bw_dl_tensor tensor;
} aclnn_bw_dl_versioned;
#endif
