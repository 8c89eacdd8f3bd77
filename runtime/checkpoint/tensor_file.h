// SPDX-License-Identifier: GPL-3.0-or-later
/* Moves whole tensors between a safetensors file and the ranks that keep slices of them. No rank
 * ever holds a whole tensor: the file is walked in windows, every rank reads or writes one piece of
 * a window through MPI-IO, and an exchange brings elements from and to those who keep them.
 *
 *     file      |  piece 0  |  piece 1  |  piece 2  |  next window …        contiguous, each once
 *                    │            │           │
 *                  rank 0       rank 1      rank 2      MPI_File_read_at / write_at
 *                    └─────── MPI_Alltoallv ───┘
 *     slices     those who keep the elements: copies are read by all who keep them, and written by
 *                one of them (mtf_share_owned)
 *
 * Beside the arena this takes at most MTF_STAGING_BYTES a rank, and eight bytes a rank of the run.
 */
#ifndef MTF_TENSOR_FILE_H
#define MTF_TENSOR_FILE_H

#include "runtime/checkpoint/block_scales.h"
#include "runtime/worker/worker.h"

#include <mpi.h>

#define MTF_STAGING_BYTES (INT64_C(48) << 20)

/* Elements [begin, begin + count) of a graph's tensor and the blocks of a file's tensor that they
 * are: the first at element `first`, each `block` long and `stride` from the next. */
typedef struct {
    int stored; /* of the file */
    int tensor; /* of the graph */
    int64_t begin, count;
    int64_t first, block, stride;
    MtfBlockScales scales;  /* of what is read */
    MtfPackedMatrix packed; /* what is read is of four bits, a whole matrix */
} MtfTensorMove;

/* What takes part. The tensors of `file` that are moved are those for which `tensors` has the
 * number of a graph tensor; -1 leaves one out. In its place `moves` may list parts of tensors. */
typedef struct {
    MPI_Comm control;
    const MtfWorker *worker; /* of this rank; its program tells what all ranks keep */
    const MtfSafetensors *file;
    const int *tensors;  /* one a tensor of the file; or NULL, and: */
    const GArray *moves; /* MtfTensorMove */
    const int *targets;  /* of mtf_tensor_file_copy: one a tensor of the file */
    int64_t data_start;  /* bytes of the header */
    const char *path;
    int64_t window_bytes; /* 0 = a third of MTF_STAGING_BYTES; less in tests */
} MtfTensorFile;

/* Collective: writes all tensors to `path`, which exists; their types are mtf_stored_type_of, or
 * another float type, to which values are rounded. `*checksum` becomes that of the data of whole
 * tensors (data_checksum.h). Fails on all ranks or on none. */
bool mtf_tensor_file_write(const MtfTensorFile *tensors, uint64_t *checksum, GError **error);

/* Collective: reads all tensors into the worker, rounding where the types differ. `*checksum` is
 * that of the tensors read. On failure the variables may hold anything. */
bool mtf_tensor_file_read(const MtfTensorFile *tensors, uint64_t *checksum, GError **error);

/* Collective: every tensor of `tensors` becomes the value of that in its place of `targets`, of as
 * many elements, however both are placed. There is no file: `file` lists types and sizes that
 * elements have on the way, and `path` is not asked. `*checksum` becomes 0. Never fails. */
bool mtf_tensor_file_copy(const MtfTensorFile *tensors, uint64_t *checksum, GError **error);

#endif
