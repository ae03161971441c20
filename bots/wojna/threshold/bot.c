/* Threshold, a bot for wojna: compares its chance with the price.
 *
 * It assumes that each bidding opponent has a random card of the deck, and the last raiser a random
 * card of the upper half. With a good chance to have the highest card it raises by three. Otherwise
 * it stays in if the pot, times the chance, is clearly worth more than the price. It does not learn
 * about its opponents, and does not bluff.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEATS = 4,
    CARDS = 1000,               /* the largest deck */
    LINE = 16 * CARDS,          /* the longest command, in characters */
    NO_SEAT = -1,
    MOST = 3                    /* the largest raise, in cards */
};

/* Chances to win from which to raise, and how much more than its price a call must be worth. */
static const double RAISE = 0.8, PROFIT = 1.5;
/* The lowest chance that it assumes. */
static const double LEAST = 0.02;

typedef struct {
    int pile;
    int paid;                   /* into this auction, in cards; 0 if it does not take part */
    int bidding;                /* whether it takes part and has not passed */
} Seat;

static Seat seats[SEATS];
static int me, seat_count;
static int deck[CARDS], deck_size;
static int pot, card, raiser, opened;

static int largest(void)
{
    int most = 0;
    for (int seat = 0; seat < seat_count; seat++)
        if (seats[seat].paid > most)
            most = seats[seat].paid;
    return most;
}

/* The next number of a command, or 0. */
static int number(char **text) { return (int)strtol(*text, text, 10); }

/* The next number of a command as the index of a seat. */
static int seat_index(char **text)
{
    int index = number(text) - 1;
    return index < 0 || index >= SEATS ? 0 : index;
}

/* A new deal: all bots are in it, and the pot is empty. */
static void set_deck(char *text)
{
    deck_size = number(&text);
    if (deck_size > CARDS)
        deck_size = CARDS;
    for (int index = 0; index < deck_size; index++)
        deck[index] = number(&text);
    for (int seat = 0; seat < SEATS; seat++)
        seats[seat].pile = 1;
    pot = CARDS;
}

/* A new auction. A pot that has grown was not won: this is a war, and only the bots in it have
 * paid. Otherwise every bot with cards has paid one. */
static void set_state(char *text)
{
    int before = pot;
    pot = number(&text);
    seat_count = number(&text);
    if (seat_count > SEATS)
        seat_count = SEATS;
    for (int index = 0; index < seat_count; index++) {
        Seat *seat = &seats[index];
        int pile = number(&text);
        seat->paid = pot > before ? seat->pile - pile : seat->pile > 0 || pile > 0;
        seat->pile = pile;
        seat->bidding = seat->paid > 0;
    }
    raiser = NO_SEAT;
    opened = 0;
}

static void play(char *text)
{
    int index = seat_index(&text);
    Seat *seat = &seats[index];
    opened = 1;
    if (strncmp(text, " pass", 5) == 0) {
        seat->bidding = 0;
        return;
    }
    int cost = largest() - seat->paid;
    if (strncmp(text, " raise ", 7) == 0) {
        text += 7;
        cost += number(&text);
        raiser = index;
    }
    if (cost > seat->pile)
        cost = seat->pile;
    seat->paid += cost;
    seat->pile -= cost;
    pot += cost;
}

/* The chance to beat a card that is drawn from the deck above its lowest `skipped` cards; a tie
 * counts half. */
static double beats(int skipped)
{
    int twice = 0;
    for (int index = skipped; index < deck_size; index++)
        twice += deck[index] < card ? 2 : deck[index] == card;
    double chance = twice / (2.0 * (deck_size - skipped));
    return chance > LEAST ? chance : LEAST;
}

static void reply_to_genmove(void)
{
    int need = largest() - seats[me].paid, room = seats[me].pile - need;
    int price = need < seats[me].pile ? need : seats[me].pile;
    double chance = 1;
    for (int seat = 0; seat < seat_count; seat++)
        if (seat != me && seats[seat].bidding)
            chance *= beats(seat == raiser ? deck_size / 2 : 0);
    if (chance >= RAISE && room > 0)
        printf("= raise %d\n\n", room < MOST ? room : MOST);
    else if (price == 0 || chance * (pot + price) > PROFIT * price)
        printf("= check\n\n");
    else
        printf("= pass\n\n");
}

/* Whether a line is this command. Moves its arguments to the front. */
static int is(char *line, const char *command)
{
    size_t length = strlen(command);
    if (strncmp(line, command, length) != 0 || (line[length] && !strchr(" \r\n", line[length])))
        return 0;
    memmove(line, line + length, strlen(line + length) + 1);
    return 1;
}

/* Carries out a command. Returns whether a reply is still due. */
static int obey(char *line)
{
    char *text = line;
    if (is(line, "your_number")) {
        me = seat_index(&text);
    } else if (is(line, "setdeck")) {
        set_deck(text);
    } else if (is(line, "setstate")) {
        set_state(text);
    } else if (is(line, "topcard")) {
        int seat = seat_index(&text);
        if (!opened && seat == me)
            card = number(&text);
    } else if (is(line, "play")) {
        play(text);
    } else if (is(line, "genmove")) {
        reply_to_genmove();
        return 0;
    }
    return 1;
}

int main(void)
{
    static char line[LINE];
    while (fgets(line, sizeof line, stdin)) {
        if (strspn(line, " \r\n") == strlen(line))
            continue;
        int last = strncmp(line, "quit", 4) == 0;
        if (obey(line))
            printf("=\n\n");
        fflush(stdout);
        if (last)
            break;
    }
    return 0;
}
