// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph_file/graph_text.h"

#include "layouts/base/nearest_name.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph/optimizer.h"
#include "layouts/graph_file/foreign_names.h"
#include "layouts/graph_file/graph_fields.h"
#include "layouts/graph_file/window_json.h"

#include <inttypes.h>
#include <string.h>

/* More iterations than any unrolled graph may have operations (graph_link.c). */
#define MAX_COUNT 2000000

static bool read_init(const MtfJson *where, MtfInit *init, GError **error) {
    static const char *const keys[] = { "constant", "normal", "uniform", NULL };
    static const char *const words[] = { "zeros", "ones", NULL };
    static const MtfInitKind kinds[] = { MTF_INIT_CONSTANT, MTF_INIT_NORMAL, MTF_INIT_UNIFORM };
    for (int word = 0; cJSON_IsString(where->node) && words[word] != NULL; word++)
        if (strcmp(where->node->valuestring, words[word]) == 0) {
            *init = (MtfInit){ MTF_INIT_CONSTANT, word };
            return true;
        }
    bool object = cJSON_IsObject(where->node);
    MtfJson child;
    if (object && !mtf_json_keys(where, keys, error))
        return false;
    if (!object || mtf_json_length(where) != 1 || !mtf_json_first(where, &child))
        return mtf_json_fail(where, error,
                             "\"zeros\", \"ones\", or one of {\"constant\": value}, {\"normal\": "
                             "deviation}, {\"uniform\": limit} is expected here");
    for (int i = 0; keys[i] != NULL; i++)
        if (strcmp(mtf_json_key(&child), keys[i]) == 0)
            init->kind = kinds[i];
    if (!mtf_json_number(&child, &init->value, error))
        return false;
    return init->kind == MTF_INIT_CONSTANT || init->value >= 0 ||
           mtf_json_fail(&child, error, "%g is below 0, which no %s is", init->value,
                         init->kind == MTF_INIT_NORMAL ? "deviation" : "limit");
}

static bool read_variable_memory(const MtfJson *object, MtfMemoryKind *memory, GError **error) {
    MtfJson child;
    *memory = MTF_MEMORY_VARIABLE;
    if (!mtf_json_find(object, "memory_kind", &child))
        return true;
    if (!mtf_field_memory(&child, memory, error))
        return false;
    return *memory == MTF_MEMORY_VARIABLE || *memory == MTF_MEMORY_OPTIMIZER ||
           *memory == MTF_MEMORY_CACHE || *memory == MTF_MEMORY_OUTPUT ||
           mtf_json_fail(&child, error,
                         "a variable counts as \"variables\", \"optimizer\", \"caches\" or "
                         "\"outputs\"");
}

/* "frozen": true, "decay": false. */
static bool read_training(const MtfJson *where, MtfVariableText *variable, GError **error) {
    bool decays = true;
    if (!mtf_json_optional_boolean(where, "frozen", &variable->frozen, error))
        return false;
    if (!mtf_json_optional_boolean(where, "decay", &decays, error))
        return false;
    variable->undecayed = !decays;
    return true;
}

/* The layer that a written graph's operation or variable belongs to: an iteration of one of "repeats". */
static bool read_layer(const MtfGraph *graph, const MtfJson *where, MtfLayer *layer,
                       GError **error) {
    MtfJson child, iteration;
    const char *name;
    int64_t number = 0;
    bool has_iteration = mtf_json_find(where, "iteration", &iteration);
    if (!mtf_json_find(where, "block", &child))
        return !has_iteration ||
               mtf_json_fail(&iteration, error, "this needs a \"block\" beside it");
    if (!mtf_json_string(&child, &name, error))
        return false;
    int block = mtf_graph_find_repeat(graph, name);
    if (block == 0)
        return mtf_json_fail(&child, error, "\"%s\" is none of this graph's \"repeats\"", name);
    int count = g_array_index(graph->repeats, MtfRepeat, block - 1).count;
    if (!mtf_json_get_integer(where, "iteration", 0, count - 1, &number, error))
        return false;
    *layer = (MtfLayer){ block, (int)number };
    return true;
}

