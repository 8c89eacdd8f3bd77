// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/http_server.h"

#include "layouts/base/error.h"
#include "runtime/serving/completion_answer.h"
#include "runtime/serving/http_listener.h"
#include "runtime/serving/http_relay.h"

#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 4096
/* What is read and thrown away of a body that is too large, so that the client learns why. */
#define READ_ANYWAY 8
#define MICROSECONDS 1e6
/* Room for the head of a request, and connections that are only told why they are refused. */
#define HEAD_ROOM (1 << 17)
#define REFUSED_CONNECTIONS 16
/* libmicrohttpd 0.9.75 keeps a lock for ever when it refuses a connection beyond its own limit, which stops
 * everything: it is never asked to. */
#define UNREACHED_CONNECTIONS 64

struct MtfHttpServer {
    MtfHttpListener *listener;
    GThreadPool *relays;
    struct MHD_Daemon *daemon;
    unsigned quiet_seconds;
    const MtfHttpPage *pages;
    int n_pages;
    gsize body_bytes, head_bytes;
    unsigned connections;
    gint joined;    /* atomic: connections that libmicrohttpd has */
    GMutex lock;    /* of all below, and of calls */
    GCond came;     /* a call */
    GQueue waiting; /* calls that nobody took */
    bool closing;
};

/* Held by its connection, and by whoever took it. */
struct MtfHttpCall {
    MtfHttpServer *server;
    const MtfHttpPage *page;
    struct MHD_Connection *connection; /* NULL: gone */
    GString *body;
    gsize received;
    bool is_held; /* waiting, or taken and not given back */
    bool suspended;
    int status;   /* of the whole answer, 0 while there is none */
    bool streams; /* the answer goes in pieces */
    bool ended;
    GString *out; /* the answer, or pieces that have not left */
};

/* ---- Calls ----------------------------------------------------------------------------------- */

static MtfHttpCall *new_call(MtfHttpServer *server, const MtfHttpPage *page,
                             struct MHD_Connection *connection) {
    MtfHttpCall *call = g_new0(MtfHttpCall, 1);
    call->server = server;
    call->page = page;
    call->connection = connection;
    call->body = g_string_new(NULL);
    call->out = g_string_new(NULL);
    return call;
}

/* Under the lock. */
static void free_if_unused(MtfHttpCall *call) {
    if (call->is_held || call->connection != NULL)
        return;
    g_string_free(call->body, TRUE);
    g_string_free(call->out, TRUE);
    g_free(call);
}

/* Under the lock. */
static void wake_connection(MtfHttpCall *call) {
    if (!call->suspended || call->connection == NULL)
        return;
    call->suspended = false;
    MHD_resume_connection(call->connection);
}

/* Under the lock: the taker is done with it. */
static void give_back(MtfHttpCall *call) {
    wake_connection(call);
    call->is_held = false;
    free_if_unused(call);
}

const char *mtf_http_call_path(const MtfHttpCall *call) {
    return call->page->path;
}

const char *mtf_http_call_body(const MtfHttpCall *call, gsize *length) {
    *length = call->body->len;
    return call->body->str;
}

/* A suspended connection is not watched by the server, so its socket is asked. */
bool mtf_http_call_is_gone(MtfHttpCall *call) {
    g_mutex_lock(&call->server->lock);
    bool gone = call->connection == NULL;
    if (!gone && call->suspended) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct pollfd socket = { .fd = info->connect_fd, .events = POLLRDHUP };
        gone = poll(&socket, 1, 0) > 0 && (socket.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }
    g_mutex_unlock(&call->server->lock);
    return gone;
}

void mtf_http_call_answer(MtfHttpCall *call, int status, const char *json) {
    MtfHttpServer *server = call->server;
    g_mutex_lock(&server->lock);
    call->status = status;
    g_string_assign(call->out, json);
    give_back(call);
    g_mutex_unlock(&server->lock);
}

void mtf_http_call_begin(MtfHttpCall *call) {
    g_mutex_lock(&call->server->lock);
    call->streams = true;
    wake_connection(call);
    g_mutex_unlock(&call->server->lock);
}

void mtf_http_call_send(MtfHttpCall *call, const char *piece) {
    g_mutex_lock(&call->server->lock);
    g_string_append(call->out, piece);
    wake_connection(call);
    g_mutex_unlock(&call->server->lock);
}

void mtf_http_call_end(MtfHttpCall *call) {
    MtfHttpServer *server = call->server;
    g_mutex_lock(&server->lock);
    call->ended = true;
    give_back(call);
    g_mutex_unlock(&server->lock);
}

