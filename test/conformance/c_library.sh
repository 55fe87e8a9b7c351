#!/bin/sh
# The C that exo-translate prints: compiles without a warning as C11 and C17
# under both compilers, its header as C++ too; linked with the test driver it
# makes the right calls, loads once a context from several threads, and refuses
# wrong arguments with messages that name them; its bytes repeat.
set -eu
cd "${EXO_SOURCE:-.}"
. test/tally

build=${EXO_BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
stub=$build/test/stub
programs=$PWD/test/conformance/c_library
examples=$PWD/examples
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "$tally_log"' EXIT
warnings="-Wall -Wextra -Wpedantic -Werror"
libraries="-lpthread -ldl -lm"

have() {
    command -v "$1" >/dev/null 2>&1
}

first_of() {
    for tool in "$@"; do
        if have "$tool"; then
            echo "$tool"
            return
        fi
    done
}

cc=$(first_of gcc cc clang-19 clang)
cxx=$(first_of g++ c++ clang++-19 clang++)

# The source of a library: a shipped kernel, or a program of the tests.
source_of() {
    for folder in kernels test/conformance/right_programs "$programs"; do
        if [ -f "$folder/$1.exo" ]; then
            echo "$folder/$1.exo"
            return
        fi
    done
}

# The C of $1.exo; answers whether it is there.
translated() {
    status=0
    "$build/bin/exo-translate" "$(source_of "$1")" --to=c -o "$tmp/$1.c" \
        >"$tmp/log" 2>&1 || status=$?
    case $status in
    0)
        check "$1: both files are written" test -s "$tmp/$1.h" -a -s "$tmp/$1.c"
        return 0
        ;;
    4)
        skip "C of $1" "a part is missing: $(grep -m1 error: "$tmp/log" ||
            tail -n 1 "$tmp/log")"
        return 1
        ;;
    *)
        check "$1: is translated to C" sh -c "cat '$tmp/log'; exit $status"
        return 1
        ;;
    esac
}

same_again() {
    "$build/bin/exo-translate" "$(source_of "$1")" --to=c -o "$tmp/again/$1.c" &&
        cmp "$tmp/$1.c" "$tmp/again/$1.c" && cmp "$tmp/$1.h" "$tmp/again/$1.h"
}

compile() {
    compiler=$1
    standard=$2
    (cd "$tmp" &&
        $compiler "-std=$standard" -O1 $warnings -c "$3.c" -o "$3.$2.o")
}

header_in_cxx() {
    printf '#include "%s.h"\n#include "%s.h"\nint main() { return 0; }\n' \
        "$1" "$1" >"$tmp/header.cpp"
    (cd "$tmp" && $cxx $warnings -fsyntax-only header.cpp)
}

# Compiles one library every way.
compiles() {
    for compiler in gcc clang-19; do
        if ! have "$compiler"; then
            skip "$1 under $compiler" "no $compiler"
            continue
        fi
        for standard in c11 c17; do
            check "$1: $compiler -std=$standard" \
                compile "$compiler" "$standard" "$1"
        done
    done
    if [ -n "$cxx" ]; then
        check "$1: its header is C++" header_in_cxx "$1"
    else
        skip "$1 as C++" "no C++ compiler"
    fi
    mkdir -p "$tmp/again"
    check "$1: the same bytes again" same_again "$1"
}

# Links a program of test/conformance/c_library with printed C.
link_program() {
    output=$1
    shift
    (cd "$tmp" && $cc -std=c17 -D_GNU_SOURCE -g -Wall -Wextra -I. \
        -I"$programs" -o "$output" "$@" -L"$stub" -Wl,-rpath,"$stub" -lcuda \
        $libraries)
}

exports_only() {
    nm --defined-only -g "$tmp/$1.c17.o" | awk '{ print $3 }' |
        grep -v "^$1" && return 1
    return 0
}

