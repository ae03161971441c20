"""The kinds of faults.

Each kind is a generator: it causes the fault, yields how many seconds to wait, and undoes it. A
`finally` undoes it even if the drill is interrupted. `d` is the drill, `r` draws arguments from the
seed. Two faults of one group never happen at the same time.
"""

import dataclasses
import os
import signal
import subprocess
import time
import typing

import database
import network
from database import DatabaseError

KINDS = {}


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    group: str
    act: typing.Callable
    small: bool  # whether the small form has it

    @property
    def text(self):
        return " ".join(self.act.__doc__.split())


def kind(group, small=False):
    def add(act):
        name = act.__name__.replace("_", "-")
        KINDS[name] = Kind(name, group, act, small)
        return act

    return add


def missing(d):
    """The kinds that are impossible here, and why."""
    none = {}
    if not d.parts.may_mount:
        for name in ("full-disk", "frozen-disk", "full-spool"):
            none[name] = "needs root, to mount file systems"
    if not d.parts.shim:
        none["clock-step"] = "needs cc"
    return none


def seconds(d, r, least, most):
    """A duration: short ones are more frequent; the small drill uses the shortest."""
    return least if d.small else round(least + (most - least) * r.random() ** 2, 1)


# Coordinators


def restart_after(d, program, rest):
    yield rest
    program.start()


@kind("coordinator", small=True)
def kill_leader(d, r):
    """kill -9 of the leading coordinator; it is restarted after a moment."""
    victim = d.parts.leader() or r.choice(d.parts.coordinators)
    d.note(victim=victim.name)
    victim.kill()
    yield from restart_after(d, victim, seconds(d, r, 1, 6))


@kind("coordinator")
def kill_follower(d, r):
    """kill -9 of the coordinator that does not lead."""
    leader = d.parts.leader()
    victim = next(each for each in d.parts.coordinators if each is not leader)
    d.note(victim=victim.name)
    victim.kill()
    yield from restart_after(d, victim, seconds(d, r, 1, 6))


@kind("coordinator")
def kill_both_coordinators(d, r):
    """kill -9 of both coordinators at the same moment."""
    for victim in d.parts.coordinators:
        victim.kill()
    yield seconds(d, r, 1, 10)
    for victim in d.parts.coordinators:
        victim.start()


@kind("coordinator")
def restart_coordinator(d, r):
    """SIGTERM of a coordinator and a restart, as in an upgrade."""
    victim = r.choice(d.parts.coordinators)
    d.note(victim=victim.name)
    yield from end_and_start(d, victim, [signal.SIGTERM])


def end_and_start(d, victim, signals):
    """Stops a program by signals, waits for its end, and starts it again."""
    victim.wanted = False
    for number in signals:
        victim.signal(number)
        yield 0.5
    deadline = time.monotonic() + 90
    while not victim.ended() and time.monotonic() < deadline:
        yield 0.1
    if not victim.ended():
        d.fail(f"{victim.name} did not end within 90 s of {signals[-1].name}")
        victim.kill()
    elif victim.process.returncode < 0:
        d.fail(f"{victim.name} was killed by signal {-victim.process.returncode}")
    victim.start()


def stopped(program, time_of_it):
    """SIGSTOP and SIGCONT."""
    program.signal(signal.SIGSTOP)
    try:
        yield time_of_it
    finally:
        program.signal(signal.SIGCONT)


@kind("coordinator")
def stop_coordinator(d, r):
    """SIGSTOP of a coordinator for 2 to 8 s."""
    victim, length = r.choice(d.parts.coordinators), seconds(d, r, 2, 8)
    d.note(victim=victim.name, seconds=length)
    yield from stopped(victim, length)


@kind("coordinator")
def stop_leader_long(d, r):
    """SIGSTOP of the leading coordinator for 30 s."""
    victim = d.parts.leader() or r.choice(d.parts.coordinators)
    d.note(victim=victim.name, seconds=30)
    yield from stopped(victim, 30)


@kind("clock", small=True)
def clock_step(d, r):
    """The wall clock of one coordinator is an hour wrong for 5 to 30 s, and then right again."""
    victim, step = r.choice(d.parts.coordinators), r.choice([-3600, 3600])
    length = seconds(d, r, 5, 30)
    d.note(victim=victim.name, step=step, seconds=length)
    victim.step(step)
    try:
        yield length
    finally:
        victim.step(0)


# Workers


@kind("worker", small=True)
def kill_worker(d, r):
    """kill -9 of a worker; it is restarted with the same spool."""
    victim = r.choice(d.parts.workers)
    d.note(victim=victim.name)
    victim.kill()
    yield from restart_after(d, victim, seconds(d, r, 0, 5))


