"""Judging anew: what is kept of an honest observation proves it again, and a rewritten finding is found out."""

from __future__ import annotations

import json

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain import rejudge as again
from counterfoil.domain.absence import Absence
from counterfoil.domain.action import Action
from counterfoil.domain.answer import Refused, Replied, Returned, Silent
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.clause import UNKNOWN, holds, kept_at
from counterfoil.domain.contract import Contract, WebhookRule, digest
from counterfoil.domain.event import Begun, Event, EventKind, History, Intended, Noted, Removed, encode
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.identifier import number, operation_id
from counterfoil.domain.operation import Operation
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.reading import Reading, ReadingKind
from counterfoil.domain.rejudge import Judgement, rejudge
from counterfoil.domain.steady import Steady
from counterfoil.domain.verdict import evidence_of
from counterfoil.domain.words import Coverage, Finding, Source
from counterfoil.plans import observing

T0 = 1_800_000_000.0
N = number(T0, 7)
ID = operation_id(N, bytes(10))
KEY, LOOKUP, CALDAV = contracts.load("lab.key"), contracts.load("lab.lookup"), contracts.load("caldav.put_event")
PLAIN = contracts.load("function.plain")
DONE = Replied(status=201, body=b'{"id":"e-1","state":"done"}')
ASKED = Intended(
    tenant="t", actor="a", action="refund", key="k", account="acct", fingerprint="f", effect="e", owner="o", value=1.0
)
WHOLE = Reading(
    kind=ReadingKind.FOUND, items=1, positive_control=True, negative_control=True, external_id="e-1",
    compared={"account": "equal", "reference": "equal", "": "equal"}, state={"/state": "done"},
)  # fmt: skip
NOTHING = Reading(kind=ReadingKind.ABSENT, items=1, positive_control=True, negative_control=True)


def action(contract: Contract, **changes) -> Action:
    """An action under a contract."""
    made = Action(name="refund", effect="refund", account="acct", contract=contract, contract_digest=digest(contract))
    return msgspec.structs.replace(made, **changes)


def claimed(contract: Contract, which=1):
    """The record of a claim."""
    return Begun(
        attempt=Attempt(number=which, token=f"w.{which}", worker="w", send_seconds=10.0), provider_key=ID,
        contract=digest(contract), contract_id=contract.id,
        assumptions={"longest_delivery": {"seconds": 20.0, "by": "platform", "why": "it gives up"}},
    )  # fmt: skip


KINDS = {Begun: EventKind.BEGUN, Evidence: EventKind.OBSERVED, Noted: EventKind.LOOKING, Removed: EventKind.REMOVED}


def history(*entries, step=60.0) -> History:
    """One event a minute by every clock; evidence is parted into record and body as it is when it is written."""
    events = []
    for seq, given in enumerate(entries, start=1):
        timed = isinstance(given, Begun | Noted | Evidence)
        entry = msgspec.structs.replace(given, steady=Steady("here", seq * step)) if timed else given
        record, body = entry, None
        if isinstance(entry, Evidence):
            said = observing.sealed(entry, bytes(16))
            record, body = said.line, said.body
        line = record if isinstance(record, bytes) else encode(record)
        events.append(
            Event(n=N, seq=seq, kind=KINDS[type(entry)], at=T0 + seq * step, record=line, body=body, hash=b"")
        )
    operation = Operation(
        n=N, id=ID, tenant="t", actor="a", action="refund", key="k", account="acct", fingerprint="f", effect="e",
        owner="o", value=1.0, created_at=T0, updated_at=T0, attempts=1, seq=len(events),
    )  # fmt: skip
    return History(operation=operation, events=tuple(events))


def answered(answer, contract=KEY, **changes) -> Evidence:
    """What the judge makes of an answer, or what somebody made of that."""
    return msgspec.structs.replace(observing.judged(action(contract), answer, 1), **changes)


SILENCE = answered(Silent(may_have_left=True, reason="read_timeout"))
BESIDE = claimed(LOOKUP, 2)
"""Another attempt that nobody has reported on."""
PAID = Noted(note="look", facts={"look": 0})


def looked(reading, contract=LOOKUP, *, proven=False, **changes) -> Evidence:
    """What a look's reading becomes, or what somebody made of that."""
    verdict = Absence(proven=proven)
    made = evidence_of(
        reading,
        look=contract.looks[0],
        index=0,
        attempts=(Attempt(number=1, token="w"),),
        effect="refund",
        absence=verdict,
    )
    return msgspec.structs.replace(made, **changes)


