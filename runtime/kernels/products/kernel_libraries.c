// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_libraries.h"

#include "runtime/kernels/products/kernel_products.h"

#include <cblas.h>
#include <glib.h>
#include <string.h>

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

char *mtf_kernel_libraries_warning(void) {
    const char *core = mtf_openblas_core();
    if (mtf_openblas_family(core) != MTF_OPENBLAS_SSE || !__builtin_cpu_supports("avx2"))
        return NULL;
    const char *better = __builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell";
    return g_strdup_printf(
        "OpenBLAS runs its %s kernels, which use no AVX, on a processor that has "
        "it: OPENBLAS_CORETYPE=%s is likely to be faster",
        core, better);
}
