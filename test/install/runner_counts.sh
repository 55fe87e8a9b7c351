#!/bin/sh
# Negative controls of test/run-tests: in a made tree a crash, a missing
# report, an executable without tests, a failing script and an empty suite are
# each a failure, and good results are not.
set -eu
cd "$EXO_SOURCE"
. test/tally

tree=$(mktemp -d)
trap 'rm -rf "$tree" "$tally_log"' EXIT
mkdir -p "$tree/test/conformance" "$tree/build/test/lit"
cp test/run-tests "$tree/test/"
cat >"$tree/build/test/lit.site.cfg.py" <<'END'
import lit.formats
config.name = "made"
config.test_format = lit.formats.ShTest()
config.suffixes = [".eir"]
END

# A stand-in for a Criterion executable: unit NAME STATUS REPORT
unit() {
    cat >"$tree/build/test/$1" <<END
#!/bin/sh
for option in "\$@"; do
    case \$option in --json=*) report=\${option#--json=} ;; esac
done
[ -z '$3' ] || printf '%s' '$3' >"\$report"
exit $2
END
    chmod +x "$tree/build/test/$1"
    echo "$1" >"$tree/build/test/unit-tests.txt"
}

# The tests of one suite with the given statuses, as Criterion reports them.
report() {
    printf '{"test_suites": [{"name": "s", "tests": ['
    comma=
    for status in "$@"; do
        printf '%s{"name": "t", "status": "%s"}' "$comma" "$status"
        comma=,
    done
    printf ']}]}'
}

conformance() {
    printf '%s\n' "$@" >"$tree/test/conformance/made.sh"
}

lit_file() {
    printf '%s\n' "$@" >"$tree/build/test/lit/made.eir"
}

# Whether the runner ends with status $1 and the last line $2.
ends() {
    status=0
    env -u EXO_LONG python3 "$tree/test/run-tests" "$tree/build" \
        >"$tree/log" 2>&1 || status=$?
    rm -f "$tree"/build/test/unit-tests.txt "$tree"/test/conformance/* \
        "$tree"/build/test/lit/*.eir
    cat "$tree/log"
    [ "$status" = "$1" ] && [ "$(tail -n 1 "$tree/log")" = "$2" ]
}

check "no test at all is no success" ends 1 "0 passed, 1 failed, 0 skipped"
lit_file "// RUN: true"
unit a_test 0 "$(report PASSED SKIPPED)"
conformance "echo 3 passed, 0 failed, 1 skipped"
check "the three kinds add up" ends 0 "5 passed, 0 failed, 2 skipped"
lit_file "// RUN: true"
unit a_test 1 "$(report PASSED FAILED ERRORED)"
check "failed and errored" ends 1 "2 passed, 2 failed, 0 skipped"
lit_file "// RUN: true"
unit a_test 139 ""
check "a crash without a report" ends 1 "1 passed, 1 failed, 0 skipped"
lit_file "// RUN: true"
unit a_test 0 "$(report)"
check "an executable without tests" ends 1 "1 passed, 1 failed, 0 skipped"
lit_file "// RUN: true"
unit a_test 1 "$(report PASSED)"
check "a bad exit status" ends 1 "2 passed, 1 failed, 0 skipped"
lit_file "// RUN: false"
check "a lit failure" ends 1 "0 passed, 1 failed, 0 skipped"
lit_file "// REQUIRES: nothing-has-this" "// RUN: true"
check "nothing but skipped is no success" \
    ends 1 "0 passed, 0 failed, 1 skipped"
lit_file "// RUN: true"
conformance "echo 2 passed, 1 failed, 0 skipped; exit 1"
check "a failing script" ends 1 "3 passed, 1 failed, 0 skipped"
lit_file "// RUN: true"
conformance "echo 2 passed, 0 failed, 0 skipped; exit 3"
check "a script's bad exit status" ends 1 "3 passed, 1 failed, 0 skipped"
lit_file "// RUN: true"
conformance "echo done"
check "a script without counts" ends 1 "1 passed, 1 failed, 0 skipped"
finish
