# SPDX-License-Identifier: GPL-3.0-or-later
# Who may include what: the table of design.md, and the one home of each heavy library.
BEGIN {
    allowed["layouts"] = " layouts "
    allowed["cost"] = " cost layouts "
    allowed["analyzer"] = " analyzer cost layouts "
    allowed["reports"] = " reports cost layouts "
    allowed["runtime"] = " runtime cost layouts "
    allowed["tests"] = " tests analyzer cost layouts reports runtime "
}

function find(sentence) {
    printf "%s:%d: %s\n", FILENAME, FNR, sentence
}

# A library with one file: remembers the first file that includes it and finds any other.
function one_file(header, folder) {
    if (room != folder)
        find("only " folder "/ may include " header)
    else if (header in home && home[header] != FILENAME)
        find(header " belongs to one file, and " home[header] " has it")
    else
        home[header] = FILENAME
}

FNR == 1 {
    split(FILENAME, path, "/")
    room = path[1]
}

/^#[ \t]*include "/ {
    split($0, quoted, "\"")
    target = quoted[2]
    sub("/.*", "", target)
    if (quoted[2] !~ "/")
        find("include \"" quoted[2] "\" by its path from the top")
    else if (index(allowed[room], " " target " ") == 0)
        find(room "/ may not use " target "/")
}

/^#[ \t]*include </ {
    split($0, angle, "[<>]")
    header = angle[2]
    if (header == "mpi.h" && room != "runtime" && room != "tests")
        find("only runtime/ may include mpi.h")
    if (header == "cblas.h" && room != "tests" && FILENAME !~ "^runtime/.*kernel")
        find("only the kernels of runtime/ may include cblas.h")
    if (header == "dnnl.h")
        one_file(header, "runtime")
    if (header == "glpk.h")
        one_file(header, "analyzer")
    if (header ~ "^(graphviz/)?(cgraph|gvc).h$")
        one_file(header, "reports")
    if (header == "cmocka.h" && FILENAME != "tests/support/cmocka.h")
        find("include \"tests/support/cmocka.h\" instead, which has its four headers in order")
}
