// SPDX-License-Identifier: GPL-3.0-or-later
/* The steps that move elements without computing: other views where that does, else reshapes, joins
 * and lookups. */
#include "analyzer/onnx/onnx_known.h"
#include "analyzer/onnx/onnx_steps.h"

#include <inttypes.h>
#include <string.h>

/* ---- Views ----------------------------------------------------------------------------------- */

MtfOnnxValue *mtf_onnx_transpose(MtfOnnxTranslation *t, MtfOnnxValue *x, const int *order) {
    if (x != NULL && mtf_onnx_folds(t, x)) {
        int64_t own[MTF_ONNX_MAX_RANK], strides[MTF_ONNX_MAX_RANK], sizes[MTF_ONNX_MAX_RANK];
        mtf_onnx_strides(x->rank, x->sizes, own);
        for (int k = 0; k < x->rank; k++) {
            strides[k] = own[order[k]];
            sizes[k] = x->sizes[order[k]];
        }
        return mtf_onnx_known_strided(t, x, x->rank, sizes, 0, strides);
    }
    x = mtf_onnx_material(t, x);
    MtfOnnxValue *view = x == NULL ? NULL : mtf_onnx_view(t, x);
    for (int k = 0; view != NULL && k < x->rank; k++) {
        view->sizes[k] = x->sizes[order[k]];
        view->axes[k] = x->axes[order[k]];
    }
    return view;
}

MtfOnnxValue *mtf_onnx_squeeze(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes) {
    int64_t sizes[MTF_ONNX_MAX_RANK];
    int rank = 0;
    for (int k = 0; x != NULL && k < x->rank; k++) {
        if (axes >> k & 1 && x->sizes[k] != 1)
            return mtf_onnx_fail(t, "axis %d has %" PRId64 " elements and cannot be dropped", k,
                                 x->sizes[k]);
        if (!(axes >> k & 1))
            sizes[rank++] = x->sizes[k];
    }
    if (x != NULL && mtf_onnx_folds(t, x))
        return mtf_onnx_known_reshape(t, x, rank, sizes);
    x = mtf_onnx_material(t, x);
    x = mtf_onnx_drop_units(t, x, ~axes);
    MtfOnnxValue *view = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (view == NULL)
        return NULL;
    view->rank = 0;
    for (int k = 0; k < x->rank; k++) {
        if (axes >> k & 1)
            continue;
        view->sizes[view->rank] = x->sizes[k];
        view->axes[view->rank++] = x->axes[k];
    }
    return view;
}