/* "adapter": {"down": NAME, "up": NAME, "scale": X}. */
static bool read_adapter(const MtfJson *where, MtfVariableText *variable, GError **error) {
    static const char *const keys[] = { "down", "up", "scale", NULL };
    MtfJson adapter;
    if (!mtf_json_find(where, "adapter", &adapter))
        return true;
    return mtf_json_keys(&adapter, keys, error) &&
           mtf_json_get_string(&adapter, "down", &variable->down, error) &&
           mtf_json_get_string(&adapter, "up", &variable->up, error) &&
           mtf_json_get_number(&adapter, "scale", &variable->scale, error);
}

static bool read_variable(const MtfGraph *graph, const MtfJson *where, MtfBlockText *block,
                          GError **error) {
    static const char *const keys[] = { "name",      "dims",   "dtype",   "init",    "memory_kind",
                                        "stored",    "frozen", "decay",   "adapter", "block",
                                        "iteration", "scale",  "mean_of", NULL };
    MtfVariableText variable = { .where = *where, .dtype = MTF_F32 };
    MtfJson dims, init, stored, scale, mean_of;
    if (!mtf_json_keys(where, keys, error) ||
        !mtf_json_get_string(where, "name", &variable.name, error) ||
        !mtf_json_get(where, "dims", &dims, error) ||
        !mtf_field_dims(graph, &dims, &variable.shape, error) ||
        !mtf_field_dtype(where, &variable.dtype, error) ||
        !mtf_json_get(where, "init", &init, error) || !read_init(&init, &variable.init, error) ||
        !read_variable_memory(where, &variable.memory, error) ||
        (mtf_json_find(where, "stored", &stored) &&
         !mtf_json_string(&stored, &variable.stored, error)) ||
        (mtf_json_find(where, "scale", &scale) &&
         !mtf_json_string(&scale, &variable.unit, error)) ||
        (mtf_json_find(where, "mean_of", &mean_of) &&
         !mtf_json_string(&mean_of, &variable.mean_of, error)) ||
        !read_training(where, &variable, error) || !read_adapter(where, &variable, error) ||
        !read_layer(graph, where, &variable.layer, error))
        return false;
    g_array_append_val(block->variables, variable);
    return true;
}

/* ---- operations ---- */

static bool read_kind(const MtfJson *where, int *kind, GError **error) {
    MtfJson child;
    const char *name;
    if (!mtf_json_get(where, "op", &child, error) || !mtf_json_string(&child, &name, error))
        return false;
    *kind = mtf_operation_kind(name);
    if (*kind >= 0)
        return true;
    g_autofree char *hint = mtf_operation_hint(name);
    return mtf_json_fail(&child, error, "\"%s\" is not an operation%s", name, hint);
}

static const MtfAttributeSpec *find_attribute(const MtfOperationRow *row, const char *name) {
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++)
        if (strcmp(spec->name, name) == 0)
            return spec;
    return NULL;
}

/* `, which A and B have`, up to three operations that have the attribute and that users write. */
static char *who_has(const char *key) {
    const char *names[4] = { NULL };
    int n = 0;
    for (int i = 0; i < MTF_OPERATIONS && n < 3; i++)
        if (find_attribute(mtf_operation_row(i), key) != NULL &&
            !g_str_has_suffix(mtf_operation_row(i)->name, "_grad"))
            names[n++] = mtf_operation_row(i)->name;
    g_autofree char *all = g_strjoinv(" and ", (char **)names);
    return n == 0 ? g_strdup("") : g_strdup_printf(", which %s %s", all, n == 1 ? "has" : "have");
}

