"""The chaos on PostgreSQL at a small size: kills, restarts, commits whose answer is lost; and the wire by itself."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import subprocess
import sys

import pytest
from rich.console import Console
from tests.databases import with_pooler
from tests.integration.lab.stranger import disagreements
from tests.integration.store.commands import claim, late, settle

from counterfoil.domain.command import Amended, Claimed, Settled
from counterfoil.domain.errors import StoreAway
from counterfoil.lab import chaos_page, commit_cuts
from counterfoil.lab.chaos import Plan, programme
from counterfoil.lab.chaos_round import Outage
from counterfoil.lab.commit_cuts import ACKNOWLEDGED, CUTS, CommitCuts
from counterfoil.lab.cutting import Mode
from counterfoil.lab.database import server
from counterfoil.lab.disk import Full
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.framing import Talk, bound
from counterfoil.lab.journal import read
from counterfoil.lab.mirror import TABLES, keep, mirror
from counterfoil.lab.pooler import pooler
from counterfoil.lab.scoreboard import read_only
from counterfoil.store.copying import TABLES as COPIED
from counterfoil.store.postgresql import PostgresStore

SECONDS = 200
KILLS, RESTARTS, COMMIT_CUTS = 10, 3, 20


def chaos(*arguments):
    """Run the command; its exit code and its last line's object."""
    argv = [sys.executable, "-m", "counterfoil.lab", "chaos", *map(str, arguments), "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One run, with what it left behind."""
    folder = tmp_path_factory.mktemp("chaos") / "kept"
    size = ("--kills", KILLS, "--restarts", RESTARTS, "--commit-cuts", COMMIT_CUTS)
    code, result = chaos("--store", "postgresql", *size, "--keep", folder)
    return folder, code, result


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_no_trouble_of_a_database_breaks_a_rule(kept):
    """Nothing twice, false, unrecorded or forgotten; nothing that was acknowledged is gone; every chain is whole."""
    _, code, result = kept
    assert (code, result["ok"], result["store"], result["operations"]) == (0, True, "postgresql", result["lines"])
    noughts = (
        "duplicates", "false_outcomes", "unrecorded", "excess_sends", "unsettled", "unowned_unknowns", "violations",
        "acknowledged_lost",
    )  # fmt: skip
    assert {name: result[name] for name in noughts} == dict.fromkeys(noughts, 0)
    assert (result["kills"], result["restarts"], result["commit_cuts"]) == (KILLS, RESTARTS, COMMIT_CUTS)
    assert result["troubles"] == dict.fromkeys(("clock", "interrupted", "stopped", "terminated"), 1)
    assert min(result["ambiguous"].values()) >= 1
    assert sum(result["ambiguous"].values()) == COMMIT_CUTS
    assert result["acknowledged"] >= result["operations"]


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_a_stranger_counts_the_same_of_a_database(kept, tmp_path):
    """The recount agrees on every figure; an event that is acknowledged or cut and not there does not pass."""
    folder, _, _ = kept
    assert disagreements(folder) == (0, [])
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    for name, line in (
        ("acknowledged.jsonl", {"hash": "00" * 32}),
        ("commit_cuts.jsonl", {"at": 0.0, "mode": "closed", "durable": True, "events": [1]}),
        ("restarts.jsonl", {"at": 0.0, "seconds": 0.0}),
    ):
        with (changed / name).open("a") as file:
            file.write(json.dumps(line) + "\n")
    code, found = disagreements(changed)
    assert code == 1
    counted = {line.split(":")[0] for line in found}
    assert counted == {"acknowledged", "acknowledged_lost", "commit_cuts", "restarts", "ok"}


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_a_rule_that_is_off_is_noticed_on_a_database():
    """With a second send on silence effects happen twice: JSON, and exit code 1."""
    size = ("--kills", 6, "--restarts", 1, "--commit-cuts", 4)
    code, result = chaos("--store", "postgresql", *size, "--sabotage", "retry_on_timeout")
    assert (code, result["ok"]) == (1, False)
    assert result["duplicates"] > 0


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_no_trouble_of_a_pooler_breaks_a_rule(tmp_path):
    """Workers write through pgbouncer, which is killed with the database: nothing twice, false, forgotten or gone."""
    with_pooler()
    size = ("--kills", 4, "--restarts", 2, "--commit-cuts", 6)
    code, result = chaos("--store", "postgresql", "--pooler", *size, "--keep", tmp_path / "kept")
    assert (code, result["why"], result["pooler"], result["restarts"], result["commit_cuts"]) == (0, [], True, 2, 6)
    assert disagreements(tmp_path / "kept") == (0, [])


def test_without_a_pooler_nothing_is_played_through_one(postgres, monkeypatch):
    """A machine that has none is told what to install."""
    monkeypatch.setattr("counterfoil.lab.pooler.PROGRAM", "no-such-pooler")
    with pytest.raises(RunFailed, match="apt-get install"), pooler(postgres):
        pass


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--restarts", 1), "--store postgresql"),
        (("--commit-cuts", 0), "--store postgresql"),
        (("--pooler",), "--store postgresql"),
        (("--store", "postgresql", "--disk", "rlimit"), "--disk"),
    ],
)
def test_what_the_other_store_cannot_suffer_is_refused(arguments, word):
    """A file has no server to be stopped, and a database no disk of its own."""
    code, told = chaos("--kills", 1, *arguments)
    assert (code, word in told["error"]) == (3, True)


