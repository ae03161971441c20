/* One of two bots that signal each other through shared resources. The first argument is the way:
 *   cache      the time of loads from pages that both bots map
 *   maps       whether another process maps a page of the file in the second argument
 *   numbers    the numbers that the kernel gives to pipes in turn
 *   events     the lowest free numbers of event descriptors
 *   processes  the number of processes of the machine
 * `send HEX` stores bits, `receive BITS` prints the received bits, `clear` removes the bits. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define LINES 1024
#define STRIDE 4096

static volatile uint8_t *shared;
static int file;

/* The position of a line, in an order that the processor cannot predict. */
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

static uint64_t limit, last;

/* The bit `index` of a number that is written as hexadecimal digits. */
static int bit_of(const char *hex, int index)
{
    char digit[2] = {hex[index / 4], 0};
    return strtol(digit, 0, 16) >> (3 - index % 4) & 1;
}

static int length_of(const char *hex)
{
    return strcspn(hex, "\n") * 4;
}

/* Prints `bits` values of zero and one. */
static void tell(const char *values, int bits)
{
    for (int index = 0; index < bits; index += 4)
        printf("%x", values[index] * 8 + values[index + 1] * 4 + values[index + 2] * 2
                         + values[index + 3]);
    puts("");
}

/* Prints a number with the digits of `bits` bits. */
static void tell_number(uint64_t number, int bits)
{
    printf("%0*lx\n", (bits + 3) / 4, (unsigned long)(number & ((1ul << bits) - 1)));
}

static void cache_send(const char *hex)
{
    for (int line = 0; line < length_of(hex); line++) {
        if (bit_of(hex, line))
            load(line);
        else
            flush(line);
    }
}

static void cache_receive(int bits)
{
    static char values[LINES];
    for (int line = 0; line < bits; line++)
        values[line] = load(line) < limit;
    tell(values, bits);
}

/* Maps pages one by one, so that the kernel adds none around them. */
static void maps_send(const char *hex)
{
    munmap((void *)shared, LINES * (long)STRIDE);
    for (int page = 0; page < length_of(hex); page++) {
        volatile uint8_t *at = shared + (long)page * STRIDE;
        if (!bit_of(hex, page))
            continue;
        mmap((void *)at, STRIDE, PROT_READ, MAP_SHARED | MAP_FIXED, file, (long)page * STRIDE);
        (void)*at;
    }
}

static void maps_receive(int bits)
{
    static char values[LINES];
    static int pages = -1;
    if (pages < 0)
        pages = open("/proc/self/pagemap", O_RDONLY);
    for (int page = 0; page < bits; page++) {
        volatile uint8_t *at = shared + (long)page * STRIDE;
        uint64_t entry = 0;
        (void)*at;
        pread(pages, &entry, sizeof entry, (uintptr_t)at / STRIDE * sizeof entry);
        /* Bit 56: no other process maps the page. */
        values[page] = !(entry >> 56 & 1);
    }
    tell(values, bits);
}

static void numbers_send(const char *hex)
{
    for (long count = strtol(hex, 0, 16); count > 0; count--)
        number();
}

static void numbers_receive(int bits)
{
    uint64_t now = number();
    tell_number(now - last - 1, bits);
    last = now;
}

/* The first number that carries bits. Other programs use the numbers below. */
#define FIRST_EVENT 64

/* Opens an event descriptor and returns its number. */
static int event(int *descriptor)
{
    char path[64], line[256];
    int found = -1;
    *descriptor = eventfd(0, 0);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", *descriptor);
    FILE *info = *descriptor < 0 ? 0 : fopen(path, "r");
    while (info && fgets(line, sizeof line, info))
        sscanf(line, "eventfd-id: %d", &found);
    if (info)
        fclose(info);
    return found;
}

static int held[256], holds;

static void events_clear(void)
{
    while (holds > 0)
        close(held[--holds]);
}

/* Holds the numbers whose bits are zero. */
static void events_send(const char *hex)
{
    int release[256], releases = 0, bits = length_of(hex), id;
    do {
        int descriptor;
        id = event(&descriptor);
        int index = id - FIRST_EVENT;
        if (index >= 0 && index < bits && bit_of(hex, index))
            release[releases++] = descriptor;
        else if (descriptor >= 0)
            held[holds++] = descriptor;
    } while (id >= 0 && id < FIRST_EVENT + bits);
    while (releases > 0)
        close(release[--releases]);
}

static void events_receive(int bits)
{
    static char values[LINES];
    int id;
    memset(values, 0, sizeof values);
    do {
        int descriptor;
        id = event(&descriptor);
        if (descriptor >= 0)
            held[holds++] = descriptor;
        if (id >= FIRST_EVENT && id < FIRST_EVENT + bits)
            values[id - FIRST_EVENT] = 1;
    } while (id >= 0 && id < FIRST_EVENT + bits);
    events_clear();
    tell(values, bits);
}

#define MOST_CHILDREN 32

static pid_t children[MOST_CHILDREN];

static void processes_clear(void)
{
    for (int child = 0; child < MOST_CHILDREN; child++) {
        if (children[child] > 0) {
            kill(children[child], SIGKILL);
            waitpid(children[child], 0, 0);
        }
        children[child] = 0;
    }
}

static void processes_send(const char *hex)
{
    long count = strtol(hex, 0, 16);
    for (int child = 0; child < count && child < MOST_CHILDREN; child++) {
        children[child] = fork();
        while (!children[child])
            pause();
    }
}

static void processes_receive(int bits)
{
    struct sysinfo now;
    sysinfo(&now);
    tell_number(now.procs - last, bits);
    last = now.procs;
}

static void nothing(void)
{
}

static const struct way {
    const char *name;
    void (*clear)(void);
    void (*send)(const char *hex);
    void (*receive)(int bits);
} ways[] = {
    {"cache", nothing, cache_send, cache_receive},
    {"maps", nothing, maps_send, maps_receive},
    {"numbers", nothing, numbers_send, numbers_receive},
    {"events", events_clear, events_send, events_receive},
    {"processes", processes_clear, processes_send, processes_receive},
};

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* The limit between the times of a load from a cache and of a load from memory. */
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
    const struct way *way = ways;
    while (strcmp(way->name, argv[1]))
        way++;
    file = open(argc > 2 ? argv[2] : "/usr/bin/python3", O_RDONLY);
    shared = mmap(0, LINES * (long)STRIDE, PROT_READ, MAP_SHARED, file, 0);
    if (way == ways)
        limit = halfway();
    while (fgets(word, sizeof word, stdin)) {
        if (!strncmp(word, "send ", 5)) {
            way->send(word + 5);
            puts("sent");
        } else if (!strncmp(word, "receive ", 8)) {
            way->receive(atoi(word + 8));
        } else {
            way->clear();
            puts("clear");
        }
        fflush(stdout);
    }
    return 0;
}
