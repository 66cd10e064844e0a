"""What an approval still allows is shown until its end, with who may use it and how, whatever was tried before."""

from __future__ import annotations

import pytest
from tests.surface.test_cli_decisions import POLICY, SHOP, Counter

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

ENDS = '    return {"id": "re_" + order}\n'
MOODY = SHOP.replace(
    ENDS,
    '    if order.startswith("refused"):\n        raise counterfoil.Rejected("card declined")\n'
    '    if order.startswith("stayed"):\n        raise counterfoil.NotSent("no connection")\n' + ENDS,
)
ONCE_MORE = POLICY.replace("approval: {}}", "approval: {attempts: [first, after_not_sent, override]}}")


@pytest.fixture
def desk(commands):
    """A shop that is refused some refunds, and cannot send others."""
    made = Counter(commands)
    (made.folder / "shop.py").write_text(MOODY, "utf-8")
    return made


def queued(desk):
    """The one entry of the queue."""
    (entry,) = desk.commands("queue", "--json").json["queue"]
    return entry["why"], entry["next"].partition(", ends in")[0]


def listed(desk):
    """Why it stands where it stands, and what is next, without the time that is left."""
    entry = desk.commands("list", "--json").json
    return entry["why"], (entry["next"] or "").partition(", within")[0]


def rejected_and_asked_anew(desk):
    """Approved, sent and rejected; a further attempt is asked for, under a policy that may allow one."""
    operation, *_ = desk.refund("refused1", 50)
    assert desk("approve", operation).code == 0
    desk.work()
    assert (listed(desk)[1], desk.commands("queue", "--json").json["queue"]) == ("", [])
    desk.adopt(ONCE_MORE)
    again = desk("attempt", operation, "--basis", "rejected_without_effect", "--actions", "shop:ledger")
    assert (again.code, desk.sent) == (2, ["refused1"])
    return operation


def test_a_further_attempt_that_is_approved_waits_for_whoever_wants_it(desk):
    """Asked, approved and used: each is said where people look, and the worker leaves it alone."""
    operation = rejected_and_asked_anew(desk)
    assert queued(desk) == ("0 of 1 approvals, 50 at risk", "approve or deny")
    assert listed(desk)[1] == "approve or deny it"
    assert f"counterfoil approve {operation}" in desk.commands("show", operation).out
    said = desk("approve", operation)
    assert (said.code, "next: whoever asked for it sends it" in said.out) == (0, True)
    assert queued(desk) == ("approved anew, not sent since", "a further attempt sends it, or revoke")
    assert listed(desk)[1] == "a further attempt may be made"
    page = desk.commands("show", operation).out
    assert "the approval ends" in page
    assert f"counterfoil revoke {operation}" in page
    assert "1 waits for its caller" in desk.work().out
    desk("attempt", operation, "--basis", "rejected_without_effect", "--actions", "shop:ledger")
    assert desk.sent == ["refused1"] * 2
    assert (desk.commands("queue", "--json").json["queue"], listed(desk)[1]) == ([], "")


def test_a_further_attempt_that_is_approved_may_be_taken_back(desk):
    """Nothing is claimed after it."""
    operation = rejected_and_asked_anew(desk)
    desk("approve", operation)
    assert desk("revoke", operation).code == 0
    again = desk("attempt", operation, "--basis", "rejected_without_effect", "--actions", "shop:ledger")
    assert (again.code, "permission is revoked" in again.err) == (2, True)
    assert (desk.sent, desk.commands("queue", "--json").json["queue"]) == (["refused1"], [])


def test_after_an_override_that_stayed_the_approval_is_in_sight(desk):
    """Approved and stayed, overridden and stayed: the same call may send it, and the queue says so."""
    operation, *_ = desk.refund("stayed1", 50)
    desk("approve", operation)
    desk.work()
    before = queued(desk)
    assert before == ("approved, proven not to have left", "the same call sends it, or revoke")
    assert desk("override", operation, "--actions", "shop:ledger").code == 0
    desk("attempt", operation, "--basis", "operator_override", "--actions", "shop:ledger")
    assert (desk.sent, queued(desk)) == (["stayed1"] * 2, before)
    assert listed(desk) == ("approved; nothing left", "its caller may send it again")
    assert desk.commands("verify").code == 0


def test_what_was_abandoned_and_came_back_is_overridden(desk):
    """Two unknown attempts, given up; the first is found rejected: a person decides again, and it is sent."""
    operation, *_ = desk.refund("lost1", 5)
    push = ("attempt", operation, "--basis", "operator_override", "--actions", "shop:ledger")
    desk("override", operation, "--actions", "shop:ledger")
    desk(*push)
    desk("abandon", operation)
    found = ("--outcome", "rejected", "--attempt", "1", "--evidence", "seen=statement", "--actions", "shop:ledger")
    assert "next: a person" in desk("resolve", operation, *found).out
    assert desk.commands("show", operation, "--json").json["disposition"] == "open"
    assert desk("wait", operation, "--for", "2h").code == 0
    assert desk("override", operation, "--actions", "shop:ledger").code == 0
    desk(*push)
    assert desk.sent == ["lost1"] * 3
    assert desk.commands("verify").code == 0
