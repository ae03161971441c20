/* ends: at the deadline */
/* Starts many processes that map memory with MAP_POPULATE and unmap it again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCESSES = 60 };

int main(void)
{
    size_t length = 256UL << 20;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE;
    for (int started = 0; started < PROCESSES; started++) {
        if (fork() != 0)
            continue;
        for (;;) {
            void *memory = mmap(0, length, PROT_READ, flags, -1, 0);
            if (memory != MAP_FAILED)
                munmap(memory, length);
        }
    }
    for (;;)
        pause();
}
