// SPDX-License-Identifier: GPL-3.0-or-later
/* The tensors of a folder of safetensors files, by name: which file each is in, and where. Only
 * headers are read. */
#ifndef MTF_PUBLISHED_FOLDER_H
#define MTF_PUBLISHED_FOLDER_H

#include "runtime/checkpoint/tensor_file.h"

#define MTF_PUBLISHED_FILE "model.safetensors"
#define MTF_ADAPTER_FILE "adapter_model.safetensors"
#define MTF_ADAPTER_CONFIG "adapter_config.json"

typedef struct {
    char *path;
    MtfSafetensors *file;
    int64_t data_start; /* bytes of the header */
    GArray *moves;      /* MtfTensorMove: what is to be read of it */
} MtfPublishedFile;

typedef struct {
    char *path;
    GPtrArray *files;   /* MtfPublishedFile, owned */
    GHashTable *names;  /* name of a tensor -> MtfPublishedFile */
    bool quantized;     /* config.json says that matrices are in few bits */
    int64_t block[2];   /* rows and columns that have a scale; 0: not said */
    MtfPacking packing; /* of matrices of four bits */
    int bits;           /* of their numbers */
    int64_t group_size; /* inputs that share their units; 0: all */
} MtfPublishedFolder;

/* Collective: rank 0 lists and reads, every rank gets the same. Fails (bad input) where there is no
 * model.safetensors or index, a file is missing or broken, or two have a tensor of one name. */
MtfPublishedFolder *mtf_published_folder_open(MPI_Comm control, const char *path, GError **error);
/* The same of one file of the folder. */
MtfPublishedFolder *mtf_published_folder_open_file(MPI_Comm control, const char *path,
                                                   const char *name, GError **error);
/* An empty folder, and a file of it that holds no data before the first tensor; `file` is taken over. */
MtfPublishedFolder *mtf_published_folder_new(const char *path);
MtfPublishedFile *mtf_published_folder_add(MtfPublishedFolder *folder, const char *path,
                                           MtfSafetensors *file);

void mtf_published_folder_free(MtfPublishedFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPublishedFolder, mtf_published_folder_free)

/* The tensor of that name or, where there is none, the only one whose name ends with ".NAME", or
 * whose name the end of NAME is; NULL with a bad-input error. `*file` becomes the file it is in. */
const MtfStoredTensor *mtf_published_folder_find(const MtfPublishedFolder *folder, const char *name,
                                                 MtfPublishedFile **file, GError **error);

/* Whether it has such a tensor, perhaps several. */
bool mtf_published_folder_has(const MtfPublishedFolder *folder, const char *name);

/* Where the scales of a tensor are, if the folder keeps it in units of some (block_scales.h); borrowed from the
 * folder. Fails (bad input) where they are missing or of another shape. */
bool mtf_published_folder_scales(const MtfPublishedFolder *folder, const MtfStoredTensor *stored,
                                 MtfBlockScales *scales, GError **error);

/* The tensor of a matrix "NAME.weight" that the folder has packed in four bits, as "NAME.qweight" beside its
 * units; NULL where it has none. Fails (bad input) with NULL where these are missing or of another shape than
 * goes with it. */
const MtfStoredTensor *mtf_published_folder_packed(const MtfPublishedFolder *folder,
                                                   const char *name, MtfPublishedFile **file,
                                                   MtfPackedMatrix *matrix, GError **error);

#endif
