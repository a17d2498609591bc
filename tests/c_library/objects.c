/* Scalars, arrays, lists, float16, and the dtypes that no operator takes. */
#include <math.h>

#include "common.h"

#ifdef __SANITIZE_ADDRESS__
enum { CHECKED = 1 }; /* no allocation that must fail: the checker would end the program */
#else
enum { CHECKED = 0 };
#endif

/* Null, and a message with this piece. */
#define NOTHING(piece, call) SAYS((call) == NULL ? 1 : 2, 1, piece)

static const struct {
    aclDataType type;
    size_t size;
} DTYPES[] = {
    {ACL_DT_UNDEFINED, 0}, {ACL_FLOAT, 4}, {ACL_FLOAT16, 2}, {ACL_INT8, 1}, {ACL_INT32, 4}, {ACL_UINT8, 1},
    {(aclDataType)5, 0}, {ACL_INT16, 2}, {ACL_UINT16, 2}, {ACL_UINT32, 4}, {ACL_INT64, 8}, {ACL_UINT64, 8},
    {ACL_DOUBLE, 8}, {ACL_BOOL, 1}, {ACL_STRING, 0}, {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16}, {ACL_BF16, 2},
    {(aclDataType)28, 0}, {ACL_INT4, 0}, {ACL_UINT1, 0}, {ACL_COMPLEX32, 4}, {ACL_HIFLOAT8, 1},
    {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1}, {(aclDataType)38, 0}, {ACL_FLOAT4_E2M1, 0},
    {(aclDataType)41, 0}, {(aclDataType)1000, 0},
};
enum { KINDS = sizeof DTYPES / sizeof *DTYPES };

static void scalars(void)
{
    char value[16] = "0123456789abcde";
    for (int i = 0; i < KINDS; i++) {
        /* Not a byte more is read than the dtype has, which a checker of memory sees. */
        const size_t size = aclDataTypeSize(DTYPES[i].type);
        char *exact = malloc(size + 1);
        aclScalar *scalar;
        TRUE(size == DTYPES[i].size);
        memcpy(exact + 1, value, size);
        scalar = aclCreateScalar(exact + 1, DTYPES[i].type);
        SAYS(scalar == NULL, size == 0, "dataType = ");
        free(exact); /* it has been copied */
        IS(aclDestroyScalar(scalar), 0);
    }
    NOTHING("value = nullptr", aclCreateScalar(NULL, ACL_FLOAT));
    NOTHING("dataType = -1", aclCreateScalar(value, ACL_DT_UNDEFINED));
    NOTHING("dataType = ACL_STRING: must be a dtype with a size in bytes", aclCreateScalar(value, ACL_STRING));
    IS(aclDestroyScalar(NULL), 0);
}

static void arrays(void)
{
    const bool flags[3] = {true, false, true};
    const float values[2] = {1, 2};
    uint64_t size = 77;
    aclBoolArray *bools = aclCreateBoolArray(flags, 3), *no_bools = aclCreateBoolArray(NULL, 0);
    aclFloatArray *floats = aclCreateFloatArray(values, 2), *no_floats = aclCreateFloatArray(values, 0);
    TRUE(bools && no_bools && floats && no_floats);
    IS(aclGetBoolArraySize(bools, &size), 0);
    TRUE(size == 3);
    IS(aclGetBoolArraySize(no_bools, &size), 0);
    TRUE(size == 0);
    IS(aclGetFloatArraySize(floats, &size), 0);
    TRUE(size == 2);
    IS(aclGetFloatArraySize(no_floats, &size), 0);
    TRUE(size == 0);
    size = 77;
    SAYS(aclGetBoolArraySize(NULL, &size), 161001, "array = nullptr");
    SAYS(aclGetBoolArraySize(bools, NULL), 161001, "size = nullptr");
    SAYS(aclGetFloatArraySize(NULL, &size), 161001, "array = nullptr");
    SAYS(aclGetFloatArraySize(floats, NULL), 161001, "size = nullptr");
    TRUE(size == 77);
    NOTHING("value = nullptr: must not be null, or size must be 0", aclCreateBoolArray(NULL, 1));
    NOTHING("value = nullptr: must not be null, or size must be 0", aclCreateFloatArray(NULL, 1));
    NOTHING("size = 18446744073709551615", aclCreateBoolArray(flags, UINT64_MAX));
    NOTHING("size = 18446744073709551615", aclCreateFloatArray(values, UINT64_MAX));
    NOTHING("size = 4611686018427387904", aclCreateFloatArray(values, UINT64_C(1) << 62)); /* 4 times it is 0 */
    if (!CHECKED)
        NOTHING("no memory for as many", aclCreateFloatArray(values, UINT64_C(1) << 60));
    IS(aclDestroyBoolArray(bools), 0);
    IS(aclDestroyBoolArray(no_bools), 0);
    IS(aclDestroyBoolArray(NULL), 0);
    IS(aclDestroyFloatArray(floats), 0);
    IS(aclDestroyFloatArray(no_floats), 0);
    IS(aclDestroyFloatArray(NULL), 0);
}

