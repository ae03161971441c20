/* The board is always 80 wide. Within its group a square is 1 wide, and the middle of the square in
 * column 1 and row 1 is at 0 0. A disc is a dot of a wide pen: a line of length 0 with round
 * ends. */

#include "drawing.h"

/* The longest name in the picture. */
enum { LONGEST_NAME = 11 };

static void put_attribute(Text *out, const char *name, int hundredths)
{
    put_char(out, ' ');
    put(out, name);
    put(out, "='");
    put_hundredths(out, hundredths);
    put_char(out, '\'');
}

static void draw_name(Text *out, const char *name)
{
    put(out, "<tspan font-weight='400' font-size='3.8' fill='#c9d1d6'>");
    for (int i = 0; i < LONGEST_NAME && name[i] != '\0'; i++)
        put_char(out, name[i]);
    put(out, "</tspan>");
}

/* Above the board: both players with the numbers of their discs, and a ring around the disc of the
 * colour to move. */
static void draw_players(Text *out, const Drawing *drawing)
{
    put(out, "<g font-size='4.4' font-weight='700' fill='#fff'><circle cx='9' cy='7' r='3' "
             "fill='#15191c' stroke='#5d6b73' stroke-width='.3'/><circle cx='83' cy='7' r='3'/>");
    if (drawing->turn != EMPTY) {
        put(out, "<circle cy='7' r='3.9' fill='none' stroke='#f2c14e' stroke-width='.8'");
        put(out, drawing->turn == BLACK ? " cx='9'/>" : " cx='83'/>");
    }
    put(out, "<text x='15' y='8.6'>");
    put_number(out, board_count(drawing->board, BLACK));
    put(out, " ");
    draw_name(out, drawing->black);
    put(out, "</text><text x='77' y='8.6' text-anchor='end'>");
    draw_name(out, drawing->white);
    put(out, " ");
    put_number(out, board_count(drawing->board, WHITE));
    put(out, "</text></g>");
}

/* Letters above the columns, numbers left of the rows. */
static void draw_labels(Text *out, int size)
{
    /* All sizes of boards have labels of the same size. */
    int distance = 50 + 3 * size;
    put(out, "<g fill='#8fa19a' text-anchor='middle'");
    put_attribute(out, "font-size", 4 * size);
    put_char(out, '>');
    for (int i = 0; i < size; i++) {
        put(out, "<text");
        put_attribute(out, "x", 100 * i);
        put_attribute(out, "y", -distance + size);
        put_char(out, '>');
        put_char(out, (char)('a' + i));
        put(out, "</text><text");
        put_attribute(out, "x", -distance);
        put_attribute(out, "y", 100 * i + 3 * size / 2);
        put_char(out, '>');
        put_number(out, i + 1);
        put(out, "</text>");
    }
    put(out, "</g>");
}

static void draw_squares(Text *out, int size)
{
    put(out, "<rect x='-.5' y='-.5' fill='#2e7d51'");
    put_attribute(out, "width", 100 * size);
    put_attribute(out, "height", 100 * size);
    put(out, "/><path stroke='#1f5c3a' stroke-width='.03' d='");
    for (int i = 1; i < size; i++) {
        put(out, "M-.5 ");
        put_hundredths(out, 100 * i - 50);
        put_char(out, 'h');
        put_number(out, size);
        put_char(out, 'M');
        put_hundredths(out, 100 * i - 50);
        put(out, " -.5v");
        put_number(out, size);
    }
    put(out, "'/>");
}

static void put_dot(Text *out, int square)
{
    put_char(out, 'M');
    put_number(out, column_of(square) - 1);
    put_char(out, ' ');
    put_number(out, row_of(square) - 1);
    put(out, "h0");
}

/* The places of all discs of a colour, to be drawn later. */
static void define_discs(Text *out, const Board *board, Disc colour, const char *name)
{
    put(out, "<path id='");
    put(out, name);
    put(out, "' d='");
    for (int square = 0; square < SQUARES; square++)
        if (board->at[square] == colour)
            put_dot(out, square);
    put(out, "'/>");
}

/* Each disc has a shadow, a rim and a face. */
static void draw_discs(Text *out, const Board *board)
{
    put(out, "<defs>");
    define_discs(out, board, BLACK, "b");
    define_discs(out, board, WHITE, "w");
    put(out, "</defs><g stroke='#0b2617' stroke-opacity='.45' stroke-width='.82'>"
             "<use href='#b' x='.03' y='.06'/><use href='#w' x='.03' y='.06'/></g>"
             "<g stroke-width='.8'><use href='#b' stroke='#0d1012'/>"
             "<use href='#w' stroke='#c4c9c6'/></g>"
             "<g stroke-width='.7'><use href='#b' stroke='#23292e' y='-.02'/>"
             "<use href='#w' stroke='#f8f9f6' y='-.02'/></g>");
}

static void draw_last(Text *out, int square)
{
    put(out, "<path stroke='#e4572e' stroke-width='.24' d='");
    put_dot(out, square);
    put(out, "'/>");
}

static void draw_hints(Text *out, const Board *board, Disc turn)
{
    Moves moves = board_moves(board, turn);
    put(out, "<path stroke-width='.28' stroke-opacity='.4' stroke='");
    put(out, turn == BLACK ? "#0d1012' d='" : "#fff' d='");
    for (int i = 0; i < moves.count; i++)
        put_dot(out, moves.squares[i]);
    put(out, "'/>");
}

void draw(Text *out, const Drawing *drawing)
{
    const Board *board = drawing->board;
    int scale = 8000 / board->size;
    put(out, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 92 104' "
             "font-family='sans-serif'><rect width='92' height='104' rx='3' fill='#2a3338'/>");
    draw_players(out, drawing);
    put(out, "<g stroke-linecap='round' transform='translate(7 19) scale(");
    put_hundredths(out, scale);
    put(out, ") translate(.5 .5)'>");
    draw_labels(out, board->size);
    draw_squares(out, board->size);
    draw_discs(out, board);
    if (drawing->last != NO_SQUARE)
        draw_last(out, drawing->last);
    if (drawing->turn != EMPTY)
        draw_hints(out, board, drawing->turn);
    put(out, "</g></svg>");
}
