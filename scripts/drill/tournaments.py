"""The tournaments of a drill: five games and a cup of stages, small parameters, bots that read no
clock.

Each tournament has one bot that changes: a player submits new versions of it during the drill. It
begins as one program and is another from the second version on; further versions differ in a file
that the bot does not read. So the final leaderboard is known before the drill begins.
"""

import dataclasses
import json
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHANGING = "changing"


@dataclasses.dataclass(frozen=True)
class Game:
    name: str  # of the tournament; also of the game, unless `game` is another one
    usual: str  # what most bots are: written in C
    other: str  # one bot is this, and the changing one becomes it
    params: str
    share: float  # of all matches
    options: str = ""
    game: str = ""

    @property
    def rules(self):
        """The name of the game."""
        return self.game or self.name


GAMES = [
    Game("wojna", "threshold", "miser", 'deals = 1\nclock = "36000000/1000/36000000/100"', 0.1),
    Game("bitwa", "phalanx", "rush", 'rounds = 30\nbank = "10h"', 0.2),
    Game("tricks", "counter", "lowest", 'tables = 2\nmove_limit = "10h"', 0.2),
    Game("blackjack", "basic", "lim17", 'hands = 1\nmove_limit = "10h"', 0.2),
    Game("gomoku", "shapes", "elephant", 'move_limit = "10h"', 0.2, 'state = "tournament"'),
    Game("cup", "counter", "lowest", 'tables = 2\nmove_limit = "10h"', 0.1, game="tricks"),
]


def stages(matches):
    """Three stages with about this number of matches."""
    legs = min(1000, max(1, matches // 6 - 3))
    return f"""
[[stage]]
kind = "swiss"
rounds = 3
games = 2
advance = 4

[[stage]]
kind = "round_robin"
sides = "random"
legs = {legs}
advance = 2

[[stage]]
kind = "knockout"
best_of = 2
"""


def schedule(game, bots, matches):
    """A schedule of about this number of matches."""
    if game == "cup":
        return stages(matches)
    return f"[schedule]\n{one_schedule(game, bots, matches)}"


def one_schedule(game, bots, matches):
    """The keys of a schedule of about this number of matches."""
    pairs = bots * (bots - 1) // 2
    if game == "wojna":
        return f'kind = "foursomes"\ngames = {matches}'
    if game == "blackjack":
        episodes = -(-matches // (5 * -(-bots // 4)))
        return f'kind = "episodes"\nepisodes = {episodes}'
    if game == "gomoku":
        return f'kind = "round_robin"\nsides = "both"\nlegs = {-(-matches // (2 * pairs))}'
    boards = '\nboards = ["pole"]' if game == "bitwa" else ""
    return f'kind = "round_robin"\nsides = "random"\nlegs = {-(-matches // pairs)}{boards}'


def program(game, kind, folder):
    """Copies a shipped bot, built."""
    if kind == "elephant":
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "tests/golden/elephant.py", folder)
        shutil.copy(ROOT / "bots/gomoku/center/bot.py", folder)
        return '["python3", "-SEB", "elephant.py"]'
    source = ROOT / "bots" / game / kind
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("bot", "__pycache__"))
    if (folder / "bot.c").exists():
        build = ["cc", "-std=c11", "-O2", "-o", folder / "bot", folder / "bot.c"]
        subprocess.run(build, check=True)
        return '["./bot"]'
    return '["perl", "bot.pl"]' if (folder / "bot.pl").exists() else '["python3", "-SE", "bot.py"]'


class Tournaments:
    """Files of tournaments and bots in a folder."""

    def __init__(self, folder, seed, bots, matches):
        self.folder, self.seed, self.bots = folder, seed, bots
        self.names = [game.name for game in GAMES]
        self.expected = {}
        self.programs = {}
        for game in GAMES:
            for kind in (game.usual, game.other):
                made = folder / "programs" / game.name / kind
                self.programs[game.name, kind] = (made, program(game.rules, kind, made))
            self.expected[game.name] = max(1, round(matches * game.share))
            self._write(game)

    def _write(self, game):
        names = [f"{game.usual}-{number}" for number in range(1, self.bots - 1)]
        house = [self._bot(game, game.usual, name, name) for name in names]
        house.append(self._bot(game, game.other, game.other, game.other))
        text = f"""
name = "{game.name}"
game = "{game.rules}"
seed = "drill {self.seed}"
expected = "2s"
{game.options}

[params]
{game.params}

{schedule(game.name, self.bots, self.expected[game.name])}

[clock]
startup = "10h"

[submissions]
window = "1s"
per_hour = 100000

[house]
bots = {json.dumps([str(path) for path in house])}
"""
        self.file(game.name).write_text(text)

    def _bot(self, game, kind, name, mark):
        """A bot whose files are like those of no other one."""
        source, run = self.programs[game.name, kind]
        folder = self.folder / "bots" / game.name / mark
        if not folder.exists():
            shutil.copytree(source, folder)
            (folder / "bot.toml").write_text(f'name = "{name}"\nrun = {run}\n')
            (folder / "mark").write_text(f"{mark}\n")
        return folder

    def file(self, name):
        return self.folder / f"{name}.toml"

    def version(self, name, number):
        """The folder of a version of the bot that changes. The first one is another program."""
        game = next(game for game in GAMES if game.name == name)
        kind = game.usual if number == 1 else game.other
        return self._bot(game, kind, CHANGING, f"{CHANGING}-{number}")
