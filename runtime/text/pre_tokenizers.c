// SPDX-License-Identifier: GPL-3.0-or-later
/* A piece of text to smaller pieces. */
#include "runtime/text/text_steps.h"

#include <string.h>

/* What becomes of the places that a pattern finds. */
typedef enum { REMOVED, ISOLATED, WITH_PREVIOUS, WITH_NEXT, CONTIGUOUS } Behavior;

static void add(GPtrArray *pieces, const char *from, const char *to) {
    if (to > from)
        g_ptr_array_add(pieces, g_strndup(from, (gsize)(to - from)));
}

/* Cuts at the matches of a regular expression. */
typedef struct {
    Behavior behavior;
    const char *begin; /* of the piece being collected */
    bool in_match;
    GPtrArray *pieces;
} Cutter;

/* One stretch, matched or between matches. */
static void cut(Cutter *c, const char *from, const char *to, bool matched) {
    if (from == to)
        return;
    switch (c->behavior) {
    case REMOVED:
        if (!matched)
            add(c->pieces, from, to);
        return;
    case ISOLATED:
        add(c->pieces, from, to);
        return;
    case WITH_PREVIOUS: /* a match ends the piece that was begun */
        if (matched) {
            add(c->pieces, c->begin, to);
            c->begin = to;
        }
        return;
    case WITH_NEXT: /* a match begins a piece */
        if (matched) {
            add(c->pieces, c->begin, from);
            c->begin = from;
        }
        return;
    case CONTIGUOUS: /* matches side by side are one piece */
        if (matched != c->in_match)
            add(c->pieces, c->begin, from);
        c->begin = matched != c->in_match ? from : c->begin;
        c->in_match = matched;
        return;
    }
}

static void split_by(const GRegex *regex, Behavior behavior, bool invert, const char *piece,
                     GPtrArray *pieces) {
    Cutter c = { behavior, piece, false, pieces };
    GMatchInfo *match;
    int from, to;
    const char *at = piece, *end = piece + strlen(piece);
    g_regex_match(regex, piece, 0, &match);
    for (; g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_match_info_fetch_pos(match, 0, &from, &to);
        if (to <= from)
            continue;
        cut(&c, at, piece + from, invert);
        cut(&c, piece + from, piece + to, !invert);
        at = piece + to;
    }
    g_match_info_unref(match);
    cut(&c, at, end, invert);
    if (behavior > ISOLATED)
        add(pieces, c.begin, end);
}

static void split(const MtfTextStep *step, const char *piece, bool at_start, GPtrArray *pieces) {
    (void)at_start;
    split_by(step->regex, (Behavior)step->mode, step->flags[0], piece, pieces);
}

static bool read_behavior(const MtfJson *object, const char *key, MtfTextStep *step,
                          GError **error) {
    static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous" };
    MtfJson where;
    g_autofree char *name = mtf_text_string(object, key, "Isolated");
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (strcmp(name, names[i]) != 0)
            continue;
        step->mode = (int)i;
        return true;
    }
    mtf_json_find(object, key, &where);
    return mtf_json_fail(&where, error,
                         "\"%s\" is not Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                         "Contiguous",
                         name);
}

static bool read_split(const MtfJson *object, MtfTextStep *step, GError **error) {
    step->split = split;
    step->flags[0] = mtf_text_flag(object, "invert", false);
    step->regex = mtf_text_pattern(object, "pattern", error);
    return step->regex != NULL && read_behavior(object, "behavior", step, error);
}

/* A split by an expression of our own. */
static bool set_split(MtfTextStep *step, const char *source, Behavior behavior) {
    step->split = split;
    step->mode = (int)behavior;
    step->regex = mtf_text_regex(source, NULL);
    g_assert(step->regex != NULL);
    return true;
}

static bool read_whitespace(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    step->flags[0] = true;
    return set_split(step, "[\\w\\x{200c}\\x{200d}]+|[^\\w\\x{200c}\\x{200d}\\s]+", REMOVED);
}

static bool read_spaces(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    return set_split(step, "\\s+", REMOVED);
}

static bool read_digits(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    bool single = mtf_text_flag(object, "individual_digits", false);
    return set_split(step, single ? "\\p{N}" : "\\p{N}+", ISOLATED);
}

