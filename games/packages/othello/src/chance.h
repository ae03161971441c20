/* Random numbers that depend only on the seed of the match. */

#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

typedef struct {
    uint64_t state;
} Chance;

/* `seed` is the text of 64 hexadecimal digits. */
Chance chance_from(const char *seed);

/* A number from 0 to `bound` - 1, each equally likely. */
int chance_below(Chance *chance, int bound);

#endif
