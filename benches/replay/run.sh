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
times() { # command...: the median wall time and processor time in milliseconds
    for _ in $(seq "$rounds"); do
        { time "$@" > /dev/null 2>&1 < /dev/null || true; } 2>&1
    done > "$folder/times"
    awk '{ print 1000 * $1 }' "$folder/times" | median
    awk '{ print 1000 * ($2 + $3) }' "$folder/times" | median
}
in_words() { paste -sd' ' | awk '{ printf "%d (%d) ms", $1, $2 }'; }

gcc -O1 -pthread -o "$folder/plain" benches/replay/steps.c
"$FORESEE" cc -O1 -g -pthread -o "$folder/steps" benches/replay/steps.c
echo "| steps | plain | recorded | replayed | steps forced per second |"
echo "|---|--:|--:|--:|--:|"
for what in "one 100000" "turns 8000"; do
    # shellcheck disable=SC2086 # Two words.
    set -- $what
    rm -rf "$folder/schedules"
    plain=$(for _ in $(seq "$rounds"); do "$folder/plain" "$@"; done | median)
    recorded=$(for _ in $(seq "$rounds"); do "$FORESEE" run --check race -- "$folder/steps" "$@" 2> /dev/null | head -n 1 || true; done | median)
    "$FORESEE" run --check race --schedules "$folder/schedules" -- "$folder/steps" "$@" > /dev/null 2>&1 || true
    schedule=$folder/schedules/observed.schedule
    replayed=$(for _ in $(seq "$rounds"); do "$FORESEE" replay "$schedule" -- "$folder/steps" "$@" 2> /dev/null | head -n 1 || true; done | median)
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
    plain=$(times "$folder/plain" | in_words)
    recorded=$(times "$FORESEE" run "$@" -- "$folder/program" | in_words)
    echo "| $example | $plain | $recorded | $(times "$FORESEE" replay "$folder/schedules/1.schedule" -- "$folder/program" | in_words) |"
done
