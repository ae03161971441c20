"""Plays a tournament while a real Prometheus collects metrics, and runs operators' queries.

python3 scripts/observe-test.py PROGRAM, from the top of the repository, with `prometheus` and
`promtool` on the PATH. Every query of the dashboard has to return numbers, every series that an
alert needs has to be there, and the counters have to be exactly what SQL counts.
"""

import glob
import json
import math
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

PROGRAM = sys.argv[1]
OBSERVE = pathlib.Path("deploy/observe")
# The time limit of a wait on a busy machine, in seconds.
SOON = 300
# The scrape interval in seconds. It is short, because an edition is over within a second.
LOOK = "200ms"

TOURNAMENT = """
name = "cup"
game = "gomoku"
[params]
move_limit = "1s"
[schedule]
kind = "round_robin"
sides = "both"
[submissions]
window = "1s"
[house]
bots = ["{bots}/house", "{bots}/center", "{rascal}"]
"""

# The results of all editions. Editions share matches, and each of them counts the results.
COUNTED = """FROM editions e
    JOIN results r ON r.tournament = e.tournament AND r.number < e.end_match
        AND NOT EXISTS (SELECT FROM absences a
            WHERE a.tournament = r.tournament AND a.number = r.number
            AND a.since <= e.number AND (a.until IS NULL OR a.until > e.number))"""

# Series of coordinators, and statements with the same value.
EQUAL = {
    "sum(arbiter_matches_counted_total)": f"SELECT count(*) {COUNTED}",
    "sum(arbiter_faults_total)": "SELECT count(*) FROM faults",
    "sum(arbiter_forfeits_total)":
        f"SELECT count(*) {COUNTED}, unnest(r.forfeits) AS code WHERE code > 0",
    'sum(arbiter_forfeits_total{kind="gone"})':
        f"SELECT count(*) {COUNTED}, unnest(r.forfeits) AS code WHERE code = 3",
    'sum(arbiter_trials{state="passed"})': "SELECT count(*) FROM trials WHERE state = 'passed'",
    'sum(arbiter_editions{state="complete"})':
        "SELECT count(*) FROM editions WHERE state = 'complete'",
    "sum(arbiter_matches_reported_total)": "SELECT count(*) FROM results",
    'sum(arbiter_leases_total{kind="lot"})': "SELECT sum(attempt) FROM lots",
    'sum(arbiter_leases_total{kind="trial"})': "SELECT sum(attempt) FROM trials",
    'sum(arbiter_reports_total{kind="lot",status="accepted"})':
        "SELECT count(*) FROM lots WHERE state = 'counted'",
    "sum(arbiter_worker_matches_total)": "SELECT count(*) FROM results",
    "sum(arbiter_worker_forfeits_total)":
        "SELECT count(*) FROM results, unnest(forfeits) AS code WHERE code > 0",
}


def free():
    """An address that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def wait(what, holds):
    """Waits until something holds, and returns it."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        held = holds()
        if held:
            return held
        time.sleep(0.2)
    raise SystemExit(f"error: {what}: not within {SOON} s")


def fetch(address):
    """The response at an address, or None."""
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return answer.read().decode()
    except OSError:
        return None


