# ends: by itself
# Connects and sends over the network, and resolves names.
import socket
from attack import PORT, done, refused
def tcp(host, port):
    with socket.socket() as made:
        made.settimeout(2)
        made.connect((host, port))
def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        return made.sendto(b"?", (host, port))
refused("the worker's port", tcp, "127.0.0.1", PORT)
refused("metadata", tcp, "169.254.169.254", 80)
refused("the world", tcp, "192.0.2.1", 80)
refused("name service", udp, "192.0.2.53", 53)
refused("broadcast", udp, "255.255.255.255", 9)
refused("names", socket.getaddrinfo, "example.org", 80)
refused("version 6", lambda: socket.create_connection(("::1", PORT), 2))
done()
