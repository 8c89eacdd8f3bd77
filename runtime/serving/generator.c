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

/* What runs texts that bring so many tokens at once. */
typedef struct {
    int64_t length; /* tokens a slot */
    MtfGraph *graph;
    MtfProgram *program;
    MtfArena *arena;
    MtfWorker *worker;
    MtfCommunicators *communicators;
    MtfMessageExchange *messages;
    MtfTraffic *uncounted;
    MtfExecutor executor;
} Reader;

struct MtfGenerator {
    MPI_Comm control;
    int rank, n_ranks;
    MtfArenaMemory memory;   /* of all readers */
    Reader readers[LENGTHS]; /* of rising length, the first of 1 */
    int n_readers;
    int tokens, position, last, scores; /* tensors, the same in all graphs */
    int batch, vocabulary;              /* dimensions */
    int64_t slots, context;
    int64_t *filled;    /* by slot */
    int64_t *remaining; /* of what is being fed */
    float *rows;        /* scores by slot */
};

/* ---- Making ---------------------------------------------------------------------------------- */

static void add_reader(MtfGenerator *g, const MtfGeneratorSettings *s, int64_t length) {
    Reader *reader = &g->readers[g->n_readers];
    if (length > g->context || (g->n_readers > 0 && length <= reader[-1].length))
        return;
    reader->length = length;
    reader->graph = mtf_graph_copy(s->graph);
    mtf_generation_set_length(reader->graph, length);
    reader->program = mtf_lower(reader->graph, s->layout);
    reader->arena = mtf_arena_pack(reader->program);
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

/* Variables stand at the bottom of every arena, in their order. */
static void check_variables(const MtfGenerator *g) {
    const Reader *first = &g->readers[0];
    for (int i = 1; i < g->n_readers; i++)
        for (int t = 0; t < (int)first->graph->tensors->len; t++) {
            int a = first->program->tensor_buffers[t];
            int b = g->readers[i].program->tensor_buffers[t];
            if (mtf_graph_tensor(first->graph, t)->source == MTF_SOURCE_VARIABLE)
                g_assert(first->arena->offsets[a] == g->readers[i].arena->offsets[b]);
        }
}

static bool map_memory(MtfGenerator *g, GError **error) {
    int64_t bytes = 0;
    for (int i = 0; i < g->n_readers; i++)
        bytes = MAX(bytes, g->readers[i].arena->bytes);
    return mtf_arena_memory_init(&g->memory, bytes, false, error);
}

/* Exchanges go by MPI: a window is of one program's arena. */
static bool open_reader(MtfGenerator *g, const MtfGeneratorSettings *s, Reader *reader,
                        GError **error) {
    reader->worker =
        mtf_worker_new_at(reader->program, reader->arena, g->rank, s->seed, g->memory.base, error);
    if (reader->worker == NULL)
        return false;
    reader->communicators = mtf_communicators_new(g->control, reader->program);
    reader->messages = mtf_message_exchange_new(reader->communicators, reader->worker,
                                                MTF_EXCHANGES_UNDER_WAY + 1);
    reader->uncounted = mtf_traffic_new(reader->program);
    reader->executor = (MtfExecutor){ .worker = reader->worker,
                                      .at_once = s->no_overlap,
                                      .counted = reader->uncounted,
                                      .transport = { .communicators = reader->communicators,
                                                     .messages = reader->messages,
                                                     .max_message = MTF_MAX_MESSAGE } };
    return true;
}

static void find_tensors(MtfGenerator *g, const MtfGraph *graph) {
    g->tokens = mtf_generation_input(graph, MTF_FEED_TOKENS);
    g->position = mtf_generation_input(graph, MTF_FEED_POSITION);
    g->last = mtf_generation_input(graph, MTF_FEED_LAST);
    g->scores = mtf_generation_scores(graph);
    g->batch = mtf_graph_tensor(graph, g->tokens)->shape.dims[0];
    const MtfShape *scores = &mtf_graph_tensor(graph, g->scores)->shape;
    for (int i = 0; i < scores->rank; i++)
        if (scores->dims[i] != g->batch)
            g->vocabulary = scores->dims[i];
    int context = mtf_generation_context(graph);
    g->slots = mtf_graph_size(graph, g->batch);
    g->context = context >= 0 ? mtf_graph_size(graph, context) : INT32_MAX;
}

MtfGenerator *mtf_generator_new(const MtfGeneratorSettings *settings, GError **error) {
    g_autoptr(MtfGenerator) g = g_new0(MtfGenerator, 1);
    g->control = settings->control;
    g->memory.file = -1;
    mtf_mpi_require(MPI_Comm_rank(g->control, &g->rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(g->control, &g->n_ranks), "MPI_Comm_size");
    find_tensors(g, settings->graph);
    g->filled = g_new0(int64_t, g->slots);
    g->remaining = g_new0(int64_t, g->slots);
    g->rows = g_new0(float, g->slots *mtf_graph_size(settings->graph, g->vocabulary));
    add_readers(g, settings);
    check_variables(g);
    if (!map_memory(g, error))
        return NULL;
    for (int i = 0; i < g->n_readers; i++)
        if (!open_reader(g, settings, &g->readers[i], error))
            return NULL;
    return g_steal_pointer(&g);
}

static void clear_reader(Reader *reader) {
    mtf_message_exchange_free(reader->messages);
    mtf_communicators_free(reader->communicators);
    mtf_traffic_free(reader->uncounted);
    mtf_worker_free(reader->worker);
    mtf_arena_free(reader->arena);
    mtf_program_free(reader->program);
    mtf_graph_free(reader->graph);
}

void mtf_generator_free(MtfGenerator *g) {
    if (g == NULL)
        return;
    for (int i = 0; i < g->n_readers; i++)
        clear_reader(&g->readers[i]);
    mtf_arena_memory_clear(&g->memory);
    g_free(g->filled);
    g_free(g->remaining);
    g_free(g->rows);
    g_free(g);
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

void mtf_generator_take_variables(MtfGenerator *g, const MtfWorker *from) {
    const MtfGraph *graph = g->readers[0].graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int old = mtf_graph_find_tensor(from->program->graph, tensor->name);
        if (tensor->source == MTF_SOURCE_VARIABLE && old >= 0)
            take_variable(mtf_worker_tensor(g->readers[0].worker, t), mtf_worker_tensor(from, old));
    }
}

/* ---- Getters --------------------------------------------------------------------------------- */

int64_t mtf_generator_slots(const MtfGenerator *g) {
    return g->slots;
}

int64_t mtf_generator_vocabulary(const MtfGenerator *g) {
    return mtf_graph_size(g->readers[0].graph, g->vocabulary);
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

/* What this rank holds of an input: example `slot` and place of each element. Where a prompt is read in
 * pieces, the last place lies behind those at hand: nobody looks at a piece's scores, and rotary
 * positions may go by the whole prompt's length. */
static void fill_input(const MtfGenerator *g, const Reader *reader, int tensor,
                       const MtfSlotTokens *brought) {
    const MtfOperand *slice = mtf_worker_tensor(reader->worker, tensor);
    int32_t *out = slice->data;
    int64_t width = slice->rank > 1 ? slice->size[1] : 1;
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
        int64_t slot = slice->begin[0] + i / width, n = at_once(g, reader, slot);
        int64_t place = slice->rank > 1 ? slice->begin[1] + i % width : 0;
        int64_t first = brought[slot].n - g->remaining[slot];
        out[i] = (int32_t)(tensor == g->position ? g->filled[slot]
                           : tensor == g->last   ? MAX(g->remaining[slot] - 1, 0)
                           : place < n           ? brought[slot].tokens[first + place]
                                                 : 0);
    }
}

/* Whether this rank speaks for its copy of the scores: copies beside it say the same. */
static bool speaks(const MtfGenerator *g, const Reader *reader) {
    const MtfMesh *mesh = &reader->program->layout->mesh;
    int buffer = reader->program->tensor_buffers[g->scores];
    const MtfPlacement *placement = &mtf_program_buffer(reader->program, buffer)->placement;
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

/* The scores of the slots that have brought everything with this run. */
static void collect_scores(MtfGenerator *g, const Reader *reader) {
    const MtfOperand *slice = mtf_worker_tensor(reader->worker, g->scores);
    int64_t n = mtf_generator_vocabulary(g);
    bool speaker = speaks(g, reader);
    for (int64_t slot = 0; slot < g->slots; slot++) {
        float *row = g->rows + slot * n;
        if (g->remaining[slot] == 0 || g->remaining[slot] > reader->length)
            continue;
        memset(row, 0, (size_t)n * sizeof *row);
        if (speaker)
            copy_scores(g, slice, slot, row);
        if (g->n_ranks > 1)
            mtf_mpi_require(
                MPI_Allreduce(MPI_IN_PLACE, row, (int)n, MPI_FLOAT, MPI_SUM, g->control),
                "MPI_Allreduce");
    }
}

void mtf_generator_feed(MtfGenerator *g, const MtfSlotTokens *brought) {
    Reader *reader;
    for (int64_t s = 0; s < g->slots; s++) {
        g->remaining[s] = brought[s].n;
        g_assert(g->filled[s] + brought[s].n <= g->context);
    }
    while ((reader = reader_for(g)) != NULL) {
        fill_input(g, reader, g->tokens, brought);
        fill_input(g, reader, g->position, brought);
        fill_input(g, reader, g->last, brought);
        mtf_executor_run(&reader->executor, 0, mtf_program_length(reader->program), 0);
        collect_scores(g, reader);
        for (int64_t s = 0; s < g->slots; s++) {
            int64_t n = at_once(g, reader, s);
            g->filled[s] += n;
            g->remaining[s] -= n;
        }
    }
}
