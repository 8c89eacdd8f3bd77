// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/run_columns.h"

#include "analyzer/judge/run_words.h"

#include <math.h>
#include <string.h>

const char *const mtf_run_columns[] = { "id",
                                        "hardware",
                                        "devices",
                                        "layers",
                                        "d_model",
                                        "heads",
                                        "d_ff",
                                        "seq_len",
                                        "vocab",
                                        "global_batch",
                                        "tp",
                                        "pp",
                                        "dp",
                                        "sharding",
                                        "recompute",
                                        "precision",
                                        "software",
                                        "measured_quantity",
                                        "measured_value",
                                        NULL };

/* Hardware by the words it is known by; the first that fits. */
static const struct {
    const char *words, *machine;
} hardware_names[] = {
    { "500 w", "h100-500w" },
    { "2.4 tb/s", "h100-500w" },
    { "h100-96g", "h100-500w" },
    { "p4d", "p4d" },
    { "a100-40g", "a100-40g" },
    { "a100-sxm4-40g", "a100-40g" },
    { "a100", "a100" },
    { "ampere", "a100" },
    { "selene", "selene" },
    { "h200", "h200" },
    { "gb300", "gb300" },
    { "gb200", "gb200" },
    { "b300", "b300" },
    { "b200", "b200" },
    { "h800", "h800" },
    { "h100", "h100" },
    { "mi325x", "mi325x" },
    { "mi300x", "mi300x" },
    { "mi250x", "mi250x" },
    { "tpu-v2", "tpu-v2" },
    { "tpu-v3", "tpu-v3" },
    { "tpu-v4", "tpu-v4" },
    { "tpu-v5e", "tpu-v5e" },
    { "tpu-v5p", "tpu-v5p" },
    { "tpu-v6e", "tpu-v6e" },
    { "trillium", "tpu-v6e" },
    { "tpu-v7x", "tpu-v7x" },
    { "ironwood", "tpu-v7x" },
    { "tpu7x", "tpu-v7x" },
    { "tpu-v5-lite", "tpu-v5e" },
    { "v5litepod", "tpu-v5e" },
    { "v5e", "tpu-v5e" },
    { "v5p", "tpu-v5p" },
    { "v6e", "tpu-v6e" },
    { "p3.16xlarge", "p3.16xlarge" },
    { "p3.8xlarge", "p3.8xlarge" },
    { "summit", "summit" },
    { "v100", "v100" },
};

bool mtf_runs_name_machine(const char *machine) {
    bool known = false;
    for (gsize i = 0; i < G_N_ELEMENTS(hardware_names); i++)
        known |= strcmp(hardware_names[i].machine, machine) == 0;
    return known;
}

/* Everything that reading one row needs. */
typedef struct {
    const MtfRunTable *table;
    guint index;
    MtfRunRow *row;
    const char *notes, *software, *precision, *topology;
    GError **error;
} Reader;

static const char *cell(const Reader *reader, const char *column) {
    return mtf_run_table_cell(reader->table, reader->index, column);
}

static void give_up(Reader *reader, const char *reason) {
    if (reader->row->reason == NULL)
        reader->row->reason = g_strdup(reason);
}

static void assume(Reader *reader, const char *what) {
    GString *assumed = reader->row->assumed;
    g_string_append_printf(assumed, "%s%s", assumed->len > 0 ? ", " : "", what);
}

/* No size of a run is larger. */
#define LARGEST 1e9

/* A whole number, 0 where the cell is empty. */
static bool read_whole(Reader *reader, const char *column, int64_t *value) {
    double number;
    if (!mtf_run_table_number(reader->table, reader->index, column, 0, &number, reader->error))
        return false;
    if (number != floor(number) || number > LARGEST)
        return mtf_run_table_fail(reader->table, reader->index, column, reader->error,
                                  "\"%s\" is no whole number up to %g", cell(reader, column),
                                  LARGEST);
    *value = (int64_t)number;
    return true;
}

