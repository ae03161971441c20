#!/usr/bin/env bash
# Tests the sandbox in a virtual machine: boots Debian's kernel with control groups v2, which many
# containers and rented machines do not have, and runs `arbiter doctor`, the sandbox tests and two
# tournaments with --sandbox strict. The log ends with the level of the sandbox.
# Run it by hand or by scripts/nightly; for root, on Debian. Takes 5 GB. Without a working KVM the
# processor is emulated, which takes half an hour.
# Arguments: the program (default: built by cargo build --release), and the program of the sandbox
# tests (cargo test -p arbiter-worker --test sandbox --no-run prints its path).
# Variables: KERNEL, a Debian package (default: linux-image-cloud-amd64); ACCEL, kvm or tcg (default:
# detected); PATIENCE, the time limit in seconds (default: 5400); TESTS, parts of the names of the
# sandbox tests to run (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
need qemu-system-x86_64 qemu-system-x86
need debootstrap debootstrap
need mkfs.ext4 e2fsprogs
need modprobe kmod
need cpio cpio
install_missing
kernel=${KERNEL:-linux-image-cloud-amd64}
release=$(sed -n 's/^ARG DEBIAN=//p' deploy/Dockerfile)

if [ $# -lt 1 ]; then
    cargo build --locked --release
fi
arbiter=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release/arbiter}")
tests=$(realpath "${2:-$(
    cargo test --locked --release -p arbiter-worker --test sandbox --no-run \
        --message-format=json | python3 -c '
import json, sys
made = [json.loads(line) for line in sys.stdin]
print(*(line["executable"] for line in made if line.get("executable")))'
)}")

scratch=$(mktemp -d)
root=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT

echo "packages: $kernel"
mkdir "$scratch/packages"
# The user of apt's downloads must have access.
chmod 755 "$scratch"
chmod 777 "$scratch/packages"
# The name without a version is the newest one.
newest=$(apt-cache depends "$kernel" | sed -n '/linux-image-[0-9]/s/.*Depends: //p' | head -n 1)
(cd "$scratch/packages" && apt-get download -qq "${newest:-$kernel}" busybox-static)
for package in "$scratch"/packages/*.deb; do
    dpkg -x "$package" "$scratch/kernel"
done
image=$(echo "$scratch"/kernel/boot/vmlinuz-*)
version=${image##*/vmlinuz-}

echo "root: Debian $release"
# The packages for bots, Postgres and tests; compilers, because some attacks are written in C.
debootstrap --variant=minbase \
    --include=gcc,iproute2,kmod,libc6-dev,perl,postgresql,procps,python3 \
    "$release" "$root" >"$scratch/log" || {
    tail -n 20 "$scratch/log" >&2
    exit 1
}
install -m 755 "$arbiter" "$root/usr/local/bin/arbiter"
install -m 755 "$tests" "$root/usr/local/bin/sandbox-tests"
# The tests expect their programs where they were built.
mkdir -p "$root$PWD/worker/tests" "$root/opt"
cp -r worker/tests/attacks worker/tests/programs "$root$PWD/worker/tests"
cp -r bots deploy/tournaments "$root/opt"
mkdir "$root/opt/deploy"
mv "$root/opt/tournaments" "$root/opt/deploy"
find "$root/opt/bots" -type f -name bot -delete
# Without the house bots, whose build needs Rust.
sed -i '/house",$/d' "$root"/opt/deploy/tournaments/quick/*.toml
# Replies take longer with an emulated processor.
sed -i '/^\[schedule\]/i [params]\nmove_limit = "20s"\n' \
    "$root"/opt/deploy/tournaments/quick/{gomoku,tricks}.toml
cp -r "$scratch/kernel/lib/modules" "$root/usr/lib"
depmod -b "$root" "$version"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
echo "${TESTS:-}" >"$root/etc/tests"

cat >"$root/run-everything" <<'END'
#!/bin/bash
# Init of the virtual machine: does what systemd would, and then runs all tests.
set -o pipefail
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for folder in /dev/shm /run /tmp; do mount -t tmpfs tmpfs "$folder"; done
chmod 1777 /dev/shm /tmp
modprobe overlay
ip link set lo up
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
ulimit -n 65536
cd /opt || exit 1

step() { printf '\n== %s\n' "$*"; }
try() {
    step "$*"
    "$@" || { echo "FAILED: $*"; failed=1; }
}
failed=0

tournament() {
    local name=$1
    # No terminal, no progress bars.
    arbiter tournament create "deploy/tournaments/quick/$name.toml" 2>&1 | cat &&
        arbiter tournament start "$name-quick" || return
    arbiter tournament watch "$name-quick" >/tmp/watched 2>&1 || {
        tail /tmp/watched
        return 1
    }
    arbiter ranking "$name-quick" && arbiter tournament check "$name-quick" &&
        arbiter tournament export "$name-quick" --out "/tmp/$name" --records 2>&1 | cat &&
        arbiter verify "/tmp/$name/records" &&
        arbiter match "$name-quick/0" --json >>/tmp/matches
}

tournaments() {
    arbiter up --data /var/lib/try --sandbox strict >/tmp/up 2>&1 &
    local up=$!
    until [ -s /var/lib/try/admin.token ] && arbiter tournament list >/dev/null 2>&1; do
        kill -0 "$up" || { cat /tmp/up; return 1; }
        sleep 1
    done
    ARBITER_TOKEN=$(cat /var/lib/try/admin.token)
    export ARBITER_TOKEN
    tournament gomoku && tournament tricks
    local came=$?
    kill -TERM "$up"
    wait "$up" || came=1
    [ "$came" -eq 0 ] || tail -n 20 /tmp/up
    return "$came"
}

ARBITER_TEST_SLOWER=$(sed 's/.*slower=\([0-9]*\).*/\1/' /proc/cmdline)
export ARBITER_TEST_SLOWER
step "machine"
uname -rvm
cat /sys/fs/cgroup/cgroup.controllers
try arbiter doctor
# shellcheck disable=SC2046 # One word each.
try sandbox-tests $(cat /etc/tests)
try tournaments
step "level"
[ "$failed" -eq 0 ] || echo "a test failed: see above"
# The sandbox level that a match recorded.
level=$(sed -n 's/.*"level":"\([^"]*\)".*/\1/p' /tmp/matches | sort -u)
echo "level: ${level:-none}"
sync
echo o >/proc/sysrq-trigger
sleep 60
END
chmod 755 "$root/run-everything"

