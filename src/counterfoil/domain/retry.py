"""The retry decision: may another attempt be dispatched, and on which basis."""

from __future__ import annotations

from typing import assert_never

import msgspec

from counterfoil.domain.attempt import Attempt
from counterfoil.domain.contract import KEYED, Contract
from counterfoil.domain.fence import fenced
from counterfoil.domain.patience import ATTEMPTS_MAX, PATIENCE, TOO_MANY, against_repeat
from counterfoil.domain.sure import is_sure
from counterfoil.domain.terms import OneShot
from counterfoil.domain.words import AttemptClass, Basis, Discrepancy, Finding

RETENTION_SECONDS_MIN = 24 * 3600
"""Without an assumed longest delivery a shorter retention leaves no room for a late first request."""
RETENTION_SHARE = 4
"""Without that assumption a key is trusted for a quarter of its retention, the rest is for lateness."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a retry decision rests on; nothing else may influence it."""

    contract: Contract
    attempts: tuple[Attempt, ...]
    discrepancy: Discrepancy
    now: float
    """Seconds since the epoch, by the store's clock."""
    elapsed: float | None = None
    """Seconds since the first claim, by a clock that nobody can set; None where none tells."""
    longest_delivery: float | None = None
    """Seconds, as the deployment assumes them; None where nobody does."""
    one_shot: OneShot = OneShot.NO
    """What the policy says of it, beside the contract."""
    kernel_bounded: bool = False
    """Every attempt was, and the next will be, sent under a deadline the kernel enforces."""


class RetryDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Allowed on one basis, or refused; `because` says why in fixed sentences either way."""

    allowed: bool
    basis: Basis | None = None
    attempt_class: AttemptClass | None = None
    because: tuple[str, ...] = ()


NO_ATTEMPT = "nothing was attempted yet, so this would not be another attempt"
DONE = "the effect took place or was accepted"
CONTRADICTED = "evidence contradicts evidence and nobody has settled it"
ONE_SHOT = "the contract allows one shot only"
OVERRIDE_ONLY = "the policy allows one shot: what may have left goes again on nothing but an override"
ABSOLUTE = "the policy allows one shot only, whatever a person decides"
MAY_HAVE_LEFT = "an attempt may have left"
NOT_QUIESCED = "a worker of an earlier attempt may still write"
CLOCK_WENT_BACK = "the clock reads earlier than the first attempt"
IN_FLIGHT = "an attempt has not been reported on, and its time is not over"
NO_KEY = "the contract documents no key that keeps a repeat from being a second effect"
REPEAT_UNSAFE = "the contract does not document that a repeat with the same key is safe"
RETENTION_UNKNOWN = "the contract does not document how long the key protects"
RETENTION_SHORT = "without an assumed longest_delivery the key must be kept for at least 24 hours"
RETENTION_OVER = "the time within which the key surely protects is over"
NOTHING_OPEN = "no attempt is unresolved, so a repeat could only return what is known"
USED_UP = "the attempts the contract grants without a person are used up"
NOT_ABSENT = "absence is not proven for every attempt that may have left"
NOT_BOUNDED = "the sender's deadline is not enforced by the kernel"
NOT_REJECTED = "not every attempt that left was rejected without effect"
FENCED = "a fence may stand where it would go: the same write cannot take place there any more"
NEEDS_PERSON = "this basis is never taken without a person"
ASK = "only not_sent lets the same call dispatch again; any other basis is asked for by name or taken by the worker"

ALLOWED = {
    Basis.NOT_SENT: "every attempt is proven not to have left",
    Basis.SAME_KEY_REPLAY: "the provider documents that the same key has no second effect, and it still protects",
    Basis.ABSENCE_PROVEN: "the effect of every attempt that may have left is proven absent",
    Basis.REJECTED_WITHOUT_EFFECT: "every attempt that left was rejected without effect",
    Basis.OPERATOR_OVERRIDE: "a person with that permission decided it",
}

CLASS_OF = {
    Basis.NOT_SENT: AttemptClass.AFTER_NOT_SENT,
    Basis.SAME_KEY_REPLAY: AttemptClass.SAME_KEY,
    Basis.ABSENCE_PROVEN: AttemptClass.AFTER_ABSENCE,
    Basis.REJECTED_WITHOUT_EFFECT: AttemptClass.OVERRIDE,
    Basis.OPERATOR_OVERRIDE: AttemptClass.OVERRIDE,
}
"""What an approval must allow; a rejection answered by another try is a person's decision."""

_AUTOMATIC = (Basis.NOT_SENT, Basis.SAME_KEY_REPLAY, Basis.ABSENCE_PROVEN)


def decide_retry(situation: Situation, *, automatic: bool, basis: Basis | None = None) -> RetryDecision:
    """Allow another attempt on one basis, or refuse and say why.

    Args:
        situation: what is known; every attempt there was.
        automatic: no person asked: the worker acts within what the contract grants.
        basis: the one basis to judge; None tries `not_sent`, and for a worker the automatic ones after it.
    """
    refused = _never(situation)
    if refused:
        return RetryDecision(allowed=False, because=refused)
    if (automatic or basis is None) and len(situation.attempts) >= ATTEMPTS_MAX:
        return RetryDecision(allowed=False, because=(TOO_MANY,))
    candidates = (basis,) if basis else (_AUTOMATIC if automatic else (Basis.NOT_SENT,))
    because: list[str] = []
    for candidate in candidates:
        against = _against(candidate, situation, automatic=automatic)
        if not against:
            return RetryDecision(
                allowed=True, basis=candidate, attempt_class=CLASS_OF[candidate], because=(ALLOWED[candidate],)
            )
        if against in PATIENCE:  # this basis holds, and nothing but its time is not there: no other needs naming
            return RetryDecision(allowed=False, because=against)
        because += [reason for reason in against if reason not in because]
    if basis is None and not automatic:
        because.append(ASK)
    return RetryDecision(allowed=False, because=tuple(because))


