// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/alike_layers.h"
#include "layouts/base/json_writer.h"

#include <math.h>
#include <string.h>

static MtfAlikeLayers layers(double alike_seconds) {
    return (MtfAlikeLayers){ .layers = 32,
                             .best = { .cost = 1000, .step_seconds = 1 },
                             .alike = { .cost = 1000, .step_seconds = alike_seconds } };
}

TEST(alike_layers_are_worth_one_percent) {
    MtfAlikeLayers cheap = layers(1.0099), dear = layers(1.0101), none = { .layers = 32 };
    assert_true(mtf_alike_is_worth(&cheap));
    assert_false(mtf_alike_is_worth(&dear));
    assert_false(mtf_alike_is_worth(&none));
}

TEST(the_price_of_alike_layers_is_said) {
    MtfAlikeLayers cheap = layers(1.005), dear = layers(1.025);
    dear.differences = 3;
    g_autofree char *chosen = mtf_alike_format(&cheap);
    g_autofree char *left = mtf_alike_format(&dear);
    assert_non_null(strstr(chosen, "all 32 repeated layers, for a step 0.5 % longer"));
    assert_non_null(strstr(left, "not all 32 repeated layers"));
    assert_non_null(strstr(left, "2.5 % longer"));
    cJSON *json = mtf_alike_to_json(&dear);
    assert_true(fabs(mtf_json_number_of(json, "alike_price", 0) - 0.025) < 1e-9);
    assert_string_equal(mtf_json_text_of(json, "text"), left);
    cJSON_Delete(json);
}

TEST(nothing_is_said_of_networks_without_layers) {
    MtfAlikeLayers none = { 0 };
    assert_null(mtf_alike_format(&none));
    assert_null(mtf_alike_to_json(&none));
}
