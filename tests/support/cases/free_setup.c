// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/free_setup.h"

#include "tests/support/cmocka.h"

void mtf_free_setup_init(MtfFreeSetup *setup, MtfGraph *graph, const char *mesh) {
    mtf_free_setup_init_on(setup, graph, mesh, "cpu-cluster", NULL);
}

void mtf_free_setup_init_on(MtfFreeSetup *setup, MtfGraph *graph, const char *mesh,
                            const char *machine, const char *software) {
    setup->graph = graph;
    assert_non_null(graph);
    assert_true(mtf_mesh_parse(mesh, 0, &setup->mesh, NULL));
    setup->machine = mtf_machine_load(machine, NULL);
    assert_non_null(setup->machine);
    assert_true(software == NULL || mtf_machine_set_software(setup->machine, software, NULL));
    assert_true(mtf_pricer_init(&setup->pricer, setup->machine, &setup->mesh, NULL));
    setup->problem = mtf_free_problem_new(graph, &setup->mesh, &setup->pricer, NULL, 0, NULL);
    assert_non_null(setup->problem);
}

void mtf_free_setup_clear(MtfFreeSetup *setup) {
    mtf_free_problem_free(setup->problem);
    mtf_machine_free(setup->machine);
    mtf_graph_free(setup->graph);
}
