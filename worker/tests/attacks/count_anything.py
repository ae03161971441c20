# ends: by itself
# Causes every kind of load, and looks for a number in /proc that shows it.
import fcntl, mmap, os, socket, tempfile
from attack import breach, done, say
def look():
    found = {}
    for folder, folders, files in os.walk("/proc"):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit()
                          and name not in ("self", "thread-self", "sysvipc")]
        for name in files:
            path = os.path.join(folder, name)
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                found[path] = os.read(descriptor, 1 << 20)
            except OSError:
                pass
            os.close(descriptor)
    return found
def be_busy():
    memory = mmap.mmap(-1, 64 << 20)
    for at in range(0, len(memory), 4096):
        memory[at] = 1
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    opened = [os.open("/usr/bin/env", os.O_RDONLY) for _ in range(50)]
    pairs = [socket.socketpair() for _ in range(20)]
    fcntl.flock(opened[0], fcntl.LOCK_SH)
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * (1 << 20))
        file.flush()
    return memory, opened, pairs
before = look()
held = be_busy()
after = look()
say(len(before), "files")
for path in sorted(before.keys() | after.keys()):
    if before.get(path) != after.get(path):
        breach("a number moves in", path)
done()
