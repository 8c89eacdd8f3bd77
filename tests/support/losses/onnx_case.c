// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/onnx_case.h"

#include "analyzer/composites/expand.h"
#include "analyzer/onnx/onnx_import.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>
#include <string.h>

#define RELATIVE 1e-3
#define ABSOLUTE 1e-7

typedef struct {
    MtfOnnxModel *model;
    GPtrArray *inputs, *outputs; /* MtfOnnxTensor; inputs have the model's names */
    GPtrArray *bytes;            /* that they lie in */
    GPtrArray *known;            /* of the inputs; or NULL */
    MtfOnnxOutput *input_places, *output_places;
    MtfGraph *graph;
    char *sentence;
} Case;

static void free_tensor(gpointer tensor) {
    mtf_onnx_tensor_clear(tensor);
    g_free(tensor);
}

static MtfOnnxTensor *read_tensor(Case *c, const char *folder, const char *kind, guint i) {
    g_autofree char *file = g_strdup_printf("%s_%u.pb", kind, i);
    g_autofree char *path = g_build_filename(folder, "test_data_set_0", file, NULL);
    char *text;
    gsize length;
    if (!g_file_get_contents(path, &text, &length, NULL))
        return NULL;
    g_ptr_array_add(c->bytes, text);
    MtfOnnxTensor *tensor = g_new0(MtfOnnxTensor, 1);
    MtfWire wire = { (const uint8_t *)text, (const uint8_t *)text + length, false };
    if (mtf_onnx_tensor_read(wire, path, tensor, NULL))
        return tensor;
    free_tensor(tensor);
    return NULL;
}

/* Inputs that are no initial values, in order. */
static bool is_initial(const MtfOnnxModel *model, const char *name) {
    for (guint i = 0; i < model->initializers->len; i++)
        if (strcmp(((MtfOnnxTensor *)model->initializers->pdata[i])->name, name) == 0)
            return true;
    return false;
}

/* numpy had no bfloat16: the data of such tensors call it uint16. */
static void take_type(MtfOnnxTensor *tensor, const MtfOnnxInput *like) {
    if (like->type == MTF_ONNX_BFLOAT16 && tensor->type == MTF_ONNX_UINT16)
        tensor->type = MTF_ONNX_BFLOAT16;
}

