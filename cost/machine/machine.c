// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/machine.h"

#include "cost/machine/curve_name.h"
#include "layouts/base/json_writer.h"
#include "layouts/base/library.h"

#include <math.h>
#include <string.h>

#define MAX_AXIS_SIZE (INT64_C(1) << 30)

static void curve_free(void *data) {
    MtfMachineCurve *curve = (MtfMachineCurve *)data;
    g_free(curve->name);
    g_free(curve->x);
    g_free(curve->y);
    g_free(curve);
}

MtfMachine *mtf_machine_new(void) {
    MtfMachine *machine = g_new0(MtfMachine, 1);
    machine->curves = g_ptr_array_new_with_free_func(curve_free);
    machine->derate.links = machine->derate.flops = machine->derate.memory = 1;
    machine->derate.network = 1;
    machine->transport.in_training = 1;
    return machine;
}

void mtf_machine_free(MtfMachine *machine) {
    if (machine == NULL)
        return;
    g_free(machine->name);
    g_ptr_array_unref(machine->curves);
    cJSON_Delete(machine->sources);
    mtf_software_free(machine->software);
    g_free(machine);
}

/* Reading. Each reader below fills its part of the machine or fails with a sentence. */

static bool read_axis(const MtfJson *where, MtfNetworkAxis *axis, GError **error) {
    static const char *const keys[] = { "size", "wrap", "bandwidth", "latency", "undivided", NULL };
    return mtf_json_keys(where, keys, error) &&
           mtf_json_get_integer(where, "size", 1, MAX_AXIS_SIZE, &axis->size, error) &&
           mtf_json_get_boolean(where, "wrap", &axis->wrap, error) &&
           mtf_json_optional_boolean(where, "undivided", &axis->undivided, error) &&
           mtf_figure_above_zero(where, "bandwidth", &axis->bandwidth, error) &&
           mtf_figure_between(where, "latency", 0, 1e3, &axis->latency, error);
}

/* In a full mesh `bandwidth` is that of one link, and a child has a link to each other; in a part of
 * one `link` is the slowest of those that two children have, beside what one sends over all. */
static bool read_links(const MtfJson *where, MtfNetworkAxis *level, GError **error) {
    MtfJson mesh, link;
    bool full = false, linked = mtf_json_find(where, "link", &link);
    if (mtf_json_find(where, "full_mesh", &mesh) && !mtf_json_boolean(&mesh, &full, error))
        return false;
    if (full && linked)
        return mtf_json_fail(&link, error, "a full mesh has links of its \"bandwidth\"");
    if ((full || linked) && level->size < 2)
        return mtf_json_fail(full ? &mesh : &link, error, "a mesh needs a size of at least 2");
    if (linked)
        return mtf_figure_above_zero(where, "link", &level->pair, error) &&
               (level->pair <= level->bandwidth ||
                mtf_json_fail(&link, error, "one link is more than the bandwidth of all"));
    level->pair = full ? level->bandwidth : 0;
    level->bandwidth *= full ? (double)(level->size - 1) : 1;
    return true;
}

static bool read_level_size(const MtfJson *where, MtfNetworkAxis *level, GError **error) {
    MtfJson size;
    if (mtf_json_find(where, "size", &size))
        return mtf_json_integer(&size, 1, MAX_AXIS_SIZE, &level->size, error);
    return where->index == 0 ||
           mtf_json_fail(where, error,
                         "key \"size\" is missing (only the outermost level, the first, "
                         "may hold any number)");
}

/* A level; only the outermost may leave its size open (0). */
static bool read_level(const MtfJson *where, MtfNetworkAxis *level, GError **error) {
    static const char *const keys[] = { "name",      "size", "bandwidth", "latency",
                                        "full_mesh", "link", NULL };
    MtfJson name;
    const char *text;
    if (!mtf_json_keys(where, keys, error) ||
        (mtf_json_find(where, "name", &name) && !mtf_json_string(&name, &text, error)))
        return false;
    return read_level_size(where, level, error) &&
           mtf_figure_above_zero(where, "bandwidth", &level->bandwidth, error) &&
           read_links(where, level, error) &&
           mtf_figure_between(where, "latency", 0, 1e3, &level->latency, error);
}

