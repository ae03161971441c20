"""Bids on the face that it has most often, and believes other bids for a long time."""

import sys


def matching(dice, face, wild):
    """How many of these dice count for a bid on a face."""
    return sum(die == face or (wild and die == 1) for die in dice)


def choose(dice, others, wild, count, face):
    """A reply. The others have `others` dice. The last bid has count 0 if there is none."""
    if count > 0 and count > matching(dice, face, wild) + others / 2:
        return "liar"
    best = max(range(1, 7), key=lambda face: matching(dice, face, wild))
    if count == 0:
        return f"{matching(dice, best, wild)} {best}"
    if best <= face:
        count += 1
    return f"{count} {best}" if count <= len(dice) + others else "liar"


for line in sys.stdin:
    word, *numbers = line.split()
    numbers = [int(number) for number in numbers]
    if word == "start":
        wild = numbers[3] == 1
    elif word == "round":
        total = sum(numbers)
    elif word == "roll":
        dice = numbers
    elif word == "move":
        print(choose(dice, total - len(dice), wild, *numbers), flush=True)
