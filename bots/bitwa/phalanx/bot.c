/* Phalanx, a bot for bitwa: tries out each order before it gives one, and keeps its lines closed.
 *
 * For each square in and around its division it carries out, on a copy of the battle, the order to
 * march there and attack, and takes the order after which the board looks best: first units and
 * their strength, where a point taken from a weak unit counts for more than one from a strong unit,
 * so that attacks are concentrated; then a short way to the enemy and a division that stays
 * together. It looks one order ahead and expects no reply.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 100,                 /* the largest board, in squares a side */
    SQUARES = SIDE * SIDE,
    LINE = 2 * SQUARES,         /* the longest command, in characters */
    WALL = -2, FREE = -1,       /* what a square may hold besides the index of a unit */
    FAR = SQUARES,              /* farther than any walk */
    REACH = 4,                  /* how far beyond its division a target may lie */
    UNIT_VALUE = 4000,          /* of a unit of infinite strength */
    STEP_VALUE = 10,            /* of being one step nearer to the enemy */
    ORDER_VALUE = 4             /* of being one step nearer to the middle of the division */
};

typedef struct { int x, y, strength; char division; } Unit;

typedef struct {
    int units;
    Unit unit[SQUARES];         /* those with strength 0 are removed */
    int holds[SQUARES];         /* WALL, FREE or the index of a unit */
} Battle;

typedef struct { int attack, x, y, dx, dy, px_first; } Order;

static int columns, rows;
static Battle battle, trial;

/* How many steps each square is from the nearest enemy, walls considered. */
static int walk[SQUARES];

static int square(int x, int y) { return y * columns + x; }

static int on_board(int x, int y) { return x >= 0 && y >= 0 && x < columns && y < rows; }

static int is_enemy(char one, char other) { return !isupper(one) != !isupper(other); }

/* The three distances of an order as one number: none of them reaches BASE. */
static long long distance(const Order *order, int x, int y)
{
    const long long BASE = 4 * SQUARES;
    long long a = x - order->x, b = y - order->y;
    long long px = (a - order->dx) * (a - order->dx) + b * b;
    long long py = a * a + (b - order->dy) * (b - order->dy);
    long long first = order->px_first ? px : py, second = order->px_first ? py : px;
    return ((a * a + b * b) * BASE + first) * BASE + second;
}

/* Where a unit moves or attacks: the choice of the rules among nine squares. */
static int choose(const Battle *b, const Unit *unit, const Order *order)
{
    int best = square(unit->x, unit->y), best_is_enemy = 0;
    long long least = distance(order, unit->x, unit->y);
    for (int y = unit->y - 1; y <= unit->y + 1; y++) {
        for (int x = unit->x - 1; x <= unit->x + 1; x++) {
            if (!on_board(x, y) || b->holds[square(x, y)] == WALL)
                continue;
            int other = b->holds[square(x, y)];
            int enemy = other >= 0 && is_enemy(unit->division, b->unit[other].division);
            if (other >= 0 && !enemy)
                continue;
            if (order->attack && best_is_enemy && !enemy)
                continue;
            long long key = distance(order, x, y);
            if (key < least || (order->attack && enemy && !best_is_enemy)) {
                best = square(x, y);
                best_is_enemy = enemy;
                least = key;
            }
        }
    }
    return best;
}

static void move(Battle *b, int index, const Order *order)
{
    Unit *unit = &b->unit[index];
    int from = square(unit->x, unit->y), to = choose(b, unit, order);
    if (to == from)
        return;
    if (b->holds[to] >= 0 && --b->unit[b->holds[to]].strength > 0)
        return;
    b->holds[from] = FREE;
    b->holds[to] = index;
    unit->x = to % columns;
    unit->y = to / columns;
}

static void play(Battle *b, char division, const Order *order)
{
    static int members[SQUARES];
    static long long key[SQUARES];
    int count = 0;
    for (int i = 0; i < b->units; i++) {
        if (b->unit[i].division != division || b->unit[i].strength == 0)
            continue;
        long long own = distance(order, b->unit[i].x, b->unit[i].y);
        int place = count++;
        for (; place > 0 && key[place - 1] > own; place--) {
            key[place] = key[place - 1];
            members[place] = members[place - 1];
        }
        key[place] = own;
        members[place] = i;
    }
    for (int i = 0; i < count; i++)
        move(b, members[i], order);
}

static void copy(Battle *to, const Battle *from)
{
    to->units = from->units;
    memcpy(to->unit, from->unit, sizeof(Unit) * (size_t)from->units);
    memcpy(to->holds, from->holds, sizeof(int) * (size_t)(columns * rows));
}

/* Fills `walk`, square by square outwards from the enemies of a division. */
static void survey(const Battle *b, char division)
{
    static int queue[SQUARES];
    int head = 0, tail = 0;
    for (int i = 0; i < columns * rows; i++) {
        int unit = b->holds[i];
        walk[i] = FAR;
        if (unit >= 0 && is_enemy(division, b->unit[unit].division)) {
            walk[i] = 0;
            queue[tail++] = i;
        }
    }
    while (head < tail) {
        int here = queue[head++];
        for (int y = here / columns - 1; y <= here / columns + 1; y++) {
            for (int x = here % columns - 1; x <= here % columns + 1; x++) {
                if (!on_board(x, y) || b->holds[square(x, y)] == WALL || walk[square(x, y)] < FAR)
                    continue;
                walk[square(x, y)] = walk[here] + 1;
                queue[tail++] = square(x, y);
            }
        }
    }
}

