// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_pictures.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"

#include <inttypes.h>
#include <png.h>
#include <string.h>

/* More than any picture for training has; so that a damaged header asks for no more. */
#define MOST_PIXELS (INT64_C(1) << 26)
#define SIGNATURE_BYTES 8

/* ---- One picture ----------------------------------------------------------------------------- */

static bool fail_damaged(const char *name, GError **error) {
    return mtf_input_error(error, "%s: this PNG file is damaged or cut short", name);
}

static bool check_signature(const char *name, const void *bytes, gsize n, GError **error) {
    if (n == 0)
        return mtf_input_error(error, "%s is empty, but should be a PNG file", name);
    return png_sig_cmp(bytes, 0, MIN(n, SIGNATURE_BYTES)) == 0 ||
           mtf_input_error(error, "%s is no PNG file, whatever its name says: convert it", name);
}

static bool check_size(const char *name, const png_image *image, MtfPictures *pictures,
                       GError **error) {
    if ((int64_t)image->width * image->height > MOST_PIXELS)
        return mtf_input_error(error, "%s: a picture of %u by %u pixels is too large to train on",
                               name, image->width, image->height);
    if (pictures->rows == 0) {
        pictures->channels = (image->format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
        pictures->rows = image->height;
        pictures->columns = image->width;
    }
    return (pictures->rows == image->height && pictures->columns == image->width) ||
           mtf_input_error(error,
                           "%s has %u by %u pixels, but the first picture %" PRId64 " by %" PRId64
                           ": scale them to one size",
                           name, image->width, image->height, pictures->columns, pictures->rows);
}

/* Pixels as they lie in a file, a pixel's channels side by side, channel by channel. */
static unsigned char *by_channel(const unsigned char *pixels, const MtfPictures *p) {
    int64_t area = p->rows * p->columns;
    unsigned char *planes = g_malloc((gsize)(area * p->channels));
    for (int64_t i = 0; i < area; i++)
        for (int64_t c = 0; c < p->channels; c++)
            planes[c * area + i] = pixels[i * p->channels + c];
    return planes;
}

unsigned char *mtf_picture_decode(const char *name, const void *bytes, gsize n,
                                  MtfPictures *pictures, GError **error) {
    png_image image = { .version = PNG_IMAGE_VERSION };
    png_color black = { 0 };
    if (!check_signature(name, bytes, n, error))
        return NULL;
    if (!png_image_begin_read_from_memory(&image, bytes, n)) {
        fail_damaged(name, error);
        return NULL;
    }
    if (!check_size(name, &image, pictures, error)) {
        png_image_free(&image);
        return NULL;
    }
    image.format = pictures->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    g_autofree unsigned char *pixels =
        g_malloc((gsize)(pictures->rows * pictures->columns * pictures->channels));
    if (!png_image_finish_read(&image, &black, pixels, 0, NULL)) {
        png_image_free(&image);
        fail_damaged(name, error);
        return NULL;
    }
    return by_channel(pixels, pictures);
}

/* ---- Folders --------------------------------------------------------------------------------- */

static int by_name(gconstpointer a, gconstpointer b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_png(const char *name) {
    gsize n = strlen(name);
    return n > 4 && g_ascii_strcasecmp(name + n - 4, ".png") == 0;
}

/* Paths of the entries of a folder that are folders, or that are PNG files, in the order of their
 * names; NULL with an error. */
static GPtrArray *list_folder(const char *folder, bool folders, GError **error) {
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL) {
        mtf_input_error(error, "the folder %s cannot be read", folder);
        return NULL;
    }
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (const char *entry; (entry = g_dir_read_name(dir)) != NULL;) {
        g_autofree char *path = g_build_filename(folder, entry, NULL);
        bool is_folder = g_file_test(path, G_FILE_TEST_IS_DIR);
        if (entry[0] != '.' && (folders ? is_folder : !is_folder && is_png(entry)))
            g_ptr_array_add(paths, g_steal_pointer(&path));
    }
    g_ptr_array_sort(paths, by_name);
    return paths;
}

static bool append_picture(const char *path, guint32 label, MtfPictures *pictures,
                           MtfDataFile *target, GError **error) {
    gsize n;
    g_autofree char *bytes = mtf_file_read(path, &n, error);
    g_autofree unsigned char *pixels =
        bytes != NULL ? mtf_picture_decode(path, bytes, n, pictures, error) : NULL;
    guint32 little = GUINT32_TO_LE(label);
    if (pixels == NULL || !mtf_data_file_append(target, &little, MTF_PICTURE_LABEL_BYTES, error) ||
        !mtf_data_file_append(target, pixels,
                              pictures->channels * pictures->rows * pictures->columns, error))
        return false;
    pictures->pictures++;
    return true;
}

static bool append_folder(const char *folder, guint32 label, MtfPictures *pictures,
                          MtfDataFile *target, GError **error) {
    g_autoptr(GPtrArray) files = list_folder(folder, false, error);
    for (guint i = 0; files != NULL && i < files->len; i++)
        if (!append_picture(files->pdata[i], label, pictures, target, error))
            return false;
    return files != NULL;
}

/* Beside folders of classes stand no pictures, which would have none. */
static bool all_have_classes(const char *folder, GError **error) {
    g_autoptr(GPtrArray) files = list_folder(folder, false, error);
    return files != NULL &&
           (files->len == 0 ||
            mtf_input_error(error,
                            "%s lies beside the folders of %s, each of which is a class: move it "
                            "into one",
                            (const char *)files->pdata[0], folder));
}

/* The first picture in the folders below one, links left aside; NULL where there is none. Free with g_free. */
static char *picture_below(const char *folder) {
    g_autoptr(GPtrArray) folders = list_folder(folder, true, NULL);
    char *found = NULL;
    for (guint i = 0; folders != NULL && i < folders->len && found == NULL; i++) {
        const char *path = folders->pdata[i];
        g_autoptr(GPtrArray) files = list_folder(path, false, NULL);
        if (files != NULL && files->len > 0)
            found = g_strdup(files->pdata[0]);
        else if (!g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            found = picture_below(path);
    }
    return found;
}

/* Below a folder that is a class lies none that would be passed over. */
static bool all_lie_in_classes(const GPtrArray *classes, GError **error) {
    for (guint i = 0; i < classes->len; i++) {
        g_autofree char *path = picture_below(classes->pdata[i]);
        if (path != NULL)
            return mtf_input_error(error,
                                   "%s lies in a folder below %s, which is a class: move it there, "
                                   "or name the folder whose folders are the classes",
                                   path, (const char *)classes->pdata[i]);
    }
    return true;
}

static bool append_all(const char *folder, MtfPictures *pictures, MtfDataFile *target,
                       GError **error) {
    g_autoptr(GPtrArray) classes = list_folder(folder, true, error);
    if (classes == NULL)
        return false;
    pictures->classes = classes->len;
    if (classes->len > 0 &&
        (!all_have_classes(folder, error) || !all_lie_in_classes(classes, error)))
        return false;
    if (classes->len == 0 && !append_folder(folder, 0, pictures, target, error))
        return false;
    for (guint i = 0; i < classes->len; i++)
        if (!append_folder(classes->pdata[i], i, pictures, target, error))
            return false;
    return pictures->pictures > 0 ||
           mtf_input_error(error,
                           "the folder %s has no pictures: name one with .png files, or with "
                           "a folder of them for each class",
                           folder);
}

MtfDataFile *mtf_pictures_open(const char *folder, MtfPictures *pictures, GError **error) {
    *pictures = (MtfPictures){ 0 };
    g_autoptr(MtfDataFile) file = mtf_data_file_new(folder, error);
    if (file == NULL || !append_all(folder, pictures, file, error))
        return NULL;
    return g_steal_pointer(&file);
}
