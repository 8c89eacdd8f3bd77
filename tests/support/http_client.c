// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/http_client.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_MILLISECONDS 10000

int mtf_http_client_connect(int port) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((guint16)port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    g_assert(client >= 0);
    g_assert(connect(client, (struct sockaddr *)(void *)&address, sizeof address) == 0);
    return client;
}

char *mtf_http_client_talk(int client, const void *request, gsize length) {
    GString *answer = g_string_new(NULL);
    char piece[4096];
    ssize_t n = 1;
    /* A server that has heard enough may close before all is sent. */
    for (gsize at = 0; at < length && n > 0; at += (gsize)MAX(n, 0))
        n = send(client, (const char *)request + at, length - at, MSG_NOSIGNAL);
    shutdown(client, SHUT_WR);
    for (n = 1; n > 0;) {
        struct pollfd there = { .fd = client, .events = POLLIN };
        g_assert(poll(&there, 1, MOST_MILLISECONDS) == 1);
        n = recv(client, piece, sizeof piece, 0);
        g_string_append_len(answer, piece, MAX(n, 0));
    }
    close(client);
    return g_string_free(answer, FALSE);
}

char *mtf_http_client_ask(int port, const void *request, gsize length) {
    return mtf_http_client_talk(mtf_http_client_connect(port), request, length);
}