def of(evidence, contract=KEY, *before, registered=None, step=60.0):
    """The one judgement on the last event of a history."""
    (one,) = rejudge(history(claimed(contract), *before, evidence, step=step), registered or action(contract))
    return one.broken or one.unasked


def by_look(evidence, contract=LOOKUP, **more):
    """The same of a look that was paid for after silence."""
    return of(evidence, contract, SILENCE, PAID, **more)


# -- what was handed in ----------------------------------------------------------------------------------------------

HOOK = WebhookRule(where={"/t": "done"}, finding="succeeded", reference="/r", match={"/n": "/n"}, source="service")
HOOKED = msgspec.structs.replace(KEY, webhooks=(HOOK,))


def event(**changes) -> Evidence:
    """What an event proved by that clause, or what somebody made of that."""
    made = Evidence(
        source=Source.WEBHOOK, finding=Finding.SUCCEEDED, attempt=1, rule="webhooks[0]", effect="refund",
        facts={"compared": {"/n": "equal"}},
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_what_was_handed_in_is_judged_as_far_as_it_is_kept():
    """An event's clause is asked; what stood in it beside that, and a statement's line, nobody has any more."""
    assert of(event(), HOOKED, SILENCE) == again.NOT_KEPT
    assert of(event(source=Source.STATEMENT, rule="statement.line"), HOOKED, SILENCE) == again.BY_STATEMENT


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rule": "webhooks[1]"}, "no clause"),
        ({"rule": "answers[0]"}, "no clause"),
        ({"finding": Finding.REJECTED}, "proves succeeded"),
        ({"coverage": Coverage.PROVIDER_KEY}, "proves succeeded of attempt"),
        ({"facts": {"compared": {"/n": "different"}}}, "/n was not found equal"),
        ({"facts": {"compared": {}}}, "/n was not found equal"),
    ],
)
def test_a_rewritten_event_is_found(changes, problem):
    """Another clause, finding or coverage than the contract's, or a comparison that did not hold."""
    assert problem in of(event(**changes), HOOKED, SILENCE)


# -- what stands ------------------------------------------------------------------------------------------------------


def test_an_honest_answer_is_proven_again():
    """By its clause, with the values that are kept of it; nothing is said of what is unknown."""
    assert of(answered(DONE)) == ""
    assert of(answered(DONE, source=Source.LATE_ANSWER), KEY, SILENCE) == ""
    assert rejudge(history(claimed(KEY), answered(Replied(status=500))), action(KEY)) == ()


def test_an_honest_look_is_proven_again():
    """Found by every field, a duplicate by its first, absent by the calculator."""
    twice = msgspec.structs.replace(WHOLE, kind=ReadingKind.DUPLICATE, reason="duplicate_suspected")
    assert by_look(looked(WHOLE)) == ""
    assert by_look(looked(twice)) == ""
    assert by_look(looked(NOTHING, proven=True)) == ""


def test_texts_are_fields_too():
    """A calendar's object is equal only where every named property is; what is spelled in the address is `scope`."""
    look = CALDAV.looks[0]
    fields = ("account", "reference", *look.match.material, *look.match.text.properties)
    reading = msgspec.structs.replace(WHOLE, compared=dict.fromkeys(fields, "equal"), state={})
    assert by_look(looked(reading, CALDAV), CALDAV) == ""
    less = msgspec.structs.replace(reading, compared=dict.fromkeys(fields[:-1], "equal"))
    assert by_look(looked(less, CALDAV), CALDAV) == f"{fields[-1]} was not found equal"


def test_a_cut_answer_is_judged_by_its_status():
    """Nothing else was there then either, so it is judged whole."""
    cut = Replied(status=201, complete=False, reason="cut")
    bare = msgspec.structs.replace(KEY, answers=(msgspec.structs.replace(KEY.answers[0], where={}),), looks=())
    assert of(answered(cut, bare), bare) == ""
    forged = answered(cut, finding=Finding.SUCCEEDED, rule="answers[0]", effect="refund")
    assert of(forged) == "a status line alone does not prove that"


