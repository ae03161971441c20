/* ends: by itself */
/* Changes a file that is not its own by bare calls, also with a path whose lower half is zero. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *file;

static void must_fail(const char *what, long result) {
    if (result == 0)
        printf("breach: %s\n", what);
    else
        printf("%s refused: %s\n", what, strerror(errno));
}

int main(int argc, char **argv) {
    file = argv[1];
    int place = open(file, O_PATH);
    must_fail("fchmodat2", syscall(452, AT_FDCWD, file, 0, 0));
    must_fail("fchmodat2 of a place", syscall(452, place, "", 0, AT_EMPTY_PATH));
    must_fail("fchmod of a place", syscall(SYS_fchmod, place, 0));
    must_fail("fchownat", syscall(SYS_fchownat, place, "", getuid(), getgid(), AT_EMPTY_PATH));
    must_fail("utimensat", syscall(SYS_utimensat, AT_FDCWD, file, 0, 0));
    must_fail("utimensat of a place", syscall(SYS_utimensat, place, "", 0, AT_EMPTY_PATH));
    must_fail("truncate", syscall(SYS_truncate, file, 0));
    /* A filter that checks only half of a pointer sees a null pointer. */
    void *at = (void *)(1L << 32);
    int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char *path = mmap(at, 1 << 16, access, kind, -1, 0);
    if (path == at && strlen(file) < 1 << 16) {
        strcpy(path, file);
        must_fail("utimensat at a round address", syscall(SYS_utimensat, AT_FDCWD, path, 0, 0));
    }
    puts("done");
    return 0;
}
