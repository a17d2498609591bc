/* Scalars, arrays and lists that no operator takes, the numbers of float16, and the sizes of arrays. */
#include <stdlib.h>
#include <string.h>

#include "aclnn/acl_meta.h"
#include "calls.h"
#include "half.h"
#include "internal.h"

enum { NULLPTR = 161001, INVALID = 161002, CREATE_EXECUTOR = 561101, LONGEST = 16 /* bytes of a scalar */ };

float aclFloat16ToFloat(aclFloat16 value)
{
    const aclnn_bw_half half = {value};
    return aclnn_bw_widen_half(half);
}

aclFloat16 aclFloatToFloat16(float value) { return aclnn_bw_narrow_to_half(value).bits; }

/* ---- scalars --------------------------------------------------------------------------------------------------- */

struct aclScalar {
    aclDataType type;
    char value[LONGEST];
};

aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
    const size_t size = aclDataTypeSize(dataType);
    aclScalar *scalar = NULL;
    int status = 0;
    if (!value)
        status = refuse(NULLPTR, "value = nullptr: must not be null");
    else if (!size)
        status = aclnn_bw_no_size((int)dataType);
    else if (!(scalar = calloc(1, sizeof *scalar)))
        status = refuse(CREATE_EXECUTOR, "scalar: no memory for it");
    if (scalar) {
        scalar->type = dataType;
        memcpy(scalar->value, value, size);
    }
    logged("aclCreateScalar", status);
    return scalar;
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    free((void *)scalar);
    return logged("aclDestroyScalar", 0);
}

/* ---- arrays and lists ------------------------------------------------------------------------------------------ */

/* What each of them is. */
typedef struct {
    uint64_t size;
    void *items[]; /* of lists; or values, which lie as well here */
} list;

static list *create(const char *call, const void *value, uint64_t size, size_t item)
{
    list *made = NULL;
    int status = 0;
    if (!value && size > 0)
        status = refuse(NULLPTR, "value = nullptr: must not be null, or size must be 0");
    else if (size > (INT64_MAX - sizeof *made) / item)
        status = refuse(INVALID, "size = %llu: has more bytes than a 64-bit integer counts", (unsigned long long)size);
    else if (!(made = malloc(sizeof *made + size * item)))
        status = refuse(CREATE_EXECUTOR, "size = %llu: no memory for as many", (unsigned long long)size);
    if (made) {
        made->size = size;
        if (size > 0)
            memcpy(made->items, value, size * item);
    }
    logged(call, status);
    return made;
}

/* Of objects, none of which may be null. */
static list *create_list(const char *call, const void *const *value, uint64_t size)
{
    for (uint64_t i = 0; value && i < size; i++)
        if (!value[i]) {
            logged(call, refuse(NULLPTR, "value[%llu] = nullptr: must not be null", (unsigned long long)i));
            return NULL;
        }
    return create(call, value, size, sizeof *value);
}

/* An object of either kind is one piece of memory. */
static int destroy_list(const char *call, const void *array)
{
    const list *l = array;
    for (uint64_t i = 0; l && i < l->size; i++)
        free(l->items[i]);
    free((void *)array);
    return logged(call, 0);
}

static int get_size(const char *call, const char *name, const void *array, uint64_t *size)
{
    int status = 0;
    if (!array || !size)
        status = refuse(NULLPTR, "%s = nullptr: must not be null", array ? "size" : name);
    else
        *size = ((const list *)array)->size;
    return logged(call, status);
}

aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
{
    return (aclBoolArray *)create("aclCreateBoolArray", value, size, sizeof *value);
}

aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
{
    return (aclFloatArray *)create("aclCreateFloatArray", value, size, sizeof *value);
}

aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size)
{
    return (aclScalarList *)create_list("aclCreateScalarList", (const void *const *)value, size);
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
{
    return (aclTensorList *)create_list("aclCreateTensorList", (const void *const *)value, size);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
{
    free((void *)array);
    return logged("aclDestroyBoolArray", 0);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
{
    free((void *)array);
    return logged("aclDestroyFloatArray", 0);
}

aclnnStatus aclDestroyScalarList(const aclScalarList *array) { return destroy_list("aclDestroyScalarList", array); }

aclnnStatus aclDestroyTensorList(const aclTensorList *array) { return destroy_list("aclDestroyTensorList", array); }

aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size)
{
    return get_size("aclGetBoolArraySize", "array", array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size)
{
    return get_size("aclGetFloatArraySize", "array", array, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size)
{
    return get_size("aclGetScalarListSize", "scalarList", scalarList, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size)
{
    return get_size("aclGetTensorListSize", "tensorList", tensorList, size);
}
