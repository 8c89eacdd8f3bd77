// SPDX-License-Identifier: GPL-3.0-or-later
/* What one piece of a transfer costs: a sender host holds `bytes` that devices on `hosts` other hosts
 * lack, `devices` of them in all. The slow link is each host's own (t = bytes / its bandwidth); what
 * moves inside a host is not counted (arXiv 2211.05322, section 3.1, and its resharding_tensor.py):
 *
 *     send_receive       every device gets its own copy                         devices t
 *     local_allgather    every host gets one, in parts that its devices gather  hosts t
 *     global_allgather   all devices get a part and gather over all hosts       t + t (devices - 1) / devices
 *     broadcast          from host to host in K chunks, one behind the other    t + hosts t / K
 *
 * (global_allgather to one host is t: the gathering stays inside.) A message adds its latency. */
#ifndef MTF_TRANSFER_PRICE_H
#define MTF_TRANSFER_PRICE_H

#include "cost/machine/machine.h"
#include "layouts/transfer/transfer_boxes.h"

typedef enum {
    MTF_TRANSFER_BROADCAST,
    MTF_TRANSFER_LOCAL_ALLGATHER,
    MTF_TRANSFER_GLOBAL_ALLGATHER,
    MTF_TRANSFER_SEND_RECEIVE,
    MTF_TRANSFER_ALGORITHMS,
} MtfTransferAlgorithm;

/* "broadcast", …; static. */
const char *mtf_transfer_algorithm_name(MtfTransferAlgorithm algorithm);

/* Hosts of a machine and the link of each to the others. On a machine without hosts (a torus, a single
 * switch) every device is a host of its own; on a torus all links of a device together. */
typedef struct {
    int devices; /* of a host */
    double bytes_per_second, latency;
} MtfTransferHosts;

/* Fails as a bad input when the machine does not hold `devices` devices. */
bool mtf_transfer_hosts(const MtfMachine *machine, int64_t devices, MtfTransferHosts *hosts,
                        GError **error);

/* Boxes that go the same way between hosts, as one piece (apart: each its own piece). */
typedef struct {
    int64_t bytes;
    int devices;                 /* that receive it on other hosts than its holders' */
    GArray *senders, *receivers; /* of int: hosts; no receiver: it stays within hosts */
    GArray *boxes;               /* of int */
} MtfTransferMove;

/* The moves of boxes (mtf_transfer_boxes) as a GPtrArray of MtfTransferMove *, in the order of their
 * first boxes. Boxes with equal hosts and devices are joined where there are more than `most` apart. */
GPtrArray *mtf_transfer_moves(const GPtrArray *boxes, int64_t element_bytes, int devices_of_host,
                              guint most);

/* Chunks of a broadcast of `bytes` bytes to `receivers` hosts: at sqrt(hosts t / latency) their latencies
 * cost what waiting for the last chunk does. */
int mtf_transfer_chunks(const MtfTransferHosts *hosts, double bytes, int receivers);

/* Seconds of one move; `chunks` are those of a broadcast. 0 where nothing leaves its host. */
double mtf_transfer_move_seconds(MtfTransferAlgorithm algorithm, const MtfTransferMove *move,
                                 const MtfTransferHosts *hosts, int chunks);

/* Bytes that its sender's link carries for one move. */
double mtf_transfer_sent_bytes(MtfTransferAlgorithm algorithm, const MtfTransferMove *move);

#endif
