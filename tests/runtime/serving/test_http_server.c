// SPDX-License-Identifier: GPL-3.0-or-later
/* What a client hears of a request that is too large, is no HTTP, or comes when all connections are taken: one
 * error in JSON with the right status. Requests go through sockets as any client's do. */
#include "runtime/serving/http_server.h"

#include "tests/support/cmocka.h"
#include "tests/support/http_client.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_BYTES 100
#define HEAD_BYTES 2000
#define CONNECTIONS 2
#define CROWD 60
#define QUIET_SECONDS 2

static char ok[] = "{\"status\":\"ok\"}", html[] = "<p>x</p>";
static const MtfHttpPage pages[] = { { "GET", "/health", ok, NULL },
                                     { "GET", "/", html, "text/html" },
                                     { "POST", "/calls", NULL, NULL } };

static MtfHttpServer *open_server(void) {
    const MtfHttpSettings settings = { .pages = pages,
                                       .n_pages = G_N_ELEMENTS(pages),
                                       .body_bytes = BODY_BYTES,
                                       .head_bytes = HEAD_BYTES,
                                       .connections = CONNECTIONS,
                                       .quiet_seconds = QUIET_SECONDS };
    MtfHttpServer *server = mtf_http_server_open(&settings, NULL);
    assert_non_null(server);
    return server;
}

/* That a request is answered so, and by no more than one answer. */
static void hears(const MtfHttpServer *server, const char *request, const char *status,
                  const char *text) {
    g_autofree char *answer =
        mtf_http_client_ask(mtf_http_server_port(server), request, strlen(request));
    g_autofree char *line = g_strdup_printf("HTTP/1.1 %s", status);
    if (!g_str_has_prefix(answer, line) || strstr(answer, text) == NULL)
        fail_msg("%s: %s", status, answer);
}

TEST(pages_are_answered_with_their_type) {
    MtfHttpServer *server = open_server();
    hears(server, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "200", "application/json");
    hears(server, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200", "text/html");
    mtf_http_server_close(server, 0.1);
}

TEST(large_headers_are_refused_in_json) {
    MtfHttpServer *server = open_server();
    g_autofree char *filling = g_strnfill(HEAD_BYTES, 'a');
    g_autofree char *header =
        g_strdup_printf("GET /health HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", filling);
    g_autofree char *address = g_strdup_printf("GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", filling);
    hears(server, header, "431", "\"code\":431");
    hears(server, header, "431", "larger than 2000 bytes");
    hears(server, address, "431", "\"code\":431");
    hears(server, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "200", "ok");
    mtf_http_server_close(server, 0.1);
}

TEST(long_bodies_are_refused_in_json) {
    MtfHttpServer *server = open_server();
    hears(server, "POST /calls HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413",
          "\"code\":413");
    hears(server, "POST /calls HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400", "");
    hears(server, "POST /calls HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
          "413", "");
    hears(server, "DELETE /calls HTTP/1.1\r\nHost: x\r\n\r\n", "405", "\"code\":405");
    mtf_http_server_close(server, 0.1);
}

TEST(bodies_in_other_encodings_are_refused_in_json) {
    MtfHttpServer *server = open_server();
    hears(server, "POST /calls HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabc", "501",
          "\"code\":501");
    mtf_http_server_close(server, 0.1);
}

/* Whether somebody is answered within two seconds. */
static bool serves_again(const MtfHttpServer *server) {
    bool served = false;
    for (int i = 0; i < 200 && !served; i++) {
        const char *request = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
        g_autofree char *answer =
            mtf_http_client_ask(mtf_http_server_port(server), request, strlen(request));
        served = g_str_has_prefix(answer, "HTTP/1.1 200");
        g_usleep(served ? 0 : 10000);
    }
    return served;
}

TEST(more_clients_than_connections_hear_that_the_server_is_busy) {
    MtfHttpServer *server = open_server();
    int first[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        first[i] = mtf_http_client_connect(mtf_http_server_port(server));
    hears(server, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "503",
          "the server is busy: 2 connections are open");
    hears(server, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "503", "Retry-After");
    close(first[0]);
    assert_true(serves_again(server));
    close(first[1]);
    mtf_http_server_close(server, 0.1);
}

/* Beyond the limit of libmicrohttpd, too, which it does not survive. */
TEST(a_crowd_that_leaves_holds_up_nobody) {
    MtfHttpServer *server = open_server();
    int crowd[CROWD];
    for (int i = 0; i < CROWD; i++)
        crowd[i] = mtf_http_client_connect(mtf_http_server_port(server));
    g_usleep(50000);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    assert_true(serves_again(server));
    mtf_http_server_close(server, 0.1);
}

/* Each is refused by libmicrohttpd, with HTML or without a word. */
TEST(what_is_no_http_is_refused_in_json) {
    static const struct {
        const char *request, *status, *text;
    } wrong[] = {
        { "GARBAGE\r\n\r\n", "400", "this is no request of HTTP" },
        { "GET\r\n\r\n", "400", "this is no request of HTTP" },
        { "\x16\x03\x01\x02\r\n\r\n", "400", "this is no request of HTTP" },
        { " GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400", "this is no request of HTTP" },
        { "GET / XTTP/1.1\r\nHost: x\r\n\r\n", "400", "syntactically incorrect" },
        { "GET / HTTP/9.1\r\nHost: x\r\n\r\n", "505", "HTTP version is not supported" },
        { "GET / HTTP/1.1\r\nno header\r\n\r\n", "400", "syntactically incorrect" },
        { "POST /calls HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400",
          "wrong value for Content-Length header" },
        { "POST /calls HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400",
          "chunked encoding was syntactically incorrect" },
    };
    MtfHttpServer *server = open_server();
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        hears(server, wrong[i].request, wrong[i].status, wrong[i].text);
        hears(server, wrong[i].request, wrong[i].status, "Content-Type: application/json\r\n");
        hears(server, wrong[i].request, wrong[i].status, "\r\n\r\n{\"error\":{\"message\":");
    }
    hears(server, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "200", "ok");
    mtf_http_server_close(server, 0.1);
}

/* Sends a request and reads one answer, which is the status' line and all up to `last`. */
static void hears_next(int client, const char *request, const char *status, const char *last) {
    g_autoptr(GString) answer = g_string_new(NULL);
    assert_int_equal(send(client, request, strlen(request), 0), strlen(request));
    for (char c; !g_str_has_suffix(answer->str, last) && recv(client, &c, 1, 0) == 1;)
        g_string_append_c(answer, c);
    if (!g_str_has_prefix(answer->str, status) || !g_str_has_suffix(answer->str, last))
        fail_msg("%s: %s", status, answer->str);
}

TEST(a_connection_serves_until_its_first_bad_request) {
    MtfHttpServer *server = open_server();
    int client = mtf_http_client_connect(mtf_http_server_port(server));
    char more;
    hears_next(client, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", ok);
    hears_next(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", html);
    hears_next(client, "WHAT\r\n\r\n", "HTTP/1.1 400", "\"code\":400}}");
    assert_int_equal(recv(client, &more, 1, 0), 0);
    close(client);
    mtf_http_server_close(server, 0.1);
}

/* A head without a body is no answer that goes on. */
/* How often a text occurs in another. */
static int count_of(const char *text, const char *part) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

/* Behind whole requests in one piece of what a client sends: each of those is answered, then comes one error, and
 * where nothing stands behind them there is none. */
TEST(what_stands_behind_good_requests_is_refused_in_json) {
    static const struct {
        const char *text;
        int good, bad;
    } cases[] = {
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 1, 0 },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\n\r\n", 1, 0 },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n", 2, 0 },
        { "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 1, 0 },
        { "GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
          1, 0 },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\ngarbage", 1, 1 },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\ngarbage\r\n\r\n", 1, 1 },
        { "GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHo", 1, 1 },
        { "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcdef", 1, 1 },
        { "GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n!",
          1, 1 },
    };
    MtfHttpServer *server = open_server();
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *answers =
            mtf_http_client_ask(mtf_http_server_port(server), cases[i].text, strlen(cases[i].text));
        int good = count_of(answers, "HTTP/1.1 200"), bad = count_of(answers, "{\"error\":");
        if (good != cases[i].good || bad != cases[i].bad ||
            count_of(answers, "HTTP/1.1 ") != good + bad)
            fail_msg("%s: %s", cases[i].text, answers);
    }
    mtf_http_server_close(server, 0.1);
}

