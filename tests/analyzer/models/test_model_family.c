// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
#include "tests/support/cmocka.h"

#include "analyzer/import/model_import.h"
#include "analyzer/models/model_family.h"
#include "analyzer/training/training_graph.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/operation_table.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/program/passes.h"
#include "tests/support/reference/reference.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The settings of `preset`, changed by pairs of parameter and value. */
static MtfGraph *build(const char *family_name, const char *preset_name,
                       const char *const *changes) {
    g_autoptr(GError) error = NULL;
    const MtfModelFamily *family = mtf_model_family_find(family_name, NULL);
    const MtfModelPreset *preset = mtf_model_preset_find(family, preset_name, NULL);
    assert_non_null(preset);
    MtfModelSettings settings = mtf_model_settings(preset);
    for (int i = 0; changes != NULL && changes[i] != NULL; i += 2) {
        const MtfModelParameter *parameter = mtf_model_parameters();
        while (strcmp(parameter->name, changes[i]) != 0)
            parameter++;
        if (!mtf_model_set(family, parameter, changes[i + 1], &settings, &error))
            fail_msg("%s", error->message);
    }
    MtfGraph *graph = mtf_model_build(family, preset, &settings, &error);
    if (graph == NULL)
        fail_msg("%s", error->message);
    return graph;
}

/* Presets alike share their options, which each goes on with: GPT-2's rate is 3e-4, the small one's 6e-4. */
TEST(later_options_of_a_preset_hold) {
    const char *names[] = { "gpt2-small", "gpt2-xl" };
    const double rates[] = { 6e-4, 3e-4 };
    for (int i = 0; i < 2; i++) {
        const MtfModelPreset *preset = mtf_model_preset_find(&mtf_model_gpt, names[i], NULL);
        assert_true(mtf_model_settings(preset).rate == rates[i]);
    }
}

/* Elements of the variables whose last name is (or is not) that of a norm or of the positions. */
static int64_t matrix_parameters(const MtfGraph *graph) {
    int64_t sum = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        bool small =
            g_str_has_suffix(tensor->name, "norm_scale") || strcmp(tensor->name, "positions") == 0;
        if (tensor->source == MTF_SOURCE_VARIABLE && !small)
            sum += mtf_graph_elements(graph, &tensor->shape);
    }
    return sum;
}

/* The paper's figures, and the two that the project's issue gives exactly. */
TEST(the_papers_sizes_have_their_parameters) {
    g_autoptr(MtfGraph) size0 = build("transformer-lm", "size0", NULL);
    g_autoptr(MtfGraph) size5 = build("transformer-lm", "size5", NULL);
    assert_int_equal(matrix_parameters(size0), INT64_C(218103808));
    assert_int_equal(matrix_parameters(size5), INT64_C(4898947072));
}

/* GPT-2 small: 50257 * 768 + 1024 * 768 + 12 (12 * 768^2 + 13 * 768) + 2 * 768. GPT-3: the paper's
 * table rounds to 174,600 million. */
TEST(gpt_presets_have_their_parameters) {
    g_autoptr(MtfGraph) small = build("gpt", "gpt2-small", NULL);
    assert_int_equal(mtf_graph_parameters(small), 124439808);
    g_autoptr(MtfGraph) large = build("gpt", "gpt3-175b", NULL);
    assert_int_equal(mtf_graph_parameters(large) / 100000000, 1746);
}

/* The number that a preset's summary tells, "6,738,415,616 parameters"; 0: none. */
static int64_t parameters_told(const char *summary) {
    const char *end = strstr(summary, " parameters"), *begin = end;
    int64_t told = 0;
    while (begin > summary && (g_ascii_isdigit(begin[-1]) || begin[-1] == ','))
        begin--;
    for (; begin < end; begin++)
        told = *begin == ',' ? told : 10 * told + (*begin - '0');
    return told;
}

static void check_parameters(const MtfModelPreset *preset, int64_t parameters) {
    int64_t told = parameters_told(preset->summary);
    if (told > 0 && told != parameters)
        fail_msg("%s has %" PRId64 " parameters and tells %" PRId64, preset->name, parameters,
                 told);
}