static bool fail_attribute(const MtfJson *where, const MtfOperationRow *row, const char *key,
                           GError **error) {
    static const char *const first[] = { "name", "op", "inputs", "dims" };
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(first); i++)
        g_ptr_array_add(names, (gpointer)first[i]);
    if (mtf_operation_row_chooses_dtype(row))
        g_ptr_array_add(names, (gpointer) "dtype");
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++)
        g_ptr_array_add(names, (gpointer)spec->name);
    g_ptr_array_add(names, NULL);
    char **all = (char **)names->pdata;
    g_autofree char *near = mtf_did_you_mean(key, (const char *const *)all);
    g_autofree char *hint = *near != '\0' ? g_steal_pointer(&near) : who_has(key);
    g_autofree char *own = g_strjoinv(", ", all + G_N_ELEMENTS(first));
    return mtf_json_fail(where, error, "%s has no attribute \"%s\"%s; %s%s", row->name, key, hint,
                         *own != '\0' ? "it has: " : "it has none beside inputs and dims", own);
}

/* Every key is one that all operations have or an attribute of the row. */
static bool check_operation_keys(const MtfJson *where, const MtfOperationRow *row, GError **error) {
    static const char *const common[] = { "name",  "op",          "inputs", "dims", "phase",
                                          "stage", "memory_kind", "origin", "of",   "loop",
                                          "block", "iteration",   NULL };
    MtfJson child;
    for (bool more = mtf_json_first(where, &child); more; more = mtf_json_next(&child)) {
        const char *key = mtf_json_key(&child);
        bool known = g_strv_contains(common, key) || find_attribute(row, key) != NULL ||
                     (mtf_operation_row_chooses_dtype(row) && strcmp(key, "dtype") == 0);
        if (!known)
            return fail_attribute(where, row, key, error);
    }
    return true;
}

static bool read_string_attribute(const MtfJson *where, const MtfAttributeSpec *spec, char **slot,
                                  GError **error) {
    const char *text;
    int index;
    if (strcmp(spec->name, "schedule") == 0 &&
        !mtf_field_word(where, "a schedule", mtf_schedules(), &index, error))
        return false;
    if (!mtf_json_string(where, &text, error))
        return false;
    *slot = (char *)text;
    return true;
}

static bool read_attribute(const MtfGraph *graph, MtfOperationText *text,
                           const MtfAttributeSpec *spec, GError **error) {
    MtfJson child;
    const MtfJson *operation = &text->where;
    void *slot = G_STRUCT_MEMBER_P(&text->attributes, (glong)spec->offset);
    bool given = mtf_json_find(operation, spec->name, &child);
    if (!given && spec->required)
        return mtf_json_fail(operation, error, "attribute \"%s\" is missing", spec->name);
    switch (spec->type) {
    case MTF_ATTRIBUTE_NUMBER:
        *(double *)slot = spec->standard;
        return !given || mtf_json_number(&child, slot, error);
    case MTF_ATTRIBUTE_DIMENSION:
        return !given || mtf_field_dimension(graph, &child, slot, error);
    case MTF_ATTRIBUTE_STRING:
        return !given || read_string_attribute(&child, spec, slot, error);
    case MTF_ATTRIBUTE_WINDOWS:
        return mtf_windows_read(graph, text->kind, &child, &text->attributes, error);
    }
    return true;
}

static bool read_attributes(const MtfGraph *graph, MtfOperationText *text, GError **error) {
    const MtfAttributeSpec *spec = mtf_operation_row(text->kind)->attributes;
    text->attributes = MTF_NO_ATTRIBUTES;
    for (; spec->name != NULL; spec++)
        if (!read_attribute(graph, text, spec, error))
            return false;
    return true;
}

static bool read_inputs(MtfOperationText *text, GError **error) {
    MtfJson list, child;
    if (!mtf_json_find(&text->where, "inputs", &list))
        return mtf_operation_row(text->kind)->min_inputs == 0 ||
               mtf_json_fail(&text->where, error, "key \"inputs\" is missing");
    if (!mtf_json_array(&list, error))
        return false;
    text->inputs = g_new0(const char *, mtf_json_length(&list) + 1);
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!mtf_json_string(&child, &text->inputs[text->n_inputs++], error))
            return false;
    return true;
}

