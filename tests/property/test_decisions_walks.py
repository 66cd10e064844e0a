"""The same machine by plain chance: long lives, in which what people can decide is often decided."""

from __future__ import annotations

import random

from tests.property.decisions_model import Variant
from tests.property.decisions_world import ACTOR, AMOUNTS
from tests.property.test_decisions_machine import CLASSES, FATES, LATE, NIGHTLY, PEOPLE, VERSIONS, WAYS, Decisions

WALKS, STEPS = (2_000, 60) if NIGHTLY else (60, 45)
HOLDS = 3_000 if NIGHTLY else 100
"""Walks among holds only: a third as long."""
CONTRACTS = ("lab.key", "lab.lookup", "lab.nothing")


class Chance(random.Random):
    """One walk's choices."""

    def variant(self):
        """A policy; most ask somebody, few refuse."""
        return Variant(
            "any", people=self.choice((0, 0, 1, 1, 2)), approvers=self.choice((frozenset(), frozenset(PEOPLE))),
            classes=frozenset(self.choice(CLASSES)), seconds=self.choice((250.0, 700.0)), uses=self.choice((1, 2)),
            refuses=self.random() < 0.1, one_shot=self.choice((*["no"] * 6, "yes", "absolute")),
            override_people=self.choice((1, 1, 2)), breaker=self.random() < 0.3,
        )  # fmt: skip

    def another(self, variant):
        """What is adopted next: mostly the one in force, with one thing changed."""
        fresh, field = self.variant(), self.choice(Variant._fields)
        return fresh if self.random() < 0.4 else variant._replace(**{field: getattr(fresh, field)})

    def ways(self):
        """Nothing, everything there is in any order, or one way."""
        ways = [(way, self.fate()) for way in self.sample(WAYS, len(WAYS))]
        return ways[: self.choice((0, 0, 1, len(ways)))]

    def fate(self):
        """What becomes of a send: mostly nothing that is known."""
        return self.choice((*FATES, "reply_lost", "not_sent"))

    def lenient(self):
        """A policy under which what is held may go beside another."""
        return self.variant()._replace(people=self.choice((0, 0, 1)), one_shot="no", refuses=False, breaker=False)

    def try_once(self):
        """Its caller, or the worker, or both."""
        return [(way, self.fate()) for way in self.choice((["call"], ["work"], ["work", "call"], []))]

    def crowd(self):
        """Who decides; the requester, or the same person twice, now and then."""
        return [self.choice((*PEOPLE, *PEOPLE, ACTOR)) for _ in range(self.randint(1, 3))]

    def which(self):
        """Which operation it is about."""
        return self.choice((0, 0, 1, 2, 3))

    def behind(self):
        """How old what they saw is."""
        return int(self.random() < 0.1)


STEPS_OF = {
    "call": lambda c: {"key": c.choice((*AMOUNTS, "second")), "ways": c.ways(), "fate": c.fate()},
    "press": lambda c: {"which": c.which(), "ways": c.ways()},
    "approve": lambda c: {"which": c.which(), "who": c.crowd(), "behind": c.behind(), "ways": c.ways()},
    "expose": lambda c: {
        "which": c.which(), "who": c.crowd(), "behind": c.behind(), "ways": c.ways(),
        "verb": c.choice(("override", "release")),
    },
    "end": lambda c: {
        "which": c.which(), "by": c.crowd(), "behind": c.behind(), "ways": c.ways(),
        "verb": c.choice(("deny", "revoke", "abandon")),
    },
    "care": lambda c: {
        "which": c.which(), "by": c.crowd(), "behind": c.behind(), "looks": c.randint(0, 2),
        "said": c.choice(("wait_until", "investigate", "assign", "escalate")),
    },
    "adopt": lambda c: {"variant": c.variant(), "which": c.which(), "ways": c.ways()},
    "learn": lambda c: {
        "which": c.which(), "how": c.choice(("late", "reconcile", "resolve")), "fate": c.choice(LATE), "ways": c.ways()
    },
    "clock": lambda c: {"hundreds": c.choice((1, 2, 3, 10, -2, -20)), "which": c.which(), "ways": c.ways()},
    "restart": lambda c: {
        "passed": c.choice((0, 3, 10)), "back": c.choice((0, 20)), "version": c.choice(VERSIONS), "which": c.which(),
        "ways": c.ways(),
    },
    "hold": lambda c: {
        "twin": c.choice((*AMOUNTS,)), "which": c.which(), "who": c.crowd(), "late": c.random() < 0.5, "ways": c.ways()
    },
    "keep": lambda c: {
        "what": c.choice(("erase", "retain")), "which": c.which(), "seconds": c.choice((0.0, 2_000.0)),
        "ways": c.ways(),
    },
}  # fmt: skip
"""By name, the arguments of each step."""
WEIGHTS = {"call": 3, "approve": 4, "expose": 5, "adopt": 2, "learn": 2, "clock": 2, "end": 2, "restart": 2}
"""How often each comes; the others once."""


AMONG_HOLDS = {
    "hold": lambda c: {
        "twin": c.choice(("first", "second", "third")), "which": c.which(), "who": c.crowd(), "late": c.random() < 0.5,
        "ways": c.try_once(),
    },
    "expose": lambda c: {
        "which": c.which(), "who": c.crowd()[:2], "behind": 0, "verb": "release", "ways": c.try_once()
    },
    "learn": lambda c: {
        "which": 0, "how": "resolve", "fate": c.choice(("answered", "rejected")), "ways": c.try_once()
    },
    "adopt": STEPS_OF["adopt"],
    "press": lambda c: {"which": c.which(), "ways": c.try_once()},
}  # fmt: skip
"""What makes a hold, lifts it and goes beside it, and what changes how many people that takes."""


def walk(seed, steps_of=STEPS_OF, weights=WEIGHTS, steps=STEPS, policy=Chance.variant):
    """One life: what holds is asked after each step, and what was done is told with what broke."""
    chance, machine, done = Chance(seed), Decisions(), []
    try:
        machine.begin(chance.choice(CONTRACTS), policy(chance), chance.fate())
        names = [name for name in steps_of for _ in range(weights.get(name, 1))]
        for _ in range(steps):
            name = chance.choice(names)
            said = steps_of[name](chance)
            if name == "adopt":
                fresh = chance.another(machine.world.policy.variant)
                said["variant"] = fresh if policy is Chance.variant else policy(chance)
            done.append((name, said))
            getattr(machine, name)(**said)
            machine.nothing_went_without_authority()
            machine.what_may_be_sent_is_in_sight()
            machine.every_record_holds()
    except AssertionError as error:
        error.add_note(f"walk {seed} came to step {len(done)}: {done[-3:]}")
        raise
    finally:
        machine.teardown()


def test_nothing_goes_without_authority_by_chance():
    """Whatever is done in whatever order: no send without the word of whoever had to give it."""
    for seed in range(WALKS):
        walk(seed)


def test_nothing_goes_beside_another_by_chance():
    """Held, let go, settled and held by another: no send but its caller's, beside what enough people let it go."""
    for seed in range(HOLDS):
        walk(seed, AMONG_HOLDS, {"expose": 3, "hold": 2}, STEPS // 2, Chance.lenient)
