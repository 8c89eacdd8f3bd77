// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/model_family.h"

#include "analyzer/models/architecture_config.h"
#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"
#include "layouts/graph/optimizer.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define STANDARD_LENGTH 2048 /* of texts, where a config allows more */

const MtfModelFamily *const *mtf_model_families(void) {
    static const MtfModelFamily *const families[] = {
        &mtf_model_mlp,         &mtf_model_transformer_lm,
        &mtf_model_gpt,         &mtf_model_gpt2,
        &mtf_model_llama,       &mtf_model_qwen,
        &mtf_model_pythia,      &mtf_model_phi,
        &mtf_model_olmo2,       &mtf_model_opt,
        &mtf_model_bloom,       &mtf_model_falcon,
        &mtf_model_gemma,       &mtf_model_mistral,
        &mtf_model_mixtral,     &mtf_model_deepseek,
        &mtf_model_bert,        &mtf_model_t5,
        &mtf_model_switch,      &mtf_model_gshard,
        &mtf_model_vit,         &mtf_model_transformer,
        &mtf_model_autoencoder, &mtf_model_dlrm,
        &mtf_model_resnet,      &mtf_model_vgg,
        &mtf_model_alexnet,     &mtf_model_inception3,
        &mtf_model_densenet,    &mtf_model_unet,
        &mtf_model_cosmoflow,   &mtf_model_lstm_lm,
        &mtf_model_moe_lstm,    NULL
    };
    return families;
}

const MtfModelFamily *mtf_model_family_find(const char *name, GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (int i = 0; mtf_model_families()[i] != NULL; i++) {
        const MtfModelFamily *family = mtf_model_families()[i];
        if (strcmp(family->name, name) == 0)
            return family;
        g_ptr_array_add(names, (gpointer)family->name);
    }
    const MtfModelFamily *owner;
    const MtfModelPreset *preset = mtf_model_find(name, &owner);
    if (preset != NULL) {
        mtf_input_error(error, "\"%s\" is a preset of the family %s: give %s --preset %s", name,
                        owner->name, owner->name, preset->name);
        return NULL;
    }
    g_autofree char *known = mtf_there_are(name, names);
    mtf_input_error(error, "\"%s\" is not a family of models%s", name, known);
    return NULL;
}

/* A name without dashes; free with g_free. */
static char *plain_name(const char *first, const char *second) {
    g_autofree char *both = g_strconcat(first, second, NULL);
    g_auto(GStrv) parts = g_strsplit(both, "-", -1);
    return g_strjoinv(NULL, parts);
}

/* "resnet-50", "resnet50" and "50" are one, where no preset has just that name. */
static bool is_nearly_preset(const MtfModelFamily *family, const MtfModelPreset *preset,
                             const char *name) {
    g_autofree char *plain = plain_name("", preset->name);
    g_autofree char *given = plain_name("", name), *full = plain_name(family->name, name);
    return strcmp(plain, given) == 0 || strcmp(plain, full) == 0;
}

const MtfModelPreset *mtf_model_preset_find(const MtfModelFamily *family, const char *name,
                                            GError **error) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (const MtfModelPreset *preset = family->presets; preset->name != NULL; preset++)
        if (name == NULL || strcmp(preset->name, name) == 0)
            return preset;
    for (const MtfModelPreset *preset = family->presets; preset->name != NULL; preset++) {
        if (is_nearly_preset(family, preset, name))
            return preset;
        g_ptr_array_add(names, (gpointer)preset->name);
    }
    g_autofree char *known = mtf_there_are(name, names);
    mtf_input_error(error, "family %s has no preset \"%s\"%s", family->name, name, known);
    return NULL;
}

