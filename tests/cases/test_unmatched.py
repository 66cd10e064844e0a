"""What is at the provider and stands in no book: reported, and nothing is changed by the report."""

from __future__ import annotations

import json

import pytest
from tests.cases.stage import guard, listing, reply
from tests.integration.wire.servers import Peer, Server

from counterfoil.domain.errors import BadValue
from counterfoil.lab.ground_truth import item
from counterfoil.lab.provider import ACCOUNT
from counterfoil.runtime import fed, unmatched

LIST = {"by": "list", "request": {"path": "/effects", "query": {"limit": "{payload/limit}"}}}
OF = {"limit": "200"}


@pytest.fixture
def till(lab, book, brief):
    """A ledger of one till, whose provider can be asked for everything in the account."""
    ledger = book()
    return ledger, guard(ledger, lab.url, brief("lookup", look=LIST), name="pay")


def mine(report, *payloads):
    """The rows about these payments; the account is shared with every other test."""
    names = {one.external_id: one for one in report.seen}
    return [names[effect] for effect in payloads]


def effect_of(lab, name):
    """The provider's own names for what happened under a reference or with a payload."""
    return [effect["id"] for effect in lab.effects(name)]


def test_r15_what_the_provider_has_and_no_receipt_explains_is_listed(lab, till):
    """A payment past us is listed, ours is not, and one of ours whose answer was lost is explained by its receipt."""
    ledger, pay = till
    done = pay({"order": "r15-a", "amount": 10})
    lab.fault("lose_reply")
    lost = pay({"order": "r15-b", "amount": 11})
    lab.faults()
    lab.ask("POST", "/lookup/effects", {"order": "r15-c", "amount": 12})
    before = [(o.id, o.seq) for o in ledger.store.operations(limit=100)]
    report = ledger.unmatched("pay", of=OF)
    rows = mine(
        report, *effect_of(lab, done.id), *effect_of(lab, lost.id), *effect_of(lab, {"order": "r15-c", "amount": 12})
    )
    assert [row.match.value for row in rows] == ["explained", "explained", "unmatched"]
    assert rows[0].operations == (done.id,)
    assert not report.clean
    assert [(o.id, o.seq) for o in ledger.store.operations(limit=100)] == before


def test_r66_two_things_under_one_reference_are_both_shown(lab, till):
    """Somebody between sent it twice: neither is taken for the one that was asked for."""
    ledger, pay = till
    receipt = pay({"order": "r66-a", "amount": 10})
    lab.ask("POST", "/lookup/effects", {"order": "r66-a", "amount": 10}, **{"X-Client-Reference": receipt.id})
    rows = mine(ledger.unmatched("pay", of=OF), *effect_of(lab, receipt.id))
    assert {(row.match.value, row.because) for row in rows} == {
        ("candidate", "more than one thing answers to that receipt")
    }


def test_r10_the_same_content_under_no_name_of_ours_is_a_candidate(lab, till):
    """It may be ours, sent past the book: shown beside the receipt it looks like, never taken for it."""
    ledger, pay = till
    receipt = pay({"order": "r10-u", "amount": 10})
    payload = {"order": "r10-u", "amount": 10}
    lab.ask("POST", "/lookup/effects", payload)
    (other,) = set(effect_of(lab, payload)) - set(effect_of(lab, receipt.id))
    (row,) = mine(ledger.unmatched("pay", of=OF), other)
    assert (row.match.value, row.operations) == ("candidate", (receipt.id,))


def beside(lab, ledger, receipt, payload):
    """Why the receipt does not explain what a stranger did under its reference."""
    lab.faults()
    lab.ask("POST", "/lookup/effects", payload, **{"X-Client-Reference": receipt.id})
    (row,) = [row for row in ledger.unmatched("pay", of=OF).open if row.operations == (receipt.id,)]
    assert row.match.value == "contradictory"
    return row.because


def test_a_receipt_that_denies_it_explains_nothing(lab, till):
    """It was rejected, and there it is."""
    ledger, pay = till
    receipt = pay({"order": "r15-denied", "reject": True})
    said = beside(lab, ledger, receipt, {"order": "r15-denied"})
    assert said == "its receipt says that nothing happened"


