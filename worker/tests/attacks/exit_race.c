/* ends: by itself */
/* Threads that exec, exit and fork at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char *self;
static void *exec(void *unused)
{
    execl(self, self, "leaf", (char *)0);
    return 0;
}
static void *leave(void *unused)
{
    _exit(0);
}
int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1 && !strcmp(argv[1], "leaf"))
        return 0;
    for (int round = 0; round < 60; round++) {
        if (fork() == 0) {
            pthread_t threads[6];
            for (int i = 0; i < 6; i++)
                pthread_create(&threads[i], 0, i % 2 ? exec : leave, 0);
            pause();
        }
        if (round % 8 == 7)
            while (wait(0) > 0)
                ;
    }
    while (wait(0) > 0)
        ;
    puts("done");
    return 0;
}
