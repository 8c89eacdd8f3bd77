// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/price/kernel_curves.h"
#include "layouts/base/error.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>
#include <string.h>

/* c0 + c1 mnk + c2 mk + c3 kn + c4 mn. */
static void assert_close(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g is not %.12g", value, expected);
}

static double affine(double m, double n, double k) {
    return 1e-6 + 2e-11 * m * n * k + 3e-10 * m * k + 4e-10 * k * n + 5e-10 * m * n;
}

static void add_products(MtfMachine *machine, const double *sides, int count) {
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            double y[8];
            for (int k = 0; k < count; k++)
                y[k] = affine(sides[i], sides[j], sides[k]);
            g_autofree char *name = g_strdup_printf("product/f32/%.0fx%.0f", sides[i], sides[j]);
            mtf_machine_add_curve(machine, name, count, sides, y);
        }
}

TEST(products_of_constant_rates_are_met_exactly) {
    static const double sides[] = { 1, 8, 64 };
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    add_products(machine, sides, 3);
    MtfKernelCurves curves;
    assert_true(mtf_kernel_curves_init(&curves, machine, NULL));
    const MtfProductTable *table = &curves.product[MTF_PRODUCT_NN][MTF_F32];
    /* On the grid, inside it, and beyond it on every side at once. */
    static const double shapes[][3] = { { 8, 8, 8 },    { 1, 64, 8 },     { 5, 23, 41 },
                                        { 64, 1, 17 },  { 300, 2, 7 },    { 3, 500, 9 },
                                        { 2, 3, 4096 }, { 200, 300, 400 } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        double m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        assert_close(mtf_product_table_seconds(table, m, n, k), affine(m, n, k));
    }
}

TEST(a_hole_in_the_grid_is_named) {
    static const double x[] = { 1 };
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    machine->name = g_strdup("holey");
    mtf_machine_add_curve(machine, "product/f32/1x1", 1, x, x);
    mtf_machine_add_curve(machine, "product/f32/1x8", 1, x, x);
    mtf_machine_add_curve(machine, "product/f32/8x1", 1, x, x);
    MtfKernelCurves curves;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_kernel_curves_init(&curves, machine, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "product/f32/8x8"));
}

/* x[r, c] of 8 x 4 floats, and y = relu(x), z = x w with w[c, n] of 4 x 2. */
static MtfGraph *make_graph(void) {
    MtfGraph *graph = mtf_graph_new("g");
    static const int64_t sizes[] = { 8, 4, 2 };
    static const char *const names[] = { "r", "c", "n" };
    for (int d = 0; d < 3; d++)
        mtf_graph_add_dimension(graph, names[d], sizes[d], NULL);
    MtfShape x_shape = { .rank = 2, .dims = { 0, 1 } }, w_shape = { .rank = 2, .dims = { 1, 2 } };
    MtfShape z_shape = { .rank = 2, .dims = { 0, 2 } };
    int x = mtf_graph_add_input(graph, "x", &x_shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    int w = mtf_graph_add_input(graph, "w", &w_shape, MTF_F32, MTF_FEED_FEATURES, NULL);
    MtfNewOperation relu = { .name = "y",
                             .kind = MTF_OP_RELU,
                             .n_inputs = 1,
                             .inputs = &x,
                             .attributes = MTF_NO_ATTRIBUTES };
    mtf_graph_add_operation(graph, &relu, NULL);
    MtfNewOperation product = { .name = "z",
                                .kind = MTF_OP_EINSUM,
                                .n_inputs = 2,
                                .inputs = (int[]){ x, w },
                                .shape = &z_shape,
                                .attributes = MTF_NO_ATTRIBUTES };
    mtf_graph_add_operation(graph, &product, NULL);
    return graph;
}

typedef struct {
    MtfGraph *graph;
    MtfLayout *layout;
    MtfProgram *program;
} Case;

static Case make_case(MtfGraph *graph) {
    Case c = { .graph = graph };
    MtfMesh mesh;
    mtf_mesh_parse("one:1", 0, &mesh, NULL);
    c.layout = mtf_layout_new(c.graph, &mesh);
    c.program = mtf_lower(c.graph, c.layout);
    return c;
}

static void clear_case(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_graph_free(c->graph);
}

static bool ask(const Case *c, const MtfMachine *machine, int instruction, double *seconds) {
    MtfKernelCurves curves;
    assert_true(mtf_kernel_curves_init(&curves, machine, NULL));
    return mtf_kernel_curves_seconds(
        &curves, c->program, mtf_program_instruction(c->program, instruction), MTF_F32, seconds);
}

/* relu reads and writes 2 * 8 * 4 * 4 = 256 bytes. */
TEST(an_operation_goes_by_its_table_then_by_its_class) {
    static const double x[] = { 0, 512 }, slow[] = { 0, 512 }, fast[] = { 0, 51.2 };
    Case c = make_case(make_graph());
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    double seconds = 0;
    assert_false(ask(&c, machine, 0, &seconds));
    mtf_machine_add_curve(machine, "elementwise/f32", 2, x, slow);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 256);
    mtf_machine_add_curve(machine, "relu/f32", 2, x, fast);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 25.6);
    clear_case(&c);
}

