/* Writes text into a buffer. What does not fit is left out. */

#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

typedef struct {
    char *start;
    size_t length;
    size_t size;
} Text;

/* An empty text in `buffer`. */
Text text_in(char *buffer, size_t size);

void put_char(Text *text, char letter);
void put(Text *text, const char *letters);
void put_number(Text *text, int number);

/* A number of hundredths as a decimal fraction: 125 is 1.25. */
void put_hundredths(Text *text, int hundredths);

/* The inside of a JSON string: printable ASCII, with `"` and `\` escaped. */
void put_escaped(Text *text, const char *letters);

#endif
