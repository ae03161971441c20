/* Brings questions to the rules and takes their answers back. As WebAssembly this is the interface
 * of a module. Compiled for a machine it is a program that reads lines and writes lines:
 *
 *     mkdir -p target && cd src && cc -std=c11 -O2 -o ../target/othello *.c
 */

#define _POSIX_C_SOURCE 200809L

#include "rules.h"

#ifdef __wasm__

#include <stdint.h>

/* The linker sets the address of this symbol: the memory behind it is free. */
extern unsigned char __heap_base;

enum { PAGE = 65536 };

/* Makes room for a question. There is one question at a time, always at the same place. */
__attribute__((export_name("alloc"))) char *alloc(size_t length)
{
    size_t place = (size_t)&__heap_base;
    size_t pages = (place + length + PAGE - 1) / PAGE;
    size_t present = __builtin_wasm_memory_size(0);
    if (pages > present && __builtin_wasm_memory_grow(0, pages - present) == SIZE_MAX)
        __builtin_trap();
    return (char *)place;
}

/* Answers a question: the address of the answer, and its length in the lower half. */
__attribute__((export_name("handle"))) uint64_t handle(const char *question, size_t length)
{
    Text answer = rules_answer(question, length);
    return (uint64_t)(size_t)answer.start << 32 | answer.length;
}

#else

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        Text answer = rules_answer(line, (size_t)length);
        fwrite(answer.start, 1, answer.length, stdout);
        putchar('\n');
        fflush(stdout);
    }
    free(line);
    return 0;
}

#endif
