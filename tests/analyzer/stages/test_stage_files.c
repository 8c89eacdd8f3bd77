// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/stages/layer_table.h"
#include "analyzer/stages/pipedream_profile.h"
#include "analyzer/stages/piper_profile.h"

#include <math.h>
#include <string.h>

#define NODE(name, rest)                                                                      \
    name " -- " rest                                                                          \
         " -- forward_compute_time=1.500, backward_compute_time=2.000, activation_size=8.0, " \
         "parameter_size=3.000"

static const MtfStageWay *way_of(const MtfStageGraph *graph, int node, guint way) {
    return &g_array_index(mtf_stage_graph_node(graph, node)->ways, MtfStageWay, way);
}

TEST(a_profile_of_pipedream_is_read) {
    const char *text = NODE("node1", "Input") "\n" NODE(
        "node2",
        "Linear(in=1, out=2)") "\r\n\n"
                               "node3 -- LSTM(  (a): b) -- forward_compute_time=1, backward_compute_time=0.5, "
                               "activation_size=[6.5; 1.0; 2], parameter_size=4 -- stage_id=1\n"
                               "\tnode1 -- node2\n\tnode2 -- node3";
    g_autoptr(MtfStageGraph) graph = mtf_pipedream_profile_parse("g", text, NULL);
    assert_non_null(graph);
    assert_int_equal(mtf_stage_graph_size(graph), 3);
    assert_true(fabs(way_of(graph, 0, 0)->seconds) < 1e-15);
    assert_true(fabs(way_of(graph, 1, 0)->seconds - 0.0035) < 1e-15);
    assert_true(fabs(way_of(graph, 2, 0)->flight_bytes - 13.5) < 1e-12);
    assert_true(fabs(mtf_stage_graph_node(graph, 2)->output_bytes - 9.5) < 1e-12);
    assert_int_equal(mtf_stage_graph_edge(graph, 1)->to, 2);
}

/* Only sources are inputs: a node named so that reads another costs what it says. */
TEST(an_input_that_reads_is_no_input) {
    const char *text =
        NODE("node1", "Linear") "\n" NODE("node2", "InputMixer") "\n\tnode1 -- node2\n";
    g_autoptr(MtfStageGraph) graph = mtf_pipedream_profile_parse("g", text, NULL);
    assert_true(way_of(graph, 1, 0)->seconds > 0);
}

typedef MtfStageGraph *(*Parser)(const char *name, const char *text, GError **error);

static void check_refusal(Parser parse, const char *text, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfStageGraph) graph = parse("file", text, &error);
    assert_null(graph);
    if (strstr(error->message, expected) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, expected);
}

TEST(bad_profiles_of_pipedream_are_refused_by_line) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        { "", "no node" },
        { "hello", "line 1: there is no \" -- \"" },
        { NODE("a", "b") "\na -- b\n", "line 2: the edge joins no node named \"b\"" },
        { NODE("a", "b") "\n" NODE("a", "b"), "line 2: there are two nodes \"a\"" },
        { NODE("a", "b") "\n\ta -- a", "line 2: the edge joins a node with itself" },
        { NODE("a", "x") "\n" NODE("b", "x") "\n\ta -- b\n\tb -- a", "circle through \"a\"" },
        { "a -- b -- forward_compute_time=1, backward_compute_time=2, activation_size=3",
          "line 1: the node has no parameter_size" },
        { "a -- b -- forward_compute_time=-1, backward_compute_time=2, activation_size=3, "
          "parameter_size=1",
          "line 1: forward_compute_time \"-1" },
        { "a -- b -- forward_compute_time=1, backward_compute_time=nan, activation_size=3, "
          "parameter_size=1",
          "line 1: backward_compute_time \"nan" },
        { "a -- b -- forward_compute_time=1, backward_compute_time=1, activation_size=[3; , "
          "parameter_size=1",
          "line 1: activation_size \"[3; " },
        { "a -- b -- c", "line 1: this is neither" },
        { NODE("a", "x") "\n" NODE("b", "x"), "no edge joins the node \"a\"" },
        { NODE("a", "x") "\n" NODE("b", "x") "\n" NODE("c", "x") "\n\ta -- b",
          "no edge joins the node \"c\"" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        check_refusal(mtf_pipedream_profile_parse, cases[i].text, cases[i].expected);
}

static MtfStageGraph *parse_piper(const char *name, const char *text, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, strlen(text), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_piper_profile_read(&root, error);
}

#define WAY(forward, backward)                                                                   \
    "{\"id\": \"vanilla\", \"timePerSample\": 0.5, \"parameterSize\": 7.0, \"memoryUsageA\": 2," \
    " \"memoryUsageB\": 3, \"syncTimeFw\": {" forward "}, \"syncTimeBw\": {" backward "}}"
