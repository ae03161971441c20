#!/usr/bin/env bash
# Runs the tests as an ordinary user, one that owns nothing here: for root, who runs them otherwise.
# Further words: names of test programs; without any, all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
# One that has a name: Postgres asks for it.
user=$(id -u nobody) group=$(id -g nobody)
as_nobody=(setpriv "--reuid=$user" "--regid=$group" --clear-groups)
if [ "$(id -u)" -ne 0 ]; then
    echo "left out: only root can become another user; ./test runs as this one"
    exit 0
elif ! "${as_nobody[@]}" test -r "$PWD/worker/tests"; then
    echo "left out: this folder is not readable to others"
    exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chown "$user:$group" "$scratch"
# Each test program in the folder of its package, as cargo runs it.
cargo test --locked --workspace --no-run --message-format=json 2>/dev/null |
    python3 -c '
import json, os, sys
chosen = sys.argv[1:]
for line in sys.stdin:
    made = json.loads(line)
    if made.get("executable") and made.get("profile", {}).get("test"):
        if not chosen or made["target"]["name"] in chosen:
            print(made["executable"], os.path.dirname(made["manifest_path"]))
' "$@" | while read -r program folder; do
    echo "$program"
    (cd "$folder" && "${as_nobody[@]}" env HOME="$scratch" TMPDIR="$scratch" \
        PATH=/usr/local/bin:/usr/bin:/bin "$program" </dev/null)
done
