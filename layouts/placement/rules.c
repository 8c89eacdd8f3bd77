// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/rules.h"

#include "layouts/base/error.h"
#include "layouts/graph/reshape.h"
#include "layouts/placement/dimension_hint.h"

/* An operation that absorbs partial sums depends on all the dimensions its absorbed inputs depend
 * on. Absorption stops before it depends on more than this many, which bounds local searches. */
#define MAX_SCOPE 8

/* And before this many operations decide one: long sums, as of a gradient's norm over all layers, are then
 * made of equal pieces, and the search for rules looks at one of a kind. */
#define MAX_CHAIN 32

MtfRules *mtf_rules_new(const MtfGraph *graph) {
    MtfRules *rules = g_new0(MtfRules, 1);
    rules->n_dims = (int)graph->dimensions->len;
    rules->axis = g_new(int, rules->n_dims + 1);
    for (int d = 0; d < rules->n_dims; d++)
        rules->axis[d] = -1;
    return rules;
}

MtfRules *mtf_rules_copy(const MtfRules *rules) {
    MtfRules *copy = g_new(MtfRules, 1);
    *copy = (MtfRules){ rules->n_dims,
                        g_memdup2(rules->axis, (gsize)rules->n_dims * sizeof *rules->axis) };
    return copy;
}

void mtf_rules_free(MtfRules *rules) {
    if (rules == NULL)
        return;
    g_free(rules->axis);
    g_free(rules);
}

/* ---- Text ---------------------------------------------------------------------------------- */

/* Reports a name that graph or mesh lacks: collects it in `inert`, or fails. */
static bool handle_unknown(const MtfGraph *graph, const char *dim_name, const char *axis_name,
                           bool dim_known, GPtrArray *inert, GError **error) {
    if (inert != NULL) {
        g_ptr_array_add(inert, g_strdup_printf("%s:%s", dim_name, axis_name));
        return true;
    }
    g_autofree char *hint = mtf_graph_dimension_hint(graph, dim_name);
    return dim_known
               ? mtf_input_error(error, "layout: the mesh has no axis \"%s\" (rule %s:%s)",
                                 axis_name, dim_name, axis_name)
               : mtf_input_error(error, "layout: the graph has no dimension \"%s\"%s (rule %s:%s)",
                                 dim_name, hint, dim_name, axis_name);
}

static bool add_rule(const MtfGraph *graph, const MtfMesh *mesh, MtfRules *rules,
                     const char *dim_name, const char *axis_name, GPtrArray *inert,
                     GError **error) {
    int dim = mtf_graph_find_dimension(graph, dim_name);
    int axis = mtf_mesh_axis(mesh, axis_name);
    if (dim < 0 || axis < 0)
        return handle_unknown(graph, dim_name, axis_name, dim >= 0, inert, error);
    if (rules->axis[dim] >= 0 && rules->axis[dim] != axis)
        return mtf_input_error(error,
                               "layout: dimension \"%s\" is given two mesh axes, \"%s\" and \"%s\"",
                               dim_name, mesh->axes[rules->axis[dim]].name, axis_name);
    rules->axis[dim] = axis;
    return true;
}

/* The dimension that samples of `to` go by until they are called `to` again, as `reverse`, `roll` and scans have it:
 * what an operation renames to `to` right after it was made of it; else -1. */
static int passing_dimension(const MtfGraph *graph, const MtfOperation *op) {
    int producer = mtf_graph_tensor(graph, op->inputs[0])->producer;
    if (mtf_operation_row(op->kind)->dims != MTF_DIMS_RENAMED || producer < 0)
        return -1;
    const MtfOperation *made = mtf_graph_operation(graph, producer);
    bool samples = mtf_operation_row(made->kind)->samples &&
                   made->attributes.from == op->attributes.to &&
                   made->attributes.to == op->attributes.from;
    return samples ? op->attributes.from : -1;
}

/* Such a dimension, where no rule names it, lies as the one it comes from, where that is legal: nothing is
 * gathered between the two. */
