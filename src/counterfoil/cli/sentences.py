"""What a decision on record says, on one line: by whom, and what came of it."""

from __future__ import annotations

from counterfoil.cli.hint import WHO, Hints
from counterfoil.cli.marks import moment
from counterfoil.cli.terminal import clipped
from counterfoil.domain.approval import authority_of, decided_of, proposed_of
from counterfoil.domain.decision import Verb
from counterfoil.domain.event import Decided, Event, EventKind, History
from counterfoil.domain.operation import Operation
from counterfoil.domain.override import override_share, release_share
from counterfoil.domain.words import Basis

TEXT_COLUMNS = 400
"""Of one text from outside; the JSON has all of it."""


def decision(event: Event, nth: int = 0) -> str:
    """What one `decided` event records.

    Args:
        event: the event.
        nth: which of the people it takes decided it so; 0 where that is not counted.
    """
    said = decided_of(event)
    line = f"{_clause(said, nth)} by {_clip(said.by)}"
    return f"{line}: {_clip(said.reason)}" if said.reason else line


_PLAIN = {
    Verb.DENY.value: "denied",
    Verb.REVOKE.value: "revoked",
    Verb.EXPIRE.value: "expired",
    Verb.ABANDON.value: "abandoned",
}


def _clause(said: Decided, nth: int = 0) -> str:
    match said.decision:
        case Verb.APPROVE.value:
            return f"approved{_share(said, nth)}"
        case Verb.OVERRIDE.value:
            return f"one more attempt allowed{_share(said, nth)}"
        case Verb.RELEASE.value:
            return _release(said, nth)
        case Verb.WAIT.value:
            return f"put off until {moment(float(said.facts.get('until', 0.0)))} UTC"
        case Verb.INVESTIGATE.value:
            return _investigation(said)
        case Verb.ASSIGN.value:
            return f"assigned to {_clip(said.facts.get('to', ''))}"
        case Verb.ESCALATE.value:
            return f"passed up to {_clip(said.facts.get('to', ''))}"
        case other:
            return _PLAIN.get(other, _clip(other))


def _release(said: Decided, nth: int) -> str:
    if not said.facts.get("lifted"):
        return f"release of its hold decided{_share(said, nth)}"
    return f"hold released, beside {_clip(', '.join(said.facts.get('beside') or ('nothing',)))},"


def _investigation(said: Decided) -> str:
    looks = said.facts.get("looks")
    reads = f", with {looks} more {'read' if looks == 1 else 'reads'}" if looks else ""
    return f"looked into by {_clip(said.facts.get('whom', ''))}, {_clip(said.facts.get('channel', ''))}{reads}, decided"


def _share(said: Decided, nth: int) -> str:
    """That it took more than one of them."""
    of = said.facts.get("of", 1)
    return f", {nth or 'one'} of {of} people," if of != 1 else ""


def counted(events: tuple[Event, ...]) -> dict[int, int]:
    """By the event's number, which of the people it takes each approval, override and release was decided by."""
    found: dict[int, int] = {}
    for at, event in enumerate(events, start=1):
        if event.kind is EventKind.DECIDED:
            found[event.seq] = _share_of(decided_of(event), events[:at])[0]
    return found


def _share_of(said: Decided, events: tuple[Event, ...]) -> tuple[int, int]:
    """How many have decided it so, with this one, and how many it takes; 0 where one is enough by its kind."""
    of = int(said.facts.get("of", 1))
    match said.decision:
        case Verb.APPROVE.value:
            return len(authority_of(events, ()).approved_by), of
        case Verb.OVERRIDE.value:
            return override_share(events)
        case Verb.RELEASE.value:
            return (of, of) if said.facts.get("lifted") else release_share(events)
        case _:
            return 0, 0


def recorded(history: History, to: Hints) -> str:
    """What the last decision about an operation came to: how many people have decided it, and what it takes still.

    Args:
        history: the operation with its events; a worker may have written since.
        to: makes the commands.
    """
    last = max(at for at, event in enumerate(history.events, start=1) if event.kind is EventKind.DECIDED)
    said = decided_of(history.events[last - 1])
    so_far, of = _share_of(said, history.events[:last])
    noun = {Verb.APPROVE.value: "approval", Verb.OVERRIDE.value: "override", Verb.RELEASE.value: "release"}
    if said.decision not in noun:
        return f"recorded: {_clause(said).rstrip(',')}"
    line = f"recorded: {noun[said.decision]} {so_far} of {of}"
    if so_far < of:
        return f"{line}; {_more(of - so_far)} must decide it too"
    return line + _so(Verb(said.decision), history.operation, to)


def _more(people: int) -> str:
    return "one more person" if people == 1 else f"{people} more people"


def _so(verb: Verb, operation: Operation, to: Hints) -> str:
    """What follows now that as many people as it takes have decided it."""
    if verb is Verb.OVERRIDE:
        return f": now {to.act('attempt', operation.id, f'--basis {Basis.OPERATOR_OVERRIDE.value} {WHO}')}"
    return ": its caller may ask again" if verb is Verb.RELEASE else ""


def question(event: Event) -> str:
    """What one `proposed` event asks."""
    proposed = proposed_of(event)
    count = proposed.required.people
    rule = f", by rule {_clip(proposed.rule)!r}" if proposed.rule else ""
    anew = f" anew: {_clip('; '.join(proposed.because))}" if proposed.because else ""
    return f"asks {count} {'person' if count == 1 else 'people'}{rule}{anew}"


def since(events: tuple[Event, ...], seq: int) -> list[str]:
    """What was decided or asked after an event, each on one line."""
    return [
        decision(event) if event.kind is EventKind.DECIDED else question(event)
        for event in events
        if event.seq > seq and event.kind in (EventKind.DECIDED, EventKind.PROPOSED)
    ]


def _clip(text: object) -> str:
    return clipped(text, TEXT_COLUMNS)
