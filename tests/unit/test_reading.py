"""Reading a look: ours only when everything agrees, inconclusive whenever the look was not whole and healthy."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import reading as module
from counterfoil.domain.answer import Refused, Replied, Returned, Silent
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import By
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.page import ITEMS_MAX, next_page
from counterfoil.domain.reading import ReadingKind, named, read, requests_of, seek
from counterfoil.domain.template import LookTemplate, Names

LOOKUP, CALDAV = contracts.load("lab.lookup"), contracts.load("caldav.put_event")
LOOK, CALENDAR_LOOK = LOOKUP.looks[0], CALDAV.looks[0]
PAYLOAD = {"amount": 10, "to": "ann"}
SOUGHT = seek(
    LOOKUP, account="acct", payload=canonical(PAYLOAD), names=Names(provider_key="op_1", negative="cf-absent-1")
)


INCONCLUSIVE = ReadingKind.INCONCLUSIVE


def item(**changes):
    """Our effect as the laboratory shows it."""
    ours = {"id": "ef_1", "reference": "op_1", "account": "acct", "state": "done", "payload": PAYLOAD}
    return {key: value for key, value in (ours | changes).items() if value is not ...}


CONTROL = item(id="ef_control", reference="control", payload={})


def page(*items, complete=True, **changes):
    """A healthy answer with these items."""
    shown = {"account": "acct", "complete": complete, "items": list(items)}
    return Replied(**({"status": 200, "body": json.dumps(shown).encode()} | changes))


def reading(answer, look=LOOK, sought=SOUGHT):
    """The reading of a look of one read."""
    return read(look, (answer,), sought)


def changed(look=LOOK, *, match=None, controls=None, **fields):
    """A look that is documented otherwise."""
    return msgspec.structs.replace(
        look,
        match=msgspec.structs.replace(look.match, **(match or {})),
        controls=msgspec.structs.replace(look.controls, **(controls or {})),
        **fields,
    )


def test_ours_is_found_when_everything_agrees():
    """Account, reference, state and material content agree, and both controls held in the same look."""
    seen = reading(page(item(), CONTROL))
    assert (seen.kind, seen.reason, seen.external_id, seen.items) == (ReadingKind.FOUND, "", "ef_1", 2)
    assert seen.compared == {"account": "equal", "reference": "equal", "": "equal"}
    assert seen.state == {"/state": "done"}
    assert seen.result == {"id": "ef_1", "state": "done"}
    assert (seen.positive_control, seen.negative_control) == (True, True)


def test_nothing_there_is_absent_and_no_more():
    """An empty healthy look reads as absent; its controls say how far it can be trusted."""
    assert reading(page(CONTROL)).kind is ReadingKind.ABSENT
    blind = reading(page())
    assert (blind.kind, blind.positive_control, blind.negative_control) == (ReadingKind.ABSENT, False, True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Replied(status=401), "status_401"),
        (Replied(status=403), "status_403"),
        (Replied(status=404), "status_404"),
        (Replied(status=429), "status_429"),
        (Replied(status=500), "status_500"),
        (Replied(status=503), "status_503"),
        (Replied(status=302), "status_302"),
        (Replied(status=204), "status_204"),
        (Replied(status=200), "empty_body"),
        (Replied(status=200, body=b"<html>One moment</html>"), "not_json"),
        (Replied(status=200, body=b'{"complete":true,"items":[{"id":"ef_1"'), "not_json"),
        (page(item(), CONTROL, complete=False), "incomplete"),
        (page(item(), CONTROL, complete="true"), "incomplete"),
        (page(item(), CONTROL, body=b'{"complete":true}'), "no_items"),
        (page(item(), CONTROL, body=b'{"complete":true,"items":{}}'), "no_items"),
        (page(item(), CONTROL, body=b'{"complete":true,"items":null}'), "no_items"),
        (page(item(), CONTROL, body=b"[]"), "incomplete"),
        (page(*[item()] * (ITEMS_MAX + 1)), "too_many_items"),
        (Silent(may_have_left=True, reason="read_timeout"), "read_timeout"),
        (Silent(may_have_left=False, reason="connect_failed"), "connect_failed"),
        (Returned(value=[]), "not_a_reply"),
        (Refused(reason="no"), "not_a_reply"),
    ],
    ids=[*(f"case{n}" for n in range(22))],
)
def test_r73_a_look_that_failed_means_nothing(answer, reason):
    """Errors, refusals, pages for people, cut or empty bodies and incomplete lists are inconclusive, never absent."""
    seen = reading(answer)
    assert (seen.kind, seen.reason) == (ReadingKind.INCONCLUSIVE, reason)


def test_r73_a_cut_answer_is_inconclusive_even_when_it_shows_ours():
    """What was cut may have held a second match."""
    cut = msgspec.structs.replace(page(item(), CONTROL), complete=False, reason="body_cut")
    assert (reading(cut).kind, reading(cut).reason) == (ReadingKind.INCONCLUSIVE, "answer_cut")


@pytest.mark.parametrize("status", [401, 403])
def test_r74_a_forbidden_read_is_never_absence(status):
    """403 for an object that is still being processed says nothing about it."""
    seen = read(CALENDAR_LOOK, (Replied(status=status), Replied(status=404)), CALENDAR)
    assert seen.kind is ReadingKind.INCONCLUSIVE


def test_the_providers_word_on_waiting_is_kept():
    """A refused read may say when to read again; so may a healthy one, and whatever else the look read."""
    wait = (("retry-after", "9"),)
    assert reading(Replied(status=429, headers=wait)).retry_after_seconds == 9.0
    assert reading(page(item(), CONTROL, headers=wait)).retry_after_seconds == 9.0
    shown = read(LOOK, (page(item(), CONTROL), Replied(status=503, headers=wait)), SOUGHT)
    assert shown.retry_after_seconds == 9.0
    more = (Replied(status=503, headers=(("retry-after", "30"),)), Silent(may_have_left=True, reason="read_timeout"))
    assert read(LOOK, (page(item(), CONTROL, headers=wait),), SOUGHT, more=more).retry_after_seconds == 30.0
    assert reading(page(item(), CONTROL)).retry_after_seconds is None


def test_nobody_reads_on_where_the_provider_asks_to_wait():
    """A page that says Retry-After is the last for now, whatever comes after it; 0 is no wait."""
    shown = {"account": "acct", "complete": False, "items": [], "next": "c2"}
    answer = Replied(status=200, body=json.dumps(shown).encode())
    assert next_page(PAGED, answer) == "c2"
    for wait, cursor in (("0", "c2"), ("9", "")):
        said = msgspec.structs.replace(answer, headers=(("retry-after", wait),))
        assert next_page(PAGED, said) == cursor


def test_a_look_that_was_not_made_is_inconclusive():
    """No answers, no reading."""
    assert read(LOOK, (), SOUGHT).reason == "not_made"


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"account": "other"}, ReadingKind.FOREIGN, "other_account"),
        ({"account": ...}, ReadingKind.CANDIDATE, "field_missing"),
        ({"payload": PAYLOAD | {"amount": 11}}, ReadingKind.FOREIGN, "other_content"),
        ({"payload": PAYLOAD | {"amount": 10.0}}, ReadingKind.FOREIGN, "other_content"),
        ({"payload": ...}, ReadingKind.CANDIDATE, "field_missing"),
        ({"state": "pending"}, ReadingKind.CANDIDATE, "other_state"),
        ({"state": "failed"}, ReadingKind.CANDIDATE, "other_state"),
        ({"state": ...}, ReadingKind.CANDIDATE, "other_state"),
        ({"state": {"a": 1}}, ReadingKind.CANDIDATE, "other_state"),
    ],
)
def test_one_weak_field_is_never_enough(changes, kind, reason):
    """The right reference with another account, content or state is not our success."""
    seen = reading(page(item(**changes), CONTROL))
    assert (seen.kind, seen.reason) == (kind, reason)
    assert seen.result is None
    assert seen.external_id == "ef_1"


@pytest.mark.parametrize("reference", ["op_10", "op_", "OP_1", " op_1", 1, None, ...])
def test_only_the_exact_reference_is_ours(reference):
    """A look-alike reference is another effect's; one without any may be ours, which is for a person to say."""
    seen = reading(page(item(reference=reference), CONTROL), changed(by=By.LIST))
    nameless = reference in (None, ...)
    assert seen.kind is (ReadingKind.CANDIDATE if nameless else ReadingKind.ABSENT)


