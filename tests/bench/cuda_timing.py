# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds of a call by events of one CUDA device, and a call as a captured graph."""
import statistics

import torch


def seconds_of(call, times=20):
    call()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    taken = []
    for _ in range(times):
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        taken.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(taken)


def captured(call):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay
