"""The course of a drill: the times of the faults, and the progress in the database."""

import collections
import dataclasses
import datetime
import json
import random
import sys
import threading
import time

import checks
import faults
from database import DatabaseError

TICK = 0.05  # seconds
SAMPLE = 0.25
CALM = 10.0  # the longest time without a fault
OVERLAP = 0.25  # of the faults begin while another one lasts
SOON = 60.0  # in which everything must go on after a fault


@dataclasses.dataclass(frozen=True)
class Sample:
    """The progress in the database at a moment."""

    at: float
    played: int
    faults: int
    aside: int
    # Of each tournament the matches of its newest edition that are played, that are counted, that
    # are planned, and whether it is complete.
    tournaments: dict


class Sampler:
    """Polls the database directly, not through the programs."""

    # The queue holds the matches of the newest edition that are not played.
    STATEMENT = f"""
        WITH queue AS (
            SELECT tournament, sum(count) AS rest FROM lots
            WHERE state NOT IN ('reported', 'counted', 'cancelled') GROUP BY tournament)
        SELECT t.name, greatest(e.matches - coalesce(q.rest, 0), 0), coalesce(c.counted, 0),
            e.matches, e.state,
            (SELECT coalesce(sum(count), 0) FROM lots WHERE state IN ('reported', 'counted')),
            (SELECT count(*) FROM faults), (SELECT count(*) FROM lots WHERE state = 'aside')
        FROM {checks.NEWEST} LEFT JOIN queue q ON q.tournament = e.tournament
        LEFT JOIN progress c ON c.edition = e.id"""

    def __init__(self, postgres):
        self.postgres, self.latest, self.is_over = postgres, None, threading.Event()
        self.went_on = [time.monotonic()]  # moments at which more was played
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        session = None
        while not self.is_over.wait(SAMPLE):
            try:
                if session is None:
                    session = self.postgres.session(timeout=5)
                    session.ask("SET statement_timeout = '3s'")
                rows = session.ask(self.STATEMENT)
            except DatabaseError:
                # A statement that took too long leaves its session as it was, but to be safe:
                session = session and session.close()
                continue
            numbers = [int(number) for number in rows[0][5:]]
            seen = {row[0]: (*map(int, row[1:4]), row[4] == "complete") for row in rows}
            sample = Sample(time.monotonic(), *numbers, seen)
            if self.latest and sample.played > self.latest.played:
                self.went_on.append(sample.at)
            self.latest = sample
        if session:
            session.close()

    def longest_pause(self, since, until):
        """The longest time without a result between two moments."""
        moments = [since, *(each for each in list(self.went_on) if since < each < until), until]
        return max(later - earlier for earlier, later in zip(moments, moments[1:]))

    def close(self):
        self.is_over.set()
        self.thread.join(10)


@dataclasses.dataclass
class Fault:
    """A planned fault and its result."""

    number: int
    kind: faults.Kind
    stays: bool = False
    overlaps: bool = False
    arguments: dict = dataclasses.field(default_factory=dict)
    generator: object = None
    began: float = 0.0
    wake: float = 0.0
    ended: float = 0.0
    before: Sample = None
    at_end: Sample = None
    is_mixed: bool = False
    resumed_after: float = None
    pause: float = 0.0
    tries: int = 0


def plan(seed, kinds, count):
    """Kinds in random order, all of them equally often, or once more."""
    r, deck, drawn = random.Random(f"plan {seed}"), [], []
    for number in range(1, count + 1):
        if not deck:
            deck = r.sample(kinds, len(kinds))
        drawn.append(Fault(number, deck.pop(), overlaps=r.random() < OVERLAP))
    last = next((each for each in reversed(drawn) if each.kind.group == "poison"), None)
    if last:
        last.stays = True
    return drawn


