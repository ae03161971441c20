"""A private Postgres on a separate disk, and sessions that can be held open."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import time

USER = "arbiter"  # of the coordinators; the drill itself is the superuser
CONNECTIONS = 60


class DatabaseError(Exception):
    """Postgres refused a statement, or is not reachable."""


class Session:
    """A connection that speaks the simple query protocol, so that it can hold a transaction."""

    def __init__(self, path, user="postgres", database=USER, timeout=15):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.received = b""
        try:
            self.socket.connect(str(path))
            names = f"user\0{user}\0database\0{database}\0application_name\0drill\0\0".encode()
            self.socket.sendall(struct.pack("!II", len(names) + 8, 196608) + names)
            self._answer()
        except (OSError, DatabaseError) as error:
            self.close()
            raise DatabaseError(str(error)) from error

    def ask(self, statement):
        """The rows of the last result, as lists of texts."""
        text = statement.encode() + b"\0"
        try:
            self.socket.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
            return self._answer()
        except OSError as error:
            self.close()
            raise DatabaseError(str(error)) from error

    def close(self):
        self.socket.close()

    def _answer(self):
        rows, error = [], None
        while True:
            kind, body = self._message()
            if kind == b"T":
                rows = []
            elif kind == b"D":
                rows.append(self._row(body))
            elif kind == b"E":
                fields = dict((part[:1], part[1:]) for part in body.split(b"\0") if part)
                error = fields.get(b"M", b"?").decode(errors="replace")
                # A terminated session receives no further message.
                if fields.get(b"S") in (b"FATAL", b"PANIC"):
                    raise DatabaseError(error)
            elif kind == b"Z":
                if error:
                    raise DatabaseError(error)
                return rows

    @staticmethod
    def _row(body):
        row, at = [], 2
        for _ in range(struct.unpack_from("!H", body)[0]):
            (length,) = struct.unpack_from("!i", body, at)
            at += 4
            row.append(None if length < 0 else body[at : at + length].decode())
            at += max(length, 0)
        return row

    def _message(self):
        head = self._bytes(5)
        return head[:1], self._bytes(struct.unpack("!I", head[1:])[0] - 4)

    def _bytes(self, count):
        while len(self.received) < count:
            piece = self.socket.recv(65536)
            if not piece:
                raise DatabaseError("the connection was closed")
            self.received += piece
        taken, self.received = self.received[:count], self.received[count:]
        return taken


def children(parent):
    """The live descendants of a process."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(entry.name))
    return found


class Disk:
    """A file system in a file if this user may mount one, else a plain directory."""

    def __init__(self, folder, megabytes, may_mount):
        self.at = folder / "disk"
        self.at.mkdir()
        self.mounted = may_mount
        if may_mount:
            image = folder / "disk.image"
            with open(image, "wb") as file:
                file.truncate(megabytes << 20)
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
            subprocess.run(["mount", "-o", "loop", image, self.at], check=True)

    def fill(self):
        fill(self.at / "ballast")

    def free(self):
        (self.at / "ballast").unlink(missing_ok=True)

    def close(self):
        if self.mounted:
            subprocess.run(["umount", self.at], check=False, capture_output=True)


def fill(path):
    """Fills a file system."""
    with open(path, "ab") as file:
        piece = 64 << 20
        while piece >= 512:
            try:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), piece)
            except OSError:
                piece //= 2


class Cluster:
    """A cluster below `folder`, run by an ordinary user."""

    def __init__(self, folder, port, megabytes=2048, may_mount=False):
        self.folder, self.port, self.process = folder / "postgres", port, None
        self.folder.mkdir()
        self.log = folder / "postgres.log"
        self.disk = Disk(self.folder, megabytes, may_mount)
        self.data = self.disk.at / "data"
        self.data.mkdir()
        self.as_user = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in (self.folder, self.data):
                os.chown(path, user.pw_uid, user.pw_gid)
            self.as_user = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        homes = pathlib.Path("/usr/lib/postgresql").glob("*/bin")
        newest = max(homes, key=lambda home: int(home.parent.name), default=None)
        self.programs = newest or pathlib.Path(shutil.which("initdb")).resolve().parent
        make = ["setpriv", *self.as_user, self.programs / "initdb", "-U", "postgres", "-A", "trust"]
        quiet = {"stdout": subprocess.DEVNULL, "cwd": "/"}
        subprocess.run([*make, "-D", self.data], check=True, **quiet)
        self.start()
        session = self.session(database="postgres")
        session.ask(f"CREATE ROLE {USER} LOGIN")
        session.ask(f"CREATE DATABASE {USER} OWNER {USER}")
        session.close()

    def start(self):
        """Starts the server and waits until it responds."""
        settings = {
            "unix_socket_directories": self.folder,
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "max_connections": CONNECTIONS,
            "shared_buffers": "64MB",
            "max_wal_size": "128MB",
        }
        words = [word for item in settings.items() for word in ("-c", "{}={}".format(*item))]
        alone = ["setpriv", "--pdeathsig", "KILL", *self.as_user]
        command = [*alone, self.programs / "postgres", "-D", self.data, *words]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        deadline = time.monotonic() + 60
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise DatabaseError(f"Postgres does not start; see {self.log}")
            time.sleep(0.1)

    def stop(self, how):
        """Ends the server: SIGINT in order, SIGQUIT like a crash."""
        self.process.send_signal(how)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def session(self, user="postgres", database=USER, timeout=15):
        return Session(self.folder / f".s.PGSQL.{self.port}", user, database, timeout)

    def ask(self, statement, database=USER):
        """Runs a query in a new session."""
        session = self.session(database=database)
        try:
            return session.ask(statement)
        finally:
            session.close()

    def one(self, statement):
        return int(self.ask(statement)[0][0] or 0)

    def answers(self):
        try:
            self.ask("SELECT 1", database="postgres")
        except DatabaseError:
            return False
        return True

    def processes(self):
        return [self.process.pid, *children(self.process.pid)]

    def url(self, port):
        return f"postgres://{USER}@127.0.0.1:{port}/{USER}"

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop(signal.SIGINT)
        self.disk.close()
