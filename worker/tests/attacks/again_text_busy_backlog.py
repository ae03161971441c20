# ends: again
# Leaves its program open for writing with a connection that is never accepted.
import os, socket
from attack import send_descriptors, replace_program
server = socket.socket(socket.AF_UNIX)
server.bind("backlog")
server.listen(4)
client = socket.socket(socket.AF_UNIX)
client.connect("backlog")
send_descriptors(client, [server.fileno(), client.fileno(), replace_program()])
os.unlink("backlog")
print("left", flush=True)
os._exit(0)
