#!/usr/bin/env python3
"""The rules of Connect Four: two bots drop stones into columns, four in a row win.

Arbiter writes one JSON object a line, and these rules answer each with one line. The state of the
match depends on these lines alone.
"""

import json
import sys

import drawing

DIRECTIONS = [(1, 0), (0, 1), (1, 1), (1, -1)]


class Match:
    """A match in progress. Seats are 1 and 2, and columns are counted from 0."""

    def __init__(self, new):
        self.columns = new["params"]["columns"]
        self.rows = new["params"]["rows"]
        self.names = new["bots"]
        self.draws = new["frames"]
        self.stacks = [[] for _ in range(self.columns)]
        self.turn = 1

    def begin(self):
        """Both bots learn the size of the board and their seat. The first one moves."""
        size = f"{self.columns} {self.rows}"
        tells = [{"tell": seat, "text": f"start {size} {seat}"} for seat in (1, 2)]
        return tells + self.frame(f"{self.names[0]} begins") + [self.request()]

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
        name = self.names[self.turn - 1]
        if row := self.four(column):
            return self.frame(f"{name} has four in a row", row) + [self.over(winner=self.turn)]
        if not self.legal():
            return self.frame("the board is full") + [self.over(winner=None)]
        frame = self.frame(f"{name} plays {column}", [(column, len(self.stacks[column]) - 1)])
        self.turn = 3 - self.turn
        return [{"tell": self.turn, "text": f"played {column}"}] + frame + [self.request()]

    def legal(self):
        """The columns that are not full, as replies."""
        return [str(c) for c, stack in enumerate(self.stacks) if len(stack) < self.rows]

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

    def four(self, column):
        """The squares of a row of four with the last stone of a column. Empty if there is none."""
        row = len(self.stacks[column]) - 1
        for right, up in DIRECTIONS:
            squares = [*self.squares(column, row, -right, -up)[::-1], (column, row)]
            squares += self.squares(column, row, right, up)
            if len(squares) >= 4:
                return squares
        return []

    def squares(self, column, row, right, up):
        """The squares after this one in a direction with stones of the turn's bot."""
        squares = []
        while True:
            column, row = column + right, row + up
            if not (0 <= column < self.columns and 0 <= row < len(self.stacks[column])):
                return squares
            if self.stacks[column][row] != self.turn:
                return squares
            squares.append((column, row))

    def frame(self, caption, marked=()):
        """A picture of the board with these squares marked, if pictures are wanted."""
        if not self.draws:
            return []
        svg = drawing.board(self.stacks, self.columns, self.rows, marked)
        return [{"frame": {"svg": svg, "caption": caption}}]

    def over(self, winner):
        """The scores: 2 for a win, 1 for a draw."""
        points = {None: [1, 1], 1: [2, 0], 2: [0, 2]}[winner]
        return {"over": [[point] for point in points]}


def main():
    match = None
    for line in sys.stdin:
        question = json.loads(line)
        if "new" in question:
            match = Match(question["new"])
            answer = {"do": match.begin()}
        elif "legal" in question:
            answer = {"legal": match.legal()}
        else:
            answer = {"do": match.hear(question["heard"][0])}
        print(json.dumps(answer), flush=True)


main()
