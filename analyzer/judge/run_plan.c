// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/run_plan.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/judge/run_graph.h"
#include "analyzer/planner/pipeline_planning.h"
#include "cost/summary/pipeline_memory.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Whether only attention is run again, of all that selective recomputation may redo. */
static bool redoes_attention_alone(const MtfSoftware *software) {
    for (int part = 0; part < MTF_LAYER_PARTS; part++)
        if (part != MTF_PART_ATTENTION && software->redone[MTF_REDO_SELECTIVE][part] > 0)
            return false;
    return true;
}

/* Layers are written out one by one, and a minute is to do for a row. */
#define LAYERS_MOST 1000

static bool check_sizes(const MtfTrainingRun *run, GError **error) {
    if (run->model.layers > LAYERS_MOST)
        return mtf_input_error(error, "plans of runs have at most %d layers", LAYERS_MOST);
    if (run->tp * run->dp > MTF_MAX_MESH_SIZE)
        return mtf_input_error(error, "a mesh has at most %" PRId64 " devices", MTF_MAX_MESH_SIZE);
    return true;
}

static bool check(const MtfTrainingRun *run, const MtfSoftware *software, GError **error) {
    if (run->cp > 1)
        return mtf_input_error(error, "plans here do not split sequences (cp)");
    if (run->narrow)
        return mtf_input_error(error, "plans have no products of 8 bits");
    if (run->slices > 1)
        return mtf_input_error(error, "plans lie in one slice");
    if (run->sharding == MTF_SHARD_GRADIENTS)
        return mtf_input_error(error, "no layout made by hand is ZeRO-2");
    if (run->redo == MTF_REDO_SELECTIVE && !redoes_attention_alone(software))
        return mtf_input_error(error, "plans redo whole layers, or attention alone");
    if (run->sharding == MTF_SHARD_ALL && software->part_launches > 0)
        return mtf_input_error(error, "plans launch nothing for each rank's part of a weight");
    return check_sizes(run, error);
}

static const char *schedule_of(const MtfTrainingRun *run) {
    static const char *const names[] = { [MTF_ORDER_1F1B] = "1f1b",
                                         [MTF_ORDER_ZERO_BUBBLE_1P] = "zb-h1",
                                         [MTF_ORDER_ZERO_BUBBLE_2P] = "zb-h2" };
    return run->order == MTF_ORDER_1F1B && run->vp > 1 ? "interleaved" : names[run->order];
}

/* "data" and "model", where there are several of either. */
static bool mesh_of(const MtfTrainingRun *run, MtfMesh *mesh, GError **error) {
    g_autofree char *text = run->tp == 1
                                ? g_strdup_printf("data:%d", (int)run->dp)
                                : g_strdup_printf("data:%d;model:%d", (int)run->dp, (int)run->tp);
    const char *axes = run->dp == 1 && run->tp > 1 ? strchr(text, ';') + 1 : text;
    return mtf_mesh_parse(axes, 0, mesh, error);
}

/* Data parallelism or Megatron's split, and what is in pieces (standard_layouts.h). */
static int style_of(const MtfTrainingRun *run, const MtfSoftware *software) {
    bool sequence = run->sequence_parallel || software->sequence_split;
    MtfStandardSharding sharding = run->sharding == MTF_SHARD_NONE  ? MTF_STANDARD_REPLICATED
                                   : run->sharding == MTF_SHARD_ALL ? MTF_STANDARD_ZERO_3
                                                                    : MTF_STANDARD_ZERO_1;
    if (run->tp == 1)
        return mtf_standard_style(MTF_STANDARD_DATA, sharding, 0);
    return mtf_standard_style(sequence ? MTF_STANDARD_SEQUENCE : MTF_STANDARD_TENSOR, sharding,
                              run->dp > 1 ? 2 : 1);
}

/* The plan of the run's graph, each stage on that mesh in that style. */
static bool price(const MtfTrainingRun *run, const MtfMachine *machine, const MtfGraph *graph,
                  const MtfMesh *mesh, MtfRunPlan *predicted, GError **error) {
    int style = style_of(run, machine->software);
    bool full = run->redo == MTF_REDO_FULL;
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_vals(meshes, mesh, 1);
    MtfPipelineRequest request = {
        .written = graph,
        .stages = (int)run->pp,
        .chunks = (int)run->vp,
        .schedule = schedule_of(run),
        .form = { .microbatches = (int)mtf_run_micro_batches(run),
                  .precision = "bf16",
                  .recompute = full ? MTF_RECOMPUTE_LAYERS : MTF_RECOMPUTE_NONE,
                  .fuses = true,
                  .framework = mtf_software_framework(machine->software) },
        .meshes = meshes,
        .style = &style,
        .prices_only = true,
        .search = { .machine = machine, .memory_limit = INT64_MAX },
    };
    g_autoptr(MtfPipelinePlan) plan = mtf_pipeline_search(&request, error);
    if (plan == NULL)
        return false;
    *predicted = (MtfRunPlan){
        .seconds = mtf_json_number_of(plan->predicted, "step_seconds", NAN),
        .memory = run->pp > 1 ? mtf_pipeline_memory(plan, machine->software)
                              : mtf_framework_memory_of(mtf_pipeline_stage(plan, 0)->predicted),
    };
    return true;
}

bool mtf_run_plan(const MtfTrainingRun *run, const MtfMachine *machine, MtfRunPlan *predicted,
                  GError **error) {
    MtfMesh mesh;
    if (!check(run, machine->software, error) || !mesh_of(run, &mesh, error))
        return false;
    g_autoptr(MtfGraph) graph = mtf_run_graph(run, error);
    return graph != NULL && price(run, machine, graph, &mesh, predicted, error);
}
