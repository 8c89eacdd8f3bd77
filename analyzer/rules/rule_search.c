// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search.h"

#include "analyzer/rules/plain_rules.h"
#include "analyzer/rules/rule_search_program.h"
#include "cost/memory/arena.h"
#include "layouts/base/error.h"
#include "layouts/placement/dimension_hint.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define MOST_TIGHTENINGS 40

/* Of the work of a program, what one may take whose answer is only where a search over free layouts begins; and of that,
 * for each mesh before on which that was too little for any answer. */
#define DRAFT_SHARE 16
#define FUTILE_SHARE 4

typedef struct {
    const MtfGraph *graph;
    const MtfRuleSearchOptions *options;
    const GArray *meshes;
    MtfRulePrices *prices;
    MtfRuleAnswer *answer;
    int64_t floor; /* what the work alone takes on `floor_devices` devices, whatever mesh they
                      form */
    int floor_devices;
    double work; /* share of a program's own, on the next mesh */
    int best;    /* the mesh of what was found */
} Search;

/* One mesh of a search. */
typedef struct {
    Search *search;
    const MtfMesh *mesh;
    int number; /* of the mesh */
    MtfPricer pricer;
    const MtfRuleTables *tables; /* the prices' */
    MtfRuleProgram *program;
    int64_t bound;    /* of all rules on this mesh that fit */
    int64_t cheapest; /* of those found to fit; INT64_MAX: none */
    bool futile;      /* its work ended before any answer */
} Attempt;

static MtfIlpOptions ilp_options(const Search *search) {
    return (MtfIlpOptions){ .gap = search->options->gap, .control = search->options->control };
}

/* ---- Pins and forbids ------------------------------------------------------------------------ */

typedef struct {
    int dim;
    int axis; /* -1 when this mesh has no axis of that name */
} Wish;

static bool any_mesh_has(const Search *search, const char *axis) {
    for (guint i = 0; i < search->meshes->len; i++)
        if (mtf_mesh_axis(&g_array_index(search->meshes, MtfMesh, i), axis) >= 0)
            return true;
    return false;
}

static bool read_wish(const Search *search, const MtfMesh *mesh, const char *option,
                      const char *text, Wish *wish, GError **error) {
    g_auto(GStrv) dims = NULL;
    g_auto(GStrv) axes = NULL;
    if (!mtf_pairs_parse(text, option, &dims, &axes, error))
        return false;
    if (dims[0] == NULL || dims[1] != NULL)
        return mtf_input_error(error, "%s \"%s\" must be one DIMENSION:AXIS", option, text);
    wish->dim = mtf_graph_find_dimension(search->graph, dims[0]);
    wish->axis = mtf_mesh_axis(mesh, axes[0]);
    g_autofree char *hint = mtf_graph_dimension_hint(search->graph, dims[0]);
    if (wish->dim < 0)
        return mtf_input_error(error, "%s \"%s\": the graph has no dimension \"%s\"%s", option,
                               text, dims[0], hint);
    if (!any_mesh_has(search, axes[0]))
        return mtf_input_error(error, "%s \"%s\": no mesh that is searched has an axis \"%s\"",
                               option, text, axes[0]);
    return true;
}

/* Applies the pins; `*possible` becomes false when this mesh lacks a pinned axis. */
static bool apply_pins(const Search *search, const MtfMesh *mesh, unsigned *allowed, bool *possible,
                       GError **error) {
    const char *const *pins = search->options->pins;
    for (int i = 0; pins != NULL && pins[i] != NULL; i++) {
        Wish wish;
        if (!read_wish(search, mesh, "--pin", pins[i], &wish, error))
            return false;
        if (wish.axis < 0) {
            *possible = false;
            continue;
        }
        allowed[wish.dim] &= 2U << wish.axis;
        if (allowed[wish.dim] == 0)
            return mtf_input_error(error, "--pin \"%s\" contradicts another pin of that dimension",
                                   pins[i]);
    }
    return true;
}

