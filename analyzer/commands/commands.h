// SPDX-License-Identifier: GPL-3.0-or-later
/* The commands of meshtf-plan. Each lives in a file of its own, command_NAME.c, takes its own
 * argument vector (argv[0] is the command's name) and returns the program's exit status. */
#ifndef MTF_COMMANDS_H
#define MTF_COMMANDS_H

typedef int (*MtfCommand)(int argc, char **argv);

/* One command each. */
int mtf_command_explain(int argc, char **argv);
int mtf_command_solve(int argc, char **argv);
int mtf_command_verify(int argc, char **argv);
int mtf_command_collective(int argc, char **argv);
int mtf_command_schedule(int argc, char **argv);
int mtf_command_transfer(int argc, char **argv);
int mtf_command_machines(int argc, char **argv);
int mtf_command_graphs(int argc, char **argv);
int mtf_command_model(int argc, char **argv);
int mtf_command_check(int argc, char **argv);
int mtf_command_import(int argc, char **argv);
int mtf_command_search(int argc, char **argv);
int mtf_command_estimate(int argc, char **argv);
int mtf_command_report(int argc, char **argv);
int mtf_command_export(int argc, char **argv);
int mtf_command_compare(int argc, char **argv);
int mtf_command_stages(int argc, char **argv);
int mtf_command_simulate(int argc, char **argv);

#endif