@pytest.mark.parametrize("by", [By.KEY, By.CLIENT_REFERENCE])
@pytest.mark.parametrize("reference", ["op_10", "op_", "OP_1", " op_1", 1, ["op_1"]])
def test_r72_what_nobody_asked_for_by_that_name_makes_a_look_unhealthy(by, reference):
    """Whoever cuts names or spells them otherwise may hold ours under another: not absent, whatever it contains."""
    look = changed(by=by)
    for strange in (item(reference=reference), item(reference=reference, account="other", payload={"amount": 11})):
        seen = reading(page(strange, CONTROL), look)
        assert (seen.kind, seen.reason) == (INCONCLUSIVE, "other_reference")
    assert reading(page(item(), item(id="ef_2", reference=reference), CONTROL), look).kind is ReadingKind.FOUND
    for asked in ((), (CONTROL,), (CONTROL, CONTROL)):
        assert reading(page(*asked), look).kind is ReadingKind.ABSENT


def test_r72_a_look_alike_is_at_most_a_candidate():
    """Equal content without our marker is never found; other content without it is nobody's."""
    alike = reading(page(item(reference=""), CONTROL))
    assert (alike.kind, alike.reason) == (ReadingKind.CANDIDATE, "no_reference")
    other = page(item(reference=None, payload={"amount": 11}), CONTROL)
    assert reading(other, changed(by=By.LIST)).kind is ReadingKind.ABSENT
    assert reading(other).kind is INCONCLUSIVE  # nobody asked for what has no name


