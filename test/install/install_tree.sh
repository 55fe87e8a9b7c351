#!/bin/sh
# Installs the build into an empty folder; from there the tools find their
# library, and a C program compiles and links by exo.pc.
set -eu
cd "$EXO_SOURCE"
. test/tally

prefix=$(mktemp -d)
trap 'rm -rf "$prefix" "$tally_log"' EXIT

compile_by_pkg_config() {
    flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name exo.pc)") \
        pkg-config --cflags --libs exo) || return 1
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c17 -o "$prefix/user" "$prefix/user.c" $flags
}

# Includes every installed header of ir/ and calls into its library.
{
    for header in ir/*.h; do
        echo "#include \"$header\""
    done
    echo "int main(void) { return scalar_type_bytes(TY_f32) != 4; }"
} >"$prefix/user.c"

check "cmake --install" cmake --install "$EXO_BUILD" --prefix "$prefix"
for tool in exo-opt exo-check exo-run exo-translate; do
    check "$tool is installed" test -x "$prefix/bin/$tool"
done
check "the instruction library is installed" test -d "$prefix/share/exo/lib"
check "saxpy is installed" test -f "$prefix/share/exo/kernels/saxpy.exo"
cp kernels/saxpy.exo "$prefix/here.exo" 2>/dev/null || true
cd /
check "the installed exo-opt reads a kernel from another folder" \
    "$prefix/bin/exo-opt" "$prefix/here.exo" \
    --pass-pipeline=lower-par-to-async
if command -v pkg-config >/dev/null; then
    check "a C program compiles by exo.pc" compile_by_pkg_config
    check "and runs" "$prefix/user"
else
    skip "a C program compiles by exo.pc" "no pkg-config"
fi
finish
