// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/operation_profile.h"

#include "analyzer/rules/operation_alone.h"
#include "layouts/graph/loops.h"
#include "layouts/program/program.h"

struct MtfOperationProfiles {
    const MtfGraph *graph;
    const MtfPricer *pricer;
    const MtfPin *pins;
    int n_pins;
    const int *updated_variable;
    const MtfMesh *mesh;
    bool by_parts; /* strategies by parts alone, whose costs are those of kernels without margins */
    GHashTable *known; /* signature -> MtfOperationProfile */
};

static void port_init(MtfOperationPort *port, int n_strategies) {
    port->placements = g_array_new(FALSE, FALSE, sizeof(MtfPlacement));
    port->of = g_new(int, n_strategies);
}

static void port_clear(MtfOperationPort *port) {
    g_array_unref(port->placements);
    g_free(port->of);
}

int mtf_placements_find(const GArray *placements, const MtfPlacement *placement) {
    for (guint i = 0; i < placements->len; i++)
        if (mtf_placement_equal(&g_array_index(placements, MtfPlacement, i), placement))
            return (int)i;
    return -1;
}

int mtf_placements_add(GArray *placements, const MtfPlacement *placement) {
    int at = mtf_placements_find(placements, placement);
    if (at >= 0)
        return at;
    g_array_append_vals(placements, placement, 1);
    return (int)placements->len - 1;
}

static void profile_free(gpointer data) {
    MtfOperationProfile *profile = data;
    for (int k = 0; k < profile->n_inputs; k++)
        port_clear(&profile->inputs[k]);
    for (int k = 0; k < profile->n_outputs; k++) {
        port_clear(&profile->outputs[k]);
        g_free(profile->copies[k]);
    }
    g_free(profile->inputs);
    g_free(profile->costs);
    g_array_unref(profile->strategies);
    g_free(profile);
}

/* An operation as it is priced, alone. */
typedef struct {
    MtfOperationAlone alone;
    MtfIteration iteration;
    MtfLayout *layout;
    int *updated; /* as updated_variable, of its own tensors */
} Pricing;

static void pricing_init(Pricing *pricing, const MtfOperationProfiles *profiles, int operation) {
    mtf_operation_alone_init(&pricing->alone, profiles->graph, operation,
                             profiles->updated_variable);
    const MtfGraph *graph = pricing->alone.graph;
    mtf_operation_iteration(graph, 0, &pricing->iteration);
    pricing->layout = mtf_layout_new(graph, profiles->mesh);
    pricing->updated = g_new(int, graph->tensors->len);
    for (guint t = 0; t < graph->tensors->len; t++)
        pricing->updated[t] = -1;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        pricing->updated[update->value] = update->variable;
    }
}

static void pricing_clear(Pricing *pricing) {
    mtf_layout_free(pricing->layout);
    mtf_operation_alone_clear(&pricing->alone);
    g_free(pricing->updated);
}

/* Places the operation's inputs as the strategy wants them and its outputs as it leaves them. */
static void take_strategy(Pricing *pricing, MtfOperationProfile *profile, int s) {
    const MtfGraph *graph = pricing->alone.graph;
    const MtfOperation *op = mtf_graph_operation(graph, 0);
    const MtfStrategy *strategy = &g_array_index(profile->strategies, MtfStrategy, s);
    MtfLayout *layout = pricing->layout;
    layout->operations[0] = *strategy;
    for (int k = 0; k < op->n_inputs; k++) {
        MtfPlacement wanted = mtf_strategy_input(graph, 0, &pricing->iteration, strategy, k);
        profile->inputs[k].of[s] = mtf_placements_add(profile->inputs[k].placements, &wanted);
        layout->tensors[op->inputs[k]] = wanted;
    }
    for (int k = 0; k < op->n_outputs; k++) {
        MtfPlacement left = mtf_strategy_output(graph, 0, &pricing->iteration, strategy, k);
        profile->outputs[k].of[s] = mtf_placements_add(profile->outputs[k].placements, &left);
        layout->tensors[op->outputs[k]] = left;
        if (pricing->updated[op->outputs[k]] >= 0)
            layout->tensors[pricing->updated[op->outputs[k]]] = left;
    }
}

static void price_strategy(const MtfOperationProfiles *profiles, Pricing *pricing,
                           MtfOperationProfile *profile, int s) {
    const MtfOperation *op = mtf_graph_operation(pricing->alone.graph, 0);
    take_strategy(pricing, profile, s);
    g_autoptr(MtfProgram) program = mtf_lower_operation(pricing->alone.graph, pricing->layout, 0);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        int64_t price = mtf_price_instruction(profiles->pricer, program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL ||
            (!profiles->by_parts &&
             (instruction->inner || mtf_reshard_row(instruction->reshard.kind)->margins)))
            profile->costs[s] += mtf_program_times(program, i) * price;
        for (int k = 0; k < op->n_outputs; k++)
            if (instruction->kind == MTF_INSTRUCTION_RESHARD &&
                mtf_reshard_row(instruction->reshard.kind)->copies && !instruction->inner &&
                mtf_program_buffer(program, instruction->inputs[0])->tensor == op->outputs[k])
                profile->copies[k][s] = price;
    }
}