def test_a_provider_without_a_marker_shows_candidates_only():
    """Where the contract knows no reference, nothing is ever found."""
    look = changed(match={"reference": "unknown"})
    seen = reading(page(item()), look)
    assert (seen.kind, seen.reason) == (ReadingKind.CANDIDATE, "no_reference")


@pytest.mark.parametrize("changes", [{"account": "unknown"}, {"material": {}}])
def test_an_unknown_clause_makes_a_candidate(changes):
    """Without a known account or any material to compare, a reference alone settles nothing."""
    seen = reading(page(item(), CONTROL), changed(match=changes))
    assert (seen.kind, seen.reason) == (ReadingKind.CANDIDATE, "field_missing")


def test_the_account_may_stand_in_a_header_or_follow_from_the_scope():
    """Wherever the contract says that the account shows, it is compared there."""
    by_header = changed(match={"account": "header:x-account"})
    assert reading(page(item(), CONTROL, headers=(("x-account", "acct"),)), by_header).kind is ReadingKind.FOUND
    assert reading(page(item(), CONTROL, headers=(("x-account", "b"),)), by_header).kind is ReadingKind.FOREIGN
    by_scope = changed(match={"account": "scope"})
    assert reading(page(item(account="b"), CONTROL), by_scope).kind is ReadingKind.FOUND


def test_r73_two_matches_are_a_duplicate():
    """Two things under one reference: suspected duplicate, with both names, not a joined one."""
    seen = reading(page(item(), item(id="ef_2"), CONTROL))
    assert (seen.kind, seen.reason) == (ReadingKind.DUPLICATE, "duplicate_suspected")
    assert seen.external_ids == ("ef_1", "ef_2")
    mixed = reading(page(item(payload={}), item(id="ef_2"), CONTROL))
    assert (mixed.reason, mixed.external_id) == ("duplicate_suspected", "ef_2")
    foreign = reading(page(item(payload={}), item(id="ef_2", account="b"), CONTROL))
    assert (foreign.kind, foreign.reason) == (ReadingKind.DUPLICATE, "duplicate_unmatched")


