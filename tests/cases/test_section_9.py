"""Field reports, section 9, as far as looks are made here: what a search proves, and what a restart finds."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.cases.stage import document, done, evidence, guard, is_unknown, later, listing, reply, until
from tests.integration.wire.servers import Peer, Server

import counterfoil
from counterfoil.domain import absence, looking
from counterfoil.lab.ground_truth import item
from counterfoil.lab.processes import Child
from counterfoil.lab.provider import ACCOUNT

ISSUE = {"order": "o-9", "title": "Cannot log in with a name that holds an @ sign since the last release"}
ASSUMED = {"longest_delivery": 0.0, "longest_delivery_by": "tests", "longest_delivery_why": "loopback"}


class Tracker(Server):
    """A tracker that files what it is asked to, loses the answer, and shows in a search whatever it is told to show."""

    def __init__(self) -> None:
        super().__init__(self._serve_one)
        self.shows = reply(200, listing())

    def _serve_one(self, peer: Peer) -> None:
        if peer.take().method == "GET":
            peer.say(self.shows)

    @property
    def reference(self) -> str:
        """What our request carried."""
        return self.requests[0].headers["x-client-reference"]

    def filed(self, **fields: object) -> dict[str, object]:
        """What a search shows of our issue, with other fields where some are given."""
        shown = item("ef_1", ACCOUNT, reference=self.reference, payload=ISSUE)
        return shown | fields

    def sends(self) -> int:
        """How many issues it was asked to file."""
        return sum(seen.method == "POST" for seen in self.requests)


@pytest.fixture
def tracker():
    """A tracker of its own for each test."""
    with Tracker() as server:
        yield server


def file_issue(ledger, tracker, terms, **declared):
    """File the issue once; the answer is lost."""
    receipt = guard(ledger, tracker.url(""), terms, **declared)(ISSUE)
    assert is_unknown(receipt)
    return receipt


def test_r72_a_search_that_lags_and_mangles_neither_denies_nor_confirms(book, tracker, brief):
    """Not found yet is unknown, and so is a hit that is alike: only our marker with the exact fields is ours."""
    terms = brief("lookup", look={"consistency": "eventual", "lag_seconds": 120}, read_budget={"looks_max": 9})
    ledger = book()
    receipt = file_issue(ledger, tracker, terms, **ASSUMED)
    later(ledger, 600)
    stranger = item("ef_9", "acct_lab", payload=ISSUE)
    cut = {**ISSUE, "title": ISSUE["title"][:50].replace("@", "")}
    searches = {
        "looks[0].candidate no_reference": listing(stranger),
        "looks[0].foreign other_content": listing(tracker.filed(payload=cut)),
        "looks[0].foreign other_account": listing(tracker.filed(account="acct_other")),
        "looks[0].inconclusive other_reference": listing(item("ef_8", ACCOUNT, reference="another", payload=ISSUE)),
        "looks[0].absent": listing(),
    }
    for said, shows in searches.items():
        tracker.shows = reply(200, shows)
        looked = ledger.reconcile(receipt.id)
        assert is_unknown(looked)
        last = evidence(looked)[-1]
        assert f"{last['rule']} {last['reason'] or ''}".split() == said.split()
        assert document(looked)["external_id"] is None
    assert last["facts"]["missing"] == [absence.NOT_STRONG]
    with pytest.raises(counterfoil.CallerError, match="no further attempt is permitted"):
        ledger.attempt(receipt.id, by="mara")
    tracker.shows = reply(200, listing(stranger, tracker.filed()))
    found = ledger.reconcile(receipt.id)
    assert (found.outcome.value, found.expect()) == ("succeeded", done())
    assert tracker.sends() == 1


WHOLE = listing()
UNHEALTHY = {
    "401": reply(401, {"error": "unauthorized"}),
    "403": reply(403, {"error": "forbidden"}),
    "404": reply(404, {"error": "not found"}),
    "429": reply(429, {"error": "slow down"}, retry_after="0"),
    "500": reply(500, {"error": "internal"}),
    "an empty body": reply(200, b""),
    "nothing but null": reply(200, None),
    "an empty list": reply(200, []),
    "an empty object": reply(200, {}),
    "HTML": reply(200, b"<html>Please log in</html>", content_type="text/html"),
    "truncated JSON": reply(200, WHOLE)[:-20],
    "JSON that ends too early": reply(200, reply(200, WHOLE).partition(b"\r\n\r\n")[2][:-1]),
    "an incomplete page": reply(200, WHOLE | {"complete": False}),
    "no known item": reply(200, WHOLE | {"items": []}),
    "another account's page": reply(200, WHOLE | {"items": [item("ef_control", "acct_other", reference="control")]}),
    "a redirect": reply(302, b"", location="/login"),
    "nothing": b"",
}


@pytest.mark.parametrize("name", UNHEALTHY)
def test_r73_a_read_that_failed_is_not_a_read_that_found_nothing(book, tracker, name):
    """Errors, refusals, emptiness and half answers leave the outcome unknown; one healthy read settles it."""
    ledger = book()
    receipt = file_issue(ledger, tracker, "lab.lookup", **ASSUMED)
    later(ledger)
    tracker.shows = UNHEALTHY[name]
    assert is_unknown(ledger.reconcile(receipt.id))
    with pytest.raises(counterfoil.CallerError, match="no further attempt is permitted"):
        ledger.attempt(receipt.id, by="mara")
    tracker.shows = reply(200, WHOLE)
    absent = ledger.reconcile(receipt.id)
    assert (absent.outcome.value, absent.lifecycle.value) == ("rejected", "safe_to_retry")
    assert tracker.sends() == 1


@pytest.mark.parametrize("heard", [reply(429, {}, retry_after="60"), reply(200, WHOLE, retry_after="60")])
def test_nobody_looks_at_an_account_before_its_provider_wants_to_be_asked(book, tracker, heard):
    """One look heard Retry-After: no other is made, of no operation and by nobody, and none is paid for."""
    ledger = book()
    action = guard(ledger, tracker.url(""), "lab.lookup")
    receipts = [action(ISSUE | {"order": order}) for order in ("o-1", "o-2", "o-3")]
    tracker.shows = heard
    assert is_unknown(ledger.reconcile(receipts[0].id))
    for receipt in receipts:
        for look in (ledger.reconcile, ledger.work):
            assert is_unknown(look(receipt.id))
    assert ledger.reconcile(receipts[1].id).because == (looking.ASKED_TO_WAIT,)
    assert sum(seen.method == "GET" for seen in tracker.requests) == 1
    assert [ledger.get(receipt.id).operation.looks for receipt in receipts] == [1, 0, 0]


def test_one_object_proves_one_operation(book, tracker):
    """The same thing under the references of two: whichever asks second stays unknown, and a person looks at both."""
    ledger = book()
    action = guard(ledger, tracker.url(""), "lab.lookup")
    for number, order in enumerate(("o-1", "o-2")):
        receipt = action(ISSUE | {"order": order})
        reference = tracker.requests[-1].headers["x-client-reference"]
        shown = item("ef_1", ACCOUNT, reference=reference, payload=ISSUE | {"order": order})
        tracker.shows = reply(200, listing(shown))
        looked = ledger.reconcile(receipt.id)
        stands = ("unknown", "open") if number else ("succeeded", "none")
        assert (looked.outcome.value, looked.discrepancy.value) == stands
    assert (evidence(looked)[-1]["reason"], looked.lifecycle.value) == ("anothers_object", "manual_review")


def test_r73_two_matches_are_a_suspected_duplicate(book, tracker):
    """Two things under our one marker are named apart and a person is asked; nothing is guessed from either."""
    ledger = book()
    receipt = file_issue(ledger, tracker, "lab.lookup")
    tracker.shows = reply(200, listing(tracker.filed(id="id1"), tracker.filed(id="id2")))
    looked = ledger.reconcile(receipt.id)
    assert (looked.discrepancy.value, looked.lifecycle.value) == ("open", "manual_review")
    last = evidence(looked)[-1]
    assert (last["reason"], last["facts"]["candidates"]) == ("duplicate_suspected", ["id1", "id2"])
    assert last["external_id"] == "id1"
    assert looked.for_model()["effect"] == "evidence disagrees"
    assert tracker.sends() == 1


def test_r74_forbidden_is_not_absent(book, tracker):
    """403 "does not exist" while the thing is still processed says nothing; nor does its unfinished state."""
    ledger = book()
    receipt = file_issue(ledger, tracker, "lab.lookup", **ASSUMED)
    later(ledger)
    for said, reason in (
        (reply(403, {"error": "does not exist"}), "status_403"),
        (reply(200, listing(tracker.filed(state="processing"))), "other_state"),
    ):
        tracker.shows = said
        looked = ledger.reconcile(receipt.id)
        assert is_unknown(looked)
        assert evidence(looked)[-1]["reason"] == reason
    tracker.shows = reply(200, listing(tracker.filed()))
    assert ledger.reconcile(receipt.id).expect() == done()
    assert tracker.sends() == 1


BOT = """
import os, sys
import counterfoil