#define PIPER(first, second, edge)                                                               \
    "{\"maxDevices\": 4, \"maxMemoryPerDevice\": 8e9, \"bandwidth\": 25e9, \"mbsInBatch\": 12, " \
    "\"extra\": [], \"nodes\": [{\"id\": 10, \"TMPCs\": {" first                                 \
    "}}, {\"id\": 20, \"name\": \"b\", \"TMPCs\": {" second "}}], \"edges\": [" edge "]}"
#define EDGE "{\"sourceId\": 10, \"destId\": 20, \"communicationCost\": 100.0}"

TEST(a_profile_of_piper_is_read) {
    const char *text = PIPER("\"2\": [" WAY("", "\"20\": 6") "], \"1\": [" WAY("", "\"20\": 5") "]",
                             "\"1\": [" WAY("\"10\": 4", "") "]", EDGE);
    g_autoptr(MtfStageGraph) graph = parse_piper("f", text, NULL);
    assert_non_null(graph);
    assert_int_equal(graph->devices, 4);
    assert_int_equal(graph->batch, 12);
    assert_int_equal(way_of(graph, 0, 0)->degree, 1);
    assert_int_equal(way_of(graph, 0, 1)->degree, 2);
    assert_true(fabs(way_of(graph, 0, 1)->edge_bytes[0] - 6) < 1e-12);
    assert_true(fabs(way_of(graph, 1, 0)->edge_bytes[0] - 4) < 1e-12);
    assert_true(fabs(mtf_stage_graph_edge(graph, 0)->bytes - 100) < 1e-12);
}

TEST(bad_profiles_of_piper_are_refused_by_place) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        { "[]", "object" },
        { "{\"nodes\": [], \"edges\": []}", "/nodes: there are not between 1" },
        { "{\"nodes\": [{\"id\": 1}], \"edges\": []}", "TMPCs" },
        { PIPER("\"1\": []", "\"1\": []", EDGE), "/nodes/0/TMPCs: there is no way" },
        { PIPER("\"0\": []", "\"1\": []", EDGE), "\"0\" is not a number of devices" },
        { PIPER("\"1\": [" WAY("", "") "]", "\"1\": []", EDGE), "syncTimeBw" },
        { PIPER("\"1\": [" WAY("", "\"20\": 5, \"7\": 1") "]", "\"1\": []", EDGE),
          "no edge joins" },
        { PIPER("\"1\": []", "\"1\": []", "{\"sourceId\": 10, \"destId\": 3}"),
          "no node with the id 3" },
        { PIPER("\"1\": []", "\"1\": []",
                "{\"sourceId\": 10, \"destId\": 10, "
                "\"communicationCost\": 1}"),
          "joins a node with itself" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        check_refusal(parse_piper, cases[i].text, cases[i].expected);
}

TEST(a_table_of_layers_is_read) {
    const char *text = "# a comment\nseconds name output\n1.5 first 8 # more\n\n2 second 4\n";
    g_autoptr(MtfStageGraph) graph = mtf_layer_table_parse("t", text, NULL);
    assert_int_equal(mtf_stage_graph_size(graph), 2);
    assert_string_equal(mtf_stage_graph_node(graph, 1)->name, "second");
    assert_true(fabs(way_of(graph, 0, 0)->seconds - 1.5) < 1e-12);
    assert_int_equal(graph->edges->len, 1);
}

/* (1.5 + 2) / 2 + 4 × 6 / (2 × 8 × 3) + 0.25 with both layers on two devices, B = 8 and M = 3. */
TEST(a_chain_is_priced_as_its_header_says) {
    const char *text = "name seconds output parameters stash fixed\na 1.5 8 2 3 1\nb 2 4 4 5 1\n";
    g_autoptr(MtfStageGraph) graph = mtf_layer_table_parse("t", text, NULL);
    MtfStageMachine machine = { 2, INFINITY, 8, 3, false };
    MtfChain chain;
    mtf_layer_chain_init(&chain, graph, &machine, 0.25);
    const MtfChainPrice *both = &chain.price[mtf_chain_index(&chain, 0, 2, 1)];
    assert_true(fabs(both->seconds - (1.75 + 0.5 + 0.25)) < 1e-12);
    assert_true(fabs(both->flight - 4) < 1e-12 && fabs(both->fixed - 2) < 1e-12);
    const MtfChainPrice *first = &chain.price[mtf_chain_index(&chain, 0, 1, 0)];
    assert_true(fabs(first->seconds - (1.5 + 2)) < 1e-12);
    mtf_layer_chain_clear(&chain);
}

TEST(bad_tables_are_refused_by_line) {
    check_refusal(mtf_layer_table_parse, "\n# x\n", "no layer");
    check_refusal(mtf_layer_table_parse, "name seconds\n", "no layer");
    check_refusal(mtf_layer_table_parse, "name\na\n", "line 1: the columns name and seconds");
    check_refusal(mtf_layer_table_parse, "name seconds hours\n", "line 1: \"hours\"");
    check_refusal(mtf_layer_table_parse, "name seconds\n\na 1 2\n", "line 3: 3 columns");
    check_refusal(mtf_layer_table_parse, "name seconds\na 1x\n", "line 2: seconds \"1x\"");
}
