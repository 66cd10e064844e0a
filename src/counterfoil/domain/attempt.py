"""One numbered dispatch of an operation, and how evidence moves it.

Outcome is a fold over the evidence of all attempts: nothing here reads a clock, and nothing a timer,
a budget or a cancellation does can change what `settle` computed.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from counterfoil.domain.evidence import Evidence
from counterfoil.domain.words import AttemptClass, Coverage, Discrepancy, Dispatch, Finding, Outcome, Source


class Attempt(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What is known of one try: `finding` is None while nobody has reported back."""

    number: int
    """1-based, dense."""
    token: str
    """Proof that a writer still speaks for this attempt; never goes back."""
    attempt_class: AttemptClass = AttemptClass.FIRST
    started_at: float = 0.0
    """Seconds since the epoch, by the store's clock inside the claim; filled in from the claim's event."""
    send_seconds: float = 0.0
    """How long after its claim the sender may still write."""
    worker: str = ""
    """The registered process that claimed it."""
    approval: int = 0
    """Number of the event that approved it; 0 where nobody had to."""
    finding: Finding | None = None
    quiesced: bool = False
    """Its worker reported back or is proven dead: it cannot write any more."""
    external_id: str = ""

    @property
    def deadline(self) -> float:
        """Seconds since the epoch after which the sender must not write."""
        return self.started_at + self.send_seconds

    @property
    def open(self) -> bool:
        """It may have left and nothing settled it: this is one unit of exposure."""
        return self.finding is None or self.finding is Finding.UNKNOWN

    @property
    def left(self) -> bool:
        """Nobody has reported on it, or nobody has said that its sender is quiet."""
        return self.finding is None or (self.finding is Finding.UNKNOWN and not self.quiesced)


NO_EFFECT = frozenset({Finding.NOT_SENT, Finding.REJECTED, Finding.ABSENT})
"""Findings that say: this attempt did nothing."""
HAPPENED = frozenset({Finding.SUCCEEDED, Finding.ACCEPTED})
"""Findings that say: the effect took place, or will."""


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """The columns that follow from all attempts together."""

    dispatch: Dispatch
    outcome: Outcome
    exposure: int
    unresolved: bool


def settle(attempts: tuple[Attempt, ...], evidence: Evidence) -> tuple[tuple[Attempt, ...], bool]:
    """Return the attempts after one more piece of evidence, and whether it contradicts an earlier one.

    Positive proof is never lowered; a rejection of one attempt never touches another (invariant 6).
    """
    covered = _covered(attempts, evidence)
    contradicts = False
    moved: list[Attempt] = []
    for attempt in attempts:
        # Who reported back is the attempt that was answered, whomever else the answer speaks for: the worker of an
        # earlier attempt with the same provider key may still write.
        quiesced = attempt.quiesced or (evidence.quiesced and attempt.number == evidence.attempt)
        finding, external_id = attempt.finding, attempt.external_id
        if attempt.open and attempt.attempt_class is AttemptClass.FENCE and evidence.finding in HAPPENED:
            finding = Finding.REJECTED  # the original landed: whatever becomes of the fence, it has lost
        elif attempt.number in covered:
            finding, conflict = _move(attempt, evidence)
            if conflict and _was_another(attempts, attempt, evidence):
                finding, conflict, external_id = evidence.finding, False, ""
            contradicts = contradicts or conflict
            named = finding is evidence.finding or evidence.source is Source.SENDER
            external_id = external_id or (evidence.external_id if named else "")
        moved.append(msgspec.structs.replace(attempt, finding=finding, quiesced=quiesced, external_id=external_id))
    return tuple(moved), contradicts


def _covered(attempts: tuple[Attempt, ...], evidence: Evidence) -> frozenset[int]:
    if evidence.finding in (Finding.NOT_SENT, Finding.UNKNOWN):
        return frozenset({evidence.attempt})  # what one sender knows of its own bytes says nothing of another's
    fences = [a.number for a in attempts if a.attempt_class is AttemptClass.FENCE]
    if fences and evidence.finding in HAPPENED:  # a fence causes no effect
        attempts = tuple(a for a in attempts if a.number not in fences)
        if not attempts:
            return frozenset()
        if evidence.attempt in fences:
            evidence = msgspec.structs.replace(evidence, attempt=attempts[-1].number)
    match evidence.coverage:
        case Coverage.ATTEMPT:
            return frozenset({evidence.attempt})
        case Coverage.PROVIDER_KEY:
            return _covered_by_key(attempts, evidence)
        case Coverage.OPERATION:
            return _covered_by_operation(attempts, evidence)
        case _ as never:
            assert_never(never)


def _covered_by_key(attempts: tuple[Attempt, ...], evidence: Evidence) -> frozenset[int]:
    """Every attempt carries the same provider key: one effect explains all that may have caused it.

    An attempt that is known to have done nothing did not cause it, and is no contradiction beside one that may have.
    """
    if evidence.finding in HAPPENED:
        causes = frozenset(a.number for a in attempts if a.finding not in NO_EFFECT)
        return causes or frozenset({evidence.attempt})
    return _known_then(attempts, evidence)


def _covered_by_operation(attempts: tuple[Attempt, ...], evidence: Evidence) -> frozenset[int]:
    """One effect that is found explains one attempt; a proof that nothing happened speaks for all."""
    if evidence.finding in HAPPENED:
        proven = [a.number for a in attempts if a.finding is Finding.SUCCEEDED]
        waiting = [a.number for a in attempts if a.open or a.finding is Finding.ACCEPTED]
        return frozenset((proven or waiting or [attempts[-1].number])[:1])
    return _known_then(attempts, evidence)


