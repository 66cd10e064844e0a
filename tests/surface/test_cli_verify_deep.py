"""`counterfoil verify --deep`: a finding rewritten together with its whole chain is found by judging it anew."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import pytest
from tests.surface.books import Book

from counterfoil.domain.event import chain

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

SEQ_BITS = 15
LAWS = [
    "identity", "sequence", "chain", "record", "body", "authority", "basis", "evidence", "judgement", "projection",
    "file",
]  # fmt: skip


@pytest.fixture
def sold(shop):
    """Three real answers on record: two effects, and one without the credential; then the shop."""
    shop.intents(2, "lab.key")
    assert shop("run", "lab.jsonl").code == 0
    shop.write("denied.jsonl", {"action": "lab.key", "key": "denied", "payload": {"n": 9}})
    denied = shop("run", "denied.jsonl", "--actions", "lab.yaml", env={"LAB_AUTH": "Bearer nobody"})
    assert denied.code == 1
    return shop


def deep(shop, *more):
    """The exit code, the rows by law, and the whole answer."""
    said = shop("verify", "--deep", "--store", "receipts.db", "--json", *more)
    return said.code, {row["law"]: row for row in said.json["laws"]}, said.json


def rewrite(path, key, change, columns=""):
    """Rewrite one operation's observations and every hash after them, as one would who knows how they are made."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for (guard,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {guard}")
        n, name = db.execute("SELECT n, id FROM operation WHERE key = ?", (key,)).fetchone()
        rows = db.execute("SELECT id, kind, at, record FROM event WHERE id >> 15 = ? ORDER BY id", (n,)).fetchall()
        head = b""
        for row, kind, at, record in rows:
            said = json.loads(record)
            if kind == "observed":
                change(said)
            new = json.dumps(said, separators=(",", ":")).encode()
            head = chain(head, name, row & ((1 << SEQ_BITS) - 1), kind, at, new)
            db.execute("UPDATE event SET record = ?, hash = ? WHERE id = ?", (new, head, row))
        if columns:
            db.execute(f"UPDATE operation SET {columns} WHERE n = ?", (n,))
        db.commit()


def guarded_again(path, source):
    """Put back what guards the rows, so that only what was rewritten is left to be found."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        for (guard,) in source:
            db.execute(guard)
        db.commit()


@pytest.fixture
def guards(sold):
    """What guards the rows of the shop's receipts."""
    with contextlib.closing(sqlite3.connect(sold.folder / "receipts.db")) as db:
        return db.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall()


def test_an_honest_file_is_judged_anew(sold):
    """Every law has its row; what can be judged holds, and what cannot is counted with its reason."""
    code, laws, said = deep(sold, "--actions", "lab.yaml")
    assert (code, said["ok"], list(laws)) == (0, True, LAWS)
    assert laws["identity"] == {"law": "identity", "asked": 3, "broken": 0, "not_asked": 0}
    judged = laws["judgement"]
    assert (judged["asked"], judged["broken"]) == (2, 0)
    assert judged["not_asked"] == sum(said["not_rejudged"].values())
    shown = sold("verify", "--deep", "--store", "receipts.db", "--actions", "lab.yaml").out
    assert "judgement" in shown
    assert "not asked" in shown


def test_a_success_rewritten_as_a_refusal_is_found(sold, guards):
    """Chain, projection and evidence are in order; only the kept answer says what happened."""
    path = sold.folder / "receipts.db"

    def refused(said):
        said["finding"], said["rule"] = "rejected", "answers[3]"
        for gone in ("effect", "coverage", "external_id"):
            said.pop(gone, None)

    rewrite(path, "k0", refused, "outcome = 'rejected', settled_by = 'rejected:answer'")
    guarded_again(path, guards)
    assert sold("verify", "--store", "receipts.db").code == 0
    code, laws, said = deep(sold, "--actions", "lab.yaml")
    assert (code, laws["judgement"]["broken"]) == (1, 1)
    (wrong,) = said["violations"]
    assert (wrong["law"], wrong["seq"]) == ("judgement", 2)
    assert wrong["problem"] == "answers[3] is not about what was answered"
    assert "judgement" in sold("verify", "--deep", "--store", "receipts.db", "--actions", "lab.yaml").out


