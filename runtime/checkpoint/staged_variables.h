// SPDX-License-Identifier: GPL-3.0-or-later
/* The parts of a model that pipeline stages have, moved as one between a file and all ranks:
 *
 *     file       embedding   layer 0   layer 1   layer 2   head
 *     domain 0      x           x                            (x: a tied table is its owner's)
 *     domain 1                            x         x       x
 *
 * Each domain moves its own variables, all at once. Without stages the worker has the whole model. */
#ifndef MTF_STAGED_VARIABLES_H
#define MTF_STAGED_VARIABLES_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/tensor_file.h"

/* The graph that `what` is about: of a pipeline the whole. */
const MtfGraph *mtf_checkpointed_graph(const MtfCheckpointed *what);

/* mtf_tensor_file_read, mtf_tensor_file_write or mtf_tensor_file_copy. */
typedef bool (*MtfTensorFileMove)(const MtfTensorFile *tensors, uint64_t *checksum, GError **error);

/* Collective over the control communicator: moves what `data` lists, with numbers of tensors of
 * mtf_checkpointed_graph, by `move`; `*checksum` is the sum over all parts. Fails on all ranks or on none. */
bool mtf_staged_variables_move(const MtfCheckpointed *what, const MtfTensorFile *data,
                               MtfTensorFileMove move, uint64_t *checksum, GError **error);

/* One of the rank's stages (0 … what->n_more) as if it were all; what->whole is NULL then. */
MtfCheckpointed mtf_checkpointed_part(const MtfCheckpointed *what, int part);

#endif
