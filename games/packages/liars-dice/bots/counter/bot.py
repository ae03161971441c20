"""Computes how likely bids are. Of the likely ones it makes the greatest, and it says liar if the
last bid is less likely than any that it could make. A seat that bids on a face is expected to have
more dice of it."""

import sys
from math import comb

# A bid with this probability is likely.
LIKELY = 0.75
# What a bid adds to the probability that a die of the bidder counts for its face.
TRUST = 0.25


def matching(dice, face, wild):
    """How many of these dice count for a bid on a face."""
    return sum(die == face or (wild and die == 1) for die in dice)


def distribution(dice, chance):
    """The probabilities that 0, 1, 2, ... of some dice count, each with this chance."""
    return [comb(dice, n) * chance**n * (1 - chance) ** (dice - n) for n in range(dice + 1)]


class Table:
    """What a bot knows of the dice."""

    def __init__(self, counts, wild):
        self.counts = counts
        self.total = sum(counts)
        self.wild = wild
        self.dice = []
        # For each face, the other seats that have bid on it in this round.
        self.bidders = {face: set() for face in range(1, 7)}

    def likelihoods(self, face):
        """For each count from 0, the probability that this number of dice or more show a face."""
        chance = 2 / 6 if self.wild and face > 1 else 1 / 6
        of_bidders = sum(self.counts[seat - 1] for seat in self.bidders[face])
        of_others = self.total - len(self.dice) - of_bidders
        exactly = [0.0] * (self.total + 1)
        own = matching(self.dice, face, self.wild)
        for a, p in enumerate(distribution(of_bidders, chance + TRUST)):
            for b, q in enumerate(distribution(of_others, chance)):
                exactly[own + a + b] += p * q
        return [sum(exactly[count:]) for count in range(self.total + 1)]


def choose(table, count, face):
    """A reply. The last bid has count 0 if there is none."""
    likelihoods = {face: table.likelihoods(face) for face in range(1, 7)}
    all_bids = [(c, f) for c in range(1, table.total + 1) for f in range(1, 7)]
    bids = {(c, f): likelihoods[f][c] for c, f in all_bids if (c, f) > (count, face)}
    likely = [bid for bid in bids if bids[bid] >= LIKELY]
    best = max(likely) if likely else max(bids, key=bids.get, default=None)
    if count > 0 and (best is None or 1 - likelihoods[face][count] > bids[best]):
        return "liar"
    return f"{best[0]} {best[1]}"


for line in sys.stdin:
    word, *numbers = line.split()
    numbers = [int(number) for number in numbers]
    if word == "start":
        seat = numbers[1]
        wild = numbers[3] == 1
    elif word == "round":
        table = Table(numbers, wild)
    elif word == "roll":
        table.dice = numbers
    elif word == "bid" and numbers[0] != seat:
        table.bidders[numbers[2]].add(numbers[0])
    elif word == "move":
        print(choose(table, *numbers), flush=True)