@kind("worker")
def stop_worker(d, r):
    """SIGSTOP of a worker for 2 to 40 s: sometimes longer than its leases last."""
    victim, length = r.choice(d.parts.workers), seconds(d, r, 2, 40)
    d.note(victim=victim.name, seconds=length)
    yield from stopped(victim, length)


@kind("worker", small=True)
def drain_worker(d, r):
    """SIGTERM of a worker, which finishes its matches first, and a restart."""
    victim = r.choice(d.parts.workers)
    d.note(victim=victim.name)
    yield from end_and_start(d, victim, [signal.SIGTERM])


@kind("worker")
def interrupt_worker_twice(d, r):
    """SIGINT of a worker, twice: it returns its matches."""
    victim = r.choice(d.parts.workers)
    d.note(victim=victim.name)
    yield from end_and_start(d, victim, [signal.SIGINT, signal.SIGINT])


@kind("worker", small=True)
def full_spool(d, r):
    """The file system with a worker's spool is full for 3 to 15 s."""
    victim, length = r.choice(d.parts.workers), seconds(d, r, 3, 15)
    d.note(victim=victim.name, seconds=length)
    ballast = victim.spool / "ballast"
    database.fill(ballast)
    try:
        yield length
    finally:
        ballast.unlink()


# Networks


def links_in(mode, links, length):
    for link in links:
        link.set(mode)
    try:
        yield length
    finally:
        for link in links:
            link.set(network.PASS)


@kind("network", small=True)
def cut_worker(d, r):
    """A worker's connections to one or both coordinators are ended and refused for 3 to 20 s."""
    victim, length = r.choice(d.parts.workers), seconds(d, r, 3, 20)
    links = victim.links if r.random() < 0.5 else [r.choice(victim.links)]
    d.note(victim=victim.name, coordinators=len(links), seconds=length)
    yield from links_in(network.CUT, links, length)


@kind("network")
def silent_worker(d, r):
    """A black hole between a worker and both coordinators for 20 s: no data, no close."""
    victim = r.choice(d.parts.workers)
    d.note(victim=victim.name, seconds=20)
    yield from links_in(network.HOLE, victim.links, 20)


@kind("network")
def slow_worker(d, r):
    """A slow link between a worker and both coordinators for 5 to 20 s."""
    victim, length = r.choice(d.parts.workers), seconds(d, r, 5, 20)
    d.note(victim=victim.name, seconds=length)
    yield from links_in(network.SLOW, victim.links, length)


@kind("network")
def cut_database(d, r):
    """The connections of a coordinator to Postgres are ended and refused for 3 to 20 s."""
    victim, length = r.choice(d.parts.coordinators), seconds(d, r, 3, 20)
    d.note(victim=victim.name, seconds=length)
    yield from links_in(network.CUT, [victim.link], length)


@kind("network", small=True)
def silent_database(d, r):
    """A black hole between one coordinator or both and Postgres for 20 s."""
    links = [each.link for each in d.parts.coordinators]
    links = links if r.random() < 0.5 else [r.choice(links)]
    length = 8 if d.small else 20
    d.note(coordinators=len(links), seconds=length)
    yield from links_in(network.HOLE, links, length)


@kind("network")
def slow_database(d, r):
    """A slow link between one coordinator and Postgres for 5 to 20 s."""
    victim, length = r.choice(d.parts.coordinators), seconds(d, r, 5, 20)
    d.note(victim=victim.name, seconds=length)
    yield from links_in(network.SLOW, [victim.link], length)


# Postgres


@kind("database")
def restart_postgres(d, r):
    """Fast shutdown of Postgres, and a restart after a moment."""
    d.parts.postgres.stop(signal.SIGINT)
    yield seconds(d, r, 0, 8)
    d.parts.postgres.start()


@kind("database", small=True)
def crash_postgres(d, r):
    """Immediate shutdown of Postgres, which recovers at its next start."""
    d.parts.postgres.stop(signal.SIGQUIT)
    yield seconds(d, r, 0, 8)
    d.parts.postgres.start()


@kind("database")
def kill_backend(d, r):
    """kill -9 of one server process: Postgres ends all sessions and recovers."""
    backends = "SELECT pid FROM pg_stat_activity WHERE usename = 'arbiter'"
    pids = [int(pid) for (pid,) in d.parts.postgres.ask(backends)]
    if pids:
        os.kill(r.choice(pids), signal.SIGKILL)
    yield 0.5


