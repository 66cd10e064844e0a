"""Evidence that somebody hands in: matched by strong names, judged by the contract, kept once, overwriting nothing."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.integration.feeding import ACCOUNT, LAYOUT, MARA, Desk, csv, event

from counterfoil.domain.audit import audit
from counterfoil.domain.errors import BadValue, StoreBusy
from counterfoil.domain.event import EventKind, evidence_of
from counterfoil.domain.matching import Match
from counterfoil.domain.words import Discrepancy, Finding, Outcome, Source
from counterfoil.runtime.fed import ANOTHERS


@pytest.fixture
def desks(tmp_path):
    """Make desks with a ledger open on each; whatever was handed in to one must verify."""
    made = []

    def make(kind="lab.nothing", *fates):
        desk = Desk(tmp_path / f"d{len(made)}", kind, *fates)
        made.append(desk.open())
        return desk, made[-1]

    yield make
    for ledger in made:
        assert [found for history in ledger.store.histories() for found in audit(history)] == []
        ledger.close()


@pytest.fixture
def lost(desks):
    """A ledger with one operation whose answer was lost."""
    desk, ledger = desks("lab.nothing", "reply_lost")
    return ledger, desk.call(ledger)


def last(ledger, receipt):
    """The last observation of an operation."""
    return [evidence_of(e) for e in ledger.history(receipt.id).events if e.kind is EventKind.OBSERVED][-1]


def size(ledger, receipt):
    """How many events an operation has."""
    return len(ledger.history(receipt.id).events)


ANSWER = b'{"id":"ef_1","state":"done"}'


# -- late answers ----------------------------------------------------------------------------------------------------


def test_a_late_answer_is_judged_as_a_live_one(lost):
    """The contract settles the unknown by it; who handed it in is on record, and nothing says its sender is quiet."""
    ledger, receipt = lost
    (found,) = ledger.evidence.answer(ANSWER, status=201, key=receipt.id, **MARA).found
    assert (found.match, found.recorded, found.finding, found.outcome) == (
        Match.MATCHED, True, "succeeded", "succeeded",
    )  # fmt: skip
    said = last(ledger, receipt)
    assert (said.source, said.rule, said.by, said.why, said.quiesced) == (
        Source.LATE_ANSWER, "answers[0]", "user:mara", MARA["reason"], False,
    )  # fmt: skip
    assert ledger.get(receipt.id).expect() == {"id": "ef_1", "state": "done"}


def test_the_key_as_a_uuid_names_the_same_operation(lost):
    """A provider that takes nothing else shows the key in that form."""
    from counterfoil.domain.template import Names

    ledger, receipt = lost
    fed = ledger.evidence.answer(ANSWER, status=201, key=Names(provider_key=receipt.id).provider_uuid, **MARA)
    assert fed.found[0].operations == (receipt.id,)
    assert fed.settled


def test_what_no_rule_names_proves_nothing(lost):
    """A 500 is on record as unknown: it is accepted, and settles nothing."""
    ledger, receipt = lost
    fed = ledger.evidence.answer(b"oops", status=500, key=receipt.id, **MARA)
    assert (fed.found[0].finding, fed.found[0].recorded, fed.settled) == ("unknown", True, False)
    assert ledger.get(receipt.id).outcome is Outcome.UNKNOWN


def test_an_answer_that_denies_what_happened_opens_a_discrepancy(desks):
    """Proof that it happened stays; what denies it is kept beside it and given to its owner."""
    desk, ledger = desks()
    receipt = desk.call(ledger)
    (found,) = ledger.evidence.answer(b'{"error":"refused"}', status=422, key=receipt.id, **MARA).found
    assert (found.outcome, found.discrepancy, found.owner, found.unresolved) == (
        "succeeded", "open", "payments", True,
    )  # fmt: skip


def test_an_answer_for_another_account_is_a_candidate(lost):
    """Our key and somebody else's account: shown, never counted."""
    ledger, receipt = lost
    before = size(ledger, receipt)
    (found,) = ledger.evidence.answer(ANSWER, status=201, key=receipt.id, account="acct_other", **MARA).found
    assert (found.match, found.finding, found.compared["account"]) == (Match.CANDIDATE, "", "different")
    assert size(ledger, receipt) == before


def test_an_answer_that_names_nothing_is_refused(lost):
    """Account alone is no name."""
    with pytest.raises(BadValue, match="key or client reference"):
        lost[0].evidence.answer(ANSWER, status=201, **MARA)