static bool apply_forbids(const Search *search, const MtfMesh *mesh, unsigned *allowed,
                          GError **error) {
    const char *const *forbids = search->options->forbids;
    for (int i = 0; forbids != NULL && forbids[i] != NULL; i++) {
        Wish wish;
        if (!read_wish(search, mesh, "--forbid", forbids[i], &wish, error))
            return false;
        if (wish.axis < 0)
            continue;
        allowed[wish.dim] &= ~(2U << wish.axis);
        if (allowed[wish.dim] == 0)
            return mtf_input_error(error, "--forbid \"%s\" forbids what is pinned", forbids[i]);
    }
    return true;
}

/* Axes that would split a dimension unevenly which is to be split evenly alone. */
static bool apply_even(const Search *search, const MtfMesh *mesh, unsigned *allowed,
                       GError **error) {
    for (guint d = 0; d < search->graph->dimensions->len; d++) {
        const MtfDimension *dimension = mtf_graph_dimension(search->graph, (int)d);
        for (int a = 0; a < mesh->n_axes; a++)
            if (dimension->even && dimension->size % mesh->axes[a].size != 0)
                allowed[d] &= ~(2U << a);
        if (allowed[d] == 0)
            return mtf_input_error(error,
                                   "--even: dimension \"%s\" of %" PRId64
                                   " does not divide by the axis that it is pinned to",
                                   dimension->name, dimension->size);
    }
    return true;
}

/* Pinned dimensions that no layout can have together are named by the check of rules. */
static bool check_pinned(const Search *search, const MtfMesh *mesh, const unsigned *allowed,
                         GError **error) {
    g_autoptr(MtfRules) rules = mtf_rules_new(search->graph);
    for (int d = 0; d < rules->n_dims; d++)
        for (int a = 0; a < mesh->n_axes; a++)
            if (allowed[d] == 2U << a)
                rules->axis[d] = a;
    return mtf_rules_check(search->graph, mesh, rules, error);
}

static bool read_wishes(const Search *search, const MtfMesh *mesh, unsigned *allowed,
                        bool *possible, GError **error) {
    for (guint d = 0; d < search->graph->dimensions->len; d++)
        allowed[d] = (2U << mesh->n_axes) - 1;
    *possible = true;
    return apply_pins(search, mesh, allowed, possible, error) &&
           apply_forbids(search, mesh, allowed, error) &&
           apply_even(search, mesh, allowed, error) && check_pinned(search, mesh, allowed, error);
}

/* ---- One mesh -------------------------------------------------------------------------------- */

/* Whether an arena of `bytes` bytes would be taken: it fits, or is the smallest while none does. */
static bool is_wanted(const Search *search, int64_t bytes) {
    const MtfRuleAnswer *answer = search->answer;
    return bytes <= search->options->memory_limit ||
           (!answer->found && (answer->rules == NULL || bytes < answer->arena_bytes));
}

/* The bytes that the rules' program needs: of its arena where that could be wanted, else the lower
 * bound that says it is not. */
static int64_t arena_of(const Attempt *attempt, const MtfRules *rules, int64_t *price) {
    const MtfGraph *graph = attempt->search->graph;
    int half_step;
    if (attempt->search->options->modelled) {
        *price = mtf_rule_tables_price(attempt->tables, rules);
        return mtf_rule_tables_memory(attempt->tables, rules, &half_step);
    }
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, attempt->mesh, rules);
    layout->execution.stage = attempt->search->options->stage;
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    *price = mtf_price_program(&attempt->pricer, program);
    int64_t least = mtf_arena_lower_bound(program);
    if (!is_wanted(attempt->search, least))
        return least;
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    return arena->bytes;
}

static void keep(const Attempt *attempt, MtfRules *rules, int64_t arena_bytes) {
    MtfRuleAnswer *answer = attempt->search->answer;
    mtf_rules_free(answer->rules);
    answer->rules = rules;
    answer->mesh = *attempt->mesh;
    answer->arena_bytes = arena_bytes;
}

/* Whether rules of this price on this mesh are better than what was found: of equal ones those of the first mesh
 * are, in whatever order meshes are searched. */
static bool is_better(const Attempt *attempt, int64_t price) {
    const Search *search = attempt->search;
    return !search->answer->found || price < search->answer->cost ||
           (price == search->answer->cost && attempt->number < search->best);
}

