// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_watches.h"

/* Each kernel's time is two looks at the processor's clock, a quarter of a microsecond each, which thousands of small
 * kernels a step feel: beyond the first steps only some are watched. */
#define WATCHED_AT_FIRST 8
#define WATCHED_EACH 4

struct MtfStageWatches {
    MtfStageRun *run;
    MPI_Comm control;
    int64_t steps;           /* begun so far */
    MtfKernelTimes **times;  /* one a chunk */
    MtfGradientNorm **norms; /* one a chunk; NULL: it cannot be known */
    bool looks_for_norm;     /* in this step */
};

/* Where time goes; beside what the plan's machine says, if the plan names one that holds the mesh. */
static MtfKernelTimes *new_times(const MtfStageChunk *chunk) {
    MtfKernelTimes *times = mtf_kernel_times_new(chunk->program);
    MtfJson where = { .file = "plan", .node = chunk->plan->machine, .index = -1 };
    g_autoptr(MtfMachine) machine =
        chunk->plan->machine != NULL ? mtf_machine_from_json(&where, NULL) : NULL;
    MtfPricer pricer;
    if (machine != NULL && mtf_pricer_init(&pricer, machine, &chunk->program->layout->mesh, NULL))
        mtf_kernel_times_predict(times, chunk->program, &pricer);
    return times;
}

static void free_norms(MtfStageWatches *watches) {
    for (int c = 0; watches->norms != NULL && c < watches->run->n_chunks; c++)
        mtf_gradient_norm_free(watches->norms[c]);
    g_clear_pointer(&watches->norms, g_free);
}

MtfStageWatches *mtf_stage_watches_new(MtfStageRun *run, MPI_Comm control) {
    MtfStageWatches *watches = g_new0(MtfStageWatches, 1);
    *watches = (MtfStageWatches){ .run = run, .control = control };
    watches->times = g_new(MtfKernelTimes *, run->n_chunks);
    watches->norms = g_new(MtfGradientNorm *, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        watches->times[c] = new_times(chunk);
        watches->norms[c] = mtf_gradient_norm_new(run->workers[c], run->pipeline->graph);
    }
    if (!mtf_gradient_norm_agree(watches->norms, run->n_chunks, control))
        free_norms(watches);
    return watches;
}

void mtf_stage_watches_free(MtfStageWatches *watches) {
    if (watches == NULL)
        return;
    free_norms(watches);
    for (int c = 0; c < watches->run->n_chunks; c++)
        mtf_kernel_times_free(watches->times[c]);
    g_free(watches->times);
    g_free(watches);
}

void mtf_stage_watches_begin_step(MtfStageWatches *watches, bool norm) {
    bool watched = watches->steps < WATCHED_AT_FIRST || watches->steps % WATCHED_EACH == 0;
    watches->steps++;
    watches->looks_for_norm = norm && watches->norms != NULL;
    for (int c = 0; c < watches->run->n_chunks; c++) {
        MtfExecutor *executor = &watches->run->chunks[c].executor;
        executor->norm = watches->looks_for_norm ? watches->norms[c] : NULL;
        executor->times = watched ? watches->times[c] : NULL;
        if (watched)
            mtf_kernel_times_begin_step(watches->times[c]);
    }
}

double mtf_stage_watches_end_step(MtfStageWatches *watches) {
    int n = watches->run->n_chunks;
    for (int c = 0; c < n; c++)
        if (watches->run->chunks[c].executor.times != NULL)
            mtf_kernel_times_end_step(watches->times[c]);
    return watches->looks_for_norm ? mtf_gradient_norm_take(watches->norms, n, watches->control)
                                   : 0;
}

/* "rank 4: stages 2 6"; free with g_free. */
static char *name_domain(const MtfPipelinePlan *pipeline, int domain) {
    GString *name = g_string_new(NULL);
    g_string_printf(name, "rank %d: stage", mtf_pipeline_first_device(pipeline, domain));
    for (int stage = 0; stage < pipeline->order->stages; stage++)
        if (pipeline->order->rank_of_stage[stage] == domain)
            g_string_append_printf(name, " %d", stage);
    return g_string_free(name, FALSE);
}

/* What each domain takes of the whole. */
static void append_domains(GString *text, const MtfStageWatches *watches, int own,
                           const MtfKernelTimes *whole) {
    const MtfStageRun *run = watches->run;
    for (int d = 0; d < run->pipeline->order->ranks; d++) {
        g_autofree char *name = name_domain(run->pipeline, d);
        g_autoptr(MtfKernelTimes) part =
            mtf_kernel_times_gather(watches->times, d == run->number ? own : 0, watches->control);
        mtf_kernel_times_append_part(text, name, part, whole);
    }
}

char *mtf_stage_watches_format(const MtfStageWatches *watches) {
    const MtfStageRun *run = watches->run;
    int own = run->rank == 0 ? run->n_chunks : 0;
    g_autoptr(MtfKernelTimes) whole =
        mtf_kernel_times_gather(watches->times, own, watches->control);
    g_autofree char *table = mtf_kernel_times_format(whole);
    GString *text = g_string_new(table);
    if (!mtf_pipeline_is_whole(run->pipeline))
        append_domains(text, watches, own, whole);
    return g_string_free(text, FALSE);
}

double mtf_stage_watches_products(const MtfStageWatches *watches) {
    double flop = 0;
    for (int c = 0; c < watches->run->n_chunks; c++) {
        const MtfProgram *program = watches->run->chunks[c].program;
        for (int i = 0; i < mtf_program_length(program); i++)
            flop += 2 * mtf_program_instruction(program, i)->multiply_adds *
                    mtf_program_times(program, i);
    }
    return flop;
}
