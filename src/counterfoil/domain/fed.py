"""Evidence that somebody handed in: whose attempt it speaks of, and the same document twice is one."""

from __future__ import annotations

import hashlib

import msgspec

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amendment, Declined, Rule
from counterfoil.domain.event import EventKind, History, begun_of, evidence_of, removed_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import SALT_BYTES, frozen_body
from counterfoil.domain.rules import RECORDED
from counterfoil.domain.words import Finding, Source

NOT_NAMED = "attempt_not_named"
"""It says that nothing happened, and not of which attempt: a rejection of one never settles another."""

OTHER_OBJECT = "other_object"
"""It carries our reference and is not the object that is known to have come of it."""
OTHER_CONTRACT = "other_contract"
"""The contract at hand is not the one on the receipt: it proves nothing until a person says what."""


class Feeder(msgspec.Struct, frozen=True, kw_only=True):
    """Who handed it in, why, and how they were authenticated; that it is authentic is their word."""

    by: str
    reason: str = ""
    how: str = ""


def handed_in(
    evidence: Evidence, source: Source, feeder: Feeder, attempts: tuple[Attempt, ...], *, named: int | None = None
) -> Evidence:
    """Say of judged evidence that it was handed in, and of which attempt it speaks.

    Args:
        evidence: as the contract judged it.
        source: what kind of document it stood in.
        feeder: who handed it in.
        attempts: every attempt there was.
        named: the attempt that whoever hands it in says it is of.
    """
    number = named or _spoken_of(evidence, attempts)
    said = msgspec.structs.replace(
        evidence, source=source, attempt=number or attempts[-1].number, by=feeder.by, why=feeder.reason, how=feeder.how,
        # A document from outside says nothing of a sender: only its own report, or its death, quiesces it.
        quiesced=False,
    )  # fmt: skip
    if number is None and evidence.finding not in _POSITIVE:
        return msgspec.structs.replace(said, finding=Finding.UNKNOWN, reason=said.reason or NOT_NAMED)
    return said


_POSITIVE = frozenset({Finding.SUCCEEDED, Finding.ACCEPTED})


def _spoken_of(evidence: Evidence, attempts: tuple[Attempt, ...]) -> int | None:
    """The attempt it can only be of; what happened and cannot be told apart is the first that may have caused it."""
    if len(attempts) == 1:
        return 1
    own = [a.number for a in attempts if evidence.external_id and a.external_id == evidence.external_id]
    if len(own) == 1 or (own and evidence.finding in _POSITIVE):
        return own[0]
    if evidence.finding not in _POSITIVE:
        return None
    proven = [a.number for a in attempts if a.finding is Finding.SUCCEEDED]
    waiting = [a.number for a in attempts if a.open or a.finding is Finding.ACCEPTED]
    return (proven or waiting or [attempts[-1].number])[0]


def of_another(evidence: Evidence) -> Evidence:
    """What it says of another object than the one that is known here: that it exists contradicts, its end does not."""
    happened = evidence.finding in _POSITIVE
    if evidence.contradicts or evidence.finding is Finding.UNKNOWN:
        return evidence
    return msgspec.structs.replace(
        evidence, finding=evidence.finding if happened else Finding.UNKNOWN, contradicts=happened, reason=OTHER_OBJECT
    )


def salt_of(history: History) -> bytes:
    """The salt that stands in the frozen payload's body: erased with it, so that no digest can be guessed at after."""
    body = frozen_body(history)
    return history.events[0].hash if body is None else body[:SALT_BYTES]


def unjudged(evidence: Evidence) -> Evidence:
    """The same where the contract that judged it is not the one on the receipt."""
    return msgspec.structs.replace(
        evidence, finding=Finding.UNKNOWN, reason=OTHER_CONTRACT, effect="", result=None, contradicts=False
    )


def is_pinned(history: History, digest: str) -> bool:
    """Whether an attempt of it was claimed under that very contract."""
    removed = removed_of(history.events)
    pinned = {begun_of(event).contract for event in history.events if event.kind is EventKind.BEGUN}
    return digest in pinned or (removed is not None and removed.contract == digest)


def marked(evidence: Evidence, history: History, document: bytes) -> Evidence:
    """Name the document it came in by its salted digest."""
    return msgspec.structs.replace(evidence, fed="fd1:" + hashlib.sha256(salt_of(history) + document).hexdigest())


def once(evidence: Evidence, rule: Rule) -> Rule:
    """Run a rule unless the same document has said the same already, whoever handed it in."""

    def guarded(history: History, now: float) -> Amendment | Declined:
        before = (evidence_of(event) for event in history.events if event.kind is EventKind.OBSERVED)
        if any(_same(evidence, one) for one in before):
            return Declined(because=(RECORDED,))
        return rule(history, now)

    return guarded


def _same(one: Evidence, other: Evidence) -> bool:
    return bool(one.fed) and (one.fed, one.finding, one.contradicts) == (other.fed, other.finding, other.contradicts)
