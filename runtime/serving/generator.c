// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/generator.h"

#include "layouts/inference/generation_graph.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

#define LENGTHS 4
#define SHORT_LENGTH 16
#define MIDDLE_LENGTH 128
#define LONGEST_LENGTH 1024

/* What runs a stage of the model. */
typedef struct {
    const MtfGraph *graph;              /* of the reader's pipeline */
    int tokens, position, last, scores; /* tensors of the graph; -1: it has none */
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
    MtfCommunicators *communicators;
    MtfMessageExchange *messages;
    MtfTraffic *uncounted;
    MtfStageTransfers *transfers;
    MtfExecutor executor;
} Part;

/* What runs the step of texts that bring `length` tokens each at once. */
typedef struct {
    int64_t length; /* tokens a slot */
    MtfPipelinePlan *pipeline;
    Part *parts; /* [n_parts] */
} Reader;

struct MtfGenerator {
    MPI_Comm control, domain, transfers;
    int rank, n_ranks;       /* in the domain; of all */
    int n_parts;             /* stages of this rank's domain */
    int *stages;             /* which */
    MtfArenaMemory *memory;  /* of a part of all readers */
    Reader readers[LENGTHS]; /* of rising length, the first of 1 */
    int n_readers;
    int batch; /* dimension */
    int64_t slots, context, vocabulary;
    int64_t *filled;    /* by slot */
    int64_t *remaining; /* of what is being fed */
    float *rows;        /* scores by slot */
};

/* ---- Making ---------------------------------------------------------------------------------- */

static void lower_part(Part *part, const MtfPlan *plan) {
    part->graph = plan->graph;
    part->tokens = mtf_generation_input(plan->graph, MTF_FEED_TOKENS);
    part->position = mtf_generation_input(plan->graph, MTF_FEED_POSITION);
    part->last = mtf_generation_input(plan->graph, MTF_FEED_LAST);
    part->scores = mtf_generation_scores(plan->graph);
    part->program = mtf_lower(plan->graph, plan->layout);
    part->arena = mtf_arena_pack(part->program);
}

static void add_reader(MtfGenerator *g, const MtfGeneratorSettings *s, int64_t length) {
    Reader *reader = &g->readers[g->n_readers];
    if (length > g->context || (g->n_readers > 0 && length <= reader[-1].length))
        return;
    reader->length = length;
    reader->pipeline = mtf_generation_pipeline_at(s->pipeline, length);
    reader->parts = g_new0(Part, g->n_parts);
    for (int p = 0; p < g->n_parts; p++)
        lower_part(&reader->parts[p], mtf_pipeline_stage(reader->pipeline, g->stages[p]));
    g->n_readers++;
}

static void add_readers(MtfGenerator *g, const MtfGeneratorSettings *s) {
    add_reader(g, s, 1);
    add_reader(g, s, MIN(SHORT_LENGTH, g->context));
    if (s->longest == 0 || s->longest > MIDDLE_LENGTH)
        add_reader(g, s, MIN(MIDDLE_LENGTH, g->context));
    if (s->longest > SHORT_LENGTH)
        add_reader(g, s, MIN(s->longest, LONGEST_LENGTH));
}

/* Variables stand at the bottom of every arena of a part, in their order. */
static void check_variables(const MtfGenerator *g, int p) {
    const Part *first = &g->readers[0].parts[p];
    for (int i = 1; i < g->n_readers; i++)
        for (int t = 0; t < (int)first->graph->tensors->len; t++) {
            const Part *part = &g->readers[i].parts[p];
            int a = first->program->tensor_buffers[t];
            int b = part->program->tensor_buffers[t];
            if (mtf_graph_tensor(first->graph, t)->source == MTF_SOURCE_VARIABLE)
                g_assert(first->arena->offsets[a] == part->arena->offsets[b]);
        }
}

static bool map_memory(MtfGenerator *g, int p, GError **error) {
    int64_t bytes = 0;
    for (int i = 0; i < g->n_readers; i++)
        bytes = MAX(bytes, g->readers[i].parts[p].arena->bytes);
    return mtf_arena_memory_init(&g->memory[p], bytes, false, error);
}

