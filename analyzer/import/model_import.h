// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs from whatever a user has: a graph file, or a model as people publish them (a folder with a
 * config.json, or that file alone; an ONNX file).
 *
 *     graph.json ────────────────────────────────────► graph
 *     llama-7b/config.json ──architecture_config──► network ──build──► graph, named after the folder
 *     resnet50.onnx ──analyzer/onnx────────────────► graph, named after the file
 *     llama2-7b ──────analyzer/models──────────────► graph of the family's preset
 *
 * What a config does not say, the size of a batch and of its texts and the optimizer, is the
 * user's, or a standard value that is said. */
#ifndef MTF_MODEL_IMPORT_H
#define MTF_MODEL_IMPORT_H

#include "layouts/base/json_reader.h"
#include "layouts/graph/graph.h"
#include "layouts/graph_file/graph_json.h"

#define MTF_IMPORT_BATCH 32        /* texts in a batch */
#define MTF_IMPORT_LENGTH 2048     /* the longest text, where the model can read more */
#define MTF_IMPORT_ONNX_LENGTH 128 /* an ONNX file does not say how long its texts may be */

typedef struct {
    const char *path;      /* of a graph, a config.json, or a folder that has one; "-"; a preset's
                              name */
    int64_t batch, length; /* 0: the standard ones; of models only */
    const char *optimizer; /* NULL: adamw; of models only */
    const MtfSizeOverrides *sizes; /* of graphs and ONNX files; or NULL */
    bool sizes_of_models;          /* batch and length are not meant for graphs: no error there */
    const char *loss;    /* of ONNX files: "cross-entropy:labels" (onnx_import.h); or NULL */
    const char *dropout; /* of models: a rate, or "config"; NULL: nothing is dropped */
} MtfImport;

/* Loads a graph. `said` (char *, owned) receives one sentence a thing that was assumed or left out;
 * nothing for a graph file. It may be NULL. */
MtfGraph *mtf_import_load(const MtfImport *import, GPtrArray *said, GError **error);

/* The same from a document that was parsed already; `name` is what the model is called. */
MtfGraph *mtf_import_model(const MtfImport *import, const MtfJson *root, GPtrArray *said,
                           GError **error);

/* Reads sizes, "batch=512" each (NULL-terminated, or NULL); the caller frees names and sizes, on
 * failure too. */
bool mtf_size_overrides_read(const char *const *texts, MtfSizeOverrides *overrides, GError **error);

/* What a user means by `name` where a graph is due: a file, a folder or a preset, as it is, or the
 * file of a graph of the library. Free with g_free; what is none of them is a bad-input error. */
char *mtf_import_find(const char *name, GError **error);

/* The file that `path` means: itself, or the config.json or model.onnx of a folder. Free with g_free. */
char *mtf_import_file(const char *path);

#endif
