/* Reads the JSON of the questions: finds members and elements, and decodes strings.
 *
 * A `Json` is where a value begins. Nothing here reads behind `end`, changes the text, or takes
 * more room for a larger one. */

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *at;
    const char *end;
} Json;

/* Finds the member `key` of an object. False if there is none. */
bool json_member(Json object, const char *key, Json *value);

/* Finds an element of an array, counted from 0. False if there is none. */
bool json_element(Json array, int index, Json *value);

/* Decodes a string into `text`, which has room for `size` bytes with the zero at the end. Each
 * character that is not printable ASCII becomes `?`. Returns how many characters the string has,
 * also if it does not fit. */
size_t json_string(Json value, char *text, size_t size);

/* A whole number of at most 9 digits that is not negative. Otherwise 0. */
int json_number(Json value);

bool json_is_true(Json value);

#endif
