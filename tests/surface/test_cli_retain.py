"""`counterfoil retain` and `counterfoil erase`: what goes, what never does, and how what is left reads."""

from __future__ import annotations

import pytest
from tests.integration.store.keeping import adopt
from tests.surface.books import SECRET, Book

from counterfoil.bootstrap import open_ledger
from counterfoil.domain.command import CountRefusals
from counterfoil.domain.policy import Retention

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

NAMED = ("--as", "Dana", "--reason", "the customer asked")
OPEN = ("unknown", "contradicted", "held")
OVER = ("succeeded", "large", "rejected", "not_sent", "sent_later")
AT_ONCE = {
    "receipts": Retention(sensitivity="ordinary", receipts_seconds=0.0),
    "bodies": Retention(sensitivity="ordinary", bodies_seconds=0.0),
}


@pytest.fixture
def book(tmp_path):
    """Every outcome once."""
    return Book(tmp_path).write(*OVER, *OPEN)


def keeps(book, what):
    """Let a policy keep nothing of it."""
    with open_ledger(book.path) as ledger:
        return adopt(ledger.store, AT_ONCE[what])


def test_without_a_policy_nothing_goes(book, commands):
    """It says so, and does nothing."""
    said = commands("retain")
    assert said.code == 0
    assert "no policy in force says how long" in said.out
    assert commands("retain", "--json").json == {"policy": None, "dry_run": False, "classes": {}, "kept": []}
    assert commands("verify", "--json").json["ok"]


@pytest.mark.parametrize(("what", "did"), [("receipts", "removed"), ("bodies", "erased")])
def test_what_would_go_is_what_goes(book, commands, what, did):
    """A dry run counts per class what the run then does; afterwards nothing is left to do, and everything verifies."""
    digest = keeps(book, what)
    counts = {"removed": 0, "erased": 0, "kept": 0} | {did: len(OVER)}
    would = commands("retain", "--dry-run", "--json")
    assert would.json["policy"] == digest
    assert would.json == {"policy": digest, "dry_run": True, "classes": {"ordinary": counts}, "kept": []}
    assert f"ordinary: {len(OVER)} would be {did}" in commands("retain", "--dry-run").out
    one = commands("retain", "--limit", "1", "--json")
    assert one.json["classes"]["ordinary"][did] == 1
    said = commands("retain")
    assert (said.code, said.out) == (0, f"ordinary: {len(OVER) - 1} {did}\n")
    assert commands("retain").out == "nothing has come to its time\n"
    assert commands("verify", "--json").json["ok"]


def test_what_is_not_over_stays(book, commands):
    """Unknown, contradicted and held: listed as before, with everything on record."""
    keeps(book, "receipts")
    before = commands("list", "--unresolved", "--json").lines
    assert commands("retain").code == 0
    after = commands("list", "--unresolved", "--json").lines
    assert [one["id"] for one in after] == [one["id"] for one in before]
    for key in (*OPEN, "holder"):
        assert commands("export", book.ids[key], "--json").json["removed"] is None


def test_an_edited_receipt_is_kept_and_named(book, commands):
    """Evidence of an edit is not removed: exit 1, with the operation and why."""
    book.sqlite(("UPDATE operation SET value = 7 WHERE id = ?", (book.ids["succeeded"],)), guarded=True)
    keeps(book, "receipts")
    said = commands("retain", "--json")
    assert said.code == 1
    assert said.json["kept"] == [{"id": book.ids["succeeded"], "because": ["its record does not verify"]}]


