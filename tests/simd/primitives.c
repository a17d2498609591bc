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
    OF_WIDTH(name, vector, simd_vector, __VA_ARGS__)        \
    OF_WIDTH(name, 32, simd_vector_32, __VA_ARGS__)         \
    OF_WIDTH(name, 16, simd_vector_16, __VA_ARGS__)

#define STORE_TWO simd_store(to, &y); simd_store((char *)to + sizeof y, &z);

/* The lanes [begin, end) that the first two bytes of b choose. */
#define LANES(bytes) const int lanes = sizeof x / (bytes), begin = *(const unsigned char *)b % (lanes + 1); simd_lanes some;
#define WORD(bytes) \
    LANES(bytes)    \
    const int word = simd_lane_word(begin, begin + ((const unsigned char *)b)[1] % (lanes + 1 - begin));

/* The lanes from `begin` on, of a vector that begins before a, and those up to there, of one that ends behind it. */
#define ALONE(kind, size, bytes, reads_all)                                                       \
    LANES(bytes)                                                                                  \
    const char *before = (const char *)a - begin * (size), *behind = (const char *)a + (lanes - begin) * (size); \
    const int upper = simd_lane_word(begin, lanes), lower = simd_lane_word(0, begin);             \
    if (reads_all) {                                                                              \
        char block[2][sizeof x];                                                                  \
        simd_copy_lanes(block[0], before, upper, size, sizeof x);                                 \
        simd_copy_lanes(block[1], behind, lower, size, sizeof x);                                 \
        simd_load_as(&y, block[0], kind);                                                         \
        simd_load_as(&z, block[1], kind);                                                         \
    } else {                                                                                      \
        simd_find_lanes(&some, upper, size);                                                      \
        simd_load_lanes(&y, before, &some, kind);                                                 \
        simd_find_lanes(&some, lower, size);                                                      \
        simd_load_lanes(&z, behind, &some, kind);                                                 \
    }                                                                                             \
    STORE_TWO

/* The lanes whose bytes of b are odd. */
#define AT(kind, size, bytes)                                         \
    simd_lanes some;                                                  \
    char ones[sizeof x];                                              \
    for (size_t i = 0; i < sizeof x; i++)                             \
        ones[i] = ((const unsigned char *)b)[i / (size)] & 1 ? -1 : 0; \
    simd_lanes_at(&some, ones, size);                                 \
    simd_load_lanes(&x, a, &some, kind);                              \
    simd_store(to, &x);

OF_EACH(copy, simd_load(&x, a); simd_store(to, &x);)
OF_EACH(stream, simd_load(&x, a); simd_stream(to, &x); simd_fence();)
OF_EACH(add_f32, simd_load(&x, a); simd_load(&y, b); simd_add(&z, &x, &y, 4); simd_store(to, &z);)
OF_EACH(add_f64, simd_load(&x, a); simd_load(&y, b); simd_add(&z, &x, &y, 8); simd_store(to, &z);)
OF_EACH(plus_zero_f32, simd_load(&x, a); simd_plus_zero(&x, 4); simd_store(to, &x);)
OF_EACH(plus_zero_f64, simd_load(&x, a); simd_plus_zero(&x, 8); simd_store(to, &x);)
OF_EACH(plus_zero_bits, simd_load(&x, a); simd_plus_zero(&x, 2); simd_store(to, &x);)
OF_EACH(load_half, simd_load_half(&x, a); simd_store(to, &x);)
OF_EACH(load_bfloat, simd_load_bfloat(&x, a); simd_store(to, &x);)
OF_EACH(load_as_f32, simd_load_as(&x, a, SIMD_F32); simd_store(to, &x);)
OF_EACH(load_as_half, simd_load_as(&x, a, SIMD_HALF); simd_store(to, &x);)
OF_EACH(load_as_bfloat, simd_load_as(&x, a, SIMD_BFLOAT); simd_store(to, &x);)
OF_EACH(zero, simd_load(&x, a); simd_zero(&x); simd_store(to, &x);)
OF_EACH(and, simd_load(&x, a); simd_load(&y, b); simd_and(&z, &x, &y); simd_store(to, &z);)
OF_EACH(store_half, simd_load(&x, a); simd_store_half(to, &x);)
OF_EACH(store_bfloat, simd_load(&x, a); simd_tidy_nans(&x); simd_store_bfloat(to, &x);)
OF_EACH(store_as_f32, simd_load(&x, a); simd_store_as(to, &x, SIMD_F32);)
OF_EACH(store_as_half, simd_load(&x, a); simd_store_as(to, &x, SIMD_HALF);)
OF_EACH(count_4, simd_load(&x, a); simd_count(&y, &x, -5, 4); simd_store(to, &y);)
OF_EACH(count_8, simd_load(&x, a); simd_count(&y, &x, -5, 8); simd_store(to, &y);)
/* a: the greatest yet and their places; b: what is compared and its places. */
#define LOAD_FOUR                                                 \
    __typeof__(x) place;                                          \
    simd_load(&y, a); simd_load(&z, (const char *)a + sizeof x);  \
    simd_load(&x, b); simd_load(&place, (const char *)b + sizeof x);
