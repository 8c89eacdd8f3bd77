// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/kernel_curves.h"

#include "cost/machine/curve_name.h"
#include "layouts/base/error.h"

#include <math.h>

/* ---- Sorting the tables -------------------------------------------------------------------- */

/* Inserts `side` in its place; false when there is no more room. */
static bool add_side(double *sides, int *count, double side) {
    int i = *count;
    for (int k = 0; k < *count; k++)
        if (sides[k] == side)
            return true;
    if (*count == MTF_PRODUCT_SIDES_MAX)
        return false;
    for (; i > 0 && sides[i - 1] > side; i--)
        sides[i] = sides[i - 1];
    sides[i] = side;
    (*count)++;
    return true;
}

static int find_side(const double *sides, double side) {
    int i = 0;
    while (sides[i] != side)
        i++;
    return i;
}

static bool collect_sides(MtfKernelCurves *curves, const MtfMachine *machine, GError **error) {
    for (guint i = 0; i < machine->curves->len; i++) {
        const MtfMachineCurve *curve = machine->curves->pdata[i];
        MtfCurveName name;
        if (!mtf_curve_name_parse(curve->name, &name) || name.kind != MTF_CURVE_PRODUCT)
            continue;
        MtfProductTable *table = &curves->product[name.form][name.dtype];
        if (!add_side(table->m, &table->n_m, (double)name.m) ||
            !add_side(table->n, &table->n_n, (double)name.n))
            return mtf_input_error(error,
                                   "machine %s: \"%s\" is one side too many, at most %d of "
                                   "each kind are read",
                                   machine->name, curve->name, MTF_PRODUCT_SIDES_MAX);
    }
    return true;
}

static void place_curve(MtfKernelCurves *curves, const MtfMachineCurve *curve) {
    MtfCurveName name;
    if (!mtf_curve_name_parse(curve->name, &name))
        return;
    MtfProductTable *table = &curves->product[name.form][name.dtype];
    switch (name.kind) {
    case MTF_CURVE_OPERATION:
        (name.m > 0 ? curves->short_rows : curves->operation)[name.operation][name.dtype] = curve;
        return;
    case MTF_CURVE_CLASS:
        curves->class[name.class][name.dtype] = curve;
        return;
    case MTF_CURVE_PRODUCT_CALL:
        curves->call_seconds[name.dtype] = curve->y[0];
        return;
    case MTF_CURVE_PRODUCT:
        table->over_k[find_side(table->m, (double)name.m)][find_side(table->n, (double)name.n)] =
            curve;
        return;
    default:
        return;
    }
}

static bool refuse_hole(const MtfMachine *machine, const MtfCurveName *name, GError **error) {
    g_autofree char *text = mtf_curve_name_format(name);
    return mtf_input_error(error, "machine %s: curve \"%s\" is missing between the others",
                           machine->name, text);
}

/* Whether the grid of the form and dtype of `name` has no holes. */
static bool check_grid(const MtfKernelCurves *curves, MtfCurveName name, const MtfMachine *machine,
                       GError **error) {
    const MtfProductTable *table = &curves->product[name.form][name.dtype];
    for (int i = 0; i < table->n_m; i++)
        for (int j = 0; j < table->n_n; j++) {
            name.m = (int64_t)table->m[i];
            name.n = (int64_t)table->n[j];
            if (table->over_k[i][j] == NULL)
                return refuse_hole(machine, &name, error);
        }
    return true;
}

static bool check_grids(const MtfKernelCurves *curves, const MtfMachine *machine, GError **error) {
    MtfCurveName name = { .kind = MTF_CURVE_PRODUCT };
    for (int i = 0; i < MTF_PRODUCT_FORMS * MTF_DTYPES; i++) {
        name.form = (MtfProductForm)(i / MTF_DTYPES);
        name.dtype = (MtfDtype)(i % MTF_DTYPES);
        if (!check_grid(curves, name, machine, error))
            return false;
    }
    return true;
}

