"""Plays many tiny matches with real services, and reports memory, table sizes and delays.

python3 scripts/soak.py [--arbiter PROGRAM] [--game GAME] [--matches N] [--bots N] [--slots N]
                        [--keep DIR]

A private Postgres, a coordinator and a worker run for as long as it takes; the matches are official
ones in all but length, between small bots in C: two deals of tricks, or the package of Connect Four
on its smallest board. The run is good (exit code 0) if every match counted exactly once, nothing
failed through no bot's fault, neither program's memory grew by more than a tenth of itself, or
16 MB, nor its open files by more than 16, between a quarter of the way and the end, and 99 of 100
lots were handed out within 10 ms.
"""

import argparse
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOOK_EVERY = 5.0  # seconds
HAND_OUT = 0.010  # seconds

# The value of `game` in the tournament file, and the parameters of short matches.
GAMES = {
    "tricks": ("tricks", "tables = 2"),
    "connect4": (str(ROOT / "games/packages/connect4"), "columns = 4\nrows = 4\nframes = false"),
}

# A bot of Connect Four, which prefers column NUMBER.
CONNECT4_BOT = """
#include <stdio.h>

int main(void) {
    char line[64];
    int columns = 0, rows = 0, heights[20] = {0}, column;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "start %d %d", &columns, &rows) == 2) continue;
        if (sscanf(line, "played %d", &column) != 1) {
            for (column = NUMBER % columns; heights[column] == rows;) column = (column + 1) % columns;
            printf("%d\\n", column);
            fflush(stdout);
        }
        heights[column]++;
    }
}
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arbiter", default=ROOT / "target/release/arbiter", type=pathlib.Path)
    parser.add_argument("--game", default="tricks", choices=GAMES)
    parser.add_argument("--matches", default=200_000, type=int, help="at least so many")
    parser.add_argument("--bots", default=25, type=int)
    parser.add_argument("--slots", default=2, type=int)
    parser.add_argument("--keep", type=pathlib.Path, help="keep logs and the figures there")
    return parser.parse_args()


class Postgres:
    """A private cluster below `folder`, run by an ordinary user."""

    def __init__(self, folder):
        self.folder = folder / "postgres"
        self.folder.mkdir()
        self.as_user = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
            self.as_user += ["--clear-groups"]
        homes = pathlib.Path("/usr/lib/postgresql").glob("*/bin")
        newest = max(homes, key=lambda home: int(home.parent.name), default=None)
        self.programs = newest or pathlib.Path(shutil.which("initdb")).resolve().parent
        data = self.folder / "data"
        make = ["initdb", "-U", "postgres", "-A", "trust", "-D", data]
        subprocess.run(self.command(*make), check=True, stdout=subprocess.DEVNULL, cwd="/")
        serve = ["postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses="]
        with open(folder / "postgres.log", "wb") as log:
            self.server = subprocess.Popen(self.command(*serve), stdout=log, stderr=log, cwd="/")
        self.url = f"postgres://postgres@localhost/postgres?host={self.folder}"
        until(lambda: self.ask("SELECT 1") is not None, "Postgres does not answer")

    def command(self, program, *words):
        return [*self.as_user, self.programs / program, *words]

    def ask(self, statement):
        """The rows of an answer as lists of text, or None if there is none yet."""
        words = ["-XAtq", "-F", "\t", "-c", statement]
        psql = self.command("psql", "-h", self.folder, "-U", "postgres", *words)
        answer = subprocess.run(psql, capture_output=True, text=True, check=False, cwd="/")
        if answer.returncode != 0:
            return None
        return [line.split("\t") for line in answer.stdout.splitlines()]

    def one(self, statement):
        return int((self.ask(statement) or [[0]])[0][0] or 0)


def until(holds, otherwise, patience=60):
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > patience:
            sys.exit(f"error: {otherwise}")
        time.sleep(0.1)


def resident(process):
    """The resident memory of a process, in megabytes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def open_files(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def bots(folder, game, count):
    """Small bots that play legal but weak moves."""
    for number in range(count):
        bot = folder / f"bot{number:03}"
        if game == "connect4":
            bot.mkdir()
            (bot / "bot.c").write_text(CONNECT4_BOT.replace("NUMBER", str(number)))
            manifest = 'name = "rascal"\nrun = ["./bot"]\nbuild = ["cc", "-o", "bot", "bot.c"]\n'
        else:
            shutil.copytree(ROOT / "bots/rascal", bot)
            manifest = (bot / "bot.toml").read_text()
        (bot / "bot.toml").write_text(manifest.replace('"rascal"', f'"bot{number:03}"'))
        # Each bot is a different program, because equal files would be one version.
        (bot / "number").write_text(f"{number}\n")
        yield bot


def tournament(folder, game, names, legs):
    game, params = GAMES[game]
    text = f"""
name = "soak"
game = "{game}"
seed = "soak"

[params]
{params}

[schedule]
kind = "round_robin"
sides = "balanced"
legs = {legs}

[house]
bots = {json.dumps([str(name) for name in names])}
"""
    (folder / "soak.toml").write_text(text)
    return folder / "soak.toml"


class Parts:
    """The running programs, and commands to them."""

    def __init__(self, program, folder, slots):
        self.program, self.folder = program, folder
        self.postgres = Postgres(folder)
        url = ["--database-url", self.postgres.url]
        admin = self.token("admin", url)
        self.environment = {**os.environ, "ARBITER_TOKEN": admin}
        self.coordinator = self.start(
            "coordinator", ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *url], admin
        )
        log = folder / "coordinator.log"
        until(lambda: self.address(log, "grpc"), "the coordinator does not start")
        self.environment["ARBITER_SERVER"] = self.address(log, "grpc")
        words = ["--spool", folder / "spool", "--slots", str(slots)]
        self.worker = self.start("worker", words, self.token("worker", url))

    def token(self, role, url):
        made = [self.program, "token", "create", "--role", role, "--name", role, *url]
        return subprocess.run(made, check=True, capture_output=True, text=True).stdout.split()[-1]

    def start(self, name, words, token):
        environment = {**self.environment, "ARBITER_TOKEN": token}
        with open(self.folder / f"{name}.log", "wb") as log:
            return subprocess.Popen(
                [self.program, name, *words], env=environment, stdout=log, stderr=log
            )

    def address(self, log, what):
        """The address that the coordinator logs."""
        said = re.search(rf'"{what}":"([0-9.:]+)"', log.read_text())
        return said and f"http://{said.group(1)}"

    def run(self, *words, check=True):
        command = [self.program, *words]
        return subprocess.run(
            command, env=self.environment, check=check, capture_output=True, text=True
        )

    def stop(self):
        for process in (self.worker, self.coordinator):
            process.send_signal(signal.SIGTERM)
            process.wait()
        self.postgres.server.send_signal(signal.SIGINT)
        self.postgres.server.wait()


