# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Each check of `make lint` complains about a wrong file, and about nothing in a right one.
. tests/support/tap.sh
lint=$top/tests/lint/lint.sh
licence='// SPDX-License-Identifier: GPL-3.0-or-later'

# fresh: an empty tree to put files in; the checks look at the current folder.
fresh() {
    rm -rf "$work/tree"
    for room in layouts/base cost/machine analyzer/solver/problem analyzer/commands reports/drawing \
        runtime/kernels/products runtime/kernels/onednn tests/lint .ci; do
        mkdir -p "$work/tree/$room"
    done
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
file cost/machine/a.c '#include "layouts/base/a.h"' '' 'int mtf_a(void) {' '    return 1;' '}'
file layouts/base/a.h '#ifndef A_H' '#define A_H' '' '/* One. */' 'int mtf_a(void);' 'void mtf_a_free(int a);' '' '#endif'
for check in format headers includes layers functions prototypes words kinds facts mentions pages top cppcheck shell; do
    accepts "a right tree passes: $check" "$check"
done

fresh
file cost/machine/a.c 'int   mtf_a( void );'
complains "a file the formatter would change is found" format "cost/machine/a.c"

fresh
file cost/machine/a.c 'if (g_str_has_prefix(mtf_graph_tensor(graph, t)->name, prefix))'
complains "a prefix of a tensor's name is found" facts "cost/machine/a.c:2: infers a fact from the spelling"
file cost/machine/a.c 'const char *name = op->name;' 'if (strncmp(name, block, length) == 0)'
complains "a name held in a variable is found" facts "cost/machine/a.c:3: infers a fact"
file cost/machine/a.c 'g_autofree char *prefix = g_strdup(op->name);' 'slash = strrchr(prefix, other);'
complains "a copy of a name is found" facts "cost/machine/a.c:3: infers a fact"
file cost/machine/a.c 'return g_str_has_prefix(text, "grad/");'
complains "who knows how names of gradients begin is found" facts "cost/machine/a.c:2: infers a fact"
file cost/machine/a.c 'return strcmp(op->name, "loss") == 0;'
complains "a name compared with a word is found" facts "cost/machine/a.c:2: infers a fact"
file cost/machine/a.c 'const char *name = op->name;' '}' 'return strstr(name, "x") != NULL;'
accepts "another function's variable is nobody's name" facts

fresh
file layouts/base/a.h 'int mtf_a(GError **error);'
complains "a header that needs another first is found" headers "layouts/base/a.h"

fresh
file layouts/base/a.h '/* mtf_b of another header is no name of this one. */' '#define MTF_A 1' 'typedef enum { MTF_A_ONE } MtfA;' '' \
    '/* One. */' 'int mtf_a(MtfB b);' 'extern const int mtf_as[], mtf_more_as[];'
file cost/machine/b.c '#include "layouts/base/a.h"' 'int mtf_b(MtfB b) {' '    return b; /* mtf_a */' '}'
complains "a source that says no name of what it includes is found" includes "cost/machine/b.c:2: says no name of layouts/base/a.h"
file cost/machine/b.c '#include "layouts/base/a.h"' 'const char *b = "b/*";' 'int b = mtf_a(b);'
accepts "a string is no beginning of a comment" includes
for name in MTF_A MTF_A_ONE MtfA mtf_a mtf_as mtf_more_as; do
    file cost/machine/b.c '#include "layouts/base/a.h"' "return $name;"
    accepts "$name is a name of what is included" includes
done

if command -v clang >/dev/null; then
    fresh
    file cost/machine/a.c 'typedef enum { ONE } Number;' 'Number mtf_a(int x);' 'Number mtf_a(int x) {' '    return x;' '}'
    complains "what clang alone warns of is found" clang "cost/machine/a.c:5"
fi

fresh
file layouts/base/a.c '#include "cost/machine/machine.h"'
complains "layouts/ may not use cost/" layers "layouts/base may not use cost/machine/"
file cost/machine/b.c '#include "layouts/base/error.h"'
complains "whom a room may use and does not is found" arrows "cost/machine uses nothing of layouts/graph/"
rm cost/machine/b.c
file analyzer/commands/a.c '#include "runtime/kernels/products/a.h"'
complains "analyzer/ may not use runtime/" layers "analyzer/commands may not use runtime/kernels/products/"
file cost/machine/a.c '#include "a.h"'
file analyzer/solver/problem/a.c '#include "layouts/graph/graph.h"'
complains "the solver uses layouts/base alone" layers "analyzer/solver/problem may not use layouts/graph/"
file layouts/a.c ''
complains "a file outside the rooms is found" layers "layouts/ is no room"
file layouts/base/a.h '#ifndef A_H' '#define A_H' 'typedef struct {' '    int a;' '} MtfA;' '#endif'
cp layouts/base/a.h cost/machine/a.h
complains "a file name used twice is found" layers "file a.h is defined in cost/machine/a.h already"
file layouts/base/b.c ''
file cost/machine/b.c ''
complains "of sources, too" layers "file b.c is defined in cost/machine/b.c already"
rm layouts/base/b.c cost/machine/b.c
complains "an include guard used twice is found" layers "guard A_H is defined in cost/machine/a.h already"
complains "a public type defined twice is found" layers "type MtfA is defined in cost/machine/a.h already"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do file "reports/drawing/f$i.c" ''; done
mkdir -p tests/support
cp reports/drawing/f*.c tests/support/
complains "a room of over 16 pairs is found" layers "reports/drawing/ has over 16 pairs of files"
complains "and one of what tests share" layers "tests/support/ has over 16 pairs of files"
rm layouts/a.c layouts/base/a.h cost/machine/a.h reports/drawing/f*.c tests/support/f*.c
complains "an include without its room is found" layers "by its path from the top"
file cost/machine/b.c '#include <mpi.h>'
complains "mpi.h outside runtime/ is found" layers "only runtime/ may include mpi.h"
file runtime/kernels/products/a.c '#include <cblas.h>'
complains "cblas.h outside the kernels is found" layers "only the kernels"
file runtime/kernels/onednn/b.c '#include <dnnl.h>'
file runtime/kernels/onednn/c.c '#include <dnnl.h>'
complains "a second file with dnnl.h is found" layers "dnnl.h belongs to one file"
file analyzer/solver/problem/ilp.c '#include <glpk.h>'
file analyzer/commands/other.c '#include <glpk.h>'
complains "a second file with glpk.h is found" layers "belongs to one file"
file reports/drawing/a.c '#include <glpk.h>'
complains "glpk.h outside analyzer/ is found" layers "only analyzer/ may include glpk.h"
file layouts/base/b.c '#include <graphviz/cgraph.h>'
complains "cgraph.h outside reports/ is found" layers "only reports/ may include"
file tests/a.c '#include <cmocka.h>'
complains "cmocka.h without its wrapper is found" layers "tests/support/cmocka.h"

fresh
file runtime/kernels/products/matmul_kernel.c '#include <cblas.h>' '#include <mpi.h>' '#include "layouts/kernel_work/a.h"'
file analyzer/solver/problem/ilp.c '#include <glpk.h>' '#include "analyzer/solver/problem/a.h"' '#include "layouts/base/a.h"'
file reports/drawing/dot.c '#include <cgraph.h>'
accepts "each library in its own home is right" layers

fresh
function_of 61 >cost/machine/a.c
complains "a function of 61 lines is found" functions "long_one has 61 lines"
function_of 60 >cost/machine/a.c
accepts "a function of 60 lines is right" functions
file cost/machine/a.c 'static int wide(int a, int b, int (*c)(int, int), int d,' '                int e, int f, int g) {' '    return a;' '}'
complains "a function of 7 parameters is found" functions "wide has 7 parameters"

fresh
file layouts/base/a.h '/* One, and its like. */' 'int mtf_a(void);' 'int mtf_b(void);' '' 'int mtf_c(int a,' '          int b);'
complains "a prototype that no comment speaks of is found" prototypes "layouts/base/a.h:6: mtf_c has no comment"
file cost/machine/a.c 'static int wide(int a, int b, int (*c)(int, int), int d, int e,' '                int f) {' '    return a;' '}'
accepts "a function of 6 parameters is right, one of them a function" functions
file cost/machine/a.c 'static bool wide(int a, int b, int c, int d, int e, int f,' '                 GError **error) {' '    return a;' '}'
accepts "a function of 6 parameters and an error is right" functions
file cost/machine/a.c 'MACRO(a, b)' '' 'static const int table[] = {' '    1,' '};' '' \
    'int mtf_a(int a, int b, int c, int d, int e, int f, int g);'
accepts "tables and prototypes are no functions" functions

fresh
echo 'int mtf_a(void);' >layouts/base/a.h
complains "a file without its licence line is found" words "SPDX"
printf '#!/bin/sh\necho\n' >tests/a.sh
complains "a script without its licence line is found" words "tests/a.sh:2"
for name in strcpy sprintf atoi rand; do
    file cost/machine/a.c "    $name(a);"
    complains "$name is found" words "uses $name"
done
file cost/machine/a.c '    g_strdup_printf(a); mtf_rand(b); x->rand(c);' '/* sprintf is not used */'
file layouts/base/a.h ''
rm tests/a.sh
accepts "names that only end like theirs are right" words
file cost/machine/a.c '/* TO''DO: later */'
complains "an open end is found" words "an open end"
file cost/machine/a.c 'const char *path = "/wo''rk/main";'
complains "a path of one machine is found" words "a path of one machine"
file cost/machine/a.c 'const char *path = "../sha''red/data";'
complains "../shared outside tests/ is found" words "outside tests/"

fresh
file cost/machine/a.c '/* The gradient needs it, so it is computed'' again. */'
complains "a word of our own is found where the field has one" words "a.c:2: the field's word is recomputation"
file cost/machine/a.c '    printf("recomputed, replicated");'
accepts "the field's word is right" words
echo 'Kernels run together, band by'' band.' >cost/README.md
complains "and in a README" words "cost/README.md:1: the field's word is tile by tile"

fresh
file cost/machine/a.c '    case MTF_OP_ADD:'
complains "a case for an operation outside its row is found" kinds "cost/machine/a.c:2: asks which"
file cost/machine/a.c '    if (kind != MTF_OP_ADD)'
complains "a comparison with an operation outside its row is found" kinds "let its row answer"
file cost/machine/a.c '    if (kind == MTF_RESHARD_HALO)'
complains "and one with a resharding operation" kinds "let its row answer"
file cost/machine/a.c '    [MTF_OP_ADD] = 1,' '    k < MTF_RESHARD_KINDS;' '    mtf_build(MTF_OP_ADD);'
file runtime/kernels/products/a.c '    case MTF_OP_ADD:'
accepts "tables by operation, makers and kernels are right" kinds

fresh
file cost/machine/a.c '/* As ring_price.c does (layouts/base/a.h, cost/b.h). */'
file layouts/base/a.h ''
complains "a file that is spoken of and not there is found" mentions "a.c:2: speaks of ring_price.c, which is not there"
complains "so is a path" mentions "a.c:2: speaks of cost/b.h"
echo 'See cost/machine/a.c and ring_price.h.' >cost/README.md
rm cost/machine/a.c
complains "in a README, too" mentions "cost/README.md:1: speaks of cost/machine/a.c"
file cost/machine/ring_price.c '#include <graphviz/c_graph.h>' '/* As a.c, GLib.h and layouts/base/a.h say; NAME_price.c. */'
yes 'Another line.' | head -161 >cost/README.md
complains "a README of more than a page is found" pages "cost/README.md: 161 lines, over 160"
mv cost/README.md cost/FORMATS.md
accepts "formats may be as long as they are" pages
rm cost/FORMATS.md
accepts "files that are there and names of no file are right" mentions

fresh
file cost/machine/a.c 'int mtf_a(int *p) {' '    int x = *p;' '    if (p == 0)' '        return 1;' '    return x;' '}'
complains "a pointer read before it is checked is found" cppcheck "cost/machine/a.c"
file cost/machine/a.c 'int mtf_a(int i) {' '    int x[2] = { 1, 2 };' '    if (i == 0)' '        i = 2;' '    return x[2] + i;' '}'
complains "an index out of bounds is found" cppcheck "arrayIndexOutOfBounds"

fresh
printf '# SPDX\nif true; then\n' >tests/a.sh
complains "a script that does not parse is found" shell "tests/a.sh"
# shellcheck disable=SC2016
printf '# SPDX\nrm $1\n' >tests/a.sh
complains "an unquoted word is found" shell "SC2086"
printf '# SPDX\ndone_testing\nclaim "never made" true\n' >tests/a.sh
complains "claims behind the end of a test are found" shell "tests/a.sh: what follows"

fresh
git init -q && touch README.md 0 && git add README.md 0 && mkdir notes && touch notes/a && git add notes
complains "a file that has no place at the top is found" top "0: has no place"
complains "a folder, too" top "notes: has no place"

cd "$top" || exit 1
done_testing
