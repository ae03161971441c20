# Sourced by ./test behind prepare.sh: fetches what the tests in a browser need, as far as it is to
# be had here. Where it is not, those tests say that they are left out; with ARBITER_BROWSER set
# they fail instead.
# shellcheck shell=bash

missing=()
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    missing+=(chromium)
need chromedriver chromium-driver
if [ ${#missing[@]} -gt 0 ]; then
    missing+=(fonts-dejavu-core)
    (install_missing) || echo "left out: tests in a browser, for want of ${missing[*]}" >&2
fi

# An accessibility linter, in the version that the pages pass. It is run within pages, and no part
# of what is built.
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
        echo "left out: the accessibility linter, which npm did not fetch" >&2
    fi
fi
missing=()