static bool check_device_count(const MtfJson *where, const MtfNetwork *network, GError **error) {
    double devices = 1;
    for (int d = 0; d < network->axes; d++)
        devices *= (double)MAX(network->axis[d].size, 1);
    return devices <= (double)MAX_AXIS_SIZE ||
           mtf_json_fail(where, error, "%g devices are more than the largest machine, %g", devices,
                         (double)MAX_AXIS_SIZE);
}

static bool read_axes(const MtfJson *list, MtfNetwork *network, GError **error) {
    if (!mtf_json_array(list, error))
        return false;
    int count = mtf_json_length(list);
    int most = MTF_NETWORK_AXES_MAX / 2;
    if (count < 1 || count > most)
        return mtf_json_fail(list, error, "%d axes are not between 1 and %d", count, most);
    MtfJson child;
    for (bool more = mtf_json_first(list, &child); more; more = mtf_json_next(&child)) {
        MtfNetworkAxis *axis = &network->axis[network->axes];
        axis->link = network->axes++;
        if (!(network->switched ? read_level(&child, axis, error) : read_axis(&child, axis, error)))
            return false;
    }
    return check_device_count(list, network, error);
}

static bool read_network(const MtfJson *root, MtfNetwork *network, GError **error) {
    MtfJson torus, levels;
    bool has_torus = mtf_json_find(root, "torus", &torus);
    bool has_levels = mtf_json_find(root, "levels", &levels);
    if (has_torus == has_levels)
        return mtf_json_fail(root, error, "exactly one of \"torus\" and \"levels\" is expected");
    network->switched = has_levels;
    return read_axes(has_torus ? &torus : &levels, network, error) &&
           mtf_figure_between(root, "message_seconds", 0, 1e3, &network->message_seconds, error);
}

static bool read_shape(const MtfJson *row, MtfSliceShapes *shapes, GError **error) {
    MtfJson child;
    int d = 0;
    if (!mtf_json_array(row, error))
        return false;
    if (mtf_json_length(row) != shapes->axes)
        return mtf_json_fail(row, error, "a size for each of the %d axes is expected here",
                             shapes->axes);
    for (bool more = mtf_json_first(row, &child); more; more = mtf_json_next(&child))
        if (!mtf_json_integer(&child, 1, MAX_AXIS_SIZE, &shapes->shape[shapes->shapes][d++], error))
            return false;
    shapes->shapes++;
    return true;
}

/* Sizes of the axes that are not whole. */
static bool read_shapes(const MtfJson *list, MtfMachine *machine, GError **error) {
    MtfSliceShapes *shapes = &machine->shapes;
    MtfJson row;
    for (int d = 0; d < machine->network.axes; d++)
        shapes->axes += machine->network.axis[d].undivided ? 0 : 1;
    if (!mtf_json_array(list, error))
        return false;
    if (mtf_json_length(list) > MTF_SLICE_SHAPES_MAX)
        return mtf_json_fail(list, error, "more than %d shapes", MTF_SLICE_SHAPES_MAX);
    for (bool more = mtf_json_first(list, &row); more; more = mtf_json_next(&row))
        if (!read_shape(&row, shapes, error))
            return false;
    return true;
}

static bool read_slices(const MtfJson *root, MtfMachine *machine, GError **error) {
    static const char *const keys[] = { "wrap_multiple", "wrap_cubes", "shapes",
                                        "cubes",         "largest",    NULL };
    MtfJson slices, shapes;
    int64_t multiple = 0;
    if (!mtf_json_find(root, "slices", &slices))
        return true;
    bool read =
        mtf_json_keys(&slices, keys, error) &&
        mtf_json_optional_integer(&slices, "wrap_multiple", 1, MAX_AXIS_SIZE, &multiple, error) &&
        mtf_json_optional_integer(&slices, "cubes", 1, MAX_AXIS_SIZE, &machine->shapes.cube,
                                  error) &&
        mtf_json_optional_integer(&slices, "largest", 1, MAX_AXIS_SIZE, &machine->shapes.largest,
                                  error) &&
        (!mtf_json_find(&slices, "shapes", &shapes) || read_shapes(&shapes, machine, error)) &&
        mtf_json_optional_boolean(&slices, "wrap_cubes", &machine->wrap_cubes, error);
    machine->wrap_multiple = (int)multiple;
    return read;
}

