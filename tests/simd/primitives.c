/* Every primitive of simd.h as a function of its own, for each width of vector: NAME_vector, NAME_half, NAME_16 or
 * NAME_32. The functions read and write what the primitives do, no more: `to` is what comes out, a and b what goes in.
 *
 * The program reads calls from its standard input, a struct call and the bytes of a and b each, makes them in memory
 * between pages that must not be touched, and writes the whole page of `to`. It prints the bytes of a vector first. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "simd.h"

#define OF_WIDTH(name, suffix, type, ...)                  \
    static void name##_##suffix(void *to, const void *a, const void *b) \
    {                                                      \
        type x, y, z;                                      \
        __VA_ARGS__                                        \
        (void)a, (void)b, (void)y, (void)z;                \
    }
#define OF_EACH(name, ...)                                  \
    OF_WIDTH(name, vector, simd_vector, __VA_ARGS__)        \
    OF_WIDTH(name, half, simd_vector_half, __VA_ARGS__)     \
    OF_WIDTH(name, 16, simd_vector_16, __VA_ARGS__)
#define OF_BLOCKS(name, ...)                                \
    OF_WIDTH(name, 32, simd_vector_32, __VA_ARGS__)         \
    OF_WIDTH(name, 16, simd_vector_16, __VA_ARGS__)

OF_EACH(copy, simd_load(&x, a); simd_store(to, &x);)
OF_EACH(stream, simd_load(&x, a); simd_stream(to, &x); simd_fence();)
OF_EACH(add_f32, simd_load(&x, a); simd_load(&y, b); simd_add_f32(&z, &x, &y); simd_store(to, &z);)
OF_EACH(add_f64, simd_load(&x, a); simd_load(&y, b); simd_add_f64(&z, &x, &y); simd_store(to, &z);)
OF_EACH(plus_zero_f32, simd_load(&x, a); simd_plus_zero_f32(&x); simd_store(to, &x);)
OF_EACH(plus_zero_f64, simd_load(&x, a); simd_plus_zero_f64(&x); simd_store(to, &x);)
OF_EACH(plus_zero_bits, simd_load(&x, a); simd_plus_zero_bits(&x); simd_store(to, &x);)
OF_EACH(load_half, simd_load_half(&x, a); simd_store(to, &x);)
OF_EACH(load_bfloat, simd_load_bfloat(&x, a); simd_store(to, &x);)
OF_BLOCKS(load_two, simd_load_two(&x, a, b); simd_store(to, &x);)
OF_BLOCKS(zip_low_2, simd_load(&x, a); simd_load(&y, b); simd_zip_low_2(&z, &x, &y); simd_store(to, &z);)
OF_BLOCKS(zip_high_2, simd_load(&x, a); simd_load(&y, b); simd_zip_high_2(&z, &x, &y); simd_store(to, &z);)
OF_BLOCKS(zip_low_4, simd_load(&x, a); simd_load(&y, b); simd_zip_low_4(&z, &x, &y); simd_store(to, &z);)
OF_BLOCKS(zip_high_4, simd_load(&x, a); simd_load(&y, b); simd_zip_high_4(&z, &x, &y); simd_store(to, &z);)
OF_BLOCKS(zip_low_8, simd_load(&x, a); simd_load(&y, b); simd_zip_low_8(&z, &x, &y); simd_store(to, &z);)
OF_BLOCKS(zip_high_8, simd_load(&x, a); simd_load(&y, b); simd_zip_high_8(&z, &x, &y); simd_store(to, &z);)

#define STORE_THREE simd_store(to, &x); simd_store((char *)to + 16, &y); simd_store((char *)to + 32, &z);
OF_WIDTH(unzip_three_2, 16, simd_vector_16, simd_unzip_three_2(&x, &y, &z, a); STORE_THREE)
OF_WIDTH(unzip_three_4, 16, simd_vector_16, simd_unzip_three_4(&x, &y, &z, a); STORE_THREE)

#define NAMED(name) {#name, name},
#define OF_EACH_NAMED(name) NAMED(name##_vector) NAMED(name##_half) NAMED(name##_16)
#define OF_BLOCKS_NAMED(name) NAMED(name##_32) NAMED(name##_16)
static const struct {
    const char *name;
    void (*function)(void *, const void *, const void *);
} functions[] = {
    OF_EACH_NAMED(copy)
    OF_EACH_NAMED(stream)
    OF_EACH_NAMED(add_f32)
    OF_EACH_NAMED(add_f64)
    OF_EACH_NAMED(plus_zero_f32)
    OF_EACH_NAMED(plus_zero_f64)
    OF_EACH_NAMED(plus_zero_bits)
    OF_EACH_NAMED(load_half)
    OF_EACH_NAMED(load_bfloat)
    OF_BLOCKS_NAMED(load_two)
    OF_BLOCKS_NAMED(zip_low_2)
    OF_BLOCKS_NAMED(zip_high_2)
    OF_BLOCKS_NAMED(zip_low_4)
    OF_BLOCKS_NAMED(zip_high_4)
    OF_BLOCKS_NAMED(zip_low_8)
    OF_BLOCKS_NAMED(zip_high_8)
    NAMED(unzip_three_2_16)
    NAMED(unzip_three_4_16)
};

struct call {
    char name[32];
    int32_t bytes[3], place[3]; /* of to, a and b; places from the begin of a page */
};

enum { PAGE = 4096, FENCE = 65536 }; /* a multiple of any page size */

static unsigned char *fenced(void)
{
    unsigned char *at = mmap(NULL, 3 * FENCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + FENCE, FENCE, PROT_READ | PROT_WRITE))
        exit(2);
    return at + FENCE;
}

int main(void)
{
    unsigned char *memory[3] = {fenced(), fenced(), fenced()};
    const int32_t width = SIMD_BYTES;
    struct call call;
    fwrite(&width, sizeof width, 1, stdout);
    while (fread(&call, sizeof call, 1, stdin) == 1) {
        unsigned char *at[3];
        size_t i = 0;
        for (int k = 0; k < 3; k++) {
            /* Behind the first page lie others: what is to end at a fence lies in the last one. */
            at[k] = memory[k] + call.place[k] + (call.place[k] + call.bytes[k] == PAGE ? FENCE - PAGE : 0);
            if (k > 0 && call.bytes[k] > 0 && fread(at[k], (size_t)call.bytes[k], 1, stdin) != 1)
                return 3;
        }
        memset(memory[0], 0x5a, FENCE);
        while (i < sizeof functions / sizeof *functions && strcmp(functions[i].name, call.name))
            i++;
        if (i == sizeof functions / sizeof *functions)
            return 4;
        functions[i].function(at[0], at[1], at[2]);
        fwrite(at[0] - call.place[0], PAGE, 1, stdout);
        fflush(stdout); /* so that a call that ends the program can be told */
    }
    return 0;
}