/* Exchanges go by MPI: a window is of one program's arena. */
static bool open_part(MtfGenerator *g, const MtfGeneratorSettings *s, const Reader *reader, int p,
                      GError **error) {
    Part *part = &reader->parts[p];
    MtfStagePlace place = { .pipeline = reader->pipeline,
                            .program = part->program,
                            .stage = g->stages[p],
                            .rank = g->rank,
                            .first_update = mtf_executor_first_update(part->program) };
    part->worker =
        mtf_worker_new_at(part->program, part->arena, g->rank, s->seed, g->memory[p].base, error);
    if (part->worker == NULL)
        return false;
    part->communicators = mtf_communicators_new(g->domain, part->program);
    part->messages =
        mtf_message_exchange_new(part->communicators, part->worker, MTF_EXCHANGES_UNDER_WAY + 1);
    part->uncounted = mtf_traffic_new(part->program);
    part->transfers = mtf_stage_transfers_new(g->transfers, &place);
    part->executor = (MtfExecutor){ .worker = part->worker,
                                    .at_once = s->no_overlap,
                                    .counted = part->uncounted,
                                    .transport = { .communicators = part->communicators,
                                                   .messages = part->messages,
                                                   .max_message = MTF_MAX_MESSAGE } };
    return true;
}

/* All readers of one part. */
static bool open_parts(MtfGenerator *g, const MtfGeneratorSettings *s, int p, GError **error) {
    check_variables(g, p);
    if (!map_memory(g, p, error))
        return false;
    for (int i = 0; i < g->n_readers; i++)
        if (!open_part(g, s, &g->readers[i], p, error))
            return false;
    return true;
}

static void find_stages(MtfGenerator *g, const MtfGeneratorSettings *s) {
    const MtfPipelineOrder *order = s->pipeline->order;
    g->stages = g_new(int, order->stages);
    for (int stage = 0; stage < order->stages; stage++)
        if (order->rank_of_stage[stage] == s->number)
            g->stages[g->n_parts++] = stage;
    g->memory = g_new0(MtfArenaMemory, g->n_parts);
    for (int p = 0; p < g->n_parts; p++)
        g->memory[p].file = -1;
}

static void find_sizes(MtfGenerator *g, const MtfGraph *graph) {
    const MtfTensor *last = mtf_graph_tensor(graph, mtf_generation_input(graph, MTF_FEED_LAST));
    const MtfTensor *scores = mtf_graph_tensor(graph, mtf_generation_scores(graph));
    int context = mtf_generation_context(graph);
    g->batch = last->shape.dims[0];
    g->slots = mtf_graph_size(graph, g->batch);
    g->vocabulary = mtf_graph_elements(graph, &scores->shape) / g->slots;
    g->context = context >= 0 ? mtf_graph_size(graph, context) : INT32_MAX;
}