/* "llama3-8b", "dlrm-tiny": the preset, behind its family unless that is said already. */
static char *full_name(const MtfModelFamily *family, const MtfModelPreset *preset) {
    bool said = g_str_has_prefix(preset->name, family->name) ||
                (preset->config != NULL && strcmp(preset->name, "tiny") != 0);
    return said ? g_strdup(preset->name) : g_strdup_printf("%s-%s", family->name, preset->name);
}

static bool is_named(const MtfModelFamily *family, const MtfModelPreset *preset, const char *name) {
    g_autofree char *full = full_name(family, preset);
    g_autofree char *plain = plain_name("", full), *given = plain_name("", name);
    return g_ascii_strcasecmp(plain, given) == 0;
}

const MtfModelPreset *mtf_model_find(const char *name, const MtfModelFamily **family) {
    for (int f = 0; (*family = mtf_model_families()[f]) != NULL; f++)
        for (const MtfModelPreset *preset = (*family)->presets; preset->name != NULL; preset++)
            if (is_named(*family, preset, name))
                return preset;
    return NULL;
}

char **mtf_model_names(void) {
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    for (int f = 0; mtf_model_families()[f] != NULL; f++) {
        const MtfModelFamily *family = mtf_model_families()[f];
        for (const MtfModelPreset *preset = family->presets; preset->name != NULL; preset++) {
            g_autofree char *name = full_name(family, preset);
            g_strv_builder_add(names, name);
        }
    }
    return g_strv_builder_end(names);
}

#define OFFSET(field) offsetof(MtfModelSettings, field)
#define SIZE(name, field, help) \
    { name, MTF_SETTING_INTEGER, OFFSET(field), 1, 1e9, NULL, help, false }
#define FLAG(name, field, help) \
    { name, MTF_SETTING_INTEGER, OFFSET(field), 0, 1, NULL, help, false }
#define TEXT(name, field, help) \
    { name, MTF_SETTING_TEXT, OFFSET(field), 0, 0, NULL, help, false }
#define OF_ALL(name, field, high, help) \
    { name, MTF_SETTING_NUMBER, OFFSET(field), 0, high, NULL, help, true }

static const char *const stems[] = { "large", "small", NULL };
static const char *const statistics[] = { "microbatch", "step", NULL };
static const char *const activations[] = { "relu", "gelu", "silu", "sigmoid", "tanh", NULL };
static const char *const interactions[] = { "cat", "dot", "cross", NULL };
static const char *const cells[] = { "lstm", "gru", NULL };
static const char *const attentions[] = { "composite", "blockwise", NULL };
static const char *const routings[] = { MTF_ROUTING_CONVENTIONS, NULL };
static const char *const optimizers[] = { MTF_OPTIMIZER_KINDS, "none", NULL };
static const char *const schedules[] = { MTF_SCHEDULES, NULL };