static void read_data(Case *c, const char *folder) {
    guint n = 0;
    for (guint i = 0; i < c->model->inputs->len; i++) {
        const MtfOnnxInput *input = c->model->inputs->pdata[i];
        MtfOnnxTensor *tensor =
            is_initial(c->model, input->name) ? NULL : read_tensor(c, folder, "input", n++);
        g_ptr_array_add(c->inputs, tensor);
        if (tensor == NULL)
            continue;
        g_free(tensor->name);
        tensor->name = g_strdup(input->name);
        take_type(tensor, input);
    }
    for (guint i = 0; i < c->model->outputs->len; i++) {
        MtfOnnxTensor *tensor = read_tensor(c, folder, "output", i);
        g_ptr_array_add(c->outputs, tensor);
        if (tensor != NULL)
            take_type(tensor, c->model->outputs->pdata[i]);
    }
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Whether an output before is the same tensor. */
static bool is_kept(const Case *c, guint i) {
    for (guint k = 0; k < i; k++)
        if (c->output_places[k].tensor == c->output_places[i].tensor)
            return true;
    return false;
}

/* Each output as the next value of a variable of its own, so that the program keeps it. */
static MtfGraph *keep_outputs(const Case *c, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_graph_copy(c->graph);
    for (guint i = 0; i < c->model->outputs->len; i++) {
        const MtfTensor *made = mtf_graph_tensor(graph, c->output_places[i].tensor);
        g_autofree char *name = g_strdup_printf("kept result %u", i);
        g_strdelimit(name, " ", '_');
        MtfShape shape = made->shape;
        int value = c->output_places[i].tensor;
        MtfDtype dtype = made->dtype;
        if (made->source != MTF_SOURCE_OPERATION || is_kept(c, i)) {
            MtfNewOperation copy = { .name = "copied",
                                     .kind = MTF_OP_STOP_GRADIENT,
                                     .n_inputs = 1,
                                     .inputs = &value,
                                     .attributes = MTF_NO_ATTRIBUTES };
            g_autofree char *own = g_strdup_printf("copied_%u", i);
            copy.name = own;
            value = mtf_graph_add_operation(graph, &copy, error);
        }
        int kept = value < 0 ? -1
                             : mtf_graph_add_variable(graph, name, &shape, dtype,
                                                      (MtfInit){ MTF_INIT_CONSTANT, 0 },
                                                      MTF_MEMORY_VARIABLE, error);
        if (kept < 0)
            return NULL;
        mtf_graph_add_update(graph, kept, value);
    }
    return mtf_expand(graph, error);
}

/* The place in the tensor of element `i` of what ONNX sees. */
static int64_t offset_of(const MtfGraph *graph, const MtfOnnxOutput *place, const MtfShape *shape,
                         int64_t i) {
    int64_t strides[MTF_MAX_RANK], stride = 1, offset = 0;
    for (int k = shape->rank - 1; k >= 0; k--) {
        strides[k] = stride;
        stride *= mtf_graph_size(graph, shape->dims[k]);
    }
    for (int k = place->rank - 1; k >= 0; k--) {
        if (place->dims[k] >= 0)
            offset += i % place->sizes[k] * strides[place->dims[k]];
        i /= place->sizes[k];
    }
    return offset;
}

static void fill(const Case *c, const MtfWorker *worker, guint i) {
    const MtfOnnxOutput *place = &c->input_places[i];
    const MtfOnnxTensor *tensor = c->inputs->pdata[i];
    if (tensor == NULL || place->tensor < 0)
        return;
    const MtfGraph *graph = worker->program->graph;
    int t = mtf_graph_find_tensor(graph, mtf_graph_tensor(c->graph, place->tensor)->name);
    const MtfOperand *operand = t < 0 ? NULL : mtf_worker_tensor(worker, t);
    g_autofree double *values = g_new(double, MAX(tensor->elements, 1));
    if (operand == NULL || !mtf_onnx_tensor_values(tensor, values))
        return;
    for (int64_t j = 0; j < tensor->elements; j++)
        mtf_slice_set(operand, offset_of(graph, place, &mtf_graph_tensor(graph, t)->shape, j),
                      values[j]);
}

/* The tensor of the file whose name begins a place ("w[2,3]"). */
static const MtfOnnxTensor *find_stored(const Case *c, const char *place) {
    for (guint i = 0; i < c->model->initializers->len; i++) {
        const MtfOnnxTensor *tensor = c->model->initializers->pdata[i];
        gsize n = strlen(tensor->name);
        if (strncmp(place, tensor->name, n) == 0 && place[n] == '[')
            return tensor;
    }
    for (guint i = 0; i < c->model->nodes->len; i++) {
        const MtfOnnxAttribute *value = mtf_onnx_attribute(c->model->nodes->pdata[i], "value");
        gsize n = value != NULL && value->t != NULL ? strlen(value->t->name) : 0;
        if (n > 0 && strncmp(place, value->t->name, n) == 0 && place[n] == '[')
            return value->t;
    }
    return NULL;
}

/* Variables have the dimensions of the file's tensors in their order. */
static void fill_variables(const Case *c, const MtfWorker *worker) {
    const MtfGraph *graph = worker->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *variable = mtf_graph_tensor(graph, t);
        const MtfOnnxTensor *stored =
            variable->stored == NULL ? NULL : find_stored(c, variable->stored);
        if (stored == NULL)
            continue;
        g_autofree double *values = g_new(double, MAX(stored->elements, 1));
        mtf_onnx_tensor_values(stored, values);
        for (int64_t j = 0; j < stored->elements; j++)
            mtf_slice_set(mtf_worker_tensor(worker, t), j, values[j]);
    }
}

/* What is computed in float32 and would be stored as bfloat16, cut off as ONNX's reference does. */
static double round_as(int type, double x) {
    float single = (float)x;
    guint32 bits;
    memcpy(&bits, &single, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&single, &bits, sizeof bits);
    return type == MTF_ONNX_BFLOAT16 ? (double)single : x;
}

static bool is_near(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= ABSOLUTE + RELATIVE * fabs(b);
}

static bool compare(Case *c, const MtfWorker *worker, guint i) {
    const MtfOnnxTensor *wanted = c->outputs->pdata[i];
    const MtfOnnxOutput *place = &c->output_places[i];
    g_autofree char *name = g_strdup_printf("kept_result_%u", i);
    const MtfGraph *graph = worker->program->graph;
    int t = mtf_graph_find_tensor(graph, name);
    const MtfOperand *operand = mtf_worker_tensor(worker, t);
    g_autofree double *values = g_new(double, MAX(wanted->elements, 1));
    bool same = place->rank == wanted->rank && mtf_onnx_tensor_values(wanted, values);
    for (int k = 0; same && k < place->rank; k++)
        same = place->sizes[k] == wanted->dims[k];
    if (!same) {
        c->sentence = g_strdup_printf("output %u has another shape", i);
        return false;
    }
    for (int64_t j = 0; j < wanted->elements; j++) {
        int64_t offset = offset_of(graph, place, &mtf_graph_tensor(graph, t)->shape, j);
        double got = round_as(wanted->type, mtf_slice_get(operand, offset));
        if (is_near(got, values[j]))
            continue;
        c->sentence =
            g_strdup_printf("output %u, element %d: %.9g, not %.9g", i, (int)j, got, values[j]);
        return false;
    }
    return true;
}

