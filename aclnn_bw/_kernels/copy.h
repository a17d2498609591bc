/* memcpy for rows, most of which are short: a call costs more than the copy of a dozen elements. Pieces of a fixed size,
 * the last one overlapping the one before, up to 256 bytes. */
#ifndef ACLNN_BW_COPY_H
#define ACLNN_BW_COPY_H
#include <stddef.h>
#include <string.h>

#define ACLNN_BW_PIECES(size)                              \
    do {                                                   \
        for (; bytes - at > (size); at += (size))          \
            memcpy(to + at, from + at, (size));            \
        memcpy(to + bytes - (size), from + bytes - (size), (size)); \
    } while (0)

static inline void aclnn_bw_copy(void *target, const void *source, size_t bytes)
{
    char *to = (char *)target;
    const char *from = (const char *)source;
    size_t at = 0;
    if (bytes > 256)
        memcpy(to, from, bytes);
    else if (bytes >= 32)
        ACLNN_BW_PIECES(32);
    else if (bytes >= 8)
        ACLNN_BW_PIECES(8);
    else
        for (; at < bytes; at++)
            to[at] = from[at];
}
#endif
