// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "reports/drawing/dot_graph.h"
#include "reports/drawing/view_groups.h"
#include "tests/support/cases/report_plan.h"

#include <string.h>

/* Boxes a to f of one section, kinds as told, arrows a>b, c>d, e>f. */
static MtfPartitionView *three_chains(const char *kinds) {
    MtfPartitionView *view = mtf_partition_view_blank();
    for (int b = 0; b < 6; b++)
        mtf_partition_view_add_box(view, MTF_BOX_OPERATION, 0, g_strdup_printf("%c", 'a' + b),
                                   g_strdup_printf("%c", kinds[b]));
    for (int b = 0; b < 6; b += 2)
        g_array_append_val(view->arrows, ((MtfViewArrow){ b, b + 1, 0 }));
    return view;
}

static const MtfViewGroup *group_at(const MtfViewGroups *groups, int group) {
    return &g_array_index(groups->groups, MtfViewGroup, group);
}

TEST(chains_of_the_same_operations_are_alike) {
    g_autoptr(MtfPartitionView) view = three_chains("xyxyxx");
    g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
    assert_int_equal(groups->groups->len, 3);
    assert_int_equal(groups->of_box[0], 0);
    assert_int_equal(groups->of_box[3], 1);
    assert_int_equal(group_at(groups, 1)->alike, 0);
    assert_int_equal(group_at(groups, 0)->times, 2);
    assert_int_equal(group_at(groups, 2)->alike, 2);
    assert_int_equal(group_at(groups, 2)->times, 1);
}

TEST(arrows_that_run_otherwise_make_another_look) {
    g_autoptr(MtfPartitionView) view = three_chains("xxxxxx");
    g_array_index(view->arrows, MtfViewArrow, 1) = (MtfViewArrow){ 3, 2, 0 };
    g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
    assert_int_equal(group_at(groups, 1)->alike, 1);
    assert_int_equal(group_at(groups, 2)->alike, 0);
}

/* Split by another axis, or with an exchange that the other lacks. Bytes do not count. */
TEST(placements_and_exchanges_tell_groups_apart) {
    for (int otherwise = 0; otherwise < 3; otherwise++) {
        g_autoptr(MtfPartitionView) view = three_chains("xxxxxx");
        static const char *const notes[] = { "allreduce rows · 1 B", "allreduce rows · 2 B",
                                             "allgather rows · 1 B" };
        for (int b = 0; b < 6; b++) {
            MtfViewBox *box = &g_array_index(view->boxes, MtfViewBox, b);
            bool second = b >= 2 && b < 4;
            MtfViewCell cell = { MTF_CELL_DIMENSION, g_strdup_printf("d %d", b),
                                 second && otherwise == 0 ? 2u : 1u };
            g_array_append_val(box->cells, cell);
            g_ptr_array_add(box->notes, g_strdup(notes[second ? MAX(otherwise, 1) : 0]));
        }
        g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
        assert_int_equal(group_at(groups, 1)->alike, otherwise == 1 ? 0 : 1);
        assert_int_equal(group_at(groups, 2)->alike, 0);
    }
}

/* What reaches from one section into another is drawn as it is. */
TEST(groups_of_several_sections_are_not_folded) {
    g_autoptr(MtfPartitionView) view = three_chains("xxxxxx");
    for (int b = 1; b < 6; b += 2)
        g_array_index(view->boxes, MtfViewBox, b).section = 1;
    g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
    for (int g = 0; g < 3; g++) {
        assert_int_equal(group_at(groups, g)->section, -1);
        assert_int_equal(group_at(groups, g)->alike, g);
    }
}

static int count_of(const char *text, const char *word) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

/* The tiny ResNet's updates, each a box or a chain: alike ones are drawn once, and their names are told. */
TEST(updates_of_a_convolutional_network_are_few_pictures) {
    const MtfModelFamily *family = mtf_model_family_find("resnet", NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, "tiny", NULL);
    MtfGraph *forward = mtf_model_build(family, preset, NULL, NULL);
    MtfPlan *plan = mtf_test_plan_of(forward, "a:2", "batch:a");
    MtfStepFacts *facts = mtf_step_facts_new(plan, NULL);
    MtfStepParts *parts = mtf_step_parts_new(facts);
    g_autoptr(MtfPartitionView) view = mtf_partition_view_section(parts, 0, 2);
    g_autoptr(MtfViewGroups) groups = mtf_view_groups_new(view);
    int drawn = 0, boxes = 0;
    for (int g = 0; g < (int)groups->groups->len; g++) {
        drawn += group_at(groups, g)->alike == g;
        boxes += group_at(groups, g)->alike == g ? (int)group_at(groups, g)->boxes->len : 0;
    }
    assert_true(drawn < (int)groups->groups->len);
    const MtfDotStyle style = { "u", NULL, "", false };
    g_autofree char *dot = mtf_dot_graph(view, &style, NULL);
    assert_int_equal(count_of(dot, "id=n"), boxes);
    assert_non_null(strstr(dot, " × 2</B>"));
    assert_non_null(strstr(dot, "and stem/norm/variance_next"));
    mtf_step_parts_free(parts);
    mtf_step_facts_free(facts);
    mtf_plan_free(plan);
}
