// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/command_manual.h"

#include <stdio.h>
#include <string.h>

static MtfManualForm open_form = MTF_MANUAL_NONE;
static const MtfManualProgram *open_program;

MtfManualForm mtf_manual_form(const char *argument) {
    static const struct {
        const char *argument;
        MtfManualForm form;
    } forms[] = {
        { "--manual", MTF_MANUAL_ROFF },
        { "--completion=bash", MTF_MANUAL_BASH },
        { "--completion=zsh", MTF_MANUAL_ZSH },
    };
    for (gsize i = 0; argument != NULL && i < G_N_ELEMENTS(forms); i++)
        if (strcmp(argument, forms[i].argument) == 0)
            return forms[i].form;
    return MTF_MANUAL_NONE;
}

MtfManualForm mtf_manual_is_open(void) {
    return open_form;
}

static bool takes_value(const GOptionEntry *entry) {
    return entry->arg != G_OPTION_ARG_NONE;
}

static bool is_shown(const GOptionEntry *entry) {
    return (entry->flags & G_OPTION_FLAG_HIDDEN) == 0;
}

static const char *value_name(const GOptionEntry *entry) {
    return entry->arg_description != NULL ? entry->arg_description : "VALUE";
}

/* Values that are words to choose from: "rule|free", not "NAME|FILE". */
static bool is_choice(const GOptionEntry *entry) {
    const char *words = takes_value(entry) ? value_name(entry) : "";
    if (strchr(words, '|') == NULL)
        return false;
    for (const char *c = words; *c != '\0'; c++)
        if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && strchr("|-", *c) == NULL)
            return false;
    return true;
}

static bool is_machine(const GOptionEntry *entry) {
    return strcmp(entry->long_name, "machine") == 0;
}

/* ---- The manual page ----------------------------------------------------------------------- */

/* One line of text, with what roff would take for its own escaped. */
static void print_roff(const char *text, gsize length) {
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", stdout);
    for (gsize i = 0; i < length; i++) {
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(text[i]);
    }
}

static void print_roff_text(const char *text) {
    print_roff(text, strlen(text));
}

/* Paragraphs; lines that are indented stay as they are. */
static void print_roff_paragraphs(const char *text) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool plain = false, between = false;
    for (int i = 0; lines[i] != NULL; i++) {
        const char *line = lines[i];
        bool indented = g_str_has_prefix(line, "  ");
        if (*line == '\0') {
            between = i > 0;
            continue;
        }
        if (plain && !indented)
            puts(".fi");
        if (between)
            puts(".PP");
        if (indented && !plain)
            puts(".nf");
        plain = indented;
        between = false;
        print_roff_text(line);
        putchar('\n');
    }
    if (plain)
        puts(".fi");
}

static void print_roff_option(const GOptionEntry *entry) {
    puts(".TP");
    if (entry->short_name != 0)
        printf("\\fB\\-%c\\fR, ", entry->short_name);
    fputs("\\fB\\-\\-", stdout);
    print_roff_text(entry->long_name);
    fputs("\\fR", stdout);
    if (takes_value(entry)) {
        fputs("=\\fI", stdout);
        print_roff_text(value_name(entry));
        fputs("\\fR", stdout);
    }
    putchar('\n');
    print_roff_text(entry->description != NULL ? entry->description : "");
    putchar('\n');
}

static void open_roff(const MtfManualProgram *program) {
    g_autofree char *title = g_ascii_strup(program->name, -1);
    printf(".TH %s 1 " MTF_DATE " \"meshtf-plan " MTF_VERSION "\" \"User Commands\"\n.SH NAME\n",
           title);
    print_roff_text(program->name);
    fputs(" \\- ", stdout);
    print_roff_text(program->purpose);
    putchar('\n');
    if (program->commands == NULL)
        return;
    puts(".SH SYNOPSIS");
    printf(".B %s\n.I COMMAND\n[\\fIARGUMENT\\fR ...]\n.SH COMMANDS\n", program->name);
}

static void describe_roff(const char *name, const GOptionEntry *entries, const MtfUsage *usage) {
    fputs(*name != '\0' ? ".SS \"" : ".SH SYNOPSIS\n.B ", stdout);
    print_roff_text(*name != '\0' ? name : open_program->name);
    fputs(*name != '\0' ? " [OPTION ...] " : "\n[\\fIOPTION\\fR ...] ", stdout);
    print_roff_text(usage->arguments);
    puts(*name != '\0' ? "\"" : "\n.SH DESCRIPTION");
    print_roff_paragraphs(usage->summary);
    if (*name == '\0')
        puts(".SH OPTIONS");
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++)
        if (is_shown(entry))
            print_roff_option(entry);
}

static void close_roff(void) {
    static const char *const statuses[][2] = {
        { "0", "Done." },
        { "1", "Failed: a file cannot be written, a library reports an error." },
        { "2", "Bad input; one sentence says what, where, and what would be right." },
        { "3", "No layout fits." },
        { "75", "meshtf\\-run was asked to stop, and has written a checkpoint." },
    };
    static const char *const programs[] = { "meshtf-plan", "meshtf-report", "meshtf-run" };
    puts(".SH EXIT STATUS");
    for (gsize i = 0; i < G_N_ELEMENTS(statuses); i++)
        printf(".TP\n%s\n%s\n", statuses[i][0], statuses[i][1]);
    puts(".SH SEE ALSO");
    const char *separator = "";
    for (gsize i = 0; i < G_N_ELEMENTS(programs); i++) {
        if (strcmp(programs[i], open_program->name) == 0)
            continue;
        fputs(separator, stdout);
        fputs(".BR ", stdout);
        print_roff_text(programs[i]);
        fputs(" (1)", stdout);
        separator = ",\n";
    }
    putchar('\n');
}

