// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/graph_link.h"

#include "layouts/base/nearest_name.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph_file/graph_fields.h"

#include <string.h>

#define MAX_UNROLLED 2000000
#define MAX_CARRIED 64
#define MAX_CYCLE_NAMES 8

/* One iteration of a block. The graph itself is one, with an empty prefix and no parent. */
typedef struct Scope {
    const struct Scope *parent;
    const MtfBlockText *block;
    const char *prefix;   /* "layer/7/" */
    const char **carried; /* one name a carried value, as it is outside of the iteration */
    int loop;             /* whose body it is, from 1; 0: none */
    MtfLayer layer;
} Scope;

typedef enum { WAITING, OPEN, DONE } State;

/* An operation of the unrolled graph. */
typedef struct {
    const MtfOperationText *text;
    const Scope *scope;
    const char *name;
    State state;
} Declaration;

/* An operation whose inputs are being looked up; `inputs` is what is found so far. */
typedef struct {
    int declaration;
    int n;
    int *inputs;
} Frame;

struct MtfLinker {
    MtfGraph *graph;
    GStringChunk *strings;
    GPtrArray *scopes;    /* Scope, those of one block together */
    GArray *declarations; /* Declaration, in order */
    GHashTable *results;  /* name of an output -> declaration + 1 */
    GHashTable *aliases;  /* "layer/x" -> name */
    GArray *stack;        /* Frame: each waits for the one above it */
};

static void free_scope(gpointer data) {
    Scope *scope = data;
    g_free(scope->carried);
    g_free(scope);
}

static void clear_frame(gpointer data) {
    g_free(((Frame *)data)->inputs);
}

static MtfLinker *new_linker(MtfGraph *graph) {
    MtfLinker *linker = g_new0(MtfLinker, 1);
    linker->graph = graph;
    linker->strings = g_string_chunk_new(4096);
    linker->scopes = g_ptr_array_new_with_free_func(free_scope);
    linker->declarations = g_array_new(FALSE, TRUE, sizeof(Declaration));
    linker->results = g_hash_table_new(g_str_hash, g_str_equal);
    linker->aliases = g_hash_table_new(g_str_hash, g_str_equal);
    linker->stack = g_array_new(FALSE, TRUE, sizeof(Frame));
    g_array_set_clear_func(linker->stack, clear_frame);
    return linker;
}

void mtf_linker_free(MtfLinker *linker) {
    if (linker == NULL)
        return;
    g_array_unref(linker->stack);
    g_hash_table_unref(linker->aliases);
    g_hash_table_unref(linker->results);
    g_array_unref(linker->declarations);
    g_ptr_array_unref(linker->scopes);
    g_string_chunk_free(linker->strings);
    g_free(linker);
}

static Declaration *declaration_at(const MtfLinker *linker, int index) {
    return &g_array_index(linker->declarations, Declaration, index);
}

/* Joins and keeps. */
static const char *join(MtfLinker *linker, const char *prefix, const char *name) {
    g_autofree char *joined = g_strconcat(prefix, name, NULL);
    return g_string_chunk_insert(linker->strings, joined);
}

/* ---- declaring: every name of the unrolled graph becomes known ---- */

/* The same name in our own memory, or NULL when nothing is called so. */
static const char *stored_name(const MtfLinker *linker, const char *name) {
    gpointer key;
    int tensor = mtf_graph_find_tensor(linker->graph, name);
    if (tensor >= 0)
        return mtf_graph_tensor(linker->graph, tensor)->name;
    if (g_hash_table_lookup_extended(linker->results, name, &key, NULL) ||
        g_hash_table_lookup_extended(linker->aliases, name, &key, NULL))
        return key;
    return NULL;
}

static bool check_new(const MtfLinker *linker, const MtfJson *where, const char *name,
                      GError **error) {
    return stored_name(linker, name) == NULL ||
           mtf_json_fail(where, error, "the name \"%s\" is given twice", name);
}

/* Repeated blocks do not nest: what names a layer itself stands outside of them. */
static MtfLayer layer_in(const Scope *scope, MtfLayer own) {
    return scope->layer.block > 0 ? scope->layer : own;
}