OF_EACH(take_greater_f32, LOAD_FOUR simd_take_greater(&y, &z, &x, &place, 4); STORE_TWO)
OF_EACH(take_greater_f64, LOAD_FOUR simd_take_greater(&y, &z, &x, &place, 8); STORE_TWO)
OF_EACH(mark_equal_2, simd_load(&x, a); simd_load(&y, b); simd_mark_equal_2(&y, &x, 0x8001, 16); simd_store(to, &y);)
OF_EACH(cut_4_to_2, simd_load(&x, a); simd_cut(to, &x, 4, 2);)
OF_EACH(cut_8_to_2, simd_load(&x, a); simd_cut(to, &x, 8, 2);)
OF_EACH(cut_8_to_4, simd_load(&x, a); simd_cut(to, &x, 8, 4);)
OF_EACH(load_in_turn_4, simd_load_in_turn(&y, &z, a, 4); (void)x; STORE_TWO)
OF_EACH(load_in_turn_8, simd_load_in_turn(&y, &z, a, 8); (void)x; STORE_TWO)
OF_EACH(load_halves_in_turn, simd_load_halves_in_turn(&y, &z, a); (void)x; STORE_TWO)
OF_EACH(scale_f32, simd_load(&x, a); simd_scale(&y, &x, 0.3f, 4); simd_store(to, &y);)
OF_EACH(scale_f64, simd_load(&x, a); simd_scale(&y, &x, 0.3, 8); simd_store(to, &y);)
OF_EACH(divide_f32, simd_load(&x, a); simd_divide(&y, &x, 0.3f, 4); simd_store(to, &y);)
OF_EACH(divide_f64, simd_load(&x, a); simd_divide(&y, &x, 0.3, 8); simd_store(to, &y);)
OF_EACH(multiply_f32, simd_load(&x, a); simd_load(&y, b); simd_multiply(&z, &x, &y, 4); simd_store(to, &z);)
OF_EACH(multiply_f64, simd_load(&x, a); simd_load(&y, b); simd_multiply(&z, &x, &y, 8); simd_store(to, &z);)
OF_EACH(least_4, simd_load(&x, a); simd_load(&y, b); simd_least_4(&z, &x, &y); simd_store(to, &z);)
OF_EACH(fill_2, simd_fill(&x, b, 2); simd_store(to, &x); (void)a;)
OF_EACH(fill_4, simd_fill(&x, b, 4); simd_store(to, &x); (void)a;)
OF_EACH(fill_8, simd_fill(&x, b, 8); simd_store(to, &x); (void)a;)
OF_EACH(store_halves_in_turn, simd_load(&x, a); simd_load(&y, b); simd_store_halves_in_turn(to, &x, &y);)
OF_EACH(widen_bfloats, simd_load(&x, a); simd_widen_bfloats(&y, &z, &x); STORE_TWO)
OF_EACH(narrow_bfloats, simd_load(&y, a); simd_load(&z, b); simd_tidy_nans(&y); simd_tidy_nans(&z);
        simd_narrow_bfloats(&x, &y, &z); simd_store(to, &x);)

