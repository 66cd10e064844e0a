"""Verification: an honest history has nothing wrong with it, and each edit and each forbidden decision is named."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import canonical, looking, rules
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amendment
from counterfoil.domain.event import Begun, Decided, Event, EventKind, History, Intended, Noted, chain, encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.identifier import number, operation_id
from counterfoil.domain.intent import print_prefix
from counterfoil.domain.operation import Operation
from counterfoil.domain.payload import content, salted_digest, seal
from counterfoil.domain.retry import CLASS_OF
from counterfoil.domain.steady import Steady
from counterfoil.domain.violation import Law
from counterfoil.domain.words import AttemptClass, Basis, Coverage, Discrepancy, Finding, Outcome, Source

T0 = 1_800_000_000.0
N = number(T0, 7)
ID = operation_id(N, bytes(10))
BODY = seal(bytes(16), b'{"order":"o-1"}')
OTHER_BODY = seal(bytes(16), b'{"order":"o-2"}')
KEY, LOOKUP, PLAIN = contracts.load("lab.key"), contracts.load("lab.lookup"), contracts.load("function.plain")
ASSUMED = {"longest_delivery": {"seconds": 20.0, "by": "platform", "why": "the gateway gives up then"}}
PRINT = canonical.fingerprint(print_prefix("acct", "") + content(BODY) + b"]")

ASKED = Intended(
    tenant="shop", actor="agent:a", action="refund", key="o-1", account="acct", fingerprint=PRINT, effect="ef1:e",
    owner="payments", value=1.0,
)  # fmt: skip


def begun(which=1, **changes):
    """The record of a claim; a first one names its payload's digest."""
    made = Begun(
        attempt=Attempt(number=which, token=f"w.{which}", worker="w", send_seconds=10.0), provider_key=ID,
        contract="ct1:x", contract_id="lab.lookup", payload_digest=salted_digest(BODY) if which == 1 else "",
        intent=ASKED if which == 1 else None,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def further(basis, attempt_class=AttemptClass.FIRST, *, token="w.2", **changes):
    """The record of a second claim on a basis."""
    again = Attempt(number=2, token=token, worker="w", send_seconds=10.0, attempt_class=attempt_class)
    return begun(2, attempt=again, basis=basis, because=("it says so",), **changes)


def said(finding, source=Source.ANSWER, **changes):
    """One piece of evidence on attempt 1, quiesced, by a rule, naming the effect where it took place."""
    effect = "refund" if finding in (Finding.SUCCEEDED, Finding.ACCEPTED) else ""
    made = {"attempt": 1, "rule": "answers[0]", "effect": effect, "quiesced": source is not Source.LOOK, **changes}
    return Evidence(source=source, finding=finding, **made)


SILENCE = said(Finding.UNKNOWN, Source.TRANSPORT, rule="")
NOT_SENT = said(Finding.NOT_SENT, Source.TRANSPORT, rule="")
FOUND = said(Finding.SUCCEEDED, Source.LOOK, rule="looks[0].found", coverage=Coverage.OPERATION)
ABSENT = said(Finding.ABSENT, Source.LOOK, rule="looks[0].absent", coverage=Coverage.OPERATION)
PAID = Noted(note="look", facts={"used": 1, "of": 5})
KINDS = {Begun: EventKind.BEGUN, Evidence: EventKind.OBSERVED, Decided: EventKind.DECIDED, Noted: EventKind.LOOKING}


def chained(operation, events):
    """The same events, numbered and hashed anew: what whoever recomputes the chain would leave."""
    made, head = [], b""
    for seq, event in enumerate(events, start=1):
        head = chain(head, operation.id, seq, event.kind.value, event.at, event.record)
        made.append(msgspec.structs.replace(event, n=operation.n, seq=seq, hash=head))
    return History(operation=msgspec.structs.replace(operation, seq=len(made)), events=tuple(made))


def event(record, at=0.0, *, kind=None, body=None):
    """One event, not chained yet."""
    kind = kind or KINDS[type(record)]
    return Event(n=N, seq=0, kind=kind, at=T0 + at, record=encode(record), body=body, hash=b"")


def forged(*entries):
    """A well-chained history of arbitrary records, one a second unless a pair says when."""
    timed = [(e if isinstance(e, tuple) else (e, float(i))) for i, e in enumerate(entries)]
    events = [x if isinstance(x, Event) else event(x, at) for x, at in timed]
    return chained(OPERATION, events)


OPERATION = Operation(
    n=N, id=ID, tenant="shop", actor="agent:a", action="refund", key="o-1", account="acct", fingerprint=PRINT,
    effect="ef1:e", owner="payments", value=1.0, created_at=T0, dispatch="started", attempts=1, exposure=1,
    unresolved=1, step="recover", due_at=T0 + 10, worker="w", deadline=T0 + 10, updated_at=T0, seq=1,
)  # fmt: skip
CLAIMED = chained(
    msgspec.structs.replace(OPERATION, dispatch=rules.Dispatch.STARTED), [event(begun(assumptions=ASSUMED), body=BODY)]
)
"""What a first claim leaves behind."""


def follow(history, *steps):
    """Let the house's own rules write, one a minute, as the store would."""
    for step in steps:
        now = history.events[-1].at + 60
        decided = step(history, now)
        assert isinstance(decided, Amendment), decided
        new = [Event(n=N, seq=0, at=now, hash=b"", kind=e.kind, record=e.record, body=e.body) for e in decided.events]
        history = chained(msgspec.structs.replace(decided.operation, updated_at=now), [*history.events, *new])
    return history


def observe(evidence, contract=LOOKUP, body=None):
    """The rule that records evidence."""
    digest = {"body_digest": salted_digest(body)} if body else {}
    return rules.observe(evidence, encode(msgspec.structs.replace(evidence, **digest)), body, contract)


def again(basis, contract=LOOKUP, **changes):
    """The rule that claims a further attempt."""
    record = begun(2, attempt=Attempt(number=2, token="w.2", worker="w2", send_seconds=10.0), **changes)
    return rules.claim_again(record, contract, longest_delivery=20.0, automatic=False, basis=basis)


def decide(decision):
    """A person's decision, recorded beside an unchanged operation."""

    def rule(history, _now):
        said = Decided(decision=decision, by="user:mara", reason="asked", seen_seq=history.operation.seq)
        return Amendment(
            operation=history.operation, events=(rules.NewEvent(kind=EventKind.DECIDED, record=encode(said)),)
        )

    return rule


look = looking.pay_look(LOOKUP, 0, asked=True, by="w")
SECOND = said(Finding.SUCCEEDED, attempt=2)
UNKNOWN = follow(CLAIMED, observe(SILENCE))
HELD = chained(
    msgspec.structs.replace(
        OPERATION, dispatch=rules.Dispatch.NOT_STARTED, outcome=Outcome.UNOBSERVED, attempts=0, exposure=0,
        unresolved=0, step="call", due_at=0.0, worker="", deadline=0.0, held_by="op_other",
    ),
    [
        event(
            Noted(
                note="held by op_other",
                facts={"provider_key": ID, "payload_digest": salted_digest(BODY), "intent": msgspec.to_builtins(ASKED)},
            ),
            kind=EventKind.HELD, body=BODY,
        )
    ],
)  # fmt: skip

HONEST = {
    "claimed": CLAIMED,
    "unknown": UNKNOWN,
    "held": HELD,
    "succeeded": follow(CLAIMED, observe(said(Finding.SUCCEEDED), body=OTHER_BODY)),
    "rejected": follow(CLAIMED, observe(said(Finding.REJECTED))),
    "accepted": follow(CLAIMED, observe(said(Finding.ACCEPTED))),
    "withdrawn": follow(CLAIMED, rules.withdraw(NOT_SENT, encode(NOT_SENT), None)),
    "found": follow(UNKNOWN, look, observe(FOUND)),
    "not found": follow(UNKNOWN, look, observe(said(Finding.UNKNOWN, Source.LOOK))),
    "absent": follow(UNKNOWN, look, observe(ABSENT)),
    "operator": follow(UNKNOWN, observe(said(Finding.SUCCEEDED, Source.OPERATOR, effect=""), body=OTHER_BODY)),
    "held, then sent": follow(HELD, again(None), observe(said(Finding.SUCCEEDED))),
    "sent after not_sent": follow(CLAIMED, observe(NOT_SENT), again(Basis.NOT_SENT), observe(SECOND)),
    "sent after absence": follow(UNKNOWN, look, observe(ABSENT), again(Basis.ABSENCE_PROVEN), observe(SECOND)),
    "sent after a rejection": follow(
        CLAIMED, observe(said(Finding.REJECTED)), again(Basis.REJECTED_WITHOUT_EFFECT), observe(SECOND)
    ),
    "replayed": follow(
        UNKNOWN, again(Basis.SAME_KEY_REPLAY, KEY, key_valid_seconds=86_400.0), observe(SECOND, KEY)
    ),
    "overridden": follow(UNKNOWN, decide("override"), again(Basis.OPERATOR_OVERRIDE)),
    # No caller is waited for where an override turns out to have been needless: that would be a release's.
    "overridden, and never sent": follow(UNKNOWN, decide("override"), observe(NOT_SENT)),
    "contradicted": follow(
        CLAIMED, observe(said(Finding.SUCCEEDED)), observe(said(Finding.REJECTED, Source.LATE_ANSWER))
    ),
    "duplicate": follow(UNKNOWN, look, observe(msgspec.structs.replace(FOUND, contradicts=True))),
    "repeated": follow(CLAIMED, rules.repeated(OTHER_BODY)),
    "erased": History(
        operation=CLAIMED.operation, events=tuple(msgspec.structs.replace(e, body=None) for e in CLAIMED.events)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_the_rules_wrote_is_whole(name):
    """Nothing is wrong with any history that the house's own rules wrote, its bodies erased or not."""
    assert audit(HONEST[name]) == ()


def laws(history):
    """Which laws are broken at which events."""
    return {(v.law, v.seq) for v in audit(history)}


def wrong(history, law, words, *, seq):
    """Say whether exactly this is wrong at an event, whatever the columns are."""
    found = [v for v in audit(history) if v.law is not Law.PROJECTION]
    return [(v.law, v.seq) for v in found] == [(law, seq)] and words in found[0].problem


# -- edits without recomputation ---------------------------------------------------------------------------------------

LONG = HONEST["sent after not_sent"]


def replaced(history, index, **changes):
    """The history with one event changed in place."""
    events = list(history.events)
    events[index] = msgspec.structs.replace(events[index], **changes)
    return History(operation=history.operation, events=tuple(events))


def without(history, *indexes):
    """The history with events deleted."""
    kept = tuple(e for i, e in enumerate(history.events) if i not in indexes)
    return History(operation=history.operation, events=kept)


@pytest.mark.parametrize(
    "changes",
    [
        {"record": encode(said(Finding.SUCCEEDED))},
        {"at": LONG.events[1].at + 1},
        {"hash": bytes(32)},
        {"record": LONG.events[1].record + b" "},
    ],
    ids=["record", "time", "hash", "one space"],
)
def test_an_edited_event_is_named(changes):
    """Whatever is changed of an event, its own hash does not cover it any more."""
    assert (Law.CHAIN, 2) in laws(replaced(LONG, 1, **changes))


def test_a_deleted_event_is_named():
    """The event after the gap stands where another belongs."""
    assert (Law.SEQUENCE, 3) in laws(without(LONG, 1))


def test_a_deleted_tail_is_named():
    """The operation's row names more events than there are."""
    assert (Law.SEQUENCE, 4) in laws(without(LONG, 3))


def test_deleting_everything_is_named():
    """An operation without events names events that are not there."""
    assert (Law.SEQUENCE, 1) in laws(without(LONG, 0, 1, 2, 3))
    never = msgspec.structs.replace(without(LONG, 0, 1, 2, 3).operation, seq=0)
    assert (Law.SEQUENCE, 1) in laws(History(operation=never, events=()))


def test_an_inserted_event_is_named():
    """An event that nobody's hash covers stands behind the last that the row names, or in the place of another."""
    extra = msgspec.structs.replace(LONG.events[1], seq=5)
    assert (Law.CHAIN, 5) in laws(History(operation=LONG.operation, events=(*LONG.events, extra)))
    twice = (LONG.events[0], LONG.events[0], *LONG.events[1:])
    assert (Law.SEQUENCE, 1) in laws(History(operation=LONG.operation, events=twice))


def test_two_swapped_events_are_named():
    """Each of the two covers an event that is not before it any more."""
    first, second, third, fourth = LONG.events
    swapped = (
        first,
        msgspec.structs.replace(third, seq=2),
        msgspec.structs.replace(second, seq=3),
        fourth,
    )
    assert {(Law.CHAIN, 2), (Law.CHAIN, 3)} <= laws(History(operation=LONG.operation, events=swapped))


def test_an_event_of_another_operation_is_named():
    """An event belongs to the row its number says."""
    assert (Law.SEQUENCE, 2) in laws(replaced(LONG, 1, n=N + 1))


def test_an_id_of_another_row_is_named():
    """An operation's id holds its row number."""
    other = msgspec.structs.replace(CLAIMED.operation, n=N + 1)
    assert (Law.IDENTITY, 0) in laws(History(operation=other, events=CLAIMED.events))


@pytest.mark.parametrize("body", [OTHER_BODY, b"", BODY[:-1]])
def test_another_body_is_named(body):
    """A body that is there is the one whose salted digest is on record."""
    assert wrong(replaced(CLAIMED, 0, body=body), Law.BODY, "salted digest", seq=1)


def test_a_body_nobody_recorded_is_named():
    """A record that names no body has none."""
    assert wrong(replaced(UNKNOWN, 1, body=BODY), Law.BODY, "names none", seq=2)
    decided = follow(CLAIMED, decide("assign"))
    assert wrong(replaced(decided, 1, body=BODY), Law.BODY, "names none", seq=2)


COLUMNS = {
    "permission": "denied",
    "dispatch": "not_started",
    "outcome": "unknown",
    "disposition": "abandoned",
    "discrepancy": Discrepancy.OPEN,
    "attempts": 1,
    "exposure": 3,
    "unresolved": 1,
    "settled_by": "succeeded:look",
    "held_by": "op_other",
    "looks": 2,
    "worker": "another",
    "deadline": T0,
    "created_at": T0 - 1,
    "updated_at": T0 - 1,
    "step": "look",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_an_edited_column_is_named(column):
    """The columns are the fold of the events: an edit of any is found, and says what it should be."""
    edited = msgspec.structs.replace(LONG.operation, **{column: COLUMNS[column]})
    found = audit(History(operation=edited, events=LONG.events))
    assert {v.law for v in found} == {Law.PROJECTION}
    assert any(column in v.problem for v in found)


def test_an_unresolved_operation_owes_a_step():
    """What is unresolved has a next step on record."""
    silent = msgspec.structs.replace(UNKNOWN.operation, step="")
    assert laws(History(operation=silent, events=UNKNOWN.events)) == {(Law.PROJECTION, 0)}


def test_a_slot_of_a_hold_is_no_edit():
    """In which slot it holds its effect is decided by what else is unresolved, not by its own events."""
    moved = msgspec.structs.replace(UNKNOWN.operation, unresolved=2)
    assert audit(History(operation=moved, events=UNKNOWN.events)) == ()


def test_a_note_about_another_operation_is_no_news():
    """What is noted of another operation moves no column of this one."""
    note = event(Noted(note="reopened", facts={"operation": "op_other"}), 600, kind=EventKind.NOTED)
    assert audit(chained(UNKNOWN.operation, [*UNKNOWN.events, note])) == ()


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"attempt":1}'])
def test_an_unreadable_record_is_named(record):
    """A record that cannot be read as its kind is named, and nothing is concluded from what follows."""
    events = [UNKNOWN.events[0], msgspec.structs.replace(UNKNOWN.events[1], record=record)]
    assert laws(chained(UNKNOWN.operation, events)) == {(Law.RECORD, 2)}


# -- decisions that were not permitted ---------------------------------------------------------------------------------

CLASS = {
    Basis.NOT_SENT: AttemptClass.AFTER_NOT_SENT,
    Basis.SAME_KEY_REPLAY: AttemptClass.SAME_KEY,
    Basis.ABSENCE_PROVEN: AttemptClass.AFTER_ABSENCE,
    Basis.REJECTED_WITHOUT_EFFECT: AttemptClass.OVERRIDE,
    Basis.OPERATOR_OVERRIDE: AttemptClass.OVERRIDE,
}
REJECTED = said(Finding.REJECTED)
LATE = 3600.0
DETACHED = said(Finding.UNKNOWN, Source.TRANSPORT, rule="", quiesced=False)


def on(basis, **changes):
    """A second claim on a basis, of the class that basis gives."""
    return further(basis.value, CLASS[basis], **changes)


def decided(decision, *, seen):
    """What a person decided, seeing that event last."""
    return Decided(decision=decision, by="user:mara", reason="asked", seen_seq=seen)


def authority(history, seq):
    """What was wrong about somebody's word, at one event."""
    return [v.problem for v in audit(history) if (v.law, v.seq) == (Law.AUTHORITY, seq)]


@pytest.mark.parametrize("decision", ["deny", "revoke", "expire"])
def test_no_dispatch_without_authority(decision):
    """An attempt that was claimed after permission had gone is named; an answer to no question brings none back."""
    gone, approved = decided(decision, seen=2), decided("approve", seen=3)
    history = forged(begun(), NOT_SENT, gone, on(Basis.NOT_SENT))
    assert any("while permission was" in said for said in authority(history, 4))
    answered = forged(begun(), NOT_SENT, gone, approved, on(Basis.NOT_SENT))
    assert authority(answered, 4) == ["it answers yes where nobody was asked"]
    assert any("while permission was" in said for said in authority(answered, 5))


def test_a_disposition_is_a_decision():
    """Abandoning and closing move the disposition and nothing else."""
    history = forged(begun(), SILENCE, Decided(decision="abandon", by="x"))
    assert any("disposition is 'open'" in v.problem for v in audit(history))


@pytest.mark.parametrize("basis", ["", "because", "first"])
def test_no_second_attempt_without_a_basis(basis):
    """A further attempt names one of the bases."""
    assert wrong(forged(begun(), NOT_SENT, further(basis)), Law.BASIS, "without a recorded basis", seq=3)


def test_a_first_attempt_has_no_basis():
    """What comes first follows nothing."""
    assert wrong(forged(begun(basis="not_sent")), Law.BASIS, "a first attempt", seq=1)


def test_a_basis_gives_its_own_class():
    """An approval is asked for the class of attempt that the basis gives."""
    history = forged(begun(), NOT_SENT, further("not_sent", AttemptClass.SAME_KEY))
    assert wrong(history, Law.BASIS, "does not allow class same_key", seq=3)


@pytest.mark.parametrize(
    ("before", "basis", "why"),
    [
        ([SILENCE], Basis.NOT_SENT, "may have left"),
        ([REJECTED], Basis.NOT_SENT, "may have left"),
        ([], Basis.NOT_SENT, "may have left"),
        ([SILENCE], Basis.REJECTED_WITHOUT_EFFECT, "not every attempt was rejected"),
        ([NOT_SENT], Basis.REJECTED_WITHOUT_EFFECT, "not every attempt was rejected"),
        ([SILENCE], Basis.ABSENCE_PROVEN, "absence was not proven"),
        ([REJECTED], Basis.ABSENCE_PROVEN, "absence was not proven"),
        ([said(Finding.SUCCEEDED)], Basis.NOT_SENT, "taken place"),
        ([said(Finding.ACCEPTED)], Basis.SAME_KEY_REPLAY, "taken place"),
        ([SILENCE], Basis.OPERATOR_OVERRIDE, "no override"),
        ([msgspec.structs.replace(SILENCE, contradicts=True)], Basis.SAME_KEY_REPLAY, "contradicted"),
    ],
)
def test_a_basis_that_did_not_hold_is_named(before, basis, why):
    """Every basis is judged again by what was known when it was taken."""
    assert wrong(forged(begun(), *before, on(basis)), Law.BASIS, why, seq=len(before) + 2)


def test_a_replay_keeps_to_its_key():
    """A replay is made while the key surely protects, and with every earlier worker stopped."""
    valid = {"key_valid_seconds": 100.0}
    assert wrong(forged(begun(), SILENCE, (on(Basis.SAME_KEY_REPLAY, **valid), 101.0)), Law.BASIS, "had ended", seq=3)
    running = forged(begun(), DETACHED, on(Basis.SAME_KEY_REPLAY, **valid))
    assert wrong(running, Law.BASIS, "could still write", seq=3)
    flying = forged(begun(), on(Basis.SAME_KEY_REPLAY))
    assert wrong(flying, Law.BASIS, "nobody had reported", seq=2)
    eternal = forged(begun(), DETACHED, (on(Basis.SAME_KEY_REPLAY), LATE))
    assert laws(eternal) <= {(Law.PROJECTION, 0)}


def test_one_override_is_one_attempt():
    """A decision to override is used up by the attempt it allowed."""
    override = decided("override", seen=2)
    third = msgspec.structs.replace(
        on(Basis.OPERATOR_OVERRIDE),
        attempt=Attempt(number=3, token="w.3", worker="w", send_seconds=10.0, attempt_class=AttemptClass.OVERRIDE),
    )
    history = forged(begun(), SILENCE, override, on(Basis.OPERATOR_OVERRIDE), third)
    assert wrong(history, Law.BASIS, "no override", seq=5)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"token": "w.1"}, "token of an earlier attempt"),
        ({"provider_key": "another"}, "another provider key"),
    ],
)
def test_a_further_attempt_is_its_own_and_under_the_same_key(changes, why):
    """No token is used twice, and every attempt carries the operation's provider key."""
    assert wrong(forged(begun(), NOT_SENT, on(Basis.NOT_SENT, **changes)), Law.BASIS, why, seq=3)