MtfOnnxValue *mtf_onnx_unsqueeze(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank, unsigned axes) {
    if (rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(t, "more than %d dimensions", MTF_ONNX_MAX_RANK);
    if (x != NULL && mtf_onnx_folds(t, x)) {
        int64_t sizes[MTF_ONNX_MAX_RANK];
        for (int k = 0, from = 0; k < rank; k++)
            sizes[k] = axes >> k & 1 ? 1 : x->sizes[from++];
        return mtf_onnx_known_reshape(t, x, rank, sizes);
    }
    x = mtf_onnx_material(t, x);
    MtfOnnxValue *view = x == NULL ? NULL : mtf_onnx_view(t, x);
    if (view == NULL)
        return NULL;
    for (int k = 0, from = 0; k < rank; k++) {
        bool added = axes >> k & 1;
        view->sizes[k] = added ? 1 : x->sizes[from];
        view->axes[k] = added ? -1 : x->axes[from++];
    }
    view->rank = rank;
    return view;
}

MtfOnnxValue *mtf_onnx_expand(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank,
                              const int64_t *sizes) {
    unsigned keep = 0;
    if (x != NULL && mtf_onnx_folds(t, x)) {
        int64_t own[MTF_ONNX_MAX_RANK], strides[MTF_ONNX_MAX_RANK];
        mtf_onnx_strides(x->rank, x->sizes, own);
        for (int k = 0; k < rank; k++) {
            int from = k - (rank - x->rank);
            strides[k] = from < 0 || x->sizes[from] == 1 ? 0 : own[from];
        }
        return mtf_onnx_known_strided(t, x, rank, sizes, 0, strides);
    }
    x = mtf_onnx_material(t, x);
    for (int k = 0; x != NULL && k < x->rank; k++)
        if (sizes[rank - x->rank + k] == 1)
            keep |= 1U << k;
    x = mtf_onnx_drop_units(t, x, keep);
    MtfOnnxValue *view = x == NULL ? NULL : mtf_onnx_value_new(t, x->type, rank, sizes);
    if (view == NULL)
        return NULL;
    for (int k = 0; k < x->rank; k++)
        view->axes[rank - x->rank + k] = x->axes[k];
    view->tensor = x->tensor;
    return view;
}

/* ---- Reshapes -------------------------------------------------------------------------------- */

/* How the axes of two shapes of as many elements correspond: out axis k is in axis same[k], or a part
 * of what neighbouring axes make together (-1), or an axis of one element without a counterpart (-2).
 * Returns whether all are the same or single. */
static bool match_axes(const MtfOnnxValue *x, int rank, const int64_t *sizes, int *same) {
    bool plain = true;
    int i = 0, j = 0;
    while (j < rank) {
        int64_t in = i < x->rank ? x->sizes[i] : 1, out = sizes[j];
        if (i < x->rank && in == out) {
            same[j++] = i++;
        } else if (out == 1) {
            same[j++] = -2;
        } else if (in == 1) {
            i++;
        } else {
            int64_t left = in, right = out;
            for (same[j++] = -1, i++; left != right;) {
                if (left < right) {
                    left *= x->sizes[i++];
                } else {
                    right *= sizes[j];
                    same[j] = sizes[j] == 1 ? -2 : -1;
                    j++;
                }
            }
            plain = false;
        }
    }
    return plain;
}

static MtfOnnxValue *reshape_view(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank,
                                  const int64_t *sizes, const int *same) {
    unsigned kept = 0;
    for (int k = 0; k < rank; k++)
        if (same[k] >= 0)
            kept |= 1U << same[k];
    x = mtf_onnx_drop_units(t, x, kept);
    MtfOnnxValue *view = x == NULL ? NULL : mtf_onnx_value_new(t, x->type, rank, sizes);
    for (int k = 0; view != NULL && k < rank; k++)
        view->axes[k] = same[k] >= 0 ? x->axes[same[k]] : -1;
    if (view != NULL)
        view->tensor = x->tensor;
    return view;
}

static MtfOnnxValue *reshape_tensor(MtfOnnxTranslation *t, MtfOnnxValue *x, MtfOnnxValue *result,
                                    const int *same) {
    int by[MTF_ONNX_MAX_RANK] = { 0 }, indexes[MTF_ONNX_MAX_RANK];
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_RESHAPE);
    for (int k = 0; k < x->rank; k++)
        by[k] = x->axes[k] >= 0 ? mtf_axis_index(t->graph, &operation, x->sizes[k], NULL) : -1;
    for (int k = 0; k < result->rank; k++) {
        indexes[k] = same[k] >= 0 ? by[same[k]]
                     : same[k] == -1
                         ? mtf_axis_index(t->graph, &operation, result->sizes[k], "part")
                         : -1;
        if (indexes[k] >= 0)
            mtf_shape_append(&operation.shape, indexes[k]);
        result->axes[k] = indexes[k];
    }
    mtf_onnx_take(t, &operation, x, by);
    operation.dtype = mtf_onnx_dtype(x->type);
    result->tensor = mtf_axis_operation_end(t->graph, &operation);
    return result;
}

/* Whether all axes of several elements are without one of the tensor: then any shape is. */
static bool is_repeated_number(const MtfOnnxTranslation *t, const MtfOnnxValue *x) {
    return mtf_axis_tensor(t->graph, x->tensor)->axes.rank == 0;
}