/* ---- Answers, in the server's thread --------------------------------------------------------- */

static enum MHD_Result send_text(struct MHD_Connection *connection, int status, const char *text,
                                 const char *type, const char *allowed) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(guintptr)text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type != NULL ? type : "application/json");
    if (allowed != NULL)
        MHD_add_response_header(response, "Allow", allowed);
    if (status >= MHD_HTTP_BAD_REQUEST)
        MHD_add_response_header(response, "Connection", "close");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "1");
    enum MHD_Result result = MHD_queue_response(connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result send_error(struct MHD_Connection *connection, int status,
                                  const char *message, const char *allowed) {
    g_autofree char *json = mtf_answer_error(status, message);
    return send_text(connection, status, json, NULL, allowed);
}

/* The next bytes of an answer in pieces; where there are none the connection sleeps. */
static ssize_t read_pieces(void *user, uint64_t position, char *to, size_t room) {
    MtfHttpCall *call = user;
    (void)position;
    g_mutex_lock(&call->server->lock);
    gsize n = MIN(room, call->out->len);
    ssize_t result = (ssize_t)n;
    memcpy(to, call->out->str, n);
    g_string_erase(call->out, 0, (gssize)n);
    if (n == 0 && call->ended)
        result = MHD_CONTENT_READER_END_OF_STREAM;
    else if (n == 0) {
        call->suspended = true;
        MHD_suspend_connection(call->connection);
    }
    g_mutex_unlock(&call->server->lock);
    return result;
}

static enum MHD_Result send_pieces(MtfHttpCall *call) {
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, read_pieces, call, NULL);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(call->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- Requests, in the server's thread -------------------------------------------------------- */

/* The page of a method and path; where another method has it, NULL and that method. */
static const MtfHttpPage *find_page(const MtfHttpServer *server, const char *method,
                                    const char *path, const char **allowed) {
    *allowed = NULL;
    for (int i = 0; i < server->n_pages; i++) {
        const MtfHttpPage *page = &server->pages[i];
        if (!g_str_equal(page->path, path))
            continue;
        if (g_str_equal(page->method, method))
            return page;
        *allowed = page->method;
    }
    return NULL;
}

static enum MHD_Result refuse_page(const MtfHttpServer *server, struct MHD_Connection *connection,
                                   const char *allowed) {
    if (allowed != NULL) {
        g_autofree char *message = g_strdup_printf("this page takes %s only", allowed);
        return send_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, message, allowed);
    }
    g_autoptr(GString) message = g_string_new("there is no such page; there are");
    for (int i = 0; i < server->n_pages; i++)
        g_string_append_printf(message, "%s %s %s", i > 0 ? "," : "", server->pages[i].method,
                               server->pages[i].path);
    return send_error(connection, MHD_HTTP_NOT_FOUND, message->str, NULL);
}

static enum MHD_Result refuse_body(const MtfHttpServer *server, struct MHD_Connection *connection) {
    g_autofree char *message =
        g_strdup_printf("the request is larger than %" G_GSIZE_FORMAT " bytes", server->body_bytes);
    return send_error(connection, MHD_HTTP_CONTENT_TOO_LARGE, message, NULL);
}

static enum MHD_Result refuse_head(const MtfHttpServer *server, struct MHD_Connection *connection) {
    g_autofree char *message = g_strdup_printf(
        "the request's headers are larger than %" G_GSIZE_FORMAT " bytes", server->head_bytes);
    return send_error(connection, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, message, NULL);
}

/* Free with g_free. */
static char *busy_sentence(const MtfHttpServer *server) {
    return g_strdup_printf("the server is busy: %u connections are open", server->connections);
}

static enum MHD_Result refuse_connection(const MtfHttpServer *server,
                                         struct MHD_Connection *connection) {
    g_autofree char *message = busy_sentence(server);
    return send_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE, message, NULL);
}

static bool is_busy(const MtfHttpServer *server) {
    return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
               ->num_connections > server->connections;
}

static gsize head_size(struct MHD_Connection *connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
        ->header_size;
}

/* A length that the client names is judged before any of it is read. */
static bool claims_too_much(const MtfHttpServer *server, struct MHD_Connection *connection) {
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return length != NULL && g_ascii_strtoull(length, NULL, 10) > server->body_bytes;
}

/* Which libmicrohttpd would take for a body without an end, and wait for it. */
static bool is_encoded(struct MHD_Connection *connection) {
    const char *encoding =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    return encoding != NULL && g_ascii_strcasecmp(encoding, "chunked") != 0;
}