static bool read_device(const MtfJson *root, MtfMachine *machine, GError **error) {
    static const char *const keys[] = { "flops",          "memory_bytes",      "memory_bandwidth",
                                        "host_bandwidth", "host_memory_bytes", NULL };
    MtfJson device;
    return mtf_json_get(root, "device", &device, error) && mtf_json_keys(&device, keys, error) &&
           (machine->rates = mtf_figures_of_dtypes(&device, "flops", machine->rate,
                                                   MTF_MACHINE_RATES_MAX, error)) > 0 &&
           mtf_json_get_integer(&device, "memory_bytes", 1, MTF_JSON_MAX_INTEGER,
                                &machine->memory_bytes, error) &&
           mtf_figure_above_zero(&device, "memory_bandwidth", &machine->memory_bandwidth, error) &&
           mtf_figure_between(&device, "host_bandwidth", 1, 1e15, &machine->host_bandwidth,
                              error) &&
           mtf_json_optional_integer(&device, "host_memory_bytes", 1, MTF_JSON_MAX_INTEGER,
                                     &machine->host_memory_bytes, error);
}

static bool read_derates(const MtfJson *root, MtfMachine *machine, GError **error) {
    static const char *const keys[] = { "links", "flops", "memory", "network", NULL };
    MtfJson derates;
    if (!mtf_json_find(root, "derates", &derates))
        return true;
    return mtf_json_keys(&derates, keys, error) &&
           mtf_figure_between(&derates, "links", 1e-6, 1, &machine->derate.links, error) &&
           mtf_figure_between(&derates, "flops", 1e-6, 1, &machine->derate.flops, error) &&
           mtf_figure_between(&derates, "memory", 1e-6, 1, &machine->derate.memory, error) &&
           mtf_figure_between(&derates, "network", 1e-6, 10, &machine->derate.network, error);
}

static bool read_overlap(const MtfJson *root, MtfMachine *machine, GError **error) {
    return mtf_json_optional_boolean(root, "overlap", &machine->overlap, error);
}

static bool read_point(const MtfJson *point, double *x, double *y, GError **error) {
    MtfJson first, second;
    if (!mtf_json_array(point, error))
        return false;
    if (mtf_json_length(point) != 2)
        return mtf_json_fail(point, error, "a pair [x, y] is expected here");
    mtf_json_first(point, &first);
    second = first;
    mtf_json_next(&second);
    return mtf_json_number(&first, x, error) && mtf_json_number(&second, y, error);
}

static bool add_point(const MtfJson *point, MtfMachineCurve *curve, GError **error) {
    int i = curve->points++;
    if (!read_point(point, &curve->x[i], &curve->y[i], error))
        return false;
    return (curve->x[i] >= 0 && curve->y[i] >= 0 && (i == 0 || curve->x[i] > curve->x[i - 1])) ||
           mtf_json_fail(point, error, "the points must not be negative and their x must rise");
}

static bool read_curve(const MtfJson *list, MtfMachine *machine, GError **error) {
    if (!mtf_json_array(list, error))
        return false;
    MtfMachineCurve *curve = g_new0(MtfMachineCurve, 1);
    curve->name = g_strdup(mtf_json_key(list));
    g_ptr_array_add(machine->curves, curve);
    int count = mtf_json_length(list);
    if (count == 0)
        return mtf_json_fail(list, error, "a table needs at least one point");
    curve->x = g_new0(double, count);
    curve->y = g_new0(double, count);
    MtfJson child;
    for (bool more = mtf_json_first(list, &child); more; more = mtf_json_next(&child))
        if (!add_point(&child, curve, error))
            return false;
    return true;
}

static bool read_curves(const MtfJson *root, MtfMachine *machine, GError **error) {
    MtfJson curves, child;
    if (!mtf_json_find(root, "curves", &curves))
        return true;
    if (!mtf_json_object(&curves, error))
        return false;
    for (bool more = mtf_json_first(&curves, &child); more; more = mtf_json_next(&child)) {
        MtfCurveName name;
        if (!mtf_curve_name_parse(mtf_json_key(&child), &name))
            return mtf_json_fail(&child, error,
                                 "\"%s\" is no table: KIND/RANKS, OPERATION/DTYPE, CLASS/DTYPE, "
                                 "product/DTYPE and product/DTYPE/MxN are",
                                 mtf_json_key(&child));
        if (!read_curve(&child, machine, error))
            return false;
    }
    return true;
}