/* Takes rules whose arena fits and that are the cheapest so far; rules that do not fit, while
 * nothing does, as the smallest. Frees the others. Returns what the arena lacks to fit, or 0. */
static int64_t judge(const Attempt *attempt, MtfRules *rules, int64_t *price) {
    MtfRuleAnswer *answer = attempt->search->answer;
    int64_t bytes = arena_of(attempt, rules, price);
    int64_t missing = MAX(0, bytes - attempt->search->options->memory_limit);
    if (missing == 0 && is_better(attempt, *price)) {
        attempt->search->best = attempt->number;
        answer->found = true;
        answer->cost = *price;
        keep(attempt, rules, bytes);
    } else if (missing > 0 && is_wanted(attempt->search, bytes)) {
        keep(attempt, rules, bytes);
    } else {
        mtf_rules_free(rules);
    }
    return missing;
}

/* The same of rules that a program found, whose price it knows. */
static int64_t judge_solution(const Attempt *attempt, MtfRuleSolution *solution) {
    int64_t price, missing = judge(attempt, g_steal_pointer(&solution->rules), &price);
    g_assert(price == solution->value);
    return missing;
}

/* Solves under `limit`. `*missing` is what the answer's arena lacks to fit: 0 when it was taken or
 * cannot improve, -1 when there is no answer. */
static bool solve_and_judge(Attempt *attempt, int64_t limit, int64_t *bound, int64_t *missing,
                            GError **error) {
    MtfRuleSolution solution;
    MtfIlpOptions options = ilp_options(attempt->search);
    if (!mtf_rule_program_cheapest(attempt->program, limit, &options, &solution, error))
        return false;
    *bound = solution.bound;
    *missing = -1;
    if (solution.status == MTF_ILP_FEASIBLE || solution.status == MTF_ILP_STOPPED)
        attempt->search->answer->stopped = true;
    attempt->futile |= solution.status == MTF_ILP_STOPPED;
    if (solution.rules == NULL)
        return true;
    *missing = 0;
    g_autoptr(MtfRules) rules = mtf_rules_copy(solution.rules);
    if (is_better(attempt, solution.value))
        *missing = judge_solution(attempt, &solution);
    else
        mtf_rules_free(solution.rules);
    if (*missing == 0)
        attempt->cheapest = MIN(attempt->cheapest, solution.value);
    if (*missing > 0) {
        mtf_rule_program_exclude(attempt->program, rules);
        attempt->search->answer->excluded++;
    }
    return true;
}

/* Lowers the program's limit by what packing adds, until an answer fits. */
static bool tighten(Attempt *attempt, int64_t missing, GError **error) {
    int64_t limit = attempt->search->options->memory_limit, bound;
    attempt->search->answer->tightened = true;
    for (int round = 0; round < MOST_TIGHTENINGS && missing > 0; round++) {
        limit = MAX(0, limit - missing);
        if (!solve_and_judge(attempt, limit, &bound, &missing, error))
            return false;
    }
    return true;
}

/* Finds the cheapest rules that fit on this mesh, or at least a bound on them. */
static bool search_mesh(Attempt *attempt, GError **error) {
    int64_t missing = 1, limit = attempt->search->options->memory_limit;
    for (int round = 0; round < MTF_RULE_EXCLUSIONS && missing > 0; round++)
        if (!solve_and_judge(attempt, limit, &attempt->bound, &missing, error))
            return false;
    return missing <= 0 || tighten(attempt, missing, error);
}

/* Nothing fits: the rules that need least on this mesh, and a bound on what any need. */
static bool search_smallest(Attempt *attempt, GError **error) {
    MtfRuleAnswer *answer = attempt->search->answer;
    MtfRuleSolution solution;
    MtfIlpOptions options = ilp_options(attempt->search);
    if (!mtf_rule_program_smallest(attempt->program, &options, &solution, error))
        return false;
    answer->limit_bound = MIN(answer->limit_bound, solution.bound);
    if (solution.rules == NULL)
        return true;
    if (!is_wanted(attempt->search, solution.value)) {
        mtf_rules_free(solution.rules);
        return true;
    }
    solution.value = mtf_rule_tables_price(attempt->tables, solution.rules);
    judge_solution(attempt, &solution);
    return true;
}