static enum MHD_Result take_body(MtfHttpCall *call, const char *data, size_t *bytes) {
    call->received += *bytes;
    if (call->received > READ_ANYWAY * call->server->body_bytes)
        return MHD_NO;
    if (call->received <= call->server->body_bytes)
        g_string_append_len(call->body, data, (gssize)*bytes);
    *bytes = 0;
    return MHD_YES;
}

/* The call waits, its connection asleep. */
static enum MHD_Result queue_call(MtfHttpServer *server, MtfHttpCall *call) {
    g_mutex_lock(&server->lock);
    bool closing = server->closing;
    if (!closing) {
        call->is_held = true;
        call->suspended = true;
        MHD_suspend_connection(call->connection);
        g_queue_push_tail(&server->waiting, call);
        g_cond_signal(&server->came);
    }
    g_mutex_unlock(&server->lock);
    return closing ? send_error(call->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                                "the server is ending", NULL)
                   : MHD_YES;
}

/* What a call is answered with when its connection wakes, or is new. */
static enum MHD_Result go_on(MtfHttpServer *server, MtfHttpCall *call) {
    g_mutex_lock(&server->lock);
    bool is_new = call->status == 0 && !call->streams && !call->is_held;
    bool streams = call->streams;
    int status = call->status;
    g_mutex_unlock(&server->lock);
    if (streams)
        return send_pieces(call);
    if (status != 0)
        return send_text(call->connection, status, call->out->str, NULL, NULL);
    if (call->received > server->body_bytes)
        return refuse_body(server, call->connection);
    if (call->page->answer != NULL)
        return send_text(call->connection, MHD_HTTP_OK, call->page->answer, call->page->type, NULL);
    return is_new ? queue_call(server, call) : MHD_YES;
}

/* Called when the head of a request has come, with each part of its body, behind the body, and when
 * the connection is woken. */
static enum MHD_Result mhd_answer_request(void *user, struct MHD_Connection *connection,
                                          const char *path, const char *method, const char *version,
                                          const char *data, size_t *bytes, void **state) {
    MtfHttpServer *server = user;
    const char *allowed;
    (void)version;
    if (*state != NULL)
        return *bytes > 0 ? take_body(*state, data, bytes) : go_on(server, *state);
    if (is_busy(server))
        return refuse_connection(server, connection);
    if (head_size(connection) > server->head_bytes)
        return refuse_head(server, connection);
    const MtfHttpPage *page = find_page(server, method, path, &allowed);
    if (page == NULL)
        return refuse_page(server, connection, allowed);
    if (is_encoded(connection))
        return send_error(connection, MHD_HTTP_NOT_IMPLEMENTED,
                          "a request's body has a Content-Length or comes in chunks", NULL);
    if (claims_too_much(server, connection))
        return refuse_body(server, connection);
    *state = new_call(server, page, connection);
    return MHD_YES;
}

static void leave_call(void *user, struct MHD_Connection *connection, void **state,
                       enum MHD_RequestTerminationCode why) {
    MtfHttpServer *server = user;
    MtfHttpCall *call = *state;
    (void)connection;
    (void)why;
    if (call == NULL)
        return;
    g_mutex_lock(&server->lock);
    call->connection = NULL;
    free_if_unused(call);
    g_mutex_unlock(&server->lock);
    *state = NULL;
}

static void count_connection(void *user, struct MHD_Connection *connection, void **state,
                             enum MHD_ConnectionNotificationCode what) {
    MtfHttpServer *server = user;
    (void)connection;
    (void)state;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        g_atomic_int_add(&server->joined, -1);
}

/* ---- The server ------------------------------------------------------------------------------ */

/* A client and the other end of the pair of sockets that libmicrohttpd has. */
typedef struct {
    int client, inner; /* inner -1: refused */
} Pair;

/* Each pair has a thread. */
static void relay_pair(gpointer taken, gpointer user) {
    MtfHttpServer *server = user;
    g_autofree Pair *pair = taken;
    g_autofree char *busy = busy_sentence(server);
    if (pair->inner < 0)
        mtf_http_relay_refuse(pair->client, "503 Service Unavailable", busy);
    else
        mtf_http_relay_run(pair->client, pair->inner, server->quiet_seconds);
}

