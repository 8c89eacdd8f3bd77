// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/onnx/onnx_operators.h"

#include <inttypes.h>
#include <string.h>

static const MtfOnnxOperator *const tables[] = {
    mtf_onnx_elementwise_operators, mtf_onnx_shape_operators,
    mtf_onnx_reduction_operators,   mtf_onnx_network_operators,
    mtf_onnx_window_operators,      mtf_onnx_loss_operators,
    mtf_onnx_resize_operators,      mtf_onnx_sampling_operators,
    mtf_onnx_random_operators,      mtf_onnx_spectrum_operators,
    mtf_onnx_quantised_operators,   mtf_onnx_attention_operators,
    mtf_onnx_recurrent_operators,   mtf_onnx_place_operators,
    mtf_onnx_sequence_operators,    mtf_onnx_control_operators,
    mtf_onnx_fused_operators,       mtf_onnx_fused_attention_operators,
};

/* "" and "ai.onnx" are the same. */
static const char *domain_of(const char *domain) {
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

const MtfOnnxOperator *mtf_onnx_operator_find(const char *domain, const char *name) {
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++)
        for (const MtfOnnxOperator *row = tables[i]; row->name != NULL; row++)
            if (strcmp(row->name, name) == 0 &&
                strcmp(domain_of(row->domain), domain_of(domain)) == 0)
                return row;
    return NULL;
}

static const MtfOnnxOperator *find_row(MtfOnnxTranslation *t, const MtfOnnxNode *node) {
    const MtfOnnxOperator *row = mtf_onnx_operator_find(node->domain, node->op);
    if (row != NULL)
        return row;
    mtf_onnx_fail(t, "operator %s%s%s is not supported", node->op,
                  *domain_of(node->domain) != '\0' ? " of domain " : "", domain_of(node->domain));
    return NULL;
}

static bool gather_inputs(MtfOnnxTranslation *t, MtfOnnxCall *call) {
    for (int k = 0; k < call->n_inputs; k++) {
        const char *name = call->node->inputs->pdata[k];
        call->inputs[k] = *name == '\0' ? NULL : g_hash_table_lookup(t->values, name);
        if (*name != '\0' && call->inputs[k] == NULL)
            return mtf_onnx_fail(t, "input \"%s\" is made by no node before it", name) != NULL;
    }
    return true;
}

static bool takes_sequences(const MtfOnnxOperator *row) {
    for (const MtfOnnxOperator *one = mtf_onnx_sequence_operators; one->name != NULL; one++)
        if (one == row)
            return true;
    return false;
}

static bool check_inputs(MtfOnnxCall *call, const MtfOnnxOperator *row) {
    int n = call->n_inputs;
    for (int k = 0; k < n && !takes_sequences(row); k++)
        if (call->inputs[k] != NULL && call->inputs[k]->members != NULL)
            return mtf_onnx_fail(call->t, "input %d is a sequence, which it does not take", k) !=
                   NULL;
    if (call->n_outputs == 0)
        return mtf_onnx_fail(call->t, "it has no outputs") != NULL;
    for (int k = 0; k < row->least; k++)
        if (k >= n || call->inputs[k] == NULL)
            return mtf_onnx_fail(call->t, "input %d is missing", k) != NULL;
    return n <= row->most ||
           mtf_onnx_fail(call->t, "it has %d inputs, more than %d", n, row->most) != NULL;
}

MtfOnnxValue *mtf_onnx_translate_node(MtfOnnxTranslation *t, const MtfOnnxNode *node, int output) {
    const MtfOnnxOperator *row = find_row(t, node);
    if (row == NULL)
        return NULL;
    MtfOnnxCall call = { t,
                         node,
                         (int)node->inputs->len,
                         NULL,
                         (int)node->outputs->len,
                         NULL,
                         t->model->opset,
                         row->number,
                         row->kind };
    g_autofree MtfOnnxValue **inputs = g_new0(MtfOnnxValue *, node->inputs->len + 1);
    g_autofree MtfOnnxValue **outputs = g_new0(MtfOnnxValue *, node->outputs->len + 1);
    call.inputs = inputs;
    call.outputs = outputs;
    if (!gather_inputs(t, &call) || !check_inputs(&call, row))
        return NULL;
    MtfOnnxValue *made = row->rule(&call);
    outputs[0] = made;
    if (t->error != NULL || made == NULL || output >= call.n_outputs)
        return made; // cppcheck-suppress returnDanglingLifetime ; values are the translation's
    if (output >= 0)
        return outputs[output];
    for (int k = 0; k < call.n_outputs; k++) {
        const char *name = node->outputs->pdata[k];
        if (*name == '\0' || outputs[k] == NULL)
            continue;
        if (outputs[k]->node == NULL && outputs[k]->tensor < 0 && outputs[k]->stored == NULL) {
            outputs[k]->node = node;
            outputs[k]->output = k;
        }
        g_hash_table_insert(t->values, (gpointer)(guintptr)name, outputs[k]);
    }
    return made; // cppcheck-suppress returnDanglingLifetime ; likewise
}