def test_attempts_are_numbered_densely():
    """An attempt's number is one more than the attempts before it."""
    assert (Law.BASIS, 1) in laws(forged(begun(2, payload_digest="sd1:x")))


def test_what_was_sent_is_on_record():
    """The first record of an operation, sent or held, names its payload's digest."""
    assert wrong(forged(begun(payload_digest="")), Law.BODY, "what was sent", seq=1)
    asked = {"intent": msgspec.to_builtins(ASKED)}
    held = event(Noted(note="held by op_other", facts=asked), kind=EventKind.HELD)
    assert wrong(forged((held, 0.0)), Law.BODY, "what was asked", seq=1)


# -- findings that nothing establishes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (said(Finding.SUCCEEDED, Source.TRANSPORT), "the wire does not say"),
        (said(Finding.REJECTED, Source.TRANSPORT), "the wire does not say"),
        (said(Finding.ACCEPTED, Source.TRANSPORT), "the wire does not say"),
        (said(Finding.SUCCEEDED, rule=""), "no rule"),
        (said(Finding.REJECTED, rule=""), "no rule"),
        (said(Finding.SUCCEEDED, effect=""), "names no effect"),
        (said(Finding.NOT_SENT, Source.LOOK), "nothing was sent"),
        (said(Finding.SUCCEEDED, Source.OPERATOR), "nothing that was seen"),
        (said(Finding.ABSENT), "only a look"),
        (said(Finding.SUCCEEDED, attempt=2), "attempt 2 of 1"),
        (said(Finding.SUCCEEDED, attempt=0), "attempt 0 of 1"),
    ],
)
def test_a_finding_needs_a_source_that_can_establish_it(evidence, why):
    """Who says that something happened, or did not, is a provider, a look or a person, under a rule."""
    assert wrong(forged(begun(), evidence), Law.EVIDENCE, why, seq=2)


