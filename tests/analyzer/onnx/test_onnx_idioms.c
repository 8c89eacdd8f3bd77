// SPDX-License-Identifier: GPL-3.0-or-later
/* Gelu and norms over rows that a file writes out in small operators. That they give the same numbers is golden
 * (tests/golden/onnx/written_out). */
#include "tests/support/cmocka.h"

#include "layouts/graph/operation_table.h"
#include "tests/support/cases/onnx_maker.h"

#include <string.h>

/* The kinds of operations of the graph [rows:2, features:8] -> y, in order, "gelu_exact" or "add multiply". */
static char *kinds_of(GByteArray *nodes) {
    const MtfOnnxImport request = { .standard_batch = 2, .standard_length = 16 };
    g_autoptr(GError) error = NULL;
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "x: rows,8; z: rows,8");
    static const struct {
        const char *name;
        double value;
    } numbers[] = { { "half", 0.5 },
                    { "quarter", 0.25 },
                    { "one", 1 },
                    { "two", 2 },
                    { "three", 3 },
                    { "root2", 1.4142135381698608 },
                    { "inverse", 0.7071067690849304 },
                    { "root2pi", 0.7978845834732056 },
                    { "cubic", 0.044714998453855515 },
                    { "epsilon", 1e-5 } };
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        mtf_make_tensor(g, numbers[i].name, MTF_ONNX_FLOAT, "", &numbers[i].value);
    double ramp[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    for (int i = 0; i < 3; i++)
        mtf_make_tensor(g, (const char *const[]){ "last", "first", "second" }[i], MTF_ONNX_INT64,
                        "1", (const double[]){ i - 1 });
    mtf_make_tensor(g, "w", MTF_ONNX_FLOAT, "8", ramp);
    mtf_make_tensor(g, "b", MTF_ONNX_FLOAT, "8", ramp);
    g_byte_array_append(g, nodes->data, nodes->len);
    g_byte_array_unref(nodes);
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "rows,8");
    g_autoptr(MtfGraph) graph = mtf_make_import(g, &request, &error);
    assert_null(error);
    GString *kinds = g_string_new(NULL);
    for (int i = 0; i < (int)graph->operations->len; i++)
        g_string_append_printf(kinds, "%s%s", i > 0 ? " " : "",
                               mtf_operation_row(mtf_graph_operation(graph, i)->kind)->name);
    return g_string_free(kinds, FALSE);
}

/* "Div x,root2 a" lines between semicolons as nodes. */
static GByteArray *nodes_of(const char *text) {
    GByteArray *nodes = g_byte_array_new();
    g_auto(GStrv) lines = g_strsplit(text, "; ", -1);
    for (int i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", 4);
        mtf_make_node(nodes, words[0], words[1], words[2], words[3] != NULL ? words[3] : "");
    }
    return nodes;
}

static void becomes(const char *text, const char *kinds) {
    g_autofree char *made = kinds_of(nodes_of(text));
    assert_string_equal(made, kinds);
}

static bool is_whole(const char *text, const char *kinds) {
    g_autofree char *made = kinds_of(nodes_of(text));
    return strcmp(made, kinds) == 0;
}

#define ERF "Div x,root2 a; Erf a e; Add e,one g; "
#define TANH "Add x,q s; Mul s,root2pi u; Tanh u e; Add one,e g; "

TEST(gelu_written_out_is_one_operation) {
    becomes(ERF "Mul x,g p; Mul p,half y", "gelu_exact");
    becomes(ERF "Mul x,half p; Mul p,g y", "gelu_exact");
    becomes(ERF "Mul g,half p; Mul x,p y", "gelu_exact");
    becomes("Mul inverse,x a; Erf a e; Add one,e g; Mul half,x p; Mul g,p y", "gelu_exact");
    becomes("Pow x,three c; Mul c,cubic q; " TANH "Mul x,half p; Mul p,g y", "gelu");
    becomes("Mul x,x r; Mul r,x c; Mul cubic,c q; " TANH "Mul x,g p; Mul p,half y", "gelu");
}

/* What reads a part of it still finds the part. */
TEST(parts_that_are_read_stay) {
    becomes(ERF "Mul x,g p; Mul p,half h; Add h,e y", "scale erf gelu_exact add");
}

TEST(other_products_are_no_gelu) {
    assert_false(is_whole(ERF "Mul x,g p; Mul p,quarter y", "gelu_exact"));
    assert_false(is_whole(ERF "Mul z,g p; Mul p,half y", "gelu_exact"));
    assert_false(is_whole(ERF "Mul x,g p; Mul p,w y", "gelu_exact"));
    assert_false(is_whole(ERF "Mul x,x q; Mul q,g p; Mul p,half y", "gelu_exact"));
    assert_false(
        is_whole("Div x,two a; Erf a e; Add e,one g; Mul x,g p; Mul p,half y", "gelu_exact"));
    assert_false(
        is_whole("Div x,root2 a; Erf a e; Add e,two g; Mul x,g p; Mul p,half y", "gelu_exact"));
    assert_false(is_whole("Pow z,three c; Mul c,cubic q; " TANH "Mul x,half p; Mul p,g y", "gelu"));
    assert_false(is_whole("Pow x,two c; Mul c,cubic q; " TANH "Mul x,half p; Mul p,g y", "gelu"));
}

#define CENTRED "ReduceMean x,last m; Sub x,m d; "
#define ROOT "Add v,epsilon w1; Sqrt w1 s; "
#define NORM CENTRED "Pow d,two q; ReduceMean q,last v; " ROOT

TEST(norms_written_out_are_one_operation) {
    static const char *const whole = "reduce_mean variance normalize";
    becomes(NORM "Div d,s n; Mul n,w p; Add p,b y", whole);
    becomes(NORM "Div d,s n; Mul w,n p; Add b,p y", whole);
    becomes(CENTRED "Mul d,d q; ReduceMean q,second v; " ROOT "Div d,s n; Mul n,w p; Add p,b y",
            whole);
    becomes(NORM "Sub x,m again; Div again,s n; Mul n,w p; Add p,b y", whole);
    becomes(NORM "Div d,s y", "reduce_mean variance constant normalize");
}

TEST(other_quotients_are_no_norm) {
    static const char *const whole = "reduce_mean variance normalize";
    assert_false(is_whole(CENTRED "Pow d,three q; ReduceMean q,last v; " ROOT
                                  "Div d,s n; Mul n,w p; Add p,b y",
                          whole));
    assert_false(is_whole(CENTRED "Pow d,two q; ReduceMean q,first v; " ROOT
                                  "Div d,s n; Mul n,w p; Add p,b y",
                          whole));
    assert_false(is_whole("ReduceMean z,last m; Sub x,m d; Pow d,two q; ReduceMean q,last v; " ROOT
                          "Div d,s n; Mul n,w p; Add p,b y",
                          whole));
    assert_false(is_whole(NORM "Sub z,m other; Div other,s n; Mul n,w p; Add p,b y", whole));
    assert_false(is_whole(NORM "Div d,s n; Mul n,z p; Add p,b y", whole));
    assert_false(is_whole(CENTRED "Pow d,two q; ReduceMean q,last v; Add v,b w1; Sqrt w1 s; "
                                  "Div d,s n; Mul n,w p; Add p,b y",
                          whole));
}
