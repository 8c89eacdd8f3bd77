// SPDX-License-Identifier: GPL-3.0-or-later
/* Where a safetensors file has its tensors, so that an ONNX file beside it can name them as external
 * data. Only the header is read. */
#ifndef MTF_STORED_WEIGHTS_H
#define MTF_STORED_WEIGHTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct MtfStoredWeights MtfStoredWeights;

typedef struct {
    int type;               /* MtfOnnxType */
    int64_t offset, length; /* bytes of the file */
} MtfStoredWeight;

/* Fails (bad input) where the file cannot be read, or has no header. */
MtfStoredWeights *mtf_stored_weights_open(const char *path, GError **error);
void mtf_stored_weights_free(MtfStoredWeights *weights);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStoredWeights, mtf_stored_weights_free)

/* The file's name without its folder. */
const char *mtf_stored_weights_location(const MtfStoredWeights *weights);

/* Fails (bad input) where there is no such tensor, or its type is no float of ONNX. */
bool mtf_stored_weights_find(const MtfStoredWeights *weights, const char *name,
                             MtfStoredWeight *weight, GError **error);

#endif