#define PUNCTUATION "[!-/:-@\\[-`{-~\\p{P}]"

static bool read_punctuation(const MtfJson *object, MtfTextStep *step, GError **error) {
    return set_split(step, PUNCTUATION, ISOLATED) && read_behavior(object, "behavior", step, error);
}

/* Spaces go, then every mark of punctuation stands alone. */
static void split_bert(const MtfTextStep *step, const char *piece, bool at_start,
                       GPtrArray *pieces) {
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GRegex) spaces = mtf_text_regex("\\s+", NULL);
    (void)at_start;
    split_by(spaces, REMOVED, false, piece, words);
    for (guint i = 0; i < words->len; i++)
        split_by(step->regex, ISOLATED, false, words->pdata[i], pieces);
}

static bool read_bert(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)object;
    (void)error;
    set_split(step, PUNCTUATION, ISOLATED);
    step->split = split_bert;
    return true;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

enum { PREFIX, CUTS };

static void split_bytes(const MtfTextStep *step, const char *piece, bool at_start,
                        GPtrArray *pieces) {
    (void)at_start;
    g_autofree char *text = step->flags[PREFIX] && !g_str_has_prefix(piece, " ")
                                ? g_strconcat(" ", piece, NULL)
                                : g_strdup(piece);
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    if (step->flags[CUTS])
        split_by(step->regex, ISOLATED, false, text, parts);
    else
        g_ptr_array_add(parts, g_strdup(text));
    for (guint i = 0; i < parts->len; i++)
        g_ptr_array_add(pieces, mtf_bytes_to_characters(parts->pdata[i]));
}

/* GPT-2's expression. */
static bool read_bytes(const MtfJson *object, MtfTextStep *step, GError **error) {
    (void)error;
    set_split(step,
              "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
              ISOLATED);
    step->split = split_bytes;
    step->flags[PREFIX] = mtf_text_flag(object, "add_prefix_space", true);
    step->flags[CUTS] = mtf_text_flag(object, "use_regex", true);
    return true;
}

/* ---- Spaces as a mark ------------------------------------------------------------------------ */

typedef enum { ALWAYS, NEVER, FIRST } Prepending;

static void split_marked(const MtfTextStep *step, const char *piece, bool at_start,
                         GPtrArray *pieces) {
    g_auto(GStrv) words = g_strsplit(piece, " ", -1);
    g_autofree char *joined = g_strjoinv(step->text, words);
    bool put = step->mode == ALWAYS || (step->mode == FIRST && at_start);
    g_autofree char *text = put && !g_str_has_prefix(joined, step->text)
                                ? g_strconcat(step->text, joined, NULL)
                                : g_strdup(joined);
    if (!step->flags[0]) {
        add(pieces, text, text + strlen(text));
        return;
    }
    gsize n = strlen(step->text);
    for (const char *begin = text, *next; *begin != '\0'; begin = next) {
        next = strstr(g_str_has_prefix(begin, step->text) ? begin + n : begin, step->text);
        next = next != NULL ? next : begin + strlen(begin);
        add(pieces, begin, next);
    }
}

static bool read_marked(const MtfJson *object, MtfTextStep *step, GError **error) {
    g_autofree char *scheme =
        mtf_text_string(object, "prepend_scheme",
                        mtf_text_flag(object, "add_prefix_space", true) ? "always" : "never");
    step->split = split_marked;
    step->text = mtf_text_string(object, "replacement", "\342\226\201");
    step->flags[0] = mtf_text_flag(object, "split", true);
    step->mode = strcmp(scheme, "always") == 0  ? ALWAYS
                 : strcmp(scheme, "first") == 0 ? FIRST
                                                : NEVER;
    return *step->text != '\0' || mtf_json_fail(object, error, "its \"replacement\" is empty");
}

const MtfTextStepKind mtf_pre_tokenizers[] = {
    { "BertPreTokenizer", read_bert },
    { "ByteLevel", read_bytes },
    { "Digits", read_digits },
    { "Metaspace", read_marked },
    { "Punctuation", read_punctuation },
    { "Split", read_split },
    { "Whitespace", read_whitespace },
    { "WhitespaceSplit", read_spaces },
    { NULL, NULL },
};
