/* Shifts the wall clock of one program by what a file says: preloaded into a coordinator.
 *
 * DRILL_CLOCK names a file of eight bytes, the offset in seconds as a native integer. The file is
 * mapped, so that a new offset holds from the next call on. Monotonic clocks stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("DRILL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *offset;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
        return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (seconds)
        *seconds = exact.tv_sec;
    return exact.tv_sec;
}
