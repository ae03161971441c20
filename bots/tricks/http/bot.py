"""Http, a bot for tricks that is a client of its HTTP form.

It reads one line, `<url> <token>`, plays with POST requests, prints its result and ends. So it can
be a bot of a tournament, and it can play against the house of a server:

    echo "http://localhost:8080/tricks.php TOKEN" | python3 bot.py 35

where the argument is the number of tables. In a tournament that is not for the player to say.

It attacks with its highest card, plain suits before trumps, and defends with the lowest card that
wins, or else with the lowest.
"""

import http.client
import re
import sys
import urllib.parse

# What a state is made of: a card played by the opponent, the end of a trick, the trump, a card
# dealt or drawn.
FRAGMENT = re.compile(r">(..)|([+-])|:(.)|([WXYZ][0-8])")


class Table:
    """One table, as this bot sees it."""

    def __init__(self):
        self.hand = []
        self.attack = None
        self.trump = None

    def hear(self, state):
        """Follows what has happened since this bot's last card."""
        for played, end, trump, card in FRAGMENT.findall(state):
            if played:
                self.attack = played
            elif end:
                self.attack = None
            elif trump:
                self.trump = trump
            else:
                self.hand.append(card)

    def price(self, card):
        """The price of losing a card."""
        return (card[0] == self.trump, card[1], card[0])

    def wins(self, card):
        """Whether a card is a defence against the attack."""
        if card[0] == self.attack[0]:
            return card[1] > self.attack[1]
        return card[0] == self.trump

    def play(self):
        """Removes the card to play from the hand, and returns it."""
        if self.attack:
            choice = [card for card in self.hand if card[0] == self.attack[0]] or self.hand
            winners = [card for card in choice if self.wins(card)]
            card = min(winners or choice, key=self.price)
        else:
            plain = [card for card in self.hand if card[0] != self.trump]
            card = max(plain or self.hand, key=lambda card: card[1])
        self.hand.remove(card)
        self.attack = None
        return card


def card_for(table, state):
    """The word for one table. `_`: it waits for the opponent. A dot: it is over."""
    if state == "_":
        return "_"
    table.hear(state)
    return "." if state.endswith(".") else table.play()


def main():
    url, token = sys.stdin.readline().split()
    place = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port)

    def post(**fields):
        body = urllib.parse.urlencode({"token": token, **fields})
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", place.path, body, form)
        text = connection.getresponse().read().decode()
        response = dict(line.split(": ", 1) for line in text.splitlines())
        if "error" in response:
            sys.exit(response["error"])
        return response

    response = post(_games=sys.argv[1]) if len(sys.argv) > 1 else post()
    tables = [Table() for _ in response["states"].split()]
    while "result" not in response:
        states = response["states"].split()
        cards = [card_for(table, state) for table, state in zip(tables, states)]
        response = post(move=" ".join(cards))
    print(response["result"])
    if "end" in response:
        print(response["end"])


if __name__ == "__main__":
    main()
