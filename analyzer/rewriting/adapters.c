// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rewriting/adapters.h"

#include "layouts/base/error.h"
#include "layouts/building/builder.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_RANK (1 << 16)
#define STANDARD_TARGETS "wq,wv"
#define RANK_DIMENSION "lora_rank"
#define PUBLISHED_PREFIX "base_model.model."
#define WEIGHT ".weight"

typedef struct {
    MtfGraph *graph;
    MtfBuilder b;
    int64_t rank;
    double scale;
    int rank_dim;
    GHashTable *chosen; /* names of variables, and of the modules that they are parts of */
    GHashTable *downs;  /* module in files -> A + 1 */
    GArray *order;      /* int: operations as they are to stand */
    int adapted;        /* products */
} Adapting;

/* ---- Names ----------------------------------------------------------------------------------- */

static const char *last_part(const char *name, char separator) {
    const char *last = strrchr(name, separator);
    return last != NULL ? last + 1 : name;
}

/* "h.0.attn.c_attn" of "h.0.attn.c_attn.weight[64,0:64/192]"; NULL where files do not keep it so. */
static char *module_of(const MtfTensor *variable) {
    const char *bracket = variable->stored != NULL ? strchr(variable->stored, '[') : NULL;
    if (bracket == NULL)
        return NULL;
    g_autofree char *name = g_strndup(variable->stored, (gsize)(bracket - variable->stored));
    return g_str_has_suffix(name, WEIGHT) ? g_strndup(name, strlen(name) - strlen(WEIGHT)) : NULL;
}

static bool is_target(const MtfTensor *variable, char *const *targets) {
    g_autofree char *module = module_of(variable);
    const char *name = last_part(variable->name, '/');
    const char *published = module != NULL ? last_part(module, '.') : name;
    for (; *targets != NULL; targets++)
        if (g_str_equal(*targets, name) || g_str_equal(*targets, published))
            return true;
    return false;
}

static bool is_weight(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == MTF_MEMORY_VARIABLE;
}

static void choose_targets(Adapting *a, const char *text) {
    g_auto(GStrv) targets = g_strsplit(text, ",", -1);
    for (int t = 0; t < (int)a->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(a->graph, t);
        if (!is_weight(tensor) || !is_target(tensor, targets))
            continue;
        char *module = module_of(tensor);
        g_hash_table_add(a->chosen, g_strdup(tensor->name));
        if (module != NULL)
            g_hash_table_add(a->chosen, module);
    }
}

static bool is_chosen(const Adapting *a, const MtfTensor *variable) {
    g_autofree char *module = module_of(variable);
    return g_hash_table_contains(a->chosen, variable->name) ||
           (module != NULL && g_hash_table_contains(a->chosen, module));
}

/* ---- Variables ------------------------------------------------------------------------------- */

/* What a product's dimensions are to its weight. */
typedef struct {
    MtfShape shared, in,
        out; /* also of the result and of what comes in; summed; only of the weight */
} Sides;

static Sides sides_of(const MtfGraph *graph, const MtfOperation *op, int side) {
    Sides s = { { 0 }, { 0 }, { 0 } };
    const MtfShape *weight = &mtf_graph_tensor(graph, op->inputs[side])->shape;
    const MtfShape *x = &mtf_graph_tensor(graph, op->inputs[1 - side])->shape;
    const MtfShape *y = &mtf_graph_tensor(graph, op->outputs[0])->shape;
    for (int i = 0; i < weight->rank; i++) {
        int dim = weight->dims[i];
        bool comes_in = mtf_shape_find(x, dim) >= 0, goes_out = mtf_shape_find(y, dim) >= 0;
        mtf_shape_append(comes_in && goes_out ? &s.shared : comes_in ? &s.in : &s.out, dim);
    }
    return s;
}

static MtfShape joined(const MtfShape *a, const MtfShape *b, const MtfShape *c) {
    MtfShape all = *a;
    for (int i = 0; i < b->rank; i++)
        mtf_shape_append(&all, b->dims[i]);
    for (int i = 0; i < c->rank; i++)
        mtf_shape_append(&all, c->dims[i]);
    return all;
}

