"""What a replay returns: the declared part of the first result, of the same type as the first call returned it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from counterfoil.domain import canonical, pointer
from counterfoil.domain.event import Event, EventKind, History, evidence_of, removed_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import content
from counterfoil.domain.words import Finding


def narrowed(result: object, pointers: tuple[str, ...]) -> dict[str, object]:
    """Keep only the declared parts, under their pointers' last names; what is missing stays missing."""
    kept: dict[str, object] = {}
    for text in pointers:
        tokens = pointer.parse(text)
        found = pointer.get(result, tokens)
        if found is not pointer.MISSING:
            kept[tokens[-1] if tokens else ""] = found
    return kept


def declared(evidence: Evidence, pointers: tuple[str, ...]) -> Evidence:
    """The evidence with only what the action declares of its result; all of it where nothing is declared."""
    if evidence.result is None or not pointers:
        return evidence
    return msgspec.structs.replace(evidence, result=narrowed(evidence.result, pointers))


def kept(event: Event) -> dict[str, object]:
    """Read the erasable part of an observation: `result` and `facts`; empty once it was erased."""
    if event.body is None:
        return {}
    found = canonical.parse(content(event.body))
    return found if isinstance(found, dict) else {}


ERASED, REMOVED = "erased", "removed"
"""Why a result that was kept is no more: its body was erased, or its record was removed by retention."""

NOT_KEPT, TOO_LARGE = "not_kept", "too_large"
"""On record in the place of a result: it has no canonical form, or one of more than 64 KiB."""
_LOST = {
    NOT_KEPT: "not kept, because a value in it has no canonical form",
    TOO_LARGE: "not kept, because it is larger than 64 KiB",
}


def result_lost(facts: Mapping[str, object]) -> str:
    """Why the result of this evidence could not be kept; empty where it was, or where there was none."""
    return _LOST.get(str(facts.get("result", "")), "")


def kept_result(history: History) -> object:
    """The result of the evidence that proved the effect, or None where none was kept."""
    for event in history.events:
        if event.kind is EventKind.OBSERVED and evidence_of(event).finding in (Finding.SUCCEEDED, Finding.ACCEPTED):
            found = kept(event).get("result")
            if found is not None:
                return found
    return None


def result_gone(history: History) -> str:
    """Why `kept_result` has nothing where something may have been kept; empty where nothing ever was."""
    removed = removed_of(history.events)
    if removed is not None and removed.returned:
        return REMOVED
    for event in history.events:
        if event.kind is not EventKind.OBSERVED:
            continue
        # Whether the body held a result or facts only cannot be known any more: it is not said to have been nothing.
        said = evidence_of(event)
        if said.finding not in (Finding.SUCCEEDED, Finding.ACCEPTED):
            continue
        if said.body_digest and event.body is None:
            return ERASED
        facts = kept(event).get("facts")
        lost = result_lost(facts) if isinstance(facts, dict) else ""
        if lost:
            return lost
    return ""
