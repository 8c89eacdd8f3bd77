// SPDX-License-Identifier: GPL-3.0-or-later
/* What a tensor's way from stage to stage takes. Within a host whose transfers were measured (`p2p/2`),
 * the seconds of the processor that receives or sends most; else the network's: the latency of the
 * longest route and the bytes of the busiest link, and where receivers gather what they got the same of
 * that,
 *
 *     seconds = p2p(max over processors of bytes)       or       alpha + max over links of bytes / bandwidth
 *
 * What is measured and goes directly is copied by its receiver, which computes nothing meanwhile; all
 * else is under way while both compute. */
#ifndef MTF_ROUTE_PRICE_H
#define MTF_ROUTE_PRICE_H

#include "cost/collectives/route_loads.h"
#include "cost/machine/machine.h"
#include "layouts/plan_file/pipeline_transfers.h"

typedef struct {
    double seconds;
    bool copied;         /* by the receivers */
    MtfBusyLink busiest; /* on the way between the stages; seconds 0 where the price is measured */
} MtfRoutePrice;

/* What one transfer of a pipeline, whose stages are planned, takes in its way. */
MtfRoutePrice mtf_pipeline_transfer_price(const MtfPipelinePlan *pipeline, int transfer,
                                          const MtfMachine *machine);

/* What all of them take; free with g_free. */
MtfRoutePrice *mtf_pipeline_transfer_prices(const MtfPipelinePlan *pipeline,
                                            const MtfMachine *machine);

/* The network of all devices of the pipeline. */
void mtf_pipeline_network(const MtfPipelinePlan *pipeline, const MtfMachine *machine,
                          MtfNetwork *network);

/* Seconds below which no way of the transfer can come on that network, whoever sends: what enters a child
 * of a switch, or on a torus a device by all its links, has to enter it once, over one hop at least. */
double mtf_pipeline_transfer_bound(const MtfPipelinePlan *pipeline, int transfer,
                                   const MtfNetwork *network);

/* Lets each go the way that takes least: within a host directly, or as messages where both were measured
 * and these are faster; between hosts directly or gathered. */
void mtf_pipeline_choose_transfers(MtfPipelinePlan *pipeline, const MtfMachine *machine);

#endif
