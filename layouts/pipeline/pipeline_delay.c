// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/pipeline/pipeline_delay.h"

#include <string.h>

static bool is_two_buffered(const char *schedule) {
    return strcmp(schedule, "pipedream-2bw") == 0;
}

bool mtf_pipeline_is_asynchronous(const char *schedule) {
    return is_two_buffered(schedule) || strcmp(schedule, "pipedream") == 0;
}

int mtf_pipeline_lookahead(const MtfPipelineOrder *order, int stage) {
    return order->stages - 1 - stage;
}

int mtf_pipeline_delay(const char *schedule, const MtfPipelineOrder *order, int stage) {
    if (!mtf_pipeline_is_asynchronous(schedule))
        return 0;
    int ahead = mtf_pipeline_lookahead(order, stage), m = order->microbatches;
    return is_two_buffered(schedule) ? 1 : (ahead + m - 1) / m;
}
