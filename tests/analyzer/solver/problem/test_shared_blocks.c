// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/shared_blocks.h"

#include <string.h>

#define ROUNDS 20000

TEST(equal_contents_are_one_block) {
    MtfShared *shared = mtf_shared_new();
    const void *first = mtf_shared_copy(shared, "layer", 6);
    const void *second = mtf_shared_copy(shared, "layer", 6);
    const void *shorter = mtf_shared_copy(shared, "layer", 5);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, shorter);
    assert_int_equal(mtf_shared_bytes(shared), 11);
    mtf_shared_free(shared);
}

TEST(a_block_goes_with_its_last_reference) {
    MtfShared *shared = mtf_shared_new();
    const void *block = mtf_shared_copy(shared, "abc", 3);
    mtf_shared_ref(block);
    mtf_shared_unref(shared, block);
    assert_int_equal(mtf_shared_bytes(shared), 3);
    mtf_shared_unref(shared, block);
    assert_int_equal(mtf_shared_bytes(shared), 0);
    mtf_shared_free(shared);
}

/* Against an array of texts: the same block if and only if the same text, whatever is let go. */
TEST(blocks_agree_with_comparing_contents) {
    MtfShared *shared = mtf_shared_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    const char *held[64] = { NULL };
    for (int round = 0; round < ROUNDS; round++) {
        int at = g_rand_int_range(rand, 0, 64);
        if (held[at] != NULL)
            mtf_shared_unref(shared, held[at]);
        char text[8] = { 0 };
        int length = g_rand_int_range(rand, 1, 4);
        for (int i = 0; i < length; i++)
            text[i] = (char)g_rand_int_range(rand, 'a', 'e');
        held[at] = mtf_shared_copy(shared, text, (gsize)length + 1);
        for (int i = 0; i < 64; i++)
            if (held[i] != NULL)
                assert_int_equal(held[i] == held[at], strcmp(held[i], text) == 0);
    }
    mtf_shared_free(shared);
}

static MtfQuestion ask(int kind, const void *block, int number) {
    MtfQuestion question = { .kind = kind };
    assert_true(mtf_question_add(&question, block, number));
    return question;
}

TEST(questions_differ_by_kind_block_and_number) {
    MtfShared *shared = mtf_shared_new();
    const void *a = mtf_shared_copy(shared, "a", 1), *b = mtf_shared_copy(shared, "b", 1);
    MtfQuestion asked = ask(1, a, 2);
    mtf_shared_remember(shared, &asked, (MtfAnswer){ { b, NULL }, 7 });
    const MtfAnswer *answer = mtf_shared_recall(shared, &asked);
    assert_non_null(answer);
    assert_ptr_equal(answer->blocks[0], b);
    assert_int_equal(answer->number, 7);
    MtfQuestion others[] = { ask(2, a, 2), ask(1, b, 2), ask(1, a, 3), ask(1, a, 2) };
    mtf_question_add(&others[3], NULL, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        assert_null(mtf_shared_recall(shared, &others[i]));
    mtf_shared_free(shared);
}

TEST(what_is_remembered_holds_its_blocks_until_forgotten) {
    MtfShared *shared = mtf_shared_new();
    const void *asked_of = mtf_shared_copy(shared, "question", 8);
    const void *found = mtf_shared_copy(shared, "answer", 6);
    MtfQuestion question = ask(0, asked_of, 0);
    mtf_shared_remember(shared, &question, (MtfAnswer){ { found, NULL }, 0 });
    mtf_shared_unref(shared, asked_of);
    mtf_shared_unref(shared, found);
    assert_int_equal(mtf_shared_bytes(shared), 14);
    mtf_shared_forget(shared);
    assert_int_equal(mtf_shared_bytes(shared), 0);
    assert_null(mtf_shared_recall(shared, &question));
    mtf_shared_free(shared);
}

TEST(a_question_has_room_for_so_many_parts) {
    MtfQuestion question = { 0 };
    for (int i = 0; i < MTF_QUESTION_PARTS; i++)
        assert_true(mtf_question_add(&question, NULL, i));
    assert_false(mtf_question_add(&question, NULL, 0));
}
