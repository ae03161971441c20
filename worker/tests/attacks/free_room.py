# ends: by itself
# Fills its disk, and checks whether shared places have less free space.
import os
from attack import breach, done
places = [place for place in ("/", "/usr", "/etc", "/dev", "/dev/null", "/proc")
          if os.path.exists(place)]
inside = os.getcwd() == "/work"
def look():
    return {place: tuple(os.statvfs(place))[2:8] for place in places}
before = look()
with open("full", "wb", 0) as file:
    try:
        for _ in range(40):
            file.write(b"x" * (1 << 20))
    except OSError:
        pass
after = look()
for place in places if inside else ():
    # Other programs write to the disk of the system.
    if place not in ("/usr", "/etc") and before[place] != after[place]:
        breach(place, before[place], after[place])
done()
