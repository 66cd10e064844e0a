"""Fences: a write whose only effect is to make the original impossible; when one may be sent, and what it proves.

A fence is an attempt of a class of its own, and never a cause of the effect. It proves absence only by the provider's
answer that it, and not the original, won.
"""

from __future__ import annotations

from counterfoil.domain import body, reply
from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import Contract, Fence
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.sure import is_sure
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import AttemptClass, Coverage, Discrepancy, Finding, Source

NO_FENCE = "the contract names no such fence"
UNSURE = "what the contract says of it is inferred or unknown: whatever is answered, it would prove nothing"
FORBIDDEN = "its destination is not to be touched again: the contract or the policy forbids it"
HAPPENED = "the effect took place or was accepted, and no fence undoes it"
CONTRADICTED = "evidence contradicts evidence and nobody has settled it"
UNREPORTED = "an attempt has not been reported on: it may be on its way, and is not to be cut off"
NOTHING_OPEN = "nothing is unresolved that a fence could make impossible"
NO_REASON = "a fence is a person's decision, and gives its reason"


def is_fence(attempt: Attempt) -> bool:
    """It makes the original impossible, and is not the effect."""
    return attempt.attempt_class is AttemptClass.FENCE


def fenced(attempts: tuple[Attempt, ...]) -> bool:
    """A fence may stand where the effect would go."""
    return any(is_fence(a) and a.finding is not Finding.NOT_SENT for a in attempts)


def against_fence(
    contract: Contract,
    index: int,
    attempts: tuple[Attempt, ...],
    discrepancy: Discrepancy,
    *,
    one_shot: OneShot,
    reason: str,
) -> tuple[str, ...]:
    """Why this fence may not be sent now, in fixed sentences; empty where nothing but a permission is missing.

    Args:
        contract: names the fences, and whether its destination may be touched at all.
        index: which of them, from 0.
        attempts: every attempt there was.
        discrepancy: whether evidence contradicts evidence.
        one_shot: what the policy says of further touches.
        reason: why a person asks for it.
    """
    findings = {a.finding for a in attempts}
    failed = {
        NO_FENCE: not 0 <= index < len(contract.fences),
        UNSURE: 0 <= index < len(contract.fences) and not is_sure(contract, contract.fences[index]),
        FORBIDDEN: contract.reconcile != "allowed" or contract.one_shot or one_shot is not OneShot.NO,
        HAPPENED: bool(findings & {Finding.SUCCEEDED, Finding.ACCEPTED}),
        CONTRADICTED: discrepancy is Discrepancy.OPEN,
        UNREPORTED: None in findings,
        NOTHING_OPEN: not any(a.open for a in attempts),
        NO_REASON: not reason,
    }
    return tuple(sentence for sentence, fails in failed.items() if fails)


def judge_fence(contract: Contract, index: int, answer: Answer, attempt: int) -> Evidence:
    """Say what the answer to a fence proves: that it won, that it lost, or nothing.

    Args:
        contract: whose fence it is.
        index: which one.
        answer: what the wire said.
        attempt: the fence's own number (1-based).
    """
    if isinstance(answer, Silent):
        finding = Finding.UNKNOWN if answer.may_have_left else Finding.NOT_SENT
        return Evidence(source=Source.TRANSPORT, finding=finding, attempt=attempt, quiesced=True, reason=answer.reason)
    if not isinstance(answer, Replied) or not answer.complete:
        return _said(answer, attempt, Finding.UNKNOWN, reason="answer_cut")
    fence = contract.fences[index]
    if not is_sure(contract, fence):
        return _said(answer, attempt, Finding.UNKNOWN, reason="unsure_source")
    if _won(fence, answer):
        return _said(answer, attempt, Finding.ABSENT, rule=f"fences[{index}].won", coverage=Coverage.OPERATION)
    if reply.matches(answer.status, fence.lost):
        return _said(answer, attempt, Finding.REJECTED, rule=f"fences[{index}].lost", reason="first_landed")
    return _said(answer, attempt, Finding.UNKNOWN, reason="no_rule")


def _won(fence: Fence, answer: Replied) -> bool:
    if not reply.matches(answer.status, fence.won):
        return False
    carried = {name: reply.header(answer, name) for name in fence.headers}
    if any(not carried[name] or value not in ("*", carried[name]) for name, value in fence.headers.items()):
        return False
    parsed = body.parse(answer.body) if fence.where else body.Parsed(ok=True)
    return parsed.ok and all(body.same(body.at(parsed.value, at), value) for at, value in fence.where.items())


def _said(
    answer: Answer, attempt: int, finding: Finding, *, rule: str = "", reason: str = "",
    coverage: Coverage = Coverage.ATTEMPT,
) -> Evidence:  # fmt: skip
    facts: dict[str, object] = {"status": answer.status} if isinstance(answer, Replied) else {}
    return Evidence(
        source=Source.ANSWER, finding=finding, attempt=attempt, coverage=coverage, quiesced=True, rule=rule,
        reason=reason, facts=facts,
    )  # fmt: skip
