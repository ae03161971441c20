# ends: by itself
# Becomes another user, and creates set-user-ID programs.
import os, shutil, stat, subprocess
from attack import breach, call, done, refused, say
for user in (0, 1, 65534, 0x70000000):
    refused(f"setuid {user}", os.setuid, user)
    refused(f"setgid {user}", os.setgid, user)
refused("groups", os.setgroups, [0])
shutil.copy("/usr/bin/id", "id")
os.chmod("id", 0o6755)
out = subprocess.run(["./id", "-u"], capture_output=True, text=True).stdout.strip()
if out != str(os.getuid()):
    breach("set-uid program runs as", out)
for program in ("su", "sudo", "mount", "passwd", "newuidmap"):
    path = shutil.which(program)
    if path:
        result = subprocess.run([path, "-c", "id"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if "uid=0" in result.stdout:
            breach(program, result.stdout)
if os.path.exists("/proc/self/status"):
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(status[name], 16):
            breach(name, status[name])
    if status["NoNewPrivs"] != "1" or status["Seccomp"] != "2":
        breach("privileges to gain", status["NoNewPrivs"], status["Seccomp"])
done()
