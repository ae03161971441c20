"""Predicts each of the others from what it did before in the same situation, and plays what beats
most of them. What a situation is depends on the other: of several kinds, the one counts that has
predicted it best."""

import random
import sys
from collections import Counter, defaultdict

CHOICES = ["rock", "paper", "scissors"]
BEATEN_BY = {"rock": "paper", "paper": "scissors", "scissors": "rock"}

# How much an older prediction counts, compared with the one after it.
FADING = 0.9


def balance(choice, others):
    """How many of the others `choice` beats, less those that beat it. `others` counts choices."""
    beaten = next(other for other in CHOICES if BEATEN_BY[other] == choice)
    return others[beaten] - others[BEATEN_BY[choice]]


def situations(rounds, seat):
    """The situation of a seat before its next choice, by each kind."""
    last = rounds[-1]
    others = Counter(choice for other, choice in enumerate(last) if other != seat)
    is_good = balance(last[seat], others) > 0
    best = max(CHOICES, key=lambda choice: balance(choice, others))
    return {
        "always": (),
        "last choice": last[seat],
        "last two choices": tuple(choices[seat] for choices in rounds[-2:]),
        "result": (last[seat], is_good, best),
    }


class Other:
    """What is known about another seat."""

    def __init__(self):
        # How often it chose what, by the kind of situation and the situation.
        self.seen = defaultdict(Counter)
        # How well each kind has predicted it.
        self.success = Counter()

    def learn(self, before, choice):
        for situation in before.items():
            seen = self.seen[situation]
            kind = situation[0]
            is_right = bool(seen) and seen.most_common(1)[0][0] == choice
            self.success[kind] = FADING * self.success[kind] + is_right
            seen[choice] += 1

    def predict(self, now):
        """How likely each choice is."""
        kind = max(now, key=lambda kind: self.success[kind])
        seen = self.seen[kind, now[kind]]
        return {choice: (seen[choice] + 1 / 3) / (seen.total() + 1) for choice in CHOICES}


def choose(rounds, others):
    """The choice with the most expected points, less those of the others."""
    if not rounds:
        return random.choice(CHOICES)
    expected = Counter()
    for seat, other in others.items():
        if rounds[-1][seat] != "-":
            expected.update(other.predict(situations(rounds, seat)))
    shuffled = random.sample(CHOICES, 3)
    return max(shuffled, key=lambda choice: balance(choice, expected))


for line in sys.stdin:
    word, *words = line.split()
    if word == "start":
        count, own = int(words[0]), int(words[1]) - 1
        others = {seat: Other() for seat in range(count) if seat != own}
        rounds = []
    elif word == "chose":
        for seat, other in others.items():
            if rounds and words[seat] != "-":
                other.learn(situations(rounds, seat), words[seat])
        rounds.append(words)
    elif word == "choose":
        print(choose(rounds, others), flush=True)
