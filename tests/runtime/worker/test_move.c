// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/reshard_program.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfPlacement *from, *to;
} Pair;

static void fill_sources(const Pair *pair, MtfLockstep *lockstep) {
    for (int r = 0; r < lockstep->n; r++) {
        const MtfOperand *slice = &lockstep->workers[r]->operands[0];
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
            mtf_slice_set(slice, i,
                          mtf_reshard_term(slice->dtype, pair->mesh, pair->from,
                                           mtf_slice_global_index(slice, i), r));
    }
}

/* Element `i` of rank `r`'s target slice, reduced over the axes that are partial there. */
static double reduced(const Pair *pair, const MtfLockstep *lockstep, int target, int r, int64_t i) {
    unsigned partial = mtf_placement_partial_axes(pair->to);
    bool maximum = lockstep->workers[r]->operands[target].dtype == MTF_BOOL;
    for (int a = 0; a < pair->mesh->n_axes; a++)
        maximum |= pair->to->axis[a] == MTF_PARTIAL_MAX;
    double value = maximum ? -INFINITY : 0;
    for (int p = 0; p < mtf_mesh_group_size(pair->mesh, partial); p++) {
        int member = mtf_mesh_group_member(pair->mesh, partial, r, p);
        double term = mtf_slice_get(&lockstep->workers[member]->operands[target], i);
        value = maximum ? fmax(value, term) : value + term;
    }
    return value;
}

/* The number of wrong elements over all ranks after going from one placement to the other;
 * `corrupt` makes one source element wrong. */
static int64_t wrong_elements(const Pair *pair, bool corrupt) {
    int target;
    g_autoptr(MtfLayout) layout = mtf_layout_new(pair->graph, pair->mesh);
    g_autoptr(MtfProgram) program =
        mtf_reshard_program(pair->graph, layout, pair->from, pair->to, &target);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, 1, &error);
    if (lockstep == NULL)
        fail_msg("%s", error->message);
    fill_sources(pair, lockstep);
    if (corrupt)
        mtf_slice_set(&lockstep->workers[0]->operands[0], 0, 12345);
    mtf_lockstep_step(lockstep, 1);
    int64_t wrong = 0;
    for (int r = 0; r < lockstep->n; r++) {
        const MtfOperand *slice = &lockstep->workers[r]->operands[target];
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
            wrong += reduced(pair, lockstep, target, r, i) !=
                     mtf_reshard_value(slice->dtype, pair->mesh, pair->from,
                                       mtf_slice_global_index(slice, i));
    }
    return wrong;
}

/* Whether a pair needs both sums and maxima: integers have no minus infinity that survives a sum, so no
 * tensor of them is ever partial by both. */
static bool mixes_reductions(const Pair *pair) {
    bool sum = false, maximum = false;
    for (int a = 0; a < pair->mesh->n_axes; a++) {
        sum |= pair->from->axis[a] == MTF_PARTIAL_SUM || pair->to->axis[a] == MTF_PARTIAL_SUM;
        maximum |= pair->from->axis[a] == MTF_PARTIAL_MAX || pair->to->axis[a] == MTF_PARTIAL_MAX;
    }
    return sum && maximum;
}

static void check_all_pairs(const char *mesh_text, int rank, const int64_t *sizes, MtfDtype dtype) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(rank, sizes, dtype);
    g_autoptr(GArray) placements = mtf_reshard_placements(&mesh, rank);
    for (guint i = 0; i < placements->len; i++)
        for (guint j = 0; j < placements->len; j++) {
            Pair pair = { graph, &mesh, &g_array_index(placements, MtfPlacement, i),
                          &g_array_index(placements, MtfPlacement, j) };
            if (mtf_dtype_is_integer(dtype) && mixes_reductions(&pair))
                continue;
            int64_t wrong = wrong_elements(&pair, false);
            if (wrong == 0)
                continue;
            g_autofree char *from = mtf_placement_format(graph, &mesh, pair.from);
            g_autofree char *to = mtf_placement_format(graph, &mesh, pair.to);
            fail_msg("%s: %s -> %s: %d elements are wrong", mesh_text, from, to, (int)wrong);
        }
}

TEST(every_pair_of_placements_arrives_on_2x2) {
    check_all_pairs("r:2;c:2", 3, (int64_t[]){ 4, 2, 6 }, MTF_F64);
}

TEST(every_pair_of_placements_arrives_on_2x2_where_sizes_do_not_divide) {
    check_all_pairs("r:2;c:2", 3, (int64_t[]){ 5, 1, 3 }, MTF_F32);
}

TEST(every_pair_of_placements_arrives_on_4x2) {
    check_all_pairs("r:4;c:2", 2, (int64_t[]){ 8, 16 }, MTF_I32);
    check_all_pairs("r:4;c:2", 2, (int64_t[]){ 8, 5 }, MTF_BOOL);
    check_all_pairs("r:4;c:2", 2, (int64_t[]){ 7, 5 }, MTF_F32);
}

TEST(every_pair_of_placements_arrives_on_2x2x2) {
    check_all_pairs("r:2;c:2;p:2", 2, (int64_t[]){ 8, 8 }, MTF_F32);
    check_all_pairs("r:2;c:2;p:2", 2, (int64_t[]){ 9, 3 }, MTF_F32);
}

TEST(every_pair_of_placements_arrives_on_3x2) {
    check_all_pairs("r:3;c:2", 2, (int64_t[]){ 2, 7 }, MTF_F64);
    check_all_pairs("r:3;c:2", 2, (int64_t[]){ 2, 7 }, MTF_BF16);
    check_all_pairs("r:3;c:2", 2, (int64_t[]){ 2, 7 }, MTF_I64);
}

TEST(a_wrong_element_is_noticed) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("r:2;c:2", 0, &mesh, NULL));
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(2, (int64_t[]){ 4, 4 }, MTF_F32);
    MtfPlacement from = mtf_placement_replicated(), to = mtf_placement_replicated();
    from.axis[0] = 0;
    to.axis[1] = 1;
    assert_int_not_equal(wrong_elements(&(Pair){ graph, &mesh, &from, &to }, true), 0);
}

TEST(a_count_beyond_the_limit_is_refused) {
    int narrow = 7;
    assert_true(mtf_count_narrow(10, 10, &narrow, NULL));
    assert_int_equal(narrow, 10);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_count_narrow(11, 10, &narrow, &error));
    assert_non_null(strstr(error->message, "11 elements"));
    assert_int_equal(narrow, 10);
    assert_false(mtf_count_narrow(-1, 10, &narrow, NULL));
    assert_false(mtf_count_narrow(1, INT64_C(1) << 40, &narrow, NULL));
}
