"""Chooses by chance. No bot does better or worse against it than by chance."""

import random
import sys

for line in sys.stdin:
    if line == "choose\n":
        print(random.choice(["rock", "paper", "scissors"]), flush=True)
