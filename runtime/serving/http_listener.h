// SPDX-License-Identifier: GPL-3.0-or-later
/* Clients of a port of 127.0.0.1, each handed to a function in the order that they came. */
#ifndef MTF_HTTP_LISTENER_H
#define MTF_HTTP_LISTENER_H

#include <glib.h>

typedef struct MtfHttpListener MtfHttpListener;

/* Takes one client, whose socket it owns; others wait until it returns. */
typedef void (*MtfHttpTake)(int client, void *user);

/* Listens to the port; 0: a free one. Fails (bad input) when it is not free, or not for this user. */
MtfHttpListener *mtf_http_listener_open(int port, MtfHttpTake take, void *user, GError **error);
int mtf_http_listener_port(const MtfHttpListener *listener);

/* Accepts nobody any more, and frees. */
void mtf_http_listener_close(MtfHttpListener *listener);

#endif