static void add_passing_rules(const MtfGraph *graph, const MtfMesh *mesh, MtfRules *rules) {
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        int dim = op->n_inputs == 1 ? passing_dimension(graph, op) : -1;
        if (dim < 0 || rules->axis[dim] >= 0 || rules->axis[op->attributes.to] < 0)
            continue;
        rules->axis[dim] = rules->axis[op->attributes.to];
        if (!mtf_rules_check(graph, mesh, rules, NULL))
            rules->axis[dim] = -1;
    }
}

MtfRules *mtf_rules_parse(const MtfGraph *graph, const MtfMesh *mesh, const char *text,
                          GPtrArray *inert, GError **error) {
    g_auto(GStrv) dims = NULL;
    g_auto(GStrv) axes = NULL;
    if (!mtf_pairs_parse(text, "layout", &dims, &axes, error))
        return NULL;
    g_autoptr(MtfRules) rules = mtf_rules_new(graph);
    for (int i = 0; dims[i] != NULL; i++)
        if (!add_rule(graph, mesh, rules, dims[i], axes[i], inert, error))
            return NULL;
    if (!mtf_rules_check(graph, mesh, rules, error))
        return NULL;
    add_passing_rules(graph, mesh, rules);
    return g_steal_pointer(&rules);
}

char *mtf_rules_format(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules) {
    GString *text = g_string_new(NULL);
    for (int a = 0; a < mesh->n_axes; a++)
        for (int d = 0; d < rules->n_dims; d++)
            if (rules->axis[d] == a)
                g_string_append_printf(text, "%s%s:%s", text->len > 0 ? ";" : "",
                                       mtf_graph_dimension(graph, d)->name, mesh->axes[a].name);
    return g_string_free(text, FALSE);
}

static bool check_tensor(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules,
                         const MtfTensor *tensor, GError **error) {
    int holder[MTF_MAX_MESH_AXES];
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        holder[a] = -1;
    for (int i = 0; i < tensor->shape.rank; i++) {
        int dim = tensor->shape.dims[i];
        int axis = rules->axis[dim];
        if (axis < 0)
            continue;
        if (holder[axis] >= 0)
            return mtf_input_error(error,
                                   "layout: dimensions \"%s\" and \"%s\" of tensor \"%s\" are both "
                                   "on mesh axis \"%s\"",
                                   mtf_graph_dimension(graph, holder[axis])->name,
                                   mtf_graph_dimension(graph, dim)->name, tensor->name,
                                   mesh->axes[axis].name);
        holder[axis] = dim;
    }
    return true;
}

bool mtf_rules_check(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules,
                     GError **error) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (!check_tensor(graph, mesh, rules, mtf_graph_tensor(graph, t), error))
            return false;
    return true;
}

/* ---- Absorption: what can travel on as a partial sum ---------------------------------------- */

struct MtfRuleScopes {
    const MtfGraph *graph;
    GHashTable *distinct;            /* iteration spaces, each once */
    const MtfIteration **iterations; /* one an operation, of those */
    int *absorber;                   /* for each tensor: the operation that may absorb it, or -1 */
    GArray **dims;       /* for each operation: what its strategy depends on (int, ascending) */
    GArray **operations; /* and the operations that decide it (int, ascending) */
};

static guint iteration_hash(gconstpointer key) {
    const MtfIteration *iteration = key;
    guint hash = (guint)iteration->n;
    for (int i = 0; i < iteration->n; i++)
        hash = hash * 31 + (guint)iteration->index[i].dim;
    return hash;
}

static bool indexes_equal(const MtfIndex *a, const MtfIndex *b) {
    return a->dim == b->dim && a->input_dim == b->input_dim && a->other_dim == b->other_dim &&
           a->window == b->window && a->is_larger == b->is_larger && a->joined == b->joined &&
           a->size == b->size && a->reduced == b->reduced && a->whole == b->whole &&
           a->even == b->even && a->most == b->most;
}

