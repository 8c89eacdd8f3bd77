// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/session_generator.h"

#include "layouts/base/error.h"
#include "layouts/inference/generation_graph.h"
#include "layouts/inference/generation_layout.h"

/* Of a text whose model keeps no keys and values: nothing else ends it. */
#define LONGEST_TEXT (1 << 20)

/* Of a plan of inference: what its caches hold, and its scores. */
static void find_kept_scores(const MtfGraph *graph, MtfSessionText *text) {
    const MtfTensor *scores = mtf_graph_tensor(graph, mtf_generation_scores(graph));
    const MtfTensor *last = mtf_graph_tensor(graph, mtf_generation_input(graph, MTF_FEED_LAST));
    int context = mtf_generation_context(graph);
    text->window = context >= 0 ? mtf_graph_size(graph, context) : LONGEST_TEXT;
    text->vocabulary =
        mtf_graph_elements(graph, &scores->shape) / mtf_graph_elements(graph, &last->shape);
}

bool mtf_session_text_find(const MtfSession *session, const char *option, MtfSessionText *text,
                           GError **error) {
    const MtfGraph *graph = mtf_session_graph(session);
    if (mtf_graph_generates(graph)) {
        find_kept_scores(graph, text);
        return true;
    }
    if (!mtf_scores_find(session, option, &text->scores, error))
        return false;
    if (!text->scores.of_next_tokens || text->scores.length < 0)
        return mtf_input_error(error,
                               "%s: no operation of this model compares scores with next tokens of "
                               "an example and a place",
                               option);
    text->window = text->scores.window;
    text->vocabulary = text->scores.vocabulary;
    return true;
}

/* A plan of inference says itself how many texts there are. */
static MtfPipelinePlan *make_pipeline(const MtfSession *session, const MtfGenerationSizes *sizes,
                                      GError **error) {
    const MtfPlan *plan = session->plan;
    if (mtf_graph_generates(mtf_session_graph(session)))
        return mtf_generation_pipeline_at(session->stage->pipeline, sizes->length);
    if (mtf_session_has_stages(session))
        return mtf_generation_pipeline(session->stage->pipeline, sizes, error);
    g_autoptr(MtfGraph) graph = mtf_generation_graph(plan->graph, sizes, error);
    if (graph == NULL)
        return NULL;
    g_autoptr(MtfLayout) layout = mtf_generation_layout(graph, plan->graph, plan->layout);
    return mtf_generation_whole(graph, layout);
}

static MtfGeneratorSettings settings_of(const MtfSession *session) {
    const MtfStageRun *stage = session->stage;
    return (MtfGeneratorSettings){ .control = session->control,
                                   .domain = stage->domain,
                                   .transfers = stage->transfers,
                                   .number = stage->number,
                                   .seed = (uint64_t)session->options->seed,
                                   .no_overlap = session->options->no_overlap };
}

bool mtf_session_generator_open(MtfSessionGenerator *g, MtfSession *session,
                                const MtfSessionText *text, const MtfSessionSlots *slots,
                                GError **error) {
    const MtfGenerationSizes sizes = { .batch = slots->n, .length = 1, .context = text->window };
    *g = (MtfSessionGenerator){ .pipeline = make_pipeline(session, &sizes, error) };
    if (g->pipeline == NULL)
        return false;
    MtfGeneratorSettings settings = settings_of(session);
    settings.pipeline = g->pipeline;
    settings.longest = slots->longest;
    g->generator = mtf_generator_new(&settings, error);
    if (g->generator == NULL)
        return false;
    mtf_generator_take_variables(g->generator, session->stage->workers);
    return true;
}

void mtf_session_generator_close(MtfSessionGenerator *g) {
    mtf_generator_free(g->generator);
    mtf_pipeline_plan_free(g->pipeline);
    *g = (MtfSessionGenerator){ 0 };
}