/* And has the parameters that its summary tells, which are those published. */
TEST(every_preset_gives_a_training_graph) {
    for (int i = 0; mtf_model_families()[i] != NULL; i++) {
        const MtfModelFamily *family = mtf_model_families()[i];
        for (const MtfModelPreset *p = family->presets; p->name != NULL; p++) {
            g_autoptr(MtfGraph) graph = build(family->name, p->name, NULL);
            g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
            assert_non_null(training);
            assert_int_equal(mtf_graph_parameters(training), mtf_graph_parameters(graph));
            check_parameters(p, mtf_graph_parameters(graph) - mtf_graph_statistics(graph));
        }
    }
}

/* Of its training step on one processor: what a plan says and whoever reads it asks for. */
static char *digest_of(const MtfGraph *forward) {
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    mtf_graph_canonicalize(graph);
    MtfMesh alone = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &alone);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    return mtf_program_digest(program);
}

TEST(what_is_built_runs_as_what_its_file_says) {
    for (int i = 0; mtf_model_families()[i] != NULL; i++) {
        const MtfModelFamily *family = mtf_model_families()[i];
        g_autoptr(MtfGraph) graph = build(family->name, "tiny", NULL);
        cJSON *json = mtf_graph_to_json(graph);
        g_autofree char *text = mtf_json_print(json);
        cJSON_Delete(json);
        g_autoptr(MtfJsonDocument) document =
            mtf_json_document_parse(family->name, text, strlen(text), NULL);
        MtfJson root = mtf_json_root(document);
        g_autoptr(MtfGraph) read = mtf_graph_from_json(&root, NULL, NULL);
        assert_non_null(read);
        g_autofree char *ours = digest_of(graph), *theirs = digest_of(read);
        if (strcmp(ours, theirs) != 0)
            fail_msg("%s is another graph when it is read from its file", family->name);
    }
}

/* The text of a graph's file but for its name and optimizer. */
static char *print(MtfGraph *graph) {
    g_free(graph->name);
    graph->name = g_strdup("any");
    g_clear_pointer(&graph->optimizer.kind, g_free);
    g_clear_pointer(&graph->config, g_free);
    cJSON *json = mtf_graph_to_json(graph);
    char *text = mtf_json_print(json);
    cJSON_Delete(json);
    return text;
}

/* Families that transformers has know the config.json of their graphs, whatever sizes were asked for: read, it gives
 * the same graph. Where the sizes are of no such model there is none. */
TEST(a_familys_config_gives_its_graph) {
    static const char *const of_texts[] = { "layers", "4",      "d-ff", "96", "batch",
                                            "2",      "length", "16",   NULL };
    static const char *const of_pictures[] = { "layers", "4",  "d-ff",    "96", "batch", "2",
                                               "image",  "12", "classes", "7",  NULL };
    int told = 0;
    for (int i = 0; mtf_model_families()[i] != NULL; i++) {
        const MtfModelFamily *family = mtf_model_families()[i];
        const char *preset = family->presets[0].name;
        if (family->presets[0].config == NULL)
            continue;
        bool picture = strcmp(family->name, "vit") == 0;
        g_autoptr(MtfGraph) graph = build(family->name, preset, picture ? of_pictures : of_texts);
        assert_true((graph->config != NULL) == (strcmp(family->name, "bloom") != 0));
        if (graph->config == NULL)
            continue;
        g_autoptr(MtfJsonDocument) document =
            mtf_json_document_parse(family->name, graph->config, strlen(graph->config), NULL);
        MtfJson root = mtf_json_root(document);
        MtfImport how = { .path = "any", .batch = 2, .length = picture ? 0 : 16 };
        g_autoptr(MtfGraph) read = mtf_import_model(&how, &root, NULL, NULL);
        assert_non_null(read);
        g_autofree char *ours = print(graph), *theirs = print(read);
        assert_string_equal(ours, theirs);
        told++;
    }
    assert_int_equal(told, 16);
}

/* Gradients through q, k and v meet in one sum of three products that nothing else reads. */
TEST(gradients_through_attention_merge_before_one_reduction) {
    g_autoptr(MtfGraph) graph = build("transformer-lm", "demo", NULL);
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(training);
    for (int layer = 0; layer < 4; layer++) {
        g_autofree char *name = g_strdup_printf("grad/layer/%d/attention/norm", layer);
        int index = mtf_graph_find_operation(training, name);
        const MtfOperation *sum = mtf_graph_operation(training, index);
        assert_int_equal(sum->kind, MTF_OP_ADD);
        assert_int_equal(sum->n_inputs, 3);
        for (int k = 0; k < 3; k++) {
            int t = sum->inputs[k], maker = mtf_graph_tensor(training, t)->producer;
            assert_int_equal(mtf_graph_operation(training, maker)->kind, MTF_OP_EINSUM);
            assert_int_equal(consumers->starts[t + 1] - consumers->starts[t], 1);
        }
    }
}

