# ends: by itself
# Creates as many kernel objects of each kind as possible: timers, events, polls and others.
import ctypes, os
from attack import breach, call, done, say
def make(name, number, *arguments):
    made = []
    try:
        while len(made) < 1000:
            made.append(call(number, *arguments))
    except OSError as error:
        say(len(made), name, error)
    for descriptor in made:
        os.close(descriptor)
    if len(made) > 256:
        breach(len(made), name)
mask = ctypes.create_string_buffer(8)
for name, number, arguments in (("eventfd", 290, (0, 0)), ("epoll", 291, (0,)),
                                ("timerfd", 283, (1, 0)), ("pidfd", 434, (os.getpid(), 0)),
                                ("signalfd", 289, (-1, ctypes.addressof(mask), 8, 0))):
    make(name, number, *arguments)
done()
