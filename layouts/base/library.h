// SPDX-License-Identifier: GPL-3.0-or-later
/* The library of ready files, one folder a kind:
 *
 *     library/machines/tpu-v2.json     library/graphs/…     library/layouts/…
 *
 * It is looked for in $MESHTF_LIBRARY, then beside the installed program
 * (BINDIR/../share/meshtf-plan/library), then in the source tree around the build folder
 * (layouts/library in a folder above the program). */
#ifndef MTF_LIBRARY_H
#define MTF_LIBRARY_H

#include "layouts/base/json_reader.h"

/* The names of a kind ("machines", "graphs"), sorted; NULL-terminated, free with g_strfreev. Empty
 * when the library has none of them. */
char **mtf_library_list(const char *kind, GError **error);

/* The path of what the user meant by `name`: a library name, or a file's path (it has a slash, ends
 * in .json or .gz, is "-", or is no library name but a file that exists). Free with g_free. An
 * unknown name is a bad-input error that lists the known ones. */
char *mtf_library_find(const char *kind, const char *name, GError **error);

/* The document found so; NULL with an error. */
MtfJsonDocument *mtf_library_load(const char *kind, const char *name, GError **error);

#endif
