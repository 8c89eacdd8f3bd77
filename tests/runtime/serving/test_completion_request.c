// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_request.h"

#include "tests/support/cmocka.h"

#include <string.h>

static const MtfCompletionRequest standard = { .max_tokens = 16,
                                               .sampling = { .temperature = 0.8, .top_p = 1 },
                                               .seed = 5 };

static void parse(const char *body, MtfCompletionRequest *request) {
    g_autoptr(GError) error = NULL;
    bool good =
        mtf_completion_request_parse(request, MTF_FORM_TEXT, &standard, body, strlen(body), &error);
    if (!good)
        fail_msg("%s", error->message);
}

TEST(what_is_left_out_is_standard) {
    MtfCompletionRequest r;
    parse("{\"prompt\": \"a\", \"temperature\": null}", &r);
    assert_int_equal(r.max_tokens, 16);
    assert_true(r.sampling.temperature == 0.8 && r.sampling.top_p == 1 && r.sampling.top_k == 0);
    assert_int_equal(r.seed, 5);
    assert_int_equal(r.choices, 1);
    assert_true(!r.stream && !r.echo && r.stops[0] == NULL);
    mtf_completion_request_clear(&r);
}

TEST(every_field_is_read) {
    MtfCompletionRequest r;
    parse(
        "{\"prompt\": \"a\", \"max_tokens\": 3, \"temperature\": 0, \"top_p\": 0.5, \"top_k\": 7, "
        "\"seed\": -2, \"n\": 4, \"stop\": [\"x\", \"yz\"], \"stream\": true, \"echo\": true, "
        "\"return_token_ids\": true, \"presence_penalty\": 0.5, \"frequency_penalty\": -2, "
        "\"logit_bias\": {\"7\": -100, \"0\": 1.5}}",
        &r);
    assert_true(r.changes.presence == 0.5 && r.changes.frequency == -2);
    assert_int_equal(r.changes.biases->len, 2);
    assert_int_equal(g_array_index(r.changes.biases, MtfTokenBias, 0).token, 7);
    assert_true(g_array_index(r.changes.biases, MtfTokenBias, 1).bias == 1.5);
    assert_int_equal(r.max_tokens, 3);
    assert_true(r.sampling.temperature == 0 && r.sampling.top_p == 0.5 && r.sampling.top_k == 7);
    assert_int_equal(r.seed, -2);
    assert_int_equal(r.choices, 4);
    assert_string_equal(r.stops[1], "yz");
    assert_true(r.stream && r.echo && r.returns_tokens);
    mtf_completion_request_clear(&r);
}

TEST(the_best_are_of_at_least_as_many) {
    MtfCompletionRequest r;
    parse("{\"prompt\": \"a\", \"n\": 3}", &r);
    assert_int_equal(r.drawn, 3);
    mtf_completion_request_clear(&r);
    parse("{\"prompt\": \"a\", \"best_of\": 4, \"n\": 3}", &r);
    assert_int_equal(r.drawn, 4);
    assert_int_equal(r.choices, 3);
    mtf_completion_request_clear(&r);
}

TEST(a_prompt_alone_may_be_scored) {
    MtfCompletionRequest r;
    parse("{\"prompt\": \"a\", \"echo\": true, \"logprobs\": 1, \"max_tokens\": 0}", &r);
    assert_int_equal(r.max_tokens, 0);
    assert_true(r.echo && r.returns_scores && r.likeliest == 1);
    mtf_completion_request_clear(&r);
}

TEST(prompts_are_texts_or_tokens) {
    MtfCompletionRequest r;
    parse("{\"prompt\": [3, 4]}", &r);
    assert_int_equal(r.prompts->len, 1);
    const MtfPrompt *prompt = g_ptr_array_index(r.prompts, 0);
    assert_int_equal(g_array_index(prompt->tokens, int, 1), 4);
    mtf_completion_request_clear(&r);
    parse("{\"prompt\": [\"a\", [5], \"\"]}", &r);
    assert_int_equal(r.prompts->len, 3);
    prompt = g_ptr_array_index(r.prompts, 1);
    assert_int_equal(g_array_index(prompt->tokens, int, 0), 5);
    mtf_completion_request_clear(&r);
}

static bool parse_chat(const char *body, MtfCompletionRequest *request, GError **error) {
    return mtf_completion_request_parse(request, MTF_FORM_CHAT, &standard, body, strlen(body),
                                        error);
}