static const MtfModelParameter model_parameters[] = {
    { "layers", MTF_SETTING_INTEGER, OFFSET(layers), 0, 1e5, NULL, "Hidden layers or blocks",
      false },
    SIZE("batch", batch, "Examples in a batch"),
    SIZE("length", length, "Positions in an example"),
    SIZE("d-model", d_model, "Width of the residual stream"),
    SIZE("d-ff", d_ff, "Width of the feed-forward layers"),
    SIZE("heads", heads, "Attention heads"),
    SIZE("experts", experts, "Experts of each layer that has some"),
    SIZE("choices", choices, "Experts that a token is sent to"),
    { "routing", MTF_SETTING_WORD, OFFSET(routing.convention), 0, 0, routings,
      "How tokens are sent to experts: the convention of this system (the family's)", false },
    { "capacity-factor", MTF_SETTING_NUMBER, OFFSET(routing.capacity_factor), 0, INFINITY, NULL,
      "Places of an expert beside its even share of the tokens (the family's; of some, all)",
      false },
    { "auxiliary", MTF_SETTING_NUMBER, OFFSET(routing.auxiliary), 0, INFINITY, NULL,
      "Coefficient of the loss that balances experts (the family's)", false },
    { "z-loss", MTF_SETTING_NUMBER, OFFSET(routing.z_loss), 0, INFINITY, NULL,
      "Coefficient of the loss of large scores (the family's)", false },
    { "jitter", MTF_SETTING_NUMBER, OFFSET(routing.jitter), 0, 1, NULL,
      "Scores are of what is read times 1 - X to 1 + X, at random, in training", false },
    SIZE("d-kv", d_kv, "Width of one head"),
    SIZE("vocab", vocab, "Size of the vocabulary"),
    { "source-vocab", MTF_SETTING_INTEGER, OFFSET(source_vocab), 0, 1e9, NULL,
      "Size of the source's own vocabulary (0: one for both)", false },
    SIZE("features", features, "Features of an example"),
    SIZE("hidden", hidden, "Width of the hidden layers"),
    { "projection", MTF_SETTING_INTEGER, OFFSET(projection), 0, 1e9, NULL,
      "Features that hidden layers are projected to (0: they are not)", false },
    { "cell", MTF_SETTING_WORD, OFFSET(cell), 0, 0, cells, "Recurrent cell", false },
    SIZE("outputs", outputs, "Targets of an example"),
    SIZE("image", image, "Pixels of a side of a picture or a volume"),
    SIZE("channels", channels, "Channels of a picture"),
    SIZE("classes", classes, "Classes"),
    SIZE("width", width, "Channels of the first layers, or what each layer adds"),
    SIZE("widening", widening, "How many times as wide inner convolutions are"),
    SIZE("groups", groups, "Groups of channels in which the 3x3 convolutions of a block work"),
    { "stem", MTF_SETTING_WORD, OFFSET(stem), 0, 0, stems,
      "How pictures begin: large windows that shrink them, or small ones that do not", false },
    { "norm-over", MTF_SETTING_WORD, OFFSET(norm_over), 0, 0, statistics,
      "Examples that batch statistics are of: a micro-batch's or the step's", false },
    FLAG("biases", biases, "1: linear layers and norms have biases"),
    FLAG("tied", tied, "1: the softmax weights are the embedding"),
    FLAG("packed", packed, "1: rows hold several pairs, or are filled up"),
    { "dropout", MTF_SETTING_NUMBER, OFFSET(dropout), 0, 1, NULL, "Share that is dropped", false },
    { "smoothing", MTF_SETTING_NUMBER, OFFSET(smoothing), 0, 1, NULL,
      "Share of each label that is spread over all", false },
    TEXT("sizes", sizes, "Sizes of the encoder's layers, 512-256-64"),
    TEXT("bottom", bottom, "Sizes of the layers below, 512-256-64"),
    TEXT("tables", tables, "Rows of each table, and how many an example has: 1460,583x2,27"),
    { "interaction", MTF_SETTING_WORD, OFFSET(interaction), 0, 0, interactions,
      "What the layers above see: vectors, products or crosses", false },
    TEXT("top", top, "Sizes of the layers above, 512-256-1"),
    { "activation", MTF_SETTING_WORD, OFFSET(activation), 0, 0, activations,
      "Function of hidden layers", false },
    { "attention", MTF_SETTING_WORD, OFFSET(attention), 0, 0, attentions,
      "How attention runs (blockwise: its scores are never in memory)", false },
    { "optimizer", MTF_SETTING_WORD, OFFSET(optimizer), 0, 0, optimizers, "Update rule", true },
    { "schedule", MTF_SETTING_WORD, OFFSET(schedule), 0, 0, schedules, "Learning-rate schedule",
      true },
    OF_ALL("rate", rate, INFINITY, "Learning rate (its peak)"),
    OF_ALL("warmup", warmup, INFINITY, "Steps of warm-up"),
    OF_ALL("total", total, INFINITY, "Step at which the schedule ends"),
    OF_ALL("final", final, 1, "Share of the rate that the schedule ends with"),
    OF_ALL("power", power, INFINITY, "Power of the polynomial schedule (1)"),
    OF_ALL("cooldown", cooldown, INFINITY, "Steps in which the wsd schedule ends"),
    OF_ALL("period", period, INFINITY, "Steps from one drop of the step schedule to the next"),
    OF_ALL("drop", drop, INFINITY, "Factor of each drop of the step schedule (0.1)"),
    OF_ALL("ema", ema, 1, "Keep a running mean of the weights that holds this share of itself"),
    OF_ALL("clip-norm", clip_norm, INFINITY, "Clip gradients above this global norm (0: never)"),
    { NULL, MTF_SETTING_WORD, 0, 0, 0, NULL, NULL, false },
};

