/* The board of Othello and its moves. */

#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>

/* The largest board. */
enum { MAX_SIZE = 10 };

/* A square is a number: row * ROW + column, both counted from 1. The squares around the board have
 * numbers, too, so that a step over the edge arrives at one of them. */
enum { ROW = MAX_SIZE + 2, SQUARES = ROW * ROW, NO_SQUARE = 0 };

/* A colour is also the number of its seat. */
typedef enum { EMPTY, BLACK, WHITE, EDGE } Disc;

typedef struct {
    int size;
    unsigned char at[SQUARES];
} Board;

/* The legal moves of a colour. */
typedef struct {
    int count;
    int squares[SQUARES];
} Moves;

Disc other(Disc colour);
int square_of(int column, int row);
int column_of(int square);
int row_of(int square);

/* Sets up four discs in the middle. */
void board_start(Board *board, int size);

/* Whether a disc of `colour` on this square turns at least one disc. */
bool board_allows(const Board *board, int square, Disc colour);

/* Plays a legal move. */
void board_play(Board *board, int square, Disc colour);

/* All legal moves, row by row. */
Moves board_moves(const Board *board, Disc colour);

/* The number of squares with this content. */
int board_count(const Board *board, Disc content);

#endif
