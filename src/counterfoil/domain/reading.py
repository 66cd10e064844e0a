"""Reading a look: what its answers say about one intent, and how sure they are.

Something found is ours only when account, reference, state and material content all agree, and only
when the same look was shown not to find what cannot exist. Whatever is not healthy is inconclusive.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from counterfoil.domain import body, icalendar, reply
from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.contract import By, Contract, Look, Scalar, TextCompare
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.template import LookTemplate, Names, document_of, text_of
from counterfoil.domain.words import Coverage

ITEMS_MAX = 1000
"""A bounded list: more items than this are not searched, the look is inconclusive."""
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
    DISPROVED = "disproved"
    """It is ours, and the provider says that it took no effect and never will."""
    CANDIDATE = "candidate"
    """It may be ours, but not every field could be compared, or its state is not the promised one."""


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


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a look showed: a JSON document, or a text."""

    reply: Replied
    document: object


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """One healthy answer's items, or the word for why it is not healthy."""

    items: tuple[_Item, ...] = ()
    reason: str = ""
    retry_after_seconds: float | None = None


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
    """The reads one look consists of, in order: itself, then the controls that need a read of their own."""
    return (look.request, *(template for template in _controls(look, sought).values() if template))


def _controls(look: Look, sought: Sought) -> dict[str, LookTemplate | None]:
    names = named(look, sought)
    asked = {"positive": (look.controls.positive, names.control), "negative": (look.controls.negative, names.negative)}
    return {role: way if isinstance(way, LookTemplate) and name else None for role, (way, name) in asked.items()}


def read(look: Look, answers: tuple[Answer, ...], sought: Sought) -> Reading:
    """Interpret one look: pure, total, and inconclusive whenever the look was not whole and healthy.

    Args:
        look: the contract's clause.
        answers: one for each of `requests_of(look, sought)`, in that order.
        sought: what it is compared with, with the same names the requests were made of.
    """
    if not answers:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason="not_made")
    page = _page(look, answers[0])
    if page.reason:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason=page.reason, retry_after_seconds=page.retry_after_seconds)
    names = named(look, sought)
    positive, negative = _controlled(look, answers, sought)
    mine = _distinct(look, [i for i in page.items if _answers_to(look, i, names.reference)], sought)
    reading = _verdict(look, page, mine, sought)
    if reading.kind is not ReadingKind.ABSENT and not negative:
        reading = Reading(kind=ReadingKind.INCONCLUSIVE, reason="negative_control")
    return msgspec.structs.replace(reading, items=len(page.items), positive_control=positive, negative_control=negative)


def _page(look: Look, answer: Answer) -> _Page:
    """The items of one answer; only the listed statuses with a whole, parseable body are healthy."""
    if not isinstance(answer, Replied):
        return _Page(reason=answer.reason if isinstance(answer, Silent) else "not_a_reply")
    if not answer.complete:
        return _Page(reason="answer_cut")
    if str(answer.status) in look.absent_status and _says_absent(look, answer):
        return _Page()
    if str(answer.status) not in look.found_status:
        return _Page(reason=f"status_{answer.status}", retry_after_seconds=reply.retry_after_seconds(answer))
    if look.match.text is not None:
        return _text_page(answer)
    parsed = body.parse(answer.body)
    if not parsed.ok:
        return _Page(reason=parsed.reason)
    return _json_page(look, answer, parsed.value)


def _says_absent(look: Look, answer: Replied) -> bool:
    parsed = body.parse(answer.body) if look.absent_where else None
    return parsed is None or all(body.same(body.at(parsed.value, w), v) for w, v in look.absent_where.items())


def _text_page(answer: Replied) -> _Page:
    try:
        text = answer.body.decode("utf-8")
    except ValueError:
        return _Page(reason="not_text")
    return _Page(items=(_Item(reply=answer, document=text),)) if text.strip() else _Page(reason="empty_body")


def _json_page(look: Look, answer: Replied, document: object) -> _Page:
    if not _whole(look, document):
        return _Page(reason="incomplete")
    if not look.items:
        return _Page(items=(_Item(reply=answer, document=document),))
    found = body.at(document, look.items)
    if not isinstance(found, list):
        return _Page(reason="no_items")
    if len(found) > ITEMS_MAX:
        return _Page(reason="too_many_items")
    return _Page(items=tuple(_Item(reply=answer, document=item) for item in found))


