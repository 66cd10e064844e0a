"""Environments of peers: each has one of its own, made the first time it is asked for, from pins with hashes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from counterfoil.lab.failure import RunFailed

PROJECT = Path(__file__).resolve().parents[4]
"""The project's own folder, where this is not installed from a wheel."""
INSTALL_SECONDS = 900
_STAMP = "content"


class Missing(Exception):
    """A peer that cannot be measured here, and why."""


def require(project: Path) -> None:
    """Refuse to go on without what the peers are made of.

    Raises:
        RunFailed: the pins and programs are not there, as in an installed package.
    """
    for folder in ("requirements/peers", "bench/peers"):
        if not (project / folder).is_dir():
            raise RunFailed(f"--peers needs the project's own folder: there is no {folder} in {project}")


def python_of(name: str, project: Path = PROJECT) -> Path:
    """The interpreter of a peer's environment, which is made where it is missing or its pins have changed.

    Args:
        name: of its requirement file.
        project: where that file stands, and `.cache/peers`.

    Raises:
        Missing: it cannot be installed here.
    """
    pins, home = project / "requirements" / "peers" / f"{name}.txt", project / ".cache" / "peers" / name
    python, stamp = home / "bin" / "python", home / _STAMP
    wanted = hashlib.sha256(f"{home}\0{sys.version}\0".encode() + pins.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    _run(
        [*_pip(), "--python", str(python), "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
         "-r", str(pins)]
    )  # fmt: skip
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _pip() -> list[str]:
    """A pip that is there already serves the other environment: some systems ship Python without ensurepip."""
    has_pip = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode
    machine = str(getattr(sys, "_base_executable", sys.executable))
    return [machine if has_pip else sys.executable, "-m", "pip"]


def _run(arguments: list[str]) -> None:
    try:
        subprocess.run(arguments, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=True)
    except subprocess.CalledProcessError as failed:
        said = [line for line in f"{failed.stderr}\n{failed.stdout}".splitlines() if line.strip()]
        raise Missing(f"it cannot be installed: {said[-1].strip() if said else failed}") from failed
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise Missing(f"it cannot be installed: {failed}") from failed
