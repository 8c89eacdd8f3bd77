// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_inputs.h"

#include <inttypes.h>
#include <string.h>

static bool holds(const char *name, const char *word) {
    return strstr(name, word) != NULL;
}

/* Whether an input says what is right, for a loss of the file's own. */
static bool is_answer(const MtfOnnxTranslation *t, const MtfOnnxImport *import,
                      const MtfOnnxInput *input) {
    static const char *const losses[] = { "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
                                          NULL };
    if (import->loss == NULL || !g_str_has_prefix(import->loss, MTF_ONNX_OWN_LOSS))
        return false;
    for (guint i = 0; i < t->model->nodes->len; i++) {
        const MtfOnnxNode *node = t->model->nodes->pdata[i];
        if (node->inputs->len > 1 && g_strv_contains(losses, node->op) &&
            strcmp(node->inputs->pdata[1], input->name) == 0)
            return true;
    }
    return holds(input->name, "label") || holds(input->name, "target");
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* The size that the user gives a name, or 0. */
static int64_t size_given(const MtfOnnxImport *import, const char *name) {
    const MtfSizeOverrides *sizes = import->sizes;
    for (int i = 0; sizes != NULL && sizes->names != NULL && sizes->names[i] != NULL; i++)
        if (strcmp(sizes->names[i], name) == 0)
            return sizes->sizes[i];
    return 0;
}

/* "width", or "x:3" where the file gives the axis no name; free with g_free. */
static char *size_name(const MtfOnnxInput *input, int axis) {
    const char *name = input->dims[axis].name;
    return name != NULL && *name != '\0' ? g_strdup(name)
                                         : g_strdup_printf("%s:%d", input->name, axis);
}

static int64_t given_or_standard(MtfOnnxTranslation *t, const char *option, int64_t given,
                                 int64_t standard) {
    if (given == 0)
        mtf_onnx_say(t, "%s %" PRId64 " (no --%s given)", option, standard, option);
    return given > 0 ? given : standard;
}

static int64_t open_size(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                         const MtfOnnxInput *input, int axis) {
    g_autofree char *name = size_name(input, axis);
    int64_t given = size_given(import, name);
    if (given > 0)
        return given;
    if (axis == 0)
        return given_or_standard(t, "batch", import->batch, import->standard_batch);
    if (axis == 1 && mtf_onnx_type_is_integer(input->type))
        return given_or_standard(t, "length", import->length, import->standard_length);
    mtf_onnx_fail(t, "input \"%s\" has no size for axis %d: give one by --dim '%s=N'", input->name,
                  axis, name);
    return 0;
}

static int64_t size_of(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                       const MtfOnnxInput *input, int axis) {
    int64_t size = input->dims[axis].size;
    if (size < 0 || (size == 0 && input->dims[axis].name != NULL))
        return open_size(t, import, input, axis);
    if (size == 0)
        mtf_onnx_fail(t, "input \"%s\" has no elements along axis %d", input->name, axis);
    bool follows = t->file_batch > 1 && size == t->file_batch;
    bool examples = input->rank > 1 || is_answer(t, import, input) || follows;
    if (axis == 0 && import->batch > 0 && examples && size != import->batch) {
        t->file_batch = size;
        t->batch = import->batch;
        mtf_onnx_say(t, "batch %" PRId64 " in place of the file's %" PRId64, import->batch, size);
        return import->batch;
    }
    return size;
}

/* Every size that the user gives must be one of the model's. */
static bool check_given(MtfOnnxTranslation *t, const MtfOnnxImport *import) {
    const MtfSizeOverrides *sizes = import->sizes;
    for (int i = 0; sizes != NULL && sizes->names != NULL && sizes->names[i] != NULL; i++) {
        bool found = false;
        for (guint k = 0; k < t->model->inputs->len; k++) {
            const MtfOnnxInput *input = t->model->inputs->pdata[k];
            for (int axis = 0; axis < input->rank; axis++) {
                g_autofree char *name = size_name(input, axis);
                found |= strcmp(name, sizes->names[i]) == 0;
            }
        }
        if (!found)
            return mtf_onnx_fail(t, "no input has a size called \"%s\" (--dim)", sizes->names[i]) !=
                   NULL;
    }
    return true;
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static const char *role_of(const MtfOnnxInput *input, int axis) {
    static const char *const roles[6][6] = {
        { NULL },
        { "batch" },
        { "batch", "features" },
        { "batch", "length", "features" },
        { "batch", "channels", "height", "width" },
        { "batch", "channels", "depth", "height", "width" },
    };
    if (mtf_onnx_type_is_integer(input->type))
        return axis == 0 ? "batch" : axis == 1 ? "length" : "places";
    return input->rank <= 5 ? roles[input->rank][axis] : axis == 0 ? "batch" : "places";
}

static MtfFeed feed_of(const MtfOnnxTranslation *t, const MtfOnnxImport *import,
                       const MtfOnnxInput *input) {
    if (is_answer(t, import, input))
        return mtf_onnx_type_is_integer(input->type) ? MTF_FEED_LABELS : MTF_FEED_TARGETS;
    if (holds(input->name, "mask") || input->type == MTF_ONNX_BOOL)
        return MTF_FEED_MASK;
    return mtf_onnx_type_is_integer(input->type) ? MTF_FEED_TOKENS : MTF_FEED_FEATURES;
}

/* The tensor of an input: axes of several elements and, of two or more, the first. */
static MtfOnnxValue *make_tensor(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                                 const MtfOnnxInput *input, const int64_t *sizes) {
    MtfFeed feed = feed_of(t, import, input);
    bool counts = feed == MTF_FEED_MASK && mtf_onnx_type_is_integer(input->type);
    int type = counts ? MTF_ONNX_FLOAT : input->type, n = 0;
    const char *roles[MTF_ONNX_MAX_RANK];
    int64_t several[MTF_ONNX_MAX_RANK];
    int axes[MTF_ONNX_MAX_RANK];
    MtfAxisTensor tensor = {
        .source = MTF_SOURCE_INPUT, .name = input->name, .dtype = mtf_onnx_dtype(type), .feed = feed
    };
    MtfOnnxValue *value = mtf_onnx_value_new(t, type, input->rank, sizes);
    if (value == NULL)
        return NULL;
    for (int k = 0; k < input->rank; k++) {
        if (sizes[k] == 1 && (k > 0 || input->rank == 1))
            continue;
        axes[n] = k;
        roles[n] = role_of(input, k);
        several[n++] = sizes[k];
    }
    value->tensor = mtf_axis_source_add(t->graph, &tensor, n, several, roles);
    for (int i = 0; i < n; i++) {
        int axis = mtf_axis_tensor(t->graph, value->tensor)->axes.dims[i];
        const char *name = input->dims[axes[i]].name;
        value->axes[axes[i]] = axis;
        mtf_axis(t->graph, axis)->examples = axes[i] == 0 && t->batch == sizes[0];
        if (name != NULL && *name != '\0' && input->dims[axes[i]].size < 0 && !holds(name, "unk") &&
            !holds(name, "dynamic"))
            mtf_axis(t->graph, axis)->name = g_strdup(name);
    }
    return type == input->type ? value : mtf_onnx_cast(t, value, input->type);
}

/* What stands for inputs of a text that our data do not have: segments are all the first, positions
 * are counted. */
static MtfOnnxValue *make_standing(MtfOnnxTranslation *t, const MtfOnnxInput *input,
                                   const int64_t *sizes) {
    if (!mtf_onnx_type_is_integer(input->type) || input->rank < 1)
        return NULL;
    if (holds(input->name, "token_type") || holds(input->name, "segment_ids")) {
        mtf_onnx_say(t, "input \"%s\" is 0 everywhere", input->name);
        return mtf_onnx_uniform(t, input->type, input->rank, sizes, 0);
    }
    if (!holds(input->name, "position_ids"))
        return NULL;
    int64_t row[MTF_ONNX_MAX_RANK], n = sizes[input->rank - 1];
    for (int k = 0; k < input->rank; k++)
        row[k] = k == input->rank - 1 ? n : 1;
    mtf_onnx_say(t, "input \"%s\" counts positions from 0", input->name);
    MtfOnnxValue *count = mtf_onnx_known_new(t, input->type, input->rank, row);
    for (int64_t i = 0; count != NULL && i < n; i++)
        count->known[i] = (double)i;
    return count;
}

/* Keys and values of a past that nobody gives a length: none. NULL: the input is another. */
static MtfOnnxValue *make_past(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                               const MtfOnnxInput *input) {
    int open = -1;
    int64_t sizes[MTF_ONNX_MAX_RANK];
    if (!holds(input->name, "past") || mtf_onnx_type_is_integer(input->type))
        return NULL;
    for (int k = 1; k < input->rank; k++) {
        g_autofree char *name = size_name(input, k);
        if (input->dims[k].size < 0 && size_given(import, name) == 0)
            open = k;
    }
    if (open < 0)
        return NULL;
    g_autofree char *name = size_name(input, open);
    mtf_onnx_say(t, "%s 0: a text without a past (no --dim '%s=N' given)", name, name);
    for (int k = 0; k < input->rank; k++)
        if ((sizes[k] = k == open ? 0 : size_of(t, import, input, k)) < (k == open ? 0 : 1))
            return NULL;
    return mtf_onnx_value_new(t, input->type, input->rank, sizes);
}

static MtfOnnxValue *find_known(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                                const char *name) {
    for (guint i = 0; import->known != NULL && i < import->known->len; i++) {
        const MtfOnnxTensor *tensor = import->known->pdata[i];
        if (strcmp(tensor->name, name) == 0)
            return mtf_onnx_stored(t, tensor, false);
    }
    return NULL;
}

static MtfOnnxValue *make_input(MtfOnnxTranslation *t, const MtfOnnxImport *import,
                                const MtfOnnxInput *input) {
    int64_t sizes[MTF_ONNX_MAX_RANK];
    MtfOnnxValue *known = find_known(t, import, input->name);
    if (known != NULL || t->error != NULL)
        return known;
    if (input->type == 0 || mtf_onnx_type_bytes(input->type) == 0)
        return mtf_onnx_fail(t, "input \"%s\" is no tensor of numbers, but %s", input->name,
                             input->type == 0 ? "a sequence, map or optional value"
                                              : mtf_onnx_type_name(input->type));
    if (input->rank < 0)
        return mtf_onnx_fail(t, "input \"%s\" has no shape", input->name);
    MtfOnnxValue *past = make_past(t, import, input);
    if (past != NULL || t->error != NULL)
        return past;
    for (int k = 0; k < input->rank; k++)
        if ((sizes[k] = size_of(t, import, input, k)) < 1)
            return mtf_onnx_fail(t, "input \"%s\" has a size below 1", input->name);
    MtfOnnxValue *standing = make_standing(t, input, sizes);
    return standing != NULL || t->error != NULL ? standing : make_tensor(t, import, input, sizes);
}

bool mtf_onnx_make_inputs(MtfOnnxTranslation *t, const MtfOnnxImport *import) {
    if (!check_given(t, import))
        return false;
    for (guint i = 0; i < t->model->inputs->len; i++) {
        const MtfOnnxInput *input = t->model->inputs->pdata[i];
        if (g_hash_table_contains(t->values, input->name))
            continue;
        MtfOnnxValue *value = make_input(t, import, input);
        if (value == NULL)
            return false;
        g_hash_table_insert(t->values, input->name, value);
    }
    return true;
}
