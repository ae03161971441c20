"""Wins if it can, prevents the other's four if it must, and otherwise plays near the middle, but
not below a square where the other would win."""

import sys

DIRECTIONS = [(1, 0), (0, 1), (1, 1), (1, -1)]


def wins(stacks, column, player):
    """Whether a stone of `player` in `column` makes four in a row."""
    row = len(stacks[column])

    def count(right, up):
        x, y, length = column + right, row + up, 0
        while 0 <= x < len(stacks) and 0 <= y < len(stacks[x]) and stacks[x][y] == player:
            x, y, length = x + right, y + up, length + 1
        return length

    return any(1 + count(x, y) + count(-x, -y) >= 4 for x, y in DIRECTIONS)


def choose(stacks, rows):
    free = [column for column in range(len(stacks)) if len(stacks[column]) < rows]
    for player in ("own", "other"):
        for column in free:
            if wins(stacks, column, player):
                return column
    return min(free, key=lambda column: (helps(stacks, column), abs(2 * column + 1 - len(stacks))))


def helps(stacks, column):
    """Whether a stone in `column` lets the other win on top of it."""
    stacks[column].append("own")
    is_help = wins(stacks, column, "other")
    stacks[column].pop()
    return is_help


for line in sys.stdin:
    word, *numbers = line.split()
    if word == "start":
        stacks, rows = [[] for _ in range(int(numbers[0]))], int(numbers[1])
    elif word == "played":
        stacks[int(numbers[0])].append("other")
    else:
        column = choose(stacks, rows)
        stacks[column].append("own")
        print(column, flush=True)