def test_one_thing_listed_twice_is_one():
    """The same name twice is a page boundary; without names each item counts."""
    assert reading(page(item(), item(), CONTROL)).kind is ReadingKind.FOUND
    assert reading(page(item(id=...), item(id=...), CONTROL)).kind is ReadingKind.DUPLICATE


def test_a_look_that_finds_everything_finds_nothing():
    """When the random reference is found too, whatever else was found is no evidence."""
    seen = reading(page(item(), item(id="x", reference="cf-absent-1"), CONTROL))
    assert (seen.kind, seen.reason) == (ReadingKind.INCONCLUSIVE, "negative_control")
    assert not seen.negative_control


@pytest.mark.parametrize("answer", [page(item(), CONTROL), page(item(payload={}), CONTROL), page(item(), item(id="b"))])
def test_found_needs_a_negative_control(answer):
    """Without a random reference in the look neither found nor foreign nor duplicate counts."""
    bare = msgspec.structs.replace(SOUGHT, names=msgspec.structs.replace(SOUGHT.names, negative=""))
    assert reading(answer, sought=bare).reason == "negative_control"
    unasked = changed(controls={"negative": "none"})
    assert reading(answer, unasked).reason == "negative_control"


def test_the_positive_control_is_an_item_of_our_account():
    """A known item of another account does not show that ours would be seen."""
    assert not reading(page(item(), CONTROL | {"account": "b"})).positive_control
    assert not reading(page(item(), CONTROL), changed(controls={"positive": "none"})).positive_control


def test_an_unnamed_control_is_not_found_in_an_unnamed_item():
    """Without a known item there is no positive control, not even where an item has an empty reference."""
    unknown = changed(controls={"known": ""})
    assert not reading(page(item(), item(id="x", reference="", payload={})), unknown).positive_control


@pytest.mark.parametrize("look", [LOOK, CALENDAR_LOOK, changed(items="", complete=True)], ids=["list", "text", "item"])
def test_every_answer_is_read(look):
    """Total: whatever a provider answers is read, and found only when it is ours."""
    bodies = [b"", b"null", b"[]", b"\xff", b'{"items":[1,null,{}],"complete":true}', b'{"reference":{"a":1}}']
    sought = CALENDAR if look is CALENDAR_LOOK else SOUGHT
    for status, content, complete in itertools.product((100, 200, 404, 500), bodies, (True, False)):
        answer = Replied(status=status, body=content, complete=complete)
        for answers in ((answer,), (answer, answer), (answer, answer, answer)):
            assert read(look, answers, sought).kind is not ReadingKind.FOUND


def test_a_deployment_names_its_own_control():
    """The deployment's known item goes before the provider's; without either none is asked for."""
    own = msgspec.structs.replace(SOUGHT, names=msgspec.structs.replace(SOUGHT.names, control="known"))
    assert named(LOOK, own).control == "known"
    assert named(LOOK, SOUGHT).control == "control"
    assert reading(page(item(reference="known", id="k")), sought=own).positive_control


def test_the_reference_is_where_the_contract_keeps_it():
    """The ledger's key, or a field of the payload that must be there."""
    assert SOUGHT.names.reference == "op_1"
    assert CALENDAR.names.reference == "u1"
    with pytest.raises(PayloadRefused):
        seek(CALDAV, account="a", payload=b"{}", names=Names(provider_key="op_1"))


ICS = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:u1\r\nDTSTART:20260102T100000Z\r\n"
    "DTEND:20260102T110000Z\r\nSUMMARY:Tea\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
CALENDAR = seek(
    CALDAV,
    account="ann",
    payload=canonical({"uid": "u1", "ics": ICS}),
    names=Names(provider_key="op_1", control="known", negative="cf-absent-1"),
)
GONE = Replied(status=404)


def shown(text=ICS):
    """A calendar object as a server returns it."""
    return Replied(status=200, body=text.encode() if isinstance(text, str) else text)


def calendar(main, positive=None, negative=GONE, look=CALENDAR_LOOK):
    """The reading of a look whose controls are reads of their own."""
    return read(look, (main, positive or shown(), negative), CALENDAR)