def test_an_answer_to_an_attempt_there_was_not_is_not_kept(lost):
    """Attempt 2 of one is nobody's."""
    ledger, receipt = lost
    (found,) = ledger.evidence.answer(ANSWER, status=201, key=receipt.id, attempt=2, **MARA).found
    assert (found.match, found.because) == (Match.CANDIDATE, ("it had no such attempt",))


def test_a_rejection_of_one_attempt_settles_no_other(desks):
    """Two attempts, and an answer that does not say whose it is: it proves nothing until it does."""
    desk, ledger = desks("lab.nothing", "reply_lost")
    receipt = desk.call(ledger)
    for by in ("user:mara", "user:dana"):
        ledger.decisions.override(receipt.id, by=by, reason="the customer waits", how="test")
    ledger.attempt(receipt.id, basis="operator_override", by="user:mara", reason="decided")
    told = {"status": 422, "key": receipt.id, **MARA}
    (found,) = ledger.evidence.answer(b'{"error":"refused"}', **told).found
    assert (found.finding, last(ledger, receipt).reason) == ("unknown", "attempt_not_named")
    (found,) = ledger.evidence.answer(b'{"error":"refused"}', attempt=2, **told).found
    assert (found.finding, found.unresolved) == ("rejected", True)


def test_a_document_says_nothing_of_a_sender_in_hand(desks):
    """An unknown that is handed in while a worker sends does not read as its report."""
    from counterfoil.domain.attempt import Attempt, settle
    from counterfoil.domain.evidence import Evidence

    sending = (Attempt(number=1, token="w.1"),)
    fed = Evidence(source=Source.WEBHOOK, finding=Finding.UNKNOWN, attempt=1, fed="fd1:0")
    assert settle(sending, fed)[0] == sending


def test_a_contract_that_was_changed_judges_nothing(lost):
    """The receipt pins its contract: under another one the document is kept, and proves nothing."""
    ledger, receipt = lost
    registered = ledger.registry["lab.nothing"]
    registered.action = msgspec.structs.replace(registered.action, contract_digest="ct1:other")
    (found,) = ledger.evidence.answer(ANSWER, status=201, key=receipt.id, **MARA).found
    assert (found.finding, last(ledger, receipt).reason) == ("unknown", "other_contract")


@pytest.mark.parametrize("by", ["agent:bot", "AGENT :bot", "house", " "])
def test_no_agent_hands_anything_in(lost, by):
    """That a document is authentic is a person's or a service's word."""
    ledger, receipt = lost
    with pytest.raises(BadValue):
        ledger.evidence.answer(ANSWER, status=201, key=receipt.id, **{**MARA, "by": by})
    assert ledger.get(receipt.id).outcome is Outcome.UNKNOWN


# -- webhooks --------------------------------------------------------------------------------------------------------


def test_an_event_settles_by_its_own_clause(lost):
    """Reference, account and content agree: it succeeded, with the provider's name for it."""
    ledger, receipt = lost
    fed = ledger.evidence.webhook(event(receipt), **MARA)
    assert (fed.found[0].finding, fed.settled) == ("succeeded", True)
    assert (last(ledger, receipt).rule, last(ledger, receipt).external_id) == ("webhooks[0]", "ef_1")
    assert ledger.get(receipt.id).expect() == {"id": "ef_1", "state": "done"}


def test_an_event_about_another_amount_contradicts(lost):
    """Our reference and not what was asked for: unknown as before, with a discrepancy and an owner."""
    ledger, receipt = lost
    (found,) = ledger.evidence.webhook(event(receipt, amount=11), **MARA).found
    assert (found.outcome, found.discrepancy, found.owner) == ("unknown", "open", "payments")
    assert last(ledger, receipt).reason == "other_content"


def test_an_event_that_lacks_a_compared_field_proves_nothing(lost):
    """What cannot be compared is no success, and no contradiction."""
    ledger, receipt = lost
    body = json.loads(event(receipt))
    del body["data"]["amount"]
    (found,) = ledger.evidence.webhook(json.dumps(body).encode(), **MARA).found
    assert (found.finding, found.discrepancy, last(ledger, receipt).reason) == ("unknown", "none", "field_missing")


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"account": "acct_other"}, "account"), ({"account": ""}, "account"), ({"key": "somebody", "id": "ef_1"}, "")],
)
def test_an_event_that_fits_in_part_is_not_counted(lost, changes, field):
    """Another account, none at all, or a name that is nobody's: shown or unmatched, never counted."""
    ledger, receipt = lost
    before = size(ledger, receipt)
    (found,) = ledger.evidence.webhook(event(receipt, **changes), **MARA).found
    assert found.match is (Match.CANDIDATE if field else Match.UNMATCHED)
    assert (found.finding, size(ledger, receipt)) == ("", before)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"type":"other"}', b"\xff", b'{"type":"effect.done","type":"x"}'])
