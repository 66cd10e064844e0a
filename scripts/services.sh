#!/usr/bin/env bash
# Debian's packages that the tests talk to and no requirement file can bring: installed where they are missing.
set -euo pipefail

packages=(exim4-daemon-light)

for package in "${packages[@]}"; do
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]; then continue; fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "$package: not installed, and installing it takes root and apt-get" >&2
        exit 1
    fi
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "$package"
done