/* GPT-2's files leave out what its modules are below, Conv1D's tensors stand the other way round. */
static char *adapter_place(const char *module, const char *which, const char *rows,
                           const char *columns) {
    const char *below = g_str_has_prefix(module, "h.") ? "transformer." : "";
    return g_strdup_printf(PUBLISHED_PREFIX "%s%s.%s" WEIGHT "[%s,%s]", below, module, which, rows,
                           columns);
}

/* The rows of B: as many as outputs, or the part "0:64/192" that the weight's place has. */
static char *output_rows(const MtfGraph *graph, const MtfTensor *weight, const MtfShape *out) {
    const char *sizes = strchr(weight->stored, '[') + 1;
    g_auto(GStrv) parts = g_strsplit_set(sizes, ",]", -1);
    for (char **part = parts; *part != NULL; part++)
        if (strchr(*part, ':') != NULL)
            return g_strdup(*part);
    return g_strdup_printf("%" PRId64, mtf_graph_elements(graph, out));
}

static int add_variable(Adapting *a, const char *name, const MtfShape *shape, MtfDtype dtype,
                        MtfInit init) {
    return mtf_build_variable(&a->b, name, shape, dtype, init, MTF_MEMORY_VARIABLE);
}

/* A of a weight, made for the first part of its module. */
static int down_variable(Adapting *a, int weight, const Sides *s, const char *module) {
    int known = module == NULL ? -1 : GPOINTER_TO_INT(g_hash_table_lookup(a->downs, module)) - 1;
    if (known >= 0)
        return known;
    const MtfTensor w = *mtf_graph_tensor(a->graph, weight);
    MtfShape rank = { .rank = 1, .dims = { a->rank_dim } };
    MtfShape shape = joined(&s->shared, &rank, &s->in);
    int64_t inputs = mtf_graph_elements(a->graph, &s->in);
    g_autofree char *name = g_strconcat(w.name, "_lora_a", NULL);
    MtfInit init = { MTF_INIT_UNIFORM, 1 / sqrt((double)inputs) };
    int down = add_variable(a, name, &shape, w.dtype, init);
    if (down < 0 || module == NULL)
        return down;
    g_autofree char *rows = g_strdup_printf("%" PRId64, a->rank);
    g_autofree char *columns = g_strdup_printf("%" PRId64, inputs);
    mtf_graph_tensor(a->graph, down)->stored = adapter_place(module, "lora_A", rows, columns);
    g_hash_table_insert(a->downs, g_strdup(module), GINT_TO_POINTER(down + 1));
    return down;
}

static int up_variable(Adapting *a, int weight, const Sides *s, const char *module) {
    const MtfTensor w = *mtf_graph_tensor(a->graph, weight);
    MtfShape rank = { .rank = 1, .dims = { a->rank_dim } };
    MtfShape shape = joined(&s->shared, &s->out, &rank);
    g_autofree char *name = g_strconcat(w.name, "_lora_b", NULL);
    int up = add_variable(a, name, &shape, w.dtype, (MtfInit){ MTF_INIT_CONSTANT, 0 });
    if (up < 0 || module == NULL)
        return up;
    g_autofree char *rows = output_rows(a->graph, &w, &s->out);
    g_autofree char *columns = g_strdup_printf("%" PRId64, a->rank);
    mtf_graph_tensor(a->graph, up)->stored = adapter_place(module, "lora_B", rows, columns);
    return up;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* An operation of two inputs, or of one whose shape it keeps. */
static int part(Adapting *a, int kind, const char *of, const char *suffix, const MtfShape *shape,
                const int *inputs) {
    g_autofree char *name = g_strdup_printf("%s/%s", of, suffix);
    int result = mtf_build(&a->b, kind, name, shape, shape == NULL ? 1 : 2, inputs);
    if (result >= 0) {
        int operation = mtf_graph_tensor(a->graph, result)->producer;
        g_array_append_val(a->order, operation);
    }
    return result;
}

/* The shape between the two products: what comes in without what is summed, and the rank. */
static MtfShape middle_shape(const Adapting *a, const MtfShape *x, const Sides *s) {
    MtfShape shape = { 0 };
    for (int i = 0; i < x->rank; i++)
        if (mtf_shape_find(&s->in, x->dims[i]) < 0)
            mtf_shape_append(&shape, x->dims[i]);
    mtf_shape_append(&shape, a->rank_dim);
    return shape;
}

static void name_adapter(Adapting *a, int weight, int down, int up) {
    MtfTensor *w = mtf_graph_tensor(a->graph, weight);
    if (w->adapter.down != NULL || a->b.error != NULL)
        return;
    w->adapter = (MtfAdapter){ g_strdup(mtf_graph_tensor(a->graph, down)->name),
                               g_strdup(mtf_graph_tensor(a->graph, up)->name), a->scale };
}

/* Whoever read `from` reads `to`, but for the operation that makes `to`. */
static void redirect_readers(MtfGraph *graph, int from, int to) {
    int maker = mtf_graph_tensor(graph, to)->producer;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        MtfOperation *op = mtf_graph_operation(graph, o);
        for (int k = 0; o != maker && k < op->n_inputs; k++)
            if (op->inputs[k] == from)
                op->inputs[k] = to;
    }
    if (graph->loss == from)
        graph->loss = to;
}

