/* The rules of {{title}}: two bots take 1 to 3 stones in turn, and the last stone wins.
 *
 * Arbiter calls `handle` with one question, and these rules answer it, both JSON. The rules are a
 * function of the questions: no chance but the seed. docs/games.md has the whole protocol. There is
 * no C library. This file reads JSON by hand: Arbiter writes no spaces, and escapes quotation marks
 * in texts, so that a key is never part of a text. */

enum { MOST = 3, COLUMNS = 10 };

static char question[1 << 20]; /* a reply has up to 64 KiB, which escapes make longer */
static char answer[1 << 15];   /* the picture of 100 stones needs 6 KiB */
static int length;             /* of the answer so far */

/* A match in progress. Seats are 1 and 2. */
static struct { char names[2][65]; int heap, rows, draws, turn; } match;

/* Adds to the answer, with %d and %s as in printf. */
static void put(const char *format, ...) {
    __builtin_va_list values;
    __builtin_va_start(values, format);
    for (; *format; format++) {
        if (format[0] == '%' && format[1] == 'd') {
            int number = __builtin_va_arg(values, int), unit = 1;
            while (unit <= number / 10) unit *= 10;
            for (; unit; unit /= 10) answer[length++] = '0' + number / unit % 10;
            format++;
        } else if (format[0] == '%' && format[1] == 's') {
            for (const char *s = __builtin_va_arg(values, char *); *s; s++) answer[length++] = *s;
            format++;
        } else {
            answer[length++] = *format;
        }
    }
    __builtin_va_end(values);
}

/* What follows a key in the question; 0 if it has none. */
static const char *after(const char *key) {
    for (const char *at = question; *at; at++) {
        int i = 0;
        while (key[i] && at[i] == key[i]) i++;
        if (!key[i]) return at + i;
    }
    return 0;
}

static int most(void) { return match.heap < MOST ? match.heap : MOST; }

/* The score of each seat: one number for each name in `score` of game.toml. */
static void over(int winner) {
    put("{\"over\":[[%d],[%d]]}", winner == 1 ? 2 : 0, winner == 2 ? 2 : 0);
}

static void request(void) { put("{\"ask\":%d,\"text\":\"move %d\"}", match.turn, match.heap); }

/* A picture for people, drawn only if the match is to have pictures. A caption must follow. */
static void frame(void) {
    put("{\"frame\":{\"svg\":\"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 200 %d'>",
        20 * match.rows);
    put("<rect width='200' height='100%' fill='#fdf6e3'/>");
    for (int i = 0; i < match.heap; i++)
        put("<circle cx='%d' cy='%d' r='8' fill='#586e75'/>", i % COLUMNS * 20 + 10,
            i / COLUMNS * 20 + 10);
    put("</svg>\",\"caption\":\"");
}

/* Both bots learn the heap and their seat, and the first one is asked. */
static void begin(void) {
    const char *at = after("\"heap\":"), *seed = after("\"seed\":\"");
    for (match.heap = 0; *at >= '0' && *at <= '9'; at++) match.heap = 10 * match.heap + *at - '0';
    match.rows = (match.heap + COLUMNS - 1) / COLUMNS;
    match.draws = after("\"frames\":true") != 0;
    /* The seed is the only source of chance. Its last digit says who begins: '1' and 'a' are odd
     * and even as digits, but 'a' is odd as a character. */
    match.turn = 1 + (seed[63] >= 'a' ? seed[63] + 1 : seed[63]) % 2;
    at = after("\"bots\":[\"");
    for (int seat = 0; seat < 2; seat++, at += 3) { /* 3 for "," between the names */
        int i = 0;
        while (*at != '"' && i < 64) match.names[seat][i++] = *at++;
        match.names[seat][i] = 0;
        put("{\"tell\":%d,\"text\":\"start %d %d\"},", seat + 1, match.heap, seat + 1);
    }
    if (match.draws) {
        frame();
        put("%d stones, %s begins\"}},", match.heap, match.names[match.turn - 1]);
    }
    request();
}

/* The bot that was asked has replied, or has forfeited: it was too late, or crashed. */
static void hear(void) {
    const char *reply = after("\"text\":\"");
    if (!reply) { over(3 - match.turn); return; }
    /* A reply is any text. Check it before you use it. */
    if (reply[0] < '1' || reply[0] > '0' + most() || reply[1] != '"') {
        put("{\"illegal\":%d,\"why\":\"take 1 to %d stones\"},", match.turn, most());
        over(3 - match.turn);
        return;
    }
    match.heap -= reply[0] - '0';
    if (match.draws) {
        frame();
        put("%s takes %d, %d left\"}},", match.names[match.turn - 1], reply[0] - '0', match.heap);
    }
    if (match.heap == 0) { over(match.turn); return; }
    match.turn = 3 - match.turn;
    request();
}

/* Where Arbiter writes the next question. */
__attribute__((export_name("alloc"))) char *alloc(int size) {
    return size < (int)sizeof question ? question : 0;
}

/* Returns the address and the length of the answer. */
__attribute__((export_name("handle"))) unsigned long long handle(char *text, int size) {
    text[size] = length = 0;
    if (after("{\"legal\":")) {
        put("{\"legal\":[\"1\"%s%s]}", most() > 1 ? ",\"2\"" : "", most() > 2 ? ",\"3\"" : "");
    } else {
        put("{\"do\":[");
        if (after("{\"new\":")) begin(); else hear();
        put("]}");
    }
    return (unsigned long long)(unsigned long)answer << 32 | (unsigned)length;
}
