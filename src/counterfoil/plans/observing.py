"""Recording evidence: the fast way while nobody else wrote, by a rule on the whole history otherwise."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import msgspec

from counterfoil.domain import canonical, rules
from counterfoil.domain.action import Action
from counterfoil.domain.answer import Answer, Returned
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.canonical import NotCanonical
from counterfoil.domain.command import Amend, Amended, Claim, Columns, Declined, Settle, Settled, Stale, columns_of
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.event import encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.fence import judge_fence
from counterfoil.domain.judge import judge
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import RESULT_BYTES_MAX, salted_digest
from counterfoil.domain.result import NOT_KEPT, TOO_LARGE, declared
from counterfoil.domain.schedule import RECOVER
from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Discrepancy, Dispatch, Finding, Outcome
from counterfoil.plans.effects import Plan


class Claimed(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the holder of a claim knows without reading: the operation, its one attempt and its chain's head."""

    operation: Operation
    attempts: tuple[Attempt, ...]
    discrepancy: Discrepancy
    head: bytes
    asked: bool = False
    """People were asked about it: what they allowed, and until when, stands in its events."""
    fence: int | None = None
    """Which of the contract's fences it sends; None: the effect itself."""
    follows: bool | None = None
    """Its receipt says whether `accepted` is the end; None: it is written under the contract at hand, which says so."""

    @property
    def n(self) -> int:
        """The operation's row number."""
        return self.operation.n

    @property
    def id(self) -> str:
        """The operation's id."""
        return self.operation.id

    @property
    def seq(self) -> int:
        """Number of its last event."""
        return self.operation.seq

    @property
    def number(self) -> int:
        """The claimed attempt's number."""
        return self.attempts[-1].number

    @property
    def deadline(self) -> float:
        """When its sender must have ended, by the store's clock."""
        return self.attempts[-1].deadline


