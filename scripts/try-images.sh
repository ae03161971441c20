#!/usr/bin/env bash
# Tests deploy/Dockerfile and deploy/compose.yaml without a container engine: builds the contents of
# the images (Debian with the packages of the Dockerfile), and starts the worker in a container with
# the capabilities of compose.yaml. Takes three minutes and 1.5 GB; for root, on Debian.
# Argument: the program to install (default: target/debug/arbiter).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
need debootstrap debootstrap
need runc runc
install_missing

arbiter=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/debug/arbiter}")
scratch=$(mktemp -d)
root=$scratch/bundle/root
leave() {
    mountpoint -q "$root/proc" && umount "$root/proc"
    rm -rf --one-file-system "$scratch"
}
trap leave EXIT

# packages STAGE: the packages that the stage of the Dockerfile installs.
packages() {
    sed -n "/^FROM .* AS $1\$/,/^FROM /p" deploy/Dockerfile |
        sed -n '/apt-get install/,/&& rm/p' |
        sed 's/.*--no-install-recommends//; s/&& rm.*//; s/\\$//; s/[$]{MORE}//' |
        xargs
}

add() {
    # shellcheck disable=SC2086 # One word each.
    chroot "$root" env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive LC_ALL=C \
        apt-get install -y -qq --no-install-recommends $1 >"$scratch/log" 2>&1 || {
        tail -n 20 "$scratch/log" >&2
        return 1
    }
}

release=$(sed -n 's/^ARG DEBIAN=//p' deploy/Dockerfile)
mkdir -p "$root"
debootstrap --variant=minbase "$release" "$root" >"$scratch/log" || {
    tail -n 20 "$scratch/log" >&2
    exit 1
}
mount -t proc proc "$root/proc"
install -m 755 "$arbiter" "$root/usr/local/bin/arbiter"
install -m 755 deploy/container/start "$root/usr/local/bin/arbiter-start"

echo "base: $(packages base)"
add "$(packages base)"
# The secret was read if the error is about its contents.
echo 'mysql://secret' >"$root/tmp/url"
said=$(chroot "$root" env -i PATH="$PATH" ARBITER_DATABASE_URL_FILE=/tmp/url \
    arbiter-start coordinator 2>&1) && exit 1
grep -q 'none of PostgreSQL' <<<"$said"

echo "worker: $(packages worker)"
add "$(packages worker)"
umount "$root/proc"
cp -r bots "$root/opt/bots"
rm -f "$root"/opt/bots/*/*/bot

# contain WORD…: runs a command like compose.yaml runs a worker.
contain() {
    python3 - "$scratch/bundle" "$@" <<'END'
import json, pathlib, re, subprocess, sys

bundle, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
(bundle / "config.json").unlink(missing_ok=True)
subprocess.run(["runc", "spec", "--bundle", bundle], check=True)
config = json.loads((bundle / "config.json").read_text())
worker = pathlib.Path("deploy/compose.yaml").read_text().split("worker: &worker")[1]
rights = re.search(r"cap_add: \[(.*?)\]", worker)[1].split(", ")
rights = [f"CAP_{right}" for right in rights]
config["root"] = {"path": "root", "readonly": False}
config["process"].update(
    args=command, terminal=False, cwd="/opt", rlimits=[],
    noNewPrivileges="no-new-privileges:true" in worker,
    capabilities={kind: rights for kind in ("bounding", "effective", "permitted")},
)
linux = config["linux"]
if "seccomp:unconfined" in worker:
    linux.pop("seccomp", None)
if "systempaths=unconfined" in worker:
    linux["maskedPaths"] = linux["readonlyPaths"] = []
for mount in config["mounts"]:
    if mount["type"] == "cgroup" and "writable-cgroups=true" in worker:
        mount["options"] = [option for option in mount["options"] if option != "ro"]
(bundle / "config.json").write_text(json.dumps(config))
END
    runc --root "$scratch/state" run --bundle "$scratch/bundle" "arbiter-$$"
}

for language in "python3 --version" "perl -e 1" "node --version" "sbcl --version" \
    "javac -version" "java -version" "gcc --version" "g++ --version" "make --version"; do
    # shellcheck disable=SC2086 # One word each.
    contain $language >"$scratch/log" 2>&1 || {
        cat "$scratch/log" >&2
        exit 1
    }
done
contain arbiter-start doctor | head -n 1
contain arbiter-start play gomoku bots/gomoku/shapes bots/gomoku/center --sandbox strict
contain arbiter-start play wojna bots/wojna/miser bots/wojna/caller bots/wojna/threshold \
    bots/wojna/miser --set deals=2 --sandbox strict
