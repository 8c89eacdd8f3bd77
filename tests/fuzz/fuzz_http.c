// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes sent to the HTTP server: it answers within ten seconds, with a page or an error in JSON, and goes on
 * serving. Clients come by pairs of sockets, since TCP has no million of ports. Calls are taken by a thread, as
 * the session takes them. */
#include "runtime/serving/http_server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/http_client.h"

#include <string.h>
#include <sys/socket.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/http", NULL };

static char ok[] = "{\"status\":\"ok\"}";
static const MtfHttpPage pages[] = { { "GET", "/health", ok, NULL },
                                     { "GET", "/", ok, "text/html" },
                                     { "POST", "/calls", NULL, NULL } };

static gpointer take_calls(gpointer user) {
    for (MtfHttpServer *server = user;;) {
        MtfHttpCall *call = mtf_http_server_take(server);
        gsize length;
        if (call == NULL) {
            mtf_http_server_wait(server, 1);
            continue;
        }
        const char *body = mtf_http_call_body(call, &length);
        g_assert(strlen(body) <= length && length <= 1000);
        mtf_http_call_answer(call, 200, ok);
    }
    return NULL;
}

static MtfHttpServer *the_server(void) {
    static MtfHttpServer *server = NULL;
    static const MtfHttpSettings settings = { .pages = pages,
                                              .n_pages = G_N_ELEMENTS(pages),
                                              .body_bytes = 1000,
                                              .head_bytes = 4000,
                                              .connections = 64,
                                              .quiet_seconds = 5 };
    if (server == NULL) {
        server = mtf_http_server_open(&settings, NULL);
        g_assert(server != NULL);
        g_thread_unref(g_thread_new("calls", take_calls, server));
    }
    return server;
}

static int connect_to(MtfHttpServer *server) {
    int pair[2];
    g_assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    mtf_http_server_join(server, pair[1]);
    return pair[0];
}

/* The status of the last of the answers: one that is no page has its error in JSON. */
static int judge_answers(const char *answers) {
    g_assert(g_str_has_prefix(answers, "HTTP/1.1 "));
    g_assert(strstr(answers, "<html>") == NULL);
    const char *last = g_strrstr(answers, "HTTP/1.1 ");
    int status = (int)g_ascii_strtoll(last + strlen("HTTP/1.1 "), NULL, 10);
    g_assert(status == 200 || (status >= 400 && status <= 505 && status != 500));
    g_assert(status == 200 || strstr(last, "\r\n\r\n{\"error\":{") != NULL);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *answers = mtf_http_client_talk(connect_to(the_server()), data, size);
    g_assert((size == 0) == (*answers == '\0'));
    return size > 0 && judge_answers(answers) == 200 ? 0 : -1;
}
