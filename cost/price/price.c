// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/price.h"

#include "cost/price/exchange_price.h"
#include "cost/price/software_price.h"

#include <math.h>

#define MOST_NANOSECONDS 1e15

bool mtf_pricer_init(MtfPricer *pricer, const MtfMachine *machine, const MtfMesh *mesh,
                     GError **error) {
    int64_t sizes[MTF_MAX_MESH_AXES];
    for (int a = 0; a < mesh->n_axes; a++)
        sizes[a] = mesh->axes[a].size;
    if (!mtf_mesh_map_init(&pricer->map, machine, mesh->n_axes, sizes, error))
        return false;
    pricer->machine = machine;
    pricer->memory_bandwidth = mtf_machine_memory_bandwidth(machine);
    for (int dtype = 0; dtype < MTF_DTYPES; dtype++)
        pricer->rate[dtype] = mtf_machine_flops(machine, mtf_dtype_short_name((MtfDtype)dtype));
    return mtf_kernel_curves_init(&pricer->curves, machine, error);
}

/* What is multiplied, not what the sums are kept in; of a resharding what is moved. */
static MtfDtype kernel_dtype(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfOperation *operation = mtf_graph_operation(program->graph, instruction->operation);
    MtfDtype dtype = instruction->kind == MTF_INSTRUCTION_RESHARD
                         ? mtf_reshard_tensor(program, instruction)->dtype
                         : mtf_operation_storage_dtype(program->graph, operation);
    return mtf_dtype_is_float(dtype) ? dtype : MTF_F32;
}

static double kernel_rate(const MtfPricer *pricer, const MtfInstruction *instruction,
                          MtfDtype dtype) {
    double rate = pricer->rate[dtype];
    if (instruction->kernel_class != MTF_CLASS_MATMUL || instruction->traffic_bytes <= 0)
        return rate;
    double b = (double)mtf_dtype_bytes(dtype);
    double whole = 1.5 * b * instruction->flops / instruction->traffic_bytes;
    double h = instruction->block_side > 0 ? fmin(instruction->block_side, whole) : whole;
    return rate * h / (h + MTF_HALF_RATE_SIDE);
}

/* Which of a device's rates of passes over memory a kernel runs at. */
static MtfSweep sweep_of(const MtfProgram *program, const MtfInstruction *instruction) {
    if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
        mtf_graph_operation(program->graph, instruction->operation)->phase == MTF_PHASE_UPDATE)
        return MTF_SWEEP_UPDATE;
    switch (instruction->kernel_class) {
    case MTF_CLASS_REDUCTION:
        return MTF_SWEEP_ROWS;
    case MTF_CLASS_GATHER:
        return MTF_SWEEP_GATHER;
    default:
        return MTF_SWEEP_ELEMENTWISE;
    }
}

/* Launches are the machine's, of those kernels that the software starts. */
static double launch_seconds(const MtfPricer *pricer, const MtfProgram *program,
                             const MtfInstruction *instruction) {
    const MtfKernelRates *rates = &pricer->machine->kernels;
    const MtfSoftware *software = pricer->machine->software;
    return mtf_software_kernels(software, program, instruction) *
               (rates->known ? rates->launch_seconds : MTF_KERNEL_SECONDS) +
           mtf_software_blocked_seconds(software, program, instruction);
}

/* The few channels of pictures are multiplied as if they were filled up to 8 bytes, and by kernels
 * without the matrix units' loads nevertheless. */
static double filled_channels(double channels, double bytes) {
    return channels > 0 ? ceil(channels * bytes / 8) * 8 / bytes / channels : 1;
}

/* Of a convolution both sides' channels lie in rows; of other products the first matrix' rows, or its
 * columns where it is read transposed, and the result's. */
