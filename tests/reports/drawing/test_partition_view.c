// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "reports/drawing/partition_view.h"
#include "reports/markup/svg_inline.h"
#include "tests/support/cases/report_plan.h"

#include <string.h>

typedef struct {
    MtfPlan *plan;
    MtfStepFacts *facts;
    MtfStepParts *parts;
} Step;

static Step step_of(MtfPlan *plan) {
    Step step = { plan, mtf_step_facts_new(plan, NULL), NULL };
    assert_non_null(step.facts);
    step.parts = mtf_step_parts_new(step.facts);
    return step;
}

static void clear_step(Step *step) {
    mtf_step_parts_free(step->parts);
    mtf_step_facts_free(step->facts);
    mtf_plan_free(step->plan);
}

static Step layered(void) {
    return step_of(mtf_test_layered_plan());
}

/* Four layers: the rules lay them out alike. */
TEST(layers_laid_out_alike_are_one_part) {
    Step step = layered();
    assert_int_equal(step.parts->parts->len, 3);
    assert_string_equal(mtf_step_part(step.parts, 0)->title, "before layer 0");
    assert_string_equal(mtf_step_part(step.parts, 1)->title, "layer 0–3");
    assert_int_equal(mtf_step_part(step.parts, 1)->layers, 4);
    assert_string_equal(mtf_step_part(step.parts, 2)->title, "after layer 3");
    clear_step(&step);
}