def test_controls_of_their_own_are_read_in_order():
    """The look itself, the known item, the impossible one; what has no name is not asked for."""
    folder = "{/payload/collection}"
    paths = [template.path.removeprefix(folder) for template in requests_of(CALENDAR_LOOK, CALENDAR)]
    assert paths == ["/{reference}.ics", "/{control}.ics", "/{negative}.ics"]
    bare = seek(CALDAV, account="ann", payload=CALENDAR.payload, names=Names(provider_key="k", negative="n"))
    paths = [template.path.removeprefix(folder) for template in requests_of(CALENDAR_LOOK, bare)]
    assert paths == ["/{reference}.ics", "/{negative}.ics"]
    seen = read(CALENDAR_LOOK, (shown(), GONE), bare)
    assert (seen.kind, seen.positive_control, seen.negative_control) == (ReadingKind.FOUND, False, True)
    assert requests_of(LOOK, SOUGHT) == (LOOK.request,)


def test_a_text_is_ours_when_its_properties_are():
    """The URL is the reference, the named properties are the content."""
    seen = calendar(shown(ICS.replace("SUMMARY:Tea\r\n", "").replace("UID:u1", "SUMMARY:T\r\n ea\r\nUID:u1")))
    assert (seen.kind, seen.external_id, seen.positive_control) == (ReadingKind.FOUND, "u1", True)
    assert seen.compared == dict.fromkeys(["account", "reference", "UID", "DTSTART", "DTEND", "SUMMARY"], "equal")


@pytest.mark.parametrize(
    ("main", "kind", "reason"),
    [
        (shown(ICS.replace("Tea", "Coffee")), ReadingKind.FOREIGN, "other_content"),
        (shown(ICS.replace("DTEND", "DUE")), ReadingKind.FOREIGN, "other_content"),
        (shown("hello"), ReadingKind.CANDIDATE, "field_missing"),
        (shown(ICS[:-10]), ReadingKind.CANDIDATE, "field_missing"),
        (shown(b"\xff"), ReadingKind.INCONCLUSIVE, "not_text"),
        (shown(" "), ReadingKind.INCONCLUSIVE, "empty_body"),
        (GONE, ReadingKind.ABSENT, ""),
        (Replied(status=410), ReadingKind.ABSENT, ""),
        (Replied(status=500), ReadingKind.INCONCLUSIVE, "status_500"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, ReadingKind) else None,
)
def test_another_event_under_our_url_is_foreign(main, kind, reason):
    """Somebody's event under our natural key is not ours; what cannot be compared is a candidate."""
    seen = calendar(main)
    assert (seen.kind, seen.reason) == (kind, reason)


def test_nothing_of_ours_to_compare_is_no_agreement():
    """Two texts without the named properties do not agree about them."""
    empty = "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
    for ours in (empty, "no calendar", 5):
        sought = msgspec.structs.replace(CALENDAR, payload=canonical({"uid": "u1", "ics": ours}))
        seen = read(CALENDAR_LOOK, (shown(empty), shown(), GONE), sought)
        assert seen.kind is ReadingKind.CANDIDATE


@pytest.mark.parametrize("negative", [shown(), Replied(status=500), Silent(may_have_left=True, reason="reset")])
def test_a_failed_control_read_is_no_control(negative):
    """A server that shows something everywhere, or fails at the control, has shown nothing."""
    assert calendar(shown(), negative=negative).reason == "negative_control"
    assert calendar(GONE, negative=negative).negative_control is False
    assert not calendar(GONE, positive=Replied(status=404)).positive_control


def test_a_missing_control_answer_is_no_control():
    """Other answers than the reads that were asked for are nobody's: no control holds."""
    for answers in ((GONE,), (GONE, GONE), (GONE, shown(), GONE, GONE)):
        seen = read(CALENDAR_LOOK, answers, CALENDAR)
        assert (seen.kind, seen.positive_control, seen.negative_control) == (ReadingKind.ABSENT, False, False)


def test_one_item_that_names_another_reference_answers_another_question():
    """Asked for ours and shown another's: inconclusive, not absent."""
    single = changed(items="", complete=True, absent_status=("404",))
    body = json.dumps(item(reference="op_2")).encode()
    seen = reading(Replied(status=200, body=body), single)
    assert (seen.kind, seen.reason) == (ReadingKind.INCONCLUSIVE, "other_reference")
    ours = Replied(status=200, body=json.dumps(item()).encode())
    assert reading(ours, single).kind is ReadingKind.FOUND


def test_a_look_may_be_unable_to_say_that_it_is_complete():
    """Unknown completeness is incompleteness."""
    assert reading(page(item(), CONTROL), changed(complete="unknown")).reason == "incomplete"
    assert reading(page(item(), CONTROL), changed(complete=False)).reason == "incomplete"


def test_states_are_shown_short():
    """A provider's text does not swell the evidence; other types are shown as they are."""
    look = changed(match={"state": {"/state": ("done",), "/n": (1,)}})
    seen = reading(page(item(state="x" * 999, n=1), CONTROL), look)
    assert seen.state == {"/state": "x" * module.STATE_CHARS_MAX, "/n": 1}


def test_every_way_of_looking_has_its_coverage():
    """What a look speaks for is decided for all of them."""
    assert set(module.COVERAGE) == set(By)


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ({"more": False}, True),
        ({"more": True}, False),
        ({"more": 0}, False),
        ({}, False),
        ({"more": False, "next": None}, True),
        ({"more": False, "next": "x"}, False),
    ],
)
def test_an_answer_says_by_values_that_it_is_complete(said, whole):
    """Each of them must be there, of that type; null is what is missing too."""
    look = changed(complete={"/more": (False,), "/next": (None,)})
    answer = page(item(), CONTROL, body=json.dumps({"items": [item(), CONTROL]} | said).encode())
    assert (reading(answer, look).kind is ReadingKind.FOUND) is whole


