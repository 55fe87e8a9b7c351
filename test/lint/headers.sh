#!/bin/sh
# Compiles each header alone: a header brings in what it needs.
set -eu
cd "${EXO_SOURCE:-$(dirname "$0")/../..}"
. test/tally

flags="-std=c17 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I.
-D_XOPEN_SOURCE=700"

compile_alone() {
    extra=
    case $1 in codegen/*) extra="-isystem /usr/lib/llvm-19/include" ;; esac
    # shellcheck disable=SC2086
    printf '#include "%s"\ntypedef int header_is_read;\n' "$1" |
        ${CC:-cc} $flags $extra -x c -
}

compile_each_alone() {
    bad=0
    # shellcheck disable=SC2046
    for header in $(find $(ls -d ir passes verify codegen runtime tools \
        2>/dev/null) -name '*.h' | LC_ALL=C sort); do
        compile_alone "$header" || bad=1
    done
    return $bad
}

check "each header compiles alone" compile_each_alone
finish
