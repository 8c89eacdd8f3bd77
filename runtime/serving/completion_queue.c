// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_queue.h"

#include "layouts/base/error.h"
#include "runtime/serving/completion_answer.h"
#include "runtime/serving/completion_text.h"

#include <inttypes.h>

/* Tokens of a prompt that a slot brings in one round: others wait for their next token meanwhile. */
#define PIECE_TOKENS 128
#define NO_SLOT (-1)
#define STATUS_BAD 400
#define STATUS_MANY 429
#define STATUS_LATE 503
#define MICROSECONDS 1e6

typedef struct Completion Completion;

typedef struct {
    Completion *completion;
    int64_t index;   /* of all that are drawn */
    GArray *prompt;  /* int; shared by the choices of a prompt */
    GArray *tokens;  /* int: the choice */
    GArray *scores;  /* MtfPlaceScores of its tokens, where somebody asks; behind the prompt's,
                        if told, too; or NULL */
    int64_t slot;    /* NO_SLOT: waits, or is done */
    int64_t fed;     /* tokens of prompt and choice that the slot holds */
    int64_t feeding; /* that it brings in this round */
    MtfCompletionText text;
    const char *finished; /* why; NULL while it goes on */
} Choice;

struct Completion {
    MtfHttpCall *call;
    MtfCompletionRequest request;
    MtfAnswerHead head;
    gint64 began; /* microseconds */
    Choice *choices;
    int64_t n_choices, n_open;
    int64_t prompt_tokens;
};

struct MtfCompletionQueue {
    MtfCompletionQueueSettings settings;
    GPtrArray *completions; /* that are not answered, oldest first */
    GQueue waiting;         /* choices without a slot */
    int64_t slots;
    Choice **holders; /* by slot */
    int64_t vocabulary;
    double *row; /* scores of one slot */
    bool *marks; /* of tokens (score_changes.h) */
    int64_t number;
};

/* ---- Completions ----------------------------------------------------------------------------- */

static void free_completion(gpointer data) {
    Completion *c = data;
    for (int64_t i = 0; i < c->n_choices; i++) {
        g_array_unref(c->choices[i].prompt);
        g_array_unref(c->choices[i].tokens);
        g_clear_pointer(&c->choices[i].scores, g_array_unref);
        mtf_completion_text_clear(&c->choices[i].text);
    }
    g_free(c->choices);
    mtf_completion_request_clear(&c->request);
    g_free(c);
}

MtfCompletionQueue *mtf_completion_queue_new(const MtfCompletionQueueSettings *settings) {
    MtfCompletionQueue *q = g_new0(MtfCompletionQueue, 1);
    q->settings = *settings;
    q->completions = g_ptr_array_new_with_free_func(free_completion);
    g_queue_init(&q->waiting);
    q->slots = mtf_generator_slots(settings->generator);
    q->holders = g_new0(Choice *, q->slots);
    q->vocabulary = mtf_generator_vocabulary(settings->generator);
    q->row = g_new0(double, q->vocabulary);
    q->marks = g_new0(bool, q->vocabulary);
    return q;
}

void mtf_completion_queue_free(MtfCompletionQueue *q) {
    if (q == NULL)
        return;
    g_queue_clear(&q->waiting);
    g_ptr_array_unref(q->completions);
    g_free(q->holders);
    g_free(q->row);
    g_free(q->marks);
    g_free(q);
}

bool mtf_completion_queue_is_empty(const MtfCompletionQueue *q) {
    return q->completions->len == 0;
}

/* ---- Taking on ------------------------------------------------------------------------------- */

static bool check_tokens(const MtfCompletionQueue *q, const GArray *tokens, int64_t max_tokens,
                         GError **error) {
    if (tokens->len == 0)
        return mtf_input_error(error, "the request: /prompt: at least one token is needed");
    for (guint i = 0; i < tokens->len; i++)
        if (g_array_index(tokens, int, i) >= q->vocabulary)
            return mtf_input_error(
                error, "the request: /prompt: token %d is not one of the model's %" PRId64,
                g_array_index(tokens, int, i), q->vocabulary);
    if ((int64_t)tokens->len + max_tokens <= q->settings.context)
        return true;
    return mtf_input_error(error,
                           "the request: /max_tokens: a prompt of %u tokens and %" PRId64
                           " more are beyond the model's context of %" PRId64,
                           tokens->len, max_tokens, q->settings.context);
}