/* A whole number of a column; without one the run cannot be expressed. */
static bool read_needed(Reader *reader, const char *column, int64_t *value) {
    if (!read_whole(reader, column, value))
        return false;
    if (*value < 1) {
        g_autofree char *reason = g_strdup_printf("%s is not stated", column);
        give_up(reader, reason);
        *value = 1;
    }
    return true;
}

/* A whole number, or what is usual. */
static bool read_usual(Reader *reader, const char *column, int64_t usual, bool say,
                       int64_t *value) {
    if (!read_whole(reader, column, value))
        return false;
    if (*value < 1 && say) {
        g_autofree char *what = g_strdup_printf("%s %" G_GINT64_FORMAT, column, usual);
        assume(reader, what);
    }
    if (*value < 1)
        *value = usual;
    return true;
}

/* 1 or 0, no where the cell is empty. */
static bool read_flag(Reader *reader, const char *column, bool *flag) {
    int64_t value;
    if (!read_usual(reader, column, 0, false, &value))
        return false;
    *flag = value == 1;
    return value <= 1 || mtf_run_table_fail(reader->table, reader->index, column, reader->error,
                                            "\"%s\" is neither 0 nor 1", cell(reader, column));
}

/* The number of group `group` where the pattern first fits, or `otherwise`. */
static double find_number(const char *text, const char *pattern, int group, double otherwise) {
    g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_CASELESS, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (regex == NULL || !g_regex_match(regex, text, 0, &match))
        return otherwise;
    g_autofree char *word = g_match_info_fetch(match, group);
    return word != NULL && *word != '\0' ? g_ascii_strtod(word, NULL) : otherwise;
}

static bool has_word(const char *text, const char *word) {
    g_autofree char *lower = g_utf8_strdown(text, -1);
    return strstr(lower, word) != NULL;
}

/* ---- The model --------------------------------------------------------------------------------- */

static bool read_sizes(Reader *reader) {
    MtfModelSizes *model = &reader->row->run.model;
    if (!read_needed(reader, "layers", &model->layers) ||
        !read_needed(reader, "d_model", &model->width) ||
        !read_needed(reader, "heads", &model->heads) ||
        !read_needed(reader, "d_ff", &model->inner) ||
        !read_needed(reader, "seq_len", &model->length) ||
        !read_usual(reader, "kv_heads", model->heads, true, &model->kv_heads) ||
        !read_usual(reader, "d_head", MAX(model->width / model->heads, 1), true,
                    &model->head_width) ||
        !read_usual(reader, "vocab", mtf_usual_vocab(reader->row->model), true, &model->vocab) ||
        !read_flag(reader, "gated_ffn", &model->gated))
        return false;
    if (model->kv_heads > model->heads)
        give_up(reader, "there are more kv_heads than heads");
    return true;
}

/* Experts have no column: "8 experts top-2" in the notes, or 8x22B for a name. */
static void read_experts(Reader *reader) {
    MtfModelSizes *model = &reader->row->run.model;
    double experts = find_number(reader->notes, "([0-9]+) experts", 1, 0);
    if (experts <= 0)
        experts = find_number(reader->row->model, "([0-9]+)x[0-9]+", 1, 0);
    if (experts <= 0)
        experts = find_number(reader->row->id, "([0-9]+)x[0-9]+b", 1, 0);
    if (experts <= 0 && reader->row->run.ep > 1)
        give_up(reader, "the number of experts is not stated");
    model->experts = (int64_t)experts;
    double capacity = find_number(reader->notes, "capacity (factor )?([0-9]+([.][0-9]+)?)", 2, 0);
    model->drops = capacity > 0;
    model->capacity = model->drops ? capacity : 1;
    model->chosen = (int64_t)find_number(reader->notes, "top[- ]([0-9]+)", 1, 0);
    if (experts > 0 && model->chosen == 0) {
        model->chosen = 2;
        assume(reader, "top-2");
    }
    if (experts > 0 && model->chosen > model->experts)
        give_up(reader, "a token chooses more experts than there are");
    model->chosen += (int64_t)find_number(reader->notes, "([0-9]+) shared", 1, 0);
    model->dense_layers = (int64_t)find_number(reader->notes, "first ([0-9]+) layers dense", 1, 0);
}

