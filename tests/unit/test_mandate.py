"""The auditor of people's decisions: each sentence it can say is said of the forged record that deserves it."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.asking import ASKED_SECONDS, LEA, MARA, NOOR, approved, asked, claim, wanted, who
from tests.crash.keeping import settled, whole
from tests.crash.stepping import NOON, action, claimed, draw, held, observed, order, ruled

from counterfoil.domain.approval import binding, proposed_of
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Amendment, NewEvent
from counterfoil.domain.consent import deny, revoke
from counterfoil.domain.event import Decided, EventKind, Noted, begun_of, encode
from counterfoil.domain.override import abandon, override
from counterfoil.domain.permission import Sought
from counterfoil.domain.terms import Required, Terms
from counterfoil.domain.violation import Law
from counterfoil.domain.words import AttemptClass, Basis, Finding
from counterfoil.plans.claims import begun_for

OVERRIDE = Basis.OPERATOR_OVERRIDE
LONG = Required(seconds=1e9, attempts=tuple(AttemptClass), uses=1)
QUESTION = proposed_of(asked().events[0])


def said(history):
    """What the auditor says about people, in order."""
    return [found.problem for found in audit(whole(history)) if found.law is Law.AUTHORITY]


def forged(history, record, kind=EventKind.DECIDED, at=NOON + 9):
    """The history with one more record that no rule wrote, well chained."""
    new = NewEvent(kind=kind, record=encode(record))
    return ruled(history, lambda h, _: Amendment(operation=h.operation, events=(new,)), at)


def decision(history, word, at=NOON + 9, **changes):
    """The history with a forged decision, whole but for what is changed."""
    made = Decided(decision=word, by=MARA, reason="sure", seen_seq=history.operation.seq)
    return forged(history, msgspec.structs.replace(made, **changes), at=at)


def answered_yes(history, by=MARA, at=NOON + 9, asks=QUESTION):
    """The history with a forged approval."""
    return decision(history, "approve", at, by=by, facts={"binding": binding(asks), "of": 1})


def question(history, *, bound=(), at=NOON + 9, **changes):
    """The history with a forged question."""
    proposed = msgspec.structs.replace(proposed_of(asked().events[0]), **changes)
    proposed = msgspec.structs.replace(proposed, bound=msgspec.structs.replace(proposed.bound, **dict(bound)))
    return forged(history, proposed, EventKind.PROPOSED, at)


def attempt(history, at=NOON + 9, basis="", attempt_class=AttemptClass.FIRST, approval=2, **changes):
    """The history with a forged claim, by default under the approval that event 2 gave."""
    number = history.operation.attempts + 1
    begun = begun_for(action(), draw(number + 3), destination="https://api.example")
    word = msgspec.structs.replace(begun.attempt, number=number, attempt_class=attempt_class, approval=approval)
    made = msgspec.structs.replace(begun, attempt=word, basis=basis, policy="pl1:a", provider_key="op_1")
    return forged(history, msgspec.structs.replace(made, **changes), EventKind.BEGUN, at)


def unknown(made=None):
    """One attempt without an approval, of which nobody knows what became."""
    return observed(claimed(made), Finding.UNKNOWN)


def unknown_under(required=LONG):
    """One attempt under an approval, of which nobody knows what became."""
    made = wanted(required=required)
    history = approved(made)
    return observed(ruled(history, claim(history, made), NOON + 2), Finding.UNKNOWN, of=action(), at=NOON + 3)


def theirs():
    """A question that a person's call put."""
    made = wanted()
    return asked(msgspec.structs.replace(made, intent=msgspec.structs.replace(made.intent, actor=MARA)))


ABANDONED = ruled(unknown(), abandon(who(unknown())))
DENIED, REVOKED = ruled(asked(), deny(who(asked()))), ruled(asked(), revoke(who(asked())))
EXPIRED = decision(asked(), "expire", NOON + 101, by="house", seen_seq=0)
TWO = msgspec.structs.replace(QUESTION.required, people=2)
NAMED = msgspec.structs.replace(QUESTION.required, approvers=(NOOR,))


