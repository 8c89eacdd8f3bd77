# SPDX-License-Identifier: GPL-3.0-or-later
# What a tensor or an operation is (gradient of, layer 7 of a block, …) stands in its fields; names are for
# people. Nobody searches or compares the spelling of one, be it held in a variable of the same function,
# or knows how another's names begin. At home with names are those who link what a user wrote and those who
# shorten names for people (layouts/layers).
function at_home(file) {
    return file ~ /^(tests|layouts\/layers|runtime\/text|analyzer\/onnx)\// || file ~ /^layouts\/graph\/(graph_link|loops)\./
}

function found() {
    printf "%s:%d: infers a fact from the spelling of a name: read it in a field of the tensor or operation\n", FILENAME, FNR
}

at_home(FILENAME) {
    next
}

FNR == 1 || /^}/ {
    split("", names)
}

{
    named = "(mtf_graph_(tensor|operation)\\(.*\\)|(^|[^A-Za-z0-9_])(op|operation|reader|producer|maker|made|tensor|t|variable|output|original))->name"
    calls = "(g_str_has_prefix|g_str_has_suffix|strncmp|strstr|g_strrstr|strchr|strrchr|sscanf|strspn|strcspn|g_strsplit|g_strsplit_set|g_str_match_string|fnmatch)\\("
}

match($0, /[A-Za-z_0-9]+ = (g_strdup\()?/) && $0 ~ named {
    variable = substr($0, RSTART, RLENGTH)
    sub(/ =.*/, "", variable)
    names[variable] = 1
}

$0 ~ calls && ($0 ~ (calls "[^;]*" named) || $0 ~ /"(grad|back|part|update|clip|recompute|layer|adam|sum|step)\//) {
    found()
    next
}

$0 ~ calls {
    for (variable in names)
        if ($0 ~ ("\\((.*[^A-Za-z0-9_>.])?" variable "[,)]")) {
            found()
            next
        }
}

/strlen\("[a-z]+\/"\)/ || $0 ~ ("(strcmp|g_str_equal)[^;]*" named ", \"") {
    found()
}
