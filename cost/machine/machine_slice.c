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
    const MtfSliceShapes *shapes;
    int64_t sizes[MTF_NETWORK_AXES_MAX];
    int64_t best[MTF_NETWORK_AXES_MAX];
    int64_t best_sum; /* 0: none found yet */
} ShapeSearch;

/* Whether some row has the sizes, in any order: every size as often in one as in the other. */
static bool is_listed(const MtfSliceShapes *shapes, const int64_t *sizes) {
    for (int i = 0; i < shapes->shapes; i++) {
        bool same = true;
        for (int d = 0; d < shapes->axes; d++) {
            int here = 0, there = 0;
            for (int k = 0; k < shapes->axes; k++) {
                here += sizes[k] == sizes[d];
                there += shapes->shape[i][k] == sizes[d];
            }
            same = same && here == there;
        }
        if (same)
            return true;
    }
    return false;
}

/* Whether there is a slice of these sizes: whole axes whole, the others listed or made of cubes. A
 * device alone may always be had. */
static bool is_legal(const ShapeSearch *search) {
    const MtfSliceShapes *shapes = search->shapes;
    int64_t sizes[MTF_NETWORK_AXES_MAX], all = 1;
    int count = 0;
    bool whole = true, cubes = shapes->cube > 0;
    for (int d = 0; d < search->whole->axes; d++) {
        int64_t size = search->sizes[d];
        all *= size;
        if (search->whole->axis[d].undivided) {
            whole = whole && size == search->whole->axis[d].size;
            continue;
        }
        sizes[count++] = size;
        cubes = cubes && size % shapes->cube == 0;
    }
    bool free = shapes->shapes == 0 && shapes->cube == 0;
    return all == 1 || (whole && (free || cubes || is_listed(shapes, sizes)));
}

