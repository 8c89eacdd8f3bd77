# SPDX-License-Identifier: GPL-3.0-or-later
# Each check of `make lint` complains about a wrong file, and about nothing in a right one.
. tests/support/tap.sh
lint=$top/tests/lint/lint.sh
licence='// SPDX-License-Identifier: GPL-3.0-or-later'

# fresh: an empty tree to put files in; the checks look at the current folder.
fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/layouts" "$work/tree/cost" "$work/tree/analyzer" "$work/tree/reports" \
        "$work/tree/runtime" "$work/tree/tests/lint" "$work/tree/.ci"
    cp "$top/.clang-format" "$work/tree/"
    cd "$work/tree" || exit 1
}

# file PATH LINE...: writes a file whose first line is the licence.
file() {
    path=$1
    shift
    { echo "$licence"; printf '%s\n' "$@"; } >"$path"
}

# complains CLAIM CHECK TEXT: the check fails and says TEXT. accepts CLAIM CHECK: it finds nothing.
complains() {
    run sh "$lint" "$2"
    claim "$1" fails_with "$3"
}

accepts() {
    run sh "$lint" "$2"
    claim "$1" exits 0
}

fails_with() {
    [ "$status" != 0 ] && says "$1"
}

# function_of LINES: a function of so many lines, braces included.
function_of() {
    echo 'int long_one(int x) {'
    i=3
    while [ "$i" -lt "$1" ]; do
        echo '    x += 1;'
        i=$((i + 1))
    done
    printf '    return x;\n}\n'
}

fresh
file cost/a.c '#include "layouts/a.h"' '' 'int mtf_a(void) {' '    return 1;' '}'
file layouts/a.h '#ifndef A_H' '#define A_H' '' 'int mtf_a(void);' '' '#endif'
for check in format headers layers functions words cppcheck shell; do
    accepts "a right tree passes: $check" "$check"
done

fresh
file cost/a.c 'int   mtf_a( void );'
complains "a file the formatter would change is found" format "cost/a.c"

fresh
file layouts/a.h 'int mtf_a(GError **error);'
complains "a header that needs another first is found" headers "layouts/a.h"

fresh
file layouts/a.c '#include "cost/machine.h"'
complains "layouts/ may not use cost/" layers "layouts/ may not use cost/"
file analyzer/a.c '#include "runtime/a.h"'
complains "analyzer/ may not use runtime/" layers "analyzer/ may not use runtime/"
file cost/a.c '#include "a.h"'
complains "an include without its room is found" layers "by its path from the top"
file cost/b.c '#include <mpi.h>'
complains "mpi.h outside runtime/ is found" layers "only runtime/ may include mpi.h"
file runtime/a.c '#include <cblas.h>'
complains "cblas.h outside the kernels is found" layers "only the kernels"
file runtime/b.c '#include <dnnl.h>'
file runtime/c.c '#include <dnnl.h>'
complains "a second file with dnnl.h is found" layers "dnnl.h belongs to one file"
file analyzer/ilp.c '#include <glpk.h>'
file analyzer/other.c '#include <glpk.h>'
complains "a second file with glpk.h is found" layers "belongs to one file"
file reports/a.c '#include <glpk.h>'
complains "glpk.h outside analyzer/ is found" layers "only analyzer/ may include glpk.h"
file layouts/b.c '#include <graphviz/cgraph.h>'
complains "cgraph.h outside reports/ is found" layers "only reports/ may include"
file tests/a.c '#include <cmocka.h>'
complains "cmocka.h without its wrapper is found" layers "tests/support/cmocka.h"

fresh
file runtime/matmul_kernel.c '#include <cblas.h>' '#include <mpi.h>' '#include "cost/a.h"'
file analyzer/ilp.c '#include <glpk.h>' '#include "analyzer/a.h"' '#include "layouts/a.h"'
file reports/dot.c '#include <cgraph.h>'
accepts "each library in its own home is right" layers

fresh
function_of 61 >cost/a.c
complains "a function of 61 lines is found" functions "long_one has 61 lines"
function_of 60 >cost/a.c
accepts "a function of 60 lines is right" functions
file cost/a.c 'static int wide(int a, int b, int (*c)(int, int), int d,' '                int e, int f, int g) {' '    return a;' '}'
complains "a function of 7 parameters is found" functions "wide has 7 parameters"
file cost/a.c 'static int wide(int a, int b, int (*c)(int, int), int d, int e,' '                int f) {' '    return a;' '}'
accepts "a function of 6 parameters is right, one of them a function" functions
file cost/a.c 'static bool wide(int a, int b, int c, int d, int e, int f,' '                 GError **error) {' '    return a;' '}'
accepts "a function of 6 parameters and an error is right" functions
file cost/a.c 'MACRO(a, b)' '' 'static const int table[] = {' '    1,' '};' '' \
    'int mtf_a(int a, int b, int c, int d, int e, int f, int g);'
accepts "tables and prototypes are no functions" functions

fresh
echo 'int mtf_a(void);' >layouts/a.h
complains "a file without its licence line is found" words "SPDX"
printf '#!/bin/sh\necho\n' >tests/a.sh
complains "a script without its licence line is found" words "tests/a.sh:2"
for name in strcpy sprintf atoi rand; do
    file cost/a.c "    $name(a);"
    complains "$name is found" words "uses $name"
done
file cost/a.c '    g_strdup_printf(a); mtf_rand(b); x->rand(c);' '/* sprintf is not used */'
file layouts/a.h ''
rm tests/a.sh
accepts "names that only end like theirs are right" words
file cost/a.c '/* TO''DO: later */'
complains "an open end is found" words "an open end"
file cost/a.c 'const char *path = "/wo''rk/main";'
complains "a path of one machine is found" words "a path of one machine"
file cost/a.c 'const char *path = "../sha''red/data";'
complains "../shared outside tests/ is found" words "outside tests/"

fresh
file cost/a.c 'int mtf_a(int *p) {' '    int x = *p;' '    if (p == 0)' '        return 1;' '    return x;' '}'
complains "a pointer read before it is checked is found" cppcheck "cost/a.c"
file cost/a.c 'int mtf_a(int i) {' '    int x[2] = { 1, 2 };' '    if (i == 0)' '        i = 2;' '    return x[2] + i;' '}'
complains "an index out of bounds is found" cppcheck "arrayIndexOutOfBounds"

fresh
printf '# SPDX\nif true; then\n' >tests/a.sh
complains "a script that does not parse is found" shell "tests/a.sh"
# shellcheck disable=SC2016
printf '# SPDX\nrm $1\n' >tests/a.sh
complains "an unquoted word is found" shell "SC2086"

cd "$top" || exit 1
done_testing
