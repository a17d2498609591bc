/* From how many bytes on results go past the caches.
 *
 * A line that is stored in the usual way is read before, one that is streamed is not, but is in no cache afterwards.
 * Calls that are made again and again gain from the size of the last cache on; scattered sums, which are cleared
 * first, from half of it where that is done by pieces whose lines are fetched. On a Zen 3 with 32 MiB: copies and
 * sums in order of 18 to 24 MiB take 0.75 to 1.25 of the time, of 32 to 65 MiB 0.5 to 1.1; scattered sums of 18 to
 * 43 MiB, cleared by pieces, 0.4 to 0.8. An AMD's memset of large memory does not read it: on a Zen 5 with 32 MiB
 * scattered sums of 16 to 31 MiB take 0.4 to 1.3 of the time of streamed ones after one memset, after pieces 0.7 to
 * 1.7. On a Xeon with 480 MiB copies and sums in order of 75 MiB take 1.04; scattered ones were not tried there. */
#ifndef ACLNN_BW_LAST_CACHE_H
#define ACLNN_BW_LAST_CACHE_H
#include <stdint.h>
#include <stdio.h>

enum { ACLNN_BW_LEAST_STREAMED = 16 << 20, ACLNN_BW_USUAL_CACHE = 48 << 20, ACLNN_BW_MOST_STREAMED = 96 << 20 };

/* Bytes of the largest cache that a core reaches, as Linux tells them, or a usual number. Of a virtual machine CPUID,
 * and so sysconf, may tell those of all sockets. */
static int64_t aclnn_bw_last_cache(void)
{
    long long most = 0;
#ifdef __linux__
    for (int index = 0; index < 8; index++) {
        char path[64];
        long long kibibytes = 0;
        FILE *file;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        file = fopen(path, "r");
        if (!file)
            break;
        if (fscanf(file, "%lldK", &kibibytes) == 1 && kibibytes > most)
            most = kibibytes;
        fclose(file);
    }
#endif
    return most ? (int64_t)most << 10 : ACLNN_BW_USUAL_CACHE;
}

/* What that means for results that gain from so many bytes on: no less and no more than was tried. */
static int64_t aclnn_bw_streamed_from(int64_t bytes)
{
    return bytes < ACLNN_BW_LEAST_STREAMED ? ACLNN_BW_LEAST_STREAMED
         : bytes > ACLNN_BW_MOST_STREAMED  ? ACLNN_BW_MOST_STREAMED : bytes;
}
#endif