def test_a_receipt_of_what_was_not_sent_explains_nothing(lab, till):
    """It was held, and somebody else did it under its name."""
    ledger, pay = till
    lab.fault("lose_reply")
    pay({"order": "r15-held", "amount": 10}, key="r15-one")
    held = pay({"order": "r15-held", "amount": 10}, key="r15-two")
    assert held.operation.held_by
    assert beside(lab, ledger, held, {"order": "r15-held"}) == "its receipt says that nothing was sent"


def test_a_thing_of_another_content_is_not_explained(lab, till):
    """The right reference and the wrong amount."""
    ledger, pay = till
    lab.fault("lose_request")
    receipt = pay({"order": "r15-other", "amount": 10})
    assert beside(lab, ledger, receipt, {"order": "r15-other", "amount": 99}) == "it is not what was asked for"


class Shown(Server):
    """A provider that does what it is asked to, and lists whatever it is told to."""

    def __init__(self) -> None:
        super().__init__(self._serve_one)
        self.items: list[dict[str, object]] = []

    def _serve_one(self, peer: Peer) -> None:
        if peer.take().method == "GET":
            peer.say(reply(200, listing(*self.items)))
        else:
            peer.say(reply(201, {"id": f"ef_{len(self.requests)}", "state": "done"}))


@pytest.mark.parametrize(
    ("of", "changes", "kind", "because"),
    [
        (0, {}, "explained", ""),
        (0, {"id": "ef_9"}, "contradictory", unmatched.OTHER_OBJECT),
        (1, {"id": "ef_1"}, "contradictory", fed.ANOTHERS),
        (0, {"state": "failed"}, "contradictory", unmatched.ENDED),
    ],
)
def test_what_a_receipt_contradicts_is_not_explained_by_it(book, brief, of, changes, kind, because):
    """Another object under our reference, one's reference with the other's object, a success that failed."""
    ledger = book()
    ends = [{"state": {"/state": ["failed"]}, "finding": "rejected", "source": "front"}]
    with Shown() as provider:
        contract = brief("lookup", look=LIST, terminal=ends)
        pay = guard(ledger, provider.url(""), contract, name="pay")
        receipts = [pay({"order": order, "amount": 10}) for order in ("u-1", "u-2")]
        assert [receipt.outcome.value for receipt in receipts] == ["succeeded"] * 2
        asked = item(f"ef_{of + 1}", ACCOUNT, reference=receipts[of].id, payload={"order": f"u-{of + 1}", "amount": 10})
        provider.items = [asked | changes]
        report = ledger.unmatched("pay", of=OF)
    assert [(row.match.value, row.because, row.operations[0]) for row in report.seen] == [
        (kind, because, receipts[of].id)
    ]
    assert report.clean is (kind == "explained")


def test_a_list_that_is_not_whole_says_so(lab, till):
    """One page of several: what is shown is listed, and the report is not clean."""
    ledger, pay = till
    pay({"order": "r15-p", "amount": 10})
    report = ledger.unmatched("pay", of={"limit": "1"})
    assert (report.incomplete, len(report.seen), report.clean) == ("incomplete", 1, False)


def test_a_list_that_cannot_be_read_shows_nothing_and_is_not_clean(lab, till):
    """A 500 is no empty account, and neither is a field that was not named."""
    ledger, _ = till
    assert ledger.unmatched("pay").incomplete == "not_rendered"
    lab.fault("look_500")
    report = ledger.unmatched("pay", of=OF)
    assert (report.seen, report.incomplete, report.clean) == ((), "status_500", False)


@pytest.mark.parametrize("changes", [{"look": None}, {"reconcile": "forbidden"}])
def test_without_a_list_that_may_be_read_there_is_no_report(lab, book, brief, changes):
    """A look by reference is no list, and a contract that forbids looks forbids this one."""
    ledger = book()
    given = {"look": LIST, **changes}
    guard(ledger, lab.url, brief("lookup", **given), name="pay")
    with pytest.raises(BadValue, match="a look by list"):
        ledger.unmatched("pay", of=OF)


def test_a_window_needs_a_list_that_says_when(till):
    """Nothing is left out by a time that nobody knows."""
    with pytest.raises(BadValue, match="created_at"):
        till[0].unmatched("pay", of=OF, since=0.0)


def test_json_of_it_is_plain(lab, till):
    """Everything that is shown can be written down."""
    from counterfoil.cli.unmatched import as_json

    ledger, pay = till
    pay({"order": "r15-j", "amount": 10})
    assert json.loads(json.dumps(as_json(ledger.unmatched("pay", of=OF))))["account"] == "acct_lab"
