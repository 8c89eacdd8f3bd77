// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/serve.h"

#include "runtime/serving/completion_answer.h"
#include "runtime/serving/completion_queue.h"
#include "runtime/serving/try_page.h"
#include "runtime/session/session_generator.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"
#include "runtime/support/stop_signals.h"
#include "runtime/text/edge_tokens.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#define BODY_BYTES (1 << 20)
#define HEAD_BYTES (1 << 14)
#define CONNECTIONS 128
#define QUIET_SECONDS 30
#define WAITING_CHOICES 256
#define REQUEST_SECONDS 600
#define LEAVING_SECONDS 0.3
#define IDLE_SECONDS 0.2 /* from one look at the signals to the next */
#define STOP INT_MAX     /* asked for instead of words */

enum { PAGE_COMPLETIONS, PAGE_CHATS, PAGE_MODELS, PAGE_HEALTH, PAGE_TRY, PAGES };

typedef struct {
    MtfSession *session;
    MtfSessionText text;
    MtfModelText words;
    MtfSessionGenerator model;
    int64_t slots;
    MtfSlotTokens *brought;
    bool *clear;
    GArray *round; /* int: what rank 0 tells the others */
    /* Of rank 0. */
    GArray *ends;
    MtfChatTemplate *chat; /* or NULL */
    char *no_chat;         /* why */
    MtfHttpPage pages[PAGES];
    MtfHttpServer *server;
    MtfCompletionQueue *queue;
} Serving;

/* ---- Opening --------------------------------------------------------------------------------- */

static const char *model_name(const Serving *s) {
    return s->session->plan->graph->name;
}

static void make_queue(Serving *s) {
    const MtfRunOptions *o = s->session->options;
    MtfCompletionQueueSettings settings = {
        .name = model_name(s),
        .text = &s->words,
        .chat = s->chat,
        .no_chat = s->no_chat,
        .generator = s->model.generator,
        .context = s->text.window,
        .standard = { .max_tokens = MTF_STANDARD_MAX_TOKENS,
                      .sampling = { .temperature = o->temperature, .top_p = 1 },
                      .seed = o->seed },
        .ends = s->ends,
        .most_waiting = WAITING_CHOICES,
        .seconds = REQUEST_SECONDS,
    };
    s->queue = mtf_completion_queue_new(&settings);
}

/* A template that cannot be read is told to whoever asks for a conversation. */
static void load_chat(Serving *s) {
    GError *error = NULL;
    s->chat = mtf_chat_template_load(s->session->options->tokenizer, &error);
    if (s->chat == NULL)
        s->no_chat =
            g_strdup(error != NULL ? error->message
                                   : "no template says how this model's conversations are "
                                     "spelled: --tokenizer should be the folder of a model "
                                     "that has one; or ask /v1/completions");
    if (error != NULL)
        printf("  no conversations: %s\n", error->message);
    g_clear_error(&error);
}

static bool open_server(Serving *s, GError **error) {
    const MtfRunOptions *o = s->session->options;
    int64_t now = g_get_real_time() / G_USEC_PER_SEC;
    s->ends = mtf_end_tokens_read(o->tokenizer, error);
    if (s->ends == NULL)
        return false;
    load_chat(s);
    s->pages[PAGE_CHATS] = (MtfHttpPage){ "POST", MTF_CHAT_PAGE, NULL, NULL };
    s->pages[PAGE_COMPLETIONS] = (MtfHttpPage){ "POST", "/v1/completions", NULL, NULL };
    s->pages[PAGE_MODELS] =
        (MtfHttpPage){ "GET", "/v1/models", mtf_answer_models(model_name(s), now, s->text.window),
                       NULL };
    s->pages[PAGE_HEALTH] =
        (MtfHttpPage){ "GET", "/health", g_strdup("{\"status\":\"ok\"}"), NULL };
    s->pages[PAGE_TRY] = (MtfHttpPage){ "GET", "/", g_strdup(mtf_try_page), MTF_TRY_PAGE_TYPE };
    MtfHttpSettings settings = { .port = (int)o->serve,
                                 .pages = s->pages,
                                 .n_pages = PAGES,
                                 .body_bytes = BODY_BYTES,
                                 .head_bytes = HEAD_BYTES,
                                 .connections = CONNECTIONS,
                                 .quiet_seconds = QUIET_SECONDS };
    s->server = mtf_http_server_open(&settings, error);
    return s->server != NULL;
}

static bool open_generator(Serving *s, GError **error) {
    const MtfSessionSlots slots = { .n = s->session->options->slots };
    if (!mtf_session_text_find(s->session, "--serve", &s->text, error) ||
        !mtf_session_generator_open(&s->model, s->session, &s->text, &slots, error))
        return false;
    s->words = (MtfModelText){ s->session->tokenizer, s->text.vocabulary };
    s->slots = mtf_generator_slots(s->model.generator);
    s->brought = g_new0(MtfSlotTokens, s->slots);
    s->clear = g_new0(bool, s->slots);
    s->round = g_array_new(FALSE, FALSE, sizeof(int));
    return true;
}

