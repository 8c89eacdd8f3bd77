// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/http_relay.h"

#include "runtime/serving/completion_answer.h"
#include "runtime/serving/http_requests.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 16384
/* Of an answer that is replaced; libmicrohttpd's are smaller. */
#define MOST_REPLACED 65536
/* How long a client that goes on sending is listened to after the last answer: a socket closed
 * before that would take the answer with it. */
#define LAST_MILLISECONDS 500

/* Where in the answers the next byte lies. */
typedef enum {
    IN_HEAD,     /* or between two answers */
    IN_BODY,     /* of a length that the head told */
    UNTIL_END,   /* of the connection */
    IN_REPLACED, /* until the end, to be replaced */
} Place;

typedef struct {
    int client, inner;
    gint64 heard; /* from the client, in microseconds */
    gint64 quiet;
    MtfHttpRequests requests;
    guint64 answers;      /* begun */
    bool has_said;        /* anything */
    bool client_has_done; /* sends no more */
    char piece[PIECE_BYTES];
    gsize waiting, sent; /* of the piece, on its way to libmicrohttpd */
    Place place;
    guint64 left;  /* of the body */
    GString *held; /* a head that is not whole, or an answer to be replaced */
} Relay;

/* ---- To the client --------------------------------------------------------------------------- */

/* False: it has gone, or reads nothing. */
static bool send_all(int to, const char *bytes, gsize length) {
    ssize_t n = 1;
    for (gsize at = 0; at < length && n > 0; at += (gsize)MAX(n, 0))
        n = send(to, bytes + at, length - at, MSG_NOSIGNAL);
    return n > 0;
}

/* A status is its line's text: "400 Bad Request". */
static void send_error(int client, const char *status, const char *message) {
    g_autofree char *json = mtf_answer_error((int)g_ascii_strtoll(status, NULL, 10), message);
    g_autofree char *answer =
        g_strdup_printf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: "
                        "%" G_GSIZE_FORMAT "\r\nConnection: close\r\n\r\n%s",
                        status, strlen(json), json);
    send_all(client, answer, strlen(answer));
}

/* Reads on for a while what the client sends, so that it learns why. */
static void close_client(int client) {
    char piece[PIECE_BYTES];
    struct pollfd there = { .fd = client, .events = POLLIN };
    gint64 end = g_get_monotonic_time() + LAST_MILLISECONDS * 1000;
    shutdown(client, SHUT_WR);
    while (g_get_monotonic_time() < end && poll(&there, 1, LAST_MILLISECONDS) > 0 &&
           recv(client, piece, sizeof piece, 0) > 0)
        ;
    close(client);
}