static bool declare_variable(MtfLinker *linker, const Scope *scope, const MtfVariableText *text,
                             GError **error) {
    GError *cause = NULL;
    const char *name = join(linker, scope->prefix, text->name);
    if (!check_new(linker, &text->where, name, error))
        return false;
    int tensor = mtf_graph_add_variable(linker->graph, name, &text->shape, text->dtype, text->init,
                                        text->memory, &cause);
    if (tensor < 0)
        return mtf_field_relay(&text->where, cause, error);
    mtf_graph_tensor(linker->graph, tensor)->frozen = text->frozen;
    mtf_graph_tensor(linker->graph, tensor)->undecayed = text->undecayed;
    mtf_graph_tensor(linker->graph, tensor)->layer = layer_in(scope, text->layer);
    if (text->stored != NULL)
        mtf_graph_tensor(linker->graph, tensor)->stored = g_strdup(text->stored);
    if (text->unit != NULL)
        mtf_graph_tensor(linker->graph, tensor)->scale =
            g_strdup(join(linker, scope->prefix, text->unit));
    if (text->mean_of != NULL)
        mtf_graph_tensor(linker->graph, tensor)->mean_of =
            g_strdup(join(linker, scope->prefix, text->mean_of));
    if (text->down != NULL)
        mtf_graph_tensor(linker->graph, tensor)->adapter =
            (MtfAdapter){ g_strdup(join(linker, scope->prefix, text->down)),
                          g_strdup(join(linker, scope->prefix, text->up)), text->scale };
    return true;
}

/* The first result is called as its operation, each other has a suffix too. */
static const char *result_name(MtfLinker *linker, const char *name, const char *suffix) {
    g_autofree char *suffixed = g_strdup_printf("%s/%s", name, suffix);
    return g_string_chunk_insert(linker->strings, suffixed);
}

static bool declare_operation(MtfLinker *linker, const Scope *scope, const MtfOperationText *text,
                              GError **error) {
    const MtfOperationRow *row = mtf_operation_row(text->kind);
    const char *name = join(linker, scope->prefix, text->name);
    Declaration declaration = { text, scope, name, WAITING };
    g_array_append_val(linker->declarations, declaration);
    for (int k = 0; k < row->n_outputs; k++) {
        const char *output = k == 0 ? name : result_name(linker, name, row->suffixes[k]);
        if (!check_new(linker, &text->where, output, error))
            return false;
        g_hash_table_insert(linker->results, (gpointer)output,
                            GUINT_TO_POINTER(linker->declarations->len));
    }
    return true;
}

static Scope *add_scope(MtfLinker *linker, const Scope *parent, const MtfBlockText *block,
                        const char *prefix) {
    Scope *scope = g_new0(Scope, 1);
    scope->parent = parent;
    scope->block = block;
    scope->prefix = g_string_chunk_insert(linker->strings, prefix);
    scope->carried = g_new0(const char *, block->carries->len + 1);
    g_ptr_array_add(linker->scopes, scope);
    return scope;
}

static bool declare_variables(MtfLinker *linker, const Scope *scope, GError **error) {
    const GArray *variables = scope->block->variables;
    for (guint i = 0; i < variables->len; i++)
        if (!declare_variable(linker, scope, &g_array_index(variables, MtfVariableText, i), error))
            return false;
    return true;
}

/* What `block` itself calls by a name. */
static GHashTable *own_names(const MtfBlockText *block) {
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < block->variables->len; i++)
        g_hash_table_add(names, (char *)g_array_index(block->variables, MtfVariableText, i).name);
    for (guint i = 0; i < block->items->len; i++) {
        const MtfOperationText *item = g_array_index(block->items, MtfItemText, i).operation;
        if (item != NULL && mtf_operation_row(item->kind)->loop != MTF_LOOP_HANDS_ON)
            g_hash_table_add(names, (char *)item->name);
    }
    return names;
}

/* A carried value shadows nothing of its own block. */
static bool check_carries(const MtfBlockText *block, GError **error) {
    if (block->carries->len > MAX_CARRIED)
        return mtf_json_fail(&block->carry_list, error, "a block carries at most %d values",
                             MAX_CARRIED);
    g_autoptr(GHashTable) names = own_names(block);
    for (guint i = 0; i < block->carries->len; i++) {
        const MtfCarryText *carry = &g_array_index(block->carries, MtfCarryText, i);
        if (!g_hash_table_add(names, (char *)carry->name))
            return mtf_json_fail(&carry->where, error,
                                 "the name \"%s\" is given twice in this block", carry->name);
    }
    return true;
}