def test_what_no_clause_speaks_of_is_reported(lost, body):
    """No clause, no JSON, a member twice: nothing is guessed."""
    fed = lost[0].evidence.webhook(body, **MARA)
    assert (fed.found[0].match, fed.settled) == (Match.UNMATCHED, False)
    assert fed.found[0].because == ("no contract at hand has a clause for it",)


def test_a_second_object_under_one_reference_is_a_discrepancy(desks):
    """The first is known by its id; another one that carries our key was asked for by nobody."""
    desk, ledger = desks()
    receipt = desk.call(ledger)
    (found,) = ledger.evidence.webhook(event(receipt, identifier="ef_2"), **MARA).found
    assert (found.outcome, found.discrepancy, last(ledger, receipt).reason) == ("succeeded", "open", "other_object")


def test_an_event_that_fits_two_receipts_is_counted_for_neither(desks):
    """Without our own reference, by an id that two of them know: both are shown."""
    desk, ledger = desks("lab.nothing", "answered", "reply_lost")
    first, second = desk.call(ledger), ledger.pay({"amount": 10}, key="order-2")
    ledger.resolve(second.id, "succeeded", evidence={"id": "ef_1"}, by="user:mara")
    before = size(ledger, first), size(ledger, second)
    (found,) = ledger.evidence.webhook(event(first, key=""), **MARA).found
    assert (found.match, found.operations, found.finding) == (Match.CANDIDATE, (first.id, second.id), "")
    assert (size(ledger, first), size(ledger, second)) == before


def test_one_object_proves_one_operation(desks):
    """A document that names one operation by its key, and the object of another, is nobody's; neither is touched."""
    desk, ledger = desks("lab.nothing", "reply_lost", "reply_lost")
    first, second = desk.call(ledger), ledger.pay({"amount": 12}, key="order-2")
    assert ledger.evidence.webhook(event(first), **MARA).settled
    before = size(ledger, first), size(ledger, second)
    statement = ledger.evidence.statement(csv((second.id, "ef_1", ACCOUNT, "12", "paid")), LAYOUT, **MARA)
    told = ledger.evidence.webhook(event(second, amount=12), **MARA)
    late = ledger.evidence.answer(ANSWER, status=201, key=second.id, external_id="ef_1", **MARA)
    for fed in (statement, told, late):
        (found,) = fed.found
        assert (found.match, found.finding, found.because) == (Match.CANDIDATE, "", (ANOTHERS,))
        assert found.operations == (second.id, first.id)
    assert (size(ledger, first), size(ledger, second)) == before
    assert ledger.evidence.webhook(event(second, amount=12, identifier="ef_2"), **MARA).settled


def test_a_file_that_gives_one_object_to_two_operations_counts_for_neither(desks):
    """Whichever stands first: one thing happened, and the file does not say whose it is."""
    desk, ledger = desks("lab.nothing", "reply_lost", "reply_lost")
    receipts = [desk.call(ledger), ledger.pay({"amount": 12}, key="order-2")]
    lines = [(receipt.id, "ef_1", ACCOUNT, amount, "paid") for receipt, amount in zip(receipts, (10, 12), strict=True)]
    fed = ledger.evidence.statement(csv(*lines), LAYOUT, **MARA)
    assert [(found.match, found.because) for found in fed.found] == [(Match.CANDIDATE, (ANOTHERS,))] * 2
    assert {ledger.get(receipt.id).outcome for receipt in receipts} == {Outcome.UNKNOWN}


def test_the_failure_of_another_object_denies_nothing(desks):
    """A second object that failed is no effect: what is known stays, without a discrepancy."""
    desk, ledger = desks()
    receipt = desk.call(ledger)
    (found,) = ledger.evidence.webhook(event(receipt, kind="effect.failed", identifier="ef_2"), **MARA).found
    assert (found.finding, found.outcome, found.discrepancy) == ("unknown", "succeeded", "none")


