"""Removal and erasure on a real file: all or nothing, one winner of every race, and nothing can go again."""

from __future__ import annotations

import collections
import random
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from tests.integration.store.keeping import BODIES, RECEIPTS, adopt, ahead

import counterfoil
from counterfoil.cli.verify import verify
from counterfoil.domain import retention
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amend, Amended, Claim, Counted, CountRefusals, Declined, Erase, Existing, Remove
from counterfoil.domain.errors import InvariantBroken, NoSuchOperation, NotDecided
from counterfoil.domain.event import SEQ_MAX, EventKind, encode, removed_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.policy import Retention
from counterfoil.domain.rules import observe
from counterfoil.domain.words import Finding, Source
from counterfoil.lab.images.disk import Everything, Nothing, replay
from counterfoil.lab.images.shim import Shim
from counterfoil.lab.images.tape import Tape
from counterfoil.runtime import retaining
from counterfoil.store import opening

SECRET = "4242424242424242"
DUE = retention.Due(after_seconds=0.0, rule="ordinary", policy="pl1:p")
LARGE = "x" * 50_000
WHO = {"owner": "payments", "authoriser": "lead"}


class Till:
    """A payment function that counts what it was called with, and ends as it is told."""

    def __init__(self, ledger, *, name="pay", **declared):
        self.sent, self.ends = [], []

        def pay(order, card=SECRET):
            self.sent.append(order)
            end = self.ends.pop(0) if self.ends else {"id": f"re_{order}", "card": card}
            if isinstance(end, BaseException):
                raise end
            return end

        self.pay = ledger.action(pay, name=name, effect="pay", key=lambda order, card: order, **WHO, **declared)

    def __call__(self, order, end=None, card=SECRET):
        self.ends = [end] if end is not None else []
        return self.pay(order, card)


@pytest.fixture
def ledger(tmp_path):
    """A ledger whose every record verifies in the end, file and triggers included."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:a") as ledger:
        yield ledger
        found = verify(ledger, lambda: None).violations
        # `DUE` removes by a policy that these tests never adopt, and that is found.
        assert [wrong for wrong in found if "it rests on pl1:p," not in wrong.problem] == []


@pytest.fixture
def till(ledger):
    return Till(ledger)


def remove(operation, due=DUE):
    return Remove(operation=operation, rule=retention.remove(due))


def erase(operation):
    return Erase(operation=operation, rule=retention.erase(by="user:mara", reason="asked to"))


def late(operation, contract, finding=Finding.REJECTED):
    said = Evidence(source=Source.LATE_ANSWER, finding=finding, attempt=1, rule="answers[0]")
    return Amend(operation=operation, rule=observe(said, encode(said), None, contract))


def counted(ledger, table, n):
    return ledger.store.query(f"SELECT count(*) FROM {table} WHERE id / 32768 = ?", (n,))[0][0]


# -- one operation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", [SECRET, LARGE])
def test_a_removal_leaves_the_row_and_one_event(ledger, till, card):
    """Events and bodies are gone from their tables; the row has every column it had, but the number of its events."""
    receipt = till("o-1", card=card)
    reply = ledger.store.write(remove(receipt.id))
    assert isinstance(reply, Amended)
    history = ledger.history(receipt.id)
    assert history == reply.history
    assert [e.kind for e in history.events] == [EventKind.REMOVED]
    assert (counted(ledger, "event", history.operation.n), counted(ledger, "body", history.operation.n)) == (1, 0)
    before, after = receipt.operation, history.operation
    differing = [name for name in type(after).__struct_fields__ if getattr(before, name) != getattr(after, name)]
    assert differing == ["seq"]


@pytest.mark.parametrize("card", [SECRET, LARGE])
def test_an_erasure_leaves_every_event(ledger, till, card):
    """Only the bodies are gone, and a decision says by whom."""
    receipt = till("o-1", card=card)
    before = ledger.history(receipt.id).events
    assert isinstance(ledger.store.write(erase(receipt.id)), Amended)
    after = ledger.history(receipt.id).events
    assert [(e.record, e.hash) for e in after[:-1]] == [(e.record, e.hash) for e in before]
    assert [e.body for e in after] == [None] * 3
    assert counted(ledger, "body", receipt.operation.n) == 0


@pytest.mark.parametrize("command", [remove, erase])
@pytest.mark.parametrize("card", [SECRET, SECRET + LARGE])
def test_what_is_gone_is_in_no_byte_of_the_file(tmp_path, command, card):
    """Neither a free page nor the log still holds it."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:a") as ledger:
        till = Till(ledger)
        for n in range(30):
            receipt = till(f"o-{n}", card=card)
            ledger.store.write(command(receipt.id))
        ledger.store.settle_down()
        # Another process reads the file: opening it here would drop SQLite's locks.
        program = (
            "import sys, pathlib; print(sum(pathlib.Path(p).read_bytes().count(b'4242424242') for p in sys.argv[1:]))"
        )
        paths = [str(p) for p in tmp_path.iterdir() if p.is_file() and not p.name.endswith("-shm")]
        found = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=True)
        assert found.stdout.strip() == "0"