OF_EACH(load_lanes_f32, WORD(4) simd_find_lanes(&some, word, 4); simd_load_lanes(&x, a, &some, SIMD_F32); simd_store(to, &x);)
OF_EACH(load_lanes_f64, WORD(8) simd_find_lanes(&some, word, 8); simd_load_lanes(&x, a, &some, SIMD_F64); simd_store(to, &x);)
OF_EACH(load_lanes_half, WORD(4) simd_find_lanes(&some, word, 2); simd_load_lanes(&x, a, &some, SIMD_HALF); simd_store(to, &x);)
OF_EACH(load_lanes_bfloat, WORD(4) simd_find_lanes(&some, word, 2); simd_load_lanes(&x, a, &some, SIMD_BFLOAT); simd_store(to, &x);)
OF_EACH(alone_f32, ALONE(SIMD_F32, 4, 4, SIMD_READS_ALL_4))
OF_EACH(alone_f64, ALONE(SIMD_F64, 8, 8, SIMD_READS_ALL_4))
OF_EACH(alone_half, ALONE(SIMD_HALF, 2, 4, SIMD_READS_ALL_2))
OF_EACH(alone_bfloat, ALONE(SIMD_BFLOAT, 2, 4, SIMD_READS_ALL_2))
OF_WIDTH(lanes_at_2, vector, simd_vector, AT(SIMD_HALF, 2, 4))
OF_WIDTH(lanes_at_4, vector, simd_vector, AT(SIMD_F32, 4, 4))
OF_WIDTH(lanes_at_8, vector, simd_vector, AT(SIMD_F64, 8, 8))
OF_EACH(copy_first, simd_copy_first(to, a, *(const unsigned char *)b % sizeof x & ~1u, sizeof x); (void)x;)

OF_EACH(interleave_2, simd_load(&x, a); simd_load(&y, b); simd_interleave(&y, &z, &x, &y, 2); STORE_TWO)
OF_EACH(interleave_4, simd_load(&x, a); simd_load(&y, b); simd_interleave(&y, &z, &x, &y, 4); STORE_TWO)
OF_EACH(interleave_8, simd_load(&x, a); simd_load(&y, b); simd_interleave(&y, &z, &x, &y, 8); STORE_TWO)
OF_EACH(slide_4, simd_load(&x, a); simd_load(&y, b); simd_slide(&z, &x, &y, 2, 4); simd_store(to, &z);)
OF_EACH(slide_8, simd_load(&x, a); simd_load(&y, b); simd_slide(&z, &x, &y, 2, 8); simd_store(to, &z);)
OF_EACH(triple_4, simd_load(&x, a); simd_triple(&x, &y, &z, &x, 4); simd_store(to, &x);
        simd_store((char *)to + sizeof x, &y); simd_store((char *)to + 2 * sizeof x, &z);)
OF_EACH(triple_8, simd_load(&x, a); simd_triple(&x, &y, &z, &x, 8); simd_store(to, &x);
        simd_store((char *)to + sizeof x, &y); simd_store((char *)to + 2 * sizeof x, &z);)
OF_BLOCKS(load_apart, simd_load_apart(&x, a, 48); simd_store(to, &x);)
OF_BLOCKS(store_apart, simd_load(&x, a); simd_load(&y, b); simd_store_apart(to, 32, &x);
          simd_store_apart((char *)to + 16, 32, &y);)
