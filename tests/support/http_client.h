// SPDX-License-Identifier: GPL-3.0-or-later
/* A client of a server on 127.0.0.1 that sends whatever bytes it is given. */
#ifndef MTF_TESTS_HTTP_CLIENT_H
#define MTF_TESTS_HTTP_CLIENT_H

#include <glib.h>

/* A socket; the caller closes it. */
int mtf_http_client_connect(int port);

/* Sends the bytes, says that there are no more, gives all that comes back until the server closes, and closes;
 * aborts when that takes ten seconds. Free with g_free. */
char *mtf_http_client_talk(int client, const void *request, gsize length);

/* The same by a connection of its own. */
char *mtf_http_client_ask(int port, const void *request, gsize length);

#endif