/* ---- Completion in bash -------------------------------------------------------------------- */

/* A name that shells allow for a function. */
static char *function_name(const char *program) {
    return g_strdelimit(g_strconcat("_", program, NULL), "-", '_');
}

/* The first word is a command. */
static void complete_command_bash(const char *const *commands) {
    puts("    if [[ $COMP_CWORD == 1 ]]; then");
    fputs("        mapfile -t COMPREPLY < <(compgen -W '", stdout);
    for (int i = 0; commands[i] != NULL; i += 2)
        printf("%s ", commands[i]);
    puts("--help --version' -- \"$word\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in");
}

static void open_bash(const MtfManualProgram *program) {
    g_autofree char *function = function_name(program->name);
    printf("# Completion of %s for bash, written by %s --completion=bash.\n"
           "%s() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= "
           "options=\n"
           "    if [[ $word == = ]]; then word=; fi\n"
           "    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n",
           program->name, program->name, function);
    if (program->commands == NULL)
        puts("    case only in");
    else
        complete_command_bash(program->commands);
}

static void describe_bash(const char *name, const GOptionEntry *entries) {
    printf("    %s)\n        options='", *name != '\0' ? name : "only");
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++)
        if (is_shown(entry))
            printf("--%s%s ", entry->long_name, takes_value(entry) ? "=" : "");
    puts("--help'\n        case $before in");
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
        g_autofree char *words = g_strdelimit(g_strdup(value_name(entry)), "|", ' ');
        if (is_machine(entry))
            printf("        --machine) words=$(meshtf-plan machines 2>/dev/null | "
                   "awk 'NR > 1 { print $1 }') ;;\n");
        else if (is_choice(entry))
            printf("        --%s) words='%s' ;;\n", entry->long_name, words);
    }
    puts("        esac ;;");
}

static void close_bash(void) {
    g_autofree char *function = function_name(open_program->name);
    printf("    esac\n"
           "    if [[ $word == -* ]]; then words=$options; fi\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
           "    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace "
           "2>/dev/null; fi\n"
           "}\n"
           "complete -o default -F %s %s\n",
           function, open_program->name);
}

/* ---- Completion in zsh --------------------------------------------------------------------- */

/* Text within single quotes, with what _arguments would take for its own escaped. */
static void print_zsh(const char *text) {
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *c) != NULL)
            printf("\\%c", *c);
        else
            putchar(*c);
    }
}

/* The first word is a command. */
static void complete_command_zsh(const char *const *commands) {
    puts("    if (( CURRENT == 2 )); then\n        local -a commands\n        commands=(");
    for (int i = 0; commands[i] != NULL; i += 2) {
        printf("            '%s:", commands[i]);
        print_zsh(commands[i + 1]);
        puts("'");
    }
    puts("        )\n        _describe command commands\n        return\n    fi\n"
         "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
         "    case $command in");
}

static void open_zsh(const MtfManualProgram *program) {
    g_autofree char *function = function_name(program->name);
    printf("#compdef %s\n# Completion of %s for zsh, written by %s --completion=zsh.\n"
           "%s() {\n",
           program->name, program->name, program->name, function);
    if (program->commands == NULL)
        puts("    case only in");
    else
        complete_command_zsh(program->commands);
}

static void print_zsh_values(const GOptionEntry *entry) {
    g_autofree char *words = g_strdelimit(g_strdup(value_name(entry)), "|", ' ');
    if (!takes_value(entry))
        return;
    putchar(':');
    print_zsh(value_name(entry));
    if (is_machine(entry))
        fputs(":($(meshtf-plan machines 2>/dev/null | awk '\\''NR > 1 { print $1 }'\\''))", stdout);
    else if (is_choice(entry))
        printf(":(%s)", words);
    else
        fputs(":_files", stdout);
}

static void describe_zsh(const char *name, const GOptionEntry *entries) {
    printf("    %s)\n        _arguments \\\n", *name != '\0' ? name : "only");
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
        if (!is_shown(entry))
            continue;
        bool repeats =
            entry->arg == G_OPTION_ARG_STRING_ARRAY || entry->arg == G_OPTION_ARG_FILENAME_ARRAY;
        printf("            '%s--%s%s[", repeats ? "*" : "", entry->long_name,
               takes_value(entry) ? "=" : "");
        print_zsh(entry->description != NULL ? entry->description : "");
        putchar(']');
        print_zsh_values(entry);
        puts("' \\");
    }
    puts("            '--help[Show help]' \\\n            '*:file:_files' ;;");
}

static void close_zsh(void) {
    g_autofree char *function = function_name(open_program->name);
    printf("    esac\n}\n%s \"$@\"\n", function);
}

/* ---- Entry --------------------------------------------------------------------------------- */

void mtf_manual_open(MtfManualForm form, const MtfManualProgram *program) {
    open_form = form;
    open_program = program;
    if (form == MTF_MANUAL_ROFF)
        open_roff(program);
    else if (form == MTF_MANUAL_BASH)
        open_bash(program);
    else
        open_zsh(program);
}

void mtf_manual_describe(const char *name, const GOptionEntry *entries, const MtfUsage *usage) {
    if (open_form == MTF_MANUAL_ROFF)
        describe_roff(name, entries, usage);
    else if (open_form == MTF_MANUAL_BASH)
        describe_bash(name, entries);
    else
        describe_zsh(name, entries);
}

void mtf_manual_close(void) {
    if (open_form == MTF_MANUAL_ROFF)
        close_roff();
    else if (open_form == MTF_MANUAL_BASH)
        close_bash();
    else
        close_zsh();
    open_form = MTF_MANUAL_NONE;
}
