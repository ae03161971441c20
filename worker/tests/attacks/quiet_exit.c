/* ends: by a signal */
/* Kills itself as the kernel does when memory runs out. */
#include <signal.h>

int main(void)
{
    return raise(SIGKILL);
}