static GArray *encode_prompt(const MtfCompletionQueue *q, const MtfPrompt *prompt,
                             int64_t max_tokens, GError **error) {
    g_autoptr(GArray) tokens = prompt->tokens != NULL ? g_array_ref(prompt->tokens)
                                                      : g_array_new(FALSE, FALSE, sizeof(int));
    bool whole = prompt->whole;
    if (prompt->text != NULL && !(whole ? mtf_model_text_encode_whole : mtf_model_text_encode)(
                                    q->settings.text, prompt->text, tokens, error))
        return NULL;
    return check_tokens(q, tokens, max_tokens, error) ? g_steal_pointer(&tokens) : NULL;
}

static void init_choice(const MtfCompletionQueue *q, Completion *c, int64_t index, GArray *prompt) {
    Choice *choice = &c->choices[index];
    *choice = (Choice){ .completion = c, .index = index, .slot = NO_SLOT };
    choice->prompt = g_array_ref(prompt);
    choice->tokens = g_array_new(FALSE, FALSE, sizeof(int));
    bool scored = c->request.returns_scores || c->request.drawn > c->request.choices;
    choice->scores = scored ? mtf_place_scores_new() : NULL;
    mtf_completion_text_init(&choice->text, q->settings.text, c->request.stops, prompt);
    c->n_choices++;
    c->n_open++;
}

static bool make_choices(const MtfCompletionQueue *q, Completion *c, GError **error) {
    const MtfCompletionRequest *request = &c->request;
    c->choices = g_new0(Choice, request->prompts->len * request->drawn);
    for (guint p = 0; p < request->prompts->len; p++) {
        const MtfPrompt *prompt = g_ptr_array_index(request->prompts, p);
        bool fills = request->max_tokens == MTF_FILL_CONTEXT;
        g_autoptr(GArray) tokens = encode_prompt(q, prompt, fills ? 1 : request->max_tokens, error);
        if (tokens == NULL)
            return false;
        if (fills)
            c->request.max_tokens = q->settings.context - tokens->len;
        c->prompt_tokens += tokens->len;
        for (int64_t i = 0; i < request->drawn; i++)
            init_choice(q, c, p * request->drawn + i, tokens);
    }
    return true;
}

static bool check_biases(const MtfCompletionQueue *q, const GArray *biases, GError **error) {
    for (guint i = 0; biases != NULL && i < biases->len; i++) {
        int64_t token = g_array_index(biases, MtfTokenBias, i).token;
        if (token >= q->vocabulary)
            return mtf_input_error(error,
                                   "the request: /logit_bias: token %" PRId64
                                   " is not one of the model's %" PRId64,
                                   token, q->vocabulary);
    }
    return true;
}

/* A conversation is a prompt, spelled by the model's template. */
static bool spell_conversation(const MtfCompletionQueue *q, Completion *c, GError **error) {
    if (c->request.names == NULL)
        return true;
    if (q->settings.chat == NULL)
        return mtf_input_error(error, "%s", q->settings.no_chat);
    char *text = mtf_chat_template_spell(q->settings.chat, c->request.names, error);
    if (text == NULL)
        return false;
    MtfPrompt *prompt = mtf_completion_request_add(&c->request);
    prompt->text = text;
    prompt->whole = true;
    return true;
}

static bool parse_request(const MtfCompletionQueue *q, Completion *c, GError **error) {
    gsize length;
    const char *body = mtf_http_call_body(c->call, &length);
    MtfCompletionForm form = c->head.chat ? MTF_FORM_CHAT : MTF_FORM_TEXT;
    return mtf_completion_request_parse(&c->request, form, &q->settings.standard, body, length,
                                        error) &&
           check_biases(q, c->request.changes.biases, error) && spell_conversation(q, c, error) &&
           make_choices(q, c, error);
}

static void answer_error(MtfHttpCall *call, int status, const char *message) {
    g_autofree char *json = mtf_answer_error(status, message);
    mtf_http_call_answer(call, status, json);
}

static void send_piece(const Choice *choice, const MtfAnswerChoice *piece) {
    g_autofree char *event = mtf_answer_piece(&choice->completion->head, piece);
    mtf_http_call_send(choice->completion->call, event);
}

static void begin_message(const Choice *choice) {
    const MtfAnswerChoice piece = { .index = choice->index, .begins = true, .text = "" };
    send_piece(choice, &piece);
}

static char *prompt_text(const MtfCompletionQueue *q, const Choice *choice) {
    g_autofree char *bytes = mtf_model_text_decode(
        q->settings.text, (const int *)(const void *)choice->prompt->data, choice->prompt->len);
    return g_utf8_make_valid(bytes, -1);
}

