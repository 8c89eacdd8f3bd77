// SPDX-License-Identifier: GPL-3.0-or-later
/* plan.json, what the search writes and everything else reads: the training graph, mesh, layout, execution,
 * predictions and proof (format in layouts/FORMATS.md). Parts that layouts/ does not know (machine,
 * mapping, predictions, search) travel as JSON trees. The digest of the lowered program is what
 * keeps writer and reader honest: a plan that lowers to anything else is refused. */
#ifndef MTF_PLAN_H
#define MTF_PLAN_H

#include "layouts/base/json_reader.h"
#include "layouts/placement/layout.h"
#include "layouts/program/program.h"

#include <cjson/cJSON.h>

/* Owns all its parts. Trees are NULL where the file has none. */
typedef struct {
    MtfGraph *training; /* what the file has; NULL: graph */
    MtfGraph *graph;    /* the executed graph that it makes (executed_graph.h), in canonical order
                           (mtf_graph_canonicalize) */
    MtfLayout *layout;  /* with the mesh */
    char *precision;    /* "f32", "f64" or "bf16" */
    cJSON *machine;     /* the machine file's object, with the software profile as "software" unless
                           the plan is priced as meshtf-run executes it */
    cJSON *mapping;     /* mesh axes onto the machine's axes */
    cJSON *predicted;   /* {"step_seconds", …} */
    cJSON *search;      /* {"cost", "bound", "gap", "method", …} */
    char *program_sha256;
    char *graph_text,
        *layout_text; /* these two as the file has them, where they were printed ahead; or NULL */
} MtfPlan;

/* The graph of a plan: without composites, and ids are int32. */
MtfGraph *mtf_plan_graph_read(const MtfJson *where, GError **error);

/* Reads a plan. The graph holds no composites, and the layout is legal. */
MtfPlan *mtf_plan_load(const char *path, GError **error);
MtfPlan *mtf_plan_from_json(const MtfJson *root, GError **error);

/* The same from `length` bytes of `text`; `name` stands for the file in messages. */
MtfPlan *mtf_plan_parse(const char *name, const char *text, gsize length, GError **error);

/* The layout of a plan, or of a file that has nothing but its `mesh` and `layout`, for a graph whose tensors and operations
 * have these names; what it does not name is replicated, and of a graph that was executed with `kept`, what that
 * added is laid out as its originals. Rules that it was made from are no longer named. */
MtfLayout *mtf_plan_layout_load(const char *path, const MtfGraph *graph, const MtfKept *kept,
                                GError **error);

/* The plan's text, always the same for the same plan; free with g_free. */
char *mtf_plan_print(const MtfPlan *plan);

/* Print the longest parts ahead, the training graph and the layout, which may not be changed from then on: whoever
 * has several threads prints both at once. mtf_plan_print then takes them as they are. */
void mtf_plan_print_graph(MtfPlan *plan);
void mtf_plan_print_layout(MtfPlan *plan);

/* What the first of them prints, where there is no plan yet; free with g_free. */
char *mtf_plan_graph_text(const MtfGraph *training);

/* Writes the plan whole or not at all; fails when the graph is not in canonical order, since the
 * digest names tensors by number. */
bool mtf_plan_save(const MtfPlan *plan, const char *path, GError **error);

/* The plan of one pipeline stage. Its object in the file holds everything but the graph, which is copied, and
 * the part of its execution that the pipeline knows: what is kept, and what the schedule asks of it. */
MtfPlan *mtf_plan_read_stage(const MtfJson *stage, const MtfGraph *graph,
                             const MtfExecution *execution, GError **error);

/* Parts of a plan's file, for pipelines (pipeline_plan.h): what of the forward pass is kept, what is divided,
 * read and written, and everything behind the graph. */
bool mtf_plan_read_kept(const MtfJson *root, MtfKept *kept, GError **error);
bool mtf_plan_read_division(const MtfJson *object, const MtfGraph *graph, MtfDivision *division,
                            GError **error);
void mtf_plan_add_division(cJSON *object, const MtfGraph *graph, const MtfDivision *division);
void mtf_plan_add_body(cJSON *root, const MtfPlan *plan, bool of_stage);

/* Adds "software": the name of the profile that the plan was priced for (its machine holds all of it). */
void mtf_plan_add_software(cJSON *root, const MtfPlan *plan);

/* What the plan's backward pass recomputes, as mtf_recompute_format has it; free with g_free. */
char *mtf_plan_recomputation(const MtfPlan *plan);

/* How the plan's step is done, for people: "in one piece, 96 operations recomputed (recompute layers:3)";
 * free with g_free. */
char *mtf_plan_step_format(const MtfPlan *plan);

void mtf_plan_free(MtfPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPlan, mtf_plan_free)

/* Lowers the plan again; fails when the digest differs from the one the plan was written with. The
 * plan must outlive the program. */
MtfProgram *mtf_plan_lower(const MtfPlan *plan, GError **error);

#endif
