// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a table of clicks: refused in one sentence, or records of one length. */
#include "runtime/data/data_clicks.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/clicks", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    const MtfClickColumns columns = { 2, 3 };
    g_autoptr(MtfDataFile) target = mtf_data_file_new("fuzz", NULL);
    g_autofree char *text = g_strndup((const char *)data, size);
    bool good = mtf_clicks_parse("fuzz", text, &columns, target, &error);
    mtf_fuzz_judge(good, error);
    g_assert(mtf_data_file_size(target) % 24 == 0);
    return good ? 0 : -1;
}
