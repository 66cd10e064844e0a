"""One event in sentences: by whom it was, also in records of before it was said."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import claimed

from counterfoil.cli.retold import by
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
