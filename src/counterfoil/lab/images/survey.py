"""One script's images: as many as are asked for, over all its boundaries alike, and what is wrong with them."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from counterfoil.lab.images.check import Found, Line, examine, shown
from counterfoil.lab.images.disk import Choice, Everything, Image, Moment, Nothing, replay
from counterfoil.lab.images.evidence import Evidence
from counterfoil.lab.images.recording import held, lay, record, workshop

TRIES = 8
"""Draws at a boundary that come to nothing new before it is taken to have no other image."""
WHOLE_EVERY = 4
"""SQLite checks every so-and-so-many-th image whole."""
KEPT_MAX = 5
"""Violating images that one script leaves behind."""
ENDED = "ended_early"
"""The script was told an error, with nothing failing: its images are those up to there."""


class Kept(NamedTuple):
    """A violating image, to look at."""

    boundary: int
    files: dict[str, bytes]
    found: tuple[Found, ...]


class Survey(NamedTuple):
    """What the images of one script came to."""

    boundaries: int
    images: int
    found: Counter[str]
    """Images by kind of violation; one image may have several."""
    violating: int
    """Images, and one more where the script ended early."""
    kept: tuple[Kept, ...]


def survey(name: str, images: int, seed: str, left: Path | None = None) -> Survey:
    """Record a script, cut the power at each boundary, and examine what is left.

    Args:
        name: which script.
        images: how many at least, where it has so many.
        seed: draws them.
        left: gets the evidence, for whoever counts it again; None: nobody does.
    """
    with workshop() as top:
        folder = Path(top) / "played"
        tape = record(folder, name)
        moments = list(replay(tape.files, tuple(tape.operations)))
        line = Line(tape, [_state(folder, moment) for moment in moments])
        kept = [Kept(len(tape.operations), held(folder), (Found(ENDED, tape.ended),))] if tape.ended else []
        kinds = Counter({ENDED: len(kept)} if kept else {})
        count, violating = 0, len(kept)
        evidence = None if left is None else Evidence(left, name, len(moments))
        for boundary, image in _drawn(moments, images, random.Random(seed)):
            found = examine(folder, image.files, line, boundary, whole=count % WHOLE_EVERY == 0)
            count += 1
            if evidence is not None:
                evidence.add(boundary, image, found)
            if found:
                violating += 1
                kinds.update({each.kind for each in found})
                if len(kept) < KEPT_MAX:
                    kept.append(Kept(boundary, dict(image.files), tuple(found)))
        if evidence is not None:
            evidence.write(tape.acked, ended=bool(tape.ended))
    return Survey(len(moments), count, kinds, violating, tuple(kept))


def _state(folder: Path, moment: Moment) -> bytes:
    """What a store shows when everything written until then arrived."""
    lay(folder, moment.image(Everything()).files)
    return shown(folder, whole=False).state


def _drawn(moments: Sequence[Moment], images: int, draws: random.Random) -> Iterator[tuple[int, Image]]:
    """Distinct images, one per boundary in turn: nothing but what was synced, everything, then by chance."""
    seen: list[set[tuple[int, ...]]] = [set() for _ in moments]
    open_ones = dict(enumerate(moments))
    count = turn = 0
    while open_ones and count < images:
        for boundary, moment in list(open_ones.items()):
            image = _another(moment, turn, seen[boundary], draws)
            if image is None:
                del open_ones[boundary]
                continue
            seen[boundary].add(image.choices)
            count += 1
            yield boundary, image
        turn += 1


def _another(moment: Moment, turn: int, seen: set[tuple[int, ...]], draws: random.Random) -> Image | None:
    """An image that this boundary has not had; None where chance finds none."""
    firm: tuple[Choice, ...] = (Nothing(), Everything())[turn : turn + 1]
    drawn = (moment.draw(draws) for _ in range(TRIES))
    images = itertools.chain((moment.image(choice) for choice in firm), drawn)
    return next((image for image in images if image.choices not in seen), None)
