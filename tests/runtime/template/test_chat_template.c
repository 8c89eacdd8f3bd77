// SPDX-License-Identifier: GPL-3.0-or-later
/* Templates of conversations against what Jinja itself makes of them (tests/golden/chat). */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "runtime/template/chat_template.h"

#include <glib/gstdio.h>
#include <string.h>

static const char *text_at(const MtfJson *row, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row->node, key));
}

static void judge(const MtfJson *row) {
    g_autoptr(GError) error = NULL;
    const char *wanted = text_at(row, "said"), *source = text_at(row, "template");
    g_autoptr(MtfChatTemplate) template = mtf_chat_template_parse("t", source, &error);
    g_autofree char *said = NULL;
    if (template != NULL)
        said = mtf_chat_template_spell(
            template, cJSON_GetObjectItemCaseSensitive(row->node, "names"), &error);
    if ((said == NULL) != (wanted == NULL) || (said != NULL && strcmp(said, wanted) != 0))
        fail_msg("%s\nsays \"%s\"\nand should \"%s\"\n%s", source, said, wanted,
                 error != NULL ? error->message : "");
    assert_true((said == NULL) == (error != NULL));
    assert_true(error == NULL || mtf_error_exit_status(error) == 2);
}

TEST(conversations_are_spelled_as_jinja_does) {
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_load("tests/golden/chat/cases.json", NULL);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document), row;
    assert_true(mtf_json_length(&root) > 30);
    for (bool more = mtf_json_first(&root, &row); more; more = mtf_json_next(&row))
        judge(&row);
}

static void refuses(const char *text, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfChatTemplate) template = mtf_chat_template_parse("t.jinja", text, &error);
    assert_null(template);
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(what_is_not_supported_is_told_by_name_and_line) {
    refuses("\n{% macro f(x) %}{% endmacro %}", "t.jinja: line 2: the statement \"macro\" is not");
    refuses("a\n\n{{ x | sort }}", "line 3: the filter \"sort\" is not supported");
    refuses("{{ x is callable }}", "line 1: the test \"callable\"");
    refuses("{{ x.format(1) }}", "the method \"format\"");
    refuses("{{ lipsum() }}", "the function \"lipsum\"");
}

TEST(malformed_templates_are_told) {
    refuses("{{ 'a", "a text in quotes has no end");
    refuses("{{ a", "a tag has no end");
    refuses("{# a", "a comment has no end");
    refuses("{{ a ! b }}", "a character that no tag may have");
    refuses("{% if a %}b", "{% endif %} is expected");
    refuses("{% endfor %}", "{% endfor %} ends nothing");
    refuses("{% for a %}{% endfor %}", "\"in\" is expected");
    refuses("{{ [1, 2 }}", "\"]\" is expected");
    refuses("{{ a b }}", "the tag should end before \"b\"");
    refuses("{{ namespace(a=(b=1)) }}", "\")\" is expected, not \"=\"");
    refuses("{{ [a=1] }}", "\"]\" is expected, not \"=\"");
    refuses("{{ }}", "a value is expected");
    refuses("{% set 1 = 2 %}", "a name is expected");
    g_autoptr(GString) deep = g_string_new("{{ ");
    for (int i = 0; i < 10000; i++)
        g_string_append_c(deep, '(');
    g_string_append(deep, " }}");
    refuses(deep->str, "more than 64 parts lie inside one another");
    g_string_assign(deep, "{{ 1");
    for (int i = 0; i < 10000; i++)
        g_string_append(deep, " + 1");
    g_string_append(deep, " }}");
    refuses(deep->str, "more than 500 parts lie inside one another");
}

static void says(const char *text, const char *wanted) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfChatTemplate) template = mtf_chat_template_parse("t", text, &error);
    cJSON *names = cJSON_CreateObject();
    g_autofree char *said =
        template != NULL ? mtf_chat_template_spell(template, names, &error) : NULL;
    cJSON_Delete(names);
    if (said == NULL)
        fail_msg("%s: %s", text, error->message);
    assert_string_equal(said, wanted);
}

