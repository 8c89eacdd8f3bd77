// SPDX-License-Identifier: GPL-3.0-or-later
/* A machine: equal devices on a network, as its file says (README.md describes the format). The
 * figures are datasheet peaks; `derate` holds what measurement leaves of them, kept apart. A
 * machine serves any number of devices that it holds: a *slice* of N devices is the most compact
 * part of the torus, or the fewest switches, with exactly N devices.
 *
 *     tpu-v2 (16x16x2)   slice of 32 devices: 4x4x2, no wrap (an axis wraps at a multiple of 16)
 *     h100   (?,4,32,8)  slice of 24 devices: three nodes of 8 */
#ifndef MTF_MACHINE_H
#define MTF_MACHINE_H

#include "cost/machine/kernel_rates.h"
#include "cost/machine/network.h"
#include "cost/machine/software.h"
#include "layouts/base/json_reader.h"

#define MTF_MACHINE_RATES_MAX 8

/* A measured table: seconds over x, x strictly rising; curve_name.h says over what. */
typedef struct {
    char *name;
    int points;
    double *x, *y;
} MtfMachineCurve;

/* How messages travel: with `nccl` collectives are those that NCCL runs (nccl_collective.h), else
 * the cheapest schedule there is. */
typedef struct {
    bool nccl;
    double base[3];   /* seconds to start a collective by protocol: LL, LL128, Simple */
    double in_switch; /* bus bandwidth of sums in the innermost switch, share of a link; 0: none */
    double in_training; /* how many times longer collectives take beside kernels than alone */
} MtfMachineTransport;

/* The network that joins slices of a torus. */
typedef struct {
    double bandwidth; /* bytes a second of one device in one direction; 0: slices are not joined */
    double latency;
} MtfSliceNetwork;

/* Runs measured elsewhere that predictions for a machine were judged by, or 0, and the mean of
 * |predicted / measured - 1|. */
typedef struct {
    int64_t runs;
    double error;
} MtfJudged;

#define MTF_SLICE_SHAPES_MAX 16

/* Which slices of a torus there are: those listed (any order of axes), and boxes whose sides are all
 * multiples of `cube`; without either, every box. */
typedef struct {
    int shapes, axes;
    int64_t shape[MTF_SLICE_SHAPES_MAX][MTF_NETWORK_AXES_MAX];
    int64_t cube;
    int64_t largest; /* devices that one slice may hold; 0: all */
} MtfSliceShapes;

typedef struct {
    char *name;
    MtfNetwork network; /* all of it; a size of 0 in a level means any number */
    int wrap_multiple;  /* an axis of a slice wraps at multiples of this; 0: at its whole size */
    bool wrap_cubes;    /* and only when every axis of the slice is such a multiple */
    MtfSliceShapes shapes;
    int rates;
    MtfDtypeFigure rate[MTF_MACHINE_RATES_MAX]; /* flop per second */
    int64_t memory_bytes;                       /* of one device */
    double memory_bandwidth;                    /* bytes a second of one device */
    double host_bandwidth; /* bytes a second of one device in one direction between its memory and
                              the host's; 0: not known, and nothing is kept there */
    int64_t host_memory_bytes; /* of the host's memory, a device's share; 0: not known, no limit */
    struct {
        double links, flops, memory; /* the share of each peak that work reaches, 0 < share <= 1 */
        double network; /* of that of links, what levels outside the innermost and the network
                           between slices reach; fitted runs may say more than 1 */
    } derate;
    MtfKernelRates kernels; /* what kernels reach */
    MtfMachineTransport transport;
    MtfSliceNetwork between_slices;
    MtfJudged judged, judged_inference; /* of training, and of inference */
    char precision[8];     /* that training on it uses where nobody says otherwise, a dtype's short
                              name; "": as the graph has it */
    bool overlap;          /* collectives make progress while kernels run */
    GPtrArray *curves;     /* of MtfMachineCurve */
    MtfSoftware *software; /* whose steps are priced (mtf_machine_set_software); NULL:
                              meshtf-run's */
    cJSON *sources;        /* where each figure comes from, as the file has it; may be NULL */
} MtfMachine;

