#include "json.h"

/* A character of an escape, such as the `n` of `\n`, that does not stand for itself. */
static const char CONTROL[] = "bfnrt";

static bool same(const char *one, const char *two)
{
    while (*one != '\0' && *one == *two) {
        one++;
        two++;
    }
    return *one == *two;
}

static bool contains(const char *letters, char letter)
{
    for (; *letters != '\0'; letters++)
        if (*letters == letter)
            return true;
    return false;
}

/* The next character, 0 at the end. */
static char peek(const Json *json)
{
    return json->at < json->end ? *json->at : '\0';
}

/* Takes the next character, 0 at the end. */
static char take(Json *json)
{
    return json->at < json->end ? *json->at++ : '\0';
}

static void skip_space(Json *json)
{
    while (peek(json) != '\0' && contains(" \t\r\n", peek(json)))
        json->at++;
}

/* Takes `letter` after space. False if something else comes. */
static bool take_only(Json *json, char letter)
{
    skip_space(json);
    if (peek(json) != letter)
        return false;
    json->at++;
    return true;
}

/* The four hexadecimal digits of `\u0000`. */
static int take_code(Json *json)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        char digit = take(json);
        int value = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
        code = code * 16 + (value & 15);
    }
    return code;
}

/* Takes the next byte or escape of a string. Returns the character if it is printable ASCII, 0 for
 * the second and later bytes of a character of UTF-8, and `?` for everything else. */
static char take_character(Json *json)
{
    int code = (unsigned char)take(json);
    if (code >= 0x80 && code < 0xc0)
        return '\0';
    if (code == '\\') {
        code = (unsigned char)take(json);
        if (code == 'u')
            code = take_code(json);
        else if (contains(CONTROL, (char)code))
            code = '\n';
    }
    return code >= ' ' && code <= '~' ? (char)code : '?';
}

/* Takes a string. See `json_string`. */
static size_t take_string(Json *json, char *text, size_t size)
{
    size_t length = 0;
    take_only(json, '"');
    while (json->at < json->end && *json->at != '"') {
        char letter = take_character(json);
        if (letter == '\0')
            continue;
        if (length + 1 < size)
            text[length] = letter;
        length++;
    }
    take(json);
    if (size > 0)
        text[length < size ? length : size - 1] = '\0';
    return length;
}

/* Takes a value of any kind. Counts brackets, so that deep nesting needs no stack. */
static void skip_value(Json *json)
{
    int depth = 0;
    do {
        skip_space(json);
        char next = peek(json);
        if (next == '"') {
            take_string(json, NULL, 0);
            continue;
        }
        json->at += json->at < json->end;
        if (next == '{' || next == '[')
            depth++;
        else if (next == '}' || next == ']')
            depth--;
        else if (!contains(",:", next))
            while (peek(json) != '\0' && !contains(",:]} \t\r\n", peek(json)))
                json->at++;
    } while (depth > 0 && json->at < json->end);
}

bool json_member(Json object, const char *key, Json *value)
{
    char name[16];
    if (!take_only(&object, '{'))
        return false;
    do {
        size_t length = take_string(&object, name, sizeof name);
        if (!take_only(&object, ':'))
            return false;
        if (length < sizeof name && same(name, key)) {
            *value = object;
            return true;
        }
        skip_value(&object);
    } while (take_only(&object, ','));
    return false;
}

bool json_element(Json array, int index, Json *value)
{
    if (!take_only(&array, '['))
        return false;
    skip_space(&array);
    if (peek(&array) == ']')
        return false;
    for (; index > 0; index--) {
        skip_value(&array);
        if (!take_only(&array, ','))
            return false;
    }
    *value = array;
    return true;
}

size_t json_string(Json value, char *text, size_t size)
{
    return take_string(&value, text, size);
}

int json_number(Json value)
{
    int number = 0;
    skip_space(&value);
    for (int digits = 0; digits < 9 && peek(&value) >= '0' && peek(&value) <= '9'; digits++)
        number = number * 10 + (take(&value) - '0');
    return number;
}

bool json_is_true(Json value)
{
    skip_space(&value);
    return peek(&value) == 't';
}
