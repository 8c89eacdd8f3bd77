// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search_terms.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

#include <string.h>

typedef struct {
    MtfRuleTerms *terms;
    const MtfGraph *graph;
    MtfConsumers *consumers;
    int *updated;           /* for each tensor: the variable whose next value it is, or -1 */
    int *term_of_operation; /* one an operation */
    GHashTable *by_text;    /* signature of an operation -> term + 1 */
    GHashTable *class_ids;  /* signature of a tensor -> class + 1 */
    int repeated;           /* operations that every micro-batch runs */
    const MtfLoopSpans *loops;
} Build;

const MtfRuleTerm *mtf_rule_term(const MtfRuleTerms *terms, int index) {
    return g_ptr_array_index(terms->terms, (guint)index);
}

const MtfRuleClass *mtf_rule_class(const MtfRuleTerms *terms, int index) {
    return &g_array_index(terms->classes, MtfRuleClass, index);
}

const MtfScope *mtf_rule_maximal(const MtfRuleTerms *terms, int index) {
    return &g_array_index(terms->maximal, MtfScope, index);
}

static int last_reader(const Build *build, int tensor) {
    int from = build->consumers->starts[tensor], to = build->consumers->starts[tensor + 1];
    return to > from ? build->consumers->operations[to - 1] : -1;
}

/* ---- Signatures: what makes two operations equal -------------------------------------------- */

static int local_number(GArray *seen, int tensor) {
    for (guint i = 0; i < seen->len; i++)
        if (g_array_index(seen, int, i) == tensor)
            return (int)i;
    g_array_append_val(seen, tensor);
    return (int)seen->len - 1;
}

/* Whether a variable takes what a loop leaves: `updated` names the loop's own state. */
static bool leaves_loop(const MtfGraph *graph, int tensor) {
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    bool loops = producer >= 0 && mtf_graph_operation(graph, producer)->loop > 0;
    for (guint i = 0; loops && i < graph->updates->len; i++)
        if (g_array_index(graph->updates, MtfUpdate, i).value == tensor)
            return true;
    return false;
}

/* Behind the last reader of the variable, or behind the loop that leaves its next value. */
static bool updates_late(const Build *build, int tensor) {
    int variable = build->updated[tensor];
    return leaves_loop(build->graph, tensor) ||
           (variable >= 0 &&
            last_reader(build, variable) > mtf_graph_tensor(build->graph, tensor)->producer);
}

static void append_shape(GString *text, const MtfTensor *tensor) {
    const int facts[] = { (int)tensor->dtype, tensor->shape.rank };
    mtf_facts_append(text, facts, (int)G_N_ELEMENTS(facts));
    mtf_facts_append(text, tensor->shape.dims, tensor->shape.rank);
}

static void append_tensor(const Build *build, GString *text, GArray *seen, int tensor) {
    int known = (int)seen->len, number = local_number(seen, tensor);
    mtf_facts_append(text, &number, 1);
    if (number < known)
        return;
    const MtfTensor *t = mtf_graph_tensor(build->graph, tensor);
    const int *readers = &build->consumers->starts[tensor];
    const int facts[] = { (int)t->source, readers[1] - readers[0], tensor == build->graph->loss,
                          updates_late(build, tensor) };
    append_shape(text, t);
    mtf_facts_append(text, facts, (int)G_N_ELEMENTS(facts));
    if (build->updated[tensor] >= 0)
        append_tensor(build, text, seen, build->updated[tensor]);
}

static void append_operation(const Build *build, GString *text, GArray *seen, int operation) {
    const MtfOperation *op = mtf_graph_operation(build->graph, operation);
    mtf_operation_append_facts(text, build->graph, operation);
    for (int k = 0; k < op->n_inputs; k++) {
        append_tensor(build, text, seen, op->inputs[k]);
        if (op->loop > 0 && mtf_operation_reads_anew(build->graph, op, op->inputs[k]))
            g_string_append(text, "anew ");
    }
    g_string_append(text, "->");
    for (int k = 0; k < op->n_outputs; k++)
        append_tensor(build, text, seen, op->outputs[k]);
    g_string_append_c(text, '\n');
}

static char *signature_of(const Build *build, int operation, const GArray *visits) {
    GString *text = g_string_new(NULL);
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(int));
    append_operation(build, text, seen, operation);
    for (guint i = 0; i < visits->len; i++)
        append_operation(build, text, seen, g_array_index(visits, int, i));
    return g_string_free(text, FALSE);
}

/* ---- Terms ---------------------------------------------------------------------------------- */

static MtfScope scope_of(const GArray *dims) {
    return (MtfScope){ (int)dims->len, g_memdup2(dims->data, dims->len * sizeof(int)) };
}

static void free_term(gpointer data) {
    MtfRuleTerm *term = data;
    g_free(term->scope.dims);
    g_array_unref(term->visits);
    mtf_operation_alone_clear(&term->alone);
    g_array_unref(term->dimensions);
    g_free(term->text);
    g_free(term);
}