def test_no_values_say_nothing():
    """An empty word is no word."""
    assert reading(page(item(), CONTROL), changed(complete={})).reason == "incomplete"


@pytest.mark.parametrize(("body", "absent"), [(b'{"code":-2013}', True), (b'{"code":-1}', False), (b"<h1>", False)])
def test_a_status_that_says_many_things_says_absent_by_its_body(body, absent):
    """Of such a status only the body's own values are the word for nothing there."""
    look = changed(absent_status=("400",), absent_where={"/code": -2013})
    seen = reading(Replied(status=400, body=body), look)
    assert (seen.kind is ReadingKind.ABSENT) is absent
    assert absent or seen.reason == "status_400"


def test_the_reference_may_be_the_ledgers_key_as_a_uuid():
    """What was sent in that form is looked for in that form."""
    contract = msgspec.structs.replace(LOOKUP, reference="provider_uuid")
    names = Names(provider_key="op_" + "0" * 32)
    assert seek(contract, account="acct", payload=b"{}", names=names).names.reference == names.provider_uuid != ""


# -- pages ------------------------------------------------------------------------------------------------------------

PAGED = changed(next_page="/next")


def part(*items, cursor=..., complete=False, status=200):
    """One page of several; the last one names no next."""
    cursor = (None if complete else "c2") if cursor is ... else cursor
    shown = {"account": "acct", "complete": complete, "items": list(items), "next": cursor}
    return Replied(status=status, body=json.dumps(shown).encode())


def bound(first, *more, look=PAGED):
    """The reading of a look in pages."""
    return read(look, (first,), SOUGHT, more=more)


LAST = part(complete=True, cursor=None)


def test_the_next_page_is_where_the_one_before_says():
    """While something is missing; not where all is there, or nobody could say where to go on."""
    assert next_page(PAGED, part(item())) == "c2"
    assert [next_page(PAGED, answer) for answer in (
        LAST, part(complete=True), part(cursor=None), part(cursor=7), part(cursor=""), part(status=500),
        Silent(may_have_left=True, reason="read_timeout"),
    )] == [""] * 7  # fmt: skip
    assert next_page(LOOK, part(item())) == ""


