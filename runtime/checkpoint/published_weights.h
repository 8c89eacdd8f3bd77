// SPDX-License-Identifier: GPL-3.0-or-later
/* The weights of a published model: an ONNX file (onnx_weights.h), or a folder with model.safetensors, or
 * with several such files and model.safetensors.index.json, which says what is in which. A variable's
 * `stored` says which tensor of the folder it is, or which part of one (stored_place.h). Files of a model
 * with or without its head name their tensors with or without a prefix ("transformer.h.0.…" and "h.0.…"): a
 * name that is not there means the one that ends with it.
 *
 * All functions are collective over the control communicator and fail on all ranks or on none. */
#ifndef MTF_PUBLISHED_WEIGHTS_H
#define MTF_PUBLISHED_WEIGHTS_H

#include "runtime/checkpoint/checkpoint.h"

/* Whether initial weights come from a folder or an ONNX file, as rank 0 sees it. */
bool mtf_published_weights_are_at(MPI_Comm control, const char *path);

/* Reads all variables that count as MTF_MEMORY_VARIABLE and are no adapters (of an ONNX file, which also
 * gives variables a constant as initial value, those that have a place there); each rank reads pieces of the
 * files and none holds a whole tensor. Fails (bad input) where a file is missing, broken, or holds tensors of
 * other shapes than the model's. */
bool mtf_published_weights_read(const MtfCheckpointed *what, const char *folder, GError **error);

/* Reads all adapters from a folder as adapter_weights.h says. Fails (bad input) where the model has none, or
 * others than the folder: of another rank, scale or kind, or of other modules. */
bool mtf_published_adapters_read(const MtfCheckpointed *what, const char *folder, GError **error);

/* Whether the model says where published files keep each of its weights, or with `adapters` that it has some
 * and where they are kept; fails (bad input) as the two below do. Not collective. */
bool mtf_published_weights_check(const MtfGraph *graph, bool adapters, GError **error);

/* Writes FOLDER/model.safetensors, adapters added in, whole or not at all, and makes the folder where it is
 * not there. `like` (or NULL) is a folder whose names and types are taken over, and its config.json. */
bool mtf_published_weights_write(const MtfCheckpointed *what, const char *folder, const char *like,
                                 GError **error);

/* Writes a model's adapters to FOLDER, as adapter_weights.h says; `base` (or NULL) is where the other
 * weights came from. Fails (bad input) where it has none. */
bool mtf_published_adapters_write(const MtfCheckpointed *what, const char *folder, const char *base,
                                  GError **error);

#endif