static void begin_stream(const MtfCompletionQueue *q, Completion *c) {
    mtf_http_call_begin(c->call);
    for (int64_t i = 0; c->head.chat && i < c->n_choices; i++)
        begin_message(&c->choices[i]);
    for (int64_t i = 0; c->request.echo && i < c->n_choices; i++) {
        g_autofree char *text = prompt_text(q, &c->choices[i]);
        send_piece(&c->choices[i], &(MtfAnswerChoice){ .index = i, .text = text });
    }
}

void mtf_completion_queue_add(MtfCompletionQueue *q, MtfHttpCall *call) {
    g_autoptr(GError) error = NULL;
    Completion *c = g_new0(Completion, 1);
    *c = (Completion){ .call = call, .began = g_get_monotonic_time() };
    c->head.chat = g_str_equal(mtf_http_call_path(call), MTF_CHAT_PAGE);
    if (!parse_request(q, c, &error)) {
        answer_error(call, STATUS_BAD, error->message);
        free_completion(c);
        return;
    }
    if ((int64_t)q->waiting.length + c->n_choices > q->settings.most_waiting + q->slots) {
        g_autofree char *message =
            g_strdup_printf("%u choices wait already, of at most %" PRId64 ": try again later",
                            q->waiting.length, q->settings.most_waiting);
        answer_error(call, STATUS_MANY, message);
        free_completion(c);
        return;
    }
    c->head.model = q->settings.name;
    c->head.number = ++q->number;
    c->head.created = g_get_real_time() / G_USEC_PER_SEC;
    g_ptr_array_add(q->completions, c);
    for (int64_t i = 0; i < c->n_choices; i++)
        g_queue_push_tail(&q->waiting, &c->choices[i]);
    if (c->request.stream)
        begin_stream(q, c);
}

/* ---- Giving back ----------------------------------------------------------------------------- */

static void leave_slot(MtfCompletionQueue *q, Choice *choice) {
    if (choice->slot != NO_SLOT)
        q->holders[choice->slot] = NULL;
    choice->slot = NO_SLOT;
}

/* Takes a completion's choices off and frees it; the call has been answered. */
static void drop_completion(MtfCompletionQueue *q, Completion *c) {
    for (int64_t i = 0; i < c->n_choices; i++) {
        g_queue_remove(&q->waiting, &c->choices[i]);
        leave_slot(q, &c->choices[i]);
    }
    g_ptr_array_remove(q->completions, c);
}

/* A stream that has begun can only be told in another piece. */
static void fail_completion(MtfCompletionQueue *q, Completion *c, int status, const char *message) {
    g_autofree char *json = mtf_answer_error(status, message);
    if (c->request.stream) {
        g_autofree char *event = g_strdup_printf("data: %s\n\n", json);
        mtf_http_call_send(c->call, event);
        mtf_http_call_end(c->call);
    } else {
        mtf_http_call_answer(c->call, status, json);
    }
    drop_completion(q, c);
}

void mtf_completion_queue_refuse(MtfCompletionQueue *q, int status, const char *message) {
    while (q->completions->len > 0)
        fail_completion(q, g_ptr_array_index(q->completions, 0), status, message);
}

static void drop_gone_and_late(MtfCompletionQueue *q) {
    gint64 earliest = g_get_monotonic_time() - (gint64)(q->settings.seconds * MICROSECONDS);
    for (guint i = q->completions->len; i-- > 0;) {
        Completion *c = g_ptr_array_index(q->completions, i);
        g_autofree char *message =
            g_strdup_printf("the request took longer than %g seconds", q->settings.seconds);
        if (mtf_http_call_is_gone(c->call) || c->began < earliest)
            fail_completion(q, c, STATUS_LATE, message);
    }
}

/* ---- A round --------------------------------------------------------------------------------- */

static void give_slots(MtfCompletionQueue *q, bool *clear) {
    for (int64_t s = 0; s < q->slots; s++) {
        clear[s] = q->holders[s] == NULL && !g_queue_is_empty(&q->waiting);
        if (!clear[s])
            continue;
        q->holders[s] = g_queue_pop_head(&q->waiting);
        q->holders[s]->slot = s;
    }
}

/* Whether the prompt's tokens are scored as well. */
static bool scores_prompt(const Choice *choice) {
    const MtfCompletionRequest *request = &choice->completion->request;
    return request->echo && request->returns_scores;
}

