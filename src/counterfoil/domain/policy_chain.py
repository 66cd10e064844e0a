"""The policies that were ever in force as a chain of decisions, and what verification finds wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from counterfoil.domain.approval import Proposed
from counterfoil.domain.event import Decided, EventKind, History, chain
from counterfoil.domain.policy import OnRecord, decode, digest_of
from counterfoil.domain.record import readable
from counterfoil.domain.violation import Law, Violation

CHAINED = "policy"
"""What stands in the place of an operation's id in each link."""


def link(previous: bytes, n: int, at: float, record: bytes) -> bytes:
    """Hash one decision onto the chain of policies."""
    return chain(previous, CHAINED, n, EventKind.DECIDED.value, at, record)


def audit_policies(every: Sequence[OnRecord]) -> Iterator[Violation]:
    """Find every accident, and every edit that was not made with recomputation.

    Args:
        every: all that are on record, oldest first.
    """
    last, previous = 0, b""
    for kept in every:
        if kept.n != last + 1:
            yield _wrong(kept, Law.CHAIN, f"it stands where policy {last + 1} belongs")
        elif kept.hash != link(previous, kept.n, kept.at, kept.record):
            yield _wrong(kept, Law.CHAIN, "its hash does not cover what stands there after the policy before")
        last, previous = kept.n, kept.hash
        yield from _content(kept)


def cited(history: History) -> Iterator[tuple[int, str]]:
    """Each policy that an operation's events rest on, by its digest, with the number of the event."""
    for event in history.events:
        record = readable(event)
        digest = record.bound.policy if isinstance(record, Proposed) else getattr(record, "policy", "")
        if digest:
            yield event.seq, digest


def audit_citations(found: Mapping[str, tuple[str, int]], every: Sequence[OnRecord]) -> Iterator[Violation]:
    """Find what was judged by a policy that is on record no longer.

    Args:
        found: by digest, an operation that rests on it and the event that says so.
        every: all policies that are on record.
    """
    for digest in sorted(found.keys() - {kept.digest for kept in every}):
        operation, seq = found[digest]
        yield Violation(
            operation=operation, seq=seq, law=Law.CHAIN, problem=f"it rests on {digest}, which is no policy on record"
        )


def _content(kept: OnRecord) -> Iterator[Violation]:
    try:
        named = msgspec.json.decode(kept.record, type=Decided).facts.get("digest")
        decode(kept.policy)
    except msgspec.MsgspecError:
        yield _wrong(kept, Law.RECORD, "its record, or the policy itself, cannot be read")
        return
    if named != kept.digest or digest_of(kept.policy) != kept.digest:
        yield _wrong(kept, Law.CHAIN, "it is not the policy whose digest is on record")


def _wrong(kept: OnRecord, law: Law, problem: str) -> Violation:
    return Violation(operation=f"policy {kept.n}", seq=0, law=law, problem=problem)
