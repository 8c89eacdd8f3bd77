# SPDX-License-Identifier: GPL-3.0-or-later
# A source includes no header of ours of which it says none of the names: what such a header brings by its own
# includes is asked for by their names. Its own header is left alone, and so are sources with lines of a `.inc`
# file, which are not read here, and headers around other people's, as cmocka's.
function offer(name) {
    if (!((FILENAME, name) in offered)) {
        offered[FILENAME, name] = 1
        names[FILENAME] = names[FILENAME] " " name
    }
}

# Offers the first match of `pattern` in the line, or with `each` all, without what `around` matches of it.
function find(pattern, around, each,    text, name) {
    for (text = $0; match(text, pattern); text = each ? substr(text, RSTART + RLENGTH) : "") {
        name = substr(text, RSTART, RLENGTH)
        gsub(around, "", name)
        offer(name)
    }
}

FNR == 1 {
    comment = listing = 0
    header = FILENAME ~ /\.h$/
}

/^#include "/ {
    split($0, quoted, "\"")
    if (quoted[2] ~ /\.inc$/)
        unread[FILENAME] = 1
    if (!header)
        places[FILENAME] = places[FILENAME] " " quoted[2] ":" FNR
    next
}

/^#include <cmocka/ {
    foreign[FILENAME] = 1
}

{
    if (!comment)
        gsub(/"([^"\\]|\\.)*"/, "")
    gsub(/\/\*([^*]|\*[^\/])*\*\//, "")
    sub(/\/\/.*/, "")
    if (comment && !sub(/^.*\*\//, ""))
        next
    comment = sub(/\/\*.*/, "")
}

# Macros; types; functions, whose prototypes begin at the left margin; variables; values.
header {
    find("^#define [A-Za-z_0-9]+", "#define ", 0)
    find("[A-Za-z_0-9]+;$", ";", 0)
    find("[(][*][A-Za-z_0-9]+[)]", "[(*)]", 0)
    find("^[A-Za-z_].*[A-Za-z_0-9]+[(]", "[(].*|^.*[ *]", 0)
    find("(struct|enum|union) +[A-Za-z_0-9]+", "(struct|enum|union) +", 1)
    beginning = /^extern/ || /enum/
    if (listing || beginning)
        find("[A-Za-z_0-9]+[[;,]|[A-Z][A-Z_0-9]+", "[[;,]", 1)
    listing = (listing || beginning) && !/[};]/
    next
}

{
    while (match($0, /[A-Za-z_][A-Za-z_0-9]*/)) {
        said[FILENAME, substr($0, RSTART, RLENGTH)] = 1
        $0 = substr($0, RSTART + RLENGTH)
    }
}

function is_needed(source, wanted,    list, n, i) {
    if (wanted in foreign || !(wanted in names) || wanted == substr(source, 1, length(source) - 1) "h")
        return 1
    n = split(names[wanted], list, " ")
    for (i = 1; i <= n; i++)
        if ((source, list[i]) in said)
            return 1
    return 0
}

END {
    for (source in places) {
        n = split(places[source], list, " ")
        for (i = 1; i <= n && !(source in unread); i++) {
            split(list[i], place, ":")
            if (!is_needed(source, place[1]))
                printf "%s:%d: says no name of %s\n", source, place[2], place[1] | "sort"
        }
    }
}