static bool read_name_and_sources(const MtfJson *root, MtfMachine *machine, GError **error) {
    MtfJson sources;
    const char *name;
    if (!mtf_json_get_string(root, "name", &name, error) || !mtf_figure_sources(root, error))
        return false;
    machine->name = g_strdup(name);
    if (mtf_json_find(root, "sources", &sources))
        machine->sources = cJSON_Duplicate(sources.node, true);
    return true;
}

static bool read_bases(const MtfJson *transport, double *base, GError **error) {
    MtfJson list;
    return mtf_json_get(transport, "base", &list, error) &&
           mtf_figure_list(&list, 3,
                           "three numbers are expected here: seconds to start a collective in "
                           "the protocols LL, LL128 and Simple",
                           base, error);
}

static bool read_transport(const MtfJson *root, MtfMachineTransport *transport, GError **error) {
    static const char *const keys[] = { "library", "base", "in_switch", "in_training", NULL };
    MtfJson object, library;
    const char *name;
    if (!mtf_json_find(root, "transport", &object))
        return true;
    if (!mtf_json_keys(&object, keys, error) ||
        !mtf_json_get(&object, "library", &library, error) ||
        !mtf_json_string(&library, &name, error))
        return false;
    if (strcmp(name, "nccl") != 0)
        return mtf_json_fail(&library, error, "\"%s\" is no library of collectives: nccl is", name);
    transport->nccl = true;
    return read_bases(&object, transport->base, error) &&
           mtf_figure_between(&object, "in_switch", 0, 4, &transport->in_switch, error) &&
           mtf_figure_between(&object, "in_training", 1, 10, &transport->in_training, error);
}

static bool read_judged(const MtfJson *root, const char *key, MtfJudged *judged, GError **error) {
    static const char *const keys[] = { "runs", "error", NULL };
    MtfJson object;
    return !mtf_json_find(root, key, &object) ||
           (mtf_json_keys(&object, keys, error) &&
            mtf_json_get_integer(&object, "runs", 1, MAX_AXIS_SIZE, &judged->runs, error) &&
            mtf_figure_between(&object, "error", 0, 10, &judged->error, error));
}

static bool read_precision(const MtfJson *root, MtfMachine *machine, GError **error) {
    MtfJson precision;
    MtfDtype dtype;
    const char *name;
    if (!mtf_json_find(root, "precision", &precision))
        return true;
    if (!mtf_json_string(&precision, &name, error))
        return false;
    if (!mtf_dtype_from_name(name, &dtype) || !mtf_dtype_is_float(dtype))
        return mtf_json_fail(&precision, error, "\"%s\" must be f32, f64 or bf16", name);
    g_strlcpy(machine->precision, mtf_dtype_short_name(dtype), sizeof machine->precision);
    return true;
}

static bool read_between_slices(const MtfJson *root, MtfSliceNetwork *between, GError **error) {
    static const char *const keys[] = { "bandwidth", "latency", NULL };
    MtfJson object;
    return !mtf_json_find(root, "between_slices", &object) ||
           (mtf_json_keys(&object, keys, error) &&
            mtf_figure_above_zero(&object, "bandwidth", &between->bandwidth, error) &&
            mtf_figure_between(&object, "latency", 0, 1e3, &between->latency, error));
}

static bool read_software(const MtfJson *root, MtfMachine *machine, GError **error) {
    MtfJson software;
    if (!mtf_json_find(root, "software", &software))
        return true;
    machine->software = mtf_software_from_json(&software, error);
    return machine->software != NULL;
}

