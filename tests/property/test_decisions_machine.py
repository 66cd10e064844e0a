"""All commands of a ledger in any order, on a real file: nothing goes without authority, and nothing is forgotten."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.decisions_model import Variant, is_certain, rows_of
from tests.property.decisions_world import ACTOR, World

from counterfoil.domain.audit import audit
from counterfoil.domain.words import Basis

NIGHTLY = bool(os.environ.get("COUNTERFOIL_NIGHTLY"))
"""The long form, for `make nightly`."""
EXAMPLES, STEPS = (1_500, 60) if NIGHTLY else (120, 40)

PEOPLE = ("user:ada", "user:ben", "user:kim", ACTOR, "agent:boss")
KEYS = ("first", "second", "other")
"""Two keys of one payment, and one of another."""
AMOUNTS = {"first": 10, "second": 10, "other": 7}
FATES = ("answered", "reply_lost", "request_lost", "not_sent", "rejected")
VARIANTS = (
    Variant("nobody is asked"),
    Variant("one person", people=1),
    Variant("two of three", people=2, approvers=frozenset({"user:ada", "user:ben", "user:kim"})),
    Variant("two uses", people=1, uses=2, classes=frozenset({"first", "after_not_sent", "same_key"})),
    Variant("one shot", one_shot="absolute"),
    Variant("overrides by two", override_people=2),
    Variant("refused", refuses=True),
)

people = st.sampled_from((*PEOPLE[:2] * 3, *PEOPLE))
fates = st.sampled_from(FATES)
whose = st.integers(min_value=0, max_value=9)
"""Which operation, modulo how many there are."""
stale = st.sampled_from((0, 0, 0, 0, 0, 0, 1))
"""How many events behind the last the person saw."""

# Evidence may come by these; by nothing else does an unknown end.
EVIDENCE = frozenset({"call", "work", "attempt", "override", "reconcile", "resolve", "late"})


class Decisions(RuleBasedStateMachine):
    """One ledger, everybody who may do something with it, and a model of who had allowed what."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self.last = ""
        """What was done last."""
        self.before: dict[str, object] = {}

    @initialize(
        contract=st.sampled_from(("lab.key", "lab.lookup", "lab.nothing")), variant=st.sampled_from((*VARIANTS[1:4] * 2, *VARIANTS[:-1])),
        fate=fates,
    )  # fmt: skip
    def begin(self, contract, variant, fate):
        self.world = World(contract)
        self.world.adopt(variant)
        self.call("first", fate)

    def teardown(self):
        if self.world is not None:
            self.world.end()

    def one(self, which):
        """One of the operations there are."""
        listed = self.world.operations()
        return listed[which % len(listed)]

    def decide(self, verb, which, by, behind=0, **said):
        """Decide something; a decision on something older is never taken."""
        operation = self.one(which)
        self.last = verb
        refused = self.world.decide(verb, operation.id, by, seen=operation.seq - behind, **said)
        taken = self.world.ledger.get(operation.id).operation.seq > operation.seq
        assert not (taken and behind), f"{verb} was decided on what had changed since"
        return operation, refused or ("" if taken else "it was on record already")

    def some(self):
        """There is an operation."""
        return self.world is not None and bool(self.world.operations())

    # -- callers and workers -------------------------------------------------------------------------------------------

    @rule(key=st.sampled_from(KEYS), fate=fates)
    def call(self, key, fate):
        self.last = "call"
        world = self.world
        world.act("call", lambda: world.ledger.call(world.guarded.order({"amount": AMOUNTS[key]}, key=key)), fate=fate)

    @rule(fate=fates)
    def work(self, fate):
        self.last = "work"
        self.world.sweep(fate)

    @precondition(some)
    @rule(which=whose, fate=fates, basis=st.sampled_from([None, *Basis]))
    def attempt(self, which, fate, basis):
        operation, world = self.one(which), self.world
        self.last = "override" if basis is Basis.OPERATOR_OVERRIDE else "attempt"
        world.act(self.last, lambda: world.ledger.attempt(operation.id, basis=basis, by="user:ada"), fate=fate)

    @precondition(some)
    @rule(which=whose)
    def reconcile(self, which):
        operation, world = self.one(which), self.world
        self.last = "reconcile"
        world.act("reconcile", lambda: world.ledger.reconcile(operation.id))

    @precondition(some)
    @rule(which=whose, fate=st.sampled_from(("answered", "rejected", "silence")))
    def late(self, which, fate):
        operation = self.one(which)
        if operation.attempts and operation.id not in self.world.model.removed:
            self.last = "late"
            self.world.late(operation.id, operation.attempts, fate)

    # -- people --------------------------------------------------------------------------------------------------------

    @precondition(some)
    @rule(which=whose, by=people, behind=stale)
    def approve(self, which, by, behind):
        world, operation = self.world, self.one(which)
        rows = rows_of(world.ledger.store, operation.id)
        against = world.model.against_approve(operation.id, rows, by, world.ledger.store.now())
        _, refused = self.decide("approve", which, by, behind)
        assert bool(refused) == bool(against or behind), (refused, against)

    @precondition(some)
    @rule(which=whose, by=people, behind=stale, verb=st.sampled_from(("deny", "revoke", "abandon")))
    def end(self, which, by, behind, verb):
        self.decide(verb, which, by, behind)

    @precondition(some)
    @rule(which=whose, by=people, behind=stale, verb=st.sampled_from(("override", "release")))
    def expose(self, which, by, behind, verb):
        sends = len(self.world.model.sends)
        operation, refused = self.decide(verb, which, by, behind)
        assert len(self.world.model.sends) == sends, f"{verb} sent something"
        assert refused or by not in PEOPLE[3:], f"{by} decided to {verb}"
        absolute = self.world.policy.variant.one_shot == "absolute"
        final = absolute and (verb == "release" or self.world.model.may_have_left(operation.id))
        assert refused or not final, f"{verb} under an absolute one shot"

    @precondition(some)
    @rule(which=whose, by=people, behind=stale, looks=st.integers(0, 2), said=st.sampled_from(
        ("wait_until", "investigate", "assign", "escalate")
    ))  # fmt: skip
    def care(self, which, by, behind, looks, said):
        words = {
            "wait_until": {"until": self.world.ledger.store.now() + 300.0},
            "investigate": {"channel": "their support", "looks": looks},
            "assign": {"owner": "user:kim"},
            "escalate": {"to": "the desk's lead"},
        }
        self.decide(said, which, by, behind, **words[said])

    @precondition(some)
    @rule(which=whose, fate=fates, then=st.lists(st.sampled_from(("call", "work", "clock", "replay")), max_size=3))
    def approve_and_go(self, which, fate, then):
        """Everybody who may say yes says so, and then whoever may send does, or time passes."""
        self.call(self.one(which).key, fate)
        for by in PEOPLE[:2]:
            self.decide("approve", which, by)
        for doing in then:
            if doing == "call":
                self.call(self.one(which).key, fate)
            elif doing == "work":
                self.work(fate)
            elif doing == "replay":
                self.attempt(which, fate, Basis.SAME_KEY_REPLAY)
            else:
                self.clock(3)
        self.last = "call"  # what comes of it comes of the sends in it

    @precondition(some)
    @rule(which=whose, fate=fates, number=st.integers(1, 2), times=st.integers(1, 2))
    def override_and_go(self, which, fate, number, times):
        """One or two people override it, and it is attempted once, or once too often."""
        for by in PEOPLE[:number]:
            self.decide("override", which, by)
        for _ in range(times):
            self.attempt(which, fate, Basis.OPERATOR_OVERRIDE)

    @precondition(some)
    @rule(which=whose, number=st.integers(1, 2), fate=fates)
    def release_and_call(self, which, number, fate):
        for by in PEOPLE[:number]:
            self.decide("release", which, by)
        self.call(self.one(which).key, fate)

    @precondition(some)
    @rule(which=whose, outcome=st.sampled_from(("succeeded", "rejected", "accepted")))
    def resolve(self, which, outcome):
        operation, world = self.one(which), self.world
        self.last = "resolve"
        said = {"evidence": {"seen": "on their statement"}, "by": "user:ada", "reason": "I looked"}
        world.act("resolve", lambda: world.ledger.resolve(operation.id, outcome, **said))

    @rule(variant=st.sampled_from((*VARIANTS[1:4], *VARIANTS)))
    def adopt(self, variant):
        self.last = "adopt"
        self.world.adopt(variant)

    # -- time and the file ---------------------------------------------------------------------------------------------

    @rule(hundreds=st.sampled_from((1, 2, 3, 10, -2, -20)))
    def clock(self, hundreds):
        self.last = "clock"
        self.world.now += hundreds * 100.0
        self.world.ledger.store.now()

    @rule()
    def restart(self):
        self.last = "restart"
        self.world.reopen()

    @rule(seconds=st.sampled_from((0.0, 0.0, 2_000.0)))
    def retain(self, seconds):
        self.last = "retain"
        self.world.now += seconds
        gone = list(self.world.ledger.retain(by="user:lea"))
        self.world.model.removed |= {r.operation for r in gone if r.did == "removed"}

    @precondition(some)
    @rule(which=whose)
    def erase(self, which):
        operation, world = self.one(which), self.world
        self.last = "erase"
        world.act("erase", lambda: world.ledger.erase(operation.id, by="user:lea", reason="they asked"))

    # -- what holds after each step ------------------------------------------------------------------------------------

    @precondition(lambda self: self.world is not None)
    @invariant()
    def nothing_went_without_authority(self):
        assert self.world.objections == []

    @precondition(lambda self: self.world is not None)
    @invariant()
    def every_record_holds(self):
        faults = [f for history in self.world.ledger.store.histories() for f in audit(history)]
        assert faults == []

    @precondition(lambda self: self.world is not None)
    @invariant()
    def an_outcome_comes_of_evidence(self):
        store = self.world.ledger.store
        stood, self.before = self.before, {o.id: o for o in self.world.operations()}
        for name, was in stood.items():
            now = self.before[name]
            columns = [(o.dispatch, o.outcome, o.discrepancy, o.exposure, o.attempts) for o in (was, now)]
            if self.last not in EVIDENCE:
                assert columns[0] == columns[1], f"{self.last} changed an outcome"
            if was.unresolved and not now.unresolved:
                came = [row for row in rows_of(store, name) if row.seq > was.seq and is_certain(row)]
                assert came, f"{self.last} ended an unknown without evidence"


Decisions.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
)
TestDecisions = Decisions.TestCase