def test_the_same_document_again_changes_nothing(lost):
    """Whoever hands it in, and however often: one piece of evidence."""
    ledger, receipt = lost
    assert ledger.evidence.webhook(event(receipt), **MARA).found[0].recorded
    before = size(ledger, receipt)
    for by in ("user:mara", "user:dana"):
        fed = ledger.evidence.webhook(event(receipt), **{**MARA, "by": by})
        assert (fed.found[0].recorded, fed.found[0].finding, fed.settled) == (False, "succeeded", True)
    assert size(ledger, receipt) == before


def test_nothing_of_a_digest_can_be_guessed_after_erasure(lost):
    """The digest on record is salted with what is erased: the plain one of the document is nowhere."""
    import hashlib

    ledger, receipt = lost
    body = event(receipt)
    ledger.evidence.webhook(body, **MARA)
    plain = hashlib.sha256(b"webhook" + body).hexdigest()
    assert plain not in repr([e.record for e in ledger.history(receipt.id).events])


def test_a_busy_store_keeps_nothing_beside_it(lost):
    """It is handed in again by whoever has it; nothing is spooled that would be recorded twice."""
    ledger, receipt = lost
    write = ledger.store.write

    def busy(command):
        raise StoreBusy("busy")

    ledger.store.write = busy
    with pytest.raises(StoreBusy):
        ledger.evidence.webhook(event(receipt), **MARA)
    ledger.store.write = write
    assert ledger.drain() == 0
    assert ledger.evidence.webhook(event(receipt), **MARA).settled


# -- a person's finding ------------------------------------------------------------------------------------------------


def test_a_finding_of_another_amount_is_a_discrepancy(lost):
    """The contract compares it: what the person saw is not what was asked for, and somebody has to settle that."""
    ledger, receipt = lost
    seen = {"id": "ef_1", "amount": "11"}
    found = ledger.resolve(receipt.id, "succeeded", evidence=seen, by="user:mara", reason="dashboard")
    assert (found.outcome, found.discrepancy) == (Outcome.SUCCEEDED, Discrepancy.OPEN)
    settled = ledger.resolve(receipt.id, "succeeded", evidence=seen, by="user:dana", reason="their fee is on top")
    assert (settled.discrepancy, bool(settled.operation.unresolved)) == (Discrepancy.SETTLED, False)


def test_denying_what_is_proven_settles_nothing_however_often(desks):
    """The answer said that it took place: a finding that denies it, once or twice, leaves both to be looked at."""
    desk, ledger = desks()
    receipt = desk.call(ledger)
    for by in ("user:mara", "user:mara", "user:dana"):
        denied = ledger.resolve(receipt.id, "rejected", evidence={"ticket": "T-1"}, by=by)
        assert (denied.outcome, denied.discrepancy) == (Outcome.SUCCEEDED, Discrepancy.OPEN)
        assert denied.operation.unresolved
    one = ledger.resolve(receipt.id, "succeeded", evidence={"id": "ef_1"}, by="user:jo", attempt=1)
    assert one.discrepancy is Discrepancy.OPEN  # of one attempt, it says nothing of the whole
    agreed = ledger.resolve(receipt.id, "succeeded", evidence={"id": "ef_1"}, by="user:jo")
    assert (agreed.outcome, agreed.discrepancy) == (Outcome.SUCCEEDED, Discrepancy.SETTLED)
    assert not agreed.operation.unresolved


def test_a_finding_of_the_right_amount_or_of_none_settles(lost):
    """A text is what somebody typed; a rejection is about nothing that could be compared."""
    ledger, receipt = lost
    found = ledger.resolve(receipt.id, "succeeded", evidence={"id": "ef_1", "amount": "10"}, by="user:mara")
    assert (found.discrepancy, bool(found.operation.unresolved)) == (Discrepancy.NONE, False)
    other = ledger.pay({"amount": 12}, key="order-2")
    denied = ledger.resolve(other.id, "rejected", evidence={"amount": "11"}, by="user:mara")
    assert (denied.outcome, denied.discrepancy) == (Outcome.REJECTED, Discrepancy.NONE)


# -- statements ------------------------------------------------------------------------------------------------------


def hand_in(ledger, *lines, layout=LAYOUT, **more):
    """A statement of these lines."""
    return ledger.evidence.statement(csv(*lines), layout, **{**MARA, **more})


def test_a_line_whose_every_field_agrees_settles(lost):
    """Reference, account, amount and a declared state: it succeeded."""
    ledger, receipt = lost
    fed = hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, "10.00", "paid"))
    (found,) = fed.found
    assert (found.line, found.finding, fed.settled) == (2, "succeeded", True)
    assert found.compared == {"account": "equal", "reference": "equal", "external_id": "missing", "amount": "equal"}
    assert (last(ledger, receipt).source, last(ledger, receipt).rule) == (Source.STATEMENT, "statement.line")


