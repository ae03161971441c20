#include "rules.h"

#include <stdbool.h>

#include "board.h"
#include "chance.h"
#include "drawing.h"
#include "json.h"

/* More than the longest answer, which is a picture of a full board of 10 by 10. */
enum { ANSWER = 32 * 1024 };
/* Room for the longest name of a bot, 64 letters. */
enum { NAME = 65 };
/* Room for the beginning of a reply that a reason quotes. */
enum { QUOTE = 21 };
/* Room for a square, such as `j10`. */
enum { SQUARE = 4 };

typedef struct {
    Board board;
    /* By the colour. */
    char names[3][NAME];
    /* Whether pictures are wanted. */
    bool draws;
    /* The colour to move. EMPTY when the match is over. */
    Disc turn;
    int last;
} Match;

static Match match;

/* Writes the name of a square: the letter of its column, then the number of its row. */
static void put_square(Text *out, int square)
{
    put_char(out, (char)('a' + column_of(square) - 1));
    put_number(out, row_of(square));
}

/* The square with this name, NO_SQUARE if the board has none. */
static int parse_square(const char *text)
{
    int row = text[0] == '\0' ? 0 : text[1] - '0';
    bool is_ten = row == 1 && text[2] == '0';
    int column = text[0] - 'a' + 1;
    if (is_ten)
        row = 10;
    bool fits = column >= 1 && column <= match.board.size && row >= 1 && row <= match.board.size;
    return fits && text[is_ten ? 3 : 2] == '\0' ? square_of(column, row) : NO_SQUARE;
}

/* Each action of an answer begins so. */
static void begin_action(Text *out)
{
    if (out->start[out->length - 1] != '[')
        put_char(out, ',');
}

/* Begins a message to a seat. The caller writes the text, and then `"}`. */
static void begin_message(Text *out, const char *kind, int seat)
{
    begin_action(out);
    put(out, "{\"");
    put(out, kind);
    put(out, "\":");
    put_number(out, seat);
    put(out, ",\"text\":\"");
}

static void tell_start(Text *out, int seat)
{
    begin_message(out, "tell", seat);
    put(out, "start ");
    put_number(out, match.board.size);
    put_char(out, ' ');
    put_number(out, seat);
    put(out, "\"}");
}

static void tell_move(Text *out, int seat, Disc mover, int square)
{
    begin_message(out, "tell", seat);
    put(out, "played ");
    put_number(out, mover);
    put_char(out, ' ');
    put_square(out, square);
    put(out, "\"}");
}

static void tell_pass(Text *out, int seat, Disc passer)
{
    begin_message(out, "tell", seat);
    put(out, "passed ");
    put_number(out, passer);
    put(out, "\"}");
}

static void ask(Text *out)
{
    begin_message(out, "ask", match.turn);
    put(out, "move\"}");
}

/* Draws the board, if pictures are wanted. */
static void put_frame(Text *out, const Text *caption)
{
    Drawing drawing = {.board = &match.board,
                       .black = match.names[BLACK],
                       .white = match.names[WHITE],
                       .last = match.last,
                       .turn = match.turn};
    if (!match.draws)
        return;
    begin_action(out);
    put(out, "{\"frame\":{\"svg\":\"");
    draw(out, &drawing);
    put(out, "\",\"caption\":\"");
    for (size_t i = 0; i < caption->length; i++)
        put_char(out, caption->start[i]);
    put(out, "\"}}");
}

static void put_score(Text *out, int points, int discs)
{
    put_char(out, '[');
    put_number(out, points);
    put_char(out, ',');
    put_number(out, discs);
    put_char(out, ']');
}

/* Ends the match. `lead` is what black has more than white; negative if white wins. */
static void put_over(Text *out, int lead)
{
    int points = lead > 0 ? 2 : lead == 0 ? 1 : 0;
    begin_action(out);
    put(out, "{\"over\":[");
    put_score(out, points, lead);
    put_char(out, ',');
    put_score(out, 2 - points, -lead);
    put(out, "]}");
}

/* Ends the match because the turn's bot forfeits, as if the other had all squares. */
static void forfeit(Text *out)
{
    int squares = match.board.size * match.board.size;
    put_over(out, match.turn == BLACK ? -squares : squares);
}

/* Adds the result to a caption. */
static void put_result(Text *caption, int black, int white)
{
    if (black == white) {
        put(caption, "; a draw");
        return;
    }
    put(caption, "; ");
    put(caption, match.names[black > white ? BLACK : WHITE]);
    put(caption, " wins ");
    put_number(caption, black > white ? black : white);
    put(caption, " to ");
    put_number(caption, black > white ? white : black);
}

/* Ends the match because no colour can move. Empty squares count for the winner. */
static void count_discs(Text *out, Text *caption)
{
    int black = board_count(&match.board, BLACK);
    int white = board_count(&match.board, WHITE);
    int empty = board_count(&match.board, EMPTY);
    put_result(caption, black, white);
    put_frame(out, caption);
    put_over(out, black == white ? 0 : black - white + (black > white ? empty : -empty));
}

/* Plays a legal move. Returns the colour to move next, EMPTY if the match is over. */
static Disc play(Board *board, int square, Disc colour)
{
    board_play(board, square, colour);
    if (board_moves(board, other(colour)).count > 0)
        return other(colour);
    return board_moves(board, colour).count > 0 ? colour : EMPTY;
}

/* Plays a legal move of the match and tells both bots. Then `turn` is the next colour. */
static void play_and_tell(Text *out, int square)
{
    Disc mover = match.turn;
    match.turn = play(&match.board, square, mover);
    match.last = square;
    for (int seat = 1; seat <= 2; seat++)
        tell_move(out, seat, mover, square);
    for (int seat = 1; seat <= 2 && match.turn == mover; seat++)
        tell_pass(out, seat, other(mover));
}

