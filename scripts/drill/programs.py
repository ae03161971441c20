"""The programs of a drill: coordinators and workers over one Postgres, and commands to them."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time
import urllib.error
import urllib.request

import database
import network


class Program:
    """A program that is started, killed and started again."""

    def __init__(self, name, folder, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.log, self.process, self.wanted = folder / f"{name}.log", None, False
        self.pids, self.started_at, self.served = [], 0.0, False

    def start(self):
        # The kernel kills the program when this process ends, for any reason.
        command = ["setpriv", "--pdeathsig", "KILL", *self.command]
        with open(self.log, "ab") as log:
            self.started_at, self.log_start = time.monotonic(), log.tell()
            self.process = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.wanted, self.served = True, False
        self.pids.append(self.process.pid)

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self):
        """Kills the program. It does not run until it is started again."""
        self.wanted = False
        self.process.kill()
        self.process.wait()

    def ended(self):
        return self.process.poll() is not None

    def words(self):
        """The output since the last start."""
        with open(self.log, "rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")


class Coordinator(Program):
    def __init__(self, parts, number, lease):
        folder = parts.folder
        self.grpc, self.http = network.free_port(), network.free_port()
        self.link = parts.network.link(parts.postgres.port)
        self.clock = folder / f"clock-{number}"
        self.step(0)
        url = parts.postgres.url(self.link.port)
        command = [parts.arbiter, "coordinator", "--database-url", url, "--lease", lease]
        command += ["--grpc", f"127.0.0.1:{self.grpc}", "--http", f"127.0.0.1:{self.http}"]
        shim = {"LD_PRELOAD": str(parts.shim), "DRILL_CLOCK": str(self.clock)} if parts.shim else {}
        super().__init__(f"coordinator-{number}", folder, command, {**parts.environment, **shim})

    def step(self, seconds):
        """Sets the clock of the program wrong by this number of seconds."""
        with open(self.clock, "r+b" if self.clock.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    def ready(self):
        """The response of the program about its state, or None."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/readyz", timeout=1) as page:
                self.served = True
                return page.read().decode()
        except (OSError, urllib.error.URLError):
            return ""


class Worker(Program):
    def __init__(self, parts, number, slots):
        self.spool = parts.folder / f"spool-{number}"
        scratch = parts.folder / f"scratch-{number}"
        for folder in (self.spool, scratch):
            folder.mkdir()
        self.spool_is_mounted = parts.may_mount
        if self.spool_is_mounted:
            mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "tmpfs", self.spool]
            subprocess.run(mount, check=True)
        self.links = [parts.network.link(each.grpc) for each in parts.coordinators]
        servers = [f"http://127.0.0.1:{link.port}" for link in self.links]
        turned = servers[number % len(servers) :] + servers[: number % len(servers)]
        name = f"worker-{number}"
        command = [parts.arbiter, "worker", "--coordinator", ",".join(turned), "--name", name]
        command += ["--slots", str(slots), "--spool", self.spool, "--drain", "10s"]
        token = parts.token("worker", name)
        environment = {**parts.environment, "ARBITER_TOKEN": token, "TMPDIR": str(scratch)}
        super().__init__(name, parts.folder, command, environment)

    def reports(self):
        """Files of reports that are not acknowledged or were refused."""
        folders = (self.spool / name for name in ("reports", "refused", "aside"))
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


