// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan transfer: a tensor goes from a placement on one mesh to a placement on another, which host
 * sends which box when, how long that takes and what other ways would take. */
#include "analyzer/commands/commands.h"
#include "analyzer/transfers/transfer_plan.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/dtype.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LANE_WIDTH 64
#define BOXES_DRAWN 24
#define HOSTS_DRAWN 64

/* The options as they were typed. */
typedef struct {
    char *tensor, *from, *to, *machine, *dtype;
    gint64 chunks, first;
    gboolean json;
} Options;

typedef struct {
    const Options *options;
    MtfTransferShape shape;
    MtfTransferEnd from, to;
    int64_t element_bytes;
    MtfTransferPlan *plan;
} Answer;

/* Bytes of an element; 0 of no type. */
static int64_t bytes_of_type(const char *name) {
    static const struct {
        const char *name;
        int64_t bytes;
    } others[] = { { "fp32", 4 }, { "fp64", 8 }, { "fp16", 2 },
                   { "f16", 2 },  { "int8", 1 }, { "fp8", 1 } };
    MtfDtype dtype;
    if (mtf_dtype_from_name(name, &dtype))
        return mtf_dtype_bytes(dtype);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].bytes;
    return 0;
}

static bool read_dtype(const char *text, int64_t *bytes, GError **error) {
    *bytes = bytes_of_type(text);
    if (*bytes > 0)
        return true;
    return mtf_input_error(
        error, "--dtype \"%s\" is not one of f32, f64, bf16, f16, i32, int64, bool, int8, fp8",
        text);
}

static bool check_given(const char *name, const char *text, GError **error) {
    return text != NULL || mtf_input_error(error, "--%s is missing", name);
}

/* The target begins on the host after the source's last unless --to-device says where. */
static bool place_ends(Answer *answer, const MtfMachine *machine, GError **error) {
    gint64 first = answer->options->first;
    int source = mtf_mesh_size(&answer->from.mesh);
    MtfTransferHosts hosts;
    if (first != MTF_NOT_GIVEN && (first < 0 || first > 1 << 16))
        return mtf_input_error(error, "--to-device %" PRId64 " is not a device number",
                               (int64_t)first);
    if (!mtf_transfer_hosts(machine, 1, &hosts, error))
        return false;
    answer->to.first_device = first != MTF_NOT_GIVEN
                                  ? (int)first
                                  : (source + hosts.devices - 1) / hosts.devices * hosts.devices;
    return true;
}

/* All but the machine. */
static bool read_transfer(Answer *answer, GError **error) {
    const Options *o = answer->options;
    if (!check_given("tensor", o->tensor, error) || !check_given("from", o->from, error) ||
        !check_given("to", o->to, error) || !check_given("machine", o->machine, error))
        return false;
    return (o->chunks == MTF_NOT_GIVEN ||
            mtf_option_between("--chunks", o->chunks, 1, 1 << 20, error)) &&
           read_dtype(o->dtype != NULL ? o->dtype : "f32", &answer->element_bytes, error) &&
           mtf_transfer_shape_parse(o->tensor, &answer->shape, error) &&
           mtf_transfer_end_parse("--from", o->from, &answer->shape, &answer->from, error) &&
           mtf_transfer_end_parse("--to", o->to, &answer->shape, &answer->to, error);
}

static bool plan(Answer *answer, GError **error) {
    const Options *o = answer->options;
    if (!read_transfer(answer, error))
        return false;
    g_autoptr(MtfMachine) machine = mtf_machine_load(o->machine, error);
    if (machine == NULL || !place_ends(answer, machine, error))
        return false;
    int chunks = o->chunks == MTF_NOT_GIVEN ? 0 : (int)o->chunks;
    answer->plan = mtf_transfer_plan_new(&answer->shape, answer->element_bytes, &answer->from,
                                         &answer->to, machine, chunks, error);
    return answer->plan != NULL;
}

static double tensor_bytes(const Answer *answer) {
    double bytes = (double)answer->element_bytes;
    for (int d = 0; d < answer->shape.dimensions; d++)
        bytes *= (double)answer->shape.size[d];
    return bytes;
}

static void add_numbers(cJSON *object, const char *key, const GArray *numbers) {
    cJSON *list = cJSON_AddArrayToObject(object, key);
    for (guint i = 0; i < numbers->len; i++)
        cJSON_AddItemToArray(list, mtf_json_new_integer(g_array_index(numbers, int, i)));
}

