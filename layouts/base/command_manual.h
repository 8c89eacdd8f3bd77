// SPDX-License-Identifier: GPL-3.0-or-later
/* Manual pages and completion for shells, written from the very tables of options that parse them,
 * so that they cannot tell of others:
 *
 *     meshtf-plan --manual                > meshtf-plan.1
 *     meshtf-plan --completion=bash       > completions/meshtf-plan
 *     meshtf-plan --completion=zsh        > site-functions/_meshtf-plan
 *
 * A program of one command prints all of it where it reads its command line; one of several opens
 * the page, lets each command describe itself in place of running, and closes it. */
#ifndef MTF_COMMAND_MANUAL_H
#define MTF_COMMAND_MANUAL_H

#include "layouts/base/command_line.h"

typedef enum { MTF_MANUAL_NONE, MTF_MANUAL_ROFF, MTF_MANUAL_BASH, MTF_MANUAL_ZSH } MtfManualForm;

/* The form that an argument asks for. */
MtfManualForm mtf_manual_form(const char *argument);

/* A program and what it is for, "lays out networks". */
typedef struct {
    const char *name, *purpose;
    const char *const *commands; /* names, summaries, NULL; or NULL for a program of one */
} MtfManualProgram;

/* Opens the page. Until it is closed, mtf_command_line_read describes commands instead of parsing,
 * and fails without an error. */
void mtf_manual_open(MtfManualForm form, const MtfManualProgram *program);
void mtf_manual_close(void);

/* The form of the page that is open. */
MtfManualForm mtf_manual_is_open(void);

/* Describes one command, called `name` ("" in a program of one). */
void mtf_manual_describe(const char *name, const GOptionEntry *entries, const MtfUsage *usage);

#endif
