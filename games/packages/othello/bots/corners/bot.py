"""Looks a few moves ahead for corners, and for positions in which the other has few moves. At the
end of the match it counts discs."""

import sys

STEPS = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]

# How many positions it looks at for one move. A count gives the same moves on every machine.
BUDGET = 500

# The values of a corner, of a disc beside an empty corner, and of a possible move.
CORNER, BESIDE_CORNER, MOVE = 30, -12, 3
# More than any value.
INFINITY = 10**6


class OverBudget(Exception):
    pass


class Position:
    def __init__(self, size):
        low, high = size // 2, size // 2 + 1
        self.size = size
        # The seat of the disc on each square that is not empty.
        self.discs = {(low, low): 2, (high, high): 2, (high, low): 1, (low, high): 1}
        self.corners = [(x, y) for x in (1, size) for y in (1, size)]

    def turned(self, square, seat):
        """The discs that a disc of `seat` on an empty square turns."""
        turned = []
        for right, down in STEPS:
            row = []
            x, y = square[0] + right, square[1] + down
            while self.discs.get((x, y)) == 3 - seat:
                row.append((x, y))
                x, y = x + right, y + down
            if self.discs.get((x, y)) == seat:
                turned += row
        return turned

    def moves(self, seat):
        """The legal moves, corners first, each with the discs that it turns."""
        near = {
            (x + right, y + down)
            for (x, y), owner in self.discs.items()
            if owner != seat
            for right, down in STEPS
            if 1 <= x + right <= self.size and 1 <= y + down <= self.size
        }
        empty = [square for square in near if square not in self.discs]
        empty.sort(key=lambda square: (square not in self.corners, square))
        moves = ((square, self.turned(square, seat)) for square in empty)
        return [(square, turned) for square, turned in moves if turned]

    def play(self, square, turned, seat):
        for place in [square, *turned]:
            self.discs[place] = seat

    def undo(self, square, turned, seat):
        del self.discs[square]
        for place in turned:
            self.discs[place] = 3 - seat

    def lead(self, seat):
        """How many discs `seat` has more than the other."""
        return sum(1 if owner == seat else -1 for owner in self.discs.values())

    def value(self, seat, move_count):
        """An estimate for `seat`, which is to move and has `move_count` moves."""
        value = MOVE * (move_count - len(self.moves(3 - seat)))
        for x, y in self.corners:
            if corner_owner := self.discs.get((x, y)):
                value += CORNER if corner_owner == seat else -CORNER
                continue
            for right, down in STEPS:
                if owner := self.discs.get((x + right, y + down)):
                    value += BESIDE_CORNER if owner == seat else -BESIDE_CORNER
        return value


class Search:
    def __init__(self, position):
        self.position = position
        self.visited = 0

    def value(self, seat, depth, least, most):
        """The value for `seat`, which is to move, as far as it lies between `least` and `most`."""
        self.visited += 1
        if self.visited > BUDGET:
            raise OverBudget
        moves = self.position.moves(seat)
        if not moves and not self.position.moves(3 - seat):
            return 1000 * self.position.lead(seat)
        if not moves:
            return -self.value(3 - seat, depth, -most, -least)
        if depth == 0:
            return self.position.value(seat, len(moves))
        for move in moves:
            least = max(least, self.after(move, seat, depth, least, most))
            if least >= most:
                break
        return least

    def after(self, move, seat, depth, least, most):
        """The value for `seat` after its move."""
        self.position.play(*move, seat)
        try:
            return -self.value(3 - seat, depth - 1, -most, -least)
        finally:
            self.position.undo(*move, seat)

    def best_first(self, moves, seat, depth):
        """The same moves, the best one first."""
        best, best_value = moves[0], -INFINITY
        for move in moves:
            value = self.after(move, seat, depth, best_value, INFINITY)
            if value > best_value:
                best, best_value = move, value
        return [best] + [move for move in moves if move is not best]


def choose(position, seat):
    """Looks one move further each time, until the budget is spent or the end is reached."""
    moves = position.moves(seat)
    search = Search(position)
    try:
        for depth in range(1, position.size**2 - len(position.discs) + 1):
            moves = search.best_first(moves, seat, depth)
    except OverBudget:
        pass
    return moves[0][0]


for line in sys.stdin:
    word, *words = line.split()
    if word == "start":
        position, own = Position(int(words[0])), int(words[1])
    elif word == "played":
        seat, square = int(words[0]), (ord(words[1][0]) - ord("a") + 1, int(words[1][1:]))
        position.play(square, position.turned(square, seat), seat)
    elif word == "move":
        column, row = choose(position, own)
        print(f"{chr(ord('a') + column - 1)}{row}", flush=True)
