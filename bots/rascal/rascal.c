/* A bot that misbehaves on purpose: the fixture of the referee's tests.
 *
 *   rascal MODE [AT]
 *
 * It plays legal but bad moves in every game of the stdio protocol until the referee asks for
 * its move number AT, counted from 0. Then it does what MODE says. With more arguments it is an
 * executed bot (blackjack) and misbehaves at once.
 *
 *   honest        never misbehaves            silent        keeps reading, never replies
 *   deaf          stops reading, replying     exit            exits with code 3
 *   segv abort    dies by a signal            kill            kills itself by SIGKILL
 *   close-stdout  closes its output, lives    close-stdin     closes its input after the reply
 *   early         replies to the next request twice           replies twice, in one write
 *                 before it arrives
 *   late-twice    the second reply comes      crlf            ends lines with CR LF
 *                 a moment after the first
 *   nul           a NUL in the reply          utf8            bytes that are not UTF-8
 *   empty         an empty line               garbage         words that are no move
 *   dribble       one byte a second           unterminated    a reply without its end
 *   flood-line    70 000 bytes without an end flood-lines     replies of 60 000 bytes, for ever
 *   stderr        a megabyte of standard error, then plays on
 *   orphan        leaves a child behind that holds the pipes open, and exits
 *   spin          burns processor time        slow            replies after 300 ms
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 1 << 16, MEGABYTE = 1 << 20, SIDE = 15 };
/* Milliseconds until a busy referee has surely read the reply before: half of a slow reply. */
enum { AFTERWARDS = 150, SLOW = 2 * AFTERWARDS };

static const char *mode;
static int moves_left;
/* How a reply ends: with an empty line after a GTP command, with its line elsewhere. */
static const char *end = "\n";

static void nap(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void say(const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written <= 0)
            exit(0);
        text += written;
        length -= (size_t)written;
    }
}

static void repeat(int file, char byte, int count)
{
    static char block[4096];
    memset(block, byte, sizeof block);
    while (count > 0) {
        int part = count < (int)sizeof block ? count : (int)sizeof block;
        if (write(file, block, (size_t)part) <= 0)
            exit(0);
        count -= part;
    }
}

static int is(const char *name) { return strcmp(mode, name) == 0; }

static _Noreturn void hang(void)
{
    for (;;)
        pause();
}

/* Modes without any reply. */
static void refuse(void)
{
    if (is("exit"))
        _exit(3);
    if (is("segv"))
        raise(SIGSEGV);
    if (is("abort"))
        abort();
    if (is("kill"))
        raise(SIGKILL);
    if (is("deaf"))
        hang();
    if (is("close-stdout")) {
        close(STDOUT_FILENO);
        hang();
    }
    if (is("orphan")) {
        if (fork() == 0)
            hang();
        _exit(0);
    }
    if (is("spin"))
        for (volatile unsigned long turns = 0;; turns++) {
        }
    if (is("flood-line")) {
        repeat(STDOUT_FILENO, 'x', 70000);
        hang();
    }
}

/* Modes with a wrong reply. Returns whether the right reply is still due. */
static int distort(const char *reply)
{
    char text[LINE];
    if (is("silent"))
        return 0;
    if (is("empty"))
        say(end);
    else if (is("garbage"))
        snprintf(text, sizeof text, "%sxyzzy%s", end[1] ? "= " : "", end), say(text);
    else if (is("utf8"))
        snprintf(text, sizeof text, "%s\xff\xfe%s", end[1] ? "= " : "", end), say(text);
    else if (is("nul"))
        say(reply), repeat(STDOUT_FILENO, '\0', 1), say(end);
    else if (is("twice"))
        snprintf(text, sizeof text, "%s%s%s%s", reply, end, reply, end), say(text);
    else if (is("late-twice"))
        say(reply), say(end), nap(AFTERWARDS), say(reply), say(end);
    else if (is("crlf"))
        say(reply), say(end[1] ? "\r\n\r\n" : "\r\n");
    else if (is("unterminated"))
        say(reply);
    else if (is("dribble"))
        for (; *reply; reply++) {
            char byte[2] = {*reply, 0};
            say(byte);
            nap(1000);
        }
    else
        return 1;
    return 0;
}

/* Modes that do something beside the right reply. */
static void add(const char *text)
{
    if (is("early"))
        nap(AFTERWARDS), say(text), say(end);
    if (is("close-stdin")) {
        close(STDIN_FILENO);
        hang();
    }
}

static void reply(const char *text, int is_move)
{
    int now = is_move && moves_left-- == 0;
    if (now) {
        refuse();
        if (is("slow"))
            nap(SLOW);
        if (is("stderr"))
            repeat(STDERR_FILENO, 'e', MEGABYTE);
        if (!distort(text))
            return;
    }
    say(text);
    if (is("flood-lines"))
        repeat(STDOUT_FILENO, ' ', 60000);
    say(end);
    if (now)
        add(text);
}

/* The first square of the board without a stone. */
static void gomoku_move(const char *board)
{
    char square[32], stone[40];
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++) {
            snprintf(square, sizeof square, "(%d,%d)", x, y);
            snprintf(stone, sizeof stone, "(%s,", square);
            if (!strstr(board, stone)) {
                reply(square, 1);
                return;
            }
        }
}

static void gtp(const char *line)
{
    end = "\n\n";
    if (strncmp(line, "genmove ", 8) == 0)
        reply("= check", 1);
    else if (strncmp(line, "gen_move ", 9) == 0)
        reply("= 1 1 1 1 1 1", 1);
    else if (strncmp(line, "quit", 4) == 0)
        exit(0);
    else
        reply("=", 0);
}

static void hear(const char *line)
{
    if (strncmp(line, "A [", 3) == 0)
        reply("(7,7)(7,8)(8,8)", 1);
    else if (strncmp(line, "B [", 3) == 0 || strncmp(line, "C [", 3) == 0)
        reply("\"B\"", 1);
    else if (strncmp(line, "EXIT", 4) == 0)
        exit(0);
    else if (line[0] >= '0' && line[0] <= '9')
        gomoku_move(line);
    else
        gtp(line);
}

int main(int count, char **arguments)
{
    static char line[LINE];
    mode = count > 1 ? arguments[1] : "honest";
    moves_left = count > 2 ? atoi(arguments[2]) : 0;
    /* Gomoku's referee adds an opponent's name and a seed; blackjack's five arguments. */
    if (count >= 8 || (count == 7 && strchr(arguments[4], '#'))) {
        moves_left = 0;
        reply("S", 1);
        return 0;
    }
    if (is("deaf") && moves_left == 0)
        hang();
    while (fgets(line, sizeof line, stdin))
        hear(line);
    return 0;
}
