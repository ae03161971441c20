"""Caller, a bot for wojna: raises with a high card, calls with a middling one, passes with a low
one.

It only uses its own card and whether another bot has raised. It does not know what a call costs,
how many cards are in the pot, or which bots are left.
"""

import sys


class Player:
    """The deck, the card in hand, and whether this auction has been raised."""

    def __init__(self):
        self.deck = [1, 1]
        self.card = 1
        self.played = False
        self.raised = False
        self.pile = 0
        self.seat = 1

    def new_auction(self, piles):
        """Every bot has put a card in and sees its next one."""
        self.played = self.raised = False
        self.pile = piles[self.seat - 1]

    def move(self):
        """By how much of the deck is lower: 11 of 13 is high, 6 is middling."""
        lower = sum(card < self.card for card in self.deck) / len(self.deck)
        if lower >= 10 / 13:
            return "check" if self.raised or self.pile == 0 else "raise 1"
        return "check" if lower >= 5 / 13 else "pass"


def main():
    """Replies to one command a line until the input ends."""
    player = Player()
    for line in sys.stdin:
        command, *words = line.split() or [""]
        reply = "="
        if not command:
            continue
        if command == "your_number":
            player.seat = int(words[0])
        elif command == "setdeck":
            player.deck = [int(word) for word in words[1:]]
        elif command == "setstate":
            player.new_auction([int(word) for word in words[2:]])
        elif command == "topcard" and not player.played:
            player.card = int(words[1])
        elif command == "play":
            player.played = True
            player.raised |= words[1] == "raise"
        elif command == "genmove":
            reply = "= " + player.move()
        print(reply, end="\n\n", flush=True)
        if command == "quit":
            break


if __name__ == "__main__":
    main()
