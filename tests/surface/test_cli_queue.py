"""`counterfoil queue`: everything that waits for somebody, in order, and the exact count of what is not shown."""

from __future__ import annotations

import time

import pytest
from tests.surface.books import Book
from tests.surface.governed import Governed

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

IN_ORDER = ["old", "young", "note-7", "asked", "may-go"]
"""By exposure x age: 300 for 30 h, 400 for half an hour, 1 for 9 h; of the others nothing is exposed, and the value at
risk ranks them: 5,000 for 2 h, 2,000 for 3 h."""


@pytest.fixture
def book(tmp_path):
    """One of everything that waits, under a policy; one of them is nobody's."""
    made = Governed(tmp_path).whole()
    made.sqlite(("UPDATE operation SET owner = '' WHERE id = ?", (made.ids["note-7"],)))
    return made


def queued(commands, *words):
    """The whole answer, and the keys in their order."""
    said = commands("queue", "--json", *words)
    assert said.code == 0
    return said.json, [entry["key"] for entry in said.json["queue"]]


def test_everything_that_waits_stands_in_order(commands, book):
    """Unknown outcomes, open questions and unused approvals; what is settled does not stand there."""
    told, keys = queued(commands)
    assert keys == IN_ORDER
    by_key = {entry["key"]: entry for entry in told["queue"]}
    assert {key: (entry["why"], entry["next"].partition(", ends")[0]) for key, entry in by_key.items()} == {
        "old": ("the contract names no look", "resolve with evidence"),
        "young": ("the contract names no look", "resolve with evidence"),
        "note-7": ("the contract names no look", "resolve with evidence"),
        "may-go": ("approved, not sent: breaker refunds is open", "settle what is unknown, or revoke"),
        "asked": ("1 of 2 approvals, 5,000 at risk", "approve or deny"),
    }
    old = by_key["old"]
    assert (old["exposed_value"], old["owner"], old["business_owner"]) == (300.0, "payments", "finance")
    assert (old["escalates_to"], old["overdue"], by_key["young"]["overdue"]) == ("lead", True, False)
    assert by_key["note-7"]["owner"] is None
    assert by_key["note-7"]["escalates_to"] == "nobody named"
    assert by_key["asked"]["asked"]["approved_by"] == ["user:mara"]
    assert 30 * 3600 <= old["age_seconds"] < 31 * 3600


def test_what_is_abandoned_is_counted_with_its_age(commands, book):
    """It leaves the working queue, never the count; `--abandoned` lists it in its place."""
    told, keys = queued(commands)
    counts = told["counts"]
    assert "left" not in keys
    assert (counts["abandoned_unresolved"], counts["abandoned_not_shown"]) == (1, 1)
    assert 100 * 3600 <= counts["abandoned_oldest_seconds"] < 101 * 3600
    assert told["exposed_value"] == 751.0
    told, keys = queued(commands, "--abandoned")
    assert keys == ["old", "left", *IN_ORDER[1:]]
    (left,) = [entry for entry in told["queue"] if entry["key"] == "left"]
    assert (left["why"], left["next"]) == ("abandoned; what became of it is unknown", "resolve with evidence")
    assert (left["abandoned"], left["escalates_at"]) == (True, None)
    assert (told["counts"]["abandoned_unresolved"], told["counts"]["abandoned_not_shown"]) == (1, 0)


def test_no_owner_hides_what_nobody_owns(commands, book):
    """Somebody's own queue has whatever is nobody's too, and counts what is other people's."""
    told, keys = queued(commands, "--owner", "mara")
    assert keys == ["note-7"]
    assert (told["counts"]["of_other_owners"], told["counts"]["unowned"]) == (4, 1)
    told, keys = queued(commands, "--owner", "payments")
    assert keys == IN_ORDER
    assert told["counts"]["of_other_owners"] == 0
    said = commands("queue", "--owner", "mara").out
    assert "and 4 of other owners" in said
    assert "1 owned by nobody" in said