static const char *const tiny[] = { "layers",  "2", "batch", "2", "length", "3",
                                    "d-model", "4", "d-ff",  "5", "heads",  "2",
                                    "d-kv",    "3", "vocab", "7", NULL };

static double loss_at(MtfReference *reference, double *slot, double value) {
    double before = *slot;
    *slot = value;
    mtf_reference_run(reference, 4);
    *slot = before;
    return reference->values[reference->graph->loss][0];
}

/* Two elements of every variable against central differences, on the graph with its composites. */
static void check_gradients(const MtfGraph *graph) {
    const double h = 1e-6;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfReference) f = mtf_reference_new(graph, 3);
    g_autoptr(MtfReference) t = mtf_reference_new(training, 3);
    mtf_reference_fill_inputs(f, 4);
    mtf_reference_fill_inputs(t, 4);
    mtf_reference_run(t, 4);
    for (int v = 0; v < (int)graph->tensors->len; v++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, v);
        g_autofree char *name = g_strdup_printf("grad/%s", tensor->name);
        int64_t elements = mtf_graph_elements(graph, &tensor->shape);
        if (tensor->source != MTF_SOURCE_VARIABLE)
            continue;
        for (int64_t i = 0; i < elements; i += MAX(1, elements - 1)) {
            double *slot = &f->values[v][i], gradient = mtf_reference_find(t, name)[i];
            double slope = (loss_at(f, slot, *slot + h) - loss_at(f, slot, *slot - h)) / (2 * h);
            if (!(fabs(slope - gradient) <= 1e-8 * fmax(1, fabs(slope))))
                fail_msg("%s[%d] is %g, finite differences say %g", name, (int)i, gradient, slope);
        }
    }
}

TEST(gradients_of_whole_transformers_agree_with_finite_differences) {
    g_autoptr(MtfGraph) lm = build("transformer-lm", "demo", tiny);
    check_gradients(lm);
    g_autoptr(MtfGraph) gpt = build("gpt", "gpt2-small", tiny);
    check_gradients(gpt);
    const char *changes[G_N_ELEMENTS(tiny) + 4];
    memcpy(changes, tiny, sizeof tiny);
    memcpy(changes + G_N_ELEMENTS(tiny) - 1,
           (const char *[]){ "dropout", "0.25", "activation", "silu", NULL }, 5 * sizeof(char *));
    g_autoptr(MtfGraph) dropping = build("transformer-lm", "demo", changes);
    check_gradients(dropping);
}

/* The gpt above attends blockwise; here the two ways meet in the loss. */
TEST(attention_of_both_kinds_computes_the_same) {
    double losses[2];
    const char *const kinds[] = { "composite", "blockwise" };
    for (int i = 0; i < 2; i++) {
        const char *changes[G_N_ELEMENTS(tiny) + 2];
        memcpy(changes, tiny, sizeof tiny);
        memcpy(changes + G_N_ELEMENTS(tiny) - 1, (const char *[]){ "attention", kinds[i], NULL },
               3 * sizeof(char *));
        g_autoptr(MtfGraph) graph = build("gpt", "gpt2-small", changes);
        assert_int_equal(mtf_graph_find_operation(graph, "layer/0/attention/scores") >= 0, i == 0);
        g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
        mtf_reference_fill_inputs(reference, 4);
        mtf_reference_run(reference, 0);
        losses[i] = reference->values[graph->loss][0];
    }
    assert_true(fabs(losses[0] - losses[1]) < 1e-12);
}

