"""Crash images: how many there were, and whether everything acknowledged is there in those that were kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from recounting.ground import SEQ_BITS, STORE, Counts, Entry, NotCountable, lines

BOUNDARIES, FAULTS = "boundaries", "faults.jsonl"
PRODUCT = "wal_full"
"""The one way the product keeps its file; the others are there to lose something."""
GONE = "is not there"
"""How the laboratory's words about an acknowledged event that is missing end; what else is `lost` no event shows."""


def images(top: Path) -> Counts:
    """Count the images of every script in every mode, and open those that were kept."""
    modes = {folder.name: mode(folder) for folder in sorted((top / BOUNDARIES).iterdir()) if folder.is_dir()}
    if PRODUCT not in modes:
        raise NotCountable(f"{top / BOUNDARIES} has no {PRODUCT}")
    product, struck = modes[PRODUCT], lines(top / FAULTS) or []
    runs = {f"{name}/{one['script']}": one for name, found in modes.items() for one in found["scripts"]}
    samples = [kept for one in runs.values() for kept in one["samples"]]
    kinds = {entry["mode"] for entry in struck}
    return {
        "images": product["images"],
        "boundaries": sum(one["boundaries"] for one in product["scripts"]),
        "scenarios": {one["script"]: one["images"] for one in product["scripts"]},
        "violations": product["violations"] + sum(entry["violating"] for entry in struck),
        "faults": {kind: sum(entry["runs"] for entry in struck if entry["mode"] == kind) for kind in sorted(kinds)},
        "modes": {name: {word: found[word] for word in ("images", "violations")} for name, found in modes.items()},
        "samples": len(samples),
        "samples_lost": sum(one["lost"] for one in samples),
        "samples_disagree": sum(not one["agrees"] for one in samples),
        "runs": runs,
    }


def mode(folder: Path) -> Counts:
    """Count every script of one mode."""
    scripts = [script(path) for path in sorted(folder.glob("*.jsonl"))]
    return {
        "images": sum(one["images"] for one in scripts),
        "violations": sum(one["violating"] for one in scripts),
        "scripts": scripts,
    }


def script(path: Path) -> Counts:
    """Count one script's boundaries, and open the images that were kept of them."""
    entries = lines(path) or []
    samples = []
    for entry in entries:
        if "found" in entry:
            found = list(losses(path.with_suffix("") / str(entry["boundary"]), entry["acked"]))
            samples.append({"boundary": entry["boundary"], **sample(found, entry["found"])})
    return {
        "script": path.stem.replace("-", " "),
        "boundaries": len(entries),
        "images": sum(entry["images"] for entry in entries),
        "violating": sum(entry["violating"] for entry in entries),
        "samples": samples,
    }


def sample(found: Sequence[str], said: Sequence[Sequence[str]]) -> Counts:
    """Hold what one kept image shows against what the laboratory said of it."""
    lost = any(problem.endswith(GONE) for problem in found)
    said_lost = any(detail.endswith(GONE) for _, detail in said)
    return {"lost": lost, "agrees": bool(said) or not lost if not said_lost else bool(found), "because": found[:3]}


def losses(folder: Path, acked: Entry) -> Iterator[str]:
    """Open a copy of one image as it is and say what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="recount-") as aside:
        for name in (STORE, f"{STORE}-wal", f"{STORE}-journal"):
            if (folder / name).exists():
                shutil.copy(folder / name, Path(aside) / name)
        if not (Path(aside) / STORE).exists():
            yield from ([f"the file {GONE}"] if acked else [])
            return
        with closing(sqlite3.connect(Path(aside) / STORE)) as store:
            store.row_factory = sqlite3.Row
            try:
                yield from (f"broken: {row[0]}" for row in store.execute("PRAGMA integrity_check(3)") if row[0] != "ok")
                yield from missing(rows_of(store), acked)
            except sqlite3.DatabaseError as broken:
                yield f"cannot be read: {broken}"


def rows_of(store: sqlite3.Connection) -> dict[str, list[Entry]]:
    """The events of each operation by its id; none where the file was not made yet."""
    if not store.execute("SELECT 1 FROM sqlite_schema WHERE name = 'event'").fetchone():
        return {}
    names = {row["n"]: row["id"] for row in store.execute("SELECT n, id FROM operation")}
    found: dict[str, list[Entry]] = {name: [] for name in names.values()}
    for row in store.execute("SELECT id, kind, at, record, hash FROM event ORDER BY id"):
        n, seq = row["id"] >> SEQ_BITS, row["id"] & ((1 << SEQ_BITS) - 1)
        if n in names:
            found[names[n]].append({**dict(row), "seq": seq})
    return found


def missing(stands: dict[str, list[Entry]], acked: Entry) -> Iterator[str]:
    """Name what was acknowledged and is not there, or stands in a chain that does not hold."""
    for name, (seq, head) in acked.items():
        events = stands.get(name)
        if events is None:
            yield f"{name} was acknowledged and {GONE}"
            continue
        # What retention left in the place of earlier events stands for those that were acknowledged before it.
        first = events[0]["seq"] if events and events[0]["kind"] == "removed" else 0
        hashes = {event["seq"]: event["hash"].hex() for event in events}
        if hashes.get(seq) != head and seq >= first:
            yield f"event {seq} of {name} was acknowledged and {GONE}"
    for name, events in stands.items():
        yield from (f"event {seq} of {name} does not follow from the one before" for seq in breaks(name, events))


def breaks(name: str, events: Iterable[Entry]) -> Iterator[int]:
    """The events of one operation whose hash does not cover them and the one before."""
    last, head = 0, b""
    for event in events:
        if event["kind"] == "removed" and not last:
            left = json.loads(event["record"])
            last, head = left["events"], bytes.fromhex(left["head"])
        said = f"cf-event-1\n{name}\n{event['seq']}\n{event['kind']}\n{event['at']!r}\n".encode()
        whole = hashlib.sha256(head + said + event["record"]).digest()
        if event["seq"] != last + 1 or event["hash"] != whole:
            yield event["seq"]
        last, head = event["seq"], event["hash"]