MtfGenerator *mtf_generator_new(const MtfGeneratorSettings *settings, GError **error) {
    g_autoptr(MtfGenerator) g = g_new0(MtfGenerator, 1);
    g->control = settings->control;
    g->domain = settings->domain;
    g->transfers = settings->transfers;
    mtf_mpi_require(MPI_Comm_rank(g->domain, &g->rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(g->control, &g->n_ranks), "MPI_Comm_size");
    find_sizes(g, settings->pipeline->graph);
    find_stages(g, settings);
    g->filled = g_new0(int64_t, g->slots);
    g->remaining = g_new0(int64_t, g->slots);
    g->rows = g_new0(float, g->slots * g->vocabulary);
    add_readers(g, settings);
    for (int p = 0; p < g->n_parts; p++)
        if (!open_parts(g, settings, p, error))
            return NULL;
    return g_steal_pointer(&g);
}

static void clear_part(Part *part) {
    mtf_stage_transfers_free(part->transfers);
    mtf_message_exchange_free(part->messages);
    mtf_communicators_free(part->communicators);
    mtf_traffic_free(part->uncounted);
    mtf_worker_free(part->worker);
    mtf_arena_free(part->arena);
    mtf_program_free(part->program);
}

static void clear_reader(Reader *reader, int n_parts) {
    for (int p = 0; p < n_parts; p++)
        clear_part(&reader->parts[p]);
    g_free(reader->parts);
    mtf_pipeline_plan_free(reader->pipeline);
}

void mtf_generator_free(MtfGenerator *g) {
    if (g == NULL)
        return;
    for (int i = 0; i < g->n_readers; i++)
        clear_reader(&g->readers[i], g->n_parts);
    for (int p = 0; p < g->n_parts; p++)
        mtf_arena_memory_clear(&g->memory[p]);
    g_free(g->memory);
    g_free(g->stages);
    g_free(g->filled);
    g_free(g->remaining);
    g_free(g->rows);
    g_free(g);
}

/* ---- Running a part -------------------------------------------------------------------------- */

static void run_part(Part *part, MtfStagePart first, MtfStagePart last) {
    MtfStagePass pass = { .transfers = part->transfers, .executor = &part->executor };
    MtfRange all = { 0, first == MTF_PART_BEGIN ? 0 : mtf_program_length(part->program) };
    mtf_stage_transfers_wait_all(part->transfers);
    mtf_stage_pass_run(&pass, first, last, &all);
}

/* ---- Variables ------------------------------------------------------------------------------- */

static void take_variable(const MtfOperand *to, const MtfOperand *from) {
    int64_t n = mtf_slice_elements(to);
    g_assert(n == mtf_slice_elements(from));
    if (to->dtype == from->dtype)
        memcpy(to->data, from->data, (size_t)(n * mtf_dtype_bytes(to->dtype)));
    else if (to->dtype == MTF_BF16 && from->dtype == MTF_F32)
        mtf_bf16_round(to->data, from->data, n);
    else
        for (int64_t i = 0; i < n; i++)
            mtf_slice_set(to, i, mtf_slice_get(from, i));
}

static void take_part(Part *part, const MtfWorker *from) {
    for (int t = 0; t < (int)part->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(part->graph, t);
        int old = mtf_graph_find_tensor(from->program->graph, tensor->name);
        if (tensor->source == MTF_SOURCE_VARIABLE && old >= 0)
            take_variable(mtf_worker_tensor(part->worker, t), mtf_worker_tensor(from, old));
    }
}

/* Variables that stages share travel once, before all tokens. */
void mtf_generator_take_variables(MtfGenerator *g, const MtfWorker *const *from) {
    for (int p = 0; p < g->n_parts; p++)
        take_part(&g->readers[0].parts[p], from[p]);
    for (int p = 0; p < g->n_parts; p++)
        run_part(&g->readers[0].parts[p], MTF_PART_BEGIN, MTF_PART_BEGIN);
}

/* ---- Getters --------------------------------------------------------------------------------- */

int64_t mtf_generator_slots(const MtfGenerator *g) {
    return g->slots;
}

int64_t mtf_generator_vocabulary(const MtfGenerator *g) {
    return g->vocabulary;
}

int64_t mtf_generator_filled(const MtfGenerator *g, int64_t slot) {
    return g->filled[slot];
}

const float *mtf_generator_scores(const MtfGenerator *g, int64_t slot) {
    return g->rows + slot * mtf_generator_vocabulary(g);
}

void mtf_generator_clear(MtfGenerator *g, int64_t slot) {
    g->filled[slot] = 0;
}

/* ---- Feeding --------------------------------------------------------------------------------- */

/* The shortest that takes all at once, or the longest. */
static Reader *reader_for(MtfGenerator *g) {
    int64_t most = 0;
    for (int64_t s = 0; s < g->slots; s++)
        most = MAX(most, g->remaining[s]);
    int i = 0;
    while (i < g->n_readers - 1 && g->readers[i].length < most)
        i++;
    return most > 0 ? &g->readers[i] : NULL;
}

static int64_t at_once(const MtfGenerator *g, const Reader *reader, int64_t slot) {
    return MIN(g->remaining[slot], reader->length);
}

/* What this rank holds of an input of a part: example `slot` and place of each element. Where a prompt is
 * read in pieces, the last place lies behind those at hand: nobody looks at a piece's scores, and rotary
 * positions may go by the whole prompt's length. Of a slot that brings nothing it lies before them. */
static void fill_input(const MtfGenerator *g, const Reader *reader, const Part *part, int tensor,
                       const MtfSlotTokens *brought) {
    if (tensor < 0)
        return;
    const MtfOperand *slice = mtf_worker_tensor(part->worker, tensor);
    int32_t *out = slice->data;
    int64_t width = slice->rank > 1 ? slice->size[1] : 1;
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
        int64_t slot = slice->begin[0] + i / width, n = at_once(g, reader, slot);
        int64_t place = slice->rank > 1 ? slice->begin[1] + i % width : 0;
        int64_t first = brought[slot].n - g->remaining[slot];
        out[i] = (int32_t)(tensor == part->position ? g->filled[slot]
                           : tensor == part->last   ? g->remaining[slot] - 1
                           : place < n              ? brought[slot].tokens[first + place]
                                                    : 0);
    }
}

