"""Elephant, a bot for gomoku that forgets nothing: it writes its matches down, and how the board
lies in the next one depends on all of them. Whoever gives it another past gets another match.
Beside it is center, as bot.py, which does the rest.
"""

import sys
import zlib

with open("memory", "a+", encoding="ascii") as memory:
    memory.seek(0)
    past = memory.read()
    memory.write(" ".join(sys.argv[1:]) + "\n")

sys.argv[2] = str(zlib.crc32(past.encode()))
import bot  # noqa: E402, F401
