"""`counterfoil resolve`: a person's finding, with its evidence, its author and how they were known."""

from __future__ import annotations

import getpass
import os

import pytest

from counterfoil.domain.event import EventKind, evidence_of
from counterfoil.domain.result import kept

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter

NAMED = ("--as", "Front Desk", "--reason", "seen in the provider's own console")
SEEN = ("--outcome", "succeeded", "--evidence", "id=ef_9", "--evidence", "amount=1500")


@pytest.fixture
def lost(shop):
    """The id of an operation that only a person can settle."""
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(1, "lab.nothing")
    assert shop("run", "lab.jsonl").code == 1
    (found,) = shop("list", "--json").lines
    return found["id"]


def found_by(shop, operation):
    """What the last observation of an operation rests on."""
    from counterfoil.bootstrap import open_ledger

    with open_ledger(shop.folder / "receipts.db") as ledger:
        event = [e for e in ledger.history(operation).events if e.kind is EventKind.OBSERVED][-1]
        return evidence_of(event), kept(event).get("facts") or evidence_of(event).facts


def resolve(shop, operation, *words, **options):
    """Resolve with the actions of the shop."""
    return shop("resolve", operation, *words, "--actions", "lab.yaml", **options)


def test_a_finding_settles_and_is_kept_with_its_author(shop, lost):
    """Outcome, evidence, name, reason and the operating system's user stand on the record; nothing is sent."""
    said = resolve(shop, lost, *SEEN, *NAMED, "--json")
    assert said.code == 0
    assert (said.json["outcome"], said.json["settled_by"]) == ("succeeded", "succeeded:operator")
    evidence, facts = found_by(shop, lost)
    assert (evidence.rule, evidence.external_id) == ("operator.finding", "ef_9")
    assert (facts["by"], facts["reason"]) == ("user:front desk", NAMED[3])
    assert facts["evidence"] == {"id": "ef_9", "amount": "1500"}
    assert getpass.getuser() in facts["how"]
    assert f"uid {os.getuid()}" in facts["how"]
    assert shop.sends() == 1


def test_without_a_terminal_a_decision_needs_a_name_and_a_reason(shop, lost):
    """Nobody to ask and nobody named: nothing is recorded."""
    for words in ((), ("--reason", "why not"), ("--as", "Front Desk"), ("--as", " ", "--reason", "x")):
        said = resolve(shop, lost, *SEEN, *words)
        assert said.code == 2, words
        assert "--as NAME and --reason TEXT" in said.err or "one line of 1 to" in said.err
    assert shop("list", "--json", "--unresolved").json["id"] == lost


def test_a_terminal_confirms_by_the_operations_own_name(shop, lost):
    """The operation is named, and its id's end must be typed; then the reason is asked for."""
    words = ("resolve", lost, *SEEN, "--actions", "lab.yaml")
    code, shown = shop.in_terminal(*words, typed=f"{lost[-6:]}\nI saw it\n", until="to confirm")
    assert code == 0, shown
    assert lost in shown
    _, facts = found_by(shop, lost)
    assert facts["reason"] == "I saw it"
    assert facts["how"].startswith("confirmed at a terminal by ")
    assert getpass.getuser() in facts["by"]


@pytest.mark.parametrize("typed", ["yes\n", "\n", "op_\n"])
def test_another_answer_decides_nothing(shop, lost, typed):
    """Anything but the operation's own name leaves it as it is."""
    words = ("resolve", lost, *SEEN, "--actions", "lab.yaml")
    code, shown = shop.in_terminal(*words, typed=typed, until="to confirm")
    assert code == 2
    assert "nothing was decided" in shown
    assert shop("list", "--json", "--unresolved").json["id"] == lost


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--outcome", "succeeded"), "--evidence"),
        (("--evidence", "id=1"), "--outcome"),
        (("--outcome", "unknown", "--evidence", "id=1"), "invalid choice"),
        (("--outcome", "succeeded", "--evidence", "id"), "NAME=VALUE"),
        (("--outcome", "succeeded", "--evidence", "=1"), "NAME=VALUE"),
        (("--outcome", "succeeded", "--evidence", "id= "), "NAME=VALUE"),
        (("--outcome", "succeeded", "--evidence", "id=1", "--evidence", "id=2"), "each field once"),
        (("--outcome", "succeeded", "--evidence", "id=" + "1" * 5000), "longer than"),
        (("--outcome", "succeeded", "--evidence", "id=1", "--attempt", "0"), "from 1 to"),
        (("--outcome", "succeeded", "--evidence", "id=1", "--attempt", "-1"), "from 1 to"),
        (("--outcome", "succeeded", "--evidence", "id=1", "--attempt", "2"), "1 to 1"),
    ],
)
def test_a_finding_without_what_it_rests_on_is_refused(shop, lost, words, problem):
    """No evidence, no outcome, a field twice, an attempt there was not: named, and nothing is recorded."""
    said = resolve(shop, lost, *words, *NAMED)
    assert said.code == 2
    assert problem in said.err or "expected one argument" in said.err
    assert shop("list", "--json", "--unresolved").json["id"] == lost


def test_a_contradiction_overwrites_nothing(shop):
    """A finding against proof opens a discrepancy: the outcome stays, and the operation is unresolved again."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    (found,) = shop("list", "--json").lines
    for _ in range(2):  # nor does saying it again settle what it contradicts
        said = resolve(shop, found["id"], "--outcome", "rejected", "--evidence", "ticket=T-1", *NAMED, "--json")
        assert said.code == 1
        assert (said.json["outcome"], said.json["discrepancy"]) == ("succeeded", "open")
        assert "only a finding that agrees with it settles the contradiction" in said.json["happened"][0]


def test_what_is_shown_for_confirmation_cannot_move_the_cursor(shop, lost):
    """A hostile value is shown, not obeyed, where a person is about to confirm."""
    words = ("resolve", lost, "--outcome", "succeeded", "--evidence", "id=\x1b[2Kx", "--actions", "lab.yaml")
    _, shown = shop.in_terminal(*words, typed="no\n", until="to confirm")
    assert "\\x1b[2K" in shown
    assert "\x1b[2K" not in shown
