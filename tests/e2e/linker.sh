# SPDX-License-Identifier: GPL-3.0-or-later
# Each heavy library belongs to one program (design.md, "Rooms and programs").
. tests/support/tap.sh

# links PROGRAM LIBRARY: whether the program needs a library of that name, itself or through another.
links() {
    ldd "$build/$1" | grep -qi "lib$2[-.]"
}

lacks() {
    ! links "$@"
}

while read -r program libraries; do
    for library in $libraries; do
        claim "$program does not link $library" lacks "$program" "$library"
    done
done <<TABLE
meshtf-plan mpi open-pal blas openblas dnnl cgraph gvc microhttpd
meshtf-report glpk mpi open-pal blas openblas dnnl gvc microhttpd
meshtf-run glpk cgraph gvc
TABLE

claim "the test sees a library that is linked" links meshtf-plan c
claim "meshtf-run links libmicrohttpd" links meshtf-run microhttpd
claim "meshtf-run links oneDNN" links meshtf-run dnnl
done_testing