/* Shares are dropped whether there is a tensor of them or not. */
TEST(attention_of_both_kinds_drops_shares) {
    const char *changes[G_N_ELEMENTS(tiny) + 4];
    memcpy(changes, tiny, sizeof tiny);
    memcpy(changes + G_N_ELEMENTS(tiny) - 1,
           (const char *[]){ "dropout", "0.25", "attention", "composite", NULL },
           5 * sizeof(char *));
    g_autoptr(MtfGraph) composite = build("gpt", "gpt2-small", changes);
    assert_true(mtf_graph_find_operation(composite, "layer/0/attention/weights_dropped") >= 0);
    changes[G_N_ELEMENTS(tiny) + 1] = NULL;
    g_autoptr(MtfGraph) blockwise = build("gpt", "gpt2-small", changes);
    int context = mtf_graph_find_operation(blockwise, "layer/0/attention/context");
    assert_int_equal(mtf_graph_operation(blockwise, context)->kind, MTF_OP_ATTENTION);
    assert_true(mtf_graph_operation(blockwise, context)->attributes.rate == 0.25);
    check_gradients(blockwise);
}

TEST(gradients_of_perceptrons_agree_with_finite_differences) {
    const char *const changes[] = { "batch",      "3",      "features", "4",       "hidden",
                                    "5",          "layers", "3",        "outputs", "2",
                                    "activation", "gelu",   NULL };
    g_autoptr(MtfGraph) graph = build("mlp", "small", changes);
    check_gradients(graph);
    g_autoptr(MtfGraph) classifier = build("mlp", "mnist", changes);
    check_gradients(classifier);
}

TEST(gradients_of_other_families_agree_with_finite_differences) {
    g_autoptr(MtfGraph) mesh = build("transformer", "size0", tiny);
    check_gradients(mesh);
    g_autoptr(MtfGraph) waves = build("transformer", "base", tiny);
    check_gradients(waves);
    const char *changes[G_N_ELEMENTS(tiny) + 2];
    memcpy(changes, tiny, sizeof tiny);
    memcpy(changes + G_N_ELEMENTS(tiny) - 1, (const char *[]){ "source-vocab", "9", NULL },
           3 * sizeof(char *));
    g_autoptr(MtfGraph) pase = build("transformer", "pase-small", changes);
    check_gradients(pase);
    const char *const clicks[] = { "batch", "3",   "bottom", "4-3", "tables",
                                   "5,4",   "top", "4-1",    NULL };
    g_autoptr(MtfGraph) pairs = build("dlrm", "tiny", clicks);
    check_gradients(pairs);
    const char *const narrow[] = { "batch", "3", "features", "5", "sizes", "4-2", NULL };
    g_autoptr(MtfGraph) code = build("autoencoder", "tiny", narrow);
    check_gradients(code);
}

/* The values of a tensor. */
static const double *value_of(const MtfReference *reference, const MtfGraph *graph,
                              const char *name) {
    int tensor = mtf_graph_find_tensor(graph, name);
    assert_true(tensor >= 0);
    return reference->values[tensor];
}

/* Two rows of the first table an example; x[l + 1] = x[0] (W (V x[l]) + b) + x[l], features side by side. */
TEST(crosses_are_those_of_their_formula) {
    enum { BATCH = 3, WIDTH = 3, ALL = 9 };
    const char *const clicks[] = { "batch", "3",   "bottom",      "4-3",   "tables", "5x2,4",
                                   "top",   "4-1", "interaction", "cross", NULL };
    g_autoptr(MtfGraph) graph = build("dlrm", "tiny", clicks);
    check_gradients(graph);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(reference, 4);
    mtf_reference_run(reference, 0);
    const double *vectors = value_of(reference, graph, "vectors");
    const double *ids = value_of(reference, graph, "category0");
    const double *rows = value_of(reference, graph, "table/0/rows");
    const double *said = value_of(reference, graph, "cross/2/x");
    for (int b = 0; b < BATCH; b++) {
        const double *first = vectors + b * ALL;
        double x[ALL], y[ALL];
        for (int i = 0; i < WIDTH; i++)
            assert_true(fabs(rows[(int)ids[2 * b] * WIDTH + i] +
                             rows[(int)ids[2 * b + 1] * WIDTH + i] - first[WIDTH + i]) < 1e-12);
        memcpy(x, first, sizeof x);
        for (int l = 0; l < 3; l++) {
            g_autofree char *part = g_strdup_printf("cross/%d/", l);
            g_autofree char *narrow = g_strconcat(part, "w_narrow", NULL);
            g_autofree char *wide = g_strconcat(part, "w_wide", NULL);
            g_autofree char *bias = g_strconcat(part, "bias", NULL);
            const double *v = value_of(reference, graph, narrow);
            const double *w = value_of(reference, graph, wide);
            const double *more = value_of(reference, graph, bias);
            for (int o = 0; o < ALL; o++) {
                y[o] = more[o];
                for (int k = 0; k < ALL; k++)
                    for (int i = 0; i < ALL; i++)
                        y[o] += w[k * ALL + o] * v[i * ALL + k] * x[i];
            }
            for (int o = 0; o < ALL; o++)
                x[o] += first[o] * y[o];
        }
        for (int o = 0; o < ALL; o++)
            assert_true(fabs(x[o] - said[b * ALL + o]) < 1e-12 * (1 + fabs(x[o])));
    }
}

