"""Within what a provider's names for objects are of one object each."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import action, claimed, erased, order

from counterfoil import contracts
from counterfoil.domain.matching import place_of

KEY = contracts.load("lab.key")
LOOK = KEY.looks[0]


def place(*, path="/effects", by_path=False, reference="provider_key", gone=False):
    """Where a look of that form finds what became of one payment of 10."""
    request = msgspec.structs.replace(LOOK.request, path=path, query={}, headers={})
    match = msgspec.structs.replace(LOOK.match, reference="path" if by_path else "/key")
    contract = msgspec.structs.replace(KEY, reference=reference)
    history = claimed(order(action()))
    return place_of(
        erased(history) if gone else history, contract, msgspec.structs.replace(LOOK, request=request, match=match)
    )


@pytest.mark.parametrize(
    ("said", "within"),
    [
        ({}, ()),
        ({"path": "/effects/{/payload/amount}"}, ("10",)),
        ({"path": "/effects/{provider_key}"}, ()),
        ({"path": "/x/{reference}", "by_path": True, "reference": "payload/amount"}, ("10",)),
        ({"path": "/x/{reference}", "by_path": True}, ("op_1",)),
        ({"path": "/x/{payload/none}"}, None),
        ({"path": "/x/{payload/amount}", "gone": True}, None),
        ({"gone": True}, ()),
    ],
)
def test_a_name_is_of_one_object_within_what_its_request_takes_from_the_payload(said, within):
    """The account where it takes nothing; the URL itself where that is the reference; unknown once it is erased."""
    assert place(**said) == within
