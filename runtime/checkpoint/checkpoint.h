// SPDX-License-Identifier: GPL-3.0-or-later
/* A checkpoint: all variables of a training graph, whole and by name, and how far the run had come,
 * in one safetensors file. It knows nothing of layouts, so any other layout, mesh or number of
 * ranks goes on from it. The metadata:
 *
 *     meshtf_checkpoint   "1", the version
 *     graph, step, seed   the name; steps done; the seed of data order and dropout
 *     data                what the run was trained on (mtf_data_identity)
 *     examples            how many had been drawn: where the data stands
 *     mesh, program       of the run that wrote it; the program by its digest
 *     products            which ways multiplied (runtime/kernels/products/product_choice.h)
 *     checksum            of the data (data_checksum.h), 16 hexadecimal digits
 *     header_sha256       SHA-256 of the header with 64 zeros in this place
 *
 * The file is written under the name PATH.partial, brought to disk, and then renamed: a file whose
 * name does not end so is whole. All functions but the last are collective over the control
 * communicator and fail on all ranks or on none. */
#ifndef MTF_CHECKPOINT_H
#define MTF_CHECKPOINT_H

#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/whole_file.h"
#include "runtime/worker/worker.h"

#include <mpi.h>

/* What is written or read. The workers of pipeline stages have parts of the model; the file has all
 * of it, to which each domain adds, or from which it takes, its own variables. */
typedef struct {
    MPI_Comm control;
    const MtfWorker *worker;
    const MtfGraph *whole; /* of a pipeline: its whole graph; NULL: the worker's is the whole */
    MPI_Comm domain;       /* of a pipeline: the ranks that run the worker's program */
    int n_more;            /* of a pipeline: workers of the rank's further stages */
    const MtfWorker *const *more;
    /* Receives the names (char *) of weights that a published folder lacks and that are left as they are; NULL: it must
     * have all. */
    GPtrArray *lacking;
    /* Takes the names (char) of a folder's tensors that no weight of the model is read from; or NULL. */
    GPtrArray *unread;
} MtfCheckpointed;

/* How far a run has come. Strings are owned; clear with mtf_progress_clear. */
typedef struct {
    int64_t step; /* done */
    uint64_t seed;
    int64_t examples;
    char *data;     /* identity of the data */
    char *program;  /* digest */
    char *products; /* NULL in checkpoints that do not say */
} MtfProgress;

void mtf_progress_clear(MtfProgress *progress);

/* Writes `path`, whole or not at all. */
bool mtf_checkpoint_write(const MtfCheckpointed *what, const char *path,
                          const MtfProgress *progress, GError **error);

/* Writes likewise the results alone (MTF_MEMORY_OUTPUT) of a graph that is run for them. */
bool mtf_results_write(const MtfCheckpointed *what, const char *path, const MtfProgress *progress,
                       GError **error);

/* Whether a checkpoint could be read, and why not. */
typedef enum {
    MTF_CHECKPOINT_READ,
    MTF_CHECKPOINT_BAD,     /* cut short, damaged, unreadable: an older one may do */
    MTF_CHECKPOINT_FOREIGN, /* of another model */
} MtfCheckpointVerdict;

/* Reads the variables and the progress. Unless it returns MTF_CHECKPOINT_READ there is an error and
 * the variables may hold anything. */
MtfCheckpointVerdict mtf_checkpoint_read(const MtfCheckpointed *what, const char *path,
                                         MtfProgress *progress, GError **error);

/* Collective: rank 0 reads a safetensors header, every rank parses the same bytes. `*header`
 * becomes those bytes, the caller's. */
MtfSafetensors *mtf_header_read(MPI_Comm control, const char *path, char **header, gsize *length,
                                GError **error);

/* Reads initial weights, all that count as MTF_MEMORY_VARIABLE, from any safetensors file, which may hold
 * more, or from the folder of a published model (published_weights.h). Fails (bad input) where one is missing
 * or has another shape, or a value that cannot be read as a number. */
bool mtf_weights_read(const MtfCheckpointed *what, const char *path, GError **error);

#endif
