/* ends: at the deadline */
/* Starts a vfork child that blocks its parent without end. */
#include <unistd.h>

int main(void)
{
    if (vfork() == 0)
        for (;;)
            pause();
    return 0;
}