/* How far the units of a division are from its middle, in steps along the axes. */
static long spread(const Battle *b, char division)
{
    long x = 0, y = 0, count = 0, sum = 0;
    for (int i = 0; i < b->units; i++) {
        if (b->unit[i].strength > 0 && b->unit[i].division == division) {
            x += b->unit[i].x;
            y += b->unit[i].y;
            count++;
        }
    }
    for (int i = 0; i < b->units; i++) {
        const Unit *unit = &b->unit[i];
        if (unit->strength > 0 && unit->division == division)
            sum += (labs(count * unit->x - x) + labs(count * unit->y - y)) / count;
    }
    return sum;
}

/* How good a battle is for the player of `division`. */
static long value(const Battle *b, char division)
{
    long sum = -(long)ORDER_VALUE * spread(b, division);
    for (int i = 0; i < b->units; i++) {
        const Unit *unit = &b->unit[i];
        long worth = (long)UNIT_VALUE * unit->strength / (unit->strength + 1);
        if (is_enemy(division, unit->division))
            sum -= worth;
        else if (unit->strength > 0)
            sum += worth - (long)STEP_VALUE * walk[square(unit->x, unit->y)];
    }
    return sum;
}

/* Tries the order to march to (x, y), and keeps it if it is the best so far. */
static void consider(char division, int x, int y, Order *best, long *most)
{
    Order order = {1, x, y, 2 * x < columns ? 1 : -1, 2 * y < rows ? 1 : -1, 1};
    copy(&trial, &battle);
    play(&trial, division, &order);
    long found = value(&trial, division);
    if (found > *most) {
        *most = found;
        *best = order;
    }
}

static Order decide(char division)
{
    int left = SIDE, right = 0, top = SIDE, bottom = 0;
    for (int i = 0; i < battle.units; i++) {
        const Unit *unit = &battle.unit[i];
        if (unit->division != division || unit->strength == 0)
            continue;
        left = unit->x < left ? unit->x : left;
        right = unit->x > right ? unit->x : right;
        top = unit->y < top ? unit->y : top;
        bottom = unit->y > bottom ? unit->y : bottom;
    }
    survey(&battle, division);
    Order best = {1, 0, 0, 1, 1, 1};
    long most = LONG_MIN;
    for (int y = top - REACH; y <= bottom + REACH; y++)
        for (int x = left - REACH; x <= right + REACH; x++)
            if (on_board(x, y))
                consider(division, x, y, &best, &most);
    return best;
}

/* Reads the arguments of set_game. Returns whether they are valid. */
static int set_game(void)
{
    const char *word[4];
    for (int i = 0; i < 4; i++)
        if (!(word[i] = strtok(NULL, " ")))
            return 0;
    columns = atoi(word[0]);
    rows = atoi(word[1]);
    int strength = atoi(word[3]);
    if (columns < 1 || columns > SIDE || rows < 1 || rows > SIDE)
        return 0;
    battle.units = 0;
    for (int y = 0; y < rows; y++) {
        const char *row = strtok(NULL, " ");
        if (!row || strlen(row) != (size_t)columns)
            return 0;
        for (int x = 0; x < columns; x++) {
            battle.holds[square(x, y)] = row[x] == '#' ? WALL : FREE;
            if (!isalpha((unsigned char)row[x]))
                continue;
            battle.holds[square(x, y)] = battle.units;
            battle.unit[battle.units++] = (Unit){x, y, strength, row[x]};
        }
    }
    return 1;
}

/* Replies to one command, which strtok has begun to split. */
static void reply(const char *command)
{
    if (strcmp(command, "set_game") == 0) {
        puts(set_game() ? "=\n" : "? not a game\n");
    } else if (strcmp(command, "play") == 0) {
        const char *division = strtok(NULL, " "), *rest = strtok(NULL, "");
        Order o;
        int read = rest ? sscanf(rest, "%d%d%d%d%d%d", &o.attack, &o.x, &o.y, &o.dx, &o.dy,
                                 &o.px_first) : 0;
        if (read == 6)
            play(&battle, division[0], &o);
        puts(read == 6 ? "=\n" : "? not an order\n");
    } else if (strcmp(command, "gen_move") == 0) {
        const char *division = strtok(NULL, " ");
        Order o = decide(division ? division[0] : 'A');
        printf("= %d %d %d %d %d %d\n\n", o.attack, o.x, o.y, o.dx, o.dy, o.px_first);
    } else if (strcmp(command, "time_left") == 0 || strcmp(command, "quit") == 0) {
        puts("=\n");
    } else {
        puts("? unknown command\n");
    }
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *command = strtok(line, " ");
        if (!command)
            continue;
        reply(command);
        fflush(stdout);
        if (strcmp(command, "quit") == 0)
            break;
    }
    return 0;
}
