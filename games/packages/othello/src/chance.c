/* The generator is splitmix64: a counter with a large odd step, and a function that mixes its bits.
 * The same function mixes the characters of the seed, 8 at a time, into the first count. */

#include "chance.h"

static uint64_t mix(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static uint64_t next(Chance *chance)
{
    chance->state += 0x9e3779b97f4a7c15u;
    return mix(chance->state);
}

Chance chance_from(const char *seed)
{
    Chance chance = {.state = 0};
    while (*seed != '\0') {
        uint64_t word = 0;
        for (int i = 0; i < 8 && *seed != '\0'; i++)
            word = word << 8 | (unsigned char)*seed++;
        chance.state ^= word;
        chance.state = next(&chance);
    }
    return chance;
}

int chance_below(Chance *chance, int bound)
{
    uint64_t parts = UINT64_MAX / (uint64_t)bound;
    uint64_t number;
    /* The numbers behind the last whole part would make small results more likely. */
    do
        number = next(chance) / parts;
    while (number >= (uint64_t)bound);
    return (int)number;
}