MtfOnnxValue *mtf_onnx_reshape(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank,
                               const int64_t *sizes) {
    int same[MTF_ONNX_MAX_RANK];
    MtfOnnxValue *result = x == NULL ? NULL : mtf_onnx_value_new(t, x->type, rank, sizes);
    if (result == NULL)
        return NULL;
    if (mtf_onnx_elements(result) != mtf_onnx_elements(x))
        return mtf_onnx_fail(t, "%" PRId64 " elements cannot be laid out as %" PRId64,
                             mtf_onnx_elements(x), mtf_onnx_elements(result));
    if (mtf_onnx_folds(t, x))
        return mtf_onnx_known_reshape(t, x, rank, sizes);
    x = mtf_onnx_material(t, x);
    if (x == NULL)
        return NULL;
    if (is_repeated_number(t, x)) {
        result->tensor = x->tensor;
        return result;
    }
    if (match_axes(x, rank, sizes, same))
        return reshape_view(t, x, rank, sizes, same);
    x = mtf_onnx_ordered(t, x);
    return x == NULL ? NULL : reshape_tensor(t, x, result, same);
}

/* New axes are merged with those that they repeat. */
MtfOnnxValue *mtf_onnx_repeat(MtfOnnxTranslation *t, MtfOnnxValue *x, const int64_t *times,
                              bool inner) {
    int64_t wide[2 * MTF_ONNX_MAX_RANK], merged[MTF_ONNX_MAX_RANK];
    unsigned added = 0;
    int rank = 0;
    for (int k = 0; k < x->rank; k++) {
        if (times[k] < 1 || times[k] > INT32_MAX)
            return mtf_onnx_fail(t, "it repeats %" PRId64 " times", times[k]);
        merged[k] = x->sizes[k] * times[k];
        if (times[k] != 1 && !inner) {
            added |= 1U << rank;
            wide[rank++] = times[k];
        }
        wide[rank++] = x->sizes[k];
        if (times[k] != 1 && inner) {
            added |= 1U << rank;
            wide[rank++] = times[k];
        }
    }
    if (rank > MTF_ONNX_MAX_RANK)
        return mtf_onnx_fail(t, "it repeats along too many axes");
    MtfOnnxValue *y = mtf_onnx_unsqueeze(t, x, rank, added);
    y = y == NULL ? NULL : mtf_onnx_expand(t, y, rank, wide);
    return mtf_onnx_reshape(t, y, x->rank, merged);
}

/* ---- Joins ----------------------------------------------------------------------------------- */

/* Inputs in the same order, with an axis of the tensor wherever one of them has one. */
static bool prepare_parts(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue **parts) {
    for (int i = 0; i < n; i++) {
        unsigned keep = 1U << axis;
        for (int k = 0; k < parts[i]->rank; k++) {
            bool all = true;
            for (int j = 0; j < n; j++)
                all = all && parts[j]->axes[k] >= 0;
            keep |= all ? 1U << k : 0;
        }
        parts[i] = mtf_onnx_real(t, mtf_onnx_drop_units(t, parts[i], keep));
        if (parts[i] == NULL)
            return false;
    }
    for (int i = 0; i < n; i++)
        if ((parts[i] = mtf_onnx_ordered(t, parts[i])) == NULL)
            return false;
    return true;
}

static bool check_parts(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue *const *parts) {
    for (int i = 0; i < n; i++) {
        bool same = parts[i]->rank == parts[0]->rank;
        for (int k = 0; same && k < parts[0]->rank; k++)
            same = k == axis || parts[i]->sizes[k] == parts[0]->sizes[k];
        if (!same)
            return mtf_onnx_fail(t, "input %d has other sizes than the first", i) != NULL;
    }
    return true;
}