/* The next tokens that a choice's slot does not hold: of its prompt, then the last one drawn. Scores are those
 * behind the last of them, so that a prompt that is scored comes token by token. */
static MtfSlotTokens next_tokens(Choice *choice) {
    int64_t prompt = choice->prompt->len;
    bool reads = choice->fed < prompt;
    const GArray *from = reads ? choice->prompt : choice->tokens;
    int64_t at = reads ? choice->fed : choice->fed - prompt;
    choice->feeding = MIN((int64_t)from->len - at, scores_prompt(choice) ? 1 : PIECE_TOKENS);
    return (MtfSlotTokens){ &g_array_index(from, int, at), choice->feeding };
}

bool mtf_completion_queue_fill(MtfCompletionQueue *q, MtfSlotTokens *brought, bool *clear) {
    bool any = false;
    drop_gone_and_late(q);
    give_slots(q, clear);
    for (int64_t s = 0; s < q->slots; s++) {
        brought[s] = (MtfSlotTokens){ 0 };
        if (q->holders[s] == NULL)
            continue;
        brought[s] = next_tokens(q->holders[s]);
        any = true;
    }
    return any;
}

static bool is_end(const MtfCompletionQueue *q, int token) {
    for (guint i = 0; i < q->settings.ends->len; i++)
        if (g_array_index(q->settings.ends, int, i) == token)
            return true;
    return false;
}

static void take_row(MtfCompletionQueue *q, const Choice *choice) {
    const float *scores = mtf_generator_scores(q->settings.generator, choice->slot);
    for (int64_t i = 0; i < q->vocabulary; i++)
        q->row[i] = (double)scores[i];
}

/* What the token of the prompt behind those that the slot holds was; nothing stands before the first. */
static void score_prompt(MtfCompletionQueue *q, const Choice *choice) {
    const int *tokens = (const int *)(const void *)choice->prompt->data;
    int likeliest = (int)choice->completion->request.likeliest;
    take_row(q, choice);
    if (choice->scores->len == 0)
        mtf_place_scores_append(choice->scores, q->settings.text, NULL, q->vocabulary, tokens[0],
                                likeliest);
    if (choice->fed < (int64_t)choice->prompt->len)
        mtf_place_scores_append(choice->scores, q->settings.text, q->row, q->vocabulary,
                                tokens[choice->fed], likeliest);
}

static int draw_token(MtfCompletionQueue *q, const Choice *choice) {
    const MtfCompletionRequest *request = &choice->completion->request;
    take_row(q, choice);
    mtf_score_changes_apply(&request->changes, choice->tokens, q->row, q->marks);
    return (int)mtf_sampling_draw_at(&request->sampling, q->row, q->vocabulary, request->seed,
                                     choice->index % request->drawn, choice->tokens->len);
}

/* Adds a token, or finds that the choice is over. */
static void take_token(MtfCompletionQueue *q, Choice *choice, int token) {
    const MtfCompletionRequest *request = &choice->completion->request;
    if (is_end(q, token)) {
        choice->finished = "stop";
    } else {
        g_array_append_val(choice->tokens, token);
        if (choice->scores != NULL)
            mtf_place_scores_append(choice->scores, q->settings.text, q->row, q->vocabulary, token,
                                    (int)request->likeliest);
        mtf_completion_text_add(&choice->text, token);
        if ((int64_t)choice->tokens->len == request->max_tokens)
            choice->finished = "length";
    }
    if (request->stream || request->stops[0] != NULL || choice->finished != NULL)
        mtf_completion_text_update(&choice->text);
    if (choice->text.stopped)
        choice->finished = "stop";
}

/* Sends what can be said, with the tokens behind the first `before`. */
static void stream_choice(Choice *choice, guint before) {
    const MtfCompletionRequest *request = &choice->completion->request;
    g_autofree char *said = mtf_completion_text_say(&choice->text, choice->finished != NULL);
    g_autoptr(GArray) tokens = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_append_vals(tokens, &g_array_index(choice->tokens, int, before),
                        choice->tokens->len - before);
    const MtfAnswerChoice piece = { .index = choice->index,
                                    .text = said,
                                    .tokens = request->returns_tokens ? tokens : NULL,
                                    .scores = choice->scores,
                                    .first = before,
                                    .finish_reason = choice->finished };
    if (*said != '\0' || choice->finished != NULL || request->returns_tokens ||
        request->returns_scores)
        send_piece(choice, &piece);
}

