// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes sent to the HTTP server: it answers with statuses it has, or closes, within ten seconds, and goes on
 * serving. Calls are taken by a thread, as the session takes them. */
#include "runtime/serving/http_server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/http_client.h"

#include <string.h>

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

static int port(void) {
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
    return mtf_http_server_port(server);
}

/* The status of an answer that begins as one must. */
static int status_of(const char *answer) {
    g_assert(g_str_has_prefix(answer, "HTTP/1."));
    return (int)g_ascii_strtoll(answer + strlen("HTTP/1.1 "), NULL, 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *answer = mtf_http_client_ask(port(), data, size);
    int status = *answer == '\0' ? 0 : status_of(answer);
    g_assert(status == 0 || (status >= 100 && status <= 505 && status != 500));
    return status == 200 ? 0 : -1;
}
