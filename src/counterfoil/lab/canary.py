"""Looking for the provider's credential in everything that a run leaves: it reaches the provider and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from counterfoil.lab.provider import TOKEN

CHUNK_BYTES = 1 << 20


def spellings(secret: str) -> tuple[bytes, ...]:
    """Every way in which a secret may stand somewhere: as it is, in hexadecimal, URL-encoded, or in base64."""
    raw = secret.encode()
    encoded = (base64.b64encode(b"\0" * pad + raw)[4 if pad else 0 : -4] for pad in range(3))
    return tuple({raw, raw.hex().encode(), quote(secret, safe="").encode(), *encoded})


def leaks(top: Path, secret: str = TOKEN) -> list[str]:
    """Name every file below a folder in which a secret stands."""
    sought = spellings(secret)
    return [str(path.relative_to(top)) for path in sorted(top.rglob("*")) if path.is_file() and _holds(path, sought)]


def _holds(path: Path, sought: tuple[bytes, ...]) -> bool:
    return any(one in window for window in _windows(path, max(map(len, sought))) for one in sought)


def _windows(path: Path, overlap: int) -> Iterator[bytes]:
    """The file in pieces that overlap, so that nothing is cut in two."""
    kept = b""
    with path.open("rb") as file:
        while read := file.read(CHUNK_BYTES):
            yield kept + read
            kept = read[-overlap:]
