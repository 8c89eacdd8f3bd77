// SPDX-License-Identifier: GPL-3.0-or-later
/* What an instruction costs, in integer nanoseconds, on one machine with one mesh laid on it.
 *
 *     kernel       max(flops / rate, traffic_bytes / memory bandwidth) + MTF_KERNEL_SECONDS
 *     local step   traffic_bytes / memory bandwidth + MTF_KERNEL_SECONDS
 *     host copy    bytes / bandwidth to the host + the same seconds, the machine's launch where known
 *     collective   the machine's price for its mesh axes and payload, cost/collectives/collective.h
 *
 * Where the machine says what its kernels reach (cost/machine/kernel_rates.h) these are priced by
 * that: products by tiles and waves, attention and passes over memory by their shares of the peaks.
 * A calibrated machine has measured tables (kernel_curves.h), which go before all of these; there,
 * copying a collective's pieces together and apart is counted too, as it is everywhere, like a
 * local step, where several tensors travel together (combine_collectives.h). Otherwise matrix products
 * reach
 *
 *     rate = peak h / (h + MTF_HALF_RATE_SIDE),   h = 3 / (1/m + 1/n + 1/k)
 *
 * where h, the harmonic mean of the sides of the local product, follows from what the instruction
 * carries: 2mnk flops over the bytes of three matrices of b-byte elements give h = 3/2 b flops /
 * traffic_bytes. Attention never holds all scores and works in blocks, so there h is that of the
 * blocks (mtf_operation_block_side): 64 queries, 512 keys and 64 features give 90 and not the
 * length of the sequence. Its flops count the scores that the gradient recomputes; the
 * exponentials between the products are not counted, a few percent of them. All other kernels are
 * bound by memory and computed at the peak.
 *
 * A machine with a software profile prices what that framework would run in the program's place
 * (software_price.h): fused maps and reductions, its attention, its launches.
 *
 * The price of a program is the sum of its instructions': the additive cost that searches minimise.
 * A schedule with overlap (schedule.h) can only be shorter. */
#ifndef MTF_PRICE_H
#define MTF_PRICE_H

#include "cost/collectives/collective.h"
#include "cost/machine/curve_name.h"
#include "cost/price/kernel_curves.h"

/* What starting a kernel costs: a launch, or a call with its loops, an assumption. */
#define MTF_KERNEL_SECONDS 1e-6

/* Harmonic mean side of a matrix product at which half of the peak is reached: an assumption,
 * between a CPU's register block and the 128 of a systolic array. */
#define MTF_HALF_RATE_SIDE 32.0

typedef struct {
    const MtfMachine *machine; /* borrowed */
    MtfMeshMap map;
    double memory_bandwidth; /* bytes per second */
    double rate[MTF_DTYPES]; /* flop per second */
    MtfKernelCurves curves;  /* measured on the machine */
} MtfPricer;

/* Lays the mesh on the machine. Fails when the machine has too few devices or incomplete tables. */
bool mtf_pricer_init(MtfPricer *pricer, const MtfMachine *machine, const MtfMesh *mesh,
                     GError **error);

/* Nanoseconds of one instruction, at most 10^15. */
int64_t mtf_price_instruction(const MtfPricer *pricer, const MtfProgram *program, int index);

/* Of one instruction what the device takes, and what the host takes to launch it, which is 0 on a
 * machine without a software profile. The price is the longer; a schedule lets the host run ahead. */
int64_t mtf_price_device(const MtfPricer *pricer, const MtfProgram *program, int index);
int64_t mtf_price_host(const MtfPricer *pricer, const MtfProgram *program, int index);

/* The sum over all instructions, each as often as a step runs it. */
int64_t mtf_price_program(const MtfPricer *pricer, const MtfProgram *program);

/* No program of the graph on the mesh costs less, whatever its layout: every operation starts a
 * kernel, and the processors share its flops at the peak. Cheap and far below; 0 for kernels whose
 * times were measured. */
int64_t mtf_price_floor(const MtfPricer *pricer, const MtfGraph *graph, const MtfMesh *mesh);

/* The collective that a step runs; local steps have none, which returns false. */
bool mtf_reshard_collective_kind(MtfReshardKind reshard, MtfCollectiveKind *kind);

/* The same of an instruction; false, too, of kernels. */
bool mtf_instruction_collective_kind(const MtfInstruction *instruction, MtfCollectiveKind *kind);

/* What the prices of that collective count as its bytes: its payload, which of a halo is two faces. */
double mtf_instruction_message_bytes(const MtfInstruction *instruction);

#endif