def test_evidence_needs_an_attempt_to_speak_of():
    """Nothing is observed before anything was attempted."""
    history = chained(HELD.operation, [*HELD.events, event(FOUND, 1.0)])
    assert wrong(history, Law.EVIDENCE, "attempt 1 of 0", seq=2)


@pytest.mark.parametrize(
    ("assumptions", "silence", "looked", "why"),
    [
        (ASSUMED, SILENCE, None, "only a look that was paid for"),
        ({}, SILENCE, LATE, "no longest_delivery"),
        ({"longest_delivery": 20.0}, SILENCE, LATE, "no longest_delivery"),
        ({"longest_delivery": {"seconds": True}}, SILENCE, LATE, "no longest_delivery"),
        (ASSUMED, DETACHED, LATE, "could still write"),
        (ASSUMED, SILENCE, 30.0, "too early"),
    ],
)
def test_absence_needs_every_condition(assumptions, silence, looked, why):
    """A negative settles only after a paid look, late enough, under a printed assumption, with every worker stopped."""
    paid = [] if looked is None else [(PAID, looked)]
    history = forged(begun(assumptions=assumptions), silence, *paid, (ABSENT, LATE + 1))
    assert wrong(history, Law.EVIDENCE, why, seq=len(history.events))
    assert (Law.EVIDENCE, 4) not in laws(forged(begun(assumptions=ASSUMED), SILENCE, (PAID, 30.1), (ABSENT, 31.0)))