/* Whether this rank speaks for its copy of the scores: copies beside it say the same. */
static bool speaks(const MtfGenerator *g, const Part *part) {
    const MtfMesh *mesh = &part->program->layout->mesh;
    int buffer = part->program->tensor_buffers[part->scores];
    const MtfPlacement *placement = &mtf_program_buffer(part->program, buffer)->placement;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, g->rank, a) > 0)
            return false;
    return true;
}

/* Copies what this rank has of a slot's scores to its row. */
static void copy_scores(const MtfGenerator *g, const MtfOperand *slice, int64_t slot, float *row) {
    int batch = slice->dims[0] == g->batch ? 0 : 1;
    int64_t example = slot - slice->begin[batch], n = slice->size[1 - batch];
    if (example < 0 || example >= slice->size[batch])
        return;
    int64_t apart = batch == 0 ? 1 : slice->size[1];
    int64_t at = example * (batch == 0 ? n : 1);
    for (int64_t i = 0; i < n; i++)
        row[slice->begin[1 - batch] + i] = (float)mtf_slice_get(slice, at + i * apart);
}

/* The part that makes the scores; NULL: other ranks do. */
static const Part *scoring_part(const MtfGenerator *g, const Reader *reader) {
    for (int p = 0; p < g->n_parts; p++)
        if (reader->parts[p].scores >= 0)
            return &reader->parts[p];
    return NULL;
}

/* The scores of the slots that have brought everything with this run. */
static void collect_scores(MtfGenerator *g, const Reader *reader) {
    const Part *part = scoring_part(g, reader);
    bool speaker = part != NULL && speaks(g, part);
    for (int64_t slot = 0; slot < g->slots; slot++) {
        float *row = g->rows + slot * g->vocabulary;
        if (g->remaining[slot] == 0 || g->remaining[slot] > reader->length)
            continue;
        memset(row, 0, (size_t)g->vocabulary * sizeof *row);
        if (speaker)
            copy_scores(g, mtf_worker_tensor(part->worker, part->scores), slot, row);
        if (g->n_ranks > 1)
            mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, row, (int)g->vocabulary, MPI_FLOAT, MPI_SUM,
                                          g->control),
                            "MPI_Allreduce");
    }
}

/* Through all of this rank's parts: a stage waits for what those before it send. */
static void run_reader(const MtfGenerator *g, const Reader *reader, const MtfSlotTokens *brought) {
    for (int p = 0; p < g->n_parts; p++) {
        Part *part = &reader->parts[p];
        fill_input(g, reader, part, part->tokens, brought);
        fill_input(g, reader, part, part->position, brought);
        fill_input(g, reader, part, part->last, brought);
        run_part(part, MTF_PART_FORWARD, MTF_PART_UPDATE);
    }
}

void mtf_generator_feed(MtfGenerator *g, const MtfSlotTokens *brought) {
    Reader *reader;
    for (int64_t s = 0; s < g->slots; s++) {
        g->remaining[s] = brought[s].n;
        g_assert(g->filled[s] + brought[s].n <= g->context);
    }
    while ((reader = reader_for(g)) != NULL) {
        run_reader(g, reader, brought);
        collect_scores(g, reader);
        for (int64_t s = 0; s < g->slots; s++) {
            int64_t n = at_once(g, reader, s);
            g->filled[s] += n;
            g->remaining[s] -= n;
        }
    }
}