/* Where the arguments of an expression are not named, they are called as its inputs are here: names that
 * may be others once blocks are unrolled. */
static void name_arguments(MtfOperationText *text) {
    if (text->attributes.expression != NULL && text->attributes.arguments == NULL)
        text->attributes.arguments = text->arguments = g_strjoinv(" ", (char **)text->inputs);
}

/* "memory_kind": one word for all outputs, or a list with one for each. */
static bool read_memory(MtfOperationText *text, GError **error) {
    MtfJson where, child;
    int n = mtf_operation_row(text->kind)->n_outputs;
    for (int k = 0; k < MTF_MAX_OUTPUTS; k++)
        text->memory[k] = MTF_MEMORY_ACTIVATION;
    if (!mtf_json_find(&text->where, "memory_kind", &where))
        return true;
    if (!cJSON_IsArray(where.node)) {
        if (!mtf_field_memory(&where, &text->memory[0], error))
            return false;
        for (int k = 1; k < n; k++)
            text->memory[k] = text->memory[0];
        return true;
    }
    if (mtf_json_length(&where) != n)
        return mtf_json_fail(&where, error, "%d kinds are expected, one for each output", n);
    int k = 0;
    for (bool more = mtf_json_first(&where, &child); more; more = mtf_json_next(&child))
        if (!mtf_field_memory(&child, &text->memory[k++], error))
            return false;
    return true;
}

static bool read_phase(MtfOperationText *text, GError **error) {
    MtfJson child;
    const char *words[MTF_PHASES + 1] = { NULL };
    for (int i = 0; i < MTF_PHASES; i++)
        words[i] = mtf_phase_name((MtfPhase)i);
    int phase = MTF_PHASE_FORWARD;
    if (mtf_json_find(&text->where, "phase", &child) &&
        !mtf_field_word(&child, "a phase", words, &phase, error))
        return false;
    text->phase = (MtfPhase)phase;
    return true;
}

static bool read_stage(MtfOperationText *text, GError **error) {
    int64_t stage = 0;
    if (!mtf_json_optional_integer(&text->where, "stage", 1, MTF_MAX_STAGES, &stage, error))
        return false;
    text->stage = (int)stage;
    return true;
}

/* The loop whose body the operation belongs to, by its name. */
static bool read_loop_name(const MtfGraph *graph, MtfOperationText *text, GError **error) {
    MtfJson child;
    const char *name;
    if (!mtf_json_find(&text->where, "loop", &child))
        return true;
    if (!mtf_json_string(&child, &name, error))
        return false;
    for (int l = 0; l < (int)graph->loops->len; l++)
        if (strcmp(g_array_index(graph->loops, MtfLoop, l).name, name) == 0)
            text->loop = l + 1;
    return text->loop > 0 ||
           mtf_json_fail(&child, error, "\"%s\" is none of this graph's \"loops\"", name);
}

/* What an operation was made for names what that is. */
static bool read_origin(MtfOperationText *text, GError **error) {
    const char *words[MTF_ORIGINS] = { NULL };
    for (int i = MTF_ORIGIN_GRADIENT; i < MTF_ORIGINS; i++)
        words[i - MTF_ORIGIN_GRADIENT] = mtf_origin_name((MtfOrigin)i);
    MtfJson child;
    int origin = 0;
    if (!mtf_json_find(&text->where, "origin", &child))
        return !mtf_json_find(&text->where, "of", &child) ||
               mtf_json_fail(&child, error, "this needs an \"origin\" beside it");
    if (!mtf_field_word(&child, "an origin", words, &origin, error) ||
        !mtf_json_get_string(&text->where, "of", &text->of, error))
        return false;
    text->origin = (MtfOrigin)(MTF_ORIGIN_GRADIENT + origin);
    return true;
}