class Parts:
    """Everything that runs. `close` ends it all, and can be called at any time."""

    def __init__(self, arbiter, folder, may_mount, coordinators, workers, slots, lease, megabytes):
        folder.mkdir()
        self.arbiter, self.folder, self.may_mount = arbiter, folder, may_mount
        self.postgres, self.coordinators, self.workers = None, [], []
        self.crashes, self.early_ends = [], 0
        self.network = network.Network()
        try:
            self.shim = self._shim()
            # Leftovers of killed programs are deleted with the folder.
            self.scratch = folder / "scratch"
            self.scratch.mkdir()
            self.environment = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(self.scratch)}
            port = network.free_port()
            self.postgres = database.Cluster(folder, port, megabytes, may_mount)
            self.admin = self.token("admin", "admin")
            self.player = self.token("player", "player")
            for number in range(coordinators):
                self.coordinators.append(Coordinator(self, number, lease))
                self.coordinators[-1].start()
            for each in self.coordinators:
                wait(each.ready, f"{each.name} does not start; see its log", 90)
            for number in range(workers):
                self.workers.append(Worker(self, number, slots))
                self.workers[-1].start()
        except BaseException:
            self.close()
            raise

    def _shim(self):
        """The library that shifts the clocks of coordinators, or None if it cannot be built."""
        made = self.folder / "clock.so"
        source = pathlib.Path(__file__).with_name("clock.c")
        build = ["cc", "-O2", "-shared", "-fPIC", "-o", made, source]
        built = shutil.which("cc") and subprocess.run(build, check=False).returncode == 0
        return made if built else None

    def token(self, role, name):
        url = self.postgres.url(self.postgres.port)
        made = [self.arbiter, "token", "create", "--role", role, "--name", name]
        made += ["--database-url", url]
        done = subprocess.run(
            made, check=True, capture_output=True, text=True, env=self.environment
        )
        return done.stdout.split()[-1]

    def programs(self):
        return [*self.coordinators, *self.workers]

    def look(self):
        """Counts programs that ended by themselves, and starts them again."""
        for each in self.programs():
            if not each.wanted or not each.ended():
                continue
            # As under systemd, a coordinator that has no database at its start is restarted.
            if isinstance(each, Coordinator) and not each.served and not each.ready():
                self.early_ends += 1
            else:
                code = each.process.returncode
                last = "\n    ".join(each.words().splitlines()[-3:])
                self.crashes.append(f"{each.name} ended by itself, code {code}:\n    {last}")
            time.sleep(0.5)
            each.start()

    def leader(self):
        """The coordinator that leads, if one says so."""
        return next((each for each in self.coordinators if "leader" in each.ready()), None)

    def command(self, *words, token=None):
        """A command, and the environment in which it is an administrator's."""
        servers = ",".join(f"http://127.0.0.1:{each.grpc}" for each in self.coordinators)
        access = {"ARBITER_SERVER": servers, "ARBITER_TOKEN": token or self.admin}
        return [self.arbiter, *map(str, words)], {**self.environment, **access}

    def run(self, *words, token=None, check=True):
        command, environment = self.command(*words, token=token)
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"arbiter {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done

    def begin(self, tournaments, version):
        """Creates all tournaments with a version of the bot that changes, and starts them."""

        def create(name):
            self.run("tournament", "create", tournaments.file(name))
            self.run("submit", name, tournaments.version(name, version), token=self.player)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(create, tournaments.names))
        for name in tournaments.names:
            self.run("tournament", "start", name)

    def ranking(self, name):
        return self.run("ranking", name, "--format", "json").stdout

    def stop(self):
        """Ends all programs in order. What did not end well."""
        wrong = []
        for group in (self.workers, self.coordinators):
            for each in group:
                each.wanted = False
                each.signal(signal.SIGTERM)
            for each in group:
                try:
                    code = each.process.wait(60)
                    if code != 0:
                        wrong.append(f"{each.name} ended with code {code} when it was stopped")
                except subprocess.TimeoutExpired:
                    wrong.append(f"{each.name} did not end within 60 s of SIGTERM")
                    each.kill()
        return wrong

    def close(self):
        for each in self.programs():
            if each.process and not each.ended():
                each.signal(signal.SIGCONT)
                each.kill()
        if self.postgres:
            self.postgres.close()
        for each in self.workers:
            if each.spool_is_mounted:
                subprocess.run(["umount", each.spool], check=False, capture_output=True)
        self.network.close()

    def groups(self):
        """Control groups that workers left."""
        names = {f"arbiter-{pid}-" for each in self.workers for pid in each.pids}
        found = []
        for folder, below, _ in os.walk("/sys/fs/cgroup"):
            found += [pathlib.Path(folder, name) for name in below if name.startswith("arbiter-")]
        mine = [path for path in found if any(path.name.startswith(name) for name in names)]
        return sorted(mine, key=lambda path: -len(path.parts))


def wait(holds, otherwise, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.1)
