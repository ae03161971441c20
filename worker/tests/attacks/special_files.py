# ends: by itself
# Leaves FIFOs, sockets and devices in its directory.
import os, socket, stat
from attack import done, refused
refused("fifo", os.mkfifo, "fifo")
refused("null device", os.mknod, "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
refused("disk", os.mknod, "disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
bound = socket.socket(socket.AF_UNIX)
bound.bind("socket")
done()
