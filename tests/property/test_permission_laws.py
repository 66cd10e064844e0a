"""Rules about one history in any order: its record verifies, and nothing is claimed beyond what people allowed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.crash.asking import LEA, MARA, NOOR, REQUIRED, asked, claim, faults, sought, terms, wanted, who
from tests.crash.stepping import NOON, claimed, held, order, ruled

from counterfoil import contracts
from counterfoil.domain.approval import binding
from counterfoil.domain.command import Amendment
from counterfoil.domain.consent import approve, deny, expire, revoke
from counterfoil.domain.decision import authority
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import EventKind, begun_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.override import abandon, override
from counterfoil.domain.permission import Sought, needs_people
from counterfoil.domain.rules import observe
from counterfoil.domain.terms import Terms
from counterfoil.domain.words import AttemptClass, Basis, Finding, Source
from counterfoil.plans.observing import sealed

KEY = contracts.load("lab.key")
SOME = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
"""Long enough for every rule to meet every other; the longest of them is a dozen steps."""
NAMES = (MARA, NOOR, LEA, f"{MARA} (uid 7)", "agent:pay", "agent:other", "house")
PEOPLE = {MARA: MARA, NOOR: NOOR, LEA: LEA, f"{MARA} (uid 7)": MARA}
"""Who is behind a name; whoever is not among them decides nothing."""
WIRES, POLICIES = ("wi1:a", "wi1:b"), ("pl1:a", "pl1:b")
CLASSES = {
    "not_sent": "after_not_sent", "same_key_replay": "same_key", "rejected_without_effect": "override",
    "absence_proven": "after_absence", "operator_override": "override", "": "first",
}  # fmt: skip
names, wires, policies = st.sampled_from(NAMES), st.sampled_from(WIRES), st.sampled_from(POLICIES)
findings = st.sampled_from(sorted(set(Finding) - {Finding.ABSENT}))
ODD = st.one_of(
    st.tuples(st.just("approve"), names, st.booleans(), st.booleans()),
    st.tuples(st.sampled_from(["deny", "revoke", "abandon"]), names),
    st.tuples(st.just("override"), names, st.integers(1, 2)),
    st.tuples(st.just("expire")),
    st.tuples(st.just("claim"), wires, policies, st.booleans(), st.sampled_from([None, *Basis])),
    st.tuples(st.just("claim"), st.just(WIRES[0]), st.just(POLICIES[0]), st.booleans(), st.none()),
    st.tuples(st.just("observe"), findings, st.integers(1, 3)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 60.0, 101.0])),
)
LIKELY = st.sampled_from(
    [
        ("approve", MARA, False, False),
        ("approve", NOOR, False, False),
        ("claim", WIRES[0], POLICIES[0], False, None),
        ("claim", WIRES[0], POLICIES[0], True, None),
        ("claim", WIRES[0], POLICIES[0], False, Basis.SAME_KEY_REPLAY),
        ("claim", WIRES[0], POLICIES[0], False, Basis.OPERATOR_OVERRIDE),
        ("observe", Finding.UNKNOWN, 1),
        ("observe", Finding.NOT_SENT, 1),
        ("override", MARA, 1),
        ("override", NOOR, 2),
        ("wait", 101.0),
    ]
)
"""What gets anywhere: left to chance alone hardly anything is ever approved, sent and sent again."""
YES = (("approve", MARA, False, False), ("approve", NOOR, False, False))
SEND = ("claim", WIRES[0], POLICIES[0], False, None)
SILENT, STAYED = ("observe", Finding.UNKNOWN, 1), ("observe", Finding.NOT_SENT, 1)
BEGINS = {
    "held": (), "claimed": (), "asked": (), "approved": YES, "sent": (*YES, SEND), "unknown": (*YES, SEND, SILENT),
    "stayed": (*YES, SEND, STAYED), "overridden": (*YES, SEND, SILENT, ("override", MARA, 1)),
}  # fmt: skip
"""How a story begins, with what is done before chance sets in."""
STEPS = st.lists(st.one_of(LIKELY, ODD.map(tuple)), min_size=4, max_size=14)
REPLAY = ("claim", WIRES[0], POLICIES[0], False, Basis.SAME_KEY_REPLAY)
TRIES = [REPLAY, SEND, *(("observe", found, n) for n in (1, 2, 3) for found in (Finding.UNKNOWN, Finding.NOT_SENT))]
AGAIN = ("claim", WIRES[0], POLICIES[0], False, Basis.OPERATOR_OVERRIDE)
FOCUSED = {
    "ends": ("approved", [SEND, ("claim", WIRES[0], POLICIES[0], True, None), ("wait", 60.0), ("wait", 101.0), *YES]),
    "overrides": ("unknown", [AGAIN, SILENT, *(("override", by, told) for by in (MARA, NOOR) for told in (1, 2))]),
}
"""Few words and one beginning each: what chance over all of them meets too seldom."""
REQUIREMENTS = st.builds(
    lambda people, approvers, uses, attempts: msgspec.structs.replace(
        REQUIRED, people=people, approvers=approvers, uses=uses, attempts=attempts
    ),
    st.integers(1, 2),
    st.sampled_from([(), (MARA, NOOR)]),
    st.integers(1, 2),
    st.sampled_from([REQUIRED.attempts, tuple(AttemptClass)]),
)


class Model:
    """What people have allowed, worked out from what was done, apart from the rules."""

    def __init__(self, required, override_people):
        self.required, self.override_people = required, override_people
        self.question = None
        """Wire and policy of what was asked last."""
        self.until = 0.0
        self.yes, self.overrides = set(), set()
        self.told = 1
        """How many people the last of those who overrode it was told that it takes."""
        self.ended = ""
        self.given = 0
        """Which approval it is, counted from 1; 0: none stands."""
        self.approvals = 0
        self.attempts = []
        """Of each: under which approval it went, and what is known of it."""

    def ask(self, wire, policy, now):
        self.question, self.until = (wire, policy), now + self.required.seconds
        self.yes, self.given = set(), 0

    def approve(self, by, shown, now):
        person = PEOPLE.get(by)
        may = person and (not self.required.approvers or person in self.required.approvers)
        if may and shown == self.question and now <= self.until and not self.given and not self.ended:
            self.yes.add(person)
            if len(self.yes) == self.required.people:
                self.approvals += 1
                self.given, self.until = self.approvals, now + self.required.seconds

    def may_go(self, wire, policy, basis, now):
        """Whether an attempt has the word it needs."""
        if self.ended:
            return False
        if basis == "operator_override":
            waits = self.question and not self.given and now <= self.until
            return len(self.overrides) >= max(self.override_people, self.told) and not waits
        if self.question is None:
            return self.required is None
        stands = self.given and now <= self.until and (wire, policy) == self.question
        used = sum(finding is not Finding.NOT_SENT for under, finding in self.attempts if under == self.given)
        allowed = CLASSES[basis] in {word.value for word in self.required.attempts}
        return bool(stands and allowed and used < self.required.uses)


class Story:
    """One history, its clock, and the model beside it."""

    def __init__(self, required, override_people, begins):
        self.required, self.override_people = required, override_people
        self.model = Model(required, override_people)
        self.now, self.claims = NOON, 0
        if begins in ("held", "claimed"):
            self.history = held(order()) if begins == "held" else claimed(order())
            self.model.attempts += [(0, None)] * self.history.operation.attempts
        else:
            self.history = asked(self.made(POLICIES[0]), wire=WIRES[0])
            self.model.ask(WIRES[0], POLICIES[0], NOON)
        for word, *how in BEGINS[begins]:
            self.step(word, *how)

    def made(self, policy):
        return wanted(terms=self.terms(policy))

    def terms(self, policy):
        if self.required is None:
            return Terms(policy=1, digest=policy, override_people=self.override_people)
        return terms(required=self.required, digest=policy, override_people=self.override_people)

    def take(self, rule):
        """Run one rule; whether it wrote anything."""
        found = rule(self.history, self.now)
        if isinstance(found, Amendment):
            self.history = ruled(self.history, lambda *_: found, self.now)
        return found if isinstance(found, Amendment) else None

    def step(self, word, *how):
        getattr(self, word)(*how)
        assert faults(self.history) == []

    def wait(self, seconds):
        self.now += seconds

    def approve(self, by, stale, elsewhere):
        proposed = authority(self.history).proposed
        bound = binding(proposed) if proposed and not elsewhere else "ab1:" + "0" * 40
        seen = self.history.operation.seq - stale
        try:
            taken = self.take(approve(who(self.history, by, seen=seen), bound=bound))
        except BadValue:
            return
        if taken:
            self.model.approve(by, None if stale or elsewhere else self.model.question, self.now)

    def _ends(self, rule, by, ends):
        try:
            taken = self.take(rule(who(self.history, by)))
        except BadValue:
            return
        if taken:
            assert by in PEOPLE
            self.model.ended = ends

    def deny(self, by):
        self._ends(deny, by, "denied")

    def revoke(self, by):
        self._ends(revoke, by, "revoked")

    def abandon(self, by):
        before = self.history.operation.outcome
        self._ends(abandon, by, self.model.ended or "abandoned")
        assert self.history.operation.outcome is before

    def override(self, by, told):
        """Under a policy that may have asked for another number of people than the one in force at the claim."""
        under = msgspec.structs.replace(self.terms(POLICIES[0]), override_people=told)
        try:
            rule = override(who(self.history, by), under, KEY)
        except BadValue:
            return
        if self.take(rule) and by in PEOPLE:
            self.model.overrides.add(PEOPLE[by])
            self.model.told = told

    def expire(self):
        if self.take(expire()):
            assert self.now > self.model.until

    def claim(self, wire, policy, automatic, basis):
        made = self.made(policy)
        asks = needs_people(self.history, made.terms)
        under = sought(self.history, made, automatic=automatic, wire=wire) if asks else Sought(terms=made.terms)
        self.claims += 1
        rule = claim(
            self.history, made, number=self.claims + 10, automatic=automatic, basis=basis, under=under
        )  # fmt: skip
        found = self.take(rule)
        if found is None:
            return
        if found.claims:
            begun = begun_of(self.history.events[-1])
            event(f"claimed: {begun.basis or 'first'}, approval {bool(begun.attempt.approval)}")
            assert self.model.may_go(wire, policy, begun.basis, self.now)
            self.model.attempts.append((0 if begun.basis == "operator_override" else self.model.given, None))
            self.model.overrides.clear()
        elif found.events[-1].kind is EventKind.PROPOSED:
            self.model.ask(wire, policy, self.now)

    def observe(self, finding, number):
        wire = finding in (Finding.UNKNOWN, Finding.NOT_SENT)
        if number > self.history.operation.attempts:
            return
        said = Evidence(
            source=Source.TRANSPORT if wire else Source.ANSWER, finding=finding, attempt=number, quiesced=True,
            rule="" if wire else "answers[0]", effect="" if wire else "pay",
            external_id="" if wire else "ef_1", reason=str(self.now) if wire else "",
        )  # fmt: skip
        kept = sealed(said, b"\xee" * 16)
        if self.take(observe(kept.evidence, kept.line, kept.body, KEY)):
            under, before = self.model.attempts[number - 1]
            known = before not in (None, Finding.UNKNOWN)
            self.model.attempts[number - 1] = (under, before if known and before is Finding.NOT_SENT else finding)
            if finding is not Finding.UNKNOWN:
                self.model.overrides.clear()


@SOME
@given(REQUIREMENTS, st.integers(1, 2), st.sampled_from(sorted(BEGINS)), STEPS)
def test_nothing_is_claimed_without_the_word_it_needs(required, override_people, begins, steps):
    """Whatever is done in whichever order: verification finds nothing, and the model allows every claim there is."""
    story = Story(required, override_people, begins)
    for word, *how in steps:
        story.step(word, *how)


@SOME
@given(st.integers(1, 2), st.lists(st.sampled_from(TRIES), min_size=3, max_size=10))
def test_an_approval_is_used_as_often_as_it_says(uses, steps):
    """Sent again and again with every class allowed: what may have left counts, what stayed does not."""
    story = Story(msgspec.structs.replace(REQUIRED, uses=uses, attempts=tuple(AttemptClass)), 1, "unknown")
    for word, *how in steps:
        story.step(word, *how)
    left = [finding for under, finding in story.model.attempts if under and finding is not Finding.NOT_SENT]
    assert len(left) <= uses


@pytest.mark.parametrize("focus", FOCUSED)
@SOME
@given(st.integers(1, 2), st.data())
def test_an_end_is_an_end_and_two_are_two(focus, override_people, data):
    """Around the end of an approval, and around the people an override takes: the same law, met more often."""
    begins, words = FOCUSED[focus]
    story = Story(REQUIRED, override_people, begins)
    for word, *how in data.draw(st.lists(st.sampled_from(words), min_size=2, max_size=8)):
        story.step(word, *how)


@SOME
@given(st.integers(1, 2), st.sampled_from(["held", "claimed"]), STEPS)
def test_without_a_question_only_a_no_and_an_override_count(override_people, begins, steps):
    """Where a policy asks nobody, what people took back stays back, and an override still takes its people."""
    story = Story(None, override_people, begins)
    for word, *how in steps:
        story.step(word, *how)


@SOME
@given(st.sampled_from(["deny", "revoke"]), st.sampled_from([MARA, NOOR]), STEPS)
def test_a_no_before_anything_went_is_for_good(end, by, steps):
    """After it nothing is ever claimed, whatever anybody does next."""
    story = Story(REQUIRED, 1, "asked")
    story.step(end, by)
    for word, *how in steps:
        story.step(word, *how)
    assert story.history.operation.attempts == 0