OF_BLOCKS(zip_low_2, simd_load(&x, a); simd_load(&y, b); simd_zip_low(&z, &x, &y, 2); simd_store(to, &z);)
OF_BLOCKS(zip_high_2, simd_load(&x, a); simd_load(&y, b); simd_zip_high(&z, &x, &y, 2); simd_store(to, &z);)
OF_BLOCKS(zip_low_4, simd_load(&x, a); simd_load(&y, b); simd_zip_low(&z, &x, &y, 4); simd_store(to, &z);)
OF_BLOCKS(zip_high_4, simd_load(&x, a); simd_load(&y, b); simd_zip_high(&z, &x, &y, 4); simd_store(to, &z);)
OF_BLOCKS(zip_low_8, simd_load(&x, a); simd_load(&y, b); simd_zip_low(&z, &x, &y, 8); simd_store(to, &z);)
OF_BLOCKS(zip_high_8, simd_load(&x, a); simd_load(&y, b); simd_zip_high(&z, &x, &y, 8); simd_store(to, &z);)

OF_BLOCKS(part_2, simd_load(&x, a); simd_load(&y, b); simd_part(&y, &z, &x, &y, 2); STORE_TWO)
OF_BLOCKS(part_4, simd_load(&x, a); simd_load(&y, b); simd_part(&y, &z, &x, &y, 4); STORE_TWO)
OF_BLOCKS(part_8, simd_load(&x, a); simd_load(&y, b); simd_part(&y, &z, &x, &y, 8); STORE_TWO)

#define STORE_THREE simd_store(to, &x); simd_store((char *)to + sizeof x, &y); simd_store((char *)to + 2 * sizeof x, &z);
#define LOAD_THREE \
    simd_load(&x, a); simd_load(&y, (const char *)a + sizeof x); simd_load(&z, (const char *)a + 2 * sizeof x);
OF_BLOCKS(unzip_three_2, simd_unzip_three(&x, &y, &z, a, 2); STORE_THREE)
OF_BLOCKS(unzip_three_4, simd_unzip_three(&x, &y, &z, a, 4); STORE_THREE)
OF_BLOCKS(unzip_three_8, simd_unzip_three(&x, &y, &z, a, 8); STORE_THREE)

OF_BLOCKS(zip_three_2, LOAD_THREE simd_zip_three(to, &x, &y, &z, 2);)
OF_BLOCKS(zip_three_4, LOAD_THREE simd_zip_three(to, &x, &y, &z, 4);)
OF_BLOCKS(zip_three_8, LOAD_THREE simd_zip_three(to, &x, &y, &z, 8);)

/* Numbers at a that are chosen. By the words at b behind two bytes: the first tells the bit that they are loaded for, the
 * second how far below it lies the one that is asked. `whole`: all of them may be read, else those that are chosen. */
#define BIT(kind, lane, whole)                                                                  \
    simd_vector loaded, asked;                                                                  \
    const int bit = ((const unsigned char *)b)[0] % 16, below = ((const unsigned char *)b)[1] % 4 % (bit + 1); \
    simd_ask(&loaded, bit, lane);                                                               \
    simd_ask(&asked, bit - below, lane);                                                        \
    simd_load_words(&y, (const char *)b + 2, &loaded, lane);                                    \
    switch (below) {                                                                            \
    case 0: SUM_IF_BIT(kind, 0, whole) break;                                                   \
    case 1: SUM_IF_BIT(kind, 1, whole) break;                                                   \
    case 2: SUM_IF_BIT(kind, 2, whole) break;                                                   \
    default: SUM_IF_BIT(kind, 3, whole)                                                         \
    }
/* Loaded, and added to it: twice the number. */
#define SUM_IF_BIT(kind, below, whole)                                    \
    simd_load_if(&x, &y, &asked, below, a, kind, !(whole));               \
    simd_store(to, &x);                                                   \
    simd_add_if(&x, &y, &asked, below, a, kind, !(whole));                \
    simd_store((char *)to + sizeof x, &x);

/* The bit that is asked first, then the next lower one, in the lanes [begin, end): the words are the same. */
#define LOWER(kind, lane)                                                 \
    simd_lanes some;                                                      \
    simd_vector asked;                                                    \
    const int bit = ((const unsigned char *)b)[0] % 15 + 1, lanes = sizeof x / (lane);        \
    const int begin = ((const unsigned char *)b)[1] % (lanes + 1);        \
    simd_ask(&asked, bit, lane);                                          \
    simd_load_words(&y, (const char *)b + 2, &asked, lane);               \
    simd_find_lanes(&some, simd_lane_word(begin, lanes), lane);              \
    simd_keep_words(&y, &some);                                           \
    simd_load_if(&x, &y, &asked, 0, a, kind, 1);                          \
    simd_store(to, &x);                                                   \
    simd_raise_words(&y, lane);                                           \
    simd_ask_lower(&asked);                                               \
    simd_load_if(&x, &y, &asked, 0, a, kind, 1);                          \
    simd_store((char *)to + sizeof x, &x);

