// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/random.h"
#include "runtime/data/data_examples.h"
#include "runtime/data/data_teacher.h"
#include "runtime/data/data_tokens.h"
#include "runtime/kernels/base/slice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct MtfData {
    const MtfGraph *graph;
    uint64_t seed;
    bool held_out;         /* fills come from the held out part */
    int64_t vocabulary;    /* of tokens */
    MtfTokens *tokens;     /* when some input is tokens */
    MtfExamples *examples; /* when some input is features and there are files */
    MtfTeacher *teacher;   /* when some input is features and there are none */
    int64_t items, batch;  /* of a step */
    const char *item_name;
};

/* "Steps" of held out examples that are generated: none of training comes this far. */
#define HELD_STEPS (INT64_C(1) << 60)

/* ---- What the graph asks for --------------------------------------------------------------- */

static bool is_text(MtfFeed feed) {
    return feed == MTF_FEED_TOKENS || feed == MTF_FEED_NEXT_TOKENS || feed == MTF_FEED_SOURCE;
}

static bool is_category(MtfFeed feed) {
    return feed == MTF_FEED_CATEGORIES;
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
    const MtfChoice *choice = &mtf_operation_row(op->kind)->choice;
    if (!choice->chooses || op->inputs[choice->ids] != tensor)
        return INT64_MAX;
    return missing_size(graph, mtf_operation_operand_shape(graph, op, choice->of),
                        mtf_operation_operand_shape(graph, op, choice->without));
}

int64_t mtf_data_id_bound(const MtfGraph *graph, int tensor) {
    int64_t bound = INT64_MAX;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bound = MIN(bound, bound_in(graph, op, tensor));
    }
    return bound;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static bool open_tokens(MtfData *data, const MtfDataSettings *settings, GError **error) {
    MtfTokensWanted wanted = { .bound = INT64_MAX,
                               .files = settings->files,
                               .held_out = settings->held_out,
                               .share = settings->share };
    for (int t = 0; t < (int)data->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(data->graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || !is_text(tensor->feed))
            continue;
        wanted.window = MAX(wanted.window, example_size(data->graph, t));
        wanted.bound = MIN(wanted.bound, mtf_data_id_bound(data->graph, t));
    }
    data->vocabulary = wanted.bound;
    data->tokens = mtf_tokens_open(&wanted, error);
    return data->tokens != NULL;
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

/* What the inputs of one example are. */
typedef struct {
    int64_t features, targets, classes; /* 0 = none */
    int64_t most;                       /* outputs of the teacher */
} Example;

static bool describe_example(const MtfGraph *graph, int features, Example *example,
                             GError **error) {
    *example = (Example){ .features = example_size(graph, features), .most = 1 };
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int64_t outputs = 1;
        if (tensor->source != MTF_SOURCE_INPUT)
            continue;
        if (is_features(tensor->feed) && example_size(graph, t) != example->features)
            return mtf_input_error(error,
                                   "inputs \"%s\" and \"%s\" are both features but of different "
                                   "sizes: there is one kind of example",
                                   mtf_graph_tensor(graph, features)->name, tensor->name);
        if (!count_outputs(graph, t, &outputs, error))
            return false;
        example->most = MAX(example->most, outputs);
        if (tensor->feed == MTF_FEED_TARGETS)
            example->targets = outputs;
        if (tensor->feed == MTF_FEED_LABELS)
            example->classes = outputs;
    }
    return true;
}

static bool open_examples(MtfData *data, const MtfDataSettings *settings, int features,
                          GError **error) {
    Example example;
    if (!describe_example(data->graph, features, &example, error))
        return false;
    if (settings->files == NULL) {
        data->teacher = mtf_teacher_new(example.features, example.most, data->seed);
        return true;
    }
    MtfExamplesWanted wanted = { .features = example.features,
                                 .targets = example.targets,
                                 .classes = example.classes,
                                 .files = settings->files,
                                 .held_out = settings->held_out,
                                 .share = settings->share };
    data->examples = mtf_examples_open(&wanted, error);
    return data->examples != NULL;
}