static MtfProductShape product_shape(const MtfPricer *pricer, const MtfInstruction *instruction,
                                     double whole) {
    const MtfProductWork *work = &instruction->products;
    const MtfSoftware *software = pricer->machine->software;
    bool windows = work->channels[0] > 0;
    double elements = work->calls * (work->m * work->k + work->k * work->n + work->m * work->n);
    /* Windows read their elements again and again, but not from memory. */
    double bytes = windows ? instruction->traffic_bytes : elements * whole - work->spared_bytes;
    MtfProductShape shape = { work->calls, work->m, work->n, work->k, bytes / elements, 0 };
    double first = windows ? work->channels[0] : work->form == MTF_PRODUCT_TN ? work->m : work->k;
    double second = windows ? work->channels[1] : work->n;
    if ((software == NULL || !software->pads) && mtf_rows_are_unaligned(first, second, whole)) {
        shape.traits = MTF_PRODUCT_UNALIGNED;
        shape.k *= filled_channels(work->channels[0], whole);
        shape.n *= filled_channels(work->channels[1], whole);
    }
    return shape;
}

/* By what kernels of the device reach (kernel_rates.h): a batch of products and the passes beside
 * them, fused attention, or a pass over memory. */
static double rated_seconds(const MtfPricer *pricer, const MtfProgram *program,
                            const MtfInstruction *instruction, MtfDtype dtype, double traffic) {
    const MtfKernelRates *rates = &pricer->machine->kernels;
    const MtfProductWork *work = &instruction->products;
    MtfPeaks peaks = mtf_machine_peaks(pricer->machine, mtf_dtype_short_name(dtype));
    if (work->calls <= 0 || instruction->flops <= 0)
        return fmax(mtf_sweep_seconds(rates, &peaks, sweep_of(program, instruction), traffic),
                    mtf_software_pooling_seconds(pricer->machine, program, instruction));
    if (work->form == MTF_PRODUCT_ATTENTION || work->form == MTF_PRODUCT_ATTENTION_GRAD)
        return mtf_software_attention_seconds(pricer->machine, program, instruction, &peaks,
                                              traffic);
    MtfProductShape shape = product_shape(pricer, instruction, (double)mtf_dtype_bytes(dtype));
    return mtf_product_seconds(rates, &peaks, &shape) +
           mtf_sweep_seconds(rates, &peaks, MTF_SWEEP_ELEMENTWISE, work->swept_bytes);
}

/* Products were measured with all three matrices of one type: a narrower one takes less from memory, and
 * no product is faster than its bytes. */
static double spared_seconds(const MtfPricer *pricer, const MtfInstruction *instruction,
                             double seconds) {
    double spared = instruction->products.spared_bytes;
    double least = fmin(seconds, instruction->traffic_bytes / pricer->memory_bandwidth);
    return spared > 0 ? fmax(seconds - spared / pricer->memory_bandwidth, least) : seconds;
}

/* A copy between the device's memory and the host's, which its engine does and no kernel. */
static double host_copy_seconds(const MtfPricer *pricer, const MtfProgram *program, int index) {
    const MtfKernelRates *rates = &pricer->machine->kernels;
    return (double)mtf_instruction_host_bytes(program, index, -1) /
               pricer->machine->host_bandwidth +
           (rates->known ? rates->launch_seconds : MTF_KERNEL_SECONDS);
}

/* Casts beside a kernel, passes over memory of their own. */
static double cast_seconds(const MtfPricer *pricer, const MtfProgram *program,
                           const MtfInstruction *instruction) {
    double bytes = mtf_software_cast_bytes(pricer->machine->software, program, instruction);
    MtfPeaks peaks = mtf_machine_peaks(pricer->machine, mtf_dtype_short_name(MTF_F32));
    if (bytes <= 0 || !pricer->machine->kernels.known)
        return bytes / pricer->memory_bandwidth;
    return mtf_sweep_seconds(&pricer->machine->kernels, &peaks, MTF_SWEEP_ELEMENTWISE, bytes);
}

