"""Sureness: what is only inferred, or unknown, proves no absence, wins no fence and lets no key go again."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.crash.stepping import NOON, action, claimed, observed, order, ruled
from tests.unit.test_fence import FENCED, LOST, against, won
from tests.unit.test_reconcile import recorded, to_look
from tests.unit.test_retry import UNKNOWN, situation

from counterfoil import contracts
from counterfoil.domain import fence, reach, retry
from counterfoil.domain.answer import Replied
from counterfoil.domain.contract import AutomaticAttempts, Confidence
from counterfoil.domain.rejudge import rejudge
from counterfoil.domain.retry import decide_retry
from counterfoil.domain.soundness import check
from counterfoil.domain.sure import SURE, is_sure
from counterfoil.domain.words import Basis, Finding

KEY, LOOKUP = contracts.load("lab.key"), contracts.load("lab.lookup")
EVERY = pytest.mark.parametrize("confidence", list(Confidence))
CONTROL = {"id": "ef_0", "reference": "control", "account": "acct", "state": "done", "payload": {}}


def resting(contract, confidence, part):
    """The contract with these clauses resting on a source of that confidence."""
    some = next(iter(contract.sources.values()))
    sources = contract.sources | {"said": msgspec.structs.replace(some, confidence=confidence)}
    clauses = getattr(contract, part)
    moved = [
        msgspec.structs.replace(one, source="said") for one in (clauses if isinstance(clauses, tuple) else [clauses])
    ]
    return msgspec.structs.replace(
        contract, sources=sources, **{part: tuple(moved) if isinstance(clauses, tuple) else moved[0]}
    )


def where(contract):
    """Where the check finds fault."""
    return [found.path for found in check(contract)]


def test_three_confidences_are_sure():
    """Read there, in the code, or measured; a source that is not there says nothing."""
    assert {Confidence.DOCUMENTED, Confidence.SOURCE_CODE, Confidence.MEASURED} == SURE
    assert is_sure(LOOKUP, LOOKUP.looks[0])
    assert not is_sure(LOOKUP, msgspec.structs.replace(LOOKUP.looks[0], source="nowhere"))


@EVERY
def test_absence_rests_on_what_is_sure(confidence):
    """The same empty look after the same wait: absent or unknown by how well its clause is established."""
    sure, contract = confidence in SURE, resting(LOOKUP, confidence, "looks")
    assert where(contract) == ([] if sure else ["$.looks[0].source"])
    assert reach.disproves_by_look(contract) is sure
    of = action(contract, longest_delivery=60.0, longest_delivery_by="ann", longest_delivery_why="so")
    plan, _, paid = to_look(observed(claimed(order(of)), Finding.UNKNOWN, of=of), of, at=NOON + 1000)
    page = {"account": "acct", "complete": True, "items": [CONTROL]}
    evidence, ended = recorded(plan, (Replied(status=200, body=json.dumps(page).encode()),), paid, at=NOON + 1001)
    assert evidence.finding is (Finding.ABSENT if sure else Finding.UNKNOWN)
    assert ended.operation.unresolved == (not sure)


def test_absence_on_record_that_rested_on_an_inference_does_not_hold():
    """Judged anew, it is asked the same question."""
    of = action(LOOKUP, longest_delivery=60.0, longest_delivery_by="ann", longest_delivery_why="so")
    plan, _, paid = to_look(observed(claimed(order(of)), Finding.UNKNOWN, of=of), of, at=NOON + 1000)
    page = {"account": "acct", "complete": True, "items": [CONTROL]}
    amend = plan.send((Replied(status=200, body=json.dumps(page).encode()),))
    history = ruled(paid, amend.rule, NOON + 1001)
    assert [one.broken for one in rejudge(history, of)] == [""]
    unsure = msgspec.structs.replace(of, contract=resting(LOOKUP, Confidence.INFERRED, "looks"))
    assert [bool(one.broken) for one in rejudge(history, unsure)] == [True]


@EVERY
@pytest.mark.parametrize("part", ["protection", "repeat"])
def test_a_repeat_rests_on_what_is_sure(confidence, part):
    """How long a key protects, and what it does when it comes again; a person who asks by that basis is told so too."""
    sure, contract = confidence in SURE, resting(KEY, confidence, part)
    contract = msgspec.structs.replace(contract, automatic_attempts=AutomaticAttempts(same_key_replay=1))
    assert where(contract) == ([] if sure else [f"$.{part}.source"])
    assert reach.repeats(contract) is sure
    because = () if sure else (retry.RETENTION_UNKNOWN if part == "protection" else retry.REPEAT_UNSAFE,)
    for automatic in (True, False):
        decision = decide_retry(situation(UNKNOWN, contract=contract), automatic=automatic, basis=Basis.SAME_KEY_REPLAY)
        assert (decision.allowed, () if decision.allowed else decision.because) == (sure, because)
    asked = msgspec.structs.replace(contract, automatic_attempts=AutomaticAttempts())
    assert where(asked) == []  # nothing goes by itself


@EVERY
def test_a_key_that_never_expires_does_so_by_what_is_sure(confidence):
    """Else it protects for as long as nobody knows."""
    eternal = msgspec.structs.replace(
        KEY, protection=msgspec.structs.replace(KEY.protection, retention_seconds="never_expires")
    )
    assert reach.repeats(resting(eternal, confidence, "protection")) is (confidence in SURE)


@EVERY
def test_a_fence_rests_on_what_is_sure(confidence):
    """It is not sent, what is answered to one proves nothing, and the check refuses it."""
    sure, contract = confidence in SURE, resting(FENCED, confidence, "fences")
    assert where(contract) == ([] if sure else ["$.fences[0].source"])
    assert reach.disproves_by_fence(contract) is sure
    assert against(contract=contract) == (() if sure else (fence.UNSURE,))
    for answer, finding in ((won(), Finding.ABSENT), (LOST, Finding.REJECTED)):
        said = fence.judge_fence(contract, 0, answer, 2)
        assert said.finding is (finding if sure else Finding.UNKNOWN)
