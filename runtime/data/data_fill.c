// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/random.h"
#include "runtime/data/data_inner.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>
#include <string.h>

/* "Steps" of held out examples that are generated: none of training comes this far. */
#define HELD_STEPS (INT64_C(1) << 60)

/* What one element of an example is made of. */
typedef struct {
    MtfData *data;
    const MtfTensor *tensor;
    int64_t step;
    int64_t classes; /* of labels and categories */
    int64_t column;  /* the first of its categories or features in a file */
    int64_t places;  /* of one example */
    int64_t end;     /* examples of the slice end before it */
} Filling;

/* Values are made so many at a time. */
#define VALUES 256

/* Drawn from all that its table has. */
static double drawn_category(const Filling *filling, int64_t example, int64_t place) {
    MtfRandom random =
        mtf_random_stream(filling->data->seed, filling->tensor->name, (uint64_t)filling->step);
    double share = mtf_random_uniform(&random, example * filling->places + place);
    return floor(share * (double)filling->classes);
}

/* The column that an input begins with: inputs of its feed follow one another in the graph's order. */
static int64_t first_column(const MtfGraph *graph, const MtfTensor *input) {
    int64_t column = 0;
    for (int t = 0; mtf_graph_tensor(graph, t) != input; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == input->feed)
            column += mtf_data_example_size(graph, t);
    }
    return column;
}

/* A category of an example: its row of a table, or drawn from all rows. */
static double category_at(const Filling *filling, int64_t example, int64_t place) {
    if (filling->data->examples == NULL)
        return drawn_category(filling, example, place);
    int64_t column = filling->column + place;
    return fmod(mtf_examples_category(filling->data->examples, column), (double)filling->classes);
}

/* The example's class; or where each place has one, it is generated from the feature there: its
 * range in as many equal parts. */
static double label_at(const Filling *filling, int64_t place) {
    const MtfData *data = filling->data;
    if (data->examples != NULL)
        return mtf_examples_label(data->examples, place);
    if (filling->places == 1)
        return (double)mtf_teacher_label(data->teacher, filling->classes);
    int64_t features = mtf_teacher_n_features(data->teacher);
    double x = mtf_teacher_features(data->teacher)[place % features];
    return floor((x / sqrt(3) + 1) / 2 * (double)filling->classes);
}

/* The same of the row of pairs that was laid out last. */
static double pair_value_at(const Filling *filling, int64_t place) {
    const MtfPairRow *row = mtf_pairs_row(filling->data->pairs);
    switch (filling->tensor->feed) {
    case MTF_FEED_TOKENS:
        return row->tokens[place];
    case MTF_FEED_NEXT_TOKENS:
        return row->next_tokens[place];
    case MTF_FEED_SOURCE:
        return row->source[place];
    case MTF_FEED_SEGMENTS:
        return row->segments[place];
    case MTF_FEED_PLACES:
        return row->places[place];
    case MTF_FEED_SOURCE_SEGMENTS:
        return row->source_segments[place];
    case MTF_FEED_SOURCE_PLACES:
        return row->source_places[place];
    case MTF_FEED_LABELS:
        return row->labels[place];
    default: /* a mask */
        return row->segments[place] > 0;
    }
}

/* The value of `place` of the example that was loaded last, from files; or generated. */
static double value_at(const Filling *filling, int64_t example, int64_t place) {
    const MtfData *data = filling->data;
    if (data->pairs != NULL)
        return pair_value_at(filling, place);
    switch (filling->tensor->feed) {
    case MTF_FEED_TOKENS:
    case MTF_FEED_SOURCE:
        return mtf_tokens_get(data->tokens, place);
    case MTF_FEED_CATEGORIES:
        return category_at(filling, example, place);
    case MTF_FEED_PLACES:
    case MTF_FEED_SOURCE_PLACES:
        return (double)place;
    case MTF_FEED_NEXT_TOKENS:
        return mtf_tokens_get(data->tokens, place + 1);
    case MTF_FEED_FEATURES:
        return mtf_examples_feature(data->examples, filling->column + place);
    case MTF_FEED_TARGETS:
        return mtf_examples_target(data->examples, place);
    case MTF_FEED_LABELS:
        return label_at(filling, place);
    default:
        return 1;
    }
}

