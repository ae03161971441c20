/* ends: by itself */
/* Creates as many timers as possible, each with the shortest interval. */
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static int fired;
static void fire(int signal)
{
    /* The interrupted code may not run at all. */
    if (++fired == 2000 && write(1, "done\n", 5) == 5)
        _exit(0);
}
int main(void)
{
    struct itimerspec often = {{0, 1}, {0, 1}};
    struct itimerval real = {{0, 1}, {0, 1}};
    signal(SIGALRM, fire);
    signal(SIGPROF, fire);
    for (int i = 0; i < 200; i++) {
        timer_t timer;
        struct sigevent quiet = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        if (timer_create(CLOCK_MONOTONIC, &quiet, &timer) == 0)
            timer_settime(timer, 0, &often, 0);
        timerfd_settime(timerfd_create(CLOCK_MONOTONIC, 0), 0, &often, 0);
    }
    setitimer(ITIMER_REAL, &real, 0);
    setitimer(ITIMER_PROF, &real, 0);
    while (1)
        pause();
}
