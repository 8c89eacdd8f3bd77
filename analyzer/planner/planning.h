// SPDX-License-Identifier: GPL-3.0-or-later
/* What the planning commands share: from what the user names (a graph, a machine) to what is
 * planned with, and from a layout to a plan.
 *
 *     GRAPH --dim batch=512 --precision f64 ──► graph                --machine tpu-v2 ──► machine
 *     graph --microbatches 8 ──► training graph
 *     training graph + layout + machine ──► order ──► plan (predictions, the program's digest)
 */
#ifndef MTF_PLANNING_H
#define MTF_PLANNING_H

#include "cost/price/price.h"
#include "layouts/execution/key_parts.h"
#include "layouts/execution/key_ring.h"
#include "layouts/plan_file/plan.h"

/* The machine used where the user names none. */
#define MTF_STANDARD_MACHINE "cpu-cluster"

typedef struct {
    const char *path;
    const char *const *dims; /* "batch=512", NULL-terminated, or NULL */
    const char *precision;   /* "f32", "f64", "bf16", or NULL: as the graph has it */
    int batch, length;       /* of a published model (model_import.h); 0: not given */
    bool quiet;              /* prints nothing of what was assumed about a published model */
    bool sizes_of_models;    /* as in MtfImport */
    const char *loss;        /* of an ONNX file (onnx_import.h), or NULL */
    const char *const *pads; /* as of mtf_pad, or NULL */
    bool even;               /* its dimensions are split into equal parts alone */
} MtfPlanningGraph;

/* The variant that a step is given. */
typedef struct {
    int microbatches;      /* parts of the batch; 0 and 1: the whole */
    bool own_pass;         /* … as a pass of its own where it is trained (MtfDivision) */
    const char *batch_dim; /* what counts examples; NULL: the first dimension of every input */
    const char *precision; /* as in MtfPlanningGraph: "bf16" makes a step of mixed precision */
    MtfRecompute recompute;
    int recomputed_layers;                  /* with MTF_RECOMPUTE_LAYERS: how many; 0: all */
    const MtfRecompute *recompute_of_stage; /* instead, of a graph cut into stages, from the
                                               first on; borrowed; or NULL */
    MtfOffload offload;
    int offloaded_layers;   /* how many; 0: all */
    int key_parts;          /* of attention's memory (key_parts.h); 0 and 1: the whole */
    int ring;               /* parts of queries and memory (key_ring.h); 0 and 1: the whole */
    bool fuses;             /* priced for a framework that fuses: neighbours are marked
                             (kernel_work/fusable.h) */
    MtfFramework framework; /* … and what else it does with its graph */
} MtfStepVariant;

/* What is kept for the backward pass, in a pipeline by stage `stage` (from 0). */
MtfKept mtf_step_variant_kept(const MtfStepVariant *variant, int stage);

/* Appends what is in parts: ", 4 key parts, rings of 2", or nothing. */
void mtf_step_variant_say_parts(GString *text, const MtfStepVariant *variant);

/* Adds "key_parts" and "ring", each where attention is so. */
void mtf_step_variant_add_parts(cJSON *object, const MtfStepVariant *variant);

/* Adds these, "recompute", and "offload" where something waits with the host, as options write them. */
void mtf_step_variant_add_kept(cJSON *object, const MtfStepVariant *variant);

/* Loads a graph, or a published model as one, in the type of its variables, without what no training
 * step needs (live_graph.h). */
MtfGraph *mtf_planning_graph_load(const MtfPlanningGraph *request, GError **error);

/* Warns on standard error of a graph to be trained that has no optimizer. */
void mtf_planning_warn_untrained(const MtfGraph *graph);

/* The training graph of a graph, differentiated unless it is one already (it has updates). The result has the
 * whole batch, which `division` divides, is in canonical order and free of composites. */
MtfGraph *mtf_planning_training_graph(const MtfGraph *graph, const MtfStepVariant *variant,
                                      MtfDivision *division, GError **error);

/* That division alone, which graphs as written and as trained have alike. */
bool mtf_planning_division(const MtfGraph *graph, const MtfStepVariant *variant,
                           MtfDivision *division, GError **error);

/* That graph as the variant runs it (executed_graph.h), which is what is laid out; the second from the training
 * graph, where that is there. */
MtfGraph *mtf_planning_executed_graph(const MtfGraph *graph, const MtfStepVariant *variant,
                                      GError **error);
MtfGraph *mtf_planning_execute(const MtfGraph *training, const MtfDivision *division,
                               const MtfStepVariant *variant, GError **error);

/* "f64" when some tensor of the graph is float64, else "f32". */
const char *mtf_planning_precision(const MtfGraph *graph);

/* The precision that a graph is planned in: `asked`, or where that is NULL the machine's own, if the
 * graph is to be trained and all its numbers are float32; else NULL, as the graph has it. */
const char *mtf_planning_precision_for(const MtfMachine *machine, const MtfGraph *graph,
                                       const char *asked);

/* That of inference, which needs no loss. */
const char *mtf_planning_inference_precision(const MtfMachine *machine, const MtfGraph *graph,
                                             const char *asked);

/* Prints for people, before anything else, what a plan was priced for: the machine (`named`: by the
 * user) and the plan's precision (`asked` by the user, or NULL). */
void mtf_planning_print_machine(const char *precision, const MtfMachine *machine, bool named,
                                const char *asked);

/* The machine of that name or file, the standard one for NULL, with the software profile of that name
 * or file, the machine's usual one for NULL. */
MtfMachine *mtf_planning_machine(const char *name_or_path, const char *software, GError **error);

/* The same for a graph: where it has no layers of Transformers that read a text, PyTorch is usual on GPUs,
 * since what trains Transformers there knows no other networks. */
MtfMachine *mtf_planning_machine_for(const MtfGraph *graph, const char *name_or_path,
                                     const char *software, GError **error);

/* Fails unless the machine says how fast its devices reach their host's memory, where something is to wait
 * there. */
bool mtf_planning_check_offload(const MtfMachine *machine, MtfOffload offload, GError **error);

/* What plans may take of a device's memory: what its software does not keep for itself (its context
 * and the slack of its allocator). */
int64_t mtf_planning_room(const MtfMachine *machine);

/* The machine that a plan was made for (the standard one where it names none), and a pricer with
 * the plan's mesh on it as its mapping says. `path` names the plan in messages. */
MtfMachine *mtf_planning_plan_machine(const MtfPlan *plan, const char *path, GError **error);
bool mtf_planning_plan_pricer(const MtfPlan *plan, const char *path, const MtfMachine *machine,
                              MtfPricer *pricer, GError **error);

/* Makes a plan of a settled layout, which is lowered to `program`: begins it without predictions, predicts,
 * digests. What a device may hold is `search`'s "memory_limit", else the machine's memory. Takes over graph,
 * layout and `search`. */
MtfPlan *mtf_planning_plan_begin(MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                                 cJSON *search);
void mtf_planning_plan_predict(MtfPlan *plan, const MtfProgram *program, const MtfPricer *pricer);
MtfPlan *mtf_planning_plan_new(MtfGraph *graph, MtfLayout *layout, const MtfProgram *program,
                               const MtfPricer *pricer, cJSON *search);

/* Prints the program of a plan after the pass of that name, on standard error where standard output
 * is JSON's. Nothing for NULL. Fails where there is no such pass (layouts/program/passes.h). */
bool mtf_planning_dump(const MtfPlan *plan, const char *pass, bool json, GError **error);

#endif
