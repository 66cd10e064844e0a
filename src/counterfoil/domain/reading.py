"""Reading a look: what its answers say about one intent, and how sure they are.

Something found is ours only when account, reference, state and material content all agree, and only
when the same look was shown not to find what cannot exist. Whatever is not healthy is inconclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from counterfoil.domain import body, icalendar, reply
from counterfoil.domain.answer import Answer, Replied
from counterfoil.domain.contract import By, Contract, Look, Scalar, Terminal, TextCompare
from counterfoil.domain.page import Item, Page, bound
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.template import LookTemplate, Names, document_of, text_of
from counterfoil.domain.words import Coverage

BY_NAME = frozenset({By.KEY, By.CLIENT_REFERENCE})
"""Looks that ask for exact names; what is found by an id, or stands in a list, was not asked for by ours."""
STATE_CHARS_MAX = 120
"""Enough for any state name; a provider's text does not belong in evidence."""


class ReadingKind(StrEnum):
    """What a look comes to."""

    FOUND = "found"
    ABSENT = "absent"
    """Nothing there: not evidence until the absence calculator says so."""
    INCONCLUSIVE = "inconclusive"
    DUPLICATE = "duplicate"
    """More than one thing answers to the reference: someone sent twice, or the provider did."""
    FOREIGN = "foreign"
    """The reference is taken by something with other content or of another account."""
    CANDIDATE = "candidate"
    """It may be ours, but not every field could be compared, or its state is not the promised one."""
    ENDED = "ended"
    """It is ours, and ended in a state of which the contract says that the effect does not come of it any more."""


class Sought(msgspec.Struct, frozen=True, kw_only=True):
    """The intent's facts a look is compared with."""

    account: str
    payload: bytes
    names: Names


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look, interpreted."""

    kind: ReadingKind
    reason: str = ""
    """A fixed word for why it is not simply found or absent."""
    items: int = 0
    """How many items the look showed."""
    pages: int = 1
    """In how many reads, one after the other."""
    external_id: str = ""
    external_ids: tuple[str, ...] = ()
    """The names of all that answered to the reference, when there is more than one."""
    state: dict[str, object] = {}
    compared: dict[str, str] = {}
    """Per field: `equal`, `different` or `missing`; never the values themselves."""
    positive_control: bool = False
    negative_control: bool = False
    result: object = None
    retry_after_seconds: float | None = None
    """The longest that any of its answers asked to wait, healthy or not."""


def seek(contract: Contract, *, account: str, payload: bytes, names: Names) -> Sought:
    """Gather what a look is compared with; the reference is taken from where the contract keeps it.

    Raises:
        PayloadRefused: the contract's reference is a field that this payload lacks.
    """
    if contract.reference.startswith("payload"):
        reference = text_of(document_of(payload), contract.reference)
    else:
        reference = str(getattr(names, contract.reference))
    return Sought(account=account, payload=payload, names=msgspec.structs.replace(names, reference=reference))


def named(look: Look, sought: Sought) -> Names:
    """The names of the look's placeholders: a deployment's own control item goes before the provider's."""
    return msgspec.structs.replace(sought.names, control=sought.names.control or look.controls.known)


def requests_of(look: Look, sought: Sought) -> tuple[LookTemplate, ...]:
    """The reads one look consists of, in order: itself, then the controls that need a read of their own.

    A further page is one read: the controls were made with the first.
    """
    if sought.names.cursor:
        return (look.request,)
    return (look.request, *(template for template in _controls(look, sought).values() if template))


def _controls(look: Look, sought: Sought) -> dict[str, LookTemplate | None]:
    names = named(look, sought)
    asked = {"positive": (look.controls.positive, names.control), "negative": (look.controls.negative, names.negative)}
    return {role: way if isinstance(way, LookTemplate) and name else None for role, (way, name) in asked.items()}


def read(
    look: Look,
    answers: tuple[Answer, ...],
    sought: Sought,
    terminal: tuple[Terminal, ...] = (),
    *,
    more: tuple[Answer, ...] = (),
) -> Reading:
    """Interpret one look: pure, total, and inconclusive whenever the look was not whole and healthy.

    Args:
        look: the contract's clause.
        answers: one for each of `requests_of(look, sought)`, in that order.
        sought: what it is compared with, with the same names the requests were made of.
        terminal: the states in which what was accepted ends.
        more: the answers of the pages after the first, in order.
    """
    waits = (reply.retry_after_seconds(answer) for answer in (*answers, *more) if isinstance(answer, Replied))
    wait = max((seconds for seconds in waits if seconds is not None), default=None)
    return msgspec.structs.replace(_read(look, answers, sought, terminal, more), retry_after_seconds=wait)