class First(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The same of a first claim, not yet written out: its ordinary end needs no more."""

    claim: Claim
    token: str
    at: float
    head: bytes
    number: ClassVar[int] = 1
    fence: ClassVar[None] = None
    seq: ClassVar[int] = 1

    @property
    def n(self) -> int:
        """The operation's row number."""
        return self.claim.n

    @property
    def id(self) -> str:
        """The operation's id."""
        return self.claim.id

    @property
    def deadline(self) -> float:
        """When its sender must have ended, by the store's clock."""
        return self.at + self.claim.send_seconds

    def whole(self) -> Claimed:
        """The operation as its claim left it, and its attempt."""
        c = self.claim
        attempt = Attempt(number=1, token=self.token, worker=c.worker, started_at=self.at, send_seconds=c.send_seconds)
        operation = msgspec.structs.replace(
            self.ended(Outcome.SUCCEEDED, self.at), dispatch=Dispatch.STARTED, outcome=Outcome.UNOBSERVED, exposure=1,
            unresolved=1, settled_by="", step=RECOVER, due_at=attempt.deadline, seq=1,
        )  # fmt: skip
        return Claimed(operation=operation, attempts=(attempt,), discrepancy=Discrepancy.NONE, head=self.head)

    def ended(self, outcome: Outcome, at: float) -> Operation:
        """The operation after its ordinary end, settled at that time; a property test holds it to the fold."""
        c, i = self.claim, self.claim.intent
        return Operation(
            n=c.n, id=c.id, tenant=i.tenant, actor=i.actor, action=i.action, key=i.key, account=i.account,
            fingerprint=i.fingerprint, effect=i.effect, owner=c.owner, value=c.value,
            created_at=self.at, dispatch=Dispatch.COMPLETED, outcome=outcome, attempts=1,
            settled_by=_ENDS[outcome][-2], worker=c.worker, deadline=self.at + c.send_seconds, updated_at=at, seq=2,
        )  # fmt: skip


_ENDS: dict[Outcome, Columns] = {
    end: (Dispatch.COMPLETED.value, end.value, Discrepancy.NONE.value, 0, 0, f"{end.value}:answer", "")
    for end in (Outcome.SUCCEEDED, Outcome.REJECTED)
}
"""What the ordinary ends of a first attempt make of its operation."""


def judged(action: Action, answer: Answer, number: int, payload: bytes = b"", *, fence: int | None = None) -> Evidence:
    """What one answer to a send, or to a fence, proves, with as much of its result as the action declares."""
    if fence is not None:
        return judge_fence(action.contract, fence, answer, number)
    return declared(judge(action.contract, answer, number, action.effect, payload), action.result)


def dated(evidence: Evidence, quiet: Steady | None) -> Evidence:
    """Say when its worker was known to be quiet, where something of it may be on its way: absence counts from then."""
    if not evidence.quiesced or evidence.finding is not Finding.UNKNOWN:
        return evidence
    return msgspec.structs.replace(evidence, steady=quiet)


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence as it is written: a hashed record and an erasable body."""

    evidence: Evidence
    line: bytes
    body: bytes | None
    result: Any = None
    """As a replay returns it; None where it could not be kept."""


def sealed(evidence: Evidence, salt: bytes) -> Sealed:
    """Part what is hashed from what may be erased; the salt is for the body's digest."""
    if evidence.result is None and not evidence.facts:
        return Sealed(evidence=evidence, line=encode(evidence), body=None)
    try:
        kept = canonical.canonical({"facts": evidence.facts, "result": evidence.result})
    except NotCanonical:
        if evidence.result is None:
            raise  # an operator's own words, of which nothing is recorded yet
        # It happened all the same: what cannot be kept is nobody's, and the evidence goes on without it.
        facts = {**evidence.facts, "result": NOT_KEPT}
        return sealed(msgspec.structs.replace(evidence, result=None, facts=facts), salt)
    if len(kept) > RESULT_BYTES_MAX:
        facts = {**evidence.facts, "result": TOO_LARGE}
        evidence = msgspec.structs.replace(evidence, result=None, facts=facts)
        kept = canonical.canonical({"facts": facts, "result": None})
    body = salt + kept
    bare = msgspec.structs.replace(evidence, result=None, facts={}, body_digest=salted_digest(body))
    return Sealed(evidence=evidence, line=encode(bare), body=body, result=evidence.result)


class ReturnedForm:
    """What is recorded when an action's function returns from its first attempt: the plain bytes, with one gap to fill.

    Args:
        action: whose function it is; one that picks from its result has no form.
    """

    __slots__ = ("_evidence", "_head")

    def __init__(self, action: Action) -> None:
        self._evidence: Evidence | None = None
        self._head = b""
        if not action.result and not action.contract.result:
            self._evidence = judged(action, Returned(), 1)
            line = encode(msgspec.structs.replace(self._evidence, body_digest=_GAP))
            self._head, _, _ = line.rpartition(encode(_GAP)[1:])  # the digest is the record's last field

    def fill(self, answer: Returned, salt: bytes) -> Sealed | None:
        """Seal one answer; None where it must be done the plain way."""
        text = answer.text
        if text is None or answer.value is None or self._evidence is None or len(text) > _TEXT_MAX:
            return None
        body = salt + _RESULT + text + b"}"
        line = self._head + salted_digest(body).encode() + b'"}'
        return Sealed(evidence=self._evidence, line=line, body=body, result=answer.value)


_GAP = "\x02"
_RESULT = b'{"facts":{},"result":'
_TEXT_MAX = RESULT_BYTES_MAX - len(_RESULT) - len(b"}")


def record(holder: Claimed | First, said: Sealed, contract: Contract, *, jitter: float) -> Plan[Operation]:
    """Make evidence durable for the holder of a claim; it reads nothing unless somebody wrote meanwhile."""
    end = rules.ordinary_end(said.evidence) if isinstance(holder, First) else None
    if end is not None:
        moved, columns, due_after = None, _ENDS[end], 0.0
    else:
        moved = _moved(holder, said.evidence, contract, jitter=jitter)
        columns, due_after = columns_of(moved.operation), moved.next.after_seconds
    settle = Settle(
        n=holder.n, id=holder.id, seq=holder.seq, head=holder.head, columns=columns, record=said.line, body=said.body,
        due_after=due_after,
    )  # fmt: skip
    try:
        reply = Stale() if moved is not None and _stayed(holder, moved.operation) else (yield settle)
        if type(reply) is not Settled:
            return (yield from amend(holder.id, said, contract, jitter=jitter))
    except (Exception, GeneratorExit):
        raise  # the store says where it waits, or nobody drives any more
    except BaseException:
        # Interrupted while it was being written, and somebody else may have written first: the same record twice is
        # one piece of evidence, and none is lost.
        with contextlib.suppress(CounterfoilError):
            yield from amend(holder.id, said, contract, jitter=jitter)
        raise
    if moved is None:
        return holder.ended(end, reply.at)  # type: ignore[union-attr, arg-type]
    due_at = reply.at + due_after if moved.next.step else 0.0
    return msgspec.structs.replace(moved.operation, updated_at=reply.at, due_at=due_at, seq=holder.seq + 1)


def _stayed(holder: Claimed | First, after: Operation) -> bool:
    """Nothing of what people were asked about has left: what they allowed may still be used, by the events' word."""
    asked = type(holder) is Claimed and holder.asked
    return asked and after.dispatch is Dispatch.NOT_STARTED and not after.unresolved


def _moved(holder: Claimed | First, evidence: Evidence, contract: Contract, *, jitter: float) -> rules.Moved:
    """What the fold makes of the whole operation."""
    claimed = holder.whole() if isinstance(holder, First) else holder
    follows = contract.follows if claimed.follows is None else claimed.follows
    return rules.advance(
        claimed.operation, claimed.attempts, claimed.discrepancy, evidence, contract, follows=follows, jitter=jitter
    )


def amend(operation: str, said: Sealed, contract: Contract, *, jitter: float) -> Plan[Operation]:
    """Append evidence to whatever stands there now: late and contradictory evidence is always accepted."""
    rule = rules.observe(said.evidence, said.line, said.body, contract, jitter=jitter)
    reply = yield Amend(operation=operation, rule=rule, record=said.line, body=said.body)
    if isinstance(reply, Amended | Declined) and reply.history is not None:
        return reply.history.operation
    raise AssertionError(f"an observation was answered with {type(reply).__name__}")


def append(operation: str, evidence: Evidence, contract: Contract, *, salt: bytes, jitter: float) -> Plan[Operation]:
    """Append evidence for one who holds no claim: a look, a recovery, an operator's finding."""
    return (yield from amend(operation, sealed(evidence, salt), contract, jitter=jitter))


def take(operation: str, line: bytes, body: bytes | None, contract: Contract) -> Plan[Operation]:
    """Append a record that was written down elsewhere; twice is once."""
    evidence = msgspec.json.decode(line, type=Evidence)
    return (yield from amend(operation, Sealed(evidence=evidence, line=line, body=body), contract, jitter=0.0))
