// SPDX-License-Identifier: GPL-3.0-or-later
/* What templates may call by name: functions, methods of texts and objects, filters and tests, a row each, as
 * Jinja and Python have them. */
#ifndef MTF_TEMPLATE_WORDS_H
#define MTF_TEMPLATE_WORDS_H

#include "runtime/template/template_values.h"

typedef enum {
    MTF_WORD_FUNCTION, /* raise_exception(text) */
    MTF_WORD_METHOD,   /* text.strip() */
    MTF_WORD_FILTER,   /* text | trim */
    MTF_WORD_TEST,     /* text is string */
} MtfWordKind;

#define MTF_MOST_ARGUMENTS 8

/* Values, the one that is asked first but of functions; keys of those given by name, else NULL. */
typedef struct {
    const cJSON *values[MTF_MOST_ARGUMENTS];
    const char *keys[MTF_MOST_ARGUMENTS];
    int n;
} MtfWordArguments;

/* Whether there is a word of that kind and name. */
bool mtf_template_has(MtfWordKind kind, const char *name);

/* What comes of it; fails where arguments are not what the word takes. The word must be there. */
const cJSON *mtf_template_call(MtfTemplateMaker *maker, MtfWordKind kind, const char *name,
                               const MtfWordArguments *arguments);

#endif
