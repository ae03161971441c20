/* ends: by a signal */
/* Makes system calls in the manner of 32-bit programs, which no filter of ours reads. */
#include <stdio.h>

int main(void)
{
    long result = 20; /* getpid, there */
#if defined(__x86_64__)
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    printf("breach: %ld\n", result);
#else
    __builtin_trap();
#endif
    return 0;
}