static bool open_serving(Serving *s, GError **error) {
    GError *local = NULL;
    open_generator(s, &local);
    if (!mtf_agree(s->session->control, local, error))
        return false;
    local = NULL;
    if (s->session->rank == 0 && open_server(s, &local))
        make_queue(s);
    return mtf_agree(s->session->control, local, error);
}

static void close_serving(Serving *s) {
    mtf_http_server_close(s->server, LEAVING_SECONDS);
    mtf_completion_queue_free(s->queue);
    for (int i = 0; i < PAGES; i++)
        g_free(s->pages[i].answer);
    g_clear_pointer(&s->ends, g_array_unref);
    mtf_chat_template_free(s->chat);
    g_free(s->no_chat);
    g_clear_pointer(&s->round, g_array_unref);
    mtf_session_generator_close(&s->model);
    g_free(s->brought);
    g_free(s->clear);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void take_calls(Serving *s) {
    MtfHttpCall *call;
    while ((call = mtf_http_server_take(s->server)) != NULL)
        mtf_completion_queue_add(s->queue, call);
}

static void append_word(Serving *s, int64_t word) {
    int value = (int)word;
    g_array_append_val(s->round, value);
}

/* What the next round is, in s->round; nothing where there is nothing to do. */
static void write_round(Serving *s) {
    g_array_set_size(s->round, 0);
    if (mtf_completion_queue_is_empty(s->queue))
        mtf_http_server_wait(s->server, IDLE_SECONDS);
    take_calls(s);
    if (!mtf_completion_queue_fill(s->queue, s->brought, s->clear))
        return;
    for (int64_t i = 0; i < s->slots; i++) {
        append_word(s, s->clear[i]);
        append_word(s, s->brought[i].n);
        if (s->brought[i].n > 0)
            g_array_append_vals(s->round, s->brought[i].tokens, (guint)s->brought[i].n);
    }
}

/* The same on the ranks that were told. */
static void read_round(Serving *s) {
    const int *word = (const int *)(const void *)s->round->data;
    for (int64_t i = 0; i < s->slots; i++) {
        s->clear[i] = *word++ != 0;
        s->brought[i].n = *word++;
        s->brought[i].tokens = word;
        word += s->brought[i].n;
    }
}

/* All ranks learn the words of the round, or that some rank was asked to stop: false. */
static bool share_round(Serving *s) {
    MPI_Comm control = s->session->control;
    GError *error = NULL;
    int asked = s->session->rank == 0 ? (int)s->round->len : 0;
    mtf_meet(control);
    if (mtf_stop_signals_take() == MTF_ASKED_STOP)
        asked = STOP;
    mtf_agree_on(control, NULL, &asked, &error);
    if (asked == STOP)
        return false;
    g_array_set_size(s->round, (guint)asked);
    if (asked > 0 && s->session->n_ranks > 1)
        mtf_mpi_require(MPI_Bcast(s->round->data, asked, MPI_INT, 0, control), "MPI_Bcast");
    return true;
}

static void run_round(Serving *s) {
    if (s->round->len == 0)
        return;
    if (s->session->rank != 0)
        read_round(s);
    for (int64_t i = 0; i < s->slots; i++)
        if (s->clear[i])
            mtf_generator_clear(s->model.generator, i);
    mtf_generator_feed(s->model.generator, s->brought);
    if (s->session->rank == 0)
        mtf_completion_queue_draw(s->queue);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void say_address(const Serving *s) {
    int port = mtf_http_server_port(s->server);
    printf("  serving %s on http://127.0.0.1:%d/v1/completions: %" PRId64
           " texts side by side, %" PRId64 " tokens each\n",
           model_name(s), port, s->slots, s->text.window);
    fflush(stdout);
}

static void serve_rounds(Serving *s) {
    bool leads = s->session->rank == 0;
    for (;;) {
        if (leads)
            write_round(s);
        if (!share_round(s))
            return;
        run_round(s);
    }
}

bool mtf_serve(MtfSession *session, GError **error) {
    Serving s = { .session = session };
    bool opened = open_serving(&s, error);
    mtf_stop_signals_speak(false);
    if (opened && session->rank == 0)
        say_address(&s);
    if (opened)
        serve_rounds(&s);
    if (opened && session->rank == 0) {
        mtf_completion_queue_refuse(s.queue, 503, "the server is ending");
        printf("  asked to end: serves no more\n");
        fflush(stdout);
    }
    close_serving(&s);
    return opened;
}
