# SPDX-License-Identifier: GPL-3.0-or-later
# Who may include what: the rooms of rooms.txt (the first file read), and the one home of each heavy
# library. Every file stands in a room, no room (of tests: those of support) holds over 16 pairs of
# files, and no two public files, include guards or types have one name.
function find(sentence) {
    printf "%s:%d: %s\n", FILENAME, FNR, sentence
}

# A library with one file: remembers the first file that includes it and finds any other.
function one_file(header, folder) {
    if (top != folder && room != folder)
        find("only " folder "/ may include " header)
    else if (header in home && home[header] != FILENAME)
        find(header " belongs to one file, and " home[header] " has it")
    else
        home[header] = FILENAME
}

function folder_of(path) {
    return path ~ "/" ? substr(path, 1, match(path, "/[^/]*$") - 1) : ""
}

# Remembers who defined a name first and finds a second one.
function defined_once(kind, name) {
    if ((kind, name) in first)
        find(kind " " name " is defined in " first[kind, name] " already")
    else
        first[kind, name] = FILENAME
}

FILENAME ~ /rooms\.txt$/ {
    if (/^#/ || /^$/)
        next
    split($0, halves, ":")
    count = split(halves[2], uses, " ")
    for (i = 1; i <= count; i++)
        if (!(uses[i] in allowed))
            find(halves[1] " uses " uses[i] ", which does not stand above it")
    allowed[halves[1]] = " " halves[1] halves[2] " "
    next
}

FNR == 1 {
    room = folder_of(FILENAME)
    top = room
    sub("/.*", "", top)
    if (top != "tests") {
        if (!(room in allowed))
            find(room "/ is no room of rooms.txt")
        name = substr(FILENAME, length(room) + 2)
        if (name ~ /\.[ch]$/)
            defined_once("file", name)
    }
    name = substr(FILENAME, length(room) + 2)
    sub(/\.[a-z]*$/, "", name)
    if ((top != "tests" || room ~ "^tests/support") && !((room, name) in pair)) {
        pair[room, name] = 1
        if (++pairs[room] == 17)
            find(room "/ has over 16 pairs of files")
    }
}

top != "tests" && FILENAME ~ /\.h$/ && /^#ifndef [A-Z0-9_]*_H$/ {
    defined_once("guard", $2)
}

top != "tests" && FILENAME ~ /\.h$/ && (/^} Mtf[A-Za-z0-9]*;/ || /^typedef [^({]* \*?Mtf[A-Za-z0-9]*;/) {
    type = $NF
    gsub(/[;*]/, "", type)
    if (!(/^typedef struct / && $3 == type))
        defined_once("type", type)
}

/^#[ \t]*include "/ {
    split($0, quoted, "\"")
    target = folder_of(quoted[2])
    folder = target
    sub("/.*", "", folder)
    if (quoted[2] !~ "/")
        find("include \"" quoted[2] "\" by its path from the top")
    else if (top != "tests" && index(allowed[room], " " target " ") == 0)
        find(room " may not use " target "/")
}

/^#[ \t]*include </ {
    split($0, angle, "[<>]")
    header = angle[2]
    if (header == "mpi.h" && top != "runtime" && top != "tests")
        find("only runtime/ may include mpi.h")
    if (header == "cblas.h" && top != "tests" && FILENAME !~ "^runtime/.*kernel[a-z_]*[.]c$")
        find("only the kernels of runtime/ may include cblas.h")
    if (header == "dnnl.h")
        one_file(header, "runtime/kernels/onednn")
    if (header == "microhttpd.h")
        one_file(header, "runtime")
    if (header == "glpk.h")
        one_file(header, "analyzer")
    if (header ~ "^(graphviz/)?(cgraph|gvc).h$")
        one_file(header, "reports")
    if (header == "cmocka.h" && FILENAME != "tests/support/cmocka.h")
        find("include \"tests/support/cmocka.h\" instead, which has its four headers in order")
}
