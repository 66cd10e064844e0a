"""Answers: written once by who holds the claim, or by a rule on the whole history when somebody else wrote."""

from __future__ import annotations

import threading

import msgspec
import pytest
from tests.integration.store.commands import claim, evidence, faults, late, note, observe, settle, stands

from counterfoil.domain.command import Amend, Amended, Amendment, Claimed, Declined, NewEvent, Settled, Stale
from counterfoil.domain.errors import InvariantBroken, NoSuchOperation
from counterfoil.domain.event import SEQ_MAX, EventKind, encode
from counterfoil.domain.words import Discrepancy, Dispatch, Finding, Outcome, Source


def test_an_answer_is_on_record_for_everybody_when_it_is_acknowledged(store, make_store):
    """The operation reads as the evidence says, with two events whose chain is the one that was answered."""
    first = claim()
    claimed = store.write(first)
    command = settle(first, claimed, body=b"s" * 16 + b"answer")
    reply = store.write(command)
    assert isinstance(reply, Settled)
    history = make_store().load(first.id)
    assert history.operation == msgspec.structs.replace(
        stands(first, claimed.at),
        dispatch=Dispatch.COMPLETED, outcome=Outcome.SUCCEEDED, exposure=0, unresolved=0,
        settled_by="succeeded:answer", step="", due_at=0.0, updated_at=reply.at, seq=2,
    )  # fmt: skip
    assert (history.events[1].record, history.events[1].body) == (command.record, command.body)
    assert history.head == reply.head


def test_an_answer_says_when_the_next_step_is_due(store):
    """The due time counts from the commit, by the store's clock."""
    first = claim()
    command = settle(first, store.write(first), evidence(Finding.UNKNOWN))
    command = msgspec.structs.replace(command, columns=(*command.columns[:-1], "look"), due_after=5.0)
    reply = store.write(command)
    assert store.load(first.id).operation.due_at == reply.at + 5.0


def test_the_same_answer_again_recognises_itself(store):
    """An answer whose first acknowledgement was lost is acknowledged as the first time and adds nothing."""
    first = claim()
    command = settle(first, store.write(first))
    assert store.write(command) == store.write(command)
    assert len(store.load(first.id).events) == 2


def test_an_answer_beside_another_writer_is_stale(store):
    """Somebody wrote since: nothing of the answer is written, and its holder is told to judge anew."""
    first = claim()
    command = settle(first, store.write(first))
    store.write(note(first.id, "seen"))
    before = store.load(first.id)
    assert store.write(command) == Stale()
    assert store.load(first.id) == before


def test_an_answer_for_an_operation_that_is_not_there_is_stale(store):
    """A row that vanished is not written to, and no row is made for it."""
    first = claim()
    reply = Claimed(at=1.0, head=b"h" * 32)
    assert store.write(settle(first, reply)) == Stale()
    assert store.operations(limit=9) == []


