"""`counterfoil evidence add`: what became of each line, who handed it in, and whether anything is left to look at."""

from __future__ import annotations

import json

import pytest

import counterfoil

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter

NAMED = ("--as", "Front Desk", "--reason", "the bank's own file")
COLUMNS = (
    "--column", "reference=Ref", "--column", "amount=Amount", "--column", "state=State", "--state", "paid=succeeded",
    "--amount-at", "/n", "--account", "acct_lab",
)  # fmt: skip


@pytest.fixture
def lost(shop):
    """The id of an operation whose answer was lost, for 0 of whatever is counted."""
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(1, "lab.nothing")
    assert shop("run", "lab.jsonl").code == 1
    (found,) = shop("list", "--json").lines
    return found["id"]


def hand_in(shop, *words):
    """Hand something in with the actions of the shop."""
    return shop("evidence", "add", *words, "--actions", "lab.yaml", "--store", "receipts.db")


def statement(shop, *lines):
    """A statement file of these lines."""
    (shop.folder / "bank.csv").write_text("Ref,Amount,State\n" + "".join(f"{line}\n" for line in lines))
    return ("--statement", "bank.csv", *COLUMNS, *NAMED)


def test_a_statement_settles_once(shop, lost):
    """Exit 0 where every line counts; the same file again changes nothing; who handed it in is on record."""
    said = hand_in(shop, *statement(shop, f"{lost},0,paid"), "--json")
    assert said.code == 0, said
    assert said.json["ok"]
    assert said.json["counts"] == {
        "recorded": 1, "recorded_before": 0, "candidates": 0, "unmatched": 0, "discrepancies": 0, "broken": 0,
    }  # fmt: skip
    again = hand_in(shop, *statement(shop, f"{lost},0,paid"), "--json")
    assert (again.code, again.json["counts"]["recorded"], again.json["counts"]["recorded_before"]) == (0, 0, 1)
    shown = shop("explain", lost)
    assert "the provider's statement, handed in by user:front desk" in shown.out
    assert shop("verify", "--deep", "--actions", "lab.yaml").code == 0
    assert shop.sends() == 1


def test_what_a_person_has_to_look_at_is_said(shop, lost):
    """A wrong amount, a line of nobody, and one that is broken: each by its number, and exit 1."""
    said = hand_in(shop, *statement(shop, f"{lost},5,paid", "op_nobody,1,paid", "x"))
    assert said.code == 1
    lines = said.out.splitlines()
    assert lines[0].startswith(f"line 2: matched {lost} (account equal, reference equal, amount different), unknown")
    assert lines[0].endswith("evidence disagrees, for front-desk")
    assert lines[1] == "line 3: unmatched: no receipt has its names"
    assert lines[2] == "line 4: cannot be read: has 1 fields and the head 3"
    assert lines[3].startswith("1 recorded, 0 recorded before, 0 candidates, 1 unmatched, 1 discrepancies, 1 broken")


def test_a_late_answer_settles(shop, lost):
    """A body and a status, under the key of its request."""
    (shop.folder / "late.json").write_text('{"id":"ef_7","state":"done"}')
    words = ("--answer", "late.json", "--status", "201", "--key", lost, *NAMED, "--json")
    said = hand_in(shop, *words)
    assert (said.code, said.json["source"], said.json["found"][0]["finding"]) == (0, "late_answer", "succeeded")
    assert shop("show", lost, "--json").json["external_id"] == "ef_7"


def test_an_event_of_no_clause_is_reported(shop, lost):
    """The laboratory's contract knows no events: nothing is recorded, and exit 1."""
    (shop.folder / "event.json").write_text(json.dumps({"type": "done", "key": lost}))
    said = hand_in(shop, "--webhook", "event.json", *NAMED)
    assert (said.code, said.out.splitlines()[0]) == (1, "unmatched: no contract at hand has a clause for it")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "one of the arguments"),
        (("--answer", "nowhere.json", "--status", "200"), "cannot be read"),
        (("--answer", "f", "--status", "200"), "key or client reference"),
        (("--answer", "f", "--key", "op_1"), "--status"),
        (("--answer", "f", "--key", "op_1", "--status", "99"), "from 100 to 599"),
        (("--statement", "f"), "declare a column"),
        (("--statement", "f", "--column", "colour=C"), "WHAT=NAME"),
        (("--statement", "f", "--state", "paid=maybe"), "accepted or rejected"),
        (("--statement", "f", "--column", "state=a", "--column", "state=b"), "each once"),
        (("--statement", "f", "--column", "state"), "NAME=VALUE"),
        (("--answer", "f", "--header", "x"), "NAME:VALUE"),
        (("--webhook", "f", "--action", "nobody"), "no action is named"),
    ],
)
def test_a_bad_call_is_named(shop, words, problem):
    """Nothing is recorded for it."""
    counterfoil.open(shop.folder / "receipts.db").close()
    (shop.folder / "f").write_text("x")
    said = hand_in(shop, *words, *NAMED)
    assert said.code == 2
    assert problem in said.err


def test_nobody_hands_it_in_unnamed(shop, lost):
    """Without a terminal a name and a reason are needed; an agent's is none."""
    (shop.folder / "f").write_text("{}")
    assert "--as NAME" in hand_in(shop, "--webhook", "f").err
    said = hand_in(shop, "--webhook", "f", "--as", "agent:bot", "--reason", "x")
    assert (said.code, "an agent decides nothing" in said.err) == (2, True)


def test_a_terminal_confirms_by_the_files_digest(shop, lost):
    """What is said to be authentic is confirmed by its own name."""
    import hashlib

    (shop.folder / "f").write_text("{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    words = ("evidence", "add", "--webhook", "f", "--actions", "lab.yaml", "--store", "receipts.db")
    code, shown = shop.in_terminal(*words, typed=f"{digest[-6:]}\nmine\n", until="to confirm")
    assert code == 1, shown
    assert "say that it is authentic" in shown
