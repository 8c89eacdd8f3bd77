// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/serving/prefill_devices.h"

#include "analyzer/planner/mesh_shapes.h"
#include "cost/transfer/transfer_price.h"
#include "layouts/base/error.h"

static bool is_slice(const MtfMachine *machine, int devices, int max_axes) {
    g_autoptr(GArray) meshes = mtf_mesh_shapes_on(machine, devices, max_axes, NULL);
    return meshes != NULL;
}

static bool is_power(int number) {
    return (number & (number - 1)) == 0;
}

GArray *mtf_prefill_devices(const MtfMachine *machine, int devices, int max_axes, GError **error) {
    MtfTransferHosts hosts;
    if (!mtf_transfer_hosts(machine, devices, &hosts, error))
        return NULL;
    int unit = devices > hosts.devices ? hosts.devices : 1;
    g_autoptr(GArray) counts = g_array_new(FALSE, FALSE, sizeof(int));
    for (int count = unit; count < devices; count += unit)
        if ((is_power(count) || is_power(devices - count)) && is_slice(machine, count, max_axes) &&
            is_slice(machine, devices - count, max_axes))
            g_array_append_val(counts, count);
    if (counts->len > 0)
        return g_steal_pointer(&counts);
    mtf_input_error(error, "--prefill-devices: %d devices of the machine \"%s\" are not two slices",
                    devices, machine->name);
    return NULL;
}