/* `name` is the block's with what stands around it: "layer/7/scan". */
static bool check_block_name(const MtfLinker *linker, const MtfBlockText *block, const char *name,
                             GError **error) {
    if (!mtf_tensor_name_is_legal(block->name))
        return mtf_json_fail(&block->body, error,
                             "\"%s\": a name is not empty and holds no control character",
                             block->name);
    if (mtf_graph_find_repeat(linker->graph, name) > 0)
        return mtf_json_fail(&block->body, error, "two repeated blocks are called \"%s\"", name);
    for (guint i = 0; i < linker->graph->loops->len; i++)
        if (strcmp(g_array_index(linker->graph->loops, MtfLoop, i).name, name) == 0)
            return mtf_json_fail(&block->body, error, "two loops are called \"%s\"", name);
    return true;
}

static bool declare_block(MtfLinker *linker, const Scope *parent, const MtfBlockText *block,
                          GError **error);

static bool declare_items(MtfLinker *linker, const Scope *scope, GError **error) {
    const GArray *items = scope->block->items;
    for (guint i = 0; i < items->len; i++) {
        const MtfItemText *item = &g_array_index(items, MtfItemText, i);
        if (item->block != NULL ? !declare_block(linker, scope, item->block, error)
                                : !declare_operation(linker, scope, item->operation, error))
            return false;
    }
    return true;
}

static bool declare_loop(MtfLinker *linker, const Scope *parent, const MtfBlockText *block,
                         const char *name, GError **error) {
    g_autofree char *prefix = g_strdup_printf("%s/", name);
    Scope *scope = add_scope(linker, parent, block, prefix);
    scope->loop = mtf_graph_add_loop(linker->graph, name, block->dimension, block->reverse);
    scope->layer = parent->layer;
    return declare_variables(linker, scope, error) && declare_items(linker, scope, error);
}

static bool declare_repeat(MtfLinker *linker, const Scope *parent, const MtfBlockText *block,
                           GError **error) {
    guint first = linker->scopes->len;
    for (int j = 0; j < block->count; j++) {
        g_autofree char *prefix = g_strdup_printf("%s/%d/", block->name, j);
        Scope *scope = add_scope(linker, parent, block, prefix);
        scope->layer = (MtfLayer){ (int)linker->graph->repeats->len + 1, j };
    }
    for (guint j = 0; j < (guint)block->count; j++) {
        const Scope *scope = g_ptr_array_index(linker->scopes, first + j);
        if (!declare_variables(linker, scope, error) || !declare_items(linker, scope, error))
            return false;
    }
    mtf_graph_add_repeat(linker->graph, block->name, block->count);
    return true;
}

static bool declare_block(MtfLinker *linker, const Scope *parent, const MtfBlockText *block,
                          GError **error) {
    g_autofree char *name = g_strconcat(parent->prefix, block->name, NULL);
    if (!check_carries(block, error) || !check_block_name(linker, block, name, error))
        return false;
    return block->dimension >= 0 ? declare_loop(linker, parent, block, name, error)
                                 : declare_repeat(linker, parent, block, error);
}

static bool declare_all(MtfLinker *linker, const MtfBlockText *text, GError **error) {
    const Scope *scope = add_scope(linker, NULL, text, "");
    return declare_variables(linker, scope, error) && declare_items(linker, scope, error);
}

/* Operations with many inputs count for several, so that the limit bounds all work. */
static int64_t unrolled_size(const MtfBlockText *block) {
    int64_t size = (int64_t)block->variables->len + block->carries->len;
    for (guint i = 0; i < block->items->len; i++) {
        const MtfItemText *item = &g_array_index(block->items, MtfItemText, i);
        size += item->block != NULL ? item->block->count * unrolled_size(item->block)
                                    : 1 + item->operation->n_inputs / 8;
    }
    return size;
}

static bool check_size(const MtfBlockText *text, GError **error) {
    for (guint i = 0; i < text->items->len; i++) {
        const MtfBlockText *block = g_array_index(text->items, MtfItemText, i).block;
        if (block != NULL && block->count * unrolled_size(block) > MAX_UNROLLED)
            return mtf_json_fail(&block->body, error,
                                 "unrolled %d times the block has more than %d operations and "
                                 "variables",
                                 block->count, MAX_UNROLLED);
    }
    return unrolled_size(text) <= MAX_UNROLLED ||
           mtf_json_fail(&text->operation_list, error,
                         "the graph has more than %d operations and variables", MAX_UNROLLED);
}

/* ---- names ---- */

