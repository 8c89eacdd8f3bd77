// SPDX-License-Identifier: GPL-3.0-or-later
/* ONNX's multi-device annotations (IR 11, onnx/docs/proposals/0007) as the text form of a ModelProto:
 * the forward pass with a configuration of as many devices as the mesh has, and for every node a
 * sharding of each tensor that it reads and makes:
 *
 *     sharding_spec { tensor_name: "h" device: -1 device: -2
 *                     index_to_device_group_map { key: -1 value: 0 value: 2 } …
 *                     sharded_dim { axis: 1 simple_sharding { dim_value: 2048 num_shards: 2 } } }
 *
 * Parts are listed with the first sharded dimension outermost. A part that several devices hold names
 * a group of them by a negative number. Tensors kept as partial sums have no such form: a comment
 * names them, and ONNX infers theirs. Operations are of the domain "meshtf". */
#include "layouts/graph/operation_table.h"
#include "reports/exports/export_forms.h"

#include <inttypes.h>

/* The part of a tensor that a rank holds, counted with the first sharded dimension outermost. */
static int64_t part_of(const MtfStepFacts *facts, int tensor, const int64_t *parts, int rank) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfLayout *layout = facts->plan->layout;
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    int64_t part = 0;
    for (int i = 0; i < shape->rank; i++) {
        int64_t size = mtf_graph_size(graph, shape->dims[i]);
        MtfRange range = mtf_placement_range(&layout->mesh, &layout->tensors[tensor],
                                             shape->dims[i], size, rank);
        part = part * parts[i] + range.begin / (size / parts[i]);
    }
    return part;
}

/* Each part's device, or the group of those that hold it. */
static void append_devices(GString *text, const MtfStepFacts *facts, int tensor,
                           const int64_t *parts, int64_t count) {
    int size = mtf_mesh_size(&facts->plan->layout->mesh);
    bool alone = count == size;
    g_autofree int *first = g_new(int, count);
    g_autoptr(GString) groups = g_string_new(NULL);
    for (int64_t part = 0; part < count; part++) {
        g_autoptr(GString) holders = g_string_new(NULL);
        for (int rank = size - 1; rank >= 0; rank--) {
            if (part_of(facts, tensor, parts, rank) != part)
                continue;
            int64_t place = mtf_mapping_place(&facts->pricer.map.mapping, rank);
            g_autofree char *value = g_strdup_printf(" value: %" PRId64, place);
            g_string_prepend(holders, value);
            first[part] = (int)place;
        }
        g_string_append_printf(text, " device: %" PRId64, alone ? first[part] : -part - 1);
        if (!alone)
            g_string_append_printf(groups, " index_to_device_group_map { key: %" PRId64 "%s }",
                                   -part - 1, holders->str);
    }
    g_string_append(text, groups->str);
}

static void append_spec(GString *text, const MtfStepFacts *facts, int tensor) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfLayout *layout = facts->plan->layout;
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    g_autofree char *name = mtf_export_quote(t->name);
    if (mtf_placement_partial_axes(&layout->tensors[tensor]) != 0) {
        g_string_append_printf(text, "      # %s is kept as partial sums\n", name);
        return;
    }
    int64_t parts[MTF_MAX_RANK], count = 1;
    mtf_placement_parts(&layout->mesh, &t->shape, &layout->tensors[tensor], parts);
    for (int i = 0; i < t->shape.rank; i++)
        count *= parts[i];
    g_string_append_printf(text, "      sharding_spec { tensor_name: %s", name);
    append_devices(text, facts, tensor, parts, count);
    for (int i = 0; i < t->shape.rank; i++)
        if (parts[i] > 1)
            g_string_append_printf(text,
                                   " sharded_dim { axis: %d simple_sharding { dim_value: %" PRId64
                                   " num_shards: %" PRId64 " } }",
                                   i, mtf_graph_size(graph, t->shape.dims[i]), parts[i]);
    g_string_append(text, " }\n");
}

/* Number k of the operation's inputs and, behind them, its outputs. */
static int operand_of(const MtfOperation *op, int k) {
    return k < op->n_inputs ? op->inputs[k] : op->outputs[k - op->n_inputs];
}

static void append_node(GString *text, const MtfStepFacts *facts, int operation) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    g_autofree char *name = mtf_export_quote(op->name);
    g_string_append_printf(text, "  node { name: %s op_type: \"%s\" domain: \"meshtf\"\n", name,
                           mtf_operation_row(op->kind)->name);
    for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
        const char *role = k < op->n_inputs ? "input" : "output";
        g_autofree char *operand =
            mtf_export_quote(mtf_graph_tensor(graph, operand_of(op, k))->name);
        g_string_append_printf(text, "    %s: %s\n", role, operand);
    }
    g_string_append(text, "    device_configurations { configuration_id: \"mesh\"\n");
    if (op->stage > 0)
        g_string_append_printf(text, "      pipeline_stage: %d\n", op->stage - 1);
    for (int k = 0; k < op->n_inputs + op->n_outputs; k++)
        append_spec(text, facts, operand_of(op, k));
    g_string_append(text, "    } }\n");
}

char *mtf_export_onnx_text(const MtfStepFacts *facts, GError **error) {
    const MtfGraph *graph = facts->plan->graph;
    if (!mtf_export_check_even(facts, "ONNX", error))
        return NULL;
    g_autofree char *name = mtf_export_quote(graph->name);
    int devices = mtf_mesh_size(&facts->plan->layout->mesh);
    GString *text = g_string_new("ir_version: 11\nproducer_name: \"meshtf-plan\"\n"
                                 "opset_import { domain: \"meshtf\" version: 1 }\n");
    g_string_append_printf(text, "configuration { name: \"mesh\" num_devices: %d }\n", devices);
    g_string_append_printf(text, "graph { name: %s\n", name);
    for (int o = 0; o < (int)graph->operations->len; o++)
        if (mtf_graph_operation(graph, o)->phase == MTF_PHASE_FORWARD)
            append_node(text, facts, o);
    g_string_append(text, "}\n");
    return g_string_free(text, FALSE);
}
