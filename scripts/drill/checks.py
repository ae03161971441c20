"""The checks after all faults, and the summary table."""

import collections
import itertools
import json
import statistics

NEWEST = """(SELECT DISTINCT ON (tournament) * FROM editions
    ORDER BY tournament, number DESC) AS e JOIN tournaments t ON t.id = e.tournament"""


def belongs(row):
    """The condition that the match of a row belongs to the edition `e`."""
    return f"""{row}.tournament = e.tournament AND {row}.number < e.end_match
        AND NOT EXISTS (SELECT FROM absences a
            WHERE a.tournament = {row}.tournament AND a.number = {row}.number
            AND a.since <= e.number AND (a.until IS NULL OR a.until > e.number))"""


# Descriptions of errors, and statements that list them; they must list nothing.
EXACT = [
    (
        "matches without a result (lost)",
        f"""SELECT t.name, count(*) FROM {NEWEST} JOIN matches m ON {belongs("m")}
        LEFT JOIN results r ON r.tournament = m.tournament AND r.number = m.number
        WHERE r.number IS NULL GROUP BY t.name""",
    ),
    (
        "results without a match",
        """SELECT r.tournament, count(*) FROM results r
        LEFT JOIN matches m ON m.tournament = r.tournament AND m.number = r.number
        WHERE m.number IS NULL GROUP BY r.tournament""",
    ),
    (
        "matches that are not in exactly one counted lot (double or lost)",
        f"""SELECT name, count(*) FROM (
            SELECT t.name FROM {NEWEST} JOIN matches m ON {belongs("m")}
            LEFT JOIN lots l ON l.tournament = m.tournament AND l.state = 'counted'
                AND m.number >= l.number AND m.number < l.number + l.count
            GROUP BY t.name, m.number HAVING count(l.number) <> 1) AS odd
        GROUP BY name""",
    ),
    (
        "editions that do not count each match once: planned, counted",
        f"""SELECT t.name, e.matches, p.counted FROM {NEWEST}
        LEFT JOIN progress p ON p.edition = e.id WHERE p.counted IS DISTINCT FROM e.matches
        OR e.matches <> (SELECT count(*) FROM matches m WHERE {belongs("m")})""",
    ),
    (
        "bots whose standings do not count exactly their matches",
        f"""SELECT t.name, count(*) FROM entrants n JOIN {NEWEST} ON e.id = n.edition
        LEFT JOIN standings s ON s.edition = n.edition AND s.entrant = n.entrant
        WHERE s.matches IS DISTINCT FROM (SELECT nullif(count(*), 0) FROM matches m
            WHERE {belongs("m")} AND n.entrant = ANY (m.seats)) GROUP BY t.name""",
    ),
    (
        "results without a record",
        f"""SELECT t.name, count(*) FROM {NEWEST} JOIN results r ON {belongs("r")}
        LEFT JOIN records c ON c.tournament = r.tournament AND c.number = r.number
        WHERE c.number IS NULL GROUP BY t.name""",
    ),
]

# The same for errors that infrastructure faults must never cause.
UNDESERVED = [
    (
        "lots that were set aside",
        """SELECT t.name, l.number, (SELECT f.reason FROM faults f
            WHERE f.tournament = l.tournament AND f.lot = l.number
            ORDER BY f.attempt DESC LIMIT 1)
        FROM lots l JOIN tournaments t ON t.id = l.tournament
        WHERE l.state = 'aside' ORDER BY 1, 2 LIMIT 10""",
    ),
    (
        "trials that failed or were set aside",
        """SELECT t.name, b.name, v.number, r.state, r.verdict FROM trials r
        JOIN versions v ON v.id = r.version JOIN bots b ON b.id = v.bot
        JOIN tournaments t ON t.id = b.tournament WHERE r.state IN ('failed', 'aside') LIMIT 10""",
    ),
    (
        "tournaments whose last edition could not be opened",
        """SELECT name, last_error FROM tournaments WHERE last_error IS NOT NULL""",
    ),
    (
        "bots that were suspended",
        """SELECT t.name, b.name, b.stood_down_reason FROM bots b
        JOIN tournaments t ON t.id = b.tournament WHERE b.stood_down_at IS NOT NULL""",
    ),
    (
        "workers that were suspended",
        "SELECT w.name, s.reason FROM suspensions s JOIN workers w ON w.id = s.worker",
    ),
    (
        "match audits that disagreed",
        """SELECT kind, state, count(*), min(reason) FROM match_audits
        WHERE state IN ('disagreed', 'unreadable', 'absent') GROUP BY 1, 2""",
    ),
]