/* Parts of a content are lines of a text, and what a template is told goes with the messages. */
TEST(conversations_are_names_for_a_template) {
    g_autoptr(GError) error = NULL;
    MtfCompletionRequest r;
    const char *body =
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
        "\"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}], \"max_completion_tokens\": 7, "
        "\"stream_options\": {\"include_usage\": true}, \"tool_choice\": \"none\", "
        "\"response_format\": {\"type\": \"text\"}, \"chat_template_kwargs\": {\"x\": [1]}}";
    assert_true(parse_chat(body, &r, &error));
    g_autofree char *names = cJSON_PrintUnformatted(r.names);
    assert_string_equal(names, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\nb\"}],"
                               "\"x\":[1],\"add_generation_prompt\":true}");
    assert_int_equal(r.max_tokens, 7);
    assert_true(r.counts && r.prompts->len == 0);
    mtf_completion_request_clear(&r);
    assert_true(parse_chat("{\"messages\": [{\"role\": \"user\"}]}", &r, &error));
    assert_int_equal(r.max_tokens, MTF_FILL_CONTEXT);
    mtf_completion_request_clear(&r);
}

TEST(what_is_wrong_with_a_conversation_is_said) {
    static const char *const cases[][2] = {
        { "{}", "\"messages\" is missing" },
        { "{\"messages\": []}", "/messages: at least one" },
        { "{\"messages\": {}}", "/messages" },
        { "{\"messages\": [{\"content\": \"a\"}]}", "role" },
        { "{\"messages\": [{\"role\": 1}]}", "/messages/0/role" },
        { "{\"messages\": [{\"role\": \"a\", \"content\": 1}]}", "/messages/0/content" },
        { "{\"messages\": [{\"role\": \"a\", \"content\": [{\"type\": \"image_url\"}]}]}",
          "/messages/0/content/0/type: only parts of type \"text\"" },
        { "{\"messages\": [{\"role\": \"a\"}], \"tools\": [{}]}", "/tools: this is not done here" },
        { "{\"messages\": [{\"role\": \"a\"}], \"prompt\": \"a\"}", "/prompt" },
        { "{\"messages\": [{\"role\": \"a\"}], \"response_format\": {\"type\": \"json_object\"}}",
          "/response_format/type" },
        { "{\"messages\": [{\"role\": \"a\"}], \"chat_template_kwargs\": {\"messages\": 1}}",
          "/chat_template_kwargs/messages" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        MtfCompletionRequest r;
        assert_false(parse_chat(cases[i][0], &r, &error));
        if (strstr(error->message, cases[i][1]) == NULL)
            fail_msg("%s: \"%s\" says no \"%s\"", cases[i][0], error->message, cases[i][1]);
    }
}

TEST(what_is_wrong_is_said_with_its_place) {
    static const char *const cases[][2] = {
        { "{}", "\"prompt\" is missing" },
        { "[]", "the request" },
        { "{\"prompt\": 3}", "/prompt" },
        { "{\"prompt\": []}", "/prompt" },
        { "{\"prompt\": [[\"a\"]]}", "/prompt/0" },
        { "{\"prompt\": [-1]}", "/prompt/0" },
        { "{\"prompt\": \"a\", \"prompt\": \"b\"}", "prompt" },
        { "{\"prompt\": \"a\", \"n\": 0}", "/n" },
        { "{\"prompt\": \"a\", \"stop\": [\"1\", \"2\", \"3\", \"4\", \"5\"]}", "/stop" },
        { "{\"prompt\": \"a\", \"stop\": 1}", "/stop" },
        { "{\"prompt\": \"a\", \"stream\": 1}", "/stream" },
        { "{\"prompt\": \"a\", \"best_of\": 65}", "/best_of" },
        { "{\"prompt\": \"a\", \"best_of\": 2, \"n\": 3}", "\"best_of\" must be at least" },
        { "{\"prompt\": \"a\", \"best_of\": 2, \"stream\": true}", "leave out \"stream\"" },
        { "{\"prompt\": \"a\", \"max_tokens\": 0}", "\"max_tokens\": 0 says nothing" },
        { "{\"prompt\": \"a\", \"presence_penalty\": 2.5}", "/presence_penalty: a number from -2" },
        { "{\"prompt\": \"a\", \"frequency_penalty\": \"a\"}", "/frequency_penalty" },
        { "{\"prompt\": \"a\", \"logit_bias\": {\"a\": 1}}", "/logit_bias/a: a token's number" },
        { "{\"prompt\": \"a\", \"logit_bias\": {\"5\": 101}}",
          "/logit_bias/5: a number from -100" },
        { "{\"prompt\": \"a\", \"logit_bias\": []}", "/logit_bias" },
        { "{\"prompt\": \"a\", \"suffix\": \"b\"}", "/suffix: this is not done here" },
        { "{\"prompt\": \"a\"} x", "the request" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        MtfCompletionRequest r;
        assert_false(mtf_completion_request_parse(&r, MTF_FORM_TEXT, &standard, cases[i][0],
                                                  strlen(cases[i][0]), &error));
        if (strstr(error->message, cases[i][1]) == NULL)
            fail_msg("%s: \"%s\" says no \"%s\"", cases[i][0], error->message, cases[i][1]);
    }
}