/* By the int32 at b behind an int32 that tells the wanted ones: that, and each lane one more; then four more for all. */
#define EQUAL(kind, lane)                                                 \
    int32_t first;                                                        \
    memcpy(&first, b, sizeof first);                                      \
    simd_load_indices(&y, (const char *)b + 4, lane);                     \
    simd_range(&z, first, 1, lane);                                       \
    simd_load_if(&x, &y, &z, SIMD_BY_INDEX, a, kind, 0);                  \
    simd_store(to, &x);                                                   \
    simd_add_if(&x, &y, &z, SIMD_BY_INDEX, a, kind, 0);                   \
    simd_store((char *)to + sizeof x, &x);                                \
    simd_zero(&x);                                                        \
    simd_count_indices(&z, &z, 4, lane);                                  \
    simd_add_if(&x, &y, &z, SIMD_BY_INDEX, a, kind, 0);                   \
    simd_store((char *)to + 2 * sizeof x, &x);
/* In the lanes [begin, end) alone, of indices that lie before or behind b. */
#define SOME_EQUAL(kind, lane)                                                               \
    simd_lanes some;                                                                         \
    const int lanes = sizeof x / (lane), begin = *(const unsigned char *)b % (lanes + 1);    \
    simd_find_lanes(&some, simd_lane_word(begin, lanes), 4);                                       \
    simd_load_some_indices(&y, (const char *)b + 4 - 4 * begin, &some, lane);                \
    simd_range(&z, 0, 0, lane);                                                              \
    simd_load_if(&x, &y, &z, SIMD_BY_INDEX, (const char *)a - (lane) * begin, kind, 1);      \
    simd_store(to, &x);

#define SHIFT_IN(bytes) simd_load(&y, a); simd_load(&z, b); simd_shift_in(&x, &y, &z, bytes); simd_store(to, &x);
#define OF_BITS(lane)                                                                             \
    simd_lanes some;                                                                              \
    simd_lanes_of_bits(&some, *(const uint16_t *)b, lane);                                        \
    simd_load(&y, a); simd_zero(&x); simd_add_lanes(&x, &y, &some, lane); simd_store(to, &x);

/* Into what b holds behind two bytes, which tell the lanes. */
#define STORE_LANES(kind, lane)                                                  \
    WORD(lane)                                                                   \
    simd_find_lanes(&some, word, lane);                                          \
    memcpy(to, (const char *)b + 2, sizeof x * (kind == SIMD_F64 ? 8 : kind == SIMD_F32 ? 4 : 2) / (lane)); \
    simd_load(&x, a);                                                            \
    if (kind == SIMD_BFLOAT)                                                     \
        simd_tidy_nans(&x);                                                      \
    simd_store_lanes(to, &x, &some, kind);
