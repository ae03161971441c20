"""Rush, a bot for bitwa: every division marches on the enemy unit nearest to it, and attacks
whatever it meets on the way.

It walks in straight lines and ignores walls, danger and its other divisions. Most of
this file keeps the board up to date: the referee tells orders, not what becomes of them.
"""

import sys


class Battle:
    """The board: the free squares, and the units [letter, strength] on them."""

    def __init__(self, arguments):
        columns, rows, _rounds, strength = map(int, arguments[:4])
        self.free = set()
        self.units = {}
        for y, row in enumerate(arguments[4 : 4 + rows]):
            for x, square in enumerate(row[:columns]):
                if square != "#":
                    self.free.add((x, y))
                if square.isalpha():
                    self.units[x, y] = [square, strength]

    def division(self, letter):
        """The squares of a division's units."""
        return [square for square, unit in self.units.items() if unit[0] == letter]

    def enemies(self, letter):
        """The squares of all units that fight against a division."""
        return [
            square
            for square, unit in self.units.items()
            if unit[0].isupper() != letter.isupper()
        ]

    def play(self, letter, attack, xd, yd, dx, dy, p):
        """Carries out an order: sorts the division once, then moves its units one by one."""
        px, py = (xd + dx, yd), (xd, yd + dy)
        points = [(xd, yd), px, py] if p else [(xd, yd), py, px]

        def key(square):
            return [squared(square, point) for point in points]

        for square in sorted(self.division(letter), key=key):
            self.move(square, letter, attack, key)

    def move(self, start, letter, attack, key):
        """Moves one unit to the best square around it, or lets it attack there."""
        open_squares, enemies = [start], []
        for square in around(start):
            if square not in self.free:
                continue
            if square not in self.units:
                open_squares.append(square)
            elif self.units[square][0].isupper() != letter.isupper():
                enemies.append(square)
        end = min(enemies if attack and enemies else open_squares + enemies, key=key)
        if end in enemies:
            self.units[end][1] -= 1
            if self.units[end][1] > 0:
                return
        self.units[end] = self.units.pop(start)


def squared(one, other):
    """The squared distance of two squares."""
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def around(square):
    """The eight neighbours of a square."""
    x, y = square
    return [(x + i, y + j) for j in (-1, 0, 1) for i in (-1, 0, 1) if (i, j) != (0, 0)]


def order(battle, letter):
    """The nearest enemy of any unit of the division is the target of all of them."""
    pairs = [
        (squared(own, enemy), enemy)
        for own in battle.division(letter)
        for enemy in battle.enemies(letter)
    ]
    _distance, (x, y) = min(pairs)
    return f"1 {x} {y} 1 1 1"


def main():
    """Replies to one command a line until the input ends."""
    battle = None
    for line in sys.stdin:
        if not line.strip():
            continue
        command, *arguments = line.split()
        reply = "="
        if command == "set_game":
            battle = Battle(arguments)
        elif command == "play":
            battle.play(arguments[0], *map(int, arguments[1:]))
        elif command == "gen_move":
            reply = "= " + order(battle, arguments[0])
        elif command not in ("time_left", "quit"):
            reply = "? unknown command"
        print(reply, end="\n\n", flush=True)
        if command == "quit":
            break


if __name__ == "__main__":
    main()
