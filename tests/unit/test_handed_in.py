"""What is handed in: never matched by one weak field, laid to the attempt it can only be of, and kept once."""

from __future__ import annotations

import itertools
from decimal import Decimal

import msgspec
import pytest
from tests.crash.keeping import removed, settled
from tests.crash.stepping import NOON, action, claimed, draw, ends, erased, held, observed, order, ruled

from counterfoil.domain import fed, statement
from counterfoil.domain.attempt import Attempt, settle
from counterfoil.domain.command import Amended, Declined
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.fed import Feeder, handed_in, is_pinned, marked, of_another, once, salt_of, unjudged
from counterfoil.domain.matching import Known, Match, Named, compared, known, match
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.rules import RECORDED
from counterfoil.domain.statement import Entry, Layout, Line
from counterfoil.domain.words import Finding, Source
from counterfoil.plans.late import Taken, feed

MARA = Feeder(by="user:mara", reason="seen", how="test")
OURS = Known(account="acct", references=("op_1", "o-1"), external_ids=("e-1",))


# -- matching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("account", "reference", "external_id"), list(itertools.product(("equal", "different", "missing"), repeat=3))
)
def test_no_weak_field_alone_is_a_match(account, reference, external_id):
    """Matched only by the account and a strong name, and never against the reference."""
    found = match({"account": account, "reference": reference, "external_id": external_id})
    strong = "equal" in (reference, external_id)
    ours = account == "equal" and strong and reference != "different"
    assert found is (Match.MATCHED if ours else Match.CANDIDATE if strong else Match.UNMATCHED)


def test_names_are_compared_one_by_one():
    """Any name of ours is equal; what either side does not say is missing."""
    assert compared(Named(account="acct", reference="o-1", external_id="e-2"), OURS) == {
        "account": "equal", "reference": "equal", "external_id": "different",
    }  # fmt: skip
    bare = msgspec.structs.replace(OURS, external_ids=())
    assert compared(Named(external_id="e-1"), bare) == dict.fromkeys(("account", "reference", "external_id"), "missing")


def test_an_operation_is_known_by_its_key_its_reference_and_its_objects():
    """The payload's own field where the contract names it, also of what was only asked; not once it was erased."""
    contract = msgspec.structs.replace(action().contract, reference="payload/order")
    made = order(payload=b'{"order":"o-7"}')
    done = observed(claimed(made), Finding.SUCCEEDED, external_id="e-1", effect="pay")
    assert known(done, contract) == Known(account="acct", references=("op_1", "o-7"), external_ids=("e-1",))
    assert known(erased(done), contract).references == ("op_1",)
    assert known(held(), contract).references == ("op_1",)
    assert known(claimed(), action().contract) == Known(account="acct", references=("op_1",), external_ids=())


# -- whose attempt it is of --------------------------------------------------------------------------------------------


def said(finding, **more):
    """Evidence as a contract judged it."""
    return Evidence(source=Source.ANSWER, finding=finding, attempt=1, quiesced=True, **more)


def attempts(*findings, names=()):
    """Attempts of which these things are known."""
    ids = [*names, *[""] * len(findings)]
    return tuple(
        Attempt(number=n, token=f"w.{n}", finding=finding, external_id=ids[n - 1])
        for n, finding in enumerate(findings, start=1)
    )


SUCCEEDED, REJECTED, UNKNOWN = Finding.SUCCEEDED, Finding.REJECTED, Finding.UNKNOWN


@pytest.mark.parametrize(
    ("stood", "evidence", "named", "number", "finding"),
    [
        (attempts(UNKNOWN), said(REJECTED), None, 1, REJECTED),
        (attempts(UNKNOWN, UNKNOWN), said(REJECTED), None, 2, UNKNOWN),
        (attempts(UNKNOWN, UNKNOWN), said(REJECTED), 1, 1, REJECTED),
        (attempts(SUCCEEDED, SUCCEEDED, names=("a", "b")), said(REJECTED, external_id="a"), None, 1, REJECTED),
        (attempts(SUCCEEDED, SUCCEEDED, names=("a", "a")), said(REJECTED, external_id="a"), None, 2, UNKNOWN),
        (attempts(SUCCEEDED, SUCCEEDED, names=("a", "a")), said(SUCCEEDED, external_id="a"), None, 1, SUCCEEDED),
        (attempts(REJECTED, UNKNOWN), said(SUCCEEDED), None, 2, SUCCEEDED),
        (attempts(UNKNOWN, SUCCEEDED), said(SUCCEEDED), None, 2, SUCCEEDED),
        (attempts(REJECTED, REJECTED), said(SUCCEEDED), None, 2, SUCCEEDED),
        (attempts(UNKNOWN, UNKNOWN), said(UNKNOWN, reason="no_rule"), None, 2, UNKNOWN),
    ],
)
def test_it_is_laid_to_the_attempt_it_can_only_be_of(stood, evidence, named, number, finding):
    """What happened to the first that may have caused it; what did not happen to none that is not named."""
    found = handed_in(evidence, Source.WEBHOOK, MARA, stood, named=named)
    assert (found.attempt, found.finding, found.source) == (number, finding, Source.WEBHOOK)
    assert (found.by, found.why, found.how) == ("user:mara", "seen", "test")
    assert found.reason == (evidence.reason or ("attempt_not_named" if finding is not evidence.finding else ""))


