"""One operation as a JSON document that can leave the house: what was asked, attempted, observed, and what is unknown.

It holds no secret, because the record holds none, and no payload and no provider's body unless that is asked for.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.audit import audit
from counterfoil.domain.compensation import compensates
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import (
    Begun,
    Event,
    EventKind,
    History,
    attempts_of,
    begun_of,
    destination_of,
    evidence_of,
    first_begun,
    removed_of,
)
from counterfoil.domain.lifecycle import CALL_AGAIN, lifecycle, permitted
from counterfoil.domain.payload import content, frozen_payload, gone_said
from counterfoil.domain.words import Finding, Outcome
from counterfoil.runtime.asked import asked_of
from counterfoil.runtime.spool import write_private

SCHEMA = "counterfoil.receipt/1"
"""Raised when a field changes its meaning; fields may be added without."""

LATEST = 253_402_300_800
"""The year 10000, in seconds since the epoch: whatever is later is no time."""

_STORE_TAILS = ("", "-wal", "-shm", "-journal")


def document(
    history: History, *, outcome: Outcome, payload: bool = False, refused: int = 0, compensated_by: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Say everything that is on record of one operation.

    Args:
        history: the operation with its events.
        outcome: as it reads now (`outcome_now`).
        payload: with the frozen payload and what replays return.
        refused: how often its receipt answered a call instead of sending it.
        compensated_by: the operations that undo it.
    """
    operation = history.operation
    attempts, _ = attempts_of(history.events)
    begun = first_begun(history.events)
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "operation_id": operation.id,
        "operation": operation.action,
        "target": destination_of(history.events, "") or operation.account,
        "state": lifecycle(operation, outcome).value,
        "intent_fingerprint": operation.fingerprint,
        "submitted_at": _submitted_at(attempts),
        "external_id": next((a.external_id for a in attempts if a.external_id), None),
        "authentication_recorded": False,
        **_columns(history, outcome),
        **_stands_on(begun),
        "compensates": compensates(history) or None,
        "compensated_by": list(compensated_by),
        "approval": asked_of(history, moment=iso),
        "attempts": _attempts(history, attempts),
        "evidence": [_evidence(event, payload=payload) for event in _of(history, EventKind.OBSERVED)],
        "events": [_event(event) for event in history.events],
        "removed": _removed(history),
        "refused": refused,
        "chain": {
            "head": history.head.hex(),
            "seq": operation.seq,
            "violations": [f"{v.law.value}: {v.problem}" for v in audit(history)],
        },
    }
    return made | ({"payload": read(frozen_payload(history))} if payload else {})


def write(path: Path, made: dict[str, Any], *, store: Path | None) -> None:
    """Write a document into a private file (0600), whole or not at all.

    Args:
        path: where; what stands there is replaced.
        made: the document.
        store: the receipts file, which is never replaced by one of its own receipts; None: a database.

    Raises:
        BadValue: it cannot be written there.
    """
    if store is not None and any(_same(path, store.with_name(store.name + tail)) for tail in _STORE_TAILS):
        raise BadValue("--out", str(path), wanted="is the receipts file itself; name another file")
    if path.exists() and not path.is_file():
        raise BadValue("--out", str(path), wanted="is no regular file; name another one")
    try:
        write_private(path, text(made).encode())
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "bad path"
        raise BadValue("--out", str(path), wanted=f"cannot be written: {why}") from error


def read(plain: bytes | None) -> object:
    """Read stored JSON as it is spelled, exact numbers and times in their tagged form; None where none can be read."""
    try:
        return None if plain is None else json.loads(plain)
    except ValueError:
        return None


def body_of(event: Event) -> dict[str, Any]:
    """What stands in the erasable part of an observation; empty once it was erased or where it cannot be read."""
    found = read(None if event.body is None else content(event.body))
    return found if isinstance(found, dict) else {}


def text(made: dict[str, Any]) -> str:
    """A document as text, in ASCII: no byte of it can be an escape sequence."""
    return json.dumps(made, indent=2, ensure_ascii=True) + "\n"


