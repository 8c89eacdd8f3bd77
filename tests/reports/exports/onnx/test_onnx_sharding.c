// SPDX-License-Identifier: GPL-3.0-or-later
/* Placements in ONNX's words, after the examples of its proposal 0006. */
#include "tests/support/cmocka.h"

#include "reports/exports/onnx/onnx_sharding.h"

/* A matrix [a:4, b:4] on rows:2;cols:2 with these placements; the message as text:
 * "device -1 -2 | -1: 0 1 | -2: 2 3 | axis 0 in 2". */
static char *spell(int rows, int cols) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("matrix");
    MtfShape shape = { 2,
                       { mtf_graph_add_dimension(graph, "a", 4, NULL),
                         mtf_graph_add_dimension(graph, "b", 4, NULL) } };
    mtf_graph_add_input(graph, "x", &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2;cols:2", 0, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    layout->tensors[0].axis[0] = (int16_t)rows;
    layout->tensors[0].axis[1] = (int16_t)cols;
    MtfPlan plan = { .graph = graph, .layout = layout };
    GByteArray *message = mtf_onnx_sharding(&plan, 0, "x", 0);
    if (message == NULL)
        return g_strdup("none");
    GString *text = g_string_new("device");
    MtfWire wire = { message->data, message->data + message->len, false };
    MtfWireField field, inner, part;
    while (mtf_wire_next(&wire, &field)) {
        if (field.number == 2)
            g_string_append_printf(text, " %d", (int)(int64_t)field.value);
        while (field.number == 3 && mtf_wire_next(&field.bytes, &inner))
            g_string_append_printf(text, inner.number == 1 ? " | %d:" : " %d",
                                   (int)(int64_t)inner.value);
        while (field.number == 4 && mtf_wire_next(&field.bytes, &inner)) {
            if (inner.number == 1)
                g_string_append_printf(text, " | axis %d", (int)inner.value);
            while (inner.number == 2 && mtf_wire_next(&inner.bytes, &part))
                if (part.number == 3)
                    g_string_append_printf(text, " in %d", (int)part.value);
        }
    }
    g_byte_array_unref(message);
    return g_string_free(text, FALSE);
}

TEST(placements_are_said_as_the_proposal_says_them) {
    const struct {
        int rows, cols;
        const char *text;
    } cases[] = {
        { 0, 1, "device 0 1 2 3 | axis 0 in 2 | axis 1 in 2" },
        { 1, 0, "device 0 2 1 3 | axis 0 in 2 | axis 1 in 2" },
        { 0, MTF_REPLICATED, "device -1 -2 | -1: 0 1 | -2: 2 3 | axis 0 in 2" },
        { MTF_REPLICATED, 0, "device -1 -2 | -1: 0 2 | -2: 1 3 | axis 0 in 2" },
        { MTF_REPLICATED, MTF_REPLICATED, "device -1 | -1: 0 1 2 3" },
        { 0, 0, "device 0 1 2 3 | axis 0 in 4" },
        { MTF_PARTIAL_SUM, 0, "none" },
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = spell(cases[i].rows, cases[i].cols);
        assert_string_equal(text, cases[i].text);
    }
}