class Drill:
    def __init__(self, parts, tournaments, seed, small):
        self.parts, self.tournaments, self.seed, self.small = parts, tournaments, seed, small
        self.versions = {name: 1 for name in tournaments.names}
        self.failures, self.done, self.active = [], [], []
        self.errands, self.waiting_errands = {}, collections.deque()
        self.current, self.poison, self.is_last_phase = None, None, False
        self.started, self.sampler = time.monotonic(), Sampler(parts.postgres)
        self.on_terminal = sys.stdout.isatty()

    # What faults use

    def note(self, **arguments):
        if self.current:
            self.current.arguments.update(arguments)

    def fail(self, what):
        self.failures.append(f"{self.elapsed():.0f} s: {what}")
        self.say(f"FAILED: {what}")

    @property
    def poison_stays(self):
        return self.current.stays

    def expect_progress(self, victim):
        """Waits until all other tournaments make progress, for a minute without other faults."""
        patience, last = SOON, time.monotonic()
        others = {
            name: counted
            for name, (_, counted, _, complete) in self.sampler.latest.tournaments.items()
            if name != victim and not complete
        }
        while patience > 0:
            seen = self.sampler.latest.tournaments
            # A new edition counts from the beginning.
            others = {n: was for n, was in others.items() if not seen[n][3] and seen[n][1] == was}
            if not others:
                return
            if len(self.active) == 1:
                patience -= time.monotonic() - last
            last = time.monotonic()
            yield 0.2
        self.fail(f"{', '.join(others)} stalled while {victim} was poisoned")

    def try_to_ask(self, statement):
        """Runs a command unless the database has a fault. Returns whether it ran."""
        if any(each.kind.group == "database" for each in self.active):
            return False
        try:
            self.parts.postgres.ask(statement)
        except DatabaseError:
            return False
        return True

    def next_to_submit(self):
        names = [name for name in self.tournaments.names if name != self.poison]
        return min(names, key=lambda name: self.versions[name])

    def submit_later(self, name):
        if name not in self.errands and name not in self.waiting_errands:
            self.waiting_errands.append(name)

    # The course

    def run(self, planned):
        half, count = len(planned) / 2, len(planned)
        due, last_event = self._rest(), time.monotonic()
        while planned or self.active or self.errands or self.waiting_errands:
            self.parts.look()
            self._advance()
            if len(planned) <= half:
                # At the end every changed bot is as in the undisturbed run.
                for name, version in self.versions.items():
                    if version == 1:
                        self.submit_later(name)
            if self._rest() < max(24, 0.02 * sum(self.tournaments.expected.values())) and planned:
                if not self.errands and not self.waiting_errands:
                    self.submit_later(self.next_to_submit())
            busy = any(not each.stays for each in self.active) or self._pending()
            if not busy:
                quiet = time.monotonic() - last_event > (CALM / 4 if self.small else CALM)
                if planned and (self._rest() <= due or quiet) and self._start(planned):
                    last_event = time.monotonic()
                    left = len(planned) + 1
                    share = 2 * random.Random(f"{self.seed} gap {left}").random() / left
                    due = self._rest() * (1 - min(share, 0.75))
                elif not planned and not self.errands and not self.waiting_errands:
                    self.is_last_phase = True
            elif planned and planned[0].overlaps and not self._pending():
                self._start(planned)
                last_event = time.monotonic()
            else:
                last_event = time.monotonic()
            self._progress(count)
            time.sleep(TICK)
        while self._pending():
            self._look_for_play()
            time.sleep(TICK)

    def finish(self):
        """Waits until all editions are complete, as long as something happens each minute."""
        began = since = time.monotonic()
        rest, seen = self._rest(), None
        self.say(f"all faults are over; {rest} matches remain")
        while time.monotonic() < since + SOON:
            self.parts.look()
            # The last submission may open its edition this late.
            if self._rest() > rest:
                self.say(f"another edition has opened; {self._rest()} matches remain")
            rest = self._rest()
            if self.sampler.latest.tournaments != seen:
                seen, since = self.sampler.latest.tournaments, time.monotonic()
            try:
                if not checks.unfinished(self.parts.postgres):
                    break
            except DatabaseError:
                pass
            time.sleep(0.2)
        self.failures += [f"crash: {each}" for each in self.parts.crashes]
        return time.monotonic() - began

    def _rest(self):
        """Matches that are still to be played, those of a poisoned tournament left out."""
        rest = 0
        for name, (done, _, planned, complete) in self.sampler.latest.tournaments.items():
            if name != self.poison and not complete:
                # Episodes are planned round by round.
                rest += max(planned, self.tournaments.expected[name]) - done
        return rest

    def _start(self, planned):
        fault = planned[0]
        groups = {each.kind.group for each in self.active}
        if fault.kind.group in groups or (fault.kind.group == "poison" and "database" in groups):
            return False
        planned.pop(0)
        for each in self._pending():
            each.is_mixed = True
        r = random.Random(f"{self.seed} fault {fault.number}")
        fault.generator = fault.kind.act(self, r)
        fault.began = fault.wake = time.monotonic()
        fault.before = self.sampler.latest
        self.active.append(fault)
        return True

    def _advance(self):
        for fault in list(self.active):
            if time.monotonic() >= fault.wake:
                self._resume(fault)
        while self.waiting_errands:
            name = self.waiting_errands.popleft()
            self.errands[name] = [faults.submit(self, name), 0.0]
        for name, errand in list(self.errands.items()):
            if time.monotonic() >= errand[1]:
                try:
                    errand[1] = time.monotonic() + next(errand[0])
                except StopIteration:
                    del self.errands[name]
        self._look_for_play()

    def _resume(self, fault):
        self.current = fault
        try:
            fault.wake = time.monotonic() + next(fault.generator)
            return
        except StopIteration:
            pass
        except DatabaseError as error:
            self.fail(f"{fault.kind.name}: the drill failed: {error}")
        finally:
            self.current = None
        fault.ended, fault.at_end = time.monotonic(), self.sampler.latest
        self.active.remove(fault)
        self.done.append(fault)
        for each in self.active:
            each.is_mixed = fault.is_mixed = True

    def _pending(self):
        return [each for each in self.done if each.resumed_after is None and each.ended]

    def _look_for_play(self):
        seen = self.sampler.latest
        for fault in self._pending():
            waited = time.monotonic() - fault.ended
            if seen.at > fault.ended and seen.played > fault.at_end.played:
                fault.resumed_after = seen.at - fault.ended
            elif seen.at > fault.ended + 1 and self._rest() == 0:
                fault.resumed_after = 0.0
            elif waited > SOON:
                fault.resumed_after = waited
                if not fault.is_mixed:
                    self.fail(f"nothing was played for {SOON:.0f} s after {self._title(fault)}")
            if fault.resumed_after is not None:
                resumed = fault.ended + fault.resumed_after
                fault.pause = self.sampler.longest_pause(fault.began, resumed)
            if fault.resumed_after is not None and not self.on_terminal:
                print(self._line(fault), flush=True)

    # Output for people

    def elapsed(self):
        return time.monotonic() - self.started

    @staticmethod
    def _title(fault):
        words = " ".join(f"{key}={value}" for key, value in fault.arguments.items())
        return f"{fault.kind.name} {words}".strip()

    def _line(self, fault):
        lasted = fault.ended - fault.began
        return (
            f"{fault.began - self.started:7.1f} s {fault.number:4} {self._title(fault):52}"
            f" lasted {lasted:5.1f} s, no play for {fault.pause:5.1f} s,"
            f" again {fault.resumed_after:4.1f} s after its end"
        )

    def _progress(self, count):
        if self.on_terminal:
            seen, now = self.sampler.latest, ", ".join(self._title(each) for each in self.active)
            line = f"{self.elapsed():6.0f} s  {len(self.done)}/{count} faults"
            line += f"  {seen.played} played,"
            line += f" {self._rest()} to go  {len(self.failures)} failures  {now}"
            print(f"\r\033[K{line[:150]}", end="", flush=True)

    def say(self, text):
        print(f"\r\033[K{text}" if self.on_terminal else text, flush=True)

    def events(self):
        """The faults as objects for a file, in order of time."""
        ordered = sorted(self.done, key=lambda fault: fault.began)
        wall = datetime.datetime.now(datetime.UTC)
        after = [each.before for each in ordered[1:]] + [self.sampler.latest]
        for fault, later in zip(ordered, after):
            ago = datetime.timedelta(seconds=time.monotonic() - fault.began)
            yield {
                "number": fault.number,
                "time": (wall - ago).isoformat(timespec="milliseconds"),
                "at": round(fault.began - self.started, 3),
                "kind": fault.kind.name,
                "arguments": fault.arguments,
                "duration": round(fault.ended - fault.began, 3),
                "resumed_after": fault.resumed_after and round(fault.resumed_after, 2),
                "longest_pause": round(fault.pause, 2),
                # Faults in the database between the start of this fault and of the next one.
                "database_faults": later.faults - fault.before.faults,
                "set_aside": max(0, later.aside - fault.before.aside),
            }

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            for event in self.events():
                file.write(json.dumps(event) + "\n")

    def close(self):
        for each in self.active:
            each.generator.close()
        for generator, _ in self.errands.values():
            generator.close()
        self.sampler.close()
