"""`counterfoil reconcile`: look now; a look that says nothing leaves everything as it is."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter


def unknown(shop, count=1, action="lab.lookup"):
    """So many operations whose effect happened and whose answer is lost, not looked for yet."""
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(count, action)
    assert shop("run", "lab.jsonl", "--wait", "0.001").code == 1
    shop.faults()
    return [line["id"] for line in shop("list", "--json", "--unresolved").lines]


def test_one_operation_is_settled_by_a_look(shop):
    """The operation that is named is looked at now, and only that one."""
    first, _ = unknown(shop, 2)
    said = shop("reconcile", first, "--actions", "lab.yaml", "--json")
    assert said.code == 0
    assert (said.json["id"], said.json["outcome"]) == (first, "succeeded")
    assert said.json["settled_by"] == "succeeded:look"
    assert len(shop("list", "--json", "--unresolved").lines) == 1
    assert shop.sends() == 2


def test_all_unresolved_operations_are_looked_at(shop):
    """`--all` looks at each, prints one line for each, and ends with 0 only when nothing is left."""
    found = unknown(shop, 3)
    said = shop("reconcile", "--all", "--actions", "lab.yaml", "--json")
    assert said.code == 0
    assert {line["id"] for line in said.lines} == set(found)
    assert shop("reconcile", "--all", "--actions", "lab.yaml").out == ""
    assert shop.sends() == 3


@pytest.mark.parametrize("fault", ["look_500", "look_html", "look_truncated", "look_cut", "wrong_account"])
def test_a_look_that_says_nothing_changes_nothing(shop, fault):
    """An inconclusive look leaves the outcome unknown and says so by its exit code."""
    (found,) = unknown(shop)
    shop.faults({"route": "*", "behaviour": fault})
    said = shop("reconcile", found, "--actions", "lab.yaml", "--json")
    assert (said.code, said.json["outcome"], said.json["unresolved"]) == (1, "unknown", True)
    assert shop.sends() == 1


def test_what_has_no_look_is_named_and_the_others_are_looked_at(shop):
    """An operation whose action is not known here, or that cannot be looked for, keeps no other from its look."""
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    lines = [{"action": action, "key": "a", "payload": {"n": 1}} for action in ("lab.key", "lab.nothing", "lab.lookup")]
    shop.write("lab.jsonl", *lines)
    assert shop("run", "lab.jsonl", "--wait", "0.001").code == 1
    shop.faults()
    shop.actions(**{"lab.nothing": "lab.nothing", "lab.lookup": "lab.lookup"})
    said = shop("reconcile", "--all", "--actions", "lab.yaml", "--json")
    assert said.code == 2
    told = {line.get("action") or line["error"]["code"]: line for line in said.lines}
    assert told["lab.lookup"]["outcome"] == "succeeded"
    assert told["lab.nothing"]["unresolved"] is True
    assert "lab.key" in told["CF-104"]["error"]["message"]


def test_one_that_cannot_be_read_keeps_no_other_from_its_look(shop):
    """It is named by its code, and the others are settled."""
    broken, other = unknown(shop, 2)
    shop.spoil(broken, seq=2)
    said = shop("reconcile", "--all", "--actions", "lab.yaml", "--json")
    assert said.code == 4
    told = {line.get("id", broken): line for line in said.lines}
    assert told[broken]["error"]["code"] == "CF-299"
    assert told[other]["outcome"] == "succeeded"


@pytest.mark.parametrize("words", [(), ("op_x", "--all")])
def test_one_or_all_must_be_named(shop, words):
    """Neither and both are refused alike."""
    said = shop("reconcile", *words, "--actions", "lab.yaml")
    assert said.code == 2
    assert "--all" in said.err


def test_no_store_is_made(shop):
    """A look at a store that does not exist is the deployment's to mend, and leaves no file behind."""
    said = shop("reconcile", "--all", "--actions", "lab.yaml")
    assert said.code == 4
    assert "does not exist" in said.err
    assert not (shop.folder / "receipts.db").exists()


def test_a_success_is_looked_at_when_somebody_asks(shop):
    """Exit 0 where the look agrees; with every one at once it is refused; nothing is sent."""
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    found = shop("list", "--json").json["id"]
    words = ("--actions", "lab.yaml", "--store", "receipts.db")
    said = shop("reconcile", found, "--confirm", *words, "--json")
    assert (said.code, said.json["outcome"], said.json["looks"]) == (0, "succeeded", 1)
    assert shop("reconcile", "--all", "--confirm", *words).code == 2
    assert (shop.sends(), shop.looks()) == (1, 1)