static bool read_machine(const MtfJson *root, MtfMachine *machine, GError **error) {
    static const char *const keys[] = { "meshtf_machine",
                                        "name",
                                        "torus",
                                        "levels",
                                        "slices",
                                        "device",
                                        "derates",
                                        "message_seconds",
                                        "overlap",
                                        "curves",
                                        "sources",
                                        "kernels",
                                        "transport",
                                        "judged",
                                        "between_slices",
                                        "precision",
                                        "software",
                                        "judged_inference",
                                        NULL };
    return mtf_json_version(root, "meshtf_machine", 1, error) && mtf_json_keys(root, keys, error) &&
           read_name_and_sources(root, machine, error) &&
           read_network(root, &machine->network, error) && read_slices(root, machine, error) &&
           read_device(root, machine, error) && read_derates(root, machine, error) &&
           mtf_kernel_rates_read(root, &machine->kernels, error) &&
           read_transport(root, &machine->transport, error) &&
           read_between_slices(root, &machine->between_slices, error) &&
           read_judged(root, "judged", &machine->judged, error) &&
           read_judged(root, "judged_inference", &machine->judged_inference, error) &&
           read_precision(root, machine, error) && read_overlap(root, machine, error) &&
           read_curves(root, machine, error) && read_software(root, machine, error);
}

MtfMachine *mtf_machine_from_json(const MtfJson *where, GError **error) {
    MtfMachine *machine = mtf_machine_new();
    if (read_machine(where, machine, error))
        return machine;
    mtf_machine_free(machine);
    return NULL;
}