OF_WIDTH(store_lanes_f32, vector, simd_vector, STORE_LANES(SIMD_F32, 4))
OF_WIDTH(store_lanes_f64, vector, simd_vector, STORE_LANES(SIMD_F64, 8))
OF_WIDTH(store_lanes_half, vector, simd_vector, STORE_LANES(SIMD_HALF, 4))
OF_WIDTH(store_lanes_bfloat, vector, simd_vector, STORE_LANES(SIMD_BFLOAT, 4))
OF_WIDTH(bit_f32, vector, simd_vector, BIT(SIMD_F32, 4, 1))
OF_WIDTH(bit_f64, vector, simd_vector, BIT(SIMD_F64, 8, 1))
OF_WIDTH(bit_half, vector, simd_vector, BIT(SIMD_HALF, 4, 1))
OF_WIDTH(bit_bfloat, vector, simd_vector, BIT(SIMD_BFLOAT, 4, 1))
OF_WIDTH(some_bit_f32, vector, simd_vector, BIT(SIMD_F32, 4, 0))
OF_WIDTH(some_bit_f64, vector, simd_vector, BIT(SIMD_F64, 8, 0))
OF_WIDTH(some_bit_half, vector, simd_vector, BIT(SIMD_HALF, 4, 0))
OF_WIDTH(some_bit_bfloat, vector, simd_vector, BIT(SIMD_BFLOAT, 4, 0))
OF_WIDTH(lower_f32, vector, simd_vector, LOWER(SIMD_F32, 4))
OF_WIDTH(lower_f64, vector, simd_vector, LOWER(SIMD_F64, 8))
OF_WIDTH(equal_f32, vector, simd_vector, EQUAL(SIMD_F32, 4))
OF_WIDTH(equal_f64, vector, simd_vector, EQUAL(SIMD_F64, 8))
OF_WIDTH(equal_half, vector, simd_vector, EQUAL(SIMD_HALF, 4))
OF_WIDTH(equal_bfloat, vector, simd_vector, EQUAL(SIMD_BFLOAT, 4))
OF_WIDTH(some_equal_f32, vector, simd_vector, SOME_EQUAL(SIMD_F32, 4))
OF_WIDTH(some_equal_f64, vector, simd_vector, SOME_EQUAL(SIMD_F64, 8))
OF_WIDTH(add_lanes_f32, vector, simd_vector, OF_BITS(4))
OF_WIDTH(add_lanes_f64, vector, simd_vector, OF_BITS(8))
OF_WIDTH(shift_in_4, vector, simd_vector, SHIFT_IN(4))
OF_WIDTH(shift_in_8, vector, simd_vector, SHIFT_IN(8))
OF_WIDTH(shift_in_16, vector, simd_vector, SHIFT_IN(16))
/* The first terms of 16 results; of how many each has, up to `most`, b tells: of those of the first window, and behind
 * it again. The last window is taken. */
#define FIRST(count, most)                                                      \
    const int results = (int)(count), windows = results > 8 ? 1 : results > 4 ? 2 : 3; \
    const int shift = (windows - 1) * results;                                  \
    char first[17];                                                             \
    simd_places all[3];                                                         \
    first[0] = 0;                                                               \
    for (int i = 1; i < 17; i++)                                                \
        first[i] = (char)(first[i - 1] + (i <= shift ? 1 : i > shift + results ? 0 : \
                                          ((const unsigned char *)b)[i - shift] % ((most) + 1)));
OF_WIDTH(lookup_4, vector, simd_vector, FIRST(sizeof x / 4 / 2, 2)
         simd_find_places(all, windows, first, results, results, 0, 0, 4);
         simd_load(&x, a); simd_lookup(&x, &x, &all[windows - 1], 4); simd_store(to, &x);)
OF_WIDTH(lookup_late_4, vector, simd_vector, FIRST(1, 20)
         simd_find_places(all, windows, first, results, results, 4, 4, 4);
         simd_load(&x, a); simd_lookup(&x, &x, &all[windows - 1], 4); simd_store(to, &x);)
OF_WIDTH(lookup_two_4, vector, simd_vector, FIRST(sizeof x / 4, 2)
         simd_find_places(all, windows, first, results, results, 1, 0, 4);
         simd_load(&x, a); simd_load(&y, (const char *)a + sizeof x); simd_lookup_two(&x, &x, &y, &all[windows - 1], 4);
         simd_store(to, &x);)
OF_WIDTH(lookup_8, vector, simd_vector, FIRST(sizeof x / 8 / 2, 2)
         simd_find_places(all, windows, first, results, results, 0, 0, 8);
         simd_load(&x, a); simd_lookup(&x, &x, &all[windows - 1], 8); simd_store(to, &x);)