/* Time is up before any rules are known: those that need no search may fit, of dimensions that matter
 * (a window's would have small weights travel), or of all. On one mesh: each takes a lowering. */
static void try_plain(Attempt *attempt, const unsigned *allowed) {
    static const double shares[] = { 0.01, 0 };
    const Search *search = attempt->search;
    const MtfSearchControl *control = search->options->control;
    int64_t price;
    if (search->answer->rules != NULL || search->options->modelled ||
        !mtf_search_is_over(control) || mtf_search_is_stopped(control))
        return;
    for (int i = 0; i < (int)G_N_ELEMENTS(shares) && !search->answer->found; i++)
        if (judge(attempt, mtf_plain_rules(search->graph, attempt->mesh, allowed, shares[i]),
                  &price) == 0)
            attempt->cheapest = price;
}

typedef bool (*MeshSearch)(Attempt *attempt, GError **error);

static bool lay_mesh(Attempt *attempt, GError **error) {
    const MtfRuleSearchOptions *options = attempt->search->options;
    if (!mtf_pricer_init(&attempt->pricer, options->machine, attempt->mesh, error))
        return false;
    if (options->mapping != NULL)
        attempt->pricer.map.mapping = *options->mapping;
    return true;
}

/* What the work alone takes: lowered once for all meshes of as many devices. */
static int64_t work_floor(Search *search, const MtfPricer *pricer, const MtfMesh *mesh) {
    int devices = mtf_mesh_size(mesh);
    if (search->floor_devices != devices)
        search->floor = mtf_price_floor(pricer, search->graph, mesh);
    search->floor_devices = devices;
    return search->floor;
}

/* What rules of a mesh may cost to be wanted. */
static int64_t most_wanted(const Search *search) {
    const MtfRuleAnswer *answer = search->answer;
    double most = search->options->wanted * (double)answer->cost;
    return search->options->wanted > 0 && answer->found && most < (double)(INT64_MAX / 2)
               ? (int64_t)most
               : INT64_MAX;
}

/* The attempt's tables, or NULL. Whether all rules cost too much. */
static bool price_mesh(Attempt *attempt, const unsigned *allowed, int64_t most) {
    const MtfRuleSearchOptions *options = attempt->search->options;
    bool costs_more;
    MtfRuleTablesOptions tables = { .pricer = &attempt->pricer,
                                    .mesh = attempt->mesh,
                                    .allowed = allowed,
                                    .most = most,
                                    .control = options->control };
    attempt->tables = mtf_rule_prices_tables(attempt->search->prices, &tables,
                                             options->mapping == NULL, &costs_more);
    return costs_more;
}

/* Attempts one mesh; `found` and `*bound` say what came of it. */
static bool attempt_mesh(Search *search, int number, MeshSearch step, int64_t *bound,
                         GError **error) {
    const MtfMesh *mesh = &g_array_index(search->meshes, MtfMesh, number);
    MtfRuleMesh *found = &g_array_index(search->answer->by_mesh, MtfRuleMesh, number);
    g_autofree unsigned *allowed = g_new(unsigned, search->graph->dimensions->len + 1);
    int64_t most = most_wanted(search);
    bool possible;
    *bound = INT64_MAX;
    if (!read_wishes(search, mesh, allowed, &possible, error))
        return false;
    if (!possible)
        return true;
    Attempt attempt = { .search = search, .mesh = mesh, .number = number, .cheapest = INT64_MAX };
    if (!lay_mesh(&attempt, error))
        return false;
    if (price_mesh(&attempt, allowed, most)) {
        *bound = most + 1;
        *found = (MtfRuleMesh){ false, INT64_MAX };
        return true;
    }
    bool done = true;
    int64_t floor = attempt.tables != NULL ? mtf_rule_tables_floor(attempt.tables)
                                           : work_floor(search, &attempt.pricer, mesh);
    search->answer->stopped |= attempt.tables == NULL;
    if (attempt.tables != NULL) {
        attempt.program = mtf_rule_program_new(attempt.tables);
        attempt.program->drafts = search->options->draft;
        attempt.program->work *= search->work;
        done = step(&attempt, error);
        if (search->options->draft && attempt.futile)
            search->work /= FUTILE_SHARE;
    }
    if (done)
        try_plain(&attempt, allowed);
    *bound = MAX(attempt.bound, floor);
    *found =
        (MtfRuleMesh){ attempt.tables != NULL || attempt.cheapest < INT64_MAX, attempt.cheapest };
    mtf_rule_program_free(attempt.program);
    return done;
}

