// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/run_options.h"

#include "layouts/base/command_manual.h"
#include "layouts/base/error.h"
#include "runtime/data/data.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>

#define STEPS_UNSAID INT64_MIN
#define MAX_SLOTS 1024

static const char summary[] =
    "Trains the model of a plan, one rank a processor of its mesh:\n\n"
    "  mpirun -n 4 meshtf-run plan.json --data text.txt --steps 200\n"
    "  meshtf-run plan.json --dry-run\n"
    "  mpirun -n 2 meshtf-run --calibrate -o machine.json\n\n"
    "Text models read any file as bytes, or tokens of nanoGPT (.bin) and llm.c; models of examples\n"
    "read IDX (MNIST), CIFAR and .npy files, or generated ones. Files may be packed by gzip. The\n"
    "results depend on the plan, the data and the seed, not on the layout or the number of ranks, up\n"
    "to rounding.\n\n"
    "SIGUSR1 writes a checkpoint; SIGUSR2 (to mpirun) or SIGTERM (to the ranks) writes one and ends\n"
    "the run with status 75; --resume goes on.";

/* "5:8" are four steps, "5" is one. */
static bool check_trace(MtfRunOptions *options, GError **error) {
    if (options->trace == NULL)
        return options->trace_file == NULL ||
               mtf_input_error(error, "--trace-file goes with --trace FROM:TO, which is missing");
    if (options->trace_file == NULL)
        options->trace_file = g_strdup("trace.json");
    g_auto(GStrv) ends = g_strsplit(options->trace, ":", 2);
    const char *to = ends[0] != NULL && ends[1] != NULL ? ends[1] : ends[0];
    if (to != NULL &&
        g_ascii_string_to_signed(ends[0], 10, 1, INT32_MAX, &options->trace_from, NULL) &&
        g_ascii_string_to_signed(to, 10, options->trace_from, INT32_MAX, &options->trace_to, NULL))
        return true;
    return mtf_input_error(error,
                           "--trace %s: it should be two steps, the first and the last, as "
                           "in 5:8",
                           options->trace);
}

/* Steps are known when all options are read. */
static bool check_traced_steps(const MtfRunOptions *options, GError **error) {
    return options->trace == NULL || options->trace_from <= options->steps ||
           mtf_input_error(error, "--trace %s begins after the last step, %" PRId64, options->trace,
                           options->steps);
}

static bool check_serving(const MtfRunOptions *options, GError **error) {
    if (options->serve < -1 || options->serve > G_MAXUINT16)
        return mtf_input_error(error,
                               "--serve %" PRId64 ": a port is a number from 1 to 65535, or 0 for "
                               "any that is free",
                               options->serve);
    return (options->slots >= 1 && options->slots <= MAX_SLOTS) ||
           mtf_input_error(error, "--slots %" PRId64 ": 1 to %d texts go on side by side",
                           options->slots, MAX_SLOTS);
}

static bool check_training(const MtfRunOptions *options, GError **error) {
    bool uses_weights = options->export_hf != NULL || options->export_adapter != NULL ||
                        options->logits != NULL || options->generate > 0 || options->serve >= 0 ||
                        options->perplexity != NULL;
    if (options->steps < (uses_weights ? 0 : 1))
        return mtf_input_error(
            error, "--steps %" PRId64 ": at least one step is needed%s", options->steps,
            options->steps == 0 ? ", unless --export-hf, --logits, --generate, --perplexity or "
                                  "--serve uses the weights"
                                : "");
    if (options->checkpoint_every < 1)
        return mtf_input_error(error, "--checkpoint-every %" PRId64 ": at least 1 is needed",
                               options->checkpoint_every);
    if (options->keep < 1)
        return mtf_input_error(error, "--keep %" PRId64 ": at least one checkpoint is kept",
                               options->keep);
    if (options->eval_every < 0 || options->eval_batches < 1)
        return mtf_input_error(
            error, "--eval-every %" PRId64 " --eval-batches %" PRId64 ": both should be at least 1",
            options->eval_every, options->eval_batches);
    return (options->generate >= 0 && options->temperature > 0) ||
           mtf_input_error(error,
                           "--generate %" PRId64 " --temperature %g: tokens are counted "
                           "from 1 on and drawn at a temperature above 0",
                           options->generate, options->temperature);
}