def _whole(look: Look, document: object) -> bool:
    """The answer shows everything: by the contract's word, or by its own."""
    if isinstance(look.complete, bool):
        return look.complete
    said = {look.complete: (True,)} if isinstance(look.complete, str) else look.complete
    return bool(said) and all(
        any(body.same(None if found is MISSING else found, value) for value in accepted)
        for where, accepted in said.items()
        for found in (body.at(document, where),)
    )


def _answers_to(look: Look, item: _Item, reference: str) -> bool:
    """The item carries that reference; where the URL is the reference, whatever it shows does."""
    if look.match.reference == "path":
        return True
    return bool(reference) and body.at(item.document, look.match.reference) == reference


def _distinct(look: Look, items: list[_Item], sought: Sought) -> list[_Item]:
    """One item listed twice under one name is one thing; without a name each counts."""
    return list({_name(look, item, sought) or f"\x00{number}": item for number, item in enumerate(items)}.values())


def _name(look: Look, item: _Item, sought: Sought) -> str:
    if look.external_id == "reference":
        return sought.names.reference
    return reply.name_at(item.reply, item.document, look.external_id)


def _controlled(look: Look, answers: tuple[Answer, ...], sought: Sought) -> tuple[bool, bool]:
    """Whether the known item was found and the impossible one was not, in this very look."""
    names = named(look, sought)
    controls = _controls(look, sought)
    pages = {"main": _page(look, answers[0])}
    own = [role for role, template in controls.items() if template]
    if len(own) == len(answers) - 1:  # otherwise nobody can say whose answer is whose
        pages |= {role: _page(look, answer) for role, answer in zip(own, answers[1:], strict=True)}
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


def _verdict(look: Look, page: _Page, mine: list[_Item], sought: Sought) -> Reading:
    if not mine:
        return _of_others(look, page, sought)
    readings = [_compare(look, item, sought) for item in mine]
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


def _of_others(look: Look, page: _Page, sought: Sought) -> Reading:
    """Nothing carries our reference: absent, unless something nameless looks like ours."""
    if not look.items and page.items:
        return Reading(kind=ReadingKind.INCONCLUSIVE, reason="other_reference")
    nameless = [i for i in page.items if body.at(i.document, look.match.reference) in (MISSING, None, "")]
    for item in nameless:
        material = _material(look, item, sought)
        if material and "different" not in material.values():
            return Reading(kind=ReadingKind.CANDIDATE, reason="no_reference", compared=material)
    return Reading(kind=ReadingKind.ABSENT)


def _compare(look: Look, item: _Item, sought: Sought) -> Reading:
    """Compare one item that carries our reference, field by field."""
    material = _material(look, item, sought)
    compared = {"account": _account(look, item, sought), "reference": "equal", **material}
    state = {where: _shown(body.at(item.document, where)) for where in (*look.match.state, *look.disproved)}
    if "different" in compared.values():
        kind, reason = ReadingKind.FOREIGN, "other_account" if compared["account"] == "different" else "other_content"
    elif "missing" in compared.values() or not (material or look.match.noted):
        kind, reason = ReadingKind.CANDIDATE, "field_missing"
    elif look.disproved and _stands(item, look.disproved):
        kind, reason = ReadingKind.DISPROVED, ""
    elif not _stands(item, look.match.state):
        kind, reason = ReadingKind.CANDIDATE, "other_state"
    else:
        kind, reason = ReadingKind.FOUND, ""
    return Reading(
        kind=kind,
        reason=reason,
        external_id=_name(look, item, sought),
        state=state,
        compared=compared,
        result=reply.result_of(look.result, item.document) if kind is ReadingKind.FOUND else None,
    )


def _stands(item: _Item, states: dict[str, tuple[Scalar, ...]]) -> bool:
    """The item has one of the values at each of the pointers."""
    return all(
        any(body.same(body.at(item.document, where), value) for value in accepted) for where, accepted in states.items()
    )


def _account(look: Look, item: _Item, sought: Sought) -> str:
    place = look.match.account
    if place == "scope":
        return "equal"
    if place == "unknown":
        return "missing"
    found = reply.name_at(item.reply, item.document, place)
    if not found:
        return "missing"
    return "equal" if found == sought.account else "different"


def _material(look: Look, item: _Item, sought: Sought) -> dict[str, str]:
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


def _shown(value: object) -> object:
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