@kind("database")
def stop_postgres(d, r):
    """SIGSTOP of all processes of Postgres for 3 to 30 s."""
    length, pids = seconds(d, r, 3, 30), d.parts.postgres.processes()
    d.note(seconds=length)
    yield from stopped_processes(pids, length)


@kind("database")
def stop_disk_writers(d, r):
    """SIGSTOP of checkpointer, walwriter and background writer for 5 to 20 s: a slow disk."""
    statement = "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('checkpointer',"
    statement += " 'walwriter', 'background writer')"
    pids = [int(pid) for (pid,) in d.parts.postgres.ask(statement)]
    length = seconds(d, r, 5, 20)
    d.note(seconds=length)
    yield from stopped_processes(pids, length)


def stopped_processes(pids, length):
    for pid in pids:
        send(pid, signal.SIGSTOP)
    try:
        yield length
    finally:
        for pid in pids:
            send(pid, signal.SIGCONT)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'arbiter'"


@kind("database", small=True)
def end_sessions(d, r):
    """pg_terminate_backend of all sessions of the coordinators."""
    d.parts.postgres.ask(END_SESSIONS)
    yield 0.1


@kind("database")
def end_session(d, r):
    """pg_terminate_backend of one session, three times within a second."""
    for _ in range(3):
        d.parts.postgres.ask(f"{END_SESSIONS} ORDER BY random() LIMIT 1")
        yield 0.3


@kind("database", small=True)
def read_only(d, r):
    """The database is read-only for 3 to 20 s, as a former primary is."""
    length = seconds(d, r, 3, 20)
    d.note(seconds=length)
    setting = f"ALTER DATABASE {database.USER}"
    d.parts.postgres.ask(f"{setting} SET default_transaction_read_only = on", "postgres")
    d.parts.postgres.ask(END_SESSIONS, "postgres")
    yield length
    d.parts.postgres.ask(f"{setting} RESET default_transaction_read_only", "postgres")
    d.parts.postgres.ask(END_SESSIONS, "postgres")


@kind("database")
def no_connections(d, r):
    """Other clients take all connections of Postgres for 5 to 20 s."""
    length = seconds(d, r, 5, 20)
    d.note(seconds=length)
    # Open before the others: on a busy machine, those that ended keep their places for a while.
    held = [d.parts.postgres.session()]
    deadline = time.monotonic() + length
    try:
        while time.monotonic() < deadline:
            try:
                while True:
                    held.append(d.parts.postgres.session(database.USER))
            except DatabaseError:
                pass
            # Only sessions of the coordinators.
            held[0].ask(f"{END_SESSIONS} AND application_name <> 'drill'")
            yield 0.1
    finally:
        for session in held:
            session.close()


def in_transaction(d, statement, length):
    """Holds the locks of a statement, in a transaction that is never committed."""
    session = d.parts.postgres.session()
    try:
        session.ask("BEGIN; SET LOCAL lock_timeout = '10s'")
        session.ask(statement)
        yield length
    finally:
        session.close()


