# SPDX-License-Identifier: GPL-3.0-or-later
"""onnx_stages.py MODEL: the stage of every node of an ONNX file (None without one) and the devices that its tensors lie
on, read from the bytes alone: a line "STAGE DEVICE,DEVICE..." for each pair that occurs, and first "devices N".
Field numbers are those of onnx.in.proto (ModelProto.graph 7, configuration 26; NodeProto.device_configurations
10; NodeDeviceConfigurationProto.sharding_spec 2, pipeline_stage 3; ShardingSpecProto.device 2, groups 3)."""
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            size = 4 if key & 7 == 5 else 8
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def all_of(data, field):
    return [value for number, value in fields(data) if number == field]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def devices_of(spec):
    found = {signed(v) for v in all_of(spec, 2) if signed(v) >= 0}
    for group in all_of(spec, 3):
        found.update(all_of(group, 2))
    return found


model = open(sys.argv[1], "rb").read()
print("devices", all_of(all_of(model, 26)[0], 2)[0])
seen = {}
for node in all_of(all_of(model, 7)[0], 1):
    for configuration in all_of(node, 10) or [b""]:
        stage = all_of(configuration, 3)
        devices = set().union(set(), *[devices_of(s) for s in all_of(configuration, 2)])
        seen.setdefault(stage[0] if stage else None, set()).update(devices)
for stage in sorted(seen, key=str):
    print(stage, ",".join(str(d) for d in sorted(seen[stage])))
