// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/report_plan.h"

#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

MtfPlan *mtf_test_read_back(MtfPlan *plan) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = mtf_plan_print(plan);
    MtfPlan *read = mtf_plan_parse("p.json", text, strlen(text), &error);
    mtf_plan_free(plan);
    if (read == NULL)
        g_error("%s", error->message);
    return read;
}

/* Of a training graph, which it takes. */
static MtfPlan *plan_of(MtfGraph *training, const char *mesh_text, const char *rules_text) {
    g_autoptr(GError) error = NULL;
    MtfMesh mesh;
    MtfPlan *plan = g_new0(MtfPlan, 1);
    plan->training = training;
    if (!mtf_mesh_parse(mesh_text, 0, &mesh, &error))
        g_error("%s", error->message);
    mtf_graph_canonicalize(plan->training);
    plan->graph = mtf_graph_copy(plan->training);
    MtfDivision whole = { .microbatches = 1 };
    if (!mtf_graph_execute(plan->graph, &whole, &(MtfKept){ 0 }, 1, &error))
        g_error("%s", error->message);
    g_autoptr(MtfRules) rules = mtf_rules_parse(plan->graph, &mesh, rules_text, NULL, &error);
    if (rules == NULL)
        g_error("%s", error->message);
    plan->layout = mtf_layout_from_rules(plan->graph, &mesh, rules);
    plan->precision = g_strdup("f32");
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    return mtf_test_read_back(plan);
}

/* Takes the forward graph. */
static MtfGraph *train(MtfGraph *forward) {
    g_autoptr(GError) error = NULL;
    MtfGraph *training = mtf_training_graph(forward, &error);
    mtf_graph_free(forward);
    if (training == NULL)
        g_error("%s", error->message);
    return training;
}

MtfPlan *mtf_test_plan_of(MtfGraph *forward, const char *mesh, const char *rules) {
    return plan_of(train(forward), mesh, rules);
}

MtfPlan *mtf_test_mixed_plan_of(MtfGraph *forward, const char *mesh, const char *rules) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = train(forward);
    MtfGraph *mixed = mtf_mixed_precision(training, &error);
    if (mixed == NULL)
        g_error("%s", error->message);
    return plan_of(mixed, mesh, rules);
}

static MtfGraph *parse(const char *text) {
    g_autoptr(GError) error = NULL;
    MtfJsonDocument *document = mtf_json_document_parse("g.json", text, strlen(text), &error);
    MtfJson root;
    MtfGraph *graph = NULL;
    if (document != NULL) {
        root = mtf_json_root(document);
        graph = mtf_graph_from_json(&root, NULL, &error);
    }
    mtf_json_document_free(document);
    if (graph == NULL)
        g_error("%s", error->message);
    return graph;
}

MtfPlan *mtf_test_hostile_plan(void) {
    static const char text[] =
        "{\"meshtf_graph\": 1, \"name\": \"a\\\"b'c<script>alert(1)</script>&lt;\\\\N é漢 "
        "\\u0001]]>-->\", \"dimensions\": {\"b<i>&amp\": 8, \"h\\\"'\\\\G\": 12, \"io\": 4}, "
        "\"inputs\": [{\"name\": \"x<\", \"dims\": [\"b<i>&amp\", \"io\"], \"feed\": "
        "\"features\"}], \"variables\": [{\"name\": \"<script>w</script>\\\\N\\\"'&é\", \"dims\": "
        "[\"io\", \"h\\\"'\\\\G\"], \"init\": \"ones\"}], \"operations\": [{\"name\": \"y\\\"\", "
        "\"op\": \"einsum\", \"inputs\": [\"x<\", \"<script>w</script>\\\\N\\\"'&é\"], \"dims\": "
        "[\"b<i>&amp\", \"h\\\"'\\\\G\"]}, {\"repeat\": {\"name\": \"lay<er>&\", \"count\": 2, "
        "\"carry\": [{\"name\": \"c&\", \"init\": \"y\\\"\", \"next\": \"z\"}], \"operations\": "
        "[{\"name\": \"z\", \"op\": \"relu\", \"inputs\": [\"c&\"]}]}}, {\"name\": "
        "\"</svg></script><img/src=q/onerror=alert(1)>\", \"op\": \"reduce_sum\", \"inputs\": "
        "[\"lay<er>&/c&\"], \"dims\": []}], \"loss\": "
        "\"</svg></script><img/src=q/onerror=alert(1)>\", \"optimizer\": {\"kind\": \"sgd\", "
        "\"rate\": 0.1}}";
    return mtf_test_plan_of(parse(text), "r<b>\"&:2;c\\N:2", "b<i>&amp:r<b>\"&;h\"'\\G:c\\N");
}

MtfPlan *mtf_test_small_plan(const char *mesh, const char *rules) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'small', 'dimensions': {'batch': 8, 'io': 4, 'hidden': 12}, "
        "'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}], 'variables': "
        "[{'name': 'w', 'dims': ['io', 'hidden'], 'init': 'ones'}], 'operations': [{'name': 'h', "
        "'op': 'einsum', 'inputs': ['x', 'w'], 'dims': ['batch', 'hidden']}, {'name': 'y', 'op': "
        "'relu', 'inputs': ['h']}, {'name': 'l', 'op': 'reduce_sum', 'inputs': ['y'], 'dims': "
        "[]}], 'loss': 'l', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";
    return mtf_test_plan_of(mtf_test_graph(text), mesh, rules);
}

MtfPlan *mtf_test_layered_plan(void) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'layered', 'dimensions': {'batch': 8, 'hidden': 4, 'inner': "
        "12, 'io': 4}, 'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}], "
        "'variables': [{'name': 'u', 'dims': ['io', 'hidden'], 'init': 'ones'}], 'operations': "
        "[{'name': 'start', 'op': 'einsum', 'inputs': ['x', 'u'], 'dims': ['batch', 'hidden']}, "
        "{'repeat': {'name': "
        "'layer', 'count': 4, 'carry': [{'name': 'c', 'init': 'start', 'next': 'z'}], "
        "'variables': [{'name': 'w', 'dims': ['hidden', 'inner'], 'init': 'ones'}, {'name': 'v', "
        "'dims': ['inner', 'hidden'], 'init': 'ones'}], 'operations': [{'name': 'h', 'op': "
        "'einsum', 'inputs': ['c', 'w'], 'dims': ['batch', 'inner']}, {'name': 'y', 'op': "
        "'einsum', 'inputs': ['h', 'v'], 'dims': ['batch', 'hidden']}, {'name': 'z', 'op': 'add', "
        "'inputs': ['c', 'y']}]}}, {'name': 'l', 'op': 'reduce_sum', 'inputs': ['layer/c'], "
        "'dims': []}], 'loss': 'l', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";
    return mtf_test_plan_of(mtf_test_graph(text), "rows:2;cols:2", "batch:rows;inner:cols");
}