/* Inputs with as many elements along the axis share an index there. */
static int own_index(MtfOnnxTranslation *t, MtfAxisOperation *operation, GHashTable *own,
                     int64_t size) {
    gpointer found = g_hash_table_lookup(own, &size);
    if (found != NULL)
        return GPOINTER_TO_INT(found) - 1;
    int index = mtf_axis_index(t->graph, operation, size, NULL);
    g_hash_table_insert(own, g_memdup2(&size, sizeof size), GINT_TO_POINTER(index + 1));
    return index;
}

static MtfOnnxValue *join(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue *const *parts,
                          MtfOnnxValue *result) {
    g_autoptr(GHashTable) own = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_CONCAT);
    for (int k = 0; k < result->rank; k++) {
        bool real = k == axis || parts[0]->axes[k] >= 0;
        result->axes[k] = real ? mtf_axis_index(t->graph, &operation, result->sizes[k],
                                                k == axis ? "joined" : NULL)
                               : -1;
        if (real)
            mtf_shape_append(&operation.shape, result->axes[k]);
    }
    for (int i = 0; i < n; i++) {
        MtfShape from = mtf_axis_tensor(t->graph, parts[i]->tensor)->axes, to = { 0 };
        for (int k = 0; k < result->rank; k++)
            if (parts[i]->axes[k] >= 0)
                mtf_shape_append(&to, k == axis ? own_index(t, &operation, own, parts[i]->sizes[k])
                                                : result->axes[k]);
        mtf_axis_operation_take(t->graph, &operation, parts[i]->tensor, &from, &to);
    }
    operation.dtype = mtf_onnx_dtype(result->type);
    result->tensor = mtf_axis_operation_end(t->graph, &operation);
    return result;
}

MtfOnnxValue *mtf_onnx_concat(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue *const *inputs) {
    g_autofree MtfOnnxValue **parts = g_new0(MtfOnnxValue *, n);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (inputs[i] == NULL)
            return NULL;
    if (mtf_onnx_all_fold(t, n, inputs) && check_parts(t, axis, n, inputs))
        return mtf_onnx_known_concat(t, axis, n, inputs);
    for (int i = 0; i < n && t->error == NULL; i++) {
        if (mtf_onnx_elements(inputs[i]) == 0)
            continue;
        parts[m] = mtf_onnx_cast(t, inputs[i], inputs[0]->type);
        if ((parts[m] = mtf_onnx_material(t, parts[m])) == NULL)
            return NULL;
        m++;
    }
    if (m == 0)
        return mtf_onnx_fail(t, "tensors without elements are not supported");
    if (m == 1)
        return parts[0];
    MtfOnnxValue *result = mtf_onnx_value_new(t, parts[0]->type, parts[0]->rank, parts[0]->sizes);
    if (result == NULL || !check_parts(t, axis, m, parts) || !prepare_parts(t, axis, m, parts))
        return NULL;
    result->sizes[axis] = 0;
    for (int i = 0; i < m; i++)
        result->sizes[axis] += parts[i]->sizes[axis];
    return join(t, axis, m, parts, result);
}

/* ---- Lookups --------------------------------------------------------------------------------- */

/* The table's axis for axis j of the result where ids of `rank` axes stand in the place of `axis`; -1
 * for an axis of the ids. */
static int table_axis(int j, int axis, int rank) {
    return j < axis ? j : j >= axis + rank ? j - rank + 1 : -1;
}

/* A table of one row, whatever the ids are. */
static MtfOnnxValue *repeat_row(const MtfOnnxValue *table, const MtfOnnxValue *ids, int axis,
                                MtfOnnxValue *result) {
    for (int j = 0; j < result->rank; j++) {
        int k = table_axis(j, axis, ids->rank);
        result->axes[j] = k >= 0 ? table->axes[k] : -1;
    }
    result->tensor = table->tensor;
    return result;
}