@kind("database", small=True)
def lock_table(d, r):
    """LOCK TABLE records, results, lots or matches for 5 to 60 s."""
    table, length = r.choice(["records", "results", "lots", "matches"]), seconds(d, r, 5, 60)
    d.note(table=table, seconds=length)
    yield from in_transaction(d, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", length)


@kind("database")
def lock_lots(d, r):
    """An open transaction holds the rows of some leased lots for 5 to 40 s."""
    length = seconds(d, r, 5, 40)
    d.note(seconds=length)
    rows = "SELECT FROM lots WHERE state = 'leased' LIMIT 4 FOR UPDATE"
    yield from in_transaction(d, rows, length)


@kind("database")
def full_disk(d, r):
    """The disk of Postgres is full for 5 to 25 s. If Postgres exits, it is restarted."""
    length, postgres = seconds(d, r, 5, 25), d.parts.postgres
    d.note(seconds=length)
    postgres.disk.fill()
    try:
        yield length
    finally:
        postgres.disk.free()
    yield 0.5
    if postgres.process.poll() is not None:
        d.note(postgres="ended")
        postgres.start()


@kind("database")
def frozen_disk(d, r):
    """fsfreeze: no write to the disk of Postgres completes for 3 to 15 s."""
    length, disk = seconds(d, r, 3, 15), d.parts.postgres.disk.at
    d.note(seconds=length)
    # The file system thaws even if this program is killed.
    script = 'fsfreeze -f "$0" && sleep "$1"; fsfreeze -u "$0"'
    command = ["sh", "-c", script, disk, str(length)]
    freeze = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        while freeze.poll() is None:
            yield 0.1
    finally:
        freeze.wait()


# Rows that make one tournament fail: the others must continue


def poisoned(d, victim, poison, antidote, length):
    """Poisons a tournament for a while, or until all other faults are over.

    It stays poisoned until all other tournaments have gone on.
    """
    d.note(tournament=victim, seconds=length or "until the end")
    d.parts.postgres.ask(f"SET lock_timeout = '10s'; {poison}")
    d.poison = victim
    if length:
        yield length
    while not length and not d.is_last_phase:
        yield 0.2
    yield from d.expect_progress(victim)
    while not d.try_to_ask(f"SET lock_timeout = '10s'; {antidote}"):
        yield 0.2
    d.poison = None


def trigger(d, r, table, event, condition):
    """A trigger that fails for one tournament: the statements to create and to drop it."""
    victim = r.choice(d.tournaments.names)
    condition = condition.format(victim=victim)
    poison = f"""
        CREATE FUNCTION drill_poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF {condition} THEN RAISE EXCEPTION 'poisoned by the drill: {victim}'; END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER drill_poison BEFORE {event} ON {table} FOR EACH ROW
            EXECUTE FUNCTION drill_poison()"""
    return victim, poison, "DROP FUNCTION IF EXISTS drill_poison CASCADE"


def poison_length(d, r):
    return None if d.poison_stays else seconds(d, r, 8, 40)


VICTIM = "(SELECT id FROM tournaments WHERE name = '{victim}')"


@kind("poison")
def poison_counting(d, r):
    """Counting results of one tournament fails."""
    condition = f"NEW.edition IN (SELECT id FROM editions WHERE tournament = {VICTIM})"
    poison = trigger(d, r, "standings", "INSERT OR UPDATE", condition)
    yield from poisoned(d, *poison, poison_length(d, r))


@kind("poison")
def poison_planning(d, r):
    """Opening an edition of one tournament fails while one is due."""
    poison = trigger(d, r, "editions", "INSERT", f"NEW.tournament = {VICTIM}")
    d.submit_later(poison[0])
    yield from poisoned(d, *poison, poison_length(d, r))


@kind("poison")
def poison_leasing(d, r):
    """Leasing lots of one tournament fails."""
    condition = f"NEW.state = 'leased' AND NEW.tournament = {VICTIM}"
    poison = trigger(d, r, "lots", "UPDATE", condition)
    yield from poisoned(d, *poison, poison_length(d, r))


@kind("poison")
def poison_match(d, r):
    """A planned match has bots that do not exist, as after a damaged page."""
    found = d.parts.postgres.ask("""
        SELECT t.id, m.number, m.seats::text, t.name FROM lots l
        JOIN matches m ON m.tournament = l.tournament AND m.number = l.number
        JOIN tournaments t ON t.id = l.tournament
        JOIN editions e ON e.tournament = t.id AND e.state = 'running'
        WHERE l.state = 'pending' ORDER BY random() LIMIT 1""")
    if not found:
        return
    tournament, number, seats, victim = found[0]
    d.note(match=f"{victim}/{number}")
    change = f"""SET session_replication_role = replica;
        UPDATE matches SET seats = '%s' WHERE tournament = {tournament} AND number = {number}"""
    strangers = ",".join(str(9000 + seat) for seat in range(seats.count(",") + 1))
    poison = (victim, change % f"{{{strangers}}}", change % seats)
    yield from poisoned(d, *poison, poison_length(d, r))
    # A match that could not be leased may be set aside. Then the organiser must act.
    aside = f"""SELECT number FROM lots WHERE state = 'aside' AND tournament = {tournament}
        AND {number} BETWEEN number AND number + count - 1"""
    for (lot,) in d.parts.postgres.ask(aside):
        d.note(retried=True)
        d.parts.run("tournament", "retry", f"{victim}/{lot}")


# Submissions are no fault, but the next edition cancels lots, adds others and keeps results


@kind("submission", small=True)
def resubmission(d, r):
    """A player submits a new version of a bot; it is tried, and a new edition opens."""
    victim = d.next_to_submit()
    d.note(tournament=victim)
    yield from submit(d, victim)


def submit(d, victim):
    d.versions[victim] += 1
    bot = d.tournaments.version(victim, d.versions[victim])
    for _ in range(10):
        words = ["submit", victim, bot, "--no-wait"]
        command, environment = d.parts.command(*words, token=d.parts.player)
        sending = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        try:
            while sending.poll() is None and time.monotonic() < deadline:
                yield 0.1
        finally:
            sending.kill()
            message = sending.communicate()[1].decode(errors="replace").strip()
        if sending.returncode == 0:
            return
        yield 2
    d.fail(f"no version could be submitted to {victim}: {message}")
