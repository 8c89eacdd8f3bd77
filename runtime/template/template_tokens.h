// SPDX-License-Identifier: GPL-3.0-or-later
/* A Jinja template cut into tokens: text as it is to be said, and the words inside tags.
 *
 *     Hi {{ name -}} !{% if x %}       TEXT "Hi "  PRINT  NAME name  END  TEXT "!"  BLOCK  NAME if  NAME x  END
 *
 * White space around tags goes as Hugging Face's library asks Jinja: blanks before a block's tag that begins
 * a line, the end of a line behind one, and whatever `-` stands next to. Comments are gone. */
#ifndef MTF_TEMPLATE_TOKENS_H
#define MTF_TEMPLATE_TOKENS_H

#include <glib.h>

typedef enum {
    MTF_TOKEN_TEXT,
    MTF_TOKEN_PRINT, /* {{ */
    MTF_TOKEN_BLOCK, /* {% */
    MTF_TOKEN_END,   /* of either, or of the template where nothing follows */
    MTF_TOKEN_NAME,
    MTF_TOKEN_STRING, /* without quotes and escapes */
    MTF_TOKEN_NUMBER,
    MTF_TOKEN_SYMBOL,
} MtfTokenKind;

typedef struct {
    MtfTokenKind kind;
    int line;
    char *text;
} MtfTemplateToken;

/* A list of tokens, the last an END; NULL with a bad-input error, "line 3: …". Free with g_array_unref. */
GArray *mtf_template_tokens(const char *text, GError **error);

#endif