static MtfOperationProfile *profile_new(const MtfOperationProfiles *profiles, int operation) {
    const MtfOperation *op = mtf_graph_operation(profiles->graph, operation);
    MtfOperationProfile *profile = g_new0(MtfOperationProfile, 1);
    profile->strategies = profiles->by_parts
                              ? mtf_strategies_by_parts(profiles->graph, profiles->mesh, operation)
                              : mtf_strategies(profiles->graph, profiles->mesh, operation,
                                               profiles->pins, profiles->n_pins);
    int n = (int)profile->strategies->len;
    profile->n_inputs = op->n_inputs;
    profile->n_outputs = op->n_outputs;
    profile->inputs = g_new0(MtfOperationPort, op->n_inputs);
    profile->costs = g_new0(int64_t, n);
    for (int k = 0; k < op->n_inputs; k++)
        port_init(&profile->inputs[k], n);
    for (int k = 0; k < op->n_outputs; k++) {
        port_init(&profile->outputs[k], n);
        profile->copies[k] = g_new0(int64_t, n);
    }
    Pricing pricing;
    pricing_init(&pricing, profiles, operation);
    for (int s = 0; s < n; s++)
        price_strategy(profiles, &pricing, profile, s);
    pricing_clear(&pricing);
    return profile;
}

/* Everything a profile depends on: kind, attributes, operands, and which of them are the same
 * tensor. */
static char *signature(const MtfOperationProfiles *profiles, int operation) {
    const MtfOperation *op = mtf_graph_operation(profiles->graph, operation);
    GString *text = g_string_new(NULL);
    mtf_operation_append_facts(text, profiles->graph, operation);
    for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
        int tensor = k < op->n_inputs ? op->inputs[k] : op->outputs[k - op->n_inputs];
        const MtfTensor *t = mtf_graph_tensor(profiles->graph, tensor);
        int same = 0;
        while (same < op->n_inputs && op->inputs[same] != tensor)
            same++;
        bool anew = k < op->n_inputs && op->loop > 0 &&
                    mtf_operation_reads_anew(profiles->graph, op, tensor);
        const int facts[] = { (int)t->dtype, t->producer >= 0, same, anew, t->shape.rank };
        mtf_facts_append(text, facts, (int)G_N_ELEMENTS(facts));
        mtf_facts_append(text, t->shape.dims, t->shape.rank);
        for (int j = 0; k >= op->n_inputs && j < op->n_inputs; j++)
            if (op->inputs[j] == profiles->updated_variable[tensor])
                g_string_append_printf(text, " updates %d", j);
    }
    return g_string_free(text, FALSE);
}

MtfOperationProfiles *mtf_operation_profiles_new(const MtfGraph *graph, const MtfMesh *mesh,
                                                 const MtfPricer *pricer,
                                                 const int *updated_variable, const MtfPin *pins,
                                                 int n_pins) {
    MtfOperationProfiles *profiles = g_new(MtfOperationProfiles, 1);
    *profiles = (MtfOperationProfiles){
        .graph = graph,
        .pricer = pricer,
        .pins = pins,
        .n_pins = n_pins,
        .updated_variable = updated_variable,
        .mesh = mesh,
        .known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, profile_free),
    };
    return profiles;
}

void mtf_operation_profiles_free(MtfOperationProfiles *profiles) {
    if (profiles == NULL)
        return;
    g_hash_table_unref(profiles->known);
    g_free(profiles);
}

const MtfOperationProfile *mtf_operation_profile(MtfOperationProfiles *profiles, int operation) {
    g_autofree char *key = signature(profiles, operation);
    MtfOperationProfile *profile = g_hash_table_lookup(profiles->known, key);
    if (profile == NULL) {
        profile = profile_new(profiles, operation);
        g_hash_table_insert(profiles->known, g_steal_pointer(&key), profile);
    }
    return profile;
}

static int64_t least_cost(const MtfOperationProfile *profile) {
    int64_t least = profile->costs[0];
    for (guint s = 1; s < profile->strategies->len; s++)
        least = MIN(least, profile->costs[s]);
    return least;
}

int64_t mtf_operations_least(const MtfGraph *graph, const MtfMesh *mesh, const MtfPricer *pricer) {
    g_autofree int *updated = mtf_graph_next_values(graph);
    g_autoptr(MtfOperationProfiles) profiles =
        mtf_operation_profiles_new(graph, mesh, pricer, updated, NULL, 0);
    profiles->by_parts = true;
    int64_t sum = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        sum += least_cost(mtf_operation_profile(profiles, i));
    return sum;
}
