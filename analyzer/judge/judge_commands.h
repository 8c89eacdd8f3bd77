// SPDX-License-Identifier: GPL-3.0-or-later
/* The commands of meshtf-plan that compare predictions with measured runs; as those of
 * analyzer/commands/commands.h each takes its own argument vector and returns the exit status. */
#ifndef MTF_JUDGE_COMMANDS_H
#define MTF_JUDGE_COMMANDS_H

/* One command each. */
int mtf_command_judge(int argc, char **argv);
int mtf_command_fit(int argc, char **argv);

#endif