/* The box of a move, or the first of those it joins. */
static char *move_box(const Answer *answer, const MtfTransferMove *move) {
    const MtfTransferBox *box =
        g_ptr_array_index(answer->plan->boxes, g_array_index(move->boxes, int, 0));
    g_autofree char *text = mtf_box_format(&answer->shape, &box->box);
    if (move->boxes->len == 1)
        return g_steal_pointer(&text);
    return g_strdup_printf("%s and %u more", text, move->boxes->len - 1);
}

static void add_moves(const Answer *answer, cJSON *root) {
    const MtfTransferPlan *p = answer->plan;
    const MtfTransferOrder *order = p->way[p->best].order;
    cJSON *list = cJSON_AddArrayToObject(root, "moves");
    for (guint i = 0; i < p->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(p->moves, i);
        cJSON *item = cJSON_CreateObject();
        g_autofree char *box = move_box(answer, move);
        cJSON_AddStringToObject(item, "box", box);
        mtf_json_add_integer(item, "bytes", move->bytes);
        mtf_json_add_integer(item, "sender_host", order->sender[i]);
        add_numbers(item, "receiver_hosts", move->receivers);
        mtf_json_add_number(item, "begin", order->begin[i]);
        mtf_json_add_number(item, "seconds",
                            mtf_transfer_move_seconds(p->best, move, &p->hosts, p->chunks));
        cJSON_AddItemToArray(list, item);
    }
}

static void add_alternatives(const MtfTransferPlan *p, cJSON *root) {
    cJSON *list = cJSON_AddArrayToObject(root, "alternatives");
    for (int a = 0; a < MTF_TRANSFER_ALGORITHMS; a++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "algorithm",
                                mtf_transfer_algorithm_name((MtfTransferAlgorithm)a));
        mtf_json_add_number(item, "seconds", p->way[a].order->makespan);
        mtf_json_add_number(item, "busiest_host_bytes", p->way[a].busiest_host_bytes);
        cJSON_AddItemToArray(list, item);
    }
}

static void print_json(const Answer *answer) {
    const MtfTransferPlan *p = answer->plan;
    const MtfTransferWay *best = &p->way[p->best];
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_number(root, "bytes", tensor_bytes(answer));
    mtf_json_add_number(root, "bytes_across", p->bytes_across);
    mtf_json_add_number(root, "busiest_host_bytes", best->busiest_host_bytes);
    mtf_json_add_number(root, "lower_bound_bytes", p->lower_bound_bytes);
    mtf_json_add_number(root, "makespan_bytes", p->makespan_bytes);
    mtf_json_add_number(root, "seconds", best->order->makespan);
    mtf_json_add_number(root, "lower_bound_seconds",
                        p->lower_bound_bytes / p->hosts.bytes_per_second);
    cJSON_AddStringToObject(root, "algorithm", mtf_transfer_algorithm_name(p->best));
    mtf_json_add_integer(root, "chunks", p->chunks);
    cJSON_AddBoolToObject(root, "optimal", best->order->proven);
    add_alternatives(p, root);
    add_moves(answer, root);
    mtf_json_say(root);
}

static char letter_of(guint move) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    return letters[move % (sizeof letters - 1)];
}

/* One host's lane of what it sends, or receives, over time; nothing where it does neither. */
static void draw_lane(const MtfTransferPlan *p, int host, bool sends) {
    const MtfTransferOrder *order = p->way[p->best].order;
    g_autofree char *lane = g_strnfill(LANE_WIDTH, '.');
    bool busy = false;
    for (guint i = 0; i < p->moves->len; i++) {
        const MtfTransferMove *move = g_ptr_array_index(p->moves, i);
        bool here = sends && order->sender[i] == host && move->receivers->len > 0;
        for (guint r = 0; r < move->receivers->len && !sends; r++)
            here = here || g_array_index(move->receivers, int, r) == host;
        double seconds = mtf_transfer_move_seconds(p->best, move, &p->hosts, p->chunks);
        double scale = LANE_WIDTH / order->makespan;
        int begin = (int)(order->begin[i] * scale + 1e-9);
        int end = (int)((order->begin[i] + seconds) * scale + 1e-9);
        for (int column = begin; here && column < MIN(MAX(end, begin + 1), LANE_WIDTH); column++)
            lane[column] = letter_of(i);
        busy = busy || here;
    }
    if (busy)
        printf("  host %3d %s |%s|\n", host, sends ? "sends   " : "receives", lane);
}

