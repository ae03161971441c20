"""Elephant, a bot for gomoku that stores a checksum of the messages of every match. The seed of its
next match depends on all checksums, so another history gives another match. The bot `center` is in
the same directory as bot.py and chooses the moves.
"""

import os
import sys
import zlib

memory = os.open("memory", os.O_RDWR | os.O_CREAT, 0o644)
past = os.read(memory, 1 << 20)
match = " ".join(sys.argv[1:])


def note(checksum):
    """Stores the checksum of this match's messages. The line always has the same length, so a
    killed bot never leaves a partial line."""
    os.pwrite(memory, f"{match} {checksum:08x}\n".encode(), len(past))


class Listener:
    """Standard input. Each line is added to the checksum before the bot replies."""

    def __init__(self, lines):
        self.lines = lines
        self.checksum = 0

    def __iter__(self):
        for line in self.lines:
            self.checksum = zlib.crc32(line.encode(), self.checksum)
            note(self.checksum)
            yield line


note(0)
sys.stdin = Listener(sys.stdin)
sys.argv[2] = str(zlib.crc32(past))
import bot  # noqa: E402, F401