static MtfOnnxValue *look_up(MtfOnnxTranslation *t, const MtfOnnxValue *table,
                             const MtfOnnxValue *ids, int axis, MtfOnnxValue *result) {
    int rows[MTF_ONNX_MAX_RANK] = { 0 };
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_EMBEDDING);
    for (int j = 0; j < result->rank; j++) {
        int k = table_axis(j, axis, ids->rank);
        int from = k >= 0 ? table->axes[k] : ids->axes[j - axis];
        result->axes[j] =
            from >= 0 ? mtf_axis_index(t->graph, &operation, result->sizes[j], NULL) : -1;
        if (k >= 0)
            rows[k] = result->axes[j];
        if (result->axes[j] >= 0)
            mtf_shape_append(&operation.shape, result->axes[j]);
    }
    rows[axis] = mtf_axis_index(t->graph, &operation, table->sizes[axis], "vocab");
    mtf_onnx_take(t, &operation, table, rows);
    mtf_onnx_take(t, &operation, ids, &result->axes[axis]);
    operation.dtype = mtf_axis_tensor(t->graph, table->tensor)->dtype;
    result->tensor = mtf_axis_operation_end(t->graph, &operation);
    return result;
}

MtfOnnxValue *mtf_onnx_lookup(MtfOnnxTranslation *t, MtfOnnxValue *table, MtfOnnxValue *ids,
                              int axis) {
    int64_t sizes[2 * MTF_ONNX_MAX_RANK];
    if (mtf_onnx_folds(t, table) && mtf_onnx_folds(t, ids))
        return mtf_onnx_known_lookup(t, table, ids, axis);
    table = mtf_onnx_weight(t, table, false);
    ids = mtf_onnx_cast(t, mtf_onnx_material(t, ids), MTF_ONNX_INT64);
    if (table == NULL || ids == NULL)
        return NULL;
    int rank = table->rank - 1 + ids->rank;
    for (int j = 0; j < rank; j++) {
        int k = table_axis(j, axis, ids->rank);
        sizes[j] = k >= 0 ? table->sizes[k] : ids->sizes[j - axis];
    }
    MtfOnnxValue *result = mtf_onnx_value_new(t, table->type, rank, sizes);
    if (result == NULL)
        return NULL;
    return table->axes[axis] < 0 ? repeat_row(table, ids, axis, result)
                                 : look_up(t, table, ids, axis, result);
}

MtfOnnxValue *mtf_onnx_lookup_along(MtfOnnxTranslation *t, MtfOnnxValue *table, MtfOnnxValue *ids,
                                    int axis) {
    int rows[MTF_ONNX_MAX_RANK];
    table = mtf_onnx_real(t, mtf_onnx_drop_units(t, mtf_onnx_weight(t, table, false), 0));
    ids = mtf_onnx_real(t, mtf_onnx_drop_units(t, mtf_onnx_cast(t, ids, MTF_ONNX_INT64), 0));
    if (table == NULL || ids == NULL)
        return NULL;
    if (table->sizes[axis] == 1)
        return mtf_onnx_expand(t, table, ids->rank, ids->sizes);
    MtfOnnxValue *result = mtf_onnx_value_new(t, table->type, ids->rank, ids->sizes);
    if (result == NULL)
        return NULL;
    MtfAxisOperation operation = mtf_onnx_begin(t, MTF_OP_EMBEDDING);
    for (int k = 0; k < ids->rank; k++) {
        result->axes[k] =
            ids->axes[k] >= 0 ? mtf_axis_index(t->graph, &operation, ids->sizes[k], NULL) : -1;
        rows[k] = k == axis ? mtf_axis_index(t->graph, &operation, table->sizes[k], "vocab")
                            : result->axes[k];
        if (result->axes[k] >= 0)
            mtf_shape_append(&operation.shape, result->axes[k]);
    }
    mtf_onnx_take(t, &operation, table, rows);
    mtf_onnx_take(t, &operation, ids, result->axes);
    operation.dtype = mtf_axis_tensor(t->graph, table->tensor)->dtype;
    result->tensor = mtf_axis_operation_end(t->graph, &operation);
    return result;
}
