"""Plays the move that turns the most discs."""

import sys

STEPS = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]


def turned(discs, square, seat):
    """The discs that a disc of `seat` on an empty square turns."""
    result = []
    for right, down in STEPS:
        row = []
        x, y = square[0] + right, square[1] + down
        while discs.get((x, y)) == 3 - seat:
            row.append((x, y))
            x, y = x + right, y + down
        if discs.get((x, y)) == seat:
            result += row
    return result


def start(size):
    """The discs in the middle: the seat by the square."""
    low, high = size // 2, size // 2 + 1
    return {(low, low): 2, (high, high): 2, (high, low): 1, (low, high): 1}


for line in sys.stdin:
    word, *words = line.split()
    if word == "start":
        size, own = map(int, words)
        squares = [(x, y) for y in range(1, size + 1) for x in range(1, size + 1)]
        discs = start(size)
    elif word == "played":
        seat, square = int(words[0]), (ord(words[1][0]) - ord("a") + 1, int(words[1][1:]))
        for turn in turned(discs, square, seat):
            discs[turn] = seat
        discs[square] = seat
    elif word == "move":
        empty = [square for square in squares if square not in discs]
        column, row = max(empty, key=lambda square: len(turned(discs, square, own)))
        print(f"{chr(ord('a') + column - 1)}{row}", flush=True)
