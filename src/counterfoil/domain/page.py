"""One page of a look, and all its pages together: what they show, or the word for why they say nothing."""

from __future__ import annotations

import msgspec

from counterfoil.domain import body, reply
from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.contract import Look
from counterfoil.domain.pointer import MISSING

ITEMS_MAX = 1000
"""A bounded list: more items than this are not searched, the look is inconclusive."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a look showed: a JSON document, or a text."""

    reply: Replied
    document: object


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One healthy answer's items, or the word for why it is not healthy."""

    items: tuple[Item, ...] = ()
    reason: str = ""
    whole: bool = True
    """Nothing comes after it."""
    cursor: str = ""
    """What asks for what comes after it."""


def next_page(look: Look, answer: Answer) -> str:
    """The cursor of the page after this one; empty where the look is complete, or cannot be completed now."""
    if isinstance(answer, Replied) and reply.retry_after_seconds(answer):
        return ""  # nobody reads on before it
    page = _page(look, answer)
    return "" if page.reason or page.whole else page.cursor


def bound(look: Look, answers: tuple[Answer, ...]) -> Page:
    """All pages as one: the last one says that nothing is missing, and each is healthy."""
    pages = [_page(look, answer, further=number > 0) for number, answer in enumerate(answers)]
    failed = next((page for page in pages if page.reason), None)
    if failed is not None:
        return failed
    items = tuple(item for page in pages for item in page.items)
    if not pages[-1].whole:
        return Page(reason="incomplete")
    return Page(reason="too_many_items") if len(items) > ITEMS_MAX else Page(items=items)


def items_of(look: Look, answer: Answer) -> tuple[tuple[tuple[Replied, object], ...], str]:
    """Every item that one answer shows, and the word for why that is not all; not whole is shown all the same."""
    shown, page = _page(msgspec.structs.replace(look, complete=True, next_page=None), answer), _page(look, answer)
    reason = shown.reason or page.reason or ("" if page.whole else "incomplete")
    return tuple((item.reply, item.document) for item in shown.items), reason


def _page(look: Look, answer: Answer, *, further: bool = False) -> Page:
    """The items of one answer; only the listed statuses with a whole, parseable body are healthy.

    That there is nothing is no page after the first: what it was to show is gone, and nobody knows what that was.
    """
    if not isinstance(answer, Replied):
        return Page(reason=answer.reason if isinstance(answer, Silent) else "not_a_reply")
    if not answer.complete:
        return Page(reason="answer_cut")
    if not further and str(answer.status) in look.absent_status and _says_absent(look, answer):
        return Page()
    if str(answer.status) not in look.found_status:
        return Page(reason=f"status_{answer.status}")
    if look.match.text is not None:
        return _text_page(answer)
    parsed = body.parse(answer.body)
    if not parsed.ok:
        return Page(reason=parsed.reason)
    return _json_page(look, answer, parsed.value)


def _says_absent(look: Look, answer: Replied) -> bool:
    parsed = body.parse(answer.body) if look.absent_where else None
    return parsed is None or all(body.same(body.at(parsed.value, w), v) for w, v in look.absent_where.items())


def _text_page(answer: Replied) -> Page:
    try:
        text = answer.body.decode("utf-8")
    except ValueError:
        return Page(reason="not_text")
    return Page(items=(Item(reply=answer, document=text),)) if text.strip() else Page(reason="empty_body")


def _json_page(look: Look, answer: Replied, document: object) -> Page:
    cursor = _cursor(look, document)
    if cursor is None:
        return Page(reason="next_page_unusable")
    whole = not cursor and _whole(look, document)
    if not whole and not cursor:
        return Page(reason="incomplete")
    found = body.at(document, look.items) if look.items else [document]
    if not isinstance(found, list):
        return Page(reason="no_items")
    return Page(items=tuple(Item(reply=answer, document=item) for item in found), whole=whole, cursor=cursor)


def _cursor(look: Look, document: object) -> str | None:
    """What asks for the next page; empty where none is named, None where one is named by what cannot ask for it.

    Whatever else it says, an answer that names another page does not show everything. Only a value by which the
    contract itself says that nothing follows names none.
    """
    if look.next_page is None:
        return ""
    said = body.at(document, look.next_page)
    ends = look.complete.get(look.next_page, ()) if isinstance(look.complete, dict) else ()
    if said is MISSING or said is None or said is False or any(body.same(said, end) for end in ends):
        return ""
    return said if isinstance(said, str) else None


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
