/* Counts what the process allocates inside a window, to show that a run of a planned operator allocates nothing.
 *
 * Preloaded into a process, it stands before the C library's allocators and forwards to them. Only calls between
 * counter_start and counter_stop count, from whichever thread they come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int open_window;
static long calls;

static void note(void)
{
    if (__atomic_load_n(&open_window, __ATOMIC_ACQUIRE))
        __atomic_add_fetch(&calls, 1, __ATOMIC_ACQ_REL);
}

void counter_start(void)
{
    __atomic_store_n(&calls, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&open_window, 1, __ATOMIC_RELEASE);
}

long counter_stop(void)
{
    __atomic_store_n(&open_window, 0, __ATOMIC_RELEASE);
    return __atomic_load_n(&calls, __ATOMIC_ACQUIRE);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    note();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    note();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size)
{
    note();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    void *fresh;
    note();
    fresh = __libc_memalign(alignment, size);
    if (fresh == NULL)
        return ENOMEM;
    *block = fresh;
    return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    note();
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}