/* What `name` means inside of `scope` itself, or NULL: it comes from outside. */
static const char *own_name(const MtfLinker *linker, const Scope *scope, const char *name) {
    const GArray *carries = scope->block->carries;
    for (guint c = 0; c < carries->len; c++)
        if (strcmp(g_array_index(carries, MtfCarryText, c).name, name) == 0)
            return scope->carried[c];
    g_autofree char *own = g_strconcat(scope->prefix, name, NULL);
    return stored_name(linker, own);
}

/* What `name` means inside of `scope`, as a name of the whole graph. */
static const char *outer_name(const MtfLinker *linker, const Scope *scope, const char *name) {
    for (; scope->parent != NULL; scope = scope->parent) {
        const char *own = own_name(linker, scope, name);
        if (own != NULL)
            return own;
    }
    return name;
}

/* Follows aliases; NULL when they lead back to themselves. */
static const char *follow(const MtfLinker *linker, const char *name) {
    guint steps = g_hash_table_size(linker->aliases);
    const char *next = g_hash_table_lookup(linker->aliases, name);
    for (; next != NULL; next = g_hash_table_lookup(linker->aliases, name)) {
        if (steps-- == 0)
            return NULL;
        name = next;
    }
    return name;
}

/* Up to a thousand names are searched for the nearest. */
static bool fail_unknown(const MtfLinker *linker, const MtfJson *where, const char *what,
                         const char *name, GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint t = 0; t < linker->graph->tensors->len && t < 500; t++)
        g_ptr_array_add(names, mtf_graph_tensor(linker->graph, (int)t)->name);
    for (guint i = 0; i < linker->declarations->len && i < 500; i++)
        g_ptr_array_add(names, (char *)declaration_at(linker, (int)i)->name);
    g_ptr_array_add(names, NULL);
    g_autofree char *hint = mtf_did_you_mean(name, (const char *const *)names->pdata);
    return mtf_json_fail(where, error, "%s \"%s\" is not a tensor of this graph%s", what, name,
                         hint);
}

/* Whether following `name` ends at a tensor or a declared result. */
static bool check_known(const MtfLinker *linker, const MtfJson *where, const char *what,
                        const char *name, GError **error) {
    const char *end = follow(linker, name);
    if (end == NULL)
        return mtf_json_fail(where, error, "%s \"%s\" leads back to itself", what, name);
    return stored_name(linker, end) != NULL || fail_unknown(linker, where, what, name, error);
}

/* ---- carried values ---- */

static const MtfCarryText *carry_at(const MtfBlockText *block, guint c) {
    return &g_array_index(block->carries, MtfCarryText, c);
}

/* Inside of a loop a carried value is its state. */
static bool carry_states(MtfLinker *linker, Scope *scope) {
    for (guint c = 0; c < scope->block->carries->len; c++) {
        g_autofree char *state = g_strdup_printf("%s/state", carry_at(scope->block, c)->name);
        scope->carried[c] = join(linker, scope->prefix, state);
    }
    return true;
}

/* The last iteration's value goes by the name of the block too. */
static bool add_alias(MtfLinker *linker, const Scope *last, const MtfBlockText *block,
                      const MtfCarryText *carry, GError **error) {
    g_autofree char *alias = g_strdup_printf("%s/%s", block->name, carry->name);
    if (!check_new(linker, &carry->where, alias, error))
        return false;
    const char *value = outer_name(linker, last, carry->next);
    g_hash_table_insert(linker->aliases, g_string_chunk_insert(linker->strings, alias),
                        (gpointer)value);
    return true;
}

/* Hands the values of `block` from iteration to iteration; the last ones become aliases. */
static bool hand_on(MtfLinker *linker, Scope *const *scopes, const MtfBlockText *block,
                    GError **error) {
    if (block->dimension >= 0)
        return carry_states(linker, scopes[0]);
    for (guint c = 0; c < block->carries->len; c++)
        scopes[0]->carried[c] = outer_name(linker, scopes[0]->parent, carry_at(block, c)->init);
    for (int j = 1; j < block->count; j++)
        for (guint c = 0; c < block->carries->len; c++)
            scopes[j]->carried[c] = outer_name(linker, scopes[j - 1], carry_at(block, c)->next);
    for (guint c = 0; c < block->carries->len; c++)
        if (!add_alias(linker, scopes[block->count - 1], block, carry_at(block, c), error))
            return false;
    return true;
}