@pytest.mark.parametrize(
    "history",
    [
        asked(),
        approved(),
        DENIED,
        REVOKED,
        EXPIRED,
        ABANDONED,
        settled(),
        unknown_under(),
        answered_yes(asked()),
        attempt(approved()),
        question(approved()),
        question(EXPIRED, at=NOON + 102),
        decision(asked(), "erase", by="house", seen_seq=0),
        decision(unknown(), "escalate", by="house", seen_seq=0),
        decision(unknown(), "assign", facts={"to": "treasury"}),
    ],
)
def test_an_honest_record_is_said_nothing_of(history):
    """What rules wrote, and what they could have written, is nobody's fault."""
    assert said(history) == []


# -- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (question(approved(), bound={"actor": "agent:other"}), "it asks in another name than the one that asked"),
        (question(approved(), required=Required(people=0)), "it asks nobody"),
        (question(approved(), required=Required(uses=0)), "it asks nobody"),
        (question(DENIED), "it asks again what had been answered for good"),
        (question(REVOKED), "it asks again what had been answered for good"),
    ],
)
def test_a_question_that_could_not_be_put(history, sentence):
    """In another's name, of nobody, or after a no."""
    assert said(history) == [sentence]


# -- by whom ---------------------------------------------------------------------------------------------------------

PEOPLE = ["approve", "deny", "revoke", "override", "release", "abandon", "wait_until", "investigate", "assign"]


@pytest.mark.parametrize("word", [*PEOPLE, "escalate", "erase"])
def test_an_agent_decides_nothing(word):
    """Whatever it decides, it is named."""
    assert "an agent decided it" in said(decision(unknown(), word, by="agent:other"))


@pytest.mark.parametrize("word", PEOPLE)
def test_the_house_decides_nothing_for_people(word):
    """A rule's name under what only people decide."""
    assert "no person decided it" in said(decision(unknown(), word, by="house"))


@pytest.mark.parametrize("word", [*PEOPLE, "erase"])
def test_people_decide_on_what_they_saw(word):
    """An older version, or one that was not there yet."""
    for seen in (1, 3):
        assert f"it was decided on event {seen}, and 2 was the last" in said(decision(unknown(), word, seen_seq=seen))


@pytest.mark.parametrize("word", [*PEOPLE, "erase"])
def test_people_say_why(word):
    """A decision without a reason."""
    assert "it gives no reason" in said(decision(unknown(), word, reason=""))


# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (answered_yes(settled()), "it answers yes where nobody was asked"),
        (answered_yes(approved(), NOOR), "it answers yes where nobody was asked"),
        (answered_yes(DENIED, NOOR), "it answers yes where nobody was asked"),
        (answered_yes(asked(), at=NOON + 101), "it answers yes after the end"),
        (answered_yes(asked(wanted(required=TWO))), "it answers another question"),
        (
            answered_yes(theirs(), f"{MARA} (uid 7)", asks=proposed_of(theirs().events[0])),
            "whoever asked, or had answered, answered again",
        ),
        (
            answered_yes(
                approved(wanted(required=TWO), MARA),
                f"{MARA} (uid 7)",
                asks=msgspec.structs.replace(QUESTION, required=TWO),
            ),
            "whoever asked, or had answered, answered again",
        ),
        (
            answered_yes(asked(wanted(required=NAMED)), LEA, asks=msgspec.structs.replace(QUESTION, required=NAMED)),
            "the policy does not name who answered",
        ),
        (decision(settled(), "deny"), "it answers no where nobody was asked any more"),
        (decision(approved(), "deny"), "it answers no where nobody was asked any more"),
        (decision(asked(), "deny", NOON + 101), "it answers no where nobody was asked any more"),
        (decision(DENIED, "revoke"), "it takes back what was not given, or was done"),
        (decision(EXPIRED, "revoke", NOON + 102), "it takes back what was not given, or was done"),
        (decision(settled(), "revoke"), "it takes back what was not given, or was done"),
        (decision(asked(), "expire", NOON + 100, by="house"), "it had not come to its end"),
        (decision(approved(), "expire", NOON + 101, by="house"), "it had not come to its end"),
        (decision(settled(), "expire", NOON + 1e9, by="house"), "it had not come to its end"),
        (decision(DENIED, "expire", NOON + 101, by="house"), "it had not come to its end"),
        (decision(EXPIRED, "expire", NOON + 102, by="house"), "it had not come to its end"),
    ],
)
def test_an_answer_that_could_not_be_given(history, sentence):
    """Unasked, too late, to another question, by who may not, or twice."""
    assert said(history) == [sentence]


