"""`counterfoil explain`: the receipt event by event, with the rule that allowed each, from the receipt alone."""

from __future__ import annotations

import pytest
from tests.integration.store.keeping import adopt
from tests.surface.books import SECRET, Book
from tests.surface.governed import Governed

from counterfoil.bootstrap import open_ledger
from counterfoil.domain.policy import Retention

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

CASES = ("succeeded", "rejected", "unknown", "not_sent", "sent_later", "resolved", "contradicted")
COLUMNS = ("permission", "dispatch", "outcome", "disposition", "discrepancy")


@pytest.fixture
def book(tmp_path):
    """Every outcome once."""
    return Book(tmp_path).write(*CASES, "held")


def rules_of(event):
    """What one event names, by name."""
    return {rule["name"]: rule["says"] for rule in event["rules"]}


def test_the_last_event_leaves_the_columns_of_the_row(commands, book):
    """Whatever happened to it, the replay ends where the row stands, each event has its rule, and the audit agrees."""
    for key, operation in book.ids.items():
        said = commands("explain", operation, "--json")
        assert said.code == 0, key
        told = said.json
        assert (told["ok"], told["violations"]) == (True, [])
        assert told["events"][-1]["columns"] == told["columns"], key
        assert [event["seq"] for event in told["events"]] == list(range(1, len(told["events"]) + 1))
        assert all(event["rules"] and event["by"] and event["what"] for event in told["events"]), key


def test_an_approved_operation_names_who_allowed_it(tmp_path, commands):
    """Who was asked by which rule, who answered, seeing what, and which approval the attempt used."""
    book = Governed(tmp_path).write("asked", value=5000.0)
    book.decide("asked", "approve", by="mara").decide("asked", "approve", by="dana")
    book.write("asked", value=5000.0)
    events = commands("explain", book.ids["asked"], "--json").json["events"]
    assert [event["kind"] for event in events] == ["proposed", "decided", "decided", "begun", "observed"]
    asked, first, second, begun, observed = events
    assert asked["what"] == "approval asked: 2 people of dana, mara, within 30 d"
    assert rules_of(asked)["rule"].startswith("large-refunds of policy pl1:")
    assert (first["what"], first["by"]) == ("approve, 1 of 2", "user:mara, test")
    assert (rules_of(second)["reason"], rules_of(second)["seen"]) == ("because of it", "up to event 2")
    assert rules_of(begun)["approval"].startswith("event 3, by user:mara, user:dana; rule large-refunds of policy pl1:")
    assert rules_of(begun)["basis"] == "the first attempt of its key"
    assert rules_of(observed)["rule"] == "function.returned"
    assert [event["columns"]["permission"] for event in events] == ["pending"] * 2 + ["authorized"] * 3
    assert events[-1]["columns"]["outcome"] == "succeeded"


def test_an_attempt_names_who_made_it(tmp_path, commands):
    """The caller for a call, whoever asked for one by name, and the worker for what nobody waited for."""
    book = Governed(tmp_path).write("called").write("asked", value=5000.0)
    book.decide("asked", "approve", by="mara").decide("asked", "approve", by="dana").work()
    called, worked = (commands("explain", book.ids[key], "--json").json["events"] for key in ("called", "asked"))
    assert called[0]["by"] == "agent:test"
    begun = next(event for event in worked if event["kind"] == "begun")
    assert begun["by"].startswith("worker w_")
    assert worked[-1]["columns"]["outcome"] == "succeeded"


def test_a_further_attempt_names_its_basis(commands, book):
    """The basis with its sentence, as the claim recorded it."""
    events = commands("explain", book.ids["sent_later"], "--json").json["events"]
    assert rules_of(events[2])["basis"].startswith("not_sent: ")
    assert events[2]["what"] == "attempt 2 claimed, class after_not_sent"
    held = commands("explain", book.ids["held"], "--json").json
    assert held["events"][0]["what"] == f"asked, and held by {book.ids['holder']}"
    assert rules_of(held["events"][0])["rule"] == "one unresolved operation for each effect"


def test_a_persons_finding_names_them_when_it_is_erased_too(commands, book):
    """What was seen stands in the body and goes with it; who says so, and why, is part of the receipt for ever."""
    before = commands("explain", book.ids["resolved"], "--json").json["events"][2]
    assert before["what"].endswith("succeeded of the operation")
    assert (before["by"], rules_of(before)["rule"]) == ("user:mara, test", "operator.finding")
    assert commands("erase", book.ids["resolved"], "--as", "Dana", "--reason", "asked").code == 0
    said = commands("explain", book.ids["resolved"], "--json")
    assert (said.code, said.json["ok"]) == (0, True)
    finding, erasure = said.json["events"][2:]
    assert finding["by"] == before["by"]
    assert rules_of(finding) == {**rules_of(before), "body": "erased"}
    assert (erasure["what"], rules_of(erasure)["reason"]) == ("erase", "asked")


def test_a_removed_receipt_says_what_it_had_come_to(commands, book):
    """One event is left: by which rule it went, and the columns it left."""
    with open_ledger(book.path) as ledger:
        adopt(ledger.store, Retention(sensitivity="ordinary", receipts_seconds=0.0))
    assert commands("retain").code == 0
    said = commands("explain", book.ids["succeeded"], "--json")
    assert said.code == 0
    (event,) = said.json["events"]
    assert event["what"].startswith("2 events removed by the retention of 'ordinary'")
    assert rules_of(event)["rule"].startswith("retention of 'ordinary', policy pl1:")
    assert event["columns"]["outcome"] == "succeeded"


@pytest.mark.parametrize(
    ("statement", "law"),
    [
        ("UPDATE operation SET outcome = 'succeeded' WHERE id = ?", "projection"),
        ("UPDATE event SET record = x'00' WHERE seq_of = ?", "record"),
    ],
)
def test_what_does_not_hold_is_named(commands, book, statement, law):
    """Exit 1 where the columns are not what the events say; a record that cannot be read stays in its place."""
    where = "id = (SELECT max(e.id) FROM event e JOIN operation o ON o.n = e.id / 32768 WHERE o.id = ?)"
    book.sqlite((statement.replace("seq_of = ?", where), (book.ids["unknown"],)))
    said = commands("explain", book.ids["unknown"], "--json")
    assert (said.code, said.json["ok"]) == (1, False)
    assert law in {violation["law"] for violation in said.json["violations"]}
    assert len(said.json["events"]) == 2
    if law == "record":
        last = said.json["events"][1]
        assert (last["what"], last["columns"], last["rules"]) == ("its record cannot be read", None, [])
    shown = commands("explain", book.ids["unknown"])
    assert shown.code == 1
    assert "the record does not hold" in shown.out


@pytest.mark.parametrize("width", [200, 80, 40])
def test_every_width_has_every_fact(commands, book, width):
    """No line is wider than the terminal, and each event has its columns."""
    operation = book.ids["contradicted"]
    code, shown = commands.in_terminal("explain", operation, env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert code == 0
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    assert shown.count("authorized") >= 4
    assert " ".join(shown.split()).count("the columns are what the events say") == 1


def test_nothing_of_a_payload_is_told(commands, book):
    """The explanation holds no payload and no result; what a person typed comes without its escape sequences."""
    for operation in book.ids.values():
        assert SECRET not in commands("explain", operation, "--json").out
    assert "\x1b" not in commands("explain", book.ids["resolved"]).out


def test_no_such_operation_is_said(commands, book):
    """An id nobody has is a bad call."""
    assert commands("explain", "op_ffffffffffff").code == 2
    assert commands("explain").code == 2
