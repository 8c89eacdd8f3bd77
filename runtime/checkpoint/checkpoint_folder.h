// SPDX-License-Identifier: GPL-3.0-or-later
/* The files of a folder of checkpoints, by step:
 *
 *     DIR/step-00000100.safetensors
 *     DIR/step-00000120.safetensors            the newest
 *     DIR/step-00000140.safetensors.partial    was being written when the run ended
 *     DIR/lock                                 held by the run that writes there
 *
 * One rank alone calls these. */
#ifndef MTF_CHECKPOINT_FOLDER_H
#define MTF_CHECKPOINT_FOLDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The file of a step; free with g_free. */
char *mtf_checkpoint_path(const char *folder, int64_t step);

/* The steps of all whole checkpoints, the newest first: a new GArray of int64_t, empty when there
 * is no such folder. */
GArray *mtf_checkpoint_steps(const char *folder);

/* Makes the folder if there is none, takes it for this run alone, and removes partial files.
 * Returns a descriptor that holds the folder's lock until it is closed; -1 (bad input) when files
 * cannot be made there, or when another run has not left the folder after `patience` seconds: the
 * ranks of one that was killed may take a while to notice. Where the file system has no locks there
 * is none. */
int mtf_checkpoint_folder_open(const char *folder, double patience, GError **error);

/* Removes checkpoints of `step` and before but for the newest `keep` of them. A file that cannot be
 * removed stays. */
void mtf_checkpoint_prune(const char *folder, int64_t step, int64_t keep);

#endif
