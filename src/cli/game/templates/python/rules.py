"""The rules of {{title}}: two bots take 1 to 3 stones in turn, and the last stone wins.

Arbiter asks one question a line, and these rules answer each with one line, both JSON. The rules
are a function of the questions: no clock, no files, no chance but the seed. docs/games.md has the
whole protocol.
"""

import json
import sys

MOST = 3
COLUMNS = 10


class Match:
    """A match in progress. Seats are 1 and 2."""

    def __init__(self, new):
        self.names = new["bots"]
        self.heap = new["params"]["heap"]
        self.rows = -(-self.heap // COLUMNS)
        self.draws = new["frames"]
        # The seed is the only source of chance. Its last digit says who begins.
        self.turn = 1 + int(new["seed"][-1], 16) % 2

    def name(self):
        return self.names[self.turn - 1]

    def begin(self):
        """Both bots learn the heap and their seat, and the first one is asked."""
        tells = [{"tell": seat, "text": f"start {self.heap} {seat}"} for seat in (1, 2)]
        return tells + self.frame(f"{self.heap} stones, {self.name()} begins") + [self.request()]

    def request(self):
        return {"ask": self.turn, "text": f"move {self.heap}"}

    def legal(self):
        """The legal replies: for people who play, for tests, and for the check below."""
        return [str(stones) for stones in range(1, min(MOST, self.heap) + 1)]

    def hear(self, reply):
        """The bot that was asked has replied, or has forfeited: it was too late, or crashed."""
        other = 3 - self.turn
        if "forfeit" in reply:
            return [self.over(other)]
        # A reply is any text. Check it before you use it.
        if reply["text"] not in self.legal():
            why = f"take 1 to {min(MOST, self.heap)} stones"
            return [{"illegal": self.turn, "why": why}, self.over(other)]
        self.heap -= int(reply["text"])
        frame = self.frame(f"{self.name()} takes {reply['text']}, {self.heap} left")
        if self.heap == 0:
            return frame + [self.over(self.turn)]
        self.turn = other
        return frame + [self.request()]

    def over(self, winner):
        """The score of each seat: one number for each name in `score` of game.toml."""
        return {"over": [[2 if seat == winner else 0] for seat in (1, 2)]}

    def frame(self, caption):
        """A picture for people. It is drawn only if the match is to have pictures."""
        if not self.draws:
            return []
        svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 200 {20 * self.rows}'>"
        svg += "<rect width='200' height='100%' fill='#fdf6e3'/>"
        for stone in range(self.heap):
            x, y = stone % COLUMNS * 20 + 10, stone // COLUMNS * 20 + 10
            svg += f"<circle cx='{x}' cy='{y}' r='8' fill='#586e75'/>"
        return [{"frame": {"svg": svg + "</svg>", "caption": caption}}]


for line in sys.stdin:
    question = json.loads(line)
    if "new" in question:
        match = Match(question["new"])
        answer = {"do": match.begin()}
    elif "legal" in question:
        answer = {"legal": match.legal()}
    else:
        # One bot is asked at a time, so there is one reply.
        answer = {"do": match.hear(question["heard"][0])}
    print(json.dumps(answer), flush=True)
