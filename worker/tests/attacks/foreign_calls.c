/* ends: by a signal */
/* Makes system calls as 32-bit programs do. The filter does not list such calls. */
#include <stdio.h>

int main(void)
{
    long result = 20; /* getpid of 32-bit programs */
#if defined(__x86_64__)
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    printf("breach: %ld\n", result);
#else
    __builtin_trap();
#endif
    return 0;
}