static bool read_operation(const MtfGraph *graph, MtfOperationText *text, GError **error) {
    const MtfJson *where = &text->where;
    MtfJson dims, dtype;
    if (!mtf_json_object(where, error) || !mtf_json_get_string(where, "name", &text->name, error) ||
        !read_kind(where, &text->kind, error) ||
        !check_operation_keys(where, mtf_operation_row(text->kind), error) ||
        !read_inputs(text, error) || !read_attributes(graph, text, error) ||
        !read_memory(text, error) || !read_phase(text, error) || !read_stage(text, error) ||
        !read_loop_name(graph, text, error) || !read_origin(text, error) ||
        !read_layer(graph, where, &text->layer, error))
        return false;
    name_arguments(text);
    text->has_shape = mtf_json_find(where, "dims", &dims);
    text->has_dtype = mtf_json_find(where, "dtype", &dtype);
    return (!text->has_shape || mtf_field_dims(graph, &dims, &text->shape, error)) &&
           mtf_field_dtype(where, &text->dtype, error);
}

static void free_operation(MtfOperationText *text) {
    if (text != NULL) {
        g_free(text->inputs);
        g_free(text->arguments);
    }
    g_free(text);
}

/* ---- blocks ---- */

static void clear_item(gpointer data) {
    MtfItemText *item = data;
    free_operation(item->operation);
    mtf_block_text_free(item->block);
}

static MtfBlockText *new_block(const MtfJson *where) {
    MtfBlockText *block = g_new0(MtfBlockText, 1);
    block->where = *where;
    block->count = 1;
    block->dimension = -1;
    block->strings = g_string_chunk_new(256);
    block->carries = g_array_new(FALSE, TRUE, sizeof(MtfCarryText));
    block->variables = g_array_new(FALSE, TRUE, sizeof(MtfVariableText));
    block->items = g_array_new(FALSE, TRUE, sizeof(MtfItemText));
    g_array_set_clear_func(block->items, clear_item);
    return block;
}

void mtf_block_text_free(MtfBlockText *block) {
    if (block == NULL)
        return;
    g_array_unref(block->carries);
    g_array_unref(block->variables);
    g_array_unref(block->items);
    g_string_chunk_free(block->strings);
    g_free(block);
}

static bool read_variables(const MtfGraph *graph, const MtfJson *object, MtfBlockText *block,
                           GError **error) {
    MtfJson child;
    if (!mtf_json_find(object, "variables", &block->variable_list))
        return true;
    if (!mtf_json_array(&block->variable_list, error))
        return false;
    bool more = mtf_json_first(&block->variable_list, &child);
    for (; more; more = mtf_json_next(&child))
        if (!read_variable(graph, &child, block, error))
            return false;
    return true;
}

static bool read_carry(const MtfJson *where, MtfCarryText *carry, GError **error) {
    static const char *const keys[] = { "name", "init", "next", NULL };
    *carry = (MtfCarryText){ .where = *where };
    return mtf_json_keys(where, keys, error) &&
           mtf_json_get_string(where, "name", &carry->name, error) &&
           mtf_json_get_string(where, "init", &carry->init, error) &&
           mtf_json_get_string(where, "next", &carry->next, error);
}

static bool read_carries(MtfBlockText *block, GError **error) {
    MtfCarryText carry;
    MtfJson child;
    if (!mtf_json_find(&block->body, "carry", &block->carry_list))
        return true;
    if (!mtf_json_array(&block->carry_list, error))
        return false;
    bool more = mtf_json_first(&block->carry_list, &child);
    for (; more; more = mtf_json_next(&child)) {
        if (!read_carry(&child, &carry, error))
            return false;
        g_array_append_val(block->carries, carry);
    }
    return true;
}

static bool read_items(MtfGraph *graph, MtfBlockText *block, GError **error);

