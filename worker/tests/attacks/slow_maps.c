/* ends: at the deadline */
/* Starts many processes with shared memory that read through its maps without end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROCESSES = 62, COPIES = 32, LENGTH = 4 << 20, STACK = 16 << 10 };

static int walk(void *nothing)
{
    char buffer[4096];
    for (;;) {
        int file = open("/proc/self/smaps_rollup", O_RDONLY);
        if (file < 0)
            pause();
        while (read(file, buffer, sizeof buffer) > 0)
            ;
        close(file);
    }
}

int main(void)
{
    char *memory = mmap(0, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int copy = 0; copy < COPIES; copy++) {
        /* The same pages at another address, with separate page tables. */
        volatile char *again = mremap(memory, 0, LENGTH, MREMAP_MAYMOVE);
        if (again == MAP_FAILED)
            return 1;
        for (int at = 0; at < LENGTH; at += 4096)
            (void)again[at];
    }
    char *stacks = malloc(PROCESSES * STACK);
    for (int started = 1; started <= PROCESSES; started++)
        clone(walk, stacks + started * STACK, CLONE_VM | CLONE_FILES | 17, 0);
    for (;;)
        pause();
}