# -- what cannot be asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "contract", "registered", "why"),
    [
        (answered(Silent(may_have_left=False, reason="connect_failed")), KEY, action(KEY), again.BY_WIRE),
        (answered(DONE, source=Source.OPERATOR, rule="operator.finding"), KEY, action(KEY), again.BY_PERSON),
        (answered(Returned(value=1), PLAIN), PLAIN, action(PLAIN, code="cd1:x"), again.BY_FUNCTION),
        (answered(Refused(reason="no"), PLAIN), PLAIN, action(PLAIN, code="cd1:x"), again.BY_FUNCTION),
        (answered(DONE), KEY, action(LOOKUP), again.OTHER_CONTRACT),
        (answered(Replied(status=401, body=b'{"error":"unauthorized"}')), KEY, action(KEY), again.NOT_KEPT),
    ],
)
def test_what_cannot_be_asked_is_not_said_to_hold(evidence, contract, registered, why):
    """Each with its reason."""
    (one,) = rejudge(history(claimed(contract), evidence), registered)
    assert one == Judgement(seq=2, unasked=why)


def test_without_an_action_or_a_body_nothing_is_judged():
    """The one is not registered here, the other was erased, or removed with its record."""
    stands = history(claimed(KEY), answered(DONE))
    assert rejudge(stands, None) == (Judgement(seq=2, unasked=again.NO_ACTION),)
    bare = (stands.events[0], msgspec.structs.replace(stands.events[1], body=None))
    assert rejudge(History(operation=stands.operation, events=bare), action(KEY)) == (
        Judgement(seq=2, unasked=again.ERASED),
    )


def test_what_retention_removed_is_not_judged_and_what_came_later_is():
    """One sentence for each attempt that had settled; a later look stands on the contract that was kept."""
    attempts = (
        Attempt(number=1, token="w.1", finding=Finding.REJECTED),
        Attempt(number=2, token="w.2", finding=Finding.UNKNOWN),
    )
    left = Removed(
        events=4, head="00", intent=ASKED, created_at=T0, updated_at=T0, attempts=attempts, contract=digest(LOOKUP),
        rule="ordinary", policy="p", by="w",
    )  # fmt: skip
    found = looked(WHOLE, attempt=2)
    gone, proven = rejudge(history(left, found), action(LOOKUP))
    assert (gone, proven) == (Judgement(seq=0, unasked=again.REMOVED), Judgement(seq=2))


def test_a_record_that_cannot_be_read_is_the_audits():
    """It ends the judging of its operation and nothing else."""
    stands = history(claimed(KEY), answered(DONE))
    broken = (stands.events[0], msgspec.structs.replace(stands.events[1], record=b"{"))
    assert rejudge(History(operation=stands.operation, events=broken), action(KEY)) == (
        Judgement(seq=0, unasked=again.UNREADABLE),
    )


def test_what_was_said_before_anything_began_is_the_audits_too():
    """Evidence of an attempt that there was not, and a look before any, end nothing in a crash."""
    early = history(answered(DONE), claimed(KEY))
    assert rejudge(early, action(KEY)) == (Judgement(seq=0, unasked=again.UNREADABLE),)
    looked_first = history(PAID, claimed(LOOKUP), looked(NOTHING, proven=True))
    (one,) = rejudge(looked_first, action(LOOKUP))
    assert "no longest_delivery" in one.broken


# -- what was rewritten -----------------------------------------------------------------------------------------------

ERROR = Replied(status=500)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (answered(ERROR, finding=Finding.REJECTED, rule="mutant"), "no clause 'mutant' for an answer"),
        (answered(ERROR, finding=Finding.REJECTED, rule="answers[99]"), "no clause 'answers[99]' for an answer"),
        (answered(ERROR, finding=Finding.REJECTED, rule="looks[0].found"), "no clause 'looks[0].found' for an answer"),
        (answered(ERROR, finding=Finding.SUCCEEDED, rule="answers[0]", effect="refund"), "not about what was answered"),
        (answered(DONE, finding=Finding.REJECTED), "answers[0] proves succeeded of provider_key"),
        (answered(DONE, coverage=Coverage.OPERATION), "answers[0] proves succeeded of provider_key"),
        (answered(Returned(value=1)), "no clause 'function.returned' for an answer"),
        (answered(DONE, facts={"status": "201"}), "its body does not hold what is kept"),
        (Evidence(source=Source.ANSWER, finding=Finding.SUCCEEDED, attempt=1, rule="answers[0]"), "ever kept"),
    ],
)
def test_a_rewritten_answer_is_found_out(evidence, said):
    """Whatever its chain says, the contract proves something else by what is kept."""
    assert said in of(evidence)


def test_an_earlier_clause_judges_first():
    """A clause that comes later cannot be the one that judged."""
    anything = msgspec.structs.replace(KEY.answers[0], where={}, content="any", finding="unknown")
    contract = msgspec.structs.replace(KEY, answers=(anything, *KEY.answers))
    forged = answered(DONE, rule="answers[1]")
    assert of(forged, contract) == "answers[0] judges that answer, not answers[1]"