TEST(a_sign_binds_before_filters_and_behind_members) {
    says("{{ -7|string + '!' }}", "-7!");
    says("{{ -2 is even }}", "True");
    says("{{ -[1, 2][1] }}{{ -{'a': 3}.a|string }}", "-2-3");
    says("{{ - -3 is odd }}", "True");
    says("{{ 5 - 2|string|int }}", "3");
}

static void fails(const char *text, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfChatTemplate) template = mtf_chat_template_parse("t", text, NULL);
    cJSON *names = cJSON_CreateObject();
    assert_non_null(template);
    assert_null(mtf_chat_template_spell(template, names, &error));
    cJSON_Delete(names);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(what_goes_wrong_is_told_by_line) {
    fails("a\n{{ raise_exception('no ' + 'tools') }}", "t: line 2: no tools");
    fails("\n\n{{ messages[0] }}", "line 3: something that is not defined has no \"members\"");
    fails("{% for a in range(1000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}",
          "more than 1000000 steps");
    fails("{{ range(1000000) }}", "a range has at most 10000 numbers");
    fails("{{ range(0, 1, 0) }}", "a range has at most 10000 numbers");
    fails("{{ range(1, 'a'.b, nothing) }}{{ 'a b'.split(' ', 2147483647)[2].c }}", "not defined");
    fails("{% set a = 'b' %}{% for i in range(99) %}{% set a = a + a %}{% endfor %}"
          "{% set n = namespace(a='bbbbbbbb') %}{% for i in range(99) %}"
          "{% set n.a = n.a + n.a %}{% endfor %}",
          "a text of more than");
    fails("{{ 1 // 0 }}", "not by 0");
    fails("{{ 1 + 'a' }}", "\"+\" is for two numbers, two texts or two lists");
    fails("{{ 'abc'[::0] }}", "by a step that is not 0");
    fails("{{ 'abc'|replace('', 'b') }}", "an empty text cannot be replaced");
    fails("{{ 'abc'.split('') }}", "a text cannot be split by an empty one");
    fails("{{ ['a']|map('upper') }}", "only map(attribute=…) is supported");
}

/* The folder's own tokens, and a template of its config, of a list, or of a file beside it. */
TEST(folders_say_their_template_and_tokens) {
    g_autofree char *folder = g_dir_make_tmp("meshtf-chat-XXXXXX", NULL);
    g_autofree char *config = g_build_filename(folder, "tokenizer_config.json", NULL);
    g_autofree char *file = g_build_filename(folder, "chat_template.jinja", NULL);
    static const char *const texts[] = {
        "{\"bos_token\": \"<s>\", \"chat_template\": \"{{ bos_token }}a\"}",
        "{\"bos_token\": {\"content\": \"<t>\", \"lstrip\": false}, \"chat_template\": [{\"name\": "
        "\"tool_use\", \"template\": \"b\"}, {\"name\": \"default\", \"template\": \"{{ bos_token "
        "}}c\"}]}",
        "{\"eos_token\": \"</s>\"}",
    };
    static const char *const wanted[] = { "<s>a", "<t>c", NULL, "</s>d" };
    cJSON *names = cJSON_CreateObject();
    for (int i = 0; i < 4; i++) {
        g_autoptr(GError) error = NULL;
        if (i < 3)
            assert_true(g_file_set_contents(config, texts[i], -1, NULL));
        else
            assert_true(g_file_set_contents(file, "{{ eos_token }}d", -1, NULL));
        g_autoptr(MtfChatTemplate) template = mtf_chat_template_load(folder, &error);
        assert_null(error);
        assert_true((template != NULL) == (wanted[i] != NULL));
        if (template == NULL)
            continue;
        g_autofree char *said = mtf_chat_template_spell(template, names, NULL);
        assert_string_equal(said, wanted[i]);
    }
    assert_true(g_file_set_contents(file, "\xff", -1, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(mtf_chat_template_load(folder, &error));
    assert_non_null(strstr(error->message, "is not UTF-8"));
    cJSON_Delete(names);
    g_unlink(config);
    g_unlink(file);
    g_rmdir(folder);
}