@pytest.mark.parametrize("command", [remove, erase])
def test_a_power_cut_brings_nothing_back(tmp_path, command):
    """SQLite cuts its log without syncing it: what was reported as gone must not stand in the old one again."""
    tape = Tape({})
    with Shim(tmp_path, tape), counterfoil.open(tmp_path / "receipts.db", actor="agent:a") as ledger:
        receipt = Till(ledger)("o-1")
        ledger.store.write(command(receipt.id))
        before = len(tape.operations)
        ledger.store.settle_down()
        *_, at_first = replay({}, tuple(tape.operations[:before]))
        *_, settled = replay({}, tuple(tape.operations))
    draws = random.Random(1)
    cuts = [settled.image(Nothing()), settled.image(Everything()), *(settled.draw(draws) for _ in range(20))]
    assert [name for cut in cuts for name, held in cut.files.items() if b"4242424242" in held] == []
    assert any(b"4242424242" in held for held in at_first.image(Everything()).files.values())


def test_the_trigger_lets_nothing_else_go(ledger, till):
    """Events of what stands, and the one event that stands for others, are deleted by nobody."""
    kept, gone = till("o-1"), till("o-2")
    ledger.store.write(remove(gone.id))
    for receipt in (kept, gone):
        with ledger.store.lead() as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM event WHERE id / 32768 = ?", (receipt.operation.n,))


def test_a_neighbour_keeps_its_events(ledger, till):
    """The rows of the operations before and after are not touched."""
    receipts = [till(f"o-{n}") for n in range(3)]
    before = [ledger.history(r.id) for r in receipts]
    ledger.store.write(remove(receipts[1].id))
    ledger.store.write(erase(receipts[1].id))
    assert [ledger.history(r.id) for r in receipts[::2]] == before[::2]


def test_only_its_own_kind_of_event_is_written(ledger, till):
    """A rule that would let a removal write anything else is a defect, and nothing of it is durable."""
    receipt = till("o-1")
    wrong = Remove(operation=receipt.id, rule=retention.erase(by="user:mara", reason="r"))
    with pytest.raises(InvariantBroken, match="its own kind"):
        ledger.store.write(wrong)
    assert len(ledger.history(receipt.id).events) == 2


def test_an_unknown_operation_is_named(ledger):
    """As for every command."""
    with pytest.raises(NoSuchOperation):
        ledger.store.write(remove("op_" + "0" * 32))


def test_an_operation_without_room_is_left_alone(ledger, till, monkeypatch):
    """A row number more would be the next operation's."""
    from counterfoil.store import retention as storing

    receipt = till("o-1")
    monkeypatch.setattr(storing, "SEQ_MAX", 2)
    with pytest.raises(InvariantBroken, match="no number is left"):
        ledger.store.write(remove(receipt.id))
    assert SEQ_MAX == 32_767
    assert len(ledger.history(receipt.id).events) == 2


