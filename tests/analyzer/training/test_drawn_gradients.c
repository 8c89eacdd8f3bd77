// SPDX-License-Identifier: GPL-3.0-or-later
/* Gradients of drawn networks, composites, loops and experts included, against central differences of the reference
 * interpreter, which evaluates the graph as it is written. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "tests/support/cases/gradient_check.h"
#include "tests/support/drawn/random_graph.h"
#include "tests/support/draws.h"

#include <string.h>

static void gradients_of_a_network_are_its_slopes(guint32 seed) {
    g_autoptr(MtfGraph) graph = mtf_random_graph(&(MtfRandomGraph){ .seed = seed,
                                                                    .dimensions = 4,
                                                                    .operations = 12,
                                                                    .largest_size = 4,
                                                                    .dtype = MTF_F64,
                                                                    .more = true,
                                                                    .layers = true,
                                                                    .composites = true,
                                                                    .smooth = true });
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, &error);
    if (training != NULL)
        mtf_test_check_directions(graph, training, 1e-6);
    else if (strstr(error->message, "no variable leads to the loss") == NULL)
        fail_msg("graph %u: %s", seed, error->message);
}

TEST(gradients_of_drawn_networks_are_their_slopes) {
    guint32 first = mtf_first_seed();
    for (guint32 seed = first; seed < first + (guint32)mtf_draws(2000); seed++)
        gradients_of_a_network_are_its_slopes(seed);
}
