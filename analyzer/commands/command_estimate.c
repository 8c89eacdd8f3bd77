// SPDX-License-Identifier: GPL-3.0-or-later
/* meshtf-plan estimate: prices one layout, given by rules or in a file. */
#include "analyzer/commands/commands.h"
#include "analyzer/layout_search/settled_layout.h"
#include "analyzer/planner/plan_ending.h"
#include "cost/machine/mapping_json.h"
#include "cost/price/predict.h"
#include "cost/summary/step_summary.h"
#include "cost/tune/algorithm_choice.h"
#include "cost/tune/program_mapping.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/placement/rules.h"
#include "layouts/program/passes.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct {
    char *mesh, *layout, *machine, *software, *precision, *output, *batch_dim, *recompute, *offload,
        *dump_after, *collectives, *loss;
    char **dims, **pads;
    int microbatches, batch, length, key_parts, ring;
    gboolean compatible, in_order, even, json;
} Options;

/* Mappings tried for the layout's traffic. */
#define MOST_MAPPINGS 20000

/* What is estimated. */
typedef struct {
    const Options *options;
    const MtfMachine *machine;
    GPtrArray *inert; /* rules without effect */
    MtfPricer pricer;
    int64_t cost, in_order_cost; /* nanoseconds, as the mesh lies and with it laid in order */
} Estimate;

/* Rules end with the name of an axis, which has no dot. */
static bool is_file(const char *layout) {
    return g_str_has_suffix(layout, ".json");
}

/* A layout that nobody searched: its price is all there is to say. */
static cJSON *unsearched(const Estimate *e) {
    cJSON *search = cJSON_CreateObject();
    mtf_json_add_integer(search, "cost", e->cost);
    mtf_json_add_integer(search, "bound", 0);
    mtf_json_add_number(search, "gap", 1);
    cJSON_AddStringToObject(search, "method",
                            is_file(e->options->layout) ? "given layout" : "given rules");
    mtf_json_add_integer(search, "in_order_cost", e->in_order_cost);
    return search;
}

/* Lays the mesh as suits the layout's traffic, unless the user wants it in order. */
static void lay_mesh(Estimate *e, const MtfGraph *graph, const MtfLayout *layout) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    MtfMapping in_order = e->pricer.map.mapping;
    e->cost = e->in_order_cost = mtf_price_program(&e->pricer, program);
    if (e->options->in_order)
        return;
    mtf_program_map(&e->pricer, program, MOST_MAPPINGS);
    e->cost = mtf_price_program(&e->pricer, program);
    if (e->cost < e->in_order_cost)
        return;
    e->pricer.map.mapping = in_order;
    e->cost = e->in_order_cost;
}

static void print_for_people(const Estimate *e, const MtfPlan *plan, const char *notes) {
    const MtfMesh *laid = &plan->layout->mesh;
    g_autofree char *mesh = mtf_mesh_title(laid);
    g_autofree char *mapping = mtf_mapping_format(laid, &e->pricer.map.mapping);
    g_autofree char *tables = mtf_predicted_format(plan->predicted);
    g_autofree char *summary = mtf_summary_format(plan->predicted);
    mtf_planning_print_machine(plan->precision, e->machine, e->options->machine != NULL,
                               e->options->precision);
    fputs(summary, stdout);
    printf("mesh           %s\nlayout         %s\n", mesh, mtf_layout_title(plan->layout));
    if (e->cost < e->in_order_cost)
        printf("mapping        %s\n               in order it would cost %.2f times as much\n",
               mapping, (double)e->in_order_cost / (double)e->cost);
    for (guint i = 0; i < e->inert->len; i++)
        printf("no effect      %s\n", (const char *)g_ptr_array_index(e->inert, i));
    fputs(notes, stdout);
    fputs(tables, stdout);
}

/* Says on standard error, beside whatever is printed, that the plan needs more than a device has. */
static void warn_unfit(const Estimate *e, const MtfPlan *plan) {
    double needed = mtf_json_number_of(plan->predicted, "peak_memory_bytes", 0);
    int64_t room = mtf_planning_room(e->machine);
    if (needed <= (double)room)
        return;
    g_autofree char *needs = mtf_bytes_format(needed);
    g_autofree char *has = mtf_bytes_format((double)room);
    fprintf(stderr,
            "meshtf-plan estimate: this layout does not fit: it needs %s a device, and a device of "
            "%s has %s\n",
            needs, e->machine->name, has);
}

/* A plan on standard output is all that is printed there. */
static bool gives_plan_alone(const Options *options) {
    return g_strcmp0(options->output, "-") == 0;
}

static bool print(const Estimate *e, const MtfPlan *plan, const char *notes) {
    warn_unfit(e, plan);
    if (gives_plan_alone(e->options))
        return true;
    if (!e->options->json) {
        print_for_people(e, plan, notes);
        return true;
    }
    g_autofree char *text = mtf_json_print(plan->predicted);
    fputs(text, stdout);
    return true;
}

