// SPDX-License-Identifier: GPL-3.0-or-later
/* Sorting along a split dimension, choosing the largest there, and gradients back to where elements stood, against a
 * sort of the whole on one processor: all processors live in this process. */
#include "layouts/placement/sort_columns.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>
#include <stdlib.h>

#define ROWS 6 /* b and c */

enum { X, SORTED, INDEX, BACK, TENSORS };

typedef struct {
    MtfGraph *graph;
    MtfMesh mesh;
    int64_t size, wanted; /* wanted: how many of them, the largest first; 0: all of them, sorted */
    bool reverse;
    double *expected[TENSORS]; /* [b, n, c], of what is chosen [b, k, c] */
} Case;

/* Many are equal, and some are no numbers. */
static double element(int64_t i) {
    int64_t drawn = (i * 7919 + i * i % 977) % 613;
    return drawn == 5 ? NAN : (double)drawn / 4 - 70;
}

static const double *row_values;
static bool row_reverse;

/* By value, what is no number as the largest; equal ones as they stood. */
static int compare_places(const void *a, const void *b) {
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    double x = row_values[i], y = row_values[j];
    int order = isnan(x) || isnan(y) ? !!isnan(x) - !!isnan(y) : (x > y) - (x < y);
    return order != 0 ? (row_reverse ? -order : order) : (i > j) - (i < j);
}

/* Row r of what is made of elements, of which `places` says where they stand, in that order. */
static void expect_row(Case *c, int64_t r, const int64_t *places) {
    int64_t n = c->wanted > 0 ? c->wanted : c->size;
    int64_t given = r / 2 * c->size * 2 + r % 2, made = r / 2 * n * 2 + r % 2;
    for (int64_t i = 0; i < n; i++) {
        double x = c->expected[X][given + 2 * places[i]];
        c->expected[SORTED][made + 2 * i] = x;
        c->expected[INDEX][made + 2 * i] = (double)places[i];
        c->expected[BACK][given + 2 * places[i]] = x;
    }
}

static void expect(Case *c) {
    g_autofree double *row = g_new(double, c->size);
    g_autofree int64_t *places = g_new(int64_t, c->size);
    for (int k = 0; k < TENSORS; k++)
        c->expected[k] = g_new0(double, ROWS * c->size);
    for (int64_t r = 0; r < ROWS; r++) {
        int64_t first = r / 2 * c->size * 2 + r % 2;
        for (int64_t i = 0; i < c->size; i++) {
            row[i] = c->expected[X][first + 2 * i] = element(first + 2 * i);
            places[i] = i;
        }
        row_values = row;
        row_reverse = c->reverse || c->wanted > 0;
        qsort(places, (size_t)c->size, sizeof *places, compare_places);
        expect_row(c, r, places);
    }
}

static void case_init(Case *c, const char *mesh, int64_t size, int64_t wanted, bool reverse) {
    g_autofree char *sorts =
        g_strdup_printf("{'name':'y','op':'sort','inputs':['x'],'dimension':'n','reverse':%d},"
                        "{'name':'z','op':'sort_grad','inputs':['y/index','y'],'dimension':'n'}",
                        reverse);
    const char *chooses =
        "{'name':'y','op':'top_k','inputs':['x'],'from':'n','to':'k','blocks':1},"
        "{'name':'z','op':'embedding_grad','inputs':['y/index','y'],'dims':['b','n','c']}";
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'b':3,'n':%d,'k':%d,'c':2},'inputs':["
        "{'name':'x','dims':['b','n','c'],'feed':'features'}],'variables':[],'operations':[%s]}",
        (int)size, (int)MAX(wanted, 1), wanted > 0 ? chooses : sorts);
    *c =
        (Case){ .graph = mtf_test_graph(text), .size = size, .wanted = wanted, .reverse = reverse };
    assert_true(mtf_mesh_parse(mesh, 0, &c->mesh, NULL));
    expect(c);
}

static void case_clear(Case *c) {
    for (int k = 0; k < TENSORS; k++)
        g_free(c->expected[k]);
    mtf_graph_free(c->graph);
}

static int8_t index_of(const Case *c, int operation, const char *dim) {
    int index = MTF_DUPLICATED;
    mtf_strategy_axis_parse(c->graph, operation, dim, &index, NULL);
    return (int8_t)index;
}

/* Axis a splits the dimension of that letter; of operations and tensors that lack it nothing. */
static MtfLayout *layout_of(const Case *c, const char *dims) {
    MtfLayout *layout = mtf_layout_new(c->graph, &c->mesh);
    for (int a = 0; a < c->mesh.n_axes; a++) {
        const char name[] = { dims[a], 0 };
        int dim = mtf_graph_find_dimension(c->graph, name);
        for (int o = 0; o < 2; o++)
            layout->operations[o].axis[a] = index_of(c, o, name);
        for (int t = 0; t < TENSORS; t++)
            if (mtf_shape_find(&mtf_graph_tensor(c->graph, t)->shape, dim) >= 0)
                layout->tensors[t].axis[a] = (int16_t)dim;
    }
    assert_true(mtf_layout_check(c->graph, layout, NULL));
    return layout;
}

