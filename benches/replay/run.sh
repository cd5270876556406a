#!/usr/bin/env bash
# The cost of replay: nanoseconds for each forced step, and the time to confirm a prediction against that of a plain run.
#
#     benches/replay/run.sh [ROUNDS]        prints the tables of benches/results/replay.md
#
# Each figure is the median of ROUNDS (9) runs. FORESEE names a foresee that is already built.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-9}
target=${CARGO_TARGET_DIR:-$PWD/target}
[ -n "${FORESEE:-}" ] || { cargo build --release --quiet -p foresee-cli; FORESEE=$target/release/foresee; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
TIMEFORMAT='%R %U %S'
# The median wall time and processor time of several command lines, each once in every round, in milliseconds.
side_by_side() {
    rm -f "$folder"/times.*
    for _ in $(seq "$rounds"); do
        for i in $(seq $#); do
            { time sh -c "${!i}" > /dev/null 2>&1 < /dev/null || true; } 2>> "$folder/times.$i"
        done
    done
    for i in $(seq $#); do
        wall=$(awk '{ print 1000 * $1 }' "$folder/times.$i" | median)
        processor=$(awk '{ print 1000 * ($2 + $3) }' "$folder/times.$i" | median)
        printf ' %d (%d) ms |' "$wall" "$processor"
    done
}

gcc -O1 -pthread -o "$folder/plain" benches/replay/steps.c
"$FORESEE" cc -O1 -g -pthread -o "$folder/steps" benches/replay/steps.c
echo "| steps | plain | recorded | replayed | steps forced per second |"
echo "|---|--:|--:|--:|--:|"
for what in "one 100000" "turns 8000"; do
    # shellcheck disable=SC2086 # Two words.
    set -- $what
    rm -rf "$folder/schedules"
    "$FORESEE" run --check race --schedules "$folder/schedules" -- "$folder/steps" "$@" > /dev/null 2>&1 || true
    schedule=$folder/schedules/observed.schedule
    rm -f "$folder"/*.ns
    for _ in $(seq "$rounds"); do
        "$folder/plain" "$@" >> "$folder/plain.ns"
        { "$FORESEE" run --check race -- "$folder/steps" "$@" 2> /dev/null || true; } | head -n 1 >> "$folder/recorded.ns"
        { "$FORESEE" replay "$schedule" -- "$folder/steps" "$@" 2> /dev/null || true; } | head -n 1 >> "$folder/replayed.ns"
    done
    plain=$(median < "$folder/plain.ns") recorded=$(median < "$folder/recorded.ns") replayed=$(median < "$folder/replayed.ns")
    echo "| $1, $(tail -n 1 "$schedule" | cut -d' ' -f2) steps | $plain ns | $recorded ns | $replayed ns | $(awk -v n="$replayed" 'BEGIN { printf "%.0f", 1e9 / n }') |"
done
echo
echo "| example: wall (processor) time | plain run | \`foresee run\` | \`foresee replay\` |"
echo "|---|--:|--:|--:|"
for example in landing lock-inversion philosophers hidden-race use-after-free; do
    source=$(ls "examples/$example"/*.c | head -n 1)
    spec=${source%.*}.spec
    gcc -g -pthread -o "$folder/plain" "$source"
    "$FORESEE" cc -g -pthread -o "$folder/program" "$source"
    set --
    [ ! -f "$spec" ] || set -- --spec "$spec"
    rm -rf "$folder/schedules"
    "$FORESEE" run "$@" --schedules "$folder/schedules" -- "$folder/program" > /dev/null 2>&1 || true
    [ -f "$folder/schedules/1.schedule" ] || continue
    echo "| $example |$(side_by_side "$folder/plain" "$FORESEE run $* -- $folder/program" "$FORESEE replay $folder/schedules/1.schedule -- $folder/program")"
done