def test_the_connection_is_left_as_it_was(ledger, till):
    """Overwriting what is deleted, and a short wait, are for this alone: the hot path keeps its settings."""
    receipt = till("o-1")

    def settings():
        with ledger.store.lead() as db:
            names = ("secure_delete", "busy_timeout", "synchronous")
            return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    before = settings()
    ledger.store.write(remove(receipt.id))
    ledger.store.settle_down()
    assert settings() == before
    assert before[1] == opening.BUSY_TIMEOUT_SECONDS * 1000


# -- the same call again -----------------------------------------------------------------------------------------------


ENDS = {"succeeded": None, "rejected": counterfoil.Rejected("no"), "not_sent": counterfoil.NotSent("no")}


@pytest.mark.parametrize("end", ENDS)
def test_a_removed_key_is_never_sent(ledger, till, end):
    """Whatever it came to, and were it that nothing left: the call gets the receipt and the reason, and no send."""
    first = till("o-1", ENDS[end])
    ledger.store.write(remove(first.id))
    again = till("o-1")
    assert (len(till.sent), again.id, again.standing.value) == (1, first.id, "existing")
    assert again.outcome is first.outcome
    assert again.because[-1].startswith("its record was removed by retention on ")
    assert "call_again" not in again.permitted
    assert "call_again" not in ledger.get(first.id).for_model()["permitted"]
    with pytest.raises(counterfoil.CallerError):
        ledger.attempt(first.id, by="mara")
    assert len(till.sent) == 1


def test_a_claim_that_is_written_again_finds_the_removal(ledger, till, monkeypatch):
    """One event is left, and it is neither a fresh claim nor a hold: whoever repeats the claim gets what stands."""
    written, write = [], ledger.store.write
    monkeypatch.setattr(ledger.store, "write", lambda command: (written.append(command), write(command))[1])
    receipt = till("o-1")
    (claim,) = [command for command in written if isinstance(command, Claim)]
    write(remove(receipt.id))
    assert isinstance(write(claim), Existing)


def test_another_fingerprint_is_still_a_conflict(ledger, till):
    """Compared before every other answer, long after the payload is gone."""
    ledger.store.write(remove(till("o-1").id))
    with pytest.raises(counterfoil.CallerError, match="belongs to"):
        till("o-1", card="another")


def test_a_result_that_is_gone_is_not_none(ledger, till):
    """`expect` says that it took place and that there is nothing to return; a model is told so in a fixed word."""
    for order, command, word in (("o-1", erase, "erased"), ("o-2", remove, "removed")):
        first = till(order)
        ledger.store.write(command(first.id))
        again = till(order)
        with pytest.raises(counterfoil.ResultGone, match=f"took place, and its result was {word}"):
            again.expect()
        told = again.for_model()
        assert (told["outcome"], told["result"]) == ("succeeded", "erased")
        assert "use_result" not in told["permitted"]
    assert len(till.sent) == 2


def test_nothing_that_was_returned_stays_nothing(ledger):
    """A function without a result has none to lose."""
    nothing = ledger.action(lambda order: None, name="nothing", key=lambda order: order, **WHO)
    first = nothing("o-1")
    ledger.store.write(remove(first.id))
    assert nothing("o-1").expect() is None


def test_an_erasure_needs_a_person_and_an_end(ledger, till):
    """Unresolved, or by an agent: refused with the reason; twice is once."""
    lost, done = till("o-1", TimeoutError()), till("o-2")
    with pytest.raises(NotDecided, match="it is unresolved"):
        ledger.erase(lost.id, by="user:mara", reason="r")
    for by, reason in (("agent:a", "r"), ("", "r"), ("user:mara", "")):
        with pytest.raises(counterfoil.CallerError):
            ledger.erase(done.id, by=by, reason=reason)
    for _ in range(2):
        assert ledger.erase(done.id, by="user:mara", reason="r", how="badge").gone == "erased"
    assert len(ledger.history(done.id).events) == 3
    ledger.resolve(lost.id, "rejected", evidence={"ticket": "t"}, by="user:mara", reason="r")


