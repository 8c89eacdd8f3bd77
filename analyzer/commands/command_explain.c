// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan explain: why an operation or tensor of a plan is laid out as it is. */
#include "analyzer/commands/commands.h"
#include "analyzer/free/alternatives.h"
#include "analyzer/planner/planning.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "analyzer/solver/search/layout_solve.h"
#include "cost/summary/pipeline_summary.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/nearest_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Alternatives listed for people. */
#define MAX_LISTED 12

/* Rounds of the solver spent on the best plan without the choice. */
#define ANEW_WORK 30
#define ANEW_GAP 0.0005

typedef struct {
    char *instead;
    double seconds;
    gboolean json;
} Options;

typedef struct {
    const Options *options;
    MtfPipelinePlan *pipeline;
    int stage;           /* that holds what is explained */
    const MtfPlan *plan; /* of that stage */
    MtfMachine *machine;
    MtfPricer pricer;
    MtfFreeProblem *problem;
    int *choice;
    int node;
    GArray *alternatives;    /* MtfAlternative */
    MtfLayoutSolution *anew; /* the best without the choice, everything else chosen anew; or NULL */
} Explanation;

static void explanation_clear(Explanation *e) {
    if (e->alternatives != NULL)
        g_array_unref(e->alternatives);
    mtf_layout_solution_free(e->anew);
    g_free(e->choice);
    mtf_free_problem_free(e->problem);
    mtf_machine_free(e->machine);
    mtf_pipeline_plan_free(e->pipeline);
}

/* The stage that computes it, or the first that has such a tensor; 0 where none does. */
static int find_stage(const MtfPipelinePlan *pipeline, const char *name) {
    int has = 0;
    for (int s = (int)pipeline->stages->len - 1; s >= 0; s--) {
        const MtfGraph *graph = mtf_pipeline_stage(pipeline, s)->graph;
        if (mtf_graph_find_operation(graph, name) >= 0)
            return s;
        if (mtf_graph_find_tensor(graph, name) >= 0)
            has = s;
    }
    return has;
}

/* No node of the problem is called so; the nearest one may be meant. */
static bool fail_node(const Explanation *e, const char *path, const char *name, GError **error) {
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    int n = mtf_layout_problem_node_count(mtf_free_problem_get(e->problem));
    for (int v = 0; v < n; v++)
        g_ptr_array_add(known, (void *)(guintptr)mtf_free_problem_node_name(e->problem, v));
    g_ptr_array_add(known, NULL);
    g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)known->pdata);
    return mtf_input_error(error,
                           "%s: \"%s\" is no operation, and no tensor that is kept apart from its "
                           "operation%s",
                           path, name, hint);
}

static bool prepare(Explanation *e, const char *path, const char *name, GError **error) {
    e->pipeline = mtf_pipeline_plan_load_any(path, error);
    if (e->pipeline == NULL)
        return false;
    e->stage = find_stage(e->pipeline, name);
    e->plan = mtf_pipeline_stage(e->pipeline, e->stage);
    e->machine = mtf_planning_plan_machine(e->plan, path, error);
    const MtfLayout *layout = e->plan->layout;
    if (e->machine == NULL ||
        !mtf_planning_plan_pricer(e->plan, path, e->machine, &e->pricer, error))
        return false;
    e->problem = mtf_free_problem_new(e->plan->graph, &layout->mesh, &e->pricer, NULL, 0, error);
    if (e->problem == NULL)
        return false;
    e->choice = g_new(int, mtf_layout_problem_node_count(mtf_free_problem_get(e->problem)));
    if (!mtf_free_problem_choice(e->problem, layout, e->choice))
        return mtf_input_error(error, "%s: its layout holds a choice that no search makes", path);
    e->node = mtf_free_problem_find_node(e->problem, name);
    if (e->node < 0)
        return fail_node(e, path, name, error);
    e->alternatives = mtf_alternatives(mtf_free_problem_get(e->problem), e->choice, e->node);
    return true;
}

static int64_t plan_cost(const Explanation *e) {
    return (int64_t)mtf_layout_problem_evaluate(mtf_free_problem_get(e->problem), e->choice).cost;
}

/* The cheapest other strategy while everything else stays; -1 when there is none. */
static int next_strategy(const Explanation *e) {
    for (guint i = 0; i < e->alternatives->len; i++) {
        const MtfAlternative *a = &g_array_index(e->alternatives, MtfAlternative, i);
        if (a->strategy != e->choice[e->node])
            return a->strategy;
    }
    return -1;
}

/* Searches for the best layout without the choice, within the plan's memory, beginning with the
 * next best strategy. */
