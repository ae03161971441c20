#include "board.h"

static const int DIRECTIONS[8] = {-ROW - 1, -ROW, -ROW + 1, -1, 1, ROW - 1, ROW, ROW + 1};

Disc other(Disc colour)
{
    return colour == BLACK ? WHITE : BLACK;
}

int square_of(int column, int row)
{
    return row * ROW + column;
}

int column_of(int square)
{
    return square % ROW;
}

int row_of(int square)
{
    return square / ROW;
}

void board_start(Board *board, int size)
{
    board->size = size;
    for (int square = 0; square < SQUARES; square++)
        board->at[square] = EDGE;
    for (int row = 1; row <= size; row++)
        for (int column = 1; column <= size; column++)
            board->at[square_of(column, row)] = EMPTY;
    int middle = size / 2;
    board->at[square_of(middle, middle)] = WHITE;
    board->at[square_of(middle + 1, middle + 1)] = WHITE;
    board->at[square_of(middle + 1, middle)] = BLACK;
    board->at[square_of(middle, middle + 1)] = BLACK;
}

/* How many discs a disc of `colour` on this square turns in one direction: a row of the other
 * colour, if a disc of the same colour ends it. */
static int turned(const Board *board, int square, int direction, Disc colour)
{
    int count = 0;
    square += direction;
    while (board->at[square] == other(colour)) {
        count++;
        square += direction;
    }
    return board->at[square] == colour ? count : 0;
}

bool board_allows(const Board *board, int square, Disc colour)
{
    if (board->at[square] != EMPTY)
        return false;
    for (int i = 0; i < 8; i++)
        if (turned(board, square, DIRECTIONS[i], colour) > 0)
            return true;
    return false;
}

void board_play(Board *board, int square, Disc colour)
{
    for (int i = 0; i < 8; i++)
        for (int n = turned(board, square, DIRECTIONS[i], colour); n > 0; n--)
            board->at[square + n * DIRECTIONS[i]] = colour;
    board->at[square] = colour;
}

Moves board_moves(const Board *board, Disc colour)
{
    Moves moves = {.count = 0};
    for (int square = 0; square < SQUARES; square++)
        if (board_allows(board, square, colour))
            moves.squares[moves.count++] = square;
    return moves;
}

int board_count(const Board *board, Disc content)
{
    int count = 0;
    for (int square = 0; square < SQUARES; square++)
        count += board->at[square] == content;
    return count;
}