void mtf_http_relay_refuse(int client, const char *status, const char *message) {
    send_error(client, status, message);
    close_client(client);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int status_of(const char *head) {
    const char *space = strchr(head, ' ');
    return space != NULL ? (int)g_ascii_strtoll(space, NULL, 10) : 0;
}

/* What follows the answer's head, from what the head says. */
static Place place_after(const char *head, guint64 *length) {
    static const char json[] = "\r\nContent-Type: application/json\r\n";
    const char *told = strstr(head, "\r\nContent-Length: ");
    if (status_of(head) < 200)
        return IN_HEAD;
    if (status_of(head) >= 400 && strstr(head, json) == NULL)
        return IN_REPLACED;
    if (told == NULL || strstr(head, "\r\nConnection: close\r\n") != NULL)
        return UNTIL_END;
    *length = g_ascii_strtoull(strchr(told, ' '), NULL, 10);
    return *length > 0 ? IN_BODY : IN_HEAD;
}

/* Takes bytes of a head, and sends it or holds it back when it is whole; how many it took, -1 where
 * the client has gone. */
static gssize take_head(Relay *r, const char *bytes, gsize length) {
    gsize before = r->held->len;
    g_string_append_len(r->held, bytes, (gssize)length);
    const char *end = strstr(r->held->str, "\r\n\r\n");
    if (end == NULL)
        return (gssize)length;
    g_string_truncate(r->held, (gsize)(end - r->held->str) + strlen("\r\n\r\n"));
    gssize taken = (gssize)(r->held->len - before);
    r->place = place_after(r->held->str, &r->left);
    r->answers += status_of(r->held->str) >= 200;
    if (r->place == IN_REPLACED)
        return taken;
    bool sent = send_all(r->client, r->held->str, r->held->len);
    g_string_truncate(r->held, 0);
    return sent ? taken : -1;
}

static bool take_answer(Relay *r, const char *bytes, gsize length) {
    for (gssize taken; length > 0; bytes += taken, length -= (gsize)taken) {
        taken = (gssize)length;
        if (r->place == IN_HEAD) {
            taken = take_head(r, bytes, length);
            if (taken < 0)
                return false;
            continue;
        }
        if (r->place == IN_REPLACED) {
            g_string_append_len(r->held, bytes, taken);
            if (r->held->len > MOST_REPLACED)
                return false;
            continue;
        }
        if (r->place == IN_BODY)
            taken = (gssize)MIN(r->left, length);
        if (!send_all(r->client, bytes, (gsize)taken))
            return false;
        r->left -= r->place == IN_BODY ? (guint64)taken : 0;
        if (r->place == IN_BODY && r->left == 0)
            r->place = IN_HEAD;
    }
    return true;
}

/* What stands behind the version in an answer's first line; free with g_free. */
static char *line_status(const char *head) {
    const char *status = strchr(head, ' ') + 1;
    return g_strndup(status, strcspn(status, "\r"));
}

/* The sentence of a page in HTML, without its marks; free with g_free. */
static char *sentence_of(const char *page) {
    GString *sentence = g_string_new(NULL);
    const char *at = strstr(page, "<body>");
    bool in_mark = false;
    for (; at != NULL && *at != '\0' && !g_str_has_prefix(at, "</body>"); at++) {
        in_mark = in_mark || *at == '<';
        if (!in_mark)
            g_string_append_c(sentence, *at);
        in_mark = in_mark && *at != '>';
    }
    if (sentence->len == 0)
        g_string_append(sentence, "this request cannot be answered.");
    return g_string_free(sentence, FALSE);
}

/* Whether something came that no answer has begun for. */
static bool is_unanswered(const Relay *r) {
    return r->place == IN_HEAD &&
           (r->requests.begun > r->answers || (r->has_said && r->answers == 0));
}

/* libmicrohttpd has closed: what the client hears of it. */
static void say_why(const Relay *r) {
    if (r->place == IN_REPLACED) {
        g_autofree char *sentence = sentence_of(r->held->str);
        g_autofree char *status = line_status(r->held->str);
        send_error(r->client, status, sentence);
    } else if (is_unanswered(r) && g_get_monotonic_time() - r->heard >= r->quiet)
        send_error(r->client, "408 Request Timeout", "the rest of the request did not come");
    else if (is_unanswered(r))
        send_error(r->client, "400 Bad Request",
                   "this is no request of HTTP (METHOD PATH HTTP/1.1, headers, an empty line), or "
                   "it ended before it was whole");
}

/* ---- The relay ------------------------------------------------------------------------------- */

/* False: the client cannot be heard any more, and will not listen. */
static bool hear_client(Relay *r) {
    ssize_t n = recv(r->client, r->piece, sizeof r->piece, 0);
    r->waiting = (gsize)MAX(n, 0);
    r->sent = 0;
    r->heard = g_get_monotonic_time();
    r->has_said = r->has_said || n > 0;
    mtf_http_requests_take(&r->requests, r->piece, r->waiting);
    r->client_has_done = n == 0;
    if (n == 0)
        shutdown(r->inner, SHUT_WR);
    return n >= 0;
}

/* What libmicrohttpd no longer takes is thrown away. */
static void pass_on(Relay *r) {
    ssize_t n =
        send(r->inner, r->piece + r->sent, r->waiting - r->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN)
        n = (ssize_t)(r->waiting - r->sent);
    r->sent += (gsize)MAX(n, 0);
    if (r->sent == r->waiting)
        r->waiting = 0;
}

/* False: there is no more to come, or nobody to tell. */
static bool hear_answer(Relay *r) {
    char piece[PIECE_BYTES];
    ssize_t n = recv(r->inner, piece, sizeof piece, 0);
    return n > 0 && take_answer(r, piece, (gsize)n);
}

/* Passes on what comes. True while there is more to come from libmicrohttpd. */
static bool relay_once(Relay *r) {
    struct pollfd ends[2] = { { .fd = r->inner, .events = POLLIN }, { .fd = r->client } };
    if (r->waiting > 0)
        ends[0].events |= POLLOUT;
    else if (!r->client_has_done)
        ends[1].events = POLLIN;
    if (r->waiting > 0 || r->client_has_done)
        ends[1].fd = -1;
    if (poll(ends, 2, -1) < 0)
        return errno == EINTR;
    if ((ends[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !hear_answer(r))
        return false;
    if ((ends[0].revents & POLLOUT) != 0)
        pass_on(r);
    return ends[1].revents == 0 || hear_client(r);
}

/* What the client says while libmicrohttpd closes, since it was quiet for too long. */
static void hear_late(Relay *r) {
    gint64 heard = r->heard;
    struct pollfd client = { .fd = r->client, .events = POLLIN };
    if (!r->client_has_done && poll(&client, 1, 0) > 0 && hear_client(r))
        r->heard = heard;
}

void mtf_http_relay_run(int client, int inner, unsigned quiet_seconds) {
    Relay r = { .client = client,
                .inner = inner,
                .heard = g_get_monotonic_time(),
                .quiet = (gint64)quiet_seconds * G_USEC_PER_SEC,
                .held = g_string_new(NULL) };
    struct timeval most = { .tv_sec = quiet_seconds };
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    while (relay_once(&r))
        ;
    hear_late(&r);
    say_why(&r);
    close(inner);
    close_client(client);
    g_string_free(r.held, TRUE);
}