store, url, how = sys.argv[1:]
who = {"owner": "bots", "authoriser": "bots-lead", "account": "acct_lab", "key": lambda push: push}
ledger = counterfoil.open(store, actor="agent:bot")
secrets = {"/headers/authorization": lambda: "Bearer lab-secret"}

def ticket(push):
    from urllib.request import Request, urlopen
    headers = {"Authorization": "Bearer lab-secret", "X-Client-Reference": counterfoil.provider_key()}
    with urlopen(Request(url + "/lookup/effects", b'{"push": "function"}', headers)) as made:
        assert made.status == 201
    os._exit(9)  # the ticket is made, and its number is not stored

if how == "http":
    call = lambda: ledger.http("ticket", contract="lab.lookup", base_url=url, secrets=secrets, **who)({"push": "http"})
else:
    call = lambda: ledger.action(ticket, **who)("function")
receipt = call()
if how == "http" and receipt.outcome == "unknown":
    receipt = ledger.reconcile(receipt.id)
print(receipt.id, receipt.standing, receipt.outcome)
"""


def push(tmp_path, lab, how):
    """One run of the bot, to its end."""
    argv = [sys.executable, "-c", BOT, str(tmp_path / "receipts.db"), lab.url, how]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_r75_a_bot_that_died_with_the_number_in_hand_makes_no_second_ticket(lab, tmp_path):
    """Gone between the provider's 201 and its own record, restarted three times: one ticket, and nobody denies it."""
    assert push(tmp_path, lab, "function").returncode == 9
    told = [push(tmp_path, lab, "function") for _ in range(3)]
    assert [said.returncode for said in told] == [0, 0, 0], told
    (operation, *_), *others = [said.stdout.split() for said in told]
    assert [said.stdout.split() for said in told] == [[operation, "unresolved", "unknown"]] * 3, others
    assert (lab.sends(operation), len(lab.effects(operation))) == (1, 1)


@pytest.mark.slow
def test_r75_a_killed_bot_finds_its_ticket_when_it_is_started_again(lab, tmp_path):
    """Killed once the ticket stood, before any answer: the next run finds it by a look, and the others remember it."""
    lab.fault("hang", times=1)
    argv = [sys.executable, "-c", BOT, str(tmp_path / "receipts.db"), lab.url, "http"]
    with Child(argv, ready_seconds=None) as bot:
        until(lambda: lab.effects({"push": "http"}), "the ticket")
        bot.signal(signal.SIGKILL)
        bot.wait()
    told = [push(tmp_path, lab, "http") for _ in range(3)]
    assert [said.returncode for said in told] == [0, 0, 0], told
    (operation, _, _) = told[0].stdout.split()
    assert [said.stdout.split()[2] for said in told] == ["succeeded"] * 3
    assert [said.stdout.split()[0] for said in told] == [operation] * 3
    assert (lab.sends(operation), len(lab.effects(operation))) == (1, 1)
    assert lab.looks(operation) == 1
