// SPDX-License-Identifier: GPL-3.0-or-later
/* Windows of a text, taken as bytes. The training part is the first nine tenths of the file, or all
 * of it where that would be shorter than one window and the byte after it.
 *
 *     |-------- training part --------|- held out -|
 *           [ window of L + 1 bytes )        tokens: its first L; next tokens: its last L */
#ifndef MTF_DATA_TEXT_H
#define MTF_DATA_TEXT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfText MtfText;

/* Opens a file for windows of `window` tokens. Fails when it cannot be read, is shorter than a
 * window and one byte, or holds a byte of `bound` or more. */
MtfText *mtf_text_open(const char *path, int64_t window, int64_t bound, GError **error);
void mtf_text_close(MtfText *text);

/* Reads the window of an example. Fails when the file has become unreadable or shorter. */
bool mtf_text_load(MtfText *text, uint64_t seed, int64_t step, int64_t example, GError **error);

/* What guessing bytes by their frequency alone would lose, in nats a byte: the order-0 entropy of
 * the training part (of its first 64 MiB). NAN when the file has become unreadable. */
double mtf_text_entropy(const MtfText *text);

/* "text of N bytes" and a digest of 64 KiB spread over it; free with g_free. Fails when the file
 * has become unreadable. */
char *mtf_text_identity(const MtfText *text, GError **error);

/* Byte `place` (0 … window) of the window loaded last. */
int mtf_text_byte(const MtfText *text, int64_t place);

#endif