/* Tries every size for axis `d`; `rest` devices remain for it and the axes behind it. */
static void search_shapes(ShapeSearch *search, int d, int64_t rest, int64_t sum) {
    if (d == search->whole->axes) {
        bool better = rest == 1 && (search->best_sum == 0 || sum < search->best_sum);
        if (better && is_legal(search)) {
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
        all = all && (slice->axis[d].wrap || slice->axis[d].undivided);
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

/* Whether the torus has a slice of `devices` devices; its sizes in `search->best`. */
static bool find_shape(const MtfMachine *machine, int64_t devices, ShapeSearch *search) {
    *search = (ShapeSearch){ .whole = &machine->network, .shapes = &machine->shapes };
    search_shapes(search, 0, devices, 0);
    return search->best_sum > 0;
}

/* The devices of the nearest slice there is, upwards or downwards; 0 when there is none. */
static int64_t nearest_slice(const MtfMachine *machine, int64_t devices, int64_t step) {
    ShapeSearch search;
    int64_t most = mtf_machine_devices(machine);
    for (int64_t n = devices + step; n > 0 && n <= most; n += step)
        if (find_shape(machine, n, &search))
            return n;
    return 0;
}

static bool refuse_shape(const MtfMachine *machine, int64_t devices, GError **error) {
    int64_t below = nearest_slice(machine, devices, -1), above = nearest_slice(machine, devices, 1);
    if (above == 0)
        return mtf_input_error(
            error, "machine \"%s\" has no slice of %" PRId64 " devices; the nearest has %" PRId64,
            machine->name, devices, below);
    return mtf_input_error(error,
                           "machine \"%s\" has no slice of %" PRId64
                           " devices; the nearest have %" PRId64 " and %" PRId64,
                           machine->name, devices, below, above);
}

static bool cut_torus(const MtfMachine *machine, int64_t devices, MtfNetwork *slice,
                      GError **error) {
    ShapeSearch search;
    bool free = machine->shapes.shapes == 0 && machine->shapes.cube == 0;
    for (int d = 0; d < slice->axes; d++)
        free = free && !slice->axis[d].undivided;
    if (!find_shape(machine, devices, &search)) {
        if (!free)
            return refuse_shape(machine, devices, error);
        snake(&machine->network, devices, slice);
        return true;
    }
    for (int d = 0; d < slice->axes; d++)
        slice->axis[d].size = search.best[d];
    set_wraps(machine, slice);
    return true;
}

/* Several whole slices: an axis of them in front, where every device has its own way to its
 * counterparts. In a ring both directions share what a device may send. */
static void join_slices(const MtfMachine *machine, int64_t count, MtfNetwork *slice) {
    bool ring = count > 2;
    for (int d = slice->axes; d > 0; d--) {
        slice->axis[d] = slice->axis[d - 1];
        slice->axis[d].link = d;
    }
    slice->axes++;
    slice->axis[0] = (MtfNetworkAxis){
        .size = count,
        .wrap = ring,
        .bandwidth = machine->between_slices.bandwidth / (ring ? 2 : 1) / machine->derate.links,
        .latency = machine->between_slices.latency,
    };
}

/* Each switch, from the innermost, takes the largest divisor of what remains that leaves a number
 * the outer levels can hold; the outermost takes the rest. */
static void cut_levels(int64_t devices, MtfNetwork *slice) {
    const MtfNetwork whole = *slice;
    for (int d = slice->axes - 1; d > 0; d--) {
        int64_t size = MIN(slice->axis[d].size, devices);
        while (devices % size != 0)
            size--;
        slice->axis[d].size = size;
        devices /= size;
    }
    slice->axis[0].size = devices;
    for (int d = 0; d < slice->axes; d++)
        if (slice->axis[d].pair > 0 && slice->axis[d].size < whole.axis[d].size)
            slice->axis[d].bandwidth = mtf_network_links(&slice->axis[d]);
}

int64_t mtf_machine_devices(const MtfMachine *machine) {
    int64_t devices = mtf_network_ranks(&machine->network);
    return devices == 0 ? INT64_MAX : devices;
}

static bool refuse_count(const MtfMachine *machine, int64_t devices, int64_t held, GError **error) {
    return mtf_input_error(
        error, "machine \"%s\" has %" PRId64 " devices%s, fewer than the %" PRId64 " asked for",
        machine->name, held, machine->between_slices.bandwidth > 0 ? " a slice" : "", devices);
}

static int64_t largest_slice(const MtfMachine *machine) {
    int64_t held = mtf_machine_devices(machine), largest = machine->shapes.largest;
    return largest > 0 ? MIN(held, largest) : held;
}

int64_t mtf_machine_slice_count(const MtfMachine *machine, int64_t devices) {
    int64_t most = largest_slice(machine);
    return machine->between_slices.bandwidth > 0 && devices % most == 0 ? devices / most : 1;
}

bool mtf_machine_slice(const MtfMachine *machine, int64_t devices, MtfNetwork *slice,
                       GError **error) {
    int64_t most = largest_slice(machine), count = 1;
    if (devices < 1)
        return mtf_input_error(error, "a slice needs at least one device, not %" PRId64, devices);
    if (devices > most) {
        count = devices / most;
        if (machine->between_slices.bandwidth <= 0 || devices % most != 0)
            return refuse_count(machine, devices, most, error);
    }
    MtfNetwork cut = machine->network;
    if (cut.switched)
        cut_levels(devices, &cut);
    else if (!cut_torus(machine, devices / count, &cut, error))
        return false;
    if (count > 1)
        join_slices(machine, count, &cut);
    for (int d = 0; d < cut.axes; d++) {
        bool outer = cut.switched ? d < cut.axes - 1 : count > 1 && d == 0;
        double share = machine->derate.links * (outer ? machine->derate.network : 1);
        cut.axis[d].bandwidth *= share;
        cut.axis[d].pair *= share;
    }
    cut.reduce_seconds_per_byte = 3 / mtf_machine_memory_bandwidth(machine);
    *slice = cut;
    return true;
}