def test_one_yes_of_two_is_no_permission():
    """Counted by the question's own number; the second makes it one, from that event on."""
    two = msgspec.structs.replace(QUESTION, required=TWO)
    one = answered_yes(asked(wanted(required=TWO)), asks=two)
    assert said(attempt(one)) == ["an attempt was dispatched while permission was pending"]
    both = answered_yes(one, NOOR, asks=two)
    assert said(attempt(both, approval=3)) == []
    assert said(attempt(both, NOON + 9 + ASKED_SECONDS, approval=3)) == []


# -- exposure --------------------------------------------------------------------------------------------------------


def overridden(history, by=MARA, at=NOON + 9, **facts):
    """The history with a forged override."""
    return decision(history, "override", at, by=by, facts={"of": 1} | facts)


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (
            overridden(overridden(unknown(), of=2), f"{MARA} (uid 7)", of=2),
            "whoever asked, or had decided it, decided it again",
        ),
        (
            overridden(unknown(), "agent:pay"),
            "whoever asked, or had decided it, decided it again",
        ),
        (overridden(ABANDONED), "it was abandoned"),
        (overridden(DENIED), "it was closed"),
        (decision(unknown(), "release", facts={"of": 1, "lifted": False}), "it was sent already"),
        (decision(held(), "release", facts={"of": 2, "lifted": True}), "1 of 2 people lifted the hold"),
        (decision(settled(), "abandon"), "nothing of it was unresolved"),
        (decision(asked(), "abandon"), "nothing of it was unresolved"),
    ],
)
def test_a_decision_about_exposure_that_could_not_be_made(history, sentence):
    """Twice by one person, on what was over, on what was sent, or by too few."""
    assert sentence in said(history)


def bases(history):
    """What the auditor says about the basis of attempts."""
    return [found.problem for found in audit(whole(history)) if found.law is Law.BASIS]


def pushed(history, at=NOON + 9, **changes):
    """The history with one more attempt on an override."""
    return attempt(history, at, basis=OVERRIDE.value, attempt_class=AttemptClass.OVERRIDE, approval=0, **changes)


NO_OVERRIDE = "operator_override did not hold: no override was decided"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (pushed(overridden(unknown())), []),
        (pushed(overridden(overridden(unknown(), of=2), NOOR, of=2)), []),
        (pushed(unknown()), [NO_OVERRIDE]),
        (pushed(overridden(unknown(), of=2)), [NO_OVERRIDE]),
        (
            pushed(observed(overridden(unknown()), Finding.REJECTED, rule="answers[0]", at=NOON + 10), NOON + 11),
            [NO_OVERRIDE],
        ),
        (pushed(observed(overridden(unknown()), Finding.UNKNOWN, at=NOON + 10, reason="reset"), NOON + 11), []),
    ],
    ids=["one", "two", "none", "one of two", "before the news", "before silence"],
)
def test_an_override_stands_until_it_is_used_or_news_comes(history, expected):
    """As many people as it was to take, for one attempt, on what was known."""
    assert bases(history) == expected


