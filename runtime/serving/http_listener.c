// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/http_listener.h"

#include "layouts/base/error.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAITING_CLIENTS 128
/* Until accepting is tried again where this process has no file left. */
#define FULL_MICROSECONDS 10000

struct MtfHttpListener {
    int socket, port;
    MtfHttpTake take;
    void *user;
    GThread *thread;
};

static gpointer accept_clients(gpointer user) {
    MtfHttpListener *listener = user;
    const int on = 1;
    for (;;) {
        int client = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) {
            setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            listener->take(client, listener->user);
        } else if (errno == EINVAL || errno == EBADF) /* shut down */
            return NULL;
        else if (errno == EMFILE || errno == ENFILE)
            g_usleep(FULL_MICROSECONDS);
    }
}

/* The port listened to, -1 with errno set where it is not. */
static int listen_to(int socket, int port) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((guint16)port) };
    struct sockaddr *any = (struct sockaddr *)(void *)&address;
    socklen_t length = sizeof address;
    const int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(socket, any, length) != 0 || listen(socket, WAITING_CLIENTS) != 0 ||
        getsockname(socket, any, &length) != 0)
        return -1;
    return ntohs(address.sin_port);
}

MtfHttpListener *mtf_http_listener_open(int port, MtfHttpTake take, void *user, GError **error) {
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int found = listening >= 0 ? listen_to(listening, port) : -1;
    if (found < 0) {
        mtf_input_error(error, "--serve %d: this port of 127.0.0.1 cannot be listened to: %s", port,
                        g_strerror(errno));
        if (listening >= 0)
            close(listening);
        return NULL;
    }
    MtfHttpListener *listener = g_new0(MtfHttpListener, 1);
    *listener = (MtfHttpListener){ .socket = listening, .port = found, .take = take, .user = user };
    listener->thread = g_thread_new("http", accept_clients, listener);
    return listener;
}

int mtf_http_listener_port(const MtfHttpListener *listener) {
    return listener->port;
}

void mtf_http_listener_close(MtfHttpListener *listener) {
    shutdown(listener->socket, SHUT_RDWR);
    g_thread_join(listener->thread);
    close(listener->socket);
    g_free(listener);
}
