# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for DTensor: placements, and tensors that are shapes."""


class Placement:
    def is_partial(self):
        return isinstance(self, Partial)


class Replicate(Placement):
    pass


class Partial(Placement):
    def __init__(self, op="sum"):
        assert op in ("sum", "max")


class Shard(Placement):
    def __init__(self, dim):
        assert isinstance(dim, int) and dim >= 0
        self.dim = dim


class DTensor:
    def __init__(self, shape):
        self.shape = shape

    def redistribute(self, mesh, placements):
        return distribute_tensor(self, mesh, placements)


def distribute_tensor(tensor, mesh, placements):
    assert len(placements) == len(mesh.shape)
    left = list(tensor.shape)
    for parts, placement in zip(mesh.shape, placements):
        assert isinstance(placement, Placement) and not placement.is_partial()
        if isinstance(placement, Shard):
            assert left[placement.dim] % parts == 0
            left[placement.dim] //= parts
    return tensor
