"""What the raw files say of one another: intents, store, wire, effects, exports and kills tell of the same payloads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from recounting.ground import WIRE, Counts, Entry, NotCountable, Receipt, Stored, lines, name_of

INTENTS, EXPORTS, WAYS = "intents", "exports", "*-wire"
"""A file of lines, `intents.jsonl`, or a folder of such files; what `counterfoil export` wrote of each receipt; and
where each way to the provider wrote down what passed it."""

EFFECTS_OF = re.compile(r"POST /(\w+)/effects")

UNLIKE = (
    "wrong_payloads", "wrong_accounts", "wrong_ids", "unlike_wire", "unanswered_lines", "exports_unlike",
    "kills_misplaced",
)  # fmt: skip
"""Figures of this module, and of the kills: whatever is not nought, one raw file contradicts another."""


def agreement(folder: Path, effects: Sequence[Entry], sends: Sequence[Entry] | None, found: Stored | None) -> Counts:
    """Count what of a run's raw files does not fit what the others say; null where there are no others."""
    asked, told = intents(folder), says_bytes(effects, sends)
    compared = found if told else None
    return {
        "unlike_wire": wire_unlike(folder, effects, sends) if told and sends is not None else None,
        "wrong_payloads": compared and sum(1 for _ in others(effects, sends or [], compared.receipts)),
        "wrong_accounts": compared and sum(1 for _ in elsewhere(effects, compared.receipts)),
        "wrong_ids": compared and wrong_ids(effects, compared),
        "lines": None if asked is None else len(asked),
        "unanswered_lines": None if asked is None or found is None else unanswered(asked, found.receipts),
        "exports_unlike": None if found is None else exports_unlike(folder / EXPORTS, found),
    }


def says_bytes(effects: Sequence[Entry], sends: Iterable[Entry] | None) -> bool:
    """Whether any line says what was sent: a real server tells only how many things it holds, and under what names."""
    return not effects or any("payload_sha256" in entry for entry in (*effects, *(sends or [])))


def wire_unlike(folder: Path, effects: Sequence[Entry], sends: Sequence[Entry]) -> int:
    """How many lines of wire and effects do not fit one another, nor the ways to the provider where there were some."""
    passed = [entry for way in sorted(folder.glob(WAYS)) for entry in lines(way / WIRE) or []]
    known = {(entry.get("path"), entry.get("payload_sha256")) for entry in passed}
    whole = [send for send in sends if send.get("whole", True)]
    around = sum((send.get("path"), send.get("payload_sha256")) not in known for send in whole) if passed else 0
    return around + misnumbered(effects) + sum(1 for _ in unexplained(effects, sends))


def unexplained(effects: Iterable[Entry], sends: Iterable[Entry]) -> Iterator[Entry]:
    """Requests that ask for no kind of effect, and effects that no whole request explains: name, bytes and kind.

    What happened without any request, as some worlds have it, says so itself: its `wire` is 0.
    """
    yield from (entry for entry in sends if " " in kind_of(entry))
    sent = {signature(entry, kind_of(entry)) for entry in sends if entry.get("whole", True)}
    for effect in effects:
        if effect.get("wire", 1) and signature(effect, str(effect.get("kind"))) not in sent:
            yield effect


def misnumbered(effects: Sequence[Entry]) -> int:
    """How many effects do not stand under the number at which they were written; some providers give none."""
    return sum(effect.get("seq", place) != place for place, effect in enumerate(effects, start=1))


def wrong_ids(effects: Iterable[Entry], found: Stored) -> int:
    """How many receipts name a thing of the provider's that no effect of theirs is."""
    ids: dict[str, set[str]] = {}
    by_bytes = {receipt.payload: receipt.name for receipt in found.receipts if receipt.payload}
    for effect in effects:
        name = name_of(effect) or by_bytes.get(f"sha256:{effect.get('payload_sha256')}", "")
        ids.setdefault(name, set()).add(str(effect.get("id")))
    names = {receipt.n: receipt.name for receipt in found.receipts}
    said = {(names.get(event.n, ""), event.record.get("external_id")) for event in found.events}
    return sum(bool(named) and named not in ids.get(name, set()) for name, named in said)


