// SPDX-License-Identifier: GPL-3.0-or-later
/* A tensor of an ONNX file (TensorProto): its type, its sizes, and where its elements lie. Nothing
 * is copied: elements stay in the file's bytes, which must outlive the tensor, until they are asked
 * for. What a file claims and what it holds are compared when it is read, so that a claim of 2^60
 * elements costs nothing. */
#ifndef MTF_ONNX_TENSOR_H
#define MTF_ONNX_TENSOR_H

#include "layouts/onnx/protobuf.h"

/* TensorProto.DataType, and its name ("float", "int64"). */
typedef enum {
    MTF_ONNX_UNDEFINED,
    MTF_ONNX_FLOAT,
    MTF_ONNX_UINT8,
    MTF_ONNX_INT8,
    MTF_ONNX_UINT16,
    MTF_ONNX_INT16,
    MTF_ONNX_INT32,
    MTF_ONNX_INT64,
    MTF_ONNX_STRING,
    MTF_ONNX_BOOL,
    MTF_ONNX_FLOAT16,
    MTF_ONNX_DOUBLE,
    MTF_ONNX_UINT32,
    MTF_ONNX_UINT64,
    MTF_ONNX_COMPLEX64,
    MTF_ONNX_COMPLEX128,
    MTF_ONNX_BFLOAT16,
    MTF_ONNX_TYPES,
} MtfOnnxType;

/* Of a TensorProto data type, which may be none that ONNX has: its name, and what its values are. */
const char *mtf_onnx_type_name(int type);
bool mtf_onnx_type_is_float(int type);
bool mtf_onnx_type_is_integer(int type); /* bool is none */

/* Bytes of an element as raw_data has it; 0 where the type cannot be read. */
int mtf_onnx_type_bytes(int type);

#define MTF_ONNX_MAX_RANK 10

typedef struct {
    char *name;
    int type;
    int rank;
    int64_t dims[MTF_ONNX_MAX_RANK];
    int64_t elements;
    MtfWire data;   /* of the field below; nothing where the elements are in another file */
    uint32_t field; /* TensorProto's field that holds them: 4, 5, 7, 9, 10, 11; or 0 */
    GByteArray *
        copy; /* where `data` points when they were not packed, or were read of `location`; or NULL */
    char *location;         /* of another file, beside this one; or NULL */
    int64_t offset, length; /* of the bytes in that file; length -1: to its end */
} MtfOnnxTensor;

/* Reads a TensorProto. Fails (bad input) in a sentence behind `where`. The caller clears it. */
bool mtf_onnx_tensor_read(MtfWire message, const char *where, MtfOnnxTensor *tensor,
                          GError **error);
void mtf_onnx_tensor_clear(MtfOnnxTensor *tensor);

/* Takes the elements that lie in another file, as that has them, and the array. */
void mtf_onnx_tensor_keep(MtfOnnxTensor *tensor, GByteArray *bytes);

/* All elements; whole numbers beyond 2^53 are rounded. False where they are in another file and were not taken from
 * there, or of a type that is no number. */
bool mtf_onnx_tensor_values(const MtfOnnxTensor *tensor, double *values);

/* Whether the elements lie in the file one behind the other, each mtf_onnx_type_bytes long. */
bool mtf_onnx_tensor_is_plain(const MtfOnnxTensor *tensor);

#endif