const MtfModelParameter *mtf_model_parameters(void) {
    return model_parameters;
}

bool mtf_model_has_parameter(const MtfModelFamily *family, const MtfModelParameter *parameter) {
    g_auto(GStrv) own = g_strsplit(family->parameters, " ", -1);
    return parameter->of_all || g_strv_contains((const char *const *)own, parameter->name);
}

static bool set_number(const MtfModelParameter *parameter, const char *text,
                       MtfModelSettings *settings, GError **error) {
    char *rest;
    double value = g_ascii_strtod(text, &rest);
    bool good = rest != text && *rest == '\0' && value >= parameter->low && value < parameter->high;
    if (!good && isinf(parameter->high))
        return mtf_input_error(error, "--%s: \"%s\" is not a number of at least %g",
                               parameter->name, text, parameter->low);
    if (!good)
        return mtf_input_error(error, "--%s: \"%s\" is not a number of at least %g and below %g",
                               parameter->name, text, parameter->low, parameter->high);
    G_STRUCT_MEMBER(double, settings, parameter->offset) = value;
    return true;
}

static bool set_integer(const MtfModelParameter *parameter, double low, const char *text,
                        MtfModelSettings *settings, GError **error) {
    gint64 value;
    if (!g_ascii_string_to_signed(text, 10, (gint64)low, (gint64)parameter->high, &value, NULL))
        return mtf_input_error(error, "--%s: \"%s\" is not a whole number from %.0f to %.0f",
                               parameter->name, text, low, parameter->high);
    G_STRUCT_MEMBER(int64_t, settings, parameter->offset) = value;
    return true;
}

static bool set_word(const MtfModelParameter *parameter, const char *text,
                     MtfModelSettings *settings, GError **error) {
    for (int i = 0; parameter->words[i] != NULL; i++) {
        if (strcmp(parameter->words[i], text) == 0) {
            G_STRUCT_MEMBER(const char *, settings, parameter->offset) = parameter->words[i];
            return true;
        }
    }
    g_autofree char *known = g_strjoinv(", ", (char **)parameter->words);
    g_autofree char *hint = mtf_did_you_mean(text, parameter->words);
    return mtf_input_error(error, "--%s: \"%s\" is not one of %s%s", parameter->name, text, known,
                           hint);
}

/* Integers are at least `low`. */
static bool set_value(const MtfModelParameter *parameter, double low, const char *text,
                      MtfModelSettings *settings, GError **error) {
    switch (parameter->type) {
    case MTF_SETTING_INTEGER:
        return set_integer(parameter, low, text, settings, error);
    case MTF_SETTING_NUMBER:
        return set_number(parameter, text, settings, error);
    case MTF_SETTING_WORD:
        return set_word(parameter, text, settings, error);
    case MTF_SETTING_TEXT:
        G_STRUCT_MEMBER(const char *, settings, parameter->offset) = text;
        return true;
    }
    g_return_val_if_reached(false);
}

static bool fail_parameter(const MtfModelFamily *family, const MtfModelParameter *parameter,
                           GError **error) {
    g_auto(GStrv) names = g_strsplit(family->parameters, " ", -1);
    g_autofree char *own = g_strjoinv(", --", names);
    return mtf_input_error(error,
                           "family %s has no parameter --%s; it has --%s and those of the "
                           "optimizer",
                           family->name, parameter->name, own);
}