class Site:
    """All services on this machine, and Prometheus."""

    def __init__(self, directory):
        self.directory = directory
        self.grpc, self.pages, self.metrics = free(), free(), free()
        self.watcher = free()
        self.data = directory / "data"
        log = open(directory / "log", "wb")
        self.up = subprocess.Popen(
            [PROGRAM, "up", "--data", self.data, "--grpc", self.grpc, "--http", self.pages,
             "--metrics", self.metrics, "--slots", "1"], stdout=log, stderr=log)
        self.prometheus = None
        try:
            wait("the services are ready", lambda: fetch(f"http://{self.metrics}/readyz"))
            self.watch(log)
        except BaseException:
            print((directory / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
            self.stop()
            raise

    def watch(self, log):
        """Starts a Prometheus with a short scrape interval, and waits for the first scrape: it may
        be ready seconds before."""
        config = self.directory / "prometheus.yaml"
        rules = (OBSERVE / "alerts.yaml").resolve()
        config.write_text(json.dumps({
            "global": {"scrape_interval": LOOK, "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "arbiter-coordinator",
                                "static_configs": [{"targets": [self.metrics]}]}],
        }))
        self.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--web.listen-address={self.watcher}",
             f"--storage.tsdb.path={self.directory / 'tsdb'}", "--log.level=warn"],
            stdout=log, stderr=log)
        wait("Prometheus is ready", lambda: fetch(f"http://{self.watcher}/-/ready"))
        wait("Prometheus looks", lambda: self.value("up") == 1)

    def ask(self, path, **words):
        """The response of Prometheus."""
        query = urllib.parse.urlencode(words)
        answer = fetch(f"http://{self.watcher}/api/v1/{path}?{query}")
        return json.loads(answer)["data"] if answer else None

    def value(self, query):
        """The number that a query returns now."""
        found = (self.ask("query", query=query) or {"result": []})["result"]
        return float(found[0]["value"][1]) if found else None

    def had_numbers(self, query, since):
        """Whether a query has returned a number at any time."""
        answer = self.ask("query_range", query=query, start=since, end=time.time(), step=LOOK)
        values = (value for series in (answer or {"result": []})["result"]
                  for _, value in series["values"])
        return any(not math.isnan(float(value)) for value in values)

    def run(self, token, *words):
        """The output of a command."""
        environment = dict(os.environ, ARBITER_SERVER=f"http://{self.grpc}", ARBITER_TOKEN=token)
        done = subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True,
                              check=False, timeout=SOON)
        if done.returncode != 0:
            raise SystemExit(f"error: arbiter {' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def sql(self, statement):
        """The number that a statement returns."""
        where = (self.data / "postgres").rglob("postmaster.pid")
        lines = next(where).read_text().splitlines()
        psql = (sorted(glob.glob("/usr/lib/postgresql/*/bin/psql")) or ["psql"])[-1]
        password = (self.data / "postgres" / "postgres.password").read_text().strip()
        done = subprocess.run([psql, "-h", lines[4], "-p", lines[3], "-U", "arbiter", "-Atc",
                               statement, "postgres"], capture_output=True, text=True, check=True,
                              env=dict(os.environ, PGPASSWORD=password))
        return float(done.stdout)

    def stop(self):
        """Ends all services."""
        started = [one for one in (self.prometheus, self.up) if one]
        for one in started:
            one.terminate()
        for one in started:
            one.wait()


def rascal(directory):
    """A bot that crashes in its second move."""
    made = directory / "rascal"
    made.mkdir()
    source = pathlib.Path("bots/rascal/rascal.c").read_text(encoding="utf-8")
    (made / "rascal.c").write_text(source, encoding="utf-8")
    (made / "bot.toml").write_text(
        'name = "eve"\nrun = ["./bot", "exit", "2"]\nbuild = ["cc", "-o", "bot", "rascal.c"]\n')
    return made


def play(site):
    """Plays a tournament, and a submission that opens a second edition."""
    admin = (site.data / "admin.token").read_text().strip()
    file = site.directory / "cup.toml"
    bots = pathlib.Path("bots/gomoku").resolve()
    file.write_text(TOURNAMENT.format(bots=bots, rascal=rascal(site.directory)))
    fetch(f"http://{site.pages}/")
    site.run(admin, "tournament", "create", file)
    site.run(admin, "tournament", "start", "cup")
    site.run(admin, "tournament", "watch", "cup")
    fetch(f"http://{site.pages}/")
    player = site.run(admin, "token", "create", "--role", "player", "--name", "ada").strip()
    site.run(player, "submit", "cup", "bots/gomoku/shapes", "--name", "newcomer")
    complete = "SELECT count(*) FROM editions WHERE state = 'complete'"
    wait("the second edition is complete", lambda: site.sql(complete) == 2)


def metrics_of(expression):
    """The names of the metrics in an expression."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"", "", expression)
    return set(re.findall(r"\b(?:arbiter|process|up)[a-z_]*\b", bare))


def check_dashboard(site, since):
    """Checks that every query of the dashboard returns numbers."""
    dashboard = json.loads((OBSERVE / "grafana.json").read_text(encoding="utf-8"))
    wrong, asked = 0, 0
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            asked += 1
            query = target["expr"].replace("$__rate_interval", "1m")

            def answered(query=query):
                # A rate needs an increase between two scrapes.
                fetch(f"http://{site.pages}/")
                return site.had_numbers(query, since)

            try:
                wait(panel["title"], answered)
            except SystemExit:
                wrong += 1
                print(f"dashboard, {panel['title']}: nothing for {query}", file=sys.stderr)
    print(f"dashboard: {asked} queries, {wrong} without an answer")
    return wrong


def check_alerts(site, since):
    """Checks that every rule was evaluated without an error, and that its series exist."""
    wrong, seen = 0, 0
    for group in site.ask("rules")["groups"]:
        for rule in group["rules"]:
            seen += 1
            if rule["health"] != "ok":
                wrong += 1
                print(f"{rule['name']}: {rule.get('lastError')}", file=sys.stderr)
            for name in metrics_of(rule["query"]):
                if not site.had_numbers(name, since):
                    wrong += 1
                    print(f"{rule['name']}: no series {name}", file=sys.stderr)
    print(f"alerts: {seen} rules, {wrong} mistakes")
    return wrong + (seen == 0)


def check_counters(site):
    """Checks that counters equal SQL after Prometheus has scraped the last change."""
    wrong = 0
    for query, statement in EQUAL.items():
        due = site.sql(statement)
        try:
            wait(query, lambda q=query, due=due: site.value(q) == due)
        except SystemExit:
            wrong += 1
            print(f"{query} is {site.value(query)}, and SQL counts {due}", file=sys.stderr)
    print(f"counters: {len(EQUAL)} compared with SQL, {wrong} differ")
    return wrong


def check_text(text):
    """Checks names, units and help texts with promtool. It reads the older text format, in which
    counters have their full names."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    endings = {"counter": "_total", "info": "_info"}
    lines = []
    for line in text.splitlines():
        if line.startswith(("# HELP", "# TYPE")):
            _, what, name, rest = line.split(" ", 3)
            rest = "gauge" if (what, rest) == ("TYPE", "info") else rest
            line = f"# {what} {name}{endings.get(kinds[name], '')} {rest}"
        if not line.startswith(("# UNIT", "# EOF")):
            lines.append(line)
    done = subprocess.run(["promtool", "check", "metrics"], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=False)
    print(f"figures: {len(kinds)} families, {'right' if done.returncode == 0 else 'wrong'}")
    sys.stderr.write(done.stderr)
    return int(done.returncode != 0)


def main():
    """Prints all mistakes."""
    with tempfile.TemporaryDirectory() as directory:
        # As root, Postgres runs as another user, who must have access.
        os.chmod(directory, 0o711)
        since = time.time()
        site = Site(pathlib.Path(directory))
        try:
            play(site)
            wrong = check_counters(site)
            wrong += check_dashboard(site, since) + check_alerts(site, since)
            wrong += check_text(fetch(f"http://{site.metrics}/metrics"))
        except BaseException:
            print((site.directory / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
            raise
        finally:
            site.stop()
    return 1 if wrong else 0


sys.exit(main())
