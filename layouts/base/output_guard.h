// SPDX-License-Identifier: GPL-3.0-or-later
/* What a program writes arrives, or the user hears of it: of a file that cannot be written because of
 * how it is named before the work begins and not hours later, and of standard output, whose lines nobody
 * checks one by one (`> plans.txt` on a full disk), when the program ends. */
#ifndef MTF_OUTPUT_GUARD_H
#define MTF_OUTPUT_GUARD_H

#include <glib.h>
#include <stdbool.h>

/* From now on a program that ends with status 0 ends with 1 and a sentence, "PROGRAM: standard output:
 * cannot be written: …", if standard output has not taken all that was printed. */
void mtf_output_guard_begin(void);

/* Whether `path` names a place for a file: nothing or "-" (standard output), a file, device or pipe, or
 * a new name in a folder that may be written to. Otherwise a bad-input error. */
bool mtf_output_check_file(const char *path, GError **error);

/* The same of a folder, which may have to be made along with those above it. */
bool mtf_output_check_folder(const char *path, GError **error);

#endif
