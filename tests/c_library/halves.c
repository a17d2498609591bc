/* Writes the float32 of every float16; then the float16 of each float32 that it reads. */
#include <stdio.h>

#include "acl/acl.h"

int main(void)
{
    float value;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        value = aclFloat16ToFloat((aclFloat16)bits);
        fwrite(&value, sizeof value, 1, stdout);
    }
    while (fread(&value, sizeof value, 1, stdin) == 1) {
        const aclFloat16 half = aclFloatToFloat16(value);
        fwrite(&half, sizeof half, 1, stdout);
    }
    return 0;
}
