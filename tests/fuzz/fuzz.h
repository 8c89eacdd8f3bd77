// SPDX-License-Identifier: GPL-3.0-or-later
/* Fuzz targets: one program a file format, fuzz_FORMAT.c, linked with driver.c, which calls the
 * target with every seed and then with mutations of them, a pure function of the input's number:
 *
 *     corpus ──► input 0, 1, … n-1 unchanged; n, n+1, … mutated by counter-based random numbers
 *
 * so "input 4711" is the same bytes on every machine. A target aborts (g_assert) on a wrong answer.
 */
#ifndef MTF_TESTS_FUZZ_H
#define MTF_TESTS_FUZZ_H

#include "layouts/base/json_reader.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libFuzzer's interface. Returns 0, or -1 when the input was refused. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Folders of seeds below the top of the source tree, NULL-terminated. Each target defines it. */
extern const char *const mtf_fuzz_corpus[];

/* Aborts unless a loader kept its word: a result and no error, or no result and one sentence on one
 * line saying that the input is bad. */
void mtf_fuzz_judge(bool has_result, const GError *error);

/* Parses an input as a JSON file; NULL, with the error judged, when it is none. */
MtfJsonDocument *mtf_fuzz_document(const uint8_t *data, size_t size);

#endif