def look(parts, started):
    """The current measurements."""
    sizes = parts.postgres.ask(
        "SELECT relname, pg_total_relation_size(relid), n_live_tup, n_dead_tup "
        "FROM pg_stat_user_tables WHERE pg_total_relation_size(relid) > 1000000"
    )
    counted = "SELECT coalesce(max(counted), 0) FROM progress"
    return {
        "seconds": round(time.monotonic() - started, 1),
        "counted": parts.postgres.one(counted),
        "coordinator_mb": round(resident(parts.coordinator), 1),
        "worker_mb": round(resident(parts.worker), 1),
        "coordinator_files": open_files(parts.coordinator),
        "worker_files": open_files(parts.worker),
        "tables": {
            name: {"mb": round(int(size) / 2**20, 1), "live": int(live), "dead": int(dead)}
            for name, size, live, dead in sizes or []
        },
    }


def hand_out(parts):
    """The number of lots that were leased within each of several limits, in seconds."""
    address = parts.address(parts.folder / "coordinator.log", "http")
    request = urllib.request.Request(f"{address}/metrics")
    request.add_header("Authorization", f"Bearer {parts.environment['ARBITER_TOKEN']}")
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    bucket = r'arbiter_dispatch_duration_seconds_bucket\{le="([^"]+)"\} (\d+)'
    return [(float(bound), int(count)) for bound, count in re.findall(bucket, text)]


def grew(looks, key):
    """The growth of a program's use from the first quarter to the end, and what is allowed."""
    early = [each[key] for each in looks if each["counted"] >= looks[-1]["counted"] / 4]
    return looks[-1][key] - early[0], max(16.0, early[0] / 10)


def main():
    wanted = arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="arbiter-soak-"))
    folder.chmod(0o755)
    pairs = wanted.bots * (wanted.bots - 1) // 2
    legs = -(-wanted.matches // pairs)
    parts = Parts(wanted.arbiter.resolve(), folder, wanted.slots)
    made = list(bots(folder, wanted.game, wanted.bots))
    parts.run("tournament", "create", tournament(folder, wanted.game, made, legs))
    parts.run("tournament", "start", "soak")
    started, looks = time.monotonic(), []
    print(f"{pairs * legs} matches, {wanted.slots} slots, logs in {folder}")
    while not looks or looks[-1]["counted"] < pairs * legs:
        time.sleep(LOOK_EVERY)
        for process in (parts.coordinator, parts.worker):
            if process.poll() is not None:
                sys.exit(f"error: a program ended with code {process.returncode}; see {folder}")
        looks.append(look(parts, started))
        now = looks[-1]
        print(
            f"{now['seconds']:8.0f} s {now['counted']:9} matches"
            f" {now['counted'] / now['seconds']:7.0f}/s"
            f"  coordinator {now['coordinator_mb']:.0f} MB  worker {now['worker_mb']:.0f} MB",
            flush=True,
        )
    wrong = []
    faults = parts.postgres.one("SELECT count(*) FROM faults")
    if faults:
        wrong.append(f"{faults} attempts failed through no bot's fault")
    if parts.postgres.one("SELECT count(*) FROM results") != pairs * legs:
        wrong.append("not every match has one result")
    checked = parts.run("tournament", "check", "soak", check=False)
    if checked.returncode != 0:
        wrong.append(f"tournament check: {checked.stdout}{checked.stderr}")
    for part in ("coordinator", "worker"):
        for key, unit in (("mb", "MB"), ("files", "open files")):
            more, allowed = grew(looks, f"{part}_{key}")
            print(f"{part}: {more:+.1f} {unit} since the first quarter (allowed {allowed:.0f})")
            if more > allowed:
                wrong.append(f"the {part} uses {more:.0f} {unit} more than in the first quarter")
    waits = hand_out(parts)
    times = waits[-1][1]
    told = [f"{count} in {bound * 1000:g} ms" for bound, count in waits if bound <= 0.1]
    print(f"hand-out of {times} lots: {', '.join(told)}")
    if next(count for bound, count in waits if bound >= HAND_OUT) < 0.99 * times:
        wrong.append(f"1 of 100 lots took longer than {HAND_OUT * 1000:g} ms to hand out")
    for name, table in looks[-1]["tables"].items():
        print(f"{name:16} {table['mb']:8.1f} MB {table['live']:9} rows {table['dead']:9} dead")
    if wanted.keep:
        wanted.keep.mkdir(parents=True, exist_ok=True)
        (wanted.keep / "soak.json").write_text(json.dumps(looks, indent=1))
    parts.stop()
    shutil.rmtree(folder, ignore_errors=True)
    for each in wrong:
        print(f"error: {each}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