def test_the_programme_has_every_restart():
    """As many as asked for, among the rest, and none of a file's."""
    rounds = programme(20, Full.NONE, random.Random(1), 7)
    assert rounds.count(Outage.RESTARTED) == 7
    assert len(rounds) + 1 == Plan(kills=20, restarts=7).steps - 1  # the disk's trouble is none of a database's
    assert Outage.RESTARTED not in programme(20, Full.TMPFS, random.Random(1))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_the_page_says_what_befell_a_database(kept):
    """Restarts and lost answers stand where a file's full disk does."""
    _, _, result = kept
    page = Console(width=200, record=True, file=io.StringIO())
    chaos_page.show(result, page)
    said = page.export_text()
    assert f"restarted {RESTARTS} times, and {COMMIT_CUTS} commits lost their answer" in said
    assert "acknowledged lost" in said


# -- the wire ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def book(postgres):
    """The URL of an empty book."""
    return postgres.book()


@pytest.fixture
def cutting(postgres, book, tmp_path, monkeypatch):
    """A wire that cuts every commit it may, in one mode, and a store that is reached by it."""
    monkeypatch.setattr(commit_cuts, "EVERY", 1)
    monkeypatch.setattr(postgres, "url", lambda: book)
    with contextlib.ExitStack() as house:

        def start(mode):
            monkeypatch.setattr(commit_cuts, "MODES", (mode,))
            wire = house.enter_context(CommitCuts(postgres, tmp_path, random.Random(1)))
            return wire, house.enter_context(contextlib.closing(PostgresStore(wire.through(book))))

        yield start


def hashes(book):
    """Of every event that stands."""
    with contextlib.closing(mirror(book)) as tables:
        return [row[0].hex() for row in tables.execute("SELECT hash FROM event ORDER BY id")]


@pytest.mark.parametrize("slowly", [False, True])
def test_what_a_database_acknowledges_is_written_down(cutting, book, tmp_path, slowly):
    """Each event by its hash, whichever way it was written, and nothing that is only read or declined."""
    _, store = cutting(Mode.CLOSED)
    if slowly:
        store._kept = 0.0
    first = claim()
    reply = store.write(first)
    assert isinstance(reply, Claimed)
    if slowly:
        store._kept = 0.0
    assert isinstance(store.write(settle(first, reply)), Settled)
    assert isinstance(store.write(late(first.id)), Amended)
    store.write(first)  # the same claim again
    assert len(store.load(first.id).events) == 3
    acknowledged = [line["hash"] for line in read(tmp_path / ACKNOWLEDGED)]
    assert acknowledged == hashes(book)
    assert read(tmp_path / CUTS) == []


@pytest.mark.parametrize(
    ("mode", "stands"), [(Mode.UNDELIVERED, False), (Mode.UNANSWERED, True), (Mode.CLOSED, True)]
)  # fmt: skip
def test_a_cut_says_what_the_database_says(cutting, book, tmp_path, mode, stands):
    """Whatever the wire meant to do, the line names the events that stand, and nothing was acknowledged."""
    wire, store = cutting(mode)
    wire.allow(1)
    first = claim()
    with pytest.raises(StoreAway):
        store.write(first)
    (line,) = read(tmp_path / CUTS)
    assert (line["mode"], line["durable"], line["events"]) == (mode, stands, [first.n * 32768 + 1] if stands else [])
    assert len(hashes(book)) == stands
    assert read(tmp_path / ACKNOWLEDGED) == []
    assert isinstance(store.write(first), Claimed)