static bool read_block(MtfGraph *graph, MtfBlockText *block, GError **error) {
    static const char *const outer[] = { "repeat", NULL };
    static const char *const inner[] = {
        "name", "count", "carry", "variables", "operations", NULL
    };
    MtfJson count;
    int64_t number = 0;
    if (!mtf_json_keys(&block->where, outer, error) ||
        !mtf_json_get(&block->where, "repeat", &block->body, error) ||
        !mtf_json_keys(&block->body, inner, error) ||
        !mtf_json_get_string(&block->body, "name", &block->name, error) ||
        !mtf_json_get(&block->body, "count", &count, error) ||
        !mtf_json_integer(&count, 1, MAX_COUNT, &number, error) ||
        !mtf_json_get(&block->body, "operations", &block->operation_list, error) ||
        !read_carries(block, error) || !read_variables(graph, &block->body, block, error) ||
        !read_items(graph, block, error))
        return false;
    block->count = (int)number;
    return block->items->len > 0 ||
           mtf_json_fail(&block->operation_list, error, "a repeated block has operations");
}

static MtfOperationText *new_operation(const MtfJson *where) {
    MtfOperationText *text = g_new0(MtfOperationText, 1);
    text->where = *where;
    return text;
}

/* ---- loops ---- */

/* Appends an operation that stands for a part of a loop. */
static MtfOperationText *add_part(MtfBlockText *block, const MtfJson *where, int kind,
                                  const char *name, int n_inputs) {
    MtfItemText item = { .operation = new_operation(where) };
    MtfOperationText *text = item.operation;
    g_array_append_val(block->items, item);
    text->kind = kind;
    text->name = name;
    text->n_inputs = n_inputs;
    text->inputs = g_new0(const char *, n_inputs + 1);
    text->attributes = MTF_NO_ATTRIBUTES;
    for (int k = 0; k < MTF_MAX_OUTPUTS; k++)
        text->memory[k] = MTF_MEMORY_ACTIVATION;
    return text;
}

static bool read_element(MtfBlockText *block, const MtfJson *where, int kind, GError **error) {
    static const char *const keys[] = { "name", "of", NULL };
    const char *name, *of;
    if (!mtf_json_keys(where, keys, error) || !mtf_json_get_string(where, "name", &name, error) ||
        !mtf_json_get_string(where, "of", &of, error))
        return false;
    MtfOperationText *text = add_part(block, where, kind, name, 1);
    text->inputs[0] = of;
    text->attributes.dimension = block->dimension;
    return true;
}

/* "inputs" or "outputs": elements of tensors along the loop's dimension. `list`, of the block, becomes
 * their place. */
static bool read_elements(MtfBlockText *block, const char *key, MtfJson *list, int kind,
                          GError **error) {
    MtfJson child;
    if (!mtf_json_find(&block->body, key, list))
        return true;
    if (!mtf_json_array(list, error))
        return false;
    for (bool more = mtf_json_first(list, &child); more; more = mtf_json_next(&child))
        if (!read_element(block, &child, kind, error))
            return false;
    return true;
}

static bool is_carried(const MtfBlockText *block, const char *name) {
    for (guint c = 0; c < block->carries->len; c++)
        if (strcmp(g_array_index(block->carries, MtfCarryText, c).name, name) == 0)
            return true;
    return false;
}

/* What a carried value is handed on as: itself where the loop's condition has become false. What is carried
 * under another name is copied. */
static const char *handed_on(MtfBlockText *block, const MtfCarryText *carry) {
    bool chooses = block->condition != NULL;
    if (!chooses && !is_carried(block, carry->next))
        return carry->next;
    g_autofree char *name = g_strdup_printf(chooses ? "%s/kept" : "%s/copy", carry->name);
    MtfOperationText *text = add_part(block, &carry->where, chooses ? MTF_OP_WHERE : MTF_OP_SCALE,
                                      g_string_chunk_insert(block->strings, name), chooses ? 3 : 1);
    text->copies = !chooses;
    text->attributes.factor = 1;
    text->inputs[0] = chooses ? block->condition : carry->next;
    text->inputs[chooses ? 1 : 0] = carry->next;
    if (chooses)
        text->inputs[2] = carry->name;
    return text->name;
}

