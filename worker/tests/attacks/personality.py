# ends: by itself
# Switches off the protections of its address space, and asks for another machine's calls.
from attack import done, must_fail
must_fail("no randomisation", 135, 0x0040000)
must_fail("32 bit", 135, 8)
must_fail("readable is executable", 135, 0x0400000)
done()
