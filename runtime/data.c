// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data.h"

#include "layouts/error.h"
#include "layouts/microbatches.h"
#include "runtime/data_teacher.h"
#include "runtime/data_text.h"
#include "runtime/slice.h"

#include <inttypes.h>
#include <math.h>

struct MtfData {
    const MtfGraph *graph;
    uint64_t seed;
    MtfText *text;       /* when some input is text */
    MtfTeacher *teacher; /* when some input is features */
    int64_t items, examples;
    const char *item_name;
};

/* ---- What the graph asks for --------------------------------------------------------------- */

static bool is_text(MtfFeed feed) {
    return feed == MTF_FEED_TOKENS || feed == MTF_FEED_NEXT_TOKENS;
}

static bool is_taught(MtfFeed feed) {
    return feed == MTF_FEED_TARGETS || feed == MTF_FEED_LABELS;
}

/* The first input of a feed that `accepts`, or -1. */
static int find_input(const MtfGraph *graph, bool (*accepts)(MtfFeed)) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && accepts(tensor->feed))
            return t;
    }
    return -1;
}

static bool is_features(MtfFeed feed) {
    return feed == MTF_FEED_FEATURES;
}

/* Places within one example of an input. */
static int64_t example_size(const MtfGraph *graph, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    int64_t size = 1;
    for (int i = 1; i < shape->rank; i++)
        size *= mtf_graph_size(graph, shape->dims[i]);
    return size;
}

/* The size of the one dimension of `shape` that `without` lacks; INT64_MAX when there is none. */
static int64_t missing_size(const MtfGraph *graph, const MtfShape *shape, const MtfShape *without) {
    for (int i = 0; i < shape->rank; i++)
        if (mtf_shape_find(without, shape->dims[i]) < 0)
            return mtf_graph_size(graph, shape->dims[i]);
    return INT64_MAX;
}

/* What `tensor` chooses from in one operation. */
static int64_t bound_in(const MtfGraph *graph, const MtfOperation *op, int tensor) {
    const MtfShape *first = &mtf_graph_tensor(graph, op->inputs[0])->shape;
    const MtfShape *output = &mtf_graph_tensor(graph, op->outputs[0])->shape;
    bool second = op->n_inputs > 1 && op->inputs[1] == tensor;
    switch (op->kind) {
    case MTF_OP_EMBEDDING:
        return second ? missing_size(graph, first, output) : INT64_MAX;
    case MTF_OP_EMBEDDING_GRAD:
        return op->inputs[0] == tensor
                   ? missing_size(graph, output, &mtf_graph_tensor(graph, op->inputs[1])->shape)
                   : INT64_MAX;
    case MTF_OP_LABEL_LOGIT:
    case MTF_OP_SOFTMAX_CROSS_ENTROPY:
    case MTF_OP_CROSS_ENTROPY_GRAD:
        return second ? missing_size(graph, first, &mtf_graph_tensor(graph, tensor)->shape)
                      : INT64_MAX;
    default:
        return INT64_MAX;
    }
}

int64_t mtf_data_id_bound(const MtfGraph *graph, int tensor) {
    int64_t bound = INT64_MAX;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->n_inputs > 0 && op->n_outputs > 0)
            bound = MIN(bound, bound_in(graph, op, tensor));
    }
    return bound;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static bool open_text(MtfData *data, const char *path, GError **error) {
    int64_t window = 0;
    int64_t bound = INT64_MAX;
    for (int t = 0; t < (int)data->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(data->graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || !is_text(tensor->feed))
            continue;
        window = MAX(window, example_size(data->graph, t));
        bound = MIN(bound, mtf_data_id_bound(data->graph, t));
    }
    data->text = mtf_text_open(path, window, bound, error);
    return data->text != NULL;
}

/* How many outputs of the teacher an input wants: places of targets, classes of labels. */
static bool count_outputs(const MtfGraph *graph, int tensor, int64_t *outputs, GError **error) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (t->feed == MTF_FEED_TARGETS)
        *outputs = example_size(graph, tensor);
    if (t->feed == MTF_FEED_LABELS)
        *outputs = mtf_data_id_bound(graph, tensor);
    return *outputs != INT64_MAX ||
           mtf_input_error(error,
                           "input \"%s\" is fed with labels, but no operation says how many "
                           "classes there are",
                           t->name);
}

static bool open_teacher(MtfData *data, int features, GError **error) {
    int64_t places = example_size(data->graph, features);
    int64_t most = 1;
    for (int t = 0; t < (int)data->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(data->graph, t);
        int64_t outputs = 1;
        if (tensor->source != MTF_SOURCE_INPUT)
            continue;
        if (is_features(tensor->feed) && example_size(data->graph, t) != places)
            return mtf_input_error(error,
                                   "inputs \"%s\" and \"%s\" are both features but of different "
                                   "sizes: generated data has one kind of example",
                                   mtf_graph_tensor(data->graph, features)->name, tensor->name);
        if (!count_outputs(data->graph, t, &outputs, error))
            return false;
        most = MAX(most, outputs);
    }
    data->teacher = mtf_teacher_new(places, most, data->seed);
    return true;
}

