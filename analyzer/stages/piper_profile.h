// SPDX-License-Identifier: GPL-3.0-or-later
/* Piper's input (msr-fiddle/piper, inputs/): JSON with maxDevices, maxMemoryPerDevice, bandwidth,
 * mbsInBatch, nodes and edges. A node lists under TMPCs, by the number of devices that share it, the
 * ways to run it: timePerSample, parameterSize, memory for each micro-batch in flight (memoryUsageA)
 * and besides (memoryUsageB), bytes beside those of an edge that is cut (syncTimeFw from each
 * predecessor, syncTimeBw to each successor). Unknown keys are passed over: such files hold more. */
#ifndef MTF_PIPER_PROFILE_H
#define MTF_PIPER_PROFILE_H

#include "analyzer/stages/stage_graph.h"
#include "layouts/base/json_reader.h"

/* Reads a profile from a document's root; messages give the place. */
MtfStageGraph *mtf_piper_profile_read(const MtfJson *root, GError **error);

#endif
