#!/usr/bin/env bash
# Resolves requirements/*.txt anew from pyproject.toml, and requirements/peers/*.txt from what stands beside each:
# versions and hashes only, no index address, no host name.
# uv does the resolving from an environment thrown away at once; nothing else in the project needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv

pin() {
    echo "resolving $1"
    "$scratch/venv/bin/uv" pip compile "${@:2}" --upgrade --universal --python-version 3.11 \
        --generate-hashes --no-header --no-annotate --no-config --quiet -o "$1" >/dev/null
}
pin requirements/core.txt pyproject.toml
pin requirements/dev.txt pyproject.toml --extra http --extra postgresql --extra s3 --extra lab --group dev
# What the benchmark measures beside us; each has an environment of its own, made where it is asked for.
for peer in requirements/peers/*.in; do pin "${peer%.in}.txt" "$peer"; done