def test_a_clauses_own_effect_is_the_one_that_is_named():
    """Where a clause promises less than the action, the receipt may not say more."""
    accepted = msgspec.structs.replace(KEY.answers[0], effect="accepted by lab")
    contract = msgspec.structs.replace(KEY, answers=(accepted,))
    assert of(answered(DONE, contract), contract) == ""
    assert "answers[0] proves" in of(answered(DONE, contract, effect="refund"), contract)


def test_what_a_clause_asks_of_headers_and_of_the_payload_is_not_kept():
    """It cannot be asked again: neither of a clause that judged, nor of an earlier one that did not."""
    earlier = msgspec.structs.replace(KEY.answers[0], headers={"x-replayed": "true"}, finding="unknown")
    contract = msgspec.structs.replace(KEY, answers=(earlier, *KEY.answers))
    assert of(answered(DONE, contract), contract) == again.NOT_KEPT
    comparing = msgspec.structs.replace(KEY.answers[0], match={"/amount": "/n"})
    contract = msgspec.structs.replace(KEY, answers=(comparing,))
    assert of(answered(DONE, rule="answers[0]"), contract) == again.NOT_KEPT


def rewritten(reading=NOTHING, **changes):
    """A look whose finding somebody changed."""
    return looked(reading, **changes)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (rewritten(finding=Finding.SUCCEEDED, effect="refund"), "absent is not found"),
        (rewritten(finding=Finding.REJECTED), "a look cannot show rejected"),
        (rewritten(finding=Finding.ACCEPTED), "a look cannot show accepted"),
        (rewritten(finding=Finding.ABSENT, rule="looks[7].absent"), "no clause 'looks[7].absent' for a look"),
        (rewritten(finding=Finding.ABSENT, rule="looks[0].gone"), "no clause 'looks[0].gone' for a look"),
        (rewritten(finding=Finding.ABSENT, rule="looks[0]"), "no clause 'looks[0]' for a look"),
        (rewritten(finding=Finding.ABSENT, coverage=Coverage.ATTEMPT), "that look speaks of operation"),
        (
            rewritten(msgspec.structs.replace(NOTHING, positive_control=False), finding=Finding.ABSENT),
            "no known item was found",
        ),
        (
            rewritten(msgspec.structs.replace(NOTHING, kind=ReadingKind.INCONCLUSIVE), finding=Finding.ABSENT),
            "did not say that nothing is there",
        ),
        (looked(msgspec.structs.replace(WHOLE, negative_control=False)), "miss what cannot exist"),
        (looked(msgspec.structs.replace(WHOLE, compared={"account": "equal"})), "reference was not found equal"),
        (looked(msgspec.structs.replace(WHOLE, state={"/state": "dropped"})), "/state is not a state"),
    ],
)
def test_a_rewritten_look_is_found_out(evidence, said):
    """The reading that is kept does not prove what is on record."""
    assert said in by_look(evidence)


def test_absence_is_asked_as_of_the_moment_it_was_paid_for():
    """Too early, or of a look that nobody paid for."""
    absent = looked(NOTHING, proven=True)
    assert "before the last moment" in by_look(absent, step=5.0)
    assert of(absent, LOOKUP, SILENCE) == "no such look was paid for"
    assert of(absent, LOOKUP, SILENCE, Noted(note="look", facts={"look": 1})) == "no such look was paid for"
    assert "may still write" in of(absent, LOOKUP, SILENCE, BESIDE, PAID)
    assert of(absent, LOOKUP, SILENCE, PAID, BESIDE, PAID) == ""
    assert "in pages" in by_look(looked(msgspec.structs.replace(NOTHING, pages=2), proven=True))


def test_a_state_is_compared_by_its_type():
    """A number that looks like the accepted word is none."""
    match = msgspec.structs.replace(LOOKUP.looks[0].match, state={"/code": (3, "done")})
    contract = msgspec.structs.replace(LOOKUP, looks=(msgspec.structs.replace(LOOKUP.looks[0], match=match),))
    good = looked(msgspec.structs.replace(WHOLE, state={"/code": 3}), contract)
    assert by_look(good, contract) == ""
    true = looked(msgspec.structs.replace(WHOLE, state={"/code": 3.0}), contract)
    assert by_look(true, contract) == "/code is not a state that the contract accepts"


