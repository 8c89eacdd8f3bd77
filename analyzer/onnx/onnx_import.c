// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_import.h"

#include "analyzer/onnx/axis_build.h"
#include "analyzer/onnx/onnx_idioms.h"
#include "analyzer/onnx/onnx_inputs.h"
#include "analyzer/onnx/onnx_operators.h"

#include <inttypes.h>
#include <string.h>

#define OLDEST_OPSET 6
#define NEWEST_OPSET 25

static void free_value(gpointer data) {
    MtfOnnxValue *value = data;
    g_free(value->known);
    if (value->members != NULL)
        g_ptr_array_unref(value->members);
    g_free(value);
}

static MtfOnnxTranslation begin(const MtfOnnxModel *model, GPtrArray *said) {
    return (MtfOnnxTranslation){ .model = model,
                                 .graph = mtf_axis_graph_new(),
                                 .values = g_hash_table_new(g_str_hash, g_str_equal),
                                 .all = g_ptr_array_new_with_free_func(free_value),
                                 .said = said,
                                 .noted =
                                     g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                                 .number = -1 };
}

static void end(MtfOnnxTranslation *t) {
    mtf_axis_graph_free(t->graph);
    g_hash_table_unref(t->values);
    g_ptr_array_unref(t->all);
    g_hash_table_unref(t->noted);
    g_clear_error(&t->error);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static bool take_initializers(MtfOnnxTranslation *t) {
    for (guint i = 0; i < t->model->initializers->len; i++) {
        MtfOnnxTensor *tensor = t->model->initializers->pdata[i];
        MtfOnnxValue *value = mtf_onnx_stored(t, tensor, true);
        if (value == NULL || g_hash_table_contains(t->values, tensor->name))
            return mtf_onnx_fail(t, "two initial values are called \"%s\"", tensor->name) != NULL;
        g_hash_table_insert(t->values, tensor->name, value);
    }
    return true;
}

/* Gives the operation that makes a node's result the result's own name. */
static void name_result(MtfOnnxTranslation *t, const char *name, int first) {
    const MtfOnnxValue *value = g_hash_table_lookup(t->values, name);
    if (value == NULL || value->tensor < 0)
        return;
    int producer = mtf_axis_tensor(t->graph, value->tensor)->producer;
    if (producer < first)
        return;
    MtfAxisOperation *operation = &g_array_index(t->graph->operations, MtfAxisOperation, producer);
    if (operation->output != value->tensor)
        return;
    g_free(operation->name);
    operation->name = g_strdup(name);
}

/* What a node ends that exporters write out in several (onnx_idioms.h), or else what it is by itself. */
static MtfOnnxValue *translate(MtfOnnxTranslation *t, GHashTable *producers,
                               const MtfOnnxNode *node) {
    MtfOnnxValue *whole = mtf_onnx_idiom(t, producers, node);
    if (whole != NULL)
        g_hash_table_insert(t->values, node->outputs->pdata[0], whole);
    return whole != NULL || t->error != NULL ? whole : mtf_onnx_translate_node(t, node, -1);
}

static bool translate_nodes(MtfOnnxTranslation *t) {
    g_autoptr(GHashTable) producers = mtf_onnx_producers(t->model);
    for (guint i = 0; i < t->model->nodes->len; i++) {
        const MtfOnnxNode *node = t->model->nodes->pdata[i];
        int first = (int)t->graph->operations->len;
        t->node = node;
        t->number = (int)i;
        t->steps = 0;
        if (translate(t, producers, node) == NULL)
            return t->error != NULL || mtf_onnx_fail(t, "it cannot be translated") != NULL;
        for (guint k = 0; k < node->outputs->len; k++)
            name_result(t, node->outputs->pdata[k], first);
    }
    t->node = NULL;
    return true;
}

/* Whether all its operators are what they were in version 1. */
static bool is_unchanged(const MtfOnnxModel *model) {
    static const char *const unchanged[] = { "GlobalAveragePool",
                                             "GlobalMaxPool",
                                             "Identity",
                                             "LRN",
                                             "LpNormalization",
                                             "MeanVarianceNormalization",
                                             "Not",
                                             "Softplus",
                                             "Softsign",
                                             "Transpose",
                                             NULL };
    for (guint i = 0; i < model->nodes->len; i++)
        if (!g_strv_contains(unchanged, ((const MtfOnnxNode *)model->nodes->pdata[i])->op))
            return false;
    return true;
}

static bool check_opset(MtfOnnxTranslation *t) {
    int64_t opset = t->model->opset;
    if (opset == 0)
        return mtf_onnx_fail(t, "it does not say which version of ONNX's operators it uses") !=
               NULL;
    return (opset >= OLDEST_OPSET && opset <= NEWEST_OPSET) ||
           (opset > 0 && opset < OLDEST_OPSET && is_unchanged(t->model)) ||
           mtf_onnx_fail(t,
                         "it uses version %" PRId64 " of ONNX's operators; versions %d to %d are "
                         "supported",
                         opset, OLDEST_OPSET, NEWEST_OPSET) != NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

static MtfOnnxValue *output_value(MtfOnnxTranslation *t, guint i) {
    const char *name = ((MtfOnnxInput *)t->model->outputs->pdata[i])->name;
    MtfOnnxValue *value = g_hash_table_lookup(t->values, name);
    if (value == NULL)
        return mtf_onnx_fail(t, "output \"%s\" is made by no node", name);
    if (value->members != NULL)
        return mtf_onnx_fail(t, "output \"%s\" is a sequence, of which a graph makes none", name);
    return mtf_onnx_material(t, value);
}

/* The tensors of all outputs, whose dimensions are in the file's order. */
static bool keep_outputs(MtfOnnxTranslation *t, GArray *kept) {
    for (guint i = 0; i < t->model->outputs->len; i++) {
        char *name = ((MtfOnnxInput *)t->model->outputs->pdata[i])->name;
        MtfOnnxValue *value = mtf_onnx_ordered(t, output_value(t, i));
        if (value == NULL)
            return false;
        g_hash_table_insert(t->values, name, value);
        g_array_append_val(kept, value->tensor);
    }
    return true;
}

/* Tokens of the same batch and length as the labels: then these are the next ones. */
static bool follows_tokens(const MtfOnnxTranslation *t, const MtfOnnxValue *logits) {
    for (guint i = 0; i < t->graph->tensors->len && logits->rank == 3; i++) {
        const MtfAxisTensor *tensor = mtf_axis_tensor(t->graph, (int)i);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TOKENS &&
            tensor->axes.rank == 2 &&
            mtf_axis(t->graph, tensor->axes.dims[1])->size == logits->sizes[1])
            return true;
    }
    return false;
}

/* The input of classes: an axis for each of the logits' but `classes`, which go by `indexes`. */
static int add_labels(MtfOnnxTranslation *t, const char *name, const MtfOnnxValue *logits,
                      int classes, const int *indexes, MtfShape *to) {
    MtfAxisTensor labels = { .source = MTF_SOURCE_INPUT,
                             .name = (char *)(guintptr)name,
                             .dtype = MTF_I32,
                             .feed = follows_tokens(t, logits) ? MTF_FEED_NEXT_TOKENS
                                                               : MTF_FEED_LABELS };
    int64_t sizes[MTF_ONNX_MAX_RANK];
    int n = 0;
    for (int k = 0; k < logits->rank; k++) {
        if (k == classes || logits->axes[k] < 0)
            continue;
        sizes[n++] = logits->sizes[k];
        mtf_shape_append(to, indexes[k]);
    }
    return mtf_axis_source_add(t->graph, &labels, n, sizes, NULL);
}

/* Mean cross entropy of the logits, whose result it returns; -1 with an error. */
static int cross_entropy(MtfOnnxTranslation *t, MtfOnnxValue *logits, const char *labels) {
    int indexes[MTF_ONNX_MAX_RANK];
    MtfShape to = { 0 };
    logits = mtf_onnx_real(t, logits);
    int classes = logits == NULL ? -1 : logits->rank > 3 ? 1 : logits->rank - 1;
    if (classes >= 0 && t->batch > 0 && logits->sizes[0] % t->batch != 0)
        return mtf_onnx_fail(t,
                             "the first output has %" PRId64 " rows, not one for each example: the "
                             "file was written for its own batch alone; leave --batch out, or "
                             "export it with a batch of any size",
                             logits->sizes[0]) != NULL;
    if (classes < 0 || logits->axes[classes] < 0 ||
        !mtf_dtype_is_float(mtf_onnx_dtype(logits->type)))
        return mtf_onnx_fail(t, "cross-entropy wants a first output of scores with an axis of "
                                "several classes") != NULL;
    MtfAxisOperation losses = mtf_axis_operation(t->graph, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses");
    MtfShape from = mtf_axis_tensor(t->graph, logits->tensor)->axes, all = { from.rank, { 0 } };
    for (int k = 0; k < logits->rank; k++) {
        indexes[k] = -1;
        if (logits->axes[k] < 0)
            continue;
        indexes[k] =
            mtf_axis_index(t->graph, &losses, logits->sizes[k], k == classes ? "classes" : NULL);
        all.dims[mtf_shape_find(&from, logits->axes[k])] = indexes[k];
    }
    int input = add_labels(t, labels, logits, classes, indexes, &to);
    mtf_axis_operation_take(t->graph, &losses, logits->tensor, &from, &all);
    const MtfShape own = mtf_axis_tensor(t->graph, input)->axes;
    mtf_axis_operation_take(t->graph, &losses, input, &own, &to);
    losses.shape = to;
    losses.dtype = mtf_onnx_dtype(logits->type);
    int each = mtf_axis_operation_end(t->graph, &losses);
    MtfAxisOperation loss = mtf_axis_operation(t->graph, MTF_OP_REDUCE_MEAN, "loss");
    const MtfShape axes = mtf_axis_tensor(t->graph, each)->axes;
    MtfShape by = { 0 };
    for (int i = 0; i < axes.rank; i++)
        mtf_shape_append(
            &by, mtf_axis_index(t->graph, &loss, mtf_axis(t->graph, axes.dims[i])->size, NULL));
    mtf_axis_operation_take(t->graph, &loss, each, &axes, &by);
    loss.dtype = losses.dtype;
    return mtf_axis_operation_end(t->graph, &loss);
}

/* Whether a value is one float. */
static bool is_number(const MtfOnnxTranslation *t, const MtfOnnxValue *value) {
    return value->tensor >= 0 && mtf_axis_tensor(t->graph, value->tensor)->axes.rank == 0 &&
           mtf_dtype_is_float(mtf_onnx_dtype(value->type));
}

/* A loss that the file computes itself: its output of that name, or the first that is one number. */
static int own_loss(MtfOnnxTranslation *t, const char *name) {
    for (guint i = 0; i < t->model->outputs->len; i++) {
        const char *output = ((MtfOnnxInput *)t->model->outputs->pdata[i])->name;
        if (name != NULL && strcmp(name, output) != 0)
            continue;
        const MtfOnnxValue *value = output_value(t, i);
        if (value == NULL || is_number(t, value))
            return value == NULL ? -1 : value->tensor;
    }
    mtf_onnx_fail(t, "no output%s%s is one float, as a loss is", name != NULL ? " " : "",
                  name != NULL ? name : "");
    return -1;
}

/* "cross-entropy" or "cross-entropy:labels", "output" or "output:loss": the loss's tensor in place of the
 * outputs. */
static int add_loss(MtfOnnxTranslation *t, const char *text) {
    g_auto(GStrv) parts = g_strsplit(text, ":", 2);
    if (g_strcmp0(parts[0], MTF_ONNX_OWN_LOSS) == 0)
        return own_loss(t, parts[1]);
    if (g_strcmp0(parts[0], "cross-entropy") != 0 ||
        (parts[1] != NULL && !mtf_tensor_name_is_legal(parts[1]))) {
        mtf_onnx_fail(t,
                      "--loss \"%s\" should be cross-entropy:LABELS, where LABELS is the name of "
                      "the new input, or output:NAME, where the file has a loss",
                      text);
        return -1;
    }
    MtfOnnxValue *logits = output_value(t, 0);
    if (logits == NULL)
        return -1;
    if (logits->logits != NULL) {
        mtf_onnx_say(t, "the loss is computed from what the last softmax takes");
        logits = logits->logits;
    }
    int loss = cross_entropy(t, logits, parts[1] != NULL ? parts[1] : "labels");
    return t->error == NULL ? loss : -1;
}

/* ---- Where things are ------------------------------------------------------------------------ */

static MtfOnnxOutput place_of(const MtfOnnxTranslation *t, const MtfOnnxValue *value,
                              const int *tensors) {
    MtfOnnxOutput place = { .tensor = -1, .type = value->type, .rank = value->rank };
    if (value->tensor < 0)
        return place;
    const MtfShape *axes = &mtf_axis_tensor(t->graph, value->tensor)->axes;
    place.tensor = tensors[value->tensor];
    for (int k = 0; k < value->rank; k++) {
        place.sizes[k] = value->sizes[k];
        place.dims[k] = value->axes[k] >= 0 ? mtf_shape_find(axes, value->axes[k]) : -1;
    }
    return place;
}

static MtfOnnxOutput *places_of(const MtfOnnxTranslation *t, const GPtrArray *infos,
                                const int *tensors) {
    MtfOnnxOutput *places = g_new0(MtfOnnxOutput, infos->len + 1);
    for (guint i = 0; i < infos->len; i++) {
        const MtfOnnxValue *value =
            g_hash_table_lookup(t->values, ((MtfOnnxInput *)infos->pdata[i])->name);
        places[i].tensor = -1;
        if (value != NULL)
            places[i] = place_of(t, value, tensors);
    }
    return places;
}

/* "resnet50" of models/resnet50.onnx; free with g_free. */
static char *model_name(const char *path) {
    char *name = g_path_get_basename(path);
    if (g_str_has_suffix(name, ".onnx") && strlen(name) > 5)
        name[strlen(name) - 5] = '\0';
    return name;
}

static MtfGraph *build(MtfOnnxTranslation *t, const MtfOnnxImport *import, int **tensors) {
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree char *name = model_name(t->model->path);
    int loss = import->loss != NULL ? add_loss(t, import->loss) : -1, stop = -1;
    if (t->error != NULL || (import->loss == NULL && !keep_outputs(t, kept)))
        return NULL;
    if (loss >= 0)
        g_array_append_val(kept, loss);
    g_array_append_val(kept, stop);
    mtf_axis_graph_share_names(t->graph);
    mtf_axis_graph_drop_transpositions(t->graph);
    MtfGraph *graph =
        mtf_axis_graph_build(t->graph, name, &g_array_index(kept, int, 0), tensors, &t->error);
    if (graph != NULL && loss >= 0)
        graph->loss = (*tensors)[loss];
    for (guint i = 0, n = 0; graph != NULL && loss < 0 && i + 1 < kept->len; i++) {
        MtfTensor *output = mtf_graph_tensor(graph, (*tensors)[g_array_index(kept, int, i)]);
        if (output->producer >= 0 && output->output == 0)
            output->output = (int)++n;
    }
    return graph;
}

MtfGraph *mtf_onnx_import_parts(const MtfOnnxModel *model, const MtfOnnxImport *import,
                                GPtrArray *said, MtfOnnxOutput **inputs, MtfOnnxOutput **outputs,
                                GError **error) {
    MtfOnnxTranslation t = begin(model, said);
    g_autofree int *tensors = NULL;
    MtfGraph *graph = NULL;
    if (model->outputs->len == 0)
        mtf_onnx_fail(&t, "it has no outputs");
    else if (check_opset(&t) && take_initializers(&t) && mtf_onnx_make_inputs(&t, import) &&
             translate_nodes(&t))
        graph = build(&t, import, &tensors);
    if (graph != NULL && inputs != NULL)
        *inputs = places_of(&t, model->inputs, tensors);
    if (graph != NULL && outputs != NULL)
        *outputs = places_of(&t, model->outputs, tensors);
    if (graph == NULL && t.error != NULL && t.batch > 0)
        g_prefix_error(&t.error, "with a batch of %" PRId64 " in place of the file's %" PRId64 ", ",
                       t.batch, t.file_batch);
    if (graph == NULL && t.error != NULL)
        g_propagate_error(error, g_steal_pointer(&t.error));
    end(&t);
    return graph;
}

MtfGraph *mtf_onnx_import(const MtfOnnxModel *model, const MtfOnnxImport *import, GPtrArray *said,
                          GError **error) {
    return mtf_onnx_import_parts(model, import, said, NULL, NULL, error);
}