/* Calls `visit` with the scopes of each block; scope 0 is the graph's own. */
static bool for_each_block(MtfLinker *linker,
                           bool (*visit)(MtfLinker *linker, Scope *const *scopes,
                                         const MtfBlockText *block, GError **error),
                           GError **error) {
    guint at = 1;
    while (at < linker->scopes->len) {
        Scope *const *scopes = (Scope *const *)&linker->scopes->pdata[at];
        if (!visit(linker, scopes, scopes[0]->block, error))
            return false;
        at += (guint)scopes[0]->block->count;
    }
    return true;
}

static bool check_carried_names(MtfLinker *linker, Scope *const *scopes, const MtfBlockText *block,
                                GError **error) {
    for (guint c = 0; c < block->carries->len; c++) {
        const MtfCarryText *carry = carry_at(block, c);
        const char *init = outer_name(linker, scopes[0]->parent, carry->init);
        const char *next = outer_name(linker, scopes[0], carry->next);
        if (!check_known(linker, &carry->where, "init", init, error) ||
            !check_known(linker, &carry->where, "next", next, error))
            return false;
    }
    return true;
}

static const MtfTensor *tensor_named(const MtfLinker *linker, const char *name, int *tensor) {
    *tensor = mtf_graph_find_tensor(linker->graph, follow(linker, name));
    return mtf_graph_tensor(linker->graph, *tensor);
}

static bool check_carried_shape(MtfLinker *linker, const Scope *first, const MtfCarryText *carry,
                                GError **error) {
    int init_id, next_id;
    const MtfTensor *init =
        tensor_named(linker, outer_name(linker, first->parent, carry->init), &init_id);
    const MtfTensor *next = tensor_named(linker, outer_name(linker, first, carry->next), &next_id);
    if (mtf_shape_equal(&init->shape, &next->shape) && init->dtype == next->dtype)
        return true;
    g_autofree char *from = mtf_graph_tensor_format(linker->graph, init_id);
    g_autofree char *to = mtf_graph_tensor_format(linker->graph, next_id);
    return mtf_json_fail(&carry->where, error,
                         "carried value \"%s\" begins as \"%s\" %s but goes on as \"%s\" %s; "
                         "both must be the same",
                         carry->name, carry->init, from, carry->next, to);
}

/* Iterations are alike only if a carried value keeps its dimensions and type. */
static bool check_carried_shapes(MtfLinker *linker, Scope *const *scopes, const MtfBlockText *block,
                                 GError **error) {
    for (guint c = 0; c < block->carries->len; c++)
        if (!check_carried_shape(linker, scopes[0], carry_at(block, c), error))
            return false;
    return true;
}

/* ---- linking: operations enter the graph once their inputs are there ---- */

static void push(MtfLinker *linker, int declaration) {
    Declaration *d = declaration_at(linker, declaration);
    d->state = OPEN;
    Frame frame = { declaration, 0, g_new(int, d->text->n_inputs + 1) };
    g_array_append_val(linker->stack, frame);
}

static Frame *frame_at(const MtfLinker *linker, guint index) {
    return &g_array_index(linker->stack, Frame, index);
}

/* Finds the next input of `frame`: a tensor, or a declaration (`*tensor` is -1 then). */
static bool find_input(const MtfLinker *linker, const Frame *frame, int *tensor, int *declaration,
                       GError **error) {
    const Declaration *d = declaration_at(linker, frame->declaration);
    const char *given = d->text->inputs[frame->n];
    /* What a loop reads of "x" may be called so inside. */
    bool outside = mtf_operation_row(d->text->kind)->loop == MTF_LOOP_SLICES &&
                   strcmp(given, d->text->name) == 0;
    const Scope *scope = outside && d->scope->parent != NULL ? d->scope->parent : d->scope;
    const char *name = follow(linker, outer_name(linker, scope, given));
    *tensor = name == NULL ? -1 : mtf_graph_find_tensor(linker->graph, name);
    if (*tensor >= 0)
        return true;
    *declaration =
        name == NULL ? -1 : GPOINTER_TO_INT(g_hash_table_lookup(linker->results, name)) - 1;
    if (*declaration >= 0)
        return true;
    g_autofree char *what = g_strdup_printf("operation \"%s\": input", d->name);
    return fail_unknown(linker, &d->text->where, what, given, error);
}

static bool fail_cycle(const MtfLinker *linker, int declaration, GError **error) {
    g_autoptr(GString) names = g_string_new(NULL);
    guint begin = 0;
    while (frame_at(linker, begin)->declaration != declaration)
        begin++;
    for (guint i = begin; i < linker->stack->len && i < begin + MAX_CYCLE_NAMES; i++)
        g_string_append_printf(names, "\"%s\" needs ",
                               declaration_at(linker, frame_at(linker, i)->declaration)->name);
    if (linker->stack->len > begin + MAX_CYCLE_NAMES)
        g_string_append(names, "… which needs ");
    const Declaration *d = declaration_at(linker, declaration);
    return mtf_json_fail(&d->text->where, error, "operations need each other in a circle: %s\"%s\"",
                         names->str, d->name);
}