@pytest.mark.parametrize(
    ("looks", "stands"),
    [
        ([(LATE, "here", 30.1)], True),
        ([(LATE, "here", 30.0)], False),  # the wall clock stepped: by the other it was too early
        ([(LATE, "there", 9e9)], False),  # another boot, and nothing of it before
        ([(LATE, "there", 9e9), (LATE + 1, "there", 9e9 + 30.1)], True),
        ([(30.0, "here", 30.1), (LATE, "here", 30.0)], False),  # no look was late enough by both
        ([(LATE, "here", 30.1), (LATE + 1, "there", 9e9)], True),  # whose look it was is not on record
        ([(LATE, None, None)], True),  # of a version that did not say
    ],
)
def test_absence_is_asked_of_the_clock_that_nobody_can_set(looks, stands):
    """A negative counts from a look that is late enough by the wall clock and by what surely elapsed."""
    paid = [(msgspec.structs.replace(PAID, steady=boot and Steady(boot, seconds)), at) for at, boot, seconds in looks]
    claim = begun(assumptions=ASSUMED, steady=Steady("here", 0.0))
    quiet = msgspec.structs.replace(SILENCE, steady=Steady("here", 1.0))
    history = forged(claim, quiet, *paid, (ABSENT, LATE + 2))
    assert ((Law.EVIDENCE, len(history.events)) not in laws(history)) is stands