/* Whether a file is a NumPy array of floats, which no text is. */
static bool holds_floats(const char *path) {
    char head[128] = { 0 };
    FILE *file = fopen(path, "rb");
    gsize n = file != NULL ? fread(head, 1, sizeof head - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    return n > 10 && memcmp(head, "\x93NUMPY", 6) == 0 && strstr(head + 10, "'<f") != NULL;
}

/* The files that hold floats, or the others; NULL for none. Names are the caller's; free with
 * g_free. */
static char **files_of(char *const *files, bool floats) {
    GPtrArray *some = g_ptr_array_new();
    for (int i = 0; files != NULL && files[i] != NULL; i++)
        if (holds_floats(files[i]) == floats)
            g_ptr_array_add(some, files[i]);
    bool none = some->len == 0;
    g_ptr_array_add(some, NULL);
    char **list = (char **)g_ptr_array_free(some, FALSE);
    if (none)
        g_clear_pointer(&list, g_free);
    return list;
}

/* A model that reads a text and features beside it: arrays of floats are the features. */
static bool open_both(MtfData *data, const MtfDataSettings *settings, int features,
                      GError **error) {
    g_autofree char **texts = files_of(settings->files, false);
    g_autofree char **held_texts = files_of(settings->held_out, false);
    g_autofree char **arrays = files_of(settings->files, true);
    g_autofree char **held_arrays = files_of(settings->held_out, true);
    MtfDataSettings of_text = *settings, of_features = *settings;
    if (texts == NULL || arrays == NULL)
        return mtf_input_error(error, "this model reads a text and features beside it: give --data "
                                      "with a text and with a NumPy array of floats");
    of_text.files = texts;
    of_text.held_out = held_texts;
    of_features.files = arrays;
    of_features.held_out = held_arrays;
    return open_tokens(data, &of_text, error) && open_examples(data, &of_features, features, error);
}

static bool open_sources(MtfData *data, const MtfDataSettings *settings, GError **error) {
    int text = find_input(data->graph, is_text);
    int features = find_input(data->graph, is_features);
    int taught = find_input(data->graph, is_taught);
    if (text >= 0 && settings->files == NULL)
        return mtf_input_error(error, "input \"%s\" is read from a text: give --data FILE",
                               mtf_graph_tensor(data->graph, text)->name);
    if (text < 0 && features < 0 && settings->files != NULL)
        return mtf_input_error(error, "this model reads neither tokens nor features, so leave out "
                                      "--data");
    if (settings->files == NULL && settings->held_out != NULL)
        return mtf_input_error(error, "files are held out, but none to train on: give --data FILE");
    int category = find_input(data->graph, is_category);
    if (category >= 0 && mtf_data_id_bound(data->graph, category) == INT64_MAX)
        return mtf_input_error(
            error,
            "input \"%s\" is fed with categories, but no operation says how many "
            "there are",
            mtf_graph_tensor(data->graph, category)->name);
    if (taught >= 0 && features < 0)
        return mtf_input_error(error,
                               "input \"%s\" is made from an example's features, but no input is "
                               "fed with features",
                               mtf_graph_tensor(data->graph, taught)->name);
    if (text >= 0 && features >= 0)
        return open_both(data, settings, features, error);
    return (text < 0 || open_tokens(data, settings, error)) &&
           (features < 0 || open_examples(data, settings, features, error));
}

/* Text counts its tokens, everything else the examples of its first input. */
static void count_items(MtfData *data) {
    const MtfGraph *graph = data->graph;
    int text = find_input(graph, is_text);
    data->item_name = text >= 0 ? "tokens" : "examples";
    data->batch = 1;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || (text >= 0 && t != text))
            continue;
        if (tensor->shape.rank > 0)
            data->batch = mtf_graph_step_size(graph, tensor->shape.dims[0]);
        break;
    }
    data->items = data->batch;
    if (text >= 0)
        data->items *= example_size(graph, text);
}