/* A list destroys what is in it, which a checker of memory sees. */
static void lists(void)
{
    const int64_t dims[2] = {2, 3};
    float number = 4;
    uint64_t size = 77;
    aclTensor *tensors[3] = {NULL};
    aclScalar *scalars[2] = {NULL};
    aclTensorList *tensor_list, *no_tensors = aclCreateTensorList(NULL, 0);
    aclScalarList *scalar_list, *no_scalars = aclCreateScalarList(NULL, 0);
    for (int i = 0; i < 2; i++) {
        tensors[i] = aclCreateTensor(dims, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, 2, NULL);
        scalars[i] = aclCreateScalar(&number, ACL_FLOAT);
    }
    NOTHING("value[2] = nullptr: must not be null", aclCreateTensorList((const aclTensor *const *)tensors, 3));
    tensor_list = aclCreateTensorList((const aclTensor *const *)tensors, 2);
    scalar_list = aclCreateScalarList((const aclScalar *const *)scalars, 2);
    TRUE(tensor_list && no_tensors && scalar_list && no_scalars);
    tensors[0] = NULL; /* the list has its own copy of the pointers */
    scalars[1] = NULL;
    IS(aclGetTensorListSize(tensor_list, &size), 0);
    TRUE(size == 2);
    IS(aclGetTensorListSize(no_tensors, &size), 0);
    TRUE(size == 0);
    IS(aclGetScalarListSize(scalar_list, &size), 0);
    TRUE(size == 2);
    IS(aclGetScalarListSize(no_scalars, &size), 0);
    TRUE(size == 0);
    size = 77;
    SAYS(aclGetTensorListSize(NULL, &size), 161001, "tensorList = nullptr");
    SAYS(aclGetTensorListSize(tensor_list, NULL), 161001, "size = nullptr");
    SAYS(aclGetScalarListSize(NULL, &size), 161001, "scalarList = nullptr");
    SAYS(aclGetScalarListSize(scalar_list, NULL), 161001, "size = nullptr");
    TRUE(size == 77);
    NOTHING("value[1] = nullptr: must not be null", aclCreateScalarList((const aclScalar *const *)scalars, 2));
    NOTHING("value = nullptr", aclCreateTensorList(NULL, 1));
    NOTHING("value = nullptr", aclCreateScalarList(NULL, UINT64_MAX));
    IS(aclDestroyTensorList(tensor_list), 0);
    IS(aclDestroyTensorList(no_tensors), 0);
    IS(aclDestroyTensorList(NULL), 0);
    IS(aclDestroyScalarList(scalar_list), 0);
    IS(aclDestroyScalarList(no_scalars), 0);
    IS(aclDestroyScalarList(NULL), 0);
}

