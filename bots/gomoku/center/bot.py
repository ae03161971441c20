"""Center, a bot for gomoku: puts its stones as near to the centre as it can.

It completes a row of five, stops one of the opponent's, makes a row of four, stops one of the
opponent's; and where there is nothing of the kind, the middle of the board is a good place. It
looks one move ahead, and sees neither future rows with gaps nor two threats at once. The seed turns
the board, so that matches differ, and chooses among the three replies to an opening, as an example.
"""

import ast
import sys

SIDE = 15
MIDDLE = SIDE // 2
DIRECTIONS = [(1, 0), (0, 1), (1, 1), (1, -1)]
ROW = 5


def turned(square, seed):
    """The square in one of the eight positions that a board can lie in."""
    x, y = square
    if seed & 1:
        x = SIDE - 1 - x
    if seed & 2:
        y = SIDE - 1 - y
    return (y, x) if seed & 4 else (x, y)


def from_the_centre(seed):
    """All squares, the nearest to the centre first."""
    squares = [(x, y) for x in range(SIDE) for y in range(SIDE)]

    def distance(square):
        x, y = square
        return ((x - MIDDLE) ** 2 + (y - MIDDLE) ** 2, turned(square, seed))

    return sorted(squares, key=distance)


def row(stones, square, colour):
    """The length of the longest row that a stone of this colour would stand in."""
    longest = 0
    for dx, dy in DIRECTIONS:
        length = 1
        for step in (1, -1):
            x, y = square[0] + step * dx, square[1] + step * dy
            while stones.get((x, y)) == colour:
                length += 1
                x, y = x + step * dx, y + step * dy
        longest = max(longest, length)
    return min(longest, ROW)


def next_stone(stones, squares, colour):
    """The best square for a stone of this colour; of equals, the nearest to the centre."""
    other = "W" if colour == "B" else "B"

    def worth(square):
        mine, theirs = row(stones, square, colour), row(stones, square, other)
        return (mine == ROW, theirs == ROW, mine == ROW - 1, theirs == ROW - 1)

    return max((square for square in squares if square not in stones), key=worth)


def text(*squares):
    """Squares in the syntax of the protocol."""
    return "".join(f"({x},{y})" for x, y in squares)


class Center:
    """One game."""

    def __init__(self, seed):
        self.seed = seed
        self.squares = from_the_centre(seed)
        self.colour = None

    def reply_to_opening(self, stones):
        """Takes black, or white, or lets the opponent choose."""
        black, white = [square for square in self.squares if square not in stones][:2]
        choice = self.seed // 8 % 3
        if choice == 0:
            self.colour = "B"
            return '"B"'
        if choice == 1:
            self.colour = "W"
            return '"W" ' + text(white)
        return text(black, white)

    def reply(self, prompt, stones):
        """The reply to a prompt."""
        if prompt == "A":
            return text(*(turned(square, self.seed) for square in [(5, 5), (9, 9), (7, 7)]))
        if prompt == "B":
            return self.reply_to_opening(stones)
        if prompt == "C":
            self.colour = "B"
            return '"B"'
        if self.colour is None:
            # The opponent has chosen. If there are two more black stones than white ones, the
            # opponent has just put a black one. Otherwise the first stone, a black one, is due.
            colours = list(stones.values())
            self.colour = "W" if colours.count("B") == colours.count("W") + 2 else "B"
        return text(next_stone(stones, self.squares, self.colour))


def main():
    """Replies line by line until the game is over. Arguments: the opponent's name, a seed."""
    bot = Center(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for line in sys.stdin:
        prompt, _, board = line.strip().partition(" ")
        if prompt == "EXIT":
            break
        print(bot.reply(prompt, dict(ast.literal_eval(board))), flush=True)


main()