def _read(
    look: Look, answers: tuple[Answer, ...], sought: Sought, terminal: tuple[Terminal, ...], more: tuple[Answer, ...]
) -> Reading:
    if not answers:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason="not_made")
    page = bound(look, (answers[0], *more))
    if page.reason:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason=page.reason)
    names = named(look, sought)
    positive, negative = _controlled(look, page, answers[1:], sought)
    mine = _distinct(look, [i for i in page.items if _answers_to(look, i, names.reference)], sought)
    reading = _verdict(look, page, mine, sought, terminal)
    if reading.kind is not ReadingKind.ABSENT and not negative:
        reading = Reading(kind=ReadingKind.INCONCLUSIVE, reason="negative_control")
    return msgspec.structs.replace(
        reading, items=len(page.items), pages=1 + len(more), positive_control=positive, negative_control=negative
    )


def _answers_to(look: Look, item: Item, reference: str) -> bool:
    """The item carries that reference; where the URL is the reference, whatever it shows does."""
    if look.match.reference == "path":
        return True
    return bool(reference) and body.at(item.document, look.match.reference) == reference


def _distinct(look: Look, items: list[Item], sought: Sought) -> list[Item]:
    """One item listed twice under one name is one thing; without a name each counts."""
    return list({_name(look, item, sought) or f"\x00{number}": item for number, item in enumerate(items)}.values())


def _name(look: Look, item: Item, sought: Sought) -> str:
    if look.external_id == "reference":
        return sought.names.reference
    return reply.name_at(item.reply, item.document, look.external_id)


def _controlled(look: Look, main: Page, others: tuple[Answer, ...], sought: Sought) -> tuple[bool, bool]:
    """Whether the known item was found and the impossible one was not, in this very look."""
    names = named(look, sought)
    controls = _controls(look, sought)
    pages = {"main": main}
    own = [role for role, template in controls.items() if template]
    if len(own) == len(others):  # otherwise nobody can say whose answer is whose
        pages |= {role: bound(look, (answer,)) for role, answer in zip(own, others, strict=True)}
    positive_page = pages["main"] if look.controls.positive == "inline" else pages.get("positive")
    negative_page = pages["main"] if look.controls.negative == "inline" else pages.get("negative")
    positive = positive_page is not None and any(
        _answers_to(look, item, names.control) and _account(look, item, sought) == "equal"
        for item in positive_page.items
    )
    negative = (
        negative_page is not None
        and not negative_page.reason
        and bool(names.negative)
        and not any(_answers_to(look, item, names.negative) for item in negative_page.items)
    )
    return positive, negative


def _verdict(look: Look, page: Page, mine: list[Item], sought: Sought, terminal: tuple[Terminal, ...]) -> Reading:
    if not mine:
        return _of_others(look, page, sought)
    readings = [_compare(look, item, sought, terminal) for item in mine]
    if len(readings) == 1:
        return readings[0]
    first = next((r for r in readings if r.kind is ReadingKind.FOUND), None)
    chosen = first or readings[0]
    return msgspec.structs.replace(
        chosen,
        kind=ReadingKind.DUPLICATE,
        reason="duplicate_suspected" if first else "duplicate_unmatched",
        external_ids=tuple(r.external_id for r in readings),
    )


def _of_others(look: Look, page: Page, sought: Sought) -> Reading:
    """Nothing carries our reference: absent, unless something nameless looks like ours, or nobody asked for it.

    Who is asked for exact names and shows another cuts names, spells them otherwise, or did not heed them: ours may be
    there under a name that is no longer its own.
    """
    if not look.items and page.items:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason="other_reference")
    nameless = [i for i in page.items if body.at(i.document, look.match.reference) in (MISSING, None, "")]
    for item in nameless:
        material = _material(look, item, sought)
        if material and "different" not in material.values():
            return Reading(kind=ReadingKind.CANDIDATE, reason="no_reference", compared=material)
    asked = named(look, sought)
    if look.by in BY_NAME and not all(
        _answers_to(look, item, asked.control) or _answers_to(look, item, asked.negative) for item in page.items
    ):
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason="other_reference")
    return Reading(kind=ReadingKind.ABSENT)


