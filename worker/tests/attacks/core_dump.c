/* ends: by a signal */
/* Enables core dumps, and crashes. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int main(void)
{
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &all) == 0)
        puts("breach: core dumps");
    fflush(stdout);
    abort();
}
