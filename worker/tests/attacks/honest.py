# An honest bot that adds numbers.
import os, sys
# There are no files of an earlier match.
assert os.path.abspath(".") == os.getcwd()
found = sorted(name for name in os.listdir(".") if name != "__pycache__")
assert found == ["attack.py", "honest.py"], found
for place in ("/tmp", "/dev/shm"):
    try:
        assert os.listdir(place) == [], os.listdir(place)
    except PermissionError:
        # Without namespaces these directories belong to the machine.
        pass
for line in sys.stdin:
    print(sum(map(int, line.split())), flush=True)
