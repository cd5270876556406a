/* Files, times and the environment: buffers are read when they are written out and written when they are filled.
expect
main: r(out1)=25185 r(out1+2)=99 r(out2)=44651407724 w(in1)=6513249 w(in2)=44651407724 w(in3)=25185 w(in4)=25442 w(in5)=1701734764 r(out1)=25185 w(in6)=1633903201 r(name)=98184115081032 r(value)=120 r(name)=98184115081032 w(tick)=0 w(tick+8)=1 r(path)=47 w(real)=47
*/
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

_Alignas(8) char out1[4] = "abc", out2[8] = "line\n", in1[8], in2[8], in3[4], in4[8], in5[4], in6[4], name[8] = "HOMELY", value[4] = "x", path[4096] = "/", real[4096];
struct timespec tick;

int main(void) {
    FILE *file = tmpfile();
    char *line = 0;
    size_t room = 0;
    time_t now;
    struct timespec clock_now;
    assert(file && fwrite(out1, 1, 3, file) == 3 && fputs(out2, file) >= 0);
    rewind(file);
    assert(fread(in1, 1, 3, file) == 3 && fgets(in2, 8, file));
    rewind(file);
    assert(getline(&line, &room, file) == 8);
    int fd = fileno(file);
    struct iovec pieces[2] = {{in4, 2}, {in5, 4}};
    assert(pread(fd, in3, 2, 0) == 2 && preadv(fd, pieces, 2, 1) == 6);
    assert(pwrite(fd, out1, 2, 3) == 2);
    assert(lseek(fd, 0, SEEK_SET) == 0 && read(fd, in6, 4) == 4);
    assert(!setenv(name, value, 1) && !strcmp(getenv(name), "x"));
    errno = 5;
    assert(time(&now) > 0 && !clock_gettime(CLOCK_MONOTONIC, &clock_now));
    assert(!clock_getres(CLOCK_MONOTONIC, &tick));
    assert(realpath(path, real) == real);
    assert(errno == 5);
    fclose(file);
    return 0;
}