def _known_then(attempts: tuple[Attempt, ...], evidence: Evidence) -> frozenset[int]:
    """What says that nothing happened speaks of no attempt that began after it was asked.

    It may be recorded long after it was seen; `evidence.attempt` is the last one that there was then.
    """
    return frozenset(a.number for a in attempts if a.number <= evidence.attempt)


def _move(attempt: Attempt, evidence: Evidence) -> tuple[Finding | None, bool]:
    """The attempt's next finding, and whether the two contradict each other."""
    old, new = attempt.finding, evidence.finding
    if new is Finding.UNKNOWN:
        # A look that found nothing out says nothing of a sender that has not reported back, nor does a document; and a
        # sender that names its write has not finished it.
        reported = evidence.source not in (Source.LOOK, Source.SENDER) and not evidence.fed
        return (old or Finding.UNKNOWN) if reported else old, False
    if old is None or old is Finding.UNKNOWN or old is new:
        return new, _other_object(attempt, evidence)
    match old, new:
        case (Finding.ACCEPTED, Finding.SUCCEEDED | Finding.REJECTED):
            return new, False
        case (Finding.SUCCEEDED, Finding.ACCEPTED):
            return old, False
        case (_, Finding.SUCCEEDED | Finding.ACCEPTED):
            return new, True  # nothing was said to have happened, and yet it did
        case (Finding.SUCCEEDED | Finding.ACCEPTED, _):
            return old, True  # proof stays; what denies it opens a discrepancy
        case _:
            return old, False  # two ways of saying that nothing happened


def _was_another(attempts: tuple[Attempt, ...], attempt: Attempt, evidence: Evidence) -> bool:
    """An attempt says of itself that it did nothing, and the effect that was laid to it stands for another one too.

    One effect under a key is laid to every attempt that may have caused it. Which of them did not cause it may be known
    before or after that, and contradicts nothing while another one is left that may have. That what was asked for took
    place stands for no attempt that was merely accepted: the proof would be lost.
    """
    own = evidence.finding in (Finding.NOT_SENT, Finding.REJECTED) and evidence.coverage is Coverage.ATTEMPT
    as_good = {Finding.SUCCEEDED} if attempt.finding is Finding.SUCCEEDED else HAPPENED
    others = (a for a in attempts if a.number != attempt.number and a.finding in as_good)
    return own and bool(attempt.external_id) and any(a.external_id == attempt.external_id for a in others)


def _other_object(attempt: Attempt, evidence: Evidence) -> bool:
    """Two different provider objects answer for one attempt: one of them nobody asked for."""
    return bool(
        attempt.finding is Finding.SUCCEEDED
        and attempt.external_id
        and evidence.external_id
        and attempt.external_id != evidence.external_id
    )


def contradiction(
    before: Discrepancy, evidence: Evidence, after: tuple[Attempt, ...], *, contradicts: bool
) -> Discrepancy:
    """Whether evidence contradicts evidence after one more piece; only a person's finding settles that it did.

    Args:
        before: whether it did.
        evidence: the piece.
        after: the attempts as it left them.
        contradicts: it denies what was known of one of them.
    """
    found = evidence.settles and evidence.source is Source.OPERATOR and is_kept(evidence, after)
    if found and before is Discrepancy.OPEN:
        return Discrepancy.SETTLED
    return Discrepancy.OPEN if contradicts or evidence.contradicts else before


def is_kept(evidence: Evidence, after: tuple[Attempt, ...]) -> bool:
    """The outcome that stands is the one it says; what is said against proof settles nothing, however often."""
    return _outcome({a.finding for a in after}, Discrepancy.SETTLED).value == evidence.finding.value


def fold(attempts: tuple[Attempt, ...], discrepancy: Discrepancy, *, follows: bool) -> Fold:
    """Compute dispatch, outcome, exposure and whether the operation is unresolved.

    Args:
        attempts: every attempt there was, in order.
        discrepancy: whether evidence contradicts evidence.
        follows: the contract names a later terminal observation, so `accepted` is not the end.
    """
    findings = {a.finding for a in attempts}
    outcome = _outcome(findings, discrepancy)
    exposure = sum(1 for a in attempts if a.open)
    pending = follows and outcome is Outcome.ACCEPTED
    return Fold(
        dispatch=_dispatch(attempts),
        outcome=outcome,
        exposure=exposure,
        unresolved=exposure > 0 or pending or discrepancy is Discrepancy.OPEN,
    )


def _outcome(findings: set[Finding | None], discrepancy: Discrepancy) -> Outcome:
    if Finding.SUCCEEDED in findings:
        return Outcome.SUCCEEDED
    if Finding.UNKNOWN in findings or discrepancy is Discrepancy.OPEN:
        return Outcome.UNKNOWN
    if None in findings:
        return Outcome.UNOBSERVED
    if Finding.ACCEPTED in findings:
        return Outcome.ACCEPTED
    if Finding.REJECTED in findings or Finding.ABSENT in findings:
        return Outcome.REJECTED
    return Outcome.UNOBSERVED


def _dispatch(attempts: tuple[Attempt, ...]) -> Dispatch:
    left = [a for a in attempts if a.finding is not Finding.NOT_SENT]
    if not left:
        return Dispatch.NOT_STARTED
    if all(a.quiesced or not a.open for a in left):
        return Dispatch.COMPLETED
    return Dispatch.STARTED
