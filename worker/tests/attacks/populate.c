/* ends: by itself */
/* Makes calls that process whole ranges of memory. No freezer stops it inside such a call. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void refused(const char *what, long result, int error)
{
    if (result == 0)
        printf("breach: %s\n", what);
    else if (errno != error)
        printf("breach: %s was let through: %d\n", what, errno);
}

int main(void)
{
    size_t length = 1 << 20;
    void *memory = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    refused("MADV_POPULATE_READ", madvise(memory, length, 22), EINVAL);
    refused("MADV_POPULATE_WRITE", madvise(memory, length, 23), EINVAL);
    refused("MADV_COLLAPSE", madvise(memory, length, 25), EINVAL);
    refused("advice that there is not yet", madvise(memory, length, 26), EINVAL);
    refused("MADV_GUARD_INSTALL", madvise(memory, length, 102), EINVAL);
    refused("MADV_GUARD_REMOVE", madvise(memory, length, 103), EINVAL);
    refused("MADV_COLD", madvise(memory, length, 20), EINVAL);
    refused("MADV_PAGEOUT", madvise(memory, length, 21), EINVAL);
    refused("process_madvise", syscall(SYS_process_madvise, -1, 0, 0, 22, 0), EPERM);
    refused("remap_file_pages", syscall(SYS_remap_file_pages, memory, length, 0, 0, 0), EPERM);
    refused("mbind", syscall(SYS_mbind, memory, length, 0, 0, 0, 2), EPERM);
    if (madvise(memory, length, MADV_DONTNEED) != 0)
        printf("what every allocator needs is refused\n");
    else
        printf("done\n");
    return 0;
}