def test_two_answers_for_one_claim_leave_one_on_record(store):
    """Compare and set: of two different answers one is written, the other is stale."""
    first = claim()
    reply = store.write(first)
    said = [settle(first, reply, evidence(finding)) for finding in (Finding.SUCCEEDED, Finding.REJECTED)]
    replies = [None, None]

    def run(i):
        replies[i] = store.write(said[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(type(r).__name__ for r in replies) == ["Settled", "Stale"]
    assert len(store.load(first.id).events) == 2


def test_a_rule_decides_from_the_whole_history_by_the_stores_clock(store):
    """It is run on what stands there, once, and what it decides is answered as it stands afterwards."""
    first = claim()
    at = store.write(first).at
    seen = []

    def rule(history, now):
        seen.append((history, now))
        event = NewEvent(kind=EventKind.DECIDED, record=b"{}", body=b"b")
        return Amendment(operation=msgspec.structs.replace(history.operation, owner="other"), events=(event, event))

    before = store.load(first.id)
    reply = store.write(Amend(operation=first.id, rule=rule))
    ((history, now),) = seen
    assert history.read is not None
    assert msgspec.structs.replace(history, read=None) == before
    assert now >= at
    assert isinstance(reply, Amended)
    assert reply.history == store.load(first.id)
    assert (reply.history.operation.owner, reply.history.operation.seq) == ("other", 3)
    assert [event.kind for event in reply.history.events] == ["begun", "decided", "decided"]


def test_what_a_rule_declines_is_answered_with_what_it_saw(store):
    """Nothing is written, the reasons come back, and the history they were given on."""
    first = claim()
    store.write(first)
    reply = store.write(Amend(operation=first.id, rule=lambda _history, _now: Declined(because=("no",))))
    assert reply == Declined(because=("no",), history=store.load(first.id))


def test_the_same_evidence_twice_is_one_piece(store):
    """An observation whose first acknowledgement was lost adds nothing the second time."""
    first = claim()
    store.write(first)
    assert isinstance(store.write(late(first.id)), Amended)
    assert isinstance(store.write(late(first.id)), Declined)
    assert len(store.load(first.id).events) == 2


@pytest.mark.parametrize("operation", ["", "op_", "op_zz", "OP_" + "0" * 32, "op_" + "0" * 32, "op_" + "é" * 32])
def test_evidence_for_an_unknown_operation_is_refused(store, operation):
    """An id that is none, or nobody's, is named in the error."""
    with pytest.raises(NoSuchOperation, match="no operation"):
        store.write(late(operation))
    with pytest.raises(NoSuchOperation):
        store.load(operation)


def test_an_id_is_compared_whole(store):
    """The row number alone finds nothing: another operation's id with the same number is unknown."""
    first = claim()
    store.write(first)
    other = first.id[:-1] + ("0" if first.id[-1] != "0" else "1")
    with pytest.raises(NoSuchOperation):
        store.write(late(other))
    with pytest.raises(NoSuchOperation):
        store.load(other)


def test_an_operation_has_an_end_of_events(store):
    """More events than its row numbers can count is a broken invariant, and nothing of them is written."""
    first = claim()
    store.write(first)
    event = NewEvent(kind=EventKind.DECIDED, record=b"{}")

    def rule(history, now):
        return Amendment(operation=history.operation, events=(event,) * SEQ_MAX)

    with pytest.raises(InvariantBroken, match="more than"):
        store.write(Amend(operation=first.id, rule=rule))
    assert len(store.load(first.id).events) == 1


def test_late_evidence_reopens_what_was_settled(store):
    """A success after a proven rejection is kept beside it: a discrepancy, and unresolved again."""
    first = claim(effect="e")
    store.write(settle(first, store.write(first), evidence(Finding.REJECTED)))
    reply = store.write(late(first.id))
    assert reply.history.operation.discrepancy is Discrepancy.OPEN
    assert [o.id for o in store.unresolved()] == [first.id]


@pytest.mark.parametrize("size", [0, 1, 2_032, 2_033, 2_048, 2_049, 70_000])
def test_a_body_of_any_size_comes_back_whole(store, size):
    """Small bodies stand in the event, large ones apart: the reader cannot tell."""
    body = bytes(i % 251 for i in range(size))
    first = claim(body=body)
    store.write(settle(first, store.write(first), body=body))
    store.write(observe(first.id, evidence(source=Source.LOOK), body=body))
    assert [event.body for event in store.load(first.id).events] == [body, body, body]


def test_no_body_stays_none(store):
    """An answer that kept nothing reads as nothing, not as empty."""
    first = claim()
    store.write(settle(first, store.write(first), body=None))
    assert store.load(first.id).events[1].body is None


class Stepping:
    """A clock that is set back after a while, as clocks are."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def __call__(self):
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def test_the_stores_clock_never_goes_back(make_store):
    """A host clock that is set back shortens no deadline: time goes on from where it was."""
    store = make_store(clock=Stepping(2_000_000_000.0, 1_000_000_000.0, 2_000_000_001.0))
    first, stepped, after = (store.now() for _ in range(3))
    assert (first, after) == (2_000_000_000.0, 2_000_000_001.0)
    assert first <= stepped < first + 1.0  # it goes on from where it was, by the time that passes


def test_the_stores_clock_does_not_go_back_over_a_restart(make_store):
    """What is unresolved was last written at a time that a reopened store starts from, however old its row is."""
    ahead = make_store(clock=Stepping(2_000_000_000.0))
    old, new = claim(), claim()
    ahead.write(old)
    ahead.write(new)
    later = make_store(clock=Stepping(2_000_000_500.0))
    later.write(note(old.id, "seen later than the newest operation"))
    now = make_store(clock=Stepping(1_000_000_000.0)).now()
    assert 2_000_000_500.0 <= now < 2_000_000_501.0


def test_no_rule_sees_a_time_before_the_history_it_judges(make_store):
    """A second process whose clock is behind reads the operation's own last time instead."""
    ahead, behind = make_store(clock=Stepping(2_000_000_100.0)), make_store(clock=Stepping(2_000_000_000.0))
    first = claim()
    ahead.write(first)
    reply = behind.write(note(first.id, "seen"))
    assert faults(reply.history) == []
    assert reply.history.events[1].at == 2_000_000_100.0


def broken(history, now):
    """A rule with a defect."""
    raise ZeroDivisionError


FAILING = {
    "ZeroDivisionError": lambda operation: Amend(operation=operation, rule=broken),
    "NoSuchOperation": lambda operation: late("op_" + "0" * 32),
    "StoreUnsafe": lambda operation: claim(value=float("nan")),
}


@pytest.mark.parametrize("failing", [[name] for name in FAILING] + [list(FAILING)], ids=["rule", "id", "row", "all"])
def test_a_failing_command_harms_no_mate_of_its_batch(store, failing):
    """A rule with a defect, an id that is nobody's and an impossible row fail alone; the rest is durable."""
    good = [claim() for _ in range(20)]
    store.write(good[0])
    bad = [FAILING[name](good[0].id) for name in failing]
    replies = _together(store, [*good[1:], *bad, note(good[0].id, "a good one among them")])
    assert [type(r).__name__ for r in replies] == ["Claimed"] * 19 + failing + ["Amended"]
    assert len(store.unresolved()) == 20


def _together(store, commands):
    """Let all of them queue while one leads, so that they share a transaction."""
    replies = [None] * len(commands)
    leading, go = threading.Event(), threading.Event()
    first = claim()
    store.write(first)

    def hold_the_lead(history, now):
        leading.set()
        go.wait(20)
        return Declined(because=("only to lead",))

    def run(i):
        try:
            replies[i] = store.write(commands[i])
        except Exception as error:  # noqa: BLE001 - an answer like another
            replies[i] = error

    leader = threading.Thread(target=store.write, args=(Amend(operation=first.id, rule=hold_the_lead),))
    leader.start()
    assert leading.wait(20)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(commands))]
    for thread in threads:
        thread.start()
    go.set()
    for thread in [leader, *threads]:
        thread.join()
    store.write(settle_first(store, first))
    return replies


def settle_first(store, first):
    """Take the leader's own operation out of the count."""
    return observe(first.id, evidence())


def test_a_record_is_stored_as_it_was_encoded(store):
    """The hashed bytes come back byte for byte."""
    first = claim()
    store.write(first)
    said = evidence(facts={"ü": [1.5, None, "\u2028"]})
    store.write(observe(first.id, said))
    assert store.load(first.id).events[1].record == encode(said)