MtfData *mtf_data_open_files(const MtfGraph *graph, const MtfDataSettings *settings,
                             GError **error) {
    g_autoptr(MtfData) data = g_new0(MtfData, 1);
    data->graph = graph;
    data->seed = settings->seed;
    data->vocabulary = INT64_MAX;
    if (!open_sources(data, settings, error))
        return NULL;
    count_items(data);
    return g_steal_pointer(&data);
}

MtfData *mtf_data_open(const MtfGraph *graph, const char *path, uint64_t seed, GError **error) {
    char *const files[] = { (char *)(guintptr)path, NULL };
    MtfDataSettings settings = { .files = path != NULL ? files : NULL,
                                 .share = MTF_STANDARD_HELD_OUT,
                                 .seed = seed };
    return mtf_data_open_files(graph, &settings, error);
}

void mtf_data_close(MtfData *data) {
    if (data == NULL)
        return;
    mtf_tokens_close(data->tokens);
    mtf_examples_close(data->examples);
    mtf_teacher_free(data->teacher);
    g_free(data);
}

static bool is_generated(const MtfData *data) {
    return data->tokens == NULL && data->examples == NULL;
}

void mtf_data_hold_out(MtfData *data, bool held_out) {
    data->held_out = held_out;
}

int64_t mtf_data_held_batches(const MtfData *data) {
    if (is_generated(data))
        return INT64_MAX;
    int64_t held =
        data->tokens != NULL ? mtf_tokens_held(data->tokens) : mtf_examples_held(data->examples);
    return held > 0 ? MAX(1, held / data->batch) : 0;
}

int64_t mtf_data_held_tokens(MtfData *data, int *tokens, int64_t n, GError **error) {
    if (data->tokens == NULL) {
        mtf_input_error(error, "this model reads no tokens");
        return 0;
    }
    bool held = mtf_tokens_held(data->tokens) > 0;
    if (!(held ? mtf_tokens_load_held(data->tokens, 0, error)
               : mtf_tokens_load(data->tokens, data->seed, 1, 0, error)))
        return 0;
    for (int64_t i = 0; i < n; i++)
        tokens[i] = mtf_tokens_get(data->tokens, i);
    return n;
}

int64_t mtf_data_vocabulary(const MtfData *data) {
    return data->vocabulary;
}

double mtf_data_entropy(const MtfData *data) {
    return data->tokens != NULL ? mtf_tokens_entropy(data->tokens) : NAN;
}

int64_t mtf_data_examples(const MtfData *data) {
    return data->batch;
}

char *mtf_data_identity(const MtfData *data, GError **error) {
    if (data->tokens != NULL)
        return mtf_tokens_identity(data->tokens, error);
    if (data->examples != NULL)
        return mtf_examples_identity(data->examples, error);
    return g_strdup("generated");
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
    int64_t classes; /* of labels and categories */
    int64_t places;  /* of one example */
} Filling;

/* A category of an example, drawn from all that its table has. */
static double drawn_category(const Filling *filling, int64_t example, int64_t place) {
    MtfRandom random =
        mtf_random_stream(filling->data->seed, filling->tensor->name, (uint64_t)filling->step);
    double share = mtf_random_uniform(&random, example * filling->places + place);
    return floor(share * (double)filling->classes);
}

/* The value of `place` of the example that was loaded last, from files; or generated. */
static double value_at(const Filling *filling, int64_t example, int64_t place) {
    const MtfData *data = filling->data;
    switch (filling->tensor->feed) {
    case MTF_FEED_TOKENS:
    case MTF_FEED_SOURCE:
        return mtf_tokens_get(data->tokens, place);
    case MTF_FEED_CATEGORIES:
        return drawn_category(filling, example, place);
    case MTF_FEED_PLACES:
    case MTF_FEED_SOURCE_PLACES:
        return (double)place;
    case MTF_FEED_NEXT_TOKENS:
        return mtf_tokens_get(data->tokens, place + 1);
    case MTF_FEED_FEATURES:
        return data->examples != NULL
                   ? mtf_examples_feature(data->examples, place)
                   : mtf_teacher_feature(data->teacher, filling->step, example, place);
    case MTF_FEED_TARGETS:
        return data->examples != NULL ? mtf_examples_target(data->examples, place)
                                      : mtf_teacher_target(data->teacher, place);
    case MTF_FEED_LABELS:
        return data->examples != NULL ? mtf_examples_label(data->examples)
                                      : (double)mtf_teacher_label(data->teacher, filling->classes);
    default:
        return 1;
    }
}

