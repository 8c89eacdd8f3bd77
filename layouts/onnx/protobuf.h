// SPDX-License-Identifier: GPL-3.0-or-later
/* Protobuf's wire format, read where it lies and appended to a byte array: messages are lists of
 * fields, and a field is a number, a wire type and a value.
 *
 *     key = number << 3 | type       varint
 *     type 0   varint                7 bits a byte, the lowest first, the top bit: more follow
 *     type 1   8 bytes               little-endian
 *     type 2   varint length, bytes  strings, messages, packed numbers
 *     type 5   4 bytes               little-endian
 *
 * (https://protobuf.dev/programming-guides/encoding; groups, types 3 and 4, are not ONNX's.) */
#ifndef MTF_PROTOBUF_H
#define MTF_PROTOBUF_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    MTF_WIRE_VARINT = 0,
    MTF_WIRE_FIXED64 = 1,
    MTF_WIRE_BYTES = 2,
    MTF_WIRE_FIXED32 = 5,
} MtfWireType;

/* What is left of a message. */
typedef struct {
    const uint8_t *at, *end;
    bool broken; /* cut off or not in this format */
} MtfWire;

typedef struct {
    uint32_t number;
    MtfWireType type;
    uint64_t value; /* of varints and fixed ones */
    MtfWire bytes;  /* of type 2 */
} MtfWireField;

/* Steps to the next field. False at the end, and where the message is broken, which it then says. */
bool mtf_wire_next(MtfWire *message, MtfWireField *field);

/* A varint of packed numbers; 0 with `broken` set where there is none. */
uint64_t mtf_wire_varint(MtfWire *packed);

/* The bytes of a field of type 2 as a string; free with g_free. */
char *mtf_wire_string(const MtfWire *bytes);

/* Append a field. */
void mtf_wire_put_varint(GByteArray *message, uint32_t number, uint64_t value);
void mtf_wire_put_float(GByteArray *message, uint32_t number, float value);
void mtf_wire_put_string(GByteArray *message, uint32_t number, const char *text);
void mtf_wire_put_message(GByteArray *message, uint32_t number, const GByteArray *inner);

/* Append a varint that is no field. */
void mtf_wire_put_bare(GByteArray *message, uint64_t value);

#endif
