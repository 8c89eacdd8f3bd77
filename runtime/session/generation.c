// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/generation.h"

#include "layouts/base/error.h"
#include "layouts/graph/random.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STREAM "generate"

/* Where a program has what generation needs. */
typedef struct {
    MtfSession *session;
    MtfTraffic *uncounted;
    int end;           /* instructions [0, end) lead to the scores */
    int scores;        /* buffer */
    int batch, length; /* dimensions */
    int64_t window, vocabulary;
    double *row; /* scores of one position */
    int *tokens; /* the window, then filling */
} Generation;

/* ---- Where things are ---------------------------------------------------------------------- */

static bool is_next_tokens(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    return t->source == MTF_SOURCE_INPUT && t->feed == MTF_FEED_NEXT_TOKENS;
}

/* Whether a kernel compares scores of one more dimension with next tokens. */
static bool compares(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfGraph *graph = program->graph;
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    return instruction->kind == MTF_INSTRUCTION_KERNEL && op->n_inputs >= 2 &&
           is_next_tokens(graph, op->inputs[1]) &&
           mtf_graph_tensor(graph, op->inputs[0])->shape.rank ==
               mtf_graph_tensor(graph, op->inputs[1])->shape.rank + 1;
}

/* The size of the dimension of `shape` that `without` lacks. */
static int64_t missing_size(const MtfGraph *graph, const MtfShape *shape, const MtfShape *without) {
    for (int i = 0; i < shape->rank; i++)
        if (mtf_shape_find(without, shape->dims[i]) < 0)
            return mtf_graph_size(graph, shape->dims[i]);
    return 0;
}

static bool find_scores(Generation *g, GError **error) {
    const MtfProgram *program = g->session->program;
    const MtfGraph *graph = program->graph;
    while (g->end < mtf_program_length(program) &&
           !compares(program, mtf_program_instruction(program, g->end)))
        g->end++;
    if (g->end == mtf_program_length(program))
        return mtf_input_error(error, "--generate: no operation of this model compares scores with "
                                      "next tokens");
    const MtfInstruction *instruction = mtf_program_instruction(program, g->end);
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    const MtfShape *labels = &mtf_graph_tensor(graph, op->inputs[1])->shape;
    g->scores = instruction->inputs[0];
    g->batch = labels->dims[0];
    g->length = labels->rank == 2 ? labels->dims[1] : -1;
    if (g->length < 0)
        return mtf_input_error(error,
                               "--generate: next tokens have %d dimensions, not an example "
                               "and a place",
                               labels->rank);
    g->window = mtf_graph_size(graph, g->length);
    g->vocabulary = missing_size(graph, &mtf_graph_tensor(graph, op->inputs[0])->shape, labels);
    return true;
}

/* ---- One token ----------------------------------------------------------------------------- */

/* Puts the window into every example of the inputs; masks let all through. */
static void fill_inputs(const Generation *g) {
    const MtfGraph *graph = g->session->plan->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        const MtfOperand *slice = mtf_worker_tensor(g->session->worker, t);
        if (tensor->source != MTF_SOURCE_INPUT || slice == NULL)
            continue;
        int64_t elements = mtf_slice_elements(slice);
        for (int64_t i = 0; i < elements; i++) {
            int64_t place = mtf_slice_global_index(slice, i) % g->window;
            mtf_slice_set(slice, i,
                          tensor->feed == MTF_FEED_TOKENS        ? g->tokens[place]
                          : tensor->feed == MTF_FEED_NEXT_TOKENS ? 0
                                                                 : 1);
        }
    }
}

/* Whether this rank speaks for its copy of a placement: copies beside it say the same. */
static bool speaks(const MtfMesh *mesh, const MtfPlacement *placement, int rank) {
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, rank, a) > 0)
            return false;
    return true;
}

/* Adds the scores that this rank has of example 0 at a place. */
static void collect(Generation *g, int64_t place) {
    const MtfProgram *program = g->session->program;
    const MtfOperand *slice = &g->session->worker->operands[g->scores];
    memset(g->row, 0, (gsize)g->vocabulary * sizeof *g->row);
    if (!speaks(&program->layout->mesh, &mtf_program_buffer(program, g->scores)->placement,
                g->session->rank))
        return;
    int64_t elements = mtf_slice_elements(slice);
    for (int64_t i = 0; i < elements; i++) {
        int64_t at[MTF_MAX_RANK], id = 0, rest = i;
        bool wanted = true;
        for (int k = slice->rank - 1; k >= 0; k--) {
            at[k] = slice->begin[k] + rest % slice->size[k];
            rest /= slice->size[k];
            if (slice->dims[k] == g->batch)
                wanted &= at[k] == 0;
            else if (slice->dims[k] == g->length)
                wanted &= at[k] == place;
            else
                id = at[k];
        }
        if (wanted)
            g->row[id] += mtf_slice_get(slice, i);
    }
}