# -- clauses over what is kept ----------------------------------------------------------------------------------------


def test_a_clause_over_what_is_kept():
    """Yes, no, or nobody can say any more."""
    rule = KEY.answers[0]
    registered = action(KEY)
    assert holds(rule, 500, None, registered) is False
    assert holds(rule, 201, None, registered) is None
    assert holds(rule, 201, {"id": "e", "state": "done"}, registered) is True
    assert holds(rule, 201, {"id": "e", "state": "dropped"}, registered) is False
    assert holds(rule, 201, {"id": "e", "state": None}, registered) is None
    plain = msgspec.structs.replace(rule, where={}, content="any")
    assert holds(plain, 201, None, registered) is True
    assert holds(msgspec.structs.replace(plain, content="json"), 201, None, registered) is None
    assert holds(msgspec.structs.replace(plain, content="json"), 201, {}, registered) is True


def test_where_a_kept_value_stood():
    """By the contract's own names, by what the action declares, or in the whole document."""
    whole = action(msgspec.structs.replace(KEY, result={}))
    assert kept_at("/state", {"state": "done"}, whole) == "done"
    assert kept_at("/other", {"state": "done"}, whole) is MISSING
    assert kept_at("/state", {"state": None}, whole) is None
    named = action(KEY)
    assert kept_at("/state", {"state": "done"}, named) == "done"
    assert kept_at("/other", {"state": "done"}, named) is UNKNOWN
    declared = msgspec.structs.replace(whole, result=("/refund/id", "/charge/id", "/state", ""))
    kept = {"id": "which", "state": "done", "": {}}
    assert [kept_at(at, kept, declared) for at in ("/state", "/refund/id", "/other", "")] == [
        "done", UNKNOWN, UNKNOWN, {}
    ]  # fmt: skip
    assert kept_at("/state", {}, declared) is MISSING


def test_every_reason_is_a_fixed_sentence():
    """They are counted by their words."""
    words = [again.NO_ACTION, again.OTHER_CONTRACT, again.ERASED, again.REMOVED, again.UNREADABLE, again.NOT_KEPT]
    assert len({*words, again.BY_WIRE, again.BY_PERSON, again.BY_FUNCTION}) == 9
    assert json.loads(msgspec.json.encode(Judgement(seq=1)))["broken"] == ""


# -- names and numbers that contradict what is kept ----------------------------------------------------------------


def test_an_external_id_is_the_one_that_is_kept():
    """In an answer and in a look; where the place was not kept, nobody says anything of it."""
    assert of(answered(DONE, external_id="e-2")) == "its external id is not the one in the answer that is kept"
    kept = looked(WHOLE, external_id="e-1", result={"id": "e-1", "state": "done"})
    assert by_look(kept) == ""
    other = msgspec.structs.replace(kept, external_id="e-2")
    assert by_look(other) == "its external id is not the one in the item that is kept"
    header = msgspec.structs.replace(KEY, answers=(msgspec.structs.replace(KEY.answers[0], external_id="header:x-id"),))
    assert of(answered(DONE, header, external_id="e-7"), header) == ""
    nowhere = msgspec.structs.replace(KEY, answers=(msgspec.structs.replace(KEY.answers[0], external_id=""),))
    assert of(answered(DONE, nowhere, external_id="e-7"), nowhere) == ""


def test_a_control_in_a_list_of_none_was_not_found():
    """Where the known item stands in the list itself, finding it among no items is a lie."""
    inline = msgspec.structs.replace(LOOKUP.looks[0].controls, positive="inline")
    look = msgspec.structs.replace(LOOKUP.looks[0], controls=inline)
    contract = msgspec.structs.replace(LOOKUP, looks=(look, *LOOKUP.looks[1:]))
    none = msgspec.structs.replace(NOTHING, items=0)
    assert by_look(looked(none, contract, proven=True), contract) == "the known item was found among none"
    assert by_look(looked(NOTHING, contract, proven=True), contract) != "the known item was found among none"


def test_a_contract_has_the_name_that_its_digest_says():
    """Renamed on record, with the chain made anew; a contract that is not at hand has any name."""
    renamed = msgspec.structs.replace(claimed(KEY), contract_id="another")
    judged = rejudge(history(renamed, answered(DONE)), action(KEY))
    assert [(one.seq, one.broken) for one in judged if one.broken] == [
        (1, "its contract is 'lab.key', by the digest on record")
    ]
    assert not [one for one in rejudge(history(renamed, answered(DONE)), action(LOOKUP)) if one.broken]