static double kernel_seconds(const MtfPricer *pricer, const MtfProgram *program,
                             const MtfInstruction *instruction) {
    MtfDtype dtype = kernel_dtype(program, instruction);
    double seconds;
    if (mtf_software_leaves_out(pricer->machine->software, program, instruction))
        return 0;
    if (mtf_kernel_curves_seconds(&pricer->curves, program, instruction, dtype, &seconds))
        return spared_seconds(pricer, instruction, seconds);
    double traffic = mtf_software_traffic(pricer->machine->software, program, instruction);
    double moving = traffic / pricer->memory_bandwidth;
    double launch =
        launch_seconds(pricer, program, instruction) + cast_seconds(pricer, program, instruction);
    if (pricer->machine->kernels.known)
        return launch + rated_seconds(pricer, program, instruction, dtype, traffic);
    if (instruction->flops <= 0)
        return moving + launch;
    double computing = instruction->flops / kernel_rate(pricer, instruction, dtype);
    return fmax(moving, computing) + launch;
}

/* What it takes to lay a collective's pieces together and apart: where copies were measured, for
 * several tensors that travel together, and for halos, which copy what lies between them as well. */
static double packing_seconds(const MtfPricer *pricer, const MtfProgram *program,
                              const MtfInstruction *instruction) {
    MtfDtype dtype = kernel_dtype(program, instruction);
    double seconds = 0;
    if (instruction->traffic_bytes > 0 &&
        !mtf_kernel_curves_seconds(&pricer->curves, program, instruction, dtype, &seconds) &&
        (instruction->n_inputs > 1 || mtf_reshard_row(instruction->reshard.kind)->margins))
        seconds = instruction->traffic_bytes / pricer->memory_bandwidth + MTF_KERNEL_SECONDS;
    return seconds;
}

bool mtf_reshard_collective_kind(MtfReshardKind reshard, MtfCollectiveKind *kind) {
    static const MtfCollectiveKind kinds[MTF_RESHARD_KINDS] = {
        [MTF_RESHARD_ALLREDUCE] = MTF_ALLREDUCE, [MTF_RESHARD_REDUCE_SCATTER] = MTF_REDUCE_SCATTER,
        [MTF_RESHARD_ALLGATHER] = MTF_ALLGATHER, [MTF_RESHARD_ALLTOALL] = MTF_ALLTOALL,
        [MTF_RESHARD_HALO] = MTF_HALO,           [MTF_RESHARD_PERMUTE] = MTF_PERMUTE,
    };
    *kind = kinds[reshard];
    return mtf_reshard_row(reshard)->collective;
}

bool mtf_instruction_collective_kind(const MtfInstruction *instruction, MtfCollectiveKind *kind) {
    return mtf_instruction_is_collective(instruction) &&
           mtf_reshard_collective_kind(instruction->reshard.kind, kind);
}

double mtf_instruction_message_bytes(const MtfInstruction *instruction) {
    const MtfReshardRow *row = mtf_reshard_row(instruction->reshard.kind);
    return (double)(row->margins && !row->turns ? instruction->side_bytes
                                                : instruction->payload_bytes);
}

/* How many processors on what turns by some elements goes, the shorter way round. */
static int64_t places_on(const MtfProgram *program, const MtfReshardOp *permute) {
    const MtfAttributes *a =
        &mtf_graph_operation(program->graph, permute->reader.operation)->attributes;
    int64_t ranks = mtf_mesh_group_size(&program->layout->mesh, permute->axes);
    double size = (double)mtf_graph_size(program->graph, a->from);
    double by = a->start - size * floor(a->start / size);
    return MAX(1, (int64_t)ceil(fmin(by, size - by) * (double)ranks / size));
}

/* What a halo takes beyond neighbours, as if all of it went to the farthest. */
static double far_seconds(const MtfPricer *pricer, const MtfInstruction *halo) {
    return mtf_permute_seconds(pricer->machine, &pricer->map, halo->reshard.axes,
                               (double)halo->payload_bytes, halo->places);
}

/* By the algorithm that it names, as measured or by its formula; direct ones, and those that have
 * neither, by a measured table or the cheapest there is. */
