#!/bin/sh
# Make .venv, if need be, and install what a goal asks for: sh scripts/setup.sh demo | test | cuda12 | cuda13
set -eu
cd "$(dirname "$0")/.."

fits() {  # it runs, is new enough, and can make environments
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {  # oldest first: PyTorch, which the tests compare with, comes late to a new Python
    for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
        if fits "$name"; then
            echo "$name"
            return
        fi
    done
    echo "No Python of version 3.11 or newer with the modules venv and ensurepip was found${PYTHON:+ as $PYTHON}." >&2
    echo "Install one (on Debian and Ubuntu: python3 and python3-venv) or name it: PYTHON=/path/to/python3 make …" >&2
    exit 1
}

install() {
    .venv/bin/python -m pip install -qq --disable-pip-version-check "$@"
}

install_oracle() {  # the CPU build; on Linux the ordinary one would bring gigabytes of CUDA libraries along
    oracle=$(sed -n 's/^oracle = \["\(.*\)"\].*/\1/p' pyproject.toml)
    if install "$oracle+cpu" 2>/dev/null; then return; fi
    if [ "$(uname)" = Darwin ] && install "$oracle" 2>/dev/null; then return; fi
    .venv/bin/python -c 'import torch' 2>/dev/null && return
    echo "PyTorch's CPU build ($oracle) is not to be had for this Python here: tests that compare with it are skipped."
    echo "To run them too: .venv/bin/python -m pip install '$oracle'"
}

install_beside() {  # without their dependencies, of which PyTorch is one
    .venv/bin/python -c 'import torch' 2>/dev/null || return 0
    packages=$(.venv/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["beside"])')
    # shellcheck disable=SC2086
    install --no-deps $packages || echo "Not all of these could be installed; tests that need them are skipped: $packages"
}

install_mpi() {
    install -e '.[mpich]' 2>/dev/null || echo "mpi4py and MPICH cannot be installed here: tests that start ranks of MPI are skipped unless there are others."
}

if ! fits .venv/bin/python; then
    python=$(find_python)
    echo "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
echo "Installing what 'make $1' needs"
case $1 in
    demo) install -e '.[plot]' || { install -e . && echo "matplotlib could not be installed: no picture at the end"; } ;;
    test) install -e '.[test]' && install_oracle && install_beside && install_mpi ;;
    *) install -e ".[$1]" ;;
esac
