"""Lim 17, the sample bot of the blackjack challenge: it hits below 17 and otherwise stands.

The referee runs it once for each decision, with five arguments:
the score of its hand, its hand, the visible cards, its stake and the chips it has left.
"""

import sys

score = int(sys.argv[1])
print("H" if score < 17 else "S")
