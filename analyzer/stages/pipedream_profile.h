// SPDX-License-Identifier: GPL-3.0-or-later
/* PipeDream's graph.txt (msr-fiddle/pipedream, profiler/): a line a node, milliseconds and bytes of
 * one minibatch, then a line an edge:
 *
 *     node1 -- Input -- forward_compute_time=17.9, backward_compute_time=0.0, activation_size=77.0, parameter_size=0.0
 *     node2 -- Conv2d(3, 64) -- forward_compute_time=… -- stage_id=0
 *     	node1 -- node2
 *
 * An activation_size may be a list, "[6291456.0; 131072.0]", and a stage_id is passed over. Inputs
 * (sources described as Input…) cost nothing, as in PipeDream's planner: they are data loading. */
#ifndef MTF_PIPEDREAM_PROFILE_H
#define MTF_PIPEDREAM_PROFILE_H

#include "analyzer/stages/stage_graph.h"

/* Reads a profile; `name` stands for the file in messages, which give the line. */
MtfStageGraph *mtf_pipedream_profile_parse(const char *name, const char *text, GError **error);

#endif