def signature(entry: Entry, kind: str) -> tuple[str | None, str, str]:
    """By what a request and its effect are the same: name, kind and bytes."""
    return name_of(entry), kind, str(entry.get("payload_sha256"))


def kind_of(send: Entry) -> str:
    """The kind of effect that a request asks for, as its path says it: `/KIND/effects`, posted."""
    if "path" not in send:
        return str(send.get("kind"))
    asked = f"{send.get('method')} {send['path']}"
    named = EFFECTS_OF.fullmatch(asked)
    return named[1] if named else asked


def others(effects: Iterable[Entry], sends: Iterable[Entry], receipts: Iterable[Receipt]) -> Iterator[Entry]:
    """Effects, and whole requests, under a receipt's name with other bytes than the receipt froze."""
    frozen = {receipt.name: receipt for receipt in receipts if receipt.payload}
    by_bytes = {receipt.payload: receipt for receipt in frozen.values()}
    for entry in (*effects, *(send for send in sends if send.get("whole", True))):
        bare = name_of(entry) is None  # then only its bytes could join it to a receipt
        digest = f"sha256:{entry.get('payload_sha256')}"
        receipt = by_bytes.get(digest) if bare else frozen.get(str(name_of(entry)))
        if receipt is None:
            continue
        shown = entry.get("payload")
        if digest != receipt.payload or (shown is not None and shown != receipt.content):
            yield entry


def elsewhere(effects: Iterable[Entry], receipts: Iterable[Receipt]) -> Iterator[Entry]:
    """Effects under a receipt's name in another account than the receipt's."""
    accounts = {receipt.name: receipt.account for receipt in receipts if receipt.account}
    by_bytes = {receipt.payload: receipt.account for receipt in receipts if receipt.payload and receipt.account}
    for effect in effects:
        name = name_of(effect)
        known = by_bytes.get(f"sha256:{effect.get('payload_sha256')}") if name is None else accounts.get(name)
        if known is not None and effect.get("account") != known:
            yield effect


def intents(folder: Path) -> dict[tuple[str, str], Entry] | None:
    """Every line that a run was given, by action and key; None where it was given none.

    Raises:
        NotCountable: two lines of one key ask for different things, so that one of them was changed.
    """
    files = sorted((folder / INTENTS).glob("*.jsonl")) or [folder / f"{INTENTS}.jsonl"]
    found: dict[tuple[str, str], Entry] = {}
    for entry in (entry for file in files for entry in lines(file) or []):
        if found.setdefault((entry["action"], entry["key"]), entry) != entry:
            raise NotCountable(f"two lines below {folder} ask for different things under the key {entry['key']}")
    return found or None


def unanswered(asked: dict[tuple[str, str], Entry], receipts: Iterable[Receipt]) -> int:
    """How many lines have no receipt that froze just their payload, and how many receipts nobody asked for."""
    kept = {(receipt.action, receipt.key): receipt.content for receipt in receipts}
    wrong = [name for name, entry in asked.items() if kept.get(name) != entry["payload"]]
    return len(wrong) + len(kept.keys() - asked.keys())


def exports_unlike(folder: Path, found: Stored) -> int | None:
    """How many receipts have no export, or one that does not say what the store says; null where none was written."""
    if not folder.is_dir():
        return None
    heads = {event.n: event for event in found.events}  # the last of each
    wrong = sum(not is_export_of(read(folder / f"{r.id}.json"), r, heads[r.n].hash) for r in found.receipts)
    return wrong + len({path.stem for path in folder.glob("*.json")} - {receipt.id for receipt in found.receipts})


def read(path: Path) -> Entry:
    """One export; empty where there is none that could be read."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def is_export_of(said: Entry, receipt: Receipt, head: str) -> bool:
    """Whether an export says of its receipt what the store says: what was asked, what came of it, the chain's head."""
    names = {"operation": "action", "key": "key", "account": "account", "outcome": "outcome", "dispatch": "dispatch"}
    same = all(said.get(word) == getattr(receipt, name) for word, name in names.items())
    chain = said.get("chain", {})
    whole = (chain.get("head"), chain.get("violations")) == (head, [])
    return same and whole and len(said.get("attempts", [])) == receipt.attempts
