// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/product_choice.h"

#include "layouts/base/error.h"
#include "runtime/kernels/products/product_trial.h"

#include <cpuid.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The table ----------------------------------------------------------------------------- */

#define SIDES 4
#define FIRST_RATIO 16 /* of 16 and 1; the others are 8 */

/* GFLOP/s at m x n x k of the sides, k running fastest; 0 where the way does not apply. */
typedef struct {
    const char *library; /* a family of OpenBLAS's kernels or a set of oneDNN's instructions */
    MtfProductWay way;
    MtfDtype type;
    MtfProductForm form;
    bool batch; /* many products in one call */
    float rate[SIDES * SIDES * SIDES];
} RateRow;

static const RateRow table[] = {
#include "runtime/kernels/products/product_rates.inc"
};

static const char *const families[] = { "sse", "avx2", "avx512" };
static const char *const forms[] = { "NN", "NT", "TN" };

/* Sets of instructions that the table has, and those that are taken for one of them. Processors of
 * Intel without AMX multiply bfloat16 at half the rate of float32 (84 GFLOP/s and 153 on an Emerald
 * Rapids); with AMX many times as fast. */
static const struct {
    const char *name, *table;
    double own_bfloat16; /* rate of matmul in bfloat16, by the table's of sgemm; 0: measured */
} sets[] = {
    { "sse41", "sse41", 0 },
    { "avx", "sse41", 0 },
    { "avx2", "avx2", 0 },
    { "avx512_core", "avx512_core", 0 },
    { "avx512_core_vnni", "avx512_core", 0 },
    { "avx512_core_bf16", "avx512_core_bf16", 0 },
    { "avx512_core_bf16_slow", "avx512_core_bf16", 0.55 },
    { "avx512_core_amx", "avx512_core_bf16", 4 },
};

static int find_set(const char *name) {
    for (int i = 0; i < (int)G_N_ELEMENTS(sets); i++)
        if (strcmp(sets[i].name, name) == 0)
            return i;
    return -1;
}

static const RateRow *find_row(const char *library, const MtfProductCase *shape, MtfProductWay way,
                               MtfDtype type) {
    bool batch = way == MTF_WAY_MATMUL && shape->turns > 1;
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
        if (table[i].way == way && table[i].type == type && table[i].form == shape->form &&
            table[i].batch == batch && strcmp(table[i].library, library) == 0)
            return &table[i];
    return NULL;
}

/* A size's place between two sides of the table, on the scale of logarithms: `*share` of the way
 * from side `return` to the next. */
static int place_of(int64_t size, double *share) {
    double octaves = log2((double)MAX(size, 1)), first = log2(FIRST_RATIO);
    double at = octaves < first ? octaves / first : 1 + (octaves - first) / 3;
    int below = MIN((int)at, SIDES - 2);
    *share = MIN(at - below, 1);
    return below;
}

/* Between sides the logarithm of the rate is taken to be linear in those of m, n and k; sides where
 * the way does not apply do not count. */
static double interpolated(const RateRow *row, const MtfProductCase *shape) {
    double share[3], sum = 0, weights = 0;
    const int below[] = { place_of(shape->m, &share[0]), place_of(shape->n, &share[1]),
                          place_of(shape->k, &share[2]) };
    for (int corner = 0; corner < 8; corner++) {
        double weight = 1;
        int at = 0;
        for (int i = 0; i < 3; i++) {
            bool above = (corner >> i & 1) != 0;
            weight *= above ? share[i] : 1 - share[i];
            at = at * SIDES + below[i] + above;
        }
        if (weight > 0 && row->rate[at] > 0) {
            sum += weight * log((double)row->rate[at]);
            weights += weight;
        }
    }
    return weights > 0 ? 1e9 * exp(sum / weights) : 0;
}

static double rate_of(const char *library, const MtfProductCase *shape, MtfProductWay way,
                      MtfDtype type) {
    const RateRow *row = find_row(library, shape, way, type);
    return row != NULL ? interpolated(row, shape) : 0;
}

double mtf_product_rate(const MtfProductLibraries *libraries, const MtfProductCase *shape,
                        MtfProductWay way) {
    int set = find_set(libraries->isa);
    bool openblas = way == MTF_WAY_OPENBLAS || way == MTF_WAY_WIDENED;
    g_assert(set >= 0);
    if (way == MTF_WAY_MATMUL && shape->type == MTF_BF16 && sets[set].own_bfloat16 > 0)
        return sets[set].own_bfloat16 * rate_of(sets[set].table, shape, MTF_WAY_SGEMM, MTF_F32);
    return rate_of(openblas ? families[libraries->family] : sets[set].table, shape, way,
                   shape->type);
}

static bool is_intel(void) {
    unsigned most = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0, &most, &b, &c, &d) != 0 && b == signature_INTEL_ebx;
}

