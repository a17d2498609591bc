/* The structs of the core, plain C data; types.pxd declares them to Cython. Sizes, strides and offsets are 64-bit and
 * counted in elements unless the name says bytes. */
#ifndef ACLNN_BW_TYPES_H
#define ACLNN_BW_TYPES_H

#include <stdint.h>

enum {
    ACLNN_BW_MAX_RANK = 8,    /* CANN's own limit; every operator's rank rule refuses tensors beyond it */
    ACLNN_BW_MAX_INTS = 8,    /* values of an int array that are kept; no operator takes more than four */
    ACLNN_BW_MAX_TENSORS = 4, /* the most that any of the operators has, of each kind */
    ACLNN_BW_MAX_ARRAYS = 5,
    ACLNN_BW_MAX_NUMBERS = 4
};

typedef struct {
    int64_t dims[ACLNN_BW_MAX_RANK], strides[ACLNN_BW_MAX_RANK];
    int64_t offset;  /* of the view's first element within the storage */
    int64_t storage; /* elements in the storage */
    char *data;      /* the storage's first byte; null while unbound */
    int32_t rank, dtype, format, flags;
} aclnn_bw_tensor;

typedef struct {
    int64_t values[ACLNN_BW_MAX_INTS];
    int64_t size; /* may exceed MAX_INTS: then only the first values are kept, and the length is refused */
    int scalar;   /* written as a bare int by the caller, so messages show no index */
} aclnn_bw_int_array;

/* The storage types for which a kernel exists. */
enum { ACLNN_BW_F32, ACLNN_BW_F64, ACLNN_BW_F16, ACLNN_BW_BF16, ACLNN_BW_C64, ACLNN_BW_C128, ACLNN_BW_SLOTS };

enum {
#define KERNEL(file) ACLNN_BW_KERNEL_##file,
#include "operators.def"
    ACLNN_BW_KERNELS
};

/* Serial work on the units [begin, end) of a plan. `data` holds the first view element of each tensor, in argument
 * order; `scratch` is this range's own. Returns -1, or the place of the first value that only a kernel can see to be
 * bad (the explain function of the executor says what a place is). */
typedef int64_t (*aclnn_bw_range_fn)(const void *plan, char **data, char *scratch, int64_t begin, int64_t end);
/* Turns the smallest place that a range has returned into a refusal. */
typedef int (*aclnn_bw_explain_fn)(const void *plan, int face, char **data, int64_t place);

typedef struct {
    aclnn_bw_range_fn row[ACLNN_BW_KERNELS][ACLNN_BW_SLOTS];
    int64_t vector_bytes; /* of the longest vectors: plans choose by what these are worth */
    int64_t streamed_bytes; /* of all arrays, beyond which results go past this machine's caches (last_cache.h) */
    int64_t streamed_sums;  /* the same for scattered sums */
    int64_t clears_by_pieces; /* scattered sums (clear in _kernels/rows.pxd); else by one memset */
} aclnn_bw_kernel_table;

typedef struct {
    const aclnn_bw_kernel_table *kernels;
    int32_t product, mask_layout, face;
    int32_t threads; /* asked for by the caller */
    int32_t cores;   /* available to the process */
    int32_t fresh;   /* results are made by the call, in pages that nobody has touched */
    void *room;      /* memory that outlives the executor, aligned as malloc's: phase 1 need not allocate; or null */
    int64_t room_size;
} aclnn_bw_context;

typedef struct {
    int32_t op, face, tensors, threads, repeatable;
    int32_t spent;  /* atomic */
    uint64_t claim; /* atomic: queue << 32 | runs that are queued or running */
    int64_t units;  /* independent pieces of work */
    int64_t bytes;  /* compulsory traffic of all units */
    int64_t ranges; /* what they are split into: one per thread */
    int64_t scratch; /* bytes of workspace for each range */
    int64_t workspace_size;
    aclnn_bw_range_fn kernel;
    aclnn_bw_explain_fn explain; /* null where no value can be bad */
    void *plan;                  /* lies behind this struct, in the same memory */
    int lent;                    /* that memory is the caller's room */
    int32_t roles[ACLNN_BW_MAX_TENSORS]; /* READ, SHAPE or WRITTEN (operators.h) */
    int32_t arguments[ACLNN_BW_MAX_TENSORS];
    aclnn_bw_tensor tensor[ACLNN_BW_MAX_TENSORS]; /* last: new_executor zeroes what stands before it */
} aclnn_bw_executor;

/* One accepted run: the addresses that phase 2 works on, frozen, so that an executor may be re-pointed while runs are
 * queued. */
typedef struct {
    aclnn_bw_executor *executor;
    char *data[ACLNN_BW_MAX_TENSORS];
    char *workspace; /* aligned */
    int64_t bad;     /* atomic: the smallest place that a range has returned, or -1 */
    int64_t begun;   /* when a team began, and when the calling thread had worked off its own range: */
    int64_t left;    /* nanoseconds (contention.h); 0 without a team */
} aclnn_bw_run;

#endif