static void read_windows(Reader *reader) {
    MtfModelSizes *model = &reader->row->run.model;
    double local = find_number(reader->notes, "([0-9]+) local", 1, 0);
    model->window = find_number(reader->notes, "window ([0-9]+)", 1, 0);
    if (model->window <= 0)
        return;
    model->window_share = local > 0                              ? local / (local + 1)
                          : has_word(reader->notes, "alternate") ? 0.5
                                                                 : 0;
}

/* ---- The layout -------------------------------------------------------------------------------- */

/* Chunks a device, or those that the notes name ("vp 7 in the ModelZoo config"). */
static bool read_chunks(Reader *reader) {
    MtfTrainingRun *run = &reader->row->run;
    int64_t noted = (int64_t)find_number(reader->notes, "; vp ([0-9]+)", 1, 1);
    return read_usual(reader, "vp", noted, run->pp > 1 && noted == 1, &run->vp);
}

static bool read_layout(Reader *reader) {
    MtfTrainingRun *run = &reader->row->run;
    return read_needed(reader, "devices", &run->devices) && read_needed(reader, "tp", &run->tp) &&
           read_needed(reader, "pp", &run->pp) && read_needed(reader, "dp", &run->dp) &&
           read_chunks(reader) && read_usual(reader, "cp", 1, false, &run->cp) &&
           read_usual(reader, "ep", 1, false, &run->ep);
}

static bool read_batch(Reader *reader) {
    MtfTrainingRun *run = &reader->row->run;
    int64_t batch, micro;
    if (!read_needed(reader, "global_batch", &batch) ||
        !read_usual(reader, "micro_batch", 0, false, &micro))
        return false;
    if (micro == 0) {
        micro = run->pp > 1 ? 1 : MAX(batch / run->dp, 1);
        micro = MIN(micro, 4);
        while (batch % (run->dp * micro) != 0 && micro > 1)
            micro--;
        g_autofree char *what = g_strdup_printf("micro_batch %" G_GINT64_FORMAT, micro);
        assume(reader, what);
    }
    run->batch = (double)batch;
    run->micro = (double)micro;
    return true;
}

static void give_up_words(Reader *reader, const char *column, const char *expected) {
    g_autofree char *reason =
        g_strdup_printf("%s \"%s\" is none of %s", column, cell(reader, column), expected);
    give_up(reader, reason);
}

static bool read_choices(Reader *reader) {
    MtfTrainingRun *run = &reader->row->run;
    if (!mtf_sharding_of_words(cell(reader, "sharding"), &run->sharding))
        give_up_words(reader, "sharding", "ddp, zero1, zero2 and zero3/fsdp");
    if (!mtf_redo_of_words(cell(reader, "recompute"), &run->redo))
        give_up_words(reader, "recompute", "none, selective and full");
    reader->row->redo_unsaid = *cell(reader, "recompute") == '\0';
    g_autofree char *reason = mtf_precision_reason(reader->precision);
    if (reason != NULL)
        give_up(reader, reason);
    if (!mtf_precision_is_known(reader->precision))
        assume(reader, "precision bf16");
    return read_flag(reader, "sequence_parallel", &run->sequence_parallel);
}

/* What words say of schedules, numbers and launches. */
static void read_words(Reader *reader) {
    MtfTrainingRun *run = &reader->row->run;
    if (has_word(reader->software, "zb-1p"))
        run->order = MTF_ORDER_ZERO_BUBBLE_1P;
    if (has_word(reader->software, "zb-2p") || has_word(reader->software, "dualpipe"))
        run->order = MTF_ORDER_ZERO_BUBBLE_2P;
    run->model.untied = has_word(reader->notes, "untied");
    run->blocking = has_word(reader->notes, "launch_blocking=1");
    run->narrow = has_word(reader->precision, "fp8") || has_word(reader->precision, "int8");
    if (has_word(reader->precision, "fp32 grad") || has_word(reader->precision, "fp32 reduce"))
        run->gradient_bytes = run->reduce_bytes = 4;
    if (has_word(reader->precision, "fp16 grad"))
        run->gradient_bytes = run->reduce_bytes = 2;
    if (has_word(reader->precision, "bf16 gradient reduce") ||
        has_word(reader->precision, "reduce in bf16"))
        run->gradient_bytes = run->reduce_bytes = 2;
    if (has_word(reader->precision, "unsharded")) /* beside the 16-bit gradients */
        run->gradient_bytes = 6;
    run->experts_beside = has_word(reader->software, "all-to-all overlap");
    run->token_once = run->experts_beside || has_word(reader->software, "deepep") ||
                      has_word(reader->software, "hybridep");
    /* Frameworks do not split experts that are narrower than the model. */
    run->whole_experts = run->ep > run->dp || run->model.inner < run->model.width ||
                         has_word(reader->software, "folding") ||
                         has_word(reader->software, "etp 1");
}

