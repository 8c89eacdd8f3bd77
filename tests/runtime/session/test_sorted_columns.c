// SPDX-License-Identifier: GPL-3.0-or-later
/* Sorting along a split dimension, and gradients back to where their elements stood, against a sort of the whole on
 * one processor: all processors live in this process. */
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
    int64_t size;
    bool reverse;
    double *expected[TENSORS]; /* [b, n, c] */
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

static void expect(Case *c) {
    g_autofree double *row = g_new(double, c->size);
    g_autofree int64_t *places = g_new(int64_t, c->size);
    for (int k = 0; k < TENSORS; k++)
        c->expected[k] = g_new(double, ROWS * c->size);
    for (int64_t r = 0; r < ROWS; r++) {
        int64_t first = r / 2 * c->size * 2 + r % 2;
        for (int64_t i = 0; i < c->size; i++) {
            row[i] = c->expected[X][first + 2 * i] = c->expected[BACK][first + 2 * i] =
                element(first + 2 * i);
            places[i] = i;
        }
        row_values = row;
        row_reverse = c->reverse;
        qsort(places, (size_t)c->size, sizeof *places, compare_places);
        for (int64_t i = 0; i < c->size; i++) {
            c->expected[SORTED][first + 2 * i] = row[places[i]];
            c->expected[INDEX][first + 2 * i] = (double)places[i];
        }
    }
}

static void case_init(Case *c, const char *mesh, int64_t size, bool reverse) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph':1,'name':'t','dimensions':{'b':3,'n':%d,'c':2},'inputs':["
        "{'name':'x','dims':['b','n','c'],'feed':'features'}],'variables':[],'operations':["
        "{'name':'y','op':'sort','inputs':['x'],'dimension':'n','reverse':%d},"
        "{'name':'z','op':'sort_grad','inputs':['y/index','y'],'dimension':'n'}]}",
        (int)size, reverse);
    *c = (Case){ .graph = mtf_test_graph(text), .size = size, .reverse = reverse };
    assert_true(mtf_mesh_parse(mesh, 0, &c->mesh, NULL));
    expect(c);
}

static void case_clear(Case *c) {
    for (int k = 0; k < TENSORS; k++)
        g_free(c->expected[k]);
    mtf_graph_free(c->graph);
}

/* All axes but `other` (none: -1), which splits b, split what is sorted. */
static MtfLayout *layout_of(const Case *c, int other) {
    MtfLayout *layout = mtf_layout_new(c->graph, &c->mesh);
    int n = mtf_graph_find_dimension(c->graph, "n"), b = mtf_graph_find_dimension(c->graph, "b");
    for (int a = 0; a < c->mesh.n_axes; a++) {
        for (int o = 0; o < 2; o++)
            layout->operations[o].axis[a] = a == other ? 0 : 1; /* b and n are the first two */
        for (int t = 0; t < TENSORS; t++)
            layout->tensors[t].axis[a] = (int16_t)(a == other ? b : n);
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
        int size, other;
    } cases[] = {
        { "a:8", 1000, -1 },        { "a:8", 1003, -1 },     { "a:7", 1000, -1 },
        { "a:2;b:4", 857, -1 },     { "a:3;b:3", 1600, -1 }, { "a:3;b:8", 900, 0 },
        { "a:2;b:2;c:2", 801, -1 }, { "a:8;b:2", 1024, 1 },  { "a:11", 2600, -1 },
    };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, cases[i / 2].mesh, cases[i / 2].size, i % 2 == 1);
        g_autoptr(MtfLayout) layout = layout_of(&c, cases[i / 2].other);
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
        case_init(&c, cases[i / 2].mesh, cases[i / 2].size, i % 2 == 1);
        g_autoptr(MtfLayout) layout = layout_of(&c, -1);
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
    case_init(&c, "a:8", 1000, false);
    g_autoptr(MtfLayout) layout = layout_of(&c, -1);
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
