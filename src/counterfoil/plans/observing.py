"""Recording evidence: the fast way while nobody else wrote, by a rule on the whole history otherwise."""

from __future__ import annotations

import msgspec

from counterfoil.domain import canonical, rules
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.command import Amend, Amended, Declined, Settle, Settled
from counterfoil.domain.contract import Contract
from counterfoil.domain.event import encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import RESULT_BYTES_MAX, salted_digest, seal
from counterfoil.domain.words import Discrepancy
from counterfoil.plans.effects import Plan


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of a claim knows without reading: the operation, its one attempt and its chain's head."""

    operation: Operation
    attempts: tuple[Attempt, ...]
    discrepancy: Discrepancy
    head: bytes


def written(evidence: Evidence, salt: bytes) -> tuple[bytes, bytes | None]:
    """The hashed record of an observation and its erasable body."""
    if evidence.result is None and not evidence.facts:
        return encode(evidence), None
    kept = canonical.canonical({"facts": evidence.facts, "result": evidence.result})
    if len(kept) > RESULT_BYTES_MAX:
        kept = canonical.canonical({"facts": {}, "result": None, "too_large": len(kept)})
    body = seal(salt, kept)
    bare = msgspec.structs.replace(evidence, result=None, facts={}, body_digest=salted_digest(body))
    return encode(bare), body


def record(claimed: Claimed, evidence: Evidence, contract: Contract, *, salt: bytes, jitter: float) -> Plan[Operation]:
    """Make evidence durable for the holder of a claim; it reads nothing unless somebody wrote meanwhile."""
    line, body = written(evidence, salt)
    moved = rules.advance(
        claimed.operation, claimed.attempts, claimed.discrepancy, evidence, contract, jitter=jitter
    )
    reply = yield Settle(
        operation=moved.operation, head=claimed.head, record=line, body=body, due_after=moved.next.after_seconds
    )
    if isinstance(reply, Settled):
        due_at = reply.at + moved.next.after_seconds if moved.next.step else 0.0
        return msgspec.structs.replace(
            moved.operation, updated_at=reply.at, due_at=due_at, seq=moved.operation.seq + 1
        )
    return (yield from amend(claimed.operation.id, evidence, contract, line=line, body=body, jitter=jitter))


def amend(
    operation: str, evidence: Evidence, contract: Contract, *, line: bytes, body: bytes | None, jitter: float
) -> Plan[Operation]:
    """Append evidence to whatever stands there now: late and contradictory evidence is always accepted."""
    reply = yield Amend(operation=operation, rule=rules.observe(evidence, line, body, contract, jitter=jitter))
    if isinstance(reply, Amended | Declined) and reply.history is not None:
        return reply.history.operation
    raise AssertionError(f"an observation was answered with {type(reply).__name__}")


def append(operation: str, evidence: Evidence, contract: Contract, *, salt: bytes, jitter: float) -> Plan[Operation]:
    """Append evidence for one who holds no claim: a look, a recovery, an operator's finding."""
    line, body = written(evidence, salt)
    return (yield from amend(operation, evidence, contract, line=line, body=body, jitter=jitter))


def take(operation: str, line: bytes, body: bytes | None, contract: Contract) -> Plan[Operation]:
    """Append a record that was written down elsewhere; twice is once."""
    evidence = msgspec.json.decode(line, type=Evidence)
    return (yield from amend(operation, evidence, contract, line=line, body=body, jitter=0.0))
