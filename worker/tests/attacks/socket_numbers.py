# ends: by itself
# Reads the numbers that the kernel gives to sockets and networks.
import errno, socket
from attack import breach, done, say
SO_COOKIE, SO_NETNS_COOKIE = 57, 71
one, other = socket.socketpair()
for what, option in (("a socket", SO_COOKIE), ("a network", SO_NETNS_COOKIE)):
    try:
        breach("the number of", what, one.getsockopt(socket.SOL_SOCKET, option, 8))
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            breach("the number of", what, "was let through:", error)
        else:
            say(what, "refused:", error)
if one.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) != socket.SOCK_STREAM:
    breach("a wrong answer")
done()
