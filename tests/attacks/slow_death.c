/* Starts threads that count the pages of many maps of one file. A kill does not end these
 * calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* 45 million pages, or as many as possible: a walk through all of them takes minutes. */
enum { MAPS = 5500, LENGTH = 32 << 20, THREADS = 62 };

static void *count(void *unused)
{
    char text[4096];
    for (;;) {
        int file = open("/proc/self/smaps_rollup", O_RDONLY);
        if (file < 0 || read(file, text, sizeof text) <= 0)
            perror("smaps_rollup");
        close(file);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    int file = open("pages", O_CREAT | O_RDWR, 0600);
    if (ftruncate(file, LENGTH) != 0)
        perror("pages");
    char *pages = mmap(0, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (size_t at = 0; at < LENGTH; at += 4096)
        pages[at] = 1;
    for (int number = 0; number < MAPS; number++)
        if (mmap(0, LENGTH, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0) == MAP_FAILED)
            break;
    fputs("counting\n", stderr);
    for (int number = 1; number < THREADS; number++)
        pthread_create(&thread, 0, count, 0);
    count(0);
}
