"""Functions that the hostile programs of this directory share.

A program prints a line that starts with `breach` for each success that it should not have, and
`done` at its end. Its first line states how it must end.
"""

import array
import ctypes
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)

# A program that is executed for each decision gets no targets as arguments.
SECRET, WORKER, PORT = sys.argv[1:4] if len(sys.argv) > 3 else ("", 0, 0)
WORKER, PORT = int(WORKER), int(PORT)

# The exit code of a program whose allocation failed.
REFUSED = 9


def say(*words):
    print(*words, flush=True)


def breach(*words):
    say("breach:", *words)


def refused(what, act, *arguments):
    """Does something that must fail."""
    try:
        got = act(*arguments)
    except (OSError, ValueError, OverflowError) as error:
        say(what, "refused:", error)
        return
    breach(what, "gave", repr(got)[:200])


def call(number, *arguments):
    """A bare system call; its failure is an OSError."""
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def must_fail(what, number, *arguments):
    """A bare system call that must be refused before the kernel looks at its arguments."""
    try:
        got = call(number, *arguments)
    except OSError as error:
        if error.errno in (14, 9):
            breach(what, "was let through:", error)
        else:
            say(what, "refused:", error)
        return
    breach(what, "gave", got)


def replace_program(contents=None):
    """Puts a copy, or other contents, in the place of its program, and keeps it open for writing."""
    if contents is None:
        with open("program", "rb") as file:
            contents = file.read()
    new = os.open("new", os.O_WRONLY | os.O_CREAT, 0o755)
    os.write(new, contents)
    os.rename("new", "program")
    return new


def send_descriptors(sender, descriptors, address=None):
    """Sends descriptors to the reader of `sender`, who need not read them."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    sender.sendmsg([b"x"], [rights], 0, *([address] if address else []))


def done():
    say("done")
    sys.stdout.flush()
    os._exit(0)
