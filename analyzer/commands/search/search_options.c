// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/commands/search/search_options.h"

#include "analyzer/free/frontier.h"
#include "cost/tune/algorithm_choice.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/output_guard.h"
#include "layouts/execution/key_parts.h"
#include "layouts/execution/key_ring.h"
#include "layouts/program/passes.h"

#include <math.h>
#include <string.h>

#define MOST_THREADS 256

/* Axes of a mesh, at most, unless that was said. */
#define STANDARD_AXES 2

/* ---- What goes together ------------------------------------------------------------------------- */

bool mtf_search_options_stages(const MtfSearchOptions *options, int *stages, GError **error) {
    return mtf_option_auto_or_count("--stages", options->stages != NULL ? options->stages : "1",
                                    MTF_MAX_STAGES, stages, error);
}

bool mtf_search_option_is_auto(const char *text) {
    return text == NULL || strcmp(text, "auto") == 0;
}

bool mtf_search_options_key_parts(const MtfSearchOptions *options, int *key_parts, int *ring,
                                  GError **error) {
    return mtf_option_auto_or_count("--key-parts", options->key_parts, MTF_MAX_KEY_PARTS, key_parts,
                                    error) &&
           mtf_option_auto_or_count("--ring", options->ring, MTF_MAX_RING, ring, error);
}

/* Systems that take equal shards of any layout, and those that take some kinds of layouts alone. */
static bool check_exportable(MtfSearchOptions *options, GError **error) {
    static const char *const even[] = { "jax",      "dtensor",    "onnx", "mtf",
                                        "megatron", "torchtitan", NULL };
    if (options->exportable == NULL)
        return true;
    if (!g_strv_contains(even, options->exportable))
        return mtf_input_error(
            error, "--exportable \"%s\" must be jax, dtensor, onnx, mtf, megatron or torchtitan",
            options->exportable);
    options->even = TRUE;
    if (strcmp(options->exportable, "mtf") != 0)
        return true;
    if (g_strcmp0(options->layouts, "free") == 0)
        return mtf_input_error(error, "--exportable mtf is for rule layouts, not --layouts free");
    g_free(options->layouts);
    options->layouts = g_strdup("rule");
    return true;
}

/* What proves a bound is about free layouts, all of them, and takes its time. */
static bool check_proof(const MtfSearchOptions *o, GError **error) {
    const char *wanted = o->certificate != NULL ? "--certificate" : "--dump-problem";
    if ((o->certificate != NULL || o->dump != NULL) && g_strcmp0(o->layouts, "rule") == 0)
        return mtf_input_error(error, "%s is of free layouts, not of --layouts rule", wanted);
    if (o->certificate == NULL)
        return true;
    if (o->dump == NULL)
        return mtf_input_error(
            error, "--certificate needs --dump-problem FILE, the problem that it is about");
    if (o->alike == MTF_UNIFORM_ALWAYS)
        return mtf_input_error(error, "--certificate is of all layouts of a mesh, not of those of "
                                      "--uniform always");
    return o->seconds <= 0 ||
           mtf_input_error(error, "--certificate does not go with --seconds: what proves a bound "
                                  "takes its time");
}

static bool check_counts(MtfSearchOptions *o, GError **error) {
    return mtf_option_count("--devices", &o->devices, error) &&
           (o->devices <= MTF_MAX_MESH_SIZE ||
            mtf_option_between("--devices", o->devices, 1, MTF_MAX_MESH_SIZE, error)) &&
           mtf_option_count("--batch", &o->batch, error) &&
           mtf_option_count("--length", &o->length, error) &&
           mtf_option_count("--context", &o->context, error) &&
           mtf_option_count("--chunks", &o->chunks, error) &&
           mtf_option_count("--frontier", &o->frontier, error);
}

static bool check_options(MtfSearchOptions *options, GError **error) {
    if (!check_counts(options, error))
        return false;
    if (!check_exportable(options, error))
        return false;
    if (!mtf_algorithm_choice_check(options->collectives, error) ||
        !mtf_uniform_parse(options->uniform, &options->alike, error))
        return false;
    if (options->dump_after != NULL && mtf_pass_find(options->dump_after, error) < 0)
        return false;
    if (options->layouts != NULL && strcmp(options->layouts, "rule") != 0 &&
        strcmp(options->layouts, "free") != 0)
        return mtf_input_error(error, "--layouts \"%s\" must be rule or free", options->layouts);
    options->more_axes = options->max_axes == MTF_NO_COUNT && options->mesh == NULL;
    if (options->max_axes == MTF_NO_COUNT)
        options->max_axes = STANDARD_AXES;
    if (!mtf_option_between("--max-mesh-dims", options->max_axes, 1, MTF_MAX_MESH_AXES, error))
        return false;
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return mtf_input_error(error, "--threads %d must be 1 to %d, or 0: one for each processor",
                               options->threads, MOST_THREADS);
    int stages;
    if (!mtf_search_options_stages(options, &stages, error))
        return false;
    if (!(options->seconds >= 0 && options->seconds < 1e9))
        return mtf_input_error(error, "--seconds %g is not a number of at least 0",
                               options->seconds);
    if (options->frontier != 0 &&
        (options->frontier < 2 || options->frontier > MTF_FRONTIER_MAX_POINTS))
        return mtf_input_error(error, "--frontier %d must be 2 to %d points", options->frontier,
                               MTF_FRONTIER_MAX_POINTS);
    if (!isnan(options->gap) && !(options->gap >= 0 && options->gap < 1))
        return mtf_input_error(error, "--gap %g must be at least 0 and below 1", options->gap);
    return check_proof(options, error);
}