static gboolean iteration_equal(gconstpointer left, gconstpointer right) {
    const MtfIteration *a = left, *b = right;
    for (int i = 0; i < MIN(a->n, b->n); i++)
        if (!indexes_equal(&a->index[i], &b->index[i]))
            return FALSE;
    return a->n == b->n;
}

/* The iteration space of an operation. Those of repeated layers are one: each takes a kilobyte. */
static const MtfIteration *share_iteration(MtfRuleScopes *scopes, int operation) {
    MtfIteration iteration;
    mtf_operation_iteration(scopes->graph, operation, &iteration);
    const MtfIteration *known = g_hash_table_lookup(scopes->distinct, &iteration);
    if (known != NULL)
        return known;
    MtfIteration *own = g_memdup2(&iteration, sizeof iteration);
    g_hash_table_add(scopes->distinct, own);
    return own;
}

static void insert_ascending(GArray *set, int value) {
    guint at = set->len;
    while (at > 0 && g_array_index(set, int, at - 1) >= value) {
        if (g_array_index(set, int, at - 1) == value)
            return;
        at--;
    }
    g_array_insert_val(set, at, value);
}

static void insert_all(GArray *set, const GArray *values) {
    for (guint i = 0; i < values->len; i++)
        insert_ascending(set, g_array_index(values, int, i));
}

static guint union_size(const GArray *a, const GArray *b) {
    g_autoptr(GArray) both = g_array_copy((GArray *)a);
    insert_all(both, b);
    return both->len;
}

static int count_uses(const MtfOperation *operation, int tensor) {
    int uses = 0;
    for (int k = 0; k < operation->n_inputs; k++)
        uses += operation->inputs[k] == tensor;
    return uses;
}

/* Whether the only consumer of input `k` of `operation` could take it as a partial sum. */
static bool may_absorb(const MtfRuleScopes *scopes, const MtfConsumers *consumers, int operation,
                       int k) {
    const MtfGraph *graph = scopes->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    int tensor = op->inputs[k];
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (t->producer < 0 || tensor == graph->loss || op->n_outputs != 1 ||
        consumers->starts[tensor + 1] - consumers->starts[tensor] != 1 ||
        count_uses(op, tensor) != 1 ||
        !(mtf_operation_passes_partial(graph, operation, k) || mtf_operation_adds_input(op, k)))
        return false;
    const MtfTensor *result = mtf_graph_tensor(graph, op->outputs[0]);
    return mtf_graph_elements(graph, &result->shape) <= mtf_graph_elements(graph, &t->shape);
}

static void find_absorbed(MtfRuleScopes *scopes, const MtfConsumers *consumers, int operation) {
    const MtfOperation *op = mtf_graph_operation(scopes->graph, operation);
    const MtfIteration *iteration = scopes->iterations[operation];
    GArray *dims = scopes->dims[operation];
    for (int i = 0; i < iteration->n; i++) {
        insert_ascending(dims, iteration->index[i].dim);
        insert_ascending(dims, iteration->index[i].input_dim);
        if (iteration->index[i].other_dim >= 0) /* the other side of a window */
            insert_ascending(dims, iteration->index[i].other_dim);
    }
    for (int k = 0; k < op->n_inputs; k++) {
        int joined =
            mtf_operation_row(op->kind)->joins ? mtf_joined_side(scopes->graph, op, k) : -1;
        if (joined >= 0)
            insert_ascending(dims, joined);
        if (!may_absorb(scopes, consumers, operation, k))
            continue;
        int producer = mtf_graph_tensor(scopes->graph, op->inputs[k])->producer;
        if (union_size(dims, scopes->dims[producer]) > MAX(MAX_SCOPE, dims->len) ||
            scopes->operations[producer]->len + scopes->operations[operation]->len > MAX_CHAIN)
            continue;
        scopes->absorber[op->inputs[k]] = operation;
        insert_all(dims, scopes->dims[producer]);
        insert_all(scopes->operations[operation], scopes->operations[producer]);
    }
    insert_ascending(scopes->operations[operation], operation);
}

