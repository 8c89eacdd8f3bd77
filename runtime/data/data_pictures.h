// SPDX-License-Identifier: GPL-3.0-or-later
/* Folders of PNG files as records of pixels:
 *
 *     DIR/cat/1.png DIR/cat/2.png DIR/dog/1.png     classes are the subfolders in the order of their
 *                                                   names: cat 0, dog 1
 *     DIR/1.png DIR/2.png                           without classes
 *
 * Pictures beside the folders of classes or in folders below them are refused, as they would be passed over.
 *
 * A record is a label of 32 bits and the pixels of each channel, row by row, a byte each:
 * [channels, rows, columns], as in CIFAR's files. There is one channel where the first picture is
 * grey, else three; transparent pixels are as over black. They are decoded by libpng into a nameless
 * file when the folder is opened. */
#ifndef MTF_DATA_PICTURES_H
#define MTF_DATA_PICTURES_H

#include "runtime/data/data_file.h"

#define MTF_PICTURE_LABEL_BYTES 4

typedef struct {
    int64_t channels, rows, columns;
    int64_t pictures, classes; /* classes 0: the folder has no subfolders */
} MtfPictures;

/* Fails (bad input) on a folder without pictures, a file that is no PNG or damaged, and a picture of
 * another size than the first. */
MtfDataFile *mtf_pictures_open(const char *folder, MtfPictures *pictures, GError **error);

/* The pixels of a PNG file in memory; free with g_free. `pictures` says the size and channels that
 * it must have, or with rows 0 receives its own. `name` is for errors. */
unsigned char *mtf_picture_decode(const char *name, const void *bytes, gsize n,
                                  MtfPictures *pictures, GError **error);

#endif