/* Forms of products that were not measured go as fast as rows by rows. */
static void fill_forms(MtfKernelCurves *curves) {
    for (int form = MTF_PRODUCT_NT; form <= MTF_PRODUCT_TN; form++)
        for (int dtype = 0; dtype < MTF_DTYPES; dtype++)
            if (curves->product[form][dtype].n_m == 0)
                curves->product[form][dtype] = curves->product[MTF_PRODUCT_NN][dtype];
}

/* What has no rate of its own is computed in its wide type. */
static void widen(MtfKernelCurves *curves, MtfDtype dtype) {
    MtfDtype wide = mtf_dtype_wide(dtype);
    for (int i = 0; i < MTF_OPERATIONS; i++) {
        if (curves->operation[i][dtype] != NULL)
            continue;
        curves->operation[i][dtype] = curves->operation[i][wide];
        curves->short_rows[i][dtype] = curves->short_rows[i][wide];
    }
    for (int i = 0; i < MTF_CLASSES; i++)
        if (curves->class[i][dtype] == NULL)
            curves->class[i][dtype] = curves->class[i][wide];
    if (curves->product[MTF_PRODUCT_NN][dtype].n_m == 0)
        curves->call_seconds[dtype] = curves->call_seconds[wide];
    for (int form = 0; form < MTF_PRODUCT_FORMS; form++)
        if (curves->product[form][dtype].n_m == 0)
            curves->product[form][dtype] = curves->product[form][wide];
}

bool mtf_kernel_curves_init(MtfKernelCurves *curves, const MtfMachine *machine, GError **error) {
    *curves = (MtfKernelCurves){ 0 };
    if (!collect_sides(curves, machine, error))
        return false;
    for (guint i = 0; i < machine->curves->len; i++)
        place_curve(curves, machine->curves->pdata[i]);
    if (!check_grids(curves, machine, error))
        return false;
    fill_forms(curves);
    for (int dtype = 0; dtype < MTF_DTYPES; dtype++)
        if (!mtf_machine_names_rate(machine, mtf_dtype_short_name((MtfDtype)dtype)))
            widen(curves, (MtfDtype)dtype);
    return true;
}

/* ---- Asking them --------------------------------------------------------------------------- */

/* Where `x` lies on a rising scale: at sides[low] + share (sides[high] - sides[low]). Beyond the
 * end the last two go on, so the share exceeds 1; before the start it is 0. */
typedef struct {
    int low, high;
    double share;
} Place;

static Place place_on(const double *sides, int count, double x) {
    int high = 0;
    while (high < count - 1 && sides[high] < x)
        high++;
    if (high == 0)
        return (Place){ 0, 0, 0 };
    int low = high - 1;
    return (Place){ low, high, (x - sides[low]) / (sides[high] - sides[low]) };
}

static double between(double low, double high, double share) {
    return low + share * (high - low);
}

double mtf_product_table_seconds(const MtfProductTable *table, double m, double n, double k) {
    Place row = place_on(table->m, table->n_m, m), column = place_on(table->n, table->n_n, n);
    double at[2];
    for (int i = 0; i < 2; i++) {
        const MtfMachineCurve *const *line = table->over_k[i == 0 ? row.low : row.high];
        at[i] = between(mtf_machine_curve_at(line[column.low], k),
                        mtf_machine_curve_at(line[column.high], k), column.share);
    }
    return between(at[0], at[1], row.share);
}

static const MtfMachineCurve *kernel_curve(const MtfKernelCurves *curves, int operation,
                                           MtfKernelClass class, MtfDtype dtype) {
    const MtfMachineCurve *own = operation >= 0 ? curves->operation[operation][dtype] : NULL;
    return own != NULL ? own : curves->class[class][dtype];
}

/* Beyond this the inner loop is no longer a loop. */
#define SHORTEST_ROW 8.0

