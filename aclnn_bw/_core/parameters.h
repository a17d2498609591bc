/* What is made of a record's parameters: WALK_1(parameters) is ONE(kind, argument, flags) of each, whatever ONE is then,
 * and WALK_2(parameters) is TWO of each. */
#ifndef ACLNN_BW_PARAMETERS_H
#define ACLNN_BW_PARAMETERS_H

/* (a, b, c) (d, e, f) ...: each macro leaves the other one before the next triple. */
#define WALK_1(parameters) WALK_END(ONE_A parameters)
#define ONE_A(...) ONE(__VA_ARGS__) ONE_B
#define ONE_B(...) ONE(__VA_ARGS__) ONE_A
#define ONE_A_END
#define ONE_B_END
#define WALK_2(parameters) WALK_END(TWO_A parameters)
#define TWO_A(...) TWO(__VA_ARGS__) TWO_B
#define TWO_B(...) TWO(__VA_ARGS__) TWO_A
#define TWO_A_END
#define TWO_B_END
#define WALK_END(...) WALK_END_(__VA_ARGS__)
#define WALK_END_(...) __VA_ARGS__##_END

/* Of every kind: its type in the C call, and where the core has it. */
#define TYPE_READ const aclTensor *
#define TYPE_SHAPE const aclTensor *
#define TYPE_WRITTEN aclTensor *
#define TYPE_CONST_WRITTEN const aclTensor *
#define TYPE_INTS const aclIntArray *
#define TYPE_BOOL bool
#define TYPE_INT int64_t
#define TYPE_INT8 int8_t
#define TYPE_REAL double
#define OF_READ(tensor, array, number, real) tensor
#define OF_SHAPE(tensor, array, number, real) tensor
#define OF_WRITTEN(tensor, array, number, real) tensor
#define OF_CONST_WRITTEN(tensor, array, number, real) tensor
#define OF_INTS(tensor, array, number, real) array
#define OF_BOOL(tensor, array, number, real) number
#define OF_INT(tensor, array, number, real) number
#define OF_INT8(tensor, array, number, real) number
#define OF_REAL(tensor, array, number, real) real
#define OF_LAYOUT(tensor, array, number, real) /* a setting */

#endif