@pytest.mark.parametrize("key", OVER)
def test_a_removed_receipt_reads_as_what_it_came_to(book, commands, key):
    """What it was, that its record is gone and why, and that nothing sends it again; no payload anywhere."""
    digest = keeps(book, "receipts")
    before = commands("export", book.ids[key], "--json").json
    commands("retain")
    page = commands("show", book.ids[key], "--all").out
    assert f"{before['chain']['seq']} events removed by the retention of 'ordinary', policy pl1:" in page
    assert "its record was removed by retention on" in page
    assert "chain intact" in page
    assert before["outcome"] in page
    assert "call again" not in page
    assert SECRET not in page
    made = commands("export", book.ids[key], "--payload", "--json").json
    assert made["removed"] | {"at": ""} == {
        "events": before["chain"]["seq"], "at": "", "head": before["chain"]["head"], "rule": "ordinary",
        "policy": digest, "by": "house",
    }  # fmt: skip
    assert made["chain"]["violations"] == []
    assert made["payload"] is None
    assert "call_again" not in made["permitted"]
    same = ("outcome", "dispatch", "settled_by", "intent_fingerprint", "key", "created_at", "updated_at", "contract")
    assert {name: made[name] for name in same} == {name: before[name] for name in same}
    assert [a["finding"] for a in made["attempts"]] == [a["finding"] for a in before["attempts"]]
    assert [a["started_at"] for a in made["attempts"]] == [a["started_at"] for a in before["attempts"]]


@pytest.mark.parametrize("what", AT_ONCE)
def test_what_is_gone_is_not_offered_to_be_called_again(book, commands, what):
    """Wherever it is read: no step, nothing that is next, and why; before, all of it."""
    key = book.ids["not_sent"]

    def told():
        line = next(one for one in commands("list", "--json").lines if one["id"] == key)
        made = commands("export", key, "--json").json
        return line["permitted"], made["permitted"], line["next"], line["why"]

    assert told() == (["call_again", "get_outcome"],) * 2 + ("the same call may send it", "nothing left")
    keeps(book, what)
    commands("retain")
    listed, exported, after, why = told()
    assert (listed, exported, after) == (["get_outcome"], ["get_outcome"], "")
    said = {"receipts": "its record was removed by retention on ", "bodies": "its payload was erased"}[what]
    assert why.startswith(said)
    page = commands("show", key).out
    assert "call again" not in page
    assert "send again, on any basis" in page
    assert said in page


def test_a_refused_repetition_is_shown(book, commands):
    """How often the receipt answered instead of a send stands on the page and in the document."""
    with open_ledger(book.path) as ledger:
        n = ledger.get(book.ids["succeeded"]).operation.n
        ledger.store.write(CountRefusals(counts=((n, 1_200),), at=1.0))
    assert "answered without sending 1,200 times" in commands("show", book.ids["succeeded"]).out
    assert commands("show", book.ids["succeeded"], "--json").json["refused"] == 1_200
    assert commands("export", book.ids["rejected"], "--json").json["refused"] == 0


# -- erase -------------------------------------------------------------------------------------------------------------


def test_an_erasure_is_a_persons_decision(book, commands):
    """With a name and a reason it is done and on record; without, nothing is."""
    key = book.ids["succeeded"]
    assert commands("erase", key).code == 2
    said = commands("erase", key, *NAMED, "--json")
    assert said.code == 0
    assert (said.json["outcome"], said.json["result"]) == ("succeeded", None)
    page = commands("show", key, "--payload").out
    assert "erase by user:dana" in page
    assert "erased" in page
    assert SECRET not in page
    made = commands("export", key, "--payload", "--json").json
    assert [e["body_erased"] for e in made["evidence"]] == [True]
    assert made["payload"] is None
    assert commands("erase", key, *NAMED).code == 0  # twice is once
    assert commands("export", key, "--json").json["chain"]["seq"] == 3
    assert commands("verify", "--json").json["ok"]


@pytest.mark.parametrize("key", [*OPEN, "holder"])
def test_what_is_not_over_is_not_erased(book, commands, key):
    """Refused with the reason, and nothing is written."""
    said = commands("erase", book.ids[key], *NAMED)
    assert said.code == 2
    assert ("it is held" if key == "held" else "it is unresolved") in said.err
    assert (
        commands("export", book.ids[key], "--json").json["evidence"] == []
        or SECRET in commands("show", book.ids[key], "--payload").out
    )


def test_a_terminal_confirms_by_the_operations_own_name(book, commands):
    """As every decision does."""
    key = book.ids["succeeded"]
    typed = f"{key[-6:]}\nasked to\n"
    code, shown = commands.in_terminal("erase", key, typed=typed, until="to confirm")
    assert code == 0, shown
    assert "erase its payload and its results for good?" in shown