/* A kernel takes c0 + c1 bytes + c2 rows: seconds of an operation that has a table, `curve`. */
static double rows_seconds(const MtfKernelCurves *curves, int operation, MtfDtype dtype,
                           const MtfMachineCurve *curve, double bytes, double row_length) {
    double seconds = mtf_machine_curve_at(curve, bytes);
    const MtfMachineCurve *rows = operation >= 0 ? curves->short_rows[operation][dtype] : NULL;
    if (rows == NULL || row_length <= 0 || row_length >= MTF_LONG_ROW)
        return seconds;
    double more = fmax(mtf_machine_curve_at(rows, bytes) - seconds, 0);
    double length = fmax(row_length, SHORTEST_ROW);
    return seconds +
           more * (1 / length - 1.0 / MTF_LONG_ROW) / (1.0 / MTF_SHORT_ROW - 1.0 / MTF_LONG_ROW);
}

/* Of products or heads, one after another. */
static bool products_seconds(const MtfKernelCurves *curves, const MtfProductWork *work,
                             MtfDtype dtype, double *seconds) {
    const MtfProductTable *table = &curves->product[work->form][dtype];
    if (table->n_m == 0)
        return false;
    *seconds = work->calls == 0
                   ? 0
                   : curves->call_seconds[dtype] +
                         work->calls * mtf_product_table_seconds(table, work->m, work->n, work->k);
    return true;
}

static bool einsum_seconds(const MtfKernelCurves *curves, const MtfInstruction *instruction,
                           MtfDtype dtype, double *seconds) {
    const MtfProductWork *work = &instruction->products;
    int operation = work->calls > 0 ? -1 : MTF_OP_EINSUM;
    const MtfMachineCurve *sweep = kernel_curve(curves, operation, MTF_CLASS_MOVE, dtype);
    if (sweep == NULL || !products_seconds(curves, work, dtype, seconds))
        return false;
    if (work->swept_bytes > 0)
        *seconds += rows_seconds(curves, operation, dtype, sweep, work->swept_bytes,
                                 instruction->row_length);
    return true;
}

/* Without groups: those go one after another, each a product. */
static bool has_own_curve(const MtfKernelCurves *curves, const MtfInstruction *instruction,
                          int operation, MtfDtype dtype) {
    const MtfProductWork *work = &instruction->products;
    return work->channels[0] > 0 && work->calls == 1 && curves->operation[operation][dtype] != NULL;
}

double mtf_kernel_curve_work(const MtfInstruction *instruction) {
    if (instruction->products.channels[0] > 0)
        return instruction->flops;
    double swept_bytes = instruction->products.swept_bytes;
    return swept_bytes > 0 ? swept_bytes : instruction->traffic_bytes;
}

bool mtf_kernel_curves_seconds(const MtfKernelCurves *curves, const MtfProgram *program,
                               const MtfInstruction *instruction, MtfDtype dtype, double *seconds) {
    int operation = -1;
    MtfProductsKind products = MTF_PRODUCTS_NONE;
    if (instruction->kind == MTF_INSTRUCTION_KERNEL) {
        operation = mtf_graph_operation(program->graph, instruction->operation)->kind;
        products = mtf_operation_row(operation)->products;
    }
    if (products == MTF_PRODUCTS_EINSUM)
        return einsum_seconds(curves, instruction, dtype, seconds);
    if (products != MTF_PRODUCTS_NONE && !has_own_curve(curves, instruction, operation, dtype))
        return products_seconds(curves, &instruction->products, dtype, seconds);
    const MtfMachineCurve *curve =
        kernel_curve(curves, operation, instruction->kernel_class, dtype);
    if (curve != NULL)
        *seconds = rows_seconds(curves, operation, dtype, curve, mtf_kernel_curve_work(instruction),
                                instruction->row_length);
    return curve != NULL;
}