/* A recurrent network has a matrix [features, gates, hidden] for what it reads and one for its state, and
 * a bias for each gate. */
TEST(recurrent_networks_have_their_parameters) {
    static const struct {
        const char *preset;
        int64_t parameters;
    } counts[] = {
        /* 256 * 32 + (32 + 64) * 256 + 256 + (64 + 64) * 256 + 256 + 64 * 256 + 256 */
        { "tiny", 82688 },
        /* 2 * 100000 * 2048 + 2 * (2048 + 2048) * 4 * 2048 (PaSE, no biases) */
        { "rnnlm", 476708864 },
        /* 793471 * (2 * 512 + 1) + 4 * 512 * (512 + 512 + 1) + 512 * 512: 0.82 billion in table 1 */
        { "512-512", 815669119 },
        /* 793471 * (2 * 1024 + 1) + 2 * (4 * 8192 * (2048 + 1) + 8192 * 1024): 1.8 billion */
        { "2x8192-1024", 1776882559 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_autoptr(MtfGraph) graph = build("lstm-lm", counts[i].preset, NULL);
        assert_int_equal(mtf_graph_parameters(graph), counts[i].parameters);
    }
}

TEST(gradients_of_recurrent_networks_agree_with_finite_differences) {
    static const char *const cells[] = { "lstm", "gru" };
    for (int i = 0; i < 4; i++) {
        const char *const small[] = { "batch",   "2",          "length",     "3",
                                      "d-model", "3",          "hidden",     "4",
                                      "vocab",   "5",          "projection", i < 2 ? "0" : "3",
                                      "cell",    cells[i % 2], NULL };
        g_autoptr(MtfGraph) graph = build("lstm-lm", "tiny", small);
        check_gradients(graph);
    }
}

static const char *const small_experts[] = { "batch",  "2", "length",  "3", "d-model", "4",
                                             "hidden", "4", "vocab",   "5", "experts", "5",
                                             "d-ff",   "3", "choices", "2", NULL };

TEST(experts_between_recurrent_layers_have_their_parameters_and_gradients) {
    /* 793471 * (2 * 512 + 1), 2 * (4 * 512 * (512 + 512 + 1)), 256 * 2 * 512 * 1024, 2 * 512 * 256 */
    g_autoptr(MtfGraph) published = build("moe-lstm", "moe-256", NULL);
    assert_int_equal(mtf_graph_parameters(published), 813307775 + 4198400 + 268435456 + 262144);
    g_autoptr(MtfGraph) small = build("moe-lstm", "tiny", small_experts);
    check_gradients(small);
}

/* The square of the coefficient of variation. */
static double squared_variation(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return (squares / n - sum / n * (sum / n)) / (sum / n * (sum / n));
}

/* Adds to `importance` and `load` what one token does, by appendix A of Outrageously Large Networks: sums
 * over all subsets are sorted scores here. */
static void add_token(const double *noisy, const double *clean, const double *deviation,
                      double *importance, double *load) {
    const int experts = 5, k = 2;
    double kept = 0;
    for (int e = 0; e < experts; e++) {
        int larger = 0;
        double others[5];
        for (int o = 0, n = 0; o < experts; o++) {
            larger += noisy[o] > noisy[e];
            if (o != e)
                others[n++] = noisy[o];
        }
        for (int i = 0; i < experts - 1; i++) /* by selection, the largest first */
            for (int j = i + 1; j < experts - 1; j++)
                if (others[j] > others[i]) {
                    double other = others[i];
                    others[i] = others[j];
                    others[j] = other;
                }
        load[e] += 0.5 * erfc(-(clean[e] - others[k - 1]) / deviation[e] / sqrt(2));
        kept += larger < k ? exp(noisy[e]) : 0;
    }
    for (int e = 0; e < experts; e++) {
        int larger = 0;
        for (int o = 0; o < experts; o++)
            larger += noisy[o] > noisy[e];
        importance[e] += larger < k ? exp(noisy[e]) / kept : 0;
    }
}

TEST(noisy_gates_are_spread_by_importance_and_load) {
    g_autoptr(MtfGraph) graph = build("moe-lstm", "tiny", small_experts);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(r, 4);
    mtf_reference_run(r, 4);
    double importance[5] = { 0 }, load[5] = { 0 };
    for (int token = 0; token < 6; token++)
        add_token(&mtf_reference_find(r, "moe/noisy")[5 * token],
                  &mtf_reference_find(r, "moe/clean")[5 * token],
                  &mtf_reference_find(r, "moe/deviation")[5 * token], importance, load);
    double first = mtf_reference_find(r, "moe/importance_loss/loss")[0];
    double second = mtf_reference_find(r, "moe/load_loss/loss")[0];
    assert_true(first > 0 && second > 0);
    assert_true(fabs(first - 0.1 * squared_variation(importance, 5)) < 1e-12);
    assert_true(fabs(second - 0.1 * squared_variation(load, 5)) < 1e-12);
}

/* Fills rows of three positions: two of pair 1, then one of pair 2. */
static void pack(MtfReference *reference, const char *text, const char *places) {
    static const double segments_of[] = { 1, 1, 2 }, places_of[] = { 0, 1, 0 };
    for (int i = 0; i < 6; i++) {
        mtf_reference_find(reference, text)[i] = segments_of[i % 3];
        mtf_reference_find(reference, places)[i] = places_of[i % 3];
    }
}

/* Of a packed row the second pair is what it is whatever the first one says. */
TEST(packed_pairs_do_not_see_one_another) {
    g_autoptr(MtfGraph) graph = build("transformer", "size0", tiny);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(reference, 4);
    pack(reference, "segments", "places");
    pack(reference, "source_segments", "source_places");
    mtf_reference_run(reference, 0);
    double *losses = mtf_reference_find(reference, "losses");
    double first = losses[0], last = losses[2];
    double *source = mtf_reference_find(reference, "source");
    double *tokens = mtf_reference_find(reference, "tokens");
    source[1] = 6 - source[1];
    tokens[0] = 6 - tokens[0];
    mtf_reference_run(reference, 0);
    assert_true(fabs(losses[0] - first) > 1e-6);
    assert_true(losses[2] == last);
}

/* A pair has the same losses alone in its row as behind another: positions begin anew, and what is
 * filled up counts nothing. */
TEST(a_pair_is_the_same_wherever_it_lies) {
    static const char *const presets[] = { "size0", "base" };
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfGraph) graph = build("transformer", presets[i], tiny);
        g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
        mtf_reference_fill_inputs(reference, 4);
        pack(reference, "segments", "places");
        pack(reference, "source_segments", "source_places");
        for (int row = 0; row < 2; row++) { /* token 2 of row 0 is token 0 of row 1 */
            mtf_reference_find(reference, "source")[row == 0 ? 2 : 3] = 5;
            mtf_reference_find(reference, "tokens")[row == 0 ? 2 : 3] = 4;
            mtf_reference_find(reference, "targets")[row == 0 ? 2 : 3] = 1;
        }
        static const char *const names[] = { "segments", "source_segments" };
        for (int k = 0; k < 2; k++) {
            mtf_reference_find(reference, names[k])[4] = 0;
            mtf_reference_find(reference, names[k])[5] = 0;
        }
        mtf_reference_run(reference, 0);
        const double *losses = mtf_reference_find(reference, "losses");
        assert_true(fabs(losses[2] - losses[3]) < 1e-9);
        assert_true(losses[4] == 0 && losses[5] == 0);
        double mean = (losses[0] + losses[1] + losses[2] + losses[3]) / 4;
        assert_true(fabs(reference->values[graph->loss][0] - mean) < 1e-12);
    }
}