def test_an_attempt_uses_the_overrides_up():
    """The second attempt on one override has none."""
    under = Terms(policy=1, digest="pl1:a")
    history = ruled(unknown(), override(who(unknown()), under, action().contract), NOON + 5)
    sent = ruled(history, claim(history, order(terms=under), basis=OVERRIDE, under=Sought(terms=under)), NOON + 6)
    silent = observed(sent, Finding.UNKNOWN, at=NOON + 7)
    assert bases(silent) == []
    assert bases(pushed(silent)) == [NO_OVERRIDE]


def test_a_release_by_both_lifts_it():
    """The first of two lifts nothing, the second does; the row may say so only then."""
    one = decision(held(), "release", facts={"of": 2, "lifted": False})
    both = decision(one, "release", by=NOOR, facts={"of": 2, "lifted": True})
    assert (said(one), said(both)) == ([], [])
    rows = [f.problem for f in audit(whole(both)) if f.law is Law.PROJECTION]
    assert rows == ["held_by is 'op_9' and its events say ''"]
    assert [f for f in audit(whole(one)) if f.law is Law.PROJECTION] == []


def release(history, by=MARA, at=NOON + 9, of=2, lifted=False):
    """The history with a forged release."""
    return decision(history, "release", at, by=by, facts={"of": of, "beside": ["op_9"], "lifted": lifted})


def hold(history, holder="op_8", at=NOON + 9):
    """The history with a forged record that somebody holds it back."""
    return forged(history, Noted(note=f"held by {holder}"), EventKind.HELD, at)


def rows(history):
    """What the auditor says about the operation's own row."""
    return [f.problem for f in audit(whole(history)) if f.law is Law.PROJECTION]


def test_a_second_release_is_counted_anew():
    """The first two are used up by the hold they lifted: the same people may decide the next, and one is not two."""
    both = release(release(held()), NOOR, lifted=True)
    assert said(release(release(both), NOOR, lifted=True)) == []
    assert said(release(both, lifted=True)) == ["1 of 2 people lifted the hold"]
    assert said(release(release(both))) == ["whoever asked, or had decided it, decided it again"]


def test_who_holds_it_is_the_last_that_did():
    """Each hold names its holder; a release that lifts one, a question, a no or an attempt ends it."""
    assert rows(hold(held(holder="op_8"))) == []
    assert rows(hold(held())) == ["held_by is 'op_9' and its events say 'op_8'"]
    lifted = "held_by is 'op_9' and its events say ''"
    assert rows(release(held(), of=1, lifted=True)) == [lifted]
    after = hold(release(held(), of=1, lifted=True), "op_9")
    assert rows(after) == []
    assert rows(decision(after, "assign", facts={"to": "payments"})) == []
    for ended in (question(held()), decision(held(), "revoke")):
        assert lifted in rows(ended)


WAITS = "it is resolved and still owes a step, or waits and owes none"


def test_what_was_held_or_released_is_no_workers():
    """Approved or not, before or after: from then on it is its caller's, until the next attempt."""
    for history in (hold(approved()), release(approved())):
        assert WAITS in rows(history)
    assert rows(approved()) == []
    asks = question(held())
    yes = answered_yes(asks, asks=proposed_of(asks.events[-1]))
    assert WAITS not in rows(yes)
    forged_row = msgspec.structs.replace(yes.operation, step="dispatch")
    assert WAITS in rows(msgspec.structs.replace(yes, operation=forged_row))


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (hold(unknown()), "it was held back after it had been sent"),
        (hold(settled()), "it was held back after it had been sent"),
        (hold(asked()), "it was held back while permission was pending"),
        (hold(REVOKED), "it was held back while permission was revoked"),
    ],
)
def test_a_hold_that_could_not_be(history, sentence):
    """Sent already, or not permitted to go anyway."""
    assert said(history) == [sentence]


