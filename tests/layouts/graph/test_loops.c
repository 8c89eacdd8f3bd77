// SPDX-License-Identifier: GPL-3.0-or-later
/* Loops in graph files: what a block stands for, and the sentences about those that cannot be. */
#include "tests/support/cmocka.h"

#include "layouts/base/json_writer.h"
#include "layouts/graph/loops.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define GRAPH(loop, after)                                                                      \
    "{'meshtf_graph':1,'name':'g','dimensions':{'batch':3,'time':4,'h':2,'k':2},'inputs':[{"    \
    "'name':'x','dims':['batch','time','h'],'feed':'features'}],'variables':[{'name':'w',"      \
    "'dims':['batch','h'],'init':'ones'}],'operations':[" after "{'loop':{'name':'steps'," loop \
    "}}]}"
#define CARRY "'carry':[{'name':'s','init':'w','next':'new'}],"
#define BODY                                                                   \
    "'inputs':[{'name':'xt','of':'x'}],'outputs':[{'name':'all','of':'new'}]," \
    "'operations':[{'name':'new','op':'add','inputs':['s','xt']}]"

static void says(const char *text, const char *sentence) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_test_graph_parse(text, NULL, &error);
    assert_null(graph);
    if (strstr(error->message, sentence) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, sentence);
}

TEST(a_loop_is_its_body_between_four_kinds_of_operations) {
    /* What reads the loop stands before it in the file and comes behind it in the graph. */
    g_autoptr(MtfGraph) graph = mtf_test_graph(GRAPH(
        "'dimension':'time'," CARRY BODY, "{'name':'y','op':'negate','inputs':['steps/s']},"
                                          "{'name':'z','op':'negate','inputs':['steps/all']},"));
    static const char *const names[] = { "steps/s/state", "steps/xt", "steps/new", "steps/all",
                                         "steps/s",       "y",        "z" };
    assert_int_equal(graph->operations->len, G_N_ELEMENTS(names));
    for (int i = 0; i < (int)G_N_ELEMENTS(names); i++) {
        assert_string_equal(mtf_graph_operation(graph, i)->name, names[i]);
        assert_int_equal(mtf_graph_operation(graph, i)->loop, i >= 1 && i <= 4);
    }
    assert_int_equal(mtf_loop_count(graph, 1), 4);
    int all = mtf_graph_find_tensor(graph, "steps/all");
    assert_int_equal(mtf_graph_tensor(graph, all)->shape.dims[0], 1); /* time first */
}

TEST(what_a_loop_reads_may_be_called_as_it_is_outside) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        GRAPH("'dimension':'time'," CARRY "'inputs':[{'name':'x','of':'x'}],'operations':[{'name':"
              "'new','op':'add','inputs':['s','x']}]",
              ""));
    const MtfOperation *slice = mtf_graph_operation(graph, 1), *sum = mtf_graph_operation(graph, 2);
    assert_string_equal(slice->name, "steps/x");
    assert_int_equal(slice->inputs[0], mtf_graph_find_tensor(graph, "x"));
    assert_int_equal(sum->inputs[1], slice->outputs[0]);
}

TEST(a_count_makes_a_dimension_of_the_loops_name) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        GRAPH("'count':7," CARRY "'operations':[{'name':'new','op':'negate','inputs':['s']}]", ""));
    int dim = mtf_graph_find_dimension(graph, "steps");
    assert_int_equal(mtf_graph_size(graph, dim), 7);
    assert_int_equal(mtf_loop_count(graph, 1), 7);
}

/* Two values that change places, and one that follows the first: what is carried under another name is copied,
 * floats so that gradients pass, integers and truths as they are. */
TEST(what_is_carried_under_another_name_is_copied_whatever_its_type) {
    static const struct {
        const char *dtype;
        MtfOperationKind kind;
    } types[] = { { "float32", MTF_OP_SCALE },
                  { "int32", MTF_OP_STOP_GRADIENT },
                  { "int64", MTF_OP_STOP_GRADIENT },
                  { "bool", MTF_OP_STOP_GRADIENT } };
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph':1,'name':'g','dimensions':{'h':2},'operations':[{'name':'one','op':"
            "'constant','value':1,'dims':['h'],'dtype':'%s'},{'name':'two','op':'constant','value':"
            "0,'dims':['h'],'dtype':'%s'},{'loop':{'name':'l','count':3,'carry':[{'name':'a','init':"
            "'one','next':'b'},{'name':'b','init':'two','next':'a'}],'operations':[]}}]}",
            types[i].dtype, types[i].dtype);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        int copy = mtf_graph_find_operation(graph, "l/a/copy");
        assert_int_equal(mtf_graph_operation(graph, copy)->kind, types[i].kind);
    }
}