/* The layout of a file, which has its mesh. */
static MtfLayout *read_file(const Options *options, const MtfGraph *graph,
                            const MtfStepVariant *variant, GError **error) {
    const MtfKept kept = { variant->recompute, variant->recomputed_layers, variant->offload,
                           variant->offloaded_layers };
    MtfMesh mesh;
    g_autoptr(MtfLayout) layout = mtf_plan_layout_load(options->layout, graph, &kept, error);
    if (layout == NULL || options->mesh == NULL)
        return g_steal_pointer(&layout);
    if (!mtf_mesh_parse(options->mesh, 0, &mesh, error))
        return NULL;
    if (mtf_mesh_equal(&mesh, &layout->mesh))
        return g_steal_pointer(&layout);
    g_autofree char *own = mtf_mesh_format(&layout->mesh);
    mtf_input_error(error, "--mesh \"%s\": the layout in %s is of \"%s\"", options->mesh,
                    options->layout, own);
    return NULL;
}

static MtfLayout *read_layout(const Options *options, const MtfGraph *graph,
                              const MtfStepVariant *variant, GPtrArray *inert, GError **error) {
    MtfMesh mesh;
    if (is_file(options->layout))
        return read_file(options, graph, variant, error);
    if (!mtf_mesh_parse(options->mesh, 0, &mesh, error))
        return NULL;
    g_autoptr(MtfRules) rules =
        mtf_rules_parse(graph, &mesh, options->layout, options->compatible ? inert : NULL, error);
    return rules != NULL ? mtf_layout_from_rules(graph, &mesh, rules) : NULL;
}

static bool check_even(const Options *options, const MtfGraph *graph, const MtfLayout *layout,
                       GError **error) {
    int dim, tensor = options->even ? mtf_layout_find_uneven(graph, layout, &dim) : -1;
    return tensor < 0 ||
           mtf_input_error(error,
                           "--even: the layout splits \"%s\" of %" PRId64
                           " in tensor \"%s\" into parts of different sizes",
                           mtf_graph_dimension(graph, dim)->name, mtf_graph_size(graph, dim),
                           mtf_graph_tensor(graph, tensor)->name);
}

static bool estimate(const Options *options, const char *path, GError **error) {
    MtfPlanningGraph request = { .path = path,
                                 .dims = (const char *const *)options->dims,
                                 .precision = options->precision,
                                 .batch = options->batch,
                                 .length = options->length,
                                 .quiet = options->json,
                                 .loss = options->loss,
                                 .pads = (const char *const *)options->pads,
                                 .even = options->even };
    MtfStepVariant variant = { .microbatches = options->microbatches,
                               .batch_dim = options->batch_dim,
                               .precision = options->precision,
                               .key_parts = options->key_parts,
                               .ring = options->ring };
    if (!mtf_recompute_parse(options->recompute, &variant.recompute, &variant.recomputed_layers,
                             error) ||
        !mtf_offload_parse(options->offload, &variant.offload, &variant.offloaded_layers, error))
        return false;
    g_autoptr(MtfGraph) written = mtf_planning_graph_load(&request, error);
    g_autoptr(MtfMachine) machine =
        written != NULL
            ? mtf_planning_machine_for(written, options->machine, options->software, error)
            : NULL;
    if (machine == NULL || !mtf_planning_check_offload(machine, variant.offload, error))
        return false;
    variant.precision = mtf_planning_precision_for(machine, written, options->precision);
    variant.fuses = machine->software != NULL;
    variant.framework = mtf_software_framework(machine->software);
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(written, &variant, error);
    if (graph == NULL)
        return false;
    mtf_planning_warn_untrained(written);
    g_autoptr(GPtrArray) inert = g_ptr_array_new_with_free_func(g_free);
    Estimate e = { .options = options, .machine = machine, .inert = inert };
    g_autoptr(MtfLayout) layout = read_layout(options, graph, &variant, inert, error);
    if (layout == NULL || !check_even(options, graph, layout, error) ||
        !mtf_pricer_init(&e.pricer, machine, &layout->mesh, error))
        return false;
    lay_mesh(&e, graph, layout);
    MtfSettling how = { .memory_limit = mtf_planning_room(machine),
                        .collectives = options->collectives };
    g_autoptr(MtfProgram) program = mtf_layout_settle(graph, layout, &e.pricer, &how);
    MtfPlanEnding ending = { .written = written,
                             .variant = &variant,
                             .program = program,
                             .pricer = &e.pricer,
                             .notes = !options->json && !gives_plan_alone(options),
                             .file = options->output != NULL };
    g_autofree char *notes = NULL;
    g_autoptr(MtfPlan) plan = mtf_plan_end(&ending, g_steal_pointer(&graph),
                                           g_steal_pointer(&layout), unsearched(&e), &notes, error);
    return plan != NULL &&
           mtf_planning_dump(plan, options->dump_after, options->json || gives_plan_alone(options),
                             error) &&
           print(&e, plan, notes) &&
           (options->output == NULL || mtf_plan_save(plan, options->output, error));
}

