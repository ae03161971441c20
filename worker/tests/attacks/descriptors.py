# ends: by itself
# Lists its inherited descriptors, which must be three pipes. Opens as many files as allowed.
import fcntl, os
from attack import breach, done, say
inherited = []
for descriptor in range(3, 4096):
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFD)
        inherited.append(descriptor)
    except OSError:
        pass
if inherited:
    breach("inherited", inherited)
opened = 0
try:
    while opened < 5000:
        os.open("/dev/null", os.O_RDONLY)
        opened += 1
except OSError as error:
    say("stopped at", opened, error)
if opened > 256:
    breach(opened, "descriptors")
done()