/* Those of this process. */
static MtfProductLibraries libraries_here(void) {
    const char *isa = mtf_onednn_isa();
    if (strcmp(isa, "avx512_core_bf16") == 0 && is_intel())
        isa = "avx512_core_bf16_slow";
    return (MtfProductLibraries){ mtf_openblas_family(mtf_openblas_core()), isa };
}

/* ---- Shapes -------------------------------------------------------------------------------- */

static bool lies_by_columns(const MtfContraction *plan, int term, const MtfContractionLoop *rows,
                            const MtfContractionLoop *columns) {
    (void)plan;
    return rows->size > 1 && columns->size > 1 && columns->stride[term] != 1;
}

/* A result that lies column by column is the product of the turned terms. */
MtfProductCase mtf_product_case(const MtfContraction *plan, const MtfDtype types[MTF_TERMS]) {
    const MtfContractionLoop *m = &plan->m, *n = &plan->n, *k = &plan->k;
    int left = MTF_LEFT, right = MTF_RIGHT;
    if (n->size > 1 && n->stride[MTF_RESULT] != 1) {
        m = &plan->n;
        n = &plan->m;
        left = MTF_RIGHT;
        right = MTF_LEFT;
    }
    MtfProductCase shape = { .type = types[MTF_LEFT],
                             .form = lies_by_columns(plan, left, m, k)    ? MTF_PRODUCT_TN
                                     : lies_by_columns(plan, right, k, n) ? MTF_PRODUCT_NT
                                                                          : MTF_PRODUCT_NN,
                             .turns = 1,
                             .m = m->size,
                             .n = n->size,
                             .k = k->size };
    for (int i = 0; i < plan->n_outer; i++)
        shape.turns *= plan->outer[i].size;
    return shape;
}

static char *shape_text(const MtfProductCase *s) {
    return g_strdup_printf("%s %s %" PRId64 " %" PRId64 "x%" PRId64 "x%" PRId64,
                           mtf_dtype_name(s->type), forms[s->form], s->turns, s->m, s->n, s->k);
}

/* ---- The choice in force ------------------------------------------------------------------- */

static struct {
    bool known; /* `libraries` are set */
    MtfProductLibraries libraries;
    bool trial;
    GTree *tried; /* shape's text -> name of the way; NULL before the first */
    int count[MTF_PRODUCT_WAYS];
} choice;

static int compare_texts(gconstpointer a, gconstpointer b, gpointer user) {
    (void)user;
    return strcmp(a, b);
}

static GTree *tried(void) {
    if (choice.tried == NULL)
        choice.tried = g_tree_new_full(compare_texts, NULL, g_free, NULL);
    return choice.tried;
}

static const MtfProductLibraries *libraries(void) {
    if (!choice.known)
        choice.libraries = libraries_here();
    choice.known = true;
    return &choice.libraries;
}

static int find_way(const char *name) {
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        if (strcmp(mtf_products_way((MtfProductWay)way)->name, name) == 0)
            return way;
    return -1;
}

/* Rates that differ by less are the same: then the earlier way is taken. */
#define SAME 0.97

static MtfProductWay best_of(const double rate[MTF_PRODUCT_WAYS]) {
    double most = 0;
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        most = MAX(most, rate[way]);
    int best = 0;
    while (rate[best] < SAME * most)
        best++;
    return (MtfProductWay)best;
}

static bool is_small(const MtfProductCase *shape) {
    return shape->type == MTF_F32 &&
           shape->turns * shape->m * shape->n * shape->k < MTF_LEAST_ONEDNN_WORK;
}

static MtfProductWay best_by_table(const MtfProductCase *shape) {
    double rate[MTF_PRODUCT_WAYS];
    if (is_small(shape))
        return MTF_WAY_OPENBLAS;
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        rate[way] = mtf_product_rate(libraries(), shape, (MtfProductWay)way);
    return best_of(rate);
}

static MtfProductWay best_by_trial(const MtfContraction *plan, const MtfDtype types[MTF_TERMS]) {
    double rate[MTF_PRODUCT_WAYS];
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        rate[way] = 1 / mtf_product_trial(plan, types, (MtfProductWay)way);
    return best_of(rate);
}

/* Doubles, and products of single rows or columns, are OpenBLAS's; so are bfloat16's only where
 * they are widened. */
static bool has_one_way(const MtfProductCase *shape) {
    return shape->type == MTF_F64 || (shape->type == MTF_F32 && (shape->m == 1 || shape->n == 1));
}