def test_a_clause_that_is_none_is_found(sold, guards):
    """A finding by a rule that its contract does not have."""
    path = sold.folder / "receipts.db"
    rewrite(path, "k1", lambda said: said.update(rule="answers[77]"))
    guarded_again(path, guards)
    assert sold("verify", "--store", "receipts.db").code == 0
    assert deep(sold, "--actions", "lab.yaml")[0] == 1


def test_another_contract_judges_nothing(sold):
    """Nor does none: each is said with its reason, exit code 4, and nothing is called whole."""
    code, laws, said = deep(sold)
    assert (code, said["ok"], laws["judgement"]["asked"]) == (4, False, 0)
    assert said["violations"] == []
    assert said["unjudged"] == said["not_rejudged"]["its action is not registered here, so no contract is at hand"]
    shown = sold("verify", "--deep", "--store", "receipts.db")
    assert (shown.code, "whole" in shown.out, "not judged" in shown.out) == (4, False, True)
    assert said["not_rejudged"]["its action is not registered here, so no contract is at hand"] >= 2
    sold.actions(**{"lab.key": "lab.lookup"})
    code, laws, said = deep(sold, "--actions", "lab.yaml")
    assert (code, said["ok"], laws["judgement"]["asked"]) == (4, False, 0)
    assert said["not_rejudged"]["the contract at hand is not the one on the receipt"] >= 2


def test_what_was_erased_is_not_judged(sold):
    """Erasing breaks nothing, and proves nothing either."""
    with contextlib.closing(sqlite3.connect(sold.folder / "receipts.db")) as db:
        (operation,) = db.execute("SELECT id FROM operation WHERE key = 'k0'").fetchone()
    erased = sold("erase", operation, "--store", "receipts.db", "--as", "user:ada", "--reason", "asked for")
    assert erased.code == 0, erased
    code, laws, said = deep(sold, "--actions", "lab.yaml")
    assert (code, said["not_rejudged"]["its body was erased"]) == (0, 1)
    assert laws["body"]["not_asked"] == 2


def test_judging_writes_nothing(sold):
    """The rows before and after are the same, actions or not."""

    def rows():
        with contextlib.closing(sqlite3.connect(sold.folder / "receipts.db")) as db:
            return [db.execute(f"SELECT * FROM {table}").fetchall() for table in ("operation", "event", "body")]

    before = rows()
    assert deep(sold, "--actions", "lab.yaml")[0] == 0
    assert rows() == before


def test_actions_that_are_wrong_must_be_mended(sold):
    """What cannot be read judges nothing: exit 4, and no verdict."""
    (sold.folder / "bad.yaml").write_text("actions: 7\n")
    said = sold("verify", "--deep", "--store", "receipts.db", "--actions", "bad.yaml", "--json")
    assert (said.code, "error" in said.json) == (4, True)


def test_functions_and_people_are_taken_at_their_word(commands, tmp_path):
    """Nothing is kept of them that could be judged; the count says so."""
    book = Book(tmp_path).write("succeeded", "rejected", "not_sent", "resolved", "contradicted", "held")
    code, laws, said = deep(commands)
    assert (code, laws["file"]) == (4, {"law": "file", "asked": 1, "broken": 0, "not_asked": 0})
    assert laws["identity"]["asked"] == len(book.ids)
    assert laws["judgement"]["not_asked"] == sum(said["not_rejudged"].values()) == 6


def test_an_unreadable_operation_leaves_laws_unasked(commands, tmp_path):
    """It is not counted as whole by the laws that could not be asked of it."""
    book = Book(tmp_path).write("succeeded", "rejected")
    row = int(book.ids["succeeded"][3:15], 16)
    book.sqlite(("UPDATE event SET kind = 'guessed' WHERE id = ?", (row << SEQ_BITS | 2,)), guarded=False)
    code, laws, _ = deep(commands)
    assert code == 1
    assert (laws["projection"]["asked"], laws["projection"]["not_asked"]) == (1, 1)
    assert laws["record"]["broken"] == 1
