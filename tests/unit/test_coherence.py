"""Coherence: what an edit with a chain made anew leaves behind, in what the records say of one another."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import approved
from tests.crash.keeping import removed, settled, whole
from tests.crash.stepping import NOON, action, claimed, observed, order, printed, ruled

from counterfoil.domain.audit import audit
from counterfoil.domain.canonical import canonical, fingerprint
from counterfoil.domain.command import Amendment, NewEvent
from counterfoil.domain.event import EventKind, Noted, begun_of, chain, encode
from counterfoil.domain.intent import material_of, print_prefix
from counterfoil.domain.payload import salted_digest
from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Finding, Source

SETTLED = settled()
SALT = b"s" * 16


def rewritten(history, seq, *, body=None, at=None, first=None, columns=None):
    """The history with one event changed and every hash after it made anew, as one would who knows how it is made.

    Args:
        history: whole.
        seq: which event.
        body: another one, whose digest goes on record too.
        at: another moment.
        first: changes the record.
        columns: of the row.
    """
    events, head = [], b""
    for stood in history.events:
        event = stood
        if stood.seq == seq:
            event = msgspec.structs.replace(
                stood, record=(first or bytes)(stood.record), at=stood.at if at is None else at
            )
            if body is not None:
                begun = msgspec.structs.replace(begun_of(event), payload_digest=salted_digest(body))
                event = msgspec.structs.replace(event, record=encode(begun), body=body)
        head = chain(head, history.operation.id, event.seq, event.kind.value, event.at, event.record)
        events.append(msgspec.structs.replace(event, hash=head))
    operation = msgspec.structs.replace(history.operation, **(columns or {}))
    return msgspec.structs.replace(history, operation=operation, events=tuple(events))


def said(history):
    """What is wrong, by event, law and words."""
    return [(found.seq, found.law.value, found.problem) for found in audit(history)]


def begun_as(**changes):
    """Change a claim's record."""
    return lambda record: encode(msgspec.structs.replace(msgspec.json.decode(record, type=type(CLAIM)), **changes))


CLAIM = begun_of(SETTLED.events[0])


def test_what_the_rules_wrote_is_coherent():
    """Settled, unknown, approved and removed: nothing is wrong with any of them."""
    unknown = whole(observed(claimed(), Finding.UNKNOWN, source=Source.TRANSPORT))
    for history in (SETTLED, unknown, whole(approved()), removed(SETTLED)):
        assert said(history) == []


def test_news_of_another_may_have_been_noted_by_a_clock_behind():
    """Older receipts have such notes; what follows them is asked again."""
    note = NewEvent(kind=EventKind.NOTED, record=encode(Noted(note="reopened", facts={"operation": "op_2"})))
    noted = whole(ruled(settled(), lambda history, _: Amendment(operation=history.operation, events=(note,))))
    behind = rewritten(noted, noted.operation.seq, at=NOON - 60.0)
    assert said(behind) == []


@pytest.mark.parametrize(
    "change",
    [{"body": SALT + b'{"amount":9000}'}, {"first": begun_as(destination="https://elsewhere.example")}],
    ids=["payload", "destination"],
)
def test_another_payload_or_destination_is_not_what_the_fingerprint_is_of(change):
    """Digest, record and chain are made anew; the fingerprint is still of what was asked."""
    wrong = "its fingerprint is not of the payload, account and destination on record"
    assert said(rewritten(SETTLED, 1, **change)) == [(1, "identity", wrong)]


@pytest.mark.parametrize("body", [b"not JSON", b'{"b":1,"a":{"$x":1}}'])
def test_a_payload_without_a_form_has_no_fingerprint(body):
    """With pointers it must be read: what cannot be is not what was asked."""
    intent = msgspec.structs.replace(CLAIM.intent, immaterial=("/note",))
    history = rewritten(SETTLED, 1, first=begun_as(intent=intent))
    assert [law for _, law, _ in said(rewritten(history, 1, body=SALT + body))] == ["identity"]


