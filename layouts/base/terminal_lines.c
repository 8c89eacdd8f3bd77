// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/terminal_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT 15 /* the column in which texts begin behind their words */
#define NARROWEST 40
#define BUFFER 65536

static int width;

/* "word           text", or a line that goes on below one: spaces from the end of the word (which may be
 * two) to the text, and none behind. */
static bool says_something(const char *line) {
    if (strlen(line) <= TEXT || line[TEXT] == ' ' || line[TEXT - 1] != ' ')
        return false;
    if (line[0] != ' ' && !g_ascii_islower(line[0]))
        return false;
    gsize word = strcspn(line, " ");
    while (word < TEXT && line[word] == ' ' && line[word + 1] != ' ')
        word += 1 + strcspn(line + word + 1, " ");
    return word >= TEXT || strspn(line + word, " ") + word == TEXT;
}

/* Where a text is cut so that `room` characters stay: behind the last space among them, else behind the first
 * of all. */
static const char *cut_of(const char *text, int room) {
    const char *cut = NULL;
    for (const char *c = text; *c != '\0'; c = g_utf8_next_char(c), room--) {
        if (room < 0 && cut != NULL)
            break;
        if (*c == ' ')
            cut = c;
    }
    return room >= 0 || cut == NULL ? text + strlen(text) : cut;
}

void mtf_terminal_line_append(GString *out, const char *line, int columns) {
    const char *text = line + TEXT;
    if (columns < NARROWEST || !says_something(line) || !g_utf8_validate(line, -1, NULL)) {
        g_string_append_printf(out, "%s\n", line);
        return;
    }
    g_string_append_len(out, line, TEXT);
    for (;;) {
        const char *cut = cut_of(text, columns - TEXT);
        g_string_append_len(out, text, cut - text);
        g_string_append_c(out, '\n');
        if (*cut == '\0')
            return;
        text = cut + 1;
        g_string_append_printf(out, "%*s", TEXT, "");
    }
}

/* All of it, or false. */
static bool write_all(const char *text, gsize length) {
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (gsize)n;
    }
    return true;
}

/* What the C library hands over are whole lines, for the stream is one of lines; what has no end is let
 * through. */
static ssize_t take(void *unused, const char *text, size_t length) {
    (void)unused;
    g_autoptr(GString) out = g_string_new(NULL);
    const char *rest = text, *end = text + length, *stop;
    while ((stop = memchr(rest, '\n', (gsize)(end - rest))) != NULL) {
        g_autofree char *line = g_strndup(rest, (gsize)(stop - rest));
        mtf_terminal_line_append(out, line, width);
        rest = stop + 1;
    }
    g_string_append_len(out, rest, end - rest);
    return write_all(out->str, out->len) ? (ssize_t)length : 0;
}

void mtf_terminal_lines_begin(void) {
    struct winsize size = { 0 };
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
        size.ws_col < NARROWEST)
        return;
    FILE *lines = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take });
    if (lines == NULL || setvbuf(lines, NULL, _IOLBF, BUFFER) != 0)
        return;
    width = size.ws_col;
    stdout = lines; /* a variable, says the GNU C library's manual */
}
