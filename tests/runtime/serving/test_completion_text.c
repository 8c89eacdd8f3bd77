// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_text.h"

#include "tests/support/cmocka.h"

static const MtfModelText bytes = { NULL, 256 };

static void begin(MtfCompletionText *text, char **stops) {
    g_autoptr(GArray) prompt = g_array_new(FALSE, FALSE, sizeof(int));
    assert_true(mtf_model_text_encode(&bytes, "a long prompt", prompt, NULL));
    mtf_completion_text_init(text, &bytes, stops, prompt);
}

/* What is said after each byte, with bars between. */
static char *say_bytes(MtfCompletionText *text, const char *tokens) {
    GString *said = g_string_new(NULL);
    for (const char *c = tokens; *c != '\0' && !text->stopped; c++) {
        mtf_completion_text_add(text, (unsigned char)*c);
        mtf_completion_text_update(text);
        g_autofree char *piece = mtf_completion_text_say(text, false);
        g_string_append_printf(said, "%s|", piece);
    }
    g_autofree char *rest = mtf_completion_text_say(text, true);
    g_string_append(said, rest);
    return g_string_free(said, FALSE);
}

static void expect(const char *tokens, const char *said, const char *stop, bool stopped) {
    char *stops[] = { (char *)(guintptr)stop, NULL };
    MtfCompletionText text;
    begin(&text, stops);
    g_autofree char *got = say_bytes(&text, tokens);
    assert_string_equal(got, said);
    assert_int_equal(text.stopped, stopped);
    mtf_completion_text_clear(&text);
}

TEST(text_is_said_as_it_comes) {
    expect("abc", "a|b|c|", NULL, false);
}

TEST(half_a_character_is_held_back) {
    expect("x\xe2\x80\xa6y", "x|||\xe2\x80\xa6|y|", NULL, false);
}

TEST(half_a_character_at_the_end_is_replaced) {
    expect("x\xe2\x80", "x|||\xef\xbf\xbd\xef\xbf\xbd", NULL, false);
}

TEST(bytes_that_are_no_character_are_replaced) {
    expect("\xff-", "\xef\xbf\xbd|-|", NULL, false);
}

TEST(a_stop_and_what_is_behind_it_is_cut_off) {
    expect("ab<end>c", "a|b||||||", "<end>", true);
}

TEST(what_may_become_a_stop_is_said_when_it_did_not) {
    expect("a<<ex", "a||<||<ex|", "<end>", false);
    expect("a<e", "a|||<e", "<end>", false);
}

TEST(the_first_of_two_stops_ends_it) {
    char *stops[] = { (char *)(guintptr) "d", (char *)(guintptr) "bc", NULL };
    MtfCompletionText text;
    begin(&text, stops);
    for (const char *c = "abcd"; *c != '\0'; c++)
        mtf_completion_text_add(&text, *c);
    mtf_completion_text_update(&text);
    assert_string_equal(text.text->str, "a");
    mtf_completion_text_clear(&text);
}
