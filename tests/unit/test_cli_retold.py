"""One event in sentences: by whom it was, also in records of before it was said."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import claimed, draw, order

from counterfoil.cli.retold import by, rules
from counterfoil.domain.event import encode
from counterfoil.domain.terms import Terms
from counterfoil.plans.claims import first_begun_for
from counterfoil.runtime.replay import replay


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({}, "agent:a"),
        ({"basis": "not_sent"}, "agent:a"),
        ({"by": "w_1"}, "worker w_1"),
        ({"basis": "same_key_replay"}, "worker w_1"),
        ({"basis": "same_key_replay", "by": "mara", "how": "terminal"}, "mara, terminal"),
    ],
)
def test_an_attempt_is_of_whoever_made_it(said, who):
    """A worker names itself; before it did, its bases tell it from a caller, who is the operation's own actor."""
    history = claimed()
    operation = msgspec.structs.replace(history.operation, actor="agent:a")
    (happened,) = replay(history)
    attempt = msgspec.structs.replace(happened.record.attempt, worker="w_1")
    record = msgspec.structs.replace(happened.record, attempt=attempt, **said)
    assert by(msgspec.structs.replace(happened, record=record), operation) == who


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"digest": "pl1:a", "rule": "small"}, "none was asked for: rule small of policy pl1:a"),
        ({"digest": "pl1:a"}, "none was asked for: policy pl1:a"),
        ({}, "none was asked for: no policy in force"),
    ],
)
def test_an_attempt_names_the_rule_that_let_it_go(terms, says):
    """From the record of the claim alone; one of before it was recorded names the policy, as it did."""
    (happened,) = replay(claimed(order(terms=Terms(**terms))))
    assert dict(rules(happened))["approval"] == says


def test_the_rule_costs_a_receipt_its_name_and_nothing_without_a_policy():
    """What no rule spoke of is written as it always was."""
    bare, ruled = (encode(first_begun_for(order(terms=Terms(rule=rule)), draw(), "sd1:0")) for rule in ("", "small"))
    assert b"rule" not in bare
    assert len(ruled) - len(bare) == len(',"rule":"small"')
