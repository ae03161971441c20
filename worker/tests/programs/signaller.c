/* One of two bots that talk to each other by what a machine shares: caches, or numbers that the
 * kernel gives in turn. `send HEX` leaves bits, `receive BYTES` tells them as they are found. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <x86intrin.h>

#define LINES 1024
#define STRIDE 4096

static volatile uint8_t *shared;

/* Where a line is: in an order that no processor foresees. */
static volatile uint8_t *place(int line)
{
    unsigned mixed = line * 0x9E3779B1u;
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA6Bu;
    return shared + (long)line * STRIDE + (mixed >> 26) * 64 % 4096;
}

static uint64_t load(int line)
{
    volatile uint8_t *byte = place(line);
    unsigned unused;
    _mm_mfence();
    uint64_t start = __rdtscp(&unused);
    (void)*byte;
    uint64_t took = __rdtscp(&unused) - start;
    _mm_lfence();
    return took;
}

static void flush(int line)
{
    _mm_clflush((const void *)place(line));
    _mm_mfence();
}

/* The number of the next pipe. */
static uint64_t number(void)
{
    int ends[2];
    struct stat found;
    if (pipe(ends) || fstat(ends[0], &found))
        return 0;
    close(ends[0]);
    close(ends[1]);
    return found.st_ino;
}

static int by_number;
static uint64_t limit, last;

static void send_bits(const char *hex)
{
    if (by_number) {
        for (long count = strtol(hex, 0, 16); count > 0; count--)
            number();
        return;
    }
    for (int line = 0; hex[line / 4] > ' '; line++) {
        char digit[2] = {hex[line / 4], 0};
        if (strtol(digit, 0, 16) >> (3 - line % 4) & 1)
            load(line);
        else
            flush(line);
    }
}

static void receive_bits(int bytes)
{
    if (by_number) {
        uint64_t now = number();
        printf("%0*lx\n", bytes * 2, (unsigned long)(now - last - 1) & ((1ul << bytes * 8) - 1));
        last = now;
        return;
    }
    for (int line = 0; line < bytes * 8; line += 4) {
        int digit = 0;
        for (int bit = 0; bit < 4; bit++)
            digit = digit * 2 + (load(line + bit) < limit);
        printf("%x", digit);
    }
    puts("");
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Between the time of a load from a cache and that of one from memory. */
static uint64_t halfway(void)
{
    static uint64_t near[LINES], far[LINES];
    for (int line = 0; line < LINES; line++) {
        load(line);
        flush(line);
        far[line] = load(line);
        near[line] = load(line);
    }
    qsort(near, LINES, sizeof *near, compare);
    qsort(far, LINES, sizeof *far, compare);
    return (near[LINES / 2] + far[LINES / 2]) / 2;
}

int main(int argc, char **argv)
{
    char word[2048];
    int file = open("/usr/bin/python3", O_RDONLY);
    shared = mmap(0, LINES * (long)STRIDE, PROT_READ, MAP_SHARED, file, 0);
    by_number = argc > 1 && !strcmp(argv[1], "numbers");
    limit = by_number ? 0 : halfway();
    while (fgets(word, sizeof word, stdin)) {
        if (!strncmp(word, "send ", 5)) {
            send_bits(word + 5);
            puts("sent");
        } else {
            receive_bits(atoi(word + 8));
        }
        fflush(stdout);
    }
    return 0;
}
