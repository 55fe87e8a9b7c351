#!/bin/sh
# Builds the tools with the second compiler, into build-clang, and compares
# what both builds print, byte for byte.
set -eu
cd "$EXO_SOURCE"
. test/tally

build=build-clang
if ! command -v clang-19 >/dev/null; then
    skip "the second compiler" "no clang-19"
    finish
fi

# The same command by both builds: exit status, output and errors agree.
agree() {
    tool=$1
    shift
    for side in "$EXO_BUILD" "$build"; do
        status=0
        "$side/bin/$tool" "$@" >"$build/out" 2>"$build/err" || status=$?
        { echo "status $status" && cat "$build/out" "$build/err"; } \
            >"$build/$(basename "$side").said"
    done
    cmp "$build/$(basename "$EXO_BUILD").said" "$build/$build.said"
}

echo "building $build"
check "builds with clang-19" build_in "$build" \
    -DCMAKE_C_COMPILER=clang-19 -DEXO_BUILD_TESTS=OFF
[ "$tally_failed" = 0 ] || finish
for kernel in kernels/*.exo test/examples/*.exo; do
    [ -f "$kernel" ] || continue
    check "$kernel: as read" agree exo-opt "$kernel"
    check "$kernel: as .exo" agree exo-opt "$kernel" --emit=exo
    check "$kernel: lowered" agree exo-opt "$kernel" \
        --pass-pipeline=lower-par-to-async
    check "$kernel: LLVM IR" agree exo-translate "$kernel" --to=llvm
    check "$kernel: PTX" agree exo-translate "$kernel" --to=ptx
    check "$kernel: by the default pipeline" agree exo-translate "$kernel" --to=eir --level=async
done
# exo-run prints a hash of each output's bytes.
for kernel in kernels/*.exo; do
    case $kernel in
    */saxpy.exo) size=N=300 ;;
    */transpose.exo) size=M=70,N=45 ;;
    */gemv*.exo) size=M=136,K=40 ;;
    *) size=M=136,N=72,K=40 ;;
    esac
    check "$kernel: run sequentially" agree exo-run "$kernel" \
        --size "$size" --fill=normal
    check "$kernel: run on the machine model" agree exo-run "$kernel" \
        --size "$size" --level=async --seed=7 --fill=normal
done
finish
