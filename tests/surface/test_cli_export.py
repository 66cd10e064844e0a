"""`counterfoil export`: one JSON document per operation, private, whole, and without what it was not asked for."""

from __future__ import annotations

import json
import os
import re
import resource
import stat

import pytest
from tests.surface.books import SECRET, Book

pytestmark = pytest.mark.slow  # each test starts at least one interpreter
CASES = ("succeeded", "rejected", "unknown", "not_sent", "sent_later", "resolved", "contradicted", "held")
ROOM = 65_536
"""Bytes a file may have where the disk is full: enough for SQLite's own, too little for a large payload."""
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture
def book(tmp_path):
    """A closed receipts file with every outcome in it."""
    return Book(tmp_path).write(*CASES)


def exported(commands, book, key, *words):
    """The document of one operation."""
    said = commands("export", book.ids[key], "--store", book.path, *words)
    assert (said.code, said.err) == (0, ""), said
    return json.loads(said.out)


STATES = {
    "succeeded": "succeeded",
    "rejected": "rejected",
    "unknown": "manual_review",
    "not_sent": "planned",
    "sent_later": "succeeded",
    "resolved": "succeeded",
    "contradicted": "manual_review",
    "held": "planned",
}


@pytest.mark.parametrize("key", STATES)
def test_every_operation_has_its_document(commands, book, key):
    """Who, what, where, when and how it stands are there for every outcome, and no claim of authentication."""
    made = exported(commands, book, key)
    assert made["operation_id"] == book.ids[key]
    assert made["operation"] == ("refund_api" if key == "held" else "refund")
    assert (made["target"], made["state"]) == ("acct", STATES[key])
    assert made["intent_fingerprint"].startswith("cf1:")
    assert made["authentication_recorded"] is False
    assert made["external_id"] is None
    sent = key not in ("not_sent", "held")
    assert bool(made["submitted_at"] and ISO.fullmatch(made["submitted_at"])) is sent
    assert made["chain"]["violations"] == []
    assert made["chain"]["head"] == made["events"][-1]["hash"]


def test_the_record_is_there_in_full(commands, book):
    """Attempts with their basis, evidence with its rule, the contract's digest and every time in UTC."""
    made = exported(commands, book, "sent_later")
    assert [(a["number"], a["basis"], a["finding"]) for a in made["attempts"]] == [
        (1, None, "not_sent"),
        (2, "not_sent", "succeeded"),
    ]
    assert [(e["source"], e["finding"], e["effect"]) for e in made["evidence"]] == [
        ("transport", "not_sent", None),
        ("answer", "succeeded", "refund"),
    ]
    assert made["contract"]["id"] == "function.plain"
    assert made["contract"]["digest"].startswith("ct1:")
    assert made["assumptions"] == {}
    assert made["submitted_at"] == made["attempts"][1]["started_at"]
    times = [a["started_at"] for a in made["attempts"]] + [e["at"] for e in made["events"]] + [made["created_at"]]
    assert all(ISO.fullmatch(time) for time in times)


def test_what_the_provider_calls_it_is_the_external_id(shop):
    """The provider's own name for the effect stands beside ours, and the target is where it was sent."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    (line,) = shop("list", "--json").lines
    made = json.loads(shop("export", line["id"]).out)
    assert made["external_id"].startswith("ef_")
    assert made["target"] == f"http://127.0.0.1:{shop.port}"
    assert "lab-secret" not in json.dumps(made)


def test_no_payload_without_being_asked_for(commands, book):
    """Neither payload nor result leaves the file, unless somebody says `--payload`."""
    for key in book.ids:
        assert SECRET not in json.dumps(exported(commands, book, key))
    made = exported(commands, book, "succeeded", "--payload")
    assert made["payload"] == {"order": "succeeded", "card": SECRET}
    assert made["evidence"][0]["result"] == {"id": "re_succeeded", "card": SECRET}


def test_a_file_is_private_and_whole(commands, book):
    """The file is 0600 whatever stood there and whatever the umask says, and nothing else is left beside it."""
    out = commands.folder / "receipt.json"
    out.write_text("old")
    out.chmod(0o666)
    before = set(commands.folder.iterdir())
    said = commands("export", book.ids["unknown"], "--store", book.path, "--out", out, preexec_fn=lambda: os.umask(0))
    assert (said.code, said.out) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert json.loads(out.read_text())["operation_id"] == book.ids["unknown"]
    assert set(commands.folder.iterdir()) == before


def test_a_failed_write_leaves_what_was_there(tmp_path, commands):
    """A disk that takes no more leaves the old file whole and no half of a new one."""
    book = Book(tmp_path).write("large")
    out = commands.folder / "receipt.json"
    out.write_text("old")
    before = set(commands.folder.iterdir())

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))

    words = ("export", book.ids["large"], "--payload", "--store", book.path, "--out", out, "--json")
    said = commands(*words, preexec_fn=little_room)
    assert (said.code, said.json["error"]["code"]) == (2, "CF-109")
    assert out.read_text() == "old"
    assert set(commands.folder.iterdir()) == before
    assert commands(*words).code == 0


@pytest.mark.parametrize("tail", ["", "-wal", "-shm"])
def test_the_receipts_are_never_overwritten_by_one_of_them(commands, book, tail):
    """The store and its companions are refused as a target, by whatever name they are reached."""
    link = commands.folder / "link.json"
    link.symlink_to(f"{book.path}{tail}")
    for out in (f"{book.path}{tail}", link):
        said = commands("export", book.ids["unknown"], "--store", book.path, "--out", out)
        assert (said.code, "receipts file itself" in said.err) == (2, True)
    assert commands("verify", "--store", book.path).code == 0


@pytest.mark.parametrize("out", [".", "nowhere/receipt.json", "/dev/null", "a\0b"])
def test_a_place_that_cannot_be_written_is_named(commands, book, out):
    """A folder, a missing folder, a device and a bad name are refused in a sentence."""
    if "\0" in out:
        return  # no program can be given such an argument
    said = commands("export", book.ids["unknown"], "--store", book.path, "--out", out, "--json")
    assert said.code == 2
    assert said.json["error"]["code"] == "CF-109"


def test_json_of_a_written_file_names_it(commands, book):
    """With `--out` and `--json` standard output says where the document went."""
    said = commands("export", book.ids["held"], "--store", book.path, "--out", "x.json", "--json")
    assert said.json == {"operation_id": book.ids["held"], "out": "x.json"}


def test_an_unknown_operation_is_refused(commands, book):
    """No document is made of what is not on record."""
    said = commands("export", "op_" + "f" * 32, "--store", book.path, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "CF-107")