/* Integers and truths, which no gradient passes, are not scaled. */
static int kind_of(const MtfLinker *linker, const MtfOperationText *text, const int *inputs) {
    bool scales =
        !text->copies || mtf_dtype_is_float(mtf_graph_tensor(linker->graph, inputs[0])->dtype);
    return scales ? text->kind : MTF_OP_STOP_GRADIENT;
}

static bool add_operation(MtfLinker *linker, const Declaration *declaration, const int *inputs,
                          GError **error) {
    const MtfOperationText *text = declaration->text;
    GError *cause = NULL;
    MtfNewOperation operation = {
        .name = declaration->name,
        .kind = kind_of(linker, text, inputs),
        .phase = text->phase,
        .stage = text->stage,
        .loop = MAX(text->loop, declaration->scope->loop),
        .layer = layer_in(declaration->scope, text->layer),
        .origin = text->origin,
        .of = text->of,
        .n_inputs = text->n_inputs,
        .inputs = inputs,
        .shape = text->has_shape ? &text->shape : NULL,
        .has_dtype = text->has_dtype,
        .dtype = text->dtype,
        .attributes = text->attributes,
    };
    g_autofree char *stream = NULL;
    if (text->attributes.stream != NULL)
        operation.attributes.stream = stream =
            g_strconcat(declaration->scope->prefix, text->attributes.stream, NULL);
    int output = mtf_graph_add_operation(linker->graph, &operation, &cause);
    if (output < 0)
        return mtf_field_relay(&text->where, cause, error);
    for (int k = 0; k < mtf_operation_row(text->kind)->n_outputs; k++)
        mtf_graph_tensor(linker->graph, output + k)->memory = text->memory[k];
    return true;
}

static bool finish(MtfLinker *linker, GError **error) {
    const Frame *frame = frame_at(linker, linker->stack->len - 1);
    Declaration *d = declaration_at(linker, frame->declaration);
    d->state = DONE;
    if (!add_operation(linker, d, frame->inputs, error))
        return false;
    g_array_set_size(linker->stack, linker->stack->len - 1);
    return true;
}

/* Advances the topmost operation by one input. */
static bool advance(MtfLinker *linker, GError **error) {
    Frame *frame = frame_at(linker, linker->stack->len - 1);
    if (frame->n == declaration_at(linker, frame->declaration)->text->n_inputs)
        return finish(linker, error);
    int tensor, declaration;
    if (!find_input(linker, frame, &tensor, &declaration, error))
        return false;
    if (tensor >= 0)
        frame->inputs[frame->n++] = tensor;
    else if (declaration_at(linker, declaration)->state == OPEN)
        return fail_cycle(linker, declaration, error);
    else
        push(linker, declaration);
    return true;
}

/* Depth first, on a stack of our own: a chain may be as long as the graph. */
static bool link_all(MtfLinker *linker, GError **error) {
    for (int i = 0; i < (int)linker->declarations->len; i++) {
        if (declaration_at(linker, i)->state == WAITING)
            push(linker, i);
        while (linker->stack->len > 0)
            if (!advance(linker, error))
                return false;
    }
    return true;
}

MtfLinker *mtf_graph_link(MtfGraph *graph, const MtfBlockText *text, GError **error) {
    g_autoptr(MtfLinker) linker = new_linker(graph);
    if (!check_size(text, error) || !declare_all(linker, text, error) ||
        !for_each_block(linker, hand_on, error) ||
        !for_each_block(linker, check_carried_names, error) || !link_all(linker, error) ||
        !for_each_block(linker, check_carried_shapes, error) ||
        !mtf_graph_gather_loops(graph, NULL, error) || !mtf_graph_check_loops(graph, error))
        return NULL;
    return g_steal_pointer(&linker);
}

int mtf_linker_find(const MtfLinker *linker, const MtfJson *where, const char *what,
                    const char *name, GError **error) {
    const char *end = follow(linker, name);
    int tensor = end == NULL ? -1 : mtf_graph_find_tensor(linker->graph, end);
    if (tensor < 0)
        fail_unknown(linker, where, what, name, error);
    return tensor;
}
