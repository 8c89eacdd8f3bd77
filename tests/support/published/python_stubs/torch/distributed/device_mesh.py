# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for PyTorch's device meshes."""


class DeviceMesh:
    def __init__(self, kind, shape, mesh_dim_names):
        assert kind == "cuda" and len(shape) == len(mesh_dim_names)
        self.shape = shape


def init_device_mesh(kind, shape, *, mesh_dim_names):
    assert isinstance(shape, tuple) and isinstance(mesh_dim_names, tuple)
    return DeviceMesh(kind, shape, mesh_dim_names)
