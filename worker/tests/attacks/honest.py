# An honest bot: adds.
import os, sys
# Nothing of an earlier match is here.
assert os.path.abspath(".") == os.getcwd()
found = sorted(name for name in os.listdir(".") if name != "__pycache__")
assert found == ["attack.py", "honest.py"], found
for place in ("/tmp", "/dev/shm"):
    try:
        assert os.listdir(place) == [], os.listdir(place)
    except PermissionError:
        # Without namespaces these are the machine's.
        pass
for line in sys.stdin:
    print(sum(map(int, line.split())), flush=True)
