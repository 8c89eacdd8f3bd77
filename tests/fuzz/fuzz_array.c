// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a data file of examples (IDX, .npy, CIFAR): refused in one sentence, or arrays whose
 * every record can be read. */
#include "runtime/data/data_array.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/array", NULL };

static void free_array(gpointer array) {
    mtf_data_array_free(array);
}

static void read_ends(const MtfDataArray *array) {
    int64_t records = mtf_data_array_records(array);
    g_autofree double *values = records > 0 ? g_new(double, mtf_data_array_places(array)) : NULL;
    if (records > 0)
        g_assert(mtf_data_array_read(array, 0, 1, values, NULL) &&
                 mtf_data_array_read(array, records - 1, 1, values, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) arrays = g_ptr_array_new_with_free_func(free_array);
    int file = memfd_create("fuzz", 0);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", file);
    g_assert(write(file, data, size) == (gssize)size);
    bool good = mtf_data_arrays_open(path, false, arrays, &error);
    close(file);
    mtf_fuzz_judge(good, error);
    for (guint i = 0; i < arrays->len; i++)
        read_ends(arrays->pdata[i]);
    return good ? 0 : -1;
}
