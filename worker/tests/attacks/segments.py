# ends: by itself
# Uses shared memory, semaphores and queues of the machine by their numbers.
import ctypes
from attack import breach, done, libc, say
libc.shmat.restype = ctypes.c_void_p
room = ctypes.create_string_buffer(4096)
IPC_STAT, FAILED = 2, ctypes.c_void_p(-1).value
for number in list(range(256)) + [index + 32768 * turn for index in range(8) for turn in range(8)]:
    if libc.shmctl(number, IPC_STAT, room) == 0:
        breach("shared memory", number)
    if libc.shmat(number, None, 0) not in (FAILED, None):
        breach("mapped shared memory", number)
    if libc.semctl(number, 0, IPC_STAT, room) == 0:
        breach("semaphores", number)
    if libc.msgctl(number, IPC_STAT, room) == 0:
        breach("messages", number)
say("looked")
done()