static MtfProductWay best_way(const MtfContraction *plan, const MtfDtype types[MTF_TERMS]) {
    MtfProductCase shape = mtf_product_case(plan, types);
    if (has_one_way(&shape))
        return MTF_WAY_OPENBLAS;
    g_autofree char *text = shape_text(&shape);
    const char *name = g_tree_lookup(tried(), text);
    if (name != NULL)
        return (MtfProductWay)find_way(name);
    if (!choice.trial)
        return best_by_table(&shape);
    MtfProductWay best = best_by_trial(plan, types);
    g_tree_insert(tried(), g_steal_pointer(&text), (gpointer)mtf_products_way(best)->name);
    return best;
}

/* A few rows and a large matrix, where no trial has decided: reading the matrix is all there is to
 * do. */
static bool reads_once(const MtfContraction *plan, const MtfDtype types[MTF_TERMS]) {
    MtfProductCase shape = mtf_product_case(plan, types);
    g_autofree char *text = shape_text(&shape);
    return !choice.trial && MIN(shape.m, shape.n) <= MTF_SKINNY_ROWS &&
           g_tree_lookup(tried(), text) == NULL;
}

void mtf_product_choice(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                        MtfProductWay order[MTF_PRODUCT_WAYS]) {
    int n = 0;
    MtfProductWay best = best_way(plan, types);
    if (reads_once(plan, types))
        order[n++] = MTF_WAY_SKINNY;
    order[n++] = best;
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        if (way != (int)best && (n == 0 || way != (int)order[0]))
            order[n++] = (MtfProductWay)way;
}

void mtf_product_choice_set_trial(bool on) {
    choice.trial = on;
}

/* ---- As text ------------------------------------------------------------------------------- */

static gboolean append_tried(gpointer shape, gpointer way, gpointer user) {
    g_string_append_printf(user, "; %s %s", (const char *)shape, (const char *)way);
    return FALSE;
}

char *mtf_product_choice_text(void) {
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%s %s", families[libraries()->family], libraries()->isa);
    g_tree_foreach(tried(), append_tried, text);
    return g_string_free(text, FALSE);
}

static bool parse_libraries(const char *text, MtfProductLibraries *found) {
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    if (g_strv_length(words) != 2)
        return false;
    int set = find_set(words[1]), family = 0;
    while (family < (int)G_N_ELEMENTS(families) && strcmp(families[family], words[0]) != 0)
        family++;
    if (set < 0 || family == (int)G_N_ELEMENTS(families))
        return false;
    *found = (MtfProductLibraries){ (MtfOpenBlasFamily)family, sets[set].name };
    return true;
}

/* "float32 NN 1 512x768x3072 sgemm" */
static bool parse_tried(const char *text, GTree *into) {
    const char *space = strrchr(text, ' ');
    int way = space != NULL ? find_way(space + 1) : -1;
    int64_t numbers[4];
    char type[16], form[4];
    if (way < 0 || sscanf(text, "%15s %3s %" SCNd64 " %" SCNd64 "x%" SCNd64 "x%" SCNd64, type, form,
                          &numbers[0], &numbers[1], &numbers[2], &numbers[3]) != 6)
        return false;
    g_tree_insert(into, g_strndup(text, (gsize)(space - text)),
                  (gpointer)mtf_products_way((MtfProductWay)way)->name);
    return true;
}

bool mtf_product_choice_use(const char *text, GError **error) {
    g_autoptr(GTree) shapes = g_tree_new_full(compare_texts, NULL, g_free, NULL);
    MtfProductLibraries found = libraries_here();
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "", "; ", -1);
    bool good = text == NULL || (parts[0] != NULL && parse_libraries(parts[0], &found));
    for (int i = 1; good && text != NULL && parts[i] != NULL; i++)
        good = parse_tried(parts[i], shapes);
    if (!good)
        return mtf_input_error(error, "\"%s\" is no choice of ways to multiply", text);
    g_clear_pointer(&choice.tried, g_tree_unref);
    choice.tried = g_steal_pointer(&shapes);
    choice.libraries = found;
    choice.known = true;
    memset(choice.count, 0, sizeof choice.count);
    return true;
}

void mtf_product_choice_count(MtfProductWay way) {
    choice.count[way]++;
}

char *mtf_product_choice_format(void) {
    GString *text = g_string_new("products by ");
    int n = g_tree_nnodes(tried()), listed = 0;
    if (n > 0)
        g_string_append_printf(text, "a trial of %d shape%s and ", n, n == 1 ? "" : "s");
    g_string_append_printf(text, "the table of %s and %s", families[libraries()->family],
                           libraries()->isa);
    for (int way = 0; way < MTF_PRODUCT_WAYS; way++)
        if (choice.count[way] > 0)
            g_string_append_printf(text, "%s%d by %s", listed++ == 0 ? ": " : ", ",
                                   choice.count[way], mtf_products_way((MtfProductWay)way)->name);
    return g_string_free(text, FALSE);
}