def test_a_limit_says_how_many_it_cuts(commands, book):
    """The most exposed for the longest stay; no count below changes."""
    told, keys = queued(commands, "--limit", "2")
    assert keys == IN_ORDER[:2]
    whole, _ = queued(commands)
    assert (told["counts"]["cut_by_limit"], whole["counts"]["cut_by_limit"]) == (3, 0)
    same = ("every", "waiting", "unowned", "overdue_for_escalation", "abandoned_unresolved")
    assert [told["counts"][name] for name in same] == [whole["counts"][name] for name in same] == [6, 5, 1, 4, 1]
    said = commands("queue", "--limit", "2").out
    assert "and 3 more; --limit 5 shows all" in said
    assert "more" not in commands("queue").out


def test_each_breaker_says_how_full_it_is(commands, book):
    """What the store would refuse by is what is shown: 750 of 600 is open."""
    told, _ = queued(commands)
    assert told["breakers"] == [
        {"breaker": "refunds", "exposure": 750.0, "limit": 600.0, "open": True},
        {"breaker": "mails", "exposure": 1.0, "limit": 1e6, "open": False},
    ]
    said = commands("queue").out
    assert "⊘ breaker refunds: 750 of 600 unknown; nothing new is dispatched" in said
    assert "→ breaker mails: 1 of 1,000,000 unknown" in said


