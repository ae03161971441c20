/* ends: by itself */
/* Writes input into every terminal that it can find. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void)
{
    char key = '\n';
    for (int descriptor = 0; descriptor < 16; descriptor++) {
        if (ioctl(descriptor, TIOCSTI, &key) == 0 || ioctl(descriptor, 0xF00005412UL, &key) == 0)
            puts("breach: TIOCSTI");
        if (ioctl(descriptor, TIOCSCTTY, 1) == 0)
            puts("breach: a terminal");
    }
    if (open("/dev/tty", O_RDWR) >= 0 || open("/dev/ptmx", O_RDWR) >= 0)
        puts("breach: opened a terminal");
    puts("done");
    return 0;
}
