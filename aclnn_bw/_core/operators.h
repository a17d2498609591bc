/* The operators as data: what operators.def says of each, for the core, both faces, and Python's view of them. */
#ifndef ACLNN_BW_OPERATORS_H
#define ACLNN_BW_OPERATORS_H

#include "types.h"

enum { ACLNN_BW_MAX_FACTS = 6 };

enum {
#define ARGUMENT(id, two_phase, one_call) ACLNN_BW_ARG_##id,
#include "operators.def"
    ACLNN_BW_ARGUMENTS
};

static const char *const aclnn_bw_argument_names[2][ACLNN_BW_ARGUMENTS] = {{
#define ARGUMENT(id, two_phase, one_call) #two_phase,
#include "operators.def"
}, {
#define ARGUMENT(id, two_phase, one_call) #one_call,
#include "operators.def"
}};

enum {
#define OPERATOR(id, ...) ACLNN_BW_##id,
#include "operators.def"
    ACLNN_BW_OPERATORS
};

/* What a parameter is. */
enum {
    ACLNN_BW_END,     /* behind the last one */
    ACLNN_BW_READ,    /* a tensor whose values are read */
    ACLNN_BW_SHAPE,   /* a tensor that gives its shape only: in a one-call function a shape serves */
    ACLNN_BW_WRITTEN, /* a tensor that is written: the last ones, of a one-call function what it returns */
    ACLNN_BW_CONST_WRITTEN = ACLNN_BW_WRITTEN, /* the same, const in the C call */
    ACLNN_BW_INTS,    /* an aclIntArray */
    ACLNN_BW_BOOL,
    ACLNN_BW_INT,
    ACLNN_BW_INT8, /* as INT, but 8 bits wide in the C call */
    ACLNN_BW_REAL,
    ACLNN_BW_LAYOUT /* of a mask: an argument of the one-call function, a setting for the others */
};

/* What is special about it. */
enum {
    ACLNN_BW_IS_MASK = 1,         /* int8 whatever the other tensors are, in any format that is not private */
    ACLNN_BW_OWN_DTYPE = 2,       /* need not have the first tensor's dtype */
    ACLNN_BW_SCALAR = 4,          /* a one-call function takes a bare int as well */
    ACLNN_BW_NULLABLE = 8,        /* may be null */
    ACLNN_BW_EMPTY = 16,          /* None in a one-call function is an empty array */
    ACLNN_BW_OPTIONAL = 32,       /* may be None in a one-call function: absent, and 0 */
    ACLNN_BW_TWO_PHASE_ONLY = 64, /* one-call functions lack it */
    ACLNN_BW_IS_INDICES = 128,    /* int32 or int64 whatever the other tensors are, in any format that is not private */
    ACLNN_BW_HOST_INT64 = 256,    /* of them int64 on Host alone */
    ACLNN_BW_LEADS = 512,         /* its dtype is looked at first, and the others are compared with it */
    ACLNN_BW_SAMPLED = 1024,      /* the first of 3 axes, or of 3 values, counts samples; without it, of 4 axes */
    ACLNN_BW_KNOWN = 2048,        /* a length that the last axis of the first tensor tells as well */
    ACLNN_BW_COUNT_SHIFT = 12     /* above: for how many values a bare int stands */
};

typedef struct {
    uint8_t kind, argument;
    uint16_t flags;
} aclnn_bw_parameter;

/* The arguments of any operator: of each kind those that it has, in the order of its parameters. */
typedef struct {
    int32_t op;
    uint32_t absent; /* bit i: numbers[i] was None */
    const aclnn_bw_tensor *tensors[ACLNN_BW_MAX_TENSORS]; /* null where the caller's is */
    const aclnn_bw_int_array *arrays[ACLNN_BW_MAX_ARRAYS];
    int64_t numbers[ACLNN_BW_MAX_NUMBERS];
    double real;
} aclnn_bw_arguments;

/* Something that explain() tells of a plan. */
typedef struct {
    const char *name;
    int64_t values[4];
    double real;
    int32_t count, kind; /* INTS: `count` values; BOOL: the first; REAL; LAYOUT: the first, 1 for argmax */
} aclnn_bw_fact;

typedef struct {
    const char *name;     /* behind aclnn in the two-phase calls */
    const char *one_call; /* the name of the one-call function, and of what follows in the core */
    /* Checks and plans. On SUCCESS the caller owns the executor; a refusal leaves it as it was. */
    int (*plan)(const aclnn_bw_context *, const aclnn_bw_arguments *, aclnn_bw_executor **);
    /* What a one-call function makes: rank, dims, dtype and format of each tensor that is written. It is asked before
     * anything is checked: where the arguments say nothing, any shape will do, for `plan` refuses them; NO_RESULT where
     * what it needs is null. */
    int (*result)(const aclnn_bw_context *, const aclnn_bw_arguments *, aclnn_bw_tensor *results);
    int size_argument; /* what is named where a result would have more bytes than can be counted */
    /* Up to MAX_FACTS facts of an executor with work to do, the names of those that there are not null; returns the
     * algorithms as bits. */
    int64_t (*facts)(const aclnn_bw_executor *, aclnn_bw_fact *);
    uint64_t dtypes[4]; /* by product: bit n stands for aclDataType n; none: it lacks the operator */
    const aclnn_bw_parameter *parameters; /* in the order of the C call, END behind the last one */
    const aclnn_bw_parameter *tensors;    /* those of them that are tensors */
    const aclnn_bw_parameter *arrays;     /* and those that are arrays of ints */
    const char *const *algorithms;        /* "NAME: what it does", null behind the last one */
} aclnn_bw_operator;

/* The record of an operator; null for any other number. */
const aclnn_bw_operator *aclnn_bw_operator_of(int op);

#endif
