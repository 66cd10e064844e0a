#!/usr/bin/env bash
# Debian's packages that the tests talk to and no requirement file can bring: installed where they are missing.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

packages=(exim4-daemon-light pgbouncer)

root() { [ "$(id -u)" = 0 ]; }

for package in "${packages[@]}"; do
    if [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]; then continue; fi
    if ! { root && apt-get update -qq && apt-get install -qq --no-install-recommends "$package"; }; then
        echo "$package is not installed, and could not be: that takes root, apt-get and an archive it can reach" >&2
        exit 1
    fi
done
