// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/unaligned_products.h"

#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"

/* Sizes are padded to what Megatron-LM pads vocabularies to. */
#define PADDED_TO 128

/* Padding by more than this part of a size costs more than it gives. */
#define MOST_MORE 8

/* Rows of halves are aligned where their length is a multiple of this. */
#define ALIGNED_TO 8

/* Less than this share of the step is not worth a word. */
#define WORTH 0.01

static int64_t padded(int64_t size) {
    return (size + PADDED_TO - 1) / PADDED_TO * PADDED_TO;
}

/* Whether a dimension may be padded, and is not much larger then: none of data, nor one that windows go over. */
static bool is_padded(const MtfGraph *graph, const MtfOperation *op, int dim) {
    int64_t size = mtf_graph_size(graph, dim);
    if (padded(size) - size > size / MOST_MORE)
        return false;
    for (int w = 0; w < op->attributes.n_windows; w++) {
        const MtfWindow *window = &op->attributes.windows[w];
        if (dim == window->kernel || dim == window->from || dim == window->to)
            return false;
    }
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && mtf_shape_find(&tensor->shape, dim) >= 0)
            return false;
    }
    return true;
}

/* The largest dimension of the operation's tensors that is no multiple of ALIGNED_TO and may be padded; -1
 * without one. */
static int odd_dimension(const MtfGraph *graph, const MtfOperation *op) {
    int odd = -1;
    for (int k = -1; k < op->n_inputs; k++) {
        int tensor = k < 0 ? op->outputs[0] : op->inputs[k];
        const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
        for (int i = 0; i < shape->rank; i++) {
            int64_t size = mtf_graph_size(graph, shape->dims[i]);
            if (size % ALIGNED_TO != 0 && (odd < 0 || size > mtf_graph_size(graph, odd)) &&
                is_padded(graph, op, shape->dims[i]))
                odd = shape->dims[i];
        }
    }
    return odd;
}

/* Nanoseconds by which the instruction's kernel would be faster, each time that a step runs it. */
static int64_t loss_of(const MtfPricer *pricer, const MtfPricer *aligned, const MtfProgram *program,
                       int index) {
    return mtf_price_instruction(pricer, program, index) -
           mtf_price_instruction(aligned, program, index);
}

/* The dimension of the kernel that loses most. */
static int worst_dimension(const MtfPricer *pricer, const MtfPricer *aligned,
                           const MtfProgram *program) {
    int64_t most = 0;
    int dimension = -1;
    for (int i = 0; i < (int)program->instructions->len; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_KERNEL || instruction->products.calls <= 0)
            continue;
        int64_t loss = loss_of(pricer, aligned, program, i);
        const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
        int odd = loss > most ? odd_dimension(program->graph, op) : -1;
        if (odd >= 0) {
            most = loss;
            dimension = odd;
        }
    }
    return dimension;
}

cJSON *mtf_unaligned_products(const MtfPricer *pricer, const MtfProgram *program) {
    const MtfSoftware *software = pricer->machine->software;
    if (pricer->machine->kernels.unaligned <= 0 || (software != NULL && software->pads))
        return NULL;
    MtfMachine machine = *pricer->machine;
    MtfPricer aligned = *pricer;
    machine.kernels.unaligned = 0;
    aligned.machine = &machine;
    int64_t whole = mtf_price_program(pricer, program);
    int64_t loss = whole - mtf_price_program(&aligned, program);
    if ((double)loss < WORTH * (double)whole)
        return NULL;
    int dimension = worst_dimension(pricer, &aligned, program);
    if (dimension < 0)
        return NULL;
    int64_t size = mtf_graph_size(program->graph, dimension);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "dimension",
                            mtf_graph_dimension(program->graph, dimension)->name);
    mtf_json_add_integer(object, "size", size);
    mtf_json_add_integer(object, "padded", padded(size));
    mtf_json_add_number(object, "seconds", (double)loss / 1e9);
    return object;
}

char *mtf_unaligned_products_format(const cJSON *unaligned) {
    if (unaligned == NULL)
        return NULL;
    const char *name = mtf_json_text_of(unaligned, "dimension");
    g_autofree char *seconds = mtf_seconds_format(mtf_json_number_of(unaligned, "seconds", 0));
    return g_strdup_printf("%s of %.0f is no multiple of %d, for which products here take %s more; "
                           "--pad %s:%.0f",
                           name, mtf_json_number_of(unaligned, "size", 0), ALIGNED_TO, seconds,
                           name, mtf_json_number_of(unaligned, "padded", 0));
}