/* ---- The hardware ------------------------------------------------------------------------------ */

/* "4 x HDR 200 Gb/s IB per node", "400 Gb/s IB per GPU". */
static double node_bandwidth(const char *topology) {
    const char *pattern =
        "(?:([0-9]+) x )?(?:[A-Za-z-]+ )?([0-9.]+) Gb/s(?:[^;,]*?) per (node|gpu)";
    double adapters = find_number(topology, pattern, 1, 1);
    double gigabits = find_number(topology, pattern, 2, 0);
    bool each = has_word(topology, "per gpu");
    return adapters * gigabits / 8 * 1e9 * (each ? 8 : 1);
}

/* "h200", but not in "gh200"; blanks may stand for dashes ("TPU v6e"). */
static bool begins_word(const char *text, const char *word) {
    g_autofree char *lower = g_utf8_strdown(text, -1);
    g_autofree char *dashed = g_strdelimit(g_strdup(lower), " ", '-');
    const char *const both[] = { lower, dashed };
    for (int i = 0; i < 2; i++)
        for (const char *at = strstr(both[i], word); at != NULL; at = strstr(at + 1, word))
            if (at == both[i] || !g_ascii_isalnum(at[-1]))
                return true;
    return false;
}

/* The library's machine that a text names; NULL: none. */
static const char *machine_in(const char *text) {
    for (gsize i = 0; i < G_N_ELEMENTS(hardware_names); i++)
        if (begins_word(text, hardware_names[i].words))
            return hardware_names[i].machine;
    return NULL;
}

/* Which card it is may stand beside its network ("500 W"), which some are called after ("DGX A100"); other hardware there
 * is no card of that name. */
static void read_hardware(Reader *reader) {
    MtfRunRow *row = reader->row;
    g_autofree char *both = g_strdup_printf("%s; %s", row->hardware, reader->topology);
    bool other = *row->hardware != '\0' && machine_in(row->hardware) == NULL;
    row->named = other ? NULL : machine_in(both);
    row->machine = g_strdup(row->named);
    if (has_word(row->hardware, "pcie") || has_word(row->hardware, "h100 nvl"))
        give_up(reader, "no machine of the library has cards on PCIe");
    if (row->machine == NULL)
        give_up(reader, "no machine of the library is like this hardware");
    row->node_bandwidth = node_bandwidth(reader->topology);
    row->run.slices = 1;
    if (row->machine != NULL && g_str_has_prefix(row->machine, "tpu-"))
        row->run.slices = (int64_t)find_number(reader->topology, "^([0-9]+) x v[0-9]", 1, 1);
    row->run.slices = MAX(row->run.slices, 1);
}

/* ---- What was measured ------------------------------------------------------------------------- */

/* Of flop/s by the counter of the source the notes give "derived s/step"; else by the model's flops. */
static double seconds_of_flops(Reader *reader, double flops_per_second, double tokens) {
    const MtfModelSizes *model = &reader->row->run.model;
    double derived = find_number(reader->notes, "derived s/step ([0-9.]+)", 1, 0);
    if (derived > 0)
        return derived;
    double active = model->experts > 0 ? (double)model->chosen / (double)model->experts : 1;
    double parameters = (double)model->layers * (mtf_run_attention_parameters(model) +
                                                 active * mtf_run_inner_parameters(model)) +
                        mtf_run_embedding_parameters(model);
    double scores =
        12 * (double)(model->layers * model->heads * model->head_width) * (double)model->length;
    assume(reader, "flops of the model with attention in full");
    return tokens * (6 * parameters + scores) / flops_per_second;
}

