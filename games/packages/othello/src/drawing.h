/* Draws a board of Othello as SVG. */

#ifndef DRAWING_H
#define DRAWING_H

#include "board.h"
#include "text.h"

typedef struct {
    const Board *board;
    /* The names of black and white: letters and digits, nothing that SVG or JSON would escape. */
    const char *black;
    const char *white;
    /* The last move. NO_SQUARE marks none. */
    int last;
    /* The colour to move, whose legal moves are hinted. EMPTY after the match. */
    Disc turn;
} Drawing;

/* Writes the SVG document. It can stand in a JSON string as it is: it has no line breaks, and its
 * quotation marks are single. */
void draw(Text *out, const Drawing *drawing);

#endif
