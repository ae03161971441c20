/* ends: by itself */
/* Waits and wakes on pages of the system's files, and on none. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    int file = open("/usr/bin/env", O_RDONLY);
    int *page = mmap(0, 4096, PROT_READ, MAP_SHARED, file, 0);
    struct timespec soon = {0, 1000};
    for (int round = 0; round < 20000; round++) {
        syscall(SYS_futex, page + round % 1024, FUTEX_WAIT, page[round % 1024], &soon, 0, 0);
        syscall(SYS_futex, page + round % 1024, FUTEX_WAKE, 1 << 30, 0, 0, 0);
        syscall(SYS_futex, page, FUTEX_CMP_REQUEUE, 1, 1, page + 8, *page);
        syscall(SYS_futex, (int *)8, FUTEX_LOCK_PI, 0, &soon, 0, 0);
    }
    puts("done");
    return 0;
}