@pytest.mark.parametrize(
    ("elapsed", "boot", "held"), [(100.0, "here", True), (100.1, "here", False), (1e9, "there", True)]
)
def test_a_replay_is_asked_of_the_clock_that_nobody_can_set(elapsed, boot, held):
    """A key that surely was older than it lives was no basis, whatever the wall clock said."""
    claim = begun(steady=Steady("here", 0.0), key_valid_seconds=100.0)
    replay = further(
        Basis.SAME_KEY_REPLAY, CLASS_OF[Basis.SAME_KEY_REPLAY], key_valid_seconds=100.0, steady=Steady(boot, elapsed)
    )  # fmt: skip
    assert ((Law.BASIS, 3) not in laws(forged(claim, SILENCE, replay))) is held


@pytest.mark.parametrize("column", [name for name in Intended.__struct_fields__ if name in Operation.__struct_fields__])
def test_an_edited_intent_is_found(column):
    """Whoever edits what was asked in the operation's row is found out by its first record."""
    value = 2.0 if column == "value" else "another"
    for honest in (CLAIMED, HELD):
        edited = msgspec.structs.replace(honest, operation=msgspec.structs.replace(honest.operation, **{column: value}))
        found = [v for v in audit(edited) if v.law is Law.IDENTITY]
        assert [v.problem for v in found] == [f"the row's {column} is not what was asked"]


def test_a_first_record_says_what_was_asked():
    """A claim or a proposal without its intent proves nothing of the columns."""
    assert wrong(forged(begun(intent=None)), Law.IDENTITY, "what was asked", seq=1)
    silent = event(Noted(note="held", facts={"payload_digest": salted_digest(BODY)}), kind=EventKind.HELD, body=BODY)
    assert (Law.IDENTITY, 1) in laws(forged(silent))


def test_a_discrepancy_is_settled_by_a_person_alone():
    """An operator's finding that settles ends it on the row too; the same word from a provider does not."""
    denied = said(Finding.REJECTED, Source.LATE_ANSWER)
    done = said(Finding.SUCCEEDED)
    for source, after in ((Source.OPERATOR, "'settled'"), (Source.WEBHOOK, "'open'")):
        last = said(Finding.SUCCEEDED, source, settles=True, body_digest="sd1:x")
        found = [f.problem for f in audit(forged(begun(), done, denied, last)) if f.law is Law.PROJECTION]
        assert f"discrepancy is 'none' and its events say {after}" in found
