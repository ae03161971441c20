# ends: by itself
# Connects to sockets of other programs in the file system, from sockets of every kind.
import os, socket
from attack import SECRET, breach, done, refused
FOLDER = os.path.dirname(SECRET)
STREAM, DATAGRAMS = f"{FOLDER}/stream", f"{FOLDER}/datagrams"
KINDS = {"stream": socket.SOCK_STREAM, "packets": socket.SOCK_SEQPACKET,
         "datagrams": socket.SOCK_DGRAM, "raw": socket.SOCK_RAW}
def connect(kind, path):
    socket.socket(socket.AF_UNIX, kind).connect(path)
def connect_pair(kind, path):
    socket.socketpair(socket.AF_UNIX, kind)[0].connect(path)
def send_from_pair(kind, path):
    socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"breach", path)
def send_with_rights(kind, path):
    one = socket.socketpair(socket.AF_UNIX, kind)[0]
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, (0).to_bytes(4, "little"))
    one.sendmsg([b"breach"], [rights], 0, path)
for name, kind in KINDS.items():
    for path in (STREAM, DATAGRAMS):
        refused(f"connect {name} to {path}", connect, kind, path)
        refused(f"connect a pair of {name} to {path}", connect_pair, kind, path)
        if kind not in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            refused(f"send {name} to {path}", send_from_pair, kind, path)
            refused(f"send rights by {name} to {path}", send_with_rights, kind, path)
# A socket pair whose other end is closed cannot be connected again.
one, other = socket.socketpair()
other.close()
refused("connect what is left of a pair", one.connect, STREAM)
# Build daemons listen beside the stores of their packages.
for path in ("/nix/var/nix/daemon-socket/socket", "/var/guix/daemon-socket/socket"):
    refused(f"connect to {path}", connect, socket.SOCK_STREAM, path)
for path in ("/nix", "/gnu"):
    try:
        beside = set(os.listdir(path)) - {"store"}
    except OSError:
        # This machine has none, or it cannot be listed.
        continue
    if beside:
        breach(path, "shows", sorted(beside))
done()