def test_nothing_that_is_handed_in_quiets_a_sender():
    """Only its own report, or its death, does: nothing is sent again on such a word."""
    stood = attempts(None)
    for finding in (SUCCEEDED, REJECTED, UNKNOWN):
        found = msgspec.structs.replace(handed_in(said(finding), Source.WEBHOOK, MARA, stood), fed="fd1:0")
        assert not found.quiesced
        assert not settle(stood, found)[0][0].quiesced
    assert settle(stood, found)[0] == stood


def test_another_object_that_happened_contradicts():
    """One that failed denies nothing of ours; what contradicts already, or proves nothing, stays."""
    assert of_another(said(SUCCEEDED)) == said(SUCCEEDED, contradicts=True, reason="other_object")
    assert of_another(said(REJECTED)) == said(UNKNOWN, reason="other_object")
    for as_it_is in (said(UNKNOWN), said(SUCCEEDED, contradicts=True)):
        assert of_another(as_it_is) == as_it_is


def test_what_another_contract_judged_proves_nothing():
    """It is kept as unknown until a person says what it is."""
    found = unjudged(said(SUCCEEDED, effect="pay", result=1))
    assert (found.finding, found.reason, found.effect, found.result) == (UNKNOWN, "other_contract", "", None)


def test_a_receipt_pins_its_contract():
    """Also after retention removed how it went."""
    digest = action().contract_digest
    for stood in (settled(), removed(settled())):
        assert is_pinned(stood, digest)
        assert not is_pinned(stood, "ct1:other")


# -- once ------------------------------------------------------------------------------------------------------------


def given(history, finding=SUCCEEDED, document=b"doc", by="user:mara"):
    """The plan that records one document, and what it wants written."""
    feeder = msgspec.structs.replace(MARA, by=by)
    evidence = handed_in(said(finding, rule="answers[0]", effect="pay"), Source.LATE_ANSWER, feeder, attempts(None))
    plan = feed("op_1", marked(evidence, history, document), action().contract, draw(2))
    return plan, next(plan)


def test_one_document_is_recorded_once():
    """By whomever it is handed in; one that says something else now, or another one, is news."""
    history = observed(claimed(), UNKNOWN)
    plan, amend = given(history)
    assert amend.record is None
    after = ruled(history, amend.rule)
    assert ends(plan, Amended(history=after)) == Taken(operation=after.operation)
    plan, again = given(after, by="user:dana")
    declined = again.rule(after, NOON + 2)
    assert isinstance(declined, Declined)
    told = msgspec.structs.replace(declined, history=after)
    assert ends(plan, told) == Taken(operation=after.operation, because=(RECORDED,))
    for other in ({"document": b"other"}, {"finding": UNKNOWN}):
        assert not isinstance(given(after, **other)[1].rule(after, NOON + 2), Declined)


def test_what_was_not_handed_in_is_never_the_same():
    """An observation of our own has no document."""
    history = observed(claimed(), UNKNOWN)
    bare = said(UNKNOWN)
    assert once(bare, lambda history, now: Declined(because=("asked",)))(history, NOON).because == ("asked",)


def test_the_salt_goes_with_the_payload():
    """Once it is erased no document can be guessed by its digest."""
    history = claimed()
    assert salt_of(history) == history.events[0].body[:16]
    assert salt_of(erased(history)) == history.events[0].hash
    assert marked(said(UNKNOWN), history, b"x").fed != marked(said(UNKNOWN), erased(history), b"x").fed
    assert fed.NOT_NAMED


# -- statements --------------------------------------------------------------------------------------------------------

LAYOUT = Layout(
    columns={"reference": "r", "external_id": "i", "account": "c", "amount": "a", "state": "s"},
    states={"paid": "succeeded", "returned": "rejected"}, amount_at="/amount",
)  # fmt: skip


def line(number=2, **fields):
    """A line of a statement."""
    return Line(number=number, fields={"reference": "op_1", "amount": "10", "state": "paid", **fields})


def entry(number=2, *, amount="equal", external_id="missing", **fields):
    """The same beside its operation."""
    names = {"account": "equal", "reference": "equal", "external_id": external_id, "amount": amount}
    one = line(number, **fields)
    return Entry(line=one, compared=names, finding=statement.finding_of(one, LAYOUT))


