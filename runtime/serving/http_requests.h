// SPDX-License-Identifier: GPL-3.0-or-later
/* How many requests a client has begun, from the bytes that it sends one after another:
 *
 *     GET / HTTP/1.1⏎ … ⏎⏎   POST /v1 HTTP/1.1⏎ … Content-Length: 2⏎⏎{}   garbage
 *     └────── 1 ───────┘     └──────────────── 2 ──────────────────┘     3 has begun
 *
 * Nothing is judged: what is no request of HTTP has begun when its first byte came, and ends like one. */
#ifndef MTF_HTTP_REQUESTS_H
#define MTF_HTTP_REQUESTS_H

#include <glib.h>

typedef enum {
    MTF_HTTP_BETWEEN, /* requests, or before the first */
    MTF_HTTP_HEAD,
    MTF_HTTP_BODY,       /* of a length that the head told */
    MTF_HTTP_CHUNK_SIZE, /* a line */
    MTF_HTTP_CHUNK,
    MTF_HTTP_TRAILER,
} MtfHttpPlace;

#define MTF_HTTP_LINE 64 /* bytes of a line that are looked at */

/* Zero-initialise. */
typedef struct {
    guint64 begun;
    MtfHttpPlace place;
    guint64 left; /* bytes of the body or chunk */
    gboolean chunked;
    char line[MTF_HTTP_LINE]; /* its beginning, so far */
    gsize length;             /* of the line */
} MtfHttpRequests;

/* Takes the next bytes. */
void mtf_http_requests_take(MtfHttpRequests *requests, const char *bytes, gsize length);

#endif
