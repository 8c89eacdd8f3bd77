# SPDX-License-Identifier: GPL-3.0-or-later
# The licence on the first line (or below a script's #!), no function that overruns, hides errors or is
# not reproducible, no open ends, no path of one machine.
function find(sentence) {
    printf "%s:%d: %s\n", FILENAME, FNR, sentence
}

FNR == 1 && !/SPDX-License-Identifier: GPL-3.0-or-later/ && !/^#!/ && !/^# shellcheck / {
    find("the first line is not the SPDX licence line")
}

FNR == 2 && previous ~ /^#(!| shellcheck )/ && !/SPDX-License-Identifier: GPL-3.0-or-later/ {
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