/* A step's seconds: as measured, or derived from what is done in a second. */
static bool read_measured(Reader *reader) {
    MtfRunRow *row = reader->row;
    double value, unit = 1, devices = (double)row->run.devices;
    double tokens = row->run.batch * (double)row->run.model.length;
    MtfMeasured measured = MTF_MEASURED_STEP;
    if (!mtf_run_table_number(reader->table, reader->index, "measured_value", 0, &value,
                              reader->error) ||
        !mtf_run_table_number(reader->table, reader->index, "memory_GiB_per_device", 0,
                              &row->measured_memory, reader->error))
        return false;
    if (!mtf_measured_of_words(cell(reader, "measured_quantity"), &measured, &unit))
        give_up_words(reader, "measured_quantity",
                      "s_per_step, ms_per_step, tokens_per_s_per_device, tokens_per_s, "
                      "samples_per_s and tflops_per_device");
    else if (value <= 0)
        give_up(reader, "nothing was measured");
    else if (measured == MTF_MEASURED_STEP)
        row->measured = value * unit;
    else if (measured == MTF_MEASURED_DEVICE_FLOPS)
        row->measured = seconds_of_flops(reader, value * 1e12 * devices, tokens);
    else if (measured == MTF_MEASURED_EXAMPLES)
        row->measured = row->run.batch / value;
    else
        row->measured = tokens / value / (measured == MTF_MEASURED_TOKENS ? 1 : devices);
    return true;
}

/* What cannot be: parts with nothing in them. */
static void check_divisions(Reader *reader) {
    const MtfTrainingRun *run = &reader->row->run;
    if (run->model.experts > 0 && run->model.experts % run->ep != 0)
        give_up(reader, "experts are not divided evenly among ep ranks");
    if (run->model.length < run->cp)
        give_up(reader, "the sequence is shorter than its parts");
    if (run->pp > run->model.layers)
        give_up(reader, "there are fewer layers than stages (pp)");
    double devices = (double)(run->tp * run->cp) * (double)(run->pp * run->dp);
    if (devices <= (double)run->devices && run->micro * (double)run->dp > run->batch)
        give_up(reader, "global_batch is smaller than a micro_batch of each of dp ranks");
    else if (devices <= (double)run->devices && fmod(run->batch, run->micro * (double)run->dp) > 0)
        give_up(reader, "global_batch is no multiple of a micro_batch of each of dp ranks");
}

static bool read_row(Reader *reader) {
    if (!read_sizes(reader) || !read_layout(reader) || !read_batch(reader) || !read_choices(reader))
        return false;
    read_experts(reader);
    read_windows(reader);
    read_words(reader);
    read_hardware(reader);
    check_divisions(reader);
    return read_measured(reader);
}

MtfRunRow *mtf_run_row_read(const MtfRunTable *table, guint row, GError **error) {
    g_autoptr(MtfRunRow) read = g_new0(MtfRunRow, 1);
    Reader reader = { .table = table, .index = row, .row = read, .error = error };
    read->assumed = g_string_new(NULL);
    read->id = cell(&reader, "id");
    read->source = cell(&reader, "source");
    read->hardware = cell(&reader, "hardware");
    read->model = cell(&reader, "model");
    reader.notes = cell(&reader, "notes");
    reader.software = cell(&reader, "software");
    reader.precision = cell(&reader, "precision");
    reader.topology = cell(&reader, "device_topology");
    bool graded = g_str_has_prefix(reader.notes, "trust ") && reader.notes[6] != '\0';
    read->grade = graded ? reader.notes[6] : ' ';
    return read_row(&reader) ? g_steal_pointer(&read) : NULL;
}

void mtf_run_row_free(MtfRunRow *row) {
    if (row == NULL)
        return;
    g_free(row->machine);
    g_free(row->reason);
    if (row->assumed != NULL)
        g_string_free(row->assumed, TRUE);
    g_free(row);
}