def _never(situation: Situation) -> tuple[str, ...]:
    """What forbids every basis alike."""
    findings = {a.finding for a in situation.attempts}
    failed = {
        NO_ATTEMPT: not situation.attempts,
        DONE: bool(findings & {Finding.SUCCEEDED, Finding.ACCEPTED}),
        CONTRADICTED: situation.discrepancy is Discrepancy.OPEN,
        ONE_SHOT: situation.contract.one_shot and findings != {Finding.NOT_SENT},
        ABSOLUTE: situation.one_shot is OneShot.ABSOLUTE and findings != {Finding.NOT_SENT},
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def _against(basis: Basis, situation: Situation, *, automatic: bool) -> tuple[str, ...]:
    if situation.one_shot is not OneShot.NO and basis not in (Basis.OPERATOR_OVERRIDE, Basis.NOT_SENT):
        return (OVERRIDE_ONLY,)
    if fenced(situation.attempts) and basis is not Basis.OPERATOR_OVERRIDE:
        return (FENCED,)
    match basis:
        case Basis.NOT_SENT:
            return _against_not_sent(situation, automatic=automatic)
        case Basis.SAME_KEY_REPLAY:
            return _against_replay(situation, automatic=automatic)
        case Basis.ABSENCE_PROVEN:
            return _against_absence(situation, automatic=automatic)
        case Basis.REJECTED_WITHOUT_EFFECT:
            return _against_rejected(situation, automatic=automatic)
        case Basis.OPERATOR_OVERRIDE:
            return (NEEDS_PERSON,) if automatic else ()
        case _ as never:
            assert_never(never)


def _against_not_sent(situation: Situation, *, automatic: bool) -> tuple[str, ...]:
    failed = {
        MAY_HAVE_LEFT: any(a.finding is not Finding.NOT_SENT for a in situation.attempts),
        NOT_QUIESCED: automatic and not _quiesced(situation),
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def _against_replay(situation: Situation, *, automatic: bool) -> tuple[str, ...]:
    contract = situation.contract
    eternal = _retention(contract) == "never_expires"
    failed = {
        NOTHING_OPEN: not any(a.open for a in situation.attempts),
        # Also where the key protects for ever: whoever recovers it first records that it is unknown.
        IN_FLIGHT: any(a.finding is None for a in situation.attempts),
        NO_KEY: contract.protection.kind not in KEYED,
        REPEAT_UNSAFE: not (contract.repeat.safe and is_sure(contract, contract.repeat)),
        NOT_QUIESCED: not (eternal or _quiesced(situation)),
        USED_UP: automatic and _used(situation, AttemptClass.SAME_KEY) >= contract.automatic_attempts.same_key_replay,
    }
    against = tuple(reason for reason, fails in failed.items() if fails) + _against_retention(situation)
    # Only where nothing else is against it: what waits is not due yet, and goes then.
    if against or not automatic:
        return against
    return against_repeat(situation.attempts, contract.read_budget, situation.now)


def _against_retention(situation: Situation) -> tuple[str, ...]:
    retention = _retention(situation.contract)
    if retention == "never_expires":
        return ()
    if isinstance(retention, str):
        return (RETENTION_UNKNOWN,)
    age = situation.now - min(a.started_at for a in situation.attempts)
    if age < 0:
        return (CLOCK_WENT_BACK,)
    age = max(age, situation.elapsed or 0.0)  # a clock that was set back makes no key younger
    if situation.longest_delivery is not None:
        room = retention - situation.longest_delivery - situation.contract.send_deadline_seconds
        return () if age <= room else (RETENTION_OVER,)
    if retention < RETENTION_SECONDS_MIN:
        return (RETENTION_SHORT,)
    return () if age <= retention / RETENTION_SHARE else (RETENTION_OVER,)


def _retention(contract: Contract) -> float | str:
    """How long the key protects, as far as the source that says so is to be believed."""
    return contract.protection.retention_seconds if is_sure(contract, contract.protection) else "unknown"


def _against_absence(situation: Situation, *, automatic: bool) -> tuple[str, ...]:
    findings = {a.finding for a in situation.attempts} - {Finding.NOT_SENT}
    enough = {Finding.ABSENT} if automatic else {Finding.ABSENT, Finding.REJECTED}
    failed = {
        NOT_ABSENT: Finding.ABSENT not in findings or not findings <= enough,
        NOT_QUIESCED: not _quiesced(situation),
        NOT_BOUNDED: automatic and not situation.kernel_bounded,
        USED_UP: automatic
        and _used(situation, AttemptClass.AFTER_ABSENCE) >= situation.contract.automatic_attempts.absence_proven,
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def _against_rejected(situation: Situation, *, automatic: bool) -> tuple[str, ...]:
    findings = {a.finding for a in situation.attempts} - {Finding.NOT_SENT}
    failed = {
        NEEDS_PERSON: automatic,
        NOT_REJECTED: Finding.REJECTED not in findings or not findings <= {Finding.REJECTED, Finding.ABSENT},
    }
    return tuple(reason for reason, fails in failed.items() if fails)


def _quiesced(situation: Situation) -> bool:
    return all(a.quiesced for a in situation.attempts)


def _used(situation: Situation, attempt_class: AttemptClass) -> int:
    """An attempt that never left gives its use back."""
    return sum(1 for a in situation.attempts if a.attempt_class is attempt_class and a.finding is not Finding.NOT_SENT)
