// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_inner.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- What the graph asks for --------------------------------------------------------------- */

bool mtf_feed_is_text(MtfFeed feed) {
    return feed == MTF_FEED_TOKENS || feed == MTF_FEED_NEXT_TOKENS || feed == MTF_FEED_SOURCE;
}

bool mtf_feed_is_category(MtfFeed feed) {
    return feed == MTF_FEED_CATEGORIES;
}

bool mtf_feed_is_taught(MtfFeed feed) {
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

bool mtf_feed_is_features(MtfFeed feed) {
    return feed == MTF_FEED_FEATURES;
}

/* Places within one example of an input. */
int64_t mtf_data_example_size(const MtfGraph *graph, int tensor) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    int64_t size = 1;
    for (int i = 1; i < shape->rank; i++)
        size *= mtf_graph_step_size(graph, shape->dims[i]);
    return size;
}

/* The size of the one dimension of `shape` that `without` lacks; INT64_MAX when there is none. */
static int64_t missing_size(const MtfGraph *graph, const MtfShape *shape, const MtfShape *without) {
    for (int i = 0; i < shape->rank; i++)
        if (mtf_shape_find(without, shape->dims[i]) < 0)
            return mtf_graph_size(graph, shape->dims[i]);
    return INT64_MAX;
}

/* Labels and categories that are compared with numbers counted from 0, one for each class (a one-hot row). */
static int64_t compared_bound(const MtfGraph *graph, const MtfOperation *op, int tensor) {
    if (op->n_inputs != 2 || (op->inputs[0] != tensor && op->inputs[1] != tensor))
        return INT64_MAX;
    const MtfTensor *other = mtf_graph_tensor(graph, op->inputs[op->inputs[0] == tensor]);
    const MtfOperation *made =
        other->producer < 0 ? NULL : mtf_graph_operation(graph, other->producer);
    bool counts =
        made != NULL && made->n_inputs == 0 && mtf_operation_row(made->kind)->integer_result;
    return counts ? mtf_graph_elements(graph, &other->shape) : INT64_MAX;
}

/* What `tensor` chooses from; what counts classes may be compared. */
static int64_t bound_of(const MtfGraph *graph, int tensor, bool classes);

/* … in one operation, which may hand it on as another integer, or in another place. */
static int64_t bound_in(const MtfGraph *graph, const MtfOperation *op, int tensor, bool classes) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    const MtfChoice *choice = &row->choice;
    if (row->kernel_class == MTF_CLASS_MOVE && op->n_inputs > 0 && op->inputs[0] == tensor &&
        mtf_dtype_is_integer(mtf_graph_tensor(graph, op->outputs[0])->dtype))
        return bound_of(graph, op->outputs[0], classes);
    if (!choice->chooses || op->inputs[choice->ids] != tensor)
        return classes ? compared_bound(graph, op, tensor) : INT64_MAX;
    return missing_size(graph, mtf_operation_operand_shape(graph, op, choice->of),
                        mtf_operation_operand_shape(graph, op, choice->without));
}

static int64_t bound_of(const MtfGraph *graph, int tensor, bool classes) {
    int64_t bound = INT64_MAX;
    for (int i = 0; i < (int)graph->operations->len; i++)
        bound = MIN(bound, bound_in(graph, mtf_graph_operation(graph, i), tensor, classes));
    return bound;
}

int64_t mtf_data_id_bound(const MtfGraph *graph, int tensor) {
    MtfFeed feed = mtf_graph_tensor(graph, tensor)->feed;
    return bound_of(graph, tensor, feed == MTF_FEED_LABELS || mtf_feed_is_category(feed));
}

/* ---- Opening ------------------------------------------------------------------------------- */

static bool open_tokens(MtfData *data, const MtfDataSettings *settings, GError **error) {
    MtfTokensWanted wanted = { .bound = INT64_MAX,
                               .files = settings->files,
                               .held_out = settings->held_out,
                               .share = settings->share,
                               .tokenizer = settings->tokenizer };
    for (int t = 0; t < (int)data->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(data->graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || !mtf_feed_is_text(tensor->feed))
            continue;
        wanted.window = MAX(wanted.window, mtf_data_example_size(data->graph, t));
        wanted.bound = MIN(wanted.bound, mtf_data_id_bound(data->graph, t));
        wanted.next |= tensor->feed == MTF_FEED_NEXT_TOKENS;
    }
    data->vocabulary = wanted.bound;
    data->tokens = mtf_tokens_open(&wanted, error);
    return data->tokens != NULL;
}

