// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a JSON file: refused in one sentence, or read, and then what is read prints to a
 * text that reads back to the same print. */
#include "layouts/base/json_writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/json", NULL };

/* Asks every place of the document for every type. */
static void visit(const MtfJson *where) {
    const char *string;
    double number;
    bool boolean;
    int64_t integer = 0;
    g_autoptr(GError) error = NULL;
    int types = mtf_json_string(where, &string, NULL) + mtf_json_boolean(where, &boolean, NULL) +
                mtf_json_array(where, NULL) + mtf_json_object(where, NULL) +
                mtf_json_number(where, &number, NULL);
    g_assert(types <= 1);
    bool good = mtf_json_integer(where, -5, 5, &integer, &error);
    mtf_fuzz_judge(good, error);
    g_assert(-5 <= integer && integer <= 5);
    MtfJson child;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child))
        visit(&child);
}

static char *print(const MtfJsonDocument *document) {
    return mtf_json_print(mtf_json_root(document).node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document(data, size);
    if (document == NULL)
        return -1;
    MtfJson root = mtf_json_root(document);
    visit(&root);
    g_autofree char *text = print(document);
    g_autoptr(MtfJsonDocument) again = mtf_fuzz_document((const uint8_t *)text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = print(again);
    g_assert_cmpstr(text, ==, text_again);
    return 0;
}