static void choose_anew(Explanation *e) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_copy(mtf_free_problem_get(e->problem));
    int n = mtf_layout_problem_node_count(problem), next = next_strategy(e);
    double limit = mtf_json_number_of(e->plan->search, "memory_limit", G_MAXDOUBLE);
    if (next < 0)
        return;
    if (limit < (double)MTF_NO_LIMIT)
        mtf_layout_problem_set_limit(problem, (int64_t)limit);
    g_autofree int *start = g_memdup2(e->choice, sizeof *start * (gsize)n);
    start[e->node] = next;
    MtfLayoutSolution chosen = { .choice = e->choice };
    MtfSearchControl control;
    mtf_search_control_init(&control, e->options->seconds);
    MtfSolveOptions options = { .control = &control,
                                .work = ANEW_WORK,
                                .gap = ANEW_GAP,
                                .threads = mtf_in_parallel_threads(),
                                .start = start,
                                .no_infeasibility = true };
    e->anew = mtf_layout_solve_next_best(problem, &chosen, e->node, &options, NULL);
}

/* Keeps the alternative that --instead names alone. */
static bool select_instead(Explanation *e, GError **error) {
    const char *wanted = e->options->instead;
    for (guint i = 0; wanted != NULL && i < e->alternatives->len; i++) {
        MtfAlternative a = g_array_index(e->alternatives, MtfAlternative, i);
        g_autofree char *text = mtf_free_problem_strategy_format(e->problem, e->node, a.strategy);
        if (strcmp(text, wanted) != 0)
            continue;
        g_array_set_size(e->alternatives, 0);
        g_array_append_val(e->alternatives, a);
        return true;
    }
    return wanted == NULL ||
           mtf_input_error(error,
                           "\"%s\" is no strategy of \"%s\" (like \"rows=batch cols=duplicated\")",
                           wanted, mtf_free_problem_node_name(e->problem, e->node));
}

static bool is_hidden(const Explanation *e) {
    return cJSON_HasObjectItem(e->plan->search, "plan_cost");
}

/* What the best without the choice is set beside: the cheapest layout, which the proof is about. A
 * plan that was chosen because more of it is hidden costs more, and nothing is won by a lower cost. */
static int64_t cheapest_cost(const Explanation *e) {
    double cost = mtf_json_number_of(e->plan->search, "cost", 0);
    return is_hidden(e) && cost > 0 ? (int64_t)cost : plan_cost(e);
}

static void print_hidden(const Explanation *e) {
    g_autofree char *ours = mtf_seconds_format((double)plan_cost(e) / 1e9);
    g_autofree char *least = mtf_seconds_format((double)cheapest_cost(e) / 1e9);
    g_autofree char *step =
        mtf_seconds_format(mtf_json_number_of(e->plan->predicted, "step_seconds", 0));
    printf("the plan is not the cheapest layout: its costs add up to %s, the cheapest layout's to "
           "%s; it was\nchosen because so much of them is hidden behind kernels that its step of "
           "%s is the shortest found\n",
           ours, least, step);
}

/* The difference is known no better than the solver's bound says. */
static void print_anew(const Explanation *e) {
    if (is_hidden(e))
        print_hidden(e);
    if (e->anew == NULL)
        return;
    int64_t more = (int64_t)e->anew->cost - cheapest_cost(e);
    int64_t least = (int64_t)e->anew->bound - cheapest_cost(e);
    g_autofree char *text =
        mtf_free_problem_strategy_format(e->problem, e->node, e->anew->choice[e->node]);
    g_autofree char *seconds = mtf_seconds_format((double)llabs(more) / 1e9);
    g_autofree char *at_least = mtf_seconds_format((double)MAX(0, least) / 1e9);
    printf("with everything else chosen anew, the least cost without it would be%s\n"
           "  %10s %s with %s (at least %s longer)\n",
           is_hidden(e) ? ", beside the cheapest layout's," : "", seconds,
           more >= 0 ? "longer " : "cheaper", text, at_least);
}

/* Where the stage is, and how much of the step its devices work: a step follows those that work longest. */
static void print_stage(const Explanation *e) {
    const MtfPipelinePlan *p = e->pipeline;
    int domain = p->order->rank_of_stage[e->stage];
    int first = mtf_pipeline_first_device(p, domain);
    g_autofree char *place = mtf_pipeline_place_format(
        first, mtf_pipeline_first_device(p, domain + 1) - 1, &e->plan->layout->mesh);
    g_autofree char *own = mtf_seconds_format(mtf_pipeline_work_seconds(p, domain));
    g_autofree char *longest =
        mtf_seconds_format(mtf_pipeline_work_seconds(p, mtf_pipeline_busiest_domain(p)));
    g_autofree char *step = mtf_seconds_format(mtf_json_number_of(p->predicted, "step_seconds", 0));
    printf("stage %d (of 0 to %d), %s: they work %s of a step's %s, those that work longest %s\n",
           e->stage, p->order->stages - 1, place, own, step, longest);
}

