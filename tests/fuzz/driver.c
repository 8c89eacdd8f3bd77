// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_INPUTS 20000
#define MAX_BYTES 65536
#define MAX_MUTATIONS 6
#define SECONDS_PER_INPUT 20

void mtf_fuzz_judge(bool has_result, const GError *error) {
    g_assert(has_result == (error == NULL));
    if (error == NULL)
        return;
    g_assert(error->domain == MTF_ERROR && error->code == MTF_ERROR_INPUT);
    g_assert(error->message[0] != '\0');
    for (const char *c = error->message; *c != '\0'; c++)
        g_assert(!g_ascii_iscntrl(*c));
}

MtfJsonDocument *mtf_fuzz_document(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    MtfJsonDocument *document = mtf_json_document_parse("fuzz", (const char *)data, size, &error);
    mtf_fuzz_judge(document != NULL, error);
    return document;
}

/* The draws of one input: the n-th is a hash of the input's number and n. */
typedef struct {
    guint64 input;
    guint64 n;
} Draws;

/* The finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
 */
static guint64 mix(guint64 x) {
    x = (x ^ (x >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static gsize draw_below(Draws *draws, gsize bound) {
    guint64 step = G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    return (gsize)(mix(mix(draws->input * step) + ++draws->n * step) % bound);
}

/* Replaces `count` bytes at `at` (within the input) by others, unless the input would grow too
 * long. */
static void replace(GByteArray *input, gsize at, gsize count, const void *bytes, gsize length) {
    if (input->len - count + length > MAX_BYTES)
        return;
    g_autofree guint8 *tail = g_memdup2(input->data + at + count, input->len - at - count);
    gsize tail_length = input->len - at - count;
    g_byte_array_set_size(input, (guint)at);
    g_byte_array_append(input, bytes, (guint)length);
    if (tail_length > 0)
        g_byte_array_append(input, tail, (guint)tail_length);
}

static gsize draw_place(Draws *draws, const GByteArray *input) {
    return draw_below(draws, input->len);
}

static gsize draw_length(Draws *draws, const GByteArray *input, gsize at) {
    gsize most = (gsize)1 << draw_below(draws, 10);
    return 1 + draw_below(draws, MIN(input->len - at, most));
}

/* What may be wrong in a text: brackets, odd numbers, odd names. */
static const char *const tokens[] = {
    "\"",  "\\",       "{",       "}",       "[",       "]",    ":",
    ",",   ";",        " ",       ".",       "\n",      "null", "true",
    "[]",  "{}",       "\"\"",    "\\u0000", "\\ud800", "\xff", "\xf0\x9f\x98\x80",
    "NaN", "[[[[[[[[", "{\"a\":", "/",       "%s%n",
};
static const char *const numbers[] = {
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "-0",
    "0.5",
    "1e308",
    "1e999",
    "-1e999",
    "1e-400",
    "007",
    "1.",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "1000000",
    "64",
    "65",
    "1e18",
    "3037000500",
};

typedef struct {
    GPtrArray *seeds;   /* of GBytes */
    GPtrArray *strings; /* of char *: each quoted string of the seeds, with its quotes */
} Corpus;

typedef void (*Mutation)(const Corpus *corpus, Draws *draws, GByteArray *input);

static void flip_bit(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    input->data[draw_place(draws, input)] ^= (guint8)(1u << draw_below(draws, 8));
}

static void cut_out(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    gsize at = draw_place(draws, input);
    replace(input, at, draw_length(draws, input, at), NULL, 0);
}

static void cut_off(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    g_byte_array_set_size(input, (guint)draw_place(draws, input));
}

static void repeat(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    gsize from = draw_place(draws, input);
    gsize length = draw_length(draws, input, from);
    g_autofree guint8 *piece = g_memdup2(input->data + from, length);
    replace(input, draw_place(draws, input), 0, piece, length);
}

static void insert_token(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    const char *token = tokens[draw_below(draws, G_N_ELEMENTS(tokens))];
    replace(input, draw_place(draws, input), 0, token, strlen(token));
}

static bool is_of_number(char c) {
    return g_ascii_isdigit(c) || (c != '\0' && strchr("+-.eE", c) != NULL);
}

static void change_number(const Corpus *corpus, Draws *draws, GByteArray *input) {
    (void)corpus;
    gsize at = draw_place(draws, input);
    while (at < input->len && !g_ascii_isdigit(input->data[at]))
        at++;
    gsize end = at;
    while (end < input->len && is_of_number((char)input->data[end]))
        end++;
    const char *number = numbers[draw_below(draws, G_N_ELEMENTS(numbers))];
    if (end > at)
        replace(input, at, end - at, number, strlen(number));
}

/* The end of the quoted string that starts at `at`, past its closing quote; 0 when it has none. */
static gsize string_end(const guint8 *data, gsize length, gsize at) {
    for (gsize end = at + 1; end < length; end++)
        if (data[end] == '"' && data[end - 1] != '\\')
            return end + 1;
    return 0;
}

static void change_string(const Corpus *corpus, Draws *draws, GByteArray *input) {
    gsize at = draw_place(draws, input);
    while (at < input->len && input->data[at] != '"')
        at++;
    gsize end = at < input->len ? string_end(input->data, input->len, at) : 0;
    if (end == 0 || corpus->strings->len == 0)
        return;
    const char *string = corpus->strings->pdata[draw_below(draws, corpus->strings->len)];
    replace(input, at, end - at, string, strlen(string));
}

/* The input up to a place, then another seed from a place on. */
static void splice(const Corpus *corpus, Draws *draws, GByteArray *input) {
    gsize length;
    GBytes *seed = corpus->seeds->pdata[draw_below(draws, corpus->seeds->len)];
    const guint8 *other = g_bytes_get_data(seed, &length);
    gsize at = draw_place(draws, input);
    gsize from = draw_below(draws, length + 1);
    replace(input, at, input->len - at, other + from, length - from);
}

static const Mutation mutations[] = {
    flip_bit,      cut_out,       cut_off,       repeat,        insert_token,  splice,
    change_number, change_number, change_number, change_string, change_string, change_string,
};

static GByteArray *make_input(const Corpus *corpus, gint64 number) {
    Draws draws = { .input = (guint64)number };
    bool seed = number < (gint64)corpus->seeds->len;
    gsize chosen = seed ? (gsize)number : draw_below(&draws, corpus->seeds->len);
    gsize length;
    const guint8 *data = g_bytes_get_data(corpus->seeds->pdata[chosen], &length);
    GByteArray *input = g_byte_array_new();
    g_byte_array_append(input, data, (guint)length);
    gsize most = 1 + draw_below(&draws, MAX_MUTATIONS);
    gsize count = seed ? 0 : 1 + draw_below(&draws, most);
    for (gsize i = 0; i < count && input->len > 0; i++)
        mutations[draw_below(&draws, G_N_ELEMENTS(mutations))](corpus, &draws, input);
    return input;
}

static void collect_strings(Corpus *corpus, const guint8 *data, gsize length) {
    gsize end;
    for (gsize at = 0; at < length; at = end) {
        end = data[at] == '"' ? string_end(data, length, at) : 0;
        if (end > 0)
            g_ptr_array_add(corpus->strings, g_strndup((const char *)data + at, end - at));
        else
            end = at + 1;
    }
}

static void add_seed(Corpus *corpus, const char *path) {
    char *text;
    gsize length;
    if (!g_file_get_contents(path, &text, &length, NULL) || length > MAX_BYTES)
        return;
    g_ptr_array_add(corpus->seeds, g_bytes_new_take(text, length));
    collect_strings(corpus, (const guint8 *)text, length);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted by name: the numbering of inputs must not depend on the file system. */
static void add_folder(Corpus *corpus, const char *folder) {
    GDir *dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name = NULL; dir != NULL && (name = g_dir_read_name(dir)) != NULL;)
        g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    if (dir != NULL)
        g_dir_close(dir);
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++)
        add_seed(corpus, names->pdata[i]);
}

static void free_seed(void *seed) {
    g_bytes_unref(seed);
}

static Corpus corpus_load(void) {
    Corpus corpus = { .seeds = g_ptr_array_new_with_free_func(free_seed),
                      .strings = g_ptr_array_new_with_free_func(g_free) };
    for (const char *const *folder = mtf_fuzz_corpus; *folder != NULL; folder++)
        add_folder(&corpus, *folder);
    return corpus;
}

static void corpus_clear(Corpus *corpus) {
    g_ptr_array_unref(corpus->seeds);
    g_ptr_array_unref(corpus->strings);
}

/* The target gets a block of exactly the input's size: a sanitizer sees one byte too far. */
static bool try_bytes(const guint8 *data, gsize size) {
    guint8 *exact = malloc(size);
    g_assert(exact != NULL || size == 0);
    if (size > 0)
        memcpy(exact, data, size);
    alarm(SECONDS_PER_INPUT);
    bool accepted = LLVMFuzzerTestOneInput(exact, size) == 0;
    alarm(0);
    free(exact);
    return accepted;
}

/* What the child tells its parent while it runs. */
typedef struct {
    gint64 input; /* the one being tried */
    gint64 accepted;
} Progress;

static void try_inputs(const Corpus *corpus, gint64 count, volatile Progress *progress) {
    for (gint64 i = 0; i < count; i++) {
        progress->input = i;
        GByteArray *input = make_input(corpus, i);
        progress->accepted += try_bytes(input->data, input->len);
        g_byte_array_unref(input);
    }
    progress->input = count;
}

/* Saves the input that ended the child beside the program and says how to repeat it. A leak shows
 * only after the last input, and the number is then their count. */
static void report(const char *program, const Corpus *corpus, gint64 number, int status) {
    if (WIFSIGNALED(status))
        printf("# input %" G_GINT64_FORMAT " ended by signal %d (%s)\n", number, WTERMSIG(status),
               g_strsignal(WTERMSIG(status)));
    else
        printf("# input %" G_GINT64_FORMAT " ended with exit status %d\n", number,
               WEXITSTATUS(status));
    g_autofree char *path = g_strdup_printf("%s-input-%" G_GINT64_FORMAT, program, number);
    g_autoptr(GByteArray) input = make_input(corpus, number);
    if (g_file_set_contents(path, (const char *)input->data, (gssize)input->len, NULL))
        printf("# repeat with: %s %s\n", program, path);
}

static volatile Progress *share_progress(void) {
    void *page =
        mmap(NULL, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert(page != MAP_FAILED);
    return page;
}

/* Runs all inputs in a child, which a finding may end however it likes. */
static int run_inputs(const char *program, gint64 count) {
    Corpus corpus = corpus_load();
    g_assert(corpus.seeds->len > 0);
    volatile Progress *progress = share_progress();
    pid_t child = fork();
    if (child == 0) {
        try_inputs(&corpus, count, progress);
        corpus_clear(&corpus);
        exit(0);
    }
    int status = 0;
    g_assert(child > 0 && waitpid(child, &status, 0) == child);
    g_autofree char *name = g_path_get_basename(program);
    printf("%s 1 - %s survives %" G_GINT64_FORMAT " inputs\n", status == 0 ? "ok" : "not ok", name,
           count);
    printf("# %u seeds; %" G_GINT64_FORMAT " inputs were accepted\n", corpus.seeds->len,
           progress->accepted);
    if (status != 0)
        report(program, &corpus, progress->input, status);
    corpus_clear(&corpus);
    return status != 0;
}

static int run_file(const char *path) {
    char *text;
    gsize length;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, &length, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return 2;
    }
    try_bytes((const guint8 *)text, length);
    g_free(text);
    printf("ok 1 - %s\n", path);
    return 0;
}

/* fuzz_FORMAT [COUNT | FILE]: tries COUNT inputs (20,000 by default), or one file. */
int main(int argc, char **argv) {
    if (argc < 2)
        return run_inputs(argv[0], DEFAULT_INPUTS);
    char *end;
    gint64 count = g_ascii_strtoll(argv[1], &end, 10);
    return *end == '\0' ? run_inputs(argv[0], count) : run_file(argv[1]);
}
