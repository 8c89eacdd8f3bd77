// SPDX-License-Identifier: GPL-3.0-or-later
/* Cutting a slice of N devices out of a machine. On a torus it is the factorisation of N within the
 * axes' sizes whose sizes add up to least (the most compact box; the first in lexicographic order
 * among equals, so the last axes fill first). In levels each switch takes the largest divisor of
 * what remains, the innermost first. */
#include "cost/machine/machine.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const MtfNetwork *whole;
    int64_t sizes[MTF_NETWORK_AXES_MAX];
    int64_t best[MTF_NETWORK_AXES_MAX];
    int64_t best_sum; /* 0: none found yet */
} ShapeSearch;

/* Tries every size for axis `d`; `rest` devices remain for it and the axes behind it. */
static void search_shapes(ShapeSearch *search, int d, int64_t rest, int64_t sum) {
    if (d == search->whole->axes) {
        if (rest == 1 && (search->best_sum == 0 || sum < search->best_sum)) {
            search->best_sum = sum;
            memcpy(search->best, search->sizes, sizeof search->best);
        }
        return;
    }
    int64_t most = MIN(search->whole->axis[d].size, rest);
    for (int64_t size = 1; size <= most; size++) {
        if (rest % size != 0)
            continue;
        search->sizes[d] = size;
        search_shapes(search, d + 1, rest / size, sum + size);
    }
}

static bool wraps(const MtfMachine *machine, int d, int64_t size) {
    int64_t multiple = machine->wrap_multiple;
    int64_t whole = machine->network.axis[d].size;
    return machine->network.axis[d].wrap &&
           (size == whole || (multiple > 0 && size % multiple == 0));
}

/* Wrap links of the cut: per axis, and with `wrap_cubes` only when every axis has them. */
static void set_wraps(const MtfMachine *machine, MtfNetwork *slice) {
    bool all = true;
    for (int d = 0; d < slice->axes; d++) {
        slice->axis[d].wrap = wraps(machine, d, slice->axis[d].size);
        all = all && slice->axis[d].wrap;
    }
    for (int d = 0; d < slice->axes && machine->wrap_cubes && !all; d++)
        slice->axis[d].wrap = false;
}

/* The slowest link and hop of the torus, for a line of `devices` snaked through it. */
static void snake(const MtfNetwork *whole, int64_t devices, MtfNetwork *slice) {
    MtfNetworkAxis line = { .size = devices, .bandwidth = whole->axis[0].bandwidth };
    for (int d = 0; d < whole->axes; d++) {
        line.bandwidth = MIN(line.bandwidth, whole->axis[d].bandwidth);
        line.latency = MAX(line.latency, whole->axis[d].latency);
    }
    slice->axes = 1;
    slice->axis[0] = line;
}

static void cut_torus(const MtfMachine *machine, int64_t devices, MtfNetwork *slice) {
    ShapeSearch search = { .whole = &machine->network };
    search_shapes(&search, 0, devices, 0);
    if (search.best_sum == 0) {
        snake(&machine->network, devices, slice);
        return;
    }
    for (int d = 0; d < slice->axes; d++)
        slice->axis[d].size = search.best[d];
    set_wraps(machine, slice);
}

/* Each switch, from the innermost, takes the largest divisor of what remains that leaves a number
 * the outer levels can hold; the outermost takes the rest. */
static void cut_levels(int64_t devices, MtfNetwork *slice) {
    for (int d = slice->axes - 1; d > 0; d--) {
        int64_t size = MIN(slice->axis[d].size, devices);
        while (devices % size != 0)
            size--;
        slice->axis[d].size = size;
        devices /= size;
    }
    slice->axis[0].size = devices;
}

int64_t mtf_machine_devices(const MtfMachine *machine) {
    int64_t devices = mtf_network_ranks(&machine->network);
    return devices == 0 ? INT64_MAX : devices;
}

bool mtf_machine_slice(const MtfMachine *machine, int64_t devices, MtfNetwork *slice,
                       GError **error) {
    int64_t held = mtf_machine_devices(machine);
    if (devices < 1)
        return mtf_input_error(error, "a slice needs at least one device, not %" PRId64, devices);
    if (devices > held)
        return mtf_input_error(
            error, "machine \"%s\" has %" PRId64 " devices, fewer than the %" PRId64 " asked for",
            machine->name, held, devices);
    MtfNetwork cut = machine->network;
    if (cut.switched)
        cut_levels(devices, &cut);
    else
        cut_torus(machine, devices, &cut);
    for (int d = 0; d < cut.axes; d++)
        cut.axis[d].bandwidth *= machine->derate.links;
    cut.reduce_seconds_per_byte = 3 / mtf_machine_memory_bandwidth(machine);
    *slice = cut;
    return true;
}
