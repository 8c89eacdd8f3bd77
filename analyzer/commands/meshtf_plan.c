// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan: finds the word after the program's name in a table and runs that command. */
#include "analyzer/commands/commands.h"
#include "analyzer/judge/judge_commands.h"
#include "layouts/base/command_manual.h"
#include "layouts/base/nearest_name.h"
#include "layouts/base/output_guard.h"
#include "layouts/base/terminal_lines.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *summary;
    MtfCommand run;
} commands[] = {
    { "search", "find the best layout of a graph and prove it", mtf_command_search },
    { "estimate", "predict a training step under one layout", mtf_command_estimate },
    { "compare", "set plans side by side", mtf_command_compare },
    { "report", "write a page and drawings of a plan", mtf_command_report },
    { "export", "write a plan in the words of another tool", mtf_command_export },
    { "collective", "price one collective on a torus or a switch", mtf_command_collective },
    { "transfer", "price and draw a tensor's way from one mesh to another", mtf_command_transfer },
    { "schedule", "simulate a pipeline schedule", mtf_command_schedule },
    { "explain", "why an operation of a plan runs as it does", mtf_command_explain },
    { "solve", "solve a layout problem in the IOPDDL JSON format", mtf_command_solve },
    { "verify", "check what proves the answer to a layout problem", mtf_command_verify },
    { "stages", "divide a profiled network into stages of a pipeline", mtf_command_stages },
    { "simulate", "simulate collectives link by link against their formulas",
      mtf_command_simulate },
    { "machines", "list the machines of the library", mtf_command_machines },
    { "graphs", "list the graphs of the library", mtf_command_graphs },
    { "model", "write the graph of a known family of models", mtf_command_model },
    { "judge", "predict measured training runs and compare", mtf_command_judge },
    { "fit", "fit a machine to measured runs and sweeps", mtf_command_fit },
    { "import", "write the graph of a published model", mtf_command_import },
    { "check", "say what a file is and whether it is sound", mtf_command_check },
    { "help", "show this text", NULL },
};

static void print_help(void) {
    puts("Usage: meshtf-plan COMMAND [ARGUMENT…]\n\n"
         "Finds how every tensor of a training step should be split over a mesh of processors.\n\n"
         "Commands (each takes --help):");
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
}

static int fail_unknown(const char *name) {
    const char *names[G_N_ELEMENTS(commands) + 1] = { NULL };
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        names[i] = commands[i].name;
    g_autofree char *meant = mtf_did_you_mean(name, names);
    fprintf(stderr, "meshtf-plan: \"%s\" is not a command%s; the commands are:", name, meant);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        fprintf(stderr, " %s", commands[i].name);
    fputc('\n', stderr);
    return 2;
}

static int run(gsize i, int argc, char **argv) {
    g_autofree char *program = g_strdup_printf("meshtf-plan %s", commands[i].name);
    g_set_prgname(program);
    return commands[i].run(argc, argv);
}

/* Every command describes itself in place of running. */
static void print_manual(MtfManualForm form) {
    const char *names[2 * G_N_ELEMENTS(commands) + 1] = { NULL };
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        names[2 * i] = commands[i].name;
        names[2 * i + 1] = commands[i].summary;
    }
    const MtfManualProgram program = {
        "meshtf-plan", "finds how tensors should be split over a mesh of processors", names
    };
    mtf_manual_open(form, &program);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        if (commands[i].run != NULL)
            run(i, 1, (char *[]){ (char *)commands[i].name, NULL });
    mtf_manual_close();
}

/* The command of that name; -1 where there is none. */
static int find_command(const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return (int)i;
    return -1;
}

/* `help COMMAND`: what the command says of itself. */
static int help_on(char *name) {
    int i = find_command(strcmp(name, "--help") == 0 ? "help" : name);
    if (i < 0)
        return fail_unknown(name);
    if (commands[i].run != NULL)
        return run((gsize)i, 2, (char *[]){ name, (char[]){ "--help" }, NULL });
    print_help();
    return 0;
}

/* Arrays of large graphs and programs grow and go many times a search. What is freed stays with the
 * process: pages that come from the system anew each time cost more than what is written to them. */
static void keep_freed_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int main(int argc, char **argv) {
    keep_freed_memory();
    g_set_prgname("meshtf-plan");
    mtf_terminal_lines_begin();
    mtf_output_guard_begin();
    if (argc < 2) {
        fputs("meshtf-plan: a command is missing (see meshtf-plan --help)\n", stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        puts("meshtf-plan " MTF_VERSION);
        return 0;
    }
    if (strcmp(name, "help") == 0 && argc > 2)
        return help_on(argv[2]);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help();
        return 0;
    }
    if (mtf_manual_form(name) != MTF_MANUAL_NONE) {
        print_manual(mtf_manual_form(name));
        return 0;
    }
    int i = find_command(name);
    return i >= 0 ? run((gsize)i, argc - 1, argv + 1) : fail_unknown(name);
}
