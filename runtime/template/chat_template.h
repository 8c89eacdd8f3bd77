// SPDX-License-Identifier: GPL-3.0-or-later
/* How a published model's folder spells a conversation: its template, of chat_template.jinja or of
 * tokenizer_config.json, and the special tokens that this names.
 *
 *     [{"role": "user", "content": "Hi"}]  ──►  "<s>[INST] Hi [/INST]"                                    */
#ifndef MTF_CHAT_TEMPLATE_H
#define MTF_CHAT_TEMPLATE_H

#include <cjson/cJSON.h>
#include <glib.h>

typedef struct MtfChatTemplate MtfChatTemplate;

/* The template of a folder. NULL without an error where it has none or `path` is no folder; with a bad-input
 * error, which names the file and the line, where it has one that cannot be read or asks for what is not
 * supported. */
MtfChatTemplate *mtf_chat_template_load(const char *path, GError **error);

/* The same from a text, without special tokens; `name` stands for the file in messages. */
MtfChatTemplate *mtf_chat_template_parse(const char *name, const char *text, GError **error);
void mtf_chat_template_free(MtfChatTemplate *template); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfChatTemplate, mtf_chat_template_free)

/* What the template makes of an object's names (messages, add_generation_prompt …), those of special tokens
 * added. Fails (bad input) where the template does. Free with g_free. */
char *mtf_chat_template_spell(const MtfChatTemplate *template, const cJSON *names, GError **error);

#endif
