"""The laws of the fold: whatever evidence comes, in whatever order, proof stays and nobody is settled by another."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.crash.stepping import NOON, draw, ends, order

from counterfoil import contracts
from counterfoil.domain import rules
from counterfoil.domain.attempt import NO_EFFECT, Attempt, fold, settle
from counterfoil.domain.command import Settled
from counterfoil.domain.contract import Terminal
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import next_step
from counterfoil.domain.words import Coverage, Discrepancy, Dispatch, Finding, Outcome, Source
from counterfoil.plans import observing
from counterfoil.plans.claims import ClaimForm, first_claim

ATTEMPTS_MAX = 3
PLAIN = [contracts.load(name) for name in contracts.names()]
TERMINAL = Terminal(source="service", state={"/state": ("paid",)}, finding="succeeded")
CONTRACTS = [*PLAIN, *(msgspec.structs.replace(contract, terminal=(TERMINAL,)) for contract in PLAIN)]
SOME = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
"""Small worlds: three attempts and eight words are soon seen through."""


def untouched(count: int) -> tuple[Attempt, ...]:
    """So many attempts nobody has heard of yet."""
    return tuple(Attempt(number=n, token=f"w.{n}") for n in range(1, count + 1))


def evidence_of(count: int, **fixed) -> st.SearchStrategy[Evidence]:
    """One observation about one of so many attempts."""
    fields = {
        "source": st.sampled_from(Source),
        "finding": st.sampled_from(Finding),
        "attempt": st.integers(1, count),
        "coverage": st.sampled_from(Coverage),
        "quiesced": st.booleans(),
        "contradicts": st.booleans(),
        "external_id": st.sampled_from(["", "a", "b"]),
    }
    return st.builds(Evidence, **{**fields, **{name: st.just(value) for name, value in fixed.items()}})


@st.composite
def stories(draw, **fixed):
    """So many attempts, and what was observed of them."""
    count = draw(st.integers(1, ATTEMPTS_MAX))
    return untouched(count), draw(st.lists(evidence_of(count, **fixed), max_size=8))


def folded(attempts, observed, *, follows=False):
    """All of it together, as an operation would keep it: the attempts, the discrepancy and the columns."""
    discrepancy = Discrepancy.NONE
    for evidence in observed:
        attempts, contradicts = settle(attempts, evidence)
        if contradicts or evidence.contradicts:
            discrepancy = Discrepancy.OPEN
    return attempts, discrepancy, fold(attempts, discrepancy, follows=follows)


@SOME
@given(stories(), st.data())
def test_proof_is_never_lowered(story, data):
    """Once an effect is proven the outcome is `succeeded` for good, and so is the attempt that was proven, or another.

    An effect under a key is laid to every attempt that may have caused it: one that did not may say so later, where
    another one is left that the very same object is proven of.
    """
    attempts, observed = story
    before, _, columns = folded(attempts, observed)
    more = data.draw(evidence_of(len(attempts)))
    after, _, later = folded(attempts, [*observed, more])
    for old, new in zip(before, after, strict=True):
        if old.finding is Finding.SUCCEEDED:
            proven = {a.external_id for a in after if a.finding is Finding.SUCCEEDED}
            assert new.finding is Finding.SUCCEEDED or (old.external_id and old.external_id in proven)
    if columns.outcome is Outcome.SUCCEEDED:
        assert later.outcome is Outcome.SUCCEEDED


@SOME
@given(stories(), st.data())
def test_one_attempt_settles_no_other(story, data):
    """What one attempt was told, and that it was not sent, leaves every other attempt what it was (F2, F3, R8)."""
    attempts, observed = story
    before, _, _ = folded(attempts, observed)
    more = data.draw(evidence_of(len(attempts)))
    assume(more.coverage is Coverage.ATTEMPT or more.finding is Finding.NOT_SENT)
    after, _ = settle(before, more)
    others = [(old, new) for old, new in zip(before, after, strict=True) if old.number != more.attempt]
    assert all(old == new for old, new in others)


@SOME
@given(stories())
def test_rejected_means_that_nothing_may_have_happened(story):
    """`rejected` stands only where every attempt is known to have done nothing and nothing contradicts that."""
    attempts, observed = story
    after, discrepancy, columns = folded(attempts, observed)
    if columns.outcome is Outcome.REJECTED:
        assert all(attempt.finding in NO_EFFECT for attempt in after)
        assert discrepancy is Discrepancy.NONE
    if columns.dispatch is Dispatch.NOT_STARTED:
        assert all(attempt.finding is Finding.NOT_SENT for attempt in after)


@SOME
@given(stories(), st.booleans())
def test_exposure_and_unresolved(story, follows):
    """Exposure counts what may have left and is not settled; unresolved is that, a discrepancy, or a pending end."""
    attempts, observed = story
    after, discrepancy, columns = folded(attempts, observed, follows=follows)
    left = [attempt for attempt in after if attempt.finding is not Finding.NOT_SENT]
    settled = [attempt for attempt in left if attempt.finding not in (None, Finding.UNKNOWN)]
    assert columns.exposure == len(left) - len(settled)
    pending = follows and columns.outcome is Outcome.ACCEPTED
    assert columns.unresolved is (columns.exposure > 0 or discrepancy is Discrepancy.OPEN or pending)


@SOME
@given(stories(), st.data())
def test_unknown_ends_only_by_evidence(story, data):
    """However often nothing was found out, an unknown outcome stays unknown and its exposure stays what it is."""
    attempts, observed = story
    _, _, columns = folded(attempts, observed)
    assume(columns.outcome is Outcome.UNKNOWN)
    silence = st.lists(evidence_of(len(attempts), finding=Finding.UNKNOWN, contradicts=False), max_size=5)
    _, _, later = folded(attempts, [*observed, *data.draw(silence)])
    assert (later.outcome, later.unresolved, later.exposure) == (Outcome.UNKNOWN, True, columns.exposure)


@SOME
@given(st.integers(2, ATTEMPTS_MAX), st.data())
def test_the_order_of_independent_evidence_does_not_matter(count, data):
    """One word on each attempt comes to the same whichever is heard first."""
    words = [data.draw(evidence_of(count, attempt=number, coverage=Coverage.ATTEMPT)) for number in range(1, count + 1)]
    results = {str(folded(untouched(count), order)) for order in itertools.permutations(words)}
    assert len(results) == 1


@SOME
@given(stories(), st.randoms(use_true_random=False))
def test_whether_it_happened_does_not_depend_on_the_order(story, random):
    """If any evidence proves the effect the outcome is `succeeded`, in whatever order all of it is heard."""
    attempts, observed = story
    shuffled = random.sample(observed, len(observed))
    outcomes = {folded(attempts, order)[2].outcome for order in (observed, shuffled)}
    proven = any(evidence.finding is Finding.SUCCEEDED for evidence in observed)
    assert all((outcome is Outcome.SUCCEEDED) is proven for outcome in outcomes)


@SOME
@given(stories())
def test_a_discrepancy_hides_no_proof(story):
    """An open discrepancy leaves what is proven, makes the rest unknown, and is never resolved by itself."""
    attempts, observed = story
    after, discrepancy, columns = folded(attempts, observed)
    assume(discrepancy is Discrepancy.OPEN)
    proven = any(attempt.finding is Finding.SUCCEEDED for attempt in after)
    assert columns.outcome is (Outcome.SUCCEEDED if proven else Outcome.UNKNOWN)
    assert columns.unresolved


@SOME
@given(stories())
def test_denied_proof_opens_a_discrepancy(story):
    """Evidence that an effect happened and evidence that its attempt did nothing are never both simply taken."""
    attempts, observed = story
    mine = [e for e in observed if e.coverage is Coverage.ATTEMPT]
    after, discrepancy, _ = folded(attempts, mine)
    for attempt in after:
        said = {e.finding for e in mine if e.attempt == attempt.number}
        if Finding.SUCCEEDED in said and said & NO_EFFECT - {Finding.REJECTED}:
            assert discrepancy is Discrepancy.OPEN


@SOME
@given(stories())
def test_nobody_is_quiesced_by_another(story):
    """A worker counts as quiet only by what was observed of its own attempt, and stays so."""
    attempts, observed = story
    after, _, _ = folded(attempts, observed)
    for attempt in after:
        assert attempt.quiesced is any(e.quiesced and e.attempt == attempt.number for e in observed)


@SOME
@given(
    st.sampled_from(CONTRACTS),
    evidence_of(1) | evidence_of(1, source=Source.ANSWER, contradicts=False),
    st.floats(0, 1),
)
def test_an_ordinary_end_is_the_folds(contract, evidence, jitter):
    """Whoever has just claimed writes, and is told, exactly what the fold over the whole operation would say."""
    claim = first_claim(order(), draw())
    first = observing.First(claim=claim, token="w.1", at=NOON, head=b"h")

    def written(holder):
        plan = observing.record(holder, observing.sealed(evidence, b"s" * 16), contract, jitter=jitter)
        settle = next(plan)
        return settle, ends(plan, Settled(at=NOON + 1, head=b"i"))

    assert written(first) == written(first.whole())


@SOME
@given(
    key=st.text(max_size=8) | st.sampled_from(['"', "\\", "\x02gap-4\x03", "\u2028", "\x7f"]),
    digests=st.tuples(*[st.from_regex("[ce]f1:[0-9a-f]{1,8}", fullmatch=True)] * 2),
    number=st.integers(1, 10**6),
    value=st.sampled_from([0.0, 1.0, 2.5]),
    mentioned=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)
def test_a_claim_by_form_is_the_claim(key, digests, number, value, mentioned):
    """A record filled into an action's form is, byte for byte, the record written out."""
    plain = order(key=key, value=value, mentioned=mentioned)
    intent = msgspec.structs.replace(plain.intent, fingerprint=digests[0], effect=digests[1])
    plain = msgspec.structs.replace(plain, intent=intent)
    by_form = msgspec.structs.replace(plain, form=ClaimForm(order()))
    drawn = msgspec.structs.replace(draw(), token=f"w_0123456789ab.{number}")
    assert first_claim(by_form, drawn) == first_claim(plain, drawn)