/* ---- All meshes ------------------------------------------------------------------------------ */

int mtf_squarest_mesh(const GArray *meshes) {
    int best = 0, least = INT_MAX;
    for (guint i = 0; i < meshes->len; i++) {
        const MtfMesh *mesh = &g_array_index(meshes, MtfMesh, i);
        int longest = 1;
        for (int a = 0; a < mesh->n_axes; a++)
            longest = MAX(longest, mesh->axes[a].size);
        if (mesh->n_axes <= 2 && longest < least) {
            least = longest;
            best = (int)i;
        }
    }
    return best;
}

/* The meshes (int) in the order in which they are searched: where those that cost too much are left, the first and
 * the squarest tell early what that is. */
static GArray *order_meshes(const Search *search) {
    GArray *order = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < (int)search->meshes->len; i++)
        g_array_append_val(order, i);
    int squarest = mtf_squarest_mesh(search->meshes);
    if (search->options->wanted > 0 && squarest > 1) {
        g_array_remove_index(order, (guint)squarest);
        g_array_insert_val(order, 1, squarest);
    }
    return order;
}

static bool search_all(Search *search, MeshSearch step, int64_t *bound, GError **error) {
    g_autoptr(GArray) order = order_meshes(search);
    *bound = INT64_MAX;
    for (guint i = 0; i < order->len; i++) {
        int64_t mesh_bound;
        if (!attempt_mesh(search, g_array_index(order, int, i), step, &mesh_bound, error))
            return false;
        search->answer->stopped |= mtf_search_is_over(search->options->control);
        *bound = MIN(*bound, mesh_bound);
        mtf_search_tell_bound(search->options->control,
                              search->answer->found ? (double)search->answer->cost : INFINITY, 0);
    }
    return true;
}

static bool search_with_terms(Search *search, GError **error) {
    MtfRuleAnswer *answer = search->answer;
    int64_t unused;
    if (!search_all(search, search_mesh, &answer->bound, error))
        return false;
    answer->bound = MIN(answer->bound, answer->found ? answer->cost : INT64_MAX);
    if (answer->found || answer->stopped || search->options->modelled)
        return true;
    answer->limit_bound = INT64_MAX;
    if (!search_all(search, search_smallest, &unused, error))
        return false;
    if (answer->found)
        answer->bound = MIN(answer->bound, answer->cost);
    /* When every mesh was searched to the end, no rules fit the limit itself. */
    if (answer->bound == INT64_MAX)
        answer->limit_bound = MAX(answer->limit_bound, search->options->memory_limit + 1);
    return true;
}

bool mtf_rule_search(const MtfGraph *graph, const GArray *meshes,
                     const MtfRuleSearchOptions *options, MtfRuleAnswer *answer, GError **error) {
    *answer = (MtfRuleAnswer){ .meshes = (int)meshes->len };
    answer->by_mesh = g_array_new(FALSE, TRUE, sizeof(MtfRuleMesh));
    g_array_set_size(answer->by_mesh, meshes->len);
    g_autoptr(MtfRulePrices) own =
        options->prices == NULL ? mtf_rule_prices_new(graph, NULL) : NULL;
    Search search = { .graph = graph,
                      .options = options,
                      .meshes = meshes,
                      .prices = own != NULL ? own : options->prices,
                      .answer = answer,
                      .work = options->draft ? 1.0 / DRAFT_SHARE : 1 };
    if (search_with_terms(&search, error))
        return true;
    mtf_rule_answer_clear(answer);
    return false;
}

void mtf_rule_answer_clear(MtfRuleAnswer *answer) {
    g_clear_pointer(&answer->rules, mtf_rules_free);
    g_clear_pointer(&answer->by_mesh, g_array_unref);
}
