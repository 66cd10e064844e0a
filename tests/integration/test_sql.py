"""Statements on a real PostgreSQL: named before they are committed, and asked for by that name when COMMIT is lost."""

from __future__ import annotations

import select
import socket
import sqlite3
import subprocess
import sys
import threading

import msgspec
import psycopg
import pytest

import counterfoil
from counterfoil import contracts
from counterfoil.domain.canonical import canonical
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.domain.template import Names
from counterfoil.ports.provider import LookOrder, SendOrder
from counterfoil.providers.sql import Database, SqlProvider

OWNED = {"account": "shop", "owner": "ann", "authoriser": "ben"}
CONTRACT = contracts.load("postgresql.statement")
HASTY = msgspec.structs.replace(CONTRACT, send_deadline_seconds=2.0)
PAY = "INSERT INTO payments (who, amount) VALUES (%(who)s, %(amount)s) RETURNING id"
ORDER = {"who": "ann", "amount": 10}


@pytest.fixture(scope="module")
def shop(postgres):
    """A schema with a table of payments, by URL."""
    url = postgres.book()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "CREATE TABLE payments (id serial PRIMARY KEY, who text NOT NULL, amount int CHECK (amount > 0),"
            " twin int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
        )
    return url


@pytest.fixture
def ledger(tmp_path):
    """A ledger of its own for each test."""
    with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:
        yield ledger


def paying(ledger, url, *, name="pay", statement=PAY, **given):
    """The action that carries the statement out there."""
    return ledger.sql(name, url=url, statement=statement, **{**OWNED, **given})


def payments(url, who):
    """How many payments of somebody's there really are."""
    with psycopg.connect(url) as db:
        return db.execute("SELECT count(*) FROM payments WHERE who = %s", (who,)).fetchone()[0]


def sources(ledger, receipt):
    """Where each piece of evidence came from, in order."""
    events = ledger.history(receipt.id).events
    return [msgspec.json.decode(e.record)["source"] for e in events if e.kind == "observed"]


class Between:
    """A relay between client and server that loses what it is told to lose of the answer to COMMIT.

    Args:
        socket_path: the server's.
        fate: `reply`: COMMIT passes and its answer does not; `request`: COMMIT does not pass; `silence`: nor is it
            closed then.
    """

    def __init__(self, socket_path, fate):
        self._server, self._fate = socket_path, fate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)
        self._listener.close()

    def _accept(self):
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._relay, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _relay(self, client):
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while not self._over.is_set():
                for ready in select.select([client, server], [], [], 0.05)[0]:
                    octets = ready.recv(65536)
                    if not octets:
                        return
                    if ready is client and b"COMMIT" in octets and self._lose(server, octets):
                        return
                    (server if ready is client else client).sendall(octets)

    def _lose(self, server, octets):
        if self._fate != "request":
            server.sendall(octets)
            server.recv(65536)
        if self._fate == "silence":
            self._over.wait(20)
        return True


def through(postgres, url, relay):
    """The same database by way of the relay."""
    options = url.partition("?")[2].partition("options=")[2]
    return f"postgresql://postgres@127.0.0.1:{relay.port}/postgres?sslmode=disable&gssencmode=disable&options={options}"


@pytest.fixture
def lossy(postgres, shop):
    """Put a relay before the server: `lossy("reply")` gives the URL that leads through it."""
    relays = []

    def start(fate):
        relay = Between(str(next(postgres.folder.glob(".s.PGSQL.*[0-9]"))), fate)
        relays.append(relay.__enter__())
        return through(postgres, shop, relay)

    yield start
    for relay in relays:
        relay.__exit__()


# -- COMMIT is answered ------------------------------------------------------------------------------------------------


def test_a_statement_is_committed_once(ledger, shop):
    """What it returns is the result, its transaction is on the receipt before the answer, no call repeats it."""
    pay = paying(ledger, shop)
    receipt, again = pay({**ORDER, "who": "once"}, key="1"), pay({**ORDER, "who": "once"}, key="1")
    assert (receipt.outcome, again.id, again.result) == ("succeeded", receipt.id, receipt.result)
    assert receipt.result["rowcount"] == 1
    assert payments(shop, "once") == 1
    assert sources(ledger, receipt) == ["sender", "answer"]