OF_WIDTH(lookup_late_8, vector, simd_vector, FIRST(1, 20)
         simd_find_places(all, windows, first, results, results, 4, 4, 8);
         simd_load(&x, a); simd_lookup(&x, &x, &all[windows - 1], 8); simd_store(to, &x);)
OF_WIDTH(lookup_two_8, vector, simd_vector, FIRST(sizeof x / 8, 2)
         simd_find_places(all, windows, first, results, results, 1, 0, 8);
         simd_load(&x, a); simd_load(&y, (const char *)a + sizeof x); simd_lookup_two(&x, &x, &y, &all[windows - 1], 8);
         simd_store(to, &x);)
OF_WIDTH(lookup_bfloats, vector, simd_vector, FIRST(sizeof x / 4, 2)
         simd_find_places(all, windows, first, results, results, 1, 0, 4);
         simd_lookup_bfloats(&x, a, &all[windows - 1]); simd_store(to, &x);)
/* By a table that ascends by 0 or 1, as b tells, from some number on. */
#define PICK(size)                                                           \
    int32_t table[sizeof x / (size)];                                        \
    table[0] = *(const unsigned char *)b % 5;                                \
    for (size_t i = 1; i < sizeof x / (size); i++)                           \
        table[i] = table[i - 1] + (((const unsigned char *)b)[i] & 1);       \
    simd_pick(&x, (const char *)a - table[0] * (size), table, size); simd_store(to, &x);
OF_WIDTH(pick_2, vector, simd_vector, PICK(2))
OF_WIDTH(pick_4, vector, simd_vector, PICK(4))
OF_WIDTH(pick_8, vector, simd_vector, PICK(8))
OF_WIDTH(block, vector, simd_vector, const int blocks = sizeof x / 16; simd_load(&x, a);
         for (int k = 0; k < blocks; k++) simd_block(&y, &x, k), memcpy((char *)to + 16 * k, &y, 16);)
OF_WIDTH(join, vector, simd_vector, simd_load(&x, a); simd_load(&y, b); simd_join(&y, &z, &x, &y); STORE_TWO)
OF_WIDTH(add_pairs_4, vector, simd_vector,
         simd_load(&x, a); simd_load(&y, b); simd_add_pairs(&x, &x, &y, 4); simd_store(to, &x);)
OF_WIDTH(add_pairs_8, vector, simd_vector,
         simd_load(&x, a); simd_load(&y, b); simd_add_pairs(&x, &x, &y, 8); simd_store(to, &x);)

