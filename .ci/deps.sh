#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs the Debian packages that building, testing and linting need and this machine lacks.
# What is there is found by trying it (a command, a header), not by asking dpkg, so a library that
# came another way counts too, and a complete machine is passed quickly and without network.
set -u

commands='gcc:gcc make:make pkg-config:pkg-config mpirun:openmpi-bin mpicc:libopenmpi-dev dot:graphviz
    jq:jq curl:curl tidy:tidy xmllint:libxml2-utils clang-format:clang-format cppcheck:cppcheck shellcheck:shellcheck'
modules='glib-2.0:libglib2.0-dev libcjson:libcjson-dev zlib:zlib1g-dev libcgraph:libgraphviz-dev
    ompi-c:libopenmpi-dev openblas:libopenblas-dev libpng:libpng-dev
    libmicrohttpd:libmicrohttpd-dev cmocka:libcmocka-dev'
headers='dnnl.h:libdnnl-dev stdio.h:libc6-dev glpk.h:libglpk-dev Random123/threefry.h:librandom123-dev'

has_command() {
    command -v "$1" >/dev/null 2>&1
}

has_module() {
    pkg-config --exists "$1" 2>/dev/null
}

has_header() {
    echo "#include <$1>" | gcc -E -x c - >/dev/null 2>&1
}

# lacking KIND PAIR...: the packages of the pairs whose first half is not there.
lacking() {
    kind=$1
    shift
    for pair in "$@"; do
        "has_$kind" "${pair%%:*}" || echo "${pair#*:}"
    done
}

# The three lists are split into words on purpose.
# shellcheck disable=SC2086
missing() {
    { lacking command $commands; lacking module $modules; lacking header $headers; } | sort -u | tr '\n' ' '
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

packages=$(missing)
[ -n "$packages" ] || exit 0
if ! has_command apt-get; then
    echo "deps: this system has no apt; install what these Debian packages hold: $packages" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ] && ! has_command sudo; then
    echo "deps: neither root nor sudo; ask an administrator to install: $packages" >&2
    exit 1
fi
echo "deps: installing with apt: $packages"
as_root apt-get -qq update || echo "deps: apt-get update failed; trying with the lists at hand" >&2
# shellcheck disable=SC2086
as_root apt-get -qq -y --no-install-recommends install $packages || exit 1
left=$(missing)
[ -z "$left" ] || { echo "deps: still missing after the installation: $left" >&2; exit 1; }