TEST(asking_for_a_head_is_refused) {
    MtfHttpServer *server = open_server();
    const char *request = "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n";
    g_autofree char *answer =
        mtf_http_client_ask(mtf_http_server_port(server), request, strlen(request));
    assert_true(g_str_has_prefix(answer, "HTTP/1.1 405"));
    assert_true(g_str_has_suffix(answer, "\r\n\r\n"));
    mtf_http_server_close(server, 0.1);
}

/* The head of a request and then nothing: the client still listens. */
TEST(a_request_that_does_not_go_on_is_refused_in_time) {
    MtfHttpServer *server = open_server();
    int client = mtf_http_client_connect(mtf_http_server_port(server));
    const char *begun = "GET /health HTTP/1.1\r\nHo";
    char answer[1000] = "";
    assert_int_equal(send(client, begun, strlen(begun), 0), strlen(begun));
    assert_true(recv(client, answer, sizeof answer - 1, 0) > 0);
    assert_true(g_str_has_prefix(answer, "HTTP/1.1 408 Request Timeout\r\n"));
    assert_non_null(strstr(answer, "\"code\":408"));
    close(client);
    mtf_http_server_close(server, 0.1);
}

/* A request that ends early is over at once, not when the connection is old. */
TEST(clients_that_leave_in_the_middle_hold_no_connection) {
    MtfHttpServer *server = open_server();
    const char *const cut[] = { "GET /heal", "GET /health HTTP/1.1\r\nHo",
                                "POST /calls HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{" };
    gint64 begin = g_get_monotonic_time();
    for (gsize i = 0; i < G_N_ELEMENTS(cut); i++) {
        g_autofree char *answer =
            mtf_http_client_ask(mtf_http_server_port(server), cut[i], strlen(cut[i]));
        assert_true(g_str_has_prefix(answer, "HTTP/1.1 400"));
        assert_non_null(strstr(answer, "ended before it was whole"));
    }
    assert_true(g_get_monotonic_time() - begin < QUIET_SECONDS * G_USEC_PER_SEC);
    mtf_http_server_close(server, 0.1);
}
