// SPDX-License-Identifier: GPL-3.0-or-later
/* The steps of a tokenizer around its model, read from JSON into lists of steps:
 *
 *     normalizer      text ──► text             Lowercase, NFC, Replace, …
 *     pre_tokenizer   piece ──► pieces          ByteLevel, Metaspace, Split, …
 *     decoder         tokens ──► tokens         ByteLevel, WordPiece, Fuse, …
 *
 * A Sequence is its steps in order. */
#ifndef MTF_TEXT_STEPS_H
#define MTF_TEXT_STEPS_H

#include "layouts/base/json_reader.h"

typedef struct MtfTextStep MtfTextStep;

/* A step at work. `at_start`: the text is where the whole text begins. */
typedef char *(*MtfNormalize)(const MtfTextStep *step, const char *text);
typedef void (*MtfSplit)(const MtfTextStep *step, const char *piece, bool at_start,
                         GPtrArray *pieces);
typedef void (*MtfDecode)(const MtfTextStep *step, GPtrArray *tokens);

struct MtfTextStep {
    MtfNormalize normalize; /* one of the three; returns a new string */
    MtfSplit split;         /* appends new strings */
    MtfDecode decode;       /* changes the list, which owns its strings */
    GRegex *regex;          /* what Split, Replace look for, or NULL */
    char *text;             /* what is put in, or looked for */
    GBytes *bytes;          /* a map of characters, or NULL */
    int mode;               /* of the step's own */
    bool flags[4];
};

/* A row: what "type" says, and how the rest is read. */
typedef struct {
    const char *name;
    bool (*read)(const MtfJson *object, MtfTextStep *step, GError **error);
} MtfTextStepKind;

/* Appends the steps of `object` (null: none) to a list that frees them; `kinds` ends with NULL, `what`
 * completes "... is not a supported ". */
bool mtf_text_steps_read(const MtfJson *object, const MtfTextStepKind *kinds, const char *what,
                         GPtrArray *steps, GError **error);
GPtrArray *mtf_text_steps_new(void);

/* The tables. */
extern const MtfTextStepKind mtf_normalizers[];
extern const MtfTextStepKind mtf_pre_tokenizers[];
extern const MtfTextStepKind mtf_decoders[];

/* Members that may be missing. */
bool mtf_text_flag(const MtfJson *object, const char *key, bool standard);
char *mtf_text_string(const MtfJson *object, const char *key, const char *standard);

/* White space as Unicode and Hugging Face's library have it (U+0085 too, U+180E not). */
bool mtf_text_is_space(gunichar c);

/* A regular expression as they are written for that library (Oniguruma), where \s and \w are Unicode's and
 * a class may hold others: [^(\s|[.,])]. NULL with an error of GRegex. */
GRegex *mtf_text_regex(const char *source, GError **error);

/* {"String": "x"} or {"Regex": "\\s+"} at `key` as a regular expression; NULL with an error. */
GRegex *mtf_text_pattern(const MtfJson *object, const char *key, GError **error);

/* Reads the step that maps characters as a compiled map says (a normalizer). */
bool mtf_text_charsmap(const MtfJson *object, MtfTextStep *step, GError **error);

/* Bytes as valid text: what begins a character as far as it can be one, and every other byte that is of none,
 * becomes one U+FFFD (as Unicode advises and Rust and Python do; GLib puts one for every byte). */
char *mtf_text_valid(const char *bytes, gsize length);

/* Bytes as the characters that byte-level vocabularies have for them (GPT-2's table), and back: bytes
 * that are printable are themselves, the others U+0100 and on. */
char *mtf_bytes_to_characters(const char *bytes);
void mtf_characters_to_bytes(const char *characters, GString *bytes);

#endif
