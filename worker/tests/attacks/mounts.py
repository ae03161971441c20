# ends: by itself
# Mounts, unmounts, and changes the root.
import os
from attack import done, must_fail, refused
must_fail("mount", 165, 0, 0, 0, 0, 0)
must_fail("umount2", 166, 0, 2)
must_fail("pivot_root", 155, 0, 0)
must_fail("chroot", 161, 0)
for name, number in (("open_tree", 428), ("move_mount", 429), ("fsopen", 430), ("fsconfig", 431),
                     ("fsmount", 432), ("fspick", 433), ("mount_setattr", 442)):
    must_fail(name, number, 0, 0, 0, 0, 0)
refused("chroot", os.chroot, ".")
must_fail("name_to_handle_at", 303, 0, 0, 0, 0, 0)
must_fail("open_by_handle_at", 304, 0, 0, 0)
done()
