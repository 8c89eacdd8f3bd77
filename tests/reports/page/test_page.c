// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "reports/drawing/dot_graph.h"
#include "reports/facts/metrics_log.h"
#include "reports/page/page.h"
#include "reports/page/page_compare.h"
#include "reports/page/page_sections.h"
#include "tests/support/cases/report_plan.h"

#include <math.h>
#include <string.h>

/* What a browser would find in a page, by GLib's parser of markup. */
typedef struct {
    int scripts, images;
    GString *text;      /* all character data */
    const char *harm;   /* an attribute that runs or fetches something */
    GHashTable *ids;    /* of elements */
    GPtrArray *targets; /* of links within the page */
    bool twice;         /* an id was given twice */
} Found;

static void on_start(GMarkupParseContext *context, const char *element, const char **names,
                     const char **values, gpointer data, GError **error) {
    (void)context;
    (void)error;
    Found *found = data;
    found->scripts += strcmp(element, "script") == 0;
    found->images += strcmp(element, "img") == 0 || strcmp(element, "iframe") == 0;
    for (int i = 0; names[i] != NULL; i++) {
        bool link = g_str_has_suffix(names[i], "href");
        if (g_str_has_prefix(names[i], "on") || strcmp(names[i], "src") == 0 ||
            (link && strchr(values[i], ':') != NULL))
            found->harm = "an attribute";
        if (link && values[i][0] == '#')
            g_ptr_array_add(found->targets, g_strdup(values[i] + 1));
        if (strcmp(names[i], "id") == 0 && !g_hash_table_add(found->ids, g_strdup(values[i])))
            found->twice = true;
    }
}

static void on_text(GMarkupParseContext *context, const char *text, gsize length, gpointer data,
                    GError **error) {
    (void)context;
    (void)error;
    g_string_append_len(((Found *)data)->text, text, (gssize)length);
}

static Found found_in(const char *page) {
    static const GMarkupParser parser = { .start_element = on_start, .text = on_text };
    Found found = { .text = g_string_new(NULL),
                    .ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                    .targets = g_ptr_array_new_with_free_func(g_free) };
    g_autoptr(GError) error = NULL;
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &found, NULL);
    if (!g_markup_parse_context_parse(context, page, -1, &error) ||
        !g_markup_parse_context_end_parse(context, &error))
        fail_msg("the page is not well formed: %s", error->message);
    g_markup_parse_context_free(context);
    return found;
}

static void clear_found(Found *found) {
    g_string_free(found->text, TRUE);
    g_hash_table_unref(found->ids);
    g_ptr_array_unref(found->targets);
}

static char *page_of(const MtfPlan *plan, const GArray *run) {
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    assert_non_null(facts);
    g_autoptr(MtfStepParts) parts = mtf_step_parts_new(facts);
    return mtf_page_print(facts, &(MtfPageParts){ parts, NULL, run, NULL });
}

TEST(hostile_names_are_text_and_nothing_else) {
    g_autoptr(MtfPlan) plan = mtf_test_hostile_plan();
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_int_equal(found.scripts, 1);
    assert_int_equal(found.images, 0);
    assert_null(found.harm);
    assert_non_null(strstr(found.text->str, "<script>w</script>\\N\"'&é"));
    assert_non_null(strstr(found.text->str, "</svg></script><img/src=q/onerror=alert(1)>"));
    assert_non_null(strstr(found.text->str, "f32[io:4, h\"'\\G:12@c\\N]"));
    clear_found(&found);
}

TEST(links_lead_somewhere_and_ids_are_given_once) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_false(found.twice);
    assert_true(found.targets->len >= 6);
    for (guint i = 0; i < found.targets->len; i++)
        assert_true(g_hash_table_contains(found.ids, g_ptr_array_index(found.targets, i)));
    clear_found(&found);
}

