// SPDX-License-Identifier: GPL-3.0-or-later
/* The rates of every way to multiply, as rows of runtime/kernels/products/product_rates.inc, for the
 * kernels that OpenBLAS ("openblas" as the argument) or oneDNN ("onednn") runs in this process. */
#include "runtime/kernels/products/product_choice.h"
#include "runtime/kernels/products/product_trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BATCH 16

static const int64_t sides[] = { 1, 16, 128, 1024 };

static const struct {
    const char *name, *left, *right;
} forms[] = { { "MTF_PRODUCT_NN", "dab", "dbc" },
              { "MTF_PRODUCT_NT", "dab", "dcb" },
              { "MTF_PRODUCT_TN", "dba", "dbc" } };

typedef struct {
    const char *name;
    MtfProductWay way;
    MtfDtype type;
    bool openblas, batch;
} Row;

static const Row rows[] = {
    { "MTF_WAY_OPENBLAS, MTF_F32", MTF_WAY_OPENBLAS, MTF_F32, true, false },
    { "MTF_WAY_WIDENED, MTF_BF16", MTF_WAY_WIDENED, MTF_BF16, true, false },
    { "MTF_WAY_SGEMM, MTF_F32", MTF_WAY_SGEMM, MTF_F32, false, false },
    { "MTF_WAY_MATMUL, MTF_F32", MTF_WAY_MATMUL, MTF_F32, false, false },
    { "MTF_WAY_MATMUL, MTF_F32", MTF_WAY_MATMUL, MTF_F32, false, true },
    { "MTF_WAY_MATMUL, MTF_BF16", MTF_WAY_MATMUL, MTF_BF16, false, false },
    { "MTF_WAY_MATMUL, MTF_BF16", MTF_WAY_MATMUL, MTF_BF16, false, true },
    { "MTF_WAY_WIDENED_SGEMM, MTF_BF16", MTF_WAY_WIDENED_SGEMM, MTF_BF16, false, false },
};

/* Letters a m, b k, c n, d the turns, which single products lack. */
static MtfTerm term_of(const char *letters, const int64_t size[4]) {
    MtfTerm term = { 0 };
    for (const char *at = letters; *at != 0; at++)
        if (*at != 'd' || size[3] > 1) {
            term.dims[term.rank] = *at;
            term.size[term.rank++] = size[*at - 'a'];
        }
    return term;
}

static double rate(const Row *row, int form, int64_t m, int64_t n, int64_t k) {
    const int64_t size[] = { m, k, n, row->batch ? BATCH : 1 };
    const MtfTerm terms[MTF_TERMS] = { term_of(forms[form].left, size),
                                       term_of(forms[form].right, size), term_of("dac", size) };
    const MtfDtype types[MTF_TERMS] = { row->type, row->type, row->type };
    int64_t bytes = mtf_dtype_bytes(row->type);
    MtfContractionMeans means = { .element_bytes = { bytes, bytes, bytes }, .whole_sums = true };
    MtfContraction plan;
    mtf_contraction_plan(terms, &means, &plan);
    double seconds = mtf_product_trial(&plan, types, row->way);
    return 2e-9 * (double)(m * n * k * size[3]) / seconds;
}

static void print_row(const char *library, const Row *row, int form) {
    printf("{ \"%s\", %s, %s, %s,\n  {", library, row->name, forms[form].name,
           row->batch ? "true" : "false");
    int printed = 0;
    for (int m = 0; m < 4; m++)
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < 4; k++)
                printf("%s%.2fF",
                       printed++ == 0      ? " "
                       : printed % 16 == 1 ? ",\n    "
                                           : ", ",
                       rate(row, form, sides[m], sides[n], sides[k]));
    printf(" } },\n");
}

int main(int argc, char **argv) {
    static const char *const families[] = { "sse", "avx2", "avx512" };
    bool openblas = argc > 1 && strcmp(argv[1], "openblas") == 0;
    const char *library =
        openblas ? families[mtf_openblas_family(mtf_openblas_core())] : mtf_onednn_isa();
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        for (int form = 0; form < 3; form++)
            if (rows[i].openblas == openblas)
                print_row(library, &rows[i], form);
    return 0;
}
