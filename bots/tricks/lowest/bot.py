"""Lowest, a bot for tricks: plays its lowest legal card.

It remembers of each table only its hand and the card that it has to defend against; suits matter
to it only where they must be followed, and trumps not at all.
"""

import re
import sys

# What a state is made of: a card played by the opponent, the end of a trick, the trump, a card
# dealt or drawn.
FRAGMENT = re.compile(r">(..)|([+-])|:(.)|([WXYZ][0-8])")


class Table:
    """One table, as this bot sees it."""

    def __init__(self):
        self.hand = []
        self.attack = None

    def hear(self, state):
        """Follows what has happened since this bot's last card."""
        for played, end, _trump, card in FRAGMENT.findall(state):
            if played:
                self.attack = played
            elif end:
                self.attack = None
            elif card:
                self.hand.append(card)

    def play(self):
        """Removes the lowest legal card from the hand, and returns it."""
        choice = self.hand
        if self.attack:
            choice = [card for card in self.hand if card[0] == self.attack[0]] or self.hand
        card = min(choice, key=lambda card: (card[1], card[0]))
        self.hand.remove(card)
        self.attack = None
        return card


def reply(table, state):
    """The word for one table: a card, or what its state says if it does not wait for one."""
    if state == "_":
        return "_"
    table.hear(state)
    return "." if state.endswith(".") else table.play()


def main():
    tables = []
    for line in sys.stdin:
        key, _, values = line.partition(": ")
        if key != "states":
            continue
        states = values.split()
        tables = tables or [Table() for _ in states]
        words = [reply(table, state) for table, state in zip(tables, states)]
        if all(word == "." for word in words):
            return
        print("move=" + " ".join(words), flush=True)


if __name__ == "__main__":
    main()