# -- attempts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "sentence"),
    [
        (attempt(asked(), approval=0), "an attempt was dispatched while permission was pending"),
        (attempt(EXPIRED, NOON + 102, approval=0), "an attempt was dispatched while permission was expired"),
        (attempt(ABANDONED, approval=0), "an attempt was dispatched after it was abandoned"),
        (attempt(observed(claimed(), Finding.NOT_SENT)), "an attempt names an approval, and nobody was asked"),
        (attempt(approved(), approval=0), "an attempt names another approval than the one that stands"),
        (attempt(approved(), approval=1), "an attempt names another approval than the one that stands"),
        (attempt(approved(), NOON + 102), "an attempt was dispatched after its approval had ended"),
        (attempt(approved(), attempt_class=AttemptClass.SAME_KEY), "its approval allows no attempt of class same_key"),
        (attempt(approved(), contract="ct1:other"), "its contract is not the one that was approved"),
        (attempt(approved(), code="cd1:other"), "its code is not the one that was approved"),
        (attempt(approved(), policy="pl1:other"), "its policy is not the one that was approved"),
        (attempt(approved(), destination="https://other"), "its destination is not the one that was approved"),
        (
            attempt(unknown_under(), basis=Basis.SAME_KEY_REPLAY.value, attempt_class=AttemptClass.SAME_KEY),
            "its approval was used up",
        ),
    ],
)
def test_an_attempt_without_the_word_it_needed(history, sentence):
    """Every way in which an attempt goes beyond what people allowed, each by its sentence alone."""
    assert said(history) == [sentence]


def test_a_no_allows_nothing():
    """Refused or taken back: its end and its permission are both named."""
    for ended, word in ((DENIED, "denied"), (REVOKED, "revoked")):
        assert said(attempt(ended, approval=0)) == [
            "an attempt was dispatched after it was closed",
            f"an attempt was dispatched while permission was {word}",
        ]


@pytest.mark.parametrize("word", ["deny", "revoke"])
def test_an_override_is_no_way_around_a_no(word):
    """Refused while the first attempt is unresolved: the overridden one is named, and so is it after a forged end."""
    before = question(unknown_under(), required=LONG, at=NOON + 4)
    refused = decision(before, word, NOON + 5)
    assert said(refused) == []
    standing = {"deny": "denied", "revoke": "revoked"}[word]
    assert said(pushed(overridden(refused, at=NOON + 6))) == [
        f"an attempt was dispatched while permission was {standing}"
    ]


def test_an_override_of_what_has_expired_is_a_permission():
    """The question ran out, people decided: nothing is wrong with that."""
    before = question(unknown_under(), at=NOON + 4)
    ended = decision(before, "expire", NOON + 200, by="house", seen_seq=0)
    assert said(pushed(overridden(ended, at=NOON + 201), NOON + 202)) == []


def test_what_stayed_gives_its_use_back():
    """A second attempt under one approval is right where the first is proven not to have left."""
    history = approved()
    stayed = observed(ruled(history, claim(history), NOON + 2), Finding.NOT_SENT, of=action(), at=NOON + 3)
    again = attempt(stayed, basis=Basis.NOT_SENT.value, attempt_class=AttemptClass.AFTER_NOT_SENT)
    assert said(again) == []
    assert begun_of(again.events[-1]).attempt.approval == 2


# -- what a question names -------------------------------------------------------------------------------------------


def test_a_question_is_about_what_was_frozen():
    """It is about the frozen payload under the operation's key; each that is not is named."""
    other = question(approved(), provider_key="op_other")
    assert bases(other) == ["it names another provider key than the operation's first record"]
    for digest, sentence in (
        ("sd1:other", "it asks about another payload than the one that was frozen"),
        ("", "it names no payload digest, so nothing says what was asked"),
    ):
        found = [f.problem for f in audit(whole(question(approved(), bound={"payload_digest": digest})))]
        assert sentence in found
