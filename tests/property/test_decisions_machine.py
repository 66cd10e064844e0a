"""All commands of a ledger in any order, on a real file: nothing goes without authority, and nothing is forgotten."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.decisions_model import Variant, is_certain, rows_of
from tests.property.decisions_world import ACTOR, AMOUNTS, Version, World

from counterfoil.domain.audit import audit
from counterfoil.domain.words import Basis
from counterfoil.runtime.replay import Columns, replay

NIGHTLY = bool(os.environ.get("COUNTERFOIL_NIGHTLY"))
"""The long form, for `make nightly`."""
EXAMPLES, STEPS = (2_000, 50) if NIGHTLY else (80, 25)

PEOPLE = ("user:ada", "user:ben", "user:kim")
FATES = ("reply_lost", "request_lost", "not_sent", "rejected", "answered")
VERSIONS = (Version(), Version(), Version(code="cd1:b"), Version(contract="+"))
LATE = ("answered", "rejected", "silence")
CLASSES = (("first",), ("first", "after_not_sent"), ("first", "after_not_sent", "same_key", "after_absence"))
# Evidence may come by these; by nothing else does an unknown end.
EVIDENCE = frozenset({"call", "work", "attempt", "override", "reconcile", "resolve", "late"})

variants = st.builds(
    Variant,
    name=st.just("any"),
    people=st.sampled_from((1, 0, 2)),
    approvers=st.sampled_from((frozenset(), frozenset(PEOPLE), frozenset({*PEOPLE[:2], ACTOR}))),
    classes=st.sampled_from(CLASSES).map(frozenset),
    seconds=st.sampled_from((250.0, 250.0, 950.0)),
    uses=st.sampled_from((1, 2)),
    refuses=st.sampled_from((*[False] * 7, True)),
    one_shot=st.sampled_from((*["no"] * 5, "yes", "absolute")),
    override_people=st.sampled_from((1, 2)),
    breaker=st.booleans(),
)
keys = st.sampled_from(tuple(AMOUNTS))
fates = st.sampled_from(FATES)
whose = st.integers(min_value=0, max_value=3)
"""Which operation, modulo how many there are that it can be about; 3 is any."""
ABOUT = {
    "approve": lambda o: o.permission.value == "pending",
    "deny": lambda o: o.permission.value == "pending",
    "revoke": lambda o: o.permission.value in {"pending", "authorized"} and (o.unresolved or not o.attempts),
    "override": lambda o: o.unresolved and o.permission.value != "pending",
    "hold": lambda o: not o.attempts,
    "release": lambda o: o.held_by or o.step in {"dispatch", "call"},
    "erase": lambda o: not o.unresolved,
}
"""What a decision can be about; every other is about what is unresolved. It is tried on others too."""
crowd = st.lists(st.sampled_from((*PEOPLE[:2], *PEOPLE, ACTOR)), min_size=1, max_size=3)
"""Who decides it one after another; the same person twice, or who asked, among them."""
stale = st.sampled_from((0, 0, 0, 0, 0, 1))
"""How many events behind the last the first of them saw."""
WAYS = ("call", "work", "attempt", *Basis)
routes = st.one_of(
    st.just([]),
    fates.map(lambda fate: [(way, fate) for way in WAYS]),
    fates.map(lambda fate: [(way, fate) for way in reversed(WAYS)]),
    st.lists(st.tuples(st.sampled_from(WAYS), fates), max_size=2),
)
"""How somebody may try to send afterwards, often in every way there is, and what would become of each send."""


class Decisions(RuleBasedStateMachine):
    """One ledger, everybody who may do something with it, and a model of who had allowed what."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World | None = None
        self.before: dict[str, object] = {}

    @initialize(contract=st.sampled_from(("lab.key", "lab.lookup", "lab.nothing")), variant=variants, fate=fates)
    def begin(self, contract, variant, fate):
        self.world = World(contract)
        self.world.adopt(variant._replace(refuses=False))
        self.try_to_send("first", [("call", fate)])

    def teardown(self):
        if self.world is not None:
            self.world.end()

    def one(self, which, doing=""):
        """One of the operations there are; mostly one of those it can be about."""
        listed = self.world.operations()
        about = ABOUT.get(doing, lambda o: o.unresolved)
        fit = [] if which == 3 else [o for o in listed if about(o)]
        return (fit or listed)[which % len(fit or listed)]

    def some(self):
        """There is an operation."""
        return self.world is not None and bool(self.world.operations())

    # -- callers and workers -------------------------------------------------------------------------------------------

    def try_to_send(self, key, ways):
        """Go by each way in turn; what is sent by it is judged as it arrives."""
        world = self.world
        for way, fate in ways:
            if way == "call":
                order = world.guarded.order({"amount": AMOUNTS[key]}, key=key)
                world.act("call", lambda: world.ledger.call(order), fate=fate, asks=key)  # noqa: B023 - it is done at once
                self.came_of("call")
            elif way == "work":
                goes = {name: world.ledger.get(name).operation.attempts for name in world.must_go()}
                world.sweep(fate)
                self.came_of("work")
                left = {name for name, tried in goes.items() if self.before[name].attempts == tried}
                assert not left, f"approved, and the worker did not send it: {left}"
                assert world.overdue() == [], "an end was not recorded by the worker"
            else:
                self.attempt(key, None if way == "attempt" else Basis(way), fate)

    def attempt(self, key, basis, fate):
        """Ask for one more attempt by name, where there is an operation."""
        world = self.world
        doing = "override" if basis is Basis.OPERATOR_OVERRIDE else "attempt"
        for operation in [o.id for o in world.operations() if o.key == key]:
            world.act(doing, lambda: world.ledger.attempt(operation, basis=basis, by="user:ada"), fate=fate)  # noqa: B023 - the same
            self.came_of(doing)

    @rule(key=keys, ways=routes, fate=fates)
    def call(self, key, ways, fate):
        self.try_to_send(key, [("call", fate), *ways])

    @precondition(some)
    @rule(which=whose, ways=routes)
    def press(self, which, ways):
        self.try_to_send(self.one(which).key, ways)

    # -- people --------------------------------------------------------------------------------------------------------

    def decide(self, verb, name, by, behind=0, **said):
        """Decide something; a decision on something older is never taken. Why it was not, or nothing."""
        operation, sends = self.world.ledger.get(name).operation, len(self.world.model.sends)
        refused = self.world.decide(verb, operation.id, by, seen=operation.seq - behind, **said)
        taken = self.world.ledger.get(operation.id).operation.seq > operation.seq
        assert not (taken and behind), f"{verb} was decided on what had changed since"
        assert len(self.world.model.sends) == sends, f"{verb} sent something"
        self.came_of(verb)
        return refused or ("" if taken else "it was on record already")

    @precondition(some)
    @rule(which=whose, who=crowd, behind=stale, ways=routes)
    def approve(self, which, who, behind, ways):
        world, operation = self.world, self.one(which, "approve")
        for n, by in enumerate(who):
            older = 0 if n else behind
            rows = rows_of(world.ledger.store, operation.id)
            against = world.model.against_approve(operation.id, rows, by, world.ledger.store.now(), world.policy)
            refused = self.decide("approve", operation.id, by, older)
            assert bool(refused) == bool(against or older), (refused, against)
        self.try_to_send(operation.key, ways)

    @precondition(some)
    @rule(which=whose, by=crowd, behind=stale, verb=st.sampled_from(("deny", "revoke", "abandon")), ways=routes)
    def end(self, which, by, behind, verb, ways):
        operation = self.one(which, verb)
        refused = self.decide(verb, operation.id, by[0], behind)
        assert refused or verb != "deny" or by[0] != ACTOR, "who asked answered it"
        assert refused or verb != "abandon" or operation.unresolved, "nothing of it was unresolved"
        self.try_to_send(operation.key, ways)

    @precondition(some)
    @rule(which=whose, who=crowd, behind=stale, verb=st.sampled_from(("override", "override", "release")), ways=routes)
    def expose(self, which, who, behind, verb, ways):
        world, operation = self.world, self.one(which, verb)
        for n, by in enumerate(who):
            older = 0 if n else behind
            about = operation.id, rows_of(world.ledger.store, operation.id), by, world.policy.variant
            if verb == "override":
                against = world.model.against_override(*about)
                refused = self.decide(verb, operation.id, by, older)
                assert refused or not against, f"{verb}: {against}"
                told_both = world.ledger.get(operation.id).operation.discrepancy.value != "none"
                assert against or told_both or older or not refused, refused
            else:
                against = world.model.against_release(*about, world.twins(operation.id))
                refused = self.decide(verb, operation.id, by, older)
                assert bool(refused) == bool(against or older), (refused, against)
        self.try_to_send(operation.key, ways)

    @precondition(some)
    @rule(which=whose, by=crowd, behind=stale, looks=st.integers(0, 2), said=st.sampled_from(
        ("wait_until", "investigate", "assign", "escalate")
    ))  # fmt: skip
    def care(self, which, by, behind, looks, said):
        words = {
            "wait_until": {"until": self.world.ledger.store.now() + 300.0},
            "investigate": {"channel": "their support", "looks": looks},
            "assign": {"owner": by[-1]},
            "escalate": {"to": "the desk's lead"},
        }
        self.decide(said, self.one(which).id, by[0], behind, **words[said])

    @rule(variant=variants, which=whose, ways=routes)
    def adopt(self, variant, which, ways):
        self.world.adopt(variant)
        self.came_of("adopt")
        if self.world.operations():
            self.try_to_send(self.one(which).key, ways)

    @precondition(some)
    @rule(twin=keys, which=whose, who=crowd, late=st.booleans(), ways=routes)
    def hold(self, twin, which, who, late, ways):
        """People allow what was not sent yet, before or after an equal call is lost or held; it is tried then."""
        operation = self.one(which, "hold")
        acts = [lambda: self.try_to_send(twin, [("call", "reply_lost")])]
        acts += [lambda by=by: self.decide("approve", operation.id, by) for by in who]
        for act in reversed(acts) if late else acts:
            act()
        self.try_to_send(operation.key, ways)

    # -- evidence, time and the file -----------------------------------------------------------------------------------

    @precondition(some)
    @rule(which=whose, how=st.sampled_from(("late", "reconcile", "resolve")), fate=st.sampled_from(LATE), ways=routes)
    def learn(self, which, how, fate, ways):
        operation, world = self.one(which), self.world
        if how == "late" and operation.attempts and operation.id not in world.model.removed:
            world.late(operation.id, operation.attempts, fate)
        elif how == "reconcile":
            world.act("reconcile", lambda: world.ledger.reconcile(operation.id))
        elif how == "resolve":
            outcome = {"answered": "succeeded", "silence": "accepted"}.get(fate, fate)
            said = {"evidence": {"seen": "on their statement"}, "by": "user:ada", "reason": "I looked"}
            world.act("resolve", lambda: world.ledger.resolve(operation.id, outcome, **said))
        self.came_of(how)
        self.try_to_send(operation.key, ways)

    @precondition(some)
    @rule(hundreds=st.sampled_from((1, 2, 3, 10, -2, -20)), which=whose, ways=routes)
    def clock(self, hundreds, which, ways):
        self.world.now += hundreds * 100.0
        self.world.ledger.store.now()
        self.try_to_send(self.one(which).key, ways)

    @precondition(some)
    @rule(
        passed=st.sampled_from((0, 3, 10)),
        back=st.sampled_from((0, 20)),
        version=st.sampled_from(VERSIONS),
        which=whose,
        ways=routes,
    )
    def restart(self, passed, back, version, which, ways):
        """Time goes by and somebody writes to the oldest; then another process, by a clock that was set back."""
        world, key = self.world, self.one(which).key
        world.now += passed * 100.0
        oldest = world.operations()[0]
        self.decide("assign", oldest.id, "user:ben", owner=f"desk {oldest.seq}")
        world.reopen(back=back * 100.0, version=version)
        self.came_of("restart")
        self.try_to_send(key, ways)

    @precondition(some)
    @rule(
        what=st.sampled_from(("erase", "retain")),
        which=whose,
        seconds=st.sampled_from((0.0, 2_000.0)),
        ways=routes,
    )
    def keep(self, what, which, seconds, ways):
        operation, world = self.one(which, what), self.world
        if what == "erase":
            world.erase(operation.id)
        else:
            world.now += seconds
            world.retain()
        self.came_of(what)
        self.try_to_send(operation.key, ways)

    # -- what holds after each step ------------------------------------------------------------------------------------

    def came_of(self, doing):
        """After each single act: an outcome comes of evidence, and an unknown ends by nothing else."""
        store = self.world.ledger.store
        stood, self.before = self.before, {o.id: o for o in self.world.operations()}
        for name, now in self.before.items():
            if now.unresolved and self.world.model.given_up(name):
                self.world.model.told(name, rows_of(store, name))
        for name, was in stood.items():
            now = self.before[name]
            columns = [(o.dispatch, o.outcome, o.discrepancy, o.exposure, o.attempts) for o in (was, now)]
            if doing not in EVIDENCE:
                assert columns[0] == columns[1], f"{doing} changed an outcome"
            if was.unresolved and not now.unresolved:
                came = [row for row in rows_of(store, name) if row.seq > was.seq and is_certain(row)]
                assert came, f"{doing} ended an unknown without evidence"

    @precondition(lambda self: self.world is not None)
    @invariant()
    def nothing_went_without_authority(self):
        assert self.world.objections == []

    @precondition(lambda self: self.world is not None)
    @invariant()
    def what_may_be_sent_is_in_sight(self):
        assert self.world.out_of_sight() == []

    @precondition(lambda self: self.world is not None)
    @invariant()
    def every_record_holds(self):
        for history in self.world.ledger.store.histories():
            assert audit(history) == ()
            told = replay(history)[-1].after
            assert told == Columns(**{name: getattr(history.operation, name) for name in Columns.__struct_fields__})


Decisions.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
)
TestDecisions = Decisions.TestCase
