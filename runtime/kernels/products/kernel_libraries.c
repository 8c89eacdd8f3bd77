// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_libraries.h"

#include "runtime/kernels/products/kernel_products.h"

#include <cblas.h>
#include <glib.h>
#include <unistd.h>

const char *mtf_openblas_core(void) {
    return openblas_get_corename();
}

MtfOpenBlasFamily mtf_openblas_family(const char *core) {
    static const char *const wide[] = { "SkylakeX", "Cooperlake", "SapphireRapids" };
    static const char *const middle[] = { "Haswell", "Zen", "Excavator" };
    for (gsize i = 0; i < G_N_ELEMENTS(wide); i++)
        if (g_ascii_strcasecmp(core, wide[i]) == 0)
            return MTF_OPENBLAS_AVX512;
    for (gsize i = 0; i < G_N_ELEMENTS(middle); i++)
        if (g_ascii_strcasecmp(core, middle[i]) == 0)
            return MTF_OPENBLAS_AVX2;
    return MTF_OPENBLAS_SSE;
}

char *mtf_kernel_libraries_format(void) {
    g_autofree char *onednn = mtf_onednn_version();
    g_auto(GStrv) words = g_strsplit(openblas_get_config(), " ", 3);
    const char *version = g_strv_length(words) > 1 ? words[1] : "";
    return g_strdup_printf("OpenBLAS %s with its %s kernels, oneDNN %s for %s", version,
                           mtf_openblas_core(), onednn, mtf_onednn_isa());
}

/* The kernels of OpenBLAS to ask for instead of those without AVX that it runs; NULL where it runs
 * better ones, or the processor has no AVX2. */
static const char *better_core(void) {
    if (mtf_openblas_family(mtf_openblas_core()) != MTF_OPENBLAS_SSE ||
        !__builtin_cpu_supports("avx2"))
        return NULL;
    return __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell";
}

void mtf_kernel_libraries_restart(char **argv) {
    const char *better = better_core();
    if (better == NULL || g_getenv("OPENBLAS_CORETYPE") != NULL)
        return;
    /* By its path: started as /proc/self/exe it is called "exe" by ps, pgrep and killall. */
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    if (program != NULL && g_setenv("OPENBLAS_CORETYPE", better, true))
        execv(program, argv); /* returns where it fails: then the warning says it */
}

char *mtf_kernel_libraries_warning(void) {
    const char *better = better_core();
    if (better == NULL)
        return NULL;
    return g_strdup_printf(
        "OpenBLAS runs its %s kernels, which use no AVX, on a processor that has "
        "it: OPENBLAS_CORETYPE=%s is likely to be faster",
        mtf_openblas_core(), better);
}
