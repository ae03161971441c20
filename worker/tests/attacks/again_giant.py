# ends: as a forfeit
# Makes its program need more memory at its start than any machine has.
import os, struct
from attack import replace_program
machine = 62 if os.uname().machine == "x86_64" else 183
header = struct.pack("<4sBBBBQHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 2, machine, 1, 0x400078,
                     64, 0, 0, 64, 56, 1, 0, 0, 0)
segment = struct.pack("<IIQQQQQQ", 1, 7, 0, 0x400000, 0x400000, 4096, 1 << 46, 4096)
os.close(replace_program((header + segment).ljust(4096, b"\0")))
print("left")