/* The decoder's layers stand beside what is computed of the encoder, whose part ends before them. */
TEST(what_lies_between_two_stacks_is_called_after_the_next_layers) {
    const MtfModelFamily *family = mtf_model_family_find("transformer", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    MtfGraph *forward = mtf_model_build(family, preset, NULL, NULL);
    Step step = step_of(mtf_test_plan_of(forward, "a:2", "batch:a"));
    assert_true(step.parts->parts->len > 3);
    for (int p = 0; p < (int)step.parts->parts->len; p++) {
        const MtfStepPart *part = mtf_step_part(step.parts, p);
        bool outside =
            g_str_has_prefix(part->title, "before ") || g_str_has_prefix(part->title, "after ");
        assert_true(outside == (part->run < 0));
    }
    clear_step(&step);
}

/* Layer 2 keeps its weights in pieces: layers 0 and 1, layer 2, and layer 3, which is like the
 * first. */
TEST(a_layer_laid_out_otherwise_is_a_part_of_its_own) {
    MtfPlan *plan = mtf_test_layered_plan();
    int tensor = mtf_graph_find_tensor(plan->graph, "layer/2/w");
    plan->layout->tensors[tensor].axis[0] =
        (int16_t)mtf_graph_find_dimension(plan->graph, "hidden");
    g_free(plan->program_sha256);
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    plan->program_sha256 = mtf_program_digest(program);
    Step step = step_of(plan);
    assert_int_equal(step.parts->parts->len, 5);
    assert_string_equal(mtf_step_part(step.parts, 1)->title, "layer 0–1");
    assert_string_equal(mtf_step_part(step.parts, 2)->title, "layer 2");
    assert_string_equal(mtf_step_part(step.parts, 3)->title, "layer 3");
    assert_int_equal(mtf_step_part(step.parts, 2)->alike, 2);
    assert_int_equal(mtf_step_part(step.parts, 3)->alike, 1);
    clear_step(&step);
}

TEST(the_parts_add_up_to_the_step) {
    Step step = layered();
    int64_t nanoseconds = 0, payload = 0, expected = 0;
    for (guint p = 0; p < step.parts->parts->len; p++)
        for (int f = 0; f < MTF_PART_PHASES; f++) {
            nanoseconds += mtf_step_part(step.parts, (int)p)->figures[f].nanoseconds;
            payload += mtf_step_part(step.parts, (int)p)->figures[f].payload;
        }
    for (guint i = 0; i < step.facts->traffic->len; i++)
        expected += g_array_index(step.facts->traffic, MtfTrafficRow, i).bytes;
    assert_int_equal(nanoseconds, step.facts->schedule->nanoseconds);
    assert_int_equal(payload, expected);
    clear_step(&step);
}

static int phase_of(const Step *step, const char *tensor) {
    const MtfGraph *graph = step->plan->graph;
    int found = mtf_graph_find_tensor(graph, tensor);
    assert_true(found >= 0);
    return step->parts->phases[mtf_graph_tensor(graph, found)->producer];
}

/* What a batch normalisation keeps of its batches is read by later steps alone; what it normalises with is read
 * by this one. */
TEST(running_statistics_stand_with_the_updates) {
    const MtfModelFamily *family = mtf_model_family_find("resnet", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    MtfGraph *forward = mtf_model_build(family, preset, NULL, NULL);
    Step step = step_of(mtf_test_plan_of(forward, "a:2", "batch:a"));
    assert_int_equal(phase_of(&step, "stem/norm/batch_mean"), 0);
    assert_int_equal(phase_of(&step, "stem/norm/batch_variance"), 0);
    assert_int_equal(phase_of(&step, "stem/norm/mean_share"), 2);
    assert_int_equal(phase_of(&step, "stem/norm/mean_kept"), 2);
    assert_int_equal(phase_of(&step, "stem/norm/variance_next"), 2);
    assert_int_equal(phase_of(&step, "loss"), 0);
    clear_step(&step);
}

/* In bfloat16 a running mean is cast on its way to the variable: all of it stands with the layer that it is of,
 * none with the last part (188 boxes of Inception's did). */
TEST(what_is_kept_of_a_layer_stands_with_it_in_bfloat16) {
    const MtfModelFamily *family = mtf_model_family_find("resnet", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    MtfGraph *forward = mtf_model_build(family, preset, NULL, NULL);
    Step step = step_of(mtf_test_mixed_plan_of(forward, "a:2", "batch:a"));
    const MtfGraph *graph = step.plan->graph;
    int cast = mtf_graph_find_tensor(graph, "stem/norm/mean_next/f32");
    int next = mtf_graph_find_tensor(graph, "next/stem/norm/mean");
    assert_true(cast >= 0 && next >= 0);
    assert_true(step.parts->parts->len > 2);
    assert_int_equal(step.parts->of[mtf_graph_tensor(graph, cast)->producer], 0);
    assert_int_equal(step.parts->of[mtf_graph_tensor(graph, next)->producer], 0);
    clear_step(&step);
}

static const MtfViewBox *box_titled(const MtfPartitionView *view, const char *title) {
    for (guint i = 0; i < view->boxes->len; i++) {
        const MtfViewBox *box = &g_array_index(view->boxes, MtfViewBox, i);
        if (strcmp(box->title, title) == 0)
            return box;
    }
    fail_msg("no box is titled %s", title);
    return NULL;
}

static const char *cell_text(const GArray *cells, guint i) {
    assert_true(i < cells->len);
    return g_array_index(cells, MtfViewCell, i).text;
}

/* h = x w with w[hidden, inner] and batch over rows, inner over cols: one box with its tensor and,
 * inside it, the variable; of four layers one is shown. */
TEST(a_box_shows_its_tensor_and_the_variables_it_takes) {
    Step step = layered();
    g_autoptr(MtfPartitionView) view = mtf_partition_view_section(step.parts, 1, 0);
    const MtfViewBox *h = box_titled(view, "h");
    assert_string_equal(h->detail, "einsum");
    assert_string_equal(cell_text(h->cells, 0), "batch 8/2");
    assert_string_equal(cell_text(h->cells, 1), "inner 12/2");
    assert_int_equal(h->rows->len, 1);
    const MtfViewRow *w = &g_array_index(h->rows, MtfViewRow, 0);
    assert_string_equal(w->name, "w");
    assert_string_equal(cell_text(w->cells, 0), "hidden 4");
    assert_string_equal(cell_text(w->cells, 1), "inner 12/2");
    assert_string_equal(cell_text(w->cells, 2), "≡ rows");
    for (guint i = 0; i < view->boxes->len; i++)
        assert_null(strchr(g_array_index(view->boxes, MtfViewBox, i).title, '/'));
    clear_step(&step);
}

/* An LSTM's loop keeps its gates for the backward pass, and makes all its results one tensor, which is read. */
TEST(what_a_loop_keeps_is_shown_by_what_it_keeps) {
    const MtfModelFamily *family = mtf_model_family_find("lstm-lm", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    MtfGraph *forward = mtf_model_build(family, preset, NULL, NULL);
    Step step = step_of(mtf_test_plan_of(forward, "a:2", "batch:a"));
    assert_true(mtf_graph_find_tensor(step.plan->graph, "saved/layer/0/in") >= 0);
    g_autoptr(MtfPartitionView) view = mtf_partition_view_section(step.parts, 0, 0);
    for (guint i = 0; i < view->boxes->len; i++)
        assert_false(g_str_has_prefix(g_array_index(view->boxes, MtfViewBox, i).title, "saved/"));
    assert_non_null(box_titled(view, "layer/0/in"));
    assert_non_null(box_titled(view, "layer/0/all"));
    clear_step(&step);
}

/* y = r v sums over inner, which cols splits: y is terms of a sum, and the sum is taken on the way
 * to the addition that reads it. */
TEST(a_transfer_stands_where_it_happens) {
    Step step = layered();
    g_autoptr(MtfPartitionView) view = mtf_partition_view_section(step.parts, 1, 0);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < view->boxes->len; i++) {
        const MtfViewBox *box = &g_array_index(view->boxes, MtfViewBox, i);
        for (guint k = 0; k < box->notes->len; k++)
            g_string_append_printf(all, "%s: %s\n", box->title,
                                   (char *)g_ptr_array_index(box->notes, k));
    }
    assert_string_equal(all->str, "y: allreduce cols · 64 B\n");
    clear_step(&step);
}

/* w's update takes w, its gradient and the learning rate, which would otherwise tie all updates
 * together. */
TEST(an_update_is_a_box_of_its_own) {
    Step step = layered();
    g_autoptr(MtfPartitionView) view = mtf_partition_view_section(step.parts, 1, 2);
    const MtfViewBox *w = box_titled(view, "w");
    assert_int_equal(view->boxes->len, 2);
    assert_int_equal(view->arrows->len, 0);
    assert_int_equal(w->rows->len, 3);
    assert_string_equal(g_array_index(w->rows, MtfViewRow, 0).name, "w");
    assert_string_equal(g_array_index(w->rows, MtfViewRow, 1).name, "∇ w");
    assert_string_equal(g_array_index(w->rows, MtfViewRow, 2).name, "learning_rate");
    g_autofree char *tooltip = mtf_view_box_tooltip(view, w);
    assert_non_null(strstr(tooltip, "f32[hidden:4, inner:12@cols]\nslice [4, 6]"));
    clear_step(&step);
}

TEST(every_level_draws_every_phase_it_promises) {
    Step step = layered();
    g_autoptr(MtfPartitionView) whole = mtf_partition_view_new(step.parts, MTF_VIEW_STEP);
    g_autoptr(MtfPartitionView) forward = mtf_partition_view_new(step.parts, MTF_VIEW_FORWARD);
    g_autoptr(MtfPartitionView) parts = mtf_partition_view_new(step.parts, MTF_VIEW_PARTS);
    assert_int_equal(forward->sections->len, 3);
    assert_int_equal(whole->sections->len, parts->sections->len);
    assert_int_equal(parts->boxes->len, parts->sections->len);
    assert_true(whole->boxes->len > forward->boxes->len);
    box_titled(whole, "∇ w");
    box_titled(whole, "w");
    clear_step(&step);
}

TEST(a_picture_of_graphviz_becomes_part_of_a_page) {
    static const char document[] =
        "<?xml version=\"1.0\"?><!DOCTYPE svg><!-- x --><svg width=\"100pt\" height=\"40pt\" "
        "viewBox=\"0 0 100 40\" xmlns:xlink=\"y\"><g id=\"n3\" class=\"node\"><title>n3</title>"
        "<g id=\"a_n3\"><a xlink:href=\"#t1\" xlink:title=\"a&lt;b\"><text font-family=\"X\" "
        "text-anchor=\"start\" fill=\"url(#l_0)\">w&amp;</text></a></g></g><g id=\"e_1\">"
        "<a xlink:title=\" \"><polygon points=\"1,2 3,4 1,2\"/><polygon points=\"1,2 1,22\"/></a>"
        "</g></svg>";
    g_autoptr(GString) page = g_string_new("-");
    assert_true(mtf_svg_inline(page, document, "p2", "l\"l"));
    assert_string_equal(
        page->str,
        "-<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" style=\"min-width:83px\" "
        "width=\"115\" height=\"46\" viewBox=\"0 0 100 40\" role=\"group\" "
        "aria-label=\"l&quot;l\"><g id=\"p2-n3\" class=\"node\"><a href=\"#t1\">"
        "<title>a&lt;b</title><text fill=\"url(#p2-l_0)\">w&amp;</text></a></g>"
        "<polygon points=\"1,2 3,4\"></polygon><polygon points=\"1,2 1,22\"></polygon></svg>");
    g_string_assign(page, "-");
    assert_false(mtf_svg_inline(page, "<svg><g></svg>", "p", "l"));
    assert_string_equal(page->str, "-");
}