/* The longest example of the inputs with a feed; 0 where there is none. */
static int64_t longest_example(const MtfGraph *graph, MtfFeed feed) {
    int64_t longest = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == feed)
            longest = MAX(longest, mtf_data_example_size(graph, t));
    }
    return longest;
}

static bool is_segments(MtfFeed feed) {
    return feed == MTF_FEED_SEGMENTS;
}

/* The smallest vocabulary of the texts, or the classes of labels. */
static int64_t smallest_bound(const MtfGraph *graph, bool (*accepts)(MtfFeed)) {
    int64_t bound = INT64_MAX;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && accepts(tensor->feed))
            bound = MIN(bound, mtf_data_id_bound(graph, t));
    }
    return bound;
}

/* The labels of texts that an input wants, -1: none. */
static MtfLabelsWanted wanted_labels(const MtfGraph *graph, int input, int64_t length) {
    if (input < 0)
        return (MtfLabelsWanted){ 0 };
    int64_t places = mtf_data_example_size(graph, input);
    return (MtfLabelsWanted){ mtf_data_id_bound(graph, input), places, places == length };
}

static bool open_pairs(MtfData *data, const MtfDataSettings *settings, GError **error) {
    const MtfGraph *graph = data->graph;
    int label = find_input(graph, mtf_feed_is_taught);
    MtfPairsWanted wanted = { .source_length = longest_example(graph, MTF_FEED_SOURCE),
                              .length = MAX(longest_example(graph, MTF_FEED_TOKENS),
                                            longest_example(graph, MTF_FEED_NEXT_TOKENS)),
                              .vocabulary = smallest_bound(graph, mtf_feed_is_text),
                              .packed = find_input(graph, is_segments) >= 0,
                              .text = settings->pair_text,
                              .files = settings->files,
                              .held_out = settings->held_out,
                              .share = settings->share };
    wanted.labels = wanted_labels(graph, label, wanted.length);
    data->vocabulary = label >= 0 ? wanted.labels.classes : wanted.vocabulary;
    data->pairs = mtf_pairs_open(&wanted, error);
    return data->pairs != NULL;
}

/* Whether the model reads one text beside another, or a text beside its class, and files hold such
 * pairs. */
static bool wants_pairs(const MtfData *data, const MtfDataSettings *settings) {
    bool two = longest_example(data->graph, MTF_FEED_SOURCE) > 0;
    bool labelled = find_input(data->graph, mtf_feed_is_taught) >= 0;
    return settings->files != NULL && (two || labelled) &&
           find_input(data->graph, mtf_feed_is_text) >= 0 &&
           find_input(data->graph, mtf_feed_is_features) < 0 && mtf_pairs_are(settings->files) &&
           (settings->held_out == NULL || mtf_pairs_are(settings->held_out));
}

/* How many outputs of the teacher an input wants: places of targets, classes of labels. */
static bool count_outputs(const MtfGraph *graph, int tensor, int64_t *outputs, GError **error) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (t->feed == MTF_FEED_TARGETS)
        *outputs = mtf_data_example_size(graph, tensor);
    if (t->feed == MTF_FEED_LABELS)
        *outputs = mtf_data_id_bound(graph, tensor);
    return *outputs != INT64_MAX ||
           mtf_input_error(error,
                           "input \"%s\" is fed with labels, but no operation says how many "
                           "classes there are: let one choose by it as it is (one_hot, gather, "
                           "embedding or softmax_cross_entropy)",
                           t->name);
}

/* Whether labels below 0 are no class: an operation compares them with 0, as softmax_cross_entropy that ignores
 * them becomes. */