/* Options that would have no effect without another, or beside it. */
static bool check_company(const MtfRunOptions *o, GError **error) {
    bool serves = o->serve >= 0, draws = o->generate > 0 || serves;
    const struct {
        bool alone;
        const char *sentence;
    } rows[] = {
        { serves && o->no_cache, "--no-cache: --serve needs the caches" },
        { o->slots != MTF_STANDARD_SLOTS && !serves, "--slots are those of --serve" },
        { o->temperature != MTF_STANDARD_TEMPERATURE && !draws,
          "--temperature goes with --generate or --serve, which draw" },
        { o->prompt != NULL && o->generate == 0,
          "--prompt is gone on with by --generate N, which is missing" },
        { o->resume && o->checkpoint == NULL, "--resume: say from which folder: --checkpoint DIR" },
        { o->new_data && !o->resume,
          "--new-data goes with --resume, which goes on from a checkpoint" },
        { o->new_head && o->init == NULL, "--new-head goes with --init, whose folder lacks it" },
        { o->output != NULL, "-o is of --calibrate; what training writes, --metrics names" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        if (rows[i].alone)
            return mtf_input_error(error, "%s", rows[i].sentence);
    return true;
}

/* Whether the options go together: those of training, or those of --calibrate. */
static bool check(const MtfRunOptions *options, GError **error) {
    if (!mtf_option_between("--rounds", options->rounds, 1, INT64_MAX, error))
        return false;
    if (!options->calibrate && options->rounds != MTF_STANDARD_ROUNDS)
        return mtf_input_error(error, "--rounds are those of --calibrate");
    if (options->calibrate)
        return (options->plan == NULL && options->output != NULL) ||
               mtf_input_error(error, "--calibrate wants -o MACHINE and no plan");
    if (options->plan == NULL)
        return mtf_input_error(error, "a PLAN is missing; see meshtf-run --help");
    return check_serving(options, error) && check_training(options, error) &&
           check_company(options, error) && check_traced_steps(options, error);
}

/* Replaces patterns (shards-*.bin) by the files they match, in alphabetical order. */
static void expand_patterns(char ***files) {
    if (*files == NULL)
        return;
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    for (int i = 0; (*files)[i] != NULL; i++) {
        glob_t found;
        if (glob((*files)[i], GLOB_NOCHECK, NULL, &found) != 0)
            continue;
        g_strv_builder_addv(builder, (const char **)found.gl_pathv);
        globfree(&found);
    }
    g_strfreev(*files);
    *files = g_strv_builder_end(builder);
}

/* What is held out: one number is a share, unless a file is called so, everything else are files. */
static bool read_data(MtfRunOptions *options, GError **error) {
    char *end;
    expand_patterns(&options->data);
    if (options->held_out == NULL)
        return true;
    const char *first = options->held_out[0];
    double share = g_ascii_strtod(first, &end);
    bool is_number = options->held_out[1] == NULL && end != first && *end == '\0';
    bool is_share = is_number && share >= 0 && share < 1;
    if (is_number && !is_share && !g_file_test(first, G_FILE_TEST_EXISTS))
        return mtf_input_error(error, "--held-out %s: a share is at least 0 and below 1", first);
    if (!is_share) {
        expand_patterns(&options->held_out);
        return true;
    }
    options->held_share = share;
    g_clear_pointer(&options->held_out, g_strfreev);
    return true;
}

static const MtfRunOptions standard = { .steps = STEPS_UNSAID,
                                        .checkpoint_every = MTF_STANDARD_CHECKPOINT_EVERY,
                                        .keep = MTF_STANDARD_KEEP,
                                        .held_share = MTF_STANDARD_HELD_OUT,
                                        .temperature = MTF_STANDARD_TEMPERATURE,
                                        .serve = -1,
                                        .slots = MTF_STANDARD_SLOTS,
                                        .rounds = MTF_STANDARD_ROUNDS,
                                        .eval_batches = MTF_STANDARD_EVAL_BATCHES };

static const MtfUsage usage = { "PLAN", summary, 0, 1,
                                "trains the model of a plan, a rank a processor of its mesh" };

#define OPTION(type, name, letter, field, text, value) \
    { name, letter, 0, G_OPTION_ARG_##type, &options->field, text, value }

/* What turns text into tokens, and the texts that are gone on with. */
#define TEXT_OPTIONS                                                                              \
    OPTION(FILENAME, "tokenizer", 0, tokenizer,                                                   \
           "the tokenizer.json (or its folder) of texts: data, prompt and what is generated",     \
           "DIR"),                                                                                \
        OPTION(FILENAME, "prompt", 0, prompt, "that text (the beginning of the held out data)",   \
               "TEXT"),                                                                           \
        OPTION(INT64, "generate", 0, generate,                                                    \
               "after training, let a language model go on with a text for N tokens", "N"),       \
        OPTION(FILENAME, "perplexity", 0, perplexity,                                             \
               "after training (without --steps: none), say how well the model foretells a text", \
               "FILE"),                                                                           \
        OPTION(INT64, "serve", 0, serve,                                                          \
               "after training (without --steps: none), answer requests for completions on "      \
               "this port of 127.0.0.1 (8000) until a signal asks to stop",                       \
               "[PORT]"),                                                                         \
        OPTION(INT64, "slots", 0, slots, "texts that --serve lets go on side by side (8)", "N")

/* Which weights are used, and where they go. */
#define EXPORT_OPTIONS                                                                             \
    OPTION(NONE, "ema", 0, ema, "evaluate and use the running means of the weights, not the last", \
           NULL),                                                                                  \
        OPTION(FILENAME, "export-hf", 0, export_hf,                                                \
               "after training, write the weights as published models have them to DIR", "DIR"),   \
        OPTION(FILENAME, "export-adapter", 0, export_adapter,                                      \
               "after training, write the adapters of a plan with --lora as PEFT has them to DIR", \
               "DIR")

/* GLib's options of a number have one: "--serve" alone is spelled out. */
static void spell_out_port(char **arguments) {
    for (int i = 1; arguments[i] != NULL && !g_str_equal(arguments[i], "--"); i++) {
        const char *next = arguments[i + 1];
        if (!g_str_equal(arguments[i], "--serve") || (next != NULL && g_ascii_isdigit(*next)))
            continue;
        g_free(arguments[i]);
        arguments[i] = g_strdup_printf("--serve=%d", MTF_STANDARD_PORT);
    }
}

static bool read_line(MtfRunOptions *options, const GOptionEntry *entries, int argc, char **argv,
                      GError **error) {
    g_auto(GStrv) copy = g_strdupv(argv);
    spell_out_port(copy);
    g_autofree char **arguments = g_memdup2(copy, sizeof *copy * ((gsize)argc + 1));
    char **rest = arguments;
    if (!mtf_command_line_read(&argc, &rest, entries, &usage, error) || !read_data(options, error))
        return false;
    options->plan = g_strdup(argc > 1 ? rest[1] : NULL);
    if (options->steps == STEPS_UNSAID)
        options->steps =
            options->serve >= 0 || options->perplexity != NULL ? 0 : MTF_STANDARD_STEPS;
    return check_trace(options, error) && check(options, error);
}

/* For measuring the machine. */
#define CALIBRATION_OPTIONS                                                                     \
    OPTION(NONE, "calibrate", 0, calibrate,                                                     \
           "measure this machine instead of training, and write it to -o", NULL),               \
        OPTION(INT64, "rounds", 0, rounds,                                                      \
               "rounds of --calibrate over all kernels (4): more where others use the machine", \
               "N"),                                                                            \
        OPTION(FILENAME, "output", 'o', output, "the machine file that --calibrate writes",     \
               "MACHINE")

/* What a batch comes to. */
#define RESULT_OPTIONS                                                                            \
    OPTION(FILENAME, "logits", 0, logits,                                                         \
           "after training, write the scores of the next batch to a .npy file; by a plan of "     \
           "--infer forward what comes of all data",                                              \
           "FILE"),                                                                               \
        OPTION(                                                                                   \
            FILENAME, "results", 0, results,                                                      \
            "of a plan of --infer forward: write the last batch's results to a safetensors file", \
            "FILE")

bool mtf_run_options_parse(MtfRunOptions *options, int argc, char **argv, GError **error) {
    *options = standard;
    const GOptionEntry entries[] = {
        OPTION(FILENAME_ARRAY, "data", 0, data,
               "a file to train on, or a pattern for several; may be repeated", "FILE"),
        OPTION(FILENAME_ARRAY, "held-out", 0, held_out,
               "the share of the data that is not trained on (0.1), or files of such data",
               "SHARE"),
        OPTION(INT64, "eval-every", 0, eval_every,
               "steps from one loss of held out data to the next (never)", "K"),
        OPTION(INT64, "eval-batches", 0, eval_batches,
               "batches of held out data that such a loss is the mean of (8)", "N"),
        OPTION(INT64, "steps", 0, steps, "training steps (100)", "K"),
        OPTION(INT64, "seed", 0, seed, "of initial values, data order and dropout (0)", "N"),
        OPTION(FILENAME, "metrics", 0, metrics, "write one JSON object a step to FILE", "FILE"),
        OPTION(FILENAME, "checkpoint", 0, checkpoint, "write checkpoints to the folder DIR", "DIR"),
        OPTION(INT64, "checkpoint-every", 0, checkpoint_every,
               "steps from one checkpoint to the next (100)", "K"),
        OPTION(INT64, "keep", 0, keep, "checkpoints kept (2)", "N"),
        OPTION(NONE, "resume", 0, resume,
               "go on from the newest good checkpoint in DIR, under this or any other layout",
               NULL),
        OPTION(NONE, "new-data", 0, new_data,
               "with --resume: go on with other data than the checkpoint's", NULL),
        OPTION(
            FILENAME, "init", 0, init,
            "take the initial weights from a safetensors file, or the folder of a published model",
            "FILE|DIR"),
        OPTION(NONE, "new-head", 0, new_head,
               "with --init DIR: weights that the folder lacks begin as they are drawn", NULL),
        OPTION(FILENAME, "init-adapter", 0, init_adapter,
               "take the adapters of the plan from a folder as PEFT keeps them", "DIR"),
        EXPORT_OPTIONS,
        RESULT_OPTIONS,
        OPTION(STRING, "trace", 0, trace, "write what every rank does in steps FROM to TO",
               "FROM:TO"),
        OPTION(FILENAME, "trace-file", 0, trace_file, "as a Chrome trace, to FILE (trace.json)",
               "FILE"),
        TEXT_OPTIONS,
        OPTION(DOUBLE, "temperature", 0, temperature,
               "how freely tokens are drawn (0.8); near 0 the likeliest is taken", "T"),
        OPTION(NONE, "no-cache", 0, no_cache,
               "compute all of the text again for each token, without caches", NULL),
        OPTION(NONE, "dry-run", 0, dry_run,
               "check the plan, lay out memory, say what is predicted, and stop", NULL),
        OPTION(NONE, "only-mpi", 0, only_mpi,
               "exchange by MPI among ranks of one host too, not through shared memory", NULL),
        OPTION(NONE, "no-overlap", 0, no_overlap, "end each exchange before computing on", NULL),
        OPTION(NONE, "trial", 0, trial, "time the ways to multiply at the start", NULL),
        OPTION(NONE, "verify", 0, verify, "run the same steps on one processor and compare", NULL),
        CALIBRATION_OPTIONS,
        { 0 },
    };
    if (read_line(options, entries, argc, argv, error))
        return true;
    mtf_run_options_clear(options);
    return false;
}

void mtf_run_options_clear(MtfRunOptions *options) {
    g_free(options->plan);
    g_strfreev(options->data);
    g_strfreev(options->held_out);
    g_free(options->prompt);
    g_free(options->perplexity);
    g_free(options->tokenizer);
    g_free(options->trace);
    g_free(options->trace_file);
    g_free(options->metrics);
    g_free(options->init);
    g_free(options->init_adapter);
    g_free(options->export_hf);
    g_free(options->export_adapter);
    g_free(options->logits);
    g_free(options->results);
    g_free(options->checkpoint);
    g_free(options->output);
    *options = (MtfRunOptions){ 0 };
}

bool mtf_run_options_only_ask(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ||
            strcmp(argv[i], "--version") == 0 || mtf_manual_form(argv[i]) != MTF_MANUAL_NONE)
            return true;
    return false;
}