@pytest.mark.parametrize("payload", [{"who": "neg", "amount": -1}, {"who": None, "amount": 1}])
def test_what_the_server_refuses_is_rejected(ledger, shop, payload):
    """A constraint, at the statement: proof that nothing was committed."""
    receipt = paying(ledger, shop)(payload, key="1")
    assert (receipt.outcome, sources(ledger, receipt)) == ("rejected", ["answer"])
    assert payments(shop, "neg") == 0


def test_what_is_refused_at_commit_is_rejected(ledger, shop):
    """A deferred constraint speaks only at COMMIT, and its answer is an error."""
    pay = paying(ledger, shop, statement="INSERT INTO payments (who, twin) VALUES (%(who)s, %(twin)s)")
    assert pay({"who": "twin", "twin": 1}, key="1").outcome == "succeeded"
    receipt = pay({"who": "twin", "twin": 1.0}, key="2")
    assert (receipt.outcome, sources(ledger, receipt)) == ("rejected", ["sender", "answer"])
    assert payments(shop, "twin") == 1


def test_a_serialization_failure_may_be_called_again(ledger, shop):
    """The server asks for the whole transaction again: nothing was committed, and the same call may go."""
    raised = "WITH x AS (SELECT pg_temp.fail()) INSERT INTO payments (who) SELECT %(who)s FROM x"
    with psycopg.connect(shop, autocommit=True) as db:
        db.execute(
            "CREATE FUNCTION fail() RETURNS int LANGUAGE plpgsql VOLATILE AS"
            " $$ BEGIN RAISE 'not now' USING ERRCODE = '40001'; END $$"
        )
    pay = paying(ledger, shop, statement=raised.replace("pg_temp.", ""))
    first, second = pay({"who": "busy"}, key="1"), pay({"who": "busy"}, key="1")
    assert (first.outcome, second.id, second.operation.attempts) == ("unobserved", first.id, 2)


@pytest.mark.slow
def test_a_statement_that_takes_too_long_was_not_committed(ledger, shop):
    """The deadline passes before COMMIT: nothing was sent."""
    slow = "WITH s AS (SELECT pg_sleep(20)) INSERT INTO payments (who) SELECT %(who)s FROM s"
    receipt = paying(ledger, shop, statement=slow, contract=HASTY)({"who": "slow"}, key="1")
    assert (receipt.outcome, receipt.operation.unresolved, payments(shop, "slow")) == ("unobserved", 0, 0)


KILLS_ITSELF = "SELECT pg_terminate_backend(pg_backend_pid())"


def test_a_server_that_ends_the_connection_at_the_statement_committed_nothing(ledger, shop):
    """A FATAL error is no refusal: COMMIT never left, and the same call may be made again."""
    statement = f"WITH gone AS ({KILLS_ITSELF}) INSERT INTO payments (who) SELECT %(who)s FROM gone, pg_sleep(1)"
    receipt = paying(ledger, shop, statement=statement)({"who": "fatal"}, key="1")
    assert (receipt.outcome, receipt.operation.unresolved, payments(shop, "fatal")) == ("unobserved", 0, 0)


def test_a_server_that_ends_the_connection_at_commit_says_nothing(ledger, shop):
    """A FATAL error may come after the commit (a standby that is waited for): unknown, until the look."""
    with psycopg.connect(shop, autocommit=True) as db:
        db.execute("CREATE TABLE fated (who text)")
        db.execute(
            "CREATE FUNCTION end_it() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN PERFORM ({KILLS_ITSELF}); PERFORM pg_sleep(1); RETURN NULL; END $$"
        )
        db.execute(
            "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON fated DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION end_it()"
        )
    receipt = paying(ledger, shop, statement="INSERT INTO fated VALUES (%(who)s)")({"who": "x"}, key="1")
    assert receipt.outcome == "unknown"
    assert ledger.reconcile(receipt.id).outcome == "rejected"


# -- COMMIT is not answered --------------------------------------------------------------------------------------------