# -- killed, and raced -------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from counterfoil.domain import retention
from counterfoil.domain.command import Erase, Remove
from counterfoil.store.sqlite import SqliteStore

path, operation, what, point = sys.argv[1:]
store = SqliteStore(path)

def die(statement):
    if statement.startswith(point):
        os.kill(os.getpid(), signal.SIGKILL)

with store.lead() as db:
    db.set_trace_callback(die)
due = retention.Due(after_seconds=0.0, rule="ordinary", policy="pl1:p")
rules = {"remove": (Remove, retention.remove(due)), "erase": (Erase, retention.erase(by="user:mara", reason="r"))}
command, rule = rules[what]
store.write(command(operation=operation, rule=rule))
os.kill(os.getpid(), signal.SIGKILL)
"""
POINTS = {
    "remove": ("BEGIN", "INSERT INTO event", "UPDATE operation", "DELETE FROM body", "DELETE FROM event", "COMMIT"),
    "erase": ("INSERT INTO event", "DELETE FROM body", "UPDATE event", "COMMIT"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("what", "point"), [(w, p) for w in POINTS for p in (*POINTS[w], "never")])
def test_killed_anywhere_it_is_whole_or_not_at_all(ledger, till, what, point):
    """SIGKILL before each statement, and after the answer: what another process reads is the one or the other."""
    receipt = till("o-1", card=LARGE)
    before = ledger.history(receipt.id)
    argv = [sys.executable, "-c", KILLED, str(ledger.store.path), receipt.id, what, point]
    ended = subprocess.run(argv, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    history = ledger.history(receipt.id)
    if point != "never":
        assert history == before
    elif what == "remove":
        assert removed_of(history.events).events == 2
    else:
        assert [e.body for e in history.events] == [None] * 3
    assert audit(history) == ()


ROUNDS = 50


def race(*doing):
    """Let all start at once; what each came to."""
    barrier, came = threading.Barrier(len(doing)), [None] * len(doing)

    def run(i):
        barrier.wait(20)
        try:
            came[i] = doing[i]()
        except Exception as error:  # noqa: BLE001 - an answer like another
            came[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(doing))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came


@pytest.mark.slow
def test_late_evidence_and_a_removal_have_one_winner(ledger, till):
    """Contradicted first, and it is kept; removed first, and the evidence reopens it: either way it is unresolved."""
    contract = till.pay.action.contract
    other = counterfoil.open(ledger.store.path, actor="agent:b")
    winners = collections.Counter()
    for n in range(ROUNDS):
        receipt = till(f"o-{n}")
        removing, heard = race(
            lambda i=receipt.id: ledger.store.write(remove(i)),
            lambda i=receipt.id: other.store.write(late(i, contract)),
        )
        assert isinstance(heard, Amended)
        history = ledger.history(receipt.id)
        assert (history.operation.unresolved, history.operation.discrepancy.value) == (1, "open")
        assert audit(history) == ()
        gone = history.events[0].kind is EventKind.REMOVED
        assert isinstance(removing, Amended if gone else Declined)
        winners[gone] += 1
    other.close()
    assert sum(winners.values()) == ROUNDS


@pytest.mark.slow
def test_the_same_call_and_a_removal_have_one_winner(ledger, till):
    """Sent again first, and it is kept until that is settled; removed first, and nothing is ever sent for its key."""
    other = counterfoil.open(ledger.store.path, actor="agent:a")
    elsewhere = Till(other)
    for n in range(ROUNDS):
        order = f"o-{n}"
        first = till(order, counterfoil.NotSent("no"))
        removing, called = race(
            lambda i=first.id: ledger.store.write(remove(i)), lambda o=order: elsewhere(o)
        )  # fmt: skip
        history = ledger.history(first.id)
        assert audit(history) == ()
        if called.standing.value == "new":
            assert elsewhere.sent.count(order) == 1
            assert called.outcome.value == "succeeded"
            assert (
                isinstance(removing, Declined) or removed_of(history.events).attempts[-1].finding is Finding.SUCCEEDED
            )
        else:
            assert isinstance(removing, Amended)
            assert order not in elsewhere.sent
            assert called.because[-1].startswith("its record was removed")
    other.close()


# -- the policy in force -----------------------------------------------------------------------------------------------


def done(ledger, **options):
    return [(r.operation, r.did) for r in ledger.retain(**options)]


def test_nothing_happens_without_a_policy_that_says_so(ledger, till):
    """No policy, or one that names no time for the class: everything is kept for ever."""
    till("o-1")
    ahead(ledger.store, 1e8)
    assert done(ledger) == []
    adopt(ledger.store, Retention(sensitivity="personal", receipts_seconds=1.0), Retention(sensitivity="ordinary"))
    assert done(ledger) == []


def test_bodies_go_first_and_receipts_later(ledger, till):
    """Each at its own time, counted from the last thing that happened; a dry run says the same and does nothing."""
    receipt = till("o-1")
    named = adopt(ledger.store)
    for seconds, did in ((BODIES - 5, []), (BODIES + 5, ["erased"]), (RECEIPTS - 5, []), (RECEIPTS + 5, ["removed"])):
        ahead(ledger.store, seconds)
        expected = [(receipt.id, word) for word in did]
        assert done(ledger, dry_run=True) == expected
        assert done(ledger) == expected
        assert done(ledger) == []
    left = removed_of(ledger.history(receipt.id).events)
    assert (left.events, left.policy, left.by, left.rule) == (3, named, "house", "ordinary")


def test_each_class_has_its_own_time(ledger):
    """The class is read from the record, not from what is registered now."""
    classes = {name: Till(ledger, name=name, sensitivity=name) for name in ("personal", "public")}
    ids = {name: till(name).id for name, till in classes.items()}
    ordinary = Till(ledger)("ordinary").id
    adopt(
        ledger.store,
        Retention(sensitivity="personal", receipts_seconds=10.0),
        Retention(sensitivity="public", bodies_seconds=10.0),
        Retention(sensitivity="ordinary", receipts_seconds=1e6),
    )
    ahead(ledger.store, 20.0)
    with counterfoil.open(ledger.store.path) as other:  # nothing is registered there
        other.store._clock = ledger.store._clock
        assert done(other) == [(ids["personal"], "removed"), (ids["public"], "erased")]
    assert len(ledger.history(ordinary).events) == 2


def test_it_may_be_stopped_anywhere_and_goes_on(ledger, till, monkeypatch):
    """Oldest first, over pages; whoever stops iterating, or names a limit, finds the rest the next time."""
    monkeypatch.setattr(retaining, "PAGE", 2)
    ids = [till(f"o-{n}").id for n in range(7)]
    adopt(ledger.store)
    ahead(ledger.store, RECEIPTS + 5)
    assert done(ledger, limit=3) == [(i, "removed") for i in ids[:3]]
    going = ledger.retain()
    assert next(going).operation == ids[3]
    going.close()
    assert [i for i, _ in done(ledger)] == ids[4:]
    assert done(ledger) == []


def test_what_does_not_verify_is_kept_and_named(tmp_path):
    """An edited record is evidence of the edit: retention does not remove it, and says which and why."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:a") as ledger:
        receipt = Till(ledger)("o-1")
        adopt(ledger.store)
        ledger.store.execute("UPDATE operation SET value = 7 WHERE n = ?", (receipt.operation.n,))
        ahead(ledger.store, RECEIPTS + 5)
        (kept,) = ledger.retain()
        assert (kept.operation, kept.did, kept.because) == (receipt.id, "kept", ("its record does not verify",))
        assert len(ledger.history(receipt.id).events) == 2


