/* ends: at the deadline */
/* A child that never lets its parent go on. */
#include <unistd.h>

int main(void)
{
    if (vfork() == 0)
        for (;;)
            pause();
    return 0;
}