MtfRuleScopes *mtf_rule_scopes_new(const MtfGraph *graph) {
    MtfRuleScopes *scopes = g_new0(MtfRuleScopes, 1);
    int n = (int)graph->operations->len;
    scopes->graph = graph;
    scopes->distinct = g_hash_table_new_full(iteration_hash, iteration_equal, g_free, NULL);
    scopes->iterations = g_new(const MtfIteration *, n);
    scopes->dims = g_new(GArray *, n);
    scopes->operations = g_new(GArray *, n);
    scopes->absorber = g_new(int, graph->tensors->len + 1);
    for (guint t = 0; t < graph->tensors->len; t++)
        scopes->absorber[t] = -1;
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    for (int i = 0; i < n; i++) {
        scopes->dims[i] = g_array_new(FALSE, FALSE, sizeof(int));
        scopes->operations[i] = g_array_new(FALSE, FALSE, sizeof(int));
        scopes->iterations[i] = share_iteration(scopes, i);
        find_absorbed(scopes, consumers, i);
    }
    return scopes;
}

void mtf_rule_scopes_free(MtfRuleScopes *scopes) {
    if (scopes == NULL)
        return;
    for (guint i = 0; i < scopes->graph->operations->len; i++) {
        g_array_unref(scopes->dims[i]);
        g_array_unref(scopes->operations[i]);
    }
    g_free(scopes->dims);
    g_free(scopes->operations);
    g_free(scopes->iterations);
    g_hash_table_unref(scopes->distinct);
    g_free(scopes->absorber);
    g_free(scopes);
}

void mtf_rule_scopes_get(const MtfRuleScopes *scopes, int operation, GArray *dims,
                         GArray *operations) {
    const MtfOperation *op = mtf_graph_operation(scopes->graph, operation);
    insert_all(dims, scopes->dims[operation]);
    insert_all(operations, scopes->operations[operation]);
    for (int k = 0; k < op->n_outputs; k++) {
        int absorber = scopes->absorber[op->outputs[k]];
        if (absorber < 0)
            continue;
        insert_all(dims, scopes->dims[absorber]);
        insert_all(operations, scopes->operations[absorber]);
    }
}

/* ---- Derivation ---------------------------------------------------------------------------- */

typedef struct {
    const MtfRuleScopes *scopes;
    const MtfRules *rules;
    MtfLayout *layout;
} Derivation;

/* Sharded by the rules of its dimensions, replicated elsewhere. */
static MtfPlacement settled(const Derivation *derivation, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(derivation->scopes->graph, tensor)->shape;
    MtfPlacement placement = mtf_placement_replicated();
    for (int i = shape->rank - 1; i >= 0; i--) {
        int axis = derivation->rules->axis[shape->dims[i]];
        if (axis >= 0)
            placement.axis[axis] = (int16_t)shape->dims[i];
    }
    return placement;
}

static bool may_split(const MtfIndex *index, int64_t parts) {
    return !index->whole && (index->even == 0 || index->even % parts == 0);
}

static MtfStrategy split_by_rules(const Derivation *derivation, int operation) {
    const MtfIteration *iteration = derivation->scopes->iterations[operation];
    MtfStrategy strategy = mtf_strategy_duplicated();
    for (int i = iteration->n - 1; i >= 0; i--) {
        int axis = derivation->rules->axis[iteration->index[i].dim];
        if (axis >= 0 && may_split(&iteration->index[i], derivation->layout->mesh.axes[axis].size))
            strategy.axis[axis] = (int8_t)i;
    }
    return strategy;
}

/* Whether input `k` arrives as a partial sum over `axis` that this operation may absorb. */
static bool arrives_partial(const Derivation *derivation, const MtfOperation *op, int operation,
                            int k, int axis) {
    int tensor = op->inputs[k];
    return derivation->scopes->absorber[tensor] == operation &&
           derivation->layout->tensors[tensor].axis[axis] == MTF_PARTIAL_SUM;
}

