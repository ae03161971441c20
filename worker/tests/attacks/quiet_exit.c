/* ends: by a signal */
/* Kills itself the way the kernel kills for memory. */
#include <signal.h>

int main(void)
{
    return raise(SIGKILL);
}