def state(postgres):
    """For each tournament's newest edition: its state, and the remaining matches.

    A version on trial, or an edition that is due, counts as something still to come.
    """
    return postgres.ask(f"""
        SELECT t.name, e.state, e.matches, coalesce(p.counted, 0),
            (SELECT count(*) FROM edition_triggers c WHERE c.tournament = t.id)
            + (SELECT count(*) FROM trials r JOIN versions v ON v.id = r.version
               JOIN bots b ON b.id = v.bot
               WHERE b.tournament = t.id AND r.state IN ('waiting', 'leased'))
        FROM {NEWEST} LEFT JOIN progress p ON p.edition = e.id ORDER BY t.id""")


def unfinished(postgres):
    """Tournaments that are not complete, and their progress."""
    return {
        name: f"edition {what}, {counted} of {planned} matches counted, {due} changes due"
        for name, what, planned, counted, due in state(postgres)
        if what != "complete" or int(due) > 0
    }


def stuck_lots(postgres, name):
    """The states of lots that are not counted."""
    rows = postgres.ask(f"""
        SELECT l.state, count(*), max(l.not_before) - now() FROM lots l
        JOIN tournaments t ON t.id = l.tournament AND t.name = '{name}'
        WHERE l.state NOT IN ('counted', 'cancelled') GROUP BY 1 ORDER BY 1""")
    told = [f"{count} {what}" + (f" for {rest} more" if rest else "") for what, count, rest in rows]
    return "; lots: " + ", ".join(told) if told else ""


def list_wrong(postgres, checks):
    for what, statement in checks:
        for row in postgres.ask(statement):
            yield f"{what}: {', '.join(str(field) for field in row)}"


def board(text):
    """A leaderboard without the numbers of editions and versions, which resubmissions change."""
    lines = [json.loads(line) for line in text.splitlines()]
    kept = [{k: v for k, v in line.items() if k not in ("edition", "version")} for line in lines]
    return "".join(json.dumps(line) + "\n" for line in kept)


def compare(name, calm, disturbed):
    """How a leaderboard differs from that of the undisturbed run."""
    for expected, found in itertools.zip_longest(calm.splitlines(), disturbed.splitlines()):
        if expected != found:
            yield f"the leaderboard of {name} differs from the undisturbed one, first in:"
            yield f"  undisturbed {expected}"
            yield f"  disturbed   {found}"
            return


def check_all(d, boards):
    """All errors at the end."""
    wrong, postgres = [], d.parts.postgres
    late = unfinished(postgres)
    for name, how in late.items():
        wrong.append(f"{name} is not complete in time: {how}{stuck_lots(postgres, name)}")
    wrong += list_wrong(postgres, UNDESERVED)
    if not late:
        wrong += list_wrong(postgres, EXACT)
    for name in d.tournaments.names:
        done = d.parts.run("tournament", "check", name, check=False)
        if done.returncode != 0:
            wrong.append(f"tournament check {name}: {done.stdout.strip()} {done.stderr.strip()}")
        if name not in late:
            wrong += compare(name, boards[name], board(d.parts.ranking(name)))
    return wrong


def check_left(parts):
    """Leftovers of ended programs, which must not exist."""
    for worker in parts.workers:
        for path in worker.reports():
            yield f"{worker.name} has a report left: {path.relative_to(worker.spool)}"
    for group in parts.groups():
        yield f"a control group is left: {group}"
    for program in parts.programs():
        for line in program.log.read_text(errors="replace").splitlines():
            if "panicked" in line:
                yield f"{program.name} panicked: {line[:300]}"


def table(events, faults):
    """The summary table."""
    lines = ["", f"{'':30}  play resumed after its end  longest pause"]
    lines += [f"{'kind':24} {'times':>5}  median      worst           in play       faults  aside"]
    kinds = collections.defaultdict(list)
    for event in events:
        kinds[event["kind"]].append(event)
    for name in sorted(kinds):
        times = [e["resumed_after"] for e in kinds[name] if e["resumed_after"] is not None]
        middle, worst = (statistics.median(times), max(times)) if times else (0, 0)
        pause = max(e["longest_pause"] for e in kinds[name])
        noted = sum(e["database_faults"] for e in kinds[name])
        aside = sum(e["set_aside"] for e in kinds[name])
        times = f"{middle:6.1f} s    {worst:6.1f} s        {pause:6.1f} s"
        lines.append(f"{name:24} {len(kinds[name]):5}  {times}     {noted:6} {aside:6}")
    lines += ["", "faults counted by the database:"]
    for name, kind, count, why in faults:
        lines.append(f"  {name:10} {kind or '-':20} {count:>6}  {why}")
    if not faults:
        lines.append("  none")
    return "\n".join(lines)


FAULTS = """SELECT t.name, f.kind, count(*), min(left(f.reason, 60)) FROM faults f
    JOIN tournaments t ON t.id = f.tournament GROUP BY 1, 2 ORDER BY 1, 2"""
