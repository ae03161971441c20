/* ends: by itself */
/* Maps one page so often that the kernel reads through it for minutes and ignores a kill. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

int main(void)
{
    size_t step = 1UL << 30, mapped = 0, most = 32;
    while (mapped < 256 &&
           mmap(0, step, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
        mapped++;
    if (mapped > most)
        printf("breach: %zu GiB mapped\n", mapped);
    printf(mapped < 20 ? "%zu GiB only: too few for runtimes that reserve them\n" : "done\n", mapped);
    return 0;
}
