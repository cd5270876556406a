#!/usr/bin/env bash
# What capture costs: each program plain, with gcc's own thread sanitizer and with foresee's runtime, side by side in one
# run. Prints a table for benches/results/capture.md: CPU and wall time relative to the plain program, and the size of the log
# relative to one record of 24 bytes for each hook. Needs gcc with libtsan, and the sources of pigz and zlib (fetched).
#
#   cargo build -p foresee-capture && benches/capture/run.sh [REPETITIONS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
# The runtime is optimised in every profile.
object=$(find "$target" -name foresee_rt.o -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
[ -n "$object" ] || { echo "build first: cargo build -p foresee-capture" >&2; exit 1; }
times=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# pigz compresses with its own threads, and every byte of that is zlib's work.
zlib=$("$here/../../scripts/debian-source" zlib "$work/debian")
pigz=$("$here/../../scripts/debian-source" pigz "$work/debian")
cat "$zlib"/*.[ch] "$zlib"/contrib/*/*.[ch] "$zlib"/doc/* | head -c 4000000 > input || true

# build NAME KIND: the program as NAME.KIND
build() {
    local hooks="" link="" extra="" sources="$here/$1.c"
    case $2 in
        tsan) hooks=-fsanitize=thread link=-fsanitize=thread ;;
        foresee) hooks=-fsanitize=thread extra=$object ;;
    esac
    [ "$1" != pigz ] || sources=$(ls "$pigz"/{pigz,yarn,try}.c "$zlib"/{adler32,compress,crc32,deflate,infback,inffast,inflate,inftrees,trees,zutil}.c)
    rm -rf "$1.$2.objects"; mkdir "$1.$2.objects"
    # shellcheck disable=SC2086
    (cd "$1.$2.objects" && gcc -g -O2 -w -DNOZOPFLI $hooks -I"$zlib" -c $sources)
    gcc "$1.$2.objects"/*.o $extra $link -pthread -lm -o "$1.$2"
}

# command NAME KIND: how to run it
command_of() {
    case $1 in
        pigz) echo "./pigz.$2 -p4 -c input" ;;
        *) echo "./$1.$2" ;;
    esac
}

# measure COMMAND...: the least CPU and wall time of all runs, in milliseconds
measure() {
    local best_cpu=999999999 best_wall=999999999
    for _ in $(seq "$times"); do
        rm -rf logs; mkdir logs
        local out; out=$( { TIMEFORMAT='%R %U %S'; time "$@" >/dev/null 2>&1; } 2>&1 | tail -1)
        read -r wall user sys <<<"$out"
        local w c
        w=$(awk "BEGIN{print int($wall*1000)}"); c=$(awk "BEGIN{print int(($user+$sys)*1000)}")
        [ "$w" -lt "$best_wall" ] && best_wall=$w
        [ "$c" -lt "$best_cpu" ] && best_cpu=$c
    done
    echo "$best_cpu $best_wall"
}

echo "| program | hooks | CPU: sanitizer | CPU: foresee | wall: sanitizer | wall: foresee | log | of the raw events |"
echo "|---|---|---|---|---|---|---|---|"
for name in ${PROGRAMS:-hashmap queue matrix pigz}; do
    for kind in plain tsan foresee; do build $name $kind; done
    read -r pc pw <<<"$(measure $(command_of $name plain))"
    read -r tc tw <<<"$(measure $(command_of $name tsan))"
    read -r fc fw <<<"$(FORESEE_CAPTURE=$work/logs measure $(command_of $name foresee))"
    rm -rf logs; mkdir logs
    FORESEE_CAPTURE=$work/logs $(command_of $name foresee) >/dev/null
    # Bytes 64 and 48 of the tail: see docs/formats/capture-log.md.
    hooks=$(od -An -t u8 -j64 -N8 logs/*.tail | tr -d ' ')
    size=$(od -An -t u8 -j48 -N8 logs/*.tail | tr -d ' ')
    awk -v n=$name -v h="$hooks" -v s="$size" -v pc="$pc" -v pw="$pw" -v tc="$tc" -v tw="$tw" -v fc="$fc" -v fw="$fw" 'BEGIN {
        printf "| %s | %.1f M | %.1fx | %.1fx | %.1fx | %.1fx | %.1f MB | %.0f %% |\n",
            n, h/1e6, tc/pc, fc/pc, tw/pw, fw/pw, s/1e6, 100*s/(24*h) }'
done
