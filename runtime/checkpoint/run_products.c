// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/checkpoint/run_products.h"

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/kernels/products/product_choice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

/* What the header of a checkpoint says of products; NULL where it says nothing or is damaged. */
static char *products_of(const char *path) {
    gsize length;
    int64_t bytes;
    g_autofree char *header = mtf_safetensors_read(path, &length, &bytes, NULL);
    g_autoptr(MtfSafetensors) file =
        header != NULL ? mtf_safetensors_parse(path, header, length, bytes, NULL) : NULL;
    return file != NULL ? g_strdup(mtf_safetensors_get(file, "products")) : NULL;
}

/* The choice that the newest checkpoint to go on from was made with; NULL when there is none. */
static char *resumed_choice(const char *folder) {
    char *found = NULL;
    if (folder == NULL)
        return NULL;
    g_autoptr(GArray) steps = mtf_checkpoint_steps(folder);
    for (guint i = 0; i < steps->len && found == NULL; i++) {
        g_autofree char *path = mtf_checkpoint_path(folder, g_array_index(steps, int64_t, i));
        found = products_of(path);
    }
    return found;
}

/* Whether two choices begin with the same libraries. */
static bool has_same_libraries(const char *a, const char *b) {
    size_t length = strcspn(a, ";");
    return length == strcspn(b, ";") && strncmp(a, b, length) == 0;
}

/* Every shape of rank 0's products is tried as a worker prepares it. */
static void try_products(const MtfRunProducts *run) {
    mtf_product_choice_set_trial(true);
    mtf_worker_free(mtf_worker_new(run->program, run->arena, 0, 0, NULL));
    mtf_product_choice_set_trial(false);
}

/* Rank 0's choice. A checkpoint's that is no good, as one of an older program, is passed over. */
static char *decide(const MtfRunProducts *run) {
    mtf_product_choice_use(NULL, NULL);
    g_autofree char *own = mtf_product_choice_text();
    g_autofree char *resumed = resumed_choice(run->folder);
    if (resumed != NULL && has_same_libraries(own, resumed) &&
        mtf_product_choice_use(resumed, NULL))
        return g_steal_pointer(&resumed);
    if (run->trial)
        try_products(run);
    return mtf_product_choice_text();
}

static void share_text(MPI_Comm control, char **text) {
    int length = *text != NULL ? (int)strlen(*text) + 1 : 0;
    mtf_mpi_require(MPI_Bcast(&length, 1, MPI_INT, 0, control), "MPI_Bcast");
    if (*text == NULL)
        *text = g_malloc((gsize)length);
    mtf_mpi_require(MPI_Bcast(*text, length, MPI_CHAR, 0, control), "MPI_Bcast");
}

static int rank_of(MPI_Comm control) {
    int rank;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    return rank;
}

bool mtf_run_products_choose(const MtfRunProducts *run, GError **error) {
    g_autofree char *text = rank_of(run->control) == 0 ? decide(run) : NULL;
    GError *local = NULL;
    share_text(run->control, &text);
    mtf_product_choice_use(text, &local);
    return mtf_agree(run->control, local, error);
}

/* Whether some rank's own libraries run other kernels than rank 0 decided for. */
static bool kernels_differ(MPI_Comm control) {
    g_autofree char *chosen = mtf_product_choice_text();
    mtf_product_choice_use(NULL, NULL);
    g_autofree char *own = mtf_product_choice_text();
    mtf_product_choice_use(chosen, NULL);
    return mtf_agree_largest(control, has_same_libraries(own, chosen) ? 0 : 1) > 0;
}

char *mtf_run_products_format(MPI_Comm control) {
    g_autofree char *chosen = mtf_product_choice_format();
    return g_strdup_printf("%s%s", chosen,
                           kernels_differ(control) ? "; warning: some ranks' processors run other "
                                                     "kernels than rank 0's, so what ranks hold in "
                                                     "common may differ in its last bits"
                                                   : "");
}