/* Loads a library machine ("tpu-v2") or a machine file. Free with mtf_machine_free. */
MtfMachine *mtf_machine_load(const char *name_or_path, GError **error);

/* Reads a machine from a place in a document: a file's root or a plan's "machine". */
MtfMachine *mtf_machine_from_json(const MtfJson *where, GError **error);

/* The machine as JSON, which mtf_machine_from_json reads back to the same machine. The caller owns
 * the tree. */
cJSON *mtf_machine_to_json(const MtfMachine *machine);

/* Prices steps on the machine as the profile of that name or file runs them; NULL for what is usual
 * there today: megatron-core where collectives are NCCL's, maxtext on a torus, else meshtf. A machine
 * that does not say what its kernels reach has no other usual than meshtf. The profile that is the
 * program as it stands leaves `software` NULL. */
bool mtf_machine_set_software(MtfMachine *machine, const char *name_or_path, GError **error);

/* What the host adds to a step once, however many domains a pipeline has: seconds; 0 without a
 * software profile. */
double mtf_machine_step_seconds(const MtfMachine *machine);

/* The name of the profile that the machine prices steps for. */
const char *mtf_machine_software_name(const MtfMachine *machine);

/* A machine with nothing in it yet: no tables, every derate 1. */
MtfMachine *mtf_machine_new(void);

void mtf_machine_free(MtfMachine *machine);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfMachine, mtf_machine_free)

/* The devices the machine holds; INT64_MAX when any number. */
int64_t mtf_machine_devices(const MtfMachine *machine);

/* The slices that so many devices are, whole ones that a network joins; 1 where they are one, or no such number. */
int64_t mtf_machine_slice_count(const MtfMachine *machine, int64_t devices);

/* The network of a slice of `devices` devices (of several slices, where they are joined and this
 * many fill them: an axis in front), axes of size 1 included, derated, with the cost of
 * reducing a byte (two reads and a write of memory). A number that is no product of sizes within
 * the torus becomes a line snaked through it. More devices than the machine holds is a bad-input
 * error. */
bool mtf_machine_slice(const MtfMachine *machine, int64_t devices, MtfNetwork *slice,
                       GError **error);

/* Whether the machine has a figure for that dtype. */
bool mtf_machine_names_rate(const MtfMachine *machine, const char *dtype);

/* What products of a dtype are multiplied in: where there are none of bfloat16, training in two bytes means fp16; where
 * there are none of that either, they are widened to float32. */
const char *mtf_machine_multiplied_type(const MtfMachine *machine, const char *dtype);

/* Peak and derated flop/s of one device for a dtype ("f32"). "bf16" without a figure of its own
 * gets float32's, any other the slowest figure of the machine. */
double mtf_machine_peak_flops(const MtfMachine *machine, const char *dtype);
double mtf_machine_flops(const MtfMachine *machine, const char *dtype);

/* The derated peaks of one device for products of a dtype. `dtype` must live as long. */
MtfPeaks mtf_machine_peaks(const MtfMachine *machine, const char *dtype);

/* Derated bytes a second of one device's memory. */
double mtf_machine_memory_bandwidth(const MtfMachine *machine);

/* Adds a table of `points` pairs, x strictly rising, none negative; copies them. A table of that
 * name is replaced. */
void mtf_machine_add_curve(MtfMachine *machine, const char *name, int points, const double *x,
                           const double *y);

/* The measured table of that name, or NULL. */
const MtfMachineCurve *mtf_machine_curve(const MtfMachine *machine, const char *name);

/* The table's y at `x`: linear between points, the first y below the first point, and in proportion
 * to the last segment's slope beyond the last point (constant after a single point). */
double mtf_machine_curve_at(const MtfMachineCurve *curve, double x);

#endif