/* Adapters of a variable that several products read are those of the first. */
static int adapter_variable(Adapting *a, int weight, const Sides *s, bool is_up) {
    const MtfAdapter *adapter = &mtf_graph_tensor(a->graph, weight)->adapter;
    if (adapter->down != NULL)
        return mtf_graph_find_tensor(a->graph, is_up ? adapter->up : adapter->down);
    g_autofree char *module = module_of(mtf_graph_tensor(a->graph, weight));
    return is_up ? up_variable(a, weight, s, module) : down_variable(a, weight, s, module);
}

static void adapt_product(Adapting *a, int operation, int side) {
    const MtfOperation op = *mtf_graph_operation(a->graph, operation);
    int weight = op.inputs[side], x = op.inputs[1 - side], y = op.outputs[0];
    const MtfShape result = mtf_graph_tensor(a->graph, y)->shape;
    Sides s = sides_of(a->graph, &op, side);
    MtfShape middle = middle_shape(a, &mtf_graph_tensor(a->graph, x)->shape, &s);
    a->b.layer = mtf_graph_tensor(a->graph, weight)->layer;
    int down = adapter_variable(a, weight, &s, false);
    int up = adapter_variable(a, weight, &s, true);
    name_adapter(a, weight, down, up);
    a->b.stage = op.stage;
    a->b.loop = op.loop;
    a->b.layer = op.layer;
    g_autofree char *name = g_strdup(op.name);
    int narrow = part(a, MTF_OP_EINSUM, name, "down", &middle, (int[]){ x, down });
    int wide = part(a, MTF_OP_EINSUM, name, "up", &result, (int[]){ narrow, up });
    a->b.attributes.factor = a->scale;
    int scaled = part(a, MTF_OP_SCALE, name, "scaled", NULL, (int[]){ wide });
    int adapted = part(a, MTF_OP_ADD, name, "adapted", &result, (int[]){ y, scaled });
    if (a->b.error == NULL)
        redirect_readers(a->graph, y, adapted);
    a->adapted++;
}

/* Which of a product's two operands is a chosen weight, or -1. */
static int chosen_side(const Adapting *a, const MtfOperation *op) {
    if (mtf_operation_row(op->kind)->products != MTF_PRODUCTS_EINSUM || op->n_inputs != 2)
        return -1;
    for (int side = 0; side < 2; side++) {
        const MtfTensor *tensor = mtf_graph_tensor(a->graph, op->inputs[side]);
        if (is_weight(tensor) && is_chosen(a, tensor) &&
            !is_weight(mtf_graph_tensor(a->graph, op->inputs[1 - side])))
            return side;
    }
    return -1;
}

static bool adapt_all(Adapting *a, GError **error) {
    int n = (int)a->graph->operations->len;
    for (int o = 0; o < n; o++) {
        g_array_append_val(a->order, o);
        int side = chosen_side(a, mtf_graph_operation(a->graph, o));
        if (side >= 0)
            adapt_product(a, o, side);
    }
    if (!mtf_builder_end(&a->b, error))
        return false;
    mtf_graph_arrange(a->graph, (const int *)(const void *)a->order->data, (int)a->order->len);
    return true;
}

/* ---- Options --------------------------------------------------------------------------------- */