MtfMachine *mtf_machine_load(const char *name_or_path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_library_load("machines", name_or_path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_machine_from_json(&root, error);
}

/* Software. */

double mtf_machine_step_seconds(const MtfMachine *machine) {
    return machine->software != NULL ? machine->software->step_seconds : 0;
}

static const char *usual_software(const MtfMachine *machine) {
    if (!machine->kernels.known)
        return MTF_OWN_SOFTWARE;
    if (machine->transport.nccl)
        return "megatron-core";
    return machine->network.switched ? MTF_OWN_SOFTWARE : "maxtext";
}

const char *mtf_machine_software_name(const MtfMachine *machine) {
    return machine->software != NULL ? machine->software->name : MTF_OWN_SOFTWARE;
}

bool mtf_machine_set_software(MtfMachine *machine, const char *name_or_path, GError **error) {
    const char *name = name_or_path != NULL ? name_or_path : usual_software(machine);
    g_autoptr(MtfSoftware) software = mtf_software_load(name, error);
    if (software == NULL)
        return false;
    g_clear_pointer(&machine->software, mtf_software_free);
    if (strcmp(software->name, MTF_OWN_SOFTWARE) != 0)
        machine->software = g_steal_pointer(&software);
    return true;
}

/* Writing. */

static cJSON *axis_to_json(const MtfNetworkAxis *axis, bool switched) {
    cJSON *object = cJSON_CreateObject();
    if (axis->size > 0)
        mtf_json_add_integer(object, "size", axis->size);
    if (!switched)
        cJSON_AddBoolToObject(object, "wrap", axis->wrap);
    double linked = axis->pair * (double)(axis->size - 1);
    bool full = axis->pair > 0 && linked <= axis->bandwidth && linked >= axis->bandwidth;
    mtf_json_add_number(object, "bandwidth", full ? axis->pair : axis->bandwidth);
    mtf_json_add_number(object, "latency", axis->latency);
    if (full)
        cJSON_AddTrueToObject(object, "full_mesh");
    else if (axis->pair > 0)
        mtf_json_add_number(object, "link", axis->pair);
    if (axis->undivided)
        cJSON_AddTrueToObject(object, "undivided");
    return object;
}

static void add_network(cJSON *root, const MtfNetwork *network) {
    cJSON *axes = cJSON_AddArrayToObject(root, network->switched ? "levels" : "torus");
    for (int d = 0; d < network->axes; d++)
        cJSON_AddItemToArray(axes, axis_to_json(&network->axis[d], network->switched));
    if (network->message_seconds > 0)
        mtf_json_add_number(root, "message_seconds", network->message_seconds);
}

static void add_shapes(cJSON *slices, const MtfSliceShapes *shapes) {
    cJSON *list = shapes->shapes > 0 ? cJSON_AddArrayToObject(slices, "shapes") : NULL;
    for (int i = 0; i < shapes->shapes; i++) {
        cJSON *row = cJSON_CreateArray();
        for (int d = 0; d < shapes->axes; d++)
            cJSON_AddItemToArray(row, mtf_json_new_integer(shapes->shape[i][d]));
        cJSON_AddItemToArray(list, row);
    }
    if (shapes->cube > 0)
        mtf_json_add_integer(slices, "cubes", shapes->cube);
    if (shapes->largest > 0)
        mtf_json_add_integer(slices, "largest", shapes->largest);
}

static void add_slices(cJSON *root, const MtfMachine *machine) {
    const MtfSliceShapes *shapes = &machine->shapes;
    if (machine->wrap_multiple == 0 && !machine->wrap_cubes && shapes->shapes == 0 &&
        shapes->cube == 0 && shapes->largest == 0)
        return;
    cJSON *slices = cJSON_AddObjectToObject(root, "slices");
    if (machine->wrap_multiple > 0)
        mtf_json_add_integer(slices, "wrap_multiple", machine->wrap_multiple);
    cJSON_AddBoolToObject(slices, "wrap_cubes", machine->wrap_cubes);
    add_shapes(slices, shapes);
}

static void add_device(cJSON *root, const MtfMachine *machine) {
    cJSON *device = cJSON_AddObjectToObject(root, "device");
    cJSON *flops = cJSON_AddObjectToObject(device, "flops");
    for (int i = 0; i < machine->rates; i++)
        mtf_json_add_number(flops, machine->rate[i].dtype, machine->rate[i].value);
    mtf_json_add_integer(device, "memory_bytes", machine->memory_bytes);
    mtf_json_add_number(device, "memory_bandwidth", machine->memory_bandwidth);
    if (machine->host_bandwidth > 0)
        mtf_json_add_number(device, "host_bandwidth", machine->host_bandwidth);
    if (machine->host_memory_bytes > 0)
        mtf_json_add_integer(device, "host_memory_bytes", machine->host_memory_bytes);
    cJSON *derates = cJSON_AddObjectToObject(root, "derates");
    mtf_json_add_number(derates, "links", machine->derate.links);
    mtf_json_add_number(derates, "flops", machine->derate.flops);
    mtf_json_add_number(derates, "memory", machine->derate.memory);
    if (machine->derate.network < 1 || machine->derate.network > 1)
        mtf_json_add_number(derates, "network", machine->derate.network);
}

static void add_curves(cJSON *root, const MtfMachine *machine) {
    if (machine->curves->len == 0)
        return;
    cJSON *curves = cJSON_AddObjectToObject(root, "curves");
    for (guint i = 0; i < machine->curves->len; i++) {
        const MtfMachineCurve *curve = machine->curves->pdata[i];
        cJSON *list = cJSON_AddArrayToObject(curves, curve->name);
        for (int k = 0; k < curve->points; k++) {
            cJSON *point = cJSON_CreateArray();
            cJSON_AddItemToArray(point, mtf_json_new_number(curve->x[k]));
            cJSON_AddItemToArray(point, mtf_json_new_number(curve->y[k]));
            cJSON_AddItemToArray(list, point);
        }
    }
}

static void add_transport(cJSON *root, const MtfMachine *machine) {
    const MtfMachineTransport *transport = &machine->transport;
    if (transport->nccl) {
        cJSON *object = cJSON_AddObjectToObject(root, "transport");
        cJSON_AddStringToObject(object, "library", "nccl");
        cJSON *base = cJSON_AddArrayToObject(object, "base");
        for (int i = 0; i < 3; i++)
            cJSON_AddItemToArray(base, mtf_json_new_number(transport->base[i]));
        mtf_json_add_number(object, "in_switch", transport->in_switch);
        mtf_json_add_number(object, "in_training", transport->in_training);
    }
    if (machine->between_slices.bandwidth > 0) {
        cJSON *object = cJSON_AddObjectToObject(root, "between_slices");
        mtf_json_add_number(object, "bandwidth", machine->between_slices.bandwidth);
        mtf_json_add_number(object, "latency", machine->between_slices.latency);
    }
}

static void add_judged(cJSON *root, const char *key, const MtfJudged *judged) {
    if (judged->runs == 0)
        return;
    cJSON *object = cJSON_AddObjectToObject(root, key);
    mtf_json_add_integer(object, "runs", judged->runs);
    mtf_json_add_number(object, "error", judged->error);
}

cJSON *mtf_machine_to_json(const MtfMachine *machine) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_integer(root, "meshtf_machine", 1);
    cJSON_AddStringToObject(root, "name", machine->name);
    add_network(root, &machine->network);
    add_slices(root, machine);
    add_device(root, machine);
    if (machine->kernels.known)
        cJSON_AddItemToObject(root, "kernels", mtf_kernel_rates_to_json(&machine->kernels));
    add_transport(root, machine);
    add_judged(root, "judged", &machine->judged);
    add_judged(root, "judged_inference", &machine->judged_inference);
    if (machine->overlap)
        cJSON_AddTrueToObject(root, "overlap");
    if (*machine->precision != '\0')
        cJSON_AddStringToObject(root, "precision", machine->precision);
    add_curves(root, machine);
    if (machine->software != NULL)
        cJSON_AddItemToObject(root, "software", cJSON_Duplicate(machine->software->written, true));
    if (machine->sources != NULL)
        cJSON_AddItemToObject(root, "sources", cJSON_Duplicate(machine->sources, true));
    return root;
}

