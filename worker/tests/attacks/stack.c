/* ends: by a signal */
/* Recurses without end. */
#include <stdio.h>

static int deeper(volatile int depth)
{
    volatile char room[4096];
    room[depth % 4096] = (char)depth;
    return deeper(depth + 1) + room[0];
}

int main(void)
{
    printf("%d\n", deeper(0));
    return 0;
}
