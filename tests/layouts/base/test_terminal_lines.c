// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/terminal_lines.h"

#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_folded(const char *line, int width, const char *expected) {
    g_autoptr(GString) out = g_string_new(NULL);
    mtf_terminal_line_append(out, line, width);
    assert_string_equal(out->str, expected);
}

TEST(a_text_goes_on_below_itself) {
    expect_folded("next best      one two three four five six seven", 40,
                  "next best      one two three four five\n"
                  "               six seven\n");
    expect_folded("               one two three four five six seven", 40,
                  "               one two three four five\n"
                  "               six seven\n");
}

/* Twenty-five characters fit behind fifteen columns: bytes are not counted. */
TEST(a_line_that_fits_stays) {
    expect_folded("fits           1234567890123456789012345", 40,
                  "fits           1234567890123456789012345\n");
    expect_folded("fits           äöü4567890123456789 12345", 40,
                  "fits           äöü4567890123456789 12345\n");
    expect_folded("fits           1234567890123456789 123456", 40,
                  "fits           1234567890123456789\n               123456\n");
}

TEST(a_long_word_stays_whole) {
    expect_folded("layout         batch:rows;vocab:cols;heads:cols;d_ff:cols and more", 40,
                  "layout         batch:rows;vocab:cols;heads:cols;d_ff:cols\n"
                  "               and more\n");
}

/* A row of a table, its head, JSON, help, a sentence; and a terminal that is too narrow. */
TEST(tables_and_json_are_left_alone) {
    static const char *const lines[] = {
        "model      allreduce sum      all              520       14.4 M    28.06 MiB    55.24 MiB",
        "traffic    collective         axes           calls     elements      payload     on links",
        "{\"meshtf_plan\": 6, \"graph\": {\"meshtf_graph\": 1, \"name\": \"a name that is long\"}}",
        "  --devices=N                           Search all meshes of N processors, which is long",
        "memory limit          needs        step         gap  layout                   and more",
        "plan build/demo/plan.json: transformer-lm-demo, 3311872 parameters, mesh rows:2;cols:2",
        "",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autofree char *same = g_strconcat(lines[i], "\n", NULL);
        expect_folded(lines[i], 60, same);
    }
    expect_folded("next best      one two three four five six seven", 20,
                  "next best      one two three four five six seven\n");
}

/* The child prints to the terminal, of 40 columns, and the end of a run without a line's end arrives, too. */
static void print_to(const char *terminal) {
    int fd = open(terminal, O_RDWR);
    ioctl(fd, TIOCSWINSZ, &(struct winsize){ .ws_col = 40, .ws_row = 24 });
    dup2(fd, STDOUT_FILENO);
    mtf_terminal_lines_begin();
    printf("next best      one two three %s six seven\n", "four five");
    puts("a sentence that is longer than the terminal is wide stays");
    fputs("end", stdout);
    exit(0);
}

TEST(what_a_terminal_gets_is_folded) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        skip();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        print_to(ptsname(terminal));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    char text[4096];
    ssize_t n = read(terminal, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, "next best      one two three four five\r\n"
                              "               six seven\r\n"
                              "a sentence that is longer than the terminal is wide stays\r\nend");
    close(terminal);
}