static void check_slice(const Case *c, const MtfOperand *slice, int tensor) {
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++) {
        double expected = c->expected[tensor][mtf_slice_global_index(slice, i)];
        double found = mtf_slice_get(slice, i);
        if (found != expected && !(isnan(found) && isnan(expected)))
            fail_msg("tensor %d, element %d is %g, not %g", tensor,
                     (int)mtf_slice_global_index(slice, i), found, expected);
    }
}

static void load(const Case *c, const MtfLockstep *lockstep) {
    for (int r = 0; r < lockstep->n; r++) {
        const MtfOperand *slice = mtf_worker_tensor(lockstep->workers[r], X);
        for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
            mtf_slice_set(slice, i, c->expected[X][mtf_slice_global_index(slice, i)]);
    }
}

/* Runs the program, and looks at what its instructions make of the tensors, sums that are still to be added up
 * and columns left aside. */
static int run(const Case *c, const MtfProgram *program) {
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, 1, NULL);
    int parts = 0;
    load(c, lockstep);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        mtf_lockstep_instruction(lockstep, i, 1);
        parts += instruction->part > 0;
        for (int k = 0; k < instruction->n_outputs; k++) {
            const MtfBuffer *buffer = mtf_program_buffer(program, instruction->outputs[k]);
            if (buffer->column == 0 && mtf_placement_partial_axes(&buffer->placement) == 0)
                for (int r = 0; r < lockstep->n; r++)
                    check_slice(c, &lockstep->workers[r]->operands[instruction->outputs[k]],
                                buffer->tensor);
        }
    }
    return parts;
}

static int count_kind(const MtfProgram *program, MtfReshardKind kind) {
    int n = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        n += mtf_program_instruction(program, i)->kind == MTF_INSTRUCTION_RESHARD &&
             mtf_program_instruction(program, i)->reshard.kind == kind;
    return n;
}

/* On one axis and over several, ragged, with rows split as well, both ways round. */
TEST(what_is_sorted_in_many_parts_goes_by_columns) {
    static const struct {
        const char *mesh;
        int size;
        const char *dims;
    } cases[] = {
        { "a:8", 1000, "n" },          { "a:8", 1003, "n" },      { "a:7", 1000, "n" },
        { "a:2;b:4", 857, "nn" },      { "a:3;b:3", 1600, "nn" }, { "a:3;b:8", 900, "bn" },
        { "a:2;b:2;c:2", 801, "nnn" }, { "a:8;b:2", 1024, "nb" }, { "a:11", 2600, "n" },
    };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, cases[i / 2].mesh, cases[i / 2].size, 0, i % 2 == 1);
        g_autoptr(MtfLayout) layout = layout_of(&c, cases[i / 2].dims);
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
        assert_int_equal(run(&c, program), 8);
        assert_int_equal(count_kind(program, MTF_RESHARD_ALLGATHER), 0);
        assert_int_equal(count_kind(program, MTF_RESHARD_ALLTOALL), 8);
        assert_int_equal(count_kind(program, MTF_RESHARD_HALO), 4);
        case_clear(&c);
    }
}

/* In few parts, and of few elements, all of them are less than columns and their places. */
TEST(few_parts_see_all_elements) {
    static const struct {
        const char *mesh;
        int size;
    } cases[] = {
        { "a:2", 1000 }, { "a:4", 1001 }, { "a:8", 700 }, { "a:5", 7 }, { "a:2;b:2", 33 }
    };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, cases[i / 2].mesh, cases[i / 2].size, 0, i % 2 == 1);
        g_autoptr(MtfLayout) layout = layout_of(&c, "nn");
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
        assert_int_equal(run(&c, program), 0);
        assert_int_equal(count_kind(program, MTF_RESHARD_ALLGATHER), 1);
        assert_int_equal(count_kind(program, MTF_RESHARD_REDUCE_SCATTER), 1);
        case_clear(&c);
    }
}

/* 1000 elements in 8 parts: 125 are filled up to a column of 128, of 6 rows. Elements and places, of 4 bytes each:
 * 6 * 128 * 4 = 3072 bytes by either all-to-all, and by the halo to either neighbour 6 * 64 * 4 = 1536. */
TEST(columns_send_what_was_counted_by_hand) {
    Case c;
    case_init(&c, "a:8", 1000, 0, false);
    g_autoptr(MtfLayout) layout = layout_of(&c, "n");
    g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
    assert_int_equal(mtf_sort_column(c.graph, mtf_graph_operation(c.graph, 0), 8), 128);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_RESHARD)
            continue;
        bool halo = instruction->reshard.kind == MTF_RESHARD_HALO;
        assert_int_equal(instruction->payload_bytes, 3072);
        assert_int_equal(mtf_instruction_payload(program, i, 0), halo ? 1536 : 3072);
        assert_int_equal(mtf_instruction_payload(program, i, 3), 3072);
        assert_int_equal(instruction->scratch, -1);
    }
    case_clear(&c);
}