@pytest.mark.parametrize(
    ("material", "immaterial"), [((), ("/note",)), (("/amount",), ())], ids=["immaterial", "material"]
)
def test_a_receipt_says_what_its_fingerprint_leaves_out(material, immaterial):
    """Pointers stand in the chain, so that nobody needs the action to know what was compared."""
    payload = b'{"amount":10,"note":"x"}'
    made = order(action(material=material, immaterial=dict.fromkeys(immaterial, "free")), payload=payload)
    prefix = print_prefix(made.intent.account, made.intent.destination)
    print_ = fingerprint(prefix + material_of(payload, material, immaterial) + b"]")
    selected = msgspec.structs.replace(made, intent=msgspec.structs.replace(made.intent, fingerprint=print_))
    history = settled(made=selected)
    assert said(history) == []
    other = SALT + canonical({"amount": 10, "note": "another"})
    assert said(rewritten(history, 1, body=other)) == []  # that it may differ in
    assert said(rewritten(history, 1, body=SALT + b'{"amount":11,"note":"x"}')) != []


def test_what_was_erased_or_is_keyed_is_not_asked():
    """Nobody can make that fingerprint again: neither without the payload nor without the deployment's key."""
    bare = [msgspec.structs.replace(event, body=None) for event in SETTLED.events]
    assert said(msgspec.structs.replace(SETTLED, events=tuple(bare))) == []
    keyed = msgspec.structs.replace(CLAIM.intent, fingerprint="cf1h:" + "0" * 64)
    columns = {"fingerprint": keyed.fingerprint}
    assert said(rewritten(SETTLED, 1, first=begun_as(intent=keyed), columns=columns)) == []
    assert printed("a", "b", b"{}").startswith("cf1:")


def test_the_provider_knows_an_operation_by_its_own_id():
    """Under another key the same request could be another operation's."""
    wrong = rewritten(SETTLED, 1, first=begun_as(provider_key="op_other"))
    assert said(wrong) == [(1, "identity", "its provider key is not the operation's id")]


def test_time_does_not_run_backwards():
    """Whoever claimed says how it ended by their own clock; whatever else is written lies after what stands there."""
    behind = NOON - 60.0
    assert said(rewritten(SETTLED, 2, at=behind, columns={"updated_at": behind})) == []
    unknown = observed(claimed(), Finding.UNKNOWN, source=Source.TRANSPORT)
    late = whole(observed(unknown, Finding.SUCCEEDED, source=Source.LATE_ANSWER, at=NOON + 2, rule="a", effect="pay"))
    (wrong,) = said(rewritten(late, 3, at=behind, columns={"updated_at": behind}))
    assert wrong == (3, "sequence", "it lies 61.0 seconds before the event before it")


@pytest.mark.parametrize(
    ("boot", "seconds", "stands"), [("near", 500.0, True), ("near", -500.0, False), ("far", -500.0, True)]
)
def test_a_clock_that_nobody_can_set_does_not_run_backwards(boot, seconds, stands):
    """Along one boot; two boots say nothing of each other."""
    from tests.crash.stepping import ruled

    from counterfoil.domain.command import Amendment, NewEvent
    from counterfoil.domain.event import EventKind, Noted

    def paid(history, now):
        noted = Noted(note="look", facts={"look": 0}, steady=Steady(boot, seconds))
        operation = msgspec.structs.replace(history.operation, looks=1)
        return Amendment(operation=operation, events=(NewEvent(kind=EventKind.LOOKING, record=encode(noted)),))

    unknown = observed(claimed(), Finding.UNKNOWN, source=Source.TRANSPORT)
    history = whole(ruled(unknown, paid, NOON + 5))
    found = [(3, "sequence", "the clock that nobody can set reads less than at an event before it")]
    assert said(history) == ([] if stands else found)


def test_what_is_settled_is_due_when_people_said_so_or_never():
    """A due time that no decision and no question gives is found; an unresolved one is the contract's matter."""
    (wrong,) = said(rewritten(SETTLED, 0, columns={"due_at": NOON}))
    assert wrong[:2] == (0, "projection")
    assert wrong[2].startswith("due_at is ")
    history = whole(approved())
    assert said(rewritten(history, 0, columns={"due_at": history.operation.due_at + 1.0})) != []