/* `n` values of the example that was loaded last, from `place` on. */
static void make_values(const Filling *filling, int64_t example, int64_t place, int64_t n,
                        double *values) {
    MtfFeed feed = filling->tensor->feed;
    MtfTeacher *teacher = filling->data->teacher;
    if (teacher != NULL && feed == MTF_FEED_FEATURES)
        memcpy(values, mtf_teacher_features(teacher) + place, (size_t)n * sizeof *values);
    else if (teacher != NULL && feed == MTF_FEED_TARGETS)
        memcpy(values, mtf_teacher_targets(teacher) + place, (size_t)n * sizeof *values);
    else
        for (int64_t i = 0; i < n; i++)
            values[i] = value_at(filling, example, place + i);
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

static bool load_pairs(const Filling *filling, int64_t example) {
    const MtfData *data = filling->data;
    int64_t number = (filling->step - 1) * data->batch + example;
    if (data->held_out)
        mtf_pairs_load_held(data->pairs, number);
    else
        mtf_pairs_load(data->pairs, data->seed, number);
    return true;
}

/* Makes the example ready that value_at is asked about. */
static bool load_example(const Filling *filling, int64_t example, GError **error) {
    MtfFeed feed = filling->tensor->feed;
    if (filling->data->pairs != NULL)
        return load_pairs(filling, example);
    if (mtf_feed_is_text(feed))
        return load_tokens(filling, example, error);
    if (filling->data->examples != NULL &&
        (mtf_feed_is_features(feed) || mtf_feed_is_taught(feed) || mtf_feed_is_category(feed)))
        return load_features(filling, example, error);
    if (filling->data->teacher != NULL && (mtf_feed_is_features(feed) || mtf_feed_is_taught(feed)))
        mtf_teacher_show(filling->data->teacher, filling->step, example, filling->end - example);
    return true;
}

/* Elements from `position` on that lie side by side in the whole tensor too. `loaded` is the
 * example that values are made of. */
static bool fill_run(const Filling *filling, const MtfOperand *slice, int64_t position, int64_t n,
                     int64_t *loaded, GError **error) {
    int64_t index = mtf_slice_global_index(slice, position);
    int64_t example = index / filling->places, place = index % filling->places;
    double values[VALUES];
    for (int64_t i = 0, count; i < n; i += count) {
        if (example != *loaded && !load_example(filling, example, error))
            return false;
        *loaded = example;
        count = MIN(MIN(n - i, filling->places - place), VALUES);
        make_values(filling, example, place, count, values);
        mtf_slice_set_run(slice, position + i, count, values);
        place += count;
        if (place == filling->places) {
            place = 0;
            example++;
        }
    }
    return true;
}

/* How many elements of a slice lie side by side in the whole tensor at least: its last dimensions,
 * from the first of which not all is in it; none turns within a run. */
static int64_t run_length(const MtfOperand *slice) {
    int i = slice->rank - 1;
    int64_t run = i >= 0 ? slice->size[i] : 1;
    for (; i > 0 && slice->begin[i] == 0 && slice->size[i] == slice->global[i] &&
           slice->begin[i - 1] + slice->size[i - 1] <= slice->global[i - 1];
         i--)
        run *= slice->size[i - 1];
    return run;
}

bool mtf_data_fill(MtfData *data, int tensor, int64_t step, const MtfOperand *slice,
                   GError **error) {
    Filling filling = { .data = data,
                        .tensor = mtf_graph_tensor(data->graph, tensor),
                        .step =
                            step + (data->held_out && mtf_data_is_generated(data) ? HELD_STEPS : 0),
                        .places = mtf_data_example_size(data->graph, tensor),
                        .end = slice->rank > 0 ? slice->begin[0] + slice->size[0] : 1 };
    if (mtf_feed_is_category(filling.tensor->feed) || mtf_feed_is_features(filling.tensor->feed))
        filling.column = first_column(data->graph, filling.tensor);
    if (filling.tensor->feed == MTF_FEED_LABELS || filling.tensor->feed == MTF_FEED_CATEGORIES)
        filling.classes = mtf_data_id_bound(data->graph, tensor);
    int64_t elements = mtf_slice_elements(slice);
    int64_t run = run_length(slice);
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
