# Sourced by ./test after prepare.sh: installs what the browser tests need, if possible. Otherwise
# those tests are skipped with a message; with ARBITER_BROWSER set they fail.
# shellcheck shell=bash

missing=()
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    missing+=(chromium)
need chromedriver chromium-driver
if [ ${#missing[@]} -gt 0 ]; then
    missing+=(fonts-dejavu-core)
    (install_missing) || echo "skipped: browser tests (missing: ${missing[*]})" >&2
fi

# An accessibility linter, in the version that the pages pass. It runs in pages and is not part of
# the build.
axe=${CARGO_TARGET_DIR:-target}/axe
axe_version=4.14.1
if [ "$(cat "$axe/version" 2>/dev/null)" != "$axe_version" ]; then
    mkdir -p "$axe"
    if ! command -v npm >/dev/null 2>&1; then
        missing=(npm)
        (install_missing) || true
    fi
    if npm install --prefix "$axe" --no-save --no-audit --no-fund --ignore-scripts --silent \
        "axe-core@$axe_version"; then
        echo "$axe_version" >"$axe/version"
    else
        echo "skipped: the accessibility linter (npm could not fetch it)" >&2
    fi
fi
missing=()
