// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/summary/step_summary.h"

#include "cost/machine/doubt.h"
#include "cost/summary/framework_memory.h"
#include "cost/summary/parallelism.h"
#include "cost/summary/step_shares.h"
#include "cost/summary/unaligned_products.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

#include <math.h>
#include <string.h>

/* Shares of the step that are told. */
#define TOLD_SHARES 3

/* ---- Figures ----------------------------------------------------------------------------------- */

/* Flops of one product over all of its iteration space. */
static double product_flops(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    double points = 1;
    mtf_operation_iteration(graph, operation, &iteration);
    for (int i = 0; i < iteration.n; i++)
        points *= (double)(sizes[i] = iteration.index[i].size);
    int products = row->products == MTF_PRODUCTS_EINSUM ? MAX(1, op->n_inputs - 1) : 1;
    return row->flops * points * products *
           mtf_operation_share(graph, operation, &iteration, sizes);
}

static double model_flops(const MtfGraph *graph) {
    double flops = 0;
    bool trains = false;
    for (int o = 0; o < (int)graph->operations->len; o++) {
        const MtfOperation *op = mtf_graph_operation(graph, o);
        trains |= op->phase == MTF_PHASE_BACKWARD;
        if (op->phase == MTF_PHASE_FORWARD && op->origin != MTF_ORIGIN_CLONE &&
            mtf_operation_row(op->kind)->kernel_class == MTF_CLASS_MATMUL)
            flops += product_flops(graph, o);
    }
    return flops * mtf_graph_microbatches(graph) * (trains ? 3 : 1);
}

/* Tokens of a step, or else its examples; 0 where neither is known. */
static double items_of(const MtfGraph *graph, const char **name) {
    *name = "tokens";
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_INPUT && tensor->feed == MTF_FEED_TOKENS)
            return (double)mtf_graph_elements(graph, &tensor->shape) *
                   mtf_graph_microbatches(graph);
    }
    *name = "examples";
    int batch = mtf_graph_find_batch(graph);
    return batch >= 0 ? (double)mtf_graph_step_size(graph, batch) : 0;
}

/* Float64 or bfloat16 where some tensor is, else float32. */
static const char *precision_of(const MtfGraph *graph) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        MtfDtype dtype = mtf_graph_tensor(graph, t)->dtype;
        if (dtype == MTF_F64 || dtype == MTF_BF16)
            return mtf_dtype_short_name(dtype);
    }
    return mtf_dtype_short_name(MTF_F32);
}

void mtf_summary_add_speed(cJSON *predicted, const MtfStepSpeed *speed) {
    double step = mtf_json_number_of(predicted, "step_seconds", 0);
    double rate = step > 0 ? speed->model_flops / step / (double)speed->devices : 0;
    cJSON_AddStringToObject(predicted, "precision", speed->precision);
    cJSON_AddStringToObject(predicted, "items", speed->items);
    mtf_json_add_number(predicted, "items_per_step", speed->items_per_step);
    mtf_json_add_number(predicted, "items_per_second", step > 0 ? speed->items_per_step / step : 0);
    mtf_json_add_number(predicted, "model_flops", speed->model_flops);
    mtf_json_add_number(predicted, "mfu", speed->peak > 0 ? rate / speed->peak : 0);
    mtf_json_add_number(predicted, "flops_per_second_per_device", rate);
    mtf_json_add_number(predicted, "peak_flops_per_second", speed->peak);
    cJSON_AddStringToObject(predicted, "peak_precision", speed->peak_precision);
}

static void add_speed(cJSON *object, const MtfPricer *pricer, const MtfProgram *program) {
    const MtfGraph *graph = program->graph;
    const char *precision = precision_of(graph), *items;
    double count = items_of(graph, &items);
    MtfStepSpeed speed = { .precision = precision,
                           .items = items,
                           .items_per_step = count,
                           .model_flops = model_flops(graph),
                           .peak = mtf_machine_peak_flops(pricer->machine, precision),
                           .peak_precision =
                               mtf_machine_multiplied_type(pricer->machine, precision),
                           .devices = mtf_mesh_size(&program->layout->mesh) };
    mtf_summary_add_speed(object, &speed);
}

static void add_shares(cJSON *object, const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    g_autofree int64_t *wall = mtf_step_wall(schedule, program);
    g_autoptr(GPtrArray) shares = mtf_step_shares_of(pricer, program, schedule, wall);
    const MtfStepShare *first = shares->len > 0 ? shares->pdata[0] : NULL;
    cJSON_AddStringToObject(object, "bound_by", first != NULL ? first->name : "nothing");
    cJSON *list = cJSON_AddObjectToObject(object, "shares");
    for (guint i = 0; i < shares->len; i++) {
        const MtfStepShare *share = shares->pdata[i];
        mtf_json_add_number(list, share->name, (double)share->nanoseconds / 1e9);
    }
}