/* batch 8 over rows:2 is 4 rows, hidden 12 over cols:2 is 6 columns. */
TEST(the_page_says_what_is_where) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_non_null(strstr(found.text->str, "rows:2;cols:2 (4 processors)"));
    assert_non_null(strstr(found.text->str, "batch:rows;hidden:cols"));
    assert_non_null(strstr(found.text->str, "f32[batch:8@rows, hidden:12@cols]"));
    assert_non_null(strstr(found.text->str, "[4, 6]"));
    assert_non_null(strstr(found.text->str, "hidden 6–11"));
    assert_non_null(strstr(found.text->str, "grad/w"));
    clear_found(&found);
}

TEST(the_same_plan_gives_the_same_page) {
    g_autoptr(MtfPlan) plan = mtf_test_hostile_plan();
    g_autofree char *first = page_of(plan, NULL);
    g_autofree char *second = page_of(plan, NULL);
    assert_string_equal(first, second);
}

TEST(a_mesh_of_one_processor_has_a_page) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("", "");
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_non_null(strstr(found.text->str, "one device"));
    assert_non_null(strstr(found.text->str, "No processor sends anything"));
    clear_found(&found);
}

TEST(what_alike_layers_cost_stands_on_the_page) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("", "");
    cJSON_Delete(plan->search);
    plan->search = cJSON_Parse("{\"alike_layers\": {\"text\": \"for a step 0.5 % longer\"}}");
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_non_null(strstr(found.text->str, "for a step 0.5 % longer"));
    clear_found(&found);
}

static int times_found(const char *text, const char *wanted) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at += strlen(wanted))
        count++;
    return count;
}

/* Medians over steps 2 and 3: 0.5 s and 0.1 s. */
TEST(a_run_stands_beside_its_prediction) {
    MtfMetricsRecord records[] = { { 1, 3.5, 9, 8, 0 },
                                   { 2, NAN, 0.4, 0.1, 0 },
                                   { 3, 2.25, 0.6, 0.1, 0 } };
    g_autoptr(GArray) run = g_array_new(FALSE, FALSE, sizeof *records);
    g_array_append_vals(run, records, G_N_ELEMENTS(records));
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2", "batch:rows");
    g_autofree char *page = page_of(plan, run);
    Found found = found_in(page);
    assert_non_null(strstr(found.text->str, "500 ms"));
    assert_non_null(strstr(found.text->str, "From 3.5 at step 1 to 2.25 at step 3."));
    assert_non_null(strstr(found.text->str, "predicted "));
    assert_int_equal(times_found(page, "class=\"measured\""), 2);
    assert_null(strstr(page, "nan"));
    clear_found(&found);
}

/* Of w, h, y and their gradients the split of hidden differs; x and the loss do not. */
TEST(plans_side_by_side_tell_what_differs) {
    g_autoptr(MtfPlan) one = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autoptr(MtfPlan) two = mtf_test_small_plan("rows:2;cols:2", "batch:rows");
    g_autoptr(MtfStepFacts) first = mtf_step_facts_new(one, NULL);
    g_autoptr(MtfStepFacts) second = mtf_step_facts_new(two, NULL);
    const MtfComparedPlan plans[] = { { "a<b>.json", first }, { "c.json", second } };
    g_autofree char *page = mtf_page_compare(plans, 2);
    Found found = found_in(page);
    assert_null(found.harm);
    assert_false(found.twice);
    assert_non_null(strstr(found.text->str, "a<b>.json"));
    assert_non_null(strstr(found.text->str, "1 × the time of a step"));
    assert_non_null(strstr(found.text->str, "f32[io:4, hidden:12@cols]f32[io:4, hidden:12]"));
    assert_null(strstr(found.text->str, "f32[batch:8@rows, io:4]"));
    clear_found(&found);
}

