/* ends: of memory */
/* Uses memory for page tables: many processes touch one byte in every two megabytes of a map. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 16 };

static void touch(void)
{
    size_t length = 22UL << 30, step = 2UL << 20;
    volatile char *memory = mmap(0, length, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        _exit(9);
    madvise((void *)memory, length, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < length; at += step)
        if (memory[at] != 0)
            _exit(1);
    /* Longer than all others need for their page tables. */
    sleep(9);
    _exit(0);
}

int main(void)
{
    for (int started = 0; started < PROCESSES; started++)
        if (fork() == 0)
            touch();
    int alive = 0, status;
    for (int ended = 0; ended < PROCESSES; ended++)
        if (wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            alive++;
    printf("%d of %d\n", alive, PROCESSES);
    if (alive == PROCESSES)
        printf("breach: 700 MB in tables\n");
    return 9;
}
