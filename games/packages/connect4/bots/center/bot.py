"""Drops each stone as near to the middle of the board as it can."""

import sys

for line in sys.stdin:
    word, *numbers = line.split()
    if word == "start":
        columns, rows = int(numbers[0]), int(numbers[1])
        heights = [0] * columns
    elif word == "played":
        heights[int(numbers[0])] += 1
    else:
        free = [column for column in range(columns) if heights[column] < rows]
        column = min(free, key=lambda column: abs(2 * column + 1 - columns))
        heights[column] += 1
        print(column, flush=True)