static bool load_tokens(const Filling *filling, int64_t example, GError **error) {
    const MtfData *data = filling->data;
    int64_t number = (filling->step - 1) * data->batch + example;
    return data->held_out
               ? mtf_tokens_load_held(data->tokens, number, error)
               : mtf_tokens_load(data->tokens, data->seed, filling->step, example, error);
}

static bool load_features(const Filling *filling, int64_t example, GError **error) {
    const MtfData *data = filling->data;
    int64_t number = (filling->step - 1) * data->batch + example;
    return data->held_out ? mtf_examples_load_held(data->examples, number, error)
                          : mtf_examples_load(data->examples, data->seed, number, error);
}

/* Makes the example ready that value_at is asked about. */
static bool load_example(const Filling *filling, int64_t example, GError **error) {
    MtfFeed feed = filling->tensor->feed;
    if (is_text(feed))
        return load_tokens(filling, example, error);
    if (filling->data->examples != NULL && (is_features(feed) || is_taught(feed)))
        return load_features(filling, example, error);
    if (is_taught(feed))
        mtf_teacher_load(filling->data->teacher, filling->step, example);
    return true;
}

/* Elements from `position` on that lie side by side in the whole tensor too. `loaded` is the
 * example that value_at answers for. */
static bool fill_run(const Filling *filling, const MtfOperand *slice, int64_t position, int64_t n,
                     int64_t *loaded, GError **error) {
    int64_t index = mtf_slice_global_index(slice, position);
    int64_t example = index / filling->places, place = index % filling->places;
    for (int64_t i = 0; i < n; i++) {
        if (example != *loaded && !load_example(filling, example, error))
            return false;
        *loaded = example;
        mtf_slice_set(slice, position + i, value_at(filling, example, place));
        if (++place == filling->places) {
            place = 0;
            example++;
        }
    }
    return true;
}

bool mtf_data_fill(MtfData *data, int tensor, int64_t step, const MtfOperand *slice,
                   GError **error) {
    Filling filling = { .data = data,
                        .tensor = mtf_graph_tensor(data->graph, tensor),
                        .step = step + (data->held_out && is_generated(data) ? HELD_STEPS : 0),
                        .places = example_size(data->graph, tensor) };
    if (filling.tensor->feed == MTF_FEED_LABELS || filling.tensor->feed == MTF_FEED_CATEGORIES)
        filling.classes = mtf_data_id_bound(data->graph, tensor);
    int64_t elements = mtf_slice_elements(slice);
    int64_t run = slice->rank > 0 ? slice->size[slice->rank - 1] : 1;
    int64_t loaded = -1;
    for (int64_t i = 0; i < elements; i += run)
        if (!fill_run(&filling, slice, i, run, &loaded, error))
            return false;
    return true;
}

bool mtf_data_fill_inputs(MtfData *data, const MtfWorker *worker, int64_t step, GError **error) {
    const MtfGraph *graph = worker->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        const MtfOperand *slice = mtf_worker_tensor(worker, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->feed >= MTF_FEEDS || slice == NULL)
            continue;
        /* The worker of a pipeline stage has a part of the graph that the data is for. */
        int of_data = graph == data->graph ? t : mtf_graph_find_tensor(data->graph, tensor->name);
        if (!mtf_data_fill(data, of_data, step, slice, error))
            return false;
    }
    return true;
}
