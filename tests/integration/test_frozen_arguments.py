"""What is called is what was frozen: no declared callable, and no container of the caller's own, changes it."""

from __future__ import annotations

import pytest
from tests.cases.people import DANA, WHO, asks

import counterfoil
from counterfoil.domain.canonical import parse
from counterfoil.domain.payload import frozen_payload


@pytest.fixture
def ledger(tmp_path):
    """A book whose policy asks about `pay`."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:q") as opened:
        yield asks(opened)


def guard(ledger, name, **declared):
    """A function that keeps what it was called with."""
    calls = []

    def tool(order):
        calls.append((type(order), order["to"], sorted(order)))
        return {"id": "1"}

    return calls, ledger.action(tool, name=name, **{"key": lambda order: "K", **WHO, **declared})


CALLABLES = {
    "key pops": {"key": lambda order: order.pop("ref")},
    "key updates": {"key": lambda order: order.update(to="EVE") or "K"},
    "value updates": {"value": lambda order: order.update(to="EVE") or 1},
    "check updates": {"check": lambda order: order.update(to="EVE")},
}


@pytest.mark.parametrize("name", ["pay", "free"])
@pytest.mark.parametrize("declared", CALLABLES.values(), ids=CALLABLES)
def test_a_declared_callable_changes_nothing(ledger, name, declared):
    """What people approved, what is on record, and what the function gets are one."""
    calls, tool = guard(ledger, name, **declared)
    given = {"ref": "R1", "to": "A"}
    receipt = tool(given)
    if name == "pay":
        ledger.decisions.approve(receipt.id, **DANA)
        receipt = tool(dict(given))
    assert calls == [(dict, "A", ["ref", "to"])]
    assert given == {"ref": "R1", "to": "A"}
    assert parse(frozen_payload(ledger.history(receipt.id))) == {"order": given}


def test_each_callable_has_a_copy_of_its_own(ledger):
    """What the key takes away, the value at risk still has."""
    calls, tool = guard(ledger, "free", key=lambda order: order.pop("ref"), value=lambda order: float(order["ref"]))
    assert tool({"ref": "7", "to": "A"}).operation.value == 7.0
    assert calls


class Sneaky(dict):
    """Shows one thing to whoever reads it whole, and another by name."""

    def __getitem__(self, name):
        return "EVE"


def test_a_container_of_ones_own_is_frozen_as_a_plain_one(ledger):
    """Also inside another."""
    calls, tool = guard(ledger, "free")
    tool(Sneaky(to="A"))
    assert calls == [(dict, "A", ["to"])]

    def nested(orders):
        calls.append(orders[0]["to"])
        return {}

    ledger.action(nested, key=lambda orders: "N", **WHO)([Sneaky(to="A")])
    assert calls[1] == "A"


def test_an_http_payload_is_frozen_before_its_key_is_read(ledger, monkeypatch):
    """The caller's own object stays as it was."""
    monkeypatch.setenv("X", "Bearer x")
    guarded = ledger.http(
        "h", contract="lab.nothing", base_url="http://127.0.0.1:9", secrets={"/headers/authorization": "env:X"},
        key=lambda body: body.update(to="EVE") or "K", value=lambda body: body.update(to="EVE") or 1, **WHO,
    )  # fmt: skip
    given = {"body": {"to": "A"}}
    assert parse(guarded.order(given).intent.payload) == {"body": {"to": "A"}}
    assert given == {"body": {"to": "A"}}
