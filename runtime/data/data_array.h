// SPDX-License-Identifier: GPL-3.0-or-later
/* Data files of many kinds, all read as records of equally many numbers:
 *
 *     kind                  told by                         records
 *     NumPy .npy            \x93NUMPY                         the first dimension; rest a record
 *     llm.c tokens          20240520 or 20240801 in front     one token of 16 or 32 bits each
 *     IDX (MNIST)           0 0 type dimensions               as .npy, big-endian
 *     CIFAR-10 binary       3073 bytes a record               a label; 3072 numbers
 *     CIFAR-100 binary      3074 bytes a record               the fine label; 3072 numbers
 *     nanoGPT tokens        a name that ends in .bin          one token of 16 bits each
 *     folder of pictures    it is a folder                  a label; [channels, rows, columns]
 *     text                  anything else                     one byte each
 *
 * Where tokens are wanted, IDX and CIFAR are not looked for; where examples are, text and nanoGPT
 * tokens are not. Any of them may be packed by gzip. */
#ifndef MTF_DATA_ARRAY_H
#define MTF_DATA_ARRAY_H

#include "runtime/data/data_file.h"

typedef struct MtfDataArray MtfDataArray;

/* Appends the arrays of a file (CIFAR has two) to `arrays`, a GPtrArray that frees them with
 * mtf_data_array_free. Fails (bad input) on a file of no known kind, or one that is not as long as
 * its header says. */
bool mtf_data_arrays_open(const char *path, bool wants_tokens, GPtrArray *arrays, GError **error);
void mtf_data_array_free(MtfDataArray *array);

/* Records of numbers of 32 bits, floats or not, that lie inside `file`, which it takes: the first at
 * byte `first`, the next `stride` bytes on. */
typedef struct {
    bool floats;
    int64_t first, stride, records, places;
} MtfInnerArray;
MtfDataArray *mtf_data_array_inside(MtfDataFile *file, const MtfInnerArray *inner);

/* The file it came from, and how many records it has. */
const char *mtf_data_array_path(const MtfDataArray *array);
int64_t mtf_data_array_records(const MtfDataArray *array);
int64_t mtf_data_array_places(const MtfDataArray *array); /* numbers of a record */
bool mtf_data_array_is_integer(const MtfDataArray *array);

/* Makes records of single numbers of those of several, which are not scaled then. Fails where they do not follow
 * one another. */
bool mtf_data_array_join(MtfDataArray *array);
bool mtf_data_array_is_text(const MtfDataArray *array); /* bytes of a file of no other kind */

/* Bytes of this array stay whole numbers: they are labels of places, not pixels. */
void mtf_data_array_keep_whole(MtfDataArray *array);

/* Reads `count` records from `first` on; bytes of records with several numbers (pixels) become
 * multiples of 1/255. Fails (not bad input) when the file has become unreadable. */
bool mtf_data_array_read(const MtfDataArray *array, int64_t first, int64_t count, double *values,
                         GError **error);

#endif
