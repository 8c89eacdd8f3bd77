# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes, specs and shardings that check themselves."""


import enum

AxisType = enum.Enum("AxisType", ["Auto", "Explicit", "Manual"])


class Mesh:
    def __init__(self, shape, names, axis_types):
        assert len(axis_types) == len(names)
        self.size, self.axis_types = dict(zip(names, shape)), axis_types


class PartitionSpec:
    def __init__(self, *entries):
        for entry in entries:
            names = entry if isinstance(entry, tuple) else (entry,)
            assert all(name is None or isinstance(name, str) for name in names)
        self.entries = entries


class NamedSharding:
    def __init__(self, mesh, spec):
        used = [n for e in spec.entries if e for n in (e if isinstance(e, tuple) else (e,))]
        assert len(used) == len(set(used)) and all(n in mesh.size for n in used)
        self.mesh, self.spec = mesh, spec

    def check(self, shape):
        """A shape stands for an array: as many entries as dimensions, each divided evenly."""
        assert len(shape) == len(self.spec.entries)
        for size, entry in zip(shape, self.spec.entries):
            for name in entry if isinstance(entry, tuple) else (entry,):
                parts = self.mesh.size[name] if name else 1
                assert size % parts == 0
                size //= parts