/* T5's losses do not depend on what fills up a source's row, and those of a source with less of it are of
 * what is left; gradients pass through the bias that its mask is added to. */
TEST(what_fills_up_a_source_is_not_read) {
    const char *const sizes[] = { "layers", "1", "batch", "2", "length", "3",
                                  "d-ff",   "5", "vocab", "7", NULL };
    g_autoptr(MtfGraph) graph = build("t5", "tiny", sizes);
    check_gradients(graph);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(reference, 4);
    double *segments = mtf_reference_find(reference, "source_segments");
    double *source = mtf_reference_find(reference, "source");
    for (int i = 0; i < 6; i++)
        segments[i] = i != 2;
    mtf_reference_run(reference, 0);
    double loss = reference->values[graph->loss][0];
    source[2] = 6 - source[2];
    mtf_reference_run(reference, 0);
    assert_true(reference->values[graph->loss][0] == loss);
    source[1] = 6 - source[1];
    mtf_reference_run(reference, 0);
    assert_true(fabs(reference->values[graph->loss][0] - loss) > 1e-6);
    source[1] = 6 - source[1];
    segments[2] = 1;
    mtf_reference_run(reference, 0);
    assert_true(fabs(reference->values[graph->loss][0] - loss) > 1e-6);
}

/* A target's row that is filled up from place 2 on: T5's loss is the mean over the places before, Switch's
 * prediction loss their sum over all places; what stands behind changes neither. */
