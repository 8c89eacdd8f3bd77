// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs of known models by name, where a file is meant otherwise: the presets of the families
 * (analyzer/models/model_family.h), as `meshtf-plan model` writes them. */
#ifndef MTF_PRESET_IMPORT_H
#define MTF_PRESET_IMPORT_H

#include "analyzer/import/model_import.h"

/* Whether there is no such file, and a preset is called so. */
bool mtf_is_preset(const char *path);

/* The preset that import->path names, with the sizes, dropout and optimizer that are asked for. Fails when
 * its family lacks what is asked; `said` is as in mtf_import_load. */
MtfGraph *mtf_preset_import(const MtfImport *import, GPtrArray *said, GError **error);

#endif
