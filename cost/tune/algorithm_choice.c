// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/algorithm_choice.h"

#include "cost/collectives/measured_collective.h"
#include "cost/price/exchange_price.h"
#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"
#include "layouts/program/algorithm_list.h"
#include "layouts/program/collective_messages.h"

#include <math.h>
#include <string.h>

/* "random" is "random:0". */
static bool parse_random(const char *wanted, guint64 *seed) {
    *seed = 0;
    if (!g_str_has_prefix(wanted, "random"))
        return false;
    const char *rest = wanted + strlen("random");
    return *rest == 0 ||
           (*rest == ':' && g_ascii_string_to_unsigned(rest + 1, 10, 0, G_MAXUINT64, seed, NULL));
}

bool mtf_algorithm_choice_check(const char *wanted, GError **error) {
    guint64 seed;
    if (wanted == NULL || strcmp(wanted, "auto") == 0 || parse_random(wanted, &seed) ||
        mtf_exchange_algorithm_find(wanted) >= 0)
        return true;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_ptr_array_add(names, (gpointer) "auto");
    g_ptr_array_add(names, (gpointer) "random");
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++)
        g_ptr_array_add(names, (gpointer)mtf_exchange_algorithm_name((MtfExchangeAlgorithm)a));
    g_autofree char *known = mtf_there_are(wanted, names);
    return mtf_input_error(error, "--collectives: no algorithm is called \"%s\"%s", wanted, known);
}

/* A measured algorithm must win by this over going directly: calls of one kind differ by as much from
 * one calibration to the next. */
#define MEASURED_GAIN 0.9

/* What counts for the choice: measurements are compared with measurements, else what the program will be priced
 * at, if there is a formula. */
static bool seconds_for_choice(const MtfPricer *pricer, const MtfProgram *program, int index,
                               const MtfGroupCollective *exchange, double *seconds) {
    MtfExchangeAlgorithm algorithm = mtf_program_instruction(program, index)->algorithm;
    if (mtf_measures_collective(pricer->machine, exchange->kind)) {
        bool measured =
            mtf_exchange_measured(pricer->machine, &pricer->map, algorithm, exchange, seconds);
        if (measured && algorithm == MTF_EXCHANGE_DIRECT)
            *seconds *= MEASURED_GAIN;
        return measured;
    }
    if (algorithm != MTF_EXCHANGE_DIRECT &&
        !mtf_exchange_seconds(&pricer->map, algorithm, exchange, seconds))
        return false;
    *seconds = (double)mtf_price_device(pricer, program, index) / 1e9;
    return true;
}

/* Gives a collective the cheapest that has a price; direct where none has. What goes directly is priced as the best
 * there is, so that an algorithm that is as good is named. */
static void take_cheapest(const MtfPricer *pricer, MtfProgram *program, int index) {
    MtfInstruction *instruction = mtf_program_instruction(program, index);
    MtfCollectiveKind kind;
    double least = INFINITY, seconds = 0;
    int best = MTF_EXCHANGE_DIRECT;
    if (instruction->kind != MTF_INSTRUCTION_RESHARD ||
        !mtf_reshard_collective_kind(instruction->reshard.kind, &kind))
        return;
    MtfGroupCollective exchange = { .kind = kind,
                                    .axes = instruction->reshard.axes,
                                    .bytes = mtf_instruction_message_bytes(instruction) };
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++) {
        instruction->algorithm = (MtfExchangeAlgorithm)a;
        if (mtf_instruction_takes_algorithm(program, index, (MtfExchangeAlgorithm)a) &&
            seconds_for_choice(pricer, program, index, &exchange, &seconds) &&
            (seconds < least || (seconds == least && best == MTF_EXCHANGE_DIRECT))) {
            least = seconds;
            best = a;
        }
    }
    instruction->algorithm = (MtfExchangeAlgorithm)best;
}

static void choose_cheapest(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int n = mtf_program_length(program);
    unsigned char *algorithms = g_new0(unsigned char, n);
    for (int i = 0; i < n; i++) {
        take_cheapest(pricer, program, i);
        algorithms[i] = (unsigned char)mtf_program_instruction(program, i)->algorithm;
    }
    mtf_layout_set_algorithms(layout, algorithms, n);
}

void mtf_layout_choose_algorithms(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                                  const char *wanted) {
    guint64 seed;
    if (wanted == NULL)
        return;
    if (strcmp(wanted, "auto") != 0)
        mtf_layout_take_algorithm(
            graph, layout, parse_random(wanted, &seed) ? -1 : mtf_exchange_algorithm_find(wanted),
            parse_random(wanted, &seed) ? seed : 0);
    else
        choose_cheapest(graph, layout, pricer);
}