static bool check_options(Options *options, GError **error) {
    if (!mtf_option_count("--batch", &options->batch, error) ||
        !mtf_option_count("--length", &options->length, error))
        return false;
    if (!mtf_algorithm_choice_check(options->collectives, error))
        return false;
    if (options->dump_after != NULL && mtf_pass_find(options->dump_after, error) < 0)
        return false;
    if (!mtf_option_between("--microbatches", options->microbatches, 1, INT64_MAX, error) ||
        !mtf_option_between("--key-parts", options->key_parts, 1, MTF_MAX_KEY_PARTS, error) ||
        !mtf_option_between("--ring", options->ring, 1, MTF_MAX_RING, error))
        return false;
    if (options->layout != NULL && is_file(options->layout))
        return true;
    if (options->mesh == NULL)
        return mtf_input_error(error, "--mesh is missing, as in --mesh 'rows:2;cols:2'");
    return options->layout != NULL ||
           mtf_input_error(error, "--layout is missing, as in --layout 'batch:rows;d_ff:cols' "
                                  "('' keeps everything replicated)");
}

#define TEXT(name, letter, field, help, what) \
    { name, letter, 0, G_OPTION_ARG_STRING, &o.field, help, what }

int mtf_command_estimate(int argc, char **argv) {
    Options o = {
        .batch = MTF_NO_COUNT, .length = MTF_NO_COUNT, .microbatches = 1, .key_parts = 1, .ring = 1
    };
    const GOptionEntry entries[] = {
        TEXT("mesh", 0, mesh, "The mesh of processors", "'rows:4;cols:2'"),
        TEXT("layout", 0, layout, "Rules, or a file with the layout of every tensor, as a plan is",
             "'batch:rows;d_ff:cols'|FILE.json"),
        TEXT("machine", 0, machine, "A machine of the library, or a file", "NAME|FILE"),
        MTF_SOFTWARE_OPTION(o.software),
        MTF_COLLECTIVES_OPTION(o.collectives),
        TEXT("precision", 0, precision, "f32, f64 or bf16 (the machine's own for graphs in f32)",
             "P"),
        { "microbatches", 0, 0, G_OPTION_ARG_INT, &o.microbatches,
          "Run the batch in M micro-batches (1)", "M" },
        TEXT("batch-dim", 0, batch_dim, "What counts examples (the inputs' first dimension)",
             "NAME"),
        TEXT("recompute", 0, recompute, "What the backward pass recomputes (none)",
             "none|cheap|layers|layers:K"),
        TEXT("offload", 0, offload, "What waits for the backward pass in the host's memory (none)",
             "none|layers|activations|layers:K|activations:K"),
        { "key-parts", 0, 0, G_OPTION_ARG_INT, &o.key_parts,
          "Parts of attention's keys and values, which DIMENSION/parts:axis splits (1)", "P" },
        { "ring", 0, 0, G_OPTION_ARG_INT, &o.ring,
          "Parts of attention that hand keys and values on round a ring, which DIMENSION/parts:axis and "
          "DIMENSION/turned:axis split (1)",
          "P" },
        { "dim", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.dims, "Set a dimension's size", "batch=512" },
        { "batch", 0, 0, G_OPTION_ARG_INT, &o.batch,
          "Examples in a batch of a published model (32)", "N" },
        { "length", 0, 0, G_OPTION_ARG_INT, &o.length,
          "Positions in an example of a published model (what it was made for, at most 2048)",
          "N" },
        TEXT("loss", 0, loss, "Train an ONNX file by this loss, or by its own",
             "cross-entropy:LABELS|output:NAME"),
        TEXT("output", 'o', output, "Write a plan with this layout", "PLAN"),
        { "mtf-compat", 0, 0, G_OPTION_ARG_NONE, &o.compatible,
          "Rules that name what is not there have no effect, as in Mesh-TensorFlow", NULL },
        { "in-order", 0, 0, G_OPTION_ARG_NONE, &o.in_order,
          "Lay the mesh on the machine in order, not as suits the traffic", NULL },
        TEXT("dump-after", 0, dump_after,
             "Print the program as it is after a pass, or the graph after execute", "PASS"),
        { "pad", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.pads, "Pad a dimension to a multiple",
          "vocab:128" },
        { "even", 0, 0, G_OPTION_ARG_NONE, &o.even,
          "Refuse a layout whose shards are not of equal size", NULL },
        { "json", 0, 0, G_OPTION_ARG_NONE, &o.json, "Print the prediction as JSON", NULL },
        G_OPTION_ENTRY_NULL,
    };
    GError *error = NULL;
    bool done = mtf_command_line_parse(&argc, &argv, entries, "GRAPH --mesh MESH --layout RULES",
                                       "Predicts time, memory and traffic of one training step "
                                       "under a layout.\n\n  meshtf-plan estimate g.json --mesh "
                                       "'rows:4;cols:2' --layout 'batch:rows;d_ff:cols'",
                                       1, 1, &error) &&
                check_options(&o, &error) && estimate(&o, argv[1], &error);
    mtf_command_line_clear(entries);
    return done ? 0 : mtf_command_line_fail("meshtf-plan estimate", error);
}