/* Lines that only one of the plans has stand in their places, whichever comes first. */
TEST(a_line_of_one_plan_is_beside_nothing_of_the_other) {
    g_autoptr(MtfPlan) one = mtf_test_small_plan("rows:2", "batch:rows");
    g_autoptr(MtfPlan) two = mtf_test_small_plan("rows:2", "batch:rows");
    cJSON_Delete(two->search);
    two->search = cJSON_Parse("{\"pipeline\": {\"stages\": 1}}");
    g_autoptr(MtfStepFacts) first = mtf_step_facts_new(one, NULL);
    g_autoptr(MtfStepFacts) second = mtf_step_facts_new(two, NULL);
    for (int turn = 0; turn < 2; turn++) {
        const MtfComparedPlan plans[] = { { "a.json", turn == 0 ? first : second },
                                          { "b.json", turn == 0 ? second : first } };
        g_autofree char *page = mtf_page_compare(plans, 2);
        Found found = found_in(page);
        const char *stages = strstr(found.text->str, "stages"), *doubt = strstr(stages, "doubt");
        assert_true(
            g_str_has_prefix(stages, turn == 0 ? "stages–none: no cut" : "stagesnone: no cut"));
        assert_true(doubt != NULL && strstr(doubt, "none: no cut") == NULL);
        assert_int_equal(times_found(page, "<tr><td>doubt</td>"), 1);
        clear_found(&found);
    }
}

/* One step of 3 s on two ranks against microseconds predicted; the plan's step has one allreduce.
 */
TEST(ranks_stand_under_their_prediction) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2", "batch:rows");
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(MtfStepParts) parts = mtf_step_parts_new(facts);
    MtfRunEvent events[] = { { 0, -1, false, 0, 2 },
                             { 0, MTF_RESHARD_ALLREDUCE, false, 2, 1 },
                             { 1, -1, false, 0, 1 } };
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof *events);
    g_array_append_vals(list, events, G_N_ELEMENTS(events));
    const MtfRunTrace trace = { 2, 3, list, NULL };
    g_autofree char *page = mtf_page_print(facts, &(MtfPageParts){ parts, NULL, NULL, &trace });
    Found found = found_in(page);
    assert_non_null(strstr(found.text->str, "predicted"));
    assert_non_null(strstr(found.text->str, "rank 1"));
    assert_non_null(strstr(found.text->str, "1.5 s2 s"));  /* computing: mean and longest */
    assert_non_null(strstr(found.text->str, "500 ms1 s")); /* allreduce */
    assert_non_null(strstr(found.text->str, "idle0 s1 s"));
    clear_found(&found);
}

/* Two limits with one best layout are one circle; what takes a hundred times as long as the others
 * is in the table alone. */
TEST(the_frontier_is_drawn_where_it_was_searched) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autofree char *without = page_of(plan, NULL);
    assert_non_null(strstr(without, "meshtf-plan search --frontier 8"));
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    double seconds = (double)facts->schedule->nanoseconds / 1e9;
    double bytes = (double)facts->arena->bytes;
    g_autofree char *search = g_strdup_printf(
        "{\"frontier\": [{\"name\": \"free layout\", \"memory_bytes\": %.0f, \"step_seconds\": "
        "%.17g}, {\"name\": \"free layout\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}, "
        "{\"name\": \"another\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}], \"incumbents\": "
        "[{\"name\": \"by <hand>\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}, {\"name\": "
        "\"slow\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}]}",
        bytes / 2, seconds * 1.4, bytes / 2, seconds * 1.4, bytes * 2, seconds * 0.9, bytes * 1.5,
        seconds * 1.2, bytes, seconds * 100);
    cJSON_Delete(plan->search);
    plan->search = cJSON_Parse(search);
    g_autofree char *page = page_of(plan, NULL);
    Found found = found_in(page);
    assert_int_equal(times_found(page, "<g class=\"of-frontier\">"), 2);
    assert_int_equal(times_found(page, "<g class=\"of-known\">"), 1);
    assert_int_equal(times_found(page, "<g class=\"of-chosen\">"), 1);
    assert_non_null(strstr(found.text->str, "by <hand>by hand or rule"));
    assert_non_null(strstr(found.text->str, "100.000 ×not drawn"));
    clear_found(&found);
}

