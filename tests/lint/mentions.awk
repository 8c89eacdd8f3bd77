# SPDX-License-Identifier: GPL-3.0-or-later
# Comments and READMEs name no source of ours that is not there: files move, and what spoke of them
# stays behind. Names of two words and paths are taken for ours; what an #include names the compiler
# checks.
BEGIN {
    for (i = 1; i < ARGC; i++)
        for (path = ARGV[i]; path != ""; sub(/^[^\/]*\/?/, "", path))
            there[path] = 1
}

!/^#include/ {
    rest = $0
    while (match(rest, /(^|[^A-Za-z0-9_.\/-])[a-z][a-z0-9_\/]*[_\/][a-z0-9_\/]*\.[ch]($|[^A-Za-z0-9_.])/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH - 1)
        sub(/^[^a-z]/, "", name)
        sub(/[^ch]$/, "", name)
        if (!(name in there))
            printf "%s:%d: speaks of %s, which is not there\n", FILENAME, FNR, name
    }
}