def test_a_lost_answer_to_commit_is_found_by_its_transaction(ledger, shop, lossy):
    """Unknown, until the server says that it committed that very transaction; one row, and one look."""
    pay = paying(ledger, lossy("reply"))
    receipt = pay({**ORDER, "who": "lost"}, key="1")
    assert (receipt.outcome, receipt.lifecycle) == ("unknown", "outcome_unknown")
    found = ledger.reconcile(receipt.id)
    assert (found.outcome, found.operation.settled_by, payments(shop, "lost")) == ("succeeded", "succeeded:look", 1)
    assert pay({**ORDER, "who": "lost"}, key="1").outcome == "succeeded"
    assert payments(shop, "lost") == 1


def test_a_commit_that_never_arrived_is_rejected_by_its_transaction(ledger, shop, lossy):
    """The server says that it aborted it: proof that nothing was committed, without waiting for anything."""
    receipt = paying(ledger, lossy("request"))({**ORDER, "who": "never"}, key="1")
    assert receipt.outcome == "unknown"
    for _ in range(50):  # until the server has noticed that its client is gone
        found = ledger.reconcile(receipt.id)
        if found.outcome != "unknown":
            break
    assert (found.outcome, found.operation.settled_by, payments(shop, "never")) == ("rejected", "rejected:look", 0)


@pytest.mark.slow
def test_silence_after_commit_is_unknown_at_the_deadline(ledger, shop, lossy):
    """Nothing is closed and nothing is said: the wait ends, and the look says what happened."""
    receipt = paying(ledger, lossy("silence"), contract=HASTY)({**ORDER, "who": "silent"}, key="1")
    assert receipt.outcome == "unknown"
    assert payments(shop, "silent") == 1


def test_a_transaction_that_still_runs_settles_nothing(ledger, shop, postgres):
    """In progress is not aborted: the outcome stays unknown, and it is asked again later."""
    provider = provider_of(shop)
    with psycopg.connect(shop) as db:
        name = name_of(db)
        [said, never] = provider.look(look(name))
        assert (said.status, b"in progress" in said.body, never.status) == (200, True, 404)
        db.rollback()
    [said, _] = provider.look(look(name))
    assert b"aborted" in said.body


@pytest.mark.parametrize(
    "other", [lambda s, t, x: f"{int(s) + 1}.{t}.{x}", lambda s, t, x: f"{s}.0000000F.{x}"], ids=["system", "timeline"]
)
def test_another_systems_transaction_of_that_number_is_not_ours(shop, other):
    """After a promotion or a restore the same number names another transaction: it proves nothing."""
    with psycopg.connect(shop) as db:
        name = name_of(db)
        db.commit()
    [said, _] = provider_of(shop).look(look(other(*name.split("."))))
    assert b"timeline" in said.body
    assert b"committed" not in said.body


def test_a_store_that_cannot_take_the_name_stops_the_commit(ledger, shop, monkeypatch):
    """Nothing is committed that could not be asked for afterwards."""
    pay = paying(ledger, shop)
    monkeypatch.setattr("counterfoil.runtime.executor.note", refusing)
    receipt = pay({**ORDER, "who": "unnamed"}, key="1")
    assert (receipt.outcome, receipt.operation.unresolved, payments(shop, "unnamed")) == ("unobserved", 0, 0)


def refusing(operation, attempt, token, external_id):
    """A store that says no."""
    yield from ()
    return False


DYING = """
import sys, counterfoil
url, statement, book = sys.argv[1:]
with counterfoil.open(book, actor="robot") as ledger:
    pay = ledger.sql("pay", url=url, statement=statement, account="shop", destination="db", owner="a", authoriser="b")
    pay({"who": "killed", "amount": 10}, key="1")
"""


@pytest.mark.slow
def test_a_process_killed_at_commit_leaves_the_name(tmp_path, shop, lossy):
    """Killed while COMMIT was under way: the next process finds the transaction by what stands on the receipt."""
    book = tmp_path / "receipts.db"
    dying = subprocess.Popen([sys.executable, "-c", DYING, lossy("silence"), PAY, str(book)])
    while payments(shop, "killed") == 0:
        assert dying.poll() is None
    dying.kill()
    dying.wait()
    with counterfoil.open(book, actor="robot") as ledger:
        pay = paying(ledger, shop, destination="db")
        receipt = pay({**ORDER, "who": "killed"}, key="1")
        assert receipt.outcome == "unknown"
        assert ledger.reconcile(receipt.id).outcome == "succeeded"
        assert pay({**ORDER, "who": "killed"}, key="1").outcome == "succeeded"
    assert payments(shop, "killed") == 1


