"""Elephant, a bot for gomoku that forgets nothing: it notes what its opponents play, match by match,
and how the board lies in the next one depends on all of it. With another past it plays
another match. Beside it is center, as bot.py, which does the rest.
"""

import os
import sys
import zlib

memory = os.open("memory", os.O_RDWR | os.O_CREAT, 0o644)
past = os.read(memory, 1 << 20)
match = " ".join(sys.argv[1:])


def note(heard):
    """Notes a sum of what was heard in this match. The note keeps its length, so a killed bot
    never leaves half of it."""
    os.pwrite(memory, f"{match} {heard:08x}\n".encode(), len(past))


class Listener:
    """Standard input: each line is noted before it is answered."""

    def __init__(self, lines):
        self.lines, self.heard = lines, 0

    def __iter__(self):
        for line in self.lines:
            self.heard = zlib.crc32(line.encode(), self.heard)
            note(self.heard)
            yield line


note(0)
sys.stdin = Listener(sys.stdin)
sys.argv[2] = str(zlib.crc32(past))
import bot  # noqa: E402, F401
