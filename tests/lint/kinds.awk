# SPDX-License-Identifier: GPL-3.0-or-later
# What an operation is, its row says (layouts/graph/operation_table.h), and what a resharding operation
# is, its own (layouts/placement/reshard_table.h): outside the tables, the gradients, the kernels and the
# search of paths nobody has a case for a kind or compares one. Tables with a row a kind
# ([MTF_OP_ADD] = …) and code that makes operations are right; so are translators between our operations
# and those of ONNX, which a row of ours knows nothing of.
function at_home(file) {
    return file ~ /^(layouts\/graph\/operation_table|layouts\/placement\/reshard|analyzer\/training\/gradient_)/ ||
           file ~ /^(runtime\/kernels|analyzer\/onnx|tests)\// || file ~ /^reports\/exports\/export_onnx/
}

at_home(FILENAME) {
    next
}

/MTF_(OP|RESHARD)_/ {
    gsub(/MTF_RESHARD_KINDS/, "")
}

/(^|[^A-Za-z_])case +MTF_(OP|RESHARD)_[A-Z]/ || /[=!]= *MTF_(OP|RESHARD)_[A-Z]/ || /MTF_(OP|RESHARD)_[A-Z_]+ *[!=<>]=/ {
    printf "%s:%d: asks which operation it is: let its row answer\n", FILENAME, FNR
}
