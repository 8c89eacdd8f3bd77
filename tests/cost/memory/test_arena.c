// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/memory/arena.h"

#include <string.h>

/* Programs of `length` empty instructions; only their buffers matter here. */
static MtfProgram *program_of(int length, int n, const MtfBuffer *buffers) {
    MtfProgram *program = g_new0(MtfProgram, 1);
    program->instructions = g_array_new(FALSE, TRUE, sizeof(MtfInstruction));
    g_array_set_size(program->instructions, (guint)length);
    program->buffers = g_array_new(FALSE, TRUE, sizeof(MtfBuffer));
    g_array_append_vals(program->buffers, buffers, (guint)n);
    return program;
}

static void free_program(MtfProgram *program) {
    g_array_free(program->instructions, TRUE);
    g_array_free(program->buffers, TRUE);
    g_free(program);
}

static MtfBuffer buffer_of(int storage, int64_t bytes, int first, int last) {
    return (MtfBuffer){
        .tensor = -1, .bytes = bytes, .storage = storage, .first = first, .last = last
    };
}

/* w (100 bytes, persistent), a 0..1, b 1..2, c 3..3; d shares a's storage. */
static MtfProgram *small_program(void) {
    MtfBuffer buffers[] = {
        buffer_of(0, 100, 0, 0), buffer_of(1, 64, 0, 1), buffer_of(2, 65, 1, 2),
        buffer_of(3, 190, 3, 3), buffer_of(1, 60, 1, 1),
    };
    buffers[0].persistent = true;
    buffers[0].memory = MTF_MEMORY_VARIABLE;
    buffers[1].memory = MTF_MEMORY_GRADIENT;
    buffers[2].memory = MTF_MEMORY_ACTIVATION;
    buffers[3].memory = MTF_MEMORY_ACTIVATION;
    return program_of(4, 5, buffers);
}

/* 128 for w; then 64 + 128 at instruction 1 and 192 at instruction 3: 320 in all. */
TEST(storages_whose_lives_do_not_meet_share_bytes) {
    MtfProgram *program = small_program();
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_int_equal(arena->bytes, 320);
    assert_int_equal(mtf_arena_lower_bound(program), 320);
    assert_int_equal(arena->offsets[4], arena->offsets[1]);
    assert_true(mtf_arena_check(program, arena, NULL));
    free_program(program);
}

TEST(a_program_fits_what_its_arena_needs_and_no_less) {
    MtfProgram *program = small_program();
    assert_true(mtf_arena_fits(program, 320));
    assert_false(mtf_arena_fits(program, 319));
    free_program(program);
}

TEST(the_peak_is_told_by_kind) {
    MtfProgram *program = small_program();
    int64_t bytes[MTF_MEMORY_KINDS];
    mtf_arena_peak(program, bytes);
    assert_int_equal(bytes[MTF_MEMORY_VARIABLE], 100);
    assert_int_equal(bytes[MTF_MEMORY_GRADIENT], 64);
    assert_int_equal(bytes[MTF_MEMORY_ACTIVATION], 65);
    free_program(program);
}

TEST(a_program_without_buffers_needs_nothing) {
    MtfProgram *program = program_of(0, 0, NULL);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_int_equal(arena->bytes, 0);
    assert_true(mtf_arena_check(program, arena, NULL));
    free_program(program);
}

static void expect_wrong(int buffer, int64_t offset, const char *word) {
    MtfProgram *program = small_program();
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(GError) error = NULL;
    arena->offsets[buffer] = offset;
    assert_false(mtf_arena_check(program, arena, &error));
    assert_non_null(strstr(error->message, word));
    free_program(program);
}

TEST(the_checker_finds_an_overlap) {
    expect_wrong(2, 64, "overlap");
}

TEST(the_checker_finds_a_buffer_outside) {
    expect_wrong(3, 192, "outside");
}

TEST(the_checker_finds_an_odd_offset) {
    expect_wrong(2, 200, "multiple");
}

TEST(the_checker_finds_a_buffer_away_from_its_storage) {
    expect_wrong(4, 192, "storage");
}

static MtfProgram *random_program(GRand *random, int length, int n) {
    g_autofree MtfBuffer *buffers = g_new0(MtfBuffer, (gsize)n);
    for (int b = 0; b < n; b++) {
        int first = g_rand_int_range(random, 0, length);
        int last = MIN(first + g_rand_int_range(random, 0, 1 + length / 2), length - 1);
        buffers[b] = buffer_of(b, g_rand_int_range(random, 0, 5000), first, last);
        buffers[b].persistent = g_rand_int_range(random, 0, 8) == 0;
    }
    return program_of(length, n, buffers);
}

/* Greedy packing of random intervals stays within a quarter of the live bytes here. */
TEST(random_programs_are_packed_legally_and_tightly) {
    GRand *random = g_rand_new_with_seed(7);
    for (int round = 0; round < 400; round++) {
        MtfProgram *program = random_program(random, g_rand_int_range(random, 1, 40),
                                             g_rand_int_range(random, 1, 60));
        g_autoptr(MtfArena) arena = mtf_arena_pack(program);
        int64_t bound = mtf_arena_lower_bound(program);
        assert_true(mtf_arena_check(program, arena, NULL));
        assert_true(arena->bytes >= bound);
        assert_true(arena->bytes <= bound + bound / 4);
        free_program(program);
    }
    g_rand_free(random);
}

/* Long programs, in which most storages live a short while and are compared with few others. */
TEST(long_programs_are_packed_legally) {
    enum { LENGTH = 3000, STORAGES = 1500 };
    GRand *random = g_rand_new_with_seed(11);
    g_autofree MtfBuffer *buffers = g_new0(MtfBuffer, STORAGES);
    for (int b = 0; b < STORAGES; b++) {
        int life = g_rand_int_range(random, 0, b % 8 == 0 ? LENGTH : 90);
        int first = g_rand_int_range(random, 0, LENGTH);
        buffers[b] =
            buffer_of(b, g_rand_int_range(random, 1, 5000), first, MIN(first + life, LENGTH - 1));
    }
    MtfProgram *program = program_of(LENGTH, STORAGES, buffers);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_true(mtf_arena_check(program, arena, NULL));
    assert_true(arena->bytes <= 5 * (mtf_arena_lower_bound(program) / 4));
    free_program(program);
    g_rand_free(random);
}

/* A deep net: activation i lives from its forward step to its backward step, like nested brackets;
 * packing loses nothing. */
TEST(nested_lives_are_packed_without_loss) {
    enum { DEPTH = 300 };
    MtfBuffer buffers[2 * DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        buffers[2 * i] = buffer_of(2 * i, 64 * (1 + i % 7), i, 2 * DEPTH - 1 - i);
        buffers[2 * i + 1] = buffer_of(2 * i + 1, 6400, 2 * DEPTH - 2 - i, 2 * DEPTH - 1 - i);
    }
    MtfProgram *program = program_of(2 * DEPTH, 2 * DEPTH, buffers);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    assert_true(mtf_arena_check(program, arena, NULL));
    assert_int_equal(arena->bytes, mtf_arena_lower_bound(program));
    free_program(program);
}