static bool ignores_labels(const MtfGraph *graph, int tensor) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool compares = mtf_operation_row(op->kind)->dtype == MTF_DTYPE_TRUTH && op->n_inputs == 2;
        if (!compares || (op->inputs[0] != tensor && op->inputs[1] != tensor))
            continue;
        const MtfTensor *other = mtf_graph_tensor(graph, op->inputs[op->inputs[0] == tensor]);
        const MtfOperation *made =
            other->producer < 0 ? NULL : mtf_graph_operation(graph, other->producer);
        if (made != NULL && made->n_inputs == 0 && other->shape.rank == 0 &&
            made->attributes.value == 0)
            return true;
    }
    return false;
}

/* What the inputs of one example are. */
typedef struct {
    int64_t features, targets, labels, classes, categories; /* 0 = none */
    bool ignores;                                           /* labels below 0 */
    int64_t most;                                           /* outputs of the teacher */
    int64_t batch;                                          /* of a step */
} Example;

/* Files have the features of all inputs; generated ones begin alike and go on to the longest input. */
static bool describe_example(const MtfGraph *graph, bool of_files, Example *example,
                             GError **error) {
    *example = (Example){ .most = 1, .batch = 1 };
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int64_t outputs = 1, size = mtf_data_example_size(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT)
            continue;
        if (tensor->shape.rank > 0)
            example->batch = MAX(example->batch, mtf_graph_step_size(graph, tensor->shape.dims[0]));
        if (mtf_feed_is_features(tensor->feed))
            example->features = of_files ? example->features + size : MAX(example->features, size);
        if (!count_outputs(graph, t, &outputs, error))
            return false;
        example->most = MAX(example->most, outputs);
        if (mtf_feed_is_category(tensor->feed))
            example->categories += size;
        if (tensor->feed == MTF_FEED_TARGETS)
            example->targets = outputs;
        if (tensor->feed == MTF_FEED_LABELS) {
            example->labels = size;
            example->classes = outputs;
            example->ignores = ignores_labels(graph, t);
        }
    }
    return true;
}

/* The inputs with features, MtfFeatureInput. */
static GArray *feature_inputs(const MtfGraph *graph) {
    GArray *inputs = g_array_new(FALSE, FALSE, sizeof(MtfFeatureInput));
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        MtfFeatureInput input = { tensor->name, mtf_data_example_size(graph, t) };
        if (tensor->source == MTF_SOURCE_INPUT && mtf_feed_is_features(tensor->feed))
            g_array_append_val(inputs, input);
    }
    return inputs;
}