def test_a_change_of_the_policy_holds_from_the_next_page(ledger, till, monkeypatch):
    """Retention goes by what is on record when it removes, not by what was when it began."""
    monkeypatch.setattr(retaining, "PAGE", 1)
    ids = [till(f"o-{n}").id for n in range(3)]
    adopt(ledger.store)
    ahead(ledger.store, RECEIPTS + 5)
    going = ledger.retain()
    assert next(going).operation == ids[0]
    adopt(ledger.store, Retention(sensitivity="ordinary"))
    assert list(going) == []


LIVES = 1_000


@pytest.mark.slow
def test_a_thousand_random_lives_verify_after_retention(ledger, monkeypatch):
    """Whatever happened to them: what is unresolved is untouched, the rest is gone, and no key is ever sent again."""
    with ledger.store.lead() as db:
        db.execute("PRAGMA synchronous = OFF")  # a thousand lives, not a thousand disks
    chance = random.Random(41)
    tills = {name: Till(ledger, name=name, sensitivity=name) for name in ("ordinary", "personal", "public")}
    calls, live = {}, chance.choice
    for n in range(LIVES):
        till, order = tills[live(sorted(tills))], f"o-{n}"
        end = live([None, None, counterfoil.Rejected("no"), counterfoil.NotSent("no"), TimeoutError()])
        calls[order] = till(order, end, card=live([SECRET, LARGE]))
        if chance.random() < 0.2:  # another attempt, where nothing left
            calls[order] = till(order, card=calls_card(ledger, calls[order]))
        if calls[order].operation.attempts and chance.random() < 0.2:
            said = live(["succeeded", "rejected"])
            ledger.resolve(calls[order].id, said, evidence={"ticket": n}, by="user:mara", reason="r")
        if chance.random() < 0.1:
            ledger.store.write(
                late(calls[order].id, till.pay.action.contract, live([Finding.REJECTED, Finding.UNKNOWN]))
            )
    open_before = [ledger.history(o.id) for o in ledger.store.unresolved()]
    adopt(
        ledger.store,
        Retention(sensitivity="ordinary", bodies_seconds=50.0, receipts_seconds=100.0),
        Retention(sensitivity="personal", receipts_seconds=10.0),
        Retention(sensitivity="public", bodies_seconds=10.0),
    )
    resolved = LIVES - len(open_before)
    for seconds in (20.0, 60.0, 200.0):
        ahead(ledger.store, seconds)
        assert "kept" not in {did for _, did in done(ledger)}
        assert verify(ledger, lambda: None).violations == []
    assert [ledger.history(h.operation.id) for h in open_before] == open_before
    gone = [h for h in ledger.store.histories() if h.events[0].kind is EventKind.REMOVED]
    assert 0 < len(gone) < resolved
    sent = [list(till.sent) for till in tills.values()]
    for history in gone:
        with pytest.raises(counterfoil.CallerError):
            ledger.attempt(history.operation.id, by="mara")
    assert [list(till.sent) for till in tills.values()] == sent


def calls_card(ledger, receipt):
    """The card a call was made with, to make the same one again."""
    from counterfoil.domain.canonical import parse
    from counterfoil.domain.payload import frozen_payload

    return parse(frozen_payload(ledger.history(receipt.id)))["card"]


# -- refused repetitions -----------------------------------------------------------------------------------------------


def test_counts_add_up_and_a_batch_counts_once(ledger, till):
    """A batch that is written again, because its first answer was lost, adds nothing."""
    n, other = till("o-1").operation.n, till("o-2").operation.n
    assert ledger.store.refusals(n) == 0
    batch = CountRefusals(counts=((n, 3), (other, 1)), at=1.0)
    for command in (batch, batch, CountRefusals(counts=((n, 2),), at=2.0)):
        assert ledger.store.write(command) == Counted()
    assert (ledger.store.refusals(n), ledger.store.refusals(other)) == (5, 1)


def test_a_count_survives_the_removal(ledger, till):
    """How often it was refused is about the key, which stays."""
    receipt = till("o-1")
    ledger.store.write(CountRefusals(counts=((receipt.operation.n, 3),), at=1.0))
    ledger.store.write(remove(receipt.id))
    assert ledger.store.refusals(receipt.operation.n) == 3
