/* ends: by a signal */
/* Asks for a core dump, and gives a reason for one. */
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
