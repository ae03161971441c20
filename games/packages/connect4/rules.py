#!/usr/bin/env python3
"""The rules of Connect Four: two bots drop stones into columns, four in a row win.

Arbiter writes one JSON object a line, and these rules answer each with one line. The state of the
match depends on these lines alone.
"""

import json
import sys

DIRECTIONS = [(1, 0), (0, 1), (1, 1), (1, -1)]


class Match:
    """A match in progress. Seats are 1 and 2, and columns are counted from 0."""

    def __init__(self, params):
        self.columns = params["columns"]
        self.rows = params["rows"]
        self.stacks = [[] for _ in range(self.columns)]
        self.turn = 1

    def begin(self):
        """Both bots learn the size of the board and their seat. The first one moves."""
        size = f"{self.columns} {self.rows}"
        tells = [{"tell": seat, "text": f"start {size} {seat}"} for seat in (1, 2)]
        return tells + [self.request()]

    def request(self):
        return {"ask": self.turn, "text": "move"}

    def hear(self, reply):
        """The turn's bot has answered, or has forfeited."""
        if "forfeit" in reply:
            return [self.over(winner=3 - self.turn)]
        text = reply["text"]
        problem = self.problem_of(text)
        if problem:
            return [{"illegal": self.turn, "why": problem}, self.over(winner=3 - self.turn)]
        column = int(text)
        self.stacks[column].append(self.turn)
        if self.has_four(column):
            return [self.over(winner=self.turn)]
        if all(len(stack) == self.rows for stack in self.stacks):
            return [self.over(winner=None)]
        self.turn = 3 - self.turn
        return [{"tell": self.turn, "text": f"played {column}"}, self.request()]

    def problem_of(self, text):
        """Why a move is not legal. None if it is."""
        if not (text.isascii() and text.isdigit() and len(text) <= 2):
            return f"write the number of a column, 0 to {self.columns - 1}, not {text[:20]!r}"
        column = int(text)
        if column >= self.columns:
            return f"column {column} is not one of 0 to {self.columns - 1}"
        if len(self.stacks[column]) == self.rows:
            return f"column {column} is full"
        return None

    def has_four(self, column):
        """Whether the last stone of a column completes a row of four."""
        row = len(self.stacks[column]) - 1
        for right, up in DIRECTIONS:
            length = 1 + self.count(column, row, right, up) + self.count(column, row, -right, -up)
            if length >= 4:
                return True
        return False

    def count(self, column, row, right, up):
        """How many stones of the turn's bot follow each other in a direction."""
        length = 0
        while True:
            column, row = column + right, row + up
            if not (0 <= column < self.columns and 0 <= row < len(self.stacks[column])):
                return length
            if self.stacks[column][row] != self.turn:
                return length
            length += 1

    def over(self, winner):
        """The scores: 2 for a win, 1 for a draw."""
        points = {None: [1, 1], 1: [2, 0], 2: [0, 2]}[winner]
        return {"over": [[point] for point in points]}


def main():
    match = None
    for line in sys.stdin:
        question = json.loads(line)
        if "new" in question:
            match = Match(question["new"]["params"])
            answer = match.begin()
        else:
            answer = match.hear(question["heard"][0])
        print(json.dumps({"do": answer}), flush=True)


main()
