#!/usr/bin/env bash
# Resolves requirements/*.txt anew from pyproject.toml: versions and hashes only, no index address, no host name.
# uv does the resolving from an environment thrown away at once; nothing else in the project needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv

pin() {
    echo "resolving $1"
    "$scratch/venv/bin/uv" pip compile pyproject.toml "${@:2}" --upgrade --universal --python-version 3.11 \
        --generate-hashes --no-header --no-annotate --no-config --quiet -o "$1" >/dev/null
}
pin requirements/core.txt
pin requirements/dev.txt --extra http --extra postgresql --extra s3 --extra lab --group dev