static bool open_sources(MtfData *data, const char *path, GError **error) {
    int text = find_input(data->graph, is_text);
    int features = find_input(data->graph, is_features);
    int taught = find_input(data->graph, is_taught);
    if (text >= 0 && path == NULL)
        return mtf_input_error(error, "input \"%s\" is read from a text: give --data FILE",
                               mtf_graph_tensor(data->graph, text)->name);
    if (text < 0 && path != NULL)
        return mtf_input_error(error, "this model reads no text (its data is generated), so leave "
                                      "out --data");
    if (taught >= 0 && features < 0)
        return mtf_input_error(error,
                               "input \"%s\" is made from an example's features, but no input is "
                               "fed with features",
                               mtf_graph_tensor(data->graph, taught)->name);
    return (text < 0 || open_text(data, path, error)) &&
           (features < 0 || open_teacher(data, features, error));
}

/* Text counts its tokens, everything else the examples of its first input. */
static void count_items(MtfData *data) {
    const MtfGraph *graph = data->graph;
    int text = find_input(graph, is_text);
    data->item_name = text >= 0 ? "tokens" : "examples";
    data->examples = 1;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || (text >= 0 && t != text))
            continue;
        if (tensor->shape.rank > 0)
            data->examples = mtf_graph_step_size(graph, tensor->shape.dims[0]);
        break;
    }
    data->items = data->examples;
    if (text >= 0)
        data->items *= example_size(graph, text);
}

MtfData *mtf_data_open(const MtfGraph *graph, const char *path, uint64_t seed, GError **error) {
    g_autoptr(MtfData) data = g_new0(MtfData, 1);
    data->graph = graph;
    data->seed = seed;
    if (!open_sources(data, path, error))
        return NULL;
    count_items(data);
    return g_steal_pointer(&data);
}

void mtf_data_close(MtfData *data) {
    if (data == NULL)
        return;
    mtf_text_close(data->text);
    mtf_teacher_free(data->teacher);
    g_free(data);
}

double mtf_data_entropy(const MtfData *data) {
    return data->text != NULL ? mtf_text_entropy(data->text) : NAN;
}

int64_t mtf_data_examples(const MtfData *data) {
    return data->examples;
}

char *mtf_data_identity(const MtfData *data, GError **error) {
    return data->text != NULL ? mtf_text_identity(data->text, error) : g_strdup("generated");
}

int64_t mtf_data_items(const MtfData *data) {
    return data->items;
}

const char *mtf_data_item_name(const MtfData *data) {
    return data->item_name;
}

/* ---- Filling ------------------------------------------------------------------------------- */

/* What one element of an example is made of. */
typedef struct {
    MtfData *data;
    const MtfTensor *tensor;
    int64_t step;
    int64_t classes; /* of labels */
    int64_t places;  /* of one example */
} Filling;

/* The value of `place` of the example that was loaded last. */
static double value_at(const Filling *filling, int64_t example, int64_t place) {
    switch (filling->tensor->feed) {
    case MTF_FEED_TOKENS:
        return mtf_text_byte(filling->data->text, place);
    case MTF_FEED_NEXT_TOKENS:
        return mtf_text_byte(filling->data->text, place + 1);
    case MTF_FEED_FEATURES:
        return mtf_teacher_feature(filling->data->teacher, filling->step, example, place);
    case MTF_FEED_TARGETS:
        return mtf_teacher_target(filling->data->teacher, place);
    case MTF_FEED_LABELS:
        return (double)mtf_teacher_label(filling->data->teacher, filling->classes);
    default:
        return 1;
    }
}

/* Makes the example ready that value_at is asked about. */
static bool load_example(const Filling *filling, int64_t example, GError **error) {
    if (is_text(filling->tensor->feed))
        return mtf_text_load(filling->data->text, filling->data->seed, filling->step, example,
                             error);
    if (is_taught(filling->tensor->feed))
        mtf_teacher_load(filling->data->teacher, filling->step, example);
    return true;
}

bool mtf_data_fill(MtfData *data, int tensor, int64_t step, const MtfOperand *slice,
                   GError **error) {
    Filling filling = { .data = data,
                        .tensor = mtf_graph_tensor(data->graph, tensor),
                        .step = step,
                        .places = example_size(data->graph, tensor) };
    if (filling.tensor->feed == MTF_FEED_LABELS)
        filling.classes = mtf_data_id_bound(data->graph, tensor);
    int64_t elements = mtf_slice_elements(slice);
    int64_t loaded = -1;
    for (int64_t i = 0; i < elements; i++) {
        int64_t index = mtf_slice_global_index(slice, i);
        int64_t example = index / filling.places;
        if (example != loaded && !load_example(&filling, example, error))
            return false;
        loaded = example;
        mtf_slice_set(slice, i, value_at(&filling, example, index % filling.places));
    }
    return true;
}

bool mtf_data_fill_inputs(MtfData *data, const MtfWorker *worker, int64_t step, GError **error) {
    for (int t = 0; t < (int)data->graph->tensors->len; t++) {
        const MtfOperand *slice = mtf_worker_tensor(worker, t);
        if (mtf_graph_tensor(data->graph, t)->source == MTF_SOURCE_INPUT && slice != NULL &&
            !mtf_data_fill(data, t, step, slice, error))
            return false;
    }
    return true;
}
