#!/bin/sh
# Compiles each header alone: a header brings in what it needs.
set -eu
cd "${EXO_SOURCE:-$(dirname "$0")/../..}"
. test/tally

flags="-std=c17 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -I.
-D_XOPEN_SOURCE=700"

compile_alone() {
    # shellcheck disable=SC2086
    printf '#include "%s"\ntypedef int header_is_read;\n' "$1" |
        ${CC:-cc} $flags $2 -x c -
}

for folder in ir passes verify codegen runtime tools; do
    [ -d "$folder" ] || continue
    extra=
    if [ "$folder" = codegen ]; then
        extra="-isystem /usr/lib/llvm-19/include"
    fi
    for header in $(find "$folder" -name '*.h' | LC_ALL=C sort); do
        check "$header" compile_alone "$header" "$extra"
    done
done
finish
