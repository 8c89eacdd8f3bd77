# SPDX-License-Identifier: GPL-3.0-or-later
"""What meshtf-run --init reads, of arrays; no library is taken in before those who use it have set their threads."""
import json
import struct


def write_weights(path, arrays, dtype="F32"):
    """A safetensors file of {name: numpy array}, all in that type."""
    header, blocks, offset = {}, [], 0
    for name, array in arrays.items():
        block = array.astype({"F32": "<f4", "F64": "<f8"}[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(block)]}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))
