"""A fault drill: plays tournaments while everything that can fail fails.

    python3 scripts/drill [--arbiter PROGRAM] [--matches N] [--faults N] [--kinds A,B] [--seed TEXT]
                          [--small] [--keep DIR] [--list]

The drill starts a private Postgres, two coordinators with it, and three workers that know both.
They play tournaments of all five games between bots that read no clock. Meanwhile faults happen.
The seed determines their kinds and times: programs are killed and stopped, networks cut, disks
filled, tables locked, clocks set wrong, rows damaged. The next fault starts as soon as play
continues; some start during another one. Before that, one coordinator and one worker play the same
tournaments without faults.

The drill passes (exit code 0) if every edition becomes complete, each match is counted once,
nothing was set aside or suspended, no report is left, no program ended by itself, and the
leaderboards equal those of the undisturbed run. After each fault play must continue within a
minute, and after the last one something must be played or counted each minute until the end.
Otherwise the exit code is 1, and every error is listed.

It needs Linux, Postgres 14 or newer, setpriv, cc, python3 3.11 and perl. Root is needed for kinds
that mount file systems (--list says which); they are skipped otherwise. Everything is in a
temporary directory and a separate mount namespace, and is removed at the end. A drill that is
killed by SIGKILL leaves that directory, but no process and no mount.

Examples:
    python3 scripts/drill                                  # 300 faults, one to two hours
    python3 scripts/drill --small --arbiter target/debug/arbiter
    python3 scripts/drill --kinds lock-table,full-disk --faults 10 --matches 1000 --keep drill
    python3 scripts/drill --list
"""

import sys

sys.dont_write_bytecode = True

import argparse
import ctypes
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

import checks
import database
import drill
import faults
import programs
import tournaments

SUBREAPER, NEW_MOUNTS = 36, 0x00020000
LIBC = ctypes.CDLL(None, use_errno=True)


def arguments():
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("drill", description=__doc__, formatter_class=layout)
    program = tournaments.ROOT / "target/release/arbiter"
    parser.add_argument("--arbiter", default=program, type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--matches", type=int, help="of all tournaments together (20000)")
    parser.add_argument("--faults", type=int, help="how many happen (300)")
    parser.add_argument("--kinds", help="only these kinds, with commas between them")
    parser.add_argument("--seed", help="any text: the same faults again")
    parser.add_argument("--lease", help="of matches (20s; 10s in the small form)")
    parser.add_argument("--small", action="store_true", help="200 matches and 12 faults")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="logs, faults.jsonl")
    parser.add_argument("--list", action="store_true", help="list the kinds of faults and end")
    return parser.parse_args()


def chosen(wanted):
    """The selected kinds."""
    if not wanted.kinds:
        return [kind for kind in faults.KINDS.values() if kind.small or not wanted.small]
    names = wanted.kinds.split(",")
    unknown = [name for name in names if name not in faults.KINDS]
    if unknown:
        sys.exit(f"error: there is no kind {', '.join(unknown)}; --list shows them all")
    return [faults.KINDS[name] for name in names]