/* What the framework takes. Of what its allocator reserves it gives back what stands empty before a device runs out. */
static void add_framework_memory(cJSON *object, const MtfMachine *machine,
                                 const MtfProgram *program) {
    const MtfSoftware *software = machine->software;
    MtfFrameworkMemory memory = mtf_framework_memory(program, software);
    double needed = memory.given + software->kept.context_bytes;
    memory.device = fmin(memory.device, fmax((double)machine->memory_bytes, needed));
    mtf_framework_memory_add(object, &memory);
}

/* What launching a step's kernels takes a host as slow as one that was seen; 0 where none was. */
static double slow_host_seconds(const MtfPricer *pricer, const MtfProgram *program) {
    const MtfSoftware *software = pricer->machine->software;
    double launches = 0;
    if (software == NULL || software->slow_host_seconds <= 0)
        return 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        if (mtf_program_instruction(program, i)->kind == MTF_INSTRUCTION_KERNEL)
            launches +=
                mtf_program_times(program, i) * (double)mtf_price_host(pricer, program, i) / 1e9;
    return launches * software->slow_host_seconds / fmax(software->host_seconds, 1e-9);
}

/* The error of runs that were judged, and how long the step is where the host holds it up. */
static cJSON *doubt_of(const MtfPricer *pricer, const MtfProgram *program, double step) {
    cJSON *doubt = mtf_doubt_to_json(pricer->machine, mtf_judged_kind(program->graph));
    double slow = slow_host_seconds(pricer, program);
    if (doubt == NULL || slow <= step)
        return doubt;
    g_autofree char *each = mtf_seconds_format(pricer->machine->software->slow_host_seconds);
    g_autofree char *all = mtf_seconds_format(slow);
    g_autofree char *text = g_strdup_printf("%s; a host that takes %s a kernel, as one did, makes "
                                            "a step of %s",
                                            mtf_json_text_of(doubt, "text"), each, all);
    mtf_json_add_number(doubt, "slow_host_seconds", slow);
    cJSON_ReplaceItemInObject(doubt, "text", cJSON_CreateString(text));
    return doubt;
}

void mtf_summary_add(cJSON *predicted, const MtfPricer *pricer, const MtfProgram *program,
                     int64_t memory_limit) {
    MtfParallelism parallelism = mtf_parallelism(program->graph, program->layout);
    g_autofree char *words = mtf_parallelism_format(program->graph, program->layout);
    double peak = mtf_json_number_of(predicted, "peak_memory_bytes", 0);
    cJSON_AddStringToObject(predicted, "parallelism", words);
    cJSON_AddItemToObject(predicted, "degrees", mtf_parallelism_to_json(&parallelism));
    add_speed(predicted, pricer, program);
    mtf_json_add_integer(predicted, "memory_limit", memory_limit);
    mtf_json_add_number(predicted, "memory_share",
                        memory_limit > 0 ? peak / (double)memory_limit : 0);
    double on_host = mtf_json_number_of(predicted, "host_memory_bytes", 0);
    double host = (double)pricer->machine->host_memory_bytes;
    bool fits_host = host <= 0 || on_host <= host;
    if (pricer->machine->software != NULL)
        add_framework_memory(predicted, pricer->machine, program);
    double given = mtf_json_number_of(predicted, "given_bytes", 0);
    cJSON_AddBoolToObject(predicted, "fits",
                          fmax(peak, given) <= (double)memory_limit && fits_host);
    if (on_host > 0 && host > 0)
        mtf_json_add_number(predicted, "host_memory_limit", host);
    add_shares(predicted, pricer, program);
    cJSON *unaligned = mtf_unaligned_products(pricer, program);
    if (unaligned != NULL)
        cJSON_AddItemToObject(predicted, "unaligned", unaligned);
    double step = mtf_json_number_of(predicted, "step_seconds", 0);
    cJSON *doubt = doubt_of(pricer, program, step);
    if (doubt != NULL)
        cJSON_AddItemToObject(predicted, "doubt", doubt);
}

/* ---- Words ------------------------------------------------------------------------------------- */