/* z is one product of 8 x 4 by 4 x 2. */
TEST(a_sum_of_products_is_a_call_and_its_products) {
    static const double sides[] = { 1, 8, 64 }, zero[] = { 0, 1 }, call[] = { 3, 3 };
    Case c = make_case(make_graph());
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    double seconds = 0;
    add_products(machine, sides, 3);
    assert_false(ask(&c, machine, 1, &seconds));
    mtf_machine_add_curve(machine, "move/f32", 2, zero, zero);
    mtf_machine_add_curve(machine, "product/f32", 2, zero, call);
    assert_true(ask(&c, machine, 1, &seconds));
    assert_close(seconds, 3 + affine(8, 2, 4));
    clear_case(&c);
}

/* The grids of the forms differ in what a product of 1 x 1 takes; TN has none of its own. */
TEST(each_form_of_a_product_goes_by_its_own_grid) {
    static const double x[] = { 1 }, nn[] = { 5 }, nt[] = { 7 };
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    mtf_machine_add_curve(machine, "product/f32/1x1", 1, x, nn);
    mtf_machine_add_curve(machine, "product_nt/f32/1x1", 1, x, nt);
    MtfKernelCurves curves;
    assert_true(mtf_kernel_curves_init(&curves, machine, NULL));
    static const double expected[] = { 5, 7, 5 };
    for (int form = MTF_PRODUCT_NN; form <= MTF_PRODUCT_TN; form++)
        assert_close(mtf_product_table_seconds(&curves.product[form][MTF_F32], 1, 1, 1),
                     expected[form]);
}

/* Two heads of 8 queries that look at 4 keys of 2 features, by a grid of one point, 5 s a head at
 * any sides; products have another. */
TEST(attention_goes_head_by_head) {
    static const double x[] = { 1 }, head[] = { 5 }, product[] = { 100 }, call[] = { 3 };
    MtfGraph *graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'h': 2, 'l': 8, 't': 4, 'd': 2},"
        "'inputs': [{'name': 'q', 'dims': ['h', 'l', 'd'], 'feed': 'features'},"
        "{'name': 'k', 'dims': ['h', 't', 'd'], 'feed': 'features'}],"
        "'operations': [{'name': 'o', 'op': 'attention', 'inputs': ['q', 'k', 'k'], 'query': 'l', "
        "'memory': 't', 'dimension': 'd', 'factor': 1}]}");
    Case c = make_case(graph);
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    double seconds = 0;
    mtf_machine_add_curve(machine, "product/f32/1x1", 1, x, product);
    assert_false(ask(&c, machine, 0, &seconds));
    mtf_machine_add_curve(machine, "attention/f32/1x1", 1, x, head);
    mtf_machine_add_curve(machine, "product/f32", 1, x, call);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 3 + 2 * 5);
    clear_case(&c);
}

/* y[r] = sum of x[r, c] over c, of 8 rows of 64 elements: 8 * 64 * 4 + 8 * 4 = 2080 bytes. Long
 * rows take 1 s a byte and short ones 8 s; 1/64 lies (1/64 - 1/256) / (1/32 - 1/256) = 3/7 of the
 * way. */
TEST(short_rows_take_longer) {
    static const double x[] = { 0, 1 }, slow[] = { 0, 1 }, slower[] = { 0, 8 };
    Case c = make_case(mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'r': 8, 'c': 64},"
        "'inputs': [{'name': 'x', 'dims': ['r', 'c'], 'feed': 'features'}],"
        "'operations': [{'name': 'y', 'op': 'reduce_sum', 'inputs': ['x'], 'dims': ['r']}]}"));
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    double seconds = 0;
    mtf_machine_add_curve(machine, "reduce_sum/f32", 2, x, slow);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 2080);
    mtf_machine_add_curve(machine, "reduce_sum/f32/32", 2, x, slower);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 2080 + 7 * 2080 * 3.0 / 7);
    clear_case(&c);
}

/* y[i, b] of x[r, a] and windows of one of 8 places: 2 * 8 * 16 * 16 = 4096 flop between 16 channels and 16,
 * which are short rows; of 16 groups y[i, a] is 16 products. */
TEST(a_convolution_without_groups_goes_by_its_table) {
    static const double x[] = { 0, 1 }, slow[] = { 0, 1 }, slower[] = { 0, 8 }, one[] = { 5, 5 };
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'r': 8, 'i': 8, 'k': 1, 'a': 16, 'b': 16},"
        "'inputs': [{'name': 'x', 'dims': ['r', 'a'], 'feed': 'features'},"
        "{'name': 'f', 'dims': ['k', 'a', 'b'], 'feed': 'features'},"
        "{'name': 'own', 'dims': ['k', 'a'], 'feed': 'features'}],"
        "'operations': [{'name': 'y', 'op': 'conv', 'inputs': ['x', 'f'], 'dims': ['i', 'b'], "
        "'windows': [{'from': 'r', 'to': 'i', 'kernel': 'k'}]},"
        "{'name': 'z', 'op': 'conv', 'inputs': ['x', 'own'], 'dims': ['i', 'a'], "
        "'windows': [{'from': 'r', 'to': 'i', 'kernel': 'k'}]}]}";
    Case c = make_case(mtf_test_graph(text));
    g_autoptr(MtfMachine) machine = mtf_machine_new();
    double seconds = 0;
    mtf_machine_add_curve(machine, "product/f32/1x1", 2, x, one);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 5);
    mtf_machine_add_curve(machine, "conv/f32", 2, x, slow);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 4096);
    mtf_machine_add_curve(machine, "conv/f32/32", 2, x, slower);
    assert_true(ask(&c, machine, 0, &seconds));
    assert_close(seconds, 8 * 4096);
    assert_true(ask(&c, machine, 1, &seconds));
    assert_close(seconds, 16 * 5);
    clear_case(&c);
}