bool mtf_search_options_suit_stages(const MtfSearchOptions *o, GError **error) {
    bool megatron = g_strcmp0(o->exportable, "megatron") == 0;
    const struct {
        bool given;
        const char *name;
    } options[] = {
        { o->dump != NULL, "--dump-problem" },
        { o->certificate != NULL, "--certificate" },
        { o->layouts != NULL, "--layouts" },
        { o->pins != NULL, "--pin" },
        { o->forbids != NULL, "--forbid" },
        { o->frontier > 0, "--frontier" },
        { o->offload != NULL, "--offload" },
        { o->key_parts != NULL && megatron, "--key-parts, with --exportable megatron," },
        { o->ring != NULL && megatron, "--ring, with --exportable megatron," },
        { o->exportable != NULL && !megatron, "--exportable (but megatron)" },
        { o->even && !megatron, "--even" },
        { o->collectives != NULL, "--collectives" },
        { o->dump_after != NULL, "--dump-after" },
        { o->seed != 0, "--seed" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
        if (options[i].given)
            return mtf_input_error(error, "%s does not go with --stages yet", options[i].name);
    return true;
}

bool mtf_search_options_suit_one_mesh(const MtfSearchOptions *o, GError **error) {
    const char *only = o->schedule != NULL ? "--schedule"
                       : o->chunks != 0    ? "--chunks"
                       : o->cut != NULL    ? "--cut"
                                           : NULL;
    return only == NULL ||
           mtf_input_error(error, "%s is for pipelines: with --stages S, of 2 or more, or auto",
                           only);
}

/* What goes with --infer only, and what does not go with it. */
static bool check_inference_options(const MtfSearchOptions *o, GError **error) {
    const char *only = o->context != 0              ? "--context"
                       : o->generate != 0           ? "--generate"
                       : o->cache_memory != NULL    ? "--cache-memory"
                       : o->weights != NULL         ? "--weights"
                       : o->prefill_devices != NULL ? "--prefill-devices"
                                                    : NULL;
    if (o->infer == NULL)
        return only == NULL || mtf_input_error(error, "%s goes with --infer only", only);
    const char *other = o->schedule != NULL       ? "--schedule"
                        : o->chunks != 0          ? "--chunks"
                        : o->cut != NULL          ? "--cut"
                        : o->microbatches != NULL ? "--microbatches"
                        : o->recompute != NULL    ? "--recompute"
                        : o->offload != NULL      ? "--offload"
                        : o->key_parts != NULL    ? "--key-parts"
                        : o->ring != NULL         ? "--ring"
                        : o->frontier > 0         ? "--frontier"
                        : o->dump != NULL         ? "--dump-problem"
                        : o->certificate != NULL  ? "--certificate"
                        : o->dump_after != NULL   ? "--dump-after"
                        : o->batch_dim != NULL    ? "--batch-dim"
                        : o->collectives != NULL  ? "--collectives"
                        : o->exportable != NULL   ? "--exportable"
                        : o->pads != NULL         ? "--pad"
                        : o->even                 ? "--even"
                        : o->loss != NULL         ? "--loss"
                                                  : NULL;
    return other == NULL || mtf_input_error(error, "%s does not go with --infer", other);
}

/* Nobody is to hear after hours that there is no such folder. */
static bool check_outputs(const MtfSearchOptions *o, GError **error) {
    return mtf_output_check_file(o->output, error) && mtf_output_check_file(o->dump, error) &&
           mtf_output_check_file(o->certificate, error) &&
           mtf_output_check_folder(o->report, error);
}

/* ---- As they are typed -------------------------------------------------------------------------- */

#define TEXT(name, letter, field, help, what) \
    { name, letter, 0, G_OPTION_ARG_STRING, &o->field, help, what }
#define LIST(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING_ARRAY, &o->field, help, what }
#define OTHER(name, type, field, help, what) \
    { name, 0, 0, type, &o->field, help, what }

/* An ONNX file becomes a graph to train by a loss, any model one to run without. */
#define LOSS_AND_INFERENCE_OPTIONS                                          \
    TEXT("loss", 0, loss, "Train an ONNX file by this loss, or by its own", \
         "cross-entropy:LABELS|output:NAME"),                               \
        INFERENCE_OPTIONS

#define INFERENCE_OPTIONS                                                                          \
    TEXT("infer", 0, infer, "Run the model instead of training it",                                \
         "prefill|decode|serve|forward"),                                                          \
        OTHER("context", G_OPTION_ARG_INT, context,                                                \
              "With --infer: tokens of a prompt, or that stand before a decoded one (2048)", "N"), \
        OTHER("generate", G_OPTION_ARG_INT, generate,                                              \
              "With --infer: tokens that follow, for which caches have room (serve: 128)", "N"),   \
        TEXT("cache-memory", 0, cache_memory,                                                      \
             "With --infer: what caches may take of a device in max_context (what is left)",       \
             "BYTES|30%"),                                                                         \
        TEXT("weights", 0, weights,                                                                \
             "With --infer: weights of products in eight bits, scaled by output channel", "int8"), \
        TEXT("prefill-devices", 0, prefill_devices,                                                \
             "With --infer serve: so many of --devices read prompts only and hand caches to the "  \
             "others, which generate",                                                             \
             "N|auto")

/* Which layouts are looked at. */
#define LAYOUT_OPTIONS                                                                       \
    TEXT("layouts", 0, layouts, "Kind of layouts (the better)", "rule|free"),                \
        TEXT("uniform", 0, uniform,                                                          \
             "Whether repeated layers are laid out alike (auto: unless differing wins 1 %)", \
             "always|never|auto"),                                                           \
        LIST("pin", pins, "This dimension lies on that axis", "d_ff:cols"),                  \
        LIST("forbid", forbids, "This dimension does not lie on that axis", "vocab:rows")

/* Positions of attention split over axes. */
#define CONTEXT_OPTIONS                                                                           \
    TEXT("key-parts", 0, key_parts,                                                               \
         "Parts of attention's keys and values, which axes may split (auto)", "P|auto"),          \
        TEXT("ring", 0, ring,                                                                     \
             "Parts of attention that hand keys and values on round a ring of processors (auto)", \
             "P|auto")

/* A pipeline's stages and their order. */
#define PIPELINE_OPTIONS                                                                       \
    TEXT("stages", 0, stages,                                                                  \
         "Cut into a pipeline of S stages, or as many as are best; --mesh is that of one (1)", \
         "S|auto"),                                                                            \
        TEXT("schedule", 0, schedule, "Order of a pipeline's passes (1f1b)", "NAME|auto"),     \
        OTHER("chunks", G_OPTION_ARG_INT, chunks, "Parts of the graph a stage has", "V"),      \
        TEXT("cut", 0, cut,                                                                    \
             "Where stages may begin: with layers alone, as other systems cut (any)",          \
             "any|layers")

/* What others check a plan's bound with. */
#define PROOF_OPTIONS                                                                           \
    TEXT("dump-problem", 0, dump, "Write the layout problem of free layouts (IOPDDL)", "FILE"), \
        TEXT("certificate", 0, certificate,                                                     \
             "Write what proves the bound of that problem, for meshtf-plan verify", "FILE")

/* When the search ends. */
#define LIMIT_OPTIONS                                                                                 \
    OTHER("seconds", G_OPTION_ARG_DOUBLE, seconds, "Stop after S seconds (no limit)", "S"),           \
        OTHER(                                                                                        \
            "gap", G_OPTION_ARG_DOUBLE, gap,                                                          \
            "Stop within this share of the optimum (0; of inference 0.0001, for large graphs 0.005)", \
            "G")

/* What a plan must be to run elsewhere, and its drawings. */
#define EXPORT_OPTIONS                                                                   \
    TEXT("exportable", 0, exportable, "Only plans that this system can run",             \
         "jax|dtensor|onnx|mtf|megatron|torchtitan"),                                    \
        LIST("pad", pads, "Pad a dimension to a multiple", "vocab:128"),                 \
        OTHER("even", G_OPTION_ARG_NONE, even,                                           \
              "Only shards of equal size, as exports to other systems need them", NULL), \
        TEXT("report", 0, report, "Draw the plan into a folder", "DIR")

static const char summary[] = "Finds the layout with the shortest predicted training step "
                              "that fits, over all meshes of N processors, and proves it. Their "
                              "axes are called all; rows and cols; or planes, rows and cols.\n"
                              "GRAPH is a graph's file, a folder with a model's config.json, an "
                              "ONNX file, or the name of a known model or graph (meshtf-plan model "
                              "--help and meshtf-plan graphs list them).\n\n"
                              "  meshtf-plan search g.json --devices 512 --machine tpu-v2 -o "
                              "p.json --report out\n"
                              "  meshtf-plan search llama2-7b --devices 16 --machine h100";

static const MtfSearchOptions standard = { .devices = MTF_NO_COUNT,
                                           .batch = MTF_NO_COUNT,
                                           .length = MTF_NO_COUNT,
                                           .context = MTF_NO_COUNT,
                                           .chunks = MTF_NO_COUNT,
                                           .frontier = MTF_NO_COUNT,
                                           .max_axes = MTF_NO_COUNT,
                                           .gap = NAN };

bool mtf_search_options_read(int *argc, char ***argv, MtfSearchOptions *o, GError **error) {
    *o = standard;
    const GOptionEntry entries[] = {
        OTHER("devices", G_OPTION_ARG_INT, devices, "Search all meshes of N processors", "N"),
        TEXT("mesh", 0, mesh, "Search this mesh alone", "'rows:2;cols:2'"),
        OTHER("max-mesh-dims", G_OPTION_ARG_INT, max_axes,
              "Axes of a mesh, at most (2, and more for space)", "N"),
        TEXT("machine", 0, machine, "A machine of the library, or a file", "NAME|FILE"),
        MTF_SOFTWARE_OPTION(o->software),
        TEXT("memory", 0, memory, "Memory of a device (the machine's)", "16GiB"),
        LAYOUT_OPTIONS,
        LIST("dim", dims, "Set a dimension's size", "batch=512"),
        OTHER("batch", G_OPTION_ARG_INT, batch, "Examples in a batch of a published model (32)",
              "N"),
        OTHER("length", G_OPTION_ARG_INT, length,
              "Positions in an example of a published model (what it was made for, at most 2048)",
              "N"),
        LOSS_AND_INFERENCE_OPTIONS,
        TEXT("microbatches", 0, microbatches, "Run the batch in M micro-batches (auto)", "M|auto"),
        TEXT("batch-dim", 0, batch_dim, "What counts examples (inputs' first dimension)", "NAME"),
        TEXT("recompute", 0, recompute, "What the backward pass recomputes (auto)",
             "none|cheap|layers|layers:K|auto|LIST"),
        TEXT("offload", 0, offload, "What waits in the host's memory for the backward pass (auto)",
             "none|layers|activations|layers:K|activations:K|auto"),
        CONTEXT_OPTIONS,
        MTF_COLLECTIVES_OPTION(o->collectives),
        PIPELINE_OPTIONS,
        TEXT("precision", 0, precision, "f32, f64 or bf16 (the machine's own for graphs in f32)",
             "P"),
        LIMIT_OPTIONS,
        OTHER("seed", G_OPTION_ARG_INT, seed, "Of the random choices among free layouts", "N"),
        OTHER("threads", G_OPTION_ARG_INT, threads,
              "Threads, at most (one for each processor); without --seconds the plan is the same",
              "N"),
        TEXT("output", 'o', output, "Write the plan", "PLAN"),
        OTHER("frontier", G_OPTION_ARG_INT, frontier,
              "Also search under N memory limits, and show time against memory", "N"),
        PROOF_OPTIONS,
        TEXT("dump-after", 0, dump_after,
             "Print the program as it is after a pass, or the graph after execute", "PASS"),
        EXPORT_OPTIONS,
        OTHER("json", G_OPTION_ARG_NONE, json, "Print JSON", NULL),
        G_OPTION_ENTRY_NULL,
    };
    const MtfUsage usage = { "GRAPH --devices N", summary, 1, 1, NULL };
    return mtf_command_line_read(argc, argv, entries, &usage, error) && check_options(o, error) &&
           check_inference_options(o, error) && check_outputs(o, error);
}

void mtf_search_options_clear(MtfSearchOptions *options) {
    char *owned[] = { options->mesh,         options->machine,    options->memory,
                      options->software,     options->layouts,    options->precision,
                      options->output,       options->report,     options->dump,
                      options->batch_dim,    options->dump_after, options->recompute,
                      options->microbatches, options->schedule,   options->collectives,
                      options->stages,       options->infer,      options->cache_memory,
                      options->loss,         options->exportable, options->uniform,
                      options->weights,      options->offload,    options->prefill_devices,
                      options->key_parts,    options->ring,       options->cut,
                      options->certificate };
    for (gsize i = 0; i < G_N_ELEMENTS(owned); i++)
        g_free(owned[i]);
    g_strfreev(options->dims);
    g_strfreev(options->pads);
    g_strfreev(options->pins);
    g_strfreev(options->forbids);
}
