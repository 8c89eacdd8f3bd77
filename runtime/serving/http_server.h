// SPDX-License-Identifier: GPL-3.0-or-later
/* A small HTTP server on this host's own address (127.0.0.1), by libmicrohttpd. It knows a list of
 * pages. Those with an answer are answered at once, by a thread of its own; requests for the others
 * wait as *calls* until a taker fetches and answers them:
 *
 *     client ──► connection ──► GET /health ──────────► answer           (server's thread)
 *                               POST /v1/completions ──► calls: ▒▒▒ ──take──► …      (taker's thread)
 *                               ◄──── suspended ────◄── answer, or begin, send, …, end
 *
 * What is no page, no method of one, too large, no HTTP, or comes when all connections are taken is
 * refused with an error in JSON. A call stays valid until it is answered or ended. */
#ifndef MTF_HTTP_SERVER_H
#define MTF_HTTP_SERVER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfHttpServer MtfHttpServer;
typedef struct MtfHttpCall MtfHttpCall;

typedef struct {
    const char *method;
    const char *path;
    char *answer;     /* NULL: calls are to be taken */
    const char *type; /* of the answer; NULL: JSON */
} MtfHttpPage;

typedef struct {
    int port;                 /* 0: a free one */
    const MtfHttpPage *pages; /* borrowed */
    int n_pages;
    gsize body_bytes;       /* that a request may bring */
    gsize head_bytes;       /* of its first line and headers, at most 64 KiB */
    unsigned connections;   /* at a time; a few more are told that the server is busy */
    unsigned quiet_seconds; /* after which a connection without a request is closed */
} MtfHttpSettings;

/* Listens. Fails (bad input) when the port is not free, or not for this user. */
MtfHttpServer *mtf_http_server_open(const MtfHttpSettings *settings, GError **error);
int mtf_http_server_port(const MtfHttpServer *server);

/* Serves a client that is connected already by a stream socket, which the server closes. */
void mtf_http_server_join(MtfHttpServer *server, int client);

/* The call that has waited longest, or NULL; and waiting for one, `seconds` at most. */
MtfHttpCall *mtf_http_server_take(MtfHttpServer *server);
void mtf_http_server_wait(MtfHttpServer *server, double seconds);

/* Accepts nothing more, answers what nobody took with status 503, gives answers `seconds` to leave
 * and closes. All taken calls have been answered or ended. */
void mtf_http_server_close(MtfHttpServer *server, double seconds);

/* The page that is asked for. */
const char *mtf_http_call_path(const MtfHttpCall *call);

/* What the client sent, NUL-terminated; `*length` without the NUL. */
const char *mtf_http_call_body(const MtfHttpCall *call, gsize *length);

/* Whether the client has gone. */
bool mtf_http_call_is_gone(MtfHttpCall *call);

/* The whole answer, JSON; the call is given back. */
void mtf_http_call_answer(MtfHttpCall *call, int status, const char *json);

/* An answer in pieces (server-sent events): begun once, then any number of pieces; with the end the
 * call is given back. */
void mtf_http_call_begin(MtfHttpCall *call);
void mtf_http_call_send(MtfHttpCall *call, const char *piece);
void mtf_http_call_end(MtfHttpCall *call);

#endif
