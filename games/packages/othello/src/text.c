#include "text.h"

Text text_in(char *buffer, size_t size)
{
    return (Text){.start = buffer, .length = 0, .size = size};
}

void put_char(Text *text, char letter)
{
    if (text->length < text->size)
        text->start[text->length++] = letter;
}

void put(Text *text, const char *letters)
{
    for (; *letters != '\0'; letters++)
        put_char(text, *letters);
}

void put_number(Text *text, int number)
{
    if (number < 0)
        put_char(text, '-');
    int rest = number < 0 ? -number : number;
    int power = 1;
    while (rest / power >= 10)
        power *= 10;
    for (; power > 0; power /= 10)
        put_char(text, (char)('0' + rest / power % 10));
}

void put_hundredths(Text *text, int hundredths)
{
    if (hundredths < 0)
        put_char(text, '-');
    int rest = hundredths < 0 ? -hundredths : hundredths;
    put_number(text, rest / 100);
    put_char(text, '.');
    put_number(text, rest / 10 % 10);
    put_number(text, rest % 10);
}

void put_escaped(Text *text, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        if (*letters == '"' || *letters == '\\')
            put_char(text, '\\');
        put_char(text, *letters);
    }
}