def prepare_process():
    """Ensures that nothing outlives this process. Returns whether it may mount file systems."""
    # Orphans become children of this process.
    LIBC.prctl(SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # Mounts are private, and end with the last of these processes.
    if os.geteuid() != 0 or LIBC.unshare(NEW_MOUNTS) != 0:
        return False
    command = ["mount", "--make-rprivate", "/"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def deafen():
    """Ignores signals during the clean-up, so that a second Ctrl-C leaves nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def play_undisturbed(wanted, folder, contests):
    """The leaderboards without faults."""
    parts = programs.Parts(
        wanted.arbiter, folder / "undisturbed", False, 1, 1, 2, wanted.lease, None
    )
    try:
        parts.begin(contests, 2)
        began, told = time.monotonic(), 0.0
        while checks.unfinished(parts.postgres):
            parts.look()
            if time.monotonic() > told + 15:
                told = time.monotonic()
                played = parts.postgres.one("SELECT count(*) FROM results")
                print(f"undisturbed: {told - began:.0f} s, {played} matches", flush=True)
            time.sleep(0.2)
        played = parts.postgres.one("SELECT count(*) FROM results")
        boards = {name: checks.board(parts.ranking(name)) for name in contests.names}
        wrong = parts.crashes + parts.stop()
        if wrong:
            sys.exit(f"error: even undisturbed: {'; '.join(wrong)}")
        took = time.monotonic() - began
        print(f"undisturbed: {played} matches in {took:.0f} s", flush=True)
        return boards
    finally:
        end(parts, wanted.keep and wanted.keep / "undisturbed")


def end(parts, logs):
    """Ends all parts and removes what they left."""
    parts.close()
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
        for log in parts.folder.glob("*.log"):
            shutil.copy(log, logs)
    for _ in range(20):
        for pid in database.children(os.getpid()):
            faults.send(pid, signal.SIGKILL)
        for group in parts.groups():
            try:
                group.rmdir()
            except OSError:
                pass
        if not parts.groups():
            break
        time.sleep(0.1)


def disturb(wanted, folder, contests, may_mount, boards):
    """Runs the drill, and returns the errors."""
    megabytes = 1024 if wanted.small else 8192
    parts = programs.Parts(
        wanted.arbiter, folder / "drill", may_mount, 2, 3, 2, wanted.lease, megabytes
    )
    course = None
    try:
        parts.begin(contests, 1)
        course = drill.Drill(parts, contests, wanted.seed, wanted.small)
        programs.wait(lambda: course.sampler.latest, "cannot reach the database", 30)
        missing = faults.missing(course)
        for name, why in missing.items():
            course.say(f"skipped: {name} {why}")
        kinds = [kind for kind in chosen(wanted) if kind.name not in missing]
        count = wanted.faults or (len(kinds) if wanted.small else 300)
        course.run(drill.plan(wanted.seed, kinds, count))
        took = course.finish()
        course.say(f"waited {took:.1f} s for the remaining matches")
        wrong = course.failures + checks.check_all(course, boards)
        counted = parts.postgres.ask(checks.FAULTS)
        results = parts.postgres.one("SELECT count(*) FROM results")
        editions = parts.postgres.one("SELECT count(*) FROM editions")
        wrong += parts.stop()
        wrong += checks.check_left(parts)
        print(checks.table(list(course.events()), counted))
        took = course.elapsed()
        print(f"\n{results} matches were played for {editions} editions in {took:.0f} s")
        if parts.early_ends:
            print(f"coordinators that failed to start and were restarted: {parts.early_ends}")
        return wrong
    finally:
        deafen()
        if course and wanted.keep:
            course.write(wanted.keep / "faults.jsonl")
        if course:
            course.close()
        end(parts, wanted.keep)


def main():
    wanted = arguments()
    if wanted.list:
        for kind in faults.KINDS.values():
            print(f"{kind.name:24} {'small' if kind.small else '':6} {kind.text}")
        return
    wanted.arbiter = wanted.arbiter.resolve()
    if not wanted.arbiter.exists():
        sys.exit(f"error: {wanted.arbiter} does not exist; build it, or use --arbiter")
    chosen(wanted)
    wanted.seed = wanted.seed or str(random.SystemRandom().randrange(1 << 32))
    wanted.lease = wanted.lease or ("10s" if wanted.small else "20s")
    matches = wanted.matches or (200 if wanted.small else 20_000)
    may_mount = prepare_process()
    if wanted.keep:
        wanted.keep.mkdir(parents=True, exist_ok=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="arbiter-drill-"))
    folder.chmod(0o755)
    try:
        # A build during the drill must not change the program.
        wanted.arbiter = pathlib.Path(shutil.copy(wanted.arbiter, folder / "arbiter"))
        print(f"about {matches} matches, --seed {wanted.seed}", flush=True)
        contests = tournaments.Tournaments(folder, wanted.seed, 4 if wanted.small else 8, matches)
        boards = play_undisturbed(wanted, folder, contests)
        wrong = disturb(wanted, folder, contests, may_mount, boards)
    finally:
        deafen()
        shutil.rmtree(folder, ignore_errors=True)
    for each in wrong:
        print(f"error: {each}", file=sys.stderr)
    print("passed" if not wrong else f"failed: {len(wrong)} errors (--seed {wanted.seed})")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
