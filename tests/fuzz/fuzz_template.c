// SPDX-License-Identifier: GPL-3.0-or-later
/* Any text as a template of conversations: refused in one sentence, or one that says a text or why not. */
#include "runtime/template/chat_template.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/template", NULL };

static const char names[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a \\n\"}, {\"role\": \"assistant\", "
    "\"content\": \"\\u00e9\"}], \"add_generation_prompt\": true, \"n\": [1.5, null, {}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autofree char *bytes = g_strndup((const char *)data, size);
    g_autofree char *text = g_utf8_make_valid(bytes, -1);
    g_autoptr(MtfChatTemplate) template = mtf_chat_template_parse("fuzz", text, &error);
    mtf_fuzz_judge(template != NULL, error);
    if (template == NULL)
        return -1;
    cJSON *given = cJSON_Parse(names);
    g_autofree char *said = mtf_chat_template_spell(template, given, &error);
    cJSON_Delete(given);
    mtf_fuzz_judge(said != NULL, error);
    g_assert(said == NULL || g_utf8_validate(said, -1, NULL));
    return 0;
}