def iso(at: float) -> str:
    """Seconds since the epoch as ISO 8601, UTC; what is no time is written as the number it is."""
    if not 0 <= at < LATEST:
        return f"{at!r} s"
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _columns(history: History, outcome: Outcome) -> dict[str, Any]:
    operation = history.operation
    return {
        "tenant": operation.tenant,
        "actor": operation.actor,
        "account": operation.account,
        "key": operation.key,
        "effect_identity": operation.effect,
        "owner": operation.owner,
        "value": operation.value,
        "permission": operation.permission.value,
        "dispatch": operation.dispatch.value,
        "outcome": outcome.value,
        "disposition": operation.disposition.value,
        "discrepancy": operation.discrepancy.value,
        "unresolved": bool(operation.unresolved),
        "exposure": operation.exposure,
        "settled_by": operation.settled_by or None,
        "held_by": operation.held_by or None,
        "looks": operation.looks,
        "next": {"step": operation.step or None, "due_at": iso(operation.due_at) if operation.step else None},
        "permitted": [
            step
            for step in permitted(operation, outcome, operation.permission)
            if step != CALL_AGAIN or not gone_said(history)
        ],
        "created_at": iso(operation.created_at),
        "updated_at": iso(operation.updated_at),
    }


def _stands_on(begun: Begun | None) -> dict[str, Any]:
    """What the receipt pins and rests on."""
    if begun is None:
        return {"contract": None, "action_code": None, "provider_key": None, "assumptions": {}, "mentioned": {}}
    return {
        "contract": {"id": begun.contract_id, "digest": begun.contract},
        "action_code": begun.code or None,
        "provider_key": {
            "value": begun.provider_key,
            "scope": begun.key_scope,
            "valid_seconds": begun.key_valid_seconds,
        },
        "payload_digest": begun.payload_digest or None,
        "assumptions": begun.assumptions,
        "mentioned": begun.mentioned,
    }


def _submitted_at(attempts: tuple[Attempt, ...]) -> str | None:
    """When the first attempt that may have left was claimed; None while nothing may have left."""
    left = [a.started_at for a in attempts if a.finding is not Finding.NOT_SENT]
    return iso(min(left)) if left else None


def _removed(history: History) -> dict[str, Any] | None:
    """What retention removed, and on whose word."""
    left = removed_of(history.events)
    if left is None:
        return None
    return {
        "events": left.events,
        "at": iso(history.events[0].at),
        "head": left.head,
        "rule": left.rule,
        "policy": left.policy,
        "by": left.by,
    }


def _attempts(history: History, attempts: tuple[Attempt, ...]) -> list[dict[str, Any]]:
    """Every attempt; of one whose claim was removed, what is left."""
    begun = {record.attempt.number: record for record in map(begun_of, _of(history, EventKind.BEGUN))}
    return [_attempt(attempt, begun.get(attempt.number)) for attempt in attempts]


def _of(history: History, kind: EventKind) -> list[Event]:
    return [event for event in history.events if event.kind is kind]


def _attempt(now: Attempt, begun: Begun | None) -> dict[str, Any]:
    return {
        "number": now.number,
        "class": now.attempt_class.value,
        "started_at": iso(now.started_at),
        "send_deadline": iso(now.deadline),
        "basis": begun.basis or None if begun else None,
        "because": list(begun.because) if begun else [],
        "worker": now.worker,
        "finding": now.finding.value if now.finding else None,
        "quiesced": now.quiesced,
        "external_id": now.external_id or None,
    }


def _evidence(event: Event, *, payload: bool) -> dict[str, Any]:
    said, body = evidence_of(event), body_of(event)
    facts = body.get("facts") or {}
    if isinstance(facts.get("earliest"), int | float):
        facts["earliest"] = iso(facts["earliest"])
    made: dict[str, Any] = {
        "seq": event.seq,
        "at": iso(event.at),
        "source": said.source.value,
        "finding": said.finding.value,
        "attempt": said.attempt,
        "coverage": said.coverage.value,
        "rule": said.rule or None,
        "reason": said.reason or None,
        "effect": said.effect or None,
        "external_id": said.external_id or None,
        "contradicts": said.contradicts,
        "quiesced": said.quiesced,
        "facts": facts,
        "body_digest": said.body_digest or None,
        "body_erased": bool(said.body_digest) and event.body is None,
    }
    return made | ({"result": body.get("result")} if payload else {})


def _event(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "kind": event.kind.value, "at": iso(event.at), "hash": event.hash.hex()}


def _same(left: Path, right: Path) -> bool:
    """By `stat` alone: opening the store any other way would drop its locks."""
    try:
        return left.samefile(right)
    except (OSError, ValueError):
        return left.absolute() == right.absolute()