/* ---- What rules ask -------------------------------------------------------------------------- */

MtfOnnxValue *mtf_onnx_input(const MtfOnnxCall *call, int k) {
    return k < call->n_inputs ? call->inputs[k] : NULL;
}

int64_t mtf_onnx_int(const MtfOnnxCall *call, const char *name, int64_t standard) {
    const MtfOnnxAttribute *attribute = mtf_onnx_attribute(call->node, name);
    return attribute != NULL && attribute->type == MTF_ONNX_ATTRIBUTE_INT ? attribute->i : standard;
}

double mtf_onnx_float(const MtfOnnxCall *call, const char *name, double standard) {
    const MtfOnnxAttribute *attribute = mtf_onnx_attribute(call->node, name);
    return attribute != NULL && attribute->type == MTF_ONNX_ATTRIBUTE_FLOAT ? attribute->f
                                                                            : standard;
}

const char *mtf_onnx_word(const MtfOnnxCall *call, const char *name, const char *standard) {
    const MtfOnnxAttribute *attribute = mtf_onnx_attribute(call->node, name);
    return attribute != NULL && attribute->s != NULL ? attribute->s : standard;
}

/* A known number as an integer, those beyond the range at its ends. */
static int64_t whole(double number) {
    return number >= 9.2e18 ? INT64_MAX : number <= -9.2e18 ? INT64_MIN : (int64_t)number;
}

bool mtf_onnx_ints(MtfOnnxCall *call, const char *name, int k, int64_t *numbers, int *n) {
    const MtfOnnxAttribute *attribute = name != NULL ? mtf_onnx_attribute(call->node, name) : NULL;
    MtfOnnxValue *input = k >= 0 ? mtf_onnx_input(call, k) : NULL;
    *n = -1;
    if (attribute != NULL) {
        *n = (int)MIN(attribute->ints->len, MTF_ONNX_MAX_RANK * 2);
        for (int i = 0; i < *n; i++)
            numbers[i] = g_array_index(attribute->ints, int64_t, i);
        return attribute->ints->len <= MTF_ONNX_MAX_RANK * 2 ||
               mtf_onnx_fail(call->t, "\"%s\" is too long", name) != NULL;
    }
    if (input == NULL)
        return true;
    if (!mtf_onnx_is_known(call->t, input))
        return mtf_onnx_fail(call->t,
                             "its input \"%s\" depends on data, and must follow from sizes "
                             "and constants",
                             (char *)call->node->inputs->pdata[k]) != NULL;
    int64_t count = mtf_onnx_elements(input);
    if (input->rank > 1 || count > MTF_ONNX_MAX_RANK * 2)
        return mtf_onnx_fail(call->t, "its input \"%s\" should be a short list",
                             (char *)call->node->inputs->pdata[k]) != NULL;
    *n = (int)count;
    for (int i = 0; i < *n; i++)
        numbers[i] = whole(mtf_onnx_known_at(input, i));
    return true;
}

bool mtf_onnx_known_input(MtfOnnxCall *call, int k, double standard, double *number) {
    MtfOnnxValue *input = mtf_onnx_input(call, k);
    *number = standard;
    return input == NULL || mtf_onnx_is_number(call->t, input, number) ||
           mtf_onnx_fail(call->t, "its input \"%s\" must be a known number",
                         (char *)call->node->inputs->pdata[k]) != NULL;
}

int mtf_onnx_axis(MtfOnnxCall *call, int64_t axis, int rank) {
    int64_t found = axis < 0 ? axis + rank : axis;
    if (found >= 0 && found < rank)
        return (int)found;
    mtf_onnx_fail(call->t, "axis %" PRId64 " is not one of %d", axis, rank);
    return -1;
}

bool mtf_onnx_axes(MtfOnnxCall *call, const int64_t *axes, int n, int rank, unsigned *mask) {
    *mask = 0;
    for (int i = 0; i < n; i++) {
        int axis = mtf_onnx_axis(call, axes[i], rank);
        if (axis < 0)
            return false;
        *mask |= 1U << axis;
    }
    return true;
}