@SOME
@given(st.sampled_from(CONTRACTS), evidence_of(1), st.floats(0, 1))
def test_the_columns_are_the_fold(contract, evidence, jitter):
    """A first attempt's first evidence moves the columns exactly as the fold says."""
    operation = Operation(
        n=1, id="op_1", tenant="t", actor="a", action="x", key="k", account="c", fingerprint="f", effect="e", owner="",
        value=1.0, created_at=1.0, dispatch=Dispatch.STARTED, attempts=1, exposure=1, unresolved=1, step="recover",
        due_at=11.0, worker="w", deadline=11.0, updated_at=1.0, seq=1,
    )  # fmt: skip
    attempts = (Attempt(number=1, token="w.1", send_seconds=10.0),)
    moved = rules.advance(
        operation, attempts, Discrepancy.NONE, evidence, contract, follows=contract.follows, jitter=jitter
    )
    after, discrepancy, columns = folded(attempts, [evidence], follows=contract.follows)
    step = next_step(contract, after, columns, discrepancy, looks=0, jitter=jitter)
    resolved = not columns.unresolved and columns.dispatch is not Dispatch.NOT_STARTED
    expected = msgspec.structs.replace(
        operation, dispatch=columns.dispatch, outcome=columns.outcome, discrepancy=discrepancy,
        exposure=columns.exposure, unresolved=int(columns.unresolved), step=step.step,
        settled_by=f"{evidence.finding.value}:{evidence.source.value}" if resolved else "",
    )  # fmt: skip
    assert (moved.operation, moved.next) == (expected, step)
