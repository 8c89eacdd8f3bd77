// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/algorithm_list.h"

#include "layouts/graph/random.h"
#include "layouts/program/collective_messages.h"

#include <inttypes.h>

void mtf_program_choose_algorithms(MtfProgram *program) {
    const MtfExecution *execution = &program->layout->execution;
    if (execution->algorithms == NULL || execution->n_algorithms != mtf_program_length(program))
        return;
    for (int i = 0; i < execution->n_algorithms; i++)
        if (mtf_instruction_takes_algorithm(program, i, execution->algorithms[i]))
            mtf_program_instruction(program, i)->algorithm = execution->algorithms[i];
}

static int random_algorithm(const MtfProgram *program, int index, uint64_t seed) {
    int applying[MTF_EXCHANGE_ALGORITHMS] = { 0 }, n = 0;
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++)
        if (mtf_instruction_takes_algorithm(program, index, (MtfExchangeAlgorithm)a))
            applying[n++] = a;
    MtfRandom random = mtf_random_stream(seed, "collectives", 0);
    return n > 0 ? applying[(int)(mtf_random_uniform(&random, index) * n)] : 0;
}

void mtf_layout_take_algorithm(const MtfGraph *graph, MtfLayout *layout, int algorithm,
                               uint64_t seed) {
    mtf_layout_set_algorithms(layout, NULL, 0);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int n = mtf_program_length(program);
    unsigned char *algorithms = g_new0(unsigned char, n);
    for (int i = 0; i < n; i++) {
        int wanted = algorithm < 0 ? random_algorithm(program, i, seed) : algorithm;
        if (mtf_instruction_takes_algorithm(program, i, (MtfExchangeAlgorithm)wanted))
            algorithms[i] = (unsigned char)wanted;
    }
    mtf_layout_set_algorithms(layout, algorithms, n);
}

cJSON *mtf_algorithms_to_json(const MtfLayout *layout) {
    cJSON *object = NULL;
    for (int a = MTF_EXCHANGE_DIRECT + 1; a < MTF_EXCHANGE_ALGORITHMS; a++) {
        cJSON *list = NULL;
        for (int i = 0; i < layout->execution.n_algorithms; i++)
            if (layout->execution.algorithms[i] == a) {
                list = list != NULL ? list : cJSON_CreateArray();
                cJSON_AddItemToArray(list, cJSON_CreateNumber(i));
            }
        if (list == NULL)
            continue;
        object = object != NULL ? object : cJSON_CreateObject();
        cJSON_AddItemToObject(object, mtf_exchange_algorithm_name((MtfExchangeAlgorithm)a), list);
    }
    return object;
}

static bool read_item(const MtfJson *item, const MtfProgram *program,
                      MtfExchangeAlgorithm algorithm, unsigned char *algorithms, GError **error) {
    int64_t index;
    if (!mtf_json_integer(item, 0, mtf_program_length(program) - 1, &index, error))
        return false;
    if (!mtf_instruction_takes_algorithm(program, (int)index, algorithm))
        return mtf_json_fail(item, error,
                             "instruction %" PRId64 " is no collective that goes by \"%s\"", index,
                             mtf_exchange_algorithm_name(algorithm));
    if (algorithms[index] != MTF_EXCHANGE_DIRECT)
        return mtf_json_fail(item, error, "instruction %" PRId64 " has an algorithm already",
                             index);
    algorithms[index] = (unsigned char)algorithm;
    return true;
}

/* One list: the instructions that go by `algorithm`. */
static bool read_list(const MtfJson *list, const MtfProgram *program,
                      MtfExchangeAlgorithm algorithm, unsigned char *algorithms, GError **error) {
    MtfJson item;
    if (!mtf_json_array(list, error))
        return false;
    for (bool more = mtf_json_first(list, &item); more; more = mtf_json_next(&item))
        if (!read_item(&item, program, algorithm, algorithms, error))
            return false;
    return true;
}

/* An object whose keys are names of algorithms. */
static bool check_names(const MtfJson *where, GError **error) {
    const char *names[MTF_EXCHANGE_ALGORITHMS + 1] = { 0 };
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++)
        names[a] = mtf_exchange_algorithm_name((MtfExchangeAlgorithm)a);
    return mtf_json_object(where, error) && mtf_json_keys(where, names, error);
}

bool mtf_algorithms_read(const MtfJson *where, const MtfGraph *graph, MtfLayout *layout,
                         GError **error) {
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int n = mtf_program_length(program);
    g_autofree unsigned char *algorithms = g_new0(unsigned char, n);
    if (!check_names(where, error))
        return false;
    for (int a = 0; a < MTF_EXCHANGE_ALGORITHMS; a++) {
        MtfJson list;
        if (mtf_json_find(where, mtf_exchange_algorithm_name((MtfExchangeAlgorithm)a), &list) &&
            !read_list(&list, program, (MtfExchangeAlgorithm)a, algorithms, error))
            return false;
    }
    mtf_layout_set_algorithms(layout, g_steal_pointer(&algorithms), n);
    return true;
}