TEST(what_was_read_is_written_and_read_again) {
    g_autoptr(MtfGraph) graph =
        mtf_test_graph(GRAPH("'dimension':'time','reverse':true," CARRY BODY, ""));
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        cJSON *tree = mtf_graph_to_json(graph);
        texts[i] = mtf_json_print(tree);
        cJSON_Delete(tree);
        mtf_graph_free(graph);
        graph = mtf_test_graph(texts[i]);
        assert_true(mtf_graph_loop(graph, 1)->reverse);
    }
    assert_string_equal(texts[0], texts[1]);
    g_free(texts[0]);
    g_free(texts[1]);
}

/* Two layers, each of which adds up its input over time: the first layer's sum is what the second begins with. */
TEST(a_repeated_block_holds_loops) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph':1,'name':'g','dimensions':{'time':4,'h':2},'inputs':[{'name':'x','dims':["
        "'time','h'],'feed':'features'}],'variables':[{'name':'w','dims':['h'],'init':'ones'}],"
        "'operations':[{'repeat':{'name':'layer','count':2,'carry':[{'name':'s','init':'w','next':"
        "'scan/h'}],'operations':[{'name':'x2','op':'square','inputs':['x']},{'loop':{'name':"
        "'scan','dimension':'time','carry':[{'name':'h','init':'s','next':'new'}],'inputs':[{"
        "'name':'x','of':'x2'}],'variables':[{'name':'v','dims':['h'],'init':'ones'}],"
        "'operations':[{'name':'new','op':'add','inputs':['h','x','v','s']}]}}]}},"
        "{'name':'y','op':'negate','inputs':['layer/s']}]}");
    int sum = mtf_graph_find_operation(graph, "layer/1/scan/new");
    const MtfOperation *op = mtf_graph_operation(graph, sum);
    static const char *const inputs[] = { "layer/1/scan/h/state", "layer/1/scan/x",
                                          "layer/1/scan/v", "layer/0/scan/h" };
    for (int k = 0; k < 4; k++)
        assert_string_equal(mtf_graph_tensor(graph, op->inputs[k])->name, inputs[k]);
    assert_int_equal(op->layer.block, 1);
    assert_int_equal(op->layer.iteration, 1);
    assert_int_equal(op->loop, 2);
    int begin = mtf_graph_find_operation(graph, "layer/1/scan/h/state");
    assert_int_equal(mtf_graph_operation(graph, begin)->inputs[0],
                     mtf_graph_find_tensor(graph, "layer/0/scan/h"));
    int last = mtf_graph_find_operation(graph, "y");
    assert_int_equal(mtf_graph_operation(graph, last)->inputs[0],
                     mtf_graph_find_tensor(graph, "layer/1/scan/h"));
}

/* x is halved while it is above 1: "go" says so, and what both carry stays once that is false. */
#define WHILE(limits, go, more)                                                                   \
    "{'meshtf_graph':1,'name':'g','dimensions':{'h':2},'variables':[{'name':'x','dims':['h'],"    \
    "'init':'ones'}],'operations':[{'name':'yes','op':'constant','dims':[],'value':1,'dtype':"    \
    "'bool'},{'while':{'name':'w'," limits                                                        \
    "'carry':[{'name':'v','init':'x','next':'half'},{'name':'go','init':'yes','next':'" go "'}]," \
    "'operations':[{'name':'half','op':'scale','factor':0.5,'inputs':['v']},{'name':'one','op':"  \
    "'constant','dims':['h'],'value':1},{'name':'above','op':'less','inputs':['one','half'],"     \
    "'dtype':'bool'},{'name':'some','op':'reduce_any','inputs':['above'],'dims':[]}]}}" more "]}"
#define LIMITS "'condition':'go','max_count':9,"

TEST(a_while_block_is_a_loop_whose_values_stay_when_it_is_over) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(WHILE(LIMITS, "some", ""));
    const MtfOperation *kept = mtf_graph_operation(
        graph, mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "w/v/kept"))->producer);
    assert_int_equal(kept->kind, MTF_OP_WHERE);
    assert_int_equal(kept->inputs[0], mtf_graph_find_tensor(graph, "w/go/state"));
    assert_int_equal(kept->inputs[1], mtf_graph_find_tensor(graph, "w/half"));
    assert_int_equal(kept->inputs[2], mtf_graph_find_tensor(graph, "w/v/state"));
    assert_int_equal(mtf_loop_condition(graph, 1), mtf_graph_find_tensor(graph, "w/go/state"));
    assert_int_equal(mtf_loop_count(graph, 1), 9);
    cJSON *tree = mtf_graph_to_json(graph);
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    g_autoptr(MtfGraph) again = mtf_test_graph(text);
    assert_int_equal(mtf_loop_condition(again, 1), mtf_graph_find_tensor(again, "w/go/state"));
}

