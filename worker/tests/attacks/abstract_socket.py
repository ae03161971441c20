# ends: by itself
# Looks for the worker and its rival among sockets without a file, and through message queues.
import socket
from attack import done, refused
def join(name):
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(name)
refused("the worker", join, "\0arbiter-test-worker")
refused("the rival", join, "\0arbiter-test-rival")
for path in ("/run/dbus/system_bus_socket", "/var/run/docker.sock", "/tmp/arbiter-test-rival"):
    refused(path, join, path)
done()