# -- declaring, and what is refused before a claim ---------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK; DROP TABLE x", "", "  BEGIN", "SET x = 1", "VACUUM"])
def test_what_could_end_its_own_transaction_is_refused(ledger, statement):
    """Only what a transaction can hold whole."""
    with pytest.raises(BadValue):
        paying(ledger, "postgresql://shop@db.test/shop", statement=statement)


def test_two_statements_are_one_too_many(ledger, shop):
    """The server itself refuses a second command behind the first: nothing is committed."""
    pay = paying(ledger, shop, statement="INSERT INTO payments (who) VALUES (%(who)s); COMMIT")
    assert pay({"who": "two"}, key="1").outcome == "rejected"
    assert payments(shop, "two") == 0


@pytest.mark.parametrize(
    "url", ["postgresql://shop:pw-1234@db.test/shop", "host=db.test", "http://db.test", "postgresql://h%zz"]
)
def test_a_url_with_a_password_or_of_another_kind_is_refused(ledger, url):
    """And not repeated."""
    with pytest.raises(BadValue) as refused:
        paying(ledger, url)
    assert "pw-1234" not in str(refused.value)


@pytest.mark.parametrize("payload", [{"who": "ann"}, ["ann", 10], {}])
def test_a_field_that_is_missing_is_named_and_nothing_is_recorded(ledger, payload):
    """Before anything is claimed."""
    with pytest.raises(PayloadRefused):
        paying(ledger, "postgresql://shop@db.test/shop")(payload, key="1")
    assert sqlite3.connect(ledger.store.path).execute("SELECT count(*) FROM operation").fetchone() == (0,)


def test_a_password_is_a_reference(ledger):
    """One that has no value is named; what is approved holds where it comes from."""
    with pytest.raises(SecretMissing, match="password"):
        paying(ledger, "postgresql://shop@db.test/shop", password="env:NO_SUCH")(ORDER, key="1")
    database = Database(url="postgresql://db.test/shop", password=lambda: "pw-1234", password_from="env:PW")
    form = SqlProvider(CONTRACT, database=database, statement=PAY, account="shop").form(order())
    assert b"env:PW" in form
    assert b"pw-1234" not in form


def test_nobody_listens(ledger, tmp_path):
    """No connection: nothing was sent; a look finds nothing out."""
    url = f"postgresql://shop@/shop?host={tmp_path}"
    receipt = paying(ledger, url)(ORDER, key="1")
    assert (receipt.outcome, receipt.operation.unresolved) == ("unobserved", 0)
    assert {said.reason for said in provider_of(url).look(look("1.00000001.1"))} == {"connect_failed"}


def test_another_account_is_never_written_to(shop):
    """Neither before the claim, nor at the send, nor at a look."""
    provider, other = provider_of(shop), msgspec.structs.replace(order(), account="other")
    with pytest.raises(SecretMisplaced):
        provider.check(other)
    assert provider.send(other, None).reason == "not_ours"
    asked = msgspec.structs.replace(look("1.00000001.1"), account="other")
    assert {said.reason for said in provider.look(asked)} == {"not_ours"}


def provider_of(url):
    """The provider of the payments."""
    return SqlProvider(CONTRACT, database=Database(url=url), statement=PAY, account="shop")


def order():
    """One write."""
    return SendOrder(
        account="shop", destination="", payload=canonical(ORDER), provider_key="op_1", deadline_seconds=5.0
    )


def look(name):
    """One look for a transaction."""
    names = Names(provider_key="op_1", external_id=name, negative="cf-absent-1")
    return LookOrder(
        account="shop", destination="", payload=canonical(ORDER), look=0, names=names, deadline_seconds=5.0
    )


def name_of(db):
    """The running transaction's name."""
    from counterfoil.providers import sql

    return ".".join(db.execute(sql._SELF).fetchone())