static int add_term(Build *build, int operation, const GArray *dims, GArray *visits) {
    MtfRuleTerm *term = g_new0(MtfRuleTerm, 1);
    const MtfOperation *op = mtf_graph_operation(build->graph, operation);
    term->scope = scope_of(dims);
    term->operation = operation;
    term->visits = g_array_ref(visits);
    for (int k = 0; k < op->n_outputs; k++)
        term->late |= (unsigned)updates_late(build, op->outputs[k]) << k;
    mtf_operation_alone_init(&term->alone, build->graph, operation, build->updated);
    term->dimensions = mtf_operation_alone_dimensions(&term->alone);
    g_autofree char *alone = mtf_operation_alone_text(&term->alone, term->dimensions);
    term->text = g_strdup_printf("%s late %u", alone, term->late);
    g_ptr_array_add(build->terms->terms, term);
    return (int)build->terms->terms->len - 1;
}

static void insert_dim(GArray *dims, int dim) {
    guint at = 0;
    while (at < dims->len && g_array_index(dims, int, at) < dim)
        at++;
    if (at == dims->len || g_array_index(dims, int, at) != dim)
        g_array_insert_val(dims, at, dim);
}

/* An update's variable lies where its own dimensions say; they are the value's. */
static void add_operation(Build *build, int operation) {
    g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) visits = g_array_new(FALSE, FALSE, sizeof(int));
    mtf_rule_scopes_get(build->terms->scopes, operation, dims, visits);
    char *text = signature_of(build, operation, visits);
    int term = GPOINTER_TO_INT(g_hash_table_lookup(build->by_text, text)) - 1;
    if (term < 0) {
        term = add_term(build, operation, dims, visits);
        g_hash_table_insert(build->by_text, text, GINT_TO_POINTER(term + 1));
    } else {
        g_free(text);
    }
    ((MtfRuleTerm *)g_ptr_array_index(build->terms->terms, (guint)term))->count++;
    build->term_of_operation[operation] = term;
}

/* ---- Classes and lives of tensors ----------------------------------------------------------- */

static char *class_text(const Build *build, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(build->graph, tensor);
    GString *text = g_string_new(NULL);
    if (t->producer < 0) {
        append_shape(text, t);
        return g_string_free(text, FALSE);
    }
    const MtfOperation *op = mtf_graph_operation(build->graph, t->producer);
    int output = 0;
    while (op->outputs[output] != tensor)
        output++;
    g_string_append_printf(text, "%d %d", build->term_of_operation[t->producer], output);
    return g_string_free(text, FALSE);
}

static void classify(Build *build, int tensor) {
    MtfRuleTerms *terms = build->terms;
    char *text = class_text(build, tensor);
    int class = GPOINTER_TO_INT(g_hash_table_lookup(build->class_ids, text)) - 1;
    terms->tensor_class[tensor] = class;
    if (class >= 0) {
        g_free(text);
        return;
    }
    MtfRuleClass new_class = { .term = -1, .example = tensor };
    int producer = mtf_graph_tensor(build->graph, tensor)->producer;
    if (producer >= 0) {
        const MtfOperation *op = mtf_graph_operation(build->graph, producer);
        new_class.term = build->term_of_operation[producer];
        while (op->outputs[new_class.output] != tensor)
            new_class.output++;
    }
    g_array_append_val(terms->classes, new_class);
    terms->tensor_class[tensor] = (int)terms->classes->len - 1;
    g_hash_table_insert(build->class_ids, text, GINT_TO_POINTER((int)terms->classes->len));
}

static bool may_work_in_place(const MtfOperation *op, int tensor) {
    return op->outputs[0] != tensor || mtf_operation_row(op->kind)->in_place != 0;
}

static MtfRuleLife life_of(const Build *build, int tensor) {
    int producer = mtf_graph_tensor(build->graph, tensor)->producer;
    if (producer < 0)
        return (MtfRuleLife){ 0, 2 * (int)build->graph->operations->len };
    if (build->updated[tensor] >= 0)
        return (MtfRuleLife){ 1, 0 };
    const MtfOperation *op = mtf_graph_operation(build->graph, producer);
    int end = 2 * MAX(last_reader(build, tensor), producer);
    if (mtf_operation_accumulates(build->graph, producer))
        return (MtfRuleLife){ 0, MAX(end, 2 * build->repeated - 2) };
    int first = producer, behind = 0;
    mtf_loop_prolong(build->graph, build->consumers, build->loops, tensor, &first, &behind);
    if (behind > 0)
        return (MtfRuleLife){ 2 * first, MAX(end, 2 * behind - 2) };
    return (MtfRuleLife){ 2 * producer + may_work_in_place(op, tensor), end };
}

static void find_conflicts(MtfRuleTerms *terms) {
    int n = (int)terms->graph->dimensions->len;
    terms->conflicts = g_new0(bool, (gsize)n *(gsize)n + 1);
    for (int t = 0; t < (int)terms->graph->tensors->len; t++) {
        const MtfShape *shape = &mtf_graph_tensor(terms->graph, t)->shape;
        for (int i = 0; i < shape->rank; i++)
            for (int j = 0; j < shape->rank; j++)
                if (i != j)
                    terms->conflicts[shape->dims[i] * n + shape->dims[j]] = true;
    }
}

