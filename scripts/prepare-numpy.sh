# Sourced by ./test after prepare.sh: installs numpy, which recomputes statistics in a test, and
# pandas, which runs the example of docs/api.md.
# shellcheck shell=bash

numpy=${CARGO_TARGET_DIR:-target}/numpy
if ! PYTHONPATH=$numpy python3 -c "import numpy, pandas" 2>/dev/null; then
    python3 -m pip install --quiet --target "$numpy" --upgrade numpy pandas 2>/dev/null || {
        missing+=(python3-numpy python3-pandas)
        install_missing
        missing=()
    }
fi