/* One end of a pair of sockets whose other end libmicrohttpd takes; -1: it cannot take more. */
static int join_pair(MtfHttpServer *server) {
    const struct sockaddr address = { .sa_family = AF_UNIX };
    int ends[2];
    if (g_atomic_int_get(&server->joined) >= (gint)server->connections + REFUSED_CONNECTIONS ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    g_atomic_int_add(&server->joined, 1);
    if (MHD_add_connection(server->daemon, ends[1], &address, sizeof address) == MHD_YES)
        return ends[0];
    g_atomic_int_add(&server->joined, -1);
    close(ends[0]);
    return -1;
}

static void take_client(int client, void *user) {
    MtfHttpServer *server = user;
    Pair *pair = g_new(Pair, 1);
    *pair = (Pair){ client, join_pair(server) };
    g_thread_pool_push(server->relays, pair, NULL);
}

static struct MHD_Daemon *start_daemon(MtfHttpServer *server, const MtfHttpSettings *s) {
    return MHD_start_daemon(MHD_USE_POLL | MHD_USE_INTERNAL_POLLING_THREAD |
                                MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET,
                            0, NULL, NULL, mhd_answer_request, server, MHD_OPTION_CONNECTION_LIMIT,
                            s->connections + REFUSED_CONNECTIONS + UNREACHED_CONNECTIONS,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_ROOM,
                            MHD_OPTION_CONNECTION_TIMEOUT, s->quiet_seconds,
                            MHD_OPTION_NOTIFY_CONNECTION, count_connection, server,
                            MHD_OPTION_NOTIFY_COMPLETED, leave_call, server, MHD_OPTION_END);
}

static void free_server(MtfHttpServer *server) {
    g_thread_pool_free(server->relays, FALSE, TRUE);
    g_mutex_clear(&server->lock);
    g_cond_clear(&server->came);
    g_free(server);
}

MtfHttpServer *mtf_http_server_open(const MtfHttpSettings *s, GError **error) {
    MtfHttpServer *server = g_new0(MtfHttpServer, 1);
    server->pages = s->pages;
    server->n_pages = s->n_pages;
    server->body_bytes = s->body_bytes;
    server->head_bytes = s->head_bytes;
    server->connections = s->connections;
    server->quiet_seconds = s->quiet_seconds;
    g_mutex_init(&server->lock);
    g_cond_init(&server->came);
    server->relays = g_thread_pool_new(relay_pair, server, -1, FALSE, NULL);
    server->daemon = start_daemon(server, s);
    if (server->daemon == NULL)
        mtf_input_error(error, "--serve %d: libmicrohttpd does not start", s->port);
    else
        server->listener = mtf_http_listener_open(s->port, take_client, server, error);
    if (server->listener != NULL)
        return server;
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    free_server(server);
    return NULL;
}

int mtf_http_server_port(const MtfHttpServer *server) {
    return mtf_http_listener_port(server->listener);
}

void mtf_http_server_join(MtfHttpServer *server, int client) {
    take_client(client, server);
}

MtfHttpCall *mtf_http_server_take(MtfHttpServer *server) {
    g_mutex_lock(&server->lock);
    MtfHttpCall *call = g_queue_pop_head(&server->waiting);
    g_mutex_unlock(&server->lock);
    return call;
}

void mtf_http_server_wait(MtfHttpServer *server, double seconds) {
    gint64 end = g_get_monotonic_time() + (gint64)(seconds * MICROSECONDS);
    g_mutex_lock(&server->lock);
    while (g_queue_is_empty(&server->waiting) &&
           g_cond_wait_until(&server->came, &server->lock, end))
        ;
    g_mutex_unlock(&server->lock);
}

static bool has_connections(const MtfHttpServer *server) {
    return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
               ->num_connections > 0;
}

void mtf_http_server_close(MtfHttpServer *server, double seconds) {
    if (server == NULL)
        return;
    mtf_http_listener_close(server->listener);
    g_mutex_lock(&server->lock);
    server->closing = true;
    g_mutex_unlock(&server->lock);
    g_autofree char *ending =
        mtf_answer_error(MHD_HTTP_SERVICE_UNAVAILABLE, "the server is ending");
    for (MtfHttpCall *call; (call = mtf_http_server_take(server)) != NULL;)
        mtf_http_call_answer(call, MHD_HTTP_SERVICE_UNAVAILABLE, ending);
    gint64 end = g_get_monotonic_time() + (gint64)(seconds * MICROSECONDS);
    while (has_connections(server) && g_get_monotonic_time() < end)
        g_usleep(5000);
    MHD_stop_daemon(server->daemon);
    free_server(server);
}
