// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a table of numbers: refused in one sentence, or records of one length. */
#include "runtime/data/data_table.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/table", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    const MtfTableColumns columns = { 2, 1, 1 };
    g_autoptr(MtfDataFile) target = mtf_data_file_new("fuzz", NULL);
    g_autofree char *text = g_strndup((const char *)data, size);
    bool good = mtf_table_parse("fuzz", text, &columns, target, &error);
    mtf_fuzz_judge(good, error);
    g_assert(mtf_data_file_size(target) % 16 == 0);
    return good ? 0 : -1;
}