@pytest.mark.parametrize("width", [200, 120, 80, 40])
def test_every_width_has_every_fact(commands, book, width):
    """A wide terminal gets a table, a narrow one cards; no line is wider, and nothing of an operation is missing."""
    code, shown = commands.in_terminal("queue", env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert code == 0
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    plain = " ".join(shown.split())
    for key in IN_ORDER:
        assert f"{key} " in plain
        assert book.ids[key][:15] in plain
    if width != 120:  # there a sentence is folded within its column
        assert plain.count("the contract names no look") == 3
        assert plain.count("→ resolve with evidence") == 3
    for fact in ("payments", "nobody", "for finance", "to lead", "to nobody named", "overdue by 1 d 5 h"):
        assert fact in plain
    assert "1 abandoned and still unresolved, the oldest 4 d 4 h old" in plain


def test_time_that_is_over_is_said(tmp_path, commands):
    """A question nobody answered in time is nobody's approval: the same call asks anew."""
    book = Governed(tmp_path).write("late", value=5000.0, hours_ago=31 * 24)
    told, keys = queued(commands)
    assert keys == ["late"]
    (late,) = told["queue"]
    assert (late["why"], late["next"]) == (
        "0 of 2 approvals, 5,000 at risk, and time is over",
        "the same call asks anew",
    )
    assert (late["id"], late["permission"]) == (book.ids["late"], "expired")
    assert "⊖ expired" in commands("queue").out


def test_a_record_that_cannot_be_read_stays_in_the_queue(commands, book):
    """A damaged receipt is no receipt less."""
    book.sqlite(
        "DROP TRIGGER event_is_final",
        (
            "UPDATE event SET record = x'00' WHERE id / 32768 = (SELECT n FROM operation WHERE id = ?)",
            (book.ids["old"],),
        ),
    )
    said = commands("queue", "--json")
    told = said.json
    assert said.code == 4, "the deployment must be mended, and the exit code says so"
    assert [entry["key"] for entry in told["queue"]] == IN_ORDER
    assert (told["queue"][0]["why"], told["queue"][0]["next"]) == ("its record cannot be read", "verify the file")


def test_without_a_policy_the_default_holds(tmp_path, commands):
    """Four hours, to nobody named; no breaker, and it says so."""
    Book(tmp_path).write("succeeded", "unknown")
    told, keys = queued(commands)
    assert keys == ["unknown"]
    (entry,) = told["queue"]
    assert entry["escalates_to"] == "nobody named"
    assert entry["business_owner"] is None
    assert (told["policy"], told["breakers"]) == (None, [])
    assert "no policy was ever adopted, so there is no breaker" in commands("queue").out


def test_an_empty_queue_still_counts(tmp_path, commands):
    """Nothing waits: a sentence for people, an empty list for scripts."""
    Book(tmp_path).write("succeeded")
    said = commands("queue").out
    assert "nothing waits for anybody" in said
    assert "0 abandoned and still unresolved" in said
    assert queued(commands)[0]["counts"]["every"] == 0


def test_a_narrow_encoding_gets_ascii(commands, book):
    """Where the locale has no room for a glyph, a plain one stands for it."""
    said = commands("queue", env={"PYTHONIOENCODING": "ascii"})
    assert (said.code, said.out.isascii()) == (0, True)
    assert "\\u" not in said.out


def test_what_keeps_an_approved_one_from_going_is_said(tmp_path, commands):
    """An unresolved operation of its effect stands in its way, and its approval lifts no hold; nothing says it goes."""
    book = Governed(tmp_path).write("free", value=2000.0).write("twin", value=2000.0)
    for key in ("free", "twin"):
        book.decide(key, "approve", by="mara").decide(key, "approve", by="dana")
    told, _ = queued(commands)
    by_key = {entry["key"]: (entry["why"], entry["next"].partition(", ends")[0]) for entry in told["queue"]}
    assert set(by_key.values()) == {("approved, not sent", "the worker sends it, or revoke")}
    with book.open() as ledger:
        holder = ledger.get(book.ids["twin"]).operation
    book.write("lost", value=1.0, lost=True)
    book.sqlite(("UPDATE operation SET effect = ? WHERE id = ?", (holder.effect, book.ids["lost"])))
    told, _ = queued(commands)
    by_key = {entry["key"]: entry for entry in told["queue"]}
    assert by_key["twin"]["why"] == f"approved, not sent: {book.ids['lost'][:15]} of the same effect is unresolved"
    assert by_key["twin"]["next"].startswith("settle what holds it, release it, or revoke it, ends in ")
    assert (by_key["twin"]["held_by"], by_key["free"]["held_by"]) == ([book.ids["lost"]], [])
    assert by_key["free"]["why"] == "approved, not sent"


@pytest.fixture
def held(tmp_path):
    """One that is unknown, and of the same effect one that nobody was asked about and one that people approved."""
    book = Governed(tmp_path).write("o1", value=300.0, hours_ago=30, lost=True)
    book.twin("again", "o1", value=40.0, hours_ago=20).twin("asked", "o1", value=5000.0, hours_ago=10)
    return book.decide("asked", "approve", by="mara").decide("asked", "approve", by="dana")


def test_what_is_held_stands_in_the_queue_and_is_not_exposed(commands, held):
    """With its age, what holds it and what may be done; nothing of it is unknown, so no count of that has it."""
    told, keys = queued(commands)
    assert keys == ["o1", "asked", "again"]
    first, asked, again = told["queue"]
    holder = first["id"][:15]
    assert (again["why"], asked["why"]) == (
        f"held by {holder}",
        f"approved, not sent: {holder} of the same effect is unresolved",
    )
    assert again["next"] == "settle what holds it, release it, or revoke it"
    assert [entry["held_by"] for entry in (again, asked)] == [[first["id"]]] * 2
    assert [(entry["step"], entry["unresolved"], entry["exposed_value"]) for entry in (again, asked)] == [
        ("call", False, 0.0)
    ] * 2
    assert 20 * 3600 <= again["age_seconds"] < 21 * 3600
    assert (told["exposed_value"], told["counts"]["waiting"]) == (300.0, 3)
    assert told["breakers"][0]["exposure"] == 300.0
    assert queued(commands, "--owner", "nobody")[0]["counts"]["of_other_owners"] == 3


def test_list_and_show_say_of_a_hold_what_the_queue_says(commands, held):
    """A hold that is over is told as over wherever it is told; what stands in the column is what was once recorded."""
    again = held.ids["again"]
    assert {line["why"] for line in commands("list", "--json").lines if line["key"] == "again"} == {
        f"held by {held.ids['o1']}"
    }
    with held.open() as ledger:
        held._guard(ledger, "refund", 0.0)
        ledger.resolve(held.ids["o1"], "succeeded", evidence={"id": "re_1"}, by="mara", reason="seen")
        assert ledger.get(again).permitted == ("call_again", "get_outcome")
        assert "held_by" not in ledger.get(again).for_model()
    (line,) = [line for line in commands("list", "--json").lines if line["key"] == "again"]
    assert (line["why"], line["next"], line["held_by"]) == (
        "nothing left; for its caller to send", "the same call sends it, and nobody else", "",
    )  # fmt: skip
    page = " ".join(commands("show", again).out.split())
    assert "it is held" not in page
    assert "→ call again permitted" in page


def test_the_queue_says_what_people_have_decided_so_far(commands, book):
    """A wait has its end, an escalation its name and an override its count; who looks at the queue need not open it."""
    who = ("--as", "dana", "--reason", "because")
    assert commands("escalate", book.ids["old"], "--to", "mara", *who).code == 0
    assert commands("wait", book.ids["old"], "--for", "2h", *who).code == 0
    book.decide("young", "override")
    told, _ = queued(commands)
    by_key = {entry["key"]: entry for entry in told["queue"]}
    old, young = by_key["old"], by_key["young"]
    assert old["passed_up_to"] == "mara"
    assert 7100 < old["put_off_until"] - time.time() < 7300
    assert "people wait until " in old["next"]
    assert (young["overridden"], young["next"]) == ({"people": 1, "of": 1}, "attempt --basis operator_override")
    assert young["why"].endswith("; override 1 of 1")
    assert by_key["note-7"]["overridden"] is by_key["note-7"]["put_off_until"] is None
    assert "last to mara" in commands("queue").out


def test_the_head_counts_the_rows_that_are_shown(commands, book):
    """With --abandoned there is one row more, and the first line says so."""
    assert "  1 abandoned, shown  " in commands("queue", "--abandoned").out
    assert "abandoned, shown" not in commands("queue").out


def test_what_was_held_waits_for_its_caller(commands, held):
    """Its holder is settled and nobody has asked again: it stands there until somebody does, or takes it back."""
    with held.open() as ledger:
        held._guard(ledger, "refund", 0.0)
        ledger.resolve(held.ids["o1"], "succeeded", evidence={"id": "re_1"}, by="mara", reason="seen")
    told, keys = queued(commands)
    assert keys == ["asked", "again"]
    asked, again = told["queue"]
    assert (again["why"], again["next"]) == (
        "not sent, and nothing holds it any more",
        "the same call sends it, or revoke",
    )
    assert (asked["why"], asked["next"].partition(", ends")[0]) == (
        "approved, not sent",
        "the same call sends it, or revoke",
    )
    for entry in (again, asked):
        said = commands("revoke", entry["id"], "--as", "dana", "--reason", "ordered once")
        assert said.code == 0
    assert queued(commands)[1] == []
    assert commands("verify").code == 0


@pytest.mark.parametrize("width", [120, 80])
def test_a_held_one_is_legible_at_every_width(commands, held, width):
    """What holds it and what may be done stand on its card, or in its row, whole."""
    code, shown = commands.in_terminal("queue", env={"COLUMNS": str(width), "NO_COLOR": "1"})
    assert code == 0
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    plain = " ".join(shown.split())
    assert f"held by {held.ids['o1'][:15]}" in plain
    if width == 80:  # in the table both sentences are folded within their column
        assert "→ settle what holds it, release it, or revoke it" in plain
