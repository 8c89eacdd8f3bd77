// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/reshard_table.h"

static const MtfReshardRow rows[MTF_RESHARD_KINDS] = {
    [MTF_RESHARD_COPY] = { .name = "copy", .copies = true },
    [MTF_RESHARD_SLICE] = { .name = "slice" },
    [MTF_RESHARD_CONCEAL] = { .name = "conceal", .in_place = true },
    [MTF_RESHARD_ALLREDUCE] = { .name = "allreduce",
                                .collective = true,
                                .reduces = true,
                                .gathers = true,
                                .in_place = true },
    [MTF_RESHARD_REDUCE_SCATTER] = { .name = "reduce-scatter",
                                     .collective = true,
                                     .reduces = true },
    [MTF_RESHARD_ALLGATHER] = { .name = "allgather", .collective = true, .gathers = true },
    [MTF_RESHARD_ALLTOALL] = { .name = "all-to-all", .collective = true, .exchanges = true },
    [MTF_RESHARD_HALO] = { .name = "halo", .collective = true, .margins = true },
    [MTF_RESHARD_PERMUTE] = { .name = "permute",
                              .collective = true,
                              .margins = true,
                              .turns = true },
};

const MtfReshardRow *mtf_reshard_row(MtfReshardKind kind) {
    return &rows[kind];
}