/* On one axis and over several, ragged, with rows or what is chosen split as well; more wanted than a part has; gradients
 * go to the parts that have the elements. */
TEST(what_is_chosen_of_many_parts_are_the_best_of_their_best) {
    static const struct {
        const char *mesh;
        int size, wanted;
        const char *dims;
    } cases[] = {
        { "a:2", 1000, 3, "n" },          { "a:8", 1003, 5, "n" },
        { "a:7", 1000, 70, "n" },         { "a:3", 10, 1, "n" },
        { "a:2;b:4", 857, 9, "nn" },      { "a:3;b:8", 900, 4, "bn" },
        { "a:2;b:2;c:2", 801, 2, "nnb" }, { "a:4;b:2", 500, 7, "nk" },
        { "a:3;b:3", 640, 11, "kn" },     { "a:11", 2600, 90, "n" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, cases[i].mesh, cases[i].size, cases[i].wanted, false);
        g_autoptr(MtfLayout) layout = layout_of(&c, cases[i].dims);
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
        assert_int_equal(run(&c, program), 2);
        assert_int_equal(count_kind(program, MTF_RESHARD_ALLGATHER), 2);
        case_clear(&c);
    }
}

/* Where all elements are fewer bytes than all parts' candidates with their places: 4 of 5 parts' 6 or 7 make 20 with 8
 * bytes each, of 32 with 4 bytes; and 400 of 500 in 2 parts, 250 each. */
TEST(many_that_are_chosen_are_chosen_of_all_elements) {
    static const struct {
        const char *mesh;
        int size, wanted;
    } cases[] = { { "a:5", 32, 4 }, { "a:2", 500, 400 }, { "a:3", 3, 3 }, { "a:2;b:2", 33, 5 } };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, cases[i].mesh, cases[i].size, cases[i].wanted, false);
        g_autoptr(MtfLayout) layout = layout_of(&c, "nn");
        g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
        assert_int_equal(run(&c, program), 0);
        assert_int_equal(count_kind(program, MTF_RESHARD_ALLGATHER), 1);
        case_clear(&c);
    }
}

/* 3 of 1003 elements in 8 parts: of 6 rows 8 times 3 values, and as many places, are gathered, 4 bytes each. */
TEST(candidates_are_what_was_counted_by_hand) {
    Case c;
    case_init(&c, "a:8", 1003, 3, false);
    g_autoptr(MtfLayout) layout = layout_of(&c, "n");
    g_autoptr(MtfProgram) program = mtf_lower(c.graph, layout);
    int exchanges = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_RESHARD)
            continue;
        exchanges++;
        assert_int_equal(instruction->payload_bytes, 6 * 8 * 3 * 4);
        assert_int_equal(mtf_instruction_payload(program, i, 5), 6 * 8 * 3 * 4);
        assert_int_equal(instruction->scratch, -1);
    }
    assert_int_equal(exchanges, 2);
    case_clear(&c);
}

/* Sums along n of 3 rows of 1000 bfloat16 elements, [b, n], of which the mesh splits n. */
static double *running_sums(const char *mesh_text, bool reverse) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'b':3,'n':1000},'inputs':[{'name':'x','dims':"
        "['b','n'],'dtype':'bfloat16','feed':'features'}],'variables':[],'operations':[{'name':'y',"
        "'op':'cumulative_sum','inputs':['x'],'dimension':'n','blocks':1,'reverse':%d}]}",
        reverse);
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    layout->operations[0].axis[0] = 1;
    layout->tensors[0].axis[0] = layout->tensors[1].axis[0] =
        (int16_t)mtf_graph_find_dimension(graph, "n");
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, 1, NULL);
    double *sums = g_new(double, 3000);
    for (int r = 0; r < lockstep->n; r++) {
        const MtfOperand *x = mtf_worker_tensor(lockstep->workers[r], 0);
        for (int64_t i = 0; i < mtf_slice_elements(x); i++)
            mtf_slice_set(x, i, (double)(mtf_slice_global_index(x, i) * 7919 % 127) / 64);
    }
    for (int i = 0; i < mtf_program_length(program); i++)
        mtf_lockstep_instruction(lockstep, i, 1);
    for (int r = 0; r < lockstep->n; r++) {
        const MtfOperand *y = mtf_worker_tensor(lockstep->workers[r], 1);
        for (int64_t i = 0; i < mtf_slice_elements(y); i++)
            sums[mtf_slice_global_index(y, i)] = mtf_slice_get(y, i);
    }
    return sums;
}

/* Up to 1000 * 126 / 64, whose 17 bits float32 holds and bfloat16 does not: parts tell each other all of them. */
TEST(totals_of_parts_are_told_as_they_are_kept) {
    for (int reverse = 0; reverse < 2; reverse++) {
        g_autofree double *whole = running_sums("a:1", reverse);
        g_autofree double *parts = running_sums("a:8", reverse);
        for (int i = 0; i < 3000; i++)
            assert_true(whole[i] == parts[i]);
    }
}