def test_the_right_order_and_the_wrong_amount_is_a_discrepancy(lost):
    """It stays unknown, and its owner has to look."""
    ledger, receipt = lost
    (found,) = hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, "11", "paid")).found
    assert (found.outcome, found.discrepancy, found.owner) == ("unknown", "open", "payments")
    assert found.compared["amount"] == "different"


@pytest.mark.parametrize(
    "line",
    [
        ("", "", ACCOUNT, "10", "paid"),
        ("{id}", "ef_1", "acct_other", "10", "paid"),
        ("{id}", "ef_1", "", "10", "paid"),
        ("{id}", "ef_1", ACCOUNT, "10", "on the way"),
        ("{id}", "ef_1", ACCOUNT, "ten", "paid"),
    ],
)
def test_a_line_that_fits_in_part_is_a_candidate(lost, line):
    """Amount and account alone, another account, none, an undeclared state, no amount: shown, never counted."""
    ledger, receipt = lost
    before = size(ledger, receipt)
    fed = hand_in(ledger, tuple(field.replace("{id}", receipt.id) for field in line))
    assert (fed.found[0].match, fed.found[0].finding) == (Match.CANDIDATE, "")
    assert fed.found[0].operations == (receipt.id,)
    assert (size(ledger, receipt), fed.settled) == (before, False)


def test_lines_that_match_nothing_are_reported(lost):
    """Each by its number."""
    fed = hand_in(lost[0], ("op_nobody", "ef_9", ACCOUNT, "10", "paid"), ("", "", "acct_x", "99", "paid"))
    assert [(one.line, one.match) for one in fed.found] == [(2, Match.UNMATCHED), (3, Match.UNMATCHED)]


@pytest.mark.parametrize("names", [("ef_1", "ef_2"), ("", "")])
def test_two_lines_for_one_operation_are_a_discrepancy_with_an_owner(lost, names):
    """Two objects, or two bookings without a name: it happened, and not once."""
    ledger, receipt = lost
    lines = [(receipt.id, name, ACCOUNT, "10", "paid") for name in names]
    fed = hand_in(ledger, *lines)
    assert {(one.outcome, one.discrepancy, one.owner) for one in fed.found} == {("succeeded", "open", "payments")}
    assert (last(ledger, receipt).reason, last(ledger, receipt).rule) == ("duplicate_suspected", "statement.duplicate")
    before = size(ledger, receipt)
    again = hand_in(ledger, *reversed(lines))
    assert not any(one.recorded for one in again.found)
    assert size(ledger, receipt) == before


def test_two_lines_of_which_none_is_ours_prove_no_success(lost):
    """Two objects with our reference and other amounts: unknown, and a discrepancy."""
    ledger, receipt = lost
    hand_in(ledger, *((receipt.id, f"ef_{n}", ACCOUNT, n, "paid") for n in (1, 2)))
    assert (last(ledger, receipt).reason, ledger.get(receipt.id).outcome) == ("duplicate_unmatched", Outcome.UNKNOWN)


def test_one_object_on_two_lines_is_one(lost):
    """Listed twice under one id it is one thing; one that was returned afterwards contradicts."""
    ledger, receipt = lost
    line = (receipt.id, "ef_1", ACCOUNT, "10", "paid")
    fed = hand_in(ledger, line, line)
    assert [one.recorded for one in fed.found] == [True, False]
    assert ledger.get(receipt.id).discrepancy is Discrepancy.NONE
    hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, "10", "returned"))
    assert ledger.get(receipt.id).discrepancy is Discrepancy.OPEN
    assert ledger.get(receipt.id).outcome is Outcome.SUCCEEDED


def test_an_object_known_by_its_id_is_found_without_a_reference(desks):
    """The provider's own name and the account are two strong fields."""
    desk, ledger = desks()
    receipt = desk.call(ledger)
    fed = hand_in(ledger, ("", "ef_1", ACCOUNT, "10", "paid"))
    assert (fed.found[0].operations, fed.settled) == ((receipt.id,), True)


