// SPDX-License-Identifier: GPL-3.0-or-later
/* Gradients of loops against central differences of the reference interpreter, in double, and against
 * the same network unrolled. */
#include "tests/support/cmocka.h"

#include "analyzer/training/live_graph.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/loops.h"
#include "tests/support/cases/gradient_check.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/reference/reference.h"

#include <math.h>

#define DIMENSIONS "'dimensions':{'batch':3,'time':4,'in':2,'h':3,'before':3,'vocab':5,'all':8},"
#define X "{'name':'x','dims':['batch','time','in'],'dtype':'float64','feed':'features'}"
#define VARIABLE(name, dims) \
    "{'name':'" name "','dims':[" dims "],'dtype':'float64','init':{'normal':0.5}}"
#define GRAPH(inputs, variables, operations)                                                   \
    "{'meshtf_graph':1,'name':'g'," DIMENSIONS "'inputs':[" inputs "],'variables':[" variables \
    "],'operations':[" operations "],'loss':'loss','optimizer':{'kind':'sgd','rate':0.1}}"
#define LOSS(y)                                                                               \
    ",{'name':'squares','op':'square','inputs':['" y "']},{'name':'loss','op':'reduce_mean'," \
    "'inputs':['squares'],'dims':[]}"

/* One recurrence: the state, what is read of each iteration, and both results are wanted. */
#define RECURRENT(more)                                                                            \
    GRAPH(X,                                                                                       \
          VARIABLE("wx", "'in','h'") "," VARIABLE("wh", "'before','h'") "," VARIABLE(              \
              "b", "'h'") "," VARIABLE("first", "'batch','h'") "," VARIABLE("gain", "'time','h'"), \
          "{'name':'scaled','op':'einsum','inputs':['x','wx','gain'],"                             \
          "'dims':['time','batch','h']},"                                                          \
          "{'loop':{'name':'steps','dimension':'time'," more                                       \
          "'carry':[{'name':'s','init':'first','next':'new'}],"                                    \
          "'inputs':[{'name':'xt','of':'scaled'}],'outputs':[{'name':'all','of':'new'}],"          \
          "'operations':["                                                                         \
          "{'name':'old','op':'rename','inputs':['s'],'from':'h','to':'before'},"                  \
          "{'name':'p','op':'einsum','inputs':['old','wh'],'dims':['batch','h']},"                 \
          "{'name':'sum','op':'add','inputs':['xt','p','b']},"                                     \
          "{'name':'new','op':'tanh','inputs':['sum']}]}},"                                        \
          "{'name':'both','op':'multiply','inputs':['steps/s','steps/all'],"                       \
          "'dims':['time','batch','h']}" LOSS("both"))

static void check_gradients(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, &error);
    if (training == NULL)
        fail_msg("%s", error->message);
    mtf_graph_drop_dead(training);
    assert_true(mtf_graph_check_loops(training, NULL));
    mtf_test_check_slopes(graph, training, 1e-8);
}

TEST(a_recurrence_has_the_slopes_of_its_loss) {
    check_gradients(RECURRENT(""));
}

TEST(so_has_one_that_runs_in_reverse) {
    check_gradients(RECURRENT("'reverse':true,"));
}

/* Slices along the second dimension, whose stack has it first, of what was one dimension before. */
TEST(what_iterations_slice_gets_its_gradient_in_its_own_order) {
    check_gradients(GRAPH(
        "", VARIABLE("w", "'all'") "," VARIABLE("first", "'in'"),
        "{'name':'wide','op':'reshape','inputs':['w'],'dims':['in','time']},"
        "{'loop':{'name':'steps','dimension':'time','carry':[{'name':'s','init':'first','next':'new'}],"
        "'inputs':[{'name':'now','of':'wide'}],'operations':["
        "{'name':'sum','op':'add','inputs':['s','now']},{'name':'new','op':'tanh','inputs':['sum']}]}}" LOSS(
            "steps/s")));
}

