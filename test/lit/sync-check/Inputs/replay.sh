# Runs what the report of exo-check says, with the tools of the build.
#
#   sh replay.sh EXO-CHECK EXO-RUN FILE [OPTION..]
#
# Prints the report, then what the run says; succeeds when the check refuses
# the file, names a command, and that command fails.
set -u
check=$1
run=$2
shift 2
"$check" "$@" > "$1.report" 2>&1
[ $? -eq 1 ] || exit 2
cat "$1.report"
args=$(sed -n 's/.*replay, .*: exo-run //p' "$1.report" | head -n 1)
[ -n "$args" ] || exit 3
echo "replay: $args"
$run $args 2>&1
[ $? -eq 1 ]
