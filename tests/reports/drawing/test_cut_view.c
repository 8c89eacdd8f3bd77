// SPDX-License-Identifier: GPL-3.0-or-later
/* What is drawn of a cut graph: frames, boxes, and what goes between them. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "reports/drawing/cut_view.h"
#include "reports/drawing/dot_graph.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/staged_plan.h"

#include <string.h>

#define LAYERS 10
#define STAGES 5

static char *const folders[] = { "stage-0", "stage-1", "stage-2", "stage-3", "stage-4", NULL };

typedef struct {
    MtfMachine *machine;
    MtfPipelinePlan *plan;
    MtfPipelineFacts *facts;
    MtfPartitionView *view;
} Cut;

/* c -> h = c w, y = h v, z = c + y ten times over, between "start" and the loss "l", two layers a stage. Layer
 * `cut` ends in the stage behind with y; -1: none does. */
static Cut cut_of(int cut) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'layered', 'dimensions': {'batch': 8, 'hidden': 4, 'inner': "
        "12, 'io': 4}, 'inputs': [{'name': 'x', 'dims': ['batch', 'io'], 'feed': 'features'}], "
        "'variables': [{'name': 'u', 'dims': ['io', 'hidden'], 'init': 'ones'}], 'operations': "
        "[{'name': 'start', 'op': 'einsum', 'inputs': ['x', 'u'], 'dims': ['batch', 'hidden']}, "
        "{'repeat': {'name': 'layer', 'count': " G_STRINGIFY(
            LAYERS) ", 'carry': [{'name': 'c', "
                    "'init': 'start', 'next': 'z'}], 'variables': [{'name': 'w', 'dims': ['hidden', 'inner'], "
                    "'init': 'ones'}, {'name': 'v', 'dims': ['inner', 'hidden'], 'init': 'ones'}], "
                    "'operations': [{'name': 'h', 'op': 'einsum', 'inputs': ['c', 'w'], 'dims': ['batch', "
                    "'inner']}, {'name': 'y', 'op': 'einsum', 'inputs': ['h', 'v'], 'dims': ['batch', "
                    "'hidden']}, {'name': 'z', 'op': 'add', 'inputs': ['c', 'y']}]}}, {'name': 'l', 'op': "
                    "'reduce_mean', 'inputs': ['layer/c'], 'dims': []}], 'loss': 'l', 'optimizer': {'kind': "
                    "'sgd', 'rate': 0.1}}";
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        bool behind = op->layer.iteration == cut && !g_str_has_suffix(op->name, "/h");
        op->stage = op->layer.block > 0 ? 1 + op->layer.iteration / (LAYERS / STAGES) + behind : 1;
        if (strcmp(op->name, "l") == 0)
            op->stage = STAGES;
    }
    Cut it = { .machine = mtf_planning_machine("cpu-host", NULL, NULL) };
    it.plan = mtf_test_staged_read_back(
        mtf_test_staged_plan(it.machine, graph, STAGES, (MtfTestStages){ 0 }));
    it.facts = mtf_pipeline_facts_new(it.plan, NULL);
    assert_non_null(it.facts);
    it.view = mtf_cut_view_new(it.facts, folders);
    return it;
}

static void clear(Cut *it) {
    mtf_partition_view_free(it->view);
    mtf_pipeline_facts_free(it->facts);
    mtf_pipeline_plan_free(it->plan);
    mtf_machine_free(it->machine);
}

static const MtfViewBox *box_at(const Cut *it, guint box) {
    return &g_array_index(it->view->boxes, MtfViewBox, box);
}

static void assert_section(const Cut *it, guint section, const char *title) {
    const MtfViewSection *s = &g_array_index(it->view->sections, MtfViewSection, section);
    g_autofree char *shown = g_strchomp(g_strdup(s->title));
    assert_string_equal(shown, title);
}

static bool leads(const Cut *it, int from, int to) {
    for (guint i = 0; i < it->view->arrows->len; i++) {
        const MtfViewArrow *arrow = &g_array_index(it->view->arrows, MtfViewArrow, i);
        if (arrow->from == from && arrow->to == to)
            return true;
    }
    return false;
}

/* A micro-batch of 4 rows of 4 numbers of 4 bytes. */
TEST(equal_layers_are_a_box_and_equal_stages_a_frame) {
    Cut it = cut_of(-1);
    static const char *const titles[] = {
        "start", "layer 0–1  × 2", "layer 2–3  × 2", "layer 8–9  × 2", "l", "step"
    };
    assert_int_equal(it.view->sections->len, 3);
    assert_section(&it, 0, "stage 0 · device 0");
    assert_section(&it, 1, "stages 1–3, alike · the first on device 1");
    assert_section(&it, 2, "stage 4 · device 4");
    assert_int_equal(it.view->boxes->len, G_N_ELEMENTS(titles) + 2);
    for (guint b = 0; b < G_N_ELEMENTS(titles); b++)
        assert_string_equal(box_at(&it, b)->title, titles[b]);
    assert_string_equal(box_at(&it, 1)->detail, "6 operations");
    static const int way[] = { 0, 1, 6, 2, 7, 3, 4, 5 };
    for (gsize i = 0; i + 1 < G_N_ELEMENTS(way); i++)
        assert_true(leads(&it, way[i], way[i + 1]));
    assert_int_equal(it.view->arrows->len, G_N_ELEMENTS(way) - 1);
    const MtfViewBox *pill = box_at(&it, 7);
    assert_int_equal(pill->kind, MTF_BOX_TRANSFER);
    assert_int_equal(pill->notes->len, 2);
    assert_string_equal(g_ptr_array_index(pill->notes, 0), "layer/7/z · 64 B ↓");
    assert_string_equal(g_ptr_array_index(pill->notes, 1), "grad/layer/7/z · 64 B ↑");
    clear(&it);
}

/* h of layer 5 goes to the stage behind, 12 numbers for each of 4 rows, and c, which layer 4 makes. */
TEST(a_layer_that_is_cut_is_part_of_two_frames) {
    Cut it = cut_of(5);
    int parts = 0, found = 0;
    for (guint b = 0; b < it.view->boxes->len; b++) {
        const MtfViewBox *box = box_at(&it, b);
        parts += strcmp(box->title, "layer 5, part") == 0;
        for (guint i = 0; i < box->notes->len; i++) {
            const char *note = g_ptr_array_index(box->notes, i);
            found +=
                strcmp(note, "layer/5/h · 192 B ↓") == 0 || strcmp(note, "layer/4/z · 64 B ↓") == 0;
        }
    }
    assert_int_equal(parts, 2);
    assert_int_equal(found, 2);
    clear(&it);
}

TEST(frames_have_the_colours_of_domains_and_lead_to_pages) {
    Cut it = cut_of(-1);
    const MtfDotStyle style = { "cut", NULL, "", true };
    g_autofree char *dot = mtf_dot_graph(it.view, &style, NULL);
    g_autofree char *again = mtf_dot_graph(it.view, &style, NULL);
    assert_non_null(dot);
    assert_string_equal(dot, again);
    assert_non_null(strstr(dot, "URL=\"stage-1/index.html\""));
    assert_null(strstr(dot, "URL=\"stage-2/index.html\""));
    /* hsl(205 65% 76%): red .76 - .156, blue .76 + .156, green 25/60 of the way from blue to red. */
    assert_non_null(strstr(dot, "fillcolor=\"#9ac8ea\""));
    clear(&it);
}
