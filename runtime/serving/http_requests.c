// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/http_requests.h"

#include <string.h>

/* What follows a head, or a line of the body in chunks. */
static MtfHttpPlace after_head(const MtfHttpRequests *r) {
    return r->chunked ? MTF_HTTP_CHUNK_SIZE : r->left > 0 ? MTF_HTTP_BODY : MTF_HTTP_BETWEEN;
}

/* The value of a header of that name, or NULL. */
static const char *value_of(const char *line, const char *name) {
    gsize n = strlen(name);
    return g_ascii_strncasecmp(line, name, n) == 0 && line[n] == ':' ? line + n + 1 : NULL;
}

static void end_head_line(MtfHttpRequests *r) {
    const char *length = value_of(r->line, "Content-Length");
    const char *encoding = value_of(r->line, "Transfer-Encoding");
    if (r->length == 0)
        r->place = after_head(r);
    if (length != NULL)
        r->left = g_ascii_strtoull(length, NULL, 10);
    if (encoding != NULL)
        r->chunked = strstr(encoding, "chunked") != NULL;
}

/* A chunk's bytes end with a line's end of their own, which is an empty line here. */
static void end_size_line(MtfHttpRequests *r) {
    if (r->length == 0)
        return;
    r->left = g_ascii_strtoull(r->line, NULL, 16);
    r->place = r->left > 0 ? MTF_HTTP_CHUNK : MTF_HTTP_TRAILER;
}

static void end_line(MtfHttpRequests *r) {
    if (r->length > 0 && r->length < MTF_HTTP_LINE && r->line[r->length - 1] == '\r')
        r->length--;
    r->line[MIN(r->length, MTF_HTTP_LINE - 1)] = '\0';
    if (r->place == MTF_HTTP_HEAD)
        end_head_line(r);
    else if (r->place == MTF_HTTP_CHUNK_SIZE)
        end_size_line(r);
    else if (r->length == 0)
        r->place = MTF_HTTP_BETWEEN;
    r->length = 0;
}

static void take_byte(MtfHttpRequests *r, char byte) {
    if (r->place == MTF_HTTP_BETWEEN && byte != '\r' && byte != '\n') {
        r->begun++;
        r->place = MTF_HTTP_HEAD;
        r->left = 0;
        r->chunked = FALSE;
        r->length = 0;
    }
    if (r->place == MTF_HTTP_BETWEEN)
        return;
    if (byte == '\n') {
        end_line(r);
        return;
    }
    if (r->length < MTF_HTTP_LINE)
        r->line[r->length] = byte;
    r->length++;
}

void mtf_http_requests_take(MtfHttpRequests *r, const char *bytes, gsize length) {
    for (gsize i = 0; i < length;) {
        if (r->place != MTF_HTTP_BODY && r->place != MTF_HTTP_CHUNK) {
            take_byte(r, bytes[i++]);
            continue;
        }
        gsize some = (gsize)MIN(r->left, length - i);
        r->left -= some;
        i += some;
        if (r->left == 0)
            r->place = r->place == MTF_HTTP_CHUNK ? MTF_HTTP_CHUNK_SIZE : MTF_HTTP_BETWEEN;
    }
}