#define NAMED(name) {#name, name},
#define OF_EACH_NAMED(name) NAMED(name##_vector) NAMED(name##_half) NAMED(name##_16)
#define OF_BLOCKS_NAMED(name) NAMED(name##_vector) NAMED(name##_32) NAMED(name##_16)
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
    OF_EACH_NAMED(load_as_f32)
    OF_EACH_NAMED(load_as_half)
    OF_EACH_NAMED(load_as_bfloat)
    OF_EACH_NAMED(zero)
    OF_EACH_NAMED(and)
    OF_EACH_NAMED(store_half)
    OF_EACH_NAMED(store_bfloat)
    OF_EACH_NAMED(store_as_f32)
    OF_EACH_NAMED(store_as_half)
    OF_EACH_NAMED(scale_f32)
    OF_EACH_NAMED(count_4)
    OF_EACH_NAMED(count_8)
    OF_EACH_NAMED(take_greater_f32)
    OF_EACH_NAMED(take_greater_f64)
    OF_EACH_NAMED(mark_equal_2)
    OF_EACH_NAMED(cut_4_to_2)
    OF_EACH_NAMED(cut_8_to_2)
    OF_EACH_NAMED(cut_8_to_4)
    OF_EACH_NAMED(load_in_turn_4)
    OF_EACH_NAMED(load_in_turn_8)
    OF_EACH_NAMED(load_halves_in_turn)
    OF_EACH_NAMED(scale_f64)
    OF_EACH_NAMED(divide_f32)
    OF_EACH_NAMED(divide_f64)
    OF_EACH_NAMED(multiply_f32)
    OF_EACH_NAMED(multiply_f64)
    OF_EACH_NAMED(least_4)
    OF_EACH_NAMED(fill_2)
    OF_EACH_NAMED(fill_4)
    OF_EACH_NAMED(fill_8)
    OF_EACH_NAMED(slide_4)
    OF_EACH_NAMED(slide_8)
    OF_EACH_NAMED(triple_4)
    OF_EACH_NAMED(triple_8)
    OF_EACH_NAMED(store_halves_in_turn)
    OF_EACH_NAMED(widen_bfloats)
    OF_EACH_NAMED(narrow_bfloats)
    OF_EACH_NAMED(load_lanes_f32)
    OF_EACH_NAMED(load_lanes_f64)
    OF_EACH_NAMED(load_lanes_half)
    OF_EACH_NAMED(load_lanes_bfloat)
    OF_EACH_NAMED(alone_f32)
    OF_EACH_NAMED(alone_f64)
    OF_EACH_NAMED(alone_half)
    OF_EACH_NAMED(alone_bfloat)
    OF_EACH_NAMED(copy_first)
    OF_EACH_NAMED(interleave_2)
    OF_EACH_NAMED(interleave_4)
    OF_EACH_NAMED(interleave_8)
    NAMED(lanes_at_2_vector)
    NAMED(lanes_at_4_vector)
    NAMED(lanes_at_8_vector)
    OF_BLOCKS_NAMED(load_apart)
    OF_BLOCKS_NAMED(store_apart)
    OF_BLOCKS_NAMED(zip_low_2)
    OF_BLOCKS_NAMED(zip_high_2)
    OF_BLOCKS_NAMED(zip_low_4)
    OF_BLOCKS_NAMED(zip_high_4)
    OF_BLOCKS_NAMED(zip_low_8)
    OF_BLOCKS_NAMED(zip_high_8)
    OF_BLOCKS_NAMED(part_2)
    OF_BLOCKS_NAMED(part_4)
    OF_BLOCKS_NAMED(part_8)
    OF_BLOCKS_NAMED(unzip_three_2)
    OF_BLOCKS_NAMED(unzip_three_4)
    OF_BLOCKS_NAMED(unzip_three_8)
    OF_BLOCKS_NAMED(zip_three_2)
    OF_BLOCKS_NAMED(zip_three_4)
    OF_BLOCKS_NAMED(zip_three_8)
    NAMED(store_lanes_f32_vector)
    NAMED(store_lanes_f64_vector)
    NAMED(store_lanes_half_vector)
    NAMED(store_lanes_bfloat_vector)
    NAMED(bit_f32_vector)
    NAMED(bit_f64_vector)
    NAMED(bit_half_vector)
    NAMED(bit_bfloat_vector)
    NAMED(some_bit_f32_vector)
    NAMED(some_bit_f64_vector)
    NAMED(some_bit_half_vector)
    NAMED(some_bit_bfloat_vector)
    NAMED(lower_f32_vector)
    NAMED(lower_f64_vector)
    NAMED(equal_f32_vector)
    NAMED(equal_f64_vector)
    NAMED(equal_half_vector)
    NAMED(equal_bfloat_vector)
    NAMED(some_equal_f32_vector)
    NAMED(some_equal_f64_vector)
    NAMED(add_lanes_f32_vector)
    NAMED(add_lanes_f64_vector)
    NAMED(shift_in_4_vector)
    NAMED(shift_in_8_vector)
    NAMED(shift_in_16_vector)
    NAMED(lookup_4_vector)
    NAMED(lookup_8_vector)
    NAMED(lookup_late_4_vector)
    NAMED(pick_2_vector)
    NAMED(pick_4_vector)
    NAMED(pick_8_vector)
    NAMED(lookup_late_8_vector)
    NAMED(lookup_two_4_vector)
    NAMED(lookup_two_8_vector)
    NAMED(lookup_bfloats_vector)
    NAMED(block_vector)
    NAMED(join_vector)
    NAMED(add_pairs_4_vector)
    NAMED(add_pairs_8_vector)
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