/* A rule layout of nearly the same cost was called 1 times as much. */
TEST(what_rules_cost_is_told_beside_the_plan) {
    static const struct {
        const char *search, *said;
    } cases[] = { { "{\"cost\": 1000000, \"rule_cost\": 1023000}", "costs 1.02 ms: 2.3 % more." },
                  { "{\"cost\": 1000000, \"rule_cost\": 1000000}", "costs 1 ms: as much." },
                  { "{\"cost\": 1000000, \"rule_cost\": 1340000}",
                    "costs 1.34 ms: 1.34 times as much." } };
    (void)state;
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    cJSON *why = cJSON_CreateArray();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        cJSON_Delete(plan->search);
        plan->search = cJSON_Parse(cases[i].search);
        g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
        g_autoptr(GString) page = g_string_new(NULL);
        mtf_page_why(page, facts, why);
        assert_non_null(strstr(page->str, cases[i].said));
    }
    cJSON_Delete(why);
}

/* The texts of a page's labels, as "12 ms\n14 ms\n". */
static char *labels_in(const char *page) {
    GString *labels = g_string_new(NULL);
    for (const char *at = page; (at = strstr(at, "<text class=\"soft\"")) != NULL; at++) {
        const char *text = strchr(at, '>') + 1;
        g_string_append_len(labels, text, (gssize)strcspn(text, "<"));
        g_string_append_c(labels, '\n');
    }
    return g_string_free(labels, FALSE);
}

/* 1.5 % apart in time and 0.4 % in memory. */
TEST(labels_of_points_close_together_differ) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autofree char *search = g_strdup_printf(
        "{\"incumbents\": [{\"name\": \"other\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}]}",
        (double)facts->arena->bytes * 1.004, (double)facts->schedule->nanoseconds * 1.015 / 1e9);
    cJSON_Delete(plan->search);
    plan->search = cJSON_Parse(search);
    g_autofree char *page = page_of(plan, NULL);
    const char *chart = strstr(page, "id=\"frontier\"");
    assert_non_null(chart);
    g_autofree char *part = g_strndup(chart, (gsize)(strstr(chart, "memory a device") - chart));
    g_autofree char *labels = labels_in(part);
    g_auto(GStrv) each = g_strsplit(labels, "\n", -1);
    assert_true(g_strv_length(each) > 3);
    for (char **a = each; **a != '\0'; a++)
        for (char **b = a + 1; **b != '\0'; b++)
            assert_string_not_equal(*a, *b);
}

/* Seven labels of "1007.00 MiB" have room below the chart. */
TEST(labels_of_memory_stand_apart) {
    g_autoptr(MtfPlan) plan = mtf_test_small_plan("rows:2;cols:2", "batch:rows;hidden:cols");
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    for (int high = 105; high < 400; high += 5) {
        g_autofree char *search = g_strdup_printf(
            "{\"incumbents\": [{\"name\": \"other\", \"memory_bytes\": %.0f, \"step_seconds\": %.17g}]}",
            (double)facts->arena->bytes * high / 100, (double)facts->schedule->nanoseconds / 1e9);
        cJSON_Delete(plan->search);
        plan->search = cJSON_Parse(search);
        g_autofree char *page = page_of(plan, NULL);
        int labels = times_found(page, "y=\"336\" text-anchor=\"middle\"");
        assert_in_range(labels, 2, 8);
    }
}

static char *dot_of(const MtfPlan *plan) {
    g_autoptr(MtfStepFacts) facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(MtfStepParts) parts = mtf_step_parts_new(facts);
    g_autoptr(MtfPartitionView) view = mtf_partition_view_new(parts, MTF_VIEW_STEP);
    return mtf_dot_graph(view, &(MtfDotStyle){ "g", NULL, "", true }, NULL);
}

TEST(the_drawing_is_the_same_bytes_each_time) {
    g_autoptr(MtfPlan) plan = mtf_test_hostile_plan();
    g_autofree char *first = dot_of(plan);
    g_autofree char *second = dot_of(plan);
    assert_non_null(first);
    assert_string_equal(first, second);
}