static void print_moves(const Answer *answer) {
    const MtfTransferPlan *p = answer->plan;
    for (guint i = 0; i < MIN(p->moves->len, BOXES_DRAWN); i++) {
        const MtfTransferMove *move = g_ptr_array_index(p->moves, i);
        g_autofree char *box = move_box(answer, move);
        g_autofree char *bytes = mtf_bytes_format((double)move->bytes);
        printf("  %c %s, %s: host %d", letter_of(i), box, bytes, p->way[p->best].order->sender[i]);
        for (guint r = 0; r < move->receivers->len; r++)
            printf("%s %d", r > 0 ? "," : " to", g_array_index(move->receivers, int, r));
        puts(move->receivers->len == 0 ? " has it already" : "");
    }
    if (p->moves->len > BOXES_DRAWN)
        printf("  … %u more\n", p->moves->len - BOXES_DRAWN);
}

static void print_alternatives(const MtfTransferPlan *p) {
    for (int a = 0; a < MTF_TRANSFER_ALGORITHMS; a++) {
        g_autofree char *time = mtf_seconds_format(p->way[a].order->makespan);
        g_autofree char *bytes = mtf_bytes_format(p->way[a].busiest_host_bytes);
        printf("  %-18s %11s, busiest host %s\n",
               mtf_transfer_algorithm_name((MtfTransferAlgorithm)a), time, bytes);
    }
    double bound = p->lower_bound_bytes / p->hosts.bytes_per_second;
    g_autofree char *time = mtf_seconds_format(bound);
    g_autofree char *bytes = mtf_bytes_format(p->lower_bound_bytes);
    printf("  %-18s %11s, busiest host %s\n", "lower bound", time, bytes);
}

static void print_drawing(const Answer *answer) {
    const MtfTransferPlan *p = answer->plan;
    const MtfTransferOrder *order = p->way[p->best].order;
    g_autofree char *bytes = mtf_bytes_format(tensor_bytes(answer));
    g_autofree char *across = mtf_bytes_format(p->bytes_across);
    g_autofree char *time = mtf_seconds_format(order->makespan);
    printf("%s of %s from %s to %s on %s: %s across hosts in %s by %s%s\n", answer->options->tensor,
           bytes, answer->options->from, answer->options->to, answer->options->machine, across,
           time, mtf_transfer_algorithm_name(p->best),
           order->proven ? ", no order ends earlier" : "");
    for (int sends = 1; sends >= 0 && order->makespan > 0; sends--) {
        for (int host = 0; host < MIN(p->host_count, HOSTS_DRAWN); host++)
            draw_lane(p, host, sends == 1);
        if (p->host_count > HOSTS_DRAWN)
            printf("  … %d hosts more\n", p->host_count - HOSTS_DRAWN);
    }
    print_moves(answer);
    print_alternatives(p);
}

static bool run(const Options *options, GError **error) {
    Answer answer = { .options = options };
    if (!plan(&answer, error))
        return false;
    (options->json ? print_json : print_drawing)(&answer);
    mtf_transfer_plan_free(answer.plan);
    return true;
}

#define TEXT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_STRING, &o.field, help, what }
#define COUNT(name, field, help, what) \
    { name, 0, 0, G_OPTION_ARG_INT64, &o.field, help, what }

int mtf_command_transfer(int argc, char **argv) {
    Options o = { .first = MTF_NOT_GIVEN, .chunks = MTF_NOT_GIVEN };
    const GOptionEntry entries[] = {
        TEXT("tensor", tensor, "Its sizes", "1024x1024x512"),
        TEXT("from", from, "Source mesh, and for each dimension R or S and its mesh axes",
             "2x4:S0RR"),
        TEXT("to", to, "Target likewise", "2x4:RS01R"),
        TEXT("machine", machine, "With hosts (its innermost switches)", "NAME|FILE"),
        TEXT("dtype", dtype, "Of its elements (f32)", "TYPE"),
        COUNT("to-device", first, "First device of the target (that of the next free host)", "N"),
        COUNT("chunks", chunks, "Parts of a broadcast (the best)", "K"),
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(
                    &argc, &argv, entries,
                    "--tensor 1024x1024x512 --from 2x4:S0RR --to 2x4:RS0R --machine M",
                    "Plans the transfer of a tensor between two meshes: every box that a receiver "
                    "lacks crosses the slow links once.",
                    0, 0, &error) &&
                run(&o, &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan transfer", error);
}
