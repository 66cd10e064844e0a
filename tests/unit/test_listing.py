"""Lists read for their own sake: everything that is shown, by its own names, and whether it is all."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.stepping import action, draw, ends

from counterfoil import contracts
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.contract import By
from counterfoil.domain.listing import Listed, content, listed, moment
from counterfoil.plans.effects import Look
from counterfoil.plans.survey import PAGES_MAX, survey

LOOKUP = contracts.load("lab.lookup")
LIST = msgspec.structs.replace(LOOKUP.looks[0], by=By.LIST, created_at="/at")
ITEM = {"id": "e-1", "reference": "op_1", "account": "acct", "state": "done", "payload": {"n": 1}, "at": 5}


def page(*items, complete=True, status=200):
    """A page of a list."""
    return Replied(status=status, body=json.dumps({"complete": complete, "items": items}).encode())


def test_every_item_is_shown_by_its_own_names():
    """Account, reference, id, state and time, as far as it says them."""
    whole = listed(LIST, page(ITEM, {"id": 7}), "acct_ours")
    first, second = whole.things
    assert (first.account, first.reference, first.external_id, first.state, first.created_at) == (
        "acct", "op_1", "e-1", {"/state": "done"}, 5.0,
    )  # fmt: skip
    assert (second.account, second.reference, second.external_id, second.created_at) == ("", "", "7", None)
    assert whole.reason == ""


@pytest.mark.parametrize(("place", "account"), [("scope", "acct_ours"), ("unknown", ""), ("/account", "acct")])
def test_the_account_is_ours_only_where_the_clause_says_so(place, account):
    """Credentials speak for what they show only where the contract says that they show nothing else."""
    look = msgspec.structs.replace(LIST, match=msgspec.structs.replace(LIST.match, account=place), created_at="")
    (thing,) = listed(look, page(ITEM), "acct_ours").things
    assert (thing.account, thing.created_at) == (account, None)


def test_a_page_that_is_not_all_is_shown_and_says_so():
    """What it shows is no less there; nothing is shown of an answer that is not healthy."""
    part = listed(LIST, page(ITEM, complete=False), "acct")
    assert (len(part.things), part.reason) == (1, "incomplete")
    assert listed(LIST, page(ITEM, status=500), "acct") == Listed(reason="status_500")
    assert listed(LIST, Silent(may_have_left=True, reason="read_timeout"), "acct") == Listed(reason="read_timeout")
    assert listed(LIST, Replied(status=200, body=b'{"complete":false}'), "acct") == Listed(reason="no_items")


@pytest.mark.parametrize(
    ("said", "at"),
    [
        (5, 5.0), (5.5, 5.5), ("1970-01-01T00:00:05+00:00", 5.0), ("1970-01-01T00:00:05", None), ("soon", None),
        (True, None), (None, None),
    ],
)  # fmt: skip
def test_a_moment_is_read_or_not_known(said, at):
    """A time without its zone is nobody's moment."""
    assert moment(said) == at


def test_contents_are_equal_by_what_is_compared():
    """In value and type, at each side's own places; what lacks a field has none."""
    fields = {"/n": "/payload/n"}
    assert content(fields, {"n": 1}, theirs=False) == content(fields, {"payload": {"n": 1}}, theirs=True)
    assert content(fields, {"n": 1}, theirs=False) != content(fields, {"n": "1"}, theirs=False)
    for lacking in ({}, {"n": object()}):
        assert content(fields, lacking, theirs=False) is None
    assert content({}, {"n": 1}, theirs=False) is None


def test_a_survey_makes_one_look_and_records_nothing():
    """The credentials' account, the fields that were named, and no operation's name."""
    contract = msgspec.structs.replace(LOOKUP, looks=(LIST,))
    plan = survey(action(contract, control="known"), draw(), look=0, payload=b'{"channel":"C1"}')
    look = next(plan)
    assert isinstance(look, Look)
    order = look.order
    assert (order.account, order.payload, order.names.provider_key, order.names.reference) == (
        "acct", b'{"channel":"C1"}', "", "",
    )  # fmt: skip
    assert ends(plan, (page(ITEM),)).things[0].external_id == "e-1"
    plan = survey(action(contract), draw(), look=0, payload=b"{}")
    next(plan)
    assert ends(plan, ()) == Listed(reason="not_made")


def test_a_survey_follows_pages_to_the_end_and_says_where_it_stopped():
    """Every page is shown; a circle, or one that does not come, is not the end."""
    clause = msgspec.structs.replace(LIST, next_page="/next")
    contract = msgspec.structs.replace(LOOKUP, looks=(clause,))

    def answered(*nexts):
        plan, told = survey(action(contract), draw(), look=0, payload=b"{}"), []
        look = next(plan)
        for number, cursor in enumerate(nexts):
            told.append(look.order.names.cursor)
            body = {"complete": not cursor, "items": [{**ITEM, "id": f"e-{number}"}], "next": cursor}
            try:
                look = plan.send((Replied(status=200, body=json.dumps(body).encode()),))
            except StopIteration as stopped:
                return told, [thing.external_id for thing in stopped.value.things], stopped.value.reason
        raise AssertionError("it asks for more than there are")

    assert answered("b", "c", "") == (["", "b", "c"], ["e-0", "e-1", "e-2"], "")
    assert answered("b", "b") == (["", "b"], ["e-0", "e-1"], "incomplete")
    endless, _, reason = answered(*(str(n) for n in range(1, PAGES_MAX + 1)))
    assert (len(endless), reason) == (PAGES_MAX, "incomplete")