/* Rates. */

/* The figure of `dtype`, or NULL. */
static const double *find_rate(const MtfMachine *machine, const char *dtype) {
    for (int i = 0; i < machine->rates; i++)
        if (strcmp(machine->rate[i].dtype, dtype) == 0)
            return &machine->rate[i].value;
    return NULL;
}

bool mtf_machine_names_rate(const MtfMachine *machine, const char *dtype) {
    return find_rate(machine, dtype) != NULL;
}

const char *mtf_machine_multiplied_type(const MtfMachine *machine, const char *dtype) {
    if (strcmp(dtype, "bf16") != 0 || find_rate(machine, dtype) != NULL)
        return dtype;
    return find_rate(machine, "fp16") != NULL ? "fp16" : "f32";
}

double mtf_machine_peak_flops(const MtfMachine *machine, const char *dtype) {
    const double *rate = find_rate(machine, mtf_machine_multiplied_type(machine, dtype));
    if (rate != NULL)
        return *rate;
    double slowest = machine->rate[0].value;
    for (int i = 1; i < machine->rates; i++)
        slowest = MIN(slowest, machine->rate[i].value);
    return slowest;
}

double mtf_machine_flops(const MtfMachine *machine, const char *dtype) {
    return mtf_machine_peak_flops(machine, dtype) * machine->derate.flops;
}

MtfPeaks mtf_machine_peaks(const MtfMachine *machine, const char *dtype) {
    const char *multiplied = mtf_machine_multiplied_type(machine, dtype);
    return (MtfPeaks){ multiplied, mtf_machine_flops(machine, dtype),
                       mtf_machine_memory_bandwidth(machine) };
}

double mtf_machine_memory_bandwidth(const MtfMachine *machine) {
    return machine->memory_bandwidth * machine->derate.memory;
}

void mtf_machine_add_curve(MtfMachine *machine, const char *name, int points, const double *x,
                           const double *y) {
    for (guint i = 0; i < machine->curves->len; i++)
        if (strcmp(((MtfMachineCurve *)machine->curves->pdata[i])->name, name) == 0) {
            g_ptr_array_remove_index(machine->curves, i);
            break;
        }
    MtfMachineCurve *curve = g_new0(MtfMachineCurve, 1);
    curve->name = g_strdup(name);
    curve->points = points;
    curve->x = g_memdup2(x, sizeof *x * (gsize)points);
    curve->y = g_memdup2(y, sizeof *y * (gsize)points);
    g_ptr_array_add(machine->curves, curve);
}

const MtfMachineCurve *mtf_machine_curve(const MtfMachine *machine, const char *name) {
    for (guint i = 0; i < machine->curves->len; i++) {
        const MtfMachineCurve *curve = machine->curves->pdata[i];
        if (strcmp(curve->name, name) == 0)
            return curve;
    }
    return NULL;
}

double mtf_machine_curve_at(const MtfMachineCurve *curve, double x) {
    int last = curve->points - 1;
    if (last == 0 || x <= curve->x[0])
        return curve->y[0];
    int i = 1;
    while (i < last && curve->x[i] < x)
        i++;
    double slope = (curve->y[i] - curve->y[i - 1]) / (curve->x[i] - curve->x[i - 1]);
    return MAX(curve->y[i - 1] + slope * (x - curve->x[i - 1]), 0);
}