/* Every operator that refuses them does so in phase 1, by name; what has no size is refused at once. */
static void dtypes(void)
{
    static const char *const named[] = {"ACL_COMPLEX32", "ACL_HIFLOAT8", "ACL_FLOAT8_E5M2", "ACL_FLOAT8_E4M3FN",
                                        "ACL_FLOAT8_E8M0"};
    static const aclDataType taken[] = {ACL_COMPLEX32, ACL_HIFLOAT8, ACL_FLOAT8_E5M2, ACL_FLOAT8_E4M3FN,
                                        ACL_FLOAT8_E8M0};
    static const int64_t out[4] = {1, 1, 2, 2}, in[4] = {1, 1, 4, 4}, huge[2] = {INT64_MAX / 4, 2};
    static float given[OUTPUTS], made[INPUTS];
    static char odd[64];
    pool p = new_pool(given, made);
    uint64_t size = 77;
    aclOpExecutor *executor = NULL;
    for (int i = 0; i < 5; i++) {
        char piece[80];
        aclTensor *gradOutput = p.gradOutput, *gradInput = p.gradInput;
        aclDataType type = ACL_FLOAT;
        snprintf(piece, sizeof piece, ".dtype = %s: must", named[i]);
        p.gradOutput = aclCreateTensor(out, 4, taken[i], NULL, 0, ACL_FORMAT_NCHW, out, 4, given);
        IS(aclGetDataType(p.gradOutput, &type), 0);
        TRUE(type == taken[i]);
        SAYS(plan(&p, &size, &executor), 161002, piece);
        p.gradInput = aclCreateTensor(in, 4, taken[i], NULL, 0, ACL_FORMAT_NCHW, in, 4, odd + 1);
        SAYS(plan(&p, &size, &executor), 161002, piece);
        IS(aclDestroyTensor(p.gradOutput), 0);
        p.gradOutput = gradOutput;
        SAYS(plan(&p, &size, &executor), 161002, named[i]);
        IS(aclDestroyTensor(p.gradInput), 0);
        p.gradInput = gradInput;
    }
    TRUE(size == 77 && executor == NULL);
    NOTHING("dataType = ACL_STRING: must be a dtype with a size in bytes",
            aclCreateTensor(out, 4, ACL_STRING, NULL, 0, ACL_FORMAT_NCHW, out, 4, given));
    NOTHING("dataType = ACL_INT4", aclCreateTensor(out, 4, ACL_INT4, NULL, 0, ACL_FORMAT_NCHW, out, 4, given));
    NOTHING("dataType = ACL_UINT1", aclCreateTensor(out, 4, ACL_UINT1, NULL, 0, ACL_FORMAT_NCHW, out, 4, given));
    NOTHING("dataType = ACL_FLOAT4_E2M1",
            aclCreateTensor(out, 4, ACL_FLOAT4_E2M1, NULL, 0, ACL_FORMAT_NCHW, out, 4, given));
    NOTHING("storageDims", aclCreateTensor(huge, 2, ACL_COMPLEX32, NULL, 0, ACL_FORMAT_ND, huge, 2, given));
    delete_pool(&p);
}

static void halves(void)
{
    static const struct {
        float value;
        aclFloat16 half;
    } cases[] = {
        {0.0f, 0x0000}, {-0.0f, 0x8000}, {1.0f, 0x3c00}, {-2.5f, 0xc100}, {65504.0f, 0x7bff},
        {65519.99f, 0x7bff}, {65520.0f, 0x7c00}, {-65520.0f, 0xfc00}, {3e38f, 0x7c00},
        {0x1p-24f, 0x0001}, {0x1p-25f, 0x0000}, {0x1.000002p-25f, 0x0001}, {0x1.8p-24f, 0x0002}, /* ties to even */
        {0x1.4p-23f, 0x0002}, {0x1.ff8p-15f, 0x03ff}, {0x1.ffcp-15f, 0x0400}, {0x1p-14f, 0x0400},
        {1.0f + 0x1p-11f, 0x3c00}, {1.0f + 0x1.8p-10f, 0x3c02}, {1.0f + 0x1.002p-11f, 0x3c01}, {-0x1p-149f, 0x8000},
    };
    const float infinite = HUGE_VALF, none = infinite - infinite;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TRUE(aclFloatToFloat16(cases[i].value) == cases[i].half);
    TRUE(aclFloatToFloat16(infinite) == 0x7c00 && aclFloatToFloat16(-infinite) == 0xfc00);
    TRUE((aclFloatToFloat16(none) & 0x7fff) > 0x7c00);
    TRUE(aclFloat16ToFloat(0x7c00) == infinite && aclFloat16ToFloat(0xfc00) == -infinite);
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        const unsigned exponent = bits >> 10 & 31, mantissa = bits & 1023;
        const float value = aclFloat16ToFloat((aclFloat16)bits);
        const float size = ldexpf((float)(exponent ? 1024 + mantissa : mantissa), (int)(exponent ? exponent : 1) - 25);
        if (exponent == 31 && mantissa) {
            TRUE(isnan(value) && (aclFloatToFloat16(value) & 0xfc00) == (bits & 0xfc00)
                 && (aclFloatToFloat16(value) & 1023) != 0);
            continue;
        }
        if (exponent < 31)
            TRUE(value == (bits & 0x8000 ? -size : size));
        TRUE(aclFloatToFloat16(value) == bits);
    }
}

int main(void)
{
    scalars();
    arrays();
    lists();
    dtypes();
    halves();
    return wrong != 0;
}