def test_an_answer_that_names_another_page_is_not_complete():
    """Whatever else it says of itself, ours may stand there: the page is asked for, and nothing is absent before."""
    first, second = part(CONTROL, cursor="1", complete=True), part(item(), complete=True)
    for complete in ("/complete", {"/complete": (True,)}, True):
        look = changed(next_page="/next", complete=complete)
        assert next_page(look, first) == "1"
        assert (bound(first, look=look).kind, bound(first, look=look).reason) == (INCONCLUSIVE, "incomplete")
        assert bound(first, second, look=look).kind is ReadingKind.FOUND
    for ends in (None, "", False):
        assert bound(part(CONTROL, cursor=ends, complete=True)).kind is ReadingKind.ABSENT


@pytest.mark.parametrize("cursor", [0, 5, 1.5, True, {"a": 1}, {}, [], ["c2"]])
def test_a_next_page_that_nobody_can_ask_for_leaves_the_look_inconclusive(cursor):
    """It names one, by what cannot stand in a request; only the contract's own word makes it an end."""
    answer = part(CONTROL, cursor=cursor, complete=True)
    assert (bound(answer).kind, bound(answer).reason) == (INCONCLUSIVE, "next_page_unusable")
    assert next_page(PAGED, answer) == ""
    ends = changed(next_page="/next", complete={"/next": ("end", cursor)})
    if not isinstance(cursor, dict | list):
        assert bound(answer, look=ends).kind is ReadingKind.ABSENT
    assert bound(part(CONTROL, cursor="end", complete=True), look=ends).kind is ReadingKind.ABSENT


def test_ours_may_stand_on_any_page():
    """All pages are one list: two of ours on two of them are a duplicate, one on two of them is one."""
    assert bound(part(CONTROL), part(item(), complete=True)).kind is ReadingKind.FOUND
    assert bound(part(item(), CONTROL), part(), LAST).items == 2
    assert bound(part(item(), CONTROL), part(item(), complete=True)).kind is ReadingKind.FOUND
    twice = bound(part(item(), CONTROL), part(item(id="ef_2"), complete=True))
    assert (twice.kind, twice.pages) == (ReadingKind.DUPLICATE, 2)


def test_controls_hold_over_all_pages():
    """The known item may stand on any of them, and the impossible one on none."""
    seen = bound(part(), part(CONTROL, complete=True))
    assert (seen.kind, seen.positive_control, seen.negative_control, seen.pages) == (ReadingKind.ABSENT, True, True, 2)
    impossible = item(reference="cf-absent-1")
    assert bound(part(item()), part(impossible, complete=True)).reason == "negative_control"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ((), "incomplete"),
        ((part(),), "incomplete"),
        ((part(cursor=None),), "incomplete"),
        ((part(status=404),), "status_404"),
        ((part(status=500), LAST), "status_500"),
        ((Silent(may_have_left=False, reason="not_made"),), "not_made"),
    ],
)
def test_pages_that_do_not_come_to_an_end_say_nothing(more, reason):
    """Also where ours was seen on one of them: what is missing may hold a second."""
    seen = bound(part(item(), CONTROL), *more)
    assert (seen.kind, seen.reason) == (ReadingKind.INCONCLUSIVE, reason)
    gone = changed(next_page="/next", absent_status=("404",))
    assert bound(part(item(), CONTROL), *more, look=gone).reason == reason


def test_all_pages_together_are_bounded():
    """Two pages of which each could be searched are too many together."""
    assert bound(part(*[item()] * ITEMS_MAX), part(item(), complete=True)).reason == "too_many_items"


def test_a_further_page_is_one_read():
    """The controls of their own were made with the first."""
    controls = {"positive": LookTemplate(path="/{control}"), "negative": LookTemplate(path="/{negative}")}
    look = changed(controls=controls | {"known": "k"})
    assert len(requests_of(look, SOUGHT)) == 3
    names = msgspec.structs.replace(SOUGHT.names, cursor="c2")
    assert requests_of(look, msgspec.structs.replace(SOUGHT, names=names)) == (look.request,)
