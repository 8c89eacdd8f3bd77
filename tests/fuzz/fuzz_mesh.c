// SPDX-License-Identifier: GPL-3.0-or-later
/* Any text as a mesh, "rows:4;cols:2": refused in one sentence, or a mesh that prints to a text
 * which parses to the same mesh. */
#include "layouts/placement/mesh.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/mesh", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    MtfMesh mesh, again;
    bool good = mtf_mesh_parse(text, 24, &mesh, &error);
    mtf_fuzz_judge(good, error);
    if (!good)
        return -1;
    g_assert(mtf_mesh_size(&mesh) >= 1);
    g_autofree char *printed = mtf_mesh_format(&mesh);
    g_assert(mtf_mesh_parse(printed, mtf_mesh_size(&mesh), &again, NULL));
    g_assert(mtf_mesh_equal(&mesh, &again));
    return 0;
}
