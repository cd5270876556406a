# Sources, builds and uses of six third-party programs, for the scripts beside this one, which set `root` and `work`.
#
# NAME_build CC CXX DIR leaves DIR/program. NAME_use PROGRAM SIZE prints the command to run, where SIZE is `whole` for the figures of the capture,
# and `part` for the checks that need every access.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
missing=""
for tool in gcc g++ make cmake; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
[ -z "$missing" ] || { apt-get update -qq; apt-get install -qqy $missing >/dev/null; }
mkdir -p "$work/fetch/src"

# Out of crates, as the registry has them.
cat > "$work/fetch/Cargo.toml" <<'MANIFEST'
[package]
name = "fetch"
version = "0.0.0"
edition = "2024"
[dependencies]
blosc-src = "=0.3.8"
lzma-sys = "=0.1.20"
leveldb-sys = "=2.0.9"
libsqlite3-sys = "=0.39.1"
[workspace]
MANIFEST
touch "$work/fetch/src/lib.rs"
vendor="$work/fetch/vendor"
[ -d "$vendor" ] || (cd "$work/fetch" && cargo vendor -q vendor >/dev/null)

debian() { "$root/scripts/debian-source" "$1" "$work/debian"; }

# Varied text: the sources that were fetched.
text="$work/text"
[ -s "$text" ] || cat "$vendor"/lzma-sys/xz-5.2/src/liblzma/*/*.c "$vendor"/blosc-src/c-blosc/blosc/*.c "$vendor"/leveldb-sys/deps/leveldb-1.22/*/*.cc > "$text"
for size in 100000 1000000; do
    [ -s "$text.$size" ] || while cat "$text"; do :; done 2>/dev/null | head -c $size > "$text.$size" || true
done

flags="-O1 -g -w"
six_programs="zstd sqlite blosc xz leveldb pigz"
zstd_about="zstd, its own program, \`-T4\`"
zstd_build() {
    cp -r "$(debian libzstd)" "$3/source"
    make -s -C "$3/source/programs" zstd CC="$1" CFLAGS="$flags" HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 BACKTRACE=0 ZSTD_NO_ASM=1 ZSTD_LEGACY_SUPPORT=0 >/dev/null
    cp "$3/source/programs/zstd" "$3/program"
}
zstd_use() {
    case $2 in
        whole) echo "$1 -q -T4 -B256K -3 -c $text.1000000" ;;
        part) echo "$1 -q -T2 -B64K -1 -c $text.100000" ;;
    esac
}
sqlite_about="SQLite, its own \`threadtest4\`, a tenth of the rows"
sqlite_build() {
    sed 's/i\*100+1, (i+1)\*100/i*10+1, (i+1)*10/; s/!=400/!=40/; s/zeroblob(3000)/zeroblob(300)/' "$(debian sqlite3)/test/threadtest4.c" > "$3/threadtest4.c"
    (cd "$3" && "$1" $flags -I"$vendor/libsqlite3-sys/sqlite3" -o program threadtest4.c "$vendor/libsqlite3-sys/sqlite3/sqlite3.c" -lpthread -ldl -lm)
}
sqlite_use() {
    case $2 in
        whole) echo "$1 -wal -multithread 3" ;;
        part) echo "$1 -serialized 2" ;;
    esac
}
blosc_about="c-blosc, its own \`multithread\` example, less data"
blosc_build() {
    sed 's/SIZE 1000\*1000/SIZE 400*1000/' "$vendor/blosc-src/c-blosc/examples/multithread.c" > "$3/multithread.c"
    (cd "$3" && "$1" $flags -I"$vendor/blosc-src/c-blosc/blosc" -o program multithread.c "$vendor"/blosc-src/c-blosc/blosc/{blosc,blosclz,fastcopy,shuffle-generic,bitshuffle-generic,shuffle}.c -lpthread)
}
blosc_use() { echo "$1"; }
xz_about="xz 5.2, \`-T4\`, built by its CMake"
xz_build() {
    cmake -S "$vendor/lzma-sys/xz-5.2" -B "$3/out" -DCMAKE_C_COMPILER="$1" -DCMAKE_C_FLAGS="$flags" >/dev/null
    cmake --build "$3/out" --target xz -j 2 >/dev/null && cp "$3/out/xz" "$3/program"
}
xz_use() {
    case $2 in
        whole) echo "$1 -T4 -0 --block-size=200000 -c $text.1000000" ;;
        part) echo "$1 -T2 -0 --block-size=50000 -c $text.100000" ;;
    esac
}
leveldb_about="LevelDB 1.22, its own \`db_bench\`, built by its CMake"
leveldb_build() {
    cmake -S "$vendor/leveldb-sys/deps/leveldb-1.22" -B "$3/out" -DCMAKE_CXX_COMPILER="$2" -DCMAKE_C_COMPILER="$1" -DCMAKE_CXX_FLAGS="$flags" \
        -DLEVELDB_BUILD_TESTS=OFF -DHAVE_SNAPPY=0 -DHAVE_TCMALLOC=0 -DHAVE_SQLITE3=0 -DHAVE_CLANG_THREAD_SAFETY=0 >/dev/null
    cmake --build "$3/out" --target db_bench -j 2 >/dev/null && cp "$3/out/db_bench" "$3/program"
}
leveldb_use() {
    local num=1000; [ "$2" = whole ] || num=60
    echo "$1 --db=db --num=$num --threads=3 --benchmarks=fillrandom,readrandom --write_buffer_size=65536"
}
pigz_about="pigz 2.8 with zlib 1.2.13, both built for capture, \`-p4\`"
pigz_build() {
    cp -r "$(debian zlib)" "$3/zlib"
    (cd "$3/zlib" && CC="$1" CFLAGS="$flags" ./configure --static >/dev/null && make -s libz.a >/dev/null)
    cp -r "$(debian pigz)" "$3/source"
    make -s -C "$3/source" pigz CC="$1" CFLAGS="$flags -I$3/zlib" LDFLAGS="-L$3/zlib" >/dev/null
    cp "$3/source/pigz" "$3/program"
}
pigz_use() {
    case $2 in
        whole) echo "$1 -p4 -b64 -c $text.1000000" ;;
        part) echo "$1 -p2 -b32 -c $text.100000" ;;
    esac
}