/* ---- Maximal scopes ------------------------------------------------------------------------- */

static bool contains(const MtfScope *whole, const MtfScope *part) {
    int at = 0;
    for (int i = 0; i < whole->n && at < part->n; i++)
        at += whole->dims[i] == part->dims[at];
    return at == part->n;
}

/* The index of the first maximal scope that contains `scope`, or -1. */
static int find_maximal(const MtfRuleTerms *terms, const MtfScope *scope) {
    for (guint i = 0; i < terms->maximal->len; i++)
        if (contains(mtf_rule_maximal(terms, (int)i), scope))
            return (int)i;
    return -1;
}

static void add_maximal(MtfRuleTerms *terms, const MtfScope *scope) {
    if (find_maximal(terms, scope) >= 0)
        return;
    for (guint i = terms->maximal->len; i-- > 0;)
        if (contains(scope, mtf_rule_maximal(terms, (int)i)))
            g_array_remove_index(terms->maximal, i);
    MtfScope copy = { scope->n, g_memdup2(scope->dims, (gsize)scope->n * sizeof(int)) };
    g_array_append_val(terms->maximal, copy);
}

static MtfScope class_scope(const MtfRuleTerms *terms, const MtfRuleClass *class) {
    if (class->term >= 0) {
        const MtfScope *scope = &mtf_rule_term(terms, class->term)->scope;
        return (MtfScope){ scope->n, g_memdup2(scope->dims, (gsize)scope->n * sizeof(int)) };
    }
    g_autoptr(GArray) dims = g_array_new(FALSE, FALSE, sizeof(int));
    const MtfShape *shape = &mtf_graph_tensor(terms->graph, class->example)->shape;
    for (int i = 0; i < shape->rank; i++)
        insert_dim(dims, shape->dims[i]);
    return scope_of(dims);
}

static void clear_scope(gpointer data) {
    g_free(((MtfScope *)data)->dims);
}

static void resolve_scopes(MtfRuleTerms *terms) {
    g_autoptr(GArray) scopes = g_array_new(FALSE, FALSE, sizeof(MtfScope));
    g_array_set_clear_func(scopes, clear_scope);
    for (guint c = 0; c < terms->classes->len; c++) {
        MtfScope scope = class_scope(terms, mtf_rule_class(terms, (int)c));
        g_array_append_val(scopes, scope);
    }
    for (guint i = 0; i < terms->terms->len; i++)
        add_maximal(terms, &mtf_rule_term(terms, (int)i)->scope);
    for (guint c = 0; c < scopes->len; c++)
        add_maximal(terms, &g_array_index(scopes, MtfScope, c));
    for (guint i = 0; i < terms->terms->len; i++) {
        MtfRuleTerm *term = g_ptr_array_index(terms->terms, i);
        term->maximal = find_maximal(terms, &term->scope);
    }
    for (guint c = 0; c < scopes->len; c++)
        g_array_index(terms->classes, MtfRuleClass, c).maximal =
            find_maximal(terms, &g_array_index(scopes, MtfScope, c));
}

/* ---- Entry ---------------------------------------------------------------------------------- */

MtfRuleTerms *mtf_rule_terms_new(const MtfGraph *graph) {
    int n_tensors = (int)graph->tensors->len, n_operations = (int)graph->operations->len;
    MtfRuleTerms *terms = g_new0(MtfRuleTerms, 1);
    terms->graph = graph;
    terms->scopes = mtf_rule_scopes_new(graph);
    terms->terms = g_ptr_array_new_with_free_func(free_term);
    terms->classes = g_array_new(FALSE, FALSE, sizeof(MtfRuleClass));
    terms->maximal = g_array_new(FALSE, FALSE, sizeof(MtfScope));
    g_array_set_clear_func(terms->maximal, clear_scope);
    terms->tensor_class = g_new(int, (gsize)n_tensors + 1);
    terms->lives = g_new(MtfRuleLife, (gsize)n_tensors + 1);
    g_autofree int *updated = mtf_graph_next_values(graph);
    g_auto(MtfLoopSpans) loops = mtf_loop_spans(graph);
    g_autofree int *term_of_operation = g_new(int, (gsize)n_operations + 1);
    g_autoptr(GHashTable) by_text = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) class_ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    Build build = { terms,
                    graph,
                    consumers,
                    updated,
                    term_of_operation,
                    by_text,
                    class_ids,
                    mtf_graph_repeated(graph),
                    &loops };
    for (int i = 0; i < n_operations; i++)
        add_operation(&build, i);
    for (int t = 0; t < n_tensors; t++) {
        classify(&build, t);
        terms->lives[t] = life_of(&build, t);
    }
    find_conflicts(terms);
    resolve_scopes(terms);
    return terms;
}

void mtf_rule_terms_free(MtfRuleTerms *terms) {
    if (terms == NULL)
        return;
    mtf_rule_scopes_free(terms->scopes);
    g_ptr_array_unref(terms->terms);
    g_array_unref(terms->classes);
    g_array_unref(terms->maximal);
    g_free(terms->tensor_class);
    g_free(terms->lives);
    g_free(terms->conflicts);
    g_free(terms);
}
