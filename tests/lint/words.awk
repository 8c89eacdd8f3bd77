# SPDX-License-Identifier: GPL-3.0-or-later
# The licence on the first line (or below a script's #!), no function that overruns, hides errors or is
# not reproducible, no open ends, no path of one machine, and of what the field has a word for no other
# (the glossary of layouts/README.md), in the READMEs neither.
function find(sentence) {
    printf "%s:%d: %s\n", FILENAME, FNR, sentence
}

BEGIN {
    field["comput(ed|es|e) again"] = "recomputation"
    field["band by band"] = "tile by tile"
    field["[Rr]ows? of kernels"] = "a fused group"
    field["(^|[^a-z])(a|its|the) reading( \\(|,|[.])"] = "a gathered copy"
    field["everything whole"] = "replicated"
    field["whole weights"] = "replicated weights"
    field["forms? of (a|the) step"] = "a step variant"
    field["(exchange|collective) room"] = "an overlap window"
    field["(^|[^a-z])dear(er|est)?([^a-z]|$)"] = "cost"
    field["in vain"] = "cancelled"
    field["MtfStep[^a-zA-Z]"] = "a reshard op"
}

FNR == 1 && FILENAME !~ /[.]md$/ && !/SPDX-License-Identifier: GPL-3.0-or-later/ && !/^#!/ && !/^# shellcheck / {
    find("the first line is not the SPDX licence line")
}

FNR == 2 && FILENAME !~ /[.]md$/ && previous ~ /^#(!| shellcheck )/ && !/SPDX-License-Identifier: GPL-3.0-or-later/ {
    find("the line below the first is not the SPDX licence line")
}

{
    previous = $0
}

FILENAME ~ /\.[ch]$/ && /(^|[^A-Za-z0-9_>.])(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atof|rand|srand|alloca|g_alloca|g_random_int|strtok)\(/ {
    match($0, /(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atof|rand|srand|alloca|g_alloca|g_random_int|strtok)\(/)
    find("uses " substr($0, RSTART, RLENGTH - 1) ", which this project does without")
}

/(^|[^A-Za-z_])(TO[D]O|FI[X]ME|X[X]X)([^A-Za-z_]|$)/ {
    find("an open end")
}

/\/(work|farm|home|root)\// {
    find("a path of one machine")
}

FILENAME !~ /^tests\// && /\.\.\/shared/ {
    find("../shared outside tests/")
}

FILENAME !~ /^tests\// {
    for (private in field)
        if ($0 ~ private)
            find("the field's word is " field[private])
}