static bool read_rank(const char *text, Adapting *a, GError **error) {
    char *end;
    a->rank = g_ascii_strtoll(text, &end, 10);
    double alpha = (double)a->rank;
    bool good = end != text && a->rank >= 1 && a->rank <= MAX_RANK;
    if (good && *end == ':') {
        const char *number = end + 1;
        alpha = g_ascii_strtod(number, &end);
        good = end != number && isfinite(alpha) && alpha > 0;
    }
    a->scale = alpha / (double)MAX(1, a->rank);
    return (good && *end == '\0') ||
           mtf_input_error(error,
                           "--lora %s: it should be a rank from 1 to %d and, if it is not the "
                           "rank, alpha, as in 8:16",
                           text, MAX_RANK);
}

static void freeze_all(MtfGraph *graph, int n_variables_before) {
    for (int t = 0; t < n_variables_before; t++)
        if (is_weight(mtf_graph_tensor(graph, t)))
            mtf_graph_tensor(graph, t)->frozen = true;
}

static void clear_adapting(Adapting *a) {
    g_hash_table_unref(a->chosen);
    g_hash_table_unref(a->downs);
    g_array_unref(a->order);
}

static bool add_adapters(MtfGraph *graph, const MtfAdapterOptions *o, GPtrArray *said,
                         GError **error) {
    const char *targets = o->targets != NULL ? o->targets : STANDARD_TARGETS;
    Adapting a = { .graph = graph, .b = mtf_builder(graph, MTF_PHASE_FORWARD) };
    if (!read_rank(o->lora, &a, error))
        return false;
    a.rank_dim = mtf_graph_add_dimension(graph, RANK_DIMENSION, a.rank, error);
    if (a.rank_dim < 0)
        return false;
    a.chosen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    a.downs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    a.order = g_array_new(FALSE, FALSE, sizeof(int));
    choose_targets(&a, targets);
    freeze_all(graph, (int)graph->tensors->len);
    bool good = adapt_all(&a, error);
    if (good && a.adapted == 0)
        good = mtf_input_error(error,
                               "--lora-targets %s: no product of this model has a weight of such a "
                               "name (wq, wk, wv, wo, w1 … or the module's in published files)",
                               targets);
    else if (good && said != NULL)
        g_ptr_array_add(said, g_strdup_printf("%d products adapted with rank %" PRId64
                                              ", alpha %g; the rest is frozen",
                                              a.adapted, a.rank, a.scale * (double)a.rank));
    clear_adapting(&a);
    return good;
}

static bool freeze_named(MtfGraph *graph, const char *pattern, GPtrArray *said, GError **error) {
    int n = 0;
    g_autoptr(GPatternSpec) spec = g_pattern_spec_new(pattern);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfTensor *tensor = mtf_graph_tensor(graph, t);
        g_autofree char *module = module_of(tensor);
        bool named = g_pattern_spec_match_string(spec, tensor->name) ||
                     (module != NULL && g_pattern_spec_match_string(spec, module));
        if (!is_weight(tensor) || !named)
            continue;
        tensor->frozen = true;
        n++;
    }
    if (n > 0 && said != NULL)
        g_ptr_array_add(said, g_strdup_printf("%d variables like %s are frozen", n, pattern));
    return n > 0 || mtf_input_error(error, "--freeze %s: no variable has such a name", pattern);
}

static bool check_trained(const MtfGraph *graph, GError **error) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (is_weight(tensor) && !tensor->frozen && mtf_dtype_is_float(tensor->dtype))
            return true;
    }
    return mtf_input_error(error, "--freeze: nothing is left to train");
}

bool mtf_adapters_apply(MtfGraph *graph, const MtfAdapterOptions *o, GPtrArray *said,
                        GError **error) {
    if (o->lora == NULL && o->targets != NULL)
        return mtf_input_error(error, "--lora-targets are of --lora RANK");
    if ((o->lora != NULL || o->freeze != NULL) && mtf_graph_is_training(graph))
        return mtf_input_error(error,
                               "%s is a training graph already: adapters and frozen parts are "
                               "a matter of the graph that it was made from",
                               graph->name);
    if (o->lora != NULL && !add_adapters(graph, o, said, error))
        return false;
    return o->freeze == NULL ||
           (freeze_named(graph, o->freeze, said, error) && check_trained(graph, error));
}