static void print_for_people(const Explanation *e) {
    g_autofree char *chosen =
        mtf_free_problem_strategy_format(e->problem, e->node, e->choice[e->node]);
    if (!mtf_pipeline_is_whole(e->pipeline))
        print_stage(e);
    printf(
        "%s runs as %s\nwith everything else as it is, the cost (of all kernels and collectives, none hidden) would be\n",
        mtf_free_problem_node_name(e->problem, e->node), chosen);
    for (guint i = 0; i < e->alternatives->len && i < MAX_LISTED; i++) {
        const MtfAlternative *a = &g_array_index(e->alternatives, MtfAlternative, i);
        if (a->strategy == e->choice[e->node] && e->options->instead == NULL)
            continue;
        g_autofree char *text = mtf_free_problem_strategy_format(e->problem, e->node, a->strategy);
        g_autofree char *seconds = mtf_seconds_format((double)llabs(a->delta) / 1e9);
        printf("  %10s %s with %s\n", seconds, a->delta >= 0 ? "longer " : "cheaper", text);
    }
    if (e->alternatives->len > MAX_LISTED)
        printf("  (%u more)\n", e->alternatives->len - MAX_LISTED);
    print_anew(e);
}

static void add_anew(cJSON *object, const Explanation *e) {
    if (e->anew == NULL)
        return;
    g_autofree char *text =
        mtf_free_problem_strategy_format(e->problem, e->node, e->anew->choice[e->node]);
    cJSON *anew = cJSON_AddObjectToObject(object, "anew");
    cJSON_AddStringToObject(anew, "strategy", text);
    mtf_json_add_integer(anew, "nanoseconds", (int64_t)e->anew->cost - cheapest_cost(e));
    mtf_json_add_integer(anew, "at_least", (int64_t)e->anew->bound - cheapest_cost(e));
}

static void print_as_json(const Explanation *e) {
    g_autofree char *chosen =
        mtf_free_problem_strategy_format(e->problem, e->node, e->choice[e->node]);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", mtf_free_problem_node_name(e->problem, e->node));
    cJSON_AddStringToObject(object, "strategy", chosen);
    if (!mtf_pipeline_is_whole(e->pipeline))
        mtf_json_add_integer(object, "stage", e->stage);
    cJSON *list = cJSON_AddArrayToObject(object, "alternatives");
    for (guint i = 0; i < e->alternatives->len; i++) {
        const MtfAlternative *a = &g_array_index(e->alternatives, MtfAlternative, i);
        g_autofree char *text = mtf_free_problem_strategy_format(e->problem, e->node, a->strategy);
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "strategy", text);
        mtf_json_add_integer(entry, "nanoseconds", a->delta);
        cJSON_AddItemToArray(list, entry);
    }
    add_anew(object, e);
    mtf_json_say(object);
}

static bool check_seconds(const Options *options, GError **error) {
    return options->seconds >= 0 ||
           mtf_input_error(error, "--seconds %g is not a number of at least 0", options->seconds);
}

int mtf_command_explain(int argc, char **argv) {
    Options options = { 0 };
    const GOptionEntry entries[] = {
        { "instead", 0, 0, G_OPTION_ARG_STRING, &options.instead, "Price this strategy alone",
          "'rows=batch cols=duplicated'" },
        { "seconds", 0, 0, G_OPTION_ARG_DOUBLE, &options.seconds,
          "Choose everything else anew for S seconds (no limit)", "S" },
        { "json", 0, 0, G_OPTION_ARG_NONE, &options.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    Explanation e = { .options = &options };
    bool done =
        mtf_command_line_parse(&argc, &argv, entries, "PLAN OPERATION",
                               "Says how an operation or tensor of a plan is laid out, what each "
                               "other way would cost while everything else stays, and what the "
                               "best would cost with everything else chosen anew.",
                               2, 2, &error) &&
        check_seconds(&options, &error) && prepare(&e, argv[1], argv[2], &error) &&
        select_instead(&e, &error);
    if (done && options.instead == NULL)
        choose_anew(&e);
    if (done)
        (options.json ? print_as_json : print_for_people)(&e);
    explanation_clear(&e);
    g_free(options.instead);
    return done ? 0 : mtf_command_line_fail("meshtf-plan explain", error);
}
