/* ends: by itself */
/* Makes calls with numbers above the filter's list, and calls of the x32 interface. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>

int main(void)
{
    long numbers[] = {463, 464, 467, 470, 500, 1000, 0x40000000L, 0x40000001L, 0x40000027L};
    for (unsigned at = 0; at < sizeof numbers / sizeof *numbers; at++)
        if (syscall(numbers[at], 0, 0, 0, 0, 0, 0) >= 0 || errno != ENOSYS)
            printf("breach: call %ld: errno %d\n", numbers[at], errno);
    puts("done");
    return 0;
}
