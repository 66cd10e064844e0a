"""Mutants of what an answer proves, and of what all attempts come to together."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.domain.words import Finding


def _judged_as(changes: Any) -> None:
    """Have the judge's evidence changed by `changes(answer, evidence)` wherever it is used."""
    from counterfoil.plans import observing

    changed: Any = observing
    judge = changed.judge

    def judged(contract: Any, answer: Any, attempt: int, effect: str, payload: bytes = b"") -> Any:
        evidence = judge(contract, answer, attempt, effect, payload)
        finding = changes(answer, evidence)
        if finding is None:
            return evidence
        named = {"effect": effect} if finding is Finding.SUCCEEDED else {}
        return msgspec.structs.replace(evidence, finding=finding, **_misread(contract, finding), **named)

    changed.judge = judged


def _misread(contract: Any, finding: Finding) -> dict[str, Any]:
    """The clause that would have proven it: a product that misreads an answer names one of its contract's own.

    Any other name would give the mutant away, and then nothing would show that the misreading itself is noticed.
    """
    if not contract.answers:  # a guarded function's, of which only silence is misread
        return {"rule": "function.refused"}
    proving = (place for place, clause in enumerate(contract.answers) if clause.finding == finding.value)
    place = next(proving, 0)
    clause = contract.answers[place]
    return {"rule": f"answers[{place}]", "coverage": clause.coverage, "reason": clause.means or ""}


def timeout_is_rejected() -> None:
    """Call silence a failure."""
    from counterfoil.domain.answer import Silent

    def changes(answer: Any, evidence: Any) -> Finding | None:
        return Finding.REJECTED if isinstance(answer, Silent) and evidence.finding is Finding.UNKNOWN else None

    _judged_as(changes)


def error_is_rejected() -> None:
    """Call a server's error a failure."""
    _judged_as(lambda answer, _: Finding.REJECTED if _status(answer) >= INTERNAL else None)


def bad_json_is_success() -> None:
    """Believe a status line whose body nobody can read."""
    from counterfoil.domain import body

    def changes(answer: Any, _: Any) -> Finding | None:
        ok = _status(answer) in (OK, CREATED) and answer.complete
        return Finding.SUCCEEDED if ok and not body.parse(answer.body).ok else None

    _judged_as(changes)


def status_line_is_success() -> None:
    """Believe the status line of an answer that broke off."""
    _judged_as(lambda answer, _: Finding.SUCCEEDED if _status(answer) == CREATED and not answer.complete else None)


def accepted_is_success() -> None:
    """Take 202 for done."""
    _judged_as(lambda answer, _: Finding.SUCCEEDED if _status(answer) == ACCEPTED else None)


OK, CREATED, ACCEPTED, INTERNAL = 200, 201, 202, 500


def _status(answer: Any) -> int:
    """Of a reply; 0 of anything else."""
    return int(getattr(answer, "status", 0))


def last_rejection_wins() -> None:
    """Let the newest attempt speak for all of them."""
    _folded_from(Finding.REJECTED)


def not_sent_is_ready() -> None:
    """Forget what may have left as soon as a later attempt did not."""
    _folded_from(Finding.NOT_SENT)


def _folded_from(word: Finding) -> None:
    """Have nothing but the last attempt count where it came to that."""
    from counterfoil.domain import rules

    changed: Any = rules
    fold = changed.fold
    changed.fold = lambda attempts, discrepancy, *, follows: fold(
        attempts[-1:] if attempts and attempts[-1].finding is word else attempts, discrepancy, follows=follows
    )


def absent_overwrites_found() -> None:
    """Let whatever was said last be true."""
    from counterfoil.domain import attempt

    move = attempt._move  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = attempt

    def moved(one: Any, evidence: Any) -> tuple[Any, bool]:
        if evidence.finding in (Finding.ABSENT, Finding.REJECTED):
            return evidence.finding, False
        return move(one, evidence)

    changed._move = moved  # noqa: SLF001 - likewise


def late_evidence_dropped() -> None:
    """Hear nothing of an attempt that somebody has spoken of already."""
    from counterfoil.domain import rules
    from counterfoil.domain.command import Declined
    from counterfoil.domain.event import attempts_of
    from counterfoil.domain.words import Source

    observe = rules.observe
    changed: Any = rules

    def observed(evidence: Any, *given: Any, **named: Any) -> Any:
        rule = observe(evidence, *given, **named)

        def judged(history: Any, now: float) -> Any:
            attempts, _ = attempts_of(history.events)
            late = evidence.source is Source.LATE_ANSWER and attempts[evidence.attempt - 1].finding is not None
            return Declined(because=("it is too late",)) if late else rule(history, now)

        return judged

    changed.observe = observed


def stale_sweep() -> None:
    """Let an old look speak of attempts that began after it."""
    from counterfoil.domain import attempt

    changed: Any = attempt
    changed._known_then = lambda attempts, _: frozenset(a.number for a in attempts)  # noqa: SLF001 - likewise


def sigterm_is_cancelled() -> None:
    """Call what was interrupted cancelled."""
    from counterfoil.domain.answer import Silent
    from counterfoil.plans.effects import Flight

    changed: Any = Flight
    changed.interrupted = lambda _, reason: Silent(may_have_left=False, reason=reason)


def exception_only() -> None:
    """Record nothing where something else than an Exception cuts a send short."""
    from counterfoil.plans import dispatch

    send = dispatch.send
    changed: Any = dispatch

    def sent(*given: Any, **named: Any) -> Any:
        plan = send(*given, **named)
        effect = next(plan)
        while True:
            try:
                reply = yield effect
            except Exception as error:  # noqa: BLE001 - it is handed on
                effect = plan.throw(error)
            except BaseException:
                plan.close()
                raise
            else:
                try:
                    effect = plan.send(reply)
                except StopIteration as stop:
                    return stop.value

    changed.send = sent


def answer_not_insisted() -> None:
    """Give an answer up as soon as the store does not take it."""
    from counterfoil.domain.errors import NotRecorded
    from counterfoil.runtime.executor import Executor

    changed: Any = Executor

    def given_up(self: Any, command: Any, operation: str, record: bytes, body: bytes | None) -> Any:
        del self, command, record, body
        raise NotRecorded(operation, spooled=False)

    changed._insist = given_up  # noqa: SLF001 - a mutant replaces what nobody may call


def duplicate_is_one() -> None:
    """Take the first of several things under one name, and say nothing of the others."""
    from counterfoil.domain import reading
    from counterfoil.domain.reading import ReadingKind

    verdict = reading._verdict  # noqa: SLF001 - likewise
    changed: Any = reading

    def read(look: Any, page: Any, mine: Any, *given: Any) -> Any:
        found = verdict(look, page, mine, *given)
        return verdict(look, page, mine[:1], *given) if found.kind is ReadingKind.DUPLICATE else found

    changed._verdict = read  # noqa: SLF001 - likewise