int64_t mtf_draw_score(const double *scores, int64_t n, double temperature, double share) {
    double highest = -INFINITY, total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++)
        highest = fmax(highest, scores[i]);
    for (int64_t i = 0; i < n; i++)
        total += exp((scores[i] - highest) / temperature);
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        double part = exp((scores[i] - highest) / temperature);
        sum += part;
        if (part > 0)
            last = i;
        if (sum > share * total)
            return i;
    }
    return last;
}

/* The token after the first `known` of the window. */
static int next_token(Generation *g, int64_t known, int64_t number) {
    MtfSession *session = g->session;
    MtfExecutor executor = session->executor;
    executor.counted = g->uncounted;
    executor.times = NULL;
    executor.trace = NULL;
    executor.norm = NULL;
    fill_inputs(g);
    mtf_executor_run(&executor, 0, g->end, 0);
    collect(g, known - 1);
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, g->row, (int)g->vocabulary, MPI_DOUBLE, MPI_SUM,
                                  session->control),
                    "MPI_Allreduce");
    MtfRandom random =
        mtf_random_stream((uint64_t)session->options->seed, STREAM, (uint64_t)number);
    double share = mtf_random_uniform(&random, 0);
    int64_t token = mtf_draw_score(g->row, g->vocabulary, session->options->temperature, share);
    return (int)mtf_agree_first(session->control, (double)token);
}

/* ---- All tokens ---------------------------------------------------------------------------- */

static bool take_prompt(Generation *g, const char *prompt, GArray *ids, GError **error) {
    gsize bytes = prompt != NULL ? strlen(prompt) : 0;
    for (gsize i = 0; i < bytes; i++) {
        int id = (unsigned char)prompt[i];
        if (g->vocabulary > 256 || id >= g->vocabulary)
            return mtf_input_error(
                error, "--prompt: the model's vocabulary of %" PRId64 " ids is not one of bytes%s",
                g->vocabulary, g->vocabulary > 256 ? "" : " up to those of the prompt");
        g_array_append_val(ids, id);
    }
    if (ids->len > 0)
        return true;
    g_autofree int *held = g_new(int, g->window);
    int64_t n = mtf_data_held_tokens(g->session->data, held, MAX(1, g->window / 4), error);
    if (n > 0)
        g_array_append_vals(ids, held, (guint)n);
    return n > 0;
}

/* The last tokens, as many as leave room in the window; how many they are. */
static int64_t fill_window(Generation *g, const GArray *ids) {
    int64_t all = ids->len;
    int64_t half = MAX(1, g->window / 2);
    int64_t first = all <= g->window ? 0 : (all - g->window + half - 1) / half * half;
    first = MIN(first, all - 1);
    for (int64_t i = 0; i < g->window; i++)
        g->tokens[i] = first + i < all ? g_array_index(ids, int, first + i) : 0;
    return all - first;
}

static char *format_tokens(const Generation *g, const GArray *ids) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < ids->len; i++) {
        int id = g_array_index(ids, int, i);
        if (g->vocabulary > 256)
            g_string_append_printf(text, "%s%d", i > 0 ? " " : "", id);
        else
            g_string_append_c(text,
                              g_ascii_isprint(id) || id == '\n' || id >= 128 ? (char)id : '?');
    }
    return g_string_free(text, FALSE);
}

static bool open_generation(Generation *g, const char *prompt, GArray *ids, GError **error) {
    GError *local = NULL;
    if (find_scores(g, &local))
        take_prompt(g, prompt, ids, &local);
    return mtf_agree(g->session->control, local, error);
}

char *mtf_generate(MtfSession *session, const char *prompt, GError **error) {
    Generation g = { .session = session };
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    if (!open_generation(&g, prompt, ids, error))
        return NULL;
    g.uncounted = mtf_traffic_new(session->program);
    g.row = g_new0(double, g.vocabulary);
    g.tokens = g_new0(int, g.window);
    for (int64_t i = 0; i < session->options->generate; i++) {
        int64_t known = fill_window(&g, ids);
        int token = next_token(&g, known, i);
        g_array_append_val(ids, token);
    }
    char *text = format_tokens(&g, ids);
    mtf_traffic_free(g.uncounted);
    g_free(g.row);
    g_free(g.tokens);
    return text;
}
