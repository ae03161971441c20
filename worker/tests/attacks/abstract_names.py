# ends: by itself
# Tests which abstract names are in use, by binding one end of a socket pair to them.
import errno, socket
from attack import breach, done, say
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in ("\0arbiter-test-rival", "\0arbiter-test-worker"):
        one, _other = socket.socketpair(socket.AF_UNIX, kind)
        try:
            one.bind(name)
            # If the name is free, no other bot is in this network.
            say(repr(name), "was free")
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                breach(repr(name), "is taken")
            else:
                say(repr(name), "refused:", error)
done()