static bool open_examples(MtfData *data, const MtfDataSettings *settings, GError **error) {
    Example example;
    if (!describe_example(data->graph, settings->files != NULL, &example, error))
        return false;
    if (settings->files == NULL) {
        data->teacher = mtf_teacher_new(example.features, example.most, example.batch, data->seed);
        return true;
    }
    g_autoptr(GArray) inputs = feature_inputs(data->graph);
    MtfExamplesWanted wanted = { .features = example.features,
                                 .inputs = (const MtfFeatureInput *)(gpointer)inputs->data,
                                 .n_inputs = inputs->len > 1 ? (int)inputs->len : 0,
                                 .targets = example.targets,
                                 .labels = example.labels,
                                 .classes = example.classes,
                                 .ignores = example.ignores,
                                 .categories = example.categories,
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
static bool open_both(MtfData *data, const MtfDataSettings *settings, GError **error) {
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
    return open_tokens(data, &of_text, error) && open_examples(data, &of_features, error);
}

static bool check_settings(const MtfData *data, const MtfDataSettings *settings, GError **error) {
    int text = find_input(data->graph, mtf_feed_is_text);
    int features = find_input(data->graph, mtf_feed_is_features);
    if (text >= 0 && settings->files == NULL)
        return mtf_input_error(error, "input \"%s\" is read from a text: give --data FILE",
                               mtf_graph_tensor(data->graph, text)->name);
    if (text < 0 && features < 0 && settings->files != NULL)
        return mtf_input_error(error, "this model reads neither tokens nor features, so leave out "
                                      "--data");
    if (settings->files == NULL && settings->held_out != NULL)
        return mtf_input_error(error, "files are held out, but none to train on: give --data FILE");
    return true;
}

static bool check_inputs(const MtfData *data, GError **error) {
    int category = find_input(data->graph, mtf_feed_is_category);
    int taught = find_input(data->graph, mtf_feed_is_taught);
    if (category >= 0 && mtf_data_id_bound(data->graph, category) == INT64_MAX)
        return mtf_input_error(
            error,
            "input \"%s\" is fed with categories, but no operation says how many "
            "there are",
            mtf_graph_tensor(data->graph, category)->name);
    if (taught >= 0 && find_input(data->graph, mtf_feed_is_features) < 0)
        return mtf_input_error(
            error,
            "input \"%s\" is made from an example's features, but no input is "
            "fed with features%s",
            mtf_graph_tensor(data->graph, taught)->name,
            find_input(data->graph, mtf_feed_is_text) < 0
                ? ": ids that depend on none are fed with categories"
                : ": give --data a table (.tsv) with a label, a tab and a text a line");
    return true;
}

static bool open_sources(MtfData *data, const MtfDataSettings *settings, GError **error) {
    int text = find_input(data->graph, mtf_feed_is_text);
    int features = find_input(data->graph, mtf_feed_is_features);
    if (!check_settings(data, settings, error))
        return false;
    if (wants_pairs(data, settings))
        return open_pairs(data, settings, error);
    if (!check_inputs(data, error))
        return false;
    if (text >= 0 && features >= 0)
        return open_both(data, settings, error);
    return (text < 0 || open_tokens(data, settings, error)) &&
           (features < 0 || open_examples(data, settings, error));
}

/* Text counts its tokens, everything else the examples of its first input. */
static void count_items(MtfData *data) {
    const MtfGraph *graph = data->graph;
    int text = find_input(graph, mtf_feed_is_text);
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
        data->items *= mtf_data_example_size(graph, text);
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
    mtf_pairs_close(data->pairs);
    mtf_examples_close(data->examples);
    mtf_teacher_free(data->teacher);
    g_free(data);
}

bool mtf_data_is_generated(const MtfData *data) {
    return data->tokens == NULL && data->pairs == NULL && data->examples == NULL;
}

void mtf_data_hold_out(MtfData *data, bool held_out) {
    data->held_out = held_out;
}

int64_t mtf_data_held_examples(const MtfData *data) {
    if (mtf_data_is_generated(data))
        return INT64_MAX;
    return data->pairs != NULL    ? mtf_pairs_held(data->pairs)
           : data->tokens != NULL ? mtf_tokens_held(data->tokens)
                                  : mtf_examples_held(data->examples);
}

int64_t mtf_data_held_batches(const MtfData *data) {
    int64_t held = mtf_data_held_examples(data);
    return held == INT64_MAX || held == 0 ? held : MAX(1, held / data->batch);
}

int64_t mtf_data_held_tokens(MtfData *data, int *tokens, int64_t n, GError **error) {
    if (data->tokens == NULL) {
        mtf_input_error(error, data->pairs != NULL ? "this model goes on from pairs of texts, "
                                                     "which no beginning stands for"
                                                   : "this model reads no tokens");
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

const MtfTextPair *mtf_data_pair(MtfData *data, int64_t number) {
    if (data->pairs == NULL)
        return NULL;
    bool held = mtf_pairs_held(data->pairs) > 0;
    if (number >= (held ? mtf_pairs_held(data->pairs) : mtf_pairs_trained(data->pairs)))
        return NULL;
    if (held)
        mtf_pairs_load_held(data->pairs, number);
    else
        mtf_pairs_load(data->pairs, data->seed, number);
    return mtf_pairs_row(data->pairs)->first;
}

int64_t mtf_data_vocabulary(const MtfData *data) {
    return data->vocabulary;
}

double mtf_data_entropy(const MtfData *data) {
    if (data->pairs != NULL)
        return mtf_pairs_entropy(data->pairs);
    return data->tokens != NULL ? mtf_tokens_entropy(data->tokens) : NAN;
}

int64_t mtf_data_examples(const MtfData *data) {
    return data->batch;
}

char *mtf_data_identity(const MtfData *data, GError **error) {
    if (data->pairs != NULL)
        return mtf_pairs_identity(data->pairs);
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
