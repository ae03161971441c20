/* Counter, a bot for tricks: counts the cards and uses probabilities.
 *
 * It knows of each card whether it is in its own hand, played, or unseen, and how likely the
 * opponent holds an unseen card rather than the pack: certainly once the pack is empty, hardly in a
 * suit that the opponent has just failed to follow. The value of a card is the chance that it wins
 * the trick, less a price for playing it, which is higher for high cards and for trumps. It looks
 * no further than the current trick.
 */
#include <stdio.h>
#include <string.h>

enum {
    SUITS = 4, RANKS = 9, CARDS = SUITS * RANKS,
    HAND = 9,                   /* cards in a full hand */
    MOST_TABLES = 200,
    LINE = 16 * 1024,           /* the longest line, in characters: a state has less than 40 */
    NONE = -1                   /* no card, no suit */
};

/* The price of playing a card, in tricks: for each rank, and an addition for a trump. */
static const double RANK_PRICE = 0.02, TRUMP_PRICE = 0.9;

enum Place { UNSEEN, OWN, GONE };

typedef struct {
    enum Place place[CARDS];
    int trump;                  /* a suit or NONE */
    int attack;                 /* the attack that this bot must defend against, or NONE */
    int lead;                   /* this bot's attack without a defence yet, or NONE */
    int pack;                   /* cards in the pack */
    int fresh[SUITS];           /* cards the opponent drew since it could not follow that suit */
} Table;

static Table tables[MOST_TABLES];

static int suit_of(int card) { return card / RANKS; }

static int rank_of(int card) { return card % RANKS; }

static void clear(Table *table)
{
    memset(table, 0, sizeof *table);
    table->trump = table->attack = table->lead = NONE;
    table->pack = CARDS;
    for (int suit = 0; suit < SUITS; suit++)
        table->fresh[suit] = HAND;
}

/* The suit of a letter, or NONE. */
static int read_suit(char letter)
{
    return letter >= 'W' && letter < 'W' + SUITS ? letter - 'W' : NONE;
}

/* The card that a text begins with, or NONE. */
static int read_card(const char *text)
{
    int suit = read_suit(text[0]), rank = suit == NONE ? NONE : text[1] - '0';
    return rank >= 0 && rank < RANKS ? suit * RANKS + rank : NONE;
}

/* The opponent plays a card. */
static void see(Table *table, int card)
{
    table->place[card] = GONE;
    if (table->lead == NONE)
        table->attack = card;
    else if (suit_of(card) != suit_of(table->lead))
        table->fresh[suit_of(table->lead)] = 0;
}

/* This bot is dealt a card or draws one; the opponent gets one too. */
static void draw(Table *table, int card)
{
    table->place[card] = OWN;
    table->pack -= 2;
    for (int suit = 0; suit < SUITS; suit++)
        table->fresh[suit]++;
}

/* Follows what has happened since this bot's last card. */
static void hear(Table *table, const char *state)
{
    while (*state) {
        int card = read_card(state + (*state == '>'));
        if (*state == '+' || *state == '-')
            table->attack = table->lead = NONE;
        else if (*state == ':' && state[1])
            table->trump = read_suit(*++state);
        else if (card != NONE) {
            if (*state == '>')
                see(table, card);
            else
                draw(table, card);
            state += 1 + (*state == '>');
        }
        state++;
    }
}

static int is_trump(const Table *table, int card) { return suit_of(card) == table->trump; }

static int beats(const Table *table, int defence, int attack)
{
    if (suit_of(defence) == suit_of(attack))
        return defence > attack;
    return is_trump(table, defence);
}

/* The chance that the opponent has none of the unseen cards of a suit above a card. */
static double chance_of_none(const Table *table, int suit, int above)
{
    int unseen = 0, wanted = 0;
    for (int card = 0; card < CARDS; card++) {
        unseen += table->place[card] == UNSEEN;
        wanted += table->place[card] == UNSEEN && suit_of(card) == suit && card > above;
    }
    double held = unseen ? (double)(unseen - table->pack) / unseen : 0;
    if (table->pack > 0 && table->fresh[suit] < HAND)
        held *= (double)table->fresh[suit] / HAND;
    double none = 1;
    while (wanted-- > 0)
        none *= 1 - held;
    return none;
}

/* The chance that an attack with a card wins the trick. */
static double chance_of_attack(const Table *table, int card)
{
    int suit = suit_of(card);
    double not_higher = chance_of_none(table, suit, card);
    if (table->trump == NONE || suit == table->trump)
        return not_higher;
    double ruffed = chance_of_none(table, suit, NONE)
        * (1 - chance_of_none(table, table->trump, NONE));
    return not_higher - ruffed;
}

static int may_play(const Table *table, int card)
{
    if (table->place[card] != OWN)
        return 0;
    if (table->attack == NONE || suit_of(card) == suit_of(table->attack))
        return 1;
    for (int other = 0; other < CARDS; other++)
        if (table->place[other] == OWN && suit_of(other) == suit_of(table->attack))
            return 0;
    return 1;
}

static double worth(const Table *table, int card)
{
    double price = RANK_PRICE * rank_of(card) + (is_trump(table, card) ? TRUMP_PRICE : 0);
    if (table->attack != NONE)
        return beats(table, card, table->attack) - price;
    return chance_of_attack(table, card) - price;
}

/* Removes the card with the highest value from the hand, and returns it. */
static int play(Table *table)
{
    int best = NONE;
    for (int card = 0; card < CARDS; card++)
        if (may_play(table, card)
            && (best == NONE || worth(table, card) > worth(table, best)))
            best = card;
    if (best == NONE)
        return NONE;
    table->place[best] = GONE;
    table->lead = table->attack == NONE ? best : NONE;
    table->attack = NONE;
    return best;
}

/* Replies to the states of all tables with one line. Returns whether a reply was due. */
static int reply(char *states)
{
    static char line[LINE];
    char *end = line;
    int count = 0, cards = 0;
    for (char *state = strtok(states, " \r\n"); state; state = strtok(NULL, " \r\n")) {
        if (count == MOST_TABLES)
            break;
        Table *table = &tables[count++];
        const char *word = strchr(state, '.') ? "." : "_";
        int card = NONE;
        if (*state != '_' && *word != '.') {
            hear(table, state);
            card = play(table);
        }
        if (card == NONE)
            end += sprintf(end, " %s", word);
        else
            end += sprintf(end, " %c%d", 'W' + suit_of(card), rank_of(card));
        cards += card != NONE;
    }
    if (cards > 0) {
        printf("move=%s\n", line + 1);
        fflush(stdout);
    }
    return cards > 0;
}

int main(void)
{
    static char line[LINE];
    for (int index = 0; index < MOST_TABLES; index++)
        clear(&tables[index]);
    while (fgets(line, sizeof line, stdin)) {
        const char *key = "states: ";
        if (strncmp(line, key, strlen(key)) == 0 && !reply(line + strlen(key)))
            return 0;
    }
    return 0;
}