TEST(what_fills_up_a_target_loses_nothing) {
    const char *const sizes[] = { "layers", "2", "batch", "2", "length", "3",
                                  "d-ff",   "5", "vocab", "7", NULL };
    static const char *const families[] = { "t5", "switch" };
    static const char *const losses_of[] = { "loss", "prediction_loss" };
    static const double divisors[] = { 4, 6 };
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfGraph) graph = build(families[i], "tiny", sizes);
        g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
        mtf_reference_fill_inputs(reference, 4);
        double *targets = mtf_reference_find(reference, "targets");
        for (int place = 0; place < 6; place++)
            mtf_reference_find(reference, "counted")[place] = place % 3 < 2;
        mtf_reference_run(reference, 0);
        const double *losses = mtf_reference_find(reference, "losses");
        double sum = losses[0] + losses[1] + losses[3] + losses[4];
        double loss = *mtf_reference_find(reference, losses_of[i]);
        assert_true(sum > 0 && fabs(loss - sum / divisors[i]) < 1e-12);
        targets[2] = 6 - targets[2];
        mtf_reference_run(reference, 0);
        assert_true(*mtf_reference_find(reference, losses_of[i]) == loss);
    }
}

/* A pool leads down to its level; three levels have two on the way up, the lowest first. */
TEST(levels_of_a_unet_are_layers) {
    const char *const sizes[] = { "layers", "3", NULL };
    g_autoptr(MtfGraph) graph = build("unet", "unet-3d", sizes);
    assert_int_equal(graph->repeats->len, 2);
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, 0).count, 3);
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, 1).count, 2);
    int pool = mtf_graph_find_tensor(graph, "down/1/pool");
    assert_true(pool >= 0);
    assert_int_equal(mtf_graph_tensor(graph, pool)->layer.iteration, 1);
    int joined = mtf_graph_find_tensor(graph, "up/0/joined");
    const MtfOperation *join =
        mtf_graph_operation(graph, mtf_graph_tensor(graph, joined)->producer);
    assert_string_equal(mtf_graph_tensor(graph, join->inputs[0])->name, "down/1/conv2/active");
}

/* Three A, a B, four C, a D and two E; with fewer of each they are counted from the first. */
TEST(modules_of_inception_are_layers) {
    static const int counts[][5] = { { 3, 1, 4, 1, 2 }, { 1, 1, 1, 1, 1 } };
    const char *const one[] = { "layers", "1", NULL };
    for (int fewer = 0; fewer < 2; fewer++) {
        g_autoptr(MtfGraph) graph = build("inception3", "inception3", fewer ? one : NULL);
        assert_int_equal(graph->repeats->len, 5);
        for (int i = 0; i < 5; i++)
            assert_int_equal(g_array_index(graph->repeats, MtfRepeat, i).count, counts[fewer][i]);
    }
}

/* The products of all pairs i > j, each once: what the layers above see, from their definition. */
TEST(every_pair_of_vectors_interacts_once) {
    const char *const clicks[] = {
        "batch", "2", "bottom", "3", "tables", "5,4,6", "top", "1", NULL
    };
    g_autoptr(MtfGraph) graph = build("dlrm", "tiny", clicks);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 3);
    mtf_reference_fill_inputs(reference, 4);
    mtf_reference_run(reference, 0);
    const double *v = mtf_reference_find(reference, "vectors"); /* [batch, 4 vectors, 3] */
    const double *joined = mtf_reference_find(reference, "interaction/joined");
    for (int b = 0; b < 2; b++) {
        int place = b * 9 + 3;
        for (int k = 0; k < 3; k++)
            assert_true(joined[b * 9 + k] == v[b * 12 + k]);
        for (int i = 1; i < 4; i++)
            for (int j = 0; j < i; j++, place++) {
                double product = 0;
                for (int k = 0; k < 3; k++)
                    product += v[b * 12 + i * 3 + k] * v[b * 12 + j * 3 + k];
                assert_true(fabs(joined[place] - product) < 1e-12);
            }
    }
}