static void append_speed(GString *text, const cJSON *predicted) {
    g_autofree char *step = mtf_seconds_format(mtf_json_number_of(predicted, "step_seconds", 0));
    g_autofree char *rate =
        mtf_count_format(mtf_json_number_of(predicted, "flops_per_second_per_device", 0));
    g_autofree char *peak =
        mtf_count_format(mtf_json_number_of(predicted, "peak_flops_per_second", 0));
    g_autofree char *items = mtf_count_format(mtf_json_number_of(predicted, "items_per_second", 0));
    g_string_append_printf(text, "speed          %s a step", step);
    if (mtf_json_number_of(predicted, "items_per_second", 0) > 0)
        g_string_append_printf(text, ", %s %s/s", g_strchomp(items),
                               mtf_json_text_of(predicted, "items"));
    const char *type = mtf_json_text_of(predicted, "peak_precision"); /* of older plans none */
    g_string_append_printf(text, ", MFU %.3g %% (%sFLOP/s a device, peak %sFLOP/s in %s)\n",
                           100 * mtf_json_number_of(predicted, "mfu", 0), rate, peak,
                           *type != '\0' ? type : mtf_json_text_of(predicted, "precision"));
}

/* Why the software could not run the plan, whatever programs of our own need. */
static void append_what_is_given(GString *text, const cJSON *predicted) {
    double bytes = mtf_json_number_of(predicted, "given_bytes", 0);
    double stands = mtf_json_number_of(predicted, "standing_bytes", 0);
    g_autofree char *given = mtf_bytes_format(bytes);
    g_autofree char *standing = mtf_bytes_format(stands);
    g_autofree char *rest = mtf_bytes_format(bytes - stands);
    g_string_append_printf(text,
                           "; the software needs %s of these: %s of weights, the optimizer's state "
                           "and gradients until it takes them, %s of activations and scratch",
                           given, standing, rest);
}

static void append_memory(GString *text, const cJSON *predicted) {
    double limit_bytes = mtf_json_number_of(predicted, "memory_limit", 0);
    double share = mtf_json_number_of(predicted, "memory_share", 0);
    g_autofree char *needs =
        mtf_bytes_format(mtf_json_number_of(predicted, "peak_memory_bytes", 0));
    g_autofree char *limit = mtf_bytes_format(limit_bytes);
    g_string_append_printf(text, "fits           %s: %s of %s a device (%.3g %%)",
                           cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(predicted, "fits")) ? "yes"
                                                                                             : "NO",
                           needs, limit, 100 * share);
    double device = mtf_json_number_of(predicted, "device_memory_bytes", 0);
    g_autofree char *whole = mtf_bytes_format(device);
    double given = mtf_json_number_of(predicted, "given_bytes", 0);
    g_autofree char *needed = mtf_bytes_format(given);
    if (given > limit_bytes)
        append_what_is_given(text, predicted);
    else if (device > 0)
        g_string_append_printf(text,
                               "; the software needs %s of these, and %s in all with its context "
                               "and what its allocator keeps",
                               needed, whole);
    double host_limit = mtf_json_number_of(predicted, "host_memory_limit", 0);
    g_autofree char *on_host =
        mtf_bytes_format(mtf_json_number_of(predicted, "host_memory_bytes", 0));
    g_autofree char *host = mtf_bytes_format(host_limit);
    if (host_limit > 0)
        g_string_append_printf(text, "; %s of its host's %s", on_host, host);
    g_string_append_c(text, '\n');
}

static void append_bounds(GString *text, const cJSON *predicted) {
    double step = mtf_json_number_of(predicted, "step_seconds", 0);
    const cJSON *shares = cJSON_GetObjectItemCaseSensitive(predicted, "shares"), *share;
    const char *before = "";
    int told = 0;
    g_string_append(text, "bound by       ");
    cJSON_ArrayForEach(share, shares) {
        if (told++ < TOLD_SHARES)
            g_string_append_printf(text, "%s%s %.1f %%", before, share->string,
                                   100 * mtf_json_number_of(shares, share->string, 0) / step);
        before = ", then ";
    }
    g_string_append(text, *before == '\0' ? "nothing\n" : "\n");
}

char *mtf_summary_format(const cJSON *predicted) {
    GString *text = g_string_new(NULL);
    if (*mtf_json_text_of(predicted, "parallelism") != '\0') {
        g_string_append_printf(text, "parallelism    %s\n",
                               mtf_json_text_of(predicted, "parallelism"));
        append_speed(text, predicted);
        append_memory(text, predicted);
        append_bounds(text, predicted);
        g_autofree char *unaligned =
            mtf_unaligned_products_format(cJSON_GetObjectItemCaseSensitive(predicted, "unaligned"));
        if (unaligned != NULL)
            g_string_append_printf(text, "unaligned      %s\n", unaligned);
    }
    return g_string_free(text, FALSE);
}