def _compare(look: Look, item: Item, sought: Sought, terminal: tuple[Terminal, ...]) -> Reading:
    """Compare one item that carries our reference, field by field."""
    material = _material(look, item, sought)
    compared = {"account": _account(look, item, sought), "reference": "equal", **material}
    named = {where: body.at(item.document, where) for where in states_of(look, terminal)}
    state = {where: shown(value) for where, value in named.items()}
    end = end_of(look, named, terminal)
    if "different" in compared.values():
        kind, reason = ReadingKind.FOREIGN, "other_account" if compared["account"] == "different" else "other_content"
    elif "missing" in compared.values() or not (material or look.match.noted):
        kind, reason = ReadingKind.CANDIDATE, "field_missing"
    elif end is None:
        kind, reason = ReadingKind.CANDIDATE, "other_state"
    else:
        kind, reason = ReadingKind.FOUND if end == "succeeded" else ReadingKind.ENDED, ""
    return Reading(
        kind=kind,
        reason=reason,
        external_id=_name(look, item, sought),
        state=state,
        compared=compared,
        result=reply.result_of(look.result, item.document) if kind is ReadingKind.FOUND else None,
    )


def states_of(look: Look, terminal: tuple[Terminal, ...]) -> tuple[str, ...]:
    """Every place of an item that says in which state it is."""
    return tuple(dict.fromkeys((*look.match.state, *(where for end in terminal for where in end.state))))


def end_of(
    look: Look, state: Mapping[str, object], terminal: tuple[Terminal, ...], *, kept: bool = False
) -> str | None:
    """What came of something ours: `succeeded` or `rejected`, by the first end that it is in; None where it is in none.

    Args:
        look: its own states are the effect.
        state: by pointer, what an item holds there.
        terminal: what is followed is not the effect merely because it is there.
        kept: only as much of each text is there as evidence keeps.
    """
    for end in terminal:
        if _is_in(end.state, state, kept=kept):
            return end.finding
    stands = _is_in(look.match.state, state, kept=kept) and bool(look.match.state or not terminal)
    return "succeeded" if stands else None


def _is_in(accepted: Mapping[str, tuple[Scalar, ...]], state: Mapping[str, object], *, kept: bool) -> bool:
    return all(
        any(body.same(state.get(where), shown(value) if kept else value) for value in values)
        for where, values in accepted.items()
    )


def _account(look: Look, item: Item, sought: Sought) -> str:
    place = look.match.account
    if place == "scope":
        return "equal"
    if place == "unknown":
        return "missing"
    found = reply.name_at(item.reply, item.document, place)
    if not found:
        return "missing"
    return "equal" if found == sought.account else "different"


def _material(look: Look, item: Item, sought: Sought) -> dict[str, str]:
    compared = compare(look.match.material, sought.payload, item.document)
    text = look.match.text
    if text is None:
        return compared
    return compared | _texts(text, body.at(document_of(sought.payload), text.payload), item.document)


def compare(fields: dict[str, str], payload: bytes, document: object) -> dict[str, str]:
    """Compare fields of the payload with fields of a document: `equal`, `different` or `missing`, never the values.

    Args:
        fields: payload pointer to the document's.
        payload: canonical JSON.
        document: what the provider shows.
    """
    ours = document_of(payload) if payload else MISSING
    return {where: _field(body.at(ours, where), body.at(document, there)) for where, there in fields.items()}


def _texts(text: TextCompare, ours: object, theirs: object) -> dict[str, str]:
    """Compare the properties of two texts; without one value of ours to compare, every one of them is missing."""
    left = icalendar.properties(str(ours), text.properties) or {}
    right = icalendar.properties(str(theirs), text.properties)
    if right is None or not any(left.values()):
        return dict.fromkeys(text.properties, "missing")
    return {name: "equal" if left[name] == right[name] else "different" for name in text.properties}


def _field(ours: object, theirs: object) -> str:
    if ours is MISSING or theirs is MISSING:
        return "missing"
    return "equal" if body.same(ours, theirs) else "different"


def shown(value: object) -> object:
    """A state as it may be kept: a word that is not too long, or a number."""
    if isinstance(value, str):
        return value[:STATE_CHARS_MAX]
    return value if isinstance(value, int | float) else None


COVERAGE = {
    By.KEY: Coverage.PROVIDER_KEY,
    By.CLIENT_REFERENCE: Coverage.OPERATION,
    By.ID: Coverage.ATTEMPT,
    By.LIST: Coverage.OPERATION,
}
"""What a look speaks for, by what it searched by."""
