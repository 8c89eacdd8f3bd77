// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/run_options.h"

#include "layouts/command_manual.h"
#include "layouts/error.h"

#include <inttypes.h>
#include <string.h>

static const char summary[] =
    "Trains the model of a plan, one rank a processor of its mesh:\n\n"
    "  mpirun -n 4 meshtf-run plan.json --data text.txt --steps 200\n"
    "  meshtf-run plan.json --dry-run\n"
    "  mpirun -n 2 meshtf-run --calibrate -o machine.json\n\n"
    "Text models read any file as bytes; data for other models is generated. The results depend on\n"
    "the plan, the data and the seed, not on the layout or the number of ranks, up to rounding.\n\n"
    "SIGUSR1 writes a checkpoint; SIGUSR2 (to mpirun) or SIGTERM (to the ranks) writes one and ends\n"
    "the run with status 75; --resume goes on.";

static bool check_training(const MtfRunOptions *options, GError **error) {
    if (options->steps < 1)
        return mtf_input_error(error, "--steps %" PRId64 ": at least one step is needed",
                               options->steps);
    if (options->checkpoint_every < 1)
        return mtf_input_error(error, "--checkpoint-every %" PRId64 ": at least 1 is needed",
                               options->checkpoint_every);
    if (options->keep < 1)
        return mtf_input_error(error, "--keep %" PRId64 ": at least one checkpoint is kept",
                               options->keep);
    if (options->resume && options->checkpoint == NULL)
        return mtf_input_error(error, "--resume: say from which folder: --checkpoint DIR");
    return true;
}

/* Whether the options go together: those of training, or those of --calibrate. */
static bool check(const MtfRunOptions *options, GError **error) {
    if (options->calibrate)
        return (options->plan == NULL && options->output != NULL) ||
               mtf_input_error(error, "--calibrate wants -o MACHINE and no plan");
    if (options->plan == NULL)
        return mtf_input_error(error, "a PLAN is missing; see meshtf-run --help");
    if (options->output != NULL)
        return mtf_input_error(error,
                               "-o is of --calibrate; what training writes, --metrics names");
    return check_training(options, error);
}

bool mtf_run_options_parse(MtfRunOptions *options, int argc, char **argv, GError **error) {
    *options = (MtfRunOptions){ .steps = MTF_STANDARD_STEPS,
                                .checkpoint_every = MTF_STANDARD_CHECKPOINT_EVERY,
                                .keep = MTF_STANDARD_KEEP };
    const GOptionEntry entries[] = {
        { "data", 0, 0, G_OPTION_ARG_FILENAME, &options->data, "text to train on", "FILE" },
        { "steps", 0, 0, G_OPTION_ARG_INT64, &options->steps, "training steps (100)", "K" },
        { "seed", 0, 0, G_OPTION_ARG_INT64, &options->seed,
          "of initial values, data order and dropout (0)", "N" },
        { "metrics", 0, 0, G_OPTION_ARG_FILENAME, &options->metrics,
          "write one JSON object a step to FILE", "FILE" },
        { "checkpoint", 0, 0, G_OPTION_ARG_FILENAME, &options->checkpoint,
          "write checkpoints to the folder DIR", "DIR" },
        { "checkpoint-every", 0, 0, G_OPTION_ARG_INT64, &options->checkpoint_every,
          "steps from one checkpoint to the next (100)", "K" },
        { "keep", 0, 0, G_OPTION_ARG_INT64, &options->keep, "checkpoints kept (2)", "N" },
        { "resume", 0, 0, G_OPTION_ARG_NONE, &options->resume,
          "go on from the newest good checkpoint in DIR, under this or any other layout", NULL },
        { "init", 0, 0, G_OPTION_ARG_FILENAME, &options->init,
          "take the initial weights from a safetensors file", "FILE" },
        { "dry-run", 0, 0, G_OPTION_ARG_NONE, &options->dry_run,
          "check the plan, lay out memory, say what is predicted, and stop", NULL },
        { "only-mpi", 0, 0, G_OPTION_ARG_NONE, &options->only_mpi,
          "exchange by MPI calls among ranks of one host too, not through shared memory", NULL },
        { "verify", 0, 0, G_OPTION_ARG_NONE, &options->verify,
          "run the same steps on one processor and compare", NULL },
        { "calibrate", 0, 0, G_OPTION_ARG_NONE, &options->calibrate,
          "measure this machine instead of training, and write it to -o", NULL },
        { "output", 'o', 0, G_OPTION_ARG_FILENAME, &options->output,
          "the machine file that --calibrate writes", "MACHINE" },
        { 0 },
    };
    const MtfUsage usage = { "PLAN", summary, 0, 1,
                             "trains the model of a plan, a rank a processor of its mesh" };
    g_auto(GStrv) copy = g_strdupv(argv);
    g_autofree char **arguments = g_memdup2(copy, sizeof *copy * ((gsize)argc + 1));
    char **rest = arguments;
    if (!mtf_command_line_read(&argc, &rest, entries, &usage, error))
        goto failed;
    options->plan = g_strdup(argc > 1 ? rest[1] : NULL);
    if (check(options, error))
        return true;
failed:
    mtf_run_options_clear(options);
    return false;
}

void mtf_run_options_clear(MtfRunOptions *options) {
    g_free(options->plan);
    g_free(options->data);
    g_free(options->metrics);
    g_free(options->init);
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