/* Each looks at all places, as attention does, at those of a table by ids that stay, and hands on its own. */
TEST(iterations_may_see_all_of_the_dimension_that_they_go_along) {
    check_gradients(GRAPH(
        "{'name':'ids','dims':['time'],'dtype':'int32','feed':'tokens'}",
        VARIABLE("w", "'in','time'") "," VARIABLE("first", "'in'") "," VARIABLE(
            "gain", "'time'") "," VARIABLE("table", "'vocab','in'"),
        "{'loop':{'name':'steps','dimension':'time','carry':[{'name':'s','init':'first','next':'new'}],"
        "'inputs':[{'name':'now','of':'w'}],'outputs':[{'name':'seen','of':'now'}],'operations':["
        "{'name':'near','op':'multiply','inputs':['table','s']},"
        "{'name':'rows','op':'embedding','inputs':['near','ids'],'dims':['time','in']},"
        "{'name':'scores','op':'einsum','inputs':['s','w','gain'],'dims':['time']},"
        "{'name':'shares','op':'softmax','inputs':['scores'],'dimension':'time'},"
        "{'name':'read','op':'einsum','inputs':['shares','w','rows'],'dims':['in']},"
        "{'name':'sum','op':'add','inputs':['s','now','read']},"
        "{'name':'new','op':'tanh','inputs':['sum']}]}},"
        "{'name':'both','op':'multiply','inputs':['steps/s','steps/seen']}" LOSS("both")));
}

/* What comes back from another stage is taken apart, and states begin, in the stage of the loop. */
TEST(a_loop_goes_back_in_its_own_stage) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(RECURRENT(""));
    int behind = mtf_graph_find_operation(graph, "both");
    for (int i = 0; i < (int)graph->operations->len; i++)
        mtf_graph_operation(graph, i)->stage = i < behind ? 1 : 2;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    assert_non_null(training);
    assert_true(mtf_graph_check_loops(training, NULL));
    for (int i = 0; i < (int)training->operations->len; i++)
        if (mtf_operation_loop_part(training, i) == MTF_LOOP_BEGINS)
            assert_int_equal(mtf_graph_operation(training, i)->stage, 1);
}

/* Iterations leave the gradient of what they slice with time first, wherever it stands in that. */
TEST(what_is_sliced_may_have_time_anywhere) {
    static const char *const makers[] = {
        "{'name':'z','op':'rename','inputs':['p'],'from':'before','to':'h'},",
        "{'name':'z','op':'resample','inputs':['p'],'from':'before','to':'h','start':1},",
        ("{'name':'r','op':'rename','inputs':['p'],'from':'before','to':'h'},"
         "{'name':'z','op':'scale','inputs':['r'],'factor':3},"),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(makers); i++) {
        g_autofree char *text = g_strdup_printf(
            GRAPH(
                X, VARIABLE("w", "'in','before'") "," VARIABLE("first", "'batch','h'"),
                "{'name':'p','op':'einsum','inputs':['x','w'],'dims':['batch','time','before']},%s"
                "{'loop':{'name':'steps','dimension':'time','carry':[{'name':'s','init':'first',"
                "'next':'new'}],'inputs':[{'name':'xt','of':'z'}],'operations':["
                "{'name':'sum','op':'add','inputs':['xt','s']},"
                "{'name':'new','op':'tanh','inputs':['sum']}]}}" LOSS("steps/s")),
            makers[i]);
        check_gradients(text);
    }
}

