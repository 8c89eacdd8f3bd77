// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a machine file: refused in one sentence, or a machine that writes itself to a file
 * which reads back to the same file, and that can be cut into slices. */
#include "cost/machine/machine.h"
#include "layouts/base/json_writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "layouts/library/machines", NULL };

static char *print(const MtfMachine *machine) {
    cJSON *tree = mtf_machine_to_json(machine);
    char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return text;
}

static MtfMachine *read_machine(const char *text, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document((const uint8_t *)text, size);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    MtfMachine *machine = mtf_machine_from_json(&root, &error);
    mtf_fuzz_judge(machine != NULL, error);
    return machine;
}

static void cut(const MtfMachine *machine, int64_t devices) {
    g_autoptr(GError) error = NULL;
    MtfNetwork slice;
    bool good = mtf_machine_slice(machine, devices, &slice, &error);
    mtf_fuzz_judge(good, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfMachine) machine = read_machine((const char *)data, size);
    if (machine == NULL)
        return -1;
    g_autofree char *text = print(machine);
    g_autoptr(MtfMachine) again = read_machine(text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = print(again);
    g_assert_cmpstr(text, ==, text_again);
    cut(machine, 1);
    cut(machine, 12);
    return 0;
}
