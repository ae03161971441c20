/* ends: by itself */
/* Reports its end to its parent by a signal that wakes a stopped process. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long born(unsigned long flags)
{
    long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return pid;
}

int main(void)
{
    int signals[] = {SIGCONT, SIGUSR1, SIGALRM, SIGRTMIN, SIGKILL, SIGSTOP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (born(signals[i]) > 0)
            printf("breach: an end that is told by signal %d\n", signals[i]);
    struct clone_args arguments = {.exit_signal = SIGCONT};
    long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0)
        _exit(0);
    if (pid > 0 || errno != ENOSYS)
        printf("breach: clone3\n");
    if (born(SIGCHLD) < 0 || wait(NULL) < 0)
        printf("an honest child is refused\n");
    else
        printf("done\n");
    return 0;
}
