/* Which product a name stands for: for both faces, so that they take the same ones. */
#ifndef ACLNN_BW_PRODUCTS_H
#define ACLNN_BW_PRODUCTS_H

#include <stddef.h>

/* A product's own name or that of a chip of its series, in any case: Ascend910B3 is an Ascend910B. The product as the
 * core numbers it, or -1. Ascend910_93 is a series of its own, which is not here. */
static inline int aclnn_bw_product_of(const char *name)
{
    static const struct {
        const char *beginning;
        int product, numbered; /* a number may follow, and what is behind it */
    } known[] = {
        {"ascend910", 0, 0},  {"ascend910a", 0, 0}, {"ascend910proa", 0, 0}, {"ascend910prob", 0, 0},
        {"ascend910premiuma", 0, 0}, {"ascend310p", 1, 1}, {"ascend910b", 2, 1}, {"host", 3, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *wanted = known[i].beginning, *c = name;
        while (*wanted && (*c | (*c >= 'A' && *c <= 'Z' ? 32 : 0)) == *wanted)
            wanted++, c++;
        if (*wanted)
            continue;
        if (known[i].numbered && *c >= '0' && *c <= '9')
            while ((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') || *c == '-')
                c++;
        if (!*c)
            return known[i].product;
    }
    return -1;
}

#endif
