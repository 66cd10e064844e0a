"""Removal changes nothing that is still to come: late evidence folds to the same columns, however often it is done."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.crash.keeping import AGE, DUE, body_erased, removed, whole
from tests.crash.stepping import NOON, action, claimed, draw, observed, order

from counterfoil.domain import retention, rules
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amendment, Declined
from counterfoil.domain.event import EventKind, attempts_of, quiet_since
from counterfoil.domain.words import Basis, Coverage, Dispatch, Finding, Source
from counterfoil.plans.claims import begun_for

SOME = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
CONTRACTS = ("lab.key", "lab.lookup", "lab.nothing", "function.plain")
ANSWERS = (Finding.SUCCEEDED, Finding.REJECTED, Finding.ACCEPTED)


@st.composite
def words(draw, *, attempts=1):
    """One honest observation: a source says what it can establish."""
    finding = draw(st.sampled_from([*ANSWERS, Finding.NOT_SENT, Finding.UNKNOWN]))
    spoken = finding in ANSWERS
    source = draw(st.sampled_from([Source.ANSWER, Source.LATE_ANSWER] if spoken else [Source.TRANSPORT]))
    happened = finding in (Finding.SUCCEEDED, Finding.ACCEPTED)
    return {
        "finding": finding,
        "source": source,
        "attempt": draw(st.integers(1, attempts)),
        "coverage": draw(st.sampled_from(Coverage)) if spoken else Coverage.ATTEMPT,
        "quiesced": draw(st.booleans()),
        "rule": "answers[0]" if spoken else "",
        "effect": "pay" if happened else "",
        "external_id": draw(st.sampled_from(["", "a", "b"])) if happened else "",
        "result": draw(st.sampled_from([None, {"id": "a"}])) if happened else None,
    }


def hears(history, said, of, at):
    """The history after one more observation, or as it is where the same record is there already."""
    said = dict(said)
    try:
        return observed(history, said.pop("finding"), of=of, at=at, **said)
    except AssertionError:
        return history  # recorded already


def told(of, first, rest):
    """A claim of an action, and everything that was observed of it."""
    history = claimed(order(of))
    for index, said in enumerate([first, *rest]):
        history = hears(history, {**said, "attempt": 1}, of, NOON + 1 + index)
    return whole(history)


def columns(history):
    """The row without what only counts its events."""
    return msgspec.structs.replace(history.operation, seq=0)


@SOME
@given(st.sampled_from(CONTRACTS), words(), st.lists(words(), max_size=3), st.lists(words(), max_size=4), st.data())
def test_late_evidence_folds_as_if_nothing_had_been_removed(contract, first, before, after, data):
    """Evidence after a removal comes to the columns, attempts and bounds it would have come to without one."""
    of = action(contract)
    plain = kept = told(of, first, before)
    assume(not retention.against(plain))
    at = NOON + 10 * AGE
    kept = removed(body_erased(kept, at=at - 1) if data.draw(st.booleans()) else kept, at=at)
    for index, said in enumerate(after):
        moment = at + 1 + index * 2 * AGE
        plain, kept = (hears(history, {**said, "attempt": 1}, of, moment) for history in (plain, kept))
        assert columns(kept) == columns(plain)
        assert attempts_of(kept.events) == attempts_of(plain.events)
        assert quiet_since(kept.events) == quiet_since(plain.events)
        assert audit(kept) == audit(plain) == ()
        if not retention.against(kept) and data.draw(st.booleans()) and kept.events[-1].kind is not EventKind.REMOVED:
            kept = removed(kept, at=moment + AGE)


@SOME
@given(
    st.sampled_from(CONTRACTS), words(), st.lists(words(), max_size=3), st.lists(words(), max_size=3),
    st.sampled_from([None, *Basis]), st.booleans(),
)  # fmt: skip
def test_nothing_makes_a_removed_key_sendable(contract, first, before, after, basis, automatic):
    """Whatever was observed before and after: no basis, no worker and no caller starts an attempt of it."""
    of = action(contract)
    history = told(of, first, before)
    assume(not retention.against(history))
    history = removed(history)
    for index, said in enumerate([{}, *after]):
        if said:
            history = hears(history, {**said, "attempt": 1}, of, NOON + 10_000 + index)
        begun = begun_for(of, draw(9), destination="")
        rule = rules.claim_again(begun, of.contract, longest_delivery=0.0, automatic=automatic, basis=basis)
        assert isinstance(rule(history, NOON + 20_000), Declined)


@SOME
@given(st.sampled_from(CONTRACTS), words(), st.lists(words(), max_size=3), st.sampled_from(["none", "erase", "remove"]))
def test_what_is_finished_is_never_started_again_by_retention(contract, first, before, step):
    """Erased or removed, a key never goes: there is nothing of it left to send."""
    of = action(contract)
    history = told(of, first, before)
    assume(not retention.against(history))

    def starts(history):
        begun = begun_for(of, draw(9), destination="")
        rule = rules.claim_again(begun, of.contract, longest_delivery=None, automatic=False)
        return isinstance(rule(history, NOON + 20_000), Amendment)

    could = starts(history)
    assert could is (history.operation.dispatch is Dispatch.NOT_STARTED)
    after = {"none": lambda h: h, "erase": body_erased, "remove": removed}[step](history)
    assert starts(after) is (could and step == "none")


@SOME
@given(st.sampled_from(CONTRACTS), words(), st.lists(words(), max_size=3), st.floats(0, 1e6))
def test_what_is_not_over_is_never_removed(contract, first, before, age):
    """Unresolved, exposed, contradicted or owed a step: whatever its age, both rules leave it alone."""
    history = told(action(contract), first, before)
    row = history.operation
    over = not (row.unresolved or row.exposure or row.step or row.discrepancy.value == "open")
    for rule in (retention.remove(DUE), retention.erase(by="house", reason="r", due=DUE)):
        decided = rule(history, row.updated_at + age)
        assert isinstance(decided, Declined) or (over and age >= AGE)