static char *whole_text(const MtfCompletionQueue *q, Choice *choice) {
    char *said = mtf_completion_text_say(&choice->text, true);
    if (!choice->completion->request.echo)
        return said;
    g_autofree char *prompt = prompt_text(q, choice);
    g_autofree char *rest = said;
    return g_strconcat(prompt, rest, NULL);
}

static int64_t tokens_of(const Completion *c) {
    int64_t tokens = 0;
    for (int64_t i = 0; i < c->n_choices; i++)
        tokens += c->choices[i].tokens->len;
    return tokens;
}

/* The mean logarithm of a choice's tokens. */
static double likelihood(const Choice *choice) {
    guint n = choice->tokens->len;
    double sum = 0;
    for (guint i = choice->scores->len - n; i < choice->scores->len; i++)
        sum += g_array_index(choice->scores, MtfPlaceScores, i).said.logarithm;
    return n > 0 ? sum / n : 0;
}

static gint compare_likelihoods(gconstpointer a, gconstpointer b) {
    const Choice *first = *(Choice *const *)a, *second = *(Choice *const *)b;
    double p = likelihood(first), q = likelihood(second);
    return p != q ? (p > q ? -1 : 1) : first->index < second->index ? -1 : 1;
}

/* The choices (Choice *, borrowed) of prompt `p` that are told: those that were drawn, or the likeliest of
 * them. */
static GPtrArray *told_choices(const Completion *c, guint p) {
    GPtrArray *told = g_ptr_array_new();
    for (int64_t i = 0; i < c->request.drawn; i++)
        g_ptr_array_add(told, &c->choices[p * c->request.drawn + i]);
    if (c->request.drawn > c->request.choices) {
        g_ptr_array_sort(told, compare_likelihoods);
        g_ptr_array_set_size(told, (gint)c->request.choices);
    }
    return told;
}

static MtfAnswerChoice answer_choice(const Completion *c, const Choice *choice, int64_t index,
                                     const char *text) {
    return (MtfAnswerChoice){ .index = index,
                              .text = text,
                              .tokens = c->request.returns_tokens ? choice->tokens : NULL,
                              .scores = c->request.returns_scores ? choice->scores : NULL,
                              .finish_reason = choice->finished };
}

static void answer_completion(const MtfCompletionQueue *q, Completion *c) {
    int64_t n = 0, most = c->request.prompts->len * c->request.choices;
    g_autofree MtfAnswerChoice *answers = g_new0(MtfAnswerChoice, most);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    for (guint p = 0; p < c->request.prompts->len; p++) {
        g_autoptr(GPtrArray) told = told_choices(c, p);
        for (guint i = 0; i < told->len; i++, n++) {
            g_ptr_array_add(texts, whole_text(q, told->pdata[i]));
            answers[n] = answer_choice(c, told->pdata[i], n, texts->pdata[n]);
        }
    }
    g_autofree char *json =
        mtf_answer_completion(&c->head, answers, n, c->prompt_tokens, tokens_of(c));
    mtf_http_call_answer(c->call, 200, json);
}

static void complete(MtfCompletionQueue *q, Completion *c) {
    if (c->request.stream) {
        if (c->request.counts) {
            g_autofree char *counts = mtf_answer_counts(&c->head, c->prompt_tokens, tokens_of(c));
            mtf_http_call_send(c->call, counts);
        }
        mtf_http_call_send(c->call, "data: [DONE]\n\n");
        mtf_http_call_end(c->call);
    } else {
        answer_completion(q, c);
    }
    drop_completion(q, c);
}

/* The token behind what a slot holds now, where it holds all that its choice has. */
static void go_on(MtfCompletionQueue *q, Choice *choice) {
    Completion *c = choice->completion;
    guint before = choice->tokens->len;
    choice->fed += choice->feeding;
    if (scores_prompt(choice) && choice->fed <= (int64_t)choice->prompt->len)
        score_prompt(q, choice);
    if (choice->fed < (int64_t)choice->prompt->len)
        return;
    if (c->request.max_tokens == 0)
        choice->finished = "length";
    else
        take_token(q, choice, draw_token(q, choice));
    if (c->request.stream)
        stream_choice(choice, before);
    if (choice->finished == NULL)
        return;
    leave_slot(q, choice);
    if (--c->n_open == 0)
        complete(q, c);
}

void mtf_completion_queue_draw(MtfCompletionQueue *q) {
    for (int64_t s = 0; s < q->slots; s++)
        if (q->holders[s] != NULL)
            go_on(q, q->holders[s]);
}
