/*
 * Shapes, a bot for gomoku: it knows the value of shapes and looks one move ahead.
 *
 * A window is five squares in a row. Only a window without stones of both colours can still become
 * a row of five. So the value of our stone, in each of the four directions, is that of our fullest
 * window that it joins, and more if there are several such windows: three stones that become four
 * in two ways cannot be stopped. Rows with gaps and the edge of the board need no special rule. The
 * same holds for the opponent's windows, which our stone blocks.
 *
 * The same sum tells which colour to take in the opening. The seed turns the board, so that not
 * every game is the same.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 15, ROW = 5, DIRECTIONS = 4 };

/* More than the longest line of the referee: 225 stones of at most 14 characters. */
enum { LINE = 8192 };

typedef enum { EMPTY, BLACK, WHITE } Stone;

typedef struct {
    int x, y;
} Square;

typedef struct {
    Stone at[SIDE][SIDE];
} Board;

static const Square STEP[DIRECTIONS] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};

/* The value of a stone in one direction, by the number of stones of one colour that its fullest
 * window has already, and whether there is one such window or several: completing a row of five
 * comes before all, preventing one next, then a four that is open at both ends. */
enum { SINGLE, SEVERAL };
static const long MINE[ROW][2] = {{1, 2}, {6, 20}, {30, 100}, {80, 9000}, {1000000, 1000000}};
static const long THEIRS[ROW][2] = {{1, 2}, {5, 15}, {25, 80}, {80, 3000}, {100000, 100000}};

static Stone other(Stone colour)
{
    return colour == BLACK ? WHITE : BLACK;
}

static int inside(int x, int y)
{
    return x >= 0 && x < SIDE && y >= 0 && y < SIDE;
}

/* How many stones of `colour` the window of `step` that starts at (x,y) has; -1 if it can never
 * become a row of that colour. */
static int window_count(const Board *board, int x, int y, Square step, Stone colour)
{
    int count = 0;
    for (int i = 0; i < ROW; i++, x += step.x, y += step.y) {
        if (!inside(x, y) || board->at[x][y] == other(colour))
            return -1;
        count += board->at[x][y] == colour;
    }
    return count;
}

/* The value, by the table, of the windows of `colour` through an empty square in one direction. */
static long shape_worth(const Board *board, Square square, Square step, Stone colour,
                        const long table[ROW][2])
{
    int fullest = -1, number = SINGLE;
    for (int back = 0; back < ROW; back++) {
        int x = square.x - back * step.x, y = square.y - back * step.y;
        int count = window_count(board, x, y, step, colour);
        if (count > fullest) {
            fullest = count;
            number = SINGLE;
        } else if (count == fullest) {
            number = SEVERAL;
        }
    }
    return fullest < 0 ? 0 : table[fullest][number];
}

/* The value of a stone of `colour` on an empty square. */
static long square_worth(const Board *board, Square square, Stone colour)
{
    long worth = 0;
    for (int d = 0; d < DIRECTIONS; d++) {
        worth += shape_worth(board, square, STEP[d], colour, MINE);
        worth += shape_worth(board, square, STEP[d], other(colour), THEIRS);
    }
    return worth;
}

/* The square in one of the eight positions that a board can lie in. */
static Square turned(Square square, unsigned long seed)
{
    int x = seed & 1 ? SIDE - 1 - square.x : square.x;
    int y = seed & 2 ? SIDE - 1 - square.y : square.y;
    return seed & 4 ? (Square){y, x} : (Square){x, y};
}

/* The best empty square for a stone of `colour`, and its value; of equals, the first of the turned
 * board. There is an empty square whenever the referee asks. */
static Square best_square(const Board *board, Stone colour, unsigned long seed, long *worth)
{
    Square best = {0, 0};
    *worth = -1;
    for (int i = 0; i < SIDE * SIDE; i++) {
        Square square = turned((Square){i / SIDE, i % SIDE}, seed);
        if (board->at[square.x][square.y] != EMPTY)
            continue;
        long found = square_worth(board, square, colour);
        if (found > *worth) {
            *worth = found;
            best = square;
        }
    }
    return best;
}

/* Reads [((0,0),"B"),((0,1),"W"),...]; returns how many black stones there are beyond the white. */
static int read_board(const char *text, Board *board)
{
    int x, y, surplus = 0;
    char letter;
    memset(board, 0, sizeof *board);
    for (text = strstr(text, "(("); text; text = strstr(text + 2, "((")) {
        if (sscanf(text, "((%d,%d),\"%c\")", &x, &y, &letter) != 3 || !inside(x, y))
            continue;
        board->at[x][y] = letter == 'B' ? BLACK : WHITE;
        surplus += letter == 'B' ? 1 : -1;
    }
    return surplus;
}

/* The colour that can do more with the next stone. */
static Stone better_colour(const Board *board, unsigned long seed)
{
    long black, white;
    best_square(board, BLACK, seed, &black);
    best_square(board, WHITE, seed, &white);
    return black >= white ? BLACK : WHITE;
}

/* Two black stones in corners, where they are useless, and a white one half-way to the centre. */
static void open_game(unsigned long seed)
{
    Square first = turned((Square){0, 0}, seed), second = turned((Square){14, 14}, seed);
    Square white = turned((Square){3 + (int)(seed / 8 % 2), 7}, seed);
    printf("(%d,%d)(%d,%d)(%d,%d)\n", first.x, first.y, second.x, second.y, white.x, white.y);
}

/* Replies to one prompt; `colour` is ours, EMPTY while it is unknown. */
static void reply(char prompt, const char *text, unsigned long seed, Stone *colour)
{
    Board board;
    Square square;
    long worth;
    int surplus = read_board(text, &board);
    switch (prompt) {
    case 'A':
        open_game(seed);
        return;
    case 'B':
        *colour = better_colour(&board, seed);
        square = best_square(&board, *colour, seed, &worth);
        if (*colour == BLACK)
            puts("\"B\"");
        else
            printf("\"W\" (%d,%d)\n", square.x, square.y);
        return;
    case 'C':
        *colour = better_colour(&board, seed);
        puts(*colour == BLACK ? "\"B\"" : "\"W\"");
        return;
    default:
        /* Where the opponent has chosen: two black stones more than white ones mean that the
         * opponent has just put one; else the first stone is due, which is black. */
        if (*colour == EMPTY)
            *colour = surplus == 2 ? WHITE : BLACK;
        square = best_square(&board, *colour, seed, &worth);
        printf("(%d,%d)\n", square.x, square.y);
    }
}

/* Arguments: the opponent's name, a seed. */
int main(int argc, char **argv)
{
    unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    Stone colour = EMPTY;
    char line[LINE];
    while (fgets(line, sizeof line, stdin) && strncmp(line, "EXIT", 4) != 0) {
        reply(line[0], line, seed, &colour);
        fflush(stdout);
    }
    return 0;
}
