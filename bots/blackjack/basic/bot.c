/*
 * Basic, a bot for blackjack: it plays by the table that casinos print, without splitting.
 *
 * It looks at its own hand and at the dealer's open card. A dealer with 2 to 6 is likely to go
 * bust, so it draws no card then that could bust itself; otherwise it draws up to 17. It doubles
 * down on 9 to 11 where the dealer is the weaker, and raises its stake by a fixed sum when it
 * stands with 20 or 21. It does not count cards and does not mind what it has already lost.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BEST = 21,       /* the best score of a hand */
    ANTE = 10,       /* the stake of a hand that was not raised yet */
    RAISE_ON_20 = 30,
    RAISE_ON_21 = 60,
};

struct hand {
    int score;
    bool soft; /* one of its aces counts 11 */
    bool pair; /* it has the two cards dealt, and no more */
};

/* What a card counts, an ace at its lowest. */
static int value(char card)
{
    if (card >= '2' && card <= '9')
        return card - '0';
    return card == 'A' ? 1 : 10;
}

static struct hand read_hand(const char *cards)
{
    int low = 0;
    for (const char *card = cards; *card != '\0'; card++)
        low += value(*card);
    bool soft = strchr(cards, 'A') != NULL && low + 10 <= BEST;
    return (struct hand){soft ? low + 10 : low, soft, strlen(cards) == 2};
}

/* Whether twice the stake on one more card is a good bargain. */
static bool doubles(struct hand hand, int dealer)
{
    switch (hand.soft ? 0 : hand.score) {
    case 11:
        return dealer != 1;
    case 10:
        return dealer >= 2 && dealer <= 9;
    case 9:
        return dealer >= 3 && dealer <= 6;
    default:
        return false;
    }
}

static bool hits(struct hand hand, int dealer)
{
    if (hand.soft)
        return hand.score < 18 || (hand.score == 18 && (dealer >= 9 || dealer == 1));
    if (dealer >= 4 && dealer <= 6)
        return hand.score < 12;
    if (dealer == 2 || dealer == 3)
        return hand.score < 13;
    return hand.score < 17;
}

/* By how much it raises the stake of a hand it is going to stand with. */
static long raise_on(int score)
{
    switch (score) {
    case 21:
        return RAISE_ON_21;
    case 20:
        return RAISE_ON_20;
    default:
        return 0;
    }
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 1;
    struct hand hand = read_hand(argv[2]);
    int dealer = value(argv[3][0]);
    long stake = atol(argv[4]), chips = atol(argv[5]);

    long raise = stake == ANTE ? raise_on(hand.score) : 0;
    if (raise > chips)
        raise = chips;

    if (hand.pair && stake == ANTE && chips >= stake && doubles(hand, dealer))
        puts("D");
    else if (hits(hand, dealer))
        puts("H");
    else if (raise > 0)
        printf("B %ld\n", raise);
    else
        puts("S");
    return 0;
}
