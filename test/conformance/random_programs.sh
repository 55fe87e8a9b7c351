#!/bin/sh
# Random annotated programs: no check crashes, and what every check has proved
# runs on the machine model to the sequential result. EXO_LONG=1: a thousand.
set -u
bin=${EXO_BIN:-build/bin}
count=100
[ "${EXO_LONG:-}" = 1 ] && count=1000
exec python3 test/fuzz/programs.py --bin="$bin" --count="$count"