/* Layers whose weights lie behind one another: iterations read variables element by element. */
TEST(layers_of_stacked_variables_get_stacked_gradients) {
    check_gradients(GRAPH(
        "{'name':'x','dims':['batch','h'],'dtype':'float64','feed':'features'}",
        VARIABLE("w", "'time','before','h'") "," VARIABLE("g", "'h'"),
        "{'loop':{'name':'layers','dimension':'time','count':4,"
        "'carry':[{'name':'y','init':'x','next':'new'}],'inputs':[{'name':'w1','of':'w'}],"
        "'operations':[{'name':'r','op':'rename','inputs':['y'],'from':'h','to':'before'},"
        "{'name':'p','op':'einsum','inputs':['r','w1'],'dims':['batch','h']},"
        "{'name':'q','op':'multiply','inputs':['p','g']},"
        "{'name':'a','op':'silu','inputs':['q']},{'name':'new','op':'add','inputs':['a','y']}]}}" LOSS(
            "layers/y")));
}

/* Fibonacci's: one value is carried on under the other's name. */
TEST(values_may_change_places) {
    check_gradients(
        GRAPH("", VARIABLE("p", "'h'") "," VARIABLE("q", "'h'") "," VARIABLE("w", "'h'"),
              "{'loop':{'name':'steps','count':3,'carry':[{'name':'a','init':'p','next':'b'},"
              "{'name':'b','init':'q','next':'sum'}],'operations':["
              "{'name':'wa','op':'multiply','inputs':['a','w']},"
              "{'name':'sum','op':'add','inputs':['wa','b']}]}},"
              "{'name':'both','op':'multiply','inputs':['steps/a','steps/b']}" LOSS("both")));
}

/* Only what is handed on leads to a variable, not what the state begins with; ids, too, are sliced. */
TEST(states_are_wanted_for_what_they_become) {
    check_gradients(
        GRAPH("{'name':'ids','dims':['batch','time'],'dtype':'int32','feed':'tokens'}",
              VARIABLE("table", "'vocab','h'"),
              "{'name':'zero','op':'constant','value':0,'dims':['batch','h'],'dtype':'float64'},"
              "{'loop':{'name':'steps','dimension':'time','carry':[{'name':'s','init':'zero',"
              "'next':'new'}],'inputs':[{'name':'id','of':'ids'}],'operations':["
              "{'name':'row','op':'embedding','inputs':['table','id'],'dims':['batch','h']},"
              "{'name':'grown','op':'square','inputs':['s']},"
              "{'name':'new','op':'add','inputs':['row','grown']}]}}" LOSS("steps/s")));
}

/* The same network with a repeated block in the loop's place has the same loss and gradients. */
TEST(a_loop_is_its_block_unrolled) {
    static const char text[] =
        GRAPH("", VARIABLE("first", "'h'") "," VARIABLE("w", "'before','h'"),
              "{'%s':{'name':'steps','count':3,'carry':[{'name':'s','init':'first',"
              "'next':'new'}],'operations':["
              "{'name':'r','op':'rename','inputs':['s'],'from':'h','to':'before'},"
              "{'name':'p','op':'einsum','inputs':['r','w'],'dims':['h']},"
              "{'name':'new','op':'sigmoid','inputs':['p']}]}}" LOSS("steps/s"));
    g_auto(GStrv) halves = g_strsplit(text, "%s", 2);
    double *values[2];
    MtfReference *references[2];
    for (int i = 0; i < 2; i++) {
        g_autofree char *whole =
            g_strconcat(halves[0], i == 0 ? "loop" : "repeat", halves[1], NULL);
        g_autoptr(MtfGraph) graph = mtf_test_graph(whole);
        MtfGraph *training = mtf_training_graph(graph, NULL);
        references[i] = mtf_reference_new(training, 3);
        mtf_reference_fill_inputs(references[i], 4);
        mtf_reference_run(references[i], 0);
        values[i] = mtf_reference_find(references[i], "grad/w");
    }
    for (int i = 0; i < 9; i++)
        assert_true(fabs(values[0][i] - values[1][i]) <= 1e-15);
    assert_true(references[0]->graph->operations->len < references[1]->graph->operations->len);
    for (int i = 0; i < 2; i++) {
        mtf_graph_free((MtfGraph *)(guintptr)references[i]->graph);
        mtf_reference_free(references[i]);
    }
}