run_saxpy() {
    check "saxpy: a program links with it" link_program saxpy_main \
        "$programs/saxpy_main.c" saxpy.c
    for group in arguments context launches threads driver unload; do
        check "saxpy: $group" "$tmp/saxpy_main" "$group"
    done
    check "saxpy: exports its own names only" exports_only saxpy
    check "saxpy: without a driver" without_driver
}

# The library opens the driver itself, and says so when there is none.
without_driver() {
    cat >"$tmp/none.c" <<'END'
#include "saxpy.h"
#include <stdio.h>
int main(void)
{
    static float x[4], y[4];
    int status = saxpy(4, 1.0f, x, y, NULL);
    printf("%d %s\n", status, saxpy_last_error());
    return status == EXO_OK;
}
END
    (cd "$tmp" && $cc -std=c17 -I. -o none none.c saxpy.c $libraries &&
        LD_LIBRARY_PATH= ./none)
}

# A program of host code with the groups of checks of its main.
run_host_code() {
    program=$1
    shift
    check "$program: a program links with it" link_program "${program}_main" \
        "$programs/${program}_main.c" "$program.c"
    for group; do
        check "$program: $group" "$tmp/${program}_main" "$group"
    done
}

run_gemm() {
    check "$1: a program links with it and another" link_program gemm_main \
        -DGEMM="$1" -DGEMM_HEADER="\"$1.h\"" "$programs/gemm_main.c" saxpy.c \
        "$1.c"
    for group in arguments launches together; do
        check "$1: $group" "$tmp/gemm_main" "$group"
    done
}

# The examples of docs/using-the-c-output.md.
run_examples() {
    check "examples/saxpy.c is linked" link_program example \
        "$examples/saxpy.c" saxpy.c
    check "examples/saxpy.c runs" "$tmp/example"
    check "examples/saxpy_ptx.c is linked" link_program example_ptx \
        "$examples/saxpy_ptx.c"
    check "PTX of saxpy" "$build/bin/exo-translate" kernels/saxpy.exo \
        --to=ptx -o "$tmp/saxpy.ptx"
    check "examples/saxpy_ptx.c runs" "$tmp/example_ptx" "$tmp/saxpy.ptx"
    check_status 1 "examples/saxpy_ptx.c refuses a text that is no PTX" \
        "$tmp/example_ptx" "$examples/saxpy.c"
}

# All libraries in one program, on a real device where there is one.
run_on_gpu() {
    source=$PWD
    libraries_of="saxpy transpose host_work hoststeps gemm_simt_f32
        gemm_sm90_bf16 gemm_sm90_f16 gemm_sm90_tf32"
    files=
    for kernel in $libraries_of; do
        [ -s "$tmp/$kernel.c" ] || return 0
        files="$files $kernel.c"
    done
    check "all kernels: one program has them all" link_gpu_program
    if [ -e /dev/nvidiactl ]; then
        check "all kernels: right on the GPU" "$tmp/gpu_main"
    else
        skip "all kernels: right on the GPU" "needs a GPU"
    fi
}

link_gpu_program() {
    (cd "$tmp" && $cc -std=c17 -O2 -Wall -Wextra -I. -I"$source" -o gpu_main \
        "$programs/gpu_main.c" $files "$source/ir/scalar.c" -L"$stub" -lcuda \
        $libraries)
}

if [ ! -x "$build/bin/exo-translate" ]; then
    skip "C libraries" "no exo-translate"
    finish
fi
if translated saxpy; then
    compiles saxpy
    run_saxpy
    run_examples
    if translated host_work; then
        compiles host_work
        run_host_code host_work work arguments failures
    fi
    if translated hoststeps; then
        compiles hoststeps
        run_host_code hoststeps work branches failures
    fi
    if translated gemm_sm90_bf16; then
        compiles gemm_sm90_bf16
        run_gemm gemm_sm90_bf16
    fi
    for kernel in transpose gemm_simt_f32 gemm_sm90_tf32 gemm_sm90_f16; do
        if translated "$kernel"; then
            compiles "$kernel"
        fi
    done
    run_on_gpu
fi
finish
