# ends: by itself
# Installs more filters, which allow everything.
import ctypes, struct
from attack import call, done, libc, refused, say
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(
    struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code)))
for _ in range(3):
    libc.prctl(38, 1, 0, 0, 0)
    say(libc.prctl(22, 2, ctypes.addressof(program), 0, 0))
refused("no new privileges", call, 157, 38, 0, 0, 0, 0)
refused("user namespace", call, 272, 0x10000000)
refused("mount namespace", call, 272, 0x20000)
refused("bpf", call, 321, 0, 0, 0)
refused("trace", call, 101, 16, 1, 0, 0)
done()
