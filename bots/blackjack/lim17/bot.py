"""Lim 17, the sample bot of the blackjack challenge: it hits below 17, else it stands.

It is run anew for every decision, with five arguments:
the score of its hand, its hand, the visible cards, its stake and the chips it has left.
"""

import sys

score = int(sys.argv[1])
print("H" if score < 17 else "S")
