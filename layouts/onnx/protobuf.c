// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/onnx/protobuf.h"

#include <string.h>

uint64_t mtf_wire_varint(MtfWire *packed) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && packed->at < packed->end; shift += 7) {
        uint8_t byte = *packed->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    packed->broken = true;
    return 0;
}

static uint64_t read_fixed(MtfWire *message, gsize bytes) {
    uint64_t value = 0;
    if ((gsize)(message->end - message->at) < bytes) {
        message->broken = true;
        return 0;
    }
    for (gsize i = 0; i < bytes; i++)
        value |= (uint64_t)message->at[i] << (8 * i);
    message->at += bytes;
    return value;
}

static void read_bytes(MtfWire *message, MtfWire *bytes) {
    uint64_t length = mtf_wire_varint(message);
    if (length > (uint64_t)(message->end - message->at))
        message->broken = true;
    if (message->broken)
        return;
    *bytes = (MtfWire){ message->at, message->at + length, false };
    message->at += length;
}

bool mtf_wire_next(MtfWire *message, MtfWireField *field) {
    if (message->broken || message->at >= message->end)
        return false;
    uint64_t key = mtf_wire_varint(message);
    *field = (MtfWireField){ .number = (uint32_t)(key >> 3), .type = (MtfWireType)(key & 7) };
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        message->broken = true;
    else if (field->type == MTF_WIRE_VARINT)
        field->value = mtf_wire_varint(message);
    else if (field->type == MTF_WIRE_FIXED64)
        field->value = read_fixed(message, 8);
    else if (field->type == MTF_WIRE_FIXED32)
        field->value = read_fixed(message, 4);
    else if (field->type == MTF_WIRE_BYTES)
        read_bytes(message, &field->bytes);
    else
        message->broken = true;
    return !message->broken;
}

char *mtf_wire_string(const MtfWire *bytes) {
    return g_strndup((const char *)bytes->at, (gsize)(bytes->end - bytes->at));
}

void mtf_wire_put_bare(GByteArray *message, uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
        uint8_t byte = (uint8_t)(value | 0x80);
        g_byte_array_append(message, &byte, 1);
    }
    uint8_t last = (uint8_t)value;
    g_byte_array_append(message, &last, 1);
}

static void put_key(GByteArray *message, uint32_t number, MtfWireType type) {
    mtf_wire_put_bare(message, (uint64_t)number << 3 | (uint64_t)type);
}

void mtf_wire_put_varint(GByteArray *message, uint32_t number, uint64_t value) {
    put_key(message, number, MTF_WIRE_VARINT);
    mtf_wire_put_bare(message, value);
}

void mtf_wire_put_float(GByteArray *message, uint32_t number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(message, number, MTF_WIRE_FIXED32);
    bits = GUINT32_TO_LE(bits);
    g_byte_array_append(message, (const guint8 *)&bits, sizeof bits);
}

/* The key and length of bytes that the caller appends. */
static void put_length(GByteArray *message, uint32_t number, uint64_t length) {
    put_key(message, number, MTF_WIRE_BYTES);
    mtf_wire_put_bare(message, length);
}

static void put_bytes(GByteArray *message, uint32_t number, const void *bytes, gsize length) {
    put_length(message, number, length);
    if (length > 0)
        g_byte_array_append(message, bytes, (guint)length);
}

void mtf_wire_put_string(GByteArray *message, uint32_t number, const char *text) {
    put_bytes(message, number, text, strlen(text));
}

void mtf_wire_put_message(GByteArray *message, uint32_t number, const GByteArray *inner) {
    put_bytes(message, number, inner->data, inner->len);
}
