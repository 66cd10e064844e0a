"""What a survey leaves for whoever counts it again: a line per boundary, and some images as they were.

``boundaries/MODE/SCRIPT.jsonl`` says of each boundary how many images were examined and how many violated, and what the
store had acknowledged by then: of each operation its last event, whose hash covers all before it. Beside it stands the
image of some boundaries in which only what was synced is left, in ``SCRIPT/BOUNDARY``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from counterfoil.lab.images.check import Found
from counterfoil.lab.images.disk import Image
from counterfoil.lab.images.recording import lay
from counterfoil.lab.images.tape import Acked

BOUNDARIES = "boundaries"
SAMPLES = 5
"""Images that are kept of one script in one mode: about 100 in all, of a tenth of a megabyte each."""


class Evidence:
    """Collects what one script's images came to, boundary by boundary.

    Args:
        folder: of this mode.
        script: which.
        boundaries: how many there are.
    """

    def __init__(self, folder: Path, script: str, boundaries: int) -> None:
        name = script.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        self._path, self._folder = folder / f"{name}.jsonl", folder / name
        self._images: Counter[int] = Counter()
        self._violating: Counter[int] = Counter()
        self._sampled: dict[int, list[Found]] = {}
        self._boundaries = boundaries
        self._at = {step * (boundaries - 1) // (SAMPLES - 1) for step in range(SAMPLES)}

    def add(self, boundary: int, image: Image, found: Sequence[Found]) -> None:
        """Count one image, and keep the first of a boundary that is sampled."""
        self._images[boundary] += 1
        self._violating[boundary] += bool(found)
        if boundary in self._at and boundary not in self._sampled:
            self._sampled[boundary] = list(found)
            kept = self._folder / str(boundary)
            kept.mkdir(parents=True)
            lay(kept, image.files)

    def write(self, acked: Sequence[Acked], *, ended: bool) -> None:
        """Write the lines.

        Args:
            acked: everything the store acknowledged, in order.
            ended: the script was told an error: that counts once, at the last boundary.
        """
        lines = []
        self._violating[self._boundaries - 1] += ended
        for boundary in range(self._boundaries):
            last = {each.operation: [each.seq, each.hash.hex()] for each in acked if each.at <= boundary}
            last.pop("", None)
            line = {"boundary": boundary, "images": self._images[boundary], "violating": self._violating[boundary]}
            kept = {"found": self._sampled[boundary]} if boundary in self._sampled else {}
            lines.append(json.dumps({**line, "acked": last, **kept}) + "\n")
        self._path.write_text("".join(lines), encoding="utf-8")
