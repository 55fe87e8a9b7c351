#!/bin/sh
# Builds what needs a C17 compiler and CMake alone, into build-min (headers of
# the libraries left out are errors, also where they are installed), and checks
# that its tools work, that they answer 4 for what is left out, that they lower
# to the bytes of the full build, and what of the lit suite needs none of them.
set -eu
cd "$EXO_SOURCE"
. test/tally

build=build-min
lit=/usr/lib/llvm-19/build/utils/lit/lit.py

# Whether a tool of the minimal build loads one of the libraries left out.
loads_nothing() {
    test -x "$1" && ! ldd "$1" | grep -E 'libLLVM|libz3|libjansson'
}

same_output() {
    "$build/bin/exo-opt" "$@" >"$build/min.out" &&
        "$EXO_BUILD/bin/exo-opt" "$@" >"$build/full.out" &&
        cmp "$build/min.out" "$build/full.out"
}

echo "building $build"
check "builds without LLVM, Z3 and jansson" build_in "$build" \
    -DEXO_WITH_LLVM=OFF -DEXO_WITH_Z3=OFF -DEXO_WITH_JSON=OFF \
    -DEXO_BUILD_TESTS=OFF "-DCMAKE_C_FLAGS=-I$EXO_SOURCE/test/stub/absent"
for tool in exo-opt exo-check exo-run exo-translate; do
    check "$tool is built and loads none of them" loads_nothing "$build/bin/$tool"
done
check "exo-opt lists its passes" "$build/bin/exo-opt" --list-passes
check "saxpy runs" "$build/bin/exo-run" kernels/saxpy.exo --size N=100 --check
check_status 4 "--to=ptx answers that LLVM is missing" \
    "$build/bin/exo-translate" kernels/saxpy.exo --to=ptx
check_status 4 "JSON diagnostics answer that jansson is missing" \
    "$build/bin/exo-opt" kernels/saxpy.exo --diagnostics=json
for kernel in kernels/*.exo; do
    check "$kernel lowers to the same bytes" \
        same_output "$kernel" --pass-pipeline=lower-par-to-async
done
check "the lit suite passes without them" python3 "$lit" -q "$build/test/lit"
finish