/* A carried value "h" of loop "steps" is "steps/h/state" inside, begun before the loop, and handed on
 * by "steps/h", which stays when the loop is over. */
static void add_carried(MtfBlockText *block, MtfBlockText *outer, const MtfCarryText *carry) {
    g_autofree char *state = g_strdup_printf("%s/%s/state", block->name, carry->name);
    MtfOperationText *begin = add_part(outer, &carry->where, MTF_OP_LOOP_BEGIN,
                                       g_string_chunk_insert(block->strings, state), 1);
    begin->inputs[0] = carry->init;
    const char *next = handed_on(block, carry);
    MtfOperationText *text = add_part(block, &carry->where, MTF_OP_LOOP_NEXT, carry->name, 2);
    text->inputs[0] = begin->name;
    text->inputs[1] = next;
    text->attributes.condition =
        block->condition != NULL && strcmp(block->condition, carry->name) == 0;
}

static void add_all_carried(MtfBlockText *block, MtfBlockText *outer) {
    for (guint c = 0; c < block->carries->len; c++)
        add_carried(block, outer, &g_array_index(block->carries, MtfCarryText, c));
}

/* The dimension that a loop runs along: one of the graph's, or a new one of the loop's name. */
static bool read_loop_dimension(MtfGraph *graph, MtfBlockText *block, GError **error) {
    MtfJson dimension, count;
    GError *cause = NULL;
    int64_t number = 0;
    bool counts = mtf_json_find(&block->body, "count", &count);
    if (counts && !mtf_json_integer(&count, 1, MTF_MAX_ITERATIONS, &number, error))
        return false;
    if (!mtf_json_find(&block->body, "dimension", &dimension)) {
        if (!counts)
            return mtf_json_fail(&block->body, error,
                                 "a loop needs a \"count\" or a \"dimension\"");
        block->dimension = mtf_graph_add_dimension(graph, block->name, number, &cause);
        return block->dimension >= 0 || mtf_field_relay(&block->body, cause, error);
    }
    if (!mtf_field_dimension(graph, &dimension, &block->dimension, error))
        return false;
    int64_t size = mtf_graph_size(graph, block->dimension);
    if (size > MTF_MAX_ITERATIONS)
        return mtf_json_fail(&dimension, error, "a loop runs at most %d times", MTF_MAX_ITERATIONS);
    return !counts || number == size ||
           mtf_json_fail(&count, error,
                         "the loop runs %" PRId64 " times, but its dimension \"%s\" has %" PRId64
                         " elements",
                         number, mtf_graph_dimension(graph, block->dimension)->name, size);
}

static bool read_loop(MtfGraph *graph, MtfBlockText *block, MtfBlockText *outer, GError **error) {
    static const char *const keys[] = { "loop", NULL };
    static const char *const inner[] = { "name",   "count",   "dimension", "reverse",    "carry",
                                         "inputs", "outputs", "variables", "operations", NULL };
    MtfJson reverse;
    if (!mtf_json_keys(&block->where, keys, error) ||
        !mtf_json_get(&block->where, "loop", &block->body, error) ||
        !mtf_json_keys(&block->body, inner, error) ||
        !mtf_json_get_string(&block->body, "name", &block->name, error) ||
        !read_loop_dimension(graph, block, error) ||
        (mtf_json_find(&block->body, "reverse", &reverse) &&
         !mtf_json_boolean(&reverse, &block->reverse, error)) ||
        !mtf_json_get(&block->body, "operations", &block->operation_list, error) ||
        !read_carries(block, error) || !read_variables(graph, &block->body, block, error) ||
        !read_elements(block, "inputs", &block->input_list, MTF_OP_LOOP_SLICE, error) ||
        !read_items(graph, block, error) ||
        !read_elements(block, "outputs", &block->output_list, MTF_OP_LOOP_STACK, error))
        return false;
    add_all_carried(block, outer);
    return block->items->len > 0 ||
           mtf_json_fail(&block->operation_list, error, "a loop has operations");
}

