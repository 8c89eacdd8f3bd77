// SPDX-License-Identifier: GPL-3.0-or-later
/* What the three programs share on the command line: options by GLib, errors in one sentence on
 * standard error, and the exit statuses of design.md (0 done, 1 failed, 2 bad input, 3 nothing
 * fits). Quantities are read with their units: `16GiB`, `50GB/s`, `1.5us`. */
#ifndef MTF_COMMAND_LINE_H
#define MTF_COMMAND_LINE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_VERSION "0.1.0"
#define MTF_DATE "2026-11-21" /* of this version, for manuals */

/* What an option of whole numbers holds that is not given: none that anybody types. */
#define MTF_NOT_GIVEN G_MININT64

/* The same of an option of a count, an int. */
#define MTF_NO_COUNT G_MININT

/* How a command is called: what follows its name in --help ("GRAPH --mesh MESH"), the text below
 * that line, and the fewest and most arguments that are not options. */
typedef struct {
    const char *arguments;
    const char *summary;
    int low;
    int high;
    const char *purpose; /* of a program of one command, for its manual; NULL otherwise */
} MtfUsage;

/* Parses options into the variables of `entries`. `*argc` and `*argv` keep the arguments that are
 * not options, argv[0] included; too few or too many of them is an error. `--help` prints and ends
 * the program, and so does `--manual` in one of one command; while a manual is open
 * (command_manual.h) the command is described there and false returned without an error. */
bool mtf_command_line_read(int *argc, char ***argv, const GOptionEntry *entries,
                           const MtfUsage *usage, GError **error);

/* The same with the usage spelled out in place. */
#define mtf_command_line_parse(argc, argv, entries, arguments, summary, low, high, error)          \
    mtf_command_line_read(argc, argv, entries, &(MtfUsage){ arguments, summary, low, high, NULL }, \
                          error)

/* Frees the texts, and lists of them, that options put into the variables of `entries`. */
void mtf_command_line_clear(const GOptionEntry *entries);

/* Prints "PROGRAM: MESSAGE" on standard error, frees the error and returns its exit status; without
 * an error 0. */
int mtf_command_line_fail(const char *program, GError *error);

/* Whether the value of a numeric option lies between `least` and `most`, or is at least `least` where
 * `most` is INT64_MAX; an error names the option and the range. */
bool mtf_option_between(const char *option, int64_t value, int64_t least, int64_t most,
                        GError **error);

/* A count that is given must be at least 1; one that is not (MTF_NO_COUNT) becomes 0. */
bool mtf_option_count(const char *option, int *count, GError **error);

/* Reads "auto", or a count of 1 to `most`; auto, and an option that is not given, is 0. */
bool mtf_option_auto_or_count(const char *option, const char *text, int most, int *count,
                              GError **error);

/* Reads a size in bytes: a number and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (none = bytes).
 * At least 0 and below 2^62. */
bool mtf_bytes_parse(const char *text, int64_t *bytes, GError **error);

/* Prints a size for people, "1.50 GiB"; free with g_free. */
char *mtf_bytes_format(double bytes);

/* Prints a time for people with three digits, "1.23 ms"; free with g_free. */
char *mtf_seconds_format(double seconds);

/* Prints a count or rate for people with three digits and an SI prefix, to be followed by its unit:
 * "218 T" for 218e12, "12 " for 12; free with g_free. */
char *mtf_count_format(double count);

#endif
