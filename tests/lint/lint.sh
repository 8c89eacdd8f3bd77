#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# lint.sh [CHECK...]: runs the checks (all of them by default) on the tree in the current folder. Each
# prints its findings, "FILE:LINE: sentence", and the last line counts them; any finding fails.
# test_lint.sh feeds every check a wrong file.
set -u
here=$(dirname "$0")
findings=$(mktemp -d)
trap 'rm -rf "$findings"' EXIT
for tool in clang-format cppcheck shellcheck pkg-config; do
    command -v "$tool" >/dev/null || { echo "lint: $tool is missing: run make deps"; exit 1; }
done
c_files=$(find analyzer cost layouts reports runtime tests -name '*.[ch]' 2>/dev/null | sort)
headers=$(echo "$c_files" | grep '\.h$')
readmes=$(find README.md analyzer cost layouts reports runtime tests -name '*.md' 2>/dev/null | sort)
scripts=$(find analyzer cost layouts reports runtime tests .ci -name '*.sh' 2>/dev/null | sort)

# What the findings of a check of single files depend on beside the file; scripts also on what they read.
rules=$(cat "$here/lint.sh" .clang-format tests/support/*.sh 2>/dev/null | sha256sum | cut -c 1-16)

# of_changed CHECK COMMAND FILE...: what COMMAND says of the files that are not, by their bytes, as they were
# when it last said nothing: of a thousand files that takes minutes beside other work.
of_changed() {
    clean=build/lint/$1-$rules
    now=$findings/$1.now
    command=$2
    shift 2
    mkdir -p build/lint
    touch "$clean"
    sha256sum "$@" | sort >"$now"
    changed=$(comm -23 "$now" "$clean" | cut -c 67-)
    # shellcheck disable=SC2086
    [ -z "$changed" ] || "$command" $changed >"$now.said"
    if [ -s "$now.said" ]; then
        cat "$now.said"
    else
        rm -f "${clean%-*}"-*
        mv "$now" "$clean"
    fi
}

# The lists of files are split into words on purpose, here and below; no path holds a space.
# shellcheck disable=SC2086
check_format() {
    of_changed format say_format $c_files
}

say_format() {
    clang-format --dry-run -Werror "$@" 2>&1 | grep -E ': (error|warning):'
}

compiler_flags() {
    echo "-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -I. $(pkg-config --cflags \
        glib-2.0 libcjson zlib libcgraph ompi-c openblas cmocka)"
}

# The headers that their own file does not include first: what the build compiles begins with all others.
headers_beside() {
    for header in $headers; do
        source=${header%.h}.c
        [ -e "$source" ] && [ "$(grep -m 1 '^#include' "$source")" = "#include \"$header\"" ] || echo "$header"
    done
}

# Each header compiles alone, so that no file depends on the order of another's includes; one of macros alone needs a
# declaration beside them.
# shellcheck disable=SC2086
check_headers() {
    flags=$(compiler_flags)
    for header in $(headers_beside); do
        printf '#include "%s"\nextern int beside_macros;\n' "$header" | ${CC:-gcc} $flags -fsyntax-only -x c - 2>&1 | grep -E 'error:' | head -n 3
    done
}

# shellcheck disable=SC2086
check_includes() {
    awk -f "$here/includes.awk" $c_files
}

# shellcheck disable=SC2086
check_layers() {
    awk -f "$here/layers.awk" "$here/rooms.txt" $c_files
}

# shellcheck disable=SC2086
check_arrows() {
    awk -f "$here/arrows.awk" "$here/rooms.txt" $c_files
}

# shellcheck disable=SC2086
check_functions() {
    awk -f "$here/functions.awk" $c_files
}

# shellcheck disable=SC2086
check_prototypes() {
    awk -f "$here/prototypes.awk" $headers
}

# shellcheck disable=SC2086
check_words() {
    awk -f "$here/words.awk" $c_files $scripts $readmes
}

# shellcheck disable=SC2086
check_kinds() {
    awk -f "$here/kinds.awk" $c_files
}

# shellcheck disable=SC2086
check_facts() {
    awk -f "$here/facts.awk" $c_files
}

# shellcheck disable=SC2086
check_mentions() {
    awk -f "$here/mentions.awk" $c_files $readmes
}

# A folder's README is one page; formats and options have pages of their own beside it.
check_pages() {
    for readme in $(echo "$readmes" | grep '/README.md$'); do
        lines=$(wc -l <"$readme")
        [ "$lines" -le 160 ] || echo "$readme: $lines lines, over 160: no longer one page"
    done
}

# What lies at the top, dot-files aside: a bench once left a file that was then committed.
check_top() {
    git ls-files 2>/dev/null | sed 's,/.*,,' | sort -u | grep -vxE \
        'analyzer|cost|layouts|reports|runtime|tests|Makefile|LICENSE|(README|CHANGELOG)\.md|\..*' | sed 's/$/: has no place at the top/'
}

# What clang warns of and gcc does not, as signs of enumerations. As a build does it, optimized: GLib's
# macros cast what they count only there. It takes minutes and is asked for by name; tests/e2e/long_clang.sh
# does. Pages' texts are strings that a build makes.
# shellcheck disable=SC2086
check_clang() {
    flags="$(compiler_flags) -O2 -Wshadow -Wconversion -I${MTF_BUILD:-build/release}"
    for source in $(echo "$c_files" | grep '\.c$'); do
        clang $flags -fsyntax-only "$source" 2>&1 | grep -E 'error:'
    done
}

# One run for all files: cppcheck judges what is static or unused over the whole tree; what it found in
# files that have not changed it remembers.
# shellcheck disable=SC2086
check_cppcheck() {
    sources=$(echo "$c_files" | grep '\.c$')
    mkdir -p build/lint/cppcheck
    cppcheck --quiet --cppcheck-build-dir=build/lint/cppcheck --std=c11 --language=c --library=gtk --enable=warning,style,performance,portability \
        --inline-suppr --suppressions-list="$here/cppcheck.txt" --template='{file}:{line}: {message} [{id}]' \
        -j 2 -D_GNU_SOURCE '-DG_DEFINE_QUARK(name, function)=GQuark function##_quark(void);' -I. $sources 2>&1
}

# shellcheck disable=SC2086
check_shell() {
    for script in $scripts .ci/run; do
        [ ! -e "$script" ] || sh -n "$script" 2>&1
    done
    for script in $scripts; do
        ! grep -qx done_testing "$script" || [ "$(tail -n 1 "$script")" = done_testing ] ||
            echo "$script: what follows done_testing is never run"
    done
    of_changed shell say_shell $scripts
}

# With what they read beside them, which is followed then. 1091: other files that they read are not; 2317: what
# only `claim` calls seems unreachable.
# shellcheck disable=SC2086
say_shell() {
    read=$(sed -n 's,^ *\. \(tests/[a-z_/]*\.sh\)$,\1,p' "$@")
    together=$(printf '%s\n' "$@" $read | sort -u)
    shellcheck --shell=sh --format=gcc --exclude=SC1091,SC2317 $together
}

# All at once, since most use one core; told in their order.
checks=${*:-format headers includes layers arrows functions prototypes words kinds facts mentions pages top cppcheck shell}
for check in $checks; do
    "check_$check" | sed "s/\$/ ($check)/" >"$findings/$check" &
done
wait
for check in $checks; do
    cat "$findings/$check"
done >"$findings/all"
cat "$findings/all"
count=$(wc -l <"$findings/all")
echo "lint: $count findings"
[ "$count" = 0 ]
