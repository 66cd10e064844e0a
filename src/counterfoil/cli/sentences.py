"""What a decision on record says, on one line: by whom, and what came of it."""

from __future__ import annotations

from counterfoil.cli.marks import moment
from counterfoil.cli.terminal import clipped
from counterfoil.domain.approval import decided_of, proposed_of
from counterfoil.domain.decision import Verb
from counterfoil.domain.event import Decided, Event, EventKind

TEXT_COLUMNS = 400
"""Of one text from outside; the JSON has all of it."""


def decision(event: Event) -> str:
    """What one `decided` event records."""
    said = decided_of(event)
    line = f"{_clause(said)} by {_clip(said.by)}"
    return f"{line}: {_clip(said.reason)}" if said.reason else line


_PLAIN = {
    Verb.DENY.value: "denied",
    Verb.REVOKE.value: "revoked",
    Verb.EXPIRE.value: "expired",
    Verb.ABANDON.value: "abandoned",
}


def _clause(said: Decided) -> str:
    match said.decision:
        case Verb.APPROVE.value:
            return f"approved{_share(said)}"
        case Verb.OVERRIDE.value:
            return f"one more attempt allowed{_share(said)}"
        case Verb.RELEASE.value:
            return _release(said)
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


def _release(said: Decided) -> str:
    if not said.facts.get("lifted"):
        return f"release of its hold decided{_share(said)}"
    return f"hold released, beside {_clip(', '.join(said.facts.get('beside') or ('nothing',)))},"


def _investigation(said: Decided) -> str:
    looks = said.facts.get("looks")
    reads = f", with {looks} more {'read' if looks == 1 else 'reads'}" if looks else ""
    return f"looked into by {_clip(said.facts.get('whom', ''))}, {_clip(said.facts.get('channel', ''))}{reads}, decided"


def _share(said: Decided) -> str:
    """That it took more than one of them."""
    of = said.facts.get("of", 1)
    return f", one of {of} people," if of != 1 else ""


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