static bool run_program(Case *c, const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, 1, error);
    if (lockstep == NULL)
        return false;
    mtf_worker_initialise(lockstep->workers[0], 1);
    fill_variables(c, lockstep->workers[0]);
    for (guint i = 0; i < c->inputs->len; i++)
        fill(c, lockstep->workers[0], i);
    mtf_lockstep_step(lockstep, 1);
    for (guint i = 0; i < c->outputs->len; i++)
        if (c->outputs->pdata[i] != NULL && !compare(c, lockstep->workers[0], i))
            return false;
    return true;
}

static bool run(Case *c, GError **error) {
    MtfMesh mesh;
    g_autoptr(MtfGraph) graph = keep_outputs(c, error);
    if (graph == NULL)
        return false;
    mtf_graph_canonicalize(graph);
    g_assert(mtf_mesh_parse("one:1", 0, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    return run_program(c, graph, layout, error);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static bool import(Case *c, GError **error) {
    MtfOnnxImport request = { .standard_batch = 1, .standard_length = 1, .known = c->known };
    c->graph =
        mtf_onnx_import_parts(c->model, &request, NULL, &c->input_places, &c->output_places, error);
    return c->graph != NULL;
}

/* Inputs of integers in a list, and single numbers: what says shapes and axes. */
static void know_small_inputs(Case *c) {
    c->known = g_ptr_array_new();
    for (guint i = 0; i < c->inputs->len; i++) {
        MtfOnnxTensor *tensor = c->inputs->pdata[i];
        if (tensor != NULL && tensor->rank <= 1 &&
            (mtf_onnx_type_is_integer(tensor->type) || tensor->elements == 1 || i > 0))
            g_ptr_array_add(c->known, tensor);
    }
}

static MtfOnnxCaseResult run_case(Case *c, const char *folder) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(folder, "model.onnx", NULL);
    c->model = mtf_onnx_model_load(path, &error);
    bool bound = false;
    if (c->model == NULL) {
        c->sentence = g_strdup(error->message);
        return MTF_ONNX_CASE_UNREADABLE;
    }
    read_data(c, folder);
    if (!import(c, &error)) {
        c->sentence = g_strdup(error->message);
        g_clear_error(&error);
        know_small_inputs(c);
        bound = c->known->len > 0 && import(c, &error);
        if (!bound && error != NULL) {
            g_free(c->sentence);
            c->sentence = g_strdup(error->message);
        }
        if (!bound)
            return MTF_ONNX_CASE_REFUSED;
        g_clear_pointer(&c->sentence, g_free);
    }
    if (!run(c, &error)) {
        if (c->sentence == NULL)
            c->sentence = g_strdup(error != NULL ? error->message : "it failed");
        return MTF_ONNX_CASE_DIFFERS;
    }
    return bound ? MTF_ONNX_CASE_BOUND : MTF_ONNX_CASE_EQUAL;
}

MtfOnnxCaseResult mtf_onnx_case_run(const char *folder, char **sentence) {
    Case c = { .inputs = g_ptr_array_new(),
               .outputs = g_ptr_array_new(),
               .bytes = g_ptr_array_new_with_free_func(g_free) };
    MtfOnnxCaseResult result = run_case(&c, folder);
    *sentence = c.sentence;
    g_free(c.input_places);
    g_free(c.output_places);
    mtf_graph_free(c.graph);
    mtf_onnx_model_free(c.model);
    for (guint i = 0; i < c.inputs->len; i++)
        if (c.inputs->pdata[i] != NULL)
            free_tensor(c.inputs->pdata[i]);
    for (guint i = 0; i < c.outputs->len; i++)
        if (c.outputs->pdata[i] != NULL)
            free_tensor(c.outputs->pdata[i]);
    g_ptr_array_unref(c.inputs);
    g_ptr_array_unref(c.outputs);
    g_ptr_array_unref(c.bytes);
    if (c.known != NULL)
        g_ptr_array_unref(c.known);
    return result;
}