/* A tiny Transformer learns four fixed windows by heart: its loss falls far below ln 7 = 1.95. */
TEST(training_steps_lower_the_loss) {
    const char *changes[G_N_ELEMENTS(tiny) + 6];
    const char *const more[] = { "rate", "0.03", "warmup", "5", "clip-norm", "1", NULL };
    memcpy(changes, tiny, sizeof tiny);
    memcpy(changes + G_N_ELEMENTS(tiny) - 1, more, sizeof more);
    g_autoptr(MtfGraph) graph = build("transformer-lm", "demo", changes);
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfReference) t = mtf_reference_new(training, 1);
    mtf_reference_fill_inputs(t, 4);
    mtf_reference_run(t, 0);
    double first = t->values[training->loss][0];
    for (uint64_t step = 0; step < 60; step++) {
        mtf_reference_run(t, step);
        mtf_reference_update(t);
    }
    assert_true(fabs(first - log(7)) < 0.1);
    assert_true(t->values[training->loss][0] < 0.9);
}

/* Whatever lay where a network is begun: "vgg" was begun on what the stack held. */
TEST(networks_of_pictures_begin_alike) {
    static const char *const families[] = { "alexnet", "vgg", "resnet", "densenet", "inception3" };
    for (gsize f = 0; f < G_N_ELEMENTS(families); f++) {
        g_autoptr(MtfGraph) graph = build(families[f], "tiny", NULL);
        int relus = 0;
        for (int i = 0; i < (int)graph->operations->len; i++) {
            assert_int_not_equal(mtf_graph_operation(graph, i)->kind, MTF_OP_LEAKY_RELU);
            relus += mtf_graph_operation(graph, i)->kind == MTF_OP_RELU;
        }
        assert_true(relus > 0);
        double spread =
            mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "classifier/w"))->init.value;
        assert_true(spread >= 1e-3 && spread <= 1);
    }
}

TEST(parameters_change_the_structure) {
    const char *const changes[] = { "layers", "1", "dropout", "0.1", "tied", "1", NULL };
    g_autoptr(MtfGraph) graph = build("transformer-lm", "demo", changes);
    assert_true(mtf_graph_find_tensor(graph, "layer/0/ffn/dropped") >= 0);
    assert_int_equal(mtf_graph_find_tensor(graph, "layer/1/ffn/x"), -1);
    assert_int_equal(mtf_graph_find_tensor(graph, "head/w"), -1);
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, 0).count, 1);
}

static void expect_refused(const char *family_name, const char *parameter_name, const char *text,
                           const char *message) {
    g_autoptr(GError) error = NULL;
    MtfModelSettings settings = { 0 };
    const MtfModelParameter *parameter = mtf_model_parameters();
    while (strcmp(parameter->name, parameter_name) != 0)
        parameter++;
    const MtfModelFamily *family = mtf_model_family_find(family_name, NULL);
    assert_false(mtf_model_set(family, parameter, text, &settings, &error));
    assert_string_equal(error->message, message);
}

TEST(wrong_values_are_errors) {
    expect_refused(
        "mlp", "heads", "4",
        "family mlp has no parameter --heads; it has --layers, --batch, --features, --hidden, "
        "--outputs, --biases, --dropout, --activation and those of the optimizer");
    expect_refused("gpt", "heads", "four",
                   "--heads: \"four\" is not a whole number from 1 to 1000000000");
    expect_refused("gpt", "heads", "0",
                   "--heads: \"0\" is not a whole number from 1 to 1000000000");
    expect_refused("gpt", "dropout", "1",
                   "--dropout: \"1\" is not a number of at least 0 and below 1");
    expect_refused("gpt", "activation", "swish",
                   "--activation: \"swish\" is not one of relu, gelu, silu, sigmoid, tanh");
}
