/* Compresses a file with zstd's own worker threads, and checks the way back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

int main(int argc, char **argv) {
    FILE *file = fopen(argc > 1 ? argv[1] : "", "rb");
    if (!file)
        return 2;
    static char input[1 << 20], back[1 << 20];
    size_t size = fread(input, 1, sizeof input, file);
    size_t room = ZSTD_compressBound(size);
    char *output = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
    if (ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, 2)))
        return 3;
    ZSTD_CCtx_setParameter(context, ZSTD_c_jobSize, 1 << 19);
    size_t packed = ZSTD_compress2(context, output, room, input, size);
    ZSTD_freeCCtx(context);
    if (ZSTD_isError(packed) || ZSTD_decompress(back, sizeof back, output, packed) != size || memcmp(input, back, size))
        return 4;
    puts("ok");
    return 0;
}