@pytest.mark.parametrize(
    ("payload", "decimals", "amount", "found"),
    [
        (b'{"amount":1500}', 2, "15.00", "equal"),
        (b'{"amount":"15.00"}', 0, "15", "equal"),
        (b'{"amount":{"$decimal":"15.00"}}', 0, "15.0", "equal"),
        (b'{"amount":1500}', 2, "15.001", "different"),
        (b'{"amount":123456789012345678901234567890}', 0, "123456789012345678901234567891", "different"),
        (b'{"amount":15.5}', 0, "15.5", "missing"),
        (b'{"amount":true}', 0, "1", "missing"),
        (b'{"amount":"15 EUR"}', 0, "15", "missing"),
        (b'{"amount":15}', 0, "1.5e1", "missing"),
        (b'{"amount":15}', 0, "", "missing"),
        (b"{}", 0, "15", "missing"),
        (None, 0, "15", "missing"),
    ],
)
def test_amounts_are_compared_exactly_or_not_at_all(payload, decimals, amount, found):
    """No rounding, no binary fraction, no unit that nobody declared."""
    layout = msgspec.structs.replace(LAYOUT, decimals=decimals)
    ours = statement.amount_in(payload, layout)
    assert statement.agree(ours, statement.amount_of(line(amount=amount), layout)) == found


def test_a_sign_of_the_other_side_is_declared():
    """Minus in the file is what the payload writes without one; what is no number has no sign."""
    layout = msgspec.structs.replace(LAYOUT, negated=True)
    assert statement.amount_of(line(amount="-10"), layout) == Decimal(10)
    assert statement.amount_of(line(amount="x"), layout) is MISSING


def test_whose_a_line_is():
    """A column's account before the declared one; and two lines of the same fields are the same document."""
    of = msgspec.structs.replace(LAYOUT, account="acct")
    assert line().named(of) == Named(account="acct", reference="op_1")
    assert line(account="a", external_id="e").named(of) == Named(account="a", reference="op_1", external_id="e")
    assert line(2).document == line(9).document != line(state="returned").document


def test_what_counts_and_what_is_only_shown():
    """No amount to compare, or a state nobody declared: not counted. Another amount counts, as a discrepancy."""
    assert entry().against == ""
    assert entry(amount="missing").against == statement.UNCOMPARED
    assert entry(state="pending").against == statement.UNSTATED
    assert entry(amount="different").against == ""


def test_what_one_line_proves():
    """What its state was declared to; another amount, or another object, contradicts."""
    good = statement.evidence_of(entry(external_id="equal"), effect="pay")
    assert (good.source, good.finding, good.effect, good.contradicts) == (
        Source.STATEMENT, SUCCEEDED, "pay", False,
    )  # fmt: skip
    wrong = statement.evidence_of(entry(amount="different"), effect="pay")
    assert (wrong.finding, wrong.contradicts, wrong.reason, wrong.effect) == (UNKNOWN, True, "other_content", "")
    returned = statement.evidence_of(entry(state="returned"), effect="pay")
    assert (returned.finding, returned.effect) == (REJECTED, "")
    other = statement.evidence_of(entry(external_id="different"), effect="pay")
    assert (other.finding, other.contradicts) == (SUCCEEDED, True)
    assert statement.evidence_of(entry(state="?"), effect="pay").finding is UNKNOWN


def test_two_objects_for_one_operation_are_doubled():
    """By their names, or line by line where they have none; one object twice, or one that failed, is not."""
    assert statement.is_doubled([entry(2), entry(3)])
    assert statement.is_doubled([entry(2, external_id="equal"), entry(3)])
    one = [entry(n) for n in (2, 3)]
    named = [msgspec.structs.replace(e, line=line(e.line.number, external_id="e-1")) for e in one]
    assert not statement.is_doubled(named)
    assert not statement.is_doubled([entry(2), entry(3, state="returned")])


def test_a_duplicate_happened_where_one_of_them_is_ours():
    """Otherwise nothing is proven but that evidence contradicts."""
    found = statement.duplicate((entry(2, amount="different"), entry(3)), effect="pay")
    assert (found.finding, found.contradicts, found.effect) == (SUCCEEDED, True, "pay")
    for none in ((entry(2, amount="different"), entry(3, state="?")), (entry(2, external_id="different"),)):
        nothing = statement.duplicate(none, effect="pay")
        assert (nothing.finding, nothing.reason, nothing.effect) == (UNKNOWN, "duplicate_unmatched", "")
    every = entry(2), entry(3, state="pending")
    assert statement.document_of_all(every) == statement.document_of_all(every[::-1])


def test_a_layout_says_what_it_lacks():
    """Nothing is matched by a file of which that is not declared."""
    assert LAYOUT.problem() == ""
    bare = {"amount": "a", "state": "s", "reference": "r"}
    assert "whose statement" in msgspec.structs.replace(LAYOUT, columns=bare).problem()
    assert msgspec.structs.replace(LAYOUT, columns=bare, account="acct").problem() == ""
