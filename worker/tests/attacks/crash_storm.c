/* ends: by itself */
/* Crashes in every way, many times, with a stack and without. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    static const int ways[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGXCPU};
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &all);
    for (int round = 0; round < 200; round++) {
        int status;
        if (fork() == 0) {
            if (round % 9 == 8)
                munmap((void *)((unsigned long)&round & ~0xffffUL), 0x20000);
            raise(ways[round % 8]);
            abort();
        }
        wait(&status);
        if (WCOREDUMP(status))
            puts("breach: a core was dumped");
    }
    puts("done");
    return 0;
}
