/* ends: at the deadline */
/* Starts many processes that read the page map of unused addresses, with the largest reads. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCESSES = 60, LENGTH = 64 << 20 };

int main(void)
{
    char *memory = mmap(0, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int started = 0; started < PROCESSES; started++) {
        if (fork() != 0)
            continue;
        int file = open("/proc/self/pagemap", O_RDONLY);
        if (file < 0)
            pause();
        for (;;)
            pread(file, memory, LENGTH, 1 << 20);
    }
    for (;;)
        pause();
}