/* Plays the moves of the opening, which are chosen by chance among the legal ones. A move that
 * would end the match is not played, and ends the opening. */
static void play_opening(Text *out, int count, Chance chance)
{
    for (int i = 0; i < count; i++) {
        Moves moves = board_moves(&match.board, match.turn);
        int square = moves.squares[chance_below(&chance, moves.count)];
        Board board = match.board;
        if (play(&board, square, match.turn) == EMPTY)
            return;
        play_and_tell(out, square);
    }
}

/* Keeps the name of a bot. Whatever is not a letter, a digit, `.`, `_` or `-` becomes `_`, so that
 * names need no escapes. */
static void read_name(Json bots, Disc colour)
{
    Json bot;
    if (!json_element(bots, (int)colour - 1, &bot))
        return;
    json_string(bot, match.names[colour], NAME);
    for (char *at = match.names[colour]; *at != '\0'; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        bool is_digit = *at >= '0' && *at <= '9';
        if (!is_letter && !is_digit && *at != '.' && *at != '-')
            *at = '_';
    }
}

/* The size of the board. The parameter is a text, one of "4", "6", "8" and "10". */
static int read_size(Json params)
{
    Json value;
    char text[3] = "";
    if (json_member(params, "size", &value))
        json_string(value, text, sizeof text);
    return text[0] == '1' ? 10 : text[0] == '4' || text[0] == '6' ? text[0] - '0' : 8;
}

static int read_opening(Json params)
{
    Json value;
    return json_member(params, "opening", &value) ? json_number(value) : 0;
}

static Chance read_seed(Json new)
{
    Json value;
    char seed[65] = "";
    if (json_member(new, "seed", &value))
        json_string(value, seed, sizeof seed);
    return chance_from(seed);
}

static void start_match(Text *out, Json new)
{
    Json params = new, value;
    char room[2 * NAME];
    Text caption = text_in(room, sizeof room);
    match = (Match){.turn = BLACK, .last = NO_SQUARE};
    match.draws = json_member(new, "frames", &value) && json_is_true(value);
    json_member(new, "params", &params);
    board_start(&match.board, read_size(params));
    for (Disc colour = BLACK; colour <= WHITE && json_member(new, "bots", &value); colour++)
        read_name(value, colour);
    tell_start(out, 1);
    tell_start(out, 2);
    play_opening(out, read_opening(params), read_seed(new));
    put(&caption, match.names[match.turn]);
    put(&caption, " begins");
    put_frame(out, &caption);
    ask(out);
}

/* Begins the reason why a reply is not legal. The caller writes the rest, and then `"}`. */
static void begin_reason(Text *out, const char *reply)
{
    begin_action(out);
    put(out, "{\"illegal\":");
    put_number(out, match.turn);
    put(out, ",\"why\":\"`");
    put_escaped(out, reply);
    put_char(out, '`');
}

/* Whether a reply is a legal move. If not, tells why. */
static bool check_reply(Text *out, const char *reply, bool is_whole)
{
    int square = is_whole ? parse_square(reply) : NO_SQUARE;
    if (square != NO_SQUARE && board_allows(&match.board, square, match.turn))
        return true;
    begin_reason(out, reply);
    if (square == NO_SQUARE)
        put(out, " is not a square of the board; write one such as `d3`");
    else if (match.board.at[square] != EMPTY)
        put(out, " is not empty");
    else
        put(out, " turns no disc");
    put(out, "\"}");
    return false;
}

/* Plays a legal move and asks the next bot, or ends the match. */
static void make_move(Text *out, int square)
{
    char room[4 * NAME];
    Text caption = text_in(room, sizeof room);
    Disc mover = match.turn;
    play_and_tell(out, square);
    put(&caption, match.names[mover]);
    put(&caption, " plays ");
    put_square(&caption, square);
    if (match.turn == EMPTY) {
        count_discs(out, &caption);
        return;
    }
    if (match.turn == mover) {
        put(&caption, ", ");
        put(&caption, match.names[other(mover)]);
        put(&caption, " passes");
    }
    put_frame(out, &caption);
    ask(out);
}

/* The turn's bot has replied, or has forfeited. */
static void hear(Text *out, Json heard)
{
    Json reply, value;
    char text[QUOTE];
    if (!json_element(heard, 0, &reply) || !json_member(reply, "text", &value)) {
        forfeit(out);
        return;
    }
    size_t length = json_string(value, text, sizeof text);
    if (check_reply(out, text, length < sizeof text))
        make_move(out, parse_square(text));
    else
        forfeit(out);
}

/* Lists the legal moves. */
static void list_moves(Text *out)
{
    Moves moves = board_moves(&match.board, match.turn);
    put(out, "{\"legal\":[");
    for (int i = 0; i < moves.count; i++) {
        begin_action(out);
        put_char(out, '"');
        put_square(out, moves.squares[i]);
        put_char(out, '"');
    }
    put(out, "]}");
}

Text rules_answer(const char *question, size_t length)
{
    static char room[ANSWER];
    Text out = text_in(room, sizeof room);
    Json json = {.at = question, .end = question + length};
    Json value;
    if (json_member(json, "legal", &value)) {
        list_moves(&out);
        return out;
    }
    put(&out, "{\"do\":[");
    if (json_member(json, "new", &value))
        start_match(&out, value);
    else if (json_member(json, "heard", &value))
        hear(&out, value);
    put(&out, "]}");
    return out;
}
