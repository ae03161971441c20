# Sourced by ./test after prepare.sh: installs numpy, which recomputes statistics in a test.
# shellcheck shell=bash

numpy=${CARGO_TARGET_DIR:-target}/numpy
if ! PYTHONPATH=$numpy python3 -c "import numpy" 2>/dev/null; then
    python3 -m pip install --quiet --target "$numpy" numpy 2>/dev/null || {
        missing+=(python3-numpy)
        install_missing
        missing=()
    }
fi
