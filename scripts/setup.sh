#!/usr/bin/env bash
# Brings .venv to what requirements/dev.txt and pyproject.toml say; does nothing when it is there already.
# Needs Python >= 3.11 and pip, nothing else. Every target of the Makefile calls it first.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=.venv
log=.cache/setup.log

if ! command -v "$python" >/dev/null; then
    echo "$python: not found; Python 3.11 or newer is needed (make PYTHON=...)" >&2
    exit 1
fi

# Digests and not file times: a fresh checkout or a touched file must not decide this. The folder belongs to the place because
# a venv that was moved or copied has dead paths in its scripts.
digests() {
    "$python" - "$PWD" requirements/dev.txt pyproject.toml <<'PY'
import hashlib, sys
if sys.version_info < (3, 11):
    sys.exit("counterfoil needs Python 3.11 or newer; this is %d.%d (make PYTHON=...)" % sys.version_info[:2])
place, content = hashlib.sha256(), hashlib.sha256()
place.update("\0".join([sys.version, sys.base_prefix, sys.argv[1]]).encode())
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        content.update(file.read() + b"\0")
print(place.hexdigest(), content.hexdigest())
PY
}

wanted=$(digests)
read -r place content <<<"$wanted"

ready() { [ "$(cat "$venv/place" "$venv/content" 2>/dev/null)" = "$place"$'\n'"$content" ] && "$venv/bin/python" -c '' 2>/dev/null; }

if ready; then exit 0; fi

mkdir -p .cache
# Two makes at once would install into each other's half. Where flock is missing they are on their own.
exec 9>.cache/setup.lock
if command -v flock >/dev/null; then
    flock 9
    if ready; then exit 0; fi
fi

fail() {
    echo "  this did not work; the last lines of $log:" >&2
    tail -n 15 "$log" >&2
    exit 1
}

echo "setting up .venv (once; about a minute)"
: >"$log"
rm -f "$venv/content"
if [ "$(cat "$venv/place" 2>/dev/null)" != "$place" ] || ! "$venv/bin/python" -c '' 2>>"$log"; then
    echo "  1/3 creating it with $("$python" --version 2>&1)"
    # Some systems ship Python without ensurepip; the machine's own pip can serve the new environment.
    "$python" -m venv --clear "$venv" >>"$log" 2>&1 || "$python" -m venv --clear --without-pip "$venv" >>"$log" 2>&1 || fail
    echo "$place" >"$venv/place"
else
    echo "  1/3 keeping the one that is there"
fi
pip=("$venv/bin/python" -m pip)
"${pip[@]}" --version >>"$log" 2>&1 || pip=("$python" -m pip --python "$venv/bin/python")

echo "  2/3 installing $(grep -c == requirements/dev.txt) pinned packages, each checked against its hash"
"${pip[@]}" install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt >>"$log" 2>&1 || fail
echo "  3/3 installing counterfoil itself, editable"
"${pip[@]}" install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . >>"$log" 2>&1 || fail
# As pip does with what it copies: where PYTHONDONTWRITEBYTECODE is set, each command would compile every module anew.
"$venv/bin/python" -m compileall -q src >>"$log" 2>&1 || fail
echo "$content" >"$venv/content"
echo "  ready"
