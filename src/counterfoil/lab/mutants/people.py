"""Mutants of what people decide: what they allowed, until when, and what they gave up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def approval_not_bound() -> None:
    """Take an approval for whatever is asked now, as where people approve a summary."""
    from counterfoil.domain import permission

    judge: Any = permission
    judge.changed = lambda *_: ()


def expiry_ignored() -> None:
    """Let what was approved once be approved for good."""
    from counterfoil.domain import permission

    judge: Any = permission
    judge.expiry = lambda *_: None


def approval_before_claim() -> None:
    """Judge an approval when it is read, before the claim's transaction: what is decided in between comes too late."""
    from counterfoil.domain import rules
    from counterfoil.domain.event import EventKind, History
    from counterfoil.plans import dispatch

    sought, claim_again, read = dispatch._sought, rules.claim_again, dict[str, History]()  # noqa: SLF001 - likewise

    def attempted(history: History) -> int:
        return sum(event.kind is EventKind.BEGUN for event in history.events)

    def seen(order: Any, history: History, *, automatic: bool) -> Any:
        read[history.operation.id] = history
        return sought(order, history, automatic=automatic)

    def claimed(*given: Any, **named: Any) -> Any:
        rule = claim_again(*given, **named)

        def judged(history: History, now: float) -> Any:
            early = read.get(history.operation.id, history)
            return rule(early if attempted(early) == attempted(history) else history, now)

        return judged

    dispatch._sought, rules.claim_again = seen, claimed  # noqa: SLF001 - likewise


def _without(reason: str) -> Callable[[Callable[..., tuple[str, ...]]], Callable[..., tuple[str, ...]]]:
    """Turn one reason of a judge off."""

    def turned(judge: Callable[..., tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
        return lambda *given, **named: tuple(said for said in judge(*given, **named) if reason not in said)

    return turned


def approver_is_requester() -> None:
    """Let whoever asks answer, at the door and where answers are counted."""
    from counterfoil.domain import approval, consent

    judge: Any = consent
    judge.not_entitled = _without("asked for it")(judge.not_entitled)
    fold: Any = approval
    counted = fold.distinct
    fold.distinct = lambda names, **_: counted(names)


def two_clicks_two_people() -> None:
    """Count whoever approves twice as two people."""
    from counterfoil.domain import consent

    judge: Any = consent
    judge._against_approval = _without("has approved it already")(judge._against_approval)  # noqa: SLF001 - likewise


def abandon_does_not_block() -> None:
    """Send what people gave up as if they had not."""
    from counterfoil.domain import override, rules

    given_up = _without("was abandoned")
    rules._against_claim = given_up(rules._against_claim)  # noqa: SLF001 - likewise
    override._against_further = given_up(override._against_further)  # noqa: SLF001 - likewise


def override_reusable() -> None:
    """Let one override stand for every later attempt."""
    from counterfoil.domain import override
    from counterfoil.domain.decision import Verb
    from counterfoil.domain.event import Decided, Event, EventKind

    deciders = override._deciders  # noqa: SLF001 - likewise

    def counted(events: tuple[Event, ...], verb: Verb) -> tuple[Decided, ...]:
        unused = tuple(event for event in events if event.kind is not EventKind.BEGUN)
        return deciders(unused if verb is Verb.OVERRIDE else events, verb)

    override._deciders = counted  # noqa: SLF001 - likewise


def decided_unseen() -> None:
    """Let a person decide on what changed after they had seen it."""
    import msgspec

    from counterfoil.domain import care, consent, override
    from counterfoil.domain.decision import decided

    def seen_now(who: Any, *given: Any, **named: Any) -> Any:
        def rule(history: Any, now: float) -> Any:
            seeing = msgspec.structs.replace(who, seen=history.operation.seq)
            return decided(seeing, *given, **named)(history, now)

        return rule

    for module in (care, consent, override):
        place: Any = module
        place.decided = seen_now


def chain_skips_tail() -> None:
    """Follow the chain as far as it goes, and not ask whether it goes as far as the row says."""
    from counterfoil.domain import audit

    links = audit._Walk.links  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = audit._Walk  # noqa: SLF001 - likewise

    def followed(self: Any, history: Any) -> None:
        links(self, history)
        self.found = [violation for violation in self.found if "and the last is" not in violation.problem]

    changed.links = followed