echo "disk"
truncate -s 3G "$scratch/disk"
mkfs.ext4 -q -d "$root" -E root_owner=0:0 "$scratch/disk"
# The modules that the kernel needs to find the disk, and a program to load them.
first=$scratch/first
mkdir -p "$first/bin" "$first/new"
cp "$scratch/kernel/bin/busybox" "$first/bin"
modprobe -d "$root" -S "$version" --show-depends -a virtio_pci virtio_blk ext4 |
    sed -n 's/^insmod //p' | while read -r module; do
    [ -e "$first/${module##*/}" ] || { cp "$module" "$first" && echo "${module##*/}"; }
done >"$first/modules"
cat >"$first/init" <<'END'
#!/bin/busybox sh
while read -r module; do /bin/busybox insmod "/$module"; done </modules
/bin/busybox mkdir -p /dev
/bin/busybox mount -t devtmpfs dev /dev
until [ -b /dev/vda ]; do /bin/busybox sleep 1; done
/bin/busybox mount -t ext4 /dev/vda /new
/bin/busybox umount /dev
exec /bin/busybox switch_root /new /run-everything
END
chmod 755 "$first/init"
(cd "$first" && find . | cpio -o -H newc --quiet | gzip >"$scratch/initrd")

# machine ACCEL WORD…: runs a virtual machine with this accelerator and further options.
machine() {
    qemu-system-x86_64 -machine "q35,accel=$1" -cpu max -nodefaults -no-user-config \
        -display none -serial stdio -nic none -no-reboot -kernel "$image" "${@:2}" </dev/null
}
export -f machine
export image

# Nested KVM may exist but not work.
accel=${ACCEL:-}
if [ -z "$accel" ]; then
    accel=tcg
    [ ! -w /dev/kvm ] || ! timeout 60 bash -c 'machine kvm -m 512M \
        -append "console=ttyS0 panic=-1" 2>/dev/null | grep -qm 1 "Linux version"' || accel=kvm
fi
# The deadlines of the tests are for real processors.
slower=1
[ "$accel" = kvm ] || slower=8

echo "machine: $version, $accel"
timeout "${PATIENCE:-5400}" bash -c 'machine "$@"' bash "$accel" -smp 2 -m 4G \
    -initrd "$scratch/initrd" \
    -append "console=ttyS0 quiet panic=-1 cgroup_no_v1=all slower=$slower" \
    -drive "file=$scratch/disk,format=raw,if=virtio,cache=unsafe" |
    sed -u 's/\r//g; /^\[ *[0-9.]*\] \(sysrq\|reboot\): /d' | tee "$scratch/said"
grep -q '^FAILED' "$scratch/said" && exit 1
[ "$(tail -n 1 "$scratch/said")" = "level: A" ]