/* What a "while" block has in the place of a count: how often it runs at most, and what it goes on with. */
static bool read_limits(MtfGraph *graph, MtfBlockText *block, GError **error) {
    MtfJson child;
    GError *cause = NULL;
    int64_t most;
    if (!mtf_json_find(&block->body, "max_count", &child))
        return mtf_json_fail(&block->body, error,
                             "a \"while\" block needs a \"max_count\": prices and memory count so "
                             "many iterations");
    if (!mtf_json_integer(&child, 1, MTF_MAX_ITERATIONS, &most, error) ||
        !mtf_json_get(&block->body, "condition", &child, error) ||
        !mtf_json_string(&child, &block->condition, error))
        return false;
    if (!is_carried(block, block->condition))
        return mtf_json_fail(&child, error,
                             "\"%s\" is none of the block's carried values, one of which says "
                             "whether it goes on",
                             block->condition);
    block->dimension = mtf_graph_add_dimension(graph, block->name, most, &cause);
    return block->dimension >= 0 || mtf_field_relay(&block->body, cause, error);
}

static bool read_while(MtfGraph *graph, MtfBlockText *block, MtfBlockText *outer, GError **error) {
    static const char *const keys[] = { "while", NULL };
    static const char *const inner[] = { "name",      "condition",  "max_count", "carry",
                                         "variables", "operations", NULL };
    if (!mtf_json_keys(&block->where, keys, error) ||
        !mtf_json_get(&block->where, "while", &block->body, error) ||
        !mtf_json_keys(&block->body, inner, error) ||
        !mtf_json_get_string(&block->body, "name", &block->name, error) ||
        !mtf_json_get(&block->body, "operations", &block->operation_list, error) ||
        !read_carries(block, error) || !read_limits(graph, block, error) ||
        !read_variables(graph, &block->body, block, error) || !read_items(graph, block, error))
        return false;
    add_all_carried(block, outer);
    return true;
}

/* Appends the element at `where` to `block`, which frees it whatever comes of reading it. */
static bool read_item(MtfGraph *graph, const MtfJson *where, MtfBlockText *block, GError **error) {
    MtfJson inner;
    bool is_loop = mtf_json_find(where, "loop", &inner) && cJSON_IsObject(inner.node);
    bool is_while = mtf_json_find(where, "while", &inner);
    bool is_block = is_loop || is_while || mtf_json_find(where, "repeat", &inner);
    bool in_repeat = block->name != NULL && block->dimension < 0;
    if (is_block && block->name != NULL && !(in_repeat && (is_loop || is_while)))
        return mtf_json_fail(where, error,
                             in_repeat ? "a repeated block holds loops, but no other repeated block"
                                       : "a loop holds operations, but no other block");
    MtfItemText item = { .operation = is_block ? NULL : new_operation(where),
                         .block = is_block ? new_block(where) : NULL };
    g_array_append_val(block->items, item);
    return is_loop    ? read_loop(graph, item.block, block, error)
           : is_while ? read_while(graph, item.block, block, error)
           : is_block ? read_block(graph, item.block, error)
                      : read_operation(graph, item.operation, error);
}

static bool read_items(MtfGraph *graph, MtfBlockText *block, GError **error) {
    MtfJson child;
    if (!mtf_json_array(&block->operation_list, error))
        return false;
    bool more = mtf_json_first(&block->operation_list, &child);
    for (; more; more = mtf_json_next(&child))
        if (!read_item(graph, &child, block, error))
            return false;
    return true;
}

MtfBlockText *mtf_graph_text_read(MtfGraph *graph, const MtfJson *root, GError **error) {
    g_autoptr(MtfBlockText) block = new_block(root);
    if (!read_variables(graph, root, block, error) ||
        !mtf_json_get(root, "operations", &block->operation_list, error) ||
        !read_items(graph, block, error))
        return NULL;
    return g_steal_pointer(&block);
}