/* No size of a published model is 0, which says there that the config's own holds. */
bool mtf_model_set(const MtfModelFamily *family, const MtfModelParameter *parameter,
                   const char *text, MtfModelSettings *settings, GError **error) {
    if (!mtf_model_has_parameter(family, parameter))
        return fail_parameter(family, parameter, error);
    bool published = family->presets[0].config != NULL;
    return set_value(parameter, published ? MAX(1, parameter->low) : parameter->low, text, settings,
                     error);
}

static void set_option(const char *name, const char *text, MtfModelSettings *settings) {
    const MtfModelParameter *parameter = model_parameters;
    while (parameter->name != NULL && strcmp(parameter->name, name) != 0)
        parameter++;
    g_assert(parameter->name != NULL);
    g_autoptr(GError) error = NULL;
    bool taken = set_value(parameter, parameter->low, text, settings, &error);
    g_assert_no_error(error);
    g_assert(taken);
}

MtfModelSettings mtf_model_settings(const MtfModelPreset *preset) {
    MtfModelSettings settings = { 0 };
    g_auto(GStrv) options = g_strsplit(preset->options, " ", -1);
    for (int i = 0; options[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(options[i], "=", 2);
        if (pair[0] != NULL)
            set_option(pair[0], g_intern_string(pair[1]), &settings);
    }
    return settings;
}

static bool set_optimizer(MtfGraph *graph, const MtfModelSettings *s, GError **error) {
    if (strcmp(s->optimizer, "none") == 0)
        return true;
    MtfOptimizer optimizer = mtf_optimizer_standard(s->optimizer, s->rate);
    g_free(optimizer.schedule);
    optimizer.schedule = g_strdup(s->schedule);
    optimizer.warmup = s->warmup;
    optimizer.total = s->total;
    optimizer.final = s->final;
    optimizer.clip_norm = s->clip_norm;
    optimizer.cooldown = s->cooldown;
    optimizer.period = s->period;
    optimizer.ema = s->ema;
    optimizer.power = s->power > 0 ? s->power : optimizer.power;
    optimizer.drop = s->drop > 0 ? s->drop : optimizer.drop;
    graph->optimizer = optimizer;
    g_autofree char *lack = mtf_optimizer_lacks(&optimizer);
    return lack == NULL || mtf_input_error(error, "%s", lack);
}

/* ---- Presets that are config.json files ------------------------------------------------------ */

/* Gives a key of a config's text another size, or the config the key; not where the size or the key is none. */
static void set_key(GString *config, const char *key, int64_t size) {
    if (size == 0 || key == NULL)
        return;
    g_autofree char *quoted = g_strdup_printf("\"%s\":", key);
    g_autofree char *pair = g_strdup_printf("%s%" PRId64, quoted, size);
    const char *there = strstr(config->str, quoted);
    gsize at = there != NULL ? (gsize)(there - config->str) : config->len - 1;
    if (there != NULL)
        g_string_erase(config, (gssize)at,
                       (gssize)(strlen(quoted) + strspn(there + strlen(quoted), "0123456789")));
    else
        g_string_insert_c(config, (gssize)at, ',');
    g_string_insert(config, (gssize)(at + (there == NULL)), pair);
}

/* Where types do not call their sizes as most do; NULL: it follows from others. */
static const struct {
    const char *type, *layers, *d_ff, *experts;
} other_keys[] = {
    { "gpt2", "n_layer", "n_inner", NULL },
    { "bloom", "n_layer", NULL, NULL },
    { "falcon", "num_hidden_layers", "ffn_hidden_size", NULL },
    { "opt", "num_hidden_layers", "ffn_dim", NULL },
    { "t5", "num_layers", "d_ff", NULL },
    { "switch_transformers", "num_layers", "d_ff", "num_experts" },
    { "distilbert", "n_layers", "hidden_dim", NULL },
    { "mixtral", "num_hidden_layers", "intermediate_size", "num_local_experts" },
    { NULL, "num_hidden_layers", "intermediate_size", NULL },
};

/* The preset's config with the sizes that the user gave. Free with g_free. */
static char *config_with(const MtfModelPreset *preset, const MtfModelSettings *s) {
    GString *config = g_string_new(preset->config);
    int row = 0;
    for (; other_keys[row].type != NULL; row++) {
        g_autofree char *type = g_strdup_printf("\"model_type\":\"%s\"", other_keys[row].type);
        if (strstr(config->str, type) != NULL)
            break;
    }
    set_key(config, "vocab_size", s->vocab);
    set_key(config, other_keys[row].layers, s->layers);
    set_key(config, other_keys[row].d_ff, s->d_ff);
    set_key(config, other_keys[row].experts, s->experts);
    set_key(config, "num_experts_per_tok", s->choices);
    set_key(config, "image_size", s->image);
    set_key(config, "num_labels", s->classes);
    return g_string_free(config, FALSE);
}

/* Sizes and routing that no key has. Returns whether there are none. */
static bool set_sizes(MtfArchitecture *a, const MtfModelSettings *s) {
    MtfStack *stacks[] = { &a->encoder, &a->decoder };
    bool all_said = s->routing.convention == NULL && s->routing.capacity_factor == 0;
    for (int i = 0; i < 2; i++) {
        bool is_there = stacks[i]->heads > 0;
        mtf_routing_wish(&stacks[i]->routing, stacks[i]->experts_per_token, &s->routing);
        all_said = all_said && (!is_there || s->d_ff == 0 || stacks[i]->d_ff == s->d_ff);
        stacks[i]->d_ff = s->d_ff > 0 ? s->d_ff : stacks[i]->d_ff;
    }
    return all_said;
}

static void set_lengths(MtfArchitecture *a, const MtfModelSettings *s) {
    bool picture = a->kind == MTF_ARCHITECTURE_IMAGE;
    int64_t length = s->length > 0 ? s->length : MIN(a->context, STANDARD_LENGTH);
    a->length = a->source_length = picture ? a->context : length;
    a->batch = s->batch;
    a->dropout = (MtfDropoutRates){ 0 };
}

static MtfGraph *build_config(const MtfModelPreset *preset, const MtfModelSettings *settings,
                              GError **error) {
    MtfArchitecture architecture;
    g_autofree char *config = config_with(preset, settings);
    g_autoptr(GPtrArray) left_out = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse(preset->name, config, strlen(config), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    if (!mtf_architecture_config_read(&root, &architecture, left_out, error))
        return NULL;
    g_strlcpy(architecture.name, preset->name, sizeof architecture.name);
    set_lengths(&architecture, settings);
    bool as_said = set_sizes(&architecture, settings);
    MtfGraph *graph = mtf_architecture_build(&architecture, error);
    if (graph != NULL && as_said)
        graph->config = g_steal_pointer(&config);
    return graph;
}

MtfGraph *mtf_model_build(const MtfModelFamily *family, const MtfModelPreset *preset,
                          const MtfModelSettings *settings, GError **error) {
    MtfModelSettings own = mtf_model_settings(preset);
    const MtfModelSettings *s = settings != NULL ? settings : &own;
    MtfModelBuild build = preset->build != NULL ? preset->build : family->build;
    g_autoptr(MtfGraph) graph =
        preset->config != NULL ? build_config(preset, s, error) : build(s, error);
    if (graph == NULL || !set_optimizer(graph, s, error))
        return NULL;
    g_free(graph->name);
    graph->name = full_name(family, preset);
    mtf_graph_canonicalize(graph);
    return g_steal_pointer(&graph);
}
