# ends: by itself
# Raises every limit above its initial value.
import resource
from attack import breach, done, say
for kind in range(16):
    soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        for wanted in (hard + 1, resource.RLIM_INFINITY):
            try:
                resource.setrlimit(kind, (hard, wanted))
                breach("limit", kind, "from", hard, "to", wanted)
            except (OSError, ValueError) as error:
                say(kind, error)
done()