/* What the operation does with partial inputs on an axis its rules leave free. */
static int choose_partial_input(const Derivation *derivation, int operation, int axis) {
    const MtfOperation *op = mtf_graph_operation(derivation->scopes->graph, operation);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    int first = -1, count = 0;
    for (int k = 0; k < op->n_inputs; k++) {
        if (mtf_operation_adds_input(op, k) || !arrives_partial(derivation, op, operation, k, axis))
            continue;
        first = first < 0 ? k : first;
        count++;
    }
    if (joint)
        return count >= 2 ? MTF_PARTIAL_INPUT : MTF_DUPLICATED;
    return count >= 1 ? MTF_PARTIAL_INPUT - first : MTF_DUPLICATED;
}

/* Inputs that this operation could have absorbed and does not are kept reduced. */
static void derive_inputs(const Derivation *derivation, int operation) {
    const MtfGraph *graph = derivation->scopes->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfStrategy *strategy = &derivation->layout->operations[operation];
    for (int k = 0; k < op->n_inputs; k++) {
        int tensor = op->inputs[k];
        if (derivation->scopes->absorber[tensor] != operation)
            continue;
        MtfPlacement wanted = mtf_strategy_input(
            graph, operation, derivation->scopes->iterations[operation], strategy, k);
        MtfPlacement *kept = &derivation->layout->tensors[tensor];
        for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
            if (mtf_axis_is_partial(kept->axis[a]) && wanted.axis[a] != kept->axis[a])
                kept->axis[a] = MTF_REPLICATED;
    }
}

static void place_outputs(const Derivation *derivation, int operation) {
    const MtfGraph *graph = derivation->scopes->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    for (int k = 0; k < op->n_outputs; k++) {
        int tensor = op->outputs[k];
        derivation->layout->tensors[tensor] =
            derivation->scopes->absorber[tensor] >= 0
                ? mtf_strategy_output(graph, operation, derivation->scopes->iterations[operation],
                                      &derivation->layout->operations[operation], k)
                : settled(derivation, tensor);
    }
}

static void derive_operation(const Derivation *derivation, int operation) {
    const MtfOperation *op = mtf_graph_operation(derivation->scopes->graph, operation);
    for (int k = 0; k < op->n_inputs; k++)
        if (derivation->scopes->absorber[op->inputs[k]] != operation)
            derivation->layout->tensors[op->inputs[k]] = settled(derivation, op->inputs[k]);
    MtfStrategy strategy = split_by_rules(derivation, operation);
    for (int a = 0; a < derivation->layout->mesh.n_axes; a++)
        if (strategy.axis[a] == MTF_DUPLICATED)
            strategy.axis[a] = (int8_t)choose_partial_input(derivation, operation, a);
    derivation->layout->operations[operation] = strategy;
    derive_inputs(derivation, operation);
    place_outputs(derivation, operation);
}

void mtf_rules_derive(const MtfRuleScopes *scopes, const MtfRules *rules, const int *operations,
                      int n_operations, MtfLayout *layout) {
    Derivation derivation = { scopes, rules, layout };
    int n = n_operations < 0 ? (int)scopes->graph->operations->len : n_operations;
    for (int i = 0; i < n; i++)
        derive_operation(&derivation, n_operations < 0 ? i : operations[i]);
}

MtfLayout *mtf_layout_from_rules(const MtfGraph *graph, const MtfMesh *mesh,
                                 const MtfRules *rules) {
    g_autoptr(MtfRuleScopes) scopes = mtf_rule_scopes_new(graph);
    MtfLayout *layout = mtf_layout_new(graph, mesh);
    Derivation derivation = { scopes, rules, layout };
    for (int t = 0; t < layout->n_tensors; t++)
        layout->tensors[t] = settled(&derivation, t);
    mtf_rules_derive(scopes, rules, NULL, -1, layout);
    layout->rules = mtf_rules_format(graph, mesh, rules);
    return layout;
}
