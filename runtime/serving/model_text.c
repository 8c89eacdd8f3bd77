// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/model_text.h"

#include "layouts/base/error.h"

#include <inttypes.h>

#define BYTES 256

static bool encode_words(const MtfModelText *model, const char *text, bool special, GArray *tokens,
                         GError **error) {
    guint before = tokens->len;
    if (!mtf_tokenizer_encode(model->tokenizer, text, special, tokens, error))
        return false;
    for (guint i = before; i < tokens->len; i++)
        if (g_array_index(tokens, int, i) >= model->vocabulary)
            return mtf_input_error(error,
                                   "--tokenizer: token %d of the prompt is not one of the model's "
                                   "%" PRId64,
                                   g_array_index(tokens, int, i), model->vocabulary);
    return true;
}

static bool encode(const MtfModelText *model, const char *text, bool special, GArray *tokens,
                   GError **error) {
    if (model->tokenizer != NULL)
        return encode_words(model, text, special, tokens, error);
    for (; *text != '\0'; text++) {
        int id = (unsigned char)*text;
        if (model->vocabulary > BYTES || id >= model->vocabulary)
            return mtf_input_error(
                error, "the model's vocabulary of %" PRId64 " ids is not one of bytes%s",
                model->vocabulary,
                model->vocabulary > BYTES ? ": give --tokenizer, or tokens"
                                          : " up to those of the prompt");
        g_array_append_val(tokens, id);
    }
    return true;
}

bool mtf_model_text_encode(const MtfModelText *model, const char *text, GArray *tokens,
                           GError **error) {
    return encode(model, text, true, tokens, error);
}

bool mtf_model_text_encode_whole(const MtfModelText *model, const char *text, GArray *tokens,
                                 GError **error) {
    return encode(model, text, false, tokens, error);
}

/* Control characters would command the terminal. */
static char shown_byte(int id) {
    return g_ascii_isprint(id) || id == '\n' || id >= 128 ? (char)id : '?';
}

char *mtf_model_text_decode(const MtfModelText *model, const int *tokens, gsize n) {
    if (model->tokenizer != NULL)
        return mtf_tokenizer_decode(model->tokenizer, tokens, n);
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < n; i++)
        if (model->vocabulary > BYTES)
            g_string_append_printf(text, "%s%d", i > 0 ? " " : "", tokens[i]);
        else
            g_string_append_c(text, shown_byte(tokens[i]));
    return g_string_free(text, FALSE);
}