static double exchange_seconds(const MtfPricer *pricer, const MtfProgram *program,
                               const MtfInstruction *instruction, MtfCollectiveKind kind) {
    const MtfSoftware *software = pricer->machine->software;
    if (mtf_software_sums_whole(software, program, instruction))
        kind = MTF_ALLREDUCE;
    MtfGroupCollective exchange = { .kind = kind,
                                    .axes = instruction->reshard.axes,
                                    .bytes =
                                        mtf_instruction_message_bytes(instruction) *
                                        mtf_software_sent_share(software, program, instruction) };
    MtfExchangeAlgorithm algorithm = instruction->algorithm;
    double seconds;
    if (algorithm != MTF_EXCHANGE_DIRECT &&
        (mtf_exchange_measured(pricer->machine, &pricer->map, algorithm, &exchange, &seconds) ||
         mtf_exchange_seconds(&pricer->map, algorithm, &exchange, &seconds)))
        return seconds;
    if (kind == MTF_PERMUTE)
        return mtf_permute_seconds(pricer->machine, &pricer->map, exchange.axes, exchange.bytes,
                                   places_on(program, &instruction->reshard));
    seconds =
        mtf_collective_seconds(pricer->machine, &pricer->map, kind, exchange.axes, exchange.bytes);
    return instruction->places > 1 ? fmax(seconds, far_seconds(pricer, instruction)) : seconds;
}

static double seconds_of(const MtfPricer *pricer, const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    MtfCollectiveKind kind;
    if (mtf_instruction_collective_kind(instruction, &kind))
        return (packing_seconds(pricer, program, instruction) +
                exchange_seconds(pricer, program, instruction, kind) +
                mtf_software_blocked_seconds(pricer->machine->software, program, instruction)) *
               mtf_software_times(pricer->machine->software, program, instruction);
    if (mtf_instruction_host_copy(program, index) != MTF_HOST_NOTHING)
        return host_copy_seconds(pricer, program, index);
    return kernel_seconds(pricer, program, instruction) *
           mtf_software_times(pricer->machine->software, program, instruction);
}

int64_t mtf_price_device(const MtfPricer *pricer, const MtfProgram *program, int index) {
    return llround(fmin(seconds_of(pricer, program, index) * 1e9, MOST_NANOSECONDS));
}

int64_t mtf_price_host(const MtfPricer *pricer, const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    return llround(1e9 *
                   mtf_software_host_seconds(pricer->machine->software, program, instruction));
}

int64_t mtf_price_instruction(const MtfPricer *pricer, const MtfProgram *program, int index) {
    int64_t device = mtf_price_device(pricer, program, index);
    return pricer->machine->software == NULL ? device
                                             : MAX(device, mtf_price_host(pricer, program, index));
}

int64_t mtf_price_program(const MtfPricer *pricer, const MtfProgram *program) {
    int64_t sum = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        sum += mtf_program_times(program, i) * mtf_price_instruction(pricer, program, i);
    return sum;
}

/* Nanoseconds that a kernel takes at least when the processors share it, rounding left aside. Where
 * kernels were measured, and of what others' do, nothing is said. */
static int64_t kernel_floor(const MtfPricer *pricer, const MtfProgram *program,
                            const MtfInstruction *instruction, int processors) {
    MtfDtype dtype = kernel_dtype(program, instruction);
    double measured, share = instruction->flops / processors;
    if (mtf_kernel_curves_seconds(&pricer->curves, program, instruction, dtype, &measured) ||
        mtf_software_leaves_out(pricer->machine->software, program, instruction))
        return 0;
    bool rated = pricer->machine->kernels.known;
    double launch = rated ? pricer->machine->kernels.launch_seconds : MTF_KERNEL_SECONDS;
    if (pricer->machine->software != NULL)
        launch = 0;
    double seconds = share / pricer->rate[dtype] + launch;
    return (int64_t)floor(fmin(seconds * 1e9 * (1 - 1e-9), MOST_NANOSECONDS));
}

int64_t mtf_price_floor(const MtfPricer *pricer, const MtfGraph *graph, const MtfMesh *mesh) {
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    int64_t sum = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL)
            sum += mtf_program_times(program, i) *
                   kernel_floor(pricer, program, instruction, mtf_mesh_size(mesh));
    }
    return sum;
}