def test_a_transaction_is_cut_at_its_commit(cutting, tmp_path):
    """What a rule has decided is bound long before: only the commit makes it durable."""
    wire, store = cutting(Mode.UNDELIVERED)
    first = claim()
    store.write(first)
    wire.allow(1)
    assert isinstance(store.write(late(first.id)), Amended)  # written again by the store itself
    assert [line["durable"] for line in read(tmp_path / CUTS)] == [False]


def bind(*values):
    """A Bind as psycopg spells it."""
    body = b"\0_pg3_0\0" + (1).to_bytes(2, "big") + (1).to_bytes(2, "big") + len(values).to_bytes(2, "big")
    for value in values:
        body += b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
    body += (1).to_bytes(2, "big") + (1).to_bytes(2, "big")
    return b"B" + (len(body) + 4).to_bytes(4, "big") + body


def array(kind, *values):
    """A binary array of one dimension."""
    head = b"".join(n.to_bytes(4, "big") for n in (1, 0, kind, len(values), 1))
    return head + b"".join(len(value).to_bytes(4, "big") + value for value in values)


def begun():
    """A connection whose session has begun."""
    talk = Talk()
    start = (196608).to_bytes(4, "big") + b"user\0a\0\0"
    for said in ((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"), (len(start) + 4).to_bytes(4, "big") + start):
        assert [message.kind for message in talk.asked(said)] == [b""]
    assert talk.answered(b"N" + b"K" + (12).to_bytes(4, "big") + (7).to_bytes(4, "big") + b"\0\0\0\0") == []
    assert talk.backend == 7
    return talk


def test_messages_are_read_however_they_are_cut_up():
    """One byte at a time comes to what all of them at once come to; NULL, arrays and texts are told apart."""
    record = b'{"finding":"unknown"}'
    whole = bind(None, array(17, record, b"x"), b"{}", array(20, (5).to_bytes(8, "big")), b'{"breaker a"}', b"h" * 32)
    assert bound(whole) == [record, b"x", b"{}", (5).to_bytes(8, "big"), b'{"breaker a"}', b"h" * 32]
    talk = begun()
    messages = [message for at in range(len(whole)) for message in talk.asked(whole[at : at + 1])]
    assert [message.whole for message in messages] == [whole]
    assert talk.is_commit(messages[0])
    (write,) = talk.writes
    assert (write.records, write.numbers) == ([record], [5])


def test_what_failed_or_was_rolled_back_is_not_acknowledged():
    """An error, and whatever ends a transaction but a commit, say that nothing stands."""

    def said(kind, body):
        return kind + (len(body) + 4).to_bytes(4, "big") + body

    row = said(b"D", b"\0\1\0\0\0\x20" + b"h" * 32)
    for told, durable in (
        (row + said(b"Z", b"I"), [b"h" * 32]),
        (row + said(b"E", b"\0") + said(b"Z", b"I"), []),
        (said(b"Z", b"T") + said(b"C", b"COMMIT\0") + said(b"Z", b"I"), [b"k" * 32]),
        (said(b"Z", b"T") + said(b"C", b"ROLLBACK\0") + said(b"Z", b"I"), []),
    ):
        talk = begun()
        list(talk.asked(bind(b'{"a":1}', b"k" * 32)))
        assert talk.answered(told) == durable
        assert talk.writes == []


def test_a_restart_keeps_what_was_acknowledged(tmp_path):
    """The server is gone and back at the same address; who was connected connects again."""
    with server() as made, contextlib.closing(PostgresStore(made.url())) as store:
        first = claim()
        store.write(first)
        made.restart()
        assert [o.id for o in store.unresolved()] == [first.id]
        keep(made.url(), tmp_path / "receipts.db")
    with contextlib.closing(read_only(tmp_path / "receipts.db")) as file:
        assert file.execute("SELECT id FROM operation").fetchall() == [(first.id,)]


def test_every_table_of_a_book_is_mirrored():
    """What is moved from a file to a database is read from there too."""
    assert set(TABLES) == set(COPIED)
