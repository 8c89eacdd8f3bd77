// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_pass.h"

void mtf_stage_pass_range(const MtfStagePass *pass, int from, int to) {
    const MtfStageLook *look = pass->look;
    if (look != NULL && from <= look->before && look->before < to) {
        mtf_executor_run(pass->executor, from, look->before, pass->step);
        look->seen(pass->executor->worker, look->user);
        from = look->before;
    }
    mtf_executor_run(pass->executor, from, to, pass->step);
}

int mtf_stage_pass_event(const MtfStagePass *pass, int event, int from) {
    int before = mtf_stage_transfers_event(pass->transfers, event)->before;
    MtfWorker *worker = pass->executor->worker;
    if (before > from)
        mtf_stage_pass_range(pass, from, before);
    mtf_stage_transfer_do(pass->transfers, event, worker, pass->slot, worker->microbatch);
    return MAX(from, before);
}

void mtf_stage_pass_run(const MtfStagePass *pass, MtfStagePart first, MtfStagePart last,
                        const MtfRange *instructions) {
    int from = (int)instructions->begin;
    for (int e = 0; e < mtf_stage_transfers_count(pass->transfers); e++) {
        MtfStagePart part = mtf_stage_transfers_event(pass->transfers, e)->part;
        if (part >= first && part <= last)
            from = mtf_stage_pass_event(pass, e, from);
    }
    mtf_stage_pass_range(pass, from, (int)instructions->end);
}