def test_an_id_that_two_operations_share_is_nobodys(desks):
    """One name and two receipts: neither is counted."""
    desk, ledger = desks("lab.nothing", "answered", "reply_lost")
    first, second = desk.call(ledger), ledger.pay({"amount": 10}, key="order-2")
    ledger.resolve(second.id, "succeeded", evidence={"id": "ef_1"}, by="user:mara")
    (found,) = hand_in(ledger, ("", "ef_1", ACCOUNT, "10", "paid")).found
    assert (found.match, found.operations) == (Match.CANDIDATE, (first.id, second.id))
    assert found.because == ("it fits more than one operation",)


def test_what_was_never_attempted_is_somebody_elses(desks):
    """A line with the key of an operation that sent nothing is shown, and not put on its record."""
    desk, ledger = desks("lab.nothing", "reply_lost")
    desk.call(ledger)
    held = ledger.pay({"amount": 10}, key="order-9")
    assert held.operation.held_by
    (found,) = hand_in(ledger, (held.id, "ef_1", ACCOUNT, "10", "paid")).found
    assert (found.match, found.finding) == (Match.CANDIDATE, "")
    assert "nothing of it was attempted" in found.because[0]


def test_amounts_are_exact(lost):
    """A file in whole units against a payload in small ones, with the sign of the other side; no rounding."""
    ledger, receipt = lost
    layout = msgspec.structs.replace(LAYOUT, decimals=2, negated=True)
    assert hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, "-0.10", "paid"), layout=layout).settled
    for amount in ("-0.1000000000000000000000000001", "0.10", "-10"):
        (found,) = hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, amount, "paid"), layout=layout).found
        assert found.compared["amount"] == "different", amount


def test_jsonl_is_read_by_members_and_pointers(lost):
    """A number with a fraction keeps its digits; what is no object, or has a member twice, is named."""
    ledger, receipt = lost
    layout = msgspec.structs.replace(
        LAYOUT, columns={"reference": "/meta/ref", "amount": "amount", "state": "state"}, account=ACCOUNT
    )
    good = json.dumps({"meta": {"ref": receipt.id}, "state": "paid"})[:-1] + ', "amount": 10.000}'
    text = good + '\n[1]\n{"amount":1,"amount":2}\n\n{"state":{}}\n{"amount":NaN}\n{'
    fed = ledger.evidence.statement(text.encode(), layout, form="jsonl", **MARA)
    assert (fed.found[0].finding, [one.line for one in fed.broken]) == ("succeeded", [2, 3, 5, 6, 7])
    assert not fed.settled


@pytest.mark.parametrize(
    ("content", "changes", "problem"),
    [
        (b"\xff", {}, "UTF-8"),
        (b"Ref,Id\n", {}, "in the file's head"),
        (b"Ref,Ref,Id,Account,Amount,State\n", {}, "stands 2 times"),
        (b"", {"states": {}}, "what at least one state proves"),
        (b"", {"columns": {"amount": "a", "state": "s", "account": "c"}}, "reference or the external id"),
        (b"", {"columns": {"reference": "r", "amount": "a", "state": "s"}}, "whose statement"),
        (b"", {"columns": {"reference": "r", "state": "s"}}, "amount"),
        (b"", {"columns": {"reference": "r", "amount": "a"}}, "state"),
    ],
)
def test_a_file_that_cannot_be_read_by_its_layout_is_refused(lost, content, changes, problem):
    """Nothing of it is recorded."""
    with pytest.raises(BadValue, match=problem):
        lost[0].evidence.statement(content, msgspec.structs.replace(LAYOUT, **changes), **MARA)


def test_a_broken_line_stops_no_other(lost):
    """Too few fields, a field that does not print: named by line, and the rest is read."""
    ledger, receipt = lost
    content = csv((receipt.id, "ef_1", ACCOUNT, "10", "paid"), ("x",), ("\x07", "", "", "", ""))
    fed = ledger.evidence.statement(content, LAYOUT, **MARA)
    assert (fed.found[0].finding, [one.line for one in fed.broken]) == ("succeeded", [3, 4])


def test_a_receipt_that_cannot_be_read_is_named(tmp_path):
    """What is its own is found nowhere, and the report says so."""
    desk = Desk(tmp_path / "broken", "lab.nothing", "reply_lost")
    with desk.open() as ledger:
        receipt = desk.call(ledger)
        ledger.store.execute("DROP TRIGGER event_is_final")
        ledger.store.execute("UPDATE event SET record = CAST('{' AS BLOB) WHERE kind = 'begun'")
        fed = hand_in(ledger, (receipt.id, "ef_1", ACCOUNT, "10", "paid"))
        assert list(fed.unreadable) == [receipt.id]
        assert fed.found[0].match is Match.UNMATCHED