TEST(while_blocks_that_cannot_be_are_told_in_a_sentence) {
    says(WHILE("'condition':'go',", "some", ""), "a \"while\" block needs a \"max_count\"");
    says(WHILE("'max_count':9,", "some", ""), "condition");
    says(WHILE("'condition':'gone','max_count':9,", "some", ""),
         "\"gone\" is none of the block's carried values");
    says(WHILE("'condition':'go','max_count':0,", "some", ""), "max_count");
    says(WHILE("'condition':'v','max_count':9,", "some", ""),
         "a loop goes on while one bool without dimensions is true (\"condition\" 1), which "
         "\"w/v/kept\" is not");
    says(WHILE(LIMITS "'outputs':[],", "some", ""), "outputs");
    says(WHILE(LIMITS, "some",
               ",{'op':'loop_stack','name':'all','inputs':['w/half'],'dimension':'w','loop':'w'}"),
         "is none of this graph's \"loops\"");
}

#define STAGED(stage)                                                                           \
    "'carry':[{'name':'s','init':'w','next':'new'}],'operations':[{'name':'old','op':'negate'," \
    "'inputs':['s'],'stage':1},{'name':'new','op':'negate','inputs':['old'],'stage':" stage "}]"

TEST(a_loop_is_in_one_pipeline_stage) {
    says(GRAPH("'count':5," STAGED("2"), ""), "of another stage than the rest of its loop");
}

TEST(no_stage_ends_in_a_loop_or_before_it_takes_its_state) {
    /* w/state | steps/xt new all s | y */
    g_autoptr(MtfGraph) graph = mtf_test_graph(GRAPH(
        "'dimension':'time'," CARRY BODY, "{'name':'y','op':'negate','inputs':['steps/s']},"));
    g_autofree bool *within = mtf_loop_places(graph);
    static const bool expected[] = { false, true, true, true, true, false, false };
    for (int i = 0; i < (int)G_N_ELEMENTS(expected); i++)
        assert_int_equal(within[i], expected[i]);
}

TEST(loops_that_cannot_be_are_told_in_a_sentence) {
    says(GRAPH("'count':0," CARRY BODY, ""), "count");
    says(GRAPH("'count':5,'dimension':'time'," CARRY BODY, ""),
         "the loop runs 5 times, but its dimension \"time\" has 4 elements");
    says(GRAPH(CARRY BODY, ""), "a loop needs a \"count\" or a \"dimension\"");
    says(GRAPH("'dimension':'tme'," CARRY BODY, ""), "did you mean \"time\"");
    says(GRAPH("'dimension':'time','carry':[{'name':'s','init':'v','next':'new'}]," BODY, ""),
         "\"v\" is not a tensor of this graph");
    says(GRAPH("'dimension':'time','carry':[{'name':'s','init':'w','next':'nw'}]," BODY, ""),
         "\"nw\" is not a tensor of this graph");
    says(GRAPH("'dimension':'time','carry':[{'name':'s','init':'w','next':'r'}],"
               "'operations':[{'name':'r','op':'reduce_sum','inputs':['s'],'dims':['h']}]",
               ""),
         "the carried value begins as f32[batch:3, h:2] but goes on as \"steps/r\" f32[h:2]");
    says(GRAPH("'dimension':'time','carry':[{'name':'s','init':'w','next':'w'}]," BODY, ""),
         "loop \"steps\" carries on \"w\", which is not the result of an operation inside of it");
    says(GRAPH("'dimension':'time'," CARRY BODY,
               "{'name':'y','op':'negate','inputs':['steps/new']},"),
         "reads \"steps/new\", which changes in every iteration of loop \"steps\"");
    says(GRAPH("'dimension':'k'," CARRY BODY, ""), "input \"x\" has no dimension \"k\"");
    says(GRAPH("'dimension':'time'," CARRY BODY,
               "{'name':'y','op':'loop_stack','inputs':['w'],'dimension':'time'},"),
         "must name its \"loop\"");
    says(GRAPH("'dimension':'time'," CARRY
               "'outputs':[{'name':'all','of':'new'}],'operations':[{'name':'new','op':'negate',"
               "'inputs':['s']},{'name':'y','op':'negate','inputs':['all']}]",
               ""),
         "which is complete when its loop \"steps\" is over");
    says(GRAPH("'dimension':'time'," CARRY "'operations':[{'loop':{'name':'t'}}]", ""),
         "a loop holds operations, but no other block");
    says(GRAPH("'dimension':'time'," CARRY
               "'operations':[{'name':'new','op':'add','inputs':['s','y']}]",
               "{'name':'y','op':'negate','inputs':['steps/s']},"),
         "operations need each other in a circle");
}
